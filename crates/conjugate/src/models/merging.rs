//! Merges of components of a Dirichlet process mixture.
//!
//! Coordinate ascent seldom empties a component that shares its points with others. So after it has converged,
//! components are merged as long as a merge raises the bound of points that are assigned with certainty. For such points,
//! the bound of a mixture is Σ [a(λ) − a(prior)] over all blocks, where the statistics of a merged component are the sum
//! of the statistics of both. The driver then continues from there, and keeps the better result.

use crate::family::ExponentialFamily;
use crate::models::components::Components;
use crate::models::mixture::Mixture;
use crate::models::predictive::normaliser;

/// Components with fewer points than this count as empty.
const EMPTY: f64 = 0.5;

impl<C: Components> Mixture<C> {
    /// Merges the pair of components with the largest gain until no merge raises the bound. Returns whether components
    /// were merged.
    pub(super) fn merge_parts(&self, lambda: &mut [f64]) -> bool {
        let mut any = false;
        while let Some(pair) = self.best_merge(lambda) {
            self.move_points(lambda, pair);
            any = true;
        }
        any
    }

    fn best_merge(&self, lambda: &[f64]) -> Option<(usize, usize)> {
        let counts = self.counts(lambda);
        let held: Vec<usize> = (0..self.k).filter(|k| counts[*k] >= EMPTY).collect();
        let shared = self.components().own(self.width) < self.width;
        let families: Vec<ExponentialFamily> =
            self.components().prior().iter().map(|p| p.0).collect();
        let alone = |part: &[f64]| normaliser(&families, part).0;
        let whole = |lambda: &[f64]| normaliser(&self.part_families(), &lambda[self.k..]).0;
        let now = if shared { whole(lambda) } else { 0.0 };
        let own: Vec<f64> = match shared {
            true => Vec::new(),
            false => (0..self.k)
                .map(|k| alone(self.component(lambda, k)))
                .collect(),
        };
        let empty = alone(self.component(self.blocks.prior(), 0));
        let weights = self.weight_normaliser(&counts);
        let mut best = (0.0, None);
        for (at, &i) in held.iter().enumerate() {
            for &j in &held[at + 1..] {
                let mut merged = counts.clone();
                (merged[i], merged[j]) = (counts[i] + counts[j], 0.0);
                let mut gain = self.weight_normaliser(&merged) - weights;
                if shared {
                    let mut moved = lambda.to_vec();
                    self.move_points(&mut moved, (i, j));
                    gain += whole(&moved) - now;
                } else {
                    let prior = self.component(self.blocks.prior(), j);
                    let pair = self
                        .component(lambda, i)
                        .iter()
                        .zip(self.component(lambda, j));
                    let sum: Vec<f64> = pair.zip(prior).map(|((x, y), p)| x + y - p).collect();
                    gain += alone(&sum) + empty - own[i] - own[j];
                }
                if gain > best.0 {
                    best = (gain, Some((i, j)));
                }
            }
        }
        best.1
    }

    /// Returns the families of all components.
    fn part_families(&self) -> Vec<ExponentialFamily> {
        let priors = self.components().priors(self.k);
        priors.into_iter().map(|(family, _)| family).collect()
    }

    /// Returns the log normaliser of the sticks if components with these numbers of points are in the best order.
    fn weight_normaliser(&self, counts: &[f64]) -> f64 {
        let mut sorted = counts.to_vec();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let prior = self.blocks.prior().iter();
        sorted
            .iter_mut()
            .zip(prior)
            .for_each(|(count, p)| *count += p);
        let mut unused = vec![0.0; self.k];
        ExponentialFamily::Sticks { n: self.k }.moments(&sorted, &mut unused)
    }

    /// Moves the points of the second component to the first one.
    fn move_points(&self, lambda: &mut [f64], (into, from): (usize, usize)) {
        let prior = self.blocks.prior();
        let start = |k: usize| self.k + k * self.width;
        let parts = (0..self.width).map(|at| (start(into) + at, start(from) + at));
        for (into, from) in std::iter::once((into, from)).chain(parts) {
            lambda[into] += lambda[from] - prior[from];
            lambda[from] = prior[from];
        }
    }
}
