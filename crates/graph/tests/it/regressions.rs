//! Compares likelihoods of many rows with the slow evaluator. The linear predictors of these likelihoods, and the sums
//! weighted by columns, are computed in joint kernels.

use crate::running::{Results, density, run};
use jensen_density::LogDensity;
use jensen_graph::{ElemOp, Graph, MatMul, NodeId, evaluate, passes};
use jensen_math::simd::Simd;

fn number(k: usize) -> f64 {
    (k as f64 * 0.737_373 + 0.21).sin()
}

fn numbers(count: usize, from: usize) -> Vec<f64> {
    (0..count).map(|k| number(from + k)).collect()
}

fn product(g: &mut Graph, rows: usize, predictors: usize, by_rows: bool, slopes: NodeId) -> NodeId {
    let table = g.vector(&numbers(rows * predictors, 5));
    let dims = MatMul {
        m: rows as u32,
        k: predictors as u32,
        n: 1,
        left_transposed: by_rows,
        right_transposed: false,
    };
    g.matmul(table, slopes, dims)
}

#[derive(Clone, Copy, Debug)]
enum Rest {
    Nothing,
    Intercept,
    Offset,
    Groups,
    CrossedGroups,
}

const RESTS: [Rest; 5] = [
    Rest::Nothing,
    Rest::Intercept,
    Rest::Offset,
    Rest::Groups,
    Rest::CrossedGroups,
];

const GROUPS: usize = 4;

/// Builds a sum over rows of log1p_exp(sign · eta) and of eta exp(eta), with priors. The logistic part and the Poisson
/// part share the same predictors.
fn likelihood(rows: usize, predictors: usize, by_rows: bool, rest: Rest) -> Graph {
    let mut g = Graph::new();
    let z = g.input(predictors + 1 + 2 * GROUPS);
    let slopes = g.slice(z, 0, predictors);
    let product = product(&mut g, rows, predictors, by_rows, slopes);
    let group = |g: &mut Graph, which: usize, step: usize| {
        let levels = g.slice(z, predictors + 1 + which * GROUPS, GROUPS);
        let index: Vec<u32> = (0..rows).map(|n| (n * step % GROUPS) as u32).collect();
        g.gather(levels, &index)
    };
    let eta = match rest {
        Rest::Nothing => product,
        Rest::Intercept => {
            let intercept = g.element(z, predictors);
            g.add(intercept, product)
        }
        Rest::Offset => {
            let offset = g.vector(&numbers(rows, 77));
            g.add(product, offset)
        }
        Rest::Groups => {
            let levels = group(&mut g, 0, 3);
            g.add(levels, product)
        }
        Rest::CrossedGroups => {
            let (one, two) = (group(&mut g, 0, 3), group(&mut g, 1, 1));
            let inner = g.add(one, product);
            g.add(inner, two)
        }
    };
    let signs: Vec<f64> = (0..rows).map(|n| number(3 * n + 1).signum()).collect();
    let signs = g.vector(&signs);
    let signed = g.mul(signs, eta);
    let away = g.elem(ElemOp::Log1pExp, &[signed]);
    let away = g.sum(away);
    let mean = g.exp(eta);
    let both = g.mul(eta, mean);
    let both = g.sum(both);
    let squares = g.square(z);
    let prior = g.sum(squares);
    let total = g.add_all(&[away, both, prior]);
    let total = g.neg(total);
    g.set_outputs(vec![total]);
    g
}

fn close(a: f64, b: f64, size: f64) -> bool {
    (a - b).abs() <= 1e-11 * size
}

