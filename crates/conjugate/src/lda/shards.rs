//! The local steps of a batch, computed shard by shard in this process or in other processes.
//!
//! The number of shards depends on the corpus and not on the number of machines. In every step, each shard solves its
//! share of the batch and returns a [`Part`] with statistics, sums and bounds. A part is a pure function of documents,
//! global parameters and the share ([`shard_step`]). The parts are added along a fixed binary tree of shards, so the
//! bits of the sum depend only on the shards. They do not depend on the workers, on the order of the answers, or on
//! repeated requests. Scores of held-out documents need no tree, because each score is a separate number
//! ([`score_step`]). The driver does everything else: the order of documents, temperatures, the global step, the trace
//! and checkpoints. [`Shards`] is the interface, and [`LocalShards`] implements it in this process. Other
//! implementations call [`block_step`] and [`score_step`] on the output of [`Ask::encode`].

use jensen_run::wire::{self, Reader, Writer};
use rayon::prelude::*;

use super::globals::{CHUNK, LdaGlobals};
use super::local::Spec;
use super::powers::PowerTable;
use super::score::{self, Piece, Score, scores};
use super::settings::Inference;
use super::shard::{Lambda, ShardSolver};
use crate::documents::Documents;
use crate::engine::{Heat, Measure, Sums};
use crate::temper::InverseTemperatures;

/// A request that goes to all shards in one step.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    pub(crate) spec: Spec,
    pub(crate) globals: &'a LdaGlobals,
    pub(crate) heat: &'a Heat<'a, PowerTable>,
    pub(crate) measure: Measure,
}

/// The result of one shard for its share of a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    pub(crate) sums: Sums,
    pub(crate) bounds: Vec<f64>,
    pub(crate) inverses: Vec<f64>,
    /// Input for learning α: Σ ψ(γ_k) − ψ(α_k) for each topic, followed by Σ ψ(Σγ) − ψ(Σα).
    pub(crate) excess: Vec<f64>,
    pub(crate) terms: Vec<u32>,
    pub(crate) statistics: Vec<f32>,
}

/// The shards that run the local steps of batches.
pub trait Shards {
    /// Runs the local steps of all shards and returns the sum of their parts over the tree. `shares` contains, for each
    /// shard, the indices of its documents within the shard.
    ///
    /// # Errors
    /// Fails with the reason if a shard does not answer. In that case the step has no effect.
    fn solve(&mut self, ask: &Ask<'_>, shares: &[Vec<usize>]) -> Result<Part, String>;

    /// Takes back a part that is no longer needed, so that its memory can be reused.
    fn done(&mut self, _part: Part) {}

    /// Scores the first `count` held-out documents in order, at the global parameters of `ask`.
    ///
    /// # Errors
    /// Fails for the same reasons as [`solve`](Self::solve).
    fn score(&mut self, ask: &Ask<'_>, seed: u64, count: usize) -> Result<Vec<Score>, String>;
}

pub(crate) struct LocalShards<'a> {
    documents: &'a dyn Documents,
    heldout: Option<&'a dyn Documents>,
    solver: ShardSolver,
    starts: Vec<usize>,
}

impl<'a> LocalShards<'a> {
    pub fn new(
        documents: &'a dyn Documents,
        heldout: Option<&'a dyn Documents>,
        spec: Spec,
    ) -> Self {
        let ends = ends(documents);
        Self {
            documents,
            heldout,
            solver: ShardSolver::new(documents.terms(), spec),
            starts: std::iter::once(0).chain(ends).collect(),
        }
    }

    /// Calls `found` with the part of each shard as soon as the part is ready, in the order of the shards.
    fn each(
        &mut self,
        ask: &Ask<'_>,
        shares: &[Vec<usize>],
        mut found: impl FnMut(Part, &mut Spare),
    ) {
        for (share, start) in shares.iter().zip(&self.starts) {
            let numbers: Vec<usize> = share.iter().map(|number| start + number).collect();
            let lambda = Lambda::Here(&ask.globals.mass);
            let (globals, heat) = (ask.globals, ask.heat);
            let part =
                (self.solver).part(self.documents, globals, lambda, &numbers, heat, ask.measure);
            found(part, &mut self.solver.spare);
        }
    }

