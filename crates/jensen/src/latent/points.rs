//! Log-Gaussian Cox processes: fits of intensities to the locations of points (Simpson, Illian, Lindgren, Sørbye and Rue
//! 2016).
//!
//! The fit is that of the likelihood `poisson-process` to a table with a row for each point and for each cell of the window. A point
//! is a count of 1 with exposure 0, and a cell a count of 0 whose exposure is its area. The offset of all rows is the
//! logarithm of the mean intensity. The latent field is therefore relative to it, and the fit does not depend on the unit
//! of the coordinates.

use std::cell::Cell;
use std::fmt::Write;
use std::path::PathBuf;

use jensen_data::table_csv::quoted;
use jensen_data::{Bytes, Table};
use jensen_run::Reason;
use serde::Serialize;

use super::job::fit_and_check;
use super::window::{Cell as Tile, Location, Window};
use super::{
    LatentData, LatentRequest, LatentRun, LatentSummary, PriorFiles, StoredPosterior, TableModel,
    draws_at, outcome, posterior_at,
};
use crate::Error;
use crate::job::Around;

/// The names of the columns for counts, areas and the logarithm of the mean intensity.
const OWN: [&str; 3] = ["event", "area", "log_mean"];

/// The default number of cells. For a square, the sides are then 0.02 of its side.
const CELLS: f64 = 2500.0;

/// The edges of the default mesh in lengths of a cell. Nodes are at least half an edge apart, so that there is a cell
/// around each. At a node between cells, the intensity could rise without a change of the integral.
const EDGES: f64 = 2.2;

/// The largest number of joint draws for the interval of the expected number of points, and the number of predictors of
/// all draws, which limits it.
const DRAWS: usize = 1000;
const PREDICTORS: usize = 20_000_000;

/// The locations of points in a window, with covariates.
#[derive(Clone, Debug, PartialEq)]
pub struct PointPattern {
    columns: [String; 2],
    points: Vec<Location>,
    window: Window,
    covariates: Option<Covariates>,
    notes: Vec<String>,
}

/// Values at locations. The value at any other location is that of the nearest one.
#[derive(Clone, Debug, PartialEq)]
struct Covariates {
    names: Vec<String>,
    locations: Vec<Location>,
    values: Vec<Vec<f64>>,
}

/// The intensity in a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Intensity {
    /// The cell.
    pub cell: Tile,
    /// The posterior mean of the number of points per unit of area.
    pub mean: f64,
    /// The 5 % and 95 % posterior quantiles.
    pub interval: (f64, f64),
}

/// The contents of `fit.json`, and quantities of the window.
#[derive(Clone, Debug, Serialize)]
pub struct PointsSummary {
    /// The fit.
    #[serde(flatten)]
    pub fit: LatentSummary,
    /// The number of points.
    pub points: usize,
    /// The area of the window, in squared units of the coordinates.
    pub area: f64,
    /// The number of cells of the window.
    pub cells: usize,
    /// The posterior mean of the expected number of points in the window.
    pub expected: f64,
    /// The 5 % and 95 % posterior quantiles of the expected number of points.
    pub expected_interval: (f64, f64),
    /// How much the posterior mean of the expected number changes if it is summed over cells of half the length. It
    /// estimates the error of the integral in the log density, in nats.
    pub integral_error: f64,
    /// Remarks on the window and the covariates.
    pub remarks: Vec<String>,
}

impl PointPattern {
    /// Reads the locations of points, the vertices of the window in order, and covariates at other locations. All tables
    /// have the two columns of coordinates. Without a window, it is a rectangle around the points.
    ///
    /// # Errors
    /// Fails if a coordinate is missing, if there are fewer than two points, if a point is outside the window, or if the
    /// window is no simple polygon.
    pub fn read(
        columns: [String; 2],
        points: &Table,
        window: Option<&Table>,
        covariates: Option<&Table>,
    ) -> Result<Self, Error> {
        let mut notes = Vec::new();
        let at = locations(points, &columns)?;
        if at.len() < 2 {
            return Err(Error::Input(format!(
                "{}: an intensity needs at least two points",
                points.source()
            )));
        }
        let window = match window {
            Some(table) => Window::new(locations(table, &columns)?)
                .map_err(|e| Error::Input(format!("{}: {e}", table.source())))?,
            None => {
                notes.push(
                    "the window is a rectangle that is slightly larger than the range of the points; --window gives its \
                     polygon"
                        .to_owned(),
                );
                Window::around(&at)?
            }
        };
        let outside: Vec<usize> = (0..at.len()).filter(|i| !window.contains(at[*i])).collect();
        if let Some(first) = outside.first() {
            return Err(Error::Input(format!(
                "{}: {} of {} points are outside the window, the first in row {}",
                points.source(),
                outside.len(),
                at.len(),
                first + 1
            )));
        }
        let covariates = match covariates {
            None => None,
            Some(table) => Some(Covariates::read(table, &columns)?),
        };
        if let Some(covariates) = &covariates {
            let far = |p: &Location| covariates.nearest(*p).1;
            let farthest = at.iter().map(far).fold(0.0, f64::max);
            notes.push(format!(
                "a point has the covariates {} of the nearest of {} locations, up to {farthest:.3} away",
                covariates.names.join(", "),
                covariates.locations.len()
            ));
        }
        Ok(Self {
            columns,
            points: at,
            window,
            covariates,
            notes,
        })
    }

