//! Measures how quickly commands end after they are interrupted, or after their time limit passes, at a random moment.
//!
//! If the command ends before the stop, the check tries an earlier moment. It repeats a stop that was slow, because
//! another process may have used the machine, and the shortest of a few attempts counts. The check measures both
//! processor time and wall-clock time.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::scenes::{self, Again};
use super::{Dice, Ended, Flags, finish, run, start, words};

/// Longest time that a command may take to end after Ctrl-C or after its time limit.
const LONGEST: Duration = Duration::from_secs(1);

/// If a slow stop took less processor time than this, it was slow because of other load on the machine.
const BUSY: Duration = Duration::from_millis(300);

const TRIES: usize = 4;

/// The earliest moment of a stop, in milliseconds. Before it, the command does not listen for signals yet.
const EARLIEST: usize = 20;

const SHAPES: [(&str, [usize; 5]); 8] = [
    ("hierarchy", [10, 100, 1000, 10_000, 100_000]),
    ("rows", [100, 1000, 10_000, 100_000, 1_000_000]),
    ("correlated", [5, 20, 50, 100, 200]),
    ("process", [10, 30, 60, 100, 150]),
    ("mixture", [100, 300, 1000, 3000, 10_000]),
    ("simulation", [100, 1000, 10_000, 100_000, 1_000_000]),
    ("output", [10, 100, 1000, 10_000, 50_000]),
    ("chain", [10, 100, 300, 1000, 3000]),
];

struct Subject {
    kind: String,
    name: String,
    /// The command line, in which `OUT` stands for a separate folder.
    line: Vec<String>,
    limited: bool,
    drawn: bool,
}

