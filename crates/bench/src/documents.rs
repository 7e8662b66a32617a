//! Documents drawn from a topic model, for measurements at any size.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use jensen::math::rng::{Purpose, Stream};

const MIXED: usize = 3;

/// The size of a collection.
#[derive(Clone, Copy)]
pub struct Size {
    /// Number of documents.
    pub documents: u64,
    /// Number of words in the vocabulary.
    pub terms: u64,
    /// Number of topics.
    pub topics: u64,
    /// Mean number of tokens of a document. The numbers vary from half to one and a half times the mean.
    pub tokens: u64,
}

/// Writes documents as LDA-C to `out`, and their invented words to `vocab.txt` in the same folder. Document `i` depends
/// only on the seed and `i`.
///
/// Every topic has its own order of the words, by a permutation v → a v + b of the vocabulary, and probabilities close
/// to 1/rank. A document mixes three topics.
pub fn write(out: &Path, size: Size, seed: u64) -> anyhow::Result<()> {
    anyhow::ensure!(
        size.terms >= 2 && size.topics >= 1 && size.tokens >= 2,
        "two words, a topic and two tokens are least"
    );
    let create = |path: &Path| {
        File::create(path)
            .map(BufWriter::new)
            .with_context(|| format!("cannot write `{}`", path.display()))
    };
    let mut words = create(&out.with_file_name("vocab.txt"))?;
    for term in 0..size.terms {
        writeln!(words, "word{term}")?;
    }
    words.flush()?;
    let orders: Vec<(u64, u64)> = (0..size.topics)
        .map(|topic| order(size.terms, seed, topic))
        .collect();
    let mut file = create(out)?;
    let mut counts = BTreeMap::new();
    for document in 0..size.documents {
        let mut stream = Stream::new(seed, Purpose::new("generated documents"), 0, document);
        let mixed: [u64; MIXED] = std::array::from_fn(|_| stream.below(size.topics));
        let tokens = size.tokens / 2 + stream.below(size.tokens + 1);
        counts.clear();
        for _ in 0..tokens.max(1) {
            let (a, b) = orders[mixed[stream.below(MIXED as u64) as usize] as usize];
            let u = stream.uniform();
            // Log-uniform ranks have probabilities close to 1/rank.
            let rank = ((size.terms as f64).powf(u) as u64 - 1).min(size.terms - 1);
            *counts.entry((a * rank + b) % size.terms).or_insert(0u32) += 1;
        }
        write!(file, "{}", counts.len())?;
        for (term, count) in &counts {
            write!(file, " {term}:{count}")?;
        }
        writeln!(file)?;
    }
    file.flush()?;
    Ok(())
}

/// Draws a topic's permutation of the vocabulary, in which rank r is word a r + b modulo the number of words.
fn order(terms: u64, seed: u64, topic: u64) -> (u64, u64) {
    let mut stream = Stream::new(seed, Purpose::new("generated topics"), 0, topic);
    let b = stream.below(terms);
    loop {
        let a = 1 + stream.below(terms - 1);
        if gcd(a, terms) == 1 {
            return (a, b);
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
