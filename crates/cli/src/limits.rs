//! Stops the interpreter if it exceeds a limit on time or memory, or if the user presses Ctrl-C.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jensen::format_bytes;
use jensen::stan::Halt;

use crate::terminal::STOP;

/// The additional time after a limit has been exceeded. A run that reaches its time limit needs this time to compute
/// its draws. An infinite loop is stopped when the additional time is over.
const GRACE: Duration = Duration::from_millis(700);

/// A time limit. The time for building the model and the time for the run are counted separately.
struct Watch {
    begun: Instant,
    /// The time of the first check that found that the limit was exceeded, or that the user had pressed Ctrl-C.
    passed: Option<Instant>,
}

static WATCH: Mutex<Option<Watch>> = Mutex::new(None);

/// Starts counting the time.
pub fn begin() {
    *WATCH.lock().unwrap_or_else(PoisonError::into_inner) = Some(Watch {
        begun: Instant::now(),
        passed: None,
    });
}

/// Returns the halt that ends evaluations of the interpreter. Evaluations end after the given time in seconds, when
/// they need more than the given memory in bytes, or after Ctrl-C.
pub fn halt(seconds: Option<f64>, bytes: u64) -> Halt {
    begin();
    let before = resident().unwrap_or(0);
    Halt::new(move || out_of_time(seconds).or_else(|| out_of_memory(before, bytes))).apart(apart)
}

/// Runs work on a separate thread. The work may be abandoned before it has finished.
pub fn apart(work: Box<dyn FnOnce() + Send>) {
    std::thread::spawn(work);
}

fn out_of_time(seconds: Option<f64>) -> Option<String> {
    let mut watch = WATCH.lock().unwrap_or_else(PoisonError::into_inner);
    let watch = watch.as_mut()?;
    let stopped = STOP.load(Ordering::Relaxed);
    let late = seconds.filter(|limit| watch.begun.elapsed().as_secs_f64() > *limit);
    if !stopped && late.is_none() {
        return None;
    }
    let since = *watch.passed.get_or_insert_with(Instant::now);
    if since.elapsed() < GRACE {
        return None;
    }
    Some(match late {
        Some(limit) => format!("ended by --max-seconds {limit}"),
        None => "interrupted".to_owned(),
    })
}

/// The amount of memory, in bytes, that is never refused. This amount is enough for any small model. A smaller limit is
/// applied only to sizes that are known in advance.
const UNSEEN: u64 = 64 << 20;

fn out_of_memory(before: u64, limit: u64) -> Option<String> {
    let taken = resident()?.saturating_sub(before);
    if taken <= limit.max(UNSEEN) {
        return None;
    }
    Some(format!(
        "the run uses {} of memory, but the limit is {} (--memory-limit)",
        format_bytes(taken),
        format_bytes(limit)
    ))
}

/// Returns the memory that this process uses in bytes, or `None` if the operating system does not report it.
#[cfg(target_os = "linux")]
fn resident() -> Option<u64> {
    const PAGE: u64 = 4096;
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE)
}

#[cfg(not(target_os = "linux"))]
fn resident() -> Option<u64> {
    None
}
