//! The coherence of topics. Coherence measures how often the top words of a topic occur in the same documents.

use jensen_conjugate::documents::{Bag, Documents};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

const TASK: usize = 2048;

/// The maximum number of words per topic. The set of words that occur in a document is stored as a bit mask.
const WORDS: usize = 64;

/// The coherence of the top words of a topic. Coherence measures how often two of these words occur in the same
/// document of a corpus, averaged over all pairs of words. The fields are `None` if the corpus contains no pair of the
/// words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Coherence {
    /// The normalised pointwise mutual information, log(p(a,b) / p(a)p(b)) / −log p(a,b), where p is the fraction of
    /// the documents that contain the words. The value is −1 if the words never occur together, 0 if they occur
    /// independently, and 1 if they always occur together (Bouma 2009; Lau, Newman and Baldwin 2014).
    pub npmi: Option<f64>,
    /// The UMass coherence, log((D(a,b) + 1) / D(b)), where b is the more probable word of the topic and D is the
    /// number of documents that contain the words. The maximum of the UMass coherence is slightly above 0. Mimno et al.
    /// (2011) report the sum over all pairs, but this field contains the mean.
    pub umass: Option<f64>,
    /// The C_V coherence, which lies between 0 and 1. The vector of a word contains its NPMI with each word of the
    /// topic. The C_V coherence is the mean cosine between the vector of a word and the sum of all vectors. Jensen uses
    /// whole documents as windows. Röder, Both and Hinneburg (2015) use sliding windows of 110 words, but word counts
    /// do not contain the order of the words.
    #[serde(default)]
    pub cv: Option<f64>,
}

/// The number of documents that contain each pair of words, as `counts[topic][pair(i, j)]` with i ≤ j. The entry for
/// (i, i) is the number of documents that contain word i.
struct Counts {
    together: Vec<u64>,
}

fn pair(i: usize, j: usize) -> usize {
    j * (j + 1) / 2 + i
}

/// Computes the coherence of several topics over `documents`. The function reads the documents only once. Each topic is
/// a list of its top words in descending order of probability. The function uses at most the first 64 words.
pub fn coherence(documents: &dyn Documents, topics: &[Vec<u32>]) -> Vec<Coherence> {
    let words = topics.iter().map(|t| t.len().min(WORDS)).max().unwrap_or(0);
    let stride = pair(0, words);
    // For each term, this vector contains the topics that have the term among their top words, and its rank in each.
    let mut ranks: Vec<Vec<(u32, u32)>> = vec![Vec::new(); documents.terms()];
    for (topic, terms) in (0..).zip(topics) {
        for (rank, &term) in (0..).zip(terms.iter().take(WORDS)) {
            if let Some(slot) = ranks.get_mut(term as usize) {
                slot.push((topic, rank));
            }
        }
    }
    let empty = || Counts {
        together: vec![0; stride * topics.len()],
    };
    let tasks = documents.len().div_ceil(TASK);
    // The order of the sums does not matter, because integer addition has no rounding errors.
    let counts = (0..tasks)
        .into_par_iter()
        .fold(empty, |mut counts, task| {
            let mut bag = Bag::new();
            let mut masks = vec![0u64; topics.len()];
            let mut touched = Vec::new();
            for index in task * TASK..((task + 1) * TASK).min(documents.len()) {
                documents.read(index, &mut bag);
                for &term in &bag.terms {
                    for &(topic, rank) in &ranks[term as usize] {
                        if masks[topic as usize] == 0 {
                            touched.push(topic as usize);
                        }
                        masks[topic as usize] |= 1 << rank;
                    }
                }
                for topic in touched.drain(..) {
                    let mask = std::mem::take(&mut masks[topic]);
                    let table = &mut counts.together[topic * stride..(topic + 1) * stride];
                    for j in bits(mask) {
                        for i in bits(mask).take_while(|&i| i <= j) {
                            table[pair(i, j)] += 1;
                        }
                    }
                }
            }
            counts
        })
        .reduce(empty, |mut a, b| {
            for (a, b) in a.together.iter_mut().zip(b.together) {
                *a += b;
            }
            a
        });
    let total = documents.len() as f64;
    let tables = counts.together.chunks(stride.max(1));
    topics
        .iter()
        .zip(tables)
        .map(|(terms, table)| judge(terms.len().min(WORDS), table, total))
        .collect()
}

fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (mask != 0).then(|| {
            let bit = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            bit
        })
    })
}

fn judge(words: usize, table: &[u64], total: f64) -> Coherence {
    let (mut npmi, mut umass, mut pairs) = (0.0, 0.0, 0u32);
    for j in 1..words {
        for i in 0..j {
            let (a, b) = (table[pair(i, i)] as f64, table[pair(j, j)] as f64);
            if a == 0.0 || b == 0.0 {
                continue;
            }
            let both = table[pair(i, j)] as f64;
            pairs += 1;
            umass += ((both + 1.0) / a).ln();
            npmi += if both == 0.0 {
                -1.0
            } else if both == total {
                1.0
            } else {
                (both * total / (a * b)).ln() / (total / both).ln()
            };
        }
    }
    let mean = |sum: f64| (pairs > 0).then(|| sum / f64::from(pairs));
    Coherence {
        npmi: mean(npmi),
        umass: mean(umass),
        cv: cv(words, table, total),
    }
}

/// The constant that C_V adds to the probabilities of pairs. The implementation by the authors of C_V uses the same
/// value.
const EPSILON: f64 = 1e-12;

/// Computes C_V for the words that occur in the corpus. There must be at least two such words.
fn cv(words: usize, table: &[u64], total: f64) -> Option<f64> {
    let share = |i: usize, j: usize| table[pair(i.min(j), i.max(j))] as f64 / total;
    let there: Vec<usize> = (0..words).filter(|i| share(*i, *i) > 0.0).collect();
    let npmi = |i: usize, j: usize| {
        let both = share(i, j) + EPSILON;
        (both / (share(i, i) * share(j, j))).ln() / -both.ln()
    };
    let row = |i: &usize| there.iter().map(|j| npmi(*i, *j)).collect::<Vec<f64>>();
    let rows: Vec<Vec<f64>> = there.iter().map(row).collect();
    let sums: Vec<f64> = (0..there.len())
        .map(|j| rows.iter().map(|row| row[j]).sum())
        .collect();
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let cosine =
        |row: &Vec<f64>| product(row, &sums) / (product(row, row) * product(&sums, &sums)).sqrt();
    let mean = rows.iter().map(cosine).sum::<f64>() / rows.len() as f64;
    (there.len() > 1 && mean.is_finite()).then_some(mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jensen_conjugate::documents::MemoryDocuments;

    #[test]
    fn pairs_are_judged_by_the_documents_that_hold_them() {
        let mut documents = MemoryDocuments::new(5);
        for terms in [&[0u32, 1][..], &[0, 1], &[0, 2], &[2], &[1], &[]] {
            let counts = vec![2.0; terms.len()];
            let terms = terms.to_vec();
            documents.push(&Bag { terms, counts }).unwrap();
        }
        let found = coherence(&documents, &[vec![0, 1, 2], vec![3, 4], vec![1], vec![]]);
        // The test corpus has 6 documents, with D(0) = D(1) = 3, D(2) = 2, D(0,1) = 2, D(0,2) = 1 and D(1,2) = 0.
        let (ln, n) = (f64::ln, 6.0);
        let npmi = (ln(2.0 * n / 9.0) / ln(n / 2.0) + ln(n / 6.0) / ln(n) - 1.0) / 3.0;
        let umass = (ln(3.0 / 3.0) + ln(2.0 / 3.0) + ln(1.0 / 3.0)) / 3.0;
        assert!((found[0].npmi.unwrap() - npmi).abs() < 1e-14);
        assert!((found[0].umass.unwrap() - umass).abs() < 1e-14);
        // This is the value of `c_v` that gensim 4.4 computes for these documents, with a window longer than each
        // document.
        assert!((found[0].cv.unwrap() - 0.397_317_933_201_270_46).abs() < 1e-12);
        assert!(found[1..].iter().all(|c| *c == Coherence::default()));
    }
}
