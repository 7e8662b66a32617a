//! Chooses the words of the vocabulary.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::count::Count;
use super::stop_words::StopWords;
use crate::error::DataError;

/// A number of documents. The number is given either directly or as a fraction of all documents.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Frequency {
    /// The number of documents itself.
    Documents(u64),
    /// A fraction of all documents, between 0 and 1.
    Share(f64),
}

impl FromStr for Frequency {
    type Err = DataError;

    /// Parses a frequency. An integer is a number of documents, and a number with a decimal point (`0.1`, `1.0`) is a
    /// fraction.
    fn from_str(text: &str) -> Result<Self, DataError> {
        if let Ok(documents) = text.parse() {
            return Ok(Self::Documents(documents));
        }
        match text.parse() {
            Ok(share) if (0.0..=1.0).contains(&share) => Ok(Self::Share(share)),
            _ => Err(DataError::invalid(
                "expected an integer number of documents (10), or a share of them from 0.0 to 1.0 (0.1)",
            )),
        }
    }
}

impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Documents(documents) => write!(f, "{documents}"),
            Self::Share(share) => write!(f, "{share:?}"),
        }
    }
}

/// The conditions that a word of the vocabulary must meet.
#[derive(Clone, Debug)]
pub struct VocabularySettings {
    /// The smallest number of documents in which a word must occur.
    pub min_df: Frequency,
    /// The largest number of documents in which a word may occur.
    pub max_df: Frequency,
    /// The largest number of words in the vocabulary. The words with the highest document frequencies are kept, and
    /// ties are broken alphabetically.
    pub max_terms: Option<usize>,
    /// Words that the vocabulary must not contain.
    pub stop_words: StopWords,
}

impl VocabularySettings {
    /// Returns the settings for text. These settings keep words that occur in at least ten documents and in at most a
    /// tenth of all documents, except function words. At most 14 000 words are kept.
    pub fn text() -> Self {
        Self {
            min_df: Frequency::Documents(10),
            max_df: Frequency::Share(0.1),
            max_terms: Some(14_000),
            stop_words: StopWords::english(),
        }
    }

    /// Returns the settings for bags of words. They keep all words.
    pub fn bags() -> Self {
        Self {
            min_df: Frequency::Documents(1),
            max_df: Frequency::Share(1.0),
            max_terms: None,
            stop_words: StopWords::none(),
        }
    }

    /// Returns the smallest number of documents in which a word must occur, which is at least 1.
    pub(crate) fn least(&self, documents: u64) -> u64 {
        match self.min_df {
            Frequency::Documents(n) => n.max(1),
            Frequency::Share(share) => ((share * documents as f64).ceil() as u64).max(1),
        }
    }

    /// Returns the largest number of documents in which a word may occur.
    fn most(&self, documents: u64) -> u64 {
        match self.max_df {
            Frequency::Documents(n) => n,
            Frequency::Share(share) => (share * documents as f64).floor() as u64,
        }
    }
}

/// Chooses the words of the vocabulary. Returns their indices in `words`, sorted by decreasing document frequency.
/// Words with the same document frequency are in alphabetical order.
///
/// # Errors
/// Fails if no word remains. The message contains the reason.
pub fn choose(
    words: &[(&str, Count)],
    documents: u64,
    settings: &VocabularySettings,
) -> Result<Vec<usize>, DataError> {
    let chosen = select(words, documents, settings);
    if chosen.is_empty() {
        return Err(DataError::invalid(format!(
            "the vocabulary has no words: of {} in {}, none is in at least {} (--min-df {}) and at most {} \
             documents (--max-df {}) without being a stop word; lower --min-df or raise --max-df",
            counted(words.len() as u64, "distinct word"),
            counted(documents, "document"),
            settings.least(documents),
            settings.min_df,
            settings.most(documents),
            settings.max_df,
        )));
    }
    Ok(chosen)
}

/// Selects words as [`choose`] does. The result may be empty.
pub(crate) fn select(
    words: &[(&str, Count)],
    documents: u64,
    settings: &VocabularySettings,
) -> Vec<usize> {
    let (least, most) = (settings.least(documents), settings.most(documents));
    let mut chosen: Vec<usize> = (0..words.len())
        .filter(|&i| {
            let (word, count) = words[i];
            (least..=most).contains(&count.documents) && !settings.stop_words.contains(word)
        })
        .collect();
    chosen.sort_unstable_by(|&a, &b| {
        let (a, b) = (words[a], words[b]);
        b.1.documents.cmp(&a.1.documents).then(a.0.cmp(b.0))
    });
    if let Some(limit) = settings.max_terms {
        chosen.truncate(limit);
    }
    chosen
}

fn counted(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_are_read_and_printed() {
        for text in ["10", "0.1", "1.0", "1"] {
            assert_eq!(text.parse::<Frequency>().unwrap().to_string(), text);
        }
        for text in ["-1", "1.5", "x", "NaN"] {
            assert!(text.parse::<Frequency>().is_err(), "{text}");
        }
    }

    #[test]
    fn words_are_chosen_by_document_frequency() {
        let count = |documents| Count {
            documents,
            tokens: 2 * documents,
        };
        let words = [
            ("the", count(9)),
            ("rare", count(1)),
            ("zeta", count(3)),
            ("alpha", count(3)),
            ("often", count(10)),
        ];
        let mut settings = VocabularySettings {
            min_df: Frequency::Documents(2),
            max_df: Frequency::Share(0.9),
            max_terms: None,
            stop_words: StopWords::english(),
        };
        assert_eq!(choose(&words, 10, &settings).unwrap(), [3, 2]);
        settings.stop_words = StopWords::none();
        assert_eq!(choose(&words, 10, &settings).unwrap(), [0, 3, 2]);
        settings.max_terms = Some(2);
        assert_eq!(choose(&words, 10, &settings).unwrap(), [0, 3]);
        settings.min_df = Frequency::Documents(11);
        let error = choose(&words, 10, &settings).unwrap_err().to_string();
        assert!(error.contains("at least 11 (--min-df 11)"), "{error}");
    }
}
