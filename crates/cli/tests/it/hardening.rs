//! Tests attacks on the command that were successful in the past. The book's page on hardening counts them.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{Desk, corpus, draws_of, fit_of, jensen, read_json, start, trace_of};

/// Returns a program with a standard normal parameter `x`. The given blocks precede and follow its model.
fn program(before: &str, after: &str) -> String {
    format!("{before} parameters {{ real x; }} model {{ x ~ normal(0, 1); }} {after}")
}

fn refused(desk: &Desk, source: &str, flags: &[&str]) -> String {
    let model = desk.file("model.stan", source);
    let args = ["fit", &model].into_iter().chain(flags.iter().copied());
    jensen(args).expect(3).stderr
}

#[test]
fn sizes_that_cannot_be_are_errors_with_a_location() {
    let desk = Desk::new();
    for source in [
        "parameters { cholesky_factor_cov[2, 3] L; } model { L[1, 1] ~ normal(0, 1); }",
        "parameters { real x; } model { target += sum(rep_matrix(x, 2000000000, 2000000000)); }",
        "parameters { real x; } model { vector[2] v = rep_vector(x, 2147483647); }",
    ] {
        let said = refused(&desk, source, &[]);
        assert!(said.contains("model.stan:1:"), "{said}");
    }
}

#[test]
fn a_fit_survives_generated_quantities_that_all_fail() {
    let desk = Desk::new();
    for (i, block) in [
        "generated quantities { real<lower=0> y = -1; }",
        "generated quantities { reject(\"never\"); }",
        "generated quantities { real y = not_a_number(); }",
    ]
    .into_iter()
    .enumerate()
    {
        let model = desk.file("model.stan", &program("", block));
        let out = desk.name(&format!("run{i}"));
        let code = jensen(["fit", &model, "--out", &out]).code;
        assert!(code == 0 || code == 4, "{block}: {code}");
        for name in [
            "fit.json",
            "draws.csv",
            "draws.nc",
            "approximation.safetensors",
        ] {
            assert!(Path::new(&out).join(name).is_file(), "{block}: {name}");
        }
    }
}

fn finished(desk: &Desk) -> String {
    let (model, data) = corpus("eight_schools_noncentred");
    let out = desk.name("run");
    jensen([
        "fit", &model, &data, "--seed", "3", "--draws", "50", "--out", &out,
    ])
    .expect(0);
    out
}

#[test]
fn a_flipped_bit_is_output() {
    let desk = Desk::new();
    let out = finished(&desk);
    let draws = ["draws", &out, "--draws", "5"];
    let whole = jensen(draws).expect(0).stdout;
    for name in [
        "run.json",
        "data.json",
        "model.stan",
        "draws.csv",
        "fit.json",
        "digests.json",
    ] {
        let path = Path::new(&out).join(name);
        let bytes = fs::read(&path).unwrap();
        let mut damaged = bytes.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        fs::write(&path, damaged).unwrap();
        let said = jensen(draws).expect(3).stderr;
        assert!(said.contains(name) && said.contains("SHA-256"), "{said}");
        fs::write(&path, bytes).unwrap();
    }
    assert_eq!(jensen(draws).expect(0).stdout, whole);
    fs::remove_file(Path::new(&out).join("digests.json")).unwrap();
    let said = jensen(draws).expect(3).stderr;
    assert!(
        said.contains("digests.json") && said.contains("is missing"),
        "{said}"
    );
}

/// An archive of another fit of the same program and data is not damaged. It must nevertheless not affect the verdict
/// on this fit.
#[test]
fn an_archive_of_another_fit_is_refused() {
    let desk = Desk::new();
    let (out, other) = (finished(&desk), desk.name("other"));
    let (model, data) = corpus("eight_schools_noncentred");
    let fit = ["fit", &model, &data, "--seed", "9", "--draws", "20"];
    jensen([&fit[..], &["--out", &other]].concat()).expect(0);
    let draws = ["draws", &out, "--draws", "5"];
    jensen(draws).expect(0);
    let name = "approximation.safetensors";
    let [here, there] = [&out, &other].map(|folder| Path::new(folder).join(name));
    let own = fs::read(&here).unwrap();
    fs::copy(there, &here).unwrap();
    let said = jensen(draws).expect(3).stderr;
    assert!(
        said.contains(name) && said.contains("not the one that this fit stored"),
        "{said}"
    );
    fs::write(&here, own).unwrap();
    jensen(draws).expect(0);
}

