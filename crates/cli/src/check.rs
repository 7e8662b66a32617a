//! `jensen check`.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use jensen::data::read_text;
use jensen::program::Includes;
use jensen::stan;

use crate::args::CheckArgs;
use crate::failure::{CommandResult, Exit, Failure, harmless, print, remark, remark_coloured};

/// Runs the command: diagnostics on standard error, one line a program on standard output.
pub fn run(args: &CheckArgs) -> CommandResult {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colour = std::io::stderr().is_terminal() && !unwanted;
    let is_data = |path: &&PathBuf| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        ending.is_some_and(|ending| ["json", "csv", "R", "parquet"].contains(&ending))
    };
    if let Some(data) = args.models.iter().find(is_data) {
        return Err(Failure::usage(format!(
            "`{}` is a file of data, and `jensen check` reads programs alone; `jensen fit MODEL DATA` checks both before it begins",
            data.display()
        )));
    }
    let mut exit = Exit::Done;
    for path in &args.models {
        let name = path.display().to_string();
        let text = match read_text(path) {
            Ok(text) => text,
            Err(error) => {
                Failure::from(error).report();
                exit = Exit::Input;
                continue;
            }
        };
        let includes = Includes::of_folders(&args.include).in_old_syntax(args.old_syntax);
        let text = match args.old_syntax {
            true => stan::modernise(&text),
            false => text,
        };
        let mut checked = stan::check(&text, &name, &includes);
        if let Some(program) = &checked.program {
            let found = stan::unsupported(program);
            // What is known not to be computed needs no trial.
            let found = match found.is_empty() {
                true => stan::refusals(&Arc::new(program.clone())),
                false => found,
            };
            checked.diagnostics.extend(found);
        }
        if !checked.diagnostics.is_empty() {
            // Colours are escapes, too: those of a text that has its own cannot be told from them.
            match colour && harmless(&text) == text && harmless(&name) == name {
                true => remark_coloured(&checked.render(true)),
                false => remark(&checked.render(false)),
            }
        }
        if args.old_syntax {
            print(&text)?;
        }
        let errors = checked.diagnostics.iter().filter(|d| d.is_error()).count();
        let warnings = checked.diagnostics.len() - errors;
        if errors > 0 {
            exit = Exit::Input;
            report(args, &format!("{name}: {}\n", count(errors, "error")))?;
        } else if warnings > 0 {
            report(
                args,
                &format!("{name}: correct, {}\n", count(warnings, "warning")),
            )?;
        } else {
            report(args, &format!("{name}: correct\n"))?;
        }
    }
    Ok(exit)
}

/// The line about a program: standard output has the program itself where that is printed.
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
