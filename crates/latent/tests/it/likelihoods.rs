//! Compares likelihoods with densities from SciPy 1.13, and learns their parameters from simulated responses.

use std::sync::Arc;

use jensen_latent::{
    Covariance, Dense, Design, Error, LatentModel, LearnSettings, Likelihood, Observations,
    Parameter, Predictive, Prior, Sensitivity, SiteBound, Structure, integrate, learn,
};
use jensen_math::rng::{Purpose, Stream};
use jensen_math::special::{inv_phi, logit};
use jensen_run::{Budget, Control, Silent};

use crate::common::{converged, identity};

/// Checks log densities at (y, log p) and distribution functions at (y, P).
fn agrees(
    likelihood: Likelihood,
    (eta, size): (f64, f64),
    densities: &[(f64, f64)],
    distributions: &[(f64, f64)],
) {
    for (y, expected) in densities {
        let found = likelihood.log_density(eta, *y, size);
        let what = format!("{likelihood} at {y}: {found} and {expected}");
        assert!(
            (found - expected).abs() < 1e-10 * (1.0 + expected.abs()),
            "{what}"
        );
    }
    for (y, expected) in distributions {
        let found = likelihood.distribution(eta, *y, size);
        let what = format!("{likelihood} at {y}: {found} and {expected}");
        assert!((found - expected).abs() < 1e-10, "{what}");
    }
}

/// The references are `scipy.stats.betabinom`, and mixtures and truncations of `nbinom` and `poisson`. For Tweedie amounts
/// they are sums over the number of gamma variables. The value for the precision 1e6 is from sums with fifty digits, from
/// which SciPy's differs by 3e-10.
#[test]
fn densities_agree_with_scipy() {
    agrees(
        Likelihood::beta_binomial(3.5),
        (0.4, 12.0),
        &[
            (0.0, -4.2003670222043095),
            (5.0, -2.4747044473830284),
            (12.0, -2.5783196447025425),
        ],
        &[(5.0, 0.3069890272204985)],
    );
    let many = [
        (60.0, 1800.0, 0.503196076553674),
        (1e6, 1800.0, 0.4981366305094663),
    ];
    for (precision, y, expected) in many.into_iter().chain([(60.0, 3900.0, 0.9999999999922807)]) {
        let likelihood = Likelihood::beta_binomial(precision);
        agrees(likelihood, (-0.2, 4000.0), &[], &[(y, expected)]);
    }
    agrees(
        Likelihood::zero_inflated_negative_binomial(0.7, 2.5),
        (0.3, 2.0),
        &[
            (0.0, -0.78701482315217),
            (1.0, -2.654996961529376),
            (6.0, -3.0601655085447788),
        ],
        &[(6.0, 0.8561292661913469)],
    );
    agrees(
        Likelihood::hurdle_poisson(0.7),
        (0.3, 2.0),
        &[
            (0.0, -0.8873031950009028),
            (1.0, -2.16760796416412),
            (6.0, -3.781123273374494),
        ],
        &[(6.0, 0.9870347440345695)],
    );
    agrees(
        Likelihood::hurdle_negative_binomial(0.7, 2.5),
        (0.3, 2.0),
        &[
            (0.0, -0.8873031950009028),
            (1.0, -1.9258824928209721),
            (6.0, -3.434125743749241),
        ],
        &[(6.0, 0.9486531364153536)],
    );
    agrees(
        Likelihood::tweedie(0.8, 1.5),
        (0.3, 1.0),
        &[
            (0.0, -2.494202839837104),
            (0.05, -1.538432766688558),
            (1.0, -0.9480923880554231),
            (9.0, -10.340233254358495),
        ],
        &[(1.0, 0.4502708022582356)],
    );
    agrees(
        Likelihood::ordinal(&[0.6, 1.3]),
        (0.4, 1.0),
        &[
            (0.0, -0.9130152523999526),
            (1.0, -1.9070244901278646),
            (2.0, -1.3177371300207492),
            (3.0, -1.7014132779827524),
        ],
        &[],
    );
}

/// Two ordered levels are a binary outcome, and one trial of a beta-binomial count has no overdispersion.
#[test]
fn special_cases_are_binary_outcomes() {
    let binary = Likelihood::bernoulli();
    for eta in [-2.0, 0.3, 4.0] {
        for y in [0.0, 1.0] {
            let expected = binary.log_density(eta, y, 1.0);
            for special in [Likelihood::ordinal(&[]), Likelihood::beta_binomial(0.3)] {
                let found = special.log_density(eta, y, 1.0);
                assert!(
                    (found - expected).abs() < 1e-12,
                    "{special} {found} {expected}"
                );
            }
        }
    }
}

