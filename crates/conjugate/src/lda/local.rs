//! The local step of one document: coordinate ascent over its topic proportions.
//!
//! Let Elogθ_k = ψ(γ_k) − ψ(Σγ), and let τ be the inverse temperature. The responsibilities of a token of term v are
//! φ_vk ∝ exp(τ (Elogθ_k + Elogβ_kv)), *without* the count n_v in the exponent, and γ_k = α + τ Σ_v n_v φ_vk (Mandt et
//! al. 2016, supplement B.2). Eq. 19 of the supplement has n_v in the exponent, but this does not agree with the model.
//! In the model, every token has its own assignment. Factors that are common to all topics cancel. Therefore t_k ∝
//! exp(τ ψ(γ_k)) takes one digamma function and one exponential per topic.
//!
//! If a document does not use a topic, γ_k converges to α. For small α, the ratio of t_k to the largest t is then below
//! the smallest single-precision number. Such topics never return, because the updates multiply by t_k. Once half of
//! the topics have vanished, the solver copies the remaining topics of each row to a smaller array. This does not
//! change results and makes most iterations cheap.

use jensen_math::simd::Simd;
use jensen_math::special;
use jensen_math::vmath::slices;

use super::kernel;
use super::kernel::{WIDTH, padded};
use super::powers::{Grid, Knots, PowerTable};
use super::settings::{Inference, LdaSettings, LearnAlpha, LocalRule};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spec {
    pub simd: Simd,
    pub topics: usize,
    pub inference: Inference,
    pub learns: bool,
    pub rule: LocalRule,
}

impl Spec {
    pub fn of(settings: &LdaSettings, simd: Simd) -> Self {
        Self {
            simd,
            topics: settings.topics,
            inference: settings.inference,
            learns: settings.learn_alpha != LearnAlpha::Fixed,
            rule: settings.local,
        }
    }

    pub fn collapsed(&self) -> bool {
        self.inference == Inference::Cvb0
    }
}

/// Dirichlet parameters α of all topics, padded with the smallest parameter, and their sum.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prior {
    pub alpha: Vec<f32>,
    pub total: f64,
}

impl Prior {
    pub fn of(alpha: &[f64]) -> Self {
        let least = alpha.iter().copied().fold(f64::INFINITY, f64::min);
        let mut padded_alpha: Vec<f32> = alpha.iter().map(|&a| a as f32).collect();
        padded_alpha.resize(padded(alpha.len()), least as f32);
        Self {
            alpha: padded_alpha,
            total: alpha.iter().sum(),
        }
    }

    fn least(&self) -> f32 {
        self.alpha.last().copied().unwrap_or(1.0)
    }
}

/// Rows of topics, one per term: `exp(τ (Elogβ − m))`. With collapsed inference, log E β replaces E log β.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub prior: &'a Prior,
    pub values: &'a [f32],
    pub maxima: &'a [f32],
}

#[derive(Clone, Copy)]
pub(crate) struct LocalHeat<'a> {
    pub grid: &'a Grid,
    /// The inverse temperature of the document cannot end below this value.
    pub floor: f64,
    pub table: &'a PowerTable,
    pub knots: &'a Knots,
    /// The values of Γ(α + s) / Γ(α) at the nodes s.
    pub base: &'a [f32; WIDTH],
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    pub inverse: f64,
    pub tokens: f64,
    pub sweeps: usize,
    pub converged: bool,
    /// E_q[log p(w, z | θ, β)] in nats, if it was requested for a document with its own temperature.
    pub energy: f64,
    /// E_q[log p(z | θ)] in nats, if the energy was requested for a document without its own temperature. The words'
    /// contribution is computed for the whole batch at once.
    pub topic_energy: f64,
    /// The document's contribution to the bound at temperature 1/τ, if it was requested: τ E log p(w, z | θ, β) + H(z)
    /// − KL(q(θ) ‖ p(θ)).
    pub bound: f64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Solver {
    rows: Vec<f32>,
    logs: Vec<f32>,
    pub t: Vec<f32>,
    pub gamma: Vec<f32>,
    pub alpha: Vec<f32>,
    /// For each topic, the log probability that the document has no token of this topic. It is computed only if
    /// inference is collapsed and α is learnt.
    absent: Vec<f32>,
    sums: Vec<f32>,
    norms: Vec<f32>,
    pub weights: Vec<f32>,
    log_t: Vec<f32>,
    r: Vec<f32>,
    /// The topic of each column. If the list is empty, the columns are all topics in order.
    pub active: Vec<u32>,
    pub stride: usize,
}

