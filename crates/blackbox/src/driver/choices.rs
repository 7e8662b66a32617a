//! The choice of the next family to fit, and the reasons for this choice.

use std::sync::Arc;

use jensen_density::{LogDensity, TwiceDifferentiable};
use jensen_run::{Algorithm, Clock, Interrupt, Status};

use super::stage::{Engaged, Next, Stage};
use super::{Driver, DriverState, FamilyResult};
use crate::calls::Calls;
use crate::evaluation::preview;
use crate::family::{Conditional, Family, FamilyKind, Space, Sparse};
use crate::oracle::Oracle;
use crate::policy::DENSE;
use crate::settings::Settings;
use crate::sizes::KEPT;
use crate::sparse::FILL;
use crate::starts::{StartOutcome, modes_of};
use crate::symmetry::Labellings;

/// The smallest dimension of the families that use the pattern of the density. In fewer dimensions, a full covariance
/// has at most 5 050 parameters.
const SPARSE_FROM: usize = 100;

/// The smallest dimension at which the conditionally structured Gaussian is fitted first, if the density has global
/// parameters. In fewer dimensions, several starts take only seconds, and they find modes that a single start misses.
pub const CONDITIONAL_FROM: usize = DENSE;

/// The sparse family is a candidate only if it has at most a quarter of the parameters of a full covariance.
const SPARSE_PART: usize = 4;

/// The number of components of a mixture. It leaves several components for each of two or three modes, so that they can
/// also represent bends.
const COMPONENTS: usize = 8;

/// The largest dimension of a mixture. In 64 dimensions, eight components have 17 160 parameters, and an iteration has
/// 25 600 weighted draws to determine them.
const MIXTURE_LIMIT: usize = 64;

/// The largest divergence, in nats, at which a refinement can start from the conditionally structured Gaussian. For a
/// dozen hierarchies and series with a hundred to a thousand coordinates, the divergence is at most 3. If the family
/// does not suit the model, the divergence is much larger, and chains need up to 17 times as many gradients
/// (`models/roaches_overdispersed`).
const NEAR: f64 = 5.0;

