//! Example documents for the report. Each document is an example of a topic that has a large share of the words in this
//! document.

use jensen_conjugate::documents::{Bag, Documents};
use jensen_conjugate::lda::{LocalRule, Predictor};
use jensen_math::simd::Simd;
use jensen_report::Exhibit;

use super::TopicModel;

const LOOKED_AT: usize = 2000;
/// The number of groups of documents in the sample. The groups are evenly spaced among the training documents.
const GROUPS: usize = 20;

/// The stopping rule of the local step. The step may stop early, because the report rounds the shares to whole
/// percentages.
const RULE: LocalRule = LocalRule {
    tolerance: 1e-3,
    max_iterations: 100,
};

/// The minimum number of tokens of an example document. In a shorter document, the share of a topic depends mainly on
/// the prior.
const TOKENS: f64 = 10.0;

const TOPICS: usize = 60;
const EACH: usize = 3;

const WORDS: usize = 12;

/// Lists the documents with the largest shares of each topic. The function runs the local step for a sample of at most
/// 2000 training documents. Returns `None` if no document in the sample is long enough.
pub(super) fn exhibit(
    model: &TopicModel,
    documents: &dyn Documents,
    simd: Simd,
) -> Option<Exhibit> {
    let topics = model.topics.topics;
    let shares = model.topics.shares();
    let mut order: Vec<usize> = (0..topics).collect();
    order.sort_by(|a, b| shares[*b].total_cmp(&shares[*a]).then(a.cmp(b)));
    order.truncate(TOPICS);
    let predictor = Predictor::new(&model.topics, RULE, simd);
    // For each topic, this vector contains the best documents so far with their shares, in descending order of share.
    let mut best: Vec<Vec<(f64, usize)>> = vec![Vec::new(); topics];
    let mut bag = Bag::new();
    for (first, count) in groups(documents.len()) {
        let thetas = predictor.thetas(documents, first, count);
        for (at, theta) in thetas.chunks_exact(topics).enumerate() {
            documents.read(first + at, &mut bag);
            if bag.tokens() < TOKENS {
                continue;
            }
            for &topic in &order {
                let kept = &mut best[topic];
                let position = kept.partition_point(|(share, _)| *share >= theta[topic]);
                if position < EACH {
                    kept.insert(position, (theta[topic], first + at));
                    kept.truncate(EACH);
                }
            }
        }
    }
    let totals = model.topics.totals();
    let mut rows = Vec::new();
    for &topic in &order {
        for &(share, document) in &best[topic] {
            documents.read(document, &mut bag);
            rows.push(vec![
                topic.to_string(),
                (document + 1).to_string(),
                format!("{:.0} %", 100.0 * share),
                format!("{:.0}", bag.tokens()),
                words(model, &totals, topic, &bag),
            ]);
        }
    }
    let looked_at = match documents.len() {
        n if n <= LOOKED_AT => "all training documents".to_owned(),
        n => format!("{LOOKED_AT} of {n} training documents, spread evenly over all of them"),
    };
    (!rows.is_empty()).then(|| Exhibit {
        heading: "Documents of each topic".to_owned(),
        note: format!(
            "The documents with the largest share of each topic, among {looked_at}. The number is the line of \
             the document in the output of `jensen topics predict` for the corpus. The words are the \
             document's most frequent words of this topic."
        ),
        table: (
            ["topic", "document", "share", "tokens", "words"].map(str::to_owned).to_vec(),
            rows,
        ),
        ..Exhibit::default()
    })
}

fn groups(documents: usize) -> Vec<(usize, usize)> {
    if documents <= LOOKED_AT {
        return vec![(0, documents)];
    }
    let count = LOOKED_AT / GROUPS;
    (0..GROUPS)
        .map(|group| (group * (documents - count) / (GROUPS - 1), count))
        .collect()
}

fn words(model: &TopicModel, totals: &[f64], topic: usize, bag: &Bag) -> String {
    let probability = |term: u32| {
        let mut all = model.topics.proportions(term as usize, totals);
        all.nth(topic).unwrap_or(0.0)
    };
    let mut found: Vec<(f64, u32)> = (bag.terms.iter().zip(&bag.counts))
        .map(|(&term, &count)| (f64::from(count) * probability(term), term))
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let shown = found.iter().take(WORDS);
    let shown: Vec<&str> = shown
        .map(|(_, term)| model.words[*term as usize].as_str())
        .collect();
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_lie_within_the_documents_and_do_not_overlap() {
        assert_eq!(groups(7), [(0, 7)]);
        assert_eq!(groups(LOOKED_AT), [(0, LOOKED_AT)]);
        for documents in [LOOKED_AT + 1, 12_345, 5_000_000] {
            let made = groups(documents);
            assert_eq!(made.iter().map(|group| group.1).sum::<usize>(), LOOKED_AT);
            assert_eq!(made[0].0, 0);
            assert_eq!(made[GROUPS - 1].0 + made[GROUPS - 1].1, documents);
            assert!(
                made.windows(2).all(|two| two[0].0 + two[0].1 <= two[1].0),
                "{documents}"
            );
        }
    }
}
