//! The formulas of a request, and the rows in which they can be evaluated.

use std::collections::BTreeMap;

use crate::error::{Error, Result, Span};
use crate::family::{Family, Link};
use crate::formula::{Formula, Terms};
use crate::frame::Frame;
use crate::regression::Request;
use crate::syntax::{Expr, Kind};

/// Returns the family that the request names, and its link. Several gaussian responses use the family `multi_normal`.
///
/// # Errors
/// Fails if the family does not exist, or if it does not support the link.
pub fn family(request: &Request) -> Result<(&'static Family, Link)> {
    let (family, link) = Family::parse(request.family.as_deref().unwrap_or("gaussian"))?;
    let several = request.formulas.first().and_then(|text| {
        let formula = Formula::parse(text).ok()?;
        Some(formula.response.value.function() == Some("mvbind"))
    });
    if several == Some(true) && family.name == "gaussian" && link == Link::Identity {
        return Family::parse("multi_normal");
    }
    Ok((family, link))
}

/// The parsed formulas of a request.
pub struct Formulas {
    /// The formula of the mean.
    pub mean: Formula,
    /// The formulas of other parameters, each with the name of its parameter.
    pub others: Vec<(String, Formula)>,
    /// The names of the imputed columns, each with the formula for its mean, such as `x | mi() ~ z`.
    pub imputed: Vec<(String, Formula)>,
    /// Fixed values of parameters, keyed by parameter name.
    pub fixed: BTreeMap<String, f64>,
}

impl Formulas {
    /// Parses all formulas of a request.
    ///
    /// # Errors
    /// Fails if a formula is invalid, or if the family does not have a parameter that a formula names.
    pub fn parse(request: &Request, family: &Family) -> Result<Self> {
        let Some(first) = request.formulas.first() else {
            return Err(Error::new("there is no formula").help("write a formula such as `y ~ x`"));
        };
        let mut made = Self {
            mean: Formula::parse(first)?,
            others: Vec::new(),
            imputed: Vec::new(),
            fixed: BTreeMap::new(),
        };
        let names: Vec<&str> = family.parameters.iter().map(|p| p.name).collect();
        for parameter in family.parameters {
            if let Some(value) = parameter.fixed {
                made.fixed.insert(parameter.name.to_owned(), value);
            }
        }
        for text in &request.formulas[1..] {
            let (name, span) = match text.split_once('=').filter(|_| !text.contains('~')) {
                Some((name, value)) => {
                    let span = Span {
                        start: 0,
                        end: name.trim_end().len(),
                    };
                    let name = name.trim().to_owned();
                    let Ok(value) = value.trim().parse() else {
                        return Err(Error::at(
                            text,
                            Span {
                                start: 0,
                                end: text.len(),
                            },
                            "a fixed parameter must be a number",
                        )
                        .help("write nu = 4, or a formula such as nu ~ x"));
                    };
                    made.fixed.insert(name.clone(), value);
                    (name, span)
                }
                None => {
                    let formula = Formula::parse(text)?;
                    let left = &formula.response.value;
                    if let [
                        Expr {
                            kind: Kind::Call(mi, none),
                            ..
                        },
                    ] = formula.response.additions.as_slice()
                        && mi == "mi"
                        && none.is_empty()
                    {
                        made.imputed.push((left.to_string(), formula));
                        continue;
                    }
                    let Kind::Name(name) = &left.kind else {
                        return Err(Error::at(
                            text,
                            left.span,
                            "the left side of `~` must be a parameter of the family",
                        )
                        .help("write several responses as mvbind(a, b), and the formula of an imputed column \
                               as 'column | mi() ~ …'"));
                    };
                    let found = (name.clone(), left.span);
                    made.fixed.remove(name);
                    made.others.push((name.clone(), formula));
                    found
                }
            };
            let has_formula = made.others.iter().any(|(other, _)| *other == name);
            if !names.contains(&name.as_str()) && has_formula && made.mean.mentions(&name) {
                let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric());
                if !is_plain {
                    return Err(Error::at(
                        text,
                        span,
                        format!("`{name}` cannot be the name of a parameter"),
                    )
                    .help("names of parameters in a formula consist of letters and digits"));
                }
                made.mean.parameters.push(name);
            } else if !names.contains(&name.as_str()) {
                let error = Error::at(
                    text,
                    span,
                    format!("the family {} has no parameter `{name}`", family.name),
                );
                return Err(error.help(match names.as_slice() {
                    [] => "it has only a mean".to_owned(),
                    names => format!("it has {}", names.join(", ")),
                }));
            }
        }
        Ok(made)
    }

    /// Iterates over all formulas of the request.
    pub fn all(&self) -> impl Iterator<Item = &Formula> {
        let others = self.others.iter().chain(&self.imputed);
        std::iter::once(&self.mean).chain(others.map(|(_, formula)| formula))
    }
}

