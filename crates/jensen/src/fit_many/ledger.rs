//! The result folder of many fits, with one row per fit.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use jensen_data::{
    Claim, TraceWriter, create_folder, read_optional, read_trace, sweep, write_atomic_bytes,
};

use super::{FitRow, Fits, Task, table};
use crate::Error;

const ROWS: &str = "rows.jsonl";

const FITS: &str = "fits.txt";

/// The name of the file that contains the table. The rows of the table are in the order of the tasks.
pub const TABLE: &str = "table.csv";

/// A folder that stores the rows of many fits. Only one process at a time can lock it.
pub struct Ledger {
    folder: PathBuf,
    rows: HashMap<(String, String, u64), FitRow>,
    writer: TraceWriter,
    _claim: Claim,
}

impl Ledger {
    /// Opens the folder, or creates it if it does not exist. The function keeps the rows of earlier runs, except the
    /// rows of failed fits. The tasks of failed fits become pending again, because the machine may have lacked a
    /// resource, such as memory for a thread.
    ///
    /// # Errors
    /// Fails if the folder contains unrelated files or the rows of other fits, or if it cannot be written.
    pub fn open(folder: &Path, fits: &Fits) -> Result<Self, Error> {
        create_folder(folder).map_err(Error::output)?;
        let claim = Claim::of(folder).map_err(Error::output)?;
        let (name, path) = (folder.join(FITS), folder.join(ROWS));
        let digest = fits.digest();
        let stored = read_optional(&name)?;
        let (rows, writer) = match stored {
            Some(stored) if stored == digest.as_bytes() => continued(&path)?,
            Some(_) => {
                return Err(Error::Setting(format!(
                    "`{}` has fits of another program, other settings or another version: name another folder",
                    folder.display()
                )));
            }
            None => {
                let there = jensen_data::list_folder(folder).map_err(Error::output)?;
                // If a first run was killed before it stored a digest, the folder contains rows without a digest and
                // temporary files.
                let hidden = |file: &Path| {
                    let name = file.file_name().unwrap_or_default();
                    name.to_string_lossy().starts_with('.')
                };
                if there.iter().any(|file| *file != path && !hidden(file)) {
                    return Err(Error::Output(format!(
                        "`{}` has other files: name a new folder, or the folder of the same fits",
                        folder.display()
                    )));
                }
                let writer = TraceWriter::create(&path).map_err(Error::output)?;
                write_atomic_bytes(&name, digest.as_bytes()).map_err(Error::output)?;
                (Vec::new(), writer)
            }
        };
        sweep(folder).map_err(Error::output)?;
        let rows = rows.into_iter().map(|row| (key(&row), row)).collect();
        Ok(Self {
            folder: folder.to_owned(),
            rows,
            writer,
            _claim: claim,
        })
    }

    /// Returns the indices of the tasks that do not have a row yet.
    pub fn pending(&self, tasks: &[Task]) -> Vec<usize> {
        let missing = |at: &usize| self.row(&tasks[*at]).is_none();
        (0..tasks.len()).filter(missing).collect()
    }

    /// Stores a row and returns after the row has been written to disk.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn record(&mut self, row: FitRow) -> Result<(), Error> {
        self.writer.append(&row).map_err(Error::output)?;
        self.writer.flush().map_err(Error::output)?;
        self.rows.insert(key(&row), row);
        Ok(())
    }

    /// Writes the table with the rows of all finished tasks and returns these rows.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write_table(&self, tasks: &[Task]) -> Result<Vec<&FitRow>, Error> {
        let rows: Vec<&FitRow> = tasks.iter().filter_map(|task| self.row(task)).collect();
        let path = self.folder.join(TABLE);
        write_atomic_bytes(&path, table(&rows).as_bytes()).map_err(Error::output)?;
        Ok(rows)
    }

    fn row(&self, task: &Task) -> Option<&FitRow> {
        let key = (task.data.name.clone(), task.digest.clone(), task.seed);
        self.rows.get(&key)
    }
}

/// Returns the rows of an earlier run without the rows of failed fits. The function also removes the rows of failed
/// fits from the file.
fn continued(path: &Path) -> Result<(Vec<FitRow>, TraceWriter), Error> {
    let mut rows: Vec<FitRow> = read_trace(path)?;
    let all = rows.len();
    rows.retain(|row| !row.is_failed());
    if rows.len() < all {
        let mut kept = Vec::new();
        for row in &rows {
            serde_json::to_writer(&mut kept, row).expect("a plain row");
            kept.push(b'\n');
        }
        write_atomic_bytes(path, &kept).map_err(Error::output)?;
    }
    let writer = TraceWriter::resume(path, rows.len() as u64).map_err(Error::output)?;
    Ok((rows, writer))
}

fn key(row: &FitRow) -> (String, String, u64) {
    (row.data.clone(), row.digest.clone(), row.seed)
}
