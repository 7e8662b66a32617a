//! Hidden Markov models. Their states emit rows, and the distribution of the rows may be that of any mixture component.
//! A data point is a whole sequence, and its local step is the forward–backward algorithm.

use std::ops::Range;

use jensen_math::rng::Stream;

use crate::family::{Blocks, ExponentialFamily};
use crate::model::{ConjugateModel, Local};
use crate::models::components::{Completed, Components};
use crate::models::seeding::seeded;
use crate::plain::{Plain, all_the_first, alone};
use crate::pointwise::{VectorGlobals, untempered_bound};

/// Sequences with K hidden states, each of which emits rows like a component of a mixture. The distribution of the
/// first state and each row of the transition matrix have Dirichlet priors.
pub struct HiddenMarkov<C> {
    emissions: C,
    /// The index of the first row of each sequence, followed by the end of the last sequence.
    starts: Vec<usize>,
    k: usize,
    width: usize,
    blocks: Blocks,
    /// The known state of every row, or nothing if no state is known.
    labels: Vec<Option<usize>>,
}

/// The marginals of q for the sequence of the last local step.
#[derive(Clone, Debug, Default)]
pub struct ChainScratch {
    /// The marginals q(z_t = k), with one row per step.
    pub states: Vec<f64>,
    /// Expected numbers of transitions, Σ_t q(z_t = i, z_{t+1} = j).
    pub transitions: Vec<f64>,
    /// The arguments of the last local step.
    expected: Vec<f64>,
    inverse: f64,
    emission: Vec<f64>,
    weight: Vec<f64>,
    forward: Vec<f64>,
    backward: Vec<f64>,
}

impl ChainScratch {
    fn clear(&mut self, steps: usize, k: usize) {
        let zeros = |v: &mut Vec<f64>, n: usize| {
            v.clear();
            v.resize(n, 0.0);
        };
        for v in [
            &mut self.emission,
            &mut self.weight,
            &mut self.forward,
            &mut self.backward,
            &mut self.states,
        ] {
            zeros(v, steps * k);
        }
        zeros(&mut self.transitions, k * k);
    }

    /// Makes the forward pass and normalises each row. Returns the sum of the logarithms of the normalisers.
    fn forward(&mut self, begin: &[f64], next: &[f64]) -> f64 {
        let k = begin.len();
        let mut log_scale = 0.0;
        for t in 0..self.forward.len() / k {
            let (before, here) = self.forward.split_at_mut(t * k);
            let here = &mut here[..k];
            for (j, f) in here.iter_mut().enumerate() {
                let prior = if t == 0 {
                    begin[j]
                } else {
                    let row = &before[(t - 1) * k..];
                    row.iter()
                        .enumerate()
                        .map(|(i, f)| f * next[i * k + j])
                        .sum()
                };
                *f = prior * self.weight[t * k + j];
            }
            let total: f64 = here.iter().sum();
            log_scale += total.ln();
            here.iter_mut().for_each(|f| *f /= total);
        }
        log_scale
    }

    fn backward(&mut self, next: &[f64]) {
        let k = next.len().isqrt();
        let steps = self.backward.len() / k;
        for t in (0..steps).rev() {
            let (here, after) = self.backward.split_at_mut((t + 1) * k);
            let here = &mut here[t * k..];
            if t + 1 == steps {
                here.fill(1.0);
                continue;
            }
            for (i, b) in here.iter_mut().enumerate() {
                *b = (0..k)
                    .map(|j| next[i * k + j] * self.weight[(t + 1) * k + j] * after[j])
                    .sum();
            }
            let total: f64 = here.iter().sum();
            here.iter_mut().for_each(|b| *b /= total);
        }
    }

