//! Learns hyperparameters by maximising the bound (empirical Bayes), or the sum of the bound and the log priors. The
//! maximum of the sum is the posterior mode of the hyperparameters in unconstrained coordinates. The integration over
//! hyperparameters ([`integrate`](crate::integrate)) starts there.
//!
//! By the envelope theorem, the total derivative of the bound with respect to θ at the dual optimum equals the partial
//! derivative. This partial derivative is computed by the chain rule from the fit's [`Sensitivity`](crate::Sensitivity)
//! and the derivatives of the prior. Quasi-Newton steps (BFGS) move the parameters in unconstrained coordinates:
//! logarithms of positive parameters, and logits of parameters between bounds. A line search on the bound limits each
//! step. Every inner fit starts from the site parameters of the last accepted fit. Each restart begins at a randomly
//! displaced starting point.

mod fewer;

use std::sync::atomic::{AtomicBool, Ordering};

use jensen_math::rng::{Purpose, Stream};
use jensen_run::{
    Algorithm, Archive, ArchiveError, Budget, Clock, Control, Evidence, Identity, Limit, Record,
    Silent, Snapshot, Status, Step, run,
};

use crate::coordinate::Coordinate;
use crate::linear::kernels::dot;
use crate::{
    Error, Fit, LatentModel, Likelihood, Parameter, Prior, PriorDensity, Range, Settings, Warm, fit,
};

/// Settings of the search for hyperparameters.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnSettings {
    /// Settings of the inner fits. Their tolerance limits the accuracy of the bound.
    pub fit: Settings,
    /// The indices of the likelihood's learnt parameters, each with its prior.
    pub likelihood: Vec<(usize, PriorDensity)>,
    /// Whether the objective includes the log priors of the hyperparameters.
    pub priors: bool,
    /// Number of additional starts after the first.
    pub restarts: u32,
    /// Standard deviation of a restart's displacement from the starting values, in unconstrained coordinates.
    pub spread: f64,
    /// A start ends when the estimated gain of the next step is less than this, in nats.
    pub tolerance: f64,
    /// Largest number of steps of one start.
    pub max_steps: u32,
    /// Seed of the displacements.
    pub seed: u64,
}

impl Default for LearnSettings {
    /// Returns settings with one start, fixed likelihood parameters, no priors and a tolerance of 1e-4 nats.
    fn default() -> Self {
        Self {
            fit: Settings::default(),
            likelihood: Vec::new(),
            priors: false,
            restarts: 0,
            spread: 1.0,
            tolerance: 1e-4,
            max_steps: 100,
            seed: 0,
        }
    }
}

/// The learnt hyperparameters and the fit of the model at these values.
#[derive(Clone, Debug, PartialEq)]
pub struct Learned {
    /// All parameters in unconstrained coordinates: first the prior's parameters and then the likelihood's.
    pub x: Vec<f64>,
    /// The prior's hyperparameters, in the order of [`Prior::parameters`].
    pub theta: Vec<f64>,
    /// The likelihood with its learned parameters.
    pub likelihood: Likelihood,
    /// The fit at these parameters, with sensitivities.
    pub fit: Fit,
    /// The status of the search for hyperparameters. The inner fit has its own status.
    pub status: Status,
    /// Number of steps, including those of restarts.
    pub iterations: u64,
    /// Duration of the whole search in seconds, including restarts.
    pub seconds: f64,
    /// The objective at the end of each start, in nats.
    pub starts: Vec<f64>,
    pub(crate) until: f64,
}

/// Largest change of an unconstrained coordinate in one step. For a positive parameter it is a factor of e². Larger steps
/// lead to variances for which the fits are inaccurate.
const LARGEST: f64 = 2.0;

/// Largest number of steps from a point to another mode. Searches that converge take about ten steps.
const CLIMB: usize = 40;

#[derive(Clone, Debug, PartialEq)]
struct State {
    x: Vec<f64>,
    /// The bound, plus the log priors if they are part of the objective.
    objective: f64,
    bound: f64,
    gradient: Vec<f64>,
    /// The inverse Hessian of −objective, column by column, or empty before the first step.
    inverse: Vec<f64>,
    warm: Warm,
    steps: u64,
    evaluations: u64,
    best: Vec<f64>,
    best_objective: f64,
    starts: Vec<f64>,
}

