//! The distance of the posterior of the latent variables from the normal posterior of a fit, at fixed hyperparameters.
//!
//! A fit finds the best normal approximation, and its duality gap does not tell how good the best one is. A likelihood
//! that is flat in one direction, such as that of zero-truncated counts of 1, gives the posterior a tail that no normal
//! distribution has. This module draws from the fit and gives each draw its importance weight. The weighted draws have
//! the moments of the exact posterior.
//!
//! With the derivatives α of the expected −log p(y|η) with respect to the means of η, the derivatives λ/2 with respect to
//! its variances, and a Gaussian prior, the optimum satisfies V⁻¹ = Σ⁻¹ + Wᵀ diag(λ) W and Σ⁻¹(m − μ) = −Wᵀα. The prior
//! then cancels from the weights: the log weight of η is `Σ_n (log p(y_n|η_n) + α_n (η_n − E η_n) + ½ λ_n (η_n − E η_n)²)`.

use rayon::prelude::*;

use crate::linear::design;
use crate::linear::kernels::dot;
use crate::site::Sites;
use crate::{Design, Error, Fit, LatentModel, Query, draw};

/// Number of values of all draws. Draws then take 8 MB, which is little beside a fit.
const VALUES: usize = 1_000_000;

/// Fewest draws. With this number and weights that are nearly equal, a standard deviation has an error of 2.2 %.
const FEWEST: usize = 1000;

/// Most draws. A standard deviation then has an error of 0.7 %, so that a difference of a tenth stands out.
const MOST: usize = 10_000;

/// Least effective number of draws. With fewer, the weights vary so much that their own moments are unreliable.
const EFFECTIVE: f64 = 400.0;

/// A difference counts beyond this number of its standard errors. The largest of 1000 errors is about 3.3 standard errors, so
/// without any difference at most 1.3 of them count. That is 0.01 for nearly equal weights, a tenth of the accepted difference.
const ERRORS: f64 = 2.0;

/// Seed of the draws. The result depends on the fit alone.
const SEED: u64 = 0;

/// The distance of the exact posterior of latent variables and linear predictors from the normal posterior of a fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normality {
    /// The effective number of draws.
    pub effective: f64,
    /// The largest difference of a mean, in standard deviations of the fit, beyond the error of the draws.
    pub shift: f64,
    /// The largest ratio of an exact standard deviation to that of the fit (or its reciprocal, if it is larger), beyond the
    /// error of the draws.
    pub sd_ratio: f64,
}

impl Normality {
    /// Largest difference of a mean in a trusted fit, in standard deviations. A 90 % interval with this error covers 89.8 %.
    pub const SHIFT: f64 = 0.1;

    /// Largest ratio of standard deviations in a trusted fit, which is that of
    /// [`Tightness::LOOSE`](crate::Tightness::LOOSE).
    pub const RATIO: f64 = 1.1;

    /// Whether the posterior is too far from a normal distribution for the fit to be trusted.
    pub fn is_far(&self) -> bool {
        self.shift > Self::SHIFT || self.sd_ratio > Self::RATIO
    }
}

