//! Writes the man pages of the command to `target/man/man1`. `man -M target/man jensen-fit` shows one of them.

use std::path::Path;

use crate::run::{self, Ended};

/// Writes the man pages from the declaration of the command line.
pub fn write(root: &Path) -> Result<Ended, String> {
    let folder = run::target(root)?.join("man/man1");
    // Removed commands must have no page.
    let _ = std::fs::remove_dir_all(&folder);
    let output = folder.to_string_lossy();
    let arguments = [
        "run",
        "-q",
        "-p",
        "jensen-cli",
        "--example",
        "man",
        "--",
        &output,
    ];
    run::cargo(root, &arguments, &[])?;
    println!("{output}");
    Ok(Ended::Done)
}
