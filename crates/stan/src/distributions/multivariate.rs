//! Multivariate normal and Student distributions, Gaussian processes, hidden Markov models.

use std::f64::consts::PI;

use crate::distributions::family::{Domain, check};
use crate::distributions::simplexes::check_simplex;
use crate::functions::random::Draws;
use crate::functions::reductions::log_sum_exp;
use crate::functions::special::{HALF_LOG_TWO_PI, lgamma};
use crate::functions::{Builtin, Entry, Keep};
use crate::value::dense::{self, multiply, solve_lower};
use crate::value::error::{FnError, FnResult};
use crate::value::{Mat, Matrix, Value};

use Builtin::{Density, Pure, Random};

pub(super) const TABLE: &[Entry] = &[
    (
        "multi_normal_lpdf",
        Density(|k, a| {
            let l = dense::cholesky("multi_normal_lpdf", a[2].matrix()?)?;
            normal("multi_normal_lpdf", k, a[0], a[1], &l)
        }),
    ),
    (
        "multi_normal_cholesky_lpdf",
        Density(|k, a| {
            let l = factor("multi_normal_cholesky_lpdf", a[2])?;
            normal("multi_normal_cholesky_lpdf", k, a[0], a[1], &l)
        }),
    ),
    ("multi_normal_prec_lpdf", Density(precision)),
    (
        "multi_normal_rng",
        Random(|r, a| {
            let l = dense::cholesky("multi_normal_rng", a[1].matrix()?)?;
            locations(a[0], |mu| shifted("multi_normal_rng", mu, &l, 1.0, r))
        }),
    ),
    (
        "multi_normal_cholesky_rng",
        Random(|r, a| {
            let l = factor("multi_normal_cholesky_rng", a[1])?;
            locations(a[0], |mu| {
                shifted("multi_normal_cholesky_rng", mu, &l, 1.0, r)
            })
        }),
    ),
    (
        "multi_student_t_lpdf",
        Density(|k, a| {
            let l = dense::cholesky("multi_student_t_lpdf", a[3].matrix()?)?;
            student("multi_student_t_lpdf", k, a, &l)
        }),
    ),
    (
        "multi_student_t_cholesky_lpdf",
        Density(|k, a| {
            let l = factor("multi_student_t_cholesky_lpdf", a[3])?;
            student("multi_student_t_cholesky_lpdf", k, a, &l)
        }),
    ),
    (
        "multi_student_t_rng",
        Random(|r, a| {
            let l = dense::cholesky("multi_student_t_rng", a[2].matrix()?)?;
            student_rng(r, a, &l)
        }),
    ),
    (
        "multi_student_t_cholesky_rng",
        Random(|r, a| {
            let l = factor("multi_student_t_cholesky_rng", a[2])?;
            student_rng(r, a, &l)
        }),
    ),
    (
        "multi_gp_lpdf",
        Density(|k, a| {
            let l = dense::cholesky("multi_gp_lpdf", a[1].matrix()?)?;
            process("multi_gp_lpdf", k, a, &l)
        }),
    ),
    (
        "multi_gp_cholesky_lpdf",
        Density(|k, a| {
            let l = factor("multi_gp_cholesky_lpdf", a[1])?;
            process("multi_gp_cholesky_lpdf", k, a, &l)
        }),
    ),
    ("gaussian_dlm_obs_lpdf", Density(dynamic_linear)),
    (
        "hmm_marginal",
        Density(|k, a| {
            let (_, log_likelihood) = forward(a)?;
            Ok(k.term(1 | 2 | 4, log_likelihood))
        }),
    ),
    ("hmm_hidden_state_prob", Pure(hidden_states)),
    ("hmm_latent_rng", Random(latent_states)),
];

/// One vector, or each of an array of vectors.
pub(super) fn lists(x: &Value) -> FnResult<Vec<Vec<f64>>> {
    match x {
        Value::Vector(x) | Value::RowVector(x) => Ok(vec![x.clone()]),
        Value::Array(many) => many.iter().map(|x| Ok(x.slice()?.to_vec())).collect(),
        other => Err(FnError::invalid(format!(
            "expected vectors, found {}",
            other.describe()
        ))),
    }
}

/// A lower-triangular factor with a positive diagonal.
fn factor(function: &str, l: &Value) -> FnResult<Matrix> {
    let l = l.matrix()?;
    let n = dense::check_square(function, l)?;
    for i in 0..n {
        if l[(i, i)].is_nan() || l[(i, i)] <= 0.0 {
            return Err(FnError::domain(format!(
                "{function}: diagonal element {} of the Cholesky factor is {}, but must be positive",
                i + 1,
                l[(i, i)]
            )));
        }
    }
    Ok(Mat::from_fn(
        n,
        n,
        |i, j| if i >= j { l[(i, j)] } else { 0.0 },
    ))
}

