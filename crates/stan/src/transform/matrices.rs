//! Transforms of matrices, which are all column-major.

use super::{Violation, vectors};

/// log(1 − tanh² z)
fn log_sech2(z: f64) -> f64 {
    2.0 * (std::f64::consts::LN_2 - z.abs() - (-2.0 * z.abs()).exp().ln_1p())
}

/// Builds a matrix whose rows and columns sum to zero. For rows and for columns, the basis is that of the zero-sum
/// vector, except that the first row and column move to the end, as in Stan's matrices.
pub(super) fn sum_to_zero(z: &[f64], rows: usize, cols: usize, out: &mut Vec<f64>) {
    let start = out.len();
    if rows == 0 || cols == 0 {
        return;
    }
    let free = rows - 1;
    // Columns come first: (rows − 1) × (cols − 1) coordinates become rows × (cols − 1) numbers.
    let mut tall = Vec::with_capacity(rows * (cols - 1));
    for j in 0..cols - 1 {
        vectors::sum_to_zero(&z[j * free..(j + 1) * free], rows, &mut tall);
    }
    out.resize(start + rows * cols, 0.0);
    for i in 0..rows {
        let row: Vec<f64> = (0..cols - 1).map(|j| tall[j * rows + i]).collect();
        let mut full = Vec::with_capacity(cols);
        vectors::sum_to_zero(&row, cols, &mut full);
        for (j, x) in full.into_iter().enumerate() {
            out[start + (j + cols - 1) % cols * rows + (i + rows - 1) % rows] = x;
        }
    }
}

pub(super) fn sum_to_zero_free(x: &[f64], rows: usize, cols: usize, out: &mut Vec<f64>) {
    if rows == 0 || cols == 0 {
        return;
    }
    let mut narrow = vec![0.0; rows * (cols - 1)];
    for i in 0..rows {
        let row: Vec<f64> = (0..cols)
            .map(|j| x[(j + cols - 1) % cols * rows + (i + rows - 1) % rows])
            .collect();
        let mut free = Vec::with_capacity(cols - 1);
        vectors::sum_to_zero_free(&row, &mut free);
        for (j, v) in free.into_iter().enumerate() {
            narrow[j * rows + i] = v;
        }
    }
    for j in 0..cols - 1 {
        vectors::sum_to_zero_free(&narrow[j * rows..(j + 1) * rows], out);
    }
}

/// The canonical partial correlations are in row order.
pub(super) fn cholesky_corr(z: &[f64], n: usize, out: &mut Vec<f64>) -> f64 {
    let start = out.len();
    out.resize(start + n * n, 0.0);
    let l = &mut out[start..];
    let mut jacobian = 0.0;
    let mut at = 0;
    for i in 0..n {
        // The logarithm of 1 minus the sum of the squares of the row's elements so far.
        let mut log_rest: f64 = 0.0;
        for j in 0..i {
            jacobian += log_sech2(z[at]) + 0.5 * log_rest;
            l[j * n + i] = z[at].tanh() * (0.5 * log_rest).exp();
            log_rest += log_sech2(z[at]);
            at += 1;
        }
        l[i * n + i] = (0.5 * log_rest).exp();
    }
    jacobian
}

pub(super) fn cholesky_corr_free(x: &[f64], n: usize, out: &mut Vec<f64>) {
    for i in 1..n {
        let mut rest: f64 = 1.0;
        for j in 0..i {
            let v = x[j * n + i];
            out.push((v / rest.sqrt()).atanh());
            rest -= v * v;
        }
    }
}

/// The canonical partial correlations are in column order.
pub(super) fn corr(z: &[f64], n: usize, out: &mut Vec<f64>) -> f64 {
    let mut l = vec![0.0; n * n];
    let mut log_rest = vec![0.0f64; n];
    let mut jacobian = 0.0;
    let mut at = 0;
    for j in 0..n {
        l[j * n + j] = (0.5 * log_rest[j]).exp();
        for i in j + 1..n {
            let sech = log_sech2(z[at]);
            l[j * n + i] = z[at].tanh() * (0.5 * log_rest[i]).exp();
            log_rest[i] += sech;
            // The first term is from the tanh, and (n − j − 2) / 2 is from the partial correlations.
            jacobian += sech + 0.5 * (n - j - 2) as f64 * sech;
            at += 1;
        }
    }
    push_product(&l, n, out);
    let start = out.len() - n * n;
    for i in 0..n {
        out[start + i * n + i] = 1.0;
    }
    jacobian
}

pub(super) fn corr_free(x: &[f64], n: usize, out: &mut Vec<f64>) -> Result<(), Violation> {
    let l = cholesky(x, n, "a correlation matrix")?;
    let mut rest = vec![1.0; n];
    for j in 0..n {
        for i in j + 1..n {
            let v: f64 = l[j * n + i];
            let left: f64 = rest[i];
            out.push((v / left.sqrt()).atanh());
            rest[i] -= v * v;
        }
    }
    Ok(())
}

