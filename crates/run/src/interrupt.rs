//! A signal that interrupts a step before it is complete.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::Clock;

/// A signal for the code inside a step. The signal indicates that the caller has cancelled the run or that the time
/// limit has passed.
///
/// An algorithm with long steps checks [`is_over`](Self::is_over) before each piece of work. As soon as `is_over`
/// returns true, the step should return an arbitrary result quickly. [`run_interruptibly`](crate::run_interruptibly)
/// then discards the result and restores the previous state. Results and resumed runs therefore do not depend on the
/// moment of the interruption.
///
/// The output of an interrupted run should contain only results that can be computed quickly. A long computation checks
/// [`is_late`](Self::is_late) between its parts and skips the remaining parts if `is_late` returns true.
pub struct Interrupt<'a> {
    cancel: Option<&'a AtomicBool>,
    clock: &'a dyn Clock,
    pub(crate) within_steps: bool,
    /// The clock reading in seconds at which the time limit is reached, stored as the bits of an `f64`.
    deadline: AtomicU64,
    /// Whether the loop can discard the current step.
    armed: AtomicBool,
    /// Whether `is_over` has returned true during the current step.
    stopped: AtomicBool,
    ending: AtomicBool,
    /// Whether `is_late` has returned true. If it has, the output may be incomplete.
    cut: AtomicBool,
    /// The clock reading in seconds after which `is_late` returns true, stored as the bits of an `f64`.
    output: AtomicU64,
}

const OUTPUT: f64 = 0.2;

impl<'a> Interrupt<'a> {
    /// Creates an interrupt that reads the cancellation flag `cancel` and the clock.
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

    /// Returns an interrupt that never stops a step before it is complete. Use it for algorithms with short steps.
    pub fn between_steps(self) -> Self {
        Self {
            within_steps: false,
            ..self
        }
    }

    /// Returns whether the current step will be discarded. After the function has returned true, it continues to return
    /// true until the end of the step.
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

    /// Returns whether the caller should compute its output quickly. This is the case if an interruption ended the run,
    /// if the time limit has passed, or if the user cancelled the computation of the output.
    pub fn is_hurried(&self) -> bool {
        let hurried = || f64::from_bits(self.output.load(Ordering::Relaxed)).is_finite();
        if !hurried() && self.ending.load(Ordering::Relaxed) && self.is_called() {
            self.hurry();
        }
        hurried()
    }

    /// Returns whether the time that is allowed for the output of an interrupted run has passed.
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

    /// Records that the algorithm itself ended the run. The computation of the output may then continue until
    /// `deadline`.
    pub(crate) fn end(&self, deadline: f64) {
        self.deadline.store(deadline.to_bits(), Ordering::Relaxed);
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Records that the run was interrupted. The computation of the output may then take [`OUTPUT`] seconds.
    pub(crate) fn hurry(&self) {
        let until = self.clock.seconds() + OUTPUT;
        self.output.store(until.to_bits(), Ordering::Relaxed);
    }

    /// Begins a step that the loop may discard if the clock passes `deadline`.
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