/// The differences of variates and locations, single vectors going with all.
fn differences(function: &str, y: &Value, mu: &Value, n: usize) -> FnResult<Vec<Vec<f64>>> {
    let (y, mu) = (lists(y)?, lists(mu)?);
    if y.is_empty() || mu.is_empty() {
        return Ok(Vec::new());
    }
    let count = y.len().max(mu.len());
    if (y.len() != count && y.len() != 1) || (mu.len() != count && mu.len() != 1) {
        return Err(FnError::invalid(format!(
            "{function}: {} variates for {} locations",
            y.len(),
            mu.len()
        )));
    }
    (0..count)
        .map(|i| {
            let y = &y[if y.len() == 1 { 0 } else { i }];
            let mu = &mu[if mu.len() == 1 { 0 } else { i }];
            if y.len() != n || mu.len() != n {
                return Err(FnError::invalid(format!(
                    "{function}: a variate of size {} and a location of size {} for a {n} × {n} matrix",
                    y.len(),
                    mu.len()
                )));
            }
            check(function, "the random variable", Domain::NotNan, y)?;
            check(function, "the location parameter", Domain::Finite, mu)?;
            Ok(y.iter().zip(mu).map(|(y, m)| y - m).collect())
        })
        .collect()
}

/// ‖L⁻¹ d‖²
fn quadratic(l: &Matrix, d: &[f64]) -> f64 {
    solve_lower(l, &Mat::new(d.len(), 1, d.to_vec()))
        .data()
        .iter()
        .map(|x| x * x)
        .sum()
}

fn normal(function: &str, k: Keep, y: &Value, mu: &Value, l: &Matrix) -> FnResult<f64> {
    let n = l.rows();
    let mut sum = 0.0;
    for d in differences(function, y, mu, n)? {
        sum += k.constant(-(n as f64) * HALF_LOG_TWO_PI)
            + k.term(4, -0.5 * dense::log_det_cholesky(l))
            + k.term(1 | 2 | 4, -0.5 * quadratic(l, &d));
    }
    Ok(sum)
}

fn precision(k: Keep, a: &[&Value]) -> FnResult<f64> {
    const NAME: &str = "multi_normal_prec_lpdf";
    let omega = a[2].matrix()?;
    let l = dense::cholesky(NAME, omega)?;
    let n = l.rows();
    let mut sum = 0.0;
    for d in differences(NAME, a[0], a[1], n)? {
        let v = Mat::new(n, 1, d);
        let quadratic = multiply(&v.transpose(), &multiply(omega, &v));
        sum += k.constant(-(n as f64) * HALF_LOG_TWO_PI)
            + k.term(4, 0.5 * dense::log_det_cholesky(&l))
            + k.term(1 | 2 | 4, -0.5 * quadratic.data().iter().sum::<f64>());
    }
    Ok(sum)
}

fn student(function: &str, k: Keep, a: &[&Value], l: &Matrix) -> FnResult<f64> {
    let nu = a[1].real()?;
    check(
        function,
        "the degrees of freedom parameter",
        Domain::Positive,
        &[nu],
    )?;
    if nu == f64::INFINITY {
        return normal(function, k.reorder(&[1, 4, 8]), a[0], a[2], l);
    }
    let n = l.rows() as f64;
    let mut sum = 0.0;
    for d in differences(function, a[0], a[2], l.rows())? {
        sum += k.term(
            2,
            lgamma(0.5 * (nu + n)) - lgamma(0.5 * nu) - 0.5 * n * nu.ln(),
        ) + k.constant(-0.5 * n * PI.ln())
            + k.term(8, -0.5 * dense::log_det_cholesky(l))
            + k.term(
                1 | 2 | 4 | 8,
                -0.5 * (nu + n) * (quadratic(l, &d) / nu).ln_1p(),
            );
    }
    Ok(sum)
}

/// μ + s L z with standard normal z.
fn shifted(function: &str, mu: &[f64], l: &Matrix, s: f64, rng: &mut Draws) -> FnResult<Vec<f64>> {
    if mu.len() != l.rows() {
        return Err(FnError::invalid(format!(
            "{function}: a location of size {} for a {} × {} matrix",
            mu.len(),
            l.rows(),
            l.cols()
        )));
    }
    check(function, "the location parameter", Domain::Finite, mu)?;
    let z: Vec<f64> = (0..mu.len()).map(|_| rng.normal()).collect();
    let step = multiply(l, &Mat::new(z.len(), 1, z));
    Ok(mu.iter().zip(step.data()).map(|(m, x)| m + s * x).collect())
}

