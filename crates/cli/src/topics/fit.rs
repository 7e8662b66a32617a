//! `jensen topics fit` and `jensen topics update`.

use std::path::PathBuf;
use std::time::Instant;

use jensen::conjugate::documents::{Documents, Part as Range};
use jensen::conjugate::lda::{
    self, Completion, LdaError, LdaFit, LdaJob, LdaSettings, Predictor, RULE,
};
use jensen::data::corpus::{BuildSettings, Corpus, Part, Tokeniser};
use jensen::data::{Artefact, RunDir, write_atomic_bytes};
use jensen::math::simd::Simd;
use jensen::run::{Budget, Checkpoint, Control, Outcome as RunOutcome, Record, Store};
use jensen::topics::{
    Coherence, CorpusDocuments, Curves, TopicModel, TopicsSeconds, TopicsSummary, rows, sheet,
};

use super::args::{FitArgs, RunFlags, UpdateArgs};
use super::build::{remark_skipped, watched};
use super::flags::TopicsFlags;
use super::progress::{Gathered, Keep, Line, Sizes};
use super::store::{self, Stored};
use crate::failure::{Exit, Failure, Outcome, print, remark};
use crate::fit::{STOP, catch_interrupts, start_threads};
use crate::flags;
use crate::folder::{self, Checkpoints, Trace, Watch};
use crate::progress::Display;

/// Held-out documents that are scored along a run; at its end all are.
const SCORED: usize = 1000;

/// A run as it is about to start.
struct Plan {
    corpus: Corpus,
    /// Where the corpus is, as the folder keeps it.
    path: PathBuf,
    flags: TopicsFlags,
    /// Topics to go on from.
    start: Option<TopicModel>,
    folder: Option<RunDir>,
    resumed: bool,
    force: bool,
    open_seconds: f64,
}

/// Runs `topics fit`.
pub fn run(args: &FitArgs) -> Outcome {
    start_threads(flags::threads(args.run.threads))?;
    let begun = Instant::now();
    let plan = match &args.resume {
        None => {
            if args.out.is_none() && args.flags.checkpoint_every.is_some() {
                return Err(Failure::usage(
                    "--checkpoint-every needs a folder to write to: add --out DIR",
                ));
            }
            // Wrong flags are said before anything is read or written.
            args.flags.settings()?;
            let path = args.corpus.clone().unwrap_or_default();
            let corpus = store::open_corpus(&path)?;
            let open_seconds = begun.elapsed().as_secs_f64();
            check(&corpus, &args.flags.settings()?, args.run.memory_limit)?;
            Plan {
                folder: args.out.as_deref().map(store::take).transpose()?,
                path: std::path::absolute(&path).unwrap_or(path),
                corpus,
                flags: args.flags.clone(),
                start: None,
                resumed: false,
                force: false,
                open_seconds,
            }
        }
        Some(dir) => {
            let (folder, stored) = store::open(dir)?;
            let corpus = match &args.corpus {
                Some(path) => store::open_corpus(path)?,
                None => stored.open_corpus(&folder)?,
            };
            if corpus.digest() != stored.digest && !args.force {
                return Err(Failure::usage(format!(
                    "the corpus `{}` is not the one that the run in `{}` was started with; name that one, or add --force \
                     and give up reproducibility",
                    corpus.path().display(),
                    dir.display()
                )));
            }
            Plan {
                start: stored.update.then(|| store::start(&folder)).transpose()?,
                path: stored.corpus.clone(),
                corpus,
                flags: args.flags.or(&stored.flags),
                folder: Some(folder),
                resumed: true,
                force: args.force,
                open_seconds: begun.elapsed().as_secs_f64(),
            }
        }
    };
    carry_out(plan, &args.run)
}

