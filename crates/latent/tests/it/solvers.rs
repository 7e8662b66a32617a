//! Compares the solvers with each other, with quadrature and with differences.

use crate::common::{
    as_precision, close, converged, field, invert, kernel, model, noise, response, run, tight,
};
use jensen_latent::{
    Covariance, CovarianceSensitivity, Dense, Design, Error, Fit, LatentModel, Likelihood,
    Observations, Precision, Settings, SiteBound, Size, Solver, Sparse, Structure,
};

fn sites() -> Vec<(Likelihood, SiteBound)> {
    Likelihood::all()
        .map(|l| l.with_values(&l.values().iter().map(|x| 0.6 * x + 0.3).collect::<Vec<_>>()))
        .flat_map(|l| l.bounds().iter().map(move |b| (l, *b)))
        .collect()
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
        // There are fewer latent variables than predictors. The regression on two columns is written both as a
        // covariance of the predictors and as coefficients.
        let rows = wide.predictors();
        let w = Dense::from_fn(rows, 2, |i, j| noise(11 * i + 5 * j) - 0.3 * j as f64);
        let mut narrow = wide.clone();
        narrow.design = Design::Dense(w.clone().into());
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

#[test]
fn fields_with_covariates_agree_with_their_covariances() {
    for n in [12, 60] {
        let (sparse, dense) = field(n);
        same_fit("field", &converged(&sparse), &converged(&dense));
    }
}

/// Computes log p(y) of one observation with one latent variable, by Simpson's rule.
fn evidence(likelihood: Likelihood, y: f64, variance: f64, size: f64) -> f64 {
    let log_density = |eta: f64| likelihood.log_density(eta, y, size);
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

fn censored(name: &str) -> Likelihood {
    Likelihood::from_name(&format!("{name}(event=COLUMN)")).unwrap()
}

fn interval(name: &str) -> Likelihood {
    Likelihood::from_name(&format!("{name}(until=COLUMN)")).unwrap()
}

#[test]
fn bounds_lie_below_the_evidence_and_near_it() {
    let cases = [
        (Likelihood::gaussian(0.4), 0.9, 1e-9),
        (Likelihood::poisson(), 3.0, 0.03),
        (Likelihood::bernoulli(), 1.0, 0.02),
        (Likelihood::binomial(), 2.0, 0.03),
        (Likelihood::negative_binomial(2.0), 3.0, 0.03),
        (Likelihood::gamma(2.0), 1.4, 0.04),
        (Likelihood::exponential(), 0.6, 0.04),
        (Likelihood::stochastic_volatility(), 0.7, 0.04),
        (Likelihood::stochastic_volatility(), 0.0, 1e-9),
        (Likelihood::multinomial(2), 0.0, 0.1),
        (Likelihood::probit(), 1.0, 0.02),
        (Likelihood::student_t(4.0, 1.0), 0.8, 0.03),
        (Likelihood::known_error(), 0.7, 1e-9),
        (Likelihood::ordinal(&[0.8]), 1.0, 0.02),
        (Likelihood::beta_binomial(2.0), 2.0, 0.03),
        (
            Likelihood::zero_inflated_negative_binomial(0.5, 2.0),
            3.0,
            0.03,
        ),
        (Likelihood::hurdle_poisson(0.5), 3.0, 0.03),
        (Likelihood::hurdle_negative_binomial(0.5, 2.0), 3.0, 0.03),
        (Likelihood::tweedie(0.8, 1.5), 0.0, 0.03),
        (Likelihood::tweedie(0.8, 1.5), 1.4, 0.03),
        (censored("exponential"), 0.6, 0.02),
        (censored("weibull"), 0.6, 0.02),
        (censored("lognormal"), 0.6, 0.02),
        (interval("exponential"), 0.6, 0.02),
        (interval("weibull"), 0.6, 0.02),
        (interval("weibull"), 0.0, 0.02),
        (interval("lognormal"), 0.6, 0.02),
        (interval("lognormal"), 0.0, 0.02),
    ];
    for (likelihood, y, slack) in cases {
        for &bound in likelihood.bounds() {
            let size = match likelihood.sized_by() {
                Size::Trials => 6.0,
                Size::Event => 0.0,
                Size::Until => 2.5 * y + 0.1,
                Size::One | Size::Exposure | Size::Sd => 1.0,
            };
            let mut model = model(likelihood, bound, 1);
            model.prior.mean = vec![0.0];
            model.prior.covariance = Covariance::Diagonal(vec![0.8]);
            model.observations = Observations {
                response: vec![y],
                size: Some(vec![size]),
                ..Observations::default()
            };
            // If a site with two categories has only one observation, the other category cannot occur.
            if likelihood.categories().is_some() {
                assert!(matches!(run(&model, &tight()), Err(Error::Data(_))));
                continue;
            }
            let fit = converged(&model);
            let exact = evidence(likelihood, y, 0.8, size);
            let what = format!(
                "{} {}: {} and {exact}",
                likelihood.name(),
                bound.name(),
                fit.bound
            );
            assert!(fit.bound <= exact + 1e-9, "{what}");
            let slack = if bound == SiteBound::Exact || bound == SiteBound::Piecewise {
                slack
            } else {
                0.4
            };
            assert!(fit.bound >= exact - slack, "{what}");
        }
    }
}

/// Compares the sensitivities with differences of the bound between shifted values of the prior.
#[test]
fn sensitivities_agree_with_differences() {
    let h = 1e-4;
    for (likelihood, bound) in [
        (Likelihood::gaussian(0.4), SiteBound::Exact),
        (Likelihood::poisson(), SiteBound::Exact),
        (Likelihood::binomial(), SiteBound::Tilted),
        (Likelihood::bernoulli(), SiteBound::Exact),
        (Likelihood::negative_binomial(2.5), SiteBound::Tilted),
        (Likelihood::negative_binomial(2.5), SiteBound::Exact),
        (Likelihood::gamma(1.7), SiteBound::Exact),
        (Likelihood::student_t(4.0, 0.5), SiteBound::Exact),
        (censored("weibull"), SiteBound::Exact),
        (censored("lognormal"), SiteBound::Exact),
    ] {
        let what = format!("{} {}", likelihood.name(), bound.name());
        let base = model(likelihood, bound, 7);
        let mut narrow = base.clone();
        narrow.design = Design::Dense(Dense::from_fn(7, 3, |i, j| noise(i + 10 * j) - 0.2).into());
        narrow.prior.mean = vec![0.1; 3];
        narrow.prior.covariance = Covariance::Dense(kernel(3));
        let mut select = narrow.clone();
        select.design = Design::Select(vec![0, 1, 2, 0, 1, 2, 2]);
        select.prior.covariance = Covariance::Diagonal(vec![0.5, 1.0, 2.0]);
        for model in [base, narrow.clone(), as_precision(&narrow), select] {
            let fit = converged(&model);
            let sensitivity = fit.sensitivity.as_ref().unwrap();
            let slope = |change: &dyn Fn(&mut LatentModel, f64)| {
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
                CovarianceSensitivity::Chain(_) => panic!("no model is a chain"),
            }
        }
    }
}

#[test]
fn lattices_agree_with_their_covariances() {
    let (rows, cols) = (11, 13);
    let n = rows * cols;
    let mut triplets: Vec<(usize, usize, f64)> = (0..n).map(|i| (i, i, 0.2)).collect();
    for i in 0..n {
        let right = (i % cols + 1 < cols).then_some(i + 1);
        let below = (i + cols < n).then_some(i + cols);
        for j in [right, below].into_iter().flatten() {
            for (a, b, x) in [(i, i, 1.5), (j, j, 1.5), (i, j, -1.5), (j, i, -1.5)] {
                triplets.push((a, b, x));
            }
        }
    }
    let matrix = Sparse::from_triplets(n, n, &triplets).unwrap();
    let mut dense = Dense::zeros(n, n);
    for (j, column) in dense.data.chunks_mut(n).enumerate() {
        let (index, values) = matrix.col(j);
        for (&i, &x) in index.iter().zip(values) {
            column[i] = x;
        }
    }
    for (likelihood, bound) in [
        (Likelihood::poisson(), SiteBound::Exact),
        (Likelihood::bernoulli(), SiteBound::Log),
        (Likelihood::bernoulli(), SiteBound::Exact),
    ] {
        let mut sparse = model(likelihood, bound, n);
        sparse.prior.mean = vec![0.0; n];
        let mut same = sparse.clone();
        sparse.prior.covariance = Covariance::Precision(Precision {
            matrix: matrix.clone(),
            null_space: None,
            log_determinant: None,
        });
        same.prior.covariance = Covariance::Dense(invert(&dense));
        same_fit(likelihood.name(), &converged(&sparse), &converged(&same));
    }
}

#[test]
fn many_independent_effects_are_as_many_small_models() {
    let groups = 600;
    let variance = |g: usize| 0.2 + noise(g);
    let counts: Vec<f64> = (0..2 * groups)
        .map(|i| response(Likelihood::poisson(), i))
        .collect();
    let model = |groups: std::ops::Range<usize>| LatentModel {
        prior: Structure {
            mean: vec![0.1; groups.len()],
            covariance: Covariance::Diagonal(groups.clone().map(variance).collect()),
        },
        design: Design::Select((0..2 * groups.len()).map(|i| i / 2).collect()),
        likelihood: Likelihood::poisson(),
        bound: SiteBound::Exact,
        observations: Observations::new(counts[2 * groups.start..2 * groups.end].to_vec()),
    };
    let whole = converged(&model(0..groups));
    let parts: Vec<Fit> = (0..groups).map(|g| converged(&model(g..g + 1))).collect();
    let sum: f64 = parts.iter().map(|p| p.bound).sum();
    assert!((whole.bound - sum).abs() < 1e-8 * sum.abs());
    let by_variance = |fit: &Fit| match &fit.sensitivity.as_ref().unwrap().covariance {
        CovarianceSensitivity::Diagonal(g) => g.clone(),
        other => panic!("{other:?}"),
    };
    let all = by_variance(&whole);
    for (g, part) in parts.iter().enumerate() {
        close("mean", &whole.mean[g..=g], &part.mean, 1e-5);
        close("variance", &whole.variance[g..=g], &part.variance, 1e-5);
        close("by variance", &all[g..=g], &by_variance(part), 1e-4);
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
    let mut intrinsic = model(Likelihood::poisson(), SiteBound::Exact, n);
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
    // Along the null space, the density of the proper prior is that of N(0, 1/ridge).
    let level = 0.5 * (ridge / (2.0 * std::f64::consts::PI)).ln();
    assert!((limit.bound - (fit.bound - level)).abs() < 1e-4);
    // This compares the solver's determinant with its closed form, the product of the chain's non-zero eigenvalues.
    let log_determinant: f64 = (1..n)
        .map(|k| (6.0 * (1.0 - (std::f64::consts::PI * k as f64 / n as f64).cos())).ln())
        .sum();
    if let Covariance::Precision(q) = &mut intrinsic.prior.covariance {
        q.log_determinant = Some(log_determinant);
    }
    assert!((converged(&intrinsic).bound - limit.bound).abs() < 1e-10);
}

#[test]
fn all_solvers_of_a_bound_meet() {
    for (likelihood, bound) in sites() {
        let what = format!("{} {}", likelihood.name(), bound.name());
        let wide = model(likelihood, bound, 8);
        let mut narrow = wide.clone();
        let rows = wide.predictors();
        narrow.design =
            Design::Dense(Dense::from_fn(rows, 3, |i, j| noise(i + 10 * j) - 0.2).into());
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
                // The coordinates (m, λ) are so badly conditioned that the last digits need thousands of steps.
                let settings = Settings {
                    solver,
                    tolerance: 1e-7,
                    ..tight()
                };
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
