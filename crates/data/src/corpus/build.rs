//! Builds a corpus from inputs in two passes. The first pass counts words, and the second pass writes documents.

use std::collections::HashMap;
use std::path::Path;

use foldhash::fast::FixedState;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::apart::Written;
use super::count::WordCounts;
use super::file::Split;
use super::phrases::{PhraseSettings, Phrases};
use super::sources::{Chunk, Content, Format, Skipped, Sources};
use super::stream::{Extract, Text};
use super::tally::{pairs, tally};
use super::tokens::Tokeniser;
use super::vocabulary::VocabularySettings;
use super::writer::{self, CorpusWriter};
use crate::error::DataError;

/// The number of documents that a task reads.
pub(super) const TASK: usize = 128;

/// The settings for building a corpus.
#[derive(Clone, Debug)]
pub struct BuildSettings {
    /// The settings for splitting text into words.
    pub tokeniser: Tokeniser,
    /// The settings for choosing the vocabulary.
    pub vocabulary: VocabularySettings,
    /// The settings for learning phrases, if the build learns phrases.
    pub phrases: Option<PhraseSettings>,
    /// The words of an existing model, in the order of its terms. If these words are given, they are the vocabulary of
    /// the corpus, and no other vocabulary is chosen.
    pub fixed: Option<Vec<String>>,
    /// Whether words that meet the settings of the vocabulary are appended to the words of the existing model.
    pub grows: bool,
    /// The fraction of documents that are held out. The fraction is at least 0 and less than 1.
    pub heldout: f64,
    /// The seed that determines which documents are held out.
    pub seed: u64,
    /// The largest number of distinct words that are counted; see [`WordCounts`].
    pub table: usize,
}

impl BuildSettings {
    /// Returns the default settings. They hold out no documents. Bags keep all of their words, and text keeps its
    /// common words.
    pub fn new(sources: &Sources) -> Self {
        Self {
            tokeniser: Tokeniser::default(),
            vocabulary: if sources.words().is_some() {
                VocabularySettings::bags()
            } else {
                VocabularySettings::text()
            },
            phrases: None,
            fixed: None,
            grows: false,
            heldout: 0.0,
            seed: 0,
            table: WordCounts::LIMIT,
        }
    }

    /// Returns these settings with a tokeniser that joins the given phrases.
    pub(crate) fn joining(&self, phrases: &Phrases) -> Self {
        let mut settings = self.clone();
        settings.tokeniser.phrases.clone_from(phrases);
        settings
    }
}

/// The result of a build.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Built {
    /// The names of the inputs.
    pub inputs: Vec<String>,
    /// The format of the inputs.
    pub format: Option<Format>,
    /// The number of training documents.
    pub documents: u64,
    /// The number of held-out documents.
    pub heldout_documents: u64,
    /// The number of training tokens.
    pub tokens: u64,
    /// The number of held-out tokens.
    pub heldout_tokens: u64,
    /// The number of words in the vocabulary.
    pub terms: u64,
    /// The number of distinct words in the inputs.
    pub distinct_words: u64,
    /// The number of occurrences of words that are not in the vocabulary.
    pub tokens_left_out: u64,
    /// The number of phrases that the build has learnt.
    #[serde(default)]
    pub phrases: u64,
    /// The number of omitted documents for each reason.
    pub skipped: Skipped,
    /// The largest document frequency for which counts are uncertain. If the inputs contain too many distinct words, a
    /// word in at most this many documents may be missing, or its count may be too low. The value is 0 if all counts
    /// are exact.
    pub uncertain_below: u64,
    /// The fraction of documents that are held out.
    pub heldout: f64,
    /// The seed that determined which documents are held out.
    pub seed: u64,
    /// The settings for splitting text into words. The settings are absent if the inputs are bags of words.
    pub tokeniser: Option<Tokeniser>,
}

/// A pass over the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Pairs of neighbouring words are counted. Longer phrases need several such passes.
    Phrases,
    /// Words are counted.
    Words,
    /// Documents are written.
    Documents,
}

/// The progress of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildProgress {
    /// The current pass over the inputs.
    pub pass: Pass,
    /// The number of documents that have been read in this pass.
    pub documents: u64,
    /// The total number of documents. The total is known only in the last pass.
    pub total: Option<u64>,
}

