//! Compares constrained copies of fields with dense generalised inverses, and recovers a simulated table over space and time.

use jensen_latent::prior::{Assembled, Level, Spec, Units, assemble};
use jensen_latent::{
    Covariance, Dense, Design, LatentModel, LearnSettings, Likelihood, Observations, SiteBound,
    Structure, learn,
};
use jensen_math::rng::{Purpose, Stream};
use jensen_math::special::inv_phi;
use jensen_run::{Budget, Control, Silent};

use crate::assemble::TestTable;
use crate::common::{close, converged, identity, invert, noise};

/// A row for each of 7 nodes and 6 years, with repeated and missing cells.
fn cells() -> (Vec<f64>, Vec<f64>) {
    let all = (0..42).filter(|k| k % 5 != 3).chain([0, 17, 41]);
    all.map(|k| (f64::from(k % 7), f64::from(2000 + k / 7)))
        .unzip()
}

fn made(prior: &str, table: &TestTable, count: usize) -> Result<Assembled, String> {
    let rows: Vec<usize> = (0..count).collect();
    let spec = Spec::parse(prior).unwrap();
    assemble(&spec, table, &rows, Units::TABLE).map_err(|e| e.to_string())
}

/// The generalised inverse of DᵀD, where D contains the differences of this order.
fn inverse_of_differences(n: usize, order: usize) -> Dense {
    let weights: &[f64] = match order {
        1 => &[-1.0, 1.0],
        _ => &[1.0, -2.0, 1.0],
    };
    let mut structure = Dense::zeros(n, n);
    for first in 0..n - order {
        for (a, x) in weights.iter().enumerate() {
            for (b, y) in weights.iter().enumerate() {
                structure.data[(first + b) * n + first + a] += x * y;
            }
        }
    }
    let middle = (n as f64 - 1.0) / 2.0;
    let slope: f64 = (0..n).map(|i| (i as f64 - middle).powi(2)).sum();
    let flat = Dense::from_fn(n, n, |i, j| {
        let level = 1.0 / n as f64;
        match order {
            1 => level,
            _ => level + (i as f64 - middle) * (j as f64 - middle) / slope,
        }
    });
    let sum = Dense::from_fn(n, n, |i, j| structure.get(i, j) + flat.get(i, j));
    let inverse = invert(&sum);
    Dense::from_fn(n, n, |i, j| inverse.get(i, j) - flat.get(i, j))
}

/// The covariance of constrained copies is the Kronecker product of generalised inverses, for all types of interactions.
#[test]
fn constrained_copies_have_the_product_of_generalised_inverses() {
    let (nodes, years) = cells();
    let rows = nodes.len();
    let table = TestTable::default().with("t", &nodes).with("year", &years);
    let correlation =
        |n: usize, rho: f64| Dense::from_fn(n, n, |i, j| rho.powi((i as i32 - j as i32).abs()));
    let independent = Dense::from_fn(6, 6, |i, j| f64::from(i == j));
    let walks = [1, 2].map(|order| inverse_of_differences(6, order));
    for (single, theta, within) in [
        ("rw1(on=t", vec![0.7], inverse_of_differences(7, 1)),
        ("rw2(on=t", vec![0.7], inverse_of_differences(7, 2)),
        ("ar1(on=t", vec![0.4, 1.0 / 0.7], correlation(7, 0.4)),
    ] {
        for (model, between) in [
            ("iid", &independent),
            ("rw1", &walks[0]),
            ("rw2", &walks[1]),
        ] {
            let prior = format!("{single}, group=year, group_model={model})");
            let found = made(&prior, &table, rows).unwrap();
            assert_eq!(found.notes, Vec::<String>::new());
            let at = |x: f64, y: f64| (x as usize, y as usize - 2000);
            let covariance = Dense::from_fn(rows, rows, |i, j| {
                let ((s, t), (u, v)) = (at(nodes[i], years[i]), at(nodes[j], years[j]));
                within.get(s, u) * between.get(t, v) / 0.7
            });
            let y: Vec<f64> = (0..rows).map(noise).collect();
            let sparse = LatentModel {
                prior: found.prior().structure(&theta).unwrap(),
                design: found.design(),
                likelihood: Likelihood::gaussian(0.3),
                bound: SiteBound::Exact,
                observations: Observations::new(y),
            };
            // The covariance is singular, so the dense model has a part of the noise.
            let exact = LatentModel {
                prior: Structure {
                    mean: vec![0.0; rows],
                    covariance: Covariance::Dense(Dense::from_fn(rows, rows, |i, j| {
                        covariance.get(i, j) + if i == j { 0.1 } else { 0.0 }
                    })),
                },
                design: Design::Identity,
                likelihood: Likelihood::gaussian(0.2),
                ..sparse.clone()
            };
            let (fit, wanted) = (converged(&sparse), converged(&exact));
            close("evidence", &[fit.bound], &[wanted.bound], 1e-7);
            let residual = Dense::from_fn(rows, rows, |i, j| {
                covariance.get(i, j) + if i == j { 0.3 } else { 0.0 }
            });
            let inverse = invert(&residual);
            let weights: Vec<f64> = (0..rows)
                .map(|i| {
                    let own = &sparse.observations.response;
                    (0..rows).map(|j| inverse.get(i, j) * own[j]).sum()
                })
                .collect();
            let mean: Vec<f64> = (0..rows)
                .map(|i| (0..rows).map(|j| covariance.get(i, j) * weights[j]).sum())
                .collect();
            close("mean", &fit.predictor_mean, &mean, 1e-7);
            let variance: Vec<f64> = (0..rows)
                .map(|i| {
                    let explained: f64 = (0..rows)
                        .flat_map(|j| (0..rows).map(move |k| (j, k)))
                        .map(|(j, k)| {
                            covariance.get(i, j) * inverse.get(j, k) * covariance.get(k, i)
                        })
                        .sum();
                    covariance.get(i, i) - explained
                })
                .collect();
            close("variance", &fit.predictor_variance, &variance, 1e-7);
        }
    }
}

