//! A corpus of one file, or of a folder of leaves: files under one vocabulary that can be worked at apart.
//!
//! `leaves.json` of the folder lists the digests of the leaves; it is written last, so that a folder without it is no corpus.
//! The documents are those of the leaves one after the other.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::file::{CorpusFile, Document, Split};
use super::writer;
use crate::atomic::write_atomic_bytes;
use crate::error::DataError;
use crate::files::{create_folder, read_bytes, remove_files};

/// The list of a folder's leaves.
const LIST: &str = "leaves.json";

/// How the names of leaves end.
const ENDING: &str = "corpus";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    version: u32,
    digests: Vec<String>,
}

/// A corpus: documents for training and held-out ones, read at random places by several threads.
#[derive(Debug)]
pub struct Corpus {
    path: PathBuf,
    leaves: Vec<CorpusFile>,
    /// Where the documents of each leaf end, of both parts.
    ends: [Vec<usize>; 2],
    digest: String,
}

/// Where a leaf of a folder is.
pub fn leaf_path(folder: &Path, leaf: usize) -> PathBuf {
    folder.join(format!("{leaf:04}.{ENDING}"))
}

impl Corpus {
    /// Opens a corpus, of one file or of a folder of leaves, and reads all of it once, as [`CorpusFile::open`] says.
    ///
    /// # Errors
    /// As [`CorpusFile::open`]; a leaf is missing, is not that which was built, or has another vocabulary.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        if !path.is_dir() {
            let file = CorpusFile::open(path)?;
            let digest = file.digest().to_owned();
            return Ok(Self::of(path, vec![file], digest));
        }
        let list = list(path)?;
        let leaves = (0..list.digests.len()).map(|leaf| open_listed(path, &list, leaf));
        let leaves = leaves.collect::<Result<Vec<_>, _>>()?;
        for leaf in &leaves[1..] {
            if leaf.words() != leaves[0].words() {
                return Err(DataError::invalid(format!(
                    "the leaf `{}` has another vocabulary than `{}`: build the corpus again (`jensen topics build`)",
                    leaf.path().display(),
                    leaves[0].path().display()
                )));
            }
        }
        let all = Sha256::digest(list.digests.join("\n"));
        let digest = all.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self::of(path, leaves, digest))
    }

    fn of(path: &Path, leaves: Vec<CorpusFile>, digest: String) -> Self {
        let ends = Split::ALL.map(|part| {
            let mut end = 0;
            let sizes = leaves.iter().map(|leaf| leaf.documents(part));
            sizes
                .map(|size| {
                    end += size;
                    end
                })
                .collect()
        });
        Self {
            path: path.to_owned(),
            leaves,
            ends,
            digest,
        }
    }

    /// Whether a path is that of a corpus, by its beginning.
    pub fn is_corpus(path: &Path) -> bool {
        if path.is_dir() {
            path.join(LIST).is_file()
        } else {
            CorpusFile::is_corpus(path)
        }
    }

    /// Divides this corpus into so many leaves in a folder: neighbours stay together.
    ///
    /// # Errors
    /// There are fewer documents to learn from than leaves, or the folder cannot be written.
    pub fn divide(&self, folder: &Path, count: usize) -> Result<(), DataError> {
        check_count(self.documents(Split::Train), count)?;
        create_folder(folder)?;
        let mut digests = Vec::with_capacity(count);
        for leaf in 0..count {
            let runs = Split::ALL.map(|part| {
                let (first, end) = share(self.documents(part), leaf, count);
                self.runs(part, first, end)
            });
            let record = self.record().to_string();
            digests.push(write_leaf(
                folder,
                leaf,
                &runs.concat(),
                self.words(),
                &record,
            )?);
        }
        write_list(folder, digests)
    }

    /// Documents `first .. end` of a part, by leaf.
    fn runs(&self, part: Split, first: usize, end: usize) -> Vec<Documents<'_>> {
        let mut start = 0;
        let mut runs = Vec::new();
        for (leaf, &stop) in self.leaves.iter().zip(&self.ends[part as usize]) {
            let (from, to) = (first.max(start), end.min(stop));
            if from < to {
                runs.push((leaf, part, from - start..to - start));
            }
            start = stop;
        }
        runs
    }

    /// Removes the leaves of a folder, where another corpus is to be.
    ///
    /// # Errors
    /// One cannot be removed.
    pub fn remove_leaves(folder: &Path) -> Result<(), DataError> {
        crate::files::remove_file(&folder.join(LIST))?;
        remove_files(folder, ENDING)
    }

    /// The leaves, in order; the file itself where it is one.
    pub fn leaves(&self) -> &[CorpusFile] {
        &self.leaves
    }

    /// Refuses what was read from a corpus that was changed meanwhile.
    ///
    /// # Errors
    /// It was.
    pub fn check_unchanged(&self) -> Result<(), DataError> {
        self.leaves.iter().try_for_each(CorpusFile::check_unchanged)
    }

    /// Number of documents of a part.
    pub fn documents(&self, part: Split) -> usize {
        self.ends[part as usize].last().copied().unwrap_or(0)
    }

    /// Number of tokens of a part: the sum of all counts.
    pub fn tokens(&self, part: Split) -> u64 {
        self.leaves.iter().map(|leaf| leaf.tokens(part)).sum()
    }

    /// Number of pairs of term and document of a part.
    pub fn pairs(&self, part: Split) -> u64 {
        self.leaves.iter().map(|leaf| leaf.pairs(part)).sum()
    }

    /// Number of terms.
    pub fn terms(&self) -> usize {
        self.leaves[0].terms()
    }

    /// The words by term, those in most documents first.
    pub fn words(&self) -> &[String] {
        self.leaves[0].words()
    }

    /// How the corpus was made.
    pub fn record(&self) -> &serde_json::Value {
        self.leaves[0].record()
    }

    /// SHA-256 of the content, in hexadecimal digits.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The file or folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Documents of a block: neighbours that are read in one go.
    pub fn block(&self) -> usize {
        self.leaves[0].block()
    }

    /// Reads a document. Costs up to [`block`](Self::block) steps over neighbours besides the document itself.
    ///
    /// # Panics
    /// When there is no such document: a caller's bug.
    pub fn read(&self, part: Split, index: usize, document: &mut Document) {
        let (leaf, index) = self.place(part, index);
        leaf.read(part, index, document);
    }

    /// Calls `visit` with the terms of a document, ascending, and their counts. Costs as much as [`read`](Self::read).
    ///
    /// # Panics
    /// When there is no such document: a caller's bug.
    pub fn visit(&self, part: Split, index: usize, visit: impl FnMut(u32, u32)) {
        let (leaf, index) = self.place(part, index);
        leaf.visit(part, index, visit);
    }

    /// The leaf of a document, and its number there.
    fn place(&self, part: Split, index: usize) -> (&CorpusFile, usize) {
        let ends = &self.ends[part as usize];
        let leaf = ends.partition_point(|&end| end <= index);
        assert!(leaf < ends.len(), "document {index} is beyond the corpus");
        let start = if leaf == 0 { 0 } else { ends[leaf - 1] };
        (&self.leaves[leaf], index - start)
    }
}

