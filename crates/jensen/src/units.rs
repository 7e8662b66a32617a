//! Standardisation of the columns of tables, points, sequences and images.
//!
//! A fit job that standardises its data replaces each column x by u = (x − centre) / scale, unless the column is
//! constant. The job reports densities of x. The log density of x is the log density of u minus the logarithms of the
//! scales. A constant column has no density. The same is true of a column that is a copy of another column. Jensen
//! omits both kinds of columns from the fit and reports them.

use jensen_math::sum::ColumnMoments;
#[cfg(feature = "vae")]
use jensen_neural::onnx::ColumnMap;
use jensen_run::{Control, Observer, Progress, Record, Status, Store};
use serde::{Deserialize, Serialize};

use crate::Error;

/// Whether to standardise the columns of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
pub enum Standardise {
    /// Inside: results are in the units of the data
    #[default]
    On,
    /// Use the numbers unchanged
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Kept {
    column: usize,
    centre: f64,
    scale: f64,
}

/// A column that is left out of the fit. The value of the column is level + slope · (the value of a kept column).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Left {
    column: usize,
    /// For a copy, the index of the original among the kept columns, followed by the slope of the copy as a function of
    /// the original.
    copy_of: Option<(usize, f64)>,
    level: f64,
}

/// The standardised units of the columns of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Units {
    kept: Vec<Kept>,
    left: Vec<Left>,
}

/// A column is treated as constant if its deviations from the mean are smaller than this multiple of the rounding error
/// of its largest value. The rounding errors of computed numbers are a few times as large as the rounding error of the
/// largest value. Even if the mean of a column is a million standard deviations away from 0, its deviations are more
/// than 10⁹ times as large as this error.
const ROUNDINGS: f64 = 64.0;

/// The maximum difference in any row between two standardised columns that are treated as equal. Only rounding causes
/// differences of a ten-millionth of a standard deviation.
const SAME: f64 = 1e-7;

impl Units {
    /// Returns units that leave a table of `width` columns unchanged.
    pub fn as_they_are(width: usize) -> Self {
        let kept = |column| Kept {
            column,
            centre: 0.0,
            scale: 1.0,
        };
        Self {
            kept: (0..width).map(kept).collect(),
            left: Vec::new(),
        }
    }

    /// Computes the units from the moments of the columns. The caller may accumulate the moments over several shards.
    /// The function does not detect copies of columns.
    ///
    /// # Errors
    /// Fails if all columns are constant.
    pub fn of_moments(columns: &[ColumnMoments], asked: Standardise) -> Result<Self, Error> {
        let mut units = Self::default();
        for (column, moments) in columns.iter().enumerate() {
            let count = match moments.count > 0.0 {
                true => moments.count,
                false => 1.0,
            };
            let scale = (moments.squares / count).sqrt();
            let rounding = ROUNDINGS * f64::EPSILON * moments.mean.abs();
            // The scale is NaN if the sums overflow.
            if scale.is_nan() || scale <= rounding {
                let (copy_of, level) = (None, moments.mean);
                units.left.push(Left {
                    column,
                    copy_of,
                    level,
                });
                continue;
            }
            let (centre, scale) = match asked {
                Standardise::On => (moments.mean, scale),
                Standardise::Off => (0.0, 1.0),
            };
            units.kept.push(Kept {
                column,
                centre,
                scale,
            });
        }
        if units.kept.is_empty() {
            return Err(Error::Input(
                "every column is constant, so Jensen has no data to learn from".to_owned(),
            ));
        }
        Ok(units)
    }

    /// Computes the units from rows of `width` numbers. NaN marks a missing value.
    ///
    /// # Errors
    /// Fails if all columns are constant.
    pub fn of_rows(width: usize, rows: &[f64], asked: Standardise) -> Result<Self, Error> {
        Self::of_some(width, rows, &[], asked, &vec![true; width])
    }

