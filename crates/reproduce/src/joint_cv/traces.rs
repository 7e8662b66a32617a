//! Figures 3, 4, 6, 7 and 8 show the ELBO as a function of the iteration and of time.

use std::collections::BTreeMap;

use jensen::blackbox::Rule;
use jensen::blackbox::records::{Batches, RecordEstimator};
use jensen::report::figure::{Axis, Chart, Figure, Series};

use super::runs::{Method, Plan, SMISO_ALPHA, Trace, run};
use super::tasks::{ADAM_STEPS, RecordModel, SGD_STEPS, Task};
use super::times::milliseconds;
use crate::context::Context;
use crate::failure::Failure;
use crate::results::{Ours, Scale, What};

/// Returns the methods that are compared on a task, in the order of the legends.
pub(super) fn methods(task: &Task, scale: Scale) -> Vec<Method> {
    let rule = task.rule();
    let paper = scale == Scale::Paper;
    let mut estimators = vec![RecordEstimator::Naive, RecordEstimator::Cv];
    if task.small && paper {
        estimators.push(RecordEstimator::Inc);
    }
    // These estimators are slow for PPCA, because every snapshot in a batch needs its own Gram matrix.
    if task.name != "PPCA" || paper {
        estimators.extend([RecordEstimator::Joint, RecordEstimator::JointMean]);
    }
    // These estimators need gigabytes for complete snapshots, which store two numbers for each of 85 000 coordinates.
    if !["PPCA", "MovieLens"].contains(&task.name) || paper {
        estimators.push(RecordEstimator::JointPaper);
    }
    // The small tasks are shown in Figure 4.
    if !task.single || (task.small && paper) {
        estimators.push(RecordEstimator::JointSvrg);
    }
    if task.single {
        estimators.push(RecordEstimator::JointExact);
    }
    let mut methods: Vec<Method> = estimators
        .into_iter()
        .map(|estimator| Method::Estimator(estimator, rule))
        .collect();
    if !task.smiso.is_empty() && paper {
        methods.push(Method::Smiso { momentum: 0.0 });
    }
    methods
}

/// Returns the step sizes of a run. At the quick scale, the large tasks use only the two step sizes that suit them
/// best.
fn steps(task: &Task, method: Method, scale: Scale) -> &'static [f64] {
    match (method, task.small, scale) {
        (Method::Smiso { .. }, _, _) => task.smiso,
        // Methods with expensive iterations use only the step sizes close to the best one.
        (Method::Estimator(RecordEstimator::Inc, _), _, _) => &SGD_STEPS[3..7],
        (
            Method::Estimator(
                RecordEstimator::Joint | RecordEstimator::JointMean | RecordEstimator::JointPaper,
                _,
            ),
            false,
            Scale::Paper,
        ) if task.name == "PPCA" => &ADAM_STEPS[1..3],
        (_, true, _) => &SGD_STEPS,
        (_, false, Scale::Quick) => &ADAM_STEPS[1..3],
        (_, false, Scale::Paper) => &ADAM_STEPS,
    }
}

/// The number of draws for estimating the ELBO. All methods of a task use the same draws. The differences between
/// methods are therefore more precise than the ELBO itself.
const DRAWS: [usize; 2] = [4, 8];

/// The number of points of a curve at the quick scale, followed by the number at the scale of the paper.
const POINTS: [u64; 2] = [10, 24];

/// The same numbers for tasks whose ELBO can be computed quickly.
const POINTS_SMALL: [u64; 2] = [40, 80];

/// The runs of a method with one step size. There is one run for each seed.
struct Curve {
    step: f64,
    /// The mean of the ELBO over the seeds at each point, or `None` if a run had diverged before this point.
    mean: Vec<Option<f64>>,
    ends: Vec<Option<f64>>,
}

