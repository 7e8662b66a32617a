//! Tests `jensen vae` from the images to the pictures that it writes, and all inputs that it rejects.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{Desk, jensen, read_json, start, trace_of};
use serde_json::Value;

/// Pseudorandom numbers.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % n
    }
}

fn idx(extents: &[u32], levels: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, 8, extents.len() as u8];
    file.extend(extents.iter().flat_map(|x| x.to_be_bytes()));
    file.extend(levels);
    file
}

/// Returns images of 6 × 6 pixels, each with a bright horizontal or vertical bar at one of six positions.
fn bars(count: u32, seed: u64) -> Vec<u8> {
    let mut dice = Dice(seed);
    let mut levels = Vec::new();
    for _ in 0..count {
        let (position, lying) = (dice.below(6), dice.below(2) == 0);
        for y in 0..6 {
            for x in 0..6 {
                let on = if lying { y == position } else { x == position };
                levels.push(if on {
                    230 + dice.below(26) as u8
                } else {
                    dice.below(20) as u8
                });
            }
        }
    }
    idx(&[count, 6, 6], &levels)
}

pub fn images(desk: &Desk) -> (String, String) {
    let write = |name: &str, count, seed| {
        fs::write(desk.path(name), bars(count, seed)).unwrap();
        desk.name(name)
    };
    (write("train-idx3", 300, 1), write("test-idx3", 80, 2))
}

const SMALL: [&str; 12] = [
    "--latent",
    "2",
    "--hidden",
    "16",
    "--batch",
    "20",
    "--optimizer",
    "adam",
    "--step-size",
    "0.01",
    "--initial-sd",
    "0.2",
];

fn fit<'a>(data: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    ["vae", "fit", data]
        .into_iter()
        .chain(SMALL)
        .chain(more.iter().copied())
        .collect()
}

fn timeless(folder: &Path) -> Value {
    let mut fit = read_json(&folder.join("fit.json"));
    for name in ["seconds", "seconds_per_epoch", "samples_per_second"] {
        fit.as_object_mut().unwrap().remove(name).unwrap();
    }
    fit
}

pub fn weights(folder: &Path) -> Vec<u8> {
    fs::read(folder.join("approximation.safetensors")).unwrap()
}