impl Snapshot for State {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        for (name, values) in [
            ("x", &self.x),
            ("gradient", &self.gradient),
            ("inverse", &self.inverse),
            ("alpha", &self.warm.alpha),
            ("lambda", &self.warm.lambda),
            ("predictor", &self.warm.predictor),
            ("best", &self.best),
            ("starts", &self.starts),
        ] {
            archive.put(name, values);
        }
        archive.put("bounds", &[self.objective, self.best_objective, self.bound]);
        archive.set("steps", self.steps);
        archive.set("evaluations", self.evaluations);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let bounds = archive.vec_of("bounds", 3)?;
        Ok(Self {
            x: archive.vec("x")?,
            objective: bounds[0],
            bound: bounds[2],
            gradient: archive.vec("gradient")?,
            inverse: archive.vec("inverse")?,
            warm: Warm {
                alpha: archive.vec("alpha")?,
                lambda: archive.vec("lambda")?,
                predictor: archive.vec("predictor")?,
            },
            steps: archive.get("steps")?,
            evaluations: archive.get("evaluations")?,
            best: archive.vec("best")?,
            best_objective: bounds[1],
            starts: archive.vec("starts")?,
        })
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Watch<'a> {
    clock: &'a dyn Clock,
    cancel: Option<&'a AtomicBool>,
    until: f64,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(control: &Control<'a>) -> Self {
        let before = control.resume.as_ref().map_or(0.0, |stored| stored.seconds);
        let left = control.budget.left().unwrap_or(f64::INFINITY);
        Self {
            clock: control.clock,
            cancel: control.cancel,
            until: control.clock.seconds() + left - before,
        }
    }

    pub(crate) fn after(learned: &Learned, control: &Control<'a>) -> Self {
        Self {
            clock: control.clock,
            cancel: control.cancel,
            until: learned.until,
        }
    }

    /// Returns whether the time limit has passed or the run was cancelled.
    pub(crate) fn is_over(&self) -> bool {
        self.is_cancelled() || self.clock.seconds() >= self.until
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(|c| c.load(Ordering::Relaxed))
    }

    fn fit(
        &self,
        model: &LatentModel,
        settings: &Settings,
        warm: Option<&Warm>,
        sensitivity: bool,
    ) -> Result<Option<Fit>, Error> {
        let mut silent = Silent;
        let budget = Budget {
            max_seconds: (self.until.is_finite())
                .then(|| (self.until - self.clock.seconds()).max(0.0)),
            ..Budget::iterations(2000)
        };
        let mut control = Control {
            cancel: self.cancel,
            ..Control::new(budget, self.clock, &mut silent)
        };
        let identity = Identity {
            algorithm: "latent".to_owned(),
            settings: serde_json::Value::Null,
            seed: 0,
            model_hash: String::new(),
            data_hash: String::new(),
            simd: String::new(),
        };
        let fit = fit(model, settings, warm, sensitivity, &identity, &mut control)?;
        let stopped = match &fit.status {
            Status::Interrupted { .. } => true,
            Status::BudgetReached { limit, .. } => matches!(limit, Limit::Seconds(_)),
            _ => false,
        };
        Ok((!stopped).then_some(fit))
    }
}

pub(crate) struct Evaluated {
    pub fit: Fit,
    pub objective: f64,
    pub gradient: Vec<f64>,
}

pub(crate) struct Surface<'a> {
    prior: &'a dyn Prior,
    model: &'a LatentModel,
    pub settings: &'a LearnSettings,
    pub parameters: Vec<Parameter>,
    coordinates: Vec<Coordinate>,
    pub watch: Watch<'a>,
}

impl<'a> Surface<'a> {
    pub(crate) fn new(
        prior: &'a dyn Prior,
        model: &'a LatentModel,
        settings: &'a LearnSettings,
        watch: Watch<'a>,
    ) -> Self {
        let mut parameters = prior.parameters();
        let (names, values) = (model.likelihood.parameters(), model.likelihood.values());
        parameters.extend(settings.likelihood.iter().map(|(at, density)| Parameter {
            name: names[*at].to_owned(),
            start: values[*at],
            range: Range::Positive,
            density: density.clone(),
        }));
        let of = |parameter| Coordinate::unconstrained_of(parameter, settings.priors);
        Self {
            prior,
            model,
            settings,
            coordinates: parameters.iter().map(of).collect(),
            parameters,
            watch,
        }
    }

    /// Returns the same surface in normal scores.
    pub(crate) fn in_scores(self) -> Self {
        let of = |parameter| Coordinate::score_of(parameter, self.settings.priors);
        Self {
            coordinates: self.parameters.iter().map(of).collect(),
            ..self
        }
    }

