//! The path from a widened approximation to the posterior, in the coordinates of a map.
//!
//! The base of the path is a multivariate t distribution with [`FREEDOM`] degrees of freedom, in coordinates in which
//! the approximation is standard normal. Its tails cover posteriors whose tails are heavier than those of q. If the
//! posterior is normal, the long tails cost only `O(log d)` nats, whereas wider standard deviations would cost `O(d)`.
//! At inverse temperature β, the log density of the target is `(1 − β) log t(x) + β (log p(z) + log |∂z/∂x|)`.

use jensen_density::{Lanes, LanesMut, LogDensity};
use jensen_math::special::lgamma;

use super::map::{Map, Placed};
use crate::calls::Calls;
use crate::noise::{FREEDOM, NoisePurpose, NoiseSource};

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Particles {
    /// The positions of the particles, a `dim × lanes` matrix.
    pub x: Vec<f64>,
    /// The gradient `∂/∂x log p`, with the same layout as `x`. It is zero if the value is not finite.
    pub grad: Vec<f64>,
    /// The values `log p(z) + log |∂z/∂x|`. A value is −∞ if the density is zero or undefined.
    pub log_p: Vec<f64>,
}

impl Particles {
    pub(super) fn lanes(&self) -> usize {
        self.log_p.len()
    }

    pub(super) fn gather(&self, from: &[usize]) -> Self {
        Self {
            x: gather(&self.x, self.lanes(), from),
            grad: gather(&self.grad, self.lanes(), from),
            log_p: from.iter().map(|&l| self.log_p[l]).collect(),
        }
    }

    pub(super) fn replace(&mut self, other: &Self, pairs: &[(usize, usize)]) {
        let (lanes, others) = (self.lanes(), other.lanes());
        if pairs.is_empty() {
            return;
        }
        for &(to, from) in pairs {
            self.log_p[to] = other.log_p[from];
        }
        for (own, given) in [(&mut self.x, &other.x), (&mut self.grad, &other.grad)] {
            for (own, given) in own.chunks_mut(lanes).zip(given.chunks(others)) {
                for &(to, from) in pairs {
                    own[to] = given[from];
                }
            }
        }
    }
}

impl Particles {
    pub(super) fn join<'c>(parts: impl Iterator<Item = &'c Self> + Clone) -> Self {
        let rows = |of: fn(&Self) -> &[f64]| beside(parts.clone().map(|c| (of(c), c.lanes())));
        Self {
            x: rows(|particles| &particles.x),
            grad: rows(|particles| &particles.grad),
            log_p: parts
                .flat_map(|particles| particles.log_p.iter().copied())
                .collect(),
        }
    }
}

pub(super) fn beside<'c>(parts: impl Iterator<Item = (&'c [f64], usize)>) -> Vec<f64> {
    let mut parts: Vec<_> = parts.map(|(x, lanes)| x.chunks(lanes)).collect();
    let mut out = Vec::new();
    while let Some(row) = parts[0].next() {
        out.extend_from_slice(row);
        for part in &mut parts[1..] {
            out.extend_from_slice(part.next().expect("as many rows"));
        }
    }
    out
}

pub(super) fn gather(x: &[f64], lanes: usize, from: &[usize]) -> Vec<f64> {
    let mut out = Vec::with_capacity(x.len() / lanes * from.len());
    let neighbours = from.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    match from.first() {
        Some(first) if neighbours => {
            for row in x.chunks(lanes) {
                out.extend_from_slice(&row[*first..first + from.len()]);
            }
        }
        _ => {
            for row in x.chunks(lanes) {
                out.extend(from.iter().map(|&l| row[l]));
            }
        }
    }
    out
}

pub(super) struct Target<'a, D: LogDensity> {
    density: &'a D,
    pub(super) map: Map,
    workspaces: Vec<Scratch<D>>,
    calls: Calls,
}

struct Scratch<D: LogDensity> {
    workspace: D::Workspace,
    grad: Vec<f64>,
    placed: Placed,
}

impl<'a, D: LogDensity> Target<'a, D> {
    pub(super) fn new(density: &'a D, map: Map) -> Self {
        Self {
            density,
            map,
            workspaces: Vec::new(),
            calls: Calls::default(),
        }
    }

