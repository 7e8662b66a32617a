//! `jensen fit --exchangeable` from end to end.

mod common;

use common::{corpus, jensen};

#[test]
fn minibatches_reach_the_posterior_of_all_records() {
    let (model, data) = corpus("kidscore_momhs");
    let whole = jensen(["fit", &model, &data, "--family", "meanfield", "--json"]).json();
    let minibatches = jensen([
        "fit",
        &model,
        &data,
        "--exchangeable",
        "N",
        "--batch",
        "50",
        "--step-size",
        "0.1",
        "--max-iters",
        "20000",
        "--json",
    ])
    .json();
    assert_eq!(minibatches["method"], "minibatch");
    let gap = whole["elbo"].as_f64().unwrap() - minibatches["elbo"].as_f64().unwrap();
    assert!(gap.abs() < 2.0, "{gap} nats apart");
}

/// Fails with this exit code and a message that has all of these words.
fn refused(model: &str, flags: &[&str], code: i32, words: &[&str]) {
    let (model, data) = corpus(model);
    let mut args = vec!["fit", model.as_str(), data.as_str()];
    args.extend_from_slice(flags);
    let answer = jensen(args).expect(code);
    for word in words {
        assert!(answer.stderr.contains(word), "{flags:?}: {}", answer.stderr);
    }
}

#[test]
fn what_counts_no_records_is_refused() {
    let kid = "kidscore_momhs";
    refused(
        kid,
        &["--exchangeable", "M"],
        3,
        &["no variable `M`", "`N`"],
    );
    refused(kid, &["--exchangeable", "mom_hs"], 3, &["no single `int`"]);
    refused(
        kid,
        &["--exchangeable", "N", "--batch", "1000"],
        2,
        &["434 records"],
    );
    refused(
        kid,
        &["--exchangeable", "N", "--batch", "0"],
        2,
        &["--batch"],
    );
    refused(kid, &["--batch", "10"], 2, &["--exchangeable"]);
    refused(kid, &["--estimator", "joint"], 2, &["--exchangeable"]);
    refused(kid, &["--method", "smiso"], 2, &["--exchangeable"]);
    refused(
        "ar_k",
        &["--exchangeable", "T"],
        3,
        &["records interact", "model.stan:16"],
    );
    refused(
        "garch_1_1",
        &["--exchangeable", "T"],
        3,
        &["records interact", "model.stan:20"],
    );
    refused(
        "dyes_variance_components",
        &["--exchangeable", "BATCHES"],
        3,
        &["sized by `BATCHES`"],
    );
}
