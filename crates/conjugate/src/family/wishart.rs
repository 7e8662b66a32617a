//! Means with one precision matrix for all of them, or a single mean with its own matrix.

use jensen_math::constants::LOG_TWO_PI;
use jensen_math::dense;
use jensen_math::rng::Stream;
use jensen_math::special;

use crate::draws::{log_gamma, normal};

/// Returns the length of the part of one mean.
pub(super) fn width(dim: usize) -> usize {
    dim + 1 + dim * dim + 1
}

/// Computes W⁻¹ = Σ (S_k − (κm)(κm)ᵀ/κ) and the degrees of freedom ν.
fn scale(lambda: &[f64], dim: usize) -> (Vec<f64>, f64) {
    let mut w = vec![0.0; dim * dim];
    let mut nu = dim as f64;
    for (k, part) in lambda.chunks_exact(width(dim)).enumerate() {
        let (km, kappa) = (&part[..dim], part[dim]);
        let s = &part[dim + 1..dim + 1 + dim * dim];
        for i in 0..dim {
            for j in 0..dim {
                w[i * dim + j] += s[i * dim + j] - km[i] * km[j] / kappa;
            }
        }
        nu += part[dim + 1 + dim * dim] - f64::from(u8::from(k > 0));
    }
    (w, nu)
}

/// Returns the natural parameters of the marginal distribution of mean `k` and the precision matrix. It is a
/// normal-Wishart distribution with a single mean.
pub(crate) fn marginal(lambda: &[f64], dim: usize, k: usize) -> Vec<f64> {
    let (w, nu) = scale(lambda, dim);
    let own = &lambda[k * width(dim)..k * width(dim) + dim + 1];
    let (km, kappa) = (&own[..dim], own[dim]);
    let outer = |at: usize| km[at / dim] * km[at % dim] / kappa;
    let mut out = own.to_vec();
    out.extend(w.iter().enumerate().map(|(at, w)| w + outer(at)));
    out.push(nu - dim as f64);
    out
}

pub(super) fn moments(lambda: &[f64], dim: usize, out: &mut [f64]) -> f64 {
    let d = dim as f64;
    let (w, nu) = scale(lambda, dim);
    let Ok(l) = dense::factor(&w, dim, 0.0) else {
        out.fill(f64::NAN);
        return f64::NAN;
    };
    let log_w = -dense::log_determinant(&l, dim);
    let w = dense::inverse(&l, dim);
    let psi: f64 = (0..dim)
        .map(|i| special::digamma(0.5 * (nu - i as f64)))
        .sum();
    let ln2 = std::f64::consts::LN_2;
    let mut total = 0.5 * nu * (d * ln2 + log_w) + special::lmgamma(dim as u32, 0.5 * nu);
    let parts = lambda.chunks_exact(width(dim));
    for (part, out) in parts.zip(out.chunks_exact_mut(width(dim))) {
        let (km, kappa) = (&part[..dim], part[dim]);
        let mut quadratic = 0.0;
        for i in 0..dim {
            let dot: f64 = (0..dim).map(|j| w[i * dim + j] * km[j] / kappa).sum();
            out[i] = nu * dot;
            quadratic += out[i] * km[i] / kappa;
        }
        out[dim] = -0.5 * (d / kappa + quadratic);
        for (out, w) in out[dim + 1..].iter_mut().zip(&w) {
            *out = -0.5 * nu * w;
        }
        out[dim + 1 + dim * dim] = 0.5 * (psi + d * ln2 + log_w);
        total += 0.5 * d * (LOG_TWO_PI - kappa.ln());
    }
    total
}

pub(super) fn draw(lambda: &[f64], dim: usize, stream: &mut Stream, out: &mut [f64]) {
    let (w, nu) = scale(lambda, dim);
    let Ok(l) = dense::factor(&w, dim, 0.0) else {
        out.fill(f64::NAN);
        return;
    };
    // This is the Bartlett decomposition: Λ = F Fᵀ with F = L⁻ᵀ T, where T is lower triangular and its diagonal
    // contains χ variables.
    let mut f = vec![0.0; dim * dim];
    let mut log_det = -dense::log_determinant(&l, dim);
    for i in 0..dim {
        for j in 0..i {
            f[i * dim + j] = normal(stream);
        }
        let log_chi2 = log_gamma(0.5 * (nu - i as f64), stream) + std::f64::consts::LN_2;
        log_det += log_chi2;
        f[i * dim + i] = (0.5 * log_chi2).exp();
    }
    dense::solve_lower_transposed_lanes(&l, dim, &mut f, dim);
    let row = |i: usize| &f[i * dim..(i + 1) * dim];
    let parts = lambda.chunks_exact(width(dim));
    for (part, out) in parts.zip(out.chunks_exact_mut(width(dim))) {
        let kappa = part[dim];
        // Λμ = Λm + F z / √κ, because Λ = FFᵀ and Λ⁻¹ therefore has the root F⁻ᵀ.
        let z: Vec<f64> = (0..dim).map(|_| normal(stream)).collect();
        let mut fm = vec![0.0; dim];
        for (k, x) in fm.iter_mut().enumerate() {
            *x = (0..dim).map(|i| f[i * dim + k] * part[i] / kappa).sum();
        }
        // Fᵀμ = Fᵀm + z/√κ.
        for (x, z) in fm.iter_mut().zip(&z) {
            *x += z / kappa.sqrt();
        }
        for (i, out) in out[..dim].iter_mut().enumerate() {
            *out = row(i).iter().zip(&fm).map(|(a, b)| a * b).sum();
        }
        out[dim] = -0.5 * fm.iter().map(|x| x * x).sum::<f64>();
        for i in 0..dim {
            for j in 0..dim {
                let dot: f64 = row(i).iter().zip(row(j)).map(|(a, b)| a * b).sum();
                out[dim + 1 + i * dim + j] = -0.5 * dot;
            }
        }
        out[dim + 1 + dim * dim] = 0.5 * log_det;
    }
}
