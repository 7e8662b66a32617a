//! The positions of the columns of a table in the records of the networks.
//!
//! A column of words becomes one indicator for each of its words. A record contains the modelled columns, ordered by
//! their distribution, and then the given columns.

use jensen_neural::{Likelihood, Observation, Part};

use super::table::{ColumnRole, TableColumn};
use crate::Error;
use crate::units::Units;

/// One value of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slot {
    /// The position of the column among the columns that the units keep.
    kept: usize,
    map: Map,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Map {
    Same,
    /// Whether the value is the word with this number.
    Is(usize),
    Standard {
        centre: f64,
        scale: f64,
    },
}

/// The columns of a table, and their positions in a record.
#[derive(Clone, Debug, PartialEq)]
pub struct TableLayout {
    columns: Vec<TableColumn>,
    slots: Vec<Slot>,
    parts: Vec<Part>,
    given: usize,
}

impl TableLayout {
    /// Gives the columns that the units keep their positions in a record.
    pub(super) fn new(columns: Vec<TableColumn>, units: &Units) -> Result<Self, Error> {
        let all: Vec<usize> = (0..columns.len()).collect();
        let kept: Vec<(usize, &ColumnRole)> = units
            .of_kept(&all)
            .into_iter()
            .map(|column| &columns[column].role)
            .enumerate()
            .collect();
        let mut order: Vec<Likelihood> = Vec::new();
        for likelihood in kept.iter().filter_map(|(_, role)| role.likelihood()) {
            if !order.contains(&likelihood) {
                order.push(likelihood);
            }
        }
        let is_of_words =
            |likelihood: &Likelihood| matches!(likelihood, Likelihood::Categorical { .. });
        order.sort_by_key(is_of_words);
        let (mut slots, mut parts) = (Vec::new(), Vec::new());
        for likelihood in order {
            let before = slots.len();
            for (kept, role) in &kept {
                if role.likelihood() == Some(likelihood) {
                    slots.extend(slots_of(*kept, role));
                }
            }
            parts.push(Part {
                width: slots.len() - before,
                likelihood,
            });
        }
        if parts.is_empty() {
            return Err(Error::input(
                "every modelled column is constant, so Jensen has no data to learn from",
            ));
        }
        let modelled = slots.len();
        for (kept, role) in kept.iter().filter(|(_, role)| role.is_given()) {
            slots.extend(slots_of(*kept, role));
        }
        Ok(Self {
            given: slots.len() - modelled,
            slots,
            parts,
            columns,
        })
    }

    /// Returns the columns of the table.
    pub fn columns(&self) -> &[TableColumn] {
        &self.columns
    }

    /// Returns the number of values of a record.
    pub fn width(&self) -> usize {
        self.slots.len()
    }

    /// Returns the names of the columns.
    pub fn names(&self) -> Vec<String> {
        let columns = self.columns.iter();
        columns.map(|column| column.name.clone()).collect()
    }

    /// Returns for each column whether the model has a distribution for it.
    pub(super) fn modelled(&self) -> Vec<bool> {
        let columns = self.columns.iter();
        columns.map(|column| !column.role.is_given()).collect()
    }

    pub(super) fn observation(&self) -> Observation {
        let observation = Observation::of_parts(&self.parts).expect("at least one part");
        Observation {
            given: self.given,
            ..observation
        }
    }

    /// Returns the logarithms of the scales of the values of a record.
    pub(super) fn log_scales(&self, units: &Units) -> Vec<f64> {
        let scales = units.log_scales();
        let of = |slot: &Slot| match slot.map {
            Map::Same => scales[slot.kept],
            Map::Is(_) | Map::Standard { .. } => 0.0,
        };
        self.slots.iter().map(of).collect()
    }

    /// Converts a row of the table to a record.
    pub(super) fn record(&self, units: &Units, row: &[f64], out: &mut [f32]) {
        let kept: Vec<f64> = units.row(row).collect();
        for (out, slot) in out.iter_mut().zip(&self.slots) {
            let x = kept[slot.kept];
            *out = match slot.map {
                Map::Same => x,
                Map::Is(_) if x.is_nan() => x,
                Map::Is(word) => f64::from(x == word as f64),
                Map::Standard { centre, scale } => (x - centre) / scale,
            } as f32;
        }
    }

    /// Converts the modelled values of a record to a row of the table. A column of words gets the most probable word.
    /// The row has NaN in the given columns.
    pub(super) fn row(&self, units: &Units, values: &[f32]) -> Vec<f64> {
        let mut inside = vec![f64::NAN; units.width()];
        let mut best = vec![f32::NEG_INFINITY; units.width()];
        for (x, slot) in values.iter().zip(&self.slots) {
            match slot.map {
                Map::Is(word) if *x > best[slot.kept] => {
                    best[slot.kept] = *x;
                    inside[slot.kept] = word as f64;
                }
                Map::Is(_) => {}
                Map::Same | Map::Standard { .. } => inside[slot.kept] = f64::from(*x),
            }
        }
        let mut row = units.back(&inside);
        self.name(&mut row);
        row
    }

    /// Replaces the positions of words by the words themselves, where all words of a column are numbers.
    pub fn name(&self, row: &mut [f64]) {
        for (x, column) in row.iter_mut().zip(&self.columns) {
            if let Some(words) = column.role.words()
                && let Some(numbers) = numbers_of(words)
                && !x.is_nan()
            {
                *x = numbers[*x as usize];
            }
        }
    }