/// Runs `topics update`.
pub fn update(args: &UpdateArgs) -> Outcome {
    start_threads(flags::threads(args.run.threads))?;
    let (old, stored) = store::open(&args.dir)?;
    let model = store::model(&old)?;
    if args
        .flags
        .topics
        .is_some_and(|k| k != model.topics.topics as u64)
    {
        return Err(Failure::usage(format!(
            "the number of topics cannot change in an update: the fit has {}",
            model.topics.topics
        )));
    }
    let flags = TopicsFlags {
        // The old priors as numbers: K does not change, and neither may they.
        alpha: Some(model.topics.alpha.to_string()),
        eta: Some(model.topics.eta.to_string()),
        topics: Some(model.topics.topics as u64),
        // A schedule was for the first fit; an update starts from topics that are in place.
        temper: Some(args.flags.temper.clone().unwrap_or_else(|| "none".into())),
        passes: Some(args.flags.passes.unwrap_or(1.0)),
        ..args.flags.or(&stored.flags)
    };
    let settings = flags.settings()?;
    let sources = args.input.sources(&args.inputs, None)?;
    let begun = Instant::now();
    // The new documents are read before anything of an earlier fit is touched.
    let folder = match &args.out {
        Some(out) => store::take(out)?,
        None => old,
    };
    let (path, place) = store::update_corpus(&folder);
    let build = BuildSettings {
        tokeniser: model.tokeniser,
        fixed: Some(model.words.clone()),
        heldout: args.heldout,
        seed: settings.seed,
        ..BuildSettings::new(&sources)
    };
    let built = watched(&sources, &place, &build, args.run.quiet || args.run.json)?;
    if !(args.run.quiet || args.run.json) {
        remark_skipped(&built.skipped);
        if built.tokens_left_out > 0 {
            remark(&format!(
                "note: left out {} tokens of words that the model does not know",
                built.tokens_left_out
            ));
        }
    }
    let corpus = store::open_corpus(&place)?;
    check(&corpus, &settings, args.run.memory_limit)?;
    store::write_start(&folder, &model)?;
    for artefact in [Artefact::Checkpoint, Artefact::Trace] {
        folder.remove(artefact).map_err(Failure::output)?;
    }
    carry_out(
        Plan {
            corpus,
            path,
            flags,
            start: Some(model),
            folder: Some(folder),
            resumed: false,
            force: false,
            open_seconds: begun.elapsed().as_secs_f64(),
        },
        &args.run,
    )
}

/// Refuses what cannot be fitted.
fn check(corpus: &Corpus, settings: &LdaSettings, memory_limit: u64) -> Result<(), Failure> {
    let tokens = corpus.tokens(Part::Train);
    if settings.topics as u64 > tokens {
        return Err(Failure::input(format!(
            "{} topics cannot be learned from {tokens} tokens: ask for fewer topics",
            settings.topics
        )));
    }
    let need = memory(settings, corpus.terms());
    if need > memory_limit {
        return Err(Failure::input(format!(
            "{} topics of {} words take about {}, more than the limit of {}: ask for fewer topics or words (--max-terms of \
             `jensen topics build`), or allow more (--memory-limit)",
            settings.topics,
            corpus.terms(),
            jensen::format_bytes(need),
            jensen::format_bytes(memory_limit)
        )));
    }
    Ok(())
}

/// Bytes that a run takes, roughly: the topics in single precision and their statistics, three times in double
/// precision while they are written to a checkpoint, and the documents of a batch.
fn memory(settings: &LdaSettings, terms: usize) -> u64 {
    let table = settings.topics as u64 * terms as u64;
    let batch = settings.batch as u64 * settings.topics as u64 * 4 * 200;
    table * (2 * 4 + 3 * 8) + batch + (64 << 20)
}

/// What a run left.
struct Finished {
    outcome: RunOutcome<LdaFit>,
    gathered: Gathered,
    sizes: Sizes,
    planned: u64,
}

