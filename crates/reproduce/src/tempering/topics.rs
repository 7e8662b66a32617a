//! Figure 2: topic models under every policy.

use std::path::PathBuf;
use std::time::Instant;

use jensen::conjugate::lda::{self, LdaJob, LdaSettings};
use jensen::conjugate::temper::{GlobalTempering, LocalTempering, Temper};
use jensen::data::corpus::sources::SourceSettings;
use jensen::data::corpus::{BuildSettings, Corpus, Format, Part, Sources, build};
use jensen::math::simd::Simd;
use jensen::report::figure::{Axis, Chart, Figure, Series};
use jensen::run::{Budget, Control, Record, Status};
use jensen::topics::CorpusDocuments;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::failure::Failure;
use crate::results::{Ours, Scale, What};

/// Number of topics.
const TOPICS: usize = 500;

/// A corpus and how long it is learned from.
struct Study {
    name: &'static str,
    title: &'static str,
    /// Passes at the quick and the paper's scale.
    passes: (f64, f64),
    /// Lengths of annealing schedules, in passes.
    schedules: [f64; 3],
    /// Share of the documents that are held out.
    heldout: f64,
}

const ARXIV: Study = Study {
    name: "arxiv",
    title: "arXiv abstracts",
    passes: (1.0, 3.0),
    schedules: [0.01, 0.1, 1.0],
    heldout: 0.01,
};

/// A hundredth of a pass over 2 246 documents is less than a minibatch; the schedules are ten times as long.
const AP: Study = Study {
    name: "ap",
    title: "Associated Press",
    passes: (20.0, 60.0),
    schedules: [0.1, 1.0, 10.0],
    heldout: 0.1,
};

/// What one run leaves.
#[derive(Serialize, Deserialize)]
struct Run {
    score: f64,
    standard_error: f64,
    elbo: f64,
    seconds: f64,
    /// (pass, nats a word).
    scores: Vec<(f64, f64)>,
    /// (pass, temperature).
    temperatures: Vec<(f64, f64)>,
}

/// Figure 2, abstracts of papers.
pub fn arxiv(context: &mut Context<'_>) -> Result<(), Failure> {
    let path = context.data("arxiv/abstracts-100k.jsonl.xz")?;
    study(context, &ARXIV, &[path], SourceSettings::default())
}

/// Figure 2, news. The paper's third corpus is not at hand; this one is public.
pub fn ap(context: &mut Context<'_>) -> Result<(), Failure> {
    let path = context.data("ap/ap.dat.gz")?;
    let settings = SourceSettings {
        format: Some(Format::Ldac),
        vocabulary: Some(context.data("ap/vocab.txt")?),
        ..SourceSettings::default()
    };
    study(context, &AP, &[path], settings)?;
    context.not_run(
        What::new(
            "New York Times and Wikipedia: held-out log predictive",
            "nats/word",
        ),
        "the corpora are not free to download",
    )
}

/// The policies of the figure, by name.
fn policies(study: &Study) -> Vec<(String, Temper)> {
    let mut policies = vec![("SVI".to_owned(), Temper::None)];
    for passes in study.schedules {
        policies.push((format!("AVI, {passes} passes"), Temper::anneal(passes)));
    }
    policies.push((
        "VT, T to 10".to_owned(),
        Temper::Global(GlobalTempering::default()),
    ));
    let narrow = GlobalTempering {
        hottest: 2.0,
        ..GlobalTempering::default()
    };
    policies.push(("VT, T to 2".to_owned(), Temper::Global(narrow)));
    policies.push(("LVT".to_owned(), Temper::Local(LocalTempering::default())));
    policies
}

