//! Tests of TrustVI and HFSGVI as whole methods, on targets with known optima and on targets that the methods must
//! reject.

use jensen_blackbox::{
    AutoSettings, FamilyChoice, FamilyKind, Fit, HfsgviSettings, Method, Settings, StartSettings,
    Subject, TrustSettings, fit,
};
use jensen_density::{Lanes, LanesMut, LogDensity, TwiceDifferentiable};
use jensen_run::{Budget, Control, Record, Status};
use jensen_testkit::{CorrelatedGaussian, EightSchools, Funnel, Scalar};

fn run(density: &impl TwiceDifferentiable, settings: &Settings) -> (Fit, Vec<Record>) {
    let clock = || 0.0;
    let mut records = Vec::new();
    let mut control = Control::new(Budget::iterations(100_000), &clock, &mut records);
    let fit = fit(density, settings, &Subject::default(), &mut control).unwrap();
    (fit, records)
}

fn trust(kind: FamilyKind, trust: TrustSettings) -> Settings {
    Settings {
        method: Method::Trust(trust),
        family: FamilyChoice::Only(kind),
        ..Settings::default()
    }
}

fn cold(settings: Settings) -> Settings {
    Settings {
        start: StartSettings {
            starts: Some(0),
            ..StartSettings::default()
        },
        ..settings
    }
}

#[test]
fn gaussians_are_found_from_the_origin_in_every_family() {
    let density = CorrelatedGaussian::exchangeable(&[1.0, 300.0, 1e-2, 3.0], 0.7);
    let krylov = TrustSettings {
        explicit_limit: 0,
        ..TrustSettings::default()
    };
    let cases = [
        (
            FamilyKind::MeanField,
            TrustSettings::default(),
            density.mean_field_elbo(),
        ),
        (FamilyKind::MeanField, krylov, density.mean_field_elbo()),
        (FamilyKind::FullRank, krylov, 0.0),
    ];
    for (kind, settings, best) in cases {
        let (fit, records) = run(&density, &cold(trust(kind, settings)));
        assert!(fit.converged(), "{kind}: {}", fit.status);
        assert!(
            (fit.elbo() - best).abs() < 0.02 + 4.0 * fit.elbo_se(),
            "{kind}: {}",
            fit.elbo()
        );
        let Status::Converged { evidence } = &fit.status else {
            panic!("{}", fit.status);
        };
        let [remaining, error] = [evidence.remaining, evidence.standard_error].map(Option::unwrap);
        assert!(remaining + error <= 0.01);
        assert!(records.len() < 100, "{kind}: {}", records.len());
        let lanes = |r: &Record| r.fields["lane_evaluations"].as_f64().unwrap();
        assert!(
            records
                .windows(2)
                .all(|w| { w[0].oracle_calls <= w[1].oracle_calls && lanes(&w[0]) < lanes(&w[1]) })
        );
    }
}

#[test]
fn one_shared_factor_is_found_in_the_low_rank_family() {
    let scales: Vec<f64> = (0..30).map(|i| (0.2 * f64::from(i % 7)).exp()).collect();
    let density = CorrelatedGaussian::exchangeable(&scales, 0.6);
    let kind = FamilyKind::LowRank { rank: 1 };
    let (fit, _) = run(&density, &trust(kind, TrustSettings::default()));
    assert!(fit.elbo() > -0.2, "{} {}", fit.elbo(), fit.status);
}

#[test]
fn explicit_and_krylov_steps_reach_the_same_optimum() {
    let density = Scalar(EightSchools { centred: false });
    let [explicit, krylov] = [128, 0].map(|explicit_limit| {
        let settings = TrustSettings {
            explicit_limit,
            ..TrustSettings::default()
        };
        let (fit, _) = run(&density, &trust(FamilyKind::MeanField, settings));
        assert!(fit.converged(), "{}", fit.status);
        fit
    });
    let error = 4.0 * (explicit.elbo_se() + krylov.elbo_se());
    assert!((explicit.elbo() - krylov.elbo()).abs() < 0.02 + error);
}

