//! Generalised hypergeometric functions, with derivatives with respect to all arguments up to second order.
//!
//! pFq(a; b; z) = Σₖ (a₁)ₖ … (a_p)ₖ / ((b₁)ₖ … (b_q)ₖ) zᵏ / k!. For arguments at which this series converges fast, the
//! code sums its terms and their derivatives. If the terms cancel, the code sums the series again with twice as many
//! digits.
//!
//! | arguments | method |
//! | --- | --- |
//! | p ≤ q | the series |
//! | p = q + 1, −0.6 < z < 1 | the series; 2F1 for z > 0.6 by Taylor series on the path to z ([`gauss`]) |
//! | p = q + 1, −1 ≤ z ≤ −0.6 | means of partial sums, which alternate; 2F1 for z < −0.5 by Pfaff's transformation |
//! | p = q + 1, z = 1 | Richardson's extrapolation of partial sums, where Σb > Σa |
//! | finitely many terms | their sum, for every z |
//!
//! For other arguments the function is not implemented and returns NaN. The function also returns NaN if the series
//! needs more than a million terms.

mod gauss;
mod number;

use self::number::{Number, Twofold};

const TERMS: usize = 1_000_000;

/// If the largest term exceeds the sum by this factor, the series is summed again with more digits.
const LOSS: f64 = 1e3;

/// If the largest term exceeds the sum by this factor, even terms in double length yield no correct digits.
const TOO_LOSSY: f64 = 1e20;

/// The value of the function and its derivatives with respect to the arguments a, b and z, in this order.
#[derive(Clone, Debug, PartialEq)]
pub struct Hypergeometric {
    /// The value of the function.
    pub value: f64,
    /// The first derivative with respect to each argument.
    pub first: Vec<f64>,
    /// The second derivatives with respect to each pair of arguments, with one row per argument.
    pub second: Vec<f64>,
}

impl Hypergeometric {
    fn nan(n: usize) -> Self {
        Self {
            value: f64::NAN,
            first: vec![f64::NAN; n],
            second: vec![f64::NAN; n * n],
        }
    }

    /// Returns the derivatives of the given order: the value (0), the gradient (1) or the matrix of second derivatives
    /// (2).
    pub fn derivatives(self, order: usize) -> Vec<f64> {
        match order {
            0 => vec![self.value],
            1 => self.first,
            _ => self.second,
        }
    }
}

/// Computes pFq(a; b; z) and its derivatives with respect to a, b and z up to the given order. Derivatives of higher
/// order are set to 0.
pub fn hypergeometric(a: &[f64], b: &[f64], z: f64, order: usize) -> Hypergeometric {
    let n = a.len() + b.len() + 1;
    let all = || a.iter().chain(b).chain(std::iter::once(&z));
    if all().any(|x| !x.is_finite()) {
        return Hypergeometric::nan(n);
    }
    let ends = a.iter().filter(|a| is_count(**a)).map(|a| -a);
    let last = ends.fold(f64::INFINITY, f64::min);
    let poles = b.iter().filter(|b| is_count(**b)).map(|b| -b);
    if poles.fold(f64::INFINITY, f64::min) < last || b.iter().any(|b| is_count(*b) && order > 0) {
        return Hypergeometric::nan(n);
    }
    if order == 0
        && let Some(value) = ended(a, b, z, last)
    {
        return Hypergeometric {
            value,
            first: Vec::new(),
            second: Vec::new(),
        };
    }
    let everywhere = a.len() <= b.len() || z == 0.0;
    let within = a.len() == b.len() + 1 && z.abs() <= 1.0;
    if let ([a1, a2], [b1]) = (a, b)
        && z < 1.0
    {
        return gauss::hypergeometric_2f1(*a1, *a2, *b1, z, order);
    }
    if order > 0 && !everywhere && last.is_finite() && (!within || z.abs() == 1.0) {
        return polynomial(a, b, z, order, last);
    }
    match () {
        () if everywhere || within && z > -0.6 && z < 1.0 => twice(
            || series::<f64>(a, b, z, order),
            || series::<Twofold>(a, b, z, order),
            n,
        ),
        () if within && z < 0.0 => alternating(a, b, z, order),
        () if within => at_one(a, b, order),
        () => Hypergeometric::nan(n),
    }
}

