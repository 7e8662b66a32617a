//! The policy that joins starts, an algorithm and families into one algorithm.
//!
//! Stages: starts (not for the baselines ADVI and HFSGVI), the first family, and under [`FamilyChoice::Auto`] a richer family
//! where the first one's importance weights have too heavy a tail. By default mean fields are fitted by TrustVI;
//! where its stopping rule does not hold in the end, as for funnels and kinks, Newton rounds on fixed draws take
//! over. Richer families are fitted by those rounds from the beginning. A family on which the Newton rounds
//! find that second derivatives mislead goes on with stochastic gradients. As all stages are steps of one
//! [`Algorithm`], budgets, traces and checkpoints hold across them.

use jensen_density::TwiceDifferentiable;
use jensen_run::{Algorithm, Archive, ArchiveError, Snapshot, Status, Step};

use crate::advi::{Advi, AdviState, AdviStop};
use crate::bbvi::{Bbvi, BbviSettings, BbviState};
use crate::calls::Calls;
use crate::certificate::certify;
use crate::evaluation::{Evaluation, evaluate};
use crate::family::FamilyKind;
use crate::hfsgvi::{Hfsgvi, HfsgviState};
use crate::noise::NoiseSource;
use crate::oracle::{Estimate, Oracle};
use crate::saa::{Saa, SaaSettings, SaaState, is_kink};
use crate::settings::{FamilyChoice, Method, Settings};
use crate::starts::{
    Init, StartOutcome, Starts, StartsState, best_start, restore_outcomes, save_outcomes,
};
use crate::trust::{Trust, TrustSettings, TrustState};
use crate::widen::widen;

/// Largest dimension at which the richer family is full-rank.
const FULL_RANK_LIMIT: usize = 400;

/// Factors of the richer family beyond that.
const FACTORS: usize = 8;

/// Hessian-vector products that the richer low-rank family may take: its Newton systems are badly
/// conditioned, and at such dimensions a few factors rarely earn trust.
const LOW_RANK_PRODUCTS: u64 = 100;

/// Draws of its largest round.
const LOW_RANK_DRAWS: usize = 512;

/// One family's end.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyResult {
    /// Which family.
    pub kind: FamilyKind,
    /// Its parameters.
    pub omega: Vec<f64>,
    /// How its optimisation ended; `None` when the run was stopped in the middle.
    pub status: Option<Status>,
    /// Its evaluation on fresh draws.
    pub evaluation: Evaluation,
    /// What a second-order polish still found, for stochastic methods.
    pub polish: Option<Estimate>,
}

/// What the driver made.
#[derive(Clone, Debug)]
pub struct DriverOutput {
    /// The families in the order fitted.
    pub results: Vec<FamilyResult>,
    /// The starts.
    pub starts: Vec<StartOutcome>,
    /// Evaluations.
    pub calls: Calls,
}