impl Curve {
    fn of(step: f64, traces: &[Trace]) -> Self {
        let mean = (0..traces[0].iterations.len())
            .map(|i| {
                let bounds: Option<Vec<f64>> = traces.iter().map(|t| t.elbo[i]).collect();
                bounds.map(|b| b.iter().sum::<f64>() / traces.len() as f64)
            })
            .collect();
        let ends = traces.iter().map(|t| t.elbo.last().copied().flatten());
        Self {
            step,
            mean,
            ends: ends.collect(),
        }
    }

    fn last(&self) -> Option<f64> {
        self.mean.last().copied().flatten()
    }
}

struct Runs {
    iterations: Vec<u64>,
    seconds: f64,
    curves: Vec<Curve>,
}

impl Runs {
    /// Returns the highest mean ELBO of any step size at each point. The result corresponds to choosing the step size
    /// in hindsight.
    fn best(&self) -> Vec<Option<f64>> {
        (0..self.iterations.len())
            .map(|i| {
                let at = self.curves.iter().filter_map(|curve| curve.mean[i]);
                at.reduce(f64::max)
            })
            .collect()
    }

    fn last(&self) -> Option<f64> {
        self.best().last().copied().flatten()
    }

    fn highest(&self) -> Option<&Curve> {
        let ends = self.curves.iter();
        let ends = ends.filter_map(|curve| Some((curve, curve.last()?)));
        ends.max_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(curve, _)| curve)
    }

    fn reaches(&self, level: f64) -> Option<usize> {
        self.best()
            .iter()
            .position(|b| b.is_some_and(|b| b >= level))
    }
}

/// Returns the number of seeds. A method whose iterations pass over all records is run with a single seed.
fn seeds_of(method: &str, seeds: u64) -> u64 {
    if method == "inc" { 1 } else { seeds }
}

/// The methods of a figure with their step sizes.
pub(super) struct Lineup {
    pub(super) methods: Vec<(Method, Vec<f64>)>,
    pub(super) seeds: u64,
    /// The name under which the runs are stored.
    pub(super) runs: &'static str,
    /// The beginning of the names of the rows and of the file of the figure.
    pub(super) names: [&'static str; 2],
}

impl Lineup {
    fn best(context: &Context<'_>, task: &Task) -> Self {
        let scale = context.scale();
        let all = methods(task, scale).into_iter();
        Self {
            methods: all
                .map(|method| (method, steps(task, method, scale).to_vec()))
                .collect(),
            seeds: context.pick(1, task.seeds),
            runs: "figure3",
            names: ["Figure 3", "figure3"],
        }
    }

    /// The methods of Figure 7, with a single seed. The methods include SGD with the step sizes α |B| γ / N, which are
    /// equivalent to the values γ of SMISO (Eq. 26).
    fn plain(task: &Task, records: usize) -> Self {
        let joint = if task.name == "MovieLens" {
            RecordEstimator::JointSvrg
        } else {
            RecordEstimator::Joint
        };
        let scale = SMISO_ALPHA * task.batch as f64 / records as f64;
        let steps: Vec<f64> = task.smiso.iter().map(|gamma| scale * gamma).collect();
        let estimators = [RecordEstimator::Naive, RecordEstimator::Cv, joint];
        let method = |estimator| (Method::Estimator(estimator, Rule::Sgd), steps.clone());
        Self {
            methods: estimators.into_iter().map(method).collect(),
            seeds: 1,
            runs: "figure7",
            names: ["Figure 7", "figure7"],
        }
    }

