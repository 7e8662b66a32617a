//! Comparisons of cooling policies with plain fits, and tests of parts that became equal.

use super::*;

/// Draws points of clusters with standard deviation 1, whose centres are `apart` from each other. Cluster k has the
/// share `shares[k]` of the points.
fn clusters(n: usize, dim: usize, shares: &[f64], apart: f64) -> Vec<f64> {
    let mut s = stream(11);
    let mut data = Vec::new();
    for _ in 0..n {
        let mut u = s.uniform();
        let which = shares.iter().position(|share| {
            u -= share;
            u < 0.0
        });
        let which = which.unwrap_or(shares.len() - 1);
        for d in 0..dim {
            let position = if d == 0 {
                which
            } else {
                which * (which + d) % shares.len()
            };
            data.push(apart * position as f64 + crate::draws::normal(&mut s));
        }
    }
    data
}

/// Compares cooled fits of a model with plain fits from the same start. Cooled batch fits must never be worse. Because
/// of noise, minibatch fits move between optima, so a cooled minibatch fit may fall below the worse plain fit by at
/// most `slack`. No two components may be equal.
fn cooling_parts_them<M: ConjugateModel>(what: &str, model: &M, slack: f64) {
    let batch = Mode::Batch {
        tolerance: 1e-7,
        max_iterations: 1000,
    };
    let stochastic = Mode::Stochastic {
        batch: 20,
        tau: 1.0,
        kappa: 0.7,
        passes: 60.0,
        population: None,
        steps_before: 0,
    };
    for seed in 0..3 {
        let (whole, _) = ended(model, Temper::None, batch.clone(), seed);
        for (mode, passes, slack) in [(&batch, 50, 1e-5), (&stochastic, 2, slack)] {
            let (plain, _) = ended(model, Temper::None, mode.clone(), seed);
            let plain = plain.min(whole);
            for policy in ["anneal", "global", "local"] {
                let temper: Temper = format!("{policy}={passes}").parse().unwrap();
                let (cooled, twins) = ended(model, temper, mode.clone(), seed);
                assert!(
                    cooled >= plain - slack * plain.abs() && twins == 0,
                    "{what} {policy}={passes}, seed {seed}: {cooled} against {plain}, {twins} twins"
                );
            }
        }
    }
}

#[test]
fn cooled_gaussians_come_apart() {
    for covariance in [Covariance::Full, Covariance::Diagonal] {
        for (dim, shares) in [
            (1, &[0.3, 0.7][..]),
            (1, &[0.3, 0.3, 0.4]),
            (2, &[0.2, 0.2, 0.2, 0.2, 0.2]),
        ] {
            let data = clusters(300, dim, shares, 6.4);
            let model = Mixture::new(Gaussians::new(covariance, dim, data), shares.len(), 1.0);
            let what = format!("{covariance:?} {}", shares.len());
            cooling_parts_them(&what, &model, 0.01);
        }
    }
}

#[test]
fn stochastic_fits_part_twins() {
    // Two components of the plain fit from this start would share two clusters as one.
    let data = clusters(300, 1, &[0.3, 0.3, 0.4], 6.4);
    let model = Mixture::new(Gaussians::new(Covariance::Full, 1, data), 3, 1.0);
    let mut engine = Pointwise::new(&model);
    let mut globals = engine.start(0);
    let parts = model.parts();
    globals.lambda.copy_within(parts[1].clone(), parts[2].start);
    assert_eq!(twins(&model, &globals.lambda), [(1, 2)]);
    let all: Vec<usize> = (0..300).collect();
    let settings = settings(
        Temper::None,
        Mode::Stochastic {
            batch: 20,
            tau: 1.0,
            kappa: 0.7,
            passes: 30.0,
            population: None,
            steps_before: 0,
        },
    );
    let measure = crate::engine::Measure::default();
    for _ in 0..20 {
        engine.local_steps(
            &mut globals,
            &all,
            &crate::engine::Heat::Uniform(1.0),
            measure,
        );
        engine.global_step(&mut globals, 1.0, 1.0);
    }
    assert_eq!(twins(&model, &globals.lambda), [(1, 2)]);
    let mut driver = Driver::starting_at(engine, settings, globals);
    let mut silent = Silent;
    let clock = || 0.0;
    let mut control = Control::new(Budget::iterations(u64::MAX), &clock, &mut silent);
    let identity = crate::fit::identity(&model, &driver_settings(), "");
    let found = jensen_run::run(&mut driver, &identity, &mut control)
        .unwrap()
        .output
        .unwrap();
    assert_eq!(twins(&model, &found.globals.lambda), []);
    let (best, _) = ended(&model, Temper::None, batch(), 0);
    let bound = crate::pointwise::untempered_bound(&model, &found.globals);
    assert!(bound > best - 5.0, "{bound} {best}");
}

