//! The lowered graphs of the model corpus against its reference values, by the slow evaluator.

mod support;

use std::path::{Path, PathBuf};

use jensen_graph::{Graph, evaluate};
use jensen_stan::lower::{LowerOptions, Lowered, lower};
use serde_json::Value;
use support::{bind, error, numbers};

const TOLERANCE: f64 = 1e-8;

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

/// The graph with the gradient as second output.
fn with_gradient(lowered: &Lowered) -> Graph {
    let mut graph = jensen_graph::passes::compact(&lowered.graph);
    let output = graph.outputs()[0];
    let z = graph.input_node(0);
    let gradient = graph.gradient(output, &[z])[0];
    graph.set_outputs(vec![output, gradient]);
    graph
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
    let build = |propto: bool, jacobian: bool| {
        let options = LowerOptions {
            propto,
            jacobian,
            ..LowerOptions::default()
        };
        lower(&model, options).map_err(|e| format!("{}: {e}", model.program().location(e.span)))
    };
    let lowered = build(false, true)?;
    let full = with_gradient(&lowered);
    let (bare, dropped) = (build(false, false)?, build(true, true)?);
    let points = oracle["points"].as_array().expect("points");
    for (i, point) in points.iter().enumerate() {
        let z = numbers(point);
        let both = evaluate(&full, &[&z], None);
        let compare = |what: &str, field: &str, found: f64| {
            let Some(expected) = oracle[field][i].as_f64() else {
                return Ok(());
            };
            if error(found, expected) > TOLERANCE || found.is_nan() {
                return Err(format!(
                    "{what} at point {i}: {found} instead of {expected}"
                ));
            }
            Ok(())
        };
        compare("value", "value", both[0][0])?;
        let value = |lowered: &Lowered| evaluate(&lowered.graph, &[&z], None)[0][0];
        compare("value without Jacobian", "value_no_jacobian", value(&bare))?;
        // The reference keeps what its tool keeps: of an inverse Wishart density with known degrees of freedom, all.
        if !source.contains("inv_wishart") {
            compare("value without constants", "value_propto", value(&dropped))?;
        }
        let expected = numbers(&oracle["gradient"][i]);
        for (k, (found, expected)) in both[1].iter().zip(&expected).enumerate() {
            let agrees = error(*found, *expected) <= TOLERANCE;
            if !agrees && expected.is_finite() {
                return Err(format!(
                    "gradient {k} at point {i}: {found} instead of {expected}"
                ));
            }
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
