//! Tests of `trustvi` on programs that the user supplies.

use std::path::Path;

use jensen_reproduce::{Failure, Results, Scale, Setup, find, run};

const NORMAL: &str = "data { int N; vector[N] y; }\n\
    parameters { real mu; }\n\
    model { mu ~ normal(0, 1); y ~ normal(mu, 1); }\n";

fn reproduce(models: &Path, out: &Path, part: &str) -> Result<Results, Failure> {
    let setup = Setup {
        data: models.to_path_buf(),
        out: out.to_path_buf(),
        corpus: None,
        models: Some(models.to_path_buf()),
        scale: Scale::Quick,
        only: vec![part.to_owned()],
        resume: true,
        threads: 1,
        machine: String::new(),
        cancel: None,
    };
    run(find("trustvi").unwrap(), &setup, &mut |_| {})
}

/// The log evidence of [`NORMAL`]: y is normal with mean 0 and covariance I + 11ᵀ.
fn log_evidence(y: &[f64]) -> f64 {
    let n = y.len() as f64;
    let (sum, squares) = (y.iter().sum::<f64>(), y.iter().map(|y| y * y).sum::<f64>());
    let quadratic = squares - sum * sum / (1.0 + n);
    -0.5 * (n * (2.0 * std::f64::consts::PI).ln() + (1.0 + n).ln() + quadratic)
}

#[test]
fn programs_of_a_folder_are_compared_and_the_others_have_their_reason() {
    let root = tempfile::tempdir().unwrap();
    let models = root.path().join("models");
    std::fs::create_dir_all(models.join("inner")).unwrap();
    for (name, text) in [
        ("json.stan", NORMAL),
        ("json.json", "{\"N\": 3, \"y\": [0.5, 1, 3]}"),
        ("inner/dump_variant.stan", NORMAL),
        ("inner/dump.data.R", "N <- 2\ny <- c(-1, 2.5)\n"),
        ("alone.stan", NORMAL),
        ("wrong.stan", "parameters { real mu }\n"),
        ("wrong.json", "{}"),
        ("constant.stan", "transformed data { real x = 1; }\n"),
    ] {
        std::fs::write(models.join(name), text).unwrap();
    }
    let out = root.path().join("out");
    let results = reproduce(&models, &out, "advi").unwrap();
    let row = |what: &str| {
        let what = format!("given programs: {what}");
        let row = results.rows.iter().find(|row| row.what == what);
        row.unwrap_or_else(|| panic!("{what}: {:#?}", results.rows))
    };
    // The posteriors are normal, so the best bound equals the log evidence, without noise.
    for (name, y) in [
        ("json", &[0.5, 1.0, 3.0][..]),
        ("inner/dump_variant", &[-1.0, 2.5]),
    ] {
        let bound = row(&format!("{name}: final bound of TrustVI"))
            .ours
            .unwrap();
        let exact = log_evidence(y);
        assert!(
            (bound - exact).abs() < 1e-6,
            "{name}: {bound} is not {exact}"
        );
    }
    for (name, why) in [
        (
            "alone",
            "there are no data alone.json or alone.data.json or alone.data.R",
        ),
        ("wrong", "expected"),
        ("constant", "no parameters"),
    ] {
        let row = row(&format!("{name}, against ADVI"));
        assert_eq!(row.ours, None);
        assert!(row.note.contains(why), "{}", row.note);
    }
    let shares: f64 = ["equal", "better", "worse"]
        .map(|word| {
            row(&format!("final bound of TrustVI against ADVI's: {word}"))
                .ours
                .unwrap()
        })
        .iter()
        .sum();
    assert!((shares - 1.0).abs() < 1e-12);

    // The comparison at a tighter tolerance uses the same runs of TrustVI.
    let stored = || std::fs::read_dir(out.join("kept")).unwrap().count();
    let before = stored();
    let results = reproduce(&models, &out, "advi-tight").unwrap();
    assert_eq!(stored(), before + 2);
    let tight = "given programs: tolerance 1e-4: json: final bound of ADVI";
    assert!(results.rows.iter().any(|row| row.what == tight));

    // A changed file is run again.
    std::fs::write(models.join("json.json"), "{\"N\": 1, \"y\": [0]}").unwrap();
    reproduce(&models, &out, "advi-tight").unwrap();
    assert_eq!(stored(), before + 4);
}

#[test]
fn a_folder_without_programs_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("out");
    let error = reproduce(root.path(), &out, "advi")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("--models") && error.contains(".data.R"),
        "{error}"
    );
}
