//! Tests the solvers that Stan programs call. The graph is compared with the interpreter, gradients with differences of
//! the interpreter's values, and Hessian-vector products with differences of gradients. Messages about mistakes are
//! also tested.

use crate::support::bind;
use jensen_density::{DrawKey, Lanes, LanesMut, LogDensity, Posterior, TwiceDifferentiable};
use jensen_graph::{Execution, GraphDensity};
use jensen_stan::interpret::{BoundModel, ErrorKind};
use jensen_stan::lower::{LowerOptions, lower};

const DECAY: &str = "functions {
  vector decay(real t, vector y, real a, vector b, array[] real seasons, int twice) {
    vector[2] d;
    d[1] = -a * y[1] + (twice ? 2 : 1) * b[1] * sin(t) * seasons[1];
    d[2] = a * y[1] - b[2] * y[2] / (1 + square(y[2]));
    return d;
  }
}
data { array[3] real ts; array[2] real seasons; }
parameters { real<lower=0> a; vector<lower=0>[2] b; vector<lower=0>[2] y0; real<lower=0> gap; }
model {
  CALL
  for (n in 1:3) target += normal_lpdf(y[n] | 0.3 * n, 0.5);
  gap ~ normal(0, 1);
  a ~ normal(0, 1);
  b ~ normal(0, 1);
  y0 ~ normal(1, 1);
}
";

const OLD: &str = "functions {
  array[] real growth(real t, array[] real y, array[] real theta, array[] real x_r, array[] int x_i) {
    return { theta[1] * y[1] * (1 - y[1] / theta[2]) + x_r[x_i[1]] };
  }
  vector both(vector y, vector theta, array[] real x_r, array[] int x_i) {
    return [exp(y[1]) + y[2] - theta[1], y[1] - theta[2] * y[2] + x_r[1]]';
  }
  vector pair(vector y, real u, vector v) {
    return [y[1] ^ 3 + v[1] * y[1] - u, y[2] + exp(y[2]) - v[2] * y[1]]';
  }
  real bump(real x, real xc, array[] real theta, array[] real x_r, array[] int x_i) {
    return exp(-theta[1] * square(x - theta[2])) * x_r[1];
  }
  real edge(real x, real xc, array[] real theta, array[] real x_r, array[] int x_i) {
    real right = xc > 0 ? xc : 1 - x;
    return x ^ (theta[1] - 1) * right ^ (theta[2] - 1);
  }
  vector shard(vector phi, vector theta, data array[] real x_r, data array[] int x_i) {
    return [normal_lpdf(x_r | phi[1] + theta[1], exp(phi[2])), theta[1] * x_i[1]]';
  }
}
data { array[3] real ts; array[2] real x_r; array[2] int x_i; array[2, 2] real xs; array[2, 1] int is; }
parameters { real<lower=0> u; vector<lower=0>[2] v; array[2] real<lower=0> w; }
transformed parameters { array[2] vector[1] job; job[1] = [u]'; job[2] = [v[1]]'; }
model {
  TEXT
  u ~ normal(0, 1);
  v ~ normal(0, 1);
  w ~ normal(1, 1);
}
";

const ALGEBRAIC: &str = "functions {
  vector reaction(real t, vector y, vector yp, vector k, data real total) {
    return [yp[1] + k[1] * y[1] - k[2] * y[2] * y[3],
            yp[2] - k[1] * y[1] + k[2] * y[2] * y[3] + k[3] * square(y[2]),
            sum(y) - total]';
  }
  vector creeping(real t, vector y, vector yp, real a, vector b) {
    return [yp[1] + 0.1 * yp[1] ^ 3 + a * y[1] - sin(t) * y[2], y[2] * (1 + b[2] * square(y[1])) - b[1]]';
  }
  vector decay(real t, vector y, vector yp, real a, vector b, array[] real seasons, int twice) {
    return [yp[1] + a * y[1] - (twice ? 2 : 1) * b[1] * sin(t) * seasons[1],
            yp[2] - a * y[1] + b[2] * y[2] / (1 + square(y[2]))]';
  }
}
data { array[3] real ts; array[2] real seasons; }
parameters { real<lower=0> a; vector<lower=0>[3] b; real<lower=0> y0; }
model {
  CALL
  for (n in 1:3) target += normal_lpdf(y[n] | 0.3 * n, 0.5);
  a ~ normal(0, 1);
  b ~ normal(0, 1);
  y0 ~ normal(1, 1);
}
";

