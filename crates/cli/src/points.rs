//! `jensen mixture` and `jensen factors`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use jensen::Error;
use jensen::data::Table;
use jensen::job::Around;
use jensen::points::{
    Described, Explained, FACTORS, FactorsRequest, MIXTURE, MixtureModel, MixtureRequest,
    PointRequest, Points, PointsFit, PointsSummary, fit_factors, fit_mixture,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::{CommandResult, Exit};
use crate::progress::BoundLine;
use crate::rows::{Destination as RowDestination, numbered, write_rows};
use crate::table_fit::{Asked, TableFit, named};
use crate::terminal::{Setting, conclude, start_threads, verdict};

const MIXTURE_EXAMPLES: &str = "\
Examples:
  jensen mixture fit points.csv --components 5 --out results
  jensen mixture fit points.npy --components 20 --covariance diagonal --temper global
  jensen mixture fit answers.csv --components 4 --kind bernoulli --batch 100 --passes 5
  jensen mixture fit points.csv --components 1..10 --starts 5 --out results
  jensen mixture fit points.csv --components 30 --mixing process --out results

DATA is a CSV file with a header, an .npy, .npz or .parquet file; every column except --weights is used. Empty cells are
missing values, and are integrated out. Without --batch, coordinate ascent runs until it converges; with it, stochastic steps make the
number of --passes.";

const PREDICT_EXAMPLES: &str = "\
Examples:
  jensen mixture predict results new.csv
  jensen mixture predict results new.csv --out components.csv --out components.npy

DATA is a table with the columns of the fit; other columns are ignored. Each row gives the most probable component
(from 1, in the order of fit.json), the log density in nats of the row under the posterior predictive distribution, and
the probability of every component. Empty cells are missing values, and are integrated out.";

/// Mixtures of points.
#[derive(Subcommand)]
pub enum MixtureCommand {
    /// Fit a mixture to the rows of a table
    #[command(after_help = MIXTURE_EXAMPLES)]
    Fit(Box<TableFit<MixtureRequest>>),
    /// Predict the components of rows and their log densities
    #[command(after_help = PREDICT_EXAMPLES)]
    Predict(PredictArgs),
}

/// Applies a mixture to points.
#[derive(Args)]
pub struct PredictArgs {
    /// The folder of a finished fit
    dir: PathBuf,
    /// The table
    data: PathBuf,
    /// Write to this file instead of standard output: .csv or .npy; may be given several times
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    out: Vec<PathBuf>,
    /// Number of threads
    #[arg(long, value_name = "T", value_parser = jensen::job::words::thread_count, help_heading = "Run")]
    threads: Option<usize>,
}

const FACTORS_EXAMPLES: &str = "\
Examples:
  jensen factors fit patches.npy --factors 8 --noise-variance 0.1 --image 4x4 --out results
  jensen factors fit faces.npz --factors 30 --noise-variance 0.5 --factor-variance 0.5 --temper global

DATA is a CSV file with a header, an .npy, .npz or .parquet file; every column is used. With --image, factors.png shows
the factors as pictures of that width and height, row by row.";

/// Factorial mixtures.
#[derive(Subcommand)]
pub enum FactorsCommand {
    /// Fit binary factors to the rows of a table
    #[command(after_help = FACTORS_EXAMPLES)]
    Fit(Box<TableFit<FactorsRequest>>),
}

/// Reads a table, each row of which is a point.
fn read(method: &PointRequest, data: &Path) -> Result<Points, Error> {
    // The flags are checked before any file is read or written.
    method.settings()?;
    Points::read(data, method)
}

pub fn mixture(command: MixtureCommand) -> CommandResult {
    match command {
        MixtureCommand::Fit(args) => {
            let points = |r: &MixtureRequest, data: &Path| match &r.weights {
                None => read(&r.points, data),
                Some(weights) => {
                    r.points.settings()?;
                    Points::of_weighted(&Table::read(data)?, weights, &r.points)
                }
            };
            run(*args, MIXTURE, |r| r.data.as_deref(), points, fit_mixture)
        }
        MixtureCommand::Predict(args) => predict(&args),
    }
}

fn predict(args: &PredictArgs) -> CommandResult {
    start_threads(args.threads)?;
    let destinations = RowDestination::all(&args.out)?;
    let model = MixtureModel::open(&args.dir)?;
    let points = Points::of_columns(&Table::read(&args.data)?, &model.columns)?;
    let Explained {
        assignments,
        bounds,
    } = model.explain(&points)?;
    let mut names = vec!["component".to_owned(), "log_density".to_owned()];
    names.extend(numbered("p", model.components));
    for destination in &destinations {
        write_rows(destination, bounds.len(), &names, &mut |out| {
            for (p, log_density) in assignments.chunks_exact(model.components).zip(&bounds) {
                let best = (1..p.len()).fold(0, |best, k| if p[k] > p[best] { k } else { best });
                let mut row = vec![(best + 1) as f64, *log_density];
                row.extend_from_slice(p);
                out.write(&row)?;
            }
            Ok(())
        })?;
    }
    Ok(Exit::Done)
}

pub fn factors(command: FactorsCommand) -> CommandResult {
    let FactorsCommand::Fit(args) = command;
    let points = |r: &FactorsRequest, data: &Path| read(&r.points, data);
    run(*args, FACTORS, |r| r.data.as_deref(), points, fit_factors)
}

/// Runs a command that fits a table. `data` returns the path of the table in the request, `read` reads this file, and
/// `fit` receives the result.
pub(crate) fn run<R: Args + Serialize + DeserializeOwned, D>(
    args: TableFit<R>,
    command: &str,
    data: impl Fn(&R) -> Option<&Path>,
    read: impl FnOnce(&R, &Path) -> Result<D, Error>,
    fit: impl FnOnce(&R, &D, Around<'_>) -> Result<PointsFit, Error>,
) -> CommandResult {
    let Asked {
        request,
        results,
        out,
        say,
    } = args.asked(command)?;
    let points = read(&request, named(data(&request))?)?;
    let setting = Setting::new(results, Box::<BoundLine>::default());
    let (made, summary) = setting.watch(say, |around| fit(&request, &points, around))?;
    let trusted = summary.judgement.trusted;
    let text = |summary: &PointsSummary| table(summary, &made.described);
    conclude(&summary, trusted, out.as_deref(), say, 9, text)
}

/// The numbers of rows and columns of a table that fit on the terminal. The report contains more of them, and fit.json
/// contains all of them.
const SHOWN: (usize, usize) = (12, 8);

fn table(summary: &PointsSummary, described: &Described) -> String {
    let mut text = verdict(&summary.judgement, 9);
    if let Some(elbo) = summary.elbo {
        text += &format!("ELBO      {elbo:.3} nats, at T = 1\n");
    }
    if let (Some(mean), Some(se)) = (
        summary.heldout_log_predictive,
        summary.heldout_standard_error,
    ) {
        text += &format!("held out  {mean:.4} ± {se:.4} nats a point\n");
    }
    if let Some(occupied) = summary.occupied {
        text += &format!("in use    {occupied} components\n");
    }
    if let Some((heads, rows)) = summary.compared() {
        text += &aligned(std::iter::once(&heads).chain(&rows), heads.len());
        text.push('\n');
    }
    let (heads, rows) = &described.table;
    let columns = heads.len().min(SHOWN.1);
    let shown: Vec<&Vec<String>> = std::iter::once(heads)
        .chain(rows.iter().take(SHOWN.0))
        .collect();
    text += &aligned(shown.iter().copied(), columns);
    let more = (rows.len() - (shown.len() - 1), heads.len() - columns);
    if more != (0, 0) {
        text += &format!(
            "… {} more {}s and {} more columns are in fit.json\n",
            more.0, described.rows, more.1
        );
    }
    text
}

/// Formats rows of cells so that every column is right-aligned.
fn aligned<'a>(rows: impl Iterator<Item = &'a Vec<String>> + Clone, columns: usize) -> String {
    let width = |c: usize| rows.clone().map(|row| row[c].chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|c| width(c).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:>width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.clone().map(line).collect()
}
