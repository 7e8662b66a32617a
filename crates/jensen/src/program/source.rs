//! A program and its data, as read from files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jensen_data::{Coordinates, DataFile, DataFormat, DataSet, read_bytes, read_text, read_within};
use jensen_stan::{IncludeResolver, in_todays_syntax, modernise};

use crate::Error;

pub(super) const MODEL: &str = "model.stan";

pub(crate) const REGRESSION: &str = "regression.json";

pub(super) fn data_file(format: DataFormat) -> &'static str {
    match format {
        DataFormat::Json => "data.json",
        DataFormat::Rdump => "data.R",
        DataFormat::Csv => "data.csv",
    }
}

/// A program and its data.
pub struct Source {
    /// The name of the program in messages.
    pub model: String,
    /// The Stan code of the program.
    pub text: String,
    /// The included files of the program.
    pub includes: Includes,
    /// The data of the program, if it has any.
    pub data: Option<DataFile>,
    /// The names of dimensions and their labels, which are stored for readers of the draws.
    pub coordinates: Coordinates,
    /// The metadata of the regression that generated the program, as JSON.
    pub regression: Option<Vec<u8>>,
}

impl Source {
    /// Reads a program, and its data if there are any. `most` limits the number of bytes of a compressed file after
    /// decompression. Included files are searched for in `folders`. If all arrays of a program or an included file are
    /// declared in the syntax before Stan 2.33, the function translates it to the current syntax.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or if it does not have the format that its name implies.
    pub fn read(
        model: &Path,
        folders: &[PathBuf],
        data: Option<&Path>,
        most: u64,
    ) -> Result<Self, Error> {
        let is_program = |path: &Path| path.extension().is_some_and(|e| e == "stan");
        if let Some(data) = data.filter(|data| is_program(data) && !is_program(model)) {
            return Err(Error::Input(format!(
                "`{}` is given as the program and `{}` as its data, but the program must come first",
                model.display(),
                data.display()
            )));
        }
        let inside = model.join(MODEL);
        if inside.is_file() {
            return Err(Error::Input(format!(
                "`{}` is a folder; the program in it is `{}`",
                model.display(),
                inside.display()
            )));
        }
        Ok(Self {
            model: model.display().to_string(),
            text: in_todays_syntax(read_text(model)?),
            includes: Includes::of_folders(folders),
            data: data
                .map(|data| DataFile::read_within(data, most))
                .transpose()?,
            coordinates: Coordinates::default(),
            regression: None,
        })
    }

    /// Adds the names of dimensions and their labels from a file.
    ///
    /// # Errors
    /// Fails if the file cannot be read or has another format.
    pub fn with_coordinates(self, file: Option<&Path>) -> Result<Self, Error> {
        let Some(file) = file else { return Ok(self) };
        let coordinates = Coordinates::from_json(&read_bytes(file)?, &file.display().to_string())?;
        Ok(Self {
            coordinates,
            ..self
        })
    }

    /// Translates the program from the syntax before Stan 2.33 to the current syntax.
    #[must_use]
    pub fn modernised(self) -> Self {
        Self {
            text: modernise(&self.text),
            includes: self.includes.in_old_syntax(true),
            ..self
        }
    }

    /// Creates a source from a program and data in memory, with the program treated as in [`read`](Self::read).
    pub fn of(model: &str, text: &str, includes: Includes, data: Option<&DataSet>) -> Self {
        Self {
            model: model.to_owned(),
            text: in_todays_syntax(text.to_owned()),
            includes,
            data: data.map(|data| DataFile {
                name: "data".to_owned(),
                format: DataFormat::Json,
                bytes: data.to_json().into_bytes(),
            }),
            coordinates: Coordinates::default(),
            regression: None,
        }
    }

    /// Parses the data. The result is empty if there are none.
    ///
    /// # Errors
    /// Fails if the data do not follow their format.
    pub fn values(&self) -> Result<DataSet, Error> {
        match &self.data {
            Some(data) => Ok(data.parse_apart()?),
            None => Ok(DataSet::new()),
        }
    }

    /// Returns the name of the data in messages.
    pub fn data_name(&self) -> &str {
        let data = self.data.as_ref();
        data.map_or("no data given", |data| &data.name)
    }

    pub(super) fn copies(&self) -> Vec<(&'static str, &[u8])> {
        let data = self.data.iter();
        let data = data.map(|data| (data_file(data.format), data.bytes.as_slice()));
        let regression = self.regression.iter();
        let regression = regression.map(|bytes| (REGRESSION, bytes.as_slice()));
        std::iter::once((MODEL, self.text.as_bytes()))
            .chain(data)
            .chain(regression)
            .collect()
    }
}

/// The included files of a program, from folders or from a stored run. The value remembers all files that were
/// requested.
#[derive(Default)]
pub struct Includes {
    folders: Vec<PathBuf>,
    found: Mutex<BTreeMap<String, String>>,
    /// Whether the files are in the syntax before Stan 2.33.
    old: bool,
}

impl Includes {
    /// Creates includes that are searched for in these folders.
    pub fn of_folders(folders: &[PathBuf]) -> Self {
        Self {
            folders: folders.to_vec(),
            ..Self::default()
        }
    }

    /// Creates includes from texts, by their names in the program.
    pub fn of_texts(found: BTreeMap<String, String>) -> Self {
        Self {
            found: Mutex::new(found),
            ..Self::default()
        }
    }

    /// Sets whether to translate included files from the syntax before Stan 2.33.
    #[must_use]
    pub fn in_old_syntax(self, old: bool) -> Self {
        Self { old, ..self }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the files that were requested so far, by their names in the program.
    pub fn found(&self) -> BTreeMap<String, String> {
        self.known().clone()
    }
}

impl IncludeResolver for Includes {
    fn resolve(&self, path: &str) -> Result<String, String> {
        if let Some(text) = self.known().get(path) {
            return Ok(text.clone());
        }
        if self.folders.is_empty() {
            return Err("there is no folder to search; add --include DIR".into());
        }
        let text = read_within(&self.folders, path).map_err(|error| error.to_string())?;
        let Some(text) = text else {
            let folders: Vec<String> = self
                .folders
                .iter()
                .map(|folder| format!("`{}`", folder.display()))
                .collect();
            return Err(format!("there is no such file in {}", folders.join(", ")));
        };
        let text = match self.old {
            true => modernise(&text),
            false => in_todays_syntax(text),
        };
        self.known().insert(path.to_owned(), text.clone());
        Ok(text)
    }
}
