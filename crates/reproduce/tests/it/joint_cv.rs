//! Tests of the parts of `joint-cv` that need only the data in the repository.

use std::path::Path;

use jensen_reproduce::{Failure, Results, Scale, Setup, find, run};

fn reproduce(out: &Path, part: &str) -> Result<Results, Failure> {
    let setup = Setup {
        data: Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data"),
        out: out.to_path_buf(),
        corpus: None,
        models: None,
        scale: Scale::Quick,
        only: vec![part.to_owned()],
        resume: false,
        threads: 1,
        machine: String::new(),
        cancel: None,
    };
    run(find("joint-cv").unwrap(), &setup, &mut |_| {})
}

#[test]
fn estimators_respect_their_bounds_along_a_run() {
    let out = tempfile::tempdir().unwrap();
    let results = reproduce(out.path(), "figure2").unwrap();
    for task in ["Sonar", "Australian"] {
        let ratio = |estimator: &str, bound: &str| {
            let what = format!(
                "Figure 2, {task}: variance of {estimator} over the {bound} variance, at the end"
            );
            let row = results.rows.iter().find(|row| row.what == what);
            row.and_then(|row| row.ours).unwrap()
        };
        assert!(ratio("cv", "subsampling") > 0.8);
        assert!(ratio("inc", "Monte-Carlo") > 0.8);
        assert!(ratio("joint", "subsampling") < 0.8);
        assert!(ratio("joint", "Monte-Carlo") < 0.8);
    }
    assert!(out.path().join("figure2.png").exists());
}

#[test]
fn missing_data_are_said_with_the_way_to_get_them() {
    let out = tempfile::tempdir().unwrap();
    let error = reproduce(out.path(), "table3-mnist")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("mnist") && error.contains("--data"),
        "{error}"
    );
}
