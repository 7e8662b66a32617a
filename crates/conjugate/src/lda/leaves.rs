//! Where the local steps of a batch are made: leaf by leaf, here or elsewhere.
//!
//! A corpus has a fixed number of leaves, which belongs to the corpus and not to the machines. In every step each leaf
//! solves its share of the batch ([`leaf_step`], a pure function of documents, globals and share) and leaves a [`Part`]:
//! statistics, sums, bounds. The parts of all leaves are added up over one binary tree of leaves, so that bits depend on the
//! leaves alone: not on who solved which, in which order they answered, or whether one was asked twice. Whoever drives owns
//! everything else: order of documents, temperatures, global step, trace and checkpoints, held-out scores. [`Leaves`] is
//! the seam: [`LocalLeaves`] solves here, [`leaf_step`] over [`Ask::encode`] is what other implementations have called.

use jensen_run::tree_sum;
use jensen_run::wire::{self, Reader, Writer};

use super::globals::LdaGlobals;
use super::leaf::{Lambda, LeafSolver};
use super::local::Spec;
use super::powers::PowerTable;
use super::settings::Inference;
use crate::documents::Documents;
use crate::engine::{Heat, Measure, Sums};
use crate::temper::InverseTemperatures;

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
    /// The sum over the tree of the parts of all leaves; `shares` has the numbers of each leaf's documents, counted within the
    /// leaf.
    ///
    /// # Errors
    /// A leaf did not answer, with the reason. The step is then as one that never began.
    fn solve(&mut self, ask: &Ask<'_>, shares: &[Vec<usize>]) -> Result<Part, String>;
}

/// All leaves of documents that are at hand.
pub(crate) struct LocalLeaves<'a> {
    documents: &'a dyn Documents,
    solver: LeafSolver,
    starts: Vec<usize>,
}

impl<'a> LocalLeaves<'a> {
    pub fn new(documents: &'a dyn Documents, spec: Spec) -> Self {
        let ends = ends(documents);
        Self {
            documents,
            solver: LeafSolver::new(documents.terms(), spec),
            starts: std::iter::once(0).chain(ends).collect(),
        }
    }

    /// The parts of all leaves, in their order.
    pub fn parts(&mut self, ask: &Ask<'_>, shares: &[Vec<usize>]) -> Vec<Part> {
        let lambda = Lambda::Here(&ask.globals.mass);
        let shares = shares.iter().zip(&self.starts);
        let parts = shares.map(|(share, start)| {
            let numbers: Vec<usize> = share.iter().map(|number| start + number).collect();
            (self.solver).part(
                self.documents,
                ask.globals,
                lambda,
                &numbers,
                ask.heat,
                ask.measure,
            )
        });
        parts.collect()
    }
}

impl Leaves for LocalLeaves<'_> {
    fn solve(&mut self, ask: &Ask<'_>, shares: &[Vec<usize>]) -> Result<Part, String> {
        Ok(sum_of(self.parts(ask, shares), ask.globals.stride))
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

/// The sum over the tree of the parts of leaves, or of blocks of them: blocks of equal size that is a power of two, the last
/// of which may be cut short, are added up as their leaves are.
pub(crate) fn sum_of(parts: Vec<Part>, stride: usize) -> Part {
    tree_sum(parts, |first, second| first.plus(&second, stride)).unwrap_or_default()
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

    /// How many bytes [`encode`](Self::encode) makes.
    #[must_use]
    pub fn size(&self) -> usize {
        wire::size(|out| self.write(out))
    }

    /// The part as bytes, into memory of that [`size`](Self::size).
    pub fn encode(&self, memory: &mut [u8]) {
        wire::fill(memory, |out| self.write(out));
    }

    fn write(&self, out: &mut Writer<'_>) {
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
    /// How many bytes [`encode`](Self::encode) makes.
    #[must_use]
    pub fn size(&self) -> usize {
        wire::size(|out| self.write(out))
    }

    /// What all leaves are asked, as bytes, into memory of that [`size`](Self::size): λ is copied once, to where it is read.
    pub fn encode(&self, memory: &mut [u8]) {
        wire::fill(memory, |out| self.write(out));
    }

    /// The sum of parts of blocks of these leaves, in the order of the blocks.
    ///
    /// # Errors
    /// The bytes are not parts.
    pub fn sum<'b>(&self, blocks: impl Iterator<Item = &'b [u8]>) -> Result<Part, String> {
        let parts: Result<Vec<Part>, String> = blocks.map(Part::decode).collect();
        Ok(sum_of(parts?, self.globals.stride))
    }

    fn write(&self, out: &mut Writer<'_>) {
        let (spec, globals) = (&self.spec, self.globals);
        out.text(spec.simd.name());
        out.counts(&[
            spec.topics as u64,
            globals.terms as u64,
            spec.rule.max_iterations as u64,
            u64::from(spec.collapsed()),
            u64::from(spec.learns),
            u64::from(self.measure.energy),
            u64::from(self.measure.bound),
        ]);
        out.reals(&[spec.rule.tolerance, globals.eta, globals.decay]);
        out.reals(&globals.alpha);
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
                out.reals(&grid.values);
                out.reals(&grid.log_prior);
                out.singles(&table.powers);
                out.singles(&table.total);
            }
        }
        out.singles(&globals.mass);
    }
}

