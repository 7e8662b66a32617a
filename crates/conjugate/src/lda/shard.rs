//! Computes the local steps of the documents in a shard's share of a batch, and the statistics of their words.
//!
//! Every share goes through four stages, each of which runs in parallel with a fixed division of the work. First, the
//! solver reads the documents. Second, it computes the rows exp(τ(E log β − m)) of the share's words, where m_v is the
//! largest value over topics. Subtracting m prevents underflow for rare words. It does not change the responsibilities,
//! because factors that are common to all topics cancel. Third, it solves the documents and stores their expected
//! counts. Fourth, it sums the expected counts word by word, in the order of the documents.

use std::sync::OnceLock;

use jensen_math::vmath::slices;
use rayon::prelude::*;

use super::globals::{CHUNK, LdaGlobals};
use super::kernel;
use super::kernel::WIDTH;
use super::local::{Found, LocalHeat, Prior, Rows, Solver, Spec, Want};
use super::powers::{Grid, Knots, PowerTable, gamma_ratios};
use super::settings::Inference;
use super::shards::{Part, Spare};
use crate::documents::{Bag, Documents};
use crate::engine::{Heat, Measure, Sums};
use crate::temper::InverseTemperatures;

const PIECES: usize = 16;

#[derive(Default)]
struct Slot {
    bag: Bag,
    slots: Vec<u32>,
    expected: Vec<f32>,
    /// For the other documents, one factor per word and one factor per column. An expected count is the product of
    /// these two factors and the element of the batch's row.
    weights: Vec<f32>,
    t: Vec<f32>,
    active: Vec<u32>,
    stride: usize,
    /// Input for learning α: ψ(γ_k) − ψ(α_k) for each column, and ψ(Σγ) − ψ(Σα).
    excess: Vec<f32>,
    excess_total: f64,
    found: Found,
}

/// The rows of λ − η before the decay is applied, with padded topics.
#[derive(Clone, Copy)]
pub(crate) enum Lambda<'a> {
    Here(&'a [f32]),
    /// Rows as bytes in the format of messages. The bytes need not be aligned.
    Sent(&'a [[u8; 4]]),
}

impl Lambda<'_> {
    /// Returns the row of a term. The row may be a copy in `scratch`.
    pub fn row<'a>(&'a self, term: usize, stride: usize, scratch: &'a mut Vec<f32>) -> &'a [f32] {
        let range = term * stride..(term + 1) * stride;
        match self {
            Self::Here(rows) => &rows[range],
            Self::Sent(rows) => {
                scratch.clear();
                scratch.extend(rows[range].iter().map(|x| f32::from_le_bytes(*x)));
                scratch
            }
        }
    }
}

pub(crate) struct WordRows<'a> {
    spec: &'a Spec,
    lambda: Lambda<'a>,
    stride: usize,
    scale: f32,
    eta: f32,
    totals: Vec<f32>,
}

impl<'a> WordRows<'a> {
    pub fn of(spec: &'a Spec, globals: &LdaGlobals, lambda: Lambda<'a>) -> Self {
        let mut totals: Vec<f64> = globals.lambda_totals().collect();
        let padding = if spec.collapsed() {
            totals.iter_mut().for_each(|total| *total = total.recip());
            0.0
        } else {
            let lambda = totals.clone();
            slices::digamma(spec.simd, &lambda, &mut totals);
            1e30
        };
        let mut totals: Vec<f32> = totals.into_iter().map(|x| x as f32).collect();
        totals.resize(globals.stride, padding);
        Self {
            spec,
            lambda,
            stride: globals.stride,
            scale: globals.decay as f32,
            eta: globals.eta as f32,
            totals,
        }
    }

    /// Writes E log β − m for a term and returns m. This method must not be used with collapsed inference.
    fn logs(&self, term: u32, scratch: &mut Vec<f32>, out: &mut [f32]) -> f32 {
        let source = self.lambda.row(term as usize, self.stride, scratch);
        kernel::log_row(
            self.spec.simd,
            source,
            self.scale,
            self.eta,
            &self.totals,
            out,
        )
    }

    /// Writes exp(power (E log β − m)) for a term and returns m. With collapsed inference, it writes E β / exp(m).
    pub fn weights(&self, term: u32, power: f32, scratch: &mut Vec<f32>, out: &mut [f32]) -> f32 {
        let simd = self.spec.simd;
        if self.spec.collapsed() {
            let source = self.lambda.row(term as usize, self.stride, scratch);
            return kernel::share_row(simd, source, self.scale, self.eta, &self.totals, out);
        }
        let m = self.logs(term, scratch, out);
        kernel::exp_in_place(simd, power, out);
        m
    }
}

