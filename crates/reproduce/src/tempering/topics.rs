//! Figure 2 shows topic models that were fitted under each temperature policy.

use std::path::PathBuf;

use jensen::conjugate::documents::Documents;
use jensen::conjugate::lda::{self, LdaFit, LdaJob, LdaSettings, Topics};
use jensen::conjugate::temper::Temper;
use jensen::data::corpus::sources::SourceSettings;
use jensen::data::corpus::{BuildSettings, Corpus, Format, Sources, Split, build};
use jensen::math::order::median;
use jensen::math::simd::Simd;
use jensen::report::figure::{Axis, Chart, Figure, Series};
use jensen::run::{Budget, Control, Record, Status};
use jensen::topics::CorpusDocuments;
use serde::{Deserialize, Serialize};

use super::policies::{AGAIN, ALL, COLD, FITTED, STARTS, Subset, WARM, policies};
use crate::context::Context;
use crate::failure::Failure;
use crate::results::{Ours, Scale, What};

pub(super) const TOPICS: usize = 500;

const SCORES: f64 = 10.0;

pub(super) struct Experiment {
    name: &'static str,
    title: &'static str,
    /// The number of passes at the quick scale, followed by the number at the scale of the paper.
    passes: [f64; 2],
    /// The lengths of the schedules in passes, at the quick scale and at the scale of the paper.
    schedules: [[f64; 3]; 2],
    /// The maximum number of passes until the temperature reaches 1 in runs with a cooling phase.
    cooling: f64,
    heldout: f64,
}

/// The experiment on abstracts from arXiv. The paper uses 640 000 abstracts, but this reproduction trains on 99 000.
/// One pass in the paper therefore consists of as many steps as 6.4 passes in this reproduction.
pub(super) const ARXIV: Experiment = Experiment {
    name: "arxiv",
    title: "arXiv abstracts",
    passes: [1.0, 6.5],
    schedules: [[0.01, 0.1, 1.0], [0.064, 0.64, 6.4]],
    cooling: 0.5,
    heldout: 0.01,
};

/// The experiment on news of the Associated Press. The corpus contains 2246 documents, so a hundredth of a pass would
/// be less than one minibatch. The schedules are therefore ten times as long as in the paper.
const AP: Experiment = Experiment {
    name: "ap",
    title: "Associated Press",
    passes: [20.0; 2],
    schedules: [[0.1, 1.0, 10.0]; 2],
    cooling: 5.0,
    heldout: 0.1,
};

#[derive(Clone, Serialize, Deserialize)]
struct Run {
    score: f64,
    standard_error: f64,
    elbo: f64,
    /// The ELBO of the tempered model, or `None` if no global temperature is inferred.
    tempered: Option<f64>,
    tokens: f64,
    /// The score in nats per word after several numbers of passes.
    scores: Vec<(f64, f64)>,
    /// The temperature after several numbers of passes.
    temperatures: Vec<(f64, f64)>,
}

/// Draws Figure 2 for the abstracts of papers.
pub fn arxiv(context: &mut Context<'_>) -> Result<(), Failure> {
    let path = context.data("arxiv/abstracts-100k.jsonl.xz")?;
    experiment(context, &ARXIV, &[path], SourceSettings::default(), ALL)
}

/// Draws Figure 2 for the news corpus. The third corpus of the paper is not available, so this public corpus is used
/// instead.
pub fn ap(context: &mut Context<'_>) -> Result<(), Failure> {
    news(context, ALL)
}

/// Runs variational tempering on the news corpus from both starts and with the paper's log C. The function also runs
/// the methods with which the paper compares it.
pub fn starts(context: &mut Context<'_>) -> Result<(), Failure> {
    news(context, STARTS)
}

