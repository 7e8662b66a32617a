//! Effects of covariates on the prevalence of topics: Dirichlet-multinomial regression (Mimno and McCallum 2008) with
//! given topics.
//!
//! The topic proportions of document d have the prior Dirichlet(α_d) with `log α_dk = Σ_p x_dp c_kp`. The coefficients c
//! have normal priors. The word proportions of the topics are known: they are the posterior means of an earlier fit.
//!
//! The posterior mode of c is the root of the derivative of `Σ_d log p(w_d | c) + log p(c)`. By Fisher's identity, the
//! derivative of `log p(w_d | c)` with respect to `log α_dk` is the posterior mean of the derivative for known counts
//! n_k of the document's tokens per topic,
//!
//! `s_dk = α_dk (ψ(α_dk + n_k) − ψ(α_dk) − ψ(A_d + N_d) + ψ(A_d))`,
//!
//! where A_d is the sum of the α_dk, and N_d the number of the document's tokens. Collapsed variational inference is
//! not used here: for documents of a few words its error in c exceeds several standard deviations. Every document
//! therefore keeps a Markov chain of its tokens' topics, which Gibbs sampling moves. The search is a stochastic
//! approximation (Delyon, Lavielle and Moulines 1999): one sweep of each chain, then one step of c. Each step has the
//! metric of the information for known counts, which is the expected outer product of the s. Averages over the later
//! steps (Polyak and Juditsky 1992) remove most of the noise of the draws. Then c stays fixed while the chains measure
//! the rest of the derivative, and a Newton step removes it.
//!
//! The covariance of c is the inverse of the information, which is the sum of the outer products of the documents'
//! derivatives (Berndt, Hall, Hall and Hausman 1974) plus the precision of the prior. Noise of the draws would make
//! outer products of means too large, so each product takes its factors from different halves of a chain. The variance
//! of the Newton step due to the draws is added to the covariance.

use jensen_math::dense::{cholesky, inverse, solve_lower, solve_lower_transposed};
use jensen_math::rng::{Purpose, Stream};
use jensen_math::special::digamma;
use rayon::prelude::*;

use super::topics::Topics;
use crate::documents::{Bag, Documents};

/// Settings of [`prevalence`].
#[derive(Clone, Debug, PartialEq)]
pub struct PrevalenceSettings {
    /// Prior standard deviation of a coefficient. The first column has a wider prior, because its coefficients are the
    /// logarithms of α of a document whose other columns are 0.
    pub prior_sd: f64,
    /// Seed of every random number.
    pub seed: u64,
}

impl Default for PrevalenceSettings {
    /// Returns a prior standard deviation of 1.
    fn default() -> Self {
        Self {
            prior_sd: 1.0,
            seed: 0,
        }
    }
}

/// The posterior of the coefficients, approximated by a normal distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Prevalence {
    /// Number K of topics.
    pub topics: usize,
    /// Number P of columns.
    pub columns: usize,
    /// Posterior means: the coefficient of column p for topic k is at index `k · P + p`.
    pub mean: Vec<f64>,
    /// The posterior covariance of the K·P coefficients, row by row.
    pub covariance: Vec<f64>,
    /// Number of documents with words.
    pub documents: usize,
    /// Number of sweeps over all tokens.
    pub sweeps: usize,
    /// Number of rounds of averages and Newton steps.
    pub rounds: usize,
    /// The largest change of a coefficient by the last Newton step, in posterior standard deviations.
    pub last_step: f64,
    /// The largest standard deviation of a mean due to the draws, in posterior standard deviations.
    pub noise: f64,
}

impl Prevalence {
    /// Returns whether the search ended at the mode: the last Newton step was short, and so was its noise.
    pub fn converged(&self) -> bool {
        self.last_step <= STEP && self.noise <= NOISE
    }
}

/// The reason why there is no [`Prevalence`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrevalenceError {
    /// The input is not valid. The text is one sentence for the user.
    Input(String),
    /// The caller stopped the search.
    Stopped,
}

