//! Solvers against each other, against quadrature and against differences.

use std::time::Instant;

use jensen_fit::{Budget, Control, Identity, Silent};
use jensen_latent::{
    Bound, Covariance, CovarianceSensitivity, Dense, Design, Error, Fit, LearnSettings, Likelihood,
    Model, Observations, Parameter, Precision, Prior, Query, Range, Sensitivity, Settings, Solver,
    Sparse, Structure, fit, learn, predict,
};

fn run(model: &Model, settings: &Settings) -> Result<Fit, Error> {
    let start = Instant::now();
    let clock = || start.elapsed().as_secs_f64();
    let mut silent = Silent;
    let mut control = Control::new(Budget::iterations(5000), &clock, &mut silent);
    fit(model, settings, None, true, &identity(), &mut control)
}

fn identity() -> Identity {
    Identity {
        algorithm: "test".to_owned(),
        settings: serde_json::Value::Null,
        seed: 0,
        model_hash: String::new(),
        data_hash: String::new(),
        simd: String::new(),
    }
}

fn tight() -> Settings {
    Settings {
        tolerance: 1e-10,
        nodes: 64,
        ..Settings::default()
    }
}

fn converged(model: &Model) -> Fit {
    let fit = run(model, &tight()).unwrap_or_else(|e| panic!("{e}"));
    assert!(fit.status.is_converged(), "{}", fit.status);
    if let Some(gap) = fit.gap {
        assert!((0.0..=1e-10).contains(&gap));
    }
    fit
}

/// Numbers in (0, 1) that look random.
fn noise(i: usize) -> f64 {
    ((i + 1) as f64 * 0.754_877_666_246_69).fract()
}

/// A response inside the domain of the likelihood.
fn response(likelihood: Likelihood, i: usize) -> f64 {
    let u = noise(3 * i + 1);
    match likelihood {
        Likelihood::Gaussian { .. } | Likelihood::StudentT { .. } => 3.0 * u - 1.5,
        Likelihood::Poisson | Likelihood::NegativeBinomial { .. } => (4.0 * u * u).floor(),
        Likelihood::Bernoulli | Likelihood::Probit => f64::from(u > 0.4),
        Likelihood::Binomial => (5.0 * u).floor(),
        Likelihood::Gamma { .. } | Likelihood::Exponential => 0.2 + 2.0 * u,
        Likelihood::StochasticVolatility => 2.0 * u - 1.0,
        Likelihood::Multinomial { categories } => ((i * 5) % (categories + 4) % categories) as f64,
    }
}

fn observations(likelihood: Likelihood, n: usize) -> Observations {
    Observations {
        response: (0..n).map(|i| response(likelihood, i)).collect(),
        exposure: Some((0..n).map(|i| 0.5 + noise(i)).collect()),
        trials: Some(vec![6.0; n]),
        offset: Some(
            (0..n * likelihood.predictors())
                .map(|i| 0.3 * noise(7 * i))
                .collect(),
        ),
    }
}

fn kernel(n: usize) -> Dense {
    Dense::from_fn(n, n, |i, j| {
        let d = (i as f64 - j as f64) / 3.0;
        1.5 * (-0.5 * d * d).exp() + if i == j { 0.05 } else { 0.0 }
    })
}

/// Every likelihood with every bound.
fn sites() -> Vec<(Likelihood, Bound)> {
    let likelihoods = [
        Likelihood::Gaussian { variance: 0.4 },
        Likelihood::Poisson,
        Likelihood::Bernoulli,
        Likelihood::Binomial,
        Likelihood::NegativeBinomial { size: 2.5 },
        Likelihood::Gamma { shape: 1.7 },
        Likelihood::Exponential,
        Likelihood::StochasticVolatility,
        Likelihood::Multinomial { categories: 3 },
        Likelihood::Probit,
        Likelihood::StudentT {
            degrees: 4.0,
            scale: 0.5,
        },
    ];
    likelihoods
        .into_iter()
        .flat_map(|l| l.bounds().iter().map(move |b| (l, *b)))
        .collect()
}

fn model(likelihood: Likelihood, bound: Bound, n: usize) -> Model {
    let rows = n * likelihood.predictors();
    Model {
        prior: Structure {
            mean: (0..rows).map(|i| 0.2 * noise(i)).collect(),
            covariance: Covariance::Dense(kernel(rows)),
        },
        design: Design::Identity,
        likelihood,
        bound,
        observations: observations(likelihood, n),
    }
}

