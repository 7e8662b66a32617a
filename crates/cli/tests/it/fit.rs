//! Tests `jensen fit` and `jensen draws` from end to end.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use jensen::math::simd::Simd;

use crate::common::{
    Desk, corpus, draws_of, fit_of, jensen, read_json, rows, start, timeless, trace_of,
};

const SCHOOLS: &str = "eight_schools_noncentred";

/// The flags of a run that consists of some hundred slow iterations. A test can stop such a run in the middle.
const SLOW: [&str; 6] = [
    "--method",
    "bbvi",
    "--grad-samples",
    "20000",
    "--step-size",
    "0.002",
];

#[test]
fn a_hopeless_mean_field_is_left_where_the_starts_ended() {
    let desk = Desk::new();
    // For a hierarchy of 26 dimensions, the mean-field approximation of the starts has a k̂ above 1. For a regression,
    // it is close to the posterior.
    for (program, fitted) in [("seeds_centred", false), ("kidscore_momiq", true)] {
        let (model, data) = corpus(program);
        let out = desk.name(program);
        jensen([
            "fit", &model, &data, "--seed", "1", "--quiet", "--out", &out,
        ])
        .expect(0);
        let trace = trace_of(Path::new(&out));
        let mean_field = trace.iter().any(|record| record["stage"] == "trust");
        assert_eq!(mean_field, fitted, "{program}");
        // In both cases the policy judges the richer family last.
        assert_eq!(
            read_json(&Path::new(&out).join("fit.json"))["family"],
            "fullrank"
        );
    }
}

#[test]
fn a_fit_answers_as_stated() {
    let (model, data) = corpus(SCHOOLS);
    let desk = Desk::new();
    let out = desk.name("out");
    let fit = jensen(["fit", &model, &data, "--out", &out, "--json"]).expect(0);
    assert_eq!(fit.stderr, "", "nothing on standard error");
    let fit = fit.json();
    for field in ["elbo", "elbo_se", "khat"] {
        assert!(fit[field].is_f64(), "{field}");
    }
    for field in ["iterations", "oracle_calls", "dim", "seed"] {
        assert!(fit[field].is_u64(), "{field}");
    }
    for part in ["build", "fit", "draws"] {
        assert!(fit["seconds"][part].is_f64(), "{part}");
    }
    assert_eq!(fit["converged"], true);
    assert_eq!(fit["trusted"], true);
    assert_eq!(fit["dim"], 10);
    assert!(fit["status"].as_str().unwrap().starts_with("converged"));
    assert_eq!(fit["version"], env!("CARGO_PKG_VERSION"));
    let parameters = fit["parameters"].as_array().unwrap();
    assert_eq!(parameters[0]["name"], "mu");
    assert_eq!(parameters[2]["name"], "eta[1]");
    for field in ["mean", "sd", "q05", "q50", "q95"] {
        assert!(parameters[0][field].is_f64(), "{field}");
    }
    assert_eq!(
        fit,
        read_json(&desk.path("out/fit.json")),
        "standard output is fit.json"
    );
    for file in [
        "draws.csv",
        "draws.nc",
        "trace.jsonl",
        "report.html",
        "approximation.safetensors",
    ] {
        assert!(desk.path("out").join(file).is_file(), "{file}");
    }
    let trace = trace_of(&desk.path("out"));
    assert_eq!(trace.len() as u64, fit["iterations"].as_u64().unwrap());
    for (i, line) in trace.iter().enumerate() {
        assert_eq!(line["iteration"], i as u64 + 1);
        for field in ["elbo", "elbo_se", "oracle_calls"] {
            assert!(line.get(field).is_some(), "{field}");
        }
    }
    // The first line contains the names, the second contains the mean, and the others contain the draws.
    assert_eq!(draws_of(&desk.path("out")).lines().count(), 1002);
}