/// Compares the posterior of a fit of `model` with the exact posterior. Returns `None` if the likelihood is normal, so that the
/// posterior is, if the weights of the draws are too unequal for a comparison, if there are more than 1000 latent variables
/// and linear predictors, or if an observation has several linear predictors or a residual.
///
/// The cost is that of 1000 to 10 000 joint draws and as many evaluations of the likelihood.
///
/// # Errors
/// Returns the errors of [`draw`].
pub fn normality(model: &LatentModel, fit: &Fit) -> Result<Option<Normality>, Error> {
    let (latents, rows) = (fit.mean.len(), fit.predictor_mean.len());
    let draws = (VALUES / (latents + rows).max(1)).min(MOST);
    let single = model.likelihood.predictors() == 1 && fit.alpha.len() == rows;
    let possible = single && fit.residual_variance.is_empty() && draws >= FEWEST;
    if !possible || Sites::new(model, None)?.is_quadratic() {
        return Ok(None);
    }
    let numbers: Vec<u64> = (0..draws as u64).collect();
    let query = Query::Rows(Design::Identity);
    let drawn = draw(model, &fit.warm(), &query, None, &numbers, SEED)?;
    let offset = model.observations.offset.as_deref();
    // The distances of the predictors from their means, after those of the latent variables.
    let away: Vec<Vec<f64>> = (drawn.par_chunks(latents))
        .map(|z| {
            let own = z.iter().zip(&fit.mean).map(|(z, m)| z - m);
            let eta = design::times(&model.design, z);
            let eta = eta.iter().enumerate().map(|(n, eta)| {
                eta + offset.map_or(0.0, |offset| offset[n]) - fit.predictor_mean[n]
            });
            own.chain(eta).collect()
        })
        .collect();
    let logs: Vec<f64> = (away.par_iter())
        .map(|away| {
            let observations = &model.observations;
            let terms: Vec<f64> = (away[latents..].iter().enumerate())
                .map(|(n, d)| {
                    let eta = fit.predictor_mean[n] + d;
                    let (y, size) = (observations.response[n], observations.size_of(n));
                    model.likelihood.log_density(eta, y, size)
                        + d * (fit.alpha[n] + 0.5 * fit.lambda[n] * d)
                })
                .collect();
            jensen_math::sum::pairwise_sum(&terms)
        })
        .collect();
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
    let total = jensen_math::sum::pairwise_sum(&weights);
    let weights: Vec<f64> = weights.iter().map(|w| w / total).collect();
    let effective = 1.0 / dot(&weights, &weights);
    if effective.is_nan() || effective < EFFECTIVE {
        return Ok(None);
    }
    let variances = fit.variance.iter().chain(&fit.predictor_variance);
    let each: Vec<(f64, f64)> = (variances.collect::<Vec<_>>().par_iter().enumerate())
        .filter(|(_, variance)| ***variance > 0.0)
        .map(|(k, variance)| {
            let values: Vec<f64> = away.iter().map(|away| away[k] / variance.sqrt()).collect();
            compare(&values, &weights)
        })
        .collect();
    let largest = |of: fn(&(f64, f64)) -> f64| each.iter().map(of).fold(0.0, f64::max);
    Ok(Some(Normality {
        effective,
        shift: largest(|own| own.0),
        sd_ratio: largest(|own| own.1).exp(),
    }))
}

/// Returns the weighted mean, and the absolute log ratio of the weighted standard deviation to the unweighted one, each
/// as far as it exceeds the error of the draws. The comparison with the same draws without weights removes most of this
/// error.
fn compare(values: &[f64], weights: &[f64]) -> (f64, f64) {
    let share = 1.0 / values.len() as f64;
    let plain: f64 = share * values.iter().sum::<f64>();
    let mean = dot(values, weights);
    let spread = |middle: f64, weight: &dyn Fn(usize) -> f64| -> f64 {
        let terms = values.iter().enumerate();
        terms
            .map(|(s, x)| weight(s) * (x - middle) * (x - middle))
            .sum()
    };
    let before = spread(plain, &|_| share);
    let after = spread(mean, &|s| weights[s]);
    let error = |influence: &dyn Fn(usize) -> f64| -> f64 {
        let terms = (0..values.len()).map(influence);
        terms.map(|x| x * x).sum::<f64>().sqrt()
    };
    let of_mean = error(&|s| weights[s] * (values[s] - mean) - share * (values[s] - plain));
    let of_ratio = error(&|s| {
        let square = |middle: f64| (values[s] - middle) * (values[s] - middle);
        0.5 * (weights[s] * (square(mean) / after - 1.0) - share * (square(plain) / before - 1.0))
    });
    let beyond = |difference: f64, error: f64| (difference.abs() - ERRORS * error).max(0.0);
    (
        beyond(mean - plain, of_mean),
        beyond(0.5 * (after / before).ln(), of_ratio),
    )
}
