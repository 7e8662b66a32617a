//! Tests `jensen hmm` from a table to states.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::common::{Desk, jensen, read_json};

/// Writes two series of two-dimensional steps between two levels. The rows of the series either follow one another or
/// alternate. Returns the path and the level of each row.
fn strides(desk: &Desk, name: &str, mixed: bool) -> (String, Vec<usize>) {
    let step = |series: usize, t: usize| {
        let level = (t / 20 + series) % 2;
        let noise = (t as f64 * 0.618 + 0.3 * series as f64).fract() - 0.5;
        let x = 3.0 * level as f64 + noise;
        (level, x, 1.0 - 2.0 * level as f64 + 0.7 * noise)
    };
    let mut order: Vec<(usize, usize)> =
        (0..2).flat_map(|s| (0..80).map(move |t| (s, t))).collect();
    if mixed {
        order.sort_by_key(|(s, t)| (*t, *s));
    }
    let (mut text, mut levels) = ("x,walker,y\n".to_owned(), Vec::new());
    for (series, t) in order {
        let (level, x, y) = step(series, t);
        writeln!(text, "{x},{},{y}", ["ann", "bob"][series]).unwrap();
        levels.push(level);
    }
    (desk.file(name, &text), levels)
}

fn states(text: &str) -> Vec<(Vec<f64>, usize)> {
    let lines = text.lines().skip(1);
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let k = cells.len();
            let p: Vec<f64> = cells[k - 3..k - 1]
                .iter()
                .map(|c| c.parse().unwrap())
                .collect();
            (p, cells[k - 1].parse::<usize>().unwrap())
        })
        .collect()
}

#[test]
fn states_of_several_sequences_are_found() {
    let desk = Desk::new();
    let (file, levels) = strides(&desk, "apart.csv", false);
    let out = desk.path("run").display().to_string();
    let base = ["hmm", "fit", &file, "--states", "2", "--sequence", "walker"];
    let done = jensen([&base[..], &["--covariance", "diagonal", "--out", &out]].concat()).expect(0);
    assert!(done.stdout.contains("stays"), "{}", done.stdout);
    let fit = read_json(&desk.path("run/fit.json"));
    assert_eq!(
        (&fit["trusted"], &fit["points"]),
        (&true.into(), &160.into())
    );
    let mut means: Vec<f64> = (0..2)
        .map(|k| fit["chain"]["emissions"][k]["mean"][0].as_f64().unwrap())
        .collect();
    means.sort_by(f64::total_cmp);
    assert!(
        means[0].abs() < 0.1 && (means[1] - 3.0).abs() < 0.1,
        "{means:?}"
    );
    assert!(
        fs::read_to_string(desk.path("run/report.html"))
            .unwrap()
            .contains("States")
    );
    let text = jensen(["hmm", "predict", &out, &file]).expect(0).stdout;
    assert!(text.starts_with("row,walker,p1,p2,state\n1,ann,"), "{text}");
    let found = states(&text);
    let high = usize::from(fit["chain"]["emissions"][1]["mean"][0].as_f64().unwrap() > 1.5);
    for ((p, state), level) in found.iter().zip(&levels) {
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let expected = if *level == 1 { high } else { 1 - high };
        assert_eq!(*state, expected + 1);
        assert!(p[expected] > 0.99);
    }
    // If the rows of the sequences alternate, the sequences are the same, and the output is in the order of the table.
    let (mixed, levels) = strides(&desk, "mixed.csv", true);
    let turned = jensen(["hmm", "predict", &out, &mixed]).expect(0).stdout;
    assert!(turned.contains("\n1,ann,") && turned.contains("\n2,bob,"));
    for ((_, state), level) in states(&turned).iter().zip(&levels) {
        assert_eq!(*state == high + 1, *level == 1);
    }
    // A fit that is interrupted and resumed ends with the same result.
    let other = desk.path("parts").display().to_string();
    let args = [
        &base[..],
        &["--covariance", "diagonal", "--out", &other, "--max-iters"],
    ]
    .concat();
    jensen([&args[..], &["2"]].concat()).expect(4);
    let args = [
        "hmm",
        "fit",
        "--out",
        &other,
        "--resume",
        "--max-iters",
        "1000",
    ];
    jensen(args).expect(0);
    let again = read_json(&desk.path("parts/fit.json"));
    assert_eq!(again["elbo"], fit["elbo"]);
    assert_eq!(again["chain"], fit["chain"]);
}

/// For periods of four months, the data state whether there was a mining disaster. Disasters were frequent until about
/// 1890, and rare after that.
#[test]
fn the_years_of_disasters_end() {
    let desk = Desk::new();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/coal/disasters.csv");
    let text = fs::read_to_string(data).unwrap();
    let rows: Vec<(f64, bool)> = text
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            (cells[1].parse().unwrap(), cells[2] != "0")
        })
        .collect();
    let bits: String = rows
        .iter()
        .map(|(_, any)| format!("{}\n", u8::from(*any)))
        .collect();
    let file = desk.file("any.csv", &format!("any\n{bits}"));
    let out = desk.path("coal").display().to_string();
    let args = [
        "hmm",
        "fit",
        &file,
        "-k",
        "2",
        "--emissions",
        "bernoulli",
        "--seed",
        "1",
        "--out",
        &out,
    ];
    jensen(args).expect(0);
    let found = states(&jensen(["hmm", "predict", &out, &file]).expect(0).stdout);
    let changes: Vec<f64> = (1..rows.len())
        .filter(|i| found[*i].1 != found[i - 1].1)
        .map(|i| rows[i].0)
        .collect();
    assert!(
        !changes.is_empty() && changes.iter().any(|year| (1884.0..1898.0).contains(year)),
        "{changes:?}"
    );
}

#[test]
fn what_chains_cannot_have_is_output() {
    let desk = Desk::new();
    let (file, _) = strides(&desk, "rows.csv", false);
    let counts = desk.file("counts.csv", "a,b\n1,2\n0,3\n2,2\n");
    for (args, output, code) in [
        (vec![&*file, "-k", "2", "--sequence", "runner"], "runner", 3),
        (vec![&*file, "-k", "2"], "walker", 3),
        (
            vec![&*file, "-k", "2", "--sequence", "walker", "--batch", "10"],
            "neither minibatches",
            2,
        ),
        (
            vec![&*counts, "-k", "2", "--emissions", "bernoulli"],
            "0 and 1",
            3,
        ),
        (
            vec![
                &*counts,
                "-k",
                "2",
                "--emissions",
                "multinomial",
                "--temper",
                "global",
            ],
            "--temper anneal",
            2,
        ),
        (vec![&*counts, "-k", "9"], "use fewer", 3),
    ] {
        let done = jensen([&["hmm", "fit"], &args[..]].concat()).expect(code);
        assert!(done.stderr.contains(output), "{args:?}: {}", done.stderr);
    }
    let fit = [
        "hmm",
        "fit",
        &counts,
        "-k",
        "2",
        "--emissions",
        "multinomial",
        "--json",
    ];
    let made = jensen(fit);
    let p = &made.json()["chain"]["emissions"][0]["proportions"];
    assert!((p[0].as_f64().unwrap() + p[1].as_f64().unwrap() - 1.0).abs() < 1e-9);
}
