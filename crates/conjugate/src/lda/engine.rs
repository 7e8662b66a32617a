//! Latent Dirichlet allocation as an engine: words of a batch, local steps by document, statistics by word.
//!
//! Every batch goes through four rounds, each parallel with a fixed division of the work: documents are read; the rows
//! exp(τ(E log β − m)) of the batch's words are made (m_v is the largest over topics; a factor common to all topics
//! cancels from responsibilities, and without it rare words would underflow); documents are solved and leave their
//! expected counts; the expected counts are added up word by word, in the order of the documents.

use std::sync::OnceLock;

use jensen_math::simd::Simd;
use jensen_math::special;
use jensen_math::vmath::slices;
use jensen_run::Record;
use rayon::prelude::*;

use super::globals::{CHUNK, LdaGlobals};
use super::kernel;
use super::kernel::WIDTH;
use super::local::{Found, LocalHeat, Rows, Solver, Spec, Want};
use super::powers::{Grid, Knots, PowerTable, gamma_ratios, power_table};
use super::settings::LdaSettings;
use super::{partition, predict};
use crate::documents::{Bag, Documents};
use crate::engine::{Engine, Heat, Measure, Partition, Sums};

/// Number of pieces in which the documents of a batch are solved.
const PIECES: usize = 16;

/// A document of the batch with what its local step left.
#[derive(Default)]
struct Slot {
    bag: Bag,
    slots: Vec<u32>,
    /// Weighed expected counts, rows of `stride`, of a document with a temperature of its own.
    expected: Vec<f32>,
    /// Of the others, a factor a word and a factor a column: expected counts are their products with the batch's rows.
    weights: Vec<f32>,
    t: Vec<f32>,
    active: Vec<u32>,
    stride: usize,
    found: Found,
}

/// Latent Dirichlet allocation over documents.
pub struct LdaEngine<'a> {
    documents: &'a dyn Documents,
    heldout: Option<&'a dyn Documents>,
    settings: LdaSettings,
    spec: Spec,
    batch: Vec<Slot>,
    solvers: Vec<Solver>,
    /// Slot of every term in the present batch, valid where `stamps` holds the number of the batch.
    slots: Vec<u32>,
    stamps: Vec<u64>,
    stamp: u64,
    terms: Vec<u32>,
    /// Rows for the local steps, then statistics of the same words.
    rows: Vec<f32>,
    /// E log β − m of the batch's words, where the energy needs them.
    logs: Vec<f32>,
    maxima: Vec<f32>,
    statistics: Vec<f32>,
    /// Where each word of the batch occurs: (document, position), ordered by word.
    occurrences: Vec<(u32, u32)>,
    starts: Vec<u32>,
    psi: Vec<f64>,
    psi32: Vec<f32>,
    /// For local temperatures.
    knots: OnceLock<Knots>,
    grid: Grid,
}

impl<'a> LdaEngine<'a> {
    /// An engine over documents, with others to score by.
    pub fn new(
        documents: &'a dyn Documents,
        heldout: Option<&'a dyn Documents>,
        settings: &LdaSettings,
        simd: Simd,
    ) -> Self {
        let terms = documents.terms();
        Self {
            documents,
            heldout,
            spec: Spec {
                simd,
                topics: settings.topics,
                alpha: settings.alpha(),
                rule: settings.local,
            },
            settings: settings.clone(),
            batch: Vec::new(),
            solvers: vec![Solver::default(); PIECES],
            slots: vec![0; terms],
            stamps: vec![0; terms],
            stamp: 0,
            terms: Vec::new(),
            rows: Vec::new(),
            logs: Vec::new(),
            maxima: Vec::new(),
            statistics: Vec::new(),
            occurrences: Vec::new(),
            starts: Vec::new(),
            psi: Vec::new(),
            psi32: Vec::new(),
            knots: OnceLock::new(),
            grid: Grid::new(&[]),
        }
    }

