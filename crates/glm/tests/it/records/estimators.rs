//! Tests of the bias of estimators, and of the order of their expansion.

use std::sync::Arc;

use jensen_blackbox::Family;
use jensen_blackbox::family::{FullRank, MeanField};
use jensen_blackbox::records::{Batches, GradientRequest, Gradients, RecordEstimator, Table};
use jensen_density::{
    AllRecords, Lanes, LanesMut, LinearPredictor, LogDensity, PredictorScratch, RecordDensity,
};
use jensen_glm::{Features, Glm, Link, Sparse, StandardNormal};

use super::support::{Opaque, assert_close, hierarchy, logistic, matches, numbers, ppca, softmax};

/// Returns the table after some epochs of a run with drifting parameters. Only visits fill the table.
fn filled<D: RecordDensity>(
    gradients: &mut Gradients<'_, D>,
    estimator: RecordEstimator,
    batches: &Batches,
    omega: &[f64],
) -> Table {
    let mut tables = filled_in_turn(gradients, &[estimator], batches, omega);
    tables.pop().unwrap()
}

fn filled_in_turn<D: RecordDensity>(
    gradients: &mut Gradients<'_, D>,
    estimators: &[RecordEstimator],
    batches: &Batches,
    omega: &[f64],
) -> Vec<Table> {
    let d = gradients.family().dim();
    let mut tables: Vec<Table> = estimators.iter().map(|e| gradients.table(*e)).collect();
    let (rows, draws) = (gradients.family().noise_dim(), gradients.draws());
    let mut noise = Vec::new();
    let mut out = vec![0.0; omega.len()];
    let steps = batches.per_epoch() * 5 / 2;
    for t in 1..=steps as u64 {
        let (epoch, k) = batches.position(t);
        let order = batches.order(epoch);
        gradients.noise(5, t, &mut noise);
        let moved: Vec<f64> = omega.iter().map(|w| w + 0.1 * (t as f64).sin()).collect();
        for (&estimator, table) in estimators.iter().zip(&mut tables) {
            if estimator == RecordEstimator::JointSvrg {
                gradients.anchor(&omega[..d], table);
                continue;
            }
            let request = GradientRequest {
                estimator,
                omega: &moved,
                noise: Lanes::new(&noise, rows, draws),
                batch: &order[batches.range(k)],
                visit: true,
            };
            assert!(gradients.evaluate(&request, table, &mut out));
            let complete = t >= batches.per_epoch() as u64;
            gradients.visit(&request, table, complete);
        }
    }
    tables
}

/// Returns patterns of signs under which every coordinate has mean zero and variance one, and no two coordinates are
/// correlated. The signs are Walsh functions other than the constant one, and every pattern also occurs with opposite
/// signs. The mean over the patterns equals the expectation for a second-order expansion and for an odd function.
fn patterns(coordinates: usize) -> Vec<Vec<f64>> {
    let count = (coordinates + 1).next_power_of_two();
    let sign = |pattern: usize, coordinate: usize| {
        let odd = (pattern & (coordinate + 1)).count_ones() % 2 == 1;
        if odd { -1.0 } else { 1.0 }
    };
    let signed =
        |pattern: usize, side: f64| (0..coordinates).map(|c| side * sign(pattern, c)).collect();
    (0..count)
        .flat_map(|pattern| [signed(pattern, 1.0), signed(pattern, -1.0)])
        .collect()
}

/// Computes the gradient of the bound from the derivatives of the density, averaged over draws and all records.
fn reference<D: RecordDensity>(
    density: &D,
    family: &dyn Family,
    omega: &[f64],
    noise: Lanes<'_>,
) -> Vec<f64> {
    let all = AllRecords::new(density);
    let d = density.dim();
    let lanes = noise.lanes();
    let mut out = vec![0.0; omega.len()];
    let mut z = vec![0.0; d * lanes];
    family.transform(omega, noise, LanesMut::new(&mut z, d, lanes));
    let (mut values, mut grad) = (vec![0.0; lanes], vec![0.0; d * lanes]);
    let mut ws = all.workspace(lanes);
    let out_grad = LanesMut::new(&mut grad, d, lanes);
    all.value_grad(&mut ws, Lanes::new(&z, d, lanes), &mut values, out_grad);
    family.pull(omega, noise, Lanes::new(&grad, d, lanes), &mut out);
    let scale = 1.0 / lanes as f64;
    out.iter_mut().for_each(|g| *g *= scale);
    family.add_entropy_gradient(omega, &mut out);
    out
}