#[test]
fn steps_into_nowhere_are_rejections() {
    /// The density is NaN beyond two, where every wide approximation has draws.
    struct Cut;
    impl LogDensity for Cut {
        type Workspace = ();
        fn dim(&self) -> usize {
            1
        }
        fn workspace(&self, _: usize) {}
        fn value(&self, _: &mut (), z: Lanes<'_>, out: &mut [f64]) {
            for (out, z) in out.iter_mut().zip(z.row(0)) {
                *out = if *z > 2.0 { f64::NAN } else { -50.0 * z * z };
            }
        }
        fn value_grad(&self, ws: &mut (), z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
            self.value(ws, z, out);
            for (g, z) in grad.row_mut(0).iter_mut().zip(z.row(0)) {
                *g = -100.0 * z;
            }
        }
    }
    impl TwiceDifferentiable for Cut {
        fn linearize(&self, _: &mut (), _: Lanes<'_>) {}
        fn apply(&self, _: &mut (), v: Lanes<'_>, mut out: LanesMut<'_>) {
            for (o, v) in out.as_mut_slice().iter_mut().zip(v.as_slice()) {
                *o = -100.0 * v;
            }
        }
    }
    let (fit, records) = run(
        &Cut,
        &cold(trust(FamilyKind::MeanField, TrustSettings::default())),
    );
    assert!(fit.converged(), "{}", fit.status);
    let optimum = 0.5 * (2.0 * std::f64::consts::PI / 100.0).ln();
    assert!((fit.elbo() - optimum).abs() < 0.01, "{}", fit.elbo());
    // The gradient omits draws beyond two, and the fit reports their number.
    assert!(
        records
            .iter()
            .any(|r| r.fields.contains_key("dropped_pairs"))
    );
}

#[test]
fn the_policy_hands_funnels_to_fixed_draws() {
    let density = Scalar(Funnel { leaves: 5 });
    let settings = Settings {
        method: Method::Auto(AutoSettings {
            trust: TrustSettings {
                max_iterations: 3,
                ..TrustSettings::default()
            },
            ..AutoSettings::default()
        }),
        family: FamilyChoice::Only(FamilyKind::MeanField),
        ..Settings::default()
    };
    let (fit, records) = run(&density, &settings);
    let stages: Vec<&str> = records
        .iter()
        .map(|r| r.fields["stage"].as_str().unwrap())
        .collect();
    let last_trust = stages.iter().rposition(|s| *s == "trust").unwrap();
    assert!(stages[last_trust + 1..].iter().all(|s| *s == "saa"));
    assert_eq!(stages.last(), Some(&"saa"));
    assert!(fit.converged(), "{}", fit.status);
    // Without the policy, the method reports that it did not converge.
    let pure = TrustSettings {
        max_iterations: 3,
        ..TrustSettings::default()
    };
    let (alone, _) = run(&density, &trust(FamilyKind::MeanField, pure));
    assert!(!alone.converged() && !alone.trusted());
}

#[test]
fn newton_without_a_region_converges_where_it_may_and_reports_overflow() {
    let hfsgvi = |density: &dyn Fn(&Settings) -> Fit| {
        density(&Settings {
            method: Method::Hfsgvi(HfsgviSettings::default()),
            family: FamilyChoice::Only(FamilyKind::MeanField),
            ..Settings::default()
        })
    };
    let gaussian = CorrelatedGaussian::exchangeable(&[1.0, 2.0], 0.5);
    let fit = hfsgvi(&|settings| run(&gaussian, settings).0);
    assert!(fit.converged(), "{}", fit.status);
    assert!((fit.elbo() - gaussian.mean_field_elbo()).abs() < 0.1);
    // The scale of the target is a million times the scale of the start, so the first Newton step overshoots the log
    // scale.
    let tiny = CorrelatedGaussian::exchangeable(&[1e6], 0.0);
    let fit = hfsgvi(&|settings| run(&tiny, settings).0);
    assert!(!fit.trusted());
}

#[test]
fn a_chain_of_ten_thousand_coordinates_is_fitted_in_blocks() {
    /// The log density `−½ Σ (zᵢ − zᵢ₋₁/2)²/s²` of an autoregressive chain with z₀ = 0, without constants.
    struct Chain(usize);
    const SCALE: f64 = 0.3;
    impl LogDensity for Chain {
        type Workspace = ();
        fn dim(&self) -> usize {
            self.0
        }
        fn workspace(&self, lanes: usize) {
            assert!(lanes <= 1024 && lanes * self.0 <= 1 << 21);
        }
        fn value(&self, _: &mut (), z: Lanes<'_>, out: &mut [f64]) {
            let constant = (SCALE * (2.0 * std::f64::consts::PI).sqrt()).ln();
            out.fill(-(self.0 as f64) * constant);
            for i in 0..self.0 {
                for (l, out) in out.iter_mut().enumerate() {
                    let before = if i > 0 { z.row(i - 1)[l] } else { 0.0 };
                    let r = (z.row(i)[l] - 0.5 * before) / SCALE;
                    *out -= 0.5 * r * r;
                }
            }
        }
        fn value_grad(&self, ws: &mut (), z: Lanes<'_>, out: &mut [f64], grad: LanesMut<'_>) {
            self.value(ws, z, out);
            self.apply(ws, z, grad);
        }
    }
    impl TwiceDifferentiable for Chain {
        fn linearize(&self, _: &mut (), _: Lanes<'_>) {}
        fn apply(&self, _: &mut (), v: Lanes<'_>, mut out: LanesMut<'_>) {
            let lanes = v.lanes();
            out.as_mut_slice().fill(0.0);
            for i in 0..self.0 {
                for l in 0..lanes {
                    let before = if i > 0 { v.row(i - 1)[l] } else { 0.0 };
                    let r = (v.row(i)[l] - 0.5 * before) / (SCALE * SCALE);
                    out.row_mut(i)[l] -= r;
                    if i > 0 {
                        out.row_mut(i - 1)[l] += 0.5 * r;
                    }
                }
            }
        }
    }
    let dim = 10_000;
    let settings = Settings {
        evaluation_draws: 64,
        ..cold(trust(FamilyKind::MeanField, TrustSettings::default()))
    };
    let (fit, _) = run(&Chain(dim), &settings);
    assert!(fit.converged(), "{}", fit.status);
    // The precisions are 1.25/s², and 1/s² for the last coordinate. The ELBO is half the logarithm of the ratio of the
    // determinants.
    let best = -0.5 * (dim as f64 - 1.0) * 1.25f64.ln();
    let off = fit.elbo() - best;
    assert!(off.abs() < 4.0 + 4.0 * fit.elbo_se(), "{off}");
}