    /// The bounds of the documents of the last batch, of `n` documents; 0 for those without words.
    pub(crate) fn bounds(&self, n: usize) -> impl Iterator<Item = f64> + '_ {
        self.batch[..n].iter().map(|document| document.found.bound)
    }

    /// Reads the documents and lists their words.
    fn gather(&mut self, batch: &[usize]) {
        if self.batch.len() < batch.len() {
            self.batch.resize_with(batch.len(), Slot::default);
        }
        let documents = self.documents;
        self.batch[..batch.len()]
            .par_iter_mut()
            .zip(batch)
            .for_each(|(slot, &index)| documents.read(index, &mut slot.bag));
        self.stamp += 1;
        self.terms.clear();
        for slot in &self.batch[..batch.len()] {
            for &term in &slot.bag.terms {
                let stamp = &mut self.stamps[term as usize];
                if *stamp != self.stamp {
                    *stamp = self.stamp;
                    self.terms.push(term);
                }
            }
        }
        self.terms.sort_unstable();
        for (slot, &term) in self.terms.iter().enumerate() {
            self.slots[term as usize] = slot as u32;
        }
        self.starts.clear();
        self.starts.resize(self.terms.len() + 1, 0);
        for document in &mut self.batch[..batch.len()] {
            document.slots.clear();
            for &term in &document.bag.terms {
                let slot = self.slots[term as usize];
                document.slots.push(slot);
                self.starts[slot as usize + 1] += 1;
            }
        }
        for i in 1..self.starts.len() {
            self.starts[i] += self.starts[i - 1];
        }
        let mut next = self.starts.clone();
        self.occurrences
            .resize(*self.starts.last().unwrap_or(&0) as usize, (0, 0));
        for (d, document) in self.batch[..batch.len()].iter().enumerate() {
            for (position, &slot) in document.slots.iter().enumerate() {
                let at = &mut next[slot as usize];
                self.occurrences[*at as usize] = (d as u32, position as u32);
                *at += 1;
            }
        }
    }

    /// Makes the rows `exp(power (Elogβ − m))` of the batch's words, and keeps their logarithms if asked to.
    fn prepare(&mut self, globals: &LdaGlobals, power: f64, keep: bool) {
        totals_psi(globals, self.spec.simd, &mut self.psi, &mut self.psi32);
        let stride = globals.stride;
        let simd = self.spec.simd;
        let words = self.terms.len();
        self.rows.resize(words * stride, 0.0);
        self.maxima.resize(words, 0.0);
        let (scale, eta) = (globals.decay as f32, globals.eta as f32);
        let (psi, terms) = (&self.psi32, &self.terms);
        let source = |slot: usize| {
            let term = terms[slot] as usize;
            &globals.mass[term * stride..(term + 1) * stride]
        };
        let rows = self.rows.par_chunks_exact_mut(stride).zip(&mut self.maxima);
        let power = power as f32;
        if keep {
            self.logs.resize(words * stride, 0.0);
            rows.zip(self.logs.par_chunks_exact_mut(stride))
                .enumerate()
                .with_min_len(CHUNK)
                .for_each(|(slot, ((row, m), logs))| {
                    *m = kernel::log_row(simd, source(slot), scale, eta, psi, logs);
                    kernel::exp_scaled(simd, logs, power, row);
                });
        } else {
            rows.enumerate()
                .with_min_len(CHUNK)
                .for_each(|(slot, (row, m))| {
                    *m = kernel::log_row(simd, source(slot), scale, eta, psi, row);
                    kernel::exp_in_place(simd, power, row);
                });
        }
    }

    /// Σ `E_q[log p(w | z, β)]` over the tokens of the batch, from its statistics and the logarithms that were kept.
    fn word_energy(&self, stride: usize, inverse: f64) -> f64 {
        let simd = self.spec.simd;
        let rows = self.statistics.chunks_exact(stride);
        rows.zip(self.logs.chunks_exact(stride))
            .zip(&self.maxima)
            .map(|((s, logs), &m)| f64::from(kernel::weighed_sum(simd, s, logs, m)))
            .sum::<f64>()
            / inverse
    }

    /// Adds the documents' expected counts up, word by word; with one temperature for all, by their factors.
    fn collect(&mut self, stride: usize, factors: bool) {
        let (simd, rows) = (self.spec.simd, &self.rows);
        let (batch, starts, occurrences) = (&self.batch, &self.starts, &self.occurrences);
        self.statistics.resize(self.terms.len() * stride, 0.0);
        self.statistics
            .par_chunks_exact_mut(stride)
            .enumerate()
            .with_min_len(CHUNK)
            .for_each(|(slot, sum)| {
                sum.fill(0.0);
                let range = starts[slot] as usize..starts[slot + 1] as usize;
                for &(document, position) in &occurrences[range] {
                    let document = &batch[document as usize];
                    let position = position as usize;
                    let (weight, row) = if factors {
                        (document.weights[position], document.t.as_slice())
                    } else {
                        let start = position * document.stride;
                        (1.0, &document.expected[start..start + document.stride])
                    };
                    if document.active.is_empty() {
                        kernel::add_scaled(simd, weight, row, sum);
                    } else {
                        for (&k, x) in document.active.iter().zip(row) {
                            sum[k as usize] += weight * x;
                        }
                    }
                }
                if factors {
                    kernel::multiply(simd, &rows[slot * stride..(slot + 1) * stride], sum);
                }
            });
    }
}

