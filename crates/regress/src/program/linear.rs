//! Writes the declarations, priors and sums of linear predictors.

use super::coefficients::coefficients;
use super::curves::{monotonic, processes, smooths};
use super::fields::field;
use super::groups::{group, joint, members};
use super::series::{lagged, series};
use super::{Block, Writer, computed, residuals, unknown};
use crate::basis::{mean, spread};
use crate::error::Result;
use crate::family::Response;
use crate::predictor::{IMPUTED, Predictor};

/// Returns the suffix of the names of a predictor's parameters. It is empty for the mean.
pub fn suffix(writer: &mut Writer<'_>, predictor: &Predictor) -> String {
    match predictor.parameter.as_str() {
        "mu" => String::new(),
        name => match name.strip_prefix("mu_") {
            // The parameter is the linear predictor of a category.
            Some(category) => format!("_{}", writer.identifier(category)),
            None => match name.strip_prefix(IMPUTED) {
                Some(column) => format!("_{}", writer.identifier(column)),
                None => format!("_{name}"),
            },
        },
    }
}

/// Returns the unit of a predictor's coefficients. It is the standard deviation of the response, the standard deviation
/// of the imputed column, or 1.
pub fn unit(writer: &mut Writer<'_>, predictor: &Predictor) -> String {
    match predictor.parameter.strip_prefix(IMPUTED) {
        Some(column) => format!("spread_{}", writer.identifier(column)),
        None if writer.regression.family.is_mean(&predictor.parameter) && has_unit(writer) => {
            of_response(writer, predictor, "y_sd")
        }
        None => "1".to_owned(),
    }
}

fn of_response(writer: &Writer<'_>, predictor: &Predictor, name: &str) -> String {
    let categories = writer.regression.observed.categories.iter();
    let own = predictor.parameter.strip_prefix("mu_");
    let place = categories
        .zip(1..)
        .find(|(category, _)| Some(category.as_str()) == own)
        .map(|(_, at)| at);
    match (writer.regression.family.response, place) {
        (Response::Several, Some(at)) => format!("{name}[{at}]"),
        _ => name.to_owned(),
    }
}

/// Returns whether the mean has the units of the response.
pub fn has_unit(writer: &Writer<'_>) -> bool {
    let regression = writer.regression;
    let numbers = matches!(
        regression.family.response,
        Response::Real
            | Response::Positive
            | Response::NotNegative
            | Response::Count
            | Response::Several
    );
    // The drift of a diffusion is not measured in the units of the response.
    let drift = regression.family.name == "wiener";
    regression.link == crate::family::Link::Identity
        && numbers
        && !drift
        && !regression.family.is_of_logs()
}

/// Returns the product of `by` and a unit, in Stan syntax.
pub fn times(by: &str, unit: &str) -> String {
    match (by, unit) {
        (by, "1") => by.to_owned(),
        (by, unit) => format!("{by} * {unit}"),
    }
}

/// Declares all predictors and their priors.
pub fn declare(writer: &mut Writer<'_>) -> Result<()> {
    let regression = writer.regression;
    let (location, scale) = regression.location_and_scale();
    if regression.family.response == Response::Several {
        residuals::units(writer);
    } else if !regression.family.has_categories() {
        writer.real(
            "y_mean",
            "",
            location,
            "mean of the response, on the scale of the predictor",
        );
        if has_unit(writer) || has_scale_parameters(writer) {
            writer.real(
                "y_sd",
                "<lower=0>",
                scale,
                "standard deviation of the response",
            );
        }
    }
    unknown::columns(writer);
    for predictor in regression.predictors.iter().chain(&regression.imputed) {
        fixed(writer, predictor)?;
        unknown::effects(writer, predictor);
        monotonic(writer, predictor);
        for groups in &predictor.groups {
            group(writer, predictor, groups);
        }
        smooths(writer, predictor);
        processes(writer, predictor);
        field(writer, predictor);
        series(writer, predictor);
    }
    joint(writer);
    Ok(())
}

