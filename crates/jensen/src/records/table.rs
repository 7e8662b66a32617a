//! The rows of Parquet files. They are read in blocks of records.

use std::path::PathBuf;

use jensen_data::DataSet;
#[cfg(feature = "parquet")]
use jensen_data::columns::{RowFiles, Stretch};
use jensen_stan::lower::RecordData;

use super::RecordSource;
use crate::Error;

pub(crate) const BLOCK: usize = 32 << 20;

/// The size of a block of a shard, in bytes of numeric data. The blocks of shards are smaller than other blocks,
/// because a worker may keep several of them in memory.
pub(crate) const SHARD: usize = 8 << 20;

/// The minimum number of row ranges in a block. A block consists of rows from several parts of the files, so that the
/// blocks differ little even if the files are sorted.
#[cfg(feature = "parquet")]
const LOCATIONS: usize = 4;

/// The rows of Parquet files, divided into blocks of records.
///
/// Each row group is divided into ranges that contain at most a quarter of the rows of a block. If there are B blocks,
/// block b consists of the ranges b, b + B, b + 2B, and so on. The division into blocks depends only on the files.
#[cfg(feature = "parquet")]
pub struct RecordTable {
    files: RowFiles,
    blocks: Vec<Vec<Stretch>>,
    edges: Vec<u32>,
}

#[cfg(feature = "parquet")]
impl RecordTable {
    /// Returns the files in `paths`. Each folder in `paths` is replaced by the files that it contains.
    ///
    /// # Errors
    /// Fails if `paths` contains no files and no folders with files.
    pub fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
        Ok(jensen_data::columns::parquet_files(paths)?)
    }

    /// Opens files, and the files in folders, and finds the columns of the given variables. The rows are divided either
    /// into a given number of blocks or into blocks of about a given size in bytes.
    ///
    /// # Errors
    /// Fails if the files cannot be read, have different columns, lack the column of a variable, or contain too many
    /// rows.
    pub fn open(
        paths: &[PathBuf],
        data: &[RecordData],
        bytes: usize,
        blocks: Option<usize>,
    ) -> Result<Self, Error> {
        let files = RowFiles::open(paths)?;
        let rows = u32::try_from(files.rows())
            .ok()
            .filter(|rows| *rows <= i32::MAX as u32);
        let Some(rows) = rows else {
            return Err(Error::Input(format!(
                "the files have {} rows, but a fit can have at most {} records",
                files.rows(),
                i32::MAX
            )));
        };
        let mut width = 0;
        for one in data {
            width += files.list_length(&one.name)?.unwrap_or(1);
        }
        let capacity = match blocks {
            Some(blocks) => (rows as usize).div_ceil(blocks.max(1)),
            None => (bytes / (8 * width.max(1))).clamp(1, rows as usize),
        };
        let longest = capacity.div_ceil(LOCATIONS);
        let mut stretches = Vec::new();
        for group in files.groups() {
            let count = group.rows.len().div_ceil(longest);
            let edge = |k: usize| k * group.rows.len() / count;
            stretches.extend((0..count).map(|k| Stretch {
                rows: edge(k)..edge(k + 1),
                first: group.first + edge(k) as u64,
                ..group
            }));
        }
        let count =
            blocks.unwrap_or_else(|| (rows as usize).div_ceil(capacity).min(stretches.len()));
        let mut blocks: Vec<Vec<Stretch>> = vec![Vec::new(); count];
        for (at, stretch) in stretches.into_iter().enumerate() {
            blocks[at % count].push(stretch);
        }
        let mut edges = vec![0];
        let mut end = 0;
        for block in &blocks {
            end += block
                .iter()
                .map(|stretch| stretch.rows.len() as u32)
                .sum::<u32>();
            edges.push(end);
        }
        Ok(Self {
            files,
            blocks,
            edges,
        })
    }
}

#[cfg(feature = "parquet")]
impl RecordSource for RecordTable {
    fn edges(&self) -> &[u32] {
        &self.edges
    }

    fn read(
        &self,
        data: &[RecordData],
        block: usize,
        rows: Option<usize>,
    ) -> Result<DataSet, Error> {
        let names: Vec<&str> = data.iter().map(|one| one.name.as_str()).collect();
        let mut left = rows.unwrap_or(usize::MAX);
        let mut wanted = Vec::new();
        for stretch in &self.blocks[block] {
            let mut stretch = stretch.clone();
            stretch.rows.end = stretch
                .rows
                .end
                .min(stretch.rows.start.saturating_add(left));
            left -= stretch.rows.len();
            wanted.push(stretch);
        }
        wanted.retain(|stretch| !stretch.rows.is_empty());
        Ok(self.files.read(&names, &wanted)?)
    }

    fn numbers(&self, block: usize) -> Vec<f64> {
        let stretches = self.blocks[block].iter();
        let numbers = stretches.flat_map(|stretch| {
            let first = stretch.first;
            (0..stretch.rows.len()).map(move |row| (first + row as u64 + 1) as f64)
        });
        numbers.collect()
    }

    fn location(&self, block: usize, row: usize) -> String {
        let mut row = row;
        for stretch in &self.blocks[block] {
            if row < stretch.rows.len() {
                return self.files.location(stretch, row);
            }
            row -= stretch.rows.len();
        }
        String::new()
    }

    fn length(&self, name: &str) -> Result<Option<usize>, Error> {
        Ok(self.files.list_length(name)?)
    }

    fn digest(&self) -> String {
        self.files.digest()
    }
}

/// A type without values that replaces the table in a build that cannot read Parquet files.
#[cfg(not(feature = "parquet"))]
pub enum RecordTable {}

#[cfg(not(feature = "parquet"))]
impl RecordTable {
    /// Returns an error, because this build cannot read Parquet files.
    ///
    /// # Errors
    /// Always fails.
    pub fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
        Self::open(paths, &[], BLOCK, None).map(|never| match never {})
    }

    /// Returns an error, because this build cannot read Parquet files.
    ///
    /// # Errors
    /// Always fails.
    pub fn open(
        paths: &[PathBuf],
        _: &[RecordData],
        _: usize,
        _: Option<usize>,
    ) -> Result<Self, Error> {
        let first = paths.first().map(|path| path.display().to_string());
        Err(Error::Input(format!(
            "`{}`: this build does not read Parquet: install Jensen with `--features parquet`",
            first.unwrap_or_default()
        )))
    }
}

#[cfg(not(feature = "parquet"))]
impl RecordSource for RecordTable {
    fn edges(&self) -> &[u32] {
        match *self {}
    }
    fn read(&self, _: &[RecordData], _: usize, _: Option<usize>) -> Result<DataSet, Error> {
        match *self {}
    }
    fn numbers(&self, _: usize) -> Vec<f64> {
        match *self {}
    }
    fn location(&self, _: usize, _: usize) -> String {
        match *self {}
    }
    fn length(&self, _: &str) -> Result<Option<usize>, Error> {
        match *self {}
    }
    fn digest(&self) -> String {
        match *self {}
    }
}