pub(crate) struct ShardSolver {
    spec: Spec,
    batch: Vec<Slot>,
    solvers: Vec<Solver>,
    /// The slot of each term in the current batch. A slot is valid only if `stamps` contains the number of this batch.
    slots: Vec<u32>,
    stamps: Vec<u64>,
    stamp: u64,
    terms: Vec<u32>,
    /// Rows for the local steps, and afterwards the statistics of the same words.
    rows: Vec<f32>,
    logs: Vec<f32>,
    maxima: Vec<f32>,
    statistics: Vec<f32>,
    pub spare: Spare,
    /// The occurrences of each word of the batch as pairs (document, position), ordered by word.
    occurrences: Vec<(u32, u32)>,
    starts: Vec<u32>,
    /// The knots are computed only for local temperatures.
    knots: OnceLock<Knots>,
    grid: Grid,
}

impl ShardSolver {
    /// Allocates memory for shares of documents over a vocabulary of `terms` terms.
    pub fn new(terms: usize, spec: Spec) -> Self {
        Self {
            spec,
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
            spare: Spare::default(),
            occurrences: Vec::new(),
            starts: Vec::new(),
            knots: OnceLock::new(),
            grid: Grid::new(&InverseTemperatures::default()),
        }
    }

    /// Returns whether the allocated memory suits documents over `terms` terms and these settings.
    pub fn fits(&self, terms: usize, spec: Spec) -> bool {
        self.slots.len() == terms && self.spec == spec
    }

    fn gather(&mut self, documents: &dyn Documents, batch: &[usize]) {
        if self.batch.len() < batch.len() {
            self.batch.resize_with(batch.len(), Slot::default);
        }
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

    /// Computes the rows `exp(power (Elogβ − m))` of the batch's words. If `keep` is true, it also stores the
    /// logarithms of the rows.
    fn prepare(
        &mut self,
        spec: &Spec,
        globals: &LdaGlobals,
        lambda: Lambda<'_>,
        power: f64,
        keep: bool,
    ) {
        let (simd, stride, words) = (self.spec.simd, globals.stride, self.terms.len());
        self.rows.resize(words * stride, 0.0);
        self.maxima.resize(words, 0.0);
        let of = WordRows::of(spec, globals, lambda);
        let terms = &self.terms;
        let rows = self.rows.par_chunks_exact_mut(stride).zip(&mut self.maxima);
        let power = power as f32;
        if keep {
            self.logs.resize(words * stride, 0.0);
            rows.zip(self.logs.par_chunks_exact_mut(stride))
                .enumerate()
                .with_min_len(CHUNK)
                .for_each_init(Vec::new, |scratch, (slot, ((row, m), logs))| {
                    *m = of.logs(terms[slot], scratch, logs);
                    kernel::exp_scaled(simd, logs, power, row);
                });
        } else {
            rows.enumerate().with_min_len(CHUNK).for_each_init(
                Vec::new,
                |scratch, (slot, (row, m))| {
                    *m = of.weights(terms[slot], power, scratch, row);
                },
            );
        }
    }

    fn word_energy(&self, stride: usize, inverse: f64) -> f64 {
        let simd = self.spec.simd;
        let rows = self.statistics.chunks_exact(stride);
        rows.zip(self.logs.chunks_exact(stride))
            .zip(&self.maxima)
            .map(|((s, logs), &m)| f64::from(kernel::weighed_sum(simd, s, logs, m)))
            .sum::<f64>()
            / inverse
    }

    /// Adds the expected counts of the documents, word by word. If all documents have the same temperature, the
    /// expected counts are computed here from the documents' factors.
    fn collect(&mut self, stride: usize, factors: bool) {
        let (simd, rows) = (self.spec.simd, &self.rows);
        let (batch, starts, occurrences) = (&self.batch, &self.starts, &self.occurrences);
        self.statistics = self.spare.take(self.terms.len() * stride);
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

    /// Computes Σ ψ(γ_k) − ψ(α_k) over the documents of the batch for each topic, followed by Σ ψ(Σγ) − ψ(Σα). The
    /// result is empty if α is not learnt.
    fn excess(&self, topics: usize, documents: usize) -> Vec<f64> {
        if !self.spec.learns {
            return Vec::new();
        }
        let mut sums = vec![0.0; topics + 1];
        let documents = self.batch[..documents].iter();
        for document in documents.filter(|document| !document.bag.is_empty()) {
            for (column, &x) in document.excess.iter().enumerate() {
                let topic = document.active.get(column).map_or(column, |&k| k as usize);
                // The padding has no excess.
                if topic < topics && (document.active.is_empty() || column < document.active.len())
                {
                    sums[topic] += f64::from(x);
                }
            }
            sums[topics] += document.excess_total;
        }
        sums
    }

    fn sums(&self, documents: usize, energy: f64) -> Sums {
        let mut sums = Sums {
            energy,
            ..Sums::default()
        };
        for document in &self.batch[..documents] {
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

    /// Runs the local steps of the documents in `batch`, and returns their part of the batch's results. `lambda`
    /// contains the rows of the global parameters.
    pub fn part(
        &mut self,
        documents: &dyn Documents,
        globals: &LdaGlobals,
        lambda: Lambda<'_>,
        batch: &[usize],
        heat: &Heat<'_, PowerTable>,
        measure: Measure,
    ) -> Part {
        if batch.is_empty() {
            return Part::default();
        }
        self.gather(documents, batch);
        let first = match heat {
            Heat::Uniform(inverse) => *inverse,
            Heat::Local { first, .. } => *first,
        };
        let mut spec = self.spec;
        if measure.bound {
            // Collapsed inference has no bound, but the mean-field bound at the same topics is also valid for them.
            spec.inference = Inference::MeanField;
        }
        let uniform = matches!(heat, Heat::Uniform(_));
        let by_words = measure.energy && uniform;
        // The expected counts are products of factors.
        let factors = uniform && !spec.collapsed();
        self.prepare(&spec, globals, lambda, first, by_words);
        let stride = globals.stride;
        let prior = Prior::of(&globals.alpha);
        let rows = Rows {
            prior: &prior,
            values: &self.rows,
            maxima: &self.maxima,
        };
        let want = Want {
            energy: measure.energy,
            bound: measure.bound,
        };
        let mut base = [0.0; WIDTH];
        if let Heat::Local { grid, .. } = heat {
            // α is the same for all topics, because inferred temperatures do not support any other prior.
            gamma_ratios(spec.simd, prior.alpha[0], &mut base);
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
                        None if spec.collapsed() => {
                            solver.solve_collapsed(&spec, rows, slots, counts, expected)
                        }
                        None => solver.solve(&spec, rows, slots, counts, first, want),
                        Some(heat) => solver
                            .solve_local(&spec, first, rows, heat, slots, counts, want, expected),
                    };
                    if spec.learns {
                        let Slot { excess, found, .. } = document;
                        document.excess_total = solver.excess(&spec, &prior, found, excess);
                    }
                    if factors {
                        document.weights.clone_from(&solver.weights);
                        document.t.clear();
                        document.t.extend_from_slice(&solver.t[..solver.stride]);
                    }
                    document.stride = solver.stride;
                    document.active.clone_from(&solver.active);
                }
            });
        self.collect(stride, factors);
        let energy = if by_words {
            self.word_energy(stride, first)
        } else {
            0.0
        };
        let sums = self.sums(batch.len(), energy);
        let measured = if measure.bound { batch.len() } else { 0 };
        let measured = self.batch[..measured].iter().map(|d| &d.found);
        Part {
            sums,
            bounds: measured.clone().map(|found| found.bound).collect(),
            inverses: measured.map(|found| found.inverse).collect(),
            excess: self.excess(globals.topics, batch.len()),
            terms: std::mem::take(&mut self.terms),
            statistics: std::mem::take(&mut self.statistics),
        }
    }
}

#[cfg(test)]
mod tests {
    use jensen_math::simd::Simd;

