//! User-defined sites. A site defines a bound f, its conjugate along a curve, and the domain of this curve.

use std::fmt::Debug;

use super::convex::{Curve, Value};

/// A bound f(m, v) on E[−log p(y | η)] with η ~ N(m, v), for a single observation. The bound must have a convex
/// conjugate.
///
/// The bound is `f(m, v) = sup over α in (low, high) of α m + ½ λ(α) v − φ(α)`, and its conjugate f* is φ on the curve
/// (α, λ(α)). If f is the expectation itself, the fit maximises the exact objective. If f is larger than the
/// expectation, the fit maximises a lower bound. The crate's own sites are listed in a table of this form
/// (`site::convex`). The quantities of a site follow from f: α = ∂f/∂m, λ = 2 ∂f/∂v and φ = αm + ½λv − f, each as a
/// function of α alone.
///
/// A fit requires that λ ≥ 0 on the domain, that φ is convex and φ′ runs from −∞ to ∞ over the domain, and that `value`
/// and `curve` are consistent. [`check_site`] tests this consistency at a point.
pub trait Site: Debug + Send + Sync {
    /// Computes f and its derivatives with respect to m and v.
    fn value(&self, m: f64, v: f64) -> Value;

    /// Computes λ and φ = f* with their first two derivatives, at an α inside the domain.
    fn curve(&self, alpha: f64) -> Curve;

    /// Returns the open interval of α in which φ and φ′ are finite. The ends may be infinite.
    fn domain(&self) -> (f64, f64);
}

/// Number of bisections. It suffices to determine α to the last digit, whatever the interval at the start.
const HALVINGS: usize = 2_200;

fn at_slope(site: &dyn Site, slope: f64, from: f64) -> f64 {
    let (low, high) = site.domain();
    let below = |alpha: f64| site.curve(alpha).phi1 < slope;
    // The interval grows outwards from an α inside the domain. In each step it halves the distance to a finite end, or
    // doubles towards infinity.
    let (mut a, mut b) = (from, from);
    let mut reach = from.abs().max(1.0);
    while below(b) && b < f64::MAX {
        (a, b) = (
            b,
            if high.is_finite() {
                middle(b, high)
            } else {
                b + reach
            },
        );
        reach *= 2.0;
        if b == a {
            break;
        }
    }
    reach = from.abs().max(1.0);
    while !below(a) && a > f64::MIN {
        (b, a) = (
            a,
            if low.is_finite() {
                middle(low, a)
            } else {
                a - reach
            },
        );
        reach *= 2.0;
        if a == b {
            break;
        }
    }
    for _ in 0..HALVINGS {
        let c = middle(a, b);
        if c <= a || c >= b {
            break;
        }
        if below(c) {
            a = c;
        } else {
            b = c;
        }
    }
    // The result is the end of the interval that was evaluated, which is inside the domain.
    if a > low { a } else { b }
}

fn middle(a: f64, b: f64) -> f64 {
    0.5 * a + 0.5 * b
}

/// Returns ∂f/∂m at (0, 1). This value is an α inside the domain.
pub(crate) fn guess(site: &dyn Site) -> f64 {
    site.value(0.0, 1.0).by_mean
}

/// Returns a point on a path from α. Small steps are straight in φ′, and large steps are straight in the logarithm of
/// φ′.
pub(crate) fn along(site: &dyn Site, alpha: f64, at: &Curve, d: f64) -> f64 {
    let step = at.phi2 * d;
    let size = step.abs();
    let step = if size > 1.0 {
        step.signum() * (1.0 + size.ln())
    } else {
        step
    };
    if step == 0.0 {
        return alpha;
    }
    at_slope(site, at.phi1 + step, alpha)
}

pub(crate) fn gap(site: &dyn Site, alpha: f64, m: f64, v: f64) -> f64 {
    let at = site.curve(alpha);
    (site.value(m, v).f + at.phi - alpha * m - 0.5 * at.lambda * v).max(0.0)
}

/// Computes the largest inconsistency between the functions of a site at (m, v). At α = ∂f/∂m, both |f + f*(α, λ) − αm
/// − ½λv| and |λ(α) − 2 ∂f/∂v| should be 0. The result is the maximum of these two numbers and of the differences
/// between `curve`'s derivatives and finite differences, in nats and in units of λ. Values of a few 1e-6 are rounding
/// errors.
pub fn check_site(site: &dyn Site, m: f64, v: f64) -> f64 {
    let value = site.value(m, v);
    let alpha = value.by_mean;
    let (low, high) = site.domain();
    if !(alpha > low && alpha < high) {
        return f64::INFINITY;
    }
    let at = site.curve(alpha);
    let young = value.f + at.phi - alpha * m - 0.5 * at.lambda * v;
    let h = 1e-5 * alpha.abs().max(1.0).min(high - alpha).min(alpha - low);
    let (up, down) = (site.curve(alpha + h), site.curve(alpha - h));
    let slope = |x: f64, y: f64| (x - y) / (2.0 * h);
    [
        young,
        at.lambda - 2.0 * value.by_variance,
        at.phi1 - slope(up.phi, down.phi),
        at.phi2 - slope(up.phi1, down.phi1),
        at.lambda1 - slope(up.lambda, down.lambda),
        at.lambda2 - slope(up.lambda1, down.lambda1),
    ]
    .into_iter()
    .fold(0.0, |most, x| {
        if x.is_nan() {
            f64::INFINITY
        } else {
            most.max(x.abs())
        }
    })
}
