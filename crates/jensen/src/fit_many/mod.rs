//! Many fits of the same program, with several data sets and several seeds.
//!
//! A task consists of a program, a data set, a seed and settings. The function [`Fits::row`] computes a [`FitRow`] from
//! a task and from nothing else. The driver may distribute the tasks over threads, processes or machines in any order.
//! If a worker is lost, the driver repeats the worker's tasks. The driver passes the rows to a [`Ledger`], which owns
//! the folder. The ledger appends each row to the file `rows.jsonl` and syncs the file, so that finished rows are never
//! lost and a restart runs only the remaining tasks. The table lists the rows in the order of the tasks. The contents
//! of the table, except for the elapsed time, do not depend on the number of workers.
//!
//! | file | subject |
//! | --- | --- |
//! | here | [`Fits`] and [`Task`]: the program, and the task of one row |
//! | `row` | [`FitRow`], and tables of rows |
//! | `ledger` | [`Ledger`]: the folder of the results |

mod ledger;
mod row;

pub use ledger::{Ledger, TABLE};
pub use row::{FitRow, table};

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use jensen_data::{Coordinates, DataFile, DataFormat, FitSummary, read_bytes};
use jensen_run::{Clock, Silent};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::calibration::ranks;
use crate::job::{Around, ResultFolder};
use crate::program::{FitRequest, Includes, Program, Source};
use crate::stan::{self, Halt};
use crate::{Error, Fitted};

/// The program and the settings that many fits share.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fits {
    /// The name of the program that messages use.
    pub model: String,
    /// The Stan code of the program.
    pub text: String,
    /// The texts of the included files. The keys are the names that the program uses. Workers use these texts and do
    /// not need the folders of the files.
    pub includes: BTreeMap<String, String>,
    /// The settings of each fit without the seed. The seed is part of the task.
    pub request: FitRequest,
}

/// A data set, which is either a text or a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Given {
    /// The name of the data set in the table. If `text` is `None`, the name is the path of the data file.
    pub name: String,
    /// The data in Stan's JSON format, or `None` if the data are in a file.
    pub text: Option<String>,
}

/// A task, which describes one fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The data set of the fit.
    pub data: Given,
    /// The SHA-256 digest of the data.
    pub digest: String,
    /// The seed of the fit.
    pub seed: u64,
    /// The names and values of the simulated scalars. If the list is not empty, the row contains the rank of each value
    /// among the draws.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub truth: Vec<(String, f64)>,
}

impl Task {
    pub(crate) fn simulated(data: Given, seed: u64, truth: Vec<(String, f64)>) -> Self {
        Self {
            digest: data.digest(),
            data,
            seed,
            truth,
        }
    }
}

impl Given {
    fn read(&self) -> Result<DataFile, Error> {
        match &self.text {
            None => Ok(DataFile::read(self.name.as_ref())?),
            Some(text) => Ok(DataFile {
                name: self.name.clone(),
                format: DataFormat::Json,
                bytes: text.clone().into_bytes(),
            }),
        }
    }

    /// A missing file also receives a digest. The row of the task can then report the error.
    fn digest(&self) -> String {
        let bytes = match &self.text {
            None => read_bytes(self.name.as_ref()).unwrap_or_default(),
            Some(text) => text.clone().into_bytes(),
        };
        hex(&bytes)
    }
}

fn hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns one task for every combination of a data set and a seed. All tasks of the first data set come first.
///
/// # Errors
/// Fails if there are no tasks or if two tasks are equal.
pub fn tasks(data: &[Given], seeds: &[u64]) -> Result<Vec<Task>, Error> {
    if data.is_empty() || seeds.is_empty() {
        return Err(Error::setting(
            "there is nothing to fit: give data sets and seeds",
        ));
    }
    let mut tasks = Vec::with_capacity(data.len() * seeds.len());
    for given in data {
        let digest = given.digest();
        tasks.extend(seeds.iter().map(|&seed| Task {
            data: given.clone(),
            digest: digest.clone(),
            seed,
            truth: Vec::new(),
        }));
    }
    let mut known = BTreeSet::new();
    for task in &tasks {
        if !known.insert((task.data.name.as_str(), task.seed)) {
            return Err(Error::Setting(format!(
                "`{}` with seed {} appears twice",
                task.data.name, task.seed
            )));
        }
    }
    Ok(tasks)
}

