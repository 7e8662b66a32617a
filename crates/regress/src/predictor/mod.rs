//! The linear predictor of one parameter over the rows of a frame. It consists of columns, groups, smooths and other
//! terms.

mod curves;
mod field;
mod groups;
mod series;
mod unknown;

use serde::{Deserialize, Serialize};

use crate::design::{Contrasts, Design, design};
use crate::error::{Error, Result};
use crate::evaluate::Evaluator;
use crate::formula::Terms;
use crate::smooth::{Product, Smooth};
use crate::syntax::{Argument, Expr, Kind};

pub use field::{Field, FieldKind, FieldState};
pub use series::Series;
pub use unknown::{Unknown, UnknownTerm};

/// The state that a fit stores. With it, predictions for new rows use the same columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Learnt {
    /// The states of function calls and of columns of words.
    pub states: crate::evaluate::States,
    /// The levels of each grouping, keyed by the name of the grouping.
    pub groups: std::collections::BTreeMap<String, Vec<String>>,
    /// The smooths, keyed by parameter and call. All levels of a `by` factor share one smooth.
    pub smooths: std::collections::BTreeMap<String, SmoothState>,
    /// The maps, keyed by file name.
    pub fields: std::collections::BTreeMap<String, FieldState>,
}

/// The state of a smooth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SmoothState {
    /// A smooth of one column.
    One(Smooth),
    /// A smooth of two columns.
    Two(Product),
    /// A Gaussian process. The numbers are the centre of its column and half of the column's range.
    Process([f64; 2]),
    /// A monotonic effect, given by its number of steps.
    Steps(usize),
}

/// Group effects, evaluated over the rows.
#[derive(Clone, Debug)]
pub struct Groups {
    /// The grouping as the formula writes it.
    pub name: String,
    /// The levels that occur in the fit.
    pub levels: Vec<String>,
    /// The levels that occur in these rows but not in the fit.
    pub new_levels: Vec<String>,
    /// The level of each row. With multiple membership, each row has several levels.
    pub members: Vec<Member>,
    /// The columns whose effects vary between groups.
    pub design: Design,
    /// The standard deviation of each of these columns. It is 1 for an intercept.
    pub spreads: Vec<f64>,
    /// Whether the effects of a group are correlated.
    pub correlated: bool,
    /// The name that correlated effects of several parameters share.
    pub shared: Option<String>,
}

/// The level to which each row belongs.
#[derive(Clone, Debug)]
pub struct Member {
    /// The index of each row's level, from 0. New levels follow the levels of the fit.
    pub index: Vec<usize>,
    /// The weight of each row's effect, or `None` if all weights are 1.
    pub weights: Option<Vec<f64>>,
}

/// Functions with a common scale. They form the penalised part of a smooth.
#[derive(Clone, Debug)]
pub struct Penalised {
    /// The text of the term in reports.
    pub name: String,
    /// The values of the functions over the rows.
    pub columns: Vec<Vec<f64>>,
}

/// A Gaussian process over one column, approximated by the first eigenfunctions on an interval (Riutort-Mayol, Bürkner,
/// Andersen, Solin and Vehtari, Statistics and Computing 33, 2023).
#[derive(Clone, Debug)]
pub struct Process {
    /// The text of the term in reports.
    pub name: String,
    /// The values of the eigenfunctions over the rows.
    pub columns: Vec<Vec<f64>>,
    /// The square roots of the eigenvalues.
    pub frequencies: Vec<f64>,
}

/// A monotonic effect (Bürkner and Charpentier, British Journal of Mathematical and Statistical Psychology 73, 2020).
#[derive(Clone, Debug)]
pub struct Monotonic {
    /// The text of the term in reports.
    pub name: String,
    /// The number of steps below the level of each row.
    pub steps: Vec<usize>,
    /// The number of steps from the lowest to the highest level.
    pub count: usize,
}

/// The linear predictor of a parameter.
#[derive(Clone, Debug)]
pub struct Predictor {
    /// The name of the parameter.
    pub parameter: String,
    /// Whether the predictor has an intercept.
    pub intercept: bool,
    /// The columns of the linear predictor, without the intercept.
    pub design: Design,
    /// The group effects of the linear predictor.
    pub groups: Vec<Groups>,
    /// The sum of the offsets.
    pub offset: Option<Vec<f64>>,
    /// The penalised parts of smooths.
    pub smooths: Vec<Penalised>,
    /// Gaussian processes.
    pub processes: Vec<Process>,
    /// Monotonic effects.
    pub monotonic: Vec<Monotonic>,
    /// The effects of columns with unknown values, which the terms `me()` and `mi()` define.
    pub unknown: Vec<UnknownTerm>,
    /// An autoregression of the residuals. Rows without a response have no residual.
    pub series: Option<Series>,
    /// A Markov field over a map.
    pub field: Option<Field>,
    /// A function that replaces the sum of terms. Its arguments are columns, and parameters that have their own
    /// predictors.
    pub computed: Option<Calculation>,
}

/// A function of columns and of parameters, evaluated over the rows.
#[derive(Clone, Debug)]
pub struct Calculation {
    /// The function.
    pub value: Expr,
    /// The text of the formula.
    pub text: String,
    /// The columns that the function uses, each with its name.
    pub columns: Vec<(String, Vec<f64>)>,
}

/// The prefix that marks the parameter of an imputed column. The formula of such a column is `column | mi() ~ …`.
pub const IMPUTED: &str = "mi_";