/// Compares values with those of the slow evaluator. Compares gradients and Hessian-vector products with those of the
/// scalar instruction set, and with finite differences of the slow evaluator.
fn check(graph: &Graph, what: &str) {
    let dim = graph.inputs()[0].len;
    let lanes = 19;
    let z: Vec<f64> = numbers(dim * lanes, 11).iter().map(|x| 0.3 * x).collect();
    let v = numbers(dim * lanes, 901);
    let mut plain: Option<Results> = None;
    for simd in Simd::available().into_iter().rev() {
        let density = density(graph, simd, 1);
        let found = run(&density, &mut density.workspace(lanes), &z, &v);
        let size = found
            .values
            .iter()
            .fold(1.0, |most: f64, x| most.max(x.abs()));
        let slow = |z: &[f64]| evaluate(graph, &[z], None)[0][0];
        for lane in 0..lanes {
            let own: Vec<f64> = (0..dim).map(|d| z[d * lanes + lane]).collect();
            let value = found.values[lane];
            assert!(close(value, slow(&own), size), "{what}, {simd}: value");
            if lane > 2 {
                continue;
            }
            for d in 0..dim {
                let h = 1e-5;
                let mut at = own.clone();
                at[d] += h;
                let above = slow(&at);
                at[d] -= 2.0 * h;
                let difference = (above - slow(&at)) / (2.0 * h);
                let gradient = found.gradients[d * lanes + lane];
                let error = (gradient - difference).abs();
                assert!(
                    error < 1e-6 * size,
                    "{what}, {simd}: {gradient} {difference}"
                );
            }
        }
        let plain = plain.get_or_insert_with(|| found.clone());
        for (a, b) in found.gradients.iter().zip(&plain.gradients) {
            assert!(close(*a, *b, size), "{what}, {simd}: gradient {a} {b}");
        }
        for (a, b) in found.products.iter().zip(&plain.products) {
            assert!(close(*a, *b, size), "{what}, {simd}: product {a} {b}");
        }
        // The bits of a lane are the same whether it is evaluated alone or together with other lanes.
        for lane in [0, 7, 18] {
            let own = |rows: &[f64]| -> Vec<f64> {
                rows.iter().skip(lane).step_by(lanes).copied().collect()
            };
            let alone = run(&density, &mut density.workspace(1), &own(&z), &own(&v));
            assert_eq!(alone.values[0], found.values[lane], "{what}, {simd}");
            assert_eq!(alone.gradients, own(&found.gradients), "{what}, {simd}");
            assert_eq!(alone.products, own(&found.products), "{what}, {simd}");
        }
    }
}

/// The test covers few and many predictors, all ways of computing products, and every kind of value that is added to a
/// predictor.
#[test]
fn likelihoods_of_rows_agree_with_the_slow_evaluator() {
    for (k, &predictors) in [2, 3, 8, 9, 17, 40].iter().enumerate() {
        for (l, &rows) in [33, 50, 203].iter().enumerate() {
            let rest = RESTS[(k + l) % RESTS.len()];
            let by_rows = (k + l) % 2 == 1;
            let what = format!("{rows} rows of {predictors}, {rest:?}, by rows: {by_rows}");
            check(&likelihood(rows, predictors, by_rows, rest), &what);
        }
    }
    for rest in RESTS {
        check(&likelihood(65, 4, false, rest), &format!("{rest:?}"));
        check(&likelihood(65, 11, true, rest), &format!("{rest:?}"));
    }
}

/// The predictors and residuals of all rows are never in memory together, so the memory of a thread does not grow with
/// the number of rows.
#[test]
fn memory_of_a_block_does_not_grow_with_the_rows() {
    for predictors in [4, 30] {
        let bytes = |rows: usize| {
            let graph = likelihood(rows, predictors, false, Rest::Groups);
            let density = density(&graph, Simd::detect(), 1);
            density.gradient_program().arena_bytes()
        };
        assert_eq!(bytes(2000), bytes(400), "{predictors} predictors");
    }
}

#[test]
fn threads_do_not_change_bits() {
    let graph = likelihood(500, 12, true, Rest::CrossedGroups);
    let lanes = 200;
    let dim = graph.inputs()[0].len;
    let (z, v) = (numbers(dim * lanes, 3), numbers(dim * lanes, 4));
    let with = |threads: usize| {
        let density = density(&graph, Simd::detect(), threads);
        run(&density, &mut density.workspace(lanes), &z, &v)
    };
    assert_eq!(with(1), with(3));
}

/// Returns the weights of a sum over rows. The weights either have few distinct values or are all different.
fn weights(rows: usize, few: bool) -> Vec<f64> {
    (0..rows)
        .map(|n| match few {
            true => (n * n % 5) as f64,
            false => 3.0 * number(n),
        })
        .collect()
}

/// Builds sums of log(1 + exp(x)), either unweighted or weighted, where x is a linear predictor minus one of its
/// parameters.
fn softplus(rows: usize, few: bool, plain: bool, weighted: usize) -> Graph {
    let mut g = Graph::new();
    let z = g.input(5);
    let slopes = g.slice(z, 0, 4);
    let eta = product(&mut g, rows, 4, false, slopes);
    let shape = g.element(z, 4);
    let x = g.sub(eta, shape);
    let value = g.elem(ElemOp::Log1pExp, &[x]);
    let squares = g.square(z);
    let mut terms = vec![g.sum(squares)];
    if plain {
        let (sum, scale) = (g.sum(value), g.exp(shape));
        terms.push(g.mul(scale, sum));
    }
    for k in 0..weighted {
        let mut weights = weights(rows, few);
        weights.rotate_left(k);
        let weights = g.vector(&weights);
        let weighed = g.mul(weights, value);
        terms.push(g.sum(weighed));
    }
    let total = g.add_all(&terms);
    let total = g.neg(total);
    g.set_outputs(vec![total]);
    g
}

