//! Dense factorisations and products. They run in parallel on the caller's thread pool.

use std::ops::Range;

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{
    LltRegularization, cholesky_in_place as faer_cholesky, cholesky_in_place_scratch,
};
use faer::linalg::cholesky::llt::inverse::{inverse, inverse_scratch};
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::triangular_inverse::invert_lower_triangular;
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::{Accum, MatMut, MatRef, Par};
use jensen_math::simd::{F64x8, LANES, Simd};
use jensen_math::simd_fn;
use rayon::prelude::*;

use crate::Dense;

/// Number of elements in a chunk of an element-wise loop. The number is fixed, so that sums do not depend on the number
/// of threads.
pub(crate) const CHUNK: usize = 4096;

const MANY: usize = 16 * CHUNK;

/// Returns the parallelism for matrices of size `n`. Small problems stay on one thread: below a few hundred rows,
/// synchronisation costs as much as parallelism saves.
pub(crate) fn parallelism(n: usize) -> Par {
    if n < 400 { Par::Seq } else { Par::rayon(0) }
}

/// Replaces the lower triangle of a symmetric matrix by its Cholesky factor, in n³/3 operations. The strict upper
/// triangle does not change. Returns `None` if the matrix is not positive definite.
pub(crate) fn cholesky(a: &mut Dense) -> Option<()> {
    let par = parallelism(a.rows);
    let mut memory = MemBuffer::new(cholesky_in_place_scratch::<f64>(
        a.rows,
        par,
        Default::default(),
    ));
    faer_cholesky(
        a.view_mut(),
        LltRegularization::default(),
        par,
        MemStack::new(&mut memory),
        Default::default(),
    )
    .ok()?;
    // The factorisation does not detect pivots that are NaN.
    (0..a.rows)
        .all(|i| a.get(i, i).is_finite() && a.get(i, i) > 0.0)
        .then_some(())
}

pub(crate) fn log_determinant(factor: &Dense) -> f64 {
    2.0 * (0..factor.rows).map(|i| factor.get(i, i).ln()).sum::<f64>()
}

/// Computes both triangles of the inverse from the Cholesky factor, in 2n³/3 operations.
pub(crate) fn inverse_of(factor: &Dense) -> Dense {
    let mut out = Dense::zeros(factor.rows, factor.rows);
    inverse_into(factor, &mut out);
    out
}

pub(crate) fn inverse_into(factor: &Dense, out: &mut Dense) {
    let n = factor.rows;
    let par = parallelism(n);
    let mut memory = MemBuffer::new(inverse_scratch::<f64>(n, par));
    inverse(
        out.view_mut(),
        factor.view(),
        par,
        MemStack::new(&mut memory),
    );
    mirror(out);
}

/// Computes the diagonal of the inverse from the Cholesky factor, in n³/3 operations. The lower triangle of `room`
/// receives L⁻¹.
pub(crate) fn inverse_diagonal(factor: &Dense, room: &mut Dense) -> Vec<f64> {
    let n = factor.rows;
    invert_lower_triangular(room.view_mut(), factor.view(), parallelism(n));
    (0..n)
        .map(|j| {
            let column = &room.col(j)[j..];
            dot(column, column)
        })
        .collect()
}

pub(crate) fn mirror(a: &mut Dense) {
    const BLOCK: usize = 32;
    let n = a.rows;
    for start in (0..n).step_by(BLOCK) {
        let end = (start + BLOCK).min(n);
        for below in (start..n).step_by(BLOCK) {
            for i in below..(below + BLOCK).min(n) {
                for j in start..end.min(i) {
                    a.data[i * n + j] = a.data[j * n + i];
                }
            }
        }
    }
}

pub(crate) fn solve_lower(factor: &Dense, b: MatMut<'_, f64>) {
    solve_lower_triangular_in_place(factor.view(), b, parallelism(factor.rows));
}

pub(crate) fn solve_lower_transposed(factor: &Dense, b: MatMut<'_, f64>) {
    solve_upper_triangular_in_place(factor.view().transpose(), b, parallelism(factor.rows));
}

pub(crate) fn solve(factor: &Dense, b: &mut [f64]) {
    let n = b.len();
    let mut b = MatMut::from_column_major_slice_mut(b, n, 1);
    solve_lower(factor, b.rb_mut_view());
    solve_lower_transposed(factor, b);
}

/// Reborrows a matrix without an import of faer's trait wherever this is needed.
trait Reborrow {
    fn rb_mut_view(&mut self) -> MatMut<'_, f64>;
}