#[derive(Default)]
struct Measured {
    subjects: usize,
    stops: Vec<(Took, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Took {
    time: Duration,
    work: Option<Duration>,
}

impl Took {
    /// Returns whether the command itself was slow, rather than slowed down by other load.
    fn too_long(self) -> bool {
        self.time > LONGEST && self.work.is_none_or(|work| work > BUSY)
    }
}

/// Stops every command at random moments, by Ctrl-C or by a time limit, and measures how long it takes to end.
pub fn attack(root: &Path, arguments: &[String]) -> Result<String, String> {
    let flags = Flags::read(arguments, usize::MAX)?.built(root)?;
    let desk = root.join("target/attack/stops");
    let _ = fs::remove_dir_all(&desk);
    fs::create_dir_all(&desk).map_err(|e| e.to_string())?;
    let mut subjects = programs(root, &desk)?;
    subjects.extend(commands(root, &flags.jensen, &desk)?);
    let mut dice = Dice(flags.seed);
    // The check selects a few subjects of every kind.
    for at in (1..subjects.len()).rev() {
        subjects.swap(at, dice.below(at + 1));
    }
    subjects.truncate(flags.count);
    let mut measured: BTreeMap<String, Measured> = BTreeMap::new();
    let mut finds = Vec::new();
    for subject in &subjects {
        let of = measured.entry(subject.kind.clone()).or_default();
        of.subjects += 1;
        let kinds = [Stop::Interrupt, Stop::Limit];
        for stop in kinds.into_iter().take(1 + usize::from(subject.limited)) {
            match shortest(&flags.jensen, subject, stop, &desk, &mut dice) {
                Ok(None) => {}
                Ok(Some(took)) => {
                    if took.too_long() {
                        finds.push(format!("{}, {stop:?}: {took:?}", subject.name));
                    }
                    of.stops.push((took, subject.name.clone()));
                }
                Err(find) => finds.push(format!("{}, {stop:?}: {find}", subject.name)),
            }
        }
    }
    let table = table(measured);
    if finds.is_empty() {
        Ok(format!("\n{table}"))
    } else {
        Err(format!("{}\n{table}", finds.join("\nerror: ")))
    }
}

#[derive(Clone, Copy, Debug)]
enum Stop {
    Interrupt,
    Limit,
}

/// Returns the shortest time of a stop among a few attempts, which end early if one time is short. Returns `None` if
/// the command ended by itself before every stop.
fn shortest(
    jensen: &Path,
    subject: &Subject,
    stop: Stop,
    desk: &Path,
    dice: &mut Dice,
) -> Result<Option<Took>, String> {
    let mut best: Option<Took> = None;
    // Most programs are fitted in less than a second.
    let mut latest = 600;
    for _ in 0..TRIES {
        let out = desk.join("out");
        let _ = fs::remove_dir_all(&out);
        let replaced = |word: &String| match word.as_str() {
            "OUT" => out.display().to_string(),
            _ => word.clone(),
        };
        let mut line: Vec<String> = subject.line.iter().map(replaced).collect();
        let wait = Duration::from_millis((EARLIEST + dice.below(latest)) as u64);
        if let Stop::Limit = stop {
            line.extend(["--max-seconds".to_owned(), wait.as_secs_f64().to_string()]);
        }
        let (took, ended) = stopped(jensen, &line, stop, wait, &out)?;
        // Without an exit code, the signal arrived before the command listened for it.
        if ended.code.is_some() {
            ended.clean()?;
        }
        valid(jensen, subject, &out, &ended)?;
        let Some(took) = took else {
            latest = (wait.as_millis() as usize).saturating_sub(EARLIEST) / 2;
            continue;
        };
        best = Some(best.map_or(took, |best| best.min(took)));
        if took.time <= LONGEST {
            break;
        }
    }
    Ok(best)
}

/// Runs a command that must end after a while, and returns the time from then on. Returns no time if the command ended
/// before.
fn stopped(
    jensen: &Path,
    line: &[String],
    stop: Stop,
    wait: Duration,
    out: &Path,
) -> Result<(Option<Took>, Ended), String> {
    let begun = Instant::now();
    let child = start(jensen, line)?;
    let id = child.id();
    if let Stop::Interrupt = stop {
        std::thread::sleep(wait);
        // A command that has already ended cannot receive signals.
        let sent = Command::new("kill")
            .args(["-INT", &id.to_string()])
            .output();
        sent.map_err(|e| format!("cannot send a signal: {e}"))?;
    }
    let sent = begun.elapsed();
    let watched = std::thread::spawn(move || work_of(id, begun));
    let ended = finish(child)?;
    let end = begun.elapsed();
    let work = watched.join().unwrap_or_default();
    // The time limit does not include the time that a command takes to build the model before the run begins.
    let due = match stop {
        Stop::Interrupt => sent,
        Stop::Limit => wait + Duration::from_secs_f64(build_seconds(out)),
    };
    let before = work
        .iter()
        .rev()
        .find(|(at, _)| *at <= due)
        .or(work.first());
    let took = end.checked_sub(due).map(|time| Took {
        time,
        work: before
            .zip(work.last())
            .map(|(from, to)| to.1.saturating_sub(from.1)),
    });
    Ok((took, ended))
}

/// Returns samples of the processor time of a process until it ends. The list is empty if the system does not report
/// processor time.
fn work_of(id: u32, begun: Instant) -> Vec<(Duration, Duration)> {
    /// Length in milliseconds of a tick of Linux's processor time.
    const TICK: u64 = 10;
    let mut seen = Vec::new();
    loop {
        let at = begun.elapsed();
        let text = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // The name of the command is in parentheses. The state is the first field after it, and the user time and the
        // system time are the 12th and the 13th.
        let fields: Vec<&str> = match text.rsplit_once(')') {
            Some((_, fields)) => fields.split_whitespace().collect(),
            None => return seen,
        };
        let ticks = |k: usize| {
            fields
                .get(k)
                .and_then(|f| f.parse::<u64>().ok())
                .unwrap_or(0)
        };
        let ended = fields.first().is_none_or(|state| *state == "Z");
        seen.push((at, Duration::from_millis(TICK * (ticks(11) + ticks(12)))));
        if ended || at > super::PATIENCE {
            return seen;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn build_seconds(out: &Path) -> f64 {
    let text = fs::read(out.join("fit.json")).unwrap_or_default();
    let read: Value = serde_json::from_slice(&text).unwrap_or_default();
    read["seconds"]["build"].as_f64().unwrap_or(0.0)
}

fn valid(jensen: &Path, subject: &Subject, out: &Path, ended: &Ended) -> Result<(), String> {
    if !subject.drawn {
        return Ok(());
    }
    if !out.join("fit.json").is_file() {
        // A fit without a starting point ends in the same way as a fit that is not trusted.
        let begun = !ended.message.contains("diverged at iteration 0");
        return match ended.code {
            Some(0 | 4) if begun => Err("it ended well without results".to_owned()),
            _ => Ok(()),
        };
    }
    let mut line = words("draws OUT --draws 3 --out");
    line[1] = out.display().to_string();
    line.push(out.with_extension("csv").display().to_string());
    let used = run(jensen, &line)?;
    match used.code {
        Some(0) => Ok(()),
        code => Err(format!(
            "its results: exit {code:?}: {}",
            used.message.trim()
        )),
    }
}

fn programs(root: &Path, desk: &Path) -> Result<Vec<Subject>, String> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in ["models", "models/adversarial"] {
        let entries = fs::read_dir(root.join(folder)).map_err(|e| format!("{folder}: {e}"))?;
        folders.extend(entries.flatten().map(|entry| entry.path()));
    }
    folders.retain(|folder| folder.join("model.stan").is_file());
    folders.sort();
    let fit = |kind: &str, name: String, files: &[PathBuf]| {
        let mut line = words("fit -q --seed 3 --out OUT");
        line.extend(files.iter().map(|file| file.display().to_string()));
        Subject {
            kind: kind.to_owned(),
            name,
            line,
            limited: true,
            drawn: true,
        }
    };
    let mut subjects = Vec::new();
    for folder in folders {
        let files: Vec<PathBuf> = ["model.stan", "data.json"]
            .map(|name| folder.join(name))
            .into_iter()
            .filter(|path| path.is_file())
            .collect();
        let name = folder.strip_prefix(root).unwrap_or(&folder);
        subjects.push(fit(
            "`fit`, programs of `models/`",
            name.display().to_string(),
            &files,
        ));
    }
    for (shape, sizes) in SHAPES {
        for size in sizes {
            let name = format!("{shape}-{size}");
            let path = desk.join(format!("{name}.stan"));
            fs::write(&path, program(shape, size)).map_err(|e| e.to_string())?;
            subjects.push(fit("`fit`, generated programs", name, &[path]));
        }
    }
    Ok(subjects)
}

fn program(shape: &str, n: usize) -> String {
    let rows = "vector[N] x; vector[N] y; for (n in 1:N) { x[n] = sin(n); y[n] = 0.5 * x[n] + 0.3 * cos(7.0 * n); }";
    let body = match shape {
        "hierarchy" => format!(
            "transformed data {{ int N = {n}; {rows} }} parameters {{ vector[N] theta; real mu; real<lower=0> tau; }}
             model {{ mu ~ normal(0, 5); tau ~ normal(0, 2); theta ~ normal(mu, tau); y ~ normal(theta, 1); }}"
        ),
        "rows" => format!(
            "transformed data {{ int N = {n}; {rows} }} parameters {{ real a; real b; real<lower=0> s; }}
             model {{ y ~ student_t(4, a + b * x, s); a ~ normal(0, 1); b ~ normal(0, 1); s ~ exponential(1); }}"
        ),
        "correlated" => format!(
            "transformed data {{ int N = {n}; {rows} }} parameters {{ vector[N] z; cholesky_factor_corr[N] L; }}
             model {{ L ~ lkj_corr_cholesky(2); z ~ normal(0, 1); y ~ normal(L * z, 0.5); }}"
        ),
        "process" => format!(
            "transformed data {{ int N = {n}; {rows} array[N] real at; for (k in 1:N) at[k] = k; }}
             parameters {{ real<lower=0> rho; real<lower=0> alpha; real<lower=0> s; }}
             model {{ matrix[N, N] K = gp_exp_quad_cov(at, alpha, rho); for (k in 1:N) K[k, k] += square(s) + 1e-6;
             rho ~ inv_gamma(5, 5); alpha ~ normal(0, 1); s ~ normal(0, 1);
             y ~ multi_normal_cholesky(rep_vector(0, N), cholesky_decompose(K)); }}"
        ),
        "mixture" => format!(
            "transformed data {{ int N = {n}; {rows} }} parameters {{ ordered[3] mu; simplex[3] w; vector<lower=0>[3] s; }}
             model {{ mu ~ normal(0, 1); s ~ normal(0, 1); for (k in 1:N) {{ vector[3] lp = log(w);
             for (j in 1:3) lp[j] += normal_lpdf(y[k] | mu[j], s[j]); target += log_sum_exp(lp); }} }}"
        ),
        "simulation" => format!(
            "parameters {{ real a; }} model {{ a ~ normal(0, 1); }}
             generated quantities {{ real s = 0; for (k in 1:{n}) s += normal_rng(a, 1) / {n}; }}"
        ),
        "output" => format!(
            "parameters {{ real a; }} model {{ a ~ normal(0, 1); }}
             generated quantities {{ vector[{n}] s; for (k in 1:{n}) s[k] = a + k; }}"
        ),
        _ => format!(
            "transformed data {{ int N = {n}; {rows} }} parameters {{ vector[N] h; real<lower=-1, upper=1> phi; }}
             model {{ h[1] ~ normal(0, 1); for (k in 2:N) h[k] ~ normal(phi * h[k - 1], 0.3); y ~ normal(0, exp(h / 2)); }}"
        ),
    };
    body + "\n"
}

fn commands(root: &Path, jensen: &Path, desk: &Path) -> Result<Vec<Subject>, String> {
    let mut subjects = Vec::new();
    for (k, scene) in scenes::all(root, jensen, desk)?.into_iter().enumerate() {
        let folder = desk.join(format!("whole-{k}"));
        run(jensen, &scene.fit(&folder))?.clean()?;
        let subject = |kind: String, line: Vec<String>, fits: bool| Subject {
            name: line.join(" "),
            kind,
            line,
            limited: fits,
            drawn: fits && scene.verb == "fit" && !matches!(scene.again, Again::Same),
        };
        subjects.push(subject(
            format!("`{}`", scene.verb),
            scene.fit(Path::new("OUT")),
            true,
        ));
        for line in scene.uses(&folder, Path::new("OUT")) {
            let verbs = line.iter().take_while(|word| {
                word.chars().all(|c| c.is_ascii_lowercase()) && !word.is_empty()
            });
            let verbs: Vec<&str> = verbs.map(String::as_str).collect();
            subjects.push(subject(format!("`{}`", verbs.join(" ")), line, false));
        }
    }
    Ok(subjects)
}

fn table(measured: BTreeMap<String, Measured>) -> String {
    let mut text = "| command | subjects | stopped | median | longest | of it the processors' | of |\n| --- | ---: | ---: | ---: | ---: | ---: | --- |\n".to_owned();
    for (kind, mut of) in measured {
        of.stops.sort();
        let median = of.stops.get(of.stops.len() / 2).map(|(took, _)| took.time);
        let Some(((longest, name), median)) = of.stops.last().zip(median) else {
            continue;
        };
        let work = longest.work.map_or("unknown".to_owned(), |work| {
            format!("{:.2} s", work.as_secs_f64())
        });
        text += &format!(
            "| {kind} | {} | {} | {:.2} s | {:.2} s | {work} | {} |\n",
            of.subjects,
            of.stops.len(),
            median.as_secs_f64(),
            longest.time.as_secs_f64(),
            name.split_whitespace()
                .take(3)
                .collect::<Vec<_>>()
                .join(" ")
        );
    }
    text
}
