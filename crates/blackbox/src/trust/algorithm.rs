//! The iteration of TrustVI.

mod repair;

use std::sync::Arc;

use jensen_density::{RecordDensity, TwiceDifferentiable};
use jensen_run::{Algorithm, Record, Status, Step};

use crate::family::Family;
use crate::noise::{NoisePurpose, NoiseSource};
use crate::objective::Objective;
use crate::oracle::{Oracle, Stream};
use crate::records::{Choose, Layout, StreamPosition, Subsampled};
use crate::reduce::dot;

use super::assessment::{Sample, assess};
use super::explicit::Explicit;
use super::gradient::{Gradient, Gradients};
use super::quadratic::Quadratic;
use super::sampling::{
    Situation, next_change_draws, next_gradient_draws, radius_after_refusal, radius_after_success,
    required_draws, small_radius,
};
use super::settings::TrustSettings;
use super::state::TrustState;
use super::stopping::{PATIENCE, is_near, judge};
use super::subproblem::{Effort, Solution, krylov};
use super::trial::{Proposal, Trial};
use repair::weigh_hessian;

/// While ω does not move, TrustVI uses the same Hessian for this many iterations.
const USES: u64 = 2;

/// If the predicted gain exceeds this number of nats, the model only has to provide a direction, and a few draws
/// suffice for its Hessian.
const FAR: f64 = 10.0;

/// The largest number of draws for a gradient or an assessment while the predicted gain exceeds [`FAR`]. In the tails
/// of a density, Inequality 11 may require arbitrarily many draws, although a wrong step costs little.
const FAR_DRAWS: usize = 1024;

/// A step is assumed to achieve at least this share of the predicted gain, however noisy the gradient is.
const LEAST_PROMISE: f64 = 1e-3;

/// A snapshot moves with the mean of the approximation when a coordinate is farther from it than this number of standard
/// deviations. The noise of the control variate is of third order in the distance of a draw from the snapshot, whose
/// largest part is then still that of the draw.
const AWAY: f64 = 0.5;

/// The number of evaluations of a record per draw with the control variate: at the draw, at the snapshot, and a product
/// there, which counts twice.
pub(super) const CONTROLLED: u64 = 4;

/// Variational inference by stochastic trust regions. Its result is the vector of parameters ω.
pub struct Trust<'a, D: TwiceDifferentiable> {
    density: &'a D,
    family: Arc<dyn Family>,
    source: NoiseSource,
    settings: TrustSettings,
    start: Vec<f64>,
    /// A number that separates the draws of two fits with the same seed.
    stream: u64,
    gradients: Gradients<'a, D>,
    oracle: Oracle<'a, D>,
    records: Option<&'a dyn Choose>,
    controlled: bool,
    products: Option<(u64, Objective<'a, D>)>,
}

impl<'a, D: TwiceDifferentiable> Trust<'a, D> {
    /// Creates a fit of `family` that starts at the parameters `start`. Fits with the same seed need different values
    /// of `stream`.
    pub fn new(
        density: &'a D,
        family: Arc<dyn Family>,
        source: NoiseSource,
        settings: TrustSettings,
        start: Vec<f64>,
        stream: u64,
    ) -> Self {
        Self {
            density,
            source,
            settings,
            start,
            stream,
            gradients: Gradients::new(density),
            oracle: Oracle::new(density, family.clone()),
            records: None,
            controlled: false,
            products: None,
            family,
        }
    }

    fn telling(mut self, records: &'a dyn Choose) -> Self {
        self.records = Some(records);
        self.gradients.records = Some(records);
        self
    }

    /// Reduces the noise of minibatches by the joint control variate, once the predicted gain is at most 10 nats.
    #[must_use]
    pub fn controlled(mut self) -> Self {
        self.controlled = true;
        self
    }

    /// Moves the snapshot of the control variate if the approximation has moved away from it.
    fn expand(&self, state: &mut TrustState) {
        let Some(records) = self.records.filter(|_| self.controlled) else {
            return;
        };
        let mean = self.family.mean(&state.omega);
        let log_sd = self.family.marginal_log_sd(&state.omega);
        let mut each = mean.iter().zip(&state.snapshot).zip(&log_sd);
        let away = state.snapshot.is_empty()
            || each.any(|((mean, at), log_sd)| (mean - at).abs() > AWAY * log_sd.exp());
        if away && state.gap[0] <= FAR {
            // A gradient and a product for each coordinate, of all records.
            let passes = records.batches().div_ceil(CONTROLLED);
            state.calls.gradients += passes;
            state.calls.products += passes * mean.len() as u64;
            state.snapshot = mean;
        }
        if !state.snapshot.is_empty() {
            records.expand(&state.snapshot);
        }
    }