/// Builds a corpus in the file `out`, using the current thread pool. The result does not depend on the number of
/// threads.
///
/// Three things are held in memory: the table of words, whose size is limited; a few chunks of a few thousand documents
/// each; and eight bytes for every 64 documents written.
///
/// # Errors
/// Fails if an input cannot be read or is damaged, if no word or no document remains, or if the file cannot be written.
/// Also fails with the error "interrupted" if `progress` returns false. In all of these cases, the file `out` is not
/// written.
pub fn build(
    sources: &Sources,
    out: &Path,
    settings: &BuildSettings,
    progress: &mut dyn FnMut(BuildProgress) -> bool,
) -> Result<Built, DataError> {
    check(settings)?;
    let mut watch = |pass: Pass, documents: u64, total: Option<u64>| {
        if progress(BuildProgress {
            pass,
            documents,
            total,
        }) {
            Ok(())
        } else {
            Err(DataError::invalid("interrupted: Jensen wrote no corpus"))
        }
    };
    let learnt;
    let settings = match &settings.phrases {
        None => settings,
        Some(wanted) => {
            let phrases = Phrases::learn(wanted, &settings.vocabulary, |phrases| {
                let mut watch = |read| watch(Pass::Phrases, read, None);
                pairs(sources, &settings.joining(phrases), &mut watch)
            })?;
            learnt = settings.joining(&phrases);
            &learnt
        }
    };
    let (total, choice) = match &settings.fixed {
        Some(words) if !settings.grows => (None, Choice::fixed(words)),
        fixed => {
            let (documents, tally) = tally(sources, settings, &mut |read| {
                watch(Pass::Words, read, None)
            })?;
            let choice = match fixed {
                Some(words) => tally.append(words, sources, documents, settings),
                None => tally.choose(sources, documents, settings)?,
            };
            (Some(documents), choice)
        }
    };
    let mut built = Built::begun(sources, settings, &choice);
    writer::write(out, |writer| {
        let mut watch = |read| watch(Pass::Documents, read, total);
        let written = write_documents(writer, sources, settings, &choice, 0, out, &mut watch)?;
        built.add(&written);
        built.check(sources)?;
        let record = built.record()?;
        Ok((choice.words.iter().map(String::as_str), record))
    })?;
    Ok(built)
}

pub(crate) fn check(settings: &BuildSettings) -> Result<(), DataError> {
    if (0.0..1.0).contains(&settings.heldout) {
        return Ok(());
    }
    Err(DataError::invalid(format!(
        "the share of held-out documents is {}, but must be at least 0 and below 1",
        settings.heldout
    )))
}

impl Built {
    pub(crate) fn begun(sources: &Sources, settings: &BuildSettings, choice: &Choice) -> Self {
        Self {
            inputs: sources.names(),
            format: sources.format(),
            terms: choice.words.len() as u64,
            distinct_words: choice.distinct,
            uncertain_below: choice.floor,
            phrases: settings.tokeniser.phrases.len() as u64,
            heldout: settings.heldout,
            seed: settings.seed,
            tokeniser: sources
                .words()
                .is_none()
                .then(|| settings.tokeniser.clone()),
            documents: 0,
            heldout_documents: 0,
            tokens: 0,
            heldout_tokens: 0,
            tokens_left_out: 0,
            skipped: Skipped::default(),
        }
    }

    pub(crate) fn add(&mut self, written: &Written) {
        let [train, heldout] = written.parts;
        self.documents += train.0;
        self.tokens += train.1;
        self.heldout_documents += heldout.0;
        self.heldout_tokens += heldout.1;
        self.tokens_left_out += written.left_out;
        self.skipped.add(&written.skipped);
    }

    pub(crate) fn check(&self, sources: &Sources) -> Result<(), DataError> {
        if self.documents + self.heldout_documents == 0 {
            return Err(nothing_left(sources, self));
        }
        if self.documents == 0 {
            return Err(DataError::invalid(
                "every document is held out: lower the share of held-out documents",
            ));
        }
        Ok(())
    }

    pub(crate) fn record(&self) -> Result<String, DataError> {
        serde_json::to_string(self).map_err(|error| DataError::invalid(error.to_string()))
    }
}

