//! The local step of one document: coordinate ascent over its topic proportions.
//!
//! With Elogθ_k = ψ(γ_k) − ψ(Σγ) and the inverse temperature τ, the responsibilities of a token of term v are
//! φ_vk ∝ exp(τ (Elogθ_k + Elogβ_kv)), *without* the count n_v in the exponent, and γ_k = α + τ Σ_v n_v φ_vk (Mandt et
//! al. 2016, supplement B.2; its Eq. 19 prints n_v in the exponent, but the model has one assignment a token). The sum
//! Σγ = Kα + τ Σn does not change, so that t_k = exp(τ Elogθ_k) needs one digamma and one exponential a topic.
//!
//! Topics that a document does not use end at γ_k = α, where t_k is below the smallest number of single precision for
//! small α. They can never come back, as the updates multiply by t_k; so the rows are packed to the other topics as soon
//! as half of them are gone. This changes no result and makes most iterations cheap.

use jensen_math::simd::Simd;
use jensen_math::special;

use super::kernel;
use super::settings::LocalRule;
use crate::simd32::padded;

/// What all local steps of a model share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub simd: Simd,
    pub topics: usize,
    pub alpha: f64,
    pub rule: LocalRule,
}

/// Term rows over topics: `exp(τ (Elogβ − m))`, or `Elogβ − m` itself.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    /// One padded row a slot.
    pub values: &'a [f32],
    /// m of every slot.
    pub maxima: &'a [f32],
}

/// What a local temperature needs.
#[derive(Clone, Copy)]
pub(crate) struct LocalHeat<'a> {
    /// Rows of `Elogβ − m`.
    pub logs: Rows<'a>,
    /// Inverse temperatures, ascending.
    pub grid: &'a [f64],
    /// The same, padded, in single precision.
    pub grid32: &'a [f32],
    /// Σ_v E[β_kv^s]: a padded row over the grid for every topic.
    pub powers: &'a [f32],
    /// The sum of those rows.
    pub power_total: &'a [f32],
}

/// What a local step found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    /// τ in use at the end.
    pub inverse: f64,
    /// Number of tokens.
    pub tokens: f64,
    /// Number of sweeps over the words.
    pub sweeps: usize,
    /// Whether the rule was met.
    pub converged: bool,
    /// E_q[log p(w, z | θ, β)], when asked for.
    pub energy: f64,
    /// The document's share of the bound at temperature 1/τ, when asked for:
    /// τ E log p(w, z | θ, β) + H(z) − KL(q(θ) ‖ p(θ)).
    pub bound: f64,
}

/// Scratch memory and the last document's results.
#[derive(Clone, Debug, Default)]
pub(crate) struct Solver {
    rows: Vec<f32>,
    logs: Vec<f32>,
    pub t: Vec<f32>,
    pub gamma: Vec<f32>,
    sums: Vec<f32>,
    norms: Vec<f32>,
    powers: Vec<f32>,
    r: Vec<f64>,
    /// The topics of the columns; empty when they are all topics in order.
    pub active: Vec<u32>,
    /// Padded number of columns.
    pub stride: usize,
}

/// Rounds of inferring a local temperature after the first guess.
const HEAT_ROUNDS: usize = 4;
/// A local temperature is settled when it moves by less than this.
const HEAT_TOLERANCE: f64 = 0.01;

impl Solver {
    /// Loads a document's rows and the uniform start.
    fn begin(&mut self, spec: &Spec, rows: Rows<'_>, slots: &[u32], inverse: f64, tokens: f64) {
        let stride = padded(spec.topics);
        self.stride = stride;
        self.active.clear();
        self.rows.resize(slots.len() * stride, 0.0);
        for (row, &slot) in self.rows.chunks_exact_mut(stride).zip(slots) {
            let start = slot as usize * stride;
            row.copy_from_slice(&rows.values[start..start + stride]);
        }
        let alpha = spec.alpha;
        let start = alpha + inverse * tokens / spec.topics as f64;
        self.gamma.clear();
        self.gamma.resize(stride, start as f32);
        self.gamma[spec.topics..].fill(alpha as f32);
        let total = spec.topics as f64 * start;
        let t = (inverse * (special::digamma(start) - special::digamma(total))).exp();
        self.t.clear();
        self.t.resize(stride, t as f32);
        self.t[spec.topics..].fill(0.0);
        self.sums.resize(stride, 0.0);
        self.norms.resize(slots.len(), 0.0);
    }

