//! Every function of the library with large arguments: a second of time, and a second more of processor time until it ends.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Flags, finish};
use crate::run::{cargo, given};

/// Processor seconds: the value of `--max-seconds`, the time until the end, and the time for starting.
const SECONDS: u32 = 3;

/// Runs the requested number of programs with one call each, under the default limits of memory.
pub fn attack(
    root: &Path,
    desk: &Path,
    flags: &Flags,
    count: usize,
) -> Result<Vec<String>, String> {
    let folder = desk.join("calls");
    let (place, count, seed) = (
        folder.display().to_string(),
        count.to_string(),
        flags.seed.to_string(),
    );
    write(root, [&place, &count, &seed])?;
    let read = |e: std::io::Error| format!("`{place}`: {e}");
    let mut programs: Vec<_> = fs::read_dir(&folder)
        .map_err(read)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    programs.sort();
    let mut finds = Vec::new();
    for program in &programs {
        let mut shell = Command::new("sh");
        // Beyond its processor time the system ends a process by a signal.
        let limited = format!("ulimit -t {SECONDS}; exec \"$0\" \"$@\"");
        shell.args(["-c", &limited]).arg(&flags.jensen).arg("fit");
        shell.arg(program).args([
            "--max-seconds",
            "1",
            "--threads",
            "1",
            "--memory-limit",
            "1GiB",
            "--quiet",
        ]);
        shell.stdin(Stdio::null()).stdout(Stdio::null());
        let child = shell.stderr(Stdio::piped()).spawn().map_err(read)?;
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        match finish(child) {
            Ok(ended) if ended.code.is_none() => finds.push(format!(
                "{name}: more than {SECONDS} seconds of processor time"
            )),
            Ok(ended) => finds.extend(ended.clean().err().map(|e| format!("{name}: {e}"))),
            Err(find) => finds.push(format!("{name}: {find}")),
        }
    }
    Ok(finds)
}

/// Writes the programs: their folder, number and seed.
fn write(root: &Path, arguments: [&str; 3]) -> Result<(), String> {
    let Some(built) = given() else {
        let line = ["run", "-q", "-p", "jensen-stan", "--example", "calls", "--"];
        return cargo(root, &[&line[..], &arguments].concat(), &[]);
    };
    let program = built.join("examples/calls");
    let status = Command::new(&program).args(arguments).status();
    match status.map_err(|e| format!("`{}`: {e}", program.display()))? {
        status if status.success() => Ok(()),
        status => Err(format!("`{}`: {status}", program.display())),
    }
}
