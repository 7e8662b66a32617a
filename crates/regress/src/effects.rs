//! Tables from which the effects of columns are computed. They are copies of the rows in which one column is changed,
//! and grids over one or two columns.

use serde::{Deserialize, Serialize};

use crate::asked::{Formulas, columns, complete, family, others};
use crate::basis::{mean, sd};
use crate::error::Result;
use crate::frame::{Frame, FrameColumn};
use crate::regression::Request;
use crate::syntax::{Expr, Kind};

const POINTS: usize = 41;

/// Step of the difference quotient that gives a slope, as a share of the column's range. The R package marginaleffects
/// uses the same value.
const STEP: f64 = 1e-4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Number,
    /// The column takes one of its values. This applies to words, truth values and numbers that represent levels.
    Level,
}

/// An average effect, computed from the expected values of two tables. It is the average difference between them,
/// divided by `step`.
pub struct Contrast {
    /// The column whose effect is computed.
    pub column: String,
    /// The name of the effect: `dY/dX` for a slope, or the two levels.
    pub name: String,
    /// The first table. Its expected values are subtracted from those of `to`.
    pub from: Frame,
    /// The second table, in which the column is changed.
    pub to: Frame,
    /// The divisor. For slopes, it is the amount by which the column differs between the two tables. For other effects
    /// it is 1.
    pub step: f64,
}

/// Builds the tables for the average effect of each column over the rows of a table. The effects are slopes for numeric
/// columns, and differences of each level from the first level for factors.
///
/// # Errors
/// Fails if the table lacks a column that a formula uses.
pub fn contrasts(request: &Request, frame: &Frame) -> Result<Vec<Contrast>> {
    let mut made = Vec::new();
    for (name, change) in causes(request, frame)?.columns {
        let Some(column) = frame.column(&name) else {
            continue;
        };
        match (change, column) {
            (Change::Number, FrameColumn::Numbers(x)) => {
                let (low, high) = range(x);
                let step = STEP * (high - low);
                let moved = |by: f64| FrameColumn::Numbers(x.iter().map(|x| x + by).collect());
                made.push(Contrast {
                    name: "dY/dX".to_owned(),
                    from: frame.with(&name, moved(-step / 2.0)),
                    to: frame.with(&name, moved(step / 2.0)),
                    column: name,
                    step,
                });
            }
            _ => {
                let levels = levels(column);
                for (label, level) in levels.iter().skip(1) {
                    let (first_label, first) = &levels[0];
                    let set = |to: &FrameColumn| frame.with(&name, repeated(to, frame.rows()));
                    made.push(Contrast {
                        name: format!("{label} - {first_label}"),
                        from: set(first),
                        to: set(level),
                        column: name.clone(),
                        step: 1.0,
                    });
                }
            }
        }
    }
    Ok(made)
}

/// The points of a curve over one column. If there is a second column, the curve consists of one line for each of its
/// values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The column along the curve.
    pub column: String,
    /// The values along the curve, if the column is numeric.
    pub at: Vec<f64>,
    /// The levels along the curve, if the column is not numeric.
    pub levels: Vec<String>,
    /// The second column and its values.
    pub by: Option<(String, Vec<String>)>,
}

impl Curve {
    /// Returns the number of points along each line.
    pub fn points(&self) -> usize {
        self.at.len().max(self.levels.len())
    }

    /// Returns the number of lines, which is 1 without a second column.
    pub fn lines(&self) -> usize {
        self.by.as_ref().map_or(1, |(_, values)| values.len())
    }
}

