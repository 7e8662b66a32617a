//! The comparison of a fit with baseline models. Each model is scored by how well it predicts each observation from the
//! others.

use std::sync::Arc;

use jensen_latent::{
    Covariance, Dense, Design, Fit, LatentModel, LearnSettings, Parameter, Prior, Sensitivity,
    Settings, Size, Structure, leave_one_out,
};
use jensen_math::sum::pairwise_sum;
use jensen_run::{Budget, Control, Identity, Silent};
use serde::{Deserialize, Serialize};

use super::TableModel;
use crate::Error;

/// The prior variance of the effects. Responses and columns have unit variance, so a prior with this variance is almost
/// flat.
const FLAT: f64 = 1000.0;

const MOST: usize = 10_000_000;

/// The maximum probability that the comparison rejects a correct fit. Each of the two bounds has half of this
/// probability.
const CHANCE: f64 = 0.01;

/// The comparison of a fit with a plain baseline model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The name of the baseline model, such as `an intercept alone` or `least squares`.
    pub model: String,
    /// The mean log predictive density of an observation under the baseline model, given all other observations, in
    /// nats.
    pub plain: f64,
    /// The mean log predictive density of an observation under the fit, given all other observations, in nats.
    pub own: f64,
    /// The standard error of the difference between the two mean densities.
    pub error: f64,
    /// The number of observations.
    pub observations: usize,
    /// The number of columns of the table that the prior of the fit uses.
    pub columns: usize,
}

impl Comparison {
    /// Returns whether the fit predicts worse than the baseline model. The difference must be too large to be explained
    /// by chance and by columns that have no effect.
    ///
    /// The difference must exceed two bounds on the effect of chance. The first bound is a multiple of the standard
    /// error of the difference. The standard error is too small if both models make similar predictions (Sivula,
    /// Magnusson, Matamoros and Vehtari 2020). Of 200 tables that were drawn from second-order random walks, the first
    /// bound alone rejected 6. The second bound concerns the ratio of the density of all observations under another
    /// model to their density under the correct model. This ratio has expectation 1, so the probability that it exceeds
    /// 1/p is at most p (Markov's inequality). The sum of the log predictive densities estimates the log density of all
    /// observations under each model. The allowance for each column without an effect is one nat. Fitting the
    /// coefficient of such a column never decreases the in-sample log density. The correction for overfitting then
    /// subtracts one nat (Akaike 1974), so the column lowers the estimate by at most one nat.
    pub fn is_worse(&self) -> bool {
        let behind = self.plain - self.own;
        let share = CHANCE / 2.0;
        let errors = jensen_math::special::inv_phi(1.0 - share);
        let nats = self.columns as f64 - share.ln();
        // The negation ensures that a fit whose score is NaN is rejected.
        !(behind <= errors * self.error || behind * self.observations as f64 <= nats)
    }
}

struct Given(Structure);

impl Prior for Given {
    fn parameters(&self) -> Vec<Parameter> {
        Vec::new()
    }

    fn structure(&self, _: &[f64]) -> Result<Structure, jensen_latent::Error> {
        Ok(self.0.clone())
    }

    fn gradient(&self, _: &[f64], _: &Structure, _: &Sensitivity) -> Vec<f64> {
        Vec::new()
    }
}

/// Compares a fit with the better of two baseline models. The first baseline contains only an intercept. The second
/// baseline is a linear model of the columns that the prior of the fit uses. Returns `None` if the observations are
/// categories or if neither baseline can be fitted.
///
/// # Errors
/// Fails if a column of the table cannot be read.
pub(super) fn compare(
    model: &TableModel,
    at: &LatentModel,
    fit: &Fit,
) -> Result<Option<Comparison>, Error> {
    let Some(own) = leave_one_out(at, fit) else {
        return Ok(None);
    };
    let n = own.len();
    let columns = model.columns();
    let mut best: Option<(String, Vec<f64>)> = None;
    let linear = columns.cols > 0 && 2 * (columns.cols + 1) < n && columns.data.len() <= MOST;
    for width in [0, columns.cols] {
        if width > 0 && !linear {
            continue;
        }
        let name = match (width, at.likelihood.name()) {
            (0, _) => "an intercept alone",
            (_, "gaussian") => "least squares",
            _ if at.likelihood.sized_by() == Size::Sd => "weighted least squares",
            _ => "a linear model",
        };
        let mut design = Dense::zeros(n, width + 1);
        design.data[..n].fill(1.0);
        design.data[n..].copy_from_slice(&columns.data[..n * width]);
        let Some(scores) = score(model, at, design) else {
            continue;
        };
        let better = best
            .as_ref()
            .is_none_or(|(_, other)| pairwise_sum(&scores) > pairwise_sum(other));
        if better {
            best = Some((name.to_owned(), scores));
        }
        if width == columns.cols {
            break;
        }
    }
    let Some((name, plain)) = best else {
        return Ok(None);
    };
    let count = n as f64;
    let differences: Vec<f64> = plain.iter().zip(&own).map(|(p, o)| p - o).collect();
    let mean = pairwise_sum(&differences) / count;
    let squares: Vec<f64> = differences.iter().map(|d| (d - mean).powi(2)).collect();
    let outside = |sum: f64| model.bound_outside(sum) / count;
    Ok(Some(Comparison {
        model: name,
        plain: outside(pairwise_sum(&plain)),
        own: outside(pairwise_sum(&own)),
        error: (pairwise_sum(&squares) / count / count).sqrt(),
        observations: n,
        columns: columns.cols,
    }))
}

fn score(model: &TableModel, at: &LatentModel, design: Dense) -> Option<Vec<f64>> {
    let prior = Given(Structure {
        mean: vec![0.0; design.cols],
        covariance: Covariance::Diagonal(vec![FLAT; design.cols]),
    });
    let plain = LatentModel {
        prior: prior.0.clone(),
        design: Design::Dense(Arc::new(design)),
        likelihood: model.likelihood(),
        bound: at.likelihood.bounds()[0],
        observations: at.observations.clone(),
    };
    let settings = LearnSettings {
        fit: Settings::default(),
        likelihood: model.free_likelihood(),
        priors: true,
        ..LearnSettings::default()
    };
    let clock = || 0.0;
    let mut silent = Silent;
    let mut control = Control::new(Budget::iterations(100), &clock, &mut silent);
    let identity = Identity {
        algorithm: "plain".to_owned(),
        settings: serde_json::Value::Null,
        seed: 0,
        model_hash: String::new(),
        data_hash: String::new(),
        simd: String::new(),
    };
    let learned = jensen_latent::learn(&prior, &plain, &settings, &identity, &mut control).ok()?;
    let plain = LatentModel {
        likelihood: learned.likelihood,
        ..plain
    };
    leave_one_out(&plain, &learned.fit)
}

#[cfg(test)]
mod tests {
    use super::Comparison;

    #[test]
    fn chance_is_what_both_bounds_leave() {
        let worse = |nats: f64, errors: f64| {
            let comparison = Comparison {
                model: "least squares".to_owned(),
                plain: -1.0,
                own: -1.0 - nats / 100.0,
                error: nats / 100.0 / errors,
                observations: 100,
                columns: 2,
            };
            comparison.is_worse()
        };
        assert!(worse(112.0, 13.0) && worse(8.0, 2.7));
        // If two models make similar predictions, the differences between them are small and vary little between rows.
        assert!(!worse(2.2, 9.5));
        assert!(!worse(112.0, 2.0) && !worse(-5.0, 3.0));
        assert!(worse(f64::NAN, 1.0));
    }
}
