//! The items that most programs need. Import them with `use jensen::prelude::*`.

pub use jensen_blackbox::{Family, FamilyChoice, FamilyKind, Init, Method, Policy, Settings};
pub use jensen_data::{DataSet, Value};
pub use jensen_density::{
    Differenced, Lanes, LanesMut, LogDensity, Posterior, TwiceDifferentiable,
};
pub use jensen_graph::{Builder, Execution, Expr};
pub use jensen_run::{Budget, Control, Silent, Status};

pub use crate::stan::{Build, Model};
pub use crate::{Bare, Error, Fitted, Options, Problem, fit, fit_with};
pub use jensen_blackbox::RefineWhen;

pub use crate::VariableDraws;
