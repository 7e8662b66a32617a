//! Phrases: neighbouring words that occur together much more often than by chance, such as `new york`.
//!
//! Phrases are learnt as in Mikolov, Sutskever, Chen, Corrado and Dean, *Distributed representations of words and
//! phrases and their compositionality* (2013): pairs of neighbouring words with a high score become one word, and
//! further rounds join pairs of such words to longer phrases. The score is the normalised pointwise mutual information
//! ([`normalised_pmi`]). Unlike the score of that paper, it does not depend on the size of the corpus.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::count::Count;
use super::tally::Tally;
use super::vocabulary::VocabularySettings;

/// The character between the words of a phrase.
const JOINT: char = '_';

/// The character between the two parts of a pair that is counted. No word contains it.
const BETWEEN: char = '\n';

/// The settings for learning phrases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhraseSettings {
    /// The largest number of words in a phrase, which is at least 2.
    pub longest: usize,
    /// The smallest normalised pointwise mutual information of the two parts of a phrase.
    pub score: f64,
}

/// The seconds of all pairs, by their firsts.
type Pairs = BTreeMap<String, BTreeSet<String>>;

/// The phrases of a corpus. Each round joins pairs of the words and phrases that the earlier rounds have left.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Phrases {
    rounds: Vec<Pairs>,
}

/// The words and phrases of a document in order.
#[derive(Default)]
pub(crate) struct Units {
    /// All words, each followed by [`JOINT`].
    text: String,
    spans: Vec<Span>,
}

#[derive(Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
    words: usize,
}

impl Units {
    pub fn push(&mut self, word: &str) {
        let start = self.text.len();
        self.text.push_str(word);
        self.spans.push(Span {
            start,
            end: self.text.len(),
            words: 1,
        });
        self.text.push(JOINT);
    }

    fn at(&self, span: Span) -> &str {
        &self.text[span.start..span.end]
    }

    pub fn each(&self, visit: impl FnMut(&str)) {
        self.spans.iter().map(|span| self.at(*span)).for_each(visit);
    }

    /// Calls `visit` with every pair of neighbours, if both together have at most `longest` words. `pair` is a buffer.
    pub fn pairs(
        &self,
        longest: usize,
        pair: &mut String,
        mut visit: impl FnMut(&str, &str, &str),
    ) {
        for two in self.spans.windows(2) {
            if two[0].words + two[1].words <= longest {
                let (first, second) = (self.at(two[0]), self.at(two[1]));
                pair.clear();
                pair.push_str(first);
                pair.push(BETWEEN);
                pair.push_str(second);
                visit(first, second, pair);
            }
        }
    }
}

impl Phrases {
    /// Returns whether there are no phrases.
    pub fn is_empty(&self) -> bool {
        self.rounds.is_empty()
    }

    /// Returns the number of phrases.
    pub fn len(&self) -> usize {
        let seconds = self.rounds.iter().flat_map(BTreeMap::values);
        seconds.map(BTreeSet::len).sum()
    }

    /// Joins words to phrases. Each round reads a document from its beginning to its end, and joins a pair as soon as
    /// it meets it.
    pub(crate) fn join(&self, units: &mut Units) {
        for pairs in &self.rounds {
            let mut joined: Vec<Span> = Vec::with_capacity(units.spans.len());
            let mut spans = units.spans.iter().copied().peekable();
            while let Some(first) = spans.next() {
                let seconds = pairs.get(units.at(first));
                let second = seconds.and_then(|seconds| {
                    spans.next_if(|second| seconds.contains(units.at(*second)))
                });
                joined.push(second.map_or(first, |second| Span {
                    start: first.start,
                    end: second.end,
                    words: first.words + second.words,
                }));
            }
            units.spans = joined;
        }
    }

    /// Learns phrases round by round. `count` returns the number of documents, and the counts of the words and of the
    /// pairs of neighbours after the given phrases are joined.
    pub(crate) fn learn<E>(
        settings: &PhraseSettings,
        vocabulary: &VocabularySettings,
        mut count: impl FnMut(&Self) -> Result<(u64, [Tally; 2]), E>,
    ) -> Result<Self, E> {
        let mut phrases = Self::default();
        // A round can double the length of a phrase.
        while settings.longest > 1 << phrases.rounds.len() {
            let (documents, [words, pairs]) = count(&phrases)?;
            let least = vocabulary.least(documents);
            let round = choose(words, pairs, least, settings.score);
            if round.is_empty() {
                break;
            }
            phrases.rounds.push(round);
        }
        Ok(phrases)
    }
}

