//! The settings for building a corpus, with their defaults.

use std::path::{Path, PathBuf};

use jensen_data::corpus::sources::SourceSettings;
use jensen_data::corpus::{
    BuildSettings, DocumentUnit, Extra, Format, Frequency, Pattern, PhraseSettings, Phrases,
    Sources, StopWords, Tokeniser,
};
use serde::{Deserialize, Deserializer};

use crate::Error;

/// The settings for building a corpus. A setting that is absent has its default value.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CorpusRequest {
    /// The files and folders that contain text or bags of words.
    pub inputs: Vec<PathBuf>,
    /// The format of the inputs. By default, Jensen determines the format from the names of the files.
    pub format: Option<Format>,
    /// The name of the JSON field or of the Parquet column that contains the text.
    pub field: Option<String>,
    /// The part of a plain-text file that is treated as one document. By default, each file in a folder is one
    /// document. If a file is given by its own name, each of its lines is one document.
    pub documents: Option<DocumentUnit>,
    /// The file that lists the words of the vocabulary, one word per line. The terms in bags of words refer to this
    /// list.
    pub vocabulary: Option<PathBuf>,
    /// The minimum number of documents that must contain a word of the vocabulary.
    #[serde(deserialize_with = "frequency")]
    pub min_df: Option<Frequency>,
    /// The maximum number of documents that may contain a word of the vocabulary.
    #[serde(deserialize_with = "frequency")]
    pub max_df: Option<Frequency>,
    /// The maximum number of words in the vocabulary. If there are more words, Jensen keeps the words that occur in the
    /// most documents. If the maximum is 0, Jensen keeps all words.
    pub max_terms: Option<usize>,
    /// The stop words, which are not part of the vocabulary. The value is `english`, `none`, or the name of a file that
    /// contains the stop words.
    pub stop_words: Option<String>,
    /// The minimum number of letters that a word must have.
    pub min_length: Option<usize>,
    /// The maximum number of letters that a word may have.
    pub max_length: Option<usize>,
    /// The characters other than letters that may be part of a word.
    pub keep: Vec<Extra>,
    /// A pattern that matches a word. If a pattern is given, the other rules for words do not apply.
    pub pattern: Option<Pattern>,
    /// The largest number of words in a phrase. If it is given, Jensen learns phrases and treats each phrase as a word.
    pub phrases: Option<usize>,
    /// The smallest normalised pointwise mutual information of the two parts of a phrase.
    pub phrase_score: Option<f64>,
    /// The fraction of the documents that are held out.
    pub heldout: Option<f64>,
    /// The seed that determines which documents are held out.
    pub seed: Option<u64>,
}

/// Deserialises a frequency. The integer 1 means one document, but 1.0 means all documents.
fn frequency<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Frequency>, D::Error> {
    let number = Option::<serde_json::Number>::deserialize(from)?;
    let frequency = number.map(|number| number.to_string().parse());
    frequency.transpose().map_err(serde::de::Error::custom)
}

impl CorpusRequest {
    /// The default name of the field that contains the text.
    pub const FIELD: &str = "text";
    /// The default minimum and maximum number of letters in a word.
    pub const LENGTHS: [usize; 2] = [2, 30];
    /// The default smallest score of a phrase, halfway between independent words and words that always occur together.
    /// Two words that each make up a thousandth of all words then form a phrase if a tenth of them stand in it.
    pub const PHRASE_SCORE: f64 = 0.5;
    /// The default fraction of the documents that are held out.
    pub const HELDOUT: f64 = 0.01;

    fn lengths(&self) -> [usize; 2] {
        let [least, most] = Self::LENGTHS;
        [
            self.min_length.unwrap_or(least),
            self.max_length.unwrap_or(most),
        ]
    }

    /// Checks that the limits on the word length allow at least one length.
    ///
    /// # Errors
    /// Fails with [`Error::Setting`] if the limits exclude all words.
    pub fn check(&self) -> Result<(), Error> {
        let [least, most] = self.lengths();
        if least == 0 || most < least {
            return Err(Error::setting(
                "--min-length must be at least 1, and --max-length at least --min-length",
            ));
        }
        if self.pattern.is_some() && !self.keep.is_empty() {
            return Err(Error::setting("--pattern defines the words: remove --keep"));
        }
        if self.phrases.is_some_and(|longest| longest < 2) {
            return Err(Error::setting("--phrases must be at least 2 words"));
        }
        match self.phrase_score {
            Some(_) if self.phrases.is_none() => Err(Error::setting(
                "--phrase-score applies to phrases: add --phrases 2",
            )),
            Some(score) if !(0.0..=1.0).contains(&score) => {
                Err(Error::setting("--phrase-score must be between 0 and 1"))
            }
            _ => Ok(()),
        }
    }

    /// Opens the input files and folders.
    ///
    /// # Errors
    /// Fails under the same conditions as [`Sources::new`].
    pub fn sources(&self) -> Result<Sources, Error> {
        let settings = SourceSettings {
            format: self.format,
            field: self.field.clone().unwrap_or_else(|| Self::FIELD.to_owned()),
            id: None,
            unit: self.documents,
            vocabulary: self.vocabulary.clone(),
        };
        Ok(Sources::new(&self.inputs, &settings)?)
    }

    /// Returns the settings for building a corpus from `sources`.
    ///
    /// # Errors
    /// Returns the same errors as [`check`](Self::check). Also fails if the file with the stop words cannot be read.
    pub fn settings(&self, sources: &Sources) -> Result<BuildSettings, Error> {
        self.check()?;
        if self.phrases.is_some() && sources.words().is_some() {
            return Err(Error::setting(
                "bags of words have no order, so they have no phrases: remove --phrases, or give the texts",
            ));
        }
        let [min_length, max_length] = self.lengths();
        let mut settings = BuildSettings::new(sources);
        settings.tokeniser = Tokeniser {
            min_length,
            max_length,
            keep: self.keep.clone(),
            pattern: self.pattern.clone(),
            phrases: Phrases::default(),
        };
        settings.phrases = self.phrases.map(|longest| PhraseSettings {
            longest,
            score: self.phrase_score.unwrap_or(Self::PHRASE_SCORE),
        });
        let vocabulary = &mut settings.vocabulary;
        vocabulary.min_df = self.min_df.unwrap_or(vocabulary.min_df);
        vocabulary.max_df = self.max_df.unwrap_or(vocabulary.max_df);
        match self.max_terms {
            Some(0) => vocabulary.max_terms = None,
            Some(count) => vocabulary.max_terms = Some(count),
            None => {}
        }
        match self.stop_words.as_deref() {
            Some("english") => vocabulary.stop_words = StopWords::english(),
            Some("none") => vocabulary.stop_words = StopWords::none(),
            Some(file) => vocabulary.stop_words = StopWords::read(Path::new(file))?,
            None => {}
        }
        settings.heldout = self.heldout.unwrap_or(Self::HELDOUT);
        settings.seed = self.seed.unwrap_or_default();
        Ok(settings)
    }
}
