//! Stochastic-gradient variational inference with any estimator, family and optimiser. The method averages its
//! iterates, and stops by a rule in nats.
//!
//! Iterations are grouped into segments. The average of the iterates in a segment is a candidate result. The method
//! compares each candidate with the best previous one on matched fresh draws. If a segment improves the ELBO by no more
//! than the tolerance, the method halves the step size. After two halvings, a second-order polish on separate draws
//! ([`crate::certify`]) estimates the improvement that is still possible. The fit has converged only if this
//! improvement plus one standard error is within the tolerance. Slow progress alone is not evidence of convergence. For
//! a family without a polish, such as a flow, the fit has converged when smaller and smaller steps no longer improve
//! the ELBO. For such families, the importance weights show the quality of the draws.

use std::sync::Arc;

use jensen_density::{Lanes, TwiceDifferentiable};
use jensen_run::{
    Algorithm, Archive, ArchiveError, Evidence, Record, SettingError, Snapshot, Status, Step,
};
use serde::{Deserialize, Serialize};

use crate::calls::Calls;
use crate::certificate::{PATIENCE, certify};
use crate::engine::{Beginning, Engine, Fitting, MethodSettings, MethodState};
use crate::error::{FitError, positive};
use crate::family::{Family, Smoothness};
use crate::noise::{NoisePurpose, NoiseSource};
use crate::optimiser::{Optimiser, OptimiserState, Rule};
use crate::oracle::{Estimator, Oracle, Stream};

/// The settings of [`Bbvi`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BbviSettings {
    /// The estimator of the gradient.
    pub estimator: Estimator,
    /// The optimiser.
    pub optimiser: Optimiser,
    /// The number of draws per gradient.
    pub draws: usize,
    /// The number of iterations in a segment.
    pub window: u64,
    /// Whether the candidate of a segment is the average of its iterates. Otherwise the candidate is the last iterate.
    pub average: bool,
    /// The number of draws on which two candidates are compared.
    pub judges: usize,
    /// The tolerance for the remaining improvement of the ELBO, in nats.
    pub tolerance: f64,
}

impl Default for BbviSettings {
    fn default() -> Self {
        Self {
            estimator: Estimator::Stl,
            optimiser: Rule::adam().into(),
            draws: 64,
            window: 100,
            average: true,
            judges: 512,
            tolerance: 0.5,
        }
    }
}

impl BbviSettings {
    /// Returns the settings for flows, which use large batches and the small steps that neural networks need.
    pub fn of_flows() -> Self {
        Self {
            optimiser: Optimiser {
                step_size: 0.002,
                ..Rule::adam().into()
            },
            draws: 2048,
            window: 200,
            judges: 2048,
            tolerance: 0.01,
            ..Self::default()
        }
    }
}

impl MethodSettings for BbviSettings {
    const NAME: &'static str = "bbvi";

    fn validate(&self) -> Result<(), SettingError> {
        positive([
            ("draws", self.draws as f64),
            ("window", self.window as f64),
            ("judges", self.judges as f64),
            ("step_size", self.optimiser.step_size),
            ("tolerance", self.tolerance),
        ])
    }

    fn lanes(&self, _dim: usize) -> usize {
        self.draws.max(self.judges)
    }

    fn suits(&self, smoothness: Smoothness) -> bool {
        match smoothness {
            Smoothness::Twice => true,
            Smoothness::Path => self.estimator == Estimator::Stl,
            Smoothness::None => false,
        }
    }
}

impl Fitting for BbviSettings {
    type State = BbviState;

    fn begin<'a, D: TwiceDifferentiable>(
        &self,
        at: Beginning<'a, D>,
    ) -> Result<Box<dyn Engine + 'a>, FitError> {
        Ok(Box::new(Bbvi::new(
            at.density, at.family, at.source, *self, at.omega,
        )))
    }
}

