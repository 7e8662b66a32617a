//! The folder of a fit of an auto-encoder.

use std::path::{Path, PathBuf};

use jensen::data::{Artefact, RunDir, remove_file};
use jensen::neural::{Architecture, VaeModel};
use serde::{Deserialize, Serialize};

use super::flags::VaeFlags;
use crate::failure::Failure;
use crate::run::folder;

/// The command, as the folder's marker has it.
pub const COMMAND: &str = "vae";

/// The description of the networks.
const ARCHITECTURE: &str = "architecture.json";

/// Pictures of drawn records.
pub const SAMPLES: &str = "samples.png";

/// Pictures of records and their reconstructions.
pub const RECONSTRUCTIONS: &str = "reconstructions.png";

/// The latent plane.
pub const MANIFOLD: &str = "manifold.png";

/// A run as its folder keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stored {
    /// Where the data are.
    pub data: PathBuf,
    /// A file, or a share of the data.
    pub validation: Option<String>,
    /// Digest of the data.
    pub digest: String,
    /// The networks.
    pub architecture: Architecture,
    /// The flags, with the instruction set resolved.
    pub flags: VaeFlags,
}

/// Takes a folder for a new run.
pub fn take(path: &Path) -> Result<RunDir, Failure> {
    let run = folder::take(path, COMMAND)?;
    for name in [ARCHITECTURE, SAMPLES, RECONSTRUCTIONS, MANIFOLD] {
        remove_file(&run.path().join(name)).map_err(Failure::output)?;
    }
    Ok(run)
}

/// Opens the folder of an earlier fit.
pub fn open(path: &Path) -> Result<(RunDir, Stored), Failure> {
    let run = folder::open(path, COMMAND)?;
    let stored = folder::read_request(&run)?;
    Ok((run, stored))
}

/// The weights of a finished fit.
pub fn model(run: &RunDir) -> Result<VaeModel, Failure> {
    let encoded = folder::approximation(run, "jensen vae fit")?;
    VaeModel::decode(&encoded).map_err(|error| folder::bad_approximation(run, error))
}

/// Stores weights and what they are weights of.
pub fn write_model(run: &RunDir, model: &VaeModel) -> Result<(), Failure> {
    folder::write(run, ARCHITECTURE, model.description().as_bytes())?;
    folder::write(run, Artefact::Approximation.file_name(), &model.encode())
}
