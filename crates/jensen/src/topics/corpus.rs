//! The settings of a corpus, with their defaults.

use std::path::{Path, PathBuf};

use jensen_data::corpus::sources::SourceSettings;
use jensen_data::corpus::{
    BuildSettings, DocumentUnit, Extra, Format, Frequency, Pattern, Sources, StopWords, Tokeniser,
};
use serde::{Deserialize, Deserializer};

use crate::Error;

/// The settings of a corpus. Absent settings take their defaults.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CorpusRequest {
    /// The files and folders with text or bags of words.
    pub inputs: Vec<PathBuf>,
    /// The format of the inputs. By default, their names determine it.
    pub format: Option<Format>,
    /// The field of a JSON line, or the column of a Parquet file, that contains the text.
    pub field: Option<String>,
    /// The unit of a plain-text document. The default is the file for inputs in a folder, and the line for a file given
    /// by name.
    pub documents: Option<DocumentUnit>,
    /// A file with the words of bags, one per line.
    pub vocabulary: Option<PathBuf>,
    /// The smallest number of documents that contain a word.
    #[serde(deserialize_with = "frequency")]
    pub min_df: Option<Frequency>,
    /// The largest number of documents that contain a word.
    #[serde(deserialize_with = "frequency")]
    pub max_df: Option<Frequency>,
    /// The largest number of words, chosen by document frequency. With 0, all words are kept.
    pub max_terms: Option<usize>,
    /// The words to remove: `english`, `none`, or a file of words.
    pub stop_words: Option<String>,
    /// The smallest number of letters of a word.
    pub min_length: Option<usize>,
    /// The largest number of letters of a word.
    pub max_length: Option<usize>,
    /// The characters other than letters that belong to words.
    pub keep: Vec<Extra>,
    /// A pattern that defines words instead.
    pub pattern: Option<Pattern>,
    /// The share of the documents to hold out.
    pub heldout: Option<f64>,
    /// The seed for the choice of held-out documents.
    pub seed: Option<u64>,
}

/// The number 1 is one document, and 1.0 is all documents.
fn frequency<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Frequency>, D::Error> {
    let number = Option::<serde_json::Number>::deserialize(from)?;
    let frequency = number.map(|number| number.to_string().parse());
    frequency.transpose().map_err(serde::de::Error::custom)
}

impl CorpusRequest {
    /// The default field with the text.
    pub const FIELD: &str = "text";
    /// The default smallest and largest number of letters of a word.
    pub const LENGTHS: [usize; 2] = [2, 30];
    /// The default share of held-out documents.
    pub const HELDOUT: f64 = 0.01;

    fn lengths(&self) -> [usize; 2] {
        let [least, most] = Self::LENGTHS;
        [
            self.min_length.unwrap_or(least),
            self.max_length.unwrap_or(most),
        ]
    }

    /// Checks that some word lengths are allowed.
    ///
    /// # Errors
    /// Fails with [`Error::Setting`] if the lengths exclude all words.
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
        Ok(())
    }

    /// Opens the inputs.
    ///
    /// # Errors
    /// Returns the errors of [`Sources::new`].
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

    /// Returns the settings for building a corpus from these inputs.
    ///
    /// # Errors
    /// Returns the same errors as [`check`](Self::check). Also fails if the file of stop words cannot be read.
    pub fn settings(&self, sources: &Sources) -> Result<BuildSettings, Error> {
        self.check()?;
        let [min_length, max_length] = self.lengths();
        let mut settings = BuildSettings::new(sources);
        settings.tokeniser = Tokeniser {
            min_length,
            max_length,
            keep: self.keep.clone(),
            pattern: self.pattern.clone(),
        };
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
