//! Attacks the readers of bags of words in every format, and the reader of built corpora.

use std::fs;
use std::path::{Path, PathBuf};

use jensen::data::DataError;
use jensen::data::corpus::sources::SourceSettings;
use jensen::data::corpus::{BuildSettings, Built, Corpus, Document, Format, Sources, Split, build};

const WORDS: &str = "river\nwater\nfish\nproof\nlemma\n";

/// Returns a file of each format. The first byte determines the format.
pub fn bags() -> Vec<Vec<u8>> {
    let formats = [
        "3\n5\n5\n1 1 2\n1 3 1\n2 5 4\n3 2 1\n3 4 1\n",
        "2 0:2 2:1\n1 4:4\n2 1:1 3:1\n",
        "%%MatrixMarket matrix coordinate integer general\n% words\n3 5 5\n1 1 2\n1 3 1\n2 5 4\n3 2 1\n3 4 1\n",
    ];
    let tagged = formats.iter().enumerate();
    tagged
        .map(|(tag, text)| [&[tag as u8][..], text.as_bytes()].concat())
        .collect()
}

/// Returns the path of a file. Different processes use different paths.
fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("jensen-fuzz-{}-{name}", std::process::id()))
}

fn built_of(bytes: &[u8], out: &Path) -> Result<Built, DataError> {
    let (tag, text) = bytes.split_first().unwrap_or((&0, &[]));
    let (input, vocabulary) = (file("bags"), file("words"));
    for (path, bytes) in [(&input, text), (&vocabulary, WORDS.as_bytes())] {
        fs::write(path, bytes).map_err(|e| DataError::io("write", path, &e))?;
    }
    let settings = SourceSettings {
        format: Some([Format::Uci, Format::Ldac, Format::MatrixMarket][usize::from(tag % 3)]),
        vocabulary: Some(vocabulary),
        ..SourceSettings::default()
    };
    let sources = Sources::new(&[input], &settings)?;
    build(&sources, out, &BuildSettings::new(&sources), &mut |_| true)
}

/// Checks that the build either accepts or rejects bags, and that the readers accept every corpus that is built.
pub fn build_bags(bytes: &[u8]) -> Result<(), String> {
    let out = file("built");
    if built_of(bytes, &out).is_ok() {
        let corpus = Corpus::open(&out).map_err(|e| format!("a corpus that was built: {e}"))?;
        walk(&corpus);
    }
    Ok(())
}

pub fn built() -> Vec<Vec<u8>> {
    let out = file("built");
    bags()
        .iter()
        .filter_map(|bag| {
            built_of(bag, &out).ok()?;
            fs::read(&out).ok()
        })
        .collect()
}

/// Checks that a corpus is either opened or rejected.
pub fn read(bytes: &[u8]) -> Result<(), String> {
    let path = file("corpus");
    fs::write(&path, bytes).map_err(|e| e.to_string())?;
    if let Ok(corpus) = Corpus::open(&path) {
        walk(&corpus);
    }
    Ok(())
}

fn walk(corpus: &Corpus) {
    let mut document = Document::default();
    for part in [Split::Train, Split::Heldout] {
        for index in 0..corpus.documents(part) {
            corpus.read(part, index, &mut document);
        }
    }
}
