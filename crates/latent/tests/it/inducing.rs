//! Compares processes with inducing points with dense processes, with the formula of their bound, and with finite
//! differences.

use jensen_latent::prior::{Assembled, Rows, Spec, Units, assemble};
use jensen_latent::{
    Dense, Design, Error, Fit, LatentModel, LearnSettings, Likelihood, Observations, Parameter,
    Prior, Query, Sensitivity, SiteBound, Structure, draw, learn, leave_one_out, predict,
};
use jensen_run::{Budget, Control, Silent};

use crate::assemble::TestTable;
use crate::common::{close, converged, identity, invert, noise};

const VARIANCE: f64 = 0.3;

fn table(n: usize, from: usize) -> TestTable {
    let column =
        |k: usize| -> Vec<f64> { (from..from + n).map(|i| 4.0 * noise(3 * i + k)).collect() };
    let groups: Vec<f64> = (0..n).map(|i| (i % 4) as f64).collect();
    TestTable::default()
        .with("x", &column(0))
        .with("z", &column(1))
        .with("b", &column(2))
        .with("g", &groups)
}

fn made_on(prior: &str, table: &TestTable, n: usize) -> Result<Assembled, String> {
    let rows: Vec<usize> = (0..n).collect();
    assemble(&Spec::parse(prior).unwrap(), table, &rows, Units::TABLE).map_err(|e| e.to_string())
}

fn made(prior: &str, n: usize) -> Assembled {
    made_on(prior, &table(n, 0), n).unwrap()
}

fn response(likelihood: Likelihood, n: usize) -> Vec<f64> {
    let smooth = |i: usize| (4.0 * noise(3 * i)).sin() + 0.3 * (noise(7 * i + 2) - 0.5);
    let of = |i: usize| match likelihood.name() {
        "gaussian" => smooth(i),
        "poisson" => (2.0 + 2.0 * smooth(i)).max(0.0).round(),
        _ => f64::from(smooth(i) > 0.2),
    };
    (0..n).map(of).collect()
}

fn model(made: &Assembled, theta: &[f64], likelihood: Likelihood, n: usize) -> LatentModel {
    LatentModel {
        prior: made.prior().structure(theta).unwrap(),
        design: made.prior().design(theta, &made.design()).unwrap(),
        likelihood,
        bound: SiteBound::Exact,
        observations: Observations::new(response(likelihood, n)),
    }
}

fn fitted(
    prior: &str,
    theta: &[f64],
    likelihood: Likelihood,
    n: usize,
) -> (Assembled, LatentModel, Fit) {
    let made = made(prior, n);
    let model = model(&made, theta, likelihood, n);
    let fit = converged(&model);
    (made, model, fit)
}

/// With an inducing point at every row, the process is the dense process.
#[test]
fn points_at_all_rows_are_the_process() {
    let n = 40;
    for likelihood in [
        Likelihood::gaussian(VARIANCE),
        Likelihood::poisson(),
        Likelihood::bernoulli(),
    ] {
        let theta = [1.3, 0.8];
        let (dense, dense_model, exact) = fitted("gp(matern32, on=(x, z))", &theta, likelihood, n);
        let (sparse, sparse_model, own) =
            fitted("svgp(matern32, on=(x, z))", &theta, likelihood, n);
        let name = likelihood.name();
        close(name, &[own.bound], &[exact.bound], 1e-5);
        close(name, &own.predictor_mean, &exact.predictor_mean, 1e-5);
        close(
            name,
            &own.predictor_variance,
            &exact.predictor_variance,
            1e-4,
        );
        let others = |model: &LatentModel, fit: &Fit| leave_one_out(model, fit).unwrap();
        close(
            name,
            &others(&sparse_model, &own),
            &others(&dense_model, &exact),
            1e-4,
        );
        let elsewhere = table(5, 1000);
        let rows: Vec<usize> = (0..5).collect();
        let [found, expected] = [
            (&sparse, &sparse_model, &own),
            (&dense, &dense_model, &exact),
        ]
        .map(|(made, model, fit)| {
            let (query, _) = made.query(&theta, &elsewhere, &rows).unwrap();
            predict(model, &fit.warm(), &query).unwrap()
        });
        for ((mean, variance), (exact_mean, exact_variance)) in found.into_iter().zip(expected) {
            close(name, &[mean, variance], &[exact_mean, exact_variance], 1e-4);
        }
    }
}