const DATA: &str = r#"{"ts": [0.4, 1.5, 4.0], "seasons": [0.7, 2.0], "x_r": [0.2, 0.4], "x_i": [2, 1],
    "xs": [[0.1, 0.5], [1.5, -0.3]], "is": [[1], [3]]}"#;

fn equations() -> Vec<String> {
    let arguments = "a, b, seasons, 1";
    let mut calls = Vec::new();
    for name in ["rk45", "ckrk", "bdf", "adams"] {
        calls.push(format!(
            "array[3] vector[2] y = ode_{name}(decay, y0, 0.1, ts, {arguments});"
        ));
        calls.push(format!(
            "array[3] vector[2] y = ode_{name}_tol(decay, y0, 0, ts, 1e-9, 1e-10, 100000, {arguments});"
        ));
    }
    // In the first call, the start and the times depend on parameters. In the second call, only the start does.
    calls.push(format!(
        "array[3] real at = {{gap, gap + a, 5 + gap}};
         array[3] vector[2] y = ode_bdf_tol(decay, y0 * a, -gap, at, 1e-9, 1e-9, 100000, {arguments});"
    ));
    calls.push(
        "array[3] vector[2] y = ode_rk45_tol(decay, [1, a]', 0, ts, 1e-9, 1e-9, 10000, 0.7, [0.2, 0.3]', seasons, 0);"
            .to_string(),
    );
    for solver in [1, 2] {
        calls.push(format!(
            "array[3] vector[2] y = ode_adjoint_tol_ctl(decay, y0, 0, ts, 1e-9, [1e-10, 1e-10]', 1e-8, [1e-8, 1e-8]',
                1e-8, 1e-8, 100000, 100, 1, {solver}, {solver}, {arguments});"
        ));
    }
    calls
}

fn others() -> Vec<&'static str> {
    vec![
        "array[3, 1] real y = integrate_ode_rk45(growth, {u}, 0, ts, w, x_r, x_i); target += normal_lpdf(y[:, 1] | 1, 1);",
        "array[3, 1] real y = integrate_ode_bdf(growth, {u}, 0, ts, w, x_r, x_i, 1e-9, 1e-9, 10000); target += normal_lpdf(y[:, 1] | 1, 1);",
        "array[3, 1] real y = integrate_ode_adams(growth, {0.3}, u - 2, ts, w, x_r, x_i); target += normal_lpdf(y[:, 1] | 1, 1);",
        "target += normal_lpdf(algebra_solver(both, [0.1, 0.1]', v, x_r, x_i) | 0, 1);",
        "target += normal_lpdf(algebra_solver_newton(both, [0.1, 0.1]', v, x_r, x_i, 1e-9, 1e-9, 100) | 0, 1);",
        "target += normal_lpdf(solve_newton(pair, [0.5, 0.5]', u, v) | 0, 1);",
        "target += normal_lpdf(solve_powell_tol(pair, [0.5, u]', 1e-8, 1e-8, 200, u + 1, v) | 0, 1);",
        "target += integrate_1d(bump, 0.1, u + 0.2, w, x_r, x_i);",
        "target += log(integrate_1d(bump, negative_infinity(), positive_infinity(), w, x_r, x_i, 1e-9));",
        "target += integrate_1d(bump, u, positive_infinity(), w, x_r, x_i);",
        "target += integrate_1d(bump, negative_infinity(), u, w, x_r, x_i);",
        // An integrand that is infinite at its limits.
        "target += integrate_1d(edge, 0, 1, w, x_r, x_i);",
        "target += sum(map_rect(shard, v, job, xs, is));",
    ]
}

fn value(model: &BoundModel, z: &[f64]) -> f64 {
    model
        .log_density(z, true, false)
        .unwrap_or_else(|e| panic!("{}", model.locate(&e)))
}

fn assert_close(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    let scale = expected.iter().fold(1.0_f64, |m, x| m.max(x.abs()));
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        let off = (a - b).abs();
        assert!(
            off <= tolerance * scale,
            "{what}, {i}: {a} and {b}, off by {off:e}"
        );
    }
}

