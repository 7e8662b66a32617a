//! Leave-one-out predictions, which remove the site of each observation from the posterior.

use jensen_math::quadrature::gauss_hermite;
use jensen_math::special::log_sum_exp_slice;

use crate::linear::kernels::map;
use crate::{Fit, LatentModel};

/// Number of nodes of the quadrature over a linear predictor.
const NODES: usize = 32;

/// When a predictor's own observation is removed, at least this share of the predictor's precision must remain.
const LEFT: f64 = 1e-9;

/// Computes log p(y_i | the other observations) at the fit's hyperparameters for each observation, in nats.
///
/// Removing a site with slope α and curvature λ changes the posterior N(m, v) of its predictor to N(m + αv′, v′) with
/// 1/v′ = 1/v − λ. The result is exact for normal noise. For other likelihoods it is as accurate as the Gaussian
/// approximation. The function returns `None` for categories, whose density depends on several predictors.
pub fn leave_one_out(model: &LatentModel, fit: &Fit) -> Option<Vec<f64>> {
    if model.likelihood.categories().is_some() {
        return None;
    }
    let rule = gauss_hermite(NODES)?;
    let data = &model.observations;
    let one = |i: usize| {
        // The posterior of a residual does not depend on the observation.
        let residual = fit.residual_variance.get(i).copied().unwrap_or(0.0);
        let (m, v) = (fit.predictor_mean[i], fit.predictor_variance[i] - residual);
        let without = v / (1.0 - fit.lambda[i] * v).max(LEFT);
        let mean = m + fit.alpha[i] * without;
        let sd = (without + residual).max(0.0).sqrt();
        let size = data.size_of(i);
        let terms: Vec<f64> = (rule.nodes.iter().zip(&rule.weights))
            .map(|(z, w)| {
                let eta = mean + sd * z;
                w.ln() + model.likelihood.log_density(eta, data.response[i], size)
            })
            .collect();
        log_sum_exp_slice(&terms)
    };
    Some(map(data.response.len(), one))
}
