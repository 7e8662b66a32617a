//! Figure 5 shows the joint control variate in its general form, applied to softmax regression with Gaussian dropout.

use jensen::blackbox::records::{
    DoublyStochastic, Generic, GenericSettings, GenericState, RecordEstimator,
};
use jensen::blackbox::{Optimiser, Rule, Schedule};
use jensen::glm::{Dense, GaussianDropout};
use jensen::report::figure::{Axis, Chart, Figure, Series};
use jensen::run::Algorithm;

use super::tasks::{PIXELS, digits};
use crate::context::Context;
use crate::failure::Failure;
use crate::results::{Ours, What};

struct Plan {
    estimator: RecordEstimator,
    step_size: f64,
}

/// Returns the loss at several points of the run. If the run diverges, the list ends at that point.
fn descend(
    objective: &GaussianDropout,
    plan: &Plan,
    epochs: u64,
    stopped: &(dyn Fn() -> Result<(), Failure> + Sync),
) -> Result<Vec<(f64, f64)>, Failure> {
    let (estimator, step_size) = (plan.estimator, plan.step_size);
    let settings = GenericSettings {
        estimator,
        optimiser: Optimiser {
            rule: Rule::Sgd,
            step_size,
            schedule: Schedule::Constant,
        },
        batch: 100,
        warm_up: 1,
        memory_limit: None,
    };
    let mut run = Generic::new(objective, 1, settings, vec![0.0; 10 * PIXELS])?;
    let mut state: GenericState = run
        .init()
        .map_err(|status| Failure::Method(status.to_string()))?;
    let mut curve = Vec::new();
    let (mut iteration, epoch) = (0, DoublyStochastic::records(objective).div_ceil(100) as u64);
    for _ in 0..2 * epochs {
        stopped()?;
        for _ in 0..epoch / 2 {
            iteration += 1;
            if run.step(&mut state, iteration).status.is_some() {
                return Ok(curve);
            }
        }
        curve.push((iteration as f64, objective.loss(state.w())));
    }
    Ok(curve)
}

pub(super) fn figure5(context: &mut Context<'_>) -> Result<(), Failure> {
    let estimators = [
        RecordEstimator::Naive,
        RecordEstimator::Cv,
        RecordEstimator::Joint,
    ];
    let steps = context.pick(vec![0.5, 0.1], vec![1.0, 0.5, 0.25, 0.1, 0.05, 0.01]);
    let plans: Vec<Plan> = steps
        .iter()
        .flat_map(|&step_size| {
            estimators.map(|estimator| Plan {
                estimator,
                step_size,
            })
        })
        .collect();
    let (mut images, mut labels) = digits(context)?;
    let records = context.pick(5_000, 60_000);
    images.truncate(records * PIXELS);
    labels.truncate(records);
    let scale = vec![1.0 / 255.0; PIXELS];
    let features = Dense::bytes(images, vec![0.0; PIXELS], scale)?;
    let objective = GaussianDropout::new(features, labels, 10, 0.5f64.sqrt())?;
    // The table of the control variate is outdated for some epochs, so its advantage appears only after these epochs.
    let epochs = context.pick(30, 100);
    let stopped = context.stopper();
    let curves = context.keep_each(
        &plans,
        |plan| format!("figure5-{}-{}", plan.estimator, plan.step_size),
        |plan| descend(&objective, plan, epochs, &stopped),
    )?;
    let mut figure = Figure::new("Softmax regression on MNIST with Gaussian dropout").columns(2);
    let of_step = plans.chunks(estimators.len());
    for (plans, curves) in of_step.zip(curves.chunks(estimators.len())) {
        let step = plans[0].step_size;
        let mut chart = Chart::new(format!("step size {step}"))
            .x(Axis::new("iteration"))
            .y(Axis::new("loss (nats)"));
        for (plan, curve) in plans.iter().zip(curves) {
            let estimator = plan.estimator;
            let what = format!("Figure 5: loss of {estimator} at the end, step size {step}");
            context.row(What::new(what, "nats"), |_| {
                let ended = curve.last().filter(|_| curve.len() as u64 == 2 * epochs);
                Ok(match ended {
                    Some((_, loss)) => Ours::value(*loss)
                        .seeds(1)
                        .note("pixels of MNIST replace the features of CIFAR-10"),
                    None => Ours::none("diverged"),
                })
            })?;
            chart = chart.series(Series::line(estimator.name(), curve.clone()));
        }
        figure = figure.panel(chart);
    }
    context.figure("figure5", &figure)
}
