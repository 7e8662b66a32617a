//! Tests that the units of a table contain no information. Other origins and scales change the ELBO by the known
//! Jacobian and the predictions by the known map.
#![cfg(feature = "full")]

use std::path::PathBuf;

use jensen::data::{Cells, Column, Rows, Table};
use jensen::latent::{
    AnalysisData, AnalysisRequest, LatentRequest, LatentSummary, fit_analysis, fit_latent_in_memory,
};
use jensen::math::rng::{Purpose, Stream};
use jensen::math::simd::Simd;
use jensen::points::{
    ChainsRequest, Component, CovarianceShape, Emission, FactorsRequest, Globals, MixtureModel,
    MixtureRequest, Parts, PointRequest, Points, explain_chains, fit_chains, fit_factors,
    fit_mixture,
};
use jensen::units::Standardise;
use jensen::vae::{VaeData, VaeRequest, fit_vae};

use crate::common::alone;

fn normals(seed: u64, count: usize) -> Vec<f64> {
    let mut stream = Stream::new(seed, Purpose::new("tables of tests"), 0, 0);
    (0..count)
        .map(|_| jensen::math::special::inv_phi(stream.uniform()))
        .collect()
}

fn groups() -> (Vec<Vec<f64>>, Vec<f64>) {
    let noise = normals(1, 3 * 90);
    let column = |c: usize| -> Vec<f64> {
        let row = |n: usize| [0.0, 6.0, -6.0][(n / 30 + c) % 3] + noise[3 * n + c];
        (0..90).map(row).collect()
    };
    let columns: Vec<Vec<f64>> = (0..3).map(column).collect();
    let sd = |x: &Vec<f64>| {
        let mean = x.iter().sum::<f64>() / 90.0;
        (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 90.0).sqrt()
    };
    let sds = columns.iter().map(sd).collect();
    (columns, sds)
}

/// The origin, in standard deviations, and the scale of every column.
const UNITS: [[(f64, f64); 3]; 3] = [
    [(0.0, 1.0), (1e6, 1e-6), (-1e6, 1e6)],
    [(1e6, 1e6), (1e6, -1e6), (1e6, 1e6)],
    [(3.0, 1e-6), (-1e3, -2.5), (1e6, 1e-6)],
];

/// The columns in other units, the maps x → c + d x, and the sum Σ log |d|.
type Mapped = (Vec<Vec<f64>>, Vec<(f64, f64)>, f64);

fn mapped(columns: &[Vec<f64>], sds: &[f64], units: &[(f64, f64)]) -> Mapped {
    let maps: Vec<(f64, f64)> = units
        .iter()
        .zip(sds)
        .map(|((c, d), sd)| (c * sd * d.abs(), *d))
        .collect();
    let pairs = columns.iter().zip(&maps);
    let there = pairs.map(|(x, (c, d))| x.iter().map(|x| c + d * x).collect());
    let logs = maps.iter().map(|(_, d)| d.abs().ln()).sum();
    (there.collect(), maps.clone(), logs)
}

fn table(columns: &[Vec<f64>]) -> Table {
    let named = columns.iter().zip(["a", "b", "c", "d", "e", "f"]);
    let columns = named.map(|(x, name)| Column::new(name, Cells::Numbers(x.clone())));
    Table::new("memory", columns.collect()).unwrap()
}

fn points(columns: &[Vec<f64>]) -> Points {
    Points::of_table(&table(columns), &PointRequest::default()).unwrap()
}

/// The tolerance for values in standard deviations, and for the ELBO in nats. If the mean of a column is 10⁶ standard
/// deviations away from 0, ten significant digits of its variation remain.
const CLOSE: f64 = 1e-6;

fn near(x: f64, y: f64, scale: f64) {
    assert!((x - y).abs() <= CLOSE * scale, "{x} {y}");
}

