//! Tests `jensen vae` with tables. The tests cover counts, missing values, and the weight of the divergence.

use std::fs;

use serde_json::Value;

use crate::common::{Desk, Finished, jensen, read_json, trace_of};
use crate::vae::{Dice, one_factor, refused};

/// Returns counts of 24 genes in 400 cells. There are two kinds of cells, and each kind expresses 12 of the genes five
/// times as often as the others. A cell has between 40 and 400 molecules.
fn cells() -> String {
    let mut dice = Dice(11);
    let names: Vec<String> = (1..=24).map(|gene| format!("gene{gene}")).collect();
    let mut csv = names.join(",") + "\n";
    for cell in 0..400 {
        let mut counts = [0; 24];
        for _ in 0..40 + dice.below(360) {
            let own = dice.below(6) < 5;
            let gene = dice.below(12) + if own == (cell % 2 == 0) { 0 } else { 12 };
            counts[gene as usize] += 1;
        }
        csv += &(counts.map(|count| count.to_string()).join(",") + "\n");
    }
    csv
}

fn run(line: &str) -> Finished {
    jensen(line.split_whitespace())
}

fn cells_of(text: &str) -> Vec<Vec<Option<f64>>> {
    let row = |line: &str| line.split(',').map(|x| x.parse().ok()).collect();
    text.lines().skip(1).map(row).collect()
}

fn numbers_of(text: &str) -> Vec<Vec<f64>> {
    let rows = cells_of(text).into_iter();
    rows.map(|row| row.into_iter().map(Option::unwrap).collect())
        .collect()
}

fn number(of: &Value, name: &str) -> f64 {
    of[name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name} of {of}"))
}

#[test]
fn counts_of_cells_are_better_explained_than_by_independent_genes() {
    let desk = Desk::new();
    let table = desk.file("cells.csv", &cells());
    let fitted = |decoder: &str, plain: &str| {
        let made = run(&format!(
            "vae fit {table} --decoder {decoder} --library-size on --latent 1 --hidden 12 --epochs 60 --batch 20 \
             --optimizer adam --step-size 0.01 --validation 0.25 --json"
        ));
        let made = made.expect(0).json();
        assert_eq!(made["baseline"]["model"], plain);
        assert_eq!(made["active_units"], 1);
        let bound = number(&made, "validation_bound");
        // Twenty molecules are enough to identify the kind of a cell.
        assert!(
            bound > number(&made["baseline"], "score") + 10.0,
            "{decoder}: {made}"
        );
        bound
    };
    let poisson = fitted("poisson", "independent Poisson counts");
    let negative = fitted("negative-binomial", "independent negative binomial counts");
    let inflated = fitted(
        "zero-inflated-negative-binomial",
        "independent negative binomial counts with excess zeros",
    );
    // Given their total and the kind of the cell, the counts are multinomial. All three distributions have a larger
    // spread.
    assert!(
        poisson > negative - 0.5 && poisson > inflated - 0.5,
        "{poisson} {negative} {inflated}"
    );
    let sleep = run(&format!(
        "vae fit {table} --decoder poisson --library-size on --method wake-sleep --hidden 12 --latent 1 --epochs 3 --json"
    ));
    assert!(sleep.json()["bound"].is_number());
}

