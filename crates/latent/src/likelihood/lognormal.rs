//! Positive numbers with normal logarithms.

use jensen_math::constants::HALF_LOG_TWO_PI;
use jensen_math::simd::F64x8;
use jensen_math::special::{log_phi, phi};
use jensen_math::vmath;

use super::Likelihood;
use super::gaussian::normal;
use super::interval::{NormalTime, by_variance as by_variance_of_intervals, log_density};
use super::row::{Fitted, Form, LOG_VARIANCE, LikelihoodRow, Response, Size};
use crate::linear::kernels::sum;
use crate::site::SiteBound;
use crate::site::convex::Convex;
use crate::site::expectation::Potential;

const TIMES: LikelihoodRow = LikelihoodRow {
    name: "lognormal",
    law: "log y is N(η − variance/2, variance), with mean e^η",
    parameters: &["variance"],
    usual: &[1.0],
    priors: &[LOG_VARIANCE],
    location: false,
    response: Response::Positive,
    size: Size::One,
    bounds: &[SiteBound::Exact],
    log_concave: true,
    points: false,
    mean: |_, eta, _| eta.exp(),
    log_density: |p, eta, y, _| normal(y.ln() + 0.5 * p[0] - eta, p[0].ln()) - y.ln(),
    distribution: |p, eta, y, _| phi((y.ln() + 0.5 * p[0] - eta) / p[0].sqrt()),
    form: |likelihood, data| {
        let variance = likelihood.values[0];
        Form::convex(data, |_, y| {
            let x = y.ln() + 0.5 * variance;
            Convex::Quadratic {
                a: 1.0 / variance,
                b: -x / variance,
                c: x * x / (2.0 * variance) + HALF_LOG_TWO_PI + 0.5 * variance.ln() + y.ln(),
            }
        })
    },
    by_parameters,
};

pub(super) static ROW: LikelihoodRow = TIMES;

pub(super) static CENSORED: LikelihoodRow = LikelihoodRow {
    name: "lognormal(event=COLUMN)",
    law: "log times are N(η − variance/2, variance), right-censored where the event is 0",
    size: Size::Event,
    log_density: |p, eta, y, event| match event {
        0.0 => log_phi((eta - y.ln() - 0.5 * p[0]) / p[0].sqrt()),
        _ => (TIMES.log_density)(p, eta, y, event),
    },
    form: |likelihood, data| {
        let sd = likelihood.values[0].sqrt();
        Form::smooth(data, |i, y| LogTime {
            middle: y.ln() + 0.5 * sd * sd,
            sd,
            c: HALF_LOG_TWO_PI + sd.ln() + y.ln(),
            censored: data.size_of(i) == 0.0,
        })
    },
    by_parameters: by_parameters_of_times,
    ..TIMES
};

pub(super) static INTERVAL: LikelihoodRow = LikelihoodRow {
    name: "lognormal(until=COLUMN)",
    law: "times in an interval, whose logarithms are N(η − variance/2, variance)",
    response: Response::NonNegative,
    size: Size::Until,
    log_density: |p, eta, y, until| log_density(&NormalTime::new(p[0], y, until), eta)[0],
    form: |likelihood, data| {
        let variance = likelihood.values[0];
        Form::smooth(data, |i, y| NormalTime::new(variance, y, data.size_of(i)))
    },
    by_parameters: by_variance_of_intervals,
    ..TIMES
};

impl Likelihood {
    /// Returns the likelihood log y ~ N(η − variance/2, variance).
    pub fn lognormal(variance: f64) -> Self {
        Self::of(&ROW, &[variance])
    }
}

fn by_parameters(p: &[f64], at: &Fitted<'_>) -> Vec<f64> {
    let (s, y) = (p[0], &at.data.response);
    vec![sum(y.len(), |i| by_variance(s, y[i], at.m[i], at.v[i]))]
}

/// The derivative of the expectation of log p, for η ~ N(m, v), with respect to the variance s.
fn by_variance(s: f64, y: f64, m: f64, v: f64) -> f64 {
    let r = y.ln() + 0.5 * s - m;
    (r * r + v) / (2.0 * s * s) - 0.5 / s - 0.5 * r / s
}

/// The derivative of log Φ(x) with respect to the variance s is φ(x)/Φ(x) times that of x = (η − log y − s/2)/√s, which is
/// −1/(2√s) − x/(2s).
fn by_parameters_of_times(p: &[f64], at: &Fitted<'_>) -> Vec<f64> {
    let (s, y) = (p[0], &at.data.response);
    let sd = s.sqrt();
    vec![sum(y.len(), |i| {
        if at.data.size_of(i) != 0.0 {
            return by_variance(s, y[i], at.m[i], at.v[i]);
        }
        at.sites.expectation(i, at.m[i], at.v[i], &|eta: f64| {
            let x = (eta - y[i].ln() - 0.5 * s) / sd;
            let ratio = (-0.5 * x * x - HALF_LOG_TWO_PI - log_phi(x)).exp();
            -ratio * (0.5 / sd + 0.5 * x / s)
        })
    })]
}

/// −log p of an observed or censored time. With x = (η − middle)/sd, it is x²/2 + c for an observed time, and −log Φ(x)
/// for a censored one.
#[derive(Clone, Copy, Debug)]
struct LogTime {
    middle: f64,
    sd: f64,
    c: f64,
    censored: bool,
}

impl Potential for LogTime {
    #[inline(always)]
    fn at<V: F64x8>(&self, eta: V) -> (V, V, V) {
        let (half, rate) = (V::splat(0.5), V::splat(1.0 / self.sd));
        let x = (eta - V::splat(self.middle)) * rate;
        if !self.censored {
            return (half * x * x + V::splat(self.c), x * rate, rate * rate);
        }
        let log = vmath::log_phi(x);
        // The ratio is φ(x)/Φ(x).
        let ratio = vmath::exp(-half * x * x - V::splat(HALF_LOG_TWO_PI) - log);
        (-log, -ratio * rate, ratio * (ratio + x) * rate * rate)
    }

    /// The zeros of Φ nearest to the real line are 1.916 ± 2.816 i.
    fn width(&self) -> f64 {
        2.816 * self.sd
    }
}
