//! Factors of small complex matrices, with one matrix per lane and many lanes at once. Each lane chooses its own
//! pivots.

use num_complex::Complex64;

use super::System;
use crate::simd::Simd;
use crate::simd_fn;

/// The factors of one `n × n` matrix per lane, computed by elimination with row exchanges. The factors are in
/// column-major order. Each of their elements is stored as a row with one number per lane. The diagonal elements are
/// stored as their reciprocals.
#[derive(Clone, Debug, Default)]
pub(super) struct Factors {
    n: usize,
    re: Vec<f64>,
    im: Vec<f64>,
    pivots: Vec<f64>,
    largest: Vec<f64>,
}

/// After this many values, the code checks again whether the system gives up. Computing them takes about a millisecond.
const PART: usize = 1 << 20;

#[inline(always)]
fn pair(rows: &mut [f64], lanes: usize, to: usize, from: usize) -> (&mut [f64], &[f64]) {
    let (low, high) = rows.split_at_mut(to.max(from) * lanes);
    if to < from {
        (&mut low[to * lanes..][..lanes], &high[..lanes])
    } else {
        (&mut high[..lanes], &low[from * lanes..][..lanes])
    }
}

#[inline(always)]
fn subtract(to: [&mut [f64]; 2], a: [&[f64]; 2], b: [&[f64]; 2]) {
    let [to_re, to_im] = to;
    let into = to_re.iter_mut().zip(to_im);
    let a = a[0].iter().zip(a[1]);
    let b = b[0].iter().zip(b[1]);
    for (((re, im), (a_re, a_im)), (b_re, b_im)) in into.zip(a).zip(b) {
        *re -= a_re * b_re - a_im * b_im;
        *im -= a_re * b_im + a_im * b_re;
    }
}

#[inline(always)]
fn scale(to: [&mut [f64]; 2], a: [&[f64]; 2]) {
    let [to_re, to_im] = to;
    let into = to_re.iter_mut().zip(to_im);
    for ((re, im), (a_re, a_im)) in into.zip(a[0].iter().zip(a[1])) {
        let real = *re * a_re - *im * a_im;
        *im = *re * a_im + *im * a_re;
        *re = real;
    }
}

/// In each lane, exchanges row `p` with the lane's own pivot row. The exchange affects `columns` columns, each of `n`
/// rows.
fn exchange(rows: &mut [f64], pivots: &[f64], (p, n, columns): (usize, usize, usize)) {
    let lanes = pivots.len();
    for (lane, pivot) in pivots.iter().enumerate() {
        let other = *pivot as usize;
        if other != p {
            for j in 0..columns {
                rows.swap((j * n + p) * lanes + lane, (j * n + other) * lanes + lane);
            }
        }
    }
}

