//! Sums and products of vectors in a fixed order. Each sum is computed as eight partial sums, which are then added in a
//! fixed tree. The result therefore depends only on the numbers.
//!
//! The functions use no fused multiply-add, so every instruction set gives the same bits. For this reason, they have no
//! argument for the SIMD level, and always use the widest instruction set of the machine.

use crate::simd::{F64x8, LANES, Simd};

fn tree(s: [f64; 8]) -> f64 {
    ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}

#[inline(always)]
fn load<V: F64x8>(a: &[f64], k: usize) -> V {
    let eight: &[f64; LANES] = a[k..k + LANES].try_into().expect("eight numbers");
    // SAFETY: a reference to eight numbers is valid for reading eight numbers.
    unsafe { V::load(eight.as_ptr()) }
}

#[inline(always)]
fn store<V: F64x8>(v: V, a: &mut [f64], k: usize) {
    let eight: &mut [f64; LANES] = (&mut a[k..k + LANES]).try_into().expect("eight numbers");
    // SAFETY: an exclusive reference to eight numbers is valid for writing eight numbers.
    unsafe { v.store(eight.as_mut_ptr()) }
}

/// Adds the products `a[i] b[i]` from index `done` on to the partial sums, and returns the total.
#[inline(always)]
fn finish<V: F64x8>(partial: V, a: &[f64], b: &[f64], done: usize) -> f64 {
    let mut partial = partial.to_array();
    for ((s, x), y) in partial.iter_mut().zip(&a[done..]).zip(&b[done..]) {
        *s += x * y;
    }
    tree(partial)
}

crate::simd_fn! {
    fn sum_kernel, sum_kernel_fn = <V>(a: &[f64]) -> f64 {
        let whole = a.len() / LANES * LANES;
        let mut partial = V::zero();
        for k in (0..whole).step_by(LANES) {
            partial = partial + load(a, k);
        }
        let mut partial = partial.to_array();
        for (s, x) in partial.iter_mut().zip(&a[whole..]) {
            *s += x;
        }
        tree(partial)
    }

    fn dot_kernel, dot_kernel_fn = <V>(a: &[f64], b: &[f64]) -> f64 {
        let n = a.len().min(b.len());
        let (a, b) = (&a[..n], &b[..n]);
        let whole = n / LANES * LANES;
        let mut partial = V::zero();
        for k in (0..whole).step_by(LANES) {
            let (x, y): (V, V) = (load(a, k), load(b, k));
            partial = partial + x * y;
        }
        finish(partial, a, b, whole)
    }

    fn axpy_kernel, axpy_kernel_fn = <V>(c: f64, x: &[f64], y: &mut [f64]) {
        let n = x.len().min(y.len());
        let (x, y) = (&x[..n], &mut y[..n]);
        let whole = n / LANES * LANES;
        let factor = V::splat(c);
        for k in (0..whole).step_by(LANES) {
            let (v, w): (V, V) = (load(x, k), load(y, k));
            store(w + factor * v, y, k);
        }
        for (y, x) in y[whole..].iter_mut().zip(&x[whole..]) {
            *y += c * x;
        }
    }

    fn affine_row_kernel, affine_row_kernel_fn = <V>(c: f64, scale: f64, x: &[f64], y: &mut [f64]) {
        let n = x.len().min(y.len());
        let (x, y) = (&x[..n], &mut y[..n]);
        let whole = n / LANES * LANES;
        let (offset, factor) = (V::splat(c), V::splat(scale));
        for k in (0..whole).step_by(LANES) {
            let v: V = load(x, k);
            store(offset + factor * v, y, k);
        }
        for (y, x) in y[whole..].iter_mut().zip(&x[whole..]) {
            *y = c + scale * x;
        }
    }

    fn dots_kernel, dots_kernel_fn = <V>(a: [&[f64]; 2], b: [&[f64]; 4]) -> [[f64; 4]; 2] {
        let n = a[0].len();
        let (a, b) = (a.map(|row| &row[..n]), b.map(|row| &row[..n]));
        let whole = n / LANES * LANES;
        let mut partial = [[V::zero(); 4]; 2];
        for k in (0..whole).step_by(LANES) {
            let x: [V; 2] = [load(a[0], k), load(a[1], k)];
            let y: [V; 4] = [load(b[0], k), load(b[1], k), load(b[2], k), load(b[3], k)];
            for (partial, x) in partial.iter_mut().zip(x) {
                for (partial, y) in partial.iter_mut().zip(y) {
                    *partial = *partial + x * y;
                }
            }
        }
        let mut out = [[0.0; 4]; 2];
        for i in 0..2 {
            for j in 0..4 {
                out[i][j] = finish(partial[i][j], a[i], b[j], whole);
            }
        }
        out
    }

    fn combine_kernel, combine_kernel_fn = <V>(weights: [&[f64]; 4], rows: &[f64], lanes: usize, first: usize, out: [&mut [f64]; 4]) {
        let [w0, w1, w2, w3] = weights;
        let [o0, o1, o2, o3] = out;
        let width = o0.len();
        let whole = width / LANES * LANES;
        let terms = w0.len();
        let (w1, w2, w3) = (&w1[..terms], &w2[..terms], &w3[..terms]);
        for k in (0..whole).step_by(LANES) {
            let mut acc: [V; 4] = [load(o0, k), load(o1, k), load(o2, k), load(o3, k)];
            for j in 0..terms {
                let x: V = load(rows, j * lanes + first + k);
                acc[0] = acc[0] + V::splat(w0[j]) * x;
                acc[1] = acc[1] + V::splat(w1[j]) * x;
                acc[2] = acc[2] + V::splat(w2[j]) * x;
                acc[3] = acc[3] + V::splat(w3[j]) * x;
            }
            store(acc[0], o0, k);
            store(acc[1], o1, k);
            store(acc[2], o2, k);
            store(acc[3], o3, k);
        }
        for (w, out) in [(w0, o0), (w1, o1), (w2, o2), (w3, o3)] {
            for (k, out) in out.iter_mut().enumerate().skip(whole) {
                for (j, w) in w.iter().enumerate() {
                    *out += w * rows[j * lanes + first + k];
                }
            }
        }
    }
}

