//! Tests log densities at extreme arguments, where terms cancel, against an external oracle that computes 60 digits
//! (`tools/oracle/extremes.py`). The repository contains the worst 200 of 10⁴ points for each distribution. With
//! `JENSEN_EXTREMES=FILE`, the test reads all points and stores the worst ones with their errors.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::support::bind;
use jensen_density::{Lanes, LanesMut, LogDensity};
use jensen_graph::{Execution, GraphDensity};
use jensen_stan::interpret::BoundModel;
use jensen_stan::lower::{LowerOptions, lower};

const KEPT: usize = 200;

/// The number of leading arguments that are integers. Distributions without integers are not listed.
const WHOLE: &[(&str, usize)] = &[
    ("poisson", 1),
    ("poisson_log", 1),
    ("binomial", 2),
    ("binomial_logit", 2),
    ("beta_binomial", 2),
    ("neg_binomial", 1),
    ("neg_binomial_2", 1),
    ("neg_binomial_2_log", 1),
    ("beta_neg_binomial", 1),
    ("yule_simon", 1),
];

struct Point {
    arguments: Vec<f64>,
    wanted: f64,
    line: String,
}

/// The errors of a log density in the graph and in the interpreter, relative to its magnitude or to 1, whichever is
/// larger.
type Errors = [f64; 2];

fn reference(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/reference")
        .join(name)
}

fn points(path: &Path) -> BTreeMap<String, Vec<Point>> {
    let text = std::fs::read_to_string(path).expect("the points are there");
    let mut found: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    for line in text.lines() {
        let (name, numbers) = line.split_once(',').expect("a name and numbers");
        let mut numbers: Vec<f64> = numbers
            .split(',')
            .map(|x| x.parse().expect("a number"))
            .collect();
        let wanted = numbers.pop().expect("a value");
        found.entry(name.to_owned()).or_default().push(Point {
            arguments: numbers,
            wanted,
            line: line.to_owned(),
        });
    }
    found
}

fn program(name: &str, whole: usize, arguments: usize) -> String {
    let words: Vec<String> = (0..arguments).map(|i| format!("x{i}")).collect();
    let declared = |range: std::ops::Range<usize>, ty: &str| -> String {
        words[range].iter().map(|x| format!("{ty} {x}; ")).collect()
    };
    let (data, parameters) = (
        declared(0..whole, "int"),
        declared(whole..arguments, "real"),
    );
    let suffix = if whole > 0 { "lpmf" } else { "lpdf" };
    let given = words[1..].join(", ");
    format!(
        "data {{ {data} }} parameters {{ {parameters} }} model {{ target += {name}_{suffix}(x0 | {given}); }}"
    )
}

fn bound(source: &str, whole: &[f64]) -> BoundModel {
    let data = whole.iter().enumerate();
    let data: Vec<String> = data.map(|(i, x)| format!("\"x{i}\": {x}")).collect();
    bind(source, &format!("{{{}}}", data.join(", "))).expect("the program is right")
}

fn errors(name: &str, points: &[Point]) -> Vec<Errors> {
    let whole = WHOLE.iter().find(|(of, _)| *of == name);
    let whole = whole.map_or(0, |(_, count)| *count);
    let source = program(name, whole, points[0].arguments.len());
    let mut known: Option<(BoundModel, GraphDensity)> = None;
    let mut found = Vec::with_capacity(points.len());
    for point in points {
        let (integers, z) = point.arguments.split_at(whole);
        if whole > 0 || known.is_none() {
            let model = bound(&source, integers);
            let lowered = lower(&model, LowerOptions::default()).expect("it is lowered");
            let density = GraphDensity::new(&lowered.graph, Execution::default());
            known = Some((model, density));
        }
        let (model, density) = known.as_ref().expect("made above");
        let mut graph = [0.0];
        let mut workspace = density.workspace(1);
        density.value(&mut workspace, Lanes::new(z, z.len(), 1), &mut graph);
        let interpreter = model.log_density(z, true, false).unwrap_or(f64::NAN);
        found.push([graph[0], interpreter].map(|value| {
            let error = (value - point.wanted).abs() / point.wanted.abs().max(1.0);
            if error.is_nan() { f64::INFINITY } else { error }
        }));
    }
    found
}

fn worst(errors: &[Errors]) -> Errors {
    let at = |which: usize| errors.iter().map(|e| e[which]).fold(0.0, f64::max);
    [at(0), at(1)]
}

/// Returns the smallest power of ten above three times the error. The margin is needed because other instruction sets
/// round differently.
fn limit(error: f64) -> f64 {
    let power = (3.0 * error).max(1e-15).log10().ceil();
    format!("1e{power}").parse().expect("a power of ten")
}

