//! `jensen latent fit`.

use std::collections::BTreeMap;
use std::time::Instant;

use jensen::data::{RunDir, Table};
use jensen::latent::{Curve, LatentSeconds, Learnt, TableModel, fit_table};
use jensen::run::{Budget, Identity, Progress, Record};

use super::args::FitArgs;
use super::flags::{LatentFlags, MAX_ITERS};
use super::results::{Made, report};
use super::store::{self, Data, PriorFiles};
use crate::failure::{Exit, Failure, Outcome};
use crate::flags;
use crate::progress::{Describe, Display};
use crate::run::folder::{self, Position};
use crate::run::session::{Session, start_threads};

/// A run as it is about to start.
pub struct Plan {
    /// The table as it was read.
    pub data: Data,
    /// The settings.
    pub flags: LatentFlags,
    /// Where results go.
    pub folder: Option<RunDir>,
    files: PriorFiles,
    resumed: bool,
}

/// Runs the command.
pub fn run(args: &FitArgs) -> Outcome {
    let quiet = args.quiet || args.json;
    let begun = Instant::now();
    let mut plan = plan(args)?;
    plan.flags.check()?;
    start_threads(flags::threads(plan.flags.threads))?;
    let (table, data_hash) = plan.data.table_and_digest()?;
    let model = TableModel::new(&plan.flags.request(), &table, &plan.files)?;
    check_memory(
        &model,
        plan.flags.memory_limit.unwrap_or(flags::MEMORY_LIMIT),
    )?;
    if let (false, Some(out)) = (plan.resumed, &args.out) {
        // After the model has proved good, so that a mistake does not cost the results of an earlier run.
        plan.folder = Some(folder::take(out, store::COMMAND)?);
    }
    let identity = identity(&plan, &table, data_hash);
    let position = match &plan.folder {
        Some(folder) if plan.resumed => folder::position(folder, &identity, args.force, quiet)?,
        _ => None,
    };
    if let (Some(folder), false) = (&plan.folder, plan.resumed) {
        store::write(folder, &plan.data, &plan.files, &plan.flags)?;
    }
    let build = begun.elapsed().as_secs_f64();
    let (learnt, curve, seconds) = fit(&plan, args, &model, &identity, position)?;
    let made = Made {
        plan: &plan,
        model: &model,
        table: &table,
        learnt: &learnt,
        curve: &curve,
        seconds: LatentSeconds {
            build,
            fit: seconds,
            results: 0.0,
        },
    };
    let summary = report(&made, args.json, args.quiet)?;
    Ok(if summary.trusted {
        Exit::Done
    } else {
        Exit::Untrusted
    })
}

fn plan(args: &FitArgs) -> Result<Plan, Failure> {
    if let Some(path) = &args.resume {
        let opened = store::open(path)?;
        return Ok(Plan {
            data: opened.data,
            flags: args.flags.or(&opened.run.flags),
            folder: Some(opened.folder),
            files: opened.files,
            resumed: true,
        });
    }
    folder::check_out(args.out.as_deref(), args.flags.checkpoint_every)?;
    let Some(path) = &args.data else {
        return Err(Failure::usage("no data are given: add --data FILE"));
    };
    Ok(Plan {
        data: Data::read(path)?,
        flags: args.flags.clone(),
        folder: None,
        files: PriorFiles::default(),
        resumed: false,
    })
}

fn check_memory(model: &TableModel, limit: u64) -> Result<(), Failure> {
    let need = model.dense_bytes();
    if need > limit {
        return Err(Failure::input(format!(
            "a Gaussian process on so many rows takes about {}, more than the limit of {}: fit a part of the rows, use a Markov \
             field (`rw2`, `grid`), or allow more (--memory-limit)",
            jensen::format_bytes(need),
            jensen::format_bytes(limit)
        )));
    }
    Ok(())
}

fn identity(plan: &Plan, table: &Table, data_hash: String) -> Identity {
    let settings = plan.flags.settings();
    Identity {
        algorithm: store::COMMAND.to_owned(),
        settings: serde_json::json!({
            "request": plan.flags.request(),
            "solver": settings.solver.name(),
            "tolerance": settings.tolerance,
            "nodes": settings.nodes,
            "optimise_hyperparameters": plan.flags.optimise_hyperparameters,
            "restarts": plan.flags.restarts,
            "rows": table.rows(),
        }),
        seed: plan.flags.seed.unwrap_or(0),
        model_hash: jensen::latent::digest(plan.flags.prior.as_deref().unwrap_or("").as_bytes()),
        data_hash,
        simd: jensen::math::simd::Simd::detect().name().to_owned(),
    }
}

/// Iteration, bound and gap.
#[derive(Default)]
struct Line {
    latest: BTreeMap<&'static str, f64>,
}

impl Describe for Line {
    fn note(&mut self, record: &Record) {
        if let Some(bound) = record.elbo {
            self.latest.insert("bound", bound);
        }
        if let Some(gap) = record.fields.get("gap").and_then(serde_json::Value::as_f64) {
            self.latest.insert("gap", gap);
        }
    }

    fn text(&self, progress: &Progress<'_>, speed: f64) -> String {
        let mut text = format!("iteration {}", progress.record.iteration);
        if let Some(bound) = self.latest.get("bound") {
            text += &format!("  bound {bound:.4}");
        }
        if let Some(gap) = self.latest.get("gap") {
            text += &format!("  gap {gap:.1e}");
        }
        format!("{text}  {speed:.0}/s")
    }
}

/// Adds a record to the curves of the report.
fn draw(curve: &mut Curve, record: &Record) {
    let at = record.iteration as f64;
    if let Some(bound) = record.elbo.filter(|b| b.is_finite()) {
        curve.bound.push((at, bound));
    }
    if let Some(gap) = record.fields.get("gap").and_then(serde_json::Value::as_f64) {
        curve.gap.push((at, gap));
    }
}

fn fit(
    plan: &Plan,
    args: &FitArgs,
    model: &TableModel,
    identity: &Identity,
    position: Option<Position>,
) -> Result<(Learnt, Curve, f64), Failure> {
    let session = Session {
        folder: plan.folder.as_ref(),
        position,
        budget: Budget {
            max_iterations: plan.flags.max_iters.unwrap_or(MAX_ITERS),
            max_seconds: plan.flags.max_seconds,
        },
        checkpoint_every: plan.flags.checkpoint_every,
        force: args.force,
        display: Display::with(args.quiet || args.json, Box::new(Line::default())),
    };
    let mut curve = Curve::default();
    let (outcome, seconds) = session.carry_out(
        |record| draw(&mut curve, record),
        |mut control| fit_table(model, &plan.flags.learning(), identity, &mut control),
    )?;
    Ok((outcome?, curve, seconds))
}
