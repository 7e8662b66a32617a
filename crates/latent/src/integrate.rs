//! Integrates over hyperparameters. The functions explore the hyperparameters' posterior around its mode and fit the
//! model at each point of an integration rule.
//!
//! The posterior of the hyperparameters x (in unconstrained coordinates) is proportional to e^h, where h is the sum of
//! the bound and the log priors. With the Hessian at the mode, `x = mode + V Λ^(−½) z` makes the posterior
//! approximately standard normal in z. For one or two hyperparameters, the rule is a grid. It contains the integer
//! points z for which h is within a few nats of its maximum. For three to eight hyperparameters, the rule is a central
//! composite design. The design is stretched along directions in which h falls slowly (Rue, Martino and Chopin 2009,
//! section 6.5; Martins, Simpson, Lindgren and Rue 2013). The posterior of the latent variables is a mixture of the
//! Gaussian posteriors that were fitted at the points.

use std::collections::{BTreeMap, VecDeque};

use faer::Side;
use jensen_math::constants::LOG_TWO_PI;
use jensen_run::Control;

use crate::density::Curve;
use crate::learn::{Surface, Watch};
use crate::marginal::{Marginal, WeightedNodes};
use crate::{
    Dense, Error, Fit, LatentModel, LearnSettings, Learned, Likelihood, Prior, Range, Warm,
};

/// The grid ends this many nats below the mode. Half a per cent of the mass of a normal distribution lies beyond.
const FALL: f64 = 5.0;

const MOST: usize = 150;

const GRID: usize = 2;

const LARGEST: usize = 8;

/// The radius of a design's points, divided by the square root of their dimension. INLA uses the same value.
const RADIUS: f64 = 1.1;

/// The gradients whose difference gives the Hessian are evaluated at this distance from the mode, in logarithms of the
/// hyperparameters.
const APART: f64 = 0.1;

/// Smallest extent on one side of an axis. The extent also has this value if no fit on that side succeeds.
const NARROW: f64 = 0.3;

/// Largest number of steps on one side of an axis. All steps together cover four and a quarter standard deviations.
const FARTHEST: usize = 3;

/// A direction counts as flat if its curvature is below this value. The posterior's standard deviation along such a
/// direction exceeds five, in logarithms.
const LEVEL: f64 = 0.04;

/// Returns the approximate number of fits that the integration needs for this many hyperparameters. For a grid, the
/// number is that of a normal posterior. For a design, it is the number of the design's points.
pub fn points(dimensions: usize) -> usize {
    let reach = (2.0 * FALL).sqrt() as i32;
    let within = |a: i32, b: i32| f64::from(a * a + b * b) <= 2.0 * FALL;
    let count = |b: i32| (-reach..=reach).filter(|a| within(*a, b)).count();
    match dimensions {
        0 => 1,
        1 => count(0),
        GRID => (-reach..=reach).map(count).sum(),
        n if n <= LARGEST => 1 + 2 * n + corners(n).len(),
        _ => 1,
    }
}

/// A point of the integration rule for the hyperparameters' posterior.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The point's share of the posterior.
    pub weight: f64,
    /// All hyperparameters in unconstrained coordinates.
    pub x: Vec<f64>,
    /// The prior's hyperparameters at the point.
    pub theta: Vec<f64>,
    /// The likelihood with its parameter values at the point.
    pub likelihood: Likelihood,
    /// The fit at the point, without sensitivities.
    pub fit: Fit,
}

/// The posterior of the hyperparameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Integrated {
    /// The points of the integration rule. Their weights add up to 1.
    pub points: Vec<Point>,
    /// log ∫ e^bound p(θ) dθ in nats.
    pub evidence: f64,
    /// The difference between `evidence` and the value that another integration rule gives with the same points.
    pub error: f64,
    /// The marginal of each hyperparameter.
    pub marginals: Vec<Marginal>,
    nodes: WeightedNodes,
}

impl Integrated {
    /// Computes the marginal posterior of a quantity with values in `range`. `value` maps all hyperparameters in
    /// unconstrained coordinates to the quantity.
    pub fn marginal(&self, range: Range, value: impl Fn(&[f64]) -> f64) -> Marginal {
        let values = self.nodes.nodes.iter().map(|x| range.inward(value(x)));
        Marginal::new(&self.nodes, values.collect(), range)
    }
}

