//! Figures 3 and 8: the bound against iterations and seconds.

use std::collections::BTreeMap;

use jensen::blackbox::Rule;
use jensen::blackbox::records::{Batches, RecordEstimator};
use jensen::report::figure::{Axis, Chart, Figure, Series};

use super::runs::{Method, Plan, Trace, run};
use super::tasks::{ADAM_STEPS, RecordModel, SGD_STEPS, Task};
use super::times::milliseconds;
use crate::context::Context;
use crate::failure::Failure;
use crate::results::{Ours, Scale, What};

/// What is run on a task, in the order of legends.
pub(super) fn methods(task: &Task, scale: Scale) -> Result<Vec<Method>, Failure> {
    let rule: Rule = if task.small { "sgd" } else { "adam" }
        .parse()
        .map_err(Failure::Method)?;
    let paper = scale == Scale::Paper;
    let mut estimators = vec![RecordEstimator::Naive, RecordEstimator::Cv];
    if task.small && paper {
        estimators.push(RecordEstimator::Inc);
    }
    // Every snapshot that meets in a batch costs a Gram matrix of its own.
    if task.name != "PPCA" || paper {
        estimators.push(RecordEstimator::Joint);
    }
    if task.single {
        estimators.push(RecordEstimator::JointExact);
    } else {
        estimators.push(RecordEstimator::JointSvrg);
    }
    let mut methods: Vec<Method> = estimators
        .into_iter()
        .map(|estimator| Method::Estimator(estimator, rule))
        .collect();
    if !task.smiso.is_empty() && paper {
        methods.push(Method::Smiso);
    }
    Ok(methods)
}

/// The step sizes of a method; at the quick scale the two that serve the large tasks best.
fn steps(task: &Task, method: Method, scale: Scale) -> &'static [f64] {
    match (method, task.small, scale) {
        (Method::Smiso, _, _) => task.smiso,
        // Whose iterations are the dear ones: the step sizes around the best.
        (Method::Estimator(RecordEstimator::Inc, _), _, _) => &SGD_STEPS[3..7],
        (Method::Estimator(RecordEstimator::Joint, _), false, Scale::Paper)
            if task.name == "PPCA" =>
        {
            &ADAM_STEPS[1..3]
        }
        (_, true, _) => &SGD_STEPS,
        (_, false, Scale::Quick) => &ADAM_STEPS[1..3],
        (_, false, Scale::Paper) => &ADAM_STEPS,
    }
}

/// Draws of a sampled bound; they are the same for all methods of a task, so that differences between
/// methods are more precise than bounds.
const DRAWS: [usize; 2] = [4, 8];

/// How many times a bound is computed along a run.
const POINTS: [u64; 2] = [10, 24];

/// The same where it is cheap.
const POINTS_SMALL: [u64; 2] = [40, 80];

/// The runs of a method: by step size, averaged over seeds.
struct Runs {
    iterations: Vec<u64>,
    /// Seconds an iteration.
    seconds: f64,
    /// Step size and mean bound at each point; `None` where a run had diverged.
    curves: Vec<(f64, Vec<Option<f64>>)>,
}

impl Runs {
    /// The best step size chosen for each point in hindsight.
    fn best(&self) -> Vec<Option<f64>> {
        (0..self.iterations.len())
            .map(|i| {
                let at = self.curves.iter().filter_map(|(_, curve)| curve[i]);
                at.reduce(f64::max)
            })
            .collect()
    }

    fn last(&self) -> Option<f64> {
        self.best().last().copied().flatten()
    }

    /// The step size that ends highest.
    fn last_step(&self) -> Option<f64> {
        let ends = self.curves.iter();
        let ends = ends.filter_map(|(step, curve)| Some((*step, curve.last().copied()??)));
        ends.max_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(step, _)| step)
    }

    /// The point at which the bound first reaches `level`.
    fn reaches(&self, level: f64) -> Option<usize> {
        self.best()
            .iter()
            .position(|b| b.is_some_and(|b| b >= level))
    }
}

/// Seeds of a method: one where an iteration passes over all records.
fn seeds_of(method: &str, seeds: u64) -> u64 {
    if method == "inc" { 1 } else { seeds }
}