/// A vector for each location; an array if the locations are one.
fn locations(mu: &Value, mut draw: impl FnMut(&[f64]) -> FnResult<Vec<f64>>) -> FnResult<Value> {
    match mu {
        Value::Array(many) => Ok(Value::Array(
            many.iter()
                .map(|mu| Ok(Value::Vector(draw(mu.slice()?)?)))
                .collect::<FnResult<_>>()?,
        )),
        one => Ok(Value::Vector(draw(one.slice()?)?)),
    }
}

fn student_rng(rng: &mut Draws, a: &[&Value], l: &Matrix) -> FnResult<Value> {
    const NAME: &str = "multi_student_t_rng";
    let nu = a[0].real()?;
    check(
        NAME,
        "the degrees of freedom parameter",
        Domain::Positive,
        &[nu],
    )?;
    locations(a[1], |mu| {
        let s = if nu == f64::INFINITY {
            1.0
        } else {
            (nu / (2.0 * rng.gamma(0.5 * nu))).sqrt()
        };
        shifted(NAME, mu, l, s, rng)
    })
}

/// Row i of y is normal with covariance Σ / wᵢ.
fn process(function: &str, k: Keep, a: &[&Value], l: &Matrix) -> FnResult<f64> {
    let (y, w) = (a[0].matrix()?, a[2].slice()?);
    if y.rows() != w.len() || y.cols() != l.rows() {
        return Err(FnError::invalid(format!(
            "{function}: a {} × {} variate for {} weights and a {} × {} matrix",
            y.rows(),
            y.cols(),
            w.len(),
            l.rows(),
            l.cols()
        )));
    }
    check(function, "the random variable", Domain::Finite, y.data())?;
    check(function, "the kernel scales", Domain::PositiveFinite, w)?;
    let (rows, cols) = (y.rows() as f64, y.cols() as f64);
    let quad: f64 = (0..y.rows()).map(|i| w[i] * quadratic(l, &y.row(i))).sum();
    Ok(k.constant(-rows * cols * HALF_LOG_TWO_PI)
        + k.term(2, -0.5 * rows * dense::log_det_cholesky(l))
        + k.term(4, 0.5 * cols * w.iter().map(|w| w.ln()).sum::<f64>())
        + k.term(1 | 2 | 4, -0.5 * quad))
}

/// The likelihood of y (variables × times) in a dynamic linear model, by the Kalman filter: y = Fᵀ θ + noise of
/// covariance V (or variances), θ moves by G with covariance W from (m₀, C₀).
fn dynamic_linear(k: Keep, a: &[&Value]) -> FnResult<f64> {
    const NAME: &str = "gaussian_dlm_obs_lpdf";
    let (y, f, g) = (a[0].matrix()?, a[1].matrix()?, a[2].matrix()?);
    let v = match a[3] {
        Value::Vector(d) => Mat::from_fn(d.len(), d.len(), |i, j| if i == j { d[i] } else { 0.0 }),
        other => other.matrix()?.clone(),
    };
    let (w, m0, c0) = (a[4].matrix()?, a[5].slice()?, a[6].matrix()?);
    let n = g.rows();
    let fits = g.cols() == n
        && f.rows() == n
        && f.cols() == y.rows()
        && (v.rows(), v.cols()) == (y.rows(), y.rows())
        && (w.rows(), w.cols()) == (n, n)
        && (c0.rows(), c0.cols()) == (n, n)
        && m0.len() == n;
    if !fits {
        return Err(FnError::invalid(format!(
            "{NAME}: sizes of the arguments do not match"
        )));
    }
    let add = |a: &Matrix, b: &Matrix, s: f64| {
        Mat::from_fn(a.rows(), a.cols(), |i, j| a[(i, j)] + s * b[(i, j)])
    };
    let ft = f.transpose();
    let mut m = Mat::new(n, 1, m0.to_vec());
    let mut c = c0.clone();
    let mut sum = 0.0;
    for t in 0..y.cols() {
        let mean = multiply(g, &m);
        let r = add(&multiply(g, &multiply(&c, &g.transpose())), w, 1.0);
        let q = add(&multiply(&ft, &multiply(&r, f)), &v, 1.0);
        let q = Mat::from_fn(q.rows(), q.cols(), |i, j| 0.5 * (q[(i, j)] + q[(j, i)]));
        let l = dense::cholesky(NAME, &q)?;
        let expected = multiply(&ft, &mean);
        let e = add(
            &Mat::new(y.rows(), 1, y.column(t).to_vec()),
            &expected,
            -1.0,
        );
        sum += k.constant(-(y.rows() as f64) * HALF_LOG_TWO_PI)
            + k.term(
                u32::MAX,
                -0.5 * dense::log_det_cholesky(&l) - 0.5 * quadratic(&l, e.data()),
            );
        let rf = multiply(&r, f);
        let gain = dense::solve_cholesky(&l, &rf.transpose()).transpose();
        m = add(&mean, &multiply(&gain, &e), 1.0);
        c = add(&r, &multiply(&gain, &multiply(&ft, &r)), -1.0);
    }
    Ok(sum)
}

