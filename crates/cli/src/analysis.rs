//! `jensen factor-analysis`.

use clap::Subcommand;
use jensen::latent::{
    AnalysisData, AnalysisRequest, AnalysisSummary, FACTOR_ANALYSIS, fit_analysis,
};

use crate::failure::CommandResult;
use crate::progress::BoundLine;
use crate::table_fit::{Asked, TableFit, named};
use crate::terminal::{Setting, conclude, verdict};

const FIT_EXAMPLES: &str = "\
Examples:
  jensen factor-analysis fit measurements.csv --factors 3 --out axes
  jensen factor-analysis fit votes.csv --factors 2 --likelihood bernoulli --out votes
  jensen factor-analysis fit counts.csv -k 5 --likelihood poisson --ridge 0.1

DATA is a CSV file with a header, an .npy, .npz or .parquet file of numbers; cells may be missing (empty, NA). Each row has K scores with
a standard normal prior, and a cell is made from a linear predictor, the column's intercept plus its loadings times the scores.
With the normal likelihood this is probabilistic principal components. The folder of --out holds fit.json, loadings.csv, scores.csv,
completed.csv (the table with the means of missing cells), trace.jsonl and report.html.";

/// Factor analysis.
#[derive(Subcommand)]
pub enum AnalysisCommand {
    /// Fit factors to a table
    #[command(after_help = FIT_EXAMPLES)]
    Fit(Box<TableFit<AnalysisRequest>>),
}

pub fn run(command: AnalysisCommand) -> CommandResult {
    let AnalysisCommand::Fit(args) = command;
    let Asked {
        request,
        results,
        out,
        say,
    } = args.asked(FACTOR_ANALYSIS)?;
    let data = AnalysisData::read(named(request.data.as_deref())?)?;
    let setting = Setting::new(results, Box::<BoundLine>::default());
    let summary = setting.watch(say, |around| fit_analysis(&request, &data, around))?;
    let trusted = summary.judgement.trusted;
    conclude(&summary, trusted, out.as_deref(), say, 9, table)
}

/// The number of data columns that are shown on the terminal. The report and loadings.csv contain all columns.
const SHOWN: usize = 20;

/// The number of factors that fit on one line of the terminal.
const WIDE: usize = 8;

fn table(summary: &AnalysisSummary) -> String {
    let mut text = verdict(&summary.judgement, 9);
    text += &format!("bound     {:.3} nats\n", summary.bound);
    for hyper in &summary.hyperparameters {
        let how = if hyper.learnt { "  learnt" } else { "" };
        text += &format!("{:<24} {:>11.6}{how}\n", hyper.name, hyper.value);
    }
    let rows = summary.columns.iter().zip(&summary.loadings);
    for (name, row) in rows.take(SHOWN) {
        text += &format!("{name:<24}");
        let cells = row.iter().take(WIDE);
        cells.for_each(|x| text += &format!(" {x:>9.3}"));
        text.push('\n');
    }
    if summary.columns.len() > SHOWN || summary.factors > WIDE {
        text += "… fit.json and loadings.csv have further columns and factors\n";
    }
    text
}
