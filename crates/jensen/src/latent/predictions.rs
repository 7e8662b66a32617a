//! The predictions for the rows of a table, formatted as CSV.

use std::fmt::Write;

use super::{PredictedRows, TableModel};

/// Formats the predictions for several rows as CSV. `rows` contains the zero-based indices of the rows in the table.
pub fn predictions(model: &TableModel, outcome: &PredictedRows, rows: &[usize]) -> String {
    let times = outcome.times;
    let quantiles = model.likelihood().has_quantiles();
    let mut text = "row".to_owned();
    if times == 1 {
        text += ",eta_mean,eta_sd,mean,mean_q05,mean_q95";
        text += if quantiles { ",y_q05,y_q95" } else { "" };
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
        if times == 1 {
            number(&mut text, outcome.interval[i].0);
            number(&mut text, outcome.interval[i].1);
        }
        if quantiles {
            number(&mut text, outcome.predictive[i].0);
            number(&mut text, outcome.predictive[i].1);
        }
        if scored {
            number(&mut text, outcome.response[i]);
            number(&mut text, outcome.log_density[i]);
        }
        text.push('\n');
    }
    text
}
