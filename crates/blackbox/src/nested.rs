//! Nested Laplace approximation: local parameters given global ones, then the global parameters (Rue, Martino and
//! Chopin, *Approximate Bayesian inference for latent Gaussian models by using integrated nested Laplace
//! approximations*, 2009, section 3), for any density whose pattern has global parameters.
//!
//! At given global parameters, the mode of the local parameters and the Hessian there yield the log mass over the local
//! parameters by Laplace's method. This is exact if the local parameters are Gaussian. If they are independent given the
//! global ones, quadrature replaces it at the points. Newton steps with differences climb to the mode of that mass. The
//! mass has a mode even for a funnel, whose density has none. From there the method
//! repeatedly draws points from the widened Gaussian of the global parameters. Their masses serve as weights, which
//! give the Gaussian the mean and covariance of the mass. When mean and covariance no longer change, a least-squares
//! fit of the local parameters' means, log scales and regressions at the last points on the family's features gives the
//! result. Only the points are random, and their first two moments are exact.

use jensen_density::TwiceDifferentiable;
use jensen_run::{Algorithm, Archive, ArchiveError, Evidence, Record, Snapshot, Status, Step};
use serde::{Deserialize, Serialize};

use crate::calls::Calls;
use crate::dense::{cholesky, eigen_symmetric, solve_lower, solve_lower_transposed};
use crate::error::{FitError, positive};
use crate::family::{Conditional, FamilyKind};
use crate::locals::{Climber, LocalMode};
use crate::method::{Beginning, Engine, Fitting, Method, MethodSettings, MethodState};
use crate::noise::{NoisePurpose, NoiseSource};
use crate::psis::psis;
use crate::reduce::{axpy, dot};

/// Settings of the steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NestedSettings {
    /// Predicted gain in nats at which the search for the mode of the global parameters ends.
    pub tolerance: f64,
    /// Number of points of the global parameters per iteration.
    pub points: usize,
    /// Largest number of iterations.
    pub max_iterations: u64,
}

impl Default for NestedSettings {
    fn default() -> Self {
        Self {
            tolerance: 0.01,
            points: 128,
            max_iterations: 60,
        }
    }
}

/// Fractions of a step that are tried together.
const SHARES: [f64; 5] = [1.0, 0.5, 0.25, 0.1, 0.02];

/// Longest step in a coordinate.
const LONGEST: f64 = 2.0;

/// Steps of differences, in standard deviations, and their limits.
const DIFFERENCE: f64 = 0.3;
const DIFFERENCES: (f64, f64) = (1e-4, 0.3);

/// Ratio of the points' standard deviations to those of the global parameters.
const WIDER: f64 = 1.3;

/// Largest number of iterations, and the move of the mean in standard deviations below which they have converged.
const ROUNDS: u64 = 4;
const STILL: f64 = 0.1;

/// Fewest points per feature that estimate its weight.
const DRAWS_PER_FEATURE: usize = 2;

impl MethodSettings for NestedSettings {
    const NAME: &'static str = "nested";
    const STARTS: bool = false;

    fn validate(&self) -> Result<(), String> {
        positive([
            ("tolerance", self.tolerance),
            ("points", self.points as f64),
            ("max_iterations", self.max_iterations as f64),
        ])
    }

    fn lanes(&self, _dim: usize) -> usize {
        self.points
    }

    fn plan(&self, _kind: FamilyKind) -> Vec<Method> {
        vec![(*self).into()]
    }
}

impl Fitting for NestedSettings {
    type State = NestedState;

    fn begin<'a, D: TwiceDifferentiable>(
        &self,
        at: Beginning<'a, D>,
    ) -> Result<Box<dyn Engine + 'a>, FitError> {
        if at.family.kind() != FamilyKind::Conditional {
            return Err(FitError::Setting(format!(
                "nested Laplace approximations are for the family `{}`, not for `{}`",
                FamilyKind::Conditional,
                at.family.kind()
            )));
        }
        Ok(Box::new(Nested {
            density: at.density,
            family: Conditional::new(at.family.space()),
            source: at.source,
            settings: *self,
            start: at.omega,
            stream: at.stream,
        }))
    }
}

