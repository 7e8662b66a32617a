//! A fit of points in its stored form: the natural parameters of q(β), from which the model evaluates other points.

use jensen_data::RunDir;
use jensen_run::{Archive, ArchiveError, Checkpoint, Identity};

use crate::Error;
use crate::job::folder;
use crate::units::Units;

/// A stored model to apply to new points.
#[derive(Clone, Debug, PartialEq)]
pub struct Globals {
    /// Natural parameters of q(β) for points in these units.
    pub lambda: Vec<f64>,
    /// The units of the columns.
    pub units: Units,
    /// The categories of each categorical column, ascending.
    pub levels: Vec<Vec<f64>>,
}

impl Globals {
    /// Returns the safetensors bytes for the model of this name.
    pub fn encode(&self, model: &str) -> Vec<u8> {
        let mut archive = Archive::new();
        archive.put("lambda", &self.lambda);
        archive.set("units", &self.units);
        archive.set("levels", &self.levels);
        Checkpoint::of_result(Identity::of_result(model), archive).encode()
    }

    /// Reads bytes that [`encode`](Self::encode) made.
    ///
    /// # Errors
    /// [`Error::Input`] if they are damaged or are not such a fit.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let checkpoint = Checkpoint::decode(bytes).map_err(Error::input)?;
        let read = || -> Result<Self, ArchiveError> {
            Ok(Self {
                lambda: checkpoint.state.vec("lambda")?,
                units: checkpoint.state.get("units")?,
                levels: checkpoint.state.get("levels")?,
            })
        };
        read().map_err(|error| Error::Input(format!("this is not a fit of points: {error}")))
    }
}

/// Returns the global parameters in the folder of a finished fit of `command`.
///
/// # Errors
/// Fails if the fit has not finished, or the file is damaged.
pub fn stored_globals(run: &RunDir, command: &str) -> Result<Globals, Error> {
    let encoded = folder::approximation(run, command)?;
    Globals::decode(&encoded).map_err(|error| folder::bad_approximation(run, error))
}
