//! Compares integrated hyperparameters, constrained flat directions and omitted observations with direct computations.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jensen_latent::prior::{Assembled, Graph, Inputs, Source, Spec, Units, assemble};
use jensen_latent::{
    Dense, Fit, Integrated, LatentModel, LearnSettings, Learned, Likelihood, Observations,
    SiteBound, Sparse, integrate, learn, leave_one_out,
};
use jensen_run::{Budget, Control, Silent};

use crate::common::{converged, identity, noise, run, tight};

#[derive(Default)]
struct TestTable(BTreeMap<&'static str, Vec<f64>>);

impl Source for TestTable {
    fn rows(&self) -> usize {
        self.0.values().next().map_or(0, Vec::len)
    }

    fn numbers(&self, column: &str) -> Result<Cow<'_, [f64]>, String> {
        let found = self.0.get(column).ok_or_else(|| format!("no `{column}`"))?;
        Ok(Cow::Borrowed(found))
    }

    fn words(&self, column: &str) -> Result<Vec<Option<String>>, String> {
        let numbers = self.numbers(column)?;
        Ok(numbers.iter().map(|x| Some(x.to_string())).collect())
    }

    fn holds_words(&self, _: &str) -> Result<bool, String> {
        Ok(false)
    }

    fn inputs(&self) -> Inputs {
        Inputs::default()
    }

    fn graph(&self, _: &str) -> Result<Graph, String> {
        Ok(Graph::path(9, false))
    }

    fn matrix(&self, _: &str) -> Result<Dense, String> {
        Err("no file".to_owned())
    }

    fn sparse(&self, _: &str) -> Result<Sparse, String> {
        Err("no file".to_owned())
    }

    fn mask(&self, _: &str, _: usize, _: usize) -> Result<Vec<bool>, String> {
        Err("no file".to_owned())
    }
}

fn made(text: &str, test_table: &TestTable) -> Assembled {
    let rows: Vec<usize> = (0..test_table.rows()).collect();
    let spec = Spec::parse(text).unwrap();
    assemble(&spec, test_table, &rows, Units::TABLE).unwrap_or_else(|e| panic!("{e}"))
}

fn model(prior: &Assembled, likelihood: Likelihood, response: Vec<f64>) -> LatentModel {
    let start: Vec<f64> = prior.prior().parameters().iter().map(|p| p.start).collect();
    LatentModel {
        prior: prior.prior().structure(&start).unwrap(),
        design: prior.design(),
        likelihood,
        bound: SiteBound::Exact,
        observations: Observations::new(response),
    }
}

fn integrated(
    prior: &Assembled,
    model: &LatentModel,
    settings: &LearnSettings,
) -> (Learned, Integrated) {
    let clock = || 0.0;
    let mut silent = Silent;
    let mut control = Control::new(Budget::iterations(300), &clock, &mut silent);
    let mut learned = learn(prior.prior(), model, settings, &identity(), &mut control).unwrap();
    assert!(learned.status.is_converged(), "{}", learned.status);
    let found = integrate(prior.prior(), model, settings, &mut learned, &control)
        .unwrap()
        .unwrap();
    (learned, found)
}

