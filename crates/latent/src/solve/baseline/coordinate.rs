//! Coordinate ascent with rank-one updates of the posterior covariance (Khan, Mohamed and Murphy 2012).
//!
//! The method visits one predictor at a time. With the cavity variance `c = 1/(1/S_nn − λ_n)`, the new variance solves
//! `v = 1/(1/c + 2 ∂f/∂v(m̄_n, v))`. This changes λ_n by some δ and S by `−δ/(1 + δ S_nn) S_n S_nᵀ`. After each sweep,
//! the mean takes steps `m̄ ← μ̃ − S (Λμ̃ − b)` with `b = Λm̄ − ∂f/∂m`, which are halved until the bound does not fall.

use jensen_run::{Algorithm, Archive, ArchiveError, Evidence, Record, Snapshot, Status, Step};
use rayon::prelude::*;

use super::{Problem, Solution};
use crate::Dense;
use crate::linear::Geometry;
use crate::linear::kernels::{dot, map, sum, symmetric_times};
use crate::site::Sites;

const MEANS: usize = 5;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    alpha: Vec<f64>,
    /// The product Σ̃α.
    product: Vec<f64>,
    lambda: Vec<f64>,
    /// The matrix S, stored column by column.
    covariance: Vec<f64>,
    log_determinant: f64,
    bound: f64,
}

impl Snapshot for State {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("alpha", &self.alpha);
        archive.put("product", &self.product);
        archive.put("lambda", &self.lambda);
        archive.put("covariance", &self.covariance);
        archive.put("numbers", &[self.log_determinant, self.bound]);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let numbers = archive.vec_of("numbers", 2)?;
        Ok(Self {
            alpha: archive.vec("alpha")?,
            product: archive.vec("product")?,
            lambda: archive.vec("lambda")?,
            covariance: archive.vec("covariance")?,
            log_determinant: numbers[0],
            bound: numbers[1],
        })
    }
}

pub(crate) struct Coordinate<'p, 'm> {
    pub problem: &'p mut Problem<'m>,
    pub sites: &'p Sites,
}

impl Coordinate<'_, '_> {
    fn bound(&self, state: &State) -> f64 {
        let n = state.alpha.len();
        let (predictor, variances) = self.marginals(state);
        let values = self.sites.values(&predictor, &variances);
        let quadratic = dot(&state.alpha, &state.product) - dot(&state.lambda, &variances);
        -sum(n, |i| values[i].f) - 0.5 * (quadratic + state.log_determinant)
    }

    fn marginals(&self, state: &State) -> (Vec<f64>, Vec<f64>) {
        let n = state.alpha.len();
        (
            map(n, |i| self.problem.centre[i] - state.product[i]),
            map(n, |i| state.covariance[i * n + i]),
        )
    }

    /// Computes the variance of predictor `i` that is consistent with its cavity.
    fn variance(&self, i: usize, mean: f64, start: f64, cavity: f64) -> f64 {
        let mut v = start;
        for _ in 0..200 {
            let next = 1.0 / (1.0 / cavity + 2.0 * self.sites.value_of(i, mean, v).by_variance);
            if (next - v).abs() <= 1e-12 * v {
                return next;
            }
            // The map decreases in v, so the midpoint between v and its image is nearer to the solution than v.
            v = 0.5 * (v + next);
        }
        v
    }
}

impl Algorithm for Coordinate<'_, '_> {
    type State = State;
    type Output = Solution;

    fn init(&mut self) -> Result<State, Status> {
        let Geometry::Wide(wide) = &self.problem.geometry else {
            return Err(Status::Diverged {
                at: 0,
                reason: "coordinate ascent needs a dense prior with at least as many latent variables as \
                         predictors"
                    .to_owned(),
            });
        };
        let n = wide.covariance.rows;
        let mut state = State {
            alpha: vec![0.0; n],
            product: vec![0.0; n],
            lambda: vec![0.0; n],
            covariance: wide.covariance.data.clone(),
            log_determinant: 0.0,
            bound: 0.0,
        };
        state.bound = self.bound(&state);
        Ok(state)
    }

