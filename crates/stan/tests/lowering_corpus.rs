//! The lowered graphs of the model corpus against its reference values, by the slow evaluator.

mod support;

use jensen_graph::{Graph, evaluate};
use jensen_stan::lower::{LowerOptions, Lowered, lower};
use support::{bind, corpus, error, numbers};

/// Where the oracle does not name another one: solvers have their own.
const TOLERANCE: f64 = 1e-8;

/// The graph with the gradient as second output.
fn with_gradient(lowered: &Lowered) -> Graph {
    let mut graph = jensen_graph::passes::compact(&lowered.graph);
    let output = graph.outputs()[0];
    let z = graph.input_node(0);
    let gradient = graph.gradient(output, &[z])[0];
    graph.set_outputs(vec![output, gradient]);
    graph
}

fn check_model(given: &corpus::Model) -> Result<(), String> {
    let corpus::Model {
        source,
        data,
        oracle,
    } = given;
    let model = bind(source, data).map_err(|e| e.to_string())?;
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
    let tolerance = oracle["tolerance"].as_f64().unwrap_or(TOLERANCE);
    let points = oracle["points"].as_array().expect("points");
    for (i, point) in points.iter().enumerate() {
        let z = numbers(point);
        let both = evaluate(&full, &[&z], None);
        let compare = |what: &str, field: &str, found: f64| {
            let Some(expected) = oracle[field][i].as_f64() else {
                return Ok(());
            };
            if error(found, expected) > tolerance || found.is_nan() {
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
            let agrees = error(*found, *expected) <= tolerance;
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
    corpus::check_every(check_model);
}
