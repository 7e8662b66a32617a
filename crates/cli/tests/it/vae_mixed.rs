//! Tests `jensen vae` with tables of words and numbers, heavy tails, given columns and free bits.

use std::fs;

use serde_json::Value;

use crate::common::{Desk, Finished, jensen, read_json};
use crate::vae::{Dice, refused};

fn run(line: &str) -> Finished {
    jensen(line.split_whitespace())
}

fn number(of: &Value, name: &str) -> f64 {
    of[name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name} of {of}"))
}

/// Returns a number with mean 0, variance 1 and almost a normal distribution.
fn bell(dice: &mut Dice) -> f64 {
    (0..12)
        .map(|_| dice.below(10_000) as f64 / 10_000.0)
        .sum::<f64>()
        - 6.0
}

const ISLANDS: [&str; 3] = ["Biscoe", "Dream", "Torgersen"];

/// Returns measurements of animals. The species determines the means of the numbers, the probabilities of the islands
/// and that of the bit. `gaps` empties one cell in eleven.
fn animals(rows: usize, gaps: bool) -> String {
    let mut dice = Dice(3);
    let mut csv = "species,island,length,mass,male\n".to_owned();
    for _ in 0..rows {
        let species = dice.below(3) as usize;
        let island = match dice.below(10) {
            0 => (species + 1) % 3,
            _ => species,
        };
        let length = 40.0 + 5.0 * species as f64 + bell(&mut dice);
        let male = dice.below(2);
        let mass = 4000.0 + 500.0 * male as f64 + 300.0 * bell(&mut dice) - 400.0 * species as f64;
        let cells = [
            ["Adelie", "Chinstrap", "Gentoo"][species].to_owned(),
            ISLANDS[island].to_owned(),
            format!("{length:.2}"),
            format!("{mass:.0}"),
            male.to_string(),
        ];
        let cells = cells.map(|cell| match gaps && dice.below(11) == 0 {
            true => String::new(),
            false => cell,
        });
        csv += &(cells.join(",") + "\n");
    }
    csv
}

fn lines(text: &str) -> Vec<Vec<String>> {
    let row = |line: &str| line.split(',').map(str::to_owned).collect();
    text.lines().map(row).collect()
}

const QUICK: &str = "--latent 2 --hidden 24 --batch 20 --optimizer adam --step-size 0.01";

/// Returns the largest mean log density of a row under independent columns, which is that of their observed
/// frequencies, means and variances.
fn independent(csv: &str) -> f64 {
    let rows = lines(csv);
    let mut total = 0.0;
    for column in 0..rows[0].len() {
        let cells = rows[1..].iter().map(|row| row[column].as_str());
        let cells: Vec<&str> = cells.filter(|cell| !cell.is_empty()).collect();
        let n = cells.len() as f64;
        total += match rows[0][column].as_str() {
            "length" | "mass" => {
                let x: Vec<f64> = cells.iter().map(|x| x.parse().unwrap()).collect();
                let mean = x.iter().sum::<f64>() / n;
                let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
                -0.5 * n * (1.0 + (2.0 * std::f64::consts::PI * variance).ln())
            }
            _ => cells
                .iter()
                .map(|cell| cells.iter().filter(|other| *other == cell).count() as f64)
                .map(|count| (count / n).ln())
                .sum(),
        };
    }
    total / (rows.len() - 1) as f64
}