#[test]
fn weighted_sums_of_softplus_agree_with_the_slow_evaluator() {
    // The kernel takes logarithms of products every 512 rows.
    for rows in [7, 33, 203, 1100] {
        for few in [true, false] {
            for (plain, weighted) in [(true, 1), (false, 1), (true, 0), (true, 2)] {
                let what = format!("{rows} rows, few: {few}, plain: {plain}, weighted: {weighted}");
                check(&softplus(rows, few, plain, weighted), &what);
            }
        }
    }
}

/// An extreme row contributes the same amount as it would on its own, and NaN values are never lost.
#[test]
fn weighted_sums_of_softplus_keep_far_rows() {
    let graph = softplus(50, true, true, 1);
    for simd in Simd::available() {
        let density = density(&graph, simd, 1);
        let mut ws = density.workspace(1);
        let at = |x: f64| [0.1, x, -0.2, 0.3, 0.0];
        for x in [40.0, 900.0, -1200.0] {
            let found = run(&density, &mut ws, &at(x), &[0.0; 5]);
            let wanted = evaluate(&graph, &[&at(x)], None)[0][0];
            assert!(close(found.values[0], wanted, wanted.abs()), "{x}, {simd}");
        }
        let nan = run(&density, &mut ws, &at(f64::NAN), &[0.0; 5]);
        assert!(nan.values[0].is_nan());
    }
}

fn value(graph: &Graph, z: &[f64]) -> f64 {
    evaluate(graph, &[z], None)[0][0]
}

fn has_rows(graph: &Graph, rows: usize) -> bool {
    let graph = passes::compact(graph);
    let known = |id: NodeId| graph.constant_value(id).is_some();
    let mut ids = graph.ids();
    ids.any(|id| graph.shape(id).len as usize == rows && !known(id))
}

/// The value of Σ w (offset + a − X b + s · group) can be computed without a separate computation for each row.
#[test]
fn sums_of_linear_predictors_are_few_terms() {
    for (rows, by_rows) in [(40, false), (300, true)] {
        let (predictors, groups) = (3, 5);
        let (weights, offsets) = (numbers(rows, 31), numbers(rows, 77));
        let index: Vec<u32> = (0..rows).map(|n| (n * 7 % groups) as u32).collect();
        let mut g = Graph::new();
        let z = g.input(predictors + groups + 2);
        let slopes = g.slice(z, 0, predictors);
        let product = product(&mut g, rows, predictors, by_rows, slopes);
        let levels = g.slice(z, predictors, groups);
        let (intercept, scale) = (
            g.element(z, predictors + groups),
            g.element(z, predictors + groups + 1),
        );
        let offset = g.vector(&offsets);
        let level = g.gather(levels, &index);
        let effect = g.mul(scale, level);
        let eta = g.sub(intercept, product);
        let eta = g.add(offset, eta);
        let eta = g.add(eta, effect);
        let weight = g.vector(&weights);
        let weighted = g.mul(weight, eta);
        let (weighted, plain) = (g.sum(weighted), g.sum(eta));
        g.set_outputs(vec![weighted, plain]);
        let at = numbers(predictors + groups + 2, 400);
        let table = numbers(rows * predictors, 5);
        let etas: Vec<f64> = (0..rows)
            .map(|n| {
                let x = |j: usize| match by_rows {
                    true => table[n * predictors + j],
                    false => table[j * rows + n],
                };
                let product: f64 = (0..predictors).map(|j| x(j) * at[j]).sum();
                let level = at[predictors + index[n] as usize];
                offsets[n] + at[predictors + groups] - product + at[predictors + groups + 1] * level
            })
            .collect();
        let found = evaluate(&g, &[&at], None);
        let wanted: f64 = etas.iter().zip(&weights).map(|(x, w)| x * w).sum();
        assert!(close(found[0][0], wanted, 1.0), "{} {wanted}", found[0][0]);
        let wanted: f64 = etas.iter().sum();
        assert!(close(found[1][0], wanted, 1.0), "{} {wanted}", found[1][0]);
        assert!(!has_rows(&g, rows), "by rows: {by_rows}");
    }
}

