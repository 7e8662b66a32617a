//! The input and stored files of a fit: its request, its table, and the files that the prior names.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use jensen_data::{Adjacency, Bytes, RunDir, Symmetric, Table, read_bytes, table};
use serde::{Deserialize, Serialize};

use super::{Files, LatentRequest, StoredPosterior};
use crate::Error;
use crate::job::{File, folder};

pub(super) const COMMAND: &str = "latent";

pub(super) const DATA: &str = "data.table";

/// The stored request of a fit, with information about its inputs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatentRun {
    /// The name of the table's file. Its extension determines the format.
    pub data: String,
    /// The names of copies in the result folder, by the names of the files in the prior.
    pub files: BTreeMap<String, String>,
    /// The request.
    pub flags: LatentRequest,
}

/// A table file as bytes.
pub struct LatentData {
    /// The name of the table.
    pub name: String,
    /// The bytes of the table, decompressed.
    pub bytes: Bytes,
}

impl LatentData {
    /// Reads a table file. `most` limits the number of bytes after decompression.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn read(path: &Path, most: u64) -> Result<Self, Error> {
        let bytes = Bytes::read_within(path, most)?;
        Ok(Self {
            name: path.display().to_string(),
            bytes,
        })
    }

    /// Parses the table.
    ///
    /// # Errors
    /// Fails if the bytes are not a table.
    pub fn table(&self) -> Result<Table, Error> {
        Ok(Table::parse(&self.bytes, &self.name)?)
    }

    /// Parses the table and computes the digest of its bytes, in parallel.
    ///
    /// # Errors
    /// Fails if the bytes are not a table.
    pub fn table_and_digest(&self) -> Result<(Table, String), Error> {
        let (table, digest) = rayon::join(|| self.table(), || super::digest(&self.bytes));
        Ok((table?, digest))
    }
}

/// The files that a prior names, read from disk or from the folder of a run, and cached.
#[derive(Default)]
pub struct PriorFiles {
    read: RefCell<BTreeMap<String, Vec<u8>>>,
    closed: bool,
}

impl PriorFiles {
    fn bytes(&self, file: &str) -> Result<Vec<u8>, Error> {
        if let Some(bytes) = self.read.borrow().get(file) {
            return Ok(bytes.clone());
        }
        if self.closed {
            return Err(Error::Input(format!(
                "the folder of the fit has no copy of `{file}`"
            )));
        }
        let bytes = table::read_bytes(Path::new(file))?;
        self.read
            .borrow_mut()
            .insert(file.to_owned(), bytes.clone());
        Ok(bytes)
    }

    pub(super) fn copies(&self) -> (Vec<File<'static>>, BTreeMap<String, String>) {
        let (mut copies, mut names) = (Vec::new(), BTreeMap::new());
        for (i, (name, bytes)) in self.read.borrow().iter().enumerate() {
            let copy = format!("file-{}", i + 1);
            copies.push(File::of_bytes(copy.clone(), bytes.clone()));
            names.insert(name.clone(), copy);
        }
        (copies, names)
    }
}

impl Files for PriorFiles {
    fn graph(&self, file: &str) -> Result<Adjacency, Error> {
        Ok(Adjacency::parse(&self.bytes(file)?, file)?)
    }

    fn symmetric(&self, file: &str) -> Result<Symmetric, Error> {
        Ok(Symmetric::parse(&self.bytes(file)?, file)?)
    }

    fn table(&self, file: &str) -> Result<Table, Error> {
        Ok(Table::parse(&self.bytes(file)?, file)?)
    }
}

/// The folder of a stored run, with its data and files.
pub struct LatentFolder {
    /// The folder.
    pub folder: RunDir,
    /// The stored request.
    pub run: LatentRun,
    /// The table.
    pub data: LatentData,
    /// The files that the prior names.
    pub files: PriorFiles,
}

/// Opens the folder of an earlier fit.
///
/// # Errors
/// Fails if the folder does not belong to a fit of a latent Gaussian model, or if one of its files is missing or
/// damaged.
pub fn open_latent(path: &Path) -> Result<LatentFolder, Error> {
    let folder = folder::open(path, COMMAND)?;
    let run: LatentRun = folder::read_request(&folder)?;
    let mut read = BTreeMap::new();
    for (name, copy) in &run.files {
        read.insert(name.clone(), read_bytes(&path.join(copy))?);
    }
    Ok(LatentFolder {
        data: LatentData {
            name: run.data.clone(),
            bytes: Bytes::read(&path.join(DATA))?,
        },
        files: PriorFiles {
            read: RefCell::new(read),
            closed: true,
        },
        folder,
        run,
    })
}

/// Reads the posterior of a finished fit.
///
/// # Errors
/// Fails if the fit has not finished, or if the file is damaged.
pub fn stored_posterior(run: &RunDir) -> Result<StoredPosterior, Error> {
    let encoded = folder::approximation(run, "jensen latent fit")?;
    StoredPosterior::decode(&encoded).map_err(|error| folder::bad_approximation(run, error))
}
