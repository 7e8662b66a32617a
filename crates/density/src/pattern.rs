//! The sparsity pattern of the second derivatives of a density.

/// The pairs of coordinates whose mixed second derivative may be nonzero. The relation is symmetric and does not
/// include the diagonal. These pairs are the edges of the graph of conditional dependence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    starts: Vec<usize>,
    neighbours: Vec<u32>,
}

impl Pattern {
    /// Creates a pattern that keeps a pair only if each of the two coordinates lists the other as a neighbour. If
    /// either list omits a pair, the mixed derivative vanishes, because it does not depend on the order of
    /// differentiation.
    ///
    /// # Panics
    /// Panics if a list contains a number that is not the index of a coordinate, which is a bug in the caller.
    pub fn new(lists: Vec<Vec<u32>>) -> Self {
        let mut lists = lists;
        for (i, list) in lists.iter_mut().enumerate() {
            list.retain(|&j| j as usize != i);
            list.sort_unstable();
            list.dedup();
        }
        let mut starts = vec![0];
        let mut neighbours = Vec::new();
        for (i, list) in lists.iter().enumerate() {
            let mutual = |j: &&u32| lists[**j as usize].binary_search(&(i as u32)).is_ok();
            neighbours.extend(list.iter().filter(mutual));
            starts.push(neighbours.len());
        }
        Self { starts, neighbours }
    }

    /// Returns the number of coordinates.
    pub fn dim(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the neighbours of a coordinate, in ascending order.
    pub fn neighbours(&self, coordinate: usize) -> &[u32] {
        &self.neighbours[self.starts[coordinate]..self.starts[coordinate + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_one_that_both_name() {
        let pattern = Pattern::new(vec![vec![2, 1, 1, 0], vec![0], vec![]]);
        assert_eq!(pattern.dim(), 3);
        assert_eq!(pattern.neighbours(0), [1]);
        assert_eq!(pattern.neighbours(1), [0]);
        assert!(pattern.neighbours(2).is_empty());
    }
}
