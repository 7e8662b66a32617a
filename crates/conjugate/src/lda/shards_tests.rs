//! Tests of sharded work: the tree, the messages, and shards that do not answer.

use jensen_math::simd::Simd;
use jensen_run::{Budget, Control, Record, tree_sum};

use super::local::Spec;
use super::shards::{LocalShards, Sum};
use super::tests::{corpus, settings};
use super::*;
use crate::documents::{Bag, DocumentRange, Documents, MemoryDocuments};
use crate::engine::{Engine, Heat, Measure};
use crate::temper::Temper;

struct Divided {
    documents: MemoryDocuments,
    shards: usize,
}

impl Documents for Divided {
    fn len(&self) -> usize {
        self.documents.len()
    }

    fn terms(&self) -> usize {
        self.documents.terms()
    }

    fn tokens(&self) -> f64 {
        self.documents.tokens()
    }

    fn read(&self, index: usize, bag: &mut Bag) {
        self.documents.read(index, bag);
    }

    fn shards(&self) -> Vec<usize> {
        let (all, count) = (self.len(), self.shards);
        (0..count)
            .map(|shard| all * (shard + 1) / count - all * shard / count)
            .collect()
    }
}

fn sum_of(parts: Vec<Part>, stride: usize) -> Part {
    tree_sum(parts, |first, second| {
        first.plus(second, stride, &mut Spare::default())
    })
    .unwrap_or_default()
}

#[test]
fn a_sum_part_by_part_is_that_over_the_tree() {
    for shards in 1..=11 {
        let documents = Divided {
            documents: corpus(100, 20),
            shards,
        };
        let (made, stride) = parts(&documents, &settings(4));
        let (mut sum, mut spare) = (Sum::default(), Spare::default());
        for part in made.clone() {
            sum.push(part, stride, &mut spare);
        }
        assert_eq!(sum.finish(stride, &mut spare), sum_of(made, stride));
    }
}

fn sent(ask: &Ask<'_>) -> Vec<u8> {
    let mut bytes = vec![0; ask.size()];
    ask.encode(&mut bytes);
    bytes
}

fn answer(part: &Part) -> Vec<u8> {
    let mut bytes = vec![0; part.size()];
    part.encode(&mut bytes);
    bytes
}

/// Computes the parts of blocks of `block` shards. Requests and parts are passed as bytes, as if they were sent to
/// another machine.
fn elsewhere(
    documents: &Divided,
    ask: &Ask<'_>,
    shares: &[Vec<usize>],
    block: usize,
) -> Result<Vec<Part>, String> {
    let mut start = 0;
    let shards: Vec<DocumentRange<'_>> = (documents.shards().into_iter())
        .map(|size| {
            start += size;
            DocumentRange::new(documents, start - size, start)
        })
        .collect();
    let bytes = sent(ask);
    let mut memory = BlockMemory::default();
    let blocks = shards.chunks(block).zip(shares.chunks(block));
    blocks
        .map(|(shards, shares)| {
            let shards: Vec<(&dyn Documents, &[usize])> = (shards.iter().zip(shares))
                .map(|(shard, share)| (shard as &dyn Documents, share.as_slice()))
                .collect();
            // The memory of one block is reused for the next.
            let part = block_step(&shards, &bytes, &mut memory)?;
            let answered = Part::decode(&answer(&part), &mut Spare::default());
            memory.done(part);
            answered
        })
        .collect()
}

fn parts(documents: &Divided, settings: &LdaSettings) -> (Vec<Part>, usize) {
    let engine = LdaEngine::new(documents, None, settings, Simd::detect());
    let globals = engine.start(1);
    let spec = Spec::of(settings, Simd::detect());
    let ask = Ask {
        spec,
        globals: &globals,
        heat: &Heat::Uniform(1.0),
        measure: Measure {
            energy: true,
            bound: true,
        },
    };
    let shares: Vec<Vec<usize>> = documents
        .shards()
        .iter()
        .map(|size| (0..*size).collect())
        .collect();
    let made = LocalShards::new(documents, None, spec).parts(&ask, &shares);
    // Messages give the same result as local memory, for blocks of any power of two.
    for block in [1usize, 2, 4, 8] {
        let sums: Vec<Part> = (made.chunks(block))
            .map(|parts| sum_of(parts.to_vec(), globals.stride))
            .collect();
        assert_eq!(elsewhere(documents, &ask, &shares, block).unwrap(), sums);
    }
    assert!(Part::decode(&answer(&made[0])[..9], &mut Spare::default()).is_err());
    let mut cut = sent(&ask);
    cut.pop();
    assert!(block_step(&[], &cut, &mut BlockMemory::default()).is_err());
    (made, globals.stride)
}

