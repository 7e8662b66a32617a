//! Tests of runs: resumption, optima, and inputs that are refused.

use std::sync::Arc;

use jensen_blackbox::family::MeanField;
use jensen_blackbox::minibatches::{
    Judge, Minibatch, MinibatchSettings, MinibatchState, Smiso, SmisoSettings,
};
use jensen_blackbox::records::{RecordError, RecordEstimator, VarianceSettings};
use jensen_blackbox::{
    Family, MethodState as _, NoisePurpose, NoiseSource, Optimiser, Oracle, Schedule,
};
use jensen_density::{AllRecords, Lanes, RecordDensity};
use jensen_glm::{Features, Glm, Link, Sparse, StandardNormal};
use jensen_math::simd::Simd;
use jensen_run::{Algorithm, Budget, Checkpoint, Control, Record, Snapshot};

use super::support::{
    assert_close, australian, identity, logistic, matches, numbers, optimum, ppca, settings,
};

fn run<A: Algorithm<Output = Vec<f64>>>(
    algorithm: &mut A,
    iterations: u64,
    resume: Option<&[u8]>,
) -> (Vec<f64>, Vec<Record>, Vec<u8>) {
    let clock = || 0.0;
    let (mut records, mut store) = (Vec::<Record>::new(), Vec::<Vec<u8>>::new());
    let mut control = Control::new(Budget::iterations(iterations), &clock, &mut records);
    control.store = Some(&mut store);
    control.resume = resume.map(|bytes| Checkpoint::decode(bytes).unwrap());
    let outcome = jensen_run::run(algorithm, &identity(), &mut control).unwrap();
    (outcome.output.unwrap(), records, store.pop().unwrap())
}

fn check_resume<A: Algorithm<Output = Vec<f64>>>(make: impl Fn() -> A + Sync, name: &str) {
    let (whole, trace, _) = run(&mut make(), 29, None);
    // Iteration 13 falls within the third epoch, because an epoch has six iterations.
    let (_, first, checkpoint) = run(&mut make(), 13, None);
    let (resumed, second, _) = run(&mut make(), 29, Some(&checkpoint));
    assert_eq!(whole, resumed, "{name}");
    assert!(first.iter().zip(&trace).all(|(a, b)| a.same_result(b)));
    assert!(
        second
            .iter()
            .zip(&trace[13..])
            .all(|(a, b)| a.same_result(b))
    );
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(3)
        .build()
        .unwrap();
    let (threaded, ..) = pool.install(|| {
        let (output, records, _) = run(&mut make(), 29, None);
        (output, records)
    });
    assert_eq!(whole, threaded, "{name}");
}

#[test]
fn runs_resume_within_an_epoch_to_the_same_bits() {
    let (linear, other) = (logistic(22, 5), ppca(22));
    for estimator in RecordEstimator::ALL {
        let variance = Some(VarianceSettings {
            every: 9,
            samples: 3,
        });
        let judge = Some(Judge {
            window: Some(5),
            draws: 4,
            ..Judge::default()
        });
        let settings = MinibatchSettings {
            variance,
            judge,
            ..settings(estimator)
        };
        let make = || {
            let family = Arc::new(MeanField::new(5));
            Minibatch::new(&linear, family, 3, settings, vec![-0.5; 10]).unwrap()
        };
        check_resume(make, estimator.name());
        if estimator == RecordEstimator::JointExact {
            continue;
        }
        let settings = MinibatchSettings {
            judge: None,
            ..settings
        };
        let make = || {
            let family = Arc::new(MeanField::new(12));
            Minibatch::new(&other, family, 3, settings, numbers(7, 24)).unwrap()
        };
        check_resume(make, estimator.name());
    }
    for momentum in [0.0, 0.5] {
        let make = || {
            let settings = SmisoSettings {
                alpha: 0.9,
                gamma: Some(1e-3),
                momentum,
                batch: 4,
                draws: 1,
                memory_limit: None,
            };
            let family = Arc::new(MeanField::new(5));
            Smiso::new(&linear, family, 3, settings, vec![-0.5; 10]).unwrap()
        };
        check_resume(make, "smiso");
    }
}

