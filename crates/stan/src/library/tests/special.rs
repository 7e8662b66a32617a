//! Tests special functions against identities and against each other. The integration tests compare values with Stan.

use jensen_math::special::{gamma_p, gamma_q, inc_beta, inv_inc_beta, log_phi};

use super::number;
use crate::functions::special::{inv_phi_log, ln_gamma_pq, ln_inc_beta};
use crate::value::Mat;
use crate::value::Value;
use crate::value::dense;

fn close(a: f64, b: f64, tolerance: f64) {
    assert!(
        (a - b).abs() <= tolerance * b.abs().max(1.0),
        "{a} instead of {b}"
    );
}

/// Series that do not converge, and fractions whose terms overflow, evaluate to NaN.
#[test]
fn incomplete_functions_beyond_reach_have_no_value() {
    let (lower, upper) = ln_gamma_pq(1e300, 1e300);
    assert!(lower.is_nan() && upper.is_nan());
    let (lower, upper) = ln_inc_beta(1e300, 2_147_483_648.0, 0.999_999);
    assert!(lower.is_nan() && upper.is_nan());
}

#[test]
fn incomplete_functions() {
    for (a, x) in [
        (0.3, 0.1),
        (0.3, 2.0),
        (5.0, 4.9),
        (5.0, 6.1),
        (80.0, 70.0),
        (80.0, 95.0),
    ] {
        let (log_p, log_q) = ln_gamma_pq(a, x);
        close(log_p.exp(), gamma_p(a, x), 1e-13);
        close(log_q.exp(), gamma_q(a, x), 1e-13);
    }
    // Far in the tail, the probability itself underflows.
    close(ln_gamma_pq(1.0, 900.0).1, -900.0, 1e-14);
    for (a, b, x) in [
        (0.3, 0.8, 0.2),
        (2.2, 30.0, 0.1),
        (12.0, 15.0, 0.6),
        (40.0, 3.0, 0.9),
    ] {
        let (log_lower, log_upper) = ln_inc_beta(a, b, x);
        close(log_lower.exp(), inc_beta(a, b, x), 1e-12);
        close(log_upper.exp(), inc_beta(b, a, 1.0 - x), 1e-12);
        close(inc_beta(a, b, inv_inc_beta(a, b, 0.37)), 0.37, 1e-12);
    }
}

#[test]
fn quantiles_of_log_probabilities() {
    for x in [-35.0, -12.3, -3.2, -0.4, 0.0, 0.7, 2.2, 5.5, 8.0] {
        close(
            inv_phi_log(log_phi(x)),
            x,
            if x > 5.0 { 1e-3 } else { 1e-11 },
        );
    }
}

#[test]
fn decompositions() {
    let a = Mat::new(3, 3, vec![2.0, 0.3, 0.1, 0.3, 1.5, 0.2, 0.1, 0.2, 1.1]);
    let near = |x: &Mat<f64>, y: &Mat<f64>| {
        x.data()
            .iter()
            .zip(y.data())
            .for_each(|(x, y)| close(*x, *y, 1e-13));
    };
    let (values, vectors) = dense::eigen_symmetric(&a);
    let scaled = Mat::from_fn(3, 3, |i, j| vectors[(i, j)] * values[j]);
    near(&dense::multiply(&scaled, &vectors.transpose()), &a);
    assert!(values.windows(2).all(|w| w[0] <= w[1]));
    let b = Mat::new(
        4,
        3,
        vec![
            0.4, -0.7, 0.2, 1.0, 1.2, 0.3, 0.8, -1.0, 0.1, 0.2, -0.5, 0.6,
        ],
    );
    let (q, r) = dense::qr(&b, b.rows());
    near(&dense::multiply(&q, &r), &b);
    near(&dense::multiply(&q.transpose(), &q), &dense::identity(4));
    assert!((0..3).all(|i| r[(i, i)] >= 0.0));
    let (u, s, v) = dense::svd(&b);
    let us = Mat::from_fn(4, 3, |i, j| u[(i, j)] * s[j]);
    near(&dense::multiply(&us, &v.transpose()), &b);
    assert!(s.windows(2).all(|w| w[0] >= w[1]));
    let e = dense::multiply(&dense::exponential(&a), &dense::exponential(&a.map(|x| -x)));
    near(&e, &dense::identity(3));
    let l = dense::cholesky("test", &a).expect("positive definite");
    near(&dense::multiply(&l, &l.transpose()), &a);
    near(
        &dense::multiply(&a, &dense::solve(&a, &dense::identity(3)).expect("square")),
        &dense::identity(3),
    );
}