#[test]
fn cells_keep_their_library_size() {
    let desk = Desk::new();
    let (table, fit) = (desk.file("cells.csv", &cells()), desk.name("fit"));
    let made = run(&format!(
        "vae fit {table} --decoder negative-binomial --library-size on --latent 1 --hidden 12 --epochs 40 --batch 20 \
         --optimizer adam --step-size 0.01 --quiet --out {fit}"
    ));
    made.expect(0);
    let counts = numbers_of(&fs::read_to_string(&table).unwrap());
    let rebuilt = run(&format!("vae reconstruct {fit} {table}")).expect(0);
    for (means, counts) in numbers_of(&rebuilt.stdout).iter().zip(&counts) {
        let (mean, total) = (means.iter().sum::<f64>(), counts.iter().sum::<f64>());
        assert!((mean / total - 1.0).abs() < 1e-4, "{mean} for {total}");
    }
    let typical = read_json(&desk.path("fit/architecture.json"));
    let typical = number(&typical["architecture"], "library_size");
    assert!((typical - 220.0).abs() < 15.0, "{typical}");
    let drawn = run(&format!("vae sample {fit} --observations --count 400")).expect(0);
    let drawn = numbers_of(&drawn.stdout).concat();
    assert!(drawn.iter().all(|x| x.fract() == 0.0 && *x >= 0.0));
    let mean = drawn.iter().sum::<f64>() / 400.0;
    assert!((mean / typical - 1.0).abs() < 0.05, "{mean} for {typical}");
    let scored = run(&format!("vae evaluate {fit} {table} --json"))
        .expect(0)
        .json();
    assert!(number(&scored["importance"], "bound") > number(&scored, "bound"));
}

#[test]
fn values_that_are_no_counts_are_refused() {
    let desk = Desk::new();
    let half = desk.file("half.csv", "a,b\n3,1\n0,1.5\n");
    refused(
        &["vae", "fit", &half, "--decoder", "poisson"],
        3,
        &["half.csv", "row 2", "value 2", "1.5", "whole number"],
    );
    let none = desk.file("none.csv", "a,b\n0,0\n0,0\n");
    let args = ["vae", "fit", &none, "--library-size", "on"];
    refused(&args, 2, &["--decoder negative-binomial"]);
    let args = [&args[..], &["--decoder", "poisson"]].concat();
    refused(&args, 3, &["none.csv", "every count", "--library-size"]);
}

#[test]
fn a_heavier_divergence_makes_codes_cheaper_and_bounds_stay_bounds() {
    let desk = Desk::new();
    let table = desk.file("table.csv", &one_factor());
    let fitted = |more: &str| {
        let made = run(&format!(
            "vae fit {table} --decoder gaussian --latent 2 --hidden none --batch 20 --optimizer adam --step-size 0.02 \
             --epochs 150 --json {more}"
        ));
        let made = made.json();
        ["bound", "likelihood", "divergence"].map(|name| number(&made, name))
    };
    let (plain, heavy) = (fitted(""), fitted("--beta 8"));
    assert!(
        heavy[2] < plain[2] - 0.5 && heavy[0] < plain[0],
        "{heavy:?} {plain:?}"
    );
    assert!((heavy[0] - heavy[1] + heavy[2]).abs() < 1e-9, "{heavy:?}");
}

/// Returns the table of [`one_factor`], from which one value has been removed in two of every three rows. Also returns
/// the number of missing values.
fn with_gaps(whole: &str) -> (String, usize) {
    let mut missing = 0;
    let lines = whole.lines().enumerate().map(|(row, line)| {
        let mut cells: Vec<&str> = line.split(',').collect();
        if row > 0 && row % 6 < 4 {
            cells[row % 6] = "";
            missing += 1;
        }
        cells.join(",") + "\n"
    });
    let text = lines.collect();
    (text, missing)
}

