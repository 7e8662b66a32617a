//! `jensen fit`.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use jensen::blackbox::Init;
use jensen::data::{
    Artefact, DataSet, NetcdfAttributes, RunDir, StanCsvHeader, write_atomic_bytes,
    write_draws_csv, write_draws_netcdf,
};
use jensen::run::{Budget, Checkpoint, Control, Record, Store};
use jensen::stan::{Build, Model};
use jensen::{About, Fitted, HistoryPoint, Options, Problem, fit_with};

use crate::args::FitArgs;
use crate::failure::{Exit, Failure, Outcome, print, remark};
use crate::flags::{self, FitFlags};
use crate::folder::{self, Checkpoints, Inputs, Trace, Watch};
use crate::input::{DataFile, Includes, read_text};
use crate::progress::Display;
use crate::table;

/// Set by Ctrl-C.
pub static STOP: AtomicBool = AtomicBool::new(false);

/// A run as it is about to start.
struct Plan {
    inputs: Inputs,
    data: DataSet,
    flags: FitFlags,
    /// Where a resumed run started.
    init: Option<Init>,
    folder: Option<RunDir>,
    resumed: bool,
}

/// Runs the command.
pub fn run(args: FitArgs) -> Outcome {
    let quiet = args.quiet || args.json;
    let mut plan = plan(&args)?;
    // Wrong combinations of flags are said before anything is read or written.
    let simd = plan.flags.simd()?;
    plan.flags.settings(Init::Zero)?;
    let threads = flags::threads(plan.flags.threads);
    start_threads(threads)?;

    let memory_limit = plan.flags.memory_limit.unwrap_or(flags::MEMORY_LIMIT);
    let model = Model::compile(
        &plan.inputs.text,
        &plan.inputs.model,
        &plan.data,
        &Build {
            includes: &plan.inputs.includes,
            data_name: plan
                .inputs
                .data
                .as_ref()
                .map_or("no data given", |data| &data.name),
            seed: plan.flags.seed.unwrap_or(0),
            simd,
            threads,
            memory_limit,
            ..Build::default()
        },
    )?;
    if !quiet {
        say_what_the_model_says(&model);
    }
    let init = match (&plan.flags.init, &plan.init) {
        (None, Some(stored)) => stored.clone(),
        (given, _) => read_init(given.as_deref(), &model)?,
    };
    let options = Options {
        settings: plan.flags.settings(init.clone())?,
        draws: plan.flags.draws.unwrap_or(flags::DRAWS) as usize,
        resample: plan.flags.importance_resample.unwrap_or(false),
        threads,
        memory_limit,
        covariance: plan.flags.covariance()?,
    };
    if let (false, Some(out)) = (plan.resumed, &args.out) {
        // After the model has proved good, so that a mistake does not cost the results of an earlier run;
        // before the fit, so that a folder that cannot be written to is no surprise at its end.
        plan.folder = Some(take_folder(out)?);
    }
    let stored = match &plan.folder {
        Some(folder) if plan.resumed => folder::checkpoint(folder)?,
        _ => None,
    };
    if let Some((checkpoint, _)) = &stored {
        // Before the folder is touched, so that a refused resume leaves it as it was.
        let identity = jensen::blackbox::identity(&options.settings, &model.subject());
        folder::accept(checkpoint, &identity, args.force)?;
    } else if plan.resumed && !args.quiet {
        remark("note: the run has no checkpoint yet, so it starts from the beginning");
    }
    if let Some(folder) = &plan.folder {
        let resolved = FitFlags {
            simd: Some(simd.name().to_owned()),
            init: None,
            ..plan.flags.clone()
        };
        folder::store(folder, &plan.inputs, &resolved, &init)?;
    }
    let fitted = fit(&plan, &args, &model, &options, stored)?;
    if let Some(folder) = &plan.folder {
        write_results(folder, &plan, &fitted)?;
    }
    if args.json {
        print(&fitted.summary().to_json().map_err(Failure::output)?)?;
    } else if !args.quiet {
        print(&table::summary(&fitted))?;
        if let Some(folder) = &plan.folder {
            print(&format!("results  {}\n", folder.path().display()))?;
        }
    }
    Ok(if fitted.trusted() {
        Exit::Done
    } else {
        Exit::Untrusted
    })
}

