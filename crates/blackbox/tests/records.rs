//! Minibatches: models, unbiasedness, variances, resuming, refusals.

use std::sync::Arc;

use jensen_blackbox::family::{FullRank, MeanField};
use jensen_blackbox::records::models::{
    CommonNormal, Dense, Features, Glm, Link, Ppca, Sparse, StandardNormal,
};
use jensen_blackbox::records::{
    Batches, Gradients, Judge, Minibatch, MinibatchSettings, MinibatchState, Place, RecordError,
    RecordEstimator, Request, Smiso, SmisoSettings, Table, VarianceSettings, variances,
};
use jensen_blackbox::{
    Family, NoiseSource, Optimiser, Oracle, Purpose as NoisePurpose, Saa, SaaSettings, Schedule,
};
use jensen_density::{
    AllRecords, Group, Lanes, LanesMut, LogDensity, RecordDensity, TwiceDifferentiable,
};
use jensen_fit::{Algorithm, Budget, Checkpoint, Control, Identity, Record, Snapshot};
use jensen_math::rng::{Purpose, Stream};
use jensen_math::simd::Simd;
use jensen_testkit::{StressSettings, stress_twice};

/// Uniform numbers in (−1, 1).
fn numbers(seed: u64, count: usize) -> Vec<f64> {
    let mut stream = Stream::new(seed, Purpose::new("test records"), 0, 0);
    (0..count).map(|_| 2.0 * stream.uniform() - 1.0).collect()
}

fn logistic(records: usize, columns: usize) -> Glm<StandardNormal> {
    let x = numbers(1, records * columns);
    let outcomes: Vec<bool> = numbers(2, records).iter().map(|u| *u > 0.2).collect();
    let features = Features::Dense(Dense::new(x, columns).unwrap());
    Glm::new(
        features,
        Link::bernoulli(&outcomes),
        StandardNormal(columns),
    )
    .unwrap()
}

fn softmax(records: usize) -> Glm<StandardNormal> {
    let bytes: Vec<u8> = numbers(3, records * 5)
        .iter()
        .map(|u| (100.0 * (u + 1.0)) as u8)
        .collect();
    let labels = (0..records as u32).map(|n| n * 7 % 3).collect();
    let features = Features::Dense(Dense::standardised_bytes(bytes, 5).unwrap());
    let link = Link::categorical(labels, 3).unwrap();
    Glm::new(features, link, StandardNormal(15)).unwrap()
}

fn matches(records: usize, players: u32) -> Glm<StandardNormal> {
    let rows = (0..records as u32).map(|n| {
        let winner = n * 5 % players;
        vec![(winner, 1.0), ((winner + 1 + n % 3) % players, -1.0)]
    });
    let features = Features::Sparse(Sparse::new(players as usize, rows).unwrap());
    let link = Link::bernoulli(&vec![true; records]);
    Glm::new(features, link, StandardNormal(players as usize)).unwrap()
}

fn hierarchy(records: usize) -> Glm<CommonNormal> {
    // Three users, two genres, four ratings.
    let rows = (0..records as u32).map(|n| {
        let user = n % 3;
        let all = [(2 * user, 1.0), (2 * user + 1, 1.0)];
        all[..1 + (n % 2) as usize].to_vec()
    });
    let features = Features::Sparse(Sparse::new(6, rows).unwrap());
    let labels = (0..records as u32).map(|n| n * 3 % 4).collect();
    let prior = CommonNormal {
        width: 8,
        groups: 3,
    };
    Glm::new(features, Link::categorical(labels, 4).unwrap(), prior).unwrap()
}

fn ppca(records: usize) -> Ppca {
    let data = numbers(4, records * 6).iter().map(|x| 2.0 * x).collect();
    Ppca::new(Dense::new(data, 6).unwrap(), 2, 0.7)
}

/// Hides the linear predictor, so that snapshots are used.
struct Opaque<D>(D, bool);

