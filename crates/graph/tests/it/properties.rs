//! Tests random graphs. The executor is compared with the slow evaluator, lanes are compared with each other, and
//! derivatives are compared with finite differences. Also tests that re-rolling shrinks loops.

use crate::random_graphs::{Recipe, build, config, noise, recipes};
use crate::running::{Results, density, run};
use jensen_density::LogDensity;
use jensen_graph::{ElemOp, Graph, NodeId, evaluate, passes};
use jensen_math::simd::Simd;
use proptest::prelude::*;

fn bits(results: &Results) -> Vec<u64> {
    let all = [&results.values, &results.gradients, &results.products];
    all.into_iter().flatten().map(|x| x.to_bits()).collect()
}

fn lanes_of(results: &Results, chosen: &[usize]) -> Results {
    let total = results.values.len();
    let pick = |rows: &[f64]| -> Vec<f64> {
        rows.chunks(total)
            .flat_map(|row| chosen.iter().map(|&lane| row[lane]))
            .collect()
    };
    Results {
        values: pick(&results.values),
        gradients: pick(&results.gradients),
        products: pick(&results.products),
    }
}

/// Returns some draws of a fixed sequence as rows of lanes. `lanes` lists the numbers of these draws.
fn draws(dim: usize, lanes: &[usize], seed: u64) -> Vec<f64> {
    let columns: Vec<Vec<f64>> = lanes
        .iter()
        .map(|&lane| noise(dim, seed + 1 + lane as u64))
        .collect();
    (0..dim)
        .flat_map(|i| columns.iter().map(move |column| column[i]))
        .collect()
}

fn differentiated(graph: &Graph) -> Graph {
    let mut graph = graph.clone();
    let value = graph.outputs()[0];
    let z = graph.input_node(0);
    let gradient = graph.gradient(value, &[z])[0];
    let dim = graph.shape(z).len as usize;
    let v = graph.input(dim);
    let product = match graph.tangent(&[gradient], &[(z, v)])[0] {
        Some(product) => product,
        None => graph.vector(&vec![0.0; dim]),
    };
    graph.set_outputs(vec![value, gradient, product]);
    graph
}

fn close(a: f64, b: f64, scale: f64, tolerance: f64) -> bool {
    a == b || (a - b).abs() <= tolerance * (1.0 + scale)
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |m, x| f64::max(m, x.abs()))
}

fn slow(graph: &Graph, z: &[f64], v: &[f64]) -> Vec<Vec<Vec<f64>>> {
    let dim = graph.inputs()[0].len;
    let lanes = z.len() / dim;
    let column =
        |x: &[f64], lane: usize| -> Vec<f64> { (0..dim).map(|i| x[i * lanes + lane]).collect() };
    (0..lanes)
        .map(|lane| evaluate(graph, &[&column(z, lane), &column(v, lane)], None))
        .collect()
}

fn assert_agrees(fast: &Results, slow: &[Vec<Vec<f64>>], name: &str) {
    let lanes = slow.len();
    for (lane, expected) in slow.iter().enumerate() {
        let all = [&fast.values, &fast.gradients, &fast.products];
        for (which, (rows, expected)) in all.into_iter().zip(expected).enumerate() {
            let scale = largest(expected);
            for (i, &wanted) in expected.iter().enumerate() {
                let found = rows[i * lanes + lane];
                assert!(
                    wanted.is_finite() && close(found, wanted, scale, 1e-10),
                    "{name}, lane {lane} of {lanes}, output {which}, element {i}: {found} against {wanted}"
                );
            }
        }
    }
}

fn sequence(lanes: usize) -> Vec<usize> {
    (0..lanes).collect()
}

fn check_executor(recipe: &Recipe) {
    let graph = build(recipe);
    let second = differentiated(&graph);
    let dim = recipe.dim;
    for simd in Simd::available() {
        for threads in [1, 2] {
            let density = density(&graph, simd, threads);
            let mut ws = density.workspace(64);
            for lanes in [64, 7, 1] {
                let lanes = sequence(lanes);
                let (z, v) = (draws(dim, &lanes, 0), draws(dim, &lanes, 1000));
                let fast = run(&density, &mut ws, &z, &v);
                let name = format!("{simd}, {threads} threads");
                assert_agrees(&fast, &slow(&second, &z, &v), &name);
            }
        }
    }
}

