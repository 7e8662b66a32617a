//! Reads bags of words in the formats UCI, LDA-C and Matrix Market.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use super::compressed::{self, bare_name, read_error};
use super::sources::{CHUNK_DOCUMENTS, Format};
use crate::error::DataError;

/// A limit on the number of documents that a header may declare. The limit grows by [`DOCUMENTS_PER_ENTRY`] for each
/// entry. Documents without words are kept, so a damaged header could otherwise create 10¹² of them.
const DOCUMENTS: u64 = 1 << 20;
const DOCUMENTS_PER_ENTRY: u64 = 16;

/// Documents. Each document is a list of terms with their counts. The terms of a document are distinct and ascending.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Bags {
    pub terms: Vec<u32>,
    pub counts: Vec<u32>,
    pub ends: Vec<usize>,
}

impl Bags {
    pub fn get(&self, i: usize) -> (&[u32], &[u32]) {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        let range = start..self.ends[i];
        (&self.terms[range.clone()], &self.counts[range])
    }

    fn push(&mut self, pairs: &mut Vec<(u32, u32)>) {
        pairs.sort_unstable();
        let start = self.terms.len();
        for (term, count) in pairs.drain(..).filter(|pair| pair.1 > 0) {
            if self.terms.len() > start && self.terms.last() == Some(&term) {
                if let Some(last) = self.counts.last_mut() {
                    *last = last.saturating_add(count);
                }
            } else {
                self.terms.push(term);
                self.counts.push(count);
            }
        }
        self.ends.push(self.terms.len());
    }
}

/// Reads the vocabulary, one word per line, from the file `given` or from the default path of the format.
///
/// # Errors
/// Fails if the file does not exist or is not UTF-8 text.
pub(crate) fn read_vocabulary(bags: &Path, given: Option<&Path>) -> Result<Vec<String>, DataError> {
    let path = match given {
        Some(path) => path.to_path_buf(),
        None => beside(bags).ok_or_else(|| {
            DataError::invalid(format!(
                "the words of `{}` are missing: put them in `vocab.txt` in the same folder, one per line, or \
                 name their file (--vocabulary FILE)",
                bags.display()
            ))
        })?,
    };
    let mut words = Vec::new();
    for line in compressed::open(&path)?.lines() {
        let line = line.map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidData => DataError::invalid(format!(
                "`{}`, line {}: not UTF-8 text",
                path.display(),
                words.len() + 1
            )),
            _ => read_error(&path, &error),
        })?;
        words.push(line.trim().to_owned());
    }
    Ok(words)
}

fn beside(bags: &Path) -> Option<PathBuf> {
    let name = bare_name(bags);
    let folder = bags.parent().unwrap_or(Path::new(""));
    let uci = name
        .strip_prefix("docword.")
        .map(|rest| format!("vocab.{rest}"));
    let stem = name
        .rsplit_once('.')
        .map(|(stem, _)| format!("{stem}.vocab"));
    let names = [uci, stem, Some("vocab.txt".into())];
    names
        .into_iter()
        .flatten()
        .map(|name| folder.join(name))
        .find(|path| path.is_file())
}

pub(crate) struct BagReader {
    path: PathBuf,
    file: Box<dyn BufRead + Send>,
    buffer: String,
    line: u64,
    words: usize,
    kind: Kind,
    pairs: Vec<(u32, u32)>,
}

enum Kind {
    Ldac,
    Triplets {
        documents: u64,
        entries: u64,
        read: u64,
        /// The number of the document whose entries are being read. All documents before it are complete.
        current: u64,
        ended: bool,
        pattern: bool,
    },
}

