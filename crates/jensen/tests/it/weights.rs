//! Tests of rows with weights: a row with weight w is w equal rows.
#![cfg(feature = "full")]

use jensen::data::{Cells, Column, Table};
use jensen::math::rng::{Purpose, Stream};
use jensen::math::special::inv_phi;
use jensen::points::{
    MixtureModel, MixtureRequest, PointRequest, Points, PointsSummary, fit_mixture,
};
use serde_json::{Value, json};

use crate::common::alone;

const ROWS: usize = 90;

/// Creates three groups of rows with two numbers, a count and a binary value. Every ninth number is missing.
fn columns() -> Vec<Vec<f64>> {
    let mut stream = Stream::new(8, Purpose::new("rows with weights"), 0, 0);
    let mut rows = |of: &dyn Fn(usize, f64) -> f64| -> Vec<f64> {
        (0..ROWS).map(|n| of(n % 3, stream.uniform())).collect()
    };
    let mut first = rows(&|group, u| 1e5 + [0.0, 40.0, -30.0][group] + 3.0 * inv_phi(u));
    first.iter_mut().step_by(9).for_each(|x| *x = f64::NAN);
    vec![
        first,
        rows(&|group, u| [0.0, 0.05, 0.09][group] + 0.01 * inv_phi(u)),
        rows(&|group, u| ([1.0, 12.0, 30.0][group] + 4.0 * u).floor()),
        rows(&|group, u| f64::from(u8::from(u < [0.1, 0.9, 0.5][group]))),
    ]
}

const NAMES: [&str; 4] = ["a", "b", "visits", "smoker"];

fn table(columns: &[(&str, Vec<f64>)]) -> Table {
    let columns = columns.iter().cloned();
    let columns = columns.map(|(name, x)| Column::new(name, Cells::Numbers(x)));
    Table::new("memory", columns.collect()).unwrap()
}

fn named<'a>(names: &[&'a str], rows: &[usize]) -> Vec<(&'a str, Vec<f64>)> {
    let all = columns();
    let pick = |name: &&'a str| {
        let own = &all[NAMES.iter().position(|n| n == name).unwrap()];
        (*name, rows.iter().map(|row| own[*row]).collect())
    };
    names.iter().map(pick).collect()
}

/// Returns rows that stand for `weights(n)` equal rows each, and the table in which these rows are repeated.
fn both(names: &[&str], weights: impl Fn(usize) -> usize) -> (Points, Points) {
    let all: Vec<usize> = (0..ROWS).collect();
    let mut weighted = named(names, &all);
    weighted.push(("w", all.iter().map(|n| weights(*n) as f64).collect()));
    let copies: Vec<usize> = all.iter().flat_map(|n| vec![*n; weights(*n)]).collect();
    let request = PointRequest::default();
    (
        Points::of_weighted(&table(&weighted), "w", &request).unwrap(),
        Points::of_table(&table(&named(names, &copies)), &request).unwrap(),
    )
}

fn fitted(settings: &Value, points: &Points) -> (PointsSummary, MixtureModel) {
    let request: MixtureRequest = serde_json::from_value(settings.clone()).unwrap();
    let (made, summary) = alone(|around| fit_mixture(&request, points, around)).unwrap();
    (summary, MixtureModel::decode(&made.kept).unwrap())
}

#[test]
fn a_weight_counts_copies_of_a_row() {
    let steep = json!({"tolerance": 1e-12, "starts": 6});
    let kinds = json!({"columns": ["visits=poisson", "smoker=bernoulli"]});
    for (names, settings, sizes) in [
        (&NAMES[..2], json!({"covariance": "full"}), &[1, 3][..]),
        (&NAMES[1..3], json!({"covariance": "tied"}), &[1, 3]),
        (&NAMES[..2], json!({"covariance": "diagonal"}), &[1, 3]),
        (&NAMES[..3], json!({"covariance": "spherical"}), &[1, 3]),
        (&NAMES[..], kinds, &[1, 3]),
        (&NAMES[2..3], json!({"kind": "student_t"}), &[1, 3]),
        (&NAMES[2..3], json!({"kind": "negative_binomial"}), &[1]),
        (&NAMES[2..], json!({"kind": "multinomial"}), &[1]),
        (&NAMES[3..], json!({"kind": "bernoulli"}), &[1]),
    ] {
        let (weighted, copies) = both(names, |n| n * 7 % 4);
        for components in sizes {
            let mut settings = settings.clone();
            settings["components"] = (*components).into();
            settings["points"] = steep.clone();
            let (one, model) = fitted(&settings, &weighted);
            let (other, repeated) = fitted(&settings, &copies);
            let (x, y) = (one.elbo.unwrap(), other.elbo.unwrap());
            assert!((x - y).abs() < 1e-6 * y.abs(), "{settings}: {x} {y}");
            let plain = |summary: &PointsSummary| {
                let baseline = summary.judgement.baseline.as_ref();
                baseline.map_or(0.0, |baseline| baseline.score)
            };
            let (x, y) = (plain(&one), plain(&other));
            assert!((x - y).abs() <= 1e-9 * y.abs(), "{settings}: {x} {y}");
            let (x, y) = (model.explain(&copies), repeated.explain(&copies));
            for (x, y) in x.unwrap().bounds.iter().zip(y.unwrap().bounds) {
                assert!((x - y).abs() < 1e-3, "{settings}: {x} {y}");
            }
        }
    }
}

#[test]
fn weights_are_checked() {
    let of = |weights: Vec<f64>| {
        let mut columns = named(&NAMES[..2], &[0, 1, 2]);
        columns.push(("w", weights));
        let read = Points::of_weighted(&table(&columns), "w", &PointRequest::default());
        read.unwrap_err().to_string()
    };
    assert!(of(vec![1.0, -1.0, 2.0]).contains("row 2: the weight is -1"));
    assert!(of(vec![1.0, 2.0, f64::NAN]).contains("row 3: the weight is NaN"));
    assert!(of(vec![0.0; 3]).contains("every weight is 0"));
    let (points, _) = both(&NAMES[1..2], |_| 1);
    let request: MixtureRequest =
        serde_json::from_value(json!({"components": 2, "points": {"temper": "global"}})).unwrap();
    let refused = alone(|around| fit_mixture(&request, &points, around));
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("rows without weights"), "{error}");
}
