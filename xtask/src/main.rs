//! Repository checks: `cargo run -p xtask -- check`.
//!
//! | file | what is checked |
//! | --- | --- |
//! | `arrows` | which crate may depend on which |
//! | `sources` | no printing, environment, files or processes below the command; file lengths |
//! | `manifests` | every crate takes the workspace's lints |

mod arrows;
mod manifests;
mod sources;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What the checks found.
#[derive(Debug, Default)]
struct Findings {
    errors: Vec<String>,
    warnings: Vec<String>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments != ["check"] {
        eprintln!("usage: cargo run -p xtask -- check");
        return ExitCode::from(2);
    }
    let findings = match check(&root()) {
        Ok(findings) => findings,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    for warning in &findings.warnings {
        eprintln!("warning: {warning}");
    }
    for error in &findings.errors {
        eprintln!("error: {error}");
    }
    if findings.errors.is_empty() {
        println!("the repository is in order");
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The workspace's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn check(root: &Path) -> Result<Findings, String> {
    let metadata = arrows::metadata(root)?;
    let mut findings = Findings::default();
    let packages = arrows::packages(&metadata)?;
    arrows::check(&packages, &mut findings);
    for package in &packages {
        manifests::check(package, &mut findings)?;
        sources::check(package, root, &mut findings)?;
    }
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
