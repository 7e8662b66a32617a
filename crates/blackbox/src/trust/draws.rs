//! Antithetic pairs of draws, in blocks of bounded size.

use crate::oracle::Stream;

/// The number of values of a block, which take 4 MiB.
const BLOCK: usize = 1 << 19;

/// The largest number of lanes of a block.
pub(crate) const BLOCK_LANES: usize = 1024;

/// Returns the number of lanes in a block. The number is even and bounded, so that memory grows only with the
/// dimension.
pub(crate) fn block_lanes(rows: usize) -> usize {
    (BLOCK / rows.max(1)).clamp(32, BLOCK_LANES) & !1
}

/// Fills some columns of a `rows × lanes` matrix, where `columns` contains the first column and `lanes`. Each draw is
/// followed by its antithetic partner.
pub(crate) fn mirrored(
    stream: Stream,
    first: usize,
    rows: usize,
    pairs: usize,
    columns: (usize, usize),
    out: &mut [f64],
) {
    let (column, lanes) = columns;
    let base = stream.lanes(first, rows, pairs);
    for (row, base) in out.chunks_mut(lanes).zip(base.chunks(pairs)) {
        for (pair, x) in row[column..column + 2 * pairs].chunks_mut(2).zip(base) {
            pair[0] = *x;
            pair[1] = -x;
        }
    }
}