/// The same prior and design twice over: as a dense covariance and as a sparse precision.
fn as_precision(model: &Model) -> Model {
    let mut model = model.clone();
    if let Covariance::Dense(sigma) = &model.prior.covariance {
        let n = sigma.rows;
        let inverse = invert(sigma);
        let mut triplets = Vec::new();
        for j in 0..n {
            for i in 0..n {
                triplets.push((i, j, 0.5 * (inverse.get(i, j) + inverse.get(j, i))));
            }
        }
        model.prior.covariance = Covariance::Precision(Precision {
            matrix: Sparse::from_triplets(n, n, &triplets).unwrap(),
            null_space: None,
            log_determinant: None,
        });
    }
    model
}

/// Gauss-Jordan, for small matrices.
fn invert(a: &Dense) -> Dense {
    let n = a.rows;
    let mut work = a.clone();
    let mut out = Dense::from_fn(n, n, |i, j| f64::from(i == j));
    for k in 0..n {
        let pivot = work.get(k, k);
        for j in 0..n {
            work.data[j * n + k] /= pivot;
            out.data[j * n + k] /= pivot;
        }
        for i in (0..n).filter(|i| *i != k) {
            let factor = work.get(i, k);
            for j in 0..n {
                work.data[j * n + i] -= factor * work.data[j * n + k];
                out.data[j * n + i] -= factor * out.data[j * n + k];
            }
        }
    }
    out
}

fn close(what: &str, a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!(
            (a - b).abs() <= tolerance * (1.0 + a.abs()),
            "{what}, element {i}: {a} and {b}"
        );
    }
}

fn same_fit(what: &str, a: &Fit, b: &Fit) {
    close(what, &[a.bound], &[b.bound], 1e-8);
    close(&format!("{what}: mean"), &a.mean, &b.mean, 1e-4);
    close(&format!("{what}: variance"), &a.variance, &b.variance, 1e-4);
    close(
        &format!("{what}: predictor mean"),
        &a.predictor_mean,
        &b.predictor_mean,
        1e-4,
    );
    close(
        &format!("{what}: predictor variance"),
        &a.predictor_variance,
        &b.predictor_variance,
        1e-4,
    );
}

#[test]
fn every_site_is_solved_alike_in_every_regime() {
    for (likelihood, bound) in sites() {
        let what = format!("{} {}", likelihood.name(), bound.name());
        let wide = model(likelihood, bound, 9);
        let reference = converged(&wide);
        same_fit(&what, &reference, &converged(&as_precision(&wide)));
        // Fewer latent variables than predictors: the regression on two columns, as covariance of the predictors and as
        // coefficients.
        let rows = wide.predictors();
        let w = Dense::from_fn(rows, 2, |i, j| noise(11 * i + 5 * j) - 0.3 * j as f64);
        let mut narrow = wide.clone();
        narrow.design = Design::Dense(w.clone());
        narrow.prior.mean = vec![0.1, -0.2];
        narrow.prior.covariance =
            Covariance::Dense(Dense::from_fn(2, 2, |i, j| if i == j { 1.2 } else { 0.4 }));
        let coefficients = converged(&narrow);
        let mut implied = wide.clone();
        implied.prior.mean = (0..rows)
            .map(|i| 0.1 * w.get(i, 0) - 0.2 * w.get(i, 1))
            .collect();
        implied.prior.covariance = Covariance::Dense(Dense::from_fn(rows, rows, |i, j| {
            let cross =
                |a: f64, b: f64, c: f64, d: f64| 1.2 * (a * c + b * d) + 0.4 * (a * d + b * c);
            cross(w.get(i, 0), w.get(i, 1), w.get(j, 0), w.get(j, 1))
        }));
        let fit = converged(&implied);
        close(&what, &[fit.bound], &[coefficients.bound], 1e-8);
        close(&what, &fit.mean, &coefficients_at(&coefficients, &w), 1e-4);
        same_fit(&what, &coefficients, &converged(&as_precision(&narrow)));
    }
}

fn coefficients_at(fit: &Fit, w: &Dense) -> Vec<f64> {
    (0..w.rows)
        .map(|i| (0..w.cols).map(|j| w.get(i, j) * fit.mean[j]).sum())
        .collect()
}

