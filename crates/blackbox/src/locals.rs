//! Modes of a density's local parameters given its global parameters, at many points of the global parameters in
//! parallel.

use jensen_density::{Lanes, LanesMut, TwiceDifferentiable};
use jensen_math::constants::HALF_LOG_TWO_PI;
use rayon::prelude::*;

use crate::calls::Calls;
use crate::family::Conditional;
use crate::reduce::{axpy, dot};

/// Largest number of steps of a search, and of fractions tried per step.
const STEPS: usize = 60;
const SHORTER: f64 = 0.3;
const SHORTEST: f64 = 1e-6;

/// Newton decrement in nats, twice the distance from the mode, at which the mode is found: the objective is quadratic
/// from there on, for practical purposes.
const FOUND: f64 = 1e-6;

/// Coordinates times lanes of one call to the density.
const TOGETHER: usize = 1 << 21;

/// Largest number of lanes of one.
const LANES: usize = 256;

/// A mode of the local parameters.
#[derive(Clone, Debug)]
pub(crate) struct LocalMode {
    /// The current point, in the order of elimination.
    pub at: Vec<f64>,
    /// Cholesky factor of the negated Hessian there, at the family's nonzeros.
    pub factor: Vec<f64>,
    /// Log of the integral of the density over the local parameters, by Laplace's method.
    pub log_mass: f64,
}

/// A search on its way.
struct Climb {
    globals: Vec<f64>,
    at: Vec<f64>,
    value: f64,
    step: Vec<f64>,
    /// `gᵀ H⁻¹ g` at the beginning of the step.
    decrement: f64,
    share: f64,
    factor: Vec<f64>,
    /// Whether it is over, and found a mode.
    over: Option<bool>,
}

/// A step of a search from its current point.
struct NewtonStep {
    factor: Vec<f64>,
    step: Vec<f64>,
    decrement: f64,
}

/// Finds modes of the local parameters.
pub(crate) struct Climber<'a, D: TwiceDifferentiable> {
    density: &'a D,
    family: &'a Conditional,
    /// Directions whose products determine the local parameters' Hessian.
    directions: Vec<f64>,
    lanes: usize,
    workspace: D::Workspace,
    pub calls: Calls,
}

impl<'a, D: TwiceDifferentiable> Climber<'a, D> {
    pub(crate) fn new(density: &'a D, family: &'a Conditional) -> Self {
        let directions = family.local_directions();
        let dim = density.dim();
        let columns = directions.len() / dim;
        let lanes = (TOGETHER / dim).clamp(8, LANES).max(columns);
        Self {
            density,
            family,
            directions,
            lanes,
            workspace: density.workspace(lanes),
            calls: Calls::default(),
        }
    }

    /// The modes at points of the global parameters, each searched from its own beginning; `None` if no mode is found.
    pub(crate) fn modes(&mut self, starts: Vec<(Vec<f64>, Vec<f64>)>) -> Vec<Option<LocalMode>> {
        let mut climbs: Vec<Climb> = starts
            .into_iter()
            .map(|(globals, at)| Climb {
                globals,
                value: f64::NEG_INFINITY,
                step: vec![0.0; at.len()],
                at,
                decrement: 0.0,
                share: 1.0,
                factor: Vec::new(),
                over: None,
            })
            .collect();
        for _ in 0..STEPS {
            let mut active: Vec<&mut Climb> =
                climbs.iter_mut().filter(|c| c.over.is_none()).collect();
            if active.is_empty() {
                break;
            }
            for group in active.chunks_mut(self.lanes) {
                self.advance(group);
            }
        }
        let local = self.family.locals().len() as f64;
        let end = |climb: Climb| {
            let found = climb.over == Some(true);
            found.then(|| LocalMode {
                log_mass: climb.value + 0.5 * climb.decrement + local * HALF_LOG_TWO_PI
                    - half_log_det(self.family, &climb.factor),
                at: climb.at,
                factor: climb.factor,
            })
        };
        climbs.into_iter().map(end).collect()
    }

