//! The folder of a fit: request, data and the files that a prior names.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use jensen::data::{Adjacency, Bytes, RunDir, Table, table};
use jensen::latent::{Files, Stored};
use serde::{Deserialize, Serialize};

use super::flags::LatentFlags;
use crate::failure::Failure;
use crate::input::read_bytes;
use crate::run::folder;

/// The command, as the folder's marker has it.
pub const COMMAND: &str = "latent";

/// The copy of the table.
const DATA: &str = "data.table";

/// A run as its folder keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
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
    pub bytes: Bytes,
}

impl Data {
    /// Reads a table's file.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let bytes = Bytes::read(path).map_err(|e| Failure::input(e.to_string()))?;
        Ok(Self {
            name: path.display().to_string(),
            bytes,
        })
    }

    /// The table.
    pub fn table(&self) -> Result<Table, Failure> {
        Table::parse(&self.bytes, &self.name).map_err(|e| Failure::input(e.to_string()))
    }

    /// The table, and meanwhile the digest of its bytes.
    pub fn table_and_digest(&self) -> Result<(Table, String), Failure> {
        let (table, digest) = rayon::join(|| self.table(), || jensen::latent::digest(&self.bytes));
        Ok((table?, digest))
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

/// Stores what is to be run.
pub fn write(
    run: &RunDir,
    data: &Data,
    files: &PriorFiles,
    flags: &LatentFlags,
) -> Result<(), Failure> {
    folder::write(run, DATA, &data.bytes)?;
    let mut names = BTreeMap::new();
    for (i, (name, bytes)) in files.read.borrow().iter().enumerate() {
        let copy = format!("file-{}", i + 1);
        folder::write(run, &copy, bytes)?;
        names.insert(name.clone(), copy);
    }
    folder::write_request(
        run,
        &Run {
            data: data.name.clone(),
            files: names,
            flags: flags.clone(),
        },
    )
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
    let folder = folder::open(path, COMMAND)?;
    let run: Run = folder::read_request(&folder)?;
    let mut read = BTreeMap::new();
    for (name, copy) in &run.files {
        read.insert(name.clone(), read_bytes(&path.join(copy))?);
    }
    Ok(Opened {
        data: Data {
            name: run.data.clone(),
            bytes: Bytes::read(&path.join(DATA)).map_err(|e| Failure::input(e.to_string()))?,
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
pub fn posterior(run: &RunDir) -> Result<Stored, Failure> {
    let encoded = folder::approximation(run, "jensen latent fit")?;
    Stored::decode(&encoded).map_err(|error| folder::bad_approximation(run, error))
}