fn study(
    context: &mut Context<'_>,
    study: &Study,
    paths: &[PathBuf],
    settings: SourceSettings,
) -> Result<(), Failure> {
    let place = context.scratch(&format!("{}.corpus", study.name))?;
    if !Corpus::is_corpus(&place) {
        context.say(format!("building the corpus of {}", study.title));
        let sources = Sources::new(paths, &settings)?;
        let build_settings = BuildSettings {
            heldout: study.heldout,
            ..BuildSettings::new(&sources)
        };
        build(&sources, &place, &build_settings, &mut |_| true)?;
    }
    let corpus = Corpus::open(&place)?;
    let seeds: u64 = context.pick(1, 3);
    let mut scores = Chart::new(format!("{}: held-out log predictive", study.title))
        .x(Axis::new("passes"))
        .y(Axis::new("nats/word"));
    let mut temperatures = Chart::new("Temperature")
        .x(Axis::new("passes"))
        .y(Axis::new("T").log());
    for (number, (name, temper)) in policies(study).into_iter().enumerate() {
        let mut runs = Vec::new();
        for seed in 0..seeds {
            let kept = format!("{}/{number}-{seed}", study.name);
            runs.push(context.keep(&kept, |context| {
                context.say(format!("{}: {name}, seed {seed}", study.title));
                run(context, &corpus, study, &temper, seed)
            })?);
        }
        let finals: Vec<f64> = runs.iter().map(|run| run.score).collect();
        let seconds: f64 = runs.iter().map(|run| run.seconds).sum::<f64>() / seeds as f64;
        let note = format!("{seconds:.1} seconds, scores included");
        let what = What::new(
            format!("{}: held-out log predictive, {name}", study.title),
            "nats/word",
        );
        context.row(what, |_| {
            Ok(match runs.as_slice() {
                [one] => Ours::value(one.score)
                    .se(one.standard_error)
                    .note(format!("{note}; error over documents")),
                _ => Ours::mean_of(&finals).note(note),
            })
        })?;
        let bounds: Vec<f64> = runs.iter().map(|run| run.elbo).collect();
        let what = What::new(format!("{}: bound at T = 1, {name}", study.title), "nats");
        context.row(what, |_| Ok(Ours::mean_of(&bounds)))?;
        // The curve of the run whose end is the median.
        let mut order: Vec<usize> = (0..runs.len()).collect();
        order.sort_by(|a, b| finals[*a].total_cmp(&finals[*b]));
        let median = &runs[order[runs.len() / 2]];
        let line = |points: &[(f64, f64)]| {
            Series::line(name.clone(), points.iter().copied()).colour(number)
        };
        scores = scores.series(line(&median.scores));
        temperatures = temperatures.series(line(&median.temperatures));
    }
    let figure = Figure::new("").panel(scores).panel(temperatures);
    context.figure(&format!("figure2-{}", study.name), &figure)
}

fn run(
    context: &mut Context<'_>,
    corpus: &Corpus,
    study: &Study,
    temper: &Temper,
    seed: u64,
) -> Result<Run, Failure> {
    let (train, heldout) = (
        CorpusDocuments::new(corpus, Part::Train),
        CorpusDocuments::new(corpus, Part::Heldout),
    );
    let passes = match context.scale() {
        Scale::Quick => study.passes.0,
        Scale::Paper => study.passes.1,
    };
    let job = LdaJob {
        documents: &train,
        heldout: Some(&heldout),
        start: None,
        settings: LdaSettings {
            passes,
            seed,
            temper: temper.clone(),
            evaluations_per_pass: 10.0 / passes.min(10.0),
            ..LdaSettings::new(TOPICS)
        },
        simd: Simd::detect(),
        data_hash: corpus.digest().to_owned(),
    };
    let mut records: Vec<Record> = Vec::new();
    let begun = Instant::now();
    let clock = || begun.elapsed().as_secs_f64();
    let mut control = Control::new(Budget::iterations(u64::MAX), &clock, &mut records);
    control.cancel = context.cancel();
    let outcome =
        lda::fit(&job, &mut control).map_err(|error| Failure::Method(error.to_string()))?;
    if let Status::Interrupted { .. } = outcome.status {
        return Err(Failure::Stopped);
    }
    let fitted = outcome
        .output
        .ok_or_else(|| Failure::Method(outcome.status.to_string()))?;
    let score = fitted
        .heldout
        .ok_or_else(|| Failure::Method("no document was held out".to_owned()))?;
    let curve = |name: &str| -> Vec<(f64, f64)> {
        let number = |record: &Record, name: &str| record.fields.get(name).and_then(|x| x.as_f64());
        records
            .iter()
            .filter_map(|record| Some((number(record, "pass")?, number(record, name)?)))
            .collect()
    };
    let temperatures = curve("temperature");
    let step = temperatures.len().div_ceil(400).max(1);
    Ok(Run {
        score: score.log_predictive,
        standard_error: score.standard_error,
        elbo: fitted.elbo,
        seconds: records.last().map_or(0.0, |record| record.seconds),
        scores: curve("heldout_log_predictive"),
        temperatures: temperatures.into_iter().step_by(step).collect(),
    })
}