/// A random-walk field with intercept, slopes and missing cells: sparse designs whose rows read several latent variables.
fn field(n: usize) -> (Model, Model) {
    let mut triplets = Vec::new();
    for i in 0..n {
        triplets.push((i, i, 0.3));
        if i + 1 < n {
            for (a, b, x) in [
                (i, i, 2.0),
                (i + 1, i + 1, 2.0),
                (i, i + 1, -2.0),
                (i + 1, i, -2.0),
            ] {
                triplets.push((a, b, x));
            }
        }
    }
    for l in 0..3 {
        triplets.push((n + l, n + l, 0.01));
    }
    let matrix = Sparse::from_triplets(n + 3, n + 3, &triplets).unwrap();
    let mut dense = Dense::zeros(n + 3, n + 3);
    for j in 0..n + 3 {
        let (rows, values) = matrix.col(j);
        for (&i, &x) in rows.iter().zip(values) {
            dense.data[j * (n + 3) + i] = x;
        }
    }
    let mut design = Vec::new();
    let cells: Vec<usize> = (0..n).filter(|i| i % 5 != 2).collect();
    for (row, &i) in cells.iter().enumerate() {
        design.push((row, i, 1.0));
        design.push((row, n, 1.0));
        design.push((row, n + 1, noise(i)));
        design.push((row, n + 2, 10.0 * noise(3 * i)));
    }
    let rows = cells.len();
    let sparse = Model {
        prior: Structure {
            mean: vec![0.0; n + 3],
            covariance: Covariance::Precision(Precision {
                matrix,
                null_space: None,
                log_determinant: None,
            }),
        },
        design: Design::Sparse(Sparse::from_triplets(rows, n + 3, &design).unwrap()),
        likelihood: Likelihood::Poisson,
        bound: Bound::Exact,
        observations: Observations::new(
            (0..rows)
                .map(|i| response(Likelihood::Poisson, i))
                .collect(),
        ),
    };
    let mut same = sparse.clone();
    same.prior.covariance = Covariance::Dense(invert(&dense));
    (sparse, same)
}

#[test]
fn fields_with_covariates_agree_with_their_covariances() {
    for n in [12, 60] {
        let (sparse, dense) = field(n);
        same_fit("field", &converged(&sparse), &converged(&dense));
    }
}

/// log p(y) of one observation with one latent variable, by Simpson's rule.
fn evidence(likelihood: Likelihood, y: f64, variance: f64, n: f64) -> f64 {
    let log_density = |eta: f64| -> f64 {
        let lgamma = |x: f64| (1..x as usize).map(|k| (k as f64).ln()).sum::<f64>();
        match likelihood {
            Likelihood::Gaussian { variance: s } => {
                -0.5 * (y - eta).powi(2) / s - 0.5 * (2.0 * std::f64::consts::PI * s).ln()
            }
            Likelihood::Poisson => y * eta - eta.exp() - lgamma(y + 1.0),
            Likelihood::Bernoulli => y * eta - (1.0 + eta.exp()).ln(),
            Likelihood::Binomial => {
                y * eta - n * (1.0 + eta.exp()).ln() + lgamma(n + 1.0)
                    - lgamma(y + 1.0)
                    - lgamma(n - y + 1.0)
            }
            Likelihood::NegativeBinomial { size } => {
                lgamma(y + size) - lgamma(size) - lgamma(y + 1.0) + size * size.ln() + y * eta
                    - (y + size) * (size + eta.exp()).ln()
            }
            Likelihood::Exponential => -eta - y * (-eta).exp(),
            Likelihood::Gamma { shape } => {
                -lgamma(shape) + shape * shape.ln() + (shape - 1.0) * y.ln()
                    - shape * eta
                    - shape * y * (-eta).exp()
            }
            Likelihood::StochasticVolatility => {
                -0.5 * (2.0 * std::f64::consts::PI).ln() - 0.5 * eta - 0.5 * y * y * (-eta).exp()
            }
            Likelihood::Multinomial { .. } => y.mul_add(-eta, eta) - (1.0 + eta.exp()).ln(),
            Likelihood::Probit => {
                let x = (2.0 * y - 1.0) * eta;
                (0.5 * libm_erfc(-x / std::f64::consts::SQRT_2)).ln()
            }
            Likelihood::StudentT { .. } => {
                // Four degrees of freedom, unit scale: 3/8 (1 + r²/4)^(−5/2).
                (0.375_f64).ln() - 2.5 * (0.25 * (y - eta).powi(2)).ln_1p()
            }
        }
    };
    let steps = 4000;
    let reach = 12.0;
    let width = 2.0 * reach / f64::from(steps);
    let sum: f64 = (0..=steps)
        .map(|i| {
            let z = -reach + width * f64::from(i);
            let weight = if i == 0 || i == steps {
                1.0
            } else if i % 2 == 1 {
                4.0
            } else {
                2.0
            };
            weight
                * (log_density(variance.sqrt() * z)
                    - 0.5 * z * z
                    - 0.5 * (2.0 * std::f64::consts::PI).ln())
                .exp()
        })
        .sum();
    (sum * width / 3.0).ln()
}

