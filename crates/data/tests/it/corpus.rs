//! Tests that corpora are written to a file and read back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jensen_data::DataError;
use jensen_data::corpus::build::Pass;
use jensen_data::corpus::sources::SourceSettings;
use jensen_data::corpus::vocabulary::VocabularySettings;
use jensen_data::corpus::{
    BuildSettings, Built, Corpus, Document, Extra, Frequency, PhraseSettings, Sources, Split,
    StopWords, Tokeniser, build, stream,
};

fn sources(
    paths: &[PathBuf],
    change: impl FnOnce(&mut SourceSettings),
) -> Result<Sources, DataError> {
    let mut settings = SourceSettings::default();
    change(&mut settings);
    Sources::new(paths, &settings)
}

fn all(sources: &Sources) -> BuildSettings {
    BuildSettings {
        vocabulary: VocabularySettings::bags(),
        ..BuildSettings::new(sources)
    }
}

fn make(
    sources: &Sources,
    out: &Path,
    settings: &BuildSettings,
) -> Result<(Corpus, Built), DataError> {
    let built = build(sources, out, settings, &mut |_| true)?;
    Ok((Corpus::open(out)?, built))
}

fn documents(corpus: &Corpus, part: Split) -> Vec<BTreeMap<String, u32>> {
    let mut document = Document::default();
    (0..corpus.documents(part))
        .map(|i| {
            corpus.read(part, i, &mut document);
            let pairs = document.terms.iter().zip(&document.counts);
            pairs
                .map(|(&t, &n)| (corpus.words()[t as usize].clone(), n))
                .collect()
        })
        .collect()
}

/// Returns texts that consist of invented words. The first words are common, and the later words are rare.
fn texts(count: usize) -> Vec<String> {
    let mut state = 1u64;
    let mut next = move |below: u64| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    (0..count)
        .map(|_| {
            let words = (0..3 + next(20)).map(|_| {
                let x = next(60) * next(60) / 10;
                let letter = |i: u64| char::from(b'a' + (i % 26) as u8);
                format!("{}{}w", letter(x), letter(x / 26))
            });
            words.collect::<Vec<_>>().join(" ")
        })
        .collect()
}

fn jsonl(texts: &[String]) -> String {
    let lines = texts.iter().enumerate().map(|(i, text)| {
        format!("{{\"id\": \"d{i}\", \"other\": [1, {{\"text\": 3}}], \"text\": \"{text}\"}}\n")
    });
    lines.collect()
}

fn bag_of(text: &str) -> BTreeMap<String, u32> {
    let mut bag = BTreeMap::new();
    for word in text.split(' ') {
        *bag.entry(word.to_owned()).or_insert(0) += 1;
    }
    bag
}

#[test]
fn a_corpus_holds_what_the_texts_say() {
    let folder = tempfile::tempdir().unwrap();
    let texts = texts(700);
    let path = folder.path().join("texts.jsonl");
    std::fs::write(&path, jsonl(&texts)).unwrap();
    let sources = sources(&[path], |_| {}).unwrap();
    let (corpus, built) = make(&sources, &folder.path().join("corpus"), &all(&sources)).unwrap();
    let expected: Vec<_> = texts.iter().map(|text| bag_of(text)).collect();
    assert_eq!(documents(&corpus, Split::Train), expected);
    assert_eq!(corpus.documents(Split::Heldout), 0);
    let tokens: u32 = expected.iter().flat_map(|bag| bag.values()).sum();
    assert_eq!(
        (corpus.tokens(Split::Train), built.tokens),
        (u64::from(tokens), u64::from(tokens))
    );
    assert_eq!(corpus.terms() as u64, built.distinct_words);
    assert_eq!(
        built.skipped.total() + built.tokens_left_out + built.uncertain_below,
        0
    );

    // Words are sorted by document frequency, and the corpus contains a record of the build.
    let df = |word: &String| expected.iter().filter(|bag| bag.contains_key(word)).count();
    let order: Vec<_> = corpus
        .words()
        .iter()
        .map(|word| (std::cmp::Reverse(df(word)), word))
        .collect();
    assert!(order.is_sorted());
    assert_eq!(corpus.record()["documents"], 700);
}