fn check(source: &str) {
    // If no tolerance is given, differences are taken with the default tolerance of 1e-6.
    let rough = ["ode_rk45(", "ode_ckrk("]
        .iter()
        .any(|name| source.contains(name));
    let model = bind(source, DATA).unwrap_or_else(|e| panic!("{source}: {e}"));
    let lowered = lower(&model, LowerOptions::default())
        .unwrap_or_else(|e| panic!("{source}\n{}: {e}", model.program().location(e.span)));
    let density = GraphDensity::new(&lowered.graph, Execution::default());
    let dim = lowered.dim;
    let (points, mut ws) = (2, density.workspace(2));
    let at = |point: usize, i: usize| 0.4 * (1.7 * i as f64 + 2.3 * point as f64).sin();
    let z: Vec<f64> = (0..dim * points)
        .map(|k| at(k % points, k / points))
        .collect();
    let mut gradients = |z: &[f64]| -> (Vec<f64>, Vec<f64>) {
        let (mut values, mut out) = (vec![0.0; points], vec![0.0; dim * points]);
        let into = LanesMut::new(&mut out, dim, points);
        density.value_grad(&mut ws, Lanes::new(z, dim, points), &mut values, into);
        (values, out)
    };
    let (values, gradient) = gradients(&z);
    for point in 0..points {
        let own: Vec<f64> = (0..dim).map(|i| at(point, i)).collect();
        let expected = value(&model, &own);
        assert_close(
            &format!("{source}: value"),
            &values[point..=point],
            &[expected],
            1e-7,
        );
        let slopes: Vec<f64> = (0..dim)
            .map(|i| {
                let h = 1e-3;
                let moved = |h: f64| {
                    let mut own = own.clone();
                    own[i] += h;
                    value(&model, &own)
                };
                (8.0 * (moved(h) - moved(-h)) - moved(2.0 * h) + moved(-2.0 * h)) / (12.0 * h)
            })
            .collect();
        let found: Vec<f64> = (0..dim).map(|i| gradient[i * points + point]).collect();
        let tolerance = if rough { 1e-3 } else { 1e-5 };
        assert_close(&format!("{source}: gradient"), &found, &slopes, tolerance);
    }
    let v: Vec<f64> = (0..dim * points)
        .map(|k| 0.3 + 0.1 * (k as f64).cos())
        .collect();
    let along = |h: f64| -> Vec<f64> { z.iter().zip(&v).map(|(z, v)| z + h * v).collect() };
    let h = 1e-4;
    let (up, down) = (gradients(&along(h)).1, gradients(&along(-h)).1);
    let curvatures: Vec<f64> = up
        .iter()
        .zip(&down)
        .map(|(u, d)| (u - d) / (2.0 * h))
        .collect();
    let mut product = vec![0.0; dim * points];
    let mut ws = density.workspace(points);
    density.hvp(
        &mut ws,
        Lanes::new(&z, dim, points),
        Lanes::new(&v, dim, points),
        LanesMut::new(&mut product, dim, points),
    );
    let tolerance = if rough { 1e-3 } else { 1e-4 };
    assert_close(
        &format!("{source}: product"),
        &product,
        &curvatures,
        tolerance,
    );
}

#[test]
fn differential_equations() {
    for call in equations() {
        check(&DECAY.replace("CALL", &call));
    }
}

/// The programs have equations without derivatives, equations that do not give rates, equations written as rates, and
/// output times that are equal.
#[test]
fn differential_algebraic_equations() {
    for call in [
        "array[3] vector[3] y = dae(reaction, [1, 0, 0]', [-b[1], b[1], 0]', 0, ts, b, 1);",
        "array[3] vector[3] y = dae_tol(reaction, [y0, 0, 2 - y0]', [-b[1] * y0, b[1] * y0, 0]', 0, ts, 1e-9, 1e-11, 10000, b, 2);",
        "array[3] vector[2] y = dae(creeping, [y0, b[1] / (1 + b[2] * square(y0))]', [0, 0]', 0.1, ts, a, b[1:2]);",
        "array[3] vector[2] y = dae_tol(creeping, [0.3, b[1] / (1 + b[2] * 0.09)]', [0, 0]', 0, {1, 1, 2}, 1e-10, 1e-10, 10000, 0.8, b[1:2]);",
        "array[3] vector[2] y = dae(decay, [y0, a]', [-a * y0, 0]', 0, ts, a, b[1:2], seasons, 1);",
    ] {
        check(&ALGEBRAIC.replace("CALL", call));
    }
}

