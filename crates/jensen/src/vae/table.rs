//! Tables whose columns have different distributions, or on some of whose columns a model conditions.
//!
//! In the rows of a table, a word is represented by its position among the words of its column.

use jensen_data::{Cells, Column, Rows, Table};
use jensen_math::sum::ColumnMoments;
use jensen_neural::Likelihood;
use serde::{Deserialize, Serialize};

use super::VaeRequest;
use super::decoder::ColumnKind;
use super::request::UNMIXED;
use crate::Error;
use crate::units::{Standardise, Units};

/// A column of the table that a model was fitted to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableColumn {
    /// The name of the column.
    pub name: String,
    /// The use of the column.
    pub role: ColumnRole,
}

/// The use of a column by the networks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnRole {
    /// Modelled numbers with this distribution.
    Numbers(Likelihood),
    /// Modelled values that are 0 or 1.
    Binary,
    /// Modelled words, which are listed in this order.
    Words(Vec<String>),
    /// Numbers on which the model conditions. The networks read (x − centre) / scale.
    GivenNumbers {
        /// The centre.
        centre: f64,
        /// The scale.
        scale: f64,
    },
    /// Words on which the model conditions. The networks read one indicator for each word.
    GivenWords(Vec<String>),
}

impl ColumnRole {
    pub(super) fn is_given(&self) -> bool {
        matches!(self, Self::GivenNumbers { .. } | Self::GivenWords(_))
    }

    pub(super) fn words(&self) -> Option<&[String]> {
        match self {
            Self::Words(words) | Self::GivenWords(words) => Some(words),
            _ => None,
        }
    }

    /// Returns the distribution of a modelled column, and `None` for a given column.
    pub(super) fn likelihood(&self) -> Option<Likelihood> {
        match self {
            Self::Numbers(likelihood) => Some(*likelihood),
            Self::Binary => Some(Likelihood::Bernoulli),
            Self::Words(words) => Some(Likelihood::Categorical {
                categories: words.len(),
            }),
            Self::GivenNumbers { .. } | Self::GivenWords(_) => None,
        }
    }

    fn is_of_reals(&self) -> bool {
        matches!(self, Self::Numbers(likelihood) if likelihood.is_of_reals())
    }
}

/// The maximum number of words of a column. A column with more words probably contains identifiers.
const WORDS: usize = 1000;

fn at(source: &str, what: impl std::fmt::Display) -> Error {
    Error::Input(format!("`{source}`: {what}"))
}

/// Determines the use of the columns of a table. `train` contains the indices of the training rows, and `likelihood` is
/// the distribution of the columns that have no other.
pub(super) fn roles(
    table: &Table,
    flags: &VaeRequest,
    likelihood: Likelihood,
    train: &[usize],
) -> Result<Vec<TableColumn>, Error> {
    let named = |names: &[String]| -> Result<Vec<String>, Error> {
        let column = |name: &String| Ok(table.column(name)?.name.clone());
        names.iter().map(column).collect()
    };
    let given = named(&flags.given)?;
    let kinds = flags.column_kinds()?;
    let names: Vec<String> = kinds.iter().map(|(name, _)| name.clone()).collect();
    let kinds: Vec<(String, ColumnKind)> = named(&names)?
        .into_iter()
        .zip(kinds.iter().map(|(_, kind)| *kind))
        .collect();
    let twice = |names: &[String], flag: &str| {
        let again = (1..names.len()).find(|i| names[..*i].contains(&names[*i]));
        match again {
            Some(i) => Err(Error::Setting(format!(
                "{flag} names the column `{}` twice",
                names[i]
            ))),
            None => Ok(()),
        }
    };
    twice(&given, "--given")?;
    twice(
        &kinds
            .iter()
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>(),
        "--columns",
    )?;
    let role = |column: &Column| -> Result<TableColumn, Error> {
        let asked = kinds.iter().find(|(name, _)| *name == column.name);
        let role = match (given.contains(&column.name), asked) {
            (true, Some((_, ColumnKind::Words))) => words(column)
                .map(ColumnRole::GivenWords)
                .map_err(|what| at(table.source(), what)),
            (false, Some(_)) if !flags.is_mixed() => Err(Error::setting(UNMIXED)),
            (true, Some((name, _))) => Err(Error::Setting(format!(
                "the column `{name}` is given, so it has no distribution: remove it from --columns or from --given"
            ))),
            (true, None) => role_of_given(column, train).map_err(|what| at(table.source(), what)),
            (false, Some((_, kind))) => {
                asked_role(column, *kind).map_err(|what| at(table.source(), what))
            }
            (false, None) if flags.is_mixed() => {
                own_role(column, likelihood).map_err(|what| at(table.source(), what))
            }
            (false, None) => column
                .numbers()
                .map(|_| ColumnRole::Numbers(likelihood))
                .map_err(Error::from),
        };
        Ok(TableColumn {
            name: column.name.clone(),
            role: role?,
        })
    };
    let columns: Vec<TableColumn> = table.columns().iter().map(role).collect::<Result<_, _>>()?;
    if columns.iter().all(|column| column.role.is_given()) {
        return Err(Error::setting(
            "--given names every column, so no column is left to model",
        ));
    }
    Ok(columns)
}

fn words(column: &Column) -> Result<Vec<String>, String> {
    let words = column.levels();
    let name = &column.name;
    match words.len() {
        0 => Err(format!("the column `{name}` has no values: remove it")),
        1..=WORDS => Ok(words),
        many => Err(format!(
            "the column `{name}` has {many} different values, but at most {WORDS} categories are possible: remove the \
             column"
        )),
    }
}

