//! The report of a latent Gaussian model.

use jensen_latent::Likelihood;
use jensen_latent::prior::Graph;
use jensen_report::figure::{Axis, Chart, Figure, Series};
use jensen_report::{Exhibit, Fact, Report, Section, Tone, Verdict};
use jensen_run::Record;
use serde_json::Value;

use super::{Known, LatentSummary, PredictedRows, TableModel, maps};
use crate::job;

const ROWS: usize = 200;

/// The bound and the duality gap of a run as functions of the iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// The value of the bound at each iteration.
    pub bound: Vec<(f64, f64)>,
    /// The duality gap at each iteration. The list is empty if the bound has no dual.
    pub gap: Vec<(f64, f64)>,
}

impl job::Course for Curve {
    fn add(&mut self, record: &Record) {
        let at = record.iteration as f64;
        if let Some(bound) = record.elbo.filter(|b| b.is_finite()) {
            self.bound.push((at, bound));
        }
        if let Some(gap) = record.fields.get("gap").and_then(Value::as_f64) {
            self.gap.push((at, gap));
        }
    }
}

fn run(curve: &Curve) -> Exhibit {
    let chart = |title: &str, y: Axis, points: &[(f64, f64)]| {
        let chart = Chart::new(title)
            .x(Axis::new("iteration"))
            .y(y)
            .series(Series::line("", points.iter().copied()).marked())
            .without_legend();
        Figure::new("").panel(chart)
    };
    let mut figures = Vec::new();
    if curve.bound.len() > 1 {
        figures.push((
            chart("Bound", Axis::new("nats"), &curve.bound),
            "The lower bound on log p(y), with all constants.".to_owned(),
        ));
    }
    if curve.gap.iter().filter(|p| p.1 > 0.0).count() > 1 {
        figures.push((
            chart("Duality gap", Axis::new("nats").log(), &curve.gap),
            "An upper bound on how much the lower bound can still rise at the hyperparameters of that iteration.".to_owned(),
        ));
    }
    Exhibit {
        heading: "Along the run".to_owned(),
        figures,
        ..Exhibit::default()
    }
}

fn calibration(outcome: &PredictedRows) -> Option<Exhibit> {
    let binned = outcome.calibration();
    if binned.len() < 2 {
        return None;
    }
    let (low, high) = binned
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), bin| {
            (
                a.min(bin.predicted).min(bin.observed),
                b.max(bin.predicted).max(bin.observed),
            )
        });
    let points: Vec<(f64, f64)> = binned.iter().map(|b| (b.predicted, b.observed)).collect();
    let ends = binned
        .iter()
        .map(|b| (b.observed - 1.96 * b.error, b.observed + 1.96 * b.error));
    let chart = Chart::new("Calibration")
        .x(Axis::new("predicted mean"))
        .y(Axis::new("observed mean"))
        .series(
            Series::line("perfect", [(low, low), (high, high)])
                .dashed()
                .colour(6),
        )
        .series(
            Series::line("observed", points)
                .marked()
                .colour(0)
                .band(ends),
        );
    Some(Exhibit {
        heading: "Do predictions and observations agree?".to_owned(),
        note: "The fitted data in groups of similar predictions, with two standard errors. Held-out data are a \
               stricter test: jensen latent predict scores them."
            .to_owned(),
        figures: vec![(Figure::new("").panel(chart), String::new())],
        ..Exhibit::default()
    })
}

const POINTS: usize = 3000;

/// Plots the data with the fitted curve. Returns `None` unless the linear predictor is a function of a single column and the
/// observation has a single mean.
fn data(model: &TableModel, outcome: &PredictedRows) -> Option<Exhibit> {
    let (column, x) = model.only_input()?;
    let several = outcome.mean.first().is_some_and(|mean| mean.len() > 1);
    if several {
        return None;
    }
    let (likelihood, seen) = (model.likelihood(), model.observed());
    let size = |i: usize| likelihood.factor(seen.size[i]);
    let mut order: Vec<usize> = (0..x.len()).collect();
    order.sort_by(|a, b| x[*a].total_cmp(&x[*b]).then(a.cmp(b)));
    let step = order.len().div_ceil(POINTS).max(1);
    let order: Vec<usize> = order.into_iter().step_by(step).collect();
    let over = |value: &dyn Fn(usize) -> f64| -> Vec<(f64, f64)> {
        let points = order.iter().map(|i| (x[*i], value(*i) / size(*i)));
        points.collect()
    };
    let mut chart = Chart::new(model.response())
        .x(Axis::new(column))
        .y(Axis::new(model.response()))
        .sized(640.0, 360.0);
    // The mean of returns under stochastic volatility is 0, so the figure shows their standard deviation instead.
    if likelihood != Likelihood::stochastic_volatility() {
        let band = order.iter().map(|i| {
            let (low, high) = outcome.interval[*i];
            (low / size(*i), high / size(*i))
        });
        let mean = Series::line("mean, with 90 %", over(&|i| outcome.mean[i][0]));
        chart = chart.series(mean.band(band).colour(0));
    }
    if likelihood.has_quantiles() {
        let low = Series::line("90 % of observations", over(&|i| outcome.predictive[i].0));
        let high = Series::line("", over(&|i| outcome.predictive[i].1));
        chart = chart
            .series(low.dashed().colour(0))
            .series(high.dashed().colour(0));
    }
    let observed = Series::scatter("data", over(&|i| seen.response[i]));
    chart = chart.series(observed.colour(1).opacity(0.7));
    let mut caption = String::from("Observations and predictions");
    if order.iter().any(|i| size(*i) != 1.0) {
        caption += ", per unit of exposure or per trial";
    }
    if step > 1 {
        caption += &format!(". The figure shows one row in {step}");
    }
    Some(Exhibit {
        heading: "The data and the fit".to_owned(),
        figures: vec![(Figure::new("").panel(chart), caption + ".")],
        ..Exhibit::default()
    })
}