impl<D: RecordDensity> RecordDensity for Opaque<D> {
    type Workspace = D::Workspace;
    fn dim(&self) -> usize {
        self.0.dim()
    }
    fn records(&self) -> usize {
        self.0.records()
    }
    fn workspace(&self, lanes: usize, batch: usize) -> D::Workspace {
        self.0.workspace(lanes, batch)
    }
    fn prior_value(&self, ws: &mut D::Workspace, z: Lanes<'_>, out: &mut [f64]) {
        self.0.prior_value(ws, z, out);
    }
    fn prior_value_grad(
        &self,
        ws: &mut D::Workspace,
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    ) {
        self.0.prior_value_grad(ws, z, out, grad);
    }
    fn prior_hvp(&self, ws: &mut D::Workspace, z: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>) {
        self.0.prior_hvp(ws, z, v, out);
    }
    fn batch_value(&self, ws: &mut D::Workspace, batch: &[u32], z: Lanes<'_>, out: &mut [f64]) {
        self.0.batch_value(ws, batch, z, out);
    }
    fn batch_value_grad(
        &self,
        ws: &mut D::Workspace,
        batch: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    ) {
        self.0.batch_value_grad(ws, batch, z, out, grad);
    }
    fn batch_hvp(
        &self,
        ws: &mut D::Workspace,
        batch: &[u32],
        z: Lanes<'_>,
        v: Lanes<'_>,
        out: LanesMut<'_>,
    ) {
        self.0.batch_hvp(ws, batch, z, v, out);
    }
    fn paired_value(&self, ws: &mut D::Workspace, n: &[u32], z: Lanes<'_>, out: &mut [f64]) {
        self.0.paired_value(ws, n, z, out);
    }
    fn paired_value_grad(
        &self,
        ws: &mut D::Workspace,
        n: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    ) {
        self.0.paired_value_grad(ws, n, z, out, grad);
    }
    fn paired_hvp(
        &self,
        ws: &mut D::Workspace,
        n: &[u32],
        z: Lanes<'_>,
        v: Lanes<'_>,
        out: LanesMut<'_>,
    ) {
        self.0.paired_hvp(ws, n, z, v, out);
    }
    fn support(&self, batch: &[u32], coordinates: &mut Vec<u32>) -> bool {
        self.1 && self.0.support(batch, coordinates)
    }
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
}

fn assert_close(a: &[f64], b: &[f64], tolerance: f64, what: &str) {
    assert_eq!(a.len(), b.len());
    let scale = a.iter().fold(1.0f64, |m, x| m.max(x.abs()));
    for (i, (x, y)) in a.iter().zip(b).enumerate() {
        assert!(
            (x - y).abs() <= tolerance * scale,
            "{what}, {i}: {x} and {y}"
        );
    }
}

