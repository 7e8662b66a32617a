//! Tests that, for random programs, the graph agrees with the interpreter or lowering gives a reason for its failure.

use crate::support::bind;
use jensen_graph::evaluate;
use jensen_stan::interpret::ErrorKind;
use jensen_stan::lower::{LowerOptions, lower};

fn close(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
}

#[test]
fn graph_and_interpreter_agree() {
    let (mut compared, mut failures) = (0, Vec::new());
    for seed in 0..400 {
        let source = crate::common::program(seed);
        let Ok(model) = bind(&source, crate::common::DATA) else {
            continue;
        };
        let lowered = match lower(&model, LowerOptions::default()) {
            Ok(lowered) => lowered,
            Err(e) if e.kind == ErrorKind::Unsupported || e.kind == ErrorKind::Rejected => continue,
            Err(e) => {
                // A program that lowering rejects for all draws must also fail in the interpreter.
                let z = vec![0.1; model.unconstrained_dim()];
                if model.log_density(&z, true, false).is_ok() {
                    failures.push(format!(
                        "seed {seed}: {}: {e}",
                        model.program().location(e.span)
                    ));
                }
                continue;
            }
        };
        for k in 0..3 {
            let z: Vec<f64> = (0..lowered.dim)
                .map(|i| (1.7 * i as f64 + 2.3 * k as f64 + 0.3).sin())
                .collect();
            let found = evaluate(&lowered.graph, &[&z], None)[0][0];
            match model.log_density(&z, true, false) {
                Ok(expected) if expected.is_finite() && !close(found, expected) => {
                    failures.push(format!("seed {seed}: {found} instead of {expected}"));
                }
                Ok(expected) if expected.is_finite() => compared += 1,
                Ok(_) => {}
                Err(_) if found.is_finite() => {
                    failures.push(format!("seed {seed}: {found} instead of a rejection"))
                }
                Err(_) => {}
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(compared > 300, "only {compared} values to compare");
}
