//! Inner products, and Cholesky factors of small symmetric matrices, row-major.

/// Σ a b, in eight running sums.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (a_rows, b_rows) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a_rows
        .remainder()
        .iter()
        .zip(b_rows.remainder())
        .map(|(a, b)| a * b)
        .sum();
    for (a, b) in a_rows.zip(b_rows) {
        for i in 0..8 {
            sums[i] += a[i] * b[i];
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// The lower factor L of a positive definite n × n matrix A = L Lᵀ, zeros above the diagonal; `None` when A is not
/// positive definite to rounding.
pub(crate) fn cholesky(a: &[f64], n: usize) -> Option<Vec<f64>> {
    let mut l = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| l[i * n + k] * l[j * n + k]).sum();
            let x = a[i * n + j] - dot;
            if i == j {
                if !(x > 0.0 && x.is_finite()) {
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

/// log |A| from its factor.
pub(crate) fn log_determinant(l: &[f64], n: usize) -> f64 {
    2.0 * (0..n).map(|i| l[i * n + i].ln()).sum::<f64>()
}

/// Solves L X = B in place, B being n × m.
pub(crate) fn solve_lower(l: &[f64], n: usize, b: &mut [f64]) {
    let m = b.len() / n;
    for i in 0..n {
        let (before, rest) = b.split_at_mut(i * m);
        let row = &mut rest[..m];
        for (k, other) in before.chunks_exact(m).enumerate() {
            let f = l[i * n + k];
            for (x, y) in row.iter_mut().zip(other) {
                *x -= f * y;
            }
        }
        row.iter_mut().for_each(|x| *x /= l[i * n + i]);
    }
}

/// Solves Lᵀ X = B in place, B being n × m.
pub(crate) fn solve_upper(l: &[f64], n: usize, b: &mut [f64]) {
    let m = b.len() / n;
    for i in (0..n).rev() {
        let (head, after) = b.split_at_mut((i + 1) * m);
        let row = &mut head[i * m..];
        for (k, other) in after.chunks_exact(m).enumerate() {
            let f = l[(i + 1 + k) * n + i];
            for (x, y) in row.iter_mut().zip(other) {
                *x -= f * y;
            }
        }
        row.iter_mut().for_each(|x| *x /= l[i * n + i]);
    }
}

/// A⁻¹ B from the factor of A, in place.
pub(crate) fn solve(l: &[f64], n: usize, b: &mut [f64]) {
    solve_lower(l, n, b);
    solve_upper(l, n, b);
}

/// A⁻¹ from the factor of A.
pub(crate) fn inverse(l: &[f64], n: usize) -> Vec<f64> {
    let mut x = vec![0.0; n * n];
    for i in 0..n {
        x[i * n + i] = 1.0;
    }
    solve(l, n, &mut x);
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_solve_and_invert() {
        let n = 4;
        let a: Vec<f64> = (0..16)
            .map(|i| {
                let (r, c) = (i / 4, i % 4);
                1.0 / (1.0 + (r as f64 - c as f64).abs()) + if r == c { 2.0 } else { 0.0 }
            })
            .collect();
        let l = cholesky(&a, n).unwrap();
        let x = inverse(&l, n);
        for r in 0..n {
            for c in 0..n {
                let dot: f64 = (0..n).map(|k| a[r * n + k] * x[k * n + c]).sum();
                assert!((dot - f64::from(r == c)).abs() < 1e-13);
            }
        }
        assert!(cholesky(&[1.0, 2.0, 2.0, 1.0], 2).is_none());
        assert!(
            (log_determinant(&cholesky(&[4.0, 0.0, 0.0, 9.0], 2).unwrap(), 2) - 36f64.ln()).abs()
                < 1e-14
        );
    }
}
