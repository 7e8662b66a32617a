//! Sizes that change the time and the memory of a fit, but not its accuracy, and the cap
//! of inner searches.
//!
//! All sizes depend on the model alone and not on the machine, so that sums over lanes are the same for any number of
//! threads.

/// The number of values (coordinates times lanes) that a call of the density takes. They take 8 MiB, so that the rows
/// of a call stay in the second-level or third-level cache.
const VALUES: usize = 1 << 20;

/// The largest number of lanes per call of the density. Memory grows with the lanes. With 64 to 2048 lanes in different
/// calls, 427 fits of the corpora took as long as with this number.
pub(crate) const LANES: usize = 256;

/// The smallest number of lanes per call of the density, and the number of lanes of a row of a structured family. Four
/// vectors of eight lanes hide the latency of their operations, and a thousand rows take 256 KiB.
pub(crate) const WIDTH: usize = 32;

/// The number of elementary operations per call of the density. A call takes a quarter of a second on one thread.
/// Jensen checks the clock only between calls.
pub(crate) const CALL: u64 = 1 << 28;

/// The smallest number of elementary operations per thread. For fewer operations, distributing the work over threads
/// costs more time than it saves.
pub(crate) const GRAIN: usize = 1 << 14;

/// The number of values that a method may keep for later use: directions of a Krylov space, the path of a search, the
/// draws of chains. They take 128 MiB.
pub(crate) const KEPT: usize = 1 << 24;

/// The largest number of values (points times coordinates) in a check of draws. The density evaluates them in a tenth of a
/// second, which a refinement also takes.
pub(crate) const CHECK: usize = 1 << 20;

/// The largest number of iterations of an inner search: Newton's method, or the iteration of a fixed point. It is a cap.
/// Each search ends when it has converged, which takes a few iterations, or a few dozen from a poor start.
pub(crate) const ITERATIONS: usize = 100;

/// Returns the even number of lanes per call for `rows` values per lane.
pub(crate) fn lanes(rows: usize) -> usize {
    (VALUES / rows.max(1)).clamp(WIDTH, LANES) & !1
}

/// Returns the number of lanes per call for a density that takes `work` operations per lane. The work of a solver is
/// not known, and the function assumes some milliseconds.
pub(crate) fn lanes_of_work(work: Option<u64>) -> usize {
    let lanes = work.map_or(2 * WIDTH as u64, |work| CALL / work.max(1));
    usize::try_from(lanes).map_or(LANES, |lanes| lanes.clamp(WIDTH, LANES))
}

/// The number of Hessian-vector products for an averaged Hessian. They are divided among at least [`HESSIAN_DRAWS`]
/// draws.
const PRODUCTS: usize = 1 << 14;

/// The smallest number of draws for an averaged Hessian. Its relative error is then about a quarter.
const HESSIAN_DRAWS: usize = 16;

/// Returns the number of draws for an averaged Hessian that takes `columns` products per draw.
pub(crate) fn hessian_draws(columns: usize, lanes: usize) -> usize {
    (PRODUCTS / columns).max(HESSIAN_DRAWS).min(lanes / 2)
}
