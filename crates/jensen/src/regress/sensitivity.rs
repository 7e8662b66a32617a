//! Where a prior matters: what the posterior would be under priors to another power (Kallioinen, Paananen, Bürkner and Vehtari, Detecting and
//! diagnosing prior and likelihood sensitivity with power-scaling, Statistics and Computing 34, 2024).

use jensen_data::DataSet;

use super::Kept;
use crate::stan::Build;
use crate::{Error, Fitted, Generator, Save};

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

/// Rows of the tables that are looked at: the prior of more hardly matters, and their program takes long to build.
const ROWS: usize = 20_000;

/// The answers of a regression whose posterior means move by more than 0.3 standard deviations where the log density of the priors counts
/// half or twice as much, by importance weights of the draws; `log_prior` is the program of that density over the data.
///
/// # Errors
/// That program cannot be evaluated.
pub fn sensitivity(
    kept: &Kept,
    log_prior: &str,
    data: &DataSet,
    fitted: &Fitted,
) -> Result<Vec<Sensitive>, Error> {
    if kept.request.prior_only || kept.rows > ROWS {
        return Ok(Vec::new());
    }
    let table = &fitted.sample.table;
    let build = Build {
        seed: fitted.settings.seed,
        simd: fitted.settings.simd,
        save: Save::of_words("lprior"),
        ..Build::default()
    };
    let made =
        Generator::compile(log_prior, "priors.stan", data, &build)?.generate(table, build.seed)?;
    let draws = table.len();
    if made.table.len() < draws {
        return Ok(Vec::new());
    }
    // Generated quantities come last.
    let logs: Vec<f64> = (0..draws)
        .filter_map(|draw| made.table.row(draw).last().copied())
        .collect();
    let (Some(weaker), Some(stronger)) = (weights(&logs, -0.5), weights(&logs, 1.0)) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for (at, parameter) in fitted.parameters().iter().enumerate() {
        let variable = parameter.name.split('[').next().unwrap_or_default();
        if !kept.shown.iter().any(|shown| shown == variable) {
            continue;
        }
        let values: Vec<f64> = (0..draws).map(|draw| table.row(draw)[at]).collect();
        let mean = values.iter().sum::<f64>() / draws as f64;
        let sd = (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws as f64).sqrt();
        let shift = |weights: &[f64]| {
            let moved: f64 = weights
                .iter()
                .zip(&values)
                .map(|(w, x)| w * (x - mean))
                .sum();
            moved / sd
        };
        let (weaker, stronger) = (shift(&weaker), shift(&stronger));
        if sd > 0.0 && weaker.abs().max(stronger.abs()) > SHIFT {
            found.push(Sensitive {
                name: parameter.shown().to_owned(),
                weaker,
                stronger,
            });
        }
    }
    Ok(found)
}

/// Weights of draws for a power of the prior that is larger by so much; none where hardly any draw is left.
fn weights(logs: &[f64], by: f64) -> Option<Vec<f64>> {
    let most = logs
        .iter()
        .map(|x| by * x)
        .fold(f64::NEG_INFINITY, f64::max);
    let mut weights: Vec<f64> = logs.iter().map(|x| (by * x - most).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w /= sum);
    let left = 1.0 / weights.iter().map(|w| w * w).sum::<f64>();
    (left.is_finite() && left > LEFT * logs.len() as f64).then_some(weights)
}
