//! Tests that an invalid model, or invalid data, causes one clear message and the right exit code.

use crate::common::{Desk, corpus, jensen};

const MEAN: &str = "data {
  int<lower=1> N;
  vector[N] y;
  array[N] int<lower=0> k;
  real<lower=0> scale;
}
parameters {
  real mu;
}
model {
  mu ~ normal(0, scale);
  y ~ normal(mu, 1);
}
";

/// Fits the model of a mean to data. Checks that the exit code is 3 and that there is one message, which contains all
/// of the texts `wanted`.
#[track_caller]
fn refused(data: &str, wanted: &[&str]) {
    let desk = Desk::new();
    let model = desk.file("mean.stan", MEAN);
    let data = desk.file("mean.json", data);
    let out = desk.name("out");
    let finished = jensen(["fit", &model, &data, "--out", &out]).expect(3);
    assert_eq!(finished.stdout, "");
    assert_eq!(
        finished.stderr.matches("error").count(),
        1,
        "{}",
        finished.stderr
    );
    for text in wanted {
        assert!(
            finished.stderr.contains(text),
            "`{text}` in: {}",
            finished.stderr
        );
    }
    assert!(!finished.stderr.contains("bug in Jensen"));
}

#[test]
fn good_data_are_accepted() {
    let desk = Desk::new();
    let model = desk.file("mean.stan", MEAN);
    let data = desk.file(
        "mean.json",
        r#"{"N": 2, "y": [1, 2.5], "k": [1, 2], "scale": 3}"#,
    );
    jensen(["fit", &model, &data]).expect(0);
}

#[test]
fn a_missing_variable() {
    refused(
        r#"{"N": 2, "k": [1, 2], "scale": 3}"#,
        &[
            "mean.json",
            "`y`",
            "vector[2]",
            "mean.stan:3",
            "vector[N] y;",
        ],
    );
}

#[test]
fn a_name_that_was_meant() {
    refused(
        r#"{"N": 2, "Y": [1, 2], "k": [1, 2], "scale": 3}"#,
        &["`y`", "did you mean `Y`?"],
    );
    refused(
        r#"{"N": 2, "y": [1, 2], "k": [1, 2], "scael": 3}"#,
        &["`scale`", "did you mean `scael`?"],
    );
    refused(
        r#"{"N": 2, "y": [1, 2], "x": [1, 2], "scale": 3}"#,
        &["`k`", "the program does not declare `x`"],
    );
}

#[test]
fn files_in_each_others_paths() {
    let desk = Desk::new();
    let (model, data) = corpus("eight_schools_noncentred");
    let said = |args: &[&str], wanted: &str| {
        let finished = jensen(args).expect(3);
        assert!(finished.stderr.contains(wanted), "{}", finished.stderr);
    };
    said(&["fit", &data, &model], "the program must come first");
    let table = desk.file("schools.xlsx", "PK");
    said(&["fit", &model, &table], "is no text");
    said(&["fit", &model, &model], "is a program");
    let folder = std::path::Path::new(&model).parent().unwrap();
    said(&["fit", folder.to_str().unwrap()], "the program in it is");
    said(
        &["fit", &model, &data, "--init", "zero"],
        "--init needs 0, random or a file",
    );
}

#[test]
fn a_wrong_shape() {
    refused(
        r#"{"N": 2, "y": [1, 2, 3], "k": [1, 2], "scale": 3}"#,
        &["`y`", "2 numbers", "3 numbers", "mean.stan:3"],
    );
}

#[test]
fn a_string() {
    refused(
        r#"{"N": 2, "y": "many", "k": [1, 2], "scale": 3}"#,
        &["mean.json", "y"],
    );
}

#[test]
fn not_a_number_where_there_is_a_bound() {
    refused(
        r#"{"N": 2, "y": [1, 2], "k": [1, 2], "scale": "NaN"}"#,
        &["`scale`", "mean.stan:5"],
    );
}

