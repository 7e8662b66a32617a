//! The flags that are common to all commands that fit a single table. They specify the folder of the run, the output,
//! and whether the run is resumed.

use std::path::{Path, PathBuf};

use clap::Args;
use jensen::job::{ResultFolder, folder, request};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::terminal::{Say, start_threads};

/// Fits a model to a table.
#[derive(Args)]
pub struct TableFit<R: Args> {
    #[command(flatten)]
    request: R,
    /// Number of threads
    #[arg(long, value_name = "T", value_parser = jensen::job::words::thread_count, help_heading = "Run")]
    threads: Option<usize>,
    /// Write results and checkpoints to this folder
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Continue the run in the folder of --out from its last checkpoint; all other flags stay as they were
    #[arg(long, requires = "out", help_heading = "Output")]
    resume: bool,
    /// Resume although data or settings differ from the stored run
    #[arg(long, requires = "resume", help_heading = "Output")]
    force: bool,
    /// Print fit.json to standard output, and nothing else
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Print no progress and no table
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
}

/// A run that is about to start: its request, and the destination of its results. If a flag is absent, its value is
/// taken from the settings in the folder.
pub struct Asked<R> {
    pub request: R,
    pub results: ResultFolder,
    pub out: Option<PathBuf>,
    pub say: Say,
}

impl<R: Args + Serialize + DeserializeOwned> TableFit<R> {
    /// Starts the threads. If a run is continued, also opens its folder.
    pub fn asked(self, command: &str) -> Result<Asked<R>, Failure> {
        start_threads(self.threads)?;
        let say = Say {
            json: self.json,
            quiet: self.quiet,
        };
        let (request, results) = match (&self.out, self.resume) {
            (Some(path), true) => {
                let folder = folder::open(path, command)?;
                let request = if folder::has_request(&folder) {
                    request::over(&self.request, &folder::read_request(&folder)?)?
                } else {
                    self.request
                };
                let force = self.force;
                (request, ResultFolder::Resumed { folder, force })
            }
            (out, _) => (self.request, ResultFolder::new(out.as_deref())),
        };
        Ok(Asked {
            request,
            results,
            out: self.out,
            say,
        })
    }
}

/// Returns the path of the table in a request. Fails if the request does not contain a table.
pub fn named(data: Option<&Path>) -> Result<&Path, Failure> {
    data.ok_or_else(|| Failure::usage("no table is given"))
}
