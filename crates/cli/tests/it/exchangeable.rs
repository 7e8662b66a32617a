//! Tests `jensen fit --exchangeable` from end to end.

use crate::common::{Desk, corpus, jensen};

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
        "--covariance",
        "family",
        "--json",
    ])
    .json();
    assert_eq!(minibatches["method"], "minibatch");
    let gap = whole["elbo"].as_f64().unwrap() - minibatches["elbo"].as_f64().unwrap();
    assert!(gap.abs() < 2.0, "{gap} nats apart");
}

#[test]
fn smiso_finds_a_step_size_of_its_own() {
    let (model, data) = corpus("wells_logit");
    let whole = jensen(["fit", &model, &data, "--family", "meanfield", "--json"]).json();
    let flags = ["--method", "smiso", "--max-iters", "30000", "--json"];
    let mut args = vec!["fit", &model, &data, "--exchangeable", "N"];
    args.extend(flags);
    let smiso = jensen(args).json();
    assert_eq!(smiso["method"], "smiso");
    let gap = whole["elbo"].as_f64().unwrap() - smiso["elbo"].as_f64().unwrap();
    assert!(gap.abs() < 2.0, "{gap} nats apart");
}

/// TrustVI with the joint control variate reaches the bound of all records, and a run that stopped before its end resumes
/// to the same bits.
#[test]
fn trust_regions_use_the_joint_control_variate() {
    let (model, data) = corpus("wells_logit");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let run = |out: &str, more: &[&str]| {
        let flags = ["--family", "meanfield", "--method", "trust", "--seed", "3"];
        let args = ["fit", &model, &data, "--exchangeable", "N", "--quiet"];
        jensen([&args[..], &flags, &["--out", out], more].concat())
    };
    let (direct, parts) = (path("direct"), path("parts"));
    run(&direct, &["--estimator", "joint-svrg"]);
    let stored =
        |out: &str, file: &str| std::fs::read(std::path::Path::new(out).join(file)).unwrap();
    let lines = String::from_utf8(stored(&direct, "trace.jsonl")).unwrap();
    let last = lines.lines().count();
    run(&parts, &["--max-iters", &(last - 1).to_string()]).expect(4);
    jensen(["fit", "--resume", &parts, "--max-iters", "10000", "--quiet"]);
    // The control variate is the default.
    let file = "approximation.safetensors";
    assert!(stored(&direct, file) == stored(&parts, file));

    let whole = jensen(["fit", &model, &data, "--family", "meanfield", "--json"]).json();
    let found: serde_json::Value = serde_json::from_slice(&stored(&direct, "fit.json")).unwrap();
    let gap = whole["elbo"].as_f64().unwrap() - found["elbo"].as_f64().unwrap();
    assert!(gap.abs() < 0.5, "{gap} nats apart");
}

#[test]
fn the_ensemble_without_weight_on_cv_is_inc() {
    let (model, data) = corpus("kidscore_momhs");
    let mut args = vec!["fit", &model, &data, "--exchangeable", "N", "--batch", "50"];
    args.extend([
        "--family",
        "meanfield",
        "--max-iters",
        "300",
        "--json",
        "--estimator",
    ]);
    let elbo = |flags: &[&str]| -> f64 {
        let fit = jensen([&args[..], flags].concat());
        serde_json::from_str::<serde_json::Value>(&fit.stdout).unwrap()["elbo"]
            .as_f64()
            .unwrap()
    };
    let inc = elbo(&["inc"]);
    let [none, half] = ["0", "0.5"].map(|beta| elbo(&["ens", "--ens-weight", beta]));
    assert_eq!(none, inc);
    assert_eq!(half, elbo(&["ens"]));
    assert!(half != inc);
}

