//! The policy that joins starts, methods and families into one algorithm.
//!
//! The stages are the starts (except for methods without them), the first family, and under [`FamilyChoice::Auto`] a
//! richer family if the importance weights of the first have too heavy a tail, or move a mean or a spread. From a
//! hundred coordinates on, if there are few global parameters, the first richer family is the conditionally structured
//! Gaussian. It usually takes less time than other families and is the best start for a refinement, unless it ends far
//! from the posterior. A family is fitted by the methods of its [plan](Method::plan), each of which takes over when the
//! previous one gives up. All stages are steps of one [`Algorithm`], so budgets, traces and checkpoints apply across
//! stages.
//!
//! Minibatch methods follow the same sequence. Their starts, and the point where a richer family begins, come from a
//! sample of the records if there are many; see [`Prepared`].

mod stored;

use jensen_density::{LogDensity, TwiceDifferentiable};
use jensen_run::{Algorithm, Clock, Interrupt, Record, Status, Step};

use crate::approximation::Approximation;
use crate::calls::Calls;
use crate::certificate::certify;
use crate::enrich::enrich;
use crate::error::FitError;
use crate::evaluation::{Evaluation, Successor, evaluate_until, preview};
use crate::family::{Conditional, FamilyKind, Space, Sparse};
use crate::method::{Beginning, Engine, Method, StoredState};
use crate::noise::NoiseSource;
use crate::oracle::{Estimate, Oracle};
use crate::records::{Prepared, evaluation_draws};
use crate::refine::beyond;
use crate::settings::{FamilyChoice, Settings};
use crate::starts::{Init, StartOutcome, Starts, StartsState, best_start, modes_of};
use crate::symmetry::Labellings;
use crate::tail_decay::flat_coordinate;

/// Largest dimension at which the richer family is full-rank.
const FULL_RANK_LIMIT: usize = 400;

/// Smallest dimension at which it is the one of sparse precision.
const SPARSE_FROM: usize = 100;

/// Smallest dimension at which the conditionally structured Gaussian comes first, if the density has global parameters.
/// Below this dimension, several starts cost seconds at most and find modes that a single start misses.
pub const CONDITIONAL_FROM: usize = 500;

/// Largest number of entries of the sparse factor per coordinate.
const CONDITIONAL_FILL: usize = 32;

/// Sparse is used if it has at most this share of the parameters of a full covariance.
const SPARSE_PART: usize = 4;

/// Largest number of entries of the factor.
const SPARSE_NONZEROS: usize = 1 << 21;

/// Factors of the richer family beyond that.
const FACTORS: usize = 8;

/// Components of the mixture if there are several modes, and the largest dimension at which it is tried.
const COMPONENTS: usize = 8;
const MIXTURE_LIMIT: usize = 64;

/// Number of draws on which the first family is evaluated at the end of the starts, and the k̂ and the divergence in
/// nats beyond which the driver abandons it at once.
const PREVIEW: usize = 512;
const ABANDON_KHAT: f64 = 1.0;
const FAR: f64 = 1.0;

/// Divergence in nats within which the conditionally structured Gaussian is a good start for a refinement: within 3 for
/// a dozen hierarchies and series of a hundred to a thousand coordinates, and far beyond if it does not suit.
const NEAR: f64 = 5.0;

/// One family's end.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyResult {
    /// The family.
    pub kind: FamilyKind,
    /// Its parameters.
    pub omega: Vec<f64>,
    /// The status at the end of its optimisation; `None` if the run was stopped in between.
    pub status: Option<Status>,
    /// Its evaluation on fresh draws.
    pub evaluation: Evaluation,
    /// The gain of a second-order polish, for stochastic methods.
    pub polish: Option<Estimate>,
    /// Number of coordinates.
    pub dim: usize,
    /// A coordinate along which the density does not decrease, as in an improper posterior.
    pub flat: Option<usize>,
    /// A coordinate, standardised by the approximation, with more than the allowed variance beyond the reach of the
    /// draws, and its ratio of variances.
    pub beyond: Option<(usize, f64)>,
}

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

