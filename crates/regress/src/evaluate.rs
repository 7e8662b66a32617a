//! Evaluates expressions over the rows of a frame. Calls such as `poly(x, 3)` estimate a state from the data. With this
//! state, the same columns can be computed for new rows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::basis::{Polynomial, Spline, mean, quantile, sd};
use crate::error::{Error, Result};
use crate::frame::{Factor, Frame, FrameColumn};
use crate::syntax::{Argument, Expr, Kind};

/// The state that is estimated from the data of a fit, for a call or for a column of words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Levels of a factor.
    Levels {
        /// The names of the levels, in order.
        levels: Vec<String>,
        /// Whether the levels are ordered.
        ordered: bool,
    },
    /// The number that is subtracted from a column, and the divisor.
    Scale(f64, f64),
    /// The state of orthogonal polynomials.
    Polynomial(Polynomial),
    /// The state of B-splines or natural splines.
    Spline(Spline),
}

/// The states of calls, keyed by the text of the call.
pub type States = BTreeMap<String, State>;

/// The values of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// One number that applies to all rows.
    Number(f64),
    /// One number per row.
    Numbers(Vec<f64>),
    /// One truth value per row, stored as 0 or 1.
    Truth(Vec<f64>),
    /// Several columns, each with a suffix for its name.
    Matrix(Vec<(String, Vec<f64>)>),
    /// A factor with one level per row.
    Factor(Factor),
}

/// Evaluates expressions over the complete rows of a frame. In a fit it estimates the state of each call. For new rows
/// it uses the stored states.
pub struct Evaluator<'a> {
    /// The frame. Expressions are evaluated in each of its rows.
    pub frame: &'a Frame,
    /// The states of calls.
    pub states: &'a mut States,
    /// Whether to estimate the state of a call that has no stored state.
    pub learning: bool,
    /// The text of the formula, which messages quote.
    pub text: &'a str,
}

