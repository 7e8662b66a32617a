//! Mixtures and flows on targets whose log evidence and moments are known.
//!
//! Run the tests with `--nocapture` to see the numbers.

use jensen_blackbox::{
    BbviSettings, FamilyChoice, FamilyKind, Fit, FitError, Method, NoiseSource, RefineSettings,
    RefineWhen, Settings, Subject, TrustSettings, fit, psis,
};
use jensen_density::{LogDensity, TwiceDifferentiable};
use jensen_run::{Budget, Checkpoint, Control, Record};
use jensen_testkit::{Funnel, Mixture, Real, Scalar, ScalarModel, ticking};

/// The target `x₁ ~ N(0, 1)`, `x₂ ~ N(x₁² − 1, ½)`.
struct Banana;

impl ScalarModel for Banana {
    fn dim(&self) -> usize {
        2
    }
    fn log_density<T: Real>(&self, z: &[T]) -> T {
        let zero = T::constant(0.0);
        let mean = z[0].square() - T::constant(1.0);
        z[0].normal_log_scale(zero, zero) + z[1].normal_log_scale(mean, T::constant(0.5f64.ln()))
    }
}

/// A target in which the distance from the origin is 3 ± ½.
struct Ring;

impl ScalarModel for Ring {
    fn dim(&self) -> usize {
        2
    }
    fn log_density<T: Real>(&self, z: &[T]) -> T {
        let radius = (z[0].square() + z[1].square()).ln().scale(0.5).exp();
        let off = (radius - T::constant(3.0)).scale(2.0);
        let log_z = (std::f64::consts::TAU * 3.0 * 0.5 * std::f64::consts::TAU.sqrt()).ln();
        -off.square().scale(0.5) - T::constant(log_z)
    }
}

struct Run {
    fit: Fit,
    records: Vec<Record>,
    checkpoints: Vec<Vec<u8>>,
}

fn settings(kind: FamilyKind) -> Settings {
    Settings {
        family: FamilyChoice::Only(kind),
        refine: RefineSettings::of(RefineWhen::Never),
        seed: 3,
        ..Settings::default()
    }
}

fn run(
    density: &impl TwiceDifferentiable,
    settings: &Settings,
    resume: Option<Checkpoint>,
) -> Result<Run, FitError> {
    let clock = ticking(0.001);
    let (mut records, mut checkpoints) = (Vec::new(), Vec::new());
    let mut control = Control::new(Budget::iterations(100_000), &clock, &mut records);
    control.store = Some(&mut checkpoints);
    control.checkpoint_seconds = 0.0;
    control.resume = resume;
    let fit = fit(density, settings, &Subject::default(), &mut control)?;
    Ok(Run {
        fit,
        records,
        checkpoints,
    })
}

fn weighted(density: &impl LogDensity, fit: &Fit) -> Vec<(f64, f64)> {
    let count = 40_000;
    let draws = fit.approximation().draws(
        count,
        NoiseSource::new(11, jensen_math::simd::Simd::detect()),
    );
    let mut log_p = vec![0.0; count];
    let mut workspace = density.workspace(count);
    density.value(&mut workspace, draws.lanes(), &mut log_p);
    let ratios: Vec<f64> = log_p.iter().zip(&draws.log_q).map(|(p, q)| p - q).collect();
    let weights = psis(&ratios, 1.0).log_weights;
    let moments = (0..draws.dim).map(|i| {
        let row = draws.lanes();
        let expected = |f: &dyn Fn(f64) -> f64| -> f64 {
            let terms = row.row(i).iter().zip(&weights);
            terms.map(|(z, w)| w.exp() * f(*z)).sum()
        };
        let mean = expected(&|z| z);
        (mean, expected(&|z| (z - mean).powi(2)).sqrt())
    });
    moments.collect()
}

struct Bar {
    name: &'static str,
    /// The largest allowed distance between the ELBO and the log evidence, in nats.
    distance: f64,
    /// The smallest required gain over the ELBO of the best Gaussian, in nats.
    gain: f64,
    /// The expected means and standard deviations. The tolerance of both is `near` standard deviations.
    moments: Vec<(f64, f64)>,
    near: f64,
}

fn reaches(density: &impl TwiceDifferentiable, kind: FamilyKind, bar: &Bar) {
    let gaussian = run(density, &settings(FamilyKind::FullRank), None)
        .unwrap()
        .fit;
    let found = run(density, &settings(kind), None).unwrap().fit;
    let e = &found.best().evaluation;
    println!(
        "{} {kind}: bound {:.3} ± {:.3} (full rank {:.3}), k\u{302} {:.2}, {}",
        bar.name,
        e.elbo.mean,
        e.elbo.standard_error,
        gaussian.elbo(),
        e.khat,
        found.status
    );
    assert!(found.converged(), "{}", found.status);
    assert_eq!(found.best().family, kind);
    assert!(e.elbo.mean > -bar.distance, "{}: {:?}", bar.name, e.elbo);
    // No ELBO is above the log evidence.
    assert!(
        e.elbo.mean < 4.0 * e.elbo.standard_error + 1e-3,
        "{:?}",
        e.elbo
    );
    assert!(found.elbo() > gaussian.elbo() + bar.gain);
    assert!(found.khat() < 0.7, "{}", found.khat());
    for ((mean, sd), (found_mean, found_sd)) in bar.moments.iter().zip(weighted(density, &found)) {
        assert!(
            (found_mean - mean).abs() < bar.near * sd,
            "{found_mean}, not {mean}"
        );
        assert!(
            (found_sd / sd - 1.0).abs() < bar.near,
            "{found_sd}, not {sd}"
        );
    }
}

