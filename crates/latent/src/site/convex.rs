//! Sites whose bound has a convex conjugate in closed form. Every observation has one curve (α, λ(α)).
//!
//! Every such bound is `f(m, v) = sup over α in (low, high) of α m + ½ λ(α) v − φ(α)` with λ concave and φ convex. Its
//! conjugate `f*(α, λ)` is finite only on a curve (or above it) and equals φ there, so the dual has N variables instead
//! of 2N. In the table of curves below, y is the response and f is a bound on the expectation of the negative log
//! density:
//!
//! | family | f(m, v) | λ(α) | φ(α) |
//! | --- | --- | --- | --- |
//! | exponential | −a m + e exp(s m + s²v/2) + c | s (α + a) > 0 | E (log(E/e) − 1) − c, E = λ/s² |
//! | logistic, log bound | −y (m−t) + n log(1 + exp(m−t+v/2)) + c | n p, p = (α + y)/n ∈ (0, 1) | α t + n H(p) − c |
//! | logistic, tilted bound | min over ω of −y (m−t) + n [½ω²v + log(1 + exp(m−t+(1−2ω)v/2))] + c | n p (1−p) | α t + n H(p) − c |
//! | logistic, Böhning bound | min over ψ of its quadratic: −y (m−t) + n [log(1 + exp(m−t)) + v/8] + c | n/4 | α t + n H(p) − c |
//! | quadratic | ½ a (m² + v) + b m + c | a | (α − b)²/(2a) − c |
//! | linear | −a m + c | 0, α = −a alone | −c |
//!
//! Here `H(p) = p log p + (1−p) log(1−p)`. In the row of the tilted bound, the conjugate at fixed ω contains the term
//! `½ (ω² + (1−2ω) p) v`, which for given α is smallest at ω = p. The minimum and the supremum can be exchanged,
//! because the bound is convex in ω and the objective of the conjugate is concave in p. Böhning's bound is exact at ψ =
//! m, which gives `log(1 + e^m) + v/8`. Neither bound therefore needs an outer loop over its parameter.

use jensen_math::special::{inv_logit, log1p_exp};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogisticBound {
    Log,
    Tilted,
    Bohning,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Convex {
    Exponential {
        a: f64,
        rate: f64,
        slope: f64,
        c: f64,
    },
    Logistic {
        bound: LogisticBound,
        y: f64,
        n: f64,
        shift: f64,
        c: f64,
    },
    Quadratic {
        a: f64,
        b: f64,
        c: f64,
    },
    Linear {
        a: f64,
        c: f64,
    },
}

/// The values of λ and φ at one α, with their first two derivatives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve {
    /// The value λ(α).
    pub lambda: f64,
    /// The first derivative λ′(α).
    pub lambda1: f64,
    /// The second derivative λ″(α).
    pub lambda2: f64,
    /// The value φ(α), in nats.
    pub phi: f64,
    /// The first derivative φ′(α).
    pub phi1: f64,
    /// The second derivative φ″(α).
    pub phi2: f64,
}

/// The bound f with its derivatives with respect to m and v.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Value {
    /// The value f, in nats.
    pub f: f64,
    /// The derivative ∂f/∂m.
    pub by_mean: f64,
    /// The derivative ∂f/∂v.
    pub by_variance: f64,
}

const FIXED: f64 = 1e100;

impl Convex {
    pub(crate) fn domain(&self) -> (f64, f64) {
        match *self {
            Self::Exponential { a, slope, .. } if slope > 0.0 => (-a, f64::INFINITY),
            Self::Exponential { a, .. } => (f64::NEG_INFINITY, -a),
            Self::Logistic { y, n, .. } => (-y, n - y),
            Self::Quadratic { .. } => (f64::NEG_INFINITY, f64::INFINITY),
            Self::Linear { a, .. } => (-a, -a),
        }
    }

    pub(crate) fn is_fixed(&self) -> bool {
        matches!(self, Self::Linear { .. })
    }