/// How many leaves a block has for so many workers, a power of two: that with which the worker who has most to do has the fewest
/// leaves, and of these the largest, as each block costs a message.
#[must_use]
pub fn block_size(leaves: usize, workers: usize) -> usize {
    let most = |block: usize| leaves.div_ceil(block).div_ceil(workers.max(1)) * block;
    let sizes = (0..usize::BITS).map(|bits| 1usize << bits);
    let sizes: Vec<usize> = sizes.take_while(|size| *size < 2 * leaves).collect();
    let best = sizes.into_iter().rev().min_by_key(|block| most(*block));
    best.unwrap_or(1)
}

/// The work of a block of leaves: the sum of the parts of shares of their documents, of what [`Ask::encode`] made. The same
/// arguments give the same bits anywhere.
///
/// # Errors
/// The bytes are not such, are of another vocabulary, or ask for instructions that this machine lacks.
pub fn block_step(leaves: &[(&dyn Documents, &[usize])], ask: &[u8]) -> Result<Part, String> {
    let asked = Asked::decode(ask)?;
    let globals = &asked.globals;
    let heat = match &asked.heat {
        SentHeat::Uniform(inverse) => Heat::Uniform(*inverse),
        SentHeat::Local {
            grid,
            floor,
            first,
            table,
        } => Heat::Local {
            grid,
            floor: *floor,
            first: *first,
            table,
        },
    };
    let mut solver = LeafSolver::new(globals.terms, asked.spec);
    let mut parts = Vec::with_capacity(leaves.len());
    for &(documents, share) in leaves {
        if documents.terms() != globals.terms {
            return Err("the leaf has another vocabulary than the driver".to_owned());
        }
        if let Some(number) = share.iter().find(|number| **number >= documents.len()) {
            return Err(format!("the leaf has no document {number}"));
        }
        let lambda = Lambda::Sent(asked.lambda);
        parts.push(solver.part(documents, globals, lambda, share, &heat, asked.measure));
    }
    Ok(sum_of(parts, globals.stride))
}

/// An [`Ask`] at the other end.
struct Asked<'a> {
    spec: Spec,
    /// All but λ.
    globals: LdaGlobals,
    lambda: &'a [[u8; 4]],
    heat: SentHeat,
    measure: Measure,
}

enum SentHeat {
    Uniform(f64),
    Local {
        grid: InverseTemperatures,
        floor: f64,
        first: f64,
        table: PowerTable,
    },
}

impl<'a> Asked<'a> {
    fn decode(ask: &'a [u8]) -> Result<Self, String> {
        const DAMAGED: &str = "what the leaf was asked is damaged";
        let mut read = Reader::new(ask);
        let simd = read.text()?.parse().map_err(|error| format!("{error}"))?;
        let [
            topics,
            terms,
            max_iterations,
            collapsed,
            learns,
            energy,
            bound,
        ] = read.counts()?;
        let [tolerance, eta, decay] = read.fixed_reals()?;
        let (alpha, totals) = (read.reals()?, read.reals()?);
        let heat = match read.reals()?[..] {
            [inverse] => SentHeat::Uniform(inverse),
            [floor, first] => SentHeat::Local {
                grid: InverseTemperatures {
                    values: read.reals()?,
                    log_prior: read.reals()?,
                },
                floor,
                first,
                table: PowerTable {
                    powers: read.singles()?,
                    total: read.singles()?,
                },
            },
            _ => return Err(DAMAGED.to_owned()),
        };
        let lambda = read.singles_in_place()?;
        let globals = LdaGlobals::without_rows(alpha, terms as usize, eta, decay, totals);
        let (topics, rows) = (topics as usize, globals.terms.checked_mul(globals.stride));
        if globals.topics != topics || globals.totals.len() != topics || rows != Some(lambda.len())
        {
            return Err(DAMAGED.to_owned());
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
        Ok(Self {
            spec,
            globals,
            lambda,
            heat,
            measure,
        })
    }
}