/// What is to be run: from the command line, or from the folder of an earlier run.
fn plan(args: &FitArgs) -> Result<Plan, Failure> {
    let Some(path) = &args.resume else {
        if args.out.is_none() && args.flags.checkpoint_every.is_some() {
            return Err(Failure::usage(
                "--checkpoint-every needs a folder to write to: add --out DIR",
            ));
        }
        args.flags.settings(Init::Zero)?;
        let inputs = read_inputs(args)?;
        let data = parse(&inputs)?;
        return Ok(Plan {
            inputs,
            data,
            flags: args.flags.clone(),
            init: None,
            folder: None,
            resumed: false,
        });
    };
    if let Some(out) = &args.out
        && out.canonicalize().ok() != path.canonicalize().ok()
    {
        return Err(Failure::usage(
            "a resumed run goes on in its own folder: leave out --out",
        ));
    }
    let (folder, stored) = folder::open(path)?;
    let inputs = if args.model.is_some() {
        read_inputs(args)?
    } else {
        folder::inputs(&folder, &stored)?
    };
    Ok(Plan {
        data: parse(&inputs)?,
        inputs,
        flags: args.flags.clone().or(&stored.flags),
        init: Some(stored.init),
        folder: Some(folder),
        resumed: true,
    })
}

fn take_folder(path: &Path) -> Result<RunDir, Failure> {
    let folder = RunDir::create(path, "fit").map_err(Failure::output)?;
    folder.clear().map_err(Failure::output)?;
    Ok(folder)
}

fn read_inputs(args: &FitArgs) -> Result<Inputs, Failure> {
    let Some(model) = &args.model else {
        return Err(Failure::usage("no model is given"));
    };
    Ok(Inputs {
        model: model.display().to_string(),
        text: read_text(model)?,
        includes: Includes::of_folders(&args.include),
        data: args.data.as_deref().map(DataFile::read).transpose()?,
    })
}

fn parse(inputs: &Inputs) -> Result<DataSet, Failure> {
    inputs
        .data
        .as_ref()
        .map_or_else(|| Ok(DataSet::new()), DataFile::parse)
}

/// The pool of threads, with stacks for the interpreter's recursion.
pub fn start_threads(threads: usize) -> Result<(), Failure> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .stack_size(256 << 20)
        .build_global()
        .map_err(|error| Failure::usage(format!("cannot start {threads} threads: {error}")))
}

fn say_what_the_model_says(model: &Model) {
    for line in model.printed() {
        remark(line);
    }
    if !model.warnings().is_empty() {
        remark(&model.render_warnings(false));
    }
    for line in model.remarks() {
        remark(&format!("warning: {line}"));
    }
}

fn read_init(given: Option<&str>, model: &Model) -> Result<Init, Failure> {
    let file = match given {
        None | Some("0") => return Ok(Init::Zero),
        Some("random") => return Ok(Init::Random),
        Some(file) => Path::new(file),
    };
    let data = DataFile::read(file)?;
    let list = data.bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'[');
    if list {
        let point: Vec<f64> = serde_json::from_slice(&data.bytes).map_err(|error| {
            Failure::input(format!(
                "{}: expected a list with an unconstrained point, or an object with parameter values: {error}",
                data.name
            ))
        })?;
        return Ok(Init::Point(point));
    }
    let point = model
        .unconstrain(&data.parse()?)
        .map_err(|error| Failure::input(format!("{}: {error}", data.name)))?;
    Ok(Init::Point(point))
}

