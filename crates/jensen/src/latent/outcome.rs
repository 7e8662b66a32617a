//! What a fitted model says of observations: means, intervals, scores.

use jensen_latent::prior::Fresh;
use jensen_latent::{Design, Fit, Likelihood, Predictive, Query, Response, Size};
use jensen_math::quadrature::{Rule, gauss_hermite};
use jensen_math::special::{inv_phi, log_sum_exp_slice};

use rayon::prelude::*;

use super::{Prediction, TableModel};

/// Nodes of the quadrature over a linear predictor.
const NODES: usize = 64;

/// Groups of a calibration plot.
const GROUPS: usize = 10;

/// Observations of some rows as a fitted model sees them.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedRows {
    /// Mean and variance of every linear predictor, row by row.
    pub predictor: Vec<(f64, f64)>,
    /// Linear predictors of a row.
    pub times: usize,
    /// Mean of the observation: a probability, an expected count, a mean. Of multinomial rows one a category.
    pub mean: Vec<Vec<f64>>,
    /// The 5 % and 95 % quantiles of that mean under the posterior; NaN for multinomial rows.
    pub interval: Vec<(f64, f64)>,
    /// The 5 % and 95 % quantiles of the observation itself; NaN for binary and multinomial rows.
    pub predictive: Vec<(f64, f64)>,
    /// Responses, NaN where unknown.
    pub response: Vec<f64>,
    /// Numbers of trials.
    pub trials: Vec<f64>,
    /// Log predictive density of each response in nats; NaN where it is unknown.
    pub log_density: Vec<f64>,
}

/// Predictions in a group against what was observed there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// Mean prediction.
    pub predicted: f64,
    /// Mean observation.
    pub observed: f64,
    /// Standard error of the latter.
    pub error: f64,
}

impl PredictedRows {
    /// Mean log predictive density in nats an observation, where responses are known.
    pub fn log_predictive(&self) -> Option<f64> {
        let known: Vec<f64> = (self.log_density.iter().copied())
            .filter(|x| !x.is_nan())
            .collect();
        let n = known.len() as f64;
        (n > 0.0).then(|| jensen_math::sum::pairwise_sum(&known) / n)
    }

    /// Share of responses that are the most probable category, for binary and multinomial ones.
    pub fn accuracy(&self, likelihood: Likelihood) -> Option<f64> {
        let best = |mean: &[f64]| match likelihood.response() {
            Response::Binary => Some(f64::from(mean[0] > 0.5)),
            Response::Category => {
                let best = (0..mean.len()).max_by(|a, b| mean[*a].total_cmp(&mean[*b]))?;
                Some(best as f64)
            }
            _ => None,
        };
        let mut right = 0.0;
        let mut known = 0.0;
        for (mean, y) in self.mean.iter().zip(&self.response) {
            if y.is_nan() {
                continue;
            }
            known += 1.0;
            right += f64::from(best(mean)? == *y);
        }
        (known > 0.0).then(|| right / known)
    }

    /// Rows with known responses in groups of similar predictions; empty for multinomial ones.
    pub fn calibration(&self) -> Vec<Bin> {
        if self.times > 1 {
            return Vec::new();
        }
        let mut rows: Vec<(f64, f64)> = (0..self.mean.len())
            .filter(|i| !self.response[*i].is_nan())
            .map(|i| {
                (
                    self.mean[i][0] / self.trials[i],
                    self.response[i] / self.trials[i],
                )
            })
            .collect();
        rows.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let size = rows.len().div_ceil(GROUPS).max(1);
        rows.chunks(size)
            .map(|group| {
                let n = group.len() as f64;
                let predicted = group.iter().map(|r| r.0).sum::<f64>() / n;
                let observed = group.iter().map(|r| r.1).sum::<f64>() / n;
                let spread: f64 = group.iter().map(|r| (r.1 - observed).powi(2)).sum();
                Bin {
                    predicted,
                    observed,
                    error: (spread / n / n).sqrt(),
                }
            })
            .collect()
    }
}