fn driver_settings() -> DriverSettings {
    settings(Temper::None, batch())
}

#[test]
fn cooled_models_of_every_kind_come_apart() {
    cooling_parts_them(
        "bernoulli",
        &Mixture::new(Bernoullis::new(12, bits(200, 12)), 2, 1.0),
        0.01,
    );
    cooling_parts_them(
        "multinomial",
        &Mixture::new(Multinomials::new(12, 0.5, counts(200, 12)), 2, 1.0),
        0.01,
    );
    let emissions = Gaussians::new(Covariance::Diagonal, 1, clusters(300, 1, &[0.3, 0.7], 6.4));
    let starts = (0..=30).map(|i| 10 * i).collect();
    cooling_parts_them(
        "chain",
        &HiddenMarkov::new(emissions, starts, 2, 1.0).unwrap(),
        0.01,
    );
}

#[test]
fn cooled_factors_come_apart() {
    cooling_parts_them("factors", &factors(200), 0.01);
    cooling_parts_them("lines", &lines(200), 0.01);
}

#[test]
fn parts_that_are_the_same_are_reported() {
    let model = Mixture::new(
        Gaussians::new(Covariance::Diagonal, 1, clusters(600, 1, &[0.5, 0.5], 6.0)),
        3,
        1.0,
    );
    let mut lambda = model.start(&mut stream(5));
    assert_eq!(twins(&model, &lambda), []);
    let parts = model.parts();
    lambda.copy_within(parts[0].clone(), parts[2].start);
    assert_eq!(twins(&model, &lambda), [(0, 2)]);
    // The same is true if one component explains twice as many points.
    let ratio = |lambda: &mut [f64], share: f64| {
        for i in 0..parts[2].len() {
            let (from, prior) = (
                parts[0].start + i,
                model.blocks().prior()[parts[0].start + i],
            );
            lambda[parts[2].start + i] = prior + share * (lambda[from] - prior);
        }
    };
    ratio(&mut lambda, 2.0);
    assert_eq!(twins(&model, &lambda), [(0, 2)]);
    // Components without points are equal but do not count as twins.
    let prior = model.blocks().prior()[parts[0].clone()].to_vec();
    for part in [0, 2] {
        lambda[parts[part].clone()].copy_from_slice(&prior);
    }
    assert_eq!(twins(&model, &lambda), []);
}

#[test]
fn clusters_far_from_the_origin_are_no_twins() {
    let far: Vec<f64> = (0..200)
        .map(|i| 1e6 + f64::from(i % 2) * 8.0 + crate::draws::normal(&mut stream(100 + i as u64)))
        .collect();
    for covariance in [Covariance::Full, Covariance::Diagonal] {
        let model = Mixture::new(Gaussians::new(covariance, 1, far.clone()), 2, 1.0);
        let (_, twins) = ended(&model, "anneal=50".parse().unwrap(), batch(), 1);
        assert_eq!(twins, 0, "{covariance:?}");
    }
}

#[test]
fn a_hot_end_is_mended_by_flags() {
    let remedy = |policy: &str, planned: f64| {
        let length = Length {
            planned,
            cooling: 0.5,
            flag: "--passes",
        };
        policy.parse::<Temper>().unwrap().remedy(&length)
    };
    assert!(remedy("local", 2.0).contains("`--temper local=0.5`"));
    assert!(remedy("global", 0.7).contains("`--temper global=0.5 --passes 1`"));
    for policy in ["anneal=2", "global=2", "local=2"] {
        assert!(remedy(policy, 1.0).contains("`--passes 4`"), "{policy}");
    }
    let stays = Temper::Schedule(vec![(0.0, 3.0)]);
    assert_eq!(stays.cooled_after(), None);
    let cools = Temper::Schedule(vec![(0.0, 3.0), (1.0, 1.0)]);
    assert_eq!(cools.cooled_after(), Some(1.0));
}
