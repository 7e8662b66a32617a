//! External interrupts of long evaluations.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

/// Ends evaluations from outside, when their time is up or the user cancels. The result of an interrupted evaluation is
/// NaN. By default, nothing is interrupted.
#[derive(Clone, Default)]
pub struct Ending(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Ending {
    /// Ends evaluations once `asked` returns true. It is called from every thread, after about each million numbers.
    pub fn new(asked: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(asked)))
    }
}

impl fmt::Debug for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Ending" } else { "None" })
    }
}

/// Number of values computed between two checks: about a millisecond, ten thousand times the cost of a check.
const BETWEEN: usize = 1 << 20;

/// The work of one thread since its last check.
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

    /// An evaluation begins. Previous work counts, because many short evaluations take long together.
    pub fn begin(&self) {
        self.over.set(false);
    }

    /// Adds this number of values.
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