    /// Maps unconstrained coordinates of the ranges to coordinates.
    pub(crate) fn scores(&self, unconstrained: &[f64]) -> Vec<f64> {
        let each = self.coordinates.iter().zip(unconstrained);
        each.map(|(c, x)| c.of(*x)).collect()
    }

    fn values(&self, x: &[f64]) -> Vec<f64> {
        let each = self.coordinates.iter().zip(x);
        each.map(|(c, x)| c.value(*x)).collect()
    }

    /// Maps coordinates to the unconstrained coordinates of the ranges.
    pub(crate) fn unconstrained(&self, x: &[f64]) -> Vec<f64> {
        let each = self.coordinates.iter().zip(x);
        each.map(|(c, x)| c.unconstrained(*x)).collect()
    }

    /// Returns the hyperparameters of the prior and the likelihood at x.
    pub(crate) fn split(&self, x: &[f64]) -> (Vec<f64>, Likelihood) {
        let values = self.values(x);
        let (theta, own) = values.split_at(self.prior.parameters().len());
        let mut parameters = self.model.likelihood.values();
        for ((at, _), value) in self.settings.likelihood.iter().zip(own) {
            parameters[*at] = *value;
        }
        let likelihood = self.model.likelihood.with_values(&parameters);
        (theta.to_vec(), likelihood)
    }

    pub(crate) fn model_at(&self, x: &[f64]) -> Result<(Vec<f64>, LatentModel), Error> {
        let (theta, likelihood) = self.split(x);
        let model = LatentModel {
            prior: self.prior.structure(&theta)?,
            design: self.prior.design(&theta, &self.model.design)?,
            likelihood,
            ..self.model.clone()
        };
        Ok((theta, model))
    }

    /// Computes the log priors in the coordinates of x, and their derivatives. All are 0 if the priors are not part of
    /// the objective.
    fn log_priors(&self, x: &[f64]) -> (f64, Vec<f64>) {
        let each = self.coordinates.iter().zip(x).map(|(c, x)| c.log_prior(*x));
        let (logs, slopes): (Vec<f64>, _) = each.unzip();
        (logs.into_iter().sum(), slopes)
    }

    pub(crate) fn log_prior(&self, x: &[f64]) -> f64 {
        self.log_priors(x).0
    }

    /// Fits the model at x without derivatives and computes the objective there. Returns `None` if the fit was stopped.
    pub(crate) fn value(&self, x: &[f64], warm: &Warm) -> Result<Option<(Fit, f64)>, Error> {
        let (_, model) = self.model_at(x)?;
        let Some(fit) = self
            .watch
            .fit(&model, &self.settings.fit, Some(warm), false)?
        else {
            return Ok(None);
        };
        let objective = fit.bound + self.log_prior(x);
        Ok(Some((fit, objective)))
    }

    /// Computes the objective at x and its gradient. Returns `None` if the fit was stopped.
    pub(crate) fn evaluate(
        &self,
        x: &[f64],
        warm: Option<&Warm>,
    ) -> Result<Option<Evaluated>, Error> {
        let (theta, model) = self.model_at(x)?;
        let Some(fit) = self.watch.fit(&model, &self.settings.fit, warm, true)? else {
            return Ok(None);
        };
        let sensitivity = fit
            .sensitivity
            .as_ref()
            .ok_or_else(|| Error::Unsupported("the fit has no sensitivities".to_owned()))?;
        let mut gradient = self.prior.gradient(&theta, &model.prior, sensitivity);
        let own = self.settings.likelihood.iter();
        gradient.extend(own.map(|(at, _)| sensitivity.likelihood[*at]));
        let (log, slopes) = self.log_priors(x);
        let objective = fit.bound + log;
        for (((g, c), x), slope) in (gradient.iter_mut().zip(&self.coordinates).zip(x)).zip(slopes)
        {
            *g = *g * c.slope(*x) + slope;
        }
        if !(objective.is_finite() && gradient.iter().all(|g| g.is_finite())) {
            return Err(Error::Prior(
                "the bound or its gradient is not finite".to_owned(),
            ));
        }
        Ok(Some(Evaluated {
            fit,
            objective,
            gradient,
        }))
    }
}

struct Search<'a> {
    surface: &'a Surface<'a>,
    evaluations: u64,
    error: Option<Error>,
    stopped: bool,
}