/// Builds one curve for every column, and one for every pair of columns that occur together in a term. Also returns a
/// table with the points of all curves, ordered by curve and line. All other columns have their mean or their first
/// level.
///
/// # Errors
/// Fails if a formula is invalid.
pub fn curves(request: &Request, frame: &Frame) -> Result<(Vec<Curve>, Frame)> {
    let causes = causes(request, frame)?;
    let change = |name: &str| causes.columns.iter().find(|(other, _)| other == name);
    let mut curves = Vec::new();
    let mut cells: Vec<Vec<(String, FrameColumn)>> = Vec::new();
    let mut add = |first: &(String, Change), second: Option<&(String, Change)>| {
        let Some(column) = frame.column(&first.0) else {
            return;
        };
        let values = along(column, first.1, POINTS);
        let by = second.and_then(|(name, change)| {
            let column = frame.column(name)?;
            Some((name, along(column, *change, 3)))
        });
        let lines = by.as_ref().map_or(1, |(_, values)| values.len());
        for line in 0..lines {
            for (_, value) in &values {
                let mut point = vec![(first.0.clone(), value.clone())];
                point.extend(
                    by.iter()
                        .map(|(name, values)| ((*name).clone(), values[line].1.clone())),
                );
                cells.push(point);
            }
        }
        let numbers = values.iter().filter_map(|(_, value)| match value {
            FrameColumn::Numbers(x) if first.1 == Change::Number => x.first().copied(),
            _ => None,
        });
        curves.push(Curve {
            column: first.0.clone(),
            at: numbers.collect(),
            levels: match first.1 {
                Change::Number => Vec::new(),
                Change::Level => values.iter().map(|(label, _)| label.clone()).collect(),
            },
            by: by.map(|(name, values)| {
                (
                    name.clone(),
                    values.into_iter().map(|(label, _)| label).collect(),
                )
            }),
        });
    };
    for cause in &causes.columns {
        add(cause, None);
    }
    for (a, b) in &causes.pairs {
        let (Some(a), Some(b)) = (change(a), change(b)) else {
            continue;
        };
        match (a.1, b.1) {
            (Change::Level, Change::Number) => add(b, Some(a)),
            _ => add(a, Some(b)),
        }
    }
    let mut columns = Vec::new();
    for (name, column) in frame.columns() {
        let kind = change(name).map_or(Change::Level, |(_, change)| *change);
        let usual = usual(column, kind);
        let at = |point: &Vec<(String, FrameColumn)>| {
            let own = point.iter().find(|(other, _)| other == name);
            own.map_or_else(|| usual.clone(), |(_, value)| value.clone())
        };
        columns.push((
            name.clone(),
            joined(column, &cells.iter().map(at).collect::<Vec<_>>()),
        ));
    }
    let mut grid = Frame::new(frame.source.clone(), columns)?;
    grid.graphs = frame.graphs.clone();
    Ok((curves, grid))
}

#[derive(Default)]
struct Causes {
    columns: Vec<(String, Change)>,
    pairs: Vec<(String, String)>,
}

fn causes(request: &Request, frame: &Frame) -> Result<Causes> {
    let (family, _) = family(request)?;
    let mut formulas = Formulas::parse(request, family)?;
    formulas.imputed.clear();
    let mut made = Causes::default();
    for formula in formulas.all() {
        let terms = formula.terms(&others(formula, frame))?;
        let mut named = Vec::new();
        columns(&terms, false, &mut named);
        // `Regression::new` has already checked that every column exists.
        complete(frame, &named, &formula.text)?;
        let mut of: Vec<Vec<String>> = Vec::new();
        for variable in &terms.variables {
            let mut names = Vec::new();
            made.visit(variable, frame, false, &mut names);
            of.push(names);
        }
        for term in &terms.fixed {
            let names: Vec<&String> = term.iter().flat_map(|at| &of[*at]).collect();
            made.pair(&names);
        }
        let computed = terms.computed.iter().flat_map(|computed| &computed.columns);
        for column in computed {
            made.visit(column, frame, false, &mut Vec::new());
        }
        for call in &terms.special {
            let mut names = Vec::new();
            made.visit(call, frame, false, &mut names);
            made.pair(&names.iter().collect::<Vec<_>>());
        }
    }
    Ok(made)
}

impl Causes {
    /// Records the columns of an expression. `levels` is true if the columns in the expression represent levels.
    fn visit(&mut self, expr: &Expr, frame: &Frame, levels: bool, names: &mut Vec<String>) {
        match &expr.kind {
            Kind::Name(name) => {
                let Some(column) = frame.column(name) else {
                    return;
                };
                let numbers =
                    matches!(column, FrameColumn::Numbers(x) if x.iter().any(|x| !x.is_nan()));
                let change = if numbers && !levels {
                    Change::Number
                } else {
                    Change::Level
                };
                match self.columns.iter_mut().find(|(other, _)| other == name) {
                    Some(known) if change == Change::Level => known.1 = change,
                    Some(_) => {}
                    None => self.columns.push((name.clone(), change)),
                }
                names.push(name.clone());
            }
            Kind::Number(_) | Kind::Text(_) => {}
            Kind::Unary(_, inner) | Kind::Group(inner) => self.visit(inner, frame, levels, names),
            Kind::Binary(_, left, right) => {
                self.visit(left, frame, levels, names);
                self.visit(right, frame, levels, names);
            }
            Kind::Call(name, arguments) => {
                let levels =
                    levels || matches!(name.as_str(), "factor" | "as.factor" | "ordered" | "mo");
                // Times, regions and standard errors are properties of rows and not causes, so they have no effects.
                let shown = match name.as_str() {
                    "ar" | "car" => 0,
                    "me" => 1,
                    _ => usize::MAX,
                };
                for argument in arguments.iter().take(shown) {
                    if argument.name.is_none() || argument.name.as_deref() == Some("by") {
                        self.visit(&argument.value, frame, levels, names);
                    }
                }
            }
        }
    }

