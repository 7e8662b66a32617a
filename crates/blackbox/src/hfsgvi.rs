//! Hessian-free stochastic Gaussian variational inference (HFSGVI). The method takes Newton steps without a trust
//! region. It computes each step by conjugate gradients, from stochastic gradients and Hessian-vector products (Fan,
//! Wang, Beck, Kwok and Heller, NeurIPS 2015, as compared in Regier, Jordan and McAuliffe 2017).
//!
//! The method accepts every proposed step, so the density may overflow at an iterate. Each record of the trace
//! therefore counts the draws with a density or a gradient that is not finite (`overflowed`). A run without any finite
//! draw has diverged. Newton steps also approach saddle points, so the conjugate-gradient method stops at negative
//! curvature and returns its current iterate (Nocedal and Wright, *Numerical Optimization*, algorithm 7.1). The draws,
//! the sample sizes and the counting of evaluations are the same as for [`Trust`](crate::Trust). The method serves only
//! as a baseline for comparisons.

use std::sync::Arc;

use jensen_density::TwiceDifferentiable;
use jensen_run::{
    Algorithm, Archive, ArchiveError, Evidence, Limit, Record, SettingError, Snapshot, Status, Step,
};
use serde::{Deserialize, Serialize};

use crate::calls::{CHANGE_BATCH, Calls, GRADIENT_BATCH, PRODUCT_BATCH};
use crate::engine::{Beginning, Engine, Fitting, MethodSettings, MethodState};
use crate::error::{FitError, positive};
use crate::family::Family;
use crate::noise::{NoisePurpose, NoiseSource};
use crate::objective::Objective;
use crate::oracle::Oracle;
use crate::reduce::{axpy, dot};
use crate::sizes;
use crate::trust::{Gradients, Sample, assess};

/// The settings of [`Hfsgvi`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HfsgviSettings {
    /// The number of draws per gradient.
    pub gradient_draws: usize,
    /// The number of draws for Hessian-vector products.
    pub hessian_draws: usize,
    /// The number of draws for the estimate of the change of the ELBO. The trace reports the estimate, and the stopping
    /// rule uses it.
    pub change_draws: usize,
    /// The relative residual at which conjugate gradients stop.
    pub refine: f64,
    /// The largest number of Hessian-vector products per iteration.
    pub max_products: u64,
    /// The tolerance of the stopping rule, in nats. A run has converged if the predicted and the observed improvement
    /// of the ELBO are both below it.
    pub tolerance: f64,
    /// The largest number of iterations.
    pub max_iterations: u64,
}

impl Default for HfsgviSettings {
    fn default() -> Self {
        Self {
            gradient_draws: GRADIENT_BATCH,
            hessian_draws: PRODUCT_BATCH,
            change_draws: CHANGE_BATCH,
            refine: 0.1,
            max_products: 40,
            tolerance: 0.5,
            max_iterations: 200,
        }
    }
}

impl MethodSettings for HfsgviSettings {
    const NAME: &'static str = "hfsgvi";
    const STARTS: bool = false;

    fn validate(&self) -> Result<(), SettingError> {
        positive([
            ("gradient_draws", self.gradient_draws as f64),
            ("hessian_draws", self.hessian_draws as f64),
            ("change_draws", self.change_draws as f64),
            ("refine", self.refine),
            ("max_products", self.max_products as f64),
            ("tolerance", self.tolerance),
            ("max_iterations", self.max_iterations as f64),
        ])
    }

    /// The method processes draws in blocks, so the size of its matrices does not depend on the number of draws.
    fn lanes(&self, _dim: usize) -> usize {
        sizes::LANES
    }
}

impl Fitting for HfsgviSettings {
    type State = HfsgviState;

    fn begin<'a, D: TwiceDifferentiable>(
        &self,
        at: Beginning<'a, D>,
    ) -> Result<Box<dyn Engine + 'a>, FitError> {
        Ok(Box::new(Hfsgvi::new(
            at.density, at.family, at.source, *self, at.omega,
        )))
    }
}

/// The run has converged after this many successive steps with small predicted and measured gains. One may be due to
/// chance.
const QUIET: u64 = 3;

/// Hessian-free stochastic Gaussian variational inference. Its result is the vector of parameters ω.
pub struct Hfsgvi<'a, D: TwiceDifferentiable> {
    density: &'a D,
    family: Arc<dyn Family>,
    source: NoiseSource,
    settings: HfsgviSettings,
    start: Vec<f64>,
    gradients: Gradients<'a, D>,
    oracle: Oracle<'a, D>,
}

/// The state of [`Hfsgvi`] between iterations.
#[derive(Clone, Debug, PartialEq)]
pub struct HfsgviState {
    omega: Vec<f64>,
    quiet: u64,
    calls: Calls,
}

impl MethodState for HfsgviState {
    fn omega(&self) -> &[f64] {
        &self.omega
    }

    fn calls(&self) -> Calls {
        self.calls
    }
}

impl<'a, D: TwiceDifferentiable> Hfsgvi<'a, D> {
    /// Creates a fit of `family` that starts at the parameters `start`.
    pub fn new(
        density: &'a D,
        family: Arc<dyn Family>,
        source: NoiseSource,
        settings: HfsgviSettings,
        start: Vec<f64>,
    ) -> Self {
        Self {
            density,
            source,
            settings,
            start,
            gradients: Gradients::new(density),
            oracle: Oracle::new(density, family.clone()),
            family,
        }
    }

