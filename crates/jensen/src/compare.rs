//! Comparison of fits to the same observations by leave-one-out cross-validation and by evidence.
//!
//! Predictive accuracy is measured by the expected log predictive density (elpd) of an observation that was left out of
//! the data, in nats. The elpd is estimated from the draws by Pareto-smoothed importance sampling: Vehtari, Gelman and
//! Gabry, *Practical Bayesian model evaluation using leave-one-out cross-validation and WAIC*, Statistics and Computing
//! 27, 2017. If the draws come from an approximation, the weights also correct for its error, as in Magnusson,
//! Andersen, Jonasson and Vehtari, *Bayesian leave-one-out cross-validation for large data*, ICML 2019.

use std::path::Path;

use jensen_blackbox::{khat_threshold, psis};
use jensen_data::{Artefact, DrawsTable, FitSummary, read_draws_csv};
use jensen_math::special::log_sum_exp_slice;
use serde::Serialize;

use crate::Error;
use crate::program::StoredFit;

/// The results of a leave-one-out cross-validation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeaveOneOut {
    /// The sum of the expected log predictive densities of all observations, in nats.
    pub elpd: f64,
    /// The standard error of `elpd`, estimated from the variation between observations.
    pub elpd_se: f64,
    /// The effective number of parameters, computed as the in-sample log predictive density minus `elpd`.
    pub p_loo: f64,
    /// The contribution of each observation to `elpd`.
    pub pointwise: Vec<f64>,
    /// The Pareto k̂ of the importance weights of each observation.
    pub khat: Vec<f64>,
    /// The limit above which k̂ is unreliable for this number of draws.
    pub khat_limit: f64,
}

impl LeaveOneOut {
    /// Computes the leave-one-out cross-validation. Each column of `log_likelihood` contains the log likelihood of one
    /// observation at every draw. `log_weights` contains the log importance weights of the draws. For draws from the
    /// posterior, all log weights are 0. `relative_efficiency` is 1 for independent draws.
    ///
    /// # Errors
    /// Fails with [`Error::Input`] if there are no observations, or if a log likelihood is NaN or +∞. The message gives
    /// the number of the observation, starting with 1.
    pub fn of(
        log_likelihood: &[Vec<f64>],
        log_weights: &[f64],
        relative_efficiency: f64,
    ) -> Result<Self, Error> {
        if log_likelihood.is_empty() || log_weights.is_empty() {
            return Err(Error::input("there are no observations or no draws"));
        }
        let mut found = Self {
            elpd: 0.0,
            elpd_se: 0.0,
            p_loo: 0.0,
            pointwise: Vec::with_capacity(log_likelihood.len()),
            khat: Vec::with_capacity(log_likelihood.len()),
            khat_limit: khat_threshold(log_weights.len()),
        };
        let total = log_sum_exp_slice(log_weights);
        for (at, column) in log_likelihood.iter().enumerate() {
            if let Some(bad) = column.iter().find(|x| x.is_nan() || **x == f64::INFINITY) {
                return Err(Error::Input(format!(
                    "the log likelihood of observation {} is {bad} at a draw",
                    at + 1
                )));
            }
            let without: Vec<f64> = column.iter().zip(log_weights).map(|(l, w)| w - l).collect();
            let smoothed = psis(&without, relative_efficiency);
            let left =
                plus(&smoothed.log_weights, column) - log_sum_exp_slice(&smoothed.log_weights);
            found.p_loo += plus(log_weights, column) - total - left;
            found.pointwise.push(left);
            found.khat.push(smoothed.khat);
        }
        (found.elpd, found.elpd_se) = sum_and_error(&found.pointwise);
        Ok(found)
    }

    /// Returns the number of observations whose contributions to the elpd are unreliable because their k̂ exceeds the
    /// limit.
    pub fn unreliable(&self) -> usize {
        // An observation counts as unreliable if its k̂ could not be computed.
        self.khat
            .iter()
            .filter(|k| k.is_nan() || **k > self.khat_limit)
            .count()
    }
}

/// Computes `log Σ exp(a + b)`.
fn plus(a: &[f64], b: &[f64]) -> f64 {
    let sums: Vec<f64> = a.iter().zip(b).map(|(a, b)| a + b).collect();
    log_sum_exp_slice(&sums)
}

