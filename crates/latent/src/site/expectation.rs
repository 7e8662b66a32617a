//! Expectations without a closed form. They are used by the natural-gradient fixed point `α = ∂f/∂m`, `λ = 2 ∂f/∂v`.
//!
//! For an exact expectation `f(m, v) = E g(η)` with η ~ N(m, v) and g = −log p, the derivatives are `∂f/∂m = E g′` and
//! `∂f/∂v = ½ E g″` (Bonnet's and Price's theorems).
//!
//! For functions that are analytic near the real line, the best rule is the trapezoidal rule `Σ h φ(z_k) g(m + s z_k)`.
//! If g is analytic within a distance w of the real line, shifting the line of integration by a ≤ w/s shows that the
//! error is about `exp(a²/2 − 2πa/h)` (Trefethen and Weideman 2014). The step h is chosen for the spread s so that the
//! logarithm of this error is [`SMALL`]. This requires 16 nodes up to s = 0.12 w, and about 75 s/w nodes beyond. For
//! log(1 + e^η), w = π. Gauss–Hermite quadrature of this function with 32 nodes has an error of 5e-6 nats at a spread
//! of 3, 1.4e-3 at 6 and 1.3e-2 at 10.

use std::fmt::Debug;
use std::sync::OnceLock;

use jensen_math::constants::HALF_LOG_TWO_PI;
use jensen_math::quadrature::{Rule, gauss_hermite};
use jensen_math::simd::{F64x8, LANES, Simd};
use jensen_math::simd_fn;
use rayon::prelude::*;

use super::convex::Value;
use crate::Error;
use crate::linear::kernels::sum;

/// The function rate · e^(slope η). Its expectation has a closed form. Quadrature would leave out a tail of the normal
/// density in which the function is large.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exponential {
    pub rate: f64,
    pub slope: f64,
}

impl Exponential {
    #[inline(always)]
    fn add_to(&self, value: &mut Value, m: f64, v: f64) {
        if self.rate != 0.0 {
            let mean = self.rate * (self.slope * m + 0.5 * self.slope * self.slope * v).exp();
            value.f += mean;
            value.by_mean += self.slope * mean;
            value.by_variance += 0.5 * self.slope * self.slope * mean;
        }
    }
}

/// A function of η: the sum of a function that grows at most linearly, and of exponentials.
pub(crate) trait Potential: Clone + Debug + Send + Sync {
    /// Returns the first function and its first two derivatives.
    fn at<V: F64x8>(&self, eta: V) -> (V, V, V);

    fn exponentials(&self) -> [Exponential; 2] {
        [Exponential::default(); 2]
    }

    /// Returns the distance from the real line within which the function is analytic.
    fn width(&self) -> f64;
}

pub(crate) trait Potentials: Debug + Send + Sync {
    /// Computes the expectation of each potential and its derivatives with respect to m and v. All slices have the same
    /// length.
    fn values(&self, rule: &Quadrature, m: &[f64], v: &[f64]) -> Vec<Value>;

    fn value(&self, rule: &Quadrature, n: usize, m: f64, v: f64) -> Value;

    fn width(&self, n: usize) -> f64;

    /// Returns the largest possible difference, in nats, between the sum of the potentials and its prediction from the
    /// derivatives.
    fn discord(&self) -> f64 {
        0.0
    }
}

/// The step is chosen so that the logarithm of the error has this value.
const SMALL: f64 = -25.0;

/// The largest step. At this step, the logarithm of the error of integrating the normal density itself is [`SMALL`].
const STEP: f64 = 0.88;

/// The nodes cover this many standard deviations on either side of the mean. A mass of 2e-12 lies beyond.
const REACH: f64 = 7.04;

/// Number of levels. The step shrinks by a factor of √2 from level to level, and the last level has 8192 nodes. Spreads
/// of up to 270 w/π need only the first half of the levels.
const LEVELS: usize = 19;

/// The step is halved after this number of levels.
const HALVED: usize = 2;

/// Nodes and weights of a rule. Nodes with weight 0 are appended to fill whole vectors.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    pub nodes: Vec<f64>,
    pub weights: Vec<f64>,
}

