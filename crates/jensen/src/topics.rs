//! Topic models of corpora: what joins the files of `jensen-data` with the methods of `jensen-conjugate`.
//!
//! | file | subject |
//! | --- | --- |
//! | here | [`CorpusDocuments`]: a part of a corpus as documents; [`bag`] |
//! | `model` | [`TopicModel`]: topics with the words they are made of, and their file |
//! | `coherence` | [`coherence()`]: do a topic's top words occur together? |
//! | `summary` | [`TopicsSummary`], [`TopicRow`]: a fit in numbers, `fit.json` |
//! | `sheet` | [`sheet()`]: the page about a fit |

mod coherence;
mod model;
mod sheet;
mod summary;

use jensen_conjugate::documents::{Bag, Documents};
use jensen_data::corpus::{Corpus, Document, Part};

pub use coherence::{Coherence, coherence};
pub use model::{TopicModel, TopicModelError};
pub use sheet::{Curves, sheet};
pub use summary::{TopicRow, TopicsSeconds, TopicsSummary, rows};

/// A part of a memory-mapped corpus.
#[derive(Clone, Copy, Debug)]
pub struct CorpusDocuments<'a> {
    corpus: &'a Corpus,
    part: Part,
}

impl<'a> CorpusDocuments<'a> {
    /// The part of the corpus.
    pub fn new(corpus: &'a Corpus, part: Part) -> Self {
        Self { corpus, part }
    }
}

impl Documents for CorpusDocuments<'_> {
    fn len(&self) -> usize {
        self.corpus.documents(self.part)
    }

    fn terms(&self) -> usize {
        self.corpus.terms()
    }

    fn tokens(&self) -> f64 {
        self.corpus.tokens(self.part) as f64
    }

    fn read(&self, index: usize, bag: &mut Bag) {
        bag.clear();
        self.corpus
            .visit(self.part, index, |term, count| bag.push(term, count as f32));
    }

    fn block(&self) -> usize {
        self.corpus.block()
    }
}

/// A document as a bag.
pub fn bag(document: &Document) -> Bag {
    Bag {
        terms: document.terms.clone(),
        counts: document.counts.iter().map(|&count| count as f32).collect(),
    }
}
