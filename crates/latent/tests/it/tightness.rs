//! Compares bounds with exact methods. Posterior moments come from long chains, and loose bounds must give messages.

use crate::common::{converged, identity, noise};
use jensen_latent::{
    Copies, Covariance, Dense, Design, Fit, LatentModel, Likelihood, Observations, Settings,
    SiteBound, Sparse, Structure, tightness,
};
use jensen_math::rng::{Purpose, Stream};

/// Returns a multinomial regression on an intercept and two covariates. The prior variance is 1, and the categories are
/// drawn from the model.
fn regression(categories: usize, n: usize, bound: SiteBound) -> LatentModel {
    let size = categories - 1;
    let covariates = |i: usize| [1.0, 2.0 * noise(3 * i) - 1.0, 2.0 * noise(7 * i + 2) - 1.0];
    let mut stream = Stream::new(11, Purpose::new("tightness data"), 0, 0);
    let effects: Vec<f64> = (0..3 * size)
        .map(|_| 2.0 * stream.uniform() - 1.0)
        .collect();
    let response = (0..n)
        .map(|i| {
            let weights: Vec<f64> = (0..size)
                .map(|k| {
                    (0..3)
                        .map(|l| covariates(i)[l] * effects[l * size + k])
                        .sum::<f64>()
                        .exp()
                })
                .chain([1.0])
                .collect();
            let mut u = stream.uniform() * weights.iter().sum::<f64>();
            weights
                .iter()
                .take_while(|w| {
                    u -= **w;
                    u > 0.0
                })
                .count() as f64
        })
        .collect();
    LatentModel {
        prior: Structure {
            mean: vec![0.0; 3 * size],
            covariance: Covariance::Diagonal(vec![1.0; 3 * size]),
        },
        design: Design::Dense(
            Dense::from_fn(n * size, 3 * size, |row, column| {
                match row % size == column % size {
                    true => covariates(row / size)[column / size],
                    false => 0.0,
                }
            })
            .into(),
        ),
        likelihood: Likelihood::multinomial(categories),
        bound,
        observations: Observations::new(response),
    }
}

/// Computes the means and standard deviations of the latent variables by elliptical slice sampling (Murray, Adams and
/// MacKay 2010).
fn chain(model: &LatentModel, sweeps: usize) -> Vec<(f64, f64)> {
    let (Design::Dense(w), Some(categories)) = (&model.design, model.likelihood.categories())
    else {
        panic!("another model");
    };
    let (latents, size) = (w.cols, categories - 1);
    let log_density = |z: &[f64]| -> f64 {
        let y = model.observations.response.iter().enumerate();
        y.map(|(i, y)| {
            let eta: Vec<f64> = (0..size)
                .map(|k| (0..latents).map(|l| w.get(i * size + k, l) * z[l]).sum())
                .collect();
            let total = 1.0 + eta.iter().map(|x| x.exp()).sum::<f64>();
            eta.get(*y as usize).copied().unwrap_or(0.0) - total.ln()
        })
        .sum()
    };
    let mut stream = Stream::new(5, Purpose::new("tightness chain"), 0, 0);
    let mut z = vec![0.0; latents];
    let mut at = log_density(&z);
    let mut sums = vec![(0.0, 0.0); latents];
    for sweep in 0..sweeps {
        let other: Vec<f64> = (0..latents)
            .map(|_| jensen_math::special::inv_phi(stream.uniform()))
            .collect();
        let level = at + stream.uniform().ln();
        let mut angle = 2.0 * std::f64::consts::PI * stream.uniform();
        let (mut low, mut high) = (angle - 2.0 * std::f64::consts::PI, angle);
        loop {
            let next: Vec<f64> = (z.iter().zip(&other))
                .map(|(z, o)| z * angle.cos() + o * angle.sin())
                .collect();
            let value = log_density(&next);
            if value > level {
                (z, at) = (next, value);
                break;
            }
            if angle < 0.0 {
                low = angle
            } else {
                high = angle
            }
            angle = low + (high - low) * stream.uniform();
        }
        if sweep >= sweeps / 20 {
            for (sum, z) in sums.iter_mut().zip(&z) {
                *sum = (sum.0 + z, sum.1 + z * z);
            }
        }
    }
    let n = (sweeps - sweeps / 20) as f64;
    sums.iter()
        .map(|(first, second)| (first / n, (second / n - (first / n).powi(2)).sqrt()))
        .collect()
}

fn sds(fit: &Fit) -> Vec<f64> {
    fit.variance.iter().map(|v| v.sqrt()).collect()
}

/// Under the exact expectation, standard deviations are within 5 % of those of the posterior. Under the log bound they
/// are far too small, and the fit reports this.
#[test]
fn multinomial_posteriors_are_as_wide_as_they_should_be() {
    for (categories, n, sweeps) in [(3, 60, 150_000), (5, 90, 150_000)] {
        let model = regression(categories, n, SiteBound::Exact);
        let reference = chain(&model, sweeps);
        let fit = converged(&model);
        for ((mean, sd), (m, s)) in reference.iter().zip(fit.mean.iter().zip(sds(&fit))) {
            assert!(
                (s / sd - 1.0).abs() < 0.05,
                "{categories}: {s} against {sd}"
            );
            assert!(
                (m - mean).abs() < 0.1 * sd,
                "{categories}: {m} against {mean}, {sd}"
            );
        }
        let tight = tightness(&model, &fit, &Settings::default())
            .unwrap()
            .unwrap();
        assert!(!tight.is_loose() && !tight.is_coarse(), "{tight:?}");
        let loose = regression(categories, n, SiteBound::Log);
        let loose_fit = converged(&loose);
        let reported = tightness(&loose, &loose_fit, &Settings::default())
            .unwrap()
            .unwrap();
        assert!(reported.is_loose() && reported.slack > 0.01, "{reported:?}");
        assert!(loose_fit.bound < fit.bound);
        let ratio = |a: &[f64], b: &[f64]| {
            let mut ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| (a / b).sqrt()).collect();
            ratios.sort_by(f64::total_cmp);
            ratios[ratios.len() / 2]
        };
        let seen = ratio(&loose_fit.predictor_variance, &fit.predictor_variance);
        assert!(
            (reported.sd_ratio - seen).abs() < 0.05,
            "{reported:?} against {seen}"
        );
    }
}