/// Derivatives against differences, the layouts against each other.
fn check_model<D: RecordDensity>(density: &D, name: &str) {
    let settings = StressSettings {
        points: 4,
        radius: 1.0,
        ..StressSettings::default()
    };
    let all = AllRecords::new(density);
    // Matrix products round differently for one lane and for several, which is compared below.
    let mut failures = stress_twice(&all, &settings);
    failures.retain(|failure| !failure.what.contains("depends on the batch"));
    assert!(failures.is_empty(), "{name}: {}", failures[0]);

    let (d, n) = (density.dim(), density.records());
    let batch: Vec<u32> = (0..n as u32).rev().step_by(2).collect();
    let b = batch.len();
    let (z, v) = (numbers(10, d * b), numbers(11, d * b));
    let (z, v) = (Lanes::new(&z, d, b), Lanes::new(&v, d, b));
    let mut ws = density.workspace(b, b);
    let (mut values, mut paired) = (vec![0.0; b], vec![0.0; b]);
    let (mut grad, mut hvp) = (vec![0.0; d * b], vec![0.0; d * b]);
    density.paired_value(&mut ws, &batch, z, &mut values);
    density.paired_value_grad(
        &mut ws,
        &batch,
        z,
        &mut paired,
        LanesMut::new(&mut grad, d, b),
    );
    assert_close(&values, &paired, 1e-12, name);
    density.paired_hvp(&mut ws, &batch, z, v, LanesMut::new(&mut hvp, d, b));
    // A lane of the paired layout is a batch of one record.
    let (mut point, mut direction) = (vec![0.0; d], vec![0.0; d]);
    let mut column = vec![0.0; d];
    for (l, record) in batch.iter().enumerate() {
        z.copy_lane(l, &mut point);
        v.copy_lane(l, &mut direction);
        let (mut value, mut g) = ([0.0], vec![0.0; d]);
        let one = Lanes::new(&point, d, 1);
        let out = LanesMut::new(&mut g, d, 1);
        density.batch_value_grad(&mut ws, &[*record], one, &mut value, out);
        assert!(close(value[0], values[l], 1e-12), "{name}");
        Lanes::new(&grad, d, b).copy_lane(l, &mut column);
        assert_close(&g, &column, 1e-12, name);
        let along = Lanes::new(&direction, d, 1);
        density.batch_hvp(&mut ws, &[*record], one, along, LanesMut::new(&mut g, d, 1));
        Lanes::new(&hvp, d, b).copy_lane(l, &mut column);
        assert_close(&g, &column, 1e-12, name);
        // Coordinates outside the support do not matter.
        let mut support = Vec::new();
        if density.support(&[*record], &mut support) {
            for i in (0..d).filter(|&i| !support.contains(&(i as u32))) {
                assert_eq!(Lanes::new(&grad, d, b).row(i)[l], 0.0);
            }
        }
    }
    // A batch of several records at several lanes is the sum.
    let lanes = 3;
    let points = numbers(12, d * lanes);
    let z = Lanes::new(&points, d, lanes);
    let (mut sum, mut grads) = (vec![0.0; lanes], vec![0.0; d * lanes]);
    let out = LanesMut::new(&mut grads, d, lanes);
    density.batch_value_grad(&mut ws, &batch, z, &mut sum, out);
    for l in 0..lanes {
        z.copy_lane(l, &mut point);
        let copies: Vec<f64> = point.iter().flat_map(|x| vec![*x; b]).collect();
        let copies = Lanes::new(&copies, d, b);
        let out = LanesMut::new(&mut grad, d, b);
        density.paired_value_grad(&mut ws, &batch, copies, &mut paired, out);
        assert!(close(sum[l], paired.iter().sum(), 1e-12), "{name}");
        let total: Vec<f64> = grad.chunks(b).map(|row| row.iter().sum()).collect();
        Lanes::new(&grads, d, lanes).copy_lane(l, &mut column);
        assert_close(&total, &column, 1e-11, name);
    }
    // Groups against calls of their own.
    let mut points = [vec![0.0; d], vec![0.0; d]];
    let (one, two) = batch.split_at(b / 3);
    z.copy_lane(0, &mut points[0]);
    z.copy_lane(1, &mut points[1]);
    let groups = [
        Group {
            records: one,
            point: &points[0],
        },
        Group {
            records: two,
            point: &points[1],
        },
    ];
    let (mut grad, mut product) = (vec![0.5; d], vec![-1.5; d]);
    density.grouped(&mut ws, &groups, &direction, &mut grad, &mut product);
    let (mut expected, mut expected_product) = (vec![0.5; d], vec![-1.5; d]);
    let mut part = vec![0.0; d];
    for group in &groups {
        let z = Lanes::new(group.point, d, 1);
        let out = LanesMut::new(&mut part, d, 1);
        density.batch_value_grad(&mut ws, group.records, z, &mut [0.0], out);
        expected.iter_mut().zip(&part).for_each(|(e, p)| *e += p);
        let along = Lanes::new(&direction, d, 1);
        density.batch_hvp(
            &mut ws,
            group.records,
            z,
            along,
            LanesMut::new(&mut part, d, 1),
        );
        expected_product
            .iter_mut()
            .zip(&part)
            .for_each(|(e, p)| *e += p);
    }
    assert_close(&grad, &expected, 1e-12, name);
    assert_close(&product, &expected_product, 1e-12, name);
}

