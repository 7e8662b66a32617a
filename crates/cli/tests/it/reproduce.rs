//! Tests `jensen reproduce` without running an experiment. The experiments themselves are tested in the library.

use crate::common::{Desk, corpus, jensen};

#[test]
fn experiments_are_listed_with_their_parts_and_data() {
    let listed = jensen(["reproduce"]).expect(0).stdout;
    assert!(
        listed.contains("trustvi  TrustVI, ADVI and HFSGVI"),
        "{listed}"
    );
    for text in ["figure1", "uncertainty", "data: none"] {
        assert!(listed.contains(text), "{listed}");
    }
    assert_eq!(jensen(["reproduce", "LIST"]).expect(0).stdout, listed);
}

#[test]
fn wrong_names_are_usage_errors_that_say_what_there_is() {
    let unknown = jensen(["reproduce", "trust"]).expect(2).stderr;
    assert!(unknown.contains("trustvi"), "{unknown}");
    let desk = Desk::new();
    let out = desk.name("out");

    let part = jensen(["reproduce", "trustvi", "--out", &out, "--only", "figure7"]).expect(2);
    assert!(part.stderr.contains("figure1, figure2"), "{}", part.stderr);
    assert!(!desk.path("out").exists());
}

#[test]
fn linear_response_widens_standard_deviations_and_wants_a_mean_field_fit() {
    let (model, data) = corpus("kidscore_momiq");
    let (model, data) = (model.as_str(), data.as_str());
    let run = |flags: &[&str]| {
        let mut args = vec!["fit", model, data, "--family", "meanfield", "--json"];
        args.extend(flags);
        jensen(args)
    };
    let sd = |fit: &serde_json::Value| fit["parameters"][0]["sd"].as_f64().unwrap();
    let narrow = sd(&run(&[]).json());
    let response = ["--covariance", "linear-response", "--covariance-of", "beta"];
    let wide = run(&response).json();
    // The reference draws of posteriordb have a standard deviation of 5.97.
    assert!(
        (sd(&wide) / 5.97 - 1.0).abs() < 0.1 && narrow < 2.0,
        "{narrow} {wide}"
    );
    assert_eq!(wide["family"], "lowrank=2");
    let wrong = run(&["--covariance-of", "beta"]).expect(2).stderr;
    assert!(wrong.contains("--covariance linear-response"), "{wrong}");
    let missing = [
        "--covariance",
        "linear-response",
        "--covariance-of",
        "gamma",
    ];
    let missing = run(&missing).expect(3).stderr;
    assert!(missing.contains("beta, sigma"), "{missing}");
}
