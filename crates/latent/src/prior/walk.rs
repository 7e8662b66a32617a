//! Random walks over the nodes of a line or a ring.
//!
//! On a line, the distances d between neighbouring nodes may differ. The increments of a first-order walk have the
//! variance d/τ. A second-order walk is the Galerkin approximation of integrated Brownian motion by piecewise linear
//! functions (Lindgren and Rue 2008). For three neighbours at the distances d and e, its second difference
//! `(z₃ − z₂)/e − (z₂ − z₁)/d` has the variance (d + e)/2τ. With distances of 1, both are the usual walks.

use super::field::{Field, Triplets, add_square, laplacian, levels};
use super::graph::Graph;
use crate::{Dense, Error};

#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    pub(super) order: i32,
    pub(super) nodes: usize,
    pub(super) cyclic: bool,
    /// The number of nodes that an evenly spaced walk over the same distance has.
    pub(super) length: f64,
    /// The logarithm of the product of the structure matrix's non-zero eigenvalues.
    pub(super) log_determinant: f64,
}

impl Walk {
    /// Returns a walk with `nodes` evenly spaced nodes.
    pub(super) fn shortened(self, nodes: usize) -> Result<Field, Error> {
        match self.order {
            1 => Field::rw1(nodes, self.cyclic, None),
            _ => Field::rw2(nodes, self.cyclic, None),
        }
    }

    fn ring(order: i32, nodes: usize) -> Self {
        Self {
            order,
            nodes,
            cyclic: true,
            length: nodes as f64,
            log_determinant: f64::from(2 * order) * (nodes as f64).ln(),
        }
    }

    fn line(order: i32, gaps: &[f64], log_determinant: f64) -> Self {
        Self {
            order,
            nodes: gaps.len() + 1,
            cyclic: false,
            length: gaps.iter().sum::<f64>() + 1.0,
            log_determinant,
        }
    }
}

fn few(nodes: usize, least: usize) -> Result<(), Error> {
    match nodes < least {
        false => Ok(()),
        true => Err(Error::Prior(format!(
            "a random walk of this order needs at least {least} nodes, but there are {nodes}"
        ))),
    }
}

fn log_sum(values: impl Iterator<Item = f64>) -> f64 {
    let logs: Vec<f64> = values.map(f64::ln).collect();
    jensen_math::sum::pairwise_sum(&logs)
}

impl Field {
    /// Returns a first-order random walk along a path or a ring of nodes.
    ///
    /// # Errors
    /// Fails if a path has fewer than two nodes or a ring fewer than three.
    pub fn rw1(nodes: usize, cyclic: bool, precision: Option<f64>) -> Result<Self, Error> {
        if !cyclic {
            return Self::rw1_over(&vec![1.0; nodes.saturating_sub(1)], precision);
        }
        few(nodes, 3)?;
        let graph = Graph::path(nodes, true);
        let (entries, null) = (laplacian(&graph), levels(&graph));
        Self::scaled(nodes, entries, null, precision, Some(Walk::ring(1, nodes)))
    }

    /// Returns a first-order random walk over nodes with these distances between neighbours. Its increments have the
    /// variance distance/τ.
    ///
    /// # Errors
    /// Fails if there are fewer than two nodes.
    pub fn rw1_over(gaps: &[f64], precision: Option<f64>) -> Result<Self, Error> {
        let nodes = gaps.len() + 1;
        few(nodes, 2)?;
        let mut entries = Triplets::new();
        for (i, d) in gaps.iter().enumerate() {
            add_square(&mut entries, 1.0 / d, &[(i, -1.0), (i + 1, 1.0)]);
        }
        let null = Dense::from_fn(nodes, 1, |_, _| 1.0);
        // By the matrix-tree theorem, the product of the non-zero eigenvalues is the number of nodes times the product
        // of the weights 1/d.
        let log_determinant = (nodes as f64).ln() - log_sum(gaps.iter().copied());
        let walk = Walk::line(1, gaps, log_determinant);
        Self::scaled(nodes, entries, null, precision, Some(walk))
    }

    /// Returns a second-order random walk along a path or a ring of nodes.
    ///
    /// # Errors
    /// Fails if a path has fewer than three nodes or a ring fewer than four.
    pub fn rw2(nodes: usize, cyclic: bool, precision: Option<f64>) -> Result<Self, Error> {
        if !cyclic {
            return Self::rw2_over(&vec![1.0; nodes.saturating_sub(1)], precision);
        }
        few(nodes, 4)?;
        let mut entries = Triplets::new();
        for i in 0..nodes {
            let (before, after) = ((i + nodes - 1) % nodes, (i + 1) % nodes);
            add_square(&mut entries, 1.0, &[(before, 1.0), (i, -2.0), (after, 1.0)]);
        }
        let null = Dense::from_fn(nodes, 1, |_, _| 1.0);
        Self::scaled(nodes, entries, null, precision, Some(Walk::ring(2, nodes)))
    }

    /// Returns a second-order random walk over nodes with these distances between neighbours.
    ///
    /// # Errors
    /// Fails if there are fewer than three nodes.
    pub fn rw2_over(gaps: &[f64], precision: Option<f64>) -> Result<Self, Error> {
        let nodes = gaps.len() + 1;
        few(nodes, 3)?;
        let mut entries = Triplets::new();
        for (i, pair) in gaps.windows(2).enumerate() {
            let (d, e) = (1.0 / pair[0], 1.0 / pair[1]);
            let difference = [(i, d), (i + 1, -(d + e)), (i + 2, e)];
            add_square(&mut entries, 2.0 / (pair[0] + pair[1]), &difference);
        }
        let mut positions = vec![0.0];
        for d in gaps {
            positions.push(positions[positions.len() - 1] + d);
        }
        let centre = jensen_math::sum::pairwise_sum(&positions) / nodes as f64;
        let null = Dense::from_fn(nodes, 2, |i, j| match j {
            0 => 1.0,
            _ => positions[i] - centre,
        });
        // For differences D with weights W, the product of the non-zero eigenvalues of DᵀWD is |W| |DDᵀ|, and |DDᵀ| is
        // |NᵀN| divided by all squared distances, for the null space N with the columns 1 and the positions.
        let squares: Vec<f64> = null.col(1).iter().map(|x| x * x).collect();
        let span = (nodes as f64 * jensen_math::sum::pairwise_sum(&squares)).ln();
        let weights = log_sum(gaps.windows(2).map(|pair| 2.0 / (pair[0] + pair[1])));
        let log_determinant = span + weights - 2.0 * log_sum(gaps.iter().copied());
        let walk = Walk::line(2, gaps, log_determinant);
        Self::scaled(nodes, entries, null, precision, Some(walk))
    }
}
