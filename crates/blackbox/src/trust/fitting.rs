//! The beginning of a TrustVI fit.

use jensen_density::TwiceDifferentiable;
use jensen_run::Status;

use super::algorithm::Trust;
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
        Ok(Box::new(Trust::on_records(
            minibatches,
            at.family,
            at.source,
            self.trust,
            at.omega,
            at.stream,
        )))
    }

    fn share(&self, records: u64) -> (u64, u64) {
        (self.batch as u64, records)
    }
}
