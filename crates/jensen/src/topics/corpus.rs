//! The settings of a corpus, with their defaults.

use std::path::{Path, PathBuf};

use jensen_data::corpus::sources::SourceSettings;
use jensen_data::corpus::{
    BuildSettings, DocumentUnit, Extra, Format, Frequency, Pattern, Sources, StopWords, Tokeniser,
};
use serde::{Deserialize, Deserializer};

use crate::Error;

/// The settings of a corpus. Absent settings have defaults.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CorpusRequest {
    /// Files and folders of text or bags of words.
    pub inputs: Vec<PathBuf>,
    /// Format of the inputs. By default, the names of the inputs determine it.
    pub format: Option<Format>,
    /// Field of a JSON line, or column of a Parquet file, with the text.
    pub field: Option<String>,
    /// The unit of a plain-text document. The default is a file for inputs in a folder, and a line for a file given by
    /// name.
    pub documents: Option<DocumentUnit>,
    /// The words of bags, one per line.
    pub vocabulary: Option<PathBuf>,
    /// Smallest number of documents with a word.
    #[serde(deserialize_with = "frequency")]
    pub min_df: Option<Frequency>,
    /// Largest number of documents with a word.
    #[serde(deserialize_with = "frequency")]
    pub max_df: Option<Frequency>,
    /// Largest number of words, by document frequency. 0 keeps all.
    pub max_terms: Option<usize>,
    /// Words to remove: `english`, `none`, or a file of words.
    pub stop_words: Option<String>,
    /// Fewest letters of a word.
    pub min_length: Option<usize>,
    /// Largest number of letters of a word.
    pub max_length: Option<usize>,
    /// Characters other than letters that belong to words.
    pub keep: Vec<Extra>,
    /// An alternative definition of a word.
    pub pattern: Option<Pattern>,
    /// Share of the documents to hold out.
    pub heldout: Option<f64>,
    /// Seed of their choice.
    pub seed: Option<u64>,
}

/// Returns a number as written: The number 1 is one document, and 1.0 is all documents.
fn frequency<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Frequency>, D::Error> {
    let number = Option::<serde_json::Number>::deserialize(from)?;
    let frequency = number.map(|number| number.to_string().parse());
    frequency.transpose().map_err(serde::de::Error::custom)
}

impl CorpusRequest {
    /// Default field with the text.
    pub const FIELD: &str = "text";
    /// Default smallest and largest number of letters of a word.
    pub const LENGTHS: [usize; 2] = [2, 30];
    /// Default share of held-out documents.
    pub const HELDOUT: f64 = 0.01;

    fn lengths(&self) -> [usize; 2] {
        let [least, most] = Self::LENGTHS;
        [
            self.min_length.unwrap_or(least),
            self.max_length.unwrap_or(most),
        ]
    }

    /// Rejects word lengths that exclude all words.
    ///
    /// # Errors
    /// [`Error::Setting`].
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

    /// Returns the inputs.
    ///
    /// # Errors
    /// Fails as [`Sources::new`] does.
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

    /// Returns the settings of the build from the inputs.
    ///
    /// # Errors
    /// Fails as [`check`](Self::check) does, and for an unreadable file of stop words.
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
