//! `jensen factor-analysis` from a table to loadings.

use std::fs;

use crate::common::{Desk, jensen, read_json};

/// 200 rows of six columns around two factors, the first in the first four columns, with noise of variance 0.03 and a cell in eleven
/// missing; and the cells that are not there.
fn measurements(desk: &Desk) -> (String, Vec<(usize, usize, f64)>) {
    let noise = |i: usize| ((i + 1) as f64 * 0.754_877_666_246_69).fract() - 0.5;
    let (mut text, mut missing) = ("a,b,c,d,e,f\n".to_owned(), Vec::new());
    for row in 0..200 {
        let scores = [3.4 * noise(7 * row), 3.4 * noise(13 * row + 5)];
        let cells: Vec<String> = (0..6)
            .map(|column| {
                let weight = [2.0, 1.5, -2.0, 1.0, -0.8, 0.9][column];
                let x = 5.0 + weight * scores[column / 4] + 0.6 * noise(31 * row + 17 * column);
                match (row * 6 + column) % 11 {
                    3 => {
                        missing.push((row, column, x));
                        "NA".to_owned()
                    }
                    _ => x.to_string(),
                }
            })
            .collect();
        text += &(cells.join(",") + "\n");
    }
    (desk.file("measurements.csv", &text), missing)
}

#[test]
fn factors_are_found_and_missing_cells_filled_in() {
    let desk = Desk::new();
    let (file, missing) = measurements(&desk);
    let out = desk.path("axes").display().to_string();
    let base = ["factor-analysis", "fit", &file, "--factors", "2"];
    let done = jensen([&base[..], &["--out", &out]].concat()).expect(0);
    assert!(
        done.stdout.contains("likelihood.variance"),
        "{}",
        done.stdout
    );
    let fit = read_json(&desk.path("axes/fit.json"));
    assert_eq!(
        (&fit["trusted"], &fit["missing"]),
        (&true.into(), &missing.len().into())
    );
    let variance = &fit["hyperparameters"][0];
    assert_eq!(variance["learnt"], true);
    // A share of each column's variance, which is 0.6 to 4.
    let share = variance["value"].as_f64().unwrap();
    let noise: Vec<f64> = fit["noise"]
        .as_array()
        .unwrap()
        .iter()
        .map(|x| x.as_f64().unwrap())
        .collect();
    assert!((0.008..0.05).contains(&share), "{share}");
    assert!(noise.iter().all(|x| (0.005..0.15).contains(x)), "{noise:?}");
    // Scores have about unit variance, so loadings are the weights; the factor of more columns is the first.
    for (column, row) in fit["loadings"].as_array().unwrap().iter().enumerate() {
        let weight = [2.0, 1.5, -2.0, 1.0, -0.8, 0.9][column];
        let own = row[column / 4].as_f64().unwrap();
        let other = row[1 - column / 4].as_f64().unwrap();
        assert!(
            (own.abs() - f64::abs(weight)).abs() < 0.25,
            "{column}: {row}"
        );
        assert!(other.abs() < 0.25, "{column}: {row}");
    }
    let completed = fs::read_to_string(desk.path("axes/completed.csv")).unwrap();
    let cells: Vec<Vec<f64>> = completed
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|c| c.parse().unwrap()).collect())
        .collect();
    let squares: f64 = missing
        .iter()
        .map(|(row, column, x)| (cells[*row][*column] - x).powi(2))
        .sum();
    let error = (squares / missing.len() as f64).sqrt();
    // The noise alone makes 0.17; the columns' own spread is 1 to 2.
    assert!(error < 0.35, "{error}");
    assert_eq!(
        fs::read_to_string(desk.path("axes/scores.csv"))
            .unwrap()
            .lines()
            .count(),
        201
    );
    let page = fs::read_to_string(desk.path("axes/report.html")).unwrap();
    assert!(page.contains("Loadings") && page.contains("Scores"));

    // Interrupted and gone on with, it ends the same.
    let parts = desk.path("parts").display().to_string();
    jensen([&base[..], &["--out", &parts, "--max-iters", "3"]].concat()).expect(4);
    let again = [
        "factor-analysis",
        "fit",
        "--out",
        &parts,
        "--resume",
        "--max-iters",
        "10000",
    ];
    jensen(again).expect(0);
    let resumed = read_json(&desk.path("parts/fit.json"));
    assert_eq!(resumed["loadings"], fit["loadings"]);
    assert_eq!(resumed["bound"], fit["bound"]);
}

#[test]
fn other_likelihoods_and_mistakes() {
    let desk = Desk::new();
    let rows: String = (0..40)
        .map(|i| {
            format!(
                "{},{},{}\n",
                i % 2,
                (i / 2) % 2,
                (i % 2) ^ usize::from(i % 9 == 0)
            )
        })
        .collect();
    let file = desk.file("bits.csv", &format!("a,b,c\n{rows}"));
    let base = ["factor-analysis", "fit", &file, "-k", "1"];
    let fit = jensen([&base[..], &["--likelihood", "bernoulli", "--json"]].concat())
        .expect(0)
        .json();
    // The first and the last column go together, the other does not.
    let loading = |i: usize| fit["loadings"][i][0].as_f64().unwrap();
    assert!(
        loading(0) > 1.0 && loading(2) > 1.0 && loading(1).abs() < 0.5,
        "{fit}"
    );
    for (args, output, code) in [
        (
            vec!["--likelihood", "poissson"],
            "there is no `poissson`",
            3,
        ),
        (
            vec!["--likelihood", "multinomial"],
            "several linear predictors",
            3,
        ),
        (vec!["--likelihood", "gamma"], "column 1, row 1", 3),
    ] {
        let done = jensen([&base[..], &args[..]].concat()).expect(code);
        assert!(done.stderr.contains(output), "{args:?}: {}", done.stderr);
    }
}
