//! Tests solvers. Values are compared with closed forms, and gradients and Hessian-vector products are compared with
//! finite differences. Lanes are evaluated alone and together, and every pass of the executor is compared with the slow
//! evaluator.

use jensen_density::{Lanes, LanesMut, LogDensity, TwiceDifferentiable};
use jensen_graph::{ElemOp, Execution, Graph, GraphDensity, NodeId, Solver, SolverKind, evaluate};
use jensen_math::simd::Simd;
use jensen_math::solvers::{Ends, Integral, Method, NODE, Ode, Root};

const METHODS: [Method; 3] = [Method::DormandPrince, Method::CashKarp, Method::Radau];

fn body(inputs: [usize; 3], rates: impl Fn(&mut Graph, NodeId, NodeId, NodeId) -> NodeId) -> Graph {
    let mut graph = Graph::new();
    let [clock, states, parameters] = inputs.map(|len| graph.input(len));
    let out = rates(&mut graph, clock, states, parameters);
    graph.set_outputs(vec![out]);
    graph
}

/// Builds the body of a differential equation. Its rates are `rates(t, y, θ)` times the length of the interval.
fn equation(ode: Ode, rates: impl Fn(&mut Graph, NodeId, NodeId, NodeId) -> NodeId) -> Solver {
    let m = ode.parameters;
    let body = body([1, ode.states, m + 2], |g, clock, y, p| {
        let (a, b) = (g.element(p, m), g.element(p, m + 1));
        let extent = g.sub(b, a);
        let way = g.mul(extent, clock);
        let t = g.add(a, way);
        let theta = g.slice(p, 0, m);
        let f = rates(g, t, y, theta);
        g.mul(extent, f)
    });
    let kind = SolverKind::Ode(ode);
    Solver { kind, body }
}

fn ode(method: Method, (states, parameters, times): (usize, usize, usize), tolerance: f64) -> Ode {
    Ode {
        method,
        states,
        parameters,
        times,
        relative: tolerance,
        absolute: vec![tolerance; states],
        max_steps: 100_000,
        fixed_times: false,
    }
}

/// Returns a predator-prey model with a seasonal forcing, which makes the solution depend on time.
fn predators(method: Method, times: usize, tolerance: f64) -> Solver {
    equation(ode(method, (2, 4, times), tolerance), |g, t, y, p| {
        let [u, v] = [0, 1].map(|i| g.element(y, i));
        let [a, b, c, d] = [0, 1, 2, 3].map(|i| g.element(p, i));
        let wave = g.elem(ElemOp::Sin, &[t]);
        let wave = g.scale(0.1, wave);
        let born = g.add(a, wave);
        let eaten = g.mul(b, v);
        let net = g.sub(born, eaten);
        let du = g.mul(u, net);
        let fed = g.mul(d, u);
        let net = g.sub(fed, c);
        let dv = g.mul(v, net);
        g.concat(&[du, dv])
    })
}

/// Returns the chemical reaction of Robertson (1966), with its rate constants as parameters.
fn robertson(times: usize, tolerance: f64) -> Solver {
    equation(
        ode(Method::Radau, (3, 3, times), tolerance),
        |g, _, y, p| {
            let [a, b, c] = [0, 1, 2].map(|i| g.element(y, i));
            let [k1, k2, k3] = [0, 1, 2].map(|i| g.element(p, i));
            let slow = g.mul(k1, a);
            let bc = g.mul(b, c);
            let back = g.mul(k3, bc);
            let bb = g.square(b);
            let fast = g.mul(k2, bb);
            let da = g.sub(back, slow);
            let spent = g.add(back, fast);
            let db = g.sub(slow, spent);
            g.concat(&[da, db, fast])
        },
    )
}