/// The reason why Jensen did not integrate over the hyperparameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// There are too many hyperparameters. The field is the number of hyperparameters.
    Many(usize),
    /// The time limit or a cancellation ended the exploration early.
    Stopped,
}

pub(crate) struct Frame {
    mode: Vec<f64>,
    pub axes: Dense,
    log_volume: f64,
}

impl Frame {
    fn at(&self, z: &[f64]) -> Vec<f64> {
        let mut x = self.mode.clone();
        for (k, z) in z.iter().enumerate() {
            x.iter_mut()
                .zip(self.axes.col(k))
                .for_each(|(x, a)| *x += z * a);
        }
        x
    }
}

struct Visited {
    x: Vec<f64>,
    fit: Fit,
    log_weight: f64,
}

/// Explores the posterior of the hyperparameters around its mode and fits the model at the points of the integration
/// rule.
///
/// # Errors
/// Returns the errors of [`fit`](crate::fit) at the mode of the hyperparameters' posterior.
pub fn integrate(
    prior: &dyn Prior,
    model: &LatentModel,
    settings: &LearnSettings,
    learned: &Learned,
    control: &Control<'_>,
) -> Result<Result<Integrated, Kept>, Error> {
    let dimensions = learned.x.len();
    if dimensions > LARGEST {
        return Ok(Err(Kept::Many(dimensions)));
    }
    let surface = Surface::new(prior, model, settings, Watch::after(learned, control));
    let warm = learned.fit.warm();
    let Some((fit, top)) = surface.value(&learned.x, &warm)? else {
        return Ok(Err(Kept::Stopped));
    };
    let Some(frame) = frame(&surface, &learned.x, &warm)? else {
        return Ok(Err(Kept::Stopped));
    };
    let explored = match dimensions <= GRID {
        true => grid(&surface, &frame, fit, top),
        false => design(&surface, &frame, fit, top),
    };
    let Some(Explored {
        visited,
        log_sum,
        error,
        weighted_nodes,
    }) = explored
    else {
        return Ok(Err(Kept::Stopped));
    };
    let evidence = top + frame.log_volume + log_sum;
    let mut points = Vec::with_capacity(visited.len());
    for at in visited {
        let (theta, model) = surface.model_at(&at.x)?;
        points.push(Point {
            weight: (at.log_weight - log_sum).exp(),
            x: at.x,
            theta,
            likelihood: model.likelihood,
            fit: at.fit,
        });
    }
    let nodes = weighted_nodes.mapped(|z| frame.at(z));
    let marginals = (0..dimensions)
        .map(|i| {
            let values = nodes.nodes.iter().map(|x| x[i]).collect();
            Marginal::new(&nodes, values, surface.parameters[i].range)
        })
        .collect();
    Ok(Ok(Integrated {
        points,
        evidence,
        error,
        marginals,
        nodes,
    }))
}

/// Computes the standard coordinates at the mode from differences of gradients. Returns `None` if the run was stopped.
pub(crate) fn frame(
    surface: &Surface<'_>,
    mode: &[f64],
    warm: &Warm,
) -> Result<Option<Frame>, Error> {
    let n = mode.len();
    let mut hessian = Dense::zeros(n, n);
    for i in 0..n {
        let mut ends = Vec::with_capacity(2);
        for side in [-APART, APART] {
            let mut x = mode.to_vec();
            x[i] += side;
            match surface.evaluate(&x, Some(warm))? {
                Some(at) => ends.push(at.gradient),
                None => return Ok(None),
            }
        }
        for (j, (below, above)) in ends[0].iter().zip(&ends[1]).enumerate() {
            hessian.data[i * n + j] = (below - above) / (2.0 * APART);
        }
    }
    let symmetric = Dense::from_fn(n, n, |i, j| 0.5 * (hessian.get(i, j) + hessian.get(j, i)));
    let failed = |_| Error::Prior("the curvature of the hyperparameters is not finite".to_owned());
    let eigen = symmetric
        .view()
        .self_adjoint_eigen(Side::Lower)
        .map_err(failed)?;
    let sds: Vec<f64> = (0..n)
        .map(|k| eigen.S()[k].max(LEVEL).sqrt().recip())
        .collect();
    Ok(Some(Frame {
        mode: mode.to_vec(),
        log_volume: sds.iter().map(|s| s.ln()).sum(),
        axes: Dense::from_fn(n, n, |i, k| eigen.U()[(i, k)] * sds[k]),
    }))
}