fn is_count(x: f64) -> bool {
    x <= 0.0 && x == x.round()
}

/// Returns the result in ordinary precision, or in double length if ordinary precision would lose too many digits.
fn twice(
    once: impl Fn() -> Option<(Hypergeometric, f64)>,
    again: impl Fn() -> Option<(Hypergeometric, f64)>,
    n: usize,
) -> Hypergeometric {
    match once() {
        Some((found, loss)) if loss < LOSS => return found,
        None => return Hypergeometric::nan(n),
        Some(_) => {}
    }
    match again() {
        Some((found, loss)) if loss < TOO_LOSSY => found,
        _ => Hypergeometric::nan(n),
    }
}

/// Returns the ratio of the largest term to the sum. A sum that is exactly 0 is accepted only in double length.
fn loss(largest: f64, sum: f64) -> f64 {
    if sum == 0.0 { LOSS } else { largest / sum }
}

#[derive(Clone)]
struct Terms<T> {
    order: usize,
    value: T,
    first: Vec<T>,
    second: Vec<T>,
}

impl<T: Number> Terms<T> {
    fn constant(x: f64, n: usize, order: usize) -> Self {
        let zeros = |k: usize, least: usize| vec![T::of(0.0); if order < least { 0 } else { k }];
        Self {
            order,
            value: T::of(x),
            first: zeros(n, 1),
            second: zeros(n * n, 2),
        }
    }

    fn all(&self) -> impl Iterator<Item = T> + '_ {
        let rest = self.first.iter().chain(&self.second);
        std::iter::once(self.value).chain(rest.copied())
    }

    fn multiply(&mut self, i: usize, [f, slope, curvature]: [T; 3]) {
        let n = self.first.len();
        if self.order >= 2 {
            self.second.iter_mut().for_each(|x| *x = *x * f);
            for j in 0..n {
                let change = slope * self.first[j];
                self.second[i * n + j] = self.second[i * n + j] + change;
                self.second[j * n + i] = self.second[j * n + i] + change;
            }
            self.second[i * n + i] = self.second[i * n + i] + curvature * self.value;
        }
        if self.order >= 1 {
            self.first.iter_mut().for_each(|x| *x = *x * f);
            self.first[i] = self.first[i] + slope * self.value;
        }
        self.value = self.value * f;
    }

    fn scale(&mut self, f: T) {
        self.value = self.value * f;
        self.first.iter_mut().for_each(|x| *x = *x * f);
        self.second.iter_mut().for_each(|x| *x = *x * f);
    }

    fn add(&mut self, other: &Self) {
        self.value = self.value + other.value;
        let zip = |x: &mut [T], y: &[T]| x.iter_mut().zip(y).for_each(|(x, y)| *x = *x + *y);
        zip(&mut self.first, &other.first);
        zip(&mut self.second, &other.second);
    }

    fn rounded(&self) -> Hypergeometric {
        let n = self.first.len();
        let list = |x: &[T]| x.iter().map(|x| x.rounded()).collect();
        debug_assert!(self.second.is_empty() || self.second.len() == n * n);
        Hypergeometric {
            value: self.value.rounded(),
            first: list(&self.first),
            second: list(&self.second),
        }
    }
}

struct Ratio<'a, T> {
    a: &'a [f64],
    b: &'a [f64],
    z: f64,
    k: f64,
    term: Terms<T>,
}

impl<'a, T: Number> Ratio<'a, T> {
    fn new(a: &'a [f64], b: &'a [f64], z: f64, order: usize) -> Self {
        let term = Terms::constant(1.0, a.len() + b.len() + 1, order);
        Self {
            a,
            b,
            z,
            k: 0.0,
            term,
        }
    }