/// Largest weight of a word. Without this limit, the sums would be infinite for a word that no remaining topic
/// explains.
const LARGEST_WEIGHT: f32 = 1e33;
/// Number of blocks into which the sweeps are divided. After each block except the last, the document's temperature is
/// inferred again.
const HEAT_ROUNDS: usize = 4;
const SWEEPS_A_ROUND: usize = 8;
/// The smallest inverse temperature of a document. Below this value, the padding would contribute to sums. The limit
/// matters little, because a document with such a temperature has hardly any influence.
const SMALLEST_INVERSE: f64 = 1e-3;
/// A local temperature has converged when its inverse changes by less than this.
const HEAT_TOLERANCE: f64 = 0.01;

const WHOLE_SWEEPS: usize = 2;
/// All omitted topics together may have at most this share of a document's tokens.
const UNUSED_SHARE: f64 = 0.1;
/// Smallest number of columns for which omitting topics is worthwhile. With 100 topics, omitting topics saves little
/// time and loses 0.005 nats per word.
const PACKED_FROM: usize = 256;

fn squeeze(rows: &mut Vec<f32>, kept: &[usize], old: usize, new: usize, padding: f32) {
    let words = rows.len() / old;
    for v in 0..words {
        for (to, &from) in kept.iter().enumerate() {
            rows[v * new + to] = rows[v * old + from];
        }
        rows[v * new + kept.len()..(v + 1) * new].fill(padding);
    }
    rows.truncate(words * new);
}

impl Solver {
    fn begin(&mut self, spec: &Spec, rows: Rows<'_>, slots: &[u32], inverse: f64, tokens: f64) {
        let stride = padded(spec.topics);
        self.stride = stride;
        self.active.clear();
        self.rows.resize(slots.len() * stride, 0.0);
        for (row, &slot) in self.rows.chunks_exact_mut(stride).zip(slots) {
            let start = slot as usize * stride;
            row.copy_from_slice(&rows.values[start..start + stride]);
        }
        self.alpha.clone_from(&rows.prior.alpha);
        let share = inverse * tokens / spec.topics as f64;
        self.gamma.clear();
        let start = |&alpha: &f32| (f64::from(alpha) + share) as f32;
        self.gamma
            .extend(self.alpha[..spec.topics].iter().map(start));
        self.gamma.extend_from_slice(&self.alpha[spec.topics..]);
        self.t.clear();
        self.t.resize(stride, 1.0);
        self.t[spec.topics..].fill(0.0);
        self.sums.resize(stride, 0.0);
        self.norms.resize(slots.len(), 0.0);
    }

    fn sweep(&mut self, simd: Simd, counts: &[f32]) {
        kernel::sweep(
            simd,
            &self.rows,
            counts,
            &self.t[..self.stride],
            &mut self.norms,
            &mut self.sums[..self.stride],
        );
    }

    fn sweeps(
        &mut self,
        spec: &Spec,
        counts: &[f32],
        inverse: f64,
        tokens: f64,
        limit: usize,
    ) -> (usize, bool) {
        let allowed = (spec.rule.tolerance * inverse * tokens) as f32;
        for sweep in 1..=limit {
            let stride = self.stride;
            let columns = self.columns(spec);
            self.sweep(spec.simd, counts);
            let (moved, positive) = kernel::update(
                spec.simd,
                &self.sums[..stride],
                &self.alpha[..stride],
                inverse as f32,
                &mut self.gamma[..stride],
                &mut self.t[..stride],
            );
            // The padding has γ = α, because the kernel does not distinguish padding from topics.
            let padding = &mut self.t[columns..stride];
            let phantoms = padding.iter().filter(|t| **t > 0.0).count();
            padding.fill(0.0);
            let alive = positive as usize - phantoms;
            if moved <= allowed {
                return (sweep, true);
            }
            if 2 * padded(alive) <= stride {
                self.pack(spec, alive);
            }
        }
        (limit, false)
    }