#[test]
fn people_get_a_table_and_a_verdict() {
    let (model, data) = corpus(SCHOOLS);
    let fit = jensen(["fit", &model, &data]).expect(0);
    for text in ["mean", "q95", "mu", "theta[8]", "ELBO", "k̂", "trusted"] {
        assert!(fit.stdout.contains(text), "{text}");
    }
    assert_eq!(fit.stderr, "", "no progress where there is no terminal");
    let quiet = jensen(["fit", &model, &data, "--quiet"]).expect(0);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
}

#[test]
fn threads_do_not_change_a_bit() {
    let (model, data) = corpus("radon_group_noncentred");
    let desk = Desk::new();
    let run = |name: &str, threads: &str| {
        let out = desk.name(name);
        jensen([
            "fit",
            &model,
            &data,
            "--out",
            &out,
            "--threads",
            threads,
            "--quiet",
        ]);
        desk.path(name)
    };
    let (one, two) = (run("one", "1"), run("two", "2"));
    assert_eq!(fit_of(&one), fit_of(&two));
    assert_eq!(draws_of(&one), draws_of(&two));
    assert_eq!(trace_of(&one), trace_of(&two));
    let approximation =
        |folder: &Path| std::fs::read(folder.join("approximation.safetensors")).unwrap();
    assert_eq!(approximation(&one), approximation(&two));
}

#[test]
fn seeds_change_the_draws() {
    let (model, data) = corpus(SCHOOLS);
    let run =
        |seed: &str| timeless(jensen(["fit", &model, &data, "--seed", seed, "--json"]).json());
    let (one, other) = (run("1"), run("2"));
    assert_ne!(one["parameters"], other["parameters"]);
    assert_eq!(one, run("1"));
}

#[test]
fn a_shorter_run_is_a_prefix() {
    let (model, data) = corpus(SCHOOLS);
    let desk = Desk::new();
    for method in ["auto", "advi", "bbvi"] {
        let run = |name: &str, iterations: &str| {
            let out = desk.name(name);
            let finished = jensen([
                "fit",
                &model,
                &data,
                "--method",
                method,
                "--max-iters",
                iterations,
                "--out",
                &out,
                "--quiet",
            ]);
            (finished.code, trace_of(&desk.path(name)))
        };
        let (code, short) = run("short", "30");
        assert_eq!(
            code, 4,
            "{method}: a run out of budget is not to be trusted"
        );
        let fit = fit_of(&desk.path("short"));
        assert_eq!(fit["converged"], false);
        assert!(fit["status"].as_str().unwrap().contains("30 iterations"));
        let (_, long) = run("long", "45");
        assert_eq!(short.len(), 30);
        assert_eq!(short[..], long[..30], "{method}");
    }
}

#[test]
fn draws_continue_those_of_the_fit() {
    let (model, data) = corpus(SCHOOLS);
    let desk = Desk::new();
    let first_and_more = |refine: &str, code: i32| {
        let out = desk.name(refine);
        let args = ["--out", &out, "--draws", "20", "--refine", refine, "-q"];
        jensen(["fit", &model, &data].into_iter().chain(args)).expect(code);
        let more = rows(&jensen(["draws", &out, "--draws", "30"]).expect(0).stdout);
        let first = draws_of(&desk.path(refine));
        assert_eq!(more.lines().count(), 32);
        assert!(
            more.starts_with(&first),
            "the first 20 are those of the fit"
        );
        (out, more)
    };
    let (_, refined) = first_and_more("always", 0);
    let (out, more) = first_and_more("none", 4);
    assert_ne!(refined, more);
    let other = jensen(["draws", &out, "--draws", "30", "--seed", "9"]).expect(0);
    assert_ne!(rows(&other.stdout), more);
    let file = desk.name("more.nc");
    jensen(["draws", &out, "--draws", "5", "--out", &file]).expect(0);
    assert!(desk.path("more.nc").is_file());
    let resampled = jensen(["draws", &out, "--draws", "7", "--importance-resample"]).expect(0);
    assert_eq!(rows(&resampled.stdout).lines().count(), 9);
}