/// erfc by its continued fraction or series, independent of the crate's.
fn libm_erfc(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 - libm_erfc(-x);
    }
    if x < 2.5 {
        let (mut term, mut sum) = (x, x);
        for k in 1..200 {
            term *= -x * x / f64::from(k);
            sum += term / f64::from(2 * k + 1);
        }
        return 1.0 - 2.0 / std::f64::consts::PI.sqrt() * sum;
    }
    let mut fraction = 0.0;
    for k in (1..=60).rev() {
        fraction = 0.5 * f64::from(k) / (x + fraction);
    }
    (-x * x).exp() / std::f64::consts::PI.sqrt() / (x + fraction)
}

#[test]
fn bounds_lie_below_the_evidence_and_near_it() {
    let cases = [
        (Likelihood::Gaussian { variance: 0.4 }, 0.9, 1e-9),
        (Likelihood::Poisson, 3.0, 0.03),
        (Likelihood::Bernoulli, 1.0, 0.02),
        (Likelihood::Binomial, 2.0, 0.03),
        (Likelihood::NegativeBinomial { size: 2.0 }, 3.0, 0.03),
        (Likelihood::Gamma { shape: 2.0 }, 1.4, 0.04),
        (Likelihood::Exponential, 0.6, 0.04),
        (Likelihood::StochasticVolatility, 0.7, 0.04),
        (Likelihood::StochasticVolatility, 0.0, 1e-9),
        (Likelihood::Multinomial { categories: 2 }, 0.0, 0.1),
        (Likelihood::Probit, 1.0, 0.02),
        (
            Likelihood::StudentT {
                degrees: 4.0,
                scale: 1.0,
            },
            0.8,
            0.03,
        ),
    ];
    for (likelihood, y, slack) in cases {
        for &bound in likelihood.bounds() {
            let mut model = model(likelihood, bound, 1);
            model.prior.mean = vec![0.0];
            model.prior.covariance = Covariance::Diagonal(vec![0.8]);
            model.observations = Observations {
                response: vec![y],
                trials: Some(vec![6.0]),
                ..Observations::default()
            };
            // One observation of a two-category site: the other category cannot be seen.
            if matches!(likelihood, Likelihood::Multinomial { .. }) {
                assert!(matches!(run(&model, &tight()), Err(Error::Data(_))));
                continue;
            }
            let fit = converged(&model);
            let exact = evidence(likelihood, y, 0.8, 6.0);
            let what = format!(
                "{} {}: {} and {exact}",
                likelihood.name(),
                bound.name(),
                fit.bound
            );
            assert!(fit.bound <= exact + 1e-9, "{what}");
            let slack = if bound == Bound::Exact || bound == Bound::Piecewise {
                slack
            } else {
                0.4
            };
            assert!(fit.bound >= exact - slack, "{what}");
        }
    }
}

/// The bound at shifted values of the prior's numbers, against its sensitivities.
#[test]
fn sensitivities_agree_with_differences() {
    let h = 1e-4;
    for (likelihood, bound) in [
        (Likelihood::Gaussian { variance: 0.4 }, Bound::Exact),
        (Likelihood::Poisson, Bound::Exact),
        (Likelihood::Binomial, Bound::Tilted),
        (Likelihood::Bernoulli, Bound::Exact),
        (Likelihood::NegativeBinomial { size: 2.5 }, Bound::Tilted),
        (Likelihood::NegativeBinomial { size: 2.5 }, Bound::Exact),
        (Likelihood::Gamma { shape: 1.7 }, Bound::Exact),
        (
            Likelihood::StudentT {
                degrees: 4.0,
                scale: 0.5,
            },
            Bound::Exact,
        ),
    ] {
        let what = format!("{} {}", likelihood.name(), bound.name());
        let base = model(likelihood, bound, 7);
        let mut narrow = base.clone();
        narrow.design = Design::Dense(Dense::from_fn(7, 3, |i, j| noise(i + 10 * j) - 0.2));
        narrow.prior.mean = vec![0.1; 3];
        narrow.prior.covariance = Covariance::Dense(kernel(3));
        let mut select = narrow.clone();
        select.design = Design::Select(vec![0, 1, 2, 0, 1, 2, 2]);
        select.prior.covariance = Covariance::Diagonal(vec![0.5, 1.0, 2.0]);
        for model in [base, narrow.clone(), as_precision(&narrow), select] {
            let fit = converged(&model);
            let sensitivity = fit.sensitivity.as_ref().unwrap();
            let slope = |change: &dyn Fn(&mut Model, f64)| {
                let at = |sign: f64| {
                    let mut changed = model.clone();
                    change(&mut changed, sign * h);
                    converged(&changed).bound
                };
                (at(1.0) - at(-1.0)) / (2.0 * h)
            };
            let check = |name: &str, derivative: f64, difference: f64| {
                assert!(
                    (derivative - difference).abs() < 2e-5 * (1.0 + derivative.abs()),
                    "{what}, {name}: {derivative} and {difference}"
                );
            };
            check(
                "mean",
                sensitivity.mean[1],
                slope(&|m, h| m.prior.mean[1] += h),
            );
            for k in 0..likelihood.parameters().len() {
                let difference = slope(&|m, h| {
                    let mut values = m.likelihood.values();
                    values[k] += h;
                    m.likelihood = m.likelihood.with_values(&values);
                });
                check(
                    likelihood.parameters()[k],
                    sensitivity.likelihood[k],
                    difference,
                );
            }
            match &sensitivity.covariance {
                CovarianceSensitivity::Dense(g) => {
                    let n = g.rows;
                    let difference = slope(&|m, h| {
                        if let Covariance::Dense(sigma) = &mut m.prior.covariance {
                            sigma.data[n] += h;
                            sigma.data[1] += h;
                            sigma.data[2 * n + 2] += h;
                        }
                    });
                    check("covariance", 2.0 * g.get(0, 1) + g.get(2, 2), difference);
                }
                CovarianceSensitivity::Diagonal(g) => {
                    let difference = slope(&|m, h| {
                        if let Covariance::Diagonal(v) = &mut m.prior.covariance {
                            v[2] += h;
                        }
                    });
                    check("variance", g[2], difference);
                }
                CovarianceSensitivity::Precision { value, .. } => {
                    let difference = slope(&|m, h| {
                        if let Covariance::Precision(q) = &mut m.prior.covariance {
                            q.matrix.value[0] += h;
                            q.matrix.value[1] += h;
                            let mirrored = q.matrix.col_start[1];
                            q.matrix.value[mirrored] += h;
                        }
                    });
                    let mirrored = match &model.prior.covariance {
                        Covariance::Precision(q) => q.matrix.col_start[1],
                        _ => 0,
                    };
                    check(
                        "precision",
                        value[0] + value[1] + value[mirrored],
                        difference,
                    );
                }
            }
        }
    }
}

