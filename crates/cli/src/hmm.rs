//! `jensen hmm`.

use std::fmt::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use jensen::data::table_csv::quoted;
use jensen::data::{Table, write_atomic_bytes};
use jensen::job::folder;
use jensen::points::{
    ChainsRequest, HMM, Sequences, decode_chains, fit_chains, stored_globals, without,
};

use crate::failure::{CommandResult, Exit, Failure, print, remark};
use crate::points::run as run_points;
use crate::table_fit::TableFit;
use crate::terminal::start_threads;

const FIT_EXAMPLES: &str = "\
Examples:
  jensen hmm fit eruptions.csv --states 2 --out geyser
  jensen hmm fit strides.csv --states 4 --sequence patient --covariance diagonal --temper anneal=50
  jensen hmm fit answers.csv --states 3 --sequence pupil --emissions bernoulli
  jensen hmm fit counts.csv --states 3 --emissions negative-binomial --labels phase

DATA is a CSV file with a header, an .npy, .npz or .parquet file; a row is a step, and all columns except --sequence and --labels are emissions.
Coordinate ascent finds the posterior of transitions and emissions, and forward-backward the posterior of the states.";

/// Hidden Markov models.
#[derive(Subcommand)]
pub enum HmmCommand {
    /// Fit a hidden Markov model to sequences
    #[command(after_help = FIT_EXAMPLES)]
    Fit(Box<TableFit<ChainsRequest>>),
    /// Predict the states of sequences with a stored fit
    Predict(PredictArgs),
}

const PREDICT_EXAMPLES: &str = "\
Examples:
  jensen hmm predict geyser eruptions.csv > states.csv
  jensen hmm predict strides new.csv --out states.csv

Each row of DATA gives a line with the probability of each state given the whole sequence (p1, p2, …), and the state on
the most probable path of the sequence (Viterbi). DATA needs the columns of the fit. Standard error has a lower bound of
the log predictive density of the sequences, in nats.";

/// Finds states.
#[derive(Args)]
#[command(after_help = PREDICT_EXAMPLES)]
pub struct PredictArgs {
    /// The folder of a fit
    pub dir: PathBuf,
    /// A table with the columns of the fit
    pub data: PathBuf,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Threads [default: all of the machine]
    #[arg(long, value_name = "T", value_parser = jensen::job::words::thread_count)]
    pub threads: Option<usize>,
}

pub fn run(command: HmmCommand) -> CommandResult {
    match command {
        HmmCommand::Fit(args) => run_points(
            *args,
            HMM,
            |request| request.data.as_deref(),
            |request, path| {
                // The flags are checked before any file is read or written.
                request.check()?;
                let table = Table::read(path)?;
                match &request.labels {
                    None => read(request, &table),
                    Some(labels) => {
                        let sequence = request.sequence.as_deref();
                        Sequences::of_labelled(&table, sequence, labels, &request.points)
                    }
                }
            },
            |request, found, around| fit_chains(request, &found.points, &found.lengths, around),
        ),
        HmmCommand::Predict(args) => predict(&args),
    }
}

fn read(request: &ChainsRequest, table: &Table) -> Result<Sequences, jensen::Error> {
    Sequences::of_table(table, request.sequence.as_deref(), &request.points)
}

fn predict(args: &PredictArgs) -> CommandResult {
    start_threads(args.threads)?;
    let folder = folder::open(&args.dir, HMM)?;
    let request: ChainsRequest = folder::read_request(&folder)?;
    let globals = stored_globals(&folder, "jensen hmm fit")?;
    let mut table = Table::read(&args.data)?;
    // Predictions do not use known states, so they show how well the states of other rows are found.
    if let Some(labels) = &request.labels
        && table.names().contains(&labels.as_str())
    {
        table = without(&table, labels)?;
    }
    let found = read(&request, &table)?;
    let (explained, paths) = decode_chains(&request, &globals, &found.points, &found.lengths)?;
    let text = lines(&request, &found, &explained.assignments, &paths);
    match &args.out {
        None => print(&text)?,
        Some(path) => write_atomic_bytes(path, text.as_bytes()).map_err(Failure::output)?,
    }
    let total: f64 = explained.bounds.iter().sum();
    let steps = paths.len() as f64;
    remark(&format!(
        "log predictive at least {total:.4} nats, {:.4} a step",
        total / steps
    ));
    Ok(Exit::Done)
}

/// Formats the states as CSV. The rows are in the order of the table.
fn lines(request: &ChainsRequest, found: &Sequences, marginals: &[f64], paths: &[usize]) -> String {
    let k = marginals.len() / found.rows.len().max(1);
    let named = found.names.iter().zip(&found.lengths);
    let names: Vec<&str> = named
        .flat_map(|(name, length)| std::iter::repeat_n(name.as_str(), *length))
        .collect();
    let mut text = "row".to_owned();
    if let Some(column) = &request.sequence {
        text += &format!(",{}", quoted(column));
    }
    for state in 1..=k {
        text += &format!(",p{state}");
    }
    text += ",state\n";
    let mut order: Vec<usize> = (0..found.rows.len()).collect();
    order.sort_by_key(|at| found.rows[*at]);
    for at in order {
        let _ = write!(text, "{}", found.rows[at] + 1);
        if let Some(name) = names.get(at) {
            text += &format!(",{}", quoted(name));
        }
        for p in &marginals[at * k..(at + 1) * k] {
            let _ = write!(text, ",{p}");
        }
        let _ = writeln!(text, ",{}", paths[at] + 1);
    }
    text
}