/// The predictive distribution of observations whose linear predictors have these means and variances; the linear predictors of a
/// multinomial row count as independent.
pub fn outcome(
    model: &TableModel,
    likelihood: Likelihood,
    mean: &[f64],
    variance: &[f64],
    at: &Prediction,
) -> PredictedRows {
    let times = likelihood.predictors().max(1);
    let rows = mean.len() / times;
    let rule = gauss_hermite(NODES).unwrap_or(Rule {
        nodes: vec![0.0],
        weights: vec![1.0],
    });
    let cloud = Cloud::new(times);
    let row = |row: usize| -> (Vec<f64>, (f64, f64), (f64, f64), f64) {
        let y = at.response[row];
        if model.likelihood().predictors() != 1 {
            let own = row * times..(row + 1) * times;
            let probabilities = cloud.probabilities(&mean[own.clone()], &variance[own]);
            let log_density = match y.is_nan() {
                true => f64::NAN,
                false => probabilities.get(y as usize).map_or(f64::NAN, |p| p.ln()),
            };
            let none = (f64::NAN, f64::NAN);
            return (probabilities, none, none, log_density);
        }
        let (m, sd) = (mean[row], variance[row].max(0.0).sqrt());
        let size = likelihood.size(at.exposure[row], at.trials[row]);
        let nodes = rule.nodes.iter().zip(&rule.weights);
        let expected: f64 = nodes
            .clone()
            .map(|(z, w)| w * size * likelihood.mean(m + sd * z))
            .sum();
        let quantile = |p: f64| size * likelihood.mean(m + sd * inv_phi(p));
        let predictive = Predictive::new(likelihood, m, sd, size);
        let log_density = match y.is_nan() {
            true => f64::NAN,
            false => {
                let terms: Vec<f64> = nodes
                    .map(|(z, w)| w.ln() + likelihood.log_density(m + sd * z, y, size))
                    .collect();
                log_sum_exp_slice(&terms)
            }
        };
        (
            vec![expected],
            (quantile(0.05), quantile(0.95)),
            (predictive.quantile(0.05), predictive.quantile(0.95)),
            log_density,
        )
    };
    let all: Vec<_> = (0..rows)
        .into_par_iter()
        .with_min_len(64)
        .map(row)
        .collect();
    let mut out = PredictedRows {
        predictor: mean.iter().copied().zip(variance.iter().copied()).collect(),
        times,
        mean: Vec::with_capacity(rows),
        interval: Vec::with_capacity(rows),
        predictive: Vec::with_capacity(rows),
        response: at.response.clone(),
        trials: match likelihood.sized_by() {
            Size::Trials => at.trials.clone(),
            _ => vec![1.0; rows],
        },
        log_density: Vec::with_capacity(rows),
    };
    for (mean, interval, predictive, log_density) in all {
        out.mean.push(mean);
        out.interval.push(interval);
        out.predictive.push(predictive);
        out.log_density.push(log_density);
    }
    out
}

/// The outcome of the rows that a model was fitted to.
pub fn fitted(model: &TableModel, likelihood: Likelihood, fit: &Fit) -> PredictedRows {
    let data = model.observations();
    let n = data.response.len();
    let at = Prediction {
        query: Query::Rows(Design::Identity),
        fresh: Fresh::none(n),
        offset: vec![0.0; fit.predictor_mean.len()],
        exposure: data.exposure.clone().unwrap_or_else(|| vec![1.0; n]),
        trials: data.trials.clone().unwrap_or_else(|| vec![1.0; n]),
        response: data.response.clone(),
    };
    outcome(
        model,
        likelihood,
        &fit.predictor_mean,
        &fit.predictor_variance,
        &at,
    )
}

/// Points of a standard normal distribution in several dimensions, for probabilities of categories.
struct Cloud {
    points: Vec<Vec<f64>>,
}

impl Cloud {
    fn new(dimensions: usize) -> Self {
        // A rank-one lattice through the golden ratio's relatives (Roberts 2018): evenly spread, always the same.
        let mut root = 1.5f64;
        for _ in 0..60 {
            root = (1.0 + root).powf(1.0 / (dimensions as f64 + 1.0));
        }
        let steps: Vec<f64> = (1..=dimensions).map(|k| root.powi(-(k as i32))).collect();
        let count = if dimensions > 1 { 2048 } else { 0 };
        let points = (0..count)
            .map(|i| {
                let at = |step: &f64| {
                    inv_phi(
                        (0.5 + (i as f64 + 1.0) * step)
                            .fract()
                            .clamp(1e-9, 1.0 - 1e-9),
                    )
                };
                steps.iter().map(at).collect()
            })
            .collect();
        Self { points }
    }

    /// Probabilities of the categories, the reference last.
    fn probabilities(&self, mean: &[f64], variance: &[f64]) -> Vec<f64> {
        let mut total = vec![0.0; mean.len() + 1];
        let mut eta = vec![0.0; mean.len() + 1];
        for point in &self.points {
            for (k, z) in point.iter().enumerate() {
                eta[k] = mean[k] + variance[k].max(0.0).sqrt() * z;
            }
            let sum = log_sum_exp_slice(&eta);
            for (t, e) in total.iter_mut().zip(&eta) {
                *t += (e - sum).exp();
            }
        }
        let n = self.points.len() as f64;
        total.iter().map(|t| t / n).collect()
    }
}