/// With `--json`, a command always prints an object, even if it fails.
#[test]
fn a_fit_that_cannot_start_prints_an_object() {
    let desk = Desk::new();
    let model = desk.file(
        "model.stan",
        "parameters { real a; } model { target += negative_infinity(); a ~ normal(0, 1); }",
    );
    for (arguments, code) in [
        (vec!["fit", &model, "--json"], 4),
        (vec!["fit", "nowhere.stan", "--json"], 3),
    ] {
        let ended = jensen(arguments).expect(code);
        let object: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
        assert_eq!(object["trusted"], false);
        assert_eq!(object["exit_code"], code);
        let error = object["error"].as_str().expect("a text");
        assert!(ended.stderr.contains(error.lines().next().unwrap()));
    }
}

#[cfg(unix)]
#[test]
fn pipes_and_small_stacks_end_in_a_word() {
    let desk = Desk::new();
    let pipe = |path: &Path| {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.is_ok_and(|status| status.success()));
    };
    // No process writes to the pipes.
    let folder = Path::new(desk.name("stored").as_str()).to_owned();
    fs::create_dir(&folder).unwrap();
    pipe(&folder.join("part.stan"));
    pipe(&folder.join("jensen.json"));
    let model = desk.file("model.stan", "#include part.stan\nmodel {}\n");
    let folder = folder.to_str().unwrap();
    let said = jensen(["check", &model, "--include", folder])
        .expect(3)
        .stderr;
    assert!(said.contains("a pipe or a device"), "{said}");
    let said = jensen(["draws", folder, "--draws", "10"]).expect(3).stderr;
    assert!(said.contains("a pipe or a device"), "{said}");
    let (code, said) = limited("ulimit -s 64", &["fit", "--help"]);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_compressed_file_keeps_to_the_limit_of_memory() {
    let digits =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/digits/digits-idx3-ubyte.gz");
    let digits = digits.display().to_string();
    let fit = ["vae", "fit", &digits, "--memory-limit", "64KiB"];
    let said = jensen(fit).expect(3).stderr;
    assert!(said.contains("more than 64 KiB of data"), "{said}");
    let desk = Desk::new();
    let model = desk.file("model.stan", &program("data { int N; }", ""));
    let said = jensen(["fit", &model, "/dev/zero", "--memory-limit", "1MiB"])
        .expect(3)
        .stderr;
    assert!(said.contains("more than 1 MiB"), "{said}");
}

#[test]
fn a_latent_result_whose_table_was_changed_is_refused() {
    let desk = Desk::new();
    let table = desk.file("table.csv", "x,y\n0,1\n1,2.5\n2,2\n3,4.5\n4,4\n5,6.5\n");
    let out = desk.name("run");
    let prior = "intercept() + fixed(x)";
    jensen([
        "latent",
        "fit",
        "--likelihood",
        "gaussian(variance=1)",
        "--prior",
        prior,
        "--data",
        &table,
        "--out",
        &out,
    ])
    .expect(0);
    let predict = ["latent", "predict", &out, "--at", &table];
    jensen(predict).expect(0);
    let kept = fs::read_dir(&out)
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let same = |path: &Path| fs::read(path).unwrap() == fs::read(&table).unwrap();
    let copy = kept
        .into_iter()
        .find(|path| same(path))
        .expect("a copy of the table");
    let text = fs::read_to_string(&copy).unwrap().replace("2.5", "2.4");
    fs::write(&copy, text).unwrap();
    let said = jensen(predict).expect(3).stderr;
    assert!(said.contains("SHA-256"), "{said}");
}