    pub(super) fn density(&self) -> &'a D {
        self.density
    }

    pub(super) fn dim(&self) -> usize {
        self.density.dim()
    }

    pub(super) fn work(&self) -> Option<u64> {
        self.density.work()
    }

    pub(super) fn count(&mut self, gradients: usize) {
        self.calls.gradients += gradients as u64;
    }

    pub(super) fn take_calls(&mut self) -> Calls {
        std::mem::take(&mut self.calls)
    }

    pub(super) fn evaluators(&mut self, parts: usize, lanes: usize) -> Vec<Evaluator<'_, D>> {
        while self.workspaces.len() < parts {
            self.workspaces.push(Scratch {
                workspace: self.density.workspace(lanes),
                grad: Vec::new(),
                placed: Placed::default(),
            });
        }
        let (density, map) = (self.density, &self.map);
        let workspaces = self.workspaces[..parts].iter_mut();
        workspaces
            .map(|scratch| Evaluator {
                density,
                map,
                scratch,
            })
            .collect()
    }

    pub(super) fn at(&mut self, x: Vec<f64>) -> Particles {
        let lanes = x.len() / self.dim();
        let mut particles = Particles {
            grad: vec![0.0; x.len()],
            log_p: vec![0.0; lanes],
            x,
        };
        self.evaluators(1, lanes)[0].evaluate(&mut particles);
        self.count(lanes);
        particles
    }
}

pub(super) struct Evaluator<'t, D: LogDensity> {
    density: &'t D,
    map: &'t Map,
    scratch: &'t mut Scratch<D>,
}

impl<D: LogDensity> Evaluator<'_, D> {
    pub(super) fn evaluate(&mut self, particles: &mut Particles) {
        let (dim, lanes) = (self.density.dim(), particles.lanes());
        let Scratch {
            workspace,
            grad,
            placed,
        } = &mut *self.scratch;
        self.map.apply(&particles.x, lanes, placed);
        grad.resize(placed.z.len(), 0.0);
        self.density.value_grad(
            workspace,
            Lanes::new(&placed.z, dim, lanes),
            &mut particles.log_p,
            LanesMut::new(grad, dim, lanes),
        );
        self.map
            .pull(&particles.x, placed, grad, lanes, &mut particles.grad);
        let mut defined: Vec<bool> = particles.log_p.iter().map(|p| p.is_finite()).collect();
        for row in particles.grad.chunks(lanes) {
            for (defined, g) in defined.iter_mut().zip(row) {
                *defined &= g.is_finite();
            }
        }
        for ((value, log_det), defined) in particles
            .log_p
            .iter_mut()
            .zip(&placed.log_det)
            .zip(&defined)
        {
            *value = match defined {
                true => *value + log_det,
                false => f64::NEG_INFINITY,
            };
        }
        if defined.iter().all(|defined| *defined) {
            return;
        }
        for row in particles.grad.chunks_mut(lanes) {
            for (g, defined) in row.iter_mut().zip(&defined) {
                if !defined {
                    *g = 0.0;
                }
            }
        }
    }
}

pub(super) fn base_draws(source: NoiseSource, dim: usize, lanes: usize) -> Vec<f64> {
    let mut noise = vec![0.0; (dim + FREEDOM) * lanes];
    source.fill(
        NoisePurpose::Particle,
        0,
        0,
        dim + FREEDOM,
        lanes,
        &mut noise,
    );
    let squares = Map::squares(&noise[dim * lanes..], lanes);
    noise.truncate(dim * lanes);
    for row in noise.chunks_mut(lanes) {
        for (x, square) in row.iter_mut().zip(&squares) {
            *x *= (FREEDOM as f64 / square).sqrt();
        }
    }
    noise
}

/// The argument `squares` contains squared distances from the centre of the base.
pub(super) fn base_log_density(dim: usize, squares: &[f64]) -> Vec<f64> {
    let (freedom, d) = (FREEDOM as f64, dim as f64);
    let constant = lgamma(0.5 * (freedom + d))
        - lgamma(0.5 * freedom)
        - 0.5 * d * (freedom * std::f64::consts::PI).ln();
    squares
        .iter()
        .map(|s| constant - 0.5 * (freedom + d) * (s / freedom).ln_1p())
        .collect()
}

/// Writes the gradient of the tempered log density to `slope`. At the posterior temperature, `slope` stays empty.
pub(super) fn tempered(beta: f64, particles: &Particles, slope: &mut Vec<f64>) -> Vec<f64> {
    let lanes = particles.lanes();
    if beta == 1.0 {
        return particles.log_p.clone();
    }
    slope.clone_from(&particles.grad);
    let dim = particles.x.len() / lanes;
    let squares = Map::squares(&particles.x, lanes);
    let pulls: Vec<f64> = squares
        .iter()
        .map(|s| (1.0 - beta) * (FREEDOM + dim) as f64 / (FREEDOM as f64 + s))
        .collect();
    for (row, x) in slope.chunks_mut(lanes).zip(particles.x.chunks(lanes)) {
        for ((g, x), pull) in row.iter_mut().zip(x).zip(&pulls) {
            *g = beta * *g - pull * x;
        }
    }
    let base = base_log_density(dim, &squares);
    let values = particles.log_p.iter().zip(base);
    values
        .map(|(p, base)| (1.0 - beta) * base + beta * p)
        .collect()
}