#[test]
fn the_vocabulary_obeys_its_settings_and_counts_what_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let texts = texts(300);
    let path = folder.path().join("texts.txt");
    std::fs::write(&path, texts.join("\n")).unwrap();
    let sources = sources(&[path], |_| {}).unwrap();
    let settings = BuildSettings {
        vocabulary: VocabularySettings {
            min_df: Frequency::Documents(5),
            max_df: Frequency::Share(0.25),
            max_terms: Some(30),
            stop_words: StopWords::new(["bbw"]),
        },
        ..BuildSettings::new(&sources)
    };
    let (corpus, built) = make(&sources, &folder.path().join("corpus"), &settings).unwrap();
    let bags: Vec<_> = texts.iter().map(|text| bag_of(text)).collect();
    let mut df: BTreeMap<&str, usize> = BTreeMap::new();
    for word in bags.iter().flat_map(|bag| bag.keys()) {
        *df.entry(word).or_default() += 1;
    }
    let mut expected: Vec<(usize, &str)> = df
        .iter()
        .filter(|(word, n)| (5..=75).contains(*n) && **word != "bbw")
        .map(|(word, n)| (usize::MAX - n, *word))
        .collect();
    expected.sort_unstable();
    expected.truncate(30);
    assert_eq!(
        corpus.words(),
        expected.iter().map(|e| e.1).collect::<Vec<_>>()
    );
    let total: u64 = bags
        .iter()
        .flat_map(|bag| bag.values())
        .map(|n| u64::from(*n))
        .sum();
    assert_eq!(corpus.tokens(Split::Train) + built.tokens_left_out, total);
    assert_eq!(built.documents + built.skipped.empty, 300);
}

#[test]
fn the_file_does_not_depend_on_threads_and_the_split_is_by_seed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("texts.jsonl");
    std::fs::write(&path, jsonl(&texts(5000))).unwrap();
    let sources = sources(&[path], |_| {}).unwrap();
    let bytes = |threads: usize, seed: u64| {
        let out = folder.path().join(format!("{threads}-{seed}"));
        let settings = BuildSettings {
            heldout: 0.1,
            seed,
            ..all(&sources)
        };
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let (corpus, built) = pool.install(|| make(&sources, &out, &settings)).unwrap();
        assert_eq!(built.documents + built.heldout_documents, 5000);
        // The number is within four standard deviations of a tenth of the documents.
        assert!((corpus.documents(Split::Heldout) as f64 - 500.0).abs() < 85.0);
        std::fs::read(out).unwrap()
    };
    let one = bytes(1, 3);
    assert_eq!(one, bytes(3, 3));
    assert_ne!(one, bytes(1, 4));
}

#[test]
fn bags_and_texts_give_the_same_documents() {
    let folder = tempfile::tempdir().unwrap();
    let texts = texts(150);
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("texts.txt"), texts.join("\n")).unwrap();
    let (from_text, _) = {
        let sources = sources(&[at("texts.txt")], |_| {}).unwrap();
        make(&sources, &at("a"), &all(&sources)).unwrap()
    };
    let expected = documents(&from_text, Split::Train);

    let mut words: Vec<String> = from_text.words().to_vec();
    words.sort();
    let number = |word: &String| words.binary_search(word).unwrap();
    std::fs::write(at("vocab.txt"), words.join("\n")).unwrap();
    let entries: usize = expected.iter().map(BTreeMap::len).sum();
    let mut triplets = String::new();
    let mut ldac = String::new();
    for (d, bag) in expected.iter().enumerate() {
        ldac += &bag.len().to_string();
        for (word, n) in bag {
            triplets += &format!("{} {} {n}\n", d + 1, number(word) + 1);
            ldac += &format!(" {}:{n}", number(word));
        }
        ldac += "\n";
    }
    let (d, w) = (expected.len(), words.len());
    std::fs::write(
        at("docword.x.txt"),
        format!("{d}\n{w}\n{entries}\n{triplets}"),
    )
    .unwrap();
    std::fs::write(at("x.dat"), ldac).unwrap();
    let banner = "%%MatrixMarket matrix coordinate integer general";
    std::fs::write(
        at("x.mtx"),
        format!("{banner}\n{d} {w} {entries}\n{triplets}"),
    )
    .unwrap();
    for name in ["docword.x.txt", "x.dat", "x.mtx"] {
        let sources = sources(&[at(name)], |_| {}).unwrap();
        let (corpus, _) = make(&sources, &at("b"), &BuildSettings::new(&sources)).unwrap();
        assert_eq!(documents(&corpus, Split::Train), expected, "{name}");
        assert_eq!(corpus.words(), from_text.words(), "{name}");
    }
    let error = sources(&[at("x.dat"), at("texts.txt")], |_| {})
        .unwrap_err()
        .to_string();
    assert!(error.contains("cannot mix"), "{error}");
}