simd_fn! {
    fn eliminate, eliminate_fn = <V>(
        re: &mut [f64], im: &mut [f64], n: usize, columns: [usize; 2], pivots: &mut [f64], largest: &mut [f64]
    ) {
        let lanes = largest.len();
        let row = |i: usize| i * lanes..(i + 1) * lanes;
        for p in columns[0]..columns[1] {
            let pivot = &mut pivots[row(p)];
            pivot.fill(p as f64);
            largest.fill(-1.0);
            for i in p..n {
                let entries = re[row(p * n + i)].iter().zip(&im[row(p * n + i)]);
                let so_far = largest.iter_mut().zip(pivot.iter_mut());
                for ((largest, pivot), (re, im)) in so_far.zip(entries) {
                    let size = re * re + im * im;
                    let more = size > *largest;
                    *pivot = if more { i as f64 } else { *pivot };
                    *largest = if more { size } else { *largest };
                }
            }
            if pivot.iter().any(|other| *other != p as f64) {
                exchange(re, pivot, (p, n, n));
                exchange(im, pivot, (p, n, n));
            }
            let diagonal = re[row(p * n + p)].iter_mut().zip(&mut im[row(p * n + p)]);
            for (re, im) in diagonal {
                let inverse = 1.0 / (*re * *re + *im * *im);
                *re *= inverse;
                *im *= -inverse;
            }
            for i in p + 1..n {
                let (to_re, re) = pair(re, lanes, p * n + i, p * n + p);
                let (to_im, im) = pair(im, lanes, p * n + i, p * n + p);
                scale([to_re, to_im], [re, im]);
            }
            for j in p + 1..n {
                let (left_re, right_re) = re.split_at_mut(j * n * lanes);
                let (left_im, right_im) = im.split_at_mut(j * n * lanes);
                for i in p + 1..n {
                    let (to_re, head_re) = pair(right_re, lanes, i, p);
                    let (to_im, head_im) = pair(right_im, lanes, i, p);
                    let a = [&left_re[row(p * n + i)], &left_im[row(p * n + i)]];
                    subtract([to_re, to_im], a, [head_re, head_im]);
                }
            }
        }
    }

    fn substitute, substitute_fn = <V>(factors: [&[f64]; 3], n: usize, re: &mut [f64], im: &mut [f64]) {
        let [lu_re, lu_im, pivots] = factors;
        let lanes = re.len() / n;
        let row = |i: usize| i * lanes..(i + 1) * lanes;
        let entry = |i: usize, j: usize| [&lu_re[row(j * n + i)], &lu_im[row(j * n + i)]];
        for p in 0..n {
            let pivot = &pivots[row(p)];
            if pivot.iter().any(|other| *other != p as f64) {
                exchange(re, pivot, (p, n, 1));
                exchange(im, pivot, (p, n, 1));
            }
        }
        for j in 0..n {
            for i in j + 1..n {
                let (to_re, from_re) = pair(re, lanes, i, j);
                let (to_im, from_im) = pair(im, lanes, i, j);
                subtract([to_re, to_im], entry(i, j), [from_re, from_im]);
            }
        }
        for j in (0..n).rev() {
            scale([&mut re[row(j)], &mut im[row(j)]], entry(j, j));
            for i in 0..j {
                let (to_re, from_re) = pair(re, lanes, i, j);
                let (to_im, from_im) = pair(im, lanes, i, j);
                subtract([to_re, to_im], entry(i, j), [from_re, from_im]);
            }
        }
    }

    fn substitute_transposed, substitute_transposed_fn = <V>(factors: [&[f64]; 3], n: usize, re: &mut [f64], im: &mut [f64]) {
        let [lu_re, lu_im, pivots] = factors;
        let lanes = re.len() / n;
        let row = |i: usize| i * lanes..(i + 1) * lanes;
        let entry = |i: usize, j: usize| [&lu_re[row(j * n + i)], &lu_im[row(j * n + i)]];
        for j in 0..n {
            for i in 0..j {
                let (to_re, from_re) = pair(re, lanes, j, i);
                let (to_im, from_im) = pair(im, lanes, j, i);
                subtract([to_re, to_im], entry(i, j), [from_re, from_im]);
            }
            scale([&mut re[row(j)], &mut im[row(j)]], entry(j, j));
        }
        for j in (0..n).rev() {
            for i in j + 1..n {
                let (to_re, from_re) = pair(re, lanes, j, i);
                let (to_im, from_im) = pair(im, lanes, j, i);
                subtract([to_re, to_im], entry(i, j), [from_re, from_im]);
            }
        }
        for p in (0..n).rev() {
            let pivot = &pivots[row(p)];
            if pivot.iter().any(|other| *other != p as f64) {
                exchange(re, pivot, (p, n, 1));
                exchange(im, pivot, (p, n, 1));
            }
        }
    }
}

impl Factors {
    /// Factors `shift · per · I − a` for a real matrix `a` in each lane, and replaces the previous factors. If the
    /// matrix of a lane is singular, its solutions are not finite.
    pub fn shifted(&mut self, system: &mut dyn System, shift: Complex64, per: &[f64], a: &[f64]) {
        let lanes = per.len();
        self.n = (a.len() / lanes.max(1)).isqrt();
        let n = self.n;
        self.re.clear();
        self.re.extend(a.iter().map(|x| -x));
        self.im.clear();
        self.im.resize(a.len(), 0.0);
        for i in 0..n {
            let row = (i * n + i) * lanes..(i * n + i + 1) * lanes;
            let diagonal = self.re[row.clone()].iter_mut().zip(&mut self.im[row]);
            for ((re, im), per) in diagonal.zip(per) {
                *re += shift.re * per;
                *im += shift.im * per;
            }
        }
        self.factor(system, lanes);
    }

    /// Factors `shift · per · mass + a` for real matrices `mass` and `a` in each lane.
    pub fn pencil(
        &mut self,
        system: &mut dyn System,
        shift: Complex64,
        per: &[f64],
        [a, mass]: [&[f64]; 2],
    ) {
        let lanes = per.len();
        self.n = (a.len() / lanes.max(1)).isqrt();
        self.re.clear();
        self.im.clear();
        for (a, mass) in a.chunks_exact(lanes).zip(mass.chunks_exact(lanes)) {
            let real = a.iter().zip(mass).zip(per);
            self.re
                .extend(real.map(|((a, mass), per)| a + shift.re * per * mass));
            let imaginary = mass.iter().zip(per);
            self.im
                .extend(imaginary.map(|(mass, per)| shift.im * per * mass));
        }
        self.factor(system, lanes);
    }

