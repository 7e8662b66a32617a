//! `jensen latent predict`.

use jensen::data::write_atomic_bytes;
use jensen::latent::{
    LatentData, TableModel, open_latent, outcome, posterior_at, predictions, stored_posterior,
};

use super::args::PredictArgs;
use crate::failure::{CommandResult, Exit, Failure, print, remark};
use crate::terminal::start_threads;

/// Runs the command.
pub fn run(args: &PredictArgs) -> CommandResult {
    start_threads(args.threads)?;
    let opened = open_latent(&args.dir)?;
    let stored = stored_posterior(&opened.folder)?;
    let table = opened.data.table()?;
    let model = TableModel::new(&opened.run.flags.request(), &table, &opened.files)?;
    let new = LatentData::read(&args.at)?.table()?;
    let rows: Vec<usize> = (0..new.rows()).collect();
    let at = model.at(&stored.theta, &new, &rows, &opened.files)?;
    let (mean, variance) = posterior_at(&model, &stored, &at)?;
    let outcome = outcome(&model, stored.likelihood, &mean, &variance, &at);
    let text = predictions(&model, &outcome, &rows);
    match &args.out {
        None => print(&text)?,
        Some(path) => write_atomic_bytes(path, text.as_bytes()).map_err(Failure::output)?,
    }
    let score = outcome.log_predictive();
    let accuracy = outcome.accuracy(stored.likelihood);
    if args.json {
        let scores = serde_json::json!({
            "rows": rows.len(),
            "scored": outcome.response.iter().filter(|y| !y.is_nan()).count(),
            "log_predictive": score,
            "accuracy": accuracy,
        });
        print(&format!("{scores:#}\n"))?;
    } else if let (Some(score), true) = (score, args.out.is_some()) {
        let share = accuracy.map_or(String::new(), |a| format!(", {:.1} % right", 100.0 * a));
        remark(&format!(
            "log predictive {score:.4} nats an observation{share}"
        ));
    }
    Ok(Exit::Done)
}
