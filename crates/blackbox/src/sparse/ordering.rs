//! An order of elimination that keeps the Cholesky factor sparse.

use std::collections::BTreeSet;

use jensen_density::Pattern;

/// A coordinate with more neighbours than this multiple of √d is eliminated last, regardless of its fill-in (Amestoy,
/// Davis and Duff 2004). Otherwise every earlier step would have to update it.
const DENSE: f64 = 10.0;

/// At every step, the algorithm eliminates a coordinate with the fewest remaining neighbours (exact minimum degree;
/// George and Liu 1989). Ties are broken by the index of the coordinate.
pub(super) fn minimum_degree(pattern: &Pattern) -> Vec<u32> {
    let dim = pattern.dim();
    let dense = (DENSE * (dim as f64).sqrt()).max(16.0) as usize;
    let is_dense: Vec<bool> = (0..dim)
        .map(|i| pattern.neighbours(i).len() > dense)
        .collect();
    let mut neighbours: Vec<Vec<u32>> = (0..dim)
        .map(|i| {
            let list = pattern.neighbours(i).iter().copied();
            list.filter(|&j| !is_dense[j as usize]).collect()
        })
        .collect();
    let mut waiting: BTreeSet<(usize, u32)> = (0..dim)
        .filter(|&i| !is_dense[i])
        .map(|i| (neighbours[i].len(), i as u32))
        .collect();
    let mut order = Vec::with_capacity(dim);
    while let Some((_, next)) = waiting.pop_first() {
        order.push(next);
        let clique = std::mem::take(&mut neighbours[next as usize]);
        for &i in &clique {
            let own = &mut neighbours[i as usize];
            waiting.remove(&(own.len(), i));
            *own = merged(own, &clique, [i, next]);
            waiting.insert((own.len(), i));
        }
    }
    order.extend((0..dim as u32).filter(|&i| is_dense[i as usize]));
    order
}

fn merged(a: &[u32], b: &[u32], without: [u32; 2]) -> Vec<u32> {
    let mut out = [a, b].concat();
    // The stable sort merges two ordered runs.
    out.sort();
    out.dedup();
    out.retain(|i| !without.contains(i));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_eliminated_from_its_leaves() {
        let mut lists = vec![(1..40).collect::<Vec<u32>>()];
        lists.extend((1..40).map(|_| vec![0]));
        let order = minimum_degree(&Pattern::new(lists));
        let global = order.iter().position(|&i| i == 0).unwrap();
        assert!(global >= 38, "{order:?}");
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(sorted.iter().enumerate().all(|(i, &c)| i == c as usize));
    }

    #[test]
    fn lists_merge() {
        assert_eq!(merged(&[1, 3, 5], &[1, 2, 5, 9], [5, 7]), [1, 2, 3, 9]);
        assert_eq!(merged(&[], &[4], [0, 0]), [4]);
    }
}