#[test]
fn what_is_no_document_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("texts.jsonl");
    let mut bytes = b"{\"text\": \"alpha beta\"}\n\n{\"title\": \"gamma\"}\n{\"text\": null}\n{\"text\": \"... 1 2 3\"}\n".to_vec();
    bytes.extend(b"{\"text\": \"caf\xe9\"}\n{\"text\": \"beta\", \"n\": 1}");
    std::fs::write(&path, bytes).unwrap();
    let read = sources(std::slice::from_ref(&path), |_| {}).unwrap();
    let (corpus, built) = make(&read, &folder.path().join("c"), &all(&read)).unwrap();
    assert_eq!(corpus.documents(Split::Train), 2);
    let skipped = built.skipped;
    assert_eq!(
        (skipped.empty, skipped.not_utf8, skipped.without_text),
        (1, 1, 2)
    );

    let wrong = sources(std::slice::from_ref(&path), |s| s.field = "body".into()).unwrap();
    let error = make(&wrong, &folder.path().join("d"), &all(&wrong))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("no document remains") && error.contains("`body`"),
        "{error}"
    );
    assert!(!folder.path().join("d").exists());

    std::fs::write(&path, "{\"text\": \"alpha\"}\n{\"text\": \n").unwrap();
    let error = make(&read, &folder.path().join("d"), &all(&read))
        .unwrap_err()
        .to_string();
    assert!(error.contains("line 2: expected a JSON object"), "{error}");
}

#[test]
fn files_of_folders_are_documents() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("texts/deep");
    std::fs::create_dir_all(&inner).unwrap();
    std::fs::write(inner.join("b.txt"), "two\nlines two").unwrap();
    std::fs::write(folder.path().join("texts/a.txt"), "one").unwrap();
    std::fs::write(folder.path().join("texts/.hidden"), "three").unwrap();
    let read = sources(&[folder.path().join("texts")], |_| {}).unwrap();
    let (corpus, _) = make(&read, &folder.path().join("c"), &all(&read)).unwrap();
    let found = documents(&corpus, Split::Train);
    assert_eq!(found, [bag_of("one"), bag_of("two lines two")]);
    if cfg!(not(feature = "parquet")) {
        let read = sources(&[folder.path().join("texts.parquet")], |_| {}).unwrap();
        let error = make(&read, &folder.path().join("c"), &all(&read)).unwrap_err();
        assert!(
            error.to_string().contains("does not read Parquet"),
            "{error}"
        );
    }
}

#[test]
fn a_damaged_corpus_is_one_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("t.txt"), texts(70).join("\n")).unwrap();
    let read = sources(&[at("t.txt")], |_| {}).unwrap();
    let settings = BuildSettings {
        heldout: 0.2,
        ..all(&read)
    };
    make(&read, &at("c"), &settings).unwrap();
    let bytes = std::fs::read(at("c")).unwrap();
    let open = |bytes: &[u8]| {
        std::fs::write(at("damaged"), bytes).unwrap();
        Corpus::open(&at("damaged"))
            .map(drop)
            .map_err(|error| error.to_string())
    };
    assert_eq!(open(&bytes), Ok(()));
    for length in (0..bytes.len()).step_by(7) {
        let error = open(&bytes[..length]).unwrap_err();
        assert!(
            error.contains("truncated") || error.contains("not a corpus"),
            "{length}: {error}"
        );
    }
    for i in (0..bytes.len()).step_by(3) {
        let mut damaged = bytes.clone();
        damaged[i] ^= 1 << (i % 8);
        let error = open(&damaged).unwrap_err();
        let said = ["truncated", "not a corpus", "damaged", "version"]
            .iter()
            .any(|word| error.contains(word));
        assert!(said, "{i}: {error}");
    }
    let error = Corpus::open(&at("t.txt")).unwrap_err().to_string();
    assert!(
        error.contains("not a corpus") && error.contains("topics build"),
        "{error}"
    );
}