#[test]
fn a_fraction_for_an_int() {
    refused(
        r#"{"N": 2, "y": [1, 2], "k": [1, 1.5], "scale": 3}"#,
        &["`k[2]`", "int", "1.5", "mean.stan:4"],
    );
}

#[test]
fn a_violated_bound() {
    refused(
        r#"{"N": 2, "y": [1, 2], "k": [1, -4], "scale": 3}"#,
        &["k", "-4"],
    );
}

#[test]
fn truncated_json() {
    refused(r#"{"N": 2, "y": [1, 2"#, &["mean.json:1"]);
}

#[test]
fn a_thousand_million_elements() {
    refused(
        r#"{"N": 1000000000, "y": [1, 2], "k": [1, 2], "scale": 3}"#,
        &["1000000000", "limit"],
    );
    let desk = Desk::new();
    let cases = [
        "data { int N; } parameters { vector[N] x; } model { x ~ normal(0, 1); }",
        "data { int N; } transformed data { vector[N] z; } parameters { real x; } model { x ~ normal(0, 1); }",
        "data { int N; } parameters { real x; } model { x ~ normal(0, 1); } generated quantities { vector[N] z; }",
        "data { int N; } parameters { array[N] matrix[N, N] x; }",
    ];
    let data = desk.file("data.json", r#"{"N": 1000000000}"#);
    for source in cases {
        let model = desk.file("model.stan", source);
        let finished = jensen(["fit", &model, &data]).expect(3);
        assert!(finished.stderr.contains("limit"), "{}", finished.stderr);
    }
}

#[test]
fn a_memory_limit_is_kept() {
    let (model, data) = corpus("radon_group_noncentred");
    let finished = jensen(["fit", &model, &data, "--memory-limit", "4MiB"]).expect(3);
    assert!(
        finished.stderr.contains("limit is 4 MiB"),
        "{}",
        finished.stderr
    );
}

#[test]
fn paths_that_cannot_be_read() {
    let desk = Desk::new();
    let (model, data) = corpus("eight_schools_noncentred");
    let none = desk.name("none.stan");
    let finished = jensen(["fit", &none]).expect(3);
    assert!(
        finished.stderr.contains("no such file"),
        "{}",
        finished.stderr
    );
    jensen(["fit", &model, &desk.name("none.json")]).expect(3);
    jensen(["check", &none]).expect(3);
    jensen(["density", &model, &data, "--at", &desk.name("none.json")]).expect(3);
    let folder = desk.path("").display().to_string();
    jensen(["fit", &folder]).expect(3);
    jensen(["draws", &folder, "--draws", "3"]).expect(3);
    jensen(["fit", "--resume", &folder]).expect(3);
    std::fs::write(desk.path("bytes.stan"), [0xff, 0xfe, 0]).unwrap();
    let finished = jensen(["check", &desk.name("bytes.stan")]).expect(3);
    assert!(finished.stderr.contains("UTF-8"), "{}", finished.stderr);
}

#[test]
fn paths_that_cannot_be_written() {
    let desk = Desk::new();
    let (model, data) = corpus("eight_schools_noncentred");
    let file = desk.file("occupied", "mine");
    let finished = jensen(["fit", &model, &data, "--out", &file]).expect(2);
    assert!(finished.stderr.contains("occupied"), "{}", finished.stderr);
    jensen(["fit", &model, &data, "--out", &format!("{file}/below")]).expect(2);
    // A folder that contains other files is rejected.
    std::fs::create_dir(desk.path("full")).unwrap();
    desk.file("full/thesis.tex", "mine");
    let finished = jensen(["fit", &model, &data, "--out", &desk.name("full")]).expect(2);
    assert!(
        finished.stderr.contains("thesis.tex"),
        "{}",
        finished.stderr
    );
}

#[test]
fn wrong_usage() {
    let (model, data) = corpus("eight_schools_noncentred");
    let cases: [&[&str]; 10] = [
        &["fit"],
        &["fit", &model, &data, "--method", "nuts"],
        &["fit", &model, &data, "--family", "lowrank=0"],
        &["fit", &model, &data, "--draws", "0"],
        &["fit", &model, &data, "--memory-limit", "lots"],
        &["fit", &model, &data, "--step-size", "-1"],
        &[
            "fit",
            &model,
            &data,
            "--method",
            "advi",
            "--optimizer",
            "adam",
        ],
        &["fit", &model, &data, "--checkpoint-every", "1"],
        &["fit", &model, &data, "--simd", "mmx"],
        &["no-such-command"],
    ];
    let number = jensen(["fit", &model, &data, "--draws", "many"]).expect(2);
    let expected = "'many' for '--draws <N>': expected a whole number";
    assert!(number.stderr.contains(expected), "{}", number.stderr);
    for args in cases {
        let finished = jensen(args).expect(2);
        assert!(finished.stderr.contains("error"), "{args:?}");
        assert_eq!(finished.stdout, "", "{args:?}");
    }
}

#[test]
fn a_program_with_errors() {
    let desk = Desk::new();
    let model = desk.file(
        "wrong.stan",
        "parameters { real mu; }\nmodel {\n  mu ~ norml(0, 1);\n  nu ~ normal(0, 1);\n}\n",
    );
    for command in ["check", "fit"] {
        let finished = jensen([command, &model]).expect(3);
        for text in ["norml", "nu", "wrong.stan:3", "normal"] {
            assert!(
                finished.stderr.contains(text),
                "{text}: {}",
                finished.stderr
            );
        }
    }
}

#[test]
fn a_posterior_without_a_finite_start() {
    let desk = Desk::new();
    let model = desk.file(
        "never.stan",
        "parameters { real mu; } model { mu ~ normal(0, 1); if (mu < 1e300) reject(\"no value of mu will do\"); }",
    );
    let finished = jensen(["fit", &model]).expect(4);
    assert!(
        finished.stderr.contains("no value of mu will do"),
        "{}",
        finished.stderr
    );
    // A model that rejects all values of its parameters is invalid.
    let model = desk.file(
        "never.stan",
        "parameters { real mu; } model { reject(\"never\"); }",
    );
    let finished = jensen(["fit", &model]).expect(3);
    assert!(
        finished.stderr.contains("never.stan:1"),
        "{}",
        finished.stderr
    );
    let nothing = desk.file("nothing.stan", "model { target += 1; }");
    let finished = jensen(["fit", &nothing]).expect(3);
    assert!(
        finished.stderr.contains("no parameters"),
        "{}",
        finished.stderr
    );
}

#[test]
fn check_takes_data_with_a_program() {
    let (model, data) = corpus("kidscore_momhs");
    let correct = jensen(["check", &model, &data]).expect(0).stdout;
    assert!(correct.ends_with("data.json: correct\n"), "{correct}");
    jensen(["check", &model, "--data", &data]).expect(0);
    let desk = Desk::new();
    let short = desk.file("short.json", "{\"N\": 2, \"kid_score\": [65, 98]}");
    let checked = jensen(["check", &model, &short]).expect(3);
    assert!(checked.stderr.contains("mom_hs"), "{}", checked.stderr);
    assert!(
        checked.stdout.contains("short.json: 1 error"),
        "{}",
        checked.stdout
    );
    // The command can fit every program that `check` accepts.
    for program in [
        "model { target += 1; }",
        "parameters { vector[0] m; } model { m ~ normal(0, 1); }",
        "parameters { real m; } model { reject(\"never\"); }",
        "parameters { vector[3] m; } model { target += m[4]; }",
        "parameters { vector[-1] m; } model { m ~ normal(0, 1); }",
        "functions { real f(real x) { return f(x) + 1; } } parameters { real m; } model { target += f(m); }",
    ] {
        let model = desk.file("model.stan", program);
        let empty = desk.file("empty.json", "{}");
        jensen(["fit", &model]).expect(3);
        jensen(["check", &model]).expect(3);
        jensen(["fit", &model, &empty]).expect(3);
        jensen(["check", &model, &empty]).expect(3);
    }
    let functions = desk.file("f.stanfunctions", "real f(real x) { return x; }");
    jensen(["check", &functions]).expect(0);
}

#[test]
fn check_takes_one_file_of_data() {
    let (model, data) = corpus("kidscore_momhs");
    for (files, word) in [
        (vec![&data], "give the program"),
        (vec![&model, &data, &data], "are both data"),
    ] {
        let command = std::iter::once("check".to_owned()).chain(files.into_iter().cloned());
        let refused = jensen(command).expect(2);
        assert!(refused.stderr.contains(word), "{}", refused.stderr);
    }
}

#[test]
fn includes_stay_in_their_folders() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("parts")).unwrap();
    desk.file("parts/prior.stan", "mu ~ normal(0, 1);");
    desk.file("secret.stan", "mu ~ normal(0, 2);");
    let parts = desk.name("parts");
    let program = |path: &str| {
        desk.file(
            "model.stan",
            &format!("parameters {{ real mu; }}\nmodel {{\n#include {path}\n}}\n"),
        )
    };
    let model = program("prior.stan");
    jensen(["check", &model]).expect(3);
    jensen(["check", &model, "--include", &parts]).expect(0);
    let out = desk.name("out");
    jensen(["fit", &model, "--include", &parts, "--out", &out, "-q"]).expect(0);
    jensen(["draws", &out, "--draws", "2"]).expect(0);
    let model = program("../secret.stan");
    jensen(["check", &model, "--include", &parts]).expect(3);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(desk.path("secret.stan"), desk.path("parts/link.stan")).unwrap();
        let model = program("link.stan");
        let finished = jensen(["check", &model, "--include", &parts]).expect(3);
        assert!(
            finished.stderr.contains("points outside"),
            "{}",
            finished.stderr
        );
    }
}