/// Builds a log density in which `arguments` maps z of length `dim` to the solver's x. Its value is a smooth function
/// of the results with the scale `scale`.
fn density(
    solver: Solver,
    dim: usize,
    scale: &[f64],
    arguments: impl Fn(&mut Graph, NodeId) -> NodeId,
) -> Graph {
    let mut graph = Graph::new();
    let z = graph.input(dim);
    let x = arguments(&mut graph, z);
    let results = graph.solver_value(solver, x);
    let scale = graph.vector(scale);
    let scaled = graph.mul(scale, results);
    let wave = graph.elem(ElemOp::Sin, &[scaled]);
    let square = graph.square(scaled);
    let sum = graph.add(wave, square);
    let out = graph.sum(sum);
    graph.set_outputs(vec![out]);
    jensen_graph::verify::verify(&graph).expect("well formed");
    graph
}

fn value_grad(density: &GraphDensity, z: &[f64], lanes: usize) -> (Vec<f64>, Vec<f64>) {
    let dim = density.dim();
    let (mut value, mut grad) = (vec![0.0; lanes], vec![0.0; dim * lanes]);
    let into = LanesMut::new(&mut grad, dim, lanes);
    let mut ws = density.workspace(lanes);
    density.value_grad(&mut ws, Lanes::new(z, dim, lanes), &mut value, into);
    (value, grad)
}

fn product(density: &GraphDensity, z: &[f64], v: &[f64]) -> Vec<f64> {
    let dim = density.dim();
    let mut ws = density.workspace(1);
    let mut out = vec![0.0; dim];
    let one = |data| Lanes::new(data, dim, 1);
    density.linearize(&mut ws, Lanes::new(z, dim, 1));
    density.apply(&mut ws, one(v), LanesMut::new(&mut out, dim, 1));
    let mut again = vec![0.0; dim];
    density.hvp(
        &mut ws,
        Lanes::new(z, dim, 1),
        one(v),
        LanesMut::new(&mut again, dim, 1),
    );
    assert_close("both ways of a product", &out, &again, 1e-9);
    out
}

fn assert_close(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    let scale = expected.iter().fold(1e-3_f64, |m, x| m.max(x.abs()));
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        let off = (a - b).abs();
        assert!(
            off <= tolerance * scale,
            "{what}, {i}: {a} and {b}, off by {off:e}"
        );
    }
}

/// Compares the gradient with differences of values, and the Hessian-vector product with differences of gradients. Also
/// compares the executor with the slow evaluator, and the graph with the result of parsing its text form.
fn check(what: &str, graph: &Graph, z: &[f64], tolerance: f64) {
    let density = GraphDensity::new(graph, Execution::default());
    let (value, gradient) = value_grad(&density, z, 1);
    let slow = evaluate(graph, &[z], None)[0][0];
    assert_close(&format!("{what}: slow value"), &value, &[slow], 1e-7);
    let v: Vec<f64> = (0..z.len()).map(|i| 0.5 + 0.2 * (i as f64).cos()).collect();
    let found = product(&density, z, &v);
    let moved = |i: Option<usize>, h: f64| -> Vec<f64> {
        let mut z = z.to_vec();
        match i {
            Some(i) => z[i] += h * z[i].abs().max(0.1),
            None => z.iter_mut().zip(&v).for_each(|(z, v)| *z += h * v),
        }
        z
    };
    let h = 1e-4;
    let slopes: Vec<f64> = (0..z.len())
        .map(|i| {
            let [up, down] = [h, -h].map(|h| value_grad(&density, &moved(Some(i), h), 1).0[0]);
            (up - down) / (2.0 * h * z[i].abs().max(0.1))
        })
        .collect();
    assert_close(&format!("{what}: gradient"), &gradient, &slopes, tolerance);
    let h = 1e-5;
    let [up, down] = [h, -h].map(|h| value_grad(&density, &moved(None, h), 1).1);
    let bends: Vec<f64> = up
        .iter()
        .zip(&down)
        .map(|(u, d)| (u - d) / (2.0 * h))
        .collect();
    assert_close(&format!("{what}: product"), &found, &bends, tolerance);
    let text = density.graph().to_string();
    let again = Graph::parse(&text).unwrap_or_else(|e| panic!("{what}: {e}\n{text}"));
    assert_eq!(again.to_string(), text, "{what}: the text form");
    let slow = evaluate(density.graph(), &[z], None);
    assert_close(&format!("{what}: slow gradient"), &slow[1], &gradient, 1e-5);
}

