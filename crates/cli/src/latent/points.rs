//! `jensen latent points`.

use std::path::{Path, PathBuf};

use jensen::data::Table;
use jensen::job::{MEMORY_LIMIT, ResultFolder};
use jensen::latent::{LatentRequest, PointPattern, PointsSummary, fit_points, intensity_table};

use super::args::PointsArgs;
use super::fit::{Line, table};
use crate::failure::{CommandResult, Failure};
use crate::terminal::{Say, Setting, check_out, conclude, start_threads};

pub fn run(args: &PointsArgs) -> CommandResult {
    check_out(args.out.as_deref(), None)?;
    start_threads(args.threads)?;
    let [x, y] = args.on.as_slice() else {
        return Err(Failure::usage(
            "--on needs the two columns of coordinates: --on X,Y",
        ));
    };
    let read = |path: &PathBuf| Table::read(path);
    let pattern = PointPattern::read(
        [x.clone(), y.clone()],
        &read(&args.points)?,
        args.window.as_ref().map(read).transpose()?.as_ref(),
        args.covariates.as_ref().map(read).transpose()?.as_ref(),
    )?;
    let flags = LatentRequest {
        prior: args.prior.clone(),
        threads: args.threads,
        max_seconds: args.max_seconds,
        seed: args.seed,
        ..LatentRequest::default()
    };
    let length = args.cell.unwrap_or_else(|| pattern.length());
    let say = Say {
        json: args.json,
        quiet: args.quiet,
    };
    let setting = Setting {
        memory_limit: MEMORY_LIMIT,
        ..Setting::new(
            ResultFolder::new(args.out.as_deref()),
            Box::new(Line::default()),
        )
    };
    let (summary, folder, intensities) =
        setting.watch(say, |around| fit_points(flags, &pattern, length, around))?;
    if let Some(path) = &args.intensity {
        write(path, &intensity_table(&pattern, &intensities))?;
    }
    let trusted = summary.fit.judgement.trusted;
    conclude(&summary, trusted, folder.as_deref(), say, 9, shown)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|e| Failure::usage(format!("cannot write {}: {e}", path.display())))
}

fn shown(summary: &PointsSummary) -> String {
    let (low, high) = summary.expected_interval;
    let mut text = format!(
        "points    {}, expected {:.1} [{low:.1}, {high:.1}] in a window of area {:.6}\n\
         integral  {} cells; half their length changes the expected number by {:.2}\n",
        summary.points, summary.expected, summary.area, summary.cells, summary.integral_error
    );
    for remark in &summary.remarks {
        text += &format!("          - {remark}\n");
    }
    text + &table(&summary.fit)
}