/// Each message names the thing that is missing or wrong, in the words of the user.
#[test]
fn messages_name_what_is_missing() {
    let desk = Desk::new();
    let model = desk.file("mean.stan", MEAN);
    let refused = |args: &[&str], code: i32, wanted: &[&str], unwanted: &str| {
        let said = jensen(args).expect(code).stderr;
        for wanted in wanted {
            assert!(said.contains(wanted), "`{wanted}` in: {said}");
        }
        assert!(!said.contains(unwanted), "`{unwanted}` in: {said}");
    };
    refused(
        &["fit", &model],
        3,
        &["no data are given: the program needs data, such as `N` (int)"],
        "found nothing",
    );
    let empty = desk.file("empty.json", "");
    refused(
        &["fit", &model, &empty],
        3,
        &["the file is empty, expected one JSON object of variables"],
        "truncated",
    );
    let table = desk.file("table.csv", "x,scale\n1,2\n");
    refused(
        &["fit", &model, &table],
        3,
        &["the table has no column `y`, whose length is `N`"],
        "expected int",
    );
    let gap = desk.file("gap.csv", "y,k\n1,NA\n");
    refused(
        &["fit", &model, &gap],
        3,
        &["this cell contains `NA`, which stands for a missing value"],
        "is empty",
    );
    refused(
        &["fit", &model, "--draws", "0"],
        2,
        &["expected a whole number of at least 1"],
        "18446744073709551615",
    );
    refused(
        &["fit", &model, "--chains", "4"],
        2,
        &["a fit has no chains"],
        "as a value",
    );
    refused(
        &["check", &model, "--threads", "2"],
        2,
        &["'--threads'"],
        "as a value",
    );
    let data = desk.file(
        "data.json",
        "{\"N\": 1, \"y\": [0.5], \"k\": [1], \"scale\": 2}",
    );
    refused(
        &[
            "fit",
            &model,
            &data,
            "--covariance",
            "linear-response",
            "--family",
            "mixture=2",
        ],
        2,
        &["--covariance linear-response corrects mean-field fits: remove --family mixture=2"],
        "error: error",
    );
    refused(
        &["mixture", "fit", &table, "-k", "3..1"],
        2,
        &["the range 3..1 is empty"],
        "such as 1..10",
    );
}
