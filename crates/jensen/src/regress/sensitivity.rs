//! The sensitivity of a posterior to its priors. The method raises the priors to a power and measures the change of the
//! posterior (Kallioinen, Paananen, Bürkner and Vehtari, Detecting and diagnosing prior and likelihood sensitivity with
//! power-scaling, Statistics and Computing 34, 2024).

use jensen_data::DataSet;

use super::Kept;
use crate::stan::Build;
use crate::{Error, Fitted, Generator, Save};

/// The smallest shift of a posterior mean that is reported, in posterior standard deviations per doubling of the power
/// of the priors. For a normal distribution, this value approximately corresponds to the threshold of 0.05 in that
/// paper.
const SHIFT: f64 = 0.3;

/// A parameter whose posterior is sensitive to the priors.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitive {
    /// The name of the parameter.
    pub name: String,
    /// The shift of the posterior mean if the power of all priors is doubled, in posterior standard deviations.
    pub shift: f64,
}

/// The maximum number of rows. With more rows, the priors have hardly any influence, and the program takes a long time
/// to build.
const ROWS: usize = 20_000;

/// Returns the parameters whose posterior mean shifts by more than 0.3 standard deviations if the power of all priors
/// is doubled. `log_prior` is a Stan program with the same data. Its log density contains only the priors.
///
/// The shift is estimated from the derivative of the posterior mean with respect to the logarithm of the power, at
/// power 1. This derivative is the posterior covariance between the parameter and the log density of the priors.
///
/// # Errors
/// Fails if `log_prior` cannot be evaluated.
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
    // The generated quantities are the last elements of a row.
    let logs: Vec<f64> = (0..draws)
        .filter_map(|draw| made.table.row(draw).last().copied())
        .collect();
    let level = logs.iter().sum::<f64>() / draws as f64;
    let mut found = Vec::new();
    for (at, parameter) in fitted.parameters().iter().enumerate() {
        let variable = parameter.name.split('[').next().unwrap_or_default();
        if !kept.shown.iter().any(|shown| shown == variable) {
            continue;
        }
        let values: Vec<f64> = (0..draws).map(|draw| table.row(draw)[at]).collect();
        let mean = values.iter().sum::<f64>() / draws as f64;
        let sd = (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws as f64).sqrt();
        let terms = values.iter().zip(&logs);
        let covariance = terms
            .map(|(x, log)| (x - mean) * (log - level))
            .sum::<f64>()
            / draws as f64;
        let shift = std::f64::consts::LN_2 * covariance / sd;
        if sd > 0.0 && shift.abs() > SHIFT {
            found.push(Sensitive {
                name: parameter.shown().to_owned(),
                shift,
            });
        }
    }
    Ok(found)
}
