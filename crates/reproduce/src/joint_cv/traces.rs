//! Figures 3 and 8: the bound against iterations and seconds.

use std::collections::BTreeMap;

use jensen::blackbox::Rule;
use jensen::blackbox::records::RecordEstimator;
use jensen::report::figure::{Axis, Chart, Figure, Series};

use super::runs::{Method, Plan, Trace, run};
use super::tasks::{ADAM_STEPS, Model, SGD_STEPS, TASKS, Task, with_density};
use crate::context::Context;
use crate::failure::Failure;
use crate::results::{Ours, Scale, What};

/// How a task is run at a scale.
struct Scope {
    methods: Vec<(Method, Vec<f64>)>,
    epochs: u64,
    points: u64,
    draws: usize,
    seeds: u64,
}

fn scope(task: &Task, scale: Scale) -> Result<Scope, Failure> {
    let quick = scale == Scale::Quick;
    let rule: Rule = if task.small { "sgd" } else { "adam" }
        .parse()
        .map_err(Failure::Method)?;
    let steps: &[f64] = match (task.small, quick) {
        (true, _) => &SGD_STEPS,
        (false, true) => &ADAM_STEPS[1..3],
        (false, false) => &ADAM_STEPS,
    };
    let mut estimators = vec![
        RecordEstimator::Naive,
        RecordEstimator::Cv,
        RecordEstimator::Joint,
    ];
    if task.small && !quick {
        estimators.push(RecordEstimator::Inc);
    }
    let mut methods: Vec<(Method, Vec<f64>)> = estimators
        .into_iter()
        .map(|estimator| (Method::Estimator(estimator, rule), steps.to_vec()))
        .collect();
    if !task.smiso.is_empty() {
        let gammas = if quick { &task.smiso[2..3] } else { task.smiso };
        methods.push((Method::Smiso, gammas.to_vec()));
    }
    Ok(Scope {
        methods,
        epochs: match (task.name, quick) {
            ("Sonar", true) => 2400,
            ("Australian", true) => 750,
            ("Sonar", false) => 7200,
            ("Australian", false) => 2200,
            ("PPCA", true) => 2,
            (_, true) => 4,
            (_, false) => 20,
        },
        points: if quick { 16 } else { 40 },
        draws: match (task.small, quick) {
            (true, true) => 500,
            (false, true) => 8,
            (_, false) => 5000,
        },
        seeds: match (task.small, quick) {
            (true, true) => 2,
            (true, false) => 10,
            (false, true) => 1,
            (false, false) => 5,
        },
    })
}

/// The runs of a method: by step size, averaged over seeds.
struct Runs {
    iterations: Vec<u64>,
    seconds: Vec<f64>,
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

    /// The point at which the bound first reaches `level`.
    fn reaches(&self, level: f64) -> Option<usize> {
        self.best()
            .iter()
            .position(|b| b.is_some_and(|b| b >= level))
    }
}

fn runs_of(
    context: &mut Context<'_>,
    model: &mut Option<Model>,
    task: &Task,
    scope: &Scope,
    (method, steps): &(Method, Vec<f64>),
) -> Result<Runs, Failure> {
    let mut runs = Runs {
        iterations: Vec::new(),
        seconds: Vec::new(),
        curves: Vec::new(),
    };
    for &step in steps {
        let mut traces = Vec::new();
        for seed in 1..=scope.seeds {
            let name = format!("figure3-{}-{}-{step:e}-{seed}", task.name, method.name());
            let trace: Trace = context.keep(&name, |context| {
                if model.is_none() {
                    *model = Some((task.load)(context)?);
                }
                let Some(model) = model.as_ref() else {
                    return Err(Failure::Method(format!("{} has no model", task.name)));
                };
                let epoch = model.size().0.div_ceil(task.batch) as u64;
                let plan = Plan {
                    method: *method,
                    step,
                    batch: task.batch,
                    iterations: scope.epochs * epoch,
                    points: scope.points,
                    draws: scope.draws,
                    seed,
                };
                context.say(format!(
                    "{}, {}, step size {step:e}, seed {seed}",
                    task.name,
                    method.name()
                ));
                with_density!(model, density => run(context, density, &plan))
            })?;
            traces.push(trace);
        }
        let Some(first) = traces.first() else {
            continue;
        };
        runs.iterations.clone_from(&first.iterations);
        let seeds = traces.len() as f64;
        if runs.seconds.is_empty() {
            let mean = |i: usize| traces.iter().map(|t| t.seconds[i]).sum::<f64>() / seeds;
            runs.seconds = (0..first.seconds.len()).map(mean).collect();
        }
        let curve = (0..first.iterations.len())
            .map(|i| {
                let bounds: Option<Vec<f64>> = traces.iter().map(|t| t.elbo[i]).collect();
                bounds.map(|b| b.iter().sum::<f64>() / seeds)
            })
            .collect();
        runs.curves.push((step, curve));
    }
    Ok(runs)
}

