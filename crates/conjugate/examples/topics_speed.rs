//! Measures fits of topics: the documents per second, and the held-out score under every temperature policy.
//!
//! `cargo run --release -p jensen-conjugate --example topics_speed -- TOPICS DOCUMENTS [CORPUS] [POLICY…]`
//!
//! CORPUS is a file of little-endian 32-bit words. It contains the numbers of documents, terms and entries, then the
//! index at which the entries of each document start and at which the last document's entries end, then the terms of
//! the entries, and finally their counts. The last thousand documents are held out. Without CORPUS (or with `-`),
//! documents are generated from the same number of random topics as the fit has.

use std::time::Instant;

use jensen_conjugate::documents::{Bag, DocumentRange, Documents, MemoryDocuments};
use jensen_conjugate::lda::{self, LdaJob, LdaSettings};
use jensen_conjugate::temper::{GlobalTempering, LocalTempering, Temper};
use jensen_math::rng::{Purpose, Stream};
use jensen_math::simd::Simd;
use jensen_run::{Budget, Control, Record};

/// Generates documents of about a hundred words over 8 000 terms. Each topic is a window of the vocabulary, and each
/// document has two topics.
fn generate(topics: usize, documents: usize) -> MemoryDocuments {
    let terms = 8000;
    let mut corpus = MemoryDocuments::new(terms);
    for d in 0..documents {
        let mut stream = Stream::new(1, Purpose::new("documents"), 0, d as u64);
        let pair = [stream.below(topics as u64), stream.below(topics as u64)];
        let mut words = Vec::new();
        for _ in 0..60 + stream.below(80) {
            let topic = pair[stream.below(2) as usize];
            let start = topic * 7919 % terms as u64;
            // Within a topic, word frequencies decrease as a power of the rank.
            let rank = (200.0 * stream.uniform().powi(3)) as u64;
            words.push(((start + rank) % terms as u64) as u32);
        }
        words.sort_unstable();
        let mut bag = Bag::new();
        for word in words {
            if bag.terms.last() == Some(&word) {
                *bag.counts.last_mut().expect("one for every term") += 1.0;
            } else {
                bag.push(word, 1.0);
            }
        }
        corpus.push(&bag).expect("a valid document");
    }
    corpus
}

fn read(path: &str) -> MemoryDocuments {
    let bytes = std::fs::read(path).expect("a readable corpus");
    let words: Vec<u32> = bytes
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    let (n, terms, entries) = (words[0] as usize, words[1] as usize, words[2] as usize);
    let starts = &words[3..4 + n];
    let ids = &words[4 + n..4 + n + entries];
    let counts = &words[4 + n + entries..];
    let mut corpus = MemoryDocuments::new(terms);
    for pair in starts.windows(2) {
        let range = pair[0] as usize..pair[1] as usize;
        let bag = Bag {
            terms: ids[range.clone()].to_vec(),
            counts: counts[range].iter().map(|&c| c as f32).collect(),
        };
        corpus.push(&bag).expect("a valid document");
    }
    corpus
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: usize| {
        arguments
            .get(i)
            .map_or(default, |a| a.parse().expect("a number"))
    };
    let (topics, documents) = (number(0, 100), number(1, 20_000));
    let corpus = match arguments.get(2).map(String::as_str) {
        None | Some("-") => generate(topics, documents + 1000),
        Some(path) => read(path),
    };
    let train = DocumentRange::new(&corpus, 0, documents.min(corpus.len() - 1000));
    let heldout = DocumentRange::new(&corpus, corpus.len() - 1000, corpus.len());
    let policies: Vec<Temper> = arguments
        .get(3..)
        .unwrap_or(&[])
        .iter()
        .map(|name| name.parse().expect("a policy"))
        .collect();
    let policies = if policies.is_empty() {
        vec![
            Temper::None,
            Temper::anneal(1.0),
            Temper::Global(GlobalTempering::default()),
            Temper::Local(LocalTempering::default()),
        ]
    } else {
        policies
    };
    let environment = |name: &str, default: f64| {
        std::env::var(name).map_or(default, |v| v.parse().expect("a number"))
    };
    for temper in policies {
        let mut settings = LdaSettings::new(topics);
        settings.temper = temper.clone();
        if let Temper::Global(global) = &mut settings.temper {
            global.damping = environment("DAMPING", global.damping);
            global.hottest = environment("HOTTEST", global.hottest);
        }
        settings.passes = environment("PASSES", 1.0);
        settings.tau = environment("TAU", 1024.0);
        settings.seed = environment("SEED", 0.0) as u64;
        settings.local.tolerance = environment("TOLERANCE", settings.local.tolerance);
        let job = LdaJob {
            documents: &train,
            heldout: Some(&heldout),
            scored: usize::MAX,
            start: None,
            settings,
            simd: Simd::detect(),
            data_hash: String::new(),
        };
        let start = Instant::now();
        let clock = move || start.elapsed().as_secs_f64();
        let mut trace: Vec<Record> = Vec::new();
        let mut control = Control::new(Budget::iterations(u64::MAX), &clock, &mut trace);
        let outcome = lda::fit(&job, &mut control).expect("a fit");
        let fit = outcome.output.expect("an output");
        let (first, last) = (&trace[0], &trace[trace.len() - 1]);
        let seconds = (last.seconds - first.seconds) * trace.len() as f64
            / (trace.len() as f64 - 1.0).max(1.0);
        let heldout = fit.completion.expect("documents are held out");
        let sweeps: f64 = trace
            .iter()
            .filter_map(|r| r.fields["sweeps"].as_f64())
            .sum::<f64>()
            / trace.len() as f64;
        if std::env::var_os("TEMPERATURES").is_some() {
            let step = trace.len().div_ceil(20);
            let line: Vec<String> = trace
                .iter()
                .step_by(step)
                .map(|r| {
                    format!(
                        "{:.2}",
                        r.fields["temperature"].as_f64().unwrap_or(f64::NAN)
                    )
                })
                .collect();
            println!("temperatures {}", line.join(" "));
        }
        println!(
            "{:8} {} topics, {} documents: {:7.0} documents/s ({seconds:.2} s), {sweeps:.1} sweeps, score {:.4} ± {:.4} \
             ({} words), T = {:.3}, ELBO {:.0} ± {:.0}",
            temper.name(),
            topics,
            fit.documents,
            fit.documents as f64 / seconds,
            heldout.log_predictive,
            heldout.standard_error,
            heldout.words,
            fit.temperature,
            fit.elbo,
            fit.elbo_se,
        );
    }
}