/// Computes the arguments from z: the logarithms of four parameters, two states, and two increments of time. There are
/// three output times, the first of which is given.
fn predator_arguments(g: &mut Graph, z: NodeId) -> NodeId {
    let theta = g.slice(z, 0, 4);
    let theta = g.exp(theta);
    let states = g.slice(z, 4, 2);
    let start = g.slice(z, 6, 1);
    let first = g.slice(z, 7, 1);
    let last = g.constant(7.5);
    g.concat(&[states, theta, start, first, last])
}

const PREDATOR_POINT: [f64; 8] = [-0.4, -3.1, -0.2, -3.6, 30.0, 6.0, 0.3, 3.2];

#[test]
fn predators_and_prey() {
    for method in METHODS {
        let solver = predators(method, 2, 1e-9);
        let graph = density(solver, 8, &[0.02, 0.05, 0.03, 0.04], predator_arguments);
        check(&format!("{method:?}"), &graph, &PREDATOR_POINT, 2e-6);
    }
}

#[test]
fn methods_agree() {
    let x = [30.0, 6.0, 0.55, 0.028, 0.8, 0.024, 0.0, 1.0, 5.0, 20.0];
    let solved = |method, tolerance| {
        let mut graph = Graph::new();
        let z = graph.input(x.len());
        let out = graph.solver_value(predators(method, 3, tolerance), z);
        graph.set_outputs(vec![out]);
        evaluate(&graph, &[&x], None).swap_remove(0)
    };
    let best = solved(Method::DormandPrince, 1e-12);
    for method in METHODS {
        for tolerance in [1e-5, 1e-8, 1e-11] {
            let found = solved(method, tolerance);
            assert_close(
                &format!("{method:?} at {tolerance}"),
                &found,
                &best,
                200.0 * tolerance,
            );
        }
    }
}

#[test]
fn oscillator() {
    for method in METHODS {
        let solver = equation(ode(method, (2, 1, 2), 1e-10), |g, _, y, p| {
            let [x, v] = [0, 1].map(|i| g.element(y, i));
            let square = g.square(p);
            let pull = g.mul(square, x);
            let pull = g.neg(pull);
            g.concat(&[v, pull])
        });
        let mut graph = Graph::new();
        let z = graph.input(6);
        let out = graph.solver_value(solver, z);
        graph.set_outputs(vec![out]);
        let (omega, t1, t2) = (1.7, 0.4, 9.0);
        let found = evaluate(&graph, &[&[1.0, 0.5, omega, 0.0, t1, t2]], None).swap_remove(0);
        for (k, t) in [t1, t2].into_iter().enumerate() {
            let (s, c) = (omega * t).sin_cos();
            let exact = [c + 0.5 / omega * s, 0.5 * c - omega * s];
            assert_close(
                &format!("{method:?}"),
                &found[2 * k..2 * k + 2],
                &exact,
                1e-7,
            );
        }
    }
}

#[test]
fn stiff_reaction() {
    // Reference values from Hairer and Wanner's test set for Robertson's problem.
    let known = [
        (
            0.4,
            [
                0.985_172_113_860_5,
                3.386_395_378_978e-5,
                0.014_794_022_185_5,
            ],
        ),
        (40.0, [0.715_827_068_8, 9.185_534_76e-6, 0.284_163_745_7]),
        (4e5, [4.938_3e-3, 1.984_9e-8, 0.995_061_7]),
    ];
    let mut solver = robertson(3, 1e-9);
    if let SolverKind::Ode(ode) = &mut solver.kind {
        ode.absolute = vec![1e-10, 1e-14, 1e-10];
    }
    let mut graph = Graph::new();
    let z = graph.input(10);
    let out = graph.solver_value(solver.clone(), z);
    graph.set_outputs(vec![out]);
    let x = [1.0, 0.0, 0.0, 0.04, 3e7, 1e4, 0.0, 0.4, 40.0, 4e5];
    let found = evaluate(&graph, &[&x], None).swap_remove(0);
    for (k, (t, states)) in known.into_iter().enumerate() {
        for (i, y) in states.into_iter().enumerate() {
            let off = (found[3 * k + i] / y - 1.0).abs();
            assert!(off < 2e-4, "state {i} at {t}: {} and {y}", found[3 * k + i]);
        }
    }
    let scale: Vec<f64> = [1.0, 2e4, 1.0].repeat(3);
    let graph = density(solver, 3, &scale, |g, z| {
        let rates = g.exp(z);
        let before = g.vector(&[1.0, 0.0, 0.0]);
        let times = g.vector(&[0.0, 0.4, 40.0, 400.0]);
        g.concat(&[before, rates, times])
    });
    check(
        "Robertson",
        &graph,
        &[0.04_f64.ln(), 3e7_f64.ln(), 1e4_f64.ln()],
        1e-5,
    );
}

