//! Predictions of observations from all others, compared with fits that lack the observation.

use jensen_latent::{
    Covariance, Design, LatentModel, Likelihood, Observations, Predictive, Query, SiteBound,
    Structure, left_out, predict,
};

use crate::common::{close, converged, kernel, response};

fn without(model: &LatentModel, i: usize) -> (f64, f64) {
    let n = model.observations.response.len();
    let rows: Vec<usize> = (0..n).filter(|k| *k != i).collect();
    let shorter = LatentModel {
        design: Design::Select(rows.clone()),
        observations: Observations::new(
            rows.iter()
                .map(|k| model.observations.response[*k])
                .collect(),
        ),
        ..model.clone()
    };
    let fit = converged(&shorter);
    predict(&shorter, &fit.warm(), &Query::Rows(Design::Identity)).unwrap()[i]
}

fn process(likelihood: Likelihood, n: usize) -> LatentModel {
    LatentModel {
        prior: Structure {
            mean: vec![0.3; n],
            covariance: Covariance::Dense(kernel(n)),
        },
        design: Design::Identity,
        likelihood,
        bound: SiteBound::Exact,
        observations: Observations::new((0..n).map(|i| response(likelihood, i)).collect()),
    }
}

/// With normal noise, every number has a closed form, even if the noise is a hundredth of what a row without its own
/// observation can vary.
#[test]
fn normal_noise_is_exact() {
    let n = 9;
    for variance in [0.4, 1e-4] {
        let likelihood = Likelihood::gaussian(variance);
        let model = process(likelihood, n);
        let fit = converged(&model);
        let normal = |y: f64, (m, v): (f64, f64)| {
            -0.5 * ((y - m).powi(2) / v + (2.0 * std::f64::consts::PI * v).ln())
        };
        for (i, found) in left_out(&model, &fit).unwrap().iter().enumerate() {
            let y = model.observations.response[i];
            let (m, v) = without(&model, i);
            close(
                "log density",
                &[found.log_density],
                &[normal(y, (m, v + variance))],
                1e-6,
            );
            let below = Predictive::new(likelihood, m, v.sqrt(), 1.0).distribution(y);
            close("below", &[found.below], &[below], 1e-6);
            let (m, v) = (fit.predictor_mean[i], fit.predictor_variance[i]);
            close(
                "fitted",
                &[found.fitted],
                &[normal(y, (m, v + variance))],
                1e-6,
            );
            close("share", &[found.share], &[v / variance], 1e-9);
            let mean = -0.5 * ((y - m).powi(2) + v) / variance
                - 0.5 * (2.0 * std::f64::consts::PI * variance).ln();
            close(
                "mean of the log density",
                &[found.log_moments[0]],
                &[mean],
                1e-8,
            );
            // The variance of a quadratic function of a normal variable.
            let spread = 0.5 * (v / variance).powi(2) + v * ((y - m) / variance).powi(2);
            let second = spread + mean * mean;
            close(
                "square of the log density",
                &[found.log_moments[1]],
                &[second],
                1e-8,
            );
        }
    }
}

/// For other likelihoods, predictions agree with fits that lack the observation up to the error of the Gaussian
/// approximation, which is largest for surprising observations: a twentieth of a log density plus 0.05 nats, a fiftieth of
/// their sum, and a twentieth of a probability.
#[test]
fn other_likelihoods_are_close_to_fits_without_the_observation() {
    let n = 12;
    for likelihood in [
        Likelihood::poisson(),
        Likelihood::bernoulli(),
        Likelihood::gamma(2.0),
        Likelihood::student_t(4.0, 0.5),
    ] {
        let model = process(likelihood, n);
        let fit = converged(&model);
        let (mut total, mut sum) = (0.0, 0.0);
        for (i, found) in left_out(&model, &fit).unwrap().iter().enumerate() {
            let y = model.observations.response[i];
            let (m, v) = without(&model, i);
            // A sum over a fine grid.
            let steps = 20_000;
            let grid = (0..steps).map(|k| 16.0 * (f64::from(k) + 0.5) / f64::from(steps) - 8.0);
            let (mut density, mut below) = (0.0, 0.0);
            for z in grid {
                let eta = m + v.sqrt() * z;
                let w = (-0.5 * z * z).exp() * 16.0
                    / f64::from(steps)
                    / (2.0 * std::f64::consts::PI).sqrt();
                let p = likelihood.log_density(eta, y, 1.0).exp();
                density += w * p;
                below += w * likelihood.distribution(eta, y, 1.0);
                if likelihood.name() == "poisson" {
                    below -= 0.5 * w * p;
                }
            }
            let name = format!("{}, observation {i}", likelihood.name());
            let off = (found.log_density - density.ln()).abs();
            assert!(off < 0.05 * (1.0 + density.ln().abs()), "{name}: {off}");
            total += found.log_density - density.ln();
            sum += density.ln();
            match likelihood.name() {
                "bernoulli" => assert!(found.below.is_nan()),
                _ => assert!(
                    (found.below - below).abs() < 0.05,
                    "{name}: {} and {below}",
                    found.below
                ),
            }
            assert!(found.fitted > found.log_density, "{name}");
        }
        assert!(
            total.abs() < 0.02 * sum.abs(),
            "{}: {total} of {sum}",
            likelihood.name()
        );
    }
}
