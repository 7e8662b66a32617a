//! The linear predictor of one parameter over the rows of a frame: columns, groups, smooths and what else is added.

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

/// What is learnt from the data beside the states of calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Learnt {
    /// Of calls, and of columns of words.
    pub states: crate::evaluate::States,
    /// The levels of groupings, by their names.
    pub groups: std::collections::BTreeMap<String, Vec<String>>,
    /// Smooths by parameter and call; those `by` a factor are one for all its levels.
    pub smooths: std::collections::BTreeMap<String, SmoothState>,
    /// Maps by the names of their files.
    pub fields: std::collections::BTreeMap<String, FieldState>,
}

/// A smooth as it was learnt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SmoothState {
    /// Of one column.
    One(Smooth),
    /// Of two.
    Two(Product),
    /// A Gaussian process: the middle and half the range of the column.
    Process([f64; 2]),
    /// Steps of a monotonic effect.
    Steps(usize),
}

/// Group effects over the rows.
#[derive(Clone, Debug)]
pub struct Groups {
    /// The grouping, as the formula has it.
    pub name: String,
    /// The levels that the fit knows.
    pub levels: Vec<String>,
    /// Levels of the rows that it does not know.
    pub new_levels: Vec<String>,
    /// The level of each row, or its several levels.
    pub members: Vec<Member>,
    /// What has an effect.
    pub design: Design,
    /// Standard deviations of the columns of what has an effect; 1 of an intercept.
    pub spreads: Vec<f64>,
    /// Whether effects are correlated.
    pub correlated: bool,
    /// The name that it shares with groups of other parameters whose effects are correlated with these.
    pub shared: Option<String>,
}

/// One level of each row.
#[derive(Clone, Debug)]
pub struct Member {
    /// For each row its level, from 0, new ones after those that are known.
    pub index: Vec<usize>,
    /// What the effect of that level counts; one where there are none.
    pub weights: Option<Vec<f64>>,
}

/// Functions with a common scale: the penalised part of a smooth.
#[derive(Clone, Debug)]
pub struct Penalised {
    /// The term, as it is shown.
    pub name: String,
    /// The columns.
    pub columns: Vec<Vec<f64>>,
}

/// A Gaussian process over one column, by its first eigenfunctions on an interval (Riutort-Mayol, Bürkner, Andersen, Solin and
/// Vehtari, Statistics and Computing 33, 2023).
#[derive(Clone, Debug)]
pub struct Process {
    /// The term, as it is shown.
    pub name: String,
    /// The eigenfunctions.
    pub columns: Vec<Vec<f64>>,
    /// Square roots of their eigenvalues.
    pub frequencies: Vec<f64>,
}

/// A monotonic effect (Bürkner and Charpentier, British Journal of Mathematical and Statistical Psychology 73, 2020).
#[derive(Clone, Debug)]
pub struct Monotonic {
    /// The term, as it is shown.
    pub name: String,
    /// For each row the number of steps taken, from 0.
    pub steps: Vec<usize>,
    /// The number of steps that there are.
    pub count: usize,
}

/// A linear predictor.
#[derive(Clone, Debug)]
pub struct Predictor {
    /// Its parameter.
    pub parameter: String,
    /// Whether it has an intercept.
    pub intercept: bool,
    /// Its columns without the intercept.
    pub design: Design,
    /// Its group effects.
    pub groups: Vec<Groups>,
    /// What is added as it is.
    pub offset: Option<Vec<f64>>,
    /// Penalised parts of smooths.
    pub smooths: Vec<Penalised>,
    /// Gaussian processes.
    pub processes: Vec<Process>,
    /// Monotonic effects.
    pub monotonic: Vec<Monotonic>,
    /// Effects of columns whose values are not all known: `me()`, `mi()`.
    pub unknown: Vec<UnknownTerm>,
    /// An autoregression of residuals; rows without a response have none.
    pub series: Option<Series>,
    /// A Markov field over a map.
    pub field: Option<Field>,
    /// What it is instead of a sum: a function of columns and of parameters with predictors of their own.
    pub computed: Option<Calculation>,
}

/// A function of columns and parameters over the rows.
#[derive(Clone, Debug)]
pub struct Calculation {
    /// The function.
    pub value: Expr,
    /// The formula that it is of.
    pub text: String,
    /// Its columns.
    pub columns: Vec<(String, Vec<f64>)>,
}

/// The parameter that imputes a column, whose formula is `column | mi() ~ …`.
pub const IMPUTED: &str = "mi_";

/// The interval of the eigenfunctions, in halves of the column's range: wide enough for length scales up to the range
/// (Riutort-Mayol et al., equation 20).
pub const BOUNDARY: f64 = 1.5;

/// Makes predictors of terms.
pub struct Maker<'a, 'b> {
    /// Evaluates over the rows.
    pub evaluator: Evaluator<'b>,
    /// The levels of groupings.
    pub groups: &'a mut std::collections::BTreeMap<String, Vec<String>>,
    /// Smooths.
    pub smooths: &'a mut std::collections::BTreeMap<String, SmoothState>,
    /// Maps.
    pub fields: &'a mut std::collections::BTreeMap<String, FieldState>,
    /// Columns whose values are not all known, of all predictors.
    pub unknowns: &'a mut Vec<Unknown>,
    /// How factors become columns.
    pub contrasts: Contrasts,
}

impl Maker<'_, '_> {
    fn error(&self, expr: &Expr, message: impl Into<String>) -> Error {
        Error::at(self.evaluator.text, expr.span, message)
    }

    /// The predictor of a parameter.
    ///
    /// # Errors
    /// A term cannot be evaluated.
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

/// What a term of its own takes.
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
