//! Integration rules around a mode of the hyperparameters' posterior.

use std::collections::{BTreeMap, VecDeque};

use jensen_math::constants::LOG_TWO_PI;
use jensen_math::special::log_sum_exp_slice;

use crate::density::Curve;
use crate::frame::Frame;
use crate::learn::Surface;
use crate::marginal::{WeightedNodes, around, log_integral};
use crate::modes::{Peak, log_shares};
use crate::{Fit, Warm};

/// The grid ends this many nats below the mode. Half a per cent of the mass of a normal distribution lies beyond.
pub(crate) const FALL: f64 = 5.0;

const MOST: usize = 150;

/// The largest number of hyperparameters for a grid. In four dimensions, a grid of a normal distribution has 89 points and
/// twice as many neighbours.
const GRID: usize = 3;

/// The distance of neighbouring points in three dimensions, in standard deviations. For a normal distribution, the
/// trapezoidal rule then has an error of 2 exp(−2π²/1.5²) = 3e-4.
const COARSE: f64 = 1.5;

pub(crate) const LARGEST: usize = 8;

/// A point is higher than a mode if the log posterior is larger by this many nats. Searches end closer to their mode.
pub(crate) const HIGHER: f64 = 0.1;

/// The radius of a design's points, divided by the square root of their dimension. INLA uses the same value.
const RADIUS: f64 = 1.1;

/// Smallest extent on one side of an axis. The extent also has this value if no fit on that side succeeds.
const NARROW: f64 = 0.3;

/// Largest number of steps on one side of an axis. All steps together cover four and a quarter standard deviations.
const FARTHEST: usize = 3;

/// Returns the approximate number of fits that the integration keeps for this many hyperparameters. For a grid in one or
/// two dimensions, the number is that of a normal posterior. For a design, it is the number of the design's points.
pub fn points(dimensions: usize) -> usize {
    let step = spacing(dimensions);
    let reach = ((2.0 * FALL).sqrt() / step) as i32;
    let inside = |node: &Vec<i32>| {
        let square: i32 = node.iter().map(|z| z * z).sum();
        f64::from(square) * step * step <= 2.0 * FALL
    };
    match dimensions {
        n if n <= GRID => {
            let nodes = around(&vec![0; n], reach);
            let normal = nodes.iter().filter(|z| inside(z)).count();
            // Three variances have skewed posteriors. Their grids had 48 and 73 points in two fits (grouped rows with
            // Student's t errors, and two crossed groupings), where the grid of a normal posterior has 33.
            normal * if n == GRID { 9 } else { 5 } / 5
        }
        n if n <= LARGEST => 1 + 2 * n + corners(n).len(),
        _ => 1,
    }
}

/// Returns the distance of neighbouring points of a grid, in standard deviations.
fn spacing(dimensions: usize) -> f64 {
    if dimensions < GRID { 1.0 } else { COARSE }
}

pub(crate) struct Visited {
    pub x: Vec<f64>,
    pub fit: Fit,
    pub log_weight: f64,
}

/// An integration rule with fits at its points.
pub(crate) struct Explored {
    /// The points, with weights relative to the density at the mode and the volume of the frame.
    pub visited: Vec<Visited>,
    /// The difference of the log integral from that of a second rule.
    pub error: f64,
    pub weighted_nodes: WeightedNodes,
}

/// The reason why an exploration ended early.
pub(crate) enum Halt {
    /// The run was stopped.
    Stopped,
    /// At this point the posterior is higher than at each mode.
    Higher(Vec<f64>, Warm),
}

/// An exploration around one of the modes.
struct Explorer<'a> {
    surface: &'a Surface<'a>,
    peaks: &'a [Peak],
    /// The number of the mode.
    own: usize,
    /// The log posterior at the mode.
    top: f64,
}

impl Explorer<'_> {
    fn frame(&self) -> &Frame {
        &self.peaks[self.own].frame
    }

    /// Fits the model at a point and computes the log posterior relative to the mode. Returns `None` if the fit fails.
    fn value(&self, x: &[f64], warm: &Warm) -> Result<Option<(Fit, f64)>, Halt> {
        let best = (self.peaks.iter()).fold(f64::NEG_INFINITY, |m, p| m.max(p.mode.objective));
        match self.surface.value(x, warm) {
            Ok(None) => Err(Halt::Stopped),
            Ok(Some((fit, objective))) if objective > best + HIGHER => {
                Err(Halt::Higher(x.to_vec(), fit.warm()))
            }
            Ok(Some((fit, objective))) => Ok(Some((fit, objective - self.top))),
            // A point at which the fit fails has almost no mass.
            Err(_) => Ok(None),
        }
    }
}

