//! Writes the man pages of the command to `target/man/man1`. For example, `man -M target/man jensen-fit` shows one of
//! them.

use std::path::Path;

use crate::run::{self, Ended};

/// Writes the man pages that the declaration of the command line defines.
pub fn write(root: &Path) -> Result<Ended, String> {
    let folder = run::target(root)?.join("man/man1");
    // Commands that were removed must not keep a page.
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
