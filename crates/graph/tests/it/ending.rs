//! Tests interrupts within an evaluation.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jensen_graph::{ElemOp, Ending, Graph, GraphDensity, MatMul};
use jensen_math::simd::Simd;

use crate::running::{Results, density, run};

const ROWS: u32 = 48;

/// Returns a log density that is computed by a chain of matrix products.
fn chain() -> Graph {
    let mut graph = Graph::new();
    let z = graph.input(2);
    let dims = MatMul {
        m: ROWS,
        k: ROWS,
        n: ROWS,
        left_transposed: false,
        right_transposed: false,
    };
    let numbers = (ROWS * ROWS) as usize;
    let table: Vec<f64> = (0..numbers).map(|i| (i as f64).sin()).collect();
    let table = graph.vector(&table);
    let first = graph.element(z, 0);
    let mut power = graph.mul(table, first);
    for _ in 0..30 {
        let product = graph.matmul(power, table, dims);
        let tenth = graph.constant(0.1);
        let product = graph.mul(product, tenth);
        // The function is nonlinear because of the tanh. The second derivatives therefore require a chain of products
        // of their own, which cannot be folded.
        power = graph.elem(ElemOp::Tanh, &[product]);
    }
    let sum = graph.sum(power);
    let square = graph.square(z);
    let square = graph.sum(square);
    let value = graph.sub(sum, square);
    graph.set_outputs(vec![value]);
    graph
}

/// Returns a log density that is computed from a single determinant. The matrix is so large that its factorisation
/// alone is a long step.
fn determinant() -> Graph {
    const ROWS: usize = 256;
    let mut graph = Graph::new();
    let z = graph.input(2);
    let number = |k: usize| match k % (ROWS + 1) {
        0 => 20.0,
        _ => (k as f64).sin(),
    };
    let table: Vec<f64> = (0..ROWS * ROWS).map(number).collect();
    let table = graph.vector(&table);
    let first = graph.element(z, 0);
    let matrix = graph.mul(table, first);
    let log = graph.log_abs_det(matrix, ROWS);
    let square = graph.square(z);
    let square = graph.sum(square);
    let value = graph.sub(log, square);
    graph.set_outputs(vec![value]);
    graph
}

fn evaluated(density: &GraphDensity) -> Results {
    run(density, &mut Default::default(), &[0.3, -0.2], &[1.0, 0.5])
}

#[test]
fn an_evaluation_ends_in_its_middle_and_is_the_same_where_it_goes_on() {
    let plain = density(&chain(), Simd::detect(), 1);
    let asked = Arc::new(AtomicUsize::new(0));
    // The interrupt occurs at check number `n`.
    let ended_at = |n: usize| {
        let count = Arc::clone(&asked);
        count.store(0, Ordering::Relaxed);
        let ending = Ending::new(move || count.fetch_add(1, Ordering::Relaxed) + 1 >= n);
        evaluated(&density(&chain(), Simd::detect(), 1).ended_by(ending))
    };
    let whole = evaluated(&plain);
    assert!(whole.values[0].is_finite());
    assert_eq!(ended_at(usize::MAX), whole);
    let questions = asked.load(Ordering::Relaxed);
    assert!(questions > 10, "{questions} questions of one evaluation");
    let cut = ended_at(3);
    let all_nan = |numbers: &[f64]| numbers.iter().all(|x| x.is_nan());
    assert!(
        all_nan(&cut.values) && all_nan(&cut.gradients) && all_nan(&cut.products),
        "{cut:?}"
    );
    // After an interrupt, the gradient and each of the two programs for a Hessian-vector product call `asked`.
    assert!(asked.load(Ordering::Relaxed) <= 5);
}

#[test]
fn a_long_step_is_done_apart_or_left_behind() {
    let graph = determinant();
    let with = |ending: Ending| evaluated(&density(&graph, Simd::detect(), 1).ended_by(ending));
    let whole = with(Ending::default());
    assert!(whole.values[0].is_finite());
    let steps = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&steps);
    let done = with(Ending::new(|| false).apart(move |work| {
        count.fetch_add(1, Ordering::Relaxed);
        std::thread::spawn(work).join().is_ok()
    }));
    assert_eq!(done, whole);
    assert!(steps.load(Ordering::Relaxed) > 0);
    // The thread keeps running, but its result is ignored.
    let left = with(Ending::new(|| false).apart(|work| {
        drop(std::thread::spawn(work));
        false
    }));
    let all_nan = |numbers: &[f64]| numbers.iter().all(|x| x.is_nan());
    assert!(
        all_nan(&left.values) && all_nan(&left.gradients),
        "{left:?}"
    );
}

#[test]
fn folding_constants_ends_in_its_middle() {
    let folded = |n: usize| {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let mut graph = Graph::new();
        graph.end_by(&Ending::new(move || {
            count.fetch_add(1, Ordering::Relaxed) + 1 >= n
        }));
        let values: Vec<f64> = (1..100_000).map(f64::from).collect();
        let x = graph.vector(&values);
        let logs = graph.log(x);
        let logs = graph.constant_value(logs).expect("a constant").to_vec();
        (logs, asked.load(Ordering::Relaxed))
    };
    let (whole, questions) = folded(usize::MAX);
    assert!(questions > 10, "{questions} questions");
    assert!(
        (1..100_000)
            .zip(&whole)
            .all(|(k, log)| *log == f64::from(k).ln())
    );
    let (cut, questions) = folded(3);
    assert_eq!(questions, 3);
    let end = cut.iter().position(|x| x.is_nan()).expect("it ended");
    assert_eq!(cut[..end], whole[..end]);
    assert!(end < 20_000 && cut[end..].iter().all(|x| x.is_nan()));
}
