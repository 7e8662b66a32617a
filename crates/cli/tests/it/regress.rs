//! Tests `jensen regress` from a table to predictions.

use std::fs;

use crate::common::{Desk, jensen, read_json};

/// Writes forty rows in four groups. The responses are close to a line, and one response is missing.
fn table(desk: &Desk) -> String {
    let noise = |i: usize| ((i + 1) as f64 * 0.754_877_666_246_69).fract() - 0.5;
    let mut text = "y,dose,site\n".to_owned();
    for i in 0..40 {
        let dose = (i % 10) as f64;
        let y = 3.0 + 0.5 * dose + 0.8 * noise(i);
        let cell = if i == 17 {
            "NA".to_owned()
        } else {
            y.to_string()
        };
        text += &format!(
            "{cell},{dose},{}\n",
            ["north", "south", "east", "west"][i / 10]
        );
    }
    desk.file("table.csv", &text)
}

#[test]
fn a_formula_is_fitted_under_the_names_of_the_table_and_predicts_new_rows() {
    let desk = Desk::new();
    let file = table(&desk);
    let out = desk.path("fit");
    let folder = out.display().to_string();
    let done = jensen(["regress", &file, "y ~ dose + (1 | site)", "--out", &folder]).expect(0);
    assert!(
        done.stdout.contains("b[dose]") && done.stdout.contains("sd_site[Intercept]"),
        "{}",
        done.stdout
    );
    assert!(
        done.stdout.contains("b ~ normal(0, 2.5 * y_sd ./ X_sd)"),
        "{}",
        done.stdout
    );
    assert!(
        done.stderr.contains("omits 1 of 40 rows"),
        "{}",
        done.stderr
    );
    let fit = read_json(&out.join("fit.json"));
    let slope = fit["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["label"] == "b[dose]")
        .unwrap();
    assert!(
        (slope["mean"].as_f64().unwrap() - 0.5).abs() < 0.05,
        "{slope}"
    );
    let rows = desk.file("new.csv", "dose,site\n20,north\n20,elsewhere\n");
    let done = jensen(["regress", "predict", &folder, &rows]).expect(0);
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert!(
        lines[0].starts_with("row,expected,sd,q05,q95"),
        "{}",
        lines[0]
    );
    let expected: f64 = lines[1].split(',').nth(1).unwrap().parse().unwrap();
    assert!((expected - 13.0).abs() < 1.0, "{expected}");
    assert_eq!(lines.len(), 3);
}

#[test]
fn a_wrong_formula_is_shown_with_its_place_and_a_program_is_written() {
    let desk = Desk::new();
    let file = table(&desk);
    let done = jensen(["regress", &file, "y ~ doze"]).expect(3);
    assert!(
        done.stderr
            .contains("\n  y ~ doze\n      ^^^^\ndid you mean `dose`?"),
        "{}",
        done.stderr
    );
    let stan = desk.path("model.stan");
    jensen([
        "regress",
        &file,
        "y ~ dose",
        "--stan",
        &stan.display().to_string(),
    ])
    .expect(0);
    assert!(
        fs::read_to_string(&stan)
            .unwrap()
            .starts_with("// y ~ dose\n")
    );
    assert_eq!(read_json(&stan.with_extension("json"))["N"], 39);
}
