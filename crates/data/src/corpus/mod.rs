//! Corpora of documents, which need not fit into memory. Corpora are built from text or from bags of words.
//!
//! [`build()`] reads its [`Sources`] twice, first to count words and then to write documents. The function keeps no
//! documents in memory. The required memory grows with the number of distinct words, which is bounded (see [`count`]),
//! but not with the number of documents. The output is a single file. [`Corpus`] maps this file into memory and reads
//! its documents in any order.
//!
//! | subject | module |
//! | --- | --- |
//! | files that may be compressed: gzip, xz, Zstandard | [`compressed`] |
//! | inputs and their formats: JSON lines, text, UCI, LDA-C, Matrix Market, Parquet | [`sources`], [`bags`], `parquet` |
//! | splitting text into words | [`tokens`], [`stop_words`] |
//! | joining words to phrases | [`phrases`] |
//! | counting words, choosing the vocabulary | [`tally`](mod@tally), [`count`], [`vocabulary`] |
//! | one document as bytes | [`codec`] |
//! | writing and reading the file | [`writer`], [`file`](mod@file) |
//! | a corpus of one file or of several shards | [`shards`] |
//! | the two passes | [`build`](mod@build) |
//! | a build by several workers | [`apart`] |
//! | new documents in the words of a fitted model | [`stream`](mod@stream) |

pub mod apart;
pub mod bags;
pub mod build;
pub mod codec;
pub mod compressed;
pub mod count;
pub mod file;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod phrases;
pub mod shards;
pub mod sources;
pub mod stop_words;
pub mod stream;
pub mod tally;
pub mod tokens;
pub mod vocabulary;
pub mod writer;

pub use build::{BuildSettings, Built, build};
pub use file::{CorpusFile, Document, Split};
pub use phrases::{PhraseSettings, Phrases};
pub use shards::Corpus;
pub use sources::{DocumentUnit, Format, Skipped, Sources};
pub use stop_words::StopWords;
pub use stream::{NewDocument, sequences, stream};
pub use tokens::{Extra, Pattern, Tokeniser};
pub use vocabulary::{Frequency, VocabularySettings};
pub use writer::BLOCK;
