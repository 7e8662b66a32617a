//! Stopping in the middle of a step.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::Clock;

/// Tells what works inside a step that the step is not wanted any more: the caller has cancelled the run, or its seconds
/// are used up.
///
/// An algorithm whose steps are long asks [`is_over`](Self::is_over) before each piece of work and answers anything, fast,
/// from then on: [`run_interruptibly`](crate::run_interruptibly) throws the step away and goes back to the state before it, so
/// that neither results nor resumed runs depend on where a step was stopped.
pub struct Interrupt<'a> {
    cancel: Option<&'a AtomicBool>,
    clock: &'a dyn Clock,
    /// When the clock's seconds are used up, as bits.
    deadline: AtomicU64,
    /// Whether there is a state to go back to.
    armed: AtomicBool,
    /// Whether a piece of work was told.
    told: AtomicBool,
}

impl<'a> Interrupt<'a> {
    /// One that heeds a flag and the time that a run may take.
    pub fn new(cancel: Option<&'a AtomicBool>, clock: &'a dyn Clock) -> Self {
        Self {
            cancel,
            clock,
            deadline: AtomicU64::new(f64::INFINITY.to_bits()),
            armed: AtomicBool::new(false),
            told: AtomicBool::new(false),
        }
    }

    /// Whether the present step is in vain. Once it is, it stays so until the step has ended.
    pub fn is_over(&self) -> bool {
        if !self.armed.load(Ordering::Relaxed) {
            return false;
        }
        let cancelled = || self.cancel.is_some_and(|c| c.load(Ordering::Relaxed));
        let late = || self.clock.seconds() >= f64::from_bits(self.deadline.load(Ordering::Relaxed));
        let over = self.told.load(Ordering::Relaxed) || cancelled() || late();
        if over {
            self.told.store(true, Ordering::Relaxed);
        }
        over
    }

    /// A step begins that may be thrown away, from `deadline` on for its time.
    pub(crate) fn arm(&self, deadline: f64) {
        self.deadline.store(deadline.to_bits(), Ordering::Relaxed);
        self.armed.store(true, Ordering::Relaxed);
    }

    /// The step has ended: whether it was in vain.
    pub(crate) fn disarm(&self) -> bool {
        self.armed.store(false, Ordering::Relaxed);
        self.told.swap(false, Ordering::Relaxed)
    }
}
