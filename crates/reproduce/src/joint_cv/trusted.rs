//! TrustVI with the joint control variate. Neither paper combines the two.

use std::sync::Arc;

use jensen::blackbox::family::MeanField;
use jensen::blackbox::minibatches::Judge;
use jensen::blackbox::records::RecordEstimator;
use jensen::blackbox::{Family, MethodState as _, NoiseSource, Subsampled, Trust, TrustSettings};
use jensen::math::simd::Simd;
use jensen::run::Algorithm;
use serde::{Deserialize, Serialize};

use super::runs::{Method, Plan, bound, run, start};
use super::tasks::{RecordModel, SGD_STEPS, Task, with_density};
use crate::context::Context;
use crate::failure::Failure;
use crate::results::{Ours, What};

/// The number of seeds at the quick scale. At the scale of the paper, the task states it.
const SEEDS: u64 = 3;

/// The largest number of iterations of TrustVI. It is a cap, because every run ends by its stopping rule.
const MOST: u64 = 2000;

/// A number of a run.
type Number<'a> = &'a dyn Fn(&End) -> f64;

/// The end of a run of TrustVI.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct End {
    bound: f64,
    iterations: u64,
    /// The number of evaluations of single records, divided by the number of records. A product counts as two
    /// evaluations.
    passes: f64,
    converged: bool,
}

fn trust(
    model: &RecordModel,
    task: &Task,
    seed: u64,
    controlled: bool,
    stopped: &(dyn Fn() -> Result<(), Failure> + Sync),
) -> Result<End, Failure> {
    with_density!(model, density => {
        let family: Arc<dyn Family> = Arc::new(MeanField::new(model.size().1));
        let source = NoiseSource::new(seed, Simd::detect());
        let subsampled = Subsampled::new(density, task.batch, source)
            .map_err(|error| Failure::Method(error.to_string()))?;
        let settings = TrustSettings {
            tolerance: Some(Judge::default().tolerance),
            ..TrustSettings::default()
        };
        let omega = start(family.parameters(), seed, task.spread);
        let mut algorithm = Trust::on_records(&subsampled, family, source, settings, omega, 0);
        if controlled {
            algorithm = algorithm.controlled();
        }
        let failed = |status| Failure::Method(format!("{status}"));
        let mut state = algorithm.init().map_err(failed)?;
        let (mut converged, mut iterations) = (false, 0);
        while iterations < MOST {
            stopped()?;
            iterations += 1;
            if let Some(status) = algorithm.step(&mut state, iterations).status {
                converged = status.is_converged();
                break;
            }
        }
        let each = if controlled { 4 } else { 1 } * task.batch as u64;
        let passes = (state.calls().lanes() * each) as f64 / model.size().0 as f64;
        Ok(End {
            bound: bound(model, state.omega(), 1, seed),
            iterations,
            passes,
            converged,
        })
    })
}

fn task(context: &mut Context<'_>, name: &str) -> Result<(), Failure> {
    let task = Task::named(name)?;
    let model = (task.load)(context)?;
    let seeds = context.pick(SEEDS, task.seeds);
    let stopped = context.stopper();
    let runs: Vec<(u64, bool)> = (1..=seeds)
        .flat_map(|seed| [(seed, false), (seed, true)])
        .collect();
    let ends: Vec<End> = context.keep_each(
        &runs,
        |(seed, controlled)| format!("trust-{name}-{controlled}-{seed}"),
        |(seed, controlled)| trust(&model, task, *seed, *controlled, &stopped),
    )?;
    let of = |controlled: bool, number: Number<'_>| -> Vec<f64> {
        let own = runs
            .iter()
            .zip(&ends)
            .filter(|(run, _)| run.1 == controlled);
        own.map(|(_, end)| number(end)).collect()
    };
    for (controlled, words) in [
        (false, "minibatches alone"),
        (true, "the joint control variate"),
    ] {
        let rows: [(&str, &str, Number<'_>); 3] = [
            ("final bound", "nats", &|end| end.bound),
            ("passes over the data", "", &|end| end.passes),
            ("iterations", "", &|end| end.iterations as f64),
        ];
        let converged = of(controlled, &|end| f64::from(u8::from(end.converged)));
        let note = format!(
            "{} of {seeds} runs converged",
            converged.iter().sum::<f64>()
        );
        for (quantity, unit, number) in rows {
            let what = format!("TrustVI, {name}, {words}: {quantity}");
            context.row(What::new(what, unit), |_| {
                Ok(Ours::mean_of(&of(controlled, number)).note(note.clone()))
            })?;
        }
    }
    let gaps = of(true, &|end| end.bound);
    let gaps: Vec<f64> = (gaps.iter().zip(of(false, &|end| end.bound)))
        .map(|(with, without)| with - without)
        .collect();
    let what =
        format!("TrustVI, {name}: final bound with the joint control variate above that without");
    context.row(What::new(what, "nats"), |_| {
        Ok(Ours::mean_of(&gaps).note("seed by seed"))
    })?;
    against_gradients(context, task, &model, seeds, &of(true, &|end| end.bound))
}

/// Compares the final bounds of TrustVI with those of stochastic gradients with the same control variate.
fn against_gradients(
    context: &mut Context<'_>,
    task: &Task,
    model: &RecordModel,
    seeds: u64,
    bounds: &[f64],
) -> Result<(), Failure> {
    let name = task.name;
    let (records, epochs) = (model.size().0, context.pick(task.epochs[0], task.epochs[1]));
    let plans: Vec<Plan> = (SGD_STEPS[6..9].iter())
        .flat_map(|&step| (1..=seeds).map(move |seed| (step, seed)))
        .map(|(step, seed)| Plan {
            method: Method::Estimator(RecordEstimator::JointSvrg, task.rule()),
            step,
            batch: task.batch,
            spread: task.spread,
            iterations: epochs * records.div_ceil(task.batch) as u64,
            points: 2,
            draws: 1,
            seed,
        })
        .collect();
    let stopped = context.stopper();
    let traces = context.keep_each(
        &plans,
        |plan| format!("trust-{name}-joint-svrg-{:e}-{}", plan.step, plan.seed),
        |plan| run(model, plan, &stopped),
    )?;
    let last = |trace: &super::runs::Trace| trace.elbo.last().copied().flatten();
    let ends: Vec<Vec<f64>> = (traces.chunks(seeds as usize))
        .filter_map(|traces| traces.iter().map(last).collect())
        .collect();
    let mean = |bounds: &Vec<f64>| bounds.iter().sum::<f64>() / bounds.len() as f64;
    let best = ends.iter().max_by(|a, b| mean(a).total_cmp(&mean(b)));
    let what = format!(
        "TrustVI, {name}: final bound with the joint control variate above that of joint-svrg"
    );
    context.row(What::new(what, "nats"), |_| {
        let Some(best) = best else {
            return Ok(Ours::none("every step size of joint-svrg diverged"));
        };
        let gaps: Vec<f64> = bounds.iter().zip(best).map(|(a, b)| a - b).collect();
        Ok(Ours::mean_of(&gaps).note(format!(
            "{epochs} epochs of joint-svrg, best of three step sizes"
        )))
    })?;
    Ok(())
}

pub(super) fn sonar(context: &mut Context<'_>) -> Result<(), Failure> {
    task(context, "Sonar")
}

pub(super) fn australian(context: &mut Context<'_>) -> Result<(), Failure> {
    task(context, "Australian")
}
