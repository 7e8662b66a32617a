//! Tests of times of which only an interval is known.

use std::sync::Arc;

use jensen_latent::{
    Covariance, Dense, Design, LatentModel, LearnSettings, Likelihood, Observations, SiteBound,
    Structure, learn,
};
use jensen_math::rng::{Purpose, Stream};
use jensen_math::special::{inv_phi, lgamma};
use jensen_run::{Budget, Control, Silent};

use crate::common::{converged, identity, invert};
use crate::likelihoods::Fixed;

const NAMES: [&str; 3] = ["exponential", "weibull", "lognormal"];

fn named(name: &str, key: &str, value: f64) -> Likelihood {
    let likelihood = Likelihood::from_name(&format!("{name}({key}=COLUMN)")).unwrap();
    let values = vec![value; likelihood.parameters().len()];
    likelihood.with_values(&values)
}

fn all() -> impl Iterator<Item = Likelihood> {
    let values = [0.6, 1.0, 3.0];
    NAMES
        .into_iter()
        .flat_map(move |name| values.map(|value| named(name, "until", value)))
}

/// Names, parameters, intervals and log probabilities.
const REFERENCES: [(&str, f64, (f64, f64), f64); 21] = [
    ("weibull", 1.7, (0.5, 2.25), -0.3730034796335538),
    ("weibull", 1.7, (0.0, 0.125), -4.414954506139826),
    ("weibull", 1.7, (40.0, 50.0), -220.802677206174),
    ("weibull", 1.7, (1e-09, 2e-09), -35.29288762039398),
    (
        "weibull",
        1.7,
        (1.5, 1.5000009536743164),
        -14.753806523663485,
    ),
    ("weibull", 1.7, (1000.0, 1000.5), -52541.48576781798),
    ("weibull", 1.7, (0.0, 1000000.0), 0.0),
    ("exponential", 1.0, (0.25, 0.75), -1.423631067173823),
    ("exponential", 1.0, (0.0, 1e-06), -14.215510893124279),
    ("exponential", 1.0, (600.0, 700.0), -402.1920276213836),
    ("lognormal", 0.6, (0.5, 2.25), -0.4039009468141535),
    ("lognormal", 0.6, (0.0, 0.125), -6.012014354204315),
    ("lognormal", 0.6, (40.0, 50.0), -13.500537097580189),
    ("lognormal", 0.6, (1e-09, 2e-09), -341.86277464246336),
    (
        "lognormal",
        0.6,
        (1.5, 1.5000009536743164),
        -15.009692363921006,
    ),
    ("lognormal", 0.6, (1000.0, 1000.5), -46.88878932898038),
    ("lognormal", 0.6, (2000.0, 2001.0), -55.15408258882717),
    ("lognormal", 0.6, (0.0, 1000000.0), -1.863062738208067e-70),
    ("lognormal", 0.6, (1.0, 1.0625), -3.4708800082907456),
    (
        "lognormal",
        0.6,
        (1000000.0, 1062500.0),
        -160.84410071485763,
    ),
    ("lognormal", 0.6, (1000000.0, 1100000.0), -160.6770264059911),
];

/// Probabilities of intervals with fifty digits (mpmath): of the shape 1.7 and the variance 0.6 at η = 0.4, for intervals in
/// both tails, from 0, and short ones.
#[test]
fn probabilities_have_full_accuracy() {
    for (name, value, ends, expected) in REFERENCES {
        let found = named(name, "until", value).log_density(0.4, ends.0, ends.1);
        assert!(
            (found - expected).abs() < 4e-14 * (1.0 + expected.abs()),
            "{name} {ends:?}: {found} {expected}"
        );
    }
}

/// An interval without an end is a right-censored time, and one of length 0 is an observed time.
#[test]
fn limits_are_observed_and_censored_times() {
    for name in NAMES {
        let interval = named(name, "until", 1.4);
        let events = named(name, "event", 1.4);
        for (eta, y) in [(0.3, 0.7), (-2.0, 5.0), (3.0, 0.01)] {
            for (until, event) in [(y, 1.0), (f64::INFINITY, 0.0)] {
                let found = interval.log_density(eta, y, until);
                let expected = events.log_density(eta, y, event);
                assert!(
                    (found - expected).abs() < 1e-13 * (1.0 + expected.abs()),
                    "{interval} {y} {until}: {found} {expected}"
                );
            }
            // Nothing is known of this time.
            assert_eq!(interval.log_density(eta, 0.0, f64::INFINITY), 0.0);
            // The probability of a short interval is the density times its length.
            for length in [1e-6, 1e-9, 1e-12] {
                let (from, to) = (y * (1.0 - 0.5 * length), y * (1.0 + 0.5 * length));
                let found = interval.log_density(eta, from, to) - (to - from).ln();
                let density = events.log_density(eta, y, 1.0);
                assert!(
                    (found - density).abs() < 1e-9 * (1.0 + density.abs()),
                    "{interval} {y} {length}: {found} {density}"
                );
            }
        }
    }
}

