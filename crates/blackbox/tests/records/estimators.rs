//! Estimators: unbiasedness and the order of the expansion.

use std::sync::Arc;

use jensen_blackbox::Family;
use jensen_blackbox::family::{FullRank, MeanField};
use jensen_blackbox::records::models::{Features, Glm, Link, Sparse, StandardNormal};
use jensen_blackbox::records::{Batches, Gradients, RecordEstimator, Request, Table};
use jensen_density::{AllRecords, Lanes, LanesMut, LogDensity, RecordDensity};

use crate::support::{Opaque, assert_close, hierarchy, logistic, matches, numbers, ppca, softmax};

/// A run's table after some epochs with drifting parameters, made by visits alone.
fn filled<D: RecordDensity>(
    gradients: &mut Gradients<'_, D>,
    estimator: RecordEstimator,
    batches: &Batches,
    omega: &[f64],
) -> Table {
    let mut table = gradients.table(estimator);
    if estimator == RecordEstimator::JointSvrg {
        let d = gradients.family().dim();
        gradients.anchor(&omega[..d], &mut table);
        return table;
    }
    let (rows, draws) = (gradients.family().noise_dim(), gradients.draws());
    let mut noise = Vec::new();
    let mut out = vec![0.0; omega.len()];
    let steps = batches.per_epoch() * 5 / 2;
    for t in 1..=steps as u64 {
        let (epoch, k) = batches.place(t);
        let order = batches.order(epoch);
        gradients.noise(5, t, &mut noise);
        let moved: Vec<f64> = omega.iter().map(|w| w + 0.1 * (t as f64).sin()).collect();
        let request = Request {
            estimator,
            omega: &moved,
            noise: Lanes::new(&noise, rows, draws),
            batch: &order[batches.range(k)],
            visit: true,
        };
        assert!(gradients.evaluate(&request, &table, &mut out));
        let complete = t >= batches.per_epoch() as u64;
        gradients.visit(&request, &mut table, complete);
    }
    table
}

/// The gradient of the bound of the sample average over `noise` and `−noise`, all records, by the
/// density's own derivatives.
fn reference<D: RecordDensity>(
    density: &D,
    family: &dyn Family,
    omega: &[f64],
    noise: Lanes<'_>,
    antithetic: bool,
) -> Vec<f64> {
    let all = AllRecords::new(density);
    let d = density.dim();
    let lanes = noise.lanes();
    let mut out = vec![0.0; omega.len()];
    let signs: &[f64] = if antithetic { &[1.0, -1.0] } else { &[1.0] };
    for sign in signs {
        let noise: Vec<f64> = noise.as_slice().iter().map(|e| sign * e).collect();
        let noise = Lanes::new(&noise, family.noise_dim(), lanes);
        let mut z = vec![0.0; d * lanes];
        family.transform(omega, noise, LanesMut::new(&mut z, d, lanes));
        let (mut values, mut grad) = (vec![0.0; lanes], vec![0.0; d * lanes]);
        let mut ws = all.workspace(lanes);
        let out_grad = LanesMut::new(&mut grad, d, lanes);
        all.value_grad(&mut ws, Lanes::new(&z, d, lanes), &mut values, out_grad);
        family.pull(omega, noise, Lanes::new(&grad, d, lanes), &mut out);
    }
    let scale = 1.0 / (lanes * signs.len()) as f64;
    out.iter_mut().for_each(|g| *g *= scale);
    family.add_entropy_gradient(omega, &mut out);
    out
}

