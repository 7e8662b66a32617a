//! Tests of tables whose columns contain counts, categories and numbers.
#![cfg(feature = "full")]

use jensen::data::{Cells, Column, Table};
use jensen::math::rng::{Purpose, Stream};
use jensen::math::special::{inv_phi, lgamma};
use jensen::points::{
    ChainsRequest, ColumnDistribution, Component, Emission, Globals, MixtureModel, MixtureRequest,
    Parts, PointRequest, Points, explain_chains, fit_chains, fit_mixture,
};
use serde_json::json;

use crate::common::alone;

const ROWS: usize = 120;

/// Creates steps that alternate between two states in runs of thirty. Each step has a number, a count and one of three
/// categories.
fn columns() -> [Vec<f64>; 3] {
    let mut stream = Stream::new(5, Purpose::new("tables of several kinds"), 0, 0);
    let mut poisson = |rate: f64| {
        // This loop draws a Poisson variable by inversion.
        let (mut left, mut x, mut p) = (stream.uniform(), 0.0, (-rate).exp());
        while left > p && x < 1000.0 {
            left -= p;
            x += 1.0;
            p *= rate / x;
        }
        x
    };
    let busy = |n: usize| n / 30 % 2 == 1;
    let counts = (0..ROWS)
        .map(|n| poisson(if busy(n) { 8.0 } else { 2.0 }))
        .collect();
    let mut stream = Stream::new(6, Purpose::new("tables of several kinds"), 0, 0);
    let numbers = (0..ROWS)
        .map(|n| 1e6 + f64::from(u8::from(busy(n))) + inv_phi(stream.uniform()))
        .collect();
    let category = |n: usize| match stream.uniform() {
        u if u < 0.2 => 10.0,
        u if u < 0.3 || busy(n) => 20.0,
        _ => 35.0,
    };
    [numbers, counts, (0..ROWS).map(category).collect()]
}

fn table(names: &[&str], columns: &[&Vec<f64>]) -> Table {
    let named = names.iter().zip(columns);
    let columns = named.map(|(name, x)| Column::new(*name, Cells::Numbers((*x).clone())));
    Table::new("memory", columns.collect()).unwrap()
}

fn points(names: &[&str], columns: &[&Vec<f64>]) -> Points {
    Points::of_table(&table(names, columns), &PointRequest::default()).unwrap()
}

fn all(columns: &[Vec<f64>; 3]) -> Points {
    let [a, b, c] = columns;
    points(&["temperature", "visits", "city"], &[a, b, c])
}

fn mixture(components: &str) -> MixtureRequest {
    serde_json::from_value(json!({
        "components": components,
        "columns": ["visits=poisson", "city=categorical"],
    }))
    .unwrap()
}

#[test]
fn the_bound_of_one_component_is_the_evidence() {
    let columns = columns();
    let elbo = |request: &MixtureRequest, points: &Points| {
        let fit = alone(|around| fit_mixture(request, points, around)).unwrap();
        fit.1.elbo.unwrap()
    };
    let together = elbo(&mixture("1"), &all(&columns));
    let numbers: MixtureRequest =
        serde_json::from_value(json!({"components": 1, "covariance": "diagonal"})).unwrap();
    let of_numbers = elbo(&numbers, &points(&["temperature"], &[&columns[0]]));
    // The marginal distribution of the counts is negative binomial, because the rate has the prior Gamma(1/2, 1/(2 ·
    // mean)).
    let n = ROWS as f64;
    let total: f64 = columns[1].iter().sum();
    let (a, b) = (0.5, 0.5 * n / total);
    let factorials: f64 = columns[1].iter().map(|x| lgamma(x + 1.0)).sum();
    let of_counts =
        a * f64::ln(b) - lgamma(a) + lgamma(a + total) - (a + total) * (b + n).ln() - factorials;
    // The marginal distribution of the categories is that of Pólya's urn with the prior Dirichlet(1/2, 1/2, 1/2).
    let of_level = |level: f64| columns[2].iter().filter(|x| **x == level).count() as f64;
    let urns = [10.0, 20.0, 35.0].map(|level| lgamma(0.5 + of_level(level)) - lgamma(0.5));
    let of_categories = lgamma(1.5) - lgamma(1.5 + n) + urns.iter().sum::<f64>();
    let exact = of_numbers + of_counts + of_categories;
    assert!((together - exact).abs() < 1e-6, "{together} {exact}");
}

