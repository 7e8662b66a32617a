//! Factor analysis of tables. This module contains the fit job for the factor models of `jensen-latent`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use jensen_data::Table;
use jensen_data::table_csv::quoted;
use jensen_latent::{
    Dense, FactorFit, FactorModel, FactorSettings, Likelihood, NO_NOISE, Settings, Size,
    fit_factors,
};
use jensen_math::constants::LOG_TWO_PI;
use jensen_math::simd::Simd;
use jensen_math::sum::ColumnMoments;
use jensen_report::figure::{Axis, Chart, Figure, Series};
use jensen_report::{Exhibit, Fact, Report, Tone, Verdict};
use jensen_run::{Budget, Clock, Control, Identity, Outcome, Reason};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::request::parse_likelihood;
use super::{Curve, Hyperparameter, LatentSpec};
use crate::Error;
#[cfg(feature = "clap")]
use crate::job::words;
use crate::job::{
    Around, Baseline, Evidence, File, Finished, Job, Judgement, Need, Work, carry_out, request,
};
use crate::units::{Standardise, Units, shifted};

/// The name of the command, which is stored in its result folders.
pub const FACTOR_ANALYSIS: &str = "factor-analysis";

const LOADINGS: &str = "loadings.csv";
const SCORES: &str = "scores.csv";
const COMPLETED: &str = "completed.csv";

/// The settings of a factor analysis, with their defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct AnalysisRequest {
    /// The table; cells may be missing (may be omitted with --resume)
    #[cfg_attr(feature = "clap", arg(required_unless_present = "resume"))]
    pub data: Option<PathBuf>,
    /// Number of factors
    #[cfg_attr(feature = "clap", arg(long, short = 'k', value_name = "K", required_unless_present = "resume", value_parser = clap::value_parser!(u64).range(1..=1000), help_heading = "Model"))]
    pub factors: Option<u64>,
    /// Density of a cell, as for `jensen latent fit`; parameters without a value are learnt [default: gaussian]
    #[cfg_attr(feature = "clap", arg(long, value_name = "L", help_heading = "Model"))]
    pub likelihood: Option<String>,
    /// Whether to standardise the columns of normal cells, so that the noise is a share of each column's variance;
    /// bounds, loadings and cells are always in the units of the data [default: on]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "on|off", value_enum, help_heading = "Model")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standardise: Option<Standardise>,
    /// Precision of the normal prior of the loadings [default: 0.01]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = words::not_negative, help_heading = "Model"))]
    pub ridge: Option<f64>,
    /// Bound to maximise, as for `jensen latent fit` [default: the likelihood's best with a dual]
    #[cfg_attr(feature = "clap", arg(long, value_name = "B", help_heading = "Method"))]
    pub bound: Option<String>,
    /// Gain of an iteration in nats below which the fit has converged [default: 0.0001]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NATS", value_parser = words::positive, help_heading = "Method"))]
    pub tolerance: Option<f64>,
    /// Largest number of iterations [default: 10000]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Run"))]
    pub max_iters: Option<u64>,
    /// Largest number of seconds
    #[cfg_attr(feature = "clap", arg(long, value_name = "S", value_parser = words::positive, help_heading = "Run"))]
    pub max_seconds: Option<f64>,
    /// Seed of the first loadings [default: 0]
    #[cfg_attr(feature = "clap", arg(long, value_name = "S", help_heading = "Run"))]
    pub seed: Option<u64>,
}

/// A table that is analysed by factor analysis.
pub struct AnalysisData {
    source: String,
    names: Vec<String>,
    table: Dense,
    digest: String,
}

impl AnalysisData {
    /// Reads a table of numbers from a file. Cells of the table may be missing.
    ///
    /// # Errors
    /// Fails if the file cannot be read, if the table is empty, or if a column contains words instead of numbers.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::of_table(&Table::read(path)?)
    }

    /// Creates the data from a table of numbers. Cells of the table may be missing.
    ///
    /// # Errors
    /// Fails if the table is empty or if a column contains words instead of numbers.
    pub fn of_table(table: &Table) -> Result<Self, Error> {
        let mut data = Vec::with_capacity(table.rows() * table.columns().len());
        for column in table.columns() {
            data.extend(column.numbers()?);
        }
        let (rows, cols) = (table.rows(), table.columns().len());
        if data.is_empty() {
            return Err(Error::Input(format!("`{}` holds no rows", table.source())));
        }
        let bytes: Vec<u8> = data
            .iter()
            .flat_map(|x: &f64| x.to_bits().to_le_bytes())
            .collect();
        Ok(Self {
            source: table.source().to_owned(),
            names: table.names().iter().map(|n| (*n).to_owned()).collect(),
            digest: format!("{} {rows} {cols}", super::digest(&bytes)),
            table: Dense { rows, cols, data },
        })
    }
}

