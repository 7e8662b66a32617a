//! Compares processes over uneven times with dense Gaussian formulas.

use jensen_latent::prior::{Assembled, Field, Spec, Units, assemble};
use jensen_latent::{
    Covariance, Dense, Design, LatentModel, Likelihood, Observations, Precision, Prior, Query,
    SiteBound, predict,
};

use crate::assemble::TestTable;
use crate::common::{close, converged, invert, noise};

/// Uneven times, among them two that are close to each other. They are not multiples of their smallest distance.
const TIMES: [f64; 9] = [0.3, 1.0, 1.0137, 2.7, 3.1, 4.9, 5.0, 8.2, 9.4];
/// New times before, after and between the times, several of them between the same two.
const NEW: [f64; 8] = [3.9, -0.5, 3.5, 1.0, 9.9, 4.5, 12.0, -2.0];

fn assembled(prior: &str, times: &[f64]) -> Assembled {
    let table = TestTable::default().with("t", times);
    let rows: Vec<usize> = (0..times.len()).collect();
    assemble(&Spec::parse(prior).unwrap(), &table, &rows, Units::TABLE)
        .unwrap_or_else(|e| panic!("{prior}: {e}"))
}

fn model(made: &Assembled, likelihood: Likelihood, rows: usize) -> LatentModel {
    LatentModel {
        prior: made.prior().structure(&[]).unwrap(),
        design: made.design(),
        likelihood,
        bound: SiteBound::Exact,
        observations: Observations::new((0..rows).map(|i| (4.0 * noise(i)).floor()).collect()),
    }
}

fn precision(structure: jensen_latent::Structure) -> Precision {
    match structure.covariance {
        Covariance::Precision(q) => q,
        other => panic!("no precision: {other:?}"),
    }
}

fn full(q: &Precision) -> Dense {
    let n = q.matrix.rows;
    let mut out = Dense::zeros(n, n);
    for j in 0..n {
        let (rows, values) = q.matrix.col(j);
        for (i, x) in rows.iter().zip(values) {
            out.data[j * n + i] = *x;
        }
    }
    out
}

/// The weights of old nodes and of independent standard normal variables in each new row.
fn new_rows(made: &Assembled, new: &[f64]) -> Vec<Vec<f64>> {
    let table = TestTable::default().with("t", new);
    let rows: Vec<usize> = (0..new.len()).collect();
    let (query, fresh) = made.query(&[], &table, &rows).unwrap();
    let Query::Rows(Design::Sparse(w)) = query else {
        panic!("not sparse");
    };
    let count = fresh.variables.len();
    let columns = (0..count).map(|k| {
        let unit: Vec<f64> = (0..count).map(|i| f64::from(i == k)).collect();
        fresh.values(&unit)
    });
    let columns: Vec<Vec<f64>> = columns.collect();
    let row = |i: usize| -> Vec<f64> {
        let known = (0..w.cols).map(|j| {
            let (at, values) = w.col(j);
            at.iter().position(|r| *r == i).map_or(0.0, |k| values[k])
        });
        let new = |column: &Vec<f64>| fresh.rows[i].iter().map(|(v, w)| w * column[*v]).sum();
        known.chain(columns.iter().map(new)).collect()
    };
    let all: Vec<Vec<f64>> = (0..new.len()).map(row).collect();
    let own = |row: &Vec<f64>| row[w.cols..].iter().map(|x| x * x).sum::<f64>();
    close(
        "added",
        &fresh.added(),
        &all.iter().map(own).collect::<Vec<_>>(),
        1e-12,
    );
    all
}

/// The covariance of a and b over nodes with this covariance and independent variables.
fn covariance(nodes: &Dense, a: &[f64], b: &[f64]) -> f64 {
    let n = nodes.rows;
    let known: f64 = (0..n)
        .flat_map(|i| (0..n).map(move |j| (i, j)))
        .map(|(i, j)| a[i] * nodes.get(i, j) * b[j])
        .sum();
    known + a[n..].iter().zip(&b[n..]).map(|(x, y)| x * y).sum::<f64>()
}

