//! Fuzzes the readers and the compiler by a driver that runs within one process.

use std::path::Path;
use std::process::Command;

use super::Flags;
use crate::run;

/// Runs every target for the given seconds, and for at most `--count` times the number of inputs that the driver
/// specifies for it.
pub fn attack(root: &Path, arguments: &[String]) -> Result<String, String> {
    let flags = Flags::read(arguments, usize::MAX)?;
    let numbers = [flags.seconds, flags.seed, flags.count as u64].map(|n| n.to_string());
    let driver = run::example(root, "fuzz")?;
    let status = Command::new(&driver)
        .args(&numbers)
        .current_dir(root)
        .status();
    match status.map_err(|error| format!("{}: {error}", driver.display()))? {
        status if status.success() => Ok("no find".to_owned()),
        _ => Err("the driver found faults".to_owned()),
    }
}
