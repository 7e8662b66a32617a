//! The evaluation of each fitted family, and the choice of the family to report.

use std::sync::Arc;

use jensen_density::{LogDensity, RecordDensity, TwiceDifferentiable};
use jensen_run::Status;

use super::Driver;
use crate::approximation::Approximation;
use crate::calls::Calls;
use crate::certificate::certify;
use crate::evaluation::{Evaluation, Successor, evaluate_until};
use crate::family::{Family, FamilyKind, FamilyName};
use crate::method::Method;
use crate::oracle::{Estimate, Oracle};
use crate::policy::Policy;
use crate::refine::{Unreached, beyond};
use crate::settings::Settings;
use crate::tail_decay::flat_coordinate;

/// The largest number of evaluations of single records for the final estimate of the ELBO.
const EVALUATIONS: usize = 20_000_000;

/// The smallest number of draws of such an evaluation. With fewer than 64 draws, k̂ is fitted to fewer than 13 weights.
const LEAST_DRAWS: usize = 64;

/// The result of fitting one family.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FamilyResult {
    /// The name of the family.
    pub family: FamilyName,
    /// The parameters of the family.
    pub omega: Vec<f64>,
    /// The status at the end of the optimisation, or `None` if the run stopped before the optimisation ended.
    pub status: Option<Status>,
    /// The evaluation of the approximation on fresh draws.
    pub evaluation: Evaluation,
    /// The gain of a second-order polish, for stochastic methods.
    pub polish: Option<Estimate>,
    /// The number of coordinates.
    pub dim: usize,
    /// The index of a coordinate along which the density does not decrease. Such a posterior may be improper.
    pub flat: Option<usize>,
    /// The variance or mass that the draws do not reach, if it exceeds the policy's limit. It is measured in
    /// coordinates that are standardised by the approximation.
    pub beyond: Option<Unreached>,
}

impl<D: TwiceDifferentiable> Driver<'_, D> {
    pub(super) fn result(
        &self,
        family: &Arc<dyn Family>,
        omega: Vec<f64>,
        ended: Option<(Method, Status, u64)>,
        successor: Successor,
        calls: &mut Calls,
    ) -> FamilyResult {
        let mut polish = None;
        let last = ended.as_ref().map_or(0, |(_, _, at)| *at);
        let status = ended.map(|(method, status, at)| {
            let (Status::Converged { evidence }, Some(tolerance)) = (&status, method.certificate())
            else {
                return status;
            };
            let certificate = certify(self.density, family, &omega, self.source, 0, tolerance);
            *calls += certificate.calls;
            let found = certificate.improvement;
            polish = Some(found);
            if certificate.within(tolerance) {
                let mut evidence = evidence.clone();
                evidence.remaining = Some(found.mean);
                evidence.standard_error = Some(found.standard_error);
                Status::Converged { evidence }
            } else {
                Status::Stalled {
                    at,
                    reason: format!(
                        "{}, but a second-order polish finds {:.2} ± {:.2} nats more",
                        evidence.rule, found.mean, found.standard_error
                    ),
                }
            }
        });
        let flat = match self.records {
            // An evaluation far from the draws is not needed for a fit that will not be trusted in any case.
            _ if self.interrupt.is_late() => None,
            None => flat_coordinate(self.density, &**family, &omega, self.source, 1.0),
            Some(records) => {
                let (seen, all) = records.scouted();
                let spread = (all as f64 / seen as f64).sqrt();
                flat_coordinate(records.scout(), &**family, &omega, self.source, spread)
            }
        };
        let mut oracle = Oracle::new(self.density, family.clone());
        let draws = evaluation_draws(self.density, &self.settings);
        let evaluation = evaluate_until(
            &mut oracle,
            &omega,
            self.source,
            draws,
            (&self.settings.scales[..], &self.settings.policy),
            successor,
            Some(self.interrupt),
        );
        *calls += oracle.take_calls();
        // A fit with unreliable weights is refined in any case. If records are evaluated one by one, this evaluation
        // would cost as much as a fit.
        let policy = &self.settings.policy;
        let looks =
            evaluation.is_good(policy) && self.records.is_none() && !self.interrupt.is_late();
        let beyond = looks.then(|| {
            let approximation = Approximation::of(family.clone(), omega.clone())
                .expect("a fitted family has all its parameters");
            let log_z = evaluation.importance_bound.mean;
            beyond(self.density, &approximation, log_z, (self.source, policy))
        });
        FamilyResult {
            beyond: beyond.flatten(),
            family: family.name(),
            omega,
            status: status.map(|status| resolved(status, &evaluation, last)),
            evaluation,
            polish,
            dim: self.density.dim(),
            flat,
        }
    }
}

/// A stopping rule in nats shows nothing if rounding errors of the ELBO exceed a nat. Such a run has not converged.
fn resolved(status: Status, evaluation: &Evaluation, at: u64) -> Status {
    match status {
        Status::Converged { evidence }
            if evaluation.elbo.mean.is_finite() && !evaluation.is_resolved() =>
        {
            Status::Stalled {
                at,
                reason: format!(
                    "{}, but the ELBO of {:.1e} nats is too far from zero to resolve differences of one nat",
                    evidence.rule, evaluation.elbo.mean
                ),
            }
        }
        status => status,
    }
}

/// Returns the index of the result to report. If there is a converged result whose draws can be used, the function
/// returns its index. Otherwise it returns the index of the result with the highest ELBO.
pub fn choose(results: &[FamilyResult], policy: &Policy) -> usize {
    let rank = |r: &FamilyResult| {
        let converged = r.status.as_ref().is_some_and(Status::is_converged);
        let modes = match r.family.kind() {
            Some(FamilyKind::Mixture { .. }) => policy.of_a_mode(),
            _ => 0.0,
        };
        (
            converged && r.evaluation.is_good(policy),
            r.evaluation.elbo.mean + modes,
        )
    };
    let mut best = 0;
    for i in 1..results.len() {
        let ((good, elbo), (best_good, best_elbo)) = (rank(&results[i]), rank(&results[best]));
        if (good && !best_good) || (good == best_good && elbo > best_elbo) {
            best = i;
        }
    }
    best
}

/// Returns the number of draws for the evaluation. Minibatch methods with many records use fewer draws than the
/// settings request.
pub(crate) fn evaluation_draws<D: LogDensity>(density: &D, settings: &Settings) -> usize {
    let wanted = settings.evaluation_draws;
    match settings.method.batch().and(density.records()) {
        Some(records) => (EVALUATIONS / records.records().max(1))
            .max(LEAST_DRAWS)
            .min(wanted),
        None => wanted,
    }
}
