//! A corpus that consists of a single file or of a folder of shards. Shards are files that share a vocabulary and can
//! be processed separately.
//!
//! The file `shards.json` in the folder contains the digests of the shards. This file is written last, so a folder
//! without it is not a corpus. The documents of the corpus are those of the first shard, followed by those of the
//! second, and so on.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::file::{CorpusFile, Document, Split};
use super::writer;
use crate::atomic::write_atomic_bytes;
use crate::error::DataError;
use crate::files::{create_folder, read_bytes, remove_files};

const LIST: &str = "shards.json";

const ENDING: &str = "corpus";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    version: u32,
    digests: Vec<String>,
}

/// A corpus of training documents and held-out documents. Several threads can read documents in any order.
#[derive(Debug)]
pub struct Corpus {
    path: PathBuf,
    shards: Vec<CorpusFile>,
    ends: [Vec<usize>; 2],
    digest: String,
}

/// Returns the path of the shard with the given index in a folder.
pub fn shard_path(folder: &Path, shard: usize) -> PathBuf {
    folder.join(format!("{shard:04}.{ENDING}"))
}

impl Corpus {
    /// Opens a corpus, which is either a single file or a folder of shards. All of it is read once, as by
    /// [`CorpusFile::open`].
    ///
    /// # Errors
    /// Fails under the same conditions as [`CorpusFile::open`]. Also fails if a shard is missing, belongs to another
    /// build, or has another vocabulary.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        if !path.is_dir() {
            let file = CorpusFile::open(path)?;
            let digest = file.digest().to_owned();
            return Ok(Self::of(path, vec![file], digest));
        }
        let list = list(path)?;
        let shards = (0..list.digests.len()).map(|shard| open_listed(path, &list, shard));
        let shards = shards.collect::<Result<Vec<_>, _>>()?;
        for shard in &shards[1..] {
            if shard.words() != shards[0].words() {
                return Err(DataError::invalid(format!(
                    "the shard `{}` has another vocabulary than `{}`: build the corpus again (`jensen topics build`)",
                    shard.path().display(),
                    shards[0].path().display()
                )));
            }
        }
        let all = Sha256::digest(list.digests.join("\n"));
        let digest = all.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self::of(path, shards, digest))
    }

    fn of(path: &Path, shards: Vec<CorpusFile>, digest: String) -> Self {
        let ends = Split::ALL.map(|part| {
            let mut end = 0;
            let sizes = shards.iter().map(|shard| shard.documents(part));
            sizes
                .map(|size| {
                    end += size;
                    end
                })
                .collect()
        });
        Self {
            path: path.to_owned(),
            shards,
            ends,
            digest,
        }
    }

    /// Returns whether the file or folder at a path looks like a corpus. Only its first bytes are examined.
    pub fn is_corpus(path: &Path) -> bool {
        if path.is_dir() {
            path.join(LIST).is_file()
        } else {
            CorpusFile::is_corpus(path)
        }
    }

    /// Divides this corpus into `count` shards in `folder`. Each shard contains consecutive documents.
    ///
    /// # Errors
    /// Fails if there are fewer training documents than shards, or if the folder cannot be written.
    pub fn divide(&self, folder: &Path, count: usize) -> Result<(), DataError> {
        check_count(self.documents(Split::Train), count)?;
        create_folder(folder)?;
        let mut digests = Vec::with_capacity(count);
        for shard in 0..count {
            let runs = Split::ALL.map(|part| {
                let (first, end) = share(self.documents(part), shard, count);
                self.runs(part, first, end)
            });
            let record = self.record().to_string();
            digests.push(write_shard(
                folder,
                shard,
                &runs.concat(),
                self.words(),
                &record,
            )?);
        }
        write_list(folder, digests)
    }

    fn runs(&self, part: Split, first: usize, end: usize) -> Vec<Documents<'_>> {
        let mut start = 0;
        let mut runs = Vec::new();
        for (shard, &stop) in self.shards.iter().zip(&self.ends[part as usize]) {
            let (from, to) = (first.max(start), end.min(stop));
            if from < to {
                runs.push((shard, part, from - start..to - start));
            }
            start = stop;
        }
        runs
    }

    /// Removes all shards from a folder, so that another corpus can be written to the folder.
    ///
    /// # Errors
    /// Fails if a file cannot be removed.
    pub fn remove_shards(folder: &Path) -> Result<(), DataError> {
        crate::files::remove_file(&folder.join(LIST))?;
        remove_files(folder, ENDING)
    }

    /// Returns the shards in order. If the corpus is a single file, returns this file.
    pub fn shards(&self) -> &[CorpusFile] {
        &self.shards
    }

    /// Checks that the corpus has not changed since it was opened.
    ///
    /// # Errors
    /// Fails if one of the files has changed.
    pub fn check_unchanged(&self) -> Result<(), DataError> {
        self.shards.iter().try_for_each(CorpusFile::check_unchanged)
    }

    /// Returns the number of documents in a split.
    pub fn documents(&self, part: Split) -> usize {
        self.ends[part as usize].last().copied().unwrap_or(0)
    }

    /// Returns the number of tokens in a split, which is the sum of the counts in all documents.
    pub fn tokens(&self, part: Split) -> u64 {
        self.shards.iter().map(|shard| shard.tokens(part)).sum()
    }

    /// Counts the distinct terms of each document in a split, and returns the sum of these counts.
    pub fn pairs(&self, part: Split) -> u64 {
        self.shards.iter().map(|shard| shard.pairs(part)).sum()
    }

    /// Returns the number of terms.
    pub fn terms(&self) -> usize {
        self.shards[0].terms()
    }

    /// Returns the words, indexed by term. The words are sorted by decreasing document frequency.
    pub fn words(&self) -> &[String] {
        self.shards[0].words()
    }

    /// Returns the JSON record that describes how the corpus was built.
    pub fn record(&self) -> &serde_json::Value {
        self.shards[0].record()
    }

    /// Returns the SHA-256 digest of the content in hexadecimal digits.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the path of the file or folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of documents per block. A file stores documents in blocks of this size.
    pub fn block(&self) -> usize {
        self.shards[0].block()
    }

    /// Reads document `index` of a split into `document`. Documents are stored in blocks of [`block`](Self::block)
    /// documents, so this function first skips the earlier documents of the same block.
    ///
    /// # Panics
    /// Panics if the document does not exist. This would be a bug in the caller.
    pub fn read(&self, part: Split, index: usize, document: &mut Document) {
        let (shard, index) = self.locate(part, index);
        shard.read(part, index, document);
    }

    /// Calls `visit` with each term of a document and its count, in ascending order of the terms. Like
    /// [`read`](Self::read), this function first skips the earlier documents of the same block.
    ///
    /// # Panics
    /// Panics if the document does not exist. This would be a bug in the caller.
    pub fn visit(&self, part: Split, index: usize, visit: impl FnMut(u32, u32)) {
        let (shard, index) = self.locate(part, index);
        shard.visit(part, index, visit);
    }

    fn locate(&self, part: Split, index: usize) -> (&CorpusFile, usize) {
        let ends = &self.ends[part as usize];
        let shard = ends.partition_point(|&end| end <= index);
        assert!(shard < ends.len(), "the corpus has no document {index}");
        let start = if shard == 0 { 0 } else { ends[shard - 1] };
        (&self.shards[shard], index - start)
    }
}

