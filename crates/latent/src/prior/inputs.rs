//! Maps the rows of a table to latent variables by their times, regions, cells, groups or covariates.

use std::borrow::Cow;

use rayon::prelude::*;

use super::graph::{Graph, Lattice};
use super::times::{Apart, Times};
use crate::{Dense, Sparse};

/// The columns of a table that have no other role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// Numeric columns, which are the default inputs of a Gaussian process.
    pub columns: Vec<String>,
    /// Columns of words, which a Gaussian process cannot use as inputs.
    pub words: Vec<String>,
}

/// Reads the tables and files to which a specification refers. Errors are messages for the user.
pub trait Source {
    /// Returns the number of rows.
    fn rows(&self) -> usize;

    /// Returns the number of linear predictors of a row, each with its own copy of the prior.
    fn copies(&self) -> usize {
        1
    }

    /// Returns the numbers in a column, with NaN for missing values.
    ///
    /// # Errors
    /// Fails if the column does not exist or contains words.
    fn numbers(&self, column: &str) -> Result<Cow<'_, [f64]>, String>;

    /// Returns the values of a column as words, with `None` for missing values.
    ///
    /// # Errors
    /// Fails if the column does not exist.
    fn words(&self, column: &str) -> Result<Vec<Option<String>>, String>;

    /// Returns whether a column contains words.
    ///
    /// # Errors
    /// Fails if the column does not exist.
    fn holds_words(&self, column: &str) -> Result<bool, String>;

    /// Returns the default inputs of a Gaussian process.
    fn inputs(&self) -> Inputs;

    /// Reads a graph from a file.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    fn graph(&self, file: &str) -> Result<Graph, String>;

    /// Reads a square matrix from a file.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or if its matrix is not square.
    fn matrix(&self, file: &str) -> Result<Dense, String>;

    /// Reads a sparse symmetric matrix from a file and returns both of its triangles.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or does not contain such a matrix.
    fn sparse(&self, file: &str) -> Result<Sparse, String>;

    /// Reads a mask for a grid of this size and returns its cells in row order.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or if the mask does not have this size.
    fn mask(&self, file: &str, rows: usize, columns: usize) -> Result<Vec<bool>, String>;
}

pub(super) fn complete(
    source: &dyn Source,
    column: &str,
    rows: &[usize],
) -> Result<Vec<f64>, String> {
    let all = source.numbers(column)?;
    present(&all, column, rows)?;
    Ok(rows.iter().map(|row| all[*row]).collect())
}

fn present(all: &[f64], column: &str, rows: &[usize]) -> Result<(), String> {
    let Some(at) = rows.par_iter().position_first(|row| !all[*row].is_finite()) else {
        return Ok(());
    };
    let (row, x) = (rows[at], all[rows[at]]);
    Err(format!(
        "the column `{column}` is {} in row {}; fill it in or remove the row",
        if x.is_nan() {
            "missing".to_owned()
        } else {
            x.to_string()
        },
        row + 1
    ))
}

pub(super) fn complete_words(
    source: &dyn Source,
    column: &str,
    rows: &[usize],
) -> Result<Vec<String>, String> {
    let all = source.words(column)?;
    rows.iter()
        .map(|row| {
            all[*row].clone().ok_or_else(|| {
                format!(
                    "the column `{column}` is missing in row {}; fill it in or remove the row",
                    row + 1
                )
            })
        })
        .collect()
}

/// The nodes of a part of the model, and the rule that assigns a node to each row of the table.
#[derive(Clone, Debug, PartialEq)]
pub enum Index {
    /// One node per row, in the order of the rows.
    Rows {
        /// Number of nodes.
        nodes: usize,
    },
    /// Evenly spaced nodes along a numeric column.
    Line {
        /// The column.
        column: String,
        /// The value of the column at the first node.
        from: f64,
        /// The distance between nodes.
        step: f64,
        /// Number of nodes.
        nodes: usize,
        /// Whether a row between two nodes is interpolated linearly. If it is not, every row must be at a node.
        interpolated: bool,
    },
    /// Nodes at the values of a numeric column.
    Times(Times),
    /// One node per distinct value of a column.
    Groups {
        /// The column.
        column: String,
        /// The distinct values in sorted order.
        levels: Vec<String>,
    },
    /// The nodes of a graph or the rows of a matrix. A column contains their numbers.
    Regions {
        /// The column.
        column: String,
        /// The number of the first node in the column, either 0 or 1.
        first: usize,
        /// Number of nodes.
        nodes: usize,
    },
    /// The cells of a grid. A single column contains their numbers in row order, and two columns contain their row and
    /// column numbers. Without a column, row i of the table is cell i.
    Cells {
        /// The names of the columns, at most two.
        columns: Vec<String>,
        /// The number of the first cell in the columns, either 0 or 1.
        first: usize,
        /// The grid.
        lattice: Lattice,
    },
}