/// The algorithm; its output is ω.
struct Nested<'a, D: TwiceDifferentiable> {
    density: &'a D,
    family: Conditional,
    source: NoiseSource,
    settings: NestedSettings,
    start: Vec<f64>,
    stream: u64,
}

/// State of the algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct NestedState {
    omega: Vec<f64>,
    /// The current global parameters, and the local parameters' mode there.
    globals: Vec<f64>,
    locals: Vec<f64>,
    /// Steps of differences.
    differences: Vec<f64>,
    /// Lower factor of the global parameters' covariance; empty before their mode is found.
    factor: Vec<f64>,
    /// Rounds of points.
    rounds: u64,
    calls: Calls,
}

impl MethodState for NestedState {
    fn omega(&self) -> &[f64] {
        &self.omega
    }

    fn calls(&self) -> Calls {
        self.calls
    }
}

/// Log mass of the global parameters around a point by differences.
struct Quadratic {
    value: f64,
    gradient: Vec<f64>,
    /// Negated.
    hessian: Vec<f64>,
}

/// Points of the global parameters with their results.
struct Points {
    /// Coordinates of each in the global parameters' Gaussian.
    x: Vec<Vec<f64>>,
    modes: Vec<LocalMode>,
    /// Normalised and smoothed weights of the global parameters' mass, and the effective share of the points.
    weights: Vec<f64>,
    share: f64,
}

