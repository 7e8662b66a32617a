//! Design matrices of the terms of a linear predictor. The columns and their names equal those of R's `model.matrix`.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::evaluate::{Evaluator, Value};
use crate::formula::Terms;
use crate::syntax::Expr;

/// The coding of a factor if its mean is already in the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contrasts {
    /// The difference of each level from the first level.
    #[default]
    Treatment,
    /// The difference of each level except the last from the mean of all levels.
    Sum,
    /// The difference of each level from the mean of the preceding levels.
    Helmert,
}

/// All contrasts, with their names in requests.
pub const CONTRASTS: [(&str, Contrasts); 3] = [
    ("treatment", Contrasts::Treatment),
    ("sum", Contrasts::Sum),
    ("helmert", Contrasts::Helmert),
];

/// A design matrix.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Design {
    /// Names of the columns.
    pub names: Vec<String>,
    /// The columns.
    pub columns: Vec<Vec<f64>>,
}

impl Design {
    fn push(&mut self, name: String, column: Vec<f64>) {
        self.names.push(name);
        self.columns.push(column);
    }
}

enum Variable {
    Plain(Vec<(String, Vec<f64>)>),
    /// A factor. The fields are its codes, the names of its levels, and whether the levels are ordered.
    Levels(Vec<u32>, Vec<String>, bool),
}

/// Builds the design matrix of terms, including the intercept if the terms have one.
///
/// # Errors
/// Fails if a variable has no value, or if a factor has only one level.
pub fn design(
    terms: &Terms,
    contrasts: Contrasts,
    evaluator: &mut Evaluator<'_>,
) -> Result<Design> {
    let variables: Vec<Variable> = terms
        .variables
        .iter()
        .map(|expr| variable(expr, evaluator))
        .collect::<Result<_>>()?;
    let full = indicators(terms, &variables);
    let mut made = Design::default();
    let rows = evaluator.frame.rows();
    if terms.intercept {
        made.push("(Intercept)".into(), vec![1.0; rows]);
    }
    for (term, full) in terms.fixed.iter().zip(&full) {
        let mut product = Design {
            names: vec![String::new()],
            columns: vec![vec![1.0; rows]],
        };
        for (&at, &full) in term.iter().zip(full) {
            let name = terms.variables[at].to_string();
            let own = coded(&name, &variables[at], full, contrasts);
            product = times(&product, &own);
        }
        made.names.append(&mut product.names);
        made.columns.append(&mut product.columns);
    }
    Ok(made)
}

/// Returns the products of the columns of two designs. The columns of the left design vary fastest.
fn times(left: &Design, right: &Design) -> Design {
    let mut made = Design::default();
    for (name, column) in right.names.iter().zip(&right.columns) {
        for (before, other) in left.names.iter().zip(&left.columns) {
            let join = if before.is_empty() { "" } else { ":" };
            let product = column.iter().zip(other).map(|(x, y)| x * y);
            made.push(format!("{before}{join}{name}"), product.collect());
        }
    }
    made
}

fn variable(expr: &Expr, evaluator: &mut Evaluator<'_>) -> Result<Variable> {
    let text = evaluator.text;
    match evaluator.value(expr)? {
        Value::Number(_) => Err(Error::at(text, expr.span, "a term without a column")
            .help("an intercept is 1; write the name of a column")),
        Value::Numbers(x) => Ok(Variable::Plain(vec![(String::new(), x)])),
        Value::Matrix(columns) => Ok(Variable::Plain(columns)),
        Value::Truth(x) => {
            let codes = x.iter().map(|x| u32::from(*x != 0.0)).collect();
            Ok(Variable::Levels(
                codes,
                vec!["FALSE".into(), "TRUE".into()],
                false,
            ))
        }
        Value::Factor(factor) => {
            if evaluator.learning && factor.levels.len() < 2 {
                let level = factor.levels.first().cloned().unwrap_or_default();
                let message =
                    format!("the factor `{expr}` has only the level `{level}` in the rows used");
                return Err(Error::at(text, expr.span, message)
                    .help("a factor that is the same in all rows has no effect: remove it"));
            }
            let (codes, levels) = (factor.codes, factor.levels);
            dates(expr, &levels, text)?;
            let codes = codes.into_iter().map(|code| code.unwrap_or(0)).collect();
            Ok(Variable::Levels(codes, levels.to_vec(), factor.ordered))
        }
    }
}

