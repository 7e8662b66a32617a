//! Bounds without a convex conjugate, reached through the natural-gradient fixed point `α = ∂f/∂m`, `λ = 2 ∂f/∂v`.
//!
//! For an exact expectation `f(m, v) = E g(η)`, η ~ N(m, v), with g = −log p: `∂f/∂m = E g′` and `∂f/∂v = ½ E g″` (Bonnet,
//! Price), by Gauss-Hermite quadrature.

use jensen_math::quadrature::Rule;

use super::convex::Value;
use super::piecewise::Pieces;
use super::scalar::{jaakkola_curvature, log1p_exp, sigmoid};

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
    Quadrature(Rule),
    /// Jaakkola's bound on logistic potentials, at its best ξ² = (m−t)² + v.
    Jaakkola,
    /// Quadratic pieces above log(1 + e^x).
    Piecewise(Pieces),
}

/// g with its first two derivatives.
fn potential(p: &Potential, eta: f64) -> (f64, f64, f64) {
    match *p {
        Potential::Logistic { y, n, shift, c } => {
            let x = eta - shift;
            let p = sigmoid(x);
            (n * log1p_exp(x) - y * x + c, n * p - y, n * p * sigmoid(-x))
        }
        Potential::Probit { sign } => {
            let x = sign * eta;
            let log = jensen_math::special::log_phi(x);
            // φ(x)/Φ(x).
            let ratio = (-0.5 * x * x - 0.5 * (2.0 * std::f64::consts::PI).ln() - log).exp();
            (-log, -sign * ratio, ratio * (ratio + x))
        }
        Potential::StudentT {
            y,
            degrees,
            scale,
            c,
        } => {
            let r = y - eta;
            let s = degrees * scale * scale;
            let q = s + r * r;
            (
                0.5 * (degrees + 1.0) * (r * r / s).ln_1p() + c,
                -(degrees + 1.0) * r / q,
                (degrees + 1.0) * (s - r * r) / (q * q),
            )
        }
    }
}

impl Rules {
    /// The bound and its derivatives at (m, v).
    pub(crate) fn value(&self, site: &Potential, m: f64, v: f64) -> Value {
        let sd = v.max(0.0).sqrt();
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
            (Self::Quadrature(rule), _) => {
                let mut out = Value::default();
                for (z, w) in rule.nodes.iter().zip(&rule.weights) {
                    let (g, g1, g2) = potential(site, m + sd * z);
                    out.f += w * g;
                    out.by_mean += w * g1;
                    out.by_variance += 0.5 * w * g2;
                }
                out
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
        let mut rules = vec![Rules::Quadrature(gauss_hermite(64).unwrap())];
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
                let exact = simpson(m, v, |eta| potential(&site, eta).0);
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
                let (_, g1, g2) = potential(&site, eta);
                let (plus, minus) = (potential(&site, eta + h), potential(&site, eta - h));
                assert!((g1 - (plus.0 - minus.0) / (2.0 * h)).abs() < 1e-7);
                assert!((g2 - (plus.1 - minus.1) / (2.0 * h)).abs() < 1e-7);
            }
        }
    }
}
