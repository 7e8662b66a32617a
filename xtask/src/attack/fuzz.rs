//! Readers and the compiler, by a driver that runs within one process.

use std::path::Path;

use super::Flags;
use crate::run::cargo;

/// Runs every target for so many seconds, and for at most `--count` times the inputs that the driver states for it.
pub fn attack(root: &Path, arguments: &[String]) -> Result<String, String> {
    let flags = Flags::read(arguments, usize::MAX)?;
    let numbers = [flags.seconds, flags.seed, flags.count as u64].map(|n| n.to_string());
    let mut line = vec!["run", "-q", "--profile", "quick", "-p", "jensen-cli"];
    line.extend(["--example", "fuzz", "--"]);
    line.extend(numbers.iter().map(String::as_str));
    cargo(root, &line, &[])?;
    Ok("no find".to_owned())
}
