//! Nested Laplace approximations. The inner approximation is for the local parameters conditional on the global
//! parameters, and the outer approximation is for the global parameters (Rue, Martino and Chopin, *Approximate Bayesian
//! inference for latent Gaussian models by using integrated nested Laplace approximations*, 2009, section 3). The
//! method applies to any density whose pattern has global parameters.
//!
//! For given global parameters, Laplace's method approximates the log integral over the local parameters (their log
//! mass), from their mode and the Hessian at the mode. The result is exact if the local parameters are Gaussian. If the
//! local parameters are independent conditional on the global parameters, quadrature replaces Laplace's method at the
//! drawn points. Newton steps with finite differences find the mode of the mass as a function of the global parameters.
//! This mode exists even for a funnel, whose density has no mode. From there, the method repeatedly draws points from a
//! widened Gaussian over the global parameters. It weights the points by their masses, and sets the mean and the
//! covariance of the Gaussian to those of the weighted points. When the mean and the covariance no longer change, the
//! method fits the means, log scales and regression coefficients of the local parameters to the features of the family,
//! by least squares at the last points. Only the points are random, and their first two sample moments are exact.

use jensen_density::TwiceDifferentiable;
use jensen_run::{Algorithm, Evidence, Record, Status, Step};

mod algebra;
mod gaussian;
mod settings;
mod stored;

use self::algebra::{point, product, root_of_inverse, shares};
use self::gaussian::{moments, nearly_gaussian};
pub use self::settings::NestedSettings;
use crate::calls::Calls;
use crate::dense::{cholesky, eigen_symmetric, solve_lower};
use crate::engine::MethodState;
use crate::family::Conditional;
use crate::family::conditional::skew;
use crate::locals::{Climber, LocalMode};
use crate::noise::{NoisePurpose, NoiseSource};
use crate::psis::psis;
use crate::reduce::{axpy, dot};

/// The shares of a step that are tried: a Newton step of the global parameters, of which the best share is taken, or a
/// natural-gradient step, of which the first share that raises the bound is taken.
pub(crate) const SHARES: [f64; 4] = [1.0, 0.5, 0.2, 0.05];

/// The longest step of a global parameter. Global parameters are usually logarithms of scales, so the longest step
/// multiplies a scale by `e² = 7.4`.
const LONGEST: f64 = 2.0;

/// The distance of a finite difference, in standard deviations. The log mass of a normal falls by 0.045 nats over it,
/// far above the errors of the inner searches. The first distance and the largest one are this number, and the smallest is a
/// thousandth of it.
const DIFFERENCE: f64 = 0.3;

/// The ratio between the standard deviations of the points and the standard deviations of the global parameters.
const WIDER: f64 = 1.3;

/// The largest number of rounds of points. Each round starts from the moments of the points of the round before it.
const ROUNDS: u64 = 4;
/// The iterations have converged when the mean changes by less than this number of standard deviations.
const STILL: f64 = 0.1;

/// The smallest number of points per regression coefficient of a local parameter. With fewer, the coefficients follow
/// the noise of the points.
const DRAWS_PER_FEATURE: usize = 2;

struct Nested<'a, D: TwiceDifferentiable> {
    density: &'a D,
    family: Conditional,
    source: NoiseSource,
    settings: NestedSettings,
    start: Vec<f64>,
    stream: u64,
}