#[test]
fn bars_are_learned_and_used() {
    let desk = Desk::new();
    let (train, test) = images(&desk);
    let run = desk.name("run");
    let made = jensen(fit(
        &train,
        &[
            "--validation",
            &test,
            "--epochs",
            "200",
            "--out",
            &run,
            "--json",
        ],
    ))
    .expect(0)
    .json();
    assert_eq!(made, read_json(&desk.path("run/fit.json")));
    let number = |name: &str| made[name].as_f64().unwrap();
    // The grey pixels are the means of binary pixels. If the pixels were independent with these means, the log density
    // would be −16 nats.
    assert!(number("bound") > -12.0, "{}", made["bound"]);
    assert!((number("bound") - number("validation_bound")).abs() < 1.5);
    assert!((number("likelihood") - number("divergence") - number("bound")).abs() < 1e-9);
    assert_eq!(
        (made["active_units"].as_u64(), made["trusted"].as_bool()),
        (Some(2), Some(true))
    );
    assert_eq!((number("epochs"), number("samples")), (200.0, 60_000.0));
    assert!(number("seconds_per_epoch") > 0.0);
    assert_eq!(made["history"].as_array().unwrap().len(), 200);
    for name in [
        "report.html",
        "architecture.json",
        "approximation.safetensors",
        "checkpoint.safetensors",
        "samples.png",
        "reconstructions.png",
        "manifold.png",
    ] {
        assert!(desk.path("run").join(name).is_file(), "{name}");
    }
    let page = fs::read_to_string(desk.path("run/report.html")).unwrap();
    assert!(page.contains("data:image/png") && page.contains("records seen"));
    assert_eq!(
        read_json(&desk.path("run/architecture.json"))["architecture"]["latent"],
        2
    );

    // The codes have means that are far from zero and small standard deviations, both in CSV and in NPY files.
    let codes = jensen(["vae", "encode", &run, &test]).expect(0).stdout;
    let mut lines = codes.lines();
    assert_eq!(lines.next(), Some("mean1,mean2,sd1,sd2"));
    let table: Vec<f32> = lines
        .flat_map(|line| line.split(',').map(|x| x.parse().unwrap()))
        .collect();
    assert_eq!(table.len(), 80 * 4);
    let npy = desk.name("codes.npy");
    jensen(["vae", "encode", &run, &test, "--out", &npy]).expect(0);
    let bytes = fs::read(&npy).unwrap();
    let tail: Vec<f32> = bytes[bytes.len() - 4 * table.len()..]
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
        .collect();
    assert_eq!(tail, table);

    // The reconstructions must be closer to the records than the mean of all records is.
    let rebuilt = jensen(["vae", "reconstruct", &run, &test]).expect(0).stdout;
    let rebuilt: Vec<f64> = rebuilt
        .lines()
        .skip(1)
        .flat_map(|line| line.split(',').map(|x| x.parse().unwrap()))
        .collect();
    let truth: Vec<f64> = bars(80, 2)[16..]
        .iter()
        .map(|b| f64::from(*b) / 255.0)
        .collect();
    let error = |guess: &dyn Fn(usize) -> f64| -> f64 {
        truth
            .iter()
            .enumerate()
            .map(|(i, x)| (x - guess(i)).powi(2))
            .sum()
    };
    assert!(error(&|i| rebuilt[i]) < 0.5 * error(&|_| 1.0 / 6.0));
    let picture = desk.name("pairs.png");
    jensen(["vae", "reconstruct", &run, &test, "--out", &picture]).expect(0);
    assert!(fs::read(&picture).unwrap().starts_with(b"\x89PNG"));

    draws_are_beginnings_of_each_other(&desk, &run);

    // The importance-weighted bound is above the ELBO.
    let score = jensen([
        "vae",
        "evaluate",
        &run,
        &test,
        "--samples",
        "20",
        "--no-marginal",
        "--json",
    ])
    .expect(0)
    .json();
    let value = |pointer: &str| score.pointer(pointer).and_then(Value::as_f64).unwrap();
    assert!(value("/bound") < value("/importance/bound"));
    assert!(score["marginal"].is_null());
    assert_eq!(score["active_units"], 2);
}

/// Checks that the number of draws is the requested number, that the same seed gives the same draws, and that a shorter
/// list of draws is the beginning of a longer list.
fn draws_are_beginnings_of_each_other(desk: &Desk, run: &str) {
    let draws = |count: &str| {
        jensen(["vae", "sample", run, "--count", count])
            .expect(0)
            .stdout
    };
    let (few, many) = (draws("3"), draws("9"));
    assert_eq!((few.lines().count(), many.lines().count()), (4, 10));
    assert!(many.starts_with(&few));
    let observed = jensen(["vae", "sample", run, "--observations", "--count", "5"])
        .expect(0)
        .stdout;
    let mut values = observed.lines().skip(1).flat_map(|line| line.split(','));
    assert!(values.all(|x| x == "0" || x == "1"));
    let plane = desk.name("plane.png");
    jensen(["vae", "sample", run, "--manifold", "7", "--out", &plane]).expect(0);
}