    /// Computes the units from rows if some columns do not contain real numbers. These columns keep their values. If
    /// `weights` is not empty, it contains the weight of each row.
    ///
    /// # Errors
    /// Fails if all columns are constant.
    pub fn of_some(
        width: usize,
        rows: &[f64],
        weights: &[f64],
        asked: Standardise,
        real: &[bool],
    ) -> Result<Self, Error> {
        let moments = ColumnMoments::weighted(width, rows, weights);
        if !real.contains(&true) {
            return Ok(Self::as_they_are(width));
        }
        let mut units = Self::of_moments(&moments, asked)?;
        units.left.retain(|left| real[left.column]);
        units.kept.retain(|kept| real[kept.column]);
        units.look_for_copies(&moments, rows);
        let others = (0..width).filter(|column| !real[*column]);
        units.kept.extend(others.map(|column| Kept {
            column,
            centre: 0.0,
            scale: 1.0,
        }));
        units.kept.sort_by_key(|kept| kept.column);
        units.index_copies();
        Ok(units)
    }

    fn look_for_copies(&mut self, moments: &[ColumnMoments], rows: &[f64]) {
        for (copy, original, sign) in copies(moments, &self.kept, rows) {
            let (from, to) = (&moments[original], &moments[copy]);
            let slope = sign * (to.squares / from.squares).sqrt();
            self.kept.retain(|kept| kept.column != copy);
            self.left.push(Left {
                column: copy,
                copy_of: Some((original, slope)),
                level: to.mean - slope * from.mean,
            });
        }
        self.left.sort_by_key(|left| left.column);
    }

    fn index_copies(&mut self) {
        for left in &mut self.left {
            if let Some((original, _)) = &mut left.copy_of {
                let position = self.kept.iter().position(|kept| kept.column == *original);
                *original = position.expect("originals are kept");
            }
        }
    }

    /// Returns the number of columns of the original data.
    pub fn columns(&self) -> usize {
        self.kept.len() + self.left.len()
    }

    /// Returns the number of columns that the fit uses.
    pub fn width(&self) -> usize {
        self.kept.len()
    }

    /// Returns whether the units leave the data unchanged.
    pub fn change_nothing(&self) -> bool {
        self.left.is_empty() && self.kept.iter().all(|k| k.centre == 0.0 && k.scale == 1.0)
    }

    /// Returns the map from the columns of the data to the columns that the fit uses.
    #[cfg(feature = "vae")]
    pub(crate) fn inward(&self) -> ColumnMap {
        ColumnMap {
            index: self.kept.iter().map(|kept| kept.column).collect(),
            scale: self.kept.iter().map(|kept| 1.0 / kept.scale).collect(),
            shift: (self.kept.iter())
                .map(|kept| -kept.centre / kept.scale)
                .collect(),
        }
    }

    /// Returns the map from the columns that the fit uses to the columns of the data.
    #[cfg(feature = "vae")]
    pub(crate) fn outward(&self) -> ColumnMap {
        let mut rows = vec![(0, 0.0, 0.0); self.columns()];
        for (i, kept) in self.kept.iter().enumerate() {
            rows[kept.column] = (i, kept.scale, kept.centre);
        }
        for left in &self.left {
            rows[left.column] = match left.copy_of {
                Some((i, slope)) => {
                    let original = self.kept[i];
                    let level = left.level + slope * original.centre;
                    (i, slope * original.scale, level)
                }
                None => (0, 0.0, left.level),
            };
        }
        ColumnMap {
            index: rows.iter().map(|row| row.0).collect(),
            scale: rows.iter().map(|row| row.1).collect(),
            shift: rows.iter().map(|row| row.2).collect(),
        }
    }

    /// Returns the logarithms of the scales of the columns that the fit uses.
    pub fn log_scales(&self) -> Vec<f64> {
        self.kept.iter().map(|kept| kept.scale.ln()).collect()
    }

    /// Returns the log density of a complete row in the units of the data, minus its log density in standardised units.
    pub fn log_jacobian(&self) -> f64 {
        -self.log_scales().iter().sum::<f64>()
    }