#[test]
fn new_documents_are_read_in_old_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    std::fs::write(
        &path,
        "{\"key\": 7, \"text\": \"beta unknown alpha beta\"}\n{\"key\": \"x\", \"text\": \"nothing\"}\n",
    )
    .unwrap();
    let read = sources(&[path], |s| s.id = Some("key".into())).unwrap();
    let words = ["beta".to_owned(), "alpha".to_owned()];
    let mut found = Vec::new();
    let skipped = stream(&read, &words, &Tokeniser::default(), |documents| {
        found.extend(documents);
        Ok::<(), DataError>(())
    })
    .unwrap();
    assert_eq!(skipped.empty, 1);
    assert_eq!(
        (
            found[0].document.terms.as_slice(),
            found[0].document.counts.as_slice()
        ),
        (&[0, 1][..], &[2, 1][..])
    );
    assert_eq!((found[0].unknown, found[0].id.as_deref()), (1, Some("7")));
    assert_eq!(
        (found[1].number, found[1].unknown, found[1].id.as_deref()),
        (2, 1, Some("x"))
    );

    // If the words of a corpus are given, their order is kept.
    let settings = BuildSettings {
        fixed: Some(words.to_vec()),
        ..BuildSettings::new(&read)
    };
    let (corpus, built) = make(&read, &folder.path().join("c"), &settings).unwrap();
    assert_eq!(corpus.words(), words);
    assert_eq!(
        (built.documents, built.tokens, built.tokens_left_out),
        (1, 3, 2)
    );
}

#[test]
fn lists_of_words_are_taken_as_they_are_and_no_document_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    let lines = [
        r#"{"key": "a", "text": ["New York", "C++", "of", "C++"]}"#,
        r#"{"key": "b", "text": [1, 2]}"#,
        r#"{"key": "c"}"#,
        r#"{"key": "d", "text": []}"#,
        r#"{"key": "e", "text": "c++ new"}"#,
    ];
    std::fs::write(&path, lines.join("\n")).unwrap();
    let read = sources(&[path], |s| s.id = Some("key".into())).unwrap();
    let words = ["C++".to_owned(), "New York".to_owned(), "c++".to_owned()];
    let tokeniser = Tokeniser {
        keep: vec![Extra::Symbols],
        ..Tokeniser::default()
    };
    let mut found = Vec::new();
    let skipped = stream(&read, &words, &tokeniser, |documents| {
        found.extend(documents);
        Ok::<(), DataError>(())
    })
    .unwrap();
    assert_eq!((skipped.empty, skipped.without_text), (1, 2));
    let ids: Vec<&str> = found.iter().filter_map(|new| new.id.as_deref()).collect();
    assert_eq!(ids, ["a", "b", "c", "d", "e"]);
    let terms: Vec<&[u32]> = found.iter().map(|new| &new.document.terms[..]).collect();
    assert_eq!(terms, [&[0, 1][..], &[], &[], &[], &[2]]);
    assert_eq!(found[0].document.counts, [2, 1]);

    let (corpus, built) = make(&read, &folder.path().join("c"), &all(&read)).unwrap();
    assert_eq!((built.documents, built.skipped.without_text), (2, 2));
    assert!(corpus.words().contains(&"New York".to_owned()));
}

#[test]
fn line_ends_in_listed_words_leave_the_corpus_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    std::fs::write(&path, r#"{"text": ["a\nb", "c", "d\r"]}"#).unwrap();
    let read = sources(&[path], |_| {}).unwrap();
    let (corpus, _) = make(&read, &folder.path().join("c"), &all(&read)).unwrap();
    assert_eq!(corpus.words(), ["a b", "c", "d "]);
}

/// Returns texts in which `york` often follows `new` and `city` often follows `new york`, among random words.
fn texts_with_phrases(count: usize) -> Vec<String> {
    let mut texts = texts(count);
    for (i, text) in texts.iter_mut().enumerate() {
        *text += match i % 10 {
            0..4 => " new york city",
            4..6 => " new york",
            6 => " new",
            _ => " of the",
        };
    }
    texts
}

