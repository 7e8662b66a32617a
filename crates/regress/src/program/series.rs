//! Writes autoregressions of residuals.

use super::linear::prior;
use super::{Block, Writer};
use crate::predictor::Predictor;

/// Writes the coefficients of the autoregression, and for each row the indices of the preceding rows.
pub fn series(writer: &mut Writer<'_>, predictor: &Predictor) {
    let Some(series) = predictor.series.as_ref().filter(|_| !writer.predicting) else {
        return;
    };
    writer.int("P", "", series.lags.len(), "order of the autoregression");
    for (at, lag) in series.lags.iter().enumerate() {
        let places = lag
            .iter()
            .enumerate()
            .map(|(row, before)| before.unwrap_or(row) as i64 + 1);
        let n = at + 1;
        writer.ints(
            &format!("lag_{n}"),
            "array[N] int<lower=1, upper=N>",
            places.collect(),
            &format!("the row {n} before"),
        );
        let has = lag
            .iter()
            .map(|before| f64::from(u8::from(before.is_some())));
        writer.vector(
            &format!("has_lag_{n}"),
            "vector<lower=0, upper=1>[N]",
            has.collect(),
            "whether there is one",
        );
    }
    writer.line(
        Block::Parameters,
        "vector<lower=-1, upper=1>[P] ar; // of residuals",
    );
    writer.line(Block::Model, "// autoregression");
    prior(writer, &["ar"], "ar", "uniform(-1, 1)");
    writer.shown.push("ar".to_owned());
}

/// Returns the lines that add multiples of earlier residuals to a predictor.
pub fn lagged(writer: &Writer<'_>, predictor: &Predictor, name: &str) -> Vec<String> {
    let Some(series) = predictor.series.as_ref().filter(|_| !writer.predicting) else {
        return Vec::new();
    };
    let mut lines = vec![format!("vector[N] residual = y - {name};")];
    let orders = 1..=series.lags.len();
    lines
        .extend(orders.map(|n| format!("{name} += ar[{n}] * (has_lag_{n} .* residual[lag_{n}]);")));
    lines
}