#[expect(
    clippy::large_enum_variant,
    reason = "one engine lives at a time, and never in a collection"
)]
enum Engine<'a, D: TwiceDifferentiable> {
    Starts(Starts<'a, D>),
    Trust(Trust<'a, D>),
    Hfsgvi(Hfsgvi<'a, D>),
    Saa(Saa<'a, D>),
    Advi(Advi<'a, D>),
    Bbvi(Bbvi<'a, D>),
}

#[derive(Clone, Debug, PartialEq)]
enum Stage {
    Starts(StartsState),
    Trust(TrustState),
    Hfsgvi(HfsgviState),
    Saa(SaaState),
    Advi(AdviState),
    Bbvi(BbviState),
    Done,
}

impl Stage {
    fn name(&self) -> &'static str {
        match self {
            Self::Starts(_) => "starts",
            Self::Trust(_) => "trust",
            Self::Hfsgvi(_) => "hfsgvi",
            Self::Saa(_) => "saa",
            Self::Advi(_) => "advi",
            Self::Bbvi(_) => "bbvi",
            Self::Done => "done",
        }
    }

    fn omega(&self) -> Option<&[f64]> {
        match self {
            Self::Trust(state) => Some(state.omega()),
            Self::Hfsgvi(state) => Some(state.omega()),
            Self::Saa(state) => Some(state.omega()),
            Self::Advi(state) => Some(state.omega()),
            Self::Bbvi(state) => Some(state.best()),
            Self::Starts(_) | Self::Done => None,
        }
    }

    /// Evaluations of the stage so far.
    fn calls(&self) -> Calls {
        match self {
            Self::Starts(state) => state.calls(),
            Self::Trust(state) => state.calls(),
            Self::Hfsgvi(state) => state.calls(),
            Self::Saa(state) => state.calls(),
            Self::Advi(state) => state.calls(),
            Self::Bbvi(state) => state.calls(),
            Self::Done => Calls::default(),
        }
    }
}

/// State of a [`Driver`].
#[derive(Clone, Debug, PartialEq)]
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

/// The whole fit as an algorithm.
pub struct Driver<'a, D: TwiceDifferentiable> {
    density: &'a D,
    settings: Settings,
    source: NoiseSource,
    engine: Option<(FamilyKind, Engine<'a, D>)>,
}

impl<'a, D: TwiceDifferentiable> Driver<'a, D> {
    /// A fit of `density`.
    pub fn new(density: &'a D, settings: Settings) -> Self {
        Self {
            density,
            source: NoiseSource::new(settings.seed, settings.simd),
            settings,
            engine: None,
        }
    }

    fn first_kind(&self) -> FamilyKind {
        match self.settings.family {
            FamilyChoice::Auto => FamilyKind::MeanField,
            FamilyChoice::Only(kind) => kind,
        }
    }

    /// The engine of the present stage, made anew after a resume.
    fn engine(&mut self, stage: &Stage, kind: FamilyKind) -> &mut Engine<'a, D> {
        let fits = match (&self.engine, stage) {
            (Some((_, Engine::Starts(_))), Stage::Starts(_)) => true,
            (Some((k, Engine::Trust(_))), Stage::Trust(_))
            | (Some((k, Engine::Hfsgvi(_))), Stage::Hfsgvi(_))
            | (Some((k, Engine::Saa(_))), Stage::Saa(_))
            | (Some((k, Engine::Advi(_))), Stage::Advi(_))
            | (Some((k, Engine::Bbvi(_))), Stage::Bbvi(_)) => *k == kind,
            _ => false,
        };
        if !fits {
            let engine = match stage {
                Stage::Starts(_) => self.starts(),
                Stage::Bbvi(_) => self.bbvi(kind, Vec::new()),
                Stage::Saa(_) => self
                    .takes_over(kind, Vec::new())
                    .unwrap_or_else(|| self.method(kind, Vec::new())),
                _ => self.method(kind, Vec::new()),
            };
            self.engine = Some((kind, engine));
        }
        let (_, engine) = self.engine.as_mut().expect("made above");
        engine
    }

    fn starts(&self) -> Engine<'a, D> {
        let settings = self.settings.start.clone();
        Engine::Starts(Starts::new(self.density, self.source, settings))
    }

    /// The method for a family, starting at `omega` (ADVI at its mean).
    fn method(&self, kind: FamilyKind, omega: Vec<f64>) -> Engine<'a, D> {
        let family = kind.build(self.density.dim());
        let (density, source) = (self.density, self.source);
        match self.settings.method {
            Method::Auto(auto) => match kind {
                FamilyKind::MeanField => self.trust(kind, auto.trust, omega),
                _ => self.saa(kind, auto.saa, omega),
            },
            Method::Trust(settings) => self.trust(kind, settings, omega),
            Method::Hfsgvi(settings) => {
                Engine::Hfsgvi(Hfsgvi::new(density, family, source, settings, omega))
            }
            Method::Saa(settings) => self.saa(kind, settings, omega),
            Method::Advi(settings) => {
                let mut point = omega;
                point.resize(family.dim(), 0.0);
                Engine::Advi(Advi::new(density, family, source, settings, &point))
            }
            Method::Bbvi(_) => self.bbvi(kind, omega),
        }
    }

    /// Keeps the draws of the first family apart from those of a richer one.
    fn stream(&self, kind: FamilyKind) -> u64 {
        u64::from(kind != self.first_kind())
    }

    fn trust(&self, kind: FamilyKind, settings: TrustSettings, omega: Vec<f64>) -> Engine<'a, D> {
        let family = kind.build(self.density.dim());
        let (source, stream) = (self.source, self.stream(kind));
        Engine::Trust(Trust::new(
            self.density,
            family,
            source,
            settings,
            omega,
            stream,
        ))
    }

    fn saa(&self, kind: FamilyKind, mut settings: SaaSettings, omega: Vec<f64>) -> Engine<'a, D> {
        let family = kind.build(self.density.dim());
        let (source, stream) = (self.source, self.stream(kind));
        if stream > 0 && matches!(kind, FamilyKind::LowRank { .. }) {
            settings.max_products = settings.max_products.min(LOW_RANK_PRODUCTS);
            settings.max_draws = settings.max_draws.min(LOW_RANK_DRAWS);
        }
        Engine::Saa(Saa::new(
            self.density,
            family,
            source,
            settings,
            omega,
            stream,
        ))
    }

    /// The Newton rounds that take over from TrustVI under the policy; `None` for any other method.
    fn takes_over(&self, kind: FamilyKind, omega: Vec<f64>) -> Option<Engine<'a, D>> {
        match self.settings.method {
            Method::Auto(auto) => Some(self.saa(kind, auto.saa, omega)),
            _ => None,
        }
    }

    /// Stochastic gradients, with the method's settings or the usual ones.
    fn bbvi(&self, kind: FamilyKind, omega: Vec<f64>) -> Engine<'a, D> {
        let settings = match self.settings.method {
            Method::Bbvi(settings) => settings,
            _ => BbviSettings::default(),
        };
        let family = kind.build(self.density.dim());
        Engine::Bbvi(Bbvi::new(
            self.density,
            family,
            self.source,
            settings,
            omega,
        ))
    }

    /// Begins fitting `kind` at `omega`.
    fn begin(&mut self, kind: FamilyKind, omega: Vec<f64>) -> Result<Stage, Status> {
        let engine = self.method(kind, omega);
        self.begin_with(kind, engine)
    }

    fn begin_with(&mut self, kind: FamilyKind, mut engine: Engine<'a, D>) -> Result<Stage, Status> {
        let stage = match &mut engine {
            Engine::Trust(trust) => Stage::Trust(trust.init()?),
            Engine::Hfsgvi(hfsgvi) => Stage::Hfsgvi(hfsgvi.init()?),
            Engine::Saa(saa) => Stage::Saa(saa.init()?),
            Engine::Advi(advi) => Stage::Advi(advi.init()?),
            Engine::Bbvi(bbvi) => Stage::Bbvi(bbvi.init()?),
            Engine::Starts(_) => Stage::Done,
        };
        self.engine = Some((kind, engine));
        Ok(stage)
    }

    /// The richer family for the policy.
    fn richer(&self) -> FamilyKind {
        if self.density.dim() <= FULL_RANK_LIMIT {
            FamilyKind::FullRank
        } else {
            FamilyKind::LowRank { rank: FACTORS }
        }
    }

    /// Evaluates a family's parameters, whose optimisation ended with a status at an iteration; evaluations are added to `calls`.
    fn result(
        &self,
        kind: FamilyKind,
        omega: Vec<f64>,
        ended: Option<(Status, u64)>,
        calls: &mut Calls,
    ) -> FamilyResult {
        let family = kind.build(self.density.dim());
        let (mut status, at) = ended.unzip();
        let mut polish = None;
        // The relative rule has to answer to the certificate; the other methods' rules contain it.
        if let (Method::Advi(settings), Some(Status::Converged { evidence })) =
            (self.settings.method, &status)
            && settings.stop == AdviStop::Relative
        {
            let tolerance = settings.tolerance;
            let certificate = certify(self.density, &family, &omega, self.source, 0, tolerance);
            *calls += certificate.calls;
            let found = certificate.improvement;
            polish = Some(found);
            if certificate.within(tolerance) {
                let mut evidence = evidence.clone();
                evidence.remaining = Some(found.mean);
                evidence.standard_error = Some(found.standard_error);
                status = Some(Status::Converged { evidence });
            } else {
                status = Some(Status::Stalled {
                    at: at.unwrap_or(0),
                    reason: format!(
                        "{}, but a second-order polish finds {:.2} ± {:.2} nats more",
                        evidence.rule, found.mean, found.standard_error
                    ),
                });
            }
        }
        let mut oracle = Oracle::new(self.density, family);
        let draws = self.settings.evaluation_draws;
        let evaluation = evaluate(&mut oracle, &omega, self.source, draws);
        *calls += oracle.take_calls();
        FamilyResult {
            kind,
            omega,
            status,
            evaluation,
            polish,
        }
    }

    /// Goes on to the stage after the present one, which ended with `status`.
    fn advance(
        &mut self,
        state: &mut DriverState,
        iteration: u64,
        status: Status,
    ) -> Option<Status> {
        let next = match &state.stage {
            Stage::Starts(starts) => {
                state.starts = starts_of(self.engine.as_mut(), starts);
                let best = best_start(&state.starts);
                let kind = self.first_kind();
                let (omega, calls) =
                    widen(self.density, self.source, kind, &state.starts[best].omega);
                state.calls += calls;
                Some((kind, self.method(kind, omega)))
            }
            Stage::Trust(trust)
                if !status.is_converged() && matches!(self.settings.method, Method::Auto(_)) =>
            {
                let engine = self.takes_over(state.kind, trust.omega().to_vec());
                engine.map(|engine| (state.kind, engine))
            }
            Stage::Saa(saa) if is_kink(&status) => {
                Some((state.kind, self.bbvi(state.kind, saa.omega().to_vec())))
            }
            stage => {
                let omega = stage.omega().expect("a fitting stage").to_vec();
                let ended = Some((status.clone(), iteration));
                let result = self.result(state.kind, omega, ended, &mut state.calls);
                let too_heavy = !result.evaluation.khat_is_good();
                let widened = too_heavy
                    && self.settings.family == FamilyChoice::Auto
                    && state.results.is_empty()
                    && self.density.dim() > 1;
                let next = widened.then(|| {
                    let kind = self.richer();
                    let (omega, calls) = widen(self.density, self.source, kind, &result.omega);
                    state.calls += calls;
                    (kind, self.method(kind, omega))
                });
                state.results.push(result);
                next
            }
        };
        let begun = next.map(|(kind, engine)| (kind, self.begin_with(kind, engine)));
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

fn starts_of<D: TwiceDifferentiable>(
    engine: Option<&mut (FamilyKind, Engine<'_, D>)>,
    state: &StartsState,
) -> Vec<StartOutcome> {
    match engine {
        Some((_, Engine::Starts(starts))) => starts.output(state),
        _ => Vec::new(),
    }
}

/// The result to report: a converged one with good k̂ before any other, then the higher bound.
pub fn choose(results: &[FamilyResult]) -> usize {
    let rank = |r: &FamilyResult| {
        let converged = r.status.as_ref().is_some_and(Status::is_converged);
        (
            converged && r.evaluation.khat_is_good(),
            r.evaluation.elbo.mean,
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
        let kind = self.first_kind();
        let baseline = matches!(self.settings.method, Method::Advi(_) | Method::Hfsgvi(_));
        let stage = if baseline || self.settings.start.starts == Some(0) {
            let point = match &self.settings.start.init {
                Init::Point(point) => point.clone(),
                Init::Zero => vec![0.0; self.density.dim()],
                Init::Random => Starts::new(self.density, self.source, self.settings.start.clone())
                    .first_finite_point()
                    .ok_or_else(|| Status::Diverged {
                        at: 0,
                        reason: "no random starting point has a finite log density and gradient"
                            .into(),
                    })?,
            };
            let unit = vec![0.0; point.len()];
            let omega = kind.build(point.len()).diagonal(&point, &unit);
            self.begin(kind, omega)?
        } else {
            let mut engine = self.starts();
            let Engine::Starts(starts) = &mut engine else {
                unreachable!("just made");
            };
            let state = starts.init()?;
            self.engine = Some((kind, engine));
            Stage::Starts(state)
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
        let mut stage = std::mem::replace(&mut state.stage, Stage::Done);
        let name = stage.name();
        let step = match (self.engine(&stage, kind), &mut stage) {
            (Engine::Starts(engine), Stage::Starts(inner)) => engine.step(inner, local),
            (Engine::Trust(engine), Stage::Trust(inner)) => engine.step(inner, local),
            (Engine::Hfsgvi(engine), Stage::Hfsgvi(inner)) => engine.step(inner, local),
            (Engine::Saa(engine), Stage::Saa(inner)) => engine.step(inner, local),
            (Engine::Advi(engine), Stage::Advi(inner)) => engine.step(inner, local),
            (Engine::Bbvi(engine), Stage::Bbvi(inner)) => engine.step(inner, local),
            _ => unreachable!("the engine is made for the stage"),
        };
        state.stage = stage;
        state.calls = state.calls_before + state.stage.calls();
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
        if let Stage::Starts(inner) = &state.stage {
            self.engine(&state.stage, state.kind);
            starts = starts_of(self.engine.as_mut(), inner);
            let best = best_start(&starts);
            let kind = self.first_kind();
            let (omega, widening) = widen(self.density, self.source, kind, &starts[best].omega);
            calls += widening;
            results.push(self.result(self.first_kind(), omega, None, &mut calls));
        } else if let Some(omega) = state.stage.omega() {
            results.push(self.result(state.kind, omega.to_vec(), None, &mut calls));
        }
        DriverOutput {
            results,
            starts,
            calls,
        }
    }
}

impl Snapshot for DriverState {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        let inner = match &self.stage {
            Stage::Starts(state) => state.save(),
            Stage::Trust(state) => state.save(),
            Stage::Hfsgvi(state) => state.save(),
            Stage::Saa(state) => state.save(),
            Stage::Advi(state) => state.save(),
            Stage::Bbvi(state) => state.save(),
            Stage::Done => Archive::new(),
        };
        archive.nest("inner", inner);
        archive.set("stage", self.stage.name());
        archive.set("before", self.before);
        archive.set("calls", [self.calls_before, self.calls]);
        archive.set("kind", self.kind);
        archive.nest("starts", save_outcomes(&self.starts));
        archive.set("results", self.results.len());
        for (i, result) in self.results.iter().enumerate() {
            archive.nest(&format!("result{i}"), result.save());
        }
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let inner = archive.nested("inner");
        let stage: String = archive.get("stage")?;
        let stage = match stage.as_str() {
            "starts" => Stage::Starts(StartsState::restore(&inner)?),
            "trust" => Stage::Trust(TrustState::restore(&inner)?),
            "hfsgvi" => Stage::Hfsgvi(HfsgviState::restore(&inner)?),
            "saa" => Stage::Saa(SaaState::restore(&inner)?),
            "advi" => Stage::Advi(AdviState::restore(&inner)?),
            "bbvi" => Stage::Bbvi(BbviState::restore(&inner)?),
            "done" => Stage::Done,
            other => return Err(ArchiveError(format!("unknown stage `{other}`"))),
        };
        let [calls_before, calls] = archive.get("calls")?;
        let count: usize = archive.get("results")?;
        let results = (0..count)
            .map(|i| FamilyResult::restore(&archive.nested(&format!("result{i}"))))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            stage,
            before: archive.get("before")?,
            calls_before,
            calls,
            kind: archive.get("kind")?,
            starts: restore_outcomes(&archive.nested("starts"))?,
            results,
        })
    }
}

impl Snapshot for FamilyResult {
    fn save(&self) -> Archive {
        let e = &self.evaluation;
        let mut archive = Archive::new();
        archive.set("kind", self.kind);
        archive.put("omega", &self.omega);
        archive.set("status", &self.status);
        let estimates = [
            e.elbo.mean,
            e.elbo.standard_error,
            e.importance_bound.mean,
            e.importance_bound.standard_error,
            e.khat,
            e.khat_threshold,
        ];
        archive.put("evaluation", &estimates);
        archive.set("draws", [e.draws, e.rejected, e.impossible]);
        let polish: Vec<f64> = self
            .polish
            .iter()
            .flat_map(|p| [p.mean, p.standard_error])
            .collect();
        archive.put("polish", &polish);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let e = archive.vec_of("evaluation", 6)?;
        let [draws, rejected, impossible] = archive.get("draws")?;
        let polish = archive.vec("polish")?;
        let estimate = |mean, standard_error| Estimate {
            mean,
            standard_error,
        };
        Ok(Self {
            kind: archive.get("kind")?,
            omega: archive.vec("omega")?,
            status: archive.get("status")?,
            evaluation: Evaluation {
                elbo: estimate(e[0], e[1]),
                importance_bound: estimate(e[2], e[3]),
                khat: e[4],
                khat_threshold: e[5],
                draws,
                rejected,
                impossible,
            },
            polish: (polish.len() == 2).then(|| estimate(polish[0], polish[1])),
        })
    }
}
