//! Leave-one-out cross-validation of a fit, averaged over its hyperparameters.

use std::path::Path;

use jensen_data::{Artefact, Bytes, RunDir, Table, read_bytes};
use jensen_latent::{LeftOut, Size, left_out};
use jensen_math::special::log_sum_exp_slice;
use serde::{Deserialize, Serialize};

use super::files::COMMAND;
use super::job::PREDICTIONS;
use super::{LatentSummary, Learnt, TableModel};
use crate::Error;
use crate::compare::sum_and_error;
use crate::job::folder;

/// The columns of `predictions.csv` with the predictions of each row from all others.
pub(super) const COLUMNS: [&str; 3] = ["loo_log_density", "loo_pit", "loo_share"];

/// The largest share of a linear predictor's precision that may come from its own observation. If a hundredth of the
/// precision is left, an error of 1 % in the precision of the observation doubles the variance without it or makes it
/// infinite. With shares of up to 0.93, log densities of lip cancer counts in Scotland differ by less than 0.011 nats from
/// those of fits without the observation (`latent.md`).
pub const LARGEST_SHARE: f64 = 0.99;

/// The leave-one-out cross-validation of a fit, in nats and in the units of the table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrossValidation {
    /// The sum of the log densities of all observations, each given all others.
    pub elpd: f64,
    /// The standard error of `elpd`, estimated from the variation between observations.
    pub elpd_se: f64,
    /// The effective number of parameters, which is the log density of the observations under the fit minus `elpd`.
    pub p_loo: f64,
    /// The widely applicable information criterion (Watanabe 2010), as an estimate of `elpd`: half of the criterion on the
    /// deviance scale, with the opposite sign.
    pub waic: f64,
    /// The number of observations whose removal changes the posterior so much that their log densities are unreliable. It
    /// is 0 for normal noise, for which they are exact.
    pub unreliable: usize,
}

/// The predictions of the observations from all others.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOutRows {
    /// The log density of each observation given all others, in nats. In R-INLA it is the logarithm of the CPO.
    pub log_density: Vec<f64>,
    /// The probability of a smaller observation given all others, plus half of that of an equal one. In R-INLA it is the
    /// PIT. It is NaN for binary responses and censored times.
    pub pit: Vec<f64>,
    /// The share of the precision of each linear predictor that comes from its own observation.
    pub share: Vec<f64>,
    /// The sums over all observations.
    pub total: CrossValidation,
}

/// Computes the cross-validation of a fit. The function returns `None` for categories.
///
/// The posterior of the hyperparameters without an observation is proportional to the posterior with it, divided by the
/// density of the observation given all others (Held, Schrödle and Rue 2010, section 2).
///
/// # Errors
/// Fails if a point of the posterior of the hyperparameters is outside its range.
pub(super) fn cross_validation(
    model: &TableModel,
    learnt: &Learnt,
) -> Result<Option<LeftOutRows>, Error> {
    let mut parts: Vec<(f64, Vec<LeftOut>)> = Vec::new();
    for point in &learnt.points {
        let at = model.model(&point.theta, point.likelihood)?;
        let Some(rows) = left_out(&at, &point.fit) else {
            return Ok(None);
        };
        parts.push((point.weight.ln(), rows));
    }
    let n = model.rows().len();
    // The log density of an observation in the units of the table, minus that in the units of the model.
    let unit = model.bound_outside(0.0) / n as f64;
    let likelihood = model.likelihood();
    let exact = likelihood.name() == "gaussian" || likelihood.sized_by() == Size::Sd;
    let mut out = LeftOutRows {
        log_density: Vec::with_capacity(n),
        pit: Vec::with_capacity(n),
        share: Vec::with_capacity(n),
        total: CrossValidation {
            elpd: 0.0,
            elpd_se: 0.0,
            p_loo: 0.0,
            waic: 0.0,
            unreliable: 0,
        },
    };
    for i in 0..n {
        let each = || parts.iter().map(|(log, rows)| (*log, rows[i]));
        let inverse: Vec<f64> = each().map(|(log, row)| log - row.log_density).collect();
        let norm = log_sum_exp_slice(&inverse);
        let pit = (each().zip(&inverse))
            .map(|((_, row), log)| (log - norm).exp() * row.below)
            .sum();
        let fitted: Vec<f64> = each().map(|(log, row)| log + row.fitted).collect();
        let fitted = log_sum_exp_slice(&fitted);
        let average = |of: &dyn Fn(&LeftOut) -> f64| -> f64 {
            each().map(|(log, row)| log.exp() * of(&row)).sum()
        };
        let share = average(&|row| row.share);
        let mean = average(&|row| row.log_moments[0]);
        let variance = average(&|row| row.log_moments[1]) - mean * mean;
        out.total.p_loo += fitted + norm;
        out.total.waic += fitted - variance + unit;
        out.total.unreliable += usize::from(!exact && share > LARGEST_SHARE);
        out.log_density.push(unit - norm);
        out.pit.push(pit);
        out.share.push(share);
    }
    (out.total.elpd, out.total.elpd_se) = sum_and_error(&out.log_density);
    Ok(Some(out))
}

/// Reads the summary and the cross-validation of a stored fit. The function returns `None` if the folder has results of
/// another command, and no rows if the fit has no cross-validation.
///
/// # Errors
/// Fails if the folder has no results, or if one of its files is missing or damaged.
pub fn cross_validated(path: &Path) -> Result<Option<(LatentSummary, Option<LeftOutRows>)>, Error> {
    if RunDir::open(path)?.command() != COMMAND {
        return Ok(None);
    }
    let run = folder::open(path, COMMAND)?;
    let text = read_bytes(&run.artefact(Artefact::Fit))?;
    let summary: LatentSummary = serde_json::from_slice(&text)
        .map_err(|e| Error::Input(format!("`{}`: {e}", path.display())))?;
    let Some(total) = summary.leave_one_out else {
        return Ok(Some((summary, None)));
    };
    let bytes = Bytes::read(&path.join(PREDICTIONS))?;
    let table = Table::parse(&bytes, &path.join(PREDICTIONS).display().to_string())?;
    let column =
        |name: &str| -> Result<Vec<f64>, Error> { Ok(table.column(name)?.numbers()?.to_vec()) };
    let [log_density, pit, share] = COLUMNS;
    let rows = LeftOutRows {
        log_density: column(log_density)?,
        pit: column(pit)?,
        share: column(share)?,
        total,
    };
    Ok(Some((summary, Some(rows))))
}