/// Returns the columns that `.` stands for on the right-hand side of a formula. These are all columns that do not occur
/// on its left-hand side.
pub fn others(formula: &Formula, frame: &Frame) -> Vec<String> {
    let mut left = Vec::new();
    formula.response.value.columns(&mut left);
    formula
        .response
        .additions
        .iter()
        .for_each(|a| a.columns(&mut left));
    let named = |name: &&String| !left.iter().any(|(other, _)| other == *name);
    frame.names().iter().filter(named).cloned().collect()
}

/// Collects every column that must have a value in each row, together with its location in the text. During a fit,
/// values of imputed columns may be missing. For new rows, the standard errors of measurements are not needed.
pub fn columns(terms: &Terms, fitting: bool, found: &mut Vec<(String, Span)>) {
    let computed = terms.computed.iter().flat_map(|computed| &computed.columns);
    let exprs = terms.variables.iter().chain(&terms.offsets).chain(computed);
    exprs.for_each(|expr| expr.columns(found));
    for call in &terms.special {
        if let Kind::Call(_, arguments) = &call.kind {
            let name = call.function();
            let data = arguments
                .iter()
                .enumerate()
                .filter(|(at, a)| match a.name.as_deref() {
                    None if fitting => name != Some("mi"),
                    None => name != Some("me") || *at == 0,
                    Some(name) => matches!(name, "by" | "time" | "gr"),
                });
            // The residuals of new rows and of the rows before them are unknown, so new rows need no times.
            let data = data.filter(|_| fitting || name != Some("ar"));
            data.for_each(|(_, a)| a.value.columns(found));
        }
    }
    for group in &terms.groups {
        columns(&group.terms, fitting, found);
        group
            .factors
            .iter()
            .for_each(|factor| factor.columns(found));
    }
}

/// The indices of the rows in which all named columns have values, and the number of missing values in each column.
pub type Complete = (Vec<usize>, Vec<(String, usize)>);

/// Finds the rows in which all columns in `named` have values.
///
/// # Errors
/// Fails if a column does not exist.
pub fn complete(frame: &Frame, named: &[(String, Span)], text: &str) -> Result<Complete> {
    let mut keep = vec![true; frame.rows()];
    let mut missing: Vec<(String, usize)> = Vec::new();
    for (name, span) in named {
        if missing.iter().any(|(known, _)| known == name) {
            continue;
        }
        let Some(column) = frame.column(name) else {
            return Err(frame.unknown(name).or_at(text, *span));
        };
        let gaps = (0..frame.rows()).filter(|row| column.is_missing(*row));
        let mut count = 0;
        for row in gaps {
            keep[row] = false;
            count += 1;
        }
        missing.push((name.clone(), count));
    }
    missing.retain(|(_, count)| *count > 0);
    let rows = (0..frame.rows()).filter(|row| keep[*row]).collect();
    Ok((rows, missing))
}