/// Documents of a part of a file.
pub(crate) type Documents<'a> = (&'a CorpusFile, Split, Range<usize>);

/// The share of a leaf of so many documents: from the first to before the end.
pub(crate) fn share(documents: usize, leaf: usize, count: usize) -> (usize, usize) {
    (documents * leaf / count, documents * (leaf + 1) / count)
}

/// Refuses more leaves than there are documents to learn from.
pub(crate) fn check_count(documents: usize, count: usize) -> Result<(), DataError> {
    if count == 0 || count > documents {
        return Err(DataError::invalid(format!(
            "{documents} documents cannot be divided into {count} shards: ask for fewer (--shards)"
        )));
    }
    Ok(())
}

/// Writes a leaf of a folder, and returns its digest.
pub(crate) fn write_leaf(
    folder: &Path,
    leaf: usize,
    runs: &[Documents<'_>],
    words: &[String],
    record: &str,
) -> Result<String, DataError> {
    let path = leaf_path(folder, leaf);
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

/// Writes the list of a folder's leaves, which makes it a corpus.
pub(crate) fn write_list(folder: &Path, digests: Vec<String>) -> Result<(), DataError> {
    let list = serde_json::to_vec(&List {
        version: 1,
        digests,
    });
    let list = list.map_err(|error| DataError::invalid(error.to_string()))?;
    write_atomic_bytes(&folder.join(LIST), &list)
}

/// Opens one leaf of a folder, as the folder lists it.
///
/// # Errors
/// As [`Corpus::open`].
pub fn open_leaf(folder: &Path, leaf: usize) -> Result<CorpusFile, DataError> {
    open_listed(folder, &list(folder)?, leaf)
}

fn list(folder: &Path) -> Result<List, DataError> {
    let path = folder.join(LIST);
    if !path.is_file() {
        return Err(DataError::invalid(format!(
            "the folder `{}` is no corpus: it has no `{LIST}`; make one with `jensen topics build --shards`",
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

fn open_listed(folder: &Path, list: &List, leaf: usize) -> Result<CorpusFile, DataError> {
    let path = leaf_path(folder, leaf);
    if !path.is_file() {
        return Err(DataError::invalid(format!(
            "the leaf `{}` is missing, of {}: copy it back, or build the corpus again (`jensen topics build`)",
            path.display(),
            list.digests.len()
        )));
    }
    let file = CorpusFile::open(&path)?;
    if list.digests.get(leaf).map(String::as_str) == Some(file.digest()) {
        return Ok(file);
    }
    Err(DataError::invalid(format!(
        "the leaf `{}` is not the one that was built with the others: copy that back, or build the corpus again \
         (`jensen topics build`)",
        path.display()
    )))
}