/// Compares the level and the variances of five groups of four observations with quadrature on a fine grid.
#[test]
fn few_groups_are_integrated_as_by_quadrature() {
    let group: Vec<f64> = (0..20).map(|i| f64::from(i / 4)).collect();
    let shift = [0.9, -0.4, 0.2, -1.1, 0.5];
    let y: Vec<f64> = (0..20)
        .map(|i| 0.3 + shift[i / 4] + 1.2 * (noise(i) + noise(i + 40) - 1.0))
        .collect();
    let test_table = TestTable(BTreeMap::from([("group", group)]));
    let prior = made("intercept(variance=100) + iid(on=group)", &test_table);
    let model = model(&prior, Likelihood::gaussian(1.0), y.clone());
    let settings = LearnSettings {
        likelihood: vec![(0, Likelihood::gaussian(1.0).prior_of(0).clone())],
        priors: true,
        ..LearnSettings::default()
    };
    let (_, found) = integrated(&prior, &model, &settings);
    // The model is y ~ level + N(0, between) + N(0, within), and m_g is the mean of the n observations in group g.
    let means: Vec<f64> = y.chunks(4).map(|g| g.iter().sum::<f64>() / 4.0).collect();
    let rest: f64 = (y.chunks(4).zip(&means))
        .flat_map(|(g, m)| g.iter().map(move |x| (x - m).powi(2)))
        .sum();
    let log_two_pi = (2.0 * std::f64::consts::PI).ln();
    let density = Likelihood::gaussian(1.0).prior_of(0).clone();
    let (mut total, mut level, mut square, mut between_mean) = (0.0, 0.0, 0.0, 0.0);
    let mut shares: Vec<(f64, f64)> = Vec::new();
    let step = 0.05;
    for a in -300..80 {
        let before = total;
        for b in -80..80 {
            let (between, within) = ((f64::from(a) * step).exp(), (f64::from(b) * step).exp());
            let spread = between + within / 4.0;
            // These are the posterior of the level, and the remaining factor.
            let precision = 5.0 / spread + 0.01;
            let mean = means.iter().sum::<f64>() / spread / precision;
            let fit = means.iter().map(|m| m * m).sum::<f64>() / spread - precision * mean * mean;
            let log = -0.5 * (20.0 * log_two_pi + 15.0 * within.ln() + rest / within)
                - 0.5 * (5.0 * (4.0 * spread).ln() + fit)
                - 0.5 * (100.0f64.ln() + precision.ln())
                + density.at(between).0
                + density.at(within).0
                + between.ln()
                + within.ln();
            let weight = step * step * log.exp();
            total += weight;
            level += weight * mean;
            square += weight * (mean * mean + 1.0 / precision);
            between_mean += weight * between.ln();
        }
        shares.push(((f64::from(a) * step).exp(), total - before));
    }
    let (mean, sd) = (
        level / total,
        (square / total - (level / total).powi(2)).sqrt(),
    );
    assert!(
        (found.evidence - total.ln()).abs() < 0.03,
        "{} {}",
        found.evidence,
        total.ln()
    );
    assert!(found.error < 0.05, "{}", found.error);
    let own: f64 = found.points.iter().map(|p| p.weight * p.fit.mean[0]).sum();
    let spread: f64 = (found.points.iter())
        .map(|p| p.weight * (p.fit.variance[0] + (p.fit.mean[0] - own).powi(2)))
        .sum();
    assert!((own - mean).abs() < 0.02 * sd, "{own} {mean}");
    assert!(
        (spread.sqrt() / sd - 1.0).abs() < 0.03,
        "{} {sd}",
        spread.sqrt()
    );
    let log_between: f64 = found
        .points
        .iter()
        .map(|p| p.weight * p.theta[0].ln())
        .sum();
    assert!(
        (log_between - between_mean / total).abs() < 0.15,
        "{log_between}"
    );
    agrees_with_shares(&found, &shares, total);
}

/// Compares the variance between groups, which has a long tail towards small values. `shares` contains its values on a
/// grid and their masses.
fn agrees_with_shares(found: &Integrated, shares: &[(f64, f64)], total: f64) {
    let (mut below, mut first, mut second, mut mass) = (0.0, 0.0, 0.0, 0.0);
    let mut positions = Vec::new();
    for &(value, share) in shares {
        let share = share / total;
        positions.push((value, below + 0.5 * share));
        below += share;
        if below > 0.0005 && below < 0.9995 {
            mass += share;
            first += share * value;
            second += share * value * value;
        }
    }
    for (p, close) in [(0.05, 0.2), (0.5, 0.05), (0.95, 0.08)] {
        let own = found.marginals[0].quantile(p);
        let at = positions.partition_point(|(_, below)| *below < p);
        let ((v0, p0), (v1, p1)) = (positions[at - 1], positions[at]);
        let exact = v0 * (v1 / v0).powf((p - p0) / (p1 - p0));
        assert!((own / exact - 1.0).abs() < close, "{p}: {own} {exact}");
    }
    let (mean, sd) = (
        first / mass,
        (second / mass - (first / mass).powi(2)).sqrt(),
    );
    let own = found.marginals[0].moments();
    assert!((own.0 - mean).abs() < 0.1 * sd, "{own:?} {mean} {sd}");
    assert!((own.1 / sd - 1.0).abs() < 0.25, "{own:?} {mean} {sd}");
}

fn moments(fit: &Fit) -> Vec<(f64, f64)> {
    fit.predictor_mean
        .iter()
        .copied()
        .zip(fit.predictor_variance.iter().copied())
        .collect()
}

