//! The documents of a topic model. They are stored in a corpus file or in memory.

use std::borrow::Cow;

use jensen_conjugate::documents::{Bag, Documents, MemoryDocuments};
use jensen_data::corpus::{BLOCK, Corpus, Split, Tokeniser};

use super::CorpusDocuments;

/// The training documents and held-out documents of a fit, with their vocabulary.
pub struct Collection<'a> {
    pub(super) train: Box<dyn Documents + 'a>,
    pub(super) heldout: Option<Box<dyn Documents + 'a>>,
    /// The words of the vocabulary, indexed by term.
    pub(super) words: Cow<'a, [String]>,
    pub(super) tokeniser: Tokeniser,
    pub(super) digest: String,
    pub(super) name: String,
    pub(super) file: Option<&'a Corpus>,
}

impl<'a> Collection<'a> {
    /// Creates the collection of all documents in a corpus.
    pub fn of_corpus(corpus: &'a Corpus) -> Self {
        let heldout = CorpusDocuments::new(corpus, Split::Heldout);
        let tokeniser = corpus.record().get("tokeniser");
        Self {
            train: Box::new(CorpusDocuments::new(corpus, Split::Train)),
            heldout: (!heldout.is_empty()).then(|| Box::new(heldout) as Box<dyn Documents>),
            words: Cow::Borrowed(corpus.words()),
            tokeniser: serde_json::from_value(tokeniser.cloned().unwrap_or_default())
                .unwrap_or_default(),
            digest: corpus.digest().to_owned(),
            name: corpus.path().display().to_string(),
            file: Some(corpus),
        }
    }

    /// Creates a collection of documents in memory. None of the documents are held out. The word of each term is its
    /// index, written as text. The results of a fit are bitwise identical to those for the same documents in a file.
    pub fn in_memory(documents: MemoryDocuments) -> Self {
        let words = (0..documents.terms()).map(|term| term.to_string());
        Self {
            words: words.collect(),
            digest: digest(&documents),
            tokeniser: Tokeniser::default(),
            train: Box::new(documents.in_blocks(BLOCK)),
            heldout: None,
            name: "documents in memory".to_owned(),
            file: None,
        }
    }

    /// Returns the words of the vocabulary, indexed by term.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Returns the tokeniser that was used to split the text into words.
    pub fn tokeniser(&self) -> &Tokeniser {
        &self.tokeniser
    }
}

/// Computes the digest of documents as the FNV-1a hash of their lengths, terms and counts.
fn digest(documents: &MemoryDocuments) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |x: u64| hash = (hash ^ x).wrapping_mul(0x0000_0100_0000_01b3);
    let mut bag = Bag::new();
    for index in 0..documents.len() {
        documents.read(index, &mut bag);
        add(bag.len() as u64);
        bag.terms.iter().for_each(|&term| add(u64::from(term)));
        bag.counts.iter().for_each(|n| add(u64::from(n.to_bits())));
    }
    format!("{hash:016x} {} {}", documents.len(), documents.terms())
}
