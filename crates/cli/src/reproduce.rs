//! `jensen reproduce`.

use std::path::PathBuf;

use jensen::math::simd::Simd;
use jensen_reproduce::{
    EXPERIMENTS, Experiment, Failure as Ended, Scale, Setup, find, run as start,
};

use crate::args::{ReproduceArgs, ScaleName};
use crate::failure::{CommandResult, Exit, Failure, print, remark};
use crate::terminal::{STOP, catch_interrupts, start_threads};

pub fn run(args: &ReproduceArgs) -> CommandResult {
    let name = match args.name.as_deref() {
        None => return list(),
        Some(name) if name.eq_ignore_ascii_case("list") => return list(),
        Some(name) => name,
    };
    let Some(experiment) = find(name) else {
        let names: Vec<&str> = EXPERIMENTS.iter().map(|e| e.name).collect();
        return Err(Failure::usage(format!(
            "there is no reproduction `{name}`; choose {}",
            names.join(", ")
        )));
    };
    let threads = start_threads(args.threads)?;
    catch_interrupts();
    let setup = Setup {
        data: args.data.clone().unwrap_or_else(|| PathBuf::from("data")),
        out: args
            .out
            .clone()
            .unwrap_or_else(|| PathBuf::from("reproductions").join(experiment.name)),
        corpus: args.corpus.clone(),
        models: args.models.clone(),
        scale: match args.scale {
            ScaleName::Quick => Scale::Quick,
            ScaleName::Paper => Scale::Paper,
        },
        only: args.only.clone(),
        resume: args.resume,
        threads,
        machine: machine(threads),
        cancel: Some(&STOP),
    };
    let mut say = |line: &str| {
        if !args.quiet {
            remark(line);
        }
    };
    match start(experiment, &setup, &mut say) {
        Ok(_) => {
            print(&format!("results  {}\n", setup.out.display()))?;
            Ok(Exit::Done)
        }
        Err(Ended::Stopped) => {
            remark(&Ended::Stopped.to_string());
            Ok(Exit::Untrusted)
        }
        Err(Ended::Data(message)) => Err(Failure::input(message)),
        Err(error @ (Ended::Usage(_) | Ended::Output(_))) => Err(Failure::usage(error.to_string())),
        Err(error) => Err(Failure::input(error.to_string())),
    }
}

fn list() -> CommandResult {
    let text: String = EXPERIMENTS.iter().map(listed).collect();
    print(&text)?;
    Ok(Exit::Done)
}

fn listed(experiment: &Experiment) -> String {
    let width = experiment.parts.iter().map(|p| p.name.len()).max();
    let width = width.unwrap_or(0);
    let mut text = format!("{}  {}\n", experiment.name, experiment.about);
    for part in experiment.parts {
        let slow = match part.from {
            Scale::Quick => "",
            Scale::Paper => " (--scale paper only)",
        };
        text += &format!("    {:<width$}  {}{slow}\n", part.name, part.about);
    }
    text += &format!("    data: {}\n\n", experiment.data);
    text
}

/// Describes the machine in one line, which contains the processor, the number of threads, the instruction set and the
/// version.
fn machine(threads: usize) -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or(std::env::consts::ARCH, |(_, name)| name.trim());
    format!(
        "{processor}, {threads} threads, {}, {}, jensen {}",
        Simd::detect().name(),
        std::env::consts::OS,
        env!("CARGO_PKG_VERSION")
    )
}