pub(crate) fn sum_and_error(terms: &[f64]) -> (f64, f64) {
    let n = terms.len() as f64;
    let (_, error) = jensen_math::reduce::mean_se(terms);
    (terms.iter().sum(), error * n)
}

/// One of the compared fits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// The folder of the fit.
    pub fit: String,
    /// Whether the fit is trusted according to its verdict.
    pub trusted: bool,
    /// The leave-one-out cross-validation, or `None` if the program does not compute the log likelihood.
    pub loo: Option<LeaveOneOut>,
    /// The elpd of this fit minus the elpd of the first candidate, followed by the standard error of this difference.
    /// The standard error is estimated from the variation between observations.
    pub difference: Option<(f64, f64)>,
    /// The log evidence in nats and its standard error, or `None` if the fit was not refined.
    pub log_evidence: Option<(f64, f64)>,
    /// The ELBO in nats and its standard error. The ELBO is a lower bound on the log evidence.
    pub elbo: (f64, f64),
}

/// Compares the fits that are stored in these folders. Returns the candidates in descending order of elpd. Fits without
/// an elpd come last.
///
/// `variable` is the name of the generated quantity that contains the log likelihood of every observation.
///
/// # Errors
/// Fails if a folder contains no finished fit, if its draws cannot be read, or if the fits have different numbers of
/// observations.
pub fn compare<P: AsRef<Path>>(folders: &[P], variable: &str) -> Result<Vec<Candidate>, Error> {
    let candidates: Result<Vec<_>, _> = folders
        .iter()
        .map(|folder| candidate(folder.as_ref(), variable))
        .collect();
    let mut candidates = candidates?;
    let mut counts = candidates
        .iter()
        .filter_map(|c| Some((&c.fit, c.loo.as_ref()?.pointwise.len())));
    if let Some((first, count)) = counts.next()
        && let Some((other, found)) = counts.find(|(_, found)| *found != count)
    {
        return Err(Error::Input(format!(
            "`{first}` has {count} observations in `{variable}`, but `{other}` has {found}: compare only fits \
             of the same observations"
        )));
    }
    let elpd = |c: &Candidate| c.loo.as_ref().map_or(f64::NEG_INFINITY, |loo| loo.elpd);
    candidates.sort_by(|a, b| elpd(b).total_cmp(&elpd(a)));
    let best = candidates.first().and_then(|c| c.loo.clone());
    for candidate in &mut candidates {
        if let (Some(best), Some(loo)) = (&best, &candidate.loo) {
            let terms: Vec<f64> = loo
                .pointwise
                .iter()
                .zip(&best.pointwise)
                .map(|(a, b)| a - b)
                .collect();
            candidate.difference = Some(sum_and_error(&terms));
        }
    }
    Ok(candidates)
}

/// Reads the cross-validation that a latent Gaussian fit has stored. Its k̂ is the share of an observation in the precision
/// of its own linear predictor.
#[cfg(feature = "latent")]
fn latent(folder: &Path) -> Result<Option<Candidate>, Error> {
    use crate::latent::{LARGEST_SHARE, cross_validated};

    let Some((summary, rows)) = cross_validated(folder)? else {
        return Ok(None);
    };
    let loo = rows.map(|rows| LeaveOneOut {
        elpd: rows.total.elpd,
        elpd_se: rows.total.elpd_se,
        p_loo: rows.total.p_loo,
        pointwise: rows.log_density,
        khat: match rows.total.unreliable {
            // With normal noise, no share is too large, because the result is exact.
            0 => rows.share.iter().map(|s| s.min(LARGEST_SHARE)).collect(),
            _ => rows.share,
        },
        khat_limit: LARGEST_SHARE,
    });
    Ok(Some(Candidate {
        fit: folder.display().to_string(),
        trusted: summary.judgement.trusted,
        loo,
        difference: None,
        log_evidence: summary.evidence.zip(summary.evidence_error),
        elbo: (summary.elbo, 0.0),
    }))
}

