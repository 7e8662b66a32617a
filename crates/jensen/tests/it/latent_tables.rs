//! Tests of latent Gaussian models with the tables in `models/tables/latent`. The effects are compared with least
//! squares and maximum likelihood for several scales of the data. The verdicts are also tested.

use std::fs;
use std::path::{Path, PathBuf};

use jensen::data::{Cells, Column, Table};
use jensen::latent::{LatentRequest, LatentSummary, fit_latent_in_memory};
use serde_json::{Value, json};

use crate::common::alone;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/tables/latent")
}

fn fitted(request: LatentRequest, table: &Table) -> LatentSummary {
    alone(|around| fit_latent_in_memory(request, table, around, |done| done.summary))
        .unwrap_or_else(|e| panic!("{}: {e}", table.source()))
}

#[test]
fn tables_at_raw_scales_have_their_known_effects() {
    let cases: Value =
        serde_json::from_str(&fs::read_to_string(folder().join("cases.json")).unwrap()).unwrap();
    for case in cases.as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let table = Table::read(&folder().join(case["table"].as_str().unwrap())).unwrap();
        let request: LatentRequest = serde_json::from_value(case["request"].clone()).unwrap();
        let found = fitted(request, &table);
        let effect = |what: &str| {
            let row = found.parameters.iter().find(|p| p.name == what);
            row.unwrap_or_else(|| panic!("{name}: no {what}"))
        };
        if let Some(trusted) = case["trusted"].as_bool() {
            assert_eq!(
                found.judgement.trusted, trusted,
                "{name}: {:?}",
                found.judgement
            );
        }
        if let Some(says) = case["says"].as_str() {
            let said = found.judgement.warnings.join("\n");
            assert!(said.contains(says), "{name}: {said}");
        }
        let finite = found
            .parameters
            .iter()
            .all(|p| p.mean.is_finite() && p.sd.is_finite());
        assert!(finite && found.bound.is_finite(), "{name}: {found:?}");
        for (what, known) in case["effects"].as_object().into_iter().flatten() {
            let (mean, sd) = (known[0].as_f64().unwrap(), known[1].as_f64().unwrap());
            let own = effect(what);
            // The prior has a standard deviation of 2.5. If there are few rows, the noise is also uncertain.
            assert!(
                (own.mean - mean).abs() < 0.3 * sd,
                "{name}, {what}: {} and {mean} ± {sd}",
                own.mean
            );
            assert!(
                (own.sd / sd - 1.0).abs() < 0.35,
                "{name}, {what}: {} and {sd}",
                own.sd
            );
        }
        for (what, known) in case["near"].as_object().into_iter().flatten() {
            let (own, known) = (effect(what), known.as_f64().unwrap());
            assert!(
                (own.mean - known).abs() < 3.0 * own.sd,
                "{name}, {what}: {own:?}"
            );
        }
        if case["integrated"].as_bool() == Some(true) {
            // Hyperparameters with given values have no interval.
            let mut free = found
                .hyperparameters
                .iter()
                .filter(|h| h.q05.is_some())
                .peekable();
            assert!(found.evidence.is_some() && free.peek().is_some());
            assert!(free.all(|h| h.q05 < h.q95), "{name}");
        }
    }
}

/// The means and standard deviations of effects and fields must agree with those of NUTS to within a tenth of a
/// standard deviation plus the error of NUTS. The means of hyperparameters must agree to within 0.15 standard
/// deviations. The book lists the differences.
#[test]
fn posteriors_are_those_of_nuts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let known: Value =
        serde_json::from_str(&fs::read_to_string(folder().join("nuts.json")).unwrap()).unwrap();
    let mut off = Vec::new();
    for case in known.as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let table = Table::read(&folder().join(case["table"].as_str().unwrap())).unwrap();
        let mut request: LatentRequest = serde_json::from_value(case["request"].clone()).unwrap();
        let here = format!("graph={}/data", root.display());
        request.prior = request
            .prior
            .map(|prior| prior.replace("graph=data", &here));
        let found = fitted(request, &table);
        assert!(found.judgement.trusted, "{name}: {:?}", found.judgement);
        for (what, known) in case["posterior"].as_object().unwrap() {
            let [mean, sd, error] = [0, 1, 2].map(|k| known[k].as_f64().unwrap());
            let own = match what.strip_prefix("h:") {
                Some(hyper) => (found.hyperparameters.iter())
                    .find(|h| h.name == hyper)
                    .and_then(|h| Some((h.mean?, h.sd?))),
                None => (found.parameters.iter())
                    .find(|p| p.name == *what)
                    .map(|p| (p.mean, p.sd)),
            };
            let own = own.unwrap_or_else(|| panic!("{name}: no {what}"));
            let chance = 3.0 * error / sd;
            let (mean_off, sd_off) = ((own.0 - mean) / sd, own.1 / sd - 1.0);
            let (close, spread) = match what.starts_with("h:") {
                true => (0.15, f64::INFINITY),
                false => (0.1, 0.1),
            };
            if mean_off.abs() > close + chance || sd_off.abs() > spread + chance {
                off.push(format!(
                    "{name}, {what}: mean {mean_off:+.3} sd, sd {sd_off:+.3}"
                ));
            }
        }
    }
    assert!(off.is_empty(), "{}", off.join("\n"));
}

