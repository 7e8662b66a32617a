//! Fuzzes the readers and the compiler. The driver runs all inputs within one process.

use std::path::Path;
use std::process::Command;

use super::Flags;
use crate::run;

/// Runs every target for the given number of seconds. It tries at most `--count` times as many inputs as the driver
/// specifies for the target.
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