pub(crate) type Documents<'a> = (&'a CorpusFile, Split, Range<usize>);

/// Returns the range of documents that belong to a shard. The end of the range is exclusive.
pub(crate) fn share(documents: usize, shard: usize, count: usize) -> (usize, usize) {
    (documents * shard / count, documents * (shard + 1) / count)
}

pub(crate) fn check_count(documents: usize, count: usize) -> Result<(), DataError> {
    if count == 0 || count > documents {
        return Err(DataError::invalid(format!(
            "{documents} documents cannot be divided into {count} shards: use fewer (--shards)"
        )));
    }
    Ok(())
}

pub(crate) fn write_shard(
    folder: &Path,
    shard: usize,
    runs: &[Documents<'_>],
    words: &[String],
    record: &str,
) -> Result<String, DataError> {
    let path = shard_path(folder, shard);
    let mut document = Document::default();
    writer::write(&path, |writer| {
        for (file, part, range) in runs {
            for index in range.clone() {
                file.read(*part, index, &mut document);
                writer
                    .document(*part, &document.terms, &document.counts)
                    .map_err(|error| DataError::io("write", &path, &error))?;
            }
        }
        Ok((words.iter().map(String::as_str), record.to_owned()))
    })?;
    Ok(CorpusFile::open(&path)?.digest().to_owned())
}

pub(crate) fn write_list(folder: &Path, digests: Vec<String>) -> Result<(), DataError> {
    let list = serde_json::to_vec(&List {
        version: 1,
        digests,
    });
    let list = list.map_err(|error| DataError::invalid(error.to_string()))?;
    write_atomic_bytes(&folder.join(LIST), &list)
}

/// Opens a single shard of a corpus that is stored in a folder.
///
/// # Errors
/// Fails under the same conditions as [`Corpus::open`].
pub fn open_shard(folder: &Path, shard: usize) -> Result<CorpusFile, DataError> {
    open_listed(folder, &list(folder)?, shard)
}

fn list(folder: &Path) -> Result<List, DataError> {
    let path = folder.join(LIST);
    if !path.is_file() {
        return Err(DataError::invalid(format!(
            "the folder `{}` is not a corpus, because it has no `{LIST}`; make one with `jensen topics build \
             --shards`",
            folder.display()
        )));
    }
    let list = serde_json::from_slice::<List>(&read_bytes(&path)?).ok();
    let list = list.filter(|list| list.version == 1 && !list.digests.is_empty());
    list.ok_or_else(|| {
        DataError::invalid(format!(
            "`{}` is damaged: build the corpus again (`jensen topics build`)",
            path.display()
        ))
    })
}

fn open_listed(folder: &Path, list: &List, shard: usize) -> Result<CorpusFile, DataError> {
    let path = shard_path(folder, shard);
    if !path.is_file() {
        return Err(DataError::invalid(format!(
            "the shard `{}` of {} is missing: restore it, or build the corpus again (`jensen topics build`)",
            path.display(),
            list.digests.len()
        )));
    }
    let file = CorpusFile::open(&path)?;
    if list.digests.get(shard).map(String::as_str) == Some(file.digest()) {
        return Ok(file);
    }
    Err(DataError::invalid(format!(
        "the shard `{}` is from another build: restore the original, or build the corpus again (`jensen topics \
         build`)",
        path.display()
    )))
}
