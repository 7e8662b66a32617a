//! Sample-average approximation. Newton's method runs on fixed draws, in deterministic stages, and the number of draws
//! doubles from stage to stage.
//!
//! Each stage fixes M draws with matched moments ([`NoiseSource::matched`]) and minimises the sample average of the
//! negated ELBO by a trust-region Newton method. The next stage starts from this optimum and uses twice as many draws,
//! which are fresh. Its gain on the fresh draws shows how far the previous optimum was from the true optimum. The
//! sampling errors of the stages are independent and proportional to 1/M. If a stage with M draws gains G after a stage
//! with M' draws, its optimum is therefore `G M'/(M + M')` nats from the true optimum. The fit has converged when this
//! distance plus one standard error is within the tolerance. Convergence is therefore never judged on the draws of the
//! optimisation.
//!
//! The idea of optimising an ELBO on fixed draws is due to Giordano, Ingram and Broderick, *Black box variational
//! inference with a deterministic objective* (JMLR 25, 2024). The matched moments, the doubling and the stopping rule
//! are specific to Jensen.

use std::sync::Arc;

use jensen_density::TwiceDifferentiable;
use jensen_run::{
    Algorithm, Archive, ArchiveError, Evidence, Limit, Record, SettingError, Snapshot, Status, Step,
};
use serde::{Deserialize, Serialize};

use crate::calls::Calls;
use crate::engine::{Beginning, Engine, Fitting, MethodSettings, MethodState};
use crate::error::{FitError, positive};
use crate::family::Family;
use crate::newton::{Effort, Newton};
use crate::noise::{NoisePurpose, NoiseSource};
use crate::objective::Objective;
use crate::reduce::mean_se;
use crate::sizes::{ITERATIONS, KEPT, LANES};

/// The settings of the sample-average approximation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SaaSettings {
    /// The largest estimated distance from the best ELBO of the family, in nats. `None` means 0.001 per coordinate, but
    /// at least 0.05 and at most 0.5. A loss of 0.001 nats moves a mean by 0.045 standard deviations.
    pub tolerance: Option<f64>,
    /// The number of draws in the first stage. `None` means as many draws as exact second moments require, but at least
    /// 128 and at most 512 (or 2048 for the full-rank family).
    pub first_draws: Option<usize>,
    /// The largest number of draws in a stage. If twice as many draws suffice for convergence, the fit may double this
    /// number once. If coordinates times draws would exceed 2²³, the fit uses fewer draws to limit memory, but at least
    /// 256.
    pub max_draws: usize,
    /// The largest total number of Hessian-vector products in all stages. A product over all draws of a stage counts as
    /// one.
    pub max_products: u64,
}

impl Default for SaaSettings {
    fn default() -> Self {
        Self {
            tolerance: None,
            first_draws: None,
            max_draws: 4096,
            max_products: 10_000,
        }
    }
}

impl SaaSettings {
    /// Returns the tolerance in nats for d coordinates.
    pub fn tolerance(&self, dim: usize) -> f64 {
        self.tolerance
            .unwrap_or((1e-3 * dim as f64).clamp(0.05, 0.5))
    }

    fn most_draws(&self, dim: usize) -> usize {
        within_memory(2 * self.max_draws, dim)
    }

    fn max_draws(&self, dim: usize) -> usize {
        within_memory(self.max_draws, dim)
    }

    /// Returns the number of draws for the largest stage if the ELBO is `remaining` nats from its optimum. The function
    /// allows twice as many draws if they could bring the distance within the tolerance. Twice as many draws halve the
    /// distance in theory, and reduce it by a third in practice.
    fn last_draws(&self, dim: usize, remaining: f64) -> usize {
        if remaining <= 1.5 * self.tolerance(dim) {
            self.most_draws(dim)
        } else {
            self.max_draws(dim)
        }
    }

    fn first_draws(&self, family: &dyn Family) -> usize {
        let noise_dim = family.noise_dim();
        // If a covariance has more rows than there are draws, the fit overfits the draws instead of averaging over
        // them.
        let most = if family.free_rows() > 0 {
            MOST_FIRST
        } else {
            512
        };
        let wanted = (DRAWS_A_ROW * noise_dim).next_power_of_two();
        let chosen = self.first_draws.unwrap_or(wanted.clamp(128, most));
        // Antithetic draws come in pairs.
        chosen
            .min(self.max_draws(noise_dim))
            .max(2)
            .next_multiple_of(2)
    }
}

/// The number of draws per row of noise in the first stage. A covariance from four draws per row has a condition number
/// of at most nine by chance, `((1 + ½)/(1 − ½))²`.
const DRAWS_A_ROW: usize = 4;

/// The largest number of draws in the first stage.
const MOST_FIRST: usize = 2048;

/// Returns whether the first stage has enough draws to determine a covariance. With fewer draws, other draws would give
/// a different covariance.
pub(crate) fn averages(dim: usize) -> bool {
    DRAWS_A_ROW * dim <= MOST_FIRST
}

impl MethodSettings for SaaSettings {
    const NAME: &'static str = "saa";

