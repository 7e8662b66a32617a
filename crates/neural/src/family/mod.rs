//! The family of q(z | x): the location–scale families of section 2.4 of the paper.
//!
//! The encoder outputs the mean and the log variance of each latent value, and a draw is z = mean + sd · ε. The noise ε
//! has the mean 0, the variance 1 and a density f that determines the family. Two properties hold for all families:
//!
//! - The codes of a record are the means and the standard deviations of q(z | x).
//! - The divergence from a standard normal prior has a closed form. Since E z² = mean² + sd², it is the divergence of the
//!   normal distribution with the same moments, plus the negentropy of f for each latent value.
//!
//! | file | density f of the noise |
//! | --- | --- |
//! | this file | normal |
//! | `laplace` | Laplace |
//! | `logistic` | logistic |
//! | `student` | Student's t |

mod laplace;
mod logistic;
mod student;

use jensen_graph::{Graph, NodeId};
use jensen_math::constants::LOG_TWO_PI;
use jensen_math::rng::{Purpose, fill_uniforms};
use jensen_math::simd::Simd;
use serde::{Deserialize, Serialize};

use crate::bound::{normal_divergence, normal_divergences};
use crate::evaluate::normals;
use crate::model::standard_normal;

/// The family of q(z | x), whose latent values are independent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PosteriorFamily {
    /// Normal distributions (Eq. 9).
    #[default]
    Gaussian,
    /// Laplace distributions.
    Laplace,
    /// Logistic distributions.
    Logistic,
    /// Student's t distributions.
    StudentT {
        /// The degrees of freedom, from [`LEAST_DEGREES`](PosteriorFamily::LEAST_DEGREES) to
        /// [`MOST_DEGREES`](PosteriorFamily::MOST_DEGREES).
        degrees: u32,
    },
}

impl PosteriorFamily {
    /// The smallest number of degrees of freedom of Student's t distribution with a finite E ε⁴. With fewer, estimates of
    /// the bound of a Gaussian decoder, which are quadratic in ε, have an infinite variance. With 3 degrees of freedom, the
    /// training bounds of a linear factor of 400 rows were 0.14 to 1.02 nats below those of a normal posterior in four runs,
    /// although the optimum is 0.195 nats below it.
    pub const LEAST_DEGREES: u32 = 5;

    /// The largest number of degrees of freedom. Distributions with more are normal for all practical purposes.
    pub const MOST_DEGREES: u32 = 1000;

