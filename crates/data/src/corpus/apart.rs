//! Builds a corpus of shards with several workers. The result has the same bytes as a corpus that is built on one
//! machine.
//!
//! The work is divided into [`Task`]s. [`Workshop::step`] runs a task on any machine that can read and write the files.
//! A task counts the words of one input file, writes the documents of one input file in the chosen vocabulary, or
//! assembles a shard. [`build_apart`] creates the tasks and combines their answers in the order of the files, so the
//! result does not depend on the number of workers. No task is smaller than one file, and workers read each file twice.
//!
//! The counts are exact as long as the table of [`WordCounts`](super::count::WordCounts) has space for all distinct
//! words of all files together. If there are more words, the counts depend on the order in which files are read.
//! [`build_apart`] then counts all words itself.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use foldhash::fast::FixedState;
use serde::{Deserialize, Serialize};

use super::build::{self, BuildSettings, Built, Choice};
use super::count::Count;
use super::file::{CorpusFile, Split};
use super::phrases::Phrases;
use super::shards::{self, Corpus};
use super::sources::{Skipped, Sources};
use super::tally::{self, Tally};
use crate::atomic::sweep;
use crate::error::DataError;
use crate::files::{create_folder, remove_file};

/// A part of the work that is necessary to build a corpus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Counts the words and the pairs of neighbours in the input file with this index, to learn phrases.
    Pairs(usize),
    /// Counts the words of the input file with this index.
    Count(usize),
    /// Writes the documents of an input file to a file of their own.
    Write {
        /// The index of the input file.
        input: usize,
        /// The total number of documents in the preceding input files.
        before: u64,
    },
    /// Assembles a shard from parts of the files that [`Task::Write`] wrote. The training documents come first.
    Shard {
        /// The index of the shard.
        shard: usize,
        /// The ranges of documents that form the shard, in order.
        runs: Vec<Run>,
        /// A JSON record that describes how the corpus was built.
        record: String,
    },
}

/// A range of documents of one input file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The index of the input file.
    pub input: usize,
    /// Whether the documents are held out.
    pub heldout: bool,
    /// The index of the first document.
    pub first: usize,
    /// One more than the index of the last document.
    pub end: usize,
}

/// The result of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The number of documents that were read, and the frequencies of their words. The frequencies are `None` if there
    /// were too many distinct words to count.
    Counts(u64, Option<Tally>),
    /// The number of documents that were read, and the frequencies of their words and of the pairs, as in
    /// [`Answer::Counts`].
    Pairs(u64, Option<[Tally; 2]>),
    /// The result of [`Task::Write`].
    Written(Written),
    /// The digest of the shard that was assembled.
    Shard(String),
}

/// Statistics of one input file whose documents a task has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Written {
    /// The number of documents read.
    pub read: u64,
    /// The numbers of documents and tokens that were written. The first pair is for the training documents, and the
    /// second pair is for the held-out documents.
    pub parts: [(u64, u64); 2],
    /// The number of occurrences of words that are not in the vocabulary; see [`Built::tokens_left_out`].
    pub left_out: u64,
    /// The number of omitted documents for each reason; see [`Built::skipped`].
    pub skipped: Skipped,
}

/// The inputs and settings that are common to all tasks.
pub struct Workshop<'a> {
    /// The inputs.
    pub sources: &'a Sources,
    /// The settings of the corpus.
    pub settings: &'a BuildSettings,
    /// The folder to which the corpus is written.
    pub out: &'a Path,
}

fn part_path(out: &Path, input: usize) -> PathBuf {
    out.join(format!("{input:06}.part.tmp"))
}