fn news(context: &mut Context<'_>, subset: Subset) -> Result<(), Failure> {
    let path = context.data("ap/ap.dat.gz")?;
    let settings = SourceSettings {
        format: Some(Format::Ldac),
        vocabulary: Some(context.data("ap/vocab.txt")?),
        ..SourceSettings::default()
    };
    experiment(context, &AP, &[path], settings, subset)
}

const GIVEN: Experiment = Experiment {
    name: "given",
    title: "the given corpus",
    ..ARXIV
};

/// Draws Figure 2 for the corpus that the user passes to `--corpus`.
pub fn given(context: &mut Context<'_>) -> Result<(), Failure> {
    match context.corpus() {
        Some(path) => experiment(context, &GIVEN, &[path], SourceSettings::default(), ALL),
        None => context.not_run(
            What::new("held-out log predictive of a given corpus", "nats/word"),
            "--corpus FILE names it: the UCI repository has 300 000 articles of the New York Times as docword.nytimes.txt.gz with \
             vocab.nytimes.txt, and Wikipedia's articles come from its own dumps, one JSON object a line",
        ),
    }
}

type Pairs = Vec<(f64, f64)>;

fn middle(curves: &[&[(f64, f64)]]) -> (Pairs, Pairs) {
    let points = curves.iter().map(|curve| curve.len()).min().unwrap_or(0);
    (0..points)
        .map(|i| {
            let values: Vec<f64> = curves.iter().map(|curve| curve[i].1).collect();
            let range = values
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &v| {
                    (a.min(v), b.max(v))
                });
            ((curves[0][i].0, median(&values)), range)
        })
        .unzip()
}

fn experiment(
    context: &mut Context<'_>,
    experiment: &Experiment,
    paths: &[PathBuf],
    settings: SourceSettings,
    subset: Subset,
) -> Result<(), Failure> {
    let corpus = corpus(context, experiment, paths, &settings)?;
    let seeds: u64 = context.pick(1, 3);
    // The runs are sorted by seed, so that a reproduction that was stopped has comparable results for all policies.
    let documents = CorpusDocuments::new(&corpus, Split::Train).len();
    let per_pass = documents.div_ceil(LdaSettings::new(TOPICS).batch) as u64;
    let schedules = experiment.schedules[usize::from(context.scale() == Scale::Paper)];
    let policies = policies(schedules, experiment.cooling, per_pass);
    let policies: Vec<(usize, (String, Temper))> = policies
        .into_iter()
        .enumerate()
        .filter(|(_, (name, _))| subset.contains(name, schedules[2]))
        .collect();
    let mut runs: Vec<Vec<Run>> = policies.iter().map(|_| Vec::new()).collect();
    for seed in 0..seeds {
        for ((number, (name, temper)), runs) in policies.iter().zip(&mut runs) {
            let kept = format!("{}/{number}-{seed}", experiment.name);
            runs.push(context.keep(&kept, |context| {
                context.say(format!("{}: {name}, seed {seed}", experiment.title));
                let begins = match name.as_str() {
                    FITTED | AGAIN => {
                        Some(fit(context, &corpus, experiment, &Temper::None, seed, None)?.0)
                    }
                    _ => None,
                };
                let start = begins.as_ref().map(|fitted| &fitted.topics);
                run(context, &corpus, experiment, temper, seed, start)
            })?);
        }
    }
    for ((_, (name, _)), of_policy) in policies.iter().zip(&runs) {
        let plain = (name != "SVI").then_some(runs[0].as_slice());
        rows(context, experiment, name, of_policy, plain)?;
    }
    let names: Vec<(usize, &str)> = policies
        .iter()
        .map(|(number, (name, _))| (*number, name.as_str()))
        .collect();
    let ends = [WARM, COLD].map(|end| names.iter().position(|(_, name)| *name == end));
    if let [Some(warm), Some(cold)] = ends {
        let pairs = runs[warm].iter().zip(&runs[cold]);
        let better: Vec<Run> = pairs
            .map(|(warm, cold)| match warm.tempered > cold.tempered {
                true => warm.clone(),
                false => cold.clone(),
            })
            .collect();
        let plain = Some(runs[0].as_slice());
        rows(context, experiment, "VT", &better, plain)?;
        for end in [warm, cold] {
            tempered_row(context, experiment, names[end].1, &runs[end])?;
        }
    }
    if let Some(fitted) = names.iter().position(|(_, name)| *name == FITTED) {
        tempered_row(context, experiment, FITTED, &runs[fitted])?;
    }
    let figure = figure(experiment, &names, &runs);
    context.figure(&format!("{}-{}", subset.figure, experiment.name), &figure)
}