#[test]
fn a_table_of_words_and_numbers_is_learnt_from_its_file() {
    let desk = Desk::new();
    let text = animals(400, true);
    let (table, fit) = (desk.file("animals.csv", &text), desk.name("fit"));
    let made = run(&format!(
        "vae fit {table} --decoder mixed {QUICK} --epochs 120 --out {fit} --json"
    ));
    let made = made.expect(0).json();
    assert_eq!(made["trusted"], true, "{made}");
    assert_eq!(made["baseline"]["model"], "independent columns");
    // Half an observation of each category smooths the frequencies.
    let (plain, exact) = (number(&made["baseline"], "score"), independent(&text));
    assert!((plain - exact).abs() < 0.01, "{plain} for {exact}");
    // The species is known from the other columns, so at least half a nat is shared.
    let bound = number(&made, "bound");
    assert!(bound > plain + 0.5, "{bound} for {plain}");
    let roles = &read_json(&desk.path("fit/architecture.json"))["columns"];
    assert_eq!(roles[1]["role"]["words"], serde_json::json!(ISLANDS));
    assert_eq!(roles[4]["role"], "binary");

    let scored = run(&format!("vae evaluate {fit} {table} --json"))
        .expect(0)
        .json();
    assert!((number(&scored, "bound") - bound).abs() < 0.15, "{scored}");

    let given = lines(&text);
    let imputed = run(&format!("vae reconstruct {fit} {table} --impute")).expect(0);
    let imputed = lines(&imputed.stdout);
    assert_eq!(imputed[0], given[0]);
    for (row, given) in imputed.iter().zip(&given).skip(1) {
        for ((cell, given), name) in row.iter().zip(given).zip(&imputed[0]) {
            match (given.as_str(), name.as_str()) {
                ("", _) => assert!(!cell.is_empty()),
                (given, "species" | "island") => assert_eq!(cell, given),
                (given, _) => {
                    let numbers = [cell.as_str(), given].map(|x| x.parse::<f64>().unwrap());
                    assert!((numbers[0] - numbers[1]).abs() < 1e-6 * numbers[1].abs().max(1.0));
                }
            }
        }
    }

    let drawn = run(&format!("vae sample {fit} --count 600 --observations")).expect(0);
    let drawn = lines(&drawn.stdout);
    let share = |of: &dyn Fn(&[String]) -> bool| {
        let count = drawn[1..].iter().filter(|row| of(row)).count();
        count as f64 / 600.0
    };
    assert!(drawn[1..].iter().all(|row| row[4] == "0" || row[4] == "1"));
    for (k, island) in ISLANDS.iter().enumerate() {
        let own = share(&|row| row[1] == *island);
        assert!((own - 1.0 / 3.0).abs() < 0.1, "{island}: {own}");
        let both =
            share(&|row| row[1] == *island && row[0] == ["Adelie", "Chinstrap", "Gentoo"][k]);
        assert!(both > 0.6 * own, "{island}: {both} of {own}");
    }

    // A table with the columns in another order has the same scores, and an additional column does not matter.
    let turned: String = given
        .iter()
        .map(|row| {
            let cells: Vec<&str> = row.iter().rev().map(String::as_str).collect();
            cells.join(",") + ",1\n"
        })
        .collect();
    let turned = desk.file("turned.csv", &turned.replacen(",1\n", ",extra\n", 1));
    let again = run(&format!("vae evaluate {fit} {turned} --json"))
        .expect(0)
        .json();
    assert_eq!(scored["bound"], again["bound"]);
}

#[test]
fn mixed_fits_have_the_same_bits_and_go_on_where_they_stopped() {
    let desk = Desk::new();
    let table = desk.file("animals.csv", &animals(120, false));
    let fit = |name: &str, more: &str| {
        let out = desk.name(name);
        let line = format!(
            "vae fit {table} --decoder mixed --given species --columns male=categorical,length=student-t \
             --free-bits 0.1 --validation 0.2 {QUICK} {more} --out {out} --quiet"
        );
        run(&line).expect(0);
        fs::read(desk.path(name).join("approximation.safetensors")).unwrap()
    };
    let whole = fit("whole", "--epochs 8 --threads 1");
    assert_eq!(whole, fit("again", "--epochs 8 --threads 2"));
    fit("part", "--epochs 5");
    let part = desk.name("part");
    run(&format!("vae fit --resume {part} --epochs 8 --quiet")).expect(0);
    let resumed = fs::read(desk.path("part/approximation.safetensors")).unwrap();
    assert_eq!(whole, resumed);
    refused(
        &["vae", "fit", "--resume", &part, "--given", "island"],
        2,
        &["the stored run differs: columns"],
    );
}

