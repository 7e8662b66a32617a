//! Checks that every crate uses the lints of the workspace and has the metadata that crates.io shows. It also checks
//! that no published crate depends on an unpublished one.
//!
//! Users depend on only three crates. The other crates are published only because Cargo requires it. Their interfaces
//! change with every version, and their descriptions must say so.

use crate::Findings;
use crate::arrows::Package;

/// Checks the manifest of one crate.
pub fn check(
    package: &Package,
    packages: &[Package],
    findings: &mut Findings,
) -> Result<(), String> {
    let path = package.folder.join("Cargo.toml");
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
    if !takes_lints(&text) {
        findings.errors.push(format!(
            "`{}` does not take the workspace's lints: add [lints] workspace = true",
            package.name
        ));
    }
    if !is_published(&text) {
        return Ok(());
    }
    for line in SHOWN {
        if !text.lines().any(|found| found.starts_with(line)) {
            findings.errors.push(format!(
                "`{}` is published without `{line}`: add it, or `publish = false`",
                package.name
            ));
        }
    }
    let is_inner = text
        .lines()
        .any(|line| line.starts_with(&format!("description = \"{INTERNAL}")));
    if is_inner == FOR_USERS.contains(&package.name.as_str()) {
        findings.errors.push(format!(
            "the description of `{}` must begin with `{INTERNAL}` unless users depend on it (`FOR_USERS`)",
            package.name
        ));
    }
    for (used, _) in package.uses.iter().filter(|(_, only_tests)| !only_tests) {
        let folder = packages.iter().find(|other| other.name == *used);
        let manifest = folder.map(|other| std::fs::read_to_string(other.folder.join("Cargo.toml")));
        if !manifest.is_some_and(|text| text.is_ok_and(|text| is_published(&text))) {
            findings.errors.push(format!(
                "`{}` is published, and uses `{used}`, which is not",
                package.name
            ));
        }
    }
    Ok(())
}

/// The crates on which users depend. Their interfaces are documented, and are compared between versions.
const FOR_USERS: [&str; 3] = ["jensen", "jensen-density", "jensen-cli"];

const INTERNAL: &str = "Internal to jensen: ";

const SHOWN: [&str; 6] = [
    "description = ",
    "license.workspace = true",
    "repository.workspace = true",
    "keywords.workspace = true",
    "categories.workspace = true",
    "readme.workspace = true",
];

fn is_published(manifest: &str) -> bool {
    !manifest
        .lines()
        .any(|line| line.trim() == "publish = false")
}

fn takes_lints(manifest: &str) -> bool {
    let mut lines = manifest.lines().map(str::trim);
    lines.any(|line| line == "[lints]") && lines.next() == Some("workspace = true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_must_be_there() {
        assert!(takes_lints("[package]\n\n[lints]\nworkspace = true\n"));
        assert!(!takes_lints("[package]\n"));
        assert!(!takes_lints("[lints]\n[dependencies]\n"));
    }
}