fn average(vectors: impl ExactSizeIterator<Item = Vec<f64>>) -> Vec<f64> {
    let scale = 1.0 / vectors.len() as f64;
    let sum = vectors.reduce(|a, b| a.iter().zip(b).map(|(a, b)| a + b).collect());
    sum.unwrap().iter().map(|x| x * scale).collect()
}

/// Checks that with a frozen table, the mean over an epoch (weighted by batch size) and over patterns of signs is the
/// full gradient. If no control variate reduces the Monte-Carlo noise, this is true at any ε.
fn check_unbiased<D: RecordDensity>(density: &D, family: Arc<dyn Family>, draws: usize) {
    check_unbiased_in(density, family, draws, 4);
}

fn check_unbiased_in<D: RecordDensity>(
    density: &D,
    family: Arc<dyn Family>,
    draws: usize,
    batch: usize,
) {
    let batches = Batches::new(4, density.records(), batch).unwrap();
    let omega: Vec<f64> = numbers(30, family.parameters())
        .iter()
        .map(|x| 0.4 * x)
        .collect();
    let rows = family.noise_dim();
    for estimator in RecordEstimator::ALL {
        if estimator == RecordEstimator::JointExact {
            // This estimator draws nothing for the likelihood, so there are no draws to average over.
            continue;
        }
        let mut gradients = Gradients::new(density, family.clone(), draws, batch);
        let table = filled(&mut gradients, estimator, &batches, &omega);
        let order = batches.order(17);
        let mut epoch = |noise: &[f64]| {
            let mut mean = vec![0.0; omega.len()];
            let mut out = vec![0.0; omega.len()];
            for k in 0..batches.per_epoch() {
                let batch = &order[batches.range(k)];
                let request = GradientRequest {
                    estimator,
                    omega: &omega,
                    noise: Lanes::new(noise, rows, draws),
                    batch,
                    visit: false,
                };
                assert!(gradients.evaluate(&request, &table, &mut out));
                let share = batch.len() as f64 / density.records() as f64;
                for (m, g) in mean.iter_mut().zip(&out) {
                    *m += share * g;
                }
            }
            mean
        };
        let full = |noise: &[f64]| {
            let lanes = Lanes::new(noise, rows, draws);
            reference(density, &*family, &omega, lanes)
        };
        let name = estimator.name();
        if matches!(estimator, RecordEstimator::Naive | RecordEstimator::Inc) {
            let noise = numbers(9, rows * draws);
            assert_close(&epoch(&noise), &full(&noise), 1e-12, name);
        }
        let patterns = patterns(rows * draws);
        let mean = average(patterns.iter().map(|noise| epoch(noise)));
        let expected = average(patterns.iter().map(|noise| full(noise)));
        if estimator == RecordEstimator::Stl {
            // In the gradient of the mean, the score has mean zero over the patterns. In the other parts it has mean
            // zero only over all ε. If a full-rank factor is far from diagonal, the score is large, and so is its
            // rounding error.
            let d = density.dim();
            assert_close(&mean[..d], &expected[..d], 1e-9, name);
        } else {
            assert_close(&mean, &expected, 1e-12, name);
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
fn records_without_features_change_nothing() {
    // Every other batch involves no coordinate.
    let row = |n: u32| {
        if n.is_multiple_of(2) {
            vec![]
        } else {
            vec![(n % 5, 1.0)]
        }
    };
    let features = Features::Sparse(Sparse::new(5, (0..14).map(row)).unwrap());
    let outcomes: Vec<bool> = (0..14).map(|n| n % 3 == 0).collect();
    let prior = StandardNormal(5);
    let model = Glm::new(features, Link::bernoulli(&outcomes), prior).unwrap();
    check_unbiased_in(&model, Arc::new(MeanField::new(5)), 1, 1);
}

#[test]
fn snapshots_and_predictors_agree() {
    // Estimates and tables do not depend on whether a model exposes its linear predictor. Only the scale gradient of
    // the joint estimators needs the predictor.
    let linear = matches(30, 7);
    let models = [Opaque(matches(30, 7), true), Opaque(matches(30, 7), false)];
    let omega: Vec<f64> = numbers(31, 14);
    let batches = Batches::new(8, 30, 7).unwrap();
    for estimator in RecordEstimator::ALL {
        // The two forms of `joint-svrg` differ at third order in the draw.
        if matches!(
            estimator,
            RecordEstimator::JointExact | RecordEstimator::JointSvrg
        ) {
            continue;
        }
        let mut outs = Vec::new();
        let family: Arc<dyn Family> = Arc::new(MeanField::new(7));
        let mut gradients = Gradients::new(&linear, family.clone(), 1, 7);
        outs.push(one_estimate(&mut gradients, estimator, &batches, &omega));
        for model in &models {
            let mut gradients = Gradients::new(model, family.clone(), 1, 7);
            outs.push(one_estimate(&mut gradients, estimator, &batches, &omega));
        }
        let same = if estimator == RecordEstimator::Joint {
            7
        } else {
            14
        };
        for other in &outs[1..] {
            assert_close(&outs[0][..same], &other[..same], 1e-12, estimator.name());
        }
        assert_close(&outs[1], &outs[2], 1e-12, estimator.name());
    }
}

#[test]
fn the_mean_alone_is_controlled_by_joint_mean() {
    let omega: Vec<f64> = numbers(31, 14);
    let batches = Batches::new(8, 30, 7).unwrap();
    let family: Arc<dyn Family> = Arc::new(MeanField::new(7));
    let model = Opaque(matches(30, 7), false);
    let of = |estimator| {
        let mut gradients = Gradients::new(&model, family.clone(), 1, 7);
        one_estimate(&mut gradients, estimator, &batches, &omega)
    };
    let [naive, joint, mean] = [
        RecordEstimator::Naive,
        RecordEstimator::Joint,
        RecordEstimator::JointMean,
    ]
    .map(of);
    assert_close(&mean[..7], &joint[..7], 1e-12, "the mean");
    assert_close(&mean[7..], &naive[7..], 1e-12, "the spread");
    assert!(
        joint[7..]
            .iter()
            .zip(&naive[7..])
            .any(|(a, b)| (a - b).abs() > 1e-3)
    );
}

#[test]
fn as_printed_differs_from_joint_mean_by_what_is_stored() {
    let omega: Vec<f64> = numbers(31, 14);
    let batches = Batches::new(8, 30, 7).unwrap();
    let family: Arc<dyn Family> = Arc::new(MeanField::new(7));
    for model in [logistic(30, 7), matches(30, 7)] {
        let estimate = |estimator: RecordEstimator, drift: f64| {
            let mut gradients = Gradients::new(&model, family.clone(), 1, 7);
            let mut table = gradients.table(estimator);
            let (mut noise, mut out) = (Vec::new(), vec![0.0; 14]);
            for t in 1..=2 * batches.per_epoch() as u64 {
                let (epoch, k) = batches.position(t);
                let order = batches.order(epoch);
                gradients.noise(5, t, &mut noise);
                let shift = drift * (t as f64).sin();
                let moved: Vec<f64> = omega.iter().map(|w| w + shift).collect();
                let request = GradientRequest {
                    estimator,
                    omega: &moved,
                    noise: Lanes::new(&noise, 7, 1),
                    batch: &order[batches.range(k)],
                    visit: true,
                };
                assert!(gradients.evaluate(&request, &table, &mut out));
                gradients.visit(&request, &mut table, t >= batches.per_epoch() as u64);
            }
            out
        };
        let [paper, mean, naive] = [
            RecordEstimator::JointPaper,
            RecordEstimator::JointMean,
            RecordEstimator::Naive,
        ]
        .map(|estimator| [0.0, 0.1].map(|drift| estimate(estimator, drift)));
        // Before any change, the stored mean and scale are the current ones, and the entries of the prior are its
        // gradient.
        assert_close(&paper[0], &mean[0], 1e-10, "at rest");
        assert_close(&paper[1][7..], &naive[1][7..], 1e-12, "the spread");
        let apart = paper[1].iter().zip(&mean[1]).map(|(a, b)| (a - b).abs());
        assert!(apart.fold(0.0, f64::max) > 1e-3);
    }
}

#[test]
fn estimators_in_turn_do_not_disturb_each_other() {
    let estimators = [RecordEstimator::Joint, RecordEstimator::JointExact];
    for model in [logistic(30, 7), matches(30, 7)] {
        let family: Arc<dyn Family> = Arc::new(MeanField::new(7));
        let batches = Batches::new(8, 30, 4).unwrap();
        let omega: Vec<f64> = numbers(31, 14);
        let mut gradients = Gradients::new(&model, family.clone(), 1, 4);
        let together = filled_in_turn(&mut gradients, &estimators, &batches, &omega);
        for (estimator, table) in estimators.into_iter().zip(together) {
            let mut gradients = Gradients::new(&model, family.clone(), 1, 4);
            let alone = filled(&mut gradients, estimator, &batches, &omega);
            assert_eq!(table, alone, "{estimator}");
        }
    }
}

/// Computes the full gradient of the bound for a prior of standard normal coefficients. The part of the likelihood
/// comes from integrals over the predictor of each record by the trapezoidal rule. The part of the prior has a closed
/// form.
fn integrated(model: &Glm<StandardNormal>, omega: &[f64]) -> Vec<f64> {
    let d = model.dim();
    let n = model.records();
    let batch: Vec<u32> = (0..n as u32).collect();
    let (mean, log_sd) = omega.split_at(d);
    // The rows of A are the products of A with unit vectors.
    let mut rows = vec![0.0; n * d];
    let mut unit = vec![0.0; d];
    let mut column = vec![0.0; n];
    for i in 0..d {
        unit[i] = 1.0;
        let z = Lanes::new(&unit, d, 1);
        let out = LanesMut::new(&mut column, n, 1);
        model.project(&mut PredictorScratch::default(), &batch, z, out);
        unit[i] = 0.0;
        (0..n).for_each(|b| rows[b * d + i] = column[b]);
    }
    let mut out = vec![0.0; 2 * d];
    for (b, row) in batch.iter().zip(rows.chunks_exact(d)) {
        let m: f64 = row.iter().zip(mean).map(|(x, m)| x * m).sum();
        let terms = row.iter().zip(log_sd);
        let v: f64 = terms.map(|(x, l)| x * x * (2.0 * l).exp()).sum();
        let (mut gradient, mut curvature, mut total) = (0.0, 0.0, 0.0);
        for k in -400..=400 {
            let t = f64::from(k) * 0.02;
            let (eta, weight) = ([m + v.sqrt() * t], (-0.5 * t * t).exp());
            let eta = Lanes::new(&eta, 1, 1);
            let mut found = [0.0];
            model.link_gradient(&[*b], eta, LanesMut::new(&mut found, 1, 1));
            gradient += weight * found[0];
            let one = Lanes::new(&[1.0], 1, 1);
            model.link_curvature(&[*b], eta, one, LanesMut::new(&mut found, 1, 1));
            curvature += weight * found[0];
            total += weight;
        }
        for (i, x) in row.iter().enumerate() {
            out[i] += x * gradient / total;
            out[d + i] += x * x * (2.0 * log_sd[i]).exp() * curvature / total;
        }
    }
    for i in 0..d {
        out[i] -= mean[i];
        out[d + i] += 1.0 - (2.0 * log_sd[i]).exp();
    }
    out
}

#[test]
fn the_draw_is_integrated_out() {
    // For any table, the mean over an epoch is the exact gradient, except for one part that is sampled. It is the
    // curvature of the prior in the gradient of the spread, which is −σ²ε² instead of −σ².
    let estimator = RecordEstimator::JointExact;
    for model in [logistic(22, 5), matches(21, 6), matches(30, 7)] {
        let d = model.dim();
        let family: Arc<dyn Family> = Arc::new(MeanField::new(d));
        let batches = Batches::new(4, model.records(), 4).unwrap();
        let omega: Vec<f64> = numbers(30, 2 * d).iter().map(|x| 1.2 * x).collect();
        let mut gradients = Gradients::new(&model, family.clone(), 1, 4);
        let full = filled(&mut gradients, estimator, &batches, &omega);
        let empty = gradients.table(estimator);
        let noise = numbers(31, d);
        let mut expected = integrated(&model, &omega);
        for i in 0..d {
            expected[d + i] -= (2.0 * omega[d + i]).exp() * (noise[i] * noise[i] - 1.0);
        }
        for table in [&full, &empty] {
            let (mut mean, mut out) = (vec![0.0; 2 * d], vec![0.0; 2 * d]);
            let order = batches.order(17);
            for k in 0..batches.per_epoch() {
                let batch = &order[batches.range(k)];
                let request = GradientRequest {
                    estimator,
                    omega: &omega,
                    noise: Lanes::new(&noise, d, 1),
                    batch,
                    visit: false,
                };
                assert!(gradients.evaluate(&request, table, &mut out));
                let share = batch.len() as f64 / model.records() as f64;
                mean.iter_mut().zip(&out).for_each(|(m, g)| *m += share * g);
            }
            assert_close(&mean, &expected, 1e-7, "joint-exact");
        }
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
    let request = GradientRequest {
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
    // This compares Eq. 61 with Eq. 60. If every stored mean is the current one and the batch contains all records, the
    // joint estimator is the expectation over ε of the expansion at ε = 0. Its error in the gradient of the mean is of
    // second order in ε (from the third derivative). The errors of the other estimators are of first order.
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
        let request = GradientRequest {
            estimator,
            omega: &omega,
            noise: Lanes::new(&noise, 15, 1),
            batch: &batch,
            visit: false,
        };
        let mut out = vec![0.0; 30];
        assert!(gradients.evaluate(&request, &table, &mut out));
        let at_mean = reference(&model, &*family, &omega, Lanes::new(&[0.0; 15], 15, 1));
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

/// Computes the gradient of the mean by `joint-svrg` at a draw that is multiplied by `scale`. The anchor differs from
/// the mean.
fn by_anchor<D: RecordDensity>(model: &D, omega: &[f64], scale: f64) -> Vec<f64> {
    let (d, batch): (usize, Vec<u32>) = (model.dim(), (3..12).collect());
    let family: Arc<dyn Family> = Arc::new(MeanField::new(d));
    let estimator = RecordEstimator::JointSvrg;
    let mut gradients = Gradients::new(model, family, 1, batch.len());
    let mut table = gradients.table(estimator);
    let anchor: Vec<f64> = omega[..d].iter().map(|m| m + 0.1).collect();
    gradients.anchor(&anchor, &mut table);
    let noise: Vec<f64> = numbers(34, d).iter().map(|e| scale * e).collect();
    let request = GradientRequest {
        estimator,
        omega,
        noise: Lanes::new(&noise, d, 1),
        batch: &batch,
        visit: false,
    };
    let mut out = vec![0.0; omega.len()];
    assert!(gradients.evaluate(&request, &table, &mut out));
    out.truncate(d);
    out
}

#[test]
fn differences_stand_for_products_to_third_order() {
    let omega: Vec<f64> = numbers(31, 14);
    let (shown, hidden) = (matches(30, 7), Opaque(matches(30, 7), true));
    let apart = |scale: f64| {
        let (a, b) = (
            by_anchor(&shown, &omega, scale),
            by_anchor(&hidden, &omega, scale),
        );
        let squares = a.iter().zip(&b).map(|(a, b)| (a - b) * (a - b));
        squares.sum::<f64>().sqrt()
    };
    assert!(apart(0.0) < 1e-12);
    let ratio = apart(0.1) / apart(0.05);
    assert!((ratio - 8.0).abs() < 0.2, "{ratio}");
}

#[test]
fn far_draws_are_no_worse_with_an_anchor() {
    // The log odds have standard deviations of six. A second-order expansion then extends far beyond the region in
    // which the gradient varies, and its error exceeds the gradient itself. The odd part of the gradient has no such
    // error.
    let omega: Vec<f64> = [vec![0.1; 4], vec![6.0_f64.ln(); 4]].concat();
    fn variance<D: RecordDensity>(model: &D, estimator: RecordEstimator, omega: &[f64]) -> f64 {
        let batch: Vec<u32> = (0..40).collect();
        let mut gradients = Gradients::new(model, Arc::new(MeanField::new(4)), 1, 40);
        let mut table = gradients.table(estimator);
        gradients.anchor(&omega[..4], &mut table);
        let mut noise = Vec::new();
        let (mut out, mut moments) = (vec![0.0; 8], vec![[0.0; 2]; 4]);
        for t in 0..4000 {
            gradients.noise(8, t, &mut noise);
            let request = GradientRequest {
                estimator,
                omega,
                noise: Lanes::new(&noise, 4, 1),
                batch: &batch,
                visit: false,
            };
            assert!(gradients.evaluate(&request, &table, &mut out));
            for ([first, second], g) in moments.iter_mut().zip(&out) {
                *first += g / 4000.0;
                *second += g * g / 4000.0;
            }
        }
        let variances = moments.iter().map(|[first, second]| second - first * first);
        variances.sum()
    }
    let (shown, hidden) = (logistic(40, 4), Opaque(logistic(40, 4), true));
    let naive = variance(&hidden, RecordEstimator::Naive, &omega);
    let product = variance(&shown, RecordEstimator::JointSvrg, &omega);
    let odd = variance(&hidden, RecordEstimator::JointSvrg, &omega);
    assert!(odd < naive && naive < product, "{odd} {naive} {product}");
}

#[test]
fn the_diagonal_serves_the_spread() {
    // Averaged over ±ε, the scale gradient of `joint` equals its expectation up to fourth order in ε, apart from the
    // prior's −δ². If the model exposes no predictor, an error of second order remains.
    fn error<D: RecordDensity>(model: &D, scale: f64) -> f64 {
        let family: Arc<dyn Family> = Arc::new(MeanField::new(6));
        let omega = numbers(33, 12);
        let batch: Vec<u32> = (0..21).collect();
        let estimator = RecordEstimator::JointSvrg;
        let mut gradients = Gradients::new(model, family, 1, 21);
        let mut table = gradients.table(estimator);
        gradients.anchor(&omega[..6], &mut table);
        let mut at = |scale: f64| {
            let noise: Vec<f64> = numbers(34, 6).iter().map(|e| scale * e).collect();
            let request = GradientRequest {
                estimator,
                omega: &omega,
                noise: Lanes::new(&noise, 6, 1),
                batch: &batch,
                visit: false,
            };
            let mut out = vec![0.0; 12];
            assert!(gradients.evaluate(&request, &table, &mut out));
            let delta = noise.iter().zip(&omega[6..]).map(|(e, l)| e * l.exp());
            let spread = out[6..].iter().zip(delta).map(|(g, d)| g + d * d);
            spread.collect::<Vec<f64>>()
        };
        let (up, down, none) = (at(scale), at(-scale), at(0.0));
        let error = |i: usize| 0.5 * (up[i] + down[i]) - none[i];
        (0..6).map(|i| error(i) * error(i)).sum::<f64>().sqrt()
    }
    let shown = matches(21, 6);
    let ratio = error(&shown, 0.05) / error(&shown, 0.025);
    assert!((ratio - 16.0).abs() < 0.3, "{ratio}");
    let hidden = Opaque(matches(21, 6), true);
    let ratio = error(&hidden, 0.05) / error(&hidden, 0.025);
    assert!((ratio - 4.0).abs() < 0.1, "{ratio}");
}

#[test]
fn sticking_to_the_landing_at_the_posterior_is_silent() {
    // The posterior of this model equals the prior, so the records contribute nothing if q is the prior.
    let features = Features::Sparse(Sparse::new(2, [vec![], vec![]]).unwrap());
    let model = Glm::new(features, Link::bernoulli(&[true, true]), StandardNormal(2)).unwrap();
    let mut gradients = Gradients::new(&model, Arc::new(MeanField::new(2)), 1, 1);
    let mut noise = Vec::new();
    gradients.noise(3, 4, &mut noise);
    let request = GradientRequest {
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