#[test]
fn a_model_of_given_columns_generates_what_they_ask_for() {
    let desk = Desk::new();
    let text = animals(400, false);
    let (table, fit) = (desk.file("animals.csv", &text), desk.name("fit"));
    let made = run(&format!(
        "vae fit {table} --decoder mixed --given species {QUICK} --epochs 100 --out {fit} --json"
    ));
    let made = made.expect(0).json();
    // The entropies of the island, the length, the mass and the bit given the species, in nats.
    let normal = 0.5 * (1.0 + (2.0 * std::f64::consts::PI).ln());
    let island = -(0.9 * 0.9_f64.ln() + 0.1 * 0.1_f64.ln());
    let exact = -(island + normal + normal + 300.0_f64.ln() + 2.0_f64.ln());
    let bound = number(&made, "bound");
    assert!(
        bound > exact - 0.25 && bound < exact + 0.1,
        "{bound} for {exact}"
    );
    for (k, species) in ["Adelie", "Gentoo"].into_iter().enumerate() {
        let args = ["vae", "sample", &fit, "--observations", "--count", "500"];
        let given = format!("species={species}");
        let drawn = jensen([&args[..], &["--given", &given]].concat()).expect(0);
        let rows = lines(&drawn.stdout);
        assert!(rows[1..].iter().all(|row| row[0] == species));
        let lengths = rows[1..].iter().map(|row| row[2].parse::<f64>().unwrap());
        let mean = lengths.sum::<f64>() / 500.0;
        let exact = [40.0, 50.0][k];
        assert!((mean - exact).abs() < 0.5, "{species}: {mean} for {exact}");
        let home = rows[1..]
            .iter()
            .filter(|row| row[1] == ISLANDS[2 * k])
            .count();
        assert!(
            (home as f64 / 500.0 - 0.9).abs() < 0.08,
            "{species}: {home}"
        );
    }
    let rebuilt = run(&format!("vae reconstruct {fit} {table}")).expect(0);
    let (rebuilt, rows) = (lines(&rebuilt.stdout), lines(&text));
    assert!(rebuilt.iter().zip(&rows).all(|(a, b)| a[0] == b[0]));
    let args = ["vae", "sample", &fit];
    refused(&args, 2, &["species", "--given 'species=VALUE'"]);
    refused(
        &[&args[..], &["--given", "species=Emperor"]].concat(),
        2,
        &["Emperor", "`Gentoo`"],
    );
    refused(
        &[&args[..], &["--given", "mass=3"]].concat(),
        2,
        &["mass=3", "`species`"],
    );
    let normal = run(&format!(
        "vae fit {table} --decoder gaussian --given species,island --columns species=categorical {QUICK} --epochs 2 --json"
    ));
    assert_eq!(
        normal.json()["columns"][0]["role"]["given_words"][0],
        "Adelie"
    );
}

#[test]
fn wrong_tables_are_refused_in_one_line() {
    let desk = Desk::new();
    let text = animals(60, false);
    let (table, fit) = (desk.file("animals.csv", &text), desk.name("fit"));
    let base = ["vae", "fit", &table, "--decoder", "mixed"];
    let fails = |more: &[&str], code: i32, said: &[&str]| {
        refused(&[&base[..], more].concat(), code, said);
    };
    fails(
        &["--given", "specie"],
        3,
        &["no column `specie`", "`species`"],
    );
    fails(&["--columns", "weight=poisson"], 3, &["no column `weight`"]);
    fails(
        &["--columns", "mass=normal"],
        2,
        &["mass=normal", "student-t"],
    );
    fails(
        &["--columns", "length=poisson"],
        3,
        &["`length`", "row 1", "whole number"],
    );
    fails(
        &["--columns", "mass=bernoulli"],
        3,
        &["`mass`", "row 1", "0 or 1"],
    );
    fails(
        &["--given", "mass", "--columns", "mass=gaussian"],
        2,
        &["`mass`", "--columns", "--given"],
    );
    fails(
        &["--given", "species,island,length,mass,male"],
        2,
        &["no column is left"],
    );
    fails(&["--image", "5x1"], 2, &["--image"]);
    let named = "species,island,length,mass,male\nAdelie,Biscoe,40,4000,1\n,Dream,41,4100,0\n";
    let gap = desk.file("gap.csv", named);
    refused(
        &[
            "vae",
            "fit",
            &gap,
            "--decoder",
            "mixed",
            "--given",
            "species",
        ],
        3,
        &["gap.csv", "row 2", "`species`", "no value"],
    );
    let args = ["vae", "fit", &table, "--columns", "mass=poisson"];
    refused(&args, 2, &["--decoder mixed"]);
    let args = ["vae", "fit", &table];
    refused(&args, 3, &["not a number", "--decoder mixed"]);

    run(&format!(
        "vae fit {table} --decoder mixed {QUICK} --epochs 1 --quiet --out {fit}"
    ));
    let changed = |name: &str, from: &str, to: &str| {
        let path = desk.file(name, &text.replacen(from, to, 1));
        ["vae", "evaluate", &fit, &path].map(str::to_owned)
    };
    let check = |args: [String; 4], said: &[&str]| {
        refused(&args.each_ref().map(String::as_str), 3, said);
    };
    check(
        changed("word.csv", "Torgersen", "Anvers"),
        &["word.csv", "`island`", "`Anvers`", "`Biscoe`"],
    );
    check(
        changed("bit.csv", ",1\n", ",2\n"),
        &["bit.csv", "`male`", "has 2", "0 or 1"],
    );
    check(
        changed("names.csv", "length,mass", "length,weight"),
        &["names.csv", "no column `mass`"],
    );
}

