//! The table of all experiments.

use crate::experiment::Experiment;
use crate::{aevb, dual, joint_cv, tempering, trustvi};

/// All experiments, in the order in which the command lists them.
pub const EXPERIMENTS: &[Experiment] = &[
    trustvi::EXPERIMENT,
    joint_cv::EXPERIMENT,
    dual::EXPERIMENT,
    tempering::EXPERIMENT,
    aevb::EXPERIMENT,
];

/// Returns the experiment with this name, or `None` if there is none.
pub fn find(name: &str) -> Option<&'static Experiment> {
    EXPERIMENTS
        .iter()
        .find(|experiment| experiment.name == name)
}