impl Evaluator<'_> {
    fn error(&self, expr: &Expr, message: impl Into<String>) -> Error {
        Error::at(self.text, expr.span, message)
    }

    /// Evaluates an expression.
    ///
    /// # Errors
    /// Fails if a column or a function is unknown, if an operation needs numbers but its operand has words, or if a
    /// number is not finite.
    pub fn value(&mut self, expr: &Expr) -> Result<Value> {
        let value = self.raw(expr)?;
        let check = |x: &[f64]| x.iter().position(|x| !x.is_finite());
        let bad = match &value {
            Value::Numbers(x) | Value::Truth(x) => check(x),
            Value::Matrix(columns) => columns.iter().find_map(|(_, x)| check(x)),
            Value::Number(_) | Value::Factor(_) => None,
        };
        match bad {
            None => Ok(value),
            Some(row) => Err(self
                .error(
                    expr,
                    format!(
                        "`{expr}` is not a finite number in row {} of the rows used",
                        row + 1
                    ),
                )
                .help("remove such rows, or transform the column in another way")),
        }
    }

    /// Evaluates an expression as one number per row.
    ///
    /// # Errors
    /// Fails for the same reasons as [`value`](Self::value), and if the expression is not numeric.
    pub fn numbers(&mut self, expr: &Expr) -> Result<Vec<f64>> {
        let rows = self.frame.rows();
        match self.value(expr)? {
            Value::Number(x) => Ok(vec![x; rows]),
            Value::Numbers(x) | Value::Truth(x) => Ok(x),
            Value::Matrix(mut columns) if columns.len() == 1 => Ok(columns.remove(0).1),
            Value::Matrix(_) => Err(self.error(
                expr,
                format!("`{expr}` has several columns, but only one is possible here"),
            )),
            Value::Factor(factor) => {
                // A single word turns a column of numbers into a factor, so the message quotes this word.
                let is_word = |level: &&String| level.parse::<f64>().is_err();
                let example = factor.levels.iter().find(is_word).or(factor.levels.first());
                let example = example.map_or("", String::as_str);
                Err(self
                    .error(expr, format!("`{expr}` has words such as `{example}`, but must have numbers"))
                    .help("words can be factors in a term or groups; otherwise convert them to numbers in the \
                           table"))
            }
        }
    }

    fn raw(&mut self, expr: &Expr) -> Result<Value> {
        match &expr.kind {
            Kind::Number(x) => Ok(Value::Number(*x)),
            Kind::Text(_) => Err(self.error(expr, "a text is not possible here")),
            Kind::Name(name) => self.column(expr, name),
            Kind::Group(inner) => self.raw(inner),
            Kind::Unary(sign, inner) => {
                let x = self.raw(inner)?;
                self.map(inner, x, |x| match *sign {
                    "-" => -x,
                    "!" => f64::from(u8::from(x == 0.0)),
                    _ => x,
                })
            }
            Kind::Binary(sign, left, right) => self.binary(expr, sign, left, right),
            Kind::Call(name, arguments) => self.call(expr, name, arguments),
        }
    }

    fn column(&mut self, expr: &Expr, name: &str) -> Result<Value> {
        match name {
            "TRUE" | "T" if self.frame.column(name).is_none() => return Ok(Value::Number(1.0)),
            "FALSE" | "F" if self.frame.column(name).is_none() => return Ok(Value::Number(0.0)),
            "pi" if self.frame.column(name).is_none() => {
                return Ok(Value::Number(std::f64::consts::PI));
            }
            _ => {}
        }
        let frame = self.frame;
        let Some(column) = frame.column(name) else {
            return Err(frame.unknown(name).or_at(self.text, expr.span));
        };
        match column {
            FrameColumn::Numbers(x) => Ok(Value::Numbers(x.clone())),
            FrameColumn::Truth(x) => Ok(Value::Truth(x.clone())),
            FrameColumn::Factor(factor) => self.factor(expr, factor.clone()).map(Value::Factor),
        }
    }

    /// Converts a factor to the stored levels. In a fit, it stores the levels of the factor instead.
    pub fn factor(&mut self, expr: &Expr, found: Factor) -> Result<Factor> {
        let key = expr.to_string();
        match self.states.get(&key) {
            Some(State::Levels { levels, ordered }) => {
                let known = found.among(levels).map_err(|word| {
                    let message = format!("`{word}` is a new level of `{key}`");
                    let shown: Vec<&str> = levels.iter().take(8).map(String::as_str).collect();
                    self.error(expr, message).help(format!(
                        "the fit has the levels {}{}",
                        shown.join(", "),
                        if levels.len() > 8 { ", …" } else { "" }
                    ))
                })?;
                Ok(Factor {
                    ordered: *ordered,
                    ..known
                })
            }
            _ => {
                if self.learning {
                    let state = State::Levels {
                        levels: found.levels.to_vec(),
                        ordered: found.ordered,
                    };
                    self.states.insert(key, state);
                }
                Ok(found)
            }
        }
    }

    fn map(&self, expr: &Expr, value: Value, f: impl Fn(f64) -> f64) -> Result<Value> {
        Ok(match value {
            Value::Number(x) => Value::Number(f(x)),
            Value::Numbers(x) | Value::Truth(x) => Value::Numbers(x.into_iter().map(f).collect()),
            Value::Matrix(columns) => Value::Matrix(
                columns
                    .into_iter()
                    .map(|(name, x)| (name, x.into_iter().map(&f).collect()))
                    .collect(),
            ),
            Value::Factor(_) => {
                return Err(self
                    .error(
                        expr,
                        format!("`{expr}` has words, but a computation needs numbers"),
                    )
                    .help("compare it with a text instead, as in I(g == \"a\")"));
            }
        })
    }

    fn binary(&mut self, expr: &Expr, sign: &str, left: &Expr, right: &Expr) -> Result<Value> {
        let truth = matches!(
            sign,
            "==" | "!=" | "<" | ">" | "<=" | ">=" | "&" | "&&" | "|" | "||"
        );
        if let (Kind::Text(word), "==" | "!=") = (&right.kind, sign)
            && let Value::Factor(factor) = self.raw(left)?
        {
            let code = factor.levels.iter().position(|level| level == word);
            let is = |c: &Option<u32>| (c.map(|c| c as usize) == code) == (sign == "==");
            let found = factor.codes.iter().map(|c| f64::from(u8::from(is(c))));
            return Ok(Value::Truth(found.collect()));
        }
        let bit = |b: bool| f64::from(u8::from(b));
        let f = |x: f64, y: f64| match sign {
            "+" => x + y,
            "-" => x - y,
            "*" => x * y,
            "/" => x / y,
            "^" => x.powf(y),
            "==" => bit(x == y),
            "!=" => bit(x != y),
            "<" => bit(x < y),
            ">" => bit(x > y),
            "<=" => bit(x <= y),
            ">=" => bit(x >= y),
            "&" | "&&" => bit(x != 0.0 && y != 0.0),
            _ => bit(x != 0.0 || y != 0.0),
        };
        if matches!(sign, "~" | ":" | "%in%") {
            return Err(self.error(expr, format!("`{sign}` joins terms and cannot compute")));
        }
        let (x, y) = (self.raw(left)?, self.raw(right)?);
        let wrap = |x: Vec<f64>| {
            if truth {
                Value::Truth(x)
            } else {
                Value::Numbers(x)
            }
        };
        Ok(match (x, y) {
            (Value::Number(x), Value::Number(y)) => Value::Number(f(x, y)),
            (x, Value::Number(y)) => match self.map(left, x, |x| f(x, y))? {
                Value::Numbers(x) => wrap(x),
                other => other,
            },
            (Value::Number(x), y) => match self.map(right, y, |y| f(x, y))? {
                Value::Numbers(x) => wrap(x),
                other => other,
            },
            (Value::Numbers(x) | Value::Truth(x), Value::Numbers(y) | Value::Truth(y)) => {
                wrap(x.into_iter().zip(y).map(|(x, y)| f(x, y)).collect())
            }
            (Value::Factor(_), _) => {
                return self.map(left, Value::Factor(Factor::of_numbers(&[])), |x| x);
            }
            (_, Value::Factor(_)) => {
                return self.map(right, Value::Factor(Factor::of_numbers(&[])), |x| x);
            }
            _ => return Err(self.error(expr, "a computation needs a single column")),
        })
    }

    fn call(&mut self, expr: &Expr, name: &str, arguments: &[Argument]) -> Result<Value> {
        let Some(first) = arguments.first() else {
            return Err(self.error(expr, format!("{name}() needs a column")));
        };
        if let Some(f) = function(name) {
            let x = self.raw(&first.value)?;
            return self.map(&first.value, x, f);
        }
        match name {
            "I" | "identity" => self.raw(&first.value),
            "factor" | "as.factor" | "ordered" => {
                let found = match self.raw(&first.value)? {
                    Value::Factor(factor) => factor,
                    Value::Numbers(x) | Value::Truth(x) => Factor::of_numbers(&x),
                    _ => return Err(self.error(&first.value, "a factor needs a single column")),
                };
                let found = Factor {
                    ordered: name == "ordered" || found.ordered,
                    ..found
                };
                self.factor(expr, found).map(Value::Factor)
            }
            "scale" | "center" | "centre" => self.scale(expr, name, &first.value),
            "poly" => self.polynomial(expr, arguments),
            "bs" | "ns" => self.spline(expr, name, arguments),
            _ => {
                let known = FUNCTIONS.iter().map(|(known, _)| *known).chain(LEARNING);
                let known = known.chain(crate::formula::SPECIAL).chain(["offset"]);
                let near = jensen_data::similar_name(name, known);
                let error = self.error(expr, format!("there is no function {name}()"));
                Err(match near {
                    Some(near) => error.help(format!("did you mean {near}()?")),
                    None => error.help(
                        "add the column to the table; formulas can use log, exp, sqrt, poly, bs, ns, scale, \
                         factor, I, …",
                    ),
                })
            }
        }
    }

    fn scale(&mut self, expr: &Expr, name: &str, argument: &Expr) -> Result<Value> {
        let x = self.numbers(argument)?;
        let learn = || match name {
            "scale" => State::Scale(mean(&x), sd(&x)),
            _ => State::Scale(mean(&x), 1.0),
        };
        let state = self.states.entry(expr.to_string()).or_insert_with(learn);
        let State::Scale(centre, size) = *state else {
            return Err(self.error(
                expr,
                "the stored fit has another kind of result for this call",
            ));
        };
        if size == 0.0 {
            return Err(self
                .error(
                    expr,
                    format!("`{argument}` is the same in all rows, so it cannot be scaled"),
                )
                .help("remove the term"));
        }
        Ok(Value::Numbers(
            x.iter().map(|x| (x - centre) / size).collect(),
        ))
    }

    /// Returns an integer argument of a call, which is given by name or by position. `usual` is the default value.
    pub fn count(
        &self,
        arguments: &[Argument],
        names: &[&str],
        place: usize,
        usual: usize,
    ) -> Result<usize> {
        match argument(arguments, names, place) {
            None => Ok(usual),
            Some(expr) => match expr.bare().kind {
                Kind::Number(x) if x.fract() == 0.0 && (1.0..=1000.0).contains(&x) => {
                    Ok(x as usize)
                }
                _ => Err(self.error(
                    expr,
                    format!("{} must be an integer of at least 1", names[0]),
                )),
            },
        }
    }

    fn polynomial(&mut self, expr: &Expr, arguments: &[Argument]) -> Result<Value> {
        let degree = self.count(arguments, &["degree"], 1, 1)?;
        let x = self.numbers(&arguments[0].value)?;
        let raw = argument(arguments, &["raw"], usize::MAX);
        let named = |columns: Vec<Vec<f64>>| {
            let named = columns.into_iter().enumerate();
            Value::Matrix(named.map(|(at, x)| ((at + 1).to_string(), x)).collect())
        };
        if raw.is_some_and(
            |raw| matches!(&raw.kind, Kind::Name(name) if name == "TRUE" || name == "T"),
        ) {
            let power = |k: usize| x.iter().map(|x| x.powi(k as i32)).collect();
            return Ok(named((1..=degree).map(power).collect()));
        }
        if self.learning {
            let mut distinct = x.clone();
            distinct.sort_unstable_by(f64::total_cmp);
            distinct.dedup();
            if distinct.len() <= degree {
                let message = format!(
                    "a polynomial of degree {degree} needs more than {degree} distinct values, but `{}` has {}",
                    arguments[0].value,
                    distinct.len()
                );
                return Err(self.error(expr, message).help("take a lower degree"));
            }
        }
        let learn = || State::Polynomial(Polynomial::of(&x, degree));
        match self.states.entry(expr.to_string()).or_insert_with(learn) {
            State::Polynomial(polynomial) => Ok(named(polynomial.at(&x))),
            _ => Err(self.error(
                expr,
                "the stored fit has another kind of result for this call",
            )),
        }
    }

    fn spline(&mut self, expr: &Expr, name: &str, arguments: &[Argument]) -> Result<Value> {
        let x = self.numbers(&arguments[0].value)?;
        let natural = name == "ns";
        let degree = match natural {
            true => 3,
            false => self.count(arguments, &["degree"], 3, 3)?,
        };
        let intercept = argument(arguments, &["intercept"], usize::MAX)
            .is_some_and(|e| matches!(&e.kind, Kind::Name(name) if name == "TRUE" || name == "T"));
        if let Some(knots) = argument(arguments, &["knots"], 2) {
            return Err(self.error(knots, "`df` determines the knots").help(format!(
                "write {name}({}, df = 5): the knots are quantiles",
                arguments[0].value
            )));
        }
        let own = usize::from(intercept);
        let least = if natural { 1 } else { degree } + own;
        let df = self.count(arguments, &["df"], 1, least)?;
        if df < least {
            return Err(self
                .error(
                    expr,
                    format!("{name}() of degree {degree} has at least {least} columns"),
                )
                .help(format!("use df = {least} or more")));
        }
        let learn = || {
            let mut sorted = x.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            let count = df - least;
            let inner: Vec<f64> = (1..=count)
                .map(|k| quantile(&sorted, k as f64 / (count + 1) as f64))
                .collect();
            let boundary = [sorted[0], sorted[sorted.len() - 1]];
            State::Spline(Spline::new(&inner, boundary, degree, natural, intercept))
        };
        match self.states.entry(expr.to_string()).or_insert_with(learn) {
            State::Spline(spline) => {
                let columns = spline.at(&x).into_iter().enumerate();
                Ok(Value::Matrix(
                    columns.map(|(at, x)| ((at + 1).to_string(), x)).collect(),
                ))
            }
            _ => Err(self.error(
                expr,
                "the stored fit has another kind of result for this call",
            )),
        }
    }
}

