//! `jensen vae fit`.

use std::path::PathBuf;
use std::time::Instant;

use jensen::data::{Rows, RunDir};
use jensen::neural::{Architecture, Records, TrainSettings, Trained, Trainer, VaeModel};
use jensen::run::{Budget, Identity, Outcome as RunOutcome, run as run_loop};
use serde_json::json;

use super::args::FitArgs;
use super::data::{self, Apart, Parts};
use super::flags::VaeFlags;
use super::progress::{Gathered, Line};
use super::results;
use super::store::{self, Stored};
use crate::failure::{Exit, Failure, Outcome, print};
use crate::flags;
use crate::progress::Display;
use crate::run::folder::{self, Position};
use crate::run::session::{Session, start_threads};

/// A run as it is about to start.
pub struct Plan {
    /// The data.
    pub rows: Rows,
    /// Where they are, as the folder keeps it.
    pub path: PathBuf,
    apart: Apart,
    validation: Option<String>,
    /// The flags.
    pub flags: VaeFlags,
    /// Extents of a record.
    pub extents: Vec<usize>,
    /// The networks.
    pub architecture: Architecture,
    folder: Option<RunDir>,
    resumed: bool,
    force: bool,
    /// Seconds that opening the data took.
    pub open_seconds: f64,
}

/// How a run came out.
pub struct Finished {
    /// How it ended.
    pub outcome: RunOutcome<Trained>,
    /// Iterations of all passes.
    pub planned: u64,
    /// What its records said.
    pub gathered: Gathered,
}

/// Runs `vae fit`.
pub fn run(args: &FitArgs) -> Outcome {
    start_threads(flags::threads(args.threads))?;
    let plan = plan(args)?;
    carry_out(plan, args)
}

fn plan(args: &FitArgs) -> Result<Plan, Failure> {
    let begun = Instant::now();
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    let earlier = args.resume.as_deref().map(store::open).transpose()?;
    let stored = earlier.as_ref().map(|(_, stored)| stored);
    folder::check_out(
        args.out.as_deref().or(args.resume.as_deref()),
        args.flags.checkpoint_every,
    )?;
    let flags = match stored {
        Some(stored) => args.flags.or(&stored.flags),
        None => args.flags.clone(),
    };
    if flags.patience.is_some()
        && args.validation.is_none()
        && stored.is_none_or(|s| s.validation.is_none())
    {
        return Err(Failure::usage(
            "early stopping needs records to validate on: give --validation FILE, or a share such as --validation 0.1",
        ));
    }
    let path = match (&args.data, stored) {
        (Some(path), _) => absolute(path.clone()),
        (None, Some(stored)) => stored.data.clone(),
        (None, None) => PathBuf::new(),
    };
    let validation = match &args.validation {
        Some(given) if given.parse::<f64>().is_err() => {
            Some(absolute(given.into()).display().to_string())
        }
        Some(share) => Some(share.clone()),
        None => stored.and_then(|stored| stored.validation.clone()),
    };
    let rows = data::open(&path)?;
    let (low, high) = rows.range();
    let architecture = flags.architecture(rows.width(), low >= 0.0 && high <= 1.0)?;
    let extents = data::extents(&rows, flags.image())?;
    data::check(&rows, rows.width(), architecture.likelihood)?;
    let apart = Apart::open(validation.as_deref())?;
    if let Apart::File(other) = &apart {
        data::check(other, rows.width(), architecture.likelihood)?;
    }
    let settings = flags.settings(rows.rows())?;
    check_memory(&architecture, &settings, &rows, &apart, args.memory_limit)?;
    Ok(Plan {
        open_seconds: begun.elapsed().as_secs_f64(),
        resumed: earlier.is_some(),
        folder: match earlier {
            Some((folder, _)) => Some(folder),
            None => args.out.as_deref().map(store::take).transpose()?,
        },
        rows,
        path,
        apart,
        validation,
        flags,
        extents,
        architecture,
        force: args.force,
    })
}

/// Refuses what would take too much memory, by rough count: weights with what the optimiser and the checkpoint keep of them,
/// values of every layer and their gradients for a minibatch, and data that are not mapped.
fn check_memory(
    architecture: &Architecture,
    settings: &TrainSettings,
    rows: &Rows,
    apart: &Apart,
    limit: u64,
) -> Result<(), Failure> {
    let weights = architecture.weights() as u64;
    let units: usize = architecture
        .encoder
        .iter()
        .chain(&architecture.decoder)
        .sum();
    let lanes = settings.batch.max(500) as u64 * settings.samples as u64;
    let layers = (2 * units + 6 * architecture.width + 8 * architecture.latent) as u64;
    let held = rows.held_bytes()
        + match apart {
            Apart::File(rows) => rows.held_bytes(),
            _ => 0,
        };
    let need = weights * (5 * 4 + 6 * 8) + lanes * layers * 4 * 2 + held as u64 + (64 << 20);
    if need > limit {
        return Err(Failure::input(format!(
            "networks of {weights} weights over {} records take about {}, more than the limit of {}: ask for fewer hidden units, \
             smaller batches or fewer samples, store the data uncompressed as NPY or IDX, or allow more (--memory-limit)",
            rows.rows(),
            jensen::format_bytes(need),
            jensen::format_bytes(limit)
        )));
    }
    Ok(())
}