#[test]
fn mixtures_do_not_depend_on_units() {
    let (columns, sds) = groups();
    for shape in [
        CovarianceShape::Full,
        CovarianceShape::Tied,
        CovarianceShape::Diagonal,
        CovarianceShape::Spherical,
    ] {
        let request = MixtureRequest {
            components: Some("3".parse().unwrap()),
            covariance: Some(shape),
            ..MixtureRequest::default()
        };
        let fit = |columns: &[Vec<f64>]| {
            let points = points(columns);
            let (made, summary) = alone(|around| fit_mixture(&request, &points, around)).unwrap();
            assert!(
                summary.judgement.trusted,
                "{:?}",
                summary.judgement.warnings
            );
            let seen = MixtureModel::decode(&made.kept)
                .unwrap()
                .explain(&points)
                .unwrap();
            (summary, seen)
        };
        let (own, seen) = fit(&columns);
        let Parts::Components(parts) = &own.parts else {
            panic!()
        };
        for units in &UNITS {
            let (there, maps, logs) = mapped(&columns, &sds, units);
            let (other, seen_there) = fit(&there);
            near(other.elbo.unwrap() + 90.0 * logs, own.elbo.unwrap(), 90.0);
            let plain = |summary: &jensen::points::PointsSummary| {
                summary.judgement.baseline.clone().unwrap().score
            };
            near(plain(&other) + 90.0 * logs, plain(&own), 90.0);
            for (x, y) in seen.bounds.iter().zip(&seen_there.bounds) {
                near(y + logs, *x, 1.0);
            }
            let Parts::Components(others) = &other.parts else {
                panic!()
            };
            // The groups have equal weights, so the order of the components may differ.
            let (origin, slope) = maps[0];
            let distance = |one: &Component, other: &Component| {
                (other.values()[0] - origin - slope * one.values()[0]).abs()
            };
            for one in parts {
                let nearer =
                    |a: &&Component, b: &&Component| distance(one, a).total_cmp(&distance(one, b));
                let other = others.iter().min_by(nearer).unwrap();
                let (
                    Component::Gaussian {
                        mean, covariance, ..
                    },
                    Component::Gaussian {
                        mean: mean_there,
                        covariance: there,
                        ..
                    },
                ) = (one, other)
                else {
                    panic!()
                };
                for c in 0..3 {
                    let ((o, d), sd) = (maps[c], sds[c]);
                    near(mean_there[c], o + d * mean[c], sd * d.abs());
                }
                let width = covariance.len() / 3;
                for at in 0..covariance.len() {
                    let (i, j) = if width == 1 {
                        (at, at)
                    } else {
                        (at / 3, at % 3)
                    };
                    let scale = maps[i].1 * maps[j].1;
                    near(
                        there[at],
                        scale * covariance[at],
                        (scale * sds[i] * sds[j]).abs(),
                    );
                }
            }
        }
    }
}

#[test]
fn chains_do_not_depend_on_units() {
    let (columns, sds) = groups();
    let request = ChainsRequest {
        states: Some("3".parse().unwrap()),
        ..ChainsRequest::default()
    };
    let fit = |columns: &[Vec<f64>]| {
        let points = points(columns);
        let (made, summary) = alone(|around| fit_chains(&request, &points, &[90], around)).unwrap();
        assert!(
            summary.judgement.trusted,
            "{:?}",
            summary.judgement.warnings
        );
        let globals = Globals::decode(&made.kept).unwrap();
        let seen = explain_chains(&request, &globals, &points, &[90]).unwrap();
        (summary, seen)
    };
    let (own, seen) = fit(&columns);
    let Parts::Chain(chain) = &own.parts else {
        panic!()
    };
    for units in &UNITS {
        let (there, maps, logs) = mapped(&columns, &sds, units);
        let (other, seen_there) = fit(&there);
        near(other.elbo.unwrap() + 90.0 * logs, own.elbo.unwrap(), 90.0);
        near(seen_there.bounds[0] + 90.0 * logs, seen.bounds[0], 90.0);
        for (x, y) in seen.assignments.iter().zip(&seen_there.assignments) {
            near(*x, *y, 1.0);
        }
        let Parts::Chain(others) = &other.parts else {
            panic!()
        };
        for (one, other) in chain.emissions.iter().zip(&others.emissions) {
            for c in 0..3 {
                let ((o, d), sd) = (maps[c], sds[c]);
                let there: &Emission = other;
                near(there.values()[c], o + d * one.values()[c], sd * d.abs());
            }
        }
    }
}