/// Fits the model at the points of an integration rule around a mode.
pub(crate) fn explore(surface: &Surface<'_>, peaks: &[Peak], own: usize) -> Result<Explored, Halt> {
    let mode = &peaks[own].mode;
    let mut explorer = Explorer {
        surface,
        peaks,
        own,
        top: 0.0,
    };
    let Some((fit, top)) = explorer.value(&mode.x, &mode.warm)? else {
        return Err(Halt::Stopped);
    };
    explorer.top = top;
    match mode.x.len() <= GRID {
        true => grid(&explorer, fit, spacing(mode.x.len())),
        false => design(&explorer, fit),
    }
}

fn log_sum<'a>(visited: impl Iterator<Item = &'a Visited>) -> f64 {
    let all: Vec<f64> = visited.map(|v| v.log_weight).collect();
    log_sum_exp_slice(&all)
}

/// Visits the grid of multiples of `step` from the mode outwards, and skips points at which the fit fails.
fn grid(explorer: &Explorer<'_>, fit: Fit, step: f64) -> Result<Explored, Halt> {
    let frame = explorer.frame();
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
    // Points just outside the grid support the interpolation. At some of them the fit fails.
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
                let z: Vec<f64> = point.iter().map(|z| step * f64::from(*z)).collect();
                let x = frame.at(&z);
                let warm = found[&from].fit.warm();
                let reached = explorer.value(&x, &warm)?;
                // Another mode's rule integrates the regions where its share is much larger.
                let shared = |log: f64| log + log_shares(explorer.peaks, &x)[explorer.own];
                match reached {
                    Some((fit, log)) if shared(log) > -FALL => {
                        let log_weight = log;
                        found.insert(point.clone(), Visited { x, fit, log_weight });
                        open.push_back(point);
                    }
                    reached => {
                        closed.insert(point, reached.map(|(_, log)| log));
                    }
                }
            }
        }
    }
    let total = log_sum(found.values());
    // The second rule uses every other point with twice the weight.
    let even = |point: &Vec<i32>| point.iter().sum::<i32>() % 2 == 0;
    let chosen = found.iter().filter(|(point, _)| even(point));
    let half = log_sum(chosen.map(|(_, v)| v));
    let error = (half + 2f64.ln() - total).abs();
    let inside = found.iter().map(|(point, v)| (point.clone(), v.log_weight));
    let known = |(point, log): (_, Option<f64>)| Some((point, log.filter(|log| log.is_finite())?));
    let outside = closed.into_iter().filter_map(known).collect();
    let weighted_nodes = WeightedNodes::of_grid(&inside.collect(), &outside, step);
    let cell = n as f64 * step.ln();
    found.values_mut().for_each(|v| v.log_weight += cell);
    Ok(Explored {
        visited: found.into_values().collect(),
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
/// falls by one nat over each of the first steps. Later steps are longer.
fn axis(explorer: &Explorer<'_>, k: usize, warm: &Warm) -> Result<Axis, Halt> {
    let frame = explorer.frame();
    let step = 2f64.sqrt();
    let mut stretch = [NARROW; 2];
    let mut falls = [Vec::new(), Vec::new()];
    for (side, sign) in [-1.0, 1.0].into_iter().enumerate() {
        while falls[side].len() < FARTHEST && falls[side].last().is_none_or(|fall| *fall < FALL) {
            let mut z = vec![0.0; frame.mode.len()];
            z[k] = sign * step * (falls[side].len() as f64 + 1.0);
            match explorer.value(&frame.at(&z), warm)? {
                Some((_, log)) => falls[side].push(-log),
                None => break,
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
    Ok(Axis {
        stretch,
        curve: Curve::new(-step * falls[0].len() as f64, step, values),
    })
}

/// Fits the model at the central composite design: the mode, both ends of each axis and the corners, all at one radius.
fn design(explorer: &Explorer<'_>, fit: Fit) -> Result<Explored, Halt> {
    let frame = explorer.frame();
    let n = frame.mode.len();
    let warm = fit.warm();
    let axes = (0..n)
        .map(|k| axis(explorer, k, &warm))
        .collect::<Result<Vec<Axis>, Halt>>()?;
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
        if let Some((fit, log)) = explorer.value(&x, &warm)? {
            if z.iter().all(|z| *z != 0.0) {
                known.push((z, log));
            }
            visited.push(Visited {
                x,
                fit,
                log_weight: share.ln() + log_volume + log,
            });
        }
    }
    let curves: Vec<Curve> = axes.into_iter().map(|axis| axis.curve).collect();
    let normal = 0.5 * n as f64 * LOG_TWO_PI;
    for at in &mut visited {
        at.log_weight += normal;
    }
    let total = log_sum(visited.iter());
    // The second rule is the product of the integrals along the axes.
    let error = (total - curves.iter().map(log_integral).sum::<f64>()).abs();
    Ok(Explored {
        visited,
        error,
        weighted_nodes: WeightedNodes::of_axes(
            &curves,
            if known.len() == count { &known } else { &[] },
        ),
    })
}
