//! The workflow of all kinds of fits: Stan programs, topics, mixtures, factors, latent Gaussian models and
//! auto-encoders.
//!
//! A [`Job`] defines its request, identity, memory and budget, runs, and reports its result. [`carry_out`] does the
//! rest for all jobs. It checks the memory, claims or opens the folder, finds the state of a stored run, writes the
//! trace and checkpoints, judges the result, and writes every file, with `fit.json` last. All callers therefore get the
//! same verdict and the same files.
//!
//! | file | subject |
//! | --- | --- |
//! | here | [`Job`] and [`carry_out`]: the workflow |
//! | [`folder`] | claiming and opening folders, `run.json`, the state from which a stored run continues |
//! | `session` | trace and checkpoints of a run |
//! | `judge` | [`Evidence`] → [`Judgement`]: the verdict |
//! | [`request`] | merging given and stored settings, and listing them |
//! | [`words`] | parsing values of settings |
//!
//! This module does not print, read a clock or handle Ctrl-C. The caller's [`Around`] provides the observer, the clock
//! and the flag to cancel the run.

pub mod folder;
mod judge;
pub mod request;
mod session;
pub mod words;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use jensen_data::{Artefact as Kept, Claim, DataError, Digests, RunDir, write_atomic_bytes};
use jensen_report::{Report, render};
use jensen_run::{Budget, Clock, Control, Identity, Observer, Outcome, Record, Status};
use serde::Serialize;

use crate::Error;
pub use judge::{Baseline, Evidence, Judgement, Work};

/// The default number of seconds between checkpoints.
pub const CHECKPOINT_EVERY: f64 = 30.0;

/// The default limit on the memory of a fit, in bytes.
pub const MEMORY_LIMIT: u64 = 8 << 30;

/// A fit that a caller can run.
pub trait Job {
    /// The settings, as stored in `run.json`.
    type Request: Serialize;
    /// The part of the result that is computed from the records of a run.
    type Course: Course;
    /// The result of a run.
    type Output;
    /// The contents of `fit.json`, including a [`Judgement`].
    type Summary: Serialize;

    /// Returns the name of the command, which marks its result folders.
    fn command(&self) -> &'static str;

    /// Returns the names of the files that only this kind of job writes. A new run removes them from its folder.
    fn own_files(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the request.
    fn request(&self) -> &Self::Request;

    /// Returns copies of the inputs that a reader of the folder needs.
    fn inputs(&self) -> Vec<File<'_>> {
        Vec::new()
    }

    /// Returns the identity, which contains everything that determines the bits of a run.
    fn identity(&self) -> Identity;

