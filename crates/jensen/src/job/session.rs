//! The session of a run. The session writes the trace and the checkpoints.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use jensen_data::{Artefact, RunDir, TraceWriter, write_atomic_bytes};
use jensen_run::{Budget, Clock, Control, Observer, Progress, Record, Status, Store, StoreError};

use super::Course;
use super::folder::Position;
use crate::Error;

/// The data and services that a run needs to start.
pub struct Session<'a> {
    /// The folder that contains the trace and the checkpoints, or `None` if nothing is stored.
    pub folder: Option<&'a RunDir>,
    /// The state from which the run resumes, or `None` for a new run.
    pub position: Option<Position>,
    /// The budget of the run.
    pub budget: Budget,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// A flag that another thread sets to stop the run.
    pub cancel: Option<&'a AtomicBool>,
    /// Whether a cancelled run still computes its results.
    pub partial: bool,
    /// The time between two checkpoints in seconds.
    pub checkpoint_every: f64,
    /// The observer of the run.
    pub observer: &'a mut dyn Observer,
}

impl Session<'_> {
    /// Executes the run and passes every record to `course`. If the run is resumed, this includes the records before
    /// the resume.
    ///
    /// # Errors
    /// Returns the errors of `run`. Also fails if the trace cannot be written.
    pub fn carry_out<T>(
        self,
        course: &mut dyn Course,
        run: impl FnOnce(Control<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (resume, records) = match self.position {
            Some(position) => (Some(position.checkpoint), position.records),
            None => (None, Vec::new()),
        };
        records.iter().for_each(|record| course.add(record));
        let lines = resume.as_ref().map_or(0, |checkpoint| checkpoint.iteration);
        let trace = match self.folder {
            Some(folder) => Trace::open(folder, lines)?,
            None => Trace::none(),
        };
        let mut checkpoints = self.folder.map(|folder| Checkpoints {
            path: folder.artefact(Artefact::Checkpoint),
            trace: &trace,
        });
        let mut watch = Watch {
            trace: &trace,
            course,
            observer: self.observer,
        };
        let made = run(Control {
            budget: self.budget,
            clock: self.clock,
            cancel: self.cancel,
            partial: self.partial,
            observer: &mut watch,
            store: checkpoints.as_mut().map(|store| store as &mut dyn Store),
            checkpoint_seconds: self.checkpoint_every,
            resume,
            // The function that found the position has already accepted the differences and replaced the identity.
            force_resume: false,
        })?;
        trace.flush().map_err(Error::output)?;
        Ok(made)
    }
}

/// The trace file of a run. The observer and the store share this file. The lines of the trace are written to disk
/// before any checkpoint that refers to them.
struct Trace {
    writer: RefCell<Option<TraceWriter>>,
}

impl Trace {
    fn none() -> Self {
        Self {
            writer: RefCell::new(None),
        }
    }

    /// Opens the trace of a folder, keeps its first `lines` lines and removes the others.
    fn open(folder: &RunDir, lines: u64) -> Result<Self, Error> {
        let path = folder.artefact(Artefact::Trace);
        let writer = if lines == 0 {
            TraceWriter::create(&path)
        } else {
            TraceWriter::resume(&path, lines)
        };
        Ok(Self {
            writer: RefCell::new(Some(writer.map_err(Error::output)?)),
        })
    }

    /// Appends a line to the trace. If the line cannot be written, the function returns the reason, and later lines are
    /// not written.
    fn append(&self, record: &Record) -> Result<(), String> {
        let mut writer = self.writer.borrow_mut();
        if let Some(Err(error)) = writer.as_mut().map(|writer| writer.append(record)) {
            *writer = None;
            return Err(error.to_string());
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), String> {
        match self.writer.borrow_mut().as_mut() {
            Some(writer) => writer.flush().map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }
}

struct Checkpoints<'a> {
    path: PathBuf,
    trace: &'a Trace,
}

impl Store for Checkpoints<'_> {
    fn save(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.trace.flush().map_err(StoreError)?;
        write_atomic_bytes(&self.path, bytes).map_err(|error| StoreError(error.to_string()))
    }
}

struct Watch<'a> {
    trace: &'a Trace,
    course: &'a mut dyn Course,
    observer: &'a mut dyn Observer,
}

impl Observer for Watch<'_> {
    fn record(&mut self, record: &Record) {
        self.course.add(record);
        if let Err(error) = self.trace.append(record) {
            self.observer.note(&format!("the trace ends here: {error}"));
        }
        self.observer.record(record);
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        self.observer.progress(progress);
    }

    fn note(&mut self, note: &str) {
        self.observer.note(note);
    }

    fn finished(&mut self, status: &Status) {
        self.observer.finished(status);
    }
}