impl Nodes {
    fn new(rule: &Rule) -> Self {
        let len = rule.nodes.len().next_multiple_of(LANES);
        let padded = |x: &[f64]| {
            let mut out = x.to_vec();
            out.resize(len, 0.0);
            out
        };
        Self {
            nodes: padded(&rule.nodes),
            weights: padded(&rule.weights),
        }
    }

    fn trapezoid(level: usize) -> Self {
        let step = STEP * 2f64.powf(-0.5 * level as f64);
        let half = ((REACH / step).ceil() as usize).next_multiple_of(LANES / 2);
        let nodes: Vec<f64> = (0..2 * half)
            .map(|k| (k as f64 - half as f64 + 0.5) * step)
            .collect();
        let weight = |z: &f64| step * (-0.5 * z * z - HALF_LOG_TWO_PI).exp();
        Self {
            weights: nodes.iter().map(weight).collect(),
            nodes,
        }
    }

    /// Computes `E (g, g′, g″)` for η ~ N(m, sd²), where `g` returns all three functions at eight values of η.
    #[inline(always)]
    fn mean<V: F64x8>(&self, m: f64, sd: f64, g: impl Fn(V) -> (V, V, V)) -> (f64, f64, f64) {
        let (m, sd) = (V::splat(m), V::splat(sd));
        let mut sums = (V::zero(), V::zero(), V::zero());
        for (z, w) in (self.nodes.chunks_exact(LANES)).zip(self.weights.chunks_exact(LANES)) {
            // SAFETY: `chunks_exact` gives slices of eight numbers, all of which may be read.
            let (z, w) = unsafe { (V::load(z.as_ptr()), V::load(w.as_ptr())) };
            let (g, g1, g2) = g(sd.fma(z, m));
            sums = (w.fma(g, sums.0), w.fma(g1, sums.1), w.fma(g2, sums.2));
        }
        (sums.0.sum(), sums.1.sum(), sums.2.sum())
    }
}

/// The quadrature of expectations. It is the trapezoidal rule with a step that depends on the spread, or Gauss–Hermite
/// quadrature with a given number of nodes.
#[derive(Clone, Debug)]
pub(crate) struct Quadrature {
    given: Option<Nodes>,
    levels: Vec<OnceLock<Nodes>>,
    /// Whether to use twice as many nodes as the spread requires, to estimate the error of the ordinary rule.
    pub(crate) finer: bool,
}

impl Quadrature {
    /// Creates the quadrature with this number of Gauss–Hermite nodes. If `nodes` is `None`, the quadrature is the
    /// trapezoidal rule, with a number of nodes that depends on the spread.
    pub(crate) fn new(nodes: Option<usize>) -> Result<Self, Error> {
        let given = |nodes: usize| -> Result<Nodes, Error> {
            let rule = gauss_hermite(nodes).ok_or_else(|| {
                Error::Unsupported(format!(
                    "{nodes} Gauss-Hermite nodes are not possible; choose 1 to 128"
                ))
            })?;
            Ok(Nodes::new(&rule))
        };
        Ok(Self {
            given: nodes.map(given).transpose()?,
            ..Self::by_spread(false)
        })
    }

    fn by_spread(finer: bool) -> Self {
        Self {
            given: None,
            levels: vec![OnceLock::new(); LEVELS],
            finer,
        }
    }

    /// Returns the rule for a normal distribution with standard deviation `sd` and a function that is analytic within
    /// `width`.
    pub(crate) fn nodes(&self, width: f64, sd: f64) -> &Nodes {
        if let Some(nodes) = &self.given {
            return nodes;
        }
        let level = level(width, sd) + if self.finer { HALVED } else { 0 };
        self.levels[level].get_or_init(|| Nodes::trapezoid(level))
    }

    /// Computes E h(η) for η ~ N(m, v), where h is analytic within `width`.
    pub(crate) fn expectation(&self, width: f64, m: f64, v: f64, h: impl Fn(f64) -> f64) -> f64 {
        let sd = v.max(0.0).sqrt();
        let rule = self.nodes(width, sd);
        (rule.nodes.iter().zip(&rule.weights))
            .map(|(z, w)| w * h(m + sd * z))
            .sum()
    }
}

