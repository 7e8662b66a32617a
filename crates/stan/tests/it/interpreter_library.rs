//! Tests library functions of the interpreter against reference values.

use crate::support::{bind, error};
use serde_json::Value;

const TOLERANCE: f64 = 1e-9;

#[test]
fn reference_values() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("../reference/library.json")).expect("JSON");
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

#[test]
fn schur_forms_multiply_to_their_matrices() {
    let real = "[[0.5, -2, 0.1], [1.5, 1, 0.3], [0.2, 0.1, 4]]";
    let complex = format!("to_complex({real}, [[0, 1, 2], [0.5, -1, 0.3], [1, 0, 0.2]])");
    for (matrix, ty) in [(real, "matrix"), (complex.as_str(), "complex_matrix")] {
        let source = format!(
            "transformed data {{
  {ty}[3, 3] A = {matrix};
  complex_matrix[3, 3] U = complex_schur_decompose_u(A);
  complex_matrix[3, 3] T = complex_schur_decompose_t(A);
  complex_matrix[3, 3] V;
  complex_matrix[3, 3] S;
  (V, S) = complex_schur_decompose(A);
}}
parameters {{ real p; }}
model {{
  target += sum(abs(U * T * conj(U') - A)) + sum(abs(U * conj(U') - identity_matrix(3)));
  target += sum(abs(U - V)) + sum(abs(T - S)) + abs(T[2, 1]) + abs(T[3, 1]) + abs(T[3, 2]);
  target += abs(sum(diagonal(T)) - sum(eigenvalues(A)));
}}"
        );
        let model = bind(&source, "{}").expect("it is computed");
        let apart = model.log_density(&[0.0], true, true).expect("a number");
        assert!(apart.abs() < 1e-12, "{apart}");
    }
}
