//! The command line.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};

use jensen::program::FitRequest;

/// Variational inference with evidence: a Stan program and data in, a checked posterior out.
#[derive(Parser)]
#[command(name = "jensen", version, after_help = crate::left_out::help() + EXIT_CODES, max_term_width = 100)]
pub struct Line {
    /// Exit with 0 even if the result is not trusted
    #[arg(long, global = true)]
    pub exit_zero: bool,
    /// Log progress to standard error, with the seconds since the start
    #[arg(long, short, global = true)]
    pub verbose: bool,
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done, and the result can be trusted
  2  wrong usage, or an output that cannot be written
  3  bad model or data, with a diagnostic on standard error
  4  finished, but the result is not trusted; results are written (--exit-zero makes it 0)
  5  internal error";

#[derive(Subcommand)]
pub enum Command {
    /// Fit a model: approximate its posterior and judge the approximation
    Fit(Box<FitArgs>),
    /// Fit a regression: a table and a formula such as `y ~ x + (1 | g)`
    Regress(Box<crate::regress::RegressArgs>),
    /// Fit a model to many data sets and with many seeds, and write one table
    FitMany(Box<FitManyArgs>),
    /// Draw more from a stored fit
    Draws(DrawsArgs),
    /// Compute generated quantities at the draws of a fit, such as predictions for new data
    Generate(GenerateArgs),
    /// Compare fits of the same observations by PSIS-LOO and evidence
    Compare(CompareArgs),
    /// Parse and type-check programs, optionally with data
    Check(CheckArgs),
    /// Evaluate the log density, gradients and Hessian-vector products at given points
    Density(DensityArgs),
    /// Print a program after a stage of compilation
    Show(ShowArgs),
    #[cfg(feature = "reproduce")]
    /// Reproduce the tables and figures of a paper from real data
    Reproduce(ReproduceArgs),
    #[cfg(feature = "topics")]
    /// Topic models of text larger than memory
    #[command(subcommand)]
    Topics(Box<crate::topics::args::TopicsCommand>),
    #[cfg(feature = "mixture")]
    /// Mixtures: clusters of points
    #[command(subcommand)]
    Mixture(crate::points::MixtureCommand),
    #[cfg(feature = "mixture")]
    /// Factorial mixtures: points as sums of binary factors
    #[command(subcommand)]
    Factors(crate::points::FactorsCommand),
    #[cfg(feature = "mixture")]
    /// Hidden Markov models of sequences
    #[command(subcommand)]
    Hmm(crate::hmm::HmmCommand),
    #[cfg(feature = "latent")]
    /// Factor analysis and probabilistic principal components of tables, with missing cells
    #[command(subcommand)]
    FactorAnalysis(crate::analysis::AnalysisCommand),
    #[cfg(feature = "latent")]
    /// Latent Gaussian models of tables: Gaussian processes, Markov fields, linear models
    #[command(subcommand)]
    Latent(Box<crate::latent::args::LatentCommand>),
    #[cfg(feature = "vae")]
    /// Auto-encoders of images and tables
    #[command(subcommand)]
    Vae(Box<crate::vae::args::VaeCommand>),
    /// Measure speed
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Print shell completions
    Completions(CompletionsArgs),
}

/// The data of a program.
#[derive(Args)]
pub struct DataArg {
    /// Data: Stan JSON, a table (*.csv), or an R dump (*.R)
    #[arg(id = "DATA")]
    given: Option<PathBuf>,
    /// The data, as a flag
    #[arg(long = "data", value_name = "FILE", conflicts_with = "DATA")]
    named: Option<PathBuf>,
}

impl DataArg {
    pub fn path(&self) -> Option<&Path> {
        self.given.as_deref().or(self.named.as_deref())
    }
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  jensen completions bash > ~/.local/share/bash-completion/completions/jensen
  jensen completions fish > ~/.config/fish/completions/jensen.fish";

/// Completes commands.
#[derive(Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

const FIT_EXAMPLES: &str = "\
Examples:
  jensen fit model.stan data.json
  jensen fit model.stan data.json --out results --seed 7
  jensen fit model.stan data.json --method advi --family fullrank
  jensen fit model.stan data.json --optimizer adam --step-size 0.01 --max-seconds 60
  jensen fit --resume results --max-iters 20000
  jensen fit model.stan sizes.json --calibrate 200 --simulator simulate.stan --out calibration

`converged` concerns the optimiser; `trusted` adds checks of the draws. A fit that is
not trusted exits with 4 and prints the reasons. The folder of --out holds fit.json, draws.csv (Stan CSV), draws.nc
(for arviz.from_netcdf), trace.jsonl, report.html, approximation.safetensors, and what `jensen draws` and
--resume need.";

/// Fits a model.
#[derive(Args)]
#[command(after_help = FIT_EXAMPLES)]
pub struct FitArgs {
    /// The Stan program (may be omitted with --resume)
    #[arg(required_unless_present = "resume")]
    pub model: Option<PathBuf>,
    #[command(flatten)]
    pub data: DataArg,
    /// Folder to search for included files (repeatable); a program can include only files in these folders
    #[arg(long, value_name = "DIR")]
    pub include: Vec<PathBuf>,

