//! `jensen topics fit` and `jensen topics update`.

use std::path::PathBuf;
use std::time::Instant;

use jensen::data::corpus::{BuildSettings, Corpus, Split};
use jensen::data::{Artefact, Claim};
use jensen::job::{CountRange, ResultFolder, folder, request};
use jensen::topics::stored::{self, TopicsRun};
use jensen::topics::{
    Collection, CorpusDocuments, PassSizes, TopicModel, TopicsCandidate, TopicsRequest,
    TopicsSummary, fit_topics,
};

use super::apply::topic_table;
use super::args::{FitArgs, RunFlags, UpdateArgs};
use super::build::{remark_left_out, watched};
use super::progress::Line;
use crate::failure::{CommandResult, Failure, remark};
use crate::terminal::{Setting, check_out, conclude, start_threads, verdict};

struct Plan {
    corpus: Corpus,
    run: TopicsRun,
    start: Option<TopicModel>,
    results: ResultFolder,
    begun: Instant,
}

impl Plan {
    fn new(corpus: Corpus, path: PathBuf, flags: TopicsRequest, begun: Instant) -> Self {
        Self {
            run: TopicsRun {
                corpus: path,
                digest: corpus.digest().to_owned(),
                update: false,
                flags,
            },
            corpus,
            start: None,
            results: ResultFolder::None,
            begun,
        }
    }
}

pub fn run(args: &FitArgs) -> CommandResult {
    start_threads(args.run.threads)?;
    let begun = Instant::now();
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or(path.clone());
    let Some(dir) = &args.resume else {
        check_out(args.out.as_deref(), args.flags.checkpoint_every)?;
        // The flags are checked before any file is read or written.
        args.flags.settings()?;
        let path = args.corpus.clone().unwrap_or_default();
        let corpus = Corpus::open(&path)?;
        let flags = TopicsRequest {
            seed_words: args.flags.seed_words.as_ref().map(absolute),
            ..args.flags.clone()
        };
        let mut plan = Plan::new(corpus, absolute(&path), flags, begun);
        plan.results = ResultFolder::new(args.out.as_deref());
        return carry_out(plan, &args.run);
    };
    let (folder, stored) = stored::open(dir)?;
    let corpus = match &args.corpus {
        Some(path) => Corpus::open(path)?,
        None => stored.open_corpus(&folder)?,
    };
    if corpus.digest() != stored.digest && !args.force {
        return Err(Failure::usage(format!(
            "the corpus `{}` is not the corpus of the run in `{}`; name that corpus, or add --force, which gives \
             up reproducibility",
            corpus.path().display(),
            dir.display()
        )));
    }
    let path = match &args.corpus {
        Some(path) if !stored.update => absolute(path),
        _ => stored.corpus,
    };
    let flags = request::over(&args.flags, &stored.flags)?;
    let mut plan = Plan::new(corpus, path, flags, begun);
    plan.run.update = stored.update;
    if stored.update {
        plan.start = Some(stored::start(&folder)?);
    }
    let force = args.force;
    plan.results = ResultFolder::Resumed { folder, force };
    carry_out(plan, &args.run)
}