    fn marginals(&mut self, next: &[f64]) {
        let k = next.len().isqrt();
        let steps = self.states.len() / k;
        let mut pair = vec![0.0; k * k];
        for t in 0..steps {
            let row = t * k..(t + 1) * k;
            let states = &mut self.states[row.clone()];
            let both = self.forward[row.clone()].iter().zip(&self.backward[row]);
            for (q, (f, b)) in states.iter_mut().zip(both) {
                *q = f * b;
            }
            let total: f64 = states.iter().sum();
            states.iter_mut().for_each(|q| *q /= total);
            if t + 1 == steps {
                break;
            }
            for (i, row) in pair.chunks_exact_mut(k).enumerate() {
                for (j, x) in row.iter_mut().enumerate() {
                    *x = self.forward[t * k + i]
                        * next[i * k + j]
                        * self.weight[(t + 1) * k + j]
                        * self.backward[(t + 1) * k + j];
                }
            }
            let total: f64 = pair.iter().sum();
            for (sum, x) in self.transitions.iter_mut().zip(&pair) {
                *sum += x / total;
            }
        }
    }
}

impl<C: Components> HiddenMarkov<C> {
    /// Creates chains over the rows of `emissions`. Sequence i consists of the rows `starts[i]..starts[i + 1]`.
    /// `starts` must begin with 0, ascend, and end with the number of rows.
    ///
    /// # Errors
    /// Fails if `starts` does not meet these conditions.
    pub fn new(
        emissions: C,
        starts: Vec<usize>,
        k: usize,
        concentration: f64,
    ) -> Result<Self, String> {
        let ascending = starts.windows(2).all(|pair| pair[0] <= pair[1]);
        if starts.first() != Some(&0) || starts.last() != Some(&emissions.points()) || !ascending {
            return Err(
                "the starts of sequences must ascend from 0 to the number of rows".to_owned(),
            );
        }
        let mut blocks = Blocks::default();
        for _ in 0..=k {
            blocks.push(
                ExponentialFamily::Dirichlet { n: k },
                &vec![concentration; k],
            );
        }
        for (family, parameters) in emissions.priors(k) {
            blocks.push(family, &parameters);
        }
        let prior = emissions.prior();
        Ok(Self {
            width: prior.iter().map(|(family, _)| family.len()).sum(),
            emissions,
            starts,
            k,
            blocks,
            labels: Vec::new(),
        })
    }

    /// Restricts rows to known states. `labels` contains the state of every row, or `None` if it is unknown.
    ///
    /// # Errors
    /// Fails if there is not one element for each row, or if a state is not below the number of states.
    pub fn with_labels(self, labels: Vec<Option<usize>>) -> Result<Self, String> {
        let known = labels.iter().flatten().all(|state| *state < self.k);
        if !known || !(labels.is_empty() || labels.len() == self.emissions.points()) {
            return Err("the known states must be among the states, one for each row".to_owned());
        }
        Ok(Self { labels, ..self })
    }

    /// Returns whether a row may be in a state.
    fn allows(&self, row: usize, state: usize) -> bool {
        let known = self.labels.get(row).copied().flatten();
        known.is_none_or(|known| known == state)
    }

    /// Returns the bounds of q if every row has the state of the last known row of its sequence, or of the next one if
    /// there is none before.
    fn carried(&self) -> f64 {
        let k = self.k;
        let mut lambda = self.blocks.prior().to_vec();
        for pair in self.starts.windows(2) {
            let rows = pair[0]..pair[1];
            let first = rows.clone().find_map(|row| self.labels[row]);
            let mut before = None;
            for row in rows {
                let state = self.labels[row].or(before).or(first).unwrap_or(0);
                match before {
                    None => lambda[state] += 1.0,
                    Some(before) => lambda[k + before * k + state] += 1.0,
                }
                let part = self.parts()[state].clone();
                self.emissions.add(row, 1.0, &mut lambda[part]);
                before = Some(state);
            }
        }
        let memory = Vec::new();
        untempered_bound(self, &VectorGlobals { lambda, memory })
    }

