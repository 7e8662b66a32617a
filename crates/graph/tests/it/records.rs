//! Tests the record axis, and minibatches that are bound without rebuilding the graph.

use crate::running::{Results, density, run};
use jensen_density::LogDensity;
use jensen_graph::{Builder, Execution, Expr, Graph, GraphDensity, evaluate};
use jensen_math::simd::Simd;

const RECORDS: usize = 61;
const FEATURES: usize = 3;
const GROUPS: usize = 5;

fn number(k: usize) -> f64 {
    (k as f64 * 0.737_373 + 0.21).sin()
}

struct Data {
    x: Vec<f64>,
    y: Vec<f64>,
    group: Vec<usize>,
}

impl Data {
    fn all() -> Self {
        Self {
            x: (0..RECORDS * FEATURES).map(number).collect(),
            y: (0..RECORDS)
                .map(|r| f64::from(number(r * 7 + 3) > 0.0))
                .collect(),
            group: (0..RECORDS).map(|r| (r * r + r / 3) % GROUPS).collect(),
        }
    }

    fn rows(&self, batch: &[u32]) -> Self {
        let batch = || batch.iter().map(|&r| r as usize);
        Self {
            x: batch()
                .flat_map(|r| self.x[r * FEATURES..(r + 1) * FEATURES].to_vec())
                .collect(),
            y: batch().map(|r| self.y[r]).collect(),
            group: batch().map(|r| self.group[r]).collect(),
        }
    }
}

const DIM: usize = FEATURES + 1 + GROUPS + 1;

/// Builds a hierarchical logistic regression. The likelihood of the batch is scaled to the number of all records. The
/// parts that depend on data come from `records` or from `plain`.
fn model<'b>(
    builder: &'b Builder,
    columns: impl FnOnce(Expr<'b>, Expr<'b>) -> (Expr<'b>, Expr<'b>, Expr<'b>),
) -> Expr<'b> {
    let beta = builder.parameters(FEATURES);
    let mu = builder.parameter();
    let alpha = builder.parameters(GROUPS);
    let tau = builder.parameter().positive();
    let (y, linear, count) = columns(beta, mu + tau * alpha);
    let weight = RECORDS as f64 / count.maximum(1.0);
    // The second term has scalars inside the sum over records, so its value depends on the number of records.
    let penalty = (linear - mu).square().sum() * 0.01 + (tau + 0.0 * linear).sum() * 0.001;
    weight * y.bernoulli_logit_lpmf(linear) - penalty
        + beta.normal_lpdf(0.0, 2.0)
        + mu.normal_lpdf(0.0, 2.0)
        + alpha.std_normal_lpdf()
        + tau.exponential_lpdf(1.0)
}

fn recorded(data: &Data) -> Graph {
    let builder = Builder::new();
    let target = model(&builder, |beta, effects| {
        let x = builder.record_matrix(&data.x, FEATURES);
        let group = builder.record_indices(&data.group);
        let y = builder.record(&data.y);
        let linear = x.mul_vec(beta) + effects.gather_record(group);
        (y, linear, builder.records_in_batch())
    });
    builder.try_graph(target).expect("a right model")
}

fn plain(data: &Data) -> Graph {
    let builder = Builder::new();
    let n = data.y.len();
    let columns: Vec<f64> = (0..FEATURES)
        .flat_map(|j| (0..n).map(move |r| (j, r)))
        .map(|(j, r)| data.x[r * FEATURES + j])
        .collect();
    let target = model(&builder, |beta, effects| {
        let y = builder.data(&data.y);
        let x = builder.matrix(n, FEATURES, &columns);
        let linear = x.mul_vec(beta) + effects.gather(&data.group);
        (y, linear, builder.constant(n as f64))
    });
    builder.try_graph(target).expect("a right model")
}

fn at_lanes(density: &GraphDensity, lanes: usize) -> Results {
    let z: Vec<f64> = (0..density.dim() * lanes)
        .map(|k| number(k * 3 + 1))
        .collect();
    let v: Vec<f64> = (0..density.dim() * lanes)
        .map(|k| number(k * 5 + 2))
        .collect();
    run(density, &mut density.workspace(lanes), &z, &v)
}

