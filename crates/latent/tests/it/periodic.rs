//! Compares periodic kernels with their definitions.

use std::f64::consts::PI;

use jensen_latent::prior::{Assembled, Spec, Units, assemble};
use jensen_latent::{
    Covariance, Dense, LatentModel, Likelihood, Observations, Query, SiteBound, predict,
};

use crate::assemble::TestTable;
use crate::common::{close, converged, noise};

const UNITS: Units = Units {
    response: 1.0,
    scaled: true,
    centred: true,
};

fn times(n: usize) -> Vec<f64> {
    (0..n).map(|i| 2000.0 + 9.0 * noise(i)).collect()
}

fn made(prior: &str, x: &[f64]) -> Result<Assembled, String> {
    let table = TestTable::default().with("t", x).with("z", &times(x.len()));
    let rows: Vec<usize> = (0..x.len()).collect();
    assemble(&Spec::parse(prior).unwrap(), &table, &rows, UNITS).map_err(|e| e.to_string())
}

fn covariance(prior: &str, theta: &[f64], x: &[f64]) -> Dense {
    match made(prior, x)
        .unwrap()
        .prior()
        .structure(theta)
        .unwrap()
        .covariance
    {
        Covariance::Dense(sigma) => sigma,
        other => panic!("{other:?}"),
    }
}

#[test]
fn kernels_follow_their_definitions() {
    let x = times(15);
    let (variance, length, period) = (1.7, 0.6, 2.5);
    let waves = |i: usize, j: usize| -2.0 * ((PI * (x[i] - x[j]) / period).sin() / length).powi(2);
    let theta = [variance, length];
    let found = covariance("gp(periodic, on=t, period=2.5)", &theta, &x);
    let expected = Dense::from_fn(15, 15, |i, j| variance * waves(i, j).exp());
    close("periodic", &found.data, &expected.data, 1e-10);
    // A shift of the column turns the circle, and a scale of the column and the period changes nothing.
    let moved: Vec<f64> = x.iter().map(|x| 3e5 + 7.0 * x).collect();
    let found = covariance("gp(periodic, on=t, period=17.5)", &theta, &moved);
    close("units", &found.data, &expected.data, 1e-9);
    let found = covariance("gp(cosine, on=t, period=2.5)", &[variance], &x);
    let expected = Dense::from_fn(15, 15, |i, j| {
        variance * (2.0 * PI * (x[i] - x[j]) / period).cos()
    });
    close("cosine", &found.data, &expected.data, 1e-10);
    let found = covariance(
        "gp(periodic, on=t, period=2.5, variance=1.7) * gp(rbf, on=t, lengthscale=3)",
        &[length],
        &x,
    );
    let expected = Dense::from_fn(15, 15, |i, j| {
        variance * (waves(i, j) - 0.5 * ((x[i] - x[j]) / 3.0).powi(2)).exp()
    });
    close("product", &found.data, &expected.data, 1e-10);
}

#[test]
fn the_next_period_is_predicted() {
    let x = times(60);
    let y: Vec<f64> = x
        .iter()
        .map(|x| (2.0 * PI * x).sin() + 0.1 * noise((1e3 * x) as usize))
        .collect();
    for prior in [
        "gp(periodic, on=t, period=1)",
        "svgp(periodic, on=t, period=1, inducing=20)",
    ] {
        let made = made(prior, &x).unwrap();
        let theta = [1.0, 1.0];
        let model = LatentModel {
            prior: made.prior().structure(&theta).unwrap(),
            design: made.prior().design(&theta, &made.design()).unwrap(),
            likelihood: Likelihood::gaussian(0.01),
            bound: SiteBound::Exact,
            observations: Observations::new(y.clone()),
        };
        let fit = converged(&model);
        let ahead = TestTable::default()
            .with("t", &[2040.25, 2040.75])
            .with("z", &[0.0, 0.0]);
        let (query, _): (Query, _) = made.query(&theta, &ahead, &[0, 1]).unwrap();
        let found = predict(&model, &fit.warm(), &query).unwrap();
        for ((mean, variance), expected) in found.into_iter().zip([1.05, -0.95]) {
            assert!(
                (mean - expected).abs() < 0.08,
                "{prior}: {mean} and {expected}"
            );
            assert!(variance < 0.01, "{prior}: {variance}");
        }
    }
}

#[test]
fn mistakes_name_the_way_out() {
    let x = times(9);
    for (prior, message) in [
        ("gp(periodic, on=t)", "as in `period=12`"),
        ("gp(rbf, on=t, period=12)", "the kernel `rbf` has no period"),
        ("gp(periodic, on=t, period=-1)", "must be positive"),
        (
            "gp(periodic, ard, on=(t, z), period=1)",
            "has one lengthscale",
        ),
        (
            "gp(cosine, on=t, period=2, lengthscale=1)",
            "has no lengthscale",
        ),
        (
            "hsgp(periodic, on=t)",
            "choose one of rbf, matern32, matern52",
        ),
    ] {
        let error = made(prior, &x).err().unwrap();
        assert!(error.contains(message), "{prior}: {error}");
    }
}