/// Disjoint intervals that cover all times have the probability 1, however long they are.
#[test]
fn probabilities_add_up() {
    for likelihood in all() {
        for eta in [-3.0, 0.2, 4.0] {
            for ratio in [1.02, 1.5, 20.0, 1e4] {
                let mut ends = vec![0.0, 1e-8];
                while ends.last().is_some_and(|x| *x < 1e9) {
                    ends.push(ends[ends.len() - 1] * ratio);
                }
                ends.push(f64::INFINITY);
                let total: f64 = (ends.windows(2))
                    .map(|pair| likelihood.log_density(eta, pair[0], pair[1]).exp())
                    .sum();
                assert!((total - 1.0).abs() < 1e-12, "{likelihood} {ratio}: {total}");
            }
        }
    }
}

fn one(likelihood: Likelihood, (y, until): (f64, f64), mean: f64, variance: f64) -> LatentModel {
    LatentModel {
        prior: Structure {
            mean: vec![mean],
            covariance: Covariance::Diagonal(vec![variance]),
        },
        design: Design::Identity,
        likelihood,
        bound: SiteBound::Exact,
        observations: Observations {
            response: vec![y],
            size: Some(vec![until]),
            offset: None,
        },
    }
}

/// The bound of one observation at its optimum is the expectation of log p under the posterior minus its divergence from the
/// prior. The expectation is computed by Simpson's rule.
#[test]
fn bounds_agree_with_quadrature() {
    for likelihood in all() {
        for ends in [
            (0.5, 0.9),
            (0.0, 0.4),
            (2.0, 2.001),
            (1.0, f64::INFINITY),
            (3.0, 60.0),
        ] {
            let fit = converged(&one(likelihood, ends, 0.3, 0.8));
            let (m, v) = (fit.mean[0], fit.predictor_variance[0]);
            let steps = 20_000;
            let width = 20.0 / f64::from(steps);
            let expectation: f64 = (0..=steps)
                .map(|i| {
                    let z = -10.0 + width * f64::from(i);
                    let simpson = match i {
                        0 => 1.0,
                        i if i == steps => 1.0,
                        i if i % 2 == 1 => 4.0,
                        _ => 2.0,
                    };
                    let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
                    let eta = m + v.sqrt() * z;
                    simpson * density * likelihood.log_density(eta, ends.0, ends.1)
                })
                .sum::<f64>()
                * width
                / 3.0;
            let divergence = 0.5 * ((v + (m - 0.3).powi(2)) / 0.8 - 1.0 + (0.8 / v).ln());
            let expected = expectation - divergence;
            assert!(
                (fit.bound - expected).abs() < 1e-7,
                "{likelihood} {ends:?}: {} {expected}",
                fit.bound
            );
        }
    }
}

#[test]
fn impossible_intervals_are_refused() {
    for name in NAMES {
        let likelihood = named(name, "until", 1.0);
        for (ends, message) in [
            ((2.0, 1.5), "must be at least the response"),
            ((0.0, 0.0), "must be positive if the response is 0"),
            ((-1.0, 2.0), "needs a number of at least 0"),
            ((1.0, f64::NAN), "element 1 is NaN"),
        ] {
            let error = one(likelihood, ends, 0.0, 1.0).check().unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
        }
        let mut without = one(likelihood, (1.0, 2.0), 0.0, 1.0);
        without.observations.size = None;
        let error = without.check().unwrap_err().to_string();
        assert!(error.contains("needs the end of the interval"), "{error}");
    }
}