/// Points of a curve; what diverged is left out.
fn line<'c>(name: &str, x: impl Iterator<Item = f64> + 'c, y: &'c [Option<f64>]) -> Series {
    let points = x.zip(y).filter_map(|(x, y)| y.map(|y| (x, y)));
    Series::line(name, points.collect::<Vec<_>>())
}

/// Figure 3 with its rows, and Figure 8.
pub(super) fn figure3(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut by_iteration = Figure::new("Bound against iterations, best step size").columns(3);
    let mut by_seconds = Figure::new("Bound against seconds, best step size").columns(3);
    let mut by_step = Figure::new("Final bound against step size").columns(3);
    for task in &TASKS {
        let scope = scope(task, context.scale())?;
        let mut model = None;
        let mut all: BTreeMap<&'static str, Runs> = BTreeMap::new();
        for method in &scope.methods {
            let runs = runs_of(context, &mut model, task, &scope, method)?;
            all.insert(method.0.name(), runs);
        }
        let mut charts = [
            Chart::new(task.name)
                .x(Axis::new("iteration"))
                .y(Axis::new("bound (nats)")),
            Chart::new(task.name)
                .x(Axis::new("seconds"))
                .y(Axis::new("bound (nats)")),
            Chart::new(task.name)
                .x(Axis::new("step size").log())
                .y(Axis::new("bound (nats)")),
        ];
        // Early bounds are far away and would hide the rest.
        let lowest = all.get("naive").and_then(|runs| {
            let best = runs.best();
            let end = best.last().copied().flatten()?;
            let early = best.get(best.len() / 4).copied().flatten()?;
            Some(early - 0.2 * (end - early).abs())
        });
        let shown = |y: &[Option<f64>]| -> Vec<Option<f64>> {
            let visible = |b: &f64| lowest.is_none_or(|lowest| *b >= lowest);
            y.iter().map(|b| b.filter(visible)).collect()
        };
        for (name, runs) in &all {
            let best = shown(&runs.best());
            let [iterations, seconds, steps] = charts;
            let last: Vec<(f64, f64)> = runs
                .curves
                .iter()
                .filter_map(|(step, curve)| Some((*step, curve.last().copied().flatten()?)))
                .filter(|(_, b)| shown(&[Some(*b)])[0].is_some())
                .collect();
            charts = [
                iterations.series(line(name, runs.iterations.iter().map(|&t| t as f64), &best)),
                seconds.series(line(name, runs.seconds.iter().copied(), &best)),
                if *name == "smiso" {
                    steps
                } else {
                    steps.series(Series::line(*name, last).marked())
                },
            ];
        }
        let [iterations, seconds, steps] = charts;
        by_iteration = by_iteration.panel(iterations);
        by_seconds = by_seconds.panel(seconds);
        by_step = by_step.panel(steps);
        rows(context, task, &scope, &all)?;
    }
    context.figure("figure3", &by_iteration)?;
    context.figure("figure3-steps", &by_step)?;
    context.figure("figure8", &by_seconds)
}

/// Final bounds, and how much earlier joint gets where naive ends.
fn rows(
    context: &mut Context<'_>,
    task: &Task,
    scope: &Scope,
    all: &BTreeMap<&'static str, Runs>,
) -> Result<(), Failure> {
    for (name, runs) in all {
        let what = format!("Figure 3, {}: final bound of {name}", task.name);
        context.row(What::new(what, "nats"), |_| {
            let iterations = runs.iterations.last().copied().unwrap_or(0);
            Ok(match runs.last() {
                Some(last) => Ours::value(last)
                    .seeds(scope.seeds)
                    .note(format!("best step size, {iterations} iterations")),
                None => Ours::none("every step size diverged"),
            })
        })?;
    }
    let (Some(naive), Some(joint)) = (all.get("naive"), all.get("joint")) else {
        return Ok(());
    };
    type Measure = fn(&Runs, usize) -> f64;
    let measures: [(&str, Measure); 2] = [
        ("iterations", |runs, i| runs.iterations[i] as f64),
        ("seconds", |runs, i| runs.seconds[i]),
    ];
    for (measure, of) in measures {
        let what = format!(
            "Figure 3, {}: {measure} of naive over those in which joint reaches its final bound",
            task.name
        );
        context.row(What::new(what, ""), |_| {
            let reached = naive.last().and_then(|level| joint.reaches(level));
            Ok(match reached {
                Some(i) => {
                    let last = naive.iterations.len() - 1;
                    Ours::value(of(naive, last) / of(joint, i))
                        .seeds(scope.seeds)
                        .note(format!("reached at iteration {}", joint.iterations[i]))
                }
                None => Ours::none("joint did not reach it"),
            })
        })?;
    }
    Ok(())
}