/// The algorithm of a stage.
enum Engaged<'a> {
    Starts(Box<dyn Algorithm<State = StartsState, Output = Vec<StartOutcome>> + 'a>),
    Method(Box<dyn Engine + 'a>),
}

/// The stage of a run.
enum Stage {
    Starts(StartsState),
    Method {
        name: &'static str,
        state: Box<dyn StoredState>,
    },
    Done,
}

impl Stage {
    fn name(&self) -> &'static str {
        match self {
            Self::Starts(_) => "starts",
            Self::Method { name, .. } => name,
            Self::Done => "done",
        }
    }
}

/// State of a [`Driver`].
pub struct DriverState {
    stage: Stage,
    /// Iterations before the stage.
    before: u64,
    /// Evaluations before the stage.
    calls_before: Calls,
    /// Evaluations so far.
    calls: Calls,
    /// Family of the stage.
    kind: FamilyKind,
    starts: Vec<StartOutcome>,
    results: Vec<FamilyResult>,
}

impl DriverState {
    /// Evaluations so far.
    pub(crate) fn calls(&self) -> Calls {
        self.calls
    }
}

/// The families and starts as one algorithm.
pub struct Driver<'a, D: TwiceDifferentiable> {
    density: &'a D,
    records: Option<&'a Prepared<'a>>,
    settings: Settings,
    source: NoiseSource,
    interrupt: &'a Interrupt<'a>,
    /// Whether the run begins with the conditionally structured Gaussian and without starts; see
    /// [`begins_conditional`].
    conditional: bool,
    /// The algorithm of the current stage, by family and name of the stage.
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

    /// Checks that the first method can begin.
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

    fn first_kind(&self) -> FamilyKind {
        match self.settings.family {
            FamilyChoice::Auto => FamilyKind::MeanField,
            FamilyChoice::Only(kind) => {
                let family = kind.build(Space::of(self.density));
                family.begins_at().unwrap_or(kind)
            }
        }
    }

    /// The first family of the run.
    fn opening_kind(&self) -> FamilyKind {
        match self.conditional {
            true => FamilyKind::Conditional,
            false => self.first_kind(),
        }
    }

    fn first_method(&self, kind: FamilyKind) -> Method {
        self.settings.method.plan(kind)[0]
    }

    /// The method of this name, and the method that takes over from it.
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

    /// The parameters of `kind` that correspond to `omega` of another kind, and the number of evaluations.
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

    /// The evaluations of a stage so far. A lane that evaluates a share of the data counts as that share.
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

    /// The richer family for the policy. There is none for one coordinate, and none for minibatches if a full
    /// covariance is too large. At such dimensions a fit with a few factors rarely passes the checks, and takes twice
    /// as long.
    fn richer(&self) -> Option<FamilyKind> {
        match self.density.dim() {
            0 | 1 => None,
            // The precision of the best Gaussian has the density's pattern, so a sparse one loses nothing against full rank and
            // has far fewer parameters to determine from draws.
            _ if self.is_sparse() => Some(FamilyKind::Sparse),
            // With an unknown or dense pattern, only full rank contains the best Gaussian.
            2..=FULL_RANK_LIMIT => Some(FamilyKind::FullRank),
            _ if self.records.is_some() => None,
            // Beyond, d²/2 parameters are too many for the draws of a step; a few factors catch the widest directions.
            _ => Some(FamilyKind::LowRank { rank: FACTORS }),
        }
    }

    /// Whether the conditionally structured Gaussian comes before the richer family.
    fn bends(&self) -> bool {
        self.settings.is_policy()
            && self.records.is_none()
            && self.density.dim() >= SPARSE_FROM
            && has_few_globals(self.density)
    }

    /// The family after the first.
    fn second(&self) -> Option<FamilyKind> {
        match self.bends() {
            true => Some(FamilyKind::Conditional),
            false => self.richer(),
        }
    }

    /// Whether to try the richer family after a conditionally structured Gaussian that fails its checks. It does so if
    /// that found no mode, if that is too far from the posterior to start a refinement, or if no refinement follows.
    fn is_astray(&self, result: &FamilyResult) -> bool {
        let converged = result.status.as_ref().is_some_and(Status::is_converged);
        // A refinement starts from any approximation that overlaps the posterior. Without one, the weights have to do, and
        // they need a family that fits.
        let near = converged && result.evaluation.divergence() <= NEAR;
        result.kind == FamilyKind::Conditional && !(near && self.settings.may_refine())
    }

    /// Whether a precision with the density's pattern has far fewer parameters than a full covariance.
    fn is_sparse(&self) -> bool {
        let dim = self.density.dim();
        if dim < SPARSE_FROM || self.records.is_some() {
            return false;
        }
        let most = SPARSE_NONZEROS.min(dim * (dim + 1) / 2 / SPARSE_PART);
        Sparse::nonzeros(&Space::of(self.density), most).is_some()
    }

    /// Evaluates the parameters of a family whose optimisation ended with a status at an iteration. Adds the
    /// evaluations to `calls`.
    fn result(
        &self,
        kind: FamilyKind,
        omega: Vec<f64>,
        ended: Option<(Method, Status, u64)>,
        successor: Successor,
        calls: &mut Calls,
    ) -> FamilyResult {
        let family = kind.build(Space::of(self.density));
        let mut polish = None;
        let status = ended.map(|(method, status, at)| {
            let (Status::Converged { evidence }, Some(tolerance)) = (&status, method.certificate())
            else {
                return status;
            };
            let certificate = certify(self.density, &family, &omega, self.source, 0, tolerance);
            *calls += certificate.calls;
            let found = certificate.improvement;
            polish = Some(found);
            if certificate.within(tolerance) {
                let mut evidence = evidence.clone();
                evidence.remaining = Some(found.mean);
                evidence.standard_error = Some(found.standard_error);
                Status::Converged { evidence }
            } else {
                Status::Stalled {
                    at,
                    reason: format!(
                        "{}, but a second-order polish finds {:.2} ± {:.2} nats more",
                        evidence.rule, found.mean, found.standard_error
                    ),
                }
            }
        });
        let flat = match self.records {
            // What is not to be trusted anyway needs no look far away.
            _ if self.interrupt.is_late() => None,
            None => flat_coordinate(self.density, &*family, &omega, self.source, 1.0),
            Some(records) => {
                let (seen, all) = records.scouted();
                let spread = (all as f64 / seen as f64).sqrt();
                flat_coordinate(records.scout(), &*family, &omega, self.source, spread)
            }
        };
        let mut oracle = Oracle::new(self.density, family);
        let draws = evaluation_draws(self.density, &self.settings);
        let evaluation = evaluate_until(
            &mut oracle,
            &omega,
            self.source,
            draws,
            &self.settings.scales,
            successor,
            Some(self.interrupt),
        );
        *calls += oracle.take_calls();
        // What its weights speak against is refined anyway, and of records one by one a look costs as much as a fit.
        let looks = evaluation.is_good() && self.records.is_none() && !self.interrupt.is_late();
        let beyond = looks.then(|| {
            let space = Space::of(self.density);
            let approximation = Approximation::new(kind, space, omega.clone())
                .expect("a fitted family has all its parameters");
            let log_z = evaluation.importance_bound.mean;
            beyond(self.density, &approximation, log_z, self.source)
        });
        FamilyResult {
            beyond: beyond.flatten(),
            kind,
            omega,
            status,
            evaluation,
            polish,
            dim: self.density.dim(),
            flat,
        }
    }

    /// The best start, converted to the first family, and the number of evaluations.
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
                // Short of its optimum every family is far from the posterior.
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
            // What the asked family begins at is no answer of its own.
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
        let good = result.evaluation.is_good();
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

    /// The stage of the richer family, which starts at the result of the simpler one. That result is kept.
    fn widened(
        &self,
        kind: FamilyKind,
        poorer: FamilyResult,
        state: &mut DriverState,
    ) -> (FamilyKind, Method, Vec<f64>) {
        state.results.push(poorer);
        self.begun_at(kind, state.results.len() - 1, state)
    }

    /// The stage of a family that starts at an earlier result.
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

    /// The richer family to fit at once, if the first one is too far from the posterior at the optimum that the starts
    /// found. A search for that optimum to 0.01 nats would take most of the time of the fit.
    fn skips_to(&self, kind: FamilyKind, omega: &[f64], calls: &mut Calls) -> Option<FamilyKind> {
        if !self.settings.is_policy() || self.records.is_some() {
            return None;
        }
        // A few factors may be worse than the mean field's own optimum.
        let second = self
            .second()
            .filter(|kind| !matches!(kind, FamilyKind::LowRank { .. }))?;
        self.is_far_off(kind, omega, calls).then_some(second)
    }

    /// Whether a member of a family is too far from the posterior to be useful.
    fn is_far_off(&self, kind: FamilyKind, omega: &[f64], calls: &mut Calls) -> bool {
        let mut oracle = Oracle::new(self.density, kind.build(Space::of(self.density)));
        let look = preview(&mut oracle, omega, self.source, PREVIEW);
        *calls += oracle.take_calls();
        // Either alone may be an accident of few draws: a heavy tail of the weights without mass in it, or a bound that is low
        // because the scales are still wrong.
        look.khat > ABANDON_KHAT && look.divergence() > FAR
    }

    /// The member of a family that corresponds to the result of a full-rank Gaussian and to the other modes that the
    /// starts found.
    fn upon(&self, kind: FamilyKind, starts: &[StartOutcome], gaussian: &[f64]) -> Vec<f64> {
        let family = kind.build(Space::of(self.density));
        let upon = family.upon(gaussian, &self.other_modes(starts));
        upon.expect("a family that begins at a Gaussian stands upon it")
    }

    /// Means and log standard deviations at the modes that starts found and that are not relabellings of the best mode.
    fn other_modes(&self, starts: &[StartOutcome]) -> Vec<(Vec<f64>, Vec<f64>)> {
        let modes = modes_of(starts);
        let variables = &self.settings.variables;
        let labellings = Labellings::of(self.density, self.source, starts, &modes, variables);
        let distinct = modes.iter().zip(&labellings.relabelled);
        let found = distinct.filter(|(_, relabelled)| !**relabelled);
        found
            .filter_map(|(mode, _)| starts.iter().find(|start| start.is_at(mode)))
            .map(|start| {
                let (mean, log_sd) = start.omega.split_at(mean_len(start));
                (mean.to_vec(), log_sd.to_vec())
            })
            .collect()
    }

    /// The mixture that takes over if the starts found modes that the fit does not cover.
    fn of_several_modes(&self, state: &mut DriverState) -> Option<(FamilyKind, Method, Vec<f64>)> {
        let kind = FamilyKind::Mixture {
            components: COMPONENTS,
        };
        let policy = self.settings.is_policy() && self.records.is_none();
        let tried = state.results.iter().any(|result| result.kind == kind);
        if !policy || tried || state.starts.is_empty() || self.density.dim() > MIXTURE_LIMIT {
            return None;
        }
        if self.other_modes(&state.starts).is_empty() {
            return None;
        }
        let last = state.results.last()?;
        let gaussian = match last.kind {
            FamilyKind::FullRank => last.omega.clone(),
            poorer => {
                let (omega, calls) = self.enrich(FamilyKind::FullRank, poorer, &last.omega);
                state.calls += calls;
                omega
            }
        };
        let omega = self.upon(kind, &state.starts, &gaussian);
        Some((kind, self.first_method(kind), omega))
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

    /// The usual sequence, if the shortcut found no result.
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

    /// Proceeds to the stage after the current one, which ended with `status`.
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
            // A richer family that cannot even start leaves the first one's word.
            Some((_, Err(_))) | None => {
                state.stage = Stage::Done;
                let chosen = choose(&state.results);
                Some(state.results[chosen].status.clone().unwrap_or(status))
            }
        }
    }
}

