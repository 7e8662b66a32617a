//! Small dense triangular algebra; lower factors are full row-major squares.

use crate::reduce::{axpy, dot};

/// The lower Cholesky factor of the symmetric row-major `a`, or `None` when it is not numerically
/// positive definite. Only the lower triangle is read; the strict upper one of the result is 0.
pub(crate) fn cholesky(a: &[f64], n: usize) -> Option<Vec<f64>> {
    let mut l = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let x = a[i * n + j] - dot(&l[i * n..i * n + j], &l[j * n..j * n + j]);
            if i == j {
                let positive = x > 1e-14 * a[i * n + i].abs() && x.is_finite();
                if !positive {
                    return None;
                }
                l[i * n + i] = x.sqrt();
            } else {
                l[i * n + j] = x / l[j * n + j];
            }
        }
    }
    Some(l)
}

/// `x ← L⁻¹ x`.
pub(crate) fn solve_lower(l: &[f64], x: &mut [f64]) {
    let n = x.len();
    for i in 0..n {
        let known = dot(&l[i * n..i * n + i], &x[..i]);
        x[i] = (x[i] - known) / l[i * n + i];
    }
}

/// `x ← L⁻ᵀ x`.
pub(crate) fn solve_lower_transposed(l: &[f64], x: &mut [f64]) {
    let n = x.len();
    for i in (0..n).rev() {
        x[i] /= l[i * n + i];
        let c = x[i];
        let (head, _) = x.split_at_mut(i);
        axpy(-c, &l[i * n..i * n + i], head);
    }
}

/// `x ← L⁻¹ x` for `x` of `n × lanes`, lanes contiguous.
pub(crate) fn solve_lower_lanes(l: &[f64], n: usize, x: &mut [f64], lanes: usize) {
    for i in 0..n {
        let (done, rest) = x.split_at_mut(i * lanes);
        let row = &mut rest[..lanes];
        for j in 0..i {
            axpy(-l[i * n + j], &done[j * lanes..(j + 1) * lanes], row);
        }
        let c = 1.0 / l[i * n + i];
        row.iter_mut().for_each(|x| *x *= c);
    }
}

/// The lower Cholesky factor of `A⁻¹`, given the lower factor of `A` (both n × n): with J the order
/// reversal, `A⁻¹ = R Rᵀ` for `R = L⁻ᵀ` upper triangular, refactored to be lower.
pub(crate) fn inverse_factor(l: &[f64], n: usize) -> Option<Vec<f64>> {
    let mut inverse = vec![0.0; n * n];
    let mut column = vec![0.0; n];
    for j in 0..n {
        column.fill(0.0);
        column[j] = 1.0;
        solve_lower(l, &mut column);
        solve_lower_transposed(l, &mut column);
        for i in 0..n {
            inverse[i * n + j] = column[i];
        }
    }
    cholesky(&inverse, n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factor_and_solves_invert_each_other() {
        let n = 11;
        let mut a = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                a[i * n + j] = ((i * j) as f64 * 0.7).sin() * 0.3;
            }
        }
        for i in 0..n {
            for j in 0..i {
                a[j * n + i] = a[i * n + j];
            }
            a[i * n + i] = 4.0 + i as f64;
        }
        let l = cholesky(&a, n).unwrap();
        let x: Vec<f64> = (0..n).map(|i| i as f64 - 3.0).collect();
        let mut y: Vec<f64> = (0..n).map(|i| dot(&a[i * n..(i + 1) * n], &x)).collect();
        solve_lower(&l, &mut y);
        solve_lower_transposed(&l, &mut y);
        assert!(x.iter().zip(&y).all(|(x, y)| (x - y).abs() < 1e-12));
        let r = inverse_factor(&l, n).unwrap();
        for i in 0..n {
            for j in 0..n {
                let product: f64 = (0..n)
                    .map(|k| a[i * n + k] * dot(&r[k * n..(k + 1) * n], &r[j * n..(j + 1) * n]))
                    .sum();
                let unit = if i == j { 1.0 } else { 0.0 };
                assert!((product - unit).abs() < 1e-12);
            }
        }
        a[0] = -1.0;
        assert!(cholesky(&a, n).is_none());
    }
}