#[test]
fn models_are_consistent() {
    check_model(&logistic(13, 4), "logistic");
    check_model(&softmax(11), "softmax");
    check_model(&matches(14, 6), "matches");
    check_model(&hierarchy(12), "hierarchy");
    check_model(&ppca(9), "ppca");
}

#[test]
fn principal_components_are_a_normal_density() {
    // Against a Cholesky factor of W Wᵀ + s I.
    let model = ppca(3);
    let (p, k, s) = (6, 2, 0.7);
    let w = numbers(20, p * k);
    let data: Vec<f64> = numbers(4, 3 * 6).iter().map(|x| 2.0 * x).collect();
    let mut c = vec![0.0; p * p];
    for i in 0..p {
        for j in 0..p {
            c[i * p + j] = (0..k).map(|a| w[i * k + a] * w[j * k + a]).sum::<f64>();
        }
        c[i * p + i] += s;
    }
    let mut l = vec![0.0; p * p];
    for i in 0..p {
        for j in 0..=i {
            let known: f64 = (0..j).map(|a| l[i * p + a] * l[j * p + a]).sum();
            let x: f64 = c[i * p + j] - known;
            l[i * p + j] = if i == j { x.sqrt() } else { x / l[j * p + j] };
        }
    }
    let mut expected = 0.0;
    for x in data.chunks(p) {
        let mut y = vec![0.0; p];
        for i in 0..p {
            let known: f64 = (0..i).map(|a| l[i * p + a] * y[a]).sum();
            y[i] = (x[i] - known) / l[i * p + i];
            expected -= 0.5 * y[i] * y[i] + l[i * p + i].ln();
        }
        expected -= 0.5 * p as f64 * (2.0 * std::f64::consts::PI).ln();
    }
    let mut out = [0.0];
    let mut ws = model.workspace(1, 3);
    model.batch_value(&mut ws, &[0, 1, 2], Lanes::new(&w, p * k, 1), &mut out);
    assert!(close(out[0], expected, 1e-12), "{} {expected}", out[0]);
}

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

/// Australian credit approval, standardised: 690 records, 14 coefficients.
fn australian() -> Glm<StandardNormal> {
    let text = include_str!("../../../data/uci/australian.dat");
    let mut rows: Vec<Vec<f64>> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            line.split_whitespace()
                .map(|x| x.parse().unwrap())
                .collect()
        })
        .collect();
    let outcomes: Vec<bool> = rows
        .iter_mut()
        .map(|row| row.pop().unwrap() > 0.5)
        .collect();
    let n = rows.len() as f64;
    let mut x = vec![0.0; rows.len() * 14];
    for j in 0..14 {
        let mean = rows.iter().map(|row| row[j]).sum::<f64>() / n;
        let square = |row: &Vec<f64>| (row[j] - mean) * (row[j] - mean);
        let sd = (rows.iter().map(square).sum::<f64>() / n).sqrt();
        for (i, row) in rows.iter().enumerate() {
            x[i * 14 + j] = (row[j] - mean) / sd;
        }
    }
    let features = Features::Dense(Dense::new(x, 14).unwrap());
    Glm::new(features, Link::bernoulli(&outcomes), StandardNormal(14)).unwrap()
}

/// The optimum of the mean-field bound.
fn optimum<D: RecordDensity>(density: &D) -> Vec<f64> {
    let all = AllRecords::new(density);
    let family: Arc<dyn Family> = Arc::new(MeanField::new(density.dim()));
    let source = NoiseSource::new(3, Simd::detect());
    let settings = SaaSettings::default();
    let start = family.diagonal(&vec![0.0; density.dim()], &vec![-1.0; density.dim()]);
    let mut saa = Saa::new(&all, family, source, settings, start, 0);
    let clock = || 0.0;
    let mut silent = jensen_fit::Silent;
    let mut control = Control::new(Budget::iterations(500), &clock, &mut silent);
    let outcome = jensen_fit::run(&mut saa, &identity(), &mut control).unwrap();
    assert!(outcome.status.is_converged(), "{}", outcome.status);
    outcome.output.unwrap()
}