#[test]
fn a_run_stopped_within_an_epoch_resumes_to_the_same_bits() {
    // An epoch has nine batches. Both limits are therefore within one epoch, after the starts.
    let (model, data) = corpus("kidscore_momhs");
    for method in [
        &["--estimator", "joint"][..],
        &["--estimator", "joint-svrg", "--trace-variance", "30"],
        &["--estimator", "inc"],
        &["--method", "smiso"],
        &["--method", "smiso", "--momentum", "0.9"],
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let (direct, parts) = (path("direct"), path("parts"));
        let run = |out: &str, iterations: &str| {
            let mut args = vec!["fit", &model, &data, "--exchangeable", "N", "--batch", "50"];
            args.extend(["--quiet", "--out", out, "--max-iters", iterations]);
            args.extend(method);
            jensen(args).expect(4);
        };
        run(&direct, "600");
        run(&parts, "540");
        jensen(["fit", "--resume", &parts, "--max-iters", "600", "--quiet"]).expect(4);
        let bytes =
            |out: &str, file: &str| std::fs::read(std::path::Path::new(out).join(file)).unwrap();
        // The comments list the flags. A resumed run adds the flags with which it was resumed.
        let draws = |out: &str| -> Vec<String> {
            let text = String::from_utf8(bytes(out, "draws.csv")).unwrap();
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            lines.map(str::to_owned).collect()
        };
        let approximation = "approximation.safetensors";
        assert!(
            bytes(&direct, approximation) == bytes(&parts, approximation),
            "{method:?}"
        );
        assert!(draws(&direct) == draws(&parts), "{method:?}");
        let trace = String::from_utf8(bytes(&parts, "trace.jsonl")).unwrap();
        assert_eq!(trace.lines().count(), 600);
        let lines = trace.lines();
        let lines: Vec<serde_json::Value> = lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines[0]["stage"], "starts");
        assert_ne!(lines[539]["stage"], "starts");
        if method.contains(&"--trace-variance") {
            let mut analysed = lines
                .iter()
                .filter(|line| line["variance_naive_total"].is_number());
            let line = analysed.next_back().unwrap();
            for estimator in ["naive", "stl", "cv", "inc", "ens", "joint", "joint-svrg"] {
                for part in ["total", "subsampling", "monte_carlo"] {
                    let name = format!("variance_{estimator}_{part}");
                    assert!(line[&name].is_number(), "{name}");
                    assert!(line[format!("{name}_se")].is_number(), "{name}");
                }
            }
            let report = String::from_utf8(bytes(&parts, "report.html")).unwrap();
            assert!(report.contains("Variance of the gradient"));
        }
    }
}

#[test]
fn records_get_the_policy_of_all_data() {
    // The predictors are collinear, so the independent normals of the first fit cannot be trusted.
    let desk = Desk::new();
    let model = desk.file(
        "line.stan",
        "data { int N; vector[N] x; vector[N] y; }
         parameters { real a; real b; }
         model { a ~ normal(0, 10); b ~ normal(0, 10); y ~ normal(a + b * x, 1); }",
    );
    let x: Vec<f64> = (0..400).map(|n| 3.0 + f64::from(n % 20) / 20.0).collect();
    let y: Vec<f64> = x.iter().map(|x| 1.0 + 0.5 * x + (37.0 * x).sin()).collect();
    let data = serde_json::json!({"N": x.len(), "x": x, "y": y});
    let data = desk.file("line.json", &data.to_string());
    let whole = jensen(["fit", &model, &data, "--json"]).json();
    let mut args = vec!["fit", &model, &data, "--exchangeable", "N", "--json"];
    let records = jensen([&args[..], &["--step-size", "0.05"]].concat()).json();
    assert_eq!(whole["trusted"], true);
    assert_eq!(records["trusted"], true, "{records}");
    assert_eq!(records["family"], "fullrank");
    let gap = whole["elbo"].as_f64().unwrap() - records["elbo"].as_f64().unwrap();
    assert!(gap.abs() < 0.5, "{gap} nats apart");
    // Linear response corrects the covariances of the mean-field fit to those of the posterior.
    args.extend(["--family", "meanfield", "--covariance", "linear-response"]);
    let wide = jensen(args).json();
    let sd = |fit: &serde_json::Value| fit["parameters"][1]["sd"].as_f64().unwrap();
    assert!((sd(&wide) / sd(&whole) - 1.0).abs() < 0.1, "{wide}");
}

