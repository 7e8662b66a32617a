//! Runs Cargo for those checks that need it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The outcome of a check that found no faults.
#[derive(Debug)]
pub enum Ended {
    /// The check ran.
    Done,
    /// The check could not run. The text is the reason.
    Skipped(String),
}

/// Runs the cargo that runs this program, with additional environment variables.
pub fn cargo(root: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    finish(Command::new(cargo), root, arguments, variables)
}

/// Returns the path of a built example of the command. The example comes from the given build if there is one, and
/// otherwise from the profile `quick`.
pub fn example(root: &Path, name: &str) -> Result<PathBuf, String> {
    let folder = match given() {
        Some(folder) => folder,
        None => {
            let line = ["build", "--profile", "quick", "-p", "jensen-cli"];
            cargo(root, &[&line[..], &["--example", name]].concat(), &[])?;
            target(root)?.join("quick")
        }
    };
    Ok(folder.join("examples").join(name))
}

/// Runs a built example of the command and returns its standard output.
pub fn example_output(root: &Path, name: &str) -> Result<String, String> {
    let path = example(root, name)?;
    let output = Command::new(&path)
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run {}: {error}", path.display()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{} failed", path.display())),
    }
}

/// Returns the folder to which cargo writes its builds.
pub fn target(root: &Path) -> Result<PathBuf, String> {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| root.join("target"), PathBuf::from);
    let made = std::fs::create_dir_all(&target).and_then(|()| target.canonicalize());
    made.map_err(|e| format!("{}: {e}", target.display()))
}

/// The environment variable with the folder that contains the built command, examples and extension module. `.ci/run`
/// makes one such build for all checks.
const BUILT: &str = "JENSEN_BUILT";

/// Returns the folder that the environment variable [`BUILT`] contains.
pub fn given() -> Option<PathBuf> {
    std::env::var_os(BUILT).map(PathBuf::from)
}

/// Returns the folder of a built command. It is the given folder if there is one, and otherwise the folder of the
/// profile `quick` with all features.
pub fn command_folder(root: &Path) -> Result<PathBuf, String> {
    if let Some(folder) = given() {
        return Ok(folder);
    }
    cargo(
        root,
        &["build", "--profile", "quick", "-p", "jensen-cli"],
        &[],
    )?;
    Ok(target(root)?.join("quick"))
}

/// Installs Debian packages. Callers must check whether the installation succeeded.
pub fn apt_get(packages: &[&str]) {
    let install = ["install", "-y", "-qq", "--no-install-recommends"];
    for arguments in [vec!["update", "-qq"], [&install[..], packages].concat()] {
        let mut command = Command::new("apt-get");
        command.args(arguments).stdout(Stdio::null());
        let _ = command.env("DEBIAN_FRONTEND", "noninteractive").status();
    }
}

/// Runs the cargo of another toolchain.
pub fn cargo_of(
    toolchain: &str,
    root: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Result<(), String> {
    let mut command = Command::new("rustup");
    command.args(["run", toolchain, "cargo"]);
    // Another cargo must not receive the variables that cargo sets for the programs that it runs.
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_cargos(name)) {
        command.env_remove(name);
    }
    finish(command, root, arguments, variables)
}

/// Returns whether a program of a toolchain can run on this machine.
pub fn has(toolchain: &str, program: &[&str]) -> bool {
    let mut command = Command::new("rustup");
    command.args(["run", toolchain]).args(program);
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn is_cargos(name: &OsString) -> bool {
    let name = name.to_string_lossy();
    name == "CARGO" || name.starts_with("CARGO_PKG") || name == "RUSTUP_TOOLCHAIN"
}

fn finish(
    mut command: Command,
    root: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Result<(), String> {
    command.args(arguments).current_dir(root);
    command.envs(variables.iter().copied());
    let status = command
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("cargo {} failed", arguments.join(" ")))
    }
}
