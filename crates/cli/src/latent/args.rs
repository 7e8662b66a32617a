//! The command line of `jensen latent`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use jensen::latent::LatentRequest;

/// Latent Gaussian models: Gaussian processes, Markov fields, generalised linear models.
#[derive(Subcommand)]
pub enum LatentCommand {
    /// Fit a latent Gaussian model to a table
    Fit(Box<FitArgs>),
    /// Fit the intensity of points in a window: a log-Gaussian Cox process
    Points(PointsArgs),
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
  tp(on=(COLUMN, …), basis=…, precision=…)
  ar1(on=COLUMN, rho=…, variance=…)
  covariance(matrix=FILE, on=COLUMN, variance=…)
  precision(matrix=FILE, on=COLUMN, precision=…)
  icar(graph=FILE, on=COLUMN, precision=…)
  bym2(graph=FILE, on=COLUMN, precision=…, phi=…)
  grid(rw1|rw2|spde, ROWS, COLUMNS, on=CELL, mask=FILE, precision=…)
  mesh(spde, on=(COLUMN, COLUMN), edge=…, range=…, variance=…)

A kernel is rbf, matern12, matern32, matern52, rq, linear, constant, or a product of them with `*`. A grid is on a CELL or on
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

const POINTS_EXAMPLES: &str = "\
Examples:
  jensen latent points trees.csv --on east,north --window plot.csv --intensity trees-map.csv
  jensen latent points fires.csv --on x,y --window area.csv --covariates heights.csv \\
      --prior 'intercept() + fixed(height) + mesh(spde, on=(x, y))' --out fires

The log intensity is the sum of the prior's terms and the logarithm of the mean intensity. The posterior of a fit with --out is
read by `jensen latent predict`: --at needs the coordinates and the covariates, and the columns area and log_mean of the fit.

--intensity writes the number of points per unit of area in each cell of the window: the posterior mean, and the 5 % and 95 %
quantiles.";

/// Fits the intensity of points.
#[derive(Args)]
#[command(after_help = POINTS_EXAMPLES)]
pub struct PointsArgs {
    /// The locations of the points: a table with two columns of coordinates
    pub points: PathBuf,
    /// The columns of coordinates, in the same unit
    #[arg(long, value_name = "X,Y", value_delimiter = ',', required = true)]
    pub on: Vec<String>,
    /// The vertices of the polygon in which all points were observed, in order [default: a rectangle around the points]
    #[arg(long, value_name = "FILE")]
    pub window: Option<PathBuf>,
    /// Covariates at other locations, such as the cells of a raster; a point has the values of the nearest one
    #[arg(long, value_name = "FILE")]
    pub covariates: Option<PathBuf>,
    /// Prior of the log intensity relative to its mean, as for `latent fit` [default: an intercept and a field on a mesh]
    #[arg(long, value_name = "SPEC")]
    pub prior: Option<String>,
    /// Longest side of the cells over which the intensity is integrated [default: 2500 cells]
    #[arg(long, value_name = "LENGTH", value_parser = jensen::job::words::positive)]
    pub cell: Option<f64>,
    /// Write the intensity in each cell to this file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub intensity: Option<PathBuf>,
    /// Write results and checkpoints to this folder
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Print fit.json, with the quantities of the window, to standard output, and nothing else
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print no progress, warnings or table
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
    /// Largest number of wall-clock seconds
    #[arg(long, value_name = "S", value_parser = jensen::job::words::positive, help_heading = "Budget")]
    pub max_seconds: Option<f64>,
    /// Seed of the joint draws behind the interval of the number of points [default: 0]
    #[arg(long, value_name = "S", help_heading = "Budget")]
    pub seed: Option<u64>,
    /// Threads [default: all of the machine]
    #[arg(long, value_name = "T", value_parser = jensen::job::words::thread_count, help_heading = "Budget")]
    pub threads: Option<usize>,
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
