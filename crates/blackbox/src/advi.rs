//! Automatic differentiation variational inference (ADVI), as Stan defines it.
//!
//! ADVI maximises the ELBO by stochastic gradient ascent. Its gradients are naive reparameterisation gradients, from
//! one draw by default. The step is `ω += η k^(−1/2) g / (τ + √s_k)`, where `τ = 1`, `s₁ = g₁²` and `s_k = 0.9
//! s_{k−1} + 0.1 g_k²` (Kucukelbir, Tran, Ranganath, Gelman and Blei, JMLR 18, 2017). The exponent of k is `−1/2 +
//! 10⁻¹⁶` in the paper and `−1/2` in Stan's program.
//!
//! * The candidates for η are 100, 10, 1, 0.1 and 0.01. ADVI tries each candidate in an ascent of 50 iterations from
//!   the start. If a candidate ends with a lower bound than the candidate before it, ADVI chooses the earlier one,
//!   provided that the earlier one improved on the start. If no candidate improves on the start, the run fails. During
//!   adaptation, a gradient that cannot be computed is treated as zero.
//! * Every 100 iterations, ADVI estimates the bound from 100 draws. It stores the relative change `|(previous −
//!   present)/present|` in a window of `max(0.1 K/100, 2)` values, where K is the largest allowed number of iterations.
//!   The run ends when the mean or the (upper) median of the window falls below 0.01.
//! * If the density or the gradient at a draw is not finite, ADVI replaces the draw. If the number of replaced draws
//!   reaches the number of requested draws (or ten times that number for a gradient), the run ends as diverged. Stan
//!   rejects draws on exceptions and on non-finite gradients. This implementation also rejects draws with a non-finite
//!   value, because their gradient is unspecified.
//!
//! Stan's rule on relative changes often stops a run too early. [`AdviStop::Nats`] replaces it by a rule in nats. The
//! random numbers differ from Stan's, so runs agree with Stan's only in distribution.

mod rule;

use std::sync::Arc;

use jensen_density::{Lanes, TwiceDifferentiable};
use jensen_run::{
    Algorithm, Archive, ArchiveError, Evidence, Limit, Record, SettingError, Snapshot, Status, Step,
};
use serde::{Deserialize, Serialize};

pub use self::rule::RelativeRule;
use crate::calls::Calls;
use crate::certificate::certify;
use crate::engine::{Beginning, Engine, Fitting, MethodSettings, MethodState};
use crate::error::{FitError, positive};
use crate::family::Family;
use crate::noise::{NoisePurpose, NoiseSource};
use crate::oracle::{Estimate, Oracle, Stream};

/// The step sizes that the adaptation tries, from the largest to the smallest. They are the ones of Kucukelbir, Tran,
/// Ranganath, Gelman and Blei (2017, section 2.6) and of Stan.
const ETAS: [f64; 5] = [100.0, 10.0, 1.0, 0.1, 0.01];

/// The rule that decides when ADVI stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdviStop {
    /// Stan's rule: the run stops when the relative changes of the bound are small.
    Relative,
    /// A rule in nats. The run stops when a second-order polish improves the bound by at most the tolerance. The
    /// standard error of the improvement is included. ADVI runs the polish only after ten evaluations in which the
    /// bound has gained no more than the tolerance.
    Nats,
}

/// The settings of ADVI, with the same names and defaults as in Stan.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdviSettings {
    /// The number of draws per gradient.
    pub grad_samples: usize,
    /// The number of draws per estimate of the bound.
    pub elbo_samples: usize,
    /// The step-size scale η, or `None` to choose it by adaptation.
    pub eta: Option<f64>,
    /// The number of iterations for which each candidate for η is tried.
    pub adapt_iterations: u64,
    /// The number of iterations between estimates of the bound.
    pub eval_elbo: u64,
    /// The tolerance of the rule on relative changes.
    pub tol_rel_obj: f64,
    /// The largest number of iterations after adaptation. It also determines the length of the window of relative
    /// changes.
    pub max_iterations: u64,
    /// The stopping rule.
    pub stop: AdviStop,
    /// The tolerance of the rule in nats.
    pub tolerance: f64,
}

