//! Writes the density of the response, log likelihoods and replicates.

use super::linear::{is_centred, prior, shift, sum};
use super::{Block, Writer, hazard, residuals, unknown};
use crate::error::Result;
use crate::family::{Link, Parameter, Response};
use crate::predictor::Predictor;
use jensen_data::Labels;

/// Largest number of rows for which the program computes R². The computation makes a pass over all rows for every draw.
/// With 100 000 rows, it took half as long as the fit.
const EXPLAINED: usize = 20_000;

/// Declares the response and the parameters of the family that have no formula, and writes the density.
pub fn declare(writer: &mut Writer<'_>) -> Result<()> {
    let regression = writer.regression;
    let family = regression.family;
    functions(writer);
    response(writer);
    let plain = regression.plain.clone();
    if !plain.is_empty() || family.response == Response::Ordinal {
        writer.line(
            Block::Model,
            format!("// parameters of the family {}", family.name),
        );
    }
    for parameter in &plain {
        declared(writer, parameter);
    }
    residuals::declare(writer);
    hazard::declare(writer);
    thresholds(writer);
    for predictor in &regression.imputed {
        unknown::imputation(writer, predictor);
    }
    if !regression.request.prior_only {
        writer.line(Block::Model, "// the response");
        for line in parameters(writer) {
            writer.line(Block::Model, line);
        }
        for line in statement(writer) {
            writer.line(Block::Model, line);
        }
    }
    generated(writer);
    Ok(())
}

/// Adds the functions that the density calls.
pub fn functions(writer: &mut Writer<'_>) {
    let text = writer.regression.family.functions;
    if !text.is_empty() {
        writer.line(Block::Functions, text);
    }
}

fn response(writer: &mut Writer<'_>) {
    let regression = writer.regression;
    let observed = &regression.observed;
    let whole = || {
        observed
            .values
            .iter()
            .map(|y| *y as i64)
            .collect::<Vec<i64>>()
    };
    let name = observed.name.clone();
    let count = observed.categories.len();
    match regression.family.response {
        Response::Ordinal | Response::Nominal => {
            writer.int(
                "C",
                "<lower=2>",
                count,
                &format!("categories: {}", observed.categories.join(", ")),
            );
            writer.ints("y", "array[N] int<lower=1, upper=C>", whole(), &name);
        }
        Response::Counts | Response::Shares | Response::Several => {
            trials(writer);
            writer.int("C", "<lower=2>", count, "categories");
            let kind = match regression.family.response {
                Response::Counts => "array[N, C] int<lower=0>",
                Response::Several => "array[N] vector[C]",
                _ => "array[N] vector<lower=0, upper=1>[C]",
            };
            writer.table("y", kind, &observed.parts, &observed.categories.join(", "));
        }
        Response::Binary => {
            let comment = match observed.categories.get(1) {
                Some(one) if one != "1" => format!("{name}: 1 is {one}"),
                _ => name,
            };
            writer.ints("y", "array[N] int<lower=0, upper=1>", whole(), &comment);
        }
        Response::Count => writer.ints("y", "array[N] int<lower=0>", whole(), &name),
        Response::Trials => {
            trials(writer);
            writer.ints("y", "array[N] int<lower=0>", whole(), &name);
        }
        Response::Positive | Response::NotNegative => {
            writer.vector("y", "vector<lower=0>[N]", observed.values.clone(), &name);
        }
        Response::Share | Response::ShareWithEnds { .. } => {
            writer.vector(
                "y",
                "vector<lower=0, upper=1>[N]",
                observed.values.clone(),
                &name,
            );
        }
        Response::Real | Response::Angle => {
            writer.vector("y", "vector[N]", observed.values.clone(), &name)
        }
    }
    if let Some(weights) = &observed.weights {
        writer.vector(
            "weights",
            "vector<lower=0>[N]",
            weights.clone(),
            "weight of each row in the log likelihood",
        );
    }
    if let Some(censored) = &observed.censored {
        let marks = censored.iter().map(|c| *c as i64).collect();
        writer.ints(
            "censored",
            "array[N] int<lower=-1, upper=1>",
            marks,
            "-1: at most y; 1: more than y",
        );
    }
    if let Some(decisions) = &observed.decisions {
        let marks = decisions.iter().map(|c| *c as i64).collect();
        writer.ints(
            "dec",
            "array[N] int<lower=0, upper=1>",
            marks,
            "1: the upper boundary; 0: the lower one",
        );
    }
    errors(writer);
}