#[test]
fn sums_over_the_tree_are_those_of_any_number_of_workers_and_plain_ones_are_not() {
    let s = settings(4);
    for shards in [1usize, 2, 4, 8] {
        let documents = Divided {
            documents: corpus(300, 20),
            shards,
        };
        let (parts, stride) = parts(&documents, &s);
        let tree = sum_of(parts.clone(), stride);
        assert_eq!(tree.sums.points + tree.sums.skipped, 300);
        // Simulates workers that sum their own shards one after another, and then adds the sums of the workers.
        let plain = |workers: usize| {
            let held = parts.chunks(shards.div_ceil(workers));
            let chain = |parts: &[Part]| {
                let (first, rest) = parts.split_first().unwrap();
                rest.iter().fold(first.clone(), |sum, part| {
                    sum_of(vec![sum, part.clone()], stride)
                })
            };
            chain(&held.map(chain).collect::<Vec<_>>())
        };
        let sums: Vec<Part> = [1, 2, 4, 8].map(plain).to_vec();
        let agree = sums.iter().all(|sum| *sum == sums[0]);
        assert_eq!(agree, shards <= 2, "{shards} shards");
        // The tree does not depend on the workers. Parts from any worker and in any order go to their positions.
        let again = sum_of(parts.clone(), stride);
        assert_eq!(tree, again);
    }
}

#[test]
fn blocks_leave_no_worker_more_than_needed() {
    let sizes = [(16, 2), (16, 3), (16, 16), (16, 40), (5, 2), (4, 1), (1, 4)];
    let sizes = sizes.map(|(shards, workers)| block_size(shards, workers));
    assert_eq!(sizes, [8, 2, 1, 1, 1, 4, 1]);
}

#[test]
fn a_fit_whose_leaves_fail_goes_on_from_its_last_whole_step() {
    struct Failing<'a> {
        inner: LocalShards<'a>,
        left: usize,
    }
    impl Shards for Failing<'_> {
        fn solve(&mut self, ask: &Ask<'_>, shares: &[Vec<usize>]) -> Result<Part, String> {
            self.left = self.left.checked_sub(1).ok_or("gone")?;
            self.inner.solve(ask, shares)
        }

        fn score(&mut self, ask: &Ask<'_>, seed: u64, count: usize) -> Result<Vec<Score>, String> {
            self.left = self.left.checked_sub(1).ok_or("gone")?;
            self.inner.score(ask, seed, count)
        }
    }
    let heldout = corpus(40, 20);
    let documents = Divided {
        documents: corpus(300, 20),
        shards: 4,
    };
    for temper in [
        Temper::None,
        "local=0.5".parse().unwrap(),
        "global=0.5".parse().unwrap(),
    ] {
        let mut s = settings(3);
        s.temper = temper;
        s.evaluations_per_pass = 19.0;
        let job = LdaJob {
            documents: &documents,
            heldout: Some(&heldout),
            scored: 30,
            start: None,
            settings: s.clone(),
            simd: Simd::detect(),
            data_hash: String::new(),
        };
        let clock = || 0.0;
        let control = || Budget::iterations(8);
        let mut records: Vec<Record> = Vec::new();
        let whole = fit(&job, &mut Control::new(control(), &clock, &mut records)).unwrap();
        let whole = whole.output.unwrap();
        let is_scored = |record: &Record| record.fields.contains_key("heldout_log_predictive");
        let scored: Vec<bool> = records.iter().map(is_scored).collect();
        assert!(scored.contains(&true));
        // Shards fail either in a local step or in a score.
        let mut lost_in_scores = 0;
        for left in 0..12 {
            let mut kept: Vec<Vec<u8>> = Vec::new();
            let mut trace: Vec<Record> = Vec::new();
            let mut stopped = Control::new(control(), &clock, &mut trace);
            stopped.store = Some(&mut kept);
            let inner = LocalShards::new(&documents, Some(&heldout), Spec::of(&s, job.simd));
            let lost = fit_on(&job, Box::new(Failing { inner, left }), &mut stopped);
            assert!(matches!(lost, Err(LdaError::Lost(why)) if why == "gone"));
            let checkpoint = jensen_run::Checkpoint::decode(kept.last().unwrap()).unwrap();
            let done = checkpoint.iteration as usize;
            let asked = done + scored[..done].iter().filter(|scored| **scored).count();
            assert!(asked == left || asked == left + 1, "{asked} of {left}");
            lost_in_scores += usize::from(asked == left + 1);
            let mut resumed = Control::new(control(), &clock, &mut trace);
            resumed.resume = Some(checkpoint);
            let resumed = fit(&job, &mut resumed).unwrap().output.unwrap();
            assert_eq!(resumed.topics, whole.topics);
            assert_eq!(resumed.completion, whole.completion);
            assert_eq!(trace, records);
        }
        assert!(lost_in_scores > 0);
    }
}

