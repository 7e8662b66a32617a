//! Gauss's hypergeometric function 2F1 for every z < 1.

use super::number::{Number, Twofold};
use super::{Hypergeometric, LOSS, TERMS, TOO_LOSSY, loss};

/// The value of a function of N arguments, together with its derivatives with respect to these arguments.
#[derive(Clone, Copy)]
struct Jet<T, const N: usize> {
    value: T,
    first: [T; N],
    second: [[T; N]; N],
}

impl<T: Number, const N: usize> Jet<T, N> {
    fn constant(x: f64) -> Self {
        let zero = T::of(0.0);
        Self {
            value: T::of(x),
            first: [zero; N],
            second: [[zero; N]; N],
        }
    }

    fn linear(value: T, first: [T; N]) -> Self {
        Self {
            value,
            first,
            ..Self::constant(0.0)
        }
    }

    fn zip(self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        let by = |i: usize, j: usize| f(self.second[i][j], other.second[i][j]);
        Self {
            value: f(self.value, other.value),
            first: std::array::from_fn(|i| f(self.first[i], other.first[i])),
            second: std::array::from_fn(|i| std::array::from_fn(|j| by(i, j))),
        }
    }

    fn plus(self, other: Self) -> Self {
        self.zip(other, |x, y| x + y)
    }

    fn minus(self, other: Self) -> Self {
        self.zip(other, |x, y| x - y)
    }

    fn scale(self, c: T) -> Self {
        self.zip(self, |x, _| x * c)
    }

    fn times(self, other: Self, order: usize) -> Self {
        let mut out = Self::constant(0.0);
        out.value = self.value * other.value;
        for i in 0..if order >= 1 { N } else { 0 } {
            out.first[i] = self.first[i] * other.value + self.value * other.first[i];
            for j in 0..if order >= 2 { i + 1 } else { 0 } {
                let ends = self.second[i][j] * other.value + self.value * other.second[i][j];
                let cross = self.first[i] * other.first[j] + self.first[j] * other.first[i];
                out.second[i][j] = ends + cross;
                out.second[j][i] = out.second[i][j];
            }
        }
        out
    }

    fn all(&self) -> impl Iterator<Item = f64> + '_ {
        let first = self.first.iter().map(|x| x.rounded());
        let second = self.second.iter().flatten().map(|x| x.rounded());
        std::iter::once(self.value.rounded())
            .chain(first)
            .chain(second)
    }

    fn rounded(&self) -> Jet<f64, N> {
        Jet {
            value: self.value.rounded(),
            first: self.first.map(|x| x.rounded()),
            second: self.second.map(|row| row.map(|x| x.rounded())),
        }
    }
}

/// The function 2F1 and its first and second derivatives with respect to z, each with its derivatives with respect to
/// a, b and c.
type Local<T> = [Jet<T, 3>; 3];

struct Parameters<T> {
    values: [T; 3],
}

impl<T: Number> Parameters<T> {
    fn sum(&self, by: [f64; 3], constant: f64) -> Jet<T, 3> {
        let by = by.map(T::of);
        let terms = (0..3).fold(T::of(constant), |sum, i| sum + by[i] * self.values[i]);
        Jet::linear(terms, by)
    }
}