/// The contents of `fit.json` for a factor analysis. The names and meanings of the fields do not change between
/// versions. Later versions may add fields at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnalysisSummary {
    /// The status at the end of the run, with the verdict.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// The lower bound on log p(data | loadings) in nats, summed over the rows of the table.
    pub bound: f64,
    /// The objective that the iterations maximise. The objective is the bound minus the penalty on the loadings.
    pub objective: f64,
    /// The name of the bound on the expected log likelihood, such as `exact` or `tilted`.
    pub expectation: String,
    /// The likelihood.
    pub likelihood: String,
    /// The parameters of the likelihood.
    pub hyperparameters: Vec<Hyperparameter>,
    /// The number of factors.
    pub factors: usize,
    /// The number of rows.
    pub rows: usize,
    /// The number of missing cells.
    pub missing: usize,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The intercept in the linear predictor of each column.
    pub intercepts: Vec<f64>,
    /// The noise variance of each column. The list is empty unless the likelihood is Gaussian.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noise: Vec<f64>,
    /// The loadings in the units of the data, with one row per column of the table. Jensen rotates the factors to the
    /// principal axes of the fitted loadings and sorts the factors by descending length. If the columns are
    /// standardised, the rotation does not depend on the units of the data.
    pub loadings: Vec<Vec<f64>>,
    /// The number of iterations.
    pub iterations: u64,
    /// The time in seconds that the fit took.
    pub seconds: f64,
    /// The seed of the random starting values.
    pub seed: u64,
    /// The version of Jensen that wrote the file.
    pub version: String,
}

/// A factor analysis that is ready to be run by [`carry_out`].
pub struct AnalysisJob<'a> {
    request: &'a AnalysisRequest,
    data: &'a AnalysisData,
    units: Units,
    model: FactorModel,
    settings: FactorSettings,
}

/// Fits a factor analysis model to a table.
///
/// # Errors
/// Fails if there is no likelihood or bound with the given name, or if a cell is outside the domain of the likelihood.
/// Also returns the errors of [`carry_out`].
pub fn fit_analysis(
    asked: &AnalysisRequest,
    data: &AnalysisData,
    around: Around<'_>,
) -> Result<AnalysisSummary, Error> {
    let text = asked.likelihood.as_deref().unwrap_or("gaussian");
    let (likelihood, free) = parse_likelihood(text)?;
    if likelihood.sized_by() == Size::Sd {
        return Err(Error::setting(format!(
            "--likelihood {text}: the columns of a factor analysis are responses, so none of them has known \
             errors; use `gaussian`"
        )));
    }
    if matches!(likelihood.sized_by(), Size::Event | Size::Until) {
        return Err(Error::setting(format!(
            "--likelihood {text}: the columns of a factor analysis are responses, so none of them says which times are \
             censored; use `lognormal`"
        )));
    }
    if likelihood.levels().is_some() {
        return Err(Error::setting(format!(
            "--likelihood {text}: the columns of a factor analysis have different levels; use `gaussian`"
        )));
    }
    let bound = LatentSpec {
        bound: asked.bound.clone(),
        ..LatentSpec::default()
    };
    let named = likelihood.parameters().iter().zip(&free);
    let usual = FactorSettings::default();
    let units = units(asked, data, &likelihood)?;
    let job = AnalysisJob {
        request: asked,
        data,
        model: FactorModel {
            table: inside(&data.table, &units),
            factors: asked.factors.unwrap_or(1) as usize,
            likelihood,
            bound: bound.bound(likelihood)?,
        },
        settings: FactorSettings {
            fit: Settings::default(),
            ridge: asked.ridge.unwrap_or(usual.ridge),
            tolerance: asked.tolerance.unwrap_or(usual.tolerance),
            seed: asked.seed.unwrap_or(0),
            fixed: named
                .filter(|(_, free)| !**free)
                .map(|(name, _)| (*name).to_owned())
                .collect(),
        },
        units,
    };
    let done = carry_out(job, around)?;
    Ok(done.summary)
}

