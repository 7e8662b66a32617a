//! Gaussian elimination with row exchanges on real matrices, with one matrix per lane and many lanes at once. Each lane
//! chooses its own pivots.
//!
//! The elimination uses no fused multiply-add, so all SIMD levels give the same bits, and exact cancellations remain
//! exact. Matrices and right-hand sides are stored in column-major order. Each of their elements is stored as a row
//! with one number per lane. The code processes strips of [`LANES`] lanes, so that the matrices of a strip stay in the
//! cache.

use crate::simd::{F64x8, LANES, Simd};
use crate::{simd_fn, vmath};

/// The factors `P A = L U` of one `n × n` matrix per lane. If a matrix is singular, its solutions are not finite. If a
/// matrix or a right-hand side is not finite, the solutions are NaN.
#[derive(Clone, Debug, Default)]
pub struct Elimination {
    n: usize,
    lu: Vec<f64>,
    pivots: Vec<f64>,
}

simd_fn! {
    fn factor, factor_fn = <V>(elimination: &mut Elimination, n: usize, a: &[f64], lanes: usize) {
        elimination.factor_at::<V>(n, a, lanes);
    }

    fn solve, solve_fn = <V>(elimination: &Elimination, x: &mut [f64], lanes: usize, transposed: bool) {
        elimination.solve_at::<V>(x, lanes, transposed);
    }
}

impl Elimination {
    /// Factors the matrices of all lanes and replaces the previous factors. `a` has `n²` rows of `lanes` numbers.
    pub fn factor(&mut self, simd: Simd, n: usize, a: &[f64], lanes: usize) {
        factor(simd, self, n, a, lanes);
    }

    /// Solves the linear systems with the matrices or their transposes in place. `x` has `n` rows per right-hand side,
    /// each with one number per lane. If only one lane was factored, its matrix applies to all lanes.
    pub fn solve(&self, simd: Simd, x: &mut [f64], lanes: usize, transposed: bool) {
        solve(simd, self, x, lanes, transposed);
    }

    /// Does the same as [`factor`](Self::factor), inside a kernel.
    #[inline(always)]
    pub fn factor_at<V: F64x8>(&mut self, n: usize, a: &[f64], lanes: usize) {
        let strips = lanes.div_ceil(LANES);
        self.n = n;
        self.lu.resize(strips * n * n * LANES, 0.0);
        self.pivots.resize(strips * n * LANES, 0.0);
        let strips = self.lu.chunks_exact_mut((n * n * LANES).max(1));
        let strips = strips.zip(self.pivots.chunks_exact_mut((n * LANES).max(1)));
        for (strip, (lu, pivots)) in strips.enumerate() {
            gather(a, lanes, strip * LANES, lu);
            eliminate::<V>(n, lu, pivots);
        }
    }

    /// Does the same as [`solve`](Self::solve), inside a kernel.
    #[inline(always)]
    pub fn solve_at<V: F64x8>(&self, x: &mut [f64], lanes: usize, transposed: bool) {
        let n = self.n;
        let mut own = vec![0.0; n * LANES];
        for rows in x.chunks_exact_mut((n * lanes).max(1)) {
            for first in (0..lanes).step_by(LANES) {
                let (lu, pivots) = self.strip(first / LANES);
                gather(rows, lanes, first, &mut own);
                if transposed {
                    substitute_transposed::<V>(n, lu, pivots, &mut own);
                } else {
                    substitute::<V>(n, lu, pivots, &mut own);
                }
                let width = LANES.min(lanes - first);
                for (row, own) in rows.chunks_exact_mut(lanes).zip(own.chunks_exact(LANES)) {
                    row[first..first + width].copy_from_slice(&own[..width]);
                }
            }
        }
    }

    /// Computes the determinant of each lane, or `log |det A|` if `log` is true, inside a kernel.
    #[inline(always)]
    pub fn determinant_at<V: F64x8>(&self, log: bool, out: &mut [f64]) {
        let n = self.n;
        for (strip, out) in out.chunks_mut(LANES).enumerate() {
            let (lu, pivots) = self.strip(strip);
            let mut total = V::splat(if log { 0.0 } else { 1.0 });
            for p in 0..n {
                let pivot = at::<V>(lu, p * n + p);
                if log {
                    total = total + vmath::log(pivot.abs());
                    continue;
                }
                let exchanged = at::<V>(pivots, p).gt(V::splat(p as f64));
                total = total * V::select(exchanged, V::splat(0.0) - pivot, pivot);
            }
            let mut own = [0.0; LANES];
            put(&mut own, 0, total);
            out.copy_from_slice(&own[..out.len()]);
        }
    }

