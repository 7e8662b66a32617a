//! Reads a corpus, or a shard of a corpus, from a memory-mapped file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::codec;
use super::writer::{BLOCK, END, HEAD, HEAD_BYTES, TAIL_BYTES, Tail, VERSION};
use crate::bytes::Mapped;
use crate::error::DataError;

const CHECKED: usize = 256;

const HASHED: usize = 16 << 20;

/// The number of documents that are read before the pages of the file are released. If pages were never released, the
/// memory of a run would grow with the size of the corpus. Pages that are needed again come from the cache of the
/// operating system.
const READ_BEFORE_RELEASE: usize = 1 << 15;

/// A subset of the documents. A corpus has one subset for training a model, and another subset of held-out documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// The documents that are used to train the model.
    Train = 0,
    /// The held-out documents.
    Heldout = 1,
}

impl Split {
    /// The two splits, with the training documents first.
    pub const ALL: [Self; 2] = [Self::Train, Self::Heldout];
}

/// A document, represented by its terms and the count of each term.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// The terms, in ascending order. All of them are less than [`terms`](CorpusFile::terms).
    pub terms: Vec<u32>,
    /// The count of each term, which is at least 1.
    pub counts: Vec<u32>,
}

/// A corpus in a single file, or a shard of a corpus. The file is mapped, and several threads may read documents in any
/// order.
#[derive(Debug)]
pub struct CorpusFile {
    path: PathBuf,
    map: Mapped,
    tail: Tail,
    words: Vec<String>,
    record: serde_json::Value,
    digest: String,
    read: AtomicUsize,
}

impl CorpusFile {
    /// Opens a corpus and reads it once from beginning to end. This verifies the digest and decodes every document, so
    /// that later reads of documents cannot fail. If another process changes the file while it is open,
    /// [`check_unchanged`](Self::check_unchanged) reports the change. [`super::build()`] never modifies an existing
    /// file, but replaces it by a new file.
    ///
    /// # Errors
    /// Fails if the file is not a corpus, has an unsupported version, is truncated, or is damaged.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        let io = |error: std::io::Error| DataError::io("read", path, &error);
        let wrong =
            |what: &str| DataError::invalid(format!("the corpus `{}` {what}", path.display()));
        if path.is_dir() {
            return Err(io(std::io::Error::other("it is a folder, not a corpus")));
        }
        let file = File::open(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        if length < HEAD_BYTES as u64 {
            return Err(not_a_corpus(path));
        }
        let map = Mapped::of(file, path)?;
        if map[..8] != HEAD {
            return Err(not_a_corpus(path));
        }
        let number =
            |at: usize| u32::from_le_bytes([map[at], map[at + 1], map[at + 2], map[at + 3]]);
        if number(8) != VERSION || number(12) != BLOCK as u32 {
            return Err(wrong(&format!(
                "has version {}, but this program reads version {VERSION}: build it again (`jensen topics build`)",
                number(8)
            )));
        }
        let cut = || wrong("is truncated: build it again (`jensen topics build`)");
        let tail_at = map
            .len()
            .checked_sub(TAIL_BYTES)
            .filter(|at| *at >= HEAD_BYTES)
            .ok_or_else(cut)?;
        if !map.ends_with(&END) {
            return Err(cut());
        }
        let numbers = map.len() - 40;
        let tail = Tail::decode(&map[tail_at..numbers]).ok_or_else(cut)?;
        if tail.length != length || tail.start != tail_at as u64 {
            return Err(cut());
        }
        let damaged = || wrong("is damaged: build it again (`jensen topics build`)");
        let digest = digest(&map, numbers);
        if digest[..] != map[numbers..numbers + 32] {
            return Err(damaged());
        }
        let (words, record) = texts(&map, &tail).ok_or_else(damaged)?;
        let corpus = Self {
            path: path.to_path_buf(),
            words,
            record,
            digest: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            tail,
            map,
            read: AtomicUsize::new(0),
        };
        if !Split::ALL.into_iter().all(|part| corpus.check(part)) {
            return Err(damaged());
        }
        corpus.release();
        Ok(corpus)
    }

    /// Returns whether the file starts with the bytes that identify a corpus.
    pub fn is_corpus(path: &Path) -> bool {
        use std::io::Read;
        let mut head = [0; HEAD.len()];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
        read.is_ok() && head == HEAD
    }

    fn check(&self, part: Split) -> bool {
        let totals = &self.tail.parts[part as usize];
        let (Ok(documents), Ok(index)) = (
            usize::try_from(totals.documents),
            usize::try_from(totals.index),
        ) else {
            return false;
        };
        let blocks = documents.div_ceil(BLOCK);
        let end = blocks
            .checked_mul(8)
            .and_then(|bytes| index.checked_add(bytes));
        let limit = usize::try_from(self.tail.words).unwrap_or(0);
        if index < HEAD_BYTES || end.is_none_or(|end| end > limit) || limit > self.map.len() {
            return false;
        }
        let tasks = blocks.div_ceil(CHECKED);
        let sums = (0..tasks).into_par_iter().map(|task| {
            let (mut tokens, mut pairs) = (0u64, 0u64);
            for block in task * CHECKED..((task + 1) * CHECKED).min(blocks) {
                let mut bytes = self.map.get(self.start(part, block)..index)?;
                for _ in 0..BLOCK.min(documents - block * BLOCK) {
                    self.decode(&mut bytes, |_, count| {
                        pairs += 1;
                        tokens += u64::from(count);
                    })?;
                }
            }
            self.count_read((CHECKED * BLOCK).min(documents));
            Some((tokens, pairs))
        });
        let sums: Option<Vec<(u64, u64)>> = sums.collect();
        sums.is_some_and(|sums| {
            let total = sums.iter().fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
            total == (totals.tokens, totals.pairs)
        })
    }