#[test]
fn every_optimiser_reaches_the_optimum() {
    let model = logistic(60, 4);
    let best = optimum(&model);
    for (rule, step_size) in [
        ("sgd", 4e-3),
        ("adam", 0.03),
        ("adagrad", 0.3),
        ("rmsprop", 0.01),
    ] {
        for estimator in [
            RecordEstimator::Joint,
            RecordEstimator::JointSvrg,
            RecordEstimator::JointExact,
        ] {
            let settings = MinibatchSettings {
                optimiser: Optimiser {
                    rule: rule.parse().unwrap(),
                    step_size,
                    schedule: Schedule::Constant,
                },
                judge: Some(Judge::default()),
                ..settings(estimator)
            };
            let family = Arc::new(MeanField::new(4));
            let mut fit = Minibatch::new(&model, family, 1, settings, vec![0.5; 8]).unwrap();
            let clock = || 0.0;
            let mut silent = jensen_run::Silent;
            let mut control = Control::new(Budget::iterations(60_000), &clock, &mut silent);
            let outcome = jensen_run::run(&mut fit, &identity(), &mut control).unwrap();
            assert!(
                outcome.status.is_converged(),
                "{rule} {estimator}: {}",
                outcome.status
            );
            let omega = outcome.output.unwrap();
            for (a, b) in omega.iter().zip(&best) {
                assert!(
                    (a - b).abs() < 0.15,
                    "{rule} {estimator}: {omega:?} {best:?}"
                );
            }
        }
    }
}

#[test]
fn smiso_reaches_the_optimum_and_keeps_the_mean_of_its_entries() {
    let model = logistic(60, 4);
    let best = optimum(&model);
    // The step size is given, or it is derived from the curvature.
    for (gamma, momentum) in [(Some(5e-3), 0.0), (None, 0.0), (Some(1e-3), 0.9)] {
        let settings = SmisoSettings {
            alpha: 0.5,
            gamma,
            momentum,
            batch: 4,
            draws: 1,
            memory_limit: None,
        };
        let family = Arc::new(MeanField::new(4));
        let mut smiso = Smiso::new(&model, family, 1, settings, vec![0.0; 8]).unwrap();
        let mut state = smiso.init().unwrap();
        let mut average = [0.0; 8];
        for t in 1..=30_000 {
            smiso.step(&mut state, t);
            if t > 15_000 {
                for (a, w) in average.iter_mut().zip(state.omega()) {
                    *a += w / 15_000.0;
                }
            }
        }
        for (a, b) in average.iter().zip(&best) {
            let near = (a - b).abs() < 0.1;
            assert!(near, "{gamma:?} {momentum}: {average:?} {best:?}");
        }
        let saved = state.save();
        let [entries, translation] = ["entries", "translation"].map(|k| saved.vec(k).unwrap());
        let mean: Vec<f64> = (0..8)
            .map(|i| translation[i] + entries.chunks(8).map(|e| e[i]).sum::<f64>() / 15.0)
            .collect();
        assert_close(state.omega(), &mean, 1e-10, "entries");
    }
}

#[test]
fn a_draw_without_gradient_is_skipped() {
    // The weight is so large that the predictors overflow in some iterations but not in others.
    let model = ppca(8);
    let family = Arc::new(MeanField::new(12));
    let mut start = numbers(7, 24);
    start[..12].iter_mut().for_each(|m| *m = f64::MAX.sqrt());
    let mut fit =
        Minibatch::new(&model, family, 3, settings(RecordEstimator::Joint), start).unwrap();
    let clock = || 0.0;
    let mut records = Vec::<Record>::new();
    let mut control = Control::new(Budget::iterations(500), &clock, &mut records);
    let outcome = jensen_run::run(&mut fit, &identity(), &mut control).unwrap();
    assert_eq!(outcome.status.name(), "diverged", "{}", outcome.status);
    assert_eq!(outcome.iterations, 100);
    assert!(records.iter().all(|r| r.fields.contains_key("rejected")));
}