#[test]
fn an_intrinsic_prior_is_the_limit_of_proper_ones() {
    let n = 12;
    let chain = |ridge: f64| {
        let mut triplets = Vec::new();
        for i in 0..n {
            triplets.push((i, i, ridge));
            if i + 1 < n {
                for (a, b, x) in [
                    (i, i, 3.0),
                    (i + 1, i + 1, 3.0),
                    (i, i + 1, -3.0),
                    (i + 1, i, -3.0),
                ] {
                    triplets.push((a, b, x));
                }
            }
        }
        Sparse::from_triplets(n, n, &triplets).unwrap()
    };
    let mut intrinsic = model(Likelihood::Poisson, Bound::Exact, n);
    intrinsic.prior.mean = vec![0.0; n];
    intrinsic.prior.covariance = Covariance::Precision(Precision {
        matrix: chain(0.0),
        null_space: Some(Dense::from_fn(n, 1, |_, _| 2.0)),
        log_determinant: None,
    });
    let limit = converged(&intrinsic);
    let total: f64 = limit.alpha.iter().sum();
    assert!(total.abs() < 1e-9, "{total}");
    let ridge = 1e-7;
    let mut proper = intrinsic.clone();
    proper.prior.covariance = Covariance::Precision(Precision {
        matrix: chain(ridge),
        null_space: None,
        log_determinant: None,
    });
    let fit = converged(&proper);
    close("mean", &limit.mean, &fit.mean, 1e-4);
    close("variance", &limit.variance, &fit.variance, 1e-4);
    // The proper prior's density along the null space is that of N(0, 1/ridge).
    let level = 0.5 * (ridge / (2.0 * std::f64::consts::PI)).ln();
    assert!((limit.bound - (fit.bound - level)).abs() < 1e-4);
    // The determinant as the solver finds it, against the closed form: the product of the chain's non-zero eigenvalues.
    let log_determinant: f64 = (1..n)
        .map(|k| (6.0 * (1.0 - (std::f64::consts::PI * k as f64 / n as f64).cos())).ln())
        .sum();
    if let Covariance::Precision(q) = &mut intrinsic.prior.covariance {
        q.log_determinant = Some(log_determinant);
    }
    assert!((converged(&intrinsic).bound - limit.bound).abs() < 1e-10);
}