    /// Returns the parts of all shards, without adding them.
    #[cfg(test)]
    pub fn parts(&mut self, ask: &Ask<'_>, shares: &[Vec<usize>]) -> Vec<Part> {
        let mut parts = Vec::new();
        self.each(ask, shares, |part, _| parts.push(part));
        parts
    }
}

impl Shards for LocalShards<'_> {
    fn solve(&mut self, ask: &Ask<'_>, shares: &[Vec<usize>]) -> Result<Part, String> {
        let (mut sum, stride) = (Sum::default(), ask.globals.stride);
        self.each(ask, shares, |part, spare| sum.push(part, stride, spare));
        Ok(sum.finish(stride, &mut self.solver.spare))
    }

    fn done(&mut self, part: Part) {
        self.solver.spare.done(part);
    }

    fn score(&mut self, ask: &Ask<'_>, seed: u64, count: usize) -> Result<Vec<Score>, String> {
        let Some(documents) = self.heldout else {
            return Ok(Vec::new());
        };
        Ok(score::here(ask, documents, seed, count))
    }
}

pub(crate) fn ends(documents: &dyn Documents) -> Vec<usize> {
    let mut end = 0;
    let sizes = documents.shards().into_iter();
    sizes
        .map(|size| {
            end += size;
            end
        })
        .collect()
}

/// Divides a batch among the shards. Returns the share of each shard, in the order of the batch. Also returns the
/// documents' positions in the batch, one shard after another.
pub(crate) fn shares(ends: &[usize], batch: &[usize]) -> (Vec<Vec<usize>>, Vec<usize>) {
    let mut shares = vec![Vec::new(); ends.len()];
    let mut positions = vec![Vec::new(); ends.len()];
    for (position, &document) in batch.iter().enumerate() {
        let shard = ends.partition_point(|&end| end <= document);
        let start = if shard == 0 { 0 } else { ends[shard - 1] };
        shares[shard].push(document - start);
        positions[shard].push(position);
    }
    (shares, positions.concat())
}

/// Memory that statistics can reuse. The statistics of a shard are as large as λ, and the system allocates their memory
/// page by page. Reusing the memory does not affect results.
#[derive(Default)]
pub struct Spare(Vec<Vec<f32>>);

impl Spare {
    pub(crate) fn take(&mut self, length: usize) -> Vec<f32> {
        let mut memory = self.0.pop().unwrap_or_default();
        memory.resize(length, 0.0);
        memory
    }

    pub(crate) fn put(&mut self, memory: Vec<f32>) {
        if memory.capacity() > 0 {
            self.0.push(memory);
        }
    }

    /// Takes back a part that is no longer needed, so that its memory can be reused.
    pub fn done(&mut self, part: Part) {
        self.put(part.statistics);
    }
}

/// Adds the parts of shards, or of blocks of shards, along the tree as they arrive in sequence. All blocks have the
/// same size, but the last block may be shorter. The size is a power of two. Adding blocks has the same result as
/// adding their shards one by one. For S parts, at most log₂ S sums are stored at a time.
#[derive(Default)]
pub(crate) struct Sum {
    /// The sums of adjacent parts, each with the height of its node in the tree. The heights are in decreasing order.
    nodes: Vec<(u32, Part)>,
}

impl Sum {
    pub fn push(&mut self, part: Part, stride: usize, spare: &mut Spare) {
        let (mut height, mut sum) = (0, part);
        while let Some((_, before)) = self.nodes.pop_if(|(above, _)| *above == height) {
            sum = before.plus(sum, stride, spare);
            height += 1;
        }
        self.nodes.push((height, sum));
    }

    /// Returns the sum. A part without a neighbour moves up in the tree unchanged.
    pub fn finish(mut self, stride: usize, spare: &mut Spare) -> Part {
        let (_, mut sum) = self.nodes.pop().unwrap_or_default();
        while let Some((_, before)) = self.nodes.pop() {
            sum = before.plus(sum, stride, spare);
        }
        sum
    }
}