/// Returns rows of three columns that share a hidden number. One cell in twenty is an outlier.
fn outliers(rows: usize) -> String {
    let mut dice = Dice(8);
    let mut csv = "a,b,c\n".to_owned();
    for _ in 0..rows {
        let z = bell(&mut dice);
        let cells: Vec<String> = [1.0, -0.7, 0.4]
            .iter()
            .map(|slope| {
                let noise = bell(&mut dice);
                let wild = dice.below(20) == 0;
                let spread = if wild { 12.0 } else { 0.5 };
                format!("{:.3}", slope * z + spread * noise)
            })
            .collect();
        csv += &(cells.join(",") + "\n");
    }
    csv
}

#[test]
fn heavy_tails_are_scored_better_by_student_t() {
    let desk = Desk::new();
    let table = desk.file("outliers.csv", &outliers(1000));
    let fitted = |decoder: &str| {
        let made = run(&format!(
            "vae fit {table} --decoder {decoder} --latent 1 --hidden 16 --batch 50 --optimizer adam --step-size 0.01 \
             --epochs 60 --validation 0.3 --json"
        ));
        let made = made.json();
        (number(&made, "validation_bound"), made)
    };
    let (normal, _) = fitted("gaussian");
    let (learnt, made) = fitted("student-t");
    let (given, _) = fitted("student-t=2");
    assert_eq!(made["baseline"]["model"], "independent Student's t");
    assert!(
        learnt > normal + 0.4 && given > normal + 0.4,
        "{normal} {learnt} {given}"
    );
}

#[test]
fn free_bits_keep_latent_values_active() {
    let desk = Desk::new();
    // Four pairs of columns share one hidden number each, with little strength.
    let mut dice = Dice(21);
    let mut csv = "a,b,c,d,e,f,g,h\n".to_owned();
    for _ in 0..400 {
        let cells = (0..4).flat_map(|_| {
            let z = bell(&mut dice);
            [0, 1].map(|_| format!("{:.3}", 0.8 * z + 0.6 * bell(&mut dice)))
        });
        csv += &(cells.collect::<Vec<_>>().join(",") + "\n");
    }
    let table = desk.file("pairs.csv", &csv);
    let fitted = |more: &str| {
        let made = run(&format!(
            "vae fit {table} --decoder gaussian --latent 6 --hidden 16 --batch 20 --optimizer adam --step-size 0.005 \
             --epochs 40 --json {more}"
        ));
        let made = made.json();
        (
            made["active_units"].as_u64().unwrap(),
            number(&made, "divergence"),
        )
    };
    let (plain, free) = (fitted(""), fitted("--free-bits 0.5"));
    assert!(plain.0 < 6 && free.0 == 6, "{plain:?} {free:?}");
    // Six latent values cost about half a nat each, which the objective does not count.
    assert!(free.1 > plain.1 + 0.3 && free.1 > 2.7, "{plain:?} {free:?}");
    refused(
        &[
            "vae",
            "fit",
            &table,
            "--decoder",
            "gaussian",
            "--free-bits",
            "0.1",
            "--estimator",
            "a",
        ],
        3,
        &["--estimator b"],
    );
    refused(
        &[
            "vae",
            "fit",
            &table,
            "--decoder",
            "gaussian",
            "--free-bits",
            "0.1",
            "--method",
            "wake-sleep",
        ],
        2,
        &["--free-bits"],
    );
}
