//! Tests posteriors that are far from the starting point, or whose scales are far from 1. Each fit must either be
//! correct or not be trusted.

use crate::common::{Desk, jensen};

#[test]
fn a_normal_anywhere_is_right_or_not_trusted() {
    let desk = Desk::new();
    let mut trusted = 0;
    for (location, scale) in [
        (1.23457e-8, 1e-6),
        (1e15, 0.5),
        (1e10, 1e5),
        (-3e6, 1e-3),
        (0.0, 1e-12),
        (-1e9, 1e12),
    ] {
        let source =
            format!("parameters {{ real q; }} model {{ q ~ normal({location:?}, {scale:?}); }}");
        let model = desk.file("model.stan", &source);
        let done = jensen([
            "fit",
            &model,
            "--json",
            "--threads",
            "1",
            "--max-iters",
            "3000",
        ]);
        let fit: serde_json::Value = serde_json::from_str(&done.stdout).expect("an object");
        if !fit["trusted"].as_bool().expect("a verdict") {
            continue;
        }
        trusted += 1;
        let output = |name: &str| fit["parameters"][0][name].as_f64().expect("a number");
        // The tolerance is five standard errors, both for the mean and for the standard deviation of 4000 draws.
        let (mean, sd) = (output("mean"), output("sd"));
        assert!(
            (mean - location).abs() < 0.08 * scale,
            "{location} {scale}: mean {mean}"
        );
        assert!(
            (sd / scale - 1.0).abs() < 0.06,
            "{location} {scale}: sd {sd}"
        );
    }
    assert!(trusted >= 4, "{trusted} are trusted");
}
