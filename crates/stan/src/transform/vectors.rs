//! Transforms of vectors.

/// The differences between elements are exp z. The first element is z₁, or exp z₁ if all elements must be positive.
pub(super) fn ordered(z: &[f64], positive: bool, out: &mut Vec<f64>) -> f64 {
    let mut jacobian = 0.0;
    let mut last = 0.0;
    for (k, z) in z.iter().enumerate() {
        if k == 0 && !positive {
            last = *z;
        } else {
            last += z.exp();
            jacobian += z;
        }
        out.push(last);
    }
    jacobian
}

pub(super) fn ordered_free(x: &[f64], positive: bool, out: &mut Vec<f64>) {
    for (k, v) in x.iter().enumerate() {
        out.push(match (k, positive) {
            (0, false) => *v,
            (0, true) => v.ln(),
            _ => (v - x[k - 1]).ln(),
        });
    }
}

/// Builds a vector of `n` elements that sum to zero. The coordinates `z` are its coefficients in an orthonormal basis.
///
/// Column k of the basis is (1, …, 1, −k, 0, …, 0) / √(k (k + 1)) with k ones, for k = 1 … n − 1.
pub(super) fn sum_to_zero(z: &[f64], n: usize, out: &mut Vec<f64>) {
    let start = out.len();
    out.resize(start + n, 0.0);
    let x = &mut out[start..];
    let mut sum = 0.0;
    for k in (1..n).rev() {
        let kf = k as f64;
        let w = z[k - 1] / (kf * (kf + 1.0)).sqrt();
        // The later columns of the basis are 1 at this position, and column k is −k.
        x[k] = sum - kf * w;
        sum += w;
    }
    if let Some(first) = x.first_mut() {
        *first = sum;
    }
}

pub(super) fn sum_to_zero_free(x: &[f64], out: &mut Vec<f64>) {
    let mut sum = 0.0;
    for k in 1..x.len() {
        let kf = k as f64;
        sum += x[k - 1];
        out.push((sum - kf * x[k]) / (kf * (kf + 1.0)).sqrt());
    }
}

/// The value is the softmax of the zero-sum vector. The log-Jacobian is Σ log xₖ + ½ log K.
pub(super) fn simplex(z: &[f64], n: usize, out: &mut Vec<f64>) -> f64 {
    let start = out.len();
    sum_to_zero(z, n, out);
    let x = &mut out[start..];
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let log_sum = max + x.iter().map(|x| (x - max).exp()).sum::<f64>().ln();
    let mut jacobian = 0.5 * (n as f64).ln();
    for v in x.iter_mut() {
        jacobian += *v - log_sum;
        *v = (*v - log_sum).exp();
    }
    if n == 0 { 0.0 } else { jacobian }
}

pub(super) fn simplex_free(x: &[f64], out: &mut Vec<f64>) {
    let logs: Vec<f64> = x.iter().map(|x| x.ln()).collect();
    let mean = logs.iter().sum::<f64>() / x.len() as f64;
    let centred: Vec<f64> = logs.iter().map(|l| l - mean).collect();
    sum_to_zero_free(&centred, out);
}

/// z / ‖z‖
pub(super) fn unit(z: &[f64], out: &mut Vec<f64>) -> f64 {
    let squares: f64 = z.iter().map(|z| z * z).sum();
    let norm = squares.sqrt();
    out.extend(z.iter().map(|z| z / norm));
    -0.5 * squares
}
