//! Lists the input files, determines their formats, and reads them in chunks of documents.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::bags::{BagReader, Bags, read_vocabulary};
use super::compressed::{self, bare_name, read_error};
use crate::error::DataError;

/// The number of documents in a chunk, which is the unit of parallel work. The number is fixed, so results do not
/// depend on the number of threads.
pub(crate) const CHUNK_DOCUMENTS: usize = 4096;

const CHUNK_BYTES: usize = 8 << 20;

const DOCUMENT_BYTES: usize = 256 << 20;

/// The format of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// JSON lines: one object per line, with a field that contains the text or a list of words.
    Jsonl,
    /// Parquet files with the text in one column, in builds with the feature `parquet`.
    Parquet,
    /// Plain text.
    Text,
    /// UCI bags of words, stored in `docword.NAME.txt`. The file `vocab.NAME.txt` in the same folder contains the
    /// words.
    Uci,
    /// LDA-C, in which each line contains pairs `term:count`. Terms are numbered from 0.
    Ldac,
    /// Matrix Market coordinates. Each row of the matrix is a document, and rows are in ascending order.
    #[serde(alias = "mtx")]
    MatrixMarket,
}

impl Format {
    /// Returns whether documents of this format are bags of words.
    pub fn is_bag(self) -> bool {
        !matches!(self, Self::Jsonl | Self::Parquet | Self::Text)
    }

    /// Returns the format that the name of a file suggests. If the name suggests none, the format is plain text.
    fn of(path: &Path) -> Self {
        let name = bare_name(path).to_lowercase();
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        match ending {
            "jsonl" | "ndjson" | "json" => Self::Jsonl,
            "mtx" | "mm" => Self::MatrixMarket,
            "dat" | "ldac" | "lda-c" => Self::Ldac,
            "parquet" => Self::Parquet,
            _ if name.starts_with("docword.") => Self::Uci,
            _ => Self::Text,
        }
    }

    pub(crate) fn has_fields(self) -> bool {
        matches!(self, Self::Jsonl | Self::Parquet)
    }
}

/// The unit of plain text that forms a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentUnit {
    /// Every line is a document.
    Line,
    /// Every file is a document.
    File,
}

/// The settings for reading inputs. Settings that are absent are derived from the names of the inputs.
#[derive(Clone, Debug)]
pub struct SourceSettings {
    /// The format of all files.
    pub format: Option<Format>,
    /// The name of the field of a JSON object that contains the text.
    pub field: String,
    /// The name of the field of a JSON object that contains the name of the document.
    pub id: Option<String>,
    /// The unit of plain text that forms a document. By default, each file in a folder is a document, and each line of
    /// any other file is a document.
    pub unit: Option<DocumentUnit>,
    /// The file that contains the vocabulary of bags, with one word per line.
    pub vocabulary: Option<PathBuf>,
}

impl Default for SourceSettings {
    fn default() -> Self {
        Self {
            format: None,
            field: "text".into(),
            id: None,
            unit: None,
            vocabulary: None,
        }
    }
}

/// The number of omitted documents for each reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The number of documents that contain no word of the vocabulary.
    pub empty: u64,
    /// The number of documents that are not UTF-8 text.
    pub not_utf8: u64,
    /// The number of JSON objects without a usable text field. The field is missing, or it is neither text nor a list
    /// of words.
    pub without_text: u64,
}

