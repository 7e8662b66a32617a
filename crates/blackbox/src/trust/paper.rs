//! TrustVI as published. It is Algorithm 1 of the paper with the sampling rules of sections 3.2 and 3.3, without
//! additions.
//!
//! | rule | implementation |
//! | --- | --- |
//! | lengths | Euclidean in ω |
//! | gradient | the mean of at least 256 independent draws; the jackknife's bound doubles or halves their number |
//! | Hessian | products with 85 draws, reused for a second iteration if the first step is rejected |
//! | N_k | doubled within the iteration until Inequalities 11 and 13 hold with the variance of the current draws |
//! | first N_k of an iteration | the last N_k, at least 128; halved if it exceeds 256 and twice the required number |
//! | acceptance | ℓ′ ≥ ηm′ ≥ λδ² |
//! | radius | γδ, at most δ_max, after an accepted step; δ/γ after a rejected step |
//!
//! If N_k was too small, the paper doubles it only for the *next* iteration, so a step may be accepted with fewer draws
//! than Inequality 11 requires. However, Algorithm 1 requires the inequality to hold. This implementation ensures that
//! it does. The paper has no upper limit for N. This implementation rejects a step if [`TrustSettings::max_draws`]
//! draws do not suffice for it. Lemma 1 always allows the rejection of a step. The quantities ‖∇L‖, L and κ_H in
//! Inequality 13 cannot be observed, so they are estimated as in [`Trust`](super::Trust). The paper has no stopping
//! rule. This implementation ends when two consecutive Newton steps inside the region predict gains of no more than the
//! tolerance.

use std::sync::Arc;

use jensen_density::{Lanes, TwiceDifferentiable};
use jensen_run::{
    Algorithm, Archive, ArchiveError, Evidence, Limit, Record, SettingError, Snapshot, Status, Step,
};
use serde::{Deserialize, Serialize};

use crate::agreement::BLOCKS;
use crate::calls::{CHANGE_BATCH, Calls, GRADIENT_BATCH};
use crate::engine::{Beginning, Engine, Fitting, MethodSettings, MethodState};
use crate::error::FitError;
use crate::family::Family;
use crate::noise::{NoisePurpose, NoiseSource};
use crate::objective::Objective;
use crate::oracle::{Estimate, Oracle, Stream};
use crate::reduce::dot;
use crate::sizes;

use super::gradient::Gradient;
use super::sampling::{Situation, next_gradient_draws, required_draws};
use super::settings::TrustSettings;
use super::stopping::is_near;
use super::subproblem::{Effort, Solution, krylov};

/// While ω does not move, the method uses the same Hessian for this many iterations.
const USES: u64 = 2;

/// The run has converged after this many successive predictions of gains below the tolerance. One may be due to chance.
const QUIET: u64 = 2;

/// If the radius falls below this value, in units of ω, the run counts as stalled.
const NOTHING: f64 = 1e-12;

/// The settings of [`PaperTrust`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaperTrustSettings {
    /// The parameters from Table 1 of the paper, and the numbers of draws.
    pub trust: TrustSettings,
}

impl Default for PaperTrustSettings {
    fn default() -> Self {
        Self::of(TrustSettings::default())
    }
}

impl PaperTrustSettings {
    /// Creates settings with these parameters and with the minibatch sizes of the paper.
    pub fn of(trust: TrustSettings) -> Self {
        Self {
            trust: TrustSettings {
                gradient_draws: GRADIENT_BATCH,
                change_draws: CHANGE_BATCH,
                ..trust
            },
        }
    }
}

impl MethodSettings for PaperTrustSettings {
    const NAME: &'static str = "trust-paper";
    const STARTS: bool = false;

    fn validate(&self) -> Result<(), SettingError> {
        self.trust.validate()
    }

    fn lanes(&self, _dim: usize) -> usize {
        sizes::LANES
    }
}

impl Fitting for PaperTrustSettings {
    type State = PaperTrustState;

    fn begin<'a, D: TwiceDifferentiable>(
        &self,
        at: Beginning<'a, D>,
    ) -> Result<Box<dyn Engine + 'a>, FitError> {
        Ok(Box::new(PaperTrust::new(
            at.density, at.family, at.source, *self, at.omega,
        )))
    }
}

/// The state of a [`PaperTrust`] run between iterations.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperTrustState {
    omega: Vec<f64>,
    radius: f64,
    gradient_draws: usize,
    change_draws: usize,
    /// The iteration in which the current Hessian was drawn. `uses` counts the iterations that have used this Hessian
    /// at the current ω.
    hessian: u64,
    uses: u64,
    quiet: u64,
    calls: Calls,
}

impl MethodState for PaperTrustState {
    fn omega(&self) -> &[f64] {
        &self.omega
    }

    fn calls(&self) -> Calls {
        self.calls
    }
}

