//! The experiment that compares TrustVI with ADVI and HFSGVI (Regier, Jordan and McAuliffe, *Fast Black-box Variational
//! Inference through Stochastic Trust-Region Optimization*, 2017).
//!
//! The paper uses 183 programs from the example models of Stan, but this reproduction uses the model corpus of the
//! repository. The runtime of a method is the number of oracle calls that it makes until the ELBO of its iterates stays
//! above a threshold. In a comparison of two methods, the threshold is one nat below the lower of their final ELBOs. If
//! a method was run several times, the comparison uses the run with the median final ELBO.

use jensen::Problem;
use jensen::density::LogDensity;
use jensen::report::figure::{Axis, Chart, Figure, Series};

use crate::contest::{Cancel, Method, Path, follow};
use crate::context::Context;
use crate::corpus::{CORPUS, Entry};
use crate::experiment::{Experiment, Piece};
use crate::failure::Failure;
use crate::results::{Ours, Scale, What};
use crate::uncertainty;

/// The experiment on TrustVI, with all of its parts.
pub const EXPERIMENT: Experiment = Experiment {
    name: "trustvi",
    about: "TrustVI, ADVI and HFSGVI: optimisation paths, final bounds, oracle calls",
    data: "none: the models and their data are built in",
    parts: &[
        Piece {
            name: "figure1",
            about: "optimisation paths: Dyes, Birats, Electric, Radon",
            from: Scale::Quick,
            run: figure1,
        },
        Piece {
            name: "figure2",
            about: "optimisation paths: Alligators, Kid IQ, Log earnings, Seeds, Mt",
            from: Scale::Quick,
            run: figure2,
        },
        Piece {
            name: "advi",
            about: "TrustVI compared with ADVI over the corpus (section 5.1)",
            from: Scale::Quick,
            run: against_advi,
        },
        Piece {
            name: "printed",
            about: "Algorithm 1 as printed, compared with ADVI",
            from: Scale::Quick,
            run: printed_against_advi,
        },
        Piece {
            name: "hfsgvi",
            about: "TrustVI compared with HFSGVI over the corpus (section 5.2)",
            from: Scale::Quick,
            run: against_hfsgvi,
        },
        Piece {
            name: "once",
            about: "both comparisons over the whole corpus from one seed",
            from: Scale::Paper,
            run: once,
        },
        Piece {
            name: "uncertainty",
            about: "means and standard deviations, without and with linear response",
            from: Scale::Quick,
            run: uncertainty::run,
        },
    ],
};

/// The methods of the figures, in the order of their colours.
const METHODS: [Method; 4] = [
    Method::Advi,
    Method::Trust,
    Method::Hfsgvi,
    Method::PaperTrust,
];

/// The panels of Figure 1. Each panel has its caption in the paper and the name of a program in the corpus.
const FIGURE1: [(&str, &str); 4] = [
    ("Dyes", "dyes_variance_components"),
    ("Birats", "birats_inv_wishart"),
    ("Electric", "electric_pairs"),
    ("Radon, redundant", "radon_redundant"),
];
const FIGURE2: [(&str, &str); 6] = [
    ("Alligators", "alli_multinomial"),
    (
        "Kid IQ, centred interaction",
        "kidscore_interaction_conventional",
    ),
    ("Log earnings, log height", "logearn_logheight"),
    ("Seeds", "seeds_binomial"),
    ("Mt", "capture_recapture_mt"),
    ("Kid IQ, interaction", "kidscore_interaction"),
];

const QUICK_EVERY: usize = 8;

/// The tolerance for comparing final ELBOs, in nats. Two final ELBOs that differ by less are treated as equal.
const EQUAL: f64 = 1.0;

#[derive(Debug, Clone, PartialEq)]
struct Race {
    dim: usize,
    paths: Vec<Path>,
}

struct Job {
    entry: &'static Entry,
    method: Method,
    seed: u64,
}