#[test]
fn estimates_of_the_marginal_likelihood_agree_on_digits() {
    let desk = Desk::new();
    let digits =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/digits/digits-idx3-ubyte.gz");
    let digits = digits.display().to_string();
    let run = desk.name("run");
    let networks = [
        "--latent",
        "2",
        "--hidden",
        "50",
        "--epochs",
        "60",
        "--validation",
        "0.1",
    ];
    let steps = [
        "--optimizer",
        "adam",
        "--step-size",
        "0.003",
        "--initial-sd",
        "0.1",
    ];
    let fit = ["vae", "fit", &digits, "--out", &run, "--quiet"];
    jensen(fit.into_iter().chain(networks).chain(steps)).expect(0);
    let score = jensen([
        "vae",
        "evaluate",
        &run,
        &digits,
        "--records",
        "50",
        "--json",
    ])
    .expect(0)
    .json();
    let value = |pointer: &str| score.pointer(pointer).and_then(Value::as_f64).unwrap();
    let weighted = value("/importance/bound");
    let marginal = value("/marginal/log_likelihood");
    assert!((weighted - marginal).abs() < 0.3, "{weighted} {marginal}");
    assert!(value("/marginal/monte_carlo_se") > 0.0);
    assert_eq!(score["marginal"]["records"], 50);
    let said = jensen(["vae", "evaluate", &run, &digits, "--records", "5"])
        .expect(0)
        .stdout;
    assert!(
        said.contains("marginal likelihood") && said.contains("of 2"),
        "{said}"
    );
}

#[test]
fn a_stopped_run_goes_on_to_the_same_bits_on_any_number_of_threads() {
    let desk = Desk::new();
    let (train, test) = images(&desk);
    let (whole, other, parts) = (desk.name("whole"), desk.name("other"), desk.name("parts"));
    let more = [
        "--validation",
        &test,
        "--temper",
        "anneal=4:3",
        "--warm-up",
        "3",
        "--quiet",
    ];
    let with = |out: &str, epochs: &str, threads: &str| {
        let tail = ["--out", out, "--epochs", epochs, "--threads", threads];
        jensen(fit(&train, &more).into_iter().chain(tail)).code
    };
    assert_eq!(with(&whole, "6", "1"), 0);
    assert_eq!(with(&other, "6", "2"), 0);
    // The temperature is still above 1, so the fit is not trusted.
    assert_eq!(with(&parts, "2", "2"), 4);
    assert!(
        timeless(&desk.path("parts"))["warnings"][0]
            .as_str()
            .unwrap()
            .contains("temperature")
    );
    let prefix = trace_of(&desk.path("parts"));
    jensen([
        "vae",
        "fit",
        "--resume",
        &parts,
        "--epochs",
        "6",
        "--threads",
        "1",
        "--quiet",
    ])
    .expect(0);
    let trace = trace_of(&desk.path("whole"));
    assert_eq!((prefix.len(), trace.len()), (2, 6));
    assert_eq!(trace[..2], prefix);
    for folder in ["other", "parts"] {
        assert_eq!(
            weights(&desk.path(folder)),
            weights(&desk.path("whole")),
            "{folder}"
        );
        assert_eq!(
            timeless(&desk.path(folder)),
            timeless(&desk.path("whole")),
            "{folder}"
        );
        assert_eq!(trace_of(&desk.path(folder)), trace);
    }
    // The run is complete, so nothing changes.
    jensen(["vae", "fit", "--resume", &parts, "--quiet"]).expect(0);
    assert_eq!(weights(&desk.path("parts")), weights(&desk.path("whole")));
}

