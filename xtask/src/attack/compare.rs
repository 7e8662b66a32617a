//! Compares two folders file by file and ignores times.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

const TIMES: [&str; 6] = [
    "seconds",
    "docs_per_second",
    "points_per_second",
    "samples_per_second",
    "seconds_per_epoch",
    "solver_seconds",
];

/// Files that contain times in other forms, and that therefore only have to exist. `rows.jsonl` contains the rest of
/// the content of `table.csv`.
const TIMED: [&str; 3] = ["report.html", "checkpoint.safetensors", "table.csv"];

/// Returns the differences between two folders, with one difference per line.
pub fn differences(a: &Path, b: &Path) -> Result<Vec<String>, String> {
    let (mut left, right) = (contents(a)?, contents(b)?);
    let mut differences = Vec::new();
    for (name, there) in right {
        match left.remove(&name) {
            None => differences.push(format!("{name} is only in the second folder")),
            Some(here) if here != there => {
                let lines = |bytes: &[u8]| -> Vec<String> {
                    String::from_utf8_lossy(bytes)
                        .lines()
                        .map(str::to_owned)
                        .collect()
                };
                let (here, there) = (lines(&here), lines(&there));
                let line = here.iter().zip(&there).position(|(a, b)| a != b);
                let line = line.unwrap_or(here.len().min(there.len())) + 1;
                differences.push(format!("{name} differs in line {line}"));
            }
            Some(_) => {}
        }
    }
    differences.extend(
        left.into_keys()
            .map(|name| format!("{name} is only in the first folder")),
    );
    Ok(differences)
}

fn contents(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let failed = |e: std::io::Error| format!("`{}`: {e}", folder.display());
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let bytes = fs::read(entry.path()).map_err(failed)?;
        found.insert(name.clone(), compared(&name, bytes));
    }
    Ok(found)
}

fn compared(name: &str, bytes: Vec<u8>) -> Vec<u8> {
    if TIMED.contains(&name) {
        return Vec::new();
    }
    if name == "digests.json" {
        // The digests of files that contain times differ. Commands that open the folder check that each digest matches
        // its file.
        let read: Option<Value> = serde_json::from_slice(&bytes).ok();
        let names = read.and_then(|v| Some(v["files"].as_object()?.keys().cloned().collect()));
        return names.map_or(bytes, |names: Vec<String>| names.join("\n").into_bytes());
    }
    if !name.ends_with(".json") && !name.ends_with(".jsonl") {
        return bytes;
    }
    let mut lines = Vec::new();
    for value in serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>() {
        let Ok(mut value) = value else { return bytes };
        without_times(&mut value);
        lines.push(value.to_string());
    }
    if name == "rows.jsonl" {
        // The lines are in the order in which the fits ended.
        lines.sort();
    }
    lines.join("\n").into_bytes()
}

fn without_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !TIMES.contains(&name.as_str()));
            fields.values_mut().for_each(without_times);
        }
        Value::Array(list) => list.iter_mut().for_each(without_times),
        _ => {}
    }
}
