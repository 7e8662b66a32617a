//! Integrates over hyperparameters. The functions explore the hyperparameters' posterior around its modes and fit the
//! model at each point of an integration rule.
//!
//! The posterior of the hyperparameters x is proportional to e^h, where h is the sum of the bound and the log priors. In
//! the [coordinates](crate::coordinate) of x, each prior is standard normal. With the Hessian at a mode,
//! `x = mode + V Λ^(−½) z` makes the posterior approximately standard normal in z. For one to three hyperparameters,
//! the rule is a grid. It contains the points z for which h is within a few nats of its maximum. For four to eight
//! hyperparameters, the rule is a central composite design. The design is stretched along directions in which h falls
//! slowly (Rue, Martino and Chopin 2009, section 6.5; Martins, Simpson, Lindgren and Rue 2013). If the exploration finds
//! a point that is higher than each mode, it starts again from the mode above this point.
//!
//! If there are several modes, each has its rule. The rule of mode k integrates e^h multiplied by the share of mode k,
//! which is its normal approximation divided by the sum of the normal approximations of all modes. The shares add up to 1
//! at each point, so overlapping rules count no region twice. The posterior of the latent variables is a mixture of the
//! Gaussian posteriors that were fitted at the points.

use jensen_math::special::log_sum_exp_slice;
use jensen_run::Control;

use crate::learn::{Surface, Watch, climb};
use crate::marginal::{Marginal, WeightedNodes};
use crate::modes::{Peak, log_shares, modes};
use crate::rules::{Explored, HIGHER, Halt, LARGEST, explore};
use crate::{Error, Fit, LatentModel, LearnSettings, Learned, Likelihood, Prior, Range};

/// Largest number of times that the exploration starts again from a higher mode.
const ROUNDS: usize = 5;

/// A point of the integration rule for the hyperparameters' posterior.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The point's share of the posterior.
    pub weight: f64,
    /// The prior's hyperparameters at the point.
    pub theta: Vec<f64>,
    /// The likelihood with its parameter values at the point.
    pub likelihood: Likelihood,
    /// The fit at the point, without sensitivities.
    pub fit: Fit,
}

/// The posterior of the hyperparameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Integrated {
    /// The points of the integration rule. Their weights add up to 1.
    pub points: Vec<Point>,
    /// log ∫ e^bound p(θ) dθ in nats.
    pub evidence: f64,
    /// The difference between `evidence` and the value that another integration rule gives with the same points.
    pub error: f64,
    /// The marginal of each hyperparameter.
    pub marginals: Vec<Marginal>,
    /// The shares of the modes, each with nodes in the unconstrained coordinates of the hyperparameters.
    parts: Vec<(f64, WeightedNodes)>,
}

impl Integrated {
    /// Computes the marginal posterior of a quantity with values in `range`. `value` maps all hyperparameters in
    /// unconstrained coordinates to the quantity.
    pub fn marginal(&self, range: Range, value: impl Fn(&[f64]) -> f64) -> Marginal {
        marginal(&self.parts, range, |x| range.inward(value(x)))
    }
}

fn marginal(
    parts: &[(f64, WeightedNodes)],
    range: Range,
    coordinate: impl Fn(&[f64]) -> f64,
) -> Marginal {
    let each = parts.iter().map(|(share, nodes)| {
        let values = nodes.nodes.iter().map(|x| coordinate(x)).collect();
        (*share, Marginal::new(nodes, values, range))
    });
    Marginal::mixture(each.collect(), range)
}

/// The reason why Jensen did not integrate over the hyperparameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// There are too many hyperparameters. The field is the number of hyperparameters.
    Many(usize),
    /// The time limit or a cancellation ended the exploration early.
    Stopped,
    /// The posterior is higher at some points than at the mode, and no search from there ended at a mode.
    Higher,
}

