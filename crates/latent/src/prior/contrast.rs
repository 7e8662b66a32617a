//! Intrinsic fields whose flat directions are constrained to zero. An intrinsic field with structure matrix S, conditioned on
//! being orthogonal to its flat directions N, is `B u` with `u ~ N(0, (BᵀSB)⁻¹)` for any basis B of the complement of N. Its
//! covariance is the generalised inverse S⁻. The variables u have a proper prior.
//!
//! If the field is flat only in the levels of connected components, as `icar` and `rw1` are, B consists of Haar wavelets on
//! the nodes of each component in the order of a breadth-first search: the difference between the means of two halves of a
//! range of nodes. They are orthonormal, so BᵀSB has no larger condition number than S on the complement. A node is in about
//! log₂(nodes) of them, and most pairs of wavelets have no entry in BᵀSB. Otherwise B consists of the eigenvectors of S, and
//! BᵀSB is diagonal.

use std::collections::VecDeque;

use faer::Side;

use super::field::{Field, FieldKind, Triplets};
use crate::{Dense, Error, Sparse};

/// Most nodes of a field with other flat directions than levels. Its basis is dense.
const MOST_DENSE: usize = 500;

/// Entries of BᵀSB below this share of the largest entry of S are 0 up to rounding.
const ROUNDING: f64 = 1e-13;

/// The coefficients and weights of each node.
#[derive(Clone, Debug, PartialEq)]
pub struct Contrast {
    /// The pairs of a coefficient and its weight at each node.
    pub rows: Vec<Vec<(usize, f64)>>,
    /// Number of coefficients.
    pub columns: usize,
}

impl Contrast {
    /// Returns the basis in which every node is a coefficient.
    pub(super) fn identity(nodes: usize) -> Self {
        Self {
            rows: (0..nodes).map(|node| vec![(node, 1.0)]).collect(),
            columns: nodes,
        }
    }

    /// Returns the nodes and weights of each coefficient.
    fn columns(&self) -> Vec<Vec<(usize, f64)>> {
        let mut columns = vec![Vec::new(); self.columns];
        for (node, row) in self.rows.iter().enumerate() {
            for (column, weight) in row {
                columns[*column].push((node, *weight));
            }
        }
        columns
    }

    /// Returns the Haar wavelets of lists of nodes, and a coefficient for each node that is in no list.
    fn haar(nodes: usize, lists: &[Vec<usize>]) -> Self {
        let mut out = Self {
            rows: vec![Vec::new(); nodes],
            columns: 0,
        };
        for list in lists {
            let mut open = vec![list.as_slice()];
            while let Some(range) = open.pop() {
                let (left, right) = range.split_at(range.len() / 2);
                if left.is_empty() {
                    continue;
                }
                let (l, r) = (left.len() as f64, right.len() as f64);
                let weights = [(r / (l * (l + r))).sqrt(), -(l / (r * (l + r))).sqrt()];
                for (half, weight) in [left, right].into_iter().zip(weights) {
                    half.iter()
                        .for_each(|node| out.rows[*node].push((out.columns, weight)));
                    open.push(half);
                }
                out.columns += 1;
            }
        }
        let mut listed = vec![false; nodes];
        lists.iter().flatten().for_each(|node| listed[*node] = true);
        for node in (0..nodes).filter(|node| !listed[*node]) {
            out.rows[node].push((out.columns, 1.0));
            out.columns += 1;
        }
        out
    }

    /// Returns the eigenvectors of a structure matrix with `flat` flat directions.
    fn eigenvectors(structure: &Sparse, flat: usize) -> Result<Self, Error> {
        let n = structure.rows;
        if n > MOST_DENSE {
            return Err(Error::Unsupported(format!(
                "its {n} nodes are more than {MOST_DENSE}, and it is flat in more than its level; use `rw1`, `icar` or \
                 `grid(rw1, …)`, or fewer nodes"
            )));
        }
        let mut dense = Dense::zeros(n, n);
        for j in 0..n {
            let (rows, values) = structure.col(j);
            for (i, x) in rows.iter().zip(values) {
                dense.data[j * n + i] = *x;
            }
        }
        let eigen = (dense.view().self_adjoint_eigen(Side::Lower))
            .map_err(|_| Error::Prior("the structure matrix has no eigenvectors".to_owned()))?;
        // The eigenvalues are in increasing order, so the flat directions come first.
        let row = |i: usize| {
            (flat..n)
                .map(|k| (k - flat, eigen.U()[(i, k)]))
                .collect::<Vec<_>>()
        };
        Ok(Self {
            rows: (0..n).map(row).collect(),
            columns: n - flat,
        })
    }