#[test]
fn binary_factors_depend_on_no_scale() {
    let bits = normals(3, 200 * 2);
    let noise = normals(4, 200 * 4);
    let weights = [[4.0, 0.0, 4.0, 1.0], [0.0, 5.0, 5.0, -2.0]];
    let column = |c: usize| -> Vec<f64> {
        let row = |n: usize| {
            let on = |k: usize| f64::from(bits[2 * n + k] > 0.5);
            on(0) * weights[0][c] + on(1) * weights[1][c] + 0.3 * noise[4 * n + c]
        };
        (0..200).map(row).collect()
    };
    let columns: Vec<Vec<f64>> = (0..4).map(column).collect();
    let fit = |scale: f64| {
        let there: Vec<Vec<f64>> = columns
            .iter()
            .map(|x| x.iter().map(|x| scale * x).collect())
            .collect();
        let request = FactorsRequest {
            factors: Some(2),
            noise_variance: Some(0.09 * scale * scale),
            ..FactorsRequest::default()
        };
        alone(|around| fit_factors(&request, &points(&there), around))
            .unwrap()
            .1
    };
    let own = fit(1.0);
    assert!(own.judgement.trusted, "{:?}", own.judgement.warnings);
    for scale in [1e-6, 1e6] {
        let other = fit(scale);
        near(
            other.elbo.unwrap() + 800.0 * f64::ln(scale),
            own.elbo.unwrap(),
            800.0,
        );
        let (Parts::Factors(here), Parts::Factors(there)) = (&own.parts, &other.parts) else {
            panic!()
        };
        for (x, y) in here.concat().iter().zip(there.concat()) {
            near(y, scale * x, 5.0 * scale);
        }
    }
    // Columns with another origin are not sums of factors. The fit reports this.
    let far: Vec<Vec<f64>> = columns
        .iter()
        .map(|x| x.iter().map(|x| x + 1e4).collect())
        .collect();
    let request = FactorsRequest {
        factors: Some(2),
        noise_variance: Some(0.09),
        ..FactorsRequest::default()
    };
    let far = alone(|around| fit_factors(&request, &points(&far), around))
        .unwrap()
        .1;
    assert!(!far.judgement.trusted);
    let said = far.judgement.warnings.join(" ");
    assert!(
        said.contains("independent normal columns, scores higher than the fit"),
        "{said}"
    );
}

#[test]
fn factor_analysis_does_not_depend_on_units() {
    let (scores, noise) = (normals(5, 150), normals(6, 150 * 3));
    let column = |c: usize| -> Vec<f64> {
        let row = |n: usize| [1.0, -0.8, 0.6][c] * scores[n] + 0.4 * noise[3 * n + c];
        (0..150).map(row).collect()
    };
    let columns: Vec<Vec<f64>> = (0..3).map(column).collect();
    let request = AnalysisRequest {
        factors: Some(1),
        ..AnalysisRequest::default()
    };
    let fit = |columns: &[Vec<f64>]| {
        let data = AnalysisData::of_table(&table(columns)).unwrap();
        let summary = alone(|around| fit_analysis(&request, &data, around)).unwrap();
        assert!(
            summary.judgement.trusted,
            "{:?}",
            summary.judgement.warnings
        );
        // The iterations start at the solution of principal component analysis, which has a closed form.
        assert!(summary.iterations < 60, "{}", summary.iterations);
        summary
    };
    let own = fit(&columns);
    assert!(
        own.noise.iter().all(|v| (0.08..0.25).contains(v)),
        "{:?}",
        own.noise
    );
    for units in &UNITS {
        let (there, maps, logs) = mapped(&columns, &[1.0; 3], units);
        let other = fit(&there);
        // The EM iterations end with a tolerance of 10⁻⁴ nats per iteration.
        assert!((other.bound + 150.0 * logs - own.bound).abs() < 1e-2);
        let sign = (other.loadings[0][0] * maps[0].1 * own.loadings[0][0]).signum();
        for (c, &(o, d)) in maps.iter().enumerate() {
            let loading = sign * d * own.loadings[c][0];
            assert!((other.loadings[c][0] - loading).abs() < 1e-2 * d.abs());
            assert!((other.intercepts[c] - o - d * own.intercepts[c]).abs() < 1e-2 * d.abs());
            assert!((other.noise[c] / (d * d * own.noise[c]) - 1.0).abs() < 1e-2);
        }
    }
}