    fn validate(&self) -> Result<(), SettingError> {
        positive([
            ("tolerance", self.tolerance.unwrap_or(1.0)),
            ("first_draws", self.first_draws.unwrap_or(1) as f64),
            ("max_draws", self.max_draws as f64),
            ("max_products", self.max_products as f64),
        ])
    }

    fn lanes(&self, dim: usize) -> usize {
        self.most_draws(dim)
    }
}

impl Fitting for SaaSettings {
    type State = SaaState;

    fn begin<'a, D: TwiceDifferentiable>(
        &self,
        at: Beginning<'a, D>,
    ) -> Result<Box<dyn Engine + 'a>, FitError> {
        Ok(Box::new(Saa::new(
            at.density, at.family, at.source, *self, at.omega, at.stream,
        )))
    }

    fn hands_over(&self, status: &Status, _dim: usize) -> bool {
        matches!(status, Status::Stalled { reason, .. } if reason == KINK)
    }
}

/// Limits the product of coordinates and draws to 2²³, but allows at least 256 draws.
pub(crate) fn within_memory(draws: usize, dim: usize) -> usize {
    draws.min((KEPT / 2 / dim.max(1)).max(LANES))
}

/// The sample-average approximation. Its result is the vector of parameters ω.
pub struct Saa<'a, D: TwiceDifferentiable> {
    density: &'a D,
    family: Arc<dyn Family>,
    source: NoiseSource,
    settings: SaaSettings,
    start: Vec<f64>,
    /// A number that separates the draws of two fits with the same seed.
    stream: u64,
    cache: Option<(u64, Objective<'a, D>)>,
}

/// The state of [`Saa`] between iterations.
#[derive(Clone, Debug, PartialEq)]
pub struct SaaState {
    newton: Newton,
    round: u64,
    lanes: usize,
    fine: bool,
    entry_lanes: Vec<f64>,
    entry: f64,
    /// The last estimate of the distance from the optimum, followed by its standard error, in nats.
    gap: [f64; 2],
    calls: Calls,
    taken: u64,
    products: u64,
}

const KINK: &str =
    "second derivatives do not predict the bound on fixed draws; the density may have kinks";

impl MethodState for SaaState {
    fn omega(&self) -> &[f64] {
        &self.newton.omega
    }

    fn calls(&self) -> Calls {
        self.calls
    }
}

impl<'a, D: TwiceDifferentiable> Saa<'a, D> {
    /// Creates a fit of `family` that starts at the parameters `start`. Fits with the same seed need different values
    /// of `stream`.
    pub fn new(
        density: &'a D,
        family: Arc<dyn Family>,
        source: NoiseSource,
        settings: SaaSettings,
        start: Vec<f64>,
        stream: u64,
    ) -> Self {
        Self {
            density,
            family,
            source,
            settings,
            start,
            stream,
            cache: None,
        }
    }

    fn objective(&mut self, round: u64, lanes: usize) -> &mut Objective<'a, D> {
        let cached = matches!(&self.cache, Some((r, _)) if *r == round);
        if !cached {
            let rows = self.family.noise_dim();
            let key = (self.stream << 32) | round;
            let noise = self.source.matched(NoisePurpose::Sample, key, rows, lanes);
            let objective = Objective::new(self.density, self.family.clone(), noise, lanes);
            self.cache = Some((round, objective));
        }
        let (_, objective) = self.cache.as_mut().expect("filled above");
        objective
    }

    fn begin(&mut self, omega: &[f64], round: u64, lanes: usize, calls: Calls) -> Option<SaaState> {
        let family = self.family.clone();
        let mut factor = 1.0;
        for _ in 0..30 {
            let shrunk = if factor == 1.0 {
                omega.to_vec()
            } else {
                family.shrink(omega, factor)
            };
            let objective = self.objective(round, lanes);
            let newton = Newton::start(objective, shrunk);
            if let Some(newton) = newton {
                return Some(SaaState {
                    entry: newton.value,
                    entry_lanes: objective.lane_values().to_vec(),
                    newton,
                    round,
                    lanes,
                    fine: false,
                    gap: [f64::INFINITY, f64::INFINITY],
                    calls: calls + objective.take_calls(),
                    taken: 0,
                    products: 0,
                });
            }
            factor *= 0.7;
        }
        None
    }

    fn end_round(&mut self, state: &mut SaaState) -> Option<Status> {
        let dim = self.family.dim();
        let tolerance = self.settings.tolerance(dim);
        let mut remaining = f64::INFINITY;
        if state.round > 0 {
            let omega = state.newton.omega.clone();
            let objective = self.objective(state.round, state.lanes);
            objective.value(&omega);
            let half = state.lanes / 2;
            let now = objective.lane_values();
            // A draw and its mirror image together are one observation.
            let pairs: Vec<f64> = (0..half)
                .map(|l| {
                    let difference = |i: usize| now[i] - state.entry_lanes[i];
                    0.5 * (difference(l) + difference(l + half))
                })
                .collect();
            let gain = state.entry - state.newton.value;
            let previous = (state.lanes / 2).max(self.settings.first_draws(self.family.as_ref()));
            let share = previous as f64 / (previous + state.lanes) as f64;
            state.gap = [share * gain.max(0.0), share * mean_se(&pairs).1];
            remaining = state.gap[0] + state.gap[1];
        }
        if remaining <= tolerance {
            return Some(Status::Converged {
                evidence: Evidence {
                    rule: format!(
                        "on fresh draws, the optimum for {} fixed draws is within {tolerance} nats of the best \
                         bound of the family",
                        state.lanes
                    ),
                    remaining: Some(state.gap[0]),
                    standard_error: Some(state.gap[1]),
                },
            });
        }
        let max_draws = self.settings.last_draws(dim, remaining);
        if state.lanes >= max_draws && state.round > 0 {
            return Some(Status::BudgetReached {
                limit: Limit::Draws(max_draws as u64),
                detail: format!(
                    "estimated remaining improvement {:.2} ± {:.2} nats, tolerance {tolerance}",
                    state.gap[0], state.gap[1]
                ),
            });
        }
        let lanes = (2 * state.lanes).min(max_draws).next_multiple_of(2);
        let (omega, gap, products) = (state.newton.omega.clone(), state.gap, state.products);
        let next = self.begin(&omega, state.round + 1, lanes, state.calls);
        match next {
            Some(next) => {
                *state = SaaState {
                    gap,
                    products,
                    ..next
                };
                None
            }
            None => Some(Status::Diverged {
                at: state.round,
                reason: "the density or its gradient is not finite at fresh draws, even if their spread is small"
                    .into(),
            }),
        }
    }
}

