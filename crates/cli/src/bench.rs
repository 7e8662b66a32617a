//! `jensen bench`.

use std::time::Instant;

use jensen::density::LogDensity;
use jensen::{DensityTiming, Problem, format_bytes, time_density};
use serde::Serialize;

use crate::args::{BenchCommand, BenchDensityArgs};
use crate::density::{Terms, build};
use crate::failure::{CommandResult, Exit, Failure, print};
use crate::table::seconds;

const SECONDS: f64 = 0.5;

/// The object that is printed. The names of its fields do not change between versions.
#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    timing: DensityTiming,
    build_seconds: f64,
    peak_bytes: usize,
    dim: usize,
    ops: usize,
}

pub fn run(command: &BenchCommand) -> CommandResult {
    let BenchCommand::Density(args) = command;
    density(args)
}

fn density(args: &BenchDensityArgs) -> CommandResult {
    let model = build(&args.model, args.data.path(), &args.build, Terms::ALL)?;
    let density = model.density();
    let epoch = Instant::now();
    let clock = move || epoch.elapsed().as_secs_f64();
    let answer = Answer {
        timing: time_density(density, args.lanes as usize, SECONDS, &clock),
        build_seconds: model.build_seconds(),
        peak_bytes: density.peak_bytes(),
        dim: density.dim(),
        ops: density.instructions(),
    };
    if args.json {
        let text = serde_json::to_string(&answer).map_err(Failure::output)?;
        print(&format!("{text}\n"))?;
        return Ok(Exit::Done);
    }
    let t = &answer.timing;
    print(&format!(
        "one thread, {} lanes, per draw\n\
         value       {}\n\
         gradient    {}\n\
         hvp         {}  (a further one at the same draws: {})\n\
         build       {}\n\
         memory      {}  (model, data and one block of draws)\n\
         dimension   {}\n\
         operations  {}  (of a gradient)\n",
        args.lanes,
        seconds(t.seconds_per_value),
        seconds(t.seconds_per_gradient),
        seconds(t.seconds_per_hvp),
        seconds(t.seconds_per_further_hvp),
        seconds(answer.build_seconds),
        format_bytes(answer.peak_bytes as u64),
        answer.dim,
        answer.ops
    ))?;
    Ok(Exit::Done)
}
