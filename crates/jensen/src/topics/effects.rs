//! Effects of covariates on the prevalence of topics.

use std::collections::HashMap;
use std::fmt::Write;

use jensen_conjugate::documents::{Bag, Documents, MemoryDocuments};
use jensen_conjugate::lda::{Prevalence, PrevalenceError, PrevalenceSettings, prevalence};
use jensen_data::table_csv::quoted;
use jensen_regress::{Covariates, Curve, Frame, FrameColumn};
use jensen_report::figure::{Axis, Chart, Figure, Series};
use jensen_report::{Exhibit, Fact, Report, Section, Tone, Verdict};
use serde::{Deserialize, Serialize};

use super::TopicModel;
use crate::Error;

/// The settings of [`topic_effects`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EffectsRequest {
    /// The formula of the covariates, such as `~ year + source`. Factors, splines, polynomials and products are those of
    /// regressions. There are no group effects.
    pub formula: String,
    /// The prior standard deviation of a coefficient. It refers to columns in units of their standard deviations.
    pub prior_sd: f64,
    /// The seed of the random numbers.
    pub seed: u64,
    /// Largest memory in bytes.
    pub memory_limit: u64,
}

/// The effect of a column on the share of a topic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopicEffect {
    /// The column of the design.
    pub column: String,
    /// The index of the topic.
    pub topic: usize,
    /// The most probable words of the topic.
    pub words: Vec<String>,
    /// The posterior mean of the change of the topic's log expected share per unit of the column. The other columns of
    /// the design have their means.
    pub mean: f64,
    /// The posterior standard deviation.
    pub sd: f64,
    /// The 5 % quantile.
    pub q05: f64,
    /// The 95 % quantile.
    pub q95: f64,
}

/// The expected share of a topic at a point of a curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopicShare {
    /// The variable that changes along the curve.
    pub variable: String,
    /// Its value.
    pub value: String,
    /// The second variable and its value, if the curve belongs to a product of columns.
    pub by: Option<(String, String)>,
    /// The index of the topic.
    pub topic: usize,
    /// The expected share. Other variables have their means or first levels.
    pub share: f64,
    /// The 5 % quantile.
    pub q05: f64,
    /// The 95 % quantile.
    pub q95: f64,
}

/// The effects of covariates on the prevalence of topics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopicEffects {
    /// Whether the search ended at the posterior mode.
    pub trusted: bool,
    /// The state at the end, in one sentence.
    pub status: String,
    /// Notes for the user. Each note is one sentence.
    pub warnings: Vec<String>,
    /// The formula.
    pub formula: String,
    /// The number of documents.
    pub documents: usize,
    /// The number of documents that were left out, because they have no known words or no value in a column.
    pub left_out: usize,
    /// The number of sweeps over all tokens.
    pub sweeps: usize,
    /// The largest change of a coefficient by the last Newton step, in posterior standard deviations.
    pub last_step: f64,
    /// The largest Monte Carlo error of a coefficient, in posterior standard deviations.
    pub noise: f64,
    /// The seed.
    pub seed: u64,
    /// The effects, sorted by column and topic.
    pub effects: Vec<TopicEffect>,
    /// The expected shares along curves.
    pub shares: Vec<TopicShare>,
    #[serde(skip)]
    curves: Vec<Curve>,
}

/// The 95 % quantile of the standard normal distribution.
const Z: f64 = 1.644_853_626_951_472_2;

/// The number of words that describe a topic.
const WORDS: usize = 5;

/// The number of topics in a figure. More lines would look alike.
const DRAWN: usize = 6;

