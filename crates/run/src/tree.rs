//! Sums over a fixed tree.

use rayon::prelude::*;

/// Returns the sum of parts of any type over a binary tree: first neighbouring parts in pairs, then pairs of pairs. The
/// bits depend only on the parts and their order, and not on which worker adds them. A reduction across workers does
/// not guarantee this.
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