impl<D: TwiceDifferentiable> Nested<'_, D> {
    fn count(&self) -> usize {
        self.family.globals().len()
    }

    /// The mass at the stencil around the global parameters; `None` if it cannot be computed.
    fn quadratic(
        &self,
        climber: &mut Climber<'_, D>,
        state: &mut NestedState,
    ) -> Option<Quadratic> {
        let k = self.count();
        let mut moves = vec![vec![]];
        for i in 0..k {
            moves.push(vec![(i, 1.0)]);
            moves.push(vec![(i, -1.0)]);
        }
        for i in 0..k {
            for j in 0..i {
                moves.push(vec![(i, 1.0), (j, 1.0)]);
            }
        }
        let starts = moves.iter().map(|moves| {
            let mut globals = state.globals.clone();
            for &(i, sign) in moves {
                globals[i] += sign * state.differences[i];
            }
            (globals, state.locals.clone())
        });
        // The others begin where the first one ends.
        let starts: Vec<_> = starts.collect();
        let centre = climber.modes(vec![starts[0].clone()]).pop()??;
        state.locals = centre.at.clone();
        let others = starts[1..]
            .iter()
            .map(|(globals, _)| (globals.clone(), centre.at.clone()));
        let found: Option<Vec<LocalMode>> = climber.modes(others.collect()).into_iter().collect();
        let found = found?;
        let (own, at) = (centre.log_mass, |m: usize| found[m - 1].log_mass);
        let d = &state.differences;
        let mut gradient = vec![0.0; k];
        let mut hessian = vec![0.0; k * k];
        let mut corner = 1 + 2 * k;
        for i in 0..k {
            let (up, down) = (at(1 + 2 * i), at(2 + 2 * i));
            gradient[i] = (up - down) / (2.0 * d[i]);
            hessian[i * k + i] = -(up + down - 2.0 * own) / (d[i] * d[i]);
        }
        for i in 0..k {
            for j in 0..i {
                let mixed = at(corner) - at(1 + 2 * i) - at(1 + 2 * j) + own;
                corner += 1;
                hessian[i * k + j] = -mixed / (d[i] * d[j]);
                hessian[j * k + i] = hessian[i * k + j];
            }
        }
        let numbers = gradient.iter().chain(&hessian);
        let finite = numbers.fold(own.is_finite(), |fine, x| fine & x.is_finite());
        finite.then_some(Quadratic {
            value: own,
            gradient,
            hessian,
        })
    }

    /// A step towards the mode of the global parameters, and the result of the search if it has ended.
    fn climb(
        &self,
        state: &mut NestedState,
        climber: &mut Climber<'_, D>,
    ) -> (f64, f64, Option<String>) {
        let k = self.count();
        let Some(quadratic) = self.quadratic(climber, state) else {
            let smallest = state
                .differences
                .iter()
                .copied()
                .fold(f64::INFINITY, f64::min);
            state.differences.iter_mut().for_each(|d| *d *= 0.2);
            let failure = (smallest < 1e-3 * DIFFERENCES.1).then(|| {
                "no mode of the local parameters was found for some values of the global ones"
                    .to_owned()
            });
            return (f64::NEG_INFINITY, f64::INFINITY, failure);
        };
        let (values, vectors) = eigen_symmetric(&quadratic.hessian, k);
        let largest = values.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
        let mut step = vec![0.0; k];
        for (value, vector) in values.iter().zip(vectors.chunks(k)) {
            let curvature = value.abs().max(1e-6 * largest).max(1e-3);
            axpy(
                dot(vector, &quadratic.gradient) / curvature,
                vector,
                &mut step,
            );
        }
        let longest = step.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
        if longest > LONGEST {
            step.iter_mut().for_each(|s| *s *= LONGEST / longest);
        }
        let predicted = 0.5 * dot(&step, &quadratic.gradient);
        for (i, d) in state.differences.iter_mut().enumerate() {
            let sd = 1.0 / quadratic.hessian[i * k + i].abs().sqrt();
            *d = (DIFFERENCE * sd).clamp(DIFFERENCES.0, DIFFERENCES.1);
        }
        let concave = cholesky(&quadratic.hessian, k);
        if let Some(precision) = concave.filter(|_| predicted < self.settings.tolerance) {
            state.factor = root_of_inverse(&precision, k);
            return (quadratic.value, predicted, None);
        }
        let trials = SHARES.iter().map(|share| {
            let mut globals = state.globals.clone();
            axpy(*share, &step, &mut globals);
            (globals, state.locals.clone())
        });
        let trials: Vec<_> = trials.collect();
        let found = climber.modes(trials.clone());
        let mut best: Option<(usize, f64)> = None;
        for (t, mode) in found.iter().enumerate() {
            let mass = mode
                .as_ref()
                .map_or(f64::NEG_INFINITY, |mode| mode.log_mass);
            if mass > best.map_or(quadratic.value, |(_, mass)| mass) {
                best = Some((t, mass));
            }
        }
        let Some((t, mass)) = best else {
            return (
                quadratic.value,
                predicted,
                Some(format!(
                    "no step raises the mass of the global parameters, although the model predicts {predicted:.2} nats"
                )),
            );
        };
        state.globals = trials[t].0.clone();
        if let Some(mode) = &found[t] {
            state.locals = mode.at.clone();
        }
        (mass, predicted, None)
    }

    /// A round of points around the global parameters' Gaussian.
    fn points(&self, state: &NestedState, climber: &mut Climber<'_, D>) -> Points {
        let (k, fewest) = (
            self.count(),
            DRAWS_PER_FEATURE * self.family.features().count(),
        );
        let count = self.settings.points.max(2 * fewest).next_multiple_of(2);
        let key = (self.stream << 32) | (1 << 31) | state.rounds;
        let noise = match k {
            0 => Vec::new(),
            _ => self.source.matched(NoisePurpose::Sample, key, k, count),
        };
        let x: Vec<Vec<f64>> = (0..count)
            .map(|l| (0..k).map(|i| WIDER * noise[i * count + l]).collect())
            .collect();
        let starts = x.iter().map(|x| {
            (
                point(&state.globals, &state.factor, x),
                state.locals.clone(),
            )
        });
        let modes = climber.modes(starts.collect());
        let found = x
            .into_iter()
            .zip(modes)
            .filter_map(|(x, mode)| Some((x, mode?)));
        let (x, mut modes): (Vec<Vec<f64>>, Vec<LocalMode>) = found.unzip();
        let placed: Vec<Vec<f64>> = x
            .iter()
            .map(|x| point(&state.globals, &state.factor, x))
            .collect();
        climber.integrate(&placed, &mut modes);
        let raw: Vec<f64> = x
            .iter()
            .zip(&modes)
            .map(|(x, mode)| mode.log_mass + 0.5 * dot(x, x) / (WIDER * WIDER))
            .collect();
        let weights: Vec<f64> = if raw.is_empty() {
            Vec::new()
        } else {
            psis(&raw, 1.0)
                .log_weights
                .iter()
                .map(|w| w.exp())
                .collect()
        };
        let share = 1.0 / weights.iter().map(|w| w * w).sum::<f64>() / count as f64;
        Points {
            x,
            modes,
            weights,
            share,
        }
    }

    /// The Gaussian of the global parameters with the moments of the weighted points, corrected by the known moments of a
    /// Gaussian, and the distance that the mean moves, in standard deviations.
    fn matched(&self, state: &NestedState, points: &Points) -> Option<(Vec<f64>, Vec<f64>, f64)> {
        let k = self.count();
        let (mut mean, mut covariance) = moments(&points.x, &points.weights, k);
        if let Some([exact, estimated]) = nearly_gaussian(points, k) {
            // The errors of the points are nearly those that they make of a Gaussian with nearly the same weights.
            axpy(1.0, &exact.0, &mut mean);
            axpy(-1.0, &estimated.0, &mut mean);
            axpy(1.0, &exact.1, &mut covariance);
            axpy(-1.0, &estimated.1, &mut covariance);
        } else {
            // Few points that are left tell little of a covariance.
            let left = points.share * points.x.len() as f64;
            let own = (left / (left + 4.0 * k as f64)).min(1.0);
            for i in 0..k {
                for j in 0..k {
                    let before = f64::from(u8::from(i == j));
                    covariance[i * k + j] = own * covariance[i * k + j] + (1.0 - own) * before;
                }
            }
        }
        let inner = cholesky(&covariance, k)?;
        let moved = mean.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
        let globals = point(&state.globals, &state.factor, &mean);
        Some((globals, product(&state.factor, &inner, k), moved))
    }

    /// ω for global parameters with the Gaussian (`globals`, `factor`). Least squares at the points, whose coordinates
    /// refer to the Gaussian `before`, gives the weights of the local parameters.
    fn fitted(
        &self,
        before: &NestedState,
        globals: &[f64],
        factor: &[f64],
        points: &Points,
    ) -> Option<Vec<f64>> {
        let features = self.family.features();
        let f = features.count();
        let placed = points.x.iter().map(|x| {
            let mut own = point(&before.globals, &before.factor, x);
            axpy(-1.0, globals, &mut own);
            solve_lower(factor, &mut own);
            own
        });
        let placed: Vec<Vec<f64>> = placed.collect();
        if placed.len() < DRAWS_PER_FEATURE * f {
            return None;
        }
        let plain = shares(placed.iter().map(|x| features.at(x)).collect())?;
        let bounded = shares(placed.iter().map(|x| features.bounded_at(x)).collect())?;
        let symbolic = self.family.symbolic();
        let local = self.family.locals().len();
        let mut weights = vec![0.0; (local + symbolic.nonzeros()) * f];
        for ((mode, solved), bounded) in points.modes.iter().zip(&plain).zip(&bounded) {
            for (value, row) in mode.at.iter().zip(weights.chunks_mut(f)) {
                axpy(*value, solved, row);
            }
            let of_nonzeros = &mut weights[local * f..];
            for j in 0..local {
                let p = symbolic.diagonal(j);
                let own = mode.factor[p];
                axpy(own.ln(), solved, &mut of_nonzeros[p * f..(p + 1) * f]);
                for (p, _) in symbolic.below(j) {
                    axpy(
                        mode.factor[p] / own,
                        bounded,
                        &mut of_nonzeros[p * f..(p + 1) * f],
                    );
                }
            }
        }
        Some(self.family.member(globals, factor, &weights))
    }

    /// One iteration over a set of points, and whether it was the last.
    fn round(
        &self,
        state: &mut NestedState,
        climber: &mut Climber<'_, D>,
    ) -> Result<(f64, bool), String> {
        let points = self.points(state, climber);
        let (globals, factor, moved) = self
            .matched(state, &points)
            .ok_or("the mass of the global parameters has no covariance")?;
        state.rounds += 1;
        let last = state.rounds >= ROUNDS || moved < STILL;
        if last {
            state.omega = self.fitted(state, &globals, &factor, &points).ok_or(
                "modes of the local parameters were found for too few values of the global ones",
            )?;
        }
        (state.globals, state.factor) = (globals, factor);
        Ok((points.share, last))
    }
}

