//! Tests of fit jobs on data in memory. The fits must equal those of jobs on files, and their global parameters can be
//! used to evaluate other points.
#![cfg(feature = "full")]

use jensen::conjugate::documents::{Bag, MemoryDocuments};
use jensen::data::corpus::sources::SourceSettings;
use jensen::data::corpus::{BuildSettings, Corpus, Sources, Split, build};
use jensen::data::{Bytes, Cells, Column, Table};
use jensen::job::CountRange;
use jensen::latent::{
    LatentData, LatentRequest, LatentRun, PriorFiles, fit_latent, fit_latent_in_memory,
};
use jensen::points::{
    ChainsRequest, Emission, Globals, MixtureRequest, Parts, PointRequest, Points, explain_chains,
    fit_chains, fit_mixture,
};
use jensen::topics::stored::TopicsRun;
use jensen::topics::{Collection, TopicsRequest, fit_topics};

use crate::common::alone;

#[test]
fn topics_of_documents_in_memory_are_those_of_their_corpus() {
    let folder = tempfile::tempdir().unwrap();
    let (text, path) = (folder.path().join("a.txt"), folder.path().join("a.corpus"));
    let lines = ["cats purr and hiss", "dogs bark", "dogs growl at cats"];
    std::fs::write(&text, (lines.join("\n") + "\n").repeat(60)).unwrap();
    let sources = Sources::new(&[text], &SourceSettings::default()).unwrap();
    let mut settings = BuildSettings::new(&sources);
    settings.heldout = 0.0;
    settings.vocabulary.max_df = jensen::data::corpus::Frequency::Share(1.0);
    build(&sources, &path, &settings, &mut |_| true).unwrap();
    let corpus = Corpus::open(&path).unwrap();
    let mut documents = MemoryDocuments::new(corpus.terms());
    for index in 0..corpus.documents(Split::Train) {
        let mut bag = Bag::new();
        corpus.visit(Split::Train, index, |term, n| bag.push(term, n as f32));
        documents.push(&bag).unwrap();
    }
    let fitted = |collection: &Collection<'_>| {
        let run = TopicsRun {
            corpus: path.clone(),
            digest: String::new(),
            update: false,
            flags: TopicsRequest {
                topics: Some(CountRange::one(3)),
                batch: Some(16),
                passes: Some(2.0),
                ..TopicsRequest::default()
            },
        };
        let done = alone(|around| fit_topics(collection, run, None, 0.0, around)).unwrap();
        done.made.output.fit
    };
    let (file, memory) = (
        fitted(&Collection::of_corpus(&corpus)),
        fitted(&Collection::in_memory(documents)),
    );
    assert_eq!(file.topics, memory.topics);
    assert_eq!(file.elbo, memory.elbo);
}

#[test]
fn a_table_in_memory_is_fitted_as_its_file() {
    let x: Vec<f64> = (0..30).map(|i| f64::from(i) / 5.0).collect();
    let y: Vec<f64> = x.iter().map(|x| x.sin()).collect();
    let text: String = std::iter::once("x,y\n".to_owned())
        .chain(x.iter().zip(&y).map(|(x, y)| format!("{x},{y}\n")))
        .collect();
    let data = LatentData {
        name: "a.csv".to_owned(),
        bytes: Bytes::Held(text.into_bytes()),
    };
    let columns = [("x", x), ("y", y)];
    let columns = columns.map(|(name, values)| Column::new(name, Cells::Numbers(values)));
    let table = Table::new("memory", columns.to_vec()).unwrap();
    let flags = LatentRequest {
        likelihood: Some("gaussian(variance=0.01)".to_owned()),
        prior: Some("gp(rbf)".to_owned()),
        ..LatentRequest::default()
    };
    let run = LatentRun {
        data: data.name.clone(),
        files: Default::default(),
        flags: flags.clone(),
    };
    let files = PriorFiles::default();
    let file = alone(|around| fit_latent(run, &data, &files, around, |done| done.summary)).unwrap();
    let memory =
        alone(|around| fit_latent_in_memory(flags, &table, around, |done| done.summary)).unwrap();
    assert_eq!(file.bound, memory.bound);
    assert_eq!(file.hyperparameters, memory.hyperparameters);
    assert!(memory.judgement.trusted, "{:?}", memory.judgement.warnings);
}

#[test]
fn states_of_chains_are_reported_apart_and_found_in_other_rows() {
    let row = |t: u32| f64::from((t / 20) % 2) * 4.0 + f64::from(t % 5) * 0.1;
    let points = |rows: std::ops::Range<u32>| {
        let column = Column::new("x", Cells::Numbers(rows.map(row).collect()));
        let table = Table::new("memory", vec![column]).unwrap();
        Points::of_table(&table, &PointRequest::default()).unwrap()
    };
    let (train, fresh) = (points(0..120), points(10..40));
    let request = ChainsRequest {
        states: Some("2".parse().unwrap()),
        ..ChainsRequest::default()
    };
    let fit = |lengths: &[usize]| alone(|around| fit_chains(&request, &train, lengths, around));
    let error = fit(&[60, 50]).err().unwrap().to_string();
    assert!(
        error.contains("add up to 110, but there are 120"),
        "{error}"
    );
    let (made, summary) = fit(&[60, 60]).unwrap();
    assert!(summary.judgement.trusted);
    let Parts::Chain(chain) = &summary.parts else {
        panic!("{:?}", summary.parts)
    };
    assert!(
        chain
            .transitions
            .iter()
            .enumerate()
            .all(|(i, row)| row[i] > 0.9)
    );
    let globals = Globals::decode(&made.kept).unwrap();
    let seen = explain_chains(&request, &globals, &fresh, &[30]).unwrap();
    assert_eq!(seen.bounds.len(), 1);
    // Rows 10 to 19 have one level, and rows 20 to 39 have the other level.
    let level = |emission: &Emission| match emission {
        Emission::Gaussian { mean, .. } => mean[0],
        other => panic!("{other:?}"),
    };
    let high = usize::from(level(&chain.emissions[1]) > level(&chain.emissions[0]));
    for (t, states) in seen.assignments.chunks_exact(2).enumerate() {
        let expected = if t < 10 { 1 - high } else { high };
        assert!(states[expected] > 0.99, "row {t}: {states:?}");
    }
    let short = Globals {
        lambda: globals.lambda[1..].to_vec(),
        ..globals
    };
    let error = explain_chains(&request, &short, &fresh, &[30]).unwrap_err();
    assert!(error.to_string().contains("another model"), "{error}");
}

/// Jensen must reject covariance matrices of many columns before it allocates them, even if most of the columns are
/// copies that the model omits.
#[test]
fn covariances_of_many_columns_keep_to_the_memory() {
    let columns = (0..20_000).map(|column| {
        let cells = (0..4).map(|row| f64::from(column % 7 * row)).collect();
        Column::new(format!("c{column}"), Cells::Numbers(cells))
    });
    let table = Table::new("wide.csv", columns.collect()).unwrap();
    let points = Points::of_table(&table, &PointRequest::default()).unwrap();
    let request = MixtureRequest {
        components: Some("2".parse().unwrap()),
        ..MixtureRequest::default()
    };
    let refused = alone(|around| fit_mixture(&request, &points, around).map(|_| ()));
    let said = refused.unwrap_err().to_string();
    assert!(
        said.contains("2 covariance matrices of 20000 columns")
            && said.contains("--covariance diagonal"),
        "{said}"
    );
}
