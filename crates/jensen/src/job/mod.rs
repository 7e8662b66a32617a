//! The workflow that all kinds of fits share: Stan programs, topics, mixtures, factors, latent Gaussian models and
//! auto-encoders.
//!
//! An implementation of [`Job`] defines the request, the identity, the memory and the budget of a fit, runs the fit,
//! and describes its result. The function [`carry_out`] performs all remaining steps in the same way for all jobs. The
//! function checks the memory, claims or opens the folder, finds the state of a stored run, writes the trace and the
//! checkpoints, and determines the verdict. At the end, the function writes all files, with `fit.json` last. All
//! callers therefore receive the same verdict and the same files.
//!
//! | file | subject |
//! | --- | --- |
//! | here | [`Job`] and [`carry_out`]: the workflow |
//! | [`folder`] | claiming and opening folders, `run.json`, the state from which a stored run continues |
//! | `session` | trace and checkpoints of a run |
//! | `judge` | [`Evidence`] → [`Judgement`]: the verdict |
//! | [`request`] | merging given and stored settings, and listing them |
//! | [`words`] | parsing values of settings |
//! | `range` | [`CountRange`]: a number of components or topics, or a range from which Jensen chooses |
//!
//! This module does not print, read a clock or handle Ctrl-C. The [`Around`] that the caller passes contains the
//! observer, the clock and the cancellation flag.

pub mod folder;
mod judge;
mod range;
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
pub use range::CountRange;

/// The default time between two checkpoints in seconds.
pub const CHECKPOINT_EVERY: f64 = 30.0;

/// The default maximum memory of a fit, in bytes.
pub const MEMORY_LIMIT: u64 = 8 << 30;

/// A fit that [`carry_out`] can run.
pub trait Job {
    /// The settings that are stored in `run.json`.
    type Request: Serialize;
    /// The data that the job collects from the records of a run.
    type Course: Course;
    /// The result that a run returns.
    type Output;
    /// The contents of `fit.json`, which include a [`Judgement`].
    type Summary: Serialize;

    /// Returns the name of the command, as stored in its result folders.
    fn command(&self) -> &'static str;

    /// Returns the names of the files that only this kind of job writes. A new run removes these files from its folder.
    fn own_files(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the request.
    fn request(&self) -> &Self::Request;

    /// Returns copies of the input files that commands need when they read the folder later.
    fn inputs(&self) -> Vec<File<'_>> {
        Vec::new()
    }

    /// Returns the identity of the run. The identity contains everything that can change a bit of the results.
    fn identity(&self) -> Identity;

    /// Returns JSON pointers to those settings of the identity that may change when a run resumes. Examples are limits
    /// on the length of the run, and values that depend on the build of Jensen rather than on a flag.
    fn budgets(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the memory that the job needs, with advice on how to reduce it.
    fn need(&self) -> Need;

    /// Returns the limits on the iterations and the time of the run.
    fn budget(&self) -> Budget;

    /// Checks for differences from a stored run that even `force` does not allow.
    ///
    /// # Errors
    /// Fails if this run cannot resume from the stored state.
    fn can_go_on_from(&self, stored: &Identity) -> Result<(), Error> {
        let _ = stored;
        Ok(())
    }

    /// Returns an empty collector. The collector will receive the records of the whole run, including the records
    /// before a resume.
    fn course(&self) -> Self::Course;

    /// Runs the fit and returns its result.
    ///
    /// # Errors
    /// Fails if there is no result. A result that is not trusted is not an error.
    fn run(&mut self, control: Control<'_>) -> Result<Outcome<Self::Output>, Error>;

    /// Checks that no other process has changed the input files during the run.
    ///
    /// # Errors
    /// Fails if an input file has changed.
    fn check_sources(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Adds information to the result that depends on the records of the whole run.
    fn complete(&self, made: &mut Finished<Self>) {
        let _ = made;
    }

    /// Returns the evidence on which the verdict is based.
    fn evidence(&self, made: &Finished<Self>) -> Evidence;

    /// Returns the contents of `fit.json`.
    fn summary(&self, made: &Finished<Self>, judged: Judgement) -> Self::Summary;

    /// Returns the files of the result except `fit.json`, starting with the most important file. The workflow calls
    /// this method only if the results are stored in a folder. The method may add its own running time to the summary.
    fn files<'a>(
        &'a self,
        made: &'a Finished<Self>,
        summary: &mut Self::Summary,
        clock: &dyn Clock,
    ) -> Vec<File<'a>>;
}

/// A collector that receives the records of a run.
pub trait Course {
    /// Receives the next record of the run.
    fn add(&mut self, record: &Record);
}

/// The result of a run that has ended, before the verdict.
pub struct Finished<S: Job + ?Sized> {
    /// The result that the run returned.
    pub output: S::Output,
    /// The data that the job collected from the records.
    pub course: S::Course,
    /// The status at the end of the run.
    pub status: Status,
    /// The number of iterations, including the iterations before a resume.
    pub iterations: u64,
    /// The wall-clock time in seconds, including the time before a resume.
    pub seconds: f64,
}

/// The result of a completed fit job, with its verdict.
pub struct Done<S: Job> {
    /// The result of the run.
    pub made: Finished<S>,
    /// The contents of `fit.json`.
    pub summary: S::Summary,
    /// Whether the verdict trusts the result.
    pub trusted: bool,
    /// The folder that contains the files, or `None` if the job stored no files.
    pub folder: Option<PathBuf>,
}

/// The memory that a job needs, with advice on how to reduce it.
#[derive(Clone, Debug, PartialEq)]
pub struct Need {
    /// The part of the job that needs most of the memory, such as `100 topics of 5000 words`.
    pub what: String,
    /// The approximate number of bytes that the job needs.
    pub bytes: u64,
    /// Advice on how to reduce the memory.
    pub advice: String,
}

impl Need {
    /// Checks that the job does not need more than `limit` bytes.
    ///
    /// # Errors
    /// Fails with [`Error::Memory`] if the job needs more than `limit` bytes.
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

/// The folder in which the results are stored.
pub enum ResultFolder {
    /// The run stores no files.
    None,
    /// A new run stores its files in this folder.
    New(PathBuf),
    /// A new run stores its files in this folder. The caller has already claimed and locked the folder.
    Taken(RunDir, Claim),
    /// A stored run resumes in its own folder.
    Resumed {
        /// The folder of the stored run.
        folder: RunDir,
        /// Whether to resume even if settings differ from those of the stored run.
        force: bool,
    },
}

impl ResultFolder {
    /// Returns [`ResultFolder::New`] for the folder `out`, or [`ResultFolder::None`] if `out` is `None`.
    pub fn new(out: Option<&Path>) -> Self {
        out.map_or(Self::None, |path| Self::New(path.to_owned()))
    }
}

/// The environment of a job. The caller provides it.
pub struct Around<'a> {
    /// The folder in which the results are stored.
    pub results: ResultFolder,
    /// The time between two checkpoints in seconds. The default is [`CHECKPOINT_EVERY`].
    pub checkpoint_every: Option<f64>,
    /// The maximum memory of the job, in bytes.
    pub memory_limit: u64,
    /// The clock that measures the elapsed time.
    pub clock: &'a dyn Clock,
    /// A flag that another thread sets to stop the run.
    pub cancel: Option<&'a AtomicBool>,
    /// Whether a cancelled job still computes and writes results from its state. Otherwise, a cancelled job writes only
    /// its checkpoint.
    pub partial: bool,
    /// The observer that receives the records and notes of the run.
    pub observer: &'a mut dyn Observer,
}

impl Around<'_> {
    /// Returns the same environment for another job. The other job stores its results in `results`.
    pub fn again(&mut self, results: ResultFolder) -> Around<'_> {
        Around {
            results,
            observer: &mut *self.observer,
            ..*self
        }
    }
}

