//! `jensen latent predict`.

use jensen::data::write_atomic_bytes;
use jensen::job::MEMORY_LIMIT;
use jensen::latent::{
    LatentData, TableModel, drawn, draws_at, open_latent, outcome, posterior_at, predictions,
    stored_posterior,
};

use super::args::PredictArgs;
use crate::failure::{CommandResult, Exit, Failure, print, remark};
use crate::terminal::start_threads;

pub fn run(args: &PredictArgs) -> CommandResult {
    start_threads(args.threads)?;
    let opened = open_latent(&args.dir)?;
    let stored = stored_posterior(&opened.folder)?;
    let table = opened.data.table()?;
    let model = TableModel::new(&opened.run.flags.request(), &table, &opened.files)?;
    let new = LatentData::read(&args.at, MEMORY_LIMIT)?.table()?;
    let rows: Vec<usize> = (0..new.rows()).collect();
    if let Some(draws) = args.draws {
        let seed = args.seed.or(opened.run.flags.seed).unwrap_or(0);
        let asked = (draws as usize, seed);
        let made = draws_at(&model, &stored, &new, &rows, &opened.files, asked)?;
        write(args, &drawn(&model, &made, &rows, seed))?;
        return Ok(Exit::Done);
    }
    let (parts, seen) = posterior_at(&model, &stored, &new, &rows, &opened.files)?;
    let outcome = outcome(&model, &parts, &seen);
    let text = predictions(&model, &outcome, None, &rows);
    write(args, &text)?;
    let score = outcome.log_predictive();
    let accuracy = outcome.accuracy(model.likelihood());
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
            "log predictive {score:.4} nats per observation{share}"
        ));
    }
    Ok(Exit::Done)
}

fn write(args: &PredictArgs, text: &str) -> Result<(), Failure> {
    match &args.out {
        None => print(text),
        Some(path) => write_atomic_bytes(path, text.as_bytes()).map_err(Failure::output),
    }
}