#[test]
fn autoencoders_do_not_depend_on_units() {
    let (columns, sds) = groups();
    let request = VaeRequest {
        latent: Some(1),
        hidden: Some("8".to_owned()),
        decoder: Some("gaussian".to_owned()),
        epochs: Some(20.0),
        batch: Some(10),
        simd: Some("scalar".to_owned()),
        ..VaeRequest::default()
    };
    let fit = |columns: &[Vec<f64>]| {
        let rows = Rows::of_table(&table(columns)).unwrap();
        let data = VaeData::of_rows(rows, PathBuf::from("X"), None, request.clone()).unwrap();
        let (summary, model) = alone(|around| {
            fit_vae(&data, 0.0, around, |done| {
                (done.summary, done.made.output.model)
            })
        })
        .unwrap();
        let mut networks = model.autoencoder(Simd::Scalar).unwrap();
        let rows = Rows::of_table(&table(columns)).unwrap();
        let means = networks.reconstruct(&model.records(&rows));
        (summary, model.rows(&means))
    };
    let (own, means) = fit(&columns);
    for units in &UNITS {
        // If a scale were negative, the networks would receive the mirror image and learn other weights.
        let units: Vec<(f64, f64)> = units.iter().map(|(c, d)| (*c, d.abs())).collect();
        let (there, maps, logs) = mapped(&columns, &sds, &units);
        let (other, means_there) = fit(&there);
        // The fit uses single precision, and rounding errors accumulate over several hundred steps.
        let off = other.bound.unwrap() + logs - own.bound.unwrap();
        assert!(off.abs() < 1e-2, "{off}");
        let plain = |s: &jensen::vae::VaeSummary| s.judgement.baseline.clone().unwrap().score;
        assert!((plain(&other) + logs - plain(&own)).abs() < 1e-4);
        for (x, y) in means.chunks(3).zip(means_there.chunks(3)) {
            for c in 0..3 {
                let (o, d) = maps[c];
                assert!((y[c] - o - d * x[c]).abs() < 1e-2 * sds[c] * d);
            }
        }
    }
}

#[test]
fn columns_that_say_nothing_are_left_out() {
    let (columns, _) = groups();
    let request = MixtureRequest {
        components: Some("3".parse().unwrap()),
        ..MixtureRequest::default()
    };
    let fit = |columns: &[Vec<f64>]| {
        alone(|around| fit_mixture(&request, &points(columns), around))
            .unwrap()
            .1
    };
    let own = fit(&columns);
    let copy = columns[1].iter().map(|x| 5.0 - 1e3 * x).collect();
    let more = [columns.clone(), vec![vec![3.5; 90], copy]].concat();
    let other = fit(&more);
    assert!(other.judgement.trusted, "{:?}", other.judgement.warnings);
    near(other.elbo.unwrap(), own.elbo.unwrap(), 1.0);
    let said = other.judgement.warnings.join("; ");
    assert!(
        said.contains("constant columns: `d` (3.5)") && said.contains("`e` (of `b`)"),
        "{said}"
    );
    let (Parts::Components(here), Parts::Components(there)) = (&own.parts, &other.parts) else {
        panic!()
    };
    for (one, other) in here.iter().zip(there) {
        let (x, y) = (one.values(), other.values());
        near(y[3], 3.5, 1.0);
        near(y[4], 5.0 - 1e3 * x[1], 1e3);
    }
    let same = vec![vec![1.0; 20], vec![2.0; 20]];
    let refused = alone(|around| fit_mixture(&request, &points(&same), around));
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("every column is constant"), "{error}");
}

#[test]
fn whoever_standardised_already_turns_it_off() {
    let (columns, _) = groups();
    let fit = |standardise: Option<Standardise>| {
        let request = MixtureRequest {
            components: Some("3".parse().unwrap()),
            standardise,
            ..MixtureRequest::default()
        };
        let made = alone(|around| fit_mixture(&request, &points(&columns), around)).unwrap();
        (MixtureModel::decode(&made.0.kept).unwrap(), made.1)
    };
    let (own, off) = (fit(None), fit(Some(Standardise::Off)));
    assert!(off.0.units.change_nothing() && !own.0.units.change_nothing());
    // The prior is in units of the variances of the columns, so the fit does not depend on the units.
    near(off.1.elbo.unwrap(), own.1.elbo.unwrap(), 1.0);
}