/// Whether the policy begins with the conditionally structured Gaussian and without starts. It does so if there are
/// many coordinates and most of them interact with few others except a few global parameters. A mean-field fit is
/// uninformative for such models, and its starts take longest.
pub fn begins_conditional(density: &impl LogDensity, settings: &Settings) -> bool {
    settings.is_policy()
        && settings.start.starts.is_none()
        && density.dim() >= CONDITIONAL_FROM
        && has_few_globals(density)
}

/// Whether a fit that [begins with the conditionally structured Gaussian](begins_conditional) finds the mode, or falls
/// back to a mean field. `None` if it `stopped` before the end of the search.
pub fn finds_conditional<D: TwiceDifferentiable>(
    density: &D,
    settings: &Settings,
    clock: &dyn Clock,
    stopped: &dyn Fn() -> bool,
) -> Option<bool> {
    if !begins_conditional(density, settings) {
        return Some(false);
    }
    let interrupt = Interrupt::new(None, clock);
    let mut driver = Driver::new(density, None, settings.clone(), &interrupt);
    let Ok(DriverState { mut stage, .. }) = driver.init() else {
        return Some(false);
    };
    let (Some((_, _, Engaged::Method(engine))), Stage::Method { state, .. }) =
        (&mut driver.engaged, &mut stage)
    else {
        return Some(false);
    };
    for iteration in 0.. {
        if stopped() {
            break;
        }
        if let Some(status) = engine.step(state.as_mut(), iteration).status {
            return Some(status.is_converged());
        }
    }
    None
}