/// Explores the posterior of the hyperparameters around its modes and fits the model at the points of the integration
/// rules. If a mode is higher than the one at which the search ended, `learned` moves there.
///
/// # Errors
/// Returns the errors of [`fit`](crate::fit) at the mode of the hyperparameters' posterior.
pub fn integrate(
    prior: &dyn Prior,
    model: &LatentModel,
    settings: &LearnSettings,
    learned: &mut Learned,
    control: &Control<'_>,
) -> Result<Result<Integrated, Kept>, Error> {
    let dimensions = learned.x.len();
    if dimensions > LARGEST {
        return Ok(Err(Kept::Many(dimensions)));
    }
    let surface = Surface::new(prior, model, settings, Watch::after(learned, control)).in_scores();
    let failed = || match surface.watch.is_over() {
        true => Kept::Stopped,
        false => Kept::Higher,
    };
    // The mode in normal scores is near the end of the search, which is the mode in unconstrained coordinates.
    let start = surface.scores(&learned.x);
    let Some(first) = climb(&surface, start, &learned.fit.warm(), |_| false) else {
        return Ok(Err(failed()));
    };
    let reached = first.objective;
    let mut known = vec![first];
    for _ in 0..ROUNDS {
        let Some(peaks) = modes(&surface, known)? else {
            return Ok(Err(Kept::Stopped));
        };
        let each = (0..peaks.len()).map(|k| explore(&surface, &peaks, k));
        match each.collect::<Result<Vec<Explored>, Halt>>() {
            Ok(explored) => {
                return Ok(match move_to_highest(&surface, &peaks, reached, learned)? {
                    true => Ok(mixed(&surface, &peaks, explored)?),
                    false => Err(Kept::Stopped),
                });
            }
            Err(Halt::Stopped) => return Ok(Err(Kept::Stopped)),
            Err(Halt::Higher(x, warm)) => {
                known = peaks.into_iter().map(|peak| peak.mode).collect();
                match climb(&surface, x, &warm, |_| false) {
                    Some(mode) => known.push(mode),
                    None => return Ok(Err(failed())),
                }
            }
        }
    }
    Ok(Err(Kept::Higher))
}

/// Moves the learnt hyperparameters to the highest mode, if it is clearly higher than the mode that was `reached` from the
/// end of the search. Returns whether the last fit was not stopped.
fn move_to_highest(
    surface: &Surface<'_>,
    peaks: &[Peak],
    reached: f64,
    learned: &mut Learned,
) -> Result<bool, Error> {
    let highest = (peaks.iter().map(|peak| &peak.mode))
        .max_by(|a, b| a.objective.total_cmp(&b.objective))
        .filter(|mode| mode.objective > reached + HIGHER);
    let Some(mode) = highest else {
        return Ok(true);
    };
    let Some(at) = surface.evaluate(&mode.x, Some(&mode.warm))? else {
        return Ok(false);
    };
    let (theta, likelihood) = surface.split(&mode.x);
    learned.x = surface.unconstrained(&mode.x);
    learned.theta = theta;
    learned.likelihood = likelihood;
    learned.fit = at.fit;
    Ok(true)
}

fn log_sum(weights: impl Iterator<Item = f64>) -> f64 {
    let all: Vec<f64> = weights.collect();
    log_sum_exp_slice(&all)
}

fn mixed(
    surface: &Surface<'_>,
    peaks: &[Peak],
    explored: Vec<Explored>,
) -> Result<Integrated, Error> {
    let mut visited = Vec::new();
    let mut whole = Vec::new();
    let mut errors = Vec::new();
    let mut parts = Vec::new();
    for (k, (peak, mut one)) in peaks.iter().zip(explored).enumerate() {
        let scale = peak.mode.objective + peak.frame.log_volume;
        let mut own = Vec::with_capacity(one.visited.len());
        for at in &mut one.visited {
            at.log_weight += scale + log_shares(peaks, &at.x)[k];
            own.push(at.log_weight);
        }
        whole.push(log_sum(own.into_iter()));
        errors.push(one.error);
        visited.append(&mut one.visited);
        let nodes = one.weighted_nodes.mapped(|z| peak.frame.at(z));
        let nodes = nodes.weighted(|x| log_shares(peaks, x)[k]);
        parts.push(nodes.mapped(|x| surface.unconstrained(x)));
    }
    let evidence = log_sum(whole.iter().copied());
    let shares: Vec<f64> = whole.iter().map(|log| (log - evidence).exp()).collect();
    let mut points = Vec::with_capacity(visited.len());
    for at in visited {
        let (theta, likelihood) = surface.split(&at.x);
        points.push(Point {
            weight: (at.log_weight - evidence).exp(),
            theta,
            likelihood,
            fit: at.fit,
        });
    }
    let parts: Vec<(f64, WeightedNodes)> = shares.iter().copied().zip(parts).collect();
    let marginals = (surface.parameters.iter().enumerate())
        .map(|(i, parameter)| marginal(&parts, parameter.range, |x| x[i]))
        .collect();
    Ok(Integrated {
        points,
        evidence,
        error: shares.iter().zip(errors).map(|(share, e)| share * e).sum(),
        marginals,
        parts,
    })
}
