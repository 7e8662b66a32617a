//! `jensen check`.

use std::io::IsTerminal;

use jensen::data::read_text;
use jensen::program::Includes;
use jensen::stan;

use crate::args::CheckArgs;
use crate::failure::{CommandResult, Exit, Failure, harmless, print, remark, remark_coloured};

/// Runs the command: diagnostics on standard error, one line a program on standard output.
pub fn run(args: &CheckArgs) -> CommandResult {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colour = std::io::stderr().is_terminal() && !unwanted;
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
        let includes = Includes::of_folders(&args.include);
        let mut checked = stan::check(&text, &name, &includes);
        if let Some(program) = &checked.program {
            checked.diagnostics.extend(stan::unsupported(program));
        }
        if !checked.diagnostics.is_empty() {
            // Colours are escapes, too: those of a text that has its own cannot be told from them.
            match colour && harmless(&text) == text && harmless(&name) == name {
                true => remark_coloured(&checked.render(true)),
                false => remark(&checked.render(false)),
            }
        }
        let errors = checked.diagnostics.iter().filter(|d| d.is_error()).count();
        let warnings = checked.diagnostics.len() - errors;
        if errors > 0 {
            exit = Exit::Input;
            print(&format!("{name}: {}\n", count(errors, "error")))?;
        } else if warnings > 0 {
            print(&format!(
                "{name}: correct, {}\n",
                count(warnings, "warning")
            ))?;
        } else {
            print(&format!("{name}: correct\n"))?;
        }
    }
    Ok(exit)
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
