//! Measures the time of the solvers on generated models or on models from plain text files.
//!
//! `cargo run --release -p jensen-latent --example measure -- gp FILE LENGTHSCALE VARIANCE SOLVER BOUND` reads rows of
//! inputs with the label 0 or 1 last, separated by white space; `grid ROWS COLS`, `glm ROWS COLS`, `graph FILE` and
//! `field FILE` are described at their functions.

use std::time::Instant;

use jensen_latent::{
    Covariance, Dense, Design, LatentModel, Likelihood, Observations, Precision, Settings,
    SiteBound, Solver, Sparse, Structure, fit,
};
use jensen_run::{Budget, Control, Identity, Record};

fn identity() -> Identity {
    Identity {
        algorithm: "measure".to_owned(),
        settings: serde_json::Value::Null,
        seed: 0,
        model_hash: String::new(),
        data_hash: String::new(),
        simd: String::new(),
    }
}

fn report(what: &str, model: &LatentModel, settings: &Settings) {
    let start = Instant::now();
    let clock = || start.elapsed().as_secs_f64();
    let mut trace: Vec<Record> = Vec::new();
    let mut control = Control::new(Budget::iterations(60), &clock, &mut trace);
    match fit(model, settings, None, false, &identity(), &mut control) {
        Ok(fit) => {
            println!(
                "{what}: bound {:.6}, gap {:?}, {} iterations, solver {:.3} s, all {:.3} s, {}",
                fit.bound,
                fit.gap,
                fit.iterations,
                fit.seconds,
                start.elapsed().as_secs_f64(),
                fit.status
            );
            for note in &fit.notes {
                println!("  note: {note}");
            }
            let shown = trace.len().min(40);
            for record in &trace[..shown] {
                println!(
                    "  {:3} {:8.3} s  {:?} gap {:?} step {:?} calls {}",
                    record.iteration,
                    record.seconds,
                    record.elbo,
                    record.fields.get("gap").and_then(|g| g.as_f64()),
                    record.fields.get("step").and_then(|g| g.as_f64()),
                    record.oracle_calls
                );
            }
        }
        Err(error) => println!("{what}: {error}"),
    }
}

fn numbers(path: &str) -> Vec<Vec<f64>> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            line.split_whitespace()
                .map(|x| x.parse().unwrap_or(f64::NAN))
                .collect()
        })
        .collect()
}

fn gp(args: &[String]) {
    let rows = numbers(&args[0]);
    let (scale, variance): (f64, f64) = (args[1].parse().unwrap(), args[2].parse().unwrap());
    let n = rows.len();
    let d = rows[0].len() - 1;
    let covariance = Dense::from_fn(n, n, |i, j| {
        let r2: f64 = (0..d).map(|k| (rows[i][k] - rows[j][k]).powi(2)).sum();
        variance * (-r2 / (2.0 * scale * scale)).exp()
    });
    let model = LatentModel {
        prior: Structure {
            mean: vec![0.0; n],
            covariance: Covariance::Dense(covariance),
        },
        design: Design::Identity,
        likelihood: Likelihood::bernoulli(),
        bound: SiteBound::from_name(&args[4]).unwrap(),
        observations: Observations::new(rows.iter().map(|r| r[d]).collect()),
    };
    let settings = Settings {
        solver: Solver::from_name(&args[3]).unwrap(),
        ..Settings::default()
    };
    report(&args[0], &model, &settings);
}

/// Returns the precision `kappa (D − A) + shift I` of a field on a lattice.
fn lattice(rows: usize, cols: usize, kappa: f64, shift: f64) -> Sparse {
    let at = |r: usize, c: usize| r * cols + c;
    let mut triplets = Vec::new();
    for r in 0..rows {
        for c in 0..cols {
            triplets.push((at(r, c), at(r, c), shift));
            let mut link = |other: usize| {
                triplets.push((at(r, c), at(r, c), kappa));
                triplets.push((other, other, kappa));
                triplets.push((at(r, c), other, -kappa));
                triplets.push((other, at(r, c), -kappa));
            };
            if r + 1 < rows {
                link(at(r + 1, c));
            }
            if c + 1 < cols {
                link(at(r, c + 1));
            }
        }
    }
    Sparse::from_triplets(rows * cols, rows * cols, &triplets).unwrap()
}

/// Fits counts on a lattice with an intrinsic first-order field.
fn grid(args: &[String]) {
    let (rows, cols): (usize, usize) = (args[0].parse().unwrap(), args[1].parse().unwrap());
    let n = rows * cols;
    let y = (0..n)
        .map(|i| {
            let (r, c) = (
                (i / cols) as f64 / rows as f64,
                (i % cols) as f64 / cols as f64,
            );
            let rate = (2.0 * (6.0 * r).sin() * (4.0 * c).cos()).exp();
            (rate + 0.7 * ((i * 7919) % 13) as f64 / 6.0).floor()
        })
        .collect();
    let model = LatentModel {
        prior: Structure {
            mean: vec![0.0; n],
            covariance: Covariance::Precision(Precision {
                matrix: lattice(rows, cols, 4.0, 0.0),
                null_space: Some(Dense::from_fn(n, 1, |_, _| 1.0)),
                log_determinant: None,
            }),
        },
        design: Design::Identity,
        likelihood: Likelihood::poisson(),
        bound: SiteBound::Exact,
        observations: Observations::new(y),
    };
    report("grid", &model, &Settings::default());
}

