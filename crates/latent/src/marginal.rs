//! Marginal posteriors of hyperparameters. The log posterior is interpolated around its mode.
//!
//! For one hyperparameter, the log posterior is a cubic spline through the points of its grid and is linear beyond the
//! ends. For two hyperparameters, splines run along the rows of the grid, and another spline interpolates between the
//! rows. For a central composite design, it is a sum of splines, one for each standard coordinate (Martins, Simpson,
//! Lindgren and Rue 2013), plus products of coordinates. The products make the sum exact at the corners of the design.
//! Weighted nodes with these densities then represent the posterior. At each node, a hyperparameter is a linear
//! function of the coordinates.

use std::collections::BTreeMap;

use jensen_math::special::phi;

use crate::density::Curve;
use crate::linear::kernels::dot;
use crate::{Range, lattice};

const FINE: f64 = 0.25;

/// Nodes extend this far beyond the outermost points, in standard coordinates.
const BEYOND: f64 = 8.0;

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

    fn new(nodes: Vec<Vec<f64>>, logs: &[f64], spacing: f64) -> Self {
        let total = jensen_math::special::log_sum_exp_slice(logs);
        Self {
            nodes,
            weights: logs.iter().map(|log| (log - total).exp()).collect(),
            spacing,
        }
    }

    /// Builds the nodes from the log posterior at integer points in one or two coordinates, and from the log prior at
    /// any point. Splines interpolate the log posterior. If there are too few points for splines, the points themselves
    /// are the nodes. Beyond the grid, the log posterior is the smaller of two continuations: a straight line, and the
    /// prior plus a straight-line continuation of the log likelihood. The second continuation is needed because a prior
    /// may fall faster than a straight line.
    pub(crate) fn of_grid(
        values: &BTreeMap<Vec<i32>, f64>,
        log_prior: impl Fn(&[f64]) -> f64,
    ) -> Self {
        let coordinates =
            |node: &Vec<i32>| -> Vec<f64> { node.iter().map(|z| f64::from(*z)).collect() };
        let alone = (values.iter())
            .map(|(node, log)| (node.clone(), log - log_prior(&coordinates(node))))
            .collect();
        let (Some(posterior), Some(likelihood)) = (surface(values), surface(&alone)) else {
            let logs: Vec<f64> = values.values().copied().collect();
            return Self::new(values.keys().map(coordinates).collect(), &logs, 1.0);
        };
        let top = values.values().copied().fold(f64::NEG_INFINITY, f64::max);
        let (nodes, logs): (Vec<_>, Vec<_>) = (posterior.into_iter().zip(likelihood))
            .map(|((z, log), (_, alone))| {
                let log = log.min(alone + log_prior(&z));
                (z, log)
            })
            .filter(|(_, log)| *log > top - DEEP)
            .unzip();
        Self::new(nodes, &logs, FINE)
    }

    /// Builds the nodes from the log posterior along each axis and from its values at the corners. The log posterior is
    /// modelled as a sum of functions of one coordinate each, and the corners correct this sum.
    pub(crate) fn of_axes(axes: &[Curve], corners: &[(Vec<f64>, f64)]) -> Self {
        const STEP: f64 = 0.05;
        // The nodes and their cumulative shares, axis by axis.
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
        let joint = Interactions::new(axes, corners);
        let logs: Vec<f64> = nodes.iter().map(|z| joint.at(z)).collect();
        Self::new(nodes, &logs, FINE)
    }
}

/// A spline along a row or a column of a plane. It does not rise beyond its ends.
struct Slice {
    curve: Curve,
    ends: [f64; 2],
}

impl Slice {
    fn new(points: &[(i32, f64)]) -> Option<Self> {
        let run = longest(points);
        Some(Self {
            curve: spline(run)?,
            ends: [f64::from(run[0].0), f64::from(run[run.len() - 1].0)],
        })
    }

    fn at(&self, z: f64) -> f64 {
        let end = self.curve.at(z.clamp(self.ends[0], self.ends[1]))[0];
        self.curve.at(z)[0].min(if z < self.ends[0] || z > self.ends[1] {
            end
        } else {
            f64::INFINITY
        })
    }
}

/// A function of two coordinates that interpolates values at integer points. Splines along the first coordinate are
/// evaluated first, and their values are interpolated by splines along the second coordinate.
struct Plane {
    rows: Vec<(i32, Slice)>,
}

/// Computes a function on a fine grid, by splines through its values at integers. Returns `None` if there are too few
/// values.
fn surface(values: &BTreeMap<Vec<i32>, f64>) -> Option<Vec<(Vec<f64>, f64)>> {
    let ends = |k: usize| fine(values.keys().map(move |node| node[k]));
    let dimensions = values.keys().next().map_or(0, Vec::len);
    if dimensions == 1 {
        let line: Vec<_> = values.iter().map(|(node, log)| (node[0], *log)).collect();
        let curve = Slice::new(&line)?;
        return Some(ends(0).map(|z| (vec![z], curve.at(z))).collect());
    }
    let plane = Plane::new(values)?;
    let mut all = Vec::new();
    for z in ends(0) {
        let column = plane.column(z)?;
        all.extend(ends(1).map(|w| (vec![z, w], column.at(w))));
    }
    Some(all)
}

impl Plane {
    fn new(values: &BTreeMap<Vec<i32>, f64>) -> Option<Self> {
        let mut rows: BTreeMap<i32, Vec<(i32, f64)>> = BTreeMap::new();
        for (node, log) in values {
            let [first, second] = node.as_slice() else {
                return None;
            };
            rows.entry(*second).or_default().push((*first, *log));
        }
        let rows: Vec<(i32, Slice)> = rows
            .into_iter()
            .filter_map(|(z, row)| Some((z, Slice::new(&row)?)))
            .collect();
        Some(Self { rows })
    }

    fn column(&self, z: f64) -> Option<Slice> {
        let points: Vec<(i32, f64)> = self.rows.iter().map(|(w, row)| (*w, row.at(z))).collect();
        Slice::new(&points)
    }
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

fn longest(points: &[(i32, f64)]) -> &[(i32, f64)] {
    (points.chunk_by(|a, b| a.0 + 1 == b.0))
        .max_by_key(|run| run.len())
        .unwrap_or_default()
}

/// Returns the spline through the longest run of adjacent points. Returns `None` if this run has fewer than three
/// points.
fn spline(points: &[(i32, f64)]) -> Option<Curve> {
    let run = longest(points);
    let values = run.iter().map(|(_, value)| *value).collect();
    (run.len() > 2).then(|| Curve::new(f64::from(run[0].0), 1.0, values))
}

fn fine(whole: impl Iterator<Item = i32> + Clone) -> impl Iterator<Item = f64> {
    let least = f64::from(whole.clone().min().unwrap_or(0)) - BEYOND;
    let most = f64::from(whole.max().unwrap_or(0)) + BEYOND;
    (0..)
        .map(move |k| least + FINE * f64::from(k))
        .take_while(move |z| *z <= most)
}

/// The posterior of a hyperparameter, represented as a mixture of normal distributions in the unconstrained coordinate.
#[derive(Clone, Debug, PartialEq)]
pub struct Marginal {
    range: Range,
    weights: Vec<f64>,
    centres: Vec<f64>,
    sd: f64,
}

impl Marginal {
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
            weights,
            sd: kernel * sd,
        }
    }

    /// Computes the quantile at probability `p` on the natural scale.
    pub fn quantile(&self, p: f64) -> f64 {
        let sds = vec![self.sd; self.centres.len()];
        self.range
            .outward(mixture_quantile(&self.weights, &self.centres, &sds, p))
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