    /// Accept the syntax before Stan 2.33; `jensen check --old-syntax` prints the program in today's syntax
    #[arg(long)]
    pub old_syntax: bool,

    #[command(flatten)]
    pub request: FitRequest,
    /// Threads [default: all of the machine]
    #[arg(long, value_name = "T", value_parser = jensen::job::words::thread_count, help_heading = "Run")]
    pub threads: Option<usize>,

    /// Write results and checkpoints to this folder
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Continue the run in this folder from its last checkpoint, with the same bits as an uninterrupted run
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub resume: Option<PathBuf>,
    /// Resume although model, data or settings differ from the stored run
    #[arg(long, requires = "resume", help_heading = "Output")]
    pub force: bool,
    /// Names and labels of dimensions in draws.nc: JSON such as {"coords": {"school": ["Choate", …]}, "dims": {"theta":
    /// ["school"]}}; other dimensions are named after their declared size
    #[arg(long, value_name = "FILE.json", help_heading = "Output")]
    pub coords: Option<PathBuf>,
    /// Write the parameters at four draws to FILE_1.json … FILE_4.json, for CmdStan's init=FILE.json
    #[arg(long, value_name = "FILE.json", help_heading = "Output")]
    pub inits_out: Option<PathBuf>,
    /// Fit R simulated data sets instead of the data, and test whether the ranks of the true values among the draws are
    /// uniform; the same command resumes a stopped run
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u64).range(jensen::calibration::FEWEST as u64..),
        conflicts_with_all = ["resume", "inits_out", "json"], help_heading = "Calibration")]
    pub calibrate: Option<u64>,
    /// A program whose generated quantities draw parameters and data, under the names of the fitted program; it receives the
    /// same data
    #[arg(
        long,
        value_name = "FILE.stan",
        requires = "calibrate",
        help_heading = "Calibration"
    )]
    pub simulator: Option<PathBuf>,
    /// Print fit.json to standard output, and nothing else
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print no progress, warnings or table
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