#[test]
fn a_logistic_regression_has_its_draws_integrated_out() {
    let (model, data) = corpus("wells_logit");
    let whole = jensen(["fit", &model, &data, "--family", "meanfield", "--json"]).json();
    let mut args = vec!["fit", &model, &data, "--exchangeable", "N", "--json"];
    args.extend(["--estimator", "joint-exact", "--max-iters", "20000"]);
    args.extend(["--family", "meanfield"]);
    let exact = jensen(args).json();
    let gap = whole["elbo"].as_f64().unwrap() - exact["elbo"].as_f64().unwrap();
    assert!(gap.abs() < 0.5, "{gap} nats apart");
}

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
    refused(
        kid,
        &["--exchangeable", "mom_hs"],
        3,
        &["not a single `int`"],
    );
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
    let trust = ["--exchangeable", "N", "--method", "trust"];
    let cv = [&trust[..], &["--estimator", "cv"]].concat();
    refused(kid, &cv, 2, &["`naive` and `joint-svrg`"]);
    let joint = ["--exchangeable", "N", "--estimator", "joint"];
    let weighted = [&joint[..], &["--ens-weight", "0.3"]].concat();
    refused(kid, &weighted, 2, &["--estimator ens"]);
    let heavy = [
        "--exchangeable",
        "N",
        "--estimator",
        "ens",
        "--ens-weight",
        "2",
    ];
    refused(kid, &heavy, 2, &["from 0 to 1"]);
    let pushed = ["--exchangeable", "N", "--momentum", "0.9"];
    refused(kid, &pushed, 2, &["--method smiso"]);
    let endless = [
        "--exchangeable",
        "N",
        "--method",
        "smiso",
        "--momentum",
        "1",
    ];
    refused(kid, &endless, 2, &["from 0 to below 1"]);
    refused(kid, &["--trace-variance", "9"], 2, &["--exchangeable"]);
    refused(
        kid,
        &["--exchangeable", "N", "--trace-variance", "9"],
        2,
        &["--out"],
    );
    refused(
        kid,
        &["--exchangeable", "N", "--estimator", "joint-exact"],
        3,
        &["one linear predictor", "`joint`"],
    );
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
        &["size of parameter `batch_mean` is `BATCHES`"],
    );
}

#[test]
fn snapshots_that_do_not_fit_are_refused_and_svrg_named() {
    // A network is not a linear predictor. `joint` must therefore store the means that were computed when each record
    // was last visited.
    let desk = Desk::new();
    let model = desk.file(
        "network.stan",
        "data { int N; int H; vector[N] x; vector[N] y; }
         parameters { vector[H] w; vector[H] v; }
         model {
           w ~ std_normal();
           v ~ std_normal();
           for (n in 1 : N) y[n] ~ normal(dot_product(v, tanh(w * x[n])), 1);
         }",
    );
    let x: Vec<f64> = (0..20_000).map(|n| f64::from(n % 7) - 3.0).collect();
    let data = serde_json::json!({"N": x.len(), "H": 50, "x": &x, "y": &x});
    let data = desk.file("network.json", &data.to_string());
    let mut args = vec!["fit", &model, &data, "--exchangeable", "N", "--batch", "10"];
    args.extend([
        "--max-iters",
        "10",
        "--draws",
        "100",
        "--memory-limit",
        "6MiB",
    ]);
    let joint = jensen([&args[..], &["--estimator", "joint"]].concat()).expect(3);
    for word in [
        "the snapshots of the estimator `joint`",
        "MiB",
        "`joint-svrg` needs",
    ] {
        assert!(joint.stderr.contains(word), "{}", joint.stderr);
    }
    jensen([&args[..], &["--estimator", "joint-svrg"]].concat()).expect(4);
}