/// Checks that a sum of terms that are flat in the same level gives the same linear predictors as the sum with one
/// level.
#[test]
fn shared_levels_are_held() {
    let n = 27;
    let column = |f: &dyn Fn(usize) -> f64| -> Vec<f64> { (0..n).map(f).collect() };
    let test_table = TestTable(BTreeMap::from([
        ("region", column(&|i| (i % 9 + 1) as f64)),
        ("time", column(&|i| (i / 3) as f64)),
        ("other", column(&|i| ((i * 5) % 13) as f64)),
        ("x", column(&noise)),
    ]));
    let y: Vec<f64> = (0..n).map(|i| (6.0 * noise(3 * i)).floor()).collect();
    for text in [
        "icar(graph=path, on=region) + rw1(on=time)",
        "bym2(graph=path, on=region) + rw1(on=time)",
        "rw2(on=time) + rw2(on=other) + fixed(x)",
        "intercept() + icar(graph=path, on=region) + rw1(on=time) + rw2(on=other)",
        "rw1(on=time) + rw2(on=time)",
    ] {
        let prior = made(text, &test_table);
        let fit = converged(&model(&prior, Likelihood::poisson(), y.clone()));
        assert!(fit.bound.is_finite(), "{text}");
        assert!(
            prior.notes.iter().any(|n| n.contains("sum to zero")),
            "{text}: {:?}",
            prior.notes
        );
        // The order of the terms affects only the bookkeeping.
        let turned: Vec<&str> = text.split(" + ").collect();
        let turned = turned.into_iter().rev().collect::<Vec<_>>().join(" + ");
        if !text.contains("intercept") {
            let again = made(&turned, &test_table);
            let other = converged(&model(&again, Likelihood::poisson(), y.clone()));
            // A second-order walk leaves its slope undetermined. The flat prior of the slope has the unit of the
            // constrained level, so the bound has no absolute value in this case.
            assert!(
                text.contains("rw2") || (fit.bound - other.bound).abs() < 1e-5,
                "{text}: {} {}",
                fit.bound,
                other.bound
            );
            for (a, b) in moments(&fit).iter().zip(moments(&other)) {
                assert!(
                    (a.0 - b.0).abs() < 1e-5 && (a.1 - b.1).abs() < 1e-5,
                    "{text}: {a:?} {b:?}"
                );
            }
        }
    }
}

/// A part without signal has an ever smaller spread, and its fit approaches that of the sum without it. The other part's
/// precision is then lower by many orders of magnitude.
#[test]
fn nearly_constant_parts_have_the_fit_without_them() {
    let n = 60;
    let test_table = TestTable(BTreeMap::from([
        ("time", (0..n).map(|i| i as f64).collect()),
        ("group", (0..n).map(|i| (i % 7) as f64).collect()),
    ]));
    let y: Vec<f64> = (0..n).map(noise).collect();
    let fitted = |text: &str| {
        let prior = made(text, &test_table);
        converged(&model(&prior, Likelihood::gaussian(0.5), y.clone()))
    };
    let alone = fitted("intercept(variance=1e3)");
    for part in [
        "iid(on=group, variance=1e-14)",
        "rw1(on=time, precision=1e12)",
        "rw1(on=time, precision=1e20)",
    ] {
        let fit = fitted(&format!("intercept(variance=1e3) + {part}"));
        assert!((fit.bound - alone.bound).abs() < 1e-6, "{part}");
        for (a, b) in moments(&fit).iter().zip(moments(&alone)) {
            let off = (a.0 - b.0).abs() + (a.1 - b.1).abs();
            assert!(off < 1e-6, "{part}: {a:?} {b:?}");
        }
    }
}

