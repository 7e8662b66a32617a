//! Tests joint draws. The differences between them must have the variances that are predicted for differences.

use crate::common::{as_precision, converged, kernel, model};
use jensen_latent::{
    Covariance, Dense, Design, LatentModel, Likelihood, Query, SiteBound, Sparse, draw, predict,
};

const DRAWS: usize = 20_000;

fn numbers(draws: usize) -> Vec<u64> {
    (0..draws as u64).collect()
}

fn difference(draws: &[f64], locations: usize, (a, b): (usize, usize)) -> (f64, f64) {
    let differences: Vec<f64> = draws.chunks(locations).map(|d| d[a] - d[b]).collect();
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let square: f64 = differences.iter().map(|d| (d - mean).powi(2)).sum();
    (mean, square / n)
}

fn agree(what: &str, found: (f64, f64), expected: (f64, f64)) {
    let n = DRAWS as f64;
    let (mean, variance) = expected;
    assert!(
        (found.0 - mean).abs() < 4.0 * (variance / n).sqrt() + 1e-9,
        "{what}: mean {} and {mean}",
        found.0
    );
    assert!(
        (found.1 / variance - 1.0).abs() < 4.0 * (2.0 / n).sqrt() + 1e-3,
        "{what}: variance {} and {variance}",
        found.1
    );
}

/// Returns models in every regime of the linear algebra, and a model whose bound couples the predictors of an
/// observation.
fn models() -> Vec<(&'static str, LatentModel)> {
    let wide = model(Likelihood::poisson(), SiteBound::Exact, 7);
    let mut narrow = model(Likelihood::poisson(), SiteBound::Exact, 14);
    narrow.prior.covariance = Covariance::Dense(kernel(7));
    narrow.prior.mean.truncate(7);
    narrow.design = Design::Select((0..14).map(|i| i / 2).collect());
    let coupled = model(Likelihood::multinomial(3), SiteBound::Exact, 5);
    vec![
        ("sparse", as_precision(&wide)),
        ("wide", wide),
        ("narrow", narrow),
        ("coupled", coupled),
    ]
}

#[test]
fn rows_are_drawn_together() {
    for (name, model) in models() {
        let warm = converged(&model).warm();
        let latents = model.prior.len();
        let rows = Query::Rows(Design::Select((0..latents).collect()));
        let draws = draw(&model, &warm, &rows, None, &numbers(DRAWS), 3).unwrap();
        assert_eq!(draws.len(), DRAWS * latents);
        for (a, b) in [(0, 1), (1, 4), (3, latents - 1)] {
            let of_difference =
                Sparse::from_triplets(1, latents, &[(0, a, 1.0), (0, b, -1.0)]).unwrap();
            let query = Query::Rows(Design::Sparse(of_difference));
            let expected = predict(&model, &warm, &query).unwrap()[0];
            agree(name, difference(&draws, latents, (a, b)), expected);
        }
        // A draw does not depend on later draws.
        let few = draw(&model, &warm, &rows, None, &numbers(3), 3).unwrap();
        assert_eq!(few, draws[..3 * latents]);
    }
}

#[test]
fn new_locations_of_a_process_are_drawn_together() {
    // Two of the locations are between the old ones, and the other two are far from all old ones.
    let locations = [0.5, 1.25, 9.0, 9.5];
    let k = |a: f64, b: f64| 1.5 * (-0.5 * ((a - b) / 3.0).powi(2)).exp();
    let joint = Dense::from_fn(4, 4, |i, j| k(locations[i], locations[j]));
    for (name, model) in models() {
        if name == "sparse" || name == "coupled" {
            continue;
        }
        let warm = converged(&model).warm();
        let latents = model.prior.len();
        let query = Query::Cross {
            covariance: Dense::from_fn(4, latents, |i, l| k(locations[i], l as f64)),
            variance: vec![1.5; 4],
            mean: vec![0.0; 4],
        };
        let draws = draw(&model, &warm, &query, Some(&joint), &numbers(DRAWS), 5).unwrap();
        for (a, b) in [(0, 1), (1, 2), (2, 3)] {
            let query = Query::Cross {
                covariance: Dense::from_fn(1, latents, |_, l| {
                    k(locations[a], l as f64) - k(locations[b], l as f64)
                }),
                variance: vec![3.0 - 2.0 * joint.get(a, b)],
                mean: vec![0.0],
            };
            let expected = predict(&model, &warm, &query).unwrap()[0];
            agree(name, difference(&draws, 4, (a, b)), expected);
        }
        assert!(draw(&model, &warm, &query, None, &[0], 5).is_err());
    }
}
