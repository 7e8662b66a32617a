//! Table 1 and Figures 1 and 2 show the sources of gradient noise.

use std::sync::Arc;

use jensen::blackbox::family::MeanField;
use jensen::blackbox::records::{
    Batches, EvaluationPoint, GradientRequest, Gradients, RecordEstimator, Table, Variances,
    variances,
};
use jensen::blackbox::{Family, OptimiserState};
use jensen::density::{Lanes, RecordDensity};
use jensen::report::figure::{Axis, Chart, Figure, Series};
use serde::{Deserialize, Serialize};

use super::runs::{settings, start};
use super::tasks::{RecordModel, TASKS, Task, centred_components, with_density};
use crate::context::Context;
use crate::failure::Failure;
use crate::results::{Ours, What};

/// A value, followed by its standard error.
type Figures = (f64, f64);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Point {
    iteration: u64,
    /// The total variance of the naive estimator, its variance from subsampling, and its Monte Carlo variance.
    naive: [Figures; 3],
    /// The total variances of the estimators, in the requested order.
    totals: Vec<Figures>,
}

/// A run with the estimator `joint`. During the run, the variances of other estimators are measured. Each of these
/// estimators has its own table.
struct Look<'p> {
    task: &'p Task,
    step: f64,
    iterations: u64,
    at: &'p [u64],
    estimators: &'p [RecordEstimator],
    samples: usize,
    seed: u64,
}

fn figures(estimate: jensen::blackbox::Estimate) -> Figures {
    (estimate.mean, estimate.standard_error)
}

fn parts(found: &Variances) -> [Figures; 3] {
    [
        figures(found.total),
        figures(found.subsampling),
        figures(found.monte_carlo),
    ]
}

fn look<D: RecordDensity>(
    context: &Context<'_>,
    density: &D,
    look: &Look<'_>,
) -> Result<Vec<Point>, Failure> {
    let d = density.dim();
    let family: Arc<dyn Family> = Arc::new(MeanField::new(d));
    let rule = look.task.rule();
    let (joint, batch) = (RecordEstimator::Joint, look.task.batch);
    let optimiser = settings(joint, rule, look.step, batch).optimiser;
    let batches = Batches::new(look.seed, density.records(), batch)?;
    let mut gradients = Gradients::new(density, family.clone(), 1, batch);
    let mut watched: Vec<(RecordEstimator, Table)> = look
        .estimators
        .iter()
        .map(|&estimator| (estimator, gradients.table(estimator)))
        .collect();
    let mut table = gradients.table(joint);
    let mut omega = start(family.parameters(), look.seed, look.task.spread);
    let mut memory = OptimiserState::new(omega.len());
    let (mut noise, mut gradient) = (Vec::new(), vec![0.0; omega.len()]);
    let mut order = Vec::new();
    let mut points = Vec::new();
    let mut unused = vec![0.0; omega.len()];
    let finite = |is: bool, iteration: u64| {
        let name = look.task.name;
        let failure = || format!("a gradient of {name} is not finite at iteration {iteration}");
        is.then_some(()).ok_or_else(|| Failure::Method(failure()))
    };
    for iteration in 1..=look.iterations {
        let (_, k) = batches.position(iteration);
        if k == 0 {
            order = batches.order(batches.position(iteration).0);
        }
        let complete = iteration >= batches.per_epoch() as u64;
        gradients.noise(look.seed, iteration, &mut noise);
        let request = GradientRequest {
            estimator: joint,
            omega: &omega,
            noise: Lanes::new(&noise, d, 1),
            batch: &order[batches.range(k)],
            visit: true,
        };
        if iteration.is_multiple_of(256) {
            context.check_stopped()?;
        }
        if look.at.contains(&iteration) {
            let mut of = |estimator, table: &Table| {
                let point = EvaluationPoint {
                    omega: &omega,
                    table,
                    batches: &batches,
                    seed: look.seed,
                    iteration,
                    samples: look.samples,
                };
                variances(&mut gradients, estimator, &point)
            };
            let naive = parts(&of(RecordEstimator::Naive, &table));
            let totals = watched
                .iter()
                .map(|(estimator, own)| {
                    let table = if *estimator == joint { &table } else { own };
                    figures(of(*estimator, table).total)
                })
                .collect();
            points.push(Point {
                iteration,
                naive,
                totals,
            });
        }
        finite(
            gradients.evaluate(&request, &table, &mut gradient),
            iteration,
        )?;
        gradients.visit(&request, &mut table, complete);
        for (estimator, own) in &mut watched {
            if estimator.remembers() && *estimator != joint {
                let request = GradientRequest {
                    estimator: *estimator,
                    ..request
                };
                // The evaluation of this estimate also computes the changes that a visit stores. Estimators that pass
                // over all records store only the parameters.
                if *estimator == RecordEstimator::JointExact {
                    finite(gradients.evaluate(&request, own, &mut unused), iteration)?;
                }
                gradients.visit(&request, own, complete);
            }
        }
        optimiser.step(&mut memory, &gradient, 1.0, &mut omega);
    }
    Ok(points)
}

