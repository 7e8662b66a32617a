//! Chooses the number of topics, and one of several starts, by the scores of held-out documents.

use jensen_math::sum::Moments;
use jensen_run::{Control, Identity, Outcome, run};

use super::engine::LdaEngine;
use super::fit::{LdaError, LdaFit, LdaJob, check, driver, finished, identity, with_output};
use super::local::Spec;
use super::settings::LdaSettings;
use super::shards::LocalShards;
use crate::contest::{Contest, Ended, Several, StateOf};
use crate::driver::Driver;

/// The number of starts of each number of topics, if there are several numbers.
///
/// A start that gives two topics to one subject and one topic to two subjects is a local optimum, which more passes do
/// not leave. For 500 documents of five subjects, one of 20 starts of five topics ended there, and six topics scored
/// 5.7 nats per held-out document more. A number of topics that has only such starts loses to a larger number.
pub const STARTS: u64 = 2;

/// The smallest number of steps of each fit, if there are several numbers of topics. After few steps the topics still
/// contain words of their start, and more topics then score better than the right number. For the documents of
/// [`STARTS`], six topics score better than five by more than one standard error from 10 of 20 starts after 50 steps,
/// from 4 after 100 and from 1, the local optimum, after 200. After 250 steps five topics score better by 0.12 nats per
/// document.
const STEPS: f64 = 250.0;

/// Returns the number of passes of each fit if several numbers of topics are compared: the number in the settings, or
/// more if these passes have few steps.
pub fn passes_to_compare(documents: usize, settings: &LdaSettings) -> f64 {
    let per_pass = documents.div_ceil(settings.batch.max(1)).max(1) as f64;
    settings.passes.max((STEPS / per_pass).ceil())
}

/// The fit with the chosen number of topics.
#[derive(Clone, Debug)]
pub struct BestTopics {
    /// The chosen fit.
    pub fit: LdaFit,
    /// The index of its job.
    pub chosen: usize,
    /// The results of the jobs in order. The list is shorter if the run was stopped early.
    pub ended: Vec<Ended>,
}

/// Compares fits by their held-out scores. The jobs are in ascending order of the number of topics, and the starts of a
/// number are adjacent.
struct Heldout<'a, 'b>(&'b [LdaJob<'a>]);

impl<'a> Contest for Heldout<'a, '_> {
    type Engine = LdaEngine<'a>;

    fn count(&self) -> usize {
        self.0.len()
    }

    fn driver(&self, candidate: usize) -> Driver<LdaEngine<'a>> {
        let job = &self.0[candidate];
        let spec = Spec::of(&job.settings, job.simd);
        driver(
            job,
            Box::new(LocalShards::new(job.documents, job.heldout, spec)),
        )
    }

    fn scores(
        &self,
        _: usize,
        driver: &mut Driver<LdaEngine<'a>>,
        output: &StateOf<LdaEngine<'a>>,
    ) -> Vec<f64> {
        let scores = driver.engine.heldout_scores(&output.globals);
        scores.iter().map(|score| score.log_probability).collect()
    }

    /// Of the starts of a number of topics, the best score wins. A larger number of topics must be better by more than
    /// one standard error of the difference, which is estimated from the differences of the single documents (Breiman,
    /// Friedman, Olshen and Stone 1984, 3.4.3). Scores of more topics than the documents have differ from the best score
    /// by little more than noise.
    fn is_better(&self, ended: &[Ended], new: usize, best: usize) -> bool {
        let pairs = ended[new].scores.iter().zip(&ended[best].scores);
        let differences: Vec<f64> = pairs.map(|(new, best)| new - best).collect();
        let moments = Moments::of(&differences);
        let margin = match self.0[new].settings.topics == self.0[best].settings.topics {
            true => 0.0,
            false => moments.standard_error(),
        };
        moments.mean() > margin
    }
}

