//! `jensen topics build`.

use std::path::Path;
use std::sync::atomic::Ordering;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jensen::data::DataError;
use jensen::data::corpus::build::{BuildProgress, Pass};
use jensen::data::corpus::{BuildSettings, Built, Corpus, Skipped, Sources, build};

use super::args::BuildArgs;
use crate::failure::{CommandResult, Exit, Failure, print, remark};
use crate::terminal::{STOP, catch_interrupts, start_threads};

pub fn run(args: &BuildArgs) -> CommandResult {
    let request = args.request();
    request.check()?;
    if args.out.exists() && !Corpus::is_corpus(&args.out) && !args.force {
        return Err(Failure::usage(format!(
            "`{}` exists and is not a corpus: name another file with --out, or replace it with --force",
            args.out.display()
        )));
    }
    start_threads(args.threads)?;
    let sources = request.sources()?;
    let settings = request.settings(&sources)?;
    let quiet = args.quiet || args.json;
    let built = match args.shards {
        None => watched(&sources, &args.out, &settings, quiet)?,
        Some(shards) => divided(&sources, &args.out, &settings, shards as usize, quiet)?,
    };
    if args.json {
        let text = serde_json::to_string_pretty(&built).map_err(Failure::output)?;
        print(&format!("{text}\n"))?;
    } else if !args.quiet {
        print(&summary(&built))?;
        print(&format!("corpus      {}\n", args.out.display()))?;
    }
    Ok(Exit::Done)
}

fn input(error: DataError) -> Failure {
    Failure::input(error.to_string())
}

/// Builds a corpus in a folder of shards. The complete corpus is built first. It is then divided, and finally removed.
fn divided(
    sources: &Sources,
    out: &Path,
    settings: &BuildSettings,
    shards: usize,
    quiet: bool,
) -> Result<Built, Failure> {
    if out.is_file() {
        return Err(Failure::usage(format!(
            "`{}` is a file, and --shards writes a folder: name another path with --out",
            out.display()
        )));
    }
    let folder = |error: DataError| Failure::output(error);
    jensen::data::create_folder(out).map_err(folder)?;
    let whole = out.join("whole.tmp");
    let built = watched(sources, &whole, settings, quiet)?;
    let divided = Corpus::open(&whole).and_then(|corpus| {
        Corpus::remove_shards(out)?;
        corpus.divide(out, shards)
    });
    jensen::data::remove_file(&whole).map_err(folder)?;
    divided.map_err(|error| match error {
        DataError::Io { .. } => folder(error),
        error => input(error),
    })?;
    Ok(built)
}

/// Builds a corpus and displays its progress. If the user presses Ctrl-C, no files remain.
pub fn watched(
    sources: &Sources,
    out: &Path,
    settings: &BuildSettings,
    quiet: bool,
) -> Result<Built, Failure> {
    catch_interrupts();
    let target = if quiet {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    };
    let bar = ProgressBar::with_draw_target(None, target);
    bar.set_style(ProgressStyle::default_spinner());
    let mut progress = |at: BuildProgress| {
        let what = match at.pass {
            Pass::Phrases => "counting pairs of words",
            Pass::Words => "counting words",
            Pass::Documents => "writing documents",
        };
        let share = at
            .total
            .map_or(String::new(), |total| format!(" of {total}"));
        bar.set_message(format!("{what}: {}{share} documents", at.documents));
        bar.tick();
        !STOP.load(Ordering::Relaxed)
    };
    let built = build(sources, out, settings, &mut progress);
    bar.finish_and_clear();
    built.map_err(|error| match error {
        // If the output cannot be written, the command line is wrong. All other errors are errors of the inputs.
        DataError::Io {
            action: "write", ..
        } => Failure::output(error),
        error => input(error),
    })
}

fn summary(built: &Built) -> String {
    let mut lines = vec![
        format!(
            "documents   {} (and {} held out)",
            built.documents, built.heldout_documents
        ),
        format!(
            "tokens      {} (and {} held out)",
            built.tokens, built.heldout_tokens
        ),
        format!(
            "vocabulary  {} of {} distinct words",
            built.terms, built.distinct_words
        ),
        format!(
            "omitted     {} tokens of other words",
            built.tokens_left_out
        ),
    ];
    if built.phrases > 0 {
        lines.push(format!("phrases     {}", built.phrases));
    }
    if built.uncertain_below > 0 {
        lines.push(format!(
            "note        there are too many distinct words to count all: words in {} or fewer documents may be \
             missing or undercounted",
            built.uncertain_below
        ));
    }
    if let Some(skipped) = skipped(&built.skipped) {
        lines.push(format!("skipped     {skipped}"));
    }
    lines.join("\n") + "\n"
}

/// Describes the documents that were skipped. Returns `None` if no document was skipped.
pub fn skipped(skipped: &Skipped) -> Option<String> {
    let parts = [
        (skipped.empty, "without a word of the vocabulary"),
        (skipped.not_utf8, "not UTF-8 text"),
        (skipped.without_text, "without text in the field"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|part| part.0 > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    (!parts.is_empty()).then(|| format!("{} documents: {}", skipped.total(), parts.join(", ")))
}

fn remark_skipped(counts: &Skipped) {
    if let Some(text) = skipped(counts) {
        remark(&format!("note: skipped {text}"));
    }
}

pub fn remark_missing(counts: &Skipped) {
    if let Some(text) = skipped(counts) {
        remark(&format!("note: no proportions for {text}"));
    }
}

pub fn remark_left_out(built: &Built) {
    remark_skipped(&built.skipped);
    if built.tokens_left_out > 0 {
        remark(&format!(
            "note: Jensen omits {} tokens of words that the model does not have",
            built.tokens_left_out
        ));
    }
}
