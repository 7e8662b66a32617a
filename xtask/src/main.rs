//! Repository checks: `cargo run -p xtask -- NAME`.
//!
//! | name | file | what is checked |
//! | --- | --- | --- |
//! | `check` | `arrows` | each crate depends only on crates that it may use |
//! | | `modules` | each module of a large crate uses only modules that it may use |
//! | | `levels` | only listed files ask the machine for its instruction set |
//! | | `sources` | file lengths; every library turns on the lints against printing, files and processes |
//! | | `manifests` | every crate uses the workspace's lints and has the fields that crates.io shows |
//! | | `pages` | files that the documentation names exist, and links lead to headings |
//! | | `constants` | every constant of the black-box methods has its reason beside it, and the book lists them |
//! | | `words` | pages, messages, sources and scripts use the terms of the page on terms, and not the words that these replaced |
//! | `features` | `features` | every feature of the facade and of the command builds alone |
//! | `python` | `python` | the Python package builds, installs, type-checks and passes its tests |
//! | `bridges` | `python` | the package reads models of PyMC and NumPyro, with the real packages |
//! | `distributed` | `python` | work by many processes, with real Ray and real MPI over loopback |
//! | `wheel` | `python` | nothing: it builds a wheel for any Linux with glibc 2.17 or later, linked by zig, under `target/release-wheels` |
//! | `r-smoke` | `r` | the R package installs, and a minute of its tests passes |
//! | `r` | `r` | `R CMD check --as-cran` of the R package, with all tests, brms and rstan |
//! | `binary` | `binary` | the static binary in an archive with man pages and completions, under `target/release-binary`, can fit |
//! | `book` | `book` | pages of the book show the output of the command |
//! | | `flags` | the command line declares the commands and flags that the book names |
//! | `browser` | `browser` | reports and the playground in a headless Chromium: no errors, no requests, nothing cut off, accessible to all readers |
//! | `pictures` | `browser` | the same; it also takes the book's pictures again |
//! | `playground` | `playground` | nothing: it builds one page with the engine as WebAssembly, under `target/playground` |
//! | `flags` | `flags` | nothing: it rewrites the tables of flags in the book's page on the command |
//! | `constants` | `constants` | nothing: it rewrites the table of the book's page on constants |
//! | `man` | `man` | nothing: it writes man pages of the command under `target/man` |
//! | `reproducible` | `reproducible` | builds of the command in two folders are equal, byte by byte |
//! | `sbom` | `sbom` | nothing: it writes a bill of materials of the command under `target/sbom` |
//! | `times` | `times` | no test takes long without a reason; it lists the slowest tests |
//! | `dependencies` | `toolchains` | licences, advisories and sources of dependencies, by cargo-deny if it is installed |
//! | `fuzz`, `guided`, `kill`, `damage`, `limits`, `calls`, `stops` | `attack` | the command withstands attacks from outside; these checks take flags |
//! | `oldest`, `sanitizer`, `miri` | `toolchains` | the oldest Rust, AddressSanitizer and Miri if they are installed |

mod arrows;
mod attack;
mod binary;
mod book;
mod browser;
mod constants;
mod features;
mod flags;
mod levels;
mod man;
mod manifests;
mod modules;
mod pages;
mod playground;
mod python;
mod r;
mod reproducible;
mod run;
mod sbom;
mod sources;
mod times;
mod toolchains;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::run::Ended;

#[derive(Debug, Default)]
struct Findings {
    errors: Vec<String>,
    warnings: Vec<String>,
}

type Check = (&'static str, fn(&Path) -> Result<Ended, String>);

const CHECKS: [Check; 22] = [
    ("check", order),
    ("features", features::check),
    ("python", python::check),
    ("bridges", python::bridges),
    ("distributed", python::distributed),
    ("wheel", python::wheel),
    ("r-smoke", r::smoke),
    ("r", r::check),
    ("binary", binary::build),
    ("book", book::check),
    ("browser", browser::check),
    ("pictures", browser::pictures),
    ("playground", playground::build),
    ("flags", flags::write),
    ("constants", constants::write),
    ("man", man::write),
    ("reproducible", reproducible::check),
    ("sbom", sbom::write),
    ("dependencies", toolchains::dependencies),
    ("oldest", toolchains::oldest),
    ("sanitizer", toolchains::sanitizer),
    ("miri", toolchains::miri),
];

type Attack = (&'static str, fn(&Path, &[String]) -> Result<String, String>);

const ATTACKS: [Attack; 8] = [
    ("fuzz", attack::fuzz),
    ("guided", attack::guided),
    ("kill", attack::kill),
    ("damage", attack::damage),
    ("limits", attack::limits),
    ("calls", attack::calls),
    ("stops", attack::stops),
    ("times", times::check),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((name, flags)) = arguments.split_first()
        && let Some((_, attack)) = ATTACKS.iter().find(|(attack, _)| attack == name)
    {
        return match attack(&root(), flags) {
            Ok(result) => {
                println!("{name}: {result}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let chosen = CHECKS.iter().find(|(name, _)| arguments == [*name]);
    let Some((name, check)) = chosen else {
        let names = CHECKS.iter().map(|(name, _)| *name);
        let names: Vec<&str> = names.chain(ATTACKS.iter().map(|(name, _)| *name)).collect();
        eprintln!("usage: cargo run -p xtask -- {}", names.join("|"));
        return ExitCode::from(2);
    };
    match check(&root()) {
        Ok(Ended::Done) => println!("{name}: in order"),
        Ok(Ended::Skipped(reason)) => println!("{name}: skipped, {reason}"),
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn order(root: &Path) -> Result<Ended, String> {
    let findings = check(root)?;
    for warning in &findings.warnings {
        eprintln!("warning: {warning}");
    }
    if findings.errors.is_empty() {
        Ok(Ended::Done)
    } else {
        Err(findings.errors.join("\nerror: "))
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn check(root: &Path) -> Result<Findings, String> {
    let metadata = arrows::metadata(root)?;
    let mut findings = Findings::default();
    let packages = arrows::packages(&metadata)?;
    arrows::check(&packages, &mut findings);
    for package in &packages {
        manifests::check(package, &packages, &mut findings)?;
        levels::check(package, root, &mut findings)?;
        modules::check(package, root, &mut findings)?;
        sources::check(package, root, &mut findings)?;
    }
    levels::check_rows(root, &mut findings);
    pages::check(root, &mut findings)?;
    constants::check(root, &mut findings)?;
    words::check(&packages, root, &mut findings)?;
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_in_order() {
        let findings = check(&root()).unwrap();
        assert!(findings.errors.is_empty(), "{:#?}", findings.errors);
    }
}
