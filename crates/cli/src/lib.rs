//! The `jensen` command, which is a thin interface to the library `jensen`.
//!
//! | file | subject |
//! | --- | --- |
//! | `args`, `help` | the command line and its help |
//! | `input`, `failure`, `fault` | reading files, messages and exit codes, truncated files and exhausted memory |
//! | `terminal`, `progress` | the common parts of long runs: threads, Ctrl-C, display, exit codes |
//! | `limits` | limits on the interpreter: time, memory, Ctrl-C |
//! | `fit`, `table` | `jensen fit` and its output |
//! | `regress` | `jensen regress`: formulas over tables |
//! | `calibrate` | ranks of the true values of simulated data |
//! | `fit_many` | many fits, with one row of a table each |
//! | `topics` | `jensen topics`: corpora and topic models |
//! | `points` | `jensen mixture` and `jensen factors` |
//! | `hmm` | `jensen hmm` |
//! | `analysis` | `jensen factor-analysis` |
//! | `latent` | `jensen latent`: latent Gaussian models of tables |
//! | `vae` | `jensen vae`: auto-encoders of images and tables |
//! | `rows` | destinations of records and tables: pictures, NPY, CSV, standard output |
//! | `left_out` | messages about commands that a build does not contain |
//! | `draws`, `compare`, `check`, `density`, `show`, `reproduce`, `bench` | the other commands |

// Builds that lack some of the commands do not use all of the code that the commands share.
#![cfg_attr(not(feature = "full"), allow(dead_code, unused_imports))]

#[cfg(feature = "latent")]
mod analysis;
mod args;
mod bench;
mod calibrate;
mod check;
mod compare;
mod density;
mod draws;
mod failure;
mod fault;
mod fit;
mod fit_many;
mod help;
#[cfg(feature = "mixture")]
mod hmm;
mod input;
#[cfg(feature = "latent")]
mod latent;
mod left_out;
mod limits;
#[cfg(feature = "mixture")]
mod points;
mod progress;
mod regress;
#[cfg(feature = "reproduce")]
mod reproduce;
#[cfg(any(feature = "vae", feature = "mixture", feature = "topics"))]
mod rows;
mod show;
mod table;
#[cfg(any(feature = "mixture", feature = "latent"))]
mod table_fit;
mod terminal;
#[cfg(feature = "topics")]
mod topics;
#[cfg(feature = "vae")]
mod vae;
mod verbose;

use std::ffi::OsString;

use clap::{ArgMatches, CommandFactory, FromArgMatches};

pub use crate::fault::Memory;

use crate::args::{Command, CompletionsArgs, Line};
use crate::failure::{CommandResult, Exit, Failure};

/// The stack size of the thread that runs the command. It is so large that deeply nested programs reach the limit on
/// their depth before the stack overflows. Only the part of a stack that has been used occupies memory.
const STACK: usize = 512 << 20;

/// Returns the declaration of the command line.
pub fn command() -> clap::Command {
    help::flowing(Line::command())
}

/// Runs the command and returns its exit code. The first of the arguments is the name of the command.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    std::panic::set_hook(Box::new(failure::report_panic));
    guarded(move || called(arguments))
}

/// Runs `work` on a thread with a large stack and returns its exit code. The stack of the main thread may be too small,
/// because its size depends on `ulimit -s`. If `work` panics, the panic hook has already reported it.
fn guarded(work: impl FnOnce() -> u8 + Send + 'static) -> u8 {
    let worker = std::thread::Builder::new()
        .name("jensen".into())
        .stack_size(STACK)
        .spawn(work);
    match worker {
        Ok(worker) => worker.join().unwrap_or(Exit::Internal as u8),
        Err(error) => {
            let failure = Failure::usage(format!(
                "cannot start a thread with a stack of {} MiB: {error}: raise `ulimit -v` and `ulimit -u`; a \
                 stack takes memory only where it is used",
                STACK >> 20
            ));
            failure.report();
            failure.exit as u8
        }
    }
}

/// Runs a command line and returns its exit code. If JSON was requested, failures are also printed to standard output.
fn called(arguments: Vec<OsString>) -> u8 {
    let read = command().try_get_matches_from(arguments);
    let read = read.and_then(|all| Ok((wants_json(&all), Line::from_arg_matches(&all)?)));
    let (json, line) = match read {
        Ok(read) => read,
        Err(error) => return left_out::refuse(error),
    };
    fault::catch_signals_of_files();
    fault::keep_memory();
    verbose::set(line.verbose);
    let exit = run(line.command).unwrap_or_else(|failure| {
        failure.report();
        if json {
            // The reader may have closed the pipe, so an error is ignored.
            let _ = failure::print(&failure.to_json());
        }
        failure.exit
    });
    match exit {
        Exit::Untrusted if line.exit_zero => Exit::Done as u8,
        exit => exit as u8,
    }
}

fn wants_json(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some((_, inner)) => wants_json(inner),
        None => matches!(matches.try_get_one::<bool>("json"), Ok(Some(true))),
    }
}

fn run(command: Command) -> CommandResult {
    match command {
        Command::Fit(args) => fit::run(*args),
        Command::Regress(args) => regress::run(*args),
        Command::FitMany(args) => fit_many::run(&args),
        Command::Draws(args) => draws::run(&args),
        Command::Generate(args) => draws::generate(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Density(args) => density::run(&args),
        Command::Show(args) => show::run(&args),
        #[cfg(feature = "reproduce")]
        Command::Reproduce(args) => reproduce::run(&args),
        #[cfg(feature = "topics")]
        Command::Topics(command) => topics::run(*command),
        #[cfg(feature = "mixture")]
        Command::Mixture(command) => points::mixture(command),
        #[cfg(feature = "mixture")]
        Command::Factors(command) => points::factors(command),
        #[cfg(feature = "mixture")]
        Command::Hmm(command) => hmm::run(command),
        #[cfg(feature = "latent")]
        Command::FactorAnalysis(command) => analysis::run(command),
        #[cfg(feature = "latent")]
        Command::Latent(command) => latent::run(*command),
        #[cfg(feature = "vae")]
        Command::Vae(command) => vae::run(*command),
        Command::Bench(args) => bench::run(&args),
        Command::Completions(args) => completions(&args),
    }
}

fn completions(args: &CompletionsArgs) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Line::command(), "jensen", &mut script);
    failure::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_as_an_internal_error() {
        let panics = || -> u8 { panic!("expected by this test") };
        assert_eq!(guarded(panics), Exit::Internal as u8);
        assert_eq!(guarded(|| Exit::Untrusted as u8), Exit::Untrusted as u8);
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Line::command().debug_assert();
    }
}
