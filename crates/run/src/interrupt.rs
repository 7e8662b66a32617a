//! Interruption of a step before it is complete.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::Clock;

/// A signal to the code inside a step that the caller has cancelled the run or that its time is up.
///
/// An algorithm with long steps checks [`is_over`](Self::is_over) before each piece of work. Once it is true, the step
/// returns any result as soon as possible: [`run_interruptibly`](crate::run_interruptibly) discards the step and
/// returns to the previous state. Results and resumed runs therefore do not depend on the point at which a step
/// stopped.
///
/// The output of an interrupted run contains only results that take little time to compute. A long computation checks
/// [`is_late`](Self::is_late) between its parts and omits the remaining parts once it is true.
pub struct Interrupt<'a> {
    cancel: Option<&'a AtomicBool>,
    clock: &'a dyn Clock,
    pub(crate) within_steps: bool,
    /// The clock reading at which the time is up, as the bits of an `f64`.
    deadline: AtomicU64,
    /// Whether the loop can discard the current step.
    armed: AtomicBool,
    /// Whether a call of `is_over` returned true during this step.
    stopped: AtomicBool,
    ending: AtomicBool,
    /// Whether a call of `is_late` returned true, so that the output may be incomplete.
    cut: AtomicBool,
    /// The clock reading from which `is_late` is true, as the bits of an `f64`.
    output: AtomicU64,
}

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

    /// Returns an interrupt that never stops a step. It suits algorithms with short steps.
    pub fn between_steps(self) -> Self {
        Self {
            within_steps: false,
            ..self
        }
    }

    /// Returns whether the current step will be discarded. Once the result is true, it stays true until the step has
    /// ended.
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

    /// Returns whether the caller should compute its output quickly. This is the case if an interrupt ended the run, if
    /// the time is up, or if the user cancelled the output.
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

    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    fn is_called(&self) -> bool {
        self.cancel.is_some_and(|c| c.load(Ordering::Relaxed))
            || self.clock.seconds() >= f64::from_bits(self.deadline.load(Ordering::Relaxed))
    }

    /// Marks the run as ended by its algorithm. Its output may use the time until `deadline`.
    pub(crate) fn end(&self, deadline: f64) {
        self.deadline.store(deadline.to_bits(), Ordering::Relaxed);
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Marks the run as interrupted. Its output may take [`OUTPUT`] seconds.
    pub(crate) fn hurry(&self) {
        let until = self.clock.seconds() + OUTPUT;
        self.output.store(until.to_bits(), Ordering::Relaxed);
    }

    /// Begins a step that the loop may discard once the clock has passed `deadline`.
    pub(crate) fn arm(&self, deadline: f64) {
        self.deadline.store(deadline.to_bits(), Ordering::Relaxed);
        self.armed.store(true, Ordering::Relaxed);
    }

    /// Ends the step and returns whether the loop must discard it.
    pub(crate) fn disarm(&self) -> bool {
        self.armed.store(false, Ordering::Relaxed);
        self.stopped.swap(false, Ordering::Relaxed)
    }
}
