//! The folder of a fit: request, data and the files that a prior names.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use jensen::data::{Adjacency, Artefact, RunDir, Table, table, write_atomic_bytes};
use jensen::latent::{Files, Stored};
use serde::{Deserialize, Serialize};

use super::flags::LatentFlags;
use crate::failure::Failure;
use crate::input::{read_bytes, read_text};

/// The command, as the folder's marker has it.
pub const COMMAND: &str = "latent";

/// What was run.
const REQUEST: &str = "run.json";

/// The copy of the table.
const DATA: &str = "data.table";

/// Version of [`Run`].
const LAYOUT: u32 = 1;

/// A run as its folder keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    layout: u32,
    version: String,
    /// The table's name; its ending tells the format.
    pub data: String,
    /// Names of files in the prior and their copies in the folder.
    files: BTreeMap<String, String>,
    /// The flags.
    pub flags: LatentFlags,
}

/// A table as it was read.
pub struct Data {
    /// Its name.
    pub name: String,
    /// Its bytes, decompressed.
    pub bytes: Vec<u8>,
}

impl Data {
    /// Reads a table's file.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let bytes = table::read_bytes(path).map_err(|e| Failure::input(e.to_string()))?;
        Ok(Self {
            name: path.display().to_string(),
            bytes,
        })
    }

    /// The table.
    pub fn table(&self) -> Result<Table, Failure> {
        Table::parse(&self.bytes, &self.name).map_err(|e| Failure::input(e.to_string()))
    }
}

/// Files that a prior names: from disk, or from the folder of a run; what was read is remembered.
#[derive(Default)]
pub struct PriorFiles {
    read: RefCell<BTreeMap<String, Vec<u8>>>,
    closed: bool,
}

impl PriorFiles {
    fn bytes(&self, file: &str) -> Result<Vec<u8>, String> {
        if let Some(bytes) = self.read.borrow().get(file) {
            return Ok(bytes.clone());
        }
        if self.closed {
            return Err(format!("the folder of the fit has no copy of `{file}`"));
        }
        let bytes = table::read_bytes(Path::new(file)).map_err(|e| e.to_string())?;
        self.read
            .borrow_mut()
            .insert(file.to_owned(), bytes.clone());
        Ok(bytes)
    }
}

impl Files for PriorFiles {
    fn graph(&self, file: &str) -> Result<Adjacency, String> {
        Adjacency::parse(&self.bytes(file)?, file).map_err(|e| e.to_string())
    }

    fn table(&self, file: &str) -> Result<Table, String> {
        Table::parse(&self.bytes(file)?, file).map_err(|e| e.to_string())
    }
}

/// Takes a folder for a new run.
pub fn take(path: &Path) -> Result<RunDir, Failure> {
    let folder = RunDir::create(path, COMMAND).map_err(Failure::output)?;
    folder.clear().map_err(Failure::output)?;
    Ok(folder)
}

/// Stores what is to be run.
pub fn write(
    folder: &RunDir,
    data: &Data,
    files: &PriorFiles,
    flags: &LatentFlags,
) -> Result<(), Failure> {
    let put = |name: &str, bytes: &[u8]| {
        write_atomic_bytes(&folder.path().join(name), bytes).map_err(Failure::output)
    };
    put(DATA, &data.bytes)?;
    let mut names = BTreeMap::new();
    for (i, (name, bytes)) in files.read.borrow().iter().enumerate() {
        let copy = format!("file-{}", i + 1);
        put(&copy, bytes)?;
        names.insert(name.clone(), copy);
    }
    let run = Run {
        layout: LAYOUT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        data: data.name.clone(),
        files: names,
        flags: flags.clone(),
    };
    let text = serde_json::to_string_pretty(&run).map_err(Failure::output)?;
    put(REQUEST, format!("{text}\n").as_bytes())
}

/// A stored run with its data and files.
pub struct Opened {
    /// The folder.
    pub folder: RunDir,
    /// What was run.
    pub run: Run,
    /// The table.
    pub data: Data,
    /// The prior's files.
    pub files: PriorFiles,
}

/// Opens the folder of an earlier fit.
pub fn open(path: &Path) -> Result<Opened, Failure> {
    let folder = RunDir::open(path).map_err(|error| Failure::input(error.to_string()))?;
    if folder.command() != COMMAND {
        return Err(Failure::input(format!(
            "the folder `{}` holds results of `jensen {}`, not of `jensen latent`",
            path.display(),
            folder.command()
        )));
    }
    let request = path.join(REQUEST);
    let run: Run = serde_json::from_str(&read_text(&request)?)
        .map_err(|error| Failure::input(format!("`{}` is damaged: {error}", request.display())))?;
    if run.layout != LAYOUT {
        return Err(Failure::input(format!(
            "the folder `{}` was written by jensen {}, this is {}: use that version",
            path.display(),
            run.version,
            env!("CARGO_PKG_VERSION")
        )));
    }
    let mut read = BTreeMap::new();
    for (name, copy) in &run.files {
        read.insert(name.clone(), read_bytes(&path.join(copy))?);
    }
    Ok(Opened {
        data: Data {
            name: run.data.clone(),
            bytes: read_bytes(&path.join(DATA))?,
        },
        files: PriorFiles {
            read: RefCell::new(read),
            closed: true,
        },
        folder,
        run,
    })
}

/// The posterior of a finished fit.
pub fn posterior(folder: &RunDir) -> Result<Stored, Failure> {
    if !folder.has(Artefact::Approximation) {
        return Err(Failure::input(format!(
            "the fit in `{0}` has not finished: resume it first (`jensen latent fit --resume {0}`)",
            folder.path().display()
        )));
    }
    let path = folder.artefact(Artefact::Approximation);
    Stored::decode(&read_bytes(&path)?)
        .map_err(|error| Failure::input(format!("`{}`: {error}", path.display())))
}
