//! Derivatives of elementwise operations that do not fit on one line of the table. Each derivative is a graph
//! expression of the arguments and of the result.

use super::elementwise::{ElemOp, INV_SQRT_2PI};
use crate::ir::{Graph, NodeId};

/// Returns `x` for use as the divisor of a slope, or ∞ if `x` is 0. A slope that would be infinite at 0 is then 0. Stan
/// Math does the same (`rev/fun/sqrt.hpp`). If the argument of a square root underflows, the gradient would otherwise
/// be 0 · ∞.
pub(super) fn infinite_at_zero(g: &mut Graph, x: NodeId) -> NodeId {
    let (zero, infinite) = (g.constant(0.0), g.constant(f64::INFINITY));
    let at_zero = g.elem(ElemOp::Eq, &[x, zero]);
    g.select(at_zero, infinite, x)
}

/// Returns the slope y xʸ⁻¹. If the slope is infinite because x is 0, returns 0, as Stan Math does (`rev/fun/pow.hpp`).
pub(super) fn slope_of_power(g: &mut Graph, x: NodeId, y: NodeId) -> NodeId {
    let (zero, one) = (g.constant(0.0), g.constant(1.0));
    let at_zero = g.elem(ElemOp::Eq, &[x, zero]);
    let steep = g.elem(ElemOp::Lt, &[y, one]);
    let infinite = g.select(steep, at_zero, zero);
    let base = g.select(infinite, one, x);
    let exponent = g.sub(y, one);
    let power = g.pow(base, exponent);
    let slope = g.mul(y, power);
    g.select(infinite, zero, slope)
}

/// Returns the derivative of `out` with respect to x. `out` is log Φ(x), plus x² / 2 if x is negative.
pub(super) fn scaled_normal_slope(g: &mut Graph, x: NodeId, out: NodeId) -> NodeId {
    let (zero, half) = (g.constant(0.0), g.constant(-0.5));
    let above = g.elem(ElemOp::Fmax, &[x, zero]);
    let square = g.square(above);
    let exponent = g.mul(half, square);
    let exponent = g.sub(exponent, out);
    let (ratio, c) = (g.exp(exponent), g.constant(INV_SQRT_2PI));
    let ratio = g.mul(c, ratio);
    let below = g.elem(ElemOp::Fmin, &[x, zero]);
    g.add(ratio, below)
}

/// Returns the derivative with respect to x of `out`, which is log P(a, x), or log Q(a, x) if `upper` is true.
pub(super) fn gamma_slope(g: &mut Graph, upper: bool, [a, x]: [NodeId; 2], out: NodeId) -> NodeId {
    let (one, log_x, norm) = (g.constant(1.0), g.log(x), g.elem(ElemOp::Lgamma, &[a]));
    let power = g.sub(a, one);
    let power = g.mul(power, log_x);
    let density = g.sub(power, x);
    let density = g.sub(density, norm);
    let ratio = g.sub(density, out);
    let slope = g.exp(ratio);
    if upper { g.neg(slope) } else { slope }
}

/// Returns the derivative of `by_a` with respect to x, where `by_a` is the derivative of `op` with respect to a. The
/// result is the derivative of `op` with respect to x, times (log x − ψ(a) − `by_a`).
pub(super) fn gamma_mixed(g: &mut Graph, op: ElemOp, [a, x]: [NodeId; 2], by_a: NodeId) -> NodeId {
    let value = g.elem(op, &[a, x]);
    let slope = gamma_slope(g, op == ElemOp::LogGammaQ, [a, x], value);
    let (log_x, psi) = (g.log(x), g.elem(ElemOp::Digamma, &[a]));
    let change = g.sub(log_x, psi);
    let change = g.sub(change, by_a);
    g.mul(slope, change)
}

/// Returns log x and log(1 − x), where x = inv_logit(t).
fn log_logits(g: &mut Graph, t: NodeId) -> [NodeId; 2] {
    let minus = g.neg(t);
    [minus, t].map(|t| {
        let log = g.elem(ElemOp::Log1pExp, &[t]);
        g.neg(log)
    })
}

