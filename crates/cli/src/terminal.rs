//! The parts of a fit job that the command adds to the library: threads, Ctrl-C, output and exit codes.

use std::num::NonZero;
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use jensen::Error;
use jensen::job::{Around, Judgement, MEMORY_LIMIT, ResultFolder, to_json};
use jensen::run::{Observer, Progress, Status};
use serde::Serialize;

use crate::failure::{CommandResult, Exit, Failure, print, remark};
use crate::limits;
use crate::progress::{Describe, Display};
use crate::verbose::{self, Steps};

/// Whether the user has pressed Ctrl-C.
pub static STOP: AtomicBool = AtomicBool::new(false);

const STACK: usize = 256 << 20;

/// Creates the thread pool. The stacks of its threads are large enough for the recursion of the interpreter. By
/// default, the pool has one thread per processor, because more threads would wait for each other.
pub fn start_threads(given: Option<usize>) -> Result<usize, Failure> {
    let all = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = given.map_or(all, |given| given.min(all));
    if let Some(more) = given.filter(|given| *given > all) {
        remark(&format!(
            "note: Jensen starts {all} threads instead of {more}, one for each processor of this machine"
        ));
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .stack_size(STACK)
        .build_global()
        .map_err(|error| {
            Failure::usage(format!(
                "cannot start {threads} threads with stacks of {} MiB: {error}: use fewer threads (--threads), \
                 or raise `ulimit -v` or `ulimit -u`; a stack takes memory only where it is used",
                STACK >> 20
            ))
        })?;
    Ok(threads)
}

/// Installs the handler of Ctrl-C. The first Ctrl-C stops the run during or after the current iteration, or the current
/// step of a reproduction. The second Ctrl-C ends the process immediately. Commands that have several parts call this
/// function several times.
pub fn catch_interrupts() {
    static ASKED: Once = Once::new();
    ASKED.call_once(set_handler);
}

fn set_handler() {
    let handler = || {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        remark(&format!(
            "warning: Ctrl-C will not stop gracefully: {error}"
        ));
    }
}

/// Rejects an interval of checkpoints if there is no folder to which they can be written.
pub fn check_out(out: Option<&Path>, checkpoint_every: Option<f64>) -> Result<(), Failure> {
    if out.is_none() && checkpoint_every.is_some() {
        return Err(Failure::usage(
            "--checkpoint-every needs a folder: add --out DIR",
        ));
    }
    Ok(())
}

/// What a command prints.
#[derive(Clone, Copy)]
pub struct Say {
    /// Whether standard output contains only the content of `fit.json`.
    pub json: bool,
    /// Whether nothing is printed.
    pub quiet: bool,
}

pub struct Setting {
    pub results: ResultFolder,
    /// The number of seconds between checkpoints, if the user specified it.
    pub checkpoint_every: Option<f64>,
    /// The memory limit of the run in bytes.
    pub memory_limit: u64,
    pub line: Box<dyn Describe>,
}

impl Setting {
    /// Creates the environment of a run. It has the default interval of checkpoints and the default memory limit.
    pub fn new(results: ResultFolder, line: Box<dyn Describe>) -> Self {
        Self {
            results,
            checkpoint_every: None,
            memory_limit: MEMORY_LIMIT,
            line,
        }
    }

    /// Calls `run`, and displays its progress until it has finished or is interrupted.
    pub fn watch<T>(
        self,
        say: Say,
        run: impl FnOnce(Around<'_>) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        catch_interrupts();
        limits::begin();
        let epoch = Instant::now();
        let clock = move || epoch.elapsed().as_secs_f64();
        let mut terminal = Terminal {
            display: Display::with(say.quiet || say.json || verbose::is_on(), self.line),
            steps: Steps::default(),
            quiet: say.quiet,
        };
        let made = run(Around {
            results: self.results,
            checkpoint_every: self.checkpoint_every,
            memory_limit: self.memory_limit,
            clock: &clock,
            cancel: Some(&STOP),
            partial: true,
            observer: &mut terminal,
        });
        terminal.display.clear();
        verbose::say(|| "results are made".to_owned());
        Ok(made?)
    }
}

struct Terminal {
    display: Display,
    steps: Steps,
    quiet: bool,
}

impl Observer for Terminal {
    fn progress(&mut self, progress: &Progress<'_>) {
        self.display.update(progress);
        self.steps.note(progress, self.display.describe());
    }

    fn note(&mut self, note: &str) {
        if !self.quiet {
            self.display.remark(&format!("warning: {note}"));
        }
    }

    fn finished(&mut self, status: &Status) {
        self.display.clear();
        self.steps.end();
        verbose::say(|| status.to_string());
    }
}

/// Formats the end of a fit and the notes on it as lines of a table. The labels have the given width.
pub fn verdict(judged: &Judgement, width: usize) -> String {
    let mut text = format!("{:<width$} {}\n", "status", judged.status);
    // If the status is a reason against the result, it is also among the warnings. Here it is printed only once.
    for warning in judged.warnings.iter().filter(|w| **w != judged.status) {
        text += &format!("{:<width$} - {warning}\n", "");
    }
    if let Some(baseline) = &judged.baseline {
        text += &format!("{:<width$} {}\n", "plain", baseline.text());
    }
    let word = match judged.trusted {
        true => "trusted",
        false => "NOT to be trusted",
    };
    text + &format!("{:<width$} {word}\n", "verdict")
}

/// Prints a summary, either as JSON or as a table whose labels have the given width. Returns the outcome.
pub fn conclude<T: Serialize>(
    summary: &T,
    trusted: bool,
    folder: Option<&Path>,
    say: Say,
    width: usize,
    table: impl FnOnce(&T) -> String,
) -> CommandResult {
    if say.json {
        print(&to_json(summary)?)?;
    } else if !say.quiet {
        print(&table(summary))?;
        if let Some(folder) = folder {
            print(&format!("{:<width$} {}\n", "results", folder.display()))?;
        }
    }
    Ok(if trusted { Exit::Done } else { Exit::Untrusted })
}