    /// Factors the matrices in place. If the system gives up, all solutions are NaN.
    fn factor(&mut self, system: &mut dyn System, lanes: usize) {
        let n = self.n;
        self.pivots.resize(n * lanes, 0.0);
        self.largest.resize(lanes, 0.0);
        let mut done = 0;
        while done < n {
            let column = (n - done) * (n - done) * lanes;
            let end = (done + (PART / column).max(1)).min(n);
            eliminate(
                system.simd(),
                &mut self.re,
                &mut self.im,
                n,
                [done, end],
                &mut self.pivots,
                &mut self.largest,
            );
            if end < n && system.gives_up((end - done) * column) {
                self.re.fill(f64::NAN);
                for (p, pivots) in self.pivots.chunks_exact_mut(lanes).enumerate().skip(end) {
                    pivots.fill(p as f64);
                }
                return;
            }
            done = end;
        }
    }

    /// Solves the linear systems with the matrices or their transposes (not conjugated) in place. The real parts and
    /// the imaginary parts have `n` rows each.
    pub fn solve(&self, simd: Simd, re: &mut [f64], im: &mut [f64], transposed: bool) {
        let factors = [&self.re[..], &self.im[..], &self.pivots[..]];
        if transposed {
            substitute_transposed(simd, factors, self.n, re, im);
        } else {
            substitute(simd, factors, self.n, re, im);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Point;
    use super::*;

    struct Still(Simd);

    impl System for Still {
        fn rate(&mut self, _: Point<'_>, _: &mut [f64]) {}

        fn simd(&self) -> Simd {
            self.0
        }
    }

    struct Tired(usize);

    impl System for Tired {
        fn rate(&mut self, _: Point<'_>, _: &mut [f64]) {}

        fn gives_up(&mut self, worked: usize) -> bool {
            self.0 = self.0.saturating_sub(worked);
            self.0 == 0
        }
    }

    #[test]
    fn a_long_factorisation_can_be_given_up() {
        let (n, lanes) = (150, 8);
        let a: Vec<f64> = (0..n * n * lanes).map(|k| (k as f64).sin()).collect();
        let mut factors = Factors::default();
        let solution = |factors: &Factors| {
            let (mut re, mut im) = (vec![1.0; n * lanes], vec![0.0; n * lanes]);
            factors.solve(Simd::Scalar, &mut re, &mut im, false);
            re
        };
        let per = [1.0; 8];
        let work = n * n * n / 3 * lanes;
        factors.shifted(&mut Tired(work / 2), Complex64::ONE, &per, &a);
        assert!(solution(&factors).iter().all(|x| x.is_nan()));
        factors.shifted(&mut Tired(2 * work), Complex64::ONE, &per, &a);
        assert!(solution(&factors).iter().all(|x| x.is_finite()));
    }

    /// Returns the bits of the solutions of three systems, with and without a transpose, and checks that the residuals
    /// are small.
    fn solved(simd: Simd, n: usize, lanes: usize) -> Vec<u64> {
        let a: Vec<f64> = (0..n * n * lanes)
            .map(|k| ((k * k * 7 + 3 * k) % 11) as f64 - 5.0 + 0.01 * (k % 7) as f64)
            .collect();
        let per: Vec<f64> = (0..lanes).map(|lane| 0.2 + 0.3 * lane as f64).collect();
        let shift = Complex64::new(0.3, 2.0);
        let mut factors = Factors::default();
        factors.shifted(&mut Still(simd), shift, &per, &a);
        let b: Vec<f64> = (0..2 * n * lanes).map(|k| (k as f64).sin()).collect();
        let mut bits = Vec::new();
        for transposed in [false, true] {
            let mut x = b.clone();
            let (re, im) = x.split_at_mut(n * lanes);
            factors.solve(simd, re, im, transposed);
            for lane in 0..lanes {
                for i in 0..n {
                    let row: Complex64 = (0..n)
                        .map(|j| {
                            let diagonal = if i == j {
                                shift * per[lane]
                            } else {
                                Complex64::ZERO
                            };
                            let (r, c) = if transposed { (j, i) } else { (i, j) };
                            let at = j * lanes + lane;
                            let entry = diagonal - a[(c * n + r) * lanes + lane];
                            entry * Complex64::new(re[at], im[at])
                        })
                        .sum();
                    let at = i * lanes + lane;
                    let off = (row - Complex64::new(b[at], b[n * lanes + at])).norm();
                    assert!(off < 1e-11, "lane {lane}, row {i}: off by {off:e}");
                }
            }
            bits.extend(x.iter().map(|x| x.to_bits()));
        }
        bits
    }

    #[test]
    fn solutions_satisfy_their_systems_at_every_level() {
        for (n, lanes) in [(1, 8), (3, 24), (7, 16)] {
            let plain = solved(Simd::Scalar, n, lanes);
            for simd in Simd::available() {
                assert_eq!(solved(simd, n, lanes), plain, "{simd:?}");
            }
        }
    }
}
