//! Experiments and their parts.

use crate::context::Context;
use crate::failure::Failure;
use crate::results::Scale;

/// The experiments of one paper that are reproduced.
pub struct Experiment {
    /// The name of the experiment on the command line.
    pub name: &'static str,
    /// A one-line description of the experiment.
    pub about: &'static str,
    /// A list of the data that the experiment needs below `--data DIR`, with instructions for obtaining them.
    pub data: &'static str,
    /// The figures and tables of the experiment, in the order in which they are run.
    pub parts: &'static [Piece],
}

/// A part of an experiment, which is a figure, a table, or a group of panels.
pub struct Piece {
    /// The name of the part, which can be passed to `--only`.
    pub name: &'static str,
    /// A one-line description of what the part shows.
    pub about: &'static str,
    /// The smallest scale at which the part can be run. A part without a quick version has [`Scale::Paper`].
    pub from: Scale,
    /// The function that runs the part.
    pub run: fn(&mut Context<'_>) -> Result<(), Failure>,
}

impl Piece {
    /// Returns whether the part can be run at this scale.
    pub fn runs_at(&self, scale: Scale) -> bool {
        self.from == Scale::Quick || scale == Scale::Paper
    }

    pub(crate) fn placeholder(&self) -> String {
        format!("{}: {}", self.name, self.about)
    }
}

impl Experiment {
    /// Returns the part with this name, or `None` if there is none.
    pub fn part(&self, name: &str) -> Option<&Piece> {
        self.parts.iter().find(|part| part.name == name)
    }
}
