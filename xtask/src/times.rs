//! Lists the slowest tests for `cargo xtask times [LOG]`.
//!
//! LOG is the output of `cargo test --workspace` with `.ci/timed` as its runner, which prints the time of each test. If
//! LOG is missing, the check runs the tests itself. Times are wall-clock times, measured while other tests run in
//! parallel.

use std::path::Path;
use std::process::{Command, Stdio};

/// Largest number of seconds that a test may take if [`SLOW`] does not list it. The limit ensures that a thousand tests
/// finish soon.
const LIMIT: f64 = 20.0;

/// Total time of all tests in seconds, measured on two quiet cores in November 2026. On a slower or busier machine
/// every test takes longer, and the limit grows in proportion.
const QUIET: f64 = 630.0;

/// A busy machine may slow down a single test by this factor more than it slows down the average test.
const UNEVEN: f64 = 2.0;

const SHOWN: usize = 15;

/// Tests that may take longer, each with the reason.
const SLOW: [(&str, &str); 11] = [
    (
        "centring::where_chains_do_not_mix_over_recentred_groups_the_program_is_fitted_as_written",
        "five runs of a model whose chains mix slowly, since no quick one goes back to the program as written",
    ),
    (
        "centring::correlated_effects_are_fitted_between_centred_and_not",
        "correlated effects with three centrings, refined until each standard deviation is known to the policy's limit",
    ),
    (
        "curved::flows_match_curved_targets",
        "a flow and a mixture of Gaussians are brought to their optima",
    ),
    (
        "exchangeable::snapshots_that_do_not_fit_are_refused_and_svrg_named",
        "a network of 20 000 records, since fewer would fit the memory limit",
    ),
    (
        "figures::any_numbers_can_be_drawn",
        "hundreds of random figures are drawn as SVG and as pixels",
    ),
    (
        "properties::a_lane_does_not_depend_on_its_neighbours",
        "hundreds of random graphs, evaluated lane by lane",
    ),
    (
        "properties::nesting_is_bounded_and_says_so",
        "programs nested to the limit in every construct",
    ),
    (
        "refine::a_mixture_that_does_not_mix_is_refused",
        "spends its whole budget of gradients, because its chains do not mix",
    ),
    (
        "coverage::the_page_says_what_evaluates",
        "every signature of Stan's library is lowered",
    ),
    (
        "mixture_files::who_works_and_what_is_lost_changes_no_bit",
        "a fit for each number of workers and each way to lose one",
    ),
    (
        "vae::tables_with_every_decoder_and_option",
        "a training run that beats a linear factor for each decoder",
    ),
];

/// Shows the slowest tests, and rejects slow tests that have no reason.
pub fn check(root: &Path, arguments: &[String]) -> Result<String, String> {
    let log = match arguments {
        [] => log(root)?,
        [file] => std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?,
        _ => return Err("expected one log of tests, or none".to_owned()),
    };
    let mut times = times(&log);
    if times.is_empty() {
        return Err("no test says its time: is `.ci/timed` the runner?".to_owned());
    }
    times.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    println!(
        "the slowest of {} tests, in seconds of wall-clock time:",
        times.len()
    );
    for (name, seconds) in times.iter().take(SHOWN) {
        println!("{seconds:8.1}  {name}");
    }
    let all: f64 = times.iter().map(|(_, seconds)| seconds).sum();
    let limit = match all > QUIET {
        true => LIMIT * UNEVEN * all / QUIET,
        false => LIMIT,
    };
    println!("{all:8.1}  all; the limit is {limit:.0}");
    let listed = |name: &str| SLOW.iter().any(|(slow, _)| *slow == name);
    let late = times.iter().filter(|(name, s)| *s > limit && !listed(name));
    let late: Vec<&str> = late.map(|(name, _)| *name).collect();
    match late.is_empty() {
        true => Ok(format!("none of {} takes too long", times.len())),
        false => Err(format!(
            "more than {limit:.0} s, with no reason in xtask/src/times.rs: {}",
            late.join(", ")
        )),
    }
}

fn log(root: &Path) -> Result<String, String> {
    let host = Command::new("rustc").arg("-vV").output();
    let host = host.map_err(|error| format!("rustc: {error}"))?;
    let host = String::from_utf8_lossy(&host.stdout);
    let host = host.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("rustc does not say its host")?;
    let runner = format!(
        "CARGO_TARGET_{}_RUNNER",
        host.to_uppercase().replace('-', "_")
    );
    let mut tests = Command::new("cargo");
    tests.args(["test", "--workspace"]).current_dir(root);
    tests.env(runner, root.join(".ci/timed"));
    let output = tests.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cargo: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err("a test fails".to_owned()),
    }
}

fn times(log: &str) -> Vec<(&str, f64)> {
    log.lines()
        .filter_map(|line| {
            let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
            let seconds = rest.split_once('<')?.1.strip_suffix("s>")?;
            Some((name, seconds.parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_from_what_the_tests_say() {
        let log = "running 2 tests\ntest a::b ... ok <0.003s>\ntest c ... ok\ntest d - should panic ... ok <21.500s>\n";
        assert_eq!(times(log), [("a::b", 0.003), ("d - should panic", 21.5)]);
    }

    #[test]
    fn a_slow_test_without_a_reason_is_refused() {
        let file = std::env::temp_dir().join(format!("jensen-times-{}", std::process::id()));
        let log = |seconds: &str| std::fs::write(&file, format!("test a ... ok <{seconds}s>\n"));
        let found = |seconds: &str| {
            log(seconds).unwrap();
            check(Path::new("."), &[file.display().to_string()])
        };
        assert!(found("19.9").is_ok());
        assert!(found("20.1").unwrap_err().contains(": a"));
        std::fs::remove_file(&file).unwrap();
    }
}
