//! Components over binary vectors, categories, and vectors of counts.

use crate::family::ExponentialFamily;
use crate::models::components::Components;

use jensen_math::special;
use jensen_math::sum::ColumnMoments;

/// Components of independent binary variables with beta priors. Values that are missing at random have no effect.
pub struct Bernoullis {
    dim: usize,
    concentration: f64,
    data: Vec<Option<bool>>,
}

impl Bernoullis {
    /// Creates components over rows of `dim` binary values, with Beta(½, ½) priors (Jeffreys priors).
    pub fn new(dim: usize, data: Vec<bool>) -> Self {
        Self::with_prior(dim, 0.5, data.into_iter().map(Some).collect())
    }

    /// Creates components over rows of `dim` binary values, some of which may be missing, with Beta(`concentration`,
    /// `concentration`) priors.
    pub fn with_prior(dim: usize, concentration: f64, data: Vec<Option<bool>>) -> Self {
        Self {
            dim,
            concentration,
            data,
        }
    }

    fn known(&self, point: usize) -> impl Iterator<Item = (usize, bool)> + '_ {
        let row = &self.data[point * self.dim..(point + 1) * self.dim];
        row.iter().enumerate().filter_map(|(d, x)| Some((d, (*x)?)))
    }

    /// Computes the expected probabilities of a component from its natural parameters.
    pub fn probabilities(&self, lambda: &[f64]) -> Vec<f64> {
        lambda
            .chunks_exact(2)
            .map(|l| l[0] / (l[0] + l[1]))
            .collect()
    }
}

impl Components for Bernoullis {
    fn name(&self) -> &'static str {
        "bernoulli"
    }

    fn points(&self) -> usize {
        self.data.len() / self.dim
    }

    /// Returns the size of a point. The size is 0 if all values of the point are missing.
    fn size(&self, point: usize) -> f64 {
        f64::from(u8::from(self.known(point).next().is_some()))
    }

    fn prior(&self) -> Vec<(ExponentialFamily, Vec<f64>)> {
        let parameters = vec![self.concentration; 2];
        vec![(ExponentialFamily::Dirichlet { n: 2 }, parameters); self.dim]
    }

    fn log_density(&self, t: &[f64], point: usize) -> f64 {
        let terms = self.known(point);
        terms.map(|(d, x)| t[2 * d + usize::from(!x)]).sum()
    }

    fn add(&self, point: usize, weight: f64, out: &mut [f64]) {
        for (d, x) in self.known(point) {
            out[2 * d + usize::from(!x)] += weight;
        }
    }

    fn log_power(&self, t: &[f64], _size: f64, s: f64) -> f64 {
        t.chunks_exact(2)
            .map(|t| jensen_math::special::log_sum_exp(s * t[0], s * t[1]))
            .sum()
    }
}

/// Components over vectors of counts with symmetric Dirichlet priors. The counts are treated as ordered draws, so
/// densities do not contain the multinomial coefficient.
pub struct Multinomials {
    dim: usize,
    concentration: f64,
    data: Vec<f64>,
}

impl Multinomials {
    /// Creates components over rows of `dim` counts, with Dirichlet(`concentration`, …) priors.
    pub fn new(dim: usize, concentration: f64, data: Vec<f64>) -> Self {
        Self {
            dim,
            concentration,
            data,
        }
    }

    fn row(&self, point: usize) -> &[f64] {
        &self.data[point * self.dim..(point + 1) * self.dim]
    }

    /// Computes the expected proportions of a component from its natural parameters.
    pub fn proportions(&self, lambda: &[f64]) -> Vec<f64> {
        let total: f64 = lambda.iter().sum();
        lambda.iter().map(|x| x / total).collect()
    }
}