/// Only columns with a Gaussian likelihood are standardised. The values of other likelihoods have no units.
fn units(
    asked: &AnalysisRequest,
    data: &AnalysisData,
    likelihood: &Likelihood,
) -> Result<Units, Error> {
    let table = &data.table;
    if likelihood.name() != "gaussian" {
        if asked.standardise.is_some() {
            return Err(Error::setting(
                "--standardise is for normal cells: remove it with this likelihood",
            ));
        }
        return Ok(Units::as_they_are(table.cols));
    }
    let rows: Vec<f64> = (0..table.rows)
        .flat_map(|n| (0..table.cols).map(move |i| table.get(n, i)))
        .collect();
    Units::of_rows(table.cols, &rows, asked.standardise.unwrap_or_default())
        .map_err(|error| Error::Input(format!("`{}`: {error}", data.source)))
}

fn inside(table: &Dense, units: &Units) -> Dense {
    let row = |n: usize| {
        (0..table.cols)
            .map(|i| table.get(n, i))
            .collect::<Vec<f64>>()
    };
    let rows: Vec<Vec<f64>> = (0..table.rows)
        .map(|n| units.row(&row(n)).collect())
        .collect();
    Dense::from_fn(table.rows, units.width(), |n, i| rows[n][i])
}

/// Returns the maximised log density of the table under a model in which the columns are independent. Returns `None` if
/// the likelihood has no closed form for this density.
fn independent(table: &Dense, likelihood: &Likelihood) -> Option<f64> {
    let columns = (0..table.cols).map(|i| {
        let m = ColumnMoments::of_column(table.col(i).iter().copied());
        match likelihood.name() {
            "gaussian" => {
                let variance = m.squares / m.count;
                Some(-0.5 * m.count * (LOG_TWO_PI + variance.ln() + 1.0))
            }
            "bernoulli" => {
                let part = |p: f64| if p > 0.0 { p * p.ln() } else { 0.0 };
                Some(m.count * (part(m.mean) + part(1.0 - m.mean)))
            }
            _ => None,
        }
    });
    columns.sum()
}

/// Rotates the loadings and the scores. After the rotation, the columns of the loadings are orthogonal and sorted by
/// descending length, and the largest element of each column is positive. The rotation changes neither the prior of the
/// scores nor the density of the table.
fn turned(fit: &mut FactorFit) {
    let (d, k) = (fit.loadings.rows, fit.loadings.cols);
    // Jacobi rotations of pairs of columns diagonalise WᵀW, where W is the matrix of loadings.
    for _ in 0..60 {
        let mut largest = 0.0f64;
        for a in 0..k {
            for b in a + 1..k {
                let dot = |x: usize, y: usize| -> f64 {
                    (0..d)
                        .map(|i| fit.loadings.get(i, x) * fit.loadings.get(i, y))
                        .sum()
                };
                let (aa, bb, ab) = (dot(a, a), dot(b, b), dot(a, b));
                if ab.abs() <= 1e-14 * (aa * bb).sqrt() && aa >= bb {
                    continue;
                }
                largest = largest.max(ab.abs() / (aa * bb).sqrt().max(f64::MIN_POSITIVE));
                let angle = 0.5 * (2.0 * ab).atan2(aa - bb);
                let (s, c) = angle.sin_cos();
                for matrix in [&mut fit.loadings, &mut fit.scores] {
                    for i in 0..matrix.rows {
                        let (x, y) = (matrix.get(i, a), matrix.get(i, b));
                        matrix.data[a * matrix.rows + i] = c * x + s * y;
                        matrix.data[b * matrix.rows + i] = c * y - s * x;
                    }
                }
            }
        }
        if largest < 1e-12 {
            break;
        }
    }
    for l in 0..k {
        let peak = fit.loadings.col(l).iter().copied();
        let peak = peak.fold(0.0f64, |m, x| if x.abs() > m.abs() { x } else { m });
        if peak < 0.0 {
            for matrix in [&mut fit.loadings, &mut fit.scores] {
                let rows = matrix.rows;
                matrix.data[l * rows..(l + 1) * rows]
                    .iter_mut()
                    .for_each(|x| *x = -*x);
            }
        }
    }
}