/// Returns an argument that is given by one of its names, or by its position among the unnamed arguments.
pub fn argument<'a>(arguments: &'a [Argument], names: &[&str], place: usize) -> Option<&'a Expr> {
    let named = |a: &&Argument| a.name.as_deref().is_some_and(|name| names.contains(&name));
    let by_name = arguments.iter().find(named);
    let unnamed = || arguments.iter().filter(|a| a.name.is_none()).nth(place);
    by_name.or_else(unnamed).map(|a| &a.value)
}

const LEARNING: [&str; 7] = ["scale", "poly", "bs", "ns", "factor", "ordered", "I"];

type Function = fn(f64) -> f64;

const FUNCTIONS: [(&str, Function); 20] = [
    ("log", f64::ln),
    ("exp", f64::exp),
    ("sqrt", f64::sqrt),
    ("log1p", f64::ln_1p),
    ("expm1", f64::exp_m1),
    ("log2", f64::log2),
    ("log10", f64::log10),
    ("abs", f64::abs),
    ("sin", f64::sin),
    ("cos", f64::cos),
    ("tan", f64::tan),
    ("atan", f64::atan),
    ("tanh", f64::tanh),
    ("floor", f64::floor),
    ("ceiling", f64::ceil),
    ("round", f64::round_ties_even),
    ("sign", f64::signum),
    ("logit", |x| (x / (1.0 - x)).ln()),
    ("plogis", |x| 1.0 / (1.0 + (-x).exp())),
    ("as.numeric", |x| x),
];

fn function(name: &str) -> Option<Function> {
    let found = FUNCTIONS.iter().find(|(known, _)| *known == name);
    found.map(|(_, f)| *f)
}