/// Returns the row of the table for each document. Documents and rows are matched by the values of the column `id`, or by
/// their order if there is no such column.
///
/// # Errors
/// Fails if the column does not exist, if a value occurs twice, if a document has no name or no row, or if the numbers of
/// documents and rows differ.
pub fn match_rows(
    frame: &Frame,
    id: Option<&str>,
    documents: &[Option<String>],
) -> Result<Vec<usize>, Error> {
    let Some(id) = id else {
        return match documents.len() == frame.rows() {
            true => Ok((0..documents.len()).collect()),
            false => Err(Error::Input(format!(
                "{} has {} rows, but there are {} documents; name the column with their names (--id), or give one row \
                 per document in the same order",
                frame.source,
                frame.rows(),
                documents.len()
            ))),
        };
    };
    let column = frame.column(id).ok_or_else(|| frame.unknown(id))?;
    // A reader of tables turns names such as 1902.10530 into numbers, so names are compared as numbers then.
    let numbers = !matches!(column, FrameColumn::Factor(_));
    let key = |name: &str| match name.trim().parse::<f64>() {
        Ok(x) if numbers => x.to_string(),
        _ => name.to_owned(),
    };
    let name = |row: usize| match column {
        FrameColumn::Numbers(x) | FrameColumn::Truth(x) => x[row].to_string(),
        FrameColumn::Factor(factor) => {
            (factor.codes[row]).map_or(String::new(), |code| factor.levels[code as usize].clone())
        }
    };
    let mut rows: HashMap<String, usize> = HashMap::with_capacity(frame.rows());
    for row in 0..frame.rows() {
        if let Some(other) = rows.insert(name(row), row) {
            return Err(Error::Input(format!(
                "{}: rows {} and {} have the same `{id}`, `{}`",
                frame.source,
                other + 1,
                row + 1,
                name(row)
            )));
        }
    }
    let found = documents.iter().enumerate().map(|(d, document)| {
        let Some(document) = document else {
            return Err(Error::Input(format!(
                "document {} has no field `{id}`",
                d + 1
            )));
        };
        rows.get(&key(document)).copied().ok_or_else(|| {
            Error::Input(format!(
                "{} has no row whose `{id}` is `{document}`, as document {}",
                frame.source,
                d + 1
            ))
        })
    });
    found.collect()
}

/// Estimates how covariates change the prevalence of the topics of a fit. The documents need not be those of the fit.
/// `frame` has one row per document, in the same order.
///
/// Each document has its own prior of topic proportions, whose parameters depend on its columns
/// ([`prevalence()`](jensen_conjugate::lda::prevalence())). Unlike a regression of estimated proportions, this takes
/// into account that short documents say little about their proportions. The words of the topics are known. Columns are
/// standardised for the fit, and effects refer to the units of the table.
///
/// # Errors
/// Fails if the formula is invalid, if a column is missing, if there are too many coefficients, if the memory limit is
/// too small, or if `watch` returns true. It is called with the number of finished sweeps over all tokens.
pub fn topic_effects(
    model: &TopicModel,
    documents: &dyn Documents,
    frame: &Frame,
    request: &EffectsRequest,
    watch: &(dyn Fn(usize) -> bool + Sync),
) -> Result<TopicEffects, Error> {
    if documents.len() != frame.rows() {
        return Err(Error::Input(format!(
            "{} has {} rows, but there are {} documents",
            frame.source,
            frame.rows(),
            documents.len()
        )));
    }
    let covariates = Covariates::new(&request.formula, "prevalence", frame)?;
    let used = chosen(documents, &covariates.rows)?;
    let design = Standardised::of(&covariates);
    let coefficients = model.topics.topics as u64 * design.columns.len() as u64;
    // The search has five square matrices and the derivatives of a block of documents. Two bytes per token hold its topic.
    let needed = 8 * coefficients * (5 * coefficients + 1024) + 10 * used.tokens() as u64;
    if needed > request.memory_limit {
        return Err(Error::Memory {
            what: format!("{coefficients} coefficients and {} tokens", used.tokens()),
            needed,
            limit: request.memory_limit,
            advice: "use fewer columns or documents, or raise --memory-limit".to_owned(),
        });
    }
    if design.columns.len() == 1 {
        return Err(Error::Input(format!(
            "the columns of `{}` are constant in the documents, so they have no effect to estimate",
            request.formula
        )));
    }
    let settings = PrevalenceSettings {
        prior_sd: request.prior_sd,
        seed: request.seed,
    };
    let found = prevalence(&model.topics, &used, &design.columns, &settings, watch);
    let found = found.map_err(|error| match error {
        PrevalenceError::Input(what) => Error::Input(what),
        PrevalenceError::Stopped => Error::Input("the search was interrupted".to_owned()),
    })?;
    let words: Vec<Vec<String>> = (model.top_words(WORDS).into_iter())
        .map(|top| {
            let each = top
                .iter()
                .map(|(term, _)| model.words[*term as usize].clone());
            each.collect()
        })
        .collect();
    let (curves, shares, mut warnings) = match curves(&covariates, frame, &design, &found) {
        Ok((curves, shares)) => (curves, shares, Vec::new()),
        Err(error) => (
            Vec::new(),
            Vec::new(),
            vec![format!("there are no curves of shares: {error}")],
        ),
    };
    if let Some((name, others)) = covariates.dependent() {
        warnings.push(format!(
            "`{name}` is a sum of {} and a constant, so only the prior divides the effects between them",
            others.iter().map(|other| format!("`{other}`")).collect::<Vec<_>>().join(", ")
        ));
    }
    let constant = design.left_out.iter();
    warnings.extend(
        constant.map(|name| format!("`{name}` is constant in the documents, so it is left out")),
    );
    let status = match found.converged() {
        true => format!(
            "converged: the last step moved no coefficient by more than {:.2} of its posterior sd",
            found.last_step
        ),
        false => format!(
            "not converged: after {} rounds, a step still moves a coefficient by {:.2} of its posterior sd, and the draws \
             leave an error of {:.2}; use fewer columns or topics, more documents, or a smaller --prior-sd",
            found.rounds, found.last_step, found.noise
        ),
    };
    Ok(TopicEffects {
        trusted: found.converged(),
        status,
        warnings,
        formula: request.formula.clone(),
        documents: found.documents,
        left_out: documents.len() - found.documents,
        sweeps: found.sweeps,
        last_step: found.last_step,
        noise: found.noise,
        seed: request.seed,
        effects: effects(&design, &found, &words),
        shares,
        curves,
    })
}