impl AnalysisJob<'_> {
    /// Returns the logarithm of the Jacobian determinant, summed over all observed cells.
    fn log_jacobian(&self) -> f64 {
        let scales = self.units.log_scales();
        let known = |i: usize| {
            self.model
                .table
                .col(i)
                .iter()
                .filter(|x| !x.is_nan())
                .count()
        };
        let all = scales.iter().enumerate();
        -all.map(|(i, scale)| known(i) as f64 * scale).sum::<f64>()
    }

    /// Returns the learnt noise variance as a fraction of the mean variance of the columns. Returns `None` if the noise
    /// is not Gaussian or its variance was not learnt.
    fn variance(&self, fit: &FactorFit) -> Option<f64> {
        if fit.likelihood.name() != "gaussian" || !self.settings.fixed.is_empty() {
            return None;
        }
        let table = &self.model.table;
        let of = |i: usize| ColumnMoments::of_column(table.col(i).iter().copied());
        let all: f64 = (0..table.cols).map(|i| of(i).squares / of(i).count).sum();
        Some(fit.likelihood.values()[0] * table.cols as f64 / all)
    }

    /// Returns the loadings in the units of the data, with one row per column of the table.
    fn loadings(&self, fit: &FactorFit) -> Vec<Vec<f64>> {
        let factors = (0..fit.loadings.cols).map(|l| self.units.slopes_back(fit.loadings.col(l)));
        let factors: Vec<Vec<f64>> = factors.collect();
        let column = |i: usize| factors.iter().map(|factor| factor[i]).collect();
        (0..self.units.columns()).map(column).collect()
    }
}