impl Workshop<'_> {
    /// Runs a task on the current thread pool. `choice` contains the vocabulary if it has already been chosen.
    ///
    /// # Errors
    /// Fails if an input cannot be read or is damaged, or if a file cannot be written.
    pub fn step(&self, choice: &Choice, task: &Task) -> Result<Answer, DataError> {
        let sources = self.sources;
        let settings = &self.settings.joining(&choice.phrases);
        match task {
            Task::Pairs(input) => {
                let one = sources.only(*input)?;
                let (documents, [words, pairs]) = tally::pairs(&one, settings, &mut |_| Ok(()))?;
                let exact = words.exact().zip(pairs.exact());
                Ok(Answer::Pairs(documents, exact.map(<[Tally; 2]>::from)))
            }
            Task::Count(input) => {
                let one = sources.only(*input)?;
                let (documents, tally) = tally::tally(&one, settings, &mut |_| Ok(()))?;
                Ok(Answer::Counts(documents, tally.exact()))
            }
            Task::Write { input, before } => {
                let one = sources.only(*input)?;
                let path = part_path(self.out, *input);
                build::write_part(&one, settings, choice, *before, &path).map(Answer::Written)
            }
            Task::Shard {
                shard,
                runs,
                record,
            } => self.shard(choice, *shard, runs, record).map(Answer::Shard),
        }
    }

    fn shard(
        &self,
        choice: &Choice,
        shard: usize,
        runs: &[Run],
        record: &str,
    ) -> Result<String, DataError> {
        let mut inputs: Vec<usize> = runs.iter().map(|run| run.input).collect();
        inputs.sort_unstable();
        inputs.dedup();
        let open = |input: &usize| CorpusFile::open(&part_path(self.out, *input));
        let files = inputs.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let runs: Option<Vec<_>> = runs
            .iter()
            .map(|run| {
                let file = &files[inputs.binary_search(&run.input).ok()?];
                let part = if run.heldout {
                    Split::Heldout
                } else {
                    Split::Train
                };
                (run.end <= file.documents(part)).then_some((file, part, run.first..run.end))
            })
            .collect();
        let runs =
            runs.ok_or_else(|| DataError::invalid("the description of a shard is damaged"))?;
        shards::write_shard(self.out, shard, &runs, &choice.words, record)
    }
}

/// Returns the documents of a shard. A shard contains a contiguous range of each split, as in [`Corpus::divide`].
fn runs(written: &[Written], shard: usize, count: usize) -> Vec<Run> {
    let mut runs = Vec::new();
    for part in Split::ALL {
        let sizes = || written.iter().map(|w| w.parts[part as usize].0 as usize);
        let all: usize = sizes().sum();
        let (from, to) = shards::share(all, shard, count);
        let mut start = 0;
        for (input, size) in sizes().enumerate() {
            let (first, end) = (from.max(start), to.min(start + size));
            if first < end {
                runs.push(Run {
                    input,
                    heldout: part == Split::Heldout,
                    first: first - start,
                    end: end - start,
                });
            }
            start += size;
        }
    }
    runs
}

/// Adds the frequencies of several files. Returns `None` if there are too many distinct words for one table.
fn sum(tallies: Vec<Option<Tally>>, are_bags: bool, limit: usize) -> Option<Tally> {
    let mut terms: Vec<Count> = Vec::new();
    let mut table: HashMap<String, Count, FixedState> = HashMap::default();
    for tally in tallies {
        match tally? {
            Tally::Terms(counts) => {
                terms.resize(terms.len().max(counts.len()), Count::default());
                terms
                    .iter_mut()
                    .zip(counts)
                    .for_each(|(sum, count)| sum.add(count));
            }
            Tally::Words(words, _) => {
                for (word, count) in words {
                    table.entry(word).or_default().add(count);
                }
                if table.len() > limit {
                    return None;
                }
            }
        }
    }
    Some(if are_bags {
        Tally::Terms(terms)
    } else {
        Tally::Words(table.into_iter().collect(), 0)
    })
}

/// A function that runs tasks and returns one answer for each of them, in the order of the tasks. Errors of the
/// function are messages for the user.
pub type Work<'a> = &'a mut dyn FnMut(&Choice, Vec<Task>) -> Result<Vec<Answer>, String>;

/// Builds a corpus in a folder and divides it into the given number of shards. `work` calls [`Workshop::step`] for each
/// task, on any machine that can read and write the files, and returns the answers in the order of the tasks. The files
/// in the folder are identical, byte for byte, to those that [`build`](build::build) followed by [`Corpus::divide`]
/// would write.
///
/// # Errors
/// Returns the errors of [`build`](build::build), [`Corpus::divide`] and `work`.
pub fn build_apart(
    workshop: &Workshop<'_>,
    shards: usize,
    work: Work<'_>,
) -> Result<Built, DataError> {
    build::check(workshop.settings)?;
    create_folder(workshop.out)?;
    let built = pieces(workshop, shards, work);
    for input in 0..workshop.sources.files() {
        remove_file(&part_path(workshop.out, input))?;
    }
    // Workers that were killed may have left temporary files behind.
    sweep(workshop.out)?;
    built
}

