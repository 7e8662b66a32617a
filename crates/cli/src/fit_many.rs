//! `jensen fit-many`.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jensen::data::read_text;
use jensen::fit_many::{self, FitRow, Fits, Given, Ledger, TABLE, Task};
use jensen::stan::Halt;

use crate::args::FitManyArgs;
use crate::failure::{CommandResult, Exit, Failure, print, remark};
use crate::limits;
use crate::terminal::{STOP, catch_interrupts};

/// The stack size of the threads that run the interpreter. Only the part of a stack that has been used occupies memory.
const STACK: usize = 256 << 20;

/// The time that a fit may take for computing its draws after the time limit has been reached.
const GRACE: Duration = Duration::from_millis(700);

pub fn run(args: &FitManyArgs) -> CommandResult {
    refuse_foreign(args)?;
    let seeds = match &args.seeds {
        Some(text) => {
            fit_many::seeds(text).map_err(|error| Failure::usage(format!("--seeds {error}")))?
        }
        None => vec![args.request.seed()],
    };
    let named = args.data.iter().map(|path| Given {
        name: path.display().to_string(),
        text: None,
    });
    let text = read_text(&args.model)?;
    let name = args.model.display().to_string();
    let fits = Fits::new(&name, &text, &args.include, args.request.clone())?;
    let tasks = fit_many::tasks(&named.collect::<Vec<_>>(), &seeds)?;
    let mut ledger = Ledger::open(&args.out, &fits)?;
    catch_interrupts();
    let pending = ledger.pending(&tasks);
    let all = || std::thread::available_parallelism().map_or(1, NonZero::get);
    let workers = args.workers.unwrap_or_else(all).min(pending.len().max(1));
    let bar = progress(args.quiet, tasks.len(), tasks.len() - pending.len());
    let recorded = work(&fits, &tasks, &pending, workers, |row| {
        bar.inc(1);
        ledger.record(row)
    });
    bar.finish_and_clear();
    // The rows that exist are written as a table, regardless of what stopped the other fits.
    let rows = ledger.write_table(&tasks)?;
    recorded?;
    conclude(args, &rows, tasks.len())
}

fn refuse_foreign(args: &FitManyArgs) -> Result<(), Failure> {
    for (flag, given) in [
        (
            "--checkpoint-every",
            args.request.checkpoint_every.is_some(),
        ),
        ("--trace-variance", args.request.trace_variance.is_some()),
    ] {
        if given {
            return Err(Failure::usage(format!(
                "{flag} applies to a single fit: use `jensen fit`"
            )));
        }
    }
    Ok(())
}

/// Creates a progress bar on standard error. `length` is the number of fits, and `done` is the number that have
/// finished.
pub fn progress(quiet: bool, length: usize, done: usize) -> ProgressBar {
    let target = match quiet {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr(),
    };
    let bar = ProgressBar::with_draw_target(Some(length as u64), target);
    bar.set_style(ProgressStyle::default_bar());
    bar.set_position(done as u64);
    bar
}

/// Fits the pending tasks with the given number of workers. Rows are recorded in the order in which the fits finish.
pub fn work(
    fits: &Fits,
    tasks: &[Task],
    pending: &[usize],
    workers: usize,
    mut record: impl FnMut(FitRow) -> Result<(), jensen::Error>,
) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    let (sender, rows) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            // Each fit has its own thread pool, so that it never waits for work that belongs to another fit.
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(1)
                .stack_size(STACK)
                .build()
                .map_err(|error| Failure::usage(format!("cannot start threads: {error}")))?;
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some(&at) = pending.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let row = pool.install(|| row(fits, &tasks[at]));
                    let sent = row.is_some_and(|row| sender.send(row).is_ok());
                    if STOP.load(Ordering::Relaxed) || !sent {
                        break;
                    }
                }
            });
        }
        drop(sender);
        // If a row cannot be stored, the work ends, because the workers can no longer send their rows.
        rows.into_iter().try_for_each(&mut record)?;
        Ok(())
    })
}

/// Fits one task and returns its row. If the fit panics, only this row is affected.
fn row(fits: &Fits, task: &Task) -> Option<FitRow> {
    let begun = Instant::now();
    let limit = fits.request.max_seconds;
    let halt = Halt::new(move || {
        let late = limit.filter(|limit| begun.elapsed() > Duration::from_secs_f64(*limit) + GRACE);
        match late {
            Some(limit) => Some(format!("ended by --max-seconds {limit}")),
            None => STOP
                .load(Ordering::Relaxed)
                .then(|| "interrupted".to_owned()),
        }
    })
    .apart(limits::apart);
    let clock = move || begun.elapsed().as_secs_f64();
    let made = catch_unwind(AssertUnwindSafe(|| {
        fits.row(task, halt, &clock, Some(&STOP))
    }));
    made.unwrap_or_else(|_| {
        let fault = "an internal error; see standard error";
        Some(FitRow::failed(task, fault, clock()))
    })
}

fn conclude(args: &FitManyArgs, rows: &[&FitRow], wanted: usize) -> CommandResult {
    let count = |verdict: &str| rows.iter().filter(|row| row.verdict == verdict).count();
    let (trusted, failed) = (count("trusted"), count("failed"));
    if !args.quiet {
        let doubtful = rows.len() - trusted - failed;
        print(&format!(
            "fits      {trusted} trusted, {doubtful} not trusted, {failed} failed\ntable     {}\n",
            args.out.join(TABLE).display()
        ))?;
    }
    if rows.len() < wanted {
        remark(&format!(
            "stopped after {} of {wanted} rows: the same command continues",
            rows.len()
        ));
    }
    Ok(if trusted == wanted {
        Exit::Done
    } else {
        Exit::Untrusted
    })
}
