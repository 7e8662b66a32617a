//! Compares Matérn processes as Markov chains with the same processes as covariance matrices.

use jensen_latent::prior::{
    Assembled, Factor, GaussianProcess, Setting, Shape, Spec, States, Units, assemble,
};
use jensen_latent::{
    Dense, Design, Fit, LatentModel, Likelihood, Observations, Prior, SiteBound, draw, predict,
};

use crate::assemble::TestTable;
use crate::common::{close, converged, noise, response};

const SHAPES: [Shape; 2] = [Shape::Matern32, Shape::Matern52];

/// Irregular times. Three of them are nearly equal, and two pairs are equal.
fn times() -> Vec<f64> {
    let mut times: Vec<f64> = (0..60).map(|i| 9.0 * noise(i) - 2.0).collect();
    times[11] = times[7] + 1e-9;
    times[13] = times[7] + 3e-5;
    times[20] = times[4];
    times[33] = times[4];
    times
}

fn settings() -> [Setting; 2] {
    ["variance", "lengthscale"].map(|name| Setting::positive(name, None, 1.0))
}

/// Returns the model of a process as a chain and as a covariance matrix.
fn pair(shape: Shape, theta: &[f64], likelihood: Likelihood) -> (States, [LatentModel; 2]) {
    let times = times();
    let mut distinct = times.clone();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    let at: Vec<usize> = (times.iter())
        .map(|t| distinct.partition_point(|d| d < t))
        .collect();
    let [variance, lengthscale] = settings();
    let dense = GaussianProcess::new(vec![vec![Factor {
        shape,
        variance: Some(variance.clone()),
        lengthscales: vec![lengthscale.clone()],
        points: Dense::from_fn(distinct.len(), 1, |i, _| distinct[i]),
    }]])
    .unwrap();
    let chain = States::new(shape, distinct, variance, lengthscale).unwrap();
    let size = if shape == Shape::Matern32 { 2 } else { 3 };
    let own = at.iter().map(|node| node * size).collect();
    let model = |prior: &dyn Prior, design| LatentModel {
        prior: prior.structure(theta).unwrap(),
        design: Design::Select(design),
        likelihood,
        bound: likelihood.bounds()[0],
        observations: Observations::new((0..60).map(|i| response(likelihood, i)).collect()),
    };
    let models = [model(&chain, own), model(&dense, at)];
    (chain, models)
}

#[test]
fn a_chain_is_the_process() {
    let likelihoods = [
        Likelihood::gaussian(0.3),
        Likelihood::poisson(),
        Likelihood::bernoulli(),
        Likelihood::student_t(4.0, 0.3),
    ];
    for shape in SHAPES {
        for likelihood in likelihoods {
            for theta in [[1.7, 0.8], [30.0, 25.0], [0.4, 0.02]] {
                let (_, models) = pair(shape, &theta, likelihood);
                let [a, b] = models.map(|model| converged(&model));
                let what = format!("{shape:?} {} {theta:?}", likelihood.name());
                close(&what, &[a.bound], &[b.bound], 1e-6);
                close(&what, &a.predictor_mean, &b.predictor_mean, 1e-6);
                let sd = |fit: &Fit| -> Vec<f64> {
                    fit.predictor_variance.iter().map(|v| v.sqrt()).collect()
                };
                close(&what, &sd(&a), &sd(&b), 1e-6);
            }
        }
    }
}

/// Hyperparameters have the derivatives of the dense process, and those of differences of the bound.
#[test]
fn derivatives_are_those_of_differences() {
    for shape in SHAPES {
        for likelihood in [Likelihood::gaussian(0.3), Likelihood::poisson()] {
            let theta = [1.7, 0.8];
            let (chain, models) = pair(shape, &theta, likelihood);
            let fit = converged(&models[0]);
            let at = chain.structure(&theta).unwrap();
            let found = chain.gradient(&theta, &at, fit.sensitivity.as_ref().unwrap());
            for (i, slope) in found.iter().enumerate() {
                let bound = |step: f64| {
                    let mut moved = theta;
                    moved[i] += step;
                    converged(&pair(shape, &moved, likelihood).1[0]).bound
                };
                let central = |h: f64| (bound(h) - bound(-h)) / (2.0 * h);
                let expected = (4.0 * central(5e-4) - central(1e-3)) / 3.0;
                assert!(
                    (slope - expected).abs() < 1e-6 * (1.0 + expected.abs()),
                    "{shape:?} {}, {i}: {slope} {expected}",
                    likelihood.name()
                );
            }
        }
    }
}

const ROWS: usize = 220;

fn table(rows: usize, from: usize) -> TestTable {
    let numbers =
        |seed: usize| -> Vec<f64> { (from..from + rows).map(|i| noise(seed * 977 + i)).collect() };
    let groups: Vec<&'static str> = (from..from + rows)
        .map(|i| ["a", "b", "c", "d", "e"][i % if from == 0 { 4 } else { 5 }])
        .collect();
    let times: Vec<f64> = numbers(1).iter().map(|x| 30.0 * x - 7.0).collect();
    TestTable::default()
        .with("t", &times)
        .with("x", &numbers(2))
        .with_words("g", &groups)
}

fn assembled(prior: &str) -> Assembled {
    let rows: Vec<usize> = (0..ROWS).collect();
    assemble(
        &Spec::parse(prior).unwrap(),
        &table(ROWS, 0),
        &rows,
        Units::TABLE,
    )
    .unwrap_or_else(|e| panic!("{prior}: {e}"))
}