/// Fails if the levels are dates, because a model with one coefficient per day is almost certainly a mistake.
fn dates(expr: &Expr, levels: &[String], text: &str) -> Result<()> {
    let is_date = |level: &String| {
        let b = level.as_bytes();
        b.len() >= 10
            && b[..10].iter().enumerate().all(|(at, c)| match at {
                4 | 7 => matches!(c, b'-' | b'/'),
                _ => c.is_ascii_digit(),
            })
    };
    match levels.iter().all(is_date) {
        false => Ok(()),
        true => Err(Error::at(text, expr.span, format!("`{expr}` has dates such as `{}`", levels[0]))
            .help("convert it to a number in the table, such as days since the first date, or group by it: (1 \
                   | date)")),
    }
}

/// Determines, for each term, the factors that need indicators of all levels instead of contrasts. A factor needs them
/// if the term without this factor is not in the model. This is R's `TermCode`, with the adjustment that R's
/// `modelframe.c` makes for models without an intercept.
fn indicators(terms: &Terms, variables: &[Variable]) -> Vec<Vec<bool>> {
    let mut full: Vec<Vec<bool>> = terms
        .fixed
        .iter()
        .map(|term| {
            let missing = |at: &usize| {
                let rest: Vec<usize> = term.iter().copied().filter(|other| other != at).collect();
                !rest.is_empty() && !terms.fixed.contains(&rest)
            };
            term.iter().map(missing).collect()
        })
        .collect();
    let is_factor = |at: usize| matches!(variables[at], Variable::Levels(..));
    if !terms.intercept {
        let places = terms.fixed.iter().enumerate();
        let mut places =
            places.flat_map(|(i, term)| term.iter().enumerate().map(move |(j, at)| (i, j, *at)));
        if let Some((i, j, _)) = places.find(|(_, _, at)| is_factor(*at)) {
            full[i][j] = true;
        }
    }
    full
}

fn coded(name: &str, variable: &Variable, full: bool, contrasts: Contrasts) -> Design {
    let mut made = Design::default();
    match variable {
        Variable::Plain(columns) => {
            for (suffix, x) in columns {
                made.push(format!("{name}{suffix}"), x.clone());
            }
        }
        Variable::Levels(codes, levels, ordered) => {
            let matrix = match full {
                true => (0..levels.len())
                    .map(|level| (levels[level].clone(), unit(levels.len(), level)))
                    .collect(),
                false => matrix(levels, *ordered, contrasts),
            };
            for (suffix, weights) in matrix {
                let column = codes.iter().map(|code| weights[*code as usize]).collect();
                made.push(format!("{name}{suffix}"), column);
            }
        }
    }
    made
}

fn unit(count: usize, at: usize) -> Vec<f64> {
    (0..count).map(|i| f64::from(u8::from(i == at))).collect()
}

/// Returns the contrasts of a factor. Each contrast is a column. It is described by the suffix of its name and its
/// value at each level.
fn matrix(levels: &[String], ordered: bool, contrasts: Contrasts) -> Vec<(String, Vec<f64>)> {
    let count = levels.len();
    if ordered {
        let scores: Vec<f64> = (1..=count).map(|i| i as f64).collect();
        let columns = crate::basis::Polynomial::of(&scores, count - 1).at(&scores);
        let named = columns.into_iter().enumerate();
        return named
            .map(|(at, x)| {
                let name = match at {
                    0 => ".L".to_owned(),
                    1 => ".Q".to_owned(),
                    2 => ".C".to_owned(),
                    _ => format!("^{}", at + 1),
                };
                (name, x)
            })
            .collect();
    }
    (1..count)
        .map(|k| match contrasts {
            Contrasts::Treatment => (levels[k].clone(), unit(count, k)),
            Contrasts::Sum => {
                let mut x = unit(count, k - 1);
                x[count - 1] = -1.0;
                (k.to_string(), x)
            }
            Contrasts::Helmert => {
                let x = (0..count).map(|i| match i {
                    i if i < k => -1.0,
                    i if i == k => k as f64,
                    _ => 0.0,
                });
                (k.to_string(), x.collect())
            }
        })
        .collect()
}