#[test]
fn an_autoregression_has_its_covariance_at_all_times() {
    let made = assembled("ar1(on=t, step=1, rho=0.7, variance=2)", &TIMES);
    assert!(
        made.notes.iter().any(|n| n.contains("continuous time")),
        "{:?}",
        made.notes
    );
    let q = precision(made.prior().structure(&[]).unwrap());
    let nodes = invert(&full(&q));
    let n = TIMES.len();
    let mut rows: Vec<Vec<f64>> = new_rows(&made, &NEW);
    let width = rows[0].len();
    rows.extend((0..n).map(|i| (0..width).map(|j| f64::from(i == j)).collect()));
    let times: Vec<f64> = NEW.iter().chain(&TIMES).copied().collect();
    for (a, s) in rows.iter().zip(&times) {
        for (b, t) in rows.iter().zip(&times) {
            let expected = 2.0 * 0.7f64.powf((s - t).abs());
            let found = covariance(&nodes, a, b);
            assert!(
                (found - expected).abs() < 1e-10,
                "{s} {t}: {found} {expected}"
            );
        }
    }
}

/// Differences of a first-order walk have variances proportional to the time between them.
#[test]
fn a_first_order_walk_is_brownian_motion_at_all_times() {
    let made = assembled("rw1(on=t, precision=0.8)", &TIMES);
    let unit = (TIMES[8] - TIMES[0]) / 8.0;
    let mut q = full(&precision(made.prior().structure(&[]).unwrap()));
    q.data[0] += 1.0;
    let nodes = invert(&q);
    let rows = new_rows(&made, &NEW);
    for (a, s) in rows.iter().zip(&NEW) {
        for (b, t) in rows.iter().zip(&NEW) {
            let difference: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
            let found = covariance(&nodes, &difference, &difference);
            let expected = (s - t).abs() / unit / 0.8;
            assert!(
                (found - expected).abs() < 1e-9,
                "{s} {t}: {found} {expected}"
            );
        }
    }
}

/// The exponential kernel is the same process, so that fits and predictions agree.
#[test]
fn an_autoregression_is_the_process_with_the_exponential_kernel() {
    let times: Vec<f64> = (0..60).map(|i| 30.0 * noise(i)).collect();
    let lengthscale = -1.0 / 0.7f64.ln();
    let kernel = format!("gp(matern12, on=t, lengthscale={lengthscale}, variance=2)");
    let sparse = assembled("ar1(on=t, step=1, rho=0.7, variance=2)", &times);
    let dense = assembled(&kernel, &times);
    let new = TestTable::default().with("t", &NEW);
    let rows: Vec<usize> = (0..NEW.len()).collect();
    for likelihood in [Likelihood::gaussian(0.3), Likelihood::poisson()] {
        let predicted = |made: &Assembled| {
            let model = model(made, likelihood, times.len());
            let fit = converged(&model);
            let (query, fresh) = made.query(&[], &new, &rows).unwrap();
            let found = predict(&model, &fit.warm(), &query).unwrap();
            let total = found.iter().zip(fresh.added());
            let (mean, variance): (Vec<f64>, Vec<f64>) =
                total.map(|((m, v), added)| (*m, v + added)).unzip();
            (
                fit.bound,
                fit.predictor_mean,
                fit.predictor_variance,
                mean,
                variance,
            )
        };
        let (a, b) = (predicted(&sparse), predicted(&dense));
        close("bound", &[a.0], &[b.0], 1e-6);
        close("mean", &a.1, &b.1, 1e-6);
        close("variance", &a.2, &b.2, 1e-6);
        close("new mean", &a.3, &b.3, 1e-6);
        close("new variance", &a.4, &b.4, 1e-6);
    }
}