impl Reborrow for MatMut<'_, f64> {
    fn rb_mut_view(&mut self) -> MatMut<'_, f64> {
        self.as_mut()
    }
}

/// Computes `out = scale · a b` or `out += scale · a b`.
pub(crate) fn product(
    out: MatMut<'_, f64>,
    add: bool,
    a: MatRef<'_, f64>,
    b: MatRef<'_, f64>,
    scale: f64,
) {
    let accumulate = if add { Accum::Add } else { Accum::Replace };
    let par = parallelism(out.nrows().max(a.ncols()));
    faer::linalg::matmul::matmul(out, accumulate, a, b, scale, par);
}

/// Computes the lower triangle of `out (+)= scale · a b` for products that are symmetric, such as `a aᵀ`.
pub(crate) fn symmetric_product(
    out: MatMut<'_, f64>,
    add: bool,
    a: MatRef<'_, f64>,
    b: MatRef<'_, f64>,
    scale: f64,
    par: Par,
) {
    let accumulate = if add { Accum::Add } else { Accum::Replace };
    triangular::matmul(
        out,
        BlockStructure::TriangularLower,
        accumulate,
        a,
        BlockStructure::Rectangular,
        b,
        BlockStructure::Rectangular,
        scale,
        par,
    );
}

/// Computes the product of a symmetric matrix, of which both triangles are stored, and a vector. The columns are
/// computed in parallel, and each sum has a fixed order.
pub(crate) fn symmetric_times(a: &Dense, x: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; a.rows];
    out.par_iter_mut()
        .with_min_len(64)
        .enumerate()
        .for_each(|(j, out)| *out = dot(a.col(j), x));
    out
}

/// Computes the inner product. The result does not depend on the number of threads.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    if a.len() < MANY {
        return short_dot(a, b);
    }
    sum_chunks(a.len(), |range| short_dot(&a[range.clone()], &b[range]))
}

/// Number of separate partial sums. Because they are separate, an addition does not have to wait for the previous one.
const APART: usize = 4;