    /// Returns the default length of cells.
    pub fn length(&self) -> f64 {
        (self.window.area() / CELLS).sqrt()
    }

    /// Returns the default prior for cells of this length: an intercept and a stationary field. The mesh extends by the side
    /// of the window, because few points determine little of a field whose range is longer than the window.
    pub fn prior(&self, length: f64) -> String {
        let ([x, y], side) = (&self.columns, self.window.side());
        let edge = EDGES * length;
        format!("intercept() + mesh(spde, on=(\"{x}\", \"{y}\"), edge={edge}, extension={side})")
    }

    /// Writes a table with the points, if `points`, and the cells.
    fn table(&self, cells: &[Tile], points: bool) -> String {
        let mut names: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        let own = self.covariates.iter().flat_map(|c| &c.names);
        names.extend(own.map(String::as_str));
        names.extend(OWN);
        let names: Vec<String> = names
            .into_iter()
            .map(|name| quoted(name).to_string())
            .collect();
        let mut text = names.join(",") + "\n";
        let level = (self.points.len() as f64 / self.window.area()).ln();
        let mut row = |at: Location, event: u8, area: f64| {
            // Writing to a string never fails.
            let _ = write!(text, "{},{}", at[0], at[1]);
            if let Some(covariates) = &self.covariates {
                let (nearest, _) = covariates.nearest(at);
                for values in &covariates.values {
                    let _ = write!(text, ",{}", values[nearest]);
                }
            }
            let _ = writeln!(text, ",{event},{area},{level}");
        };
        if points {
            self.points.iter().for_each(|at| row(*at, 1, 0.0));
        }
        cells.iter().for_each(|cell| row(cell.at, 0, cell.area));
        text
    }
}

impl Covariates {
    fn read(table: &Table, columns: &[String; 2]) -> Result<Self, Error> {
        let locations = locations(table, columns)?;
        let (mut names, mut values) = (Vec::new(), Vec::new());
        for column in table.columns() {
            if columns.contains(&column.name) {
                continue;
            }
            let numbers = column.numbers()?;
            if let Some(row) = numbers.iter().position(|x| !x.is_finite()) {
                return Err(Error::Input(format!(
                    "{}: the covariate `{}` is missing in row {}",
                    table.source(),
                    column.name,
                    row + 1
                )));
            }
            names.push(column.name.clone());
            values.push(numbers.to_vec());
        }
        let taken = names
            .iter()
            .chain(columns)
            .find(|name| OWN.contains(&name.as_str()));
        if names.is_empty() || locations.is_empty() || taken.is_some() {
            return Err(Error::Input(format!(
                "{}: covariates need rows with `{}`, `{}` and a further column whose name is not {}",
                table.source(),
                columns[0],
                columns[1],
                OWN.join(", ")
            )));
        }
        Ok(Self {
            names,
            locations,
            values,
        })
    }

    /// Returns the index of the nearest location and its distance.
    fn nearest(&self, [x, y]: Location) -> (usize, f64) {
        let distances = self.locations.iter().map(|[a, b]| (a - x).hypot(b - y));
        let least =
            |best: (usize, f64), (i, d): (usize, f64)| if d < best.1 { (i, d) } else { best };
        distances.enumerate().fold((0, f64::INFINITY), least)
    }
}

fn locations(table: &Table, columns: &[String; 2]) -> Result<Vec<Location>, Error> {
    let [x, y] = [table.numbers(&columns[0])?, table.numbers(&columns[1])?];
    let all: Vec<Location> = x.iter().zip(y).map(|(x, y)| [*x, *y]).collect();
    match all.iter().position(|p| !p.iter().all(|x| x.is_finite())) {
        Some(row) => Err(Error::Input(format!(
            "{}: row {} has no number in `{}` or `{}`",
            table.source(),
            row + 1,
            columns[0],
            columns[1]
        ))),
        None => Ok(all),
    }
}