    /// Replaces the start of every state with known rows by the mean of these rows and of all rows.
    fn start_at_labels(&self, share: f64, lambda: &mut [f64]) {
        for (state, part) in self.parts().into_iter().enumerate() {
            let of = |row: &usize| self.labels.get(*row).copied().flatten() == Some(state);
            let rows: Vec<usize> = (0..self.labels.len()).filter(of).collect();
            if rows.is_empty() {
                continue;
            }
            let here = &mut lambda[part.clone()];
            here.copy_from_slice(&self.blocks.prior()[part]);
            let all = self.emissions.points() as f64;
            self.emissions.add_all(0.5 * share / all, here);
            let weight = 0.5 * share / rows.len() as f64;
            rows.iter()
                .for_each(|row| self.emissions.add(*row, weight, here));
        }
    }

    /// Returns the number of states k of chains whose natural parameters are `lambda`. λ has k + k² + k · (parameters
    /// of a state) elements.
    pub fn states_of(emissions: &C, lambda: &[f64]) -> usize {
        let prior = emissions.prior();
        let width: usize = prior.iter().map(|(family, _)| family.len()).sum();
        let half = 0.5 * (1 + width) as f64;
        (half.mul_add(half, lambda.len() as f64).sqrt() - half).round() as usize
    }

    /// Returns the emissions together with their data.
    pub fn emissions(&self) -> &C {
        &self.emissions
    }

    /// Returns the expected probabilities of the first state.
    pub fn initial(&self, lambda: &[f64]) -> Vec<f64> {
        let total: f64 = lambda[..self.k].iter().sum();
        lambda[..self.k].iter().map(|x| x / total).collect()
    }

    /// Returns the expected transition probabilities, with one row per state.
    pub fn transitions(&self, lambda: &[f64]) -> Vec<f64> {
        let rows = &lambda[self.k..self.k + self.k * self.k];
        rows.chunks_exact(self.k)
            .flat_map(|row| {
                let total: f64 = row.iter().sum();
                row.iter().map(move |x| x / total)
            })
            .collect()
    }

    /// Computes the most probable path of a sequence's states under q by Viterbi's algorithm. q is proportional to the
    /// exponential of the expected log density, where `expected` contains the expectations of t(β).
    pub fn path(&self, expected: &[f64], point: usize) -> Vec<usize> {
        let k = self.k;
        let (first, last) = (self.starts[point], self.starts[point + 1]);
        let mut unused = Vec::new();
        let mut emission = |t: usize, i: usize| {
            if !self.allows(first + t, i) {
                return f64::NEG_INFINITY;
            }
            unused.clear();
            self.emitted(self.state(expected, i), first + t, 1.0, &mut unused)
                .0
                .log_integral
        };
        let steps = last - first;
        // The previous state on the best path to each state, with one row per step.
        let mut before = vec![0; steps * k];
        let mut best: Vec<f64> = Vec::new();
        for t in 0..steps {
            best = (0..k)
                .map(|j| {
                    let reached = match t {
                        0 => expected[j],
                        _ => {
                            let through = |i: usize| best[i] + expected[k + i * k + j];
                            let from = largest((0..k).map(through));
                            before[t * k + j] = from;
                            through(from)
                        }
                    };
                    reached + emission(t, j)
                })
                .collect();
        }
        let mut path = vec![0; steps];
        let mut state = largest(best.into_iter());
        for t in (0..steps).rev() {
            path[t] = state;
            state = before[t * k + state];
        }
        path
    }

    /// Returns the natural parameters of the marginal distribution of a state's emissions (see
    /// [`Components::marginal`]).
    pub fn marginal(&self, lambda: &[f64], k: usize) -> Vec<f64> {
        let all = &lambda[self.k + self.k * self.k..];
        self.emissions.marginal(all, self.width, k)
    }