/// Runs the methods on programs with `seeds` seeds each. Every run is stored separately. Several parts can therefore
/// use the same runs, and a reproduction that was stopped continues with the next run.
fn races(
    context: &mut Context<'_>,
    programs: &[&'static Entry],
    methods: &[Method],
    seeds: u64,
) -> Result<Vec<Race>, Failure> {
    let cancel = Cancel::of(context);
    let mut jobs = Vec::new();
    for &entry in programs {
        for &method in methods {
            jobs.extend((0..seeds).map(|seed| Job {
                entry,
                method,
                seed,
            }));
        }
    }
    let paths = context.keep_each(
        &jobs,
        |job| format!("runs/{}-{}-{}", job.entry.name, job.method.name(), job.seed),
        |job| follow(cancel, &job.entry.compile()?, job.method, job.seed),
    )?;
    let each = methods.len() * seeds as usize;
    programs
        .iter()
        .zip(paths.chunks(each.max(1)))
        .map(|(entry, paths)| {
            Ok(Race {
                dim: entry.compile()?.density().dim(),
                paths: paths.to_vec(),
            })
        })
        .collect()
}

impl Race {
    fn of(&self, method: Method) -> Vec<&Path> {
        self.paths.iter().filter(|p| p.method == method).collect()
    }

    /// Returns the run with the median final ELBO. If the number of runs is even, the function returns the lower of the
    /// two middle runs.
    fn median(&self, method: Method) -> &Path {
        let mut paths = self.of(method);
        paths.sort_by(|a, b| a.end().total_cmp(&b.end()));
        paths[(paths.len() - 1) / 2]
    }

    fn best(&self) -> f64 {
        self.paths
            .iter()
            .map(Path::end)
            .fold(f64::NEG_INFINITY, f64::max)
    }
}

fn figure1(context: &mut Context<'_>) -> Result<(), Failure> {
    figure(context, "figure1", &FIGURE1)
}

fn figure2(context: &mut Context<'_>) -> Result<(), Failure> {
    figure(context, "figure2", &FIGURE2)
}

/// Runs the methods for all panels of a figure. The function draws the ELBO both against oracle calls, as in the paper,
/// and against time.
fn figure(
    context: &mut Context<'_>,
    name: &str,
    panels: &[(&'static str, &'static str)],
) -> Result<(), Failure> {
    let seeds = context.pick(1, 5);
    let programs: Vec<&'static Entry> = panels
        .iter()
        .map(|(_, program)| Entry::named(program))
        .collect::<Result<_, _>>()?;
    let races = races(context, &programs, &METHODS, seeds)?;
    let mut calls = Figure::new("Distance from the best bound against oracle calls");
    let mut seconds = Figure::new("Distance from the best bound against seconds");
    for ((title, _), race) in panels.iter().zip(&races) {
        let title = format!("{title} ({} dimensions)", 2 * race.dim);
        calls = calls.panel(panel(&title, race, "oracle calls", |p| p.calls));
        seconds = seconds.panel(panel(&title, race, "seconds", |p| p.seconds));
        for method in METHODS {
            let path = race.median(method);
            context.row(
                What::new(format!("{title}: final bound of {}", method.name()), "nats"),
                |_| Ok(summary(path, race).median_of(&ends(race, method))),
            )?;
            context.row(
                What::new(
                    format!(
                        "{title}: {} within one nat of the best bound",
                        method.name()
                    ),
                    "oracle calls",
                ),
                |_| {
                    let runs = race.of(method);
                    let calls: Vec<f64> = (runs.iter())
                        .filter_map(|path| Some(path.reaches(race.best() - 1.0)?.calls))
                        .collect();
                    let arrived = arrival(path, race.best() - 1.0);
                    Ok(match calls.len() == runs.len() {
                        true => arrived.median_of(&calls),
                        false => arrived.seeds(seeds),
                    })
                },
            )?;
        }
    }
    context.figure(name, &calls.columns(2))?;
    context.figure(&format!("{name}-seconds"), &seconds.columns(2))
}

/// The smallest distance from the best ELBO that the axis shows, in nats. Points with smaller distances are drawn at
/// this distance.
const NEAREST: f64 = 0.01;

/// Plots the paths of all runs on logarithmic axes. The vertical axis extends to a hundred times the distance of the
/// starting point from the best ELBO.
fn panel(
    title: &str,
    race: &Race,
    label: &str,
    at: impl Fn(&crate::contest::Point) -> f64,
) -> Chart {
    let best = race.best();
    let mut y = Axis::new("distance below the best bound (nats)").log();
    let start = race.paths.iter().find_map(|p| p.points.first()?.bound);
    if let Some(start) = start {
        // The range is limited, because steps that nearly overflow would compress the rest of the figure.
        y = y.range(NEAREST, 100.0 * (best - start).max(1.0));
    }
    let mut chart = Chart::new(title).x(Axis::new(label).log()).y(y);
    for (i, method) in METHODS.into_iter().enumerate() {
        for path in race.of(method) {
            let points = path.points.iter().map(|p| {
                let below = p
                    .bound
                    .map_or(f64::NAN, |bound| (best - bound).max(NEAREST));
                (at(p), below)
            });
            let line = Series::line(method.name(), points);
            chart = chart.series(line.colour(i).width(1.3).opacity(0.85));
        }
    }
    chart
}

fn ends(race: &Race, method: Method) -> Vec<f64> {
    race.of(method).iter().map(|path| path.end()).collect()
}

fn summary(path: &Path, race: &Race) -> Ours {
    let missed = race.best() - path.end();
    let note = if missed.is_finite() {
        format!("{missed:.2} nats below the best; {}", path.status)
    } else {
        path.status.clone()
    };
    Ours::value(path.end()).note(note)
}

fn arrival(path: &Path, threshold: f64) -> Ours {
    match path.reaches(threshold) {
        Some(point) => Ours::value(point.calls).note(format!(
            "{} iterations, {:.3} s",
            point.iteration, point.seconds
        )),
        None => Ours::none("never, in the run with the median final bound"),
    }
}

struct Subject {
    own: Method,
    /// The step between the included programs of the corpus. If the value is n, every n-th program is included.
    every: usize,
    seeds: u64,
    prefix: &'static str,
    suffix: &'static str,
}

impl Subject {
    /// Returns the programs and seeds of the comparison. At the scale of the paper, there are five seeds for every
    /// program, as in the paper. At the quick scale, there is one seed for each of a few programs.
    fn usual(context: &Context<'_>) -> Self {
        Self {
            own: Method::Trust,
            every: context.pick(QUICK_EVERY, 1),
            seeds: context.pick(1, 5),
            prefix: "",
            suffix: "",
        }
    }

    fn what(&self, what: impl std::fmt::Display, unit: &str) -> What {
        What::new(format!("{}{what}", self.prefix), unit)
    }
}

fn against_advi(context: &mut Context<'_>) -> Result<(), Failure> {
    let subject = Subject::usual(context);
    advi(context, &subject)
}

fn printed_against_advi(context: &mut Context<'_>) -> Result<(), Failure> {
    let subject = Subject {
        own: Method::PaperTrust,
        prefix: "as printed: ",
        suffix: "-printed",
        ..Subject::usual(context)
    };
    advi(context, &subject)
}

fn against_hfsgvi(context: &mut Context<'_>) -> Result<(), Failure> {
    let subject = Subject::usual(context);
    hfsgvi(context, &subject)
}

fn once(context: &mut Context<'_>) -> Result<(), Failure> {
    let subject = Subject {
        every: 1,
        seeds: 1,
        prefix: "one seed: ",
        suffix: "-once",
        ..Subject::usual(context)
    };
    advi(context, &subject)?;
    hfsgvi(context, &subject)
}

fn advi(context: &mut Context<'_>, subject: &Subject) -> Result<(), Failure> {
    let pairs = corpus(context, subject, Method::Advi)?;
    outcomes(context, subject, Method::Advi, &pairs, [0.69, 0.28, 0.03])?;
    let slow = runtimes(&pairs);
    let what = "models on which ADVI takes at least five iterations";
    context.row(subject.what(what, "models").paper(137.0), |_| {
        Ok(Ours::value(slow.len() as f64).seeds(subject.seeds))
    })?;
    let faster = slow.iter().filter(|r| r.ratio() > 1.0).count();
    let share = subject
        .what("TrustVI faster than ADVI, of these", "share")
        .paper(136.0 / 137.0);
    context.row(share, |_| {
        Ok(Ours::share(faster, slow.len()).seeds(subject.seeds))
    })?;
    for (name, share, paper) in [
        ("oracle calls of ADVI for one of TrustVI: median", 0.5, 12.0),
        (
            "oracle calls of ADVI for one of TrustVI: upper quartile",
            0.75,
            36.0,
        ),
    ] {
        let note = "the paper says at least as many";
        context.row(subject.what(name, "ratio").paper(paper), |_| {
            Ok(quantile(&slow, share, Runtime::ratio)
                .seeds(subject.seeds)
                .note(note))
        })?;
    }
    let lower = subject.what(
        "oracle calls of ADVI for one of TrustVI: lower quartile",
        "ratio",
    );
    context.row(lower, |_| {
        Ok(quantile(&slow, 0.25, Runtime::ratio).seeds(subject.seeds))
    })?;
    let seconds = subject.what("seconds of ADVI for one of TrustVI: median", "ratio");
    context.row(seconds, |_| {
        Ok(quantile(&slow, 0.5, |r| r.seconds).seeds(subject.seeds))
    })?;
    scatter(context, subject, Method::Advi, &slow)
}

fn hfsgvi(context: &mut Context<'_>, subject: &Subject) -> Result<(), Failure> {
    let all = corpus(context, subject, Method::Hfsgvi)?;
    let (failed, pairs): (Vec<_>, Vec<_>) = all.into_iter().partition(|pair| pair.overflowed);
    let count = failed.len() + pairs.len();
    let what = subject
        .what("HFSGVI fails by overflow", "share")
        .paper(23.0 / 183.0);
    let names: Vec<&str> = failed.iter().map(|pair| pair.name.as_str()).collect();
    context.row(what, |_| {
        let share = Ours::share(failed.len(), count).seeds(subject.seeds);
        Ok(share.note(names.join(", ")))
    })?;
    outcomes(context, subject, Method::Hfsgvi, &pairs, [0.67, 0.32, 0.01])?;
    let slow = runtimes(&pairs);
    let faster = slow.iter().filter(|r| r.ratio() > 1.0).count();
    let share = subject
        .what("TrustVI faster than HFSGVI", "share")
        .paper(61.0 / 115.0);
    let note = format!(
        "of {} models on which HFSGVI takes at least five iterations",
        slow.len()
    );
    context.row(share, |_| {
        let share = Ours::share(faster, slow.len()).seeds(subject.seeds);
        Ok(share.note(note))
    })?;
    let median = subject.what("oracle calls of HFSGVI for one of TrustVI: median", "ratio");
    context.row(median, |_| {
        Ok(quantile(&slow, 0.5, Runtime::ratio).seeds(subject.seeds))
    })?;
    scatter(context, subject, Method::Hfsgvi, &slow)
}

struct Pair {
    name: String,
    dim: usize,
    other: Path,
    trust: Path,
    /// Whether most of the other method's runs overflowed.
    overflowed: bool,
}

fn corpus(
    context: &mut Context<'_>,
    subject: &Subject,
    other: Method,
) -> Result<Vec<Pair>, Failure> {
    if CORPUS.is_empty() {
        // This call fails, and its error message describes how to obtain the corpus.
        Entry::named("kidscore_interaction")?;
    }
    let seeds = subject.seeds;
    let (solving, plain): (Vec<_>, Vec<_>) = CORPUS.iter().partition(|entry| entry.solves());
    let programs: Vec<&'static Entry> = plain.iter().step_by(subject.every).copied().collect();
    context.say(format!("{} programs, {seeds} seeds", programs.len()));
    let left = |what: &str| subject.what(format!("{what}, against {}", other.name()), "nats");
    if programs.len() < plain.len() {
        let others = plain.len() - programs.len();
        let note = format!("{others} programs; use --scale paper");
        context.not_run(left("the other programs"), note)?;
    }
    // The programs that solve equations are excluded. On one of them, the other methods take a quarter of an hour, and
    // the paper uses no such programs.
    let names: Vec<&str> = solving.iter().map(|entry| entry.name).collect();
    let note = format!("left out: {}", names.join(", "));
    context.not_run(left("programs with solvers"), note)?;
    let races = races(context, &programs, &[other, subject.own], seeds)?;
    let mut pairs = Vec::new();
    for (entry, race) in programs.iter().zip(races) {
        for method in [other, subject.own] {
            let what = format!("{}: final bound of {}", entry.name, method.name());
            context.row(subject.what(what, "nats"), |_| {
                Ok(summary(race.median(method), &race).median_of(&ends(&race, method)))
            })?;
        }
        let runs = race.of(other);
        let overflowed = 2 * runs.iter().filter(|p| p.overflowed).count() > runs.len();
        pairs.push(Pair {
            name: entry.name.to_owned(),
            dim: race.dim,
            other: race.median(other).clone(),
            trust: race.median(subject.own).clone(),
            overflowed,
        });
    }
    Ok(pairs)
}

/// Writes three fractions of the models: those with equal final ELBOs, those with a higher ELBO of TrustVI, and those
/// with a higher ELBO of the other method.
fn outcomes(
    context: &mut Context<'_>,
    subject: &Subject,
    other: Method,
    pairs: &[Pair],
    paper: [f64; 3],
) -> Result<(), Failure> {
    let gain = |pair: &Pair| match (pair.trust.bound, pair.other.bound) {
        (Some(trust), Some(other)) => trust - other,
        (trust, other) => {
            f64::from(u8::from(trust.is_some())) - f64::from(u8::from(other.is_some()))
        }
    };
    let names = |keep: &dyn Fn(f64) -> bool| -> Vec<&str> {
        let kept = pairs.iter().filter(|pair| keep(gain(pair)));
        kept.map(|pair| pair.name.as_str()).collect()
    };
    let equal = names(&|g| g.abs() < EQUAL);
    let better = names(&|g| g >= EQUAL);
    let worse = names(&|g| g <= -EQUAL);
    let groups = [("equal", equal), ("better", better), ("worse", worse)];
    for ((word, group), paper) in groups.into_iter().zip(paper) {
        let what = format!("final bound of TrustVI against {}'s: {word}", other.name());
        context.row(subject.what(what, "share").paper(paper), |_| {
            let listed = if word == "equal" {
                String::new()
            } else {
                group.join(", ")
            };
            let note = format!("{} of {} models; {listed}", group.len(), pairs.len());
            let share = Ours::share(group.len(), pairs.len()).seeds(subject.seeds);
            Ok(share.note(note.trim_end_matches("; ")))
        })?;
    }
    Ok(())
}

/// The numbers of oracle calls that both methods need on one of the models that [`runtimes`] selects.
struct Runtime {
    dim: usize,
    other: f64,
    trust: f64,
    seconds: f64,
}

impl Runtime {
    fn ratio(&self) -> f64 {
        self.other / self.trust
    }
}

/// Returns the runtimes on those models for which the other method needs at least five iterations to reach the
/// threshold.
fn runtimes(pairs: &[Pair]) -> Vec<Runtime> {
    pairs
        .iter()
        .filter_map(|pair| {
            let threshold = pair.other.end().min(pair.trust.end()) - 1.0;
            let (other, trust) = (
                pair.other.reaches(threshold)?,
                pair.trust.reaches(threshold)?,
            );
            let counts = other.iteration >= 5;
            // If the starting point is above the threshold, a method needs no oracle calls. If a method needs no calls,
            // one call is counted.
            let floor = |calls: f64| calls.max(1.0);
            counts.then(|| Runtime {
                dim: pair.dim,
                other: floor(other.calls),
                trust: floor(trust.calls),
                seconds: other.seconds / trust.seconds.max(1e-6),
            })
        })
        .collect()
}

fn quantile(runtimes: &[Runtime], share: f64, figure: impl Fn(&Runtime) -> f64) -> Ours {
    let figures: Vec<f64> = runtimes.iter().map(figure).collect();
    Ours::quantile(&figures, share)
}

fn scatter(
    context: &mut Context<'_>,
    subject: &Subject,
    other: Method,
    runtimes: &[Runtime],
) -> Result<(), Failure> {
    let points = |keep: &dyn Fn(&Runtime) -> bool| -> Vec<(f64, f64)> {
        let kept = runtimes.iter().filter(|r| keep(r));
        kept.map(|r| (r.trust, r.other)).collect()
    };
    let ends = runtimes.iter().flat_map(|r| [r.trust, r.other]);
    let (least, most) = ends.fold((1.0f64, 10.0f64), |(a, b), x| (a.min(x), b.max(x)));
    let line = |factor: f64| [(least, least * factor), (most, most * factor)];
    let range = |label: String| Axis::new(label).log().range(least * 0.8, most * 1.25);
    let chart = Chart::new("Oracle calls to the threshold")
        .sized(480.0, 420.0)
        .x(range("TrustVI".into()))
        .y(range(other.name().into()))
        .series(Series::scatter("up to 50 dimensions", points(&|r| r.dim <= 50)).colour(0))
        .series(Series::scatter("more", points(&|r| r.dim > 50)).colour(1))
        .series(Series::line("equal", line(1.0)).colour(6).width(1.0))
        .series(
            Series::line("12 times as many", line(12.0))
                .colour(6)
                .width(1.0)
                .dashed(),
        );
    let name = format!("corpus-{}{}", other.name().to_lowercase(), subject.suffix);
    context.figure(&name, &Figure::new("").panel(chart))
}