/// Sums a Taylor series at distance `x` from its centre. `head` contains the first two coefficients, and `next(k,
/// before, last)` computes the coefficient of order k + 2 from the two preceding coefficients. Returns the sum and the
/// ratio of the largest term to the sum, or `None` if the series does not converge.
fn taylor<T: Number>(
    head: [Jet<T, 3>; 2],
    x: T,
    enough: f64,
    next: impl Fn(f64, Jet<T, 3>, Jet<T, 3>) -> Jet<T, 3>,
) -> Option<(Local<T>, f64)> {
    let [mut before, mut last] = head;
    let second = last.scale(x);
    let mut sums: Local<T> = [before.plus(second), last, Jet::constant(0.0)];
    let mut powers = [x, T::of(1.0), T::of(0.0)];
    let heads = before.all().chain(second.all());
    let mut largest = heads.fold(0.0f64, |most, x| most.max(x.abs()));
    let mut quiet = 0;
    for k in 2..TERMS {
        let k = k as f64;
        let new = next(k - 2.0, before, last);
        (before, last) = (last, new);
        powers = [powers[0] * x, powers[0], powers[1]];
        let factors = [T::of(1.0), T::of(k), T::of(k * (k - 1.0))];
        let mut done = k > enough;
        let value = sums[0].value.rounded().abs();
        for m in 0..3 {
            let term = new.scale(powers[m] * factors[m]);
            sums[m] = sums[m].plus(term);
            let size = sums[m].value.rounded().abs().max(value);
            for (t, s) in term.all().zip(sums[m].all()) {
                done &= t.abs() <= T::EPSILON * s.abs().max(size);
                if m == 0 {
                    largest = largest.max(t.abs());
                }
            }
        }
        if !value.is_finite() {
            return None;
        }
        // A single coefficient may vanish, so one small term does not imply convergence.
        quiet = if done { quiet + 1 } else { 0 };
        if quiet == 2 {
            return Some((sums, loss(largest, sums[0].value.rounded().abs())));
        }
    }
    None
}

/// Returns 2F1 at x = 1 − y in (−0.6, 1). For x up to 1/2, the code sums the hypergeometric series. For larger x, it
/// continues from 1/2 with Taylor series, and each of them halves the distance to 1.
fn local<T: Number>([a, b, c]: [f64; 3], x: f64, y: f64, order: usize) -> Option<(Local<T>, f64)> {
    let p = Parameters {
        values: [a, b, c].map(T::of),
    };
    let largest = a.abs().max(b.abs()).max(c.abs());
    // From this coefficient on, the coefficients decrease and none of them vanishes.
    let enough = 3.0 + [a, b, c].iter().fold(0.0f64, |most, x| most.max(-x));
    let to = if x < 0.6 { x } else { 0.5 };
    let (one, zero) = (T::of(1.0), Jet::constant(0.0));
    // The ratio of consecutive terms is (a + k) (b + k) / ((c + k) (k + 1)).
    let ratio = |k: f64, f: Jet<T, 3>| -> Jet<T, 3> {
        let above = p
            .sum([1.0, 0.0, 0.0], k)
            .times(p.sum([0.0, 1.0, 0.0], k), order);
        let r = one / (T::of(c) + T::of(k));
        let square = r * r;
        let mut below = Jet::linear(r, [T::of(0.0), T::of(0.0), T::of(0.0) - square]);
        below.second[2][2] = (square + square) * r;
        f.times(above, order)
            .times(below, order)
            .scale(one / T::of(k + 1.0))
    };
    let start = Jet::constant(1.0);
    let head = [start, ratio(0.0, start)];
    let (mut found, mut loss) = taylor(head, T::of(to), enough, |k, _, last| ratio(k + 1.0, last))?;
    let mut far = 0.5;
    while x >= 0.6 && far > y {
        let here = 1.0 - far;
        // The step halves the distance to 1, or ends at the point itself. The distance serves as the unit of length,
        // because its powers may be too large.
        let next = if y < 0.5 * far { 0.5 * far } else { y };
        let unit = T::of(far);
        let step = one - T::of(next) / unit;
        let slope_factor = T::of(1.0 - 2.0 * here);
        let mixed = p.sum([-here, -here, 1.0], -here);
        let head = [found[0], found[1].scale(unit)];
        let (moved, lost) = taylor(head, step, enough.max(0.5 * largest), |k, before, last| {
            let push = mixed.plus(Jet::linear(slope_factor * T::of(k), [T::of(0.0); 3]));
            let pull = p
                .sum([1.0, 0.0, 0.0], k)
                .times(p.sum([0.0, 1.0, 0.0], k), order);
            let rest = before.times(pull, order).scale(unit);
            let rest = rest.minus(last.times(push, order).scale(T::of(k + 1.0)));
            rest.scale(one / (T::of(here) * T::of((k + 2.0) * (k + 1.0))))
        })?;
        let slope = one / unit;
        found = [
            moved[0],
            moved[1].scale(slope),
            moved[2].scale(slope * slope),
        ];
        loss = loss.max(lost);
        far = next;
    }
    if order < 2 {
        found[2] = zero;
    }
    Some((found, loss))
}

