//! Checks that the evaluators agree on the log density of a program, and that the derivatives agree with finite
//! differences.

use jensen_density::{DrawKey, Lanes, LanesMut, LogDensity, Posterior, TwiceDifferentiable};
use jensen_graph::scalar::node_values;
use jensen_graph::{ElemOp, Execution, Graph, GraphDensity, Op};
use jensen_stan::interpret::{BoundModel, ErrorKind};
use jensen_stan::lower::{LowerOptions, lower};

use crate::support::bind;

/// The result of a comparison without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Finite values were compared.
    Agreed,
    /// Both evaluators rejected every point.
    Rejected,
    /// Both evaluators reject the data, or reject the program for all parameters.
    Refused,
    /// Lowering reports an unsupported construct.
    Unsupported,
    /// The evaluators differ where the program itself depends on a rounding error or overflows. See [`delicate`].
    Delicate,
}

const LANES: usize = 5;

/// The tolerance. It is relative to the value and to the change of the value that rounding in the program itself may
/// cause.
const TOLERANCE: f64 = 1e-8;

fn noise(state: &mut u64) -> f64 {
    let mut sum = -6.0;
    for _ in 0..12 {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        sum += (*state >> 11) as f64 / (1_u64 << 53) as f64;
    }
    sum
}

/// Compares the evaluators on a program with its data at random points.
///
/// # Errors
/// Describes the difference if the evaluators differ.
pub fn compare(source: &str, data: &str, seed: u64) -> Result<Outcome, String> {
    let model = match bind(source, data) {
        Ok(model) => model,
        Err(error) if error.kind == ErrorKind::Unsupported => return Ok(Outcome::Unsupported),
        Err(_) => return Ok(Outcome::Refused),
    };
    let dim = model.unconstrained_dim();
    let mut state = seed;
    let points: Vec<Vec<f64>> = (0..LANES)
        .map(|lane| {
            (0..dim)
                .map(|_| noise(&mut state) * if lane == 4 { 3.0 } else { 0.7 })
                .collect()
        })
        .collect();
    generate(&model, &points[0]);
    let lowered = match lower(&model, LowerOptions::default()) {
        Ok(lowered) => lowered,
        Err(error) if error.kind == ErrorKind::Unsupported => return Ok(Outcome::Unsupported),
        Err(error) => {
            let fine = points.iter().find(|z| value(&model, z).is_some());
            return match fine {
                Some(z) => Err(format!(
                    "lowering fails with `{}: {error}` but the interpreter has {:?}",
                    model.program().location(error.span),
                    value(&model, z)
                )),
                None => Ok(Outcome::Refused),
            };
        }
    };
    let density = GraphDensity::new(&lowered.graph, Execution::default());
    let mut z = vec![0.0; dim * LANES];
    for (lane, point) in points.iter().enumerate() {
        for (row, x) in point.iter().enumerate() {
            z[row * LANES + lane] = *x;
        }
    }
    let mut workspace = density.workspace(LANES);
    let lanes = |data| Lanes::new(data, dim, LANES);
    let (mut alone, mut with) = ([0.0; LANES], [0.0; LANES]);
    let mut gradient = vec![0.0; dim * LANES];
    density.value(&mut workspace, lanes(&z), &mut alone);
    density.value_grad(
        &mut workspace,
        lanes(&z),
        &mut with,
        LanesMut::new(&mut gradient, dim, LANES),
    );
    let mut outcome = Outcome::Rejected;
    for lane in 0..LANES {
        let point = &points[lane];
        let expected = value(&model, point);
        let shaken = point_condition(&model, point, expected);
        for (what, found) in [("value", alone[lane]), ("value with gradient", with[lane])] {
            let same = match expected {
                Some(expected) => {
                    (found - expected).abs() <= TOLERANCE * expected.abs().max(1.0) + shaken
                }
                None => !found.is_finite(),
            };
            // After a rounding error, the program may take the other side of a branch.
            if !same && shaken.is_finite() {
                if delicate(&lowered.graph, point, expected) {
                    return Ok(Outcome::Delicate);
                }
                return Err(format!(
                    "{what} at {point:?}: {found}, interpreter {expected:?} ({:?})",
                    model
                        .log_density(point, true, false)
                        .map_err(|e| model.locate(&e))
                ));
            }
        }
        if expected.is_none() || !shaken.is_finite() {
            continue;
        }
        outcome = Outcome::Agreed;
        let own: Vec<f64> = (0..dim).map(|row| gradient[row * LANES + lane]).collect();
        if lane < 2 {
            match differences(&model, point, &own, &mut state) {
                Err(_) if delicate(&lowered.graph, point, expected) => {
                    return Ok(Outcome::Delicate);
                }
                result => result?,
            }
        }
    }
    if seed.is_multiple_of(4) && outcome == Outcome::Agreed && dim > 0 {
        second(&density, &points[0], &mut state)?;
    }
    Ok(outcome)
}