/// Large matrices use other algorithms, which must return the same signs and order.
#[test]
fn decompositions_of_large_matrices() {
    let matrix = |m: usize, n: usize| {
        Mat::from_fn(m, n, |i, j| {
            ((i * n + j) as f64 * 0.7).sin() + f64::from(u8::from(i == j)) * 3.0
        })
    };
    let near = |x: &Mat<f64>, y: &Mat<f64>| {
        assert_eq!((x.rows(), x.cols()), (y.rows(), y.cols()));
        let apart = x.data().iter().zip(y.data()).map(|(x, y)| (x - y).abs());
        assert!(apart.fold(0.0, f64::max) < 1e-11);
    };
    for (m, n) in [(70, 60), (60, 60), (60, 70)] {
        let b = matrix(m, n);
        let (q, r) = dense::qr(&b, m);
        near(&dense::multiply(&q, &r), &b);
        near(&dense::multiply(&q.transpose(), &q), &dense::identity(m));
        assert!((0..m.min(n)).all(|i| r[(i, i)] >= 0.0));
        let (u, s, v) = dense::svd(&b);
        let us = Mat::from_fn(m, s.len(), |i, j| u[(i, j)] * s[j]);
        near(&dense::multiply(&us, &v.transpose()), &b);
        assert!(s.is_sorted_by(|a, b| a >= b));
    }
    let a = matrix(60, 60);
    near(
        &dense::multiply(&a, &dense::solve(&a, &dense::identity(60)).expect("square")),
        &dense::identity(60),
    );
    let gram = dense::multiply(&a, &a.transpose());
    let l = dense::cholesky("test", &gram).expect("positive definite");
    near(&dense::multiply(&l, &l.transpose()), &gram);
    near(
        &dense::multiply(&gram, &dense::solve_cholesky(&l, &dense::identity(60))),
        &dense::identity(60),
    );
    let (values, vectors) = dense::eigen_symmetric(&gram);
    let scaled = Mat::from_fn(60, 60, |i, j| vectors[(i, j)] * values[j]);
    near(&dense::multiply(&scaled, &vectors.transpose()), &gram);
    assert!(values.is_sorted());
    let small = a.map(|x| 0.02 * x);
    let e = dense::multiply(
        &dense::exponential(&small),
        &dense::exponential(&small.map(|x| -x)),
    );
    near(&e, &dense::identity(60));
}

/// For slow and for fast drifts, the probability that the process has left by these times ranges from almost 0 to
/// almost 1.
#[test]
fn tails_of_exit_times_are_what_leaves_through_their_boundary() {
    let mut worst = 0.0f64;
    for delta in [-6.0f64, -1.5, 0.4, 2.0, 6.0] {
        for alpha in [0.6, 1.0, 2.5] {
            for beta in [0.1, 0.5, 0.85] {
                for t in [0.02, 0.1, 0.4, 1.0, 3.0, 20.0] {
                    let args = [t + 0.2, alpha, 0.2, beta, delta].map(Value::Real);
                    let below = number("wiener_lcdf_unnorm", &args).exp();
                    let above = number("wiener_lccdf_unnorm", &args).exp();
                    // This follows from two exponential martingales: that of the drift, and 1.
                    let way = -2.0 * delta * alpha;
                    let all = (way * beta).exp_m1() / way.exp_m1();
                    let error = (below + above - all).abs() / all;
                    assert!(error.is_finite(), "{args:?}");
                    worst = worst.max(error);
                }
            }
        }
    }
    assert!(worst < 1e-10, "{worst:e}");
}
