//! Bounds without a convex conjugate, reached through the natural-gradient fixed point `α = ∂f/∂m`, `λ = 2 ∂f/∂v`.
//!
//! For an exact expectation `f(m, v) = E g(η)`, η ~ N(m, v), with g = −log p: `∂f/∂m = E g′` and `∂f/∂v = ½ E g″` (Bonnet,
//! Price), by Gauss-Hermite quadrature.

use jensen_math::constants::HALF_LOG_TWO_PI;
use jensen_math::quadrature::Rule;
use jensen_math::simd::{F64x8, LANES, Simd};
use jensen_math::simd_fn;
use jensen_math::vmath::{exp, log_phi, log1p};
use rayon::prelude::*;

use super::convex::Value;
use super::piecewise::Pieces;
use super::scalar::{jaakkola_curvature, log1p_exp};
use crate::linear::kernels::map;

/// −log p of one observation as a function of η.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Potential {
    /// `−y (η−t) + n log(1 + e^(η−t)) + c`.
    Logistic { y: f64, n: f64, shift: f64, c: f64 },
    /// `−log Φ(±η)`.
    Probit { sign: f64 },
    /// `½ (ν+1) log(1 + (y−η)²/(ν s²)) + c`.
    StudentT {
        y: f64,
        degrees: f64,
        scale: f64,
        c: f64,
    },
}

/// How the expectation of the potential is taken or bounded.
#[derive(Clone, Debug)]
pub(crate) enum Rules {
    /// By quadrature.
    Quadrature(Nodes),
    /// Jaakkola's bound on logistic potentials, at its best ξ² = (m−t)² + v.
    Jaakkola,
    /// Quadratic pieces above log(1 + e^x).
    Piecewise(Pieces),
}

/// Gauss-Hermite nodes and weights, filled up with weights of 0 to whole vectors.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    nodes: Vec<f64>,
    weights: Vec<f64>,
}