/// Compares the posterior of walks with a flat level (and slope) with the dense solution (K⁻¹ + R)⁻¹.
#[test]
fn walks_have_the_posterior_of_the_dense_solution() {
    let n = TIMES.len();
    let d: Vec<f64> = TIMES.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = d.iter().sum::<f64>() / d.len() as f64;
    let d: Vec<f64> = d.iter().map(|d| d / mean).collect();
    for (prior, order) in [("rw1(on=t, precision=3)", 1), ("rw2(on=t, precision=3)", 2)] {
        // Each row of the differences has a variance.
        let differences: Vec<(Vec<(usize, f64)>, f64)> = match order {
            1 => (0..n - 1)
                .map(|i| (vec![(i, -1.0), (i + 1, 1.0)], d[i]))
                .collect(),
            _ => (0..n - 2)
                .map(|i| {
                    let (a, b) = (1.0 / d[i], 1.0 / d[i + 1]);
                    let row = vec![(i, a), (i + 1, -a - b), (i + 2, b)];
                    (row, 0.5 * (d[i] + d[i + 1]))
                })
                .collect(),
        };
        let mut posterior = Dense::from_fn(n, n, |i, j| f64::from(i == j) / 0.5);
        for (row, variance) in &differences {
            for (i, a) in row {
                for (j, b) in row {
                    posterior.data[j * n + i] += 3.0 * a * b / variance;
                }
            }
        }
        let covariance = invert(&posterior);
        let made = assembled(prior, &TIMES);
        let model = model(&made, Likelihood::gaussian(0.5), n);
        let fit = converged(&model);
        let mean: Vec<f64> = (0..n)
            .map(|i| {
                let each = (0..n).map(|j| covariance.get(i, j) * model.observations.response[j]);
                each.sum::<f64>() / 0.5
            })
            .collect();
        let variance: Vec<f64> = (0..n).map(|i| covariance.get(i, i)).collect();
        close("mean", &fit.mean, &mean, 1e-8);
        close("variance", &fit.variance, &variance, 1e-8);
    }
}

/// On evenly spaced nodes, processes in continuous time are the usual ones.
#[test]
fn even_times_are_the_usual_case() {
    let gaps = vec![1.0; 11];
    let pairs = [
        (
            Field::ornstein(gaps.clone(), None, None),
            Field::ar1(12, None, None),
            vec![0.6, 1.7],
        ),
        (
            Field::rw1_over(&gaps, None),
            Field::laplace(&path(12), None),
            vec![2.5],
        ),
    ];
    for (uneven, even, theta) in pairs {
        let [a, b] = [uneven, even].map(|f| precision(f.unwrap().structure(&theta).unwrap()));
        close("entries", &full(&a).data, &full(&b).data, 1e-10);
        close(
            "determinant",
            &[a.log_determinant.unwrap()],
            &[b.log_determinant.unwrap()],
            1e-10,
        );
    }
    // Rows of a lattice with gaps keep its nodes, and values on a longer lattice do not.
    let lattice = assembled("rw1(on=t)", &[0.0, 0.5, 1.0, 3.0]);
    assert_eq!(lattice.prior().structure(&[1.0]).unwrap().len(), 7);
    assert!(lattice.notes.is_empty());
    let sparse = assembled("rw1(on=t)", &[0.0, 1.0, 1e7]);
    assert_eq!(sparse.prior().structure(&[1.0]).unwrap().len(), 3);
    // With second differences, close values share nodes.
    let close_values = assembled("rw2(on=t)", &[0.0, 1.0, 1.00001, 2.5, 4.0]);
    assert_eq!(close_values.prior().structure(&[1.0]).unwrap().len(), 4);
    // The ends add nodes.
    let longer = assembled("rw2(on=t, from=-3, to=7)", &[0.0, 1.0, 2.3, 4.0]);
    assert!(longer.prior().structure(&[1.0]).unwrap().len() >= 8);
}

fn path(nodes: usize) -> jensen_latent::prior::Graph {
    jensen_latent::prior::Graph::path(nodes, false)
}

#[test]
fn times_that_do_not_fit_are_refused() {
    let refused = |prior: &str| {
        let table = TestTable::default().with("t", &TIMES);
        let rows: Vec<usize> = (0..TIMES.len()).collect();
        let made = assemble(&Spec::parse(prior).unwrap(), &table, &rows, Units::TABLE);
        made.err()
            .unwrap_or_else(|| panic!("{prior} is taken"))
            .to_string()
    };
    for (prior, message) in [
        ("ar1(on=t, rho=-0.3)", "`rho` must be between 0 and 1"),
        ("rw1(on=t, cyclic)", "round the column"),
        ("rw2(on=t, to=3)", "outside the nodes from 0.3 to 3"),
        ("ar1(on=t, step=-1)", "set `from`, `to` and `step`"),
    ] {
        let found = refused(prior);
        assert!(found.contains(message), "{prior}: {found}");
    }
    // A second-order walk has no rows beyond its nodes.
    let made = assembled("rw2(on=t)", &TIMES);
    let new = TestTable::default().with("t", &[11.0]);
    let error = made.query(&[1.0], &new, &[0]).unwrap_err().to_string();
    assert!(
        error.contains("outside the nodes from 0.3 to 9.4"),
        "{error}"
    );
}