/// The evidence of a Gaussian model is a sum of log predictive densities. Each of them must equal the density under a
/// fit without the row.
#[test]
fn what_is_left_out_is_predicted_as_by_a_fit_without_it() {
    for likelihood in [
        Likelihood::gaussian(0.3),
        Likelihood::poisson(),
        Likelihood::bernoulli(),
    ] {
        let n = 12;
        let test_table =
            |n: usize| TestTable(BTreeMap::from([("t", (0..n).map(|i| i as f64).collect())]));
        let prior = made("intercept(variance=4) + ar1(on=t)", &test_table(n));
        let y: Vec<f64> = (0..n)
            .map(|i| crate::common::response(likelihood, i))
            .collect();
        let whole = model(&prior, likelihood, y.clone());
        let fit = run(&whole, &tight()).unwrap();
        let scores = leave_one_out(&whole, &fit).unwrap();
        // A fit that lacks the last row predicts this row.
        let shorter = LatentModel {
            design: made("intercept(variance=4) + ar1(on=t)", &test_table(n)).design(),
            ..whole.clone()
        };
        let rows: Vec<usize> = (0..n - 1).collect();
        let spec = Spec::parse("intercept(variance=4) + ar1(on=t, from=0, to=11)").unwrap();
        let fewer = assemble(&spec, &test_table(n), &rows, Units::TABLE).unwrap();
        let without = LatentModel {
            design: fewer.design(),
            observations: Observations::new(y[..n - 1].to_vec()),
            ..shorter
        };
        let known = run(&without, &tight()).unwrap();
        let query = jensen_latent::Query::Rows(whole.design.clone());
        let predicted = jensen_latent::predict(&without, &known.warm(), &query).unwrap();
        let (m, v) = predicted[n - 1];
        let rule = jensen_math::quadrature::gauss_hermite(40).unwrap();
        let expected: f64 = (rule.nodes.iter().zip(&rule.weights))
            .map(|(z, w)| {
                w * likelihood
                    .log_density(m + v.sqrt() * z, y[n - 1], 1.0)
                    .exp()
            })
            .sum();
        let close = if likelihood == Likelihood::gaussian(0.3) {
            1e-8
        } else {
            0.03
        };
        assert!(
            (scores[n - 1] - expected.ln()).abs() < close,
            "{likelihood}: {} {}",
            scores[n - 1],
            expected.ln()
        );
    }
}

fn normals(seed: u64, n: usize) -> Vec<f64> {
    use jensen_math::rng::{Purpose, Stream};
    let mut stream = Stream::new(seed, Purpose::new("coverage"), 0, 0);
    (0..n)
        .map(|_| jensen_math::special::inv_phi(stream.uniform()))
        .collect()
}

fn covered(groups: usize, data_sets: u64) -> f64 {
    let n = 4 * groups;
    let group: Vec<f64> = (0..n).map(|i| (i / 4) as f64).collect();
    let test_table = TestTable(BTreeMap::from([("group", group)]));
    let prior = made("intercept() + iid(on=group)", &test_table);
    let settings = LearnSettings {
        likelihood: vec![(0, Likelihood::gaussian(1.0).prior_of(0).clone())],
        priors: true,
        ..LearnSettings::default()
    };
    let mut inside = 0.0;
    for seed in 0..data_sets {
        let draws = normals(seed + 1000 * groups as u64, n + groups);
        let (effects, noise) = draws.split_at(groups);
        let y = (0..n)
            .map(|i| 0.5 + 0.7 * effects[i / 4] + noise[i])
            .collect();
        let model = model(&prior, Likelihood::gaussian(1.0), y);
        let (_, found) = integrated(&prior, &model, &settings);
        let each = found.points.into_iter().map(|p| (p.weight, p.fit));
        let (weights, fits): (Vec<f64>, Vec<Fit>) = each.unzip();
        let means: Vec<f64> = fits.iter().map(|f| f.mean[0]).collect();
        let sds: Vec<f64> = fits.iter().map(|f| f.variance[0].sqrt()).collect();
        let end = |p: f64| jensen_latent::mixture_quantile(&weights, &means, &sds, p);
        inside += f64::from(end(0.05) < 0.5 && 0.5 < end(0.95));
    }
    inside / data_sets as f64
}

/// Checks that 90 % intervals contain the truth in 90 % of cases, even with few groups. The share of 300 cases has a
/// standard error of 0.017.
#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    for groups in [4, 10] {
        let share = covered(groups, 300);
        assert!((share - 0.9).abs() < 0.045, "{groups} groups: {share}");
    }
}

/// Computes the mass below a value from the masses of evenly spaced logarithms.
fn mass_below(points: &[(f64, f64)], value: f64) -> f64 {
    let total: f64 = points.iter().map(|(_, mass)| mass).sum();
    let half = 0.5 * (points[1].0 - points[0].0);
    let share = |x: f64| ((value.ln() - (x - half)) / (2.0 * half)).clamp(0.0, 1.0);
    points.iter().map(|(x, mass)| share(*x) * mass).sum::<f64>() / total
}

