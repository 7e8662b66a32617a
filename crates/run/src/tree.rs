//! Sums that are computed over a fixed binary tree.

use rayon::prelude::*;

/// Returns the sum of `parts`, computed over a binary tree. The function adds neighbouring parts in pairs, then adds
/// the sums of neighbouring pairs, and so on. The result depends only on the parts and their order, and not on the
/// number of threads. Rayon's parallel reductions do not guarantee this for floating-point numbers.
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