/// The bound is log N(y | 0, Q + variance I) − tr(K − Q)/(2 variance) (Titsias 2009, equation 9), it does not exceed the
/// evidence, and it rises with the number of points.
#[test]
fn the_bound_is_that_of_titsias() {
    let (n, theta) = (60, [0.9, 0.7]);
    let likelihood = Likelihood::gaussian(VARIANCE);
    let (_, dense, exact) = fitted("gp(rbf, on=(x, z))", &theta, likelihood, n);
    let jensen_latent::Covariance::Dense(k) = &dense.prior.covariance else {
        panic!("a process has a covariance");
    };
    let design = |text: &str| match model(&made(text, n), &theta, likelihood, n).design {
        Design::Projected(w, residuals) => (w, residuals),
        other => panic!("{other:?}"),
    };
    let mut before = f64::NEG_INFINITY;
    for points in [2, 5, 12, 25, 40] {
        let text = format!("svgp(rbf, on=(x, z), inducing={points})");
        let (_, _, own) = fitted(&text, &theta, likelihood, n);
        let (w, residuals) = design(&text);
        assert_eq!(w.cols, points);
        let q = Dense::from_fn(n, n, |i, j| {
            (0..points).map(|l| w.get(i, l) * w.get(j, l)).sum()
        });
        close(
            "residuals",
            &residuals,
            &(0..n)
                .map(|i| k.get(i, i) - q.get(i, i))
                .collect::<Vec<_>>(),
            1e-9,
        );
        let noisy = Dense::from_fn(n, n, |i, j| {
            q.get(i, j) + if i == j { VARIANCE } else { 0.0 }
        });
        let y = response(likelihood, n);
        let inverse = invert(&noisy);
        let square: f64 = (0..n)
            .flat_map(|i| (0..n).map(move |j| (i, j)))
            .map(|(i, j)| y[i] * y[j] * inverse.get(i, j))
            .sum();
        let log_determinant = log_determinant(&noisy);
        let trace: f64 = residuals.iter().sum();
        let expected = -0.5
            * (square
                + log_determinant
                + n as f64 * (2.0 * std::f64::consts::PI).ln()
                + trace / VARIANCE);
        close("bound", &[own.bound], &[expected], 1e-9);
        assert!(own.bound < exact.bound + 1e-9);
        assert!(
            own.bound > before,
            "{points} points: {} after {before}",
            own.bound
        );
        before = own.bound;
    }
    assert!(exact.bound - before < 0.5, "{} and {before}", exact.bound);
}

fn log_determinant(a: &Dense) -> f64 {
    // The pivots of Gaussian elimination.
    let (n, mut work) = (a.rows, a.clone());
    let mut sum = 0.0;
    for k in 0..n {
        let pivot = work.get(k, k);
        sum += pivot.ln();
        for i in k + 1..n {
            let factor = work.get(i, k) / pivot;
            for j in k..n {
                work.data[j * n + i] -= factor * work.get(k, j);
            }
        }
    }
    sum
}

#[test]
fn derivatives_are_differences_of_bounds() {
    let n = 50;
    for (prior, theta) in [
        ("svgp(matern52, on=(x, z), inducing=7)", vec![1.4, 0.9]),
        ("svgp(rbf, ard, on=(x, z), inducing=9)", vec![1.4, 0.9, 1.7]),
        ("svgp(matern32, on=x, by=b, inducing=6)", vec![1.4, 0.9]),
        (
            "intercept() + svgp(matern12, on=x, inducing=6) + iid(on=g) + svgp(rbf, on=z, inducing=4)",
            vec![0.8, 1.1, 0.5, 1.2, 0.6],
        ),
    ] {
        for likelihood in [Likelihood::gaussian(VARIANCE), Likelihood::bernoulli()] {
            let (made, model_at, fit) = fitted(prior, &theta, likelihood, n);
            let sensitivity = fit.sensitivity.as_ref().unwrap();
            let found = made.prior().gradient(&theta, &model_at.prior, sensitivity);
            assert_eq!(found.len(), theta.len(), "{prior}");
            for (k, own) in found.iter().enumerate() {
                let step = 1e-4 * theta[k];
                let [up, down] = [step, -step].map(|step| {
                    let mut moved = theta.clone();
                    moved[k] += step;
                    converged(&model(&made, &moved, likelihood, n)).bound
                });
                let expected = (up - down) / (2.0 * step);
                assert!(
                    (own - expected).abs() < 1e-4 * (1.0 + expected.abs()),
                    "{prior}, {}, hyperparameter {k}: {own} and {expected}",
                    likelihood.name()
                );
            }
        }
    }
}

