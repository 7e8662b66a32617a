//! The experiment that compares TrustVI with ADVI and HFSGVI (Regier, Jordan and McAuliffe, *Fast Black-box Variational
//! Inference through Stochastic Trust-Region Optimization*, 2017).
//!
//! The paper uses 183 programs from the example models of Stan, but this reproduction uses the model corpus of the
//! repository. The runtime of a method is the number of oracle calls that it makes until the ELBO of its iterates stays
//! above a threshold. In a comparison of two methods, the threshold is one nat below the lower of their final ELBOs. If
//! a method was run several times, the comparison uses the run with the median final ELBO.

use jensen::report::figure::{Axis, Chart, Figure, Series};

use crate::comparison;
use crate::contest::{Method, Path, Point};
use crate::context::Context;
use crate::corpus::Entry;
use crate::experiment::{Experiment, Piece};
use crate::failure::Failure;
use crate::race::{Race, races};
use crate::results::{Ours, Scale, What};
use crate::uncertainty;

/// The experiment on TrustVI, with all of its parts.
pub const EXPERIMENT: Experiment = Experiment {
    name: "trustvi",
    about: "TrustVI, ADVI and HFSGVI: optimisation paths, final bounds, oracle calls",
    data: "none: the models and their data are built in; --models DIR names a folder with other programs",
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
            run: comparison::against_advi,
        },
        Piece {
            name: "advi-tight",
            about: "TrustVI compared with ADVI that stops at a hundredth of Stan's tolerance",
            from: Scale::Quick,
            run: comparison::against_tight_advi,
        },
        Piece {
            name: "printed",
            about: "Algorithm 1 as printed, compared with ADVI",
            from: Scale::Quick,
            run: comparison::printed_against_advi,
        },
        Piece {
            name: "hfsgvi",
            about: "TrustVI compared with HFSGVI over the corpus (section 5.2)",
            from: Scale::Quick,
            run: comparison::against_hfsgvi,
        },
        Piece {
            name: "once",
            about: "both comparisons over the whole corpus from one seed",
            from: Scale::Paper,
            run: comparison::once,
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
    let programs: Vec<&Entry> = panels
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
                |_| Ok(race.summary(method)),
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
fn panel(title: &str, race: &Race, label: &str, at: impl Fn(&Point) -> f64) -> Chart {
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

fn arrival(path: &Path, threshold: f64) -> Ours {
    match path.reaches(threshold) {
        Some(point) => Ours::value(point.calls).note(format!(
            "{} iterations, {:.3} s",
            point.iteration, point.seconds
        )),
        None => Ours::none("never, in the run with the median final bound"),
    }
}
