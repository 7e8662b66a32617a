//! The policy that combines starts, methods and families into one algorithm.
//!
//! The stages are the starts (except for methods without starts) and the first family. Under [`FamilyChoice::Auto`], a
//! richer family follows if the importance weights of the first have too heavy a tail, or change a mean or a standard
//! deviation. For 100 coordinates or more with few global parameters, the first richer family is the conditionally
//! structured Gaussian. It usually takes less time than other families and is the best start for a refinement, unless
//! it ends far from the posterior. A family is fitted by the methods of its [plan](Method::plan). Each method takes
//! over when the previous one fails. All stages are steps of a single [`Algorithm`], so budgets, traces and checkpoints
//! apply to all of them.
//!
//! Minibatch methods follow the same sequence. If there are many records, the starts and the starting point of a richer
//! family are computed from a sample of them; see [`Prepared`].

mod choices;
mod results;
mod stage;
mod stored;

use jensen_density::TwiceDifferentiable;
use jensen_run::{Algorithm, Interrupt, Record, Status, Step};

pub use self::choices::{CONDITIONAL_FROM, begins_conditional, finds_conditional};
pub use self::results::FamilyResult;
pub(crate) use self::results::{choose, evaluation_draws};
pub use self::stage::DriverState;
use self::stage::{Engaged, Stage};
use crate::calls::Calls;
use crate::engine::{Beginning, Engine};
use crate::enrich::enrich;
use crate::error::FitError;
use crate::evaluation::Successor;
use crate::family::{FamilyKind, Space};
use crate::method::Method;
use crate::noise::NoiseSource;
use crate::records::Prepared;
use crate::settings::{FamilyChoice, Settings};
use crate::starts::{Init, StartOutcome, Starts, best_start};

/// The result of the driver.
#[derive(Clone, Debug)]
pub struct DriverOutput {
    /// The families in the order of their fits.
    pub results: Vec<FamilyResult>,
    /// The starts.
    pub starts: Vec<StartOutcome>,
    /// Evaluations.
    pub calls: Calls,
}

/// The families and starts as one algorithm.
pub struct Driver<'a, D: TwiceDifferentiable> {
    density: &'a D,
    records: Option<&'a Prepared<'a>>,
    settings: Settings,
    source: NoiseSource,
    interrupt: &'a Interrupt<'a>,
    /// Whether the run begins with the conditionally structured Gaussian and skips the starts; see
    /// [`begins_conditional`].
    conditional: bool,
    /// The algorithm of the current stage, with its family and the name of the stage.
    engaged: Option<(FamilyKind, &'static str, Engaged<'a>)>,
}

impl<'a, D: TwiceDifferentiable> Driver<'a, D> {
    /// A fit of `density`. It prepares `records` if the method needs them.
    pub fn new(
        density: &'a D,
        records: Option<&'a Prepared<'a>>,
        settings: Settings,
        interrupt: &'a Interrupt<'a>,
    ) -> Self {
        Self {
            density,
            records,
            interrupt,
            conditional: records.is_none() && begins_conditional(density, &settings),
            source: NoiseSource::new(settings.seed, settings.simd),
            settings,
            engaged: None,
        }
    }

    /// Checks whether the first method can begin.
    ///
    /// # Errors
    /// Fails if its settings do not suit the density.
    pub fn check(&self) -> Result<(), FitError> {
        let zero = vec![0.0; self.density.dim()];
        let asked = match self.settings.family {
            FamilyChoice::Auto => None,
            FamilyChoice::Only(kind) => Some(kind),
        };
        for kind in std::iter::once(self.first_kind()).chain(asked) {
            let family = kind.build(Space::of(self.density));
            let omega = family.diagonal(&zero, &zero);
            self.engine(kind, self.first_method(kind), omega)?;
        }
        Ok(())
    }

    fn first_method(&self, kind: FamilyKind) -> Method {
        self.settings.method.plan(kind)[0]
    }

    /// The method with this name, and the method that takes over from it.
    fn planned(&self, kind: FamilyKind, name: &str) -> (Method, Option<Method>) {
        let plan = self.settings.method.plan(kind);
        let at = plan.iter().position(|method| method.name() == name);
        let at = at.expect("a stage of the plan");
        (plan[at], plan.get(at + 1).copied())
    }

