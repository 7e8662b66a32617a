//! Tests of `gaussian(sd=COLUMN)`, whose rows have known errors. Posteriors are compared with closed forms.

use jensen::data::{Cells, Column, Table};
use jensen::latent::{
    LatentRequest, LatentSummary, PriorFiles, StoredPosterior, TableModel, fit_latent_in_memory,
    outcome, posterior_at, predictions,
};

use crate::common::alone;

/// The effects and standard errors of Rubin's eight schools.
const EFFECT: [f64; 8] = [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0];
const ERROR: [f64; 8] = [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0];

fn table(columns: &[(&str, &[f64])]) -> Table {
    let columns = columns
        .iter()
        .map(|(name, values)| Column::new((*name).to_owned(), Cells::Numbers(values.to_vec())));
    Table::new("errors", columns.collect()).unwrap()
}

fn request(prior: &str) -> LatentRequest {
    LatentRequest {
        likelihood: Some("gaussian(sd=se)".to_owned()),
        prior: Some(prior.to_owned()),
        response: Some("y".to_owned()),
        ..LatentRequest::default()
    }
}

fn fitted(prior: &str, table: &Table) -> Result<(LatentSummary, StoredPosterior), jensen::Error> {
    alone(|around| {
        fit_latent_in_memory(request(prior), table, around, |done| {
            let stored = StoredPosterior::new(&done.made.output.0);
            (done.summary, stored)
        })
    })
}

fn close(found: f64, expected: f64, within: f64, what: &str) {
    assert!(
        (found - expected).abs() < within,
        "{what}: {found} {expected}"
    );
}

/// With a wide prior of the effects, the posterior is that of weighted least squares, in any units.
#[test]
fn effects_are_those_of_weighted_least_squares() {
    let n = 30;
    let number = |i: usize, k: usize| ((i * i + 31 * k + 3) as f64 * 0.618_033_988_749_895).fract();
    let x: Vec<f64> = (0..n).map(|i| 4.0 * number(i, 1)).collect();
    let se: Vec<f64> = (0..n).map(|i| 0.01 + 3.0 * number(i, 2)).collect();
    let y: Vec<f64> = (0..n)
        .map(|i| 2.0 - 0.7 * x[i] + se[i] * (2.0 * number(i, 3) - 1.0))
        .collect();
    let weights: Vec<f64> = se.iter().map(|s| 1.0 / (s * s)).collect();
    let sum = |f: &dyn Fn(usize) -> f64| (0..n).map(|i| weights[i] * f(i)).sum::<f64>();
    let (w, wx, wxx) = (sum(&|_| 1.0), sum(&|i| x[i]), sum(&|i| x[i] * x[i]));
    let (wy, wxy) = (sum(&|i| y[i]), sum(&|i| x[i] * y[i]));
    let determinant = w * wxx - wx * wx;
    let level = (
        (wxx * wy - wx * wxy) / determinant,
        (wxx / determinant).sqrt(),
    );
    let slope = ((w * wxy - wx * wy) / determinant, (w / determinant).sqrt());
    for unit in [1.0, 1e6, 1e-6] {
        let scaled = |list: &[f64]| -> Vec<f64> { list.iter().map(|v| unit * v).collect() };
        let (own_y, own_se) = (scaled(&y), scaled(&se));
        let table = table(&[("x", &x), ("se", &own_se), ("y", &own_y)]);
        let wide = 1e6 * unit * unit;
        let prior = format!("intercept(variance={wide}) + fixed(x, variance={wide})");
        let (found, _) = fitted(&prior, &table).unwrap();
        assert!(found.judgement.trusted, "{:?}", found.judgement);
        for (name, (mean, sd)) in [("intercept", level), ("fixed[x]", slope)] {
            let row = found.parameters.iter().find(|p| p.name == name).unwrap();
            close(row.mean / unit, mean, 1e-4 * sd, name);
            close(row.sd / unit, sd, 1e-4 * sd, name);
        }
    }
}