/// A file that is written either completely or not at all.
pub struct File<'a> {
    name: String,
    write: Writer<'a>,
}

type Writer<'a> = Box<dyn FnOnce(&Path) -> Result<(), DataError> + 'a>;

impl<'a> File<'a> {
    /// Creates a file with the given bytes.
    pub fn of_bytes(name: impl Into<String>, bytes: impl AsRef<[u8]> + 'a) -> Self {
        Self::new(name, move |path| write_atomic_bytes(path, bytes.as_ref()))
    }

    /// Creates a file whose contents are written by `write`.
    pub fn new(
        name: impl Into<String>,
        write: impl FnOnce(&Path) -> Result<(), DataError> + 'a,
    ) -> Self {
        Self {
            name: name.into(),
            write: Box::new(write),
        }
    }

    /// Creates the file that stores the approximation.
    pub fn approximation(bytes: Vec<u8>) -> Self {
        Self::of_bytes(Kept::Approximation.file_name(), bytes)
    }

    /// Creates the file that contains the report.
    pub fn page(report: &Report) -> Self {
        Self::of_bytes(Kept::Report.file_name(), render(report))
    }

    fn write(self, folder: &RunDir) -> Result<(), Error> {
        (self.write)(&folder.path().join(&self.name)).map_err(Error::output)
    }
}

/// Formats a summary in the format of `fit.json`, which is indented JSON with a newline at the end. Numbers that are
/// not finite are written as `null`.
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
    // The existing `fit.json` was written before the resume and does not describe the new files.
    folder.remove(Kept::Fit).map_err(Error::output)?;
    let mut names = vec![Kept::Trace.file_name().to_owned()];
    names.extend(files.iter().map(|file| file.name.clone()));
    // The loop tries to write every file even if one of them fails. A full disk, or a table that a format cannot store,
    // should not prevent the other files from being written.
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

/// Runs a job and stores its results. The function checks the memory, claims and locks the folder, stores the request,
/// runs the fit with a trace and checkpoints, determines the verdict, and writes the files.
///
/// A new run changes its folder only after the memory check. A resumed run changes its folder only after the function
/// has checked that it continues the same run. If a file cannot be written, the earlier version of this file remains
/// intact and `fit.json` is not written. A complete `fit.json` therefore implies that all other files exist.
///
/// # Errors
/// Fails with [`Error::Memory`] if the job needs too much memory, and with [`Error::Output`] if the folder cannot be
/// written or is locked by another run. Fails with [`Error::Setting`] if the stored run is a different one, and with
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
            // An error of this call is ignored, because the error of the run is more important to the user.
            Err(_) if resumed.is_none() => drop(folder.bring_back()),
            Err(_) => {}
        }
    }
    done
}

/// `resumed` is `None` for a new run. For a resumed run, `resumed` states whether the resume is forced.
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
        // The digests are removed while files change, so that a run that is killed does not leave outdated digests.
        folder.remove(Kept::Digests).map_err(Error::output)?;
        // A stored run already has copies of its inputs. The inputs can differ only if the resume is forced.
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