    /// Selects the entries of `all` that belong to the columns that the fit uses. `all` must have one entry per column
    /// of the data.
    pub fn of_kept<T: Clone>(&self, all: &[T]) -> Vec<T> {
        let kept = self.kept.iter();
        kept.map(|kept| all[kept.column].clone()).collect()
    }

    /// Converts the moments of all columns of the data to moments of the columns that the fit uses, in standardised
    /// units.
    pub fn moments(&self, columns: &[ColumnMoments]) -> Vec<ColumnMoments> {
        let of = |kept: &Kept| {
            let moments = columns[kept.column];
            ColumnMoments {
                mean: (moments.mean - kept.centre) / kept.scale,
                squares: moments.squares / (kept.scale * kept.scale),
                ..moments
            }
        };
        self.kept.iter().map(of).collect()
    }

    /// Converts a row of the data to standardised units.
    pub fn row<'a>(&'a self, row: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let kept = self.kept.iter();
        kept.map(|kept| (row[kept.column] - kept.centre) / kept.scale)
    }

    /// Converts concatenated rows of the data to standardised units.
    pub fn rows(&self, rows: &[f64]) -> Vec<f64> {
        let rows = rows.chunks_exact(self.columns().max(1));
        rows.flat_map(|row| self.row(row)).collect()
    }

    /// Converts a row in standardised units to the units of the data.
    pub fn back(&self, row: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.columns()];
        for (x, kept) in row.iter().zip(&self.kept) {
            out[kept.column] = kept.centre + kept.scale * x;
        }
        for left in &self.left {
            let moved = left.copy_of.map(|(original, slope)| {
                let original = self.kept[original].column;
                slope * out[original]
            });
            out[left.column] = left.level + moved.unwrap_or(0.0);
        }
        out
    }

    /// Converts concatenated single-precision rows in standardised units to the units of the data.
    pub fn rows_back(&self, rows: &[f32]) -> Vec<f64> {
        let wide = |row: &[f32]| row.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
        let rows = rows.chunks_exact(self.width().max(1));
        rows.flat_map(|row| self.back(&wide(row))).collect()
    }

    /// Returns the derivative of each column of the data with respect to the standardised columns. Each entry contains
    /// the index of a column that the fit uses and the slope, or `None` if the column of the data is constant.
    fn slopes(&self) -> Vec<Option<(usize, f64)>> {
        let mut slopes = vec![None; self.columns()];
        for (position, kept) in self.kept.iter().enumerate() {
            slopes[kept.column] = Some((position, kept.scale));
        }
        for left in &self.left {
            slopes[left.column] = left
                .copy_of
                .map(|(position, slope)| (position, slope * self.kept[position].scale));
        }
        slopes
    }

    /// Converts variances in standardised units to the units of the data.
    pub fn variances_back(&self, variances: &[f64]) -> Vec<f64> {
        let of = |slope: Option<(usize, f64)>| slope.map_or(0.0, |(at, s)| s * s * variances[at]);
        self.slopes().into_iter().map(of).collect()
    }

    /// Converts a covariance matrix in standardised units to the units of the data.
    pub fn covariance_back(&self, covariance: &[f64]) -> Vec<f64> {
        let (width, slopes) = (self.width(), self.slopes());
        let pairs = slopes
            .iter()
            .flat_map(|a| slopes.iter().map(move |b| (a, b)));
        pairs
            .map(|pair| match pair {
                (Some((i, s)), Some((j, t))) => s * t * covariance[i * width + j],
                _ => 0.0,
            })
            .collect()
    }

    /// Converts coefficients of the standardised columns, such as loadings, to the units of the data.
    pub fn slopes_back(&self, coefficients: &[f64]) -> Vec<f64> {
        let slopes = self.slopes().into_iter();
        slopes
            .map(|slope| slope.map_or(0.0, |(at, s)| s * coefficients[at]))
            .collect()
    }

    /// Returns remarks on the columns that the fit omits, with one sentence for each kind.
    pub fn notes(&self, names: &[String]) -> Vec<String> {
        let mut notes = Vec::new();
        let listed = |names: Vec<String>| match names.len() {
            0..=5 => names.join(", "),
            count => format!("{} and {} more", names[..5].join(", "), count - 5),
        };
        let constant = self.left.iter().filter(|left| left.copy_of.is_none());
        let constant: Vec<String> = constant
            .map(|left| format!("`{}` ({})", names[left.column], left.level))
            .collect();
        if !constant.is_empty() {
            notes.push(format!(
                "Jensen omits constant columns: {}",
                listed(constant)
            ));
        }
        let copies = self.left.iter().filter_map(|left| {
            let (original, _) = left.copy_of?;
            let original = &names[self.kept[original].column];
            Some(format!("`{}` (of `{original}`)", names[left.column]))
        });
        let copies: Vec<String> = copies.collect();
        if !copies.is_empty() {
            notes.push(format!(
                "Jensen omits columns that equal another column up to units: {}",
                listed(copies)
            ));
        }
        notes
    }
}