#[test]
fn rates_as_residuals() {
    let rates = DECAY.replace(
        "CALL",
        "array[3] vector[2] y = ode_bdf(decay, y0, 0, ts, a, b, seasons, 1); target += 0 * gap;",
    );
    let residuals = rates
        .replace("vector y, real a", "vector y, vector yp, real a")
        .replace("return d;", "return yp - d;")
        .replace("ode_bdf(decay, y0,", "dae(decay, y0, [0, 0]',");
    let z = [0.2, -0.3, 0.1, 0.4, -0.2, 0.3];
    let of = |source: &str| {
        let model = bind(source, DATA).unwrap_or_else(|e| panic!("{e}"));
        let lowered = lower(&model, LowerOptions::default()).expect("a graph");
        let density = GraphDensity::new(&lowered.graph, Execution::default());
        let (mut value, mut slopes) = ([0.0], vec![0.0; z.len()]);
        let mut ws = density.workspace(1);
        let into = LanesMut::new(&mut slopes, z.len(), 1);
        density.value_grad(&mut ws, Lanes::new(&z, z.len(), 1), &mut value, into);
        (value, slopes)
    };
    let (found, expected) = (of(&residuals), of(&rates));
    assert_close("value", &found.0, &expected.0, 1e-8);
    assert_close("gradient", &found.1, &expected.1, 1e-7);
}

#[test]
fn algebraic_equations_are_interpreted() {
    let source = "functions {
  vector f(real t, vector y, vector yp, real k) { return [yp[1] + k * y[1], y[2] - square(y[1]) - t]'; }
}
transformed data {
  array[2] vector[2] y = dae(f, [2, 4]', [-1, 7]', 0, {1.0, 3.0}, 0.5);
}
parameters { real<lower=0> k; }
model { k ~ normal(y[1, 1], 1); }
generated quantities {
  array[2] vector[2] z = dae_tol(f, [2, 4]', [-2 * k, 0]', 0, {1.0, 3.0}, 1e-11, 1e-11, 10000, k);
  real first = y[2, 2];
}
";
    let model = bind(source, "{}").unwrap();
    let mut out = Vec::new();
    model
        .constrain(&[0.2], DrawKey { seed: 1, index: 0 }, &mut out)
        .unwrap();
    let k = 0.2_f64.exp();
    // The first element at times 1 and 3 precedes the second element.
    let y = |k: f64, t: f64| [2.0 * (-k * t).exp(), 4.0 * (-2.0 * k * t).exp() + t];
    let ([a, b], [c, d]) = (y(k, 1.0), y(k, 3.0));
    assert_close("a draw", &out, &[k, a, c, b, d, y(0.5, 3.0)[1]], 1e-8);
    for (from, to, said) in [
        (
            "[2, 4]', [-1, 7]'",
            "[2, 5]', [-1, 7]'",
            "the initial state must satisfy",
        ),
        (
            "[2, 4]', [-1, 7]'",
            "[2, 0.0 / 0]', [-1, 7]'",
            "initial state[2] is NaN, but must be finite!",
        ),
        (
            "[-1, 7]'",
            "[-1, 7, 0]'",
            "3 derivatives at the start for 2 states",
        ),
        (
            "0, {1.0, 3.0}, 0.5",
            "1.5, {1.0, 3.0}, 0.5",
            "later than the initial time",
        ),
    ] {
        let reported = bind(&source.replace(from, to), "{}")
            .map(|_| ())
            .unwrap_err();
        assert!(reported.to_string().contains(said), "{reported}");
    }
    // A draw is rejected if its start is not consistent.
    let source = "functions { vector f(real t, vector y, vector yp, real k) { return [yp[1] + k * y[1], y[2] - y[1]]'; } }
parameters { real k; }
model { target += dae(f, [1, 1 + k]', [-k, 0]', 0, {1.0}, k)[1, 2]; }
";
    let model = bind(source, "{}").unwrap();
    let lowered = lower(&model, LowerOptions::default()).expect("a graph");
    let density = GraphDensity::new(&lowered.graph, Execution::default());
    let (mut values, mut ws) = ([0.0; 2], density.workspace(2));
    density.value(&mut ws, Lanes::new(&[0.0, 0.5], 1, 2), &mut values);
    assert_close("the first draw", &values[..1], &[1.0], 1e-9);
    assert!(!values[1].is_finite(), "{}", values[1]);
}

#[test]
fn roots_integrals_and_shards() {
    for text in others() {
        check(&OLD.replace("TEXT", text));
    }
}

