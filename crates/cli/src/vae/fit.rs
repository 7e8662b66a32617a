//! `jensen vae fit`.

use std::path::PathBuf;
use std::time::Instant;

use jensen::job::{ResultFolder, request};
use jensen::vae::{SCORED, VaeData, VaeSummary, columns_in_words, fit_vae, open_vae};

use super::args::FitArgs;
use super::progress::Line;
use crate::failure::CommandResult;
use crate::terminal::{Say, Setting, check_out, conclude, start_threads, verdict};

pub fn run(args: &FitArgs) -> CommandResult {
    start_threads(args.threads)?;
    let begun = Instant::now();
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    let (results, stored) = match &args.resume {
        None => {
            check_out(args.out.as_deref(), args.flags.checkpoint_every)?;
            (ResultFolder::new(args.out.as_deref()), None)
        }
        Some(path) => {
            let (folder, stored) = open_vae(path)?;
            let force = args.force;
            (ResultFolder::Resumed { folder, force }, Some(stored))
        }
    };
    let (flags, data, validation) = match stored {
        None => (args.flags.clone(), PathBuf::new(), None),
        Some(stored) => {
            let flags = request::over(&args.flags, &stored.flags)?;
            (flags, stored.data, stored.validation)
        }
    };
    let data = args.data.clone().map_or(data, absolute);
    let validation = match &args.validation {
        Some(given) if given.parse::<f64>().is_err() => {
            Some(absolute(given.into()).display().to_string())
        }
        Some(share) => Some(share.clone()),
        None => validation,
    };
    let (epochs, checkpoint_every) = (flags.epochs(), flags.checkpoint_every);
    let data = VaeData::open(data, validation, flags, args.memory_limit)?;
    let say = Say {
        json: args.json,
        quiet: args.quiet,
    };
    let setting = Setting {
        checkpoint_every,
        memory_limit: args.memory_limit,
        ..Setting::new(results, Box::new(Line::new(epochs)))
    };
    let open_seconds = begun.elapsed().as_secs_f64();
    let (summary, folder) = setting.watch(say, |around| {
        fit_vae(&data, open_seconds, around, |done| {
            (done.summary, done.folder)
        })
    })?;
    let trusted = summary.judgement.trusted;
    conclude(&summary, trusted, folder.as_deref(), say, 11, table)
}

fn table(summary: &VaeSummary) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| text += &format!("{name:<11} {value}\n");
    let bound = |bound: Option<f64>, se: Option<f64>, records: String| match (bound, se) {
        (Some(bound), Some(se)) => format!("{bound:.2} ± {se:.2} nats/record over {records}"),
        _ => "not finite".to_owned(),
    };
    line(
        "bound",
        bound(
            summary.bound,
            summary.bound_se,
            format!("{} training records", summary.records.min(SCORED)),
        ),
    );
    if summary.validation_records > 0 {
        line(
            "validation",
            bound(
                summary.validation_bound,
                summary.validation_bound_se,
                format!("{} records", summary.validation_records),
            ),
        );
    }
    if !summary.columns.is_empty() {
        line("columns", columns_in_words(&summary.columns));
    }
    if summary.missing_values > 0 {
        line("missing", format!("{} values", summary.missing_values));
    }
    line(
        "latent",
        format!(
            "{} of {} values active",
            summary.active_units, summary.architecture.latent
        ),
    );
    if let (Some(speed), Some(epoch)) = (summary.samples_per_second, summary.seconds_per_epoch) {
        line(
            "speed",
            format!("{speed:.0} records/s, {epoch:.2} s an epoch"),
        );
    }
    text + &verdict(&summary.judgement, 11)
}