fn write_documents(
    writer: &mut CorpusWriter<'_>,
    sources: &Sources,
    settings: &BuildSettings,
    choice: &Choice,
    before: u64,
    out: &Path,
    watch: &mut dyn FnMut(u64) -> Result<(), DataError>,
) -> Result<Written, DataError> {
    let extract = Extract::new(sources, &settings.tokeniser);
    let counted = Counted::of(choice, sources);
    let mut written = Written::default();
    let mut write = |chunk: &Chunk| {
        for mut piece in pieces(chunk, &extract, &counted)? {
            piece.first += before;
            piece.write(writer, out, settings, &mut written)?;
        }
        Ok(())
    };
    written.read = each_chunk(sources, &mut write, watch)?;
    written.parts = Split::ALL.map(|part| writer.totals(part));
    Ok(written)
}

/// Writes all documents of `sources` to a file that is part of a corpus. `before` is the number of documents that
/// precede them in the corpus.
pub(crate) fn write_part(
    sources: &Sources,
    settings: &BuildSettings,
    choice: &Choice,
    before: u64,
    out: &Path,
) -> Result<Written, DataError> {
    let mut found = Written::default();
    writer::write(out, |writer| {
        let mut watch = |_| Ok(());
        found = write_documents(writer, sources, settings, choice, before, out, &mut watch)?;
        Ok((choice.words.iter().map(String::as_str), "{}".to_owned()))
    })?;
    Ok(found)
}

fn nothing_left(sources: &Sources, built: &Built) -> DataError {
    let skipped = &built.skipped;
    let mut reasons = Vec::new();
    for (count, what) in [
        (skipped.empty, "have no word of the vocabulary".to_owned()),
        (skipped.not_utf8, "are not UTF-8 text".to_owned()),
        (
            skipped.without_text,
            format!("have no text in the field `{}` (--field)", sources.field),
        ),
    ] {
        if count > 0 {
            reasons.push(format!("{count} {what}"));
        }
    }
    let reasons = if reasons.is_empty() {
        format!("there are no documents in {}", sources.shown())
    } else {
        reasons.join(", ")
    };
    DataError::invalid(format!("no document remains: {reasons}"))
}

/// Calls `work` for each chunk in order. The next chunk is read while `work` runs.
pub(super) fn each_chunk(
    sources: &Sources,
    work: &mut (dyn FnMut(&Chunk) -> Result<(), DataError> + Send),
    watch: &mut dyn FnMut(u64) -> Result<(), DataError>,
) -> Result<u64, DataError> {
    let mut reader = sources.reader();
    let mut read = 0;
    let mut present = reader.chunk()?;
    while let Some(chunk) = present {
        let (next, done) = rayon::join(|| reader.chunk(), || work(&chunk));
        done?;
        read += chunk.len() as u64;
        watch(read)?;
        present = next?;
    }
    Ok(read)
}

/// The vocabulary that was chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The words, indexed by term.
    pub words: Vec<String>,
    /// For bags, the index of each word in the input. Bags refer to words by index, not by name.
    pub old: Option<Vec<usize>>,
    /// The number of distinct words in the inputs; see [`Built::distinct_words`].
    pub distinct: u64,
    /// The largest document frequency for which counts may be wrong; see [`Built::uncertain_below`].
    pub floor: u64,
    /// The phrases that a build in pieces has learnt so far.
    pub phrases: Phrases,
}

impl Choice {
    fn fixed(words: &[String]) -> Self {
        Self {
            words: words.to_vec(),
            ..Self::default()
        }
    }
}

struct Counted {
    terms: HashMap<Box<str>, u32, FixedState>,
    /// The new index of each term of the input bags. The index is `u32::MAX` if the term is omitted.
    renumbered: Vec<u32>,
}

impl Counted {
    fn of(choice: &Choice, sources: &Sources) -> Self {
        let words = sources.words().unwrap_or_default();
        let Some(old) = &choice.old else {
            let terms: HashMap<Box<str>, u32, FixedState> = (0..)
                .zip(&choice.words)
                .map(|(term, word)| (word.as_str().into(), term))
                .collect();
            let number = |word: &String| terms.get(word.as_str()).copied().unwrap_or(u32::MAX);
            return Self {
                renumbered: words.iter().map(number).collect(),
                terms,
            };
        };
        let mut renumbered = vec![u32::MAX; words.len()];
        for (term, &old) in (0..).zip(old) {
            if let Some(number) = renumbered.get_mut(old) {
                *number = term;
            }
        }
        Self {
            terms: HashMap::default(),
            renumbered,
        }
    }
}