/// Declares the known standard errors of the response.
pub fn errors(writer: &mut Writer<'_>) {
    if let Some(errors) = &writer.regression.observed.errors {
        writer.vector(
            "se",
            "vector<lower=0>[N]",
            errors.clone(),
            "known standard errors",
        );
    }
}

/// Declares the number of trials of each row.
pub fn trials(writer: &mut Writer<'_>) {
    if let Some(trials) = &writer.regression.observed.trials {
        let whole = trials.iter().map(|n| *n as i64).collect();
        writer.ints("trials", "array[N] int<lower=0>", whole, "trials");
    }
}

/// Declares a parameter without a formula.
pub fn declared(writer: &mut Writer<'_>, parameter: &Parameter) {
    let Parameter {
        name,
        bounds,
        prior: usual,
        ..
    } = *parameter;
    let is_scale = usual.is_empty();
    if bounds.contains("min_y") {
        let values = writer.regression.observed.values.iter();
        let least = values.copied().fold(f64::INFINITY, f64::min);
        writer.real("min_y", "", least, "the least response");
    }
    let given = writer.priors.find(&[name]).is_some();
    writer.shown.push(name.to_owned());
    if is_scale && !given {
        // The parameter is declared without units, so its prior does not depend on them.
        writer.line(Block::Parameters, format!("real<lower=0> {name}_std;"));
        writer.line(
            Block::Derived,
            format!("real<lower=0> {name} = y_sd * {name}_std;"),
        );
        writer.prior(&format!("{name}_std"), "exponential(1)");
        writer
            .priors
            .note(name, "exponential(1 / y_sd)".to_owned(), false);
        return;
    }
    writer.line(Block::Parameters, format!("real{bounds} {name};"));
    prior(writer, &[name], name, usual);
}

/// Writes the thresholds between ordered categories.
pub fn thresholds(writer: &mut Writer<'_>) {
    let regression = writer.regression;
    if regression.family.response != Response::Ordinal {
        return;
    }
    let name = thresholds_name(writer);
    // The thresholds of the cumulative family divide a single line, so they increase. The other families decide step by
    // step, so their thresholds need not increase.
    let kind = if regression.family.name == "cumulative" {
        "ordered"
    } else {
        "vector"
    };
    writer.line(Block::Parameters, format!("{kind}[C - 1] {name};"));
    prior(
        writer,
        &["thresholds", "Intercept"],
        &name,
        "student_t(3, 0, 2.5)",
    );
    if let Some(shift) = regression.predictors.first().and_then(|p| shift(writer, p)) {
        let shift = shift.replace(" - ", " + ");
        writer.line(
            Block::Derived,
            format!("vector[C - 1] thresholds = {name} + {shift};"),
        );
    }
    let categories = &regression.observed.categories;
    let between = categories
        .windows(2)
        .map(|pair| format!("{}|{}", pair[0], pair[1]));
    let between: Vec<String> = between.collect();
    if !between.is_empty() {
        writer.dims("thresholds", &[("threshold", between)]);
    }
    writer.shown.insert(0, "thresholds".to_owned());
}

fn thresholds_name(writer: &Writer<'_>) -> String {
    match writer.regression.predictors.first().is_some_and(is_centred) {
        true => "thresholds_at_means".to_owned(),
        false => "thresholds".to_owned(),
    }
}

fn vector_of(predictor: &Predictor, link: Link) -> String {
    match (predictor.parameter.as_str(), link) {
        ("mu", Link::Identity) => "mu".to_owned(),
        ("mu", _) => "eta".to_owned(),
        (name, _) => format!("eta_{name}"),
    }
}