fn has_scale_parameters(writer: &Writer<'_>) -> bool {
    writer
        .regression
        .family
        .parameters
        .iter()
        .any(|p| p.prior.is_empty())
}

/// Writes a prior and records it under its name in reports. `usual` is the default prior. Returns whether the user
/// specified a prior.
pub fn prior(writer: &mut Writer<'_>, names: &[&str], stan: &str, usual: &str) -> bool {
    let given = writer.priors.find(names);
    let is_given = given.is_some();
    let density = given.map_or_else(|| usual.to_owned(), |given| given.density());
    writer.priors.note(names[0], density.clone(), is_given);
    writer.prior(stan, &density);
    is_given
}

fn fixed(writer: &mut Writer<'_>, predictor: &Predictor) -> Result<()> {
    let s = suffix(writer, predictor);
    let unit = &unit(writer, predictor);
    let of_mean = writer.regression.family.is_mean(&predictor.parameter);
    let ordinal = writer.regression.family.response == Response::Ordinal && of_mean;
    let names = &predictor.design.names;
    let columns = &predictor.design.columns;
    let rows = writer.regression.rows.len();
    let has_columns = !names.is_empty();
    if has_columns || predictor.intercept {
        let what = if has_columns {
            "coefficients"
        } else {
            "intercept"
        };
        writer.line(
            Block::Model,
            format!("// {what} of {}", predictor.parameter),
        );
    }
    if let Some(calculation) = &predictor.computed {
        computed::columns(writer, calculation)?;
    }
    computed::check_priors(writer, predictor)?;
    if let Some(offset) = &predictor.offset {
        writer.vector(
            &format!("offsets{s}"),
            "vector[N]",
            offset.clone(),
            "added as it is",
        );
    }
    if has_columns {
        let k = format!("K{s}");
        writer.int(&k, "", names.len(), "columns");
        writer.matrix(
            &format!("X{s}"),
            &format!("matrix[N, {k}]"),
            columns,
            rows,
            &names.join(", "),
        );
        let means = columns
            .iter()
            .map(|x| if predictor.intercept { mean(x) } else { 0.0 });
        writer.vector(
            &format!("X_mean{s}"),
            &format!("vector[{k}]"),
            means.collect(),
            "means of the columns, where there is an intercept",
        );
        let sds = columns.iter().map(|x| spread(x));
        writer.vector(
            &format!("X_sd{s}"),
            &format!("vector<lower=0>[{k}]"),
            sds.collect(),
            "their standard deviations",
        );
        let about = match predictor.intercept {
            true => format!("X{s} - rep_matrix(X_mean{s}', N)"),
            false => format!("X{s}"),
        };
        writer.line(
            Block::Known,
            format!("matrix[N, {k}] Xc{s} = {about}; // columns about their means"),
        );
    }
    if predictor.intercept && !ordinal {
        intercept(writer, predictor, &s, unit);
    }
    if has_columns {
        coefficients(writer, names, &s, unit, of_mean);
    }
    if predictor.intercept
        && !ordinal
        && let Some(shift) = shift(writer, predictor)
    {
        let line = format!("real Intercept{s} = Intercept_at_means{s} - {shift};");
        writer.line(Block::Derived, line);
    }
    Ok(())
}

