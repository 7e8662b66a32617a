//! Compares the single-precision executor with the slow evaluator, and tests the guarantees that the executor makes.

use jensen_graph::{ElemOp, Graph, MatMul, NodeId, Shape, SingleProgram, evaluate};
use jensen_math::simd::Simd;

const IN: usize = 19;
const HIDDEN: usize = 37;
const OUT: usize = 5;

fn product(m: usize, k: usize) -> MatMul {
    MatMul {
        m: m as u32,
        k: k as u32,
        n: 1,
        left_transposed: false,
        right_transposed: false,
    }
}

#[test]
fn shared_vectors_are_read_element_by_element() {
    let mut g = Graph::new();
    let (logs, weight, x) = (g.shared_input(3), g.shared_input(1), g.input(3));
    // Lanes read both vectors, and one pass computes the second from the first.
    let sizes = g.exp(logs);
    let weighted = g.mul(weight, sizes);
    let outputs = [sizes, weighted].map(|shared| g.mul(x, shared));
    g.set_outputs(outputs.to_vec());
    let program = SingleProgram::new(&g, Simd::detect()).unwrap();
    let mut workspace = program.workspace(2);
    let logs: Vec<f32> = [1.0_f32, 2.0, 3.0].map(f32::ln).to_vec();
    let x = [1.0, 1.0, 1.0, 2.0, 2.0, 2.0];
    program.run(&mut workspace, &[&logs[..], &[10.0], &x[..]], 2);
    for (which, scale) in [(0, 1.0), (1, 10.0)] {
        let found = program.output(&workspace, which, 2);
        let expected = [1.0, 2.0, 3.0, 2.0, 4.0, 6.0].map(|x| scale * x);
        let near = found
            .iter()
            .zip(expected)
            .all(|(a, b)| (a - b).abs() < 1e-4);
        assert!(near, "{found:?} for {expected:?}");
    }
}

/// The product of a shared matrix with gathered elements is a convolution. The sum over lanes reads the gathered elements
/// after the product has read them.
#[test]
fn gathered_elements_are_copied_before_they_are_read() {
    let mut g = Graph::new();
    let (w, x) = (g.shared_input(4), g.input(3));
    let windows = g.gather(x, &[0, 1, 1, 2]);
    let dims = MatMul {
        n: 2,
        ..product(2, 2)
    };
    let y = g.matmul(w, windows, dims);
    let outer = MatMul {
        right_transposed: true,
        ..dims
    };
    let each = g.matmul(y, windows, outer);
    let sum = g.lane_sum(each);
    g.set_outputs(vec![y, windows, sum]);
    let program = SingleProgram::new(&g, Simd::detect()).unwrap();
    let mut workspace = program.workspace(2);
    // The columns of the matrix are (1, 3) and (2, 4).
    program.run(
        &mut workspace,
        &[&[1.0, 3.0, 2.0, 4.0], &[1.0, 2.0, 3.0, 1.0, 0.0, -1.0]],
        2,
    );
    let first = [5.0, 11.0, 8.0, 18.0];
    let second = [1.0, 3.0, -2.0, -4.0];
    assert_eq!(program.output(&workspace, 0, 2), [first, second].concat());
    let windows = [[1.0, 2.0, 2.0, 3.0], [1.0, 0.0, 0.0, -1.0]];
    assert_eq!(program.output(&workspace, 1, 2), windows.concat());
    let mut expected = [0.0; 4];
    for (y, window) in [first, second].iter().zip(&windows) {
        for (i, slot) in expected.iter_mut().enumerate() {
            let (row, column) = (i % 2, i / 2);
            *slot += y[row] * window[column] + y[2 + row] * window[2 + column];
        }
    }
    assert_eq!(program.output(&workspace, 2, 2), expected);
}