/// Compares the variances of rows, columns and noise of a table of 4 × 3 cells with quadrature. The sums of squares of
/// rows, columns and residuals are independent, so the evidence has a closed form. With so few groups, the posteriors of
/// the variances have long tails and are far from normal.
#[test]
fn three_hyperparameters_are_integrated_as_by_quadrature() {
    let (rows, columns) = (4, 3);
    let n = rows * columns;
    let test_table = TestTable(BTreeMap::from([
        ("row", (0..n).map(|i| (i / columns) as f64).collect()),
        ("column", (0..n).map(|i| (i % columns) as f64).collect()),
    ]));
    for seed in [0, 100, 200] {
        let shift = |i: usize| noise(seed + i) - 0.5;
        let y: Vec<f64> = (0..n)
            .map(|i| 2.0 * shift(i / columns) + shift(50 + i % columns) + 0.7 * shift(20 + i))
            .collect();
        let prior = made(
            "intercept(variance=100) + iid(on=row) + iid(on=column)",
            &test_table,
        );
        let model = model(&prior, Likelihood::gaussian(1.0), y.clone());
        let density = Likelihood::gaussian(1.0).prior_of(0).clone();
        let settings = LearnSettings {
            likelihood: vec![(0, density.clone())],
            priors: true,
            ..LearnSettings::default()
        };
        let (_, found) = integrated(&prior, &model, &settings);

        let mean = y.iter().sum::<f64>() / n as f64;
        let of_rows: Vec<f64> = y
            .chunks(columns)
            .map(|r| r.iter().sum::<f64>() / 3.0)
            .collect();
        let of_columns: Vec<f64> = (0..columns)
            .map(|c| (0..rows).map(|r| y[r * columns + c]).sum::<f64>() / 4.0)
            .collect();
        let squares = |means: &[f64]| means.iter().map(|m| (m - mean).powi(2)).sum::<f64>();
        let between_rows = 3.0 * squares(&of_rows);
        let between_columns = 4.0 * squares(&of_columns);
        let rest =
            y.iter().map(|y| (y - mean).powi(2)).sum::<f64>() - between_rows - between_columns;
        let term = |count: f64, square: f64, variance: f64| {
            -0.5 * (count * (2.0 * std::f64::consts::PI * variance).ln() + square / variance)
        };
        let step = 0.2;
        let positions: Vec<f64> = (-110..30).map(|k| step * f64::from(k)).collect();
        let log_prior: Vec<f64> = positions
            .iter()
            .map(|x| density.at(x.exp()).0 + x)
            .collect();
        let mut masses = vec![vec![0.0; positions.len()]; 3];
        let mut total = 0.0;
        for (c, noise) in positions.iter().enumerate() {
            let within = noise.exp();
            let alone = term(6.0, rest, within) + log_prior[c];
            if within < 1e-4 {
                continue;
            }
            for (a, row) in positions.iter().enumerate() {
                let row_variance = within + 3.0 * row.exp();
                let with_rows = alone + term(3.0, between_rows, row_variance) + log_prior[a];
                for (b, column) in positions.iter().enumerate() {
                    let column_variance = within + 4.0 * column.exp();
                    let level = row_variance + column_variance - within + 1200.0;
                    let log = with_rows
                        + term(2.0, between_columns, column_variance)
                        + term(1.0, n as f64 * mean * mean, level)
                        + log_prior[b];
                    let mass = step.powi(3) * log.exp();
                    total += mass;
                    for (k, at) in [a, b, c].into_iter().enumerate() {
                        masses[k][at] += mass;
                    }
                }
            }
        }
        assert!(
            (found.evidence - total.ln()).abs() < 0.2,
            "{seed}: {} {}",
            found.evidence,
            total.ln()
        );
        for (k, marginal) in found.marginals.iter().enumerate() {
            let points: Vec<(f64, f64)> = positions
                .iter()
                .copied()
                .zip(masses[k].iter().copied())
                .collect();
            for p in [0.05, 0.5, 0.95] {
                let own = mass_below(&points, marginal.quantile(p));
                assert!((own - p).abs() < 0.05, "{seed}, {k}, {p}: {own}");
            }
        }
    }
}

