//! Stan programs in a browser: the checker, fits and reports of the library, as functions that WebAssembly exports.
//!
//! Inputs and outputs are JSON texts. [`check()`] reports the errors of a program and its data while the user types.
//! [`fit`] runs a fit like `jensen fit`, with the same flags, and returns its report, its summary and its draws. `cargo
//! xtask playground` builds a page from this crate. The sources of the page are in `docs/playground`.

#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout)
)]

#[cfg(target_family = "wasm")]
mod exports;

use std::fmt::Write;
use std::sync::Arc;

use jensen::HistoryPoint;
use jensen::data::{Coordinates, DataFile, DataFormat, DrawsTable};
use jensen::job::Around;
use jensen::program::{FitRequest, Includes, Program, Source};
use jensen::run::{Clock, Observer, Progress};
use jensen::stan::diagnostic::{Diagnostic, Label};
use jensen::stan::{Checked, Halt, NoIncludes};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const PROGRAM: &str = "program.stan";

/// Time limit of a check of the data, in seconds. The check runs while the user types.
const PATIENCE: f64 = 2.0;

/// Seconds between two progress messages.
const PERIOD: f64 = 0.1;

/// Memory limit of a page, in bytes. WebAssembly has 4 GiB of addresses.
const MEMORY: u64 = 2 << 30;

/// A program and its data, to check or to fit.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The source text of the program.
    pub program: String,
    /// The data, which are JSON if they begin with `{` and otherwise a table in CSV. Text that consists of white space
    /// means that there are no data.
    #[serde(default)]
    pub data: String,
    /// The flags of `jensen fit`, by name.
    #[serde(default)]
    pub flags: FitRequest,
}

impl Task {
    fn source(&self) -> Source {
        let text = self.data.trim_start();
        let (format, name) = match text.starts_with('{') {
            true => (DataFormat::Json, "data.json"),
            false => (DataFormat::Csv, "data.csv"),
        };
        Source {
            model: PROGRAM.to_owned(),
            text: self.program.clone(),
            includes: Includes::default(),
            data: (!text.is_empty()).then(|| DataFile {
                name: name.to_owned(),
                format,
                bytes: self.data.clone().into_bytes(),
            }),
            coordinates: Coordinates::default(),
            regression: None,
        }
    }

    fn compiled(&self, halt: Halt) -> Result<Program, jensen::Error> {
        let flags = FitRequest {
            memory_limit: Some(self.flags.memory_limit.map_or(MEMORY, |m| m.min(MEMORY))),
            ..self.flags.clone()
        };
        Program::compile(self.source(), flags, 1, halt)
    }
}

/// A range of text in an editor, in UTF-16 units as in browsers.
#[derive(Serialize)]
struct Range {
    from: usize,
    to: usize,
    text: String,
}

impl Range {
    fn of(label: &Label, program: &str) -> Self {
        let units = |byte: u32| {
            let before = program.char_indices();
            let before = before.take_while(|(at, _)| *at < byte as usize);
            before.map(|(_, c)| c.len_utf16()).sum()
        };
        Self {
            from: units(label.span.start),
            to: units(label.span.end),
            text: label.text.clone(),
        }
    }
}

fn diagnostic_json(diagnostic: &Diagnostic, checked: &Checked, program: &str) -> Value {
    let file = checked.files.first();
    let (line, column) = file.map_or((1, 1), |f| f.line_column(diagnostic.primary.span.start));
    json!({
        "severity": if diagnostic.is_error() { "error" } else { "warning" },
        "code": diagnostic.code.name(),
        "message": diagnostic.message,
        "line": line,
        "column": column,
        "range": Range::of(&diagnostic.primary, program),
        "others": diagnostic.secondary.iter().map(|label| Range::of(label, program)).collect::<Vec<_>>(),
        "notes": diagnostic.notes,
        "help": diagnostic.help,
    })
}

/// Checks a program, and its data once the program is correct. Returns `{diagnostics, data, variables}`. `data` is a
/// text with the errors of the data, or null. If there are no errors, `variables` lists the names and shapes of the
/// fitted and reported variables.
pub fn check(task: &Task, clock: Arc<dyn Fn() -> f64 + Send + Sync>) -> Value {
    let checked = jensen::stan::check(&task.program, PROGRAM, &NoIncludes);
    let diagnostics: Vec<Value> = (checked.diagnostics.iter())
        .map(|diagnostic| diagnostic_json(diagnostic, &checked, &task.program))
        .collect();
    if checked.program.is_none() {
        return json!({ "diagnostics": diagnostics, "data": null, "variables": [] });
    }
    let end = clock() + PATIENCE;
    let late = move || (clock() > end).then(|| TOO_LONG.to_owned());
    let (wrong, variables) = match task.compiled(Halt::new(late)) {
        Ok(program) => (None, program.variables()),
        Err(error) => (Some(error.to_string()), Vec::new()),
    };
    let variables: Vec<Value> = (variables.iter())
        .map(|variable| json!({ "name": variable.name, "shape": variable.shape }))
        .collect();
    // A slow check is not an error.
    let wrong = wrong.filter(|text| !text.contains(TOO_LONG));
    json!({ "diagnostics": diagnostics, "data": wrong, "variables": variables })
}

const TOO_LONG: &str = "the evaluation takes too long for a preview while typing";

struct Teller<'a> {
    clock: &'a dyn Clock,
    tell: &'a mut dyn FnMut(Value),
    reported: f64,
}