    /// Computes the entries of BᵀSB.
    fn structure(&self, structure: &Sparse) -> Triplets {
        let largest = structure.value.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        let mut entries = Vec::new();
        let mut sums = vec![0.0; self.columns];
        let mut moved = vec![0.0; structure.rows];
        for (a, column) in self.columns().into_iter().enumerate() {
            let mut nodes = Vec::new();
            for (j, weight) in column {
                let (rows, values) = structure.col(j);
                for (i, x) in rows.iter().zip(values) {
                    nodes.push(*i);
                    moved[*i] += weight * x;
                }
            }
            nodes.sort_unstable();
            nodes.dedup();
            let mut found = Vec::new();
            for node in nodes {
                let value = std::mem::take(&mut moved[node]);
                for (b, weight) in self.rows[node].iter().filter(|(b, _)| *b >= a) {
                    found.push(*b);
                    sums[*b] += value * weight;
                }
            }
            found.sort_unstable();
            found.dedup();
            for b in found {
                let value = std::mem::take(&mut sums[b]);
                if value.abs() > ROUNDING * largest || a == b {
                    entries.push((a, b, value));
                }
                if value.abs() > ROUNDING * largest && a != b {
                    entries.push((b, a, value));
                }
            }
        }
        entries
    }
}

/// Returns the nodes of each flat level in the order of a breadth-first search. Returns `None` if a flat direction is not the
/// level of a connected component.
fn levels(structure: &Sparse, flat: &Dense) -> Option<Vec<Vec<usize>>> {
    let nodes = structure.rows;
    let mut seen = vec![false; nodes];
    let mut lists = Vec::with_capacity(flat.cols);
    for k in 0..flat.cols {
        let column = flat.col(k);
        let first = column.iter().position(|x| *x != 0.0)?;
        let mut list = Vec::new();
        let mut open = VecDeque::from([first]);
        if std::mem::replace(&mut seen[first], true) {
            return None;
        }
        while let Some(node) = open.pop_front() {
            list.push(node);
            let (rows, values) = structure.col(node);
            for (other, _) in rows.iter().zip(values).filter(|(_, x)| **x != 0.0) {
                if !std::mem::replace(&mut seen[*other], true) {
                    open.push_back(*other);
                }
            }
        }
        let constant = list.iter().all(|node| column[*node] == column[first]);
        let inside = column.iter().filter(|x| **x != 0.0).count();
        if !constant || inside != list.len() {
            return None;
        }
        lists.push(list);
    }
    Some(lists)
}

impl Field {
    /// Returns the field that is constrained to be orthogonal to its flat directions, as a proper field of coefficients, and
    /// its basis. A field without flat directions does not change.
    ///
    /// # Errors
    /// Fails if an intrinsic field has more than one structure matrix, or too many nodes.
    pub(super) fn constrained(self) -> Result<(Self, Contrast), Error> {
        let Some(flat) = self.flat() else {
            let nodes = self.len();
            return Ok((self, Contrast::identity(nodes)));
        };
        if !matches!(self.family, FieldKind::Scaled { .. }) {
            return Err(Error::Unsupported(
                "its flat directions cannot be constrained; use `rw1`, `rw2`, `icar`, `precision`, `grid` or a field \
                 without flat directions"
                    .to_owned(),
            ));
        }
        let contrast = match levels(&self.pattern, flat) {
            Some(lists) => Contrast::haar(self.len(), &lists),
            None => Contrast::eigenvectors(&self.pattern, flat.cols)?,
        };
        let none = Dense::zeros(contrast.columns, 0);
        let entries = contrast.structure(&self.pattern);
        let mut field = Self::scaled(contrast.columns, entries, none, None, None)?;
        field.settings_mut().clone_from_slice(self.settings());
        Ok((field, contrast))
    }
}
