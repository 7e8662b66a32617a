//! The current stage of a run, and its algorithm.

use std::sync::Arc;

use jensen_run::Algorithm;

use super::results::FamilyResult;
use crate::calls::Calls;
use crate::engine::{Engine, StoredState};
use crate::family::{Family, FamilyName};
use crate::method::Method;
use crate::starts::{StartOutcome, StartsState};

/// The algorithm of a stage.
pub(super) enum Engaged<'a> {
    Starts(Box<dyn Algorithm<State = StartsState, Output = Vec<StartOutcome>> + 'a>),
    Method(Box<dyn Engine + 'a>),
}

/// The beginning of a stage: its family, method and starting point.
pub(super) struct Next {
    pub(super) family: Arc<dyn Family>,
    pub(super) method: Method,
    pub(super) omega: Vec<f64>,
}

/// The stage of a run.
pub(super) enum Stage {
    Starts(StartsState),
    Method {
        name: &'static str,
        state: Box<dyn StoredState>,
    },
    Done,
}

impl Stage {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Starts(_) => "starts",
            Self::Method { name, .. } => name,
            Self::Done => "done",
        }
    }
}

/// State of a [`Driver`](super::Driver).
pub struct DriverState {
    pub(super) stage: Stage,
    /// Number of iterations before the current stage.
    pub(super) before: u64,
    /// Evaluations before the current stage.
    pub(super) calls_before: Calls,
    /// Evaluations so far.
    pub(super) calls: Calls,
    /// Family of the current stage.
    pub(super) family: FamilyName,
    pub(super) starts: Vec<StartOutcome>,
    pub(super) results: Vec<FamilyResult>,
}

impl DriverState {
    /// Evaluations so far.
    pub(crate) fn calls(&self) -> Calls {
        self.calls
    }
}
