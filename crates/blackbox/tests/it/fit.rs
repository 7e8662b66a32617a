//! Tests of whole fits, for densities with a known optimum and for densities that no Gaussian approximates well.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jensen_blackbox::{
    AdviSettings, BbviSettings, FamilyChoice, FamilyKind, Fit, FitError, Init, Method, Oracle,
    RefineSettings, RefineWhen, SaaSettings, Settings, Subject, evaluate, fit,
};
use jensen_density::{Differenced, Lanes, LanesMut, LogDensity, TwiceDifferentiable};
use jensen_run::{Budget, Control, Silent, Status};
use jensen_testkit::{
    CorrelatedGaussian, EightSchools, Funnel, LinearRegression, LogisticRegression, Mixture, Real,
    Scalar, ScalarModel,
};

fn run(density: &impl TwiceDifferentiable, settings: &Settings) -> Fit {
    // These settings test families without refinement. The module `refined_fits` tests the refinement.
    let settings = &Settings {
        refine: RefineSettings::of(RefineWhen::Never),
        ..settings.clone()
    };
    let clock = || 0.0;
    let mut silent = Silent;
    let mut control = Control::new(Budget::iterations(100_000), &clock, &mut silent);
    fit(density, settings, &Subject::default(), &mut control).unwrap()
}

fn only(kind: FamilyKind) -> Settings {
    Settings {
        family: FamilyChoice::Only(kind),
        ..Settings::default()
    }
}

fn best_mean_field(density: &impl TwiceDifferentiable) -> Fit {
    let mut settings = only(FamilyKind::MeanField);
    settings.method = Method::Saa(SaaSettings {
        tolerance: Some(1e-3),
        first_draws: Some(2048),
        max_draws: 8192,
        ..SaaSettings::default()
    });
    let fit = run(density, &settings);
    assert!(fit.converged(), "{}", fit.status);
    fit
}

/// A regression of 60 records on an intercept, two collinear covariates on their raw scales, and the product of these
/// covariates.
fn raw_regression() -> LinearRegression {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for i in 0..60 {
        let height = 150.0 + 40.0 * f64::from(i * 37 % 60) / 60.0;
        let weight = 50.0 + 0.5 * height + 3.0 * f64::from(i * 17 % 23) / 23.0;
        let noise = 3000.0 * (f64::from(i * 29 % 31) / 31.0 - 0.5);
        x.extend([1.0, height, weight, height * weight]);
        y.push(1000.0 + 20.0 * height + 35.0 * weight + noise);
    }
    LinearRegression { x, y }
}

/// Returns the log evidence of the posterior of [`LinearRegression`], computed by least squares. With flat priors on β
/// and log σ, `∫ = |XᵀX|^(−½) Γ((n − k)/2) / 2 · π^(−(n−k)/2) RSS^(−(n−k)/2)`.
fn regression_evidence(model: &LinearRegression) -> f64 {
    let n = model.y.len();
    let k = model.x.len() / n;
    // The Gram–Schmidt process is applied to the columns twice, for accuracy.
    let mut columns: Vec<Vec<f64>> = (0..k)
        .map(|j| (0..n).map(|i| model.x[i * k + j]).collect())
        .collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let mut log_det_root = 0.0;
    for j in 0..k {
        let (done, rest) = columns.split_at_mut(j);
        let column = &mut rest[0];
        for _ in 0..3 {
            for q in done.iter() {
                let c = dot(q, column);
                column.iter_mut().zip(q).for_each(|(x, q)| *x -= c * q);
            }
        }
        let length = dot(column, column).sqrt();
        log_det_root += length.ln();
        column.iter_mut().for_each(|x| *x /= length);
    }
    let mut residual = model.y.clone();
    for q in &columns {
        let c = dot(q, &residual);
        residual.iter_mut().zip(q).for_each(|(x, q)| *x -= c * q);
    }
    let half = (n - k) as f64 / 2.0;
    // The argument of the gamma function is an integer or a half-integer.
    let mut log_gamma = if (n - k).is_multiple_of(2) {
        0.0
    } else {
        0.5 * std::f64::consts::PI.ln()
    };
    let mut x = if (n - k).is_multiple_of(2) { 1.0 } else { 0.5 };
    while x < half - 0.25 {
        log_gamma += f64::ln(x);
        x += 1.0;
    }
    log_gamma
        - 2f64.ln()
        - half * (std::f64::consts::PI * dot(&residual, &residual)).ln()
        - log_det_root
}

