//! The engine of latent Dirichlet allocation. The shards run the local steps of a batch, and the engine makes the
//! global step with the statistics that they return.

use jensen_math::simd::Simd;
use jensen_math::special;
use jensen_math::vmath::slices;
use jensen_run::Record;
use rayon::prelude::*;

use super::globals::{CHUNK, LdaGlobals};
use super::local::Spec;
use super::powers::{Knots, PowerTable, power_table};
use super::process::Process;
use super::score::{self, Completion, Score};
use super::settings::{LdaSettings, LearnAlpha, Start};
use super::shards::{Ask, LocalShards, Part, Shards, ends, shares};
use super::topics::Topics;
use super::{kernel, partition, redundant, start};
use crate::documents::Documents;
use crate::engine::{Engine, Heat, Measure, Partition, Sums};

/// An engine that fits latent Dirichlet allocation to documents.
pub struct LdaEngine<'a> {
    documents: &'a dyn Documents,
    heldout: Option<&'a dyn Documents>,
    /// Number of documents, from the beginning of the held-out corpus, that are scored during the run.
    scored: usize,
    settings: LdaSettings,
    spec: Spec,
    shards: Box<dyn Shards + 'a>,
    /// For each shard, the number of documents in this shard and all earlier ones.
    ends: Vec<usize>,
    part: Part,
    lost: Option<String>,
}

impl<'a> LdaEngine<'a> {
    /// Creates an engine over documents. If there are held-out documents, the engine scores them.
    pub fn new(
        documents: &'a dyn Documents,
        heldout: Option<&'a dyn Documents>,
        settings: &LdaSettings,
        simd: Simd,
    ) -> Self {
        let shards = LocalShards::new(documents, heldout, Spec::of(settings, simd));
        Self::with_shards(documents, heldout, settings, simd, Box::new(shards))
    }

    /// Creates an engine that delegates its local steps and scores to `shards`.
    pub fn with_shards(
        documents: &'a dyn Documents,
        heldout: Option<&'a dyn Documents>,
        settings: &LdaSettings,
        simd: Simd,
        shards: Box<dyn Shards + 'a>,
    ) -> Self {
        Self {
            ends: ends(documents),
            documents,
            heldout,
            scored: heldout.map_or(0, Documents::len),
            spec: Spec::of(settings, simd),
            settings: settings.clone(),
            shards,
            part: Part::default(),
            lost: None,
        }
    }

    /// Limits the number of held-out documents that are scored during the run.
    pub fn scoring(self, most: usize) -> Self {
        Self {
            scored: self.scored.min(most),
            ..self
        }
    }

    /// Returns the bound of each document in the last batch. The bound of a document without words is 0.
    pub(crate) fn bounds(&self) -> &[f64] {
        &self.part.bounds
    }

    /// Returns the inverse temperature of each document in the last batch, if the bounds were requested.
    pub(crate) fn inverses(&self) -> &[f64] {
        &self.part.inverses
    }

    /// Returns the scores of all held-out documents.
    pub(crate) fn heldout_scores(&mut self, globals: &LdaGlobals) -> Vec<Score> {
        let count = self.heldout.map_or(0, Documents::len);
        self.scores(globals, count).unwrap_or_default()
    }

    fn completion(&mut self, globals: &LdaGlobals, count: usize) -> Option<Completion> {
        self.scores(globals, count)
            .map(|scores| Completion::of(&scores))
    }

    fn scores(&mut self, globals: &LdaGlobals, count: usize) -> Option<Vec<Score>> {
        let heldout = self.heldout.filter(|_| count > 0)?;
        let spec = score::spec(
            self.settings.inference,
            self.settings.topics,
            self.spec.simd,
        );
        let ask = Ask {
            spec,
            globals,
            heat: &Heat::Uniform(1.0),
            measure: Measure::default(),
        };
        let seed = self.settings.seed;
        Some(self.shards.score(&ask, seed, count).unwrap_or_else(|why| {
            // The step is complete, so its record must also be complete. The run ends before the next step.
            self.lost = Some(why);
            score::here(&ask, heldout, seed, count)
        }))
    }

    pub(crate) fn whole_completion(&mut self, topics: &Topics) -> Option<Completion> {
        let count = self.heldout?.len();
        self.completion(&LdaGlobals::of(topics), count)
    }