/// Several threads must share the lanes even if the graph is small.
fn check_threads(recipe: &Recipe) {
    let graph = build(recipe);
    let lanes = sequence(1 << 16);
    let (z, v) = (
        draws(recipe.dim, &lanes, 0),
        draws(recipe.dim, &lanes, 1000),
    );
    let with = |threads: usize| {
        let density = density(&graph, Simd::detect(), threads);
        bits(&run(&density, &mut density.workspace(lanes.len()), &z, &v))
    };
    let one = with(1);
    for threads in [2, 3] {
        assert_eq!(one, with(threads), "{threads} threads");
    }
}

fn check_lanes(recipe: &Recipe) {
    let graph = build(recipe);
    let dim = recipe.dim;
    let subsets: [Vec<usize>; 4] = [
        vec![299],
        vec![3, 290, 17, 3, 255, 256, 100],
        (0..64).map(|k| (k * 37 + 5) % 300).collect(),
        (0..300).rev().collect(),
    ];
    let mut levels: Vec<(Simd, Results)> = Vec::new();
    for simd in Simd::available() {
        let mut all: Option<Results> = None;
        for threads in [1, 2] {
            let density = density(&graph, simd, threads);
            let mut ws = density.workspace(300);
            let lanes = sequence(300);
            let (z, v) = (draws(dim, &lanes, 0), draws(dim, &lanes, 1000));
            let whole = run(&density, &mut ws, &z, &v);
            if let Some(first) = &all {
                assert_eq!(bits(first), bits(&whole), "{simd}: thread count");
            }
            for subset in &subsets {
                let (z, v) = (draws(dim, subset, 0), draws(dim, subset, 1000));
                let part = run(&density, &mut ws, &z, &v);
                assert_eq!(
                    bits(&part),
                    bits(&lanes_of(&whole, subset)),
                    "{simd}, {threads} threads: lanes {subset:?}"
                );
            }
            all = Some(whole);
        }
        levels.push((simd, all.expect("two thread counts")));
    }
    let wide: Vec<&(Simd, Results)> = levels
        .iter()
        .filter(|level| level.0 != Simd::Scalar)
        .collect();
    if let [(_, first), (_, second)] = wide[..] {
        assert_eq!(bits(first), bits(second), "AVX-512 against AVX2");
    }
}

/// Returns the slope of `f` at 0, computed by extrapolated differences. Returns `None` if the results for two step
/// widths disagree, as they do near a kink.
fn slope(f: impl Fn(f64) -> f64) -> Option<f64> {
    let central = |h: f64| (f(h) - f(-h)) / (2.0 * h);
    let extrapolated = |h: f64| (4.0 * central(h / 2.0) - central(h)) / 3.0;
    let (wide, narrow) = (extrapolated(1e-3), extrapolated(1e-4));
    let one_sided = [f(1e-6) - f(0.0), f(0.0) - f(-1e-6)].map(|rise| rise / 1e-6);
    let smooth = (wide - narrow).abs() <= 1e-6 * (1.0 + narrow.abs())
        && (one_sided[0] - one_sided[1]).abs() <= 1e-3 * (1.0 + narrow.abs());
    smooth.then_some(narrow)
}

fn check_derivatives(recipe: &Recipe) -> usize {
    let graph = build(recipe);
    let second = differentiated(&graph);
    let (z, v) = (noise(recipe.dim, 11), noise(recipe.dim, 12));
    let results = evaluate(&second, &[&z, &v], None);
    let scale = largest(&results[1]).max(largest(&results[2]));
    let mut compared = 0;
    for i in 0..recipe.dim {
        let moved = |t: f64| {
            let mut z = z.clone();
            z[i] += t;
            evaluate(&graph, &[&z], None)[0][0]
        };
        if let Some(numeric) = slope(moved) {
            compared += 1;
            assert!(
                close(results[1][i], numeric, scale, 1e-5),
                "gradient {i}: {} against {numeric}",
                results[1][i]
            );
        }
        let along = |t: f64| {
            let z: Vec<f64> = z.iter().zip(&v).map(|(z, v)| z + t * v).collect();
            evaluate(&second, &[&z, &v], None)[1][i]
        };
        if let Some(numeric) = slope(along) {
            compared += 1;
            assert!(
                close(results[2][i], numeric, scale, 1e-5),
                "product {i}: {} against {numeric}",
                results[2][i]
            );
        }
    }
    compared
}

