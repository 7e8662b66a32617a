//! Work by leaves: the tree, what travels, and leaves that do not answer.

use jensen_math::simd::Simd;
use jensen_run::{Budget, Control};

use super::leaves::{LocalLeaves, sum_of};
use super::local::Spec;
use super::tests::{corpus, settings};
use super::*;
use crate::documents::{Bag, DocumentRange, Documents, MemoryDocuments};
use crate::engine::{Engine, Heat, Measure};
use crate::temper::Temper;

/// Documents in so many leaves.
struct Divided {
    documents: MemoryDocuments,
    leaves: usize,
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

    fn leaves(&self) -> Vec<usize> {
        let (all, count) = (self.len(), self.leaves);
        (0..count)
            .map(|leaf| all * (leaf + 1) / count - all * leaf / count)
            .collect()
    }
}

/// What leaves elsewhere are asked.
fn sent(ask: &Ask<'_>) -> Vec<u8> {
    let mut bytes = vec![0; ask.size()];
    ask.encode(&mut bytes);
    bytes
}

/// A part on its way back.
fn answer(part: &Part) -> Vec<u8> {
    let mut bytes = vec![0; part.size()];
    part.encode(&mut bytes);
    bytes
}

/// The parts of blocks of so many leaves, as bytes to and from another machine.
fn elsewhere(
    documents: &Divided,
    ask: &Ask<'_>,
    shares: &[Vec<usize>],
    block: usize,
) -> Result<Vec<Part>, String> {
    let mut start = 0;
    let leaves: Vec<DocumentRange<'_>> = (documents.leaves().into_iter())
        .map(|size| {
            start += size;
            DocumentRange::new(documents, start - size, start)
        })
        .collect();
    let bytes = sent(ask);
    let blocks = leaves.chunks(block).zip(shares.chunks(block));
    blocks
        .map(|(leaves, shares)| {
            let leaves: Vec<(&dyn Documents, &[usize])> = (leaves.iter().zip(shares))
                .map(|(leaf, share)| (leaf as &dyn Documents, share.as_slice()))
                .collect();
            Part::decode(&answer(&block_step(&leaves, &bytes)?))
        })
        .collect()
}

/// The parts of a batch of all documents, of each leaf.
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
        .leaves()
        .iter()
        .map(|size| (0..*size).collect())
        .collect();
    let made = LocalLeaves::new(documents, spec).parts(&ask, &shares);
    // What travels is what stays, of blocks of any size that is a power of two.
    for block in [1usize, 2, 4, 8] {
        let sums: Vec<Part> = (made.chunks(block))
            .map(|parts| sum_of(parts.to_vec(), globals.stride))
            .collect();
        assert_eq!(elsewhere(documents, &ask, &shares, block).unwrap(), sums);
    }
    assert!(Part::decode(&answer(&made[0])[..9]).is_err());
    let mut cut = sent(&ask);
    cut.pop();
    assert!(block_step(&[], &cut).is_err());
    (made, globals.stride)
}