fn identity() -> Identity {
    Identity {
        algorithm: "test".into(),
        settings: serde_json::Value::Null,
        seed: 1,
        model_hash: String::new(),
        data_hash: String::new(),
        simd: String::new(),
    }
}

#[test]
fn variances_respect_their_bounds_at_the_optimum() {
    let model = australian();
    let omega = optimum(&model);
    let batches = Batches::new(1, 690, 5).unwrap();
    let family: Arc<dyn Family> = Arc::new(MeanField::new(14));
    let mut found = Vec::new();
    for estimator in RecordEstimator::ALL {
        let mut gradients = Gradients::new(&model, family.clone(), 1, 5);
        // Tables at the optimum itself: what a converged run approaches.
        let mut table = gradients.table(estimator);
        let order = batches.order(0);
        let mut out = vec![0.0; omega.len()];
        let mut noise = Vec::new();
        for k in 0..batches.per_epoch() {
            gradients.noise(5, k as u64, &mut noise);
            let request = Request {
                estimator,
                omega: &omega,
                noise: Lanes::new(&noise, 14, 1),
                batch: &order[batches.range(k)],
                visit: estimator.remembers(),
            };
            assert!(gradients.evaluate(&request, &table, &mut out));
            gradients.visit(&request, &mut table, k + 1 == batches.per_epoch());
        }
        if estimator == RecordEstimator::JointSvrg {
            gradients.anchor(&omega[..14], &mut table);
        }
        let place = Place {
            omega: &omega,
            table: &table,
            batches: &batches,
            seed: 6,
            iteration: 1,
            samples: 600,
        };
        found.push((estimator, variances(&mut gradients, estimator, &place)));
    }
    let of = |name: &str| found.iter().find(|(e, _)| e.name() == name).unwrap().1;
    let naive = of("naive");
    let (subsampling, monte_carlo) = (naive.subsampling, naive.monte_carlo);
    // The decomposition of the naive estimator: the parts are smaller than the whole, and the paper's
    // order of magnitude (9.16e4, 8.61e4 and 2.07e3).
    assert!((3e4..3e5).contains(&naive.total.mean), "{:?}", naive.total);
    assert!((3e4..3e5).contains(&subsampling.mean), "{subsampling:?}");
    assert!((5e2..8e3).contains(&monte_carlo.mean), "{monte_carlo:?}");
    // Eqs. 10 and 14, with four standard errors.
    let cv = of("cv").total;
    assert!(cv.mean > subsampling.mean - 4.0 * (cv.standard_error + subsampling.standard_error));
    assert!(cv.mean < naive.total.mean);
    let inc = of("inc").total;
    assert!(inc.mean > monte_carlo.mean - 4.0 * (inc.standard_error + monte_carlo.standard_error));
    assert!(inc.mean < 1.5 * monte_carlo.mean, "{inc:?} {monte_carlo:?}");
    // Joint is below both bounds.
    for name in ["joint", "joint-svrg"] {
        let joint = of(name).total;
        let upper = joint.mean + 4.0 * joint.standard_error;
        assert!(
            upper < subsampling.mean && upper < monte_carlo.mean,
            "{name} {joint:?}"
        );
    }
}

fn settings(estimator: RecordEstimator) -> MinibatchSettings {
    MinibatchSettings {
        estimator,
        batch: 4,
        judge: None,
        ..MinibatchSettings::default()
    }
}

/// Runs `algorithm` for `iterations`, from a checkpoint if given.
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
    let outcome = jensen_fit::run(algorithm, &identity(), &mut control).unwrap();
    (outcome.output.unwrap(), records, store.pop().unwrap())
}

