//! Compares posterior moments with exact methods, which are quadrature and long chains (stored together with their
//! origin).

use jensen_latent::{
    Covariance, Dense, Design, Fit, LatentModel, Likelihood, Observations, Settings, SiteBound,
    Structure, fit,
};
use jensen_run::{Budget, Control, Identity, Silent};
use serde::Deserialize;

fn solved(model: &LatentModel) -> Fit {
    let clock = || 0.0;
    let mut silent = Silent;
    let mut control = Control::new(Budget::iterations(500), &clock, &mut silent);
    let identity = Identity {
        algorithm: "moments".to_owned(),
        settings: serde_json::Value::Null,
        seed: 0,
        model_hash: String::new(),
        data_hash: String::new(),
        simd: String::new(),
    };
    let settings = Settings::default();
    let fit = fit(model, &settings, None, false, &identity, &mut control).unwrap();
    assert!(fit.status.is_converged(), "{}", fit.status);
    fit
}

fn model(likelihood: Likelihood, covariance: Dense, response: Vec<f64>) -> LatentModel {
    LatentModel {
        prior: Structure {
            mean: vec![0.0; response.len()],
            covariance: Covariance::Dense(covariance),
        },
        design: Design::Identity,
        likelihood,
        bound: SiteBound::Exact,
        observations: Observations::new(response),
    }
}

#[derive(Deserialize)]
struct Reference {
    models: Vec<Chain>,
}

#[derive(Deserialize)]
struct Chain {
    likelihood: String,
    covariance: Vec<f64>,
    response: Vec<f64>,
    mean: Vec<f64>,
    sd: Vec<f64>,
    se: Vec<f64>,
}

/// Compares moments with those of long chains. The Gaussian that maximises the bound is not the posterior, so means may
/// differ by a tenth of a standard deviation. Standard deviations, which the Gaussian understates, may be a tenth too
/// small or a twentieth too large.
#[test]
fn moments_are_those_of_long_chains() {
    let reference: Reference = serde_json::from_str(include_str!("../moments.json")).unwrap();
    assert_eq!(reference.models.len(), 4);
    for chain in reference.models {
        let likelihood = match chain.likelihood.as_str() {
            "bernoulli" => Likelihood::bernoulli(),
            "poisson" => Likelihood::poisson(),
            "stochastic-volatility" => Likelihood::stochastic_volatility(),
            _ => Likelihood::student_t(4.0, 0.5),
        };
        let n = chain.response.len();
        let covariance = Dense {
            rows: n,
            cols: n,
            data: chain.covariance,
        };
        let fit = solved(&model(likelihood, covariance, chain.response));
        for i in 0..n {
            let off = (fit.mean[i] - chain.mean[i]).abs();
            let ratio = fit.variance[i].sqrt() / chain.sd[i];
            assert!(
                off <= 0.1 * chain.sd[i] + 4.0 * chain.se[i],
                "{} {i}: mean {} against {} ± {}, sd {}",
                chain.likelihood,
                fit.mean[i],
                chain.mean[i],
                chain.se[i],
                chain.sd[i]
            );
            assert!(
                (0.9..1.05).contains(&ratio),
                "{} {i}: sd {} against {}",
                chain.likelihood,
                fit.variance[i].sqrt(),
                chain.sd[i]
            );
        }
    }
}

/// Computes the means and standard deviations of two latent variables by the trapezoidal rule over nine prior standard
/// deviations.
fn by_quadrature(covariance: &Dense, log_density: impl Fn(usize, f64) -> f64) -> [(f64, f64); 2] {
    let (a, b, c) = (
        covariance.get(0, 0),
        covariance.get(0, 1),
        covariance.get(1, 1),
    );
    let determinant = a * c - b * b;
    let steps = 600;
    let at =
        |i: usize, variance: f64| 9.0 * variance.sqrt() * (2.0 * i as f64 / steps as f64 - 1.0);
    let mut sums = [0.0; 5];
    for i in 0..=steps {
        for j in 0..=steps {
            let (x, y) = (at(i, a), at(j, c));
            let prior = -0.5 * (c * x * x - 2.0 * b * x * y + a * y * y) / determinant;
            let weight = (prior + log_density(0, x) + log_density(1, y)).exp();
            for (sum, value) in sums.iter_mut().zip([1.0, x, y, x * x, y * y]) {
                *sum += weight * value;
            }
        }
    }
    let moments = |k: usize| {
        let mean = sums[1 + k] / sums[0];
        (mean, (sums[3 + k] / sums[0] - mean * mean).sqrt())
    };
    [moments(0), moments(1)]
}

#[test]
fn moments_are_those_of_quadrature() {
    let covariance = Dense::from_fn(2, 2, |i, j| if i == j { 1.5 } else { 1.0 });
    let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
    // Each row contains the likelihood, the responses, the log density of a response at a predictor, and the allowed
    // errors of means and of standard deviations.
    type Density = fn(f64, f64, &dyn Fn(f64) -> f64) -> f64;
    let cases: [(Likelihood, [f64; 2], Density, f64, f64); 6] = [
        (
            Likelihood::gaussian(0.4),
            [0.7, -0.2],
            |y, x, _| -0.5 * (y - x).powi(2) / 0.4,
            1e-7,
            1e-7,
        ),
        (
            Likelihood::bernoulli(),
            [1.0, 1.0],
            |y, x, softplus| y * x - softplus(x),
            0.05,
            0.03,
        ),
        (
            Likelihood::poisson(),
            [2.0, 0.0],
            |y, x, _| y * x - x.exp(),
            0.05,
            0.05,
        ),
        (
            Likelihood::exponential(),
            [0.6, 2.3],
            |y, x, _| -x - y * (-x).exp(),
            0.05,
            0.05,
        ),
        (
            Likelihood::stochastic_volatility(),
            [0.6, -1.3],
            |y, x, _| -0.5 * x - 0.5 * y * y * (-x).exp(),
            0.08,
            0.08,
        ),
        (
            Likelihood::negative_binomial(2.0),
            [3.0, 1.0],
            |y, x, softplus| y * x - (y + 2.0) * softplus(x - 2.0_f64.ln()),
            0.05,
            0.05,
        ),
    ];
    for (likelihood, response, density, by_mean, by_sd) in cases {
        let exact = by_quadrature(&covariance, |i, x| density(response[i], x, &softplus));
        let fit = solved(&model(likelihood, covariance.clone(), response.to_vec()));
        for (k, (mean, sd)) in exact.into_iter().enumerate() {
            let off = (fit.mean[k] - mean).abs() / sd;
            let ratio = fit.variance[k].sqrt() / sd;
            assert!(
                off <= by_mean && (ratio - 1.0).abs() <= by_sd,
                "{likelihood:?} {k}: mean {} against {mean}, sd {} against {sd}",
                fit.mean[k],
                fit.variance[k].sqrt()
            );
        }
    }
}
