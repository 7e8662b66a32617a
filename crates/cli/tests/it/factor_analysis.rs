//! Tests `jensen factor-analysis` from a table to loadings.

use std::fs;

use crate::common::{Desk, jensen, read_json};

/// Writes 200 rows of six columns, generated from two factors. The first factor affects the first four columns. The
/// noise has a variance of 0.03, and one of every eleven cells is missing. Returns the path and the missing values.
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
    // The noise is reported as a fraction of the variance of each column. These variances are between 0.6 and 4.
    let share = variance["value"].as_f64().unwrap();
    let noise: Vec<f64> = fit["noise"]
        .as_array()
        .unwrap()
        .iter()
        .map(|x| x.as_f64().unwrap())
        .collect();
    assert!((0.008..0.05).contains(&share), "{share}");
    assert!(noise.iter().all(|x| (0.005..0.15).contains(x)), "{noise:?}");
    // The variance of the scores is about 1, so the loadings are the weights. The factor that affects more columns
    // comes first.
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
    // The noise alone accounts for an error of 0.17. The standard deviations of the columns are between 1 and 2.
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

    // A fit that is interrupted and resumed ends with the same result.
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
    // The first and the last column depend on the same factor, and the other column does not.
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

/// If there are only a few distinct rows, the factors reproduce them exactly, and the likelihood is unbounded.
#[test]
fn a_likelihood_without_a_bound_is_not_trusted() {
    let desk = Desk::new();
    let rows = "0.3,-1.2,0.8,2.1\n1.7,0.4,-0.6,0.2\n-0.9,0.5,1.1,-1.4\n".repeat(10);
    let file = desk.file("few.csv", &format!("a,b,c,d\n{rows}"));
    let fit = |factors: &str, code| {
        let line = ["factor-analysis", "fit", &file, "-k", factors, "--json"];
        jensen(line).expect(code).json()
    };
    let warnings = fit("2", 4)["warnings"].to_string();
    assert!(
        warnings.contains("the likelihood is unbounded"),
        "{warnings}"
    );
    fit("1", 0);
    let same = desk.file("same.csv", &format!("a,b\n{}", "1.5,2.5\n".repeat(20)));
    let said = jensen(["factor-analysis", "fit", &same, "-k", "1"])
        .expect(3)
        .stderr;
    assert!(said.contains("every column is constant"), "{said}");
}

/// A table whose columns have units of 1e10 and 1e-6 must need no more iterations than other tables. In these units,
/// the loadings must be the same.
#[test]
fn units_cost_no_iterations() {
    let desk = Desk::new();
    let (file, _) = measurements(&desk);
    let text = fs::read_to_string(&file).unwrap();
    let scales = [1e10, 1e-6, 1.0, 1.0, 1.0, 1.0];
    let mut other = "a,b,c,d,e,f\n".to_owned();
    for row in text.lines().skip(1) {
        let cells = row.split(',').zip(scales).map(|(cell, scale)| {
            let number = cell.parse::<f64>();
            number.map_or_else(|_| cell.to_owned(), |x| (x * scale).to_string())
        });
        other += &(cells.collect::<Vec<_>>().join(",") + "\n");
    }
    let other = desk.file("units.csv", &other);
    let fit = |file: &str| {
        let line = ["factor-analysis", "fit", file, "-k", "2", "--json"];
        jensen(line).expect(0).json()
    };
    let (plain, scaled) = (fit(&file), fit(&other));
    let iterations = |fit: &serde_json::Value| fit["iterations"].as_u64().unwrap();
    assert!(iterations(&scaled) <= iterations(&plain) + 2, "{scaled}");
    for (column, scale) in scales.iter().enumerate() {
        let loading = |fit: &serde_json::Value| fit["loadings"][column][0].as_f64().unwrap();
        let ratio = loading(&scaled) / (loading(&plain) * scale);
        assert!((ratio.abs() - 1.0).abs() < 0.02, "{column}: {ratio}");
    }
}
