//! Every experiment.

use crate::experiment::Experiment;

/// All experiments, in the order in which they are listed.
pub const EXPERIMENTS: &[Experiment] = &[];

/// The experiment of this name.
pub fn find(name: &str) -> Option<&'static Experiment> {
    EXPERIMENTS
        .iter()
        .find(|experiment| experiment.name == name)
}
