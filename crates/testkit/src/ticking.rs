//! Time that passes by being looked at.

use std::sync::atomic::{AtomicU64, Ordering};

/// A clock that tells `step` more seconds each time it is read.
pub fn ticking(step: f64) -> impl Fn() -> f64 + Sync {
    let ticks = AtomicU64::new(0);
    move || step * (1 + ticks.fetch_add(1, Ordering::Relaxed)) as f64
}
