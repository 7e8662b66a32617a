//! The interpreter against the reference values of the model corpus.

mod support;

use std::path::{Path, PathBuf};

use jensen_density::{DrawKey, Posterior};
use serde_json::Value;
use support::{bind, error, numbers};

const TOLERANCE: f64 = 1e-8;

/// Densities whose constants Stan's library drops in `~`, but the tool behind the reference values does not.
const KEEPS_CONSTANTS: [&str; 3] = ["wishart(", "multi_student_t", "lkj_cov"];

/// Every folder below `folder` that has reference values.
fn models(folder: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the corpus")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    for path in entries {
        if path.join("oracle.json").is_file() {
            out.push(path);
        } else if path.is_dir() {
            models(&path, out);
        }
    }
}

fn check_model(path: &Path) -> Result<(), String> {
    let read = |name: &str| std::fs::read_to_string(path.join(name)).expect(name);
    let data = if path.join("data.json").is_file() {
        read("data.json")
    } else {
        "{}".to_string()
    };
    let oracle: Value = serde_json::from_str(&read("oracle.json")).expect("JSON");
    let source = read("model.stan");
    let model = bind(&source, &data).map_err(|e| e.to_string())?;
    let dim = oracle["dim"].as_u64().expect("dim") as usize;
    if model.unconstrained_dim() != dim {
        return Err(format!(
            "dim {} instead of {dim}",
            model.unconstrained_dim()
        ));
    }
    let names = model.unconstrained_names();
    let expected: Vec<&str> = oracle["names"]
        .as_array()
        .expect("names")
        .iter()
        .map(|x| x.as_str().expect("a name"))
        .collect();
    // The reference lists the names of arrays of vectors in another order than the coordinates; the set is the same.
    let (mut a, mut b) = (names.clone(), expected.clone());
    a.sort();
    b.sort();
    if a != b {
        return Err(format!("names {names:?} instead of {expected:?}"));
    }
    let points = oracle["points"].as_array().expect("points");
    for (i, point) in points.iter().enumerate() {
        let z = numbers(point);
        let compare = |what: &str, field: &str, jacobian: bool, propto: bool| {
            let Some(expected) = oracle[field][i].as_f64() else {
                return Ok(());
            };
            let found = model
                .log_density(&z, jacobian, propto)
                .map_err(|e| format!("{what} at point {i}: {}", model.locate(&e)))?;
            if error(found, expected) > TOLERANCE || found.is_nan() {
                return Err(format!(
                    "{what} at point {i}: {found} instead of {expected}"
                ));
            }
            Ok(())
        };
        compare("value", "value", true, false)?;
        compare("value without Jacobian", "value_no_jacobian", false, false)?;
        let kept = KEEPS_CONSTANTS.iter().any(|name| source.contains(name));
        if !kept {
            compare("value without constants", "value_propto", true, true)?;
        }

        let mut found = Vec::new();
        let key = DrawKey {
            seed: 1,
            index: i as u64,
        };
        if let Err(e) = model.constrain(&z, key, &mut found) {
            return Err(format!("constrain at point {i}: {e}"));
        }
        let expected = numbers(&oracle["constrained"][i]);
        for (k, (a, b)) in found.iter().zip(&expected).enumerate() {
            if error(*a, *b) > TOLERANCE {
                return Err(format!("constrained {k} at point {i}: {a} instead of {b}"));
            }
        }
        if found.len() < expected.len() {
            return Err(format!(
                "{} constrained values of {}",
                found.len(),
                expected.len()
            ));
        }
        round_trip(&model, &z, &found).map_err(|e| format!("unconstrain at point {i}: {e}"))?;
    }
    Ok(())
}

/// Constrained parameters go back to their coordinates, where rounding keeps them inside their constraints.
fn round_trip(model: &impl Posterior, z: &[f64], values: &[f64]) -> Result<(), String> {
    let mut at = 0;
    let mut named = Vec::new();
    for variable in model.variables() {
        named.push((
            variable.name.clone(),
            values[at..at + variable.len()].to_vec(),
        ));
        at += variable.len();
    }
    let lookup = |name: &str| {
        let entry = named.iter().find(|(n, _)| n == name);
        entry.map(|(_, values)| values.clone())
    };
    let back = model.unconstrain(&lookup).map_err(|e| e.to_string())?;
    for (a, b) in back.iter().zip(z) {
        // Coordinates near a bound lose digits in the constrained value.
        if error(*a, *b) > 1e-5 {
            return Err(format!("{a} instead of {b}"));
        }
    }
    Ok(())
}

#[test]
fn reference_values() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let mut folders = Vec::new();
    models(&root, &mut folders);
    assert!(folders.len() >= 12, "the corpus is there");
    let mut failures = Vec::new();
    for folder in &folders {
        if let Err(e) = check_model(folder) {
            failures.push(format!("{}: {e}", folder.display()));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} models differ:\n{}",
        failures.len(),
        folders.len(),
        failures.join("\n")
    );
}