/// A mean and a covariance.
type Spread = (Vec<f64>, Vec<f64>);

/// Mean and covariance of weighted points.
fn moments(x: &[Vec<f64>], weights: &[f64], k: usize) -> Spread {
    let mut mean = vec![0.0; k];
    for (x, w) in x.iter().zip(weights) {
        axpy(*w, x, &mut mean);
    }
    let mut covariance = vec![0.0; k * k];
    for (x, w) in x.iter().zip(weights) {
        for i in 0..k {
            for j in 0..k {
                covariance[i * k + j] += w * (x[i] - mean[i]) * (x[j] - mean[j]);
            }
        }
    }
    (mean, covariance)
}

/// Share of the weight that a Gaussian may have at other points and still be nearly the mass: half of it would leave errors as large as
/// those that are taken away.
const ELSEWHERE: f64 = 0.25;

/// The Gaussian whose logarithm is the least-squares quadratic of the log mass at the points: its moments, and those that the points give
/// it. `None` if the mass is not nearly Gaussian.
fn nearly_gaussian(points: &Points, k: usize) -> Option<[Spread; 2]> {
    let features = |x: &[f64]| {
        let products = (0..k).flat_map(|i| (0..=i).map(move |j| (i, j)));
        let mut row = vec![1.0];
        row.extend(x);
        row.extend(products.map(|(i, j)| x[i] * x[j]));
        row
    };
    let count = 1 + k + k * (k + 1) / 2;
    if k == 0 || points.x.len() < DRAWS_PER_FEATURE * count {
        return None;
    }
    let top = points.modes.iter().map(|mode| mode.log_mass);
    let top = top.fold(f64::NEG_INFINITY, f64::max);
    let (mut gram, mut right) = (vec![0.0; count * count], vec![0.0; count]);
    for ((x, mode), w) in points.x.iter().zip(&points.modes).zip(&points.weights) {
        let row = features(x);
        for (i, value) in row.iter().enumerate() {
            axpy(w * value, &row, &mut gram[i * count..(i + 1) * count]);
        }
        axpy(w * (mode.log_mass - top), &row, &mut right);
    }
    (0..count).for_each(|i| gram[i * count + i] *= 1.0 + 1e-9);
    let root = cholesky(&gram, count)?;
    solve_lower(&root, &mut right);
    solve_lower_transposed(&root, &mut right);
    let mut precision = vec![0.0; k * k];
    let products = (0..k).flat_map(|i| (0..=i).map(move |j| (i, j)));
    for ((i, j), value) in products.zip(&right[1 + k..]) {
        precision[i * k + j] -= value;
        precision[j * k + i] -= value;
    }
    let lower = cholesky(&precision, k)?;
    let mut mean = right[1..=k].to_vec();
    solve_lower(&lower, &mut mean);
    solve_lower_transposed(&lower, &mut mean);
    let factor = root_of_inverse(&lower, k);
    let mut covariance = vec![0.0; k * k];
    for i in 0..k {
        for j in 0..k {
            covariance[i * k + j] = dot(&factor[i * k..(i + 1) * k], &factor[j * k..(j + 1) * k]);
        }
    }
    let raw: Vec<f64> = (points.x.iter())
        .map(|x| dot(&features(x), &right) + 0.5 * dot(x, x) / (WIDER * WIDER))
        .collect();
    let weights: Vec<f64> = psis(&raw, 1.0)
        .log_weights
        .iter()
        .map(|w| w.exp())
        .collect();
    let elsewhere = (weights.iter().zip(&points.weights))
        .map(|(a, b)| 0.5 * (a - b).abs())
        .sum::<f64>();
    (elsewhere < ELSEWHERE).then(|| [(mean, covariance), moments(&points.x, &weights, k)])
}