/// Fits a Gaussian process for the odds of each of four categories under the exact bound, in a dense and a sparse
/// regime. The fit starts at its optimum.
#[test]
fn exact_multinomial_fits_agree_across_regimes_and_with_themselves() {
    let model = crate::common::model(Likelihood::multinomial(4), SiteBound::Exact, 8);
    let dense = converged(&model);
    let sparse = converged(&crate::common::as_precision(&model));
    crate::common::close("bound", &[dense.bound], &[sparse.bound], 1e-6);
    crate::common::close("mean", &dense.mean, &sparse.mean, 1e-3);
    crate::common::close("variance", &dense.variance, &sparse.variance, 1e-3);
    assert_eq!(dense.predictor_mean.len(), 24);
    assert_eq!(dense.alpha.len(), 48);
    let clock = || 0.0;
    let mut silent = jensen_run::Silent;
    let mut control =
        jensen_run::Control::new(jensen_run::Budget::iterations(100), &clock, &mut silent);
    let warm = dense.warm();
    let again = jensen_latent::fit(
        &model,
        &Settings::default(),
        Some(&warm),
        false,
        &identity(),
        &mut control,
    )
    .unwrap();
    assert!(again.iterations <= 3, "{}", again.iterations);
    let rows = jensen_latent::Query::Rows(Design::Identity);
    let predicted = jensen_latent::predict(&model, &warm, &rows).unwrap();
    for ((m, v), (mean, variance)) in predicted.iter().zip(dense.mean.iter().zip(&dense.variance)) {
        assert!((m - mean).abs() < 1e-8 && (v - variance).abs() < 1e-8);
    }
}

/// The weights of all categories are the same, which the design may state or not.
#[test]
fn copies_of_a_design_give_the_fit_of_the_explicit_matrix() {
    let one = Dense::from_fn(90, 3, |n, l| [1.0, (n % 7) as f64 - 3.0, (n % 4) as f64][l]);
    for bound in [SiteBound::Exact, SiteBound::Log] {
        let copies = Copies::new(one.clone().into(), 3);
        let triplets: Vec<(usize, usize, f64)> = (0..copies.rows())
            .flat_map(|n| copies.row(n).into_iter().map(move |(l, x)| (n, l, x)))
            .collect();
        let explicit = Sparse::from_triplets(copies.rows(), copies.cols(), &triplets).unwrap();
        let model = |design| LatentModel {
            prior: Structure {
                mean: vec![0.0; 9],
                covariance: Covariance::Diagonal(vec![2.0; 9]),
            },
            design,
            likelihood: Likelihood::multinomial(4),
            bound,
            observations: Observations::new(
                (0..90).map(|n| (n * n % 4 + n % 3) as f64 % 4.0).collect(),
            ),
        };
        let (a, b) = (
            model(Design::Copies(copies)),
            model(Design::Sparse(explicit)),
        );
        let (a_fit, b_fit) = (converged(&a), converged(&b));
        crate::common::close("bound", &[a_fit.bound], &[b_fit.bound], 1e-7);
        crate::common::close("mean", &a_fit.mean, &b_fit.mean, 1e-4);
        crate::common::close("variance", &a_fit.variance, &b_fit.variance, 1e-5);
        let predicted = |model: &LatentModel, fit: &Fit| {
            let rows = jensen_latent::Query::Rows(model.design.clone());
            let values = jensen_latent::predict(model, &fit.warm(), &rows).unwrap();
            values.into_iter().unzip::<_, _, Vec<f64>, Vec<f64>>()
        };
        let (mean, variance) = predicted(&a, &a_fit);
        crate::common::close("predictors", &mean, &a_fit.predictor_mean, 1e-8);
        crate::common::close(
            "their variances",
            &variance,
            &a_fit.predictor_variance,
            1e-8,
        );
    }
}

#[test]
fn loose_bounds_of_binary_likelihoods_are_reported_from_tight_ones() {
    let reported = |bound: SiteBound, scale: f64| {
        let mut model = crate::common::model(Likelihood::bernoulli(), bound, 40);
        if let Covariance::Dense(sigma) = &mut model.prior.covariance {
            sigma.data.iter_mut().for_each(|x| *x *= scale);
        }
        let fit = converged(&model);
        tightness(&model, &fit, &Settings::default())
            .unwrap()
            .unwrap()
    };
    assert!(reported(SiteBound::Log, 4.0).is_loose());
    for bound in [SiteBound::Tilted, SiteBound::Piecewise, SiteBound::Exact] {
        let at = reported(bound, 1.0);
        assert!(
            !at.is_loose() && at.slack > -1e-8 && at.error < 1e-9,
            "{bound:?}: {at:?}"
        );
    }
    let mut gaussian = crate::common::model(Likelihood::gaussian(0.4), SiteBound::Exact, 9);
    gaussian.observations.offset = None;
    let fit = converged(&gaussian);
    assert_eq!(
        tightness(&gaussian, &fit, &Settings::default()).unwrap(),
        None
    );
}