#[test]
fn loops_without_an_end_keep_to_the_time() {
    let desk = Desk::new();
    for source in [
        program("transformed data { int i = 0; while (1) { i = 1 - i; } }", ""),
        program("transformed data { while (1) print(\"hello\"); }", ""),
        program("", "generated quantities { real y = 0; while (1) { y += 1; } }"),
        program("", "generated quantities { while (1) print(\"x\"); }"),
        "parameters { real x; } model { int i = 0; while (i < 2000000000) { i += 1; } x ~ normal(0, 1); }".to_owned(),
    ] {
        let begun = Instant::now();
        let said = refused(&desk, &source, &["--max-seconds", "1", "--memory-limit", "1GiB"]);
        // For compiled code there is also a limit on the number of steps, which a fast machine reaches before the time
        // limit.
        let steps = source.contains("i < 2000000000") && said.contains("stopped after 10000000 steps");
        assert!(steps || said.contains("--max-seconds 1"), "{said}");
        // The allowed time consists of one second for the limit, one second for ending, and some time in case the
        // machine is busy.
        assert!(begun.elapsed() < Duration::from_secs(6), "{source}: {:?}", begun.elapsed());
    }
}

/// A single evaluation of sixty products takes half a minute, and a single evaluation of an inverse in many lanes takes
/// seconds. The operating system ends the process if it uses more processor time than is necessary for building the
/// model, for reaching the limit of one second, and for ending within another second.
#[cfg(unix)]
#[test]
fn an_evaluation_that_takes_long_is_not_waited_for() {
    let desk = Desk::new();
    let products = "matrix[200, 200] m = a * to_matrix(linspaced_vector(40000, -1, 1), 200, 200);
        for (i in 1:60) m = 1e-2 * m * m;
        target += 1e-300 * sum(m);";
    let inverse = "matrix[600, 600] m = add_diag(rep_matrix(0.3 + 1e-9 * a, 600, 600), 1.5);
        target += 1e-12 * inverse(m)[1, 1];";
    for long in [products, inverse] {
        let source = format!("parameters {{ real a; }} model {{ {long} a ~ normal(0, 1); }}");
        let model = desk.file("model.stan", &source);
        let args = ["fit", &model, "--max-seconds", "1", "--threads", "1"];
        let (code, said) = limited("ulimit -t 4", &args);
        assert!(matches!(code, Some(2 | 4)), "{long}: {code:?} {said}");
    }
}

#[test]
fn draws_that_loop_are_left_out_when_the_time_is_up() {
    let desk = Desk::new();
    let block = "generated quantities { real y = 0; if (x > 0.5) { while (1) { y += 1; } } }";
    let model = desk.file("model.stan", &program("", block));
    let out = desk.name("run");
    jensen(["fit", &model, "--max-seconds", "1", "--out", &out]).expect(4);
    let fit = read_json(&desk.path("run/fit.json"));
    let warnings = fit["warnings"].to_string();
    assert!(warnings.contains("because the time limit"), "{warnings}");
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_draws_that_loop_with_their_results() {
    let desk = Desk::new();
    let block = "generated quantities { real y = 0; if (x > 0.5) { while (1) { y += 1; } } }";
    let model = desk.file("model.stan", &program("", block));
    let out = desk.name("run");
    let mut child = start(["fit", &model, "--out", &out]);
    // The trace is complete when the draws begin.
    let begun = Instant::now();
    while !desk.path("run/checkpoint.safetensors").is_file()
        && begun.elapsed() < Duration::from_secs(5)
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(500));
    let killed = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.expect("it can be interrupted").success());
    let pressed = Instant::now();
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(4));
    assert!(
        pressed.elapsed() < Duration::from_secs(5),
        "{:?}",
        pressed.elapsed()
    );
    assert!(desk.path("run/fit.json").is_file());
}