impl Job for AnalysisJob<'_> {
    type Request = AnalysisRequest;
    type Course = Curve;
    type Output = FactorFit;
    type Summary = AnalysisSummary;

    fn command(&self) -> &'static str {
        FACTOR_ANALYSIS
    }

    fn own_files(&self) -> &'static [&'static str] {
        &[LOADINGS, SCORES, COMPLETED]
    }

    fn request(&self) -> &AnalysisRequest {
        self.request
    }

    fn identity(&self) -> Identity {
        Identity {
            algorithm: FACTOR_ANALYSIS.to_owned(),
            settings: json!({
                "settings": self.settings,
                "factors": self.model.factors,
                "likelihood": self.model.likelihood,
                "bound": self.model.bound.name(),
            }),
            seed: self.settings.seed,
            model_hash: String::new(),
            data_hash: self.data.digest.clone(),
            simd: Simd::detect().name().to_owned(),
        }
    }

    fn need(&self) -> Need {
        let (n, d) = (self.data.table.rows as u64, self.data.table.cols as u64);
        let k = self.model.factors as u64;
        Need {
            what: format!("a factor analysis of {n} rows and {d} columns"),
            // Each cell is stored as a number, as an entry of a column, as a site and as a dual variable. In addition,
            // each row has the covariance matrix of its scores.
            bytes: 8 * (n * d * 16 + n * k * (k + 6)) + (64 << 20),
            advice: "use fewer factors, or fit a part of the rows".to_owned(),
        }
    }

    fn budget(&self) -> Budget {
        Budget {
            max_seconds: self.request.max_seconds,
            ..Budget::iterations(self.request.max_iters.unwrap_or(10_000))
        }
    }

    fn course(&self) -> Curve {
        Curve::default()
    }

    fn run(&mut self, control: Control<'_>) -> Result<Outcome<FactorFit>, Error> {
        let identity = self.identity();
        let log_jacobian = self.log_jacobian();
        let mut fit = shifted(
            control,
            log_jacobian,
            &[("objective", log_jacobian)],
            |control| fit_factors(&self.model, &self.settings, &identity, control),
        )?;
        turned(&mut fit);
        fit.bound += log_jacobian;
        fit.objective += log_jacobian;
        Ok(Outcome {
            status: fit.status.clone(),
            iterations: fit.iterations,
            seconds: fit.seconds,
            output: Some(fit),
        })
    }

    fn evidence(&self, made: &Finished<Self>) -> Evidence {
        let mut evidence = Evidence::new(made.status.clone(), Work::UntilItConverges);
        if !made.output.bound.is_finite() {
            evidence.against.against(Reason::new(
                "the bound is not finite",
                "Use fewer factors (--factors).",
            ));
        }
        let variance = self.variance(&made.output);
        if variance.is_some_and(|variance| variance.is_nan() || variance <= 2.0 * NO_NOISE) {
            evidence.against.against(Reason::new(
                "the factors reproduce every row exactly, so the likelihood is unbounded",
                "Use fewer factors (--factors), fix the noise (--likelihood 'gaussian(variance=0.1)'), or add \
                 distinct rows.",
            ));
        }
        let plain = independent(&self.model.table, &self.model.likelihood);
        evidence.baseline = plain.map(|score| {
            let score = score + self.log_jacobian();
            Baseline {
                model: "independent columns".to_owned(),
                score,
                fit: made.output.bound,
                // The prior of the loadings costs less than one nat, so the fit may score up to one nat less than the
                // baseline.
                least: score - 1.0,
                unit: "ELBO in nats".to_owned(),
                advice: "Allow more iterations (--max-iters), or use fewer factors (--factors)."
                    .to_owned(),
            }
        });
        evidence.notes.extend(self.units.notes(&self.data.names));
        evidence
    }

    fn summary(&self, made: &Finished<Self>, judgement: Judgement) -> AnalysisSummary {
        let fit = &made.output;
        let names = fit
            .likelihood
            .parameters()
            .iter()
            .zip(fit.likelihood.values());
        let fixed = |name: &str| self.settings.fixed.iter().any(|f| f == name);
        AnalysisSummary {
            judgement,
            bound: fit.bound,
            objective: fit.objective,
            expectation: self.model.bound.name().to_owned(),
            likelihood: fit.likelihood.name().to_owned(),
            hyperparameters: names
                .map(|(name, value)| Hyperparameter {
                    name: format!("likelihood.{name}"),
                    value,
                    learnt: !fixed(name),
                    ..Hyperparameter::default()
                })
                .collect(),
            factors: self.model.factors,
            rows: self.data.table.rows,
            missing: self.data.table.data.iter().filter(|x| x.is_nan()).count(),
            columns: self.data.names.clone(),
            intercepts: self.units.back(&fit.intercepts),
            noise: match fit.likelihood.name() {
                "gaussian" => {
                    let variance = vec![fit.likelihood.values()[0]; self.units.width()];
                    self.units.variances_back(&variance)
                }
                _ => Vec::new(),
            },
            loadings: self.loadings(fit),
            iterations: made.iterations,
            seconds: made.seconds,
            seed: self.settings.seed,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    fn files<'a>(
        &'a self,
        made: &'a Finished<Self>,
        summary: &mut AnalysisSummary,
        _: &dyn Clock,
    ) -> Vec<File<'a>> {
        let page = report_page(summary, &made.course, &made.output, self);
        vec![
            File::of_bytes(LOADINGS, loadings(summary)),
            File::of_bytes(SCORES, scores(&made.output)),
            File::of_bytes(COMPLETED, completed(self, &made.output)),
            File::page(&page),
        ]
    }
}

fn line(text: &mut String, first: &str, rest: impl IntoIterator<Item = f64>) {
    *text += first;
    for x in rest {
        // Writing to a string never fails.
        let _ = write!(text, ",{x}");
    }
    text.push('\n');
}

fn heads(first: &str, name: &str, count: usize) -> String {
    let mut text = first.to_owned();
    (1..=count).for_each(|k| text += &format!(",{name}{k}"));
    text
}

fn loadings(summary: &AnalysisSummary) -> String {
    let mut text = heads("column,intercept", "loading", summary.factors) + "\n";
    let columns = summary.columns.iter().zip(&summary.intercepts);
    for ((name, intercept), row) in columns.zip(&summary.loadings) {
        let all = std::iter::once(*intercept).chain(row.iter().copied());
        line(&mut text, &quoted(name), all);
    }
    text
}

fn scores(fit: &FactorFit) -> String {
    let k = fit.scores.cols;
    let mut text = heads("row", "score", k) + "\n";
    for row in 0..fit.scores.rows {
        let own = (0..k).map(|l| fit.scores.get(row, l));
        line(&mut text, &(row + 1).to_string(), own);
    }
    text
}

