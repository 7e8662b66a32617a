//! The table of a regression. Its named columns contain numbers, truth values or factors.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jensen_data::{Adjacency, Cells, Table};

use crate::error::{Error, Result};

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameColumn {
    /// Numbers, in which NaN marks a missing value.
    Numbers(Vec<f64>),
    /// Truth values, stored as 0 and 1, in which NaN marks a missing value.
    Truth(Vec<f64>),
    /// Words, stored as a factor.
    Factor(Factor),
}

/// Words, stored as indices of their levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Factor {
    /// The index of each row's level, or `None` if the value is missing.
    pub codes: Vec<Option<u32>>,
    /// The names of the levels, in order. Factors for other rows can share them.
    pub levels: Arc<[String]>,
    /// Whether the levels are ordered.
    pub ordered: bool,
}

impl Factor {
    /// Creates a factor from words. Its levels are in alphabetical order.
    pub fn of_words<S: AsRef<str>>(words: &[Option<S>]) -> Self {
        let mut levels: Vec<&str> = words.iter().flatten().map(AsRef::as_ref).collect();
        levels.sort_unstable();
        levels.dedup();
        let code = |word: &S| {
            levels
                .binary_search(&word.as_ref())
                .ok()
                .map(|at| at as u32)
        };
        Self {
            codes: words.iter().map(|word| code(word.as_ref()?)).collect(),
            levels: levels.into_iter().map(str::to_owned).collect(),
            ordered: false,
        }
    }

    /// Creates a factor from numbers. Its levels are in increasing order.
    pub fn of_numbers(numbers: &[f64]) -> Self {
        let mut levels: Vec<f64> = numbers.iter().copied().filter(|x| !x.is_nan()).collect();
        levels.sort_unstable_by(f64::total_cmp);
        levels.dedup();
        let code = |x: &f64| {
            let at = levels.binary_search_by(|level| level.total_cmp(x));
            at.ok().map(|at| at as u32)
        };
        Self {
            codes: numbers.iter().map(code).collect(),
            levels: levels.iter().map(ToString::to_string).collect(),
            ordered: false,
        }
    }

    /// Creates a factor with the same levels and the given codes, for other rows.
    #[must_use]
    pub fn with_codes(&self, codes: Vec<Option<u32>>) -> Self {
        Self {
            codes,
            levels: Arc::clone(&self.levels),
            ordered: self.ordered,
        }
    }

    /// Returns the factor for the given rows, without levels that these rows do not use.
    #[must_use]
    pub fn at(&self, rows: &[usize]) -> Self {
        let codes: Vec<Option<u32>> = rows.iter().map(|row| self.codes[*row]).collect();
        let mut used = vec![false; self.levels.len()];
        codes
            .iter()
            .flatten()
            .for_each(|code| used[*code as usize] = true);
        let mut number = vec![0; used.len()];
        let mut levels = Vec::new();
        for (level, _) in used.iter().enumerate().filter(|(_, used)| **used) {
            number[level] = levels.len() as u32;
            levels.push(self.levels[level].clone());
        }
        let renumbered = codes.into_iter().map(|code| Some(number[code? as usize]));
        Self {
            codes: renumbered.collect(),
            levels: levels.into(),
            ordered: self.ordered,
        }
    }

    /// Converts the codes to indices into `levels`. Each row keeps its word.
    ///
    /// # Errors
    /// Fails with the first word that is not in `levels`.
    pub fn among(&self, levels: &[String]) -> std::result::Result<Self, String> {
        let mut known = BTreeMap::new();
        for (at, level) in levels.iter().enumerate() {
            known.entry(level).or_insert(at);
        }
        let places: Vec<Option<usize>> = (self.levels.iter())
            .map(|level| known.get(level).copied())
            .collect();
        let code = |code: &Option<u32>| match code {
            None => Ok(None),
            Some(code) => match places[*code as usize] {
                Some(place) => Ok(Some(place as u32)),
                None => Err(self.levels[*code as usize].clone()),
            },
        };
        Ok(Self {
            codes: self
                .codes
                .iter()
                .map(code)
                .collect::<std::result::Result<_, _>>()?,
            levels: levels.into(),
            ordered: self.ordered,
        })
    }
}

impl FrameColumn {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(x) | Self::Truth(x) => x.len(),
            Self::Factor(factor) => factor.codes.len(),
        }
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the value in a row is missing.
    pub fn is_missing(&self, row: usize) -> bool {
        match self {
            Self::Numbers(x) | Self::Truth(x) => x[row].is_nan(),
            Self::Factor(factor) => factor.codes[row].is_none(),
        }
    }

    /// Returns the column for the given rows.
    #[must_use]
    pub fn at(&self, rows: &[usize]) -> Self {
        let numbers = |x: &[f64]| rows.iter().map(|row| x[*row]).collect();
        match self {
            Self::Numbers(x) => Self::Numbers(numbers(x)),
            Self::Truth(x) => Self::Truth(numbers(x)),
            Self::Factor(factor) => Self::Factor(factor.at(rows)),
        }
    }
}

