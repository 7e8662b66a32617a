//! Where a prior matters: what the posterior would be under priors to another power (Kallioinen, Paananen, Bürkner and Vehtari, Detecting and
//! diagnosing prior and likelihood sensitivity with power-scaling, Statistics and Computing 34, 2024).

use super::Kept;
use crate::Fitted;

/// Shifts of a mean in standard deviations from which on a prior is said to matter: about the shift of a normal distribution that their
/// threshold of 0.05 a doubling stands for (section 3.3 there).
const SHIFT: f64 = 0.3;

/// Draws that weights must leave at least, as a share: of fewer a mean has an error of a third of its standard deviation and more (of 1000
/// draws ten are left), and nothing is said.
const LEFT: f64 = 0.01;

/// A parameter that a prior moves.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitive {
    /// Its name.
    pub name: String,
    /// How far its mean moves where all priors count half as much, in standard deviations.
    pub weaker: f64,
    /// The same where they count twice.
    pub stronger: f64,
}

/// The answers of a regression whose posterior means move by more than 0.3 standard deviations where the log density of the priors counts
/// half or twice as much, by importance weights of the draws.
pub fn sensitivity(kept: &Kept, fitted: &Fitted) -> Vec<Sensitive> {
    let sample = &fitted.sample;
    let (mut place, mut first) = (None, 0);
    let mut columns = Vec::new();
    for variable in &sample.variables {
        let of = first..first + variable.len();
        first = of.end;
        match variable.name.as_str() {
            "lprior" => place = Some(of.start),
            name if kept.shown.iter().any(|shown| shown == name) => columns.extend(of),
            _ => {}
        }
    }
    let Some(place) = place else {
        return Vec::new();
    };
    let all = fitted.parameters();
    let draws = sample.table.len();
    let column = |at: usize| -> Vec<f64> { (0..draws).map(|draw| sample.table.row(draw)[at]).collect() };
    let logs = column(place);
    let (Some(weaker), Some(stronger)) = (weights(&logs, -0.5), weights(&logs, 1.0)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for at in columns {
        let values = column(at);
        let mean = values.iter().sum::<f64>() / draws as f64;
        let sd = (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws as f64).sqrt();
        let shift = |weights: &[f64]| {
            let moved: f64 = weights.iter().zip(&values).map(|(w, x)| w * (x - mean)).sum();
            moved / sd
        };
        let (weaker, stronger) = (shift(&weaker), shift(&stronger));
        if sd > 0.0 && weaker.abs().max(stronger.abs()) > SHIFT {
            found.push(Sensitive {
                name: all.get(at).map_or_else(String::new, |p| p.shown().to_owned()),
                weaker,
                stronger,
            });
        }
    }
    found
}

/// Weights of draws for a power of the prior that is larger by so much; none where hardly any draw is left.
fn weights(logs: &[f64], by: f64) -> Option<Vec<f64>> {
    let most = logs.iter().map(|x| by * x).fold(f64::NEG_INFINITY, f64::max);
    let mut weights: Vec<f64> = logs.iter().map(|x| (by * x - most).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w /= sum);
    let left = 1.0 / weights.iter().map(|w| w * w).sum::<f64>();
    (left.is_finite() && left > LEFT * logs.len() as f64).then_some(weights)
}
