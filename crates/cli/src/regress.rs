//! `jensen regress`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use jensen::Fitted;
use jensen::data::table_csv::quoted;
use jensen::data::{
    NetcdfAttributes, ParameterSummary, Roles, write_atomic_bytes, write_draws_csv,
    write_draws_netcdf,
};
use jensen::job::{MEMORY_LIMIT, ResultFolder, words};
use jensen::program::{FitRequest, Program, RefineName};
use jensen::regress::{
    EffectSummary, Kept, Predicted, Regression, Request, Sensitive, curves, effects, predict,
    read_frame, sensitivity,
};

use crate::failure::{CommandResult, Exit, Failure, print, remark};
use crate::limits;
use crate::progress::BoundLine;
use crate::table;
use crate::terminal::{Say, Setting, conclude, start_threads};

const EXAMPLES: &str = "\
Examples:
  jensen regress sleep.csv 'reaction ~ days + (days | subject)' --out sleep
  jensen regress ticks.csv 'ticks ~ year + height + (1 | brood)' --family poisson
  jensen regress herds.csv 'cases | trials(size) ~ period + (1 | herd)' --family binomial
  jensen regress growth.csv 'length ~ s(age)' 'sigma ~ age' --prior 'b ~ normal(0, 1)'
  jensen regress wine.csv 'rating ~ temp * contact + (1 | judge)' --family cumulative --stan wine.stan
  jensen regress map.csv 'cases ~ x + car(\"map.graph\", gr = region, type = \"bym2\")' --family poisson
  jensen regress air.csv 'ozone ~ mi(sun) + wind' 'sun | mi() ~ wind'
  jensen regress genes.csv 'y ~ .' --prior 'b ~ horseshoe(1)'
  jensen regress predict sleep new.csv --out predictions.csv
  jensen regress effects sleep sleep.csv

Formulas are those of R, lme4 and brms: a + b, a:b, a*b, a^2, I(x^2), log(x), poly(x, 3), bs(x), ns(x), scale(x), factor(x),
offset(x), (x | g), (x || g), (1 | a/b), (1 | mm(a, b)), s(x), t2(x, z), gp(x), mo(x), me(x, sd_x), mi(x), ar(time, gr = g, p = 1),
car(\"map.graph\", gr = region); left of the bar y | trials(n), cens(c), weights(w), se(s),
rate(e), trunc(lb = 0). Words in the table are factors. Rows with missing values are left out and counted.
The folder of --out is one of `jensen fit`: `jensen draws`, `jensen compare` and `jensen fit --resume` take it.";

/// Fits a regression.
#[derive(Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct RegressArgs {
    #[command(subcommand)]
    command: Option<RegressCommand>,
    /// The table: CSV, TSV, NPY, NPZ or Parquet, with names of columns
    #[arg(required = true)]
    table: Option<PathBuf>,
    /// The formula, then formulas of other parameters of the family: 'sigma ~ x', 'nu = 4'
    #[arg(required = true, value_name = "FORMULA")]
    formulas: Vec<String>,
    /// The family, with its link if that is not the default one: poisson, binomial(probit), … [default: gaussian]
    #[arg(long, value_name = "FAMILY")]
    family: Option<String>,
    /// A prior: 'b ~ normal(0, 1)', 'b[x] ~ student_t(3, 0, 1)', 'sd ~ exponential(1)' (repeatable); other parameters
    /// keep the default prior
    #[arg(long, value_name = "PRIOR")]
    prior: Vec<String>,
    /// Contrasts of factors: treatment, sum or helmert [default: treatment]
    #[arg(long, value_name = "NAME")]
    contrasts: Option<String>,
    /// Omit the data, and fit the prior
    #[arg(long)]
    prior_only: bool,
    /// Report the log likelihood and a replicate of every row, for leave-one-out and predictive checks [default: up to
    /// 2000 rows]
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL", hide_possible_values = true)]
    pointwise: Option<bool>,
    /// Write the Stan program to this file, and its data to a JSON file in the same folder, instead of fitting it
    #[arg(long, value_name = "FILE.stan")]
    stan: Option<PathBuf>,

    /// When the approximation is refined to draws of the posterior [default: auto]
    #[arg(long, value_enum, value_name = "WHEN", help_heading = "Method")]
    refine: Option<RefineName>,
    /// The approximating family, as --family of `jensen fit`
    #[arg(long, value_name = "FAMILY", help_heading = "Method")]
    approximation: Option<String>,
    /// Largest number of seconds
    #[arg(long, value_name = "S", value_parser = words::positive, help_heading = "Budget")]
    max_seconds: Option<f64>,
    /// Refuse a run that needs more memory than this [default: 8GiB]
    #[arg(long, value_name = "SIZE", value_parser = words::bytes, help_heading = "Budget")]
    memory_limit: Option<u64>,
    /// Posterior draws [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Run")]
    draws: Option<u64>,
    /// Seed of every random number [default: 0]
    #[arg(long, value_name = "S", help_heading = "Run")]
    seed: Option<u64>,
    /// Threads [default: all of the machine]
    #[arg(long, value_name = "T", value_parser = words::thread_count, help_heading = "Run")]
    threads: Option<usize>,
    /// Write results and checkpoints to this folder
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Print fit.json to standard output, and nothing else
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Print no progress, warnings or table
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
}