/// The reaction is written as residuals, the last of which conserves mass. The test compares the values with the
/// reference values, and checks every pass.
#[test]
fn stiff_reaction_that_conserves_mass() {
    let residuals = |times: usize, tolerance: f64| {
        let mut ode = ode(Method::Implicit, (3, 6, times), tolerance);
        ode.absolute = vec![1e-10, 1e-14, 1e-10];
        let body = body([1, 6, 8], |g, _, both, p| {
            let [a, b, c, da, db] = [0, 1, 2, 3, 4].map(|i| g.element(both, i));
            let [k1, k2, k3, start, end] = [0, 1, 2, 6, 7].map(|i| g.element(p, i));
            let extent = g.sub(end, start);
            let [da, db] = [da, db].map(|d| g.div(d, extent));
            let slow = g.mul(k1, a);
            let bc = g.mul(b, c);
            let back = g.mul(k3, bc);
            let bb = g.square(b);
            let fast = g.mul(k2, bb);
            let gain = g.sub(back, slow);
            let spent = g.add(gain, fast);
            let all = [a, b, c].into_iter().reduce(|x, y| g.add(x, y));
            let one = g.constant(1.0);
            let (first, second) = (g.sub(da, gain), g.add(db, spent));
            let third = g.sub(all.expect("three states"), one);
            g.concat(&[first, second, third])
        });
        let kind = SolverKind::Ode(ode);
        Solver { kind, body }
    };
    let mut graph = Graph::new();
    let z = graph.input(13);
    let out = graph.solver_value(residuals(3, 1e-9), z);
    graph.set_outputs(vec![out]);
    let mut x = vec![1.0, 0.0, 0.0, 0.04, 3e7, 1e4, -0.04, 0.04, 0.0];
    x.extend([0.0, 0.4, 40.0, 4e5]);
    let found = evaluate(&graph, &[&x], None).swap_remove(0);
    let known = [0.985_172_113_860_5, 0.715_827_068_8, 4.938_3e-3];
    for (k, y) in known.into_iter().enumerate() {
        let off = (found[3 * k] / y - 1.0).abs();
        assert!(off < 2e-4, "at time {k}: {} and {y}", found[3 * k]);
        let total: f64 = found[3 * k..3 * k + 3].iter().sum();
        assert!((total - 1.0).abs() < 1e-12, "at time {k}: {total} in all");
    }
    let scale: Vec<f64> = [1.0, 2e4, 1.0].repeat(3);
    let graph = density(residuals(3, 1e-9), 3, &scale, |g, z| {
        let rates = g.exp(z);
        let before = g.vector(&[1.0, 0.0, 0.0]);
        let slow = g.element(rates, 0);
        let away = g.neg(slow);
        let none = g.constant(0.0);
        let times = g.vector(&[0.0, 0.4, 40.0, 400.0]);
        g.concat(&[before, rates, away, slow, none, times])
    });
    let z = [0.04_f64.ln(), 3e7_f64.ln(), 1e4_f64.ln()];
    check("Robertson with mass", &graph, &z, 1e-5);
}