const FIT_MANY_EXAMPLES: &str = "\
Examples:
  jensen fit-many model.stan data/*.json --out fits
  jensen fit-many model.stan data.json --seeds 1..20 --workers 4 --out fits

The folder of --out holds table.csv (verdict, ELBO, k̂, seconds, mean and sd of every scalar) and rows.jsonl, to which
each row is added as soon as its fit ends. A fit that fails has a row with the message. The same command continues where
it was stopped and repeats failed fits; more data sets or seeds add rows. Exits with 4 if a row is not trusted.";

/// Fits a model many times.
#[derive(Args)]
#[command(after_help = FIT_MANY_EXAMPLES)]
pub struct FitManyArgs {
    /// The Stan program
    pub model: PathBuf,
    /// Data sets: Stan JSON, tables (*.csv), or R dumps (*.R)
    #[arg(required = true)]
    pub data: Vec<PathBuf>,
    /// Folder to search for included files (repeatable); a program can include only files in these folders
    #[arg(long, value_name = "DIR")]
    pub include: Vec<PathBuf>,
    #[command(flatten)]
    pub request: FitRequest,
    /// Fit every data set with each of these seeds: 1..20, or a list with commas [default: --seed]
    #[arg(
        long,
        value_name = "SEEDS",
        conflicts_with = "seed",
        help_heading = "Run"
    )]
    pub seeds: Option<String>,
    /// Fits at a time, each on one thread [default: all of the machine]
    #[arg(long, value_name = "W", value_parser = jensen::job::words::thread_count, help_heading = "Run")]
    pub workers: Option<usize>,
    /// Write the table to this folder
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub out: PathBuf,
    /// Print no progress and no summary
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

const DRAWS_EXAMPLES: &str = "\
Examples:
  jensen draws results --draws 10000 > draws.csv
  jensen draws results --draws 10000 --out more.nc

With the seed of the fit (the default) the first draws equal those of the fit.";

/// More draws from a stored approximation.
#[derive(Args)]
#[command(after_help = DRAWS_EXAMPLES)]
pub struct DrawsArgs {
    /// The folder of a fit
    pub dir: PathBuf,
    /// Number of draws
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub draws: u64,
    /// Seed of the draws [default: the seed of the fit]
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Variables, separated by commas: parameters, transformed, generated, all, or names [default: those of the fit]
    #[arg(long, value_name = "WHAT")]
    pub save: Option<String>,
    /// Resample the draws by importance weights from ten times as many
    #[arg(long)]
    pub importance_resample: bool,
    /// Write to this file (*.nc: NetCDF for ArviZ, else Stan CSV) instead of standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Names and labels of dimensions in a *.nc file, as for `jensen fit` [default: those of the fit]
    #[arg(long, value_name = "FILE.json")]
    pub coords: Option<PathBuf>,
    /// Threads [default: all of the machine]
    #[arg(long, value_name = "T", value_parser = jensen::job::words::thread_count)]
    pub threads: Option<usize>,
}

const GENERATE_EXAMPLES: &str = "\
Examples:
  jensen generate predict.stan results --data new.json > predictions.csv
  jensen generate model.stan results --save y_rep --out y_rep.nc

The program has the parameters of the fit; its model block is ignored. Without --data it receives the data
of the fit. Every draw of draws.csv gives one row, in order, with log_p__ and log_g__ of the fit.";

/// Generated quantities at stored draws.
#[derive(Args)]
#[command(after_help = GENERATE_EXAMPLES)]
pub struct GenerateArgs {
    /// The Stan program
    pub model: PathBuf,
    /// The folder of a fit whose draws have its parameters
    pub dir: PathBuf,
    /// The program's data: Stan JSON, a table (*.csv), or an R dump (*.R) [default: those of the fit]
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Folder to search for included files (repeatable); a program can include only files in these folders
    #[arg(long, value_name = "DIR")]
    pub include: Vec<PathBuf>,
    /// Variables to write, separated by commas: parameters, transformed, generated, all, or names
    #[arg(long, value_name = "WHAT", default_value = "generated")]
    pub save: String,
    /// Seed of the random numbers [default: the seed of the fit]
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Write to this file (*.nc: NetCDF for ArviZ, else Stan CSV) instead of standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Names and labels of dimensions in a *.nc file, as for `jensen fit`
    #[arg(long, value_name = "FILE.json")]
    pub coords: Option<PathBuf>,
    /// Write the mean, sd and quantiles of every scalar to this file, in the format of fit.json
    #[arg(long, value_name = "FILE.json")]
    pub summary: Option<PathBuf>,
    /// Threads [default: all of the machine]
    #[arg(long, value_name = "T", value_parser = jensen::job::words::thread_count)]
    pub threads: Option<usize>,
}

const COMPARE_EXAMPLES: &str = "\
Examples:
  jensen compare pooled partly-pooled unpooled
  jensen compare linear quadratic --log-lik log_likelihood --json

Rows are in nats, the best first. `elpd` is the expected log predictive density of leaving one observation out,
estimated from the draws (PSIS-LOO); it needs the log likelihood of every observation as a generated quantity.
`difference` is to the first row, with its standard error over observations: one of less than about 4 nats, or
of less than two standard errors, does not tell the models apart. The log evidence is that of refined fits.";

/// Compares fits.
#[derive(Args)]
#[command(after_help = COMPARE_EXAMPLES)]
pub struct CompareArgs {
    /// Folders of fits of the same observations
    #[arg(required = true, value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// The generated quantity with the log likelihood of every observation
    #[arg(long, value_name = "NAME", default_value = "log_lik")]
    pub log_lik: String,
    /// Print JSON, with the contribution of every observation
    #[arg(long)]
    pub json: bool,
}

const CHECK_EXAMPLES: &str = "\
Examples:
  jensen check model.stan
  jensen check model.stan data.json
  jensen check --old-syntax old.stan > new.stan";

/// Parses and type-checks programs, and compiles them with data.
#[derive(Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub struct CheckArgs {
    /// The Stan programs, and a file of data (*.json, *.csv, *.tsv, *.R) to compile them with, as `jensen fit` does
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The data, as a flag
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Folder to search for included files (repeatable)
    #[arg(long, value_name = "DIR")]
    pub include: Vec<PathBuf>,
    /// Accept the syntax before Stan 2.33, and print the programs in today's syntax
    #[arg(long)]
    pub old_syntax: bool,
}

const DENSITY_EXAMPLES: &str = "\
Examples:
  echo '[[0, 0, 1.5]]' | jensen density model.stan data.json --at - --gradient
  jensen density model.stan data.json --at points.json --hvp directions.json

The output is {\"value\": […], \"gradient\": [[…]], \"hvp\": [[…]]}, with null for values that are not finite.";

/// Log density and derivatives at points.
#[derive(Args)]
#[command(after_help = DENSITY_EXAMPLES)]
pub struct DensityArgs {
    /// The Stan program
    pub model: PathBuf,
    #[command(flatten)]
    pub data: DataArg,
    /// JSON list of unconstrained points, each a list of numbers; `-` reads standard input
    #[arg(long, value_name = "POINTS.json")]
    pub at: PathBuf,
    /// Include gradients
    #[arg(long)]
    pub gradient: bool,
    /// Hessian-vector products with these directions: one for each point, or one for all
    #[arg(long, value_name = "VECTORS.json")]
    pub hvp: Option<PathBuf>,
    /// Drop the additive constants of `~` statements
    #[arg(long)]
    pub propto: bool,
    /// Omit the log-Jacobians of the parameters' transforms
    #[arg(long)]
    pub no_jacobian: bool,
    #[command(flatten)]
    pub build: BuildFlags,
}

/// Common arguments of commands that build a model.
#[derive(Args)]
pub struct BuildFlags {
    /// Folder to search for included files (repeatable)
    #[arg(long, value_name = "DIR")]
    pub include: Vec<PathBuf>,
    /// Seed of random numbers in transformed data
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// Instruction set
    #[arg(long, value_name = "auto|avx512|avx2|scalar", default_value = "auto")]
    pub simd: String,
    /// Refuse a run that needs more memory than this
    #[arg(long, value_name = "SIZE", default_value = "8GiB", value_parser = jensen::job::words::bytes)]
    pub memory_limit: u64,
}

/// Shows a stage.
#[derive(Args)]
pub struct ShowArgs {
    /// The Stan program
    pub model: PathBuf,
    #[command(flatten)]
    pub data: DataArg,
    /// The stage to print
    #[arg(long, value_enum)]
    pub stage: StageName,
    #[command(flatten)]
    pub build: BuildFlags,
}

/// The stages that the command can print.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StageName {
    /// Tokens with their locations
    Tokens,
    /// The syntax tree as fully parenthesised Stan code
    Ast,
    /// The typed program
    Program,
    /// The expression graph of the log density and its gradient
    Graph,
}

const REPRODUCE_EXAMPLES: &str = "\
Examples:
  jensen reproduce
  jensen reproduce trustvi --out trustvi
  jensen reproduce trustvi --out trustvi --scale paper --resume

The folder of --out gets results.json, rewritten after every row, and each figure as SVG and PNG. Without a
name, or with LIST, the command lists the experiments with their parts and data.";

/// Reproduces tables and figures.
#[derive(Args)]
#[command(after_help = REPRODUCE_EXAMPLES)]
pub struct ReproduceArgs {
    /// The experiment; LIST or nothing lists them
    pub name: Option<String>,
    /// Folder of the data [default: data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// A corpus for the part `figure2-given` of `tempering`, in any format that `jensen topics build` reads
    #[arg(long, value_name = "FILE")]
    pub corpus: Option<PathBuf>,
    /// Folder of Stan programs NAME.stan with data NAME.json or NAME.data.R for `trustvi`, including its subfolders
    #[arg(long, value_name = "DIR")]
    pub models: Option<PathBuf>,
    /// Folder of the results [default: reproductions/NAME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Fewer seeds and steps on real data, at most 20 minutes on two cores; or as large as in the paper
    #[arg(long, value_enum, default_value = "quick")]
    pub scale: ScaleName,
    /// Run only this part (repeatable)
    #[arg(long, value_name = "PART")]
    pub only: Vec<String>,
    /// Keep the rows in the folder of --out and continue
    #[arg(long)]
    pub resume: bool,
    /// Threads [default: all of the machine]
    #[arg(long, value_name = "T", value_parser = jensen::job::words::thread_count)]
    pub threads: Option<usize>,
    /// Print no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// The budget of a run.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScaleName {
    /// Real data; fewer seeds, steps and draws
    Quick,
    /// Full size
    Paper,
}

#[derive(Subcommand)]
pub enum BenchCommand {
    /// Time a model's log density, gradient and Hessian-vector product on one thread
    Density(BenchDensityArgs),
}

/// Times a density.
#[derive(Args)]
pub struct BenchDensityArgs {
    /// The Stan program
    pub model: PathBuf,
    #[command(flatten)]
    pub data: DataArg,
    /// Number of draws evaluated at once.
    #[arg(long, value_name = "L", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    pub lanes: u32,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub build: BuildFlags,
}