/// For 300 groups of four binary rows, the variance that the tilted bound learns is too small by more than its
/// posterior standard deviation.
#[test]
fn a_bound_that_misplaces_a_variance_is_not_trusted() {
    let noise = |i: usize| ((i * i + 7 * i + 3) as f64 * 0.618_033_988_749_895).fract();
    let effect = |g: usize| 1.8 * jensen::math::special::inv_phi((g as f64 + 0.5) / 300.0);
    let group: Vec<f64> = (0..1200).map(|i| (i / 4) as f64).collect();
    let y = (0..1200).map(|i| f64::from(noise(i) < 1.0 / (1.0 + (-effect(i / 4)).exp())));
    let column = |name: &str, values: Vec<f64>| {
        jensen::data::Column::new(name.to_owned(), jensen::data::Cells::Numbers(values))
    };
    let columns = vec![column("group", group), column("y", y.collect())];
    let table = Table::new("groups", columns).unwrap();
    let request = |bound: &str| LatentRequest {
        likelihood: Some("bernoulli".to_owned()),
        prior: Some("intercept() + iid(on=group)".to_owned()),
        bound: Some(bound.to_owned()),
        ..LatentRequest::default()
    };
    let variance = |found: &LatentSummary| {
        let row = found
            .hyperparameters
            .iter()
            .find(|h| h.name == "iid.variance");
        row.unwrap().clone()
    };
    let (exact, tilted) = (
        fitted(request("exact"), &table),
        fitted(request("tilted"), &table),
    );
    assert!(exact.judgement.trusted, "{:?}", exact.judgement);
    assert_eq!(variance(&exact).misplaced, None);
    let (right, loose) = (variance(&exact), variance(&tilted));
    // The shift is reported on the log scale of the variance. The posterior standard deviation on this scale is about
    // `spread`.
    let spread = (right.q95.unwrap() / right.q05.unwrap()).ln() / 3.29;
    let distance = (right.value / loose.value).ln() / spread;
    let reported = loose.misplaced.unwrap();
    assert!(
        (reported - distance).abs() < 0.4 * distance,
        "{reported} {distance}"
    );
    assert!(
        !tilted.judgement.trusted && reported > 0.4,
        "{:?}",
        tilted.judgement
    );
    let said = tilted.judgement.warnings.join("\n");
    assert!(
        said.contains("iid.variance") && said.contains("too low"),
        "{said}"
    );
}

