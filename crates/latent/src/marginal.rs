//! Marginal posteriors of hyperparameters, by interpolation of the log posterior around its mode.
//!
//! For one hyperparameter the log posterior is a cubic spline through the points of its grid, linear beyond its ends;
//! for two, the points of the grid are used directly. Around a design the log posterior is a sum of functions of one
//! standard coordinate each (Martins, Simpson, Lindgren and Rue 2013), each such a spline along its axis. Nodes with
//! these densities then represent the posterior: a hyperparameter is a linear function of the coordinates.

use std::collections::BTreeMap;

use jensen_math::special::phi;

use crate::density::Curve;
use crate::linear::kernels::dot;
use crate::{Range, lattice};

/// Spacing of the nodes between the points of a grid.
const FINE: f64 = 0.25;

/// Standard coordinates beyond the outermost points that nodes may have.
const BEYOND: f64 = 8.0;

/// Nats below the largest value at which nodes end: beyond is less than a hundred-thousandth.
const DEEP: f64 = 14.0;

/// Nodes around a design.
const NODES: usize = 1024;

/// Nodes in standard coordinates with their shares.
pub(crate) struct WeightedNodes {
    pub nodes: Vec<Vec<f64>>,
    pub weights: Vec<f64>,
    /// The distance of neighbours in one coordinate, in standard deviations.
    spacing: f64,
}

impl WeightedNodes {
    /// From log densities.
    fn new(nodes: Vec<Vec<f64>>, logs: &[f64], spacing: f64) -> Self {
        let total = jensen_math::special::log_sum_exp_slice(logs);
        Self {
            nodes,
            weights: logs.iter().map(|log| (log - total).exp()).collect(),
            spacing,
        }
    }

    /// From the log posterior at integer coordinates: a spline for one coordinate, the points themselves for several.
    pub(crate) fn of_grid(values: &BTreeMap<Vec<i32>, f64>) -> Self {
        let line: Option<Vec<(i32, f64)>> = values
            .iter()
            .map(|(node, value)| match node.as_slice() {
                [only] => Some((*only, *value)),
                _ => None,
            })
            .collect();
        let Some(curve) = line.and_then(|line| spline(&line)) else {
            let logs: Vec<f64> = values.values().copied().collect();
            let whole = |node: &Vec<i32>| node.iter().map(|z| f64::from(*z)).collect();
            return Self::new(values.keys().map(whole).collect(), &logs, 1.0);
        };
        let top = values.values().copied().fold(f64::NEG_INFINITY, f64::max);
        let (nodes, logs): (Vec<_>, Vec<_>) = fine(values.keys().map(|node| node[0]))
            .map(|z| (vec![z], curve.at(z)[0]))
            .filter(|(_, log)| *log > top - DEEP)
            .unzip();
        Self::new(nodes, &logs, FINE)
    }

    /// From the log posterior along each axis, as if it were additive.
    pub(crate) fn of_axes(axes: &[Curve]) -> Self {
        const STEP: f64 = 0.05;
        // Nodes and shares below them, axis by axis.
        let tables: Vec<Vec<(f64, f64)>> = axes
            .iter()
            .map(|axis| {
                let at = |k: i32| STEP * f64::from(k);
                let all: Vec<i32> = (-400..=400).collect();
                let top = all
                    .iter()
                    .map(|k| axis.at(at(*k))[0])
                    .fold(f64::NEG_INFINITY, f64::max);
                let mut below = 0.0;
                let mut table: Vec<(f64, f64)> = all
                    .iter()
                    .map(|k| (at(*k), axis.at(at(*k))[0] - top))
                    .filter(|(_, log)| *log > -DEEP)
                    .map(|(z, log)| {
                        let share = log.exp();
                        below += share;
                        (z, below - 0.5 * share)
                    })
                    .collect();
                table.iter_mut().for_each(|(_, share)| *share /= below);
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
        let weights = vec![1.0 / NODES as f64; NODES];
        Self {
            nodes,
            weights,
            spacing: FINE,
        }
    }
}

/// The quantile of a tabulated distribution.
fn inverse(table: &[(f64, f64)], share: f64) -> f64 {
    let above = table.partition_point(|(_, below)| *below < share);
    if above == 0 || above == table.len() {
        return table[above.min(table.len() - 1)].0;
    }
    let ((z0, s0), (z1, s1)) = (table[above - 1], table[above]);
    z0 + (z1 - z0) * (share - s0) / (s1 - s0)
}

/// The spline through the longest run of neighbours, at least three.
fn spline(points: &[(i32, f64)]) -> Option<Curve> {
    let mut runs: Vec<Vec<(i32, f64)>> = Vec::new();
    for point in points {
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|last| last.0 + 1 == point.0) => run.push(*point),
            _ => runs.push(vec![*point]),
        }
    }
    let longest = runs.into_iter().max_by_key(Vec::len)?;
    let values = longest.iter().map(|(_, value)| *value).collect();
    (longest.len() > 2).then(|| Curve::new(f64::from(longest[0].0), 1.0, values))
}

/// Fine coordinates around whole ones.
fn fine(whole: impl Iterator<Item = i32> + Clone) -> impl Iterator<Item = f64> {
    let least = f64::from(whole.clone().min().unwrap_or(0)) - BEYOND;
    let most = f64::from(whole.max().unwrap_or(0)) + BEYOND;
    (0..)
        .map(move |k| least + FINE * f64::from(k))
        .take_while(move |z| *z <= most)
}

/// The posterior of a hyperparameter: a mixture of normal distributions of its unconstrained coordinate.
#[derive(Clone, Debug, PartialEq)]
pub struct Marginal {
    range: Range,
    weights: Vec<f64>,
    centres: Vec<f64>,
    sd: f64,
}

impl Marginal {
    /// The marginal of a coordinate with these values at the weighted nodes: normal kernels between them, shrunk
    /// towards the mean so that mean and variance are preserved.
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
            weights,
            sd: kernel * sd,
        }
    }

    /// The quantile on the natural scale.
    pub fn quantile(&self, p: f64) -> f64 {
        let sds = vec![self.sd; self.centres.len()];
        self.range
            .outward(mixture_quantile(&self.weights, &self.centres, &sds, p))
    }

    /// Mean and standard deviation of the middle 99.9 % on the natural scale. Outside that range a precision, for
    /// example, may have neither.
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

/// The quantile of a mixture of normal distributions, to 1e-10 of its width, by bisection.
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
