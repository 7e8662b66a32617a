//! Building blocks for families in which local parameters depend on global parameters. The module chooses the global
//! parameters, computes the features of their values, and sums features over blocks of lanes.

use jensen_density::Pattern;
use jensen_math::simd::{F64x8, LANES, Simd};
use jensen_math::vmath as vm;

use super::rows::{LaneRow, Order, Rows, RowsMut};
use crate::noise::{NoisePurpose, NoiseSource};
use crate::reduce::{dot, sum};
use crate::sizes::WIDTH;
use crate::sparse::Symbolic;

/// A coordinate is a global parameter if it interacts with at least this many times as many coordinates as the median
/// coordinate does.
const MANY: usize = 3;

/// The largest number of global parameters. They have a full covariance, and each local parameter has a coefficient for
/// every feature of them.
pub(crate) const MOST_GLOBALS: usize = 24;

/// If there are at most this many global parameters, the product of any two is a feature. If there are more, only
/// squares are features.
const PAIRED: usize = 4;

/// The numbers of standard deviations at which s and h saturate. Most draws of a global parameter are near its middle.
/// They contain little information about the local parameters in its long tail, for example where the scale of a group
/// approaches zero. If x itself replaced h, chains of the refinement would take up to nine times as many gradients to
/// return from the tail of `models/electric_pairs`, but fewer for `models/stochastic_volatility`.
const SATURATION: f64 = 3.0;

/// The number of standard deviations at which h saturates (see [`SATURATION`]). It is larger, because h only keeps the
/// linear part from growing without limit.
const HOLD: f64 = 4.0;

/// If there are at most this many global parameters, the trapezoidal rule averages the variances of local parameters
/// over a lattice of nodes. The nodes are the integers up to a fixed distance. If there are more global parameters, the
/// average is over a fixed number of points.
const LATTICE: usize = 3;

/// The distance of the farthest nodes, in standard deviations. A normal has less than 1e-6 of its mass beyond it.
const FAR: i32 = 5;

/// The number of fixed points if there are too many global parameters for a lattice.
const POINTS: usize = 512;

#[derive(Clone, Copy)]
pub(super) struct Weights<'a> {
    pub means: &'a [f64],
    pub nonzeros: &'a [f64],
}

/// The value of every feature in the lanes of a block, or the derivative with respect to every feature. Regression
/// coefficients have different features from means and scales.
#[derive(Clone, Debug, Default)]
pub(crate) struct Featured {
    pub plain: Vec<LaneRow>,
    pub bounded: Vec<LaneRow>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Features {
    globals: usize,
    products: Vec<(usize, usize)>,
    /// The expectations of s², s⁴ and h² under a standard normal distribution.
    moments: [f64; 3],
}

impl Features {
    pub(crate) fn new(globals: usize) -> Self {
        let all = (0..globals).flat_map(|k| (k..globals).map(move |l| (k, l)));
        // For functions that decay this fast, the trapezoidal rule is exact up to rounding.
        let (mut total, mut second, mut fourth, mut of_held) = (0.0, 0.0, 0.0, 0.0);
        for i in -400..=400 {
            let x = f64::from(i) / 40.0;
            let (weight, s) = ((-0.5 * x * x).exp(), saturated(x).0);
            total += weight;
            second += weight * s * s;
            fourth += weight * s.powi(4);
            of_held += weight * held(x).0.powi(2);
        }
        Self {
            globals,
            products: all.filter(|(k, l)| k == l || globals <= PAIRED).collect(),
            moments: [second, fourth, of_held].map(|moment| moment / total),
        }
    }

    pub(crate) fn count(&self) -> usize {
        1 + self.globals + self.products.len()
    }

    pub(crate) fn at(&self, x: &[f64]) -> Vec<f64> {
        let products = self
            .products
            .iter()
            .map(|&(k, l)| saturated(x[k]).0 * saturated(x[l]).0);
        std::iter::once(1.0)
            .chain(x.iter().map(|x| held(*x).0))
            .chain(products)
            .collect()
    }

    pub(crate) fn bounded_at(&self, x: &[f64]) -> Vec<f64> {
        let mut out = self.at(x);
        for (feature, x) in out[1..].iter_mut().zip(x) {
            *feature = saturated(*x).0;
        }
        out
    }

