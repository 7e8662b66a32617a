//! The unigram model, a baseline with a single topic for all documents.

use jensen_math::special::lgamma;

use super::settings::{Inference, LdaSettings};
use super::topics::Topics;
use crate::documents::{Bag, Documents};
use crate::plain::{Plain, all_the_first};

/// Fits a single topic to all documents.
pub fn unigram(documents: &dyn Documents, settings: &LdaSettings) -> Topics {
    let eta = settings.eta();
    let counts = counts(documents);
    Topics {
        topics: 1,
        terms: documents.terms(),
        inference: Inference::MeanField,
        alpha: vec![1.0],
        eta,
        lambda: counts.iter().map(|count| (eta + count) as f32).collect(),
        steps: 0,
        population: documents.len() as f64,
    }
}

/// Computes two bounds for a single topic, in nats. The first is the log evidence of a model with one topic. The second
/// is the bound of a model with several topics if one of them contains all words.
pub fn unigram_bounds(documents: &dyn Documents, settings: &LdaSettings) -> Plain {
    let (eta, counts) = (settings.eta(), counts(documents));
    let (words, total) = (counts.len() as f64 * eta, counts.iter().sum::<f64>());
    let terms = counts.iter().map(|count| lgamma(eta + count) - lgamma(eta));
    let bound = lgamma(words) - lgamma(words + total) + terms.sum::<f64>();
    let mut bag = Bag::new();
    let mut within = bound;
    for document in 0..documents.len() {
        documents.read(document, &mut bag);
        within += all_the_first(settings.topics, settings.alpha(), bag.tokens());
    }
    Plain { bound, within }
}

fn counts(documents: &dyn Documents) -> Vec<f64> {
    let mut counts = vec![0.0; documents.terms()];
    let mut bag = Bag::new();
    for document in 0..documents.len() {
        documents.read(document, &mut bag);
        let pairs = bag.terms.iter().zip(&bag.counts);
        pairs.for_each(|(term, count)| counts[*term as usize] += f64::from(*count));
    }
    counts
}
