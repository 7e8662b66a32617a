//! Calls every function of the library with large arguments. Each run may take one second, and another second of
//! processor time until it ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::{Finds, Flags, finish};
use crate::run::{cargo, given};

/// Limit in processor seconds. It is the sum of the value of `--max-seconds`, the time until the end, and the time to
/// start.
const SECONDS: u32 = 3;

/// Number of programs that together call every function of the library.
const EVERY: usize = 800;

/// Runs programs that contain one call each. Each thread of the machine runs one program at a time.
pub fn attack(root: &Path, arguments: &[String]) -> Result<String, String> {
    let flags = Flags::read(arguments, EVERY)?.built(root)?;
    let folder = root.join("target/attack/calls");
    let _ = fs::remove_dir_all(&folder);
    let (path, count, seed) = (
        folder.display().to_string(),
        flags.count.to_string(),
        flags.seed.to_string(),
    );
    write(root, [&path, &count, &seed])?;
    let entries = fs::read_dir(&folder).map_err(|e| format!("`{path}`: {e}"))?;
    let mut programs: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    programs.sort();
    let (next, finds) = (AtomicUsize::new(0), Mutex::new(Finds::default()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(find) = one(&flags.jensen, program) {
                        let mut finds = finds.lock().unwrap_or_else(PoisonError::into_inner);
                        finds.add(&find);
                    }
                }
            });
        }
    });
    let finds = finds.into_inner().unwrap_or_else(PoisonError::into_inner);
    finds.conclude(format!(
        "{} programs with a call each, all within {SECONDS} processor seconds",
        programs.len()
    ))
}

fn one(jensen: &Path, program: &Path) -> Result<(), String> {
    let mut shell = Command::new("sh");
    // The system sends a signal to a process that exceeds its processor time.
    let limited = format!("ulimit -t {SECONDS}; exec \"$0\" \"$@\"");
    shell.args(["-c", &limited]).arg(jensen).arg("fit");
    let limits = [
        ["--max-seconds", "1"],
        ["--threads", "1"],
        ["--memory-limit", "1GiB"],
    ];
    shell.arg(program).args(limits.concat()).arg("--quiet");
    shell.stdin(Stdio::null()).stdout(Stdio::null());
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let ended = shell.stderr(Stdio::piped()).spawn();
    let ended = ended.map_err(|e| e.to_string()).and_then(finish);
    match ended.and_then(|ended| match ended.code {
        None => Err(format!("more than {SECONDS} seconds of processor time")),
        Some(_) => ended.clean(),
    }) {
        Ok(()) => Ok(()),
        Err(find) => Err(format!("{name}: {find}")),
    }
}

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