    fn pair(&mut self, names: &[&String]) {
        for (at, a) in names.iter().enumerate() {
            for b in &names[at + 1..] {
                let known =
                    |(x, y): &(String, String)| (x == *a && y == *b) || (x == *b && y == *a);
                if a != b && !self.pairs.iter().any(known) {
                    self.pairs.push(((*a).clone(), (*b).clone()));
                }
            }
        }
    }
}

fn present(x: &[f64]) -> Vec<f64> {
    x.iter().copied().filter(|x| !x.is_nan()).collect()
}

fn range(x: &[f64]) -> (f64, f64) {
    let least = x.iter().copied().fold(f64::INFINITY, f64::min);
    (least, x.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

fn levels(column: &FrameColumn) -> Vec<(String, FrameColumn)> {
    match column {
        FrameColumn::Factor(factor) => (0..factor.levels.len())
            .map(|code| {
                let one = factor.with_codes(vec![Some(code as u32)]);
                (factor.levels[code].clone(), FrameColumn::Factor(one))
            })
            .collect(),
        FrameColumn::Truth(_) => [("FALSE", 0.0), ("TRUE", 1.0)]
            .map(|(label, x)| (label.to_owned(), FrameColumn::Truth(vec![x])))
            .into(),
        FrameColumn::Numbers(x) => {
            let mut values = present(x);
            values.sort_unstable_by(f64::total_cmp);
            values.dedup();
            let one = |x: &f64| (x.to_string(), FrameColumn::Numbers(vec![*x]));
            values.iter().map(one).collect()
        }
    }
}

/// Returns the values of a column along a curve. They are `points` evenly spaced numbers over the column's range, or
/// three numbers around its mean.
fn along(column: &FrameColumn, change: Change, points: usize) -> Vec<(String, FrameColumn)> {
    let (FrameColumn::Numbers(x), Change::Number) = (column, change) else {
        return levels(column);
    };
    let x = present(x);
    let (low, high) = range(&x);
    let value = |at: usize| match points {
        3 => mean(&x) + (at as f64 - 1.0) * sd(&x),
        _ => low + (high - low) * at as f64 / (points - 1) as f64,
    };
    let labelled = |at: usize| {
        let x = value(at);
        (
            format!("{x:.4}")
                .trim_end_matches('0')
                .trim_end_matches('.')
                .to_owned(),
            FrameColumn::Numbers(vec![x]),
        )
    };
    (0..points).map(labelled).collect()
}

/// Returns the mean or the first level of a column. The column has this value while another column varies.
fn usual(column: &FrameColumn, change: Change) -> FrameColumn {
    match (column, change) {
        (FrameColumn::Numbers(x), Change::Number) => FrameColumn::Numbers(vec![mean(&present(x))]),
        (FrameColumn::Factor(factor), _) if !factor.levels.is_empty() => {
            FrameColumn::Factor(factor.with_codes(vec![Some(0)]))
        }
        _ => {
            let first = levels(column).into_iter().next();
            first.map_or_else(|| column.at(&[0]), |(_, first)| first)
        }
    }
}

fn repeated(one: &FrameColumn, rows: usize) -> FrameColumn {
    match one {
        FrameColumn::Numbers(x) => FrameColumn::Numbers(vec![x[0]; rows]),
        FrameColumn::Truth(x) => FrameColumn::Truth(vec![x[0]; rows]),
        FrameColumn::Factor(factor) => {
            FrameColumn::Factor(factor.with_codes(vec![factor.codes[0]; rows]))
        }
    }
}

fn joined(like: &FrameColumn, parts: &[FrameColumn]) -> FrameColumn {
    let number = |part: &FrameColumn| match part {
        FrameColumn::Numbers(x) | FrameColumn::Truth(x) => x[0],
        FrameColumn::Factor(_) => f64::NAN,
    };
    let code = |part: &FrameColumn| match part {
        FrameColumn::Factor(factor) => factor.codes[0],
        _ => None,
    };
    match like {
        FrameColumn::Numbers(_) => FrameColumn::Numbers(parts.iter().map(number).collect()),
        FrameColumn::Truth(_) => FrameColumn::Truth(parts.iter().map(number).collect()),
        FrameColumn::Factor(factor) => {
            FrameColumn::Factor(factor.with_codes(parts.iter().map(code).collect()))
        }
    }
}
