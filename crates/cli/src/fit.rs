//! `jensen fit`.

use std::path::Path;

use jensen::Sample;
use jensen::blackbox::Init;
use jensen::data::write_atomic_bytes;
use jensen::density::{Variable, VariableKind};
use jensen::job::{ResultFolder, folder, request};
use jensen::program::{FitRequest, Program, Source, StoredFit};

use crate::args::FitArgs;
use crate::calibrate;
use crate::failure::{CommandResult, Failure, remark};
use crate::limits;
use crate::progress::BoundLine;
use crate::table;
use crate::terminal::{Say, Setting, check_out, conclude, start_threads};
use crate::verbose;

struct Plan {
    source: Source,
    request: FitRequest,
    stored: Option<StoredFit>,
    results: ResultFolder,
}

pub fn run(args: FitArgs) -> CommandResult {
    if let Some(count) = args.calibrate {
        return calibrate::run(&args, count as usize);
    }
    let plan = match &args.resume {
        Some(path) => again(&args, path)?,
        None => new(&args)?,
    };
    if args.inits_out.is_some() && !plan.request.saved().wants_all(VariableKind::Parameter) {
        return Err(Failure::usage(
            "--inits-out writes the parameters: include them in --save",
        ));
    }
    let threads = start_threads(args.threads)?;
    let setting = Setting {
        checkpoint_every: plan.request.checkpoint_every,
        memory_limit: plan.request.memory_limit(),
        ..Setting::new(plan.results, Box::<BoundLine>::default())
    };
    let halt = limits::halt(plan.request.max_seconds, plan.request.memory_limit());
    let program = match &plan.stored {
        Some(stored) => Program::of_stored(stored, plan.source, plan.request, threads, halt)?,
        None => Program::compile(plan.source, plan.request, threads, halt)?,
    };
    verbose::say(|| {
        let made: usize = program.variables().iter().map(Variable::len).sum();
        format!("the program is compiled; the fit reports {made} scalars, with {threads} threads")
    });
    let say = Say {
        json: args.json,
        quiet: args.quiet,
    };
    if !(say.quiet || say.json) {
        for text in program.remarks() {
            remark(&text);
        }
    }
    let init = program.start(plan.stored.map(|stored| stored.init))?;
    let (fitted, summary) = setting.watch(say, |around| program.fit(init, around))?;
    if let Some(file) = &args.inits_out {
        write_inits(file, &fitted.sample)?;
    }
    let folder = args.resume.as_deref().or(args.out.as_deref());
    conclude(&summary, summary.trusted, folder, say, 8, |_| {
        table::summary(&fitted)
    })
}

const CHAINS: usize = 4;

fn write_inits(file: &Path, sample: &Sample) -> Result<(), Failure> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    for chain in 1..=CHAINS {
        let values = sample.initial_values(chain - 1)?;
        let path = file.with_file_name(format!("{stem}_{chain}.json"));
        write_atomic_bytes(&path, (values.to_json() + "\n").as_bytes()).map_err(Failure::output)?;
    }
    Ok(())
}

fn read(args: &FitArgs, model: &Path) -> Result<Source, Failure> {
    let most = args.request.memory_limit();
    let source = Source::read(model, &args.include, args.data.path(), most)?;
    let source = source.with_coordinates(args.coords.as_deref())?;
    Ok(match args.old_syntax {
        true => source.modernised(),
        false => source,
    })
}

fn new(args: &FitArgs) -> Result<Plan, Failure> {
    let mut request = args.request.clone();
    // The paths are made absolute, because the run may be resumed from another working directory.
    for path in request.records.iter_mut().flatten() {
        *path = std::path::absolute(&*path).map_err(|error| Failure::usage(error.to_string()))?;
    }
    check_out(args.out.as_deref(), request.checkpoint_every)?;
    // Combinations of flags are checked before any file is read or written.
    request.settings(Init::Zero)?;
    if request.trace_variance.is_some() && args.out.is_none() {
        return Err(Failure::usage(
            "--trace-variance writes to the trace and the report, so it needs --out DIR",
        ));
    }
    let Some(model) = &args.model else {
        return Err(Failure::usage("no model is given"));
    };
    Ok(Plan {
        source: read(args, model)?,
        request,
        stored: None,
        results: ResultFolder::new(args.out.as_deref()),
    })
}

fn again(args: &FitArgs, path: &Path) -> Result<Plan, Failure> {
    folder::check_in_place(args.out.as_deref(), path)?;
    let (folder, stored) = StoredFit::open(path)?;
    let mut source = match &args.model {
        Some(model) => read(args, model)?,
        None => stored
            .source(&folder)?
            .with_coordinates(args.coords.as_deref())?,
    };
    if args.coords.is_none() {
        source.coordinates = stored.coordinates.clone();
    }
    let force = args.force;
    Ok(Plan {
        source,
        request: request::over(&args.request, &stored.flags)?,
        stored: Some(stored),
        results: ResultFolder::Resumed { folder, force },
    })
}