/// The sums of an interaction over a year and over a node are 0 at every draw, so at the mean of the posterior.
#[test]
fn interactions_sum_to_zero() {
    let (nodes, years) = cells();
    let rows = nodes.len();
    let table = TestTable::default()
        .with("t", &nodes)
        .with("s", &nodes)
        .with("year", &years);
    let prior = "rw1(on=t, group=year, group_model=rw1)";
    let found = made(prior, &table, rows).unwrap();
    let model = LatentModel {
        prior: found.prior().structure(&[0.7]).unwrap(),
        design: found.design(),
        likelihood: Likelihood::poisson(),
        bound: SiteBound::Exact,
        observations: Observations::new((0..rows).map(|i| (5.0 * noise(i)).floor()).collect()),
    };
    let fit = converged(&model);
    let (all_nodes, all_years): (Vec<f64>, Vec<f64>) = (0..42)
        .map(|k| (f64::from(k % 7), f64::from(2000 + k / 7)))
        .unzip();
    let everywhere = TestTable::default()
        .with("t", &all_nodes)
        .with("year", &all_years);
    let (query, _) = found
        .query(&[0.7], &everywhere, &(0..42).collect::<Vec<_>>())
        .unwrap();
    let new = jensen_latent::predict(&model, &fit.warm(), &query).unwrap();
    let mean = |k: usize| new[k].0;
    assert!((0..42).any(|k| mean(k).abs() > 0.05));
    for year in 0..6 {
        let sum: f64 = (0..7).map(|node| mean(7 * year + node)).sum();
        assert!(sum.abs() < 1e-12, "{year}: {sum}");
    }
    for node in 0..7 {
        let sum: f64 = (0..6).map(|year| mean(7 * year + node)).sum();
        assert!(sum.abs() < 1e-12, "{node}: {sum}");
    }
}

/// An interaction alone cannot absorb a shift of the responses, so they are not centred.
#[test]
fn interactions_have_no_level() {
    for (model, level) in [
        ("ar1", Level::Free),
        ("iid", Level::None),
        ("rw2", Level::None),
    ] {
        let prior = format!("rw1(on=t, group=year, group_model={model})");
        assert_eq!(Level::of(&Spec::parse(&prior).unwrap()), level, "{model}");
        let sum = format!("{prior} + rw1(on=t)");
        assert_eq!(Level::of(&Spec::parse(&sum).unwrap()), Level::Free);
    }
}

#[test]
fn interactions_have_their_derivatives() {
    let (nodes, years) = cells();
    let table = TestTable::default().with("t", &nodes).with("year", &years);
    for (prior, theta) in [
        ("rw1(on=t, group=year, group_model=iid)", vec![0.8]),
        ("rw1(on=t, group=year, group_model=rw1)", vec![0.8]),
        ("ar1(on=t, group=year, group_model=rw2)", vec![0.4, 1.3]),
        (
            "intercept() + rw1(on=t) + rw1(on=year) + rw1(on=t, group=year, group_model=rw1)",
            vec![0.8, 0.7, 1.3],
        ),
    ] {
        let found = made(prior, &table, nodes.len()).unwrap();
        crate::prior::check_gradient(found.prior(), &theta);
    }
}