#[test]
fn interpreted_blocks() {
    let source = "functions { vector f(real t, vector y, real k) { return -k * y; } }
transformed data {
  array[2] vector[1] y = ode_bdf(f, [2]', 0, {1.0, 3.0}, 0.5);
}
parameters { real<lower=0> k; }
model { k ~ normal(y[1, 1], 1); }
generated quantities {
  array[2] vector[1] z = ode_rk45_tol(f, [2]', 0, {1.0, 3.0}, 1e-10, 1e-10, 10000, k);
  real first = y[2, 1];
}
";
    let model = bind(source, "{}").unwrap();
    let mut out = Vec::new();
    model
        .constrain(&[0.2], DrawKey { seed: 1, index: 0 }, &mut out)
        .unwrap();
    let k = 0.2_f64.exp();
    let expected = [
        k,
        2.0 * (-k).exp(),
        2.0 * (-3.0 * k).exp(),
        2.0 * (-1.5_f64).exp(),
    ];
    assert_close("a draw", &out, &expected, 1e-8);
}

#[test]
fn mistakes_are_named() {
    let program = |call: &str| {
        format!(
            "functions {{ vector f(real t, vector y, real k) {{ return -k * y; }}
  vector g(real t, vector y, real k) {{ return rep_vector(k, 3); }}
  vector h(vector y, real k) {{ return square(y) + 1 + 0 * k; }} }}
parameters {{ real<lower=0> k; }}
model {{ {call} }}"
        )
    };
    let cases = [
        (
            "array[2] vector[1] y = ode_rk45(f, [2]', 0, {1.0, 0.5}, k); target += y[1, 1];",
            ErrorKind::Rejected,
            "ode_rk45: output time 2 is 0.5, but must be finite and later than the one before, 1",
        ),
        (
            "array[1] vector[1] y = ode_rk45(f, [2]', 1, {1.0}, k); target += y[1, 1];",
            ErrorKind::Rejected,
            "output time 1 is 1, but must be finite and later than the initial time, 1",
        ),
        (
            "array[1] vector[1] y = ode_bdf_tol(f, [2]', 0, {1.0}, -1, 1e-6, 100, k); target += y[1, 1];",
            ErrorKind::Rejected,
            "ode_bdf_tol: the relative tolerance is -1, but must be positive",
        ),
        (
            "array[1] vector[2] y = ode_rk45(g, [2, 1]', 0, {1.0}, k); target += y[1, 1];",
            ErrorKind::Failed,
            "ode_rk45: the function returns 3 values for 2 states",
        ),
    ];
    for (call, kind, expected) in cases {
        let source = program(call);
        let model = bind(&source, "{}").unwrap();
        let error = lower(&model, LowerOptions::default()).expect_err(call);
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        let error = model.log_density(&[0.1], true, false).expect_err(call);
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    // In both evaluators, an error that depends on a draw rejects the draw.
    let rejected = [
        "target += solve_newton(h, [1]', k)[1];",
        "array[1] vector[1] y = ode_rk45_tol(f, [2]', 0, {1.0}, 1e-9, 1e-9, 2, k); target += y[1, 1];",
    ];
    for call in rejected {
        let model = bind(&program(call), "{}").unwrap();
        let error = model.log_density(&[0.1], true, false).expect_err(call);
        assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
        let lowered = lower(&model, LowerOptions::default()).unwrap();
        let found = jensen_graph::evaluate(&lowered.graph, &[&[0.1]], None)[0][0];
        assert!(found.is_nan(), "{call}: {found}");
    }
}

/// A stiff reaction whose rates are parameters, over eleven orders of magnitude of time.
#[test]
fn stiff_equations() {
    check(
        "functions {
  vector reaction(real t, vector y, vector k) {
    real slow = k[1] * y[1];
    real back = k[3] * y[2] * y[3];
    real fast = k[2] * square(y[2]);
    return [-slow + back, slow - back - fast, fast]';
  }
}
data { array[3] real ts; }
transformed data { array[3] real late = {0.4, 4, 400}; vector[3] base = [0.04, 3e7, 1e4]'; }
parameters { vector<multiplier=0.1>[3] logs; }
model {
  array[3] vector[3] y = ode_bdf_tol(reaction, [1, 0, 0]', 0, late, 1e-9, 1e-12, 100000, base .* exp(logs));
  for (n in 1:3) target += normal_lpdf(y[n, 1] | 0.9, 0.1) + normal_lpdf(1e5 * y[n, 2] | 2, 1);
  logs ~ normal(0, 0.3);
}",
    );
}
