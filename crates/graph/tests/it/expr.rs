//! Compares densities that are written as expressions with formulas, and constraints with finite differences. Also
//! tests the errors that mistakes cause.

use jensen_graph::{Builder, Expr, ExprError, evaluate};
use jensen_math::special::{inv_logit, lgamma};

fn value(builder: &Builder, target: Expr<'_>, z: &[f64]) -> f64 {
    let graph = builder.try_graph(target).expect("a right expression");
    evaluate(&graph, &[z], None)[0][0]
}

fn assert_close(a: f64, b: f64, what: &str) {
    assert!(
        (a - b).abs() <= 1e-12 * (1.0 + b.abs()),
        "{what}: {a} against {b}"
    );
}

use jensen_math::constants::HALF_LOG_TWO_PI;

#[test]
fn log_densities_equal_their_formulas() {
    let (z, y) = ([0.3, 0.8], [0.2, 0.6, 0.9]);
    let [a, b] = z;
    type Density = for<'b> fn(Expr<'b>, Expr<'b>, Expr<'b>) -> Expr<'b>;
    type Formula = fn(f64, f64, f64) -> f64;
    let cases: [(&str, Density, Formula); 9] = [
        (
            "normal",
            |y, a, b| y.normal_lpdf(a, b),
            |y, a, b| -0.5 * ((y - a) / b).powi(2) - b.ln() - HALF_LOG_TWO_PI,
        ),
        (
            "std_normal",
            |y, _, _| y.std_normal_lpdf(),
            |y, _, _| -0.5 * y * y - HALF_LOG_TWO_PI,
        ),
        (
            "cauchy",
            |y, a, b| y.cauchy_lpdf(a, b),
            |y, a, b| -(std::f64::consts::PI * b * (1.0 + ((y - a) / b).powi(2))).ln(),
        ),
        (
            "student_t",
            |y, a, b| y.student_t_lpdf(4.0, a, b),
            |y, a, b| {
                lgamma(2.5)
                    - lgamma(2.0)
                    - 0.5 * (4.0 * std::f64::consts::PI).ln()
                    - b.ln()
                    - 2.5 * (1.0 + ((y - a) / b).powi(2) / 4.0).ln()
            },
        ),
        (
            "exponential",
            |y, _, b| y.exponential_lpdf(b),
            |y, _, b| b.ln() - b * y,
        ),
        (
            "gamma",
            |y, a, b| y.gamma_lpdf(a, b),
            |y, a, b| a * b.ln() - lgamma(a) + (a - 1.0) * y.ln() - b * y,
        ),
        (
            "beta",
            |y, a, b| y.beta_lpdf(a, b),
            |y, a, b| {
                lgamma(a + b) - lgamma(a) - lgamma(b)
                    + (a - 1.0) * y.ln()
                    + (b - 1.0) * (1.0 - y).ln()
            },
        ),
        (
            "bernoulli_logit",
            |y, a, b| y.bernoulli_logit_lpmf(a * b),
            |y, a, b| y * inv_logit(a * b).ln() + (1.0 - y) * inv_logit(-a * b).ln(),
        ),
        (
            "poisson_log",
            |y, a, b| y.poisson_log_lpmf(a * b),
            |y, a, b| y * a * b - (a * b).exp() - lgamma(y + 1.0),
        ),
    ];
    for (name, density, formula) in cases {
        let builder = Builder::new();
        let x = builder.parameters(2);
        let target = density(builder.data(&y), x.at(0), x.at(1));
        let expected: f64 = y.iter().map(|&y| formula(y, a, b)).sum();
        assert_close(value(&builder, target, &z), expected, name);
    }
}

