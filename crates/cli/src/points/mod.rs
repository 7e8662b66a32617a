//! What `jensen mixture` and `jensen factors` share: flags, data, the run and its results.

use std::path::{Path, PathBuf};

use clap::Args;
use jensen::conjugate::driver::{DriverSettings, Mode};
use jensen::conjugate::fit::{ModelFit, fit, identity};
use jensen::conjugate::model::Model;
use jensen::conjugate::temper::Temper;
use jensen::data::table::Table;
use jensen::math::rng::{Purpose, permutation};
use jensen::report::figure::{Axis, Chart, Figure, Image, ImageGrid, Series};
use jensen::run::{Budget, Outcome as RunOutcome, Record, Status};
use serde_json::{Value, json};

mod sheet;

use crate::failure::{Exit, Failure, Outcome, print, remark};
use crate::flags::{self, parse_not_negative, parse_positive, parse_threads};
use crate::progress::Display;
use crate::run::folder;
use crate::run::session::{Session, start_threads};

/// Flags of every model of points.
#[derive(Args, Clone, Debug)]
pub struct PointFlags {
    /// Temperature: none, anneal=PASSES (falls to 1 in so many passes or iterations), global (one, inferred) or local
    /// (one a point, inferred); global=PASSES and local=PASSES are 1 after so many, `inf` never. Plain global cools in 50
    /// iterations, or in one pass with --batch
    #[arg(
        long,
        value_name = "POLICY",
        default_value = "none",
        help_heading = "Method"
    )]
    pub temper: Temper,
    /// Points of a minibatch; without it every iteration uses all points
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Method")]
    pub batch: Option<u64>,
    /// Passes over the points, with --batch
    #[arg(long, value_name = "P", default_value_t = 10.0, value_parser = parse_positive, requires = "batch", help_heading = "Method")]
    pub passes: f64,
    /// Delay of the step sizes (tau + t)^-kappa, with --batch
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = parse_positive, requires = "batch", help_heading = "Method")]
    pub tau: f64,
    /// Forgetting rate of the step sizes, above 0.5 and at most 1, with --batch
    #[arg(long, value_name = "X", default_value_t = 0.7, value_parser = parse_positive, requires = "batch", help_heading = "Method")]
    pub kappa: f64,
    /// Converged when the bound changes by less than this share of itself in three iterations
    #[arg(long, value_name = "X", default_value_t = 1e-7, value_parser = parse_positive, help_heading = "Method")]
    pub tolerance: f64,
    /// Largest number of iterations without --batch
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..), help_heading = "Run")]
    pub max_iters: u64,
    /// Largest number of seconds
    #[arg(long, value_name = "S", value_parser = parse_positive, help_heading = "Run")]
    pub max_seconds: Option<f64>,
    /// Share of the points to hold out and score, from 0 to below 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = parse_not_negative, help_heading = "Run")]
    pub heldout: f64,
    /// Seed of every random number; same seed, same bits, on any number of threads
    #[arg(long, value_name = "S", default_value_t = 0, help_heading = "Run")]
    pub seed: u64,
    /// Number of threads
    #[arg(long, value_name = "T", value_parser = parse_threads, help_heading = "Run")]
    pub threads: Option<usize>,
    /// Write results and checkpoints to this folder
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Continue the run in the folder of --out from its last checkpoint; all other flags stay as they were
    #[arg(long, requires = "out", help_heading = "Output")]
    pub resume: bool,
    /// Print fit.json to standard output, and nothing else
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// No progress, no table
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

/// How soon an inferred temperature is 1 unless the flags say otherwise.
const COOLING_ITERATIONS: f64 = 50.0;
const COOLING_PASSES: f64 = 1.0;

