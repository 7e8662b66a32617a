//! Interrupts of evaluations that take a long time.

use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, mpsc};

type Asked = dyn Fn() -> bool + Send + Sync;

/// A unit of work that the caller may abandon before it has finished.
type Work = Box<dyn FnOnce() + Send>;

type During = dyn Fn(Work) -> bool + Send + Sync;

/// Interrupts evaluations, for example when a time limit is exceeded or when the user cancels the work. The result of
/// an interrupted evaluation is NaN. The default value never interrupts an evaluation.
#[derive(Clone, Default)]
pub struct Ending {
    asked: Option<Arc<Asked>>,
    during: Option<Arc<During>>,
}

impl Ending {
    /// Creates an interrupt that ends evaluations once `asked` returns true. Each thread calls `asked` whenever it has
    /// computed about a million numbers.
    pub fn new(asked: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self {
            asked: Some(Arc::new(asked)),
            during: None,
        }
    }

    /// Sets the function `during`, which runs large factorisations and products. These do not check the interrupt
    /// themselves. `during` must run the work on another thread, and wait until the work has finished or the evaluation
    /// must end. It returns whether the work finished. Work that is abandoned must not affect later calls.
    pub fn apart(self, during: impl Fn(Work) -> bool + Send + Sync + 'static) -> Self {
        Self {
            during: Some(Arc::new(during)),
            ..self
        }
    }

    pub(crate) fn is_due(&self) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked())
    }
}

impl fmt::Debug for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.asked.is_some() {
            "Ending"
        } else {
            "None"
        })
    }
}

/// The number of values that are computed between two checks. Computing them takes about a millisecond, which is ten
/// thousand times as long as a check.
const BETWEEN: usize = 1 << 20;

/// The smallest number of values for which a step runs on a separate thread. Computing this number of values takes
/// between a twentieth and half of a second. Starting the thread and copying the operands costs a hundredth of that.
pub(crate) const LONG: usize = 1 << 27;

pub(crate) struct Patience {
    ending: Ending,
    worked: Cell<usize>,
    over: Cell<bool>,
}

impl Patience {
    pub fn new(ending: &Ending) -> Self {
        Self {
            ending: ending.clone(),
            worked: Cell::new(0),
            over: Cell::new(false),
        }
    }

    /// Begins an evaluation. The count of computed values continues from earlier evaluations, because many short
    /// evaluations together can take a long time.
    pub fn begin(&self) {
        self.over.set(false);
    }

    /// Adds the given number of values to the count.
    pub fn worked(&self, numbers: usize) {
        let Some(asked) = &self.ending.asked else {
            return;
        };
        let worked = self.worked.get().saturating_add(numbers);
        if worked < BETWEEN {
            self.worked.set(worked);
            return;
        }
        self.over.set(asked());
        // After an interrupt, the count is kept, so that the next evaluation checks immediately.
        self.worked.set(if self.over.get() { worked } else { 0 });
    }

    pub fn is_apart(&self, numbers: usize) -> bool {
        numbers >= LONG && self.ending.during.is_some()
    }

    /// Runs `work` on another thread and returns its result, or `None` if an interrupt ends the evaluation first.
    pub fn apart<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let during = self.ending.during.as_ref()?;
        let (done, made) = mpsc::channel();
        // The receiver may have stopped waiting.
        let is_done = during(Box::new(move || drop(done.send(work()))));
        self.over.set(!is_done);
        made.try_recv().ok().filter(|_| is_done)
    }

    pub fn is_over(&self) -> bool {
        self.over.get()
    }
}
