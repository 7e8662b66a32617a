//! `jensen fit`.

use std::path::Path;

use jensen::blackbox::{Init, Method, Settings};
use jensen::data::{
    Artefact, DataSet, NetcdfAttributes, RunDir, StanCsvHeader, write_atomic_bytes,
    write_draws_csv, write_draws_netcdf,
};
use jensen::density::RecordDensity;
use jensen::exchangeable::{self, VariancePoint, variance_section};
use jensen::run::Budget;
use jensen::stan::{Build, Model};
use jensen::study::{MEMORY_LIMIT, request};
use jensen::{About, Fitted, HistoryPoint, Options, Problem, fit_with};

use crate::args::FitArgs;
use crate::failure::{Exit, Failure, Outcome, print, remark};
use crate::flags::{self, FitFlags};
use crate::input::{DataFile, Includes, read_text};
use crate::minibatch;
use crate::progress::Display;
use crate::run::folder::{self, Position};
use crate::run::session::Session;
use crate::store::{self, Inputs};
use crate::table;
use crate::terminal::{check_out, start_threads};

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
    let plan = plan(&args)?;
    // Wrong combinations of flags are said before anything is read or written.
    let simd = plan.flags.simd()?;
    let family = plan.flags.settings(Init::Zero)?.family;
    let threads = start_threads(plan.flags.threads)?;

    let memory_limit = plan.flags.memory_limit.unwrap_or(MEMORY_LIMIT);
    let build = Build {
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
    };
    let (text, name) = (&plan.inputs.text, &plan.inputs.model);
    let count = plan.flags.exchangeable.clone();
    match (count, minibatch::method(&plan.flags)?) {
        (Some(count), Some(method)) => {
            let model = exchangeable::compile(text, name, &plan.data, &build, &count)?;
            let records = model.records().records();
            let method = match plan.flags.batch {
                Some(batch) if batch > records as u64 => {
                    return Err(Failure::usage(format!(
                        "--batch {batch} is more than the {records} records that `{count}` counts"
                    )));
                }
                Some(_) => method,
                None => exchangeable::with_at_most(method, records),
            };
            let method = match plan.flags.estimator {
                Some(_) => method,
                None => exchangeable::with_usual_estimator(method, &model, family),
            };
            fit_model(&args, plan, &model, Some(method), threads)
        }
        _ => {
            let model = Model::compile(text, name, &plan.data, &build)?;
            fit_model(&args, plan, &model, None, threads)
        }
    }
}