/// A row counts as being at a node if the distance between them is at most this many steps. The tolerance allows for
/// rounded values in files.
const AT_NODE: f64 = 1e-6;

/// Returns the node at a position, which is measured in steps from the first node. Returns `None` between nodes.
fn at_node(position: f64) -> Option<f64> {
    let nearest = position.round();
    let away = (position - nearest).abs() > AT_NODE * nearest.abs().max(1.0);
    (!away).then_some(nearest)
}

/// The rules for the nodes of a process over a numeric column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spacing {
    /// The largest number of evenly spaced nodes.
    pub(super) most: usize,
    /// Whether a row between two evenly spaced nodes is interpolated linearly. If it is not, such a row is an error.
    pub(super) interpolated: bool,
    /// The nodes to use if evenly spaced nodes would be too many, or if rows are between them. `None` if the process
    /// exists only on evenly spaced nodes.
    pub(super) otherwise: Option<Apart>,
}

impl Index {
    /// Returns nodes from the smallest to the largest value of the column, unless the user sets the ends.
    ///
    /// Evenly spaced nodes are as far apart as the closest values. If values lie between them, or if there would be too
    /// many of them, the nodes are at the values. If the user sets a step, nodes that interpolate rows are this far
    /// apart, and other nodes measure hyperparameters in this step.
    pub(super) fn line(
        source: &dyn Source,
        column: &str,
        rows: &[usize],
        [from, to, step]: [Option<f64>; 3],
        spacing: Spacing,
    ) -> Result<Self, String> {
        let mut own = complete(source, column, rows)?;
        own.sort_by(f64::total_cmp);
        let mut values = own.clone();
        values.extend(from.iter().chain(&to));
        values.sort_by(f64::total_cmp);
        let (Some(least), Some(most)) = (values.first(), values.last()) else {
            return Err("the table has no rows".to_owned());
        };
        let (from, to) = (from.unwrap_or(*least), to.unwrap_or(*most));
        let smallest = values
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .filter(|gap| *gap > 0.0)
            .fold(f64::INFINITY, f64::min);
        // The step divides the distance between the ends evenly. The smallest distance on its own is inaccurate,
        // because it is a difference of rounded numbers.
        let whole = |step: f64| {
            let steps = (to - from) / step;
            let near = (steps - steps.round()).abs() < 0.1 && steps > 0.5;
            if near {
                (to - from) / steps.round()
            } else {
                step
            }
        };
        let given = step;
        let step = match step {
            Some(step) => step,
            None if smallest.is_finite() => whole(smallest),
            None => 1.0,
        };
        let found = (to - from) / step + 1.5;
        let too_many = found.floor() > spacing.most as f64;
        let own_nodes = given.is_some() && spacing.interpolated;
        if let Some(apart) = spacing.otherwise.filter(|_| !own_nodes && step > 0.0) {
            let inside = values.iter().filter(|x| (from..=to).contains(*x));
            let away = |x: &f64| at_node((x - from) / step).is_none();
            if too_many || inside.into_iter().any(away) {
                let times = Times::new(column, &own, [from, to], given, apart)?;
                return Ok(Self::Times(times));
            }
        } else if too_many && own_nodes {
            return Err(format!(
                "{:.0} nodes from {from} to {to} by {step} are more than {}, beyond which double precision \
                 cannot resolve their differences; choose a longer `step` (rows between nodes are interpolated)",
                found.floor(),
                spacing.most
            ));
        } else if too_many && given.is_none() {
            return Err(format!(
                "the closest values of `{column}` between {from} and {to} differ by {step:.3e}, which would \
                 need {found:.0} evenly spaced nodes for {} rows; round the column, or set `step`",
                rows.len()
            ));
        }
        if !(step > 0.0 && (1.0..1e8).contains(&found)) {
            return Err(format!(
                "there are no nodes, or too many, from {from} to {to} by {step}; set `from`, `to` and `step`"
            ));
        }
        let short =
            spacing.interpolated && from + step * (found.floor() - 1.0) < to - AT_NODE * step;
        Ok(Self::Line {
            column: column.to_owned(),
            from,
            step,
            nodes: found as usize + usize::from(short),
            interpolated: spacing.interpolated,
        })
    }