fn chosen(documents: &dyn Documents, rows: &[usize]) -> Result<MemoryDocuments, Error> {
    let mut used = MemoryDocuments::new(documents.terms());
    let mut bag = Bag::new();
    for row in rows {
        documents.read(*row, &mut bag);
        used.push(&bag).map_err(Error::Input)?;
    }
    Ok(used)
}

/// The columns of a design in units of their standard deviations, without constant columns. The first is a column of
/// ones.
struct Standardised {
    names: Vec<String>,
    columns: Vec<Vec<f64>>,
    means: Vec<f64>,
    sds: Vec<f64>,
    /// The index of each column in the design.
    from: Vec<usize>,
    left_out: Vec<String>,
}

impl Standardised {
    fn of(covariates: &Covariates) -> Self {
        let design = &covariates.design;
        let mut made = Self {
            names: Vec::new(),
            columns: Vec::new(),
            means: Vec::new(),
            sds: Vec::new(),
            from: Vec::new(),
            left_out: Vec::new(),
        };
        for (from, (name, column)) in design.names.iter().zip(&design.columns).enumerate() {
            let count = column.len() as f64;
            let (mean, sd) = match from {
                0 => (0.0, 1.0),
                _ => {
                    let mean = column.iter().sum::<f64>() / count;
                    let squares: f64 = column.iter().map(|x| (x - mean).powi(2)).sum();
                    (mean, (squares / count).sqrt())
                }
            };
            // Rounding leaves a constant column with a spread of a few units in the last place.
            let spread = sd > 1e-12 * mean.abs() && sd > 0.0;
            if !spread {
                made.left_out.push(name.clone());
                continue;
            }
            made.names.push(name.clone());
            made.columns
                .push(column.iter().map(|x| (x - mean) / sd).collect());
            made.means.push(mean);
            made.sds.push(sd);
            made.from.push(from);
        }
        made
    }

    fn row(&self, columns: &[Vec<f64>], row: usize) -> Vec<f64> {
        let each = self.from.iter().zip(self.means.iter().zip(&self.sds));
        each.map(|(from, (mean, sd))| (columns[*from][row] - mean) / sd)
            .collect()
    }
}

/// Returns the expected shares of all topics in a document with this row of the standardised design.
fn shares_at(found: &Prevalence, row: &[f64]) -> Vec<f64> {
    let logs: Vec<f64> = (found.mean.chunks_exact(found.columns))
        .map(|own| own.iter().zip(row).map(|(c, x)| c * x).sum())
        .collect();
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = logs.iter().map(|log| (log - most).exp()).sum();
    logs.iter().map(|log| (log - most).exp() / total).collect()
}

/// Returns the standard deviation of `Σ_l (δ_kl − s_l) Σ_p direction_p c_lp`, which is the change of the log share of
/// topic k along a direction. The covariance is contracted with the direction once for all topics.
fn spreads(found: &Prevalence, shares: &[f64], direction: &[f64]) -> Vec<f64> {
    let (topics, columns) = (found.topics, found.columns);
    let n = topics * columns;
    let mut between = vec![0.0; topics * topics];
    for k in 0..topics {
        for l in 0..topics {
            let mut sum = 0.0;
            for (p, x) in direction.iter().enumerate() {
                let row = &found.covariance[(k * columns + p) * n + l * columns..][..columns];
                sum += x * row.iter().zip(direction).map(|(v, y)| v * y).sum::<f64>();
            }
            between[k * topics + l] = sum;
        }
    }
    let with_mean: Vec<f64> = (between.chunks_exact(topics))
        .map(|row| row.iter().zip(shares).map(|(v, s)| v * s).sum())
        .collect();
    let of_mean: f64 = with_mean.iter().zip(shares).map(|(v, s)| v * s).sum();
    (0..topics)
        .map(|k| {
            (between[k * (topics + 1)] - 2.0 * with_mean[k] + of_mean)
                .max(0.0)
                .sqrt()
        })
        .collect()
}