#[test]
fn a_killed_run_goes_on() {
    let desk = Desk::new();
    let (train, _) = images(&desk);
    let (whole, killed) = (desk.name("whole"), desk.name("killed"));
    let more = ["--epochs", "400", "--quiet", "--checkpoint-every", "0"];
    jensen(fit(&train, &more).into_iter().chain(["--out", &whole])).expect(0);
    let mut child = start(fit(&train, &more).into_iter().chain(["--out", &killed]));
    let begun = Instant::now();
    while !desk.path("killed/checkpoint.safetensors").exists()
        && begun.elapsed() < Duration::from_secs(60)
    {
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    jensen(["vae", "fit", "--resume", &killed, "--quiet"]).expect(0);
    assert_eq!(weights(&desk.path("killed")), weights(&desk.path("whole")));
    assert_eq!(
        trace_of(&desk.path("killed")),
        trace_of(&desk.path("whole"))
    );
}

/// Returns two hundred rows of four columns. A single hidden number explains each row.
pub fn one_factor() -> String {
    let mut dice = Dice(5);
    let mut csv = "a,b,c,d\n".to_owned();
    for _ in 0..200 {
        let z = dice.below(1000) as f64 / 100.0 - 5.0;
        let noise: Vec<f64> = (0..4).map(|_| dice.below(100) as f64 / 200.0).collect();
        csv += &format!(
            "{},{},{},{}\n",
            z + noise[0],
            3.0 - z + noise[1],
            noise[2],
            2.0 * z + noise[3]
        );
    }
    csv
}

/// Checks the report of a fit of 200 rows in which the weights have a posterior. The fit is evaluated on its own rows,
/// both with the same draws and with new draws.
fn full_bayes_adds_up(fit: &Value, run: &str, table: &str) {
    // The evidence contains the cost of the posterior of the weights, which is counted once for all records (equation
    // 24). All numbers are computed with the same weights.
    let number = |name: &str| fit[name].as_f64().unwrap();
    let of_weights = number("weight_divergence");
    assert!(of_weights > 100.0, "{of_weights}");
    let parts = number("likelihood") - number("divergence") - of_weights / 200.0;
    assert!((number("bound") - parts).abs() < 1e-9);
    assert!((number("elbo") - 200.0 * number("bound")).abs() < 1e-6);
    assert!((number("elbo_se") - 200.0 * number("bound_se")).abs() < 1e-6);
    let new = ["vae", "evaluate", run, table, "--seed", "9", "--json"];
    let new = jensen(new).expect(0).json();
    let (bound, se) = (
        new["bound"].as_f64().unwrap(),
        new["bound_se"].as_f64().unwrap(),
    );
    let expected = number("bound") + of_weights / 200.0;
    assert!(
        (bound - expected).abs() < 4.0 * se.hypot(number("bound_se")),
        "{bound} ± {se} for {expected}"
    );
}

#[test]
fn tables_with_every_decoder_and_option() {
    let desk = Desk::new();
    let table = desk.file("table.csv", &one_factor());
    let run = desk.name("run");
    let small = [
        "--latent",
        "1",
        "--hidden",
        "8,4",
        "--activation",
        "softplus",
        "--epochs",
        "200",
        "--batch",
        "20",
        "--initial-sd",
        "0.5",
    ];
    let args = [
        "vae",
        "fit",
        &table,
        "--decoder",
        "gaussian",
        "--optimizer",
        "adam",
        "--step-size",
        "0.02",
    ];
    let early = [
        "--validation",
        "0.25",
        "--patience",
        "60",
        "--samples",
        "3",
        "--estimator",
        "a",
        "--json",
        "--out",
        &run,
    ];
    let made = jensen(args.into_iter().chain(small).chain(early))
        .expect(0)
        .json();
    assert_eq!(
        (
            made["records"].as_u64(),
            made["validation_records"].as_u64()
        ),
        (Some(150), Some(50))
    );
    assert_eq!(
        made["architecture"]["likelihood"]["gaussian"]["bounded"],
        false
    );
    assert_eq!(made["architecture"]["decoder"], serde_json::json!([4, 8]));
    assert!(!desk.path("run/samples.png").exists());
    let refused = jensen(["vae", "sample", &run, "--out", &desk.name("x.png")]).expect(2);
    assert!(
        refused.stderr.contains("no image size"),
        "{}",
        refused.stderr
    );
    // The data are not on the scale of a standard normal distribution, and a plain fit must find their scale.
    assert!(made["bound"].as_f64().unwrap() > -11.0, "{}", made["bound"]);

    let bayes = ["--full-vb", "--warm-up", "50", "--quiet", "--out", &run];
    // If networks of this size have a posterior of the weights, 200 passes are too few, and a linear factor gives a
    // better result.
    let made = jensen(args.into_iter().chain(small).chain(bayes));
    made.expect(4);
    let fit = read_json(&desk.path("run/fit.json"));
    full_bayes_adds_up(&fit, &run, &table);
    // Linear networks are equivalent to this factor. The verdict does not include the cost of the posterior of their
    // weights.
    let linear = ["--latent", "1", "--hidden", "none", "--batch", "20"];
    let args_of = args
        .into_iter()
        .chain(linear)
        .chain(["--epochs", "2000", "--full-vb", "--json"]);
    let made = jensen(args_of).expect(0).json();
    assert!(made["bound"].as_f64().unwrap() < made["baseline"]["least"].as_f64().unwrap());
    assert!(
        made["baseline"]["fit"].as_f64().unwrap() > made["baseline"]["score"].as_f64().unwrap()
    );
    let file = fs::read(desk.path("run/approximation.safetensors")).unwrap();
    assert!(String::from_utf8_lossy(&file).contains("posterior_log_sd.decoder"));

    let rows: String = (0..60)
        .map(|i| if i % 3 == 0 { "1,0,0,1\n" } else { "0,1,1,0\n" })
        .collect();
    let groups = desk.file("groups.csv", &format!("a,b,c,d\n{rows}"));
    let args = [
        "vae",
        "fit",
        &groups,
        "--decoder",
        "categorical=2",
        "--json",
        "--optimizer",
        "sgd",
        "--step-size",
        "0.01",
    ];
    let made = jensen(args.into_iter().chain(small)).json();
    assert!(made["bound"].as_f64().unwrap() > -1.4, "{}", made["bound"]);
}

/// Checks the exit code, and checks that the message contains all of the texts `wanted`.
#[track_caller]
pub fn refused(args: &[&str], code: i32, wanted: &[&str]) {
    let finished = jensen(args).expect(code);
    assert_eq!(finished.stdout, "");
    for part in wanted {
        assert!(
            finished.stderr.contains(part),
            "{part}: {}",
            finished.stderr
        );
    }
    assert_eq!(
        finished.stderr.matches("error: ").count(),
        1,
        "{}",
        finished.stderr
    );
}

#[test]
fn wake_sleep_trains_both_networks_and_goes_on_to_the_same_bits() {
    let desk = Desk::new();
    let (train, test) = images(&desk);
    let (whole, parts) = (desk.name("whole"), desk.name("parts"));
    let more = ["--method", "wake-sleep", "--validation", &test, "--quiet"];
    let with = |out: &str, epochs: &str| {
        let tail = ["--out", out, "--epochs", epochs];
        jensen(fit(&train, &more).into_iter().chain(tail))
    };
    with(&whole, "40").expect(0);
    with(&parts, "10");
    jensen([
        "vae", "fit", "--resume", &parts, "--epochs", "40", "--quiet",
    ])
    .expect(0);
    assert_eq!(weights(&desk.path("parts")), weights(&desk.path("whole")));
    let fitted = timeless(&desk.path("whole"));
    assert!(
        fitted["validation_bound"].as_f64().unwrap()
            > fitted["baseline"]["score"].as_f64().unwrap()
    );
    refused(
        &fit(&train, &["--method", "wake-sleep", "--warm-up", "3"]),
        2,
        &["--warm-up", "--method aevb"],
    );
}

#[test]
fn a_fit_keeps_the_family_of_its_posterior() {
    let desk = Desk::new();
    let (train, _) = images(&desk);
    let (run, usual) = (desk.name("run"), desk.name("usual"));
    let with = |out: &str, more: &[&str]| {
        let tail = ["--epochs", "60", "--quiet", "--out", out];
        let args = fit(&train, &tail);
        jensen(args.into_iter().chain(more.iter().copied())).expect(0);
    };
    with(&run, &["--posterior", "laplace"]);
    with(&usual, &[]);
    assert!(weights(&desk.path("run")) != weights(&desk.path("usual")));
    let made = read_json(&desk.path("run/fit.json"));
    assert_eq!(made["architecture"]["posterior"], "laplace");
    assert!(read_json(&desk.path("usual/fit.json"))["architecture"]["posterior"].is_null());
    let scored = jensen(["vae", "evaluate", &run, &train, "--samples", "20", "--json"]);
    let scored = scored.expect(0).json();
    // A bound of the stored networks with another family would not have the negentropy of the Laplace distribution.
    let number = |value: &Value| value.as_f64().unwrap();
    let divergences = [&made["divergence"], &scored["divergence"]].map(number);
    assert!(
        (divergences[0] - divergences[1]).abs() < 1e-3,
        "{divergences:?}"
    );
    let again = [
        "vae",
        "fit",
        "--resume",
        &run,
        "--quiet",
        "--force",
        "--posterior",
    ];
    let again = |name| [&again[..], &[name]].concat();
    refused(&again("logistic"), 2, &["another architecture", "--out"]);
    refused(
        &fit(&train, &["--posterior", "normal"]),
        2,
        &["laplace", "student-t=DEGREES"],
    );
}

#[test]
fn bad_data_are_refused_by_location() {
    let desk = Desk::new();
    let (train, _) = images(&desk);
    let bytes = fs::read(&train).unwrap();
    fs::write(desk.path("cut-idx3"), &bytes[..bytes.len() - 7]).unwrap();
    refused(&["vae", "fit", &desk.name("cut-idx3")], 3, &["cut-idx3"]);
    refused(&["vae", "fit", &desk.name("nothing")], 3, &["nothing"]);

    let high = desk.file("high.csv", "a,b\n0.5,1\n0.2,1.5\n");
    refused(
        &["vae", "fit", &high],
        3,
        &["high.csv", "row 2", "value 2", "1.5", "--decoder gaussian"],
    );
    let gap = desk.file("gap.csv", "a,b\n0.5,\n0.2,nan\n");
    refused(
        &["vae", "fit", &gap],
        3,
        &["gap.csv", "column 2 has no values"],
    );
    let empty = desk.file("empty.csv", "a,b\n0.5,1\nNA,NA\n");
    refused(
        &["vae", "fit", &empty],
        3,
        &["empty.csv", "row 2", "every value is missing"],
    );
    let sums = desk.file("sums.csv", "a,b\n0.5,0.5\n0.2,0.5\n");
    refused(
        &["vae", "fit", &sums, "--decoder", "categorical=2"],
        3,
        &["sums.csv", "row 2", "sum to 1"],
    );

    let pictures = desk.path("pictures");
    fs::create_dir(&pictures).unwrap();
    fs::write(pictures.join("a.pgm"), b"P5 2 1 255\n\x07\xff").unwrap();
    fs::write(pictures.join("b.pgm"), b"P5 1 2 255\n\x07\xff").unwrap();
    refused(
        &["vae", "fit", &desk.name("pictures")],
        3,
        &["b.pgm", "1x2", "2x1", "same size"],
    );

    fs::write(desk.path("small-idx3"), idx(&[2, 2, 2], &[9; 8])).unwrap();
    let small = desk.name("small-idx3");
    refused(
        &["vae", "fit", &train, "--validation", &small],
        3,
        &["small-idx3", "have 4 numbers", "36"],
    );
    let run = desk.name("run");
    // After a single epoch, the fit is worse than independent pixels.
    jensen(fit(&train, &["--epochs", "1", "--quiet", "--out", &run])).expect(4);
    for command in ["encode", "reconstruct", "evaluate"] {
        refused(
            &["vae", command, &run, &small],
            3,
            &["small-idx3", "have 4 numbers", "36"],
        );
    }
}

#[test]
fn wrong_usage_is_said() {
    let desk = Desk::new();
    let (train, _) = images(&desk);
    refused(
        &["vae", "fit", &train, "--patience", "3"],
        2,
        &["--validation"],
    );
    refused(
        &["vae", "fit", &train, "--validation", "1.5"],
        2,
        &["between 0 and 1"],
    );
    refused(
        &["vae", "fit", &train, "--image", "5x5"],
        2,
        &["25 pixels", "36 numbers"],
    );
    refused(
        &["vae", "fit", &train, "--decoder", "categorical=5"],
        2,
        &["36", "5 categories"],
    );
    refused(
        &["vae", "fit", &train, "--checkpoint-every", "3"],
        2,
        &["--out"],
    );
    refused(
        &["vae", "fit", &train, "--memory-limit", "1MiB"],
        3,
        &["--memory-limit"],
    );
    for wrong in [
        ["--hidden", "0"],
        ["--decoder", "gauss"],
        ["--temper", "local"],
        ["--optimizer", "lbfgs"],
    ] {
        let finished = jensen(["vae", "fit", &train].into_iter().chain(wrong)).expect(2);
        assert!(finished.stderr.contains(wrong[0]), "{}", finished.stderr);
    }
}

#[test]
fn other_runs_and_other_weights_are_not_resumed() {
    let desk = Desk::new();
    let (train, test) = images(&desk);
    let run = desk.name("run");
    jensen(fit(&train, &["--epochs", "2", "--quiet", "--out", &run])).expect(4);
    let kept = weights(&desk.path("run"));
    let again = |more: &[&str], wanted: &[&str]| {
        let args = [&["vae", "fit", "--resume", &run, "--quiet"], more].concat();
        refused(&args, 2, wanted);
    };
    again(&["--latent", "3"], &["latent", "2", "3"]);
    again(
        &["--latent", "3", "--force"],
        &["another architecture", "--out"],
    );
    again(&["--optimizer", "sgd", "--force"], &["another optimiser"]);
    again(&["--batch", "10"], &["batch"]);
    again(&["--seed", "7"], &["seed"]);
    let other = [&["vae", "fit", &test, "--resume", &run, "--quiet"][..]].concat();
    refused(&other, 2, &["data"]);
    assert_eq!(weights(&desk.path("run")), kept);
    // The file contains the weights of another fit.
    let second = desk.name("second");
    jensen([
        "vae", "fit", &train, "--hidden", "5", "--epochs", "1", "--quiet", "--out", &second,
    ])
    .expect(4);
    fs::copy(
        desk.path("second/approximation.safetensors"),
        desk.path("run/approximation.safetensors"),
    )
    .unwrap();
    refused(
        &["vae", "sample", &run],
        3,
        &["is not the one that this fit stored"],
    );
    let mut damaged = kept.clone();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(desk.path("run/approximation.safetensors"), damaged).unwrap();
    refused(
        &["vae", "sample", &run],
        3,
        &[
            "approximation.safetensors",
            "is not the one that this fit stored",
        ],
    );
}

#[test]
fn divergence_keeps_the_last_good_weights() {
    let desk = Desk::new();
    let table = desk.file(
        "far.csv",
        &format!("a,b\n{}", "1e6,-3e6\n2e6,5e5\n".repeat(20)),
    );
    let run = desk.name("run");
    let args = [
        "vae",
        "fit",
        &table,
        "--decoder",
        "gaussian",
        "--optimizer",
        "sgd",
        "--step-size",
        "10",
    ];
    let rest = [
        "--epochs", "5", "--hidden", "4", "--latent", "1", "--json", "--out", &run,
    ];
    let made = jensen(args.into_iter().chain(rest)).expect(4).json();
    assert_eq!(made["trusted"], false);
    let status = made["status"].as_str().unwrap();
    assert!(
        status.contains("diverged") && status.contains("last weights with a finite bound"),
        "{status}"
    );
    assert!(desk.path("run/approximation.safetensors").is_file());
    let codes = jensen(["vae", "encode", &run, &table]).expect(0).stdout;
    assert!(!codes.contains("NaN"), "{codes}");
}
