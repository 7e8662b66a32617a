//! The man pages of the command, in `target/man/man1`: `man -M target/man jensen-fit` shows one.

use std::path::Path;

use crate::run::{self, Ended};

/// Writes them, as the command line is declared.
pub fn write(root: &Path) -> Result<Ended, String> {
    let folder = run::target(root)?.join("man/man1");
    // Removed commands have no page.
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
