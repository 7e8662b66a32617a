//! Tests of fits with refinement: the conditions for a refinement, its results, and resuming.

use std::f64::consts::TAU;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jensen_blackbox::{
    FamilyChoice, FamilyKind, Fit, RefineSettings, RefineWhen, Settings, Subject, Summary, fit,
};
use jensen_density::{Differenced, Lanes, LanesMut, LogDensity, TwiceDifferentiable};
use jensen_run::{Budget, Checkpoint, Control, Record};
use jensen_testkit::{CorrelatedGaussian, Mixture, Scalar, ticking};

/// No Gaussian is close to the distribution z₀ ~ N(0, 1), z₁ | z₀ ~ N(z₀², 0.3).
struct Banana;

impl LogDensity for Banana {
    type Workspace = ();

    fn dim(&self) -> usize {
        2
    }
    fn workspace(&self, _lanes: usize) {}
    fn value(&self, _: &mut (), z: Lanes<'_>, out: &mut [f64]) {
        for (l, value) in out.iter_mut().enumerate() {
            let (a, b) = (z.row(0)[l], z.row(1)[l]);
            let e = (b - a * a) / 0.3;
            *value = -0.5 * (a * a + e * e) - TAU.ln() - 0.3f64.ln();
        }
    }
    fn value_grad(&self, _: &mut (), z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
        self.value(&mut (), z, out);
        for l in 0..z.lanes() {
            let (a, b) = (z.row(0)[l], z.row(1)[l]);
            let e = (b - a * a) / 0.09;
            grad.row_mut(0)[l] = -a + 2.0 * a * e;
            grad.row_mut(1)[l] = -e;
        }
    }
}

struct StructuredMap(Option<u64>);

impl LogDensity for StructuredMap {
    type Workspace = ();

    fn dim(&self) -> usize {
        2
    }
    fn work(&self) -> Option<u64> {
        self.0
    }
    fn workspace(&self, _lanes: usize) {}
    fn value(&self, _: &mut (), z: Lanes<'_>, out: &mut [f64]) {
        for (l, value) in out.iter_mut().enumerate() {
            let (a, b) = (z.row(0)[l], z.row(1)[l]);
            *value = -0.5 * (a * a + (b - MEAN * a * a).powi(2));
        }
    }
    fn value_grad(&self, _: &mut (), z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
        self.value(&mut (), z, out);
        for l in 0..z.lanes() {
            let (a, b) = (z.row(0)[l], z.row(1)[l]);
            let e = b - MEAN * a * a;
            grad.row_mut(0)[l] = -a + 2.0 * MEAN * a * e;
            grad.row_mut(1)[l] = -e;
        }
    }
}

const MEAN: f64 = 0.3;

struct Run {
    fit: Fit,
    records: Vec<Record>,
    checkpoints: Vec<Vec<u8>>,
}

fn run(
    density: &impl TwiceDifferentiable,
    settings: &Settings,
    budget: u64,
    resume: Option<Checkpoint>,
) -> Run {
    stopped(density, settings, budget, resume, None)
}

fn stopped(
    density: &impl TwiceDifferentiable,
    settings: &Settings,
    budget: u64,
    resume: Option<Checkpoint>,
    cancel: Option<&AtomicBool>,
) -> Run {
    let clock = ticking(0.001);
    let mut records: Vec<Record> = Vec::new();
    let mut checkpoints: Vec<Vec<u8>> = Vec::new();
    let mut control = Control::new(Budget::iterations(budget), &clock, &mut records);
    control.store = Some(&mut checkpoints);
    control.checkpoint_seconds = 0.0;
    (control.resume, control.cancel) = (resume, cancel);
    let fit = fit(density, settings, &Subject::default(), &mut control).unwrap();
    Run {
        fit,
        records,
        checkpoints,
    }
}

fn when(when: RefineWhen) -> Settings {
    Settings {
        refine: RefineSettings::of(when),
        seed: 3,
        ..Settings::default()
    }
}

