//! `jensen vae` of tables: counts, missing values, and the weight of the divergence.

use std::fs;

use crate::common::{Desk, jensen, read_json, trace_of};
use crate::vae::{Dice, one_factor, refused};

/// Counts of 24 genes in 400 cells of two kinds. Each kind has 12 genes that it expresses five times as often, and the
/// number of molecules of a cell is between 40 and 400.
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

#[test]
fn counts_of_cells_with_a_library_size() {
    let desk = Desk::new();
    let table = desk.file("cells.csv", &cells());
    let run = desk.name("run");
    let small = [
        "--latent",
        "1",
        "--hidden",
        "12",
        "--epochs",
        "60",
        "--batch",
        "20",
        "--optimizer",
        "adam",
        "--step-size",
        "0.01",
        "--validation",
        "0.25",
        "--json",
        "--out",
        &run,
    ];
    let mut bounds = Vec::new();
    for (decoder, plain) in [
        (
            "zero-inflated-negative-binomial",
            "independent negative binomial counts with excess zeros",
        ),
        ("negative-binomial", "independent negative binomial counts"),
        ("poisson", "independent Poisson counts"),
    ] {
        let args = [
            "vae",
            "fit",
            &table,
            "--decoder",
            decoder,
            "--library-size",
            "on",
        ];
        let made = jensen(args.into_iter().chain(small)).expect(0).json();
        assert_eq!(made["baseline"]["model"], plain);
        assert_eq!(made["active_units"], 1);
        let bound = made["validation_bound"].as_f64().unwrap();
        // The kind of a cell is known from any twenty molecules.
        assert!(
            bound > made["baseline"]["score"].as_f64().unwrap() + 10.0,
            "{decoder}: {made}"
        );
        bounds.push(bound);
    }
    // Given its total and kind, a cell is multinomial: less spread than any of the three.
    assert!(
        bounds[2] > bounds[1] - 0.5 && bounds[2] > bounds[0] - 0.5,
        "{bounds:?}"
    );
    let rows = |text: &str| -> Vec<Vec<f64>> {
        let lines = text.lines().skip(1);
        lines
            .map(|line| line.split(',').map(|x| x.parse().unwrap()).collect())
            .collect()
    };
    let counts = rows(&fs::read_to_string(&table).unwrap());
    let rebuilt = rows(
        &jensen(["vae", "reconstruct", &run, &table])
            .expect(0)
            .stdout,
    );
    for (means, counts) in rebuilt.iter().zip(&counts) {
        let (mean, total) = (means.iter().sum::<f64>(), counts.iter().sum::<f64>());
        assert!((mean / total - 1.0).abs() < 1e-4, "{mean} for {total}");
    }
    let typical = read_json(&desk.path("run/architecture.json"));
    let typical = typical["architecture"]["library_size"].as_f64().unwrap();
    assert!((typical - 220.0).abs() < 15.0, "{typical}");
    let drawn = jensen(["vae", "sample", &run, "--observations", "--count", "200"])
        .expect(0)
        .stdout;
    let drawn = rows(&drawn);
    assert!(
        drawn
            .iter()
            .flatten()
            .all(|x| x.fract() == 0.0 && *x >= 0.0)
    );
    let mean = drawn.iter().flatten().sum::<f64>() / 200.0;
    assert!((mean / typical - 1.0).abs() < 0.02, "{mean} for {typical}");
    let scored = jensen(["vae", "evaluate", &run, &table, "--json"])
        .expect(0)
        .json();
    assert!(scored["importance"]["bound"].as_f64() > scored["bound"].as_f64());

    let sleep = [
        "vae",
        "fit",
        &table,
        "--decoder",
        "poisson",
        "--library-size",
        "on",
        "--method",
        "wake-sleep",
    ];
    let sleep = sleep
        .into_iter()
        .chain(["--hidden", "12", "--latent", "1", "--json", "--epochs", "3"]);
    assert!(jensen(sleep).json()["bound"].is_number());
    let half = desk.file("half.csv", "a,b\n3,1\n0,1.5\n");
    refused(
        &["vae", "fit", &half, "--decoder", "poisson"],
        3,
        &["half.csv", "row 2", "value 2", "1.5", "whole number"],
    );
    let none = desk.file("none.csv", "a,b\n0,0\n0,0\n");
    refused(
        &[
            "vae",
            "fit",
            &none,
            "--decoder",
            "poisson",
            "--library-size",
            "on",
        ],
        3,
        &["none.csv", "every count", "--library-size"],
    );
    refused(
        &["vae", "fit", &table, "--library-size", "on"],
        2,
        &["--decoder negative-binomial"],
    );
}

