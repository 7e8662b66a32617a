//! `jensen topics effects`.

use std::fmt::Write;
use std::fs::create_dir_all;
use std::sync::atomic::Ordering;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jensen::conjugate::documents::MemoryDocuments;
use jensen::conjugate::lda::LEAST_SWEEPS;
use jensen::data::corpus::{Corpus, stream};
use jensen::data::write_atomic_bytes;
use jensen::regress::read_frame;
use jensen::report::render;
use jensen::topics::{
    EffectsRequest, TopicEffects, TopicModel, bag, match_rows, stored, topic_effects,
};

use super::args::EffectsArgs;
use crate::failure::{CommandResult, Exit, Failure, print, remark};
use crate::terminal::{STOP, catch_interrupts, start_threads};

/// The number of rows of the table that is printed. The files contain all rows.
const ROWS: usize = 20;

pub fn run(args: &EffectsArgs) -> CommandResult {
    start_threads(args.threads)?;
    catch_interrupts();
    if args.inputs.iter().any(|path| Corpus::is_corpus(path)) {
        return Err(Failure::usage(
            "a corpus has neither the names nor the order of its documents: give its original texts",
        ));
    }
    let (folder, _) = stored::open(&args.dir)?;
    let model = stored::model(&folder)?;
    let (documents, names) = documents(args, &model)?;
    let frame = read_frame(&args.table, args.memory_limit)?;
    let rows = match_rows(&frame, args.id.as_deref(), &names)?;
    let request = EffectsRequest {
        formula: args.formula.clone(),
        prior_sd: args.prior_sd,
        seed: args.seed,
        memory_limit: args.memory_limit,
    };
    let bar = bar(args.quiet || args.json);
    let watch = |sweeps: usize| {
        bar.set_position(sweeps as u64);
        bar.set_length((sweeps as u64).max(LEAST_SWEEPS as u64));
        STOP.load(Ordering::Relaxed)
    };
    let found = topic_effects(&model, &documents, &frame.rows_of(&rows), &request, &watch);
    bar.finish_and_clear();
    let found = found.map_err(|error| {
        let mut failure = Failure::from(error);
        if STOP.load(Ordering::Relaxed) {
            failure.exit = Exit::Interrupted;
        }
        failure
    })?;
    if !args.quiet {
        let warnings = found.warnings.iter();
        warnings.for_each(|warning| remark(&format!("note: {warning}")));
    }
    let json = serde_json::to_string_pretty(&found).map_err(Failure::output)? + "\n";
    if let Some(out) = &args.out {
        create_dir_all(out).map_err(|error| {
            Failure::output(format!("cannot make `{}`: {error}", out.display()))
        })?;
        let settings = vec![
            ("topics".to_owned(), args.dir.display().to_string()),
            ("table".to_owned(), args.table.display().to_string()),
            ("prior sd".to_owned(), args.prior_sd.to_string()),
            ("seed".to_owned(), args.seed.to_string()),
        ];
        for (name, text) in [
            ("effects.csv", found.effects_csv()),
            ("shares.csv", found.shares_csv()),
            ("effects.json", json.clone()),
            ("report.html", render(&found.report_page(settings))),
        ] {
            write_atomic_bytes(&out.join(name), text.as_bytes()).map_err(Failure::output)?;
        }
    }
    if args.json {
        print(&json)?;
    } else if !args.quiet {
        print(&table(&found))?;
        if let Some(out) = &args.out {
            print(&format!("results   {}\n", out.display()))?;
        }
    }
    match found.trusted {
        true => Ok(Exit::Done),
        false => Ok(Exit::Untrusted),
    }
}

/// Reads the documents with the vocabulary of the model. Documents without known words are empty.
fn documents(
    args: &EffectsArgs,
    model: &TopicModel,
) -> Result<(MemoryDocuments, Vec<Option<String>>), Failure> {
    let sources = args.input.sources(&args.inputs, args.id.as_deref())?;
    let mut documents = MemoryDocuments::new(model.topics.terms);
    let mut names = Vec::new();
    stream(&sources, &model.words, &model.tokeniser, |chunk| {
        for new in chunk {
            documents
                .push(&bag(&new.document))
                .map_err(Failure::input)?;
            names.push(new.id);
        }
        Ok::<(), Failure>(())
    })?;
    Ok((documents, names))
}

fn bar(hidden: bool) -> ProgressBar {
    let target = match hidden {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr(),
    };
    let bar = ProgressBar::with_draw_target(Some(LEAST_SWEEPS as u64), target);
    let style = ProgressStyle::with_template("sweep {pos} of at least {len} {wide_bar} {eta}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn table(found: &TopicEffects) -> String {
    let mut text = String::new();
    let clear = found.clear();
    if !clear.is_empty() {
        let width = clear
            .iter()
            .take(ROWS)
            .map(|row| row.column.chars().count());
        let width = width.max().unwrap_or(0).max(6);
        let _ = writeln!(
            text,
            "{:<width$}  topic    mean      sd      5 %     95 %  words",
            "column"
        );
        for row in clear.iter().take(ROWS) {
            let _ = writeln!(
                text,
                "{:<width$}  {:>5} {:>7.3} {:>7.3} {:>8.3} {:>8.3}  {}",
                row.column,
                row.topic,
                row.mean,
                row.sd,
                row.q05,
                row.q95,
                row.words.join(" ")
            );
        }
        if clear.len() > ROWS {
            let _ = writeln!(text, "and {} more", clear.len() - ROWS);
        }
        text.push('\n');
    }
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<9} {value}");
    };
    line(
        "effects",
        format!(
            "{} of {} changes of a topic's log share per unit of a column are clear (90 %); {:.0} would be by chance",
            clear.len(),
            found.effects.len(),
            0.1 * found.effects.len() as f64
        ),
    );
    line(
        "documents",
        format!(
            "{}, and {} without known words or values",
            found.documents, found.left_out
        ),
    );
    line("status", found.status.clone());
    line(
        "verdict",
        if found.trusted {
            "trusted"
        } else {
            "not trusted"
        }
        .to_owned(),
    );
    text
}
