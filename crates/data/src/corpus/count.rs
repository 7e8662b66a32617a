//! Counts the words of a corpus in bounded memory.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use serde::{Deserialize, Serialize};

/// The counts of a single word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// The number of documents that contain the word.
    pub documents: u64,
    /// The number of occurrences of the word.
    pub tokens: u64,
}

impl Count {
    /// Adds the counts of the same word in other documents.
    pub fn add(&mut self, other: Self) {
        self.documents += other.documents;
        self.tokens += other.tokens;
    }
}

/// The counts of words, which are collected chunk by chunk in bounded memory.
///
/// The table has one entry for each distinct word. If it exceeds its limit, the rarest words are dropped until the
/// table is half as large. The largest count that was dropped is available as [`floor`](Self::floor). A word that
/// occurs in at most `floor` documents may be missing, and any other count may be too small by up to `floor`. A
/// vocabulary whose `min_df` is well above the floor is not affected. If no word was dropped, the floor is 0 and all
/// counts are exact.
#[derive(Clone, Debug)]
pub struct WordCounts {
    table: HashMap<Box<str>, Count, FixedState>,
    limit: usize,
    floor: u64,
}

/// The counts of a few documents. Several threads fill such tables in parallel.
#[derive(Debug, Default)]
pub struct LocalCounts {
    table: HashMap<Box<str>, (Count, u64), FixedState>,
    document: u64,
}

impl LocalCounts {
    /// Starts the next document.
    pub fn next_document(&mut self) {
        self.document += 1;
    }

    /// Counts one occurrence of a word in the current document.
    pub fn add(&mut self, word: &str) {
        let (count, last) = match self.table.get_mut(word) {
            Some(entry) => entry,
            None => self.table.entry(word.into()).or_default(),
        };
        count.tokens += 1;
        // Documents are numbered from 1, so the value 0 of a new entry does not refer to a document.
        if *last != self.document + 1 {
            *last = self.document + 1;
            count.documents += 1;
        }
    }
}

impl WordCounts {
    /// The default limit on the number of distinct words. A table with this number of words takes about 300 MB.
    pub const LIMIT: usize = 4_000_000;

    /// Creates an empty table with at most `limit` words.
    pub fn new(limit: usize) -> Self {
        Self {
            table: HashMap::default(),
            limit: limit.max(2),
            floor: 0,
        }
    }

    /// Adds the counts that a thread has collected.
    #[expect(
        clippy::iter_over_hash_type,
        reason = "sums of whole numbers are the same in every order, and the table they go to is sorted when it is read"
    )]
    pub fn add(&mut self, local: LocalCounts) {
        for (word, (count, _)) in local.table {
            self.table.entry(word).or_default().add(count);
        }
    }

    /// Drops rare words if the table exceeds its limit. Callers must call this function after every chunk, so that the
    /// result does not depend on the number of threads.
    pub fn shrink(&mut self) {
        while self.table.len() > self.limit {
            let mut documents: Vec<u64> = self.table.values().map(|c| c.documents).collect();
            let middle = documents.len() / 2;
            let (_, cut, _) = documents.select_nth_unstable(middle);
            let cut = *cut;
            self.floor = self.floor.max(cut);
            self.table.retain(|_, count| count.documents > cut);
        }
    }

    /// Returns the largest document frequency for which counts may be too low. The result is 0 if all counts are exact.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// Returns the number of distinct words.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Returns all words with their counts, in no particular order.
    pub fn into_words(self) -> Vec<(String, Count)> {
        let words = self.table.into_iter();
        words.map(|(word, count)| (word.into(), count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(documents: &[&[&str]]) -> LocalCounts {
        let mut counts = LocalCounts::default();
        for document in documents {
            document.iter().for_each(|word| counts.add(word));
            counts.next_document();
        }
        counts
    }

    #[test]
    fn documents_and_tokens_are_counted() {
        let mut counts = WordCounts::new(100);
        counts.add(local(&[&["a", "b", "a"], &["a"], &[]]));
        counts.add(local(&[&["a"]]));
        counts.shrink();
        let mut words = counts.into_words();
        words.sort_by(|x, y| x.0.cmp(&y.0));
        let count = |documents, tokens| Count { documents, tokens };
        assert_eq!(
            words,
            [("a".into(), count(3, 4)), ("b".into(), count(1, 1))]
        );
    }

    #[test]
    fn a_full_table_drops_the_rarest_words_and_says_so() {
        let mut counts = WordCounts::new(3);
        counts.add(local(&[&["a", "b", "c"], &["a", "b"], &["a"], &["d"]]));
        counts.shrink();
        assert_eq!(counts.floor(), 2);
        assert_eq!(counts.len(), 1);
        assert_eq!(counts.into_words()[0].0, "a");
    }
}