/// With the table frozen, the mean over an epoch (weighted by the sizes of batches) and over ±ε is the
/// full gradient, and the full gradient at ε alone where nothing controls Monte-Carlo noise.
fn check_unbiased<D: RecordDensity>(density: &D, family: Arc<dyn Family>, draws: usize) {
    let batches = Batches::new(4, density.records(), 4).unwrap();
    let omega: Vec<f64> = numbers(30, family.parameters())
        .iter()
        .map(|x| 0.4 * x)
        .collect();
    let rows = family.noise_dim();
    for estimator in RecordEstimator::ALL {
        let mut gradients = Gradients::new(density, family.clone(), draws, 4);
        let table = filled(&mut gradients, estimator, &batches, &omega);
        let mut noise = Vec::new();
        gradients.noise(9, 1000, &mut noise);
        let order = batches.order(17);
        let mut means = Vec::new();
        for sign in [1.0, -1.0] {
            let noise: Vec<f64> = noise.iter().map(|e| sign * e).collect();
            let mut mean = vec![0.0; omega.len()];
            let mut out = vec![0.0; omega.len()];
            for k in 0..batches.per_epoch() {
                let batch = &order[batches.range(k)];
                let request = Request {
                    estimator,
                    omega: &omega,
                    noise: Lanes::new(&noise, rows, draws),
                    batch,
                    visit: false,
                };
                assert!(gradients.evaluate(&request, &table, &mut out));
                let share = batch.len() as f64 / density.records() as f64;
                for (m, g) in mean.iter_mut().zip(&out) {
                    *m += share * g;
                }
            }
            means.push(mean);
        }
        let lanes = Lanes::new(&noise, rows, draws);
        let name = estimator.name();
        if matches!(estimator, RecordEstimator::Naive | RecordEstimator::Inc) {
            let expected = reference(density, &*family, &omega, lanes, false);
            assert_close(&means[0], &expected, 1e-12, name);
        }
        let both: Vec<f64> = means[0]
            .iter()
            .zip(&means[1])
            .map(|(a, b)| 0.5 * (a + b))
            .collect();
        if estimator == RecordEstimator::Stl {
            // The score has mean zero over ±ε in the mean's part; in the others only over all ε. A
            // full-rank factor far from diagonal makes it large, and its rounding with it.
            let d = density.dim();
            let expected = reference(density, &*family, &omega, lanes, true);
            assert_close(&both[..d], &expected[..d], 1e-9, name);
        } else {
            let expected = reference(density, &*family, &omega, lanes, true);
            assert_close(&both, &expected, 1e-12, name);
        }
    }
}

#[test]
fn estimators_are_unbiased() {
    let model = logistic(22, 5);
    check_unbiased(&model, Arc::new(MeanField::new(5)), 1);
    check_unbiased(&model, Arc::new(MeanField::new(5)), 3);
    check_unbiased(&model, Arc::new(FullRank::new(5)), 1);
    check_unbiased(
        &Opaque(logistic(22, 5), true),
        Arc::new(MeanField::new(5)),
        1,
    );
    check_unbiased(&softmax(19), Arc::new(MeanField::new(15)), 1);
    let model = matches(21, 6);
    check_unbiased(&model, Arc::new(MeanField::new(6)), 2);
    check_unbiased(
        &Opaque(matches(21, 6), true),
        Arc::new(MeanField::new(6)),
        1,
    );
    check_unbiased(&hierarchy(18), Arc::new(MeanField::new(40)), 1);
    check_unbiased(&ppca(15), Arc::new(MeanField::new(12)), 1);
    check_unbiased(&ppca(15), Arc::new(FullRank::new(12)), 2);
}

#[test]
fn snapshots_and_predictors_agree() {
    // The same estimates and tables whether a model shows its linear predictor or not.
    let linear = matches(30, 7);
    let models = [Opaque(matches(30, 7), true), Opaque(matches(30, 7), false)];
    let omega: Vec<f64> = numbers(31, 14);
    let batches = Batches::new(8, 30, 7).unwrap();
    for estimator in RecordEstimator::ALL {
        let mut outs = Vec::new();
        let family: Arc<dyn Family> = Arc::new(MeanField::new(7));
        let mut gradients = Gradients::new(&linear, family.clone(), 1, 7);
        outs.push(one_estimate(&mut gradients, estimator, &batches, &omega));
        for model in &models {
            let mut gradients = Gradients::new(model, family.clone(), 1, 7);
            outs.push(one_estimate(&mut gradients, estimator, &batches, &omega));
        }
        assert_close(&outs[0], &outs[1], 1e-12, estimator.name());
        assert_close(&outs[0], &outs[2], 1e-12, estimator.name());
    }
}