fn carry_out(plan: Plan, run: &RunFlags) -> Outcome {
    let quiet = run.quiet || run.json;
    let simd = plan.flags.simd()?;
    let settings = plan.flags.settings()?;
    let stored = match &plan.folder {
        Some(folder) if plan.resumed => folder::checkpoint(folder)?,
        _ => None,
    };
    if plan.resumed && stored.is_none() && !quiet {
        remark("note: the run has no checkpoint yet, so it starts from the beginning");
    }
    if let Some(folder) = &plan.folder {
        let resolved = TopicsFlags {
            simd: Some(simd.name().to_owned()),
            ..plan.flags.clone()
        };
        Stored::new(
            &plan.corpus,
            plan.path.clone(),
            plan.start.is_some(),
            resolved,
        )
        .write(folder)?;
    }
    let finished = fit(&plan, settings.clone(), simd, stored, quiet)?;
    let begun = Instant::now();
    let Some(fitted) = finished.outcome.output else {
        return Err(Failure::input(format!(
            "the fit cannot start: {}",
            finished.outcome.status
        )));
    };
    let model = TopicModel {
        topics: fitted.topics.clone(),
        words: plan.corpus.words().to_vec(),
        tokeniser: match &plan.start {
            Some(start) => start.tokeniser,
            None => tokeniser(&plan.corpus),
        },
    };
    let completion = if plan.corpus.documents(Part::Heldout) > SCORED {
        score(&plan.corpus, &model, settings.seed, simd)
    } else {
        fitted.heldout
    };
    let train = CorpusDocuments::new(&plan.corpus, Part::Train);
    let topic_rows = rows(&model, plan.flags.words(), &train);
    let done = finished.outcome.iterations >= finished.planned;
    let passes = plan.flags.passes.unwrap_or(1.0);
    let mut warnings = Vec::new();
    if completion.is_none() {
        warnings.push("no documents are held out, so the topics are not scored: build the corpus with --heldout 0.01".to_owned());
    }
    let advice = finished.outcome.status.advice();
    let summary = TopicsSummary {
        status: if done {
            format!(
                "all passes are made: {passes}, in {} iterations",
                finished.outcome.iterations
            )
        } else {
            format!("{}. {advice}", finished.outcome.status)
        },
        finished: done,
        elbo: fitted.elbo,
        elbo_se: fitted.elbo_se,
        temperature: fitted.temperature,
        heldout_log_predictive: completion.map(|c| c.log_predictive),
        heldout_log_predictive_se: completion.map(|c| c.standard_error),
        heldout_perplexity: completion.map(|c| c.perplexity()),
        heldout_words: completion.map_or(0, |c| c.words),
        heldout_documents: completion.map_or(0, |c| c.documents),
        docs_per_second: finished.gathered.docs_per_second(&finished.sizes),
        documents_processed: fitted.documents,
        documents: plan.corpus.documents(Part::Train) as u64,
        documents_skipped: fitted.skipped,
        tokens: train.tokens(),
        terms: plan.corpus.terms(),
        topics: settings.topics,
        alpha: settings.alpha(),
        eta: settings.eta(),
        temper: plan.flags.temper.clone().unwrap_or_else(|| "none".into()),
        iterations: finished.outcome.iterations,
        seconds: TopicsSeconds {
            open: plan.open_seconds,
            fit: finished.outcome.seconds,
            evaluate: begun.elapsed().as_secs_f64(),
        },
        coherence: Coherence::mean(&topic_rows),
        seed: settings.seed,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        warnings,
        topic_rows,
    };
    if let Some(folder) = &plan.folder {
        write_results(folder, &plan, &model, &summary, &finished.gathered.curves())?;
    }
    if run.json {
        print(&summary.to_json().map_err(Failure::output)?)?;
    } else if !run.quiet {
        print(&table(&summary))?;
        if let Some(folder) = &plan.folder {
            print(&format!("results   {}\n", folder.path().display()))?;
        }
    }
    Ok(if done { Exit::Done } else { Exit::Untrusted })
}

/// How the corpus made words of text.
fn tokeniser(corpus: &Corpus) -> Tokeniser {
    let stored = corpus
        .record()
        .get("tokeniser")
        .cloned()
        .unwrap_or_default();
    serde_json::from_value(stored).unwrap_or_default()
}

/// Scores all held-out documents.
pub fn score(corpus: &Corpus, model: &TopicModel, seed: u64, simd: Simd) -> Option<Completion> {
    let heldout = CorpusDocuments::new(corpus, Part::Heldout);
    (!heldout.is_empty())
        .then(|| Predictor::new(&model.topics, RULE, simd).completion(&heldout, seed))
}