/// Commands for a fitted regression.
#[derive(Subcommand)]
enum RegressCommand {
    /// Predict rows of a table from a fit in a folder
    #[command(after_help = PREDICT_EXAMPLES)]
    Predict(PredictArgs),
    /// Average marginal effects: slopes of numbers and differences of levels, over the rows of a table
    #[command(after_help = EFFECTS_EXAMPLES)]
    Effects(EffectsArgs),
    /// Conditional effects: the expected response along each column
    #[command(after_help = CURVES_EXAMPLES)]
    Curves(CurvesArgs),
}

const EFFECTS_EXAMPLES: &str = "\
Examples:
  jensen regress effects sleep sleep.csv

For each number: the mean slope of the expected response over the rows of the table; for each level of a factor: the mean difference from
the first level. Rows keep their groups. Of successes among trials the expected response is a probability.";

/// Average effects.
#[derive(Args)]
struct EffectsArgs {
    /// The folder of a regression
    dir: PathBuf,
    /// The rows: a table with the columns that the formula names, such as the table of the fit
    table: PathBuf,
    /// Write the table of effects to this file instead of standard output
    #[arg(long, value_name = "FILE.csv")]
    out: Option<PathBuf>,
    /// Threads [default: all of the machine]
    #[arg(long, value_name = "T", value_parser = words::thread_count)]
    threads: Option<usize>,
}

const CURVES_EXAMPLES: &str = "\
Examples:
  jensen regress curves sleep --out curves.csv

Along each column the expected response, of categories their probabilities, with other columns at their means or first levels and without
effects of groups; one curve for each value of a column that interacts with it. The report shows them as pictures.";

/// Curves.
#[derive(Args)]
struct CurvesArgs {
    /// The folder of a regression
    dir: PathBuf,
    /// Write the table of points to this file instead of standard output
    #[arg(long, value_name = "FILE.csv")]
    out: Option<PathBuf>,
    /// Threads [default: all of the machine]
    #[arg(long, value_name = "T", value_parser = words::thread_count)]
    threads: Option<usize>,
}

const PREDICT_EXAMPLES: &str = "\
Examples:
  jensen regress predict sleep new.csv
  jensen regress predict sleep new.csv --out predictions.csv --draws predictions.nc

For each row: mean, sd and 90 % interval of the expected value, the mean of the linear predictor, and the 90 % interval of a
response. For categories, their probabilities. A new level of a group has an effect drawn from the distribution of all groups.";

/// Predicts.
#[derive(Args)]
struct PredictArgs {
    /// The folder of a regression
    dir: PathBuf,
    /// The rows: a table with the columns on the right side of the formula
    table: PathBuf,
    /// Write the table of predictions to this file instead of standard output
    #[arg(long, value_name = "FILE.csv")]
    out: Option<PathBuf>,
    /// Write the draws of all predictions to this file (*.nc: NetCDF for ArviZ, else Stan CSV)
    #[arg(long, value_name = "FILE")]
    draws: Option<PathBuf>,
    /// Seed of the random numbers [default: the seed of the fit]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Threads [default: all of the machine]
    #[arg(long, value_name = "T", value_parser = words::thread_count)]
    threads: Option<usize>,
}

pub fn run(args: RegressArgs) -> CommandResult {
    match args.command {
        Some(RegressCommand::Predict(args)) => predictions(&args),
        Some(RegressCommand::Effects(args)) => average(&args),
        Some(RegressCommand::Curves(args)) => along(&args),
        None => fit(&args),
    }
}