#[test]
fn gaussians_of_any_scale_are_fitted_exactly() {
    let density = CorrelatedGaussian::exchangeable(&[1.0, 1e3, 1e-3, 3.0, 20.0], 0.9);
    let fit = run(&density, &Settings::default());
    assert!(fit.trusted(), "{:?}", fit.warnings());
    let mean_field = &fit.families[0];
    assert_eq!(mean_field.family, FamilyKind::MeanField);
    let error = mean_field.evaluation.elbo.mean - density.mean_field_elbo();
    assert!(error.abs() < 4.0 * mean_field.evaluation.elbo.standard_error);
    let approximation = fit.approximation_of(0);
    for (i, sd) in density.mean_field_sd().iter().enumerate() {
        // The tolerance of 0.01 nats corresponds to about a tenth of a standard deviation in one coordinate.
        assert!((approximation.sd()[i] / sd - 1.0).abs() < 0.05);
        assert!((approximation.mean()[i] - density.mean()[i]).abs() < 0.02 * sd);
    }
    // For correlated coefficients, the k̂ of a mean-field Gaussian is above its limit, but the full-rank Gaussian is
    // exact.
    assert!(!mean_field.evaluation.khat_is_good());
    assert_eq!(fit.best().family, FamilyKind::FullRank);
    assert!(fit.elbo().abs() < 1e-6, "{}", fit.elbo());
    for (i, scale) in [1.0, 1e3, 1e-3, 3.0, 20.0].into_iter().enumerate() {
        assert!((fit.approximation().sd()[i] / scale - 1.0).abs() < 1e-4);
    }
}

#[test]
fn low_rank_finds_one_shared_factor() {
    let scales: Vec<f64> = (0..40).map(|i| (0.2 * f64::from(i % 11)).exp()).collect();
    let density = CorrelatedGaussian::exchangeable(&scales, 0.8);
    let fit = run(&density, &only(FamilyKind::LowRank { rank: 2 }));
    assert!(fit.trusted(), "{:?}", fit.warnings());
    // The covariance is a diagonal plus a matrix of rank one, so the family contains the target.
    assert!(fit.elbo() > -0.05, "{}", fit.elbo());
}

#[test]
fn collinear_raw_scales_are_resolved_by_the_full_rank() {
    let model = raw_regression();
    let evidence = regression_evidence(&model);
    let fit = run(&Scalar(model.clone()), &Settings::default());
    assert!(fit.converged(), "{}", fit.status);
    assert_eq!(fit.best().family, FamilyKind::FullRank);
    // The posterior is a multivariate t distribution with 56 degrees of freedom, which is nearly Gaussian.
    assert!(fit.elbo() < evidence + 4.0 * fit.elbo_se());
    assert!(fit.elbo() > evidence - 0.1, "{} {evidence}", fit.elbo());
    let best = best_mean_field(&Scalar(model));
    let mean_field = fit.families[0].evaluation.elbo;
    let short = best.elbo() - mean_field.mean;
    assert!(short < 0.1, "{short}");
}

#[test]
fn hierarchies_reach_the_mean_field_optimum() {
    for centred in [true, false] {
        let density = Scalar(EightSchools { centred });
        let fit = run(&density, &Settings::default());
        assert!(fit.converged());
        let best = best_mean_field(&density);
        // Both fits use the same draws, so the noise cancels.
        let family = FamilyKind::MeanField.build(10);
        let mut oracle = Oracle::new(&density, family);
        let omega = &fit.families[0].omega;
        let source = jensen_blackbox::NoiseSource::new(99, jensen_math::simd::Simd::detect());
        let ours = evaluate(&mut oracle, omega, source, 4000).elbo.mean;
        let theirs = evaluate(&mut oracle, &best.best().omega, source, 4000)
            .elbo
            .mean;
        assert!(theirs - ours < 0.1, "{centred}: {ours} {theirs}");
    }
}

#[test]
fn a_logistic_regression_is_trusted() {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for i in 0..80u32 {
        let a = f64::from(i * 37 % 80) / 40.0 - 1.0;
        let b = f64::from(i * 53 % 79) / 40.0 - 1.0;
        x.extend([1.0, a, b]);
        y.push(a + 0.3 * f64::from(i * 7 % 13) / 6.5 > 0.2);
    }
    let fit = run(&Scalar(LogisticRegression { x, y }), &Settings::default());
    assert!(fit.trusted(), "{:?}", fit.warnings());
}

#[test]
fn a_funnel_is_not_trusted() {
    let fit = run(&Scalar(Funnel { leaves: 9 }), &Settings::default());
    assert!(!fit.trusted());
    assert_eq!(fit.families.len(), 2);
    assert!(
        fit.warnings().iter().any(|w| w.contains("k̂")),
        "{:?}",
        fit.warnings()
    );
}

