//! The posterior of a fit as a mixture over the hyperparameters, in the units of the table.

use jensen_data::Table;
use jensen_latent::{Likelihood, mixture_quantile, read};

use super::{Files, Learnt, ObservedRows, StoredPosterior, TableModel};
use crate::Error;

/// One component of the mixture. Each component is the fit at one point of the posterior of the hyperparameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The weight of this component. The weights of all components sum to 1.
    pub weight: f64,
    /// The likelihood with its parameters at this point.
    pub likelihood: Likelihood,
    /// The mean and the variance of each requested quantity at this point.
    pub moments: Vec<(f64, f64)>,
}

pub(super) fn moments(parts: &[Part], at: usize) -> (f64, f64) {
    let mean: f64 = parts.iter().map(|p| p.weight * p.moments[at].0).sum();
    let spread = |p: &Part| {
        let (m, v) = p.moments[at];
        p.weight * (v + (m - mean) * (m - mean))
    };
    (mean, parts.iter().map(spread).sum())
}

pub(super) fn quantile(parts: &[Part], at: usize, p: f64) -> f64 {
    let weights: Vec<f64> = parts.iter().map(|part| part.weight).collect();
    let means: Vec<f64> = parts.iter().map(|part| part.moments[at].0).collect();
    let sds: Vec<f64> = (parts.iter())
        .map(|part| part.moments[at].1.max(0.0).sqrt())
        .collect();
    mixture_quantile(&weights, &means, &sds, p)
}

/// The posterior of the latent variables and of the linear predictors.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// The mixture components for the latent variables.
    pub latents: Vec<Part>,
    /// The mixture components for the linear predictors, including their offsets.
    pub predictors: Vec<Part>,
}

impl Known {
    /// Computes the posterior of the latent variables and the linear predictors of a fit.
    ///
    /// # Errors
    /// Returns the errors of [`jensen_latent::read`].
    pub fn of(model: &TableModel, learnt: &Learnt) -> Result<Self, Error> {
        let readout = model.readout();
        let (mut latents, mut predictors) = (Vec::new(), Vec::new());
        for point in &learnt.points {
            let at = model.model(&point.theta, point.likelihood)?;
            let part = |moments| Part {
                weight: point.weight,
                likelihood: model.outside(point.likelihood),
                moments,
            };
            // Each latent variable of a Gaussian process belongs to one row. The linear predictors therefore contain
            // the same information, and the latent variables are omitted.
            latents.push(part(match readout.scale.is_empty() {
                true => Vec::new(),
                false => read(&at, &point.fit, &readout)?,
            }));
            let fit = &point.fit;
            let moments = fit.predictor_mean.iter().zip(&fit.predictor_variance);
            let outside = moments.map(|(m, v)| model.measure().outside(*m, *v));
            predictors.push(part(outside.collect()));
        }
        Ok(Self {
            latents,
            predictors,
        })
    }
}

/// Computes the posterior of the linear predictors for the rows of another table, and returns the observations of these
/// rows. The predictors include offsets and the effects of rows and groups that were not part of the fit.
///
/// # Errors
/// Returns the errors of [`jensen_latent::predict`]. Also fails if a row is outside the domain of the prior.
pub fn posterior_at(
    model: &TableModel,
    stored: &StoredPosterior,
    table: &Table,
    rows: &[usize],
    files: &dyn Files,
) -> Result<(Vec<Part>, ObservedRows), Error> {
    let seen = model.rows_of(table, rows)?;
    let times = model.likelihood().predictors();
    let mut parts = Vec::with_capacity(stored.points.len());
    for point in &stored.points {
        let (query, fresh) = model.at(&point.theta, table, rows, files)?;
        let fixed = model.model(&point.theta, point.likelihood)?;
        let found = jensen_latent::predict(&fixed, &point.dual, &query)?;
        let added = fresh.added();
        let each = found.iter().enumerate().map(|(i, (m, v))| {
            let (mean, variance) = model.measure().outside(*m, v + added[i / times]);
            (mean + seen.offset[i], variance)
        });
        parts.push(Part {
            weight: point.weight,
            likelihood: model.outside(point.likelihood),
            moments: each.collect(),
        });
    }
    Ok((parts, seen))
}