fn one_estimate<D: RecordDensity>(
    gradients: &mut Gradients<'_, D>,
    estimator: RecordEstimator,
    batches: &Batches,
    omega: &[f64],
) -> Vec<f64> {
    let table = filled(gradients, estimator, batches, omega);
    let mut noise = Vec::new();
    gradients.noise(2, 77, &mut noise);
    let mut out = vec![0.0; omega.len()];
    let request = Request {
        estimator,
        omega,
        noise: Lanes::new(&noise, omega.len() / 2, 1),
        batch: &batches.order(40)[..7],
        visit: false,
    };
    assert!(gradients.evaluate(&request, &table, &mut out));
    out
}

#[test]
fn the_expansion_is_of_second_order() {
    // Eq. 61 against Eq. 60: with every stored mean at the present one and all records in the batch,
    // joint is E_ε of the expansion at ε = 0, and leaves the mean's gradient an error of second order
    // in ε (the third derivative), in the other estimators one of first order.
    let model = softmax(16);
    let family: Arc<dyn Family> = Arc::new(MeanField::new(15));
    let omega = numbers(33, 30);
    let batch: Vec<u32> = (0..16).collect();
    let mut gradients = Gradients::new(&model, family.clone(), 1, 16);
    let mut noise = Vec::new();
    gradients.noise(2, 1, &mut noise);
    let error = |gradients: &mut Gradients<'_, _>, estimator: RecordEstimator, scale: f64| {
        let mut table = gradients.table(estimator);
        gradients.anchor(&omega[..15], &mut table);
        let noise: Vec<f64> = noise.iter().map(|e| scale * e).collect();
        let request = Request {
            estimator,
            omega: &omega,
            noise: Lanes::new(&noise, 15, 1),
            batch: &batch,
            visit: false,
        };
        let mut out = vec![0.0; 30];
        assert!(gradients.evaluate(&request, &table, &mut out));
        let at_mean = reference(
            &model,
            &*family,
            &omega,
            Lanes::new(&[0.0; 15], 15, 1),
            false,
        );
        let square = |(a, b): (&f64, &f64)| (a - b) * (a - b);
        out[..15]
            .iter()
            .zip(&at_mean[..15])
            .map(square)
            .sum::<f64>()
            .sqrt()
    };
    for estimator in [RecordEstimator::Cv, RecordEstimator::JointSvrg] {
        assert!(error(&mut gradients, estimator, 0.0) < 1e-12);
        let ratio = error(&mut gradients, estimator, 1e-2) / error(&mut gradients, estimator, 5e-3);
        assert!((ratio - 4.0).abs() < 0.1, "{estimator}: {ratio}");
    }
    let naive = RecordEstimator::Naive;
    let ratio = error(&mut gradients, naive, 1e-2) / error(&mut gradients, naive, 5e-3);
    assert!((ratio - 2.0).abs() < 0.1, "naive: {ratio}");
}

#[test]
fn sticking_to_the_landing_at_the_posterior_is_silent() {
    // A model whose posterior is the prior: no records' terms matter when q is the prior.
    let features = Features::Sparse(Sparse::new(2, [vec![], vec![]]).unwrap());
    let model = Glm::new(features, Link::bernoulli(&[true, true]), StandardNormal(2)).unwrap();
    let mut gradients = Gradients::new(&model, Arc::new(MeanField::new(2)), 1, 1);
    let mut noise = Vec::new();
    gradients.noise(3, 4, &mut noise);
    let request = Request {
        estimator: RecordEstimator::Stl,
        omega: &[0.0; 4],
        noise: Lanes::new(&noise, 2, 1),
        batch: &[1],
        visit: false,
    };
    let mut out = [1.0; 4];
    assert!(gradients.evaluate(&request, &gradients.table(RecordEstimator::Stl), &mut out));
    assert_close(&out, &[0.0; 4], 1e-15, "stl");
}