    pub(crate) fn rows(&self, x: &[LaneRow]) -> Featured {
        let mut out = Featured {
            plain: vec![[0.0; WIDTH]; self.count()],
            bounded: Vec::new(),
        };
        let mut lane = vec![0.0; self.globals];
        for l in 0..WIDTH {
            lane.iter_mut().zip(x).for_each(|(to, row)| *to = row[l]);
            let values = out.plain.iter_mut().zip(self.at(&lane));
            values.for_each(|(row, value)| row[l] = value);
        }
        out.bounded.clone_from(&out.plain);
        for (row, x) in out.bounded[1..].iter_mut().zip(x) {
            row.iter_mut()
                .zip(x)
                .for_each(|(s, x)| *s = saturated(*x).0);
        }
        out
    }

    /// Adds derivatives with respect to x to `out`, computed from derivatives with respect to the features. Regression
    /// coefficients have the same features as means and scales, except that s replaces h.
    pub(crate) fn pull(&self, x: &[LaneRow], by: &Featured, out: &mut [LaneRow]) {
        for (((out, plain), bounded), x) in (out.iter_mut().zip(&by.plain[1..]))
            .zip(&by.bounded[1..])
            .zip(x)
        {
            for l in 0..WIDTH {
                out[l] += plain[l] * held(x[l]).1 + bounded[l] * saturated(x[l]).1;
            }
        }
        let products = 1 + self.globals;
        let by_feature: Vec<LaneRow> = (by.plain.iter().zip(&by.bounded))
            .map(|(plain, bounded)| std::array::from_fn(|l| plain[l] + bounded[l]))
            .collect();
        for (&(k, l), by) in self.products.iter().zip(&by_feature[products..]) {
            for lane in 0..WIDTH {
                let ((own, slope), (other, steepness)) =
                    (saturated(x[k][lane]), saturated(x[l][lane]));
                out[k][lane] += by[lane] * slope * other;
                out[l][lane] += by[lane] * own * steepness;
            }
        }
    }

    pub(super) fn means(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.count()];
        out[0] = 1.0;
        for (&(k, l), mean) in self.products.iter().zip(&mut out[1 + self.globals..]) {
            *mean = if k == l { self.moments[0] } else { 0.0 };
        }
        out
    }

    pub(super) fn variances(&self) -> Vec<f64> {
        let [second, fourth, of_held] = self.moments;
        let mut out = vec![of_held; self.count()];
        out[0] = 0.0;
        for (&(k, l), variance) in self.products.iter().zip(&mut out[1 + self.globals..]) {
            *variance = if k == l {
                fourth - second * second
            } else {
                second * second
            };
        }
        out
    }
}

/// Computes `h(x)` and its slope.
fn held(x: f64) -> (f64, f64) {
    let beyond = 1.0 + (x / HOLD).powi(16);
    let r = beyond.sqrt().sqrt().sqrt().sqrt().recip();
    (x * r, r / beyond)
}

/// Computes `s(x)` and its slope.
fn saturated(x: f64) -> (f64, f64) {
    let r = 1.0 / (1.0 + (x / SATURATION) * (x / SATURATION)).sqrt();
    (x * r, r * r * r)
}

pub(super) fn globals_of(pattern: &Pattern) -> Vec<usize> {
    let degree = |i: &usize| pattern.neighbours(*i).len();
    let mut degrees: Vec<usize> = (0..pattern.dim()).map(|i| degree(&i)).collect();
    degrees.sort_unstable();
    let median = degrees.get(degrees.len() / 2).copied().unwrap_or(0);
    let mut globals: Vec<usize> = (0..pattern.dim())
        .filter(|i| degree(i) >= MANY * median.max(1))
        .collect();
    globals.sort_by_key(|i| (std::cmp::Reverse(degree(i)), *i));
    globals
}

/// The number of vector registers of a row.
const PARTS: usize = WIDTH / LANES;

// These are plain loops, because closures are not compiled with the processor features of the enclosing kernel.

#[inline(always)]
pub(super) fn load<V: F64x8>(row: &LaneRow) -> [V; PARTS] {
    let mut out = [V::splat(0.0); PARTS];
    for (part, out) in out.iter_mut().enumerate() {
        // SAFETY: a part of a row has this many numbers.
        *out = unsafe { V::load(row.as_ptr().add(part * LANES)) };
    }
    out
}

#[inline(always)]
pub(super) fn store<V: F64x8>(parts: [V; PARTS], row: &mut LaneRow) {
    for (part, x) in parts.into_iter().enumerate() {
        // SAFETY: a part of a row has this many numbers, which may be written.
        unsafe { x.store(row.as_mut_ptr().add(part * LANES)) };
    }
}

#[inline(always)]
fn times<V: F64x8>(a: [V; PARTS], b: [V; PARTS]) -> [V; PARTS] {
    let mut out = a;
    for (out, b) in out.iter_mut().zip(b) {
        *out = *out * b;
    }
    out
}

