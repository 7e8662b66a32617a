//! SMISO with momentum, which the paper leaves open (appendix A).

use jensen::blackbox::records::Batches;

use super::runs::{Method, Plan, SMISO_ALPHA, Trace, run};
use super::tasks::{SGD_STEPS, Task};
use crate::context::Context;
use crate::failure::Failure;
use crate::results::{Ours, What};

/// The usual value of momentum, compared with none.
const MOMENTUM: [f64; 2] = [0.0, 0.9];

/// Step sizes below those of [`SGD_STEPS`]. Momentum 0.9 multiplies the effective step size by ten, so its best step size
/// is about a tenth of the best one without momentum, which is near the end of that list.
const SMALLER: [f64; 3] = [5e-6, 2.5e-6, 1e-6];

/// The number of seeds at the quick scale. At the scale of the paper, the task states it.
const SEEDS: u64 = 3;

/// The number of points of a curve.
const POINTS: u64 = 40;

/// The runs with one momentum. The traces of each step size are in the order of the seeds.
struct Runs<'a> {
    curves: Vec<(f64, &'a [Trace])>,
}

impl Runs<'_> {
    /// Returns the step size with the highest mean ELBO at a point, with the ELBO of each seed. A step size with a run
    /// that diverged is not considered.
    fn best(&self, point: usize) -> Option<(f64, Vec<f64>)> {
        let at = |traces: &[Trace]| -> Option<Vec<f64>> {
            traces.iter().map(|t| t.elbo[point]).collect()
        };
        let curves = self.curves.iter();
        let bounds = curves.filter_map(|(step, traces)| Some((*step, at(traces)?)));
        let mean = |bounds: &Vec<f64>| bounds.iter().sum::<f64>() / bounds.len() as f64;
        bounds.max_by(|a, b| mean(&a.1).total_cmp(&mean(&b.1)))
    }
}

/// Returns the step sizes γ that are equivalent to those of SGD (Eq. 26).
fn steps(task: &Task, records: usize) -> Vec<f64> {
    let scale = SMISO_ALPHA * task.batch as f64 / records as f64;
    let steps = SGD_STEPS.iter().chain(&SMALLER);
    steps.map(|step| step / scale).collect()
}

fn task(context: &mut Context<'_>, name: &str) -> Result<(), Failure> {
    let task = Task::named(name)?;
    let model = (task.load)(context)?;
    let records = model.size().0;
    let epoch = Batches::new(1, records, task.batch)?.per_epoch() as u64;
    let steps = steps(task, records);
    let seeds = context.pick(SEEDS, task.seeds);
    let mut plans = Vec::new();
    for momentum in MOMENTUM {
        for &step in &steps {
            plans.extend((1..=seeds).map(|seed| Plan {
                method: Method::Smiso { momentum },
                step,
                batch: task.batch,
                spread: task.spread,
                iterations: context.pick(task.epochs[0], task.epochs[1]) * epoch,
                points: POINTS,
                draws: 1,
                seed,
            }));
        }
    }
    let stopped = context.stopper();
    let traces: Vec<Trace> = context.keep_each(
        &plans,
        |plan| {
            let (method, step, seed) = (plan.method.name(), plan.step, plan.seed);
            format!("momentum-{name}-{method}-{step:e}-{seed}")
        },
        |plan| run(&model, plan, &stopped),
    )?;
    let groups = traces.chunks(seeds as usize).zip(steps.iter().cycle());
    let mut curves: Vec<_> = groups.map(|(traces, step)| (*step, traces)).collect();
    let pushed = Runs {
        curves: curves.split_off(steps.len()),
    };
    rows(
        context,
        name,
        &traces[0].iterations,
        [Runs { curves }, pushed],
    )
}

fn rows(
    context: &mut Context<'_>,
    name: &str,
    iterations: &[u64],
    runs: [Runs<'_>; 2],
) -> Result<(), Failure> {
    let last = iterations.len() - 1;
    let diverged = || Ours::none("every step size diverged");
    for (runs, momentum) in runs.iter().zip(MOMENTUM) {
        let what = format!("Momentum, {name}: final bound of smiso with momentum {momentum}");
        context.row(What::new(what, "nats"), |_| {
            Ok(runs.best(last).map_or_else(diverged, |(step, bounds)| {
                Ours::mean_of(&bounds).note(format!("best γ, {step:.3e}"))
            }))
        })?;
    }
    let [plain, pushed] = runs;
    // Points are proportional to the square root of the iteration: a sixteenth of the run, a quarter, and its end.
    for point in [last / 4, last / 2, last] {
        let what = format!(
            "Momentum, {name}: smiso with momentum {} above none after {} iterations",
            MOMENTUM[1], iterations[point]
        );
        context.row(What::new(what, "nats"), |_| {
            let Some(((slow, without), (fast, with))) = plain.best(point).zip(pushed.best(point))
            else {
                return Ok(diverged());
            };
            let pairs = with.iter().zip(&without);
            let gaps: Vec<f64> = pairs.map(|(with, without)| with - without).collect();
            let note = format!("best γ {fast:.3e} and {slow:.3e}, seed by seed");
            Ok(Ours::mean_of(&gaps).note(note))
        })?;
    }
    let what = format!(
        "Momentum, {name}: iterations of smiso without momentum over those in which momentum {} reaches its final bound",
        MOMENTUM[1]
    );
    context.row(What::new(what, ""), |_| {
        let mean = |bounds: &[f64]| bounds.iter().sum::<f64>() / bounds.len() as f64;
        let Some((_, level)) = plain.best(last) else {
            return Ok(diverged());
        };
        let seeds = level.len() as u64;
        let reaches = |point: &usize| {
            let best = pushed.best(*point);
            best.is_some_and(|(_, bounds)| mean(&bounds) >= mean(&level))
        };
        Ok(match (0..=last).find(reaches) {
            Some(point) => Ours::value(iterations[last] as f64 / iterations[point] as f64)
                .seeds(seeds)
                .note(format!("reached at iteration {}", iterations[point])),
            None => Ours::none("momentum did not reach it"),
        })
    })?;
    Ok(())
}

pub(super) fn sonar(context: &mut Context<'_>) -> Result<(), Failure> {
    task(context, "Sonar")
}

pub(super) fn australian(context: &mut Context<'_>) -> Result<(), Failure> {
    task(context, "Australian")
}