/// Prior standard deviation of the coefficients of the first column. Within three standard deviations, it admits values
/// of α from e⁻⁹ to e⁹ times those of the topics.
const LEVEL_SD: f64 = 3.0;

/// Largest number of coefficients. Each of the five matrices of the search then takes 128 MiB.
const MOST: usize = 4096;

/// Longest Newton step of a finished search, in posterior standard deviations. Within that distance the log posterior is
/// nearly quadratic, so the error that remains after the step is of second order.
const STEP: f64 = 1.0;

/// Largest standard deviation of a mean due to the draws, in posterior standard deviations. It makes intervals wider by
/// an eighth.
const NOISE: f64 = 0.5;

/// Topics are drawn in groups of this many. The sums of groups need no order, so they are independent of each other.
const GROUP: usize = 8;

/// Smallest number of sweeps of [`prevalence`].
pub const LEAST_SWEEPS: usize = FIRST + AVERAGED + MEASURED;

/// Number of steps of length 1 at the beginning. If nineteen twentieths of the information are missing, as in documents
/// of a few words, they reduce the distance to the mode by a factor of e⁸.
const FIRST: usize = 150;

/// Number of steps over which a round averages.
const AVERAGED: usize = 100;

/// Number of sweeps of a round that measure the derivative.
const MEASURED: usize = 200;

/// Largest number of rounds.
const ROUNDS: usize = 6;

/// The steps compute their metric anew after this many steps, and after steps 1, 2, 4, 8 and 16.
const METRIC: usize = 32;

/// Largest change of a coefficient in one step.
const LARGEST: f64 = 0.5;

/// Bounds on log α. Beyond the lower bound a topic occurs in no document, and beyond the upper bound all documents have
/// the same proportions.
const LOG_ALPHA: (f64, f64) = (-12.0, 9.0);

/// Number of documents whose derivatives are in memory at the same time.
const BLOCK: usize = 512;

const GIBBS: Purpose = Purpose::new("tokens of prevalence");

/// Finds the posterior mode of the coefficients and their covariance. `columns` are the columns of the design, with one
/// element per document. The first column must be 1 in every document. The others should have about unit spread,
/// because all have the same prior. Documents without words are ignored.
///
/// With N tokens, K topics and P columns, a sweep takes 2 N K operations, and there are at least 450 sweeps. The chains
/// take two bytes per token.
///
/// # Errors
/// Fails if the columns do not match the documents, if there are too many coefficients, or if `watch` returns true. It is
/// called several times per sweep with the number of earlier sweeps.
pub fn prevalence(
    topics: &Topics,
    documents: &dyn Documents,
    columns: &[Vec<f64>],
    settings: &PrevalenceSettings,
    watch: &(dyn Fn(usize) -> bool + Sync),
) -> Result<Prevalence, PrevalenceError> {
    let job = Job::new(topics, documents, columns, settings, watch)?;
    let mut search = Search {
        chains: vec![Vec::new(); documents.len()],
        at: job.centre.clone(),
        metric: Vec::new(),
        steps: 0,
        sweeps: 0,
        job,
    };
    for _ in 0..FIRST {
        search.step(1.0)?;
    }
    let mut rounds = 0;
    loop {
        rounds += 1;
        let found = search.round()?;
        if found.converged() || rounds == ROUNDS {
            return Ok(Prevalence { rounds, ..found });
        }
    }
}

fn singular() -> PrevalenceError {
    PrevalenceError::Input(
        "the documents do not determine the effects: use fewer columns or a smaller prior sd"
            .to_owned(),
    )
}

fn product(a: &[f64], b: &[f64], n: usize) -> Vec<f64> {
    let mut out = vec![0.0; n * n];
    out.par_chunks_mut(n)
        .zip(a.par_chunks(n))
        .for_each(|(out, a)| {
            for (a, row) in a.iter().zip(b.chunks_exact(n)) {
                out.iter_mut().zip(row).for_each(|(out, b)| *out += a * b);
            }
        });
    out
}

