//! The workflow that all kinds of fits share: Stan programs, topics, mixtures and factors, latent Gaussian models,
//! auto-encoders.
//!
//! A [`Job`] describes itself (request, identity, memory, budget), runs, and reports its result. [`carry_out`] does the
//! rest for all jobs. It checks the memory, takes or opens the folder, finds the position of a stored run, writes the
//! trace and checkpoints, judges the result, and writes every file, with `fit.json` last. The command and every other
//! caller therefore get the same verdict and the same files.
//!
//! | file | subject |
//! | --- | --- |
//! | here | [`Job`], [`carry_out`]: the order of things |
//! | [`folder`] | taking and opening folders, `run.json`, the state from which a stored run continues |
//! | `session` | trace and checkpoints around one run |
//! | `judge` | [`Evidence`] → [`Judgement`]: the only module where `trusted` is decided |
//! | [`request`] | given settings over stored ones, settings as a list |
//! | [`words`] | values as users write them |
//!
//! This module does not print, read a clock or handle Ctrl-C. An [`Around`] provides the observer, the clock and the
//! means to cancel.

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

/// Default number of seconds between checkpoints.
pub const CHECKPOINT_EVERY: f64 = 30.0;

/// Default limit on the bytes of a fit.
pub const MEMORY_LIMIT: u64 = 8 << 30;

/// A fit that a caller can run.
pub trait Job {
    /// The settings as stored in `run.json`.
    type Request: Serialize;
    /// The part of the results that is computed from the records of a run.
    type Course: Course;
    /// The result of a run.
    type Output;
    /// The contents of `fit.json`, which include a [`Judgement`].
    type Summary: Serialize;

    /// Returns the command in the marker of its result folder.
    fn command(&self) -> &'static str;

    /// The files that the job writes in addition to the common ones. A new run in an old folder removes them.
    fn own_files(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the request.
    fn request(&self) -> &Self::Request;

    /// Copies of the inputs that a later reader of the folder needs.
    fn inputs(&self) -> Vec<File<'_>> {
        Vec::new()
    }

    /// Returns everything that determines the bits of a run.
    fn identity(&self) -> Identity;

    /// JSON pointers to the settings of the identity that may differ when a run resumes: limits on its length, and
    /// values that depend on the build instead of a flag.
    fn budgets(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the memory that the fit job needs.
    fn need(&self) -> Need;

    /// Returns the budget of a run.
    fn budget(&self) -> Budget;

    /// Refuses to resume a stored run if it differs in a way that `force` cannot override.
    ///
    /// # Errors
    /// Fails if the stored state does not fit this run.
    fn can_go_on_from(&self, stored: &Identity) -> Result<(), Error> {
        let _ = stored;
        Ok(())
    }

    /// Creates the collector of the records of a run, including the records before a resume.
    fn course(&self) -> Self::Course;

    /// Runs, and evaluates the result.
    ///
    /// # Errors
    /// Fails if there is no result. An untrusted result is not an error.
    fn run(&mut self, control: Control<'_>) -> Result<Outcome<Self::Output>, Error>;

    /// Rejects the result if another process changed the input files during the run.
    ///
    /// # Errors
    /// Fails if a file has changed.
    fn check_sources(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Adds information from the records of the whole run to the output.
    fn complete(&self, made: &mut Finished<Self>) {
        let _ = made;
    }

    /// Returns the evidence of the run.
    fn evidence(&self, made: &Finished<Self>) -> Evidence;

    /// Returns the result in numbers.
    fn summary(&self, made: &Finished<Self>, judged: Judgement) -> Self::Summary;

    /// Returns the files of the result except `fit.json`, with the most important first. Called only if there is a
    /// folder. The method may add the time that this took to the summary.
    fn files<'a>(
        &'a self,
        made: &'a Finished<Self>,
        summary: &mut Self::Summary,
        clock: &dyn Clock,
    ) -> Vec<File<'a>>;
}

/// Collects the records of a run.
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
    /// Number of iterations, including the iterations before a resume.
    pub iterations: u64,
    /// Wall-clock seconds, including the time before a resume.
    pub seconds: f64,
}

/// A completed fit job.
pub struct Done<S: Job> {
    /// The run.
    pub made: Finished<S>,
    /// `fit.json`.
    pub summary: S::Summary,
    /// The result is trusted.
    pub trusted: bool,
    /// The folder of the written files.
    pub folder: Option<PathBuf>,
}

/// The memory that a fit job needs, with advice for reducing it.
#[derive(Clone, Debug, PartialEq)]
pub struct Need {
    /// The part of the fit that needs the memory, such as `100 topics of 5000 words`.
    pub what: String,
    /// Bytes, roughly.
    pub bytes: u64,
    /// The advice for less memory.
    pub advice: String,
}

impl Need {
    /// Refuses a need of more than `limit` bytes.
    ///
    /// # Errors
    /// [`Error::Memory`].
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

/// The destination of results.
pub enum ResultFolder {
    /// The run keeps no results.
    None,
    /// In a new folder.
    New(PathBuf),
    /// A new run in a folder that the caller has taken and locked.
    Taken(RunDir, Claim),
    /// The continuation of a stored run in its folder. With `force`, it continues even if settings differ.
    Resumed {
        /// The folder.
        folder: RunDir,
        /// Continues in spite of differences.
        force: bool,
    },
}

impl ResultFolder {
    /// Creates a new run in the given folder, or without a folder.
    pub fn new(out: Option<&Path>) -> Self {
        out.map_or(Self::None, |path| Self::New(path.to_owned()))
    }
}

/// The environment of a fit job.
pub struct Around<'a> {
    /// The destination of results.
    pub results: ResultFolder,
    /// Seconds between checkpoints. The default is [`CHECKPOINT_EVERY`].
    pub checkpoint_every: Option<f64>,
    /// Limit on the memory in bytes.
    pub memory_limit: u64,
    /// Tells time.
    pub clock: &'a dyn Clock,
    /// Another thread sets this to stop the run.
    pub cancel: Option<&'a AtomicBool>,
    /// Whether a stopped fit job writes results computed from its state. Otherwise it leaves only its checkpoint.
    pub partial: bool,
    /// Receives the records of the run and remarks.
    pub observer: &'a mut dyn Observer,
}

impl Around<'_> {
    /// The same environment for another fit job, which writes its results to `results`.
    pub fn again(&mut self, results: ResultFolder) -> Around<'_> {
        Around {
            results,
            observer: &mut *self.observer,
            ..*self
        }
    }
}

