//! The estimator as printed: `joint-paper` compared with `naive`, `joint-mean` and `joint`.

use jensen::blackbox::records::RecordEstimator;

use super::runs::Method;
use super::tasks::{ADAM_STEPS, SGD_STEPS, Task};
use super::traces::{Lineup, drawn};
use crate::context::Context;
use crate::failure::Failure;

const ESTIMATORS: [RecordEstimator; 4] = [
    RecordEstimator::Naive,
    RecordEstimator::Joint,
    RecordEstimator::JointMean,
    RecordEstimator::JointPaper,
];

/// The number of seeds of tasks for which Figure 3 has fewer.
const SEEDS: u64 = 3;

/// Returns the step sizes that were best for some estimator in the runs of Figure 3, and their neighbours.
fn steps(task: &Task) -> &'static [f64] {
    match task.name {
        _ if task.small => &SGD_STEPS[6..9],
        "Tennis" => &ADAM_STEPS[3..5],
        _ => &ADAM_STEPS[2..4],
    }
}

fn lineup(task: &Task) -> Lineup {
    let method = |estimator| {
        (
            Method::Estimator(estimator, task.rule()),
            steps(task).to_vec(),
        )
    };
    Lineup {
        methods: ESTIMATORS.into_iter().map(method).collect(),
        seeds: task.seeds.max(SEEDS),
        // The runs are the same as those of Figure 3.
        runs: "figure3",
        names: ["As printed", "printed"],
    }
}

fn task(context: &mut Context<'_>, name: &str) -> Result<(), Failure> {
    let task = Task::named(name)?;
    drawn(context, task, &lineup(task))
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

#[cfg(test)]
mod tests {
    use super::super::tasks::TASKS;
    use super::super::traces::methods;
    use super::*;
    use crate::results::Scale;

    #[test]
    fn the_runs_as_printed_are_among_those_of_figure_3() {
        for task in &TASKS {
            let all = methods(task, Scale::Paper);
            let lineup = lineup(task);
            assert!(lineup.seeds >= task.seeds && lineup.seeds >= 3);
            for (method, steps) in lineup.methods {
                assert!(all.contains(&method), "{}: {}", task.name, method.name());
                assert!(steps.len() >= 2, "{}", task.name);
            }
        }
    }
}
