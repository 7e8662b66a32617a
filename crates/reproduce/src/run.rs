//! The function that runs the parts of an experiment.

use jensen::data::{RunDir, remove_files};

use crate::context::{Context, KEPT, RESULTS, SCRATCH, Setup, output};
use crate::experiment::Experiment;
use crate::failure::Failure;
use crate::results::{Results, What};

/// Runs the parts of an experiment in order and returns the final contents of `results.json`. Each row is written to
/// disk as soon as it has been measured.
///
/// If a part is not run, its row contains a note instead of a number. If a run ends early, the rows of all remaining
/// parts contain such a note. The function calls `say` with one line of progress for each event.
///
/// # Errors
/// Returns a [`Failure`] if the run ends early. The results that have already been measured remain in `results.json`.
pub fn run(
    experiment: &Experiment,
    setup: &Setup<'_>,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Results, Failure> {
    for name in &setup.only {
        let Some(part) = experiment.part(name) else {
            let names: Vec<&str> = experiment.parts.iter().map(|part| part.name).collect();
            return Err(Failure::Usage(format!(
                "{} has no part `{name}`; its parts are {}",
                experiment.name,
                names.join(", ")
            )));
        };
        if !part.runs_at(setup.scale) {
            return Err(Failure::Usage(format!(
                "`{name}` has no quick version: add --scale paper"
            )));
        }
    }
    let command = format!("reproduce {}", experiment.name);
    let folder = RunDir::create(&setup.out, &command).map_err(output)?;
    let results_path = folder.path().join(RESULTS);
    let mut results = Results {
        experiment: experiment.name.to_owned(),
        machine: setup.machine.clone(),
        rows: Vec::new(),
    };
    if setup.resume {
        if let Some(stored) = Results::read(&results_path)? {
            results.rows = stored.rows;
        }
    } else {
        remove_files(&folder.path().join(KEPT), "json").map_err(output)?;
        // These files are checkpoints of runs that have not ended.
        remove_files(&folder.path().join(SCRATCH), "safetensors").map_err(output)?;
    }
    // If a part was started or omitted, it has a row that states this until the part is complete.
    let begun = results.rows.iter().any(|row| row.scale == setup.scale);
    let complete: Vec<&str> = experiment
        .parts
        .iter()
        .filter(|part| begun && results.find(&part.placeholder(), setup.scale).is_none())
        .map(|part| part.name)
        .collect();
    let mut context = Context::new(setup, experiment.data, folder, results, say);
    let asked_for =
        |name: &str| setup.only.is_empty() || setup.only.iter().any(|only| only == name);
    for part in experiment.parts {
        let why = if complete.contains(&part.name) {
            continue;
        } else if !part.runs_at(setup.scale) {
            "it has no quick version; use --scale paper"
        } else if !asked_for(part.name) {
            "excluded by --only"
        } else {
            "the run ended before it was complete"
        };
        context.not_run(What::new(part.placeholder(), ""), why)?;
    }
    for part in experiment.parts {
        if asked_for(part.name) && part.runs_at(setup.scale) {
            context.say(format!("{}: {}", part.name, part.about));
            (part.run)(&mut context)?;
            context.now_run(&part.placeholder())?;
        }
    }
    Ok(context.into_results())
}
