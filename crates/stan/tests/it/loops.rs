//! Compares programs written as loops with the same programs written with vectors.
//!
//! Each file of `programs` contains the common part, the form with loops and, if it exists, the form with vectors. The
//! interpreter computes the reference. The graph of the loops must have the same number of nodes for few and for many
//! iterations, and at most a few nodes more than the graph of the vectors.

use crate::support::agreement::Outcome;
use crate::support::{bind, error};
use jensen_density::{Lanes, LanesMut, LogDensity};
use jensen_graph::{Execution, Graph, GraphDensity, evaluate, passes};
use jensen_math::simd::Simd;
use jensen_stan::lower::{LowerOptions, Lowered, lower};
use serde_json::json;

fn number(k: usize) -> f64 {
    0.8 * (k as f64 * 0.737_373 + 0.21).sin()
}

fn data(n: usize) -> String {
    let ints = |modulus: usize, factor: usize| -> Vec<usize> {
        (0..n).map(|i| (i * factor + i / 7) % modulus).collect()
    };
    let ones = |of: Vec<usize>| -> Vec<usize> { of.into_iter().map(|i| i + 1).collect() };
    let rows: Vec<Vec<f64>> = (0..n)
        .map(|i| (0..3).map(|k| number(5 * i + k)).collect())
        .collect();
    let wide: Vec<Vec<f64>> = (0..n)
        .map(|i| (0..12).map(|k| number(13 * i + k + 400)).collect())
        .collect();
    // Groups of 1, 2, 3, 0, 1, 2, … records, one after another.
    let (mut first, mut last, mut size) = (Vec::new(), Vec::new(), Vec::new());
    let mut at = 1;
    while at <= n {
        let length = ((first.len() + 1) % 4).min(n + 1 - at);
        first.push(at);
        last.push(at + length - 1);
        size.push(length);
        at += length;
    }
    json!({
        "N": n, "K": 3, "W": 12, "G": 5, "M": first.len(),
        "x": (0..n).map(|i| number(3 * i + 100)).collect::<Vec<_>>(),
        "X": rows, "A": rows, "Z": wide,
        "y": (0..n).map(|i| number(7 * i + 200)).collect::<Vec<_>>(),
        "p": (0..n).map(|i| 1.5 + number(2 * i)).collect::<Vec<_>>(),
        "z": ints(2, 3), "c": ints(6, 5), "g": ones(ints(5, 7)), "h": ones(ints(3, 2)),
        "o": ones((0..n).map(|i| (i * 7 + 3) % n).collect()),
        "from": first, "to": last, "size": size,
    })
    .to_string()
}

struct Ways {
    name: String,
    loops: String,
    vectors: Option<String>,
    /// Whether iterations depend on each other. If so, the test does not check the number of nodes.
    carried: bool,
}

fn programs() -> Vec<Ways> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/loops/programs");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("programs")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    files
        .iter()
        .map(|path| {
            let text = std::fs::read_to_string(path).expect("a program");
            let mut parts = text.split("//// ");
            let shared = parts.next().expect("what is shared").to_owned();
            let mut ways = Ways {
                name: path.file_stem().expect("a name").to_string_lossy().into(),
                loops: String::new(),
                vectors: None,
                carried: false,
            };
            for part in parts {
                let (what, rest) = part.split_once('\n').expect("a heading");
                let source = format!("{shared}{rest}");
                match what.trim() {
                    "loops" => ways.loops = source,
                    "carried" => (ways.loops, ways.carried) = (source, true),
                    "vectors" => ways.vectors = Some(source),
                    other => panic!("{}: no way is called {other}", ways.name),
                }
            }
            ways
        })
        .collect()
}

fn lowered(source: &str, n: usize) -> Lowered {
    let model = bind(source, &data(n)).unwrap_or_else(|e| panic!("{e}\n{source}"));
    lower(&model, LowerOptions::default()).unwrap_or_else(|e| panic!("{e}\n{source}"))
}

