//! Tests of leave-one-out cross-validation in `jensen latent fit` and `jensen compare`.

use serde_json::Value;

use crate::common::{Desk, jensen};

const ROWS: u32 = 16;

/// Counts of four groups that grow with x, without one row.
fn table(without: Option<u32>) -> String {
    let mut text = "x,g,y\n".to_owned();
    for i in (0..ROWS).filter(|i| Some(*i) != without) {
        let x = f64::from(i % 8) / 4.0;
        let group = i % 4;
        let noise = f64::from(i * 7 % 16) / 16.0 - 0.5;
        let y = (1.0 + 0.8 * x + 0.3 * f64::from(group) + noise)
            .exp()
            .round();
        text += &format!("{x},{group},{y}\n");
    }
    text
}

fn fit(desk: &Desk, prior: &str, table: &str, likelihood: &str, out: &str) -> Value {
    let folder = desk.name(out);
    let file = desk.file(&format!("{out}.csv"), table);
    let args = [
        "latent",
        "fit",
        &file,
        "--likelihood",
        likelihood,
        "--prior",
        prior,
        "--out",
        &folder,
    ];
    jensen([&args[..], &["--response", "y", "--quiet"]].concat());
    serde_json::from_str(&read(desk, &format!("{out}/fit.json"))).unwrap()
}

fn read(desk: &Desk, name: &str) -> String {
    std::fs::read_to_string(desk.path(name)).unwrap()
}

fn column(text: &str, name: &str) -> Vec<f64> {
    let mut lines = text.lines();
    let at = lines
        .next()
        .unwrap()
        .split(',')
        .position(|head| head == name)
        .unwrap();
    lines
        .map(|line| line.split(',').nth(at).unwrap().parse().unwrap())
        .collect()
}

/// The log density of each row given all others is that of a fit without the row, with hyperparameters integrated out.
#[test]
fn each_row_is_predicted_as_by_a_fit_without_it() {
    let prior = "intercept() + fixed(x) + iid(on=g)";
    for likelihood in ["gaussian", "poisson"] {
        let desk = Desk::new();
        let whole = fit(&desk, prior, &table(None), likelihood, "whole");
        let rows = read(&desk, "whole/predictions.csv");
        let own = column(&rows, "loo_log_density");
        let total = whole["leave_one_out"]["elpd"].as_f64().unwrap();
        assert!((own.iter().sum::<f64>() - total).abs() < 1e-9 * total.abs());
        assert!(
            column(&rows, "loo_pit")
                .iter()
                .all(|p| (0.0..=1.0).contains(p))
        );
        let all = desk.file("all.csv", &table(None));
        let mut sum = 0.0;
        for i in 0..ROWS {
            fit(&desk, prior, &table(Some(i)), likelihood, "part");
            let text = jensen(["latent", "predict", &desk.name("part"), "--at", &all]).stdout;
            let exact = column(&text, "log_density")[i as usize];
            let found = own[i as usize];
            assert!(
                (found - exact).abs() < 0.25,
                "{likelihood}, row {i}: {found} and {exact}"
            );
            sum += exact;
            std::fs::remove_dir_all(desk.name("part")).unwrap();
        }
        assert!((total - sum).abs() < 0.5, "{likelihood}: {total} and {sum}");
    }
}

/// `jensen compare` prefers the model with the effect, and refuses fits of other observations.
#[test]
fn latent_fits_are_compared() {
    let desk = Desk::new();
    fit(&desk, "intercept()", &table(None), "poisson", "plain");
    fit(
        &desk,
        "intercept() + fixed(x)",
        &table(None),
        "poisson",
        "effect",
    );
    let names = [desk.name("plain"), desk.name("effect")];
    let found = jensen(["compare", &names[0], &names[1], "--json"]);
    let candidates: Value = serde_json::from_str(&found.stdout).unwrap();
    let first = &candidates[0];
    assert!(
        first["fit"].as_str().unwrap().ends_with("effect"),
        "{candidates}"
    );
    assert_eq!(
        first["loo"]["pointwise"].as_array().unwrap().len(),
        ROWS as usize
    );
    let behind = candidates[1]["difference"][0].as_f64().unwrap();
    assert!(behind < -5.0, "{behind}");
    fit(&desk, "intercept()", &table(Some(3)), "poisson", "shorter");
    let other = jensen(["compare", &names[0], &desk.name("shorter")]).expect(3);
    assert!(
        other
            .stderr
            .contains("compare only fits of the same observations"),
        "{}",
        other.stderr
    );
}