#[test]
fn what_no_family_fits_is_trusted_by_its_refined_draws() {
    let density = Differenced(Banana);
    let alone = run(&density, &when(RefineWhen::Never), 100_000, None).fit;
    assert!(!alone.trusted() && alone.refined.is_none());
    let fit = run(&density, &when(RefineWhen::Auto), 100_000, None).fit;
    assert!(fit.trusted(), "{:?}", fit.warnings());
    // The fits are the same, because the check of the refined draws uses no additional draws.
    assert_eq!(fit.families.len(), alone.families.len());
    for (own, alone) in fit.families.iter().zip(&alone.families) {
        assert_eq!((&own.family, &own.omega), (&alone.family, &alone.omega));
        assert!(own.evaluation.draws <= alone.evaluation.draws);
    }
    assert!(fit.calls.gradients > alone.calls.gradients);
    let refined = fit.refined.as_ref().unwrap();
    let found = Summary::of(refined.draws.lanes().row(0));
    assert!(
        found.mean.abs() < 0.1 && (found.sd - 1.0).abs() < 0.08,
        "{found:?}"
    );
    let elbo = fit.best().evaluation.elbo;
    let (z, kl) = (refined.log_evidence, refined.divergence(elbo));
    assert!(z.mean.abs() < 4.0 * z.standard_error, "{z:?}");
    assert!(kl.mean > 0.3 && (kl.mean + elbo.mean).abs() < 4.0 * kl.standard_error);
    // Draws that cover half of the mass have half of the evidence. The log evidence cannot be below an ELBO.
    let mut half = fit.clone();
    half.refined.as_mut().unwrap().log_evidence.mean = elbo.mean - 2.0_f64.ln();
    let reasons = half.warnings();
    assert!(
        !half.trusted() && reasons[0].contains("below the ELBO"),
        "{reasons:?}"
    );
}

#[test]
fn only_the_policys_own_choice_is_refined_unasked() {
    let gaussian = CorrelatedGaussian::exchangeable(&[1.0, 2.0], 0.5);
    assert!(
        run(&gaussian, &when(RefineWhen::Auto), 100_000, None)
            .fit
            .refined
            .is_none()
    );
    let mut named = when(RefineWhen::Auto);
    named.family = FamilyChoice::Only(FamilyKind::MeanField);
    let density = Differenced(Banana);
    let fit = run(&density, &named, 100_000, None).fit;
    assert!(fit.refined.is_none() && !fit.trusted());
    named.refine = RefineSettings::of(RefineWhen::Always);
    assert!(run(&density, &named, 100_000, None).fit.trusted());
    let fit = run(&gaussian, &when(RefineWhen::Always), 100_000, None).fit;
    let elbo = fit.best().evaluation.elbo;
    let kl = fit.refined.as_ref().unwrap().divergence(elbo);
    // The evidence is 1, whichever family the fit chose.
    assert!(fit.trusted(), "{:?}", fit.warnings());
    assert!(
        (kl.mean + elbo.mean).abs() < 4.0 * kl.standard_error,
        "{kl:?} {elbo:?}"
    );
}

/// If the cost of an evaluation is unknown, the fit is refined even if the weights shift its moments by less.
#[test]
fn a_density_of_unknown_cost_is_judged_on_fewer_draws_before_it_is_refined() {
    let [known, unknown] = [Some(20), None].map(|work| {
        let fit = run(
            &Differenced(StructuredMap(work)),
            &when(RefineWhen::Auto),
            100_000,
            None,
        )
        .fit;
        assert!(fit.trusted(), "{:?}", fit.warnings());
        fit
    });
    let draws = |fit: &Fit| fit.best().evaluation.draws;
    assert!(draws(&unknown) <= 16_384 && draws(&known) > 16_384);
    let spread = |fit: &Fit| Summary::of(fit.refined.as_ref().unwrap().draws.lanes().row(1)).sd;
    let exact = (1.0 + 2.0 * MEAN * MEAN).sqrt();
    assert!((spread(&unknown) / exact - 1.0).abs() < 0.04);
}