    /// Returns JSON pointers to the settings in the identity that may differ when a run resumes. They are limits on the
    /// length of the run, and values that depend on the build instead of a flag.
    fn budgets(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the memory that the job needs.
    fn need(&self) -> Need;

    /// Returns the budget of the run.
    fn budget(&self) -> Budget;

    /// Checks differences from a stored run that `force` cannot override.
    ///
    /// # Errors
    /// Fails if this run cannot continue from the stored state.
    fn can_go_on_from(&self, stored: &Identity) -> Result<(), Error> {
        let _ = stored;
        Ok(())
    }

    /// Returns an empty collector for the records of a run, including those before a resume.
    fn course(&self) -> Self::Course;

    /// Runs the fit and computes its result.
    ///
    /// # Errors
    /// Fails if there is no result. An untrusted result is not an error.
    fn run(&mut self, control: Control<'_>) -> Result<Outcome<Self::Output>, Error>;

    /// Checks that no other process changed the input files during the run.
    ///
    /// # Errors
    /// Fails if a file has changed.
    fn check_sources(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Adds information from the records of the whole run to the result.
    fn complete(&self, made: &mut Finished<Self>) {
        let _ = made;
    }

    /// Returns the evidence for the verdict.
    fn evidence(&self, made: &Finished<Self>) -> Evidence;

    /// Returns the contents of `fit.json`.
    fn summary(&self, made: &Finished<Self>, judged: Judgement) -> Self::Summary;

    /// Returns the files of the result except `fit.json`, the most important first. The workflow calls this method only
    /// if there is a folder. The method may add the time that it took to the summary.
    fn files<'a>(
        &'a self,
        made: &'a Finished<Self>,
        summary: &mut Self::Summary,
        clock: &dyn Clock,
    ) -> Vec<File<'a>>;
}

/// A collector of the records of a run.
pub trait Course {
    /// Adds a record.
    fn add(&mut self, record: &Record);
}

/// A finished run.
pub struct Finished<S: Job + ?Sized> {
    /// The result.
    pub output: S::Output,
    /// The collected records.
    pub course: S::Course,
    /// The status of the run at the end.
    pub status: Status,
    /// The number of iterations, including those before a resume.
    pub iterations: u64,
    /// The wall-clock seconds, including those before a resume.
    pub seconds: f64,
}

/// A completed fit job.
pub struct Done<S: Job> {
    /// The finished run.
    pub made: Finished<S>,
    /// The contents of `fit.json`.
    pub summary: S::Summary,
    /// Whether the result is trusted.
    pub trusted: bool,
    /// The folder of the written files, if there is one.
    pub folder: Option<PathBuf>,
}

/// The memory that a job needs, with advice for reducing it.
#[derive(Clone, Debug, PartialEq)]
pub struct Need {
    /// The part of the job that needs the memory, such as `100 topics of 5000 words`.
    pub what: String,
    /// The approximate number of bytes.
    pub bytes: u64,
    /// The advice for using less memory.
    pub advice: String,
}

impl Need {
    /// Checks that the job needs at most `limit` bytes.
    ///
    /// # Errors
    /// Fails with [`Error::Memory`] if it needs more.
    pub fn check(&self, limit: u64) -> Result<(), Error> {
        if self.bytes <= limit {
            return Ok(());
        }
        Err(Error::Memory {
            what: self.what.clone(),
            needed: self.bytes,
            limit,
            advice: self.advice.clone(),
        })
    }
}

/// The folder of the results.
pub enum ResultFolder {
    /// The run keeps no files.
    None,
    /// A new run in this folder.
    New(PathBuf),
    /// A new run in a folder that the caller has already claimed and locked.
    Taken(RunDir, Claim),
    /// The continuation of a stored run in its folder.
    Resumed {
        /// The folder of the stored run.
        folder: RunDir,
        /// Whether to continue even if settings differ.
        force: bool,
    },
}

impl ResultFolder {
    /// Returns the folder for a new run, or [`ResultFolder::None`] if `out` is `None`.
    pub fn new(out: Option<&Path>) -> Self {
        out.map_or(Self::None, |path| Self::New(path.to_owned()))
    }
}

/// The environment in which a job runs.
pub struct Around<'a> {
    /// The folder of the results.
    pub results: ResultFolder,
    /// Seconds between checkpoints, by default [`CHECKPOINT_EVERY`].
    pub checkpoint_every: Option<f64>,
    /// The limit on the memory, in bytes.
    pub memory_limit: u64,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// A flag that another thread sets to stop the run.
    pub cancel: Option<&'a AtomicBool>,
    /// Whether a stopped job writes results that it computes from its state. Otherwise it writes only its checkpoint.
    pub partial: bool,
    /// The observer of the records and notes of the run.
    pub observer: &'a mut dyn Observer,
}

impl Around<'_> {
    /// Returns the same environment for another job, which writes its results to `results`.
    pub fn again(&mut self, results: ResultFolder) -> Around<'_> {
        Around {
            results,
            observer: &mut *self.observer,
            ..*self
        }
    }
}

/// A file that is written completely or not at all.
pub struct File<'a> {
    name: String,
    write: Writer<'a>,
}

type Writer<'a> = Box<dyn FnOnce(&Path) -> Result<(), DataError> + 'a>;

impl<'a> File<'a> {
    /// Creates a file with these bytes.
    pub fn of_bytes(name: impl Into<String>, bytes: impl AsRef<[u8]> + 'a) -> Self {
        Self::new(name, move |path| write_atomic_bytes(path, bytes.as_ref()))
    }

    /// Creates a file whose contents `write` produces.
    pub fn new(
        name: impl Into<String>,
        write: impl FnOnce(&Path) -> Result<(), DataError> + 'a,
    ) -> Self {
        Self {
            name: name.into(),
            write: Box::new(write),
        }
    }

    /// Creates the file of the approximation.
    pub fn approximation(bytes: Vec<u8>) -> Self {
        Self::of_bytes(Kept::Approximation.file_name(), bytes)
    }

    /// Creates the file of the report.
    pub fn page(report: &Report) -> Self {
        Self::of_bytes(Kept::Report.file_name(), render(report))
    }

    fn write(self, folder: &RunDir) -> Result<(), Error> {
        (self.write)(&folder.path().join(&self.name)).map_err(Error::output)
    }
}

/// Formats a summary as in `fit.json`: indented JSON with a final newline. Numbers that are not finite become `null`.
///
/// # Errors
/// Fails if the summary contains a map whose keys are not strings.
pub fn to_json(summary: &impl Serialize) -> Result<String, Error> {
    let text = serde_json::to_string_pretty(summary);
    text.map(|text| text + "\n").map_err(Error::output)
}

fn write_results(
    folder: &RunDir,
    files: Vec<File<'_>>,
    summary: &str,
    mut digests: Digests,
) -> Result<(), Error> {
    // The present `fit.json` belongs to the run before the resume and does not describe the new files.
    folder.remove(Kept::Fit).map_err(Error::output)?;
    let mut names = vec![Kept::Trace.file_name().to_owned()];
    names.extend(files.iter().map(|file| file.name.clone()));
    // The loop tries every file, because a full disk or a table that a format cannot store should not prevent the
    // others.
    let written: Vec<_> = files.into_iter().map(|file| file.write(folder)).collect();
    written.into_iter().collect::<Result<(), Error>>()?;
    for name in &names {
        digests.note(folder, name).map_err(Error::output)?;
    }
    let fit = Kept::Fit.file_name();
    digests.note_bytes(fit, summary.as_bytes());
    digests.write(folder).map_err(Error::output)?;
    File::of_bytes(fit, summary).write(folder)
}

