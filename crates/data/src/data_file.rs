//! Data files of programs with their names, formats and bytes, so that copies can be stored.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::files::{HELD, read_bytes_within};
use crate::{Cells, DataError, DataSet, Table};

/// The format of a data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataFormat {
    /// Stan JSON.
    Json,
    /// An R dump.
    Rdump,
    /// A table in CSV or text.
    Csv,
}

/// A data file with its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// The name of the file in messages.
    pub name: String,
    /// The format of the file.
    pub format: DataFormat,
    /// The bytes of the file.
    pub bytes: Vec<u8>,
}

impl DataFile {
    /// Reads a file. Its extension determines the format. If the extension is unknown, the content determines the
    /// format: a brace starts JSON, an arrow among the first characters indicates an R dump, and anything else is a
    /// table.
    ///
    /// # Errors
    /// Fails if the file cannot be read, has the extension of another kind of file (such as `.nc` or `.stan`), or does
    /// not have its format.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        Self::read_within(path, HELD)
    }

    /// Like [`read`](Self::read), but with a limit on the decompressed bytes.
    ///
    /// # Errors
    /// Fails as [`read`](Self::read) does, and if the file exceeds the limit.
    pub fn read_within(path: &Path, most: u64) -> Result<Self, DataError> {
        let bytes = read_bytes_within(path, most)?;
        let extension = path
            .extension()
            .and_then(|e| e.to_str())
            .unwrap_or("")
            .to_ascii_lowercase();
        let whose = match extension.as_str() {
            "stan" => "a program",
            "nc" | "npy" | "parquet" | "xlsx" => "no text",
            _ => "",
        };
        if !whose.is_empty() {
            return Err(DataError::invalid(format!(
                "`{}` is {whose}; the data of a program are one JSON object with a value for every variable of its data \
                 block, such as {{\"N\": 3, \"y\": [1.5, 2, 4]}}, a CSV table or an R dump",
                path.display()
            )));
        }
        let format = match extension.as_str() {
            "json" => DataFormat::Json,
            "csv" | "tsv" => DataFormat::Csv,
            "r" | "rdump" | "dump" => DataFormat::Rdump,
            _ if matches!(first_character(&bytes), Some(b'{' | b'[')) => DataFormat::Json,
            _ if assigns(&bytes) => DataFormat::Rdump,
            _ => DataFormat::Csv,
        };
        Ok(Self {
            name: path.display().to_string(),
            format,
            bytes,
        })
    }

    /// Returns whether the file is a single list instead of a set of named values.
    pub fn is_list(&self) -> bool {
        first_character(&self.bytes) == Some(b'[')
    }

    /// Parses the values of the file.
    ///
    /// # Errors
    /// Fails if the file does not follow its format, or if a value is not data.
    pub fn parse(&self) -> Result<DataSet, DataError> {
        self.parse_apart()?.whole()
    }

    /// Parses the values of the file. Values that are not data (strings, missing values) are kept separately, for
    /// [`DataSet::refusal`].
    ///
    /// # Errors
    /// Fails if the file does not follow its format.
    pub fn parse_apart(&self) -> Result<DataSet, DataError> {
        match self.format {
            DataFormat::Json => crate::json::parse(&self.bytes, &self.name),
            DataFormat::Rdump => crate::rdump::parse(&self.bytes, &self.name),
            DataFormat::Csv => DataSet::from_csv(&self.bytes, &self.name),
        }
    }

    /// Returns the words of each column of words in a table. Their order is that of their numbers.
    ///
    /// # Errors
    /// Fails if the table does not follow its format.
    pub fn levels(&self) -> Result<BTreeMap<String, Vec<String>>, DataError> {
        if self.format != DataFormat::Csv {
            return Ok(BTreeMap::new());
        }
        let table = Table::parse(&self.bytes, &self.name)?;
        let words = table.columns().iter();
        let words = words.filter(|column| matches!(column.cells, Cells::Words(_)));
        Ok(words
            .map(|column| (column.name.clone(), column.levels()))
            .collect())
    }

    /// Parses the values of the file, and numbers the words of a table as in `earlier`.
    ///
    /// # Errors
    /// Fails as [`parse_apart`](Self::parse_apart) does, and for a word that does not occur in the same column of
    /// `earlier`.
    pub fn parse_like(&self, earlier: &Self) -> Result<DataSet, DataError> {
        match self.format {
            DataFormat::Csv => DataSet::from_csv_like(&self.bytes, &self.name, &earlier.levels()?),
            _ => self.parse_apart(),
        }
    }
}

/// Returns whether a text starts with an assignment, as an R dump does.
fn assigns(bytes: &[u8]) -> bool {
    let beginning = &bytes[..bytes.len().min(4096)];
    beginning.windows(2).any(|pair| pair == b"<-")
}

fn first_character(bytes: &[u8]) -> Option<u8> {
    bytes.iter().copied().find(|b| !b.is_ascii_whitespace())
}
