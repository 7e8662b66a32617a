//! Writes nonlinear formulas. They are functions of columns and of parameters that have their own formulas.

use super::Writer;
use crate::error::{Error, Result, Span};
use crate::predictor::{Calculation, Predictor};
use crate::syntax::{Expr, Kind, is_constant};

const FUNCTIONS: [(&str, &str); 22] = [
    ("exp", "exp"),
    ("log", "log"),
    ("log2", "log2"),
    ("log10", "log10"),
    ("log1p", "log1p"),
    ("expm1", "expm1"),
    ("sqrt", "sqrt"),
    ("abs", "abs"),
    ("sin", "sin"),
    ("cos", "cos"),
    ("tan", "tan"),
    ("atan", "atan"),
    ("sinh", "sinh"),
    ("cosh", "cosh"),
    ("tanh", "tanh"),
    ("gamma", "tgamma"),
    ("lgamma", "lgamma"),
    ("plogis", "inv_logit"),
    ("inv_logit", "inv_logit"),
    ("qlogis", "logit"),
    ("logit", "logit"),
    ("pnorm", "Phi"),
];

/// Declares the columns of a formula, and checks that its functions and operators are supported.
///
/// # Errors
/// Fails if the formula calls an unknown function, or if it contains an operator that does not apply to numbers.
pub fn columns(writer: &mut Writer<'_>, calculation: &Calculation) -> Result<()> {
    for (name, values) in &calculation.columns {
        let column = column(writer, name);
        writer.vector(&column, "vector[N]", values.clone(), name);
    }
    stan(writer, calculation, &calculation.value)?;
    Ok(())
}

/// Checks that every parameter of a nonlinear formula has a prior. The prior is required because the data do not
/// determine a default scale.
///
/// # Errors
/// Fails if a parameter has no prior.
pub fn check_priors(writer: &mut Writer<'_>, predictor: &Predictor) -> Result<()> {
    let name = &predictor.parameter;
    if writer.predicting || !writer.regression.is_of_formula(name) || name.starts_with("mi_") {
        return Ok(());
    }
    let (intercept, b) = (format!("Intercept_{name}"), format!("b_{name}"));
    let mut wanted: Vec<Vec<String>> = Vec::new();
    if predictor.intercept {
        wanted.push(vec![intercept.clone(), "Intercept".to_owned()]);
    }
    for column in &predictor.design.names {
        wanted.push(vec![format!("{b}[{column}]"), b.clone(), "b".to_owned()]);
    }
    for names in wanted {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let given = writer.priors.find(&names).is_some();
        if given || writer.priors.shrinkage(&names).is_some() {
            continue;
        }
        let formulas = &writer.regression.request.formulas;
        let left = |text: &&String| {
            text.split_once('~')
                .is_some_and(|(left, _)| left.trim() == name)
        };
        let text = formulas.iter().find(left).cloned().unwrap_or_default();
        let start = text.len() - text.trim_start().len();
        let span = Span {
            start,
            end: start + name.len(),
        };
        return Err(Error::at(
            &text,
            span,
            format!("the parameter `{name}` has no prior for {}", names[0]),
        )
        .help(format!(
            "the data do not determine its scale: add a prior such as --prior '{} ~ normal(0, 1)'",
            names[0]
        )));
    }
    Ok(())
}

/// Returns the function in Stan syntax.
pub fn calculated(writer: &mut Writer<'_>, calculation: &Calculation) -> Option<String> {
    let (text, is_vector) = stan(writer, calculation, &calculation.value).ok()?;
    Some(match is_vector {
        true => text,
        false => format!("rep_vector({text}, N)"),
    })
}

fn column(writer: &mut Writer<'_>, name: &str) -> String {
    format!("x_{}", writer.identifier(name))
}

/// Returns an expression in Stan syntax, and whether its value differs between rows.
fn stan(writer: &mut Writer<'_>, calculation: &Calculation, expr: &Expr) -> Result<(String, bool)> {
    let error = |message: String| Error::at(&calculation.text, expr.span, message);
    Ok(match &expr.kind {
        Kind::Number(x) => (format!("{x}"), false),
        Kind::Name(name) if name == "pi" => ("pi()".to_owned(), false),
        Kind::Name(name) if is_constant(name) => {
            return Err(error(format!("{name} is not a number")));
        }
        Kind::Name(name) => match calculation.columns.iter().any(|(other, _)| other == name) {
            true => (column(writer, name), true),
            false => (format!("eta_{name}"), true),
        },
        Kind::Group(inner) => {
            let (text, is_vector) = stan(writer, calculation, inner)?;
            (format!("({text})"), is_vector)
        }
        Kind::Unary("-", inner) => {
            let (text, is_vector) = stan(writer, calculation, inner)?;
            (format!("-{text}"), is_vector)
        }
        Kind::Binary(sign @ ("+" | "-" | "*" | "/" | "^"), left, right) => {
            let (a, left) = stan(writer, calculation, left)?;
            let (b, right) = stan(writer, calculation, right)?;
            let sign = match (*sign, left, right) {
                ("*", true, true) => ".*",
                ("/", _, true) => "./",
                ("^", false, false) => "^",
                ("^", ..) => ".^",
                (sign, ..) => sign,
            };
            (format!("{a} {sign} {b}"), left || right)
        }
        Kind::Call(name, arguments) => {
            let known = FUNCTIONS.iter().find(|(known, _)| known == name);
            let (Some((_, function)), [argument]) = (known, arguments.as_slice()) else {
                let names = FUNCTIONS.iter().map(|(known, _)| *known);
                return Err(error(format!(
                    "a nonlinear formula cannot use {name}() of {}",
                    match arguments.len() {
                        1 => "one argument".to_owned(),
                        n => format!("{n} arguments"),
                    }
                ))
                .help(format!(
                    "it can use + - * / ^ and {}; write terms such as (1 | g) and s(x) in the formulas of its \
                     parameters",
                    names.collect::<Vec<_>>().join(", ")
                )));
            };
            let (text, is_vector) = stan(writer, calculation, &argument.value)?;
            (format!("{function}({text})"), is_vector)
        }
        _ => {
            return Err(error("this is not a number".to_owned()).help(
                "a formula with parameters can use only + - * / ^ and functions such as exp()",
            ));
        }
    })
}
