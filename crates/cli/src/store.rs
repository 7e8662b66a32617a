//! What the folder of a fit keeps of its inputs: what `--resume` and `jensen draws` need.

use std::collections::BTreeMap;
use std::path::Path;

use jensen::blackbox::Init;
use jensen::data::RunDir;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::flags::FitFlags;
use crate::input::{DataFile, Format, Includes, read_bytes, read_text};
use crate::run::folder;

/// The command, as the folder's marker has it.
pub const COMMAND: &str = "fit";

/// The copy of the model.
const MODEL: &str = "model.stan";

/// A run as its folder keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// The model's name in messages.
    pub model: String,
    /// Included files by the name in the program.
    pub includes: BTreeMap<String, String>,
    /// The data's name and format.
    pub data: Option<(String, Format)>,
    /// The flags, with the instruction set resolved.
    pub flags: FitFlags,
    /// Where the run starts.
    pub init: Init,
}

/// Everything that a run is made from.
pub struct Inputs {
    /// The model's name.
    pub model: String,
    /// Its text.
    pub text: String,
    /// Its includes.
    pub includes: Includes,
    /// Its data.
    pub data: Option<DataFile>,
}

/// The file name of a copy of the data.
fn data_file(format: Format) -> &'static str {
    match format {
        Format::Json => "data.json",
        Format::Rdump => "data.R",
    }
}

/// Stores what is to be run.
pub fn write(run: &RunDir, inputs: &Inputs, flags: &FitFlags, init: &Init) -> Result<(), Failure> {
    folder::write(run, MODEL, inputs.text.as_bytes())?;
    if let Some(data) = &inputs.data {
        folder::write(run, data_file(data.format), &data.bytes)?;
    }
    folder::write_request(
        run,
        &Stored {
            model: inputs.model.clone(),
            includes: inputs.includes.found(),
            data: inputs
                .data
                .as_ref()
                .map(|data| (data.name.clone(), data.format)),
            flags: flags.clone(),
            init: init.clone(),
        },
    )
}

/// Opens the folder of an earlier fit.
pub fn open(path: &Path) -> Result<(RunDir, Stored), Failure> {
    let run = jensen::study::folder::open(path, COMMAND)?;
    let stored = jensen::study::folder::read_request(&run)?;
    Ok((run, stored))
}

/// The copies of model and data.
pub fn inputs(run: &RunDir, stored: &Stored) -> Result<Inputs, Failure> {
    let data = stored
        .data
        .as_ref()
        .map(|(name, format)| {
            Ok::<_, Failure>(DataFile {
                name: name.clone(),
                format: *format,
                bytes: read_bytes(&run.path().join(data_file(*format)))?,
            })
        })
        .transpose()?;
    Ok(Inputs {
        model: stored.model.clone(),
        text: read_text(&run.path().join(MODEL))?,
        includes: Includes::stored(stored.includes.clone()),
        data,
    })
}