    fn step(&mut self) -> f64 {
        let (one, zero) = (T::of(1.0), T::of(0.0));
        let k = T::of(self.k);
        let mut ratio = self.z.abs() / (self.k + 1.0);
        for (i, a) in self.a.iter().enumerate() {
            self.term.multiply(i, [T::of(*a) + k, one, zero]);
            ratio *= (a + self.k).abs();
        }
        for (i, b) in self.b.iter().enumerate() {
            let r = one / (T::of(*b) + k);
            let square = r * r;
            let curvature = (square + square) * r;
            self.term
                .multiply(self.a.len() + i, [r, zero - square, curvature]);
            ratio /= (b + self.k).abs();
        }
        let z = self.a.len() + self.b.len();
        self.term.multiply(z, [T::of(self.z), one, zero]);
        self.term.scale(one / (k + one));
        self.k += 1.0;
        ratio
    }
}

/// Returns the index of a term after which no factor changes its sign.
fn settled(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .chain(b)
        .fold(3.0, |most, x| f64::max(most, 1.0 - x))
}

/// Sums the series. Returns the sum, and the ratio of the largest term to the sum. For a derivative that is smaller
/// than the value, the ratio is relative to the value. Returns `None` if the series needs too many terms.
fn series<T: Number>(a: &[f64], b: &[f64], z: f64, order: usize) -> Option<(Hypergeometric, f64)> {
    let mut terms = Ratio::<T>::new(a, b, z, order);
    let mut sum = terms.term.clone();
    let mut largest: Vec<f64> = sum.all().map(|x| x.rounded().abs()).collect();
    let settled = settled(a, b);
    for _ in 0..TERMS {
        let ratio = terms.step();
        sum.add(&terms.term);
        let value = sum.value.rounded().abs();
        let mut done = terms.k > settled && ratio < 1.0;
        for ((term, sum), largest) in terms.term.all().zip(sum.all()).zip(&mut largest) {
            let (term, sum) = (term.rounded().abs(), sum.rounded().abs());
            *largest = largest.max(term);
            done &= term <= T::EPSILON * (1.0 - ratio) * sum.max(value);
        }
        if !value.is_finite() {
            return None;
        }
        if done {
            let sizes = sum.all().map(|x| x.rounded().abs().max(value));
            let loss = largest.iter().zip(sizes).map(|(most, x)| loss(*most, x));
            return Some((sum.rounded(), loss.fold(1.0, f64::max)));
        }
    }
    None
}

/// Sums a series that ends: all terms after `last` vanish. Returns `None` if the sum has no correct digits or needs too
/// many terms. The terms are summed over a common denominator. If the arguments have few digits and the true value is
/// 0, the computed sum is then exactly 0.
fn ended(a: &[f64], b: &[f64], z: f64, last: f64) -> Option<f64> {
    if last > TERMS as f64 {
        return None;
    }
    let [mut sum, mut term, mut below] = [Twofold::of(1.0); 3];
    let (mut k, mut largest) = (0.0, 1.0f64);
    while k < last && term.rounded() != 0.0 {
        let shifted = |product, x: &f64| product * (Twofold::of(*x) + Twofold::of(k));
        let factor = b.iter().fold(Twofold::of(k + 1.0), shifted);
        term = a.iter().fold(term * Twofold::of(z), shifted);
        below = below * factor;
        sum = sum * factor + term;
        largest = largest.max((term.rounded() / below.rounded()).abs());
        // Dividing by a power of two is exact.
        let sizes = [sum, term, below].map(|x| x.rounded().abs());
        if sizes.iter().any(|x| *x > 1e100) {
            let less = Twofold::of(libm::exp2(-332.0));
            [sum, term, below] = [sum, term, below].map(|x| x * less);
        }
        k += 1.0;
    }
    let value = (sum / below).rounded();
    (value.is_finite() && loss(largest, value.abs()) < TOO_LOSSY).then_some(value)
}

