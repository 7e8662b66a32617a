//! A fit and, if required, its refinement as a single algorithm. Budgets, traces and checkpoints therefore apply to
//! both.

use jensen_density::TwiceDifferentiable;
use jensen_run::{Algorithm, Archive, ArchiveError, Record, Snapshot, Status, Step};

use crate::approximation::Approximation;
use crate::driver::{Driver, DriverOutput, DriverState, choose};
use crate::family::Space;
use crate::fit::Fit;
use crate::noise::NoiseSource;
use crate::refine::{Refine, RefineState, RefineWhen, Refined};
use crate::settings::Settings;

struct Begun {
    status: Status,
    at: u64,
    state: RefineState,
}

pub(crate) struct RefiningState {
    fitted: DriverState,
    begun: Option<Begun>,
}

pub(crate) struct Refining<'a, D: TwiceDifferentiable> {
    density: &'a D,
    driver: Driver<'a, D>,
    settings: &'a Settings,
    reported: &'a dyn Fn(&Approximation) -> bool,
    refine: Option<Refine<'a, D>>,
}

impl<'a, D: TwiceDifferentiable> Refining<'a, D> {
    pub(crate) fn new(
        density: &'a D,
        driver: Driver<'a, D>,
        settings: &'a Settings,
        reported: &'a dyn Fn(&Approximation) -> bool,
    ) -> Self {
        Self {
            density,
            driver,
            settings,
            reported,
            refine: None,
        }
    }

    fn wanted(&self, output: &DriverOutput, status: &Status) -> bool {
        match self.settings.refine.when {
            RefineWhen::Never => false,
            RefineWhen::Always => !output.results.is_empty(),
            RefineWhen::Auto => {
                let fit = Fit::of(output.clone(), status.clone(), self.density, self.settings);
                let open = |fit: &Fit| !fit.trusted() || !(self.reported)(&fit.approximation());
                self.settings.is_policy()
                    && fit.is_some_and(|fit| fit.could_be_refined() && open(&fit))
            }
        }
    }

    fn refine(&mut self, fitted: &DriverState) -> &mut Refine<'a, D> {
        if self.refine.is_none() {
            let results = self.driver.output(fitted).results;
            let best = &results[choose(&results, &self.settings.policy)];
            let omega = best.omega.clone();
            let space = Space::of(self.density);
            let family = self.settings.family.named(&best.family, &space);
            let approximation =
                Approximation::of(family, omega).expect("a fitted family has all its parameters");
            let source = NoiseSource::new(self.settings.seed, self.settings.simd);
            let settings = self.settings.refine;
            let refine = Refine::new(self.density, &approximation, source, settings)
                .under(self.settings.policy)
                .of_scales(&self.settings.scales);
            self.refine = Some(refine);
        }
        self.refine.as_mut().expect("made above")
    }

    fn begin(&mut self, fitted: &DriverState, status: &Status, at: u64) -> Option<Begun> {
        let output = self.driver.output(fitted);
        if !self.wanted(&output, status) {
            return None;
        }
        let state = self.refine(fitted).init().ok()?;
        Some(Begun {
            status: status.clone(),
            at,
            state,
        })
    }
}

impl<D: TwiceDifferentiable> Algorithm for Refining<'_, D> {
    type State = RefiningState;
    type Output = (DriverOutput, Option<Refined>);

    fn init(&mut self) -> Result<RefiningState, Status> {
        Ok(RefiningState {
            fitted: self.driver.init()?,
            begun: None,
        })
    }

    fn step(&mut self, state: &mut RefiningState, iteration: u64) -> Step {
        let RefiningState { fitted, begun } = state;
        if let Some(begun) = begun {
            let before = fitted.calls();
            let local = iteration - begun.at;
            let step = self.refine(fitted).step(&mut begun.state, local);
            let calls = before + begun.state.calls();
            let record: Record = calls.on(step.record).with_text("stage", "refine");
            return Step { record, ..step };
        }
        let step = self.driver.step(fitted, iteration);
        let Some(status) = step.status else {
            return step;
        };
        *begun = self.begin(fitted, &status, iteration);
        match begun {
            Some(_) => Step::go_on(step.record),
            None => Step::finish(step.record, status),
        }
    }

    fn output(&mut self, state: &RefiningState) -> Self::Output {
        let output = self.driver.output(&state.fitted);
        let refined = state
            .begun
            .as_ref()
            .map(|begun| self.refine(&state.fitted).output(&begun.state));
        (output, refined)
    }
}

impl Snapshot for RefiningState {
    fn save(&self) -> Archive {
        let mut archive = self.fitted.save();
        if let Some(begun) = &self.begun {
            archive.set("refined_from", (&begun.status, begun.at));
            archive.nest("refine", begun.state.save());
        }
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let begun = match archive.get::<(Status, u64)>("refined_from") {
            Ok((status, at)) => Some(Begun {
                status,
                at,
                state: RefineState::restore(&archive.nested("refine"))?,
            }),
            Err(_) => None,
        };
        Ok(Self {
            fitted: DriverState::restore(archive)?,
            begun,
        })
    }
}