impl<D: TwiceDifferentiable> Algorithm for Saa<'_, D> {
    type State = SaaState;
    type Output = Vec<f64>;

    fn init(&mut self) -> Result<SaaState, Status> {
        let lanes = self.settings.first_draws(self.family.as_ref());
        let start = self.start.clone();
        self.begin(&start, 0, lanes, Calls::default())
            .ok_or(Status::Diverged {
                at: 0,
                reason: "the density or its gradient is not finite around the starting point"
                    .into(),
            })
    }

    fn step(&mut self, state: &mut SaaState, iteration: u64) -> Step {
        let tolerance = 0.05 * self.settings.tolerance(self.family.dim());
        let parameters = state.newton.omega.len() as u64;
        let effort = Effort {
            refine: if state.fine { 1e-3 } else { 0.1 },
            max_inner: (parameters + 10).min(if state.fine { 400 } else { 60 }),
        };
        let objective = self.objective(state.round, state.lanes);
        let report = state.newton.step(objective, effort);
        state.calls += objective.take_calls();
        state.taken += 1;
        state.products += report.inner;
        let mut record = Record::default()
            .with_elbo(-state.newton.value, None)
            .with("draws", state.lanes as f64)
            .with("round", state.round as f64)
            .with("radius", report.radius)
            .with("predicted", report.predicted)
            .with("accepted", f64::from(u8::from(report.accepted)))
            .with("inner", report.inner as f64);
        let mut status = None;
        if report.is_last(tolerance) {
            if state.fine {
                status = self.end_round(state);
            } else {
                state.fine = true;
            }
        } else if state.newton.is_stuck() {
            status = Some(Status::Stalled {
                at: iteration,
                reason: format!(
                    "no step, however short, raises the ELBO, although its quadratic approximation predicts a gain of {:.2e} nats",
                    report.predicted
                ),
            });
        } else if state.taken >= ITERATIONS as u64 {
            status = Some(Status::Stalled {
                at: iteration,
                reason: KINK.into(),
            });
        } else if state.products >= self.settings.max_products {
            status = Some(Status::Stalled {
                at: iteration,
                reason: format!(
                    "{} Hessian-vector products did not suffice to find the optimum for {} fixed draws",
                    state.products, state.lanes
                ),
            });
        }
        if state.gap[0].is_finite() {
            record = record
                .with("gap", state.gap[0])
                .with("gap_se", state.gap[1]);
        }
        Step {
            record: state.calls.on(record),
            status,
        }
    }

    fn output(&mut self, state: &SaaState) -> Vec<f64> {
        state.newton.omega.clone()
    }
}

impl Snapshot for SaaState {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.nest("newton", self.newton.save());
        archive.set("round", self.round);
        archive.set("lanes", self.lanes);
        archive.set("fine", self.fine);
        archive.put("entry_lanes", &self.entry_lanes);
        archive.put("entry_gap", &[self.entry, self.gap[0], self.gap[1]]);
        archive.set("calls", self.calls);
        archive.set("counts", [self.taken, self.products]);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let lanes = archive.get("lanes")?;
        let numbers = archive.vec_of("entry_gap", 3)?;
        let [taken, products] = archive.get("counts")?;
        Ok(Self {
            newton: Newton::restore(&archive.nested("newton"))?,
            round: archive.get("round")?,
            lanes,
            fine: archive.get("fine")?,
            entry_lanes: archive.vec_of("entry_lanes", lanes)?,
            entry: numbers[0],
            gap: [numbers[1], numbers[2]],
            calls: archive.get("calls")?,
            taken,
            products,
        })
    }
}