#[test]
fn wrong_models_are_refused_with_advice() {
    let refused = |change: &dyn Fn(&mut Model), needle: &str| {
        let mut model = model(Likelihood::Poisson, Bound::Exact, 6);
        change(&mut model);
        let error = run(&model, &Settings::default())
            .expect_err(needle)
            .to_string();
        assert!(error.contains(needle), "{error}");
    };
    refused(
        &|m| m.observations.response[2] = f64::NAN,
        "response: element 3",
    );
    refused(&|m| m.observations.response[2] = 0.5, "needs a count");
    refused(&|m| m.observations.response.clear(), "no observations");
    refused(&|m| m.bound = Bound::Tilted, "choose exact");
    refused(&|m| m.likelihood = Likelihood::Bernoulli, "needs 0 or 1");
    refused(
        &|m| m.design = Design::Select(vec![0, 1, 2, 3, 4, 9]),
        "reads latent variable 10",
    );
    refused(
        &|m| m.observations.exposure = Some(vec![-1.0; 6]),
        "exposure 1 is not positive",
    );
    refused(
        &|m| {
            if let Covariance::Dense(sigma) = &mut m.prior.covariance {
                sigma.data[1] += 0.3;
            }
        },
        "not symmetric",
    );
    refused(
        &|m| {
            if let Covariance::Dense(sigma) = &mut m.prior.covariance {
                sigma.data[0] = -1.0;
            }
        },
        "not positive semi-definite",
    );
    let graph = |links: &[(usize, usize)], null: Option<Dense>| {
        let mut triplets: Vec<_> = (0..6).map(|i| (i, i, 0.0)).collect();
        for &(a, b) in links {
            for (i, j, x) in [(a, a, 1.0), (b, b, 1.0), (a, b, -1.0), (b, a, -1.0)] {
                triplets.push((i, j, x));
            }
        }
        Covariance::Precision(Precision {
            matrix: Sparse::from_triplets(6, 6, &triplets).unwrap(),
            null_space: null,
            log_determinant: None,
        })
    };
    let ones = Dense::from_fn(6, 1, |_, _| 1.0);
    refused(
        &|m| {
            m.prior.covariance = graph(&[(0, 1), (1, 2), (3, 4), (4, 5)], Some(ones.clone()));
        },
        "not connected",
    );
    let chain = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)];
    refused(
        &|m| m.prior.covariance = graph(&chain, None),
        "declare its null space",
    );
    refused(
        &|m| {
            m.prior.covariance = graph(&chain, Some(ones.clone()));
            m.observations.response = vec![0.0; 6];
        },
        "all zero",
    );
}

#[test]
fn duplicate_inputs_need_no_jitter_and_nearly_singular_roots_report_theirs() {
    let mut model = model(Likelihood::Bernoulli, Bound::Tilted, 6);
    model.prior.covariance = Covariance::Dense(Dense::from_fn(6, 6, |i, j| {
        let d = (i / 2) as f64 - (j / 2) as f64;
        (-0.5 * d * d).exp()
    }));
    let fit = converged(&model);
    assert!(
        fit.notes.iter().any(|n| n.contains("duplicate")),
        "{:?}",
        fit.notes
    );
    assert!((fit.mean[0] - fit.mean[1] - 0.2 * (noise(0) - noise(1))).abs() < 1e-8);
    model.likelihood = Likelihood::StudentT {
        degrees: 4.0,
        scale: 1.0,
    };
    model.bound = Bound::Exact;
    let fit = converged(&model);
    assert!(
        fit.notes.iter().any(|n| n.contains("added")),
        "{:?}",
        fit.notes
    );
}

#[test]
fn all_solvers_of_a_bound_meet() {
    for (likelihood, bound) in sites() {
        let what = format!("{} {}", likelihood.name(), bound.name());
        let wide = model(likelihood, bound, 8);
        let mut narrow = wide.clone();
        let rows = wide.predictors();
        narrow.design = Design::Dense(Dense::from_fn(rows, 3, |i, j| noise(i + 10 * j) - 0.2));
        narrow.prior.mean = vec![0.1; 3];
        narrow.prior.covariance = Covariance::Dense(kernel(3));
        for model in [&wide, &narrow, &as_precision(&wide)] {
            let dual = converged(model);
            for solver in [
                Solver::Primal,
                Solver::Opper,
                Solver::Coordinate,
                Solver::Em,
            ] {
                let settings = Settings { solver, ..tight() };
                let fit = match run(model, &settings) {
                    Ok(fit) => fit,
                    Err(Error::Unsupported(_)) => continue,
                    Err(Error::Prior(e)) if e.contains("coordinate ascent") => continue,
                    Err(error) => panic!("{what} {}: {error}", solver.name()),
                };
                assert!(
                    (fit.bound - dual.bound).abs() < 1e-4,
                    "{what} {}: {} and {} ({})",
                    solver.name(),
                    fit.bound,
                    dual.bound,
                    fit.status
                );
                assert!(
                    fit.status.is_converged(),
                    "{what} {}: {}",
                    solver.name(),
                    fit.status
                );
                close(&what, &fit.predictor_mean, &dual.predictor_mean, 1e-2);
                close(
                    &what,
                    &fit.predictor_variance,
                    &dual.predictor_variance,
                    1e-2,
                );
                if let Some(gap) = fit.gap {
                    assert!(
                        (-1e-9..1e-4).contains(&gap),
                        "{what} {}: {gap}",
                        solver.name()
                    );
                }
            }
        }
    }
}