/// Sums the terms up to `last` for derivatives of order 1 or 2. All later terms vanish. The sum has no derivatives with
/// respect to the parameters that make these terms vanish, and the function returns 0 for them.
fn polynomial(a: &[f64], b: &[f64], z: f64, order: usize, last: f64) -> Hypergeometric {
    let n = a.len() + b.len() + 1;
    if last > TERMS as f64 {
        return Hypergeometric::nan(n);
    }
    let mut terms = Ratio::<Twofold>::new(a, b, z, order);
    let mut sum = terms.term.clone();
    while terms.k < last {
        terms.step();
        sum.add(&terms.term);
    }
    let mut found = sum.rounded();
    for i in (0..a.len()).filter(|i| is_count(a[*i])) {
        for j in 0..n {
            found.first[i] = 0.0;
            if order >= 2 {
                found.second[i * n + j] = 0.0;
                found.second[j * n + i] = 0.0;
            }
        }
    }
    found
}

/// Returns the partial sums with the given numbers of terms, which must be in ascending order.
fn partial_sums<T: Number>(
    a: &[f64],
    b: &[f64],
    z: f64,
    order: usize,
    counts: impl Iterator<Item = usize>,
) -> Vec<Terms<T>> {
    let mut terms = Ratio::<T>::new(a, b, z, order);
    let mut sum = terms.term.clone();
    let mut added = 1;
    counts
        .map(|count| {
            while added < count {
                terms.step();
                sum.add(&terms.term);
                added += 1;
            }
            sum.clone()
        })
        .collect()
}

fn start(a: &[f64], b: &[f64]) -> usize {
    let most = a.iter().chain(b).fold(0.0f64, |most, x| most.max(x.abs()));
    32 + (2.0 * most).min(TERMS as f64) as usize
}

/// Averages partial sums of an alternating series. Taking means of adjacent partial sums reduces the remainder by a
/// factor of at least two (Euler's transformation). The results from two starting points must agree.
fn alternating(a: &[f64], b: &[f64], z: f64, order: usize) -> Hypergeometric {
    const MEANS: usize = 60;
    let n = a.len() + b.len() + 1;
    let mean = |from: usize| -> Hypergeometric {
        let mut sums = partial_sums::<Twofold>(a, b, z, order, from..from + MEANS);
        while sums.len() > 1 {
            for i in 0..sums.len() - 1 {
                let next = sums[i + 1].clone();
                sums[i].add(&next);
                sums[i].scale(Twofold::of(0.5));
            }
            sums.pop();
        }
        sums[0].rounded()
    };
    let mut from = start(a, b);
    let mut before = mean(from);
    while from < TERMS / 16 {
        from *= 2;
        let found = mean(from);
        if agree(&before, &found) {
            return found;
        }
        before = found;
    }
    Hypergeometric::nan(n)
}

fn agree(x: &Hypergeometric, y: &Hypergeometric) -> bool {
    let size = y.value.abs();
    let close = |x: f64, y: f64| (x - y).abs() <= 1e-13 * y.abs().max(size);
    let all = |x: &[f64], y: &[f64]| x.iter().zip(y).all(|(x, y)| close(*x, *y));
    close(x.value, y.value) && all(&x.first, &y.first) && all(&x.second, &y.second)
}

