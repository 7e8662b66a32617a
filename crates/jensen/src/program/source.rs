//! A Stan program and its data, as read from files.

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

/// A Stan program with its included files and its data.
pub struct Source {
    /// The name of the program that messages use.
    pub model: String,
    /// The Stan code of the program.
    pub text: String,
    /// The included files of the program.
    pub includes: Includes,
    /// The data of the program, or `None` if it has no data.
    pub data: Option<DataFile>,
    /// The names of dimensions and the labels of their elements. They are stored together with the draws.
    pub coordinates: Coordinates,
    /// The metadata of the regression as JSON, if Jensen generated the program from a regression. The field is `None`
    /// for all other programs.
    pub regression: Option<Vec<u8>>,
}

impl Source {
    /// Reads a program and, if there are any, its data. `most` is the maximum number of bytes of a compressed file
    /// after decompression. The function searches `folders` for included files. If a program or an included file
    /// declares all of its arrays in the syntax before Stan 2.33, the function translates the file to the current
    /// syntax.
    ///
    /// # Errors
    /// Fails if a file cannot be read or does not have the format that its name implies.
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

    /// Reads the names of dimensions and the labels of their elements from a file and adds them to the source.
    ///
    /// # Errors
    /// Fails if the file cannot be read or does not have the expected format.
    pub fn with_coordinates(self, file: Option<&Path>) -> Result<Self, Error> {
        let Some(file) = file else { return Ok(self) };
        let coordinates = Coordinates::from_json(&read_bytes(file)?, &file.display().to_string())?;
        Ok(Self {
            coordinates,
            ..self
        })
    }

    /// Translates the program from the syntax before Stan 2.33 to the current syntax, if it uses the old syntax.
    #[must_use]
    pub fn modernised(self) -> Self {
        Self {
            text: modernise(&self.text),
            includes: self.includes.in_old_syntax(true),
            ..self
        }
    }

    /// Creates a source from a program and data in memory. The program is translated in the same way as by
    /// [`read`](Self::read).
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

    /// Parses the data. The result is empty if the program has no data.
    ///
    /// # Errors
    /// Fails if the data are not valid in their format.
    pub fn values(&self) -> Result<DataSet, Error> {
        match &self.data {
            Some(data) => Ok(data.parse_apart()?),
            None => Ok(DataSet::new()),
        }
    }

    /// Returns the name of the data that messages use.
    pub fn data_name(&self) -> &str {
        let data = self.data.as_ref();
        data.map_or("no data are given", |data| &data.name)
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

/// The included files of a program. They are read from folders or from a stored run. The value records all files that
/// the program has requested.
#[derive(Default)]
pub struct Includes {
    folders: Vec<PathBuf>,
    found: Mutex<BTreeMap<String, String>>,
    /// Whether the included files use the syntax before Stan 2.33.
    old: bool,
}

impl Includes {
    /// Creates a resolver that searches these folders for included files.
    pub fn of_folders(folders: &[PathBuf]) -> Self {
        Self {
            folders: folders.to_vec(),
            ..Self::default()
        }
    }

    /// Creates a resolver from the texts of included files. The keys are the names that the program uses.
    pub fn of_texts(found: BTreeMap<String, String>) -> Self {
        Self {
            found: Mutex::new(found),
            ..Self::default()
        }
    }

    /// Sets whether included files are translated from the syntax before Stan 2.33.
    #[must_use]
    pub fn in_old_syntax(self, old: bool) -> Self {
        Self { old, ..self }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the texts of all files that were requested so far. The keys are the names that the program uses.
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