pub(super) fn beta_slope(g: &mut Graph, [a, b, t]: [NodeId; 3], out: NodeId) -> NodeId {
    let [log_x, log_y] = log_logits(g, t);
    let (x, y, norm) = (
        g.mul(a, log_x),
        g.mul(b, log_y),
        g.elem(ElemOp::Lbeta, &[a, b]),
    );
    let density = g.add(x, y);
    let density = g.sub(density, norm);
    let ratio = g.sub(density, out);
    g.exp(ratio)
}

/// Returns the derivative of `by_shape` with respect to t, where `by_shape` is the derivative of the logarithm of the
/// incomplete beta function with respect to a or b.
pub(super) fn beta_mixed(
    g: &mut Graph,
    by_a: bool,
    [a, b, t]: [NodeId; 3],
    by_shape: NodeId,
) -> NodeId {
    let value = g.elem(ElemOp::LogIncBeta, &[a, b, t]);
    let slope = beta_slope(g, [a, b, t], value);
    let [log_x, log_y] = log_logits(g, t);
    let sum = g.add(a, b);
    let (log, shape) = if by_a { (log_x, a) } else { (log_y, b) };
    let (of_shape, of_sum) = (
        g.elem(ElemOp::Digamma, &[shape]),
        g.elem(ElemOp::Digamma, &[sum]),
    );
    let change = g.sub(log, of_shape);
    let change = g.add(change, of_sum);
    let change = g.sub(change, by_shape);
    g.mul(slope, change)
}

/// Returns the derivative of `out` with respect to z, where `out` is the logarithm of the distribution function of
/// Student's t distribution with n degrees of freedom.
pub(super) fn student_slope(g: &mut Graph, [n, z]: [NodeId; 2], out: NodeId) -> NodeId {
    let (half, one) = (g.constant(0.5), g.constant(1.0));
    let (above, below) = (g.add(n, one), g.mul(half, n));
    let above = g.mul(half, above);
    let pair = [half, below];
    let norm = g.elem(ElemOp::Lbeta, &pair);
    let log_n = g.log(n);
    let scale = g.mul(half, log_n);
    let (square, norm) = (g.square(z), g.add(norm, scale));
    let excess = g.div(square, n);
    let excess = g.elem(ElemOp::Log1p, &[excess]);
    let fall = g.mul(above, excess);
    let fall = g.add(fall, norm);
    let fall = g.add(fall, out);
    let ratio = g.neg(fall);
    g.exp(ratio)
}

/// Returns the derivative of `by_n` with respect to z, where `by_n` is the derivative with respect to n of the
/// logarithm of Student's distribution function.
pub(super) fn student_mixed(g: &mut Graph, [n, z]: [NodeId; 2], by_n: NodeId) -> NodeId {
    let value = g.elem(ElemOp::LogStudentCdf, &[n, z]);
    let slope = student_slope(g, [n, z], value);
    let (half, one) = (g.constant(0.5), g.constant(1.0));
    let above = g.add(n, one);
    let (upper, lower) = (g.mul(half, above), g.mul(half, n));
    let (upper, lower) = (
        g.elem(ElemOp::Digamma, &[upper]),
        g.elem(ElemOp::Digamma, &[lower]),
    );
    let square = g.square(z);
    let (excess, total) = (g.div(square, n), g.add(n, square));
    let excess = g.elem(ElemOp::Log1p, &[excess]);
    // Twice the derivative of the log density with respect to the degrees of freedom n.
    let (gap, ratio) = (g.sub(upper, lower), g.sub(square, one));
    let pull = g.div(ratio, total);
    let change = g.sub(gap, excess);
    let change = g.add(change, pull);
    let change = g.mul(half, change);
    let change = g.sub(change, by_n);
    g.mul(slope, change)
}