    fn columns(&self, spec: &Spec) -> usize {
        if self.active.is_empty() {
            spec.topics
        } else {
            self.active.len()
        }
    }

    fn pack(&mut self, spec: &Spec, alive: usize) {
        let old = self.stride;
        let new = padded(alive).max(padded(1));
        let columns = self.columns(spec);
        let kept: Vec<usize> = (0..columns).filter(|&k| self.t[k] > 0.0).collect();
        squeeze(&mut self.rows, &kept, old, new, 0.0);
        let least = self.alpha.iter().copied().fold(f32::INFINITY, f32::min);
        self.keep(&kept, old, new, least);
    }

    fn keep(&mut self, kept: &[usize], old: usize, new: usize, padding: f32) {
        let least = self.alpha.iter().copied().fold(f32::INFINITY, f32::min);
        squeeze(&mut self.t, kept, old, new, 0.0);
        squeeze(&mut self.gamma, kept, old, new, padding);
        squeeze(&mut self.alpha, kept, old, new, least);
        self.active = if self.active.is_empty() {
            kept.iter().map(|&k| k as u32).collect()
        } else {
            kept.iter().map(|&k| self.active[k]).collect()
        };
        self.stride = new;
    }

    /// Makes the local step at a given inverse temperature. `rows` contains `exp(τ (Elogβ − m))`.
    ///
    /// The weighted expected counts τ n_v φ_vk are [`weights`](Self::weights)_v · t_k · row_vk.
    pub fn solve(
        &mut self,
        spec: &Spec,
        rows: Rows<'_>,
        slots: &[u32],
        counts: &[f32],
        inverse: f64,
        want: Want,
    ) -> Found {
        let tokens: f64 = counts.iter().map(|&n| f64::from(n)).sum();
        self.begin(spec, rows, slots, inverse, tokens);
        let (sweeps, converged) =
            self.sweeps(spec, counts, inverse, tokens, spec.rule.max_iterations);
        let mut found = Found {
            inverse,
            tokens,
            sweeps,
            converged,
            ..Found::default()
        };
        self.sweep(spec.simd, counts);
        let pairs = counts.iter().zip(&self.norms);
        self.weights.clear();
        self.weights
            .extend(pairs.map(|(&n, &norm)| (inverse as f32 * n / norm).min(LARGEST_WEIGHT)));
        if want.energy {
            found.topic_energy = self.topic_energy(spec, rows.prior, &found);
        }
        if want.bound {
            found.bound = self.bound(spec, rows, slots, counts, &found);
        }
        found
    }