    fn starts_of<E: TwiceDifferentiable>(&self, density: &'a E) -> Starts<'a, E> {
        Starts::new(density, self.source, self.settings.start.clone())
            .heeding(self.interrupt)
            .of_variables(&self.settings.variables)
    }

    fn starts(&self) -> Engaged<'a> {
        Engaged::Starts(match self.records {
            None => Box::new(self.starts_of(self.density)),
            Some(records) => Box::new(self.starts_of(records.scout())),
        })
    }

    fn first_finite_point(&self) -> Option<Vec<f64>> {
        match self.records {
            None => self.starts_of(self.density).first_finite_point(),
            Some(records) => self.starts_of(records.scout()).first_finite_point(),
        }
    }

    /// The parameters of `kind` that correspond to `omega` of another kind, and the number of evaluations spent.
    fn enrich(&self, kind: FamilyKind, from: FamilyKind, omega: &[f64]) -> (Vec<f64>, Calls) {
        let from = from.build(Space::of(self.density));
        let (mean, log_sd) = (from.mean(omega), from.marginal_log_sd(omega));
        match self.records {
            None => enrich(self.density, self.source, kind, &mean, &log_sd),
            Some(records) => {
                let (omega, calls) = enrich(records.scout(), self.source, kind, &mean, &log_sd);
                (omega, calls.share(records.scouted()))
            }
        }
    }