#[test]
fn log_densities_keep_their_digits_at_extreme_arguments() {
    if let Some(file) = std::env::var_os("JENSEN_EXTREMES") {
        keep(Path::new(&file));
        return;
    }
    let limits = std::fs::read_to_string(reference("extremes_limits.csv")).expect("the limits");
    let points = points(&reference("extremes.csv"));
    assert_eq!(points.len(), limits.lines().count());
    let mut failures = Vec::new();
    for line in limits.lines() {
        let words: Vec<&str> = line.split(',').collect();
        let found = worst(&errors(words[0], &points[words[0]]));
        for (found, limit) in found.iter().zip(&words[1..]) {
            let limit: f64 = limit.parse().expect("a number");
            if found.is_nan() || *found > limit {
                failures.push(format!("{}: {found:e}, above {limit:e}", words[0]));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn keep(file: &Path) {
    let (mut kept, mut limits) = (String::new(), String::new());
    for (name, points) in points(file) {
        let errors = errors(&name, &points);
        let [graph, interpreter] = worst(&errors);
        let size = |e: &Errors| e[0].max(e[1]);
        let mut order: Vec<usize> = (0..points.len()).collect();
        order.sort_by(|a, b| size(&errors[*b]).total_cmp(&size(&errors[*a])));
        println!(
            "{name:<24} {graph:8.1e} {interpreter:8.1e}  {}",
            points[order[0]].line
        );
        for point in order.iter().take(KEPT).map(|at| &points[*at]) {
            // Writing to a string cannot fail.
            let _ = writeln!(kept, "{}", point.line);
        }
        let _ = writeln!(limits, "{name},{:e},{:e}", limit(graph), limit(interpreter));
    }
    std::fs::write(reference("extremes.csv"), kept).expect("the points are written");
    std::fs::write(reference("extremes_limits.csv"), limits).expect("the limits are written");
}

/// Counts of successes, some of which are large: none, few, many, and as many as there are trials.
const COUNTS: [f64; 5] = [0.0, 7.0, 20_000.0, 1_234_567_890.0, 2_000_000_000.0];

const TRIALS: [f64; 5] = [30_000.0, 12.0, 1e9, 2_000_000_000.0, 2_000_000_000.0];

#[test]
fn slopes_keep_their_digits_at_large_counts() {
    let listed = |x: &[f64]| format!("{x:?}");
    let data = format!(
        r#"{{ "y": {}, "n": {} }}"#,
        listed(&COUNTS).replace(".0", ""),
        listed(&TRIALS).replace(".0", "")
    );
    let inv_logit = |x: f64| 1.0 / (1.0 + (-x).exp());
    // The arguments are a count, the number of trials, x, and the inverse logit of x.
    type Slope = fn(f64, f64, f64, f64) -> f64;
    let cases: [(&str, &[f64], Slope); 4] = [
        (
            "poisson_lpmf(y | x)",
            &[1e-3, 3.0, 19_990.0, 1e9, 1e12],
            |y, _, x, _| y / x - 1.0,
        ),
        (
            "poisson_log_lpmf(y | x)",
            &[-30.0, 0.5, 9.903, 20.93, 25.0],
            |y, _, x, _| y - x.exp(),
        ),
        (
            "binomial_lpmf(y | n, x)",
            &[1e-9, 1e-3, 0.3, 0.617, 1.0 - 1e-9],
            |y, n, x, _| y / x - (n - y) / (1.0 - x),
        ),
        (
            "binomial_logit_lpmf(y | n, x)",
            &[-40.0, -3.0, 0.4, 0.4767, 30.0],
            |y, n, _, p| y * (1.0 - p) - (n - y) * p,
        ),
    ];
    for (mass, points, slope) in cases {
        let source = format!(
            "data {{ array[5] int y; array[5] int n; }} parameters {{ real x; }} model {{ target += {mass}; }}"
        );
        let model = bind(&source, &data).expect("the program is right");
        let lowered = lower(&model, LowerOptions::default()).expect("it is lowered");
        let density = GraphDensity::new(&lowered.graph, Execution::default());
        let mut workspace = density.workspace(1);
        for x in points {
            let (mut value, mut gradient) = ([0.0], [0.0]);
            density.value_grad(
                &mut workspace,
                Lanes::new(&[*x], 1, 1),
                &mut value,
                LanesMut::new(&mut gradient, 1, 1),
            );
            let each = COUNTS.iter().zip(TRIALS);
            let slopes: Vec<f64> = each.map(|(y, n)| slope(*y, n, *x, inv_logit(*x))).collect();
            let wanted: f64 = slopes.iter().sum();
            let size: f64 = slopes.iter().map(|s| s.abs()).sum();
            assert!(
                (gradient[0] - wanted).abs() < 1e-9 * size,
                "{mass} at {x}: slope {}, not {wanted}",
                gradient[0]
            );
            let interpreter = model.log_density(&[*x], true, false).expect("it has one");
            assert!(
                (value[0] - interpreter).abs() < 1e-12 * interpreter.abs(),
                "{mass} at {x}: {} and {interpreter}",
                value[0]
            );
        }
    }
}