#[test]
fn two_modes_are_noticed() {
    let density = Scalar(Mixture {
        dim: 2,
        distance: 8.0,
        log_odds: 0.3,
    });
    for init in [Init::Zero, Init::Random] {
        let mut settings = only(FamilyKind::FullRank);
        settings.start.init = init;
        let fit = run(&density, &settings);
        assert!(!fit.trusted());
        assert_eq!(fit.modes().len(), 1);
        // The fit keeps the heavier mode. The ELBO of that mode is the logarithm of its mass.
        let mass = 1.0 / (1.0 + (-0.3f64).exp());
        assert!((fit.elbo() - mass.ln()).abs() < 1e-3, "{}", fit.elbo());
        assert!((fit.modes()[0].below - 0.3).abs() < 1e-3);
        assert!(fit.warnings()[0].contains("several modes"));
    }
}

struct FarMode {
    dim: usize,
    distance: f64,
}

impl ScalarModel for FarMode {
    fn dim(&self) -> usize {
        self.dim
    }
    fn log_density<T: Real>(&self, z: &[T]) -> T {
        let zero = T::constant(0.0);
        let normal = |x: T, centre: f64| x.normal_log_scale(T::constant(centre), zero);
        let rest = (z[1..].iter()).fold(zero, |sum, &x| sum + normal(x, 0.0));
        let near = normal(z[0], 0.0) + T::constant(0.9f64.ln());
        let far = normal(z[0], self.distance) + T::constant(0.1f64.ln());
        rest + near + (far - near).softplus()
    }
}

/// No draw of the approximation reaches such a mode, so its importance weights look perfect.
#[test]
fn a_far_mode_in_many_dimensions_is_noticed() {
    for distance in [10.0, 100.0] {
        let fit = run(&Scalar(FarMode { dim: 70, distance }), &Settings::default());
        assert!(!fit.trusted(), "{distance}");
        let reasons = fit.warnings();
        assert!(
            reasons.iter().any(|r| r.contains("several modes")),
            "{reasons:?}"
        );
    }
}

#[test]
fn stans_rule_must_answer_to_the_certificate() {
    let model = Scalar(raw_regression());
    let mut settings = only(FamilyKind::MeanField);
    settings.method = Method::Advi(AdviSettings::default());
    let fit = run(&model, &settings);
    let best = best_mean_field(&model);
    // ADVI cannot reach parameters on raw scales within its steps, and must not report convergence.
    assert!(fit.elbo() < best.elbo() - 10.0 || !fit.elbo().is_finite());
    assert!(!fit.converged() && !fit.trusted());
}

#[test]
fn advi_and_bbvi_reach_easy_optima_and_say_so() {
    let mut density = CorrelatedGaussian::exchangeable(&[1.0, 0.5, 2.0], 0.3);
    // Relative changes of an ELBO near zero are not informative.
    density.log_evidence = -100.0;
    let methods = [
        Method::Advi(AdviSettings::default()),
        Method::Advi(AdviSettings {
            grad_samples: 64,
            stop: jensen_blackbox::AdviStop::Nats,
            tolerance: 0.05,
            ..AdviSettings::default()
        }),
        Method::Bbvi(BbviSettings {
            tolerance: 0.05,
            ..BbviSettings::default()
        }),
    ];
    for method in methods {
        for kind in [FamilyKind::MeanField, FamilyKind::FullRank] {
            let settings = Settings {
                method,
                ..only(kind)
            };
            let fit = run(&density, &settings);
            assert!(fit.converged(), "{method:?}: {}", fit.status);
            let optimum = match kind {
                FamilyKind::MeanField => density.mean_field_elbo(),
                _ => -100.0,
            };
            let tolerance = match method {
                Method::Trust(settings) => settings.tolerance(0),
                Method::Hfsgvi(settings) => settings.tolerance,
                Method::Advi(s) => s.tolerance,
                Method::Bbvi(s) => s.tolerance,
                _ => 0.0,
            };
            let short = optimum - fit.elbo();
            assert!(
                short < tolerance + 4.0 * fit.elbo_se(),
                "{method:?}: {short}"
            );
            let evidence = match &fit.status {
                Status::Converged { evidence } => evidence.remaining,
                _ => None,
            };
            assert!(evidence.is_some(), "every convergence has a number");
        }
    }
}

#[test]
fn a_density_without_second_derivatives_is_fitted_by_differences() {
    let density = CorrelatedGaussian::exchangeable(&[1.0, 10.0, 0.1], 0.5);
    let fit = run(&Differenced(&density), &Settings::default());
    assert!(fit.trusted(), "{:?}", fit.warnings());
    let error = fit.families[0].evaluation.elbo.mean - density.mean_field_elbo();
    assert!(error.abs() < 4.0 * fit.families[0].evaluation.elbo.standard_error);
}