    fn key(&self, iteration: u64) -> u64 {
        (self.stream << 32) | iteration
    }

    fn is_explicit(&self) -> bool {
        self.family.is_factorised() && self.family.dim() <= self.settings.explicit_limit
    }

    /// Returns the number of draws for an explicit Hessian. The cost is about two minibatches of products, and the
    /// number of draws is at least four. Far from the optimum, the cost is half a minibatch, and the number is at least
    /// two.
    fn explicit_draws(&self, far: bool) -> usize {
        let products = self.settings.hessian_draws;
        let (products, least, most) = if far {
            (products / 2, 2, 4)
        } else {
            (2 * products, 4, 16)
        };
        (products / self.family.dim()).clamp(least, most) & !1
    }

    fn product_draws(&self, far: bool) -> usize {
        let least = (4 * self.family.free_rows()).min(1024);
        let draws = self.settings.hessian_draws.max(least);
        let draws = if far { draws / 2 } else { draws };
        draws.next_multiple_of(2)
    }

    fn renew_hessian(&mut self, state: &mut TrustState, iteration: u64) {
        state.uses += 1;
        if state.uses > 1 && state.uses <= USES {
            return;
        }
        state.hessian = iteration;
        state.far = state.gap[0] > FAR;
        if !self.is_explicit() {
            return;
        }
        let again = state.uses > 1;
        state.uses = 1;
        let (found, products) = Explicit::estimate(
            self.density,
            &state.omega,
            self.source,
            self.key(iteration),
            state.boost * self.explicit_draws(state.far),
            self.records,
        );
        state.calls.products += products;
        let Some(found) = found else {
            state.explicit = None;
            return;
        };
        match &mut state.explicit {
            // Hessians at nearby points are averaged.
            Some(average) if again || state.moved <= 1.0 => average.blend(&found),
            _ => state.explicit = Some(found),
        }
    }

