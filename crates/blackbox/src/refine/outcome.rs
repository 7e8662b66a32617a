//! The result of a refinement.

use jensen_run::{Archive, ArchiveError, Checkpoint, Identity};
use serde::{Deserialize, Serialize};

use super::mixing::{Ensemble, Mixing};
use crate::approximation::{Draws, LoadError};
use crate::calls::Calls;
use crate::oracle::Estimate;

/// One temperature on the path between the widened approximation and the posterior.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TemperatureStep {
    /// The inverse temperature.
    pub beta: f64,
    /// The effective share of the particles after they are reweighted to this temperature.
    pub share: f64,
    /// The mean acceptance rate of the transitions at this temperature.
    pub acceptance: f64,
    /// The number of transitions at this temperature.
    pub moves: usize,
}

/// A stationary phase of transitions at the temperature of the posterior.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StationaryPhase {
    /// The number of recorded transitions. The phase begins with a quarter as many unrecorded transitions.
    pub transitions: usize,
    /// The step size in standard deviations.
    pub step_size: f64,
    /// The mean acceptance rate of the largest steps.
    pub acceptance: f64,
    /// The share of transitions for which no step size was small enough.
    pub stuck: f64,
    /// The log evidence in nats.
    pub log_evidence: Estimate,
    /// The worst diagnostics among the coordinates, their spreads and the log density.
    pub mixing: Mixing,
}

impl Default for StationaryPhase {
    fn default() -> Self {
        Self {
            transitions: 0,
            step_size: 0.0,
            acceptance: 0.0,
            stuck: 0.0,
            log_evidence: Estimate::UNKNOWN,
            mixing: Mixing::UNKNOWN,
        }
    }
}

/// Draws of the posterior, and what they show about the approximation.
#[derive(Clone, Debug, PartialEq)]
pub struct Refined {
    /// The arrangement of the chains.
    pub ensemble: Ensemble,
    /// The draws on the unconstrained scale, with equal weights, in the order that [`Ensemble::judge`] expects. `log_q`
    /// is the log density of the approximation at the draws.
    pub draws: Draws,
    /// The log density of the posterior at the draws.
    pub log_p: Vec<f64>,
    /// The log evidence of the region that the draws reach, in nats. If the priors are improper or constants were
    /// dropped, the log evidence is known only up to a constant.
    pub log_evidence: Estimate,
    /// The worst diagnostics of the last stationary phase.
    pub mixing: Mixing,
    /// The temperatures between the widened approximation and the posterior.
    pub ladder: Vec<TemperatureStep>,
    /// The stationary phases in the order in which they ran.
    pub stationary_phases: Vec<StationaryPhase>,
    /// The number of evaluations of the density.
    pub calls: Calls,
    /// The reasons not to use the draws. Each reason is a sentence without its full stop. The list is empty if the
    /// draws have mixed.
    pub reasons: Vec<String>,
}

/// Refined draws in their stored form.
#[derive(Clone, Debug, PartialEq)]
pub struct RefinedDraws {
    /// The draws on the unconstrained scale, with equal weights. `log_q` is the log density of the approximation at the
    /// draws.
    pub draws: Draws,
    /// The log density of the posterior at the draws.
    pub log_p: Vec<f64>,
}

impl RefinedDraws {
    /// Reads refined draws from the output of [`Refined::encode`], together with the stored identity.
    ///
    /// # Errors
    /// Fails if the bytes are damaged, have another format version or are not refined draws.
    pub fn decode(bytes: &[u8]) -> Result<(Self, Identity), LoadError> {
        let checkpoint = Checkpoint::decode(bytes).map_err(LoadError::Bytes)?;
        let draws = Self::restore(&checkpoint.state).map_err(LoadError::Content)?;
        Ok((draws, checkpoint.identity))
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let z = archive.vec("z")?;
        let log_p = archive.vec("log_p")?;
        let count = log_p.len();
        if count == 0 || !z.len().is_multiple_of(count) {
            let found = z.len();
            return Err(ArchiveError(format!(
                "{found} coordinates do not match {count} draws"
            )));
        }
        let draws = Draws {
            dim: z.len() / count,
            count,
            log_q: archive.vec_of("log_q", count)?,
            z,
        };
        Ok(Self { draws, log_p })
    }
}

impl Refined {
    /// Returns whether the draws pass all diagnostics.
    pub fn mixed(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Returns the draws in safetensors format. The header identifies the model and the data.
    pub fn encode(&self, identity: &Identity) -> Vec<u8> {
        let mut archive = Archive::new();
        let shape = vec![self.draws.dim, self.draws.count];
        archive.put_tensor("z", shape, self.draws.z.clone());
        archive.put("log_p", &self.log_p);
        archive.put("log_q", &self.draws.log_q);
        Checkpoint::of_result(identity.clone(), archive).encode()
    }

    /// Computes the divergence KL(q‖p) of the approximation in nats. It is `log Z` minus the ELBO of the approximation.
    pub fn divergence(&self, elbo: Estimate) -> Estimate {
        Estimate {
            mean: self.log_evidence.mean - elbo.mean,
            standard_error: self.log_evidence.standard_error.hypot(elbo.standard_error),
        }
    }
}