#[test]
fn operators_and_functions_equal_their_scalar_counterparts() {
    let builder = Builder::new();
    let x = builder.parameters(3);
    let (a, b, c) = (x.at(0), x.at(1), x.at(2));
    let mut target = 2.0 * a - b / 3.0 + (1.0 - c) - (a + 4.0) * b + 5.0 / a;
    target += a.pow(b) + c.log_add_exp(b) + a.lt(b) + b.minimum(0.1) + c.maximum(a);
    target -= 0.5;
    target -= -a;
    target += x.mean() + x.max() + x.log_sum_exp() + x.cumsum().dot(builder.data(&[1.0, 2.0, 3.0]));
    target += a.where_else(b.le(c), b) + x.slice(1..3).gather(&[1, 1, 0]).sum();
    let [p, q, r] = [0.7_f64, 1.3, -0.4];
    let mut expected = 2.0 * p - q / 3.0 + (1.0 - r) - (p + 4.0) * q + 5.0 / p;
    expected += p.powf(q) + (r.exp() + q.exp()).ln() + 1.0 + 0.1 + p;
    expected += p - 0.5;
    expected += (p + q + r) / 3.0 + q + (p.exp() + q.exp() + r.exp()).ln();
    expected += p + 2.0 * (p + q) + 3.0 * (p + q + r);
    expected += q + 2.0 * r + q;
    assert_close(
        value(&builder, target, &[p, q, r]),
        expected,
        "a sum of all",
    );
}

#[test]
fn matrices_multiply_factorise_and_solve() {
    let builder = Builder::new();
    let x = builder.parameters(4);
    let a = x.reshape(2, 2);
    // The product [[1, 2], [3, 4]] · x and its quadratic form.
    let m = builder.matrix(2, 2, &[1.0, 3.0, 2.0, 4.0]);
    let y = m.mul_vec(x.slice(0..2));
    assert_close(
        value(&builder, y.at(1), &[2.0, 5.0, 0.0, 0.0]),
        26.0,
        "product",
    );
    let spd = a.mul(a.transpose());
    let det = spd.log_abs_det();
    let from_factor = 2.0 * spd.cholesky().diagonal().log().sum();
    let z = [1.5, 0.3, -0.2, 0.8];
    let expected = 2.0 * (1.5_f64 * 0.8 + 0.2 * 0.3).ln();
    assert_close(value(&builder, det, &z), expected, "determinant");
    assert_close(
        value(&builder, from_factor, &z),
        expected,
        "determinant by factor",
    );
    let l = spd.cholesky();
    let b = builder.data(&[0.3, -0.7]);
    let residual = l.mul_vec(l.solve_lower(b)) - b;
    assert_close(
        value(&builder, residual.square().sum(), &z),
        0.0,
        "solution",
    );
}

fn log_det(mut m: Vec<Vec<f64>>) -> f64 {
    let n = m.len();
    let mut log = 0.0;
    for p in 0..n {
        let pivot = (p..n)
            .max_by(|&i, &j| m[i][p].abs().total_cmp(&m[j][p].abs()))
            .expect("rows are left");
        m.swap(p, pivot);
        log += m[p][p].abs().ln();
        for i in p + 1..n {
            let factor = m[i][p] / m[p][p];
            let (above, below) = m.split_at_mut(i);
            for (entry, head) in below[0].iter_mut().zip(&above[p]).skip(p) {
                *entry -= factor * head;
            }
        }
    }
    log
}

#[test]
fn constraints_add_the_log_jacobian() {
    type Constraint = for<'b> fn(Expr<'b>) -> Expr<'b>;
    type Holds = fn(&[f64]) -> bool;
    let cases: [(&str, Constraint, Holds); 6] = [
        ("positive", |x| x.positive(), |x| x.iter().all(|&x| x > 0.0)),
        ("lower", |x| x.lower(-2.0), |x| x.iter().all(|&x| x > -2.0)),
        ("upper", |x| x.upper(5.0), |x| x.iter().all(|&x| x < 5.0)),
        (
            "interval",
            |x| x.interval(-1.0, 3.0),
            |x| x.iter().all(|&x| x > -1.0 && x < 3.0),
        ),
        ("ordered", |x| x.ordered(), |x| x.is_sorted()),
        (
            "simplex",
            |x| x.simplex(),
            |x| x.iter().all(|&x| x > 0.0) && (x.iter().sum::<f64>() - 1.0).abs() < 1e-14,
        ),
    ];
    let z = [0.4, -0.9, 1.3];
    for (name, constraint, holds) in cases {
        let builder = Builder::new();
        let x = constraint(builder.parameters(3));
        let jacobian = |z: &[f64]| value(&builder, builder.constant(0.0), z);
        let constrained = |z: &[f64]| -> Vec<f64> {
            (0..x.len())
                .map(|i| value(&builder, x.at(i), z) - jacobian(z))
                .collect()
        };
        assert!(holds(&constrained(&z)), "{name}: {:?}", constrained(&z));
        let h = 1e-5;
        let columns: Vec<Vec<f64>> = (0..3)
            .map(|j| {
                let moved = |t: f64| {
                    let mut z = z;
                    z[j] += t;
                    constrained(&z)
                };
                let (up, down) = (moved(h), moved(-h));
                (0..3).map(|i| (up[i] - down[i]) / (2.0 * h)).collect()
            })
            .collect();
        let numeric = log_det(columns);
        assert!(
            (jacobian(&z) - numeric).abs() < 1e-7,
            "{name}: {} against {numeric}",
            jacobian(&z)
        );
    }
    // The zero vector maps to the centre of the simplex.
    let builder = Builder::new();
    let x = builder.parameters(3).simplex();
    let without = value(&builder, builder.constant(0.0), &[0.0; 3]);
    for i in 0..4 {
        assert_close(
            value(&builder, x.at(i), &[0.0; 3]) - without,
            0.25,
            "centre",
        );
    }
}