#[test]
fn responses_outside_the_domain_are_refused() {
    let cases = [
        (Likelihood::ordinal(&[1.0]), 3.0, "a level 0, …, 2"),
        (Likelihood::ordinal(&[1.0]), 0.5, "a level 0, …, 2"),
        (
            Likelihood::beta_binomial(1.0),
            8.0,
            "its number of trials, 7",
        ),
        (Likelihood::hurdle_poisson(1.0), -1.0, "a count 0, 1, 2, …"),
        (
            Likelihood::tweedie(1.0, 1.0),
            -0.1,
            "a number of at least 0",
        ),
    ];
    for (likelihood, y, message) in cases {
        let refused = likelihood.refuses(y, 7.0).unwrap();
        assert!(refused.contains(message), "{likelihood} {refused}");
    }
}

/// A prior without hyperparameters.
pub struct Fixed(pub Structure);

impl Prior for Fixed {
    fn parameters(&self) -> Vec<Parameter> {
        Vec::new()
    }

    fn structure(&self, _: &[f64]) -> Result<Structure, Error> {
        Ok(self.0.clone())
    }

    fn gradient(&self, _: &[f64], _: &Structure, _: &Sensitivity) -> Vec<f64> {
        Vec::new()
    }
}

/// Learns an intercept, a slope and the parameters of the likelihood from simulated responses. The means of the posterior
/// are within three standard deviations of the true values.
fn recovers(likelihood: Likelihood, n: usize, size: f64, draw: impl Fn(f64, &mut Stream) -> f64) {
    let mut stream = Stream::new(4, Purpose::new("test likelihoods"), 0, 0);
    let x: Vec<f64> = (0..n).map(|_| inv_phi(stream.uniform())).collect();
    let truth = [0.7, -0.6];
    let y: Vec<f64> = x
        .iter()
        .map(|x| draw(truth[0] + truth[1] * x, &mut stream))
        .collect();
    let model = LatentModel {
        prior: Structure {
            mean: vec![0.0; 2],
            covariance: Covariance::Diagonal(vec![100.0; 2]),
        },
        design: Design::Dense(Arc::new(Dense::from_fn(n, 2, |i, j| {
            if j == 0 { 1.0 } else { x[i] }
        }))),
        likelihood: Likelihood::from_name(likelihood.name())
            .unwrap()
            .with_categories(likelihood.levels().unwrap_or(0)),
        bound: SiteBound::Exact,
        observations: Observations {
            response: y,
            size: Some(vec![size; n]),
            offset: None,
        },
    };
    let own = 0..likelihood.parameters().len();
    let settings = LearnSettings {
        likelihood: own.map(|k| (k, likelihood.prior_of(k).clone())).collect(),
        priors: true,
        ..LearnSettings::default()
    };
    let prior = Fixed(model.prior.clone());
    let clock = || 0.0;
    let mut silent = Silent;
    let mut control = Control::new(Budget::iterations(300), &clock, &mut silent);
    let mut learned = learn(&prior, &model, &settings, &identity(), &mut control).unwrap();
    assert!(
        learned.status.is_converged(),
        "{likelihood} {}",
        learned.status
    );
    for (k, value) in truth.iter().enumerate() {
        let (mean, sd) = (learned.fit.mean[k], learned.fit.variance[k].sqrt());
        let off = (mean - value) / sd;
        assert!(off.abs() < 3.0, "{likelihood} {k}: {mean} ± {sd}");
    }
    let found = integrate(&prior, &model, &settings, &mut learned, &control)
        .unwrap()
        .unwrap();
    for (marginal, value) in found.marginals.iter().zip(likelihood.values()) {
        let [low, median, high] = [0.05, 0.5, 0.95].map(|p| marginal.quantile(p));
        // A 90 % interval of a normal distribution is 3.29 standard deviations wide.
        let log_sd = (high / low).ln() / 3.29;
        let off = (median / value).ln() / log_sd;
        assert!(
            off.abs() < 3.0,
            "{likelihood}: {median} ± {log_sd} and {value}"
        );
        assert!(log_sd < 0.5, "{likelihood}: {log_sd}");
    }
}

/// Draws from a distribution with a known linear predictor.
fn drawn(likelihood: Likelihood, eta: f64, size: f64, stream: &mut Stream) -> f64 {
    Predictive::new(likelihood, eta, 0.0, size).quantile(stream.uniform())
}

fn poisson(rate: f64, stream: &mut Stream) -> f64 {
    drawn(Likelihood::poisson(), rate.ln(), 1.0, stream)
}

/// A negative binomial count is a Poisson count whose rate has a gamma distribution.
fn overdispersed(mean: f64, size: f64, stream: &mut Stream) -> f64 {
    let rate = drawn(Likelihood::gamma(size), mean.ln(), 1.0, stream);
    poisson(rate, stream)
}

#[test]
fn cutpoints_of_ordered_levels_are_recovered() {
    recovers(
        Likelihood::ordinal(&[0.8, 1.5, 0.4]),
        600,
        1.0,
        |eta, stream| {
            let latent = eta + logit(stream.uniform());
            let cuts = [0.0, 0.8, 2.3, 2.7];
            cuts.iter().filter(|c| latent > **c).count() as f64
        },
    );
}

