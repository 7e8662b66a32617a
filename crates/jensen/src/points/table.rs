//! Tables of numbers, divided into training rows and held-out rows.

use std::path::Path;
use std::sync::Arc;

use jensen_conjugate::models::{Covariance, GaussianPrior, Gaussians, sample};
use jensen_data::{Cells, Table};
use jensen_math::rng::{Purpose, permutation};
use jensen_math::sum::ColumnMoments;

use super::job::COPIES;
use super::{CovarianceShape, PointRequest};
use crate::Error;
use crate::job::Need;
use crate::units::{Standardise, Units};

/// Rows of numbers, divided into training rows and held-out rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// The name of the file, or the label that the caller chose.
    pub source: String,
    /// The names of the columns.
    pub names: Vec<String>,
    /// The training rows, concatenated in order.
    pub train: Vec<f64>,
    /// The held-out rows, concatenated in order.
    pub heldout: Vec<f64>,
    /// The digest of the data.
    pub digest: String,
    /// The location of the first missing value: the row, counted from 1, and the name of the column.
    pub missing: Option<(usize, String)>,
    /// The number of equal rows that each training row stands for, or an empty array if all rows stand for themselves.
    pub weights: Arc<[f64]>,
    /// The number of equal rows that each held-out row stands for.
    pub heldout_weights: Vec<f64>,
    /// The known states of the rows, for chains only.
    pub labels: Labels,
    /// The total number of training rows if `train` contains only a sample of the rows of shards, and `None` otherwise.
    pub elsewhere: Option<usize>,
}

/// The states of rows that are known before a fit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Labels {
    /// The state of every row, or `None` if it is unknown. The array is empty if no state is known.
    pub states: Vec<Option<usize>>,
    /// The names of the first states, if the states are named by words.
    pub names: Vec<String>,
}

impl Labels {
    /// Returns the number of different states that are known.
    pub(super) fn count(&self) -> usize {
        let known: std::collections::BTreeSet<usize> =
            self.states.iter().flatten().copied().collect();
        known.len()
    }

    /// Reads labels from a column. Whole numbers from 1 are states, and words are states in alphabetical order. Missing
    /// values are unknown states.
    ///
    /// # Errors
    /// Fails if there is no such column, or if a number is not a whole number of at least 1.
    pub fn of_column(table: &Table, column: &str) -> Result<Self, Error> {
        let refuse = |row: usize, x: f64| {
            Error::Input(format!(
                "`{}`, row {}: the state {x} in `{column}` is not a whole number of at least 1",
                table.source(),
                row + 1
            ))
        };
        match &table.column(column)?.cells {
            Cells::Numbers(numbers) => {
                let state = |(row, x): (usize, &f64)| match *x {
                    x if x.is_nan() => Ok(None),
                    x if x >= 1.0 && x.fract() == 0.0 => Ok(Some(x as usize - 1)),
                    x => Err(refuse(row, x)),
                };
                let states: Result<_, Error> = numbers.iter().enumerate().map(state).collect();
                Ok(Self {
                    states: states?,
                    names: Vec::new(),
                })
            }
            Cells::Words(words) => {
                let known: std::collections::BTreeSet<&String> = words.iter().flatten().collect();
                let names: Vec<String> = known.into_iter().cloned().collect();
                let state = |word: &Option<String>| {
                    let word = word.as_ref()?;
                    names.binary_search(word).ok()
                };
                Ok(Self {
                    states: words.iter().map(state).collect(),
                    names,
                })
            }
        }
    }
}

const SPLIT: Purpose = Purpose::new("held-out points");

impl Points {
    /// Returns the number of columns.
    pub fn dim(&self) -> usize {
        self.names.len()
    }

    /// Returns the number of training rows.
    pub fn count(&self) -> usize {
        self.elsewhere
            .unwrap_or(self.train.len() / self.dim().max(1))
    }

