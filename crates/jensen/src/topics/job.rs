//! The fit job for topic models.

use jensen_conjugate::contest::Ended;
use jensen_conjugate::documents::Documents;
use jensen_conjugate::lda::{
    self, BestTopics, Completion, Inference, LdaError, LdaFit, LdaJob, LdaSettings, LearnAlpha,
    Shards,
};
use jensen_conjugate::temper::{Length, Temper};
use jensen_math::simd::Simd;
use jensen_run::{Budget, Clock, Control, Identity, Outcome};

use super::map::topic_map;
use super::request::COOLING;
use super::stored::{COMMAND, START, TopicsRun};
use super::summary::{dead, found, in_use};
use super::{
    Coherence, Collection, PassSizes, TopicModel, TopicRow, TopicsCourse, TopicsSeconds,
    TopicsSummary, report_page, rows,
};
use super::{candidates, exemplars};
use crate::Error;
use crate::job::{
    Around, Baseline, Done, Evidence, File, Finished, Job, Judgement, Need, Work, carry_out,
    request,
};

/// The maximum number of held-out documents that are scored during a run. At the end of the run, all held-out documents
/// are scored.
const SCORED: usize = 1000;

/// If the number of topics in use is less than the number of topics divided by this value, the fit reports a note.
const FEWEST: f64 = 3.0;

/// The maximum amount by which the score of a fit may be lower than the score of the baseline. The unit is the standard
/// error of the score of the fit.
const ERRORS: f64 = 2.0;

const UNBOUNDED: f64 = 1e9;

/// A fit of a topic model that is ready to be run by [`carry_out`].
pub struct TopicsJob<'a> {
    collection: &'a Collection<'a>,
    run: TopicsRun,
    start: Option<&'a TopicModel>,
    /// The settings for each number of topics, in ascending order, and for each start of this number.
    settings: Vec<LdaSettings>,
    simd: Simd,
    open_seconds: f64,
    shards: Option<Box<dyn Shards + 'a>>,
}

/// The result of a fit of a topic model.
pub struct TopicsMade {
    /// The fitted topics and the scores of the fit.
    pub fit: LdaFit,
    /// The topics with their words.
    pub model: TopicModel,
    /// The summary of every topic.
    pub rows: Vec<TopicRow>,
    /// The index of the chosen fit, followed by the results of all fits. This field is `None` if there was only one
    /// number of topics and one start.
    pub candidates: Option<(usize, Vec<Ended>)>,
    /// The comparison with a model that has a single topic, or `None` if there is no baseline.
    pub baseline: Option<Baseline>,
    /// The time in seconds for the computation of the ELBO, the scores and the coherence.
    pub evaluate_seconds: f64,
}

/// Fits topics to a collection of documents. If `start` is given, the fit begins with these topics. `open_seconds` is
/// the time in seconds that was needed to open the collection.
///
/// # Errors
/// Fails if a setting is invalid or if there are more topics than tokens. Also returns the errors of [`carry_out`].
pub fn fit_topics<'a>(
    collection: &'a Collection<'a>,
    run: TopicsRun,
    start: Option<&'a TopicModel>,
    open_seconds: f64,
    around: Around<'_>,
) -> Result<Done<TopicsJob<'a>>, Error> {
    fit_topics_on(collection, run, start, open_seconds, None, around)
}

/// Fits topics like [`fit_topics`] and returns bitwise identical results. If `shards` are given, they compute the local
/// steps.
///
/// # Errors
/// Returns the same errors as [`fit_topics`]. Also fails if a shard does not answer. After a shard has failed, the run
/// can be resumed from its last checkpoint.
pub fn fit_topics_on<'a>(
    collection: &'a Collection<'a>,
    mut run: TopicsRun,
    start: Option<&'a TopicModel>,
    open_seconds: f64,
    shards: Option<Box<dyn Shards + 'a>>,
    around: Around<'_>,
) -> Result<Done<TopicsJob<'a>>, Error> {
    let mut settings = run.flags.settings_for(collection.train.len())?;
    for settings in &mut settings {
        let (words, tokens) = (collection.words(), collection.train.tokens());
        settings.seeds = run.flags.seeds(settings.topics, words, tokens)?;
    }
    let simd = run.flags.simd()?;
    run.flags.simd = Some(simd.name().to_owned());
    // The name of the inference method is stored, because the default may change in a later version, but a resumed run
    // must use the same method.
    run.flags.inference = Some(settings[0].inference.name().to_owned());
    run.digest.clone_from(&collection.digest);
    let tokens = collection.train.tokens();
    if let Some(many) = settings
        .iter()
        .find(|settings| settings.topics as f64 > tokens)
    {
        return Err(Error::Input(format!(
            "{} topics are too many for {tokens} tokens: use fewer topics",
            many.topics
        )));
    }
    if settings.len() > 1 && shards.is_some() {
        return Err(Error::setting(
            "several machines fit one number of topics from one start at a time: replace the range by a number",
        ));
    }
    let job = TopicsJob {
        collection,
        run,
        start,
        settings,
        simd,
        open_seconds,
        shards,
    };
    carry_out(job, around)
}

