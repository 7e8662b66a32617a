//! Compares values and gradients at the bounds of domains, and near underflow or overflow, with values of Stan that are
//! finite. `tools/oracle/boundaries.py` computes these reference values.

use std::fs;
use std::path::Path;

use jensen_density::{Lanes, LanesMut, LogDensity, TwiceDifferentiable};
use jensen_graph::{Execution, GraphDensity};
use jensen_stan::lower::{LowerOptions, lower};

/// The largest error, relative to the larger of the reference and 1.
const TOLERANCE: f64 = 1e-7;

#[test]
fn gradients_are_finite_where_those_of_stan_are() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/boundaries.tsv");
    let text = fs::read_to_string(path).unwrap();
    let mut wrong = Vec::new();
    assert!(text.lines().count() > 130);
    for line in text.lines() {
        let (expression, numbers) = line.split_once('\t').unwrap();
        let numbers: Vec<f64> = numbers.split('\t').map(|x| x.parse().unwrap()).collect();
        let program = format!("parameters {{ vector[2] x; }} model {{ target += {expression}; }}");
        let model = crate::support::bind(&program, "{}").unwrap();
        let lowered = lower(&model, LowerOptions::default()).unwrap();
        let density = GraphDensity::new(&lowered.graph, Execution::default());
        let point = [numbers[0], numbers[1]];
        let (mut value, mut gradient) = ([0.0], [0.0; 2]);
        let mut ws = density.workspace(1);
        let out = LanesMut::new(&mut gradient, 2, 1);
        density.value_grad(&mut ws, Lanes::new(&point, 2, 1), &mut value, out);
        let found = [value[0], gradient[0], gradient[1]];
        let mut products = [0.0; 4];
        for (direction, product) in [[1.0, 0.0], [0.0, 1.0]].iter().zip(products.chunks_mut(2)) {
            let out = LanesMut::new(product, 2, 1);
            let direction = Lanes::new(direction, 2, 1);
            density.hvp(&mut ws, Lanes::new(&point, 2, 1), direction, out);
        }
        if !products.iter().all(|x| x.is_finite()) {
            wrong.push(format!(
                "{expression} at {point:?}: second derivatives {products:?}"
            ));
        }
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= TOLERANCE * b.abs().max(1.0);
        if !found.iter().zip(&numbers[2..]).all(near) {
            wrong.push(format!(
                "{expression} at {point:?}: {found:?}, not {:?}",
                &numbers[2..]
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