impl<D: TwiceDifferentiable> Driver<'_, D> {
    pub(super) fn opening_family(&self) -> Arc<dyn Family> {
        match self.conditional {
            true => self.build(FamilyKind::Conditional),
            false => self.first.clone(),
        }
    }

    /// Returns the richer family that the policy allows, if there is one. A single coordinate has no richer family.
    /// In more than [`DENSE`] coordinates, there is none if the pattern is dense or unknown.
    pub(super) fn richer(&self) -> Option<FamilyKind> {
        match self.density.dim() {
            0 | 1 => None,
            // The precision matrix of the best Gaussian has the sparsity pattern of the density. A sparse precision
            // matrix is therefore as good as a full-rank Gaussian, and has far fewer parameters to estimate from draws.
            _ if self.is_sparse() => Some(FamilyKind::Sparse),
            // If the pattern is unknown or dense, only the full-rank family contains the best Gaussian.
            2..=DENSE => Some(FamilyKind::FullRank),
            // In higher dimensions, the draws of a step cannot determine d²/2 parameters.
            _ => None,
        }
    }

    pub(super) fn bends(&self) -> bool {
        self.settings.is_policy()
            && self.records.is_none()
            && self.density.dim() >= SPARSE_FROM
            && has_few_globals(self.density)
    }

    pub(super) fn second(&self) -> Option<FamilyKind> {
        match self.bends() {
            true => Some(FamilyKind::Conditional),
            false => self.richer(),
        }
    }

    /// Returns whether to try the richer family after a conditionally structured Gaussian has failed its checks. The
    /// driver tries the richer family in three cases: the conditionally structured Gaussian found no mode, its fit is
    /// too far from the posterior for a refinement, or no refinement follows.
    pub(super) fn is_astray(&self, result: &FamilyResult) -> bool {
        let converged = result.status.as_ref().is_some_and(Status::is_converged);
        // A refinement can start from any approximation that overlaps the posterior. Without a refinement, the result
        // depends on the importance weights, which are reliable only if the family fits well.
        let near = converged && result.evaluation.divergence() <= NEAR;
        result.family == FamilyKind::Conditional && !(near && self.settings.may_refine())
    }

    pub(super) fn is_sparse(&self) -> bool {
        let dim = self.density.dim();
        if dim < SPARSE_FROM || self.records.is_some() {
            return false;
        }
        // The factor takes at most 16 MiB.
        let most = (KEPT / 8).min(dim * (dim + 1) / 2 / SPARSE_PART);
        Sparse::nonzeros(&Space::of(self.density), most).is_some()
    }

    /// Returns the family to fit instead of the first family, if the driver should abandon the first family after the
    /// starts. The driver abandons it if the optimum found by the starts is too far from the posterior. Completing the
    /// fit of the first family, to within 0.01 nats, would take most of the total time.
    pub(super) fn skips_to(
        &self,
        family: &Arc<dyn Family>,
        omega: &[f64],
        calls: &mut Calls,
    ) -> Option<FamilyKind> {
        if !self.settings.is_policy() || self.records.is_some() {
            return None;
        }
        let second = self.second()?;
        self.is_far_off(family, omega, calls).then_some(second)
    }

    pub(super) fn is_far_off(
        &self,
        family: &Arc<dyn Family>,
        omega: &[f64],
        calls: &mut Calls,
    ) -> bool {
        let mut oracle = Oracle::new(self.density, family.clone());
        let draws = self.settings.policy.preview_draws();
        let look = preview(&mut oracle, omega, self.source, draws);
        *calls += oracle.take_calls();
        // From k̂ = 1 on, the weights have no mean.
        look.khat > 1.0
    }

    pub(super) fn upon(
        &self,
        family: &dyn Family,
        starts: &[StartOutcome],
        gaussian: &[f64],
    ) -> Vec<f64> {
        let upon = family.upon(gaussian, &self.other_modes(starts));
        upon.expect("a family that begins at a Gaussian stands upon it")
    }

    pub(super) fn other_modes(&self, starts: &[StartOutcome]) -> Vec<(Vec<f64>, Vec<f64>)> {
        let modes = modes_of(starts);
        let variables = &self.settings.variables;
        let labellings = Labellings::of(self.density, self.source, starts, &modes, variables);
        let distinct = modes.iter().zip(&labellings.relabelled);
        let found = distinct.filter(|(_, relabelled)| !**relabelled);
        found
            .filter_map(|(mode, _)| starts.iter().find(|start| start.is_at(mode)))
            .map(|start| {
                let (mean, log_sd) = start.omega.split_at(mean_len(start));
                (mean.to_vec(), log_sd.to_vec())
            })
            .collect()
    }

    pub(super) fn of_several_modes(&self, state: &mut DriverState) -> Option<Next> {
        let kind = FamilyKind::Mixture {
            components: COMPONENTS,
        };
        let policy = self.settings.is_policy() && self.records.is_none();
        let tried = state.results.iter().any(|result| result.family == kind);
        if !policy || tried || state.starts.is_empty() || self.density.dim() > MIXTURE_LIMIT {
            return None;
        }
        if self.other_modes(&state.starts).is_empty() {
            return None;
        }
        let last = state.results.last()?;
        let gaussian = if last.family == FamilyKind::FullRank {
            last.omega.clone()
        } else {
            let (full, poorer) = (self.build(FamilyKind::FullRank), self.named(&last.family));
            let (omega, calls) = self.enrich(&full, &*poorer, &last.omega);
            state.calls += calls;
            omega
        };
        let mixture = self.build(kind);
        let omega = self.upon(&*mixture, &state.starts, &gaussian);
        Some(self.first_stage(mixture, omega))
    }
}

/// Returns whether the fit begins with the conditionally structured Gaussian, without starts. It does if there are many
/// coordinates, and if most of them interact only with a few global parameters and few other coordinates. For such
/// models, a mean-field fit is a poor approximation, and its starts take the most time.
pub fn begins_conditional(density: &impl LogDensity, settings: &Settings) -> bool {
    settings.is_policy()
        && settings.start.starts.is_none()
        && density.dim() >= CONDITIONAL_FROM
        && has_few_globals(density)
}

/// Returns whether a fit that [begins with the conditionally structured Gaussian](begins_conditional) finds the mode.
/// If it does not, the fit falls back to a mean-field family. Returns `None` if the fit `stopped` before the end of the
/// search.
pub fn finds_conditional<D: TwiceDifferentiable>(
    density: &D,
    settings: &Settings,
    clock: &dyn Clock,
    stopped: &dyn Fn() -> bool,
) -> Option<bool> {
    if !begins_conditional(density, settings) {
        return Some(false);
    }
    let interrupt = Interrupt::new(None, clock);
    let mut driver = Driver::new(density, None, settings.clone(), &interrupt);
    let Ok(DriverState { mut stage, .. }) = driver.init() else {
        return Some(false);
    };
    let (Some((_, _, Engaged::Method(engine))), Stage::Method { state, .. }) =
        (&mut driver.engaged, &mut stage)
    else {
        return Some(false);
    };
    for iteration in 0.. {
        if stopped() {
            break;
        }
        if let Some(status) = engine.step(state.as_mut(), iteration).status {
            return Some(status.is_converged());
        }
    }
    None
}

fn has_few_globals(density: &impl LogDensity) -> bool {
    // The factor takes at most 16 MiB.
    let most = (KEPT / 8).min(density.dim() * FILL);
    Conditional::suits(&Space::of(density), most)
}

fn mean_len(start: &StartOutcome) -> usize {
    start.omega.len() / 2
}
