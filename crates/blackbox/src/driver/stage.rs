//! The current stage of a run and the algorithm of that stage.

use std::sync::Arc;

use jensen_run::Algorithm;

use super::results::FamilyResult;
use crate::calls::Calls;
use crate::engine::{Engine, StoredState};
use crate::family::{Family, FamilyName};
use crate::method::Method;
use crate::starts::{StartOutcome, StartsState};

pub(super) enum Engaged<'a> {
    Starts(Box<dyn Algorithm<State = StartsState, Output = Vec<StartOutcome>> + 'a>),
    Method(Box<dyn Engine + 'a>),
}

pub(super) struct Next {
    pub(super) family: Arc<dyn Family>,
    pub(super) method: Method,
    pub(super) omega: Vec<f64>,
}

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

/// The state of a [`Driver`](super::Driver) between iterations.
pub struct DriverState {
    pub(super) stage: Stage,
    pub(super) before: u64,
    pub(super) calls_before: Calls,
    pub(super) calls: Calls,
    pub(super) family: FamilyName,
    pub(super) starts: Vec<StartOutcome>,
    pub(super) results: Vec<FamilyResult>,
}

impl DriverState {
    pub(crate) fn calls(&self) -> Calls {
        self.calls
    }
}
