//! Compares thin-plate regression splines with penalised least squares.

use jensen_latent::prior::{Assembled, Spec, Units, assemble};
use jensen_latent::{
    Covariance, Dense, Design, LatentModel, Likelihood, Observations, SiteBound, predict,
};

use crate::assemble::TestTable;
use crate::common::{close, converged, invert, noise};

const NAMES: [&str; 3] = ["a", "b", "c"];

fn points(n: usize, d: usize) -> Vec<Vec<f64>> {
    (0..d)
        .map(|c| {
            (0..n)
                .map(|i| 4.0 * noise(5 * i * (c + 1) + 31 * c))
                .collect()
        })
        .collect()
}

fn table(columns: &[Vec<f64>]) -> TestTable {
    let named = NAMES.into_iter().zip(columns);
    named.fold(TestTable::default(), |table, (name, column)| {
        table.with(name, column)
    })
}

fn made(prior: &str, table: &TestTable, count: usize) -> Result<Assembled, String> {
    let rows: Vec<usize> = (0..count).collect();
    let spec = Spec::parse(prior).unwrap();
    assemble(&spec, table, &rows, Units::TABLE).map_err(|e| e.to_string())
}

fn named(d: usize) -> String {
    NAMES[..d].join(", ")
}

fn model(made: &Assembled, precision: f64, variance: f64, y: &[f64]) -> LatentModel {
    LatentModel {
        prior: made.prior().structure(&[precision]).unwrap(),
        design: made.design(),
        likelihood: Likelihood::gaussian(variance),
        bound: SiteBound::Exact,
        observations: Observations::new(y.to_vec()),
    }
}

/// The function η of the thin-plate spline whose penalty is the integral of squared second derivatives.
fn eta(d: usize, r: f64) -> f64 {
    let pi = std::f64::consts::PI;
    match d {
        1 => r.powi(3) / 12.0,
        2 if r == 0.0 => 0.0,
        2 => r * r * r.ln() / (8.0 * pi),
        _ => -r / (8.0 * pi),
    }
}

fn distance(columns: &[Vec<f64>], i: usize, j: usize) -> f64 {
    let squares = columns.iter().map(|x| (x[i] - x[j]).powi(2));
    squares.sum::<f64>().sqrt()
}

fn product(a: &Dense, b: &Dense) -> Dense {
    Dense::from_fn(a.rows, b.cols, |i, j| {
        (0..a.cols).map(|k| a.get(i, k) * b.get(k, j)).sum()
    })
}

/// The design as a dense matrix, and whether each function is penalised.
fn functions(made: &Assembled) -> (Dense, Vec<bool>) {
    let structure = made.prior().structure(&[1.0]).unwrap();
    let Covariance::Precision(q) = &structure.covariance else {
        panic!("no precision");
    };
    let penalised = (0..q.matrix.cols).map(|j| q.matrix.col(j).1.iter().any(|x| *x > 0.0));
    let Design::Sparse(w) = made.design() else {
        panic!("not sparse");
    };
    let mut dense = Dense::zeros(w.rows, w.cols);
    for j in 0..w.cols {
        let (rows, values) = w.col(j);
        for (i, x) in rows.iter().zip(values) {
            dense.data[j * w.rows + i] = *x;
        }
    }
    (dense, penalised.collect())
}

/// With as many functions as points, contrasts of the smooth that vanish for linear functions have the covariance E times a
/// constant, and the posterior mean is the smoothing spline: y = (E + λ I) δ + T α with Tᵀ δ = 0.
#[test]
fn all_functions_are_the_smoothing_spline() {
    let n = 24;
    for d in 1..=3 {
        let columns = points(n, d);
        let prior = format!("tp(on=({}), basis={n})", named(d));
        let found = made(&prior, &table(&columns), n).unwrap();
        let names: Vec<String> = found.settings().into_iter().map(|s| s.name).collect();
        assert_eq!(names, ["tp.precision"]);
        let t = Dense::from_fn(
            n,
            d + 1,
            |i, c| if c == 0 { 1.0 } else { columns[c - 1][i] },
        );
        let transposed = Dense::from_fn(d + 1, n, |i, j| t.get(j, i));
        let hat = product(
            &t,
            &product(&invert(&product(&transposed, &t)), &transposed),
        );
        let left = Dense::from_fn(n, n, |i, j| f64::from(i == j) - hat.get(i, j));
        let e = Dense::from_fn(n, n, |i, j| eta(d, distance(&columns, i, j)));
        let (w, penalised) = functions(&found);
        let covariance = Dense::from_fn(n, n, |i, j| {
            (0..w.cols)
                .filter(|k| penalised[*k])
                .map(|k| w.get(i, k) * w.get(j, k))
                .sum()
        });
        let contrasts = |matrix: &Dense| product(&left, &product(matrix, &left));
        let (own, direct) = (contrasts(&covariance), contrasts(&e));
        let trace = |matrix: &Dense| (0..n).map(|i| matrix.get(i, i)).sum::<f64>();
        let ratio = trace(&own) / trace(&direct);
        let scaled: Vec<f64> = direct.data.iter().map(|x| ratio * x).collect();
        close("contrasts", &own.data, &scaled, 1e-8);
        // The typical variance of the penalised functions is 1.
        let typical: f64 = (0..n).map(|i| covariance.get(i, i).ln()).sum::<f64>() / n as f64;
        assert!(typical.abs() < 1e-8, "{typical}");
        let y: Vec<f64> = (0..n)
            .map(|i| (columns[0][i] + columns[d - 1][i]).sin() + 0.2 * noise(9 * i))
            .collect();
        let (precision, variance) = (0.8, 0.05);
        let fit = converged(&model(&found, precision, variance, &y));
        let lambda = variance * precision / ratio;
        let system = Dense::from_fn(n + d + 1, n + d + 1, |i, j| match (i < n, j < n) {
            (true, true) => e.get(i, j) + if i == j { lambda } else { 0.0 },
            (true, false) => t.get(i, j - n),
            (false, true) => t.get(j, i - n),
            (false, false) => 0.0,
        });
        let inverse = invert(&system);
        // The fitted values are y − λ δ.
        let expected: Vec<f64> = (0..n)
            .map(|i| {
                let delta: f64 = (0..n).map(|j| inverse.get(i, j) * y[j]).sum();
                y[i] - lambda * delta
            })
            .collect();
        close("mean", &fit.predictor_mean, &expected, 1e-6);
        // At new points.
        let new = points(5, d)
            .iter()
            .map(|x| x.iter().map(|x| 0.9 * x + 0.3).collect())
            .collect::<Vec<Vec<f64>>>();
        let (query, _) = found
            .query(&[precision], &table(&new), &[0, 1, 2, 3, 4])
            .unwrap();
        let at = model(&found, precision, variance, &y);
        let found = predict(&at, &fit.warm(), &query).unwrap();
        let solved: Vec<f64> = (0..n + d + 1)
            .map(|i| (0..n).map(|j| inverse.get(i, j) * y[j]).sum())
            .collect();
        for (k, (mean, _)) in found.iter().enumerate() {
            let radial: f64 = (0..n)
                .map(|j| {
                    let squares = (0..d).map(|c| (new[c][k] - columns[c][j]).powi(2));
                    solved[j] * eta(d, squares.sum::<f64>().sqrt())
                })
                .sum();
            let linear: f64 = (0..d).map(|c| solved[n + 1 + c] * new[c][k]).sum();
            let expected = radial + solved[n] + linear;
            assert!(
                (mean - expected).abs() < 1e-6 * (1.0 + expected.abs()),
                "{d}: {mean} {expected}"
            );
        }
    }
}