/// The smallest multiple of the step size, after four windows without a gain. It applies to families without a
/// certificate.
const SMALLEST_STEP: f64 = 1.0 / 16.0;

/// Stochastic-gradient variational inference. Its result is the vector of parameters ω.
pub struct Bbvi<'a, D: TwiceDifferentiable> {
    density: &'a D,
    source: NoiseSource,
    settings: BbviSettings,
    start: Vec<f64>,
    oracle: Oracle<'a, D>,
}

/// The state of [`Bbvi`] between iterations.
#[derive(Clone, Debug, PartialEq)]
pub struct BbviState {
    omega: Vec<f64>,
    sum: Vec<f64>,
    summed: u64,
    best: Vec<f64>,
    optimiser: OptimiserState,
    scale: f64,
    halvings: u64,
    failed: u64,
    calls: Calls,
}

impl MethodState for BbviState {
    #[expect(
        clippy::misnamed_getters,
        reason = "the stored result is the best average, not the current point"
    )]
    fn omega(&self) -> &[f64] {
        &self.best
    }

    fn calls(&self) -> Calls {
        self.calls
    }
}

impl<'a, D: TwiceDifferentiable> Bbvi<'a, D> {
    /// Creates a fit of `family` that starts at the parameters `start`.
    pub fn new(
        density: &'a D,
        family: Arc<dyn Family>,
        source: NoiseSource,
        settings: BbviSettings,
        start: Vec<f64>,
    ) -> Self {
        Self {
            density,
            source,
            settings,
            start,
            oracle: Oracle::new(density, family),
        }
    }

    fn noise(&self, purpose: NoisePurpose, iteration: u64, lanes: usize) -> Vec<f64> {
        let stream = Stream {
            source: self.source,
            purpose,
            iteration,
        };
        stream.lanes(0, self.oracle.family().noise_dim(), lanes)
    }

    fn end_window(
        &mut self,
        state: &mut BbviState,
        iteration: u64,
        record: Record,
    ) -> (Record, Option<Status>) {
        let settings = self.settings;
        let rows = self.oracle.family().noise_dim();
        let candidate: Vec<f64> = if settings.average {
            let n = state.summed as f64;
            state.sum.iter().map(|s| s / n).collect()
        } else {
            state.omega.clone()
        };
        state.sum.fill(0.0);
        state.summed = 0;
        let noise = self.noise(NoisePurpose::Bound, iteration, settings.judges);
        let noise = Lanes::new(&noise, rows, settings.judges);
        let (gain, _) = self
            .oracle
            .matched_difference(&state.best, &candidate, noise);
        let weights = self.oracle.log_weights(&candidate, noise);
        let finite: Vec<f64> = weights.into_iter().filter(|w| w.is_finite()).collect();
        let elbo = crate::oracle::Estimate::of(&finite);
        let mut record = record
            .with_elbo(elbo.mean, Some(elbo.standard_error))
            .with("gain", gain.mean)
            .with("gain_se", gain.standard_error)
            .with("step_scale", state.scale);
        if gain.mean > 0.0 {
            state.best = candidate;
        }
        if gain.mean > settings.tolerance.min(0.1) + gain.standard_error {
            state.halvings = 0;
            return (record, None);
        }
        state.scale *= 0.5;
        state.halvings += 1;
        if state.halvings < 2 {
            return (record, None);
        }
        state.halvings = 0;
        let family = self.oracle.family().clone();
        if family.smoothness() != Smoothness::Twice {
            return (record, smallest_step(state, &settings));
        }
        let certificate = certify(
            self.density,
            &family,
            &state.best,
            self.source,
            iteration,
            settings.tolerance,
        );
        state.calls += certificate.calls;
        let improvement = certificate.improvement;
        record = record
            .with("gap", improvement.mean)
            .with("gap_se", improvement.standard_error);
        if certificate.within(settings.tolerance) {
            let evidence = Evidence {
                rule: format!(
                    "a second-order polish finds no more than {} nats",
                    settings.tolerance
                ),
                remaining: Some(improvement.mean),
                standard_error: Some(improvement.standard_error),
            };
            return (record, Some(Status::Converged { evidence }));
        }
        state.failed += 1;
        let status = (state.failed >= PATIENCE).then(|| Status::Stalled {
            at: iteration,
            reason: format!(
                "Jensen halved the step size until the bound no longer rose, but a second-order polish finds \
                 {:.2} ± {:.2} nats more",
                improvement.mean, improvement.standard_error
            ),
        });
        (record, status)
    }
}

