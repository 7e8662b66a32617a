//! Optimisation paths. A path contains the ELBO of a method as a function of its oracle calls.
//!
//! Every method starts at the standard normal distribution, which is a member of the mean-field family. A separate
//! evaluation computes the ELBO of the iterates. It uses the same draws for all runs on a model. Noise in a method's
//! own estimates therefore does not affect the comparison. The oracle calls and the time of the separate evaluations
//! are not counted. Oracle calls are counted as in the paper; see [`jensen::blackbox::Calls`].

use jensen::Problem;
use jensen::blackbox::{
    Advi, AdviSettings, FamilyKind, GRADIENT_BATCH, Hfsgvi, HfsgviSettings, MethodState,
    NoisePurpose, NoiseSource, Objective, PaperTrust, PaperTrustSettings, Trust, TrustSettings,
};
use jensen::density::LogDensity;
use jensen::math::simd::Simd;
use jensen::run::{Algorithm, Budget, Control, Identity, Silent, Status, Step, run};
use jensen::stan::Model;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::failure::Failure;

const DRAWS: usize = 512;
const FINAL_DRAWS: usize = 8192;

/// The ratio between the numbers of oracle calls at two successive evaluations of the ELBO.
const SPACING: f64 = 1.06;

/// The relative tolerance of [`Method::TightAdvi`], a hundredth of Stan's.
const TIGHT: f64 = 1e-4;

/// An optimisation method whose path is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Method {
    /// ADVI as implemented in Stan, with 256 draws for each gradient.
    Advi,
    /// ADVI with [`TIGHT`] instead of Stan's tolerance.
    TightAdvi,
    /// TrustVI with the default settings of Jensen.
    Trust,
    /// TrustVI exactly as printed in the paper.
    PaperTrust,
    /// Hessian-free Newton steps without a trust region.
    Hfsgvi,
}

impl Method {
    /// Returns the name of the method in tables and legends.
    pub fn name(self) -> &'static str {
        match self {
            Self::Advi | Self::TightAdvi => "ADVI",
            Self::Trust => "TrustVI",
            Self::PaperTrust => "TrustVI as printed",
            Self::Hfsgvi => "HFSGVI",
        }
    }

    /// Returns the name of the method in the names of stored runs, which differs between all methods.
    pub fn key(self) -> &'static str {
        match self {
            Self::TightAdvi => "ADVI-tight",
            other => other.name(),
        }
    }
}

/// An iterate of a run, with its cost and its ELBO.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The number of iterations so far.
    pub iteration: u64,
    /// The number of oracle calls so far.
    pub calls: f64,
    /// The number of evaluations at a single draw so far. A Hessian-vector product counts as two evaluations.
    pub lanes: u64,
    /// The time that the method has used so far, in seconds.
    pub seconds: f64,
    /// The ELBO in nats, or `None` if the density is not finite at some draw.
    pub bound: Option<f64>,
}

/// The path of iterates that one run of a method takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// The method.
    pub method: Method,
    /// The seed.
    pub seed: u64,
    /// The evaluated iterates, from the starting point to the end of the run.
    pub points: Vec<Point>,
    /// The final ELBO in nats, or `None` if the density is not finite at some draw. The final ELBO is computed from
    /// more draws than the ELBO of the other iterates.
    pub bound: Option<f64>,
    /// The status at the end of the run.
    pub status: String,
    /// Whether the run met the stopping rule of the method.
    pub converged: bool,
    /// Whether the run ended because some value was not finite.
    pub overflowed: bool,
}

impl Path {
    /// Returns the final ELBO, or −∞ if it could not be computed.
    pub fn end(&self) -> f64 {
        self.bound.unwrap_or(f64::NEG_INFINITY)
    }

    /// Returns the point of the path from which all later iterates have an ELBO of at least `threshold`. Returns `None`
    /// if the ELBO of the last iterate is lower.
    pub fn reaches(&self, threshold: f64) -> Option<&Point> {
        let reached = |p: &Point| p.bound.is_some_and(|bound| bound >= threshold);
        let late = self.points.iter().rev().take_while(|p| reached(p)).count();
        self.points[self.points.len() - late..].first()
    }
}

struct Judge<'a, D: jensen::density::TwiceDifferentiable> {
    fast: Objective<'a, D>,
    slow: Objective<'a, D>,
}

impl<'a, D: jensen::density::TwiceDifferentiable> Judge<'a, D> {
    fn new(density: &'a D) -> Self {
        let dim = density.dim();
        let source = NoiseSource::new(0x6a75_6467, Simd::detect());
        let objective = |iteration, draws| {
            let noise = source.matched(NoisePurpose::Final, iteration, dim, draws);
            Objective::new(density, FamilyKind::MeanField.build(dim), noise, draws)
        };
        Self {
            fast: objective(0, DRAWS),
            // The number of draws is limited here, because memory grows with the product of the dimension and the
            // number of draws.
            slow: objective(1, FINAL_DRAWS.min(((1 << 22) / dim).max(DRAWS)) & !1),
        }
    }
}

fn bound<D: jensen::density::TwiceDifferentiable>(
    objective: &mut Objective<'_, D>,
    omega: &[f64],
) -> Option<f64> {
    let value = -objective.value(omega);
    value.is_finite().then_some(value)
}

struct Watched<'a, A: Algorithm, D: jensen::density::TwiceDifferentiable> {
    inner: A,
    omega: fn(&A::State) -> &[f64],
    judge: Judge<'a, D>,
    points: Vec<Point>,
    seconds: f64,
}