/// Returns the lines that compute all predictors and those parameters of the family that depend on predictors.
pub fn parameters(writer: &mut Writer<'_>) -> Vec<String> {
    let regression = writer.regression;
    let mut lines = Vec::new();
    // The parameters of a nonlinear formula come before the function that uses them.
    let (before, others): (Vec<&Predictor>, Vec<&Predictor>) =
        (regression.predictors.iter()).partition(|p| regression.is_of_formula(&p.parameter));
    for predictor in before {
        let name = format!("eta_{}", predictor.parameter);
        lines.extend(sum(writer, predictor, &name));
    }
    for predictor in others {
        if predictor.parameter.starts_with("mu_") {
            let name = category_vector(writer, predictor);
            lines.extend(sum(writer, predictor, &name));
            continue;
        }
        let own = regression
            .family
            .parameters
            .iter()
            .find(|p| p.name == predictor.parameter);
        let link = own.map_or(regression.link, |p| p.link);
        let link = match regression.family.response {
            Response::Ordinal if own.is_none() => Link::Logit,
            _ => link,
        };
        let name = vector_of(predictor, link);
        lines.extend(sum(writer, predictor, &name));
        let needed = own.is_some() || !is_fused(writer);
        if name != predictor.parameter && needed && regression.family.response != Response::Ordinal
        {
            lines.push(format!(
                "vector[N] {} = {};",
                predictor.parameter,
                link.inverse(&name)
            ));
        }
    }
    lines.extend(hazard::lines(writer));
    lines
}

fn category_vector(writer: &mut Writer<'_>, predictor: &Predictor) -> String {
    let category = predictor.parameter.strip_prefix("mu_").unwrap_or("");
    format!("eta_{}", writer.identifier(category))
}

fn is_fused(writer: &Writer<'_>) -> bool {
    let regression = writer.regression;
    regression
        .family
        .fused
        .is_some_and(|(link, _, _)| link == regression.link)
}

fn filled(writer: &mut Writer<'_>, template: &str, one: bool) -> String {
    let regression = writer.regression;
    let row = if one { "[n]" } else { "" };
    let (over, times) = if one { ("/", "*") } else { ("./", ".*") };
    let mut text = template.replace("{/}", over).replace("{*}", times);
    text = text.replace("{trials}", &format!("trials{row}"));
    text = text.replace("{thresholds}", &thresholds_name(writer));
    text = text.replace("{eta}", &format!("eta{row}"));
    if regression.family.has_logits() {
        text = text.replace("{logits}", &format!("[0, {}]'", means(writer)));
    }
    text = text.replace("{means}", &format!("[{}]'", means(writer)));
    text = text.replace("{dec}", &format!("dec{row}"));
    for number in 1..=regression.family.parts.len() {
        let mean = regression.link.inverse(&format!("eta_{number}{row}"));
        text = text.replace(&format!("{{mu{number}}}"), &mean);
    }
    let mu = match (is_fused(writer), one) {
        (true, true) => regression.link.inverse("eta[n]"),
        _ => format!("mu{row}"),
    };
    text = text.replace("{mu}", &mu);
    for parameter in regression.family.parameters {
        let name = parameter.name;
        let by_row = regression.predictors.iter().any(|p| p.parameter == name);
        let mut value = match (regression.fixed.get(name), by_row) {
            (Some(value), _) => format!("{value:?}"),
            (None, true) => format!("{name}{row}"),
            (None, false) => name.to_owned(),
        };
        if name == "sigma" && regression.observed.errors.is_some() {
            value = match regression.observed.with_sigma {
                true => format!("sqrt(square({value}) + square(se{row}))"),
                false => format!("se{row}"),
            };
        }
        text = text.replace(&format!("{{{name}}}"), &value);
    }
    text
}

fn density(writer: &Writer<'_>) -> (&'static str, &'static str) {
    let family = writer.regression.family;
    match family.fused.filter(|_| is_fused(writer)) {
        Some((_, name, arguments)) => (name, arguments),
        None => family.density,
    }
}