#[test]
fn the_precision_of_probabilities_is_recovered() {
    recovers(Likelihood::beta_binomial(4.0), 200, 12.0, |eta, stream| {
        let p = drawn(Likelihood::beta(4.0), eta, 1.0, stream);
        drawn(Likelihood::binomial(), logit(p), 12.0, stream)
    });
}

#[test]
fn surplus_zeros_of_overdispersed_counts_are_recovered() {
    let likelihood = Likelihood::zero_inflated_negative_binomial(0.6, 3.0);
    recovers(likelihood, 500, 2.0, |eta, stream| {
        match stream.uniform() < 0.6 / 1.6 {
            true => 0.0,
            false => overdispersed(1.6 * 2.0 * eta.exp(), 3.0, stream),
        }
    });
}

#[test]
fn counts_beyond_a_hurdle_are_recovered() {
    let positive = |stream: &mut Stream, count: &dyn Fn(&mut Stream) -> f64| {
        if stream.uniform() < 0.6 / 1.6 {
            return 0.0;
        }
        loop {
            let y = count(stream);
            if y > 0.0 {
                return y;
            }
        }
    };
    recovers(Likelihood::hurdle_poisson(0.6), 300, 2.0, |eta, stream| {
        positive(stream, &|stream| poisson(2.0 * eta.exp(), stream))
    });
    let likelihood = Likelihood::hurdle_negative_binomial(0.6, 3.0);
    recovers(likelihood, 500, 2.0, |eta, stream| {
        positive(stream, &|stream| {
            overdispersed(2.0 * eta.exp(), 3.0, stream)
        })
    });
}

/// Amounts with dispersion φ and shape k are sums of Poisson(μ^(2 − p)/((2 − p) φ)) gamma variables.
#[test]
fn the_power_of_amounts_is_recovered() {
    let (dispersion, shape) = (0.9, 1.2);
    let power = (shape + 2.0) / (shape + 1.0);
    recovers(
        Likelihood::tweedie(dispersion, shape),
        400,
        1.0,
        |eta, stream| {
            let rate = ((2.0 - power) * eta).exp() / ((2.0 - power) * dispersion);
            let number = poisson(rate, stream);
            match number {
                0.0 => 0.0,
                n => {
                    let mean = eta.exp() / rate * n;
                    drawn(Likelihood::gamma(n * shape), mean.ln(), 1.0, stream)
                }
            }
        },
    );
}

/// The points of a process of constant intensity have a gamma posterior, and the bound is close to its evidence.
#[test]
fn points_of_a_process_have_no_exposure() {
    let (area, number, sd) = (2.5, 40_usize, 2.0);
    let nodes = 5;
    let n = number + nodes;
    let model = LatentModel {
        prior: Structure {
            mean: vec![0.0],
            covariance: Covariance::Diagonal(vec![sd * sd]),
        },
        design: Design::Dense(Arc::new(Dense::from_fn(n, 1, |_, _| 1.0))),
        likelihood: Likelihood::poisson_process(),
        bound: SiteBound::Exact,
        observations: Observations {
            response: (0..n).map(|i| f64::from(i < number)).collect(),
            size: Some(
                (0..n)
                    .map(|i| if i < number { 0.0 } else { area / nodes as f64 })
                    .collect(),
            ),
            offset: None,
        },
    };
    let fit = converged(&model);
    // The evidence ∫ N(x | 0, sd²) e^(number x − area e^x) dx, by the midpoint rule.
    let (from, steps, width) = (-2.0, 80_000, 1e-4);
    let terms = (0..steps).map(|i| {
        let x = from + width * (f64::from(i) + 0.5);
        let log = number as f64 * x - area * x.exp() - 0.5 * x * x / (sd * sd);
        (x, width * log.exp())
    });
    let sum: f64 = terms.clone().map(|(_, p)| p).sum();
    let evidence = (sum / (sd * (2.0 * std::f64::consts::PI).sqrt())).ln();
    let mean = terms.map(|(x, p)| x * p).sum::<f64>() / sum;
    assert!(
        fit.bound < evidence && evidence - fit.bound < 0.01,
        "{} {evidence}",
        fit.bound
    );
    assert!((fit.mean[0] - mean).abs() < 1e-3, "{} {mean}", fit.mean[0]);
    assert!((fit.variance[0].sqrt() * (number as f64).sqrt() - 1.0).abs() < 0.02);
    let given = model.observations.clone();
    let refused = LatentModel {
        observations: Observations {
            response: vec![0.0; n],
            ..given.clone()
        },
        ..model
    };
    assert!(refused.check().is_err());
    let refused = LatentModel {
        likelihood: Likelihood::poisson(),
        observations: given.clone(),
        ..refused
    };
    assert!(refused.check().is_err());
    let refused = LatentModel {
        likelihood: Likelihood::poisson_process(),
        observations: Observations {
            size: Some(vec![0.0; n]),
            response: vec![1.0; n],
            offset: None,
        },
        ..refused
    };
    assert!(refused.check().is_err());
}