/// Fits a logistic regression with independent coefficients.
fn glm(args: &[String]) {
    let (rows, cols): (usize, usize) = (args[0].parse().unwrap(), args[1].parse().unwrap());
    let w = Dense::from_fn(rows, cols, |i, j| {
        let x = ((i + 1) as f64 * 0.618_033_988_7 * (j + 1) as f64).fract();
        if j == 0 { 1.0 } else { 2.0 * x - 1.0 }
    });
    let y = (0..rows)
        .map(|i| {
            let eta: f64 = (0..cols).map(|j| w.get(i, j) * ((j as f64).sin())).sum();
            let u = ((i + 1) as f64 * 0.754_877_666).fract();
            f64::from(u < 1.0 / (1.0 + (-eta).exp()))
        })
        .collect();
    let model = LatentModel {
        prior: Structure {
            mean: vec![0.0; cols],
            covariance: Covariance::Diagonal(vec![10.0; cols]),
        },
        design: Design::Dense(w.into()),
        likelihood: Likelihood::bernoulli(),
        bound: SiteBound::Tilted,
        observations: Observations::new(y),
    };
    report("glm", &model, &Settings::default());
}

/// Fits counts with exposures on the regions of a graph. For each region, the file contains its count, its exposure,
/// and the indices of its neighbours, which are counted from 0.
fn graph(args: &[String]) {
    let rows = numbers(&args[0]);
    let n = rows.len();
    let mut triplets = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        triplets.push((i, i, 8.0 * (row.len() - 2) as f64));
        for x in &row[2..] {
            triplets.push((i, *x as usize, -8.0));
        }
    }
    let model = LatentModel {
        prior: Structure {
            mean: vec![0.0; n],
            covariance: Covariance::Precision(Precision {
                matrix: Sparse::from_triplets(n, n, &triplets).unwrap(),
                null_space: Some(Dense::from_fn(n, 1, |_, _| 1.0)),
                log_determinant: None,
            }),
        },
        design: Design::Identity,
        likelihood: Likelihood::poisson(),
        bound: SiteBound::Exact,
        observations: Observations {
            response: rows.iter().map(|r| r[0]).collect(),
            size: Some(rows.iter().map(|r| r[1]).collect()),
            ..Observations::default()
        },
    };
    report(&args[0], &model, &Settings::default());
}

/// Fits counts on a lattice with covariates. The rows of the file are `count covariate…`, and the arguments include the
/// size of the lattice. The model consists of a second-order field `kappa (D − A)² + ε I`, an intercept and slopes.
fn field(args: &[String]) {
    let rows = numbers(&args[0]);
    let (height, width): (usize, usize) = (args[1].parse().unwrap(), args[2].parse().unwrap());
    let n = rows.len();
    let k = rows[0].len();
    let laplacian = lattice(height, width, 1.0, 0.01);
    let mut triplets = Vec::new();
    for j in 0..n {
        let (index, values) = laplacian.col(j);
        for (&i, &a) in index.iter().zip(values) {
            let (more, others) = laplacian.col(i);
            for (&l, &b) in more.iter().zip(others) {
                triplets.push((l, j, 0.5 * a * b));
            }
        }
    }
    for l in 0..k {
        triplets.push((n + l, n + l, 1e-3));
    }
    let mut design = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        design.push((i, i, 1.0));
        design.push((i, n, 1.0));
        for (l, x) in row.iter().enumerate().skip(1) {
            design.push((i, n + l, *x));
        }
    }
    let model = LatentModel {
        prior: Structure {
            mean: vec![0.0; n + k],
            covariance: Covariance::Precision(Precision {
                matrix: Sparse::from_triplets(n + k, n + k, &triplets).unwrap(),
                null_space: None,
                log_determinant: None,
            }),
        },
        design: Design::Sparse(Sparse::from_triplets(n, n + k, &design).unwrap()),
        likelihood: Likelihood::poisson(),
        bound: SiteBound::Exact,
        observations: Observations::new(rows.iter().map(|r| r[0]).collect()),
    };
    report(&args[0], &model, &Settings::default());
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("gp") => gp(&args[1..]),
        Some("grid") => grid(&args[1..]),
        Some("glm") => glm(&args[1..]),
        Some("graph") => graph(&args[1..]),
        Some("field") => field(&args[1..]),
        _ => println!("gp | grid | glm | graph | field"),
    }
}