    /// Makes the local step of collapsed inference and writes the expected counts n_v φ_vk. The rows contain `E β /
    /// largest`.
    ///
    /// The term −φ_vk removes the token itself from the count of its topic. This matters for documents with only a few
    /// dozen words. All tokens of a word share one φ.
    pub fn solve_collapsed(
        &mut self,
        spec: &Spec,
        rows: Rows<'_>,
        slots: &[u32],
        counts: &[f32],
        out: &mut Vec<f32>,
    ) -> Found {
        let tokens: f64 = counts.iter().map(|&n| f64::from(n)).sum();
        let stride = padded(spec.topics);
        self.stride = stride;
        self.active.clear();
        self.alpha.clone_from(&rows.prior.alpha);
        let share = (tokens / spec.topics as f64) as f32;
        self.gamma.clear();
        let start = self.alpha[..spec.topics].iter().map(|alpha| alpha + share);
        self.gamma.extend(start);
        self.gamma.resize(stride, 0.0);
        self.t.clone_from(&self.gamma);
        out.resize(counts.len() * stride, 0.0);
        for phi in out.chunks_exact_mut(stride) {
            let (topics, padding) = phi.split_at_mut(spec.topics);
            topics.fill(1.0 / spec.topics as f32);
            padding.fill(0.0);
        }
        let mut found = Found {
            inverse: 1.0,
            tokens,
            ..Found::default()
        };
        let allowed = (spec.rule.tolerance * tokens) as f32;
        let unused = (UNUSED_SHARE * tokens / spec.topics as f64) as f32;
        while found.sweeps < spec.rule.max_iterations && !found.converged {
            found.sweeps += 1;
            let stride = self.stride;
            let words = out.chunks_exact_mut(stride).zip(counts).enumerate();
            for (v, (phi, &count)) in words {
                let row = match self.active.is_empty() {
                    true => &rows.values[slots[v] as usize * stride..][..stride],
                    false => &self.rows[v * stride..][..stride],
                };
                kernel::reassign(spec.simd, row, count, phi, &mut self.gamma);
            }
            found.converged = kernel::follow(spec.simd, &self.gamma, &mut self.t) <= allowed;
            let goes_on = !found.converged && found.sweeps < spec.rule.max_iterations;
            if goes_on && found.sweeps >= WHOLE_SWEEPS && stride >= PACKED_FROM {
                self.pack_collapsed(spec, rows, slots, unused, out);
            }
        }
        let stride = self.stride;
        // Counts that were moved back and forth accumulate rounding errors, so the returned counts are computed afresh.
        self.gamma.copy_from_slice(&self.alpha);
        if spec.learns {
            self.absent.clear();
            self.absent.resize(stride, 0.0);
            for (phi, &count) in out.chunks_exact(stride).zip(counts) {
                kernel::add_log_absent(spec.simd, phi, count, &mut self.absent);
            }
        }
        for (phi, &count) in out.chunks_exact_mut(stride).zip(counts) {
            phi.iter_mut().for_each(|phi| *phi *= count);
            kernel::add_scaled(spec.simd, 1.0, phi, &mut self.gamma);
        }
        found
    }

    fn pack_collapsed(
        &mut self,
        spec: &Spec,
        rows: Rows<'_>,
        slots: &[u32],
        unused: f32,
        out: &mut Vec<f32>,
    ) {
        let columns = self.columns(spec);
        let held = || self.gamma[..columns].iter().zip(&self.alpha);
        // Counting comes first, because it is quick and most sweeps do not change most topics.
        let count: u32 = held().map(|(g, a)| u32::from(g - a > unused)).sum();
        let (old, new) = (self.stride, padded(count as usize));
        if count == 0 || 2 * new > old {
            return;
        }
        let kept = held().enumerate().filter(|(_, (g, a))| *g - *a > unused);
        let kept: Vec<usize> = kept.map(|(k, _)| k).collect();
        if self.active.is_empty() {
            self.rows.clear();
            self.rows.resize(slots.len() * new, 0.0);
            for (to, &slot) in self.rows.chunks_exact_mut(new).zip(slots) {
                let row = &rows.values[slot as usize * old..][..old];
                to.iter_mut().zip(&kept).for_each(|(to, &k)| *to = row[k]);
            }
        } else {
            squeeze(&mut self.rows, &kept, old, new, 0.0);
        }
        squeeze(out, &kept, old, new, 0.0);
        self.keep(&kept, old, new, 0.0);
    }

    /// Writes E[log θ_k] for each column, minus the value for a document without words: ψ(γ_k) − ψ(α_k). Returns ψ(Σγ)
    /// − ψ(Σα).
    ///
    /// With collapsed inference, γ_k − α_k is the expectation of a random count. Most counts are 0, and the curvature
    /// of ψ is large there. Replacing the count by its expectation would therefore have the effect of many small
    /// counts. The function instead computes P(n > 0) [ψ(α + E[n | n > 0]) − ψ(α)] (Teh, Newman and Welling 2007,
    /// Section 3).
    pub fn excess(&self, spec: &Spec, prior: &Prior, found: &Found, out: &mut Vec<f32>) -> f64 {
        out.resize(self.stride, 0.0);
        let (gamma, alpha) = (&self.gamma[..self.stride], &self.alpha[..self.stride]);
        if spec.collapsed() {
            out.copy_from_slice(&self.absent);
            kernel::collapsed_excess(spec.simd, gamma, alpha, out);
        } else {
            kernel::digamma_excess(spec.simd, gamma, alpha, out);
        }
        let total = prior.total + found.inverse * found.tokens;
        special::digamma(total) - special::digamma(prior.total)
    }

