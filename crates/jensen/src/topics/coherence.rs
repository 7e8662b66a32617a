//! The coherence of topics. Coherence measures how often the top words of a topic occur in the same documents.

use std::collections::BTreeMap;

use jensen_conjugate::documents::{Bag, Documents};
use jensen_data::corpus::phrases::normalised_pmi;
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
    /// topic. The C_V coherence is the mean cosine between the vector of a word and the sum of all vectors. Röder,
    /// Both and Hinneburg (2015) use sliding windows of 110 words, as [`WindowCoherence`] does. Word counts do not
    /// contain the order of the words, so [`coherence()`] uses whole documents as windows.
    #[serde(default)]
    pub cv: Option<f64>,
}

fn pair(i: usize, j: usize) -> usize {
    j * (j + 1) / 2 + i
}

/// The top words of topics, by term. The counts of their pairs are in a table with one part per topic: entry
/// `pair(i, j)` of a part is the number of documents that contain both word i and word j, with i ≤ j. The entry for
/// (i, i) is the number of documents that contain word i.
struct TopWords<'a> {
    topics: &'a [Vec<u32>],
    /// The topics that have a term among their top words, and its rank in each.
    ranks: Vec<Vec<(u32, u32)>>,
    stride: usize,
}

impl<'a> TopWords<'a> {
    fn new(topics: &'a [Vec<u32>], terms: usize) -> Self {
        let words = topics.iter().map(|t| t.len().min(WORDS)).max().unwrap_or(0);
        let mut ranks: Vec<Vec<(u32, u32)>> = vec![Vec::new(); terms];
        for (topic, terms) in (0..).zip(topics) {
            for (rank, &term) in (0..).zip(terms.iter().take(WORDS)) {
                if let Some(slot) = ranks.get_mut(term as usize) {
                    slot.push((topic, rank));
                }
            }
        }
        Self {
            topics,
            ranks,
            stride: pair(0, words),
        }
    }

    fn ranks(&self, term: u32) -> &[(u32, u32)] {
        self.ranks.get(term as usize).map_or(&[], Vec::as_slice)
    }

    fn empty(&self) -> Vec<u64> {
        vec![0; self.stride * self.topics.len()]
    }

    /// Adds `times` documents that contain the words of a topic whose ranks are the bits of `mask`.
    fn add(&self, table: &mut [u64], topic: usize, mask: u64, times: u64) {
        let table = &mut table[topic * self.stride..(topic + 1) * self.stride];
        for j in bits(mask) {
            for i in bits(mask).take_while(|&i| i <= j) {
                table[pair(i, j)] += times;
            }
        }
    }

    fn judge(&self, table: &[u64], total: u64) -> Vec<Coherence> {
        let tables = table.chunks(self.stride.max(1));
        let pairs = self.topics.iter().zip(tables);
        let of =
            |(terms, table): (&Vec<u32>, _)| judge(terms.len().min(WORDS), table, total as f64);
        pairs.map(of).collect()
    }
}

fn plus(mut a: Vec<u64>, b: Vec<u64>) -> Vec<u64> {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
    a
}

/// Computes the coherence of several topics over `documents`. The function reads the documents only once. Each topic is
/// a list of its top words in descending order of probability. The function uses at most the first 64 words.
pub fn coherence(documents: &dyn Documents, topics: &[Vec<u32>]) -> Vec<Coherence> {
    let top = TopWords::new(topics, documents.terms());
    let tasks = documents.len().div_ceil(TASK);
    // The order of the sums does not matter, because integer addition has no rounding errors.
    let table = (0..tasks)
        .into_par_iter()
        .fold(
            || top.empty(),
            |mut table, task| {
                let mut bag = Bag::new();
                let mut masks = vec![0u64; topics.len()];
                let mut touched = Vec::new();
                for index in task * TASK..((task + 1) * TASK).min(documents.len()) {
                    documents.read(index, &mut bag);
                    for &term in &bag.terms {
                        for &(topic, rank) in top.ranks(term) {
                            if masks[topic as usize] == 0 {
                                touched.push(topic as usize);
                            }
                            masks[topic as usize] |= 1 << rank;
                        }
                    }
                    for topic in touched.drain(..) {
                        let mask = std::mem::take(&mut masks[topic]);
                        top.add(&mut table, topic, mask, 1);
                    }
                }
                table
            },
        )
        .reduce(|| top.empty(), plus);
    top.judge(&table, documents.len() as u64)
}

/// The coherence of topics over sliding windows of texts, which arrive in pieces.
pub struct WindowCoherence<'a> {
    top: TopWords<'a>,
    window: usize,
    table: Vec<u64>,
    windows: u64,
}