#[test]
fn missing_values_are_masked_and_imputed() {
    let desk = Desk::new();
    let whole = one_factor();
    let (gaps, missing) = with_gaps(&whole);
    let (table, fit) = (desk.file("gaps.csv", &gaps), desk.name("fit"));
    let made = run(&format!(
        "vae fit {table} --decoder gaussian --latent 1 --hidden 16 --batch 20 --optimizer adam --step-size 0.01 \
         --epochs 400 --out {fit} --json"
    ));
    let made = made.expect(0).json();
    assert_eq!(made["missing_values"], missing);
    let note = format!("{missing} of 800 values are missing");
    assert!(made["warnings"].to_string().contains(&note), "{made}");
    // The score is that of a single factor, fitted by maximum likelihood. The rows were generated from a single factor.
    let (bound, plain) = (number(&made, "bound"), number(&made["baseline"], "score"));
    assert!(
        bound > plain - 0.1 && bound < plain + 0.1,
        "{bound} for {plain}"
    );
    let trace = trace_of(&desk.path("fit"));
    let last = number(trace.last().unwrap(), "bound");
    assert!((last - bound).abs() < 0.3, "{last} for {bound}");
    let scored = run(&format!("vae evaluate {fit} {table} --json"))
        .expect(0)
        .json();
    assert_eq!(scored["missing_values"], missing);
    assert!((number(&scored, "bound") - bound).abs() < 0.1);

    let imputed = run(&format!("vae reconstruct {fit} {table} --impute")).expect(0);
    let (imputed, truth) = (numbers_of(&imputed.stdout), numbers_of(&whole));
    let (mut error, mut spread) = (0.0, 0.0);
    for (row, given) in cells_of(&gaps).iter().enumerate() {
        for (i, given) in given.iter().enumerate() {
            match given {
                Some(given) => assert_eq!(imputed[row][i], *given),
                // The third column contains only noise.
                None if i != 2 => {
                    error += (imputed[row][i] - truth[row][i]).powi(2);
                    spread += (truth[row][i] - [0.25, 3.25, 0.25, 0.25][i]).powi(2);
                }
                None => {}
            }
        }
    }
    assert!(error < 0.02 * spread, "{error} of {spread}");
}

#[test]
fn missing_values_that_a_fit_cannot_have_are_refused() {
    let desk = Desk::new();
    let whole = one_factor();
    let gaps = desk.file("gaps.csv", &with_gaps(&whole).0);
    let (whole, fit) = (desk.file("whole.csv", &whole), desk.name("fit"));
    // A fit of one pass is not trusted.
    run(&format!(
        "vae fit {whole} --decoder gaussian --hidden 4 --latent 1 --epochs 1 --quiet --out {fit}"
    ));
    let missing = &["gaps.csv", "row 1", "missing", "fit to rows"];
    refused(&["vae", "encode", &fit, &gaps], 3, missing);
    let asleep = [
        "vae",
        "fit",
        &gaps,
        "--decoder",
        "gaussian",
        "--method",
        "wake-sleep",
    ];
    refused(&asleep, 3, &["wake-sleep", "--method aevb"]);
}

#[test]
fn columns_are_found_by_their_names() {
    let desk = Desk::new();
    let line = |i: u64| {
        let x = (i * 37 % 100) as f64 / 10.0;
        (x, 3.0 - 2.0 * x + (i * 13 % 7) as f64 / 20.0)
    };
    let rows = |head: &str, cell: &dyn Fn(u64, f64, f64) -> String| {
        let lines = (0..100).map(|i| cell(i, line(i).0, line(i).1));
        std::iter::once(head.to_owned())
            .chain(lines)
            .collect::<Vec<_>>()
            .join("\n")
    };
    let table = desk.file(
        "table.csv",
        &rows("dose,\"blood pressure\"", &|_, x, y| format!("{x},{y}")),
    );
    let fit = desk.name("fit");
    run(&format!(
        "vae fit {table} --decoder gaussian --latent 1 --hidden 4 --epochs 20 --exit-zero --quiet --out {fit}"
    ))
    .expect(0);
    let rebuilt = run(&format!("vae reconstruct {fit} {table}"))
        .expect(0)
        .stdout;
    assert!(rebuilt.starts_with("dose,blood pressure\n"), "{rebuilt}");
    let other = desk.file(
        "other.csv",
        &rows("id,blood pressure,dose", &|i, x, y| format!("{i},{y},{x}")),
    );
    assert_eq!(
        run(&format!("vae reconstruct {fit} {other}"))
            .expect(0)
            .stdout,
        rebuilt
    );
    let short = desk.file(
        "short.csv",
        &rows("dose,pressure", &|_, x, y| format!("{x},{y}")),
    );
    refused(
        &["vae", "encode", &fit, &short],
        3,
        &["short.csv", "`blood pressure`", "`dose`, `pressure`"],
    );
}
