//! Models and runs that several tests use.

use std::sync::Arc;

use jensen_blackbox::family::MeanField;
use jensen_blackbox::minibatches::MinibatchSettings;
use jensen_blackbox::records::RecordEstimator;
use jensen_blackbox::{Family, NoiseSource, Saa, SaaSettings};
use jensen_density::{AllRecords, Lanes, LanesMut, RecordDensity};
use jensen_glm::{CommonNormal, Dense, Features, Glm, Link, Ppca, Sparse, StandardNormal};
use jensen_math::rng::{Purpose, Stream};
use jensen_math::simd::Simd;
use jensen_run::{Budget, Control, Identity};
/// Draws uniform numbers in (−1, 1).
pub fn numbers(seed: u64, count: usize) -> Vec<f64> {
    let mut stream = Stream::new(seed, Purpose::new("test records"), 0, 0);
    (0..count).map(|_| 2.0 * stream.uniform() - 1.0).collect()
}

pub fn logistic(records: usize, columns: usize) -> Glm<StandardNormal> {
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

pub fn softmax(records: usize) -> Glm<StandardNormal> {
    let bytes: Vec<u8> = numbers(3, records * 5)
        .iter()
        .map(|u| (100.0 * (u + 1.0)) as u8)
        .collect();
    let labels = (0..records as u32).map(|n| n * 7 % 3).collect();
    let features = Features::Dense(Dense::standardised_bytes(bytes, 5).unwrap());
    let link = Link::categorical(labels, 3).unwrap();
    Glm::new(features, link, StandardNormal(15)).unwrap()
}

pub fn matches(records: usize, players: u32) -> Glm<StandardNormal> {
    let rows = (0..records as u32).map(|n| {
        let winner = n * 5 % players;
        vec![(winner, 1.0), ((winner + 1 + n % 3) % players, -1.0)]
    });
    let features = Features::Sparse(Sparse::new(players as usize, rows).unwrap());
    let link = Link::bernoulli(&vec![true; records]);
    Glm::new(features, link, StandardNormal(players as usize)).unwrap()
}

pub fn hierarchy(records: usize) -> Glm<CommonNormal> {
    // The data contain three users, two genres and four ratings.
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

pub fn ppca(records: usize) -> Ppca {
    let data = numbers(4, records * 6).iter().map(|x| 2.0 * x).collect();
    Ppca::new(Dense::new(data, 6).unwrap(), 2, 0.7)
}

/// A model that hides its linear predictor, which makes the estimators use snapshots.
pub struct Opaque<D>(pub D, pub bool);

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

pub fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
}

pub fn assert_close(a: &[f64], b: &[f64], tolerance: f64, what: &str) {
    assert_eq!(a.len(), b.len());
    let scale = a.iter().fold(1.0f64, |m, x| m.max(x.abs()));
    for (i, (x, y)) in a.iter().zip(b).enumerate() {
        assert!(
            (x - y).abs() <= tolerance * scale,
            "{what}, {i}: {x} and {y}"
        );
    }
}

/// Reads the standardised Australian credit data, with 690 records and 14 coefficients.
pub fn australian() -> Glm<StandardNormal> {
    let text = include_str!("../../../../../data/uci/australian.dat");
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

/// Finds the optimum of the mean-field bound.
pub fn optimum<D: RecordDensity>(density: &D) -> Vec<f64> {
    let all = AllRecords::new(density);
    let family: Arc<dyn Family> = Arc::new(MeanField::new(density.dim()));
    let source = NoiseSource::new(3, Simd::detect());
    let settings = SaaSettings::default();
    let start = family.diagonal(&vec![0.0; density.dim()], &vec![-1.0; density.dim()]);
    let mut saa = Saa::new(&all, family, source, settings, start, 0);
    let clock = || 0.0;
    let mut silent = jensen_run::Silent;
    let mut control = Control::new(Budget::iterations(500), &clock, &mut silent);
    let outcome = jensen_run::run(&mut saa, &identity(), &mut control).unwrap();
    assert!(outcome.status.is_converged(), "{}", outcome.status);
    outcome.output.unwrap()
}

pub fn identity() -> Identity {
    Identity {
        algorithm: "test".into(),
        settings: serde_json::Value::Null,
        seed: 1,
        model_hash: String::new(),
        data_hash: String::new(),
        simd: String::new(),
    }
}

pub fn settings(estimator: RecordEstimator) -> MinibatchSettings {
    MinibatchSettings {
        estimator,
        batch: 4,
        judge: None,
        ..MinibatchSettings::default()
    }
}