impl BagReader {
    pub fn open(path: &Path, format: Format, words: usize) -> Result<Self, DataError> {
        let mut reader = Self {
            path: path.to_path_buf(),
            file: compressed::open(path)?,
            buffer: String::new(),
            line: 0,
            words,
            kind: Kind::Ldac,
            pairs: Vec::new(),
        };
        let (header, pattern) = match format {
            Format::Uci => (reader.uci_header()?, false),
            Format::MatrixMarket => reader.matrix_market_header()?,
            _ => return Ok(reader),
        };
        let [documents, terms, entries] = header;
        if terms > words as u64 {
            return Err(reader.wrong(&format!(
                "the file has {terms} terms, but its vocabulary has {words} words"
            )));
        }
        let most = DOCUMENTS.saturating_add(entries.saturating_mul(DOCUMENTS_PER_ENTRY));
        if documents > most {
            return Err(reader.wrong(&format!(
                "{documents} documents have {entries} entries in total, so nearly all of them would be empty \
                 and the number must be wrong; this many entries allow at most {most} documents"
            )));
        }
        reader.kind = Kind::Triplets {
            documents,
            entries,
            read: 0,
            current: 1,
            ended: false,
            pattern,
        };
        Ok(reader)
    }

    /// Returns the next documents, or `None` at the end of the file.
    pub fn next(&mut self) -> Result<Option<Bags>, DataError> {
        let mut bags = Bags::default();
        while bags.ends.len() < CHUNK_DOCUMENTS {
            let more = match self.kind {
                Kind::Ldac => self.ldac(&mut bags)?,
                Kind::Triplets { .. } => self.triplets(&mut bags)?,
            };
            if !more {
                break;
            }
        }
        Ok((!bags.ends.is_empty()).then_some(bags))
    }

    fn read_line(&mut self) -> Result<bool, DataError> {
        self.buffer.clear();
        self.line += 1;
        match self.file.read_line(&mut self.buffer) {
            Ok(read) => Ok(read > 0),
            Err(error)
                if error.kind() == std::io::ErrorKind::InvalidData
                    && !self.path_is_compressed() =>
            {
                Err(self.wrong("not UTF-8 text"))
            }
            Err(error) => Err(read_error(&self.path, &error)),
        }
    }

    fn path_is_compressed(&self) -> bool {
        self.path
            .file_name()
            .is_some_and(|name| bare_name(&self.path) != name.to_string_lossy())
    }

    fn wrong(&self, what: &str) -> DataError {
        DataError::invalid(format!(
            "`{}`, line {}: {what}",
            self.path.display(),
            self.line
        ))
    }

    fn uci_header(&mut self) -> Result<[u64; 3], DataError> {
        let mut header = [0; 3];
        let names = ["documents", "words", "entries"];
        for (slot, name) in header.iter_mut().zip(names) {
            self.read_line()?;
            *slot = self.buffer.trim().parse().map_err(|_| {
                self.wrong(&format!(
                    "expected the number of {name} (UCI bag of words), found `{}`",
                    self.shown()
                ))
            })?;
        }
        Ok(header)
    }

    fn matrix_market_header(&mut self) -> Result<([u64; 3], bool), DataError> {
        self.read_line()?;
        let banner = self.buffer.trim().to_lowercase();
        let words: Vec<&str> = banner.split_ascii_whitespace().collect();
        let pattern = match words[..] {
            [
                "%%matrixmarket",
                "matrix",
                "coordinate",
                "integer" | "real",
                "general",
            ] => false,
            [
                "%%matrixmarket",
                "matrix",
                "coordinate",
                "pattern",
                "general",
            ] => true,
            _ => {
                return Err(self.wrong(&format!(
                    "expected `%%MatrixMarket matrix coordinate integer general` (or real, or pattern), found `{}`",
                    self.shown()
                )));
            }
        };
        loop {
            if !self.read_line()? {
                return Err(self.wrong("the file ends before the size of its matrix"));
            }
            let line = self.buffer.trim();
            if line.is_empty() || line.starts_with('%') {
                continue;
            }
            let sizes: Vec<u64> = line
                .split_ascii_whitespace()
                .map_while(|s| s.parse().ok())
                .collect();
            let Ok(sizes) = <[u64; 3]>::try_from(sizes) else {
                return Err(self.wrong(&format!(
                    "expected rows, columns and entries, found `{}`",
                    self.shown()
                )));
            };
            return Ok((sizes, pattern));
        }
    }

    fn shown(&self) -> String {
        let line = self.buffer.trim();
        let start: String = line.chars().take(40).collect();
        if start.len() < line.len() {
            format!("{start}…")
        } else {
            start
        }
    }