#[test]
fn a_heavier_divergence_makes_codes_cheaper_and_bounds_stay_bounds() {
    let desk = Desk::new();
    let table = desk.file("table.csv", &one_factor());
    let fitted = |more: &[&str]| {
        let args = [
            "vae",
            "fit",
            &table,
            "--decoder",
            "gaussian",
            "--latent",
            "2",
            "--hidden",
            "none",
            "--batch",
            "20",
            "--optimizer",
            "adam",
            "--step-size",
            "0.02",
            "--epochs",
            "150",
            "--json",
        ];
        let made = jensen(args.into_iter().chain(more.iter().copied())).json();
        ["bound", "likelihood", "divergence"].map(|name| made[name].as_f64().unwrap())
    };
    let (plain, heavy) = (fitted(&[]), fitted(&["--beta", "8"]));
    assert!(
        heavy[2] < plain[2] - 1.0 && heavy[0] < plain[0],
        "{heavy:?} {plain:?}"
    );
    assert!((heavy[0] - heavy[1] + heavy[2]).abs() < 1e-9, "{heavy:?}");
}

#[test]
fn missing_values_are_masked_and_imputed() {
    let desk = Desk::new();
    let whole = one_factor();
    // Every sixth value is missing, in any column.
    let mut lines = whole.lines();
    let mut gaps = format!("{}\n", lines.next().unwrap());
    for (row, line) in lines.enumerate() {
        let cells: Vec<&str> = line.split(',').collect();
        let cells: Vec<&str> = (0..4)
            .map(|i| {
                if (5 * row + 7 * i) % 6 == 0 {
                    ""
                } else {
                    cells[i]
                }
            })
            .collect();
        gaps += &(cells.join(",") + "\n");
    }
    let (whole, table) = (desk.file("whole.csv", &whole), desk.file("gaps.csv", &gaps));
    let run = desk.name("run");
    let linear = [
        "--decoder",
        "gaussian",
        "--latent",
        "1",
        "--hidden",
        "none",
        "--batch",
        "20",
        "--optimizer",
        "adam",
        "--step-size",
        "0.02",
        "--epochs",
        "300",
        "--out",
        &run,
        "--json",
    ];
    let made = jensen(["vae", "fit", &table].into_iter().chain(linear))
        .expect(0)
        .json();
    let missing = gaps
        .lines()
        .flat_map(|line| line.split(','))
        .filter(|cell| cell.is_empty())
        .count();
    assert_eq!(made["missing_values"], missing);
    assert!(
        made["warnings"]
            .to_string()
            .contains(&format!("{missing} of 800 values are missing")),
        "{made}"
    );
    // The score is that of one factor by maximum likelihood, which these networks are.
    let (bound, plain) = (
        made["bound"].as_f64().unwrap(),
        made["baseline"]["score"].as_f64().unwrap(),
    );
    assert!(
        bound > plain - 0.1 && bound < plain + 0.05,
        "{bound} for {plain}"
    );
    let trace = trace_of(&desk.path("run"));
    let last = trace.last().unwrap()["bound"].as_f64().unwrap();
    assert!((last - bound).abs() < 0.3, "{last} for {bound}");
    let scored = jensen(["vae", "evaluate", &run, &table, "--json"])
        .expect(0)
        .json();
    assert_eq!(scored["missing_values"], missing);
    assert!((scored["bound"].as_f64().unwrap() - bound).abs() < 0.1);

    let rows = |text: &str| -> Vec<Vec<Option<f64>>> {
        let lines = text.lines().skip(1);
        lines
            .map(|line| line.split(',').map(|x| x.parse().ok()).collect())
            .collect()
    };
    let imputed = rows(
        &jensen(["vae", "reconstruct", &run, &table, "--impute"])
            .expect(0)
            .stdout,
    );
    let truth = rows(&fs::read_to_string(&whole).unwrap());
    let (mut error, mut spread) = (0.0, 0.0);
    for (row, (imputed, given)) in imputed.iter().zip(rows(&gaps)).enumerate() {
        for i in 0..4 {
            match given[i] {
                Some(given) => assert_eq!(imputed[i], Some(given)),
                // The third column is noise.
                None if i != 2 => {
                    error += (imputed[i].unwrap() - truth[row][i].unwrap()).powi(2);
                    spread += (truth[row][i].unwrap() - [0.25, 3.25, 0.25, 0.25][i]).powi(2);
                }
                None => {}
            }
        }
    }
    assert!(error < 0.03 * spread, "{error} of {spread}");

    let complete = [
        "vae",
        "fit",
        &whole,
        "--decoder",
        "gaussian",
        "--hidden",
        "4",
        "--latent",
        "1",
        "--epochs",
        "1",
    ];
    jensen(complete.into_iter().chain(["--out", &run, "--quiet"]));
    refused(
        &["vae", "encode", &run, &table],
        3,
        &["gaps.csv", "row 1", "missing", "fit to rows"],
    );
    let asleep = [
        "vae",
        "fit",
        &table,
        "--decoder",
        "gaussian",
        "--method",
        "wake-sleep",
    ];
    refused(&asleep, 3, &["wake-sleep", "--method aevb"]);
}