/// Returns whether rounding determines the value. This is so if the program compares numbers that are equal except for
/// rounding. It is also so if intermediate numbers are so large that smaller numbers added to them are lost. Such
/// numbers may be infinite in a branch that is not taken.
fn delicate(graph: &Graph, z: &[f64], value: Option<f64>) -> bool {
    let nodes = node_values(graph, &[z]);
    let large = 1e6 * value.map_or(1.0, |v| v.abs().max(1.0));
    // Whole numbers are counts or truth values, which have no rounding errors.
    let tie = |x: f64, y: f64| {
        (x - y).abs() <= 1e-12 * x.abs().max(y.abs()).max(1.0)
            && !(x.fract() == 0.0 && y.fract() == 0.0)
    };
    graph.ids().any(|id| {
        let arguments: Vec<&[f64]> = graph
            .args(id)
            .iter()
            .map(|arg| nodes[arg.index()].as_slice())
            .collect();
        let compares = matches!(graph.op(id), Op::Elem(ElemOp::Lt | ElemOp::Le | ElemOp::Eq));
        let ties = compares
            && (0..nodes[id.index()].len()).any(|i| {
                let at = |x: &[f64]| x[if x.len() == 1 { 0 } else { i }];
                tie(at(arguments[0]), at(arguments[1]))
            });
        // Constants and masks may be infinite by themselves.
        let computed = !arguments.is_empty() && !matches!(graph.op(id), Op::Elem(ElemOp::Select));
        ties || computed
            && nodes[id.index()]
                .iter()
                .any(|x| x.is_nan() || x.abs() > large)
    })
}

fn value(model: &BoundModel, z: &[f64]) -> Option<f64> {
    model
        .log_density(z, true, false)
        .ok()
        .filter(|x| x.is_finite())
}

fn generate(model: &BoundModel, z: &[f64]) {
    let mut out = Vec::new();
    if model
        .constrain(z, DrawKey { seed: 1, index: 2 }, &mut out)
        .is_ok()
    {
        let expected: usize = model.variables().iter().map(|v| v.len()).sum();
        assert_eq!(out.len(), expected, "length of a draw");
    }
}

/// Returns the change of the value if the point moves by a few rounding errors. The change is infinite if the value
/// becomes undefined.
fn point_condition(model: &BoundModel, z: &[f64], at: Option<f64>) -> f64 {
    let mut most: f64 = 0.0;
    for sign in [1.0, -1.0] {
        let moved: Vec<f64> = z
            .iter()
            .enumerate()
            .map(|(i, x)| x * (1.0 + sign * 1e-13 * if i % 2 == 0 { 1.0 } else { -0.7 }))
            .collect();
        match (at, value(model, &moved)) {
            (Some(a), Some(b)) => most = most.max((a - b).abs()),
            (None, None) => {}
            _ => return f64::INFINITY,
        }
    }
    100.0 * most
}