fn columns(csv: &str) -> Vec<String> {
    let rows = rows(csv);
    let header = rows.lines().next().expect("a header");
    header.split(',').skip(3).map(str::to_owned).collect()
}

#[test]
fn only_what_is_asked_for_is_saved() {
    let (model, data) = corpus(SCHOOLS);
    let desk = Desk::new();
    let out = desk.name("out");
    let fit = [
        "fit", &model, &data, "--seed", "3", "--draws", "40", "--out", &out,
    ];
    let words = ["--save", "tau,generated"];
    jensen(fit.into_iter().chain(words)).expect(0);
    let written = std::fs::read_to_string(desk.path("out/draws.csv")).unwrap();
    let saved = columns(&written);
    assert_eq!(saved[0], "tau");
    assert!(
        saved[1..].iter().all(|name| !name.starts_with("theta")),
        "{saved:?}"
    );
    assert!(saved.contains(&"y_rep.8".to_owned()));
    // The columns are the same as those of a fit that saves all variables.
    let more = jensen(["draws", &out, "--draws", "40", "--save", "all"]).expect(0);
    let column = |csv: &str, name: &str| -> Vec<String> {
        let at = 3 + columns(csv).iter().position(|c| c == name).expect(name);
        let rows = rows(csv);
        rows.lines()
            .skip(2)
            .map(|row| row.split(',').nth(at).unwrap().to_owned())
            .collect()
    };
    for name in ["tau", "y_rep.1", "log_lik.8"] {
        assert_eq!(column(&written, name), column(&more.stdout, name), "{name}");
    }
    let unknown = jensen(["fit", &model, &data, "--save", "tau,theta_tilde"]).expect(2);
    assert!(unknown.stderr.contains("theta_tilde") && unknown.stderr.contains("y_rep"));
    let inits = desk.name("inits.json");
    let missing = jensen(["fit", &model, &data, "--save", "tau", "--inits-out", &inits]).expect(2);
    assert!(missing.stderr.contains("--save"));
}

#[test]
fn another_program_generates_at_the_draws_of_a_fit() {
    let (model, data) = corpus(SCHOOLS);
    let desk = Desk::new();
    let out = desk.name("out");
    jensen([
        "fit", &model, &data, "--seed", "3", "--draws", "200", "--out", &out,
    ])
    .expect(0);
    let written = std::fs::read_to_string(desk.path("out/draws.csv")).unwrap();
    // The program, the data and the seed are the same, so the result is the output of the fit.
    let again = jensen(["generate", &model, &out, "--save", "all"]).expect(0);
    assert_eq!(columns(&again.stdout), columns(&written));
    let (again, written) = (rows(&again.stdout), rows(&written));
    let numbers = |row: &str| -> Vec<f64> { row.split(',').map(|x| x.parse().unwrap()).collect() };
    assert_eq!(again.lines().count(), written.lines().count());
    for (a, b) in again.lines().zip(written.lines()).skip(2) {
        for (a, b) in numbers(a).iter().zip(numbers(b)) {
            assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} {b}");
        }
    }
    let program = desk.file(
        "new.stan",
        "data { int M; vector[M] x; } parameters { real<lower=0> tau; real mu; }
         generated quantities { vector[M] at = mu + x; real law = normal_rng(mu, tau); }",
    );
    let new = desk.file("new.json", "{\"M\": 2, \"x\": [0, 100]}");
    let summary = desk.name("summary.json");
    let made = jensen([
        "generate",
        &program,
        &out,
        "--data",
        &new,
        "--summary",
        &summary,
    ])
    .expect(0);
    let written: Vec<serde_json::Value> =
        serde_json::from_str(&std::fs::read_to_string(&summary).unwrap()).unwrap();
    let names: Vec<&str> = written
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["at[1]", "at[2]", "law"]);
    let mean = |row: usize| written[row]["mean"].as_f64().unwrap();
    assert!((mean(1) - mean(0) - 100.0).abs() < 1e-9);
    let predicted = desk.name("predicted.nc");
    jensen([
        "generate", &program, &out, "--data", &new, "--out", &predicted,
    ])
    .expect(0);
    assert!(std::fs::read(&predicted).unwrap().starts_with(b"\x89HDF"));
    assert_eq!(columns(&made.stdout), ["at.1", "at.2", "law"]);
    for row in rows(&made.stdout).lines().skip(2) {
        let row = numbers(row);
        assert!((row[4] - row[3] - 100.0).abs() < 1e-9, "{row:?}");
    }
    let other = desk.file(
        "other.stan",
        "parameters { real nu; } generated quantities { real x = nu; }",
    );
    let refused = jensen(["generate", &other, &out]).expect(3);
    assert!(refused.stderr.contains("`nu`"), "{}", refused.stderr);
    let none = desk.file("none.stan", "parameters { real mu; }");
    let refused = jensen(["generate", &none, &out]).expect(3);
    assert!(
        refused.stderr.contains("no generated quantities"),
        "{}",
        refused.stderr
    );
}