impl Snapshot for PaperTrustState {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("omega", &self.omega);
        archive.put("radius", &[self.radius]);
        archive.set("draws", [self.gradient_draws, self.change_draws]);
        archive.set("counts", [self.hessian, self.uses, self.quiet]);
        archive.set("calls", self.calls);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let [gradient_draws, change_draws] = archive.get("draws")?;
        let [hessian, uses, quiet] = archive.get("counts")?;
        Ok(Self {
            omega: archive.vec("omega")?,
            radius: archive.vec_of("radius", 1)?[0],
            gradient_draws,
            change_draws,
            hessian,
            uses,
            quiet,
            calls: archive.get("calls")?,
        })
    }
}

/// TrustVI as published. Its result is the vector of parameters ω.
pub struct PaperTrust<'a, D: TwiceDifferentiable> {
    density: &'a D,
    family: Arc<dyn Family>,
    source: NoiseSource,
    settings: TrustSettings,
    start: Vec<f64>,
    oracle: Oracle<'a, D>,
}

struct Assessed {
    change: Estimate,
    draws: usize,
    required: f64,
}

impl<'a, D: TwiceDifferentiable> PaperTrust<'a, D> {
    /// Creates a fit of `family` that starts at the parameters `start`.
    pub fn new(
        density: &'a D,
        family: Arc<dyn Family>,
        source: NoiseSource,
        settings: PaperTrustSettings,
        start: Vec<f64>,
    ) -> Self {
        Self {
            density,
            source,
            settings: settings.trust,
            start,
            oracle: Oracle::new(density, family.clone()),
            family,
        }
    }

    fn objective(
        &self,
        purpose: NoisePurpose,
        iteration: u64,
        first: usize,
        draws: usize,
    ) -> Objective<'a, D> {
        let stream = Stream {
            source: self.source,
            purpose,
            iteration,
        };
        let noise = stream.lanes(first, self.family.noise_dim(), draws);
        Objective::new(self.density, self.family.clone(), noise, draws)
    }

    fn gradient(&self, state: &mut PaperTrustState, iteration: u64) -> Option<Gradient> {
        let each = state.gradient_draws / BLOCKS;
        let mut groups = Vec::with_capacity(BLOCKS);
        for group in 0..BLOCKS {
            let purpose = NoisePurpose::Gradient;
            let mut objective = self.objective(purpose, iteration, group * each, each);
            let mut gradient = vec![0.0; state.omega.len()];
            let value = objective.value_gradient(&state.omega, &mut gradient);
            state.calls += objective.take_calls();
            if !value.is_finite() {
                return None;
            }
            gradient.iter_mut().for_each(|x| *x = -*x);
            groups.push(gradient);
        }
        Some(Gradient::of(groups, 0))
    }

    fn propose(&self, state: &mut PaperTrustState, g: &[f64], iteration: u64) -> Solution {
        state.uses += 1;
        if state.uses == 1 || state.uses > USES {
            (state.hessian, state.uses) = (iteration, 1);
        }
        let draws = self.settings.hessian_draws;
        let mut objective = self.objective(NoisePurpose::Curvature, state.hessian, 0, draws);
        if state.uses == 1 {
            objective.charge();
        }
        objective.linearize(&state.omega);
        let effort = Effort {
            refine: 1e-3,
            max_products: 2 * g.len() + 10,
        };
        let solution = krylov(
            &mut |v, out| objective.hvp(v, out),
            &|r, out| out.copy_from_slice(r),
            g,
            state.radius,
            effort,
        );
        state.calls += objective.take_calls();
        solution
    }

    /// Estimates the change ℓ′ with as many draws as the inequalities require.
    fn assess(
        &mut self,
        state: &mut PaperTrustState,
        step: &[f64],
        situation: Situation,
        iteration: u64,
    ) -> Assessed {
        let rows = self.family.noise_dim();
        let to: Vec<f64> = state.omega.iter().zip(step).map(|(w, s)| w + s).collect();
        let stream = Stream {
            source: self.source,
            purpose: NoisePurpose::Change,
            iteration,
        };
        let (mut changes, mut target) = (Vec::new(), state.change_draws);
        loop {
            while changes.len() < target {
                let lanes = sizes::lanes(rows).min(target - changes.len());
                let noise = stream.lanes(changes.len(), rows, lanes);
                let noise = Lanes::new(&noise, rows, lanes);
                changes.extend(self.oracle.lane_differences(&state.omega, &to, noise));
            }
            state.calls += self.oracle.take_calls();
            // If the density at any draw is zero at either end, the step is rejected.
            let finite = changes.iter().all(|x| x.is_finite());
            let change = match finite {
                true => Estimate::of(&changes),
                false => Estimate {
                    mean: f64::NEG_INFINITY,
                    standard_error: 0.0,
                },
            };
            let draws = changes.len();
            let variance = change.standard_error.powi(2) * draws as f64;
            let required = required_draws(
                &self.settings,
                Situation {
                    variance,
                    ..situation
                },
            );
            let enough = draws as f64 >= required;
            if enough || !finite || 2 * draws > self.settings.max_draws {
                return Assessed {
                    change,
                    draws,
                    required,
                };
            }
            target = 2 * draws;
        }
    }

    fn resize(&self, state: &mut PaperTrustState, norm: f64, noise: f64, found: Option<&Assessed>) {
        let next = next_gradient_draws(state.gradient_draws, norm, noise);
        let settings = &self.settings;
        state.gradient_draws = next.clamp(settings.gradient_draws, settings.max_draws);
        if let Some(found) = found {
            let many = found.draws as f64 > 2.0 * found.required;
            let halved = many && found.draws > settings.gradient_draws;
            let next = if halved { found.draws / 2 } else { found.draws };
            state.change_draws = next.max(settings.change_draws);
        }
    }

    fn judge(
        &self,
        state: &mut PaperTrustState,
        solution: &Solution,
        deviation: f64,
        iteration: u64,
    ) -> Option<Status> {
        let tolerance = self.settings.tolerance(self.family.dim());
        let near = is_near(solution, deviation, tolerance);
        state.quiet = if near { state.quiet + 1 } else { 0 };
        if state.quiet >= QUIET {
            let rule =
                format!("{QUIET} Newton steps in a row predict gains of at most {tolerance} nats");
            return Some(Status::Converged {
                evidence: Evidence {
                    rule,
                    remaining: Some(solution.predicted),
                    standard_error: Some(deviation),
                },
            });
        }
        if state.radius < NOTHING {
            let reason = "no step, however short, raises the bound as predicted".to_owned();
            return Some(Status::Stalled {
                at: iteration,
                reason,
            });
        }
        (iteration >= self.settings.max_iterations).then(|| Status::BudgetReached {
            limit: Limit::OfMethod(self.settings.max_iterations),
            detail: String::new(),
        })
    }
}