impl Default for AdviSettings {
    fn default() -> Self {
        Self {
            grad_samples: 1,
            elbo_samples: 100,
            eta: None,
            adapt_iterations: 50,
            eval_elbo: 100,
            tol_rel_obj: 0.01,
            max_iterations: 10_000,
            stop: AdviStop::Relative,
            tolerance: 0.5,
        }
    }
}

impl MethodSettings for AdviSettings {
    const NAME: &'static str = "advi";
    const STARTS: bool = false;

    fn validate(&self) -> Result<(), SettingError> {
        positive([
            ("grad_samples", self.grad_samples as f64),
            ("elbo_samples", self.elbo_samples as f64),
            ("eta", self.eta.unwrap_or(1.0)),
            ("adapt_iterations", self.adapt_iterations as f64),
            ("eval_elbo", self.eval_elbo as f64),
            ("tol_rel_obj", self.tol_rel_obj),
            ("max_iterations", self.max_iterations as f64),
            ("tolerance", self.tolerance),
        ])
    }

    fn lanes(&self, _dim: usize) -> usize {
        self.grad_samples.max(self.elbo_samples).max(512)
    }
}

impl Fitting for AdviSettings {
    type State = AdviState;

    fn begin<'a, D: TwiceDifferentiable>(
        &self,
        at: Beginning<'a, D>,
    ) -> Result<Box<dyn Engine + 'a>, FitError> {
        let start = &at.omega[..at.family.dim()];
        Ok(Box::new(Advi::new(
            at.density, at.family, at.source, *self, start,
        )))
    }

    /// The rule on relative changes needs the certificate as an additional check. The rule in nats already includes it.
    fn certificate(&self) -> Option<f64> {
        (self.stop == AdviStop::Relative).then_some(self.tolerance)
    }
}

/// Automatic differentiation variational inference. Its result is the vector of parameters ω.
pub struct Advi<'a, D: TwiceDifferentiable> {
    density: &'a D,
    source: NoiseSource,
    settings: AdviSettings,
    start: Vec<f64>,
    oracle: Oracle<'a, D>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    Adapt(usize),
    Ascend,
}

/// The state of [`Advi`] between iterations.
#[derive(Clone, Debug, PartialEq)]
pub struct AdviState {
    start: Vec<f64>,
    omega: Vec<f64>,
    history: Vec<f64>,
    phase: Phase,
    k: u64,
    eta: f64,
    elbo_initial: f64,
    elbo_last_eta: f64,
    rule: RelativeRule,
    anchor: Vec<f64>,
    calls: Calls,
}

impl MethodState for AdviState {
    fn omega(&self) -> &[f64] {
        &self.omega
    }

    fn calls(&self) -> Calls {
        self.calls
    }
}

impl<'a, D: TwiceDifferentiable> Advi<'a, D> {
    /// Creates a fit of `family` that starts at the mean `start` with unit scales, as in Stan.
    pub fn new(
        density: &'a D,
        family: Arc<dyn Family>,
        source: NoiseSource,
        settings: AdviSettings,
        start: &[f64],
    ) -> Self {
        Self {
            density,
            source,
            settings,
            start: family.diagonal(start, &vec![0.0; start.len()]),
            oracle: Oracle::new(density, family),
        }
    }

    fn stream(&self, purpose: NoisePurpose, iteration: u64) -> Stream {
        Stream {
            source: self.source,
            purpose,
            iteration,
        }
    }

    fn bound(
        &mut self,
        omega: &[f64],
        purpose: NoisePurpose,
        iteration: u64,
    ) -> Result<Estimate, usize> {
        let stream = self.stream(purpose, iteration);
        self.oracle
            .bound_replacing(omega, stream, self.settings.elbo_samples)
    }

    fn ascend(state: &mut AdviState, gradient: &[f64]) {
        let first = state.k == 1;
        let eta = state.eta / (state.k as f64).sqrt();
        for ((w, s), &g) in state.omega.iter_mut().zip(&mut state.history).zip(gradient) {
            *s = if first { g * g } else { 0.9 * *s + 0.1 * g * g };
            *w += eta * g / (1.0 + s.sqrt());
        }
    }

    fn reset(state: &mut AdviState, phase: Phase, eta: f64) {
        state.omega.clone_from(&state.start);
        state.history.fill(0.0);
        state.phase = phase;
        state.k = 0;
        state.eta = eta;
    }