fn carry_out(plan: Plan, args: &FitArgs) -> Outcome {
    let quiet = args.quiet || args.json;
    let parts = Parts::new(&plan.rows, &plan.apart, plan.flags.seed())?;
    let (train, validation) = (parts.train(), parts.validation());
    let settings = plan.flags.settings(train.indices.len())?;
    let simd = plan.flags.simd()?;
    let identity = identity(&plan, &settings)?;
    let position = match &plan.folder {
        Some(folder) if plan.resumed => {
            let position = folder::position(folder, &identity, plan.force, quiet)?;
            check_networks(position.as_ref(), &identity)?;
            position
        }
        _ => None,
    };
    if let Some(folder) = &plan.folder {
        let stored = Stored {
            data: plan.path.clone(),
            validation: plan.validation.clone(),
            digest: plan.rows.digest().to_owned(),
            architecture: plan.architecture.clone(),
            flags: VaeFlags {
                simd: Some(simd.name().to_owned()),
                ..plan.flags.clone()
            },
        };
        folder::write_request(folder, &stored)?;
    }
    let (encoder, decoder) = (plan.architecture.encoder(), plan.architecture.decoder());
    let apart = validation.as_ref().map(|v| v as &dyn Records);
    let mut trainer = Trainer::new(&encoder, &decoder, settings, &train, apart, simd)
        .map_err(|error| Failure::input(error.to_string()))?;
    let finished = fit(
        &plan,
        &mut trainer,
        train.indices.len(),
        &identity,
        position,
        quiet,
    )?;
    let Some(trained) = &finished.outcome.output else {
        return Err(Failure::input(format!(
            "the fit cannot start: {}",
            finished.outcome.status
        )));
    };
    let begun = Instant::now();
    let model = VaeModel {
        architecture: plan.architecture.clone(),
        extents: plan.extents.clone(),
        tensors: trained.tensors.clone(),
        log_sds: trained.log_sds.clone(),
    };
    let mut networks = model
        .autoencoder(simd)
        .map_err(|error| Failure::input(error.to_string()))?;
    let mut made = results::judge(&plan, &finished, &mut networks, &train, apart)?;
    let shown = apart.unwrap_or(&train);
    let pictures = results::pictures(&model, &mut networks, shown, plan.flags.seed());
    made.seconds.evaluate = begun.elapsed().as_secs_f64();
    if let Some(folder) = &plan.folder {
        results::write(folder, &plan, &finished, &model, &made, &pictures)?;
    }
    if args.json {
        print(&made.to_json().map_err(Failure::output)?)?;
    } else if !args.quiet {
        print(&results::table(&made))?;
        if let Some(folder) = &plan.folder {
            print(&format!("results     {}\n", folder.path().display()))?;
        }
    }
    Ok(if made.trusted {
        Exit::Done
    } else {
        Exit::Untrusted
    })
}

/// What must be the same for a run to go on. The number of passes is not among it: a run may be resumed for more.
fn identity(plan: &Plan, settings: &TrainSettings) -> Result<Identity, Failure> {
    let mut training = serde_json::to_value(settings).map_err(Failure::output)?;
    if let Some(fields) = training.as_object_mut() {
        fields.remove("patience");
    }
    Ok(Identity {
        algorithm: store::COMMAND.to_owned(),
        settings: json!({ "architecture": plan.architecture, "training": training }),
        seed: settings.seed,
        model_hash: String::new(),
        data_hash: format!("{}{}", plan.rows.digest(), plan.apart.digest()),
        simd: plan.flags.simd()?.name().to_owned(),
    })
}

/// Refuses to go on with weights of other networks, or without what another optimiser remembers: `--force` cannot help.
fn check_networks(position: Option<&Position>, present: &Identity) -> Result<(), Failure> {
    let Some(position) = position else {
        return Ok(());
    };
    let stored = &position.checkpoint.identity.settings;
    for (what, path) in [
        ("architecture", "/architecture"),
        ("optimiser", "/training/optimiser/rule"),
        (
            "treatment of the weights (--full-vb)",
            "/training/full_bayes",
        ),
    ] {
        let (old, new) = (stored.pointer(path), present.settings.pointer(path));
        if old != new {
            let word =
                |x: Option<&serde_json::Value>| x.map_or("nothing".to_owned(), ToString::to_string);
            return Err(Failure::usage(format!(
                "the checkpoint holds weights of another {what} ({}, now {}), which cannot change in a resumed run: leave the flag \
                 out, or start a new run with --out",
                word(old),
                word(new)
            )));
        }
    }
    Ok(())
}

fn fit(
    plan: &Plan,
    trainer: &mut Trainer<'_>,
    records: usize,
    identity: &Identity,
    position: Option<Position>,
    quiet: bool,
) -> Result<Finished, Failure> {
    let epochs = plan.flags.epochs();
    let per_iteration = trainer.records_per_iteration();
    // Whole iterations; a pass that is one of them must not become two by rounding.
    let iterations = epochs * records as f64 / per_iteration;
    let planned = (iterations - 1e-6).ceil().max(1.0) as u64;
    let session = Session {
        folder: plan.folder.as_ref(),
        position,
        budget: Budget {
            max_iterations: planned,
            max_seconds: plan.flags.max_seconds,
        },
        checkpoint_every: plan.flags.checkpoint_every,
        force: plan.force,
        display: Display::with(quiet, Box::new(Line::new(epochs, per_iteration))),
    };
    let mut gathered = Gathered::default();
    let (outcome, _) = session.carry_out(
        |record| gathered.add(record),
        |mut control| run_loop(trainer, identity, &mut control),
    )?;
    Ok(Finished {
        outcome: outcome.map_err(|error| Failure::usage(error.to_string()))?,
        planned,
        gathered,
    })
}