    #[inline(always)]
    fn strip(&self, strip: usize) -> (&[f64], &[f64]) {
        let each = self.n * self.n * LANES;
        let strip = strip.min((self.lu.len() / each.max(1)).saturating_sub(1));
        let of = |all: &'_ [f64], each: usize| strip * each..((strip + 1) * each).min(all.len());
        (
            &self.lu[of(&self.lu, each)],
            &self.pivots[of(&self.pivots, self.n * LANES)],
        )
    }
}

/// Copies a strip of lanes to `out`. If the strip extends past the last lane, copies of its first lane fill the rest.
#[inline(always)]
fn gather(rows: &[f64], lanes: usize, first: usize, out: &mut [f64]) {
    let width = LANES.min(lanes - first);
    for (row, out) in rows.chunks_exact(lanes).zip(out.chunks_exact_mut(LANES)) {
        out[..width].copy_from_slice(&row[first..first + width]);
        out[width..].fill(row[first]);
    }
}

#[inline(always)]
fn at<V: F64x8>(rows: &[f64], k: usize) -> V {
    let row: &[f64] = &rows[k * LANES..(k + 1) * LANES];
    // SAFETY: the row has this many numbers.
    unsafe { V::load(row.as_ptr()) }
}

#[inline(always)]
fn put<V: F64x8>(rows: &mut [f64], k: usize, x: V) {
    let row: &mut [f64] = &mut rows[k * LANES..(k + 1) * LANES];
    // SAFETY: the row has this many numbers.
    unsafe { x.store(row.as_mut_ptr()) }
}

#[inline(always)]
fn subtract<V: F64x8>(rows: &mut [f64], k: usize, a: V, b: V) {
    let rest = at::<V>(rows, k) - a * b;
    put(rows, k, rest);
}

#[inline(always)]
fn exchange(rows: &mut [f64], pivots: &[f64], p: usize, n: usize) {
    for (lane, pivot) in pivots.iter().enumerate() {
        let other = *pivot as usize;
        if other != p {
            for column in rows.chunks_exact_mut(n * LANES) {
                column.swap(p * LANES + lane, other * LANES + lane);
            }
        }
    }
}

/// Returns NaN in each lane that contains a number that is not finite, and 0 in all other lanes.
#[inline(always)]
fn taint<V: F64x8>(rows: &[f64]) -> V {
    let mut sum = V::splat(0.0);
    for k in 0..rows.len() / LANES {
        sum = sum + at::<V>(rows, k) * V::splat(0.0);
    }
    sum
}

#[inline(always)]
fn eliminate<V: F64x8>(n: usize, lu: &mut [f64], pivots: &mut [f64]) {
    let tainted = taint::<V>(lu);
    for p in 0..n {
        let (mut pivot, mut largest) = (V::splat(p as f64), at::<V>(lu, p * n + p).abs());
        for i in p + 1..n {
            let size = at::<V>(lu, p * n + i).abs();
            let more = size.gt(largest);
            pivot = V::select(more, V::splat(i as f64), pivot);
            largest = V::select(more, size, largest);
        }
        put(pivots, p, pivot);
        exchange(lu, &pivots[p * LANES..(p + 1) * LANES], p, n);
        let head = at::<V>(lu, p * n + p);
        for i in p + 1..n {
            // All other elements of the column are also zero if the largest is.
            let scaled = at::<V>(lu, p * n + i) / head;
            let scaled = V::select(head.eq(V::splat(0.0)), V::splat(0.0), scaled);
            put(lu, p * n + i, scaled);
        }
        let (done, rest) = lu.split_at_mut((p + 1) * n * LANES);
        let factors = &done[p * n * LANES..];
        for column in rest.chunks_exact_mut(n * LANES) {
            let head = at::<V>(column, p);
            for i in p + 1..n {
                subtract(column, i, at::<V>(factors, i), head);
            }
        }
    }
    for p in 0..n {
        let pivot = at::<V>(lu, p * n + p) + tainted;
        put(lu, p * n + p, pivot);
    }
}

/// Adds NaN to all rows of each lane that contains a number that is not finite.
#[inline(always)]
fn spread_taint<V: F64x8>(x: &mut [f64]) {
    let tainted = taint::<V>(x);
    for k in 0..x.len() / LANES {
        let y = at::<V>(x, k) + tainted;
        put(x, k, y);
    }
}

