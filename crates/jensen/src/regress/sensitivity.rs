//! Sensitivity to priors, measured by raising the priors to a power (Kallioinen, Paananen, Bürkner and Vehtari,
//! Detecting and diagnosing prior and likelihood sensitivity with power-scaling, Statistics and Computing 34, 2024).

use jensen_data::DataSet;

use super::Kept;
use crate::stan::Build;
use crate::{Error, Fitted, Generator, Save};

/// The smallest shift of a mean that is reported, in standard deviations per doubling of the power of the priors. For a
/// normal distribution it corresponds approximately to the threshold of 0.05 in that paper.
const SHIFT: f64 = 0.3;

/// A parameter that is sensitive to its prior.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitive {
    /// The name of the parameter.
    pub name: String,
    /// The shift of the posterior mean per doubling of the power of all priors, in posterior standard deviations.
    pub shift: f64,
}

/// With more rows, the prior hardly matters, and the program takes long to build.
const ROWS: usize = 20_000;

/// Returns the parameters whose posterior means move by more than 0.3 standard deviations per doubling of the power of
/// all priors. `log_prior` is a program for the log density of the priors over the same data.
///
/// The estimate is a derivative at power 1. The derivative with respect to the logarithm of the power is the covariance
/// with the log density of the priors.
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
    // Generated quantities come last in a row.
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
