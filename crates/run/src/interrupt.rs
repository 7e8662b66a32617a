//! Interrupts within a step.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::Clock;

/// Tells code inside a step that the step is no longer needed, because the caller has cancelled the run or its time is
/// up.
///
/// An algorithm with long steps checks [`is_over`](Self::is_over) before each piece of work. Once it is true, the step
/// returns any result as soon as possible: [`run_interruptibly`](crate::run_interruptibly) discards the step and
/// returns to the previous state, so results and resumed runs do not depend on the point at which a step stopped.
///
/// The output of such a run contains only results that take little time to compute. Long computations check
/// [`is_late`](Self::is_late) between their parts, and omit the remaining parts.
pub struct Interrupt<'a> {
    cancel: Option<&'a AtomicBool>,
    clock: &'a dyn Clock,
    /// Whether steps are stopped within.
    pub(crate) within_steps: bool,
    /// The clock reading at which the time is up, as bits.
    deadline: AtomicU64,
    /// Whether there is a state to return to.
    armed: AtomicBool,
    /// Whether a piece of work was stopped early.
    stopped: AtomicBool,
    /// Whether the output belongs to a run that ended by itself.
    ending: AtomicBool,
    /// Whether the output has been informed that it is late.
    cut: AtomicBool,
    /// The clock reading at which the output must use the results it has, as bits.
    output: AtomicU64,
}

/// Seconds for the output of a run that was ended from outside.
const OUTPUT: f64 = 0.2;

impl<'a> Interrupt<'a> {
    /// Creates an interrupt with a flag and a time limit.
    pub fn new(cancel: Option<&'a AtomicBool>, clock: &'a dyn Clock) -> Self {
        Self {
            cancel,
            clock,
            within_steps: true,
            deadline: AtomicU64::new(f64::INFINITY.to_bits()),
            armed: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            output: AtomicU64::new(f64::INFINITY.to_bits()),
        }
    }

    /// Returns an interrupt that never stops a step, for short steps.
    pub fn between_steps(self) -> Self {
        Self {
            within_steps: false,
            ..self
        }
    }

    /// Returns whether the current step will be discarded. Once true, it stays true until the step has ended.
    pub fn is_over(&self) -> bool {
        if !self.armed.load(Ordering::Relaxed) {
            return false;
        }
        let over = self.stopped.load(Ordering::Relaxed) || self.is_called();
        if over {
            self.stopped.store(true, Ordering::Relaxed);
        }
        over
    }

    /// Returns whether the caller should compute its output quickly, because an interrupt ended the run, the time is
    /// up, or the user cancelled the output.
    pub fn is_hurried(&self) -> bool {
        let hurried = || f64::from_bits(self.output.load(Ordering::Relaxed)).is_finite();
        if !hurried() && self.ending.load(Ordering::Relaxed) && self.is_called() {
            self.hurry();
        }
        hurried()
    }

    /// Returns whether the output of an interrupted run has used up its time.
    pub fn is_late(&self) -> bool {
        let late = self.is_hurried()
            && self.clock.seconds() >= f64::from_bits(self.output.load(Ordering::Relaxed));
        if late {
            self.cut.store(true, Ordering::Relaxed);
        }
        late
    }

    /// Whether the output knows that it is late and may therefore be incomplete.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// Whether the run was cancelled or its time is up.
    fn is_called(&self) -> bool {
        self.cancel.is_some_and(|c| c.load(Ordering::Relaxed))
            || self.clock.seconds() >= f64::from_bits(self.deadline.load(Ordering::Relaxed))
    }

    /// Marks the run as ended by itself. Its output may take the remaining time until `deadline`.
    pub(crate) fn end(&self, deadline: f64) {
        self.deadline.store(deadline.to_bits(), Ordering::Relaxed);
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Marks the run as ended from outside. Only its output remains, with a limited time.
    pub(crate) fn hurry(&self) {
        let until = self.clock.seconds() + OUTPUT;
        self.output.store(until.to_bits(), Ordering::Relaxed);
    }

    /// Begins a step that may be discarded once the clock has passed `deadline`.
    pub(crate) fn arm(&self, deadline: f64) {
        self.deadline.store(deadline.to_bits(), Ordering::Relaxed);
        self.armed.store(true, Ordering::Relaxed);
    }

    /// Ends the step, and returns whether it was discarded.
    pub(crate) fn disarm(&self) -> bool {
        self.armed.store(false, Ordering::Relaxed);
        self.stopped.swap(false, Ordering::Relaxed)
    }
}