struct Explored {
    visited: Vec<Visited>,
    log_sum: f64,
    error: f64,
    weighted_nodes: WeightedNodes,
}

fn log_sum(weights: impl Iterator<Item = f64>) -> f64 {
    let all: Vec<f64> = weights.collect();
    jensen_math::special::log_sum_exp_slice(&all)
}

/// Visits the grid of integer coordinates from the mode outwards, and skips points at which the fit fails.
fn grid(surface: &Surface<'_>, frame: &Frame, fit: Fit, top: f64) -> Option<Explored> {
    let n = frame.mode.len();
    let mut found: BTreeMap<Vec<i32>, Visited> = BTreeMap::new();
    let mut open = VecDeque::from([vec![0; n]]);
    found.insert(
        vec![0; n],
        Visited {
            x: frame.mode.clone(),
            fit,
            log_weight: 0.0,
        },
    );
    // Points just outside the grid support the extrapolation of splines. At some of them the fit fails.
    let mut closed: BTreeMap<Vec<i32>, Option<f64>> = BTreeMap::new();
    while let Some(from) = open.pop_front() {
        for k in 0..n {
            for side in [-1, 1] {
                let mut point = from.clone();
                point[k] += side;
                if found.contains_key(&point) || closed.contains_key(&point) || found.len() >= MOST
                {
                    continue;
                }
                let z: Vec<f64> = point.iter().map(|z| f64::from(*z)).collect();
                let x = frame.at(&z);
                let warm = found[&from].fit.warm();
                match surface.value(&x, &warm) {
                    Ok(None) => return None,
                    Ok(Some((fit, objective))) if objective - top > -FALL => {
                        let log_weight = objective - top;
                        found.insert(point.clone(), Visited { x, fit, log_weight });
                        open.push_back(point);
                    }
                    Ok(Some((_, objective))) => {
                        closed.insert(point, Some(objective - top));
                    }
                    Err(_) => {
                        closed.insert(point, None);
                    }
                }
            }
        }
    }
    let total = log_sum(found.values().map(|v| v.log_weight));
    // The second rule uses every other point with twice the weight.
    let even = |point: &Vec<i32>| point.iter().sum::<i32>() % 2 == 0;
    let half = log_sum(
        found
            .iter()
            .filter(|(point, _)| even(point))
            .map(|(_, v)| v.log_weight),
    );
    let error = (half + 2f64.ln() - total).abs();
    let inside = found.iter().map(|(point, v)| (point.clone(), v.log_weight));
    let known = |(point, log): (_, Option<f64>)| Some((point, log.filter(|log| log.is_finite())?));
    let beyond = closed.into_iter().filter_map(known);
    let prior = |z: &[f64]| surface.counted_prior(&frame.at(z));
    let weighted_nodes = WeightedNodes::of_grid(&inside.chain(beyond).collect(), prior);
    Some(Explored {
        visited: found.into_values().collect(),
        log_sum: total,
        error,
        weighted_nodes,
    })
}

/// Returns the corners of a cube, as signs. For five to eight dimensions, the function returns only some of the
/// corners, which form a design of resolution V. Such a design does not confound any two pairs of coordinates (Box and
/// Hunter 1961).
fn corners(n: usize) -> Vec<Vec<f64>> {
    // The signs of the last coordinates are products of earlier ones.
    let products: &[&[usize]] = match n {
        5 => &[&[0, 1, 2, 3]],
        6 => &[&[0, 1, 2, 3, 4]],
        7 => &[&[0, 1, 2, 3, 4, 5]],
        8 => &[&[0, 1, 2, 3], &[0, 1, 4, 5]],
        _ => &[],
    };
    let own = n - products.len();
    (0..1usize << own)
        .map(|bits| {
            let mut signs: Vec<f64> = (0..own)
                .map(|k| if bits >> k & 1 == 1 { 1.0 } else { -1.0 })
                .collect();
            for product in products {
                signs.push(product.iter().map(|k| signs[*k]).product());
            }
            signs
        })
        .collect()
}

struct Axis {
    /// The extent of the posterior on either side, in standard deviations.
    stretch: [f64; 2],
    curve: Curve,
}

