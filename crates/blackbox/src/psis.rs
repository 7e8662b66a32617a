//! Pareto-smoothed importance sampling. The results are the same as those of ArviZ's `psislw`.
//!
//! The method fits a generalised Pareto distribution to the largest weights and replaces these weights by the expected
//! order statistics of the distribution. The fitted shape k̂ determines how many moments of the weights are finite. The
//! method is described in Vehtari, Simpson, Gelman, Yao and Gabry, *Pareto smoothed importance sampling*, JMLR
//! 25(72), 2024. The fit follows Zhang and Stephens (Technometrics 51, 2009), with the weak prior of the former paper.

use std::borrow::Cow;

use jensen_math::special::log_sum_exp_slice;

use crate::reduce::sum;

/// Smoothed importance weights and the shape of their tail.
#[derive(Clone, Debug, PartialEq)]
pub struct Psis {
    /// The logarithms of the smoothed and normalised weights, in the order of the input.
    pub log_weights: Vec<f64>,
    /// The shape k̂ of the fitted tail. It is infinite if fewer than five weights exceed the cutoff, because such a
    /// tail is too short for a fit.
    pub khat: f64,
}

/// Returns `min(1 − 1/log₁₀ S, 0.7)` for S = `draws`. If k̂ exceeds this value, importance sampling with S draws is
/// unreliable.
pub fn khat_threshold(draws: usize) -> f64 {
    (1.0 - 1.0 / (draws as f64).log10()).min(0.7)
}

/// Smooths the importance weights whose logarithms are `log_weights`. NaN is treated as −∞. `relative_efficiency` is 1
/// for independent draws.
///
/// If no weight is finite, the function returns the weights unchanged, with an infinite k̂.
pub fn psis(log_weights: &[f64], relative_efficiency: f64) -> Psis {
    let mut x = log_weights.to_vec();
    let Some(tail) = Tail::of(&mut x, relative_efficiency) else {
        return Psis {
            log_weights: x,
            khat: f64::INFINITY,
        };
    };
    let (khat, scale) = tail.fit(&x);
    if khat.is_finite() && scale > 0.0 {
        for (j, &i) in tail.order.iter().enumerate() {
            let p = (j as f64 + 0.5) / tail.order.len() as f64;
            let smoothed = (pareto_quantile(p, khat, scale) + tail.cutoff.exp()).ln();
            x[i] = if smoothed > 0.0 { 0.0 } else { smoothed };
        }
    }
    let normaliser = log_sum_exp_slice(&x);
    x.iter_mut().for_each(|w| *w -= normaliser);
    Psis {
        log_weights: x,
        khat,
    }
}

pub(crate) fn khat(log_weights: &[f64], relative_efficiency: f64) -> f64 {
    let mut x = log_weights.to_vec();
    Tail::of(&mut x, relative_efficiency).map_or(f64::INFINITY, |tail| tail.fit(&x).0)
}

/// Computes the tail index k̂ of a quantity from its draws, in any order. The function fits a generalised Pareto
/// distribution to each tail and returns the larger of the two shapes. Moments of order 1/k̂ and higher do not exist.
/// The result equals that of `pareto_khat` in the R package posterior (Vehtari et al. 2024, section 3.2), with tails of
/// the same length as in [`psis`].
///
/// Equal whole numbers are first spread evenly over the interval of length 1 around them. Otherwise the many ties among
/// counts would look like a heavy tail.
///
/// Returns `None` if any draw is not finite. Also returns `None` if both tails have fewer than five draws beyond the
/// threshold, because the quantity is bounded or there are too few draws, and for whole numbers with fewer than five
/// different values.
pub fn tail_index(draws: &[f64], relative_efficiency: f64) -> Option<f64> {
    let size = draws.iter().fold(0.0_f64, |size, x| size.max(x.abs()));
    if !draws.iter().all(|x| x.is_finite()) || size == 0.0 {
        return None;
    }
    let below = draws
        .len()
        .checked_sub(tail_length(draws.len(), relative_efficiency) + 1)?;
    let draws = without_ties(draws)?;
    let of = |sign: f64| {
        let mut x: Vec<f64> = draws.iter().map(|x| sign * x / size).collect();
        let (_, cutoff, above) = x.select_nth_unstable_by(below, f64::total_cmp);
        let excesses = above.iter().map(|x| x - *cutoff);
        let mut excesses: Vec<f64> = excesses.filter(|x| *x > 0.0).collect();
        excesses.sort_by(f64::total_cmp);
        (excesses.len() > 4).then(|| fit_pareto(&excesses).0)
    };
    let shapes = [of(1.0), of(-1.0)].into_iter().flatten();
    shapes.filter(|shape| shape.is_finite()).reduce(f64::max)
}

/// Spreads equal whole numbers over the interval of length 1 around them, in the order of the draws. Returns draws that
/// are not all whole numbers unchanged, and `None` for fewer than five different whole numbers.
pub fn without_ties(draws: &[f64]) -> Option<Cow<'_, [f64]>> {
    if draws.iter().any(|x| x.fract() != 0.0) {
        return Some(Cow::Borrowed(draws));
    }
    let mut order: Vec<usize> = (0..draws.len()).collect();
    order.sort_by(|&i, &j| draws[i].total_cmp(&draws[j]));
    let mut spread = draws.to_vec();
    let mut values = 0;
    for ties in order.chunk_by(|&i, &j| draws[i] == draws[j]) {
        let count = ties.len() as f64;
        for (j, &i) in ties.iter().enumerate() {
            spread[i] += (j as f64 + 0.5) / count - 0.5;
        }
        values += 1;
    }
    (values > 4).then_some(Cow::Owned(spread))
}