/// The error of an implicit solution stays near its tolerance in every state. The tolerance refers to the states,
/// although the error estimate is of lower order than the states.
#[test]
fn stiff_errors_stay_near_their_tolerances() {
    let x = [1.0, 0.0, 0.0, 0.04, 3e7, 1e4, 0.0, 0.1, 1.0, 40.0, 4e3];
    let solved = |tolerance: f64| {
        let mut solver = robertson(4, tolerance);
        if let SolverKind::Ode(ode) = &mut solver.kind {
            ode.absolute = vec![tolerance, 1e-4 * tolerance, tolerance];
        }
        let mut graph = Graph::new();
        let z = graph.input(x.len());
        let out = graph.solver_value(solver, z);
        graph.set_outputs(vec![out]);
        evaluate(&graph, &[&x], None).swap_remove(0)
    };
    let best = solved(1e-13);
    for tolerance in [1e-4, 1e-6, 2e-7, 1e-8, 1e-10] {
        let found = solved(tolerance);
        for (k, (y, known)) in found.iter().zip(&best).enumerate() {
            let absolute = if k % 3 == 1 { 1e-4 } else { 1.0 };
            let off = (y - known).abs() / (tolerance * (absolute + known.abs()));
            assert!(off < 1.0, "state {} at {tolerance:e}: {off}", k % 3);
        }
    }
}

/// Builds a cube root and the point where a curve meets it. Each lane starts the search at a different point.
fn roots() -> Graph {
    let root = Root {
        unknowns: 2,
        parameters: 2,
        tolerance: 1e-8,
        max_steps: 100,
    };
    let body = body([0, 2, 2], |g, _, y, p| {
        let [u, v] = [0, 1].map(|i| g.element(y, i));
        let [a, b] = [0, 1].map(|i| g.element(p, i));
        let square = g.square(u);
        let cube = g.mul(square, u);
        let first = g.sub(cube, a);
        let curved = g.exp(v);
        let curved = g.add(curved, v);
        let product = g.mul(u, b);
        let second = g.sub(curved, product);
        g.concat(&[first, second])
    });
    let solver = Solver {
        kind: SolverKind::Root(root),
        body,
    };
    density(solver, 2, &[0.7, 0.9], |g, z| {
        let before = g.vector(&[1.0, -2.0]);
        let p = g.exp(z);
        g.concat(&[before, p])
    })
}

#[test]
fn roots_and_their_derivatives() {
    check("roots", &roots(), &[1.3, 0.4], 1e-6);
    let found = |a: f64| evaluate(&roots(), &[&[a, 0.4]], None)[0][0];
    assert!(found(2.0).is_finite());
    // The equations are u = a^(1/3) and v + e^v = u b.
    let u = 1.3_f64.exp().cbrt();
    let goal = u * 0.4_f64.exp();
    let mut v: f64 = 0.0;
    for _ in 0..50 {
        v -= (v.exp() + v - goal) / (v.exp() + 1.0);
    }
    let expected = (0.7 * u).sin() + (0.7 * u).powi(2) + (0.9 * v).sin() + (0.9 * v).powi(2);
    assert!((found(1.3) - expected).abs() < 1e-11);
}

fn integral(lower: bool, upper: bool) -> Solver {
    let integral = Integral {
        ends: Ends { lower, upper },
        parameters: 4,
        relative: 1e-10,
    };
    let body = body([NODE, 0, 4], |g, node, _, p| {
        let n: Vec<NodeId> = (0..NODE).map(|i| g.element(node, i)).collect();
        let [a, b, t0, t1] = [0, 1, 2, 3].map(|i| g.element(p, i));
        let terms = [(n[0], a), (n[1], b)].map(|(c, end)| g.mul(c, end));
        // The abscissa does not depend on a limit that is infinite.
        let mut x = n[2];
        for (finite, term) in [lower, upper].into_iter().zip(terms) {
            x = if finite { g.add(x, term) } else { x };
        }
        let extent = g.sub(b, a);
        let wide = g.mul(n[4], extent);
        let counts = if lower && upper { wide } else { n[5] };
        let square = g.square(x);
        let way = if lower || upper { x } else { square };
        let decay = g.mul(t0, way);
        let decay = g.neg(decay);
        let decay = g.exp(decay);
        let phase = g.mul(t1, x);
        let wave = g.elem(ElemOp::Sin, &[phase]);
        let one = g.constant(1.0);
        let wave = g.add(one, wave);
        let f = g.mul(decay, wave);
        g.mul(f, counts)
    });
    Solver {
        kind: SolverKind::Integral(integral),
        body,
    }
}

