//! `jensen topics fit` and `jensen topics update`.

use std::path::PathBuf;
use std::time::Instant;

use jensen::conjugate::documents::{Documents, Part as Range};
use jensen::conjugate::lda::{
    self, Completion, LdaError, LdaFit, LdaJob, LdaSettings, Predictor, RULE,
};
use jensen::data::corpus::{BuildSettings, Corpus, Part, Tokeniser};
use jensen::data::{Artefact, RunDir};
use jensen::math::simd::Simd;
use jensen::run::{Budget, Outcome as RunOutcome};
use jensen::topics::{CorpusDocuments, TopicModel, rows};

use super::args::{FitArgs, RunFlags, UpdateArgs};
use super::build::{remark_skipped, watched};
use super::flags::TopicsFlags;
use super::progress::{Gathered, Line, Sizes};
use super::results::{Made, summary, table, write_results};
use super::store::{self, Stored};
use crate::failure::{Exit, Failure, Outcome, print, remark};
use crate::flags;
use crate::progress::Display;
use crate::run::folder::{self, Position};
use crate::run::session::{Session, start_threads};

/// Held-out documents that are scored along a run; at its end all are.
const SCORED: usize = 1000;

/// A run as it is about to start.
pub struct Plan {
    /// The documents.
    pub corpus: Corpus,
    /// Where the corpus is, as the folder keeps it.
    path: PathBuf,
    /// The settings.
    pub flags: TopicsFlags,
    /// Topics to go on from.
    start: Option<TopicModel>,
    folder: Option<RunDir>,
    resumed: bool,
    force: bool,
    /// Seconds that opening the corpus took.
    pub open_seconds: f64,
}

/// Runs `topics fit`.
pub fn run(args: &FitArgs) -> Outcome {
    start_threads(flags::threads(args.run.threads))?;
    let begun = Instant::now();
    let plan = match &args.resume {
        None => {
            folder::check_out(args.out.as_deref(), args.flags.checkpoint_every)?;
            // Wrong flags are said before anything is read or written.
            args.flags.settings()?;
            let path = args.corpus.clone().unwrap_or_default();
            let corpus = store::open_corpus(&path)?;
            let open_seconds = begun.elapsed().as_secs_f64();
            check(&corpus, &args.flags.settings()?, args.run.memory_limit)?;
            Plan {
                folder: args
                    .out
                    .as_deref()
                    .map(|out| folder::take(out, store::COMMAND))
                    .transpose()?,
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
            let path = match &args.corpus {
                Some(path) if !stored.update => std::path::absolute(path).unwrap_or(path.clone()),
                _ => stored.corpus.clone(),
            };
            Plan {
                start: stored.update.then(|| store::start(&folder)).transpose()?,
                path,
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
        Some(out) => folder::take(out, store::COMMAND)?,
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
pub struct Finished {
    /// How it ended.
    pub outcome: RunOutcome<LdaFit>,
    /// What its records said.
    pub gathered: Gathered,
}

fn carry_out(plan: Plan, run: &RunFlags) -> Outcome {
    let quiet = run.quiet || run.json;
    let simd = plan.flags.simd()?;
    let settings = plan.flags.settings()?;
    let train = CorpusDocuments::new(&plan.corpus, Part::Train);
    let heldout = CorpusDocuments::new(&plan.corpus, Part::Heldout);
    let scored = Range::new(&heldout, 0, SCORED);
    let job = LdaJob {
        documents: &train,
        heldout: (!scored.is_empty()).then_some(&scored as &dyn Documents),
        start: plan.start.as_ref().map(|start| &start.topics),
        settings: LdaSettings {
            // The passes are the budget and no part of the settings: a run may be resumed for more of them.
            passes: UNBOUNDED,
            population: plan
                .start
                .as_ref()
                .map(|start| start.topics.population + train.len() as f64),
            ..settings.clone()
        },
        simd,
        data_hash: plan.corpus.digest().to_owned(),
    };
    let position = match &plan.folder {
        Some(folder) if plan.resumed => {
            folder::position(folder, &lda::identity(&job), plan.force, quiet)?
        }
        _ => None,
    };
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
    let sizes = Sizes {
        documents: train.len() as f64,
        tokens: train.tokens(),
        batch: settings.batch as f64,
    };
    let planned = lda::planned_iterations(train.len(), &settings);
    let mut finished = fit(&plan, &job, sizes, planned, position, quiet)?;
    let begun = Instant::now();
    let Some(fitted) = finished.outcome.output.take() else {
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
    let topic_rows = rows(&model, plan.flags.words(), &train);
    let done = finished.outcome.iterations >= planned;
    let summary = summary(&Made {
        plan: &plan,
        job: &job,
        sizes,
        finished: &finished,
        fitted: &fitted,
        completion,
        topic_rows,
        done,
        evaluate_seconds: begun.elapsed().as_secs_f64(),
    });
    if let Some(folder) = &plan.folder {
        write_results(folder, &plan, &model, &summary, finished.gathered.curves())?;
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
    job: &LdaJob<'_>,
    sizes: Sizes,
    planned: u64,
    position: Option<Position>,
    quiet: bool,
) -> Result<Finished, Failure> {
    let session = Session {
        folder: plan.folder.as_ref(),
        position,
        budget: Budget {
            max_iterations: planned,
            max_seconds: plan.flags.max_seconds,
        },
        checkpoint_every: plan.flags.checkpoint_every,
        force: plan.force,
        display: Display::with(quiet, Box::new(Line::new(sizes))),
    };
    let mut gathered = Gathered::default();
    let (outcome, _) = session.carry_out(
        |record| gathered.add(record, &sizes),
        |mut control| lda::fit(job, &mut control),
    )?;
    let outcome = outcome.map_err(|error| match error {
        LdaError::Input(what) => Failure::input(what),
        LdaError::Run(error) => Failure::usage(error.to_string()),
    })?;
    Ok(Finished { outcome, gathered })
}

/// More passes than any run makes.
const UNBOUNDED: f64 = 1e9;
