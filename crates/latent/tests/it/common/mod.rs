//! Small models that several tests use.

// Each test file uses only a part of this module.
#![allow(dead_code)]

use std::time::Instant;

use jensen_latent::{
    Covariance, Dense, Design, Error, Fit, LatentModel, Likelihood, Observations, Precision,
    Response, Settings, SiteBound, Size, Sparse, Structure, fit,
};
use jensen_run::{Budget, Control, Identity, Silent};

pub fn run(model: &LatentModel, settings: &Settings) -> Result<Fit, Error> {
    let start = Instant::now();
    let clock = || start.elapsed().as_secs_f64();
    let mut silent = Silent;
    let mut control = Control::new(Budget::iterations(5000), &clock, &mut silent);
    fit(model, settings, None, true, &identity(), &mut control)
}

pub fn identity() -> Identity {
    Identity {
        algorithm: "test".to_owned(),
        settings: serde_json::Value::Null,
        seed: 0,
        model_hash: String::new(),
        data_hash: String::new(),
        simd: String::new(),
    }
}

pub fn tight() -> Settings {
    Settings {
        tolerance: 1e-10,
        ..Settings::default()
    }
}

pub fn converged(model: &LatentModel) -> Fit {
    let fit = run(model, &tight()).unwrap_or_else(|e| panic!("{e}"));
    assert!(fit.status.is_converged(), "{}", fit.status);
    if let Some(gap) = fit.gap {
        assert!((0.0..=1e-10).contains(&gap));
    }
    fit
}

/// Returns pseudo-random numbers in (0, 1).
pub fn noise(i: usize) -> f64 {
    ((i + 1) as f64 * 0.754_877_666_246_69).fract()
}

/// Returns a response inside the domain of the likelihood.
pub fn response(likelihood: Likelihood, i: usize) -> f64 {
    let u = noise(3 * i + 1);
    let categories = likelihood.categories().unwrap_or(1);
    match likelihood.response() {
        Response::Number => 3.0 * u - 1.5,
        Response::Count => (4.0 * u * u).floor(),
        Response::Binary => f64::from(u > 0.4),
        Response::Trials => (5.0 * u).floor(),
        Response::Positive => 0.2 + 2.0 * u,
        Response::NonNegative => (3.0 * u - 1.0).max(0.0),
        Response::Share => 0.05 + 0.9 * u,
        Response::Level => (2.9 * u).floor(),
        Response::Category => ((i * 5) % (categories + 4) % categories) as f64,
    }
}

fn size(likelihood: Likelihood, i: usize) -> f64 {
    match likelihood.sized_by() {
        Size::One => 1.0,
        Size::Exposure => 0.5 + noise(i),
        Size::Trials => 6.0,
        Size::Sd => 0.4 + noise(3 * i),
        Size::Event => f64::from(i % 3 != 1),
        // Observed, right-censored, and in narrow and wide intervals.
        Size::Until => match i % 4 {
            0 => response(likelihood, i) + 1e-4,
            1 => f64::INFINITY,
            2 => response(likelihood, i).max(0.2),
            _ => 2.0 * response(likelihood, i) + 0.3,
        },
    }
}

pub fn observations(likelihood: Likelihood, n: usize) -> Observations {
    Observations {
        response: (0..n).map(|i| response(likelihood, i)).collect(),
        size: Some((0..n).map(|i| size(likelihood, i)).collect()),
        offset: Some(
            (0..n * likelihood.predictors())
                .map(|i| 0.3 * noise(7 * i))
                .collect(),
        ),
    }
}

pub fn kernel(n: usize) -> Dense {
    Dense::from_fn(n, n, |i, j| {
        let d = (i as f64 - j as f64) / 3.0;
        1.5 * (-0.5 * d * d).exp() + if i == j { 0.05 } else { 0.0 }
    })
}