fn assert_close(a: &Results, b: &Results, name: &str) {
    let parts = [
        (&a.values, &b.values),
        (&a.gradients, &b.gradients),
        (&a.products, &b.products),
    ];
    for (which, (a, b)) in parts.into_iter().enumerate() {
        let scale = b.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
        assert_eq!(a.len(), b.len());
        for (i, (a, b)) in a.iter().zip(b).enumerate() {
            assert!(
                (a - b).abs() <= 1e-12 * scale,
                "{name}, output {which}, entry {i}: {a} against {b}"
            );
        }
    }
}

#[test]
fn all_records_equal_the_plain_graph() {
    let data = Data::all();
    for simd in Simd::available() {
        for lanes in [1, 9, 300] {
            let records = density(&recorded(&data), simd, 1);
            let constants = density(&plain(&data), simd, 1);
            assert_eq!(records.dim(), DIM);
            assert_close(
                &at_lanes(&records, lanes),
                &at_lanes(&constants, lanes),
                &format!("{simd}, {lanes} lanes"),
            );
        }
    }
}

fn batches() -> Vec<Vec<u32>> {
    let repeated = (0..RECORDS as u32).map(|r| r % 4).collect();
    vec![
        vec![7],
        vec![3, 60, 0, 21, 20, 19, 44],
        vec![5, 5, 5, 12, 5],
        (0..RECORDS as u32).rev().collect(),
        repeated,
        (0..32).map(|r| (r * 11) % RECORDS as u32).collect(),
        (0..RECORDS as u32).collect(),
    ]
}

#[test]
fn a_rebound_batch_equals_a_graph_of_its_rows() {
    let data = Data::all();
    for simd in Simd::available() {
        // Second derivatives are planned before or after the first batch is bound.
        for planned_before in [false, true] {
            let mut records = density(&recorded(&data), simd, 1);
            let instructions = records.instructions();
            if planned_before {
                at_lanes(&records, 1);
            }
            for batch in batches() {
                records.bind_records(&batch);
                let rows = data.rows(&batch);
                let name = format!("{simd}, batch {batch:?}");
                let built = density(&plain(&rows), simd, 1);
                assert_close(&at_lanes(&records, 19), &at_lanes(&built, 19), &name);
                let fresh = density(&recorded(&rows), simd, 1);
                assert_eq!(at_lanes(&records, 19), at_lanes(&fresh, 19), "{name}");
            }
            assert_eq!(records.instructions(), instructions);
        }
    }
}

#[test]
fn planning_for_small_batches_takes_less_memory() {
    let data = Data::all();
    let graph = recorded(&data);
    let execution = Execution::default();
    let whole = GraphDensity::new(&graph, execution);
    let mut small = GraphDensity::for_batches(&graph, execution, 7);
    assert!(small.peak_bytes() < whole.peak_bytes());
    for batch in batches().into_iter().filter(|batch| batch.len() <= 7) {
        small.bind_records(&batch);
        let built = density(&plain(&data.rows(&batch)), execution.simd, 1);
        assert_close(
            &at_lanes(&small, 19),
            &at_lanes(&built, 19),
            &format!("batch {batch:?}"),
        );
    }
}

#[test]
fn an_empty_batch_leaves_the_terms_without_records() {
    let data = Data::all();
    for simd in Simd::available() {
        let mut records = density(&recorded(&data), simd, 1);
        records.bind_records(&[]);
        let empty = density(&plain(&data.rows(&[])), simd, 1);
        assert_close(
            &at_lanes(&records, 11),
            &at_lanes(&empty, 11),
            "empty batch",
        );
        records.bind_records(&[4, 8]);
        let two = density(&plain(&data.rows(&[4, 8])), simd, 1);
        assert_close(&at_lanes(&records, 11), &at_lanes(&two, 11), "after it");
    }
}

#[test]
fn one_workspace_serves_batches_of_all_sizes_and_threads() {
    let data = Data::all();
    let mut records = density(&recorded(&data), Simd::detect(), 2);
    let mut ws = records.workspace(600);
    let z: Vec<f64> = (0..DIM * 600).map(|k| number(k * 3 + 1)).collect();
    let v: Vec<f64> = (0..DIM * 600).map(|k| number(k * 5 + 2)).collect();
    for batch in batches() {
        records.bind_records(&batch);
        let used = run(&records, &mut ws, &z, &v);
        records.set_threads(1);
        let fresh = run(&records, &mut records.workspace(600), &z, &v);
        records.set_threads(2);
        assert_eq!(used, fresh, "batch {batch:?}");
    }
}