/// Returns the standard error `(1 + k̂) / √m` of a tail index k̂. Here m is the number of draws in the tail, which
/// follows from the number of effective draws.
pub fn tail_index_error(khat: f64, effective: f64) -> f64 {
    let tail = tail_length(effective as usize, 1.0).max(1) as f64;
    (1.0 + khat) / tail.sqrt()
}

fn tail_length(draws: usize, relative_efficiency: f64) -> usize {
    let draws = draws as f64;
    (draws / 5.0)
        .min(3.0 * (draws / relative_efficiency).sqrt())
        .ceil() as usize
}

struct Tail {
    cutoff: f64,
    order: Vec<usize>,
}

impl Tail {
    fn of(x: &mut [f64], relative_efficiency: f64) -> Option<Self> {
        let n = x.len();
        x.iter_mut()
            .filter(|w| w.is_nan())
            .for_each(|w| *w = f64::NEG_INFINITY);
        let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if !max.is_finite() {
            return None;
        }
        x.iter_mut().for_each(|w| *w -= max);
        let below = n.checked_sub(tail_length(n, relative_efficiency) + 1);
        let largest_below = below.map_or(f64::NEG_INFINITY, |below| {
            *x.to_vec().select_nth_unstable_by(below, f64::total_cmp).1
        });
        let cutoff = largest_below.max(f64::MIN_POSITIVE.ln());
        let mut order: Vec<usize> = (0..n).filter(|&i| x[i] > cutoff).collect();
        order.sort_by(|&a, &b| x[a].total_cmp(&x[b]));
        Some(Self { cutoff, order })
    }

    /// The shape is infinite if there are fewer than five weights to fit, or if a quarter of them are zero relative to
    /// the largest weight.
    fn fit(&self, x: &[f64]) -> (f64, f64) {
        if self.order.len() <= 4 {
            return (f64::INFINITY, 0.0);
        }
        let excess = |&i: &usize| x[i].exp() - self.cutoff.exp();
        let (shape, scale) = fit_pareto(&self.order.iter().map(excess).collect::<Vec<f64>>());
        match shape.is_nan() {
            true => (f64::INFINITY, 0.0),
            false => (shape, scale),
        }
    }
}

fn fit_pareto(sorted: &[f64]) -> (f64, f64) {
    /// The prior of the fit of the generalised Pareto distribution (Zhang and Stephens 2009).
    const PRIOR_B: f64 = 3.0;
    /// The weight, in observations, of the prior at a shape of ½ (Vehtari, Simpson, Gelman, Yao and Gabry 2024).
    const PRIOR_K: f64 = 10.0;
    let n = sorted.len() as f64;
    let grid = 30 + n.sqrt() as usize;
    let quartile = sorted[(n / 4.0 + 0.5) as usize - 1];
    let largest = sorted[sorted.len() - 1];
    // A logarithm costs as much as a dozen products. If the product of eight factors is outside the range of the
    // exponents, the logarithm of each factor is computed separately.
    let log_of_product = |b: f64, some: &[f64]| {
        let product = some.iter().map(|x| 1.0 - b * x).product::<f64>();
        match product.is_normal() {
            true => product.ln(),
            false => some.iter().map(|x| (-b * x).ln_1p()).sum(),
        }
    };
    let shape = |b: f64| {
        let logs = sorted.chunks(8).map(|some| log_of_product(b, some));
        sum(&logs.collect::<Vec<f64>>()) / n
    };
    let b: Vec<f64> = (1..=grid)
        .map(|j| {
            let root = 1.0 - (grid as f64 / (j as f64 - 0.5)).sqrt();
            root / (PRIOR_B * quartile) + 1.0 / largest
        })
        .collect();
    let likelihood: Vec<f64> = b
        .iter()
        .map(|&b| {
            let k = shape(b);
            n * ((-(b / k)).ln() - k - 1.0)
        })
        .collect();
    let mut weights: Vec<f64> = likelihood
        .iter()
        .map(|own| 1.0 / likelihood.iter().map(|l| (l - own).exp()).sum::<f64>())
        .collect();
    // Negligible and undefined weights do not contribute.
    for w in &mut weights {
        let counts = *w >= 10.0 * f64::EPSILON;
        if !counts {
            *w = 0.0;
        }
    }
    let total = sum(&weights);
    let b_mean = b
        .iter()
        .zip(&weights)
        .map(|(b, w)| b * w / total)
        .sum::<f64>();
    let k = shape(b_mean);
    let scale = -k / b_mean;
    ((n * k + PRIOR_K * 0.5) / (n + PRIOR_K), scale)
}

fn pareto_quantile(p: f64, shape: f64, scale: f64) -> f64 {
    let exponential = -(-p).ln_1p();
    if shape.abs() < f64::EPSILON {
        scale * exponential
    } else {
        scale * (shape * exponential).exp_m1() / shape
    }
}
