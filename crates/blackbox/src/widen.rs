//! Where a richer family begins: from a mean-field fit, at the member that the density's curvature asks
//! for.

use std::sync::Arc;

use jensen_density::TwiceDifferentiable;

use crate::calls::Calls;
use crate::dense::{cholesky, inverse_factor, solve_lower, solve_lower_transposed};
use crate::family::{Family, FamilyKind, FullRank};
use crate::noise::{NoiseSource, Purpose};
use crate::objective::Objective;
use crate::reduce::dot;

/// Largest number of fixed-point iterations.
const ITERATIONS: usize = 12;

/// An iteration that brings fewer nats is the last.
const ENOUGH: f64 = 0.2;

/// Lanes of Hessian-vector products of one iteration, about.
const HESSIAN_LANES: usize = 8192;

/// ω of `kind` that stands where the mean-field `omega` stands, and the evaluations it took.
pub(crate) fn widen<D: TwiceDifferentiable>(
    density: &D,
    source: NoiseSource,
    kind: FamilyKind,
    omega: &[f64],
) -> (Vec<f64>, Calls) {
    let dim = density.dim();
    let (mean, log_sd) = omega.split_at(dim);
    let family = kind.build(dim);
    let diagonal = family.diagonal(mean, log_sd);
    match kind {
        FamilyKind::MeanField => (diagonal, Calls::default()),
        FamilyKind::FullRank => match_curvature(density, source, family, diagonal, log_sd),
        FamilyKind::LowRank { rank } => {
            // Zero factors are a saddle point; small random ones are not.
            let mut start = diagonal;
            let mut noise = vec![0.0; dim * rank];
            source.fill(Purpose::Start, u64::MAX - 1, 0, dim * rank, 1, &mut noise);
            let scale = 0.3 / (rank as f64).sqrt();
            for (i, (u, e)) in start[2 * dim..].iter_mut().zip(&noise).enumerate() {
                *u = scale * log_sd[i / rank].exp() * e;
            }
            (start, Calls::default())
        }
    }
}

/// Fixed-point iterations of full-rank inference, `Σ⁻¹ ← −E ∇²log p`, `μ ← μ + Σ E ∇log p` under the
/// present member (Opper and Archambeau 2009), damped where the bound on fixed draws would fall.
fn match_curvature<D: TwiceDifferentiable>(
    density: &D,
    source: NoiseSource,
    family: Arc<dyn Family>,
    mut omega: Vec<f64>,
    log_sd: &[f64],
) -> (Vec<f64>, Calls) {
    let dim = density.dim();
    let lanes = (2 * dim).next_power_of_two().clamp(256, 512);
    let draws = (HESSIAN_LANES / dim).clamp(16, 64);
    let noise = source.matched(Purpose::Start, u64::MAX - 2, dim, lanes);
    let mut objective = Objective::new(density, family, noise, lanes);
    let mut gradient = vec![0.0; omega.len()];
    let mut value = objective.value_gradient(&omega, &mut gradient);
    // The lower factor of the present member's precision.
    let mut precision = vec![0.0; dim * dim];
    for (i, l) in log_sd.iter().enumerate() {
        precision[i * dim + i] = (-l).exp();
    }
    for _ in 0..ITERATIONS {
        let Some(curvature) = objective.curvature(&omega, draws) else {
            break;
        };
        let mut taken = None;
        for share in [1.0, 0.5, 0.2] {
            let Some(factor) = mix(&precision, &curvature.factor, dim, share) else {
                continue;
            };
            let Some(spread) = inverse_factor(&factor, dim) else {
                continue;
            };
            let mut step: Vec<f64> = gradient[..dim].iter().map(|g| -share * g).collect();
            solve_lower(&factor, &mut step);
            solve_lower_transposed(&factor, &mut step);
            let mean: Vec<f64> = omega.iter().zip(&step).map(|(m, s)| m + s).collect();
            let trial = FullRank::new(dim).assemble(&mean, &spread);
            let mut trial_gradient = vec![0.0; trial.len()];
            let trial_value = objective.value_gradient(&trial, &mut trial_gradient);
            if trial_value < value {
                taken = Some((trial, trial_value, trial_gradient, factor));
                break;
            }
        }
        let Some((trial, trial_value, trial_gradient, factor)) = taken else {
            break;
        };
        let gain = value - trial_value;
        (omega, value, gradient, precision) = (trial, trial_value, trial_gradient, factor);
        if gain < ENOUGH {
            break;
        }
    }
    (omega, objective.take_calls())
}

/// The lower factor of `(1 − share) A Aᵀ + share B Bᵀ` for lower factors A and B.
fn mix(a: &[f64], b: &[f64], n: usize, share: f64) -> Option<Vec<f64>> {
    if share == 1.0 {
        return Some(b.to_vec());
    }
    let mut sum = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let product = |f: &[f64]| dot(&f[i * n..i * n + j + 1], &f[j * n..j * n + j + 1]);
            sum[i * n + j] = (1.0 - share) * product(a) + share * product(b);
        }
    }
    cholesky(&sum, n)
}

#[cfg(test)]
mod tests {
    use jensen_math::simd::Simd;
    use jensen_testkit::CorrelatedGaussian;

    use super::*;

    #[test]
    fn a_gaussian_is_matched_exactly() {
        let target = CorrelatedGaussian::exchangeable(&[0.1, 2.0, 30.0], 0.9);
        let source = NoiseSource::new(3, Simd::detect());
        let start = [5.0, -3.0, 2.0, 0.0, 0.0, 0.0];
        let (omega, calls) = widen(&target, source, FamilyKind::FullRank, &start);
        assert!(calls.lanes() > 0);
        for (found, mean) in omega.iter().zip(target.mean()) {
            assert!((found - mean).abs() < 1e-9);
        }
        // exchangeable(): standard deviations are the scales.
        let sd = FullRank::new(3).marginal_sd(&omega);
        for (found, scale) in sd.iter().zip([0.1, 2.0, 30.0]) {
            assert!((found / scale - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn mixing_adds_precisions() {
        let mixed = mix(&[2.0, 0.0, 0.0, 1.0], &[4.0, 0.0, 0.0, 3.0], 2, 0.5).unwrap();
        assert!((mixed[0] * mixed[0] - 10.0).abs() < 1e-12);
        assert!((mixed[3] * mixed[3] - 5.0).abs() < 1e-12);
    }
}
