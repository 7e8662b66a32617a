//! Common words that provide no information about the subject of a text.

use std::collections::HashSet;
use std::path::Path;

use foldhash::fast::FixedState;

use super::compressed;
use crate::error::DataError;

/// Common English function words. The list includes the second parts of contractions, because `don't` is split into
/// `don` and `t`.
const ENGLISH: &str = "\
a about above across after again against all almost along already also although always am among an and another any \
anyone anything are aren around as at away back be became because become becomes been before behind being below \
between both but by can cannot cant could couldn did didn do does doesn doing don done down during each either else \
enough etc even ever every everyone everything few for former from further had hadn has hasn have haven having he \
hence her here hers herself him himself his how however i if in indeed instead into is isn it its itself just last \
latter least less like ll made make many may me meanwhile might mightn more moreover most mostly much must mustn my \
myself namely needn neither never nevertheless next no nobody none nor not nothing now nowhere of off often on once \
one only onto or other others otherwise our ours ourselves out over own per perhaps please put quite rather re really \
s same several shall shan she should shouldn since so some somehow someone something sometimes still such t than that \
the their theirs them themselves then thence there thereby therefore these they this those though through throughout \
thus to together too toward towards under until up upon us ve very via was wasn we well were weren what whatever when \
whenever where whereas whereby whether which while who whoever whole whom whose why will with within without won would \
wouldn yet you your yours yourself yourselves";

/// A set of words that are left out of the vocabulary.
#[derive(Clone, Debug, Default)]
pub struct StopWords {
    words: HashSet<String, FixedState>,
}

impl StopWords {
    /// Creates an empty set.
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns a set of common English function words.
    pub fn english() -> Self {
        Self::new(ENGLISH.split_ascii_whitespace())
    }

    /// Creates a set that contains the given words. The words are converted to lower case.
    pub fn new<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            words: words.into_iter().map(str::to_lowercase).collect(),
        }
    }

    /// Reads stop words from a file. The words are separated by white space, and `#` starts a comment.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is not UTF-8 text.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut compressed::open(path)?, &mut text)
            .map_err(|error| compressed::read_error(path, &error))?;
        let words = text.lines().flat_map(|line| {
            let line = line.split('#').next().unwrap_or_default();
            line.split_whitespace()
        });
        Ok(Self::new(words))
    }

    /// Returns whether a word is a stop word. The word must be in lower case.
    pub fn contains(&self, word: &str) -> bool {
        !self.words.is_empty() && self.words.contains(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn english_and_files_of_words() {
        assert!(StopWords::english().contains("the"));
        assert!(!StopWords::english().contains("entropy"));
        assert!(!StopWords::none().contains("the"));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "Und oder # aber\nals").unwrap();
        let words = StopWords::read(file.path()).unwrap();
        assert!(words.contains("und") && words.contains("als") && !words.contains("aber"));
    }
}