fn candidate(folder: &Path, variable: &str) -> Result<Candidate, Error> {
    #[cfg(feature = "latent")]
    if let Some(found) = latent(folder)? {
        return Ok(found);
    }
    let (run, stored) = StoredFit::open(folder)?;
    let summary = FitSummary::read(&run.artefact(Artefact::Fit)).map_err(Error::Data)?;
    let (table, _) = read_draws_csv(&run.artefact(Artefact::DrawsCsv)).map_err(Error::Data)?;
    let refined = summary.refinement.as_ref().filter(|refined| refined.used);
    let of_posterior = refined.is_some() || stored.flags.importance_resample == Some(true);
    let log_weights = match of_posterior {
        true => vec![0.0; table.len()],
        false => table.log_weights(),
    };
    let efficiency = refined.map_or(1.0, |r| (r.ess / table.len() as f64).clamp(0.01, 1.0));
    let loo = columns(&table, variable)
        .map(|columns| LeaveOneOut::of(&columns, &log_weights, efficiency))
        .transpose()
        .map_err(|reason| Error::Input(format!("`{}`: {reason}", folder.display())))?;
    Ok(Candidate {
        fit: folder.display().to_string(),
        trusted: summary.trusted,
        loo,
        difference: None,
        log_evidence: refined.map(|r| (r.log_evidence, r.log_evidence_se)),
        elbo: (summary.elbo, summary.elbo_se),
    })
}

fn columns(table: &DrawsTable, variable: &str) -> Option<Vec<Vec<f64>>> {
    let mut start = 0;
    for found in table.variables() {
        if found.name == variable {
            return Some(
                (start..start + found.len())
                    .map(|c| table.column(c))
                    .collect(),
            );
        }
        start += found.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use jensen_math::rng::{Purpose, fill_normals};
    use jensen_math::simd::Simd;

    /// For y ~ N(μ, 1) and μ ~ N(0, 10²), the posterior without the observation y_i is normal, so the predictive
    /// density of y_i is known exactly.
    #[test]
    fn leaving_one_out_is_exact_for_a_normal_mean() {
        let y: Vec<f64> = (0..20)
            .map(|i| (f64::from(i) * 0.7).sin() * 1.5 + 0.3)
            .collect();
        let density = |x: f64, mean: f64, variance: f64| {
            -0.5 * ((x - mean).powi(2) / variance + (2.0 * std::f64::consts::PI * variance).ln())
        };
        let posterior = |y: &[f64]| {
            let variance = 1.0 / (0.01 + y.len() as f64);
            (variance * y.iter().sum::<f64>(), variance)
        };
        let exact: f64 = (0..y.len())
            .map(|i| {
                let rest: Vec<f64> = y
                    .iter()
                    .enumerate()
                    .filter(|(j, _)| *j != i)
                    .map(|(_, y)| *y)
                    .collect();
                let (mean, variance) = posterior(&rest);
                density(y[i], mean, 1.0 + variance)
            })
            .sum();
        let (mean, variance) = posterior(&y);
        let draws = 20_000;
        let mut z = vec![0.0; draws];
        fill_normals(
            Simd::detect(),
            1,
            Purpose::new("leave one out"),
            0,
            0,
            1,
            draws,
            &mut z,
        );
        // In the first case the draws come from the posterior. In the second case they come from another normal
        // distribution and have importance weights.
        for (shift, scale) in [(0.0, 1.0), (0.05, 1.2)] {
            let mu: Vec<f64> = z
                .iter()
                .map(|z| mean + shift + scale * variance.sqrt() * z)
                .collect();
            let weights: Vec<f64> = mu
                .iter()
                .map(|mu| {
                    density(*mu, mean, variance)
                        - density(*mu, mean + shift, scale * scale * variance)
                })
                .collect();
            let columns: Vec<Vec<f64>> = y
                .iter()
                .map(|y| mu.iter().map(|mu| density(*y, *mu, 1.0)).collect())
                .collect();
            let loo = LeaveOneOut::of(&columns, &weights, 1.0).unwrap();
            assert!((loo.elpd - exact).abs() < 0.02, "{} for {exact}", loo.elpd);
            // The model has a single parameter, about which the data are informative.
            assert!((loo.p_loo - 1.0).abs() < 0.5, "{}", loo.p_loo);
            assert_eq!(loo.unreliable(), 0);
        }
        let bad = vec![vec![f64::NAN; draws]];
        assert!(
            LeaveOneOut::of(&bad, &vec![0.0; draws], 1.0)
                .unwrap_err()
                .to_string()
                .contains("observation 1")
        );
    }
}