/// Builds a network that contains every kind of step. Returns the graph and the lengths of its inputs.
fn network(hidden: usize, out: usize) -> Graph {
    let mut g = Graph::new();
    let w1 = g.shared_input(hidden * IN);
    let b1 = g.shared_input(hidden);
    let w2 = g.shared_input(out * hidden);
    let x = g.input(IN);
    let scale = g.shared_input(1);
    let scaled = g.exp(scale);
    let hidden_in = g.matmul(w1, x, product(hidden, IN));
    let hidden_in = g.add(hidden_in, b1);
    let h = g.elem(ElemOp::Tanh, &[hidden_in]);
    let y = g.matmul(w2, h, product(out, hidden));
    // The weights occur twice, so their gradient is a sum of two products.
    let h2 = g.elem(ElemOp::InvLogit, &[hidden_in]);
    let y2 = g.matmul(w2, h2, product(out, hidden));
    let soft = g.elem(ElemOp::Log1pExp, &[y]);
    let first = g.element(y, 0);
    let picked = g.gather(soft, &[0, 2, 1]);
    let joined = g.concat(&[picked, y2]);
    let largest = g.max(joined);
    let shifted = g.sub(joined, largest);
    let e = g.exp(shifted);
    let total = g.sum(e);
    let log = g.log(total);
    let squares = g.square(y2);
    let energy = g.sum(squares);
    let energy = g.mul(energy, scaled);
    let running = g.cumsum(soft);
    let tail = g.sum(running);
    // This shared value is added in every lane, and it also has another user.
    let constant = g.square(scale);
    let parts = [log, energy, first, tail, constant];
    let loss = g.add_all(&parts);
    let wrt = [w1, b1, w2, scale, x];
    let gradients = g.gradient(loss, &wrt);
    let mut outputs = vec![loss, h];
    outputs.extend(gradients);
    // These values depend on a sum over lanes.
    let norm = g.square(outputs[3]);
    let norm = g.sum(norm);
    outputs.push(norm);
    g.set_outputs(outputs);
    g
}

fn wave(len: usize, step: f64, scale: f64) -> Vec<f32> {
    (0..len)
        .map(|i| ((i as f64 * step).sin() * scale) as f32)
        .collect()
}

fn inputs(graph: &Graph, lanes: usize) -> Vec<Vec<f32>> {
    graph
        .inputs()
        .iter()
        .enumerate()
        .map(|(slot, input)| {
            let copies = if input.placement == jensen_graph::Placement::Lane {
                lanes
            } else {
                1
            };
            wave(input.len * copies, 0.37 + 0.11 * slot as f64, 0.4)
        })
        .collect()
}

fn run(graph: &Graph, simd: Simd, data: &[Vec<f32>], lanes: usize) -> Vec<Vec<f32>> {
    let program = SingleProgram::new(graph, simd).expect("a supported graph");
    let mut workspace = program.workspace(lanes + 3);
    let views: Vec<&[f32]> = data.iter().map(Vec::as_slice).collect();
    program.run(&mut workspace, &views, lanes);
    (0..graph.outputs().len())
        .map(|k| program.output(&workspace, k, lanes).to_vec())
        .collect()
}

fn close(found: f32, expected: f64, scale: f64, what: &str) {
    let error = (f64::from(found) - expected).abs();
    assert!(
        error <= 3e-5 * (scale + expected.abs()),
        "{what}: {found} for {expected}"
    );
}

