//! A clock for tests that advances with each reading.

use std::sync::atomic::{AtomicU64, Ordering};

/// Returns a clock that adds `step` seconds at each reading.
pub fn ticking(step: f64) -> impl Fn() -> f64 + Sync {
    let ticks = AtomicU64::new(0);
    move || step * (1 + ticks.fetch_add(1, Ordering::Relaxed)) as f64
}
