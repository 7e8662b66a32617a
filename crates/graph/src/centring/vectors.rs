//! Whitens vectors with a joint prior f ~ N(μ, L Lᵀ), where μ and L are functions of other coordinates.
//!
//! Near a given point, all factors of the density except the prior of f contribute exp(bᵀf − fᵀ W f / 2), where W is
//! diagonal if each element has its own data. Conditional on the other coordinates, f is then normal. With
//!
//! ```text
//! f = μ + L u,   u = R⁻ᵀ (R⁻¹ Lᵀ (b − W μ) + z̃),   R Rᵀ = I + Lᵀ W L
//! ```
//!
//! the vector z̃ is standard normal for all values of the other coordinates. If b = W = 0, then z̃ = u, which is the
//! usual whitening. If W is large, f is determined by the data instead of by the prior. The log-Jacobian is Σ log Lᵢᵢ −
//! Σ log Rᵢᵢ. The posterior is the same for any b and any W ≥ 0. The form is that of the Laplace approximation of
//! Gaussian processes (Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, section 3.4), held
//! fixed at one point. The eigenvalues of R Rᵀ are at least 1, even if the covariance is nearly singular.

use super::{Group, Hierarchy, Spread, Taken, Way};
use crate::ir::{Graph, NodeId};
use crate::ops::{MatMul, Op};
use crate::passes::compact;
use crate::scalar::evaluate;

/// The information about one coordinate of a vector near a point. The product of all factors of the density except the
/// prior of the vector is proportional to exp(pull f − weight f²/2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Site {
    /// The index of the coordinate.
    pub coordinate: u32,
    /// The diagonal element of W for this coordinate. It is at least 0.
    pub weight: f64,
    /// The element of b for this coordinate.
    pub pull: f64,
}

impl Site {
    /// Creates a site that contains no information about the coordinate.
    pub fn vague(coordinate: u32) -> Self {
        Self {
            coordinate,
            weight: 0.0,
            pull: 0.0,
        }
    }
}

/// The curvature of the data's information about a vector is measured along this many directions. One direction
/// suffices if the curvature is diagonal.
const DIRECTIONS: usize = 8;

/// A threshold for the ratio of the data's information to the prior's information, averaged over a vector. Above this
/// ratio, the transform of the vector also conditions on the data. Below this ratio, whitening suffices, because the
/// data hardly distort the posterior of the whitened vector. At a point from a mean-field fit of the whitened vector,
/// the ratio is several times too small.
const MUCH: f64 = 3.0;

impl Hierarchy {
    /// Returns the coordinates of all vectors with a joint prior.
    pub fn together(&self) -> Vec<u32> {
        let vectors = self.vectors();
        vectors
            .flat_map(|(group, _)| group.coordinates.iter().copied())
            .collect()
    }

    fn vectors(&self) -> impl Iterator<Item = (&Group, NodeId)> {
        self.groups().filter_map(|group| match group.spread {
            Spread::Factor(factor) => Some((group, factor)),
            Spread::Scale(_) => None,
        })
    }

    /// Returns the information about each coordinate of the vectors with a joint prior, at the point `z`. Vectors that
    /// are determined almost completely by the prior receive sites without information, because whitening fits them
    /// equally well at a third of the cost.
    pub fn sites(&self, z: &[f64]) -> Vec<Site> {
        let coordinates = self.together();
        if coordinates.is_empty() {
            return Vec::new();
        }
        let mut graph = self.graph.clone();
        let all = graph.input_node(0);
        // The subtracted term uses the nodes of the density, so that it equals the existing term to the last bit.
        let mut rest = graph.outputs()[0];
        let mut variances = Vec::new();
        for (group, factor) in self.vectors() {
            let n = group.coordinates.len();
            let own = graph.gather(all, &group.coordinates);
            let off = graph.sub(own, group.location);
            let whitened = graph.tri_solve(factor, off, n, 1, false);
            let square = graph.square(whitened);
            let square = graph.sum(square);
            let half = graph.scale(0.5, square);
            rest = graph.add(rest, half);
            let factor = lower(&mut graph, factor, n);
            let squares = graph.square(factor);
            let ones = graph.vector(&vec![1.0; n]);
            variances.push(graph.matmul(squares, ones, product(false, n, 1)));
        }
        let variances = graph.concat(&variances);
        let along = graph.input(z.len());
        let slope = graph.gradient(rest, &[all])[0];
        let curvature = graph.tangent(&[slope], &[(all, along)])[0];
        let slope = graph.gather(slope, &coordinates);
        let curvature = match curvature {
            Some(curvature) => graph.gather(curvature, &coordinates),
            None => graph.vector(&vec![0.0; coordinates.len()]),
        };
        graph.set_outputs(vec![slope, variances, curvature]);
        let graph = compact(&graph);
        let (mut slopes, mut variances) = (Vec::new(), Vec::new());
        let mut weights = vec![0.0; coordinates.len()];
        for direction in 0..DIRECTIONS {
            let mut along = vec![0.0; z.len()];
            for (at, coordinate) in coordinates.iter().enumerate() {
                along[*coordinate as usize] = sign(direction, at);
            }
            let mut found = evaluate(&graph, &[z, &along], None);
            for (at, (weight, product)) in weights.iter_mut().zip(&found[2]).enumerate() {
                *weight -= sign(direction, at) * product / DIRECTIONS as f64;
            }
            variances = found.swap_remove(1);
            slopes = found.swap_remove(0);
        }
        let mut sites = Vec::with_capacity(coordinates.len());
        for (group, _) in self.vectors() {
            let own = sites.len()..sites.len() + group.coordinates.len();
            let clamped = weights[own.clone()].iter().map(|weight| weight.max(0.0));
            let of_prior = clamped.clone().zip(&variances[own.clone()]);
            let information = of_prior
                .map(|(weight, variance)| weight * variance)
                .sum::<f64>();
            let says_much = information >= MUCH * own.len() as f64;
            for ((coordinate, weight), slope) in
                group.coordinates.iter().zip(clamped).zip(&slopes[own])
            {
                let pull = slope + weight * z[*coordinate as usize];
                let is_known = says_much && weight.is_finite() && pull.is_finite();
                let site = Site {
                    coordinate: *coordinate,
                    weight,
                    pull,
                };
                sites.push(if is_known {
                    site
                } else {
                    Site::vague(*coordinate)
                });
            }
        }
        sites
    }
}