#[test]
fn another_mode_is_held_against_refined_draws_too() {
    let density = Scalar(Mixture {
        dim: 2,
        distance: 12.0,
        log_odds: 0.5,
    });
    let mut settings = when(RefineWhen::Always);
    settings.family = FamilyChoice::Only(FamilyKind::FullRank);
    let fit = run(&density, &settings, 100_000, None).fit;
    assert!(!fit.modes().is_empty());
    assert!(!fit.trusted());
}

#[test]
fn resuming_anywhere_equals_never_stopping() {
    let density = Differenced(Banana);
    let settings = when(RefineWhen::Auto);
    let whole = run(&density, &settings, 100_000, None);
    let n = whole.records.len();
    let refines = |record: &Record| record.fields.get("stage") == Some(&"refine".into());
    let first = whole.records.iter().position(refines).unwrap();
    for at in [first / 2, first - 1, first, (first + n) / 2, n - 1] {
        let checkpoint = Checkpoint::decode(&whole.checkpoints[at]).unwrap();
        let rest = run(&density, &settings, 100_000, Some(checkpoint)).fit;
        assert_eq!(rest.families, whole.fit.families);
        assert_eq!(rest.refined, whole.fit.refined);
        assert_eq!(rest.calls, whole.fit.calls);
        assert_eq!(rest.warnings(), whole.fit.warnings());
        let short = run(&density, &settings, at as u64 + 1, None);
        let pairs = short.records.iter().zip(&whole.records);
        assert!(pairs.clone().all(|(a, b)| a.same_result(b)));
        assert!(at + 1 == n || !short.fit.trusted());
    }
    let calls = whole.records.windows(2);
    assert!(
        calls
            .into_iter()
            .all(|w| w[0].oracle_calls <= w[1].oracle_calls)
    );
}

struct Stopping {
    left: AtomicU64,
    stop: AtomicBool,
}

impl LogDensity for Stopping {
    type Workspace = ();

    fn dim(&self) -> usize {
        2
    }
    fn workspace(&self, _lanes: usize) {}
    fn value(&self, _: &mut (), z: Lanes<'_>, out: &mut [f64]) {
        Banana.value(&mut (), z, out);
    }
    fn value_grad(&self, _: &mut (), z: Lanes<'_>, out: &mut [f64], grad: LanesMut<'_>) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.stop.store(true, Ordering::Relaxed);
        }
        Banana.value_grad(&mut (), z, out, grad);
    }
}

#[test]
fn stopping_within_a_step_and_resuming_equals_never_stopping() {
    let settings = when(RefineWhen::Auto);
    let endless = Differenced(Stopping {
        left: AtomicU64::new(u64::MAX),
        stop: AtomicBool::new(false),
    });
    let whole = run(&endless, &settings, 100_000, None);
    let gradients = u64::MAX - endless.0.left.load(Ordering::Relaxed);
    let mut within = 0;
    for part in 1..12 {
        let density = Differenced(Stopping {
            left: AtomicU64::new(gradients * part / 12),
            stop: AtomicBool::new(false),
        });
        let cut = stopped(&density, &settings, 100_000, None, Some(&density.0.stop));
        assert!(!cut.fit.trusted());
        assert!(cut.fit.elbo().is_finite(), "what was fitted is evaluated");
        let pairs = cut.records.iter().zip(&whole.records);
        assert!(pairs.clone().all(|(a, b)| a.same_result(b)));
        let checkpoint = Checkpoint::decode(cut.checkpoints.last().unwrap()).unwrap();
        within += u64::from(checkpoint.iteration == cut.records.len() as u64);
        let rest = run(&density, &settings, 100_000, Some(checkpoint)).fit;
        assert_eq!(rest.families, whole.fit.families);
        assert_eq!(rest.refined, whole.fit.refined);
        assert_eq!(rest.calls, whole.fit.calls);
    }
    assert_eq!(within, 11);
}