fn present(numbers: &[f64]) -> impl Iterator<Item = f64> + '_ {
    numbers.iter().copied().filter(|x| !x.is_nan())
}

fn role_of_given(column: &Column, train: &[usize]) -> Result<ColumnRole, String> {
    let Cells::Numbers(numbers) = &column.cells else {
        return Ok(ColumnRole::GivenWords(words(column)?));
    };
    if present(numbers).all(|x| x == 0.0 || x == 1.0) {
        return Ok(ColumnRole::GivenNumbers {
            centre: 0.0,
            scale: 1.0,
        });
    }
    let own: Vec<f64> = train.iter().map(|row| numbers[*row]).collect();
    let moments = ColumnMoments::of(1, &own)[0];
    let scale = (moments.squares / moments.count.max(1.0)).sqrt();
    match scale.is_finite() && scale > f64::EPSILON * moments.mean.abs() {
        true => Ok(ColumnRole::GivenNumbers {
            centre: moments.mean,
            scale,
        }),
        false => Err(format!(
            "the given column `{}` is constant: remove it from --given",
            column.name
        )),
    }
}

fn asked_role(column: &Column, kind: ColumnKind) -> Result<ColumnRole, String> {
    let numbers = || column.numbers().map_err(|error| error.to_string());
    match kind {
        ColumnKind::Numbers(likelihood) => {
            numbers()?;
            Ok(ColumnRole::Numbers(likelihood))
        }
        ColumnKind::Binary => {
            numbers()?;
            Ok(ColumnRole::Binary)
        }
        ColumnKind::Words => match words(column)? {
            words if words.len() > 1 => Ok(ColumnRole::Words(words)),
            words => Err(format!(
                "the column `{}` has only the value `{}`, but a category needs two: remove the column",
                column.name, words[0]
            )),
        },
    }
}

/// Determines the distribution of a column from its values. A constant column counts as real numbers, because the units
/// then omit it.
fn own_role(column: &Column, likelihood: Likelihood) -> Result<ColumnRole, String> {
    match &column.cells {
        Cells::Words(_) => Ok(ColumnRole::Words(words(column)?)),
        Cells::Numbers(numbers) => {
            let zeros = present(numbers).filter(|x| *x == 0.0).count();
            let ones = present(numbers).filter(|x| *x == 1.0).count();
            let binary = zeros > 0 && ones > 0 && zeros + ones == present(numbers).count();
            Ok(match binary {
                true => ColumnRole::Binary,
                false => ColumnRole::Numbers(likelihood),
            })
        }
    }
}

/// Converts a table to rows of numbers in the order of `columns`, and checks them. The table may have more columns.
pub(super) fn rows(columns: &[TableColumn], table: &Table) -> Result<Rows, Error> {
    let source = table.source();
    let mut coded = Vec::with_capacity(columns.len());
    for TableColumn { name, role } in columns {
        let column = table.column(name)?;
        let numbers = match role.words() {
            Some(words) => {
                let codes = column.codes(words).map_err(|error| at(source, error))?;
                let code = |code: Option<usize>| code.map_or(f64::NAN, |code| code as f64);
                codes.into_iter().map(code).collect()
            }
            None => column.numbers()?.to_vec(),
        };
        check(name, role, &numbers).map_err(|(row, what)| {
            Error::Input(format!(
                "`{source}`, row {}: the column `{name}` {what}",
                row + 1
            ))
        })?;
        coded.push(Column::new(name.clone(), Cells::Numbers(numbers)));
    }
    Ok(Rows::of_table(&Table::new(source, coded)?)?)
}

/// Returns the first row with a value that the column cannot have, and what is wrong with it.
fn check(name: &str, role: &ColumnRole, numbers: &[f64]) -> Result<(), (usize, String)> {
    if role.is_given()
        && let Some(row) = numbers.iter().position(|x| x.is_nan())
    {
        let what = format!(
            "has no value, but the model conditions on `{name}`: fill it in, or remove the row"
        );
        return Err((row, what));
    }
    let wrong = |x: &f64| match role {
        ColumnRole::Binary => (*x != 0.0 && *x != 1.0).then_some("0 or 1"),
        ColumnRole::Numbers(Likelihood::Categorical { .. }) => None,
        ColumnRole::Numbers(likelihood) => likelihood
            .check(&[*x as f32])
            .err()
            .map(|error| error.expected),
        _ => None,
    };
    let values = numbers.iter().enumerate().filter(|(_, x)| !x.is_nan());
    let mut found = values.filter_map(|(row, x)| Some((row, x, wrong(x)?)));
    match found.next() {
        Some((row, x, expected)) => Err((row, format!("has {x}, expected {expected}"))),
        None => Ok(()),
    }
}

/// Computes the standardised units of the modelled columns of real numbers.
pub(super) fn units(
    columns: &[TableColumn],
    rows: &Rows,
    train: &[usize],
    asked: Standardise,
) -> Result<Units, Error> {
    let real: Vec<bool> = columns
        .iter()
        .map(|column| match &column.role {
            // The units omit a column with a single word, because it is constant.
            ColumnRole::Words(words) => words.len() == 1,
            role => role.is_of_reals(),
        })
        .collect();
    let width = rows.width();
    let mut values = vec![0.0; width * train.len()];
    let pairs = values.chunks_exact_mut(width).zip(train);
    pairs.for_each(|(out, index)| rows.read_exact(*index, out));
    Units::of_some(width, &values, &[], asked, &real).map_err(|error| at(rows.source(), error))
}