#[test]
fn sums_over_the_tree_are_those_of_any_number_of_workers_and_plain_ones_are_not() {
    let s = settings(4);
    for leaves in [1usize, 2, 4, 8] {
        let documents = Divided {
            documents: corpus(300, 20),
            leaves,
        };
        let (parts, stride) = parts(&documents, &s);
        let tree = sum_of(parts.clone(), stride);
        assert_eq!(tree.sums.points + tree.sums.skipped, 300);
        // Workers that add up the leaves that they hold, one after the other, and their sums likewise.
        let plain = |workers: usize| {
            let held = parts.chunks(leaves.div_ceil(workers));
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
        assert_eq!(agree, leaves <= 2, "{leaves} leaves");
        // The tree has no workers in it: whoever made the parts, and in whatever order, they are put in their places.
        let again = sum_of(parts.clone(), stride);
        assert_eq!(tree, again);
    }
}

#[test]
fn blocks_leave_no_worker_more_than_needed() {
    let sizes = [(16, 2), (16, 3), (16, 16), (16, 40), (5, 2), (4, 1), (1, 4)];
    let sizes = sizes.map(|(leaves, workers)| block_size(leaves, workers));
    assert_eq!(sizes, [8, 2, 1, 1, 1, 4, 1]);
}

#[test]
fn a_fit_whose_leaves_fail_goes_on_from_its_last_whole_step() {
    struct Failing<'a> {
        inner: LocalLeaves<'a>,
        left: usize,
    }
    impl Leaves for Failing<'_> {
        fn solve(&mut self, ask: &Ask<'_>, shares: &[Vec<usize>]) -> Result<Part, String> {
            self.left = self.left.checked_sub(1).ok_or("gone")?;
            self.inner.solve(ask, shares)
        }
    }
    let documents = Divided {
        documents: corpus(300, 20),
        leaves: 4,
    };
    for temper in [
        Temper::None,
        "local=0.5".parse().unwrap(),
        "global=0.5".parse().unwrap(),
    ] {
        let mut s = settings(3);
        s.temper = temper;
        let job = LdaJob {
            documents: &documents,
            heldout: None,
            start: None,
            settings: s.clone(),
            simd: Simd::detect(),
            data_hash: String::new(),
        };
        let clock = || 0.0;
        let mut silent = jensen_run::Silent;
        let control = || Budget::iterations(8);
        let whole = fit(&job, &mut Control::new(control(), &clock, &mut silent)).unwrap();
        let mut kept: Vec<Vec<u8>> = Vec::new();
        let mut stopped = Control::new(control(), &clock, &mut silent);
        stopped.store = Some(&mut kept);
        let inner = LocalLeaves::new(&documents, Spec::of(&s, job.simd));
        let lost = fit_on(&job, Box::new(Failing { inner, left: 5 }), &mut stopped);
        assert!(matches!(lost, Err(LdaError::Lost(why)) if why == "gone"));
        let checkpoint = jensen_run::Checkpoint::decode(kept.last().unwrap()).unwrap();
        assert_eq!(checkpoint.iteration, 5);
        let mut resumed = Control::new(control(), &clock, &mut silent);
        resumed.resume = Some(checkpoint);
        let resumed = fit(&job, &mut resumed).unwrap().output.unwrap();
        assert_eq!(resumed.topics, whole.output.unwrap().topics);
    }
}

#[test]
fn collapsed_fits_with_learned_priors_are_the_same_by_leaves_elsewhere() {
    /// Asks as bytes, as another machine would get them.
    struct Elsewhere<'a>(&'a Divided);
    impl Leaves for Elsewhere<'_> {
        fn solve(&mut self, ask: &Ask<'_>, shares: &[Vec<usize>]) -> Result<Part, String> {
            let parts = elsewhere(self.0, ask, shares, 2)?;
            let bytes: Vec<Vec<u8>> = parts.iter().map(answer).collect();
            ask.sum(bytes.iter().map(Vec::as_slice))
        }
    }
    let documents = Divided {
        documents: corpus(300, 20),
        leaves: 4,
    };
    let s = LdaSettings {
        inference: Inference::Cvb0,
        start: Start::Documents,
        learn_alpha: LearnAlpha::Asymmetric,
        learn_eta: true,
        passes: 2.0,
        ..settings(3)
    };
    let job = LdaJob {
        documents: &documents,
        heldout: None,
        start: None,
        settings: s,
        simd: Simd::detect(),
        data_hash: String::new(),
    };
    let clock = || 0.0;
    let mut silent = jensen_run::Silent;
    let budget = || Budget::iterations(u64::MAX);
    let here = fit(&job, &mut Control::new(budget(), &clock, &mut silent)).unwrap();
    let leaves = Box::new(Elsewhere(&documents));
    let there = fit_on(
        &job,
        leaves,
        &mut Control::new(budget(), &clock, &mut silent),
    )
    .unwrap();
    let (here, there) = (here.output.unwrap(), there.output.unwrap());
    assert_eq!((here.topics, here.elbo), (there.topics.clone(), there.elbo));
    assert!(there.topics.alpha[0] != there.topics.alpha[1]);
}