/// Fits a model by the method of the flags, or by one of minibatches.
fn fit_model<D>(
    args: &FitArgs,
    mut plan: Plan,
    model: &Model<D>,
    minibatches: Option<Method>,
    threads: usize,
) -> Outcome
where
    Model<D>: Problem,
{
    let quiet = args.quiet || args.json;
    let simd = plan.flags.simd()?;
    let memory_limit = plan.flags.memory_limit.unwrap_or(MEMORY_LIMIT);
    if !quiet {
        say_what_the_model_says(model);
    }
    let init = match (&plan.flags.init, &plan.init) {
        (None, Some(stored)) => stored.clone(),
        (given, _) => read_init(given.as_deref(), model)?,
    };
    let usual = plan.flags.settings(init.clone())?;
    let options = Options {
        settings: Settings {
            method: minibatches.unwrap_or(usual.method),
            ..usual
        },
        draws: plan.flags.draws.unwrap_or(flags::DRAWS) as usize,
        resample: plan.flags.importance_resample.unwrap_or(false),
        threads,
        memory_limit,
        covariance: plan.flags.covariance()?,
    };
    if let (false, Some(out)) = (plan.resumed, &args.out) {
        // After the model has proved good, so that a mistake does not cost the results of an earlier run;
        // before the fit, so that a folder that cannot be written to is no surprise at its end.
        plan.folder = Some(jensen::study::folder::take(out, store::COMMAND, &[])?);
    }
    let position = match &plan.folder {
        Some(folder) if plan.resumed => {
            let identity = jensen::blackbox::identity(&options.settings, &model.subject());
            folder::position(folder, &identity, args.force, args.quiet)?
        }
        _ => None,
    };
    if let Some(folder) = &plan.folder {
        let resolved = FitFlags {
            simd: Some(simd.name().to_owned()),
            init: None,
            ..plan.flags.clone()
        };
        store::write(folder, &plan.inputs, &resolved, &init)?;
    }
    let (fitted, variances) = fit(&plan, args, model, &options, position)?;
    if let Some(folder) = &plan.folder {
        write_results(folder, &plan, &fitted, &variances)?;
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
        check_out(args.out.as_deref(), args.flags.checkpoint_every)?;
        args.flags.settings(Init::Zero)?;
        if args.flags.trace_variance.is_some() && args.out.is_none() {
            return Err(Failure::usage(
                "--trace-variance writes to the trace and the report: say where with --out DIR",
            ));
        }
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
    jensen::study::folder::check_in_place(args.out.as_deref(), path)?;
    let (folder, stored) = store::open(path)?;
    let inputs = if args.model.is_some() {
        read_inputs(args)?
    } else {
        store::inputs(&folder, &stored)?
    };
    Ok(Plan {
        data: parse(&inputs)?,
        inputs,
        flags: FitFlags {
            threads: args.flags.threads,
            ..request::over(&args.flags, &stored.flags)?
        },
        init: Some(stored.init),
        folder: Some(folder),
        resumed: true,
    })
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

fn say_what_the_model_says<D>(model: &Model<D>) {
    for line in model.printed() {
        remark(line);
    }
    if !model.warnings().is_empty() {
        remark(&model.render_warnings(false));
    }
    for line in model.notes() {
        remark(&format!("warning: {line}"));
    }
}

fn read_init<D>(given: Option<&str>, model: &Model<D>) -> Result<Init, Failure> {
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

fn fit<D>(
    plan: &Plan,
    args: &FitArgs,
    model: &Model<D>,
    options: &Options,
    position: Option<Position>,
) -> Result<(Fitted, Vec<VariancePoint>), Failure>
where
    Model<D>: Problem,
{
    let history = position.as_ref().map_or(Vec::new(), |position| {
        let records = position.records.iter();
        records.filter_map(HistoryPoint::of).collect()
    });
    let session = Session {
        folder: plan.folder.as_ref(),
        position,
        budget: Budget {
            max_iterations: plan.flags.max_iters.unwrap_or(flags::MAX_ITERS),
            max_seconds: plan.flags.max_seconds,
        },
        checkpoint_every: plan.flags.checkpoint_every,
        force: args.force,
        display: Display::new(args.quiet),
    };
    let mut variances = Vec::new();
    let (fitted, _) = session.carry_out(
        |record| variances.extend(VariancePoint::of(record)),
        |control| fit_with(model, options, control, history),
    )?;
    let fitted = fitted.map_err(|error| explain(error, model, &options.settings.start.init))?;
    Ok((fitted, variances))
}

/// A fit that could not start, in the model's own words where it has some.
fn explain<D>(error: jensen::Error, model: &Model<D>, init: &Init) -> Failure {
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

/// Writes everything that a finished run leaves.
fn write_results(
    folder: &RunDir,
    plan: &Plan,
    fitted: &Fitted,
    variances: &[VariancePoint],
) -> Result<(), Failure> {
    let settings = request::listed(&plan.flags);
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
    if let Some(refined) = fitted.encode_refined() {
        write_atomic_bytes(&path(Artefact::Refined), &refined).map_err(Failure::output)?;
    }
    let report = fitted.report(&About {
        model: plan.inputs.model.clone(),
        data: plan
            .inputs
            .data
            .as_ref()
            .map_or_else(String::new, |data| data.name.clone()),
        settings,
        exhibits: variance_section(variances).into_iter().collect(),
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
