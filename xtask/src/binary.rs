//! Builds the command for other machines. The result is an archive under `target/release-binary` that contains a static
//! binary, its man pages and its completions.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::man;
use crate::run::{self, Ended};

/// The loader that a dynamically linked binary would request.
const LOADER: &[u8] = b"/ld-linux";

const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// Builds and packs the command, and runs a fit with the packed binary.
pub fn build(root: &Path) -> Result<Ended, String> {
    if !cfg!(target_os = "linux") {
        return Ok(Ended::Skipped("static binaries are made on Linux".into()));
    }
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let build = ["build", "-p", "jensen-cli", "--profile", "dist", "--target"];
    run::cargo(
        root,
        &[&build[..], &[&triple]].concat(),
        &[("RUSTFLAGS", "-C target-feature=+crt-static")],
    )?;
    man::write(root)?;
    let target = run::target(root)?;
    let built = target.join(&triple).join("dist/jensen");
    let bytes = read(&built)?;
    if bytes.windows(LOADER.len()).any(|part| part == LOADER) {
        return Err(format!("{} is not static", built.display()));
    }

    let name = format!("jensen-{}-{triple}", env!("CARGO_PKG_VERSION"));
    let releases = target.join("release-binary");
    let folder = releases.join(&name);
    let _ = std::fs::remove_dir_all(&folder);
    copy(&built, &folder.join("jensen"))?;
    for file in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&root.join(file), &folder.join(file))?;
    }
    for page in files(&target.join("man/man1"))? {
        copy(
            &page,
            &folder
                .join("man/man1")
                .join(page.file_name().unwrap_or_default()),
        )?;
    }
    let binary = folder.join("jensen");
    for shell in SHELLS {
        let text = output(Command::new(&binary).args(["completions", shell]))?;
        let file = folder.join("completions").join(format!("jensen.{shell}"));
        write(&file, &text)?;
    }
    let archive = releases.join(format!("{name}.tar.gz"));
    output(
        Command::new("tar")
            .arg("-czf")
            .arg(&archive)
            .arg("-C")
            .arg(&releases)
            .arg(&name),
    )?;
    let example = root.join("data/eight_schools");
    let (program, data) = (
        example.join("eight_schools.stan"),
        example.join("eight_schools.json"),
    );
    let mut fit = Command::new(&binary);
    // The binary must not need anything from the machine.
    output(fit.arg("fit").args([program, data]).env_clear())?;
    let size = read(&archive)?.len();
    println!("{}, {:.1} MB", archive.display(), size as f64 / 1e6);
    Ok(Ended::Done)
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn write(file: &Path, bytes: &[u8]) -> Result<(), String> {
    let folder = file.parent().unwrap_or(file);
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(file, bytes));
    written.map_err(|error| format!("{}: {error}", file.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let folder = to.parent().unwrap_or(to);
    let copied = std::fs::create_dir_all(folder).and_then(|()| std::fs::copy(from, to));
    copied
        .map(drop)
        .map_err(|error| format!("{}: {error}", from.display()))
}

fn files(folder: &Path) -> Result<Vec<std::path::PathBuf>, String> {
    let entries =
        std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect())
}

fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command.stderr(Stdio::inherit()).output();
    let output =
        output.map_err(|error| format!("cannot run {:?}: {error}", command.get_program()))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(format!(
            "{:?} failed: {}",
            command.get_program(),
            output.status
        )),
    }
}
