//! Tests of the generic form of the joint control variate, and of Gaussian dropout.

use jensen_blackbox::records::{
    Batches, DoublyStochastic, Generic, GenericSettings, RecordError, RecordEstimator,
};
use jensen_blackbox::{Optimiser, Rule, Schedule};
use jensen_glm::{Dense, GaussianDropout};
use jensen_math::rng::{Purpose, Stream};
use jensen_run::{Algorithm, Snapshot};

fn numbers(seed: u64, count: usize) -> Vec<f64> {
    let mut stream = Stream::new(seed, Purpose::new("test dropout"), 0, 0);
    (0..count).map(|_| 2.0 * stream.uniform() - 1.0).collect()
}

/// A number of columns that exceeds the lanes of a vector and is not a multiple of them.
const COLUMNS: usize = 11;
const CLASSES: usize = 3;
const SD: f64 = 0.6;

fn dropout(records: usize) -> GaussianDropout {
    let features = Dense::new(numbers(1, records * COLUMNS), COLUMNS).unwrap();
    let labels = (0..records as u32).map(|n| n * 5 % 3).collect();
    GaussianDropout::new(features, labels, CLASSES, SD).unwrap()
}

fn loss(records: usize, w: &[f64], n: usize, noise: &[f64]) -> f64 {
    let x = &numbers(1, records * COLUMNS)[n * COLUMNS..][..COLUMNS];
    let eta: Vec<f64> = w
        .chunks(COLUMNS)
        .map(|w| {
            let terms = w.iter().zip(x).zip(noise);
            terms.map(|((w, x), e)| w * x * (1.0 + SD * e)).sum()
        })
        .collect();
    let normaliser = eta.iter().map(|x: &f64| x.exp()).sum::<f64>().ln();
    normaliser - eta[n * 5 % 3]
}

/// Computes the second-order expansion of `loss` around ε = 0 by differences in ε, and the expectation of this
/// expansion.
fn expansion(records: usize, w: &[f64], n: usize, noise: &[f64]) -> (f64, f64) {
    let h = 1e-3;
    let at = |e: &[f64]| loss(records, w, n, e);
    let zero = vec![0.0; COLUMNS];
    let moved = |i: usize, a: f64, j: usize, b: f64| {
        let mut e = zero.clone();
        e[i] += a;
        e[j] += b;
        at(&e)
    };
    let base = at(&zero);
    let (mut value, mut expected) = (base, base);
    for i in 0..COLUMNS {
        value += noise[i] * (moved(i, h, i, 0.0) - moved(i, -h, i, 0.0)) / (2.0 * h);
        for j in 0..COLUMNS {
            let second = if i == j {
                (moved(i, h, i, 0.0) - 2.0 * base + moved(i, -h, i, 0.0)) / (h * h)
            } else {
                (moved(i, h, j, h) - moved(i, h, j, -h) - moved(i, -h, j, h) + moved(i, -h, j, -h))
                    / (4.0 * h * h)
            };
            value += 0.5 * noise[i] * noise[j] * second;
            expected += if i == j { 0.5 * second } else { 0.0 };
        }
    }
    (value, expected)
}

fn derivative(f: impl Fn(&[f64]) -> f64, w: &[f64], i: usize) -> f64 {
    let h = 1e-3;
    let at = |t: f64| {
        let mut w = w.to_vec();
        w[i] += t;
        f(&w)
    };
    (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h)
}

#[test]
fn gradients_of_dropout_and_its_expansion_agree_with_differences() {
    let objective = dropout(5);
    let w = numbers(2, CLASSES * COLUMNS);
    let noise = numbers(3, COLUMNS);
    for n in 0..5 {
        let mut gradient = vec![0.0; w.len()];
        let value = objective.add_gradient(&w, &[n], &noise, 1.0, &mut gradient);
        assert!((value - loss(5, &w, n as usize, &noise)).abs() < 1e-12);
        let (mut at_noise, mut expected) = (vec![0.0; w.len()], vec![0.0; w.len()]);
        objective.add_surrogate(&w, &[n], &noise, 1.0, &mut at_noise, &mut expected);
        for i in 0..w.len() {
            let n = n as usize;
            let exact = derivative(|w| loss(5, w, n, &noise), &w, i);
            assert!(
                (gradient[i] - exact).abs() < 1e-9,
                "{} {exact}",
                gradient[i]
            );
            let exact = derivative(|w| expansion(5, w, n, &noise).0, &w, i);
            assert!(
                (at_noise[i] - exact).abs() < 1e-5,
                "{} {exact}",
                at_noise[i]
            );
            let exact = derivative(|w| expansion(5, w, n, &noise).1, &w, i);
            assert!(
                (expected[i] - exact).abs() < 1e-5,
                "{} {exact}",
                expected[i]
            );
        }
    }
}

fn settings(estimator: RecordEstimator) -> GenericSettings {
    GenericSettings {
        estimator,
        optimiser: Optimiser {
            rule: Rule::Sgd,
            step_size: 0.1,
            schedule: Schedule::Constant,
        },
        batch: 4,
        warm_up: 1,
        memory_limit: None,
    }
}

/// An objective that is linear in ε. The expansion is therefore exact, and the joint estimator has no noise if its
/// table is at w.
struct Quadratic;