    /// Checks that an image of the given size has one pixel per column.
    ///
    /// # Errors
    /// Fails if the number of pixels is not equal to the number of columns.
    pub fn check_size(&self, size: Option<(usize, usize)>) -> Result<(), Error> {
        match size {
            Some((width, height)) if width.checked_mul(height) != Some(self.dim()) => {
                Err(Error::Setting(format!(
                    "pictures of {width}x{height} pixels need one column per pixel, but `{}` has {}",
                    self.source,
                    self.dim()
                )))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn check_complete(&self, why: &str) -> Result<(), Error> {
        match &self.missing {
            None => Ok(()),
            Some((row, name)) => Err(Error::Input(format!(
                "`{}`, row {row}: the value of `{name}` is missing; {why}",
                self.source
            ))),
        }
    }

    /// Rejects missing values if the temperature policy infers temperatures. Such a policy computes normalisers that
    /// need complete rows.
    pub(super) fn check_heat(&self, request: &PointRequest) -> Result<(), Error> {
        match request.temper()?.name() {
            "global" | "local" if !self.weights.is_empty() => Err(Error::setting(
                "inferred temperatures need rows without weights: fit with --temper anneal=50 or none",
            )),
            "global" | "local" => self.check_complete(
                "inferred temperatures need complete rows: fit with --temper anneal=50 or none, or fill it in",
            ),
            _ => Ok(()),
        }
    }

    /// Rejects weights of rows, which only mixtures support.
    pub(super) fn check_unweighted(&self) -> Result<(), Error> {
        match self.weights.is_empty() {
            true => Ok(()),
            false => Err(Error::setting("only rows of mixtures can have weights")),
        }
    }

    pub(super) fn check_columns(&self) -> Result<(), Error> {
        let known = |d: usize| {
            let mut column = self.train.iter().skip(d).step_by(self.dim());
            column.any(|x| !x.is_nan())
        };
        match (0..self.dim()).find(|d| !known(*d)) {
            None => Ok(()),
            Some(d) => Err(Error::Input(format!(
                "`{}`: the column `{}` has no number: remove it",
                self.source, self.names[d]
            ))),
        }
    }

    pub(super) fn units(&self, asked: Standardise) -> Result<Units, Error> {
        let all = vec![true; self.dim()];
        let units = Units::of_some(self.dim(), &self.train, &self.weights, asked, &all);
        units.map_err(|error| Error::Input(format!("`{}`: {error}", self.source)))
    }

    /// Returns Gaussian components for the training rows in standardised units. The components report densities in the
    /// original units.
    pub(super) fn gaussians(
        &self,
        shape: CovarianceShape,
        units: &Units,
        prior: GaussianPrior,
    ) -> Gaussians {
        let rows = units.rows(&self.train);
        let columns = ColumnMoments::weighted(units.width(), &rows, &self.weights);
        Gaussians::with_columns(shape.into(), rows, &columns, prior)
            .with_log_scales(units.log_scales())
    }

    /// Returns the components of [`gaussians`](Self::gaussians) for a fit with `parts` components and the given seed.
    /// The prior correlations are estimated from the rows that the start uses. The function returns [`Error::Memory`]
    /// if the covariance matrices would need more than `limit` bytes.
    pub(super) fn gaussians_to_fit(
        &self,
        shape: CovarianceShape,
        units: &Units,
        prior: GaussianPrior,
        (parts, seed, limit): (u64, u64, u64),
    ) -> Result<Gaussians, Error> {
        if Covariance::from(shape).is_matrix() {
            self.covariances(parts).check(limit)?;
        }
        let row = |at: usize| &self.train[at * self.dim()..(at + 1) * self.dim()];
        let gaussians = self.gaussians(shape, units, prior);
        Ok(match sample(self.count(), seed) {
            None => gaussians.with_correlation_of(&units.rows(&self.train), &self.weights),
            Some(rows) => {
                let known = rows.iter().filter_map(|at| self.weights.get(*at).copied());
                let weights: Vec<f64> = known.collect();
                let looked_at: Vec<f64> =
                    rows.into_iter().flat_map(|at| units.row(row(at))).collect();
                gaussians.with_correlation_of(&looked_at, &weights)
            }
        })
    }

    /// Returns the memory that covariance matrices of all columns need. Jensen must check this memory separately,
    /// because it allocates the matrices before the job reports its memory.
    fn covariances(&self, parts: u64) -> Need {
        let columns = self.dim() as u64;
        Need {
            what: format!("{parts} covariance matrices of {columns} columns"),
            // The covariance matrices are the largest part of the global parameters and are copied as often as these.
            bytes: columns
                .saturating_mul(columns)
                .saturating_mul(parts)
                .saturating_mul(COPIES * size_of::<f64>() as u64),
            advice: "use --covariance diagonal, or fewer columns".to_owned(),
        }
    }

    /// Reads the columns with the given names. All rows become training rows.
    ///
    /// # Errors
    /// Fails if a column does not exist or if it contains values that are not numbers.
    pub fn of_columns(table: &Table, names: &[String]) -> Result<Self, Error> {
        let columns: Vec<&[f64]> = names
            .iter()
            .map(|name| table.numbers(name))
            .collect::<Result<_, _>>()?;
        let request = PointRequest::default();
        Self::of(table, names.to_vec(), &columns, &request, (0, None))
    }

    /// Reads points from a table like [`of_table`](Self::of_table). The column `weights` contains the number of equal
    /// rows that each row stands for.
    ///
    /// # Errors
    /// Fails under the same conditions as [`of_table`](Self::of_table). Also fails if there is no such column, if a
    /// weight is missing, negative or infinite, or if all weights are 0.
    pub fn of_weighted(
        table: &Table,
        weights: &str,
        request: &PointRequest,
    ) -> Result<Self, Error> {
        let own = table.numbers(weights)?;
        let names = table.names().into_iter().filter(|name| *name != weights);
        let names: Vec<String> = names.map(str::to_owned).collect();
        let columns: Result<Vec<&[f64]>, _> =
            names.iter().map(|name| table.numbers(name)).collect();
        Self::of(table, names, &columns?, request, (0, Some(own)))
    }

    /// Reads a table of numeric columns from a file. Cells of the table may be missing.
    ///
    /// # Errors
    /// Fails if the file cannot be read, if the table is empty, or if a cell is not a number.
    pub fn read(path: &Path, request: &PointRequest) -> Result<Self, Error> {
        Self::of_table(&Table::read(path)?, request)
    }

    /// Reads points from a table of numeric columns and holds out some of the rows. Cells of the table may be missing.
    ///
    /// # Errors
    /// Fails if the table is empty or if a cell is infinite or not a number.
    pub fn of_table(table: &Table, request: &PointRequest) -> Result<Self, Error> {
        Self::of_shard(table, request, 0)
    }

    /// Reads points from the table of the shard with the number `shard`. Each shard chooses its own held-out rows.
    ///
    /// # Errors
    /// Fails under the same conditions as [`of_table`](Self::of_table).
    pub fn of_shard(table: &Table, request: &PointRequest, shard: u64) -> Result<Self, Error> {
        let columns: Vec<&[f64]> = table
            .names()
            .iter()
            .map(|name| table.numbers(name))
            .collect::<Result<_, _>>()?;
        let names = table.names().iter().map(|n| (*n).to_owned()).collect();
        Self::of(table, names, &columns, request, (shard, None))
    }

    fn of(
        table: &Table,
        names: Vec<String>,
        columns: &[&[f64]],
        request: &PointRequest,
        (shard, weights): (u64, Option<&[f64]>),
    ) -> Result<Self, Error> {
        let source = table.source();
        let rows = table.rows();
        if rows == 0 || columns.is_empty() {
            return Err(Error::Input(format!("`{source}` has no rows")));
        }
        let mut missing: Option<(usize, String)> = None;
        for (column, name) in columns.iter().zip(&names) {
            if let Some(row) = column.iter().position(|x| x.is_infinite()) {
                return Err(Error::Input(format!(
                    "`{source}`, row {}: the value of `{name}` is not finite; remove the row or empty the cell",
                    row + 1
                )));
            }
            if let Some(row) = column.iter().position(|x| x.is_nan())
                && missing.as_ref().is_none_or(|first| row + 1 < first.0)
            {
                missing = Some((row + 1, name.clone()));
            }
        }
        if let Some(weights) = weights {
            check_weights(source, weights)?;
        }
        let order = permutation(request.seed(), SPLIT, shard, rows);
        let apart = (request.heldout() * rows as f64).round() as usize;
        let mut is_heldout = vec![false; rows];
        for &row in &order[..apart.min(rows - 1)] {
            is_heldout[row] = true;
        }
        let gather = |wanted: bool| {
            (0..rows)
                .filter(|&row| is_heldout[row] == wanted)
                .flat_map(|row| columns.iter().map(move |column| column[row]))
                .collect::<Vec<f64>>()
        };
        let of_weights = |wanted: bool| -> Vec<f64> {
            let pairs = weights.unwrap_or(&[]).iter().zip(&is_heldout);
            let own = pairs.filter(|(_, heldout)| **heldout == wanted);
            own.map(|(weight, _)| *weight).collect()
        };
        let digest = columns
            .iter()
            .chain(&weights)
            .flat_map(|column| column.iter())
            .fold(0xcbf2_9ce4_8422_2325u64, |hash, x| {
                (hash ^ x.to_bits()).wrapping_mul(0x0000_0100_0000_01b3)
            });
        Ok(Self {
            source: source.to_owned(),
            names,
            missing,
            elsewhere: None,
            labels: Labels::default(),
            weights: of_weights(false).into(),
            heldout_weights: of_weights(true),
            train: gather(false),
            heldout: gather(true),
            digest: format!("{digest:016x} {rows} {}", columns.len()),
        })
    }
}

fn check_weights(source: &str, weights: &[f64]) -> Result<(), Error> {
    let wrong = |w: &f64| !(w.is_finite() && *w >= 0.0);
    if let Some(row) = weights.iter().position(wrong) {
        return Err(Error::Input(format!(
            "`{source}`, row {}: the weight is {}; a weight is a finite number of at least 0",
            row + 1,
            weights[row]
        )));
    }
    if weights.iter().all(|w| *w == 0.0) {
        return Err(Error::Input(format!("`{source}`: every weight is 0")));
    }
    Ok(())
}