    /// Sweeps until the rule is met or `limit` sweeps are done; returns the number of sweeps and whether it is met.
    fn sweeps(
        &mut self,
        spec: &Spec,
        counts: &[f32],
        inverse: f64,
        tokens: f64,
        limit: usize,
    ) -> (usize, bool) {
        let total = spec.topics as f64 * spec.alpha + inverse * tokens;
        let psi_total = special::digamma(total) as f32;
        let allowed = (spec.rule.tolerance * inverse * tokens) as f32;
        for sweep in 1..=limit {
            let stride = self.stride;
            let columns = self.columns(spec);
            kernel::sweep(
                spec.simd,
                &self.rows,
                counts,
                &self.t[..stride],
                &mut self.norms,
                &mut self.sums[..stride],
            );
            let (moved, positive) = kernel::update(
                spec.simd,
                &self.sums[..stride],
                spec.alpha as f32,
                inverse as f32,
                psi_total,
                &mut self.gamma[..stride],
                &mut self.t[..stride],
            );
            // Padding: its γ is α, which the kernel does not know to be no topic.
            let padding = &mut self.t[columns..stride];
            let phantoms = padding.iter().filter(|t| **t > 0.0).count();
            padding.fill(0.0);
            let alive = positive as usize - phantoms;
            if moved <= allowed {
                return (sweep, true);
            }
            if 2 * padded(alive) <= stride {
                self.pack(spec, counts.len(), alive);
            }
        }
        (limit, false)
    }

    /// Number of columns that are topics.
    fn columns(&self, spec: &Spec) -> usize {
        if self.active.is_empty() {
            spec.topics
        } else {
            self.active.len()
        }
    }

    /// Keeps the columns whose t is positive.
    fn pack(&mut self, spec: &Spec, words: usize, alive: usize) {
        let old = self.stride;
        let new = padded(alive).max(padded(1));
        let columns = self.columns(spec);
        let kept: Vec<usize> = (0..columns).filter(|&k| self.t[k] > 0.0).collect();
        let squeeze = |rows: &mut Vec<f32>, words: usize, fill: f32| {
            for v in 0..words {
                for (to, &from) in kept.iter().enumerate() {
                    rows[v * new + to] = rows[v * old + from];
                }
                rows[v * new + kept.len()..(v + 1) * new].fill(fill);
            }
            rows.truncate(words * new);
        };
        squeeze(&mut self.rows, words, 0.0);
        if !self.logs.is_empty() {
            squeeze(&mut self.logs, words, -1e30);
        }
        squeeze(&mut self.t, 1, 0.0);
        squeeze(&mut self.gamma, 1, spec.alpha as f32);
        self.active = if self.active.is_empty() {
            kept.iter().map(|&k| k as u32).collect()
        } else {
            kept.iter().map(|&k| self.active[k]).collect()
        };
        self.stride = new;
    }

    /// The local step at a given inverse temperature, from rows `exp(τ (Elogβ − m))`. With `out`, writes the weighed
    /// expected counts τ n_v φ_vk there, a row of [`stride`](Self::stride) a word.
    #[allow(clippy::too_many_arguments)]
    pub fn solve(
        &mut self,
        spec: &Spec,
        rows: Rows<'_>,
        slots: &[u32],
        counts: &[f32],
        inverse: f64,
        want: Want,
        out: &mut Vec<f32>,
    ) -> Found {
        let tokens: f64 = counts.iter().map(|&n| f64::from(n)).sum();
        self.logs.clear();
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
        self.count(spec, counts, inverse, out);
        self.measure(spec, rows.maxima, slots, counts, want, &mut found, out);
        found
    }

    /// Writes the weighed expected counts at the present t.
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

    /// Fills in energy and bound.
    #[allow(clippy::too_many_arguments)]
    fn measure(
        &self,
        spec: &Spec,
        maxima: &[f32],
        slots: &[u32],
        counts: &[f32],
        want: Want,
        found: &mut Found,
        expected: &[f32],
    ) {
        let inverse = found.inverse;
        if want.energy {
            let scaled = kernel::energy(
                spec.simd,
                &self.rows,
                expected,
                &self.t[..self.stride],
                counts.len(),
            );
            let offsets: f64 = slots
                .iter()
                .zip(counts)
                .map(|(&slot, &n)| f64::from(n) * f64::from(maxima[slot as usize]))
                .sum();
            // The expected counts carry τ, and the logs another one.
            found.energy = scaled / (inverse * inverse) + offsets;
        }
        if want.bound {
            let words: f64 = slots
                .iter()
                .zip(counts)
                .zip(&self.norms)
                .map(|((&slot, &n), &norm)| {
                    let m = f64::from(maxima[slot as usize]);
                    f64::from(n) * (f64::from(norm).ln() + inverse * m)
                })
                .sum();
            let alpha = spec.alpha;
            let prior = spec.topics as f64 * alpha;
            let total = prior + inverse * found.tokens;
            let psi_total = special::digamma(total);
            let log_alpha = special::lgamma(alpha);
            let mut divergence = special::lgamma(total) - special::lgamma(prior);
            for &gamma in &self.gamma[..self.columns(spec)] {
                let gamma = f64::from(gamma);
                if gamma > alpha {
                    divergence += log_alpha - special::lgamma(gamma)
                        + (gamma - alpha) * (special::digamma(gamma) - psi_total);
                }
            }
            found.bound = words - divergence;
        }
    }