    /// Integrates out the latent and missing values of a row given its state. Appends their expected statistics to
    /// `statistics`, and returns whether there are such values.
    fn emitted(
        &self,
        t: &[f64],
        row: usize,
        inverse: f64,
        statistics: &mut Vec<f64>,
    ) -> (Completed, bool) {
        match self.emissions.complete(t, row, inverse, statistics) {
            Some(completed) => (completed, true),
            None => {
                let energy = self.emissions.log_density(t, row);
                let log_integral = inverse * energy;
                (
                    Completed {
                        log_integral,
                        energy,
                    },
                    false,
                )
            }
        }
    }

    /// Returns the part of λ or t that belongs to a state's emissions.
    pub fn state<'a>(&self, vector: &'a [f64], k: usize) -> &'a [f64] {
        let start = self.k + self.k * self.k + k * self.width;
        &vector[start..start + self.width]
    }
}

impl<C: Components> ConjugateModel for HiddenMarkov<C> {
    type Scratch = ChainScratch;

    fn name(&self) -> &'static str {
        "hidden-markov"
    }

    fn points(&self) -> usize {
        self.starts.len() - 1
    }

    fn size(&self, point: usize) -> f64 {
        (self.starts[point + 1] - self.starts[point]) as f64
    }

    fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    fn plain(&self) -> Option<Plain> {
        if self.labels.iter().any(Option::is_some) {
            let bound = self.carried();
            let within = bound;
            return Some(Plain { bound, within });
        }
        let concentration = self.blocks.prior()[0];
        let starts = self.starts.clone();
        let one = HiddenMarkov::new(&self.emissions, starts, 1, concentration).ok()?;
        let lengths = self.starts.windows(2).map(|pair| pair[1] - pair[0]);
        let sequences = lengths.filter(|length| *length > 0).count() as f64;
        let moves = self.emissions.points() as f64 - sequences;
        let share = |count| all_the_first(self.k, concentration, count);
        let bound = alone(&one);
        let within = bound + share(sequences) + share(moves);
        Some(Plain { bound, within })
    }

    fn log_jacobian(&self) -> f64 {
        self.emissions.log_jacobian()
    }

    fn start(&self, stream: &mut Stream) -> Vec<f64> {
        let k = self.k;
        let mut lambda = self.blocks.prior().to_vec();
        let share = self.emissions.points() as f64 / k as f64;
        for i in 0..k {
            // In the start, states are persistent, which distinguishes them from mixture components.
            let row = &mut lambda[k + i * k..k + (i + 1) * k];
            row.iter_mut().for_each(|x| *x += 0.5 * share / k as f64);
            row[i] += 0.5 * share;
        }
        lambda[k + k * k..].copy_from_slice(&seeded(&self.emissions, k, &[], stream));
        self.start_at_labels(share, &mut lambda);
        lambda
    }

    fn lean(&self) -> f64 {
        self.emissions.lean()
    }

    /// Returns ranges that contain only the emissions. States with equal emissions therefore count as equal even if
    /// their transitions differ.
    fn parts(&self) -> Vec<Range<usize>> {
        let start = |i: usize| self.k + self.k * self.k + i * self.width;
        (0..self.k).map(|i| start(i)..start(i + 1)).collect()
    }

    fn own_parameters(&self) -> usize {
        self.emissions.own(self.width)
    }

    fn local(
        &self,
        expected: &[f64],
        point: usize,
        inverse: f64,
        _memory: &mut [f64],
        scratch: &mut ChainScratch,
    ) -> Local {
        let k = self.k;
        let (first, last) = (self.starts[point], self.starts[point + 1]);
        let steps = last - first;
        scratch.clear(steps, k);
        scratch.expected.clear();
        scratch.expected.extend_from_slice(expected);
        scratch.inverse = inverse;
        let mut unused = Vec::new();
        let (log_first, rest) = expected.split_at(k);
        let log_next = &rest[..k * k];
        let begin: Vec<f64> = log_first.iter().map(|x| (inverse * x).exp()).collect();
        let next: Vec<f64> = log_next.iter().map(|x| (inverse * x).exp()).collect();
        let mut log_z = 0.0;
        for t in 0..steps {
            let emission = &mut scratch.emission[t * k..(t + 1) * k];
            let weight = &mut scratch.weight[t * k..(t + 1) * k];
            for (i, (e, w)) in emission.iter_mut().zip(weight.iter_mut()).enumerate() {
                unused.clear();
                let own = self.state(expected, i);
                let found = self.emitted(own, first + t, inverse, &mut unused).0;
                (*e, *w) = (found.energy, found.log_integral);
            }
            let forbidden = (0..k).filter(|i| !self.allows(first + t, *i));
            forbidden.for_each(|i| weight[i] = f64::NEG_INFINITY);
            let largest = weight.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            log_z += largest;
            weight.iter_mut().for_each(|w| *w = (*w - largest).exp());
        }
        log_z += scratch.forward(&begin, &next);
        scratch.backward(&next);
        scratch.marginals(&next);
        // `zip` stops at the end of the shorter operand, so only the first row of the states is combined with the
        // probabilities of the first state.
        let sum = |q: &[f64], log: &[f64]| -> f64 { q.iter().zip(log).map(|(q, l)| q * l).sum() };
        let energy = sum(&scratch.states, &scratch.emission)
            + sum(&scratch.states, log_first)
            + sum(&scratch.transitions, log_next);
        Local {
            energy,
            entropy: log_z - inverse * energy,
            sweeps: 1,
            converged: true,
        }
    }

    fn add_statistics(&self, point: usize, weight: f64, scratch: &ChainScratch, out: &mut [f64]) {
        let k = self.k;
        let first = self.starts[point];
        for (o, q) in out.iter_mut().zip(&scratch.states[..k]) {
            *o += weight * q;
        }
        for (o, q) in out[k..].iter_mut().zip(&scratch.transitions) {
            *o += weight * q;
        }
        // The statistics of latent values are computed again, because those of all steps and states may need much memory.
        let mut statistics = Vec::new();
        for (t, row) in scratch.states.chunks_exact(k).enumerate() {
            for (i, q) in row.iter().enumerate() {
                let start = k + k * k + i * self.width;
                let here = &mut out[start..start + self.width];
                statistics.clear();
                let own = self.state(&scratch.expected, i);
                let completed =
                    self.emissions
                        .complete(own, first + t, scratch.inverse, &mut statistics);
                match completed {
                    None => self.emissions.add(first + t, weight * q, here),
                    Some(_) => here
                        .iter_mut()
                        .zip(&statistics)
                        .for_each(|(o, s)| *o += weight * q * s),
                }
            }
        }
    }

    fn log_normaliser(&self, t: &[f64], size: f64, s: f64) -> f64 {
        let k = self.k;
        let emission: Vec<f64> = (0..k)
            .map(|i| self.emissions.log_power(self.state(t, i), 1.0, s))
            .collect();
        let mut forward: Vec<f64> = (0..k).map(|i| s * t[i] + emission[i]).collect();
        for _ in 1..size as usize {
            forward = (0..k)
                .map(|j| {
                    let logs: Vec<f64> =
                        (0..k).map(|i| forward[i] + s * t[k + i * k + j]).collect();
                    jensen_math::special::log_sum_exp_slice(&logs) + emission[j]
                })
                .collect();
        }
        jensen_math::special::log_sum_exp_slice(&forward)
    }

    fn partition_is_finite(&self) -> bool {
        self.emissions.partition_is_finite()
    }
}

/// Returns the index of the largest number. If several numbers are equally large, returns the index of the first.
fn largest(numbers: impl Iterator<Item = f64>) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for (i, x) in numbers.enumerate() {
        if x > best.1 {
            best = (i, x);
        }
    }
    best.0
}