/// Returns the identity that the checkpoint of a run with these jobs must match.
///
/// # Panics
/// Panics if there are no jobs.
pub fn identity_of_several(jobs: &[LdaJob<'_>], each: u64) -> Identity {
    let mut first = identity(&jobs[0]);
    if jobs.len() > 1 {
        let numbers: Vec<usize> = jobs.iter().map(|job| job.settings.topics).collect();
        first.settings["numbers"] = numbers.into();
        let restarts = jobs.iter().map(|job| job.settings.restart);
        if restarts.clone().any(|restart| restart > 0) {
            first.settings["starts"] = restarts.collect::<Vec<u64>>().into();
        }
        // The iteration at which one fit ends determines the iterations of the next.
        first.settings["each"] = each.into();
    }
    first
}

/// Fits topics with each of these jobs, which differ in the number of topics and in the start. The numbers of topics are
/// in ascending order. Each fit takes at most `each` iterations. The function keeps the fit whose score on the held-out
/// documents is best, but prefers a smaller number of topics unless a larger number is better by more than one standard
/// error.
///
/// # Errors
/// Fails for the same reasons as [`fit`](super::fit()), if there are no held-out documents, and if the temperature
/// policy makes two runs.
///
/// # Panics
/// Panics if there are no jobs.
pub fn fit_best(
    jobs: &[LdaJob<'_>],
    each: u64,
    control: &mut Control<'_>,
) -> Result<Outcome<BestTopics>, LdaError> {
    for job in jobs {
        check(job).map_err(LdaError::Input)?;
        let why = if job.heldout.is_none() {
            "Jensen compares several fits by the score of held-out documents, but the corpus has none: build it with \
             --heldout 0.1, or give one number of topics and one start"
        } else if job.settings.temper.from_both_ends() {
            "a temperature policy with two runs needs a single number of topics and a single start"
        } else {
            continue;
        };
        return Err(LdaError::Input(why.to_owned()));
    }
    let mut several = Several::new(Heldout(jobs), each);
    let outcome = run(&mut several, &identity_of_several(jobs, each), control);
    let outcome = outcome.map_err(LdaError::Run)?;
    Ok(with_output(outcome, |state| {
        let (chosen, best) = state.best.expect("a state has a result");
        let (chosen, job) = (chosen as usize, &jobs[chosen as usize]);
        let iterations = state.ended.get(chosen).map_or(0, |ended| ended.iterations);
        let mut engine = Heldout(jobs).driver(chosen).engine;
        BestTopics {
            fit: finished(job, &mut engine, vec![best], iterations, control.clock),
            chosen,
            ended: state.ended,
        }
    }))
}

#[cfg(test)]
pub(super) mod tests {
    use jensen_math::rng::{Purpose, Stream};
    use jensen_math::simd::Simd;
    use jensen_run::{Budget, Checkpoint, Silent};

    use super::super::{Inference, LdaSettings, Start, fit, planned_iterations};
    use super::*;
    use crate::documents::{Bag, Documents, MemoryDocuments};

    /// Draws documents from five topics with separate words. Each document has two topics.
    pub(crate) fn documents(count: usize, seed: u64) -> MemoryDocuments {
        let mut documents = MemoryDocuments::new(60);
        for d in 0..count {
            let mut stream = Stream::new(seed, Purpose::new("five topics"), 0, d as u64);
            let topics = [stream.below(5), stream.below(5)];
            let mut counts = [0.0; 60];
            for i in 0..50 {
                counts[(12 * topics[i % 2] + stream.below(12)) as usize] += 1.0;
            }
            let mut bag = Bag::new();
            let pairs = (0..).zip(counts).filter(|pair| pair.1 > 0.0);
            pairs.for_each(|(term, count)| bag.push(term, count));
            documents.push(&bag).unwrap();
        }
        documents
    }

    fn jobs<'a>(
        numbers: std::ops::RangeInclusive<usize>,
        seed: u64,
        [train, heldout]: [&'a MemoryDocuments; 2],
    ) -> Vec<LdaJob<'a>> {
        let starts = |topics| (0..STARTS).map(move |restart| (topics, restart));
        let job = |(topics, restart)| LdaJob {
            documents: train,
            heldout: Some(heldout),
            scored: 20,
            start: None,
            settings: LdaSettings {
                inference: Inference::Cvb0,
                start: Start::Documents,
                alpha: Some(0.1),
                eta: Some(0.05),
                batch: 50,
                tau: 16.0,
                passes: 1e9,
                seed,
                restart,
                ..LdaSettings::new(topics)
            },
            simd: Simd::detect(),
            data_hash: String::new(),
        };
        numbers.flat_map(starts).map(job).collect()
    }

    fn each(documents: usize, settings: &LdaSettings) -> u64 {
        let usual = LdaSettings {
            passes: 5.0,
            ..settings.clone()
        };
        let passes = passes_to_compare(documents, &usual);
        planned_iterations(documents, &LdaSettings { passes, ..usual })
    }

    #[test]
    fn the_number_of_topics_in_the_documents_is_found() {
        let (train, heldout) = (documents(500, 1), documents(200, 2));
        let clock = || 0.0;
        for seed in 0..6 {
            let jobs = jobs(3..=7, seed, [&train, &heldout]);
            let mut silent = Silent;
            let mut control = Control::new(Budget::iterations(u64::MAX), &clock, &mut silent);
            let each = each(train.len(), &jobs[0].settings);
            let best = fit_best(&jobs, each, &mut control).unwrap();
            assert_eq!(best.output.unwrap().fit.topics.topics, 5, "seed {seed}");
        }
    }

    #[test]
    fn every_fit_is_the_one_that_it_would_be_alone_and_a_stopped_run_continues() {
        let (train, heldout) = (documents(200, 1), documents(100, 2));
        let jobs = jobs(4..=6, 0, [&train, &heldout]);
        let each = 40;
        let clock = || 0.0;
        let run = |jobs: &[LdaJob<'_>], iterations: u64, resume: Option<&Vec<u8>>| {
            let (mut silent, mut saved) = (Silent, Vec::new());
            let mut control = Control::new(Budget::iterations(iterations), &clock, &mut silent);
            control.store = Some(&mut saved);
            control.resume = resume.map(|bytes| Checkpoint::decode(bytes).unwrap());
            let outcome = fit_best(jobs, each, &mut control).unwrap();
            (outcome.output.unwrap(), saved)
        };
        let (best, _) = run(&jobs, u64::MAX, None);
        assert_eq!(best.ended.len(), jobs.len());
        // Each fit is the one that it would be alone.
        for at in [0, 1, best.chosen] {
            let mut silent = Silent;
            let mut control = Control::new(Budget::iterations(each), &clock, &mut silent);
            let alone = fit(&jobs[at], &mut control).unwrap().output.unwrap();
            let score = alone.completion.unwrap();
            let total = score.log_predictive * score.words as f64;
            let found: f64 = best.ended[at].scores.iter().sum();
            assert!((found / total - 1.0).abs() < 1e-6, "{found} {total}");
            if at == best.chosen {
                assert_eq!(alone.topics, best.fit.topics);
            }
        }
        // A run that was stopped in the fifth fit continues to the same result.
        let (stopped, saved) = run(&jobs, 4 * each + 7, None);
        assert_eq!(stopped.ended.len(), 4);
        let (resumed, _) = run(&jobs, u64::MAX, saved.last());
        assert_eq!(resumed.fit.topics, best.fit.topics);
        assert_eq!(resumed.ended, best.ended);

        let blind: Vec<LdaJob<'_>> = jobs
            .into_iter()
            .map(|job| LdaJob {
                heldout: None,
                ..job
            })
            .collect();
        let mut silent = Silent;
        let mut control = Control::new(Budget::iterations(1), &clock, &mut silent);
        let error = fit_best(&blind, each, &mut control)
            .unwrap_err()
            .to_string();
        assert!(error.contains("--heldout 0.1"), "{error}");
    }
}