    /// The local step with a temperature of the document's own, inferred with the topics.
    ///
    /// Begins with a few sweeps at `first`, whose rows `exp(first (Elogβ − m))` are given, and then alternates between
    /// r_m ∝ exp(s_m E[log p(w, z | θ, β)] − N log Σ_k E[θ_k^s] Σ_v E[β_kv^s]) and sweeps at τ = Σ_m r_m s_m. The second
    /// term bounds the log normaliser of the tempered likelihood of N tokens from above (Jensen); it is 0 at s = 1.
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
        let stride = padded(spec.topics);
        self.logs.clear();
        self.begin(spec, rows, slots, first, tokens);
        let few = spec.rule.max_iterations.min(4);
        let (mut sweeps, mut converged) = self.sweeps(spec, counts, first, tokens, few);
        self.count(spec, counts, first, out);
        let mut inverse = first;
        let mut found = Found::default();
        for round in 0..HEAT_ROUNDS {
            found = Found {
                inverse,
                tokens,
                ..Found::default()
            };
            let always = Want {
                energy: true,
                bound: want.bound,
            };
            self.measure(
                spec,
                heat.logs.maxima,
                slots,
                counts,
                always,
                &mut found,
                out,
            );
            let next = self.infer(spec, &heat, tokens, inverse, found.energy);
            let moved = (next - inverse).abs();
            if round > 0 && moved < HEAT_TOLERANCE {
                break;
            }
            inverse = next;
            if round == 0 {
                self.logs.resize(slots.len() * self.stride, 0.0);
                for (row, &slot) in self.logs.chunks_exact_mut(self.stride).zip(slots) {
                    let start = slot as usize * stride;
                    let values = &heat.logs.values[start..start + stride];
                    if self.active.is_empty() {
                        row.copy_from_slice(values);
                    } else {
                        for (x, &k) in row.iter_mut().zip(&self.active) {
                            *x = values[k as usize];
                        }
                        row[self.active.len()..].fill(-1e30);
                    }
                }
            }
            kernel::exp_scaled(spec.simd, &self.logs, inverse as f32, &mut self.rows);
            self.reheat(spec, inverse, tokens);
            let left = spec.rule.max_iterations;
            let (more, done) = self.sweeps(spec, counts, inverse, tokens, left);
            sweeps += more;
            converged = done;
            self.count(spec, counts, inverse, out);
        }
        found.sweeps = sweeps;
        found.converged = converged;
        found
    }

    /// Takes the present γ over to another inverse temperature: the same proportions of the tokens.
    fn reheat(&mut self, spec: &Spec, inverse: f64, tokens: f64) {
        let columns = self.columns(spec);
        let alpha = spec.alpha as f32;
        let held: f32 = self.gamma[..columns].iter().map(|g| g - alpha).sum();
        let factor = (inverse * tokens) as f32 / held.max(f32::MIN_POSITIVE);
        for gamma in &mut self.gamma[..columns] {
            *gamma = (*gamma - alpha).mul_add(factor, alpha);
        }
        let total = spec.topics as f64 * spec.alpha + inverse * tokens;
        let psi_total = special::digamma(total) as f32;
        kernel::weights(
            spec.simd,
            &self.gamma[..self.stride],
            inverse as f32,
            psi_total,
            &mut self.t[..self.stride],
        );
        self.t[columns..self.stride].fill(0.0);
    }

    /// E[1/T] of the document.
    fn infer(
        &mut self,
        spec: &Spec,
        heat: &LocalHeat<'_>,
        tokens: f64,
        inverse: f64,
        energy: f64,
    ) -> f64 {
        let width = heat.grid32.len();
        let columns = self.columns(spec);
        let alpha = spec.alpha as f32;
        self.powers.clear();
        // All topics as if unused, then the difference for the used ones.
        self.powers.resize(width, 0.0);
        kernel::add_gamma_ratios(
            spec.simd,
            alpha,
            1.0,
            heat.grid32,
            heat.power_total,
            &mut self.powers,
        );
        for column in 0..columns {
            let gamma = self.gamma[column];
            let topic = if self.active.is_empty() {
                column
            } else {
                self.active[column] as usize
            };
            // A share of a thousandth of a token cannot be seen in the sum.
            if gamma > alpha + 1e-3 {
                let g = &heat.powers[topic * width..(topic + 1) * width];
                kernel::add_gamma_ratios(spec.simd, gamma, 1.0, heat.grid32, g, &mut self.powers);
                kernel::add_gamma_ratios(spec.simd, alpha, -1.0, heat.grid32, g, &mut self.powers);
            }
        }
        let total = spec.topics as f64 * spec.alpha + inverse * tokens;
        let log_total = special::lgamma(total);
        self.r.clear();
        for (&s, &power) in heat.grid.iter().zip(&self.powers) {
            let theta = log_total - special::lgamma(total + s);
            let normaliser = tokens * (f64::from(power.max(f32::MIN_POSITIVE)).ln() + theta);
            self.r.push(s * energy - normaliser);
        }
        crate::policy::softmax(&mut self.r);
        let mean: f64 = self.r.iter().zip(heat.grid).map(|(r, s)| r * s).sum();
        mean.max(1e-3)
    }
}

/// What to compute beside the expected counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Want {
    /// [`Found::energy`].
    pub energy: bool,
    /// [`Found::bound`].
    pub bound: bool,
}
