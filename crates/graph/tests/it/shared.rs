//! Tests shared inputs, which have the same value in all lanes. The gradients with respect to them are summed over the
//! lanes.

use jensen_graph::exec::SharedProgram;
use jensen_graph::{Graph, MatMul, NodeId, evaluate};
use jensen_math::simd::Simd;

const HIDDEN: usize = 3;
const INPUTS: usize = 4;

/// Returns half of the squared output of a network with one layer. Its weights are shared, and its input is per lane.
fn network(graph: &mut Graph, weights: NodeId, x: NodeId) -> NodeId {
    let scaled = graph.exp(weights);
    let dims = MatMul {
        m: HIDDEN as u32,
        k: INPUTS as u32,
        n: 1,
        left_transposed: false,
        right_transposed: false,
    };
    let hidden = graph.matmul(scaled, x, dims);
    let active = graph.elem(jensen_graph::ElemOp::Tanh, &[hidden]);
    let square = graph.square(active);
    let total = graph.sum(square);
    graph.scale(0.5, total)
}

#[test]
fn gradients_of_shared_values_sum_over_lanes() {
    let weights: Vec<f64> = (0..HIDDEN * INPUTS)
        .map(|i| (i as f64 * 0.37).sin() - 0.8)
        .collect();
    for lanes in [1_usize, 8, 13, 700] {
        let x: Vec<f64> = (0..INPUTS * lanes)
            .map(|i| (i as f64 * 0.71).cos())
            .collect();
        let mut graph = Graph::new();
        let (w, z) = (graph.shared_input(weights.len()), graph.input(INPUTS));
        let loss = network(&mut graph, w, z);
        let gradients = graph.gradient(loss, &[w, z]);
        graph.set_outputs(vec![loss, gradients[0], gradients[1]]);

        // In the reference network, the weights are an ordinary input. This network is evaluated one draw at a time.
        let mut single = Graph::new();
        let (w, z) = (single.input(weights.len()), single.input(INPUTS));
        let loss = network(&mut single, w, z);
        let gradients = single.gradient(loss, &[w, z]);
        single.set_outputs(vec![loss, gradients[0], gradients[1]]);
        let mut sum = vec![0.0; weights.len()];
        let mut losses = Vec::new();
        let mut by_lane = Vec::new();
        for lane in 0..lanes {
            let column: Vec<f64> = (0..INPUTS).map(|i| x[i * lanes + lane]).collect();
            let out = evaluate(&single, &[&weights, &column], None);
            losses.push(out[0][0]);
            sum.iter_mut().zip(&out[1]).for_each(|(s, g)| *s += g);
            by_lane.push(out[2].clone());
        }
        for simd in Simd::available() {
            let out = SharedProgram::new(&graph, simd).run(&[&weights, &x], lanes);
            for lane in 0..lanes {
                assert!((out[0][lane] - losses[lane]).abs() < 1e-12);
                for i in 0..INPUTS {
                    assert!((out[2][i * lanes + lane] - by_lane[lane][i]).abs() < 1e-12);
                }
            }
            for (fast, slow) in out[1].iter().zip(&sum) {
                assert!(
                    (fast - slow).abs() < 1e-11 * lanes as f64,
                    "{fast} against {slow} with {lanes} lanes"
                );
            }
        }
    }
}
