//! The output of `--verbose` on standard error. It lists the steps of a command, and the seconds since the command
//! started.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use jensen::HistoryPoint;
use jensen::data::text::fixed;
use jensen::run::{Progress, Record};

use crate::failure::remark;
use crate::progress::Describe;

static START: OnceLock<Instant> = OnceLock::new();

const PERIOD: Duration = Duration::from_secs(5);

pub fn set(verbose: bool) {
    if verbose {
        let _ = START.set(Instant::now());
    }
}

pub fn is_on() -> bool {
    START.get().is_some()
}

/// Logs a step. The text is constructed only if it is printed.
pub fn say(text: impl FnOnce() -> String) {
    if let Some(start) = START.get() {
        remark(&format!(
            "[{:9.3} s] {}",
            start.elapsed().as_secs_f64(),
            text()
        ));
    }
}

/// Logs the steps of a run. Each step has a line at its beginning and at its end, and occasional lines in between.
#[derive(Default)]
pub struct Steps {
    at: Option<Step>,
}

struct Step {
    name: String,
    first: u64,
    last: u64,
    bound: String,
    begun: Instant,
    said: Instant,
}

impl Steps {
    /// Records an iteration. `line` supplies the text that describes it.
    pub fn note(&mut self, progress: &Progress<'_>, line: &dyn Describe) {
        if !is_on() {
            return;
        }
        let record = progress.record;
        let name = name_of(record);
        if self.at.as_ref().is_none_or(|step| step.name != name) {
            self.end();
            if !name.is_empty() {
                say(|| format!("{name}: begins"));
            }
            self.at = Some(Step {
                name,
                first: record.iteration,
                last: record.iteration,
                bound: String::new(),
                begun: Instant::now(),
                said: Instant::now(),
            });
        }
        let Some(step) = &mut self.at else { return };
        step.last = record.iteration;
        if let Some(point) = HistoryPoint::of(record) {
            let se = point
                .se
                .map_or(String::new(), |se| format!(" ± {}", fixed(se, 2)));
            step.bound = format!(", ELBO {}{se}", fixed(point.elbo, 2));
        }
        if step.said.elapsed() >= PERIOD {
            step.said = Instant::now();
            let iterations = (step.last - step.first + 1) as f64;
            let speed = iterations / step.begun.elapsed().as_secs_f64();
            say(|| line.text(progress, speed));
        }
    }

    /// Logs the end of the most recent step.
    pub fn end(&mut self) {
        if let Some(step) = self.at.take() {
            let of = match step.name.as_str() {
                "" => "the run".to_owned(),
                name => name.to_owned(),
            };
            let count = step.last - step.first + 1;
            say(|| format!("{of}: {count} iterations{}", step.bound));
        }
    }
}

fn name_of(record: &Record) -> String {
    let text = |name: &str| record.fields.get(name).and_then(|value| value.as_str());
    let stage = text("stage").unwrap_or("");
    let start = record.fields.get("start").and_then(|value| value.as_f64());
    // If a step continues from several starts, its number is greater than the number of any start.
    if let Some(start) = start.filter(|start| *start < f64::from(u32::MAX)) {
        return format!("{stage}, start {start}");
    }
    let parts = [Some(stage), text("family"), text("phase")];
    let parts: Vec<&str> = parts
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty())
        .collect();
    parts.join(", ")
}
