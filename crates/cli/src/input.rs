//! Models, data and vectors from files.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use jensen::data::DataSet;
use jensen::stan::IncludeResolver;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// A file or the reason why it cannot be read.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| cannot_read(path, &error))
}

fn cannot_read(path: &Path, error: &std::io::Error) -> Failure {
    let what = match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        _ => error.to_string(),
    };
    Failure::input(format!("cannot read `{}`: {what}", path.display()))
}

/// A text file.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(read_bytes(path)?).map_err(|error| {
        Failure::input(format!(
            "`{}` is not UTF-8 text: see byte {}",
            path.display(),
            error.utf8_error().valid_up_to() + 1
        ))
    })
}

/// Included files: looked up in folders, or known from a stored run; whatever was asked for is remembered.
#[derive(Default)]
pub struct Includes {
    folders: Vec<PathBuf>,
    found: RefCell<BTreeMap<String, String>>,
}

impl Includes {
    /// Files under these folders.
    pub fn of_folders(folders: &[PathBuf]) -> Self {
        Self {
            folders: folders.to_vec(),
            ..Self::default()
        }
    }

    /// Files that a stored run had.
    pub fn stored(found: BTreeMap<String, String>) -> Self {
        Self {
            folders: Vec::new(),
            found: RefCell::new(found),
        }
    }

    /// The files found so far.
    pub fn found(&self) -> BTreeMap<String, String> {
        self.found.borrow().clone()
    }
}

impl IncludeResolver for Includes {
    fn resolve(&self, path: &str) -> Result<String, String> {
        if let Some(text) = self.found.borrow().get(path) {
            return Ok(text.clone());
        }
        if self.folders.is_empty() {
            return Err("no folder to look in; add --include DIR".into());
        }
        for folder in &self.folders {
            let candidate = folder.join(path);
            // Links are followed before the comparison, so that none leads out of the folder.
            let (Ok(root), Ok(file)) = (folder.canonicalize(), candidate.canonicalize()) else {
                continue;
            };
            if !file.starts_with(&root) {
                return Err(format!("it leads out of `{}`", folder.display()));
            }
            let text = fs::read_to_string(&file)
                .map_err(|error| format!("cannot read `{}`: {error}", candidate.display()))?;
            self.found
                .borrow_mut()
                .insert(path.to_owned(), text.clone());
            return Ok(text);
        }
        let folders: Vec<String> = self
            .folders
            .iter()
            .map(|folder| format!("`{}`", folder.display()))
            .collect();
        Err(format!("there is no such file in {}", folders.join(", ")))
    }
}

/// How data are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Stan JSON.
    Json,
    /// An R dump.
    Rdump,
}

/// A data file as it was read.
pub struct DataFile {
    /// Its name in messages.
    pub name: String,
    /// How it is written.
    pub format: Format,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl DataFile {
    /// Reads a file; the extension decides on the format, or else the first character.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let bytes = read_bytes(path)?;
        let extension = path
            .extension()
            .and_then(|e| e.to_str())
            .unwrap_or("")
            .to_ascii_lowercase();
        let format = match extension.as_str() {
            "json" => Format::Json,
            "r" | "rdump" | "dump" => Format::Rdump,
            _ if bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{') => Format::Json,
            _ => Format::Rdump,
        };
        Ok(Self {
            name: path.display().to_string(),
            format,
            bytes,
        })
    }

    /// The values.
    pub fn parse(&self) -> Result<DataSet, Failure> {
        match self.format {
            Format::Json => DataSet::from_json(&self.bytes, &self.name),
            Format::Rdump => DataSet::from_rdump(&self.bytes, &self.name),
        }
        .map_err(|error| Failure::input(error.to_string()))
    }
}

/// The values of a data file; none where there is no file.
pub fn read_data(path: Option<&Path>) -> Result<DataSet, Failure> {
    path.map_or_else(|| Ok(DataSet::new()), |path| DataFile::read(path)?.parse())
}

/// The name of the data in messages.
pub fn data_name(path: Option<&Path>) -> String {
    path.map_or_else(
        || "no data given".to_owned(),
        |path| path.display().to_string(),
    )
}

/// A JSON list of vectors; `-` reads standard input.
pub fn read_vectors(path: &Path) -> Result<Vec<Vec<f64>>, Failure> {
    let (bytes, name) = if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::input(format!("cannot read standard input: {error}")))?;
        (bytes, "standard input".to_owned())
    } else {
        (read_bytes(path)?, format!("`{}`", path.display()))
    };
    serde_json::from_slice(&bytes).map_err(|error| {
        Failure::input(format!(
            "{name}: expected a JSON list of vectors such as [[0, 1.5], [2, 3]]: {error}"
        ))
    })
}
