//! Likelihoods with log(1 + e^η) as their only non-quadratic term.

use jensen_math::simd::F64x8;
use jensen_math::special::log1p_exp;
use jensen_math::vmath::{exp, log1p};

use super::SiteBound;
use super::convex::{Convex, LogisticBound, Value};
use super::expectation::Potential;
use super::piecewise::Pieces;
use super::scalar::jaakkola_curvature;

/// The supported bounds. The first bound is the default.
pub(crate) const BOUNDS: &[SiteBound] = &[
    SiteBound::Exact,
    SiteBound::Tilted,
    SiteBound::Log,
    SiteBound::Bohning,
    SiteBound::Jaakkola,
    SiteBound::Piecewise,
];

/// The function −log p of one observation, which is `−y (η−t) + n log(1 + e^(η−t)) + c` with shift t.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Logistic {
    pub y: f64,
    pub n: f64,
    pub shift: f64,
    pub c: f64,
}

impl Logistic {
    pub(crate) fn under(self, bound: LogisticBound) -> Convex {
        let Self { y, n, shift, c } = self;
        Convex::Logistic {
            bound,
            y,
            n,
            shift,
            c,
        }
    }
}

impl Potential for Logistic {
    #[inline(always)]
    fn at<V: F64x8>(&self, eta: V) -> (V, V, V) {
        let one = V::splat(1.0);
        let (y, n, x) = (
            V::splat(self.y),
            V::splat(self.n),
            eta - V::splat(self.shift),
        );
        let e = exp(-x.abs());
        let above = one / (one + e);
        let below = e * above;
        let positive = x.ge(V::zero());
        let p = V::select(positive, above, below);
        let log = x.max(V::zero()) + log1p(e);
        (
            n * log - y * x + V::splat(self.c),
            n * p - y,
            n * above * below,
        )
    }

    /// 1 + e^(η−t) vanishes at t ± iπ.
    fn width(&self) -> f64 {
        std::f64::consts::PI
    }
}

/// A quadratic or piecewise quadratic bound on `E log(1 + e^x)` without a convex conjugate.
#[derive(Clone, Debug)]
pub(crate) enum Raised {
    /// Jaakkola's bound at the optimal value ξ² = (m−t)² + v.
    Jaakkola,
    Piecewise(Pieces),
}

impl Raised {
    pub(crate) fn value(&self, site: &Logistic, m: f64, v: f64) -> Value {
        let Logistic { y, n, shift, c } = *site;
        let x = m - shift;
        match self {
            Self::Jaakkola => {
                let xi = (x * x + v).sqrt();
                let a = jaakkola_curvature(xi);
                // log(1 + e^x) ≤ ½x + ½a (x² − ξ²) + log(1 + e^ξ) − ½ξ.
                Value {
                    f: n * (0.5 * x + log1p_exp(xi) - 0.5 * xi) - y * x + c,
                    by_mean: n * (0.5 + a * x) - y,
                    by_variance: 0.5 * n * a,
                }
            }
            Self::Piecewise(pieces) => {
                let at = pieces.expectation(x, v);
                Value {
                    f: n * at.f - y * x + c,
                    by_mean: n * at.by_mean - y,
                    by_variance: n * at.by_variance,
                }
            }
        }
    }
}