fn effects(design: &Standardised, found: &Prevalence, words: &[Vec<String>]) -> Vec<TopicEffect> {
    let columns = found.columns;
    let mut centre = vec![0.0; columns];
    centre[0] = 1.0;
    let shares = shares_at(found, &centre);
    let mut made = Vec::new();
    for p in 1..columns {
        let mut direction = vec![0.0; columns];
        direction[p] = 1.0;
        let sds = spreads(found, &shares, &direction);
        let own = |k: usize| found.mean[k * columns + p];
        let mean: f64 = shares.iter().enumerate().map(|(k, s)| s * own(k)).sum();
        for (topic, words) in words.iter().enumerate() {
            let (mean, sd) = (
                (own(topic) - mean) / design.sds[p],
                sds[topic] / design.sds[p],
            );
            made.push(TopicEffect {
                column: design.names[p].clone(),
                topic,
                words: words.clone(),
                mean,
                sd,
                q05: mean - Z * sd,
                q95: mean + Z * sd,
            });
        }
    }
    made
}

fn curves(
    covariates: &Covariates,
    frame: &Frame,
    design: &Standardised,
    found: &Prevalence,
) -> Result<(Vec<Curve>, Vec<TopicShare>), Error> {
    let (curves, grid) = covariates.curves(frame)?;
    let columns = covariates.at(&grid)?.columns;
    let (mut made, mut at) = (Vec::new(), 0);
    for curve in &curves {
        for line in 0..curve.lines() {
            let by = (curve.by.as_ref()).map(|(name, values)| (name.clone(), values[line].clone()));
            for point in 0..curve.points() {
                let value = match curve.at.get(point) {
                    Some(x) => x.to_string(),
                    None => curve.levels[point].clone(),
                };
                let row = design.row(&columns, at);
                at += 1;
                let shares = shares_at(found, &row);
                let sds = spreads(found, &shares, &row);
                for (topic, (share, sd)) in shares.iter().zip(sds).enumerate() {
                    // The interval is symmetric in the log odds of the share.
                    let odds = (share / (1.0 - share)).ln();
                    let wide = Z * sd / (1.0 - share).max(1e-12);
                    let of = |odds: f64| 1.0 / (1.0 + (-odds).exp());
                    made.push(TopicShare {
                        variable: curve.column.clone(),
                        value: value.clone(),
                        by: by.clone(),
                        topic,
                        share: *share,
                        q05: of(odds - wide),
                        q95: of(odds + wide),
                    });
                }
            }
        }
    }
    Ok((curves, made))
}

