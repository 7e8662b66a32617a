//! Tests that compare regressions with long NUTS runs of the programs that brms generates for the same formulas and
//! priors. The script `tools/peers/regress.py` stores the references.

use std::path::Path;

use jensen::data::Adjacency;
use jensen::job::ResultFolder;
use jensen::regress::{Request, read_frame};
use serde_json::Value;

use crate::regress::fitted;

/// The case in which the intercept has long tails, because the dependence between the regions may be nearly complete.
const LONG_TAILS: &str = "map_escar";

fn compare(first: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/regressions");
    let stored = std::fs::read(folder.join("references.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_slice(&stored).unwrap();
    let words = |value: &Value| -> Vec<String> {
        let words = value.as_array().unwrap().iter();
        words
            .map(|word| word.as_str().unwrap().to_owned())
            .collect()
    };
    for case in cases.iter().skip(first).step_by(4) {
        let name = case["name"].as_str().unwrap();
        if name == "decisions" {
            // This case is skipped, because the second derivatives of the density of a diffusion take fourteen seconds
            // of processor time. The script `tools/peers/regress.py` compares it.
            continue;
        }
        let request = Request {
            formulas: words(&case["formulas"]),
            family: Some(case["family"].as_str().unwrap().to_owned()),
            priors: words(&case["priors"]),
            // Replicates would take most of the time, and the test does not compare them.
            pointwise: Some(false),
            ..Request::default()
        };
        let mut frame = read_frame(&folder.join(format!("{name}.csv")), u64::MAX).unwrap();
        if request.formulas[0].contains("car(") {
            let map = Adjacency::read(&folder.join("map.graph")).unwrap();
            frame.graphs.insert("map.graph".to_owned(), map);
        }
        let fit = fitted(&request, &frame, ResultFolder::None);
        assert!(fit.trusted(), "{name}: {:?}", fit.warnings());
        let all = fit.parameters();
        for (variable, rows) in case["posterior"].as_object().unwrap() {
            let own: Vec<_> = (all.iter())
                .filter(|p| p.name.split('[').next() == Some(variable))
                .collect();
            let rows = rows.as_array().unwrap();
            assert_eq!(own.len(), rows.len(), "{name}: {variable}");
            for (own, row) in own.iter().zip(rows) {
                let number = |at: usize| row[at].as_f64().unwrap();
                let (mean, sd, mcse) = (number(0), number(1), number(2));
                let error = mcse.hypot(own.mcse.unwrap_or(0.05 * sd));
                // The tolerance is four and a half standard errors, because about 150 means are compared, plus the
                // rounding error of the stored data.
                assert!(
                    (own.mean - mean).abs() < 4.5 * error + 0.01 * sd,
                    "{name}: {} is {} ± {}, by NUTS {mean} ± {sd}, {:.1} errors",
                    own.name,
                    own.mean,
                    own.sd,
                    (own.mean - mean).abs() / error
                );
                // In this case only, the standard deviation may be absent. The draws do not determine the standard
                // deviation of a distribution with long tails, and the estimate by NUTS is also uncertain.
                if own.undefined.is_some() && name == LONG_TAILS {
                    let tail = own.tail_khat.unwrap_or(0.0);
                    assert!(
                        tail > 0.3,
                        "{name}: {} has no sd, its tails are short",
                        own.name
                    );
                    continue;
                }
                assert!(
                    (own.sd / sd).ln().abs() < 0.2,
                    "{name}: the sd of {} is {}, by NUTS {sd}",
                    own.name,
                    own.sd
                );
            }
        }
    }
}

#[test]
fn posteriors_are_those_of_nuts_first_quarter() {
    compare(0);
}

#[test]
fn posteriors_are_those_of_nuts_second_quarter() {
    compare(1);
}

#[test]
fn posteriors_are_those_of_nuts_third_quarter() {
    compare(2);
}

#[test]
fn posteriors_are_those_of_nuts_fourth_quarter() {
    compare(3);
}