/// Returns exp(−h² (1 + a²) / 2) / (1 + a²).
pub(super) fn gauss_tail(g: &mut Graph, h: NodeId, a: NodeId) -> NodeId {
    let (one, half) = (g.constant(1.0), g.constant(-0.5));
    let (h, a) = (g.square(h), g.square(a));
    let stretch = g.add(one, a);
    let power = g.mul(h, stretch);
    let power = g.mul(half, power);
    let e = g.exp(power);
    g.div(e, stretch)
}

/// Returns the derivative of Owen's T with respect to h: −φ(h) (Φ(a h) − ½).
pub(super) fn owens_slope(g: &mut Graph, h: NodeId, a: NodeId) -> NodeId {
    let (half, density, arm) = (g.constant(0.5), g.normal_density(h), g.mul(a, h));
    let p = g.elem(ElemOp::NormalCdf, &[arm]);
    let gap = g.sub(half, p);
    g.mul(density, gap)
}

/// Returns the derivative of `out` with respect to z, where `out` is the logarithm of the skew normal distribution
/// function with shape a.
pub(super) fn skew_slope(g: &mut Graph, [z, a]: [NodeId; 2], out: NodeId) -> NodeId {
    let (half, norm) = (g.constant(-0.5), g.constant((2.0 * INV_SQRT_2PI).ln()));
    let (square, arm) = (g.square(z), g.mul(a, z));
    let (power, p) = (g.mul(half, square), g.elem(ElemOp::LogNormalCdf, &[arm]));
    let density = g.add(power, p);
    let density = g.add(density, norm);
    let ratio = g.sub(density, out);
    g.exp(ratio)
}

/// Returns the derivative of the logarithm of the skew normal distribution function with respect to the shape: −exp(−z²
/// (1 + a²) / 2) / (π (1 + a²)), divided by the distribution function.
pub(super) fn skew_shape(g: &mut Graph, [z, a]: [NodeId; 2], out: NodeId) -> NodeId {
    let (one, half) = (g.constant(1.0), g.constant(-0.5));
    let (square, shape) = (g.square(z), g.square(a));
    let stretch = g.add(one, shape);
    let power = g.mul(square, stretch);
    let power = g.mul(half, power);
    let ratio = g.sub(power, out);
    let e = g.exp(ratio);
    let slope = g.div(e, stretch);
    let c = g.constant(-std::f64::consts::FRAC_1_PI);
    g.mul(c, slope)
}

/// Returns cos u − 1 = −2 sin²(u/2).
fn dip(g: &mut Graph, u: NodeId) -> NodeId {
    let (half, two) = (g.constant(0.5), g.constant(-2.0));
    let u = g.mul(half, u);
    let sine = g.elem(ElemOp::Sin, &[u]);
    let square = g.square(sine);
    g.mul(two, square)
}

/// Returns exp(k (cos u − 1) − `log_area`). This is the density of a truncated von Mises distribution at u, one end of
/// the range.
pub(super) fn von_mises_end(g: &mut Graph, u: NodeId, k: NodeId, log_area: NodeId) -> NodeId {
    let dip = dip(g, u);
    let power = g.mul(k, dip);
    let power = g.sub(power, log_area);
    g.exp(power)
}

/// Returns the derivative of the mean with respect to the upper end u. This derivative is the density at u, times the
/// difference between u and the mean.
pub(super) fn von_mises_lever(g: &mut Graph, args: [NodeId; 3], u: NodeId, mean: NodeId) -> NodeId {
    let area = g.elem(ElemOp::VonMisesArea, &args);
    let density = von_mises_end(g, u, args[2], area);
    let dip = dip(g, u);
    let gap = g.sub(dip, mean);
    g.mul(density, gap)
}

/// Returns the derivative of `out` = log I_v(x) with respect to x, which is I_{v+1}/I_v + v/x.
pub(super) fn bessel_slope(g: &mut Graph, [v, x]: [NodeId; 2], out: NodeId) -> NodeId {
    let one = g.constant(1.0);
    let next = g.add(v, one);
    let next = g.elem(ElemOp::LogBesselI, &[next, x]);
    let ratio = g.sub(next, out);
    let (ratio, x) = (g.exp(ratio), infinite_at_zero(g, x));
    let power = g.div(v, x);
    g.add(ratio, power)
}