/// The least-squares weight of each point, from the features there.
fn shares(rows: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let f = rows[0].len();
    let mut gram = vec![0.0; f * f];
    for row in &rows {
        for (i, x) in row.iter().enumerate() {
            axpy(*x, row, &mut gram[i * f..(i + 1) * f]);
        }
    }
    (0..f).for_each(|i| gram[i * f + i] *= 1.0 + 1e-9);
    let root = cholesky(&gram, f)?;
    let solved = rows.into_iter().map(|mut row| {
        solve_lower(&root, &mut row);
        solve_lower_transposed(&root, &mut row);
        row
    });
    Some(solved.collect())
}

/// `mean + A x`, A a lower triangle as a full square.
fn point(mean: &[f64], factor: &[f64], x: &[f64]) -> Vec<f64> {
    let k = mean.len();
    (0..k)
        .map(|i| mean[i] + dot(&factor[i * k..=i * k + i], &x[..=i]))
        .collect()
}

/// `A B` of two lower triangles.
fn product(a: &[f64], b: &[f64], k: usize) -> Vec<f64> {
    let mut out = vec![0.0; k * k];
    for i in 0..k {
        for j in 0..=i {
            out[i * k + j] = (j..=i).map(|m| a[i * k + m] * b[m * k + j]).sum();
        }
    }
    out
}