struct Shifted<'a> {
    observer: &'a mut dyn Observer,
    by: f64,
    fields: &'a [(&'a str, f64)],
}

/// Runs a fit in standardised units under `control`. Before the observer receives a trace line, the function adds `by`
/// nats to the ELBO in this line. `fields` contains the names of further fields, each with the number of nats to add.
pub fn shifted<T>(
    control: Control<'_>,
    by: f64,
    fields: &[(&str, f64)],
    run: impl FnOnce(&mut Control<'_>) -> T,
) -> T {
    let mut observer = Shifted {
        observer: &mut *control.observer,
        by,
        fields,
    };
    run(&mut Control {
        budget: control.budget,
        clock: control.clock,
        cancel: control.cancel,
        partial: control.partial,
        observer: &mut observer,
        store: control.store.map(|store| -> &mut dyn Store { store }),
        checkpoint_seconds: control.checkpoint_seconds,
        resume: control.resume,
        force_resume: control.force_resume,
    })
}

impl Shifted<'_> {
    fn shifted(&self, record: &Record) -> Record {
        let mut record = record.clone();
        record.elbo = record.elbo.map(|elbo| elbo + self.by);
        for (field, by) in self.fields {
            if let Some(value) = record.fields.get_mut(*field)
                && let Some(bound) = value.as_f64()
            {
                *value = (bound + by).into();
            }
        }
        record
    }
}

impl Observer for Shifted<'_> {
    fn record(&mut self, record: &Record) {
        let record = self.shifted(record);
        self.observer.record(&record);
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        let record = self.shifted(progress.record);
        self.observer.progress(&Progress {
            record: &record,
            ..*progress
        });
    }

    fn note(&mut self, note: &str) {
        self.observer.note(note);
    }

    fn finished(&mut self, status: &Status) {
        self.observer.finished(status);
    }
}