pub fn update(args: &UpdateArgs) -> CommandResult {
    start_threads(args.run.threads)?;
    let (old, stored) = stored::open(&args.dir)?;
    let model = stored::model(&old)?;
    let topics = model.topics.topics as u64;
    let topics = CountRange::one(topics);
    if args.flags.topics.is_some_and(|k| k != topics) {
        return Err(Failure::usage(format!(
            "the number of topics cannot change in an update: the fit has {topics}"
        )));
    }
    let flags = TopicsRequest {
        // The priors of the earlier fit are given as numbers, because neither K nor the priors may change.
        alpha: Some(model.topics.mean_alpha().to_string()),
        eta: Some(model.topics.eta.to_string()),
        topics: Some(topics),
        // An update has no start to choose, because it continues from the topics of the earlier fit.
        starts: Some(1),
        // The update uses the same inference method as the earlier fit.
        inference: Some(model.topics.inference.name().to_owned()),
        // The temperature schedule applied to the earlier fit only, because an update starts from existing topics.
        temper: Some(args.flags.temper.clone().unwrap_or_else(|| "none".into())),
        passes: Some(args.flags.passes.unwrap_or(1.0)),
        ..request::over(&args.flags, &stored.flags)?
    };
    let seed = flags.seed.unwrap_or(0);
    flags.settings()?;
    let sources = args.input.sources(&args.inputs, None)?;
    let begun = Instant::now();
    // The new documents are read before any file of the earlier fit is changed.
    let claim = Claim::of(args.out.as_deref().unwrap_or(old.path())).map_err(Failure::output)?;
    let folder = match &args.out {
        Some(out) => folder::take(out, stored::COMMAND, &[])?,
        None => old,
    };
    let (path, built_path) = stored::update_corpus(&folder);
    let mut build = BuildSettings {
        tokeniser: model.tokeniser.clone(),
        fixed: Some(model.words.clone()),
        heldout: args.heldout,
        seed,
        ..BuildSettings::new(&sources)
    };
    if let Some(least) = args.new_words {
        build.grows = true;
        let vocabulary = &mut build.vocabulary;
        (vocabulary.min_df, vocabulary.max_terms) = (least, None);
        vocabulary.max_df = args.max_df.unwrap_or(vocabulary.max_df);
    }
    let quiet = args.run.quiet || args.run.json;
    let built = watched(&sources, &built_path, &build, quiet).inspect_err(|_| {
        // If the folder cannot be restored, this error is ignored, because the first error is reported.
        drop(folder.bring_back());
    })?;
    if !quiet {
        if args.new_words.is_some() {
            let added = built.terms - model.words.len() as u64;
            remark(&format!(
                "note: Jensen added {added} words to the vocabulary"
            ));
        }
        remark_left_out(&built);
    }
    let mut plan = Plan::new(Corpus::open(&built_path)?, path, flags, begun);
    for artefact in [Artefact::Checkpoint, Artefact::Trace] {
        folder.remove(artefact).map_err(Failure::output)?;
    }
    plan.run.update = true;
    plan.start = Some(model);
    plan.results = ResultFolder::Taken(folder, claim);
    carry_out(plan, &args.run)
}

fn carry_out(plan: Plan, run: &RunFlags) -> CommandResult {
    let train = CorpusDocuments::new(&plan.corpus, Split::Train);
    let sizes = PassSizes::of(&train, &plan.run.flags.settings()?[0]);
    let setting = Setting {
        checkpoint_every: plan.run.flags.checkpoint_every,
        memory_limit: run.memory_limit,
        ..Setting::new(plan.results, Box::new(Line::new(sizes)))
    };
    let (start, open_seconds) = (plan.start.as_ref(), plan.begun.elapsed().as_secs_f64());
    let collection = Collection::of_corpus(&plan.corpus);
    let done = setting.watch(run.say(), |around| {
        fit_topics(&collection, plan.run, start, open_seconds, around)
    })?;
    conclude(
        &done.summary,
        done.trusted,
        done.folder.as_deref(),
        run.say(),
        9,
        table,
    )
}

const ROWS: usize = 20;

fn table(summary: &TopicsSummary) -> String {
    let mut text = topic_table(&summary.topic_rows, ROWS);
    if !summary.candidates.is_empty() {
        let (heads, rows) = TopicsCandidate::table(&summary.candidates);
        let line = |cells: &[String]| {
            let line = format!(
                "{:>6} {:>20} {:>11} {:>15} {}",
                cells[0], cells[1], cells[2], cells[3], cells[4]
            );
            line.trim_end().to_owned() + "\n"
        };
        text += &(line(&heads) + &rows.iter().map(|row| line(row)).collect::<String>() + "\n");
    }
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
            summary.elbo / (summary.tokens * summary.population / summary.documents as f64)
        ),
    );
    line(
        "in use",
        format!(
            "{:.0} of {} topics are in use (exp of the entropy of their shares), {} dead",
            summary.topics_in_use, summary.topics, summary.dead_topics
        ),
    );
    if let (Some(found), Some([alpha, gamma])) = (summary.topics_found, summary.concentrations) {
        line(
            "found",
            format!(
                "{found} topics hold 99 % of the tokens (hierarchical Dirichlet process, α₀ {alpha:.3}, γ {gamma:.3})"
            ),
        );
    }
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
    text + &verdict(&summary.judgement, 9)
}