impl Search<'_> {
    fn settings(&self) -> &LearnSettings {
        self.surface.settings
    }

    fn evaluate(&mut self, x: &[f64], warm: Option<&Warm>) -> Result<Evaluated, Error> {
        self.evaluations += 1;
        match self.surface.evaluate(x, warm)? {
            Some(evaluated) => Ok(evaluated),
            None => {
                self.stopped = true;
                Err(Error::Prior("the time limit ended a fit".to_owned()))
            }
        }
    }

    /// Returns start number `k`. For k > 0, the starting values are displaced.
    fn start(&self, k: u64) -> Vec<f64> {
        let mut stream = Stream::new(self.settings().seed, Purpose::new("latent restarts"), k, 0);
        (self.surface.parameters.iter())
            .map(|p| {
                // The displacement has a triangular distribution, which is bounded, with the given standard deviation.
                let z = 6f64.sqrt() * (stream.uniform() + stream.uniform() - 1.0);
                let shift = if k == 0 {
                    0.0
                } else {
                    self.settings().spread * z
                };
                p.range.inward(p.start) + shift
            })
            .collect()
    }

    /// Begins start `k`. The first start begins where a search with fewer rows ends, if there is one.
    fn begin(&mut self, k: u64) -> Result<State, Error> {
        let x = self.start(k);
        if k == 0
            && let Some(reached) = fewer::reach(self.surface, &x)
        {
            let mut state = self.begin_at(reached.x, None)?;
            state.inverse = reached.inverse;
            return Ok(state);
        }
        self.begin_at(x, None)
    }

    fn begin_at(&mut self, x: Vec<f64>, warm: Option<&Warm>) -> Result<State, Error> {
        let Evaluated {
            fit,
            objective,
            gradient,
        } = self.evaluate(&x, warm)?;
        Ok(State {
            best: x.clone(),
            best_objective: objective,
            x,
            objective,
            bound: fit.bound,
            gradient,
            inverse: Vec::new(),
            warm: fit.warm(),
            steps: 0,
            evaluations: self.evaluations,
            starts: Vec::new(),
        })
    }

    fn next_start(&mut self, state: &mut State, status: Status) -> Option<Status> {
        state.starts.push(state.objective);
        while state.starts.len() <= self.settings().restarts as usize {
            match self.begin(state.starts.len() as u64) {
                Ok(mut next) => {
                    next.starts = std::mem::take(&mut state.starts);
                    if next.best_objective < state.best_objective {
                        next.best_objective = state.best_objective;
                        next.best = state.best.clone();
                    }
                    *state = next;
                    return None;
                }
                // A start at which the model cannot be fitted has failed.
                Err(_) => state.starts.push(f64::NEG_INFINITY),
            }
        }
        Some(status)
    }
}

struct Reached {
    x: Vec<f64>,
    at: Evaluated,
}

impl State {
    /// Computes the quasi-Newton direction and the slope of the bound along this direction. The direction is limited so
    /// that each coordinate, and each unconstrained coordinate, changes by at most [`LARGEST`].
    fn ascent(&mut self, surface: &Surface<'_>) -> (Vec<f64>, f64) {
        let n = self.x.len();
        let mut direction: Vec<f64> = match self.inverse.is_empty() {
            true => {
                // Without curvature information, the step changes the largest coordinate by at most a half.
                let largest = self.gradient.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
                let scale = 0.5 / largest.max(1e-300);
                self.gradient.iter().map(|g| scale.min(1.0) * g).collect()
            }
            false => (0..n)
                .map(|i| dot(&self.inverse[i * n..(i + 1) * n], &self.gradient))
                .collect(),
        };
        if dot(&direction, &self.gradient) <= 0.0 {
            direction = self.gradient.clone();
            self.inverse.clear();
        }
        let stretches = (surface.coordinates.iter().zip(&self.x)).map(|(c, x)| c.stretch(*x));
        let longest = (direction.iter().zip(stretches)).fold(0.0, |m: f64, (d, stretch)| {
            m.max(d.abs() * stretch.max(1.0))
        });
        if longest > LARGEST {
            direction.iter_mut().for_each(|d| *d *= LARGEST / longest);
        }
        let slope = dot(&direction, &self.gradient);
        (direction, slope)
    }