fn learning(sources: &Sources, longest: usize, score: f64) -> BuildSettings {
    BuildSettings {
        phrases: Some(PhraseSettings { longest, score }),
        vocabulary: VocabularySettings {
            min_df: Frequency::Documents(5),
            max_df: Frequency::Share(1.0),
            ..VocabularySettings::text()
        },
        ..BuildSettings::new(sources)
    }
}

#[test]
fn phrases_are_learnt_from_pairs_that_chance_does_not_explain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.txt");
    let texts = texts_with_phrases(2000);
    std::fs::write(&path, texts.join("\n")).unwrap();
    let read = sources(&[path], |_| {}).unwrap();
    let phrases_of = |longest: usize, score: f64| {
        let settings = learning(&read, longest, score);
        let (corpus, built) = make(&read, &folder.path().join("c"), &settings).unwrap();
        let words = corpus.words().iter().filter(|word| word.contains('_'));
        (words.cloned().collect::<Vec<_>>(), built.phrases, corpus)
    };
    // `york city` is a phrase too, but its first word always belongs to `new york`. Stop words such as
    // `of` and `the` form no phrases. The other words are independent of each other, so they form none either.
    let (two, count, _) = phrases_of(2, 0.5);
    assert_eq!((two, count), (vec!["new_york".to_owned()], 2));
    let (three, count, corpus) = phrases_of(3, 0.5);
    assert_eq!((three.len(), count), (2, 3));
    let term = |word: &str| corpus.words().iter().position(|w| w == word);
    assert!(term("new_york_city").is_some() && term("new").is_some() && term("york").is_none());
    // The normalised mutual information of the pair, computed from the texts.
    let tokens: usize = texts.iter().map(|text| text.split(' ').count()).sum();
    let count = |word: &str| {
        let words = texts.iter().flat_map(|text| text.split(' '));
        words.filter(|w| *w == word).count() as f64
    };
    // `york` follows `new` whenever it occurs.
    let (new, york, total) = (count("new"), count("york"), tokens as f64);
    let npmi = f64::ln(total / new) / f64::ln(total / york);
    assert_eq!(phrases_of(2, npmi + 1e-9).1, 0);
    assert_eq!(phrases_of(2, npmi - 1e-9).1, 1);

    // New documents are read with the phrases of the corpus, in text and in lists of words.
    let stored = corpus.record()["tokeniser"].clone();
    let tokeniser: Tokeniser = serde_json::from_value(stored).unwrap();
    let path = folder.path().join("new.jsonl");
    let lines = [
        r#"{"text": "New York city of New York"}"#,
        r#"{"text": ["new", "york", "city"]}"#,
        r#"{"text": ["york", "new"]}"#,
    ];
    std::fs::write(&path, lines.join("\n")).unwrap();
    let mut found = Vec::new();
    let new = sources(&[path], |_| {}).unwrap();
    stream(&new, corpus.words(), &tokeniser, |documents| {
        found.extend(
            documents
                .into_iter()
                .map(|new| (new.document.terms, new.unknown)),
        );
        Ok::<(), DataError>(())
    })
    .unwrap();
    let terms = |words: &[&str]| {
        let mut terms: Vec<u32> = words.iter().map(|w| term(w).unwrap() as u32).collect();
        terms.sort_unstable();
        terms
    };
    assert_eq!(found[0], (terms(&["new_york_city", "new_york"]), 1));
    assert_eq!(found[1], (terms(&["new_york_city"]), 0));
    assert_eq!(found[2], (terms(&["new"]), 1));
}

#[test]
fn phrases_do_not_depend_on_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.txt");
    std::fs::write(&path, texts_with_phrases(5000).join("\n")).unwrap();
    let read = sources(&[path], |_| {}).unwrap();
    // The score is so low, and the table so small, that chance and the limit of the table affect the phrases.
    let settings = BuildSettings {
        table: 3000,
        ..learning(&read, 4, 0.05)
    };
    let bytes = |threads: usize| {
        let out = folder.path().join(threads.to_string());
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let built = pool
            .unwrap()
            .install(|| make(&read, &out, &settings))
            .unwrap();
        assert!(built.1.phrases > 10, "{}", built.1.phrases);
        std::fs::read(out).unwrap()
    };
    assert_eq!(bytes(1), bytes(3));
}