/// Returns `Σ a`.
pub fn sum(a: &[f64]) -> f64 {
    sum_kernel(Simd::detect(), a)
}

/// Returns `Σ a b`.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    dot_kernel(Simd::detect(), a, b)
}

/// Computes `y += c x`.
pub fn axpy(c: f64, x: &[f64], y: &mut [f64]) {
    axpy_kernel(Simd::detect(), c, x, y);
}

/// Computes `y = c + scale · x`.
pub fn affine_row(c: f64, scale: f64, x: &[f64], y: &mut [f64]) {
    affine_row_kernel(Simd::detect(), c, scale, x, y);
}

/// Returns the eight scalar products between the two rows of `a` and the four rows of `b`. All rows have the same
/// length. Each product is computed as in [`dot`].
pub fn dots(a: [&[f64]; 2], b: [&[f64]; 4]) -> [[f64; 4]; 2] {
    dots_kernel(Simd::detect(), a, b)
}

/// Computes `out[i] += Σ_j weights[i][j] rows[j]` for four rows of output. `rows` is a `terms × lanes` matrix, and the
/// first element of the output corresponds to its lane `first`. The function adds terms in order, as [`axpy`] does.
pub fn combine(
    weights: [&[f64]; 4],
    rows: &[f64],
    lanes: usize,
    first: usize,
    out: [&mut [f64]; 4],
) {
    combine_kernel(Simd::detect(), weights, rows, lanes, first, out);
}

/// Returns the mean and standard error of independent numbers. The standard error is infinite for fewer than two
/// numbers.
pub fn mean_se(a: &[f64]) -> (f64, f64) {
    let n = a.len() as f64;
    let mean = sum(a) / n;
    if a.len() < 2 {
        return (mean, f64::INFINITY);
    }
    let squares: Vec<f64> = a.iter().map(|x| (x - mean) * (x - mean)).collect();
    (mean, (sum(&squares) / (n - 1.0) / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_exact_sums_of_integers() {
        for n in 0..40 {
            let a: Vec<f64> = (0..n).map(f64::from).collect();
            let expected = a.iter().sum::<f64>();
            assert_eq!(sum(&a), expected);
            assert_eq!(dot(&a, &a), a.iter().map(|x| x * x).sum::<f64>());
            let mut b = a.clone();
            axpy(2.0, &a, &mut b);
            assert!(b.iter().zip(&a).all(|(b, a)| *b == 3.0 * a));
            affine_row(1.0, 2.0, &a, &mut b);
            assert!(b.iter().zip(&a).all(|(b, a)| *b == 1.0 + 2.0 * a));
        }
    }

    #[test]
    fn blocks_agree_with_single_rows_to_the_bit() {
        for lanes in [3, 8, 21] {
            let rows: Vec<f64> = (0..6 * lanes).map(|i| (i as f64 * 0.7).sin()).collect();
            let row = |i: usize| &rows[i * lanes..(i + 1) * lanes];
            let found = dots([row(0), row(1)], [row(2), row(3), row(4), row(5)]);
            for (i, found) in found.iter().enumerate() {
                for (j, found) in found.iter().enumerate() {
                    assert_eq!(*found, dot(row(i), row(2 + j)));
                }
            }
            let weights: Vec<f64> = (0..24).map(|i| (i as f64 * 0.3).cos()).collect();
            let weight = |i: usize| &weights[6 * i..6 * i + 6];
            let first = 2;
            let mut out = vec![1.0; 4 * (lanes - first)];
            let mut expected = out.clone();
            for (i, out) in expected.chunks_mut(lanes - first).enumerate() {
                for (j, w) in weight(i).iter().enumerate() {
                    axpy(*w, &row(j)[first..], out);
                }
            }
            let mut outs = out.chunks_mut(lanes - first);
            let four = [(); 4].map(|()| outs.next().expect("four rows"));
            combine(
                [weight(0), weight(1), weight(2), weight(3)],
                &rows,
                lanes,
                first,
                four,
            );
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn standard_error_of_a_known_sample() {
        let (mean, se) = mean_se(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(mean, 2.5);
        assert!((se - (5.0f64 / 3.0 / 4.0).sqrt()).abs() < 1e-15);
    }
}