#[derive(Default)]
struct Piece {
    first: u64,
    terms: Vec<u32>,
    counts: Vec<u32>,
    /// The end of each document. Documents without words are omitted.
    ends: Vec<usize>,
    left_out: u64,
    skipped: Skipped,
}

impl Piece {
    /// Adds a document, given by its tokens in any order.
    fn push(&mut self, tokens: &mut Vec<u32>) {
        tokens.sort_unstable();
        let start = self.terms.len();
        for &term in &*tokens {
            if self.terms.len() > start && self.terms.last() == Some(&term) {
                if let Some(count) = self.counts.last_mut() {
                    *count += 1;
                }
            } else {
                self.terms.push(term);
                self.counts.push(1);
            }
        }
        tokens.clear();
    }

    fn write(
        self,
        writer: &mut CorpusWriter<'_>,
        out: &Path,
        settings: &BuildSettings,
        written: &mut Written,
    ) -> Result<(), DataError> {
        written.skipped.add(&self.skipped);
        written.left_out += self.left_out;
        let mut start = 0;
        for (number, end) in (self.first..).zip(self.ends) {
            let range = start..end;
            start = end;
            if range.is_empty() {
                continue;
            }
            let part = if held_out(settings.seed, number, settings.heldout) {
                Split::Heldout
            } else {
                Split::Train
            };
            writer
                .document(part, &self.terms[range.clone()], &self.counts[range])
                .map_err(|error| DataError::io("write", out, &error))?;
        }
        Ok(())
    }
}

/// Returns whether the document with the given number is held out. The result depends only on the arguments.
fn held_out(seed: u64, number: u64, share: f64) -> bool {
    // This is the finaliser of SplitMix64, applied to the two numbers.
    let mix = |mut x: u64| {
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let x = mix(mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15))
        .wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    ((x >> 11) as f64) < share * (1u64 << 53) as f64
}

fn pieces(chunk: &Chunk, extract: &Extract, counted: &Counted) -> Result<Vec<Piece>, DataError> {
    let tasks = chunk.len().div_ceil(TASK);
    let work = |task: usize| {
        let mut piece = Piece {
            first: chunk.first + (task * TASK) as u64,
            ..Piece::default()
        };
        let (mut scratch, mut tokens) = (String::new(), Vec::new());
        for i in task * TASK..((task + 1) * TASK).min(chunk.len()) {
            let start = piece.terms.len();
            let mut there = true;
            match &chunk.content {
                Content::Texts(texts) => match extract.text(texts, i)? {
                    Text::Words(text) => {
                        let mut left_out = 0;
                        extract.words(&text, &mut scratch, |word| match counted.terms.get(word) {
                            Some(&term) => tokens.push(term),
                            None => left_out += 1,
                        });
                        piece.left_out += left_out;
                        piece.push(&mut tokens);
                    }
                    Text::NotUtf8 => {
                        piece.skipped.not_utf8 += 1;
                        there = false;
                    }
                    Text::Missing(_) => {
                        piece.skipped.without_text += 1;
                        there = false;
                    }
                },
                Content::Bags(bags) => {
                    let (terms, counts) = bags.get(i);
                    let mut pairs = Vec::with_capacity(terms.len());
                    for (&old, &count) in terms.iter().zip(counts) {
                        match counted.renumbered[old as usize] {
                            u32::MAX => piece.left_out += u64::from(count),
                            term => pairs.push((term, count)),
                        }
                    }
                    pairs.sort_unstable();
                    piece.terms.extend(pairs.iter().map(|pair| pair.0));
                    piece.counts.extend(pairs.iter().map(|pair| pair.1));
                }
            }
            if there && piece.terms.len() == start {
                piece.skipped.empty += 1;
            }
            piece.ends.push(piece.terms.len());
        }
        Ok(piece)
    };
    let pieces: Vec<Result<Piece, DataError>> = (0..tasks).into_par_iter().map(work).collect();
    pieces.into_iter().collect()
}
