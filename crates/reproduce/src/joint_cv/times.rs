//! Table 3 lists the time per iteration in milliseconds.

use std::collections::BTreeMap;
use std::sync::Arc;

use jensen::blackbox::Family;
use jensen::blackbox::family::MeanField;
use jensen::blackbox::minibatches::{Minibatch, Smiso};
use jensen::blackbox::records::{Batches, GradientRequest, Gradients, RecordEstimator};
use jensen::density::{Lanes, RecordDensity};
use jensen::run::Algorithm;

use super::runs::{Method, settings, smiso, start};
use super::tasks::{RecordModel, Task, with_density};
use super::traces::methods;
use crate::context::Context;
use crate::failure::Failure;
use crate::results::{Ours, What};

const BLOCK: u64 = 500;

type Advance<'a> = Box<dyn FnMut(u64) + 'a>;

fn advance<'a, D: RecordDensity>(
    density: &'a D,
    method: Method,
    task: &Task,
) -> Result<Advance<'a>, Failure> {
    fn going<'a, A: Algorithm + 'a>(mut fit: A) -> Result<Advance<'a>, Failure> {
        let mut state = fit
            .init()
            .map_err(|status| Failure::Method(status.to_string()))?;
        let mut iteration = 0;
        Ok(Box::new(move |count| {
            for _ in 0..count {
                iteration += 1;
                drop(fit.step(&mut state, iteration));
            }
        }))
    }
    let family = Arc::new(MeanField::new(density.dim()));
    let batch = task.batch;
    let omega = start(family.parameters(), 1, task.spread);
    match method {
        Method::Estimator(estimator, rule) => {
            // This step size is so small that the optimisation does not change the cost of an iteration.
            let settings = settings(estimator, rule, 1e-5, batch);
            going(Minibatch::new(density, family, 1, settings, omega)?)
        }
        Method::Smiso { .. } => going(Smiso::new(density, family, 1, smiso(1e-7, batch), omega)?),
    }
}

const CHUNK: u64 = 16;

/// Computes the time per iteration in milliseconds. The first argument contains the times of chunks of iterations. The
/// second argument contains the time of the first iteration of each epoch. In this iteration, `joint-svrg` passes over
/// all records. The function averages the fastest fifth of the chunks, because other programs on the machine can only
/// increase the time of a chunk. The first iteration of an epoch takes longer than the others. The function divides
/// this additional time by the number of iterations in an epoch and adds the quotient to the average.
fn milliseconds_of(mut chunks: Vec<f64>, firsts: &[f64], epoch: u64) -> f64 {
    chunks.sort_by(f64::total_cmp);
    chunks.truncate(chunks.len().div_ceil(5));
    let usual = chunks.iter().sum::<f64>() / (CHUNK as f64 * chunks.len() as f64);
    let first = firsts.iter().copied().fold(f64::INFINITY, f64::min);
    usual + (first - usual).max(0.0) / epoch as f64
}

/// Fills the tables of the estimators and then measures the times of all methods in alternation.
pub(super) fn milliseconds(
    context: &mut Context<'_>,
    task: &Task,
    model: &RecordModel,
) -> Result<BTreeMap<String, f64>, Failure> {
    context.keep(&format!("times-{}", task.name), |context| {
        context.say(format!("milliseconds per iteration of {}", task.name));
        let rounds = context.pick(2, 6);
        let scale = context.scale();
        with_density!(model, density => {
            let epoch = Batches::new(1, density.records(), task.batch)?.per_epoch() as u64;
            let mut fits = Vec::new();
            for method in methods(task, scale) {
                let mut advance = advance(density, method, task)?;
                advance(epoch);
                fits.push((method.name().to_owned(), advance, Vec::new(), Vec::new()));
            }
            let timed = |advance: &mut Advance<'_>, count: u64| {
                let begin = crate::now();
                advance(count);
                1e3 * begin.elapsed().as_secs_f64()
            };
            for _ in 0..rounds * BLOCK.div_ceil(epoch) {
                for (_, advance, chunks, firsts) in &mut fits {
                    context.check_stopped()?;
                    firsts.push(timed(advance, 1));
                    chunks.extend((0..(epoch - 1) / CHUNK).map(|_| timed(advance, CHUNK)));
                    advance((epoch - 1) % CHUNK);
                }
            }
            let of = |(name, _, chunks, firsts): (String, _, Vec<f64>, Vec<f64>)| {
                (name, milliseconds_of(chunks, &firsts, epoch))
            };
            Ok(fits.into_iter().map(of).collect())
        })
    })
}

const REPEATS: u32 = 3;

fn full<D: RecordDensity>(density: &D, estimator: RecordEstimator, spread: f64) -> f64 {
    let family: Arc<dyn Family> = Arc::new(MeanField::new(density.dim()));
    let omega = start(family.parameters(), 1, spread);
    let all: Vec<u32> = (0..density.records() as u32).collect();
    let mut gradients = Gradients::new(density, family, 1, all.len());
    let table = gradients.table(estimator);
    let mut noise = Vec::new();
    gradients.noise(1, 1, &mut noise);
    let mut out = vec![0.0; omega.len()];
    let request = GradientRequest {
        estimator,
        omega: &omega,
        noise: Lanes::new(&noise, omega.len() / 2, 1),
        batch: &all,
        visit: false,
    };
    let mut fastest = f64::INFINITY;
    for _ in 0..=REPEATS {
        let begin = crate::now();
        gradients.evaluate(&request, &table, &mut out);
        fastest = fastest.min(1e3 * begin.elapsed().as_secs_f64());
    }
    fastest
}

fn table3(context: &mut Context<'_>, name: &str) -> Result<(), Failure> {
    let task = Task::named(name)?;
    let Some(times) = &task.times else {
        return Ok(());
    };
    let model = (task.load)(context)?;
    let note = format!("the fastest fifth, {} threads", context.threads());
    for (name, ours) in milliseconds(context, task, &model)? {
        let paper = match (name.as_str(), task.name) {
            ("naive", _) => Some(times.naive),
            ("cv", _) => Some(times.cv),
            ("joint-svrg", "MovieLens") => Some(times.joint),
            ("joint", other) if other != "MovieLens" => Some(times.joint),
            _ => None,
        };
        let mut what = What::new(
            format!("Table 3, {}: an iteration of {name}", task.name),
            "milliseconds",
        );
        if let Some(paper) = paper {
            what = what.paper(paper);
        }
        context.row(what, |_| Ok(Ours::value(ours).note(&note)))?;
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
        context.row(what.paper(paper), |_| {
            let ours = with_density!(&model, density => full(density, estimator, task.spread));
            Ok(Ours::value(ours).note(&note))
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
    )
}

pub(super) fn mnist(context: &mut Context<'_>) -> Result<(), Failure> {
    table3(context, "MNIST")
}

pub(super) fn ppca(context: &mut Context<'_>) -> Result<(), Failure> {
    table3(context, "PPCA")
}

pub(super) fn tennis(context: &mut Context<'_>) -> Result<(), Failure> {
    table3(context, "Tennis")
}

pub(super) fn movielens(context: &mut Context<'_>) -> Result<(), Failure> {
    table3(context, "MovieLens")
}