impl Nodes {
    pub(crate) fn new(rule: &Rule) -> Self {
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

    /// `E (g, g′, g″)` for η ~ N(m, sd²), where `g` gives all three at eight η.
    #[inline(always)]
    fn mean<V: F64x8>(&self, m: f64, sd: f64, g: impl Fn(V) -> (V, V, V)) -> (f64, f64, f64) {
        let (m, sd) = (V::splat(m), V::splat(sd));
        let mut sums = (V::zero(), V::zero(), V::zero());
        for (z, w) in (self.nodes.chunks_exact(LANES)).zip(self.weights.chunks_exact(LANES)) {
            // SAFETY: both chunks hold eight numbers.
            let (z, w) = unsafe { (V::load(z.as_ptr()), V::load(w.as_ptr())) };
            let (g, g1, g2) = g(sd.fma(z, m));
            sums = (w.fma(g, sums.0), w.fma(g1, sums.1), w.fma(g2, sums.2));
        }
        (sums.0.sum(), sums.1.sum(), sums.2.sum())
    }
}

/// `−log p` with its first two derivatives, at eight η.
#[inline(always)]
fn potential<V: F64x8>(p: &Potential, eta: V) -> (V, V, V) {
    let (one, half) = (V::splat(1.0), V::splat(0.5));
    match *p {
        Potential::Logistic { y, n, shift, c } => {
            let (y, n, x) = (V::splat(y), V::splat(n), eta - V::splat(shift));
            let e = exp(-x.abs());
            let above = one / (one + e);
            let below = e * above;
            let positive = x.ge(V::zero());
            let p = V::select(positive, above, below);
            let log = x.max(V::zero()) + log1p(e);
            (n * log - y * x + V::splat(c), n * p - y, n * above * below)
        }
        Potential::Probit { sign } => {
            let sign = V::splat(sign);
            let x = sign * eta;
            let log = log_phi(x);
            // φ(x)/Φ(x).
            let log_root = V::splat(HALF_LOG_TWO_PI);
            let ratio = exp(-half * x * x - log_root - log);
            (-log, -sign * ratio, ratio * (ratio + x))
        }
        Potential::StudentT {
            y,
            degrees,
            scale,
            c,
        } => {
            let r = V::splat(y) - eta;
            let (s, d) = (V::splat(degrees * scale * scale), V::splat(degrees + 1.0));
            let square = r * r;
            let q = s + square;
            (
                half * d * log1p(square / s) + V::splat(c),
                -d * r / q,
                d * (s - square) / (q * q),
            )
        }
    }
}

simd_fn! {
    /// The expectations of potentials and their derivatives by m and v; all slices have the same length.
    fn expectations, expectations_fn = <V>(
        nodes: &Nodes, sites: &[Potential], m: &[f64], v: &[f64], out: &mut [Value]
    ) {
        for i in 0..sites.len() {
            let sd = v[i].max(0.0).sqrt();
            let (f, by_mean, curvature) =
                nodes.mean::<V>(m[i], sd, #[inline(always)] |eta| potential(&sites[i], eta));
            out[i] = Value { f, by_mean, by_variance: 0.5 * curvature };
        }
    }
}

/// Sites of one task: each costs many times an element of other passes.
const FEW: usize = 256;

impl Rules {
    /// The bound and its derivatives at every (m, v); all slices have the same length.
    pub(crate) fn values(&self, sites: &[Potential], m: &[f64], v: &[f64]) -> Vec<Value> {
        let Self::Quadrature(nodes) = self else {
            return map(sites.len(), |n| self.value(&sites[n], m[n], v[n]));
        };
        let simd = Simd::detect();
        let mut out = vec![Value::default(); sites.len()];
        out.par_chunks_mut(FEW).enumerate().for_each(|(c, out)| {
            let range = c * FEW..c * FEW + out.len();
            let (m, v) = (&m[range.clone()], &v[range.clone()]);
            expectations(simd, nodes, &sites[range], m, v, out);
        });
        out
    }

    /// The bound and its derivatives at (m, v).
    pub(crate) fn value(&self, site: &Potential, m: f64, v: f64) -> Value {
        match (self, *site) {
            (Self::Jaakkola, Potential::Logistic { y, n, shift, c }) => {
                let x = m - shift;
                let xi = (x * x + v).sqrt();
                let a = jaakkola_curvature(xi);
                // log(1 + e^x) ≤ ½x + ½a (x² − ξ²) + log(1 + e^ξ) − ½ξ.
                Value {
                    f: n * (0.5 * x + log1p_exp(xi) - 0.5 * xi) - y * x + c,
                    by_mean: n * (0.5 + a * x) - y,
                    by_variance: 0.5 * n * a,
                }
            }
            (Self::Piecewise(pieces), Potential::Logistic { y, n, shift, c }) => {
                let x = m - shift;
                let at = pieces.expectation(x, v);
                Value {
                    f: n * at.f - y * x + c,
                    by_mean: n * at.by_mean - y,
                    by_variance: n * at.by_variance,
                }
            }
            (Self::Quadrature(nodes), _) => {
                let mut out = [Value::default()];
                expectations(Simd::detect(), nodes, &[*site], &[m], &[v], &mut out);
                out[0]
            }
            // The table offers these bounds for logistic potentials alone.
            (Self::Jaakkola | Self::Piecewise(_), _) => Value {
                f: f64::NAN,
                by_mean: f64::NAN,
                by_variance: f64::NAN,
            },
        }
    }

    /// E h(η) for another function by the same rule, where it is quadrature.
    pub(crate) fn expectation(&self, m: f64, v: f64, h: impl Fn(f64) -> f64) -> Option<f64> {
        let Self::Quadrature(rule) = self else {
            return None;
        };
        let sd = v.max(0.0).sqrt();
        Some(
            rule.nodes
                .iter()
                .zip(&rule.weights)
                .map(|(z, w)| w * h(m + sd * z))
                .sum(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::scalar::sigmoid;
    use jensen_math::quadrature::gauss_hermite;

    fn potentials() -> Vec<Potential> {
        vec![
            Potential::Logistic {
                y: 1.0,
                n: 1.0,
                shift: 0.0,
                c: 0.0,
            },
            Potential::Logistic {
                y: 2.0,
                n: 6.5,
                shift: 0.7,
                c: -1.0,
            },
            Potential::Probit { sign: -1.0 },
            Potential::StudentT {
                y: 1.2,
                degrees: 4.0,
                scale: 0.8,
                c: 0.3,
            },
        ]
    }

    /// −log p and its derivatives from the definitions.
    fn plain(p: &Potential, eta: f64) -> (f64, f64, f64) {
        match *p {
            Potential::Logistic { y, n, shift, c } => {
                let x = eta - shift;
                let p = sigmoid(x);
                (n * log1p_exp(x) - y * x + c, n * p - y, n * p * (1.0 - p))
            }
            Potential::Probit { sign } => {
                let x = sign * eta;
                let phi = jensen_math::special::phi(x);
                let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
                let ratio = density / phi;
                (-phi.ln(), -sign * ratio, ratio * (ratio + x))
            }
            Potential::StudentT {
                y,
                degrees: d,
                scale,
                c,
            } => {
                let (r, s) = (y - eta, d * scale * scale);
                let q = s + r * r;
                (
                    0.5 * (d + 1.0) * (q / s).ln() + c,
                    -(d + 1.0) * r / q,
                    (d + 1.0) * (s - r * r) / (q * q),
                )
            }
        }
    }

    /// E h by Simpson's rule on twelve standard deviations either side.
    fn simpson(m: f64, v: f64, h: impl Fn(f64) -> f64) -> f64 {
        let (steps, reach) = (20_000, 12.0);
        let width = 2.0 * reach / f64::from(steps);
        (0..=steps)
            .map(|i| {
                let z = -reach + width * f64::from(i);
                let weight = match i {
                    0 => 1.0,
                    i if i == steps => 1.0,
                    i if i % 2 == 1 => 4.0,
                    _ => 2.0,
                };
                let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
                weight * density * h(m + v.sqrt() * z)
            })
            .sum::<f64>()
            * width
            / 3.0
    }

    fn rules(site: &Potential) -> Vec<Rules> {
        let mut rules = vec![Rules::Quadrature(Nodes::new(&gauss_hermite(64).unwrap()))];
        if matches!(site, Potential::Logistic { .. }) {
            rules.push(Rules::Jaakkola);
            rules.push(Rules::Piecewise(Pieces::new()));
        }
        rules
    }

    #[test]
    fn values_bound_the_expectation_and_quadrature_meets_it() {
        for site in potentials() {
            for (m, v) in [(0.0, 0.5), (1.5, 2.0), (-2.0, 9.0)] {
                let exact = simpson(m, v, |eta| plain(&site, eta).0);
                for rule in rules(&site) {
                    let f = rule.value(&site, m, v).f;
                    assert!(f > exact - 2e-4, "{site:?} {m} {v}: {f} {exact}");
                    if matches!(rule, Rules::Quadrature(_)) {
                        // Student-t's potential is the least smooth at this spread.
                        let slack = if matches!(site, Potential::StudentT { .. }) {
                            2e-4
                        } else {
                            1e-5
                        };
                        assert!((f - exact).abs() < slack, "{site:?} {m} {v}: {f} {exact}");
                    }
                }
            }
        }
    }

    #[test]
    fn derivatives_agree_with_differences() {
        for site in potentials() {
            for (m, v) in [(0.2, 0.5), (1.5, 2.0)] {
                for rule in rules(&site) {
                    let h = 1e-5;
                    let at = rule.value(&site, m, v);
                    let by_mean =
                        (rule.value(&site, m + h, v).f - rule.value(&site, m - h, v).f) / (2.0 * h);
                    let by_variance =
                        (rule.value(&site, m, v + h).f - rule.value(&site, m, v - h).f) / (2.0 * h);
                    assert!((at.by_mean - by_mean).abs() < 1e-6, "{site:?} {rule:?}");
                    assert!(
                        (at.by_variance - by_variance).abs() < 1e-5,
                        "{site:?} {rule:?}: {} {by_variance}",
                        at.by_variance
                    );
                }
            }
            for eta in [-3.0, 0.1, 2.0] {
                let h = 1e-6;
                let (g, g1, g2) = plain(&site, eta);
                let (up, down) = (plain(&site, eta + h), plain(&site, eta - h));
                assert!((g1 - (up.0 - down.0) / (2.0 * h)).abs() < 1e-7);
                assert!((g2 - (up.1 - down.1) / (2.0 * h)).abs() < 1e-7);
                // A spread of 0 leaves the potential itself.
                let at = Rules::Quadrature(Nodes::new(&gauss_hermite(7).unwrap()));
                let at = at.value(&site, eta, 0.0);
                for (a, b) in [(at.f, g), (at.by_mean, g1), (2.0 * at.by_variance, g2)] {
                    assert!((a - b).abs() < 1e-13 * (1.0 + b.abs()), "{site:?}: {a} {b}");
                }
            }
        }
    }
}