/// Returns the derivative of `by_v` with respect to x, where `by_v` is the derivative of log I_v(x) with respect to the
/// order v.
pub(super) fn bessel_mixed(g: &mut Graph, [v, x]: [NodeId; 2], by_v: NodeId) -> NodeId {
    let (one, this) = (g.constant(1.0), g.elem(ElemOp::LogBesselI, &[v, x]));
    let order = g.add(v, one);
    let next = g.elem(ElemOp::LogBesselI, &[order, x]);
    let by_next = g.elem(ElemOp::LogBesselIV, &[order, x]);
    let (ratio, change) = (g.sub(next, this), g.sub(by_next, by_v));
    let (ratio, x) = (g.exp(ratio), infinite_at_zero(g, x));
    let (ratio, power) = (g.mul(ratio, change), g.recip(x));
    g.add(ratio, power)
}

/// Returns `factor` times the difference or sum of the Bessel functions of the next lower and the next higher order.
pub(super) fn neighbours(
    g: &mut Graph,
    op: ElemOp,
    [n, x]: [NodeId; 2],
    join: ElemOp,
    factor: f64,
) -> NodeId {
    let (one, factor) = (g.constant(1.0), g.constant(factor));
    let (below, above) = (g.sub(n, one), g.add(n, one));
    let (below, above) = (g.elem(op, &[below, x]), g.elem(op, &[above, x]));
    let both = g.elem(join, &[below, above]);
    g.mul(factor, both)
}

/// Returns the derivative of `out` of order `step` with respect to w. `out` is the derivative of order k of the
/// density, divided by the density itself.
pub(super) fn wiener_change(
    g: &mut Graph,
    [x, w, k]: [NodeId; 3],
    step: f64,
    out: NodeId,
) -> NodeId {
    let step = g.constant(step);
    let next = g.add(k, step);
    let next = g.elem(ElemOp::WienerRatio, &[x, w, next]);
    let of_density = g.elem(ElemOp::WienerRatio, &[x, w, step]);
    let product = g.mul(out, of_density);
    g.sub(next, product)
}

/// Returns the derivative e⁻ʷ / (1 + w) of Lambert's function, whose value is `w`.
pub(super) fn lambert_slope(g: &mut Graph, w: NodeId) -> NodeId {
    let (minus, one) = (g.neg(w), g.constant(1.0));
    let (e, d) = (g.exp(minus), g.add(one, w));
    g.div(e, d)
}

pub(super) fn beta_density(g: &mut Graph, [a, b]: [NodeId; 2], x: NodeId) -> NodeId {
    let (one, minus, norm) = (g.constant(1.0), g.neg(x), g.elem(ElemOp::Lbeta, &[a, b]));
    let (log_x, log_y) = (g.log(x), g.elem(ElemOp::Log1p, &[minus]));
    let (a, b) = (g.sub(a, one), g.sub(b, one));
    let (x, y) = (g.mul(a, log_x), g.mul(b, log_y));
    let density = g.add(x, y);
    g.sub(density, norm)
}

/// Returns the derivative of a quantile x of the beta distribution with respect to a shape parameter. The result is the
/// derivative of the distribution function with respect to this parameter, divided by the density. `by_shape` is the
/// derivative of the logarithm of the distribution function.
pub(super) fn quantile_shape(
    g: &mut Graph,
    by_shape: ElemOp,
    [a, b]: [NodeId; 2],
    x: NodeId,
) -> NodeId {
    let t = g.elem(ElemOp::Logit, &[x]);
    let slope = g.elem(by_shape, &[a, b, t]);
    let (log_p, density) = (
        g.elem(ElemOp::LogIncBeta, &[a, b, t]),
        beta_density(g, [a, b], x),
    );
    let ratio = g.sub(log_p, density);
    let ratio = g.exp(ratio);
    let product = g.mul(slope, ratio);
    g.neg(product)
}