/// Seven values that a smooth process with much noise explains as well as a rough process without noise. The lengthscale
/// has two modes with a valley between them, as in Rasmussen and Williams (2006, figure 5.5).
#[test]
fn two_modes_have_their_shares() {
    let x = [-4.8, -3.1, -1.9, -0.3, 1.2, 2.9, 4.6];
    let y = [-1.1, 0.9, -0.4, 0.3, 1.3, 0.5, 1.9];
    let test_table = TestTable(BTreeMap::from([("x", x.to_vec())]));
    let prior = made(
        "gp(rbf, on=x, variance=1, lengthscale~lognormal(1, 1.5))",
        &test_table,
    );
    let model = model(&prior, Likelihood::gaussian(0.3), y.to_vec());
    let density = jensen_latent::PriorDensity::LogNormal {
        mean: -3.0,
        sd: 2.5,
    };
    let settings = LearnSettings {
        likelihood: vec![(0, density.clone())],
        priors: true,
        ..LearnSettings::default()
    };
    let (_, found) = integrated(&prior, &model, &settings);
    let length_density = jensen_latent::PriorDensity::LogNormal { mean: 1.0, sd: 1.5 };
    let step = 0.05;
    let lengths: Vec<f64> = (-120..180).map(|k| step * f64::from(k)).collect();
    let mut masses = Vec::new();
    let mut total = 0.0;
    for length in &lengths {
        let mut own = 0.0;
        for k in -300..80 {
            let noise = step * f64::from(k);
            let log = log_normal(&x, &y, length.exp(), noise.exp())
                + density.at(noise.exp()).0
                + noise
                + length_density.at(length.exp()).0
                + length;
            own += step * step * log.exp();
        }
        total += own;
        masses.push((*length, own));
    }
    assert!(
        (found.evidence - total.ln()).abs() < 0.1,
        "{} {}",
        found.evidence,
        total.ln()
    );
    for p in [0.05, 0.25, 0.5, 0.75, 0.95] {
        let own = mass_below(&masses, found.marginals[0].quantile(p));
        assert!((own - p).abs() < 0.02, "{p}: {own}");
    }
}

/// Computes the log density of values of a process with unit variance by a Cholesky factorisation.
fn log_normal(x: &[f64], y: &[f64], length: f64, noise: f64) -> f64 {
    let n = x.len();
    let mut factor = vec![0.0; n * n];
    let mut white = vec![0.0; n];
    let mut log = -0.5 * n as f64 * (2.0 * std::f64::consts::PI).ln();
    for i in 0..n {
        for j in 0..=i {
            let mut left = (-0.5 * ((x[i] - x[j]) / length).powi(2)).exp();
            left += if i == j { noise + 1e-10 } else { 0.0 };
            left -= (0..j)
                .map(|k| factor[i * n + k] * factor[j * n + k])
                .sum::<f64>();
            factor[i * n + j] = if i == j {
                left.sqrt()
            } else {
                left / factor[j * n + j]
            };
        }
        let explained: f64 = (0..i).map(|k| factor[i * n + k] * white[k]).sum();
        white[i] = (y[i] - explained) / factor[i * n + i];
        log -= factor[i * n + i].ln() + 0.5 * white[i] * white[i];
    }
    log
}

/// A slow and a fast oscillation. The search may end at the lengthscale of the slow one, 10 to 23 nats below the mode at
/// the lengthscale of the fast one, and then the integration has to leave that mode.
#[test]
fn integration_leaves_a_mode_that_is_too_low() {
    let n = 200;
    let x: Vec<f64> = (0..n).map(|i| 0.025 * i as f64).collect();
    let test_table = TestTable(BTreeMap::from([("x", x.clone())]));
    let prior = made("gp(rbf, on=x)", &test_table);
    let settings = LearnSettings {
        likelihood: vec![(0, Likelihood::gaussian(1.0).prior_of(0).clone())],
        priors: true,
        ..LearnSettings::default()
    };
    for fast in [0.3, 0.32, 0.34, 0.4] {
        let y: Vec<f64> = (x.iter().enumerate())
            .map(|(i, x)| (1.2 * x).sin() + fast * (9.0 * x + 0.3).sin() + 1.2 * (noise(i) - 0.5))
            .collect();
        let model = model(&prior, Likelihood::gaussian(1.0), y);
        let (learned, found) = integrated(&prior, &model, &settings);
        let ends = [0.05, 0.95].map(|p| found.marginals[1].quantile(p));
        assert!(learned.theta[1] < 0.4, "{fast}: {:?}", learned.theta);
        assert!(ends[0] > 0.15 && ends[1] < 0.4, "{fast}: {ends:?}");
        assert!(
            found.evidence.is_finite() && found.error < 0.2,
            "{fast}: {}",
            found.error
        );
    }
}