#[test]
fn integrals_and_their_derivatives() {
    // The antiderivative of e^(−s x) (1 + sin(k x)) is −e^(−s x) (1/s + (s sin kx + k cos kx) / (s² + k²)).
    let primitive = |s: f64, k: f64, x: f64| {
        -(-s * x).exp() * (1.0 / s + (s * (k * x).sin() + k * (k * x).cos()) / (s * s + k * k))
    };
    let (a, b, s, k) = (0.3, 2.1, 0.8, 1.7);
    let solved = |solver: Solver, x: &[f64]| {
        let mut graph = Graph::new();
        let z = graph.input(4);
        let out = graph.solver_value(solver, z);
        graph.set_outputs(vec![out]);
        evaluate(&graph, &[x], None)[0][0]
    };
    let cases = [
        (true, true, primitive(s, k, b) - primitive(s, k, a)),
        (true, false, -primitive(s, k, a)),
        (false, false, (std::f64::consts::PI / s).sqrt()),
    ];
    for (lower, upper, expected) in cases {
        let found = solved(integral(lower, upper), &[a, b, s, k]);
        assert!(
            (found - expected).abs() < 1e-10,
            "{lower} {upper}: {found} and {expected}"
        );
        let graph = density(integral(lower, upper), 4, &[1.3], |g, z| {
            let first = g.slice(z, 0, 2);
            let rest = g.slice(z, 2, 2);
            let rest = g.exp(rest);
            g.concat(&[first, rest])
        });
        check("an integral", &graph, &[a, b, s.ln(), k.ln()], 1e-6);
    }
}

/// The bits of a lane are the same whether it is evaluated alone or with other lanes, even if these are slow, fail or
/// end immediately.
#[test]
fn lanes_stand_alone() {
    let solvers = [
        density(
            predators(Method::DormandPrince, 2, 1e-6),
            8,
            &[0.02; 4],
            predator_arguments,
        ),
        density(
            predators(Method::Radau, 2, 1e-8),
            8,
            &[0.02; 4],
            predator_arguments,
        ),
        roots(),
    ];
    for graph in solvers {
        let dim = graph.inputs()[0].len;
        let base: Vec<f64> = if dim == 8 {
            PREDATOR_POINT.to_vec()
        } else {
            vec![1.3, 0.4]
        };
        let lanes = 27;
        let mut z = vec![0.0; dim * lanes];
        for lane in 0..lanes {
            for i in 0..dim {
                z[i * lanes + lane] = base[i] + 0.08 * ((3 * lane + 5 * i) as f64).sin();
            }
        }
        if dim == 8 {
            // The lanes include one with many steps, one whose time runs backwards, and one with NaN.
            z[5] = 3.5;
            z[7 * lanes + 1] = -1.0;
            z[4 * lanes + 2] = f64::NAN;
        }
        for simd in Simd::available() {
            let execution = Execution { simd, threads: 1 };
            let mut density = GraphDensity::new(&graph, execution);
            let (values, gradients) = value_grad(&density, &z, lanes);
            density.set_threads(2);
            let (again, _) = value_grad(&density, &z, lanes);
            let bits = |x: &[f64]| -> Vec<u64> { x.iter().map(|x| x.to_bits()).collect() };
            assert_eq!(bits(&values), bits(&again), "threads");
            for lane in 0..lanes {
                let own: Vec<f64> = (0..dim).map(|i| z[i * lanes + lane]).collect();
                let (value, gradient) = value_grad(&density, &own, 1);
                assert_eq!(
                    bits(&value),
                    bits(&values[lane..=lane]),
                    "value of lane {lane}"
                );
                let there: Vec<f64> = (0..dim).map(|i| gradients[i * lanes + lane]).collect();
                assert_eq!(bits(&gradient), bits(&there), "gradient of lane {lane}");
                let fails = dim == 8 && (lane == 1 || lane == 2);
                assert_eq!(value[0].is_finite(), !fails, "lane {lane}: {}", value[0]);
            }
        }
    }
}

