//! Removes topics of a hierarchical Dirichlet process whose words other topics explain.
//!
//! Local steps keep two topics with the same words apart, because every document uses them in the ratio of their α. They
//! also keep a topic that mixes the words of two others, for documents that use both. The words of topic k have the log
//! evidence f(m) = log Γ(Vη) − log Γ(Vη + Σ_v m_v) + Σ_v [log Γ(η + m_v) − log Γ(η)] at their present expected counts m.
//! As words of a mixture of other topics, they have the log probability Σ_v m_v log Σ_j w_j E β_jv. If the second number
//! is larger for the best weights w, topic k is redundant, and the other topics take its counts. This is the comparison
//! of one component more or less in a mixture whose documents are the words of topic k. It leaves out the topic
//! proportions of the documents, whose evidence changes by about a nat for each document that uses the topic, whereas
//! the number of parameters that a removed topic saves is that of its words (the merges of Bryant and Sudderth, *Truly
//! nonparametric online variational inference for hierarchical Dirichlet processes*, 2012, are the case of one weight).

use jensen_math::simd::Simd;
use jensen_math::special;
use jensen_math::vmath::slices;
use rayon::prelude::*;

use super::globals::LdaGlobals;

/// The number of other topics in the mixture. They are those with the largest cosine.
const NEAREST: usize = 10;

/// Largest number of iterations of expectation maximisation for the weights.
const ITERATIONS: usize = 50;

/// Number of iterations between two comparisons with the largest log probability that any weights can reach.
const CHECKED: usize = 5;

/// A topic with fewer expected tokens than this is empty.
const LEAST: f64 = 1e-3;

/// Topics that take over the counts of a topic, with their weights.
type Successors = Vec<(usize, f64)>;

struct Columns<'a> {
    globals: &'a LdaGlobals,
    simd: Simd,
    /// The expected counts of each topic, or an empty column for an empty topic.
    counts: Vec<Vec<f64>>,
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Columns<'_> {
    fn evidence(&self, counts: &[f64]) -> f64 {
        let (eta, terms) = (self.globals.eta, self.globals.terms as f64);
        let shifted: Vec<f64> = counts.iter().map(|m| eta + m).collect();
        let mut logs = vec![0.0; shifted.len()];
        slices::lgamma(self.simd, &shifted, &mut logs);
        let prior = special::lgamma(terms * eta) - terms * special::lgamma(eta);
        prior - special::lgamma(terms * eta + counts.iter().sum::<f64>()) + logs.iter().sum::<f64>()
    }

    fn proportions(&self, topic: usize) -> Vec<f64> {
        let (eta, counts) = (self.globals.eta, &self.counts[topic]);
        let total = eta * self.globals.terms as f64 + counts.iter().sum::<f64>();
        counts.iter().map(|m| (eta + m) / total).collect()
    }

    fn nearest(&self, topic: usize) -> Vec<usize> {
        let own = &self.counts[topic];
        let others = (0..self.counts.len()).into_par_iter();
        let others = others.filter(|&k| k != topic && !self.counts[k].is_empty());
        let mut near: Vec<(f64, usize)> = others
            .map(|k| {
                let other = &self.counts[k];
                (product(own, other) / product(other, other).sqrt(), k)
            })
            .collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        near.truncate(NEAREST);
        near.into_iter().map(|(_, k)| k).collect()
    }

    /// Returns the topics that explain the words of a topic better than the topic itself, with their weights.
    fn successors(&self, topic: usize) -> Option<Successors> {
        let near = self.nearest(topic);
        if near.is_empty() {
            return None;
        }
        let counts = &self.counts[topic];
        let tokens: f64 = counts.iter().sum();
        let own = self.evidence(counts);
        let rows: Vec<Vec<f64>> = near.iter().map(|&k| self.proportions(k)).collect();
        let mut weights = vec![1.0 / near.len() as f64; near.len()];
        let mut mixture = vec![0.0; counts.len()];
        let mut logs = mixture.clone();
        let mut best = f64::NEG_INFINITY;
        for iteration in 1..=ITERATIONS {
            mixture.fill(0.0);
            for (weight, row) in weights.iter().zip(&rows) {
                mixture
                    .iter_mut()
                    .zip(row)
                    .for_each(|(sum, x)| *sum += weight * x);
            }
            let ratios: Vec<f64> = counts.iter().zip(&mixture).map(|(m, x)| m / x).collect();
            let factors: Vec<f64> = rows
                .iter()
                .map(|row| product(row, &ratios) / tokens)
                .collect();
            if iteration % CHECKED == 0 || iteration == ITERATIONS {
                slices::log(self.simd, &mixture, &mut logs);
                best = product(counts, &logs);
                // The log probability is concave in the weights, so its gradient bounds it.
                let largest = factors.iter().copied().fold(0.0, f64::max);
                if best + tokens * largest.ln() <= own {
                    return None;
                }
            }
            weights
                .iter_mut()
                .zip(&factors)
                .for_each(|(weight, factor)| *weight *= factor);
        }
        (best > own).then(|| near.into_iter().zip(weights).collect())
    }
}

