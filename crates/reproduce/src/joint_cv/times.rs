//! Table 3: milliseconds an iteration.

use std::sync::Arc;
use std::time::Instant;

use jensen::blackbox::family::MeanField;
use jensen::blackbox::records::{Gradients, Minibatch, RecordEstimator, Request};
use jensen::blackbox::{Family, Rule};
use jensen::density::{Lanes, RecordDensity};
use jensen::run::Algorithm;

use super::runs::{settings, start};
use super::tasks::{TASKS, with_density};
use crate::context::Context;
use crate::failure::Failure;
use crate::results::{Ours, What};

/// Milliseconds an iteration of a fit, once its table is full.
fn iteration<D: RecordDensity>(
    context: &Context<'_>,
    density: &D,
    estimator: RecordEstimator,
    batch: usize,
    iterations: u64,
) -> Result<f64, Failure> {
    let rule: Rule = "adam".parse().map_err(Failure::Method)?;
    let family = Arc::new(MeanField::new(density.dim()));
    let omega = start(family.parameters(), 1);
    let settings = settings(estimator, rule, 1e-2, batch);
    let mut fit = Minibatch::new(density, family, 1, settings, omega)?;
    let mut state = fit
        .init()
        .map_err(|status| Failure::Method(status.to_string()))?;
    let epoch = fit.batches().per_epoch() as u64;
    let warm = if estimator.remembers() { epoch } else { 10 };
    for t in 1..=warm {
        context.check_stopped()?;
        drop(fit.step(&mut state, t));
    }
    let begin = Instant::now();
    for t in warm + 1..=warm + iterations {
        drop(fit.step(&mut state, t));
    }
    Ok(1e3 * begin.elapsed().as_secs_f64() / iterations as f64)
}

/// Milliseconds of a gradient from all records.
fn full<D: RecordDensity>(density: &D, estimator: RecordEstimator, repeats: u32) -> f64 {
    let family: Arc<dyn Family> = Arc::new(MeanField::new(density.dim()));
    let omega = start(family.parameters(), 1);
    let all: Vec<u32> = (0..density.records() as u32).collect();
    let mut gradients = Gradients::new(density, family, 1, all.len());
    let table = gradients.table(estimator);
    let mut noise = Vec::new();
    gradients.noise(1, 1, &mut noise);
    let mut out = vec![0.0; omega.len()];
    let request = Request {
        estimator,
        omega: &omega,
        noise: Lanes::new(&noise, omega.len() / 2, 1),
        batch: &all,
        visit: false,
    };
    gradients.evaluate(&request, &table, &mut out);
    let begin = Instant::now();
    for _ in 0..repeats {
        gradients.evaluate(&request, &table, &mut out);
    }
    1e3 * begin.elapsed().as_secs_f64() / f64::from(repeats)
}

/// Table 3.
pub(super) fn table3(context: &mut Context<'_>) -> Result<(), Failure> {
    for task in &TASKS {
        let Some(times) = &task.times else { continue };
        let mut model = None;
        let mini = [
            (RecordEstimator::Naive, Some(times.naive)),
            (RecordEstimator::Cv, Some(times.cv)),
            (
                RecordEstimator::Joint,
                (task.name != "MovieLens").then_some(times.joint),
            ),
            (
                RecordEstimator::JointSvrg,
                (task.name == "MovieLens").then_some(times.joint),
            ),
        ];
        for (estimator, paper) in mini {
            let mut what = What::new(
                format!("Table 3, {}: an iteration of {estimator}", task.name),
                "milliseconds",
            );
            if let Some(paper) = paper {
                what = what.paper(paper);
            }
            context.row(what, |context| {
                let model = loaded(&mut model, task, context)?;
                let iterations = context.pick(200, 1000);
                let ours = with_density!(model, density => {
                    iteration(context, density, estimator, task.batch, iterations)?
                });
                Ok(Ours::value(ours).note(format!("{} threads", context.threads())))
            })?;
        }
        let whole = [
            (RecordEstimator::Naive, times.full_naive),
            (RecordEstimator::Cv, times.full_cv),
        ];
        for (estimator, paper) in whole {
            let what = What::new(
                format!(
                    "Table 3, {}: a full-batch gradient of {estimator}",
                    task.name
                ),
                "milliseconds",
            );
            context.row(what.paper(paper), |context| {
                let model = loaded(&mut model, task, context)?;
                let ours = with_density!(model, density => full(density, estimator, 3));
                Ok(Ours::value(ours).note(format!("{} threads", context.threads())))
            })?;
        }
        let mut what = What::new(
            format!("Table 3, {}: an iteration of inc", task.name),
            "milliseconds",
        );
        if let Some(paper) = times.inc {
            what = what.paper(paper);
        }
        context.not_run(
            what,
            "the estimator is refused beyond 10 000 records: it passes over all of them",
        )?;
    }
    Ok(())
}

fn loaded<'m>(
    model: &'m mut Option<super::tasks::Model>,
    task: &super::tasks::Task,
    context: &Context<'_>,
) -> Result<&'m super::tasks::Model, Failure> {
    if model.is_none() {
        *model = Some((task.load)(context)?);
    }
    model
        .as_ref()
        .ok_or_else(|| Failure::Method(format!("{} has no model", task.name)))
}
