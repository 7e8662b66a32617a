//! Attacks the readers and the compiler within one process. `cargo xtask fuzz` passes the arguments: the number of
//! seconds for each target, a seed, the largest number of trials (as a multiple of the number of inputs of each
//! target), and optionally the names of targets.
//!
//! | file | subject |
//! | --- | --- |
//! | `main` | targets, failures and their shrinking |
//! | `watch` | inputs that hang |
//! | `mutate` | inputs made from other inputs |
//! | `corpora` | bags of words and built corpora, which are read from files |
//! | `grammar` | well-typed programs |
//!
//! A failure is a panic, a hang, or a program for which the graph and the interpreter disagree. After a failure, the
//! input is written to `target/attack/fuzz`, both as a whole (`*.whole`) and shrunk. If an input hangs, the run ends.

mod corpora;
mod grammar;
mod mutate;
mod watch;

use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use jensen::data::{Adjacency, DataSet, Table, idx, npy};
use jensen::graph::Graph;
use jensen::points::{PointRequest, Points};
use jensen::run::Checkpoint;
use jensen::stan::{Build, Halt, Model, NoIncludes, check, pretty};
use jensen::{Error, Problem, Query, evaluate};
use mutate::Dice;
use watch::Watch;

/// The time after which an input is regarded as hanging. The time limit of the interpreter is shorter.
const PATIENCE: Duration = Duration::from_secs(10);
const ALLOWED: Duration = Duration::from_secs(2);

const MEMORY: u64 = 256 << 20;

/// The size of the stack of the thread that does all work. The command uses a stack of the same size.
const STACK: usize = 512 << 20;