#[test]
fn agrees_with_the_slow_evaluator() {
    for (hidden, out) in [(HIDDEN, OUT), (1, 3), (64, 3)] {
        let graph = network(hidden, out);
        for lanes in [1, 7, 50, 101, 130] {
            let data = inputs(&graph, lanes);
            let mut sums: Vec<Vec<f64>> = Vec::new();
            let mut by_lane = Vec::new();
            for lane in 0..lanes {
                let row: Vec<Vec<f64>> = graph
                    .inputs()
                    .iter()
                    .zip(&data)
                    .map(|(input, values)| {
                        let start = if values.len() == input.len {
                            0
                        } else {
                            lane * input.len
                        };
                        values[start..start + input.len]
                            .iter()
                            .map(|&x| f64::from(x))
                            .collect()
                    })
                    .collect();
                let views: Vec<&[f64]> = row.iter().map(Vec::as_slice).collect();
                let out = evaluate(&graph, &views, None);
                if sums.is_empty() {
                    sums = out.iter().map(|v| vec![0.0; v.len()]).collect();
                }
                for (sum, value) in sums.iter_mut().zip(&out) {
                    sum.iter_mut().zip(value).for_each(|(s, v)| *s += v);
                }
                by_lane.push(out);
            }
            for simd in Simd::available() {
                let found = run(&graph, simd, &data, lanes);
                for (k, values) in found.iter().enumerate() {
                    let len = by_lane[0][k].len();
                    if [0, 1, 6].contains(&k) {
                        assert_eq!(values.len(), len * lanes);
                        for (i, &value) in values.iter().enumerate() {
                            let expected = by_lane[i / len][k][i % len];
                            close(value, expected, 1.0, &format!("output {k} element {i}"));
                        }
                    } else if k < 7 {
                        for (i, &value) in values.iter().enumerate() {
                            let what = format!("sum {k} element {i} of {lanes} lanes");
                            close(value, sums[k][i], lanes as f64, &what);
                        }
                    } else {
                        let norm: f64 = sums[3].iter().map(|x| x * x).sum();
                        close(values[0], norm, norm, "what follows from a sum");
                    }
                }
            }
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let graph = network(300, 40);
    let data = inputs(&graph, 230);
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let pool = pool.build().expect("a thread pool");
        pool.install(|| run(&graph, Simd::detect(), &data, 230))
    };
    let one = with(1);
    for threads in [2, 3, 7] {
        let bits =
            |v: &[Vec<f32>]| -> Vec<u32> { v.iter().flatten().map(|x| x.to_bits()).collect() };
        assert_eq!(bits(&one), bits(&with(threads)));
    }
}

#[test]
fn tiles_cover_the_sums_and_carry_their_values() {
    let graph = network(300, 40);
    let data = inputs(&graph, 60);
    let expected = run(&graph, Simd::detect(), &data, 60);
    let program = SingleProgram::new(&graph, Simd::detect()).expect("a supported graph");
    let mut workspace = program.workspace(60);
    let mut views: Vec<&[f32]> = data.iter().map(Vec::as_slice).collect();
    program.run_lanes(&mut workspace, &views, 60);
    for (view, input) in views.iter_mut().zip(graph.inputs()) {
        if input.placement == jensen_graph::Placement::Shared {
            *view = &[];
        }
    }
    let mut parts: Vec<Vec<f32>> = vec![Vec::new(); program.tiles().len()];
    program.consume_sums(&workspace, &views, 60, &mut parts, |part, tile, values| {
        assert_eq!(tile.len, values.len());
        part.extend_from_slice(values);
    });
    let mut found: Vec<Vec<f32>> = vec![Vec::new(); graph.outputs().len()];
    for (tile, part) in program.tiles().iter().zip(parts) {
        assert_eq!(found[tile.output].len(), tile.start);
        found[tile.output].extend(part);
    }
    for k in [2, 3, 4, 5, 7] {
        assert_eq!(found[k], expected[k], "output {k}");
    }
}

#[test]
fn every_elementwise_operation_agrees() {
    for &op in ElemOp::ALL {
        for point in op.test_points() {
            let mut g = Graph::new();
            let args: Vec<NodeId> = point.iter().map(|_| g.input(3)).collect();
            let y = g.elem(op, &args);
            g.set_outputs(vec![y]);
            if g.op(y) == jensen_graph::Op::Input(0) {
                continue;
            }
            let data: Vec<Vec<f32>> = point.iter().map(|&x| vec![x as f32; 3 * 5]).collect();
            let exact: Vec<f64> = point.iter().map(|&x| f64::from(x as f32)).collect();
            let expected = op.value(&exact);
            for simd in Simd::available() {
                let found = run(&g, simd, &data, 5);
                assert!(
                    found[0]
                        .iter()
                        .all(|&y| (f64::from(y) - expected).abs() <= 2e-6 * (1.0 + expected.abs())),
                    "{} at {point:?}: {} for {expected}",
                    op.name(),
                    found[0][0]
                );
            }
        }
    }
}

#[test]
fn what_is_not_supported_is_said() {
    let mut g = Graph::new();
    let a = g.input(4);
    let l = g.cholesky(a, 2);
    g.set_outputs(vec![l]);
    let error = SingleProgram::new(&g, Simd::detect())
        .err()
        .expect("refused");
    assert!(error.to_string().contains("cholesky"), "{error}");

    let mut g = Graph::new();
    let column = g.record(&[1.0, 2.0], 1);
    let sum = g.sum(column);
    g.set_outputs(vec![sum]);
    let error = SingleProgram::new(&g, Simd::detect())
        .err()
        .expect("refused");
    assert!(error.to_string().contains("record"), "{error}");

    let mut g = Graph::new();
    let (w, x) = (g.shared_input(1), g.input(1));
    let y = g.mul(w, x);
    let slope = g.gradient(y, &[w])[0];
    let z = g.mul(slope, x);
    let z = g.broadcast(z, Shape::fixed(2));
    g.set_outputs(vec![z]);
    let error = SingleProgram::new(&g, Simd::detect())
        .err()
        .expect("refused");
    assert!(error.to_string().contains("sum over lanes"), "{error}");
}