impl Components for Multinomials {
    fn name(&self) -> &'static str {
        "multinomial"
    }

    fn points(&self) -> usize {
        self.data.len() / self.dim
    }

    fn size(&self, point: usize) -> f64 {
        self.row(point).iter().sum()
    }

    fn prior(&self) -> Vec<(ExponentialFamily, Vec<f64>)> {
        vec![(
            ExponentialFamily::Dirichlet { n: self.dim },
            vec![self.concentration; self.dim],
        )]
    }

    fn log_density(&self, t: &[f64], point: usize) -> f64 {
        let terms = self.row(point).iter().zip(t);
        terms.filter(|(n, _)| **n > 0.0).map(|(n, t)| n * t).sum()
    }

    fn add(&self, point: usize, weight: f64, out: &mut [f64]) {
        for (o, n) in out.iter_mut().zip(self.row(point)) {
            *o += weight * n;
        }
    }

    fn log_power(&self, t: &[f64], size: f64, s: f64) -> f64 {
        let logs: Vec<f64> = t.iter().map(|t| s * t).collect();
        size * jensen_math::special::log_sum_exp_slice(&logs)
    }
}

/// Components of independent Poisson counts with gamma priors on their rates. Values that are missing at random have no
/// effect.
pub struct Poissons {
    dim: usize,
    means: Vec<f64>,
    data: Vec<f64>,
}

/// Shape of the prior of a rate, whose mean is the mean of the column. One half is the shape of the Jeffreys prior.
/// With this shape, the prior has a standard deviation of 1.4 times its mean and as much weight as half a row.
const RATE_SHAPE: f64 = 0.5;

impl Poissons {
    /// Creates components over rows of `dim` counts, where NaN marks a missing count. The prior is estimated from these
    /// rows.
    pub fn new(dim: usize, data: Vec<f64>) -> Self {
        let columns = ColumnMoments::of(dim, &data);
        Self::with_columns(&columns, data)
    }

    /// Creates components over rows of counts. The prior is computed from the given moments of the columns.
    pub fn with_columns(columns: &[ColumnMoments], data: Vec<f64>) -> Self {
        Self {
            dim: columns.len(),
            // A column that contains only zeros also needs a proper prior.
            means: columns
                .iter()
                .map(|column| if column.mean > 0.0 { column.mean } else { 1.0 })
                .collect(),
            data,
        }
    }

    fn known(&self, point: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let row = &self.data[point * self.dim..(point + 1) * self.dim];
        row.iter().copied().enumerate().filter(|(_, x)| !x.is_nan())
    }

    /// Computes the expected rates of a component from its natural parameters.
    pub fn rates(&self, lambda: &[f64]) -> Vec<f64> {
        lambda.chunks_exact(2).map(|l| l[0] / l[1]).collect()
    }
}

impl Components for Poissons {
    fn name(&self) -> &'static str {
        "poisson"
    }

    fn points(&self) -> usize {
        self.data.len() / self.dim
    }

    /// Returns the size of a point. The size is 0 if all values of the point are missing.
    fn size(&self, point: usize) -> f64 {
        f64::from(u8::from(self.known(point).next().is_some()))
    }

    fn prior(&self) -> Vec<(ExponentialFamily, Vec<f64>)> {
        let parameters = self.means.iter();
        let parameters = parameters.flat_map(|mean| [RATE_SHAPE, RATE_SHAPE / mean]);
        vec![(
            ExponentialFamily::Gamma { n: self.dim },
            parameters.collect(),
        )]
    }

    fn log_density(&self, t: &[f64], point: usize) -> f64 {
        let terms = self.known(point);
        terms
            .map(|(d, x)| x * t[2 * d] + t[2 * d + 1] - special::lgamma(x + 1.0))
            .sum()
    }

    fn add(&self, point: usize, weight: f64, out: &mut [f64]) {
        for (d, x) in self.known(point) {
            out[2 * d] += weight * x;
            out[2 * d + 1] += weight;
        }
    }

    /// Sums outwards from the mode until a term is negligible. If the distribution is wide and far from zero, the sum
    /// is replaced by the trapezoidal rule with steps of a sixteenth of a standard deviation. Both agree to all digits,
    /// because the rule and the sum differ from the integral by at most about exp(−2π²·16²) (Poisson's summation
    /// formula).
    fn log_power(&self, t: &[f64], _size: f64, s: f64) -> f64 {
        if s == 0.0 {
            return f64::INFINITY;
        }
        let of_rate = |t: &[f64]| {
            let term = |x: f64| s * (x * t[0] + t[1] - special::lgamma(x + 1.0));
            let rate = t[0].exp();
            let mode = rate.floor();
            let top = term(mode);
            // In this case zero is more than ten standard deviations √(λ/s) below the mode.
            let wide = if s * rate > 100.0 {
                ((rate / s).sqrt() / 16.0).floor().max(1.0)
            } else {
                1.0
            };
            let mut sum = 1.0;
            for step in [wide, -wide] {
                let mut x = mode + step;
                while x >= 0.0 {
                    let more = (term(x) - top).exp();
                    sum += more;
                    if more < 1e-17 * sum {
                        break;
                    }
                    x += step;
                }
            }
            top + f64::ln(wide * sum)
        };
        t.chunks_exact(2).map(of_rate).sum()
    }
}