fn model(made: &Assembled, theta: &[f64], likelihood: Likelihood) -> LatentModel {
    LatentModel {
        prior: made.prior().structure(theta).unwrap(),
        design: made.design(),
        likelihood,
        bound: SiteBound::Exact,
        observations: Observations::new((0..ROWS).map(|i| response(likelihood, i)).collect()),
    }
}

/// A sum with effects of covariates and groups. The product with a constant is the same process with a covariance
/// matrix.
#[test]
fn sums_predictions_and_derivatives_are_those_of_the_process() {
    let others = "intercept(variance~4) + fixed(x, variance~2) + iid(on=g)";
    for kernel in ["matern32", "matern52"] {
        let chain = assembled(&format!("{others} + gp({kernel}, on=t)"));
        assert_eq!(chain.process_size(), 0);
        assert!(chain.notes.iter().any(|n| n.contains("220 values")));
        let dense = assembled(&format!("{others} + gp({kernel}, on=t) * gp(constant)"));
        assert_eq!(dense.process_size(), ROWS);
        let theta = [4.0, 2.0, 0.6, 1.4, 2.5];
        assert_eq!(chain.settings()[..5], dense.settings()[..5]);
        // New rows before, between and after the old ones, in old groups and a new one.
        let new = table(40, 5000).with("t", &{
            let mut t: Vec<f64> = (0..40).map(|i| 50.0 * noise(7 * i) - 17.0).collect();
            t[5] = t[4];
            t[6] = 30.0 * noise(977) - 7.0;
            t
        });
        let rows: Vec<usize> = (0..40).collect();
        for likelihood in [Likelihood::gaussian(0.3), Likelihood::poisson()] {
            let found = [&chain, &dense].map(|made| {
                let model = model(made, &theta, likelihood);
                let fit = converged(&model);
                let at = made.prior().structure(&theta).unwrap();
                let sensitivity = fit.sensitivity.as_ref().unwrap();
                let gradient = made.prior().gradient(&theta, &at, sensitivity);
                let (query, fresh) = made.query(&theta, &new, &rows).unwrap();
                assert!(fresh.variables.is_empty());
                let (mean, variance): (Vec<f64>, Vec<f64>) = predict(&model, &fit.warm(), &query)
                    .unwrap()
                    .into_iter()
                    .unzip();
                (fit, gradient, mean, variance)
            });
            let [a, b] = &found;
            // Without conjugacy, errors of α and of predictions are of the order of the root of the gap, which is at
            // most 1e-10.
            let exact = likelihood == Likelihood::gaussian(0.3);
            let accuracy = if exact { 1e-8 } else { 1e-5 };
            close("bound", &[a.0.bound], &[b.0.bound], 1e-6);
            close("mean", &a.0.predictor_mean, &b.0.predictor_mean, 1e-6);
            close(
                "variance",
                &a.0.predictor_variance,
                &b.0.predictor_variance,
                1e-6,
            );
            close("gradient", &a.1, &b.1, accuracy);
            close("new mean", &a.2, &b.2, accuracy);
            close("new variance", &a.3, &b.3, accuracy);
        }
    }
}

/// Joint draws at new rows have the covariances of their differences.
#[test]
fn draws_have_the_variances_of_differences() {
    let theta = [4.0, 0.6, 1.4, 2.5];
    let made = assembled("intercept(variance~4) + iid(on=g) + gp(matern52, on=t)");
    let likelihood = Likelihood::gaussian(0.3);
    let model = model(&made, &theta, likelihood);
    let warm = converged(&model).warm();
    let new = table(3, 5000).with("t", &[1.0, 1.4, 26.0]);
    let (query, _) = made.query(&theta, &new, &[0, 1, 2]).unwrap();
    let moments = predict(&model, &warm, &query).unwrap();
    let numbers: Vec<u64> = (0..20_000).collect();
    let draws = draw(&model, &warm, &query, None, &numbers, 5).unwrap();
    for (i, (mean, variance)) in moments.iter().enumerate() {
        let own: Vec<f64> = draws.chunks(3).map(|d| d[i] - mean).collect();
        let n = own.len() as f64;
        let (shift, square) = (
            own.iter().sum::<f64>() / n,
            own.iter().map(|x| x * x).sum::<f64>() / n,
        );
        assert!(shift.abs() < 4.0 * (variance / n).sqrt(), "{i}: {shift}");
        assert!(
            (square / variance - 1.0).abs() < 0.04,
            "{i}: {square} {variance}"
        );
    }
    // Neighbouring values move together: the dense process has the same variance of the difference.
    let dense = assembled("intercept(variance~4) + iid(on=g) + gp(matern52, on=t) * gp(constant)");
    let same = self::model(&dense, &theta, likelihood);
    let (query, _) = dense.query(&theta, &new, &[0, 1, 2]).unwrap();
    let joint = dense.joint(&theta, &new, &[0, 1, 2]).unwrap();
    let other = draw(&same, &warm, &query, joint.as_ref(), &numbers, 5).unwrap();
    let spread = |draws: &[f64]| -> f64 {
        let own: Vec<f64> = draws.chunks(3).map(|d| d[0] - d[1]).collect();
        let mean = own.iter().sum::<f64>() / own.len() as f64;
        own.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / own.len() as f64
    };
    let ratio = spread(&draws) / spread(&other);
    assert!((ratio - 1.0).abs() < 0.06, "{ratio}");
}
