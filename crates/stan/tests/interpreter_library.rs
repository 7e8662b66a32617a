//! Library functions of the interpreter against reference values.

mod support;

use serde_json::Value;
use support::{bind, error};

const TOLERANCE: f64 = 1e-9;

#[test]
fn reference_values() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("reference/library.json")).expect("JSON");
    assert!(cases.len() > 700, "the reference is there");
    let mut failures = Vec::new();
    for case in &cases {
        let text = |field: &str| case[field].as_str().expect("text");
        let source = format!(
            "transformed data {{\n  {}\n}}\nparameters {{ real p; }}\nmodel {{ {} }}\n",
            text("given"),
            text("model")
        );
        let expected = case["value"].as_f64().expect("a value");
        let found = bind(&source, "{}").and_then(|model| model.log_density(&[0.0], true, true));
        match found {
            Ok(found) if error(found, expected) <= TOLERANCE => {}
            Ok(found) => failures.push(format!(
                "{found} instead of {expected}: {} {} {}",
                text("kind"),
                text("given"),
                text("model")
            )),
            Err(e) => failures.push(format!("{e}: {}", text("model"))),
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} cases differ:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}
