//! Traces. A run appends lines of JSON to a trace, and these lines survive an interruption of the run.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::DataError;

/// Appends JSON objects to a trace, one per line. Lines are buffered until [`TraceWriter::flush`] is called. A run
/// calls this function whenever it writes a checkpoint. If the run is killed, the file may contain more lines than the
/// checkpoint, and the last line may be truncated. [`TraceWriter::resume`] removes these lines. Dropping the writer
/// also flushes the buffer, but errors are then not reported.
#[derive(Debug)]
pub struct TraceWriter {
    path: PathBuf,
    file: BufWriter<File>,
    lines: u64,
}

impl TraceWriter {
    /// Creates a trace. If the file already exists, replaces it.
    pub fn create(path: &Path) -> Result<Self, DataError> {
        let file = File::create(path).map_err(|e| DataError::io("create", path, &e))?;
        Ok(Self {
            path: path.to_path_buf(),
            file: BufWriter::new(file),
            lines: 0,
        })
    }

    /// Continues a trace after its first `lines` lines, and removes the remaining lines. Fails if the file has fewer
    /// complete lines, because it then does not belong to the checkpoint.
    pub fn resume(path: &Path, lines: u64) -> Result<Self, DataError> {
        let io = |action| move |e: std::io::Error| DataError::io(action, path, &e);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(io("open"))?;
        let mut reader = BufReader::new(&file);
        let mut length = 0u64;
        for line in 0..lines {
            let mut read = 0;
            let complete = loop {
                let chunk = reader.fill_buf().map_err(io("read"))?;
                let end = chunk.iter().position(|b| *b == b'\n');
                let used = end.map_or(chunk.len(), |i| i + 1);
                reader.consume(used);
                read += used as u64;
                if end.is_some() || used == 0 {
                    break end.is_some();
                }
            };
            if !complete {
                return Err(DataError::invalid(format!(
                    "the trace `{}` has {line} complete lines, but the checkpoint expects {lines}; it does not \
                     belong to this run",
                    path.display()
                )));
            }
            length += read;
        }
        drop(reader);
        file.set_len(length).map_err(io("truncate"))?;
        let mut file = file;
        file.seek(SeekFrom::End(0)).map_err(io("write"))?;
        Ok(Self {
            path: path.to_path_buf(),
            file: BufWriter::new(file),
            lines,
        })
    }

    /// Appends an object as one line. Non-finite numbers are written as `null`.
    pub fn append<T: Serialize>(&mut self, record: &T) -> Result<(), DataError> {
        let mut line = serde_json::to_vec(record).map_err(|e| {
            DataError::invalid(format!(
                "cannot write the trace `{}`: {e}",
                self.path.display()
            ))
        })?;
        line.push(b'\n');
        self.file
            .write_all(&line)
            .map_err(|e| DataError::io("write", &self.path, &e))?;
        self.lines += 1;
        Ok(())
    }

    /// Writes all buffered lines, and waits until they have been stored on disk.
    pub fn flush(&mut self) -> Result<(), DataError> {
        self.file
            .flush()
            .and_then(|()| match self.file.get_ref().sync_data() {
                // Pipes and devices cannot be synced. Their data are regarded as written.
                Err(e) if e.kind() == std::io::ErrorKind::InvalidInput => Ok(()),
                other => other,
            })
            .map_err(|e| DataError::io("write", &self.path, &e))
    }

    /// Returns the number of lines written so far, including the lines that [`resume`](Self::resume) kept. Checkpoints
    /// store this number.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Reads a trace. If a killed run left an incomplete last line, this line is ignored. Fails if any other line is not an
/// object of the requested type. The message then contains the number of the line.
pub fn read_trace<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, DataError> {
    let text = std::fs::read_to_string(path).map_err(|e| DataError::io("read", path, &e))?;
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    let records = complete.lines().enumerate().map(|(i, line)| {
        serde_json::from_str(line).map_err(|e| {
            DataError::invalid(format!(
                "the trace `{}`, line {}: {e}",
                path.display(),
                i + 1
            ))
        })
    });
    records.collect()
}