impl Skipped {
    /// Returns the total number of omitted documents.
    pub fn total(&self) -> u64 {
        self.empty + self.not_utf8 + self.without_text
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.empty += other.empty;
        self.not_utf8 += other.not_utf8;
        self.without_text += other.without_text;
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub path: PathBuf,
    pub format: Format,
    unit: DocumentUnit,
}

/// Input files, which can be read several times.
#[derive(Clone, Debug)]
pub struct Sources {
    pub(crate) inputs: Vec<Input>,
    names: Vec<String>,
    pub(crate) field: String,
    pub(crate) id: Option<String>,
    pub(crate) words: Option<Vec<String>>,
}

impl Sources {
    /// Lists the files to read. The list contains the given files, in order, and the files in the given folders and
    /// their subfolders, sorted by name. Hidden files in folders are left out.
    ///
    /// # Errors
    /// Fails if a file does not exist or has an unknown format, or if text and bags are mixed. Also fails if the file
    /// with the words of bags is missing.
    pub fn new(paths: &[PathBuf], settings: &SourceSettings) -> Result<Self, DataError> {
        let mut inputs = Vec::new();
        for path in paths {
            let mut files = Vec::new();
            let folder = path.is_dir();
            if folder {
                walk(path, &mut files)?;
                if files.is_empty() {
                    return Err(DataError::invalid(format!(
                        "the folder `{}` has no files",
                        path.display()
                    )));
                }
            } else {
                files.push(path.clone());
            }
            for path in files {
                inputs.push(Input {
                    format: settings.format.unwrap_or_else(|| Format::of(&path)),
                    unit: settings.unit.unwrap_or(if folder {
                        DocumentUnit::File
                    } else {
                        DocumentUnit::Line
                    }),
                    path,
                });
            }
        }
        let bags = inputs.iter().filter(|input| input.format.is_bag()).count();
        if bags > 0 && bags < inputs.len() {
            return Err(DataError::invalid(
                "a corpus cannot mix text and bags of words: build it from one kind",
            ));
        }
        // In the UCI format, the file with the words contains no documents.
        let words = match inputs.first() {
            Some(input) if bags > 0 => Some(read_vocabulary(
                &input.path,
                settings.vocabulary.as_deref(),
            )?),
            _ => None,
        };
        Ok(Self {
            inputs,
            names: paths
                .iter()
                .map(|path| path.display().to_string())
                .collect(),
            field: settings.field.clone(),
            id: settings.id.clone(),
            words,
        })
    }

    /// Returns the names of the given inputs, for use in messages and records.
    pub fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    /// Describes the input files for messages.
    pub(crate) fn shown(&self) -> String {
        match &self.names[..] {
            [one] => format!("`{one}`"),
            names => format!("{} files", names.len()),
        }
    }

    /// Returns the words of bags, indexed by their numbers. Returns `None` if the inputs are text.
    pub fn words(&self) -> Option<&[String]> {
        self.words.as_deref()
    }

    /// Returns the format of the first file.
    pub fn format(&self) -> Option<Format> {
        self.inputs.first().map(|input| input.format)
    }

    /// Returns the number of files.
    pub fn files(&self) -> usize {
        self.inputs.len()
    }

