//! A proposed step, before and after its trial.

use jensen_run::Record;

use super::assessment::Assessment;
use super::gradient::Gradient;
use super::state::TrustState;
use super::subproblem::Solution;

pub(super) struct Proposal {
    pub(super) gradient: Gradient,
    pub(super) solution: Solution,
    pub(super) squared: f64,
    pub(super) noise: f64,
    pub(super) deviation: f64,
    /// The predicted improvement, minus the part that is due to noise of the gradient.
    pub(super) promised: f64,
}

impl Proposal {
    pub(super) fn on(&self, record: Record, state: &TrustState) -> Record {
        let record = record
            .with("radius", state.radius)
            .with("predicted", self.solution.predicted)
            .with("predicted_se", self.deviation)
            .with("gradient_norm", self.squared.sqrt())
            .with("gradient_noise", self.noise.sqrt())
            .with("gradient_draws", state.gradient_draws as f64)
            .with("products", self.solution.products as f64)
            .with("hessian_boost", state.boost as f64);
        match self.gradient.dropped {
            0 => record,
            dropped => record.with("dropped_pairs", dropped as f64),
        }
    }
}

pub(super) struct Trial {
    pub(super) found: Option<Assessment>,
    /// The number of draws that Inequalities 11 and 13 require for an assessment.
    pub(super) required: Option<f64>,
    pub(super) accepted: bool,
    pub(super) near: bool,
    /// The radius δₖ⁻ of Equation 3.
    pub(super) small: f64,
}

impl Trial {
    pub(super) fn on(&self, mut record: Record) -> Record {
        if let Some(found) = &self.found {
            let bound = match self.accepted {
                true => found.after,
                false => found.before,
            };
            record = record
                .with_elbo(bound.mean, Some(bound.standard_error))
                .with("observed", found.change.mean)
                .with("observed_se", found.change.standard_error)
                .with("change_draws", found.draws as f64)
                .with("required_draws", self.required.unwrap_or(f64::NAN));
        }
        record.with("accepted", f64::from(u8::from(self.accepted)))
    }
}