#[test]
fn the_slow_evaluator_takes_the_same_batches() {
    let data = Data::all();
    let graph = recorded(&data);
    let mut records = density(&graph, Simd::detect(), 1);
    let z: Vec<f64> = (0..DIM).map(|k| number(k * 3 + 1)).collect();
    let v = vec![0.0; DIM];
    let mut all = batches();
    all.push(Vec::new());
    for batch in all {
        records.bind_records(&batch);
        let fast = run(&records, &mut records.workspace(1), &z, &v).values[0];
        let slow = evaluate(&graph, &[&z], Some(&batch))[0][0];
        assert!(
            (fast - slow).abs() <= 1e-12 * slow.abs(),
            "{fast} against {slow}"
        );
    }
}

/// If batches partition the records, the gradients of the batches add up to the full gradient.
#[test]
fn an_epoch_of_batches_adds_up() {
    let data = Data::all();
    let builder = Builder::new();
    let beta = builder.parameters(FEATURES);
    let x = builder.record_matrix(&data.x, FEATURES);
    let y = builder.record(&data.y);
    let target = y.bernoulli_logit_lpmf(x.mul_vec(beta));
    let mut density = builder.density(target, Execution::default());
    let full = at_lanes(&density, 5);
    let mut sum = vec![0.0; full.gradients.len()];
    let order: Vec<u32> = (0..RECORDS as u32)
        .map(|r| (r * 17) % RECORDS as u32)
        .collect();
    for batch in order.chunks(8) {
        density.bind_records(batch);
        let part = at_lanes(&density, 5);
        sum.iter_mut()
            .zip(&part.gradients)
            .for_each(|(sum, g)| *sum += g);
    }
    for (sum, full) in sum.iter().zip(&full.gradients) {
        assert!((sum - full).abs() < 1e-11, "{sum} against {full}");
    }
}

/// The test covers operations along the record axis that the regression does not use: columns of several numbers per
/// record, values that depend only on data, maxima, and scalars broadcast over records.
#[test]
fn record_operations_agree_with_the_slow_evaluator() {
    let mut graph = Graph::new();
    let z = graph.input(4);
    let pairs = graph.record(&(0..2 * RECORDS).map(number).collect::<Vec<_>>(), 2);
    let column = graph.record(&(0..RECORDS).map(|k| number(k + 9)).collect::<Vec<_>>(), 1);
    let indices: Vec<u32> = (0..RECORDS as u32).map(|r| (r * r) % 4).collect();
    let index = graph.record_indices(&indices);
    let (a, b) = (graph.element(z, 0), graph.element(z, 1));
    let scaled = graph.mul(a, pairs);
    let curved = graph.exp(scaled);
    let pair_sum = graph.sum(curved);
    let data_only = graph.exp(column);
    let data_sum = graph.sum(data_only);
    let picked = graph.gather_record(z, index);
    let product = graph.mul(picked, data_only);
    // The values are negative, so a row that is left over from a larger batch would be detected as the maximum.
    let size = graph.exp(product);
    let below = graph.neg(size);
    let largest = graph.max(below);
    let data_max = graph.max(column);
    let wide = graph.broadcast(b, jensen_graph::Shape::per_record(1));
    let wide_sum = graph.sum(wide);
    let nothing = graph.scale(0.0, picked);
    let ones = graph.exp(nothing);
    let ones_sum = graph.sum(ones);
    let terms = [pair_sum, data_sum, largest, data_max, wide_sum, ones_sum];
    let total = graph.add_all(&terms);
    let spread = graph.mul(b, total);
    graph.set_outputs(vec![spread]);
    let mut second = graph.clone();
    let gradient = second.gradient(spread, &[z])[0];
    let v = second.input(4);
    let product = second.tangent(&[gradient], &[(z, v)])[0].expect("a product");
    second.set_outputs(vec![spread, gradient, product]);
    let draw: Vec<f64> = (0..4).map(|k| number(k + 1)).collect();
    let direction: Vec<f64> = (0..4).map(|k| number(k + 7)).collect();
    for simd in Simd::available() {
        let mut records = density(&graph, simd, 1);
        let mut ws = records.workspace(1);
        run(&records, &mut ws, &draw, &direction);
        for batch in batches() {
            records.bind_records(&batch);
            let fast = run(&records, &mut ws, &draw, &direction);
            let slow = evaluate(&second, &[&draw, &direction], Some(&batch));
            let slow = Results {
                values: slow[0].clone(),
                gradients: slow[1].clone(),
                products: slow[2].clone(),
            };
            assert_close(&fast, &slow, &format!("{simd}, batch {batch:?}"));
        }
    }
}