/// Returns the columns that equal an earlier column except for location, scale and sign. Each result contains the index
/// of the column, the index of the first column that it equals, and the sign.
///
/// The function computes the product of each column with a fixed vector. Two columns whose products have the same
/// absolute value are compared row by row.
fn copies(moments: &[ColumnMoments], kept: &[Kept], rows: &[f64]) -> Vec<(usize, usize, f64)> {
    let width = moments.len();
    let count = rows.len() / width.max(1);
    let value = |row: usize, column: usize| {
        let m = &moments[column];
        (rows[row * width + column] - m.mean) / (m.squares / m.count).sqrt()
    };
    // The fractional parts of the multiples of an irrational number are spread evenly. Rows of real data are unlikely
    // to follow the same pattern.
    let weight = |row: usize| ((row as f64 + 1.0) * 0.754_877_666_246_692_7).fract() - 0.5;
    let sketch = |column: usize| {
        let terms = (0..count).map(|row| weight(row) * value(row, column));
        terms.filter(|x| !x.is_nan()).sum::<f64>().abs()
    };
    let own: Vec<(f64, usize)> = kept
        .iter()
        .map(|kept| (sketch(kept.column), kept.column))
        .collect();
    let mut sorted = own.clone();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let same = |a: usize, b: usize, sign: f64| {
        (0..count).all(|row| {
            let (x, y) = (value(row, a), value(row, b));
            x.is_nan() && y.is_nan() || (x - sign * y).abs() <= SAME
        })
    };
    let slack = SAME * count as f64;
    let mut found: Vec<(usize, usize, f64)> = Vec::new();
    let mut is_copy = vec![false; width];
    for (sketch, column) in own {
        let begin = sorted.partition_point(|(other, _)| *other < sketch - slack);
        let near = sorted[begin..]
            .iter()
            .take_while(|(other, _)| *other <= sketch + slack);
        let originals = near.filter(|(_, other)| *other < column && !is_copy[*other]);
        let signed = |other: usize| {
            let signs = [1.0, -1.0].into_iter();
            signs.map(move |sign| (other, sign))
        };
        let mut pairs = originals.flat_map(|(_, other)| signed(*other));
        let original = pairs.find(|(other, sign)| same(*other, column, *sign));
        if let Some((original, sign)) = original {
            found.push((column, original, sign));
            is_copy[column] = true;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(width: usize) -> Vec<String> {
        (0..width).map(|i| format!("c{i}")).collect()
    }

    #[test]
    fn constant_columns_and_copies_are_left_out_and_come_back() {
        let u = |i: usize, f: f64| (i as f64 * f).sin();
        let rows: Vec<f64> = (0..50)
            .flat_map(|i| {
                let (a, b) = (u(i, 1.3), u(i, 2.9));
                [1e6 + a, 7.0, 1e-6 * b, 3.0 - 2e3 * a, b + 1e-3 * a]
            })
            .collect();
        let units = Units::of_rows(5, &rows, Standardise::On).unwrap();
        assert_eq!((units.width(), units.columns()), (3, 5));
        let said = units.notes(&names(5));
        assert!(said[0].ends_with("constant columns: `c1` (7)"), "{said:?}");
        assert!(said[1].ends_with("up to units: `c3` (of `c0`)"), "{said:?}");
        let inside = units.rows(&rows);
        for (row, inside) in rows.chunks(5).zip(inside.chunks(3)) {
            let sds = [1.0, 1.0, 1e-6, 2e3, 1.0];
            for ((x, y), sd) in row.iter().zip(units.back(inside)).zip(sds) {
                assert!((x - y).abs() < 1e-8 * sd, "{x} {y}");
            }
        }
        let moments = ColumnMoments::of(3, &inside);
        for m in moments {
            assert!(m.mean.abs() < 1e-9 && (m.squares / m.count - 1.0).abs() < 1e-9);
        }
        let rows = [1.0, 2.0, 1.0, 2.0];
        assert!(Units::of_rows(2, &rows, Standardise::On).is_err());
    }

    #[test]
    fn covariances_come_back() {
        let rows: Vec<f64> = (0..40)
            .flat_map(|i| {
                let a = (f64::from(i) * 1.7).sin();
                [10.0 * a, 5.0, -20.0 * a, (f64::from(i) * 0.6).cos()]
            })
            .collect();
        let units = Units::of_rows(4, &rows, Standardise::On).unwrap();
        let full = units.covariance_back(&[1.0, 0.5, 0.5, 1.0]);
        let moments = ColumnMoments::of(4, &rows);
        let sd = |c: usize| (moments[c].squares / moments[c].count).sqrt();
        for (i, j, r) in [
            (0, 0, 1.0),
            (0, 2, -1.0),
            (0, 3, 0.5),
            (2, 3, -0.5),
            (1, 1, 0.0),
            (1, 3, 0.0),
        ] {
            assert!(
                (full[i * 4 + j] - r * sd(i) * sd(j)).abs() < 1e-9,
                "{i} {j}"
            );
        }
        let own = units.variances_back(&[1.0, 4.0]);
        assert!((own[3] - 4.0 * sd(3).powi(2)).abs() < 1e-9 && own[1] == 0.0);
        let off = Units::of_rows(4, &rows, Standardise::Off).unwrap();
        assert_eq!((off.width(), off.log_jacobian()), (2, 0.0));
        assert!(Units::as_they_are(3).change_nothing());
    }
}