pub(super) fn corpus(
    context: &mut Context<'_>,
    experiment: &Experiment,
    paths: &[PathBuf],
    settings: &SourceSettings,
) -> Result<Corpus, Failure> {
    let path = context.scratch(&format!("{}.corpus", experiment.name))?;
    if !Corpus::is_corpus(&path) {
        context.say(format!("building the corpus of {}", experiment.title));
        let sources = Sources::new(paths, settings)?;
        let build_settings = BuildSettings {
            heldout: experiment.heldout,
            ..BuildSettings::new(&sources)
        };
        build(&sources, &path, &build_settings, &mut |_| true)?;
    }
    Ok(Corpus::open(&path)?)
}

fn rows(
    context: &mut Context<'_>,
    experiment: &Experiment,
    name: &str,
    runs: &[Run],
    plain: Option<&[Run]>,
) -> Result<(), Failure> {
    let what = |measure: &str, unit: &str| {
        What::new(format!("{}: {measure}, {name}", experiment.title), unit)
    };
    let finals: Vec<f64> = runs.iter().map(|run| run.score).collect();
    let errors: Vec<f64> = runs.iter().map(|run| run.standard_error).collect();
    context.row(what("held-out log predictive", "nats/word"), |_| {
        let (mean, middle, se) = (Ours::mean_of(&finals), median(&finals), median(&errors));
        Ok(match runs {
            [_] => Ours::value(middle)
                .se(se)
                .note("error over documents"),
            _ => mean.note(format!(
                "mean and its error over seeds; median {middle:.4}; error over documents {se:.4}, which all methods share"
            )),
        })
    })?;
    let measures = [
        ("score", "nats/word", (|run| run.score) as fn(&Run) -> f64),
        ("bound at T = 1", "nats/token", |run| run.elbo / run.tokens),
    ];
    for (measure, unit, of) in measures {
        let Some(plain) = plain else { break };
        // For each seed, the ELBO is estimated from a different sample of documents. The gains are therefore computed
        // for each seed separately.
        let pairs = runs.iter().zip(plain);
        let gains: Vec<f64> = pairs.map(|(run, plain)| of(run) - of(plain)).collect();
        context.row(
            what(&format!("gain in the {measure} over SVI"), unit),
            |_| {
                Ok(Ours::mean_of(&gains)
                    .note(format!("seed by seed; median {:.4}", median(&gains))))
            },
        )?;
    }
    let bounds: Vec<f64> = runs.iter().map(|run| run.elbo / run.tokens).collect();
    context.row(what("bound at T = 1", "nats/token"), |_| {
        Ok(Ours::mean_of(&bounds))
    })?;
    Ok(())
}

fn tempered_row(
    context: &mut Context<'_>,
    experiment: &Experiment,
    name: &str,
    runs: &[Run],
) -> Result<(), Failure> {
    let bounds = runs
        .iter()
        .map(|run| run.tempered.unwrap_or(f64::NAN) / run.tokens);
    let bounds: Vec<f64> = bounds.collect();
    let last = runs.iter().filter_map(|run| run.temperatures.last());
    let last: Vec<String> = last.map(|(_, t)| format!("{t:.2}")).collect();
    let title = experiment.title;
    let what = What::new(
        format!("{title}: bound of the tempered model, {name}"),
        "nats/token",
    );
    context.row(what, |_| {
        Ok(Ours::mean_of(&bounds).note(format!("temperatures at the end: {}", last.join(", "))))
    })?;
    Ok(())
}

