//! From a solved (α, λ) to a fit.

use jensen_fit::{Outcome, Status};

use super::{Problem, Solution};
use crate::linear::design;
use crate::site::Sites;
use crate::{Error, Fit, Sensitivity};

/// Computes the posterior moments and, where asked for, the sensitivities of a solution at whose λ the geometry is
/// factorised.
pub(crate) fn finish(
    problem: &mut Problem<'_>,
    sites: &Sites,
    outcome: Outcome<Solution>,
    sensitivity: bool,
) -> Result<Fit, Error> {
    let Some(solution) = outcome.output else {
        let reason = match outcome.status {
            Status::Diverged { reason, .. } => reason,
            other => other.to_string(),
        };
        return Err(Error::Prior(format!("the fit could not start: {reason}")));
    };
    let model = problem.model;
    let n = solution.alpha.len();
    let geometry = &mut problem.geometry;
    let predictor_variance = geometry.variances();
    // What the latent variables make of the predictor: without the offset.
    let own: Vec<f64> = match &model.observations.offset {
        Some(offset) => (0..n).map(|i| solution.predictor[i] - offset[i]).collect(),
        None => solution.predictor.clone(),
    };
    let mean = geometry.latent_mean(model, &solution.alpha, &solution.lambda, &own);
    let variance = geometry.latent_variances(model);
    let sensitivity = if sensitivity {
        let down: Vec<f64> = solution.alpha.iter().map(|a| -a).collect();
        Some(Sensitivity {
            mean: design::transposed_times_vector(&model.design, mean.len(), &down),
            likelihood: sites.by_parameters(model, &solution.predictor, &predictor_variance),
            covariance: geometry.sensitivity(model, &solution.alpha, &solution.lambda, &mean)?,
        })
    } else {
        None
    };
    Ok(Fit {
        bound: solution.bound,
        gap: solution.gap,
        mean,
        variance,
        predictor_mean: solution.predictor,
        predictor_variance,
        alpha: solution.alpha,
        lambda: solution.lambda,
        sensitivity,
        status: outcome.status,
        iterations: outcome.iterations,
        seconds: outcome.seconds,
        notes: std::mem::take(&mut problem.notes),
    })
}