    /// Returns, for each row of an interpolated line, the node before the row and the weight of the node after it.
    /// Returns `None` if all rows are at nodes.
    pub(super) fn between(
        &self,
        source: &dyn Source,
        rows: &[usize],
    ) -> Result<Option<Vec<(usize, f64)>>, String> {
        let weights: Vec<(usize, f64)> = match self {
            Self::Times(times) => times.weights(source, rows)?,
            Self::Line {
                column,
                from,
                step,
                interpolated: true,
                ..
            } => {
                let nodes = self.find(source, rows)?;
                let numbers = complete(source, column, rows)?;
                let each = nodes.iter().zip(&numbers);
                each.map(|(node, x)| {
                    let node = node.unwrap_or_default();
                    let weight = (x - from) / step - node as f64;
                    (node, if weight < AT_NODE { 0.0 } else { weight })
                })
                .collect()
            }
            _ => return Ok(None),
        };
        Ok(weights.iter().any(|(_, w)| *w > 0.0).then_some(weights))
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        match self {
            Self::Rows { nodes } | Self::Line { nodes, .. } | Self::Regions { nodes, .. } => *nodes,
            Self::Times(times) => times.nodes.len(),
            Self::Groups { levels, .. } => levels.len(),
            Self::Cells { lattice, .. } => lattice.nodes(),
        }
    }

    /// Returns the node of each row. If a row has no node, its element is an error with the number of a new group. Rows
    /// of the same new group have the same number.
    pub(super) fn positions(
        &self,
        source: &dyn Source,
        rows: &[usize],
    ) -> Result<Vec<Result<usize, usize>>, String> {
        let found = self.find(source, rows)?;
        let unknown: Vec<usize> = (0..rows.len()).filter(|i| found[*i].is_none()).collect();
        let (Self::Groups { column, .. }, false) = (self, unknown.is_empty()) else {
            let positions = found.into_iter().enumerate();
            return Ok(positions.map(|(i, node)| node.ok_or(i)).collect());
        };
        let own: Vec<usize> = unknown.iter().map(|i| rows[*i]).collect();
        let words = complete_words(source, column, &own)?;
        let mut names = words.clone();
        names.sort();
        names.dedup();
        let mut positions: Vec<Result<usize, usize>> =
            found.into_iter().map(|node| node.ok_or(0)).collect();
        for (i, word) in unknown.iter().zip(&words) {
            positions[*i] = Err(names.binary_search(word).unwrap_or_default());
        }
        Ok(positions)
    }

