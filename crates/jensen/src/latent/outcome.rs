//! Predictions of observations, with intervals and scores.

use jensen_latent::{Likelihood, Predictive, Response, Size, lattice};
use jensen_math::quadrature::{Rule, gauss_hermite};
use jensen_math::special::{inv_phi, log_sum_exp_slice};

use rayon::prelude::*;

use super::posterior::{moments, quantile};
use super::{ObservedRows, Part, TableModel};

const NODES: usize = 64;

const GROUPS: usize = 10;

/// The predictive distribution of the observations in several rows of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedRows {
    /// The mean and the variance of every linear predictor. The predictors of the same row are adjacent.
    pub predictor: Vec<(f64, f64)>,
    /// The number of linear predictors per row.
    pub times: usize,
    /// The mean of the observation in each row, such as a probability or an expected count. A row with a multinomial
    /// response has one mean per category, and a row with ordered levels one per level.
    pub mean: Vec<Vec<f64>>,
    /// The 5 % and 95 % posterior quantiles of the mean of each observation. The quantiles are NaN for multinomial
    /// responses and ordered levels.
    pub interval: Vec<(f64, f64)>,
    /// The 5 % and 95 % predictive quantiles of each observation, or the index of each level. The quantiles are NaN for binary and multinomial
    /// responses, and for observations whose standard deviation is unknown.
    pub predictive: Vec<(f64, f64)>,
    /// The response in each row, or NaN if it is unknown.
    pub response: Vec<f64>,
    /// The number of trials in each row.
    pub trials: Vec<f64>,
    /// Whether some responses are censored times, so that means of responses are too small.
    pub censored: bool,
    /// The log predictive density of each response in nats, or NaN if the response, the standard deviation of its error
    /// or its event is unknown. For a censored time, it is the log probability of a later event or of an event in the
    /// interval.
    pub log_density: Vec<f64>,
}

/// A group of rows with similar predictions, for comparing the predictions with the observations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// The mean of the predictions in the group.
    pub predicted: f64,
    /// The mean of the observations in the group.
    pub observed: f64,
    /// The standard error of the mean of the observations.
    pub error: f64,
}

impl PredictedRows {
    /// Returns the mean log predictive density of the known responses in nats, or `None` if no response is known.
    pub fn log_predictive(&self) -> Option<f64> {
        let known: Vec<f64> = (self.log_density.iter().copied())
            .filter(|x| !x.is_nan())
            .collect();
        let n = known.len() as f64;
        (n > 0.0).then(|| jensen_math::sum::pairwise_sum(&known) / n)
    }

