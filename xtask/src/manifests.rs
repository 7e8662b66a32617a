//! Every crate takes the workspace's lints.

use crate::Findings;
use crate::arrows::Package;

/// Looks at one manifest.
pub fn check(package: &Package, findings: &mut Findings) -> Result<(), String> {
    let path = package.folder.join("Cargo.toml");
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
    if !takes_lints(&text) {
        findings.errors.push(format!(
            "`{}` does not take the workspace's lints: add [lints] workspace = true",
            package.name
        ));
    }
    Ok(())
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
