//! Estimates the correlation matrix of a prior from the data.

use jensen_math::constants::LOG_TWO_PI;
use jensen_math::dense;
use jensen_math::reduce::dot;

/// The weights of the identity matrix that are tried are 10^(−k/2), with k from 0 to this number. The smallest weight
/// is 10⁻¹⁰. With this weight, a direction without any spread in standardised rows has a standard deviation of 10⁻⁵,
/// which is far above rounding error.
const FINEST: i32 = 20;

/// Computes the matrix (1 − w) R + w I row by row, where R is the correlation matrix of the complete rows. `rows`
/// contains rows of `dim` numbers. The weight w maximises the mean leave-one-out log density. The density of each row
/// is that of the normal distribution estimated from the other rows (Hoffbeck and Landgrebe, Covariance matrix
/// estimation and classification with limited training data, 1996, Eq. 12 and 17, with this mixture only).
///
/// With few rows, w is near 1. With many rows whose columns nearly determine each other, w is about as small as the
/// variance of a column given the others.
///
/// If `weights` is not empty, a row with weight w counts as w equal rows.
pub(super) fn correlation(dim: usize, rows: &[f64], weights: &[f64]) -> Vec<f64> {
    let weight_of = |at: usize| weights.get(at).copied().unwrap_or(1.0);
    let complete = rows
        .chunks_exact(dim.max(1))
        .enumerate()
        .filter(|(_, row)| row.iter().all(|x| x.is_finite()));
    let (weights, complete): (Vec<f64>, Vec<&[f64]>) =
        complete.map(|(at, row)| (weight_of(at), row)).unzip();
    let mut rows: Vec<f64> = complete.into_iter().flatten().copied().collect();
    let count: f64 = weights.iter().sum();
    let mut out = vec![0.0; dim * dim];
    standardise(dim, &mut rows, &weights);
    for (row, weight) in rows.chunks_exact(dim.max(1)).zip(&weights) {
        for (x, out) in row.iter().zip(out.chunks_exact_mut(dim)) {
            let share = weight * x / count;
            out.iter_mut().zip(row).for_each(|(o, y)| *o += share * y);
        }
    }
    // A column without spread nevertheless has a correlation of 1 with itself.
    (0..dim).for_each(|i| out[i * dim + i] = 1.0);
    let weight = weight(dim, &rows, &weights, &out);
    for i in 0..dim {
        for j in (0..dim).filter(|j| *j != i) {
            out[i * dim + j] *= 1.0 - weight;
        }
    }
    out
}

fn standardise(dim: usize, rows: &mut [f64], weights: &[f64]) {
    let count: f64 = weights.iter().sum();
    for d in 0..dim {
        let column = || rows.iter().skip(d).step_by(dim).zip(weights);
        let mean = column().map(|(x, w)| w * x).sum::<f64>() / count;
        let squares = column().map(|(x, w)| w * (x - mean).powi(2));
        let sd = (squares.sum::<f64>() / count).sqrt();
        let scale = if sd > 0.0 { 1.0 / sd } else { 0.0 };
        for x in rows.iter_mut().skip(d).step_by(dim) {
            *x = (*x - mean) * scale;
        }
    }
}

fn weight(dim: usize, rows: &[f64], weights: &[f64], correlation: &[f64]) -> f64 {
    let count: f64 = weights.iter().sum();
    if count <= 1.0 {
        return 1.0;
    }
    let (values, vectors) = dense::eigen_symmetric(correlation, dim);
    let axes: Vec<&[f64]> = vectors.chunks_exact(dim.max(1)).collect();
    let turned: Vec<f64> = rows
        .chunks_exact(dim.max(1))
        .flat_map(|row| axes.iter().map(|axis| dot(axis, row).powi(2)))
        .collect();
    let tried = (0..=FINEST).map(|k| 10f64.powf(-0.5 * f64::from(k)));
    let mut best = (1.0, f64::NEG_INFINITY);
    for weight in tried {
        let score = left_out(&turned, weights, &values, weight);
        if score > best.1 {
            best = (weight, score);
        }
    }
    best.0
}

