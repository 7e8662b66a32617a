//! Measures the cost of a gradient near the mode of a model of the corpus, for one block of draws on one thread: `cargo
//! run --release -p jensen-stan --example solver_speed -- models/lynx_hare_predators`. The program writes the points to
//! standard output, so that `tools/peers/solvers.py` can use the same points.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use jensen_density::{Lanes, LanesMut, LogDensity, TwiceDifferentiable};
use jensen_graph::{Execution, GraphDensity};
use jensen_stan::interpret::{DataSource, Elements, Input, Interpreter};
use jensen_stan::lower::{LowerOptions, lower};
use jensen_stan::{NoIncludes, check};
use serde_json::{Value, json};

const DRAWS: usize = 64;

/// The extents of an array, its numbers as ints and as reals, and whether they are whole.
type Numbers = (Vec<usize>, Vec<i64>, Vec<f64>, bool);

struct Table(BTreeMap<String, Numbers>);

impl Table {
    fn read(value: &Value) -> Self {
        let object = value.as_object().expect("an object");
        let entry = |value: &Value| {
            let (mut shape, mut at) = (Vec::new(), value);
            while let Value::Array(list) = at {
                shape.push(list.len());
                at = list.first().unwrap_or(&Value::Null);
            }
            let mut flat = Vec::new();
            flatten(value, &mut flat);
            let whole = flat.iter().all(|x| x.is_i64());
            let ints = flat.iter().map(|x| x.as_i64().unwrap_or(0)).collect();
            let reals = flat.iter().map(|x| x.as_f64().expect("a number")).collect();
            (shape, ints, reals, whole)
        };
        Self(
            object
                .iter()
                .map(|(name, value)| (name.clone(), entry(value)))
                .collect(),
        )
    }
}

fn flatten<'v>(value: &'v Value, into: &mut Vec<&'v Value>) {
    match value {
        Value::Array(list) => list.iter().for_each(|value| flatten(value, into)),
        number => into.push(number),
    }
}

impl DataSource for Table {
    fn get(&self, name: &str) -> Option<Input<'_>> {
        let (shape, ints, reals, whole) = self.0.get(name)?;
        let elements = if *whole {
            Elements::Ints(ints)
        } else {
            Elements::Reals(reals)
        };
        Some(Input { shape, elements })
    }

    fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
}

/// The processor time of this thread in seconds, which excludes other work on the machine.
fn processor() -> f64 {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds: f64 = schedstat
        .split(' ')
        .next()
        .unwrap_or("")
        .parse()
        .expect("a number");
    1e-9 * nanoseconds
}

fn main() {
    let folder = std::env::args().nth(1).expect("a folder of the corpus");
    let read = |name: &str| std::fs::read_to_string(Path::new(&folder).join(name)).expect(name);
    let json = |name: &str| -> Value { serde_json::from_str(&read(name)).expect("JSON") };
    let checked = check(&read("model.stan"), "model.stan", &NoIncludes);
    let program = Arc::new(checked.program.expect("a program without errors"));
    let bound = Interpreter::default()
        .bind(program, &Table::read(&json("data.json")), &mut |_| {})
        .expect("data that fit");
    let start = Instant::now();
    let lowered = lower(&bound, LowerOptions::default()).expect("a graph");
    let density = GraphDensity::new(&lowered.graph, Execution::default());
    let built = start.elapsed().as_secs_f64();
    let oracle = json("oracle.json");
    let mode = oracle["points"].as_array().and_then(|points| points.last());
    let mode: Vec<f64> = mode
        .and_then(Value::as_array)
        .expect("points")
        .iter()
        .map(|x| x.as_f64().expect("a number"))
        .collect();
    let dim = mode.len();
    let noise = |k: usize| 0.03 * (1.0 + k as f64 * 12.9898).sin();
    let z: Vec<f64> = (0..dim * DRAWS)
        .map(|k| mode[k / DRAWS] + noise(k))
        .collect();
    let (mut values, mut grad) = (vec![0.0; DRAWS], vec![0.0; dim * DRAWS]);
    let mut ws = density.workspace(DRAWS);
    // The scheduler updates a thread's time only every few milliseconds, so many rounds are needed to make this error
    // small.
    let mean = |run: &mut dyn FnMut()| {
        run();
        let (start, mut rounds) = (processor(), 0);
        while rounds < 15 || processor() - start < 0.25 {
            run();
            rounds += 1;
        }
        (processor() - start) / f64::from(rounds * DRAWS as i32)
    };
    let gradient = mean(&mut || {
        let into = LanesMut::new(&mut grad, dim, DRAWS);
        density.value_grad(&mut ws, Lanes::new(&z, dim, DRAWS), &mut values, into);
    });
    let value = mean(&mut || density.value(&mut ws, Lanes::new(&z, dim, DRAWS), &mut values));
    let mut product = vec![0.0; dim * DRAWS];
    let hvp = mean(&mut || {
        let into = LanesMut::new(&mut product, dim, DRAWS);
        density.hvp(
            &mut ws,
            Lanes::new(&z, dim, DRAWS),
            Lanes::new(&grad, dim, DRAWS),
            into,
        );
    });
    eprintln!(
        "build {:.1} ms; a draw: value {:.1} µs, gradient {:.1} µs, Hessian-vector product {:.1} µs",
        1e3 * built,
        1e6 * value,
        1e6 * gradient,
        1e6 * hvp
    );
    let points: Vec<Vec<f64>> = (0..DRAWS)
        .map(|draw| (0..dim).map(|i| z[i * DRAWS + draw]).collect())
        .collect();
    let peer = json!({"folder": folder, "points": points, "values": values, "seconds": gradient});
    println!("{peer}");
}
