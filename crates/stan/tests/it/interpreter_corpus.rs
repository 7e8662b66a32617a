//! Tests the interpreter against the reference values of the model corpus.

use crate::support::{bind, corpus, error, numbers};
use jensen_density::{DrawKey, Posterior};

/// The tolerance, unless the oracle states another one, as it does for solvers.
const TOLERANCE: f64 = 1e-8;

/// Densities whose constants `~` drops in Stan's library, but not in the tool that computed the reference values.
const KEEPS_CONSTANTS: [&str; 3] = ["wishart(", "multi_student_t", "lkj_cov"];

fn check_model(given: &corpus::Model) -> Result<(), String> {
    let corpus::Model {
        source,
        data,
        oracle,
    } = given;
    let model = bind(source, data).map_err(|e| e.to_string())?;
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
    // The reference lists the names of the elements of arrays of vectors in another order than the coordinates, but the
    // set of names is the same.
    let (mut a, mut b) = (names.clone(), expected.clone());
    a.sort();
    b.sort();
    if a != b {
        return Err(format!("names {names:?} instead of {expected:?}"));
    }
    let tolerance = oracle["tolerance"].as_f64().unwrap_or(TOLERANCE);
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
            if error(found, expected) > tolerance || found.is_nan() {
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
            if error(*a, *b) > tolerance {
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

/// Constrained parameters must map back to their coordinates, provided that rounding keeps them inside their
/// constraints.
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
        // The constrained value of a coordinate near a bound has lost digits.
        if error(*a, *b) > 1e-5 {
            return Err(format!("{a} instead of {b}"));
        }
    }
    Ok(())
}

#[test]
fn reference_values() {
    corpus::check_every(check_model);
}