/// Explores an axis in both directions, up to the last step on each side. For a normal distribution, the log density
/// falls by one nat over each of the first steps. Later steps are longer. Returns `None` if the run was stopped.
fn axis(surface: &Surface<'_>, frame: &Frame, k: usize, warm: &Warm, top: f64) -> Option<Axis> {
    let step = 2f64.sqrt();
    let mut stretch = [NARROW; 2];
    let mut falls = [Vec::new(), Vec::new()];
    for (side, sign) in [-1.0, 1.0].into_iter().enumerate() {
        while falls[side].len() < FARTHEST && falls[side].last().is_none_or(|fall| *fall < FALL) {
            let mut z = vec![0.0; frame.mode.len()];
            z[k] = sign * step * (falls[side].len() as f64 + 1.0);
            match surface.value(&frame.at(&z), warm) {
                Ok(None) => return None,
                Ok(Some((_, objective))) => falls[side].push(top - objective),
                Err(_) => break,
            }
        }
        match falls[side].first() {
            Some(fall) => stretch[side] = fall.max(1e-3).sqrt().recip().clamp(NARROW, 3.0),
            None => falls[side].push(NARROW.powi(-2)),
        }
    }
    let below = falls[0].iter().rev().map(|fall| -fall);
    let above = falls[1].iter().map(|fall| -fall);
    let values = below.chain([0.0]).chain(above).collect();
    Some(Axis {
        stretch,
        curve: Curve::new(-step * falls[0].len() as f64, step, values),
    })
}

/// Fits the model at the central composite design: the mode, both ends of each axis and the corners, all at one radius.
fn design(surface: &Surface<'_>, frame: &Frame, fit: Fit, top: f64) -> Option<Explored> {
    let n = frame.mode.len();
    let warm = fit.warm();
    let axes = (0..n)
        .map(|k| axis(surface, frame, k, &warm, top))
        .collect::<Option<Vec<Axis>>>()?;
    let stretch: Vec<[f64; 2]> = axes.iter().map(|axis| axis.stretch).collect();
    let radius = RADIUS * (n as f64).sqrt();
    let mut nodes: Vec<Vec<f64>> = Vec::new();
    for k in 0..n {
        for side in [-radius, radius] {
            let mut z = vec![0.0; n];
            z[k] = side;
            nodes.push(z);
        }
    }
    let corners = corners(n);
    let count = corners.len();
    nodes.extend((corners.into_iter()).map(|c| c.iter().map(|s| s * RADIUS).collect()));
    // With these weights the design reproduces the mass and the variance of a standard normal distribution.
    let share = (0.5 * radius * radius).exp() / (nodes.len() as f64 * RADIUS * RADIUS);
    let middle: Vec<f64> = stretch.iter().map(|s| 0.5 * (s[0] + s[1])).collect();
    let mut visited = vec![Visited {
        x: frame.mode.clone(),
        fit,
        log_weight: (1.0 - 1.0 / (RADIUS * RADIUS)).ln()
            + middle.iter().map(|m| m.ln()).sum::<f64>(),
    }];
    let mut known = Vec::new();
    for node in nodes {
        let (mut z, mut log_volume) = (node.clone(), 0.0);
        for (k, z) in z.iter_mut().enumerate() {
            let own = match *z {
                z if z < 0.0 => stretch[k][0],
                z if z > 0.0 => stretch[k][1],
                _ => middle[k],
            };
            *z *= own;
            log_volume += own.ln();
        }
        let x = frame.at(&z);
        match surface.value(&x, &warm) {
            Ok(None) => return None,
            Ok(Some((fit, objective))) => {
                if z.iter().all(|z| *z != 0.0) {
                    known.push((z, objective - top));
                }
                visited.push(Visited {
                    x,
                    fit,
                    log_weight: share.ln() + log_volume + objective - top,
                });
            }
            // A point at which the fit fails has almost no mass.
            Err(_) => {}
        }
    }
    let normal = 0.5 * n as f64 * LOG_TWO_PI;
    for at in &mut visited {
        at.log_weight += normal;
    }
    let total = log_sum(visited.iter().map(|v| v.log_weight));
    let error = (total - normal - middle.iter().map(|m| m.ln()).sum::<f64>()).abs();
    let curves: Vec<Curve> = axes.into_iter().map(|axis| axis.curve).collect();
    Some(Explored {
        visited,
        log_sum: total,
        error,
        weighted_nodes: WeightedNodes::of_axes(
            &curves,
            if known.len() == count { &known } else { &[] },
        ),
    })
}
