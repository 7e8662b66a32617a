//! Runs work on a separate thread while the interpreter checks for signals.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jensen::HistoryPoint;
use jensen::job::words::MOST_THREADS;
use jensen::run::{Observer, Progress};
use jensen::stan::Halt;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// The time between two checks for signals. Progress is reported at the same times.
const PERIOD: Duration = Duration::from_millis(50);

/// The stack size of the worker, in bytes. The interpreter of Stan programs needs a deep stack. A large stack costs
/// little, because only the pages that are used take memory.
const STACK: usize = 256 << 20;

/// The state that the worker shares with the thread of the interpreter.
pub struct Watch {
    /// A flag that stops the work after its current iteration.
    pub cancel: AtomicBool,
    start: Instant,
    said: Mutex<Said>,
    over: Mutex<bool>,
    ended: Condvar,
}

#[derive(Default)]
struct Said {
    /// The iteration, the stage and the bound of the most recent estimate.
    progress: Option<(u64, String, f64)>,
    notes: Vec<String>,
}

impl Watch {
    fn new() -> Self {
        Self {
            cancel: AtomicBool::new(false),
            start: Instant::now(),
            said: Mutex::default(),
            over: Mutex::default(),
            ended: Condvar::new(),
        }
    }

    /// Returns the number of seconds since the work began.
    pub fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Creates the signal that stops the interpreter of Stan programs. The interpreter stops if the work is cancelled
    /// or takes longer than `limit` seconds. After the work has ended, the signal does not stop further evaluations of
    /// the program.
    pub fn halt(self: &Arc<Self>, limit: Option<f64>) -> Halt {
        let watch = Arc::clone(self);
        Halt::new(move || {
            if *watch.over.lock().unwrap_or_else(PoisonError::into_inner) {
                return None;
            }
            if watch.cancel.load(Ordering::Relaxed) {
                return Some("interrupted".to_owned());
            }
            let limit = limit.filter(|limit| watch.seconds() > *limit)?;
            Some(format!("ended by max_seconds={limit}"))
        })
        .apart(|work| {
            std::thread::spawn(work);
        })
    }

    fn is_over(&self) -> bool {
        let over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.ended.wait_timeout_while(over, PERIOD, |over| !*over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn end(&self) {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ended.notify_all();
    }
}

/// The observer that receives the records of the worker.
pub struct Eyes<'a>(pub &'a Watch);

impl Observer for Eyes<'_> {
    fn progress(&mut self, progress: &Progress<'_>) {
        if let Some(point) = HistoryPoint::of(progress.record) {
            let mut said = self.0.said.lock().unwrap_or_else(PoisonError::into_inner);
            said.progress = Some((point.iteration, point.stage, point.elbo));
        }
    }

    fn note(&mut self, note: &str) {
        let mut said = self.0.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.notes.push(note.to_owned());
    }
}

/// Runs `work` on a separate thread, so that the interpreter can execute other threads in the meantime. The work uses
/// its own pool with the given number of threads. The default is the number of processors. The function calls
/// `progress` with the iteration, the stage and the bound. If a signal arrives or `progress` raises an exception, the
/// function cancels the work, waits until the work has ended, and then raises the exception. Remarks from the work
/// become Python warnings.
pub fn supervised<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&Arc<Watch>) -> T + Send,
) -> PyResult<T> {
    if let Some(threads) = threads.filter(|threads| !(1..=MOST_THREADS).contains(threads)) {
        return Err(PyValueError::new_err(format!(
            "threads is {threads}: expected a whole number from 1 to {MOST_THREADS}"
        )));
    }
    // If there were more threads than processors, they would wait for each other.
    let all = std::thread::available_parallelism().map_or(1, NonZero::get);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.map_or(all, |threads| threads.min(all)))
        .stack_size(STACK)
        .build()
        .map_err(|error| PyOSError::new_err(format!("cannot start threads: {error}")))?;
    let watch = Arc::new(Watch::new());
    let (made, raised) = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let made = catch_unwind(AssertUnwindSafe(|| pool.install(|| work(&watch))));
            watch.end();
            made
        });
        let mut raised = None;
        while !py.detach(|| watch.is_over()) {
            if raised.is_none()
                && let Err(error) = py.check_signals().and_then(|()| tell(py, &watch, progress))
            {
                watch.cancel.store(true, Ordering::Relaxed);
                raised = Some(error);
            }
        }
        let made = py.detach(|| worker.join());
        (made.unwrap_or_else(|panic| resume_unwind(panic)), raised)
    });
    let notes = std::mem::take(
        &mut watch
            .said
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .notes,
    );
    warn(py, &notes)?;
    if let Some(error) = raised {
        return Err(error);
    }
    made.map_err(|panic| {
        let what = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned());
        PyRuntimeError::new_err(format!(
            "this is a bug in Jensen {}; please report it, with the model and data: {}",
            env!("CARGO_PKG_VERSION"),
            what.as_deref().unwrap_or("unknown")
        ))
    })
}

fn tell(py: Python<'_>, watch: &Watch, progress: Option<&Py<PyAny>>) -> PyResult<()> {
    let said = watch
        .said
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .progress
        .take();
    if let (Some(callback), Some((iteration, stage, elbo))) = (progress, said) {
        callback.call1(py, (iteration, stage, elbo, watch.seconds()))?;
    }
    Ok(())
}

/// Raises one warning for each text.
pub fn warn(py: Python<'_>, texts: &[String]) -> PyResult<()> {
    if texts.is_empty() {
        return Ok(());
    }
    let warn = py.import("warnings")?.getattr("warn")?;
    for text in texts {
        warn.call1((text,))?;
    }
    Ok(())
}