    pub(crate) fn curve(&self, alpha: f64) -> Curve {
        match *self {
            Self::Exponential { a, rate, slope, c } => {
                let mean = (alpha + a) / slope;
                let log = (mean / rate).ln();
                let lambda = slope * slope * mean;
                Curve {
                    lambda,
                    lambda1: slope,
                    lambda2: 0.0,
                    phi: mean * (log - 1.0) - c,
                    phi1: log / slope,
                    phi2: 1.0 / lambda,
                }
            }
            Self::Logistic {
                bound,
                y,
                n,
                shift,
                c,
            } => {
                let (p, q) = ((alpha + y) / n, (n - y - alpha) / n);
                let (lambda, lambda1, lambda2) = match bound {
                    LogisticBound::Log => (n * p, 1.0, 0.0),
                    LogisticBound::Tilted => (n * p * q, q - p, -2.0 / n),
                    LogisticBound::Bohning => (0.25 * n, 0.0, 0.0),
                };
                let (log_p, log_q) = (p.ln(), q.ln());
                Curve {
                    lambda,
                    lambda1,
                    lambda2,
                    phi: alpha * shift + n * (p * log_p + q * log_q) - c,
                    phi1: shift + log_p - log_q,
                    phi2: 1.0 / (n * p * q),
                }
            }
            Self::Quadratic { a, b, c } => Curve {
                lambda: a,
                lambda1: 0.0,
                lambda2: 0.0,
                phi: (alpha - b).powi(2) / (2.0 * a) - c,
                phi1: (alpha - b) / a,
                phi2: 1.0 / a,
            },
            Self::Linear { c, .. } => Curve {
                lambda: 0.0,
                lambda1: 0.0,
                lambda2: 0.0,
                phi: -c,
                phi1: 0.0,
                phi2: FIXED,
            },
        }
    }

    /// Computes the α with `φ′(α) = slope`. If rounding puts this α at an end of the domain, the function moves it
    /// inside.
    fn at_slope(&self, wanted: f64) -> f64 {
        match *self {
            Self::Exponential { a, rate, slope, .. } => {
                let mean = (rate * (slope * wanted).exp()).max(f64::MIN_POSITIVE);
                inside(slope * mean - a, self.domain())
            }
            Self::Logistic { y, n, shift, .. } => {
                let x = wanted - shift;
                // The computation from the nearer end avoids cancellation.
                let alpha = if x <= 0.0 {
                    n * inv_logit(x) - y
                } else {
                    (n - y) - n * inv_logit(-x)
                };
                inside(alpha, self.domain())
            }
            Self::Quadratic { a, b, .. } => a * wanted + b,
            Self::Linear { a, .. } => -a,
        }
    }

    pub(crate) fn maximiser(&self, m: f64, v: f64) -> f64 {
        let slope = match *self {
            Self::Exponential { slope, .. } => m + 0.5 * slope * v,
            Self::Logistic { bound, shift, .. } => match bound {
                LogisticBound::Log => m + 0.5 * v,
                LogisticBound::Tilted => shift + tilted_logit(m - shift, v),
                LogisticBound::Bohning => m,
            },
            Self::Quadratic { .. } | Self::Linear { .. } => m,
        };
        self.at_slope(slope)
    }

    /// Computes a point on the path from α in the direction `d`, where `at` is the curve at α. The path is straight in
    /// the natural parameter φ′, so it never leaves the domain. If λ has no upper limit, it grows only linearly along
    /// the path after it has grown by a factor of e.
    pub(crate) fn along(&self, alpha: f64, at: &Curve, d: f64) -> f64 {
        let step = at.phi2 * d;
        match *self {
            Self::Exponential { slope, .. } if slope * step > 1.0 => {
                self.at_slope(at.phi1 + (1.0 + (slope * step).ln()) / slope)
            }
            Self::Exponential { .. } | Self::Logistic { .. } => self.at_slope(at.phi1 + step),
            Self::Quadratic { .. } => alpha + d,
            Self::Linear { .. } => alpha,
        }
    }

    pub(crate) fn value(&self, m: f64, v: f64) -> Value {
        match *self {
            Self::Exponential { a, rate, slope, c } => {
                let mean = rate * (slope * m + 0.5 * slope * slope * v).exp();
                Value {
                    f: mean - a * m + c,
                    by_mean: slope * mean - a,
                    by_variance: 0.5 * slope * slope * mean,
                }
            }
            Self::Logistic {
                bound,
                y,
                n,
                shift,
                c,
            } => {
                let x = m - shift;
                let (value, p, by_variance) = match bound {
                    LogisticBound::Log => {
                        let x = x + 0.5 * v;
                        (log1p_exp(x), inv_logit(x), 0.5 * inv_logit(x))
                    }
                    LogisticBound::Tilted => {
                        let z = tilted_logit(x, v);
                        let p = inv_logit(z);
                        let by_variance = 0.5 * p * inv_logit(-z);
                        (0.5 * p * p * v + log1p_exp(z), p, by_variance)
                    }
                    LogisticBound::Bohning => (log1p_exp(x) + 0.125 * v, inv_logit(x), 0.125),
                };
                Value {
                    f: n * value - y * x + c,
                    by_mean: n * p - y,
                    by_variance: n * by_variance,
                }
            }
            Self::Quadratic { a, b, c } => Value {
                f: 0.5 * a * (m * m + v) + b * m + c,
                by_mean: a * m + b,
                by_variance: 0.5 * a,
            },
            Self::Linear { a, c } => Value {
                f: c - a * m,
                by_mean: -a,
                by_variance: 0.0,
            },
        }
    }