    fn move_to(&mut self, reached: Reached) {
        let Reached { x, at } = reached;
        let Evaluated {
            fit,
            objective,
            gradient,
        } = at;
        let s: Vec<f64> = x.iter().zip(&self.x).map(|(a, b)| a - b).collect();
        let y: Vec<f64> = (self.gradient.iter().zip(&gradient))
            .map(|(old, new)| old - new)
            .collect();
        update(&mut self.inverse, &s, &y);
        self.x = x;
        self.objective = objective;
        self.bound = fit.bound;
        self.gradient = gradient;
        self.warm = fit.warm();
        self.steps += 1;
        if self.objective > self.best_objective {
            self.best_objective = self.objective;
            self.best = self.x.clone();
        }
    }
}

impl Search<'_> {
    fn settled(&self, state: &State, slope: f64) -> Option<Status> {
        let tolerance = self.settings().tolerance;
        let done = 0.5 * slope <= tolerance && !state.inverse.is_empty()
            || state.x.is_empty()
            || slope <= 1e-3 * tolerance;
        done.then(|| Status::Converged {
            evidence: Evidence {
                rule: format!(
                    "the next step is estimated to gain {:.1e} nats",
                    0.5 * slope
                ),
                remaining: Some(0.5 * slope),
                standard_error: None,
            },
        })
    }

    fn search(&mut self, state: &State, direction: &[f64], slope: f64) -> Option<Reached> {
        let mut t = 1.0;
        loop {
            let x: Vec<f64> = (state.x.iter().zip(direction))
                .map(|(x, d)| x + t * d)
                .collect();
            if let Ok(at) = self.evaluate(&x, Some(&state.warm))
                && at.objective
                    >= state.objective + 1e-4 * t * slope - self.settings().fit.tolerance
            {
                return Some(Reached { x, at });
            }
            if self.stopped {
                return None;
            }
            t *= if t == 1.0 { 0.4 } else { 0.25 };
            if t < 1e-6 {
                return None;
            }
        }
    }

    /// Ends a start. The status of the last start is the status of the run.
    fn end_start(&mut self, state: &mut State, line: Record, status: Status) -> Step {
        match self.next_start(state, status) {
            Some(status) => Step::finish(line, status),
            None => Step::go_on(line),
        }
    }
}

impl Algorithm for Search<'_> {
    type State = State;
    type Output = (Vec<f64>, Vec<f64>, Warm);

    fn init(&mut self) -> Result<State, Status> {
        self.begin(0).map_err(|error| {
            let reason = error.to_string();
            self.error = Some(error);
            Status::Diverged { at: 0, reason }
        })
    }

    fn step(&mut self, state: &mut State, iteration: u64) -> Step {
        // A resumed run has already counted the evaluations up to its checkpoint.
        self.evaluations = self.evaluations.max(state.evaluations);
        let before = state.clone();
        let step = self.step_on(state, iteration);
        if self.stopped {
            // A stopped step has no effect.
            *state = before;
            return Step::finish(
                Record::new(self.evaluations),
                Status::Interrupted { at: iteration },
            );
        }
        state.evaluations = self.evaluations;
        step
    }

    fn output(&mut self, state: &State) -> Self::Output {
        let mut starts = state.starts.clone();
        if starts.len() <= self.settings().restarts as usize {
            starts.push(state.objective);
        }
        (state.best.clone(), starts, state.warm.clone())
    }
}

impl Search<'_> {
    fn step_on(&mut self, state: &mut State, iteration: u64) -> Step {
        let (direction, slope) = state.ascent(self.surface);
        let record = |search: &Self, state: &State| {
            Record::new(search.evaluations)
                .with_elbo(state.bound, None)
                .with("start", state.starts.len() as f64)
                .with("predicted_gain", 0.5 * slope)
        };
        if let Some(status) = self.settled(state, slope) {
            let line = record(self, state);
            return self.end_start(state, line, status);
        }
        let Some(reached) = self.search(state, &direction, slope) else {
            let line = record(self, state);
            if !state.inverse.is_empty() {
                state.inverse.clear();
                return Step::go_on(line);
            }
            let status = Status::Stalled {
                at: iteration,
                reason: "no step raises the bound".to_owned(),
            };
            if self.stopped {
                return Step::finish(line, status);
            }
            return self.end_start(state, line, status);
        };
        state.move_to(reached);
        let line = record(self, state);
        let most = u64::from(self.settings().max_steps);
        if state.steps >= most {
            let status = Status::BudgetReached {
                limit: jensen_run::Limit::Iterations(most),
                detail: "steps of one start".to_owned(),
            };
            return self.end_start(state, line, status);
        }
        Step::go_on(line)
    }
}

