//! Measures the processor time that the gradient of a large regression takes, in nanoseconds per observation and draw.
//! Every instruction set of the machine is measured. Run `cargo run --release -p jensen-graph --example
//! regression_speed [ROWS [LIKELIHOOD [SIMD]]]`.
use jensen_density::{Lanes, LanesMut, LogDensity};
use jensen_graph::{ElemOp, Execution, Graph, GraphDensity, MatMul, NodeId};
use jensen_math::simd::Simd;

const PREDICTORS: usize = 8;
const LANES: usize = 64;
/// The number of evaluations between two readings of the clock, whose resolution is coarse.
const REPEATS: usize = 8;

fn noise(at: usize) -> f64 {
    let x = (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x >> 11) as f64 / (1u64 << 53) as f64
}

/// Builds the log density, up to a constant, of a regression of `rows` rows with an intercept. `kind` builds the log
/// density from the linear predictors.
fn regression(rows: usize, kind: fn(&mut Graph, NodeId, usize, NodeId) -> NodeId) -> Graph {
    let mut g = Graph::new();
    let z = g.input(PREDICTORS + 2);
    let x: Vec<f64> = (0..rows * PREDICTORS).map(|at| noise(at) - 0.5).collect();
    let x = g.vector(&x);
    let (intercept, slopes, shape) = (
        g.element(z, 0),
        g.slice(z, 1, PREDICTORS),
        g.element(z, PREDICTORS + 1),
    );
    let dims = MatMul {
        m: rows as u32,
        k: PREDICTORS as u32,
        n: 1,
        left_transposed: false,
        right_transposed: false,
    };
    let product = g.matmul(x, slopes, dims);
    let eta = g.add(intercept, product);
    let likelihood = kind(&mut g, eta, rows, shape);
    let squares = g.square(z);
    let prior = g.sum(squares);
    let prior = g.scale(-0.5, prior);
    let total = g.add(prior, likelihood);
    g.set_outputs(vec![total]);
    g
}

fn logistic(g: &mut Graph, eta: NodeId, rows: usize, _: NodeId) -> NodeId {
    let signs: Vec<f64> = (0..rows)
        .map(|n| f64::from(noise(7 * n + 3) < 0.4) * 2.0 - 1.0)
        .collect();
    let signs = g.vector(&signs);
    let away = g.mul(signs, eta);
    let each = g.elem(ElemOp::Log1pExp, &[away]);
    let sum = g.sum(each);
    g.neg(sum)
}

fn poisson(g: &mut Graph, eta: NodeId, rows: usize, _: NodeId) -> NodeId {
    let counts: Vec<f64> = (0..rows).map(|n| (noise(n) * 5.0).floor()).collect();
    let counts = g.vector(&counts);
    let linear = g.mul(counts, eta);
    let mean = g.exp(eta);
    let each = g.sub(linear, mean);
    g.sum(each)
}

fn negative_binomial(g: &mut Graph, eta: NodeId, rows: usize, shape: NodeId) -> NodeId {
    let counts: Vec<f64> = (0..rows).map(|n| (noise(n) * 5.0).floor()).collect();
    let counts = g.vector(&counts);
    let phi = g.exp(shape);
    let linear = g.mul(counts, eta);
    let above = g.sub(eta, shape);
    let above = g.elem(ElemOp::Log1pExp, &[above]);
    let (weighted, plain) = (g.mul(counts, above), g.sum(above));
    let (weighted, plain) = (g.sum(weighted), g.mul(phi, plain));
    let rest = g.add(weighted, plain);
    let linear = g.sum(linear);
    g.sub(linear, rest)
}

fn normal(g: &mut Graph, eta: NodeId, rows: usize, shape: NodeId) -> NodeId {
    let y: Vec<f64> = (0..rows).map(noise).collect();
    let y = g.vector(&y);
    let sigma = g.exp(shape);
    let rest = g.sub(y, eta);
    let scaled = g.div(rest, sigma);
    let squares = g.square(scaled);
    let sum = g.sum(squares);
    g.scale(-0.5, sum)
}

fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").expect("Linux");
    let nanos = stat.split(' ').next().and_then(|x| x.parse::<f64>().ok());
    nanos.expect("a number") * 1e-9
}

fn main() {
    let rows: usize = std::env::args()
        .nth(1)
        .map_or(100_000, |n| n.parse().expect("rows"));
    type Kind = fn(&mut Graph, NodeId, usize, NodeId) -> NodeId;
    let kinds: [(&str, Kind); 4] = [
        ("logistic", logistic),
        ("poisson", poisson),
        ("negative binomial", negative_binomial),
        ("normal", normal),
    ];
    let wanted = |at: usize, name: &str| std::env::args().nth(at).is_none_or(|only| only == name);
    for (name, kind) in kinds {
        if !wanted(2, name) {
            continue;
        }
        let graph = regression(rows, kind);
        for simd in Simd::available() {
            if !wanted(3, simd.name()) {
                continue;
            }
            let execution = Execution { simd, threads: 1 };
            let density = GraphDensity::new(&graph, execution);
            let dim = density.dim();
            let z: Vec<f64> = (0..dim * LANES).map(|at| 0.4 * noise(at) - 0.2).collect();
            let (mut values, mut gradient) = (vec![0.0; LANES], vec![0.0; dim * LANES]);
            let mut workspace = density.workspace(LANES);
            let mut took = |value: bool| {
                let mut least = f64::INFINITY;
                for _ in 0..4 {
                    let start = processor();
                    for _ in 0..REPEATS {
                        let z = Lanes::new(&z, dim, LANES);
                        match value {
                            true => density.value(&mut workspace, z, &mut values),
                            false => density.value_grad(
                                &mut workspace,
                                z,
                                &mut values,
                                LanesMut::new(&mut gradient, dim, LANES),
                            ),
                        }
                    }
                    least = least.min(processor() - start);
                }
                least * 1e9 / (rows * LANES * REPEATS) as f64
            };
            let (gradient, value) = (took(false), took(true));
            println!(
                "{name:18} {:8} value {value:.2} gradient {gradient:.2} ns, {} instructions",
                simd.name(),
                density.instructions()
            );
        }
    }
}