    /// Computes the site's contribution to the duality gap, `f(m, v) + φ(α) − α m − ½ λ(α) v`, which is non-negative by
    /// the Fenchel–Young inequality. Where possible, the formula is rearranged to avoid cancellation.
    pub(crate) fn gap(&self, alpha: f64, m: f64, v: f64) -> f64 {
        match *self {
            Self::Exponential { a, rate, slope, .. } => {
                let mean = (alpha + a) / slope;
                let delta = slope * m + 0.5 * slope * slope * v - (mean / rate).ln();
                mean * expm1_minus(delta)
            }
            Self::Logistic {
                bound: LogisticBound::Log | LogisticBound::Bohning,
                y,
                n,
                shift,
                ..
            } => {
                let half = match *self {
                    Self::Logistic {
                        bound: LogisticBound::Log,
                        ..
                    } => 0.5 * v,
                    _ => 0.0,
                };
                let (p, q) = ((alpha + y) / n, (n - y - alpha) / n);
                let delta = m - shift + half - (p.ln() - q.ln());
                // The divergence is n times the relative entropy of p with respect to σ(logit p + δ). It is computed
                // from the end at which the exponential is small.
                let divergence = if delta <= 0.0 {
                    (p * delta.exp_m1()).ln_1p() - p * delta
                } else {
                    (q * (-delta).exp_m1()).ln_1p() + q * delta
                };
                (n * divergence).max(0.0)
            }
            Self::Quadratic { a, b, .. } => (alpha - b - a * m).powi(2) / (2.0 * a),
            Self::Linear { .. } => 0.0,
            Self::Logistic { .. } => {
                let at = self.curve(alpha);
                (self.value(m, v).f + at.phi - alpha * m - 0.5 * at.lambda * v).max(0.0)
            }
        }
    }

    /// Returns a rough α that depends only on the response and lies well inside the domain.
    pub(crate) fn guess(&self) -> f64 {
        match *self {
            Self::Exponential { slope, .. } if slope > 0.0 => 0.5,
            // The domain ends at 0 for a censored time.
            Self::Exponential { a: 0.0, .. } => -0.5,
            Self::Exponential { .. } | Self::Quadratic { .. } => 0.0,
            Self::Logistic { y, n, .. } => n * (y + 0.5) / (n + 1.0) - y,
            Self::Linear { a, .. } => -a,
        }
    }
}

/// Computes `e^x − 1 − x` accurately near 0.
fn expm1_minus(x: f64) -> f64 {
    if x.abs() < 0.03 {
        x * x * (0.5 + x * (1.0 / 6.0 + x * (1.0 / 24.0 + x * (1.0 / 120.0 + x / 720.0))))
    } else {
        x.exp_m1() - x
    }
}

fn inside(x: f64, (low, high): (f64, f64)) -> f64 {
    let x = if x > low { x } else { above(low) };
    if x < high { x } else { -above(-high) }
}

fn above(x: f64) -> f64 {
    x + (x.abs() * 4.0 * f64::EPSILON).max(1e-300)
}