    /// The methods of Figure 6 with a single seed. These methods are the estimators of Figure 3 and SMISO.
    fn adaptive(context: &Context<'_>, task: &Task) -> Self {
        let mut lineup = Self::best(context, task);
        lineup.seeds = 1;
        lineup.methods.retain(|(method, _)| match method {
            Method::Smiso { .. } => true,
            Method::Estimator(estimator, _) => match estimator {
                RecordEstimator::Naive | RecordEstimator::Cv => true,
                RecordEstimator::Joint => task.name != "MovieLens",
                RecordEstimator::JointSvrg => task.name == "MovieLens",
                _ => false,
            },
        });
        lineup
    }
}

fn runs_of(
    context: &mut Context<'_>,
    model: &RecordModel,
    task: &Task,
    lineup: &Lineup,
) -> Result<Vec<(&'static str, Runs)>, Failure> {
    let epochs = context.pick(task.epochs[0], task.epochs[1]);
    let points = if task.small { POINTS_SMALL } else { POINTS };
    let epoch = Batches::new(1, model.size().0, task.batch)?.per_epoch() as u64;
    let mut plans = Vec::new();
    for (method, steps) in &lineup.methods {
        for &step in steps {
            for seed in 1..=seeds_of(method.name(), lineup.seeds) {
                plans.push(Plan {
                    method: *method,
                    step,
                    batch: task.batch,
                    spread: task.spread,
                    iterations: epochs * epoch,
                    points: context.pick(points[0], points[1]),
                    draws: context.pick(DRAWS[0], DRAWS[1]),
                    seed,
                });
            }
        }
    }
    let stopped = context.stopper();
    let traces: Vec<Trace> = context.keep_each(
        &plans,
        |plan| {
            let (method, step) = (plan.method.name(), plan.step);
            let runs = lineup.runs;
            format!("{runs}-{}-{method}-{step:e}-{}", task.name, plan.seed)
        },
        |plan| run(model, plan, &stopped),
    )?;
    let milliseconds = milliseconds(context, task, model)?;
    let mut found: Vec<(&'static str, Runs)> = Vec::new();
    let mut traces = traces.as_slice();
    for plans in plans.chunk_by(|a, b| a.method == b.method && a.step == b.step) {
        let (here, rest) = traces.split_at(plans.len());
        traces = rest;
        let (method, first) = (plans[0].method.name(), &here[0]);
        if found.last().is_none_or(|(name, _)| *name != method) {
            let runs = Runs {
                iterations: first.iterations.clone(),
                seconds: 1e-3 * milliseconds.get(method).copied().unwrap_or(f64::NAN),
                curves: Vec::new(),
            };
            found.push((method, runs));
        }
        if let Some((_, runs)) = found.last_mut() {
            runs.curves.push(Curve::of(plans[0].step, here));
        }
    }
    Ok(found)
}

/// Draws a curve. The points after the divergence of a run are omitted.
fn line<'c>(name: &str, x: impl Iterator<Item = f64> + 'c, y: &'c [Option<f64>]) -> Series {
    let points = x.zip(y).filter_map(|(x, y)| y.map(|y| (x, y)));
    Series::line(name, points.collect::<Vec<_>>())
}

/// Returns the lowest ELBO that the figure shows. The figure omits the much lower values at the beginning of a run,
/// because they would make the differences at the end invisible.
fn lowest(all: &[(&'static str, Runs)]) -> Option<f64> {
    let (_, naive) = all.iter().find(|(name, _)| *name == "naive")?;
    let best = naive.best();
    let end = best.last().copied().flatten()?;
    let early = best.get(best.len() / 4).copied().flatten()?;
    Some(early - 0.2 * (end - early).abs())
}

fn visible(bounds: &[Option<f64>], lowest: Option<f64>) -> Vec<Option<f64>> {
    let seen = |b: &f64| lowest.is_none_or(|lowest| *b >= lowest);
    bounds.iter().map(|b| b.filter(seen)).collect()
}

fn task(context: &mut Context<'_>, name: &str) -> Result<(), Failure> {
    let task = Task::named(name)?;
    let lineup = Lineup::best(context, task);
    drawn(context, task, &lineup)
}

/// Runs the methods of a lineup, draws their curves, and writes their rows.
pub(super) fn drawn(
    context: &mut Context<'_>,
    task: &Task,
    lineup: &Lineup,
) -> Result<(), Failure> {
    let name = task.name;
    let model = (task.load)(context)?;
    let all = runs_of(context, &model, task, lineup)?;
    let lowest = lowest(&all);
    let shown = |y: &[Option<f64>]| visible(y, lowest);
    let axis = || Axis::new("bound (nats)");
    let mut iterations = Chart::new(format!("{name}, best step size"))
        .x(Axis::new("iteration"))
        .y(axis());
    let mut seconds = Chart::new(format!("{name}, best step size"))
        .x(Axis::new("seconds").log())
        .y(axis());
    let mut steps = Chart::new(format!("{name}, at the end"))
        .x(Axis::new("step size").log())
        .y(axis());
    for (name, runs) in &all {
        let best = shown(&runs.best());
        let at = runs.iterations.iter().map(|&t| t as f64);
        iterations = iterations.series(line(name, at.clone(), &best));
        seconds = seconds.series(line(name, at.map(|t| t * runs.seconds), &best));
        // SMISO is excluded here, because its step sizes have a different scale.
        if *name != "smiso" {
            let ends = runs
                .curves
                .iter()
                .filter_map(|curve| Some((curve.step, shown(&[curve.last()])[0]?)));
            steps = steps.series(Series::line(*name, ends.collect::<Vec<_>>()).marked());
        }
    }
    let figure = Figure::new(format!("The bound of {name} along runs"))
        .columns(3)
        .panel(iterations)
        .panel(seconds)
        .panel(steps);
    let file = lineup.names[1];
    context.figure(&format!("{file}-{}", name.to_lowercase()), &figure)?;
    rows(context, task, lineup, &all)
}

fn rows(
    context: &mut Context<'_>,
    task: &Task,
    lineup: &Lineup,
    all: &[(&'static str, Runs)],
) -> Result<(), Failure> {
    let (seeds, words) = (lineup.seeds, lineup.names[0]);
    for (name, runs) in all {
        let what = format!("{words}, {}: final bound of {name}", task.name);
        context.row(What::new(what, "nats"), |_| Ok(final_bound(runs)))?;
    }
    let runs: BTreeMap<&str, &Runs> = all.iter().map(|(name, runs)| (*name, runs)).collect();
    let Some(naive) = runs.get("naive") else {
        return Ok(());
    };
    type Measure = fn(&Runs, usize) -> f64;
    let measures: [(&str, Measure); 2] = [
        ("iterations", |runs, i| runs.iterations[i] as f64),
        ("seconds", |runs, i| {
            runs.iterations[i] as f64 * runs.seconds
        }),
    ];
    for name in [
        "cv",
        "inc",
        "joint",
        "joint-mean",
        "joint-paper",
        "joint-svrg",
        "joint-exact",
    ] {
        let Some(other) = runs.get(name) else {
            continue;
        };
        let what = format!("{words}, {}: {name} above naive at the end", task.name);
        context.row(What::new(what, "nats"), |_| {
            Ok(gap(other, naive).unwrap_or_else(|| Ours::none("every step size diverged")))
        })?;
        for (measure, of) in measures {
            let what = format!(
                "{words}, {}: {measure} of naive over those in which {name} reaches its final bound",
                task.name
            );
            context.row(What::new(what, ""), |_| {
                let reached = naive.last().and_then(|level| other.reaches(level));
                Ok(match reached {
                    Some(i) => {
                        let last = naive.iterations.len() - 1;
                        Ours::value(of(naive, last) / of(other, i))
                            .seeds(seeds_of(name, seeds))
                            .note(format!("reached at iteration {}", other.iterations[i]))
                    }
                    None => Ours::none(format!("{name} did not reach it")),
                })
            })?;
        }
    }
    Ok(())
}

fn final_bound(runs: &Runs) -> Ours {
    let Some(curve) = runs.highest() else {
        return Ours::none("every step size diverged");
    };
    let ends: Vec<f64> = curve.ends.iter().copied().flatten().collect();
    let iterations = runs.iterations.last().copied().unwrap_or(0);
    Ours::mean_of(&ends).note(format!(
        "best step size, {:e}, after {iterations} iterations",
        curve.step
    ))
}

/// Returns the difference between the final ELBOs of two methods, each with its own best step size. If the methods
/// share seeds, the difference is computed for each seed.
fn gap(runs: &Runs, other: &Runs) -> Option<Ours> {
    let (ours, theirs) = (runs.highest()?, other.highest()?);
    let pairs = ours.ends.iter().zip(&theirs.ends);
    let gaps: Vec<f64> = pairs.filter_map(|(a, b)| Some((*a)? - (*b)?)).collect();
    Some(Ours::mean_of(&gaps).note("best step sizes, seed by seed"))
}

fn optimisers(context: &mut Context<'_>, name: &str) -> Result<(), Failure> {
    let task = Task::named(name)?;
    let model = (task.load)(context)?;
    let adaptive = Lineup::adaptive(context, task);
    let plain = Lineup::plain(task, model.size().0);
    let adam = runs_of(context, &model, task, &adaptive)?;
    let sgd = runs_of(context, &model, task, &plain)?;
    let mut chart = Chart::new(format!("{name}, best step size"))
        .x(Axis::new("iteration"))
        .y(Axis::new("bound (nats)"));
    let lowest = lowest(&adam).zip(lowest_end(&sgd)).map(|(a, b)| a.min(b));
    for (optimiser, all) in [("adam", &adam), ("sgd", &sgd)] {
        for (number, (method, runs)) in all.iter().enumerate() {
            let shown = visible(&runs.best(), lowest);
            let at = runs.iterations.iter().map(|&t| t as f64);
            let (label, colour, dashed) = match *method {
                "smiso" => ("smiso".to_owned(), 3, false),
                method => (format!("{method}, {optimiser}"), number, optimiser == "sgd"),
            };
            let line = line(&label, at, &shown).colour(colour);
            chart = chart.series(if dashed { line.dashed() } else { line });
            let what = if *method == "smiso" {
                format!("Figure 7, {name}: final bound of smiso")
            } else if optimiser == "sgd" {
                format!("Figure 7, {name}: final bound of {method} with SGD")
            } else {
                format!("Figure 6, {name}: final bound of {method} with Adam, one seed")
            };
            context.row(What::new(what, "nats"), |_| Ok(final_bound(runs)))?;
        }
    }
    let figure = Figure::new(format!("The bound of {name} with Adam and with SGD")).panel(chart);
    context.figure(&format!("figure6-{}", name.to_lowercase()), &figure)
}

fn lowest_end(all: &[(&'static str, Runs)]) -> Option<f64> {
    let ends = all.iter().filter_map(|(_, runs)| runs.last());
    ends.reduce(f64::min)
}

pub(super) fn optimisers_mnist(context: &mut Context<'_>) -> Result<(), Failure> {
    optimisers(context, "MNIST")
}

pub(super) fn optimisers_ppca(context: &mut Context<'_>) -> Result<(), Failure> {
    optimisers(context, "PPCA")
}

pub(super) fn optimisers_tennis(context: &mut Context<'_>) -> Result<(), Failure> {
    optimisers(context, "Tennis")
}

pub(super) fn optimisers_movielens(context: &mut Context<'_>) -> Result<(), Failure> {
    optimisers(context, "MovieLens")
}

pub(super) fn sonar(context: &mut Context<'_>) -> Result<(), Failure> {
    task(context, "Sonar")
}

pub(super) fn australian(context: &mut Context<'_>) -> Result<(), Failure> {
    task(context, "Australian")
}

pub(super) fn mnist(context: &mut Context<'_>) -> Result<(), Failure> {
    task(context, "MNIST")
}

pub(super) fn ppca(context: &mut Context<'_>) -> Result<(), Failure> {
    task(context, "PPCA")
}

pub(super) fn tennis(context: &mut Context<'_>) -> Result<(), Failure> {
    task(context, "Tennis")
}

pub(super) fn movielens(context: &mut Context<'_>) -> Result<(), Failure> {
    task(context, "MovieLens")
}