fn fit(
    plan: &Plan,
    settings: LdaSettings,
    simd: Simd,
    stored: Option<(Checkpoint, Vec<Record>)>,
    quiet: bool,
) -> Result<Finished, Failure> {
    let train = CorpusDocuments::new(&plan.corpus, Part::Train);
    let heldout = CorpusDocuments::new(&plan.corpus, Part::Heldout);
    let heldout = Range::new(&heldout, 0, SCORED);
    let sizes = Sizes {
        documents: train.len() as f64,
        tokens: train.tokens(),
        batch: settings.batch as f64,
    };
    let planned = sizes.iterations(settings.passes);
    let (resume, records) = stored.map_or((None, Vec::new()), |(checkpoint, records)| {
        (Some(checkpoint), records)
    });
    let lines = resume.as_ref().map_or(0, |checkpoint| checkpoint.iteration);
    let trace = match &plan.folder {
        Some(folder) => Trace::open(folder, lines)?,
        None => Trace::none(),
    };
    let mut checkpoints = plan.folder.as_ref().map(|folder| Checkpoints {
        path: folder.artefact(Artefact::Checkpoint),
        trace: &trace,
    });
    let mut watch = Watch {
        trace: &trace,
        display: Display::with(quiet, Box::new(Line::new(sizes))),
    };
    let mut keep = Keep {
        watch: &mut watch,
        gathered: Gathered::default(),
        sizes,
    };
    for record in &records {
        keep.gathered.add(record, &sizes);
    }
    catch_interrupts();
    let epoch = Instant::now();
    let clock = move || epoch.elapsed().as_secs_f64();
    let population = plan
        .start
        .as_ref()
        .map(|start| start.topics.population + sizes.documents);
    let mut control = Control {
        // The passes are the budget and no part of the settings: a run may be resumed for more of them.
        budget: Budget {
            max_iterations: planned,
            max_seconds: plan.flags.max_seconds,
        },
        clock: &clock,
        cancel: Some(&STOP),
        observer: &mut keep,
        store: checkpoints.as_mut().map(|store| store as &mut dyn Store),
        checkpoint_seconds: plan
            .flags
            .checkpoint_every
            .unwrap_or(flags::CHECKPOINT_EVERY),
        resume,
        force_resume: plan.force,
    };
    let job = LdaJob {
        documents: &train,
        heldout: (!heldout.is_empty()).then_some(&heldout as &dyn Documents),
        start: plan.start.as_ref().map(|start| &start.topics),
        settings: LdaSettings {
            passes: UNBOUNDED,
            population,
            ..settings
        },
        simd,
        data_hash: plan.corpus.digest().to_owned(),
    };
    let outcome = lda::fit(&job, &mut control);
    let gathered = std::mem::take(&mut keep.gathered);
    watch.display.clear();
    trace.flush().map_err(Failure::output)?;
    let outcome = outcome.map_err(|error| match error {
        LdaError::Input(what) => Failure::input(what),
        LdaError::Run(error) => Failure::usage(error.to_string()),
    })?;
    Ok(Finished {
        outcome,
        gathered,
        sizes,
        planned,
    })
}

/// More passes than any run makes.
const UNBOUNDED: f64 = 1e9;

fn write_results(
    folder: &RunDir,
    plan: &Plan,
    model: &TopicModel,
    summary: &TopicsSummary,
    curves: &Curves,
) -> Result<(), Failure> {
    store::write_model(folder, model)?;
    let page = sheet(
        summary,
        curves,
        &plan.corpus.path().display().to_string(),
        plan.flags.listed(),
    );
    let write = |artefact: Artefact, text: &str| {
        write_atomic_bytes(&folder.artefact(artefact), text.as_bytes()).map_err(Failure::output)
    };
    write(Artefact::Report, &jensen::report::render_sheet(&page))?;
    // Last: who sees a fit.json finds everything else beside it.
    write(Artefact::Fit, &summary.to_json().map_err(Failure::output)?)
}

/// Topics in the table of the command.
const ROWS: usize = 20;

/// The summary for people.
fn table(summary: &TopicsSummary) -> String {
    let mut text = super::apply::topic_table(&summary.topic_rows, ROWS);
    let mut line = |name: &str, value: String| text += &format!("{name:<9} {value}\n");
    if let (Some(score), Some(se), Some(perplexity)) = (
        summary.heldout_log_predictive,
        summary.heldout_log_predictive_se,
        summary.heldout_perplexity,
    ) {
        line(
            "held out",
            format!(
                "{score:.4} ± {se:.4} nats/word (perplexity {perplexity:.0}), {} words of {} documents",
                summary.heldout_words, summary.heldout_documents
            ),
        );
    }
    line(
        "ELBO",
        format!(
            "{:.0} ± {:.0} nats ({:.4} nats/token)",
            summary.elbo,
            summary.elbo_se,
            summary.elbo / summary.tokens
        ),
    );
    if let (Some(npmi), Some(umass)) = (summary.coherence.npmi, summary.coherence.umass) {
        line(
            "coherence",
            format!("NPMI {npmi:.3}, UMass {umass:.2} (means over topics)"),
        );
    }
    if let Some(speed) = summary.docs_per_second {
        line(
            "speed",
            format!(
                "{speed:.0} documents/s; {:.1} s in all",
                summary.seconds.open + summary.seconds.fit + summary.seconds.evaluate
            ),
        );
    }
    line("status", summary.status.clone());
    for warning in &summary.warnings {
        line("", format!("- {warning}"));
    }
    text
}
