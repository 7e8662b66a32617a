//! Tests the lowered graphs of the model corpus against the reference values, using the slow evaluator.

use crate::support::{bind, corpus, error, numbers};
use jensen_density::{Lanes, LanesMut, LogDensity, TwiceDifferentiable};
use jensen_graph::{Execution, Graph, GraphDensity, evaluate};
use jensen_stan::lower::{LowerOptions, Lowered, lower};

/// The tolerance, unless the oracle states another one, as it does for solvers.
const TOLERANCE: f64 = 1e-8;

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
        // The tool that computed the reference keeps all terms of an inverse Wishart density whose degrees of freedom
        // are known.
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

const WHOLE: usize = 200;

/// Checks that every second derivative outside the pattern is zero, and returns the number of entries outside it.
fn outside_the_pattern(given: &corpus::Model) -> Result<usize, String> {
    let model = bind(&given.source, &given.data).map_err(|e| e.to_string())?;
    let lowered = lower(&model, LowerOptions::default()).map_err(|e| e.to_string())?;
    let density = GraphDensity::new(&lowered.graph, Execution::default());
    let dim = density.dim();
    let Some(pattern) = density.pattern().filter(|_| dim > 1 && dim <= WHOLE) else {
        return Ok(0);
    };
    let mut unit = vec![0.0; dim * dim];
    (0..dim).for_each(|i| unit[i * dim + i] = 1.0);
    let mut workspace = density.workspace(dim);
    let mut absent = 0;
    for point in given.oracle["points"].as_array().expect("points") {
        let z: Vec<f64> = numbers(point).iter().flat_map(|&x| vec![x; dim]).collect();
        let mut hessian = vec![0.0; dim * dim];
        let out = LanesMut::new(&mut hessian, dim, dim);
        density.hvp(
            &mut workspace,
            Lanes::new(&z, dim, dim),
            Lanes::new(&unit, dim, dim),
            out,
        );
        let largest = hessian
            .iter()
            .filter(|h| h.is_finite())
            .fold(0.0, |m: f64, h| m.max(h.abs()));
        for (i, row) in hessian.chunks(dim).enumerate() {
            let joined = |j: usize| i == j || pattern.neighbours(i).contains(&(j as u32));
            for (j, h) in row.iter().enumerate().filter(|&(j, _)| !joined(j)) {
                absent += 1;
                // Terms that cancel leave rounding errors behind.
                if h.abs() > 1e-12 * largest {
                    return Err(format!(
                        "coordinates {i} and {j}: {h}, though the pattern has none"
                    ));
                }
            }
        }
    }
    Ok(absent)
}

#[test]
fn patterns_leave_no_derivative_out() {
    let absent = std::cell::Cell::new(0);
    corpus::check_every(|model| {
        absent.set(absent.get() + outside_the_pattern(model)?);
        Ok(())
    });
    // The corpus contains chains, fields and hierarchies, so the pattern must exclude many entries.
    assert!(absent.get() > 100_000, "{}", absent.get());
}