    fn objective(&mut self, key: u64, draws: usize) -> &mut Objective<'a, D> {
        let cached = matches!(&self.products, Some((k, _)) if *k == key);
        if !cached {
            let rows = self.family.noise_dim();
            let noise = self
                .source
                .matched(NoisePurpose::Curvature, key, rows, draws);
            let objective = Objective::new(self.density, self.family.clone(), noise, draws);
            self.products = Some((key, objective));
        }
        let (_, objective) = self.products.as_mut().expect("filled above");
        objective
    }

    fn propose(&mut self, state: &mut TrustState, gradient: &Gradient) -> Solution {
        let (settings, family) = (self.settings, self.family.clone());
        let g = &gradient.mean;
        if self.is_explicit() {
            if let Some(explicit) = &state.explicit {
                return explicit.solve(&state.omega, g, state.radius, settings.kappa_h);
            }
            return self.steepest(state, g);
        }
        let key = self.key(state.hessian);
        let first = state.uses == 1;
        let omega = state.omega.clone();
        let draws = state.boost * self.product_draws(state.far);
        let (records, source) = (self.records, self.source);
        let objective = self.objective(key, draws);
        if first {
            objective.charge();
        }
        if let Some(records) = records {
            records.choose(StreamPosition {
                stream: Stream {
                    source,
                    purpose: NoisePurpose::Curvature,
                    iteration: key,
                },
                first: 0,
                layout: Layout::Halves,
            });
        }
        objective.linearize(&omega);
        let most = 2 * g.len() + 10;
        let effort = if state.fine {
            Effort {
                refine: 1e-3,
                max_products: most.min(200),
            }
        } else {
            Effort {
                refine: 0.1,
                max_products: most.min(40),
            }
        };
        let solution = krylov(
            &mut |v, out| objective.hvp(v, out),
            &|r, out| family.precondition(&omega, None, r, out),
            g,
            state.radius,
            effort,
        );
        state.calls += objective.take_calls();
        if solution.norm == 0.0 {
            return self.steepest(state, g);
        }
        solution
    }

    /// Proposes a step for an iteration without a finite Hessian. The negated metric replaces the Hessian.
    fn steepest(&self, state: &TrustState, g: &[f64]) -> Solution {
        let mut step = vec![0.0; g.len()];
        self.family.precondition(&state.omega, None, g, &mut step);
        let length = dot(g, &step).max(0.0).sqrt();
        let share = (state.radius / length).min(1.0);
        step.iter_mut().for_each(|x| *x *= share);
        Solution {
            step,
            predicted: length * length * (share - 0.5 * share * share),
            norm: share * length,
            bounded: share < 1.0,
            unbounded: None,
            products: 0,
            curvature: 1.0,
        }
    }

    fn prepare(&mut self, state: &mut TrustState, iteration: u64) -> Option<Proposal> {
        let family = self.family.clone();
        let gradient = self.gradients.estimate(
            family.as_ref(),
            &state.omega,
            self.source,
            self.key(iteration),
            state.gradient_draws,
            state.hessian_mean(),
        );
        state.calls += self.gradients.take_calls();
        let gradient = gradient?;
        let metric = |r: &[f64], out: &mut [f64]| family.precondition(&state.omega, None, r, out);
        let noise = gradient.noise(&metric);
        let mut scaled = vec![0.0; gradient.mean.len()];
        metric(&gradient.mean, &mut scaled);
        let squared = dot(&gradient.mean, &scaled).max(0.0);
        let solution = self.propose(state, &gradient);
        let deviation = gradient.deviation_along(&solution.step);
        state.gap = [solution.predicted, deviation];
        Some(Proposal {
            // The prediction includes noise of the gradient, which a step does not achieve.
            promised: solution.predicted * (1.0 - noise / squared).max(LEAST_PROMISE),
            gradient,
            solution,
            squared,
            noise,
            deviation,
        })
    }

    fn narrow(&self, state: &mut TrustState, iteration: u64) -> Step {
        if state.moved.is_infinite() && state.rejected < PATIENCE {
            state.rejected += 1;
            state.uses = 0;
            state.omega = self.family.shrink(&state.omega, 0.5);
            let record = state.calls.on(Record::default());
            return Step::go_on(record.with("shrunk", 1.0));
        }
        let reason = "the density or its gradient is not finite at the current draws".into();
        let at = iteration;
        let record = state.calls.on(Record::default());
        Step::finish(record, Status::Diverged { at, reason })
    }

    /// Assesses a step only if its predicted gain is large enough, or if it may be the last step.
    fn attempt(&mut self, state: &mut TrustState, proposal: &Proposal, iteration: u64) -> Trial {
        let settings = self.settings;
        let tolerance = settings.tolerance(self.family.dim());
        let (solution, promised) = (&proposal.solution, proposal.promised);
        let situation = Situation {
            predicted: promised,
            radius: state.radius,
            variance: 0.0,
            gradient_squared: (proposal.squared - proposal.noise).max(0.1 * proposal.squared),
            curvature: solution.curvature,
        };
        let worth = settings.eta * promised >= settings.lambda * state.radius.powi(2);
        let mut attempt = Trial {
            found: None,
            required: None,
            accepted: false,
            near: is_near(solution, proposal.deviation, tolerance),
            small: small_radius(&settings, situation),
        };
        // The test would reject a step with a negligible predicted gain in any case. Only the stopping rule may need
        // its assessment.
        if !(worth || attempt.near) {
            return attempt;
        }
        let mut trial = state.omega.clone();
        for (w, s) in trial.iter_mut().zip(&solution.step) {
            *w += s;
        }
        let sample = Sample {
            source: self.source,
            key: self.key(iteration),
            draws: state.change_draws,
            precision: if attempt.near {
                0.6 * tolerance
            } else {
                f64::INFINITY
            },
            most: settings.max_draws,
            records: self.records,
        };
        let (family, from) = (self.family.as_ref(), &state.omega);
        let quadratic = Quadratic::new(family, from, &trial, state.hessian_mean());
        let found = assess(&mut self.oracle, from, &trial, sample, quadratic.as_ref());
        state.calls += self.oracle.take_calls();
        attempt.accepted = worth && found.change.mean >= settings.eta * promised;
        if found.variance.is_finite() {
            let at = Situation {
                variance: found.variance,
                ..situation
            };
            attempt.required = Some(required_draws(&settings, at));
        }
        if attempt.accepted {
            state.omega = trial;
        }
        attempt.found = Some(found);
        attempt
    }

    fn settle(
        &self,
        state: &mut TrustState,
        proposal: &Proposal,
        trial: &Trial,
        contradicted: bool,
    ) {
        let (settings, solution) = (&self.settings, &proposal.solution);
        let change = trial.found.as_ref().map(|found| found.change.mean);
        if trial.accepted {
            if solution.bounded {
                let ratio = change.unwrap_or(0.0) / proposal.promised;
                let again = state.rejected > 0;
                state.radius =
                    radius_after_success(settings, state.radius, trial.small, ratio, again);
            }
            state.moved = solution.norm;
            state.uses = 0;
            state.rejected = 0;
            return;
        }
        state.rejected += 1;
        if contradicted {
            state.uses = USES;
        }
        if !trial.near {
            let change = change.unwrap_or(f64::NEG_INFINITY);
            let slope = dot(&proposal.gradient.mean, &solution.step);
            let (radius, norm) = (state.radius, solution.norm);
            state.radius = radius_after_refusal(settings, radius, norm, trial.small, slope, change);
        }
    }

    fn resize(
        &self,
        state: &mut TrustState,
        proposal: &Proposal,
        trial: &Trial,
        contradicted: bool,
    ) {
        let settings = self.settings;
        let (norm, noise) = (proposal.squared.sqrt(), proposal.noise.sqrt());
        let by_noise = next_gradient_draws(state.gradient_draws, norm, noise);
        // If no draw of the gradient lies in a tail, the noise of the gradient does not reveal that tail.
        let least = if contradicted {
            2 * state.gradient_draws
        } else if state.rejected > 0 {
            state.gradient_draws
        } else {
            0
        };
        // Far from the optimum, a wrong step costs less than the draws that would prevent it.
        let most = if state.gap[0] > FAR {
            FAR_DRAWS.min(settings.max_draws)
        } else {
            settings.max_draws
        };
        state.gradient_draws = by_noise.max(least).min(most).max(settings.gradient_draws);
        if let Some(required) = trial.required {
            state.change_draws = next_change_draws(state.change_draws, required)
                .min(most)
                .max(settings.change_draws);
        }
    }
}

