//! Tests every operation at NaN, infinities, subnormal and huge numbers and zeros of both signs. The evaluation of
//! values, gradients and Hessian-vector products must end. Fast and slow values must agree, and the bits of a lane must
//! not depend on other lanes.

use jensen_density::{Lanes, LanesMut, LogDensity, TwiceDifferentiable};
use jensen_graph::{ElemOp, Execution, Graph, GraphDensity, MatMul, NodeId, evaluate};
use jensen_math::simd::Simd;

const SPECIAL: [f64; 12] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MAX,
    -f64::MAX,
    f64::MIN_POSITIVE,
    5e-324,
    -5e-324,
    0.0,
    -0.0,
    0.5,
    -2.0,
];

/// Returns whether an operation may return a number if an argument is NaN. By their definitions, comparisons, powers
/// and selections may do so.
fn may_be_finite(op: ElemOp, args: &[f64]) -> bool {
    match op {
        ElemOp::Eq | ElemOp::Lt | ElemOp::Le | ElemOp::Sign | ElemOp::Pivot | ElemOp::Select => {
            true
        }
        ElemOp::Pow if args[1] == 0.0 || args[0] == 1.0 => true,
        _ => args.iter().all(|x| !x.is_nan()),
    }
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

/// Returns the values, gradients and Hessian-vector products at the draws, evaluated in blocks of `lanes` lanes. Each
/// draw is a row of coordinates.
fn everything(density: &GraphDensity, draws: &[Vec<f64>], lanes: usize) -> [Vec<f64>; 3] {
    let dim = density.dim();
    let mut found = [Vec::new(), Vec::new(), Vec::new()];
    let mut ws = density.workspace(lanes);
    for block in draws.chunks(lanes) {
        let n = block.len();
        let z: Vec<f64> = (0..dim)
            .flat_map(|i| block.iter().map(move |draw| draw[i]))
            .collect();
        let v: Vec<f64> = (0..dim).flat_map(|i| vec![0.3 + i as f64; n]).collect();
        let (mut value, mut gradient, mut product) =
            (vec![0.0; n], vec![0.0; dim * n], vec![0.0; dim * n]);
        let of = |x: &[f64]| -> Vec<f64> {
            (0..n)
                .flat_map(|l| (0..dim).map(move |i| (i, l)))
                .map(|(i, l)| x[i * n + l])
                .collect()
        };
        let at = Lanes::new(&z, dim, n);
        density.value_grad(
            &mut ws,
            at,
            &mut value,
            LanesMut::new(&mut gradient, dim, n),
        );
        let mut alone = vec![0.0; n];
        density.value(&mut ws, at, &mut alone);
        assert!(
            alone.iter().zip(&value).all(|(a, b)| same(*a, *b)),
            "{alone:?} {value:?}"
        );
        density.hvp(
            &mut ws,
            at,
            Lanes::new(&v, dim, n),
            LanesMut::new(&mut product, dim, n),
        );
        found[0].extend(value);
        found[1].extend(of(&gradient));
        found[2].extend(of(&product));
    }
    found
}

/// Returns whether an argument is a whole number, such as an order. Programs pass only data to such arguments, and
/// reject sizes above a limit.
fn counts(op: ElemOp, which: usize) -> bool {
    let name = op.name();
    which == 0 && name.starts_with("bessel_") || which == 2 && name == "wiener_ratio"
}

fn draws(op: ElemOp) -> Vec<Vec<f64>> {
    let arity = op.arity();
    // Testing all combinations of three arguments would take minutes, so only one number of each kind is used.
    let few = [f64::NAN, f64::INFINITY, f64::MAX, 5e-324, -0.0, 0.5];
    let special = if arity < 3 { &SPECIAL[..] } else { &few };
    let count = special.len().pow(arity as u32);
    let all =
        move |k: usize| (0..arity).all(|i| !counts(op, i) || digit(special, k, i).abs() < 1.0);
    let draw = |k: usize| (0..arity).map(|i| digit(special, k, i)).collect();
    (0..count).filter(|&k| all(k)).map(draw).collect()
}

fn digit(special: &[f64], k: usize, i: usize) -> f64 {
    special[k / special.len().pow(i as u32) % special.len()]
}

#[test]
fn elementwise_operations_survive_special_values() {
    let mut falls = Vec::new();
    for &op in ElemOp::ALL {
        let arity = op.arity();
        let draws = draws(op);
        let mut graph = Graph::new();
        let z = graph.input(arity);
        let args: Vec<NodeId> = (0..arity).map(|i| graph.element(z, i)).collect();
        let out = graph.elem(op, &args);
        graph.set_outputs(vec![out]);
        for simd in Simd::available() {
            let density = GraphDensity::new(&graph, Execution { simd, threads: 1 });
            let found = everything(&density, &draws, draws.len());
            // With another number of lanes, the draws are at other positions of their SIMD vectors.
            let other = everything(&density, &draws, 7);
            for (k, (found, other)) in found.iter().zip(&other).enumerate() {
                let parts = found.len() / draws.len();
                if let Some(at) = (0..found.len()).find(|&i| !same(found[i], other[i])) {
                    falls.push(format!(
                        "{} on {simd}: output {k} at {:?} is {} or {}",
                        op.name(),
                        draws[at / parts],
                        found[at],
                        other[at]
                    ));
                }
            }
            for (draw, &fast) in draws.iter().zip(&found[0]) {
                let slow = op.value(draw);
                let near = (fast - slow).abs() <= 1e-12 * slow.abs() + 1e-300;
                if !(same(fast, slow) || fast == slow || near) {
                    falls.push(format!(
                        "{} on {simd} at {draw:?}: {fast} where the table has {slow}",
                        op.name()
                    ));
                }
                if fast.is_finite() && !may_be_finite(op, draw) {
                    falls.push(format!("{} on {simd} at {draw:?}: {fast}", op.name()));
                }
            }
        }
    }
    assert!(
        falls.is_empty(),
        "{} falls:\n{}",
        falls.len(),
        falls.join("\n")
    );
}

const N: usize = 3;

const BASE: [f64; N * N + N] = [
    2.0, 0.3, 0.1, 0.3, 1.5, -0.2, 0.1, -0.2, 1.0, 0.7, -1.1, 0.4,
];

type Structural = fn(&mut Graph, NodeId, NodeId) -> NodeId;

const STRUCTURAL: [(&str, Structural); 20] = [
    ("gather", |g, a, _| g.gather(a, &[8, 0, 0, 4])),
    ("scatter", |g, a, _| {
        g.scatter_add(a, &[3, 1, 1, 0, 2, 2, 2, 0, 3], 5)
    }),
    ("concat", |g, a, b| g.concat(&[b, a])),
    ("broadcast", |g, a, b| {
        let (x, shape) = (g.element(a, 4), g.shape(b));
        g.broadcast(x, shape)
    }),
    ("transpose", |g, a, _| g.transpose(a, N, N)),
    ("sum", |g, a, _| g.sum(a)),
    ("max", |g, a, _| g.max(a)),
    ("cumsum", |g, a, _| g.cumsum(a)),
    ("matmul", |g, a, b| g.matmul(a, b, product(1, false))),
    ("matmul of transposed", |g, a, b| {
        g.matmul(a, b, product(1, true))
    }),
    ("square", |g, a, _| g.matmul(a, a, product(N, false))),
    ("cholesky", |g, a, _| g.cholesky(a, N)),
    ("tri_solve", |g, a, b| g.tri_solve(a, b, N, 1, false)),
    ("tri_solve of transposed", |g, a, b| {
        g.tri_solve(a, b, N, 1, true)
    }),
    ("solve", |g, a, b| g.solve(a, b, N, 1, false)),
    ("solve of transposed", |g, a, b| g.solve(a, b, N, 1, true)),
    ("log_abs_det", |g, a, _| g.log_abs_det(a, N)),
    ("determinant", |g, a, _| g.determinant(a, N)),
    ("eigen_sym", |g, a, _| {
        let found = g.eigen_sym(a, N);
        g.slice(found, 0, N)
    }),
    ("elements of a chain", |g, a, b| {
        let (mut x, first) = (g.element(b, 0), g.element(a, 0));
        for i in 0..N {
            let (slope, step) = (g.mul(first, x), g.element(b, i));
            x = g.add(slope, step);
        }
        x
    }),
];

fn product(columns: usize, left_transposed: bool) -> MatMul {
    MatMul {
        m: N as u32,
        k: N as u32,
        n: columns as u32,
        left_transposed,
        right_transposed: false,
    }
}

#[test]
fn structural_operations_survive_special_values() {
    let mut draws = vec![BASE.to_vec()];
    for special in SPECIAL {
        draws.push(vec![special; BASE.len()]);
        for at in 0..BASE.len() {
            let mut draw = BASE.to_vec();
            draw[at] = special;
            draws.push(draw);
        }
    }
    let mut falls = Vec::new();
    for (name, build) in STRUCTURAL {
        let mut all = Graph::new();
        let z = all.input(BASE.len());
        let (a, b) = (all.slice(z, 0, N * N), all.slice(z, N * N, N));
        let out = build(&mut all, a, b);
        for at in 0..all.shape(out).len as usize {
            let mut graph = all.clone();
            let one = graph.element(out, at);
            graph.set_outputs(vec![one]);
            let slow: Vec<f64> = draws
                .iter()
                .map(|draw| evaluate(&graph, &[draw], None)[0][0])
                .collect();
            for simd in Simd::available() {
                let density = GraphDensity::new(&graph, Execution { simd, threads: 1 });
                let found = everything(&density, &draws, draws.len());
                let other = everything(&density, &draws, 7);
                let alike = found.iter().flatten().zip(other.iter().flatten());
                if alike.clone().any(|(x, y)| !same(*x, *y)) {
                    falls.push(format!("{name} {at} on {simd}: lanes are not their own"));
                }
                for ((draw, &fast), &slow) in draws.iter().zip(&found[0]).zip(&slow) {
                    // The solution of a singular system depends on rounding errors.
                    let factored = name.contains("solve") || name == "cholesky";
                    if factored && draw.iter().all(|x| same(*x, draw[0])) {
                        continue;
                    }
                    // An expression that overflows in one evaluator may overflow later in another.
                    let both_lost = !fast.is_finite() && !slow.is_finite();
                    let near = (fast - slow).abs() <= 1e-9 * slow.abs() + 1e-300;
                    if !(both_lost || near) {
                        falls.push(format!(
                            "{name} {at} on {simd} at {draw:?}: {fast}, not {slow}"
                        ));
                    }
                }
            }
        }
    }
    assert!(
        falls.is_empty(),
        "{} falls:\n{}",
        falls.len(),
        falls.join("\n")
    );
}