#[test]
fn no_temperature_ends_below_the_plain_fit() {
    let centres = [
        [0.0; 3],
        [10.0, 0.0, 0.0],
        [0.0, 10.0, 0.0],
        [0.0, 0.0, 10.0],
        [10.0; 3],
    ];
    let noise = normals(7, 300 * 3);
    let column = |c: usize| {
        (0..300)
            .map(|n| centres[n % 5][c] + noise[3 * n + c])
            .collect()
    };
    let columns: Vec<Vec<f64>> = (0..3).map(column).collect();
    let fit = |temper: &str, seed: u64| {
        let request = MixtureRequest {
            components: Some("5".parse().unwrap()),
            points: PointRequest {
                temper: Some(temper.to_owned()),
                seed: Some(seed),
                ..PointRequest::default()
            },
            ..MixtureRequest::default()
        };
        let points = points(&columns);
        let summary = alone(|around| fit_mixture(&request, &points, around))
            .unwrap()
            .1;
        assert!(
            summary.judgement.trusted,
            "{:?}",
            summary.judgement.warnings
        );
        summary.elbo.unwrap()
    };
    let best = fit("none", 0);
    for seed in 0..3 {
        for temper in ["none", "anneal=50", "global"] {
            let elbo = fit(temper, seed);
            assert!(
                (elbo - best).abs() < 1.0,
                "{temper}, seed {seed}: {elbo}, not {best}"
            );
        }
    }
}

#[test]
fn correlated_effects_do_not_depend_on_units() {
    let noise = normals(9, 2 * 12 + 2 * 96);
    let group: Vec<f64> = (0..96).map(|i| f64::from(i / 8)).collect();
    let x: Vec<f64> = noise[24..120].to_vec();
    let y: Vec<f64> = (0..96)
        .map(|i| {
            let (level, slope) = (noise[2 * (i / 8)], noise[2 * (i / 8) + 1]);
            1.0 + 0.8 * level + (0.5 + 0.6 * slope + 0.3 * level) * x[i] + 0.5 * noise[120 + i]
        })
        .collect();
    let request = LatentRequest {
        likelihood: Some("gaussian".to_owned()),
        prior: Some("intercept() + fixed(x) + iid(on=group, by=(1, x))".to_owned()),
        response: Some("y".to_owned()),
        ..LatentRequest::default()
    };
    let fit = |(a, b): (f64, f64), (c, d): (f64, f64)| {
        let columns = [
            ("group", group.clone()),
            ("x", x.iter().map(|x| c + d * x).collect()),
            ("y", y.iter().map(|y| a + b * y).collect()),
        ];
        let columns = columns.map(|(name, values)| Column::new(name, Cells::Numbers(values)));
        let table = Table::new("memory", columns.into()).unwrap();
        let summary = alone(|around| {
            fit_latent_in_memory(request.clone(), &table, around, |done| done.summary)
        })
        .unwrap();
        assert!(summary.judgement.trusted, "{:?}", summary.judgement);
        summary
    };
    let own = fit((0.0, 1.0), (0.0, 1.0));
    let effect = |fit: &LatentSummary, name: &str| {
        let row = fit.parameters.iter().find(|p| p.name == name).unwrap();
        (row.mean, row.sd)
    };
    let hyper = |fit: &LatentSummary, name: &str| {
        fit.hyperparameters
            .iter()
            .find(|h| h.name == name)
            .unwrap()
            .value
    };
    let (slope, sd) = effect(&own, "fixed[x]");
    for (response, column) in [((1e5, -1e3), (1e5, 1e-3)), ((-1e3, 1e-4), (-1e4, 1e4))] {
        let (b, d) = (response.1, column.1);
        let other = fit(response, column);
        near(
            other.evidence.unwrap() + 96.0 * b.abs().ln(),
            own.evidence.unwrap(),
            1e3,
        );
        near(effect(&other, "fixed[x]").0 * d / b, slope, 1e3 * sd);
        near(
            effect(&other, "iid[3,x]").0 * d / b,
            effect(&own, "iid[3,x]").0,
            1e3,
        );
        near(
            effect(&other, "iid[3,1]").0 / b,
            effect(&own, "iid[3,1]").0,
            1e3,
        );
        let scales = [
            ("iid[1].variance", b * b),
            ("iid[x].variance", (b / d).powi(2)),
        ];
        for (name, scale) in scales {
            near(hyper(&other, name) / scale, hyper(&own, name), 1e3);
        }
        let sign = d.signum();
        near(
            hyper(&other, "iid[1,x].cor"),
            sign * hyper(&own, "iid[1,x].cor"),
            1e3,
        );
    }
}