/// Filtered log probabilities of each state at each time, each time normalised, and the log likelihood.
fn forward(a: &[&Value]) -> FnResult<(Vec<Vec<f64>>, f64)> {
    const NAME: &str = "hmm_marginal";
    let (log_omega, gamma, rho) = (a[0].matrix()?, a[1].matrix()?, a[2].slice()?);
    let states = rho.len();
    if log_omega.rows() != states || gamma.rows() != states || gamma.cols() != states {
        return Err(FnError::invalid(format!(
            "{NAME}: {} likelihoods, a {} × {} transition matrix and {states} initial states",
            log_omega.rows(),
            gamma.rows(),
            gamma.cols()
        )));
    }
    check_simplex(NAME, "the initial distribution", rho)?;
    for i in 0..states {
        check_simplex(NAME, "a row of the transition matrix", &gamma.row(i))?;
    }
    let mut filtered = Vec::with_capacity(log_omega.cols());
    let mut total = 0.0;
    for t in 0..log_omega.cols() {
        let mut log_p: Vec<f64> = (0..states)
            .map(|j| {
                let prior = match filtered.last() {
                    None => rho[j].ln(),
                    Some(last) => {
                        let last: &Vec<f64> = last;
                        let terms: Vec<f64> =
                            (0..states).map(|i| last[i] + gamma[(i, j)].ln()).collect();
                        log_sum_exp(&terms)
                    }
                };
                prior + log_omega[(j, t)]
            })
            .collect();
        let norm = log_sum_exp(&log_p);
        total += norm;
        log_p.iter_mut().for_each(|x| *x -= norm);
        filtered.push(log_p);
    }
    Ok((filtered, total))
}

/// P(state | all observations), states × times.
fn hidden_states(a: &[&Value]) -> FnResult<Value> {
    let (filtered, _) = forward(a)?;
    let gamma = a[1].matrix()?;
    let (states, times) = (a[2].len(), filtered.len());
    let mut out = Mat::filled(states, times, 0.0);
    let mut smoothed: Vec<f64> = Vec::new();
    for t in (0..times).rev() {
        let filtered_t: Vec<f64> = filtered[t].iter().map(|x| x.exp()).collect();
        smoothed = if t + 1 == times {
            filtered_t
        } else {
            let predicted: Vec<f64> = (0..states)
                .map(|j| (0..states).map(|i| filtered_t[i] * gamma[(i, j)]).sum())
                .collect();
            (0..states)
                .map(|i| {
                    let back: f64 = (0..states)
                        .filter(|j| predicted[*j] > 0.0)
                        .map(|j| gamma[(i, j)] * smoothed[j] / predicted[j])
                        .sum();
                    filtered_t[i] * back
                })
                .collect()
        };
        for (i, p) in smoothed.iter().enumerate() {
            out[(i, t)] = *p;
        }
    }
    Ok(Value::Matrix(out))
}

/// Forward filtering, backward sampling.
fn latent_states(rng: &mut Draws, a: &[&Value]) -> FnResult<Value> {
    let (filtered, _) = forward(a)?;
    let gamma = a[1].matrix()?;
    let mut out = vec![0; filtered.len()];
    let mut next: Option<usize> = None;
    for t in (0..filtered.len()).rev() {
        let mut p: Vec<f64> = filtered[t].iter().map(|x| x.exp()).collect();
        if let Some(next) = next {
            p.iter_mut()
                .enumerate()
                .for_each(|(i, p)| *p *= gamma[(i, next)]);
            let total: f64 = p.iter().sum();
            p.iter_mut().for_each(|p| *p /= total);
        }
        let state = rng.categorical(&p);
        out[t] = state as i32 + 1;
        next = Some(state);
    }
    Ok(Value::Ints(out))
}