/// Compares the gradient along a random direction with finite differences, provided that the differences of two widths
/// agree.
fn differences(
    model: &BoundModel,
    z: &[f64],
    gradient: &[f64],
    state: &mut u64,
) -> Result<(), String> {
    let direction: Vec<f64> = z.iter().map(|_| noise(state)).collect();
    let slope: f64 = direction.iter().zip(gradient).map(|(a, b)| a * b).sum();
    let at = |h: f64| -> Option<f64> {
        let moved: Vec<f64> = z.iter().zip(&direction).map(|(x, d)| x + h * d).collect();
        value(model, &moved)
    };
    let width = |h: f64| -> Option<(f64, f64)> {
        let (up, down, middle) = (at(h)?, at(-h)?, at(0.0)?);
        let noise = 1e-14 * (up.abs() + down.abs()).max(1.0) / h;
        let kink = ((up - middle) - (middle - down)).abs() / h;
        Some(((up - down) / (2.0 * h), noise + kink))
    };
    let (Some((wide, _)), Some((narrow, rough))) = (width(1e-4), width(1e-5)) else {
        return Ok(());
    };
    let scale = slope.abs().max(narrow.abs()).max(1.0);
    if (wide - narrow).abs() > 1e-5 * scale || rough > 1e-2 * scale {
        return Ok(());
    }
    let gap = (slope - narrow).abs();
    if gap.is_nan() || gap > 1e-3 * scale {
        return Err(format!(
            "slope {slope} of the gradient, {narrow} by differences, at {z:?} along {direction:?}"
        ));
    }
    Ok(())
}

fn second(density: &GraphDensity, z: &[f64], state: &mut u64) -> Result<(), String> {
    let dim = z.len();
    let mut workspace = density.workspace(1);
    let direction: Vec<f64> = z.iter().map(|_| noise(state)).collect();
    let mut product = vec![0.0; dim];
    fn one(data: &[f64]) -> Lanes<'_> {
        Lanes::new(data, data.len(), 1)
    }
    density.hvp(
        &mut workspace,
        one(z),
        one(&direction),
        LanesMut::new(&mut product, dim, 1),
    );
    let mut gradient = |h: f64| -> Option<Vec<f64>> {
        let moved: Vec<f64> = z.iter().zip(&direction).map(|(x, d)| x + h * d).collect();
        let (mut value, mut out) = ([0.0], vec![0.0; dim]);
        density.value_grad(
            &mut workspace,
            one(&moved),
            &mut value,
            LanesMut::new(&mut out, dim, 1),
        );
        (value[0].is_finite() && out.iter().all(|x| x.is_finite())).then_some(out)
    };
    let mut slopes = |h: f64| -> Option<(Vec<f64>, f64)> {
        let (up, down, middle) = (gradient(h)?, gradient(-h)?, gradient(0.0)?);
        let mut rough: f64 = 0.0;
        for i in 0..dim {
            let curvature = ((up[i] - middle[i]) - (middle[i] - down[i])).abs() / h;
            rough = rough.max(curvature + 1e-14 * middle[i].abs() / h);
        }
        Some((
            up.iter()
                .zip(&down)
                .map(|(a, b)| (a - b) / (2.0 * h))
                .collect(),
            rough,
        ))
    };
    let (Some((wide, _)), Some((narrow, rough))) = (slopes(1e-4), slopes(1e-5)) else {
        return Ok(());
    };
    let scale = narrow
        .iter()
        .chain(&product)
        .fold(1.0_f64, |m, x| m.max(x.abs()));
    let unsteady = wide
        .iter()
        .zip(&narrow)
        .any(|(a, b)| (a - b).abs() > 1e-5 * scale);
    if unsteady || rough > 1e-2 * scale {
        return Ok(());
    }
    let worst = product
        .iter()
        .zip(&narrow)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max);
    if worst.is_nan() || worst > 1e-3 * scale {
        return Err(format!(
            "Hessian-vector product {product:?}, by differences {narrow:?}, at {z:?}"
        ));
    }
    Ok(())
}