#[test]
fn collapsed_fits_with_learned_priors_are_the_same_by_shards_elsewhere() {
    /// Shards that receive requests as bytes, as another machine would.
    struct Elsewhere<'a>(&'a Divided, &'a MemoryDocuments);
    impl Shards for Elsewhere<'_> {
        fn solve(&mut self, ask: &Ask<'_>, shares: &[Vec<usize>]) -> Result<Part, String> {
            let parts = elsewhere(self.0, ask, shares, 2)?;
            let bytes: Vec<Vec<u8>> = parts.iter().map(answer).collect();
            ask.sum(bytes.iter().map(Vec::as_slice), &mut Spare::default())
        }

        fn score(&mut self, ask: &Ask<'_>, seed: u64, count: usize) -> Result<Vec<Score>, String> {
            let bytes = sent(ask);
            let mut found = Vec::new();
            for first in (0..count).step_by(7) {
                let piece = |first: usize, count: usize| Piece {
                    documents: self.1,
                    first,
                    count,
                    number: first as u64,
                };
                let size = 7.min(count - first);
                let pieces = [
                    piece(first, size / 2),
                    piece(first + size / 2, size - size / 2),
                ];
                found.extend(score_step(&pieces, &bytes, seed)?);
                assert!(score_step(&[piece(count, 1)], &bytes, seed).is_err());
            }
            Ok(found)
        }
    }
    let heldout = corpus(40, 20);
    let documents = Divided {
        documents: corpus(300, 20),
        shards: 4,
    };
    for learn_alpha in [LearnAlpha::Asymmetric, LearnAlpha::Hdp] {
        let s = LdaSettings {
            inference: Inference::Cvb0,
            start: Start::Documents,
            learn_alpha,
            learn_eta: true,
            passes: 2.0,
            evaluations_per_pass: 2.0,
            ..settings(3)
        };
        let job = LdaJob {
            documents: &documents,
            heldout: Some(&heldout),
            scored: 40,
            start: None,
            settings: s,
            simd: Simd::detect(),
            data_hash: String::new(),
        };
        let clock = || 0.0;
        let budget = || Budget::iterations(u64::MAX);
        let (mut trace_here, mut trace_there): (Vec<Record>, Vec<Record>) = Default::default();
        let mut control = Control::new(budget(), &clock, &mut trace_here);
        let here = fit(&job, &mut control).unwrap().output.unwrap();
        let shards = Box::new(Elsewhere(&documents, &heldout));
        let mut control = Control::new(budget(), &clock, &mut trace_there);
        let there = fit_on(&job, shards, &mut control).unwrap().output.unwrap();
        assert_eq!(trace_here, trace_there);
        let scored = trace_here.last().unwrap().fields["heldout_log_predictive"].as_f64();
        let whole = there.completion.unwrap();
        assert!((scored.unwrap() - whole.log_predictive).abs() < 1e-6);
        assert_eq!(here.completion, Some(whole));
        assert_eq!(
            whole,
            completion(&there.topics, &heldout, job.settings.seed, job.simd)
        );
        assert_eq!((here.topics, here.elbo), (there.topics.clone(), there.elbo));
        assert!(there.topics.alpha[0] != there.topics.alpha[1]);
    }
}