impl Observer for Teller<'_> {
    fn progress(&mut self, progress: &Progress<'_>) {
        let now = self.clock.seconds();
        let Some(point) =
            HistoryPoint::of(progress.record).filter(|_| now - self.reported >= PERIOD)
        else {
            return;
        };
        self.reported = now;
        (self.tell)(json!({
            "stage": point.stage,
            "iteration": point.iteration,
            "bound": point.elbo,
            "error": point.se,
        }));
    }

    fn note(&mut self, note: &str) {
        (self.tell)(json!({ "note": note }));
    }
}

/// Runs a fit like `jensen fit` on one thread. Returns `{trusted, summary, report, draws, remarks}`, or `{error}` if
/// there is no result. `summary` is `fit.json`, `report` is the HTML page, and `draws` is a table in CSV. `tell`
/// receives the state of the run, as `{stage, iteration, bound, error}`.
pub fn fit(task: &Task, clock: &dyn Clock, tell: &mut dyn FnMut(Value)) -> Value {
    carried_out(task, clock, tell).unwrap_or_else(|error| json!({ "error": error.to_string() }))
}

fn carried_out(
    task: &Task,
    clock: &dyn Clock,
    tell: &mut dyn FnMut(Value),
) -> Result<Value, jensen::Error> {
    let program = task.compiled(Halt::default())?;
    let mut teller = Teller {
        clock,
        tell,
        reported: f64::NEG_INFINITY,
    };
    let around = Around {
        results: jensen::job::ResultFolder::None,
        checkpoint_every: None,
        memory_limit: MEMORY,
        clock,
        cancel: None,
        partial: false,
        observer: &mut teller,
    };
    let (fitted, summary) = program.fit(program.start(None)?, around)?;
    let about = program.about_fit(&fitted);
    Ok(json!({
        "trusted": summary.trusted,
        "summary": summary,
        "report": jensen::report::render(&fitted.report(&about)),
        "draws": table(&fitted.sample.table),
        "remarks": program.remarks(),
    }))
}

fn table(draws: &DrawsTable) -> String {
    let names: Vec<String> = (draws.variables().iter())
        .flat_map(|variable| variable.display_names())
        .map(|name| match name.contains(',') {
            true => format!("\"{name}\""),
            false => name,
        })
        .collect();
    let mut text = names.join(",") + "\n";
    for row in 0..draws.len() {
        for (at, value) in draws.row(row).iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            // Writing to a string cannot fail.
            let _ = write!(text, "{comma}{value}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(program: &str, data: &str) -> Task {
        let flags = FitRequest::default();
        Task {
            program: program.to_owned(),
            data: data.to_owned(),
            flags,
        }
    }

    fn checked(program: &str, data: &str) -> Value {
        check(&task(program, data), Arc::new(|| 0.0))
    }

    const COIN: &str = "data { int N; array[N] int<lower=0, upper=1> y; }
        parameters { real<lower=0, upper=1> theta; }
        model { y ~ bernoulli(theta); }";

    #[test]
    fn mistakes_have_their_ranges_as_browsers_count_them() {
        // 𝛽 has two UTF-16 units and four bytes.
        let found = checked("// 𝛽\nparameters { real x }", "");
        let first = &found["diagnostics"][0];
        assert_eq!(first["severity"], "error");
        assert_eq!(first["line"], 2);
        let text: Vec<u16> = "// 𝛽\nparameters { real x }".encode_utf16().collect();
        let from = first["range"]["from"].as_u64().unwrap() as usize;
        // The message points to the end of the statement without a semicolon.
        assert_eq!(char::from_u32(u32::from(text[from])), Some('x'));
    }

    #[test]
    fn data_are_compared_with_their_declarations() {
        let found = checked(COIN, "{\"N\": 2, \"y\": [0, 3]}");
        assert_eq!(found["diagnostics"].as_array().unwrap().len(), 0);
        assert!(found["data"].as_str().unwrap().contains('y'));
        let found = checked(COIN, "{\"N\": 2, \"y\": [0, 1]}");
        assert!(found["data"].is_null());
        assert_eq!(found["variables"][0]["name"], "theta");
        // The data of a table contain the number of its rows and its columns.
        assert!(checked(COIN, "y\n0\n1\n")["data"].is_null());
    }

    #[test]
    fn a_fit_is_that_of_the_command() {
        let task = task(COIN, "y\n0\n1\n0\n0\n");
        let mut messages = Vec::new();
        let clock = || 0.0;
        let found = fit(&task, &clock, &mut |word| messages.push(word));
        assert_eq!(found["trusted"], true, "{}", found["error"]);
        // The posterior is beta(2, 4).
        let mean = found["summary"]["parameters"][0]["mean"].as_f64().unwrap();
        assert!((mean - 1.0 / 3.0).abs() < 0.02, "{mean}");
        assert!(found["report"].as_str().unwrap().contains("theta"));
        let draws = found["draws"].as_str().unwrap();
        assert_eq!(draws.lines().next(), Some("theta"));
        assert_eq!(draws.lines().count(), 1001);
        assert!(messages.iter().any(|word| word["bound"].is_number()));
    }

    #[test]
    fn what_cannot_be_fitted_says_why() {
        let found = fit(&task(COIN, ""), &|| 0.0, &mut |_| {});
        assert!(found["error"].as_str().unwrap().contains('N'));
    }
}
