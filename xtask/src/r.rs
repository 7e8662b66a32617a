//! Checks the R package with Debian's packages of R.
//!
//! | check | packages | what is run |
//! | --- | --- | --- |
//! | `r-smoke` | imported packages, and testthat | tests of a minute, from an installed package |
//! | `r` | brms, rstan and the other suggestions too | `R CMD check --as-cran`, with vignettes and all tests |
//!
//! Missing packages are installed from Debian. The check `r-smoke` installs them only in CI.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::run::{self, Ended};

/// The Debian packages that both checks need.
const NEEDED: [&str; 5] = [
    "r-base-core",
    "r-cran-jsonlite",
    "r-cran-posterior",
    "r-cran-processx",
    "r-cran-testthat",
];

const SUGGESTED: [&str; 9] = [
    "r-cran-bayesplot",
    "r-cran-brms",
    "r-cran-emmeans",
    "r-cran-knitr",
    "r-cran-lme4",
    "r-cran-loo",
    "r-cran-rmarkdown",
    "r-cran-rstan",
    "pandoc",
];

/// The line that R's checker prints if there are no problems. Notes may come before it, for example about a version
/// that CRAN has not seen.
const PASSED: &str = "Status: ";

/// Installs the package into a separate library and runs the tests that are short.
pub fn smoke(root: &Path) -> Result<Ended, String> {
    if !has(&NEEDED) && std::env::var_os("CI").is_some() {
        run::apt_get(&NEEDED);
    }
    if !has(&NEEDED) {
        return Ok(Ended::Skipped(lacking(&NEEDED)));
    }
    let library = run::target(root)?.join("r/library");
    std::fs::create_dir_all(&library).map_err(|error| error.to_string())?;
    let jensen = command(root)?;
    let path = library.to_string_lossy();
    r(
        root,
        "R",
        &["CMD", "INSTALL", "--no-test-load", "-l", &path, "r/jensen"],
        &[],
    )?;
    let tests = format!(
        "library(jensen, lib.loc = '{path}'); testthat::test_dir('r/jensen/tests/testthat', package = 'jensen', \
         load_package = 'installed', stop_on_failure = TRUE)"
    );
    let variables = [("JENSEN", jensen.as_str()), ("R_LIBS", &path)];
    r(root, "Rscript", &["-e", &tests], &variables)?;
    Ok(Ended::Done)
}

/// Runs the checks of CRAN, and all tests with the real packages.
pub fn check(root: &Path) -> Result<Ended, String> {
    let all = [&NEEDED[..], &SUGGESTED].concat();
    if !has(&all) {
        run::apt_get(&all);
    }
    if !has(&all) {
        return Ok(Ended::Skipped(lacking(&all)));
    }
    let desk = run::target(root)?.join("r");
    std::fs::create_dir_all(&desk).map_err(|error| error.to_string())?;
    let jensen = command(root)?;
    let package = root.canonicalize().map_err(|error| error.to_string())?;
    let package = package.join("r/jensen");
    let variables = [
        ("JENSEN", jensen.as_str()),
        ("JENSEN_TESTS", "all"),
        ("_R_CHECK_CRAN_INCOMING_", "false"),
        ("_R_CHECK_FORCE_SUGGESTS_", "false"),
        // This setting disables the check of the current time over the network.
        ("_R_CHECK_SYSTEM_CLOCK_", "false"),
    ];
    r(
        &desk,
        "R",
        &["CMD", "build", &package.to_string_lossy()],
        &variables,
    )?;
    let archive = archive(&package)?;
    let check = ["CMD", "check", "--as-cran", "--no-manual", &archive];
    r(&desk, "R", &check, &variables)?;
    let log = desk.join("jensen.Rcheck/00check.log");
    let log = std::fs::read_to_string(&log).map_err(|error| error.to_string())?;
    let status = log.lines().rfind(|line| line.starts_with(PASSED));
    match status {
        Some(status) if !status.contains("WARNING") && !status.contains("ERROR") => Ok(Ended::Done),
        _ => Err("R CMD check has warnings, which are above".into()),
    }
}

fn archive(package: &Path) -> Result<String, String> {
    let description = std::fs::read_to_string(package.join("DESCRIPTION"));
    let description = description.map_err(|error| error.to_string())?;
    let version = description
        .lines()
        .find_map(|line| line.strip_prefix("Version: "));
    let version = version.ok_or("DESCRIPTION has no version")?;
    Ok(format!("jensen_{}.tar.gz", version.trim()))
}

fn command(root: &Path) -> Result<String, String> {
    let jensen = run::command_folder(root)?.join("jensen");
    Ok(jensen.to_string_lossy().into_owned())
}

fn has(packages: &[&str]) -> bool {
    packages
        .iter()
        .all(|package| match package.strip_prefix("r-cran-") {
            Some(name) => {
                let found = format!("quit(status = !requireNamespace('{name}', quietly = TRUE))");
                runs("Rscript", &["-e", &found])
            }
            None if *package == "r-base-core" => runs("R", &["--version"]),
            None => runs(package, &["--version"]),
        })
}

fn lacking(packages: &[&str]) -> String {
    format!(
        "R or its packages are not installed: `apt-get install {}`",
        packages.join(" ")
    )
}

fn runs(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn r(
    folder: &Path,
    program: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Result<(), String> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(folder)
        .envs(variables.iter().copied());
    let status = command
        .status()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{program} {} failed", arguments.join(" "))),
    }
}