/// Computes the sum at z = 1 and its derivatives with respect to a and b. Requires Σb > Σa. The derivatives with
/// respect to z are computed from the function with shifted arguments.
fn at_one(a: &[f64], b: &[f64], order: usize) -> Hypergeometric {
    let n = a.len() + b.len() + 1;
    let excess: f64 = b.iter().sum::<f64>() - a.iter().sum::<f64>();
    if excess <= 0.0 {
        return Hypergeometric::nan(n);
    }
    let Some(mut found) = extrapolated(a, b, order, excess) else {
        return Hypergeometric::nan(n);
    };
    if order == 0 {
        return found;
    }
    // The derivative is d/dz pFq(a; b; z) = Πa / Πb pFq(a + 1; b + 1; z).
    let shift = |x: &[f64]| -> Vec<f64> { x.iter().map(|x| x + 1.0).collect() };
    let slope = at_one(&shift(a), &shift(b), order - 1);
    let mut by_z = Terms::<f64> {
        order: order - 1,
        value: slope.value,
        first: slope.first,
        second: Vec::new(),
    };
    for (i, a) in a.iter().enumerate() {
        by_z.multiply(i, [*a, 1.0, 0.0]);
    }
    for (i, b) in b.iter().enumerate() {
        let r = 1.0 / b;
        by_z.multiply(a.len() + i, [r, -r * r, 2.0 * r * r * r]);
    }
    found.first[n - 1] = by_z.value;
    for i in 0..if order == 2 { n } else { 0 } {
        found.second[i * n + n - 1] = by_z.first[i];
        found.second[(n - 1) * n + i] = by_z.first[i];
    }
    found
}

/// Extrapolates partial sums of N = N₀ 2ʲ terms at z = 1. Error terms proportional to N^(−s − m), m = 0, 1, …, are
/// removed one after another until two results agree. The excess s is Σb − Σa.
fn extrapolated(a: &[f64], b: &[f64], order: usize, excess: f64) -> Option<Hypergeometric> {
    const DOUBLINGS: usize = 8;
    let n = a.len() + b.len() + 1;
    let by_excess = |i: usize| match i {
        i if i < a.len() => -1.0,
        i if i < n - 1 => 1.0,
        _ => 0.0,
    };
    let first = start(a, b);
    if first << DOUBLINGS > 16 * TERMS {
        return None;
    }
    let counts = (0..=DOUBLINGS).map(|j| first << j);
    let mut row: Vec<Terms<f64>> = partial_sums::<Twofold>(a, b, 1.0, order, counts)
        .into_iter()
        .map(|sum| {
            let found = sum.rounded();
            Terms {
                order,
                value: found.value,
                first: found.first,
                second: found.second,
            }
        })
        .collect();
    // The factor of the differences with respect to z has no meaning here.
    for sum in &mut row {
        for i in 0..if order >= 1 { n } else { 0 } {
            sum.first[n - 1] = 0.0;
            if order >= 2 {
                sum.second[i * n + n - 1] = 0.0;
                sum.second[(n - 1) * n + i] = 0.0;
            }
        }
    }
    let mut best: Option<(f64, Hypergeometric)> = None;
    for m in 0..DOUBLINGS {
        let power = libm::exp2(excess + m as f64);
        let w = 1.0 / (power - 1.0);
        let slope = -std::f64::consts::LN_2 * power * w * w;
        let curvature = std::f64::consts::LN_2.powi(2) * power * (power + 1.0) * w * w * w;
        for j in 0..row.len() - 1 {
            let mut step = row[j].clone();
            step.scale(-1.0);
            step.add(&row[j + 1]);
            // The weight is a function of the excess, which depends on all parameters.
            let plain = step.clone();
            step.scale(w);
            for i in 0..step.first.len() {
                let g = by_excess(i);
                step.first[i] += slope * g * plain.value;
                for l in 0..if order >= 2 { n } else { 0 } {
                    let h = by_excess(l);
                    step.second[i * n + l] += slope * (g * plain.first[l] + h * plain.first[i])
                        + curvature * g * h * plain.value;
                }
            }
            row[j] = row[j + 1].clone();
            row[j].add(&step);
        }
        row.pop();
        if row.len() >= 2 {
            let (x, y) = (row[row.len() - 2].rounded(), row[row.len() - 1].rounded());
            let gap = x.value_gap(&y);
            if best.as_ref().is_none_or(|(least, _)| gap < *least) {
                best = Some((gap, y));
            }
        }
    }
    best.filter(|(gap, _)| *gap < 1e-8).map(|(_, found)| found)
}

