//! Writes the program that computes predictions for new rows from the parameters of the fit.

use jensen_data::{DataSet, Labels};

use super::groups::drawn_together;
use super::{Block, Program, Writer, likelihood, linear, residuals};
use crate::error::Result;
use crate::predictor::Groups;
use crate::prior::Priors;
use crate::regression::Regression;

/// Writes the program for new rows, given the data of the fit. It computes `linear` predictors, `expected` values and
/// `predicted` responses. For categories, the expected values are probabilities. For groups that did not occur in the
/// fit, effects are drawn from the distribution of all groups.
///
/// # Errors
/// Fails if the target of a prior does not exist in the model.
pub fn predictions(rows: &Regression, fitted: &DataSet) -> Result<Program> {
    let mut writer = Writer::new(rows, Priors::parse(&rows.request.priors)?);
    writer.predicting = true;
    likelihood::functions(&mut writer);
    linear::declare(&mut writer)?;
    for parameter in &rows.plain {
        likelihood::declared(&mut writer, parameter);
    }
    if rows.family.has_categories() {
        writer.int(
            "C",
            "<lower=2>",
            rows.observed.categories.len(),
            "categories",
        );
    }
    residuals::declare(&mut writer);
    likelihood::thresholds(&mut writer);
    likelihood::trials(&mut writer);
    likelihood::errors(&mut writer);
    writer.clear(Block::Model);
    writer.clear(Block::Generated);
    new_groups(&mut writer);
    quantities(&mut writer);
    let numbers = rows.rows.iter().map(|row| *row as i64 + 1).collect();
    writer.label("row", Labels::Whole(numbers));
    // Statistics of the fit's data, such as the means of columns, also apply to new rows.
    let mut data = DataSet::new();
    for (name, value) in writer.data.iter() {
        let stored = fitted.get(name).filter(|_| !writer.by_row.contains(name));
        data.insert(name, stored.unwrap_or(value).clone());
    }
    Ok(Program {
        text: writer.text(&super::heading(rows)),
        log_prior: String::new(),
        data,
        coordinates: writer.coordinates,
        priors: Vec::new(),
        shown: Vec::new(),
    })
}

fn new_groups(writer: &mut Writer<'_>) {
    let rows = writer.regression;
    let mut drawn_before = Vec::new();
    for predictor in &rows.predictors {
        let s = linear::suffix(writer, predictor);
        for groups in predictor
            .groups
            .iter()
            .filter(|groups| !groups.new_levels.is_empty())
        {
            if let Some(shared) = rows.joint(groups) {
                if !drawn_before.contains(&shared) {
                    drawn_together(writer, groups.new_levels.len(), shared);
                    drawn_before.push(shared);
                }
                continue;
            }
            let own = writer.identifier(&groups.name);
            let g = format!("{s}_{own}");
            let text = drawn(groups, &g, &format!("J_{own}"));
            writer.line(Block::Generated, text);
        }
    }
}

fn drawn(groups: &Groups, g: &str, known: &str) -> String {
    let (new, m) = (groups.new_levels.len(), groups.design.names.len());
    let kind = match m {
        1 => format!("vector[{known} + {new}]"),
        m => format!("matrix[{known} + {new}, {m}]"),
    };
    let draw = match (m, groups.correlated) {
        (1, _) => format!("all{g}[j] = normal_rng(0, sd{g}[1]);"),
        (_, false) => format!("all{g}[j] = to_row_vector(normal_rng(rep_vector(0, {m}), sd{g}));"),
        (_, true) => format!(
            "all{g}[j] = multi_normal_cholesky_rng(rep_vector(0, {m}), diag_pre_multiply(sd{g}, L{g}))';"
        ),
    };
    format!(
        "{kind} all{g}; // new groups: {}\nall{g}[1 : {known}] = r{g};\nfor (j in {known} + 1 : {known} + {new}) {{\n  {draw}\n}}",
        groups.new_levels.join(", ").replace(['\n', '\r'], " ")
    )
}

fn quantities(writer: &mut Writer<'_>) {
    let rows = writer.regression;
    let categories = rows.observed.categories.clone();
    let linear = rows.family.has_one_mean().then_some(match rows.link {
        crate::family::Link::Identity => "mu[n]",
        _ => "eta[n]",
    });
    let expected = likelihood::expected(writer);
    if linear.is_some() {
        writer.line(Block::Generated, "vector[N] linear; // linear predictor");
        writer.dims_of_rows("linear");
    }
    match &expected {
        Some(_) => {
            writer.line(Block::Generated, "vector[N] expected; // expected value");
            writer.dims_of_rows("expected");
        }
        None => {
            writer.line(
                Block::Generated,
                "matrix[N, C] expected; // probabilities of the categories, or means of several responses",
            );
            let dimension = rows.family.dimension();
            writer.dims("expected", &[("row", Vec::new()), (dimension, categories)]);
        }
    }
    if rows.family.has_replicates() {
        let declared = likelihood::replicates(writer, "predicted");
        writer.line(Block::Generated, format!("{declared} // a response"));
        writer.dims_of_responses("predicted");
    }
    let mut body = String::from("{\n");
    for line in likelihood::parameters(writer) {
        body += &format!("  {line}\n");
    }
    body += "  for (n in 1 : N) {\n";
    if let Some(linear) = linear {
        body += &format!("    linear[n] = {linear};\n");
    }
    match expected {
        Some(mean) => body += &format!("    expected[n] = {mean};\n"),
        None => {
            for line in likelihood::categories(writer).lines() {
                body += &format!("    {line}\n");
            }
        }
    }
    if rows.family.has_replicates() {
        body += &format!("    predicted[n] = {};\n", likelihood::replicate(writer));
    }
    body += "  }\n}";
    writer.line(Block::Generated, body);
}
