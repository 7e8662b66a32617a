//! `jensen fit`.

use std::path::Path;

use jensen::blackbox::Init;
use jensen::program::{FitRequest, Program, Source, Stored};
use jensen::study::{Place, folder, request};

use crate::args::FitArgs;
use crate::failure::{CommandResult, Failure, remark};
use crate::progress::BoundLine;
use crate::table;
use crate::terminal::{Say, Setting, check_out, conclude, start_threads};

/// A run as it is about to start.
struct Plan {
    source: Source,
    request: FitRequest,
    /// Where a resumed run started.
    init: Option<Init>,
    place: Place,
}

/// Runs the command.
pub fn run(args: FitArgs) -> CommandResult {
    let plan = match &args.resume {
        Some(path) => again(&args, path)?,
        None => new(&args)?,
    };
    let threads = start_threads(args.threads)?;
    let setting = Setting {
        checkpoint_every: plan.request.checkpoint_every,
        memory_limit: plan.request.memory_limit(),
        ..Setting::new(plan.place, Box::<BoundLine>::default())
    };
    let program = Program::compile(plan.source, plan.request, threads)?;
    let say = Say {
        json: args.json,
        quiet: args.quiet,
    };
    if !(say.quiet || say.json) {
        for text in program.remarks() {
            remark(&text);
        }
    }
    let init = program.start(plan.init)?;
    let (fitted, summary) = setting.watch(say, |around| program.fit(init, around))?;
    let folder = args.resume.as_deref().or(args.out.as_deref());
    conclude(&summary, summary.trusted, folder, say, 8, |_| {
        table::summary(&fitted)
    })
}

/// A new run.
fn new(args: &FitArgs) -> Result<Plan, Failure> {
    let request = args.request.clone();
    check_out(args.out.as_deref(), request.checkpoint_every)?;
    // Wrong combinations of flags are said before anything is read or written.
    request.settings(Init::Zero)?;
    if request.trace_variance.is_some() && args.out.is_none() {
        return Err(Failure::usage(
            "--trace-variance writes to the trace and the report: say where with --out DIR",
        ));
    }
    let Some(model) = &args.model else {
        return Err(Failure::usage("no model is given"));
    };
    Ok(Plan {
        source: Source::read(model, &args.include, args.data.as_deref())?,
        request,
        init: None,
        place: Place::new(args.out.as_deref()),
    })
}

/// A stored run that goes on.
fn again(args: &FitArgs, path: &Path) -> Result<Plan, Failure> {
    folder::check_in_place(args.out.as_deref(), path)?;
    let (folder, stored) = Stored::open(path)?;
    let source = match &args.model {
        Some(model) => Source::read(model, &args.include, args.data.as_deref())?,
        None => stored.source(&folder)?,
    };
    let force = args.force;
    Ok(Plan {
        source,
        request: request::over(&args.request, &stored.flags)?,
        init: Some(stored.init),
        place: Place::Resumed { folder, force },
    })
}