impl Hypergeometric {
    fn value_gap(&self, other: &Self) -> f64 {
        let size = other.value.abs();
        let all = |x: &[f64], y: &[f64]| {
            let gaps = x
                .iter()
                .zip(y)
                .map(|(x, y)| (x - y).abs() / y.abs().max(size));
            gaps.fold(0.0, f64::max)
        };
        let value = (self.value - other.value).abs() / size;
        value
            .max(all(&self.first, &other.first))
            .max(all(&self.second, &other.second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(a: &[f64], b: &[f64], z: f64) -> f64 {
        hypergeometric(a, b, z, 0).value
    }

    /// The expected value was computed by hand from 1 + z a b / c + …. The lower parameter may have a pole beyond the
    /// last term.
    #[test]
    fn series_that_end_before_a_pole_have_values() {
        let close = |x: f64, y: f64| assert!((x - y).abs() <= 1e-15 * y.abs(), "{x} and {y}");
        for (z, expected) in [(0.5, 17.0 / 12.0), (-0.8, 51.0 / 75.0), (0.9, 1.87)] {
            close(value(&[-2.0, 1.0], &[-3.0], z), expected);
        }
        close(value(&[-2.0], &[-2.0], 3.0), 8.5);
        close(value(&[-1.0, 2.0, 3.0], &[-1.0, 4.0], 2.0), 4.0);
        assert!(value(&[-3.0, 1.0], &[-2.0], 0.5).is_nan());
    }

    #[test]
    fn zeros_are_values() {
        for z in [0.25, 0.5, 1.0, 4.0] {
            assert_eq!(value(&[-1.0, 1.0 / z], &[1.0], z), 0.0, "{z}");
        }
        assert_eq!(value(&[-1.0, 4.0], &[3.0], 0.75), 0.0);
        assert_eq!(value(&[-2.0, 4.0], &[3.0], 1.0), 0.0);
        assert_eq!(value(&[-1.0], &[1.0], 1.0), 0.0);
        assert_eq!(value(&[-1.0], &[3.0], 3.0), 0.0);
        // The polynomials of degree 1 are Laguerre's, L = 1 − z, and Legendre's, 1 − 2z, with slopes −1 and −2.
        assert_eq!(hypergeometric(&[-1.0], &[1.0], 1.0, 1).first[2], -1.0);
        let legendre = hypergeometric(&[-1.0, 2.0], &[1.0], 0.5, 1);
        assert_eq!((legendre.value, legendre.first[3]), (0.0, -2.0));
    }

    /// The sum of the series is (1 − z)ⁿ, both near a zero and elsewhere. If the terms cancel beyond the stored digits,
    /// the function returns no value.
    #[test]
    fn long_series_that_end_are_binomial() {
        for (n, z) in [(400.0, -1.5), (3.0e5, -1e-3), (40.0, 0.3), (2000.0, 1e-3)] {
            let expected = libm::exp(n * libm::log1p(-z));
            for found in [value(&[-n, 2.5], &[2.5], z), value(&[-n], &[], z)] {
                assert!((found / expected - 1.0).abs() < 1e-12, "{n} {z}: {found}");
            }
        }
        assert!(value(&[-400.0, 2.0, 3.0], &[2.0, 3.0], -1.5e4).is_nan());
        assert!(value(&[-400.0], &[1.0], 400.0).is_nan());
    }

    #[test]
    fn what_cancels_among_the_first_terms_is_summed_again() {
        // This uses 2F1(−1/2, 1; c; 2c) = 1 − 1 − c / (1 + c) (1 + 3c / (2 + c) + …).
        for k in 1..50 {
            let c = 1e-8 * f64::from(k);
            let found = hypergeometric(&[-0.5, 1.0], &[c], 2.0 * c, 0).value;
            let expected = -c / (1.0 + c) * (1.0 + 3.0 * c / (2.0 + c) + 2.5 * c * c);
            assert!((found / expected - 1.0).abs() < 1e-14, "{c}: {found}");
        }
    }
}