/// All runs of a task by method.
fn runs_of(
    context: &mut Context<'_>,
    model: &RecordModel,
    task: &Task,
) -> Result<Vec<(&'static str, Runs)>, Failure> {
    let scale = context.scale();
    let seeds = context.pick(1, task.seeds);
    let epochs = context.pick(task.epochs[0], task.epochs[1]);
    let points = if task.small { POINTS_SMALL } else { POINTS };
    let epoch = Batches::new(1, model.size().0, task.batch)?.per_epoch() as u64;
    let mut plans = Vec::new();
    for method in methods(task, scale)? {
        for &step in steps(task, method, scale) {
            for seed in 1..=seeds_of(method.name(), seeds) {
                plans.push(Plan {
                    method,
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
            format!("figure3-{}-{method}-{step:e}-{}", task.name, plan.seed)
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
        let curve = (0..first.iterations.len())
            .map(|i| {
                let bounds: Option<Vec<f64>> = here.iter().map(|t| t.elbo[i]).collect();
                bounds.map(|b| b.iter().sum::<f64>() / here.len() as f64)
            })
            .collect();
        if found.last().is_none_or(|(name, _)| *name != method) {
            let runs = Runs {
                iterations: first.iterations.clone(),
                seconds: 1e-3 * milliseconds.get(method).copied().unwrap_or(f64::NAN),
                curves: Vec::new(),
            };
            found.push((method, runs));
        }
        if let Some((_, runs)) = found.last_mut() {
            runs.curves.push((plans[0].step, curve));
        }
    }
    Ok(found)
}

/// Points of a curve; what diverged is left out.
fn line<'c>(name: &str, x: impl Iterator<Item = f64> + 'c, y: &'c [Option<f64>]) -> Series {
    let points = x.zip(y).filter_map(|(x, y)| y.map(|y| (x, y)));
    Series::line(name, points.collect::<Vec<_>>())
}

/// The panels of Figures 3 and 8 for one task, with their rows.
fn task(context: &mut Context<'_>, name: &str) -> Result<(), Failure> {
    let task = Task::named(name)?;
    let model = (task.load)(context)?;
    let all = runs_of(context, &model, task)?;
    // Early bounds are far away and would hide the rest.
    let naive = all.iter().find(|(name, _)| *name == "naive");
    let lowest = naive.and_then(|(_, runs)| {
        let best = runs.best();
        let end = best.last().copied().flatten()?;
        let early = best.get(best.len() / 4).copied().flatten()?;
        Some(early - 0.2 * (end - early).abs())
    });
    let shown = |y: &[Option<f64>]| -> Vec<Option<f64>> {
        let visible = |b: &f64| lowest.is_none_or(|lowest| *b >= lowest);
        y.iter().map(|b| b.filter(visible)).collect()
    };
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
        // Those of SMISO are on another scale.
        if *name != "smiso" {
            let ends = runs.curves.iter().filter_map(|(step, curve)| {
                let end = shown(&[curve.last().copied()?])[0]?;
                Some((*step, end))
            });
            steps = steps.series(Series::line(*name, ends.collect::<Vec<_>>()).marked());
        }
    }
    let figure = Figure::new(format!("The bound of {name} along runs"))
        .columns(3)
        .panel(iterations)
        .panel(seconds)
        .panel(steps);
    context.figure(&format!("figure3-{}", name.to_lowercase()), &figure)?;
    rows(context, task, &all)
}

/// Final bounds, and how much earlier the joint estimators get where naive ends.
fn rows(
    context: &mut Context<'_>,
    task: &Task,
    all: &[(&'static str, Runs)],
) -> Result<(), Failure> {
    let seeds = context.pick(1, task.seeds);
    for (name, runs) in all {
        let what = format!("Figure 3, {}: final bound of {name}", task.name);
        context.row(What::new(what, "nats"), |_| {
            let iterations = runs.iterations.last().copied().unwrap_or(0);
            Ok(match (runs.last(), runs.last_step()) {
                (Some(last), Some(step)) => Ours::value(last).seeds(seeds_of(name, seeds)).note(
                    format!("best step size, {step:e}, after {iterations} iterations"),
                ),
                _ => Ours::none("every step size diverged"),
            })
        })?;
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
    for name in ["cv", "inc", "joint", "joint-svrg", "joint-exact"] {
        let Some(other) = runs.get(name) else {
            continue;
        };
        for (measure, of) in measures {
            let what = format!(
                "Figure 3, {}: {measure} of naive over those in which {name} reaches its final bound",
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