/// Returns the statements that compute the log likelihood of row n, including censoring and bounds. In each statement,
/// the value is between `into` and `close`.
fn log_likelihood(writer: &mut Writer<'_>, into: &str, close: &str) -> String {
    let regression = writer.regression;
    let (name, arguments) = density(writer);
    let arguments = filled(writer, arguments, true);
    let kind = if regression.family.is_discrete() {
        "lpmf"
    } else {
        "lpdf"
    };
    let observed = &regression.observed;
    let [lower, upper] = observed.bounds;
    let (plain, plain_arguments) = regression.family.density;
    let plain_arguments = filled(writer, plain_arguments, true);
    // For integers, P(Y < bound) is the distribution function at bound − 1.
    let before = |bound: f64| {
        if regression.family.is_discrete() {
            bound - 1.0
        } else {
            bound
        }
    };
    let whole = |x: f64| {
        if regression.family.is_discrete() {
            format!("{x}")
        } else {
            format!("{x:?}")
        }
    };
    let within = match (lower, upper) {
        (None, None) => String::new(),
        (Some(l), None) => format!(" - {plain}_lccdf({} | {plain_arguments})", whole(before(l))),
        (None, Some(u)) => format!(" - {plain}_lcdf({} | {plain_arguments})", whole(u)),
        (Some(l), Some(u)) => format!(
            " - log_diff_exp({plain}_lcdf({} | {plain_arguments}), {plain}_lcdf({} | {plain_arguments}))",
            whole(u),
            whole(before(l))
        ),
    };
    let exact = format!("{name}_{kind}(y[n] | {arguments}){within}");
    if observed.censored.is_none() {
        return format!("{into}{exact}{close};");
    }
    format!(
        "if (censored[n] == 0) {{\n  {into}{exact}{close};\n}} else if (censored[n] == 1) {{\n  {into}{plain}_lccdf(y[n] | {plain_arguments}){within}{close};\n}} else {{\n  {into}{plain}_lcdf(y[n] | {plain_arguments}){within}{close};\n}}"
    )
}

fn means(writer: &mut Writer<'_>) -> String {
    let regression = writer.regression;
    let rest: Vec<String> = (regression.predictors.iter())
        .filter(|predictor| predictor.parameter.starts_with("mu_"))
        .map(|predictor| format!("{}[n]", category_vector(writer, predictor)))
        .collect();
    rest.join(", ")
}

fn statement(writer: &mut Writer<'_>) -> Vec<String> {
    let regression = writer.regression;
    let observed = &regression.observed;
    let family = regression.family;
    let is_plain = observed.weights.is_none()
        && observed.censored.is_none()
        && observed.bounds == [None, None];
    if is_plain && family.is_plain() && !family.has_columns() && !family.has_logits() {
        let (name, arguments) = density(writer);
        return vec![format!("y ~ {name}({});", filled(writer, arguments, false))];
    }
    let inner = match observed.weights {
        Some(_) => log_likelihood(writer, "target += weights[n] * (", ")"),
        None => log_likelihood(writer, "target += ", ""),
    };
    let mut lines = vec!["for (n in 1 : N) {".to_owned()];
    lines.extend(inner.lines().map(|line| format!("  {line}")));
    lines.push("}".to_owned());
    lines
}

/// Returns an expression that draws a replicated response for row n.
pub fn replicate(writer: &mut Writer<'_>) -> String {
    let regression = writer.regression;
    let (name, arguments) = match regression.family.response {
        Response::Ordinal => density(writer),
        _ => regression.family.density,
    };
    // The boundary that the diffusion reaches is also random.
    let arguments = filled(writer, &arguments.replace("{dec}, ", ""), true);
    match regression.family.response {
        Response::Counts => format!("{name}_rng({arguments}, trials[n])"),
        _ => format!("{name}_rng({arguments})"),
    }
}

/// Returns the expression for the expected response in row n. Returns `None` for categories and for several responses.
pub fn expected(writer: &mut Writer<'_>) -> Option<String> {
    let family = writer.regression.family;
    match family.has_categories() || family.has_columns() {
        true => None,
        false => Some(filled(writer, writer.regression.family.mean, true)),
    }
}

