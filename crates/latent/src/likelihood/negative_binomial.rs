//! Counts with a larger variance than Poisson counts.

use jensen_math::special::{digamma, inc_beta, lgamma, log1p_exp};

use super::Likelihood;
use super::binomial::log_choose;
use super::row::{FRAILTY, Fitted, Form, LikelihoodRow, Response, Size};
use crate::Observations;
use crate::linear::kernels::sum;
use crate::site::logistic::{self, Logistic};

pub(super) static ROW: LikelihoodRow = LikelihoodRow {
    name: "negative-binomial",
    law: "mean exposure · e^η = μ, variance μ + μ²/size",
    parameters: &["size"],
    usual: &[1.0],
    priors: &[FRAILTY],
    location: false,
    response: Response::Count,
    size: Size::Exposure,
    bounds: logistic::BOUNDS,
    log_concave: true,
    points: false,
    mean: |_, eta, exposure| exposure * eta.exp(),
    log_density: |p, eta, y, size| {
        let failures = p[0];
        let log_odds = eta + size.ln() - failures.ln();
        log_choose(y + failures - 1.0, y) + y * log_odds - (y + failures) * log1p_exp(log_odds)
    },
    distribution: |p, eta, y, size| inc_beta(p[0], y + 1.0, p[0] / (p[0] + size * eta.exp())),
    form: |likelihood, data| {
        let size = likelihood.values[0];
        Form::logistic(data, |i, _| logistic(size, data, i))
    },
    by_parameters,
};

impl Likelihood {
    /// Returns the likelihood of counts with mean μ = e exp(η) and variance μ + μ²/size. As the size tends to infinity,
    /// the distribution tends to a Poisson distribution.
    pub fn negative_binomial(size: f64) -> Self {
        Self::of(&ROW, &[size])
    }
}

/// `log p = log Γ(y+r) − log Γ(r) − log y! + y x − (y+r) log(1 + e^x)` with x = η + log e − log r.
fn logistic(size: f64, data: &Observations, i: usize) -> Logistic {
    let y = data.response[i];
    Logistic {
        y,
        n: y + size,
        shift: (size / data.size_of(i)).ln(),
        c: lgamma(size) + lgamma(y + 1.0) - lgamma(y + size),
    }
}

/// The parameter r enters through y, n = y + r, t = log(r/e) and the constant, and the envelope theorem applies. If F
/// is the bound on n E log(1 + e^x), then `df/dr = y/r + F/n − f_x/r + ψ(r) − ψ(y+r)` with `f_x = ∂F/∂x`.
fn by_parameters(p: &[f64], at: &Fitted<'_>) -> Vec<f64> {
    let (size, y) = (p[0], &at.data.response);
    let values = at.sites.values(at.m, at.v);
    vec![-sum(y.len(), |i| {
        let Logistic { n, shift, c, .. } = logistic(size, at.data, i);
        let whole = values[i].f - c + y[i] * (at.m[i] - shift);
        y[i] / size + whole / n - (values[i].by_mean + y[i]) / size + digamma(size) - digamma(n)
    })]
}
