//! Tests that modes count as one answer if they differ only in the order of array elements, and that other modes do
//! not.

use crate::common::{Desk, jensen};
use serde_json::Value;

const DATA: &str = "transformed data {
    vector[18] y = [-6.4, -5.7, -6.1, -5.9, -6.6, -6.3, 0.2, -0.4, 0.1, 0.5, 7.2, 6.6, 7.1, 6.9, 7.6, 6.4, 7.3, 6.7]';
}";

#[track_caller]
fn fitted(program: &str, more: &[&str], code: i32) -> Value {
    let desk = Desk::new();
    let model = desk.file("model.stan", &format!("{DATA}\n{program}"));
    let line = ["fit", &model, "--json"].into_iter();
    jensen(line.chain(more.iter().copied())).expect(code).json()
}

fn mean(fit: &Value, name: &str) -> f64 {
    let parameters = fit["parameters"].as_array().expect("a list");
    let found = parameters.iter().find(|p| p["name"] == name);
    found.expect("a parameter")["mean"]
        .as_f64()
        .expect("a number")
}

fn warnings(fit: &Value) -> String {
    fit["warnings"].to_string()
}

/// Returns a mixture whose components have no order. Each component has its own weight, mean and scale.
fn components(count: usize, first: usize) -> String {
    format!(
        "parameters {{ simplex[{count}] w; vector[{count}] mu; vector<lower=0>[{count}] sigma; }}
         model {{
           w ~ dirichlet(rep_vector(5, {count}));
           mu ~ normal(0, 10);
           sigma ~ lognormal(-0.5, 0.5);
           for (n in 1 : 18) {{
             if (n > 6 && n <= {first}) continue;
             vector[{count}] part;
             for (k in 1 : {count}) part[k] = log(w[k]) + normal_lpdf(y[n] | mu[k], sigma[k]);
             target += log_sum_exp(part);
           }}
         }}"
    )
}

#[test]
fn components_without_an_order_are_one_answer_with_two_labellings() {
    for seed in ["1", "2"] {
        // The data do not contain the cluster in the middle.
        let fit = fitted(&components(2, 10), &["--seed", seed], 0);
        assert_eq!(fit["labellings"], 2);
        let mut found = [1, 2].map(|k| (mean(&fit, &format!("mu[{k}]")), k));
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        // The expected values are the means and sizes of the clusters. The prior of the weights adds five to each size.
        for ((mu, k), (centre, number)) in found.into_iter().zip([(-6.17, 11.0), (6.98, 13.0)]) {
            assert!((mu - centre).abs() < 0.15, "{mu}, not {centre}");
            let w = mean(&fit, &format!("w[{k}]"));
            assert!((w - number / 24.0).abs() < 0.02, "{w}, not {number} of 24");
        }
    }
}

#[test]
fn three_components_have_six_labellings() {
    // It does not matter here whether the fit is trusted, because there are a dozen poorer optima.
    let desk = Desk::new();
    let program = format!("{DATA}\n{}", components(3, 6));
    let model = desk.file("model.stan", &program);
    let fit = jensen(["fit", &model, "--json", "--seed", "1"]).json();
    assert_eq!(fit["labellings"], 6);
}

#[test]
fn the_summary_says_how_many_labellings_there_are() {
    let program = "
        parameters { vector[2] mu; }
        model {
          mu ~ normal(0, 10);
          for (n in 1 : 18) target += log_mix(0.5, normal_lpdf(y[n] | mu[1], 3), normal_lpdf(y[n] | mu[2], 3));
        }";
    let desk = Desk::new();
    let model = desk.file("model.stan", &format!("{DATA}\n{program}"));
    let outcome = jensen(["fit", &model]).expect(0);
    assert!(
        outcome.stdout.contains("one of 2 equivalent labellings"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn a_component_that_the_model_tells_apart_has_no_other_labelling() {
    // The first component has a slightly larger weight. The log densities of the labellings therefore differ by a nat,
    // and they are not the same answer.
    let program = "
        parameters { vector[2] mu; }
        model {
          mu ~ normal(0, 10);
          for (n in 1 : 18) target += log_mix(0.52, normal_lpdf(y[n] | mu[1], 2), normal_lpdf(y[n] | mu[2], 2));
        }";
    let fit = fitted(program, &["--family", "fullrank"], 4);
    assert_eq!(fit["labellings"], Value::Null);
    let said = warnings(&fit);
    assert!(
        said.contains("several modes") && said.contains(" in `mu["),
        "{said}"
    );
}

#[test]
fn a_quantity_with_two_modes_of_its_own_is_not_output_in_one_of_them() {
    let program = "
        parameters { vector[3] x; real z; }
        model {
          x[2 : 3] ~ normal(0, 1);
          z ~ normal(x[1], 1);
          target += log_mix(0.5, normal_lpdf(x[1] | -5, 1), normal_lpdf(x[1] | 5, 1));
        }";
    let fit = fitted(program, &["--family", "fullrank"], 4);
    assert_eq!(fit["labellings"], Value::Null);
    assert!(
        warnings(&fit).contains("the log density is the same if signs change"),
        "{}",
        warnings(&fit)
    );
    // The policy finds both modes, so z has mean 0 and variance 25 + 2.
    let fit = fitted(program, &["--seed", "1"], 0);
    assert!(
        fit["family"].as_str().unwrap().starts_with("mixture"),
        "{}",
        fit["family"]
    );
    let z = fit["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["name"] == "z")
        .unwrap();
    assert!(z["mean"].as_f64().unwrap().abs() < 0.3, "{z}");
    assert!(
        (z["sd"].as_f64().unwrap() / 27f64.sqrt() - 1.0).abs() < 0.03,
        "{z}"
    );
}