/// A few functions follow a smooth surface, and linear functions are not penalised.
#[test]
fn few_functions_follow_smooth_surfaces() {
    let n = 150;
    let columns = points(n, 2);
    let table = table(&columns);
    let found = made("tp(on=(a, b), basis=30)", &table, n).unwrap();
    let surface = |i: usize| (columns[0][i] / 1.5).sin() * (columns[1][i] / 2.0).cos();
    let y: Vec<f64> = (0..n).map(surface).collect();
    let fit = converged(&model(&found, 1.0, 0.01, &y));
    let error: f64 = (fit.predictor_mean.iter().zip(&y))
        .map(|(a, b)| (a - b) * (a - b))
        .sum();
    let spread: f64 = y.iter().map(|x| x * x).sum();
    assert!(error < 2e-3 * spread, "{error} {spread}");
    let plane: Vec<f64> = (0..n)
        .map(|i| 3.0 - columns[0][i] + 0.5 * columns[1][i])
        .collect();
    let fit = converged(&model(&found, 1e6, 1.0, &plane));
    close("plane", &fit.predictor_mean, &plane, 1e-6);
    crate::prior::check_gradient(found.prior(), &[0.7]);
}

/// Beside an intercept, the level of the smooth is constrained, which does not change the predictors.
#[test]
fn smooths_stand_beside_a_level() {
    let n = 30;
    let table = table(&points(n, 2));
    let y: Vec<f64> = (0..n).map(|i| 2.0 + noise(3 * i)).collect();
    let alone = made("tp(on=(a, b), basis=12)", &table, n).unwrap();
    let beside = made(
        "intercept(variance=1e6) + tp(on=(a, b), basis=12)",
        &table,
        n,
    )
    .unwrap();
    assert_eq!(beside.notes.len(), 1, "{:?}", beside.notes);
    let fits = [&alone, &beside].map(|made| converged(&model(made, 0.7, 0.1, &y)));
    close(
        "mean",
        &fits[0].predictor_mean,
        &fits[1].predictor_mean,
        1e-4,
    );
}

/// More points than the limit are represented by some of them.
#[test]
fn many_points_are_represented_by_some() {
    let n = 1100;
    let columns = points(n, 1);
    let found = made("tp(on=a, basis=8)", &table(&columns), n).unwrap();
    assert!(
        found.notes[0].contains("1000 of the 1100 distinct points"),
        "{:?}",
        found.notes
    );
    let y: Vec<f64> = columns[0].iter().map(|x| x.sin()).collect();
    let fit = converged(&model(&found, 0.1, 0.01, &y));
    close("curve", &fit.predictor_mean, &y, 0.05);
}

#[test]
fn mistakes_of_smooths_name_the_way_out() {
    let line: Vec<f64> = (0..20).map(f64::from).collect();
    let double: Vec<f64> = line.iter().map(|x| 2.0 * x + 1.0).collect();
    let table = TestTable::default()
        .with("a", &line)
        .with("b", &double)
        .with("c", &[1.0; 20]);
    for (prior, message) in [
        ("tp(on=(a, b, c, d))", "`tp` needs one to three columns"),
        ("tp()", "`tp` needs one to three columns"),
        ("tp(on=(a, b))", "on a line or in a plane"),
        ("tp(on=c)", "all its points are equal"),
        (
            "tp(on=a, basis=2)",
            "between 3 and the number of distinct points, 20",
        ),
        (
            "tp(on=a, basis=21)",
            "between 3 and the number of distinct points, 20",
        ),
    ] {
        let error = made(prior, &table, 20).err().unwrap();
        assert!(error.contains(message), "{prior}: {error}");
    }
}