impl PointFlags {
    fn settings(&self) -> Result<DriverSettings, Failure> {
        let mode = match self.batch {
            None => Mode::Batch {
                tolerance: self.tolerance,
                max_iterations: self.max_iters,
            },
            Some(batch) => Mode::Stochastic {
                batch: batch as usize,
                tau: self.tau,
                kappa: self.kappa,
                passes: self.passes,
                population: None,
                steps_before: 0,
            },
        };
        if self.batch.is_some() && !(self.kappa > 0.5 && self.kappa <= 1.0 && self.tau >= 1.0) {
            return Err(Failure::usage(
                "the step sizes converge with --kappa above 0.5 and at most 1, and --tau of at least 1",
            ));
        }
        if self.heldout >= 1.0 {
            return Err(Failure::usage(
                "--heldout takes a share below 1, such as 0.1",
            ));
        }
        Ok(DriverSettings {
            mode,
            temper: self.temper.clone().with_cooling(match self.batch {
                None => COOLING_ITERATIONS,
                Some(_) => COOLING_PASSES,
            }),
            seed: self.seed,
            scores_per_pass: 0.0,
        })
    }
}

/// Rows of numbers, with those to learn from apart from those held out.
pub struct Points {
    /// The file.
    pub source: String,
    /// Names of the columns.
    pub names: Vec<String>,
    /// Rows to learn from, one after the other.
    pub train: Vec<f64>,
    /// Rows to score.
    pub heldout: Vec<f64>,
    /// A digest of the data.
    pub digest: String,
}

const SPLIT: Purpose = Purpose::new("held-out points");

impl Points {
    /// Number of columns.
    pub fn dim(&self) -> usize {
        self.names.len()
    }

