//! Tests every operation. For every instruction set, kernels are compared with slow values, derivatives with finite
//! differences, and second derivatives with differences of gradients.

use jensen_density::{Lanes, LanesMut, LogDensity, TwiceDifferentiable};
use jensen_graph::{ElemOp, Execution, Graph, GraphDensity, MatMul, NodeId, ValueRange, evaluate};
use jensen_math::simd::Simd;

fn density_graph(dim: usize, build: impl Fn(&mut Graph, NodeId) -> NodeId) -> Graph {
    let mut graph = Graph::new();
    let z = graph.input(dim);
    let out = build(&mut graph, z);
    graph.set_outputs(vec![out]);
    jensen_graph::verify::verify(&graph).expect("well formed");
    graph
}

fn value(graph: &Graph, z: &[f64]) -> f64 {
    evaluate(graph, &[z], None)[0][0]
}

/// Returns the central difference of `f` along coordinate `i`, extrapolated from two step sizes (Richardson).
fn difference(f: impl Fn(&[f64]) -> f64, z: &[f64], i: usize) -> f64 {
    let slope = |h: f64| {
        let mut up = z.to_vec();
        let mut down = z.to_vec();
        up[i] += h;
        down[i] -= h;
        (f(&up) - f(&down)) / (2.0 * h)
    };
    let h = 1e-4 * z[i].abs().max(0.1);
    (4.0 * slope(h / 2.0) - slope(h)) / 3.0
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a.is_nan() && b.is_nan())
        || a == b
        || (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
}

/// Compares the value, the gradient and the Hessian-vector product of `graph` at `z` with the slow evaluator and with
/// finite differences. This is done for every instruction set and for several numbers of lanes.
fn check(name: &str, graph: &Graph, z: &[f64], tolerance: f64, second: bool) {
    let dim = z.len();
    let v: Vec<f64> = (0..dim).map(|i| 0.3 + 0.1 * i as f64).collect();
    let expected = value(graph, z);
    let mut differentiated = graph.clone();
    let input = differentiated.input_node(0);
    let gradient = differentiated.gradient(graph.outputs()[0], &[input])[0];
    differentiated.set_outputs(vec![gradient]);
    let slow = |z: &[f64]| evaluate(&differentiated, &[z], None).swap_remove(0);
    let slow_gradient = slow(z);
    for (i, &derived) in slow_gradient.iter().enumerate() {
        let numeric = difference(|z| value(graph, z), z, i);
        assert!(
            close(derived, numeric, tolerance),
            "{name}: gradient {i}: {derived} against {numeric}"
        );
    }
    let along = |t: f64| -> Vec<f64> {
        slow(&z.iter().zip(&v).map(|(z, v)| z + t * v).collect::<Vec<_>>())
    };
    let h = 1e-4;
    let (wide, narrow) = ((along(h), along(-h)), (along(h / 2.0), along(-h / 2.0)));
    let slow_hvp: Vec<f64> = (0..dim)
        .map(|i| {
            let (a, b) = (
                (wide.0[i] - wide.1[i]) / (2.0 * h),
                (narrow.0[i] - narrow.1[i]) / h,
            );
            (4.0 * b - a) / 3.0
        })
        .collect();
    for simd in Simd::available() {
        let density = GraphDensity::new(graph, Execution { simd, threads: 1 });
        for lanes in [1_usize, 8, 19] {
            let matrix =
                |x: &[f64]| -> Vec<f64> { x.iter().flat_map(|&x| vec![x; lanes]).collect() };
            let (zs, vs) = (matrix(z), matrix(&v));
            let mut ws = density.workspace(lanes);
            let (mut values, mut again) = (vec![0.0; lanes], vec![0.0; lanes]);
            let (mut grad, mut product) = (vec![0.0; dim * lanes], vec![0.0; dim * lanes]);
            density.value(&mut ws, Lanes::new(&zs, dim, lanes), &mut values);
            density.value_grad(
                &mut ws,
                Lanes::new(&zs, dim, lanes),
                &mut again,
                LanesMut::new(&mut grad, dim, lanes),
            );
            density.hvp(
                &mut ws,
                Lanes::new(&zs, dim, lanes),
                Lanes::new(&vs, dim, lanes),
                LanesMut::new(&mut product, dim, lanes),
            );
            // Saved primal values give the same result as recomputed ones.
            let mut kept = vec![0.0; dim * lanes];
            density.linearize(&mut ws, Lanes::new(&zs, dim, lanes));
            density.apply(
                &mut ws,
                Lanes::new(&vs, dim, lanes),
                LanesMut::new(&mut kept, dim, lanes),
            );
            for (kept, once) in kept.iter().zip(&product) {
                assert!(
                    !second || close(*kept, *once, 1e-9),
                    "{name} on {simd}: kept {kept} against {once}"
                );
            }
            for lane in [0, lanes - 1] {
                assert!(
                    close(values[lane], expected, 1e-12),
                    "{name} on {simd}: {} against {expected}",
                    values[lane]
                );
                assert!(
                    close(again[lane], expected, 1e-12),
                    "{name} on {simd}: with gradient {} against {expected}",
                    again[lane]
                );
                for i in 0..dim {
                    let (fast, slow) = (grad[i * lanes + lane], slow_gradient[i]);
                    assert!(
                        close(fast, slow, 1e-11),
                        "{name} on {simd}: gradient {i}: {fast} against {slow}"
                    );
                    if !second {
                        continue;
                    }
                    let (fast, slow) = (product[i * lanes + lane], slow_hvp[i]);
                    assert!(
                        close(fast, slow, tolerance.max(1e-6)),
                        "{name} on {simd}: product {i}: {fast} against {slow}"
                    );
                }
            }
        }
    }
}

