//! Builds a fit from a solved (α, λ).

use jensen_run::{Outcome, Status};

use super::{Problem, Solution, with_residuals};
use crate::linear::design;
use crate::site::Sites;
use crate::{Error, Fit, Sensitivity};

/// If a method stops by its own rule while the duality gap is above this value, in nats, the fit does not count as
/// converged. All solvers for the same bound agree to within this value.
const STOPPED_SHORT: f64 = 1e-4;

/// Returns the status according to the method's own rule, unless the duality gap contradicts this status.
fn certified(status: Status, gap: Option<f64>, iterations: u64) -> Status {
    match gap {
        Some(gap) if status.is_converged() && gap > STOPPED_SHORT => Status::Stalled {
            at: iterations,
            reason: format!(
                "steps no longer raise the bound, but the duality gap is {gap:.1e} nats: use the solver \
                 `dual`, which closes the gap"
            ),
        },
        _ => status,
    }
}

/// Computes the posterior moments of a solution and, if requested, its sensitivities. The geometry must be factorised
/// at the solution's λ.
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
    if let (false, Status::Diverged { reason, .. }) = (solution.bound.is_finite(), &outcome.status)
    {
        return Err(Error::Prior(format!("the fit could not start: {reason}")));
    }
    let model = problem.model;
    let n = solution.alpha.len();
    let geometry = &mut problem.geometry;
    let predictor_variance = with_residuals(&model.design, geometry.variances());
    // The contribution of the latent variables to the predictors excludes the offset.
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
            design: geometry.design_sensitivity(model, &solution.alpha, &solution.lambda, &mean),
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
        residual_variance: model.design.residuals().unwrap_or_default().to_vec(),
        alpha: solution.alpha,
        lambda: solution.lambda,
        sensitivity,
        status: certified(outcome.status, solution.gap, outcome.iterations),
        iterations: outcome.iterations,
        seconds: outcome.seconds,
        notes: std::mem::take(&mut problem.notes),
    })
}

#[cfg(test)]
mod tests {
    use jensen_run::Evidence;

    use super::*;

    #[test]
    fn a_gap_contradicts_a_rule() {
        let converged = || Status::Converged {
            evidence: Evidence {
                rule: "small steps".to_owned(),
                remaining: None,
                standard_error: None,
            },
        };
        assert!(certified(converged(), None, 3).is_converged());
        assert!(certified(converged(), Some(1e-6), 3).is_converged());
        let stalled = certified(converged(), Some(0.48), 3);
        assert!(
            matches!(stalled, Status::Stalled { at: 3, .. }),
            "{stalled}"
        );
    }
}
