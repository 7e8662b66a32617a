//! Topic models of corpora. This module applies the methods of `jensen-conjugate` to the files of `jensen-data`.
//!
//! | file | subject |
//! | --- | --- |
//! | here | [`CorpusDocuments`] and [`ShardDocuments`]: parts of a corpus as documents; [`bag`] |
//! | `model` | [`TopicModel`]: topics with their words, and the file format |
//! | `collection` | [`Collection`]: the documents of a fit, in a file or in memory |
//! | `corpus` | [`CorpusRequest`]: the settings of a corpus, with their defaults |
//! | `map` | the map of topics by shared words, for the report |
//! | `exemplars` | the documents with the largest share of each topic, for the report |
//! | `coherence` | [`coherence()`]: whether the top words of a topic occur together |
//! | `candidates` | the scores of all numbers of topics that a run compared |
//! | `effects` | [`topic_effects`]: effects of covariates on the prevalence of topics |
//! | `request` | [`TopicsRequest`]: the settings of a fit, with their defaults |
//! | `job` | [`fit_topics`]: the fit job |
//! | `course` | curves from the records of a run |
//! | [`stored`] | the folder of a fit |
//! | `summary` | [`TopicsSummary`] and [`TopicRow`]: the contents of `fit.json` |
//! | `report_page` | [`report_page()`]: the report of a fit |
//!
//! ```
//! use std::time::Instant;
//!
//! use jensen::conjugate::lda::{self, LdaJob, LdaSettings};
//! use jensen::data::corpus::sources::SourceSettings;
//! use jensen::data::corpus::{BuildSettings, Corpus, Frequency, Split, Sources, build};
//! use jensen::math::simd::Simd;
//! use jensen::run::{Budget, Control, Silent};
//! use jensen::topics::CorpusDocuments;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("jensen-topics-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let (text, out) = (folder.join("animals.txt"), folder.join("animals.corpus"));
//! # std::fs::write(&text, "cats purr\ncats hiss\ndogs bark\ndogs growl\n".repeat(20))?;
//! // A line of the text is a document.
//! let sources = Sources::new(&[text], &SourceSettings::default())?;
//! let mut settings = BuildSettings::new(&sources);
//! settings.vocabulary.max_df = Frequency::Share(1.0);
//! build(&sources, &out, &settings, &mut |_| true)?;
//!
//! let corpus = Corpus::open(&out)?;
//! let documents = CorpusDocuments::new(&corpus, Split::Train);
//! let job = LdaJob {
//!     documents: &documents,
//!     heldout: None,
//!     scored: usize::MAX,
//!     start: None,
//!     settings: LdaSettings { batch: 10, tau: 1.0, passes: 10.0, ..LdaSettings::new(2) },
//!     simd: Simd::detect(),
//!     data_hash: corpus.digest().to_owned(),
//! };
//! let begun = Instant::now();
//! let clock = || begun.elapsed().as_secs_f64();
//! let fitted = lda::fit(&job, &mut Control::new(Budget::iterations(1000), &clock, &mut Silent))?;
//! let topics = fitted.output.expect("the documents hold words").topics;
//! let best = topics.top_words(0, 1)[0].0;
//! assert!(["cats", "dogs"].contains(&corpus.words()[best as usize].as_str()));
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```

mod candidates;
mod coherence;
mod collection;
mod corpus;
mod course;
mod effects;
mod exemplars;
mod job;
mod map;
mod model;
mod report_page;
mod request;
pub mod stored;
mod summary;

use jensen_conjugate::documents::{Bag, Documents};
use jensen_data::corpus::{Corpus, CorpusFile, Document, Split};

pub use coherence::{Coherence, WindowCoherence, coherence};
pub use collection::Collection;
pub use corpus::CorpusRequest;
pub use course::{PassSizes, TopicsCourse};
pub use effects::{
    EffectsRequest, TopicEffect, TopicEffects, TopicShare, match_rows, topic_effects,
};
pub use job::{TopicsJob, TopicsMade, fit_topics, fit_topics_on, score};
pub use model::{TopicModel, TopicModelError};
pub use report_page::{Curves, report_page};
pub use request::TopicsRequest;
pub use summary::{TopicRow, TopicsCandidate, TopicsSeconds, TopicsSummary, rows, rows_judged};

/// The training documents or the held-out documents of a memory-mapped corpus.
#[derive(Clone, Copy, Debug)]
pub struct CorpusDocuments<'a> {
    corpus: &'a Corpus,
    part: Split,
}

impl<'a> CorpusDocuments<'a> {
    /// Selects the training documents or the held-out documents of a corpus.
    pub fn new(corpus: &'a Corpus, part: Split) -> Self {
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

    fn shards(&self) -> Vec<usize> {
        let shards = self.corpus.shards().iter();
        shards.map(|shard| shard.documents(self.part)).collect()
    }

    fn block(&self) -> usize {
        self.corpus.block()
    }
}

/// The training documents or the held-out documents of one shard of a corpus.
#[derive(Clone, Copy, Debug)]
pub struct ShardDocuments<'a> {
    shard: &'a CorpusFile,
    part: Split,
}

impl<'a> ShardDocuments<'a> {
    /// Selects the training documents or the held-out documents of a shard.
    pub fn new(shard: &'a CorpusFile, part: Split) -> Self {
        Self { shard, part }
    }
}

impl Documents for ShardDocuments<'_> {
    fn len(&self) -> usize {
        self.shard.documents(self.part)
    }

    fn terms(&self) -> usize {
        self.shard.terms()
    }

    fn tokens(&self) -> f64 {
        self.shard.tokens(self.part) as f64
    }

    fn read(&self, index: usize, bag: &mut Bag) {
        bag.clear();
        self.shard
            .visit(self.part, index, |term, count| bag.push(term, count as f32));
    }
}

/// Returns the bag of words of a document.
pub fn bag(document: &Document) -> Bag {
    Bag {
        terms: document.terms.clone(),
        counts: document.counts.iter().map(|&count| count as f32).collect(),
    }
}
