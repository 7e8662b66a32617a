//! `jensen latent fit`.

use std::collections::BTreeMap;

use jensen::job::{MEMORY_LIMIT, ResultFolder, request};
use jensen::latent::{LatentData, LatentRun, LatentSummary, PriorFiles, fit_latent, open_latent};
use jensen::run::{Progress, Record};

use super::args::FitArgs;
use crate::failure::{CommandResult, Failure};
use crate::progress::Describe;
use crate::table::seconds;
use crate::terminal::{Say, Setting, check_out, conclude, start_threads, verdict};

pub fn run(args: &FitArgs) -> CommandResult {
    let (results, flags, data, files) = if let Some(path) = &args.resume {
        let opened = open_latent(path)?;
        let flags = request::over(&args.flags, &opened.run.flags)?;
        let (folder, force) = (opened.folder, args.force);
        let results = ResultFolder::Resumed { folder, force };
        (results, flags, opened.data, opened.files)
    } else {
        check_out(args.out.as_deref(), args.flags.checkpoint_every)?;
        let Some(path) = args.given.as_ref().or(args.data.as_ref()) else {
            return Err(Failure::usage("no data are given: add --data FILE"));
        };
        let results = ResultFolder::new(args.out.as_deref());
        let memory_limit = args.flags.memory_limit.unwrap_or(MEMORY_LIMIT);
        let (data, files) = (LatentData::read(path, memory_limit)?, PriorFiles::default());
        (results, args.flags.clone(), data, files)
    };
    flags.check()?;
    start_threads(flags.threads)?;
    let say = Say {
        json: args.json,
        quiet: args.quiet,
    };
    let setting = Setting {
        checkpoint_every: flags.checkpoint_every,
        memory_limit: flags.memory_limit.unwrap_or(MEMORY_LIMIT),
        ..Setting::new(results, Box::new(Line::default()))
    };
    let run = LatentRun {
        data: data.name.clone(),
        files: BTreeMap::new(),
        flags,
    };
    let (summary, folder) = setting.watch(say, |around| {
        fit_latent(run, &data, &files, around, |done| {
            (done.summary, done.folder)
        })
    })?;
    let trusted = summary.judgement.trusted;
    conclude(&summary, trusted, folder.as_deref(), say, 9, table)
}

#[derive(Default)]
pub(super) struct Line {
    bound: Option<f64>,
    gap: Option<f64>,
}

impl Describe for Line {
    fn note(&mut self, record: &Record) {
        self.bound = record.elbo.or(self.bound);
        let gap = record.fields.get("gap").and_then(serde_json::Value::as_f64);
        self.gap = gap.or(self.gap);
    }

    fn text(&self, progress: &Progress<'_>, speed: f64) -> String {
        let mut text = format!("iteration {}", progress.record.iteration);
        if let Some(bound) = self.bound {
            text += &format!("  bound {bound:.4}");
        }
        if let Some(gap) = self.gap {
            text += &format!("  gap {gap:.1e}");
        }
        format!("{text}  {speed:.0}/s")
    }
}

/// The number of rows of the table that is printed. The file `fit.json` contains all rows.
const ROWS: usize = 20;

pub(super) fn table(summary: &LatentSummary) -> String {
    let mut text = String::new();
    for parameter in summary.parameters.iter().take(ROWS) {
        text += &format!(
            "{:<32} {:>11.4} ± {:<9.4}\n",
            parameter.name, parameter.mean, parameter.sd
        );
    }
    if let Some(more @ 1..) = summary.parameters.len().checked_sub(ROWS) {
        text += &format!("… and {more} more (--json or --out lists all)\n");
    }
    for hyper in &summary.hyperparameters {
        let how = match (hyper.q05, hyper.q95) {
            (Some(low), Some(high)) => format!("  [{low:.4}, {high:.4}]"),
            _ if hyper.learnt => "  learnt".to_owned(),
            _ => String::new(),
        };
        text += &format!("{:<32} {:>11.6}{how}\n", hyper.name, hyper.value);
    }
    let mut line = |name: &str, value: String| text += &format!("{name:<9} {value}\n");
    let gap = match summary.gap {
        Some(gap) => format!(", at most {gap:.1e} below its maximum"),
        None => String::new(),
    };
    let (name, expectation) = match (summary.slack, summary.slack_error) {
        (Some(0.0), Some(error)) => (
            "ELBO",
            format!("expectations by quadrature, error {error:.0e} per observation"),
        ),
        (Some(slack), _) => (
            "bound",
            format!(
                "`{}`, lower than the ELBO by {slack:.1e} per observation",
                summary.objective
            ),
        ),
        _ => ("ELBO", "exact expectations".to_owned()),
    };
    line(
        name,
        format!("{:.6} nats{gap} ({expectation})", summary.bound),
    );
    if let Some(plain) = &summary.plain {
        let (own, other) = (plain.own, plain.plain);
        let value = format!(
            "leave-one-out log score {own:.4} nats per row; {}: {other:.4}",
            plain.model
        );
        line("predicts", value);
    }
    line(
        "time",
        format!(
            "read {}, fit {}, solver {} ({} iterations)",
            seconds(summary.seconds.build),
            seconds(summary.seconds.fit),
            seconds(summary.solver_seconds),
            summary.iterations
        ),
    );
    text + &verdict(&summary.judgement, 9)
}
