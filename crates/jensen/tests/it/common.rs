//! What tests of studies share.

use jensen::run::Silent;
use jensen::study::{Around, MEMORY_LIMIT, Place};

/// Runs a study that leaves nothing behind.
pub fn alone<T>(run: impl FnOnce(Around<'_>) -> T) -> T {
    run(Around {
        place: Place::Nowhere,
        checkpoint_every: None,
        memory_limit: MEMORY_LIMIT,
        clock: &|| 0.0,
        cancel: None,
        partial: true,
        observer: &mut Silent,
    })
}