fn refusal(settings: MinibatchSettings) -> String {
    let model = ppca(40);
    let family = Arc::new(MeanField::new(12));
    match Minibatch::new(&model, family, 0, settings, vec![0.0; 24]) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_cannot_work_is_refused_with_the_way_out() {
    let joint = settings(RecordEstimator::Joint);
    assert_eq!(refusal(joint), "");
    let text = refusal(MinibatchSettings { batch: 41, ..joint });
    assert!(text.contains("41") && text.contains("40"), "{text}");
    assert!(refusal(MinibatchSettings { batch: 0, ..joint }).contains("at least 1"));
    let text = refusal(MinibatchSettings {
        memory_limit: Some(4000),
        ..joint
    });
    assert!(
        text.contains("joint-svrg") && text.contains("KiB"),
        "{text}"
    );
    assert!(
        refusal(MinibatchSettings {
            warm_up: 0,
            ..joint
        })
        .contains("warm-up")
    );
    assert!(refusal(MinibatchSettings { draws: 0, ..joint }).contains("at least 1"));
    let text = refusal(settings(RecordEstimator::JointExact));
    assert!(text.contains("one linear predictor") && text.contains("choose `joint`"));
    let text = refusal(settings(RecordEstimator::Ens { beta: 2.0 }));
    assert!(text.contains("from 0 to 1"), "{text}");

    let large = matches(10_001, 5);
    let family: Arc<dyn Family> = Arc::new(MeanField::new(5));
    let inc = settings(RecordEstimator::Inc);
    let error = Minibatch::new(&large, family.clone(), 0, inc, vec![0.0; 10])
        .err()
        .unwrap();
    assert!(matches!(error, RecordError::TooManyRecords { .. }));
    assert!(error.to_string().contains("`joint`"));
    // Linear predictors need no snapshots, so the same memory limit suffices for many more records.
    let limited = MinibatchSettings {
        memory_limit: Some(400_000),
        ..joint
    };
    assert!(Minibatch::new(&large, family, 0, limited, vec![0.0; 10]).is_ok());
    let none = Features::Sparse(Sparse::new(2, Vec::<Vec<(u32, f64)>>::new()).unwrap());
    let none = Glm::new(none, Link::bernoulli(&[]), StandardNormal(2)).unwrap();
    let family = Arc::new(MeanField::new(2));
    let error = Minibatch::new(&none, family, 0, joint, vec![0.0; 4])
        .err()
        .unwrap();
    assert_eq!(error, RecordError::NoRecords);
}

#[test]
fn states_are_stored_to_the_bit() {
    let model = ppca(22);
    let family = Arc::new(MeanField::new(12));
    let settings = settings(RecordEstimator::Joint);
    let mut fit = Minibatch::new(&model, family, 3, settings, numbers(7, 24)).unwrap();
    let mut state = fit.init().unwrap();
    (1..=20).for_each(|t| drop(fit.step(&mut state, t)));
    assert!(state.table().live_slots() > 6);
    assert!(state.table().live_slots() <= 11);
    assert_eq!(MinibatchState::restore(&state.save()).unwrap(), state);
}

fn bound<D: RecordDensity>(density: &D, omega: &[f64]) -> f64 {
    let all = AllRecords::new(density);
    let d = density.dim();
    let mut oracle = Oracle::new(&all, Arc::new(MeanField::new(d)));
    let draws = 2000;
    let mut noise = vec![0.0; d * draws];
    NoiseSource::new(8, Simd::detect()).fill(NoisePurpose::Final, 0, 0, d, draws, &mut noise);
    let weights = oracle.log_weights(omega, Lanes::new(&noise, d, draws));
    weights.iter().sum::<f64>() / draws as f64
}

#[test]
fn joint_needs_a_tenth_of_the_iterations_of_naive() {
    // Each estimator is run with the best of its step sizes, as in Figure 3 of the paper.
    let model = australian();
    let iterations = 13_800;
    let mut start = vec![0.0; 28];
    NoiseSource::new(4, Simd::detect()).fill(NoisePurpose::Start, 0, 0, 28, 1, &mut start);
    let best = |estimator, iterations, steps: &[f64]| {
        let bounds = steps.iter().map(|&step_size| {
            let settings = MinibatchSettings {
                estimator,
                optimiser: Optimiser {
                    rule: "sgd".parse().unwrap(),
                    step_size,
                    schedule: Schedule::Constant,
                },
                batch: 5,
                judge: None,
                ..MinibatchSettings::default()
            };
            let family = Arc::new(MeanField::new(14));
            let mut fit = Minibatch::new(&model, family, 2, settings, start.clone()).unwrap();
            let mut state = fit.init().unwrap();
            for t in 1..=iterations {
                let status = fit.step(&mut state, t).status;
                if status.is_some() {
                    return f64::NEG_INFINITY;
                }
            }
            bound(&model, state.iterate())
        });
        bounds
            .filter(|b| b.is_finite())
            .fold(f64::NEG_INFINITY, f64::max)
    };
    let steps = [5e-3, 2.5e-3, 1e-3, 5e-4, 2.5e-4, 1e-4];
    let naive = best(RecordEstimator::Naive, iterations, &steps);
    for estimator in [RecordEstimator::Joint, RecordEstimator::JointExact] {
        let joint = best(estimator, iterations / 10, &steps);
        assert!(joint > naive, "{estimator} {joint} {naive}");
    }
}
