//! `jensen fit --calibrate`.

use std::num::NonZero;
use std::path::Path;

use jensen::calibration::{Calibrated, Simulator, ranks_csv, report, simulate};
use jensen::data::{DataFile, read_text, write_atomic_bytes};
use jensen::fit_many::{Fits, Ledger};
use jensen::stan::Build;

use crate::args::FitArgs;
use crate::failure::{CommandResult, Exit, Failure, print, remark};
use crate::fit_many::{progress, work};
use crate::limits;
use crate::terminal::catch_interrupts;

const RANKS: &str = "ranks.csv";
const TESTS: &str = "calibration.json";
const PAGE: &str = "report.html";

/// Fits `count` simulated data sets and judges the ranks of the true values.
pub fn run(args: &FitArgs, count: usize) -> CommandResult {
    let (Some(model), Some(simulator), Some(out)) = (&args.model, &args.simulator, &args.out)
    else {
        return Err(Failure::usage(
            "--calibrate needs a program, --simulator FILE.stan and --out DIR: the simulator draws parameters and \
             data in its generated quantities",
        ));
    };
    let mut request = args.request.clone();
    let policy = request.settings(jensen::blackbox::Init::Zero)?.is_policy();
    if policy && request.importance_resample.is_none() {
        // Like the summaries of a fit, the ranks describe the posterior under the default policy. If the user requested
        // a method or a family, the fit is ranked unchanged.
        request.importance_resample = Some(true);
    }
    let seed = request.seed();
    let name = model.display().to_string();
    let fits = Fits::new(&name, &read_text(model)?, &args.include, request)?;
    let simulator = Simulator {
        name: simulator.display().to_string(),
        text: read_text(simulator)?,
        folders: args.include.clone(),
        data: args
            .data
            .path()
            .map(|path| DataFile::read_within(path, fits.request.memory_limit()))
            .transpose()?,
    };
    let build = Build {
        halt: limits::halt(None, fits.request.memory_limit()),
        ..Build::default()
    };
    let tasks = simulate(&fits, &simulator, count, seed, &build)?;
    let mut ledger = Ledger::open(out, &fits)?;
    catch_interrupts();
    let pending = ledger.pending(&tasks);
    let all = || std::thread::available_parallelism().map_or(1, NonZero::get);
    let workers = args.threads.unwrap_or_else(all).min(pending.len().max(1));
    let bar = progress(args.quiet, count, count - pending.len());
    let recorded = work(&fits, &tasks, &pending, workers, |row| {
        bar.inc(1);
        ledger.record(row)
    });
    bar.finish_and_clear();
    let rows = ledger.write_table(&tasks)?;
    recorded?;
    if rows.len() < count {
        remark(&format!(
            "stopped after {} of {count} simulations: the same command continues",
            rows.len()
        ));
        return Ok(Exit::Untrusted);
    }
    write(out, RANKS, &ranks_csv(&rows))?;
    let found = Calibrated::of(&rows, seed)?;
    let tests = serde_json::to_string_pretty(&found).expect("plain numbers");
    write(out, TESTS, &(tests + "\n"))?;
    let page = report(&found, &fits.model, &simulator.name, seed);
    write(out, PAGE, &jensen::report::render(&page))?;
    conclude(args, out, &found)
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), Failure> {
    write_atomic_bytes(&folder.join(name), text.as_bytes()).map_err(Failure::output)
}

fn conclude(args: &FitArgs, out: &Path, found: &Calibrated) -> CommandResult {
    if !args.quiet {
        let mut text = format!(
            "fits      {} of {} trusted\nranks     {} scalars, {}\nreport    {}\n",
            found.trusted,
            found.simulations,
            found.parameters.len(),
            out.join(RANKS).display(),
            out.join(PAGE).display()
        );
        match found.calibrated {
            true => text += "verdict   calibrated: all ranks are consistent with uniform\n",
            false => {
                text += "verdict   NOT calibrated:\n";
                for warning in found.warnings() {
                    text += &format!("          - {warning}\n");
                }
            }
        }
        print(&text)?;
    }
    Ok(if found.calibrated {
        Exit::Done
    } else {
        Exit::Untrusted
    })
}
