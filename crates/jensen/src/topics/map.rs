//! The map of topics: which of them use the same words, and the words that set each apart.

use jensen_math::dense::eigen_symmetric;
use jensen_report::{MappedTopic, TopicMap, TopicWord};

use super::TopicModel;

/// Topics on the map, the largest ones: the eigenvectors of a matrix of that size are computed.
const MAPPED: usize = 200;

/// Topics whose words are shown.
const SPELLED: usize = 60;

/// Words of a topic that are shown, and among how many of its most probable ones they are looked for.
const WORDS: usize = 20;
const CANDIDATES: usize = 400;

/// Weight of a word's probability in a topic against how much more probable it is there than elsewhere.
const RELEVANCE: f64 = 0.6;

/// The map of the largest topics of a model; none where there are fewer than three.
///
/// Places are those of classical scaling (Torgerson 1952) of the Hellinger distances between topics' distributions of words. Words
/// are ordered by their relevance with weight 0.6 (Sievert and Shirley, LDAvis, 2014): log p(w | topic) and log p(w | topic) / p(w).
/// Costs topics² × terms.
pub(super) fn topic_map(model: &TopicModel) -> Option<TopicMap> {
    let topics = &model.topics;
    let shares = topics.shares();
    let mut order: Vec<usize> = (0..topics.topics).collect();
    order.sort_by(|a, b| shares[*b].total_cmp(&shares[*a]).then(a.cmp(b)));
    order.truncate(MAPPED);
    if order.len() < 3 {
        return None;
    }
    let totals = topics.totals();
    let n = order.len();
    // Bhattacharyya coefficients, term by term; and the probabilities of terms over all topics.
    let mut affinities = vec![0.0; n * n];
    let mut overall = Vec::with_capacity(topics.terms);
    let mut roots = vec![0.0; n];
    for term in 0..topics.terms {
        let all: Vec<f64> = topics.proportions(term, &totals).collect();
        overall.push(
            all.iter()
                .zip(&shares)
                .map(|(p, share)| p * share)
                .sum::<f64>(),
        );
        for (root, topic) in roots.iter_mut().zip(&order) {
            *root = all[*topic].sqrt();
        }
        for i in 0..n {
            for j in 0..=i {
                affinities[i * n + j] += roots[i] * roots[j];
            }
        }
    }
    let places = scaled(&affinities, n);
    let spelled = |rank: usize, topic: usize| match rank < SPELLED {
        true => words(model, topic, shares[topic], &overall),
        false => Vec::new(),
    };
    let mapped = order.iter().zip(places).enumerate();
    Some(TopicMap {
        topics: mapped
            .map(|(rank, (topic, place))| MappedTopic {
                number: *topic,
                share: shares[*topic],
                place,
                words: spelled(rank, *topic),
            })
            .collect(),
    })
}

/// Places in the plane whose distances are nearest to 1 − affinity, the squared Hellinger distance; of the lower triangle.
fn scaled(affinities: &[f64], n: usize) -> Vec<(f64, f64)> {
    let squared = |i: usize, j: usize| {
        let (i, j) = (i.max(j), i.min(j));
        if i == j {
            0.0
        } else {
            (1.0 - affinities[i * n + j]).max(0.0)
        }
    };
    let means: Vec<f64> = (0..n)
        .map(|i| (0..n).map(|j| squared(i, j)).sum::<f64>() / n as f64)
        .collect();
    let mean = means.iter().sum::<f64>() / n as f64;
    let centred: Vec<f64> = (0..n * n)
        .map(|at| -0.5 * (squared(at / n, at % n) - means[at / n] - means[at % n] + mean))
        .collect();
    let (values, vectors) = eigen_symmetric(&centred, n);
    let axis = |rank: usize, i: usize| {
        let at = n - 1 - rank;
        values[at].max(0.0).sqrt() * vectors[at * n + i]
    };
    (0..n).map(|i| (axis(0, i), axis(1, i))).collect()
}

/// The most relevant words of a topic.
fn words(model: &TopicModel, topic: usize, share: f64, overall: &[f64]) -> Vec<TopicWord> {
    let mut found: Vec<(f64, u32, f64)> = (model.topics.top_words(topic, CANDIDATES).into_iter())
        .map(|(term, p)| {
            let lift = (p / overall[term as usize]).ln();
            (RELEVANCE * p.ln() + (1.0 - RELEVANCE) * lift, term, p)
        })
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    found.truncate(WORDS);
    let spelled = found.into_iter().map(|(_, term, p)| TopicWord {
        word: model.words[term as usize].clone(),
        within: share * p,
        overall: overall[term as usize],
    });
    spelled.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_of_the_same_words_stand_together() {
        // Affinities of three topics: the first two are alike, the third has other words.
        let affinities = [1.0, 0.0, 0.0, 0.95, 1.0, 0.0, 0.0, 0.0, 1.0];
        let places = scaled(&affinities, 3);
        let apart = |i: usize, j: usize| {
            let ((a, b), (c, d)) = (places[i], places[j]);
            (a - c).hypot(b - d)
        };
        // In a plane three points have any distances.
        assert!((apart(0, 1) - 0.05f64.sqrt()).abs() < 1e-12);
        assert!((apart(0, 2) - 1.0).abs() < 1e-12 && (apart(1, 2) - 1.0).abs() < 1e-12);
    }
}
