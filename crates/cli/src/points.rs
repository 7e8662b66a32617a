//! What `jensen mixture` and `jensen factors` share: flags, data, the run and its results.

use std::path::{Path, PathBuf};

use clap::Args;
use jensen::conjugate::driver::{DriverSettings, Mode};
use jensen::conjugate::fit::{ModelFit, fit, identity};
use jensen::conjugate::model::Model;
use jensen::conjugate::temper::Temper;
use jensen::data::table::Table;
use jensen::math::rng::{Purpose, permutation};
use jensen::report::figure::{Axis, Chart, Figure, Series};
use jensen::run::{Budget, Outcome as RunOutcome, Record, Status};
use serde_json::{Value, json};

use crate::failure::{Exit, Failure, Outcome, print, remark};
use crate::flags::{self, parse_not_negative, parse_positive, parse_threads};
use crate::progress::Display;
use crate::run::folder;
use crate::run::session::{Session, start_threads};

/// Flags of every model of points.
#[derive(Args, Clone, Debug)]
pub struct PointFlags {
    /// Temperature: none, anneal=PASSES (falls to 1 in so many passes or iterations), global (one, inferred) or local
    /// (one a point, inferred)
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
            temper: self.temper.clone(),
            seed: self.seed,
            scores_per_pass: 0.0,
        })
    }
}

/// Rows of numbers, with those to learn from apart from those held out.
pub struct Points {
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

    /// Reads a table whose columns are all numbers.
    pub fn read(path: &Path, flags: &PointFlags) -> Result<Self, Failure> {
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

    /// Bound and temperature as a picture.
    fn figure(&self) -> Figure {
        let mut figure = Figure::new("");
        if !self.bounds.is_empty() {
            let chart = Chart::new("Bound at the present temperature")
                .x(Axis::new("iteration"))
                .y(Axis::new("nats"))
                .series(Series::line("", self.bounds.iter().copied()));
            figure = figure.panel(chart);
        }
        let chart = Chart::new("Temperature")
            .x(Axis::new("iteration"))
            .y(Axis::new("T"))
            .series(Series::line("", self.temperatures.iter().copied()));
        figure.panel(chart)
    }
}

/// What a command adds to the results: JSON fields, and lines for the user.
pub struct Described {
    /// Fields of fit.json.
    pub fields: Value,
    /// Lines of the table.
    pub lines: Vec<String>,
    /// A picture, by file name without extension.
    pub picture: Option<(&'static str, Figure)>,
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
    start_threads(flags::threads(flags.threads))?;
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
        described.fields,
    );
    let text = serde_json::to_string_pretty(&summary).map_err(Failure::output)? + "\n";
    if let Some(folder) = &folder {
        folder::write(folder, "fit.json", text.as_bytes())?;
        let picture = |name: &str, figure: &Figure| {
            folder::write(folder, &format!("{name}.svg"), figure.to_svg().as_bytes())?;
            folder::write(folder, &format!("{name}.png"), &figure.to_png())
        };
        picture("course", &course.figure())?;
        if let Some((name, figure)) = &described.picture {
            picture(name, figure)?;
        }
    }
    if hot && !flags.quiet {
        remark(&format!(
            "warning: the fit ended at temperature {:.2}: it describes a flattened model, not the data; use `--temper \
             anneal=PASSES`, or a lower hottest temperature",
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
        for line in described.lines {
            table += &line;
            table.push('\n');
        }
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