fn another_request() -> DataError {
    DataError::invalid("a worker answered another request")
}

/// A function like [`Work`] whose errors are those of the build.
type Ask<'a> = dyn FnMut(&Choice, Vec<Task>) -> Result<Vec<Answer>, DataError> + 'a;

/// Learns the phrases of all input files. Without settings for phrases, there are none.
fn phrases(workshop: &Workshop<'_>, work: &mut Ask<'_>) -> Result<Phrases, DataError> {
    let (sources, settings) = (workshop.sources, workshop.settings);
    let Some(wanted) = &settings.phrases else {
        return Ok(Phrases::default());
    };
    Phrases::learn(wanted, &settings.vocabulary, |phrases| {
        let so_far = Choice {
            phrases: phrases.clone(),
            ..Choice::default()
        };
        let tasks = (0..sources.files()).map(Task::Pairs).collect();
        let (mut documents, mut words, mut pairs) = (0, Vec::new(), Vec::new());
        for answer in work(&so_far, tasks)? {
            let Answer::Pairs(read, tallies) = answer else {
                return Err(another_request());
            };
            documents += read;
            let [word, pair] = tallies.map_or([None, None], |tallies| tallies.map(Some));
            words.push(word);
            pairs.push(pair);
        }
        let sum = |tallies| sum(tallies, false, settings.table);
        match (sum(words), sum(pairs)) {
            (Some(words), Some(pairs)) => Ok((documents, [words, pairs])),
            _ => tally::pairs(sources, &settings.joining(phrases), &mut |_| Ok(())),
        }
    })
}

fn pieces(workshop: &Workshop<'_>, shards: usize, work: Work<'_>) -> Result<Built, DataError> {
    let Workshop {
        sources,
        settings,
        out,
    } = *workshop;
    let mut work = |choice: &Choice, tasks| work(choice, tasks).map_err(DataError::invalid);
    let files = sources.files();
    let choice = Choice {
        phrases: phrases(workshop, &mut work)?,
        ..Choice::default()
    };
    let settings = &settings.joining(&choice.phrases);
    let mut sizes = Vec::with_capacity(files);
    let mut tallies = Vec::with_capacity(files);
    for answer in work(&choice, (0..files).map(Task::Count).collect())? {
        let Answer::Counts(documents, tally) = answer else {
            return Err(another_request());
        };
        sizes.push(documents);
        tallies.push(tally);
    }
    let documents = sizes.iter().sum();
    let tally = match sum(tallies, sources.words().is_some(), settings.table) {
        Some(tally) => tally,
        None => tally::tally(sources, settings, &mut |_| Ok(()))?.1,
    };
    let choice = Choice {
        phrases: choice.phrases,
        ..tally.choose(sources, documents, settings)?
    };
    let mut before = 0;
    let tasks = sizes.iter().enumerate().map(|(input, size)| {
        before += size;
        Task::Write {
            input,
            before: before - size,
        }
    });
    let tasks = tasks.collect();
    let mut written = Vec::with_capacity(files);
    for (answer, size) in work(&choice, tasks)?.into_iter().zip(sizes) {
        match answer {
            Answer::Written(part) if part.read == size => written.push(part),
            Answer::Written(_) => {
                return Err(DataError::invalid(
                    "an input changed while Jensen read it: build the corpus again",
                ));
            }
            _ => return Err(another_request()),
        }
    }
    let mut built = Built::begun(sources, settings, &choice);
    written.iter().for_each(|part| built.add(part));
    built.check(sources)?;
    shards::check_count(built.documents as usize, shards)?;
    let record = built.record()?;
    let tasks = (0..shards)
        .map(|shard| Task::Shard {
            shard,
            runs: runs(&written, shard, shards),
            record: record.clone(),
        })
        .collect();
    // The earlier corpus is removed only at this point, because all remaining work is copying.
    Corpus::remove_shards(out)?;
    let mut digests = Vec::with_capacity(shards);
    for answer in work(&choice, tasks)? {
        let Answer::Shard(digest) = answer else {
            return Err(another_request());
        };
        digests.push(digest);
    }
    shards::write_list(out, digests)?;
    Ok(built)
}
