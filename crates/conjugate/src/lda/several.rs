//! Chooses the number of topics by the scores of held-out documents.

use jensen_math::sum::Moments;
use jensen_run::{Control, Identity, Outcome, run};

use super::engine::LdaEngine;
use super::fit::{LdaError, LdaFit, LdaJob, check, driver, finished, identity, with_output};
use super::local::Spec;
use super::shards::LocalShards;
use crate::contest::{Contest, Ended, Several, StateOf};
use crate::driver::Driver;

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

/// Compares fits by their held-out scores. The jobs are in ascending order of the number of topics.
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

    /// A larger number of topics must be better by more than one standard error of the difference, which is estimated
    /// from the differences of the single documents (Breiman, Friedman, Olshen and Stone 1984, 3.4.3). Scores of more
    /// topics than the documents have differ from the best score by little more than noise.
    fn is_better(&self, ended: &[Ended], new: usize, best: usize) -> bool {
        let pairs = ended[new].scores.iter().zip(&ended[best].scores);
        let differences: Vec<f64> = pairs.map(|(new, best)| new - best).collect();
        let moments = Moments::of(&differences);
        moments.mean() > moments.standard_error()
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
        // The iteration at which one fit ends determines the iterations of the next.
        first.settings["each"] = each.into();
    }
    first
}

/// Fits topics with each of these jobs, which differ in the number of topics and list it in ascending order. Each fit
/// takes at most `each` iterations. The function keeps the fit whose score on the held-out documents is best, but
/// prefers a smaller number of topics unless a larger number is better by more than one standard error.
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
            "Jensen chooses the number of topics by the score of held-out documents, but the corpus has none: build it \
             with --heldout 0.1, or give one number of topics"
        } else if job.settings.temper.from_both_ends() {
            "a temperature policy with two runs needs a single number of topics"
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
mod tests {
    use jensen_math::rng::{Purpose, Stream};
    use jensen_math::simd::Simd;
    use jensen_run::{Budget, Checkpoint, Silent};

    use super::super::{Inference, LdaSettings, Start, fit, planned_iterations};
    use super::*;
    use crate::documents::{Bag, Documents, MemoryDocuments};

    /// Draws documents from five topics with separate words. Each document has two topics.
    fn documents(count: usize, seed: u64) -> MemoryDocuments {
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

    #[test]
    fn the_number_of_topics_in_the_documents_is_found() {
        let (train, heldout) = (documents(500, 1), documents(200, 2));
        let jobs: Vec<LdaJob<'_>> = (2..=9)
            .map(|topics| LdaJob {
                documents: &train,
                heldout: Some(&heldout),
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
                    ..LdaSettings::new(topics)
                },
                simd: Simd::detect(),
                data_hash: String::new(),
            })
            .collect();
        let settings = LdaSettings {
            passes: 5.0,
            ..jobs[0].settings.clone()
        };
        let each = planned_iterations(train.len(), &settings);
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
        // From these starts and after five passes, the fit of five topics scores 1.4 ± 0.1 nats less per held-out
        // document than the fit of six, so the rule chooses six.
        let topics = best.fit.topics.topics;
        assert!((5..=6).contains(&topics), "{topics}");
        assert_eq!((best.chosen, best.ended.len()), (topics - 2, 8));
        // Each fit is the one that it would be alone.
        for at in [0, best.chosen] {
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
        // A run that was stopped in the fourth fit continues to the same result.
        let (stopped, saved) = run(&jobs, 3 * each + 7, None);
        assert_eq!(stopped.ended.len(), 3);
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