    fn ldac(&mut self, bags: &mut Bags) -> Result<bool, DataError> {
        loop {
            if !self.read_line()? {
                return Ok(false);
            }
            if !self.buffer.trim().is_empty() {
                break;
            }
        }
        let mut fields = self.buffer.split_ascii_whitespace();
        let promised: Option<usize> = fields.next().and_then(|field| field.parse().ok());
        let mut pairs = std::mem::take(&mut self.pairs);
        for field in fields {
            let pair = field.split_once(':').and_then(|(term, count)| {
                Some((term.parse::<u32>().ok()?, count.parse::<u32>().ok()?))
            });
            let Some(pair) = pair else {
                return Err(self.wrong(&format!("expected term:count, found `{field}`")));
            };
            if pair.0 as usize >= self.words {
                return Err(self.wrong(&format!(
                    "term {} is outside the vocabulary of {} words (terms are numbered from 0)",
                    pair.0, self.words
                )));
            }
            pairs.push(pair);
        }
        if promised != Some(pairs.len()) {
            return Err(self.wrong(&format!(
                "expected the number of terms and the same number of pairs term:count, found {} pairs in `{}`: \
                 is the file truncated?",
                pairs.len(),
                self.shown()
            )));
        }
        bags.push(&mut pairs);
        self.pairs = pairs;
        Ok(true)
    }

    fn triplets(&mut self, bags: &mut Bags) -> Result<bool, DataError> {
        loop {
            let Kind::Triplets {
                documents,
                entries,
                read,
                current,
                ended,
                pattern,
            } = self.kind
            else {
                return Ok(false);
            };
            if current > documents {
                return Ok(false);
            }
            let pending = self.pairs.last().copied();
            if ended {
                self.finish(bags, current);
                return Ok(true);
            }
            if !self.read_line()? {
                if read != entries {
                    return Err(self.wrong(&format!(
                        "the header declares {entries} entries, but the file has {read}: it is truncated"
                    )));
                }
                if let Kind::Triplets { ended, .. } = &mut self.kind {
                    *ended = true;
                }
                continue;
            }
            if self.buffer.trim().is_empty() {
                continue;
            }
            let (document, pair) = self.entry(documents, pattern)?;
            if let Kind::Triplets { read, .. } = &mut self.kind {
                *read += 1;
            }
            debug_assert!(pending.is_none_or(|pair| (pair.0 as usize) < self.words));
            if document < current {
                return Err(self.wrong(&format!(
                    "document {document} comes after document {current}, but Jensen reads a corpus document by \
                     document: sort the entries by their first number (transpose the matrix if rows are words)"
                )));
            }
            if document == current {
                self.pairs.push(pair);
                continue;
            }
            self.finish(bags, current);
            for _ in current + 1..document {
                bags.push(&mut self.pairs);
            }
            if let Kind::Triplets { current, .. } = &mut self.kind {
                *current = document;
            }
            self.pairs.push(pair);
            return Ok(true);
        }
    }

    fn finish(&mut self, bags: &mut Bags, done: u64) {
        bags.push(&mut self.pairs);
        if let Kind::Triplets { current, .. } = &mut self.kind {
            *current = done + 1;
        }
    }

    /// Parses the entry on the current line. An entry consists of the document, the term and the count. Documents are
    /// counted from 1, and terms from 0.
    fn entry(&self, documents: u64, pattern: bool) -> Result<(u64, (u32, u32)), DataError> {
        let mut fields = self.buffer.split_ascii_whitespace();
        let mut next = || fields.next();
        let document: Option<u64> = next().and_then(|s| s.parse().ok());
        let term: Option<u64> = next().and_then(|s| s.parse().ok());
        let count = if pattern {
            Some(1)
        } else {
            next().and_then(whole)
        };
        let (Some(document), Some(term), Some(count), None) = (document, term, count, next())
        else {
            return Err(self.wrong(&format!(
                "expected document, term and an integer count, found `{}`",
                self.shown()
            )));
        };
        if document < 1 || document > documents {
            return Err(self.wrong(&format!(
                "document {document} is not among the {documents} documents of the file"
            )));
        }
        if term < 1 || term > self.words as u64 {
            return Err(self.wrong(&format!(
                "term {term} is outside the vocabulary of {} words (terms are numbered from 1)",
                self.words
            )));
        }
        Ok((document, (term as u32 - 1, count)))
    }
}