/// The lower factor of the covariance, from that of the precision.
fn root_of_inverse(precision: &[f64], k: usize) -> Vec<f64> {
    let mut covariance = vec![0.0; k * k];
    for i in 0..k {
        let mut unit = vec![0.0; k];
        unit[i] = 1.0;
        solve_lower(precision, &mut unit);
        solve_lower_transposed(precision, &mut unit);
        covariance[i * k..(i + 1) * k].copy_from_slice(&unit);
    }
    cholesky(&covariance, k).unwrap_or_else(|| {
        let mut diagonal = vec![0.0; k * k];
        (0..k).for_each(|i| diagonal[i * k + i] = covariance[i * k + i].max(0.0).sqrt());
        diagonal
    })
}

impl<D: TwiceDifferentiable> Algorithm for Nested<'_, D> {
    type State = NestedState;
    type Output = Vec<f64>;

    fn init(&mut self) -> Result<NestedState, Status> {
        use crate::family::Family;
        let mean = self.family.mean(&self.start);
        let of = |which: &[usize]| which.iter().map(|&c| mean[c]).collect::<Vec<f64>>();
        Ok(NestedState {
            omega: self.start.clone(),
            globals: of(self.family.globals()),
            locals: of(self.family.locals()),
            differences: vec![0.1; self.count()],
            factor: Vec::new(),
            rounds: 0,
            calls: Calls::default(),
        })
    }

    fn step(&mut self, state: &mut NestedState, iteration: u64) -> Step {
        let mut climber = Climber::new(self.density, &self.family);
        let searching = state.factor.len() < self.count() * self.count();
        let mut record = Record::default();
        let stalled = |reason: String| Status::Stalled {
            at: iteration,
            reason,
        };
        let status;
        if searching {
            let (mass, predicted, failure) = self.climb(state, &mut climber);
            record = record.with("log_mass", mass).with("predicted", predicted);
            status = failure.map(stalled);
        } else {
            match self.round(state, &mut climber) {
                Err(failure) => status = Some(stalled(failure)),
                Ok((share, last)) => {
                    record = record.with("share", share);
                    status = last.then(|| Status::Converged {
                        evidence: Evidence {
                            rule: format!(
                                "nested Laplace approximations at {} points of {} global parameters",
                                self.settings.points,
                                self.count()
                            ),
                            remaining: None,
                            standard_error: None,
                        },
                    });
                }
            }
        }
        state.calls += climber.calls;
        let record = state.calls.on(record);
        let late = iteration >= self.settings.max_iterations;
        let status = status.or_else(|| {
            late.then(|| {
                stalled(format!(
                    "{iteration} steps did not find the mode of the global parameters"
                ))
            })
        });
        Step { record, status }
    }

    fn output(&mut self, state: &NestedState) -> Vec<f64> {
        state.omega.clone()
    }
}