fn table1(context: &mut Context<'_>, task: &Task) -> Result<(), Failure> {
    let kept = context.keep(&format!("table1-{}", task.name), |context| {
        context.say(format!("variances at the endpoint of {}", task.name));
        let model = (task.load)(context)?;
        let epoch = model.size().0.div_ceil(task.batch) as u64;
        // The fitted standard deviations converge slowly, and so does the Monte Carlo variance, which depends on them.
        let iterations = match (task.small, &model) {
            (true, _) => context.pick(50_000, 200_000),
            (false, RecordModel::Components(_)) => epoch * context.pick(2, 100),
            (false, _) => epoch * context.pick(5, 50),
        };
        let mut estimators = vec![RecordEstimator::Cv, RecordEstimator::Joint];
        if task.single {
            estimators.push(RecordEstimator::JointExact);
        }
        let plan = Look {
            task,
            step: if task.small { 5e-4 } else { 1e-2 },
            iterations,
            at: &[iterations],
            estimators: &estimators,
            samples: if task.small {
                context.pick(500, 5000)
            } else {
                context.pick(6, 50)
            },
            seed: 1,
        };
        with_density!(&model, density => look(context, density, &plan))
    })?;
    let Some(point) = kept.last() else {
        return Ok(());
    };
    let names = ["total", "subsampling", "Monte-Carlo"];
    for ((name, paper), (ours, se)) in names.iter().zip(task.variances).zip(point.naive) {
        let what = format!("Table 1, {}: {name} variance of naive", task.name);
        let note = format!("after {} iterations of joint", point.iteration);
        context.row(What::new(what, "").paper(paper), |_| {
            Ok(Ours::value(ours).se(se).seeds(1).note(note))
        })?;
    }
    for (name, (ours, se)) in ["cv", "joint", "joint-exact"].iter().zip(&point.totals) {
        let what = format!("Table 1, {}: total variance of {name}", task.name);
        context.row(What::new(what, ""), |_| {
            Ok(Ours::value(*ours)
                .se(*se)
                .seeds(1)
                .note("not printed in the paper"))
        })?;
    }
    Ok(())
}

pub(super) fn sonar(context: &mut Context<'_>) -> Result<(), Failure> {
    table1(context, Task::named("Sonar")?)
}

pub(super) fn australian(context: &mut Context<'_>) -> Result<(), Failure> {
    table1(context, Task::named("Australian")?)
}

pub(super) fn mnist(context: &mut Context<'_>) -> Result<(), Failure> {
    table1(context, Task::named("MNIST")?)
}

pub(super) fn ppca(context: &mut Context<'_>) -> Result<(), Failure> {
    table1(context, Task::named("PPCA")?)
}

/// Writes the rows of Table 1 for centred pixels. With centred pixels, the values are closer to those in the paper.
pub(super) fn centred_ppca(context: &mut Context<'_>) -> Result<(), Failure> {
    let task = Task {
        name: "PPCA-centred",
        load: centred_components,
        ..*Task::named("PPCA")?
    };
    table1(context, &task)
}

pub(super) fn tennis(context: &mut Context<'_>) -> Result<(), Failure> {
    table1(context, Task::named("Tennis")?)
}

pub(super) fn movielens(context: &mut Context<'_>) -> Result<(), Failure> {
    table1(context, Task::named("MovieLens")?)
}

pub(super) fn figure2(context: &mut Context<'_>) -> Result<(), Failure> {
    let estimators = [
        RecordEstimator::Cv,
        RecordEstimator::Inc,
        RecordEstimator::Ens { beta: 0.5 },
        RecordEstimator::Joint,
        RecordEstimator::JointExact,
    ];
    let mut figure = Figure::new("Variance of gradients along a run with joint").columns(2);
    for task in TASKS.iter().filter(|task| task.small) {
        let points: Vec<Point> = context.keep(&format!("figure2-{}", task.name), |context| {
            context.say(format!("variances along a run on {}", task.name));
            let model = (task.load)(context)?;
            let iterations = context.pick(40_000, 100_000);
            let count = context.pick(8, 40);
            let at: Vec<u64> = (1..=count).map(|k| k * iterations / count).collect();
            let plan = Look {
                task,
                step: 5e-4,
                iterations,
                at: &at,
                estimators: &estimators,
                samples: context.pick(100, 1000),
                seed: 1,
            };
            with_density!(&model, density => look(context, density, &plan))
        })?;
        let line = |name: &str, f: &dyn Fn(&Point) -> f64| {
            Series::line(name, points.iter().map(|p| (p.iteration as f64, f(p))))
        };
        let mut chart = Chart::new(task.name)
            .x(Axis::new("iteration"))
            .y(Axis::new("trace of the covariance").log())
            .series(line("naive", &|p| p.naive[0].0))
            .series(line("subsampling only", &|p| p.naive[1].0).dashed())
            .series(line("Monte Carlo only", &|p| p.naive[2].0).dashed());
        for (k, estimator) in estimators.iter().enumerate() {
            chart = chart.series(line(estimator.name(), &|p| p.totals[k].0));
        }
        figure = figure.panel(chart);
        let Some(last) = points.last() else { continue };
        // These rows contain the content of Figure 2 as ratios to the bounds.
        let bounds = [
            ("cv", 0, 1),
            ("inc", 1, 2),
            ("joint", 3, 1),
            ("joint", 3, 2),
            ("joint-exact", 4, 1),
            ("joint-exact", 4, 2),
        ];
        for (name, estimator, part) in bounds {
            let bound = ["total", "subsampling", "Monte-Carlo"][part];
            let what = format!(
                "Figure 2, {}: variance of {name} over the {bound} variance, at the end",
                task.name
            );
            context.row(What::new(what, ""), |_| {
                let ratio = last.totals[estimator].0 / last.naive[part].0;
                Ok(Ours::value(ratio).seeds(1))
            })?;
        }
    }
    context.figure("figure2", &figure)
}