    /// Returns the fraction of the known responses whose observed category has the highest predicted probability.
    /// Returns `None` unless the responses are binary, multinomial or ordered levels.
    pub fn accuracy(&self, likelihood: Likelihood) -> Option<f64> {
        let best = |mean: &[f64]| match likelihood.response() {
            Response::Binary => Some(f64::from(mean[0] > 0.5)),
            Response::Category | Response::Level => {
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

    /// Groups the rows with known responses by their predictions. The result is empty if the responses are multinomial or
    /// ordered levels, or if some of them are censored times.
    pub fn calibration(&self) -> Vec<Bin> {
        let several = self.mean.first().is_some_and(|mean| mean.len() > 1);
        if several || self.censored {
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

/// Computes the predictive distribution of observations whose linear predictors have mixture distributions. The
/// function treats the linear predictors of a multinomial row as independent. To compute the quantiles of an
/// observation, the function replaces the mixture by a normal distribution with the same mean and variance, and the
/// parameters of the likelihood by their weighted means.
pub fn outcome(model: &TableModel, parts: &[Part], at: &ObservedRows) -> PredictedRows {
    let likelihood = mean_likelihood(parts);
    let times = likelihood.predictors().max(1);
    let rows = at.response.len();
    let rule = gauss_hermite(NODES).unwrap_or(Rule {
        nodes: vec![0.0],
        weights: vec![1.0],
    });
    let point_set = PointSet::new(times);
    let row = |row: usize| -> (Vec<f64>, (f64, f64), (f64, f64), f64) {
        let y = at.response[row];
        let none = (f64::NAN, f64::NAN);
        if model.likelihood().predictors() != 1 {
            let mut probabilities = vec![0.0; times + 1];
            for part in parts {
                let own = point_set.probabilities(&part.moments[row * times..(row + 1) * times]);
                let each = probabilities.iter_mut().zip(own);
                each.for_each(|(sum, p)| *sum += part.weight * p);
            }
            let log_density = match y.is_nan() {
                true => f64::NAN,
                false => probabilities.get(y as usize).map_or(f64::NAN, |p| p.ln()),
            };
            return (probabilities, none, none, log_density);
        }
        let size = at.size[row];
        let is_scored = !y.is_nan() && !size.is_nan();
        let ordered = likelihood.levels().is_some();
        let means = |likelihood: Likelihood, eta: f64| match ordered {
            true => likelihood.level_probabilities(eta),
            false => vec![likelihood.mean(eta, size)],
        };
        let mut expected = vec![0.0; likelihood.levels().unwrap_or(1)];
        let mut terms = Vec::new();
        for part in parts {
            let (m, sd) = (part.moments[row].0, part.moments[row].1.max(0.0).sqrt());
            for (z, w) in rule.nodes.iter().zip(&rule.weights) {
                let (eta, w) = (m + sd * z, part.weight * w);
                let own = means(part.likelihood, eta);
                let each = expected.iter_mut().zip(own);
                each.for_each(|(sum, mean)| *sum += w * mean);
                if is_scored {
                    terms.push(w.ln() + part.likelihood.log_density(eta, y, size));
                }
            }
        }
        let log_density = match is_scored {
            true => log_sum_exp_slice(&terms),
            false => f64::NAN,
        };
        let of_mean = |p: f64| match ordered {
            true => f64::NAN,
            false => likelihood.mean(quantile(parts, row, p), size),
        };
        let (mean, variance) = moments(parts, row);
        let predictive = Predictive::new(likelihood, mean, variance.max(0.0).sqrt(), size);
        (
            expected,
            (of_mean(0.05), of_mean(0.95)),
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
        predictor: (0..rows * times).map(|i| moments(parts, i)).collect(),
        times,
        mean: Vec::with_capacity(rows),
        interval: Vec::with_capacity(rows),
        predictive: Vec::with_capacity(rows),
        response: at.response.clone(),
        trials: match likelihood.sized_by() {
            Size::Trials => at.size.clone(),
            _ => vec![1.0; rows],
        },
        censored: match likelihood.sized_by() {
            Size::Event => at.size.contains(&0.0),
            Size::Until => at.size.iter().zip(&at.response).any(|(end, y)| end > y),
            _ => false,
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

pub(super) fn mean_likelihood(parts: &[Part]) -> Likelihood {
    let likelihood = parts[0].likelihood;
    let mut values = vec![0.0; likelihood.parameters().len()];
    for part in parts {
        let own = part.likelihood.values();
        values
            .iter_mut()
            .zip(own)
            .for_each(|(sum, v)| *sum += part.weight * v);
    }
    likelihood.with_values(&values)
}

/// Computes the predictive distribution of the fitted rows from the mixture distributions of their linear predictors.
pub fn fitted(model: &TableModel, predictors: &[Part]) -> PredictedRows {
    outcome(model, predictors, model.observed())
}

/// Points that represent a standard normal distribution in several dimensions. The probabilities of categories are
/// integrated with these points.
struct PointSet {
    points: Vec<Vec<f64>>,
}

impl PointSet {
    fn new(dimensions: usize) -> Self {
        let count = if dimensions > 1 { 2048 } else { 0 };
        let normal = |u: f64| inv_phi(u.clamp(1e-9, 1.0 - 1e-9));
        let points = lattice(dimensions)
            .take(count)
            .map(|point| point.into_iter().map(normal).collect())
            .collect();
        Self { points }
    }

    /// Returns the probability of each category. The reference category comes last.
    fn probabilities(&self, moments: &[(f64, f64)]) -> Vec<f64> {
        let mut total = vec![0.0; moments.len() + 1];
        let mut eta = vec![0.0; moments.len() + 1];
        for point in &self.points {
            for (k, z) in point.iter().enumerate() {
                eta[k] = moments[k].0 + moments[k].1.max(0.0).sqrt() * z;
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