/// Sums of residuals keep digits that would be lost in sums of the data, which are much larger.
#[test]
fn sums_of_residuals_keep_their_digits() {
    let (rows, far) = (64, 1e9);
    let column = numbers(rows, 3);
    let data: Vec<f64> = column
        .iter()
        .zip(numbers(rows, 50))
        .map(|(x, e)| far * x + e)
        .collect();
    let mut g = Graph::new();
    let z = g.input(2);
    let (slope, scale) = (g.element(z, 0), g.element(z, 1));
    let (x, y) = (g.vector(&column), g.vector(&data));
    let eta = g.mul(x, slope);
    let rest = g.sub(y, eta);
    let scaled = g.mul(scale, rest);
    let weighted = g.mul(x, scaled);
    let total = g.sum(weighted);
    g.set_outputs(vec![total]);
    let residuals = data.iter().zip(&column).map(|(y, x)| x * (y - far * x));
    let wanted: f64 = residuals.map(|x| 3.0 * x).sum();
    let found = value(&g, &[far, 3.0]);
    assert!(
        (found - wanted).abs() < 1e-12 * wanted.abs(),
        "{found} {wanted}"
    );
}

/// Two scalars that are added to a vector, or subtracted from it, are combined for all signs and orders.
#[test]
fn scalars_about_a_vector_come_together() {
    let v = numbers(6, 9);
    for which in 0..16 {
        let mut g = Graph::new();
        let z = g.input(8);
        let (a, b, rest) = (g.element(z, 0), g.element(z, 1), g.slice(z, 2, 6));
        let put = |g: &mut Graph, way: u32, scalar: NodeId, vector: NodeId| match way {
            0 => g.add(scalar, vector),
            1 => g.add(vector, scalar),
            2 => g.sub(scalar, vector),
            _ => g.sub(vector, scalar),
        };
        let number = |way: u32, scalar: f64, x: f64| match way {
            0 | 1 => scalar + x,
            2 => scalar - x,
            _ => x - scalar,
        };
        let inner = put(&mut g, which % 4, a, rest);
        let outer = put(&mut g, which / 4, b, inner);
        g.set_outputs(vec![outer]);
        let at: Vec<f64> = [0.7, -2.5].into_iter().chain(v.iter().copied()).collect();
        let found = &evaluate(&g, &[&at], None)[0];
        for (found, x) in found.iter().zip(&v) {
            let wanted = number(which / 4, -2.5, number(which % 4, 0.7, *x));
            assert!(close(*found, wanted, 1.0), "{which}: {found} {wanted}");
        }
    }
}

/// If no other expression reads a predictor, its columns are multiplied by the signs of the outcomes.
#[test]
fn factors_of_data_are_within_the_columns() {
    for by_rows in [false, true] {
        for (rest, alone) in RESTS.into_iter().zip([true, true, true, false, false]) {
            let mut g = Graph::new();
            let rows = 70;
            let z = g.input(5 + GROUPS);
            let slopes = g.slice(z, 0, 4);
            let product = product(&mut g, rows, 4, by_rows, slopes);
            let eta = match rest {
                Rest::Nothing => product,
                Rest::Intercept => {
                    let intercept = g.element(z, 4);
                    g.sub(intercept, product)
                }
                Rest::Offset => {
                    let (offset, column) =
                        (g.vector(&numbers(rows, 7)), g.vector(&numbers(rows, 90)));
                    let (inner, slope) = (g.sub(product, offset), g.element(z, 4));
                    let more = g.mul(slope, column);
                    g.add(inner, more)
                }
                Rest::Groups => {
                    let levels = g.slice(z, 5, GROUPS);
                    let index: Vec<u32> = (0..rows).map(|n| (n % GROUPS) as u32).collect();
                    let levels = g.gather(levels, &index);
                    g.add(levels, product)
                }
                Rest::CrossedGroups => product,
            };
            let signs = g.vector(&numbers(rows, 60));
            let signed = g.mul(signs, eta);
            let each = g.elem(ElemOp::Log1pExp, &[signed]);
            let mut total = g.sum(each);
            if matches!(rest, Rest::CrossedGroups) {
                // Another expression reads the predictor.
                let means = g.exp(eta);
                let means = g.sum(means);
                total = g.add(total, means);
            }
            g.set_outputs(vec![total]);
            let folded = passes::optimise(&g);
            let at = numbers(5 + GROUPS, 2);
            let (found, wanted) = (value(&folded, &at), value(&g, &at));
            assert!(close(found, wanted, 1.0), "{rest:?}: {found} {wanted}");
            let multiplied = |graph: &Graph| {
                let known = |id: &NodeId| graph.constant_value(*id).is_some();
                let mut ids = graph.ids();
                ids.any(|id| {
                    let args = graph.args(id);
                    graph.op(id).name() == "mul"
                        && args.iter().any(known)
                        && args
                            .iter()
                            .all(|arg| graph.shape(*arg).len as usize == rows)
                })
            };
            assert_eq!(multiplied(&folded), !alone, "{rest:?}, by rows: {by_rows}");
        }
    }
}
