//! Marginal posteriors of hyperparameters. The log posterior is interpolated around its mode.
//!
//! On a grid, it is a cubic radial interpolant. For a central composite design, it is a sum of splines, one for each standard coordinate (Martins, Simpson,
//! Lindgren and Rue 2013), plus products of coordinates. The products make the sum exact at the corners of the design.
//! Weighted nodes with these densities then represent the posterior. At each node, a hyperparameter is a linear
//! function of the coordinates.

use std::collections::{BTreeMap, BTreeSet};

use jensen_math::special::phi;

use crate::density::Curve;
use crate::interpolant::Interpolant;
use crate::linear::kernels::dot;
use crate::{Range, lattice};

/// The distance of the nodes of a design, in standard deviations.
const FINE: f64 = 0.25;

/// Between two points of a grid there are this many steps from node to node.
const PARTS: i32 = 4;

/// Outside a grid, which ends 5 nats below the mode, the log posterior is interpolated as if it were at most this many
/// nats below the largest value. A thousandth of the largest density is left.
const CLIFF: f64 = 7.0;

/// Nodes end this many nats below the largest value. Less than a hundred-thousandth of the mass lies beyond.
const DEEP: f64 = 14.0;

const NODES: usize = 1024;

/// Nodes, each with its share of the posterior. A node is a vector of standard coordinates or of hyperparameters in
/// unconstrained coordinates.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WeightedNodes {
    pub nodes: Vec<Vec<f64>>,
    pub weights: Vec<f64>,
    /// The distance between neighbouring nodes along one coordinate, in standard deviations.
    spacing: f64,
}

impl WeightedNodes {
    pub(crate) fn mapped(self, map: impl Fn(&[f64]) -> Vec<f64>) -> Self {
        Self {
            nodes: self.nodes.iter().map(|node| map(node)).collect(),
            ..self
        }
    }

    /// Multiplies the weights by a factor with this logarithm.
    pub(crate) fn weighted(self, log_factor: impl Fn(&[f64]) -> f64) -> Self {
        let each = self.nodes.iter().zip(&self.weights);
        let logs: Vec<f64> = each.map(|(z, w)| w.ln() + log_factor(z)).collect();
        Self::new(self.nodes, &logs, self.spacing)
    }

    fn new(nodes: Vec<Vec<f64>>, logs: &[f64], spacing: f64) -> Self {
        let total = jensen_math::special::log_sum_exp_slice(logs);
        Self {
            nodes,
            weights: logs.iter().map(|log| (log - total).exp()).collect(),
            spacing,
        }
    }

    /// Builds the nodes from the log posterior at the points of a grid and at their neighbours outside it. The keys are the
    /// multiples of `step` in each coordinate. A cubic interpolant gives the log posterior at the nodes, which lie within a
    /// step of the grid. If there are too few points for it, the points themselves are the nodes.
    pub(crate) fn of_grid(
        grid: &BTreeMap<Vec<i32>, f64>,
        outside: &BTreeMap<Vec<i32>, f64>,
        step: f64,
    ) -> Self {
        let position = |node: &Vec<i32>| node.iter().map(|z| f64::from(*z)).collect::<Vec<f64>>();
        let scaled = |node: Vec<f64>| node.into_iter().map(|z| step * z).collect::<Vec<f64>>();
        let top = grid.values().copied().fold(f64::NEG_INFINITY, f64::max);
        // An interpolant overshoots beside a cliff.
        let outside = (outside.iter()).map(|(node, log)| (position(node), log.max(top - CLIFF)));
        let inside = grid.iter().map(|(node, log)| (position(node), *log));
        let Some(interpolant) = Interpolant::new(inside.chain(outside).unzip()) else {
            let nodes = grid.keys().map(|node| scaled(position(node))).collect();
            let logs: Vec<f64> = grid.values().copied().collect();
            return Self::new(nodes, &logs, step);
        };
        let mut nodes: BTreeSet<Vec<i32>> = BTreeSet::new();
        for node in grid.keys() {
            let whole: Vec<i32> = node.iter().map(|z| z * PARTS).collect();
            nodes.extend(around(&whole, PARTS));
        }
        let part = f64::from(PARTS);
        let nodes: Vec<Vec<f64>> = (nodes.iter())
            .map(|node| node.iter().map(|z| f64::from(*z) / part).collect())
            .collect();
        let logs: Vec<f64> = nodes.iter().map(|z| interpolant.at(z)).collect();
        Self::new(nodes.into_iter().map(scaled).collect(), &logs, step / part)
    }