struct Target {
    name: &'static str,
    /// The number of inputs that every check of the repository tries, which takes about two seconds. The number is
    /// fixed, so that all machines try the same inputs.
    count: u64,
    seeds: Vec<Vec<u8>>,
    attack: fn(&[u8]) -> Result<(), String>,
}

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let names = words.split_off(words.len().min(3));
    let number = |k: usize, usual: u64| {
        words
            .get(k)
            .and_then(|word| word.parse().ok())
            .unwrap_or(usual)
    };
    let request = FuzzRequest {
        seconds: number(0, 10),
        seed: number(1, 1),
        rounds: number(2, u64::MAX),
        names,
    };
    std::panic::set_hook(Box::new(|_| {}));
    let worker = std::thread::Builder::new().stack_size(STACK);
    let finds = worker
        .spawn(move || all(&request))
        .map(|thread| thread.join());
    match finds {
        Ok(Ok(0)) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

struct FuzzRequest {
    seconds: u64,
    seed: u64,
    /// The largest number of trials of a target, as a multiple of the number of its inputs.
    rounds: u64,
    /// The names of the targets. If it is empty, all targets are attacked.
    names: Vec<String>,
}

fn all(request: &FuzzRequest) -> usize {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let desk = root.join("target/attack/fuzz");
    let _ = fs::create_dir_all(&desk);
    let watch = Watch::over(&desk);
    let mut finds = 0;
    let asked = |target: &Target| {
        request.names.is_empty() || request.names.iter().any(|n| n == target.name)
    };
    for target in targets(&root).into_iter().filter(asked) {
        print!("{:<12}", target.name);
        // The name is printed first, so that it is known which target hangs.
        let _ = std::io::stdout().flush();
        let mut dice = Dice(request.seed);
        let begun = Instant::now();
        let most = target.count.saturating_mul(request.rounds);
        let (mut tried, mut found) = (0, 0);
        while tried < most && begun.elapsed().as_secs() < request.seconds {
            let input = match target.seeds.is_empty() {
                true => grammar::program(&mut dice).into_bytes(),
                false => mutate::mutated(&target.seeds, &mut dice),
            };
            tried += 1;
            if let Err(reason) = outcome(&target, &input, &watch) {
                found += 1;
                let file = desk.join(format!("{}-{found}", target.name));
                let _ = fs::write(file.with_extension("whole"), &input);
                let _ = fs::write(&file, shrunk(&target, input, &reason, &watch));
                eprintln!("{}: {reason}: {}", target.name, file.display());
            }
        }
        println!(
            "{tried:>9} inputs, {found} finds, {:.1} s",
            begun.elapsed().as_secs_f64()
        );
        finds += found;
    }
    finds
}

fn outcome(target: &Target, input: &[u8], watch: &Watch) -> Result<(), String> {
    watch.begin(target.name, input);
    let ended = catch_unwind(AssertUnwindSafe(|| (target.attack)(input)));
    watch.end();
    ended.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}

/// Removes parts of an input as long as it still fails in the same way. The beginning of the reason identifies the way
/// in which it fails.
fn shrunk(target: &Target, mut input: Vec<u8>, reason: &str, watch: &Watch) -> Vec<u8> {
    let begun = Instant::now();
    let alike = |found: &str| found.chars().take(10).eq(reason.chars().take(10));
    let mut part = input.len() / 2;
    while part > 0 && begun.elapsed() < PATIENCE {
        let mut at = 0;
        while at + part <= input.len() && begun.elapsed() < PATIENCE {
            let mut smaller = input.clone();
            smaller.drain(at..at + part);
            match outcome(target, &smaller, watch) {
                Err(found) if alike(&found) => input = smaller,
                _ => at += part,
            }
        }
        part /= 2;
    }
    input
}

fn targets(root: &Path) -> Vec<Target> {
    let models = |name: &str, most: usize| -> Vec<Vec<u8>> {
        let mut files: Vec<PathBuf> = fs::read_dir(root.join("models"))
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path().join(name))
            .filter(|path| path.is_file())
            .collect();
        files.sort();
        let bytes = files.iter().filter_map(|path| fs::read(path).ok());
        bytes.filter(|bytes| bytes.len() < most).collect()
    };
    let target = |name, count, seeds, attack| Target {
        name,
        count,
        seeds,
        attack,
    };
    let of = |text: &str| vec![text.as_bytes().to_vec()];
    vec![
        target("parser", 4_000, models("model.stan", 4000), parse),
        target("compiler", 1_400, models("model.stan", 2000), compile),
        target("grammar", 600, Vec::new(), agree),
        target("json", 200_000, models("data.json", 4000), |b| {
            ended(DataSet::from_json(b, "x"))
        }),
        target("rdump", 500_000, of(RDUMP), |b| {
            ended(DataSet::from_rdump(b, "x"))
        }),
        target(
            "csv",
            16_000,
            of("a,b,c\n1,2.5,x\n\"q,\",NA,-1e300\n"),
            |b| ended(Table::parse(b, "x.csv")),
        ),
        target(
            "points",
            36_000,
            vec![b"a,b\n1,2.5\n-1e300,4\n0.5,-0\n".to_vec(), npy_bytes()],
            points_of,
        ),
        target("bags", 5_000, corpora::bags(), corpora::build_bags),
        target("corpus", 12_000, corpora::built(), corpora::read),
        target("npy", 1_600_000, vec![npy_bytes()], |b| {
            ended(npy::parse(b, "x.npy"))
        }),
        target(
            "idx",
            2_400_000,
            vec![vec![0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4]],
            |b| ended(idx::parse_idx(b, "x")),
        ),
        target(
            "adjacency",
            1_000_000,
            of("3\n1 2 2 3\n2 1 1\n3 1 1\n"),
            |b| ended(Adjacency::parse(b, "x")),
        ),
        target("safetensors", 800_000, vec![checkpoint()], |b| {
            ended(Checkpoint::decode(b))
        }),
        target("graph", 1_400_000, of(GRAPH), graph),
    ]
}

const RDUMP: &str =
    "N <- 3\ny <- c(1, 2.5, -3e4)\nA <- structure(c(1,2,3,4), .Dim = c(2L, 2L))\nk <- 1:4\n";

const GRAPH: &str = "c0 = [1.0, -0.5, inf]\ni0 = [0, 0, 2]\nin0 = lane [3]\n%0: [3] lane = input in0\n\
                     %1: [3] constant = const c0\n%2: [3] lane = mul %0 %1 @12\n%3: [3] lane = gather i0 %2\n\
                     %4: [] lane = sum %3\noutputs %4\n";

fn npy_bytes() -> Vec<u8> {
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1), }\n";
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend([1.5f64, -2.0].iter().flat_map(|x| x.to_le_bytes()));
    bytes
}

fn checkpoint() -> Vec<u8> {
    let mut archive = jensen::run::Archive::new();
    archive.put("mean", &[1.0, 2.0, f64::NAN]);
    archive.set("step", 3);
    let identity = jensen::run::Identity::of_result("fuzz");
    Checkpoint::of_result(identity, archive).encode()
}

fn ended<T, E>(result: Result<T, E>) -> Result<(), String> {
    drop(result);
    Ok(())
}