    fn topic_energy(&mut self, spec: &Spec, prior: &Prior, found: &Found) -> f64 {
        let stride = self.stride;
        let (sums, t) = (&mut self.sums[..stride], &self.t[..stride]);
        sums.iter_mut().zip(t).for_each(|(s, t)| *s *= t);
        self.log_t.resize(stride, 0.0);
        kernel::logarithms(spec.simd, t, &mut self.log_t);
        let scaled = kernel::weighed_sum(spec.simd, sums, &self.log_t, 0.0);
        f64::from(scaled) / found.inverse + found.tokens * self.shift(spec, prior, found)
    }

    fn count(&mut self, spec: &Spec, counts: &[f32], inverse: f64, out: &mut Vec<f32>) {
        out.resize(counts.len() * self.stride, 0.0);
        kernel::expected_counts(
            spec.simd,
            &self.rows,
            counts,
            inverse as f32,
            &self.t[..self.stride],
            &mut self.norms,
            out,
        );
    }

    /// Returns the shift in the formula t_k = exp(τ (E log θ_k − shift)).
    fn shift(&self, spec: &Spec, prior: &Prior, found: &Found) -> f64 {
        let total = prior.total + found.inverse * found.tokens;
        let gamma = &self.gamma[..self.columns(spec)];
        let largest = gamma.iter().copied().fold(0.0, f32::max);
        f64::from(kernel::digamma_difference(spec.simd, largest, total as f32))
    }

    fn energy(
        &mut self,
        spec: &Spec,
        Rows { prior, maxima, .. }: Rows<'_>,
        slots: &[u32],
        counts: &[f32],
        found: &Found,
    ) -> f64 {
        let inverse = found.inverse;
        let stride = self.stride;
        self.logs.resize(self.rows.len(), 0.0);
        kernel::logarithms(spec.simd, &self.rows, &mut self.logs);
        self.log_t.resize(stride, 0.0);
        kernel::logarithms(spec.simd, &self.t[..stride], &mut self.log_t);
        let scaled = kernel::energy(
            spec.simd,
            &self.rows,
            &self.logs,
            counts,
            &self.t[..stride],
            &self.log_t,
        );
        let offsets: f64 = slots
            .iter()
            .zip(counts)
            .map(|(&slot, &n)| f64::from(n) * f64::from(maxima[slot as usize]))
            .sum();
        scaled / inverse + offsets + found.tokens * self.shift(spec, prior, found)
    }

    fn bound(
        &self,
        spec: &Spec,
        Rows { prior, maxima, .. }: Rows<'_>,
        slots: &[u32],
        counts: &[f32],
        found: &Found,
    ) -> f64 {
        let inverse = found.inverse;
        let words: f64 = slots
            .iter()
            .zip(counts)
            .zip(&self.norms)
            .map(|((&slot, &n), &norm)| {
                let m = f64::from(maxima[slot as usize]);
                f64::from(n) * (f64::from(norm).ln() + inverse * m)
            })
            .sum();
        let total = prior.total + inverse * found.tokens;
        let psi_total = special::digamma(total);
        let columns = self.columns(spec);
        let pairs = self.gamma[..columns].iter().zip(&self.alpha);
        let (gamma, alpha): (Vec<f64>, Vec<f64>) = pairs
            .filter(|(gamma, alpha)| gamma > alpha)
            .map(|(&gamma, &alpha)| (f64::from(gamma), f64::from(alpha)))
            .unzip();
        let mut log_gamma = vec![0.0; gamma.len()];
        let (mut log_alpha, mut psi) = (log_gamma.clone(), log_gamma.clone());
        slices::lgamma(spec.simd, &gamma, &mut log_gamma);
        slices::lgamma(spec.simd, &alpha, &mut log_alpha);
        slices::digamma(spec.simd, &gamma, &mut psi);
        let mut divergence = special::lgamma(total) - special::lgamma(prior.total);
        for k in 0..gamma.len() {
            divergence +=
                log_alpha[k] - log_gamma[k] + (gamma[k] - alpha[k]) * (psi[k] - psi_total);
        }
        words + inverse * found.tokens * self.shift(spec, prior, found) - divergence
    }