/// Computes the root z of `z = x + (1 − 2σ(z)) v/2`. The root is the logit of the tilted bound's ω and has the sign of
/// x.
///
/// For x ≥ 0 the function `z − x + ½ v tanh(z/2)` is increasing and concave, and it is at most 0 at `x/(1 + v/4)`.
/// Newton's method from that point therefore never overshoots. Because it converges quadratically, it can end after a
/// step of at most 1e-8.
fn tilted_logit(x: f64, v: f64) -> f64 {
    let target = x.abs();
    let mut z = target / (1.0 + 0.25 * v);
    for _ in 0..60 {
        let e = (-z).exp();
        let tanh = (1.0 - e) / (1.0 + e);
        let step = (target - z - 0.5 * v * tanh) / (1.0 + 0.25 * v * (1.0 - tanh * tanh));
        z += step;
        if step.abs() <= 1e-8 * (1.0 + z) {
            break;
        }
    }
    z.copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sites() -> Vec<Convex> {
        let mut sites = vec![
            Convex::Exponential {
                a: 3.0,
                rate: 1.7,
                slope: 1.0,
                c: 1.2,
            },
            Convex::Exponential {
                a: 0.0,
                rate: 0.4,
                slope: 1.0,
                c: 0.0,
            },
            Convex::Exponential {
                a: -0.5,
                rate: 0.8,
                slope: -1.2,
                c: 0.9,
            },
            Convex::Quadratic {
                a: 0.7,
                b: -0.3,
                c: 0.2,
            },
        ];
        for bound in [
            LogisticBound::Log,
            LogisticBound::Tilted,
            LogisticBound::Bohning,
        ] {
            for (y, n, shift, c) in [
                (0.0, 1.0, 0.0, 0.0),
                (1.0, 1.0, 0.0, 0.0),
                (3.0, 7.5, 0.4, -1.3),
            ] {
                sites.push(Convex::Logistic {
                    bound,
                    y,
                    n,
                    shift,
                    c,
                });
            }
        }
        sites
    }

    /// Computes the supremum of `f` by golden-section search over the part of the domain that lies within ±`reach`.
    fn supremum(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
        let ratio = 0.5 * (5f64.sqrt() - 1.0);
        for _ in 0..200 {
            let (a, b) = (high - ratio * (high - low), low + ratio * (high - low));
            if f(a) < f(b) {
                low = a;
            } else {
                high = b;
            }
        }
        f(0.5 * (low + high))
    }

    #[test]
    fn the_bound_is_the_supremum_over_its_curve() {
        for site in sites() {
            let (low, high) = site.domain();
            let (low, high) = (low.max(-300.0), high.min(300.0));
            for (m, v) in [(0.0, 1.0), (1.3, 0.2), (-2.0, 3.0), (0.7, 4.0)] {
                let best = supremum(low, high, |alpha| {
                    let at = site.curve(alpha);
                    alpha * m + 0.5 * at.lambda * v - at.phi
                });
                let value = site.value(m, v);
                assert!(
                    (best - value.f).abs() < 1e-9 * (1.0 + best.abs()),
                    "{site:?} at ({m}, {v}): {best} {}",
                    value.f
                );
                let alpha = site.maximiser(m, v);
                assert!(site.gap(alpha, m, v) < 1e-13, "{site:?}");
                assert!((alpha - value.by_mean).abs() < 1e-12 * (1.0 + alpha.abs()));
                let lambda = site.curve(alpha).lambda;
                assert!((0.5 * lambda - value.by_variance).abs() < 1e-12 * (1.0 + lambda));
            }
        }
    }

    #[test]
    fn the_conjugate_is_the_supremum_over_mean_and_variance() {
        // f* at (α, λ(α)) is the maximum over m at the best v ≥ 0, which a repeatedly refined grid finds.
        for site in sites() {
            let alpha = site.maximiser(0.4, 0.9);
            let at = site.curve(alpha);
            let over_mean = |v: f64| {
                supremum(-40.0, 40.0, |m| {
                    alpha * m + 0.5 * at.lambda * v - site.value(m, v).f
                })
            };
            let conjugate = supremum(0.0, 6.0, over_mean);
            assert!(
                (conjugate - at.phi).abs() < 1e-8 * (1.0 + at.phi.abs()),
                "{site:?}: {conjugate} {}",
                at.phi
            );
        }
    }

    #[test]
    fn derivatives_agree_with_differences() {
        for site in sites() {
            for (m, v) in [(0.3, 0.8), (-1.0, 2.0)] {
                let alpha = site.maximiser(m, v) + 0.01;
                let alpha = inside(alpha, site.domain());
                let h = 1e-6;
                let (minus, plus) = (site.curve(alpha - h), site.curve(alpha + h));
                let at = site.curve(alpha);
                for (what, derivative, difference) in [
                    ("λ'", at.lambda1, plus.lambda - minus.lambda),
                    ("λ''", at.lambda2, plus.lambda1 - minus.lambda1),
                    ("φ'", at.phi1, plus.phi - minus.phi),
                    ("φ''", at.phi2, plus.phi1 - minus.phi1),
                    (
                        "∂f/∂m",
                        site.value(m, v).by_mean,
                        site.value(m + h, v).f - site.value(m - h, v).f,
                    ),
                    (
                        "∂f/∂v",
                        site.value(m, v).by_variance,
                        site.value(m, v + h).f - site.value(m, v - h).f,
                    ),
                ] {
                    let difference = difference / (2.0 * h);
                    assert!(
                        (derivative - difference).abs() < 1e-6 * (1.0 + derivative.abs()),
                        "{what} of {site:?}: {derivative} {difference}"
                    );
                }
                let off = site.value(m, v).f + at.phi - alpha * m - 0.5 * at.lambda * v;
                assert!((site.gap(alpha, m, v) - off).abs() < 1e-12 * (1.0 + off.abs()));
            }
        }
    }
}