#[test]
fn a_fit_whose_time_is_up_is_judged_by_few_draws() {
    // The clock advances by one second whenever it is read.
    let looks = AtomicU64::new(0);
    let clock = || looks.fetch_add(1, Ordering::Relaxed) as f64;
    let mut silent = Silent;
    let budget = Budget {
        max_seconds: Some(20.0),
        ..Budget::iterations(100_000)
    };
    let mut control = Control::new(budget, &clock, &mut silent);
    let density = Scalar(EightSchools { centred: false });
    let settings = Settings::default();
    let fit = fit(&density, &settings, &Subject::default(), &mut control).unwrap();
    assert!(!fit.converged(), "{}", fit.status);
    let draws = fit.best().evaluation.draws;
    assert!((1..100).contains(&draws), "{draws}");
}

struct Nowhere(usize);

impl LogDensity for Nowhere {
    type Workspace = ();
    fn dim(&self) -> usize {
        self.0
    }
    fn workspace(&self, _: usize) {}
    fn value(&self, _: &mut (), _: Lanes<'_>, out: &mut [f64]) {
        out.fill(f64::NAN);
    }
    fn value_grad(&self, _: &mut (), _: Lanes<'_>, out: &mut [f64], _: LanesMut<'_>) {
        out.fill(f64::NAN);
    }
}

#[test]
fn what_cannot_be_fitted_is_said_at_once() {
    let clock = || 0.0;
    let mut silent = Silent;
    let mut control = Control::new(Budget::iterations(10), &clock, &mut silent);
    let subject = Subject::default();
    let mut settings = Settings::default();
    let mut attempt = |dim: usize, settings: &Settings| {
        fit(&Differenced(Nowhere(dim)), settings, &subject, &mut control).unwrap_err()
    };
    assert_eq!(attempt(0, &settings), FitError::NoParameters);
    let nowhere = attempt(3, &settings);
    assert!(matches!(nowhere, FitError::CannotStart(_)), "{nowhere}");
    assert!(nowhere.to_string().contains("none of 100 starting points"));
    settings.method = Method::Advi(AdviSettings::default());
    assert!(matches!(attempt(3, &settings), FitError::CannotStart(_)));
    settings.method = Method::Advi(AdviSettings {
        grad_samples: 0,
        ..AdviSettings::default()
    });
    let setting = attempt(3, &settings);
    assert_eq!(
        setting.to_string(),
        "the setting grad_samples must be positive, not 0"
    );
    settings.method = Method::Bbvi(BbviSettings::default());
    settings.start.init = Init::Point(vec![0.0; 2]);
    let wrong = attempt(3, &settings);
    assert_eq!(
        wrong.to_string(),
        "the initial point has 2 coordinates, but the model has 3"
    );
}

struct Stopping<'a> {
    stop: &'a AtomicBool,
    prepared: AtomicU64,
}

impl LogDensity for Stopping<'_> {
    type Workspace = ();

    fn dim(&self) -> usize {
        5
    }

    fn workspace(&self, _lanes: usize) {
        self.prepared.fetch_add(1, Ordering::Relaxed);
    }

    fn value(&self, _: &mut (), z: Lanes<'_>, out: &mut [f64]) {
        self.stop.store(true, Ordering::Relaxed);
        for (lane, value) in out.iter_mut().enumerate() {
            *value = (0..5).map(|i| -0.5 * z.row(i)[lane].powi(2)).sum();
        }
    }

    fn value_grad(&self, ws: &mut (), z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
        self.value(ws, z, out);
        for i in 0..5 {
            for (g, x) in grad.row_mut(i).iter_mut().zip(z.row(i)) {
                *g = -x;
            }
        }
    }
}

#[test]
fn a_run_that_is_stopped_at_its_beginning_looks_for_no_further_starting_point() {
    let stop = AtomicBool::new(false);
    let density = Stopping {
        stop: &stop,
        prepared: AtomicU64::new(0),
    };
    let density = Differenced(density);
    let (clock, mut silent) = (|| 0.0, Silent);
    let mut control = Control::new(Budget::iterations(100), &clock, &mut silent);
    control.cancel = Some(&stop);
    let fit = fit(
        &density,
        &Settings::default(),
        &Subject::default(),
        &mut control,
    );
    assert!(
        matches!(&fit, Err(FitError::CannotStart(Status::Interrupted { .. }))),
        "{fit:?}"
    );
    let prepared = density.0.prepared.load(Ordering::Relaxed);
    assert!(prepared < 30, "{prepared} workspaces");
}