/// 400 times whose log mean is 0.5 + 0.8 x. Half of them are known only as the interval between two visits, a tenth of these
/// before the first or after the last visit.
fn study(draw: impl Fn(f64, f64) -> f64) -> (Vec<f64>, Observations) {
    let mut stream = Stream::new(11, Purpose::new("intervals"), 0, 0);
    let (mut x, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..400 {
        let own = 2.0 * stream.uniform() - 1.0;
        let time = draw((0.5 + 0.8 * own).exp(), stream.uniform());
        let visit = 0.3 + 0.7 * stream.uniform();
        x.push(own);
        let (from, to) = match i % 2 {
            0 => (time, time),
            _ if time > 5.0 * visit => (5.0 * visit, f64::INFINITY),
            _ => {
                let before = (time / visit).floor();
                (before * visit, (before + 1.0) * visit)
            }
        };
        low.push(from);
        high.push(to);
    }
    let observations = Observations {
        response: low,
        size: Some(high),
        offset: None,
    };
    (x, observations)
}

/// Maximises a function by Newton steps of finite differences.
fn maximum(f: impl Fn(&[f64]) -> f64, start: &[f64]) -> Vec<f64> {
    let (n, h) = (start.len(), 1e-4);
    let mut at = start.to_vec();
    for _ in 0..50 {
        let moved = |steps: &[(usize, f64)]| {
            let mut own = at.clone();
            steps.iter().for_each(|(k, by)| own[*k] += by);
            f(&own)
        };
        let slope: Vec<f64> = (0..n)
            .map(|k| (moved(&[(k, h)]) - moved(&[(k, -h)])) / (2.0 * h))
            .collect();
        let curvature = Dense::from_fn(n, n, |i, j| {
            let sum = |a: f64, b: f64| moved(&[(i, a), (j, b)]);
            -(sum(h, h) - sum(h, -h) - sum(-h, h) + sum(-h, -h)) / (4.0 * h * h)
        });
        let inverse = invert(&curvature);
        for (i, x) in at.iter_mut().enumerate() {
            *x += (0..n).map(|j| inverse.get(i, j) * slope[j]).sum::<f64>();
        }
    }
    at
}

/// With 400 times and weak priors, the posterior means are close to the maximum of the likelihood, which is computed here
/// without the code of the fit, and to the truth. The standard errors are 0.03 to 0.09.
#[test]
fn half_of_the_times_in_intervals_recover_the_truth() {
    let normal = |mean: f64, u: f64| mean * (0.5f64.sqrt() * inv_phi(u) - 0.25).exp();
    let shape = 1.6;
    let scale = lgamma(1.0 + 1.0 / shape).exp();
    let weibull = move |mean: f64, u: f64| mean / scale * (-u.ln()).powf(1.0 / shape);
    let studies = [
        ("weibull", shape, study(weibull)),
        ("lognormal", 0.5, study(normal)),
    ];
    for (name, truth, (x, observations)) in studies {
        let likelihood = named(name, "until", 1.0);
        let data = observations.clone();
        let direct = maximum(
            |at| {
                let own = likelihood.with_values(&[at[2].exp()]);
                (0..x.len())
                    .map(|i| {
                        let eta = at[0] + at[1] * x[i];
                        own.log_density(eta, data.response[i], data.size_of(i))
                    })
                    .sum()
            },
            &[0.3, 0.3, 0.0],
        );
        let model = LatentModel {
            prior: Structure {
                mean: vec![0.0; 2],
                covariance: Covariance::Diagonal(vec![100.0; 2]),
            },
            design: Design::Dense(Arc::new(Dense::from_fn(x.len(), 2, |i, j| {
                if j == 0 { 1.0 } else { x[i] }
            }))),
            likelihood,
            bound: SiteBound::Exact,
            observations,
        };
        let settings = LearnSettings {
            likelihood: vec![(0, likelihood.prior_of(0).clone())],
            priors: false,
            ..LearnSettings::default()
        };
        let prior = Fixed(model.prior.clone());
        let clock = || 0.0;
        let mut silent = Silent;
        let mut control = Control::new(Budget::iterations(300), &clock, &mut silent);
        let learned = learn(&prior, &model, &settings, &identity(), &mut control).unwrap();
        assert!(learned.status.is_converged(), "{name} {}", learned.status);
        let found = &learned.fit.mean;
        let parameter = learned.likelihood.values()[0].ln();
        for (what, found, direct, truth) in [
            ("level", found[0], direct[0], 0.5),
            ("slope", found[1], direct[1], 0.8),
            ("parameter", parameter, direct[2], f64::ln(truth)),
        ] {
            assert!(
                (found - direct).abs() < 0.03,
                "{name} {what}: {found} {direct}"
            );
            assert!(
                (direct - truth).abs() < 0.25,
                "{name} {what}: {direct} {truth}"
            );
        }
    }
}