/// The half-width of the interval on which the eigenfunctions are defined, in units of half the column's range. It
/// suffices for length scales up to the range (Riutort-Mayol et al., equation 20).
pub const BOUNDARY: f64 = 1.5;

/// Builds predictors from terms.
pub struct Maker<'a, 'b> {
    /// The evaluator of expressions over the rows.
    pub evaluator: Evaluator<'b>,
    /// The levels of groupings, keyed by the name of the grouping.
    pub groups: &'a mut std::collections::BTreeMap<String, Vec<String>>,
    /// The smooths, keyed by parameter and call.
    pub smooths: &'a mut std::collections::BTreeMap<String, SmoothState>,
    /// The maps, keyed by file name.
    pub fields: &'a mut std::collections::BTreeMap<String, FieldState>,
    /// The columns with unknown values in any predictor.
    pub unknowns: &'a mut Vec<Unknown>,
    /// The coding of factors if their mean is already in the model.
    pub contrasts: Contrasts,
}

impl Maker<'_, '_> {
    fn error(&self, expr: &Expr, message: impl Into<String>) -> Error {
        Error::at(self.evaluator.text, expr.span, message)
    }

    /// Builds the predictor of a parameter.
    ///
    /// # Errors
    /// Fails if a term cannot be evaluated.
    pub fn predictor(&mut self, parameter: &str, terms: &Terms) -> Result<Predictor> {
        let mut design = design(terms, self.contrasts, &mut self.evaluator)?;
        if terms.intercept {
            design.names.remove(0);
            design.columns.remove(0);
        }
        let mut made = Predictor {
            parameter: parameter.to_owned(),
            intercept: terms.intercept,
            design,
            groups: Vec::new(),
            offset: None,
            smooths: Vec::new(),
            processes: Vec::new(),
            monotonic: Vec::new(),
            unknown: Vec::new(),
            series: None,
            field: None,
            computed: None,
        };
        if let Some(computed) = &terms.computed {
            let columns = computed.columns.iter();
            let columns = columns.map(|column| {
                let Kind::Name(name) = &column.kind else {
                    return Err(self.error(column, "a column has a name"));
                };
                Ok((name.clone(), self.evaluator.numbers(column)?))
            });
            made.computed = Some(Calculation {
                columns: columns.collect::<Result<_>>()?,
                value: computed.value.clone(),
                text: self.evaluator.text.to_owned(),
            });
        }
        for offset in &terms.offsets {
            let x = self.evaluator.numbers(offset)?;
            match &mut made.offset {
                Some(sum) => sum.iter_mut().zip(x).for_each(|(sum, x)| *sum += x),
                none => *none = Some(x),
            }
        }
        for group in &terms.groups {
            for found in self.group(group)? {
                if made.groups.iter().any(|other| other.name == found.name) {
                    let message = format!("two terms have effects by `{}`", found.name);
                    return Err(
                        Error::at(self.evaluator.text, group.span, message).help(format!(
                            "join them: (1 + x | {0}), or (1 + x || {0}) without correlation",
                            found.name
                        )),
                    );
                }
                made.groups.push(found);
            }
        }
        for call in &terms.special {
            self.special(call, &mut made)?;
        }
        Ok(made)
    }

    fn special(&mut self, call: &Expr, made: &mut Predictor) -> Result<()> {
        let Kind::Call(name, arguments) = &call.kind else {
            return Ok(());
        };
        let columns: Vec<&Argument> = arguments.iter().filter(|a| a.name.is_none()).collect();
        let known: &[&str] = match name.as_str() {
            "s" => &["k", "bs", "by"],
            "t2" | "gp" => &["k"],
            "ar" => &["time", "gr", "p"],
            "car" => &["gr", "type"],
            _ => &[],
        };
        let strange = |a: &&Argument| a.name.as_deref().is_some_and(|name| !known.contains(&name));
        if let Some(strange) = arguments.iter().find(strange) {
            let label = strange.name.clone().unwrap_or_default();
            let message = format!("{name}() has no argument `{label}`");
            return Err(self.error(&strange.value, message).help(match known {
                [] => format!("it takes {}", takes(name)),
                known => format!("it has {}", known.join(", ")),
            }));
        }
        match (name.as_str(), columns.len()) {
            ("s", 1) => self.smooth(call, arguments, made),
            ("t2", 2) => self.product(call, arguments, made),
            ("gp", 1) => self.process(call, arguments, made),
            ("mo", 1) => self.monotonic(call, &columns[0].value, made),
            ("me", 2) => self.measured(call, &columns[0].value, &columns[1].value, made),
            ("mi", 1) => self.imputed(call, &columns[0].value, made),
            ("ar", 0 | 1) => self.series(call, arguments, made),
            ("car", 1 | 2) => self.field(call, arguments, made),
            _ => Err(self
                .error(call, format!("{name}() takes {}", takes(name)))
                .help(match name.as_str() {
                    "s" => "write a smooth of two columns as t2(x, z)",
                    "t2" => "write a smooth of one column as s(x)",
                    _ => "",
                })),
        }
    }
}

fn takes(name: &str) -> &'static str {
    match name {
        "t2" => "two columns",
        "me" => "a column and its standard errors, as in me(x, sd_x)",
        "ar" => "at most a column of times, as in ar(time, gr = series, p = 1)",
        "car" => {
            "the file of a map and a column of its regions, as in car(\"map.graph\", gr = region, \
             type = \"bym2\")"
        }
        _ => "one column",
    }
}
