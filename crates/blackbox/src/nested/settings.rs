//! Settings of the nested Laplace approximation.

use jensen_density::TwiceDifferentiable;
use jensen_run::SettingError;
use serde::{Deserialize, Serialize};

use super::{Nested, NestedState};
use crate::engine::{Beginning, Engine, Fitting, MethodSettings};
use crate::error::{FitError, positive};
use crate::family::{Conditional, FamilyKind};

/// The settings of the nested Laplace approximation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NestedSettings {
    /// The tolerance of the search for the mode of the global parameters. The search ends when the predicted gain, in
    /// nats, is at most this value.
    pub tolerance: f64,
    /// The number of points per iteration. Each point is a value of the global parameters.
    pub points: usize,
    /// The largest number of iterations.
    pub max_iterations: u64,
}

impl Default for NestedSettings {
    fn default() -> Self {
        Self {
            tolerance: 0.01,
            points: 128,
            max_iterations: 60,
        }
    }
}

impl MethodSettings for NestedSettings {
    const NAME: &'static str = "nested";
    const STARTS: bool = false;

    fn validate(&self) -> Result<(), SettingError> {
        positive([
            ("tolerance", self.tolerance),
            ("points", self.points as f64),
            ("max_iterations", self.max_iterations as f64),
        ])
    }

    fn lanes(&self, _dim: usize) -> usize {
        self.points
    }
}

impl Fitting for NestedSettings {
    type State = NestedState;

    fn begin<'a, D: TwiceDifferentiable>(
        &self,
        at: Beginning<'a, D>,
    ) -> Result<Box<dyn Engine + 'a>, FitError> {
        if at.family.name() != FamilyKind::Conditional {
            return Err(FitError::Setting(format!(
                "nested Laplace approximations fit the family `{}`, not `{}`",
                FamilyKind::Conditional,
                at.family.name()
            )));
        }
        Ok(Box::new(Nested {
            density: at.density,
            family: Conditional::new(at.family.space()),
            source: at.source,
            settings: *self,
            start: at.omega,
            stream: at.stream,
        }))
    }
}