fn check_passes(recipe: &Recipe) {
    let graph = build(recipe);
    let second = differentiated(&graph);
    let passed = [
        ("compact", passes::compact(&second)),
        ("reroll", passes::reroll(&second)),
        ("optimise", passes::optimise(&second)),
        ("optimised first", differentiated(&passes::optimise(&graph))),
    ];
    let (z, v) = (noise(recipe.dim, 21), noise(recipe.dim, 22));
    let expected = evaluate(&second, &[&z, &v], None);
    for (name, graph) in passed {
        jensen_graph::verify::verify(&graph).expect("well formed");
        let found = evaluate(&graph, &[&z, &v], None);
        for (which, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let scale = largest(expected);
            for (found, expected) in found.iter().zip(expected) {
                assert!(
                    close(*found, *expected, scale, 1e-11),
                    "{name}, output {which}: {found} against {expected}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(config(80, 1))]

    #[test]
    fn executor_equals_slow_evaluator(recipe in recipes(25)) {
        check_executor(&recipe);
    }
}

proptest! {
    #![proptest_config(config(60, 2))]

    #[test]
    fn a_lane_does_not_depend_on_its_neighbours(recipe in recipes(25)) {
        check_lanes(&recipe);
    }
}

proptest! {
    #![proptest_config(config(8, 4))]

    #[test]
    fn bits_do_not_depend_on_threads(recipe in recipes(25)) {
        check_threads(&recipe);
    }
}

proptest! {
    #![proptest_config(config(400, 3))]

    #[test]
    fn derivatives_equal_differences(recipe in recipes(16)) {
        check_derivatives(&recipe);
    }

    #[test]
    fn passes_preserve_values(recipe in recipes(40)) {
        check_passes(&recipe);
    }
}

#[test]
fn most_derivatives_are_smooth_enough_to_compare() {
    let (mut compared, mut possible) = (0, 0);
    for seed in 0..100 {
        let steps: Vec<[u32; 5]> = (0..8)
            .map(|k| {
                [0, 1, 2, 3, 4].map(|j| (noise(1, seed * 64 + k * 8 + j)[0] * 1e9) as i64 as u32)
            })
            .collect();
        let recipe = Recipe { dim: 5, steps };
        compared += check_derivatives(&recipe);
        possible += 10;
    }
    assert!(compared * 10 > possible * 9, "{compared} of {possible}");
}

#[test]
fn a_maximum_of_equal_elements_has_the_slope_of_one() {
    let mut graph = Graph::new();
    let z = graph.input(2);
    let repeated = graph.gather(z, &[0, 1, 0, 0]);
    let max = graph.max(repeated);
    let square = graph.square(max);
    graph.set_outputs(vec![square]);
    let results = evaluate(&differentiated(&graph), &[&[1.5, 0.5], &[1.0, 1.0]], None);
    assert_eq!(results, [vec![2.25], vec![3.0, 0.0], vec![2.0, 0.0]]);
}

/// A scatter may have many sources. Like the adjoints of gathers, these may include whole values and other scatters.
#[test]
fn adjoints_of_many_gathers_add_up() {
    let n = 11;
    let mut graph = Graph::new();
    let z = graph.input(n);
    let terms: Vec<NodeId> = (0..17_u32)
        .map(|k| {
            let index: Vec<u32> = (0..6).map(|i| (i * (k + 1) + k) % n as u32).collect();
            let part = graph.gather(z, &index);
            let scaled = graph.scale(0.1 + f64::from(k), part);
            let sine = graph.elem(ElemOp::Sin, &[scaled]);
            graph.sum(sine)
        })
        .collect();
    let exp = graph.exp(z);
    let whole = graph.sum(exp);
    let sum = graph.add_all(&terms);
    let total = graph.add(sum, whole);
    graph.set_outputs(vec![total]);
    let second = differentiated(&graph);
    for simd in Simd::available() {
        let density = density(&graph, simd, 1);
        let mut ws = density.workspace(9);
        let lanes = sequence(9);
        let (z, v) = (draws(n, &lanes, 0), draws(n, &lanes, 9));
        let fast = run(&density, &mut ws, &z, &v);
        assert_agrees(&fast, &slow(&second, &z, &v), "many gathers");
    }
}

/// Returns the number of nodes in the gradient of an optimised loop, after checking that the optimisation has not
/// changed the value or the gradient.
fn rolled_nodes(graph: &Graph) -> usize {
    let density = density(graph, Simd::detect(), 1);
    let second = differentiated(graph);
    let dim = density.dim();
    let lanes = sequence(5);
    let (z, v) = (draws(dim, &lanes, 0), draws(dim, &lanes, 9));
    let mut ws = density.workspace(5);
    let fast = run(&density, &mut ws, &z, &v);
    assert_agrees(&fast, &slow(&second, &z, &v), "unrolled loop");
    density.graph().len()
}

fn normal(g: &mut Graph, y: NodeId, mu: NodeId, s: NodeId) -> NodeId {
    let residual = g.sub(y, mu);
    let z = g.div(residual, s);
    let square = g.square(z);
    let half = g.scale(-0.5, square);
    let log = g.log(s);
    g.sub(half, log)
}

/// Adds terms one after the other, in the same way as the statement `target += …` in a loop.
fn accumulate(g: &mut Graph, n: usize, mut term: impl FnMut(&mut Graph, usize) -> NodeId) {
    let mut target = g.constant(0.0);
    for i in 0..n {
        g.set_site(1);
        let term = term(g, i);
        g.set_site(2);
        target = g.add(target, term);
    }
    g.set_site(0);
    g.set_outputs(vec![target]);
}

fn regression(n: usize) -> Graph {
    let (x, y) = (noise(n, 1), noise(n, 2));
    let mut g = Graph::new();
    let z = g.input(3);
    let (a, b, log_s) = (g.element(z, 0), g.element(z, 1), g.element(z, 2));
    let s = g.exp(log_s);
    accumulate(&mut g, n, |g, i| {
        let bx = g.scale(x[i], b);
        let mu = g.add(a, bx);
        let y = g.constant(y[i]);
        normal(g, y, mu, s)
    });
    g
}

fn hierarchical(n: usize) -> Graph {
    let (x, y) = (noise(n, 1), noise(n, 2));
    let groups = 9;
    let mut g = Graph::new();
    let z = g.input(groups + 2);
    let (b, log_s) = (g.element(z, groups), g.element(z, groups + 1));
    let s = g.exp(log_s);
    accumulate(&mut g, n, |g, i| {
        let alpha = g.element(z, (i * 7) % groups);
        let bx = g.scale(x[i], b);
        let mu = g.add(alpha, bx);
        let y = g.constant(y[i]);
        normal(g, y, mu, s)
    });
    g
}

fn mixture(n: usize) -> Graph {
    let y = noise(n, 2);
    let mut g = Graph::new();
    let z = g.input(5);
    let (logit, log_s) = (g.element(z, 0), [g.element(z, 3), g.element(z, 4)]);
    let mu = [g.element(z, 1), g.element(z, 2)];
    let s = log_s.map(|log_s| g.exp(log_s));
    let negative = g.neg(logit);
    let log_weight = [negative, logit].map(|x| {
        let log = g.elem(ElemOp::Log1pExp, &[x]);
        g.neg(log)
    });
    accumulate(&mut g, n, |g, i| {
        let y = g.constant(y[i]);
        let parts = [0, 1].map(|k| {
            let density = normal(g, y, mu[k], s[k]);
            g.add(log_weight[k], density)
        });
        g.elem(ElemOp::LogAddExp, &parts)
    });
    g
}

/// Returns a model in which each observation depends on the one before it. The observations are data, so the loop has
/// no recursion.
fn autoregression(n: usize) -> Graph {
    let y = noise(n + 1, 2);
    let mut g = Graph::new();
    let z = g.input(3);
    let (a, b, log_s) = (g.element(z, 0), g.element(z, 1), g.element(z, 2));
    let s = g.exp(log_s);
    accumulate(&mut g, n, |g, i| {
        let by = g.scale(y[i], b);
        let mu = g.add(a, by);
        let y = g.constant(y[i + 1]);
        normal(g, y, mu, s)
    });
    g
}

/// Returns a model in which each variance depends on the one before it, so that the loop is sequential.
fn garch(n: usize) -> Graph {
    let y = noise(n + 1, 2);
    let mut g = Graph::new();
    let z = g.input(4);
    let parts = [0, 1, 2].map(|k| {
        let x = g.element(z, k);
        g.elem(ElemOp::InvLogit, &[x])
    });
    let mu = g.element(z, 3);
    let mut variance = g.constant(0.5);
    accumulate(&mut g, n, |g, i| {
        let last = g.constant(y[i]);
        let shock = g.sub(last, mu);
        let square = g.square(shock);
        let news = g.mul(parts[1], square);
        let memory = g.mul(parts[2], variance);
        let base = g.add(parts[0], news);
        variance = g.add(base, memory);
        let s = g.sqrt(variance);
        let y = g.constant(y[i + 1]);
        normal(g, y, mu, s)
    });
    g
}

#[test]
fn unrolled_loops_become_vector_operations() {
    type Build = fn(usize) -> Graph;
    let cases: [(&str, Build); 4] = [
        ("regression", regression),
        ("hierarchical", hierarchical),
        ("mixture", mixture),
        ("autoregression", autoregression),
    ];
    for (name, build) in cases {
        let (small, large) = (rolled_nodes(&build(200)), rolled_nodes(&build(400)));
        assert!(large < 150, "{name}: {large} nodes for 400 records");
        assert!(
            large.abs_diff(small) <= 2,
            "{name}: {small} nodes for 200 records, {large} for 400"
        );
    }
}

#[test]
fn recursions_stay_sequential_and_linear() {
    let (small, large) = (rolled_nodes(&garch(100)), rolled_nodes(&garch(200)));
    assert!(small > 100, "{small} nodes for 100 steps");
    assert!(
        large < 2 * small + 50 && large < 30 * 200,
        "{small} nodes for 100 steps, {large} for 200"
    );
}

fn logistic(n: usize, predictor: impl Fn(usize) -> f64) -> Graph {
    let mut g = Graph::new();
    let z = g.input(3);
    let signs: Vec<f64> = (0..n)
        .map(|i| if i % 3 == 0 { 1.0 } else { -1.0 })
        .collect();
    let columns: Vec<f64> = (0..n)
        .map(|i| predictor(i % 12))
        .chain((0..n).map(|i| predictor(i + 7 * (i % 2))))
        .collect();
    let (table, b) = (g.vector(&columns), g.slice(z, 1, 2));
    let dims = jensen_graph::MatMul {
        m: n as u32,
        k: 2,
        n: 1,
        left_transposed: false,
        right_transposed: false,
    };
    let slope = g.matmul(table, b, dims);
    let level = g.element(z, 0);
    let eta = g.add(level, slope);
    let signs = g.vector(&signs);
    let eta = g.mul(signs, eta);
    let terms = g.elem(ElemOp::Log1pExp, &[eta]);
    let sum = g.sum(terms);
    let value = g.neg(sum);
    g.set_outputs(vec![value]);
    g
}

#[test]
fn elements_of_a_sum_that_repeat_are_computed_once() {
    let lengths = |graph: &Graph| -> Vec<u32> {
        graph
            .ids()
            .filter(|id| graph.op(*id) == jensen_graph::Op::Elem(ElemOp::Log1pExp))
            .map(|id| graph.shape(id).len)
            .collect()
    };
    let few = logistic(600, |i| f64::from(i as u32 % 12) * 0.3 - 1.0);
    // Compaction removes the values that the sum no longer needs.
    let once = passes::compact(&passes::repeats(few.clone()));
    assert_eq!(lengths(&once), [12]);
    let z = [0.4, -1.3, 0.7];
    let (all, some) = (evaluate(&few, &[&z], None), evaluate(&once, &[&z], None));
    assert!(
        close(all[0][0], some[0][0], all[0][0].abs(), 1e-14),
        "{all:?}, {some:?}"
    );
    let many = logistic(600, |i| (i as f64 * 0.7).sin());
    assert_eq!(lengths(&passes::repeats(many)), [600]);
}

#[test]
fn sums_of_softplus_keep_their_digits() {
    let graph = logistic(1500, |i| (i as f64 * 0.7).sin());
    let second = differentiated(&graph);
    for simd in Simd::available() {
        let density = density(&graph, simd, 1);
        let mut ws = density.workspace(8);
        for scale in [0.01, 1.0, 30.0, 700.0] {
            let lanes = sequence(8);
            let z: Vec<f64> = draws(3, &lanes, 5).iter().map(|x| scale * x).collect();
            let v = draws(3, &lanes, 9);
            let results = run(&density, &mut ws, &z, &v);
            assert_agrees(&results, &slow(&second, &z, &v), "softplus");
            for (lane, value) in results.values.iter().enumerate() {
                let column: Vec<f64> = (0..3).map(|i| z[i * 8 + lane]).collect();
                let wanted = evaluate(&graph, &[&column], None)[0][0];
                assert!(
                    close(*value, wanted, wanted.abs(), 1e-13),
                    "{value} against {wanted}"
                );
            }
        }
        let mut ws = density.workspace(1);
        let nan = run(&density, &mut ws, &[f64::NAN, 0.0, 0.0], &[0.0; 3]);
        assert!(nan.values[0].is_nan());
        let infinite = run(&density, &mut ws, &[f64::INFINITY, 0.0, 0.0], &[0.0; 3]);
        assert_eq!(infinite.values[0], f64::NEG_INFINITY);
    }
}
