//! `jensen check`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jensen::blackbox::FitError;
use jensen::job::MEMORY_LIMIT;
use jensen::program::{FitRequest, Program, Source};
use jensen::stan::{self, Checked};

use crate::args::CheckArgs;
use crate::failure::{CommandResult, Exit, Failure, harmless, print, remark, remark_coloured};
use crate::limits;

const DATA: [&str; 7] = ["json", "csv", "tsv", "r", "rdump", "dump", "parquet"];

/// Runs the command. It prints diagnostics to standard error, and one line for each program to standard output.
pub fn run(args: &CheckArgs) -> CommandResult {
    let (files, models): (Vec<&PathBuf>, Vec<&PathBuf>) =
        args.files.iter().partition(|path| is_data(path));
    let data: Vec<&PathBuf> = files.into_iter().chain(&args.data).collect();
    if let [first, second, ..] = data[..] {
        return Err(Failure::usage(format!(
            "`{}` and `{}` are both data files: give one data file",
            first.display(),
            second.display()
        )));
    }
    let data = data.first().map(|path| path.as_path());
    if let (Some(data), []) = (data, &models[..]) {
        return Err(Failure::usage(format!(
            "`{}` is a data file: give the program too",
            data.display()
        )));
    }
    let mut exit = Exit::Done;
    for model in models {
        match check(args, model, data) {
            Ok(line) => report(args, &line)?,
            Err(Wrong::File(failure)) => {
                failure.report();
                exit = Exit::Input;
            }
            Err(Wrong::Program(line)) => {
                report(args, &line)?;
                exit = Exit::Input;
            }
        }
    }
    Ok(exit)
}

fn is_data(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| DATA.contains(&ending.to_ascii_lowercase().as_str()))
}

enum Wrong {
    File(Failure),
    /// The program has errors, either by itself or in combination with its data. The diagnostics have already been
    /// printed.
    Program(String),
}

fn check(args: &CheckArgs, model: &Path, data: Option<&Path>) -> Result<String, Wrong> {
    let read = Source::read(model, &args.include, data, MEMORY_LIMIT);
    let source = read.map_err(|error| Wrong::File(error.into()))?;
    let source = match args.old_syntax {
        true => source.modernised(),
        false => source,
    };
    let name = source.model.clone();
    let checked = diagnosed(&source, data.is_some());
    say(&checked, &source.text, &name);
    if args.old_syntax {
        print(&source.text).map_err(Wrong::File)?;
    }
    let errors = checked.diagnostics.iter().filter(|d| d.is_error()).count();
    if errors > 0 {
        return Err(Wrong::Program(format!(
            "{name}: {}\n",
            count(errors, "error")
        )));
    }
    let mut warnings = checked.diagnostics.len();
    let about = match data {
        Some(data) => format!("{name} with {}", data.display()),
        None => name,
    };
    // If there are no data, the program is checked without being compiled for particular data.
    let functions = model.extension().is_some_and(|e| e == "stanfunctions");
    let needs_none = checked.program.is_some_and(|p| p.data.is_empty()) && !functions;
    if data.is_some() || needs_none {
        let notes = compiled(source).map_err(|failure| {
            failure.report();
            Wrong::Program(format!("{about}: 1 error\n"))
        })?;
        notes
            .iter()
            .for_each(|note| remark(&format!("warning: {note}")));
        warnings += notes.len();
    }
    Ok(match warnings {
        0 => format!("{about}: correct\n"),
        _ => format!("{about}: correct, {}\n", count(warnings, "warning")),
    })
}

/// Returns the messages about the program alone. If there are data, the program is evaluated with these data later, so
/// it is not tried with generated data here.
fn diagnosed(source: &Source, has_data: bool) -> Checked {
    let mut checked = stan::check(&source.text, &source.model, &source.includes);
    if let Some(program) = &checked.program {
        let found = stan::unsupported(program);
        // A program is not tried if it contains constructs that cannot be evaluated.
        let found = match found.is_empty() && !has_data {
            true => stan::refusals(&Arc::new(program.clone())),
            false => found,
        };
        checked.diagnostics.extend(found);
    }
    checked
}

fn compiled(source: Source) -> Result<Vec<String>, Failure> {
    let request = FitRequest::default();
    let halt = limits::halt(request.max_seconds, request.memory_limit());
    let program = Program::compile(source, request, 1, halt)?;
    if program.dim() == 0 {
        return Err(jensen::Error::Fit(FitError::NoParameters).into());
    }
    Ok(program.notes())
}

fn say(checked: &Checked, text: &str, name: &str) {
    if checked.diagnostics.is_empty() {
        return;
    }
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colour = std::io::stderr().is_terminal() && !unwanted;
    // Colours are escape sequences, which cannot be distinguished from escape sequences that the text itself contains.
    match colour && harmless(text) == text && harmless(name) == name {
        true => remark_coloured(&checked.render(true)),
        false => remark(&checked.render(false)),
    }
}

/// Prints the line about a program. If the program itself is printed to standard output, the line is printed to
/// standard error.
fn report(args: &CheckArgs, line: &str) -> Result<(), Failure> {
    match args.old_syntax {
        true => {
            remark(line.trim_end());
            Ok(())
        }
        false => print(line),
    }
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