    /// Makes a stochastic step of Minka's fixed-point iteration for the learnt Dirichlet parameters (Minka 2000, Eq.
    /// 55). The new value α_k Σ_d [ψ(γ_dk) − ψ(α_k)] / Σ_d [ψ(Σγ) − ψ(Σα)] of α_k has the weight ρ. η is updated in the
    /// same way, from all elements of λ. While topics are still similar, all of them occur in all documents, and α
    /// would grow without limit. The first pass therefore learns neither parameter.
    fn learn(&self, globals: &mut LdaGlobals, rho: f64, scale: f64) {
        let per_pass = self.per_pass();
        globals.steps += 1;
        let steps = globals.steps;
        let begins = match self.settings.learn_alpha {
            LearnAlpha::Hdp => self.process_begins(),
            _ => per_pass,
        };
        if steps <= begins {
            return;
        }
        if self.settings.learn_alpha == LearnAlpha::Hdp {
            self.step_process(globals, rho, scale);
        } else if let Some((&total, excess)) = self.part.excess.split_last()
            && total > 0.0
        {
            let mut next: Vec<f64> = (globals.alpha.iter().zip(excess))
                .map(|(alpha, x)| alpha * (1.0 - rho + rho * x / total))
                .collect();
            if self.settings.learn_alpha == LearnAlpha::Symmetric {
                let mean = next.iter().sum::<f64>() / next.len() as f64;
                next.fill(mean);
            }
            next.iter_mut().for_each(|alpha| *alpha = alpha.max(LEAST));
            globals.alpha = next;
        }
        // The update of η needs all of λ, which hardly changes in one step. It therefore runs only a few times per
        // pass, with the weight of all steps since the last update.
        let every = (per_pass / ETA_A_PASS).max(1);
        if self.settings.learn_eta && steps.is_multiple_of(every) {
            let weight = 1.0 - (1.0 - rho).powf(every as f64);
            let next = globals.eta * (1.0 - weight + weight * eta_ratio(globals, &self.spec));
            // This leaves λ − η unchanged.
            globals.eta = next.max(LEAST);
        }
    }

    /// Makes a stochastic step of the hierarchical Dirichlet process, and removes redundant topics at the end of a pass.
    fn step_process(&self, globals: &mut LdaGlobals, rho: f64, scale: f64) {
        let mut process = (globals.process.take()).unwrap_or_else(|| Process::new(globals.topics));
        process.step(rho, scale, &globals.alpha, &self.part.excess);
        globals.process = Some(process);
        if globals.steps.is_multiple_of(self.per_pass()) {
            redundant::remove(globals, self.spec.simd);
        }
        if let Some(process) = &mut globals.process {
            let alpha = process.alpha().into_iter();
            globals.alpha = alpha.map(|alpha| alpha.max(LEAST)).collect();
        }
    }

    /// Returns the step after which the hierarchical Dirichlet process learns. Topics that are still similar would count
    /// as redundant, so it waits for the first pass, for the end of a cooling, and for [`FORMED`] steps after it.
    fn process_begins(&self) -> u64 {
        let cooled = self.settings.temper.cooled_after().unwrap_or(0.0);
        (cooled * self.per_pass() as f64).ceil() as u64 + self.per_pass().max(FORMED)
    }

    fn per_pass(&self) -> u64 {
        self.documents.len().div_ceil(self.settings.batch).max(1) as u64
    }

    /// Returns the difference in the global bound between the prior with seed words and the prior without them. `psi`
    /// contains ψ(Σ_v λ_kv) for each topic.
    fn seed_bound(&self, globals: &LdaGlobals, psi: &[f64]) -> f64 {
        let (eta, prior) = (globals.eta, globals.eta * globals.terms as f64);
        let mut added = vec![0.0; globals.topics];
        let mut bound = 0.0;
        for seed in &self.settings.seeds {
            let at = seed.term as usize * globals.stride + seed.topic;
            let lambda = eta + globals.decay * f64::from(globals.mass[at]);
            bound += seed.weight * (special::digamma(lambda) - psi[seed.topic]);
            bound -= special::lgamma(eta + seed.weight) - special::lgamma(eta);
            added[seed.topic] += seed.weight;
        }
        let totals = added.iter();
        let totals = totals.map(|added| special::lgamma(prior + added) - special::lgamma(prior));
        bound + totals.sum::<f64>()
    }

    pub(crate) fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }
}

const LEAST: f64 = 1e-5;
const ETA_A_PASS: u64 = 5;

/// The number of steps after which topics differ. With five planted topics, τ = 16 and 50 steps, the words of a topic
/// have 95 % of its probability.
const FORMED: u64 = 50;