    /// A method for a family, starting at `omega`.
    fn engine(
        &self,
        kind: FamilyKind,
        method: Method,
        omega: Vec<f64>,
    ) -> Result<Box<dyn Engine + 'a>, FitError> {
        let family = kind.build(Space::of(self.density));
        if !method.suits(family.smoothness()) {
            return Err(FitError::Setting(format!(
                "the method `{}` cannot fit the family `{kind}`, which lacks the derivatives: omit `--method`, or choose another \
                 family",
                method.name()
            )));
        }
        method.begin(Beginning {
            density: self.density,
            records: self.records,
            family,
            source: self.source,
            omega,
            stream: u64::from(kind != self.first_kind()),
        })
    }

    /// Begins a stage.
    fn begin(
        &mut self,
        kind: FamilyKind,
        method: Method,
        omega: Vec<f64>,
    ) -> Result<Stage, Status> {
        let mut engine = self.engine(kind, method, omega).map_err(refused)?;
        let name = method.name();
        let state = engine.init()?;
        self.engaged = Some((kind, name, Engaged::Method(engine)));
        Ok(Stage::Method { name, state })
    }

    /// The algorithm of the current stage, recreated after a resume.
    fn engage(&mut self, stage: &Stage, kind: FamilyKind) -> Result<&mut Engaged<'a>, FitError> {
        let name = stage.name();
        if !matches!(self.engaged, Some((k, n, _)) if (k, n) == (kind, name)) {
            let engaged = match stage {
                Stage::Method { name, state } => {
                    let (method, _) = self.planned(kind, name);
                    Engaged::Method(self.engine(kind, method, state.omega().to_vec())?)
                }
                Stage::Starts(_) | Stage::Done => self.starts(),
            };
            self.engaged = Some((kind, name, engaged));
        }
        let (_, _, engaged) = self.engaged.as_mut().expect("made above");
        Ok(engaged)
    }

    /// The evaluations in a stage so far. A lane that evaluates a share of the data counts as that share.
    fn calls(&self, stage: &Stage, kind: FamilyKind) -> Calls {
        match stage {
            Stage::Starts(state) => {
                let share = self.records.map_or((1, 1), Prepared::scouted);
                state.calls().share(share)
            }
            Stage::Method { name, state } => {
                let records = self.records.map_or(1, |records| records.scouted().1);
                let (method, _) = self.planned(kind, name);
                state.calls().share(method.share(records))
            }
            Stage::Done => Calls::default(),
        }
    }

    /// The best start converted to the first family, and the number of evaluations spent.
    fn best_of(&self, starts: &[StartOutcome]) -> (FamilyKind, Vec<f64>, Calls) {
        let kind = self.first_kind();
        let (omega, calls) =
            self.enrich(kind, Starts::<D>::KIND, &starts[best_start(starts)].omega);
        (kind, omega, calls)
    }

    /// The stage after the current one, which ended with `status`: its family, method and starting point.
    fn next(
        &self,
        state: &mut DriverState,
        iteration: u64,
        status: &Status,
    ) -> Option<(FamilyKind, Method, Vec<f64>)> {
        let (name, omega) = match &state.stage {
            Stage::Starts(starts) => {
                state.starts = starts.outcomes();
                let (kind, omega, calls) = self.best_of(&state.starts);
                state.calls += calls;
                // Before its optimum, every family is far from the posterior.
                let settled = state.starts[best_start(&state.starts)].settled;
                let richer = settled.then(|| self.skips_to(kind, &omega, &mut state.calls));
                if let Some(richer) = richer.flatten() {
                    let ended = Some((self.first_method(kind), left_behind(iteration), iteration));
                    let result =
                        self.result(kind, omega, ended, Successor::Richer, &mut state.calls);
                    return Some(self.widened(richer, result, state));
                }
                return Some((kind, self.first_method(kind), omega));
            }
            Stage::Method { name, state } => (*name, state.omega().to_vec()),
            Stage::Done => return None,
        };
        let (method, successor) = self.planned(state.kind, name);
        let refinable = self.settings.is_policy() && self.settings.may_refine();
        if let Some(successor) = successor.filter(|_| method.hands_over(status, self.density.dim()))
        {
            let left = refinable && self.is_far_off(state.kind, &omega, &mut state.calls);
            if !left {
                return Some((state.kind, successor, omega));
            }
        }
        if let FamilyChoice::Only(asked) = self.settings.family
            && asked != state.kind
        {
            // The result of the family at which the requested family starts is not a result of its own.
            let omega = self.upon(asked, &state.starts, &omega);
            return Some((asked, self.first_method(asked), omega));
        }
        let ended = Some((method, status.clone(), iteration));
        let first = state.results.is_empty()
            && state.kind == self.first_kind()
            && self.settings.family == FamilyChoice::Auto;
        let richer = first.then(|| self.second()).flatten();
        let successor = match (richer, refinable) {
            (Some(_), _) => Successor::Richer,
            (None, true) => Successor::Refinement,
            (None, false) => Successor::None,
        };
        let result = self.result(state.kind, omega, ended, successor, &mut state.calls);
        let good = result.evaluation.is_good(&self.settings.policy);
        if let Some(kind) = richer.filter(|_| !good) {
            return Some(self.widened(kind, result, state));
        }
        let astray = !good && !state.results.is_empty() && self.is_astray(&result);
        state.results.push(result);
        if let Some(kind) = self.richer().filter(|_| astray) {
            return Some(self.begun_at(kind, 0, state));
        }
        self.of_several_modes(state)
    }

    /// The stage of the richer family, which starts from the result of the simpler one. The driver keeps that result.
    fn widened(
        &self,
        kind: FamilyKind,
        poorer: FamilyResult,
        state: &mut DriverState,
    ) -> (FamilyKind, Method, Vec<f64>) {
        state.results.push(poorer);
        self.begun_at(kind, state.results.len() - 1, state)
    }

    /// The stage of a family that starts from an earlier result.
    fn begun_at(
        &self,
        kind: FamilyKind,
        earlier: usize,
        state: &mut DriverState,
    ) -> (FamilyKind, Method, Vec<f64>) {
        let poorer = &state.results[earlier];
        let (omega, calls) = self.enrich(kind, poorer.kind, &poorer.omega);
        state.calls += calls;
        (kind, self.first_method(kind), omega)
    }

    /// The search from several starts.
    fn begin_starts(&mut self) -> Result<Stage, Status> {
        let kind = self.first_kind();
        let mut starts = self.starts();
        let Engaged::Starts(search) = &mut starts else {
            unreachable!("just made");
        };
        let state = search.init()?;
        self.engaged = Some((kind, "starts", starts));
        Ok(Stage::Starts(state))
    }

    /// The usual sequence of stages, if the shortcut found no result.
    fn fall_back(&mut self, state: &mut DriverState, iteration: u64) -> Option<Status> {
        match self.begin_starts() {
            Ok(stage) => {
                state.stage = stage;
                state.kind = self.first_kind();
                state.before = iteration;
                state.calls_before = state.calls;
                None
            }
            Err(failure) => {
                state.stage = Stage::Done;
                Some(failure)
            }
        }
    }

    /// The first stage of a run without starts.
    fn opening_point(&self) -> Result<Vec<f64>, Status> {
        let found = match &self.settings.start.init {
            Init::Point(point) => Some(point.clone()),
            Init::Zero if !self.conditional => Some(vec![0.0; self.density.dim()]),
            Init::Zero | Init::Random => self.first_finite_point(),
        };
        found.ok_or_else(|| Status::Diverged {
            at: 0,
            reason: "no random starting point has a finite log density and gradient".into(),
        })
    }

    /// Begins the stage after the current one, which ended with `status`.
    fn advance(
        &mut self,
        state: &mut DriverState,
        iteration: u64,
        status: Status,
    ) -> Option<Status> {
        if self.conditional && state.kind == self.opening_kind() && !status.is_converged() {
            return self.fall_back(state, iteration);
        }
        let next = self.next(state, iteration, &status);
        let begun = next.map(|(kind, method, omega)| (kind, self.begin(kind, method, omega)));
        match begun {
            Some((kind, Ok(stage))) => {
                state.stage = stage;
                state.kind = kind;
                state.before = iteration;
                state.calls_before = state.calls;
                None
            }
            Some((_, Err(failure))) if state.results.is_empty() => {
                state.stage = Stage::Done;
                Some(failure)
            }
            // If a richer family cannot even start, the status of the first family remains.
            Some((_, Err(_))) | None => {
                state.stage = Stage::Done;
                let chosen = choose(&state.results, &self.settings.policy);
                Some(state.results[chosen].status.clone().unwrap_or(status))
            }
        }
    }
}