    /// Returns the name of the family, such as `gaussian` or `student-t`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gaussian => "gaussian",
            Self::Laplace => "laplace",
            Self::Logistic => "logistic",
            Self::StudentT { .. } => "student-t",
        }
    }

    /// Returns the family with a name, in which Student's t distribution has its degrees of freedom: `student-t=5`.
    pub fn by_name(text: &str) -> Option<Self> {
        let plain = [Self::Gaussian, Self::Laplace, Self::Logistic];
        if let Some(family) = plain.into_iter().find(|family| family.name() == text) {
            return Some(family);
        }
        let degrees = text.strip_prefix("student-t=")?.parse().ok()?;
        let family = Self::StudentT { degrees };
        family.is_valid().then_some(family)
    }

    /// Whether the degrees of freedom are in the allowed range.
    pub fn is_valid(self) -> bool {
        match self {
            Self::StudentT { degrees } => {
                (Self::LEAST_DEGREES..=Self::MOST_DEGREES).contains(&degrees)
            }
            _ => true,
        }
    }

    /// Returns the negentropy of the noise, `KL(f ‖ N(0, 1))`, in nats. It is the least divergence of a latent value from
    /// a standard normal prior.
    pub fn negentropy(self) -> f64 {
        match self {
            Self::Gaussian => 0.0,
            Self::Laplace => NORMAL_ENTROPY - laplace::entropy(),
            Self::Logistic => NORMAL_ENTROPY - logistic::entropy(),
            Self::StudentT { degrees } => NORMAL_ENTROPY - student::entropy(f64::from(degrees)),
        }
    }

    /// Returns log f(ε) in nats.
    pub fn log_density(self, noise: f64) -> f64 {
        match self {
            Self::Gaussian => -0.5 * (noise * noise + LOG_TWO_PI),
            Self::Laplace => laplace::log_density(noise),
            Self::Logistic => logistic::log_density(noise),
            Self::StudentT { degrees } => student::log_density(f64::from(degrees), noise),
        }
    }

    /// Builds Σ log f(ε) over the latent values, in nats.
    pub(crate) fn log_densities(self, g: &mut Graph, noise: NodeId) -> NodeId {
        let (terms, constant) = match self {
            Self::Gaussian => return standard_normal(g, noise),
            Self::Laplace => laplace::terms(g, noise),
            Self::Logistic => logistic::terms(g, noise),
            Self::StudentT { degrees } => student::terms(g, f64::from(degrees), noise),
        };
        let sum = g.sum(terms);
        let width = f64::from(g.shape(noise).len);
        let constant = g.constant(width * constant);
        g.add(sum, constant)
    }

    /// Builds `KL(q(z | x) ‖ N(0, I))` in nats.
    pub(crate) fn divergence(self, g: &mut Graph, mean: NodeId, log_variance: NodeId) -> NodeId {
        let normal = normal_divergence(g, mean, log_variance);
        let width = f64::from(g.shape(mean).len);
        self.raised(g, normal, width)
    }

    /// Builds the divergence of each latent value. The sum is that of [`divergence`](Self::divergence).
    pub(crate) fn divergences(self, g: &mut Graph, mean: NodeId, log_variance: NodeId) -> NodeId {
        let normal = normal_divergences(g, mean, log_variance);
        self.raised(g, normal, 1.0)
    }

    fn raised(self, g: &mut Graph, normal: NodeId, values: f64) -> NodeId {
        if self == Self::Gaussian {
            return normal;
        }
        let rest = g.constant(values * self.negentropy());
        g.add(normal, rest)
    }

    /// Draws `per_lane` numbers ε for each of `lanes` lanes. The numbers depend only on the seed, the purpose, the
    /// iteration and the lane.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn draw(
        self,
        simd: Simd,
        seed: u64,
        purpose: Purpose,
        iteration: u64,
        first_lane: u64,
        per_lane: usize,
        lanes: usize,
        scratch: &mut Vec<f64>,
        out: &mut Vec<f32>,
    ) {
        if self == Self::Gaussian {
            let at = (iteration, first_lane);
            return normals(
                simd, seed, purpose, at.0, at.1, per_lane, lanes, scratch, out,
            );
        }
        let n = per_lane * lanes;
        let first = first_lane * per_lane as u64;
        let uniforms = |purpose: Purpose, out: &mut [f64]| {
            fill_uniforms(simd, seed, purpose, iteration, first, 1, n, out);
        };
        scratch.clear();
        scratch.resize(n, 0.0);
        uniforms(purpose, scratch);
        match self {
            Self::Gaussian => {}
            Self::Laplace => scratch.iter_mut().for_each(|u| *u = laplace::quantile(*u)),
            Self::Logistic => scratch.iter_mut().for_each(|u| *u = logistic::quantile(*u)),
            Self::StudentT { degrees } => {
                let mut angles = vec![0.0; n];
                uniforms(purpose.fold("angle"), &mut angles);
                let pairs = scratch.iter_mut().zip(&angles);
                pairs.for_each(|(u, v)| *u = student::draw(f64::from(degrees), *u, *v));
            }
        }
        out.clear();
        out.extend(scratch.iter().map(|&x| x as f32));
    }
}

/// The entropy of the standard normal distribution, ½ log(2πe), which is the largest of all distributions with the
/// variance 1.
const NORMAL_ENTROPY: f64 = 0.5 * (1.0 + LOG_TWO_PI);

#[cfg(test)]
mod tests {
    use jensen_graph::evaluate;

    use super::*;

