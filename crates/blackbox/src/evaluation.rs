//! The evaluation of a fit: the ELBO on fresh draws, the importance weights, and the tail of the weights.

use std::ops::Range;
use std::sync::Arc;

use jensen_density::{Lanes, LogDensity, Scale};
use jensen_math::special::log_sum_exp_slice;
use jensen_run::Interrupt;

use crate::agreement::{Agreement, Moments};
use crate::noise::{NoisePurpose, NoiseSource};
use crate::oracle::{Estimate, Oracle, Stream};
use crate::policy::Policy;
use crate::psis::{khat, khat_threshold, tail_index_error};
use crate::sizes::{CHECK, WIDTH, lanes_of_work};

/// The final evaluation of an approximation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Evaluation {
    /// The evidence lower bound in nats, estimated as the mean of `log p − log q`. Draws for which this difference is
    /// NaN are ignored. A draw outside the support of the density has weight zero. If some draws are outside the
    /// support, the bound refers to the approximation restricted to the support. The bound is then the mean over the
    /// draws inside the support, plus the logarithm of the share of these draws.
    pub elbo: Estimate,
    /// The importance-weighted lower bound on the log evidence from all draws together (`log mean w`). Its expectation
    /// is at least the ELBO. Its standard error is computed by the delta method.
    pub importance_bound: Estimate,
    /// The Pareto shape k̂ of the importance weights.
    pub khat: f64,
    /// The limit for k̂. If k̂ exceeds the limit, this number of draws is too small for reliable weights.
    pub khat_threshold: f64,
    /// The changes that the weights cause in means and standard deviations.
    pub agreement: Agreement,
    /// The number of draws.
    pub draws: usize,
    /// The number of draws at which the density was NaN.
    pub rejected: usize,
    /// The number of draws at which the density was zero (−∞).
    pub impossible: usize,
}

/// If the absolute value of an ELBO exceeds this value, differences have fewer than three correct decimals.
const LARGEST_BOUND: f64 = 1e12;

impl Evaluation {
    /// Returns whether the ELBO is finite and close enough to zero to resolve differences of a fraction of a nat.
    pub fn is_resolved(&self) -> bool {
        self.elbo.mean.abs() <= LARGEST_BOUND
    }

    /// Returns whether too many draws are outside the support, or whether any log density is NaN.
    pub fn is_holey(&self) -> bool {
        self.rejected > 0 || self.impossible as f64 > OUTSIDE * self.draws as f64
    }

    /// Returns the estimated divergence KL(q‖p) in nats, which is the importance-weighted bound minus the ELBO.
    pub fn divergence(&self) -> f64 {
        self.importance_bound.mean - self.elbo.mean
    }

    /// Returns whether k̂ is within its limit.
    pub fn khat_is_good(&self) -> bool {
        self.khat <= self.khat_threshold
    }

    /// Returns whether the draws of the approximation can be used without refinement. They can be used if the weights
    /// are reliable and do not change the moments.
    pub fn is_good(&self, policy: &Policy) -> bool {
        self.khat_is_good() && self.agreement.is_good(policy)
    }
}

/// The largest share of draws outside the support for which weights of zero are an adequate correction.
const OUTSIDE: f64 = 0.01;

/// The factors by which the number of draws may grow.
const MORE: [usize; 3] = [2, 4, 8];

/// The number of standard errors by which k̂ must be below its limit. A normal error exceeds three standard errors once
/// in seven hundred evaluations.
const CLEAR: f64 = 3.0;
/// The assumed cost of a draw, in coordinates, if `work()` is `None`, as it is for solvers. With an assumed cost of
/// four coordinates, 131 072 draws took most of the time of a fit, while the refinement after them took 16 040
/// gradients.
const UNKNOWN: usize = 64;

/// Computes `log p − log q` at the given draws of a stream, block by block.
pub fn log_weights<D: LogDensity>(
    oracle: &mut Oracle<'_, D>,
    omega: &[f64],
    source: NoiseSource,
    purpose: NoisePurpose,
    iteration: u64,
    draws: Range<usize>,
) -> Vec<f64> {
    let stream = Stream {
        source,
        purpose,
        iteration,
    };
    weigh(oracle, omega, stream, draws, None, |_, _| {})
}