    pub(super) fn find(
        &self,
        source: &dyn Source,
        rows: &[usize],
    ) -> Result<Vec<Option<usize>>, String> {
        let whole = |column: &str| whole_numbers(source, column, rows);
        match self {
            Self::Rows { nodes } => rows
                .iter()
                .map(|row| match row < nodes {
                    true => Ok(Some(*row)),
                    false => Err(format!(
                        "row {} has no node: the field has {nodes} nodes, one per row; name a column with \
                         `on=` that gives the node of each row",
                        row + 1
                    )),
                })
                .collect(),
            Self::Line {
                column,
                from,
                step,
                nodes,
                interpolated,
            } => {
                let numbers = complete(source, column, rows)?;
                (numbers.iter().zip(rows))
                    .map(|(x, row)| {
                        let position = (x - from) / step;
                        let away = at_node(position).is_none();
                        // A row between two nodes is assigned to the node before it.
                        let node = at_node(position).unwrap_or_else(|| position.floor());
                        if away && !interpolated {
                            Err(format!(
                                "row {} has `{column}` = {x}, which is not among the evenly spaced nodes \
                                 {from}, {}, …; round the column, or set `step`",
                                row + 1,
                                from + step
                            ))
                        } else if node < 0.0 || node + f64::from(u8::from(away)) >= *nodes as f64 {
                            Err(format!(
                                "row {} has `{column}` = {x}, outside the nodes from {from} to {}; set `from` and `to` when fitting",
                                row + 1,
                                from + step * (*nodes as f64 - 1.0)
                            ))
                        } else {
                            Ok(Some(node as usize))
                        }
                    })
                    .collect()
            }
            Self::Times(times) => times.find(source, rows),
            Self::Groups { column, levels } => {
                let words = complete_words(source, column, rows)?;
                Ok(words.iter().map(|word| levels.binary_search(word).ok()).collect())
            }
            Self::Regions {
                column,
                first,
                nodes,
            } => (whole(column)?.iter().zip(rows))
                .map(|(number, row)| {
                    let node = number - *first as i64;
                    match usize::try_from(node).ok().filter(|n| n < nodes) {
                        Some(node) => Ok(Some(node)),
                        None => Err(format!(
                            "row {} has `{column}` = {number}, but nodes are numbered from {first} to {}",
                            row + 1,
                            nodes + first - 1
                        )),
                    }
                })
                .collect(),
            Self::Cells {
                columns,
                first,
                lattice,
            } => {
                let (height, width) = (lattice.rows, lattice.columns);
                let shift = |x: i64| usize::try_from(x - *first as i64).unwrap_or(usize::MAX);
                let cells: Vec<(usize, usize)> = match columns.as_slice() {
                    [] => rows.iter().map(|row| (row / width, row % width)).collect(),
                    [column] => (whole(column)?.into_iter().map(shift))
                        .map(|cell| (cell / width, cell % width))
                        .collect(),
                    [row, column, ..] => (whole(row)?.into_iter().map(shift))
                        .zip(whole(column)?.into_iter().map(shift))
                        .collect(),
                };
                (cells.iter().zip(rows))
                    .map(|((r, c), row)| match lattice.node(*r, *c) {
                        Some(node) => Ok(Some(node)),
                        None => Err(format!(
                            "row {} is in a hole of the grid or outside its {height} × {width} cells (numbered \
                             from {first})",
                            row + 1
                        )),
                    })
                    .collect()
            }
        }
    }
}

fn whole_numbers(source: &dyn Source, column: &str, rows: &[usize]) -> Result<Vec<i64>, String> {
    let numbers = complete(source, column, rows)?;
    (numbers.iter().zip(rows))
        .map(|(x, row)| match x.fract() == 0.0 && x.abs() < 1e15 {
            true => Ok(*x as i64),
            false => Err(format!(
                "the column `{column}` must have integers, but row {} has {x}",
                row + 1
            )),
        })
        .collect()
}

/// The units of a model in terms of the units of its table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Units {
    /// The response value in the table's units that corresponds to 1 in the model.
    pub response: f64,
    /// Whether covariates are divided by their standard deviations.
    pub scaled: bool,
    /// Whether covariates are centred.
    pub centred: bool,
}

impl Units {
    /// The units of the table itself.
    pub const TABLE: Self = Self {
        response: 1.0,
        scaled: false,
        centred: false,
    };
}

/// A column counts as constant if its spread divided by its size is below this value. Rounding errors cause a spread of
/// a few times 1e-16 of the size.
const CONSTANT: f64 = 1e-12;

/// A covariate in the model's units: a numeric column, or the indicator of one level of a column of words.
#[derive(Clone, Debug, PartialEq)]
pub struct Covariate {
    /// The column.
    pub column: String,
    /// The level that the indicator represents, or `None` for a numeric column.
    pub level: Option<String>,
    /// The value of the column at which the covariate is 0.
    pub centre: f64,
    /// The amount by which the column changes when the covariate changes by 1.
    pub scale: f64,
    /// The wave of the column that is the covariate, or `None` for the column itself.
    pub wave: Option<Wave>,
}

/// A wave of a column x with a period, in the units of the column. Both waves together are a point on a circle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wave {
    /// sin(2πx/period).
    Sine(f64),
    /// cos(2πx/period).
    Cosine(f64),
}

impl Wave {
    fn at(self, x: f64) -> f64 {
        // The remainder keeps the digits of large values, such as years.
        let angle = |period: f64| std::f64::consts::TAU * (x % period) / period;
        match self {
            Self::Sine(period) => angle(period).sin(),
            Self::Cosine(period) => angle(period).cos(),
        }
    }
}

impl Covariate {
    pub(super) fn plain(column: &str) -> Self {
        Self {
            column: column.to_owned(),
            level: None,
            centre: 0.0,
            scale: 1.0,
            wave: None,
        }
    }

