//! Experiments and their parts.

use crate::context::Context;
use crate::failure::Failure;
use crate::results::Scale;

/// The experiments of a paper.
pub struct Experiment {
    /// The name on the command line.
    pub name: &'static str,
    /// A one-line description.
    pub about: &'static str,
    /// The data that are needed below `--data DIR`, and instructions for obtaining them.
    pub data: &'static str,
    /// The figures and tables, in the order of execution.
    pub parts: &'static [Piece],
}

/// A figure, a table, or a group of panels.
pub struct Piece {
    /// The name for `--only`.
    pub name: &'static str,
    /// A one-line description of the content.
    pub about: &'static str,
    /// The smallest scale at which the part runs. It is [`Scale::Paper`] for parts without a quick version.
    pub from: Scale,
    /// The function that runs the part.
    pub run: fn(&mut Context<'_>) -> Result<(), Failure>,
}

impl Piece {
    /// Returns whether the part runs at this scale.
    pub fn runs_at(&self, scale: Scale) -> bool {
        self.from == Scale::Quick || scale == Scale::Paper
    }

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
