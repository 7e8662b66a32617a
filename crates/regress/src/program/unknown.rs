//! Writes columns that are measured with error or imputed. Their values are parameters.

use super::linear::{prior, suffix, sum, times, unit};
use super::{Block, Writer};
use crate::basis::{mean, sd};
use crate::predictor::{IMPUTED, Predictor, Unknown};

/// Writes the values of every column with unknown values, under a name such as `full_x`.
pub fn columns(writer: &mut Writer<'_>) {
    let regression = writer.regression;
    for unknown in &regression.unknowns {
        let x = writer.identifier(&unknown.name);
        let known =
            (0..unknown.values.len()).filter(|row| unknown.missing.binary_search(row).is_err());
        let known: Vec<f64> = known.map(|row| unknown.values[row]).collect();
        writer.real(
            &format!("middle_{x}"),
            "",
            mean(&known),
            &format!("mean of {}", unknown.name),
        );
        writer.real(
            &format!("spread_{x}"),
            "<lower=0>",
            sd(&known),
            &format!("standard deviation of {}", unknown.name),
        );
        writer.vector(
            &format!("obs_{x}"),
            "vector[N]",
            unknown.values.clone(),
            &unknown.name,
        );
        if writer.predicting {
            writer.line(Block::Known, format!("vector[N] full_{x} = obs_{x};"));
            continue;
        }
        match &unknown.errors {
            Some(errors) => measured(writer, &x, errors),
            None => missing(writer, &x, unknown),
        }
    }
}

fn measured(writer: &mut Writer<'_>, x: &str, errors: &[f64]) {
    let (middle, spread) = (format!("middle_{x}"), format!("spread_{x}"));
    writer.vector(
        &format!("noise_{x}"),
        "vector<lower=0>[N]",
        errors.to_vec(),
        "standard errors of its values",
    );
    let (level, size) = (format!("meanme_{x}"), format!("sdme_{x}"));
    writer.line(
        Block::Parameters,
        format!(
            "vector<offset={middle}, multiplier={spread}>[N] full_{x}; // its values without error"
        ),
    );
    writer.line(
        Block::Parameters,
        format!("real<offset={middle}, multiplier={spread}> {level};"),
    );
    writer.line(Block::Model, format!("// {x} without error"));
    prior(
        writer,
        &[&level, "meanme"],
        &level,
        &format!("normal({middle}, 2.5 * {spread})"),
    );
    scale(writer, &size, &spread, "sdme");
    writer.line(Block::Model, format!("full_{x} ~ normal({level}, {size});"));
    if !writer.regression.request.prior_only {
        writer.line(
            Block::Model,
            format!("obs_{x} ~ normal(full_{x}, noise_{x});"),
        );
    }
    writer.shown.extend([level, size]);
}

/// Writes a scale parameter. Its default prior is exponential, and its mean is the spread of the column.
fn scale(writer: &mut Writer<'_>, name: &str, spread: &str, class: &str) {
    if writer.priors.find(&[name, class]).is_some() {
        writer.line(Block::Parameters, format!("real<lower=0> {name};"));
        prior(writer, &[name, class], name, "");
        return;
    }
    writer.line(Block::Parameters, format!("real<lower=0> {name}_std;"));
    writer.line(
        Block::Derived,
        format!("real<lower=0> {name} = {spread} * {name}_std;"),
    );
    writer.prior(&format!("{name}_std"), "exponential(1)");
    writer
        .priors
        .note(name, format!("exponential(1 / {spread})"), false);
}

fn missing(writer: &mut Writer<'_>, x: &str, unknown: &Unknown) {
    let count = unknown.missing.len();
    if count == 0 {
        writer.line(Block::Known, format!("vector[N] full_{x} = obs_{x};"));
        return;
    }
    let (name, places) = (format!("missing_{x}"), format!("Jmi_{x}"));
    writer.int(
        &format!("Nmi_{x}"),
        "",
        count,
        "number of rows with a missing value",
    );
    let rows = unknown.missing.iter().map(|row| *row as i64 + 1).collect();
    writer.ints(
        &places,
        &format!("array[Nmi_{x}] int<lower=1, upper=N>"),
        rows,
        "their numbers",
    );
    writer.line(
        Block::Parameters,
        format!("vector<offset=middle_{x}, multiplier=spread_{x}>[Nmi_{x}] {name};"),
    );
    writer.line(
        Block::Derived,
        format!("vector[N] full_{x} = obs_{x};\nfull_{x}[{places}] = {name};"),
    );
    let rows = &writer.regression.rows;
    let labels = unknown
        .missing
        .iter()
        .map(|row| (rows[*row] + 1).to_string());
    let labels = labels.collect();
    writer.dims(&name, &[(&format!("row_{x}"), labels)]);
}

/// Writes the distribution of an imputed column.
pub fn imputation(writer: &mut Writer<'_>, predictor: &Predictor) {
    let Some(column) = predictor.parameter.strip_prefix(IMPUTED) else {
        return;
    };
    let s = suffix(writer, predictor);
    let size = format!("sigma{s}");
    writer.line(
        Block::Model,
        format!("// {column}, where it is missing and where it is not"),
    );
    scale(writer, &size, &format!("spread{s}"), &size);
    writer.shown.push(size.clone());
    let mean = format!("mu{s}");
    let mut lines = sum(writer, predictor, &mean);
    let unknown = writer.regression.unknowns.iter().find(|u| u.name == column);
    let has_gaps = unknown.is_some_and(|u| !u.missing.is_empty());
    match (writer.regression.request.prior_only, has_gaps) {
        (false, _) => lines.push(format!("full{s} ~ normal({mean}, {size});")),
        (true, true) => lines.push(format!("missing{s} ~ normal({mean}[Jmi{s}], {size});")),
        (true, false) => lines.clear(),
    }
    lines
        .into_iter()
        .for_each(|line| writer.line(Block::Model, line));
}

/// Writes the effects of columns with unknown values.
pub fn effects(writer: &mut Writer<'_>, predictor: &Predictor) {
    if predictor.unknown.is_empty() {
        return;
    }
    let s = suffix(writer, predictor);
    let unit = unit(writer, predictor);
    let (b, count) = (format!("bsp{s}"), format!("U{s}"));
    let names: Vec<String> = predictor
        .unknown
        .iter()
        .map(|term| term.name.clone())
        .collect();
    writer.int(
        &count,
        "",
        names.len(),
        "columns whose values are not all known",
    );
    writer.vector(
        &format!("{b}_unit"),
        &format!("vector<lower=0>[{count}]"),
        predictor
            .unknown
            .iter()
            .map(|term| 1.0 / term.spread)
            .collect(),
        "inverse standard deviations of their observed values",
    );
    writer.line(
        Block::Parameters,
        format!(
            "vector<multiplier={}>[{count}] {b};",
            times(&format!("{b}_unit"), &unit)
        ),
    );
    for (at, name) in names.iter().enumerate() {
        let usual = format!("normal(0, {} * {b}_unit[{}])", times("2.5", &unit), at + 1);
        let full = format!("{b}[{name}]");
        prior(
            writer,
            &[&full, &b, "b"],
            &format!("{b}[{}]", at + 1),
            &usual,
        );
    }
    writer.dims(&b, &[(&format!("unknown{s}"), names)]);
    writer.shown.push(b);
}