/// Runs a job: checks its memory, claims and locks the folder, stores the request, runs the fit with trace and
/// checkpoints, judges the result, and writes it.
///
/// A new run changes its folder only after the memory check. A resumed run changes it only after the check that it
/// continues the same run. A failed write leaves the earlier files intact. If a file cannot be written, `fit.json` is
/// not written either, so a complete `fit.json` implies that all other files exist.
///
/// # Errors
/// Fails with [`Error::Memory`] if the job needs too much memory, with [`Error::Output`] if the folder cannot be
/// written or another run has locked it, with [`Error::Setting`] if the stored run is a different one, and with
/// [`Error::Input`] if the run cannot start. Also returns the errors of [`Job::run`].
pub fn carry_out<S: Job>(job: S, mut around: Around<'_>) -> Result<Done<S>, Error> {
    job.need().check(around.memory_limit)?;
    let path = match &around.results {
        ResultFolder::None => None,
        ResultFolder::New(path) => Some(path.as_path()),
        ResultFolder::Taken(..) => None,
        ResultFolder::Resumed { folder, .. } => Some(folder.path()),
    };
    let claim = path.map(Claim::of).transpose().map_err(Error::output)?;
    let results = std::mem::replace(&mut around.results, ResultFolder::None);
    let (folder, resumed, _claim) = match results {
        ResultFolder::None => (None, None, claim),
        ResultFolder::New(path) => {
            let own = job.own_files();
            (Some(folder::take(&path, job.command(), own)?), None, claim)
        }
        ResultFolder::Taken(folder, claim) => (Some(folder), None, Some(claim)),
        ResultFolder::Resumed { folder, force } => (Some(folder), Some(force), claim),
    };
    let done = carry_out_in(job, folder.as_ref(), resumed, around);
    if let Some(folder) = &folder {
        match &done {
            Ok(_) => folder.forget_earlier().map_err(Error::output)?,
            // The error of the run is the one to report.
            Err(_) if resumed.is_none() => drop(folder.bring_back()),
            Err(_) => {}
        }
    }
    done
}

/// `resumed` is `None` for a new run, and otherwise whether to force the resume.
fn carry_out_in<S: Job>(
    mut job: S,
    folder: Option<&RunDir>,
    resumed: Option<bool>,
    around: Around<'_>,
) -> Result<Done<S>, Error> {
    let position = match (folder, resumed) {
        (Some(folder), Some(force)) => folder::position(folder, &job, force, around.observer)?,
        _ => None,
    };
    let mut digests = Digests::default();
    if let Some(folder) = folder {
        folder.sweep().map_err(Error::output)?;
        // There are no digests while files change, so that a killed run cannot leave outdated ones.
        folder.remove(Kept::Digests).map_err(Error::output)?;
        // A stored run has its inputs already. Only a forced resume may have others.
        let keeps = resumed == Some(false);
        for input in job.inputs() {
            let name = input.name.clone();
            if !keeps {
                input.write(folder)?;
            }
            digests.note(folder, &name).map_err(Error::output)?;
        }
        folder::write_request(folder, job.request())?;
        digests
            .note(folder, folder::REQUEST)
            .map_err(Error::output)?;
        digests.write(folder).map_err(Error::output)?;
    }
    let clock = around.clock;
    let session = session::Session {
        folder,
        position,
        budget: job.budget(),
        clock,
        cancel: around.cancel,
        partial: around.partial,
        checkpoint_every: around.checkpoint_every.unwrap_or(CHECKPOINT_EVERY),
        observer: around.observer,
    };
    let mut course = job.course();
    let outcome = session.carry_out(&mut course, |control| job.run(control))?;
    job.check_sources()?;
    let Some(output) = outcome.output else {
        return Err(Error::Input(format!(
            "the fit cannot start: {}",
            outcome.status
        )));
    };
    let mut made = Finished {
        output,
        course,
        status: outcome.status,
        iterations: outcome.iterations,
        seconds: outcome.seconds,
    };
    job.complete(&mut made);
    let judged = Judgement::of(&job.evidence(&made), made.iterations);
    let trusted = judged.trusted;
    let mut summary = job.summary(&made, judged);
    if let Some(folder) = folder {
        let files = job.files(&made, &mut summary, clock);
        write_results(folder, files, &to_json(&summary)?, digests)?;
    }
    Ok(Done {
        made,
        summary,
        trusted,
        folder: folder.map(|folder| folder.path().to_owned()),
    })
}