/// Computes Σ_kv E[ψ(λ_kv) − ψ(η)] / (V Σ_k [ψ(Σ_v λ_kv) − ψ(Vη)]).
///
/// With collapsed inference, m = λ − η is the mean of a count. The expectation is then over a count that is 0 with
/// probability exp(−m), like the number of occurrences among many unlikely tokens (see
/// [`Solver::excess`](super::local::Solver::excess)).
fn eta_ratio(globals: &LdaGlobals, spec: &Spec) -> f64 {
    let (topics, eta, decay, simd) = (globals.topics, globals.eta, globals.decay, spec.simd);
    let base = special::digamma(eta);
    let parts: Vec<f64> = globals
        .mass
        .par_chunks(CHUNK * globals.stride)
        .map(|chunk| {
            let (mut lambda, mut digamma) = (vec![0.0; topics], vec![0.0; topics]);
            let mut some = vec![1.0; topics];
            let mut part = 0.0;
            for row in chunk.chunks_exact(globals.stride) {
                for ((l, some), &m) in lambda.iter_mut().zip(&mut some).zip(row) {
                    let mean = (decay * f64::from(m)).max(0.0);
                    if spec.collapsed() {
                        *some = -(-mean).exp_m1();
                    }
                    // The mean of a non-zero count is at least 1.
                    *l = eta + if *some > 0.0 { mean / *some } else { 1.0 };
                }
                slices::digamma(simd, &lambda, &mut digamma);
                let pairs = some.iter().zip(&digamma);
                part += pairs.map(|(some, x)| some * (x - base)).sum::<f64>();
            }
            part
        })
        .collect();
    let prior = special::digamma(eta * globals.terms as f64);
    let totals = globals.lambda_totals();
    let below: f64 = totals.map(|total| special::digamma(total) - prior).sum();
    parts.iter().sum::<f64>() / (globals.terms as f64 * below)
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
        let alpha = vec![self.settings.alpha(); self.settings.topics];
        let eta = self.settings.eta();
        let (seeds, seed) = (&self.settings.seeds, (seed, self.settings.restart));
        let mut globals = match self.settings.start {
            Start::Random => LdaGlobals::random(alpha, terms, eta, seed, self.spec.simd),
            Start::Documents => start::of_documents(self.documents, alpha, eta, seeds, seed),
        };
        globals.add_seeds(seeds, 1.0);
        globals
    }

    fn local_steps(
        &mut self,
        globals: &mut LdaGlobals,
        batch: &[usize],
        heat: &Heat<'_, PowerTable>,
        measure: Measure,
    ) -> Option<Sums> {
        if self.lost.is_some() {
            return None;
        }
        globals.with_alpha(self.settings.alpha());
        let (shares, positions) = shares(&self.ends, batch);
        let ask = Ask {
            spec: self.spec,
            globals,
            heat,
            measure,
        };
        self.shards.done(std::mem::take(&mut self.part));
        let sum = self.shards.solve(&ask, &shares);
        self.part = sum.map_err(|why| self.lost = Some(why)).ok()?;
        // The shards have listed their documents one shard after another.
        if measure.bound {
            for values in [&mut self.part.bounds, &mut self.part.inverses] {
                let by_shard = std::mem::replace(values, vec![0.0; batch.len()]);
                for (&position, value) in positions.iter().zip(by_shard) {
                    values[position] = value;
                }
            }
        }
        Some(self.part.sums)
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
        // The rows of the batch are scattered in memory. The step takes them out, changes them in parallel, and puts
        // them back at the terms of the batch, which are in ascending order.
        let mut rest = globals.mass.as_mut_slice();
        let mut position = 0;
        let mut targets = Vec::with_capacity(self.part.terms.len());
        for &term in &self.part.terms {
            let skip = (term as usize - position) * stride;
            let (row, after) = rest.split_at_mut(skip).1.split_at_mut(stride);
            targets.push(row);
            rest = after;
            position = term as usize + 1;
        }
        let parts: Vec<Vec<f64>> = targets
            .par_chunks_mut(CHUNK)
            .zip(self.part.statistics.par_chunks(CHUNK * stride))
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
        // λ ← (1 − ρ) λ + ρ (prior + scale · statistics) keeps the whole prior of the seed words in λ.
        globals.add_seeds(&self.settings.seeds, rho);
        self.learn(globals, rho, scale);
    }

    fn global_bound(&self, globals: &LdaGlobals) -> f64 {
        let (simd, topics) = (self.spec.simd, globals.topics);
        let lambda: Vec<f64> = globals.lambda_totals().collect();
        let mut psi = vec![0.0; topics];
        slices::digamma(simd, &lambda, &mut psi);
        let (eta, decay) = (globals.eta, globals.decay);
        let log_eta = special::lgamma(eta);
        // The negative divergence of the Dirichlet distributions is Σ_kv [log Γ(λ) − log Γ(η) − (λ − η)(ψ(λ) − ψ(Σλ))]
        // − Σ_k [log Γ(Σλ) − log Γ(Vη)].
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
        parts.iter().sum::<f64>() - totals + self.seed_bound(globals, &psi)
    }

    fn log_partition(&self, inverse: &[f64], draws: Option<usize>, seed: u64) -> Partition {
        let documents = self.documents;
        let model = partition::Sizes {
            topics: self.settings.topics,
            terms: documents.terms(),
            alpha: self.settings.alpha(),
            eta: self.settings.eta(),
            documents: self.settings.population.unwrap_or(documents.len() as f64),
            tokens: documents.tokens() / documents.len().max(1) as f64,
        };
        match draws {
            None => partition::log_partition(&model, inverse),
            Some(draws) => partition::log_partition_by_draws(&model, inverse, draws, seed),
        }
    }

    fn table(&self, globals: &LdaGlobals, _grid: &[f64], _seed: u64) -> PowerTable {
        power_table(globals, &Knots::new(self.spec.simd))
    }

    fn score(&mut self, globals: &LdaGlobals, record: Record) -> Record {
        let Some(completion) = self.completion(globals, self.scored) else {
            return record;
        };
        record
            .with("heldout_log_predictive", completion.log_predictive)
            .with("heldout_standard_error", completion.standard_error)
    }
}