/// ψ(Σ_v λ_kv), in single precision with a huge number in the padding.
pub(crate) fn totals_psi(
    globals: &LdaGlobals,
    simd: Simd,
    scratch: &mut Vec<f64>,
    out: &mut Vec<f32>,
) {
    let totals: Vec<f64> = globals.lambda_totals().collect();
    scratch.resize(totals.len(), 0.0);
    slices::digamma(simd, &totals, scratch);
    out.clear();
    out.extend(scratch.iter().map(|&x| x as f32));
    out.resize(globals.stride, 1e30);
}

impl Engine for LdaEngine<'_> {
    type Globals = LdaGlobals;
    type Table = PowerTable;

    fn points(&self) -> usize {
        self.documents.len()
    }

    fn block(&self) -> usize {
        self.documents.block()
    }

    fn start(&self, seed: u64) -> LdaGlobals {
        let terms = self.documents.terms();
        LdaGlobals::random(
            self.settings.topics,
            terms,
            self.settings.eta(),
            seed,
            self.spec.simd,
        )
    }

    fn local_steps(
        &mut self,
        globals: &mut LdaGlobals,
        batch: &[usize],
        heat: &Heat<'_, PowerTable>,
        measure: Measure,
    ) -> Sums {
        self.gather(batch);
        let first = match heat {
            Heat::Uniform(inverse) => *inverse,
            Heat::Local { first, .. } => *first,
        };
        let uniform = matches!(heat, Heat::Uniform(_));
        let by_words = measure.energy && uniform;
        self.prepare(globals, first, by_words);
        let stride = globals.stride;
        let spec = self.spec;
        let rows = Rows {
            values: &self.rows,
            maxima: &self.maxima,
        };
        let want = Want {
            energy: measure.energy,
            bound: measure.bound,
        };
        let mut base = [0.0; WIDTH];
        if let Heat::Local { grid, .. } = heat {
            gamma_ratios(spec.simd, spec.alpha as f32, &mut base);
            if !self.grid.is_of(grid) {
                self.grid = Grid::new(grid);
            }
        }
        let local = match heat {
            Heat::Uniform(_) => None,
            Heat::Local { floor, table, .. } => Some(LocalHeat {
                grid: &self.grid,
                floor: *floor,
                table,
                knots: self.knots.get_or_init(|| Knots::new(spec.simd)),
                base: &base,
            }),
        };
        let documents = &mut self.batch[..batch.len()];
        let size = batch.len().div_ceil(PIECES).max(1);
        documents
            .par_chunks_mut(size)
            .zip(&mut self.solvers)
            .for_each(|(documents, solver)| {
                for document in documents {
                    let Slot {
                        bag,
                        slots,
                        expected,
                        ..
                    } = document;
                    if bag.is_empty() {
                        document.found = Found::default();
                        continue;
                    }
                    let counts = &bag.counts;
                    document.found = match local {
                        None => solver.solve(&spec, rows, slots, counts, first, want),
                        Some(heat) => solver
                            .solve_local(&spec, first, rows, heat, slots, counts, want, expected),
                    };
                    if uniform {
                        document.weights.clone_from(&solver.weights);
                        document.t.clear();
                        document.t.extend_from_slice(&solver.t[..solver.stride]);
                    }
                    document.stride = solver.stride;
                    document.active.clone_from(&solver.active);
                }
            });
        self.collect(stride, uniform);
        let mut sums = Sums::default();
        if by_words {
            sums.energy = self.word_energy(stride, first);
        }
        for document in &self.batch[..batch.len()] {
            if document.bag.is_empty() {
                sums.skipped += 1;
                continue;
            }
            let found = &document.found;
            sums.points += 1;
            sums.size += found.tokens;
            sums.energy += found.energy + found.topic_energy;
            sums.bound += found.bound;
            sums.inverse += found.inverse;
            sums.unconverged += usize::from(!found.converged);
            sums.sweeps += found.sweeps as u64;
        }
        sums
    }

    fn global_step(&mut self, globals: &mut LdaGlobals, rho: f64, scale: f64) {
        if rho < 1.0 {
            globals.shrink(1.0 - rho);
        } else {
            globals.mass.fill(0.0);
            globals.totals.fill(0.0);
            globals.decay = 1.0;
        }
        let (simd, stride, topics) = (self.spec.simd, globals.stride, globals.topics);
        let factor = rho * scale / globals.decay;
        // The rows of the batch are apart in memory, so they are taken out, changed in parallel and put back by
        // splitting the rows at the batch's terms, which ascend.
        let mut rest = globals.mass.as_mut_slice();
        let mut position = 0;
        let mut targets = Vec::with_capacity(self.terms.len());
        for &term in &self.terms {
            let skip = (term as usize - position) * stride;
            let (row, after) = rest.split_at_mut(skip).1.split_at_mut(stride);
            targets.push(row);
            rest = after;
            position = term as usize + 1;
        }
        let parts: Vec<Vec<f64>> = targets
            .par_chunks_mut(CHUNK)
            .zip(self.statistics.par_chunks(CHUNK * stride))
            .map(|(targets, statistics)| {
                let mut part = vec![0.0; topics];
                for (row, s) in targets.iter_mut().zip(statistics.chunks_exact(stride)) {
                    kernel::add_scaled(simd, factor as f32, s, row);
                    for (p, &s) in part.iter_mut().zip(s) {
                        *p += f64::from(s);
                    }
                }
                part
            })
            .collect();
        for part in parts {
            for (total, p) in globals.totals.iter_mut().zip(part) {
                *total += factor * p;
            }
        }
    }

    fn global_bound(&self, globals: &LdaGlobals) -> f64 {
        let (simd, topics) = (self.spec.simd, globals.topics);
        let (mut psi, mut psi32) = (Vec::new(), Vec::new());
        totals_psi(globals, simd, &mut psi, &mut psi32);
        let (eta, decay) = (globals.eta, globals.decay);
        let log_eta = special::lgamma(eta);
        // −KL of Dirichlets: Σ_kv [log Γ(λ) − log Γ(η) − (λ − η)(ψ(λ) − ψ(Σλ))] − Σ_k [log Γ(Σλ) − log Γ(Vη)].
        let parts: Vec<f64> = globals
            .mass
            .par_chunks(CHUNK * globals.stride)
            .map(|chunk| {
                let mut lambda = vec![0.0; topics];
                let (mut log_gamma, mut digamma) = (vec![0.0; topics], vec![0.0; topics]);
                let mut part = 0.0;
                for row in chunk.chunks_exact(globals.stride) {
                    for (l, &m) in lambda.iter_mut().zip(row) {
                        *l = eta + decay * f64::from(m);
                    }
                    slices::lgamma(simd, &lambda, &mut log_gamma);
                    slices::digamma(simd, &lambda, &mut digamma);
                    for k in 0..topics {
                        part += log_gamma[k] - log_eta - (lambda[k] - eta) * (digamma[k] - psi[k]);
                    }
                }
                part
            })
            .collect();
        let prior = special::lgamma(eta * globals.terms as f64);
        let totals: f64 = globals
            .lambda_totals()
            .map(|t| special::lgamma(t) - prior)
            .sum();
        parts.iter().sum::<f64>() - totals
    }

    fn log_partition(&self, inverse: &[f64], _draws: usize, _seed: u64) -> Partition {
        let documents = self.documents;
        let model = partition::Prior {
            topics: self.settings.topics,
            terms: documents.terms(),
            alpha: self.settings.alpha(),
            eta: self.settings.eta(),
            documents: self.settings.population.unwrap_or(documents.len() as f64),
            tokens: documents.tokens() / documents.len().max(1) as f64,
        };
        partition::log_partition(&model, inverse)
    }

    fn table(&self, globals: &LdaGlobals, _grid: &[f64], _seed: u64) -> PowerTable {
        let knots = self.knots.get_or_init(|| Knots::new(self.spec.simd));
        power_table(globals, knots)
    }

    fn score(&mut self, globals: &LdaGlobals, record: Record) -> Record {
        let Some(heldout) = self.heldout else {
            return record;
        };
        let topics = globals.to_topics(self.spec.alpha, 0, 0.0);
        let predictor = predict::Predictor::new(&topics, predict::RULE, self.spec.simd);
        let completion = predictor.completion(heldout, self.settings.seed);
        record
            .with("heldout_log_predictive", completion.log_predictive)
            .with("heldout_standard_error", completion.standard_error)
    }
}
