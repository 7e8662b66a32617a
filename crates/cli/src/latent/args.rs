//! The command line of `jensen latent`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use jensen::latent::LatentRequest;

/// Latent Gaussian models: Gaussian processes, Markov fields, generalised linear models.
#[derive(Subcommand)]
pub enum LatentCommand {
    /// Fit a latent Gaussian model to a table
    Fit(Box<FitArgs>),
    /// Predict the rows of another table with a stored fit
    Predict(PredictArgs),
}

const FIT_EXAMPLES: &str = "\
Examples:
  jensen latent fit ionosphere.csv --likelihood bernoulli --prior 'gp(rbf, lengthscale=2.7, variance=7.4)'
  jensen latent fit oral.csv --likelihood poisson --exposure expected --prior 'icar(graph=germany.graph)' \\
      --response cases --out oral
  jensen latent fit trees.csv --likelihood poisson --prior 'fixed(altitude, slope) + grid(rw2, 101, 201)'
  jensen latent fit rain.csv --likelihood binomial --trials n --prior 'rw2(on=day, cyclic)' --response y

A prior is a sum (`+`) of:
  gp(KERNEL, ard, on=COLUMNS, lengthscale=…, variance=…)
  iid(on=COLUMN, variance=…)
  fixed(COLUMN, …, variance=…)
  intercept(variance=…)
  rw1(on=COLUMN, cyclic, precision=…), rw2(…)
  te(on=(COLUMN, COLUMN), basis=…, precision=…)
  ar1(on=COLUMN, rho=…, variance=…)
  covariance(matrix=FILE, on=COLUMN, variance=…)
  precision(matrix=FILE, on=COLUMN, precision=…)
  icar(graph=FILE, on=COLUMN, precision=…)
  bym2(graph=FILE, on=COLUMN, precision=…, phi=…)
  grid(rw1|rw2|spde, ROWS, COLUMNS, on=CELL, mask=FILE, precision=…)
  mesh(spde, on=(COLUMN, COLUMN), edge=…, range=…, variance=…)

A kernel is rbf, matern12, matern32, matern52, linear, constant, or a product of them with `*`. A grid is on a CELL or on
(ROW, COLUMN); spde has range=… and variance=… instead of a precision.

`name=value` fixes a hyperparameter, `name~value` sets its starting value, `name~pc(U, α)` its prior (also gamma, inv_gamma,
lognormal, beta, exponential); other hyperparameters have documented starting values and priors. --fixed keeps all
starting values. Rows without a response do not enter the fit. The folder of --out holds fit.json, predictions.csv, trace.jsonl, report.html, approximation.safetensors, and what `jensen latent predict`
and --resume need.";

/// Fits a model.
#[derive(Args)]
#[command(after_help = FIT_EXAMPLES)]
pub struct FitArgs {
    #[command(flatten)]
    pub flags: LatentRequest,
    /// The table: CSV or text (with or without a header), NPY or NPZ; *.gz is read too
    #[arg(id = "DATA", required_unless_present_any = ["resume", "data"])]
    pub given: Option<PathBuf>,
    /// The data, as a flag
    #[arg(long, value_name = "FILE", conflicts_with = "DATA")]
    pub data: Option<PathBuf>,

    /// Write results and checkpoints to this folder
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Continue the run in this folder from its last checkpoint, with the same bits as an uninterrupted run
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "data", "DATA"], help_heading = "Output")]
    pub resume: Option<PathBuf>,
    /// Resume although settings differ from the stored run
    #[arg(long, requires = "resume", help_heading = "Output")]
    pub force: bool,
    /// Print fit.json to standard output, and nothing else
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print no progress, warnings or table
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

const PREDICT_EXAMPLES: &str = "\
Examples:
  jensen latent predict results --at new.csv > predictions.csv
  jensen latent predict results --at heldout.csv --out predictions.csv --json
  jensen latent predict results --at regions.csv --draws 1000 --out draws.csv

Columns: the linear predictor's mean and standard deviation (one pair a category for multinomial), the mean of the observation,
and the central 90 % of that mean; for numbers and counts also the central 90 % of the observation itself (y_q05, y_q95); where
FILE has the response, its log predictive density in nats. --json prints the scores.

--draws draws the rows jointly, so sums, differences and maxima over them have the right spread. Each
row of each draw gives a line with the linear predictor, the mean of the observation and a simulated observation.";

/// Predicts.
#[derive(Args)]
#[command(after_help = PREDICT_EXAMPLES)]
pub struct PredictArgs {
    /// The folder of a fit
    pub dir: PathBuf,
    /// The rows to predict: a table with the columns that the prior names
    #[arg(long, value_name = "FILE")]
    pub at: PathBuf,
    /// Write the predictions to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Joint draws from the posterior at the rows, instead of means and intervals
    #[arg(long, value_name = "N", conflicts_with = "json", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub draws: Option<u64>,
    /// Seed of the draws [default: the seed of the fit]
    #[arg(long, value_name = "S", requires = "draws")]
    pub seed: Option<u64>,
    /// Print the scores as one JSON object
    #[arg(long, requires = "out")]
    pub json: bool,
    /// Threads [default: all of the machine]
    #[arg(long, value_name = "T", value_parser = jensen::job::words::thread_count)]
    pub threads: Option<usize>,
}
