//! Every experiment.

use crate::experiment::Experiment;
use crate::{aevb, dual, joint_cv, tempering, trustvi};

/// All experiments, in the order of the list.
pub const EXPERIMENTS: &[Experiment] = &[
    trustvi::EXPERIMENT,
    joint_cv::EXPERIMENT,
    dual::EXPERIMENT,
    tempering::EXPERIMENT,
    aevb::EXPERIMENT,
];

/// The experiment of this name.
pub fn find(name: &str) -> Option<&'static Experiment> {
    EXPERIMENTS
        .iter()
        .find(|experiment| experiment.name == name)
}
