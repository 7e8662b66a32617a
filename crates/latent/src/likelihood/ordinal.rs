//! Ordered levels, under the cumulative logit model of McCullagh (1980).
//!
//! With K levels 0, …, K − 1 and cutpoints `c_1 = 0 < c_2 < … < c_(K−1)`, the probability of level k or a higher one is
//! `P(y ≥ k | η) = σ(η − c_k)`. The first cutpoint is 0, because an intercept of the prior moves all cutpoints together. The
//! parameters are the K − 2 positive steps `c_(k+1) − c_k`, so that the cutpoints keep their order. The number of steps
//! depends on the data, and values of steps that a likelihood does not have are 0.

use jensen_math::simd::F64x8;
use jensen_math::special::{inv_logit, log1p_exp};
use jensen_math::vmath;

use super::Likelihood;
use super::row::{Fitted, Form, LikelihoodRow, ParameterPrior, Response, STEP, Size};
use crate::site::SiteBound;
use crate::site::expectation::Potential;

/// The names of the steps. Models with more hyperparameters than these steps are not integrated over their posterior.
const STEPS: [&str; 8] = [
    "step_1", "step_2", "step_3", "step_4", "step_5", "step_6", "step_7", "step_8",
];

/// The largest number of levels. It has one cutpoint at 0 and a cutpoint after each step.
pub(super) const MOST_LEVELS: usize = STEPS.len() + 2;

pub(super) static ROW: LikelihoodRow = LikelihoodRow {
    name: "ordinal",
    law: "ordered levels: logit P(y ≥ level k) is η − c_k, with c_1 = 0 and c_(k+1) = c_k + step_k",
    parameters: &STEPS,
    usual: &[1.0; STEPS.len()],
    priors: &[const { PRIOR }; STEPS.len()],
    location: false,
    response: Response::Level,
    size: Size::One,
    bounds: &[SiteBound::Exact],
    log_concave: true,
    points: false,
    mean: |p, eta, _| cutpoints(p).iter().map(|c| inv_logit(eta - c)).sum(),
    log_density: |p, eta, y, _| match Level::of(p, y) {
        Some(level) => -level.value(eta),
        None => f64::NEG_INFINITY,
    },
    distribution: |p, eta, y, _| match cutpoints(p).get(y as usize) {
        Some(next) => inv_logit(next - eta),
        None => 1.0,
    },
    form: |likelihood, data| {
        let p = likelihood.values;
        // Responses outside the levels are refused before a fit.
        Form::smooth(data, |_, y| Level::of(&p, y).unwrap_or(Level::LOWEST))
    },
    by_parameters,
};

const PRIOR: ParameterPrior = STEP;

impl Likelihood {
    /// Returns the likelihood of ordered levels 0, …, steps.len() + 1, under which the logit of P(y ≥ k) is η − c_k. The
    /// cutpoint c_1 is 0, and `steps` are the positive differences of adjacent cutpoints.
    ///
    /// # Panics
    /// Panics if there are more than eight steps.
    pub fn ordinal(steps: &[f64]) -> Self {
        Self::of(&ROW, steps).with_categories(steps.len() + 2)
    }

    /// Returns the largest number of ordered levels, or `None` if the response does not have ordered levels.
    pub fn most_levels(self) -> Option<usize> {
        (self.row.response == Response::Level).then_some(MOST_LEVELS)
    }

    /// Computes the probability of each ordered level. The result is empty if the response does not have ordered levels.
    pub fn level_probabilities(self, eta: f64) -> Vec<f64> {
        let levels = self.levels().unwrap_or(0);
        (0..levels)
            .map(|y| self.log_density(eta, y as f64, 1.0).exp())
            .collect()
    }
}

fn cutpoints(p: &[f64]) -> Vec<f64> {
    let steps = p.iter().take_while(|step| **step > 0.0);
    let after = steps.scan(0.0, |sum, step| {
        *sum += step;
        Some(*sum)
    });
    std::iter::once(0.0).chain(after).collect()
}

/// `log(1 + e^(low − η)) + log(1 + e^(η − high)) + c` for a level between the cutpoints `low` and `high`, where c is
/// `−log(1 − e^(low − high))`. The lowest level has only the second logarithm, and the highest level only the first.
#[derive(Clone, Copy, Debug)]
struct Level {
    low: Option<f64>,
    high: Option<f64>,
    c: f64,
}

impl Level {
    const LOWEST: Self = Self {
        low: None,
        high: Some(0.0),
        c: 0.0,
    };

    fn of(p: &[f64], y: f64) -> Option<Self> {
        let (cuts, y) = (cutpoints(p), y as usize);
        if y > cuts.len() {
            return None;
        }
        let (low, high) = (y.checked_sub(1).map(|k| cuts[k]), cuts.get(y).copied());
        let c = match (low, high) {
            (Some(low), Some(high)) => -(-(low - high).exp_m1()).ln(),
            _ => 0.0,
        };
        Some(Self { low, high, c })
    }

    fn value(&self, eta: f64) -> f64 {
        self.low.map_or(0.0, |low| log1p_exp(low - eta))
            + self.high.map_or(0.0, |high| log1p_exp(eta - high))
            + self.c
    }
}

impl Potential for Level {
    #[inline(always)]
    fn at<V: F64x8>(&self, eta: V) -> (V, V, V) {
        let (mut value, mut slope, mut curvature) = (V::splat(self.c), V::zero(), V::zero());
        if let Some(low) = self.low {
            let x = V::splat(low) - eta;
            let (p, q) = (vmath::inv_logit(x), vmath::inv_logit(-x));
            value = value + vmath::log1p_exp(x);
            slope = slope - p;
            curvature = curvature + p * q;
        }
        if let Some(high) = self.high {
            let x = eta - V::splat(high);
            let (p, q) = (vmath::inv_logit(x), vmath::inv_logit(-x));
            value = value + vmath::log1p_exp(x);
            slope = slope + p;
            curvature = curvature + p * q;
        }
        (value, slope, curvature)
    }

    /// The logarithms' arguments are zero at a cutpoint ± iπ.
    fn width(&self) -> f64 {
        std::f64::consts::PI
    }
}

/// With d = high − low, the derivatives of log p are `−σ(low − η) − 1/(e^d − 1)` with respect to `low` and `−σ(η − high)
/// + 1/(e^d − 1)` with respect to `high`, negated in the second case. A step moves all cutpoints after it.
fn by_parameters(p: &[f64], at: &Fitted<'_>) -> Vec<f64> {
    let cuts = cutpoints(p);
    let mut by_cut = vec![0.0; cuts.len()];
    for (i, y) in at.data.response.iter().enumerate() {
        let k = *y as usize;
        let mean = |h: &dyn Fn(f64) -> f64| at.sites.expectation(i, at.m[i], at.v[i], h);
        let gap = match k {
            0 => 0.0,
            k if k == cuts.len() => 0.0,
            k => 1.0 / (cuts[k] - cuts[k - 1]).exp_m1(),
        };
        if k > 0 {
            by_cut[k - 1] -= gap + mean(&|eta| inv_logit(cuts[k - 1] - eta));
        }
        if k < cuts.len() {
            by_cut[k] += gap + mean(&|eta| inv_logit(eta - cuts[k]));
        }
    }
    let mut sum = 0.0;
    let mut steps: Vec<f64> = (by_cut[1..].iter().rev())
        .map(|by| {
            sum += by;
            sum
        })
        .collect();
    steps.reverse();
    steps
}