#[inline(always)]
fn substitute<V: F64x8>(n: usize, lu: &[f64], pivots: &[f64], x: &mut [f64]) {
    spread_taint::<V>(x);
    for p in 0..n {
        exchange(x, &pivots[p * LANES..(p + 1) * LANES], p, n);
    }
    for j in 0..n {
        let head = at::<V>(x, j);
        for i in j + 1..n {
            subtract(x, i, at::<V>(lu, j * n + i), head);
        }
    }
    for j in (0..n).rev() {
        let head = at::<V>(x, j) / at::<V>(lu, j * n + j);
        put(x, j, head);
        for i in 0..j {
            subtract(x, i, at::<V>(lu, j * n + i), head);
        }
    }
}

#[inline(always)]
fn substitute_transposed<V: F64x8>(n: usize, lu: &[f64], pivots: &[f64], x: &mut [f64]) {
    spread_taint::<V>(x);
    for j in 0..n {
        let mut rest = at::<V>(x, j);
        for i in 0..j {
            rest = rest - at::<V>(lu, j * n + i) * at::<V>(x, i);
        }
        put(x, j, rest / at::<V>(lu, j * n + j));
    }
    for j in (0..n).rev() {
        let mut rest = at::<V>(x, j);
        for i in j + 1..n {
            rest = rest - at::<V>(lu, j * n + i) * at::<V>(x, i);
        }
        put(x, j, rest);
    }
    for p in (0..n).rev() {
        exchange(x, &pivots[p * LANES..(p + 1) * LANES], p, n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrices(n: usize, lanes: usize) -> Vec<f64> {
        let number = |k: usize| (43_758.545 * (12.9898 * (k + 1) as f64).sin()).fract();
        (0..n * n * lanes).map(number).collect()
    }

    #[test]
    fn solutions_satisfy_their_systems_at_every_level_and_number_of_lanes() {
        for (n, lanes, columns) in [(1, 8, 1), (3, 5, 2), (7, 17, 3)] {
            let a = matrices(n, lanes);
            let b: Vec<f64> = (0..n * columns * lanes).map(|k| (k as f64).sin()).collect();
            for simd in Simd::available() {
                let mut elimination = Elimination::default();
                elimination.factor(simd, n, &a, lanes);
                for transposed in [false, true] {
                    let mut x = b.clone();
                    elimination.solve(simd, &mut x, lanes, transposed);
                    for (k, b) in b.iter().enumerate() {
                        let (column, i, lane) = (k / (n * lanes), k / lanes % n, k % lanes);
                        let row: f64 = (0..n)
                            .map(|j| {
                                let (r, c) = if transposed { (j, i) } else { (i, j) };
                                a[(c * n + r) * lanes + lane] * x[(column * n + j) * lanes + lane]
                            })
                            .sum();
                        let off = (row - b).abs();
                        assert!(off < 1e-11, "{simd:?}, number {k}: off by {off:e}");
                    }
                }
            }
        }
    }

    #[test]
    fn one_matrix_serves_all_lanes() {
        let (n, lanes) = (4, 11);
        let one = matrices(n, 1);
        let all: Vec<f64> = one.iter().flat_map(|x| vec![*x; lanes]).collect();
        let b: Vec<f64> = (0..n * lanes).map(|k| (k as f64).cos()).collect();
        let solved = |a: &[f64], of: usize| {
            let mut elimination = Elimination::default();
            elimination.factor(Simd::detect(), n, a, of);
            let mut x = b.clone();
            elimination.solve(Simd::detect(), &mut x, lanes, false);
            x
        };
        assert_eq!(solved(&one, 1), solved(&all, lanes));
    }

    #[test]
    fn singular_matrices_are_not_finite_and_leave_other_lanes_alone() {
        let (n, lanes) = (2, 3);
        // Lane 1 is singular.
        let rows = [
            [2.0, 1.0, 3.0],
            [1.0, 2.0, 0.0],
            [0.0, 2.0, 1.0],
            [4.0, 4.0, 5.0],
        ];
        let a = rows.concat();
        let mut elimination = Elimination::default();
        elimination.factor(Simd::detect(), n, &a, lanes);
        let mut x = vec![1.0; n * lanes];
        elimination.solve(Simd::detect(), &mut x, lanes, false);
        assert!(!(x[1].is_finite() && x[4].is_finite()));
        for lane in [0, 2] {
            for i in 0..n {
                let row: f64 = (0..n)
                    .map(|j| rows[j * n + i][lane] * x[j * lanes + lane])
                    .sum();
                assert!((row - 1.0).abs() < 1e-14);
            }
        }
    }
}