#[test]
fn elementwise_values_lie_in_their_ranges() {
    for &op in ElemOp::ALL {
        for point in op.test_points() {
            let value = op.value(&point);
            let exact = op.range(&|k| ValueRange::between(point[k], point[k]));
            let signs = op.range(&|k| match point[k] > 0.0 {
                true => ValueRange::at_least(0.0, true),
                false => ValueRange::ALL,
            });
            // The bounds are rounded in the same way as the values.
            let slack = 1e-12 * value.abs().max(1.0);
            let near = |r: ValueRange| (r.low - slack..=r.high + slack).contains(&value);
            let name = op.name();
            assert!(near(exact), "{name} at {point:?}: {value} in {exact:?}");
            assert!(
                signs.contains(value),
                "{name} at {point:?}: {value} in {signs:?}"
            );
        }
    }
}

#[test]
fn harmless_arguments_have_values_and_slopes() {
    let mut found = 0;
    for &op in ElemOp::ALL {
        let numbers = (0..op.arity()).map(|k| op.harmless(k, ValueRange::ALL));
        if !numbers.clone().any(|number| number.is_some()) {
            continue;
        }
        found += 1;
        let point: Vec<f64> = numbers.map(|number| number.unwrap_or(1.0)).collect();
        for k in 0..op.arity() {
            let beside = |step: f64| {
                let mut beside = point.clone();
                beside[k] += step;
                op.value(&beside)
            };
            let slope = (beside(1e-6) - beside(-1e-6)) / 2e-6;
            assert!(slope.abs() < 100.0, "{} at {point:?}: {slope}", op.name());
        }
    }
    assert!(found > 20, "{found} operations");
}

#[test]
fn elementwise_operations_agree_with_their_table() {
    for &op in ElemOp::ALL {
        for (k, point) in op.test_points().into_iter().enumerate() {
            let arity = op.arity();
            // All subsets of the arguments except the full set are replaced by splat constants in turn, which covers
            // every operand layout.
            for fixed in 0..(1_usize << arity) - 1 {
                let name = format!("{} at {point:?}, constants {fixed:b}", op.name());
                let graph = density_graph(arity, |graph, z| {
                    let args: Vec<NodeId> = (0..arity)
                        .map(|i| {
                            if fixed >> i & 1 == 1 {
                                graph.constant(point[i])
                            } else {
                                graph.element(z, i)
                            }
                        })
                        .collect();
                    let y = graph.elem(op, &args);
                    // The function of the result is nonlinear, so second derivatives of the whole graph depend on first
                    // derivatives of the operation.
                    let s = graph.square(y);
                    let s = graph.scale(0.25, s);
                    graph.add(y, s)
                });
                // The table has no third derivative of trigamma.
                check(&name, &graph, &point, 2e-6, op != ElemOp::Tetragamma);
            }
            let value = op.value(&point);
            assert!(
                value.is_finite(),
                "{} has a finite value at its test point {k}",
                op.name()
            );
        }
    }
}

/// A matrix whose elimination exchanges two rows. Its determinant is −36.
const EXCHANGED: [f64; 16] = [
    0.0, 3.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 2.0,
];

