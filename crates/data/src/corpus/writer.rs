//! Writes the file that contains a corpus.
//!
//! The file consists of the following parts, in this order. All numbers are little-endian.
//!
//! | part | content |
//! | --- | --- |
//! | head | `JENSENCO`, the version (u32), the number of documents per block (u32) |
//! | blocks | documents as encoded by [`codec`], 64 per block (fewer in the last block of each split), in the order in which the blocks were completed |
//! | two indices | the start (u64) of each block, for training documents and then for held-out documents |
//! | words | each word followed by a line end |
//! | record | JSON that describes how the corpus was built |
//! | tail | thirteen numbers (u64): for each split the numbers of documents, tokens and pairs and the start of its index; the start and the number of the words, the starts of the record and the tail, and the length of the file; then the SHA-256 of all bytes before it, and `JENSENCE` |
//!
//! The totals are at the end of the file, because the file is written sequentially and the totals are known only when
//! all documents have been written. Since a truncated file has no tail, truncation is detected.

use std::io::{self, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::codec;
use super::file::Split;
use crate::atomic::write_atomic;
use crate::error::DataError;

/// The number of documents in a block.
pub const BLOCK: usize = 64;

pub(crate) const VERSION: u32 = 1;

pub(crate) const HEAD: [u8; 8] = *b"JENSENCO";
pub(crate) const END: [u8; 8] = *b"JENSENCE";

pub(crate) const HEAD_BYTES: usize = 16;

/// The length of the tail in bytes. The tail consists of the numbers, the digest, and the bytes that mark its end.
pub(crate) const TAIL_BYTES: usize = 13 * 8 + 32 + 8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub documents: u64,
    pub tokens: u64,
    pub pairs: u64,
    /// The offset of the index that locates the blocks of this split.
    pub index: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The totals of the training documents, followed by the totals of the held-out documents.
    pub parts: [Totals; 2],
    /// The offset of the words and the number of words.
    pub words: u64,
    pub terms: u64,
    pub record: u64,
    pub start: u64,
    pub length: u64,
}

impl Tail {
    pub fn encode(&self) -> Vec<u8> {
        let mut numbers = Vec::new();
        for part in &self.parts {
            numbers.extend([part.documents, part.tokens, part.pairs, part.index]);
        }
        numbers.extend([self.words, self.terms, self.record, self.start, self.length]);
        numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut numbers = bytes
            .chunks_exact(8)
            .map(|x| Some(u64::from_le_bytes(x.try_into().ok()?)));
        let mut next = || numbers.next().flatten();
        let mut part = || {
            Some(Totals {
                documents: next()?,
                tokens: next()?,
                pairs: next()?,
                index: next()?,
            })
        };
        Some(Self {
            parts: [part()?, part()?],
            words: next()?,
            terms: next()?,
            record: next()?,
            start: next()?,
            length: next()?,
        })
    }
}

#[derive(Default)]
struct Growing {
    totals: Totals,
    starts: Vec<u64>,
    block: Vec<u8>,
    filled: usize,
}

/// Collects documents into blocks and writes the blocks.
pub struct CorpusWriter<'a> {
    out: &'a mut (dyn Write + Send),
    digest: Sha256,
    at: u64,
    parts: [Growing; 2],
    scratch: Vec<u8>,
}

impl CorpusWriter<'_> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.at += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Adds a document to a split. `terms` must be in ascending order, and all `counts` must be positive.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn document(&mut self, part: Split, terms: &[u32], counts: &[u32]) -> io::Result<()> {
        let growing = &mut self.parts[part as usize];
        codec::encode(terms, counts, &mut self.scratch, &mut growing.block);
        growing.totals.documents += 1;
        growing.totals.pairs += terms.len() as u64;
        growing.totals.tokens += counts.iter().map(|&n| u64::from(n)).sum::<u64>();
        growing.filled += 1;
        if growing.filled == BLOCK {
            self.flush(part)
        } else {
            Ok(())
        }
    }

    fn flush(&mut self, part: Split) -> io::Result<()> {
        let growing = &mut self.parts[part as usize];
        if growing.filled == 0 {
            return Ok(());
        }
        growing.starts.push(self.at);
        growing.filled = 0;
        let mut block = std::mem::take(&mut growing.block);
        let written = self.put(&block);
        block.clear();
        self.parts[part as usize].block = block;
        written
    }

    /// Returns the numbers of documents and tokens that have been written to a split.
    pub fn totals(&self, part: Split) -> (u64, u64) {
        let totals = &self.parts[part as usize].totals;
        (totals.documents, totals.tokens)
    }

    fn finish<'w>(mut self, words: impl Iterator<Item = &'w str>, record: &str) -> io::Result<()> {
        for part in Split::ALL {
            self.flush(part)?;
        }
        let mut parts = [Totals::default(); 2];
        for (i, part) in parts.iter_mut().enumerate() {
            *part = Totals {
                index: self.at,
                ..self.parts[i].totals
            };
            let starts = std::mem::take(&mut self.parts[i].starts);
            let bytes: Vec<u8> = starts.iter().flat_map(|x| x.to_le_bytes()).collect();
            self.put(&bytes)?;
        }
        let words_at = self.at;
        let mut terms = 0;
        for word in words {
            self.put(word.as_bytes())?;
            self.put(b"\n")?;
            terms += 1;
        }
        let record_at = self.at;
        self.put(record.as_bytes())?;
        let tail = Tail {
            parts,
            words: words_at,
            terms,
            record: record_at,
            start: self.at,
            length: self.at + TAIL_BYTES as u64,
        };
        self.put(&tail.encode())?;
        let digest = self.digest.finalize();
        self.out.write_all(&digest)?;
        self.out.write_all(&END)
    }
}

/// Writes a corpus to the file `path`. The content is first written to a temporary file, which then replaces the file
/// at `path`. `fill` adds the documents. It returns the words, indexed by term, and a record that describes how the
/// corpus was built.
///
/// # Errors
/// Fails if the file cannot be written or if `fill` returns an error. In either case, the file at `path` is not
/// replaced.
pub fn write<'w, I: Iterator<Item = &'w str>>(
    path: &Path,
    fill: impl FnOnce(&mut CorpusWriter<'_>) -> Result<(I, String), DataError>,
) -> Result<(), DataError> {
    let mut refused = None;
    let written = write_atomic(path, |out| {
        let mut writer = CorpusWriter {
            out,
            digest: Sha256::new(),
            at: 0,
            parts: Default::default(),
            scratch: Vec::new(),
        };
        writer.put(&HEAD)?;
        writer.put(&VERSION.to_le_bytes())?;
        writer.put(&(BLOCK as u32).to_le_bytes())?;
        match fill(&mut writer) {
            Ok((words, record)) => writer.finish(words, &record),
            Err(error) => {
                refused = Some(error);
                Err(io::Error::other("refused"))
            }
        }
    });
    match refused {
        Some(error) => Err(error),
        None => written,
    }
}
