//! What surrounds one run: threads, Ctrl-C, its trace, its checkpoints, what the user sees.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Instant;

use jensen::data::{Artefact, RunDir, TraceWriter, write_atomic_bytes};
use jensen::run::{Budget, Control, Observer, Progress, Record, Store, StoreError};
use jensen::study::CHECKPOINT_EVERY;

use super::folder::Position;
use crate::failure::{Failure, remark};
use crate::progress::Display;
use crate::terminal::{STOP, catch_interrupts};

/// One run, about to start.
pub struct Session<'a> {
    /// Where its trace and checkpoints go.
    pub folder: Option<&'a RunDir>,
    /// Where it goes on.
    pub position: Option<Position>,
    /// How much it may use.
    pub budget: Budget,
    /// Seconds between checkpoints, if asked for.
    pub checkpoint_every: Option<f64>,
    /// Goes on although something differs.
    pub force: bool,
    /// What the user sees.
    pub display: Display,
}

impl Session<'_> {
    /// Carries the run out: `gather` gets every record, those before a resume first. Also gives the seconds it took.
    ///
    /// # Errors
    /// When the trace cannot be written.
    pub fn carry_out<T>(
        self,
        mut gather: impl FnMut(&Record),
        run: impl FnOnce(Control<'_>) -> T,
    ) -> Result<(T, f64), Failure> {
        let (resume, records) = match self.position {
            Some(position) => (Some(position.checkpoint), position.records),
            None => (None, Vec::new()),
        };
        records.iter().for_each(&mut gather);
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
            display: self.display,
            gather: &mut gather,
        };
        catch_interrupts();
        let epoch = Instant::now();
        let clock = move || epoch.elapsed().as_secs_f64();
        let made = run(Control {
            budget: self.budget,
            clock: &clock,
            cancel: Some(&STOP),
            observer: &mut watch,
            store: checkpoints.as_mut().map(|store| store as &mut dyn Store),
            checkpoint_seconds: self.checkpoint_every.unwrap_or(CHECKPOINT_EVERY),
            resume,
            force_resume: self.force,
        });
        watch.display.clear();
        trace.flush().map_err(Failure::output)?;
        Ok((made, epoch.elapsed().as_secs_f64()))
    }
}

/// The trace file of a run, shared by its observer and its store: lines are on disk before the
/// checkpoint that knows of them.
struct Trace {
    writer: RefCell<Option<TraceWriter>>,
}

impl Trace {
    fn none() -> Self {
        Self {
            writer: RefCell::new(None),
        }
    }

    /// The trace of a folder, continued after `lines` lines.
    fn open(folder: &RunDir, lines: u64) -> Result<Self, Failure> {
        let path = folder.artefact(Artefact::Trace);
        let writer = if lines == 0 {
            TraceWriter::create(&path)
        } else {
            TraceWriter::resume(&path, lines)
        };
        Ok(Self {
            writer: RefCell::new(Some(writer.map_err(Failure::output)?)),
        })
    }

    fn append(&self, record: &Record) {
        let mut writer = self.writer.borrow_mut();
        if let Some(Err(error)) = writer.as_mut().map(|writer| writer.append(record)) {
            remark(&format!("warning: the trace ends here: {error}"));
            *writer = None;
        }
    }

    fn flush(&self) -> Result<(), String> {
        match self.writer.borrow_mut().as_mut() {
            Some(writer) => writer.flush().map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }
}

/// Where checkpoints go.
struct Checkpoints<'a> {
    path: PathBuf,
    /// The trace that belongs to them.
    trace: &'a Trace,
}

impl Store for Checkpoints<'_> {
    fn save(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.trace.flush().map_err(StoreError)?;
        write_atomic_bytes(&self.path, bytes).map_err(|error| StoreError(error.to_string()))
    }
}

/// Watches a run: trace lines, the display, notes, what the command gathers.
struct Watch<'a> {
    trace: &'a Trace,
    display: Display,
    gather: &'a mut dyn FnMut(&Record),
}

impl Observer for Watch<'_> {
    fn record(&mut self, record: &Record) {
        (self.gather)(record);
        self.trace.append(record);
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        self.display.update(progress);
    }

    fn note(&mut self, note: &str) {
        self.display.remark(&format!("warning: {note}"));
    }
}
