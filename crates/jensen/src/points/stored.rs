//! The file format in which a model of points is stored. The file contains the natural parameters of q(β). With these
//! parameters, the model can evaluate other points.

use jensen_data::RunDir;
use jensen_run::{Archive, ArchiveError, Checkpoint, Identity};

use crate::Error;
use crate::job::folder;
use crate::units::Units;

/// The global parameters of a fitted model, with the standardised units of its columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Globals {
    /// The natural parameters of q(β) for points in standardised units.
    pub lambda: Vec<f64>,
    /// The units of the columns.
    pub units: Units,
    /// The categories of each categorical column, in ascending order.
    pub levels: Vec<Vec<f64>>,
}

impl Globals {
    /// Encodes the global parameters in the safetensors format. `model` is the name of the model.
    pub fn encode(&self, model: &str) -> Vec<u8> {
        let mut archive = Archive::new();
        archive.put("lambda", &self.lambda);
        archive.set("units", &self.units);
        archive.set("levels", &self.levels);
        Checkpoint::of_result(Identity::of_result(model), archive).encode()
    }

    /// Decodes bytes that [`encode`](Self::encode) produced.
    ///
    /// # Errors
    /// Fails with [`Error::Input`] if the bytes are damaged or do not contain a model of points.
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

/// Reads the global parameters from the result folder of a finished fit of `command`.
///
/// # Errors
/// Fails if the fit has not finished or if the file is damaged.
pub fn stored_globals(run: &RunDir, command: &str) -> Result<Globals, Error> {
    let encoded = folder::approximation(run, command)?;
    Globals::decode(&encoded).map_err(|error| folder::bad_approximation(run, error))
}