/// Chooses the pairs that occur in at least `least` documents and have at least this score.
fn choose(words: Tally, pairs: Tally, least: u64, score: f64) -> Pairs {
    let mut chosen = Pairs::new();
    if let (Tally::Words(words, _), Tally::Words(pairs, floor)) = (words, pairs) {
        let total: u64 = words.iter().map(|(_, count)| count.tokens).sum();
        let counts: BTreeMap<String, Count> = words.into_iter().collect();
        let of = |word: &str| counts.get(word).map(|count| count.tokens as f64);
        for (pair, both) in pairs {
            // If pairs were dropped, counts of at most `floor` documents may be wrong.
            let known = both.documents >= least && both.documents > floor;
            let parts = pair.split_once(BETWEEN).filter(|_| known);
            if let Some((first, second)) = parts
                && let (Some(a), Some(b)) = (of(first), of(second))
                && normalised_pmi(a, b, both.tokens as f64, total as f64) >= score
            {
                let seconds = chosen.entry(first.to_owned()).or_default();
                seconds.insert(second.to_owned());
            }
        }
    }
    chosen
}

/// Returns the normalised pointwise mutual information log(p(a,b) / p(a)p(b)) / −log p(a,b) of two events (Bouma 2009).
/// The arguments are the numbers of times that each of them and both of them occurred in `total` trials. The value is
/// −1 if they never occur together, 0 if they are independent, and 1 if each occurs only with the other.
pub fn normalised_pmi(a: f64, b: f64, both: f64, total: f64) -> f64 {
    if both == 0.0 {
        -1.0
    } else if both == total {
        1.0
    } else {
        (both * total / (a * b)).ln() / (total / both).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(text: &str) -> Units {
        let mut units = Units::default();
        text.split(' ').for_each(|word| units.push(word));
        units
    }

    fn joined(phrases: &Phrases, text: &str) -> String {
        let mut units = units(text);
        phrases.join(&mut units);
        let mut words = Vec::new();
        units.each(|word| words.push(word.to_owned()));
        words.join(" ")
    }

    #[test]
    fn pairs_join_from_the_left_and_rounds_lengthen_phrases() {
        let pairs = |all: &[(&str, &str)]| {
            let mut pairs = Pairs::new();
            for (first, second) in all {
                let seconds = pairs.entry((*first).to_owned()).or_default();
                seconds.insert((*second).to_owned());
            }
            pairs
        };
        let phrases = Phrases {
            rounds: vec![
                pairs(&[("new", "york"), ("york", "times"), ("a", "a")]),
                pairs(&[("new_york", "times")]),
            ],
        };
        for (text, expected) in [
            ("in new york times we", "in new_york_times we"),
            ("the york times new york", "the york_times new_york"),
            ("a a a new", "a_a a new"),
        ] {
            assert_eq!(joined(&phrases, text), expected);
        }
        let json = serde_json::to_string(&phrases).unwrap();
        assert_eq!(serde_json::from_str::<Phrases>(&json).unwrap(), phrases);
        assert_eq!(phrases.len(), 4);
        let mut long = Vec::new();
        let mut two = units("b new york times");
        phrases.join(&mut two);
        two.pairs(4, &mut String::new(), |a, b, _| {
            long.push(format!("{a} {b}"))
        });
        assert_eq!(long, ["b new_york_times"]);
        two.pairs(3, &mut String::new(), |_, _, _| panic!("four words"));
    }

    #[test]
    fn the_score_is_the_mutual_information_in_units_of_the_surprise() {
        // p(a) = p(b) = 1/4 and p(a,b) = 1/8 give log 2 / log 8.
        assert!((normalised_pmi(2.0, 2.0, 1.0, 8.0) - 1.0 / 3.0).abs() < 1e-15);
        assert!(normalised_pmi(2.0, 4.0, 1.0, 8.0).abs() < 1e-15);
        assert_eq!(normalised_pmi(3.0, 3.0, 3.0, 8.0), 1.0);
        assert_eq!(normalised_pmi(3.0, 3.0, 0.0, 8.0), -1.0);
    }
}