#[test]
fn mistakes_of_interactions_name_the_way_out() {
    let (nodes, years) = cells();
    let uneven: Vec<f64> = nodes.iter().map(|t| t * t + 0.1 * t).collect();
    let table = TestTable::default()
        .with("t", &nodes)
        .with("u", &uneven)
        .with(
            "two",
            &years
                .iter()
                .map(|y| f64::from(*y > 2002.0))
                .collect::<Vec<_>>(),
        )
        .with("year", &years);
    for (prior, message) in [
        (
            "rw1(on=t, group=year, group_model=rw1, group_rho=0.5)",
            "only `ar1` and `exchangeable` copies",
        ),
        (
            "rw1(on=u, group=year, group_model=rw1)",
            "the values of `u` are uneven",
        ),
        (
            "te(on=(t, u), basis=4, group=year, group_model=rw1)",
            "its flat directions cannot be constrained",
        ),
        ("rw1(on=t, group=two, group_model=rw2)", "at least"),
    ] {
        let error = made(prior, &table, nodes.len()).err().unwrap();
        assert!(error.contains(message), "{prior}: {error}");
    }
}

/// A table over 25 regions along a line and 12 years: main effects of both, an interaction of type IV with the precision 8
/// and noise with the standard deviation 0.1. The true values of the hyperparameter and of the interaction are recovered.
#[test]
fn an_interaction_of_space_and_time_is_recovered() {
    let (regions, times) = (25, 12);
    let mut stream = Stream::new(6, Purpose::new("interactions"), 0, 0);
    let mut normal = || inv_phi(stream.uniform());
    // The sums of independent increments in both directions, minus the means of rows and columns.
    let mut interaction = vec![vec![0.0; regions]; times];
    for t in 0..times {
        for s in 0..regions {
            let increment = normal() / 8f64.sqrt();
            interaction[t][s] = match (t, s) {
                (0, _) | (_, 0) => 0.0,
                _ => {
                    increment + interaction[t - 1][s] + interaction[t][s - 1]
                        - interaction[t - 1][s - 1]
                }
            };
        }
    }
    let mean_of_time: Vec<f64> = (interaction.iter())
        .map(|row| row.iter().sum::<f64>() / regions as f64)
        .collect();
    let mean_of_region: Vec<f64> = (0..regions)
        .map(|s| interaction.iter().map(|row| row[s]).sum::<f64>() / times as f64)
        .collect();
    let mean = mean_of_time.iter().sum::<f64>() / times as f64;
    let (mut s, mut t, mut y, mut truth) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (time, row) in interaction.iter().enumerate() {
        for (region, value) in row.iter().enumerate() {
            let own = value - mean_of_time[time] - mean_of_region[region] + mean;
            let main = 1.0 + (region as f64 / 4.0).sin() + 0.2 * time as f64;
            s.push(region as f64);
            t.push(time as f64);
            truth.push(main + own);
            y.push(main + own + 0.1 * normal());
        }
    }
    let table = TestTable::default().with("s", &s).with("t", &t);
    let prior =
        "intercept(variance=100) + rw1(on=s) + rw1(on=t) + rw1(on=s, group=t, group_model=rw1)";
    let found = made(prior, &table, y.len()).unwrap();
    let start: Vec<f64> = found.prior().parameters().iter().map(|p| p.start).collect();
    let model = LatentModel {
        prior: found.prior().structure(&start).unwrap(),
        design: found.design(),
        likelihood: Likelihood::gaussian(0.01),
        bound: SiteBound::Exact,
        observations: Observations::new(y),
    };
    let settings = LearnSettings {
        priors: false,
        ..LearnSettings::default()
    };
    let clock = || 0.0;
    let mut silent = Silent;
    let mut control = Control::new(Budget::iterations(300), &clock, &mut silent);
    let learned = learn(found.prior(), &model, &settings, &identity(), &mut control).unwrap();
    assert!(learned.status.is_converged(), "{}", learned.status);
    // With 264 increments, the standard error of the logarithm of the precision is about 0.1.
    let precision = learned.theta[2];
    assert!((precision / 8.0).ln().abs() < 0.3, "{precision}");
    let away = |own: &[f64]| {
        let squares = own.iter().zip(&truth).map(|(a, b)| (a - b) * (a - b));
        (squares.sum::<f64>() / truth.len() as f64).sqrt()
    };
    let error = away(&learned.fit.predictor_mean);
    assert!(error < 0.1 && error > 0.05, "{error}");
}