/// The outputs are the value, the gradient, and the product of the Hessian with a direction.
fn derivatives(lowered: &Lowered) -> Graph {
    let mut graph = passes::compact(&lowered.graph);
    let output = graph.outputs()[0];
    let z = graph.input_node(0);
    let gradient = graph.gradient(output, &[z])[0];
    let direction: Vec<f64> = (0..lowered.dim).map(|k| number(11 * k + 5)).collect();
    let direction = graph.vector(&direction);
    let along = graph.mul(gradient, direction);
    let along = graph.sum(along);
    let product = graph.gradient(along, &[z])[0];
    graph.set_outputs(vec![output, gradient, product]);
    graph
}

fn executed(ways: &Ways, n: usize, lowered: &Lowered, graph: &Graph) -> Result<(), String> {
    let (dim, lanes) = (lowered.dim, 3);
    let z: Vec<f64> = (0..dim * lanes).map(|k| number(7 * k + 3)).collect();
    for simd in Simd::available() {
        let density = GraphDensity::new(&lowered.graph, Execution { simd, threads: 1 });
        let mut workspace = density.workspace(lanes);
        let (mut values, mut gradients) = (vec![0.0; lanes], vec![0.0; dim * lanes]);
        density.value_grad(
            &mut workspace,
            Lanes::new(&z, dim, lanes),
            &mut values,
            LanesMut::new(&mut gradients, dim, lanes),
        );
        for lane in 0..lanes {
            let of =
                |all: &[f64]| -> Vec<f64> { (0..dim).map(|d| all[d * lanes + lane]).collect() };
            let wanted = evaluate(graph, &[&of(&z)], None);
            let scale = wanted[1].iter().fold(1.0, |m: f64, x| m.max(x.abs()));
            let gradient = of(&gradients);
            let gaps = gradient
                .iter()
                .zip(&wanted[1])
                .map(|(a, b)| (a - b).abs() / scale);
            if error(values[lane], wanted[0][0]) > 1e-10 || gaps.fold(0.0, f64::max) > 1e-10 {
                return Err(format!(
                    "{}, {n}: {simd:?} gives {} and {gradient:?}, not {wanted:?}",
                    ways.name, values[lane]
                ));
            }
        }
    }
    Ok(())
}

fn compare(ways: &Ways, n: usize) -> Result<(), String> {
    let name = &ways.name;
    let model = bind(&ways.loops, &data(n)).map_err(|e| e.to_string())?;
    let loops = lowered(&ways.loops, n);
    let graph = derivatives(&loops);
    let twin = ways
        .vectors
        .as_ref()
        .map(|source| derivatives(&lowered(source, n)));
    for k in 0..3 {
        let z: Vec<f64> = (0..loops.dim).map(|i| number(4 * i + 17 * k + 1)).collect();
        let found = evaluate(&graph, &[&z], None);
        let expected = model.log_density(&z, true, false);
        match &expected {
            Ok(expected) if error(found[0][0], *expected) > 1e-10 => {
                return Err(format!(
                    "{name}, {n}: {} instead of {expected}",
                    found[0][0]
                ));
            }
            Err(e) if !found[0][0].is_nan() => {
                return Err(format!("{name}, {n}: {} instead of {e}", found[0][0]));
            }
            _ => {}
        }
        let Some(twin) = &twin else { continue };
        let twin = evaluate(twin, &[&z], None);
        let scale = |all: &[f64]| all.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
        for (what, (a, b)) in ["value", "gradient", "product"]
            .iter()
            .zip(found.iter().zip(&twin))
        {
            let gap = a.iter().zip(b).map(|(x, y)| (x - y).abs());
            let gap = gap.fold(0.0, f64::max) / scale(b);
            if gap > 1e-10 || gap.is_nan() {
                return Err(format!(
                    "{name}, {n}: the {what} {a:?} is not that of vectors, {b:?}"
                ));
            }
        }
    }
    executed(ways, n, &loops, &graph)
}