fn fit(args: &RegressArgs) -> CommandResult {
    let request = Request {
        formulas: args.formulas.clone(),
        family: args.family.clone(),
        contrasts: args.contrasts.clone(),
        priors: args.prior.clone(),
        prior_only: args.prior_only,
        pointwise: args.pointwise,
    };
    let Some(path) = &args.table else {
        return Err(Failure::usage("no table is given"));
    };
    let Regression {
        source,
        kept,
        log_prior,
    } = Regression::new(
        &request,
        &read_frame(path, args.memory_limit.unwrap_or(MEMORY_LIMIT))?,
    )?;
    if let Some(file) = &args.stan {
        let data = source.data.as_ref().map(|data| data.bytes.as_slice());
        write_atomic_bytes(file, source.text.as_bytes()).map_err(Failure::output)?;
        write_atomic_bytes(&file.with_extension("json"), data.unwrap_or_default())
            .map_err(Failure::output)?;
        return Ok(Exit::Done);
    }
    let settings = FitRequest {
        family: args.approximation.clone(),
        refine: args.refine,
        max_seconds: args.max_seconds,
        memory_limit: args.memory_limit,
        draws: args.draws,
        seed: args.seed,
        ..FitRequest::default()
    };
    let threads = start_threads(args.threads)?;
    let say = Say {
        json: args.json,
        quiet: args.quiet,
    };
    if !(say.quiet || say.json) {
        kept.notes
            .iter()
            .for_each(|note| remark(&format!("note: {note}")));
    }
    let setting = Setting {
        memory_limit: settings.memory_limit(),
        ..Setting::new(
            ResultFolder::new(args.out.as_deref()),
            Box::<BoundLine>::default(),
        )
    };
    let halt = limits::halt(settings.max_seconds, settings.memory_limit());
    let program = Program::compile(source, settings, threads, halt)?;
    let init = program.start(None)?;
    let (fitted, summary) = setting.watch(say, |around| program.fit(init, around))?;
    let moved = sensitivity(&kept, &log_prior, program.data(), &fitted)?;
    conclude(
        &summary,
        summary.trusted,
        args.out.as_deref(),
        say,
        8,
        |_| told(&kept, &moved, &fitted),
    )
}

/// Returns the text to print. It contains the table of estimates, the priors, and the checks of the fit.
fn told(kept: &Kept, moved: &[Sensitive], fitted: &Fitted) -> String {
    let mut text = String::new();
    let all = fitted.parameters();
    let answers: Vec<ParameterSummary> = kept.answers(&all).into_iter().cloned().collect();
    table::parameters(&mut text, &answers);
    text.push('\n');
    let _ = writeln!(text, "rows     {} of {}", kept.rows, kept.table);
    for (at, (target, density, given)) in kept.priors.iter().enumerate() {
        let head = if at == 0 { "priors" } else { "" };
        let mark = if *given { "" } else { "  (usual)" };
        let _ = writeln!(text, "{head:<8} {target} ~ {density}{mark}");
    }
    let constants = kept
        .constants
        .iter()
        .map(|(name, x)| format!("{name} = {}", significant(*x)));
    let constants: Vec<String> = constants.collect();
    if !constants.is_empty() {
        let _ = writeln!(text, "{:<8} where {}", "", constants.join(", "));
    }
    for moved in moved {
        let _ = writeln!(
            text,
            "{:<8} the prior matters: if the weight of all priors doubles, the mean of {} moves by {:+.1} sd",
            "", moved.name, moved.shift
        );
    }
    text + &table::evidence(fitted)
}

fn significant(x: f64) -> String {
    let rounded = format!("{x:.5e}").parse::<f64>();
    rounded.unwrap_or(x).to_string()
}

fn predictions(args: &PredictArgs) -> CommandResult {
    let threads = start_threads(args.threads)?;
    let frame = read_frame(&args.table, MEMORY_LIMIT)?;
    let made = predict(
        &args.dir,
        &frame,
        args.seed,
        threads,
        limits::halt(None, u64::MAX),
    )?;
    if made.rows.len() < frame.rows() {
        remark(&format!(
            "note: {} of {} rows have missing values, so they have no prediction",
            frame.rows() - made.rows.len(),
            frame.rows()
        ));
    }
    if let Some(file) = &args.draws {
        write_draws(file, &made)?;
    }
    written(&rows(&made), args.out.as_deref())
}

