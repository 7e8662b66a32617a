//! Figure 2 shows the ELBO as a function of the number of samples for several latent dimensions.

use std::collections::BTreeMap;

use jensen::math::order::median;
use jensen::report::figure::{Axis, Chart, Figure, Series};
use serde::{Deserialize, Serialize};

use super::images::Set;
use super::training::{BATCH, Job, Method, choose_step};
use crate::context::Context;
use crate::failure::Failure;
use crate::results::{Ours, What};

/// The runs that the figure needs at a given scale.
pub struct Extent {
    /// The latent dimensions. The figure has one panel for each of them.
    pub latents: &'static [usize],
    /// The marks of a run, as numbers of processed samples. At each mark, the ELBO is written as a row. The run ends at
    /// the last mark.
    pub marks: &'static [f64],
    /// The stages of the runs. Every panel has two runs: auto-encoding variational Bayes and wake-sleep. A stage ends
    /// when both runs of every panel have reached the number of marks of this stage. Only then does the next stage
    /// begin.
    stages: &'static [(usize, usize)],
    /// The number of minibatches between two points of the curve.
    pub minibatches: u64,
    /// The candidate step sizes of Adagrad.
    pub steps: &'static [f32],
    /// The number of test images for estimating the ELBO.
    pub test: usize,
    /// A latent dimension and a number of seeds. For this dimension, auto-encoding variational Bayes is run with this
    /// number of seeds.
    repeated: Option<(usize, u64)>,
    /// The range of the vertical axis. The figure omits values below its lower end.
    range: (f64, f64),
}

const STEPS: &[f32] = &[0.01, 0.02, 0.1];

const PROBE: u64 = 2;

impl Extent {
    /// Returns the runs that the figure needs for a set of images.
    pub fn of(set: Set, context: &Context<'_>) -> Self {
        let (quick, paper) = match set {
            Set::Digits => (
                Self {
                    latents: &[3, 20],
                    marks: &[1e5],
                    stages: &[(1, 1)],
                    minibatches: 100,
                    steps: &[0.02],
                    test: 1000,
                    repeated: None,
                    range: (-220.0, -90.0),
                },
                Self {
                    latents: &[20, 3, 5, 10, 200],
                    marks: &[1e6, 2.4e6, 4.8e6, 7.2e6, 1.08e7, 1.56e7, 2e7],
                    stages: &[(2, 2), (6, 3), (7, 3)],
                    minibatches: 1000,
                    steps: &[0.02],
                    test: 10_000,
                    repeated: Some((20, 3)),
                    range: (-150.0, -95.0),
                },
            ),
            Set::Faces => (
                Self {
                    latents: &[2, 10],
                    marks: &[2e5],
                    stages: &[(1, 1)],
                    minibatches: 100,
                    steps: &[0.02],
                    test: 1000,
                    repeated: None,
                    range: (0.0, 1200.0),
                },
                Self {
                    latents: &[10, 2, 5, 20],
                    marks: &[1e6, 3e6, 1e7],
                    stages: &[(2, 2), (3, 3)],
                    minibatches: 500,
                    steps: STEPS,
                    test: 1000,
                    repeated: None,
                    range: (0.0, 1600.0),
                },
            ),
        };
        context.pick(quick, paper)
    }

    fn seeds(&self, latent: usize, method: Method) -> u64 {
        match self.repeated {
            Some((repeated, seeds)) if repeated == latent && method == Method::Aevb => seeds,
            _ => 1,
        }
    }

    fn iterations(&self, samples: f64) -> u64 {
        (samples / (self.minibatches * BATCH as u64) as f64).round() as u64
    }
}

/// Draws the panels of the figure for the faces.
pub fn faces(context: &mut Context<'_>) -> Result<(), Failure> {
    panels(context, Set::Faces, "figure2-faces")
}

/// Draws the panels of the figure for the digits.
pub fn digits(context: &mut Context<'_>) -> Result<(), Failure> {
    panels(context, Set::Digits, "figure2-digits")
}

#[derive(Serialize, Deserialize)]
struct Leg {
    points: Vec<[f64; 3]>,
}