/// Parses a count. A count may also be written as a real number, such as `2.0`.
fn whole(text: &str) -> Option<u32> {
    if let Ok(count) = text.parse() {
        return Some(count);
    }
    let x: f64 = text.parse().ok()?;
    (x >= 0.0 && x <= f64::from(u32::MAX) && x.fract() == 0.0).then_some(x as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        name: &str,
        format: Format,
        text: &str,
        words: usize,
    ) -> Result<Vec<Vec<(u32, u32)>>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let fail = |error: DataError| error.to_string();
        let mut reader = BagReader::open(&path, format, words).map_err(fail)?;
        let mut found = Vec::new();
        while let Some(bags) = reader.next().map_err(fail)? {
            for i in 0..bags.ends.len() {
                let (terms, counts) = bags.get(i);
                found.push(terms.iter().copied().zip(counts.iter().copied()).collect());
            }
        }
        Ok(found)
    }

    #[test]
    fn three_spellings_of_the_same_documents() {
        let expected = vec![vec![(0, 2), (2, 1)], vec![], vec![(1, 3)], vec![]];
        let uci = "4\n3\n3\n1 1 2\n1 3 1\n3 2 3\n";
        assert_eq!(
            read("docword.a.txt", Format::Uci, uci, 3).unwrap(),
            expected
        );
        let ldac = "2 2:1 0:2\n0\n\n1 1:3\n0\n";
        assert_eq!(read("a.dat", Format::Ldac, ldac, 3).unwrap(), expected);
        let mtx = "%%MatrixMarket matrix coordinate real general\n% by hand\n4 3 4\n1 3 1.0\n1 1 1e0\n1 1 1\n3 2 3\n";
        assert_eq!(
            read("a.mtx", Format::MatrixMarket, mtx, 3).unwrap(),
            expected
        );
    }

    #[test]
    fn damage_is_said_with_its_line() {
        let cases = [
            (
                Format::Uci,
                "4\n3\n3\n1 1 2\n",
                "declares 3 entries, but the file has 1",
            ),
            (
                Format::Uci,
                "4\nthree\n3\n",
                "line 2: expected the number of words",
            ),
            (
                Format::Uci,
                "4\n9\n3\n",
                "9 terms, but its vocabulary has 3",
            ),
            (
                Format::Uci,
                "2\n3\n2\n2 1 2\n1 1 1\n",
                "line 5: document 1 comes after document 2",
            ),
            (Format::Uci, "2\n3\n2\n2 4 2\n", "term 4 is outside"),
            (Format::Uci, "2\n3\n2\n3 1 2\n", "document 3 is not among"),
            (Format::Uci, "2\n3\n2\n1 1 1.5\n", "an integer count"),
            (
                Format::Ldac,
                "2 0:1 1:1\n3 0:1\n",
                "line 2: expected the number of terms",
            ),
            (Format::Ldac, "1 0:x\n", "expected term:count"),
            (Format::Ldac, "1 3:1\n", "term 3 is outside"),
            (Format::MatrixMarket, "1 2 3\n", "expected `%%MatrixMarket"),
            (
                Format::MatrixMarket,
                "%%MatrixMarket matrix coordinate integer general\n%\n",
                "ends before the size",
            ),
            (
                Format::MatrixMarket,
                "%%MatrixMarket matrix coordinate integer general\n21474836473 3 1\n1 1 2\n",
                "line 2: 21474836473 documents have 1 entries in total",
            ),
        ];
        for (format, text, expected) in cases {
            let error = read("x", format, text, 3).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn words_stand_beside_their_bags() {
        let folder = tempfile::tempdir().unwrap();
        let bags = folder.path().join("docword.kos.txt.gz");
        let error = read_vocabulary(&bags, None).unwrap_err().to_string();
        assert!(error.contains("--vocabulary"), "{error}");
        std::fs::write(folder.path().join("vocab.txt"), "x\n").unwrap();
        assert_eq!(read_vocabulary(&bags, None).unwrap(), ["x"]);
        std::fs::write(folder.path().join("vocab.kos.txt"), "a\nb\n").unwrap();
        assert_eq!(read_vocabulary(&bags, None).unwrap(), ["a", "b"]);
    }
}
