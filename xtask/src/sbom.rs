//! Writes a bill of materials of the command in the format CycloneDX 1.5. The content comes from `Cargo.lock` and from
//! the manifests of the crates.
//!
//! The file contains neither times nor paths, so the same sources always give the same file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::arrows::metadata_of;
use crate::run::Ended;

const COMMAND: &str = "jensen-cli";

/// Writes `target/sbom/jensen.cdx.json`.
pub fn write(root: &Path) -> Result<Ended, String> {
    let lock =
        fs::read_to_string(root.join("Cargo.lock")).map_err(|e| format!("Cargo.lock: {e}"))?;
    let bill = bill(&metadata_of(root, &["--locked"])?, &checksums(&lock))?;
    let folder = root.join("target/sbom");
    let path = folder.join("jensen.cdx.json");
    let text = serde_json::to_string_pretty(&bill).map_err(|e| e.to_string())? + "\n";
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&path, text))
        .map_err(|e| format!("`{}`: {e}", path.display()))?;
    Ok(Ended::Done)
}

fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let field = |name: &str| {
            let start = format!("{name} = \"");
            let line = package.lines().find_map(|line| line.strip_prefix(&start))?;
            line.strip_suffix('"').map(str::to_owned)
        };
        if let (Some(name), Some(version), Some(sum)) =
            (field("name"), field("version"), field("checksum"))
        {
            found.insert((name, version), sum);
        }
    }
    found
}

fn bill(metadata: &Value, checksums: &BTreeMap<(String, String), String>) -> Result<Value, String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> = list(&metadata["packages"])
        .into_iter()
        .map(|package| (text(&package["id"]), package))
        .collect();
    // Dependencies that only tests use are not part of the command.
    let edges: BTreeMap<String, Vec<String>> = list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| {
            let used = |dependency: &&Value| {
                let kinds = list(&dependency["dep_kinds"]);
                kinds.iter().any(|kind| kind["kind"] != "dev")
            };
            let of = list(&node["deps"]);
            let of = of.iter().filter(used).map(|d| text(&d["pkg"])).collect();
            (text(&node["id"]), of)
        })
        .collect();
    let root = packages
        .iter()
        .find(|(_, package)| package["name"] == COMMAND);
    let (root, command) = root.ok_or_else(|| format!("there is no package {COMMAND}"))?;
    let mut reached: BTreeMap<&str, &Value> = BTreeMap::new();
    let mut open = vec![root.as_str()];
    while let Some(id) = open.pop() {
        if let Some(package) = packages.get(id)
            && reached.insert(id, package).is_none()
        {
            open.extend(edges.get(id).into_iter().flatten().map(String::as_str));
        }
    }
    let name = |package: &Value| {
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        (format!("pkg:cargo/{name}@{version}"), name, version)
    };
    let component = |package: &Value| {
        let (purl, name, version) = name(package);
        let sum = checksums.get(&(name.clone(), version.clone()));
        let mut component = json!({
            "type": "library", "bom-ref": purl, "purl": purl, "name": name, "version": version,
        });
        if let Some(licence) = package["license"].as_str() {
            // A slash is an older notation for "or".
            let expression = licence.replace('/', " OR ");
            component["licenses"] = json!([{ "expression": expression }]);
        }
        if let Some(sum) = sum {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
        }
        component
    };
    let purls = |ids: &[String]| {
        let mut purls: Vec<String> = ids
            .iter()
            .filter_map(|id| reached.get(id.as_str()))
            .map(|package| name(package).0)
            .collect();
        purls.sort();
        purls
    };
    let mut whole = component(command);
    whole["type"] = json!("application");
    let parts = reached.iter().filter(|(id, _)| **id != root.as_str());
    let parts: Vec<Value> = parts.map(|(_, package)| component(package)).collect();
    let arrows = reached.iter().map(|(id, package)| {
        let of = edges.get(*id).map_or(&[][..], Vec::as_slice);
        json!({ "ref": name(package).0, "dependsOn": purls(of) })
    });
    let arrows: Vec<Value> = arrows.collect();
    Ok(json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": { "component": whole },
        "components": parts,
        "dependencies": arrows,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_this() -> Value {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let lock = fs::read_to_string(root.join("Cargo.lock")).unwrap();
        let metadata = metadata_of(&root, &["--locked"]).unwrap();
        bill(&metadata, &checksums(&lock)).unwrap()
    }

    #[test]
    fn every_part_has_a_licence_and_every_foreign_one_its_digest() {
        let bill = of_this();
        let parts = bill["components"].as_array().unwrap();
        let named = |name: &str| parts.iter().any(|part| part["name"] == name);
        assert!(named("jensen-math") && named("serde_json"));
        // This crate is used only by tests.
        assert!(!named("proptest"));
        for part in parts {
            assert!(part["licenses"][0]["expression"].is_string(), "{part}");
            let own = part["name"].as_str().unwrap().starts_with("jensen");
            assert_eq!(part["hashes"].is_array(), !own, "{part}");
        }
    }

    #[test]
    fn every_arrow_ends_at_a_part() {
        let bill = of_this();
        let parts = bill["components"].as_array().unwrap();
        for arrow in bill["dependencies"].as_array().unwrap() {
            for end in arrow["dependsOn"].as_array().unwrap() {
                assert!(parts.iter().any(|part| part["bom-ref"] == *end), "{end}");
            }
        }
    }
}
