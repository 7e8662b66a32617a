//! The files of a fit: its stored request, its table, and the files to which the prior refers.

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

/// The stored request of a fit, with information about its input files.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatentRun {
    /// The name of the data file. The extension of the name determines the format of the table.
    pub data: String,
    /// The names of the copies in the result folder. The keys are the file names that the prior uses.
    pub files: BTreeMap<String, String>,
    /// The settings of the fit.
    pub flags: LatentRequest,
}

/// The name and the contents of a file that contains a table.
pub struct LatentData {
    /// The name of the data file.
    pub name: String,
    /// The decompressed bytes of the data file.
    pub bytes: Bytes,
}

impl LatentData {
    /// Reads the file of a table. `most` is the maximum number of bytes after decompression.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is too large.
    pub fn read(path: &Path, most: u64) -> Result<Self, Error> {
        let bytes = Bytes::read_within(path, most)?;
        Ok(Self {
            name: path.display().to_string(),
            bytes,
        })
    }

    /// Parses the bytes as a table.
    ///
    /// # Errors
    /// Fails if the bytes do not contain a valid table.
    pub fn table(&self) -> Result<Table, Error> {
        Ok(Table::parse(&self.bytes, &self.name)?)
    }

    /// Parses the table and, in parallel, computes the digest of its bytes.
    ///
    /// # Errors
    /// Fails if the bytes do not contain a valid table.
    pub fn table_and_digest(&self) -> Result<(Table, String), Error> {
        let (table, digest) = rayon::join(|| self.table(), || super::digest(&self.bytes));
        Ok((table?, digest))
    }
}

/// The files to which a prior refers. Each file is read from disk or from the folder of a run, and is then cached.
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

/// The folder of a stored run with the contents of its input files.
pub struct LatentFolder {
    /// The folder that contains the run.
    pub folder: RunDir,
    /// The stored request.
    pub run: LatentRun,
    /// The table to which the model was fitted.
    pub data: LatentData,
    /// The files to which the prior refers.
    pub files: PriorFiles,
}

/// Opens the folder of an earlier fit.
///
/// # Errors
/// Fails if the folder does not contain a fit of a latent Gaussian model, or if one of its files is missing or damaged.
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

/// Reads the posterior that a finished fit has stored.
///
/// # Errors
/// Fails if the fit has not finished or if the file is damaged.
pub fn stored_posterior(run: &RunDir) -> Result<StoredPosterior, Error> {
    let encoded = folder::approximation(run, "jensen latent fit")?;
    StoredPosterior::decode(&encoded).map_err(|error| folder::bad_approximation(run, error))
}