#[cfg(unix)]
#[test]
fn a_stop_before_the_first_state_leaves_what_was_there() {
    let desk = Desk::new();
    let quick = desk.file("quick.stan", &program("", ""));
    // The program is built immediately, but its evaluation takes seconds before the first state exists.
    let source = "parameters { matrix[250, 250] A; }
        model { to_vector(A) ~ normal(0, 1); sum(A * A * A * A * A * A * A * A) ~ normal(0, 1); }";
    let slow = desk.file("slow.stan", source);
    let out = desk.name("run");
    let files = || -> Vec<(String, Vec<u8>)> {
        let entries = fs::read_dir(&out).unwrap().flatten();
        let mut files: Vec<_> = entries
            .map(|entry| {
                (
                    entry.file_name().to_string_lossy().into_owned(),
                    fs::read(entry.path()).unwrap(),
                )
            })
            .collect();
        files.sort();
        files
    };
    let interrupted = || {
        let request = Path::new(&out).join("run.json");
        let before = fs::read(&request).ok();
        let mut child = start(["fit", &slow, "--out", &out]);
        let begun = Instant::now();
        // The run has begun when the folder contains its description.
        while fs::read(&request)
            .ok()
            .is_none_or(|now| before.as_ref() == Some(&now))
            && begun.elapsed() < Duration::from_secs(60)
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(50));
        let id = child.id().to_string();
        let output = std::process::Command::new("kill")
            .args(["-INT", &id])
            .status();
        assert!(output.expect("it can be interrupted").success());
        assert_eq!(child.wait().expect("it ends").code(), Some(130));
    };
    interrupted();
    assert!(files().iter().all(|(name, _)| name != "fit.json"
        && !name.starts_with("draws")
        && !name.ends_with(".tmp")));
    // An interrupted run does not block the next one, and leaves a completed fit in the folder unchanged.
    jensen(["fit", &quick, "--draws", "10", "--out", &out]).expect(0);
    let whole = files();
    interrupted();
    assert!(files() == whole);
    let said = jensen(["fit", &slow, "--out", &out, "--max-seconds", "0.001"])
        .expect(2)
        .stderr;
    assert!(said.contains("0.001 seconds"), "{said}");
    assert!(files() == whole);
}

#[test]
fn a_large_fit_whose_time_is_up_writes_what_is_soon_written() {
    let desk = Desk::new();
    let source = "parameters { vector[20000] x; } model { x ~ student_t(4, 0, 1); }";
    let model = desk.file("model.stan", source);
    let out = desk.name("run");
    // On a busy machine, a short limit leaves no time for the first iteration, and the command says so with the code 2.
    let begun = ["0.001", "0.01", "0.1", "1"]
        .iter()
        .map(|limit| jensen(["fit", &model, "--max-seconds", limit, "--out", &out]))
        .find(|done| done.code != 2);
    begun.unwrap().expect(4);
    let fit = read_json(&desk.path("run/fit.json"));
    let warnings = fit["warnings"].to_string();
    assert!(
        warnings.contains("draws are missing, because the time limit"),
        "{warnings}"
    );
    let drawn = draws_of(Path::new(&out)).lines().count();
    assert!((1..100).contains(&drawn), "{drawn}");
}

/// The stored sparsity pattern has 80 000 numbers. With one copy of the rest of the list for each coordinate, it would
/// take 3 GB.
#[test]
fn draws_from_a_large_sparse_fit_need_little_memory() {
    let desk = Desk::new();
    let source = "data { int N; vector[N] y; } parameters { vector[N] theta; real mu; real<lower=0> tau; }
        model { mu ~ normal(0, 5); tau ~ normal(0, 2); theta ~ normal(mu, tau); y ~ normal(theta, 1); }";
    let model = desk.file("model.stan", source);
    let y: Vec<String> = (0..20_000)
        .map(|i| f64::from(i).sin().to_string())
        .collect();
    let data = desk.file(
        "data.json",
        &format!("{{\"N\": 20000, \"y\": [{}]}}", y.join(", ")),
    );
    let out = desk.name("run");
    jensen(["fit", &model, &data, "--max-seconds", "0.05", "--out", &out]).expect(4);
    let args = ["draws", &out, "--draws", "2"];
    let (code, said) = limited("ulimit -v 2500000", &args);
    assert_eq!(code, Some(0), "{said}");
}

