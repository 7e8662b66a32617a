//! Checks that the binary depends only on the sources. The command is built in two folders, and the binaries must be
//! identical byte for byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Ended, cargo};

/// Makes quick builds in `target/reproducible/a` and `…/the-second-folder`, with the flags that the book gives.
pub fn check(root: &Path) -> Result<Ended, String> {
    let desk = root.join("target/reproducible");
    let _ = fs::remove_dir_all(&desk);
    let desk = fs::create_dir_all(&desk).and_then(|()| desk.canonicalize());
    let desk = desk.map_err(|e| format!("target/reproducible: {e}"))?;
    // Folder names of different lengths reveal paths that are embedded in the binary.
    let folders = [desk.join("a"), desk.join("the-second-folder")];
    // Both folders are copied before either is built, because the sources may change in the meantime.
    for folder in &folders {
        copy(root, folder)?;
    }
    let [first, second] = folders;
    let (first, second) = (built(&first)?, built(&second)?);
    let read = |path: &Path| fs::read(path).map_err(|e| format!("`{}`: {e}", path.display()));
    let (a, b) = (read(&first)?, read(&second)?);
    match a.iter().zip(&b).position(|(a, b)| a != b) {
        None if a.len() == b.len() => Ok(Ended::Done),
        at => Err(format!(
            "`{}` has {} bytes and `{}` {}; they differ from byte {} on",
            first.display(),
            a.len(),
            second.display(),
            b.len(),
            at.unwrap_or(a.len().min(b.len()))
        )),
    }
}

fn copy(root: &Path, folder: &Path) -> Result<(), String> {
    let listed = Command::new("git")
        .arg("ls-files")
        .current_dir(root)
        .output();
    let listed = listed.map_err(|e| format!("cannot run git: {e}"))?.stdout;
    for name in String::from_utf8_lossy(&listed).lines() {
        let (from, to) = (root.join(name), folder.join(name));
        fs::create_dir_all(to.parent().unwrap_or(folder))
            .and_then(|()| fs::copy(&from, &to))
            .map_err(|e| format!("`{}`: {e}", from.display()))?;
    }
    Ok(())
}

fn built(folder: &Path) -> Result<PathBuf, String> {
    let target = folder.join("target").display().to_string();
    let flags = format!("--remap-path-prefix={}=.", folder.display());
    let build = [
        "build",
        "--profile",
        "quick",
        "--locked",
        "-p",
        "jensen-cli",
        "--no-default-features",
    ];
    cargo(
        folder,
        &build,
        &[("RUSTFLAGS", &flags), ("CARGO_TARGET_DIR", &target)],
    )?;
    Ok(folder.join("target/quick/jensen"))
}