    const ALL: [PosteriorFamily; 5] = [
        PosteriorFamily::Gaussian,
        PosteriorFamily::Laplace,
        PosteriorFamily::Logistic,
        PosteriorFamily::StudentT { degrees: 5 },
        PosteriorFamily::StudentT { degrees: 9 },
    ];

    /// Integrates f(ε) g(ε) by trapezoids in t, with ε = sinh t. The tails of Student's t distribution with 5 degrees of
    /// freedom, times ε², fall as exp(−3t), so the integral ends at t = ±34.
    fn expected(family: PosteriorFamily, g: impl Fn(f64) -> f64) -> f64 {
        const STEP: f64 = 1e-3;
        let nodes = (-34_000..=34_000).map(|k| f64::from(k) * STEP);
        let term = |t: f64| {
            let e: f64 = t.sinh();
            let density = family.log_density(e).exp();
            match density > 0.0 {
                true => density * g(e) * t.cosh(),
                false => 0.0,
            }
        };
        STEP * nodes.map(term).sum::<f64>()
    }

    #[test]
    fn noise_has_mean_0_variance_1_and_the_stated_negentropy() {
        for family in ALL {
            assert!((expected(family, |_| 1.0) - 1.0).abs() < 1e-6, "{family:?}");
            assert!(expected(family, |e| e).abs() < 1e-6, "{family:?}");
            let variance = expected(family, |e| e * e);
            assert!((variance - 1.0).abs() < 1e-5, "{family:?}: {variance}");
            let negentropy = expected(family, |e| {
                family.log_density(e) - PosteriorFamily::Gaussian.log_density(e)
            });
            let stated = family.negentropy();
            assert!(
                (negentropy - stated).abs() < 1e-5 && stated >= 0.0,
                "{family:?}: {stated}, integrated {negentropy}"
            );
        }
    }

    #[test]
    fn draws_have_the_density() {
        const N: usize = 200_000;
        for family in ALL {
            let (mut scratch, mut out) = (Vec::new(), Vec::new());
            let purpose = Purpose::new("draws of a family");
            let simd = Simd::detect();
            family.draw(simd, 5, purpose, 2, 0, 2, N / 2, &mut scratch, &mut out);
            // The share of draws below a point is compared with the integral of the density.
            for point in [-2.5, -0.7, 0.0, 0.4, 1.9] {
                let below = out.iter().filter(|&&e| f64::from(e) < point).count() as f64 / N as f64;
                let exact = expected(family, |e| f64::from(u8::from(e < point)));
                let error = (exact * (1.0 - exact) / N as f64).sqrt();
                // The integral of a step has an error of about half a step of t.
                assert!(
                    (below - exact).abs() < 4.0 * error + 5e-4,
                    "{family:?}: {below} below {point}, for {exact} ± {error}"
                );
            }
            let mut part = Vec::new();
            family.draw(simd, 5, purpose, 2, 30, 2, 4, &mut scratch, &mut part);
            assert_eq!(
                part,
                out[60..68],
                "{family:?}: draws depend on their lanes only"
            );
        }
    }

    #[test]
    fn graphs_have_the_density() {
        let noise = [-2.3, -0.4, 0.1, 3.6];
        for family in ALL {
            let mut g = Graph::new();
            let e = g.input(noise.len());
            let sum = family.log_densities(&mut g, e);
            g.set_outputs(vec![sum]);
            let found = evaluate(&g, &[&noise], None)[0][0];
            let exact: f64 = noise.iter().map(|&e| family.log_density(e)).sum();
            assert!((found - exact).abs() < 1e-12, "{family:?}: {found} {exact}");
        }
    }

    #[test]
    fn names_are_read() {
        let read = PosteriorFamily::by_name;
        assert_eq!(read("laplace"), Some(PosteriorFamily::Laplace));
        let five = PosteriorFamily::StudentT { degrees: 5 };
        assert_eq!(read("student-t=5"), Some(five));
        for wrong in ["student-t", "student-t=4", "student-t=1001", "normal", ""] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