fn intercept(writer: &mut Writer<'_>, predictor: &Predictor, s: &str, unit: &str) {
    let has_columns = is_centred(predictor);
    let imputed = predictor.parameter.starts_with(IMPUTED);
    let of_mean = writer.regression.family.is_mean(&predictor.parameter) || imputed;
    // If a parameter has no units, its initial value is chosen so that a mean equals the mean of the response and a
    // scale equals the response's standard deviation.
    let of_scale = writer.regression.family.parameters.iter();
    let of_scale = of_scale
        .clone()
        .any(|p| p.name == predictor.parameter && p.prior.is_empty());
    let location = match (of_mean, of_scale) {
        _ if imputed => &format!("middle{s}"),
        (true, _) => &of_response(writer, predictor, "y_mean"),
        (false, true) => "log(y_sd)",
        (false, false) => "0",
    };
    let bounds = match unit {
        "1" => format!("<offset={location}>"),
        unit => format!("<offset={location}, multiplier={unit}>"),
    };
    let bounds = if location == "0" && unit == "1" {
        String::new()
    } else {
        bounds
    };
    let shown = format!("Intercept{s}");
    let name = if has_columns {
        format!("Intercept_at_means{s}")
    } else {
        shown.clone()
    };
    let comment = if has_columns {
        " // at the means of the columns"
    } else {
        ""
    };
    match writer.regression.family.is_of_twins() && of_mean {
        true => ordered(writer, predictor, &name, unit),
        false => writer.line(Block::Parameters, format!("real{bounds} {name};{comment}")),
    }
    let usual = match of_mean {
        true => format!("normal({location}, {})", times("2.5", unit)),
        false => format!("student_t(3, {location}, 2.5)"),
    };
    prior(writer, &[&shown, "Intercept"], &name, &usual);
    writer.shown.push(shown);
}

/// Writes the intercept of a predictor in a mixture whose two predictors are distinguished only by the order of their
/// intercepts.
fn ordered(writer: &mut Writer<'_>, predictor: &Predictor, name: &str, unit: &str) {
    let place = &predictor.parameter["mu_".len()..];
    if place == "1" {
        writer.line(
            Block::Parameters,
            "ordered[2] Intercepts_std; // the first family has the smaller intercept",
        );
    }
    let value = times(&format!("Intercepts_std[{place}]"), unit);
    writer.line(Block::Derived, format!("real {name} = y_mean + {value};"));
}

/// Returns whether the predictor centres its columns at their means.
pub fn is_centred(predictor: &Predictor) -> bool {
    !(predictor.design.names.is_empty() && predictor.unknown.is_empty())
}

/// Returns the intercept at the means of the columns minus the intercept at zero. Returns `None` if there are no
/// columns.
pub fn shift(writer: &mut Writer<'_>, predictor: &Predictor) -> Option<String> {
    let s = suffix(writer, predictor);
    let mut terms = Vec::new();
    if !predictor.design.names.is_empty() {
        terms.push(format!("dot_product(X_mean{s}, b{s})"));
    }
    for (at, term) in predictor.unknown.iter().enumerate() {
        let column = writer.identifier(&term.column);
        terms.push(format!("middle_{column} * bsp{s}[{}]", at + 1));
    }
    (!terms.is_empty()).then(|| terms.join(" - "))
}

/// Declares positive parameters with names such as `sd_g` or `sds`. They are in units of the data if the predictor has
/// units. Returns the unit of the parameters.
pub fn scales(
    writer: &mut Writer<'_>,
    name: &str,
    count: &str,
    labels: &[String],
    units: &[f64],
    unit: &str,
    classes: &[&str],
) -> Option<String> {
    let plain = unit == "1" && units.iter().all(|u| *u == 1.0);
    let any_given = writer.priors.find(&[&[name], classes].concat()).is_some()
        || labels
            .iter()
            .any(|label| writer.priors.find(&[&format!("{name}[{label}]")]).is_some());
    let usual = "student_t(3, 0, 2.5)";
    if plain || any_given {
        writer.line(
            Block::Parameters,
            format!("vector<lower=0>[{count}] {name};"),
        );
        for (at, label) in labels.iter().enumerate() {
            let usual = match unit {
                "1" => format!("student_t(3, 0, {})", 2.5 * units[at]),
                unit => format!("student_t(3, 0, {} * {unit})", 2.5 * units[at]),
            };
            let full = format!("{name}[{label}]");
            let names = [&[full.as_str(), name], classes].concat();
            prior(writer, &names, &format!("{name}[{}]", at + 1), &usual);
        }
        return None;
    }
    writer.vector(
        &format!("{name}_unit"),
        &format!("vector<lower=0>[{count}]"),
        units.to_vec(),
        "inverse standard deviations of their columns",
    );
    writer.line(
        Block::Parameters,
        format!("vector<lower=0>[{count}] {name}_std;"),
    );
    let size = match unit {
        "1" => format!("{name}_unit"),
        unit => format!("({unit} * {name}_unit)"),
    };
    writer.line(
        Block::Derived,
        format!("vector<lower=0>[{count}] {name} = {size} .* {name}_std;"),
    );
    writer.prior(&format!("{name}_std"), usual);
    let of_column = match units.iter().all(|u| *u == 1.0) {
        true => "",
        false => " / sd of the column",
    };
    let shown = format!("student_t(3, 0, {}{of_column}), half", times("2.5", unit));
    writer.priors.note(name, shown, false);
    Some(size)
}

