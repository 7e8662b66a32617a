//! Where the local steps of a batch are made: leaf by leaf, here or elsewhere.
//!
//! A corpus has a fixed number of leaves, which belongs to the corpus and not to the machines. In every step each leaf
//! solves its share of the batch ([`leaf_step`], a pure function of documents, globals and share) and leaves a [`Part`]:
//! statistics, sums, bounds. The parts of all leaves are added up over one binary tree of leaves, so that bits depend on the
//! leaves alone: not on who solved which, in which order they answered, or whether one was asked twice. Whoever drives owns
//! everything else: order of documents, temperatures, global step, trace and checkpoints, held-out scores. [`Leaves`] is
//! the seam: [`LocalLeaves`] solves here, [`leaf_step`] over [`Ask::encode`] is what other implementations have called.

use jensen_run::tree_sum;
use jensen_run::wire::{Reader, Writer};

use super::globals::LdaGlobals;
use super::leaf::LeafSolver;
use super::local::Spec;
use super::powers::PowerTable;
use super::settings::Inference;
use crate::documents::Documents;
use crate::engine::{Heat, Measure, Sums};

/// What all leaves are asked in a step.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    pub(crate) spec: Spec,
    pub(crate) globals: &'a LdaGlobals,
    pub(crate) heat: &'a Heat<'a, PowerTable>,
    pub(crate) measure: Measure,
}

/// What a leaf found in its share of a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    pub(crate) sums: Sums,
    /// The documents' bounds, where they were asked for.
    pub(crate) bounds: Vec<f64>,
    /// Σ ψ(γ_k) − ψ(α_k) for each topic, and after them Σ ψ(Σγ) − ψ(Σα), where α is learned.
    pub(crate) excess: Vec<f64>,
    /// Words of the share, ascending.
    pub(crate) terms: Vec<u32>,
    /// A row of expected counts for each.
    pub(crate) statistics: Vec<f32>,
}

/// Whoever makes the local steps of batches.
pub trait Leaves {
    /// The parts of all leaves, in their order; `shares` has the numbers of each leaf's documents, counted within the leaf.
    ///
    /// # Errors
    /// A leaf did not answer, with the reason. The step is then as one that never began.
    fn solve(&mut self, ask: &Ask<'_>, shares: &[Vec<usize>]) -> Result<Vec<Part>, String>;
}

/// All leaves of documents that are at hand.
pub(crate) struct LocalLeaves<'a> {
    solver: LeafSolver<'a>,
    starts: Vec<usize>,
}

impl<'a> LocalLeaves<'a> {
    pub fn new(documents: &'a dyn Documents, spec: Spec) -> Self {
        let ends = ends(documents);
        Self {
            solver: LeafSolver::new(documents, spec),
            starts: std::iter::once(0).chain(ends).collect(),
        }
    }
}

impl Leaves for LocalLeaves<'_> {
    fn solve(&mut self, ask: &Ask<'_>, shares: &[Vec<usize>]) -> Result<Vec<Part>, String> {
        let shares = shares.iter().zip(&self.starts);
        let parts = shares.map(|(share, start)| {
            if share.is_empty() {
                return Part::default();
            }
            let numbers: Vec<usize> = share.iter().map(|number| start + number).collect();
            self.solver
                .solve(ask.globals, &numbers, ask.heat, ask.measure)
        });
        Ok(parts.collect())
    }
}

/// Where each leaf of documents ends.
pub(crate) fn ends(documents: &dyn Documents) -> Vec<usize> {
    let mut end = 0;
    let sizes = documents.leaves().into_iter();
    sizes
        .map(|size| {
            end += size;
            end
        })
        .collect()
}

/// The shares of a batch by leaf, in the order of the batch, and the place in the batch of each document, leaf after leaf.
pub(crate) fn shares(ends: &[usize], batch: &[usize]) -> (Vec<Vec<usize>>, Vec<usize>) {
    let mut shares = vec![Vec::new(); ends.len()];
    let mut places = vec![Vec::new(); ends.len()];
    for (place, &document) in batch.iter().enumerate() {
        let leaf = ends.partition_point(|&end| end <= document);
        let start = if leaf == 0 { 0 } else { ends[leaf - 1] };
        shares[leaf].push(document - start);
        places[leaf].push(place);
    }
    (shares, places.concat())
}

/// The sum of the parts of all leaves.
pub(crate) fn sum_of(parts: Vec<Part>, stride: usize) -> Option<Part> {
    tree_sum(parts, |first, second| first.plus(&second, stride))
}