/// Draws have the predicted variances, and so have their differences: residuals of close rows are correlated.
#[test]
fn draws_contain_the_residuals() {
    let (n, theta) = (40, [1.2, 0.5]);
    let (made, model, fit) = fitted(
        "svgp(matern32, on=(x, z), inducing=5)",
        &theta,
        Likelihood::gaussian(VARIANCE),
        n,
    );
    let elsewhere = TestTable::default()
        .with("x", &[1.0, 1.1, 3.9])
        .with("z", &[2.0, 2.1, 0.1]);
    let rows = [0, 1, 2];
    let (query, _) = made.query(&theta, &elsewhere, &rows).unwrap();
    let joint = made.joint(&theta, &elsewhere, &rows).unwrap();
    let draws = 20_000;
    let numbers: Vec<u64> = (0..draws).collect();
    let all = draw(&model, &fit.warm(), &query, joint.as_ref(), &numbers, 5).unwrap();
    let variance = |of: &dyn Fn(&[f64]) -> f64| {
        let values: Vec<f64> = all.chunks(3).map(of).collect();
        let mean = values.iter().sum::<f64>() / draws as f64;
        values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws as f64
    };
    for (i, (_, expected)) in predict(&model, &fit.warm(), &query)
        .unwrap()
        .into_iter()
        .enumerate()
    {
        let found = variance(&|row| row[i]);
        // Four standard errors of a variance of 20 000 draws.
        assert!(
            (found / expected - 1.0).abs() < 0.04,
            "row {i}: {found} and {expected}"
        );
    }
    // The difference of two close rows: from the latent variables and from the residuals.
    let Query::Rows(Design::Projected(w, _)) = &query else {
        panic!("rows of a projection");
    };
    let apart = Query::Rows(Design::Dense(
        Dense::from_fn(1, w.cols, |_, l| w.get(0, l) - w.get(1, l)).into(),
    ));
    let joint = joint.unwrap();
    let residual = joint.get(0, 0) + joint.get(1, 1) - 2.0 * joint.get(0, 1);
    let expected = predict(&model, &fit.warm(), &apart).unwrap()[0].1 + residual;
    let found = variance(&|row| row[0] - row[1]);
    assert!(
        (found / expected - 1.0).abs() < 0.04,
        "{found} and {expected}"
    );
    assert!(
        joint.get(0, 1) > 0.5 * joint.get(0, 0),
        "the rows are close"
    );
    assert!(draw(&model, &fit.warm(), &query, None, &numbers, 5).is_err());
}

#[test]
fn units_of_columns_change_nothing() {
    let n = 60;
    let moved =
        |from: &[f64], a: f64, b: f64| -> Vec<f64> { from.iter().map(|x| a + b * x).collect() };
    let x: Vec<f64> = (0..n).map(|i| 4.0 * noise(3 * i)).collect();
    let z: Vec<f64> = (0..n).map(|i| 4.0 * noise(3 * i + 1)).collect();
    let plain = TestTable::default().with("x", &x).with("z", &z);
    let other = TestTable::default()
        .with("x", &moved(&x, 1e5, 1e-3))
        .with("z", &moved(&z, -7.0, 1e4));
    let units = Units {
        response: 1.0,
        scaled: true,
        centred: true,
    };
    let rows: Vec<usize> = (0..n).collect();
    let bounds = [plain, other].map(|table| {
        let spec = Spec::parse("svgp(matern32, ard, on=(x, z), inducing=10)").unwrap();
        let made = assemble(&spec, &table, &rows, units).unwrap();
        let theta: Vec<f64> = made.prior().parameters().iter().map(|p| p.start).collect();
        converged(&model(&made, &theta, Likelihood::gaussian(VARIANCE), n)).bound
    });
    close("bound", &[bounds[1]], &[bounds[0]], 1e-6);
}

#[test]
fn mistakes_name_the_way_out() {
    let n = 20;
    for (prior, message) in [
        (
            "svgp(linear, on=x)",
            "choose one of rbf, matern12, matern32, matern52",
        ),
        ("svgp(rbf, on=x, inducing=9000)", "more than 5000"),
        ("svgp(rbf, on=x) + rw2(on=z)", "use `hsgp`"),
        ("svgp(rbf, on=x) + gp(rbf, on=z)", "has inducing points"),
    ] {
        let error = made_on(prior, &table(n, 0), n).err().unwrap();
        assert!(error.contains(message), "{prior}: {error}");
    }
    // Rows that repeat a point need only one inducing point.
    let repeated = TestTable::default().with("x", &[1.0, 2.0, 1.0, 2.0, 3.0, 1.0]);
    let few = made_on("svgp(rbf, on=x)", &repeated, 6).unwrap();
    assert_eq!(few.latents(), 3);
}