/// Fits the intensity of a point pattern, and returns it in each cell of the window. `length` is the longest side of a
/// cell. The settings contain the prior of the logarithm of the relative intensity.
///
/// # Errors
/// Fails if the settings are invalid or name columns that the tables lack. Also returns the errors of [`fit_latent`](super::fit_latent).
pub fn fit_points(
    flags: LatentRequest,
    pattern: &PointPattern,
    length: f64,
    around: Around<'_>,
) -> Result<(PointsSummary, Option<PathBuf>, Vec<Intensity>), Error> {
    let [event, area, level] = OWN.map(str::to_owned);
    let flags = LatentRequest {
        likelihood: Some("poisson-process".to_owned()),
        prior: flags.prior.or_else(|| Some(pattern.prior(length))),
        response: Some(event),
        exposure: Some(area),
        offset: Some(level),
        ..flags
    };
    let cells = pattern.window.cells(length)?;
    let data = LatentData {
        name: "points.csv".to_owned(),
        bytes: Bytes::Held(pattern.table(&cells, true).into_bytes()),
    };
    let files = PriorFiles::default();
    let run = LatentRun {
        data: data.name.clone(),
        files: std::collections::BTreeMap::new(),
        flags: flags.clone(),
    };
    let table = data.table()?;
    let first = pattern.points.len();
    let rows: Vec<usize> = (first..first + cells.len()).collect();
    let finer = pattern.window.cells(0.5 * length)?;
    let finer = Table::parse(pattern.table(&finer, false).as_bytes(), &data.name)?;
    let all: Vec<usize> = (0..finer.rows()).collect();
    let means = |model: &TableModel, stored: &StoredPosterior, table: &Table, rows: &[usize]| {
        let (parts, seen) = posterior_at(model, stored, table, rows, &files)?;
        Ok::<_, Error>(outcome(model, &parts, &seen))
    };
    let total = |means: &[Vec<f64>]| means.iter().map(|mean| mean[0]).sum::<f64>();
    let integral_error = Cell::new(f64::NAN);
    let check = |model: &TableModel, stored: &StoredPosterior| {
        let there = total(&means(model, stored, &finer, &all)?.mean);
        let error = (there - total(&means(model, stored, &table, &rows)?.mean)).abs();
        integral_error.set(error);
        Ok((!is_integrated(error, first)).then(|| {
            Reason::new(
                format!(
                    "the integral of the intensity is inaccurate: shorter cells change the expected number of points by \
                     {error:.2}"
                ),
                format!("Use shorter cells (--cell {:.3}).", 0.5 * length),
            )
        }))
    };
    let (stored, fit, folder) = fit_and_check(run, &data, &files, around, &check, |done| {
        let stored = StoredPosterior::new(&done.made.output.0);
        (stored, done.summary, done.folder)
    })?;
    let model = TableModel::new(&flags.request(), &table, &files)?;
    let found = means(&model, &stored, &table, &rows)?;
    let intensities = cells.iter().enumerate().map(|(i, cell)| {
        let (low, high) = found.interval[i];
        Intensity {
            cell: *cell,
            mean: found.mean[i][0] / cell.area,
            interval: (low / cell.area, high / cell.area),
        }
    });
    let intensities: Vec<Intensity> = intensities.collect();
    let expected = total(&found.mean);
    let draws = (PREDICTORS / rows.len()).clamp(100, DRAWS);
    let seed = flags.seed.unwrap_or(0);
    let drawn = draws_at(&model, &stored, &table, &rows, &files, (draws, seed))?;
    let mut sums: Vec<f64> = (drawn.predictors.chunks(rows.len()))
        .map(|eta| {
            eta.iter()
                .zip(&cells)
                .map(|(x, cell)| cell.area * x.exp())
                .sum()
        })
        .collect();
    sums.sort_by(f64::total_cmp);
    let quantile = |p: f64| sums[((draws as f64 * p) as usize).min(draws - 1)];
    let summary = PointsSummary {
        fit,
        points: first,
        area: pattern.window.area(),
        cells: cells.len(),
        expected,
        expected_interval: (quantile(0.05), quantile(0.95)),
        integral_error: integral_error.get(),
        remarks: pattern.notes.clone(),
    };
    Ok((summary, folder, intensities))
}

/// Returns whether the error of the integral is small compared with the uncertainty of the number of points. It is if it is
/// below a tenth of the standard deviation √n, which moves the level of the intensity by a tenth of its own standard
/// deviation.
fn is_integrated(error: f64, points: usize) -> bool {
    error <= 0.1 * (points as f64).sqrt()
}

/// Writes the intensity in each cell as CSV.
pub fn intensity_table(pattern: &PointPattern, intensities: &[Intensity]) -> String {
    let [x, y] = pattern
        .columns
        .each_ref()
        .map(|name| quoted(name).to_string());
    let mut text = format!("{x},{y},area,mean,q05,q95\n");
    for Intensity {
        cell,
        mean,
        interval: (low, high),
    } in intensities
    {
        // Writing to a string never fails.
        let _ = writeln!(
            text,
            "{},{},{},{mean},{low},{high}",
            cell.at[0], cell.at[1], cell.area
        );
    }
    text
}