    /// Builds the nodes from the log posterior along each axis and from its values at the corners. The log posterior is
    /// modelled as a sum of functions of one coordinate each, and the corners correct this sum.
    pub(crate) fn of_axes(axes: &[Curve], corners: &[(Vec<f64>, f64)]) -> Self {
        // The nodes and their cumulative shares, axis by axis.
        let tables: Vec<Vec<(f64, f64)>> = (axes.iter())
            .map(|axis| {
                let mut table = along(axis);
                let whole: f64 = table.iter().map(|(_, log)| log.exp()).sum();
                let mut below = 0.0;
                for (_, log) in &mut table {
                    let share = log.exp() / whole;
                    below += share;
                    *log = below - 0.5 * share;
                }
                table
            })
            .collect();
        let each = |u: Vec<f64>| {
            tables
                .iter()
                .zip(u)
                .map(|(table, u)| inverse(table, u))
                .collect()
        };
        let nodes: Vec<Vec<f64>> = lattice(axes.len()).take(NODES).map(each).collect();
        let joint = Interactions::new(axes, corners);
        let logs: Vec<f64> = nodes.iter().map(|z| joint.at(z)).collect();
        Self::new(nodes, &logs, FINE)
    }
}

/// The distance of the positions on an axis, in standard deviations.
const STEP: f64 = 0.05;

/// Evaluates a log density along an axis where it is within [`DEEP`] of its maximum.
fn along(axis: &Curve) -> Vec<(f64, f64)> {
    let positions = (-400..=400).map(|k| STEP * f64::from(k));
    let all: Vec<(f64, f64)> = positions.map(|z| (z, axis.at(z)[0])).collect();
    let top = all
        .iter()
        .map(|(_, log)| *log)
        .fold(f64::NEG_INFINITY, f64::max);
    all.into_iter()
        .filter(|(_, log)| *log > top - DEEP)
        .collect()
}

/// Computes the logarithm of the integral of a density along an axis.
pub(crate) fn log_integral(axis: &Curve) -> f64 {
    let logs: Vec<f64> = along(axis).into_iter().map(|(_, log)| log).collect();
    jensen_math::special::log_sum_exp_slice(&logs) + STEP.ln()
}

/// Returns the integer points whose coordinates are within a distance of a point's.
pub(crate) fn around(point: &[i32], distance: i32) -> Vec<Vec<i32>> {
    point.iter().fold(vec![Vec::new()], |points, centre| {
        let longer = |start: &Vec<i32>| {
            let start = start.clone();
            (centre - distance..=centre + distance).map(move |z| [&start[..], &[z]].concat())
        };
        points.iter().flat_map(longer).collect()
    })
}

/// The log posterior at the corners minus the sum over axes, as a sum of products of coordinates. The products vanish
/// on the axes. At each corner, they equal this difference except for products of four or more coordinates (Walsh
/// coefficients of a two-level design).
struct Interactions {
    /// The distances of the corners from the mode on both sides of each axis.
    extents: Vec<[f64; 2]>,
    /// The mean over corners, which multiplies products of two squares.
    level: f64,
    /// The effects of a single sign, which multiply products of a coordinate and a square.
    single: Vec<f64>,
    /// The effects of two signs, which multiply products of two coordinates.
    pairs: Vec<(usize, usize, f64)>,
}

impl Interactions {
    fn new(axes: &[Curve], corners: &[(Vec<f64>, f64)]) -> Self {
        let n = axes.len();
        let mut extents = vec![[f64::INFINITY; 2]; n];
        for (z, _) in corners {
            for (k, z) in z.iter().enumerate() {
                extents[k][usize::from(*z > 0.0)] = z.abs();
            }
        }
        let beyond: Vec<f64> = corners
            .iter()
            .map(|(z, log)| {
                log - axes
                    .iter()
                    .zip(z)
                    .map(|(axis, z)| axis.at(*z)[0])
                    .sum::<f64>()
            })
            .collect();
        let mean = |sign: &dyn Fn(&[f64]) -> f64| {
            let signed = corners.iter().zip(&beyond).map(|((z, _), b)| sign(z) * b);
            signed.sum::<f64>() / corners.len().max(1) as f64
        };
        Self {
            extents,
            level: mean(&|_| 1.0),
            single: (0..n).map(|k| mean(&|z| z[k].signum())).collect(),
            pairs: (0..n)
                .flat_map(|k| (0..k).map(move |l| (k, l)))
                .map(|(k, l)| (k, l, mean(&|z| (z[k] * z[l]).signum())))
                .collect(),
        }
    }

