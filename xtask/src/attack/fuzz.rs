//! Readers and the compiler, by a driver that runs within one process.

use std::path::Path;

use super::Flags;
use crate::run::cargo;

/// Runs every target for so many seconds.
pub fn attack(root: &Path, arguments: &[String]) -> Result<String, String> {
    let flags = Flags::read(arguments, 0)?;
    let (seconds, seed) = (flags.seconds.to_string(), flags.seed.to_string());
    cargo(
        root,
        &[
            "run",
            "-q",
            "--profile",
            "quick",
            "-p",
            "jensen-cli",
            "--example",
            "fuzz",
            "--",
            &seconds,
            &seed,
        ],
        &[],
    )?;
    Ok(format!("{seconds} seconds of every target"))
}
