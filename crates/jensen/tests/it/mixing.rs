//! Tests of Dirichlet processes, of columns with latent scales and of known states in tables.
#![cfg(feature = "full")]

use jensen::data::{Cells, Column, Table};
use jensen::math::rng::{Purpose, Stream};
use jensen::math::special::inv_phi;
use jensen::points::{
    ChainsRequest, ColumnDistribution, Emission, MixtureModel, MixtureRequest, Parts, PointRequest,
    Points, Sequences, fit_chains, fit_mixture,
};
use serde_json::{Value, json};

use crate::common::alone;

fn table(columns: &[(&str, Vec<f64>)]) -> Table {
    let columns = columns.iter().cloned();
    let columns = columns.map(|(name, x)| Column::new(name, Cells::Numbers(x)));
    Table::new("memory", columns.collect()).unwrap()
}

fn points(columns: &[(&str, Vec<f64>)]) -> Points {
    Points::of_table(&table(columns), &PointRequest::default()).unwrap()
}

fn stream(lane: u64) -> Stream {
    Stream::new(12, Purpose::new("tests of mixing"), 0, lane)
}

#[test]
fn a_process_finds_planted_clusters_and_empties_the_other_components() {
    let mut s = stream(0);
    let centres = [(0.0, 0.0), (9.0, 1.0), (-8.0, 4.0), (2.0, -9.0)];
    let rows: Vec<(f64, f64)> = (0..400)
        .map(|n| {
            let (x, y) = centres[[0, 0, 0, 1, 1, 2, 2, 3][n % 8]];
            (x + inv_phi(s.uniform()), y + inv_phi(s.uniform()))
        })
        .collect();
    let data = points(&[
        ("x", rows.iter().map(|row| 1e5 + row.0).collect()),
        ("y", rows.iter().map(|row| 1e-3 * row.1).collect()),
    ]);
    let request: MixtureRequest =
        serde_json::from_value(json!({"components": 15, "mixing": "process"})).unwrap();
    let (made, summary) = alone(|around| fit_mixture(&request, &data, around)).unwrap();
    assert!(
        summary.judgement.trusted,
        "{:?}",
        summary.judgement.warnings
    );
    assert_eq!(summary.occupied, Some(4));
    let Parts::Components(found) = &summary.parts else {
        panic!()
    };
    assert_eq!(found.len(), 15);
    for (component, share) in found.iter().zip([0.375, 0.25, 0.25, 0.125]) {
        assert!((component.weight() - share).abs() < 0.01);
    }
    let seen = MixtureModel::decode(&made.kept)
        .unwrap()
        .explain(&data)
        .unwrap();
    let first = seen.assignments.chunks(15).enumerate();
    let right = first.filter(|(n, p)| (p[0] > 0.5) == (n % 8 < 3)).count();
    assert!(right > 396, "{right}");
    let several: MixtureRequest =
        serde_json::from_value(json!({"components": "1..5", "mixing": "process"})).unwrap();
    let refused = alone(|around| fit_mixture(&several, &data, around));
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("use --components 5"), "{error}");
}

/// Returns steps in two states, each kept for twenty steps, with a heavy-tailed number and a count with much spread.
fn steps() -> (Vec<f64>, Vec<f64>, Vec<usize>) {
    let mut s = stream(1);
    let states: Vec<usize> = (0..400).map(|n| n / 20 % 2).collect();
    let numbers = states.iter().map(|state| {
        // Student's t with two degrees of freedom has a closed quantile function.
        let p = s.uniform();
        let t = (2.0 * p - 1.0) / (2.0 * p * (1.0 - p)).sqrt();
        [0.0, 5.0][*state] + t
    });
    let numbers = numbers.collect();
    let counts = states.iter().map(|state| {
        // A geometric distribution is negative binomial with shape 1.
        let mean = [2.0, 20.0][*state];
        let p = 1.0 / (1.0 + mean);
        (s.uniform().ln() / f64::ln(1.0 - p)).floor()
    });
    (numbers, counts.collect(), states)
}