impl Snapshot for NestedState {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("omega", &self.omega);
        archive.put("globals", &self.globals);
        archive.put("locals", &self.locals);
        archive.put("differences", &self.differences);
        archive.put("factor", &self.factor);
        archive.set("rounds", self.rounds);
        archive.set("calls", self.calls);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        Ok(Self {
            omega: archive.vec("omega")?,
            globals: archive.vec("globals")?,
            locals: archive.vec("locals")?,
            differences: archive.vec("differences")?,
            factor: archive.vec("factor")?,
            rounds: archive.get("rounds")?,
            calls: archive.get("calls")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a Gaussian mass the moments are exact, wherever the points are; a mass with two peaks is not nearly Gaussian.
    #[test]
    fn moments_of_a_gaussian_mass_are_without_errors_of_the_points() {
        let (mean, precision) = ([0.4, -0.2], [1.5, 0.6, 0.8]);
        let gaussian = |x: &[f64]| {
            let (a, b) = (x[0] - mean[0], x[1] - mean[1]);
            -0.5 * (precision[0] * a * a + 2.0 * precision[1] * a * b + precision[2] * b * b)
        };
        let peaks = |x: &[f64]| -2.0 * (x[0] * x[0] - 1.5).powi(2) - 0.5 * x[1] * x[1];
        let points = |log_mass: &dyn Fn(&[f64]) -> f64| {
            let even = |l: usize, by: f64| 4.0 * ((l + 1) as f64 * by).fract() - 2.0;
            let x: Vec<Vec<f64>> = (0..64)
                .map(|l| vec![even(l, 0.754_877_666), even(l, 0.569_840_29)])
                .collect();
            let mode = |x: &Vec<f64>| LocalMode {
                at: Vec::new(),
                factor: Vec::new(),
                log_mass: log_mass(x),
            };
            let modes: Vec<LocalMode> = x.iter().map(mode).collect();
            let raw = x.iter().zip(&modes);
            let raw = raw.map(|(x, mode)| mode.log_mass + 0.5 * dot(x, x) / (WIDER * WIDER));
            let log_weights = psis(&raw.collect::<Vec<_>>(), 1.0).log_weights;
            Points {
                weights: log_weights.iter().map(|w| w.exp()).collect(),
                share: 0.5,
                x,
                modes,
            }
        };
        let made = points(&gaussian);
        let [exact, estimated] = nearly_gaussian(&made, 2).unwrap();
        let own = moments(&made.x, &made.weights, 2);
        let det = precision[0] * precision[2] - precision[1] * precision[1];
        let covariance = [precision[2], -precision[1], -precision[1], precision[0]];
        let corrected = |[exact, own, estimated]: [&[f64]; 3]| -> Vec<f64> {
            let sums = exact.iter().zip(own).map(|(a, b)| a + b);
            sums.zip(estimated).map(|(sum, c)| sum - c).collect()
        };
        for (found, truth) in corrected([&exact.0, &own.0, &estimated.0]).iter().zip(mean) {
            assert!((found - truth).abs() < 1e-6);
        }
        let found = corrected([&exact.1, &own.1, &estimated.1]);
        for (found, truth) in found.iter().zip(covariance) {
            assert!((found - truth / det).abs() < 1e-6);
        }
        // The points alone are off.
        assert!((own.1[0] - covariance[0] / det).abs() > 0.01);
        assert!(nearly_gaussian(&points(&peaks), 2).is_none());
    }
}
