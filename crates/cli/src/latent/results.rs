//! What a fit says at its end: `fit.json`, predictions, the page, the table.

use std::fmt::Write;
use std::time::Instant;

use jensen::data::{Artefact, RunDir, Table, write_atomic_bytes};
use jensen::latent::{
    Curve, LatentSeconds, LatentSummary, Learnt, Outcome, Page, Stored, TableModel, fitted, sheet,
    summary,
};

use super::fit::Plan;
use crate::failure::{Failure, print};
use crate::table::seconds;

/// The file of predictions for the fitted rows.
const PREDICTIONS: &str = "predictions.csv";

/// Rows of the table; the rest is in fit.json.
const ROWS: usize = 20;

/// Everything that results are made from.
pub struct Made<'a> {
    /// What was planned.
    pub plan: &'a Plan,
    /// The model.
    pub model: &'a TableModel,
    /// The table.
    pub table: &'a Table,
    /// The fit.
    pub learnt: &'a Learnt,
    /// What the run recorded.
    pub curve: &'a Curve,
    /// Where the time went so far.
    pub seconds: LatentSeconds,
}

/// Writes and prints the results.
pub fn report(made: &Made<'_>, json: bool, quiet: bool) -> Result<LatentSummary, Failure> {
    let begun = Instant::now();
    let (model, learnt) = (made.model, made.learnt);
    let settings = made.plan.flags.settings();
    let mut summary = summary(&jensen::latent::Made {
        model,
        theta: &learnt.theta,
        likelihood: learnt.likelihood,
        learnt: learnt.learnt,
        settings: &settings,
        fit: &learnt.fit,
        iterations: learnt.iterations,
        solver_seconds: learnt.solver_seconds,
        status: &learnt.status,
        seconds: made.seconds,
        seed: made.plan.flags.seed.unwrap_or(0),
    });
    if let Some(folder) = &made.plan.folder {
        // Predictions of all rows take longer than some fits: they are made where they are kept.
        let outcome = fitted(model, learnt.likelihood, &learnt.fit);
        write_results(folder, made, &mut summary, &outcome, begun)?;
    }
    if json {
        print(&summary.to_json().map_err(Failure::output)?)?;
    } else if !quiet {
        print(&table(&summary))?;
        if let Some(folder) = &made.plan.folder {
            print(&format!("results   {}\n", folder.path().display()))?;
        }
    }
    Ok(summary)
}

fn write_results(
    folder: &RunDir,
    made: &Made<'_>,
    summary: &mut LatentSummary,
    outcome: &Outcome,
    begun: Instant,
) -> Result<(), Failure> {
    let (model, learnt) = (made.model, made.learnt);
    let put = |path: std::path::PathBuf, bytes: &[u8]| {
        write_atomic_bytes(&path, bytes).map_err(Failure::output)
    };
    let stored = Stored::new(&learnt.theta, learnt.likelihood, &learnt.fit);
    put(folder.artefact(Artefact::Approximation), &stored.encode())?;
    let rows = predictions(model, outcome, model.rows());
    put(folder.path().join(PREDICTIONS), rows.as_bytes())?;
    let page = |summary: &LatentSummary| {
        jensen::report::render_sheet(&sheet(Page {
            model,
            fit: &learnt.fit,
            summary,
            curve: made.curve,
            outcome,
            graphs: model.graphs(),
            data: made.table.source(),
            settings: made.plan.flags.listed(),
        }))
    };
    // Drawing is the longest of this part, so that it is timed by doing it.
    let drawn = page(summary);
    summary.seconds.results = begun.elapsed().as_secs_f64();
    put(folder.artefact(Artefact::Report), drawn.as_bytes())?;
    // Last: who sees a fit.json finds everything else beside it.
    let text = summary.to_json().map_err(Failure::output)?;
    put(folder.artefact(Artefact::Fit), text.as_bytes())
}

/// Predictions of rows as CSV; `rows` are their numbers in the table, from 0.
pub fn predictions(model: &TableModel, outcome: &Outcome, rows: &[usize]) -> String {
    let times = outcome.times;
    let mut text = "row".to_owned();
    if times == 1 {
        text += ",eta_mean,eta_sd,mean,mean_q05,mean_q95";
    } else {
        for k in 1..=times {
            text += &format!(",eta_mean_{k},eta_sd_{k}");
        }
        for level in model.levels().unwrap_or(&[]) {
            text += &format!(",\"p[{}]\"", level.replace('"', "\"\""));
        }
    }
    let scored = outcome.response.iter().any(|y| !y.is_nan());
    text += if scored {
        ",response,log_density\n"
    } else {
        "\n"
    };
    let number = |text: &mut String, x: f64| {
        // Writing to a string cannot fail.
        let _ = if x.is_nan() {
            write!(text, ",")
        } else {
            write!(text, ",{x}")
        };
    };
    for (i, row) in rows.iter().enumerate() {
        text += &(row + 1).to_string();
        for (mean, variance) in &outcome.predictor[i * times..(i + 1) * times] {
            number(&mut text, *mean);
            number(&mut text, variance.sqrt());
        }
        for mean in &outcome.mean[i] {
            number(&mut text, *mean);
        }
        if times == 1 {
            number(&mut text, outcome.interval[i].0);
            number(&mut text, outcome.interval[i].1);
        }
        if scored {
            number(&mut text, outcome.response[i]);
            number(&mut text, outcome.log_density[i]);
        }
        text.push('\n');
    }
    text
}

/// The summary for people.
fn table(summary: &LatentSummary) -> String {
    let mut text = String::new();
    for parameter in summary.parameters.iter().take(ROWS) {
        text += &format!(
            "{:<32} {:>11.4} ± {:<9.4}\n",
            parameter.name, parameter.mean, parameter.sd
        );
    }
    if let Some(more @ 1..) = summary.parameters.len().checked_sub(ROWS) {
        text += &format!("… and {more} more (--json or --out has them all)\n");
    }
    for hyper in &summary.hyperparameters {
        let how = if hyper.learnt { "  learnt" } else { "" };
        text += &format!("{:<32} {:>11.6}{how}\n", hyper.name, hyper.value);
    }
    let mut line = |name: &str, value: String| text += &format!("{name:<9} {value}\n");
    let gap = match summary.gap {
        Some(gap) => format!(", gap {gap:.1e}"),
        None => String::new(),
    };
    line(
        "bound",
        format!("{:.6} nats ({}){gap}", summary.bound, summary.objective),
    );
    line(
        "time",
        format!(
            "read {}, fit {}, solver {} ({} iterations)",
            seconds(summary.seconds.build),
            seconds(summary.seconds.fit),
            seconds(summary.solver_seconds),
            summary.iterations
        ),
    );
    line("status", summary.status.clone());
    for warning in &summary.warnings {
        line("note", warning.clone());
    }
    if !summary.trusted {
        line("verdict", "NOT to be trusted".to_owned());
    }
    text
}
