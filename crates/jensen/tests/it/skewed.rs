//! Tests of the effects of many groups with few counts each. The posteriors of the effects are skewed, and so is the
//! approximation.

use jensen::blackbox::RefineWhen;
use jensen::math::rng::{Purpose, Stream};
use jensen::math::special::{inv_phi, lgamma};
use jensen::prelude::*;

const PROGRAM: &str = "
data { int<lower=0> J; array[J] int<lower=0> y; }
parameters { real alpha; real<lower=0> tau; vector[J] r; }
model {
  target += normal_lpdf(alpha | 0, 2) + normal_lpdf(tau | 0, 2);
  target += normal_lpdf(r | 0, tau) + poisson_log_lpmf(y | alpha + r);
}";

/// Returns counts whose rates are exp(0.8 + 0.7 x) for standard normal x.
fn counts(groups: usize) -> Vec<u64> {
    let mut stream = Stream::new(3, Purpose::new("rare counts"), 0, 0);
    let mut count = |_| {
        let rate = (0.8 + 0.7 * inv_phi(stream.uniform())).exp();
        let (mut left, mut count, mut p) = (stream.uniform(), 0, (-rate).exp());
        while left > p && count < 1000 {
            left -= p;
            count += 1;
            p *= rate / count as f64;
        }
        count
    };
    (0..groups).map(&mut count).collect()
}

/// Returns the log evidence, and the mean and standard deviation of tau. They are computed by the trapezoidal rule over
/// alpha, log tau and the effect of a group.
fn exact(counts: &[u64]) -> [f64; 3] {
    let log_two_pi = (2.0 * std::f64::consts::PI).ln();
    let mut distinct: Vec<(u64, usize)> = Vec::new();
    for y in counts {
        match distinct.iter_mut().find(|(known, _)| known == y) {
            Some((_, times)) => *times += 1,
            None => distinct.push((*y, 1)),
        }
    }
    let of_group = |y: u64, alpha: f64, tau: f64| {
        let node = |i: i32| {
            let x = 0.1 * f64::from(i);
            let log_rate = alpha + tau * x;
            -0.5 * x * x + y as f64 * log_rate - log_rate.exp()
        };
        let sum: f64 = (-80..=80).map(|i| node(i).exp()).sum();
        (0.1 * sum).ln() - 0.5 * log_two_pi - lgamma(y as f64 + 1.0)
    };
    let (step_alpha, step_tau) = (0.012, 0.015);
    let mut logs = Vec::new();
    for i in -24..=24 {
        for j in -24..=24 {
            let (alpha, log_tau) = (
                0.8 + step_alpha * f64::from(i),
                -0.36 + step_tau * f64::from(j),
            );
            let tau = log_tau.exp();
            let likelihood: f64 = (distinct.iter())
                .map(|(y, times)| *times as f64 * of_group(*y, alpha, tau))
                .sum();
            let prior = -0.125 * (alpha * alpha + tau * tau) - log_two_pi - 2.0 * 2_f64.ln();
            logs.push((likelihood + prior + log_tau, tau));
        }
    }
    let top = logs
        .iter()
        .fold(f64::NEG_INFINITY, |top, (log, _)| top.max(*log));
    let moment = |power: i32| -> f64 {
        let terms = logs
            .iter()
            .map(|(log, tau)| (log - top).exp() * tau.powi(power));
        terms.sum()
    };
    let (total, mean) = (moment(0), moment(1) / moment(0));
    let variance = moment(2) / total - mean * mean;
    [
        top + (total * step_alpha * step_tau).ln(),
        mean,
        variance.sqrt(),
    ]
}

/// The data contain six hundred groups with one count each. If each effect had a Gaussian distribution given alpha and
/// tau, the ELBO would be about three nats below the evidence, and the weights would be unusable.
#[test]
fn effects_of_rare_counts_are_trusted_without_refinement() {
    let counts = counts(600);
    let data = format!("{{\"J\": {}, \"y\": {counts:?}}}", counts.len());
    let data = DataSet::from_json(data.as_bytes(), "data").unwrap();
    let model = Model::compile(PROGRAM, "counts.stan", &data, &Build::default()).unwrap();
    let fitted = fit(&model, &Options::default().refine(RefineWhen::Never)).unwrap();
    assert!(fitted.trusted(), "{:?}", fitted.warnings());
    let [evidence, mean, sd] = exact(&counts);
    let best = fitted.fit.best();
    let elbo = best.evaluation.elbo;
    let gap = evidence - elbo.mean;
    assert!(
        (-0.1..0.6).contains(&gap),
        "{gap} ± {}",
        elbo.standard_error
    );
    let tau = fitted.parameter("tau").unwrap();
    assert!((tau.mean - mean).abs() < 0.1 * sd, "{} {mean}", tau.mean);
    assert!((tau.sd / sd - 1.0).abs() < 0.08, "{} {sd}", tau.sd);
}