/// Predictions at two new places against the posterior of a model in which they are latent variables without observation.
#[test]
fn predictions_agree_with_a_larger_model() {
    let (n, extra) = (7, 2);
    for (likelihood, bound) in [
        (Likelihood::Poisson, Bound::Exact),
        (Likelihood::Bernoulli, Bound::Tilted),
        (
            Likelihood::StudentT {
                degrees: 4.0,
                scale: 0.5,
            },
            Bound::Exact,
        ),
    ] {
        let joint = kernel(n + extra);
        let mut small = model(likelihood, bound, n);
        small.prior.covariance = Covariance::Dense(Dense::from_fn(n, n, |i, j| joint.get(i, j)));
        let mut large = small.clone();
        large.prior.mean = vec![0.0; n + extra];
        large.prior.mean[..n].copy_from_slice(&small.prior.mean);
        large.prior.covariance = Covariance::Dense(joint.clone());
        large.design = Design::Select((0..n).collect());
        let expected = converged(&large);
        let fit = converged(&small);
        let query = Query::Cross {
            covariance: Dense::from_fn(extra, n, |i, j| joint.get(n + i, j)),
            variance: (n..n + extra).map(|i| joint.get(i, i)).collect(),
            mean: vec![0.0; extra],
        };
        let new = predict(&small, &fit.warm(), &query).unwrap();
        for k in 0..extra {
            let what = format!("{} {k}", likelihood.name());
            close(&what, &[new[k].0], &[expected.mean[n + k]], 1e-6);
            close(&what, &[new[k].1], &[expected.variance[n + k]], 1e-6);
        }
        // Combinations of the latent variables at hand, in every regime.
        let rows = Design::Dense(Dense::from_fn(3, n + extra, |i, j| noise(4 * i + j) - 0.4));
        let wide = predict(&large, &expected.warm(), &Query::Rows(rows.clone())).unwrap();
        let sparse = as_precision(&large);
        let other = predict(
            &sparse,
            &converged(&sparse).warm(),
            &Query::Rows(rows.clone()),
        )
        .unwrap();
        for (a, b) in wide.iter().zip(&other) {
            close("rows", &[a.0, a.1], &[b.0, b.1], 1e-5);
        }
        let mut narrow = large.clone();
        narrow.observations.response.extend([1.0; 8]);
        narrow.observations.exposure = None;
        narrow.observations.trials = None;
        narrow.observations.offset = None;
        narrow.design = Design::Select((0..n + 8).map(|i| i % (n + extra)).collect());
        let sparse = as_precision(&narrow);
        let a = predict(
            &narrow,
            &converged(&narrow).warm(),
            &Query::Rows(rows.clone()),
        )
        .unwrap();
        let b = predict(&sparse, &converged(&sparse).warm(), &Query::Rows(rows)).unwrap();
        for (a, b) in a.iter().zip(&b) {
            close("rows", &[a.0, a.1], &[b.0, b.1], 1e-5);
        }
    }
}

/// A kernel of one scale and one length, and nothing fixed.
struct Smooth(usize);

impl Prior for Smooth {
    fn parameters(&self) -> Vec<Parameter> {
        let positive = |name: &str, start| Parameter {
            name: name.to_owned(),
            start,
            range: Range::Positive,
        };
        vec![positive("variance", 1.0), positive("lengthscale", 2.0)]
    }

    fn structure(&self, theta: &[f64]) -> Result<Structure, Error> {
        Ok(Structure {
            mean: vec![0.0; self.0],
            covariance: Covariance::Dense(Dense::from_fn(self.0, self.0, |i, j| {
                let d = (i as f64 - j as f64) / theta[1];
                theta[0] * (-0.5 * d * d).exp()
            })),
        })
    }

    fn gradient(&self, theta: &[f64], at: &Structure, sensitivity: &Sensitivity) -> Vec<f64> {
        let (Covariance::Dense(k), CovarianceSensitivity::Dense(g)) =
            (&at.covariance, &sensitivity.covariance)
        else {
            panic!("a dense prior");
        };
        let (mut variance, mut length) = (0.0, 0.0);
        for j in 0..self.0 {
            for i in 0..self.0 {
                let d = i as f64 - j as f64;
                variance += g.get(i, j) * k.get(i, j) / theta[0];
                length += g.get(i, j) * k.get(i, j) * d * d / theta[1].powi(3);
            }
        }
        vec![variance, length]
    }
}

