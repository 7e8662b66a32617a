//! Experiments and their parts.

use crate::context::Context;
use crate::failure::Failure;
use crate::results::Scale;

/// A paper's experiments.
pub struct Experiment {
    /// The experiment's name on the command line.
    pub name: &'static str,
    /// A one-line description.
    pub about: &'static str,
    /// The necessary data below `--data DIR`, and instructions to get them.
    pub data: &'static str,
    /// The figures and tables of the experiment, in the order of execution.
    pub parts: &'static [Piece],
}

/// A figure, a table, or a group of panels.
pub struct Piece {
    /// The name of the part for `--only`.
    pub name: &'static str,
    /// A one-line description of the content.
    pub about: &'static str,
    /// The smallest scale at which it runs: [`Scale::Paper`] for parts without a quick version.
    pub from: Scale,
    /// The function that runs it.
    pub run: fn(&mut Context<'_>) -> Result<(), Failure>,
}

impl Piece {
    /// Returns whether the part runs at this scale.
    pub fn runs_at(&self, scale: Scale) -> bool {
        self.from == Scale::Quick || scale == Scale::Paper
    }

    /// Returns the name of the row in `results.json` for a part that was not run.
    pub(crate) fn placeholder(&self) -> String {
        format!("{}: {}", self.name, self.about)
    }
}

impl Experiment {
    /// Returns the part with this name.
    pub fn part(&self, name: &str) -> Option<&Piece> {
        self.parts.iter().find(|part| part.name == name)
    }
}