struct Search<'a> {
    job: Job<'a>,
    /// The topics of the tokens of each document, or an empty vector before the first sweep.
    chains: Vec<Vec<u16>>,
    at: Vec<f64>,
    /// The Cholesky factor of the information for known counts.
    metric: Vec<f64>,
    steps: usize,
    sweeps: usize,
}

impl Search<'_> {
    /// Makes one sweep of all chains, and a step of the given length in the metric.
    fn step(&mut self, length: f64) -> Result<(), PrevalenceError> {
        let renewed = self.steps.is_multiple_of(METRIC)
            || (self.steps < METRIC && self.steps.is_power_of_two());
        let outer = if renewed { Outer::Means } else { Outer::None };
        let sums = (self.job).sweep(&self.at, &mut self.chains, 1, self.sweeps, outer)?;
        self.sweeps += 1;
        self.steps += 1;
        if renewed {
            let information = self.job.with_prior(sums.means);
            self.metric = cholesky(&information, self.at.len()).ok_or_else(singular)?;
        }
        let mut direction = self.job.gradient(&self.at, sums.sum);
        solve_lower(&self.metric, &mut direction);
        solve_lower_transposed(&self.metric, &mut direction);
        let longest = direction.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let scale = length * (LARGEST / longest).min(1.0);
        for (at, x) in self.at.iter_mut().zip(&direction) {
            *at += scale * x;
        }
        Ok(())
    }

    /// Averages over steps, measures the derivative at the mean, and makes a Newton step.
    fn round(&mut self) -> Result<Prevalence, PrevalenceError> {
        let n = self.at.len();
        let mut mean = vec![0.0; n];
        for _ in 0..AVERAGED {
            self.step(1.0)?;
            for (mean, at) in mean.iter_mut().zip(&self.at) {
                *mean += at / AVERAGED as f64;
            }
        }
        self.at = mean;
        let sums = (self.job).sweep(
            &self.at,
            &mut self.chains,
            MEASURED,
            self.sweeps,
            Outer::Halves,
        )?;
        self.sweeps += MEASURED;
        let exact: Vec<f64> = (sums.means.iter().zip(&sums.noise))
            .map(|(means, noise)| means - noise)
            .collect();
        // With few documents, the products of different halves need not be positive definite. The products of means
        // always are.
        let factor = cholesky(&self.job.with_prior(exact), n)
            .or_else(|| cholesky(&self.job.with_prior(sums.means), n))
            .ok_or_else(singular)?;
        let covariance = inverse(&factor, n);
        let gradient = self.job.gradient(&self.at, sums.sum);
        let step: Vec<f64> = (covariance.chunks_exact(n))
            .map(|row| row.iter().zip(&gradient).map(|(v, g)| v * g).sum())
            .collect();
        let spread = product(&product(&covariance, &sums.noise, n), &covariance, n);
        let in_sds = |i: usize, x: f64| x.abs() / covariance[i * (n + 1)].sqrt();
        let largest = |of: &dyn Fn(usize) -> f64| (0..n).map(of).fold(0.0, f64::max);
        let last_step = largest(&|i| in_sds(i, step[i]));
        let noise = largest(&|i| in_sds(i, spread[i * (n + 1)].sqrt()));
        let longest = step.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let scale = (LARGEST / longest).min(1.0);
        for (at, x) in self.at.iter_mut().zip(&step) {
            *at += scale * x;
        }
        Ok(Prevalence {
            topics: self.job.topics,
            columns: self.job.columns.len(),
            mean: self.at.clone(),
            covariance: covariance.iter().zip(&spread).map(|(v, s)| v + s).collect(),
            documents: sums.documents,
            sweeps: self.sweeps,
            rounds: 0,
            last_step,
            noise,
        })
    }
}