#[inline(always)]
fn minus<V: F64x8>(a: [V; PARTS]) -> [V; PARTS] {
    let mut out = a;
    for out in &mut out {
        *out = -*out;
    }
    out
}

#[inline(always)]
fn plus<V: F64x8>(sum: [V; PARTS], factor: [V; PARTS], x: [V; PARTS]) -> [V; PARTS] {
    let mut out = sum;
    for part in 0..PARTS {
        out[part] = sum[part] + factor[part] * x[part];
    }
    out
}

#[inline(always)]
fn add<V: F64x8>(a: [V; PARTS], b: [V; PARTS]) -> [V; PARTS] {
    let mut out = a;
    for (out, b) in out.iter_mut().zip(b) {
        *out = *out + b;
    }
    out
}

#[inline(always)]
fn weigh<V: F64x8>(theta: &[f64], features: &[LaneRow]) -> [V; PARTS] {
    let mut out = [V::splat(0.0); PARTS];
    for (t, row) in theta.iter().zip(features) {
        out = plus(out, [V::splat(*t); PARTS], load(row));
    }
    out
}

/// Computes `out += θ adjoint`.
#[inline(always)]
fn spread<V: F64x8>(theta: &[f64], adjoint: [V; PARTS], out: &mut [LaneRow]) {
    for (t, row) in theta.iter().zip(out) {
        store(plus(load(row), [V::splat(*t); PARTS], adjoint), row);
    }
}

/// Computes `out += θ adjoint + η other`.
#[inline(always)]
fn spread_two<V: F64x8>(
    theta: &[f64],
    adjoint: [V; PARTS],
    eta: &[f64],
    other: [V; PARTS],
    out: &mut [LaneRow],
) {
    for ((t, e), row) in theta.iter().zip(eta).zip(out) {
        let sum = plus(load(row), [V::splat(*t); PARTS], adjoint);
        store(plus(sum, [V::splat(*e); PARTS], other), row);
    }
}

/// Computes `θ · φ` in every lane, for each row of weights.
pub(crate) fn weighted(thetas: &[f64], features: &[LaneRow], out: &mut [LaneRow]) {
    weighted_kernel(Simd::detect(), thetas, features, out);
}

/// Computes `out += Σ θ adjoint` over rows of weights and their adjoints.
pub(crate) fn spread_all(thetas: &[f64], adjoints: &[LaneRow], out: &mut [LaneRow]) {
    spread_kernel(Simd::detect(), thetas, adjoints, out);
}