fn panels(context: &mut Context<'_>, set: Set, figure: &str) -> Result<(), Failure> {
    let extent = Extent::of(set, context);
    let mut charts: BTreeMap<usize, Chart> = BTreeMap::new();
    let columns = extent
        .stages
        .iter()
        .flat_map(|&stage| extent.latents.iter().map(move |&latent| (stage, latent)));
    for ((reach, followed), latent) in columns {
        let end = extent.marks[followed - 1];
        let mut chart = Chart::new(format!("{}, {latent} latent values", set.name()))
            .x(Axis::new("samples seen").log())
            .y(Axis::new("nats an image").range(extent.range.0, extent.range.1))
            .sized(300.0, 300.0);
        let mut last = Vec::new();
        let methods = [(Method::Aevb, reach), (Method::WakeSleep, followed)];
        for (number, (method, reach)) in methods.into_iter().enumerate() {
            let marks = &extent.marks[..reach];
            let curve = measure(context, set, &extent, (latent, marks), method)?;
            let line = |which: usize| {
                let points = curve.iter().map(move |point| (point[0], point[which]));
                points.filter(|p| p.1 >= extent.range.0).collect::<Vec<_>>()
            };
            let test = Series::line(format!("{} (test)", method.name()), line(2));
            let train = Series::line(format!("{} (train)", method.name()), line(1));
            chart = chart
                .series(test.colour(number))
                .series(train.colour(number).dashed());
            let seen = curve.iter().rfind(|point| point[0] <= end * (1.0 + 1e-6));
            last.push(seen.map_or(f64::NAN, |point| point[2]));
        }
        let what = What::new(
            format!(
                "{}, {latent} latent values: AEVB ahead of wake-sleep after {end:e} samples, test bound",
                set.name()
            ),
            "nats an image",
        );
        context.row(what, |_| {
            Ok(Ours::value(last[0] - last[1])
                .note("in the paper's curves, AEVB is ahead in every panel"))
        })?;
        charts.insert(latent, chart);
        let shown = charts.values().cloned();
        let columns = charts.len().min(3);
        context.figure(
            figure,
            &shown.fold(Figure::new("").columns(columns), Figure::panel),
        )?;
    }
    Ok(())
}

/// Trains with every seed up to each mark and writes one row per mark. Each point of the returned curve is the median
/// over the seeds.
fn measure(
    context: &mut Context<'_>,
    set: Set,
    extent: &Extent,
    (latent, marks): (usize, &[f64]),
    method: Method,
) -> Result<Vec<[f64; 3]>, Failure> {
    let mut curve = Vec::new();
    for &mark in marks {
        let mut legs: Vec<Vec<[f64; 3]>> = Vec::new();
        for seed in 1..=extent.seeds(latent, method) {
            let key = format!("{}-{mark:e}", key(set, latent, method, seed));
            let leg: Leg = context.keep(&key, |context| {
                context.say(format!(
                    "{}, {latent} latent values, {}, seed {seed}: to {mark:e} samples",
                    set.name(),
                    method.name()
                ));
                let trail = trained(context, set, extent, latent, (method, seed), mark)?;
                // A longer run begins with the same iterations as this run.
                let points = trail.curve.into_iter();
                Ok(Leg {
                    points: points
                        .filter(|point| point[0] <= mark * (1.0 + 1e-6))
                        .collect(),
                })
            })?;
            legs.push(leg.points);
        }
        let points = legs.iter().map(Vec::len).min().unwrap_or(0);
        let middle = |point: usize, which: usize| {
            median(&legs.iter().map(|leg| leg[point][which]).collect::<Vec<_>>())
        };
        curve = (0..points)
            .map(|point| [0, 1, 2].map(|which| middle(point, which)))
            .collect();
        let [samples, train, test] = curve.last().copied().unwrap_or([f64::NAN; 3]);
        let ends: Vec<f64> = legs.iter().filter_map(|leg| Some(leg.last()?[2])).collect();
        let listed: Vec<String> = ends.iter().map(|end| format!("{end:.2}")).collect();
        let seeds = match ends.len() {
            0 | 1 => String::new(),
            _ => format!("median of the seeds' {}; ", listed.join(", ")),
        };
        let what = What::new(
            format!(
                "{}, {latent} latent values, {}: test bound after {mark:e} samples",
                set.name(),
                method.name()
            ),
            "nats an image",
        );
        context.row(what, |_| {
            Ok(Ours::value(test).median_of(&ends).note(format!(
                "{seeds}of the minibatches before: {train:.2}; {samples:.0} samples; the paper plots curves \
                 and prints no numbers"
            )))
        })?;
    }
    Ok(curve)
}

fn key(set: Set, latent: usize, method: Method, seed: u64) -> String {
    let set = match set {
        Set::Digits => "digits",
        Set::Faces => "faces",
    };
    match seed {
        1 => format!("{set}-{latent}-{}", method.name()),
        _ => format!("{set}-{latent}-{}-seed{seed}", method.name()),
    }
}

/// Returns a run of this figure with its weights. The run has processed at least `samples` samples.
///
/// # Errors
/// Fails if data are missing, if training diverges, or if the user stops the training.
pub fn trained(
    context: &mut Context<'_>,
    set: Set,
    extent: &Extent,
    latent: usize,
    (method, seed): (Method, u64),
    samples: f64,
) -> Result<super::training::Trail, Failure> {
    let images = set.open(context)?;
    let views = images.views();
    let (train, test) = (views.train(usize::MAX), views.test(extent.test));
    let mut job = Job {
        key: key(set, latent, method, seed),
        method,
        architecture: set.architecture(latent),
        train: &train,
        test: Some(&test),
        digest: images.digest(),
        initial_sd: set.initial_sd(),
        step: extent.steps[0],
        minibatches: extent.minibatches,
        seed,
    };
    job.step = choose_step(context, &job, extent.steps, PROBE)?;
    job.train(context, extent.iterations(samples), false)
}
