//! The time limit for the output of an interrupted run.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use jensen_run::{Clock, Control};

const DRAWS: f64 = 0.2;

/// The time limit for the output of a run that was cancelled or has exceeded its time limit.
pub struct Haste<'a> {
    watched: Option<(&'a dyn Clock, Option<&'a AtomicBool>)>,
    deadline: f64,
    since: Cell<Option<f64>>,
}

impl<'a> Haste<'a> {
    /// Returns a time limit that is never reached.
    pub fn none() -> Self {
        Self {
            watched: None,
            deadline: f64::INFINITY,
            since: Cell::new(None),
        }
    }

    /// Returns the time limit for a run that begins at the time of the call.
    pub fn of(control: &Control<'a>) -> Self {
        let before = control.resume.as_ref().map_or(0.0, |stored| stored.seconds);
        let left = control.budget.left().unwrap_or(f64::INFINITY);
        Self {
            watched: Some((control.clock, control.cancel)),
            deadline: control.clock.seconds() + (left - before),
            since: Cell::new(None),
        }
    }

    /// Returns whether the user or the time limit ended the run, so that the output must be computed quickly.
    pub fn is_hurried(&self) -> bool {
        self.since().is_some()
    }

    /// Returns whether the time that is allowed for the output of an interrupted run has passed.
    pub fn is_late(&self) -> bool {
        self.since()
            .zip(self.watched)
            .is_some_and(|(since, (clock, _))| clock.seconds() >= since + DRAWS)
    }

    fn since(&self) -> Option<f64> {
        let (clock, cancel) = self.watched?;
        if self.since.get().is_none() {
            let now = clock.seconds();
            let cancelled = cancel.is_some_and(|c| c.load(Ordering::Relaxed));
            self.since
                .set((cancelled || now >= self.deadline).then_some(now));
        }
        self.since.get()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use jensen_run::{Budget, Silent};

    use super::*;

    #[test]
    fn time_that_is_up_leaves_a_moment() {
        let time = AtomicU64::new(0);
        let clock = || f64::from_bits(time.load(Ordering::Relaxed));
        let mut silent = Silent;
        let budget = Budget {
            max_seconds: Some(2.0),
            ..Budget::iterations(1)
        };
        let haste = Haste::of(&Control::new(budget, &clock, &mut silent));
        let seen = |seconds: f64| {
            time.store(seconds.to_bits(), Ordering::Relaxed);
            (haste.is_hurried(), haste.is_late())
        };
        assert_eq!(seen(1.9), (false, false));
        assert_eq!(seen(2.0), (true, false));
        assert_eq!(seen(2.0 + 2.0 * DRAWS), (true, true));
    }

    #[test]
    fn a_run_that_is_cancelled_is_in_a_hurry() {
        let (clock, stop) = (|| 0.0, AtomicBool::new(false));
        let mut silent = Silent;
        let mut control = Control::new(Budget::iterations(1), &clock, &mut silent);
        control.cancel = Some(&stop);
        let haste = Haste::of(&control);
        assert!(!haste.is_hurried());
        stop.store(true, Ordering::Relaxed);
        assert!(haste.is_hurried() && !haste.is_late());
        assert!(!Haste::none().is_hurried());
    }
}
