//! Amounts that are 0 with positive probability, and positive otherwise: sums of a Poisson number of gamma variables.
//!
//! With the shape k of the gamma variables, the variance is φ μ^p with the power p = (k + 2)/(k + 1) between 1 and 2.
//! The density of a positive amount is the series of Dunn and Smyth (2005), equations 2 to 4, whose α is −k.

use jensen_math::simd::F64x8;
use jensen_math::special::{digamma, gamma_p, lgamma};

use super::Likelihood;
use super::row::{DISPERSION, Fitted, Form, LikelihoodRow, ODDS, Response, Size};
use crate::linear::kernels::sum;
use crate::site::SiteBound;
use crate::site::expectation::{Exponential, Potential};

pub(super) static ROW: LikelihoodRow = LikelihoodRow {
    name: "tweedie",
    law: "Tweedie, with zeros; mean e^η, variance dispersion · mean^((shape + 2)/(shape + 1))",
    parameters: &["dispersion", "shape"],
    usual: &[1.0, 1.0],
    priors: &[DISPERSION, ODDS],
    location: false,
    response: Response::NonNegative,
    size: Size::One,
    bounds: &[SiteBound::Exact],
    log_concave: true,
    points: false,
    mean: |_, eta, _| eta.exp(),
    log_density: |p, eta, y, _| {
        let Rates { fall, rise } = Rates::of(p, y);
        let exponents = Exponents::of(p);
        let series = if y > 0.0 { Series::of(p, y).log } else { 0.0 };
        series - fall * (-exponents.fall * eta).exp() - rise * (exponents.rise * eta).exp()
    },
    distribution: |p, eta, y, _| distribution(p, eta, y),
    form: |likelihood, data| {
        let p = likelihood.values;
        Form::smooth(data, |_, y| Amount {
            rates: Rates::of(&p, y),
            exponents: Exponents::of(&p),
            c: if y > 0.0 { -Series::of(&p, y).log } else { 0.0 },
        })
    },
    by_parameters,
};

impl Likelihood {
    /// Returns the likelihood of a Tweedie distribution with mean μ = exp(η) and variance `dispersion` · μ^p. The power p
    /// is (shape + 2)/(shape + 1).
    pub fn tweedie(dispersion: f64, shape: f64) -> Self {
        Self::of(&ROW, &[dispersion, shape])
    }
}

/// −log p is `fall · e^(−exponent η) + rise · e^((1 − exponent) η)` and a constant, with exponent = 1/(k + 1) = p − 1.
#[derive(Clone, Copy, Debug)]
struct Rates {
    fall: f64,
    rise: f64,
}