#[test]
fn learning_ends_where_the_bound_is_flat() {
    let n = 40;
    let mut template = model(Likelihood::Gaussian { variance: 0.3 }, Bound::Exact, n);
    template.observations = Observations::new(
        (0..n)
            .map(|i| 2.0 * (0.4 * i as f64).sin() + 0.8 * (noise(5 * i) - 0.5))
            .collect(),
    );
    let settings = LearnSettings {
        restarts: 1,
        tolerance: 1e-7,
        ..LearnSettings::default()
    };
    let clock = || 0.0;
    let identity = identity();
    let mut checkpoints: Vec<Vec<u8>> = Vec::new();
    let mut silent = Silent;
    let mut control = Control::new(Budget::iterations(300), &clock, &mut silent);
    control.store = Some(&mut checkpoints);
    control.checkpoint_seconds = 0.0;
    let learned = learn(&Smooth(n), &template, &settings, &identity, &mut control).unwrap();
    assert!(learned.status.is_converged(), "{}", learned.status);
    assert_eq!(learned.starts.len(), 2);
    assert!(
        (learned.starts[0] - learned.starts[1]).abs() < 1e-3,
        "{:?}",
        learned.starts
    );
    let bound = |theta: &[f64], variance: f64| {
        let mut model = template.clone();
        model.prior = Smooth(n).structure(theta).unwrap();
        model.likelihood = Likelihood::Gaussian { variance };
        converged(&model).bound
    };
    let Likelihood::Gaussian { variance } = learned.likelihood else {
        panic!("another likelihood");
    };
    let best = bound(&learned.theta, variance);
    assert!((best - learned.fit.bound).abs() < 1e-6);
    for factor in [0.97, 1.03] {
        let t = &learned.theta;
        assert!(bound(&[t[0] * factor, t[1]], variance) < best);
        assert!(bound(&[t[0], t[1] * factor], variance) < best);
        assert!(bound(t, variance * factor) < best);
    }
    // A resumed search has the bits of one that was never stopped.
    let middle = jensen_fit::Checkpoint::decode(&checkpoints[2]).unwrap();
    let mut silent = Silent;
    let mut control = Control::new(Budget::iterations(300), &clock, &mut silent);
    control.resume = Some(middle);
    let resumed = learn(&Smooth(n), &template, &settings, &identity, &mut control).unwrap();
    assert_eq!(resumed.theta, learned.theta);
    assert_eq!(resumed.fit.bound.to_bits(), learned.fit.bound.to_bits());
}

#[test]
fn a_resumed_fit_has_the_bits_of_one_that_was_never_stopped() {
    let (sparse, dense) = field(60);
    let mut fixed = model(Likelihood::Bernoulli, Bound::Exact, 30);
    fixed.prior.covariance = Covariance::Dense(kernel(30));
    for (model, solver) in [
        (&sparse, Solver::Dual),
        (&dense, Solver::Dual),
        (&fixed, Solver::Dual),
        (&fixed, Solver::Primal),
        (&fixed, Solver::Coordinate),
    ] {
        let settings = Settings { solver, ..tight() };
        let clock = || 0.0;
        let mut checkpoints: Vec<Vec<u8>> = Vec::new();
        let mut silent = Silent;
        let mut control = Control::new(Budget::iterations(5000), &clock, &mut silent);
        control.store = Some(&mut checkpoints);
        control.checkpoint_seconds = 0.0;
        let whole = fit(model, &settings, None, false, &identity(), &mut control).unwrap();
        let middle = jensen_fit::Checkpoint::decode(&checkpoints[1]).unwrap();
        let mut silent = Silent;
        let mut control = Control::new(Budget::iterations(5000), &clock, &mut silent);
        control.resume = Some(middle);
        let resumed = fit(model, &settings, None, false, &identity(), &mut control).unwrap();
        assert_eq!(whole.bound.to_bits(), resumed.bound.to_bits());
        assert_eq!(whole.mean, resumed.mean);
    }
}

#[test]
fn the_solver_is_deterministic_on_any_number_of_threads() {
    let (sparse, dense) = field(60);
    for model in [
        sparse,
        dense,
        model(Likelihood::Bernoulli, Bound::Exact, 80),
    ] {
        let on = |threads: usize| {
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap()
                .install(|| run(&model, &Settings::default()).unwrap())
        };
        let (one, three) = (on(1), on(3));
        assert_eq!(one.bound.to_bits(), three.bound.to_bits());
        assert_eq!(one.mean, three.mean);
        assert_eq!(one.variance, three.variance);
    }
}

#[test]
fn solvers_are_known_by_name() {
    for solver in Solver::ALL {
        assert_eq!(Solver::from_name(solver.name()), Some(solver));
    }
}