fn fit(
    plan: &Plan,
    args: &FitArgs,
    model: &Model,
    options: &Options,
    stored: Option<(Checkpoint, Vec<Record>)>,
) -> Result<Fitted, Failure> {
    let (resume, history) = stored.map_or((None, Vec::new()), |(checkpoint, records)| {
        let history = records.iter().filter_map(HistoryPoint::of).collect();
        (Some(checkpoint), history)
    });
    let lines = resume.as_ref().map_or(0, |checkpoint| checkpoint.iteration);
    let trace = match &plan.folder {
        Some(folder) => Trace::open(folder, lines)?,
        None => Trace::none(),
    };
    let mut checkpoints = plan.folder.as_ref().map(|folder| Checkpoints {
        path: folder.artefact(Artefact::Checkpoint),
        trace: &trace,
    });
    let mut watch = Watch {
        trace: &trace,
        display: Display::new(args.quiet),
    };
    catch_interrupts();
    let epoch = Instant::now();
    let clock = move || epoch.elapsed().as_secs_f64();
    let control = Control {
        budget: Budget {
            max_iterations: plan.flags.max_iters.unwrap_or(flags::MAX_ITERS),
            max_seconds: plan.flags.max_seconds,
        },
        clock: &clock,
        cancel: Some(&STOP),
        observer: &mut watch,
        store: checkpoints.as_mut().map(|store| store as &mut dyn Store),
        checkpoint_seconds: plan
            .flags
            .checkpoint_every
            .unwrap_or(flags::CHECKPOINT_EVERY),
        resume,
        force_resume: args.force,
    };
    let fitted = fit_with(model, options, control, history);
    watch.display.clear();
    trace.flush().map_err(Failure::output)?;
    fitted.map_err(|error| explain(error, model, &options.settings.start.init))
}

/// A fit that could not start, in the model's own words where it has some.
fn explain(error: jensen::Error, model: &Model, init: &Init) -> Failure {
    let reason = match (&error, init) {
        (jensen::Error::Fit(jensen::blackbox::FitError::CannotStart(_)), Init::Point(point)) => {
            model.rejection(point)
        }
        (jensen::Error::Fit(jensen::blackbox::FitError::CannotStart(_)), _) => {
            let dim = model.bound().unconstrained_dim();
            model.rejection(&vec![0.0; dim])
        }
        _ => None,
    };
    let failure = Failure::from(error);
    match reason {
        Some(reason) => failure.because(&reason),
        None => failure,
    }
}

/// The first Ctrl-C stops the run after its iteration, the second at once.
pub fn catch_interrupts() {
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

/// Writes everything that a finished run leaves.
fn write_results(folder: &RunDir, plan: &Plan, fitted: &Fitted) -> Result<(), Failure> {
    let settings = plan.flags.listed();
    let seed = fitted.settings.seed;
    let family = fitted.fit.best().kind.to_string();
    let path = |artefact| folder.artefact(artefact);
    write_draws_csv(
        &path(Artefact::DrawsCsv),
        &fitted.sample.table,
        &StanCsvHeader {
            model: plan.inputs.model.clone(),
            algorithm: family.clone(),
            seed,
            settings: settings.clone(),
        },
    )
    .map_err(Failure::output)?;
    write_draws_netcdf(
        &path(Artefact::DrawsNetcdf),
        &fitted.sample.table,
        &NetcdfAttributes {
            model: plan.inputs.model.clone(),
            extra: vec![("family".into(), family), ("seed".into(), seed.to_string())],
        },
        Some(&plan.data),
    )
    .map_err(Failure::output)?;
    write_atomic_bytes(
        &path(Artefact::Approximation),
        &fitted.encode_approximation(),
    )
    .map_err(Failure::output)?;
    let report = fitted.report(&About {
        model: plan.inputs.model.clone(),
        data: plan
            .inputs
            .data
            .as_ref()
            .map_or_else(String::new, |data| data.name.clone()),
        settings,
    });
    write_atomic_bytes(
        &path(Artefact::Report),
        jensen::report::render(&report).as_bytes(),
    )
    .map_err(Failure::output)?;
    // Last: who sees a fit.json finds everything else beside it.
    fitted
        .summary()
        .write(&path(Artefact::Fit))
        .map_err(Failure::output)
}