#[test]
fn mistakes_are_kept_with_their_location() {
    fn mistake(make: impl for<'b> Fn(&'b Builder, Expr<'b>) -> Expr<'b>) -> ExprError {
        let builder = Builder::new();
        let x = builder.parameters(3);
        let target = make(&builder, x);
        builder.try_graph(target).expect_err("a mistake")
    }
    let cases = [
        (
            mistake(|b, x| (x + b.data(&[1.0, 2.0])).sum()),
            "add: 3 elements against 2 elements",
        ),
        (
            mistake(|b, x| x.normal_lpdf(b.data(&[1.0, 2.0]), 1.0)),
            "sub: 3 elements against 2 elements",
        ),
        (mistake(|_, x| x.at(3)), "index 3 of 3 elements"),
        (mistake(|_, x| x.slice(2..5).sum()), "index 3 of 3 elements"),
        (mistake(|_, x| x.exp()), "the log density is a scalar"),
        (
            mistake(|b, x| b.matrix(2, 2, &[1.0; 3]).mul_vec(x).sum()),
            "a 2 × 2 matrix of 3 elements",
        ),
        (
            mistake(|b, x| b.matrix(2, 2, &[1.0; 4]).mul_vec(x).sum()),
            "a 2 × 1 matrix of 3 elements",
        ),
        (
            mistake(|b, x| b.matrix(1, 3, &[1.0; 3]).cholesky().elements().dot(x)),
            "the Cholesky factor of a 1 × 3 matrix",
        ),
        (
            mistake(|b, x| b.record(&[1.0, 2.0]).sum() + b.record(&[1.0]).sum() + x.sum()),
            "a column of 1 records, where earlier columns have 2",
        ),
        (
            mistake(|b, x| (b.record(&[1.0, 2.0]) + x).sum()),
            "add: a record column against 3 elements",
        ),
        (
            mistake(|b, x| x.gather_record(b.record_indices(&[0, 3])).sum()),
            "index 3 of 3 elements",
        ),
        (
            mistake(|b, x| b.record_matrix(&[1.0; 4], 2).mul_vec(x).sum()),
            "2 columns times 3 elements",
        ),
        (
            mistake(|b, x| b.concat(&[b.record(&[1.0]), x]).sum()),
            "record columns cannot be concatenated",
        ),
    ];
    for (error, message) in cases {
        assert!(
            error.message.contains(message),
            "{error}, expected {message}"
        );
        assert!(error.location.file().ends_with("expr.rs"), "{error}");
        assert!(error.location.file().contains("tests"), "{error}");
    }
    let error = Builder::new();
    let error = error.try_graph(error.constant(1.0)).expect_err("nothing");
    assert_eq!(error.message, "the density has no parameters");
}

#[test]
fn a_loop_over_records_becomes_vector_operations() {
    let nodes = |n: usize| {
        let builder = Builder::new();
        let x = builder.parameters(2);
        let sigma = builder.parameter().positive();
        let mut target = sigma.exponential_lpdf(1.0);
        for i in 0..n {
            let y = builder.constant((i as f64).sin());
            let mean = x.at(0) + x.at(1) * (i as f64 * 0.1);
            target += y.normal_lpdf(mean, sigma);
        }
        let density = builder.density(target, jensen_graph::Execution::default());
        density.graph().len()
    };
    assert!(nodes(500) < 80, "{}", nodes(500));
    assert!(nodes(500) <= nodes(250) + 2);
}