fn determinant(graph: &mut Graph, z: NodeId) -> NodeId {
    let skew = graph.slice(z, 0, 16);
    let exchange = graph.vector(&EXCHANGED);
    let a = graph.add(skew, exchange);
    graph.determinant(a, 4)
}

/// Computes a positive definite matrix from z, and further numbers that depend on z.
fn spd(graph: &mut Graph, z: NodeId, n: usize) -> NodeId {
    let dims = MatMul {
        m: n as u32,
        k: n as u32,
        n: n as u32,
        left_transposed: false,
        right_transposed: true,
    };
    let square = graph.slice(z, 0, n * n);
    let product = graph.matmul(square, square, dims);
    let ridge: Vec<f64> = (0..n * n)
        .map(|at| if at / n == at % n { 2.0 } else { 0.0 })
        .collect();
    let ridge = graph.vector(&ridge);
    graph.add(product, ridge)
}

/// Returns the sum of the elements, each multiplied by a different weight.
fn weigh(graph: &mut Graph, x: NodeId) -> NodeId {
    let len = graph.shape(x).len;
    let weights: Vec<f64> = (0..len).map(|i| 0.5 + 0.37 * f64::from(i % 7)).collect();
    let weights = graph.vector(&weights);
    let product = graph.mul(weights, x);
    let square = graph.square(product);
    let sum = graph.add(product, square);
    graph.sum(sum)
}

fn point(len: usize) -> Vec<f64> {
    (0..len)
        .map(|i| 0.4 * ((i * 7 % 11) as f64 - 5.0) / 5.0 + 0.05)
        .collect()
}

#[test]
fn structural_operations_have_right_derivatives() {
    let n = 4;
    type Build = fn(&mut Graph, NodeId) -> NodeId;
    let cases: Vec<(&str, usize, Build)> = vec![
        ("gather", 5, |g, z| {
            let x = g.gather(z, &[4, 0, 0, 3, 2, 4]);
            weigh(g, x)
        }),
        ("scatter", 5, |g, z| {
            let e = g.exp(z);
            let x = g.scatter_add(e, &[2, 0, 2, 1, 3], 4);
            weigh(g, x)
        }),
        ("concat", 5, |g, z| {
            let (a, b) = (g.slice(z, 3, 2), g.slice(z, 0, 3));
            let (a, c) = (g.exp(a), g.vector(&[1.0, 2.0]));
            let x = g.concat(&[a, c, b]);
            weigh(g, x)
        }),
        ("sum", 6, |g, z| {
            let e = g.exp(z);
            let s = g.sum(e);
            g.log(s)
        }),
        ("broadcast", 3, |g, z| {
            let first = g.element(z, 0);
            let wide = g.broadcast(first, jensen_graph::Shape::fixed(3));
            let x = g.concat(&[wide, z]);
            weigh(g, x)
        }),
        ("max", 5, |g, z| {
            let e = g.exp(z);
            let m = g.max(e);
            g.square(m)
        }),
        ("cumsum", 5, |g, z| {
            let e = g.exp(z);
            let c = g.cumsum(e);
            weigh(g, c)
        }),
        ("cholesky", 16, |g, z| {
            let a = spd(g, z, 4);
            let l = g.cholesky(a, 4);
            weigh(g, l)
        }),
        ("tri_solve", 20, |g, z| {
            let a = spd(g, z, 4);
            let l = g.cholesky(a, 4);
            let b = g.slice(z, 12, 8);
            let x = g.tri_solve(l, b, 4, 2, false);
            weigh(g, x)
        }),
        ("tri_solve transposed", 20, |g, z| {
            let a = spd(g, z, 4);
            let l = g.cholesky(a, 4);
            let b = g.slice(z, 12, 8);
            let x = g.tri_solve(l, b, 4, 2, true);
            weigh(g, x)
        }),
        ("solve", 20, |g, z| {
            let a = spd(g, z, 4);
            let skew = g.slice(z, 4, 16);
            let a = g.add(a, skew);
            let b = g.slice(z, 12, 8);
            let x = g.solve(a, b, 4, 2, false);
            weigh(g, x)
        }),
        ("solve transposed", 20, |g, z| {
            let a = spd(g, z, 4);
            let skew = g.slice(z, 4, 16);
            let a = g.add(a, skew);
            let b = g.slice(z, 12, 8);
            let x = g.solve(a, b, 4, 2, true);
            weigh(g, x)
        }),
        ("log_abs_det", 16, |g, z| {
            let a = spd(g, z, 4);
            g.log_abs_det(a, 4)
        }),
        ("determinant", 16, determinant),
        ("eigen_sym", 16, |g, z| {
            let a = spd(g, z, 4);
            let e = g.eigen_sym(a, 4);
            weigh(g, e)
        }),
        ("select", 6, |g, z| {
            let zero = g.constant(0.0);
            let positive = g.elem(ElemOp::Lt, &[zero, z]);
            let log = g.log(z);
            let chosen = g.select(positive, log, z);
            weigh(g, chosen)
        }),
    ];
    for (name, dim, build) in cases {
        let mut z = point(dim);
        if dim >= n * n {
            (0..n).for_each(|i| z[i * n + i] += 1.0);
        }
        check(name, &density_graph(dim, build), &z, 2e-6, true);
    }
}