/// Whether a density has global parameters, and local parameters that interact with few others.
fn has_few_globals(density: &impl LogDensity) -> bool {
    let most = SPARSE_NONZEROS.min(density.dim() * CONDITIONAL_FILL);
    Conditional::suits(&Space::of(density), most)
}

/// The status of a family that is abandoned for a richer one.
fn left_behind(at: u64) -> Status {
    Status::Stalled {
        at,
        reason: "a richer family follows, because the optimum that the starts found is far from the posterior"
            .to_owned(),
    }
}

/// Coordinates of a start's mean.
fn mean_len(start: &StartOutcome) -> usize {
    start.omega.len() / 2
}

/// The end of a run whose method cannot begin.
fn refused(error: FitError) -> Status {
    Status::Diverged {
        at: 0,
        reason: error.to_string(),
    }
}

/// Nats by which a mixture may be below another result: a mode with a hundredth of the mass is worth a hundredth of a
/// nat, and may contribute most of a standard deviation.
const OF_A_MODE: f64 = 0.1;

/// The result to report: a converged result with usable draws if there is one, otherwise the one with the highest
/// bound.
pub fn choose(results: &[FamilyResult]) -> usize {
    let rank = |r: &FamilyResult| {
        let converged = r.status.as_ref().is_some_and(Status::is_converged);
        let modes = match r.kind {
            FamilyKind::Mixture { .. } => OF_A_MODE,
            _ => 0.0,
        };
        (
            converged && r.evaluation.is_good(),
            r.evaluation.elbo.mean + modes,
        )
    };
    let mut best = 0;
    for i in 1..results.len() {
        let ((good, elbo), (best_good, best_elbo)) = (rank(&results[i]), rank(&results[best]));
        if (good && !best_good) || (good == best_good && elbo > best_elbo) {
            best = i;
        }
    }
    best
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
