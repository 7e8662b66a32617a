//! Leave-one-out predictions, which remove the site of each observation from the posterior.

use jensen_math::quadrature::gauss_hermite;
use jensen_math::special::log_sum_exp_slice;

use crate::likelihood::Response;
use crate::linear::kernels::map;
use crate::{Fit, LatentModel, Predictive, Size};

/// Number of nodes of the quadrature over a linear predictor.
const NODES: usize = 32;

/// When a predictor's own observation is removed, at least this share of the predictor's precision must remain.
const LEFT: f64 = 1e-9;

/// The prediction of an observation from all others, at given hyperparameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeftOut {
    /// The log density of the observation given all others, in nats.
    pub log_density: f64,
    /// The probability of a smaller observation given all others, plus half the probability of an equal one. It is NaN for
    /// binary responses and censored times.
    pub below: f64,
    /// The share of the precision of the linear predictor that comes from the observation itself. It is the tail index of
    /// the importance weights that remove the observation, if the likelihood is normal.
    pub share: f64,
    /// The logarithm of the posterior mean of the density of the observation, in nats.
    pub fitted: f64,
    /// The posterior mean of the log density of the observation, and that of its square.
    pub log_moments: [f64; 2],
}

/// The distribution of a linear predictor with and without its own observation. Each is a mean and a variance.
struct Cavity {
    without: (f64, f64),
    with: (f64, f64),
    share: f64,
}

impl Cavity {
    /// Removing a site with slope α and curvature λ changes the posterior N(m, v) of its predictor to N(m + αv′, v′) with
    /// 1/v′ = 1/v − λ.
    fn of(fit: &Fit, i: usize) -> Self {
        // The posterior of a residual does not depend on the observation.
        let residual = fit.residual_variance.get(i).copied().unwrap_or(0.0);
        let (m, alpha, lambda) = (fit.predictor_mean[i], fit.alpha[i], fit.lambda[i]);
        let v = fit.predictor_variance[i] - residual;
        let own = v / (1.0 - lambda * v).max(LEFT);
        let without = (m + alpha * own, (own + residual).max(0.0));
        // The posterior of the sum of both parts if the residual were updated by the site as well. Without a residual it is
        // N(m, v).
        let remaining = (1.0 + lambda * without.1).max(LEFT);
        let with = (
            (without.0 + without.1 * (lambda * m - alpha)) / remaining,
            without.1 / remaining,
        );
        Self {
            without,
            with,
            share: lambda * v,
        }
    }
}

/// The nodes and weights of a Gauss–Hermite rule.
type Rule = [(f64, f64)];

/// Computes the logarithm of the mean of p(y | η) for η ~ N(m, v) by quadrature around the distribution `near`, which is
/// close to the product of both factors. The sum is therefore accurate even if p is much narrower than N(m, v).
fn log_mean(
    rule: &Rule,
    (m, v): (f64, f64),
    near: (f64, f64),
    log_density: &dyn Fn(f64) -> f64,
) -> f64 {
    if v <= 0.0 || near.1 <= 0.0 {
        return log_density(m);
    }
    let (sd, scale) = (near.1.sqrt(), 0.5 * (near.1 / v).ln());
    let terms: Vec<f64> = (rule.iter())
        .map(|(z, w)| {
            let eta = near.0 + sd * z;
            let prior = scale + 0.5 * z * z - 0.5 * (eta - m).powi(2) / v;
            w.ln() + prior + log_density(eta)
        })
        .collect();
    log_sum_exp_slice(&terms)
}

fn rule() -> Option<Vec<(f64, f64)>> {
    let rule = gauss_hermite(NODES)?;
    Some(rule.nodes.into_iter().zip(rule.weights).collect())
}

/// Computes log p(y_i | the other observations) at the fit's hyperparameters for each observation, in nats.
///
/// The result is exact for normal noise. For other likelihoods it is as accurate as the Gaussian approximation. The
/// function returns `None` for categories, whose density depends on several predictors.
pub fn leave_one_out(model: &LatentModel, fit: &Fit) -> Option<Vec<f64>> {
    if model.likelihood.categories().is_some() {
        return None;
    }
    let rule = rule()?;
    let data = &model.observations;
    let one = |i: usize| {
        let Cavity { without, with, .. } = Cavity::of(fit, i);
        let density = |eta| (model.likelihood).log_density(eta, data.response[i], data.size_of(i));
        log_mean(&rule, without, with, &density)
    };
    Some(map(data.response.len(), one))
}

/// Computes what [`leave_one_out`] computes, with quantities for checks of each observation. The cost is about 100
/// evaluations of the likelihood and its distribution function per observation.
pub fn left_out(model: &LatentModel, fit: &Fit) -> Option<Vec<LeftOut>> {
    if model.likelihood.categories().is_some() {
        return None;
    }
    let rule = rule()?;
    let (data, likelihood) = (&model.observations, model.likelihood);
    let whole = matches!(
        likelihood.response(),
        Response::Count | Response::Trials | Response::Level
    );
    let one = |i: usize| {
        let Cavity {
            without,
            with,
            share,
        } = Cavity::of(fit, i);
        let (y, size) = (data.response[i], data.size_of(i));
        let density = |eta: f64| likelihood.log_density(eta, y, size);
        let log_density = log_mean(&rule, without, with, &density);
        let observed = match likelihood.sized_by() {
            Size::Event => size != 0.0,
            Size::Until => size == y,
            _ => true,
        };
        let below = match observed && likelihood.has_quantiles() {
            true => {
                let to = Predictive::new(likelihood, without.0, without.1.sqrt(), size);
                let half = if whole { 0.5 * log_density.exp() } else { 0.0 };
                (to.distribution(y) - half).clamp(0.0, 1.0)
            }
            false => f64::NAN,
        };
        let (m, v) = (fit.predictor_mean[i], fit.predictor_variance[i].max(0.0));
        // The product of the posterior and the density is narrower than both.
        let lambda = fit.lambda[i].max(0.0);
        let mut log_moments = [0.0; 2];
        for (z, w) in &rule {
            let log = density(m + v.sqrt() * z);
            log_moments[0] += w * log;
            log_moments[1] += w * log * log;
        }
        let twice = (
            m + fit.alpha[i] * -v / (1.0 + lambda * v),
            v / (1.0 + lambda * v),
        );
        LeftOut {
            log_density,
            below,
            share,
            fitted: log_mean(&rule, (m, v), twice, &density),
            log_moments,
        }
    };
    Some(map(data.response.len(), one))
}