/// The data from which the report of a fit is created.
pub struct Page<'a> {
    /// The fitted model.
    pub model: &'a TableModel,
    /// The posterior of the latent variables and of the linear predictors.
    pub known: &'a Known,
    /// The contents of `fit.json`.
    pub summary: &'a LatentSummary,
    /// The bound and the duality gap at each iteration.
    pub curve: &'a Curve,
    /// The predictive distribution of the fitted observations.
    pub outcome: &'a PredictedRows,
    /// The graphs of the parts of the prior, by the names of the parts.
    pub graphs: &'a [(String, Graph)],
    /// The name of the data.
    pub data: &'a str,
    /// The names and values of the settings.
    pub settings: Vec<(String, String)>,
}

fn facts(summary: &LatentSummary, outcome: &PredictedRows) -> Vec<Fact> {
    let mut facts = vec![Fact::new(
        "Bound",
        format!("{:.4}", summary.bound),
        format!("nats, {}", summary.objective),
    )];
    facts.extend(
        summary
            .gap
            .map(|gap| Fact::new("Gap", format!("{gap:.1e}"), "nats")),
    );
    facts.extend(summary.evidence.map(|evidence| {
        let error = summary.evidence_error.unwrap_or(f64::NAN);
        let note = format!("nats, integrated over hyperparameters, ± {error:.2}");
        Fact::new("Evidence", format!("{evidence:.2}"), note)
    }));
    facts.extend(summary.plain.as_ref().map(|plain| {
        let note = format!("nats per row; {}: {:.4}", plain.model, plain.plain);
        Fact::new("Left out", format!("{:.4}", plain.own), note)
    }));
    facts.push(Fact::new(
        "Observations",
        summary.observations.to_string(),
        "",
    ));
    facts.push(Fact::new("Latent variables", summary.dim.to_string(), ""));
    facts.extend(outcome.log_predictive().map(|score| {
        Fact::new(
            "Log predictive",
            format!("{score:.4}"),
            "nats, a fitted row",
        )
    }));
    facts
}

fn hyperparameters(summary: &LatentSummary) -> Option<Exhibit> {
    let rows = summary.hyperparameters.iter().map(|h| {
        let how = if h.learnt { "learnt" } else { "fixed" };
        let ends = [h.q05, h.q95].map(|x| x.map_or(String::new(), |x| format!("{x:.6}")));
        let [low, high] = ends;
        vec![
            h.name.clone(),
            format!("{:.6}", h.value),
            low,
            high,
            how.to_owned(),
        ]
    });
    (!summary.hyperparameters.is_empty()).then(|| Exhibit {
        heading: "Hyperparameters".to_owned(),
        table: (
            ["name", "value", "5 %", "95 %", "how"]
                .map(str::to_owned)
                .to_vec(),
            rows.collect(),
        ),
        ..Exhibit::default()
    })
}

fn parameters(summary: &LatentSummary) -> Option<Exhibit> {
    let rows = summary.parameters.iter().take(ROWS).map(|p| {
        let numbers = [p.mean, p.sd, p.q05, p.q95].map(|x| format!("{x:.4}"));
        std::iter::once(p.name.clone()).chain(numbers).collect()
    });
    let more = match summary.parameters.len().checked_sub(ROWS) {
        Some(more @ 1..) => format!("{more} further rows are in fit.json."),
        _ => String::new(),
    };
    (!summary.parameters.is_empty()).then(|| Exhibit {
        heading: "Latent variables in numbers".to_owned(),
        note: more,
        table: (
            ["name", "mean", "sd", "5 %", "95 %"]
                .map(str::to_owned)
                .to_vec(),
            rows.collect(),
        ),
        ..Exhibit::default()
    })
}

fn sections(page: &Page<'_>) -> Vec<Section> {
    let maps = Exhibit {
        heading: "Posterior of the latent variables".to_owned(),
        figures: maps::draw(page.model, page.known, page.graphs),
        ..Exhibit::default()
    };
    let drawn = |exhibit: &Exhibit| !exhibit.figures.is_empty();
    let exhibits = [
        data(page.model, page.outcome),
        Some(maps).filter(drawn),
        calibration(page.outcome),
        Some(run(page.curve)).filter(drawn),
        hyperparameters(page.summary),
        parameters(page.summary),
    ];
    exhibits.into_iter().flatten().map(Section::from).collect()
}

/// Creates the report of a fit from `page`.
pub fn report_page(page: Page<'_>) -> Report {
    let (model, summary, outcome) = (page.model, page.summary, page.outcome);
    let judged = &summary.judgement;
    let (tone, headline) = match (judged.trusted, judged.converged) {
        (true, _) => (
            Tone::Good,
            "Trusted: converged, the bound is at its maximum",
        ),
        (false, true) => (Tone::Fair, "Converged, but not trusted"),
        (false, false) => (Tone::Poor, "Not converged: do not use these results"),
    };
    Report {
        title: format!("{}: {}", model.response(), summary.likelihood),
        subject: vec![
            ("Prior".to_owned(), summary.prior.clone()),
            ("data".to_owned(), page.data.to_owned()),
        ],
        verdict: Verdict::new(tone, headline, &judged.status),
        facts: facts(summary, outcome),
        warnings: judged.warnings.clone(),
        sections: sections(&page),
        settings: page.settings,
        timing: vec![
            ("reading".to_owned(), summary.seconds.build),
            ("fit".to_owned(), summary.seconds.fit),
            ("results".to_owned(), summary.seconds.results),
        ],
        footnote: "Bounds and scores are in nats.".to_owned(),
        version: summary.version.clone(),
    }
}