fn wait_for_checkpoint(folder: &Path) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !folder.join("checkpoint.safetensors").is_file() {
        assert!(Instant::now() < deadline, "no checkpoint within a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn slow_run<'a>(model: &'a str, data: &'a str, out: &'a str, iterations: &'a str) -> Vec<&'a str> {
    let mut args = vec!["fit", model, data, "--out", out, "--max-iters", iterations];
    args.extend(SLOW);
    args
}

#[cfg(unix)]
#[test]
fn a_killed_run_resumes_to_the_same_bits() {
    let (model, data) = corpus(SCHOOLS);
    let desk = Desk::new();
    let (killed, whole) = (desk.name("killed"), desk.name("whole"));
    let mut args = slow_run(&model, &data, &killed, "250");
    args.extend(["--checkpoint-every", "0"]);
    let mut child = start(&args);
    wait_for_checkpoint(&desk.path("killed"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        !desk.path("killed/fit.json").exists(),
        "killed before its end"
    );
    let resumed = jensen([
        "fit",
        "--resume",
        &killed,
        "--checkpoint-every",
        "1000",
        "--quiet",
    ]);
    let direct = jensen(slow_run(&model, &data, &whole, "250"));
    assert_eq!(resumed.code, direct.code);
    let (killed, whole) = (desk.path("killed"), desk.path("whole"));
    assert_eq!(fit_of(&killed), fit_of(&whole));
    assert_eq!(draws_of(&killed), draws_of(&whole));
    assert_eq!(trace_of(&killed), trace_of(&whole));
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_leaves_results_and_a_checkpoint() {
    let (model, data) = corpus(SCHOOLS);
    let desk = Desk::new();
    let (out, whole) = (desk.name("out"), desk.name("whole"));
    let mut args = slow_run(&model, &data, &out, "100000");
    args.extend(["--checkpoint-every", "0"]);
    let mut child = start(&args);
    wait_for_checkpoint(&desk.path("out"));
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    assert_eq!(child.wait().unwrap().code(), Some(4));
    let fit = fit_of(&desk.path("out"));
    assert!(fit["status"].as_str().unwrap().contains("interrupted"));
    let longer = (fit["iterations"].as_u64().unwrap() + 20).to_string();
    jensen([
        "fit",
        "--resume",
        &out,
        "--max-iters",
        &longer,
        "--checkpoint-every",
        "1000",
        "-q",
    ])
    .expect(4);
    jensen(slow_run(&model, &data, &whole, &longer)).expect(4);
    assert_eq!(fit_of(&desk.path("out")), fit_of(&desk.path("whole")));
    assert_eq!(trace_of(&desk.path("out")), trace_of(&desk.path("whole")));
}

#[test]
fn another_run_does_not_resume() {
    let (model, data) = corpus(SCHOOLS);
    let desk = Desk::new();
    let out = desk.name("out");
    let short = ["--max-iters", "5", "--quiet"];
    jensen(["fit", &model, &data, "--out", &out].iter().chain(&short)).expect(4);
    let resume = ["fit", "--resume", &out, "--quiet"];
    let seed = jensen(resume.iter().chain(&["--seed", "1"])).expect(2);
    assert!(seed.stderr.contains("seed"), "{}", seed.stderr);
    let other = desk.file("data.json", r#"{"J": 2, "y": [1, 2], "sigma": [1, 1]}"#);
    let changed = jensen(["fit", &model, &other, "--resume", &out, "-q"]).expect(2);
    assert!(changed.stderr.contains("data hash"), "{}", changed.stderr);
    // If the same inputs are given again, they belong to the same run.
    jensen([
        "fit",
        &model,
        &data,
        "--resume",
        &out,
        "-q",
        "--max-iters",
        "10",
    ])
    .expect(4);
    assert_eq!(trace_of(&desk.path("out")).len(), 10);
    let forced = jensen(resume.iter().chain(&["--step-size", "0.1", "--force"]));
    assert_ne!(
        forced.code, 0,
        "a forced resume of another method cannot fit"
    );
}

#[test]
fn a_time_limit_ends_a_run_with_results() {
    let (model, data) = corpus(SCHOOLS);
    let desk = Desk::new();
    let out = desk.name("out");
    let mut args = slow_run(&model, &data, &out, "100000");
    args.extend(["--max-seconds", "0.2", "--json"]);
    let fit = jensen(args).expect(4).json();
    assert!(fit["status"].as_str().unwrap().contains("0.2 seconds"));
    assert!(desk.path("out/draws.csv").is_file());
}

#[test]
fn starting_points_are_taken_from_files() {
    let desk = Desk::new();
    let model = desk.file(
        "model.stan",
        "parameters { real<lower=0> s; vector[2] v; } model { s ~ exponential(1); v ~ normal(1, s); }",
    );
    let run = |init: &str| {
        jensen([
            "fit",
            &model,
            "--init",
            init,
            "--json",
            "--method",
            "advi",
            "--max-iters",
            "1",
        ])
    };
    let named = desk.file("named.json", r#"{"s": 1, "v": [0.5, -0.5]}"#);
    let point = desk.file("point.json", "[0, 0.5, -0.5]");
    assert_eq!(
        timeless(run(&named).expect(4).json()),
        timeless(run(&point).expect(4).json())
    );
    let outside = desk.file("outside.json", r#"{"s": -1, "v": [0, 0]}"#);
    let refused = run(&outside).expect(3);
    assert!(refused.stderr.contains('s'), "{}", refused.stderr);
    let short = desk.file("short.json", "[0, 0.5]");
    let refused = run(&short).expect(3);
    assert!(refused.stderr.contains('3'), "{}", refused.stderr);
}

/// Fits with different instruction sets must agree on the posterior, because users may work on several machines. The
/// run states its instruction set, and it cannot be resumed with another one.
#[test]
fn instruction_sets_agree_and_are_not_mixed() {
    let (model, data) = corpus(SCHOOLS);
    let desk = Desk::new();
    let elbo = |level: &str| {
        let fit = jensen(["fit", &model, &data, "--simd", level, "--json"]);
        fit.expect(0).json()["elbo"].as_f64().expect("a bound")
    };
    let levels: Vec<&str> = Simd::available().into_iter().map(Simd::name).collect();
    for level in &levels {
        let off = elbo(level) - elbo("scalar");
        assert!(off.abs() < 1e-3, "{level} is {off} nats off");
    }
    let out = desk.name("out");
    let mut args = slow_run(&model, &data, &out, "20");
    args.extend(["--simd", "scalar"]);
    jensen(args).expect(4);
    let resume = ["fit", "--resume", &out, "-q", "--max-iters", "40"];
    if let Some(other) = levels.iter().find(|level| **level != "scalar") {
        let refused = jensen(resume.iter().chain(&["--simd", other])).expect(2);
        assert!(refused.stderr.contains("SIMD"), "{}", refused.stderr);
    }
    jensen(resume).expect(4);
    assert_eq!(trace_of(&desk.path("out")).len(), 40);
}

/// The initial values for CmdStan are within the bulk of the posterior. A fit can also start from them.
#[test]
fn a_fit_hands_initial_values_on() {
    let desk = Desk::new();
    let model = desk.file(
        "model.stan",
        "parameters { real<lower=0> s; matrix[2, 3] m; simplex[3] p; tuple(real, vector[2]) t; }
         model {
           s ~ gamma(50, 10);
           for (i in 1:2) for (j in 1:3) m[i, j] ~ normal(10 * i + j, 0.1);
           p ~ dirichlet([5, 5, 5]');
           t.1 ~ normal(-7, 0.1);
           t.2 ~ normal(3, 0.1);
         }",
    );
    let inits = desk.name("start.json");
    jensen(["fit", &model, "--inits-out", &inits, "-q"]).expect(0);
    let mut seen = Vec::new();
    for chain in 1..=4 {
        let file = desk.name(&format!("start_{chain}.json"));
        let values = read_json(Path::new(&file));
        for (i, row) in values["m"].as_array().unwrap().iter().enumerate() {
            for (j, x) in row.as_array().unwrap().iter().enumerate() {
                let expected = (10 * (i + 1) + j + 1) as f64;
                assert!((x.as_f64().unwrap() - expected).abs() < 0.6, "{values}");
            }
        }
        assert!(
            (values["t"]["1"].as_f64().unwrap() + 7.0).abs() < 0.6,
            "{values}"
        );
        seen.push(values["s"].as_f64().unwrap());
        let again = jensen([
            "fit",
            &model,
            "--init",
            &file,
            "--method",
            "advi",
            "--max-iters",
            "1",
            "-q",
        ]);
        assert_eq!(again.code, 4, "{}", again.stderr);
    }
    seen.dedup();
    assert_eq!(seen.len(), 4, "four draws");
}

/// The standard deviation of nine effects depends on a scale. Only the prior of this scale contains information about
/// it. No Gaussian fits the program as it is written.
#[test]
fn parameters_of_trustvi_are_flags() {
    let desk = Desk::new();
    let (model, data) = corpus("kidscore_momhs");
    let run = desk.name("run");
    let args = [
        "fit",
        &model,
        &data,
        "--method",
        "trust",
        "--quiet",
        "--out",
        &run,
        "--trust-eta",
        "0.1",
        "--trust-delta0",
        "1.5",
        "--max-iters",
        "3",
    ];
    jensen(args).expect(4);
    let stored = read_json(&desk.path("run/run.json"));
    assert!(stored.to_string().contains("\"eta\":0.1"), "{stored}");
    let page = fs::read_to_string(desk.path("run/report.html")).unwrap();
    assert!(page.contains("trust-delta0"), "settings are listed");
    // A resumed run keeps the values of the flags. A different value would make it a different run.
    let resume = ["fit", "--resume", &run, "--quiet", "--max-iters", "1000"];
    let other = jensen(resume.iter().chain(&["--trust-eta", "0.2"])).expect(2);
    assert!(other.stderr.contains("eta"), "{}", other.stderr);
    jensen(resume).expect(0);
    // Each start has its own trust region, so only the iterations after the starts are checked.
    let trace = trace_of(&desk.path("run"));
    let first = trace.iter().find(|record| record["accepted"].is_number());
    assert_eq!(first.unwrap()["radius"], 1.5);
    let stored = read_json(&desk.path("run/run.json"));
    assert!(stored.to_string().contains("\"eta\":0.1"), "{stored}");

    let refused = |flags: &[&str], said: &str| {
        let base = ["fit", &model, &data];
        let refused = jensen(base.iter().chain(flags)).expect(2);
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
    };
    refused(
        &["--trust-eta", "0.6"],
        "eta is 0.6, but must be between 0 and 0.5",
    );
    refused(
        &["--trust-nu1", "0.7"],
        "nu1 is 0.7, but must be between 0 and 0.7",
    );
    refused(
        &["--trust-eta", "0.1", "--method", "advi"],
        "--method trust",
    );
}