    fn step(&mut self, state: &mut State, iteration: u64) -> Step {
        let n = state.alpha.len();
        let before = state.bound;
        for i in 0..n {
            let v = state.covariance[i * n + i];
            let cavity = 1.0 / (1.0 / v - state.lambda[i]);
            let mean = self.problem.centre[i] - state.product[i];
            let next = self.variance(i, mean, v, cavity);
            let delta = (1.0 / next - 1.0 / cavity) - state.lambda[i];
            let scale = delta / (1.0 + delta * v);
            if !scale.is_finite() || scale == 0.0 {
                continue;
            }
            let column = state.covariance[i * n..(i + 1) * n].to_vec();
            state
                .covariance
                .par_chunks_mut(n)
                .with_min_len(64)
                .enumerate()
                .for_each(|(j, target)| {
                    let factor = scale * column[j];
                    for (t, c) in target.iter_mut().zip(&column) {
                        *t -= factor * c;
                    }
                });
            state.lambda[i] += delta;
            state.log_determinant += (delta * v).ln_1p();
        }
        state.bound = self.bound(state);
        let s = Dense {
            rows: n,
            cols: n,
            data: std::mem::take(&mut state.covariance),
        };
        let variances = map(n, |i| s.get(i, i));
        let mut moved = Vec::new();
        for _ in 0..MEANS {
            let predictor = map(n, |i| self.problem.centre[i] - state.product[i]);
            let values = self.sites.values(&predictor, &variances);
            // x = Λμ̃ − b, then Σ̃α = S x.
            let x = map(n, |i| {
                values[i].by_mean + state.lambda[i] * state.product[i]
            });
            let product = symmetric_times(&s, &x);
            let alpha = map(n, |i| x[i] - state.lambda[i] * product[i]);
            moved.push((alpha, product));
            let (alpha, product) = moved.last().expect("pushed");
            let mut t = 1.0;
            let mut accepted = false;
            while t > 1e-6 {
                let trial = State {
                    alpha: map(n, |i| state.alpha[i] + t * (alpha[i] - state.alpha[i])),
                    product: map(n, |i| {
                        state.product[i] + t * (product[i] - state.product[i])
                    }),
                    lambda: state.lambda.clone(),
                    covariance: Vec::new(),
                    log_determinant: state.log_determinant,
                    bound: 0.0,
                };
                let mean = map(n, |i| self.problem.centre[i] - trial.product[i]);
                let values = self.sites.values(&mean, &variances);
                let quadratic = dot(&trial.alpha, &trial.product) - dot(&state.lambda, &variances);
                let bound = -sum(n, |i| values[i].f) - 0.5 * (quadratic + state.log_determinant);
                if bound >= state.bound {
                    accepted = bound > state.bound + 1e-13 * bound.abs();
                    state.alpha = trial.alpha;
                    state.product = trial.product;
                    state.bound = bound;
                    break;
                }
                t *= 0.5;
            }
            if !accepted {
                break;
            }
        }
        state.covariance = s.data;
        let gain = state.bound - before;
        let record = Record::new(iteration).with_elbo(state.bound, None);
        if gain.abs() <= 0.1 * self.problem.settings.tolerance {
            let evidence = Evidence {
                rule: format!("the last sweep raised the bound by {:.1e} nats", gain.abs()),
                remaining: Some(gain.abs()),
                standard_error: None,
            };
            return Step::finish(record, Status::Converged { evidence });
        }
        Step::go_on(record)
    }

    fn output(&mut self, state: &State) -> Solution {
        let (predictor, variances) = self.marginals(state);
        super::solution(self.problem, self.sites, predictor, &variances, state.bound)
    }
}