#[test]
fn an_interrupted_build_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.txt");
    std::fs::write(&path, "one two\n").unwrap();
    let read = sources(&[path], |_| {}).unwrap();
    let out = folder.path().join("c");
    let error = build(&read, &out, &all(&read), &mut |at| at.pass == Pass::Words).unwrap_err();
    assert!(error.to_string().contains("interrupted"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

fn files_of(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read(&path).unwrap())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn a_corpus_in_pieces_has_the_bytes_of_one_that_is_divided() {
    use jensen_data::corpus::apart::{Workshop, build_apart};

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    // Every line contains a few common words, and every file contains forty words that occur in no other file.
    let letter = |i: usize| char::from(b'a' + (i % 26) as u8);
    let line = |file: usize, i: usize| {
        let common = (0..8).map(|j| format!("all{}", letter(j)));
        let rare = (0..5 + i % 4).map(|j| {
            let k = (i * i + 7 * j) % 40;
            format!("in{}{}{}", letter(file), letter(k), letter(k / 26))
        });
        common.chain(rare).collect::<Vec<_>>().join(" ") + "\n"
    };
    let mut texts = Vec::new();
    for (number, size) in [130, 0, 1, 77].into_iter().enumerate() {
        texts.push(path(&format!("text{number}.txt")));
        let lines: String = (0..size).map(|i| line(number, i)).collect();
        std::fs::write(&texts[number], lines).unwrap();
    }
    // Both files of bags use the same list of words, in which one word occurs twice.
    let bags = [path("a.dat"), path("b.dat")];
    std::fs::write(&bags[0], "2 0:1 3:2\n1 1:4\n".repeat(20)).unwrap();
    std::fs::write(&bags[1], "3 0:1 2:2 4:1\n1 3:1\n".repeat(9)).unwrap();
    std::fs::write(path("vocab.txt"), "one\ntwo\nthree\ntwo\nfive\n").unwrap();
    for (inputs, table, phrases) in [
        (&texts[..], 1_000_000, false),
        (&texts[..], 1_000_000, true),
        (&texts[..], 300, true),
        // The limits are smaller than the number of words in one file, or in all files together.
        (&texts[..], 20, false),
        (&texts[..], 60, false),
        (&bags[..], 1_000_000, false),
    ] {
        let sources = Sources::new(inputs, &SourceSettings::default()).unwrap();
        let mut settings = BuildSettings::new(&sources);
        settings.vocabulary.max_df = Frequency::Share(1.0);
        settings.vocabulary.min_df = Frequency::Documents(2);
        settings.phrases = phrases.then_some(PhraseSettings {
            longest: 4,
            score: 0.3,
        });
        (settings.heldout, settings.seed, settings.table) = (0.2, 3, table);
        let whole = path("whole.corpus");
        let built = build(&sources, &whole, &settings, &mut |_| true).unwrap();
        assert_eq!(built.uncertain_below > 0, table <= 60);
        assert_eq!(built.phrases > 0, phrases);
        for shards in [1, 3, 8] {
            let (divided, apart) = (path("divided"), path("apart"));
            Corpus::open(&whole)
                .unwrap()
                .divide(&divided, shards)
                .unwrap();
            let workshop = Workshop {
                sources: &sources,
                settings: &settings,
                out: &apart,
            };
            let found = build_apart(&workshop, shards, &mut |choice, tasks| {
                // The tasks run in reverse order.
                let mut answers: Vec<_> = tasks
                    .iter()
                    .rev()
                    .map(|task| workshop.step(choice, task))
                    .collect();
                answers.reverse();
                answers
                    .into_iter()
                    .collect::<Result<_, _>>()
                    .map_err(|error: DataError| error.to_string())
            });
            assert_eq!(found.unwrap(), built);
            assert_eq!(files_of(&apart), files_of(&divided));
            std::fs::remove_dir_all(divided).unwrap();
            std::fs::remove_dir_all(apart).unwrap();
        }
        std::fs::remove_file(whole).unwrap();
    }
}
