//! An end from outside, within evaluations that take long.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

/// Ends evaluations from outside, when their time is up or somebody has lost patience: what an evaluation that was ended
/// writes is NaN. The default ends none.
#[derive(Clone, Default)]
pub struct Ending(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Ending {
    /// Ends evaluations once `asked` says so. It is asked from every thread, after each million numbers or so.
    pub fn new(asked: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(asked)))
    }
}

impl fmt::Debug for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Ending" } else { "None" })
    }
}

/// Numbers computed between two questions: about a millisecond, ten thousand times what a question takes.
const BETWEEN: usize = 1 << 20;

/// What one thread has computed since it last asked.
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

    /// An evaluation begins. What was computed before it counts: many short ones take long together.
    pub fn begin(&self) {
        self.over.set(false);
    }

    /// So many numbers more were computed.
    pub fn worked(&self, numbers: usize) {
        let Some(asked) = &self.ending.0 else { return };
        let worked = self.worked.get().saturating_add(numbers);
        if worked < BETWEEN {
            self.worked.set(worked);
            return;
        }
        self.over.set(asked());
        // The next evaluation asks at once where this one is ended.
        self.worked.set(if self.over.get() { worked } else { 0 });
    }

    /// Whether the present evaluation is ended.
    pub fn is_over(&self) -> bool {
        self.over.get()
    }
}