impl DoublyStochastic for Quadratic {
    fn parameters(&self) -> usize {
        1
    }
    fn records(&self) -> usize {
        8
    }
    fn noise_dim(&self) -> usize {
        1
    }
    fn add_gradient(
        &self,
        w: &[f64],
        batch: &[u32],
        noise: &[f64],
        scale: f64,
        out: &mut [f64],
    ) -> f64 {
        let residuals = batch
            .iter()
            .zip(noise)
            .map(|(&n, e)| w[0] - f64::from(n) - e);
        residuals
            .map(|r| {
                out[0] += scale * r;
                0.5 * r * r
            })
            .sum()
    }
    fn add_surrogate(
        &self,
        w: &[f64],
        batch: &[u32],
        noise: &[f64],
        scale: f64,
        at_noise: &mut [f64],
        expected: &mut [f64],
    ) {
        for (&n, e) in batch.iter().zip(noise) {
            at_noise[0] += scale * (w[0] - f64::from(n) - e);
            expected[0] += scale * (w[0] - f64::from(n));
        }
    }
}

#[test]
fn joint_converges_to_the_last_digit_where_the_expansion_is_exact() {
    // The optimum is 3.5. With a constant step size, the estimators naive and cv retain the noise of their batches.
    let end = |estimator| {
        let mut run = Generic::new(&Quadratic, 5, settings(estimator), vec![10.0]).unwrap();
        let mut state = run.init().unwrap();
        let mut worst = 0.0f64;
        for t in 1..=2000 {
            drop(run.step(&mut state, t));
            if t > 1900 {
                worst = worst.max((state.w()[0] - 3.5).abs());
            }
        }
        worst
    };
    assert!(end(RecordEstimator::Joint) < 1e-12);
    assert!(end(RecordEstimator::JointSvrg) < 1e-12);
    assert!(end(RecordEstimator::Naive) > 0.05);
    assert!(end(RecordEstimator::Cv) > 0.01);
}

#[test]
fn joint_reaches_a_lower_loss_than_naive_at_a_large_step() {
    let objective = dropout(60);
    let end = |estimator| {
        let settings = GenericSettings {
            optimiser: Optimiser {
                rule: Rule::Sgd,
                step_size: 1.0,
                schedule: Schedule::Constant,
            },
            ..settings(estimator)
        };
        let start = vec![0.0; CLASSES * COLUMNS];
        let mut run = Generic::new(&objective, 5, settings, start).unwrap();
        let mut state = run.init().unwrap();
        let mut spread = 0.0;
        let mut centre = vec![0.0; CLASSES * COLUMNS];
        let mut iterates = Vec::new();
        for t in 1..=3000 {
            drop(run.step(&mut state, t));
            if t > 2000 {
                iterates.push(state.w().to_vec());
            }
        }
        for w in &iterates {
            centre.iter_mut().zip(w).for_each(|(c, w)| *c += w / 1000.0);
        }
        for w in &iterates {
            spread += w
                .iter()
                .zip(&centre)
                .map(|(w, c)| (w - c) * (w - c))
                .sum::<f64>();
        }
        spread
    };
    let (naive, joint) = (end(RecordEstimator::Naive), end(RecordEstimator::Joint));
    assert!(joint < 0.5 * naive, "{joint} {naive}");
}

#[test]
fn runs_can_be_stored_at_any_iteration() {
    let objective = dropout(22);
    let batches = Batches::new(5, 22, 4).unwrap();
    for estimator in [
        RecordEstimator::Naive,
        RecordEstimator::Cv,
        RecordEstimator::Joint,
        RecordEstimator::JointSvrg,
    ] {
        let start = vec![0.1; CLASSES * COLUMNS];
        let make = || Generic::new(&objective, 5, settings(estimator), start.clone()).unwrap();
        let mut run = make();
        let mut state = run.init().unwrap();
        let stop = 2 * batches.per_epoch() as u64 + 3;
        (1..=stop).for_each(|t| drop(run.step(&mut state, t)));
        let mut other = make();
        let mut stored = Snapshot::restore(&state.save()).unwrap();
        for t in stop + 1..=stop + 20 {
            drop(run.step(&mut state, t));
            drop(other.step(&mut stored, t));
        }
        assert_eq!(state, stored, "{estimator}");
    }
}

#[test]
fn wrong_requests_are_refused() {
    let objective = dropout(22);
    let refused = |settings| {
        let start = vec![0.0; CLASSES * COLUMNS];
        Generic::new(&objective, 5, settings, start).err().unwrap()
    };
    let error = refused(settings(RecordEstimator::Inc)).to_string();
    assert!(
        error.contains("`inc`") && error.contains("joint"),
        "{error}"
    );
    let error = refused(GenericSettings {
        memory_limit: Some(1500),
        ..settings(RecordEstimator::Joint)
    });
    assert!(matches!(error, RecordError::Memory { svrg: Some(_), .. }));
    let error = refused(GenericSettings {
        batch: 23,
        ..settings(RecordEstimator::Naive)
    });
    assert_eq!(
        error,
        RecordError::Batch {
            batch: 23,
            records: 22
        }
    );
}