    /// Makes the local step of a document whose temperature is inferred.
    ///
    /// The step begins with a few sweeps at the inverse temperature `first`. `rows` contains `exp(first (Elogβ − m))`.
    /// The step then alternates between two updates: r_m ∝ exp(s_m E[log p(w, z | θ, β)] − N log Σ_k E[θ_k^s] Σ_v
    /// E[β_kv^s]), and sweeps at τ = Σ_m r_m s_m. The second term of the exponent is an upper bound, by Jensen's
    /// inequality, on the log normaliser of the tempered likelihood of N tokens. This term is 0 at s = 1.
    #[allow(clippy::too_many_arguments)]
    pub fn solve_local(
        &mut self,
        spec: &Spec,
        first: f64,
        rows: Rows<'_>,
        heat: LocalHeat<'_>,
        slots: &[u32],
        counts: &[f32],
        want: Want,
        out: &mut Vec<f32>,
    ) -> Found {
        let tokens: f64 = counts.iter().map(|&n| f64::from(n)).sum();
        self.begin(spec, rows, slots, first, tokens);
        let mut found = Found {
            inverse: first,
            tokens,
            ..Found::default()
        };
        let mut settled = false;
        for round in 0..HEAT_ROUNDS {
            let last = settled || round + 1 == HEAT_ROUNDS;
            let limit = if last {
                spec.rule.max_iterations
            } else {
                SWEEPS_A_ROUND
            };
            let limit = limit.min(spec.rule.max_iterations);
            let (sweeps, converged) = self.sweeps(spec, counts, found.inverse, tokens, limit);
            found.sweeps += sweeps;
            found.converged = converged;
            if last {
                break;
            }
            found.energy = self.energy(spec, rows, slots, counts, &found);
            let next = self.infer(spec, rows.prior, &heat, &found);
            settled = (next - found.inverse).abs() < HEAT_TOLERANCE;
            if settled && converged {
                break;
            }
            if !settled {
                // The energy needs logarithms at the current power. Values that this power moved below the range of
                // single precision remain 0, because a document never regains a topic whose share is 0.
                let factor = next / found.inverse;
                kernel::exp_scaled(spec.simd, &self.logs, factor as f32, &mut self.rows);
                found.inverse = next;
                self.reheat(spec, next, tokens);
            }
        }
        self.count(spec, counts, found.inverse, out);
        if want.energy {
            found.energy = self.energy(spec, rows, slots, counts, &found);
        }
        if want.bound {
            found.bound = self.bound(spec, rows, slots, counts, &found);
        }
        found
    }

    /// Converts the current γ to another inverse temperature. The proportions of the tokens do not change.
    fn reheat(&mut self, spec: &Spec, inverse: f64, tokens: f64) {
        let columns = self.columns(spec);
        let pairs = self.gamma[..columns].iter().zip(&self.alpha);
        let held: f32 = pairs.map(|(gamma, alpha)| gamma - alpha).sum();
        let factor = (inverse * tokens) as f32 / held.max(f32::MIN_POSITIVE);
        for (gamma, &alpha) in self.gamma[..columns].iter_mut().zip(&self.alpha) {
            *gamma = (*gamma - alpha).mul_add(factor, alpha);
        }
        kernel::weights(
            spec.simd,
            &self.gamma[..self.stride],
            inverse as f32,
            &mut self.t[..self.stride],
        );
        self.t[columns..self.stride].fill(0.0);
    }