simd_fn! {
    fn dot_lanes, dot_lanes_fn = <V>(a: &[f64], b: &[f64]) -> f64 {
        let mut sums = [V::zero(); APART];
        let (a, b) = (a.chunks_exact(APART * LANES), b.chunks_exact(APART * LANES));
        let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(x, y)| x * y).sum();
        for (a, b) in a.zip(b) {
            for (k, sum) in sums.iter_mut().enumerate() {
                // SAFETY: both chunks contain this many vectors.
                *sum = unsafe {
                    V::load(a.as_ptr().add(k * LANES)).fma(V::load(b.as_ptr().add(k * LANES)), *sum)
                };
            }
        }
        ((sums[0] + sums[2]) + (sums[1] + sums[3])).sum() + rest
    }

    fn add_scaled_lanes, add_scaled_lanes_fn = <V>(a: f64, x: &[f64], y: &mut [f64]) {
        each_lane::<V>(x, y, #[inline(always)] |x, y| V::splat(a).fma(x, y));
    }

    fn add_squares_lanes, add_squares_lanes_fn = <V>(x: &[f64], y: &mut [f64]) {
        each_lane::<V>(x, y, #[inline(always)] |x, y| x.fma(x, y));
    }

    fn multiply_lanes, multiply_lanes_fn = <V>(x: &[f64], y: &mut [f64]) {
        each_lane::<V>(x, y, #[inline(always)] |x, y| x * y);
    }
}

#[inline(always)]
fn each_lane<V: F64x8>(x: &[f64], y: &mut [f64], f: impl Fn(V, V) -> V) {
    let (xs, mut ys) = (x.chunks_exact(LANES), y.chunks_exact_mut(LANES));
    let rest = xs.remainder();
    for (x, y) in xs.zip(ys.by_ref()) {
        // SAFETY: both chunks contain eight numbers.
        unsafe { f(V::load(x.as_ptr()), V::load(y.as_ptr())).store(y.as_mut_ptr()) };
    }
    let (mut x, mut y) = ([0.0; LANES], [0.0; LANES]);
    let last = ys.into_remainder();
    x[..rest.len()].copy_from_slice(rest);
    y[..last.len()].copy_from_slice(last);
    let out = f(V::from_array(x), V::from_array(y)).to_array();
    last.copy_from_slice(&out[..last.len()]);
}

pub(crate) fn short_dot(a: &[f64], b: &[f64]) -> f64 {
    dot_lanes(Simd::detect(), a, b)
}

pub(crate) fn add_scaled(a: f64, x: &[f64], y: &mut [f64]) {
    add_scaled_lanes(Simd::detect(), a, x, y);
}

pub(crate) fn add_squares(x: &[f64], y: &mut [f64]) {
    add_squares_lanes(Simd::detect(), x, y);
}

pub(crate) fn multiply(x: &[f64], y: &mut [f64]) {
    multiply_lanes(Simd::detect(), x, y);
}

/// Computes the sum of `f(i)` over `0..n`. The result does not depend on the number of threads.
pub(crate) fn sum(n: usize, f: impl Fn(usize) -> f64 + Sync) -> f64 {
    sum_chunks(n, |range| range.map(&f).sum())
}

/// Computes the sum of `f(range)` over ranges that make up `0..n`. The result does not depend on the number of threads.
pub(crate) fn sum_chunks(n: usize, f: impl Fn(Range<usize>) -> f64 + Sync) -> f64 {
    let stretch = |c: usize| f(c * CHUNK..((c + 1) * CHUNK).min(n));
    if n <= CHUNK {
        return stretch(0);
    }
    let parts: Vec<f64> = (0..n.div_ceil(CHUNK))
        .into_par_iter()
        .map(stretch)
        .collect();
    parts.iter().sum()
}

/// Fills n copies of `blank` by applying `f` to them chunk by chunk, in parallel if n is large enough.
pub(crate) fn in_chunks<T: Copy + Send + Sync>(
    n: usize,
    blank: T,
    f: impl Fn(Range<usize>, &mut [T]) + Sync,
) -> Vec<T> {
    if n <= CHUNK {
        let mut out = vec![blank; n];
        f(0..n, &mut out);
        return out;
    }
    let mut out: Vec<T> = rayon::iter::repeat_n(blank, n).collect();
    out.par_chunks_mut(CHUNK).enumerate().for_each(|(c, out)| {
        f(c * CHUNK..c * CHUNK + out.len(), out);
    });
    out
}

pub(crate) fn map<T: Send>(n: usize, f: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    if n <= CHUNK {
        return (0..n).map(f).collect();
    }
    (0..n).into_par_iter().with_min_len(CHUNK).map(f).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positive_definite(n: usize) -> Dense {
        Dense::from_fn(n, n, |i, j| {
            (-0.1 * (i as f64 - j as f64).powi(2)).exp() + if i == j { 0.5 } else { 0.0 }
        })
    }

    #[test]
    fn factor_and_inverse_agree_with_the_matrix() {
        for n in [1, 7, 90] {
            let a = positive_definite(n);
            let mut factor = a.clone();
            cholesky(&mut factor).unwrap();
            let inverse = inverse_of(&factor);
            let mut room = Dense::zeros(n, n);
            for (i, x) in inverse_diagonal(&factor, &mut room).iter().enumerate() {
                assert!((x - inverse.get(i, i)).abs() < 1e-13);
            }
            let mut identity = Dense::zeros(n, n);
            product(identity.view_mut(), false, a.view(), inverse.view(), 1.0);
            let x: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
            let mut b = symmetric_times(&a, &x);
            solve(&factor, &mut b);
            for i in 0..n {
                assert!((b[i] - x[i]).abs() < 1e-12);
                for j in 0..n {
                    let expected = if i == j { 1.0 } else { 0.0 };
                    assert!((identity.get(i, j) - expected).abs() < 1e-12);
                }
            }
        }
        let x: Vec<f64> = (0..77).map(|i| f64::from(i).sin()).collect();
        let mut y: Vec<f64> = (0..77).map(|i| f64::from(i).cos()).collect();
        let mut expected = y.clone();
        let inner: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
        assert!((dot(&x, &y) - inner).abs() < 1e-13);
        add_scaled(0.3, &x, &mut y);
        add_squares(&x, &mut y);
        multiply(&x, &mut y);
        for (e, x) in expected.iter_mut().zip(&x) {
            *e = (*e + 0.3 * x + x * x) * x;
        }
        assert!(y.iter().zip(&expected).all(|(y, e)| (y - e).abs() < 1e-15));
        let mut indefinite = Dense::from_fn(2, 2, |i, j| if i == j { 1.0 } else { 2.0 });
        assert_eq!(cholesky(&mut indefinite), None);
    }
}