/// Systems that do not depend on z are solved when a program is bound.
#[test]
fn data_are_solved_once() {
    let graph = density(
        predators(Method::DormandPrince, 2, 1e-8),
        1,
        &[0.02; 4],
        |g, _| g.vector(&[30.0, 6.0, 0.55, 0.028, 0.8, 0.024, 0.0, 1.0, 5.0]),
    );
    let density = GraphDensity::new(&graph, Execution::default());
    let (value, gradient) = value_grad(&density, &[0.4], 1);
    assert!(value[0].is_finite() && gradient == [0.0]);
}

/// Only a lane that exceeds the limit of steps is rejected.
#[test]
fn steps_are_limited() {
    let mut solver = predators(Method::DormandPrince, 2, 1e-8);
    if let SolverKind::Ode(ode) = &mut solver.kind {
        ode.max_steps = 3;
    }
    let graph = density(solver, 8, &[0.02; 4], predator_arguments);
    let density = GraphDensity::new(&graph, Execution::default());
    let (value, gradient) = value_grad(&density, &PREDATOR_POINT, 1);
    assert!(value[0].is_nan() && gradient.iter().all(|g| g.is_nan()));
}

/// A malformed solver is rejected with the number of its line, and never causes a panic.
#[test]
fn malformed_solvers_are_refused() {
    let mut graph = Graph::new();
    let z = graph.input(9);
    let out = graph.solver_value(predators(Method::DormandPrince, 2, 1e-6), z);
    graph.set_outputs(vec![out]);
    let text = graph.to_string();
    let changes = [
        ("states=2", "states=3", "absolute tolerance"),
        ("times=2", "times=0", "without states or times"),
        ("times=2", "times=4294967295", "more elements"),
        ("times=2", "times=3", "shape"),
        ("dormand_prince", "leapfrog", "`leapfrog` is no method"),
        ("ode ", "pde ", "no solver is called `pde`"),
        ("relative=1e-6", "relative=small", "expected a number"),
        ("in0 = lane [1]", "in0 = shared [1]", "in the body"),
        ("solver s0 value", "solver s1 value", "s1"),
        (
            "solver s0 value",
            "solver s0 sideways",
            "no pass is called `sideways`",
        ),
        ("}", "", "the text ends"),
    ];
    assert!(Graph::parse(&text).is_ok());
    for (from, to, expected) in changes {
        assert!(text.contains(from), "{from} in {text}");
        let error = Graph::parse(&text.replacen(from, to, 1))
            .expect_err(to)
            .to_string();
        assert!(error.contains(expected), "{to}: {error}");
    }
}

/// If times are data, derivatives with respect to times are 0, and all other derivatives stay the same.
#[test]
fn times_that_are_data_have_no_derivatives() {
    for method in METHODS {
        let both = [false, true].map(|fixed| {
            let mut solver = predators(method, 2, 1e-8);
            if let SolverKind::Ode(ode) = &mut solver.kind {
                ode.fixed_times = fixed;
            }
            let graph = density(solver, 8, &[0.05; 4], predator_arguments);
            let density = GraphDensity::new(&graph, Execution::default());
            let (value, mut gradient) = value_grad(&density, &PREDATOR_POINT, 1);
            let times = gradient.split_off(6);
            let mut direction = [0.3; 8];
            direction[6..].fill(0.0);
            let mut product = product(&density, &PREDATOR_POINT, &direction);
            product.truncate(6);
            (value, gradient, product, times)
        });
        let [asked, fixed] = both;
        assert_eq!(asked.0, fixed.0, "{method:?}");
        assert_close("gradient", &fixed.1, &asked.1, 1e-11);
        assert_close("product", &fixed.2, &asked.2, 1e-9);
        assert!(asked.3.iter().all(|x| *x != 0.0), "{method:?}");
        assert_eq!(fixed.3, [0.0; 2], "{method:?}");
    }
}