/// Returns the lines that compute the means of several responses in row n, or the probabilities of the categories. For
/// ordered categories, the probabilities come from the density.
pub fn categories(writer: &mut Writer<'_>) -> String {
    let means = means(writer);
    match writer.regression.family.response {
        Response::Several => return format!("expected[n] = [{means}];"),
        _ if writer.regression.family.has_logits() => {
            return format!("expected[n] = softmax([0, {means}]')';");
        }
        _ => {}
    }
    let (name, arguments) = density(writer);
    let arguments = filled(writer, arguments, true);
    format!("for (c in 1 : C) {{\n  expected[n, c] = exp({name}_lpmf(c | {arguments}));\n}}")
}

/// Returns the declaration of the replicates.
pub fn replicates(writer: &Writer<'_>, name: &str) -> String {
    match writer.regression.family.response {
        Response::Counts => format!("array[N, C] int {name};"),
        Response::Shares | Response::Several => format!("array[N] vector[C] {name};"),
        _ if writer.regression.family.is_discrete() => format!("array[N] int {name};"),
        _ => format!("vector[N] {name};"),
    }
}

fn generated(writer: &mut Writer<'_>) {
    let regression = writer.regression;
    if regression.request.prior_only && !regression.pointwise() {
        return;
    }
    let pointwise = regression.pointwise();
    let observed = &regression.observed;
    let with_likelihood = pointwise && !regression.request.prior_only;
    let r2 = expected(writer).filter(|_| {
        observed.censored.is_none()
            && observed.bounds == [None, None]
            && !regression.request.prior_only
            && regression.family.has_replicates()
            && (pointwise || regression.rows.len() <= EXPLAINED)
    });
    if !pointwise && r2.is_none() {
        return;
    }
    if r2.is_some() {
        writer.line(Block::Generated, "real R2; // share of the variance that is explained (Gelman, Goodrich, Gabry and Vehtari 2019)");
        writer.shown.push("R2".to_owned());
    }
    let mut row = Vec::new();
    if with_likelihood {
        writer.line(
            Block::Generated,
            "vector[N] log_lik; // of each row, for leave-one-out",
        );
        row.push(log_likelihood(writer, "log_lik[n] = ", ""));
        writer.dims_of_rows("log_lik");
    }
    if pointwise && regression.family.has_replicates() {
        let declared = replicates(writer, "y_rep");
        writer.line(
            Block::Generated,
            format!("{declared} // a replicate of each row"),
        );
        row.push(format!("y_rep[n] = {};", replicate(writer)));
        writer.dims_of_responses("y_rep");
    }
    if let Some(mean) = &r2 {
        row.push(format!("expected[n] = {mean};"));
    }
    let mut body = String::from("{\n");
    for line in parameters(writer) {
        body += &format!("  {line}\n");
    }
    if r2.is_some() {
        body += "  vector[N] expected;\n";
    }
    body += "  for (n in 1 : N) {\n";
    for line in row.iter().flat_map(|text| text.lines()) {
        body += &format!("    {line}\n");
    }
    body += "  }\n";
    if r2.is_some() {
        let y = if regression.family.is_discrete() {
            "to_vector(y)"
        } else {
            "y"
        };
        body += &format!(
            "  R2 = variance(expected) / (variance(expected) + variance({y} - expected));\n"
        );
    }
    body += "}";
    writer.line(Block::Generated, body);
}

impl Writer<'_> {
    /// Labels the elements of a variable that has one value per row.
    pub fn dims_of_rows(&mut self, variable: &str) {
        self.coordinates
            .dims
            .insert(variable.to_owned(), vec![Some("row".to_owned())]);
        let rows = self
            .regression
            .rows
            .iter()
            .map(|row| *row as i64 + 1)
            .collect();
        self.label("row", Labels::Whole(rows));
    }

    /// Labels the elements of a variable that has one response per row.
    pub fn dims_of_responses(&mut self, variable: &str) {
        self.dims_of_rows(variable);
        if self.regression.family.has_columns() {
            let dimension = self.regression.family.dimension();
            let dims = ["row", dimension].map(|name| Some(name.to_owned()));
            let (variable, dims) = (variable.to_owned(), dims.to_vec());
            self.coordinates.dims.insert(variable, dims);
            let categories = self.regression.observed.categories.clone();
            self.label(dimension, Labels::Words(categories));
        }
    }
}
