//! Topics with their words, and the file format in which they are stored.

use std::fmt;

use jensen_conjugate::lda::Topics;
use jensen_data::corpus::Tokeniser;
use jensen_run::{Archive, ArchiveError, Checkpoint, CheckpointError, Identity, Snapshot};
use rayon::prelude::*;

const ALGORITHM: &str = "topics";

/// Topics, together with the words and the settings that inference on new documents needs.
#[derive(Clone, Debug)]
pub struct TopicModel {
    /// The topics.
    pub topics: Topics,
    /// The words of the vocabulary, indexed by term.
    pub words: Vec<String>,
    /// The tokeniser that split the text of the corpus into words. If the corpus was built from bags of words, this
    /// field contains the default tokeniser.
    pub tokeniser: Tokeniser,
}

/// The error returned if bytes do not contain a topic model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TopicModelError {
    /// The bytes are incomplete, were modified, or were not written by Jensen.
    Bytes(CheckpointError),
    /// The bytes contain a fit of another kind.
    Content(ArchiveError),
}

impl fmt::Display for TopicModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(error) => error.fmt(f),
            Self::Content(error) => write!(f, "this is not a topic model: {error}"),
        }
    }
}

impl std::error::Error for TopicModelError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Bytes(error) => error.source(),
            Self::Content(error) => Some(error),
        }
    }
}

impl TopicModel {
    /// Encodes the model in the safetensors format.
    pub fn encode(&self) -> Vec<u8> {
        let mut state = Archive::new();
        state.nest("topics", self.topics.save());
        state.set("words", &self.words);
        state.set("tokeniser", &self.tokeniser);
        Checkpoint::of_result(Identity::of_result(ALGORITHM), state).encode()
    }

    /// Decodes bytes that [`encode`](Self::encode) produced.
    ///
    /// # Errors
    /// Fails if the bytes are damaged, have another format version or do not contain a topic model.
    pub fn decode(bytes: &[u8]) -> Result<Self, TopicModelError> {
        let checkpoint = Checkpoint::decode(bytes).map_err(TopicModelError::Bytes)?;
        Self::restore(&checkpoint.state).map_err(TopicModelError::Content)
    }

    fn restore(state: &Archive) -> Result<Self, ArchiveError> {
        let model = Self {
            topics: Topics::restore(&state.nested("topics"))?,
            words: state.get("words")?,
            tokeniser: state.get("tokeniser")?,
        };
        if model.words.len() != model.topics.terms {
            return Err(ArchiveError(format!(
                "{} words for {} terms",
                model.words.len(),
                model.topics.terms
            )));
        }
        Ok(model)
    }

    /// Returns the `count` most probable terms of each topic with their probabilities, in descending order of
    /// probability.
    pub fn top_words(&self, count: usize) -> Vec<Vec<(u32, f64)>> {
        let topics = 0..self.topics.topics;
        topics
            .into_par_iter()
            .map(|topic| self.topics.top_words(topic, count))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use jensen_conjugate::lda::Inference;

    use super::*;

    #[test]
    fn a_model_comes_back_from_its_bytes() {
        let model = TopicModel {
            topics: Topics {
                topics: 2,
                terms: 3,
                inference: Inference::Cvb0,
                alpha: vec![0.5, 0.2],
                eta: 0.1,
                lambda: vec![0.1, 4.0, 2.5, 0.1, 1.0 / 3.0, 9.0],
                steps: 7,
                population: 12.0,
            },
            words: ["a", "b", "ç"].map(str::to_owned).to_vec(),
            tokeniser: Tokeniser {
                min_length: 1,
                max_length: 9,
                ..Tokeniser::default()
            },
        };
        let bytes = model.encode();
        let read = TopicModel::decode(&bytes).unwrap();
        assert_eq!(read.topics, model.topics);
        assert_eq!(
            (&read.words, &read.tokeniser),
            (&model.words, &model.tokeniser)
        );
        let top: Vec<Vec<u32>> = (model.top_words(2).iter())
            .map(|words| words.iter().map(|word| word.0).collect())
            .collect();
        assert_eq!(top, [[1, 2], [2, 0]]);
        let cut = TopicModel::decode(&bytes[..bytes.len() - 3]);
        assert!(matches!(cut, Err(TopicModelError::Bytes(_))));
        let wrong = TopicModel {
            words: vec!["a".to_owned()],
            ..model
        };
        let error = TopicModel::decode(&wrong.encode()).unwrap_err().to_string();
        assert!(error.contains("1 words for 3 terms"), "{error}");
    }
}