    fn adapt_step(&mut self, state: &mut AdviState, index: usize) -> Step {
        let iteration = index as u64 * self.settings.adapt_iterations + state.k;
        let mut gradient = vec![0.0; state.omega.len()];
        let stream = self.stream(NoisePurpose::Adapt, iteration);
        let draws = self.settings.grad_samples;
        let found = self
            .oracle
            .gradient_replacing(&state.omega, stream, draws, &mut gradient);
        if found.is_err() {
            gradient.fill(0.0);
        }
        state.k += 1;
        Self::ascend(state, &gradient);
        let eta = state.eta;
        let mut record = Record::default()
            .with("eta", eta)
            .with_text("phase", "adapt");
        let mut status = None;
        if state.k == self.settings.adapt_iterations {
            let omega = state.omega.clone();
            let elbo = self
                .bound(&omega, NoisePurpose::Bound, u64::MAX - 1 - index as u64)
                .map_or(f64::MIN, |e| e.mean);
            record = record.with_elbo(elbo, None);
            let previous = state.elbo_last_eta;
            if elbo < previous && previous > state.elbo_initial {
                Self::reset(state, Phase::Ascend, ETAS[index - 1]);
            } else if index + 1 < ETAS.len() {
                state.elbo_last_eta = elbo;
                Self::reset(state, Phase::Adapt(index + 1), ETAS[index + 1]);
            } else if elbo > state.elbo_initial {
                Self::reset(state, Phase::Ascend, eta);
            } else {
                status = Some(Status::Diverged {
                    at: 0,
                    reason: "every step size of the search ends with a lower bound than the start"
                        .into(),
                });
            }
        }
        Step { record, status }
    }

    fn ascend_step(&mut self, state: &mut AdviState, iteration: u64) -> Step {
        let settings = self.settings;
        let mut record = Record::default()
            .with("eta", state.eta)
            .with_text("phase", "ascend");
        let mut gradient = vec![0.0; state.omega.len()];
        let stream = self.stream(NoisePurpose::Gradient, state.k);
        let draws = settings.grad_samples;
        let found = self
            .oracle
            .gradient_replacing(&state.omega, stream, draws, &mut gradient);
        let diverged = |what: &str, dropped: usize| Status::Diverged {
            at: iteration,
            reason: format!("{dropped} draws of {what} were not finite"),
        };
        if let Err(dropped) = found {
            return Step::finish(record, diverged("a gradient", dropped));
        }
        state.k += 1;
        Self::ascend(state, &gradient);
        let mut status = None;
        if state.k.is_multiple_of(settings.eval_elbo) {
            let omega = state.omega.clone();
            let elbo = match self.bound(&omega, NoisePurpose::Bound, state.k) {
                Ok(elbo) => elbo,
                Err(dropped) => {
                    return Step::finish(record, diverged("an estimate of the bound", dropped));
                }
            };
            let (mean, median) = state.rule.push(elbo.mean);
            record = record
                .with_elbo(elbo.mean, Some(elbo.standard_error))
                .with("relative_mean", mean)
                .with("relative_median", median);
            status = match settings.stop {
                AdviStop::Relative => relative_status(settings.tol_rel_obj, mean, median),
                AdviStop::Nats => self.nats_status(state, &mut record),
            };
        }
        if status.is_none() && state.k >= settings.max_iterations {
            status = Some(Status::BudgetReached {
                limit: Limit::OfMethod(settings.max_iterations),
                detail: String::new(),
            });
        }
        Step { record, status }
    }