    #[inline]
    fn decode(&self, bytes: &mut &[u8], visit: impl FnMut(u32, u32)) -> Option<()> {
        codec::decode(bytes, self.words.len() as u32, visit).ok()
    }

    fn start(&self, part: Split, block: usize) -> usize {
        let at = self.tail.parts[part as usize].index as usize + 8 * block;
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.map[at..at + 8]);
        usize::try_from(u64::from_le_bytes(bytes)).unwrap_or(usize::MAX)
    }

    /// Checks that the file has not changed since it was opened.
    ///
    /// # Errors
    /// Fails if the file has changed.
    pub fn check_unchanged(&self) -> Result<(), DataError> {
        self.map.check_unchanged()
    }

    /// Returns the number of documents in a split.
    pub fn documents(&self, part: Split) -> usize {
        self.tail.parts[part as usize].documents as usize
    }

    /// Returns the number of tokens in a split, which is the sum of the counts in all documents.
    pub fn tokens(&self, part: Split) -> u64 {
        self.tail.parts[part as usize].tokens
    }

    /// Counts the distinct terms of each document in a split, and returns the sum of these counts.
    pub fn pairs(&self, part: Split) -> u64 {
        self.tail.parts[part as usize].pairs
    }

    /// Returns the number of terms.
    pub fn terms(&self) -> usize {
        self.words.len()
    }

    /// Returns the words, indexed by term. The words are sorted by decreasing document frequency.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Returns the JSON record that describes how the corpus was built.
    pub fn record(&self) -> &serde_json::Value {
        &self.record
    }

    /// Returns the SHA-256 digest of the content in hexadecimal digits.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of documents per block. The file stores documents in blocks of this size.
    pub fn block(&self) -> usize {
        BLOCK
    }

    /// Reads document `index` of a split into `document`. Documents are stored in blocks of [`block`](Self::block)
    /// documents, so this function first skips the earlier documents of the same block.
    ///
    /// # Panics
    /// Panics if the document does not exist. This would be a bug in the caller.
    pub fn read(&self, part: Split, index: usize, document: &mut Document) {
        document.terms.clear();
        document.counts.clear();
        self.visit(part, index, |term, count| {
            document.terms.push(term);
            document.counts.push(count);
        });
    }

    /// Calls `visit` with each term of a document and its count, in ascending order of the terms. Like
    /// [`read`](Self::read), this function first skips the earlier documents of the same block.
    ///
    /// # Panics
    /// Panics if the document does not exist. This would be a bug in the caller.
    pub fn visit(&self, part: Split, index: usize, visit: impl FnMut(u32, u32)) {
        assert!(
            index < self.documents(part),
            "the corpus has no document {index}"
        );
        let read = || {
            let mut bytes = self.map.get(self.start(part, index / BLOCK)..)?;
            for _ in 0..index % BLOCK {
                codec::skip(&mut bytes).ok()?;
            }
            self.decode(&mut bytes, visit)
        };
        // All documents were checked when the corpus was opened. If a document cannot be read, the file has changed.
        // `check_unchanged` reports the change before the results are used.
        let _: Option<()> = read();
        self.count_read(1);
    }

    /// Counts the documents that have been read, and releases the pages of the file from time to time.
    fn count_read(&self, documents: usize) {
        let before = self.read.fetch_add(documents, Ordering::Relaxed);
        if before / READ_BEFORE_RELEASE != (before + documents) / READ_BEFORE_RELEASE {
            self.release();
        }
    }

    fn release(&self) {
        self.map.release();
    }
}

fn not_a_corpus(path: &Path) -> DataError {
    DataError::invalid(format!(
        "`{}` is not a corpus that Jensen built: make one with `jensen topics build {} --out CORPUS`",
        path.display(),
        path.display()
    ))
}

fn digest(map: &Mapped, length: usize) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in map[..length].chunks(HASHED) {
        hash.update(part);
        map.release();
    }
    hash.finalize().into()
}

fn texts(map: &[u8], tail: &Tail) -> Option<(Vec<String>, serde_json::Value)> {
    let at = |x: u64| usize::try_from(x).ok();
    let words = std::str::from_utf8(map.get(at(tail.words)?..at(tail.record)?)?).ok()?;
    let words: Vec<String> = words.split_terminator('\n').map(str::to_owned).collect();
    if words.len() as u64 != tail.terms || u32::try_from(words.len()).is_err() {
        return None;
    }
    let record = serde_json::from_slice(map.get(at(tail.record)?..at(tail.start)?)?).ok()?;
    Some((words, record))
}