    use super::*;
    use crate::lda::settings::LocalRule;

    #[test]
    fn rows_are_shares_of_the_largest_topic() {
        // Twenty topics are padded to thirty-two, and a decayed mass may be slightly negative.
        let (topics, terms, eta) = (20, 3, 0.02);
        let mut mass = vec![0.0f32; terms * kernel::padded(topics)];
        for term in 0..terms {
            for k in 0..topics {
                let x = ((7 * term + 3 * k) % 11) as f32;
                mass[term * kernel::padded(topics) + k] = if x == 0.0 { -1e-9 } else { x * x };
            }
        }
        let globals = LdaGlobals::of_mass(vec![0.1; topics], terms, eta, mass.clone());
        let totals: Vec<f64> = globals.lambda_totals().collect();
        for inference in [Inference::Cvb0, Inference::MeanField] {
            for simd in Simd::available() {
                let spec = Spec {
                    simd,
                    topics,
                    inference,
                    learns: false,
                    rule: LocalRule::default(),
                };
                let of = WordRows::of(&spec, &globals, Lambda::Here(&mass));
                let mut row = vec![9.0; globals.stride];
                for term in 0..terms {
                    let m = f64::from(of.weights(term as u32, 1.0, &mut Vec::new(), &mut row));
                    let lambda = |k: usize| eta + f64::from(mass[term * globals.stride + k]);
                    let log = |k: usize| match inference {
                        Inference::Cvb0 => (lambda(k) / totals[k]).ln(),
                        Inference::MeanField => {
                            jensen_math::special::digamma(lambda(k))
                                - jensen_math::special::digamma(totals[k])
                        }
                    };
                    let largest = (0..topics).map(log).fold(f64::NEG_INFINITY, f64::max);
                    assert!((m - largest).abs() < 1e-5, "{m} {largest}");
                    for (k, &x) in row[..topics].iter().enumerate() {
                        let exact = (log(k) - largest).exp();
                        assert!((f64::from(x) - exact).abs() < 1e-5, "{k}: {x} {exact}");
                    }
                    assert!(row[topics..].iter().all(|x| *x == 0.0));
                }
            }
        }
    }
}