    pub(crate) fn only(&self, file: usize) -> Result<Self, DataError> {
        let Some(input) = self.inputs.get(file) else {
            return Err(DataError::invalid(format!(
                "there is no input file {file}: all machines must see the same files"
            )));
        };
        Ok(Self {
            inputs: vec![input.clone()],
            ..self.clone()
        })
    }

    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader {
            sources: self,
            next: 0,
            open: None,
            documents: 0,
        }
    }
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), DataError> {
    let io = |error: std::io::Error| DataError::io("read the folder", folder, &error);
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(io)? {
        entries.push(entry.map_err(io)?.path());
    }
    entries.sort();
    for path in entries {
        let hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if hidden {
            continue;
        }
        if path.is_dir() {
            walk(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

#[derive(Debug, Default)]
pub(crate) struct Texts {
    pub bytes: Vec<u8>,
    pub ends: Vec<usize>,
    /// The location of each document. It consists of the index of the file, and of the line on which the document
    /// begins.
    pub locations: Vec<(u32, u64)>,
}

impl Texts {
    pub fn get(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[start..self.ends[i]]
    }
}

#[derive(Debug)]
pub(crate) enum Content {
    Texts(Texts),
    Bags(Bags),
}

#[derive(Debug)]
pub(crate) struct Chunk {
    /// The number of the first document. Documents are counted from 1 over all files.
    pub first: u64,
    pub content: Content,
}

impl Chunk {
    pub fn len(&self) -> usize {
        match &self.content {
            Content::Texts(texts) => texts.ends.len(),
            Content::Bags(bags) => bags.ends.len(),
        }
    }
}

enum Open {
    Lines {
        file: Box<dyn BufRead + Send>,
        line: u64,
    },
    Bags(BagReader),
}

pub(crate) struct Reader<'a> {
    sources: &'a Sources,
    next: usize,
    open: Option<Open>,
    documents: u64,
}

impl Reader<'_> {
    pub fn chunk(&mut self) -> Result<Option<Chunk>, DataError> {
        let content = if self.sources.words.is_some() {
            self.bags()?.map(Content::Bags)
        } else {
            self.texts()?.map(Content::Texts)
        };
        Ok(content.map(|content| {
            let chunk = Chunk {
                first: self.documents + 1,
                content,
            };
            self.documents += chunk.len() as u64;
            chunk
        }))
    }

    fn bags(&mut self) -> Result<Option<Bags>, DataError> {
        loop {
            if self.open.is_none() {
                let Some(input) = self.sources.inputs.get(self.next) else {
                    return Ok(None);
                };
                self.next += 1;
                let words = self.sources.words.as_ref().map_or(0, Vec::len);
                self.open = Some(Open::Bags(BagReader::open(
                    &input.path,
                    input.format,
                    words,
                )?));
            }
            if let Some(Open::Bags(reader)) = &mut self.open
                && let Some(bags) = reader.next()?
            {
                return Ok(Some(bags));
            }
            self.open = None;
        }
    }

    #[cfg(feature = "parquet")]
    fn parquet(&self, path: &Path) -> Result<Box<dyn BufRead + Send>, DataError> {
        super::parquet::open(path, &self.sources.field, self.sources.id.as_deref())
    }

    #[cfg(not(feature = "parquet"))]
    #[allow(clippy::unused_self)]
    fn parquet(&self, path: &Path) -> Result<Box<dyn BufRead + Send>, DataError> {
        Err(DataError::invalid(format!(
            "`{}`: this build does not read Parquet: install Jensen with `--features parquet`, or write the \
             texts as JSON lines, for example with DuckDB: COPY (SELECT text FROM 'file.parquet') TO \
             'file.jsonl'",
            path.display()
        )))
    }

    fn texts(&mut self) -> Result<Option<Texts>, DataError> {
        let mut texts = Texts::default();
        while texts.ends.len() < CHUNK_DOCUMENTS && texts.bytes.len() < CHUNK_BYTES {
            if self.open.is_none() {
                let Some(input) = self.sources.inputs.get(self.next) else {
                    break;
                };
                self.next += 1;
                let mut file = match input.format {
                    Format::Parquet => self.parquet(&input.path)?,
                    _ => compressed::open(&input.path)?,
                };
                if input.format == Format::Text && input.unit == DocumentUnit::File {
                    take(&mut *file, None, &mut texts.bytes, &input.path)?;
                    texts.ends.push(texts.bytes.len());
                    texts.locations.push((self.next as u32 - 1, 1));
                    continue;
                }
                self.open = Some(Open::Lines { file, line: 0 });
            }
            let index = self.next - 1;
            let input = &self.sources.inputs[index];
            let Some(Open::Lines { file, line }) = &mut self.open else {
                break;
            };
            if !take(&mut **file, Some(b'\n'), &mut texts.bytes, &input.path)? {
                self.open = None;
                continue;
            }
            *line += 1;
            let start = texts.ends.last().copied().unwrap_or(0);
            // A blank line among JSON lines is not a document.
            if input.format.has_fields() && texts.bytes[start..].iter().all(u8::is_ascii_whitespace)
            {
                texts.bytes.truncate(start);
                continue;
            }
            texts.ends.push(texts.bytes.len());
            texts.locations.push((index as u32, *line));
        }
        Ok((!texts.ends.is_empty()).then_some(texts))
    }
}

/// Appends the bytes before `end` to `out`. If there is no `end`, appends all remaining bytes. Returns `false` at the
/// end of the file.
fn take(
    file: &mut (dyn BufRead + Send),
    end: Option<u8>,
    out: &mut Vec<u8>,
    path: &Path,
) -> Result<bool, DataError> {
    let start = out.len();
    loop {
        let buffer = match file.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(read_error(path, &error)),
        };
        if buffer.is_empty() {
            return Ok(out.len() > start);
        }
        let found = end.and_then(|end| buffer.iter().position(|byte| *byte == end));
        let used = found.unwrap_or(buffer.len());
        out.extend_from_slice(&buffer[..used]);
        file.consume(used + usize::from(found.is_some()));
        if out.len() - start > DOCUMENT_BYTES {
            return Err(DataError::invalid(format!(
                "`{}` has a document of more than {} MiB: is it text, one document per line?",
                path.display(),
                DOCUMENT_BYTES >> 20
            )));
        }
        if found.is_some() {
            return Ok(true);
        }
    }
}