    fn newton(&self, state: &mut HfsgviState, iteration: u64, g: &[f64]) -> (Vec<f64>, f64, u64) {
        let lanes = self.settings.hessian_draws.next_multiple_of(2);
        let rows = self.family.noise_dim();
        let noise = self
            .source
            .matched(NoisePurpose::Curvature, iteration, rows, lanes);
        let mut objective = Objective::new(self.density, self.family.clone(), noise, lanes);
        objective.charge();
        objective.linearize(&state.omega);
        let n = g.len();
        let (mut step, mut r, mut y) = (vec![0.0; n], g.to_vec(), vec![0.0; n]);
        let metric =
            |r: &[f64], out: &mut [f64]| self.family.precondition(&state.omega, None, r, out);
        metric(&r, &mut y);
        let mut p = y.clone();
        let mut ry = dot(&r, &y);
        let goal = ry * self.settings.refine.powi(2);
        let mut bp = vec![0.0; n];
        let mut products = 0;
        while products < self.settings.max_products && ry > goal && ry > 0.0 {
            objective.hvp(&p, &mut bp);
            products += 1;
            let curvature = dot(&p, &bp);
            if curvature.is_nan() || curvature <= 0.0 {
                if products == 1 {
                    step.clone_from(&p);
                }
                break;
            }
            let alpha = ry / curvature;
            axpy(alpha, &p, &mut step);
            axpy(-alpha, &bp, &mut r);
            metric(&r, &mut y);
            let next = dot(&r, &y);
            let beta = next / ry;
            ry = next;
            for (p, y) in p.iter_mut().zip(&y) {
                *p = y + beta * *p;
            }
        }
        state.calls += objective.take_calls();
        // The predicted improvement is m = ½(gᵀs + rᵀs), because r = g − Bs.
        let predicted = 0.5 * (dot(g, &step) + dot(&r, &step));
        (step, predicted, products)
    }
}

impl<D: TwiceDifferentiable> Algorithm for Hfsgvi<'_, D> {
    type State = HfsgviState;
    type Output = Vec<f64>;

    fn init(&mut self) -> Result<HfsgviState, Status> {
        Ok(HfsgviState {
            omega: self.start.clone(),
            quiet: 0,
            calls: Calls::default(),
        })
    }

    fn step(&mut self, state: &mut HfsgviState, iteration: u64) -> Step {
        let settings = self.settings;
        let gradient = self.gradients.estimate(
            self.family.as_ref(),
            &state.omega,
            self.source,
            iteration,
            settings.gradient_draws,
            None,
        );
        state.calls += self.gradients.take_calls();
        let overflow = |what: &str| Status::Diverged {
            at: iteration,
            reason: format!("a Newton step led to a point where {what}"),
        };
        let Some(gradient) = gradient else {
            let record = Record::default().with("overflowed", settings.gradient_draws as f64);
            let what = "the density or its gradient overflows at all draws of a group";
            return Step::finish(state.calls.on(record), overflow(what));
        };
        let (step, predicted, products) = self.newton(state, iteration, &gradient.mean);
        let mut record = Record::default()
            .with("predicted", predicted)
            .with("products", products as f64)
            .with("overflowed", 2.0 * gradient.dropped as f64);
        let trial: Vec<f64> = state.omega.iter().zip(&step).map(|(w, s)| w + s).collect();
        if trial.iter().any(|x| !x.is_finite()) {
            return Step::finish(state.calls.on(record), overflow("the parameters overflow"));
        }
        let sample = Sample {
            source: self.source,
            key: iteration,
            draws: settings.change_draws,
            precision: f64::INFINITY,
            most: settings.change_draws,
            records: None,
        };
        let found = assess(&mut self.oracle, &state.omega, &trial, sample, None);
        state.calls += self.oracle.take_calls();
        record = record
            .with_elbo(found.after.mean, Some(found.after.standard_error))
            .with("observed", found.change.mean)
            .with("observed_se", found.change.standard_error);
        state.omega = trial;
        let small = predicted <= settings.tolerance
            && found.change.mean.abs() <= settings.tolerance
            && gradient.dropped == 0;
        state.quiet = if small { state.quiet + 1 } else { 0 };
        let status = if state.quiet >= QUIET {
            Some(Status::Converged {
                evidence: Evidence {
                    rule: format!(
                        "{QUIET} Newton steps in a row predict and gain at most {} nats each",
                        settings.tolerance
                    ),
                    remaining: Some(predicted),
                    standard_error: Some(found.change.standard_error),
                },
            })
        } else if iteration >= settings.max_iterations {
            Some(Status::BudgetReached {
                limit: Limit::OfMethod(settings.max_iterations),
                detail: String::new(),
            })
        } else {
            None
        };
        Step {
            record: state.calls.on(record),
            status,
        }
    }

    fn output(&mut self, state: &HfsgviState) -> Vec<f64> {
        state.omega.clone()
    }
}

impl Snapshot for HfsgviState {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("omega", &self.omega);
        archive.set("quiet", self.quiet);
        archive.set("calls", self.calls);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        Ok(Self {
            omega: archive.vec("omega")?,
            quiet: archive.get("quiet")?,
            calls: archive.get("calls")?,
        })
    }
}