    /// Evaluates each search once, and computes new steps for the searches that improved.
    fn advance(&mut self, climbs: &mut [&mut Climb]) {
        let (dim, lanes) = (self.density.dim(), climbs.len());
        let (globals, locals) = (self.family.globals(), self.family.locals());
        let mut z = vec![0.0; dim * lanes];
        for (l, climb) in climbs.iter().enumerate() {
            for (&c, x) in globals.iter().zip(&climb.globals) {
                z[c * lanes + l] = *x;
            }
            for ((&c, x), step) in locals.iter().zip(&climb.at).zip(&climb.step) {
                z[c * lanes + l] = x + climb.share * step;
            }
        }
        let (mut values, mut grad) = (vec![0.0; lanes], vec![0.0; dim * lanes]);
        self.density.value_grad(
            &mut self.workspace,
            Lanes::new(&z, dim, lanes),
            &mut values,
            LanesMut::new(&mut grad, dim, lanes),
        );
        self.calls.gradients += lanes as u64;
        let mut good = Vec::new();
        for (l, climb) in climbs.iter_mut().enumerate() {
            let finite = locals.iter().all(|&c| grad[c * lanes + l].is_finite());
            let enough =
                climb.value + 1e-4 * climb.share * climb.decrement - 1e-9 * climb.value.abs();
            let first = climb.factor.is_empty();
            if values[l].is_finite() && finite && (first || values[l] >= enough) {
                let share = climb.share;
                let step = std::mem::take(&mut climb.step);
                axpy(share, &step, &mut climb.at);
                climb.value = values[l];
                good.push(l);
            } else if first {
                climb.over = Some(false);
            } else {
                climb.share *= SHORTER;
                if climb.share < SHORTEST {
                    climb.over = Some(false);
                }
            }
        }
        let products = self.products(&z, lanes, &good);
        let family = self.family;
        let gradient = |l: usize| locals.iter().map(move |&c| (c, l));
        let grad = &grad;
        let steps: Vec<Option<NewtonStep>> = good
            .par_iter()
            .zip(&products)
            .map(|(&l, products)| {
                let factor = definite(family, &family.gathered(products))?;
                let g: Vec<f64> = gradient(l).map(|(c, l)| grad[c * lanes + l]).collect();
                let mut step = g.clone();
                family.symbolic().solve(&factor, &mut step, 1);
                family.symbolic().solve_transposed(&factor, &mut step, 1);
                let decrement = dot(&g, &step);
                Some(NewtonStep {
                    factor,
                    step,
                    decrement,
                })
            })
            .collect();
        for (l, found) in good.into_iter().zip(steps) {
            let climb = &mut *climbs[l];
            let Some(found) = found else {
                climb.over = Some(false);
                continue;
            };
            climb.factor = found.factor;
            climb.step = found.step;
            climb.decrement = found.decrement;
            climb.share = 1.0;
            if climb.decrement < FOUND {
                climb.over = Some(true);
            }
        }
    }

    /// Products of the negated Hessian with the directions at some of the lanes of z, `dim × columns` each.
    fn products(&mut self, z: &[f64], lanes: usize, which: &[usize]) -> Vec<Vec<f64>> {
        let dim = self.density.dim();
        let columns = self.directions.len() / dim;
        let mut out = Vec::with_capacity(which.len());
        for group in which.chunks((self.lanes / columns).max(1)) {
            let width = group.len() * columns;
            let (mut at, mut turned) = (vec![0.0; dim * width], vec![0.0; dim * width]);
            for (i, directions) in self.directions.chunks(columns).enumerate() {
                for (k, &l) in group.iter().enumerate() {
                    let range = i * width + k * columns..i * width + (k + 1) * columns;
                    at[range.clone()].fill(z[i * lanes + l]);
                    turned[range].copy_from_slice(directions);
                }
            }
            let mut product = vec![0.0; dim * width];
            self.density.hvp(
                &mut self.workspace,
                Lanes::new(&at, dim, width),
                Lanes::new(&turned, dim, width),
                LanesMut::new(&mut product, dim, width),
            );
            self.calls.products += width as u64;
            for k in 0..group.len() {
                let rows = product.chunks(width);
                let own =
                    rows.flat_map(|row| row[k * columns..(k + 1) * columns].iter().map(|x| -x));
                out.push(own.collect());
            }
        }
        out
    }
}

/// `½ log |L Lᵀ|`.
fn half_log_det(family: &Conditional, factor: &[f64]) -> f64 {
    let symbolic = family.symbolic();
    (0..symbolic.dim())
        .map(|j| factor[symbolic.diagonal(j)].ln())
        .sum()
}

/// A Cholesky factor of the matrix, made positive definite by adding to its diagonal.
fn definite(family: &Conditional, matrix: &[f64]) -> Option<Vec<f64>> {
    let symbolic = family.symbolic();
    let diagonal: Vec<usize> = (0..symbolic.dim()).map(|j| symbolic.diagonal(j)).collect();
    let largest = diagonal.iter().map(|&p| matrix[p].abs());
    let typical = largest.sum::<f64>() / diagonal.len().max(1) as f64;
    let mut share = 0.0;
    for _ in 0..12 {
        let mut shifted = matrix.to_vec();
        for &p in &diagonal {
            shifted[p] += share * (shifted[p].abs() + 1e-3 * typical);
        }
        if let Some(factor) = symbolic.cholesky(&shifted) {
            return Some(factor);
        }
        share = if share == 0.0 { 1e-4 } else { share * 4.0 };
    }
    None
}
