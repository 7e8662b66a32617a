//! Combines starts, methods and families into one algorithm.
//!
//! A fit begins with the starts, unless its method has none, and then fits the first family. With
//! [`FamilyChoice::Auto`](crate::FamilyChoice::Auto), a richer family is fitted next if the importance weights of the
//! first family have too heavy a tail, or if weighting changes a mean or a standard deviation. If there are at least
//! 100 coordinates and few global parameters, the first richer family is the conditionally structured Gaussian. This
//! family usually takes less time than others. It is also the best starting point for a refinement, unless its fit ends
//! far from the posterior. The driver fits each family by the methods of its [plan](Method::plan). If a method fails,
//! the next method continues. All stages are steps of a single [`Algorithm`], so budgets, traces and checkpoints apply
//! to all of them.
//!
//! Minibatch methods follow the same sequence of stages. If there are many records, the driver computes the starts and
//! the starting point of a richer family from a sample of the records (see [`Prepared`]).

mod choices;
mod results;
mod stage;
mod stored;
mod succession;

use std::sync::Arc;

use jensen_density::TwiceDifferentiable;
use jensen_run::{Algorithm, Interrupt, Record, Status, Step};

pub use self::choices::{CONDITIONAL_FROM, begins_conditional, finds_conditional};
pub use self::results::FamilyResult;
pub(crate) use self::results::{choose, evaluation_draws};
pub use self::stage::DriverState;
use self::stage::{Engaged, Next, Stage};
use crate::calls::Calls;
use crate::engine::{Beginning, Engine};
use crate::enrich::enrich;
use crate::error::FitError;
use crate::evaluation::Successor;
use crate::family::{Family, FamilyKind, FamilyName, Space};
use crate::method::Method;
use crate::noise::NoiseSource;
use crate::records::Prepared;
use crate::settings::Settings;
use crate::starts::{Init, StartOutcome, Starts};

/// The result of a run of the driver.
#[derive(Clone, Debug)]
pub struct DriverOutput {
    /// The results of the fitted families, in the order in which they were fitted.
    pub results: Vec<FamilyResult>,
    /// The outcomes of the starts.
    pub starts: Vec<StartOutcome>,
    /// The number of evaluations of the density.
    pub calls: Calls,
}

/// An algorithm that runs the starts and then fits the families.
pub struct Driver<'a, D: TwiceDifferentiable> {
    density: &'a D,
    records: Option<&'a Prepared<'a>>,
    settings: Settings,
    source: NoiseSource,
    interrupt: &'a Interrupt<'a>,
    conditional: bool,
    asked: Option<Arc<dyn Family>>,
    first: Arc<dyn Family>,
    engaged: Option<(Arc<dyn Family>, &'static str, Engaged<'a>)>,
}

impl<'a, D: TwiceDifferentiable> Driver<'a, D> {
    /// Creates a fit of `density`, and prepares `records` if the method needs them.
    pub fn new(
        density: &'a D,
        records: Option<&'a Prepared<'a>>,
        settings: Settings,
        interrupt: &'a Interrupt<'a>,
    ) -> Self {
        let space = Space::of(density);
        let asked = settings.family.asked(&space);
        let first = match &asked {
            None => FamilyKind::MeanField.build(space),
            Some(family) => match family.begins_at() {
                None => family.clone(),
                Some(kind) => kind.build(space),
            },
        };
        Self {
            density,
            records,
            interrupt,
            conditional: records.is_none() && begins_conditional(density, &settings),
            source: NoiseSource::new(settings.seed, settings.simd),
            settings,
            asked,
            first,
            engaged: None,
        }
    }

    /// Checks whether the first method can begin.
    ///
    /// # Errors
    /// Fails if the settings of the method do not suit the density.
    pub fn check(&self) -> Result<(), FitError> {
        let dim = self.density.dim();
        let zero = vec![0.0; dim];
        for family in std::iter::once(&self.first).chain(&self.asked) {
            if family.dim() != dim {
                return Err(FitError::Setting(format!(
                    "the family `{}` has {} coordinates, but the model has {dim}",
                    family.name(),
                    family.dim()
                )));
            }
            let gaussian = |kind: FamilyKind| self.build(kind).diagonal(&zero, &zero);
            let start = family.begins_at().map(gaussian);
            if start.is_some_and(|start| family.upon(&start, &[]).is_none()) {
                return Err(FitError::Setting(format!(
                    "the family `{}` begins at another family, but has no member that corresponds to a result of that family \
                     (`upon`)",
                    family.name()
                )));
            }
            let omega = family.diagonal(&zero, &zero);
            self.engine(family, self.first_method(&**family), omega)?;
        }
        Ok(())
    }

    fn build(&self, kind: FamilyKind) -> Arc<dyn Family> {
        kind.build(Space::of(self.density))
    }

    fn named(&self, name: &FamilyName) -> Arc<dyn Family> {
        match &self.engaged {
            Some((family, _, _)) if family.name() == *name => family.clone(),
            _ => (self.settings.family).named(name, &Space::of(self.density)),
        }
    }