    fn infer(&mut self, spec: &Spec, prior: &Prior, heat: &LocalHeat<'_>, found: &Found) -> f64 {
        let columns = self.columns(spec);
        let alpha = prior.least();
        // These are the powers of a document without words, plus the differences for topics with words.
        let mut powers = [0.0f32; WIDTH];
        for (p, (t, b)) in powers
            .iter_mut()
            .zip(heat.table.total.iter().zip(heat.base))
        {
            *p = t * b;
        }
        kernel::add_normalisers(
            spec.simd,
            &self.gamma[..columns],
            &self.active,
            // A thousandth of a token does not change the sum noticeably.
            alpha + 1e-3,
            heat.knots,
            heat.base,
            &heat.table.powers,
            &mut powers,
        );
        let total = prior.total + found.inverse * found.tokens;
        self.r.resize(heat.grid.inverse.len(), 0.0);
        let mean = kernel::mean_inverse(
            spec.simd,
            &powers,
            total as f32,
            heat.knots,
            heat.grid,
            found.energy as f32,
            found.tokens as f32,
            &mut self.r,
        );
        f64::from(mean).max(heat.floor).max(SMALLEST_INVERSE)
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Want {
    pub energy: bool,
    pub bound: bool,
}

#[cfg(test)]
mod tests {
    use jensen_math::rng::{Purpose, Stream};

    use super::*;

    const TOPICS: usize = 512;

    /// Returns rows of words. The first sixteenth of the topics use these words a hundred times as often as the other
    /// topics.
    fn rows(words: usize) -> Vec<f32> {
        let mut stream = Stream::new(1, Purpose::new("rows of a test"), 0, 0);
        let mut draw = |topic: usize| match topic < TOPICS / 16 && stream.uniform() < 0.2 {
            true => stream.uniform(),
            false => 0.01,
        };
        (0..words * TOPICS)
            .map(|at| draw(at % TOPICS) as f32)
            .collect()
    }

    fn plainly(alpha: f64, rows: &[f32], counts: &[f32]) -> Vec<f64> {
        let tokens: f64 = counts.iter().map(|&n| f64::from(n)).sum();
        let mut phi = vec![1.0 / TOPICS as f64; counts.len() * TOPICS];
        let mut gamma = [alpha + tokens / TOPICS as f64; TOPICS];
        for _ in 0..1000 {
            for (v, &count) in counts.iter().enumerate() {
                let (phi, row) = (
                    &mut phi[v * TOPICS..][..TOPICS],
                    &rows[v * TOPICS..][..TOPICS],
                );
                let weights: Vec<f64> = (0..TOPICS)
                    .map(|k| (gamma[k] - phi[k]) * f64::from(row[k]))
                    .collect();
                let total: f64 = weights.iter().sum();
                for (k, weight) in weights.iter().enumerate() {
                    gamma[k] += f64::from(count) * (weight / total - phi[k]);
                    phi[k] = weight / total;
                }
            }
        }
        gamma.iter().map(|gamma| gamma - alpha).collect()
    }

    #[test]
    fn topics_that_a_document_does_not_use_are_left_out_and_no_token_is_lost() {
        let counts: Vec<f32> = (0..40).map(|v| [1.0, 1.0, 2.0, 1.0, 3.0][v % 5]).collect();
        let (values, slots) = (rows(counts.len()), (0..40).collect::<Vec<u32>>());
        let prior = Prior::of(&[0.02; TOPICS]);
        let spec = Spec {
            simd: Simd::detect(),
            topics: TOPICS,
            inference: Inference::Cvb0,
            learns: false,
            rule: LocalRule {
                tolerance: 1e-4,
                max_iterations: 1000,
            },
        };
        let maxima = vec![0.0; counts.len()];
        let rows = Rows {
            prior: &prior,
            values: &values,
            maxima: &maxima,
        };
        let (mut solver, mut out) = (Solver::default(), Vec::new());
        let found = solver.solve_collapsed(&spec, rows, &slots, &counts, &mut out);
        assert!(found.converged && !solver.active.is_empty() && solver.stride <= TOPICS / 2);

        let tokens = found.tokens as f32;
        assert!((out.iter().sum::<f32>() - tokens).abs() < 1e-3 * tokens);
        for (phi, count) in out.chunks_exact(solver.stride).zip(&counts) {
            assert!((phi.iter().sum::<f32>() - count).abs() < 1e-4 * count);
        }
        let mut held = [0.0f64; TOPICS];
        for ((&k, gamma), alpha) in solver.active.iter().zip(&solver.gamma).zip(&solver.alpha) {
            held[k as usize] = f64::from(gamma - alpha);
        }
        let exact = plainly(0.02, &values, &counts);
        let apart: f64 = held.iter().zip(exact).map(|(a, b)| (a - b).abs()).sum();
        // The remaining topics receive the share of the omitted ones, which is at most twice the allowed share.
        assert!(
            apart < 2.0 * UNUSED_SHARE * found.tokens,
            "{apart} of {tokens} tokens"
        );
    }
}
