//! The trust-region subproblem: the maximisation of `m(s) = gᵀs − ½ sᵀBs` over `‖s‖_P ≤ δ`, where B is the negated
//! Hessian.
//!
//! A maximiser s satisfies `(B + αP) s = g` with `α ≥ 0` and a positive semidefinite matrix `B + αP`, where α = 0
//! unless s is on the boundary. (Equations 44 and 45 of the paper print H instead of −H.) There are two solvers:
//!
//! * [`krylov`] needs only products with B. Conjugate gradients and the Lanczos process build the same subspaces, so a
//!   single recurrence serves both. The solver stores the Lanczos vectors and reorthogonalises them. While the
//!   tridiagonal model is positive definite and its maximiser is inside the region, the iterate equals that of the
//!   Steihaug–Toint conjugate-gradient method. From then on, it is the maximiser of the model over the part of the
//!   subspace that is in the region, even at negative curvature (GLTR: Gould, Lucidi, Roma and Toint, SIAM J. Optim. 9,
//!   1999).
//! * [`secular`] needs solves with `B + αI`, which explicit Hessians allow. It is exact even in the hard case (Moré and
//!   Sorensen, SIAM J. Sci. Stat. Comput. 4, 1983).

use crate::reduce::{axpy, dot};
use crate::sizes::KEPT;

#[derive(Clone, Debug)]
pub(crate) struct Solution {
    pub step: Vec<f64>,
    /// The predicted improvement `m(s)` of the step.
    pub predicted: f64,
    /// The norm `‖s‖_P` of the step.
    pub norm: f64,
    /// Whether the boundary of the region limits the step (α > 0).
    pub bounded: bool,
    /// The maximum of the model over the whole space, without the limit of the region. It is `None` if the model is not
    /// known to be concave.
    pub unbounded: Option<f64>,
    pub products: u64,
    /// An estimate of the largest absolute curvature of B, relative to P.
    pub curvature: f64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// The tolerance for the residual, relative to the gradient. Both are measured in the norm that is dual to the norm
    /// of the region.
    pub refine: f64,
    pub max_products: usize,
}

/// Solves the subproblem in Krylov subspaces. `product` computes B v, and `metric` computes P⁻¹ r.
pub(crate) fn krylov(
    product: &mut dyn FnMut(&[f64], &mut [f64]),
    metric: &dyn Fn(&[f64], &mut [f64]),
    g: &[f64],
    radius: f64,
    effort: Effort,
) -> Solution {
    let n = g.len();
    let most = effort.max_products.min((KEPT / n).max(16)).min(n).max(1);
    // The vectors q are orthonormal with respect to P, and w = P q. The tridiagonal matrix T consists of `diagonal` and
    // `beside`.
    let (mut q, mut w): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
    let (mut diagonal, mut beside): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    let mut t = g.to_vec();
    let mut y = vec![0.0; n];
    metric(&t, &mut y);
    let length = dot(&t, &y).max(0.0).sqrt();
    let nothing = || Solution {
        step: vec![0.0; n],
        predicted: 0.0,
        norm: 0.0,
        bounded: false,
        unbounded: None,
        products: 0,
        curvature: 0.0,
    };
    if length == 0.0 || !length.is_finite() {
        return nothing();
    }
    let mut next = length;
    let mut inner = Inner::default();
    while diagonal.len() < most {
        y.iter_mut().for_each(|x| *x /= next);
        t.iter_mut().for_each(|x| *x /= next);
        q.push(y.clone());
        w.push(t.clone());
        product(&y, &mut t);
        let k = q.len() - 1;
        diagonal.push(dot(&y, &t));
        for _ in 0..2 {
            for (q, w) in q.iter().zip(&w) {
                let overlap = dot(q, &t);
                axpy(-overlap, w, &mut t);
            }
        }
        metric(&t, &mut y);
        next = dot(&t, &y).max(0.0).sqrt();
        if !diagonal[k].is_finite() || !next.is_finite() {
            // A product has overflowed, so only the basis that was built before can be used.
            diagonal.pop();
            q.pop();
            w.pop();
            break;
        }
        inner = tridiagonal(&diagonal, &beside, length, radius);
        let residual = next * inner.h[k].abs();
        let scale = diagonal.iter().fold(0.0f64, |a, x| a.max(x.abs()));
        if residual <= effort.refine * length || next <= 1e-14 * scale {
            break;
        }
        beside.push(next);
    }
    if diagonal.is_empty() {
        return nothing();
    }
    inner.h.resize(q.len(), 0.0);
    let mut step = vec![0.0; n];
    for (h, q) in inner.h.iter().zip(&q) {
        axpy(*h, q, &mut step);
    }
    let curvature = (0..diagonal.len())
        .map(|i| {
            let side = |j: usize| beside.get(j).map_or(0.0, |x| x.abs());
            let left = if i > 0 { side(i - 1) } else { 0.0 };
            let right = if i + 1 < diagonal.len() { side(i) } else { 0.0 };
            diagonal[i].abs() + left + right
        })
        .fold(0.0, f64::max);
    Solution {
        step,
        predicted: inner.predicted,
        norm: inner.norm,
        bounded: inner.bounded,
        unbounded: (!inner.bounded).then_some(inner.predicted),
        products: diagonal.len() as u64,
        curvature,
    }
}

/// A solution in the coordinates of the Lanczos vectors.
#[derive(Clone, Debug, Default)]
struct Inner {
    h: Vec<f64>,
    predicted: f64,
    norm: f64,
    bounded: bool,
}