/// Returns the sign of an element in a direction, which is 1 or −1 with equal frequency. For any two elements, the
/// product of their signs is also 1 or −1 with equal frequency over a few directions.
fn sign(direction: usize, at: usize) -> f64 {
    let mixed = (at as u64 + 1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_right(29)
        >> direction;
    match direction == 0 || mixed & 1 == 0 {
        true => 1.0,
        false => -1.0,
    }
}

fn product(left_transposed: bool, n: usize, columns: usize) -> MatMul {
    MatMul {
        m: n as u32,
        k: n as u32,
        n: columns as u32,
        left_transposed,
        right_transposed: false,
    }
}

fn log_diagonal(out: &mut Graph, matrix: NodeId, n: usize) -> NodeId {
    let indices: Vec<u32> = (0..n).map(|i| (i * (n + 1)) as u32).collect();
    let diagonal = out.gather(matrix, &indices);
    let logs = out.log(diagonal);
    out.sum(logs)
}

fn lower(out: &mut Graph, factor: NodeId, n: usize) -> NodeId {
    if matches!(out.op(factor), Op::Cholesky { .. }) {
        return factor;
    }
    let indices: Vec<u32> = (0..n * n)
        .filter(|at| at % n >= at / n)
        .map(|at| at as u32)
        .collect();
    let kept = out.gather(factor, &indices);
    out.scatter_add(kept, &indices, n * n)
}

/// Returns the coordinates of a group with their replacements, or `None` if one of the coordinates has no site. `own`
/// contains all coordinates of the group.
pub(super) fn replace(
    group: &Group,
    taken: &Taken,
    out: &mut Graph,
    [location, factor, own]: [NodeId; 3],
    way: &mut Way<'_>,
) -> Option<(Vec<u32>, NodeId)> {
    let sites = group
        .coordinates
        .iter()
        .map(|coordinate| taken.sites.get(coordinate).copied());
    let sites: Vec<Site> = sites.collect::<Option<_>>()?;
    let n = sites.len();
    let factor = lower(out, factor, n);
    let own = out.gather(own, &group.coordinates);
    let conditioned = sites
        .iter()
        .any(|site| (site.weight, site.pull) != (0.0, 0.0))
        .then(|| condition(out, &sites, location, factor));
    let new = match way {
        Way::Forth(jacobian) => {
            jacobian.push(log_diagonal(out, factor, n));
            let white = match conditioned {
                None => own,
                Some((root, towards)) => {
                    let log_root = log_diagonal(out, root, n);
                    jacobian.push(out.neg(log_root));
                    let moved = out.add(towards, own);
                    out.tri_solve(root, moved, n, 1, true)
                }
            };
            let off = out.matmul(factor, white, product(false, n, 1));
            out.add(location, off)
        }
        Way::Back => {
            let off = out.sub(own, location);
            let white = out.tri_solve(factor, off, n, 1, false);
            match conditioned {
                None => white,
                Some((root, towards)) => {
                    let moved = out.matmul(root, white, product(true, n, 1));
                    out.sub(moved, towards)
                }
            }
        }
    };
    Some((group.coordinates.clone(), new))
}

fn condition(
    out: &mut Graph,
    sites: &[Site],
    location: NodeId,
    factor: NodeId,
) -> (NodeId, NodeId) {
    let n = sites.len();
    let weights: Vec<f64> = sites.iter().map(|site| site.weight).collect();
    let pulls: Vec<f64> = sites.iter().map(|site| site.pull).collect();
    let by_row = out.vector(&weights.repeat(n));
    let weighted = out.mul(by_row, factor);
    let seen = out.matmul(factor, weighted, product(true, n, n));
    let identity: Vec<f64> = (0..n * n)
        .map(|at| f64::from(u8::from(at % (n + 1) == 0)))
        .collect();
    let identity = out.vector(&identity);
    let precision = out.add(identity, seen);
    let root = out.cholesky(precision, n);
    let (weights, pulls) = (out.vector(&weights), out.vector(&pulls));
    let held = out.mul(weights, location);
    let pull = out.sub(pulls, held);
    let pull = out.matmul(factor, pull, product(true, n, 1));
    (root, out.tri_solve(root, pull, n, 1, false))
}
