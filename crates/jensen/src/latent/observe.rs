//! Densities and means of observations given their linear predictor η, as `jensen-latent` names them.

use jensen_latent::Likelihood;
use jensen_math::constants::LOG_TWO_PI;
use jensen_math::special::{inv_logit, lgamma, log_phi, log1p_exp, phi};

/// What multiplies the mean of an observation: exposure, or the number of trials.
pub(super) fn size(likelihood: Likelihood, exposure: f64, trials: f64) -> f64 {
    match likelihood {
        Likelihood::Poisson | Likelihood::NegativeBinomial { .. } => exposure,
        Likelihood::Binomial => trials,
        _ => 1.0,
    }
}

/// Mean of an observation of size 1; of stochastic volatility, whose mean is 0, the standard deviation.
pub(super) fn mean(likelihood: Likelihood, eta: f64) -> f64 {
    match likelihood {
        Likelihood::Gaussian { .. } | Likelihood::StudentT { .. } => eta,
        Likelihood::Poisson
        | Likelihood::NegativeBinomial { .. }
        | Likelihood::Gamma { .. }
        | Likelihood::Exponential => eta.exp(),
        Likelihood::StochasticVolatility => (0.5 * eta).exp(),
        Likelihood::Bernoulli | Likelihood::Binomial | Likelihood::Multinomial { .. } => {
            inv_logit(eta)
        }
        Likelihood::Probit => phi(eta),
    }
}

/// log p(y | η) with all constants, in nats; NaN for multinomial observations, which have several η.
pub(super) fn log_density(likelihood: Likelihood, eta: f64, y: f64, size: f64) -> f64 {
    let normal = |x: f64, log_variance: f64| {
        -0.5 * (LOG_TWO_PI + log_variance + x * x * (-log_variance).exp())
    };
    let gamma = |shape: f64| {
        shape * (shape.ln() - eta) - lgamma(shape) + (shape - 1.0) * y.ln()
            - shape * y * (-eta).exp()
    };
    let choose = |n: f64, k: f64| lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0);
    match likelihood {
        Likelihood::Gaussian { variance } => normal(y - eta, variance.ln()),
        Likelihood::Poisson => y * (eta + size.ln()) - size * eta.exp() - lgamma(y + 1.0),
        Likelihood::Bernoulli => y * eta - log1p_exp(eta),
        Likelihood::Binomial => choose(size, y) + y * eta - size * log1p_exp(eta),
        Likelihood::NegativeBinomial { size: failures } => {
            let log_odds = eta + size.ln() - failures.ln();
            choose(y + failures - 1.0, y) + y * log_odds - (y + failures) * log1p_exp(log_odds)
        }
        Likelihood::Gamma { shape } => gamma(shape),
        Likelihood::Exponential => gamma(1.0),
        Likelihood::StochasticVolatility => normal(y, eta),
        Likelihood::Multinomial { .. } => f64::NAN,
        Likelihood::Probit => log_phi((2.0 * y - 1.0) * eta),
        Likelihood::StudentT { degrees, scale } => {
            let half = 0.5 * (degrees + 1.0);
            let z = (y - eta) / scale;
            lgamma(half)
                - lgamma(0.5 * degrees)
                - 0.5 * (degrees * std::f64::consts::PI).ln()
                - scale.ln()
                - half * (z * z / degrees).ln_1p()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Densities of counts and categories add up to 1, and the mean is the stated one.
    #[test]
    fn densities_of_counts_add_up() {
        let cases = [
            (Likelihood::Poisson, 2.0, 200),
            (Likelihood::NegativeBinomial { size: 3.0 }, 2.0, 2000),
            (Likelihood::Binomial, 7.0, 7),
            (Likelihood::Bernoulli, 1.0, 1),
            (Likelihood::Probit, 1.0, 1),
        ];
        for (likelihood, of, most) in cases {
            for eta in [-1.3, 0.4, 1.1] {
                let p = |k: i32| log_density(likelihood, eta, f64::from(k), of).exp();
                let total: f64 = (0..=most).map(p).sum();
                let first: f64 = (0..=most).map(|k| f64::from(k) * p(k)).sum();
                assert!((total - 1.0).abs() < 1e-10, "{likelihood:?} {total}");
                let expected = of * mean(likelihood, eta);
                assert!(
                    (first - expected).abs() < 1e-8 * expected,
                    "{likelihood:?} {first} {expected}"
                );
            }
        }
    }

    #[test]
    fn densities_of_numbers_integrate_to_one() {
        let cases = [
            (Likelihood::Gaussian { variance: 0.3 }, -30.0),
            (
                Likelihood::StudentT {
                    degrees: 9.0,
                    scale: 0.5,
                },
                -30.0,
            ),
            (Likelihood::StochasticVolatility, -30.0),
            (Likelihood::Gamma { shape: 2.5 }, 0.0),
            (Likelihood::Exponential, 0.0),
        ];
        for (likelihood, from) in cases {
            let step = 1e-3;
            let points = ((40.0 - from) / step) as usize;
            let total: f64 = (0..points)
                .map(|i| from + (i as f64 + 0.5) * step)
                .map(|y| step * log_density(likelihood, 0.4, y, 1.0).exp())
                .sum();
            assert!((total - 1.0).abs() < 1e-5, "{likelihood:?} {total}");
        }
    }
}