/// Parses a comma-separated list of seeds. Each item is a number such as `7`, or a range such as `1..20` that includes
/// both ends.
///
/// # Errors
/// Fails with [`Error::Setting`] if the text is not a list of seeds. The message contains an example.
pub fn seeds(text: &str) -> Result<Vec<u64>, Error> {
    let wrong = || Error::Setting(format!("`{text}`: expected seeds such as 1..20 or 1,2,5"));
    let mut seeds = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once("..").unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
        let (first, last) = (number(first)?, number(last)?);
        if last < first || last - first >= 1_000_000 {
            return Err(wrong());
        }
        seeds.extend(first..=last);
    }
    Ok(seeds)
}

impl Fits {
    /// Creates the fits for a request. The function searches `folders` for included files.
    ///
    /// # Errors
    /// Fails if a setting is invalid, or if the program has an error that does not depend on the data.
    pub fn new(
        model: &str,
        text: &str,
        folders: &[PathBuf],
        request: FitRequest,
    ) -> Result<Self, Error> {
        request.settings(jensen_blackbox::Init::Zero)?;
        request.simd()?;
        let includes = Includes::of_folders(folders);
        let checked = stan::check(text, model, &includes);
        if checked.diagnostics.iter().any(|d| d.is_error()) {
            return Err(Error::Input(checked.render(false)));
        }
        Ok(Self {
            model: model.to_owned(),
            text: text.to_owned(),
            includes: includes.found(),
            request,
        })
    }

    /// The digest covers everything that affects the rows except the data and the seeds. This includes the version of
    /// Jensen.
    fn digest(&self) -> String {
        let request = FitRequest {
            seed: None,
            simd: self.request.simd().ok().map(|simd| simd.name().to_owned()),
            ..self.request.clone()
        };
        let all = (
            env!("CARGO_PKG_VERSION"),
            &self.text,
            &self.includes,
            request,
        );
        hex(&serde_json::to_vec(&all).expect("plain settings"))
    }

    /// Fits the program to the data of a task on the current thread pool and returns the row. If the fit fails, the row
    /// contains the reason. Returns `None` if the task was cancelled.
    pub fn row(
        &self,
        task: &Task,
        halt: Halt,
        clock: &dyn Clock,
        cancel: Option<&AtomicBool>,
    ) -> Option<FitRow> {
        let begun = clock.seconds();
        let fitted = self.fit(task, halt, clock, cancel);
        if cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            return None;
        }
        let seconds = clock.seconds() - begun;
        Some(match fitted {
            Ok((fitted, summary)) => FitRow {
                ranks: ranks(&fitted.sample, &task.truth),
                ..FitRow::of(task, &summary, seconds)
            },
            Err(error) => FitRow::failed(task, &error.to_string(), seconds),
        })
    }

    fn fit(
        &self,
        task: &Task,
        halt: Halt,
        clock: &dyn Clock,
        cancel: Option<&AtomicBool>,
    ) -> Result<(Fitted, FitSummary), Error> {
        let source = Source {
            model: self.model.clone(),
            text: self.text.clone(),
            includes: Includes::of_texts(self.includes.clone()),
            data: Some(task.data.read()?),
            coordinates: Coordinates::default(),
            regression: None,
        };
        let request = FitRequest {
            seed: Some(task.seed),
            ..self.request.clone()
        };
        let threads = rayon::current_num_threads();
        let program = Program::compile(source, request, threads, halt)?;
        let around = Around {
            results: ResultFolder::None,
            checkpoint_every: None,
            memory_limit: self.request.memory_limit(),
            clock,
            cancel,
            partial: false,
            observer: &mut Silent,
        };
        program.fit(program.start(None)?, around)
    }
}