struct Job<'a> {
    topics: usize,
    documents: &'a dyn Documents,
    columns: &'a [Vec<f64>],
    settings: &'a PrevalenceSettings,
    /// The posterior means of the proportions of terms, divided by the largest of the term: one row per term, with zeros up
    /// to a multiple of [`GROUP`].
    rows: Vec<f64>,
    /// The prior means of the coefficients.
    centre: Vec<f64>,
    watch: &'a (dyn Fn(usize) -> bool + Sync),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outer {
    None,
    Means,
    Halves,
}

/// Sums over documents.
struct Sums {
    /// The derivatives with respect to the coefficients.
    sum: Vec<f64>,
    /// The outer products of the derivatives.
    means: Vec<f64>,
    /// The outer products of half the difference between the halves of a chain.
    noise: Vec<f64>,
    documents: usize,
}

impl<'a> Job<'a> {
    fn new(
        topics: &'a Topics,
        documents: &'a dyn Documents,
        columns: &'a [Vec<f64>],
        settings: &'a PrevalenceSettings,
        watch: &'a (dyn Fn(usize) -> bool + Sync),
    ) -> Result<Self, PrevalenceError> {
        let refuse = |what: String| Err(PrevalenceError::Input(what));
        if documents.terms() != topics.terms {
            return refuse(format!(
                "the documents have a vocabulary of {} terms, but the topics one of {}",
                documents.terms(),
                topics.terms
            ));
        }
        let lengths_agree = columns.iter().all(|column| column.len() == documents.len());
        let level = columns.first().is_some_and(|c| c.iter().all(|x| *x == 1.0));
        let finite = columns.iter().flatten().all(|x| x.is_finite());
        if !(lengths_agree && level && finite) {
            return refuse(
                "the columns must be finite, have one element per document, and begin with ones"
                    .to_owned(),
            );
        }
        let size = topics.topics * columns.len();
        if size > MOST {
            return refuse(format!(
                "{} topics and {} columns have {size} coefficients, but at most {MOST} are possible; use fewer columns",
                topics.topics,
                columns.len()
            ));
        }
        if !(settings.prior_sd > 0.0 && settings.prior_sd.is_finite()) {
            return refuse(format!(
                "the prior sd must be positive, not {}",
                settings.prior_sd
            ));
        }
        let totals = topics.totals();
        let mut rows = Vec::with_capacity(topics.lambda.len());
        for term in 0..topics.terms {
            let own: Vec<f64> = topics.proportions(term, &totals).collect();
            let largest = own.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
            rows.extend(own.iter().map(|x| x / largest));
            rows.resize((term + 1) * topics.topics.next_multiple_of(GROUP), 0.0);
        }
        let mut centre = vec![0.0; size];
        for (own, alpha) in centre.chunks_exact_mut(columns.len()).zip(&topics.alpha) {
            own[0] = alpha.ln();
        }
        Ok(Self {
            topics: topics.topics,
            documents,
            columns,
            settings,
            rows,
            centre,
            watch,
        })
    }

    /// Returns the prior precision of coefficient `i`.
    fn precision(&self, i: usize) -> f64 {
        let sd = match i % self.columns.len() {
            0 => LEVEL_SD,
            _ => self.settings.prior_sd,
        };
        1.0 / (sd * sd)
    }

    fn with_prior(&self, mut information: Vec<f64>) -> Vec<f64> {
        let n = self.centre.len();
        for i in 0..n {
            information[i * (n + 1)] += self.precision(i);
        }
        information
    }

    fn gradient(&self, at: &[f64], mut sum: Vec<f64>) -> Vec<f64> {
        for (i, sum) in sum.iter_mut().enumerate() {
            *sum -= self.precision(i) * (at[i] - self.centre[i]);
        }
        sum
    }