/// The status of a family that the driver abandons for a richer one.
fn left_behind(at: u64) -> Status {
    Status::Stalled {
        at,
        reason: "the optimum of all starts is far from the posterior, so Jensen fits a richer family next"
            .to_owned(),
    }
}

/// The output of a run whose method cannot begin.
fn refused(error: FitError) -> Status {
    Status::Diverged {
        at: 0,
        reason: error.to_string(),
    }
}

impl<D: TwiceDifferentiable> Algorithm for Driver<'_, D> {
    type State = DriverState;
    type Output = DriverOutput;

    fn init(&mut self) -> Result<DriverState, Status> {
        let kind = self.opening_kind();
        let method = self.first_method(kind);
        let starts = method.has_starts() && self.settings.start.starts != Some(0);
        let stage = if starts {
            self.begin_starts()?
        } else {
            let point = self.opening_point()?;
            let unit = vec![0.0; point.len()];
            let family = kind.build(Space::of(self.density));
            let omega = family.diagonal(&point, &unit);
            self.begin(kind, method, omega)?
        };
        Ok(DriverState {
            stage,
            before: 0,
            calls_before: Calls::default(),
            calls: Calls::default(),
            kind,
            starts: Vec::new(),
            results: Vec::new(),
        })
    }

    fn step(&mut self, state: &mut DriverState, iteration: u64) -> Step {
        let local = iteration - state.before;
        let kind = state.kind;
        let step = match self.engage(&state.stage, kind) {
            Err(error) => return Step::finish(Record::default(), refused(error)),
            Ok(engaged) => match (engaged, &mut state.stage) {
                (Engaged::Starts(search), Stage::Starts(inner)) => search.step(inner, local),
                (Engaged::Method(engine), Stage::Method { state, .. }) => {
                    engine.step(state.as_mut(), local)
                }
                _ => unreachable!("what works is made for the stage"),
            },
        };
        let name = state.stage.name();
        state.calls = state.calls_before + self.calls(&state.stage, kind);
        let mut record = step.record.with_text("stage", name);
        if name != "starts" {
            record = record.with_text("family", &kind.to_string());
        }
        let status = step
            .status
            .and_then(|status| self.advance(state, iteration, status));
        Step {
            record: state.calls.on(record),
            status,
        }
    }

    fn output(&mut self, state: &DriverState) -> DriverOutput {
        let mut calls = state.calls;
        let mut results = state.results.clone();
        let mut starts = state.starts.clone();
        match &state.stage {
            Stage::Starts(inner) => {
                starts = inner.outcomes();
                let (kind, omega, widening) = self.best_of(&starts);
                calls += widening;
                results.push(self.result(kind, omega, None, Successor::None, &mut calls));
            }
            Stage::Method { state: inner, .. } => {
                let omega = inner.omega().to_vec();
                results.push(self.result(state.kind, omega, None, Successor::None, &mut calls));
            }
            Stage::Done => {}
        }
        DriverOutput {
            results,
            starts,
            calls,
        }
    }
}
