//! Writes the table of the model corpus. The programs, data and references are compiled into the library, so that the
//! reproduction of an experiment on the whole corpus needs no files.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../models");
    println!("cargo:rerun-if-changed={}", root.display());
    let mut folders = Vec::new();
    collect(&root, &mut folders)?;
    folders.sort();
    let mut table = String::from("&[\n");
    for folder in folders {
        let name = folder
            .strip_prefix(&root)
            .unwrap_or(&folder)
            .display()
            .to_string();
        let file = |file: &str| {
            folder
                .join(file)
                .canonicalize()
                .map(|path| path.display().to_string())
        };
        // Writing to a string never fails.
        let _ = writeln!(
            table,
            "Entry::built_in({name:?}, include_str!({:?}), include_str!({:?})),",
            file("model.stan")?,
            file("data.json")?
        );
    }
    table.push_str("]\n");
    let out = PathBuf::from(env::var("OUT_DIR").unwrap_or_default());
    fs::write(out.join("corpus.rs"), table)?;
    let references = fs::read(root.join("references.json")).unwrap_or_default();
    fs::write(out.join("references.json"), references)
}

/// Collects the folders of programs. The function finds none if the corpus is missing, as in a published package.
fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    if folder.join("model.stan").is_file() && folder.join("data.json").is_file() {
        found.push(folder.to_path_buf());
    }
    for entry in fs::read_dir(folder)? {
        collect(&entry?.path(), found)?;
    }
    Ok(())
}