    /// Refuses pictures of another number of pixels than there are columns.
    pub fn check_size(&self, size: Option<(usize, usize)>) -> Result<(), Failure> {
        match size {
            Some((width, height)) if width.checked_mul(height) != Some(self.dim()) => {
                Err(Failure::usage(format!(
                    "pictures of {width}x{height} pixels need as many columns, and `{}` has {}",
                    self.source,
                    self.dim()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Reads a table whose columns are all numbers, on the threads of the run, which begin here.
    pub fn read(path: &Path, flags: &PointFlags) -> Result<Self, Failure> {
        start_threads(flags::threads(flags.threads))?;
        let input = |error: jensen::data::DataError| Failure::input(error.to_string());
        let table = Table::read(path).map_err(input)?;
        let columns: Vec<&[f64]> = table
            .names()
            .iter()
            .map(|name| table.numbers(name))
            .collect::<Result<_, _>>()
            .map_err(input)?;
        let rows = table.rows();
        if rows == 0 || columns.is_empty() {
            return Err(Failure::input(format!(
                "`{}` holds no rows",
                path.display()
            )));
        }
        for (column, name) in columns.iter().zip(table.names()) {
            if let Some(row) = column.iter().position(|x| !x.is_finite()) {
                return Err(Failure::input(format!(
                    "`{}`, row {}: the value of `{name}` is missing or not finite; leave the row out or fill it in",
                    path.display(),
                    row + 1
                )));
            }
        }
        let order = permutation(flags.seed, SPLIT, 0, rows);
        let apart = (flags.heldout * rows as f64).round() as usize;
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
        let digest = columns
            .iter()
            .flat_map(|column| column.iter())
            .fold(0xcbf2_9ce4_8422_2325u64, |hash, x| {
                (hash ^ x.to_bits()).wrapping_mul(0x0000_0100_0000_01b3)
            });
        Ok(Self {
            source: path.display().to_string(),
            names: table.names().iter().map(|n| (*n).to_owned()).collect(),
            train: gather(false),
            heldout: gather(true),
            digest: format!("{digest:016x} {rows} {}", columns.len()),
        })
    }
}

/// Curves of a run, against iterations.
#[derive(Default)]
struct Course {
    bounds: Vec<(f64, f64)>,
    temperatures: Vec<(f64, f64)>,
}

impl Course {
    fn add(&mut self, record: &Record) {
        let iteration = record.iteration as f64;
        if let Some(elbo) = record.elbo {
            self.bounds.push((iteration, elbo));
        }
        if let Some(t) = record.fields.get("temperature").and_then(Value::as_f64) {
            self.temperatures.push((iteration, t));
        }
    }

    /// Charts of the bound (where it was measured) and of the temperature, with captions.
    fn charts(&self) -> Vec<(Chart, &'static str)> {
        let chart = |title: &str, y: &str, points: &[(f64, f64)]| {
            Chart::new(title)
                .x(Axis::new("iteration"))
                .y(Axis::new(y))
                .series(Series::line("", points.iter().copied()))
        };
        let mut charts = Vec::new();
        if !self.bounds.is_empty() {
            charts.push((
                chart("Bound at the present temperature", "nats", &self.bounds),
                "The evidence lower bound of the model at the temperature of the moment.",
            ));
        }
        charts.push((
            chart("Temperature", "T", &self.temperatures),
            "1 is the model as it is; above, the likelihood counts for less.",
        ));
        charts
    }
}

/// Reads the size of pictures, such as `48x42`.
pub fn parse_size(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('x');
    match parts.map(|(w, h)| (w.parse(), h.parse())) {
        Some((Ok(w), Ok(h))) if w > 0 && h > 0 => Ok((w, h)),
        _ => Err("expected width and height, such as 48x42".to_owned()),
    }
}

/// A number in a table.
pub fn cell(x: f64) -> String {
    format!("{x:.3}")
}

/// Rows as pictures, each from its least value in black to its largest in white, with captions.
pub fn images<'a>(
    title: &str,
    rows: impl ExactSizeIterator<Item = &'a [f64]>,
    (width, height): (usize, usize),
    caption: impl Fn(usize) -> String,
) -> Figure {
    let columns = (rows.len() as f64).sqrt().ceil() as usize;
    let mut grid = ImageGrid::new(title, columns);
    for (i, row) in rows.enumerate() {
        if let Some(image) = Image::grey_stretched(width, height, row) {
            grid = grid.captioned(image, caption(i));
        }
    }
    Figure::new("").panel(grid)
}

/// What a command adds to the results.
pub struct Described {
    /// Fields of fit.json.
    pub fields: Value,
    /// What the rows of the table are, such as `component`.
    pub rows: &'static str,
    /// The table: the heads of its columns, and its rows.
    pub table: (Vec<String>, Vec<Vec<String>>),
    /// Pictures: file name without extension, and caption.
    pub pictures: Vec<(&'static str, &'static str, Figure)>,
}

/// Rows and columns of the table that fit a terminal; the report has more, fit.json all.
const SHOWN: (usize, usize) = (12, 8);

impl Described {
    /// The table for a terminal.
    fn text(&self) -> String {
        let (heads, rows) = &self.table;
        let columns = heads.len().min(SHOWN.1);
        let shown: Vec<&Vec<String>> = std::iter::once(heads)
            .chain(rows.iter().take(SHOWN.0))
            .collect();
        let width = |c: usize| shown.iter().map(|row| row[c].chars().count()).max();
        let mut text = String::new();
        for row in &shown {
            let cells: Vec<String> = (0..columns)
                .map(|c| format!("{:>1$}", row[c], width(c).unwrap_or(0)))
                .collect();
            text += &cells.join("  ");
            text.push('\n');
        }
        let more = (rows.len() - (shown.len() - 1), heads.len() - columns);
        if more != (0, 0) {
            text += &format!(
                "… {} more {}s and {} more columns are in fit.json\n",
                more.0, self.rows, more.1
            );
        }
        text
    }
}

/// Fits a model to the points and writes what came out; `heldout` scores λ, and `describe` says what λ means.
pub fn run<M: Model>(
    command: &str,
    flags: &PointFlags,
    points: &Points,
    model: &M,
    heldout: impl Fn(&[f64]) -> Option<(f64, f64)>,
    describe: impl Fn(&[f64]) -> Described,
) -> Outcome {
    let settings = flags.settings()?;
    settings.temper.check().map_err(Failure::usage)?;
    let folder = match (&flags.out, flags.resume) {
        (None, _) => None,
        (Some(path), false) => Some(folder::take(path, command)?),
        (Some(path), true) => Some(folder::open(path, command)?),
    };
    let quiet = flags.quiet || flags.json;
    let position = match &folder {
        Some(folder) if flags.resume => {
            let identity = identity(model, &settings, &points.digest);
            folder::position(folder, &identity, false, quiet)?
        }
        _ => None,
    };
    let session = Session {
        folder: folder.as_ref(),
        position,
        budget: Budget {
            max_iterations: u64::MAX,
            max_seconds: flags.max_seconds,
        },
        checkpoint_every: None,
        force: false,
        display: Display::new(quiet),
    };
    let mut course = Course::default();
    let (outcome, _) = session.carry_out(
        |record| course.add(record),
        |mut control| fit(model, &settings, &points.digest, &mut control),
    )?;
    let outcome = outcome.map_err(|error| Failure::usage(error.to_string()))?;
    let Some(fitted) = &outcome.output else {
        return Err(Failure::input(format!(
            "the fit cannot start: {}",
            outcome.status
        )));
    };
    let score = heldout(&fitted.lambda);
    let described = describe(&fitted.lambda);
    let finished = outcome.status.is_converged() || planned(&settings, &outcome);
    let hot = fitted.temperature > HOTTEST_TRUSTED;
    let done = finished && !hot;
    let summary = summary(
        command,
        flags,
        model.name(),
        &outcome,
        fitted,
        score,
        done,
        described.fields.clone(),
    );
    let text = serde_json::to_string_pretty(&summary).map_err(Failure::output)? + "\n";
    if let Some(folder) = &folder {
        folder::write(folder, "fit.json", text.as_bytes())?;
        let picture = |name: &str, figure: &Figure| {
            folder::write(folder, &format!("{name}.svg"), figure.to_svg().as_bytes())?;
            folder::write(folder, &format!("{name}.png"), &figure.to_png())
        };
        let charts = course.charts();
        let whole = charts.iter().fold(Figure::new(""), |figure, (chart, _)| {
            figure.panel(chart.clone())
        });
        picture("course", &whole)?;
        for (name, _, figure) in &described.pictures {
            picture(name, figure)?;
        }
        let page = sheet::sheet(&summary, flags, points, &described, charts, hot);
        let page = jensen::report::render_sheet(&page);
        folder::write(folder, "report.html", page.as_bytes())?;
    }
    if hot && !flags.quiet {
        remark(&format!(
            "warning: the fit ended at temperature {:.2}: it describes a flattened model, not the data; give it a cooling, \
             such as `--temper global=50`",
            fitted.temperature
        ));
    }
    if flags.json {
        print(&text)?;
    } else if !flags.quiet {
        let mut table = format!(
            "{}\nELBO      {:.3} nats, at T = 1\n",
            outcome.status, fitted.elbo
        );
        if let Some((mean, se)) = score {
            table += &format!("held out  {mean:.4} ± {se:.4} nats a point\n");
        }
        table += &described.text();
        if let Some(folder) = &folder {
            table += &format!("results   {}\n", folder.path().display());
        }
        print(&table)?;
    }
    Ok(if done { Exit::Done } else { Exit::Untrusted })
}

/// A fit that ends hotter than this is not one of the model itself.
const HOTTEST_TRUSTED: f64 = 1.05;

/// Whether the planned passes of a stochastic fit are done, which is all that was asked for.
fn planned(settings: &DriverSettings, outcome: &RunOutcome<ModelFit>) -> bool {
    matches!(settings.mode, Mode::Stochastic { .. })
        && matches!(
            outcome.status,
            Status::BudgetReached {
                limit: jensen::run::Limit::Iterations(_),
                ..
            }
        )
}

#[allow(clippy::too_many_arguments)]
fn summary(
    command: &str,
    flags: &PointFlags,
    model: &str,
    outcome: &RunOutcome<ModelFit>,
    fitted: &ModelFit,
    score: Option<(f64, f64)>,
    done: bool,
    fields: Value,
) -> Value {
    let mut summary = json!({
        "command": command,
        "model": model,
        "status": outcome.status.to_string(),
        "converged": outcome.status.is_converged(),
        "trusted": done,
        "elbo": fitted.elbo,
        "temper": flags.temper.name(),
        "temperature": fitted.temperature,
        "heldout_log_predictive": score.map(|s| s.0),
        "heldout_standard_error": score.map(|s| s.1),
        "iterations": outcome.iterations,
        "points": fitted.points,
        "skipped": fitted.skipped,
        "points_per_second": fitted.points as f64 / outcome.seconds.max(1e-9),
        "seconds": { "fit": outcome.seconds },
        "seed": flags.seed,
        "version": env!("CARGO_PKG_VERSION"),
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut summary, fields) {
        all.extend(more);
    }
    summary
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(parse_size("48x42"), Ok((48, 42)));
        for wrong in ["48", "0x3", "ax3", "4x"] {
            assert!(parse_size(wrong).is_err());
        }
    }
}