fn weigh<D: LogDensity>(
    oracle: &mut Oracle<'_, D>,
    omega: &[f64],
    stream: Stream,
    draws: Range<usize>,
    interrupt: Option<&Interrupt<'_>>,
    mut see: impl FnMut(Lanes<'_>, &[f64]),
) -> Vec<f64> {
    let rows = oracle.family().noise_dim();
    let most = match interrupt {
        Some(interrupt) if interrupt.is_hurried() => WIDTH,
        _ => lanes_of_work(oracle.work()),
    };
    let over = || interrupt.is_some_and(|i| i.is_over() || i.is_late());
    let mut weights = Vec::with_capacity(draws.len());
    for first in draws.clone().step_by(most) {
        if first > 0 && over() {
            break;
        }
        let lanes = most.min(draws.end - first);
        let noise = stream.lanes(first, rows, lanes);
        let block = oracle.log_weights(omega, Lanes::new(&noise, rows, lanes));
        see(oracle.draws(lanes), &block);
        weights.extend(block);
    }
    weights
}

/// Evaluates `omega` on `draws` fresh draws. While k̂ remains uncertain, the function evaluates 2, 4 and 8 times that
/// number. The function also adds draws until they show whether the weights change a mean or a standard deviation
/// by too much.
///
/// An uncertain k̂ can lead to a wrong acceptance as well as to a wrong rejection. With a few thousand draws, k̂ has a
/// standard error above 0.1, so a funnel may pass the check by chance. The tail is fitted to the few per cent of draws
/// with the largest weights. If the weights are nearly constant, these draws may all lie around a local maximum of the
/// weights, and then the shape of the tail is meaningless.
pub fn evaluate<D: LogDensity>(
    oracle: &mut Oracle<'_, D>,
    omega: &[f64],
    source: NoiseSource,
    draws: usize,
) -> Evaluation {
    let (scales, usual): (&[Scale], _) = (&[], Policy::default());
    let judged = (scales, &usual);
    evaluate_until(oracle, omega, source, draws, judged, Successor::None, None)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Successor {
    None,
    /// The fit of a richer family follows. Fitting it costs less than proving by further draws that the present family
    /// has failed.
    Richer,
    /// A refinement follows. It costs less than an evaluation of more than [`CHECK`] values (counting at least
    /// [`UNKNOWN`] coordinates).
    Refinement,
}

/// Evaluates a fit in the same way as [`evaluate`], but uses fewer draws in two cases. In the first case, an interrupt
/// leaves no time for all draws. In the second case, another stage follows, and either k̂ is above its limit or
/// [`CHECK`] values do not show whether the weights change the moments.
pub(crate) fn evaluate_until<D: LogDensity>(
    oracle: &mut Oracle<'_, D>,
    omega: &[f64],
    source: NoiseSource,
    draws: usize,
    (scales, policy): (&[Scale], &Policy),
    successor: Successor,
    interrupt: Option<&Interrupt<'_>>,
) -> Evaluation {
    let family = Arc::clone(oracle.family());
    let mut moments = Moments::new(&family.mean(omega), &family.marginal_sd(omega), scales);
    let stream = Stream {
        source,
        purpose: NoisePurpose::Final,
        iteration: 0,
    };
    let work = oracle.work();
    let size = match work {
        Some(_) => family.dim(),
        None => family.dim().max(UNKNOWN),
    };
    let mut more = |range, moments: &mut Moments| {
        weigh(oracle, omega, stream, range, interrupt, |z, w| {
            moments.add(z, w);
        })
    };
    let mut weights = more(0..draws, &mut moments);
    let mut evaluation = summarize(&weights, moments.agreement(policy));
    for factor in MORE {
        // Doubling the number of draws can decide whether k̂ is good if k̂ is within a standard error of its limit.
        let above = evaluation.khat - evaluation.khat_threshold;
        let error = khat_error(&evaluation);
        let dear = factor * draws * size > CHECK;
        let left = match successor {
            Successor::None => false,
            Successor::Richer => true,
            Successor::Refinement => dear,
        };
        let doubtful = !(left && above > error) && in_doubt(&evaluation);
        // If k̂ is above its limit, more precise moments do not help.
        let open = evaluation.khat_is_good() && evaluation.agreement.is_open(policy);
        let unsettled = left && dear && !evaluation.agreement.is_good(policy);
        if !doubtful && !open || unsettled || weights.len() < draws {
            break;
        }
        weights.extend(more(weights.len()..factor * draws, &mut moments));
        evaluation = summarize(&weights, moments.agreement(policy));
    }
    evaluation
}

pub(crate) fn preview<D: LogDensity>(
    oracle: &mut Oracle<'_, D>,
    omega: &[f64],
    source: NoiseSource,
    draws: usize,
) -> Evaluation {
    let weights = log_weights(oracle, omega, source, NoisePurpose::Preview, 0, 0..draws);
    summarize(&weights, Agreement::UNKNOWN)
}

fn khat_error(evaluation: &Evaluation) -> f64 {
    tail_index_error(evaluation.khat_threshold, evaluation.draws as f64)
}

fn in_doubt(evaluation: &Evaluation) -> bool {
    if evaluation.is_holey() {
        return false;
    }
    let variance = evaluation.elbo.standard_error.powi(2) * evaluation.draws as f64;
    let clearly_good =
        evaluation.khat <= evaluation.khat_threshold - CLEAR * khat_error(evaluation);
    let clearly_bad = evaluation.khat > 1.0 && variance > 2.0;
    !clearly_good && !clearly_bad
}

/// Returns the estimate. It ignores each weight that is not finite, together with the weight of the antithetic draw.
pub(crate) fn log_weights_of(weights: &[f64]) -> Estimate {
    let pairs: Vec<f64> = weights
        .chunks(2)
        .map(|pair| pair.iter().sum::<f64>() / pair.len() as f64)
        .filter(|x| x.is_finite())
        .collect();
    Estimate::of(&pairs)
}

/// Computes the evaluation from the given log weights and the given changes of the moments.
pub fn summarize(weights: &[f64], agreement: Agreement) -> Evaluation {
    let draws = weights.len();
    let valid: Vec<f64> = weights.iter().copied().filter(|w| !w.is_nan()).collect();
    let impossible = valid.iter().filter(|w| **w == f64::NEG_INFINITY).count();
    let largest = valid.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let smallest = valid.iter().copied().fold(f64::INFINITY, f64::min);
    let inside: Vec<f64> = valid.iter().copied().filter(|w| w.is_finite()).collect();
    let mut elbo = Estimate::of(&inside);
    elbo.mean += (inside.len() as f64 / valid.len() as f64).ln();
    // If the weights are equal up to rounding, there is no tail to fit, because q equals p up to a constant. This
    // conclusion does not hold if log densities are so large that their rounding errors exceed a nat.
    let scale = 1.0 + largest.abs().min(1e6);
    let exact = valid.len() == draws && largest - smallest < 1e-8 * scale;
    let khat = if exact { 0.0 } else { khat(weights, 1.0) };
    let relative: Vec<f64> = valid.iter().map(|w| (w - largest).exp()).collect();
    let ratio = Estimate::of(&relative);
    Evaluation {
        elbo,
        importance_bound: Estimate {
            mean: log_sum_exp_slice(&valid) - (draws as f64).ln(),
            standard_error: ratio.standard_error / ratio.mean,
        },
        khat,
        khat_threshold: khat_threshold(draws),
        agreement,
        draws,
        rejected: draws - valid.len(),
        impossible,
    }
}

/// Computes the importance-weighted bound `E log (1/k) Σ w` (Burda, Grosse and Salakhutdinov 2016). The function
/// divides `log_weights` into groups of `k` draws and averages over all complete groups.
pub fn importance_weighted_bound(log_weights: &[f64], k: usize) -> Estimate {
    let groups: Vec<f64> = log_weights
        .chunks_exact(k.max(1))
        .map(|group| log_sum_exp_slice(group) - (group.len() as f64).ln())
        .collect();
    Estimate::of(&groups)
}

/// Returns the indices of `n` draws, taken with replacement and in proportion to their normalised weights (sampling
/// importance resampling). Index i depends only on the seed and i.
pub fn resample(log_weights: &[f64], n: usize, source: NoiseSource) -> Vec<usize> {
    let mut cumulative = Vec::with_capacity(log_weights.len());
    let mut total = 0.0;
    for w in log_weights {
        total += w.exp();
        cumulative.push(total);
    }
    let last = log_weights.len().saturating_sub(1);
    (0..n)
        .map(|i| {
            let mut u = [0.0];
            source.uniforms(NoisePurpose::Resample, 0, i as u64, &mut u);
            cumulative.partition_point(|&c| c <= u[0] * total).min(last)
        })
        .collect()
}