/// Components of independent categorical columns. Each column has its own number of categories and a symmetric
/// Dirichlet prior. Values that are missing at random have no effect.
pub struct Categoricals {
    /// The offset of each column's categories among all categories, followed by the total number of categories.
    starts: Vec<usize>,
    concentration: f64,
    data: Vec<Option<usize>>,
}

impl Categoricals {
    /// Creates components over rows of categories in `0..levels[column]`, with Dirichlet(`concentration`, …) priors.
    pub fn new(levels: &[usize], concentration: f64, data: Vec<Option<usize>>) -> Self {
        let mut starts = vec![0];
        for levels in levels {
            starts.push(starts[starts.len() - 1] + levels);
        }
        Self {
            starts,
            concentration,
            data,
        }
    }

    fn known(&self, point: usize) -> impl Iterator<Item = usize> + '_ {
        let dim = self.starts.len() - 1;
        let row = &self.data[point * dim..(point + 1) * dim];
        let positions = row.iter().zip(&self.starts);
        positions.filter_map(|(category, start)| Some(start + (*category)?))
    }

    /// Computes the expected probabilities of a component from its natural parameters, column by column.
    pub fn probabilities(&self, lambda: &[f64]) -> Vec<Vec<f64>> {
        let columns = self.starts.windows(2).map(|pair| &lambda[pair[0]..pair[1]]);
        columns
            .map(|column| {
                let total: f64 = column.iter().sum();
                column.iter().map(|x| x / total).collect()
            })
            .collect()
    }
}

impl Components for Categoricals {
    fn name(&self) -> &'static str {
        "categorical"
    }

    fn points(&self) -> usize {
        self.data.len() / (self.starts.len() - 1)
    }

    /// Returns the size of a point. The size is 0 if all values of the point are missing.
    fn size(&self, point: usize) -> f64 {
        f64::from(u8::from(self.known(point).next().is_some()))
    }

    fn prior(&self) -> Vec<(ExponentialFamily, Vec<f64>)> {
        let levels = self.starts.windows(2).map(|pair| pair[1] - pair[0]);
        levels
            .map(|n| {
                (
                    ExponentialFamily::Dirichlet { n },
                    vec![self.concentration; n],
                )
            })
            .collect()
    }

    fn log_density(&self, t: &[f64], point: usize) -> f64 {
        self.known(point).map(|at| t[at]).sum()
    }

    fn add(&self, point: usize, weight: f64, out: &mut [f64]) {
        self.known(point).for_each(|at| out[at] += weight);
    }

    fn log_power(&self, t: &[f64], _size: f64, s: f64) -> f64 {
        let columns = self.starts.windows(2).map(|pair| &t[pair[0]..pair[1]]);
        columns
            .map(|t| {
                let logs: Vec<f64> = t.iter().map(|t| s * t).collect();
                special::log_sum_exp_slice(&logs)
            })
            .sum()
    }
}