#[test]
fn spectra_and_hypergeometric_functions_have_right_derivatives() {
    type Build = fn(&mut Graph, NodeId) -> NodeId;
    let cases: [(&str, usize, Build); 3] = [
        ("eigen", 18, |g, z| {
            let e = g.eigen(z, 3, false);
            let e = g.slice(e, 0, 24);
            weigh(g, e)
        }),
        ("eigen of Hermitian", 18, |g, z| {
            let e = g.eigen(z, 3, true);
            let e = g.slice(e, 0, 24);
            weigh(g, e)
        }),
        ("hypergeometric", 6, |g, z| {
            let e = g.exp(z);
            let (of_e, of_z) = (g.slice(e, 0, 5), g.slice(z, 5, 1));
            let x = g.concat(&[of_e, of_z]);
            g.hypergeometric(x, 2, 3, 0)
        }),
    ];
    for (name, dim, build) in cases {
        check(name, &density_graph(dim, build), &point(dim), 2e-6, true);
    }
}

#[test]
fn matrix_products_of_every_layout_have_right_derivatives() {
    for (m, k, n) in [
        (2_u32, 3_u32, 2_u32),
        (1, 4, 3),
        (5, 1, 2),
        (12, 10, 1),
        (3, 20, 1),
        (20, 3, 1),
        (10, 12, 2),
        (9, 8, 5),
        (8, 70, 4),
    ] {
        for flags in 0..4 {
            for constant in 0..3 {
                let dims = MatMul {
                    m,
                    k,
                    n,
                    left_transposed: flags & 1 == 1,
                    right_transposed: flags & 2 == 2,
                };
                let (left, right) = ((m * k) as usize, (k * n) as usize);
                let table = |len: usize, shift: f64| -> Vec<f64> {
                    (0..len)
                        .map(|i| ((i * 5 % 9) as f64 - 4.0) / 6.0 + shift)
                        .collect()
                };
                let graph = density_graph(left + right, |g, z| {
                    let a = if constant == 1 {
                        g.vector(&table(left, 0.1))
                    } else {
                        g.slice(z, 0, left)
                    };
                    let b = if constant == 2 {
                        g.vector(&table(right, -0.2))
                    } else {
                        g.slice(z, left, right)
                    };
                    let x = g.matmul(a, b, dims);
                    weigh(g, x)
                });
                check(
                    &format!("matmul {dims:?}, constant {constant}"),
                    &graph,
                    &point(left + right),
                    2e-6,
                    true,
                );
            }
        }
    }
}

/// The extents of these factors and triangular systems are not multiples of any tile size. Some of the factors are
/// constants.
#[test]
fn larger_matrices_have_right_values_and_derivatives() {
    for n in [8, 11, 13] {
        let ridged = || {
            let mut z = point(n * n);
            (0..n).for_each(|i| z[i * n + i] += 1.0);
            z
        };
        let graph = density_graph(n * n, |g, z| {
            let a = spd(g, z, n);
            let l = g.cholesky(a, n);
            weigh(g, l)
        });
        check(&format!("cholesky of {n}"), &graph, &ridged(), 2e-6, true);
        for (columns, transposed, constant) in [
            (4, false, false),
            (7, true, false),
            (n, true, true),
            (6, false, true),
        ] {
            let graph = density_graph(n * n, |g, z| {
                let l = match constant {
                    true => g.vector(&ridged()),
                    false => {
                        let a = spd(g, z, n);
                        g.cholesky(a, n)
                    }
                };
                let b = g.slice(z, 0, n * columns);
                let x = g.tri_solve(l, b, n, columns, transposed);
                weigh(g, x)
            });
            let name =
                format!("{columns} columns of {n}, transposed {transposed}, constant {constant}");
            check(&name, &graph, &ridged(), 2e-6, true);
        }
    }
}

