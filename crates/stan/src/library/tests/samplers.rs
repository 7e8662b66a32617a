//! Tests random numbers against their distributions.
//!
//! Seeds are fixed. Each comparison allows a deviation of five standard errors. A correct sampler exceeds this
//! deviation with probability 6·10⁻⁷. There are about 150 comparisons, so a new seed causes a false alarm with
//! probability 10⁻⁴.

use super::{last_count, parameters, random};
use crate::distributions::univariate;
use crate::functions::Keep;
use crate::functions::random::{Draws, RandomUse};
use crate::value::{Mat, Value};

const DRAWS: usize = 20_000;
const LIMIT: f64 = 5.0;

fn rng(seed: u64) -> Draws {
    Draws::new(seed, RandomUse::GeneratedQuantities, 0)
}

fn check_mean(what: &str, x: &[f64], expected: f64) {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    let z = (mean - expected) / (variance / n).sqrt();
    assert!(
        z.abs() < LIMIT,
        "{what}: mean {mean} instead of {expected} ({z:.1} standard errors)"
    );
}

#[test]
fn continuous_families() {
    for (i, family) in univariate()
        .filter(|f| !f.discrete && f.name != "wiener")
        .enumerate()
    {
        let (Some(sample), Some(tails)) = (family.sample, family.tails) else {
            panic!("{} has no sampler", family.name);
        };
        let p = parameters(family);
        let mut r = rng(i as u64);
        // P(X ≤ draw) is uniform on (0, 1).
        let u: Vec<f64> = (0..DRAWS / 4)
            .map(|_| {
                let x = sample(&mut r, &p);
                tails(&[&[x], &p[..]].concat()).lower.exp()
            })
            .collect();
        check_mean(family.name, &u, 0.5);
        let squares: Vec<f64> = u.iter().map(|u| u * u).collect();
        check_mean(family.name, &squares, 1.0 / 3.0);
        let low: Vec<f64> = u.iter().map(|u| f64::from(*u < 0.05)).collect();
        check_mean(family.name, &low, 0.05);
    }
}

#[test]
fn discrete_families() {
    for (i, family) in univariate().filter(|f| f.discrete).enumerate() {
        let Some(sample) = family.sample else {
            continue;
        };
        let p = parameters(family);
        let mut r = rng(100 + i as u64);
        let x: Vec<f64> = (0..DRAWS).map(|_| sample(&mut r, &p)).collect();
        let mass = |n: i32| {
            let x = [&[f64::from(n)], &p[..]].concat();
            (family.log_density)(Keep::ALL, &x).exp()
        };
        let mean: f64 = (0..=last_count(family.name))
            .map(|n| f64::from(n) * mass(n))
            .sum();
        check_mean(family.name, &x, mean);
        for n in 0..=last_count(family.name).min(3) {
            let p = mass(n);
            if p < 1e-3 {
                continue;
            }
            let hits: Vec<f64> = x.iter().map(|x| f64::from(*x == f64::from(n))).collect();
            check_mean(family.name, &hits, p);
        }
    }
}

fn spd() -> Mat<f64> {
    Mat::new(2, 2, vec![2.0, 0.6, 0.6, 0.9])
}

fn check_means(name: &str, args: &[Value], expected: &[f64]) {
    let mut r = rng(name.len() as u64);
    let draws: Vec<Vec<f64>> = (0..DRAWS)
        .map(|_| random(name, &mut r, args).numbers())
        .collect();
    for (k, e) in expected.iter().enumerate() {
        let x: Vec<f64> = draws.iter().map(|d| d[k]).collect();
        if x.iter().all(|v| v == e) {
            continue;
        }
        check_mean(&format!("{name} {k}"), &x, *e);
    }
}

#[test]
fn multivariate() {
    let v = |x: &[f64]| Value::Vector(x.to_vec());
    let m = Value::Matrix(spd());
    check_means(
        "dirichlet_rng",
        &[v(&[1.0, 0.3, 2.7])],
        &[0.25, 0.075, 0.675],
    );
    check_means(
        "multinomial_rng",
        &[v(&[0.2, 0.5, 0.3]), Value::Int(7)],
        &[1.4, 3.5, 2.1],
    );
    check_means(
        "multi_normal_rng",
        &[v(&[0.4, -1.0]), m.clone()],
        &[0.4, -1.0],
    );
    check_means(
        "wishart_rng",
        &[Value::Real(5.5), m.clone()],
        &[11.0, 3.3, 3.3, 4.95],
    );
    check_means(
        "inv_wishart_rng",
        &[Value::Real(9.0), m.clone()],
        &[2.0 / 6.0, 0.1, 0.1, 0.15],
    );
    check_means(
        "lkj_corr_rng",
        &[Value::Int(3), Value::Real(1.5)],
        &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0],
    );
    let logits = v(&[0.0, 1.0, -0.5]);
    let total = 1.0 + 1f64.exp() + (-0.5f64).exp();
    let mean = (1.0 + 2.0 * 1f64.exp() + 3.0 * (-0.5f64).exp()) / total;
    check_means("categorical_logit_rng", &[logits], &[mean]);
}

#[test]
fn second_moments() {
    let mut r = rng(7);
    let args = [Value::Vector(vec![0.0, 0.0]), Value::Matrix(spd())];
    let draws: Vec<Vec<f64>> = (0..DRAWS)
        .map(|_| random("multi_normal_rng", &mut r, &args).numbers())
        .collect();
    for (i, j, e) in [(0, 0, 2.0), (0, 1, 0.6), (1, 1, 0.9)] {
        let products: Vec<f64> = draws.iter().map(|d| d[i] * d[j]).collect();
        check_mean("multi_normal_rng", &products, e);
    }
    // Every correlation of an LKJ matrix is 2 Beta(b, b) − 1 with b = η + (K − 2) / 2: variance 1 / (2 b + 1).
    let args = [Value::Int(4), Value::Real(1.5)];
    let draws: Vec<Vec<f64>> = (0..DRAWS)
        .map(|_| random("lkj_corr_rng", &mut r, &args).numbers())
        .collect();
    for k in [1, 2, 3, 6, 7, 11] {
        let squares: Vec<f64> = draws.iter().map(|d| d[k] * d[k]).collect();
        check_mean("lkj_corr_rng", &squares, 1.0 / 6.0);
    }
}

#[test]
fn streams_depend_on_their_key_alone() {
    let draw = |seed, index| {
        let mut r = Draws::new(seed, RandomUse::GeneratedQuantities, index);
        (r.normal(), r.gamma(2.0), r.uniform())
    };
    assert_eq!(draw(1, 4), draw(1, 4));
    assert_ne!(draw(1, 4), draw(1, 5));
    assert_ne!(draw(1, 4), draw(2, 4));
}
