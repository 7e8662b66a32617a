//! Components whose values have latent scales: Student's t distributions and negative binomial distributions.
//!
//! Every value x has a latent factor u with a gamma distribution, given which the distribution of x is conjugate:
//!
//! - Student's t: x ~ N(μ, 1/(uτ)) with u ~ Gamma(ν/2, ν/2)
//! - negative binomial: x ~ Poisson(uρ) with u ~ Gamma(r, r), so x has the mean ρ and the variance ρ + ρ²/r
//!
//! The degrees of freedom ν and the shape r have no conjugate prior. They have a uniform prior over a grid of values, and
//! q contains the probability of each value and, given the value, the distribution of (μ, τ) or ρ (see
//! [`ExponentialFamily::Alternatives`]). Given the component and the value, q(u) is a gamma distribution. So all
//! updates have a closed form, and the grid and the independence of u and (μ, τ) or ρ are the only approximations.

use jensen_math::constants::LOG_TWO_PI;
use jensen_math::special::{digamma, lgamma, log_sum_exp_slice};
use jensen_math::sum::ColumnMoments;

use crate::family::{ExponentialFamily, Inner};
use crate::models::components::{Completed, Components};
use crate::models::gaussian::GaussianPrior;

/// The degrees of freedom are the powers of √2 from 1 to 128. With 128, the distribution is almost normal.
const DEGREES: (i32, i32) = (0, 14);
/// The shapes are the powers of √2 from 1/8 to 128.
const SHAPES: (i32, i32) = (-6, 14);

fn grid((first, last): (i32, i32)) -> Vec<f64> {
    (first..=last)
        .map(|power| 2f64.powf(0.5 * f64::from(power)))
        .collect()
}

/// The latent factor of a value, whose unnormalised log density at temperature 1 is `constant` + (shape − 1) log u −
/// rate · u.
struct Factor {
    constant: f64,
    shape: f64,
    rate: f64,
}

/// The integral over a latent factor at an inverse temperature.
struct Integrated {
    log_integral: f64,
    energy: f64,
    mean: f64,
}

impl Factor {
    fn integrated(&self, inverse: f64) -> Integrated {
        let (a, b) = (inverse * (self.shape - 1.0) + 1.0, inverse * self.rate);
        let mean = a / b;
        let log_mean = digamma(a) - b.ln();
        Integrated {
            log_integral: inverse * self.constant + lgamma(a) - a * b.ln(),
            energy: self.constant + (self.shape - 1.0) * log_mean - self.rate * mean,
            mean,
        }
    }
}

/// The kinds of values that have latent factors.
enum Values {
    /// Real numbers, with the parameters of their priors and the logarithms of their scales.
    Student(Vec<[f64; 4]>, Vec<f64>),
    /// Counts, with the parameters of the priors of their rates.
    NegativeBinomial(Vec<[f64; 2]>),
}

/// Components of independent values with latent factors. Values that are missing at random have no effect.
pub struct Scaled {
    values: Values,
    grid: Vec<f64>,
    dim: usize,
    data: Vec<f64>,
}

/// Shape of the prior of a rate, as for Poisson components.
const RATE_SHAPE: f64 = 0.5;

impl Scaled {
    /// Creates components with Student's t distributions over rows of real numbers, where NaN marks a missing value. The
    /// prior is computed from the given moments of the columns, as for Gaussian components with diagonal covariances.
    /// `log_scales` contains the logarithms of the scales by which the columns were divided.
    pub fn student(
        data: Vec<f64>,
        columns: &[ColumnMoments],
        prior: GaussianPrior,
        log_scales: Vec<f64>,
    ) -> Self {
        let (kappa, a) = (prior.mean_weight, 0.5 * prior.variance_weight);
        let of = |column: &ColumnMoments| {
            let (m, b) = (column.mean, a * prior.variance * column.variance());
            [kappa * m, kappa, b + 0.5 * kappa * m * m, a - 0.5]
        };
        Self {
            values: Values::Student(columns.iter().map(of).collect(), log_scales),
            grid: grid(DEGREES),
            dim: columns.len(),
            data,
        }
    }

    /// Creates components with negative binomial distributions over rows of counts, where NaN marks a missing count. The
    /// prior of the rates is computed from the given moments of the columns, as for Poisson components.
    pub fn negative_binomial(data: Vec<f64>, columns: &[ColumnMoments]) -> Self {
        let of = |column: &ColumnMoments| {
            let mean = if column.mean > 0.0 { column.mean } else { 1.0 };
            [RATE_SHAPE, RATE_SHAPE / mean]
        };
        Self {
            values: Values::NegativeBinomial(columns.iter().map(of).collect()),
            grid: grid(SHAPES),
            dim: columns.len(),
            data,
        }
    }

