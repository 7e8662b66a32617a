//! Counts the words of the inputs, and pairs of neighbouring words.

use std::collections::BTreeSet;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::build::{BuildSettings, Choice, TASK, each_chunk};
use super::count::{Count, LocalCounts, WordCounts};
use super::sources::{Chunk, Content, Sources};
use super::stream::{Extract, Found, Text};
use super::vocabulary::{choose, select};
use crate::error::DataError;

/// The frequencies of words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tally {
    /// The words of text, in no particular order, together with the floor of [`WordCounts`].
    Words(Vec<(String, Count)>, u64),
    /// The count of each word in bags. The counts are in the order in which the bags number their words.
    Terms(Vec<Count>),
}

impl Tally {
    /// Returns the counts if no word was dropped, and `None` otherwise.
    pub(crate) fn exact(self) -> Option<Self> {
        match self {
            Self::Words(_, 1..) => None,
            exact => Some(exact),
        }
    }

    /// Returns the words of an existing model, followed by the other words that meet the settings of the vocabulary.
    pub(crate) fn append(
        self,
        words: &[String],
        sources: &Sources,
        documents: u64,
        settings: &BuildSettings,
    ) -> Choice {
        let (all, floor) = match self {
            Self::Words(all, floor) => (all, floor),
            Self::Terms(counts) => {
                let names = sources.words().unwrap_or_default();
                (names.iter().cloned().zip(counts).collect(), 0)
            }
        };
        let mut known: BTreeSet<&str> = words.iter().map(String::as_str).collect();
        let new: Vec<(&str, Count)> = all
            .iter()
            .map(|(word, count)| (word.as_str(), *count))
            .filter(|(word, _)| known.insert(*word))
            .collect();
        let chosen = select(&new, documents, &settings.vocabulary);
        let added = chosen.iter().map(|&i| new[i].0.to_owned());
        Choice {
            words: words.iter().cloned().chain(added).collect(),
            distinct: all.len() as u64,
            floor,
            ..Choice::default()
        }
    }

    pub(crate) fn choose(
        self,
        sources: &Sources,
        documents: u64,
        settings: &BuildSettings,
    ) -> Result<Choice, DataError> {
        match self {
            Self::Terms(counts) => {
                let words = sources.words().unwrap_or_default();
                let all: Vec<(&str, Count)> =
                    words.iter().map(String::as_str).zip(counts).collect();
                let old = choose(&all, documents, &settings.vocabulary)?;
                Ok(Choice {
                    words: old.iter().map(|&old| words[old].clone()).collect(),
                    distinct: all.iter().filter(|word| word.1.documents > 0).count() as u64,
                    old: Some(old),
                    ..Choice::default()
                })
            }
            Self::Words(mut all, floor) => {
                let distinct = all.len() as u64;
                let seen: Vec<(&str, Count)> = all
                    .iter()
                    .map(|(word, count)| (word.as_str(), *count))
                    .collect();
                let chosen = if documents == 0 || seen.is_empty() {
                    Vec::new()
                } else {
                    choose(&seen, documents, &settings.vocabulary)?
                };
                let words = chosen.iter().map(|&i| std::mem::take(&mut all[i].0));
                Ok(Choice {
                    words: words.collect(),
                    distinct,
                    floor,
                    ..Choice::default()
                })
            }
        }
    }
}

pub(crate) fn tally(
    sources: &Sources,
    settings: &BuildSettings,
    watch: &mut dyn FnMut(u64) -> Result<(), DataError>,
) -> Result<(u64, Tally), DataError> {
    if let Some(words) = sources.words() {
        let mut counts = vec![Count::default(); words.len()];
        let mut work = |chunk: &Chunk| {
            if let Content::Bags(bags) = &chunk.content {
                for (&term, &n) in bags.terms.iter().zip(&bags.counts) {
                    counts[term as usize].documents += 1;
                    counts[term as usize].tokens += u64::from(n);
                }
            }
            Ok(())
        };
        let documents = each_chunk(sources, &mut work, watch)?;
        return Ok((documents, Tally::Terms(counts)));
    }
    let extract = Extract::new(sources, &settings.tokeniser);
    let note = |text: &Found<'_>, scratch: &mut String, [words]: &mut [LocalCounts; 1]| {
        extract.words(text, scratch, |word| words.add(word));
    };
    let (documents, [words]) = count(sources, settings, &extract, &note, watch)?;
    Ok((documents, words))
}

/// Counts words and pairs of neighbours for learning phrases. A stop word is part of no pair.
pub(crate) fn pairs(
    sources: &Sources,
    settings: &BuildSettings,
    watch: &mut dyn FnMut(u64) -> Result<(), DataError>,
) -> Result<(u64, [Tally; 2]), DataError> {
    let extract = Extract::new(sources, &settings.tokeniser);
    let longest = settings.phrases.map_or(0, |phrases| phrases.longest);
    let stops = |word: &str| settings.vocabulary.stop_words.contains(word);
    let note = |text: &Found<'_>, scratch: &mut String, [words, pairs]: &mut [LocalCounts; 2]| {
        let units = extract.units(text, scratch);
        units.each(|word| words.add(word));
        units.pairs(longest, scratch, |first, second, pair| {
            if !stops(first) && !stops(second) {
                pairs.add(pair);
            }
        });
    };
    count(sources, settings, &extract, &note, watch)
}

type Note<'a, const TABLES: usize> =
    &'a (dyn Fn(&Found<'_>, &mut String, &mut [LocalCounts; TABLES]) + Sync);

/// Reads all texts and returns the number of documents and the counts that `note` adds for each of them.
fn count<const TABLES: usize>(
    sources: &Sources,
    settings: &BuildSettings,
    extract: &Extract<'_>,
    note: Note<'_, TABLES>,
    watch: &mut dyn FnMut(u64) -> Result<(), DataError>,
) -> Result<(u64, [Tally; TABLES]), DataError> {
    let mut counts = [(); TABLES].map(|()| WordCounts::new(settings.table));
    let mut work = |chunk: &Chunk| {
        let Content::Texts(texts) = &chunk.content else {
            return Ok(());
        };
        let tasks = chunk.len().div_ceil(TASK);
        let local = (0..tasks).into_par_iter().map(|task| {
            let mut local = [(); TABLES].map(|()| LocalCounts::default());
            let mut scratch = String::new();
            for i in task * TASK..((task + 1) * TASK).min(chunk.len()) {
                if let Text::Words(text) = extract.text(texts, i)? {
                    note(&text, &mut scratch, &mut local);
                }
                local.iter_mut().for_each(LocalCounts::next_document);
            }
            Ok(local)
        });
        let local: Vec<Result<[LocalCounts; TABLES], DataError>> = local.collect();
        for local in local {
            for (counts, local) in counts.iter_mut().zip(local?) {
                counts.add(local);
            }
        }
        counts.iter_mut().for_each(WordCounts::shrink);
        Ok(())
    };
    let documents = each_chunk(sources, &mut work, watch)?;
    let tallies = counts.map(|counts| {
        let floor = counts.floor();
        Tally::Words(counts.into_words(), floor)
    });
    Ok((documents, tallies))
}