/// The words of a topic within the present window.
#[derive(Clone)]
struct Inside {
    counts: [u32; WORDS],
    mask: u64,
    /// The first window with this mask.
    since: u64,
}

impl<'a> WindowCoherence<'a> {
    /// The number of words in a window of C_V (Röder, Both and Hinneburg 2015, Table 8).
    pub const WINDOW: usize = 110;

    /// Prepares the coherence of `topics` as in [`coherence()`], for a vocabulary of `terms` words and windows of
    /// `window` words.
    pub fn new(topics: &'a [Vec<u32>], terms: usize, window: usize) -> Self {
        let top = TopWords::new(topics, terms);
        Self {
            table: top.empty(),
            top,
            window: window.max(1),
            windows: 0,
        }
    }

    /// Adds the windows of documents, which are sequences of terms. Other words have numbers that are not terms. A
    /// document that is not longer than a window is one window.
    pub fn add(&mut self, documents: &[Vec<u32>]) {
        let count = |document: &Vec<u32>| document.len().saturating_sub(self.window) as u64 + 1;
        self.windows += documents.iter().map(count).sum::<u64>();
        let table = documents
            .par_iter()
            .with_min_len(64)
            .fold(
                || self.top.empty(),
                |mut table, document| {
                    self.slide(document, count(document), &mut table);
                    table
                },
            )
            .reduce(|| self.top.empty(), plus);
        self.table = plus(std::mem::take(&mut self.table), table);
    }

    fn slide(&self, document: &[u32], windows: u64, table: &mut [u64]) {
        let mut inside: BTreeMap<u32, Inside> = BTreeMap::new();
        let mut change = |term: u32, now: u64, enters: bool| {
            for &(topic, rank) in self.top.ranks(term) {
                let inside = inside.entry(topic).or_insert(Inside {
                    counts: [0; WORDS],
                    mask: 0,
                    since: now,
                });
                let count = &mut inside.counts[rank as usize];
                *count = if enters { *count + 1 } else { *count - 1 };
                let mask = match *count {
                    0 => inside.mask & !(1 << rank),
                    _ => inside.mask | 1 << rank,
                };
                if mask != inside.mask {
                    self.top
                        .add(table, topic as usize, inside.mask, now - inside.since);
                    (inside.mask, inside.since) = (mask, now);
                }
            }
        };
        let first = self.window.min(document.len());
        document[..first]
            .iter()
            .for_each(|term| change(*term, 0, true));
        for (now, (leaving, entering)) in (1..).zip(document.iter().zip(&document[first..])) {
            change(*leaving, now, false);
            change(*entering, now, true);
        }
        for (topic, inside) in inside {
            self.top
                .add(table, topic as usize, inside.mask, windows - inside.since);
        }
    }

    /// Returns the coherence of each topic.
    pub fn finish(self) -> Vec<Coherence> {
        self.top.judge(&self.table, self.windows)
    }
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
            npmi += normalised_pmi(a, b, both, total);
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

    const GENSIM: [f64; 2] = [0.722_192_787_234_365_8, 0.954_261_785_966_819_1];

    #[test]
    fn windows_slide_as_in_gensim() {
        let text = |words: &str| words.split(' ').map(|w| w.parse().unwrap()).collect();
        let documents: Vec<Vec<u32>> = vec![
            text("0 9 1 9 9 2 0 1"),
            text("1 9 9 9 0"),
            text("2 7 9 1"),
            text("0 1"),
            Vec::new(),
            text("9 3 9 9 9 9 4 3 9"),
        ];
        let topics = [vec![0, 1, 2], vec![3, 4]];
        // The slow computation lists all windows as documents.
        let mut listed = MemoryDocuments::new(10);
        for document in &documents {
            let windows = document.len().saturating_sub(3) + 1;
            for first in 0..windows {
                let mut terms = document[first..document.len().min(first + 3)].to_vec();
                terms.sort_unstable();
                terms.dedup();
                let counts = vec![1.0; terms.len()];
                listed.push(&Bag { terms, counts }).unwrap();
            }
        }
        let mut windows = WindowCoherence::new(&topics, 10, 3);
        windows.add(&documents[..2]);
        windows.add(&documents[2..]);
        let found = windows.finish();
        assert_eq!(found, coherence(&listed, &topics));
        // These are the values of `c_v` that gensim 4.4 computes for these texts with `window_size=3`. If a word occurs
        // twice in a window and leaves it once, gensim no longer counts the word, so the texts contain no such case.
        for (found, gensim) in found.iter().zip(GENSIM) {
            assert!((found.cv.unwrap() - gensim).abs() < 1e-12, "{found:?}");
        }
    }
}