fn check_resume<A: Algorithm<Output = Vec<f64>>>(make: impl Fn() -> A + Sync, name: &str) {
    let (whole, trace, _) = run(&mut make(), 29, None);
    // 13 is inside the third epoch of six iterations.
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
    let make = || {
        let settings = SmisoSettings {
            alpha: 0.9,
            gamma: 1e-3,
            batch: 4,
            draws: 1,
            memory_limit: None,
        };
        Smiso::new(
            &linear,
            Arc::new(MeanField::new(5)),
            3,
            settings,
            vec![-0.5; 10],
        )
        .unwrap()
    };
    check_resume(make, "smiso");
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
        for estimator in [RecordEstimator::Joint, RecordEstimator::JointSvrg] {
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
            let mut silent = jensen_fit::Silent;
            let mut control = Control::new(Budget::iterations(60_000), &clock, &mut silent);
            let outcome = jensen_fit::run(&mut fit, &identity(), &mut control).unwrap();
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
    let settings = SmisoSettings {
        alpha: 0.5,
        gamma: 5e-3,
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
        assert!((a - b).abs() < 0.1, "{average:?} {best:?}");
    }
    let entries = state.save().vec("entries").unwrap();
    let mean: Vec<f64> = (0..8)
        .map(|i| entries.chunks(8).map(|e| e[i]).sum::<f64>() / 15.0)
        .collect();
    assert_close(state.omega(), &mean, 1e-10, "entries");
}

#[test]
fn a_draw_without_gradient_is_skipped() {
    // A weight so large that the predictors overflow in some iterations, not in others.
    let model = ppca(8);
    let family = Arc::new(MeanField::new(12));
    let mut start = numbers(7, 24);
    start[..12].iter_mut().for_each(|m| *m = f64::MAX.sqrt());
    let mut fit =
        Minibatch::new(&model, family, 3, settings(RecordEstimator::Joint), start).unwrap();
    let clock = || 0.0;
    let mut records = Vec::<Record>::new();
    let mut control = Control::new(Budget::iterations(500), &clock, &mut records);
    let outcome = jensen_fit::run(&mut fit, &identity(), &mut control).unwrap();
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
    let text = refusal(settings(RecordEstimator::Ens { beta: 2.0 }));
    assert!(text.contains("[0, 1]"), "{text}");

    let large = matches(10_001, 5);
    let family: Arc<dyn Family> = Arc::new(MeanField::new(5));
    let inc = settings(RecordEstimator::Inc);
    let error = Minibatch::new(&large, family.clone(), 0, inc, vec![0.0; 10])
        .err()
        .unwrap();
    assert!(matches!(error, RecordError::TooManyRecords { .. }));
    assert!(error.to_string().contains("`joint`"));
    // Linear predictors need no snapshots: the same limit suffices for many more records.
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

#[test]
fn all_records_are_prior_plus_every_batch() {
    let model = hierarchy(12);
    let all = AllRecords::new(&model);
    let d = model.dim();
    let z = numbers(50, 2 * d);
    let z = Lanes::new(&z, d, 2);
    let mut ws = all.workspace(2);
    let (mut whole, mut parts, mut batch) = ([0.0; 2], [0.0; 2], [0.0; 2]);
    all.value(&mut ws, z, &mut whole);
    let mut inner = model.workspace(2, 6);
    model.prior_value(&mut inner, z, &mut parts);
    for records in [[0, 2, 4, 6, 8, 10], [1, 3, 5, 7, 9, 11]] {
        model.batch_value(&mut inner, &records, z, &mut batch);
        parts.iter_mut().zip(&batch).for_each(|(p, b)| *p += b);
    }
    assert_close(&whole, &parts, 1e-12, "values");
    let v = numbers(51, 2 * d);
    let mut product = vec![0.0; 2 * d];
    all.hvp(
        &mut ws,
        z,
        Lanes::new(&v, d, 2),
        LanesMut::new(&mut product, d, 2),
    );
    assert!(product.iter().all(|x| x.is_finite()));
}

/// The bound of `omega` on draws that are the same for all.
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
    // Each with the best of its step sizes, as in Figure 3 of the paper.
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
            bound(&model, state.omega())
        });
        bounds
            .filter(|b| b.is_finite())
            .fold(f64::NEG_INFINITY, f64::max)
    };
    let steps = [5e-3, 2.5e-3, 1e-3, 5e-4, 2.5e-4, 1e-4];
    let naive = best(RecordEstimator::Naive, iterations, &steps);
    let joint = best(RecordEstimator::Joint, iterations / 10, &steps);
    assert!(joint > naive, "{joint} {naive}");
}
