//! Checks that use other toolchains, if these are installed: the oldest supported Rust, AddressSanitizer and Miri.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::arrows::metadata;
use crate::run::{self, Ended};

const KERNELS: [&str; 6] = [
    "jensen-math",
    "jensen-graph",
    "jensen-blackbox",
    "jensen-conjugate",
    "jensen-latent",
    "jensen-neural",
];

/// The only platform on which the check can use a sanitizer.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

const NIGHTLY: &str = "nightly";

/// Type-checks the workspace with the Rust version that its manifests state.
pub fn oldest(root: &Path) -> Result<Ended, String> {
    let metadata = metadata(root)?;
    let promised = metadata["packages"][0]["rust_version"]
        .as_str()
        .ok_or("no rust-version in the workspace")?
        .to_owned();
    // An exact version can be installed as `1.95` or as `1.95.0`.
    let names = [promised.clone(), format!("{promised}.0")];
    let installed = |name: &&String| run::has(name, &["cargo", "--version"]);
    let Some(toolchain) = names.iter().find(installed) else {
        return Ok(Ended::Skipped(format!("Rust {promised} is not installed")));
    };
    let arguments = ["check", "-q", "--workspace", "--all-targets"];
    run::cargo_of(toolchain, root, &arguments, &[])?;
    Ok(Ended::Done)
}

/// Checks the licences, advisories and sources of all dependencies by the rules in `deny.toml`.
pub fn dependencies(root: &Path) -> Result<Ended, String> {
    let mut version = Command::new("cargo-deny");
    version.arg("--version").stdout(Stdio::null());
    if !version.status().is_ok_and(|status| status.success()) {
        let how = "cargo-deny is not installed (`cargo install cargo-deny`)";
        return Ok(Ended::Skipped(how.into()));
    }
    let deny = |what: &[&str]| run::cargo(root, &[&["deny"][..], what].concat(), &[]);
    deny(&[
        "check",
        "--hide-inclusion-graph",
        "licenses",
        "bans",
        "sources",
    ])?;
    if deny(&["fetch", "db"]).is_err() {
        println!("advisories are not checked: they cannot be fetched here");
        return Ok(Ended::Done);
    }
    deny(&["check", "advisories"])?;
    Ok(Ended::Done)
}

/// Runs the unit tests of the crates that contain unsafe kernels under AddressSanitizer.
pub fn sanitizer(root: &Path) -> Result<Ended, String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Ok(Ended::Skipped(format!("this is no {PLATFORM}")));
    }
    if !run::has(NIGHTLY, &["cargo", "--version"]) {
        return Ok(Ended::Skipped("no nightly Rust is installed".into()));
    }
    let mut arguments = vec!["test", "-q", "--lib", "--target", PLATFORM];
    arguments.extend(["--target-dir", "target/sanitizer"]);
    KERNELS
        .iter()
        .for_each(|name| arguments.extend(["-p", name]));
    // Leaks are not unsafe, and the threads of a pool exist until the process ends.
    let variables = [
        ("RUSTFLAGS", "-Zsanitizer=address"),
        ("ASAN_OPTIONS", "detect_leaks=0"),
    ];
    run::cargo_of(NIGHTLY, root, &arguments, &variables)?;
    Ok(Ended::Done)
}

/// Runs the unit tests of the kernels on whole vectors under Miri. Scalar instructions are used, because Miri does not
/// support vector instructions.
pub fn miri(root: &Path) -> Result<Ended, String> {
    if !run::has(NIGHTLY, &["cargo", "miri", "--version"]) {
        return Ok(Ended::Skipped(
            "no nightly Rust with Miri is installed".into(),
        ));
    }
    let arguments = ["miri", "test", "-p", "jensen-math", "--lib", "simd"];
    run::cargo_of(NIGHTLY, root, &arguments, &[])?;
    Ok(Ended::Done)
}