    /// Computes the centre of the values in these rows and their root mean square around the centre. The centre is the
    /// mean if `centred` is true, and otherwise 0. Returns `None` if all values are equal up to rounding, or if all are
    /// zero and the covariate is not centred.
    pub(super) fn measured(
        &self,
        source: &dyn Source,
        rows: &[usize],
        centred: bool,
    ) -> Result<Option<(f64, f64)>, String> {
        let all = self.values(source, rows)?;
        present(&all, &self.column, rows)?;
        let own: Vec<f64> = rows.iter().map(|row| all[*row]).collect();
        let n = own.len().max(1) as f64;
        let mean = jensen_math::sum::pairwise_sum(&own) / n;
        let centre = if centred { mean } else { 0.0 };
        let squares: Vec<f64> = own.iter().map(|x| (x - centre) * (x - centre)).collect();
        let scale = (jensen_math::sum::pairwise_sum(&squares) / n).sqrt();
        let size = own.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        Ok((scale > CONSTANT * size).then_some((centre, scale)))
    }

    /// Returns the covariates that a column defines: the column itself, or indicators of all of its levels except the
    /// first.
    pub(super) fn of(
        source: &dyn Source,
        column: &str,
        rows: &[usize],
    ) -> Result<Vec<Self>, String> {
        if !source.holds_words(column)? {
            return Ok(vec![Self::plain(column)]);
        }
        let mut levels = complete_words(source, column, rows)?;
        levels.sort();
        levels.dedup();
        if levels.len() < 2 {
            return Err(format!(
                "the column `{column}` has a single level; remove it"
            ));
        }
        let indicator = |level: String| Self {
            level: Some(level),
            ..Self::plain(column)
        };
        Ok(levels.into_iter().skip(1).map(indicator).collect())
    }

    fn values<'a>(&self, source: &'a dyn Source, rows: &[usize]) -> Result<Cow<'a, [f64]>, String> {
        if let Some(wave) = self.wave {
            let numbers = source.numbers(&self.column)?;
            return Ok(numbers.iter().map(|x| wave.at(*x)).collect());
        }
        let Some(level) = &self.level else {
            return source.numbers(&self.column);
        };
        complete_words(source, &self.column, rows)?;
        let words = source.words(&self.column)?;
        let indicator = |word: &Option<String>| f64::from(word.as_ref() == Some(level));
        Ok(words.iter().map(indicator).collect())
    }

    /// Returns the column of all covariates in a list, or `None` if they belong to several columns.
    pub fn only_column(list: &[Self]) -> Option<&str> {
        let first = list.first()?;
        let same = list.iter().all(|own| own.column == first.column);
        same.then_some(first.column.as_str())
    }

    /// Returns the name of the covariate, such as `altitude` or `town[Bonn]`.
    pub fn name(&self) -> String {
        match &self.level {
            None => match self.wave {
                None => self.column.clone(),
                Some(Wave::Sine(_)) => format!("sin({})", self.column),
                Some(Wave::Cosine(_)) => format!("cos({})", self.column),
            },
            Some(level) => format!("{}[{level}]", self.column),
        }
    }
}

pub(super) fn check(
    covariates: &[Covariate],
    source: &dyn Source,
    rows: &[usize],
) -> Result<(), String> {
    let values = |c: &Covariate| present(&c.values(source, rows)?, &c.column, rows);
    covariates.iter().try_for_each(values)
}

pub(super) fn fill(
    covariates: &[Covariate],
    source: &dyn Source,
    rows: &[usize],
    out: &mut [f64],
) -> Result<(), String> {
    if rows.is_empty() {
        return Ok(());
    }
    let values = covariates
        .iter()
        .map(|covariate| covariate.values(source, rows))
        .collect::<Result<Vec<_>, _>>()?;
    let filled: Vec<Result<(), String>> = out
        .par_chunks_mut(rows.len())
        .zip(covariates)
        .zip(&values)
        .map(|((out, covariate), all)| {
            for (out, row) in out.iter_mut().zip(rows) {
                *out = (all[*row] - covariate.centre) / covariate.scale;
            }
            match out.iter().all(|x| x.is_finite()) {
                true => Ok(()),
                false => present(all, &covariate.column, rows),
            }
        })
        .collect();
    filled.into_iter().collect()
}

pub(super) fn matrix(
    covariates: &[Covariate],
    source: &dyn Source,
    rows: &[usize],
) -> Result<Dense, String> {
    let mut out = Dense::zeros(rows.len(), covariates.len());
    fill(covariates, source, rows, &mut out.data)?;
    Ok(out)
}