/// A file, written completely or not at all.
pub struct File<'a> {
    name: String,
    write: Writer<'a>,
}

type Writer<'a> = Box<dyn FnOnce(&Path) -> Result<(), DataError> + 'a>;

impl<'a> File<'a> {
    /// Returns a file of these bytes.
    pub fn of_bytes(name: impl Into<String>, bytes: impl AsRef<[u8]> + 'a) -> Self {
        Self::new(name, move |path| write_atomic_bytes(path, bytes.as_ref()))
    }

    /// Creates a file that `write` writes.
    pub fn new(
        name: impl Into<String>,
        write: impl FnOnce(&Path) -> Result<(), DataError> + 'a,
    ) -> Self {
        Self {
            name: name.into(),
            write: Box::new(write),
        }
    }

    /// Returns the approximation.
    pub fn approximation(bytes: Vec<u8>) -> Self {
        Self::of_bytes(Kept::Approximation.file_name(), bytes)
    }

    /// The page.
    pub fn page(report: &Report) -> Self {
        Self::of_bytes(Kept::Report.file_name(), render(report))
    }

    fn write(self, folder: &RunDir) -> Result<(), Error> {
        (self.write)(&folder.path().join(&self.name)).map_err(Error::output)
    }
}

/// Returns a summary in the format of `fit.json`: indented JSON with a final newline. Numbers that are not finite are
/// `null`.
///
/// # Errors
/// Fails if the summary contains a map whose keys are not strings.
pub fn to_json(summary: &impl Serialize) -> Result<String, Error> {
    let text = serde_json::to_string_pretty(summary);
    text.map(|text| text + "\n").map_err(Error::output)
}

/// Writes the results in order, then the digests of all files, and finally `fit.json`.
fn write_results(
    folder: &RunDir,
    files: Vec<File<'_>>,
    summary: &str,
    mut digests: Digests,
) -> Result<(), Error> {
    // The `fit.json` of the run's earlier part does not describe these files.
    folder.remove(Kept::Fit).map_err(Error::output)?;
    let mut names = vec![Kept::Trace.file_name().to_owned()];
    names.extend(files.iter().map(|file| file.name.clone()));
    // Tries every file, because a full disk or a table that a format cannot store should not prevent the others.
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

/// Runs a fit job: checks its memory, takes or opens the folder and locks it, stores the request, runs with trace and
/// checkpoints, judges the result, and writes it.
///
/// A new run changes its folder only after the memory check. A resumed run changes it only after the check that it is
/// the same run. The order of writing ensures that a failed write leaves the earlier files intact. If any file cannot
/// be written, `fit.json` is not written either, so a complete `fit.json` implies that all other files exist.
///
/// # Errors
/// [`Error::Memory`]; [`Error::Output`] if the folder cannot be written or another run has locked it;
/// [`Error::Setting`] if the stored run is a different one; the errors of [`Job::run`]; [`Error::Input`] if the run
/// cannot start.
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
            // The error that led here is the one to report.
            Err(_) if resumed.is_none() => drop(folder.bring_back()),
            Err(_) => {}
        }
    }
    done
}

/// Like [`carry_out`], but in a locked folder, which is new or contains a stored run to continue with or without force.
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
        // While files change, there are no digests, so a killed run cannot leave outdated ones.
        folder.remove(Kept::Digests).map_err(Error::output)?;
        // A stored run has its inputs, unless it is forced to continue with others.
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