    /// Moves the chains of all documents by a number of sweeps, and sums the derivatives. The order of the sums is fixed,
    /// so they do not depend on the number of threads. `from` is the number of earlier sweeps.
    fn sweep(
        &self,
        at: &[f64],
        chains: &mut [Vec<u16>],
        sweeps: usize,
        from: usize,
        outer: Outer,
    ) -> Result<Sums, PrevalenceError> {
        let n = at.len();
        let square = |wanted: bool| vec![0.0; if wanted { n * n } else { 0 }];
        let mut sums = Sums {
            sum: vec![0.0; n],
            means: square(outer != Outer::None),
            noise: square(outer == Outer::Halves),
            documents: 0,
        };
        let (mut means, mut differences) = (vec![0.0; BLOCK * n], vec![0.0; BLOCK * n]);
        for (b, block) in chains.chunks_mut(BLOCK).enumerate() {
            if (self.watch)(from) {
                return Err(PrevalenceError::Stopped);
            }
            (block.par_iter_mut().enumerate())
                .zip(means.par_chunks_mut(n).zip(differences.par_chunks_mut(n)))
                .for_each_init(
                    || Scratch::new(self.topics),
                    |scratch, ((i, chain), (mean, difference))| {
                        let d = b * BLOCK + i;
                        self.documents.read(d, &mut scratch.bag);
                        self.move_chain(at, d, chain, sweeps, from, scratch);
                        let [first, second] = &scratch.halves;
                        let each = |sign: f64| {
                            let both = first.iter().zip(second);
                            both.map(move |(a, b)| 0.5 * (a + sign * b))
                        };
                        self.spread(d, each(1.0), mean);
                        self.spread(d, each(-1.0), difference);
                    },
                );
            sums.documents += block.iter().filter(|chain| !chain.is_empty()).count();
            let (means, differences) = (&means[..block.len() * n], &differences[..block.len() * n]);
            for row in means.chunks_exact(n) {
                sums.sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }
            add_outer(means, n, &mut sums.means);
            add_outer(differences, n, &mut sums.noise);
        }
        if sums.documents == 0 {
            return Err(PrevalenceError::Input(
                "no document has a word of the topics".to_owned(),
            ));
        }
        Ok(sums)
    }

    /// Writes the derivatives with respect to the coefficients, given those with respect to log α of document d.
    fn spread(&self, d: usize, score: impl Iterator<Item = f64>, out: &mut [f64]) {
        for (own, s) in out.chunks_exact_mut(self.columns.len()).zip(score) {
            for (out, x) in own.iter_mut().zip(self.columns) {
                *out = s * x[d];
            }
        }
    }