    fn first_method(&self, family: &dyn Family) -> Method {
        self.settings.method.plan(family)[0]
    }

    fn planned(&self, family: &dyn Family, name: &str) -> (Method, Option<Method>) {
        let plan = self.settings.method.plan(family);
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

    fn enrich(
        &self,
        family: &Arc<dyn Family>,
        from: &dyn Family,
        omega: &[f64],
    ) -> (Vec<f64>, Calls) {
        let (mean, log_sd) = (from.mean(omega), from.marginal_log_sd(omega));
        match self.records {
            None => enrich(self.density, self.source, family, &mean, &log_sd),
            Some(records) => {
                let (omega, calls) = enrich(records.scout(), self.source, family, &mean, &log_sd);
                (omega, calls.share(records.scouted()))
            }
        }
    }

    fn engine(
        &self,
        family: &Arc<dyn Family>,
        method: Method,
        omega: Vec<f64>,
    ) -> Result<Box<dyn Engine + 'a>, FitError> {
        if !method.suits(family.smoothness()) {
            return Err(FitError::Setting(format!(
                "the method `{}` cannot fit the family `{}`, which lacks the derivatives: omit `--method`, or choose another \
                 family",
                method.name(),
                family.name()
            )));
        }
        method.begin(Beginning {
            density: self.density,
            records: self.records,
            family: family.clone(),
            source: self.source,
            omega,
            stream: u64::from(family.name() != self.first.name()),
        })
    }

    fn begin(
        &mut self,
        Next {
            family,
            method,
            omega,
        }: Next,
    ) -> Result<Stage, Status> {
        let mut engine = self.engine(&family, method, omega).map_err(refused)?;
        let name = method.name();
        let state = engine.init()?;
        self.engaged = Some((family, name, Engaged::Method(engine)));
        Ok(Stage::Method { name, state })
    }

    fn engage(
        &mut self,
        stage: &Stage,
        family: &Arc<dyn Family>,
    ) -> Result<&mut Engaged<'a>, FitError> {
        let name = stage.name();
        if !matches!(&self.engaged, Some((f, n, _)) if f.name() == family.name() && *n == name) {
            let engaged = match stage {
                Stage::Method { name, state } => {
                    let (method, _) = self.planned(&**family, name);
                    Engaged::Method(self.engine(family, method, state.omega().to_vec())?)
                }
                Stage::Starts(_) | Stage::Done => self.starts(),
            };
            self.engaged = Some((family.clone(), name, engaged));
        }
        let (_, _, engaged) = self.engaged.as_mut().expect("made above");
        Ok(engaged)
    }

    /// If each lane evaluates only a share of the data, an evaluation counts as that share.
    fn calls(&self, stage: &Stage, family: &dyn Family) -> Calls {
        match stage {
            Stage::Starts(state) => {
                let share = self.records.map_or((1, 1), Prepared::scouted);
                state.calls().share(share)
            }
            Stage::Method { name, state } => {
                let records = self.records.map_or(1, |records| records.scouted().1);
                let (method, _) = self.planned(family, name);
                state.calls().share(method.share(records))
            }
            Stage::Done => Calls::default(),
        }
    }

    fn begin_starts(&mut self) -> Result<Stage, Status> {
        let mut starts = self.starts();
        let Engaged::Starts(search) = &mut starts else {
            unreachable!("just made");
        };
        let state = search.init()?;
        self.engaged = Some((self.first.clone(), "starts", starts));
        Ok(Stage::Starts(state))
    }

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
}

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
        let family = self.opening_family();
        let method = self.first_method(&*family);
        let starts = method.has_starts() && self.settings.start.starts != Some(0);
        let stage = if starts {
            self.begin_starts()?
        } else {
            let point = self.opening_point()?;
            let unit = vec![0.0; point.len()];
            let omega = family.diagonal(&point, &unit);
            self.begin(Next {
                family: family.clone(),
                method,
                omega,
            })?
        };
        Ok(DriverState {
            stage,
            before: 0,
            calls_before: Calls::default(),
            calls: Calls::default(),
            family: family.name(),
            starts: Vec::new(),
            results: Vec::new(),
        })
    }

    fn step(&mut self, state: &mut DriverState, iteration: u64) -> Step {
        let local = iteration - state.before;
        let family = self.named(&state.family);
        let step = match self.engage(&state.stage, &family) {
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
        state.calls = state.calls_before + self.calls(&state.stage, &*family);
        let mut record = step.record.with_text("stage", name);
        if name != "starts" {
            record = record.with_text("family", &family.name().to_string());
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
                let (omega, widening) = self.best_of(&starts);
                calls += widening;
                results.push(self.result(&self.first, omega, None, Successor::None, &mut calls));
            }
            Stage::Method { state: inner, .. } => {
                let omega = inner.omega().to_vec();
                let family = self.named(&state.family);
                results.push(self.result(&family, omega, None, Successor::None, &mut calls));
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