#[test]
fn a_triangular_system_with_the_product_of_its_own_factor_is_not_solved() {
    let (n, columns) = (16, 3);
    let mut g = Graph::new();
    let z = g.input(n * n + n * columns);
    let a = spd(&mut g, z, n);
    let l = g.cholesky(a, n);
    let x = g.slice(z, n * n, n * columns);
    let dims = MatMul {
        m: n as u32,
        k: n as u32,
        n: columns as u32,
        left_transposed: false,
        right_transposed: false,
    };
    let b = g.matmul(l, x, dims);
    assert_eq!(g.tri_solve(l, b, n, columns, false), x);
    assert_ne!(g.tri_solve(l, b, n, columns, true), x);
    // The matrix may have elements above its diagonal.
    let b = g.matmul(a, x, dims);
    assert_ne!(g.tri_solve(a, b, n, columns, false), x);
}

#[test]
fn lanes_whose_matrix_is_not_positive_definite_are_nan_and_no_others() {
    let (n, lanes) = (10, 16);
    let graph = density_graph(2, |g, z| {
        let (scale, at) = (g.element(z, 0), g.element(z, 1));
        let identity: Vec<f64> = (0..n * n)
            .map(|i| f64::from(u8::from(i % (n + 1) == 0)))
            .collect();
        let last: Vec<f64> = (0..n * n).map(|i| f64::from(u8::from(i == 77))).collect();
        let (identity, last) = (g.vector(&identity), g.vector(&last));
        let (scaled, last) = (g.mul(scale, identity), g.mul(at, last));
        let a = g.sub(scaled, last);
        let l = g.cholesky(a, n);
        let first = g.element(l, 0);
        let sum = g.sum(l);
        g.add(first, sum)
    });
    // The pivot at index 8 is `scale − at`.
    let rows: [Vec<f64>; 2] = [
        (0..lanes).map(|l| 1.0 + l as f64).collect(),
        (0..lanes)
            .map(|l| if l % 3 == 1 { 100.0 } else { 0.5 })
            .collect(),
    ];
    for simd in Simd::available() {
        let density = GraphDensity::new(&graph, Execution { simd, threads: 1 });
        let mut workspace = density.workspace(lanes);
        let mut values = vec![0.0; lanes];
        density.value(
            &mut workspace,
            Lanes::new(&rows.concat(), 2, lanes),
            &mut values,
        );
        for (lane, found) in values.iter().enumerate() {
            let expected = value(&graph, &[rows[0][lane], rows[1][lane]]);
            assert_eq!(found.is_nan(), lane % 3 == 1, "{simd} {lane}");
            assert!(close(*found, expected, 1e-13), "{found} for {expected}");
        }
    }
}

/// Functions of a table and of scalars must be computed once per group, not once per row. Groups without rows must not
/// affect the derivatives.
#[test]
fn effects_are_scaled_before_they_are_read() {
    let indices = [0, 2, 2, 0, 2, 0, 2];
    let graph = density_graph(4, |g, z| {
        let (effects, log_sd) = (g.slice(z, 0, 3), g.element(z, 3));
        let sd = g.exp(log_sd);
        let read = g.gather(effects, &indices);
        let scaled = g.mul(sd, read);
        // No row reads effect 1. The graph must not compute the logarithm of this effect, because the logarithm of a
        // negative effect is undefined.
        let positive = g.elem(ElemOp::Log, &[read]);
        let sum = g.add(scaled, positive);
        let squares = g.square(sum);
        g.sum(squares)
    });
    let mut products = graph
        .ids()
        .filter(|id| graph.op(*id) == jensen_graph::Op::Elem(ElemOp::Mul));
    assert!(products.all(|id| graph.shape(id).len <= 3), "{graph}");
    check("scaled effects", &graph, &[0.7, 0.3, 1.2, 0.4], 1e-6, true);
    let density = GraphDensity::new(&graph, Execution::default());
    let (mut value, mut gradient) = ([0.0], [0.0; 4]);
    density.value_grad(
        &mut density.workspace(1),
        Lanes::new(&[0.7, -0.3, 1.2, 0.4], 4, 1),
        &mut value,
        LanesMut::new(&mut gradient, 4, 1),
    );
    assert!(gradient.iter().all(|x| x.is_finite()) && gradient[1] == 0.0);
}