/// Solves the subproblem for a tridiagonal matrix and the gradient `length e₁`.
fn tridiagonal(diagonal: &[f64], beside: &[f64], length: f64, radius: f64) -> Inner {
    let k = diagonal.len();
    let mut g = vec![0.0; k];
    g[0] = length;
    let mut solve = |shift: f64, right: &[f64]| {
        let mut pivots = vec![0.0; k];
        let mut x = right.to_vec();
        for i in 0..k {
            let mut pivot = diagonal[i] + shift;
            if i > 0 {
                let factor = beside[i - 1] / pivots[i - 1];
                pivot -= factor * beside[i - 1];
                x[i] -= factor * x[i - 1];
            }
            let positive = pivot > 1e-15 * (diagonal[i].abs() + shift);
            if !positive {
                return None;
            }
            pivots[i] = pivot;
        }
        for i in (0..k).rev() {
            if i + 1 < k {
                x[i] -= beside[i] * x[i + 1];
            }
            x[i] /= pivots[i];
        }
        Some(x)
    };
    let spread = (0..k)
        .map(|i| {
            let left = if i > 0 { beside[i - 1].abs() } else { 0.0 };
            let right = if i + 1 < k { beside[i].abs() } else { 0.0 };
            diagonal[i].abs() + left + right
        })
        .fold(0.0, f64::max);
    let (h, shift) = secular(&mut solve, &g, radius, spread);
    // The value is m = gᵀh − ½hᵀTh, and (T + α)h = g up to rounding.
    let mut curved = 0.0;
    for i in 0..k {
        curved += diagonal[i] * h[i] * h[i];
        if i + 1 < k {
            curved += 2.0 * beside[i] * h[i] * h[i + 1];
        }
    }
    Inner {
        predicted: length * h[0] - 0.5 * curved,
        norm: dot(&h, &h).sqrt(),
        bounded: shift > 0.0,
        h,
    }
}

/// A function that computes `(B + αI)⁻¹ r` for a shift α and a vector r. It returns `None` if the matrix is not
/// positive definite.
pub(crate) type ShiftedSolve<'a> = dyn FnMut(f64, &[f64]) -> Option<Vec<f64>> + 'a;

/// Maximises gᵀh − ½hᵀBh subject to `‖h‖ ≤ radius` by solving the secular equation `‖(B + αI)⁻¹g‖ = radius`. `spread`
/// is an upper bound on the norm of B. Returns h and α.
pub(crate) fn secular(
    solve: &mut ShiftedSolve<'_>,
    g: &[f64],
    radius: f64,
    spread: f64,
) -> (Vec<f64>, f64) {
    let norm = |x: &[f64]| dot(x, x).sqrt();
    if let Some(h) = solve(0.0, g)
        && norm(&h) <= radius
    {
        return (h, 0.0);
    }
    // The shift of the solution is in (low, high]. At `high`, the matrix is positive definite and the step is inside
    // the region.
    let (mut low, mut high) = (
        0.0f64,
        1.0001 * spread + norm(g) / radius + f64::MIN_POSITIVE,
    );
    let mut shift = high.min(norm(g) / radius);
    let mut inside: Option<Vec<f64>> = None;
    for _ in 0..100 {
        match solve(shift, g) {
            None => low = shift,
            Some(h) => {
                let length = norm(&h);
                if (length - radius).abs() <= 1e-10 * radius {
                    return (h, shift);
                }
                let slope = solve(shift, &h).map_or(0.0, |x| dot(&x, &h));
                // This is Newton's step for 1/‖h‖ − 1/δ = 0.
                let newton = shift + length * length / slope * (length - radius) / radius;
                if length > radius {
                    low = shift;
                } else {
                    high = shift;
                    inside = Some(h);
                }
                if newton > low && newton < high {
                    shift = newton;
                    continue;
                }
            }
        }
        if high - low <= 1e-14 * high {
            break;
        }
        // The bisection is geometric while the bracket extends over orders of magnitude, and arithmetic afterwards.
        shift = if low > 0.0 && high > 4.0 * low {
            (low * high).sqrt()
        } else if low == 0.0 && high > 1e-12 * spread {
            1e-3 * high
        } else {
            0.5 * (low + high)
        };
    }
    // In the hard case, the shift is the negated least eigenvalue, and the step is too short. The corresponding
    // eigenvector leads to the boundary.
    let mut h = match inside {
        Some(h) => h,
        None => match solve(high, g) {
            Some(h) => h,
            None => g.iter().map(|x| x * radius / norm(g)).collect(),
        },
    };
    let mut v: Vec<f64> = (0..g.len())
        .map(|i| 1.0 + 0.3 * (i as f64 * 1.7).sin())
        .collect();
    for _ in 0..8 {
        if let Some(x) = solve(high, &v) {
            let length = norm(&x);
            if length.is_finite() && length > 0.0 {
                v = x.iter().map(|x| x / length).collect();
            }
        }
    }
    let (hh, hv, vv) = (dot(&h, &h), dot(&h, &v), dot(&v, &v));
    let room = radius * radius - hh;
    if room > 0.0 && vv > 0.0 {
        // There are two directions to the boundary. The direction along the gradient gains at least as much as the
        // other.
        let root = (hv * hv + vv * room).sqrt();
        let towards = if dot(g, &v) >= 0.0 { 1.0 } else { -1.0 };
        let tau = (-hv + towards * root) / vv;
        axpy(tau, &v, &mut h);
    }
    (h, high)
}

#[cfg(test)]
mod tests;