fn figure(experiment: &Experiment, names: &[(usize, &str)], runs: &[Vec<Run>]) -> Figure {
    let mut scores = Chart::new(format!("{}: held-out log predictive", experiment.title))
        .x(Axis::new("passes"))
        .y(Axis::new("nats/word"));
    let mut temperatures = Chart::new("Temperature")
        .x(Axis::new("passes"))
        .y(Axis::new("T").log());
    for (&(number, name), runs) in names.iter().zip(runs) {
        // A policy with a cooling phase has the same colour as the policy without it.
        let cooled = name.ends_with("cooled");
        let colour = match name {
            // The schedule with this colour is not in the figure.
            FITTED => 1,
            _ if number >= 6 => number - 2,
            _ => number,
        };
        let line = |curves: Vec<&[(f64, f64)]>, band: bool| {
            let (curve, range) = middle(&curves);
            let line = Series::line(name.to_owned(), curve).colour(colour);
            let line = if cooled { line.dashed() } else { line };
            if band && runs.len() > 1 {
                line.band(range)
            } else {
                line
            }
        };
        let of_scores = runs.iter().map(|run| run.scores.as_slice()).collect();
        scores = scores.series(line(of_scores, true));
        let of_temperatures = runs.iter().map(|run| run.temperatures.as_slice()).collect();
        temperatures = temperatures.series(line(of_temperatures, false));
    }
    Figure::new("").panel(scores).panel(temperatures)
}

/// Fits topics, from `start` if it is given, and returns the fit with its trace.
fn fit(
    context: &mut Context<'_>,
    corpus: &Corpus,
    experiment: &Experiment,
    temper: &Temper,
    seed: u64,
    start: Option<&Topics>,
) -> Result<(LdaFit, Vec<Record>), Failure> {
    let (train, heldout) = (
        CorpusDocuments::new(corpus, Split::Train),
        CorpusDocuments::new(corpus, Split::Heldout),
    );
    let passes = context.pick(experiment.passes[0], experiment.passes[1]);
    let job = LdaJob {
        documents: &train,
        heldout: Some(&heldout),
        scored: usize::MAX,
        start,
        settings: LdaSettings {
            passes,
            seed,
            temper: temper.clone(),
            evaluations_per_pass: SCORES / passes,
            ..LdaSettings::new(TOPICS)
        },
        simd: Simd::detect(),
        data_hash: corpus.digest().to_owned(),
    };
    let mut records: Vec<Record> = Vec::new();
    let begun = crate::now();
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
    Ok((fitted, records))
}

fn run(
    context: &mut Context<'_>,
    corpus: &Corpus,
    experiment: &Experiment,
    temper: &Temper,
    seed: u64,
    start: Option<&Topics>,
) -> Result<Run, Failure> {
    let (fitted, records) = fit(context, corpus, experiment, temper, seed, start)?;
    let score = (fitted.completion)
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
        tempered: fitted.rests.first().map(|rest| rest.tempered_elbo),
        tokens: CorpusDocuments::new(corpus, Split::Train).tokens(),
        scores: curve("heldout_log_predictive"),
        temperatures: temperatures.into_iter().step_by(step).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_meet_in_their_medians() {
        let curves: [&[(f64, f64)]; 3] = [
            &[(1.0, 5.0), (2.0, 1.0)],
            &[(1.0, 3.0), (2.0, 9.0)],
            &[(1.0, 4.0), (2.0, 2.0), (3.0, 0.0)],
        ];
        let (curve, range) = middle(&curves);
        assert_eq!(curve, [(1.0, 4.0), (2.0, 2.0)]);
        assert_eq!(range, [(3.0, 5.0), (1.0, 9.0)]);
    }
}
