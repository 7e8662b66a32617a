//! Fitted topics. They are the variational parameters of the word proportions.

use jensen_run::{Archive, ArchiveError, Snapshot};

use super::settings::Inference;

/// The fitted distribution q(β). Topic k has the distribution Dirichlet(λ_k·).
#[derive(Clone, Debug, PartialEq)]
pub struct Topics {
    /// Number K of topics.
    pub topics: usize,
    /// Number V of terms.
    pub terms: usize,
    /// The method of the local steps. The proportions of new documents are computed by the same method.
    pub inference: Inference,
    /// Dirichlet parameters of a document's topic proportions, one per topic.
    pub alpha: Vec<f64>,
    /// Symmetric Dirichlet parameter of a topic's word proportions.
    pub eta: f64,
    /// λ as a V × K array: `lambda[v * topics + k]`. Each element is at least η.
    pub lambda: Vec<f32>,
    /// Number of stochastic steps, including the steps of earlier fits.
    pub steps: u64,
    /// Number of documents that the statistics represent.
    pub population: f64,
}

impl Topics {
    /// Returns Σ_v λ_kv for every topic.
    pub fn totals(&self) -> Vec<f64> {
        let mut totals = vec![0.0; self.topics];
        for row in self.lambda.chunks_exact(self.topics) {
            for (total, &x) in totals.iter_mut().zip(row) {
                *total += f64::from(x);
            }
        }
        totals
    }

    /// Returns the mean Dirichlet parameter of topic proportions.
    pub fn mean_alpha(&self) -> f64 {
        match self.alpha.first() {
            Some(&first) if self.alpha.iter().all(|&alpha| alpha == first) => first,
            _ => self.alpha.iter().sum::<f64>() / self.topics as f64,
        }
    }

    /// Returns the expected proportion of a term in every topic, `E[β_kv]` = λ_kv / Σ_v λ_kv. `totals` is the result of
    /// [`totals`](Self::totals).
    pub fn proportions<'a>(
        &'a self,
        term: usize,
        totals: &'a [f64],
    ) -> impl Iterator<Item = f64> + 'a {
        self.lambda[term * self.topics..(term + 1) * self.topics]
            .iter()
            .zip(totals)
            .map(|(&x, total)| f64::from(x) / total)
    }

    /// Returns the `n` terms with the largest expected proportions in a topic, together with these proportions, in
    /// descending order.
    pub fn top_words(&self, topic: usize, n: usize) -> Vec<(u32, f64)> {
        // The column is copied, so that the numbers that the sort compares are adjacent in memory.
        let column = self.lambda.iter().skip(topic).step_by(self.topics);
        let column: Vec<f32> = column.copied().collect();
        let at = |term: usize| column[term];
        let total: f64 = column.iter().map(|&x| f64::from(x)).sum();
        let mut order: Vec<usize> = (0..self.terms).collect();
        let by_weight = |a: &usize, b: &usize| at(*b).total_cmp(&at(*a)).then(a.cmp(b));
        let n = n.min(self.terms);
        if n < order.len() {
            order.select_nth_unstable_by(n, by_weight);
            order.truncate(n);
        }
        order.sort_unstable_by(by_weight);
        order
            .into_iter()
            .map(|v| (v as u32, f64::from(at(v)) / total))
            .collect()
    }

    /// Returns the share of each topic in the expected tokens, which is Σ_v (λ_kv − η), normalised over topics.
    pub fn shares(&self) -> Vec<f64> {
        let prior = self.eta * self.terms as f64;
        let mut shares: Vec<f64> = self.totals().iter().map(|t| (t - prior).max(0.0)).collect();
        let total: f64 = shares.iter().sum();
        if total > 0.0 {
            shares.iter_mut().for_each(|s| *s /= total);
        }
        shares
    }
}

impl Snapshot for Topics {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.set("topics", self.topics);
        archive.set("terms", self.terms);
        archive.set("steps", self.steps);
        archive.set("inference", self.inference);
        archive.put("alpha", &self.alpha);
        archive.put("priors", &[self.mean_alpha(), self.eta, self.population]);
        let lambda = self.lambda.iter().map(|&x| f64::from(x)).collect();
        archive.put_tensor("lambda", vec![self.terms, self.topics], lambda);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let topics: usize = archive.get("topics")?;
        let terms: usize = archive.get("terms")?;
        let priors = archive.vec_of("priors", 3)?;
        let lambda = archive.vec_of("lambda", topics * terms)?;
        // Topics of earlier versions are mean-field topics with a single parameter α.
        let alpha = match archive.vec("alpha") {
            Ok(_) => archive.vec_of("alpha", topics)?,
            Err(_) => vec![priors[0]; topics],
        };
        Ok(Self {
            topics,
            terms,
            inference: archive.get("inference").unwrap_or_default(),
            alpha,
            eta: priors[1],
            lambda: lambda.into_iter().map(|x| x as f32).collect(),
            steps: archive.get("steps")?,
            population: priors[2],
        })
    }
}