fn points_of(bytes: &[u8]) -> Result<(), String> {
    let request = PointRequest::default();
    for table in [
        Table::parse(bytes, "x.csv"),
        Table::from_npy(bytes, "x.npy"),
    ] {
        drop(table.map(|table| Points::of_table(&table, &request)));
    }
    Ok(())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn graph(bytes: &[u8]) -> Result<(), String> {
    if let Ok(graph) = Graph::parse(&text(bytes)) {
        let again = Graph::parse(&graph.to_string()).map_err(|e| e.to_string())?;
        if again.to_string() != graph.to_string() {
            return Err("it prints as another graph".to_owned());
        }
    }
    Ok(())
}

fn parse(bytes: &[u8]) -> Result<(), String> {
    let source = text(bytes);
    let checked = check(&source, "x.stan", &NoIncludes);
    drop(checked.render(false));
    drop(pretty::show_tree(&source, "x.stan", &NoIncludes));
    Ok(())
}

fn model(source: &str) -> Result<Model, Error> {
    let begun = Instant::now();
    let build = Build {
        memory_limit: MEMORY,
        halt: Halt::new(move || (begun.elapsed() > ALLOWED).then(|| "time is up".to_owned())),
        ..Build::default()
    };
    Model::compile(source, "x.stan", &DataSet::new(), &build)
}

fn compile(bytes: &[u8]) -> Result<(), String> {
    // There are no values, so programs with data would fail at their first declaration. If the data block is removed,
    // the attack reaches more of the compiler.
    let source = text(bytes);
    for source in [&source, &without_data(&source)] {
        if let Ok(model) = model(source) {
            let _ = values(&model);
        }
    }
    Ok(())
}

fn without_data(source: &str) -> String {
    let mut parts = source.splitn(2, "data {");
    let (before, after) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    let rest = after.split_once('}').map_or("", |(_, rest)| rest);
    format!("{before}{rest}")
}

fn points(dim: usize) -> Vec<Vec<f64>> {
    let wave = |k: f64| (0..dim).map(|i| (k + i as f64).sin()).collect();
    vec![vec![0.0; dim], wave(0.3), wave(1.1)]
}

fn values(model: &Model) -> Option<Vec<f64>> {
    let dim = model.bound().unconstrained_dim();
    let points = points(dim);
    let query = Query {
        points: &points,
        gradient: true,
        directions: None,
    };
    evaluate(model.density(), &query)
        .ok()
        .map(|answer| answer.value)
}

fn agree(bytes: &[u8]) -> Result<(), String> {
    let source = text(bytes);
    let model = match model(&source) {
        Ok(model) => model,
        Err(Error::Model(error)) if error.kind == jensen::stan::ModelErrorKind::Program => {
            return Err(format!("a well-typed program is refused: {error}"));
        }
        Err(_) => return Ok(()),
    };
    let Some(found) = values(&model) else {
        return Ok(());
    };
    let bound = model.bound();
    let points = points(bound.unconstrained_dim());
    // At the origin, elements differ only in their last digits, and the results of comparisons and of sorting depend on
    // these digits.
    for (point, found) in points.iter().zip(found).skip(1) {
        let wanted = interpreted(&model, point);
        // If one value is not finite, rules such as 0 · x = 0 may keep the other one finite.
        let finite = found.is_finite() && wanted.is_finite();
        let differ = finite && (found - wanted).abs() > 1e-7 * (1.0 + wanted.abs());
        if differ && !depends_on_rounding(&source, &model, point) {
            return Err(format!("the graph gives {found}, the interpreter {wanted}"));
        }
    }
    Ok(())
}

/// Returns the log density of the interpreter, or NaN if it rejects the point.
fn interpreted(model: &Model, point: &[f64]) -> f64 {
    let value = model.bound().log_density(point, true, false);
    value.unwrap_or(f64::NAN)
}

/// Returns whether the value of the interpreter depends on rounding errors. These may be errors of the point, as in the
/// cube root of a difference that is 0 except for rounding. They may also be errors of the calls in the program, as in
/// `(x + 1e38) - 1e38`, which the graph simplifies to `x`.
fn depends_on_rounding(source: &str, program: &Model, point: &[f64]) -> bool {
    let wanted = interpreted(program, point);
    let moved = |value: f64| {
        let change = (value - wanted).abs();
        change.is_nan() || change > 1e-9 * (1.0 + wanted.abs())
    };
    let beside: Vec<f64> = point.iter().map(|z| z + 1e-12).collect();
    let rescaled = model(&grammar::rescaled(source));
    moved(interpreted(program, &beside))
        || rescaled.is_ok_and(|rescaled| moved(interpreted(&rescaled, point)))
}