fn two_modes() -> Scalar<Mixture> {
    Scalar(Mixture {
        dim: 2,
        distance: 8.0,
        log_odds: (0.3f64 / 0.7).ln(),
    })
}

fn bananas(distance: f64, gain: f64, near: f64) -> Bar {
    Bar {
        name: "banana",
        distance,
        gain,
        moments: vec![(0.0, 1.0), (0.0, 2.25f64.sqrt())],
        near,
    }
}

fn rings(distance: f64, gain: f64) -> Bar {
    let sd = (0.5f64 * (9.0 + 3.0 * 0.25)).sqrt();
    Bar {
        name: "ring",
        distance,
        gain,
        moments: vec![(0.0, sd), (0.0, sd)],
        near: 0.05,
    }
}

#[test]
fn a_mixture_has_both_of_two_modes() {
    // Each coordinate has mean 4 (0.7 − 0.3) and variance 1 + 16 · 4 · 0.21.
    let sd = (1.0f64 + 16.0 * 0.84).sqrt();
    let bar = Bar {
        name: "two modes",
        distance: 0.01,
        gain: 0.3,
        moments: vec![(1.6, sd), (1.6, sd)],
        near: 0.05,
    };
    let kind = FamilyKind::Mixture { components: 8 };
    reaches(&two_modes(), kind, &bar);
}

#[test]
fn the_policy_trusts_a_mixture_of_all_modes_and_nothing_less() {
    let mut settings = settings(FamilyKind::MeanField);
    settings.family = FamilyChoice::Auto;
    let found = run(&two_modes(), &settings, None).unwrap().fit;
    assert!(found.trusted(), "{:?}", found.warnings());
    assert_eq!(found.best().family.to_string(), "mixture=8");
    settings.family = FamilyChoice::Only(FamilyKind::FullRank);
    let found = run(&two_modes(), &settings, None).unwrap().fit;
    assert!(
        found.warnings()[0].contains("several modes"),
        "{:?}",
        found.warnings()
    );
}

#[test]
fn mixtures_match_curved_targets() {
    let kind = FamilyKind::Mixture { components: 8 };
    reaches(&Scalar(Banana), kind, &bananas(0.1, 0.5, 0.05));
    reaches(&Scalar(Ring), kind, &rings(0.2, 0.8));
}

#[test]
fn flows_match_curved_targets() {
    let kind = FamilyKind::Flow { layers: 6 };
    // A flow misses the far ends of the arms, where draws have large weights.
    reaches(&Scalar(Banana), kind, &bananas(0.01, 0.5, 0.05));
    let funnel = Bar {
        name: "funnel",
        distance: 0.1,
        gain: 0.5,
        moments: Vec::new(),
        near: 0.0,
    };
    reaches(&Scalar(Funnel { leaves: 2 }), kind, &funnel);
}

fn small_flow() -> Settings {
    Settings {
        method: Method::Bbvi(BbviSettings {
            draws: 300,
            window: 10,
            judges: 300,
            ..BbviSettings::of_flows()
        }),
        ..settings(FamilyKind::Flow { layers: 2 })
    }
}

#[test]
fn resuming_curved_families_equals_never_stopping() {
    let density = Scalar(Banana);
    for settings in [
        settings(FamilyKind::Mixture { components: 3 }),
        small_flow(),
    ] {
        let whole = run(&density, &settings, None).unwrap();
        let n = whole.checkpoints.len();
        for at in (0..n).step_by(n / 6 + 1).chain([n - 1]) {
            let checkpoint = Checkpoint::decode(&whole.checkpoints[at]).unwrap();
            let rest = run(&density, &settings, Some(checkpoint)).unwrap();
            assert_eq!(rest.fit.families, whole.fit.families);
            let agree = rest.records.iter().zip(&whole.records[at + 1..]);
            assert!(agree.clone().all(|(a, b)| a.same_result(b)));
        }
    }
}

#[test]
fn curved_families_are_the_same_on_any_number_of_threads() {
    let density = Scalar(Banana);
    for settings in [
        settings(FamilyKind::Mixture { components: 3 }),
        small_flow(),
    ] {
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| run(&density, &settings, None).unwrap().fit)
        };
        assert_eq!(on(1).families, on(3).families);
    }
}

#[test]
fn methods_of_derivatives_refuse_what_has_none() {
    for kind in [
        FamilyKind::Mixture { components: 3 },
        FamilyKind::Flow { layers: 2 },
    ] {
        let settings = Settings {
            method: Method::Trust(TrustSettings::default()),
            ..settings(kind)
        };
        let error = run(&Scalar(Banana), &settings, None)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("omit `--method`"), "{error}");
    }
}