impl<A: Algorithm, D: jensen::density::TwiceDifferentiable> Watched<'_, A, D> {
    fn note(&mut self, state: &A::State, iteration: u64, calls: f64, lanes: u64, last: bool) {
        let due = self
            .points
            .last()
            .is_none_or(|p| calls >= SPACING * p.calls);
        if due || last {
            let bound = bound(&mut self.judge.fast, (self.omega)(state));
            self.points.push(Point {
                iteration,
                calls,
                lanes,
                seconds: self.seconds,
                bound,
            });
        }
    }
}

impl<A: Algorithm, D: jensen::density::TwiceDifferentiable> Algorithm for Watched<'_, A, D> {
    type State = A::State;
    type Output = (Vec<Point>, Option<f64>);

    fn init(&mut self) -> Result<A::State, Status> {
        let state = self.inner.init()?;
        self.note(&state, 0, 0.0, 0, true);
        Ok(state)
    }

    fn step(&mut self, state: &mut A::State, iteration: u64) -> Step {
        let start = crate::now();
        let step = self.inner.step(state, iteration);
        self.seconds += start.elapsed().as_secs_f64();
        let calls = step.record.oracle_calls as f64;
        let lanes = step.record.fields.get("lane_evaluations");
        let lanes = lanes.and_then(serde_json::Value::as_f64).unwrap_or(0.0) as u64;
        self.note(state, iteration, calls, lanes, step.status.is_some());
        step
    }

    fn output(&mut self, state: &A::State) -> Self::Output {
        let end = bound(&mut self.judge.slow, (self.omega)(state));
        (std::mem::take(&mut self.points), end)
    }
}

/// Runs an optimisation method on a model and records its path.
///
/// # Errors
/// Fails with [`Failure::Stopped`] if the user interrupts the run of the method.
pub fn follow(
    cancel: Cancel<'_>,
    model: &Model,
    method: Method,
    seed: u64,
) -> Result<Path, Failure> {
    let density = model.density();
    let dim = density.dim();
    let family = FamilyKind::MeanField.build(dim);
    let source = NoiseSource::new(seed, Simd::detect());
    let start = family.diagonal(&vec![0.0; dim], &vec![0.0; dim]);
    match method {
        Method::Advi | Method::TightAdvi => {
            let usual = AdviSettings::default();
            let settings = AdviSettings {
                grad_samples: GRADIENT_BATCH,
                tol_rel_obj: match method {
                    Method::TightAdvi => TIGHT,
                    _ => usual.tol_rel_obj,
                },
                ..usual
            };
            let algorithm = Advi::new(density, family, source, settings, &start[..dim]);
            watch(cancel, model, method, seed, algorithm, |s| s.omega())
        }
        Method::Trust => {
            let settings = TrustSettings::default();
            let algorithm = Trust::new(density, family, source, settings, start, 0);
            watch(cancel, model, method, seed, algorithm, |s| s.omega())
        }
        Method::PaperTrust => {
            let settings = PaperTrustSettings::default();
            let algorithm = PaperTrust::new(density, family, source, settings, start);
            watch(cancel, model, method, seed, algorithm, |s| s.omega())
        }
        Method::Hfsgvi => {
            let settings = HfsgviSettings::default();
            let algorithm = Hfsgvi::new(density, family, source, settings, start);
            watch(cancel, model, method, seed, algorithm, |s| s.omega())
        }
    }
}

/// The flag that interrupts a run. The flag is separate from the context, so that several threads can share it.
#[derive(Clone, Copy)]
pub struct Cancel<'a>(Option<&'a std::sync::atomic::AtomicBool>);

impl<'a> Cancel<'a> {
    /// Returns the cancellation flag of a context.
    pub fn of(context: &Context<'a>) -> Self {
        Self(context.cancel())
    }
}

/// The maximum number of iterations of a run. After this number of iterations, a run ends even if its stopping rule is
/// not met.
const MOST_ITERATIONS: u64 = 20_000;

fn watch<A: Algorithm>(
    cancel: Cancel<'_>,
    model: &Model,
    method: Method,
    seed: u64,
    inner: A,
    omega: fn(&A::State) -> &[f64],
) -> Result<Path, Failure> {
    let mut watched = Watched {
        inner,
        omega,
        judge: Judge::new(model.density()),
        points: Vec::new(),
        seconds: 0.0,
    };
    let epoch = crate::now();
    let clock = move || epoch.elapsed().as_secs_f64();
    let mut silent = Silent;
    let mut control = Control::new(Budget::iterations(MOST_ITERATIONS), &clock, &mut silent);
    control.cancel = cancel.0;
    let identity = Identity {
        algorithm: method.name().to_owned(),
        settings: serde_json::Value::Null,
        seed,
        model_hash: String::new(),
        data_hash: String::new(),
        simd: Simd::detect().name().to_owned(),
    };
    let outcome = run(&mut watched, &identity, &mut control)
        .map_err(|error| Failure::Method(error.to_string()))?;
    if matches!(outcome.status, Status::Interrupted { .. }) {
        return Err(Failure::Stopped);
    }
    let (points, bound) = outcome.output.unwrap_or_default();
    Ok(Path {
        method,
        seed,
        points,
        bound,
        converged: outcome.status.is_converged(),
        overflowed: matches!(outcome.status, Status::Diverged { .. }),
        status: outcome.status.to_string(),
    })
}