/// Computes the uncertainty, in nats, of the sum of the expectations at these marginals. To estimate it, the function
/// doubles the number of nodes and returns the change of the sum.
pub(crate) fn error(sites: &dyn Potentials, rule: &Quadrature, m: &[f64], v: &[f64]) -> f64 {
    let own = sites.values(rule, m, v);
    let finer = sites.values(&Quadrature::by_spread(true), m, v);
    sum(own.len(), |n| (own[n].f - finer[n].f).abs())
}

fn level(width: f64, sd: f64) -> usize {
    // The shifted line keeps a distance from the singularity, near which derivatives grow.
    let a = (0.9 * width / sd).min(2.0 * std::f64::consts::PI / STEP);
    let step = 2.0 * std::f64::consts::PI * a / (0.5 * a * a - SMALL);
    let level = (2.0 * (STEP / step).log2()).ceil();
    // If the spread is NaN, the first level is used, whose sums are also NaN.
    (level.max(0.0) as usize).min(LEVELS - 1 - HALVED)
}

simd_fn! {
    fn expectations, expectations_fn = <V, P: Potential>(
        rule: &Quadrature, sites: &[P], m: &[f64], v: &[f64], out: &mut [Value]
    ) {
        for i in 0..sites.len() {
            let sd = v[i].max(0.0).sqrt();
            let nodes = rule.nodes(sites[i].width(), sd);
            let (f, by_mean, curvature) =
                nodes.mean::<V>(m[i], sd, #[inline(always)] |eta| sites[i].at(eta));
            out[i] = Value { f, by_mean, by_variance: 0.5 * curvature };
            for exponential in sites[i].exponentials() {
                exponential.add_to(&mut out[i], m[i], v[i]);
            }
        }
    }
}

/// Number of sites per task. It is smaller than in other loops, because a site takes many times as long as an element
/// of those loops.
const FEW: usize = 256;

impl<P: Potential> Potentials for Vec<P> {
    fn values(&self, rule: &Quadrature, m: &[f64], v: &[f64]) -> Vec<Value> {
        let simd = Simd::detect();
        let mut out = vec![Value::default(); self.len()];
        out.par_chunks_mut(FEW).enumerate().for_each(|(c, out)| {
            let range = c * FEW..c * FEW + out.len();
            let (m, v) = (&m[range.clone()], &v[range.clone()]);
            expectations(simd, rule, &self[range], m, v, out);
        });
        out
    }

    fn value(&self, rule: &Quadrature, n: usize, m: f64, v: f64) -> Value {
        let mut out = [Value::default()];
        expectations(Simd::detect(), rule, &self[n..=n], &[m], &[v], &mut out);
        out[0]
    }

    fn width(&self, n: usize) -> f64 {
        self[n].width()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::likelihood::Form;
    use crate::{Likelihood, Observations};

    fn potentials(likelihood: Likelihood, y: f64) -> std::sync::Arc<dyn Potentials> {
        match likelihood.form(&Observations::new(vec![y])) {
            Form::Logistic(forms) => std::sync::Arc::new(forms),
            Form::Smooth(potentials) => potentials,
            Form::Convex(_) | Form::Categorical(_) => panic!("{likelihood} needs no quadrature"),
        }
    }

    /// Computes E h by Simpson's rule over twelve standard deviations on either side.
    fn simpson(m: f64, sd: f64, h: impl Fn(f64) -> f64) -> f64 {
        let steps = 40_000;
        let width = 24.0 / f64::from(steps);
        let at = |i: i32| {
            let z = -12.0 + width * f64::from(i);
            let weight = match i {
                0 => 1.0,
                i if i == steps => 1.0,
                i if i % 2 == 1 => 4.0,
                _ => 2.0,
            };
            weight * (-0.5 * z * z - HALF_LOG_TWO_PI).exp() * h(m + sd * z)
        };
        (0..=steps).map(at).sum::<f64>() * width / 3.0
    }

    fn cases() -> Vec<(Likelihood, f64)> {
        vec![
            (Likelihood::bernoulli(), 1.0),
            (Likelihood::negative_binomial(3.5), 2.0),
            (Likelihood::probit(), 0.0),
            (Likelihood::student_t(4.0, 0.5), 1.2),
            (Likelihood::student_t(3.0, 0.1), -0.4),
            (Likelihood::beta(3.5), 0.3),
            (Likelihood::zero_inflated_poisson(0.7), 0.0),
            (Likelihood::ordinal(&[0.4, 1.3]), 1.0),
            (Likelihood::ordinal(&[0.4, 1.3]), 3.0),
            (Likelihood::zero_inflated_negative_binomial(0.7, 4.0), 0.0),
            (Likelihood::zero_inflated_negative_binomial(2.5, 4.0), 0.0),
            (Likelihood::hurdle_negative_binomial(0.7, 3.0), 2.0),
        ]
    }

    /// Likelihoods with exponentials, which exceed the range of Simpson's rule at large spreads.
    fn growing() -> Vec<(Likelihood, f64)> {
        vec![
            (Likelihood::zero_inflated_poisson(0.7), 3.0),
            (Likelihood::hurdle_poisson(0.7), 2.0),
            (Likelihood::tweedie(0.8, 0.6), 0.0),
            (Likelihood::tweedie(0.8, 0.6), 1.7),
        ]
    }

    #[test]
    fn nodes_are_as_many_as_the_spread_needs() {
        let rule = Quadrature::new(None).unwrap();
        let spreads = [
            (0.3, 0.0),
            (0.0, 0.2),
            (1.5, 1.0),
            (-2.0, 3.0),
            (4.0, 10.0),
            (0.0, 25.0),
        ];
        let all = (cases().into_iter().map(|case| (case, 6)))
            .chain(growing().into_iter().map(|case| (case, 4)));
        for ((likelihood, y), count) in all {
            let sites = potentials(likelihood, y);
            for &(m, sd) in &spreads[..count] {
                let f = sites.value(&rule, 0, m, sd * sd).f;
                let exact = simpson(m, sd, |eta| -likelihood.log_density(eta, y, 1.0));
                // Simpson's rule itself has an error of 1e-8 when a small scale meets a large spread.
                let slack = 2e-8 * (1.0 + exact.abs());
                assert!(
                    (f - exact).abs() < slack,
                    "{likelihood} at ({m}, {sd}): {f} and {exact}"
                );
                let claimed = error(sites.as_ref(), &rule, &[m], &[sd * sd]);
                assert!(
                    claimed < 1e-9 * (1.0 + exact.abs()),
                    "{likelihood} at ({m}, {sd}): {claimed}"
                );
            }
        }
    }

    #[test]
    fn the_error_of_too_few_nodes_is_reported() {
        let given = Quadrature::new(Some(32)).unwrap();
        for sd in [6.0_f64, 10.0, 20.0] {
            let sites = potentials(Likelihood::bernoulli(), 1.0);
            let f = sites.value(&given, 0, 0.7, sd * sd).f;
            let exact = simpson(0.7, sd, |eta| {
                -Likelihood::bernoulli().log_density(eta, 1.0, 1.0)
            });
            let off = (f - exact).abs();
            let claimed = error(sites.as_ref(), &given, &[0.7], &[sd * sd]);
            assert!(
                (claimed - off).abs() < 1e-6 + 0.01 * off,
                "{sd}: {claimed} and {off}"
            );
        }
        assert!(Quadrature::new(Some(129)).is_err());
    }

    #[test]
    fn derivatives_agree_with_differences() {
        let rule = Quadrature::new(None).unwrap();
        let h = 1e-4;
        for (likelihood, y) in cases().into_iter().chain(growing()) {
            let sites = potentials(likelihood, y);
            for (m, v) in [(0.2, 0.5), (1.5, 9.0)] {
                let f = |m: f64, v: f64| sites.value(&rule, 0, m, v).f;
                let at = sites.value(&rule, 0, m, v);
                let by_mean = (f(m + h, v) - f(m - h, v)) / (2.0 * h);
                let by_variance = (f(m, v + h) - f(m, v - h)) / (2.0 * h);
                let slack = 1e-5 * (1.0 + at.f.abs() / 100.0);
                assert!((at.by_mean - by_mean).abs() < slack, "{likelihood}");
                assert!(
                    (at.by_variance - by_variance).abs() < slack,
                    "{likelihood}: {} {by_variance}",
                    at.by_variance
                );
            }
        }
    }
}