fn smallest_step(state: &BbviState, settings: &BbviSettings) -> Option<Status> {
    (state.scale <= SMALLEST_STEP).then(|| Status::Converged {
        evidence: Evidence {
            rule: format!(
                "windows of {} steps raise the bound by at most {} nats, at every step size",
                settings.window,
                settings.tolerance.min(0.1)
            ),
            remaining: None,
            standard_error: None,
        },
    })
}

impl<D: TwiceDifferentiable> Algorithm for Bbvi<'_, D> {
    type State = BbviState;
    type Output = Vec<f64>;

    fn init(&mut self) -> Result<BbviState, Status> {
        let n = self.start.len();
        Ok(BbviState {
            omega: self.start.clone(),
            sum: vec![0.0; n],
            summed: 0,
            best: self.start.clone(),
            optimiser: OptimiserState::new(n),
            scale: 1.0,
            halvings: 0,
            failed: 0,
            calls: Calls::default(),
        })
    }

    fn step(&mut self, state: &mut BbviState, iteration: u64) -> Step {
        let settings = self.settings;
        let rows = self.oracle.family().noise_dim();
        let noise = self.noise(NoisePurpose::Gradient, iteration, settings.draws);
        let noise = Lanes::new(&noise, rows, settings.draws);
        let mut gradient = vec![0.0; state.omega.len()];
        let kept = self
            .oracle
            .gradient(settings.estimator, &state.omega, noise, &mut gradient);
        let mut record = Record::default();
        let mut status = None;
        let finite = gradient.iter().all(|g| g.is_finite());
        if kept == 0 || !finite {
            status = Some(Status::Diverged {
                at: iteration,
                reason: "no draw has a finite log density and gradient; try a smaller step size"
                    .into(),
            });
        } else {
            let scale = state.scale;
            settings
                .optimiser
                .step(&mut state.optimiser, &gradient, scale, &mut state.omega);
            for (s, w) in state.sum.iter_mut().zip(&state.omega) {
                *s += w;
            }
            state.summed += 1;
            if kept < settings.draws {
                record = record.with("rejected", (settings.draws - kept) as f64);
            }
            if iteration.is_multiple_of(settings.window.max(1)) {
                (record, status) = self.end_window(state, iteration, record);
            }
        }
        state.calls += self.oracle.take_calls();
        Step {
            record: state.calls.on(record),
            status,
        }
    }

    fn output(&mut self, state: &BbviState) -> Vec<f64> {
        state.best.clone()
    }
}

impl Snapshot for BbviState {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("omega", &self.omega);
        archive.put("sum", &self.sum);
        archive.put("best", &self.best);
        archive.put("scale", &[self.scale]);
        archive.nest("optimiser", self.optimiser.save());
        let counts = [self.summed, self.halvings, self.failed];
        archive.set("calls", self.calls);
        archive.set("counts", counts);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let omega = archive.vec("omega")?;
        let [summed, halvings, failed] = archive.get("counts")?;
        Ok(Self {
            sum: archive.vec_of("sum", omega.len())?,
            best: archive.vec_of("best", omega.len())?,
            omega,
            scale: archive.vec_of("scale", 1)?[0],
            optimiser: OptimiserState::restore(&archive.nested("optimiser"))?,
            summed,
            halvings,
            failed,
            calls: archive.get("calls")?,
        })
    }
}
