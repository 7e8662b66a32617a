//! The settings of stochastic gradients on minibatches.

use jensen_density::TwiceDifferentiable;
use jensen_run::SettingError;
use serde::{Deserialize, Serialize};

use super::{Minibatch, MinibatchState};
use crate::engine::{Beginning, Engine, Fitting, MethodSettings};
use crate::error::{FitError, positive};
use crate::optimiser::{Optimiser, Rule};
use crate::records::{RecordEstimator, VarianceSettings};

/// The settings of [`Minibatch`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MinibatchSettings {
    /// The gradient estimator.
    pub estimator: RecordEstimator,
    /// The optimiser.
    pub optimiser: Optimiser,
    /// The number B of records per batch.
    pub batch: usize,
    /// The number of draws in each iteration.
    pub draws: usize,
    /// The number of epochs at the beginning that use the naive estimator, if the chosen estimator has a table. It is
    /// at least 1, because the last of these epochs fills the table.
    pub warm_up: u64,
    /// The number of iterations between two anchors of the `joint-svrg` estimator. `None` means one epoch.
    pub refresh: Option<u64>,
    /// The settings of the stopping rule.
    pub judge: Option<Judge>,
    /// The settings for tracing the variance of gradients. The run measures the variance of every estimator that suits
    /// the records, at the same iterates. Each estimator with a table needs additional memory and one more evaluation
    /// per iteration. These evaluations do not count as oracle calls.
    pub variance: Option<VarianceSettings>,
    /// The largest number of bytes for the table, the optimiser and scratch memory together.
    pub memory_limit: Option<u64>,
}

/// The stopping rule. It compares the averages of segments of iterations on matched draws.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judge {
    /// The number of iterations in a segment. By default, a segment is the smallest number of whole epochs that have at
    /// least 500 iterations in total and cost at least as much as the comparison at the end of the segment.
    pub window: Option<u64>,
    /// The number of draws per comparison. Each draw is evaluated on all records.
    pub draws: usize,
    /// The tolerance for the gain of the ELBO, in nats.
    pub tolerance: f64,
    /// Whether a second-order polish must confirm convergence. The polish confirms it if the remaining gain is within
    /// the tolerance. The polish costs many passes over all records.
    pub certify: bool,
}

impl Default for Judge {
    fn default() -> Self {
        Self {
            window: None,
            draws: 32,
            tolerance: 0.5,
            certify: true,
        }
    }
}

impl Default for MinibatchSettings {
    fn default() -> Self {
        Self {
            estimator: RecordEstimator::Joint,
            optimiser: Rule::adam().into(),
            batch: 100,
            draws: 1,
            warm_up: 1,
            refresh: None,
            judge: Some(Judge::default()),
            variance: None,
            memory_limit: None,
        }
    }
}

impl MinibatchSettings {
    /// Returns the default settings with minibatches of `batch` records.
    pub fn of(batch: usize) -> Self {
        Self {
            batch,
            ..Self::default()
        }
    }
}

impl MethodSettings for MinibatchSettings {
    const NAME: &'static str = "minibatch";

    fn validate(&self) -> Result<(), SettingError> {
        positive([
            ("draws", self.draws as f64),
            ("step_size", self.optimiser.step_size),
            ("tolerance", self.judge.map_or(1.0, |judge| judge.tolerance)),
        ])
    }

    fn lanes(&self, _dim: usize) -> usize {
        self.judge.map_or(self.draws, |judge| judge.draws)
    }

    fn batch(&self) -> Option<usize> {
        Some(self.batch)
    }
}

impl Fitting for MinibatchSettings {
    type State = MinibatchState;

    fn begin<'a, D: TwiceDifferentiable>(
        &self,
        at: Beginning<'a, D>,
    ) -> Result<Box<dyn Engine + 'a>, FitError> {
        let prepared = at.prepared()?;
        let mut settings = *self;
        settings.memory_limit = settings.memory_limit.or(prepared.memory_limit());
        // A setting that is valid for the first family may be invalid for a richer family.
        if at.stream > 0 && settings.estimator == RecordEstimator::JointExact {
            settings.estimator = RecordEstimator::Joint;
        }
        let seed = at.source.seed();
        let fit = Minibatch::new(prepared.records(), at.family, seed, settings, at.omega)?;
        Ok(Box::new(fit.with_simd(at.source.simd())))
    }

    fn share(&self, records: u64) -> (u64, u64) {
        (1, records)
    }
}