/// Returns the lines that accumulate the terms of a predictor in the vector `name`.
pub fn sum(writer: &mut Writer<'_>, predictor: &Predictor, name: &str) -> Vec<String> {
    let s = suffix(writer, predictor);
    let ordinal =
        writer.regression.family.response == Response::Ordinal && predictor.parameter == "mu";
    let has_columns = !predictor.design.names.is_empty();
    let mut terms = Vec::new();
    if let Some(calculation) = &predictor.computed {
        terms.extend(computed::calculated(writer, calculation));
    }
    let at_means = if is_centred(predictor) {
        "_at_means"
    } else {
        ""
    };
    match (predictor.intercept && !ordinal, has_columns) {
        (true, true) => terms.push(format!("Intercept{at_means}{s} + Xc{s} * b{s}")),
        (true, false) => terms.push(format!("rep_vector(Intercept{at_means}{s}, N)")),
        (false, true) => terms.push(format!("Xc{s} * b{s}")),
        (false, false) => {}
    }
    for (at, term) in predictor.unknown.iter().enumerate() {
        let column = writer.identifier(&term.column);
        let about = if predictor.intercept {
            format!("(full_{column} - middle_{column})")
        } else {
            format!("full_{column}")
        };
        terms.push(format!("bsp{s}[{}] * {about}", at + 1));
    }
    if predictor.offset.is_some() {
        terms.push(format!("offsets{s}"));
    }
    for groups in &predictor.groups {
        let own = writer.identifier(&groups.name);
        let g = format!("{s}_{own}");
        let m = groups.design.names.len();
        let r = if groups.new_levels.is_empty() {
            "r"
        } else {
            "all"
        };
        let effects = groups.design.names.iter().enumerate();
        let effects = effects.flat_map(|(at, effect)| {
            let (r, g) = (r, g.as_str());
            members(groups, &own)
                .into_iter()
                .map(move |(index, weights)| {
                    let value = match m {
                        1 => format!("{r}{g}[{index}]"),
                        _ => format!("{r}{g}[{index}, {}]", at + 1),
                    };
                    let value = match weights {
                        Some(weights) => format!("{weights} .* {value}"),
                        None => value,
                    };
                    match effect.as_str() {
                        "(Intercept)" => value,
                        _ => format!("{value} .* Z{g}[ : , {}]", at + 1),
                    }
                })
        });
        terms.push(effects.collect::<Vec<_>>().join(" + "));
    }
    for at in 1..=predictor.smooths.len() {
        terms.push(format!("Zs{s}_{at} * s{s}_{at}"));
    }
    for at in 1..=predictor.processes.len() {
        terms.push(format!("Phi{s}_{at} * gp{s}_{at}"));
    }
    for at in 1..=predictor.monotonic.len() {
        let own = format!("{s}_{at}");
        terms.push(format!(
            "(bmo{s}[{at}] * C{own} * append_row(0, cumulative_sum(simo{own})))[mo{own}]"
        ));
    }
    if predictor.field.is_some() {
        terms.push(format!("rcar{s}[i_car{s}]"));
    }
    if terms.is_empty() {
        terms.push("rep_vector(0, N)".to_owned());
    }
    let mut lines = vec![format!("vector[N] {name} = {};", terms.remove(0))];
    lines.extend(terms.iter().map(|term| format!("{name} += {term};")));
    lines.extend(lagged(writer, predictor, name));
    lines
}
