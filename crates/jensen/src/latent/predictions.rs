//! The predictions for the rows of a table, formatted as CSV.

use std::fmt::Write;

use jensen_data::table_csv::quoted;
use jensen_latent::Response;

use super::left_out::{COLUMNS, LeftOutRows};
use super::{PredictedRows, TableModel};

/// Returns the names of the columns with the probabilities of categories or ordered levels, each after a comma. Returns
/// `None` for other responses.
pub(super) fn means(model: &TableModel) -> Option<String> {
    let response = model.likelihood().response();
    matches!(response, Response::Category | Response::Level).then(|| {
        let levels = model.levels().unwrap_or(&[]).iter();
        levels
            .map(|level| format!(",\"p[{}]\"", level.replace('"', "\"\"")))
            .collect()
    })
}

/// Writes an observation. An ordered level is written as its value in the table, and NaN as an empty cell.
pub(super) fn written(model: &TableModel, y: f64) -> String {
    match (model.likelihood().response(), model.levels()) {
        _ if y.is_nan() => String::new(),
        (Response::Level, Some(levels)) => quoted(&levels[y as usize]),
        _ => y.to_string(),
    }
}

/// Formats the predictions for several rows as CSV. `rows` contains the zero-based indices of the rows in the table. For the
/// rows of the fit, `left_out` contains the predictions from all other rows.
pub fn predictions(
    model: &TableModel,
    outcome: &PredictedRows,
    left_out: Option<&LeftOutRows>,
    rows: &[usize],
) -> String {
    let times = outcome.times;
    let quantiles = model.likelihood().has_quantiles();
    let mut text = "row".to_owned();
    if times == 1 {
        text += ",eta_mean,eta_sd";
    } else {
        (1..=times).for_each(|k| text += &format!(",eta_mean_{k},eta_sd_{k}"));
    }
    let probabilities = means(model);
    let intervals = probabilities.is_none();
    text += &probabilities.unwrap_or_else(|| ",mean,mean_q05,mean_q95".to_owned());
    text += if quantiles { ",y_q05,y_q95" } else { "" };
    let scored = outcome.response.iter().any(|y| !y.is_nan());
    text += if scored { ",response,log_density" } else { "" };
    if left_out.is_some() {
        COLUMNS.iter().for_each(|name| text += &format!(",{name}"));
    }
    text.push('\n');
    let number = |text: &mut String, x: f64| {
        // Writing to a string never fails.
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
        if intervals {
            number(&mut text, outcome.interval[i].0);
            number(&mut text, outcome.interval[i].1);
        }
        if quantiles {
            let (low, high) = outcome.predictive[i];
            for y in [low, high] {
                text.push(',');
                text += &written(model, y);
            }
        }
        if scored {
            text.push(',');
            text += &written(model, outcome.response[i]);
            number(&mut text, outcome.log_density[i]);
        }
        if let Some(left_out) = left_out {
            for column in [&left_out.log_density, &left_out.pit, &left_out.share] {
                number(&mut text, column[i]);
            }
        }
        text.push('\n');
    }
    text
}