    /// Moves the chain of a document, and writes the mean derivatives with respect to log α over the two halves of the
    /// sweeps. The halves of a single sweep are equal.
    fn move_chain(
        &self,
        at: &[f64],
        d: usize,
        chain: &mut Vec<u16>,
        sweeps: usize,
        from: usize,
        scratch: &mut Scratch,
    ) {
        let topics = self.topics;
        let Scratch {
            bag,
            alpha,
            base,
            weights,
            counts,
            drawn,
            halves,
        } = scratch;
        halves.iter_mut().for_each(|half| half.fill(0.0));
        if bag.is_empty() {
            return;
        }
        for (k, own) in at.chunks_exact(self.columns.len()).enumerate() {
            let log: f64 = own.iter().zip(self.columns).map(|(c, x)| c * x[d]).sum();
            alpha[k] = log.clamp(LOG_ALPHA.0, LOG_ALPHA.1).exp();
            base[k] = digamma(alpha[k]);
        }
        let mut stream = Stream::new(self.settings.seed, GIBBS, from as u64, d as u64);
        // The weight of topic k is α_k + n_k.
        weights.fill(0.0);
        weights[..topics].copy_from_slice(alpha);
        counts.fill(0);
        for &k in chain.iter() {
            counts[usize::from(k)] += 1;
            weights[usize::from(k)] += 1.0;
        }
        let stride = weights.len();
        let mut draw = |term: u32, weights: &[f64]| {
            let row = &self.rows[term as usize * stride..][..stride];
            let mut total = 0.0;
            let groups = weights
                .as_chunks::<GROUP>()
                .0
                .iter()
                .zip(row.as_chunks::<GROUP>().0);
            for ((weights, row), (products, sum)) in groups.zip(drawn.iter_mut()) {
                *products = std::array::from_fn(|k| weights[k] * row[k]);
                *sum = products.iter().sum();
                total += *sum;
            }
            let mut u = total * stream.uniform();
            let mut last = 0;
            for (group, (products, sum)) in drawn.iter().enumerate() {
                if u >= *sum {
                    u -= sum;
                    continue;
                }
                for (k, product) in products.iter().enumerate().filter(|(_, p)| **p > 0.0) {
                    last = group * GROUP + k;
                    if u < *product {
                        return last;
                    }
                    u -= product;
                }
            }
            // Rounding can leave a rest after the last topic.
            last
        };
        // Counts of documents are integers.
        let tokens = |bag: &Bag| -> Vec<u32> {
            let each = bag.terms.iter().zip(&bag.counts);
            each.flat_map(|(&term, &count)| std::iter::repeat_n(term, count.round() as usize))
                .collect()
        };
        let terms = tokens(bag);
        if chain.is_empty() {
            // The first topics are drawn one token at a time, given those of the tokens before.
            for &term in &terms {
                let k = draw(term, weights);
                chain.push(k as u16);
                counts[k] += 1;
                weights[k] += 1.0;
            }
        }
        let total: f64 = alpha.iter().sum();
        let shrink = digamma(total + terms.len() as f64) - digamma(total);
        for sweep in 0..sweeps {
            for (&term, own) in terms.iter().zip(chain.iter_mut()) {
                let before = usize::from(*own);
                counts[before] -= 1;
                weights[before] = alpha[before] + f64::from(counts[before]);
                let k = draw(term, weights);
                counts[k] += 1;
                weights[k] = alpha[k] + f64::from(counts[k]);
                *own = k as u16;
            }
            let half = &mut halves[2 * sweep / sweeps];
            for k in (0..topics).filter(|k| counts[*k] > 0) {
                half[k] += digamma(weights[k]) - base[k];
            }
        }
        if sweeps == 1 {
            let [first, second] = halves;
            second.copy_from_slice(first);
        }
        let each = (sweeps / 2).max(1) as f64;
        for half in halves {
            for (half, alpha) in half.iter_mut().zip(alpha.iter()) {
                *half = alpha * (*half / each - shrink);
            }
        }
    }
}

/// Adds the outer products of the rows of a matrix with n columns. If `out` is empty, nothing is added.
fn add_outer(rows: &[f64], n: usize, out: &mut [f64]) {
    out.par_chunks_mut(n).enumerate().for_each(|(i, out)| {
        for row in rows.chunks_exact(n) {
            let x = row[i];
            out.iter_mut().zip(row).for_each(|(out, y)| *out += x * y);
        }
    });
}

struct Scratch {
    bag: Bag,
    alpha: Vec<f64>,
    base: Vec<f64>,
    weights: Vec<f64>,
    counts: Vec<u32>,
    /// The products of a group of topics, and their sum.
    drawn: Vec<([f64; GROUP], f64)>,
    halves: [Vec<f64>; 2],
}

impl Scratch {
    fn new(topics: usize) -> Self {
        let zeros = || vec![0.0; topics];
        Self {
            bag: Bag::new(),
            alpha: zeros(),
            base: zeros(),
            weights: vec![0.0; topics.next_multiple_of(GROUP)],
            counts: vec![0; topics],
            drawn: vec![([0.0; GROUP], 0.0); topics.div_ceil(GROUP)],
            halves: [zeros(), zeros()],
        }
    }
}