impl Rates {
    /// The rates are y/((p − 1) φ) and 1/((2 − p) φ).
    fn of(p: &[f64], y: f64) -> Self {
        let (dispersion, shape) = (p[0], p[1]);
        Self {
            fall: y * (shape + 1.0) / dispersion,
            rise: (shape + 1.0) / (shape * dispersion),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Exponents {
    fall: f64,
    rise: f64,
}

impl Exponents {
    fn of(p: &[f64]) -> Self {
        let shape = p[1];
        Self {
            fall: 1.0 / (shape + 1.0),
            rise: shape / (shape + 1.0),
        }
    }
}

/// The logarithm of `1/y Σ_j W_j` with `log W_j = j log z − log Γ(j + 1) − log Γ(jk)`, and the weighted means of j and of
/// j ψ(jk). They give the derivatives of the logarithm.
struct Series {
    log: f64,
    number: f64,
    digammas: f64,
    /// The derivative of log z with respect to the shape.
    by_shape: f64,
}

/// Terms this many nats below the largest do not change the sum.
const SMALL: f64 = 37.0;

impl Series {
    fn of(p: &[f64], y: f64) -> Self {
        let (dispersion, shape) = (p[0], p[1]);
        let scaled = (y * (shape + 1.0) / dispersion).ln();
        // log z = k log y + k log(k + 1) − (1 + k) log φ − log(k/(k + 1)).
        let log_z = shape * scaled - dispersion.ln() - (shape / (shape + 1.0)).ln();
        let term = |j: f64| j * log_z - lgamma(j + 1.0) - lgamma(j * shape);
        let exponents = Exponents::of(p);
        // The largest term is near y^(2 − p)/((2 − p) φ), and the terms are log-concave.
        let middle = Rates::of(p, y).rise * y.powf(exponents.rise);
        let middle = middle.round().max(1.0);
        let mut top = term(middle);
        let mut terms = vec![(middle, top)];
        let mut extend = |direction: f64| {
            let mut j = middle + direction;
            while j >= 1.0 {
                let log = term(j);
                top = top.max(log);
                if log < top - SMALL {
                    break;
                }
                terms.push((j, log));
                j += direction;
            }
        };
        extend(1.0);
        extend(-1.0);
        let (mut total, mut number, mut digammas) = (0.0, 0.0, 0.0);
        for (j, log) in terms {
            let w = (log - top).exp();
            total += w;
            number += w * j;
            digammas += w * j * digamma(j * shape);
        }
        Self {
            log: top + total.ln() - y.ln(),
            number: number / total,
            digammas: digammas / total,
            by_shape: scaled + 1.0 - 1.0 / shape,
        }
    }
}

/// Numbers of summands with a Poisson probability below e^−32 are left out.
const RARE: f64 = 32.0;

/// The sum over the number n of gamma variables of its Poisson probability times their distribution function.
fn distribution(p: &[f64], eta: f64, y: f64) -> f64 {
    let (shape, exponents) = (p[1], Exponents::of(p));
    let rate = Rates::of(p, y).rise * (exponents.rise * eta).exp();
    if y <= 0.0 {
        return (-rate).exp();
    }
    // y over the scale φ (p − 1) μ^(p − 1) of the gamma variables.
    let x = Rates::of(p, y).fall * (-exponents.fall * eta).exp();
    let log = |n: f64| n * rate.ln() - rate - lgamma(n + 1.0);
    let below = |n: f64| if n > 0.0 { gamma_p(n * shape, x) } else { 1.0 };
    let middle = rate.floor();
    let sum_from = |mut n: f64, direction: f64| {
        let mut sum = 0.0;
        while n >= 0.0 {
            let log = log(n);
            if log < -RARE {
                break;
            }
            sum += log.exp() * below(n);
            n += direction;
        }
        sum
    };
    sum_from(middle, -1.0) + sum_from(middle + 1.0, 1.0)
}

#[derive(Clone, Copy, Debug)]
struct Amount {
    rates: Rates,
    exponents: Exponents,
    c: f64,
}

impl Potential for Amount {
    #[inline(always)]
    fn at<V: F64x8>(&self, _: V) -> (V, V, V) {
        (V::splat(self.c), V::zero(), V::zero())
    }

    fn exponentials(&self) -> [Exponential; 2] {
        let (Rates { fall, rise }, own) = (self.rates, self.exponents);
        [
            Exponential {
                rate: fall,
                slope: -own.fall,
            },
            Exponential {
                rate: rise,
                slope: own.rise,
            },
        ]
    }

    fn width(&self) -> f64 {
        f64::INFINITY
    }
}

/// With s = 1/(k + 1) and t = 1 − s, which change by ∓1/(k + 1)² with k, and the closed form of E η e^(tη).
fn by_parameters(p: &[f64], at: &Fitted<'_>) -> Vec<f64> {
    let (dispersion, shape) = (p[0], p[1]);
    let (y, Exponents { fall: s, rise: t }) = (&at.data.response, Exponents::of(p));
    let bend = s * s;
    let each = |i: usize| {
        let (m, v) = (at.m[i], at.v[i]);
        let rates = Rates::of(p, y[i]);
        let fall = (-s * m + 0.5 * s * s * v).exp();
        let rise = (t * m + 0.5 * t * t * v).exp();
        let mut by_dispersion = (rates.fall * fall + rates.rise * rise) / dispersion;
        let mut by_shape = -(y[i] / dispersion + rates.fall * bend * (m - s * v)) * fall
            - (rates.rise * bend * (m + t * v) - 1.0 / (shape * shape * dispersion)) * rise;
        if y[i] > 0.0 {
            let series = Series::of(p, y[i]);
            by_dispersion -= (1.0 + shape) / dispersion * series.number;
            by_shape += series.number * series.by_shape - series.digammas;
        }
        (by_dispersion, by_shape)
    };
    let all: Vec<(f64, f64)> = (0..y.len()).map(each).collect();
    vec![sum(all.len(), |i| all[i].0), sum(all.len(), |i| all[i].1)]
}