/// Each draw takes some hundredths of a second.
#[test]
fn draws_that_the_time_limit_ends_are_not_rejected_by_the_model() {
    let desk = Desk::new();
    let source = "parameters { real x; } model { x ~ std_normal(); }
        generated quantities { real y = x; for (i in 1:300000) y += 1e-9 * sin(y); }";
    let model = desk.file("model.stan", source);
    let out = desk.name("run");
    jensen(["fit", &model, "--max-seconds", "1", "--out", &out]).expect(4);
    let fit = read_json(&desk.path("run/fit.json"));
    let warnings = fit["warnings"].to_string();
    assert!(
        warnings.contains("draws are missing, because the time limit")
            && !warnings.contains("rejects"),
        "{warnings}"
    );
}

#[test]
fn functions_of_huge_counts_are_refused_or_quick() {
    let desk = Desk::new();
    for call in [
        "lmgamma(2000000000, 2.5e9)",
        "modified_bessel_first_kind(2000000000, 1e9)",
        "modified_bessel_second_kind(2000000000, 2.5)",
        "bessel_first_kind(2000000000, 1e9)",
        "bessel_second_kind(2000000000, 1.5)",
        "rising_factorial(0.5, 2000000000)",
        "beta_binomial_cdf(1000000000 | 2000000000, 1.5, 2.5)",
    ] {
        let source = program(&format!("transformed data {{ real z = {call}; }}"), "");
        let said = refused(&desk, &source, &[]);
        assert!(said.contains("terms, the limit is"), "{call}: {said}");
    }
    let source =
        "parameters { real x; } model { x ~ normal(0, 1); target += lmgamma(2000000000, exp(x)); }";
    assert!(refused(&desk, source, &[]).contains("terms"));
    for call in [
        "hypergeometric_rng(1000000000, 1000000000, 1000000000)",
        "von_mises_rng(1e300, 1e300)",
        "log_modified_bessel_first_kind(1e300, 1e300)",
    ] {
        let source = program(&format!("transformed data {{ real z = {call}; }}"), "");
        let model = desk.file("model.stan", &source);
        let begun = Instant::now();
        jensen(["fit", &model, "--draws", "10"]).expect(0);
        assert!(begun.elapsed() < Duration::from_secs(5), "{call}");
    }
}

#[test]
fn messages_that_are_printed_have_an_end() {
    let desk = Desk::new();
    let source = program(
        "transformed data { vector[1000000] v = rep_vector(0.125, 1000000); for (i in 1:40) print(v); }",
        "",
    );
    let model = desk.file("model.stan", &source);
    let said = jensen(["fit", &model, "--draws", "10"]).expect(0).stderr;
    assert!(
        said.contains("is omitted") && said.len() < 6 << 20,
        "{}",
        said.len()
    );
}

#[test]
fn a_resumed_fit_leaves_the_files_of_one_that_was_left_alone() {
    let (model, data) = corpus("eight_schools_noncentred");
    for method in ["auto", "advi", "bbvi"] {
        let desk = Desk::new();
        let (whole, parts) = (desk.name("whole"), desk.name("parts"));
        let common = [
            "fit",
            &model,
            &data,
            "--seed",
            "3",
            "--draws",
            "50",
            "--method",
            method,
            "--max-iters",
            "400",
        ];
        jensen(common.into_iter().chain(["--out", &whole]));
        let mut first = common;
        first[common.len() - 1] = "7";
        jensen(first.into_iter().chain(["--out", &parts]));
        jensen(["fit", "--resume", &parts, "--max-iters", "400"]);
        let (whole, parts) = (Path::new(&whole), Path::new(&parts));
        assert_eq!(fit_of(whole), fit_of(parts), "{method}");
        assert_eq!(trace_of(whole), trace_of(parts), "{method}");
        for name in [
            "draws.csv",
            "draws.nc",
            "approximation.safetensors",
            "run.json",
            "model.stan",
        ] {
            let [a, b] = [whole, parts].map(|folder| fs::read(folder.join(name)).unwrap());
            // When a run is resumed, the machine determines the settings that were not given.
            if name == "run.json" {
                let [a, b] = [a, b]
                    .map(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).unwrap());
                assert_eq!(a["flags"]["seed"], b["flags"]["seed"]);
            } else {
                assert!(a == b, "{method}: {name}");
            }
        }
        assert!(!draws_of(whole).is_empty());
    }
}

