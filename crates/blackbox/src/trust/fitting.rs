//! The beginning of a TrustVI fit.

use jensen_density::TwiceDifferentiable;
use jensen_run::Status;

use super::algorithm::{CONTROLLED, Trust};
use super::settings::{RecordTrust, TrustSettings};
use super::state::TrustState;
use crate::engine::{Beginning, Engine, Fitting};
use crate::error::FitError;

impl Fitting for TrustSettings {
    type State = TrustState;

    fn begin<'a, D: TwiceDifferentiable>(
        &self,
        at: Beginning<'a, D>,
    ) -> Result<Box<dyn Engine + 'a>, FitError> {
        Ok(Box::new(Trust::new(
            at.density, at.family, at.source, *self, at.omega, at.stream,
        )))
    }

    fn hands_over(&self, status: &Status, _dim: usize) -> bool {
        !status.is_converged()
    }
}

impl Fitting for RecordTrust {
    type State = TrustState;

    fn begin<'a, D: TwiceDifferentiable>(
        &self,
        at: Beginning<'a, D>,
    ) -> Result<Box<dyn Engine + 'a>, FitError> {
        let minibatches = at.prepared()?.minibatches();
        let dim = at.density.dim();
        if self.controlled && dim > Self::MOST_CONTROLLED {
            return Err(FitError::Setting(format!(
                "the estimator `joint-svrg` of TrustVI stores a matrix of all pairs of coordinates, which is possible for \
                 at most {} coordinates, but the model has {dim}: use `--estimator naive`",
                Self::MOST_CONTROLLED
            )));
        }
        let trust = Trust::on_records(
            minibatches,
            at.family,
            at.source,
            self.trust,
            at.omega,
            at.stream,
        );
        Ok(Box::new(match self.controlled {
            true => trust.controlled(),
            false => trust,
        }))
    }

    /// With the control variate, a draw evaluates the records of its batch again at the snapshot, and a product there.
    fn share(&self, records: u64) -> (u64, u64) {
        let times = if self.controlled { CONTROLLED } else { 1 };
        (times * self.batch as u64, records)
    }
}