impl Part {
    pub(crate) fn plus(mut self, other: Self, stride: usize, spare: &mut Spare) -> Self {
        const NONE: usize = usize::MAX;
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let mut sources = Vec::with_capacity(terms.capacity());
        let (mut i, mut j) = (0, 0);
        while i < self.terms.len() || j < other.terms.len() {
            let mine = self.terms.get(i).copied().unwrap_or(u32::MAX);
            let theirs = other.terms.get(j).copied().unwrap_or(u32::MAX);
            terms.push(mine.min(theirs));
            sources.push((
                if mine <= theirs { i } else { NONE },
                if theirs <= mine { j } else { NONE },
            ));
            i += usize::from(mine <= theirs);
            j += usize::from(theirs <= mine);
        }
        let mut statistics = spare.take(terms.len() * stride);
        let row = |at: usize| at * stride..(at + 1) * stride;
        statistics
            .par_chunks_exact_mut(stride)
            .zip(&sources)
            .with_min_len(CHUNK)
            .for_each(|(sum, &source)| match source {
                (i, NONE) => sum.copy_from_slice(&self.statistics[row(i)]),
                (NONE, j) => sum.copy_from_slice(&other.statistics[row(j)]),
                (i, j) => {
                    let pairs = self.statistics[row(i)]
                        .iter()
                        .zip(&other.statistics[row(j)]);
                    for (sum, (x, y)) in sum.iter_mut().zip(pairs) {
                        *sum = x + y;
                    }
                }
            });
        self.sums.merge(&other.sums);
        self.bounds.extend_from_slice(&other.bounds);
        self.inverses.extend_from_slice(&other.inverses);
        if self.excess.is_empty() {
            self.excess = other.excess;
        } else {
            for (sum, x) in self.excess.iter_mut().zip(&other.excess) {
                *sum += x;
            }
        }
        spare.put(std::mem::replace(&mut self.statistics, statistics));
        spare.put(other.statistics);
        Self { terms, ..self }
    }

    /// Returns the number of bytes that [`encode`](Self::encode) writes.
    #[must_use]
    pub fn size(&self) -> usize {
        wire::size(|out| self.write(out))
    }

    /// Writes the part as bytes to `memory`, which must have this [`size`](Self::size).
    pub fn encode(&self, memory: &mut [u8]) {
        wire::fill(memory, |out| self.write(out));
    }

    fn write(&self, out: &mut Writer<'_>) {
        self.sums.write(out);
        out.reals(&self.bounds);
        out.reals(&self.inverses);
        out.reals(&self.excess);
        out.numbers(&self.terms);
        out.singles(&self.statistics);
    }

    /// Reads a part from bytes that [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// Fails if the bytes are not a valid part.
    pub fn decode(bytes: &[u8], spare: &mut Spare) -> Result<Self, String> {
        let mut read = Reader::new(bytes);
        Ok(Self {
            sums: Sums::read(&mut read)?,
            bounds: read.reals()?,
            inverses: read.reals()?,
            excess: read.reals()?,
            terms: read.numbers()?,
            statistics: {
                let sent = read.singles_in_place()?;
                let mut statistics = spare.take(sent.len());
                for (x, bytes) in statistics.iter_mut().zip(sent) {
                    *x = f32::from_le_bytes(*bytes);
                }
                statistics
            },
        })
    }
}

