//! Small dense linear algebra for nested Laplace approximations.

use crate::dense::{cholesky, solve_lower, solve_lower_transposed};
use crate::reduce::{axpy, dot};

pub(super) fn shares(rows: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let f = rows[0].len();
    let mut gram = vec![0.0; f * f];
    for row in &rows {
        for (i, x) in row.iter().enumerate() {
            axpy(*x, row, &mut gram[i * f..(i + 1) * f]);
        }
    }
    (0..f).for_each(|i| gram[i * f + i] *= 1.0 + 1e-9);
    let root = cholesky(&gram, f)?;
    let solved = rows.into_iter().map(|mut row| {
        solve_lower(&root, &mut row);
        solve_lower_transposed(&root, &mut row);
        row
    });
    Some(solved.collect())
}

pub(super) fn point(mean: &[f64], factor: &[f64], x: &[f64]) -> Vec<f64> {
    let k = mean.len();
    (0..k)
        .map(|i| mean[i] + dot(&factor[i * k..=i * k + i], &x[..=i]))
        .collect()
}

pub(super) fn product(a: &[f64], b: &[f64], k: usize) -> Vec<f64> {
    let mut out = vec![0.0; k * k];
    for i in 0..k {
        for j in 0..=i {
            out[i * k + j] = (j..=i).map(|m| a[i * k + m] * b[m * k + j]).sum();
        }
    }
    out
}

pub(super) fn root_of_inverse(precision: &[f64], k: usize) -> Vec<f64> {
    let mut covariance = vec![0.0; k * k];
    for i in 0..k {
        let mut unit = vec![0.0; k];
        unit[i] = 1.0;
        solve_lower(precision, &mut unit);
        solve_lower_transposed(precision, &mut unit);
        covariance[i * k..(i + 1) * k].copy_from_slice(&unit);
    }
    cholesky(&covariance, k).unwrap_or_else(|| {
        let mut diagonal = vec![0.0; k * k];
        (0..k).for_each(|i| diagonal[i * k + i] = covariance[i * k + i].max(0.0).sqrt());
        diagonal
    })
}
