//! Functions that the tests of several fit jobs share.

use jensen::job::{Around, MEMORY_LIMIT, ResultFolder};
use jensen::run::Silent;

/// Runs a fit job that stores no files.
pub fn alone<T>(run: impl FnOnce(Around<'_>) -> T) -> T {
    run(Around {
        results: ResultFolder::None,
        checkpoint_every: None,
        memory_limit: MEMORY_LIMIT,
        clock: &|| 0.0,
        cancel: None,
        partial: true,
        observer: &mut Silent,
    })
}