/// Named columns with the same number of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    /// The name of the table in messages.
    pub source: String,
    names: Vec<String>,
    columns: Vec<FrameColumn>,
    rows: usize,
    /// The maps to which formulas refer, keyed by file name.
    pub graphs: BTreeMap<String, Adjacency>,
}

impl Frame {
    /// Creates a frame from columns.
    ///
    /// # Errors
    /// Fails if the columns differ in length, or if two columns have the same name.
    pub fn new(source: impl Into<String>, columns: Vec<(String, FrameColumn)>) -> Result<Self> {
        let source = source.into();
        let rows = columns.first().map_or(0, |(_, column)| column.len());
        let mut known = BTreeSet::new();
        for (name, column) in &columns {
            if column.len() != rows {
                return Err(Error::new(format!(
                    "{source}: the column `{name}` has {} rows, but the first column has {rows}",
                    column.len()
                )));
            }
            if !known.insert(name) {
                return Err(Error::new(format!(
                    "{source}: two columns have the name `{name}`"
                )));
            }
        }
        let (names, columns) = columns.into_iter().unzip();
        Ok(Self {
            source,
            names,
            columns,
            rows,
            graphs: BTreeMap::new(),
        })
    }

    /// Converts a table. Words become factors, and columns of `true` and `false` become truth values.
    pub fn of_table(table: &Table) -> Self {
        let truth = |word: &str| match word {
            "TRUE" | "True" | "true" => Some(1.0),
            "FALSE" | "False" | "false" => Some(0.0),
            _ => None,
        };
        let column = |cells: &Cells| match cells {
            Cells::Numbers(x) => FrameColumn::Numbers(x.clone()),
            Cells::Words(words) => {
                let values: Option<Vec<f64>> = words
                    .iter()
                    .map(|word| word.as_deref().map_or(Some(f64::NAN), truth))
                    .collect();
                match values {
                    Some(values) => FrameColumn::Truth(values),
                    None => FrameColumn::Factor(Factor::of_words(words)),
                }
            }
        };
        let columns = table.columns();
        Self {
            source: table.source().to_owned(),
            names: columns.iter().map(|c| c.name.clone()).collect(),
            columns: columns.iter().map(|c| column(&c.cells)).collect(),
            rows: table.rows(),
            graphs: BTreeMap::new(),
        }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the names of the columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Iterates over the columns, each with its name.
    pub fn columns(&self) -> impl Iterator<Item = (&String, &FrameColumn)> {
        self.names.iter().zip(&self.columns)
    }

    /// Returns the column with this name.
    pub fn column(&self, name: &str) -> Option<&FrameColumn> {
        let at = self.names.iter().position(|other| other == name)?;
        Some(&self.columns[at])
    }

    /// Returns a copy of the frame in which the column `name` is replaced. If there is no such column, the copy is
    /// unchanged.
    #[must_use]
    pub fn with(&self, name: &str, column: FrameColumn) -> Self {
        let mut made = self.clone();
        if let Some(at) = made.names.iter().position(|other| other == name) {
            made.columns[at] = column;
        }
        made
    }

    /// Returns the frame for the given rows. If these are all rows, the columns are cloned as a whole.
    pub fn rows_of(&self, rows: &[usize]) -> Self {
        match rows.len() == self.rows {
            true => self.clone(),
            false => self.at(rows),
        }
    }

    /// Returns the frame for the given rows.
    #[must_use]
    pub fn at(&self, rows: &[usize]) -> Self {
        Self {
            source: self.source.clone(),
            names: self.names.clone(),
            columns: self.columns.iter().map(|column| column.at(rows)).collect(),
            rows: rows.len(),
            graphs: self.graphs.clone(),
        }
    }

    /// Returns the error for a name that is not the name of a column.
    pub fn unknown(&self, name: &str) -> Error {
        let error = Error::new(format!("{} has no column `{name}`", self.source));
        let near = jensen_data::similar_name(name, self.names.iter().map(String::as_str));
        error.help(match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let shown: Vec<String> = self
                    .names
                    .iter()
                    .take(12)
                    .map(|name| format!("`{name}`"))
                    .collect();
                let more = self.names.len().saturating_sub(12);
                let tail = match more {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                format!("it has {}{tail}", shown.join(", "))
            }
        })
    }
}