/// Updates the inverse Hessian by the BFGS formula, and skips a pair without positive curvature.
///
/// There are only a few parameters and every pair matters, so the whole matrix is stored. The solvers have as many
/// variables as there are data, so they store only the last pairs (`solve/two_loops.rs`).
fn update(inverse: &mut Vec<f64>, s: &[f64], y: &[f64]) {
    let n = s.len();
    let curvature = dot(s, y);
    if curvature <= 1e-12 * dot(s, s).sqrt() * dot(y, y).sqrt() {
        return;
    }
    if inverse.is_empty() {
        let scale = curvature / dot(y, y);
        *inverse = (0..n * n)
            .map(|k| if k % (n + 1) == 0 { scale } else { 0.0 })
            .collect();
    }
    let hy: Vec<f64> = (0..n)
        .map(|i| dot(&inverse[i * n..(i + 1) * n], y))
        .collect();
    let rho = 1.0 / curvature;
    let coefficient = rho * (1.0 + rho * dot(y, &hy));
    for j in 0..n {
        for i in 0..n {
            inverse[j * n + i] += coefficient * s[i] * s[j] - rho * (hy[i] * s[j] + s[i] * hy[j]);
        }
    }
}

/// A mode of the hyperparameters' posterior.
pub(crate) struct Mode {
    pub x: Vec<f64>,
    pub objective: f64,
    pub warm: Warm,
}

/// Climbs from a point to a mode. Returns `None` if the climb ends early: it comes near a known mode (`is_known`), finds
/// no mode within [`CLIMB`] steps, or is stopped.
pub(crate) fn climb(
    surface: &Surface<'_>,
    from: Vec<f64>,
    warm: &Warm,
    is_known: impl Fn(&[f64]) -> bool,
) -> Option<Mode> {
    let mut search = Search {
        surface,
        evaluations: 0,
        error: None,
        stopped: false,
    };
    let mut state = search.begin_at(from, Some(warm)).ok()?;
    for _ in 0..CLIMB {
        if is_known(&state.x) {
            return None;
        }
        let (direction, slope) = state.ascent(search.surface);
        if search.settled(&state, slope).is_some() {
            return Some(Mode {
                x: state.x,
                objective: state.objective,
                warm: state.warm,
            });
        }
        let reached = search.search(&state, &direction, slope)?;
        state.move_to(reached);
    }
    None
}

/// Learns the hyperparameters of a prior, and the likelihood parameters that the settings list, by maximising the
/// bound. If [`LearnSettings::priors`] is true, the objective also contains the log priors.
///
/// `model` supplies everything except the structure of the prior, which comes from `prior`. Each step of the run is one
/// accepted step of the search. The trace contains the bound, the number of the current start and the estimated gain of
/// the next step.
///
/// # Errors
/// Returns the errors of [`fit`] at the first start, or an error if the checkpoint comes from another run.
pub fn learn(
    prior: &dyn Prior,
    model: &LatentModel,
    settings: &LearnSettings,
    identity: &Identity,
    control: &mut Control<'_>,
) -> Result<Learned, Error> {
    let began = control.clock.seconds();
    let watch = Watch::new(control);
    let surface = Surface::new(prior, model, settings, watch);
    let mut search = Search {
        surface: &surface,
        evaluations: 0,
        error: None,
        stopped: false,
    };
    let outcome = run(&mut search, identity, control)?;
    let Some((x, starts, warm)) = outcome.output else {
        return Err(search.error.unwrap_or_else(|| {
            Error::Prior(format!("the search could not start: {}", outcome.status))
        }));
    };
    let status = match (outcome.status, control.budget.max_seconds) {
        (Status::Interrupted { .. }, Some(limit)) if !watch.is_cancelled() => {
            Status::BudgetReached {
                limit: Limit::Seconds(limit),
                detail: "the time limit ended a step of the search for hyperparameters".to_owned(),
            }
        }
        (status, _) => status,
    };
    let (theta, at) = search.surface.model_at(&x)?;
    // This fit takes only a few iterations from the end of the search, so it ignores the time limit.
    let unhurried = Watch {
        until: f64::INFINITY,
        cancel: None,
        ..watch
    };
    let fit = unhurried.fit(&at, &settings.fit, Some(&warm), true)?;
    let fit = fit.ok_or_else(|| Error::Prior("the time limit stopped the last fit".to_owned()))?;
    Ok(Learned {
        x,
        theta,
        likelihood: at.likelihood,
        fit,
        status,
        iterations: outcome.iterations,
        seconds: outcome.seconds.max(control.clock.seconds() - began),
        starts,
        until: watch.until,
    })
}
