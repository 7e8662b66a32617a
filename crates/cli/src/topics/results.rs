//! What a fit of topics says at its end: `fit.json`, the page, the table.

use jensen::conjugate::lda::{Completion, LdaFit, LdaJob};
use jensen::data::corpus::Part;
use jensen::data::{Artefact, RunDir, write_atomic_bytes};
use jensen::topics::{
    Coherence, Curves, TopicModel, TopicRow, TopicsSeconds, TopicsSummary, sheet,
};

use super::apply::topic_table;
use super::fit::{Finished, Plan};
use super::progress::Sizes;
use super::store;
use crate::failure::Failure;

/// Everything that a summary is made from.
pub struct Made<'a> {
    /// What was planned.
    pub plan: &'a Plan,
    /// What was run.
    pub job: &'a LdaJob<'a>,
    /// Its sizes.
    pub sizes: Sizes,
    /// How it ended.
    pub finished: &'a Finished,
    /// What it made.
    pub fitted: &'a LdaFit,
    /// The score of all held-out documents.
    pub completion: Option<Completion>,
    /// The topics in numbers.
    pub topic_rows: Vec<TopicRow>,
    /// All passes were made.
    pub done: bool,
    /// Seconds that scores and coherence took.
    pub evaluate_seconds: f64,
}

/// The summary of a fit.
pub fn summary(made: &Made<'_>) -> TopicsSummary {
    let (plan, settings, completion) = (made.plan, &made.job.settings, made.completion);
    let outcome = &made.finished.outcome;
    let passes = plan.flags.passes.unwrap_or(1.0);
    let mut warnings = Vec::new();
    if completion.is_none() {
        warnings.push(
            "no documents are held out, so the topics are not scored: build the corpus with --heldout 0.01".to_owned(),
        );
    }
    if made.fitted.temperature > HOT {
        warnings.push(format!(
            "the fit ended at temperature {:.2}, at which topics stay vague: give it a cooling, such as --temper global=0.5",
            made.fitted.temperature
        ));
    }
    TopicsSummary {
        status: if made.done {
            format!(
                "all passes are made: {passes}, in {} iterations",
                outcome.iterations
            )
        } else {
            format!("{}. {}", outcome.status, outcome.status.advice())
        },
        finished: made.done,
        elbo: made.fitted.elbo,
        elbo_se: made.fitted.elbo_se,
        temperature: made.fitted.temperature,
        heldout_log_predictive: completion.map(|c| c.log_predictive),
        heldout_log_predictive_se: completion.map(|c| c.standard_error),
        heldout_perplexity: completion.map(|c| c.perplexity()),
        heldout_words: completion.map_or(0, |c| c.words),
        heldout_documents: completion.map_or(0, |c| c.documents),
        docs_per_second: made.finished.gathered.docs_per_second(&made.sizes),
        documents_processed: made.fitted.documents,
        documents: plan.corpus.documents(Part::Train) as u64,
        documents_skipped: made.fitted.skipped,
        population: made.fitted.topics.population,
        tokens: made.sizes.tokens,
        terms: plan.corpus.terms(),
        topics: settings.topics,
        alpha: settings.alpha(),
        eta: settings.eta(),
        temper: plan.flags.temper.clone().unwrap_or_else(|| "none".into()),
        iterations: outcome.iterations,
        seconds: TopicsSeconds {
            open: plan.open_seconds,
            fit: outcome.seconds,
            evaluate: made.evaluate_seconds,
        },
        coherence: Coherence::mean(&made.topic_rows),
        seed: settings.seed,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        warnings,
        topic_rows: made.topic_rows.clone(),
    }
}

/// A mean temperature of documents above this is not one of outliers among them.
const HOT: f64 = 1.5;

/// Writes what a run leaves.
pub fn write_results(
    folder: &RunDir,
    plan: &Plan,
    model: &TopicModel,
    summary: &TopicsSummary,
    curves: Curves,
) -> Result<(), Failure> {
    store::write_model(folder, model)?;
    let page = sheet(
        summary,
        &curves,
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
pub fn table(summary: &TopicsSummary) -> String {
    let mut text = topic_table(&summary.topic_rows, ROWS);
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