impl Part {
    /// The sum of two parts: words of either.
    fn plus(mut self, other: &Self, stride: usize) -> Self {
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let mut statistics = Vec::with_capacity(self.statistics.len() + other.statistics.len());
        let row = |at: usize| at * stride..(at + 1) * stride;
        let (mut i, mut j) = (0, 0);
        while i < self.terms.len() || j < other.terms.len() {
            let mine = self.terms.get(i).copied().unwrap_or(u32::MAX);
            let theirs = other.terms.get(j).copied().unwrap_or(u32::MAX);
            terms.push(mine.min(theirs));
            let start = statistics.len();
            if mine <= theirs {
                statistics.extend_from_slice(&self.statistics[row(i)]);
                i += 1;
            }
            if theirs <= mine {
                let added = &other.statistics[row(j)];
                if theirs == mine {
                    for (sum, x) in statistics[start..].iter_mut().zip(added) {
                        *sum += x;
                    }
                } else {
                    statistics.extend_from_slice(added);
                }
                j += 1;
            }
        }
        self.sums.merge(&other.sums);
        self.bounds.extend_from_slice(&other.bounds);
        if self.excess.is_empty() {
            self.excess.clone_from(&other.excess);
        } else {
            for (sum, x) in self.excess.iter_mut().zip(&other.excess) {
                *sum += x;
            }
        }
        Self {
            terms,
            statistics,
            ..self
        }
    }

    /// The part as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        let sums = &self.sums;
        out.counts(&[
            sums.points as u64,
            sums.skipped as u64,
            sums.unconverged as u64,
            sums.sweeps,
        ]);
        out.reals(&[sums.size, sums.energy, sums.bound, sums.inverse]);
        out.reals(&self.bounds);
        out.reals(&self.excess);
        out.numbers(&self.terms);
        out.singles(&self.statistics);
        out.done()
    }

    /// Reads bytes that [`encode`](Self::encode) made.
    ///
    /// # Errors
    /// They are not such.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let mut read = Reader::new(bytes);
        let [points, skipped, unconverged, sweeps] = read.counts()?;
        let [size, energy, bound, inverse] = read.fixed_reals()?;
        Ok(Self {
            sums: Sums {
                points: points as usize,
                skipped: skipped as usize,
                size,
                energy,
                bound,
                inverse,
                unconverged: unconverged as usize,
                sweeps,
            },
            bounds: read.reals()?,
            excess: read.reals()?,
            terms: read.numbers()?,
            statistics: read.singles()?,
        })
    }
}

impl Ask<'_> {
    /// What all leaves are asked, as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        let (spec, globals) = (&self.spec, self.globals);
        out.text(spec.simd.name());
        out.counts(&[
            spec.topics as u64,
            spec.rule.max_iterations as u64,
            u64::from(spec.collapsed()),
            u64::from(spec.learns),
            u64::from(self.measure.energy),
            u64::from(self.measure.bound),
        ]);
        out.reals(&[spec.rule.tolerance, globals.eta, globals.decay]);
        out.reals(&globals.alpha);
        out.singles(&globals.mass);
        out.reals(&globals.totals);
        match *self.heat {
            Heat::Uniform(inverse) => out.reals(&[inverse]),
            Heat::Local {
                grid,
                floor,
                first,
                table,
            } => {
                out.reals(&[floor, first]);
                out.reals(grid);
                out.singles(&table.powers);
                out.singles(&table.total);
            }
        }
        out.done()
    }
}

/// The work of a leaf: the part of a share of its documents, of what [`Ask::encode`] made. The same arguments give the same
/// bits anywhere.
///
/// # Errors
/// The bytes are not such, are of another vocabulary, or ask for instructions that this machine lacks.
pub fn leaf_step(documents: &dyn Documents, ask: &[u8], share: &[usize]) -> Result<Part, String> {
    let mut read = Reader::new(ask);
    let simd = read.text()?.parse().map_err(|error| format!("{error}"))?;
    let [topics, max_iterations, collapsed, learns, energy, bound] = read.counts()?;
    let [tolerance, eta, decay] = read.fixed_reals()?;
    let alpha = read.reals()?;
    let topics = topics as usize;
    let terms = documents.terms();
    let globals = LdaGlobals::of_rows(alpha, terms, eta, decay, read.singles()?, read.reals()?)
        .filter(|globals| globals.topics == topics)
        .ok_or("the leaf has another vocabulary than the driver")?;
    let (table, grid);
    let heat = match read.reals()?[..] {
        [inverse] => Heat::Uniform(inverse),
        [floor, first] => {
            grid = read.reals()?;
            table = PowerTable {
                powers: read.singles()?,
                total: read.singles()?,
            };
            Heat::Local {
                grid: &grid,
                floor,
                first,
                table: &table,
            }
        }
        _ => return Err("what the leaf was asked is damaged".to_owned()),
    };
    if let Some(number) = share.iter().find(|number| **number >= documents.len()) {
        return Err(format!("the leaf has no document {number}"));
    }
    let spec = Spec {
        simd,
        topics,
        inference: if collapsed > 0 {
            Inference::Cvb0
        } else {
            Inference::MeanField
        },
        learns: learns > 0,
        rule: super::LocalRule {
            tolerance,
            max_iterations: max_iterations as usize,
        },
    };
    let measure = Measure {
        energy: energy > 0,
        bound: bound > 0,
    };
    Ok(LeafSolver::new(documents, spec).solve(&globals, share, &heat, measure))
}