pub fn model(likelihood: Likelihood, bound: SiteBound, n: usize) -> LatentModel {
    let rows = n * likelihood.predictors();
    LatentModel {
        prior: Structure {
            mean: (0..rows).map(|i| 0.2 * noise(i)).collect(),
            covariance: Covariance::Dense(kernel(rows)),
        },
        design: Design::Identity,
        likelihood,
        bound,
        observations: observations(likelihood, n),
    }
}

/// Converts the dense covariance of a prior to a sparse precision. The design does not change.
pub fn as_precision(model: &LatentModel) -> LatentModel {
    let mut model = model.clone();
    if let Covariance::Dense(sigma) = &model.prior.covariance {
        let n = sigma.rows;
        let inverse = invert(sigma);
        let mut triplets = Vec::new();
        for j in 0..n {
            for i in 0..n {
                triplets.push((i, j, 0.5 * (inverse.get(i, j) + inverse.get(j, i))));
            }
        }
        model.prior.covariance = Covariance::Precision(Precision {
            matrix: Sparse::from_triplets(n, n, &triplets).unwrap(),
            null_space: None,
            log_determinant: None,
        });
    }
    model
}

/// Inverts a small matrix by Gauss–Jordan elimination.
pub fn invert(a: &Dense) -> Dense {
    let n = a.rows;
    let mut work = a.clone();
    let mut out = Dense::from_fn(n, n, |i, j| f64::from(i == j));
    for k in 0..n {
        let pivot = work.get(k, k);
        for j in 0..n {
            work.data[j * n + k] /= pivot;
            out.data[j * n + k] /= pivot;
        }
        for i in (0..n).filter(|i| *i != k) {
            let factor = work.get(i, k);
            for j in 0..n {
                work.data[j * n + i] -= factor * work.data[j * n + k];
                out.data[j * n + i] -= factor * out.data[j * n + k];
            }
        }
    }
    out
}

pub fn close(what: &str, a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!(
            (a - b).abs() <= tolerance * (1.0 + a.abs()),
            "{what}, element {i}: {a} and {b}"
        );
    }
}

/// Returns a random-walk field with an intercept, slopes and missing cells. Each row of its sparse design refers to
/// several latent variables.
pub fn field(n: usize) -> (LatentModel, LatentModel) {
    let mut triplets = Vec::new();
    for i in 0..n {
        triplets.push((i, i, 0.3));
        if i + 1 < n {
            for (a, b, x) in [
                (i, i, 2.0),
                (i + 1, i + 1, 2.0),
                (i, i + 1, -2.0),
                (i + 1, i, -2.0),
            ] {
                triplets.push((a, b, x));
            }
        }
    }
    for l in 0..3 {
        triplets.push((n + l, n + l, 0.01));
    }
    let matrix = Sparse::from_triplets(n + 3, n + 3, &triplets).unwrap();
    let mut dense = Dense::zeros(n + 3, n + 3);
    for j in 0..n + 3 {
        let (rows, values) = matrix.col(j);
        for (&i, &x) in rows.iter().zip(values) {
            dense.data[j * (n + 3) + i] = x;
        }
    }
    let mut design = Vec::new();
    let cells: Vec<usize> = (0..n).filter(|i| i % 5 != 2).collect();
    for (row, &i) in cells.iter().enumerate() {
        design.push((row, i, 1.0));
        design.push((row, n, 1.0));
        design.push((row, n + 1, noise(i)));
        design.push((row, n + 2, 10.0 * noise(3 * i)));
    }
    let rows = cells.len();
    let sparse = LatentModel {
        prior: Structure {
            mean: vec![0.0; n + 3],
            covariance: Covariance::Precision(Precision {
                matrix,
                null_space: None,
                log_determinant: None,
            }),
        },
        design: Design::Sparse(Sparse::from_triplets(rows, n + 3, &design).unwrap()),
        likelihood: Likelihood::poisson(),
        bound: SiteBound::Exact,
        observations: Observations::new(
            (0..rows)
                .map(|i| response(Likelihood::poisson(), i))
                .collect(),
        ),
    };
    let mut same = sparse.clone();
    same.prior.covariance = Covariance::Dense(invert(&dense));
    (sparse, same)
}