/// The coordinates fill the rows of the lower triangle, and the diagonal is exponentiated. Rows below the square part
/// are not transformed.
pub(super) fn cholesky_cov(z: &[f64], rows: usize, cols: usize, out: &mut Vec<f64>) -> f64 {
    let start = out.len();
    out.resize(start + rows * cols, 0.0);
    let l = &mut out[start..];
    let mut jacobian = 0.0;
    let mut at = 0;
    for i in 0..rows {
        for j in 0..cols.min(i + 1) {
            l[j * rows + i] = if i == j {
                jacobian += z[at];
                z[at].exp()
            } else {
                z[at]
            };
            at += 1;
        }
    }
    jacobian
}

pub(super) fn cholesky_cov_free(x: &[f64], rows: usize, cols: usize, out: &mut Vec<f64>) {
    for i in 0..rows {
        for j in 0..cols.min(i + 1) {
            let v = x[j * rows + i];
            out.push(if i == j { v.ln() } else { v });
        }
    }
}

pub(super) fn cov(z: &[f64], n: usize, out: &mut Vec<f64>) -> f64 {
    let mut l = Vec::with_capacity(n * n);
    cholesky_cov(z, n, n, &mut l);
    push_product(&l, n, out);
    let mut jacobian = n as f64 * std::f64::consts::LN_2;
    for k in 0..n {
        // The diagonal coordinate of row k is at the end of its row of the triangle.
        jacobian += (n - k + 1) as f64 * z[k * (k + 3) / 2];
    }
    jacobian
}

pub(super) fn cov_free(x: &[f64], n: usize, out: &mut Vec<f64>) -> Result<(), Violation> {
    let l = cholesky(x, n, "a covariance matrix")?;
    cholesky_cov_free(&l, n, n, out);
    Ok(())
}

fn push_product(l: &[f64], n: usize, out: &mut Vec<f64>) {
    for j in 0..n {
        for i in 0..n {
            let k = i.min(j) + 1;
            out.push((0..k).map(|k| l[k * n + i] * l[k * n + j]).sum());
        }
    }
}

/// The factor is column-major. Only the lower triangle of `x` is read.
pub(super) fn cholesky(x: &[f64], n: usize, what: &str) -> Result<Vec<f64>, Violation> {
    // Rows and columns are exchanged before and after.
    let transposed = |x: &[f64]| -> Vec<f64> {
        let positions = (0..n * n).map(|at| at % n * n + at / n);
        positions.map(|at| x[at]).collect()
    };
    let l = jensen_math::dense::factor(&transposed(x), n, 0.0).map_err(|error| Violation {
        element: None,
        expected: format!("{what}, which is positive definite"),
        found: format!(
            "a matrix that is not (pivot {} is {})",
            error.pivot + 1,
            error.value
        ),
    })?;
    Ok(transposed(&l))
}

pub(super) fn column_stochastic(z: &[f64], rows: usize, cols: usize, out: &mut Vec<f64>) -> f64 {
    if rows == 0 {
        return 0.0;
    }
    let free = rows - 1;
    (0..cols)
        .map(|j| vectors::simplex(&z[j * free..(j + 1) * free], rows, out))
        .sum()
}

pub(super) fn column_stochastic_free(x: &[f64], rows: usize, cols: usize, out: &mut Vec<f64>) {
    for j in 0..cols {
        vectors::simplex_free(&x[j * rows..(j + 1) * rows], out);
    }
}

/// The coordinates form a column-major matrix with `rows` rows and `cols − 1` columns.
pub(super) fn row_stochastic(z: &[f64], rows: usize, cols: usize, out: &mut Vec<f64>) -> f64 {
    let start = out.len();
    out.resize(start + rows * cols, 0.0);
    if cols == 0 {
        return 0.0;
    }
    let mut jacobian = 0.0;
    for i in 0..rows {
        let row: Vec<f64> = (0..cols - 1).map(|j| z[j * rows + i]).collect();
        let mut simplex = Vec::with_capacity(cols);
        jacobian += vectors::simplex(&row, cols, &mut simplex);
        for (j, x) in simplex.into_iter().enumerate() {
            out[start + j * rows + i] = x;
        }
    }
    jacobian
}

pub(super) fn row_stochastic_free(x: &[f64], rows: usize, cols: usize, out: &mut Vec<f64>) {
    let start = out.len();
    out.resize(start + rows * cols.saturating_sub(1), 0.0);
    for i in 0..rows {
        let row: Vec<f64> = (0..cols).map(|j| x[j * rows + i]).collect();
        let mut free = Vec::new();
        vectors::simplex_free(&row, &mut free);
        for (j, v) in free.into_iter().enumerate() {
            out[start + j * rows + i] = v;
        }
    }
}