    /// After every ten evaluations, the function compares the ELBO with that of the last check on matched draws. If
    /// there is no gain, the function requests a certificate.
    fn nats_status(&mut self, state: &mut AdviState, record: &mut Record) -> Option<Status> {
        let settings = self.settings;
        if !state.k.is_multiple_of(10 * settings.eval_elbo) {
            return None;
        }
        let rows = self.oracle.family().noise_dim();
        /// The number of draws that judge the gain of a window. Their standard error is a sixteenth of the standard
        /// deviation of one draw's gain.
        const DRAWS: usize = 256;
        let noise = self
            .stream(NoisePurpose::Judge, u64::MAX - state.k)
            .lanes(0, rows, DRAWS);
        let noise = Lanes::new(&noise, rows, DRAWS);
        let (gain, _) = self
            .oracle
            .matched_difference(&state.anchor, &state.omega, noise);
        state.anchor.clone_from(&state.omega);
        *record = std::mem::take(record)
            .with("gain", gain.mean)
            .with("gain_se", gain.standard_error);
        if gain.mean - gain.standard_error > settings.tolerance {
            return None;
        }
        let family = self.oracle.family().clone();
        let certificate = certify(
            self.density,
            &family,
            &state.omega,
            self.source,
            state.k,
            settings.tolerance,
        );
        state.calls += certificate.calls;
        let improvement = certificate.improvement;
        *record = std::mem::take(record)
            .with("gap", improvement.mean)
            .with("gap_se", improvement.standard_error);
        certificate
            .within(settings.tolerance)
            .then(|| Status::Converged {
                evidence: Evidence {
                    rule: format!(
                        "a second-order polish finds no more than {} nats",
                        settings.tolerance
                    ),
                    remaining: Some(improvement.mean),
                    standard_error: Some(improvement.standard_error),
                },
            })
    }
}

fn relative_status(tolerance: f64, mean: f64, median: f64) -> Option<Status> {
    (mean < tolerance || median < tolerance).then(|| Status::Converged {
        evidence: Evidence {
            rule: format!(
                "Stan's relative rule: mean {mean:.4} or median {median:.4} of the bound's relative \
                 changes is below {tolerance}"
            ),
            remaining: None,
            standard_error: None,
        },
    })
}

impl<D: TwiceDifferentiable> Algorithm for Advi<'_, D> {
    type State = AdviState;
    type Output = Vec<f64>;

    fn init(&mut self) -> Result<AdviState, Status> {
        let omega = self.start.clone();
        let initial = self.bound(&omega, NoisePurpose::Bound, u64::MAX);
        let elbo_initial = initial.map_err(|dropped| Status::Diverged {
            at: 0,
            reason: format!("{dropped} draws around the starting point have no finite log density"),
        })?;
        let (phase, eta) = match self.settings.eta {
            Some(eta) => (Phase::Ascend, eta),
            None => (Phase::Adapt(0), ETAS[0]),
        };
        Ok(AdviState {
            history: vec![0.0; omega.len()],
            anchor: omega.clone(),
            start: omega.clone(),
            omega,
            phase,
            k: 0,
            eta,
            elbo_initial: elbo_initial.mean,
            elbo_last_eta: f64::MIN,
            rule: RelativeRule::new(self.settings.max_iterations, self.settings.eval_elbo),
            calls: self.oracle.take_calls(),
        })
    }

    fn step(&mut self, state: &mut AdviState, iteration: u64) -> Step {
        let mut step = match state.phase {
            Phase::Adapt(index) => self.adapt_step(state, index),
            Phase::Ascend => self.ascend_step(state, iteration),
        };
        state.calls += self.oracle.take_calls();
        step.record = state.calls.on(step.record);
        step
    }

    fn output(&mut self, state: &AdviState) -> Vec<f64> {
        state.omega.clone()
    }
}

impl Snapshot for AdviState {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("start", &self.start);
        archive.put("omega", &self.omega);
        archive.put("history", &self.history);
        archive.put("anchor", &self.anchor);
        archive.put("changes", &self.rule.changes);
        let numbers = [
            self.eta,
            self.elbo_initial,
            self.elbo_last_eta,
            self.rule.last,
        ];
        archive.put("numbers", &numbers);
        archive.set("phase", self.phase);
        archive.set("k", self.k);
        archive.set("window", self.rule.capacity);
        archive.set("calls", self.calls);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let omega = archive.vec("omega")?;
        let numbers = archive.vec_of("numbers", 4)?;
        Ok(Self {
            start: archive.vec_of("start", omega.len())?,
            history: archive.vec_of("history", omega.len())?,
            anchor: archive.vec_of("anchor", omega.len())?,
            omega,
            phase: archive.get("phase")?,
            k: archive.get("k")?,
            eta: numbers[0],
            elbo_initial: numbers[1],
            elbo_last_eta: numbers[2],
            rule: RelativeRule {
                capacity: archive.get("window")?,
                changes: archive.vec("changes")?,
                last: numbers[3],
            },
            calls: archive.get("calls")?,
        })
    }
}
