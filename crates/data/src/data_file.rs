//! Data files of programs. The name, the format and the bytes of a file are kept together, so that a copy can be
//! stored.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::files::{HELD, read_bytes_within};
use crate::{Cells, DataError, DataSet, Table};

/// The format of a data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataFormat {
    /// JSON as Stan defines it.
    Json,
    /// The R dump format of older Stan interfaces.
    Rdump,
    /// A table in CSV or another text format.
    Csv,
}

/// A data file with its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// The name of the file in error messages.
    pub name: String,
    /// The format of the file.
    pub format: DataFormat,
    /// The bytes of the file.
    pub bytes: Vec<u8>,
}

impl DataFile {
    /// Reads a file. The extension of its name determines the format. If the extension is unknown, the format follows
    /// from the content: text that starts with a brace is JSON, text with an arrow among the first characters is an R
    /// dump, and any other text is a table.
    ///
    /// # Errors
    /// Fails if the file cannot be read, if its extension belongs to another kind of file (such as `.nc` or `.stan`),
    /// or if the content does not have the expected format.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        Self::read_within(path, HELD)
    }

    /// Like [`read`](Self::read), but with a limit on the number of decompressed bytes.
    ///
    /// # Errors
    /// Fails under the same conditions as [`read`](Self::read), and if the file exceeds the limit.
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

    /// Returns whether the file contains a single list instead of named values.
    pub fn is_list(&self) -> bool {
        first_character(&self.bytes) == Some(b'[')
    }

    /// Parses the values of the file.
    ///
    /// # Errors
    /// Fails if the file does not follow its format, or if a value cannot be used as data.
    pub fn parse(&self) -> Result<DataSet, DataError> {
        self.parse_apart()?.whole()
    }

    /// Parses the values of the file. Values that cannot be used as data, such as strings and missing values, are kept
    /// separately. [`DataSet::refusal`] returns the reason for each of them.
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

    /// Returns the distinct words of each column that contains words. The words are in the order of the numbers that
    /// represent them.
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

    /// Parses the values of the file. The words of a table are represented by the same numbers as in `earlier`.
    ///
    /// # Errors
    /// Fails under the same conditions as [`parse_apart`](Self::parse_apart), and if a word does not occur in the same
    /// column of `earlier`.
    pub fn parse_like(&self, earlier: &Self) -> Result<DataSet, DataError> {
        match self.format {
            DataFormat::Csv => DataSet::from_csv_like(&self.bytes, &self.name, &earlier.levels()?),
            _ => self.parse_apart(),
        }
    }
}

/// Returns whether the text starts with an assignment, as R dumps do.
fn assigns(bytes: &[u8]) -> bool {
    let beginning = &bytes[..bytes.len().min(4096)];
    beginning.windows(2).any(|pair| pair == b"<-")
}

fn first_character(bytes: &[u8]) -> Option<u8> {
    bytes.iter().copied().find(|b| !b.is_ascii_whitespace())
}