    fn inner(&self) -> Inner {
        match self.values {
            Values::Student(..) => Inner::NormalGamma,
            Values::NegativeBinomial(_) => Inner::Gamma,
        }
    }

    /// Returns the length of the part of one value of the grid.
    fn part(&self) -> usize {
        1 + self.inner().family().len()
    }

    /// Returns the number of parameters of one column.
    pub fn width(&self) -> usize {
        self.grid.len() * self.part()
    }

    fn row(&self, point: usize) -> &[f64] {
        &self.data[point * self.dim..(point + 1) * self.dim]
    }

    /// Returns the latent factor of a value of a column for one value of the grid. `t` contains the expectations given
    /// this value.
    fn factor(&self, column: usize, x: f64, own: f64, t: &[f64]) -> Factor {
        match &self.values {
            Values::Student(_, log_scales) => {
                let half = 0.5 * own;
                let distance = -x * (t[2] * x + 2.0 * t[0]) - 2.0 * t[1];
                Factor {
                    constant: 0.5 * (t[3] - LOG_TWO_PI) + half * half.ln()
                        - lgamma(half)
                        - log_scales[column],
                    shape: half + 0.5,
                    rate: half + 0.5 * distance,
                }
            }
            Values::NegativeBinomial(_) => Factor {
                constant: x * t[0] - lgamma(x + 1.0) + own * own.ln() - lgamma(own),
                shape: x + own,
                rate: own - t[1],
            },
        }
    }

    /// Returns the statistics of a value given its latent factor.
    fn statistics(&self, x: f64, factor: f64) -> ([f64; 4], usize) {
        match self.values {
            Values::Student(..) => ([factor * x, factor, 0.5 * factor * x * x, 0.5], 4),
            Values::NegativeBinomial(_) => ([x, factor, 0.0, 0.0], 2),
        }
    }

    /// Calls `each` with the integral of every known value for every value of the grid: the column, the position in the
    /// grid, the value, the probability of the value of the grid, the expectations given it, and the integral.
    fn visit(
        &self,
        t: &[f64],
        point: usize,
        inverse: f64,
        mut each: impl FnMut(usize, usize, f64, f64, &[f64], &Integrated),
    ) {
        let part = self.part();
        let mut given = vec![0.0; part - 1];
        let columns = self.row(point).iter().zip(t.chunks_exact(self.width()));
        for (column, (&x, t)) in columns.enumerate().filter(|(_, (x, _))| !x.is_nan()) {
            for (at, (own, t)) in self.grid.iter().zip(t.chunks_exact(part)).enumerate() {
                let probability = t[0];
                given
                    .iter_mut()
                    .zip(&t[1..])
                    .for_each(|(g, t)| *g = t / probability);
                let found = self.factor(column, x, *own, &given).integrated(inverse);
                each(column, at, x, probability, &given, &found);
            }
        }
    }

    fn value(&self, t: &[f64], point: usize, inverse: f64) -> Completed {
        let mut all = Completed::default();
        self.visit(t, point, inverse, |_, _, _, probability, _, found| {
            all.log_integral += probability * found.log_integral;
            all.energy += probability * found.energy;
        });
        all
    }

    /// Returns, for every column of a component, the expected parameters and the geometric mean of the degrees of freedom
    /// or of the shape. The parameters are the mean and the inverse of the expected precision, or the rate and 0.
    pub fn described(&self, lambda: &[f64]) -> Vec<[f64; 3]> {
        let family = ExponentialFamily::Alternatives {
            n: self.grid.len(),
            inner: self.inner(),
        };
        let of = |l: &[f64]| {
            let mut t = vec![0.0; l.len()];
            family.moments(l, &mut t);
            let mut out = [0.0; 3];
            let parts = l.chunks_exact(self.part()).zip(t.chunks_exact(self.part()));
            for ((l, t), own) in parts.zip(&self.grid) {
                let (first, second) = match self.values {
                    Values::Student(..) => {
                        let rate = l[3] - 0.5 * l[1] * l[1] / l[2];
                        (l[1] / l[2], rate / (l[4] + 0.5))
                    }
                    Values::NegativeBinomial(_) => (l[1] / l[2], 0.0),
                };
                for (out, x) in out.iter_mut().zip([first, second, own.ln()]) {
                    *out += t[0] * x;
                }
            }
            [out[0], out[1], out[2].exp()]
        };
        lambda.chunks_exact(self.width()).map(of).collect()
    }
}