impl<D: TwiceDifferentiable> Algorithm for PaperTrust<'_, D> {
    type State = PaperTrustState;
    type Output = Vec<f64>;

    fn init(&mut self) -> Result<PaperTrustState, Status> {
        let settings = &self.settings;
        Ok(PaperTrustState {
            omega: self.start.clone(),
            radius: settings.delta0,
            gradient_draws: settings.gradient_draws,
            change_draws: settings.change_draws,
            hessian: 0,
            uses: 0,
            quiet: 0,
            calls: Calls::default(),
        })
    }

    fn step(&mut self, state: &mut PaperTrustState, iteration: u64) -> Step {
        let settings = self.settings;
        let Some(gradient) = self.gradient(state, iteration) else {
            let reason = "the density or its gradient is not finite at some draw".into();
            let at = iteration;
            let record = state.calls.on(Record::default());
            return Step::finish(record, Status::Diverged { at, reason });
        };
        let euclidean = |r: &[f64], out: &mut [f64]| out.copy_from_slice(r);
        let squared = dot(&gradient.mean, &gradient.mean);
        let noise = gradient.noise(&euclidean);
        let solution = self.propose(state, &gradient.mean, iteration);
        let deviation = gradient.deviation_along(&solution.step);
        let (promised, radius) = (solution.predicted, state.radius);
        let situation = Situation {
            predicted: promised,
            radius,
            variance: 0.0,
            gradient_squared: (squared - noise).max(0.1 * squared),
            curvature: solution.curvature,
        };
        let mut record = Record::default()
            .with("radius", radius)
            .with("predicted", promised)
            .with("predicted_se", deviation)
            .with("gradient_norm", squared.sqrt())
            .with("gradient_noise", noise.sqrt())
            .with("gradient_draws", state.gradient_draws as f64)
            .with("products", solution.products as f64);
        let worth = settings.eta * promised >= settings.lambda * radius * radius;
        let found = worth.then(|| self.assess(state, &solution.step, situation, iteration));
        let accepted = found.as_ref().is_some_and(|found| {
            found.draws as f64 >= found.required && found.change.mean >= settings.eta * promised
        });
        if let Some(found) = &found {
            record = record
                .with("observed", found.change.mean)
                .with("observed_se", found.change.standard_error)
                .with("change_draws", found.draws as f64)
                .with("required_draws", found.required);
        }
        if accepted {
            for (w, s) in state.omega.iter_mut().zip(&solution.step) {
                *w += s;
            }
            state.uses = 0;
            state.radius = (settings.gamma * radius).min(settings.delta_max);
        } else {
            state.radius = radius / settings.gamma;
        }
        self.resize(state, squared.sqrt(), noise.sqrt(), found.as_ref());
        let status = self.judge(state, &solution, deviation, iteration);
        Step {
            record: state
                .calls
                .on(record.with("accepted", f64::from(u8::from(accepted)))),
            status,
        }
    }

    fn output(&mut self, state: &PaperTrustState) -> Vec<f64> {
        state.omega.clone()
    }
}