/// Removes redundant topics, the smallest first. Returns their number.
pub(crate) fn remove(globals: &mut LdaGlobals, simd: Simd) -> usize {
    let mut order: Vec<usize> = (0..globals.topics)
        .filter(|&k| globals.decay * globals.totals[k] > LEAST)
        .collect();
    let value = |m: &f32| (globals.decay * f64::from(*m)).max(0.0);
    let column = |k: usize| match order.contains(&k) {
        true => globals.mass[k..]
            .iter()
            .step_by(globals.stride)
            .map(value)
            .collect(),
        false => Vec::new(),
    };
    let counts: Vec<Vec<f64>> = (0..globals.topics).into_par_iter().map(column).collect();
    order.sort_by(|a, b| globals.totals[*a].total_cmp(&globals.totals[*b]));
    let mut columns = Columns {
        globals,
        simd,
        counts,
    };
    let mut removed = Vec::new();
    for topic in order {
        let Some(successors) = columns.successors(topic) else {
            continue;
        };
        let rows: Vec<Vec<f64>> = successors
            .iter()
            .map(|successor| columns.proportions(successor.0))
            .collect();
        let own = std::mem::take(&mut columns.counts[topic]);
        for (term, count) in own.into_iter().enumerate() {
            let weights = successors
                .iter()
                .zip(&rows)
                .map(|(successor, row)| successor.1 * row[term]);
            let total: f64 = weights.clone().sum();
            for (successor, weight) in successors.iter().zip(weights) {
                columns.counts[successor.0][term] += count * weight / total;
            }
        }
        removed.push((topic, successors));
    }
    let counts = columns.counts;
    for (topic, successors) in &removed {
        globals.write(*topic, &vec![0.0; globals.terms]);
        if let Some(process) = &mut globals.process {
            process.remove(*topic, successors);
        }
    }
    let mut changed: Vec<usize> = removed
        .iter()
        .flat_map(|(_, successors)| successors)
        .map(|successor| successor.0)
        .collect();
    changed.sort_unstable();
    changed.dedup();
    changed.retain(|&k| !counts[k].is_empty());
    changed.iter().for_each(|&k| globals.write(k, &counts[k]));
    removed.len()
}

impl LdaGlobals {
    /// Sets the expected counts of a topic.
    fn write(&mut self, topic: usize, counts: &[f64]) {
        let rows = self.mass.chunks_exact_mut(self.stride);
        for (row, count) in rows.zip(counts) {
            row[topic] = (count / self.decay) as f32;
        }
        self.totals[topic] = counts.iter().sum::<f64>() / self.decay;
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel::padded;
    use super::super::process::Process;
    use super::*;

    #[test]
    fn topics_that_others_explain_are_removed_and_no_token_is_lost() {
        // Topics 0 and 3 use words 0 to 19, topics 1 and 2 use words 20 to 39, topic 4 uses a third of the words of each
        // of both, and topic 5 uses all words in the same proportions as topics 0 and 1 together. Topic 6 is empty.
        let (topics, terms) = (7, 40);
        let stride = padded(topics);
        let mut mass = vec![0.0f32; terms * stride];
        for v in 0..terms {
            let count = 40.0 + ((7 * v) % 9) as f32;
            let own = [v < 20, v >= 20, v >= 20, v < 20, v % 3 == 0, true, false];
            for (k, own) in own.into_iter().enumerate() {
                let size = [8.0, 8.0, 2.0, 2.0, 4.0, 1.0, 0.0][k];
                mass[v * stride + k] = if own { size * count } else { 0.0 };
            }
        }
        let mut globals = LdaGlobals::of_mass(vec![0.1; topics], terms, 0.05, mass.clone());
        globals.shrink(0.5);
        let mut process = Process::new(topics);
        process.step(1.0, 1.0, &[0.1; 7], &[10.0; 8]);
        let (tables, total) = (process.tables(), globals.totals.iter().sum::<f64>());
        globals.process = Some(process);
        assert_eq!(remove(&mut globals, Simd::detect()), 3);
        for (k, held) in [
            (0, true),
            (1, true),
            (2, false),
            (3, false),
            (4, true),
            (5, false),
        ] {
            assert_eq!(globals.totals[k] > 0.0, held, "{k}");
        }
        assert!((globals.totals.iter().sum::<f64>() / total - 1.0).abs() < 1e-9);
        let held: f32 = globals.mass.iter().sum();
        assert!((f64::from(held) / total - 1.0).abs() < 1e-5);
        // Topic 4 has other words, and keeps them.
        let fourth = |mass: &[f32]| {
            mass[4..]
                .iter()
                .step_by(stride)
                .copied()
                .collect::<Vec<f32>>()
        };
        let pairs = fourth(&mass).into_iter().zip(fourth(&globals.mass));
        assert!(pairs.clone().all(|(before, after)| after >= 0.999 * before));
        let after = globals.process.as_ref().unwrap().tables();
        assert!((after.iter().sum::<f64>() / tables.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert_eq!((after[2], after[3], after[5]), (0.0, 0.0, 0.0));
        assert_eq!(remove(&mut globals, Simd::detect()), 0);
    }
}