#[test]
fn mixtures_and_chains_of_several_kinds_find_their_groups() {
    let columns = columns();
    let points = all(&columns);
    let (made, summary) = alone(|around| fit_mixture(&mixture("1..4"), &points, around)).unwrap();
    assert!(
        summary.judgement.trusted,
        "{:?}",
        summary.judgement.warnings
    );
    let Parts::Components(found) = &summary.parts else {
        panic!()
    };
    assert_eq!(found.len(), 2);
    for component in found {
        let Component::Columns { columns, .. } = component else {
            panic!()
        };
        assert!(
            matches!(columns[0].distribution, ColumnDistribution::Gaussian { mean, .. } if (mean - 1e6).abs() < 2.0)
        );
        let ColumnDistribution::Categorical { categories, .. } = &columns[2].distribution else {
            panic!()
        };
        assert_eq!(categories, &[10.0, 20.0, 35.0]);
    }
    let model = MixtureModel::decode(&made.kept).unwrap();
    let seen = model.explain(&points).unwrap();
    let busier = usize::from(found[1].values()[1] > found[0].values()[1]);
    let right = seen.assignments.chunks(2).enumerate();
    let right = right
        .filter(|(n, p)| (p[busier] > 0.5) == (n / 30 % 2 == 1))
        .count();
    assert!(right > 110, "{right}");

    let request: ChainsRequest = serde_json::from_value(json!({
        "states": "1..3",
        "columns": ["visits=poisson", "city=categorical"],
    }))
    .unwrap();
    let (made, summary) = alone(|around| fit_chains(&request, &points, &[ROWS], around)).unwrap();
    assert!(
        summary.judgement.trusted,
        "{:?}",
        summary.judgement.warnings
    );
    let Parts::Chain(chain) = &summary.parts else {
        panic!()
    };
    assert_eq!(chain.emissions.len(), 2);
    let rate = |emission: &Emission| emission.values()[1];
    let busy = usize::from(rate(&chain.emissions[1]) > rate(&chain.emissions[0]));
    assert!(
        (rate(&chain.emissions[busy]) - 8.0).abs() < 1.5
            && (rate(&chain.emissions[1 - busy]) - 2.0).abs() < 0.8
    );
    let globals = Globals::decode(&made.kept).unwrap();
    let seen = explain_chains(&request, &globals, &points, &[ROWS]).unwrap();
    let right = seen.assignments.chunks(2).enumerate();
    let right = right
        .filter(|(n, p)| (p[busy] > 0.5) == (n / 30 % 2 == 1))
        .count();
    assert!(right > 116, "{right}");
}

#[test]
fn values_that_a_column_cannot_have_are_named() {
    let [numbers, counts, cities] = columns();
    let request = mixture("2");
    let refused = |points: &Points| {
        let fit = alone(|around| fit_mixture(&request, points, around));
        fit.err().unwrap().to_string()
    };
    let mut wrong = counts.clone();
    wrong[3] = 1.5;
    let error = refused(&all(&[numbers.clone(), wrong, cities.clone()]));
    assert!(error.contains("the column `visits` has 1.5"), "{error}");
    let error = refused(&points(&["temperature", "city"], &[&numbers, &cities]));
    assert!(error.contains("there is no column `visits`"), "{error}");
    // The new rows contain a category that does not occur in the training rows.
    let here = all(&[numbers.clone(), counts.clone(), cities.clone()]);
    let made = alone(|around| fit_mixture(&request, &here, around)).unwrap();
    let mut other = cities;
    other[0] = 11.0;
    let model = MixtureModel::decode(&made.0.kept).unwrap();
    let error = model
        .explain(&all(&[numbers, counts, other]))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("the column `city` has 11, a category"),
        "{error}"
    );
}
