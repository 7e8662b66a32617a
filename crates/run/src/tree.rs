//! Sums over a fixed binary tree.

use rayon::prelude::*;

/// Returns the sum of `parts`, computed over a binary tree: neighbouring parts are added in pairs, then the sums of the
/// pairs are added in pairs. The bits of the sum depend only on the parts and their order, and not on the worker that
/// adds them. A parallel reduction does not guarantee this.
pub fn tree_sum<T: Default + Send>(
    mut parts: Vec<T>,
    plus: impl Fn(T, T) -> T + Sync,
) -> Option<T> {
    while parts.len() > 1 {
        parts = parts
            .par_chunks_mut(2)
            .map(|pair| {
                let mut pair = pair.iter_mut().map(std::mem::take);
                let first = pair.next().unwrap_or_default();
                match pair.next() {
                    Some(second) => plus(first, second),
                    None => first,
                }
            })
            .collect();
    }
    parts.pop()
}