    /// Returns the words of a row, with `None` for each column that does not have words.
    pub fn words(&self, row: &[f64]) -> Vec<Option<&str>> {
        let word = |(x, column): (&f64, &'_ TableColumn)| -> Option<usize> {
            let words = column.role.words()?;
            (numbers_of(words).is_none() && !x.is_nan()).then_some(*x as usize)
        };
        let pairs = row.iter().zip(&self.columns);
        pairs
            .map(|(x, column)| {
                let at = word((x, column))?;
                column.role.words().map(|words| words[at].as_str())
            })
            .collect()
    }

    /// Parses values of the given columns, each written as `NAME=VALUE`. Returns the given values of a record, and a row
    /// of the table with NaN in the other columns.
    ///
    /// # Errors
    /// Fails if a given column has no value or an invalid one, or if another column has a value.
    pub fn given(&self, texts: &[String]) -> Result<(Vec<f32>, Vec<f64>), Error> {
        let mut row = vec![f64::NAN; self.columns.len()];
        let given = || {
            self.columns
                .iter()
                .filter(|column| column.role.is_given())
                .map(|column| format!("`{}`", column.name))
                .collect::<Vec<_>>()
                .join(", ")
        };
        for text in texts {
            let named = |at: usize, column: &TableColumn| {
                let value = text.strip_prefix(column.name.as_str())?.strip_prefix('=')?;
                column
                    .role
                    .is_given()
                    .then(|| (at, column.role.clone(), value.to_owned()))
            };
            let mut columns = self.columns.iter().enumerate();
            let found = columns.find_map(|(at, column)| named(at, column));
            let Some((at, role, value)) = found else {
                return Err(Error::Setting(format!(
                    "--given {text}: expected NAME=VALUE with one of the given columns of the fit: {}",
                    match given() {
                        none if none.is_empty() => "it has none".to_owned(),
                        names => names,
                    }
                )));
            };
            row[at] = match role.words() {
                Some(words) => {
                    let number = words.iter().position(|word| *word == value);
                    number.map(|number| number as f64).ok_or_else(|| {
                        Error::Setting(format!(
                            "--given {text}: the rows of the fit have no `{value}` in this column, but {}",
                            words
                                .iter()
                                .take(12)
                                .map(|word| format!("`{word}`"))
                                .collect::<Vec<_>>()
                                .join(", ")
                        ))
                    })?
                }
                None => match value.parse::<f64>() {
                    Ok(x) if x.is_finite() => x,
                    _ => {
                        return Err(Error::Setting(format!(
                            "--given {text}: `{value}` is not a number"
                        )));
                    }
                },
            };
        }
        let mut absent = self.columns.iter().zip(&row);
        let absent = absent.find(|(column, x)| column.role.is_given() && x.is_nan());
        if let Some((column, _)) = absent {
            return Err(Error::Setting(format!(
                "the fit conditions on {}: give a value of each, such as --given '{}=VALUE'",
                given(),
                column.name
            )));
        }
        let record = self.columns.iter().zip(&row).flat_map(|(column, x)| {
            let is_given = column.role.is_given();
            slots_of(0, &column.role)
                .into_iter()
                .filter(move |_| is_given)
                .map(move |slot| match slot.map {
                    Map::Same => *x as f32,
                    Map::Is(word) => f32::from(*x == word as f64),
                    Map::Standard { centre, scale } => ((x - centre) / scale) as f32,
                })
        });
        let record = record.collect();
        self.name(&mut row);
        Ok((record, row))
    }

    /// Remarks on columns that probably contain identifiers.
    pub(super) fn notes(&self, rows: usize) -> Vec<String> {
        let many = |column: &&TableColumn| {
            let words = column.role.words();
            words.is_some_and(|words| words.len() > 20 && 2 * words.len() > rows)
        };
        let columns = self.columns.iter().filter(many);
        columns
            .map(|column| {
                format!(
                    "the column `{}` has almost as many words as there are rows: remove it if it contains names",
                    column.name
                )
            })
            .collect()
    }
}

/// Lists the numbers of columns with each distribution, such as `3 gaussian, 2 categorical`.
pub fn columns_in_words(columns: &[TableColumn]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for column in columns {
        let name = match column.role.likelihood() {
            Some(likelihood) => likelihood.name(),
            None => "given",
        };
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    let counts = counts.iter().map(|(name, count)| format!("{count} {name}"));
    counts.collect::<Vec<_>>().join(", ")
}

fn slots_of(kept: usize, role: &ColumnRole) -> Vec<Slot> {
    let slot = |map| Slot { kept, map };
    match role {
        ColumnRole::Numbers(_) | ColumnRole::Binary => vec![slot(Map::Same)],
        ColumnRole::Words(words) | ColumnRole::GivenWords(words) => {
            (0..words.len()).map(|word| slot(Map::Is(word))).collect()
        }
        ColumnRole::GivenNumbers { centre, scale } => vec![slot(Map::Standard {
            centre: *centre,
            scale: *scale,
        })],
    }
}

/// Returns the words as numbers, if all of them are numbers.
fn numbers_of(words: &[String]) -> Option<Vec<f64>> {
    words.iter().map(|word| word.parse().ok()).collect()
}
