//! Compares factor analysis with its closed form, and its predictions with held-out entries.

use jensen_latent::{
    Dense, Error, FactorFit, FactorModel, FactorSettings, Likelihood, SiteBound, fit_factors,
};
use jensen_run::{Budget, Control, Identity, Record};

fn run(model: &FactorModel, settings: &FactorSettings) -> (Result<FactorFit, Error>, Vec<Record>) {
    let clock = || 0.0;
    let identity = Identity {
        algorithm: "factors".to_owned(),
        settings: serde_json::Value::Null,
        seed: 0,
        model_hash: String::new(),
        data_hash: String::new(),
        simd: String::new(),
    };
    let mut trace = Vec::new();
    let mut control = Control::new(Budget::iterations(500), &clock, &mut trace);
    let fit = fit_factors(model, settings, &identity, &mut control);
    (fit, trace)
}

fn noise(i: usize) -> f64 {
    ((i + 1) as f64 * 0.754_877_666_246_69).fract()
}

fn table(rows: usize, cols: usize, f: impl Fn(f64, usize) -> f64) -> Dense {
    Dense::from_fn(rows, cols, |n, i| {
        let score = 3.0 * noise(7 * n) - 1.5;
        let slope = 3.0 * noise(11 * i + 3) - 1.5;
        f(score * slope + 0.3 * (noise(i) - 0.5), n * cols + i)
    })
}

#[test]
fn the_objective_never_falls_and_missing_entries_are_predicted() {
    let full = table(60, 12, |eta, k| {
        f64::from(noise(5 * k) < 1.0 / (1.0 + (-3.0 * eta).exp()))
    });
    let hidden = |n: usize, i: usize| (n * 12 + i) % 7 == 3;
    for bound in [SiteBound::Tilted, SiteBound::Bohning, SiteBound::Exact] {
        let model = FactorModel {
            table: Dense::from_fn(60, 12, |n, i| {
                if hidden(n, i) {
                    f64::NAN
                } else {
                    full.get(n, i)
                }
            }),
            factors: 1,
            likelihood: Likelihood::bernoulli(),
            bound,
        };
        let settings = FactorSettings {
            ridge: 0.1,
            tolerance: 1e-3,
            ..FactorSettings::default()
        };
        let (fit, trace) = run(&model, &settings);
        let fit = fit.unwrap();
        assert!(fit.status.is_converged(), "{}", fit.status);
        let objective: Vec<f64> = trace
            .iter()
            .map(|r| r.fields["objective"].as_f64().unwrap())
            .collect();
        assert!(
            objective.windows(2).all(|w| w[1] >= w[0] - 1e-5),
            "{objective:?}"
        );
        let (mut right, mut all) = (0, 0);
        for n in 0..60 {
            for i in (0..12).filter(|&i| hidden(n, i)) {
                let guess = fit.predictor(n, i).0 > 0.0;
                right += usize::from(guess == (full.get(n, i) == 1.0));
                all += 1;
            }
        }
        assert!(5 * right > 3 * all, "{right} of {all}");
    }
}

#[test]
fn gaussian_factors_reach_the_closed_form() {
    // In probabilistic principal components with noise variance s, the best single factor satisfies w wᵀ = (e − s) u
    // uᵀ. Here e is the leading eigenvalue of the covariance, and u is its eigenvector. The likelihood follows from it.
    let (rows, cols, s) = (80, 4, 0.5);
    let table = table(rows, cols, |eta, k| eta + 1.2 * (noise(3 * k) - 0.5));
    let model = FactorModel {
        table: table.clone(),
        factors: 1,
        likelihood: Likelihood::gaussian(s),
        bound: SiteBound::Exact,
    };
    let settings = FactorSettings {
        ridge: 0.0,
        tolerance: 1e-9,
        fixed: vec!["variance".to_owned()],
        ..FactorSettings::default()
    };
    let fit = run(&model, &settings).0.unwrap();
    let mean: Vec<f64> = (0..cols)
        .map(|i| table.col(i).iter().sum::<f64>() / rows as f64)
        .collect();
    let covariance = Dense::from_fn(cols, cols, |i, j| {
        (0..rows)
            .map(|n| (table.get(n, i) - mean[i]) * (table.get(n, j) - mean[j]))
            .sum::<f64>()
            / rows as f64
    });
    let mut u = vec![1.0; cols];
    let mut eigenvalue = 0.0;
    for _ in 0..2000 {
        let v: Vec<f64> = (0..cols)
            .map(|i| (0..cols).map(|j| covariance.get(i, j) * u[j]).sum())
            .collect();
        eigenvalue = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        u = v.iter().map(|x| x / eigenvalue).collect();
    }
    let trace: f64 = (0..cols).map(|i| covariance.get(i, i)).sum();
    // The two terms are log det C = log e + (D − 1) log s and tr C⁻¹S = 1 + (tr S − e)/s.
    let per_row = -0.5
        * (cols as f64 * (2.0 * std::f64::consts::PI).ln()
            + eigenvalue.ln()
            + (cols - 1) as f64 * s.ln()
            + 1.0
            + (trace - eigenvalue) / s);
    assert!(
        (fit.bound - per_row * rows as f64).abs() < 1e-3,
        "{} and {}",
        fit.bound,
        per_row * rows as f64
    );
    let length: f64 = (0..cols).map(|i| fit.loadings.get(i, 0).powi(2)).sum();
    assert!((length - (eigenvalue - s)).abs() < 1e-3);
    // The learnt variance is the mean of all other eigenvalues (Tipping and Bishop 1999, Eq. 8).
    let settings = FactorSettings {
        fixed: Vec::new(),
        ..settings
    };
    let learnt = run(&model, &settings).0.unwrap();
    let best = (trace - eigenvalue) / (cols - 1) as f64;
    let [found] = learnt.likelihood.values()[..] else {
        panic!("one variance");
    };
    assert!((found / best - 1.0).abs() < 1e-3, "{found} {best}");
    assert!(learnt.bound > fit.bound);
}

#[test]
fn wrong_tables_are_refused() {
    let refused = |table: Dense, factors: usize, needle: &str| {
        let model = FactorModel {
            table,
            factors,
            likelihood: Likelihood::bernoulli(),
            bound: SiteBound::Tilted,
        };
        let error = run(&model, &FactorSettings::default()).0.expect_err(needle);
        assert!(error.to_string().contains(needle), "{error}");
    };
    refused(Dense::zeros(3, 2), 0, "at least one factor");
    refused(Dense::from_fn(3, 2, |_, _| f64::NAN), 1, "no entries");
    refused(
        Dense::from_fn(3, 2, |_, i| 2.0 * i as f64),
        1,
        "column 2, row 1: the entry is 2",
    );
}
