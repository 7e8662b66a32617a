//! Builds the facade and the command with each feature alone, with no feature, and with all features.

use std::path::Path;

use serde_json::Value;

use crate::arrows;
use crate::run::{self, Ended};

const CHOSEN: [&str; 2] = ["jensen", "jensen-cli"];

/// Type-checks every combination of features that is documented.
pub fn check(root: &Path) -> Result<Ended, String> {
    let metadata = arrows::metadata(root)?;
    for package in CHOSEN {
        let names = names(&metadata, package)?;
        let alone = names.iter().map(|name| vec!["--features", name]);
        for features in [vec![]]
            .into_iter()
            .chain(alone)
            .chain([vec!["--all-features"]])
        {
            println!("{package}: no default features {}", features.join(" "));
            let mut arguments = vec!["check", "-q", "-p", package, "--no-default-features"];
            arguments.extend(features);
            run::cargo(root, &arguments, &[])?;
        }
    }
    Ok(Ended::Done)
}

fn names(metadata: &Value, package: &str) -> Result<Vec<String>, String> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let features = packages
        .filter(|found| found["name"] == package)
        .find_map(|found| found["features"].as_object())
        .ok_or_else(|| format!("no crate `{package}` with features"))?;
    let names = features.keys().filter(|name| *name != "default");
    Ok(names.cloned().collect())
}