fn chain(settings: &Value, data: &Points) -> (Vec<ColumnDistribution>, f64) {
    let request: ChainsRequest = serde_json::from_value(settings.clone()).unwrap();
    let rows = data.count();
    let (_, summary) = alone(|around| fit_chains(&request, data, &[rows], around)).unwrap();
    assert!(
        summary.judgement.trusted,
        "{settings}: {:?}",
        summary.judgement.warnings
    );
    let Parts::Chain(chain) = &summary.parts else {
        panic!()
    };
    let mut columns: Vec<ColumnDistribution> = Vec::new();
    for emission in &chain.emissions {
        let Emission::Columns { columns: own, .. } = emission else {
            panic!()
        };
        columns.push(own[0].distribution.clone());
    }
    columns.sort_by(|a, b| a.value().total_cmp(&b.value()));
    (columns, summary.elbo.unwrap())
}

#[test]
fn heavy_tails_and_spread_counts_have_their_emissions() {
    let (numbers, counts, _) = steps();
    let of_numbers = points(&[("x", numbers.clone())]);
    let (found, elbo) = chain(&json!({"states": 2, "emissions": "student_t"}), &of_numbers);
    for (column, truth) in found.iter().zip([0.0, 5.0]) {
        let ColumnDistribution::Student {
            mean,
            scale,
            degrees_of_freedom,
        } = column
        else {
            panic!()
        };
        assert!((mean - truth).abs() < 0.4, "{mean}");
        assert!((0.7..1.4).contains(scale), "{scale}");
        assert!(
            (1.3..3.5).contains(degrees_of_freedom),
            "{degrees_of_freedom}"
        );
    }
    let normal = json!({"states": 2, "columns": ["x=gaussian"]});
    let request: ChainsRequest = serde_json::from_value(normal).unwrap();
    let fit = alone(|around| fit_chains(&request, &of_numbers, &[400], around)).unwrap();
    assert!(elbo > fit.1.elbo.unwrap() + 50.0);
    // A change of units changes the bound by the log-Jacobian.
    let moved = points(&[("x", numbers.iter().map(|x| 1e4 - 20.0 * x).collect())]);
    let (_, other) = chain(&json!({"states": 2, "emissions": "student_t"}), &moved);
    assert!((other + 400.0 * f64::ln(20.0) - elbo).abs() < 1e-3);
    let of_counts = points(&[("n", counts)]);
    let settings = json!({"states": 2, "emissions": "negative_binomial"});
    let (found, elbo) = chain(&settings, &of_counts);
    for (column, truth) in found.iter().zip([2.0, 20.0]) {
        let ColumnDistribution::NegativeBinomial { rate, shape } = column else {
            panic!()
        };
        assert!((rate / truth - 1.0).abs() < 0.3, "{rate}");
        assert!((0.6..1.7).contains(shape), "{shape}");
    }
    let (_, poisson) = chain(&json!({"states": 2, "emissions": "poisson"}), &of_counts);
    assert!(elbo > poisson + 200.0, "{elbo} {poisson}");
}

#[test]
fn known_states_name_the_states_and_are_kept() {
    let (_, counts, states) = steps();
    let word = |n: usize| match n % 10 {
        3 => Some(["quiet", "busy"][states[n]].to_owned()),
        _ => None,
    };
    let sequence: Vec<f64> = (0..400).map(|n| (n % 2) as f64).collect();
    let columns = vec![
        Column::new("n", Cells::Numbers(counts)),
        Column::new("phase", Cells::Words((0..400).map(word).collect())),
        Column::new("of", Cells::Numbers(sequence)),
    ];
    let data = Table::new("memory", columns).unwrap();
    let request: ChainsRequest = serde_json::from_value(json!({
        "states": 2,
        "emissions": "poisson",
        "sequence": "of",
        "labels": "phase",
    }))
    .unwrap();
    let found = Sequences::of_labelled(&data, Some("of"), "phase", &request.points).unwrap();
    let fit = alone(|around| fit_chains(&request, &found.points, &found.lengths, around));
    let (_, summary) = fit.unwrap();
    let Parts::Chain(chain) = &summary.parts else {
        panic!()
    };
    assert_eq!(chain.labels, ["busy", "quiet"]);
    assert!(chain.emissions[0].values()[0] > chain.emissions[1].values()[0] + 5.0);
    assert!(
        summary
            .judgement
            .baseline
            .unwrap()
            .model
            .contains("known state")
    );
    let one = ChainsRequest {
        states: Some("1".parse().unwrap()),
        ..request
    };
    let refused = alone(|around| fit_chains(&one, &found.points, &found.lengths, around));
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("has the known state 2"), "{error}");
}