impl Components for Scaled {
    fn name(&self) -> &'static str {
        match self.values {
            Values::Student(..) => "student",
            Values::NegativeBinomial(_) => "negative-binomial",
        }
    }

    fn points(&self) -> usize {
        self.data.len() / self.dim
    }

    /// Returns the size of a point. The size is 0 if all values of the point are missing.
    fn size(&self, point: usize) -> f64 {
        let known = self.row(point).iter().any(|x| !x.is_nan());
        f64::from(u8::from(known))
    }

    fn prior(&self) -> Vec<(ExponentialFamily, Vec<f64>)> {
        let (n, inner) = (self.grid.len(), self.inner());
        let of = |own: &[f64]| {
            let one = [&[0.0], own].concat();
            (ExponentialFamily::Alternatives { n, inner }, one.repeat(n))
        };
        match &self.values {
            Values::Student(priors, _) => priors.iter().map(|own| of(own)).collect(),
            Values::NegativeBinomial(priors) => priors.iter().map(|own| of(own)).collect(),
        }
    }

    /// Returns the number of parameters that are free for one value of the grid, and one for the value of the grid.
    fn own(&self, _width: usize) -> usize {
        self.dim * self.part()
    }

    fn log_density(&self, t: &[f64], point: usize) -> f64 {
        self.value(t, point, 1.0).log_integral
    }

    /// Adds the statistics with latent factors of 1. They do not distinguish the values of the grid.
    fn add(&self, point: usize, weight: f64, out: &mut [f64]) {
        let columns = self
            .row(point)
            .iter()
            .zip(out.chunks_exact_mut(self.width()));
        for (&x, out) in columns.filter(|(x, _)| !x.is_nan()) {
            let (own, count) = self.statistics(x, 1.0);
            for out in out.chunks_exact_mut(self.part()) {
                let pairs = out[1..].iter_mut().zip(&own[..count]);
                pairs.for_each(|(o, s)| *o += weight * s);
            }
        }
    }

    fn complete(
        &self,
        t: &[f64],
        point: usize,
        inverse: f64,
        statistics: &mut Vec<f64>,
    ) -> Option<Completed> {
        let begin = statistics.len();
        let (width, part) = (self.width(), self.part());
        statistics.resize(begin + self.dim * width, 0.0);
        let mut all = Completed::default();
        self.visit(
            t,
            point,
            inverse,
            |column, at, x, probability, given, found| {
                all.log_integral += probability * found.log_integral;
                all.energy += probability * found.energy;
                let start = begin + column * width + at * part;
                let (own, count) = self.statistics(x, found.mean);
                let linear: f64 = own[..count].iter().zip(given).map(|(s, t)| s * t).sum();
                statistics[start] = found.log_integral / inverse - linear;
                statistics[start + 1..start + 1 + count].copy_from_slice(&own[..count]);
            },
        );
        Some(all)
    }

    /// Returns a lower bound of the log predictive density, which has no closed form. For each value of the grid, the
    /// bound replaces the density by the exponential of its expected logarithm.
    fn log_predictive(&self, lambda: &[f64], point: usize) -> Option<f64> {
        let mut t = vec![0.0; lambda.len()];
        let mut start = 0;
        for (family, _) in self.prior() {
            let here = start..start + family.len();
            family.moments(&lambda[here.clone()], &mut t[here.clone()]);
            start = here.end;
        }
        let mut logs = vec![Vec::new(); self.dim];
        self.visit(&t, point, 1.0, |column, _, _, probability, _, found| {
            logs[column].push(probability.ln() + found.log_integral);
        });
        let known = logs.iter().filter(|logs| !logs.is_empty());
        Some(known.map(|logs| log_sum_exp_slice(logs)).sum())
    }

    /// Returns NaN, because inferred temperatures are not supported.
    fn log_power(&self, _t: &[f64], _size: f64, _s: f64) -> f64 {
        f64::NAN
    }

    fn log_scale(&self, point: usize) -> f64 {
        match &self.values {
            Values::Student(_, log_scales) => {
                let pairs = self.row(point).iter().zip(log_scales);
                let known = pairs.filter(|(x, _)| !x.is_nan());
                known.map(|(_, scale)| scale).sum()
            }
            Values::NegativeBinomial(_) => 0.0,
        }
    }

    fn lean(&self) -> f64 {
        match self.values {
            Values::Student(..) => 0.9,
            Values::NegativeBinomial(_) => 0.1,
        }
    }

    fn partition_is_finite(&self) -> bool {
        false
    }
}
