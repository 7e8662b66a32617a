//! Antithetic pairs of draws, in blocks of bounded size.

use crate::oracle::Stream;

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
