//! The dependencies that are allowed between crates. They are those of the picture in `docs/book/src/architecture.md`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::Findings;

struct Room {
    name: &'static str,
    may_use: &'static [&'static str],
}

/// All crates, in an order in which every crate uses only crates before it.
const HOUSE: [Room; 21] = [
    Room {
        name: "jensen-math",
        may_use: &[],
    },
    Room {
        name: "jensen-density",
        may_use: &["jensen-math"],
    },
    Room {
        name: "jensen-run",
        may_use: &["jensen-math"],
    },
    Room {
        name: "jensen-data",
        may_use: &["jensen-math"],
    },
    Room {
        name: "jensen-report",
        may_use: &["jensen-math"],
    },
    Room {
        name: "jensen-graph",
        may_use: &["jensen-math", "jensen-density"],
    },
    // Black-box inference uses only the interface of densities, and neither Stan nor the graph.
    Room {
        name: "jensen-blackbox",
        may_use: &["jensen-math", "jensen-density", "jensen-run"],
    },
    Room {
        name: "jensen-glm",
        may_use: &[
            "jensen-math",
            "jensen-density",
            "jensen-run",
            "jensen-blackbox",
        ],
    },
    Room {
        name: "jensen-conjugate",
        may_use: &["jensen-math", "jensen-run"],
    },
    Room {
        name: "jensen-latent",
        may_use: &["jensen-math", "jensen-run"],
    },
    Room {
        name: "jensen-neural",
        may_use: &[
            "jensen-math",
            "jensen-density",
            "jensen-graph",
            "jensen-run",
        ],
    },
    Room {
        name: "jensen-stan",
        may_use: &["jensen-math", "jensen-density", "jensen-graph"],
    },
    // A formula and a table define a program, and other crates fit it.
    Room {
        name: "jensen-regress",
        may_use: &["jensen-data"],
    },
    Room {
        name: "jensen",
        may_use: &[
            "jensen-math",
            "jensen-density",
            "jensen-graph",
            "jensen-stan",
            "jensen-run",
            "jensen-blackbox",
            "jensen-glm",
            "jensen-conjugate",
            "jensen-latent",
            "jensen-neural",
            "jensen-data",
            "jensen-report",
            "jensen-regress",
        ],
    },
    Room {
        name: "jensen-reproduce",
        may_use: &["jensen"],
    },
    Room {
        name: "jensen-cli",
        may_use: &["jensen", "jensen-reproduce"],
    },
    Room {
        name: "jensen-python",
        may_use: &["jensen", "jensen-cli"],
    },
    Room {
        name: "jensen-playground",
        may_use: &["jensen"],
    },
    Room {
        name: "jensen-testkit",
        may_use: &["jensen-math", "jensen-density"],
    },
    Room {
        name: "jensen-bench",
        may_use: &["jensen", "jensen-testkit"],
    },
    Room {
        name: "xtask",
        may_use: &[],
    },
];

/// The tests of every crate may use this crate.
const TEST_KIT: &str = "jensen-testkit";

/// A crate of the workspace.
#[derive(Debug)]
pub struct Package {
    /// The name of the crate.
    pub name: String,
    /// The folder of its manifest.
    pub folder: PathBuf,
    /// The workspace's crates on which it depends, and for each of them whether only its tests depend on it.
    pub uses: Vec<(String, bool)>,
}

/// Returns the description of the workspace that Cargo prints.
pub fn metadata(root: &Path) -> Result<Value, String> {
    metadata_of(root, &["--no-deps"])
}

/// Returns the description of the workspace that Cargo prints with other flags.
pub fn metadata_of(root: &Path, flags: &[&str]) -> Result<Value, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1"])
        .args(flags)
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot run cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

/// Returns the crates that belong to the workspace.
pub fn packages(metadata: &Value) -> Result<Vec<Package>, String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| {
        value
            .as_str()
            .map(str::to_owned)
            .ok_or("cargo metadata of an unknown kind")
    };
    let mut packages = Vec::new();
    for package in list(&metadata["packages"]) {
        let manifest = PathBuf::from(text(&package["manifest_path"])?);
        let mut uses = Vec::new();
        for dependency in list(&package["dependencies"]) {
            if dependency["path"].is_string() {
                uses.push((text(&dependency["name"])?, dependency["kind"] == "dev"));
            }
        }
        packages.push(Package {
            name: text(&package["name"])?,
            folder: manifest.parent().unwrap_or(&manifest).to_path_buf(),
            uses,
        });
    }
    Ok(packages)
}

/// Compares the dependencies of the crates with those in the picture.
pub fn check(packages: &[Package], findings: &mut Findings) {
    for package in packages {
        let Some(room) = HOUSE.iter().find(|room| room.name == package.name) else {
            findings.errors.push(format!(
                "the crate `{}` is missing from the picture of `xtask/src/arrows.rs`",
                package.name
            ));
            continue;
        };
        for (used, only_tests) in &package.uses {
            let allowed = room.may_use.contains(&used.as_str())
                || (*only_tests && (used == TEST_KIT || *used == package.name));
            if !allowed {
                findings.errors.push(format!(
                    "`{}` must not depend on `{used}`: the arrows go the other way",
                    package.name
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(name: &str, uses: &[(&str, bool)]) -> Vec<String> {
        let package = Package {
            name: name.into(),
            folder: PathBuf::new(),
            uses: uses.iter().map(|(n, t)| ((*n).into(), *t)).collect(),
        };
        let mut findings = Findings::default();
        check(&[package], &mut findings);
        findings.errors
    }

    #[test]
    fn arrows_against_the_picture_are_errors() {
        assert_eq!(
            findings("jensen-blackbox", &[("jensen-graph", false)]).len(),
            1
        );
        assert_eq!(findings("jensen-graph", &[("jensen-stan", true)]).len(), 1);
        assert_eq!(
            findings("jensen-math", &[("jensen-testkit", false)]).len(),
            1
        );
        assert_eq!(findings("a-new-crate", &[]).len(), 1);
        assert!(findings("jensen-graph", &[("jensen-math", false), (TEST_KIT, true)]).is_empty());
    }

    #[test]
    fn the_picture_has_no_cycle() {
        for (i, room) in HOUSE.iter().enumerate() {
            for used in room.may_use {
                let at = HOUSE.iter().position(|other| other.name == *used).unwrap();
                assert!(at < i, "{} uses {used}, which is above it", room.name);
            }
        }
    }
}