impl<'a, R: RecordDensity> Trust<'a, Subsampled<R>> {
    /// Creates a fit to records in which every pair of draws has its own minibatch.
    pub fn on_records(
        density: &'a Subsampled<R>,
        family: Arc<dyn Family>,
        source: NoiseSource,
        settings: TrustSettings,
        start: Vec<f64>,
        stream: u64,
    ) -> Self {
        Self::new(density, family, source, settings, start, stream).telling(density)
    }
}

impl<D: TwiceDifferentiable> Algorithm for Trust<'_, D> {
    type State = TrustState;
    type Output = Vec<f64>;

    fn init(&mut self) -> Result<TrustState, Status> {
        Ok(TrustState::at(self.start.clone(), &self.settings))
    }

    fn step(&mut self, state: &mut TrustState, iteration: u64) -> Step {
        let tolerance = self.settings.tolerance(self.family.dim());
        self.expand(state);
        self.renew_hessian(state, iteration);
        let Some(proposal) = self.prepare(state, iteration) else {
            return self.narrow(state, iteration);
        };
        let record = proposal.on(Record::default(), state);
        let trial = self.attempt(state, &proposal, iteration);
        let record = trial.on(record);
        let contradicted = weigh_hessian(state, &proposal, &trial);
        self.settle(state, &proposal, &trial, contradicted);
        if let Some(found) = &trial.found {
            self.retreat(state, found, proposal.promised, self.key(iteration));
        }
        self.resize(state, &proposal, &trial, contradicted);
        let solution = &proposal.solution;
        let found = trial.found.as_ref();
        let status = judge(&self.settings, tolerance, state, iteration, solution, found);
        state.fine = state.fine || solution.unbounded.is_some_and(|gain| gain <= 1.0);
        Step {
            record: state.calls.on(record),
            status,
        }
    }

    fn output(&mut self, state: &TrustState) -> Vec<f64> {
        state.omega.clone()
    }
}
