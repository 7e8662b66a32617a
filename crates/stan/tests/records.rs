//! Programs over exchangeable records: prior and likelihood against the ordinary density, minibatches against the
//! program on the records of the batch alone, and what is refused.

mod support;

use std::path::{Path, PathBuf};

use jensen_density::{
    AllRecords, Lanes, LanesMut, LogDensity, RecordDensity, TwiceDifferentiable,
};
use jensen_graph::{Execution, GraphDensity, RecordGraph};
use jensen_stan::interpret::{BoundModel, ErrorKind};
use jensen_stan::lower::{LowerError, LowerOptions, LoweredRecords, lower, lower_records};
use jensen_stan::program::SizedType;
use serde_json::Value;
use support::bind;

const LANES: usize = 3;

fn read(path: &Path, name: &str) -> String {
    std::fs::read_to_string(path.join(name)).unwrap_or_else(|_| "{}".into())
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models")
}

/// Deterministic numbers of modest size.
fn number(k: usize) -> f64 {
    0.8 * (k as f64 * 0.737_373 + 0.21).sin()
}

struct Results {
    values: Vec<f64>,
    gradients: Vec<f64>,
    products: Vec<f64>,
}

fn evaluate<D: TwiceDifferentiable>(density: &D, z: &[f64], v: &[f64]) -> Results {
    let dim = density.dim();
    let lanes = z.len() / dim;
    let mut ws = density.workspace(lanes);
    let mut results = Results {
        values: vec![0.0; lanes],
        gradients: vec![0.0; dim * lanes],
        products: vec![0.0; dim * lanes],
    };
    let z = Lanes::new(z, dim, lanes);
    let gradients = LanesMut::new(&mut results.gradients, dim, lanes);
    density.value_grad(&mut ws, z, &mut results.values, gradients);
    let v = Lanes::new(v, dim, lanes);
    density.hvp(&mut ws, z, v, LanesMut::new(&mut results.products, dim, lanes));
    results
}

fn differs(found: &[f64], expected: &[f64]) -> Option<(usize, f64, f64)> {
    let scale = expected
        .iter()
        .filter(|x| x.is_finite())
        .fold(1.0, |m: f64, x| m.max(x.abs()));
    found
        .iter()
        .zip(expected)
        .enumerate()
        .find(|(_, (a, b))| {
            let equal = (a.is_nan() && b.is_nan()) || a == b;
            !equal && !((**a - **b).abs() <= 1e-10 * scale)
        })
        .map(|(i, (a, b))| (i, *a, *b))
}

fn points(dim: usize, lanes: usize, scale: f64) -> (Vec<f64>, Vec<f64>) {
    let z = (0..dim * lanes).map(|k| scale * number(k * 3 + 1)).collect();
    let v = (0..dim * lanes).map(|k| number(k * 5 + 2)).collect();
    (z, v)
}

fn records_of(lowered: &LoweredRecords) -> RecordGraph {
    RecordGraph::new(&lowered.prior, &lowered.likelihood, Execution::default())
}

/// Prior and whole likelihood against the density of the whole program.
fn check_whole(model: &BoundModel, lowered: &LoweredRecords) -> Result<(), String> {
    let whole = lower(model, LowerOptions::default()).map_err(|e| e.to_string())?;
    let whole = GraphDensity::new(&whole.graph, Execution::default());
    let parts = AllRecords::new(records_of(lowered));
    let (z, v) = points(whole.dim(), LANES, 0.5);
    let (a, b) = (evaluate(&parts, &z, &v), evaluate(&whole, &z, &v));
    for (what, a, b) in [
        ("value", &a.values, &b.values),
        ("gradient", &a.gradients, &b.gradients),
        ("product", &a.products, &b.products),
    ] {
        if let Some((i, a, b)) = differs(a, b) {
            return Err(format!("{what} {i}: {a} instead of {b}"));
        }
    }
    if b.values.iter().all(|x| x.is_finite()) {
        Ok(())
    } else {
        Err("no finite value was compared".into())
    }
}

fn models(folder: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the corpus")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    for path in entries {
        if path.join("model.stan").is_file() {
            out.push(path);
        } else if path.is_dir() {
            models(&path, out);
        }
    }
}

/// The `int`s of data that may count records.
fn counts(model: &BoundModel) -> Vec<String> {
    let program = model.program();
    program
        .data
        .iter()
        .filter(|decl| decl.ty == SizedType::Int)
        .map(|decl| program.var(decl.var).name.clone())
        .collect()
}

fn refusal(model: &BoundModel, error: &LowerError) -> String {
    format!("{}: {error}", model.program().location(error.span))
}

/// Every program of the corpus by every variable that could count its records: where prior and likelihood come apart
/// they add up to the density, and where they do not it is said why.
#[test]
fn the_corpus_comes_apart_or_says_why() {
    let mut paths = Vec::new();
    models(&corpus(), &mut paths);
    let (mut apart, mut wrong) = (Vec::new(), Vec::new());
    for path in &paths {
        let name = path.strip_prefix(corpus()).expect("a model").display().to_string();
        let Ok(model) = bind(&read(path, "model.stan"), &read(path, "data.json")) else {
            continue;
        };
        for count in counts(&model) {
            match lower_records(&model, LowerOptions::default(), &count) {
                Ok(lowered) => match check_whole(&model, &lowered) {
                    Ok(()) => apart.push(format!("{name} by {count}")),
                    Err(error) => wrong.push(format!("{name} by {count}: {error}")),
                },
                Err(error) => {
                    if std::env::var_os("SHOW_REFUSALS").is_some() {
                        println!("{name} by {count}: {}", refusal(&model, &error));
                    }
                    if !matches!(error.kind, ErrorKind::Records | ErrorKind::Unsupported) {
                        wrong.push(format!("{name} by {count}: {:?} {}", error.kind, refusal(&model, &error)));
                    }
                }
            }
        }
    }
    println!("{} apart:\n{}", apart.len(), apart.join("\n"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