fn completed(job: &AnalysisJob<'_>, fit: &FactorFit) -> String {
    let names: Vec<String> = job.data.names.iter().map(|name| quoted(name)).collect();
    let table = &job.data.table;
    let mut text = names.join(",") + "\n";
    for row in 0..table.rows {
        let means: Vec<f64> = (0..job.units.width())
            .map(|column| expected(fit, row, column))
            .collect();
        let means = job.units.back(&means);
        for (column, mean) in means.into_iter().enumerate() {
            let seen = table.get(row, column);
            let x = if seen.is_nan() { mean } else { seen };
            // Writing to a string never fails.
            let _ = write!(text, "{}{x}", if column > 0 { "," } else { "" });
        }
        text.push('\n');
    }
    text
}

fn expected(fit: &FactorFit, row: usize, column: usize) -> f64 {
    let eta: f64 = (0..fit.loadings.cols)
        .map(|l| fit.loadings.get(column, l) * fit.scores.get(row, l))
        .sum();
    fit.likelihood.mean(fit.intercepts[column] + eta, 1.0)
}

const SHOWN: usize = 200;

const DRAWN: usize = 3000;

fn report_page(
    summary: &AnalysisSummary,
    course: &Curve,
    fit: &FactorFit,
    job: &AnalysisJob<'_>,
) -> Report {
    let judged = &summary.judgement;
    let (tone, headline) = match judged.trusted {
        true => (Tone::Good, "Trusted: the fit converged"),
        false => (Tone::Poor, "Not to be trusted"),
    };
    let mut found = Exhibit {
        heading: "Loadings".to_owned(),
        note: "Contribution of each factor to the linear predictor of a column. Factors are rotated to their \
         principal axes, the largest first."
            .to_owned(),
        ..Exhibit::default()
    };
    let rows = summary.columns.iter().zip(&summary.loadings).take(SHOWN);
    let heads =
        std::iter::once("column".to_owned()).chain((1..=summary.factors).map(|k| k.to_string()));
    found.table = (
        heads.collect(),
        rows.map(|(name, row)| {
            let cells = row.iter().map(|x| format!("{x:.3}"));
            std::iter::once(name.clone()).chain(cells).collect()
        })
        .collect(),
    );
    if summary.factors > 1 {
        let step = fit.scores.rows.div_ceil(DRAWN).max(1);
        let points = (0..fit.scores.rows).step_by(step);
        let points = points.map(|row| (fit.scores.get(row, 0), fit.scores.get(row, 1)));
        let chart = Chart::new("Scores")
            .x(Axis::new("factor 1"))
            .y(Axis::new("factor 2"))
            .series(Series::scatter("", points).opacity(0.5))
            .without_legend();
        found.figures.push((
            Figure::new("").panel(chart),
            "Posterior means of the rows' first two factors.".to_owned(),
        ));
    }
    let along = Chart::new("Bound")
        .x(Axis::new("iteration"))
        .y(Axis::new("nats"))
        .series(Series::line("", course.bound.iter().copied()))
        .without_legend();
    Report {
        title: format!("{} factors", summary.factors),
        subject: vec![
            ("likelihood".to_owned(), summary.likelihood.clone()),
            ("data".to_owned(), job.data.source.clone()),
        ],
        verdict: Verdict::new(tone, headline, &judged.status),
        facts: vec![
            Fact::new("bound", format!("{:.3}", summary.bound), "nats"),
            Fact::new("rows", summary.rows.to_string(), ""),
            Fact::new("columns", summary.columns.len().to_string(), ""),
            Fact::new("missing", summary.missing.to_string(), "cells"),
            Fact::new("iterations", summary.iterations.to_string(), ""),
        ]
        .into_iter()
        .chain(judged.fact())
        .collect(),
        warnings: judged.warnings.clone(),
        sections: vec![
            found.into(),
            Exhibit {
                heading: "Along the run".to_owned(),
                figures: vec![(Figure::new("").panel(along), String::new())],
                ..Exhibit::default()
            }
            .into(),
        ],
        settings: request::listed(job.request),
        timing: vec![("fit".to_owned(), summary.seconds)],
        footnote: "Bounds are in nats.".to_owned(),
        version: summary.version.clone(),
    }
}