/// Returns the score of all held-out documents of a collection, or `None` if no documents are held out.
pub fn score(
    collection: &Collection<'_>,
    model: &TopicModel,
    seed: u64,
    simd: Simd,
) -> Option<Completion> {
    let heldout = collection.heldout.as_deref()?;
    Some(lda::completion(&model.topics, heldout, seed, simd))
}

impl TopicsJob<'_> {
    fn train(&self) -> &dyn Documents {
        &*self.collection.train
    }

    /// Returns one job for each number of topics and each start.
    fn jobs(&self) -> Vec<LdaJob<'_>> {
        let train = self.train();
        let job = |settings: &LdaSettings| LdaJob {
            documents: train,
            heldout: self.collection.heldout.as_deref(),
            scored: SCORED,
            start: self.start.map(|start| &start.topics),
            settings: LdaSettings {
                // The number of passes belongs to the budget, which may be increased when a run is resumed.
                passes: UNBOUNDED,
                population: self
                    .start
                    .map(|start| start.topics.population + train.len() as f64),
                ..settings.clone()
            },
            simd: self.simd,
            data_hash: self.collection.digest.clone(),
        };
        self.settings.iter().map(job).collect()
    }

    /// Returns the number of iterations of each fit.
    fn each(&self) -> u64 {
        lda::planned_iterations(self.train().len(), &self.settings[0])
    }

    fn made(&self, best: BestTopics, clock: &dyn Clock) -> TopicsMade {
        let BestTopics { fit, chosen, ended } = best;
        let begun = clock.seconds();
        let model = TopicModel {
            topics: fit.topics.clone(),
            words: self.collection.words.to_vec(),
            tokeniser: self
                .start
                .map_or(&self.collection.tokeniser, |start| &start.tokeniser)
                .clone(),
        };
        let rows = rows(&model, self.run.flags.words(), self.train());
        let baseline = self.baseline(&fit, &self.settings[chosen]);
        TopicsMade {
            evaluate_seconds: fit.evaluate_seconds + (clock.seconds() - begun),
            fit,
            model,
            rows,
            candidates: (self.settings.len() > 1).then_some((chosen, ended)),
            baseline,
        }
    }

    /// Returns the settings of the chosen fit.
    fn chosen(&self, made: &TopicsMade) -> &LdaSettings {
        &self.settings[made.candidates.as_ref().map_or(0, |chosen| chosen.0)]
    }

    /// Returns the comparison with a model that has a single topic. The compared scores are those of the held-out
    /// words, or the ELBOs if no documents are held out. For an update, the ELBO of the baseline cannot be computed,
    /// because it would include documents that are no longer available.
    fn baseline(&self, fit: &LdaFit, settings: &LdaSettings) -> Option<Baseline> {
        let advice = "Make more passes (--passes), or use fewer topics (--topics).".to_owned();
        let model = "one topic for all".to_owned();
        if let (Some(own), Some(heldout)) = (fit.completion, self.collection.heldout.as_deref()) {
            let one = lda::unigram(self.train(), settings);
            let plain = lda::completion(&one, heldout, settings.seed, self.simd);
            return Some(Baseline {
                model,
                score: plain.log_predictive,
                fit: own.log_predictive,
                least: plain.log_predictive - ERRORS * own.standard_error,
                unit: "log score in nats per held-out word".to_owned(),
                advice,
            });
        }
        if self.start.is_some() || settings.topics == 1 {
            return None;
        }
        let plain = lda::unigram_bounds(self.train(), settings);
        Some(Baseline {
            model,
            score: plain.bound,
            fit: fit.elbo,
            least: plain.within - ERRORS * fit.elbo_se,
            unit: "ELBO in nats".to_owned(),
            advice,
        })
    }
}

fn temperatures(of: &[f64]) -> String {
    let line = |(number, t): (usize, &f64)| match t.is_finite() {
        true => format!("{number},{t}\n"),
        false => format!("{number},\n"),
    };
    let lines: String = of.iter().enumerate().map(line).collect();
    format!("document,temperature\n{lines}")
}

