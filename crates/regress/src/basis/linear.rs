//! Small dense matrices stored by rows: products, inverses, and eigenvalues of symmetric matrices.

/// A matrix, as a list of its rows.
pub type Rows = Vec<Vec<f64>>;

/// Returns the product of two matrices.
pub fn multiply(a: &[Vec<f64>], b: &[Vec<f64>]) -> Rows {
    let columns = b.first().map_or(0, Vec::len);
    let entry = |row: &[f64], j: usize| row.iter().zip(b).map(|(x, other)| x * other[j]).sum();
    a.iter()
        .map(|row| (0..columns).map(|j| entry(row, j)).collect())
        .collect()
}

/// Computes the inverse of a regular matrix by Gaussian elimination with partial pivoting.
pub fn inverse(a: &[Vec<f64>]) -> Rows {
    let n = a.len();
    let mut rows: Rows = a
        .iter()
        .enumerate()
        .map(|(i, row)| {
            let unit = (0..n).map(|j| f64::from(u8::from(i == j)));
            row.iter().copied().chain(unit).collect()
        })
        .collect();
    for column in 0..n {
        let pivot = (column..n)
            .max_by(|i, j| rows[*i][column].abs().total_cmp(&rows[*j][column].abs()))
            .unwrap_or(column);
        rows.swap(column, pivot);
        let scale = rows[column][column];
        rows[column].iter_mut().for_each(|x| *x /= scale);
        let top = rows[column].clone();
        for (i, row) in rows.iter_mut().enumerate() {
            let factor = row[column];
            if i != column && factor != 0.0 {
                row.iter_mut().zip(&top).for_each(|(x, t)| *x -= factor * t);
            }
        }
    }
    rows.into_iter().map(|row| row[n..].to_vec()).collect()
}

/// The eigenvalues and eigenvectors of a symmetric matrix.
pub struct Eigen {
    /// The eigenvalues in decreasing order.
    pub values: Vec<f64>,
    /// The eigenvectors, one per column. The largest entry of each eigenvector is positive.
    pub vectors: Rows,
}

/// Largest number of sweeps of rotations. A few sweeps suffice, because the method converges quadratically.
const SWEEPS: usize = 60;

/// Computes the eigenvalues and eigenvectors of a symmetric matrix by Jacobi's method (Golub and Van Loan, Matrix
/// computations, section 8.5). For small matrices the method is exact up to rounding.
pub fn eigen(a: &[Vec<f64>]) -> Eigen {
    let n = a.len();
    let mut a: Rows = a.to_vec();
    let mut v: Rows = (0..n)
        .map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect())
        .collect();
    for _ in 0..SWEEPS {
        let pairs = || (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
        let off: f64 = pairs().map(|(i, j)| a[i][j] * a[i][j]).sum();
        let on: f64 = (0..n).map(|i| a[i][i] * a[i][i]).sum();
        if off <= 1e-30 * on {
            break;
        }
        for (p, q) in pairs() {
            if a[p][q] == 0.0 {
                continue;
            }
            let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
            let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
            let t = if theta == 0.0 { 1.0 } else { t };
            let c = 1.0 / t.hypot(1.0);
            let s = t * c;
            for row in a.iter_mut().chain(v.iter_mut()) {
                let (x, y) = (row[p], row[q]);
                row[p] = c * x - s * y;
                row[q] = s * x + c * y;
            }
            let (top, bottom) = a.split_at_mut(q);
            for (x, y) in top[p].iter_mut().zip(&mut bottom[0]) {
                (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|i, j| a[*j][*j].total_cmp(&a[*i][*i]));
    let sign = |j: usize| {
        let largest = v
            .iter()
            .map(|row| row[j])
            .max_by(|x, y| x.abs().total_cmp(&y.abs()));
        largest.map_or(1.0, f64::signum)
    };
    let signs: Vec<f64> = (0..n).map(sign).collect();
    Eigen {
        values: order.iter().map(|j| a[*j][*j]).collect(),
        vectors: v
            .iter()
            .map(|row| order.iter().map(|j| row[*j] * signs[*j]).collect())
            .collect(),
    }
}