/// Computes the function at x = 1 − y. The derivatives are with respect to a, b, c and x.
fn in_unit(parameters: [f64; 3], x: f64, y: f64, order: usize) -> Jet<f64, 4> {
    let found = match local::<f64>(parameters, x, y, order) {
        Some((found, loss)) if loss < LOSS => Some(found),
        None => None,
        Some(_) => local::<Twofold>(parameters, x, y, order)
            .filter(|(_, loss)| *loss < TOO_LOSSY)
            .map(|(found, _)| [0, 1, 2].map(|m| found[m].rounded())),
    };
    let Some([f, by_x, twice]) = found else {
        return Jet::constant(0.0).zip(Jet::constant(0.0), |_, _| f64::NAN);
    };
    let mut out = Jet::<f64, 4>::constant(f.value);
    for i in 0..3 {
        out.first[i] = f.first[i];
        (0..3).for_each(|j| out.second[i][j] = f.second[i][j]);
        out.second[i][3] = by_x.first[i];
        out.second[3][i] = by_x.first[i];
    }
    out.first[3] = by_x.value;
    out.second[3][3] = twice.value;
    out
}

pub(super) fn hypergeometric_2f1(a: f64, b: f64, c: f64, z: f64, order: usize) -> Hypergeometric {
    let found = if z > -0.5 {
        in_unit([a, b, c], z, 1.0 - z, order)
    } else if f64::min(a, c - b) >= f64::min(b, c - a) {
        pfaff([a, b, c], z, order)
    } else {
        // The function is symmetric in a and b.
        let swap = [1, 0, 2, 3];
        let f = pfaff([b, a, c], z, order);
        Jet {
            value: f.value,
            first: swap.map(|i| f.first[i]),
            second: swap.map(|i| swap.map(|j| f.second[i][j])),
        }
    };
    Hypergeometric {
        value: found.value,
        first: found.first[..if order >= 1 { 4 } else { 0 }].to_vec(),
        second: found.second[..if order >= 2 { 4 } else { 0 }].concat(),
    }
}

/// Returns 2F1(a, b; c; z) for z < 0 as (1 − z)⁻ᵃ 2F1(a, c − b; c; z / (z − 1)) (Abramowitz and Stegun, 15.3.4).
fn pfaff([a, b, c]: [f64; 3], z: f64, order: usize) -> Jet<f64, 4> {
    let y = 1.0 / (1.0 - z);
    let f = in_unit([a, c - b, c], -z * y, y, order);
    // The rows are the derivatives of a, c − b, c and z / (z − 1) with respect to a, b, c and z.
    let slope = -y * y;
    let rows = [
        [1.0, 0.0, 0.0, 0.0],
        [0.0, -1.0, 1.0, 0.0],
        [0.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 0.0, slope],
    ];
    let mut moved = Jet::<f64, 4>::constant(f.value);
    for i in 0..4 {
        moved.first[i] = (0..4).map(|k| f.first[k] * rows[k][i]).sum();
        for j in 0..4 {
            let pair = |k: usize, l: usize| rows[k][i] * f.second[k][l] * rows[l][j];
            moved.second[i][j] = (0..16).map(|at| pair(at / 4, at % 4)).sum();
        }
    }
    moved.second[3][3] += f.first[3] * -2.0 * y * y * y;
    let log = libm::log1p(-z);
    let mut exponent = Jet::<f64, 4>::constant(-a * log);
    exponent.first[0] = -log;
    exponent.first[3] = a * y;
    exponent.second[0][3] = y;
    exponent.second[3][0] = y;
    exponent.second[3][3] = a * y * y;
    let e = libm::exp(exponent.value);
    let mut power = Jet::<f64, 4>::constant(e);
    for i in 0..4 {
        power.first[i] = e * exponent.first[i];
        for j in 0..4 {
            let curvature = exponent.second[i][j] + exponent.first[i] * exponent.first[j];
            power.second[i][j] = e * curvature;
        }
    }
    moved.times(power, order)
}
