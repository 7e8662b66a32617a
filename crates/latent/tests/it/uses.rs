//! Tests of prediction, learning, resumption, determinism, and inputs that are refused.

use crate::common::{
    as_precision, close, converged, field, identity, kernel, model, noise, run, tight,
};
use jensen_latent::{
    Covariance, CovarianceSensitivity, Dense, Design, Error, LatentModel, LearnSettings,
    Likelihood, Observations, Parameter, Precision, Prior, PriorDensity, Query, Range, Sensitivity,
    Settings, SiteBound, Solver, Sparse, Structure, fit, learn, predict,
};
use jensen_run::{Budget, Control, Silent};

#[test]
fn wrong_models_are_refused_with_advice() {
    let refused = |change: &dyn Fn(&mut LatentModel), needle: &str| {
        let mut model = model(Likelihood::poisson(), SiteBound::Exact, 6);
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
    refused(&|m| m.bound = SiteBound::Tilted, "choose exact");
    refused(&|m| m.likelihood = Likelihood::bernoulli(), "needs 0 or 1");
    refused(
        &|m| m.design = Design::Select(vec![0, 1, 2, 3, 4, 9]),
        "refers to latent variable 10",
    );
    refused(
        &|m| m.observations.size = Some(vec![-1.0; 6]),
        "exposure 1 is -1, but must be positive",
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
    let mut model = model(Likelihood::bernoulli(), SiteBound::Tilted, 6);
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
    model.likelihood = Likelihood::student_t(4.0, 1.0);
    model.bound = SiteBound::Exact;
    let fit = converged(&model);
    assert!(
        fit.notes.iter().any(|n| n.contains("added")),
        "{:?}",
        fit.notes
    );
}

/// Compares predictions at two new locations with the posterior of a model in which these are latent variables without
/// observations.
#[test]
fn predictions_agree_with_a_larger_model() {
    let (n, extra) = (7, 2);
    for (likelihood, bound) in [
        (Likelihood::poisson(), SiteBound::Exact),
        (Likelihood::bernoulli(), SiteBound::Tilted),
        (Likelihood::student_t(4.0, 0.5), SiteBound::Exact),
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
        for (k, (mean, variance)) in new.into_iter().enumerate() {
            let what = format!("{} {k}", likelihood.name());
            close(&what, &[mean], &[expected.mean[n + k]], 1e-6);
            close(&what, &[variance], &[expected.variance[n + k]], 1e-6);
        }
        // These are combinations of existing latent variables, in every regime.
        let rows =
            Design::Dense(Dense::from_fn(3, n + extra, |i, j| noise(4 * i + j) - 0.4).into());
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
        narrow.observations.size = None;
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

struct Smooth(usize);

impl Prior for Smooth {
    fn parameters(&self) -> Vec<Parameter> {
        let positive = |name: &str, start| Parameter {
            name: name.to_owned(),
            start,
            range: Range::Positive,
            density: PriorDensity::Flat,
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
    let mut template = model(Likelihood::gaussian(0.3), SiteBound::Exact, n);
    template.observations = Observations::new(
        (0..n)
            .map(|i| 2.0 * (0.4 * i as f64).sin() + 0.8 * (noise(5 * i) - 0.5))
            .collect(),
    );
    let settings = LearnSettings {
        likelihood: vec![(0, PriorDensity::Flat)],
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
        model.likelihood = Likelihood::gaussian(variance);
        converged(&model).bound
    };
    let variance = learned.likelihood.values()[0];
    let best = bound(&learned.theta, variance);
    assert!((best - learned.fit.bound).abs() < 1e-6);
    for factor in [0.97, 1.03] {
        let t = &learned.theta;
        assert!(bound(&[t[0] * factor, t[1]], variance) < best);
        assert!(bound(&[t[0], t[1] * factor], variance) < best);
        assert!(bound(t, variance * factor) < best);
    }
    // A resumed search must be bitwise identical to a search that was never stopped.
    let middle = jensen_run::Checkpoint::decode(&checkpoints[2]).unwrap();
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
    let mut fixed = model(Likelihood::bernoulli(), SiteBound::Exact, 30);
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
        let middle = jensen_run::Checkpoint::decode(&checkpoints[1]).unwrap();
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
        model(Likelihood::bernoulli(), SiteBound::Exact, 80),
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
