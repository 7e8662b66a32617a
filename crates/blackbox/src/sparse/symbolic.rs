//! The nonzeros of the Cholesky factor of a matrix with a given sparsity pattern.

use jensen_density::Pattern;

use super::colouring::Colouring;
use super::ordering::minimum_degree;

/// The nonzeros of a lower triangular factor, stored by columns. Coordinate `order[j]` corresponds to column j and row
/// j. The nonzeros of column j are `starts[j]..starts[j + 1]`: the diagonal element, followed by the rows below it in
/// ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Symbolic {
    pub(super) order: Vec<u32>,
    pub(super) starts: Vec<usize>,
    pub(super) rows: Vec<u32>,
}

impl Symbolic {
    /// Orders the columns so that the factor is sparse. Returns `None` if the factor has more than `most` nonzeros.
    pub(crate) fn new(pattern: &Pattern, most: usize) -> Option<Self> {
        let dim = pattern.dim();
        let order = minimum_degree(pattern);
        let mut position = vec![0u32; dim];
        for (j, &coordinate) in order.iter().enumerate() {
            position[coordinate as usize] = j as u32;
        }
        // A column inherits rows from those earlier columns whose first row below the diagonal is this column.
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); dim];
        let mut met = vec![u32::MAX; dim];
        let (mut starts, mut rows) = (vec![0], Vec::new());
        for j in 0..dim {
            let own = j as u32;
            let first = rows.len();
            rows.push(own);
            met[j] = own;
            let neighbours = pattern.neighbours(order[j] as usize).iter();
            let mut column: Vec<u32> = neighbours.map(|&n| position[n as usize]).collect();
            for &child in &children[j] {
                let child = child as usize;
                column.extend_from_slice(&rows[starts[child] + 1..starts[child + 1]]);
            }
            column.retain(|&i| i > own && std::mem::replace(&mut met[i as usize], own) != own);
            column.sort_unstable();
            if let Some(&parent) = column.first() {
                children[parent as usize].push(own);
            }
            rows.extend_from_slice(&column);
            if rows.len() > most {
                return None;
            }
            starts.push(rows.len());
            debug_assert!(rows[first] == own);
        }
        Some(Self {
            order,
            starts,
            rows,
        })
    }

    pub(crate) fn dense(dim: usize) -> Self {
        let mut starts = vec![0];
        let mut rows = Vec::with_capacity(dim * (dim + 1) / 2);
        for j in 0..dim as u32 {
            rows.extend(j..dim as u32);
            starts.push(rows.len());
        }
        let order = (0..dim as u32).collect();
        Self {
            order,
            starts,
            rows,
        }
    }

    pub(crate) fn dim(&self) -> usize {
        self.order.len()
    }

    pub(crate) fn nonzeros(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn coordinate(&self, row: usize) -> usize {
        self.order[row] as usize
    }

    pub(crate) fn diagonal(&self, column: usize) -> usize {
        self.starts[column]
    }

    pub(crate) fn below(&self, column: usize) -> impl Iterator<Item = (usize, usize)> + use<'_> {
        let nonzeros = self.starts[column] + 1..self.starts[column + 1];
        nonzeros.map(|p| (p, self.rows[p] as usize))
    }

    pub(crate) fn row(&self, nonzero: usize) -> u32 {
        self.rows[nonzero]
    }

    /// Recovers the nonzeros of a symmetric matrix with this pattern from its products with the directions of a
    /// colouring.
    pub(crate) fn gathered(
        &self,
        colouring: &Colouring,
        pattern: Option<&Pattern>,
        products: &[f64],
    ) -> Vec<f64> {
        let mut out = vec![0.0; self.nonzeros()];
        for j in 0..self.dim() {
            let c = self.coordinate(j);
            out[self.diagonal(j)] = colouring.element(products, c, c);
            let neighbours = pattern.map(|pattern| pattern.neighbours(c));
            for (p, i) in self.below(j) {
                let other = self.coordinate(i);
                // The factor has fill-in, that is, nonzeros at positions where the matrix has none.
                if neighbours.is_none_or(|list| list.binary_search(&(other as u32)).is_ok()) {
                    out[p] = colouring.element(products, c, other);
                }
            }
        }
        out
    }

    pub(crate) fn column(&self, column: usize) -> &[u32] {
        &self.rows[self.starts[column]..self.starts[column + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain has no fill-in, whatever the order of its coordinates. A ring has one additional nonzero per column.
    #[test]
    fn chains_and_rings_stay_sparse() {
        let n = 50u32;
        let ring = |i: u32| vec![(i + n - 1) % n, (i + 1) % n];
        let pattern = Pattern::new((0..n).map(ring).collect());
        let symbolic = Symbolic::new(&pattern, usize::MAX).unwrap();
        assert!(
            symbolic.nonzeros() <= 3 * n as usize,
            "{}",
            symbolic.nonzeros()
        );
        let chain = |i: u32| {
            ring(i)
                .into_iter()
                .filter(|&j| i.abs_diff(j) == 1)
                .collect()
        };
        let pattern = Pattern::new((0..n).map(chain).collect());
        let symbolic = Symbolic::new(&pattern, usize::MAX).unwrap();
        assert_eq!(symbolic.nonzeros(), 2 * n as usize - 1);
        assert_eq!(Symbolic::new(&pattern, 60), None);
    }
}