/// Computes `scale = e^(−a)`, `y`, and the draws `m + y`, from the last local parameter to the first. Writes the draws
/// to their rows of `z`.
#[expect(
    clippy::too_many_arguments,
    reason = "what is read and what is written"
)]
pub(super) fn solve(
    symbolic: &Symbolic,
    weights: Weights<'_>,
    features: &Featured,
    (noise, from): (Rows<'_>, usize),
    y: &mut [LaneRow],
    scale: &mut [LaneRow],
    z: &mut RowsMut<'_>,
    locals: Order<'_>,
) {
    let Weights { means, nonzeros } = weights;
    solve_kernel(
        Simd::detect(),
        symbolic,
        means,
        nonzeros,
        features,
        noise,
        from,
        y,
        scale,
        z,
        locals,
    );
}

/// Computes derivatives with respect to the noise from derivatives with respect to the draws of the local parameters.
/// The input is in the rows of `grad`. The function writes the result to the rows of `out`, beginning at row `to`, and
/// adds the derivatives with respect to the features to `by_feature`.
#[expect(
    clippy::too_many_arguments,
    reason = "all that was computed on the way there"
)]
pub(super) fn pull_noise(
    symbolic: &Symbolic,
    weights: Weights<'_>,
    features: &Featured,
    (noise, from): (Rows<'_>, usize),
    to: usize,
    y: &[LaneRow],
    scale: &[LaneRow],
    (grad, locals): (Rows<'_>, Order<'_>),
    out: &mut RowsMut<'_>,
    by_feature: &mut Featured,
) {
    let Weights { means, nonzeros } = weights;
    pull_kernel(
        Simd::detect(),
        symbolic,
        means,
        nonzeros,
        features,
        noise,
        from,
        to,
        y,
        scale,
        grad,
        locals,
        out,
        by_feature,
    );
}

jensen_math::simd_fn! {
    fn weighted_kernel, weighted_kernel_fn = <V>(thetas: &[f64], features: &[LaneRow], out: &mut [LaneRow]) {
        for (theta, out) in thetas.chunks_exact(features.len()).zip(out) {
            store(weigh::<V>(theta, features), out);
        }
    }

    fn spread_kernel, spread_kernel_fn = <V>(thetas: &[f64], adjoints: &[LaneRow], out: &mut [LaneRow]) {
        for (theta, adjoint) in thetas.chunks_exact(out.len()).zip(adjoints) {
            spread(theta, load::<V>(adjoint), out);
        }
    }

    fn solve_kernel, solve_kernel_fn = <V>(symbolic: &Symbolic, means: &[f64], nonzeros: &[f64], features: &Featured, noise: Rows<'_>, from: usize, y: &mut [LaneRow], scale: &mut [LaneRow], z: &mut RowsMut<'_>, locals: Order<'_>) {
        let f = features.plain.len();
        for j in (0..symbolic.dim()).rev() {
            let p = symbolic.diagonal(j);
            let mut own = weigh::<V>(&nonzeros[p * f..(p + 1) * f], &features.plain);
            for a in &mut own {
                *a = vm::exp(-*a);
            }
            store(own, &mut scale[j]);
            own = times(own, load(noise.row(from + j)));
            for (p, i) in symbolic.below(j) {
                let r = weigh::<V>(&nonzeros[p * f..(p + 1) * f], &features.bounded);
                own = plus(own, minus(r), load(&y[i]));
            }
            store(own, &mut y[j]);
            let mean = weigh::<V>(&means[j * f..(j + 1) * f], &features.plain);
            store(add(mean, own), z.row(locals.of(j)));
        }
    }

    fn pull_kernel, pull_kernel_fn = <V>(symbolic: &Symbolic, means: &[f64], nonzeros: &[f64], features: &Featured, noise: Rows<'_>, from: usize, to: usize, y: &[LaneRow], scale: &[LaneRow], grad: Rows<'_>, locals: Order<'_>, out: &mut RowsMut<'_>, by_feature: &mut Featured) {
        let f = features.plain.len();
        for j in 0..symbolic.dim() {
            *out.row(to + j) = *grad.row(locals.of(j));
        }
        for j in 0..symbolic.dim() {
            let own = load::<V>(out.row(to + j));
            let p = symbolic.diagonal(j);
            let by_noise = times(own, load(&scale[j]));
            let adjoint = minus(times(by_noise, load(noise.row(from + j))));
            let of_mean = load::<V>(grad.row(locals.of(j)));
            spread_two(&nonzeros[p * f..(p + 1) * f], adjoint, &means[j * f..(j + 1) * f], of_mean, &mut by_feature.plain);
            let own = minus(own);
            for (p, i) in symbolic.below(j) {
                let weights = &nonzeros[p * f..(p + 1) * f];
                let r = weigh::<V>(weights, &features.bounded);
                let later = out.row(to + i);
                store(plus(load(later), own, r), later);
                spread(weights, times(own, load(&y[i])), &mut by_feature.bounded);
            }
            store(by_noise, out.row(to + j));
        }
    }
}

pub(super) fn nodes(k: usize) -> Vec<(Vec<f64>, f64)> {
    if k > LATTICE {
        let source = NoiseSource::new(0, Simd::Scalar);
        let x = source.matched(NoisePurpose::Final, 0, k, POINTS);
        let at = |point| (0..k).map(|i| x[i * POINTS + point]).collect();
        return (0..POINTS)
            .map(|point| (at(point), 1.0 / POINTS as f64))
            .collect();
    }
    let mut points = vec![Vec::new()];
    for _ in 0..k {
        let longer = points.iter().flat_map(|point: &Vec<f64>| {
            (-FAR..=FAR).map(|i| [&point[..], &[f64::from(i)]].concat())
        });
        points = longer.collect();
    }
    points.retain(|point| dot(point, point) <= f64::from(FAR * FAR));
    let masses: Vec<f64> = points.iter().map(|x| (-0.5 * dot(x, x)).exp()).collect();
    let total = sum(&masses);
    points
        .into_iter()
        .zip(masses)
        .map(|(x, mass)| (x, mass / total))
        .collect()
}

/// Computes `out[row, f] += Σ_lanes adjoint φ_f`.
pub(super) fn add_products(features: &[LaneRow], adjoints: &[LaneRow], out: &mut [f64]) {
    for (adjoint, out) in adjoints.iter().zip(out.chunks_mut(features.len())) {
        for (feature, out) in features.iter().zip(out) {
            *out += dot(adjoint, feature);
        }
    }
}