#[test]
fn loops_are_what_the_interpreter_and_vectors_say() {
    let failures: Vec<String> = programs()
        .iter()
        .flat_map(|ways| [10, 60].map(|n| compare(ways, n)))
        .filter_map(Result::err)
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn graphs_of_loops_do_not_grow_with_their_iterations() {
    let mut failures = Vec::new();
    for ways in programs().iter().filter(|ways| !ways.carried) {
        let nodes = |source: &str, n: usize| passes::compact(&lowered(source, n).graph).len();
        let (few, many) = (nodes(&ways.loops, 120), nodes(&ways.loops, 480));
        let vectors = ways.vectors.as_ref().map(|source| nodes(source, 480));
        if few != many || vectors.is_some_and(|vectors| many > 2 * vectors + 8) {
            failures.push(format!(
                "{}: {few} nodes for 120 records, {many} for 480; with vectors {vectors:?}",
                ways.name
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_iteration_that_fails_is_named_as_ever() {
    let cases = [
        ("y[n] ~ bernoulli(inv_logit(a + x[n]));", "is 2, but"),
        (
            "target += normal_lpdf(x[n] | a, n - 90);",
            "is -89, but must be positive",
        ),
        ("target += a * x[n + 1];", "index 101"),
        (
            "if (n == 77) reject(\"seventy-seven\"); target += a;",
            "seventy-seven",
        ),
        (
            "{ vector[2] v = rep_vector(a, n < 50 ? 2 : 3); target += sum(v); }",
            "expected vector[2], found vector[3]",
        ),
    ];
    for (body, fragment) in cases {
        let source = format!(
            "data {{ int N; vector[N] x; array[N] int y; }} parameters {{ real a; }}\nmodel {{\n  for (n in 1:N) {{ {body} }}\n}}"
        );
        let n = 100;
        let y: Vec<usize> = (0..n).map(|i| if i == 70 { 2 } else { i % 2 }).collect();
        let x: Vec<f64> = (0..n).map(number).collect();
        let data = json!({"N": n, "x": x, "y": y}).to_string();
        let model = bind(&source, &data).expect("binds");
        let expected = model.log_density(&[0.3], true, false).expect_err("fails");
        let found = lower(&model, LowerOptions::default()).expect_err("fails");
        assert_eq!(
            (found.kind, found.span),
            (expected.kind, expected.span),
            "{body}: {found}"
        );
        assert!(found.message.contains(fragment), "{body}: {found}");
    }
}

/// Each line is a body over vectors and matrices that differ between iterations. The loop is so long that its
/// iterations are joined into vector operations if the body can be expressed by such operations. Most bodies cannot,
/// and Jensen must detect this at any place in a function.
#[test]
fn bodies_with_vectors_and_matrices_are_what_they_are_iteration_by_iteration() {
    let iterations = 50;
    let data = json!({
        "N": iterations,
        "Y": (0..iterations).map(|n| vec![number(3 * n), number(5 * n + 1)]).collect::<Vec<_>>(),
        "k": (0..iterations).map(|n| n * 5 % 6 + 1).collect::<Vec<_>>(),
    })
    .to_string();
    let around = "data { int N; array[N] vector[2] Y; array[N] int k; }\n\
        transformed data { vector[N] x; for (n in 1:N) x[n] = 0.1 * (n % 7) - 0.2; }\n\
        parameters { vector<lower=0>[2] s; cov_matrix[2] S; cholesky_factor_corr[2] L; real<lower=0,upper=1> r; matrix[3,2] M; \
        vector[6] g; }\n\
        model { for (n in 1:N) {\nBODY\n} }\n";
    let bodies = include_str!("../loops/bodies.txt").lines().enumerate();
    let wrong: Vec<String> = bodies
        .filter_map(|(line, body)| {
            let source = around.replace("BODY", body);
            match crate::support::agreement::compare(&source, &data, 1 + line as u64) {
                Ok(Outcome::Agreed | Outcome::Delicate) => None,
                other => Some(format!("line {}, {body}: {other:?}", line + 1)),
            }
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