/// The estimated error of few points is of the size of the difference from the dense process, and vanishes with many points.
#[test]
fn few_points_show_their_error() {
    let n = 200;
    for likelihood in [Likelihood::gaussian(VARIANCE), Likelihood::poisson()] {
        let theta = [1.2, 0.6];
        let (_, _, exact) = fitted("gp(matern32, on=(x, z))", &theta, likelihood, n);
        for points in [6, 12, 25, 160] {
            let text = format!("svgp(matern32, on=(x, z), inducing={points})");
            let (made, model, own) = fitted(&text, &theta, likelihood, n);
            let found = made
                .inducing_error(
                    &theta,
                    &model.design,
                    Rows {
                        alpha: &own.alpha,
                        lambda: &own.lambda,
                        variance: &own.predictor_variance,
                    },
                )
                .unwrap()
                .unwrap();
            let mean = |of: &dyn Fn(usize) -> f64| (0..n).map(of).sum::<f64>() / n as f64;
            let ratio = mean(&|i| (own.predictor_variance[i] / exact.predictor_variance[i]).sqrt());
            let moved = mean(&|i| {
                (own.predictor_mean[i] - exact.predictor_mean[i]).powi(2)
                    / own.predictor_variance[i]
            })
            .sqrt();
            let told = format!("{points} points: {found:?}, exact {ratio} and {moved}");
            let trusted = found.mean <= 0.1 && found.sd_ratio <= 1.1;
            assert!(points != 6 || !trusted, "{told}");
            assert!(points != 160 || trusted, "{told}");
            assert!(!trusted || (ratio < 1.15 && moved < 0.15), "{told}");
            assert!(found.mean < 2.0 * moved + 0.01, "{told}");
            assert!(
                moved < 4.0 * found.mean + 0.01 || found.sd_ratio > 1.5,
                "{told}"
            );
            assert!(found.sd_ratio < 1.05 * ratio, "{told}");
        }
    }
}

/// A prior whose searches have no stage with fewer rows.
struct Whole<'a>(&'a dyn Prior);

impl Prior for Whole<'_> {
    fn parameters(&self) -> Vec<Parameter> {
        self.0.parameters()
    }

    fn structure(&self, theta: &[f64]) -> Result<Structure, Error> {
        self.0.structure(theta)
    }

    fn design(&self, theta: &[f64], design: &Design) -> Result<Design, Error> {
        self.0.design(theta, design)
    }

    fn gradient(&self, theta: &[f64], at: &Structure, sensitivity: &Sensitivity) -> Vec<f64> {
        self.0.gradient(theta, at, sensitivity)
    }
}

/// Searches that begin with an eighth of the rows end at the same maximum, and together they take fewer steps with all
/// rows.
#[test]
fn a_search_that_begins_with_fewer_rows_is_shorter() {
    let n = 3200;
    let mut steps = [0, 0];
    for (likelihood, by) in [
        (Likelihood::gaussian(0.1), ""),
        (Likelihood::poisson(), ""),
        (Likelihood::gaussian(0.1), ", by=b"),
    ] {
        let text = format!("intercept() + svgp(rbf, ard, on=(x, z), inducing=12{by})");
        let made = made(&text, n);
        let start: Vec<f64> = made.prior().parameters().iter().map(|p| p.start).collect();
        let model = model(&made, &start, likelihood, n);
        let search = |prior: &dyn Prior| {
            let clock = || 0.0;
            let mut silent = Silent;
            let mut control = Control::new(Budget::iterations(100), &clock, &mut silent);
            learn(
                prior,
                &model,
                &LearnSettings::default(),
                &identity(),
                &mut control,
            )
            .unwrap()
        };
        let [short, whole] = [made.prior(), &Whole(made.prior())].map(search);
        assert!(short.status.is_converged() && whole.status.is_converged());
        close("bound", &[short.fit.bound], &[whole.fit.bound], 1e-5);
        steps[0] += short.iterations;
        steps[1] += whole.iterations;
    }
    assert!(steps[0] < steps[1], "{steps:?}");
}