/// The random-effects meta-analysis of eight schools, given the variance between schools and integrated over it.
#[test]
fn a_meta_analysis_has_its_closed_form() {
    let n = EFFECT.len() as f64;
    let centre = EFFECT.iter().sum::<f64>() / n;
    let spread = EFFECT.iter().map(|y| (y - centre).powi(2)).sum::<f64>() / n;
    // Given the variance between schools: the log density of the effects, and the mean and variance of their level.
    let wide = 1000.0 * spread;
    let given = |variance: f64| {
        let each = || {
            EFFECT
                .iter()
                .zip(&ERROR)
                .map(|(y, s)| (y - centre, s * s + variance))
        };
        let precision = 1.0 / wide + each().map(|(_, v)| 1.0 / v).sum::<f64>();
        let mean = each().map(|(y, v)| y / v).sum::<f64>() / precision;
        let squares = each().map(|(y, v)| y * y / v).sum::<f64>() - precision * mean * mean;
        let logs = each()
            .map(|(_, v)| (2.0 * std::f64::consts::PI * v).ln())
            .sum::<f64>();
        let log_density = -0.5 * (squares + logs + (wide * precision).ln());
        (log_density, centre + mean, 1.0 / precision)
    };
    let table = table(&[("se", &ERROR), ("y", &EFFECT)]);
    let (found, stored) = fitted("intercept() + iid(variance=36)", &table).unwrap();
    let (log_density, mean, variance) = given(36.0);
    close(found.bound, log_density, 1e-9, "bound");
    let level = found.parameters.iter().find(|p| p.name == "intercept");
    close(level.unwrap().mean, mean, 1e-8, "level");
    close(level.unwrap().sd, variance.sqrt(), 1e-8, "sd of the level");
    // A new row has a new effect, and no error as long as its standard deviation is unknown.
    let model = TableModel::new(
        &request("intercept() + iid(variance=36)").request(),
        &table,
        &PriorFiles::default(),
    );
    let model = model.unwrap();
    for (se, known) in [(&[5.0, f64::NAN][..], true), (&[][..], false)] {
        let new = match known {
            true => self::table(&[("se", se), ("y", &[1.0, 2.0])]),
            false => self::table(&[("z", &[0.0, 0.0])]),
        };
        let files = PriorFiles::default();
        let (parts, seen) = posterior_at(&model, &stored, &new, &[0, 1], &files).unwrap();
        let out = outcome(&model, &parts, &seen);
        for row in 0..2 {
            close(out.predictor[row].0, mean, 1e-8, "new mean");
            close(out.predictor[row].1, variance + 36.0, 1e-6, "new variance");
        }
        let (low, high) = out.predictive[0];
        let width = 2.0 * jensen::math::special::inv_phi(0.95) * (variance + 36.0 + 25.0).sqrt();
        match known {
            true => close(high - low, width, 1e-6, "new observation"),
            false => assert!(low.is_nan() && high.is_nan()),
        }
        assert_eq!(out.log_density[0].is_finite(), known);
        assert!(out.log_density[1].is_nan() && out.predictive[1].0.is_nan());
        assert!(!predictions(&model, &out, None, &[0, 1]).contains("NaN"));
    }
    // The default prior of the standard deviation between schools is exponential.
    let (found, _) = fitted("intercept() + iid()", &table).unwrap();
    let rate = -0.01f64.ln() / (3.0 * spread.sqrt());
    let step = 0.01;
    let (mut total, mut first, mut second) = (0.0, 0.0, 0.0);
    for k in 0..20_000 {
        let sd = step * (f64::from(k) + 0.5);
        let (log_density, mean, variance) = given(sd * sd);
        let weight = step * (log_density + rate.ln() - rate * sd).exp();
        total += weight;
        first += weight * mean;
        second += weight * (variance + mean * mean);
    }
    let mean = first / total;
    close(found.evidence.unwrap(), total.ln(), 0.02, "evidence");
    let level = found
        .parameters
        .iter()
        .find(|p| p.name == "intercept")
        .unwrap();
    let sd = (second / total - mean * mean).sqrt();
    close(level.mean, mean, 0.02 * sd, "level");
    close(level.sd, sd, 0.02 * sd, "sd of the level");
}

#[test]
fn errors_that_are_not_positive_are_refused_with_their_row() {
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut errors = ERROR;
        errors[2] = bad;
        let message = fitted("intercept()", &table(&[("se", &errors), ("y", &EFFECT)]))
            .unwrap_err()
            .to_string();
        assert!(message.contains("row 3"), "{bad}: {message}");
    }
    let message = fitted("intercept()", &table(&[("s", &ERROR), ("y", &EFFECT)]))
        .unwrap_err()
        .to_string();
    assert!(message.contains("there is no column `se`"), "{message}");
}
