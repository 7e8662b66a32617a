//! The Python package: built as a wheel, installed into an environment of its own, and tested there.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::run::Ended;

/// Interpreters to look for, the best first: the stable ABI begins with 3.10, and the readers of the draws that are tested
/// need no later one than 3.11.
const INTERPRETERS: [&str; 5] = [
    "python3.11",
    "python3.10",
    "python3.12",
    "python3.13",
    "python3",
];

/// What the checks need beside the package's own extra `test`.
const TOOLS: [&str; 1] = ["maturin>=1.9,<2"];

/// Builds, installs, checks types and runs the tests. Skipped where there is no interpreter, or nothing can be downloaded.
pub fn check(root: &Path) -> Result<Ended, String> {
    let Some(interpreter) = INTERPRETERS.iter().find(|name| serves(name)) else {
        return Ok(Ended::Skipped(
            "no Python from 3.10 on with venv is installed".into(),
        ));
    };
    let place = root.join("target/python");
    let python = place.join("bin/python");
    if !python.exists() {
        run(root, interpreter, &["-m", "venv", "target/python"])?;
    }
    let python = python.to_string_lossy().into_owned();
    let pip = ["-m", "pip", "install", "-q", "--disable-pip-version-check"];
    if run(root, &python, &[&pip[..], &TOOLS].concat()).is_err() {
        return Ok(Ended::Skipped("maturin cannot be downloaded".into()));
    }
    // The profile of the README's first command: compiled fast, and what that has compiled serves again.
    let wheels = "target/wheels";
    let build = [
        "-m",
        "maturin",
        "build",
        "-q",
        "--profile",
        "quick",
        "--out",
        wheels,
    ];
    run(root, &python, &build)?;
    let wheel = newest(&root.join(wheels))?;
    run(
        root,
        &python,
        &[&pip[..], &["--force-reinstall", "--no-deps", &wheel]].concat(),
    )?;
    if run(
        root,
        &python,
        &[&pip[..], &[&format!("{wheel}[test]")]].concat(),
    )
    .is_err()
    {
        return Ok(Ended::Skipped(
            "what the tests need cannot be downloaded".into(),
        ));
    }
    run(root, &python, &["-m", "mypy"])?;
    run(root, &python, &["-m", "pytest", "-p", "no:cacheprovider"])?;
    Ok(Ended::Done)
}

/// Whether an interpreter is there, new enough, and can make environments.
fn serves(name: &str) -> bool {
    let script = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
    let mut command = Command::new(name);
    command.args(["-c", script]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The file that was written last.
fn newest(folder: &Path) -> Result<String, String> {
    let files = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
    let newest = files
        .filter_map(Result::ok)
        .filter_map(|file| Some((file.metadata().ok()?.modified().ok()?, file.path())))
        .max();
    newest
        .map(|(_, path)| path.to_string_lossy().into_owned())
        .ok_or_else(|| format!("no wheel in `{}`", folder.display()))
}

fn run(root: &Path, program: &str, arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root);
    let status = command
        .status()
        .map_err(|error| format!("cannot run `{program}`: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{program} {} failed", arguments.join(" ")))
    }
}