/// For random tables and the maps y → a + b·y and x → c + d·x, the predictions must change by the map, the effects by
/// their units, and the bounds by the Jacobian.
#[test]
fn units_are_only_units() {
    let n = 40;
    let number =
        |i: usize, k: usize| ((i * i + 31 * k + 3) as f64 * 0.618_033_988_749_895).fract() - 0.5;
    let x: Vec<f64> = (0..n).map(|i| number(i, 1)).collect();
    let z: Vec<f64> = (0..n).map(|i| number(i, 2)).collect();
    let y: Vec<f64> = (0..n)
        .map(|i| (5.0 * x[i]).sin() + z[i] + 0.5 * number(i, 3))
        .collect();
    let group: Vec<f64> = (0..n).map(|i| (i % 5) as f64).collect();
    let table = |(a, b): (f64, f64), (c, d): (f64, f64)| {
        let column = |name: &str, values: Vec<f64>| {
            jensen::data::Column::new(name.to_owned(), jensen::data::Cells::Numbers(values))
        };
        Table::new(
            "units",
            vec![
                column("x", x.iter().map(|x| c + d * x).collect()),
                column("z", z.iter().map(|z| c + d * z).collect()),
                column("group", group.clone()),
                column("y", y.iter().map(|y| a + b * y).collect()),
            ],
        )
        .unwrap()
    };
    for (likelihood, prior) in [
        ("gaussian", "intercept() + fixed(x, z)"),
        ("gaussian", "gp(rbf, ard, on=(x, z))"),
        (
            "gaussian",
            "gp(matern32, on=(x, z)) + fixed(z) + iid(on=group)",
        ),
        ("gaussian", "fixed(x) + rw1(on=group)"),
        (
            "student-t(degrees=4)",
            "intercept() + fixed(x, z) + iid(on=group)",
        ),
    ] {
        let request = LatentRequest {
            likelihood: Some(likelihood.to_owned()),
            prior: Some(prior.to_owned()),
            response: Some("y".to_owned()),
            ..LatentRequest::default()
        };
        let plain = fitted(request.clone(), &table((0.0, 1.0), (0.0, 1.0)));
        for ((a, b), (c, d)) in [
            ((3.0, 1e6), (-2.0, 1e-6)),
            ((-4e5, 1.0), (3e5, 1.0)),
            ((1.0, 1e-6), (7.0, 1e6)),
        ] {
            let moved = fitted(request.clone(), &table((a, b), (c, d)));
            let reported = format!("{prior} {a} {b} {c} {d}");
            let jacobian = n as f64 * f64::ln(b);
            assert!(
                (moved.bound + jacobian - plain.bound).abs() < 1e-3,
                "{reported}: {} {}",
                moved.bound + jacobian,
                plain.bound
            );
            let (own, other) = (moved.evidence.unwrap() + jacobian, plain.evidence.unwrap());
            assert!((own - other).abs() < 2e-2, "{reported}: {own} {other}");
            assert_eq!(
                moved.judgement.trusted, plain.judgement.trusted,
                "{reported}"
            );
            for (own, other) in moved.parameters.iter().zip(&plain.parameters) {
                let scale = match own.name.as_str() {
                    name if name.starts_with("fixed") => b / d,
                    _ => b,
                };
                // Intercepts and walks contain the level at the origin of the columns. The map shifts this origin, so
                // they are not compared.
                let origin = own.name.starts_with("intercept") || own.name.starts_with("rw1");
                let shift = if own.name.starts_with("eta") { a } else { 0.0 };
                let sd = scale * other.sd;
                if !origin {
                    assert!(
                        (own.mean - shift - scale * other.mean).abs() < 0.01 * sd,
                        "{reported}, {}: {own:?} {other:?}",
                        own.name
                    );
                    assert!(
                        (own.sd / sd - 1.0).abs() < 0.01,
                        "{reported}, {}: {own:?} {other:?}",
                        own.name
                    );
                }
            }
        }
    }
}

/// Basis functions give the posterior of the process that they approximate, and a fit whose functions cannot resolve
/// the lengthscale is not trusted.
#[test]
fn basis_functions_agree_with_the_process() {
    let n = 200;
    let x: Vec<f64> = (0..n)
        .map(|i| 10.0 * (f64::from(i) * 0.754_877_666).fract())
        .collect();
    let y: Vec<f64> = (x.iter().enumerate())
        .map(|(i, x)| {
            let noise = ((i as f64 * 12.9898).sin() * 43_758.545_3).rem_euclid(1.0);
            (1.3 * x).sin() + 0.6 * (noise - 0.5)
        })
        .collect();
    let columns =
        [("x", x), ("y", y)].map(|(name, values)| Column::new(name, Cells::Numbers(values)));
    let table = Table::new("memory", columns.into()).unwrap();
    let fit = |prior: &str| {
        let request = json!({"likelihood": "gaussian", "response": "y", "prior": prior});
        fitted(serde_json::from_value(request).unwrap(), &table)
    };
    let (exact, own) = (fit("gp(rbf, on=x)"), fit("hsgp(rbf, on=x)"));
    assert!(own.judgement.trusted, "{:?}", own.judgement);
    // The difference of the evidence in nats, and of medians in their standard deviations.
    let evidence = own.evidence.unwrap() - exact.evidence.unwrap();
    assert!(evidence.abs() < 0.02, "{evidence}");
    for (a, b) in exact.hyperparameters.iter().zip(&own.hyperparameters) {
        let (short, sd) = (a.name.replace("gp.", "hsgp."), a.sd.unwrap());
        assert_eq!(short, b.name);
        assert!((a.value - b.value).abs() < 0.03 * sd, "{a:?} {b:?}");
    }
    let few = fit("hsgp(rbf, on=x, basis=8)");
    let said = few.judgement.warnings.join("\n");
    assert!(
        !few.judgement.trusted && said.contains("change covariances by up to"),
        "{said}"
    );
}