/// The state of the nested Laplace approximation between iterations.
#[derive(Clone, Debug, PartialEq)]
pub struct NestedState {
    omega: Vec<f64>,
    globals: Vec<f64>,
    locals: Vec<f64>,
    differences: Vec<f64>,
    /// The lower factor of the covariance of the global parameters. The factor is empty until the mode of the global
    /// parameters has been found.
    factor: Vec<f64>,
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

struct Quadratic {
    value: f64,
    gradient: Vec<f64>,
    hessian: Vec<f64>,
}

struct Points {
    x: Vec<Vec<f64>>,
    modes: Vec<LocalMode>,
    weights: Vec<f64>,
    share: f64,
}

impl<D: TwiceDifferentiable> Nested<'_, D> {
    fn count(&self) -> usize {
        self.family.globals().len()
    }

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
        // The searches at the other points start at the result for the first point.
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
            let failure = (smallest < 1e-3 * DIFFERENCE).then(|| {
                "for some values of the global parameters, Jensen found no mode of the local ones"
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
            *d = (DIFFERENCE * sd).clamp(1e-3 * DIFFERENCE, DIFFERENCE);
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
                    "no step raises the posterior density of the global parameters, although the model \
                     predicts {predicted:.2} nats"
                )),
            );
        };
        state.globals = trials[t].0.clone();
        if let Some(mode) = &found[t] {
            state.locals = mode.at.clone();
        }
        (mass, predicted, None)
    }

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

    /// Returns the mean and the covariance of the weighted points, corrected by the known moments of a Gaussian. Also
    /// returns how far the mean has moved, in standard deviations.
    fn matched(&self, state: &NestedState, points: &Points) -> Option<(Vec<f64>, Vec<f64>, f64)> {
        let k = self.count();
        let (mut mean, mut covariance) = moments(&points.x, &points.weights, k);
        if let Some([exact, estimated]) = nearly_gaussian(points, k) {
            // The errors of these moments are nearly equal to the errors for a Gaussian with nearly the same weights.
            axpy(1.0, &exact.0, &mut mean);
            axpy(-1.0, &estimated.0, &mut mean);
            axpy(1.0, &exact.1, &mut covariance);
            axpy(-1.0, &estimated.1, &mut covariance);
        } else {
            // A small number of effective points does not determine a covariance.
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

    /// Computes the weights of the features for the local parameters by least squares at the points. The coordinates of
    /// the points are standardised by the Gaussian `before`.
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
        let mut skews = vec![0.0; local];
        for (mode, w) in points.modes.iter().zip(&points.weights) {
            for (skew, skewness) in skews.iter_mut().zip(&mode.skewness) {
                *skew += w * skewness;
            }
        }
        skews
            .iter_mut()
            .for_each(|skew| *skew = skew::of_skewness(*skew));
        let spreads: Vec<f64> = skews
            .iter()
            .map(|g| 0.5 * skew::variance(*g).ln())
            .collect();
        let mut weights = vec![0.0; (local + symbolic.nonzeros()) * f];
        for ((mode, solved), bounded) in points.modes.iter().zip(&plain).zip(&bounded) {
            for (value, row) in mode.at.iter().zip(weights.chunks_mut(f)) {
                axpy(*value, solved, row);
            }
            let of_nonzeros = &mut weights[local * f..];
            for (j, spread) in spreads.iter().enumerate() {
                let p = symbolic.diagonal(j);
                let own = mode.factor[p];
                axpy(
                    own.ln() + spread,
                    solved,
                    &mut of_nonzeros[p * f..(p + 1) * f],
                );
                for (p, _) in symbolic.below(j) {
                    axpy(
                        mode.factor[p] / own,
                        bounded,
                        &mut of_nonzeros[p * f..(p + 1) * f],
                    );
                }
            }
        }
        Some(self.family.member(globals, factor, &weights, &skews))
    }

    fn round(
        &self,
        state: &mut NestedState,
        climber: &mut Climber<'_, D>,
    ) -> Result<(f64, bool), String> {
        let points = self.points(state, climber);
        let (globals, factor, moved) = self
            .matched(state, &points)
            .ok_or("the curvature of the global parameters' posterior gives no covariance")?;
        state.rounds += 1;
        let last = state.rounds >= ROUNDS || moved < STILL;
        if last {
            state.omega = self.fitted(state, &globals, &factor, &points).ok_or(
                "Jensen found modes of the local parameters for too few values of the global parameters",
            )?;
        }
        (state.globals, state.factor) = (globals, factor);
        Ok((points.share, last))
    }
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