impl TopicEffects {
    /// Returns the effects as CSV, with one line per column and topic.
    pub fn effects_csv(&self) -> String {
        let mut text = "column,topic,words,mean,sd,q05,q95\n".to_owned();
        for row in &self.effects {
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{}",
                quoted(&row.column),
                row.topic,
                quoted(&row.words.join(" ")),
                row.mean,
                row.sd,
                row.q05,
                row.q95
            );
        }
        text
    }

    /// Returns the shares along curves as CSV, with one line per point and topic.
    pub fn shares_csv(&self) -> String {
        let mut text = "variable,value,by,level,topic,share,q05,q95\n".to_owned();
        for row in &self.shares {
            let (by, level) = row.by.clone().unwrap_or_default();
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{}",
                quoted(&row.variable),
                quoted(&row.value),
                quoted(&by),
                quoted(&level),
                row.topic,
                row.share,
                row.q05,
                row.q95
            );
        }
        text
    }

    /// Returns the effects whose 90 % interval does not contain 0, with the clearest first.
    pub fn clear(&self) -> Vec<&TopicEffect> {
        let mut clear: Vec<&TopicEffect> = (self
            .effects
            .iter()
            .filter(|row| row.q05 > 0.0 || row.q95 < 0.0))
        .collect();
        clear.sort_by(|a, b| (b.mean / b.sd).abs().total_cmp(&(a.mean / a.sd).abs()));
        clear
    }

    /// Returns the report.
    pub fn report_page(&self, settings: Vec<(String, String)>) -> Report {
        let (tone, headline) = match self.trusted {
            true => (Tone::Good, "Trusted"),
            false => (Tone::Fair, "Not to be trusted"),
        };
        let clear = self.clear();
        let row = |row: &&TopicEffect| {
            vec![
                row.column.clone(),
                row.topic.to_string(),
                row.words.join(" "),
                format!("{:.3}", row.mean),
                format!("{:.3}", row.sd),
                format!("{:.3}", row.q05),
                format!("{:.3}", row.q95),
            ]
        };
        let table = Exhibit {
            heading: "Which topics change with the columns?".to_owned(),
            note: format!(
                "Change of a topic's log expected share per unit of a column, for {} of {} pairs whose 90 % interval \
                 does not contain 0. Without any effect, {:.0} pairs would be expected here by chance.",
                clear.len(),
                self.effects.len(),
                0.1 * self.effects.len() as f64
            ),
            table: (
                ["column", "topic", "words", "mean", "sd", "5 %", "95 %"]
                    .map(str::to_owned)
                    .to_vec(),
                clear.iter().map(row).collect(),
            ),
            ..Exhibit::default()
        };
        let shares = Exhibit {
            heading: "How does the share of a topic depend on each column?".to_owned(),
            note: "Expected shares with other columns at their means or first levels, for the topics that change most. \
                   Bands are 90 % intervals."
                .to_owned(),
            figures: self.figures(),
            ..Exhibit::default()
        };
        Report {
            title: "Effects on topics".to_owned(),
            subject: vec![("formula".to_owned(), self.formula.clone())],
            verdict: Verdict::new(tone, headline, &self.status),
            facts: vec![
                Fact::new("documents", self.documents.to_string(), ""),
                Fact::new("left out", self.left_out.to_string(), "without words or values"),
                Fact::new("sweeps", self.sweeps.to_string(), "over all tokens"),
            ],
            warnings: self.warnings.clone(),
            sections: [shares, table].map(Section::from).into(),
            settings,
            footnote: "Dirichlet-multinomial regression with the fitted topics; intervals do not contain the error of the topics.".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Report::default()
        }
    }

    fn figures(&self) -> Vec<(Figure, String)> {
        let mut rest = self.shares.as_slice();
        let topics = self
            .effects
            .iter()
            .map(|row| row.topic + 1)
            .max()
            .unwrap_or(0);
        let mut figures = Vec::new();
        for curve in &self.curves {
            let (own, after) = rest.split_at(curve.lines() * curve.points() * topics);
            rest = after;
            if curve.by.is_some() {
                continue;
            }
            let of = |topic: usize| own.iter().skip(topic).step_by(topics);
            let change = |topic: usize| {
                let ends = of(topic).map(|row| row.share);
                let (low, high) = ends.fold((1.0f64, 0.0f64), |(l, h), x| (l.min(x), h.max(x)));
                high - low
            };
            let mut order: Vec<usize> = (0..topics).collect();
            order.sort_by(|a, b| change(*b).total_cmp(&change(*a)));
            let mut chart = Chart::new("")
                .x(Axis::new(&curve.column))
                .y(Axis::new("expected share"));
            for topic in order.into_iter().take(DRAWN) {
                let x = |at: usize| curve.at.get(at).copied().unwrap_or((at + 1) as f64);
                let points = of(topic).enumerate().map(|(at, row)| (x(at), row.share));
                let band: Vec<(f64, f64)> = of(topic).map(|row| (row.q05, row.q95)).collect();
                let words = self.effects.iter().find(|row| row.topic == topic);
                let words = words.map_or(String::new(), |row| {
                    row.words[..row.words.len().min(3)].join(" ")
                });
                let series = Series::line(format!("{topic}: {words}"), points).band(band);
                chart = chart.series(if curve.at.is_empty() {
                    series.marked()
                } else {
                    series
                });
            }
            let levels: Vec<String> = (1..)
                .zip(&curve.levels)
                .map(|(at, level)| format!("{at}: {level}"))
                .collect();
            let caption = match levels.is_empty() {
                true => format!("{}.", curve.column),
                false => format!("{} ({}).", curve.column, levels.join(", ")),
            };
            figures.push((Figure::new("").panel(chart), caption));
        }
        figures
    }
}