/// Writes a table of average effects, with one effect per row.
fn average(args: &EffectsArgs) -> CommandResult {
    let threads = start_threads(args.threads)?;
    let frame = read_frame(&args.table, MEMORY_LIMIT)?;
    let found = effects(&args.dir, &frame, threads, limits::halt(None, u64::MAX))?;
    let mut text = String::from("column,contrast,category,estimate,sd,q05,q95\n");
    for effect in &found {
        let words = [
            &effect.column,
            &effect.contrast,
            effect.category.as_ref().unwrap_or(&String::new()),
        ]
        .map(|word| quoted(word));
        text += &format!("{},{}\n", words.join(","), summarised(&effect.estimate));
    }
    written(&text, args.out.as_deref())
}

/// Writes a table of the points of all curves, with one point per row.
fn along(args: &CurvesArgs) -> CommandResult {
    let threads = start_threads(args.threads)?;
    let found = curves(&args.dir, threads, limits::halt(None, u64::MAX))?;
    let mut text = String::from("column,value,by,by_value,category,expected,sd,q05,q95\n");
    for line in &found {
        let (by, value) = line.by.clone().unwrap_or_default();
        let category = line.category.clone().unwrap_or_default();
        for (at, expected) in line.at.iter().zip(&line.expected) {
            let words = [&line.column, at, &by, &value, &category].map(|word| quoted(word));
            text += &format!("{},{}\n", words.join(","), summarised(expected));
        }
    }
    written(&text, args.out.as_deref())
}

fn summarised(summary: &EffectSummary) -> String {
    let [low, high] = summary.interval;
    [summary.mean, summary.sd, low, high]
        .map(|x| significant(x).to_string())
        .join(",")
}

fn written(text: &str, file: Option<&Path>) -> CommandResult {
    match file {
        Some(file) => write_atomic_bytes(file, text.as_bytes()).map_err(Failure::output)?,
        None => print(text)?,
    }
    Ok(Exit::Done)
}

/// Formats the table of predictions. Each prediction is one line.
fn rows(made: &Predicted) -> String {
    let summaries = made.sample.summaries();
    let of = |name: &str| -> Vec<&ParameterSummary> {
        summaries
            .iter()
            .filter(|p| p.name.split('[').next() == Some(name))
            .collect()
    };
    let (linear, expected, predicted) = (of("linear"), of("expected"), of("predicted"));
    let count = made.rows.len();
    let of = |dimension: &str| made.coordinates.coords.get(dimension);
    let (probabilities, categories) = (of("category"), of("category").or(of("response")));
    let mut text = String::from("row");
    match categories {
        Some(labels) => (0..labels.len()).for_each(|at| {
            let head = match probabilities {
                Some(_) => format!("P({})", labels.text(at)),
                None => labels.text(at).to_string(),
            };
            text += &format!(",{}", quoted(&head));
        }),
        None => text += ",expected,sd,q05,q95",
    }
    // Mixtures have several linear predictors, and so do responses with several columns.
    let with_linear = linear.len() == count;
    if with_linear {
        text += ",linear";
    }
    // A response with several columns does not have a single interval.
    let with_interval = predicted.len() == count;
    if with_interval {
        text += ",predicted_q05,predicted_q95";
    }
    text.push('\n');
    for (at, row) in made.rows.iter().enumerate() {
        let mut cells = Vec::new();
        match categories {
            // Matrices are in column-major order.
            Some(labels) => cells.extend((0..labels.len()).map(|c| expected[c * count + at].mean)),
            None => {
                let p = expected[at];
                cells.extend([p.mean, p.sd, p.q05, p.q95]);
            }
        }
        if with_linear {
            cells.push(linear[at].mean);
        }
        if with_interval {
            cells.extend([predicted[at].q05, predicted[at].q95]);
        }
        text += &(row + 1).to_string();
        cells
            .iter()
            .for_each(|x| text += &format!(",{}", significant(*x)));
        text.push('\n');
    }
    text
}

fn write_draws(file: &Path, made: &Predicted) -> Result<(), Failure> {
    let table = &made.sample.table;
    let netcdf = file.extension().is_some_and(|extension| extension == "nc");
    let written = match netcdf {
        true => {
            let roles = Roles {
                coordinates: made.coordinates.clone(),
                ..made.sample.roles(false)
            };
            write_draws_netcdf(file, table, &roles, &NetcdfAttributes::default(), None)
        }
        false => write_draws_csv(
            file,
            table,
            &jensen::data::StanCsvComments {
                above: String::new(),
                eta: 1.0,
            },
        ),
    };
    written.map_err(Failure::output)
}