/// Computes the sum of the rows' leave-one-out log densities, in nats. Each row's density is that of the normal
/// distribution estimated from the other rows. `squares` contains the rows' squared coordinates along the eigenvectors.
/// The covariance of the n rows other than x is (n S − n/(n − 1) x xᵀ)/(n − 1). This is a rank-one update, so its
/// determinant and inverse have closed forms (Hoffbeck and Landgrebe, Eq. 20).
fn left_out(squares: &[f64], weights: &[f64], values: &[f64], weight: f64) -> f64 {
    let dim = values.len().max(1);
    let n: f64 = weights.iter().sum();
    let grown = n / (n - 1.0);
    let share = (1.0 - weight) * grown / (n - 1.0);
    let scales: Vec<f64> = values
        .iter()
        .map(|value| (1.0 - weight) * grown * value.max(0.0) + weight)
        .collect();
    let logs: f64 = scales.iter().map(|scale| LOG_TWO_PI + scale.ln()).sum();
    let of_row = |row: &[f64]| {
        let q: f64 = row.iter().zip(&scales).map(|(x, scale)| x / scale).sum();
        let left = 1.0 - share * q;
        if left > 0.0 {
            -0.5 * (logs + left.ln() + grown * grown * q / left)
        } else {
            f64::NEG_INFINITY
        }
    };
    let rows = squares.chunks_exact(dim).zip(weights);
    let known = rows.filter(|(_, weight)| **weight > 0.0);
    known.map(|(row, weight)| weight * of_row(row)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(n: usize, f: f64) -> f64 {
        (n as f64 * f).sin() + (n as f64 * f * 1.618).cos()
    }

    #[test]
    fn the_density_of_a_row_under_the_others_is_that() {
        let (dim, n, weight) = (3, 9, 0.2);
        let mut rows: Vec<f64> = (0..n * dim).map(|i| wave(i, 0.7)).collect();
        let ones = vec![1.0; n];
        standardise(dim, &mut rows, &ones);
        let covariance = |rows: &[&[f64]]| -> (Vec<f64>, Vec<f64>) {
            let count = rows.len() as f64;
            let mean: Vec<f64> = (0..dim)
                .map(|d| rows.iter().map(|row| row[d]).sum::<f64>() / count)
                .collect();
            let entry = |at: usize| {
                let (i, j) = (at / dim, at % dim);
                let product = |row: &&[f64]| (row[i] - mean[i]) * (row[j] - mean[j]);
                rows.iter().map(product).sum::<f64>() / count
            };
            ((0..dim * dim).map(entry).collect(), mean)
        };
        let all: Vec<&[f64]> = rows.chunks(dim).collect();
        let mut direct = 0.0;
        for i in 0..n {
            let others: Vec<&[f64]> = (0..n).filter(|j| *j != i).map(|j| all[j]).collect();
            let (mut s, mean) = covariance(&others);
            for (at, s) in s.iter_mut().enumerate() {
                *s = (1.0 - weight) * *s + if at % (dim + 1) == 0 { weight } else { 0.0 };
            }
            let l = dense::cholesky(&s, dim).unwrap();
            let mut off: Vec<f64> = all[i].iter().zip(&mean).map(|(x, m)| x - m).collect();
            dense::solve_lower(&l, &mut off);
            direct -=
                0.5 * (dim as f64 * LOG_TWO_PI + dense::log_determinant(&l, dim) + dot(&off, &off));
        }
        let (values, vectors) = dense::eigen_symmetric(&covariance(&all).0, dim);
        let squares: Vec<f64> = all
            .iter()
            .flat_map(|row| vectors.chunks(dim).map(|axis| dot(axis, row).powi(2)))
            .collect();
        assert!((left_out(&squares, &ones, &values, weight) - direct).abs() < 1e-9);
    }

    #[test]
    fn columns_that_determine_each_other_stay_tied_and_few_rows_do_not() {
        let thin = |n: usize| {
            let (a, b) = (wave(n, 0.7), wave(n, 1.1));
            [a, b, a - b + 1e-4 * wave(n, 2.9)]
        };
        let many: Vec<f64> = (0..200).flat_map(thin).collect();
        let found = correlation(3, &many, &[]);
        let l = dense::cholesky(&found, 3).unwrap();
        assert!(l[8] < 1e-3, "{}", l[8]);
        let few: Vec<f64> = (0..4 * 6).map(|i| wave(i, 0.7)).collect();
        let found = correlation(6, &few, &[]);
        let strongest = (0..36).filter(|at| at % 7 != 0).map(|at| found[at].abs());
        assert!(strongest.fold(0.0, f64::max) < 0.7);
        // Without complete rows, the columns are treated as independent.
        let gaps = [1.0, f64::NAN, f64::NAN, 2.0];
        assert_eq!(correlation(2, &gaps, &[]), [1.0, 0.0, 0.0, 1.0]);
    }
}