#[test]
fn litter_of_killed_runs_goes_and_is_in_nobodys_way() {
    let desk = Desk::new();
    let (model, data) = corpus("eight_schools_noncentred");
    let out = desk.path("run");
    fs::create_dir(&out).unwrap();
    // The run was killed before it wrote its first file.
    fs::write(out.join(".jensen.json.4242-0.tmp"), "{").unwrap();
    let name = out.display().to_string();
    jensen(["fit", &model, &data, "--draws", "10", "--out", &name]).expect(0);
    fs::write(out.join(".fit.json.4242-7.tmp"), "{").unwrap();
    jensen(["fit", "--resume", &name]).expect(0);
    let many = desk.name("many");
    let fits = ["fit-many", &model, &data, "--seeds", "1..2", "--out", &many];
    jensen(fits).expect(0);
    fs::write(desk.path("many/.fits.csv.4242-1.tmp"), "a").unwrap();
    jensen(fits).expect(0);
    for folder in [&out, &desk.path("many")] {
        let left = fs::read_dir(folder).unwrap().flatten();
        let litter = left.filter(|entry| entry.file_name().to_string_lossy().ends_with(".tmp"));
        assert_eq!(litter.count(), 0, "{}", folder.display());
    }
    // If the folder contains a foreign file, the command refuses to use it.
    let other = desk.path("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("notes.tmp"), "mine").unwrap();
    jensen(["fit", &model, &data, "--out", &other.display().to_string()]).expect(2);
    assert!(other.join("notes.tmp").is_file());
}

#[test]
fn nothing_said_tells_the_terminal_anything() {
    let desk = Desk::new();
    let escape = "\u{1b}]0;owned\u{7}\u{1b}[31m";
    let printing = format!("transformed data {{ print(\"{escape}\"); reject(\"{escape}\"); }}");
    let model = desk.file("model.stan", &program(&printing, ""));
    let (name, json) = (
        desk.name(&format!("{escape}.stan")),
        desk.file("data.json", &format!("{{\"{escape}\": }}")),
    );
    let commands: [Vec<&str>; 5] = [
        vec!["fit", &model],
        vec!["fit", &name],
        vec!["check", &name, &model],
        vec!["fit", &model, &json],
        vec!["fit", "--seed", escape],
    ];
    for command in commands {
        let done = jensen(&command);
        let said = done.stdout + &done.stderr;
        assert!(!said.contains(['\u{1b}', '\u{7}']), "{command:?}: {said:?}");
    }
    let said = jensen(["fit", &model]).expect(3).stderr;
    assert!(said.contains("\\u001b[31m"), "{said}");
}

#[cfg(unix)]
fn limited(limit: &str, args: &[&str]) -> (Option<i32>, String) {
    let limit = format!("{limit}; exec \"$@\"");
    let mut shell = std::process::Command::new("sh");
    let shell = shell.args(["-c", &limit, "sh", env!("CARGO_BIN_EXE_jensen")]);
    let done = shell.args(args).output().expect("it runs");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    (done.status.code(), said)
}

/// Runs the command with a limit on the size of files, in blocks of 512 bytes.
#[cfg(unix)]
fn with_small_files(blocks: u32, args: &[&str]) -> (Option<i32>, String) {
    limited(&format!("ulimit -f {blocks}"), args)
}

#[cfg(target_os = "linux")]
#[test]
fn a_system_without_more_memory_is_one_error() {
    let desk = Desk::new();
    let source = program(
        "transformed data { vector[20000000] v = rep_vector(0.5, 20000000); }",
        "",
    );
    let model = desk.file("model.stan", &source);
    let out = desk.name("run");
    let args = [
        "fit",
        &model,
        "--draws",
        "50",
        "--threads",
        "1",
        "--out",
        &out,
    ];
    // The memory is too small for the first stack, for the stacks of the threads, or for the data.
    for (megabytes, part) in [
        (100, "cannot start a thread with a stack"),
        (700, "cannot start 1 threads"),
        (1100, "the system refused 160000000 bytes of memory"),
    ] {
        let (code, said) = limited(&format!("ulimit -v {}", megabytes << 10), &args);
        assert_eq!(code, Some(2), "{megabytes} MB: {said}");
        assert!(said.starts_with("error: ") && said.contains(part), "{said}");
        assert!(
            said.lines().count() == 1 && said.contains("ulimit -v"),
            "{said}"
        );
    }
    jensen(args).expect(0);
}

/// If the limit on open files is too small, the command reports this and leaves no file that would block a later run.
#[cfg(target_os = "linux")]
#[test]
fn few_files_are_one_error_or_enough() {
    let desk = Desk::new();
    let (model, data) = corpus("eight_schools_noncentred");
    let out = desk.name("run");
    let args = [
        "fit",
        &model,
        &data,
        "--draws",
        "50",
        "--threads",
        "1",
        "-q",
        "--out",
        &out,
    ];
    let mut refused = 0;
    for files in 4..10 {
        let (code, said) = limited(&format!("ulimit -n {files}"), &args);
        if code == Some(2) {
            refused += 1;
            assert!(
                said.lines().count() == 1 && said.contains("`ulimit -n`"),
                "{files}: {said}"
            );
        } else {
            assert_eq!(code, Some(0), "{files}: {said}");
        }
    }
    assert!(refused > 0);
    jensen(args).expect(0);
}

/// The limit on the number of processes includes threads. It does not apply to root.
#[cfg(target_os = "linux")]
#[test]
fn few_threads_are_one_error_or_enough() {
    let desk = Desk::new();
    let model = desk.file("model.stan", &program("", ""));
    for threads in [1, 2, 4] {
        let (code, said) = limited(
            &format!("ulimit -u {threads}"),
            &["fit", &model, "-q", "--draws", "50"],
        );
        let output = code == Some(2) && said.lines().count() == 1 && said.contains("`ulimit -u`");
        assert!(output || code == Some(0), "{threads}: {code:?} {said}");
    }
}

#[cfg(unix)]
#[test]
fn an_earlier_fit_stays_where_a_new_one_cannot_be_written() {
    let desk = Desk::new();
    let out = finished(&desk);
    let folder = Path::new(&out);
    let (draws, fit) = (draws_of(folder), fit_of(folder));
    let (model, data) = corpus("eight_schools_noncentred");
    let args = [
        "fit", &model, &data, "--seed", "4", "--draws", "900", "--out", &out,
    ];
    for blocks in [0, 1, 2, 8, 40] {
        let (code, said) = with_small_files(blocks, &args);
        assert_eq!(code, Some(2), "{blocks}: {said}");
        assert!(
            draws == draws_of(folder) && fit == fit_of(folder),
            "{blocks}"
        );
        let left = fs::read_dir(folder).unwrap().flatten();
        let mut left = left.map(|entry| entry.file_name().to_string_lossy().into_owned());
        assert_eq!(left.find(|name| name.ends_with(".tmp")), None, "{blocks}");
        jensen(["draws", &out, "--draws", "5"]).expect(0);
    }
    // With enough space the new fit replaces the earlier one, whose files are all removed.
    jensen(args).expect(0);
    assert_ne!(draws, draws_of(folder));
    assert!(!folder.join(".earlier").exists());
}

/// Builds a corpus of a few documents. Even such a short corpus is mapped.
#[cfg(feature = "topics")]
fn small_corpus(desk: &Desk) -> String {
    let line = |i: usize| {
        format!(
            "{{\"text\": \"{} water river\"}}\n",
            ["fish", "stone", "bridge"][i % 3]
        )
    };
    let text: String = (0..60).map(line).collect();
    let (text, corpus) = (desk.file("text.jsonl", &text), desk.name("corpus"));
    let build = [
        "topics",
        "build",
        &text,
        "--min-df",
        "1",
        "--max-df",
        "1.0",
        "--heldout",
        "0.1",
        "--out",
        &corpus,
    ];
    jensen(build).expect(0);
    corpus
}

#[cfg(all(feature = "topics", target_os = "linux"))]
type Change = (&'static str, fn(&Path));

#[cfg(all(feature = "topics", target_os = "linux"))]
#[test]
fn a_corpus_that_changes_under_a_fit_is_one_error() {
    let change: [Change; 2] = [
        ("shortened a file", |path| {
            let file = fs::OpenOptions::new()
                .write(true)
                .open(path)
                .expect("a file");
            file.set_len(0).expect("it can be cut");
        }),
        ("changed while Jensen read it", |path| {
            let length = fs::metadata(path).expect("a file").len() as usize;
            // The file is changed in place, because a newly created file would be too short for a moment.
            let file = fs::OpenOptions::new().write(true).open(path);
            let written = file.expect("a file").write_all(&vec![0xff; length]);
            written.expect("it can be written");
        }),
    ];
    for (said, change) in change {
        let desk = Desk::new();
        let corpus = small_corpus(&desk);
        let out = desk.name("run");
        let child = std::process::Command::new(env!("CARGO_BIN_EXE_jensen"))
            .args([
                "topics",
                "fit",
                &corpus,
                "-k",
                "2",
                "--passes",
                "1e6",
                "--max-seconds",
                "4",
            ])
            .args(["--checkpoint-every", "0.1", "--out", &out])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("it starts");
        let begun = Instant::now();
        while !desk.path("run/checkpoint.safetensors").is_file()
            && begun.elapsed() < Duration::from_secs(30)
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        change(Path::new(&corpus));
        let done = child.wait_with_output().expect("it ends");
        let output = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(3), "{said}: {output}");
        assert!(output.contains(said), "{output}");
        assert!(!desk.path("run/fit.json").exists());
    }
}

#[cfg(feature = "topics")]
#[test]
fn words_and_bags_tell_the_terminal_nothing() {
    let desk = Desk::new();
    let escape = "\u{1b}[31mred";
    desk.file("vocab.evil.txt", &format!("{escape}\nwater\nriver\n"));
    let rows: String = (1..=40).map(|d| format!("{d} {} 3\n", d % 3 + 1)).collect();
    let bags = desk.file("docword.evil.txt", &format!("40\n3\n40\n{rows}"));
    let corpus = desk.name("corpus");
    let build = [
        "topics", "build", &bags, "--min-df", "1", "--max-df", "1.0", "--out", &corpus,
    ];
    let built = jensen(build);
    let mut said = built.stdout + &built.stderr;
    let out = desk.name("run");
    for command in [
        vec!["topics", "fit", &corpus, "-k", "2", "--out", &out],
        vec!["topics", "show", &out],
    ] {
        let done = jensen(command);
        said += &(done.stdout + &done.stderr);
    }
    let broken = desk.file("docword.evil.txt", &format!("40\n3\n40\n1 {escape} 3\n"));
    let refused = jensen(["topics", "build", &broken, "--out", &desk.name("other")]).expect(3);
    said += &refused.stderr;
    assert!(!said.contains('\u{1b}'), "{said:?}");
}

#[cfg(feature = "latent")]
#[test]
fn graphs_without_nodes_or_with_numbers_beyond_reason_are_refused() {
    let desk = Desk::new();
    let table = desk.file("table.csv", "k,y\n1,1\n2,2\n");
    for (text, said) in [
        ("", "has no nodes"),
        ("0\n", "has no nodes"),
        ("0\n5\n", "0 nodes"),
        ("1 291539607528\n", "291539607527"),
        ("1 18446744073709551615\n", "18446744073709551614"),
    ] {
        let graph = desk.file("g.graph", text);
        let prior = format!("icar(graph=\"{graph}\", on=k)");
        let done = jensen([
            "latent",
            "fit",
            "--likelihood",
            "gaussian(variance=1)",
            "--prior",
            &prior,
            "--data",
            &table,
        ]);
        assert_eq!(done.code, 3, "{text:?}: {}", done.stderr);
        assert!(done.stderr.contains(said), "{text:?}: {}", done.stderr);
    }
}