impl Ask<'_> {
    /// Returns the number of bytes that [`encode`](Self::encode) writes.
    #[must_use]
    pub fn size(&self) -> usize {
        wire::size(|out| self.write(out))
    }

    /// Writes the request to all shards as bytes to `memory`, which must have this [`size`](Self::size). λ is copied
    /// only once.
    pub fn encode(&self, memory: &mut [u8]) {
        wire::fill(memory, |out| self.write(out));
    }

    /// Returns the sum of the parts of blocks of these shards. The parts are in the order of the blocks.
    ///
    /// # Errors
    /// Fails if the bytes are not valid parts.
    pub fn sum<'b>(
        &self,
        blocks: impl Iterator<Item = &'b [u8]>,
        spare: &mut Spare,
    ) -> Result<Part, String> {
        let (mut sum, stride) = (Sum::default(), self.globals.stride);
        for block in blocks {
            sum.push(Part::decode(block, spare)?, stride, spare);
        }
        Ok(sum.finish(stride, spare))
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

/// Returns the number of shards per block for a given number of workers. The result is a power of two that minimises
/// the number of shards of the busiest worker. Among such powers it is the largest, because each block costs a message.
#[must_use]
pub fn block_size(shards: usize, workers: usize) -> usize {
    let most = |block: usize| shards.div_ceil(block).div_ceil(workers.max(1)) * block;
    let sizes = (0..usize::BITS).map(|bits| 1usize << bits);
    let sizes: Vec<usize> = sizes.take_while(|size| *size < 2 * shards).collect();
    let best = sizes.into_iter().rev().min_by_key(|block| most(*block));
    best.unwrap_or(1)
}

/// Runs the local steps of a block of shards, as requested by the output of [`Ask::encode`], and returns the sum of the
/// shards' parts. The same arguments give bitwise identical results on every machine.
///
/// # Errors
/// Fails if the bytes have another format or vocabulary, or if they require instructions that this machine lacks.
pub fn block_step(
    shards: &[(&dyn Documents, &[usize])],
    ask: &[u8],
    memory: &mut BlockMemory,
) -> Result<Part, String> {
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
    let solver = memory.solver(globals.terms, asked.spec);
    let mut sum = Sum::default();
    for &(documents, share) in shards {
        check(globals, documents)?;
        if let Some(number) = share.iter().find(|number| **number >= documents.len()) {
            return Err(format!("the shard has no document {number}"));
        }
        let lambda = Lambda::Sent(asked.lambda);
        let part = solver.part(documents, globals, lambda, share, &heat, asked.measure);
        sum.push(part, globals.stride, &mut solver.spare);
    }
    Ok(sum.finish(globals.stride, &mut solver.spare))
}

/// Memory that [`block_step`] reuses between steps. Reusing it does not affect results.
#[derive(Default)]
pub struct BlockMemory(Option<ShardSolver>);

impl BlockMemory {
    fn solver(&mut self, terms: usize, spec: Spec) -> &mut ShardSolver {
        let kept = self.0.take().filter(|solver| solver.fits(terms, spec));
        self.0
            .insert(kept.unwrap_or_else(|| ShardSolver::new(terms, spec)))
    }

    /// Takes back a part that is no longer needed, so that its memory can be reused.
    pub fn done(&mut self, part: Part) {
        if let Some(solver) = &mut self.0 {
            solver.spare.done(part);
        }
    }
}

/// Returns the scores of the held-out documents in `pieces`, one piece after another, at the global parameters of a
/// request that [`Ask::encode`] wrote.
///
/// # Errors
/// Fails for the same reasons as [`block_step`].
pub fn score_step(pieces: &[Piece<'_>], ask: &[u8], seed: u64) -> Result<Vec<Score>, String> {
    let asked = Asked::decode(ask)?;
    let mut found = Vec::new();
    for piece in pieces {
        check(&asked.globals, piece.documents)?;
        if piece.first + piece.count > piece.documents.len() {
            return Err(format!(
                "the shard has no held-out document {}",
                piece.first + piece.count - 1
            ));
        }
        let lambda = Lambda::Sent(asked.lambda);
        found.extend(scores(&asked.spec, &asked.globals, lambda, seed, piece));
    }
    Ok(found)
}

fn check(globals: &LdaGlobals, documents: &dyn Documents) -> Result<(), String> {
    if documents.terms() == globals.terms {
        Ok(())
    } else {
        Err("the shard has another vocabulary than the driver".to_owned())
    }
}

struct Asked<'a> {
    spec: Spec,
    /// The global parameters, without the rows of λ.
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
        const DAMAGED: &str = "the request to the shard is damaged";
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