    /// Computes the correction at a point in nats. A point outside the range of the corners is moved to the edge of
    /// this range, because the correction is unknown outside it.
    fn at(&self, z: &[f64]) -> f64 {
        let share = |k: usize| {
            let t = z[k] / self.extents[k][usize::from(z[k] > 0.0)];
            t.clamp(-1.0, 1.0)
        };
        let t: Vec<f64> = (0..z.len()).map(share).collect();
        let squares: Vec<f64> = t.iter().map(|t| t * t).collect();
        let all: f64 = squares.iter().sum();
        let others = (z.len() as f64 - 1.0).max(1.0);
        let mut sum = 0.0;
        let mut both = 0.0;
        for (k, l, coefficient) in &self.pairs {
            sum += coefficient * t[*k] * t[*l];
            both += squares[*k] * squares[*l];
        }
        sum += self.level * both / (self.pairs.len() as f64).max(1.0);
        for (k, coefficient) in self.single.iter().enumerate() {
            sum += coefficient * t[k] * (all - squares[k]) / others;
        }
        sum
    }
}

fn inverse(table: &[(f64, f64)], share: f64) -> f64 {
    let above = table.partition_point(|(_, below)| *below < share);
    if above == 0 || above == table.len() {
        return table[above.min(table.len() - 1)].0;
    }
    let ((z0, s0), (z1, s1)) = (table[above - 1], table[above]);
    z0 + (z1 - z0) * (share - s0) / (s1 - s0)
}

/// The posterior of a hyperparameter, represented as a mixture of normal distributions in the unconstrained coordinate.
#[derive(Clone, Debug, PartialEq)]
pub struct Marginal {
    range: Range,
    weights: Vec<f64>,
    centres: Vec<f64>,
    sds: Vec<f64>,
}

impl Marginal {
    /// Computes the mixture of marginals with these shares.
    pub(crate) fn mixture(parts: Vec<(f64, Self)>, range: Range) -> Self {
        let mut all = Self {
            range,
            weights: Vec::new(),
            centres: Vec::new(),
            sds: Vec::new(),
        };
        for (share, part) in parts {
            all.weights.extend(part.weights.iter().map(|w| share * w));
            all.centres.extend(part.centres);
            all.sds.extend(part.sds);
        }
        all
    }

    /// Computes the marginal of a coordinate that has these values at the weighted nodes. Normal kernels fill the gaps
    /// between nodes. The values are shrunk towards their mean to offset the variance that the kernels add.
    pub(crate) fn new(weighted_nodes: &WeightedNodes, values: Vec<f64>, range: Range) -> Self {
        let weights = weighted_nodes.weights.clone();
        let mean = dot(&weights, &values);
        let squares: Vec<f64> = values.iter().map(|x| (x - mean) * (x - mean)).collect();
        let sd = dot(&weights, &squares).sqrt();
        let kernel = 0.5 * weighted_nodes.spacing;
        let closer = (1.0 - kernel * kernel).sqrt();
        Self {
            range,
            centres: values.iter().map(|x| mean + closer * (x - mean)).collect(),
            sds: vec![kernel * sd; weights.len()],
            weights,
        }
    }

    /// Computes the quantile at probability `p` on the natural scale.
    pub fn quantile(&self, p: f64) -> f64 {
        self.range
            .outward(mixture_quantile(&self.weights, &self.centres, &self.sds, p))
    }

    /// Computes the mean and the standard deviation of the middle 99.9 % of the distribution on the natural scale. The
    /// moments of the whole distribution may not exist, for example for a precision.
    pub fn moments(&self) -> (f64, f64) {
        const OUT: f64 = 0.0005;
        let mut order: Vec<usize> = (0..self.centres.len()).collect();
        order.sort_by(|a, b| self.centres[*a].total_cmp(&self.centres[*b]));
        let (mut below, mut mass, mut first, mut second) = (0.0, 0.0, 0.0, 0.0);
        for at in order {
            let share = self.weights[at];
            let inside = (below + share).min(1.0 - OUT) - below.max(OUT);
            below += share;
            if inside > 0.0 {
                let value = self.range.outward(self.centres[at]);
                mass += inside;
                first += inside * value;
                second += inside * value * value;
            }
        }
        let mean = first / mass;
        (mean, (second / mass - mean * mean).max(0.0).sqrt())
    }
}

/// Computes a quantile of a mixture of normal distributions by bisection, with an error of at most 1e-10 of the
/// mixture's width.
pub fn mixture_quantile(weights: &[f64], means: &[f64], sds: &[f64], p: f64) -> f64 {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    let reach = jensen_math::special::inv_phi(p);
    for (m, s) in means.iter().zip(sds) {
        low = low.min(m + reach * s);
        high = high.max(m + reach * s);
    }
    let below = |q: f64| -> f64 {
        (weights.iter().zip(means).zip(sds))
            .map(|((w, m), s)| {
                w * if *s > 0.0 {
                    phi((q - m) / s)
                } else {
                    f64::from(q >= *m)
                }
            })
            .sum()
    };
    let width = high - low;
    while high - low > 1e-10 * width {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        match below(middle) < p {
            true => low = middle,
            false => high = middle,
        }
    }
    0.5 * (low + high)
}