impl Job for TopicsJob<'_> {
    type Request = TopicsRun;
    type Course = TopicsCourse;
    type Output = TopicsMade;
    type Summary = TopicsSummary;

    fn command(&self) -> &'static str {
        COMMAND
    }

    fn request(&self) -> &TopicsRun {
        &self.run
    }

    fn inputs(&self) -> Vec<File<'_>> {
        let start = self.start.iter();
        start
            .map(|model| File::of_bytes(START, model.encode()))
            .collect()
    }

    fn check_sources(&self) -> Result<(), Error> {
        match self.collection.file {
            Some(corpus) => Ok(corpus.check_unchanged()?),
            None => Ok(()),
        }
    }

    fn identity(&self) -> Identity {
        lda::identity_of_several(&self.jobs(), self.each())
    }

    fn budgets(&self) -> &'static [&'static str] {
        &["/passes"]
    }

    fn need(&self) -> Need {
        let largest = &self.settings[self.settings.len() - 1];
        let (topics, terms) = (largest.topics as u64, self.train().terms() as u64);
        let batch = largest.batch as u64 * topics * 4 * 200;
        // The best fit so far stays in memory while the next one runs.
        let two = self.settings.len() > 1 || largest.temper.from_both_ends();
        let runs = if two { 2 } else { 1 };
        Need {
            what: format!("a fit of {topics} topics of {terms} words"),
            // This rough estimate includes the topics in single precision with their statistics, three copies in double
            // precision during the writing of a checkpoint, and the documents of a batch.
            bytes: runs * topics * terms * (2 * 4 + 3 * 8) + batch + (64 << 20),
            advice: "use fewer topics or words (--max-terms of `jensen topics build`), or raise the limit \
                     (--memory-limit)"
                .to_owned(),
        }
    }

    fn budget(&self) -> Budget {
        Budget {
            max_seconds: self.run.flags.max_seconds,
            ..Budget::iterations(self.each() * self.settings.len() as u64)
        }
    }

    fn course(&self) -> TopicsCourse {
        TopicsCourse::new(PassSizes::of(self.train(), &self.settings[0]))
    }

    fn run(&mut self, mut control: Control<'_>) -> Result<Outcome<TopicsMade>, Error> {
        let clock = control.clock;
        let shards = self.shards.take();
        let jobs = self.jobs();
        let alone = |outcome: Outcome<LdaFit>| Outcome {
            output: outcome.output.map(|fit| BestTopics {
                fit,
                chosen: 0,
                ended: Vec::new(),
            }),
            status: outcome.status,
            iterations: outcome.iterations,
            seconds: outcome.seconds,
        };
        let outcome = match (shards, &jobs[..]) {
            (Some(shards), _) => lda::fit_on(&jobs[0], shards, &mut control).map(alone),
            (None, [job]) => lda::fit(job, &mut control).map(alone),
            (None, jobs) => lda::fit_best(jobs, self.each(), &mut control),
        };
        let outcome = outcome.map_err(|error| match error {
            LdaError::Input(what) | LdaError::Lost(what) => Error::Input(what),
            LdaError::Run(error) => error.into(),
        })?;
        Ok(Outcome {
            output: outcome.output.map(|best| self.made(best, clock)),
            status: outcome.status,
            iterations: outcome.iterations,
            seconds: outcome.seconds,
        })
    }

    fn evidence(&self, made: &Finished<Self>) -> Evidence {
        let settings = self.chosen(&made.output);
        let work = Work::Planned {
            iterations: self.budget().max_iterations,
            made: format!("completed all passes: {}", settings.passes),
        };
        let length = Length {
            planned: settings.passes,
            cooling: COOLING,
            flag: "--passes",
        };
        let mut evidence = Evidence {
            baseline: made.output.baseline.clone(),
            temperature: made.output.fit.temperature,
            cooling: settings.temper.remedy(&length),
            ..Evidence::new(made.status.clone(), work)
        };
        let shares = made.output.fit.topics.shares();
        let (topics, used, dead) = (shares.len(), in_use(&shares), dead(&shares));
        if settings.learn_alpha == LearnAlpha::Hdp {
            if found(&shares) == topics {
                evidence.notes.push(format!(
                    "all {topics} topics hold tokens, so the number of topics may be limited by --topics: raise it"
                ));
            }
        } else if FEWEST * used < topics as f64 {
            let advice = match (settings.inference, &settings.temper) {
                (Inference::Cvb0, _) => "use fewer topics, or more passes (--passes)",
                (Inference::MeanField, Temper::None) => {
                    "fit again with `--inference cvb0`, or use fewer topics"
                }
                (Inference::MeanField, _) => "fit again without `--temper`, or use fewer topics",
            };
            evidence.notes.push(format!(
                "{used:.0} of {topics} topics are in use (exponential of the entropy of their token shares), \
                 and {dead} have less than a tenth of an even share: {advice}"
            ));
        }
        if let Some((chosen, _)) = &made.output.candidates
            && let (first, last) = (&self.settings[0], &self.settings[self.settings.len() - 1])
            && first.topics < last.topics
            && self.settings[*chosen].topics == last.topics
        {
            evidence.notes.push(format!(
                "the largest number of topics, {}, has the best held-out score, so a larger number may be better",
                settings.topics
            ));
        }
        if made.output.fit.completion.is_none() {
            evidence.notes.push(
                "the corpus has no held-out documents, so Jensen cannot score the topics: build it with \
                 --heldout 0.01".to_owned(),
            );
        }
        evidence
    }

    fn summary(&self, made: &Finished<Self>, judgement: Judgement) -> TopicsSummary {
        let TopicsMade {
            fit,
            rows,
            evaluate_seconds,
            ..
        } = &made.output;
        let settings = self.chosen(&made.output);
        let completion = &fit.completion;
        let temper = &self.run.flags.temper;
        TopicsSummary {
            judgement,
            finished: made.iterations >= self.budget().max_iterations,
            elbo: fit.elbo,
            elbo_se: fit.elbo_se,
            temperature: fit.temperature,
            heldout_log_predictive: completion.map(|c| c.log_predictive),
            heldout_log_predictive_se: completion.map(|c| c.standard_error),
            heldout_perplexity: completion.map(|c| c.perplexity()),
            heldout_words: completion.map_or(0, |c| c.words),
            heldout_documents: completion.map_or(0, |c| c.documents),
            docs_per_second: made.course.docs_per_second(),
            documents_processed: fit.documents,
            documents: self.train().len() as u64,
            documents_skipped: fit.skipped,
            population: fit.topics.population,
            tokens: self.train().tokens(),
            terms: self.train().terms(),
            topics: settings.topics,
            alpha: fit.topics.mean_alpha(),
            eta: fit.topics.eta,
            temper: temper.clone().unwrap_or_else(|| "none".into()),
            iterations: made.iterations,
            seconds: TopicsSeconds {
                open: self.open_seconds,
                fit: made.seconds,
                evaluate: *evaluate_seconds,
            },
            coherence: Coherence::mean(rows),
            seed: settings.seed,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            topic_rows: rows.clone(),
            inference: settings.inference.name().to_owned(),
            topics_in_use: in_use(&fit.topics.shares()),
            dead_topics: dead(&fit.topics.shares()),
            rests: fit.rests.clone(),
            candidates: match &made.output.candidates {
                Some((chosen, ended)) => candidates::rows(
                    &self.settings,
                    *chosen,
                    ended,
                    completion.map_or(0, |c| c.words),
                ),
                None => Vec::new(),
            },
            learned_alpha: match settings.learn_alpha {
                LearnAlpha::Fixed => Vec::new(),
                LearnAlpha::Symmetric | LearnAlpha::Asymmetric | LearnAlpha::Hdp => {
                    fit.topics.alpha.clone()
                }
            },
            topics_found: (settings.learn_alpha == LearnAlpha::Hdp)
                .then(|| found(&fit.topics.shares())),
            concentrations: fit.concentrations,
        }
    }

    fn files<'a>(
        &'a self,
        made: &'a Finished<Self>,
        summary: &mut TopicsSummary,
        _: &dyn Clock,
    ) -> Vec<File<'a>> {
        let (model, train, simd) = (&made.output.model, self.train(), self.simd);
        let (encoded, (map, exhibit)) = rayon::join(
            || model.encode(),
            || (topic_map(model), exemplars::exhibit(model, train, simd)),
        );
        let page = report_page(
            summary,
            &made
                .course
                .curves(made.output.candidates.as_ref().map_or(0, |chosen| chosen.0)),
            map,
            exhibit,
            &self.collection.name,
            request::listed(&self.run.flags),
        );
        let mut files = vec![File::approximation(encoded), File::page(&page)];
        if !made.output.fit.temperatures.is_empty() {
            let table = temperatures(&made.output.fit.temperatures);
            files.push(File::of_bytes("temperatures.csv", table));
        }
        files
    }
}
