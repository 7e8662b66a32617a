//! Distributions of vectors: multivariate normal distributions, Student's t distributions, Gaussian processes and
//! dynamic linear models.

use std::f64::consts::PI;

use jensen_graph::{Scattered, Spread};
use jensen_math::constants::HALF_LOG_TWO_PI;
use jensen_math::special::lgamma;

use super::covariances::{DIAGONAL, triangle};
use super::formula::Whole;
use super::multivariate::{Multivariate, OverRecords};
use super::univariate::{LOCATION, VARIATE};
use crate::functions::Keep;
use crate::functions::random::Draws;
use crate::program::Level;
use crate::symbolic::domain::Domain::{Finite, NotNan, Positive};
use crate::symbolic::domain::{Domain, check, check_values, guard};
use crate::symbolic::functions::matrices::{cholesky, spd_solve};
use crate::symbolic::known;
use crate::symbolic::tape::E;
use crate::symbolic::value::{Leaf, Sym};
use crate::value::dense::{self, multiply, solve_lower};
use crate::value::error::{FnError, FnResult};
use crate::value::{Mat, Matrix, Value};

const FREEDOM: &str = "the degrees of freedom parameter";
const KERNEL_SCALES: &str = "the kernel scales";

/// The multivariate distributions that this file defines.
pub static TABLE: &[Multivariate] = &[
    Multivariate::new("multi_normal_lpdf", |k, a| {
        let l = dense::cholesky("multi_normal_lpdf", a[2].matrix()?)?;
        normal("multi_normal_lpdf", k, a[0], a[1], &l)
    })
    .sample("multi_normal_rng", |r, a| {
        let l = dense::cholesky("multi_normal_rng", a[1].matrix()?)?;
        locations(a[0], |mu| shifted("multi_normal_rng", mu, &l, 1.0, r))
    })
    .lowered(
        |w| lower_multi_normal(w, Scale::Covariance),
        OverRecords::Arrays,
    ),
    Multivariate::new("multi_normal_cholesky_lpdf", |k, a| {
        let l = triangle("multi_normal_cholesky_lpdf", a[2])?;
        normal("multi_normal_cholesky_lpdf", k, a[0], a[1], &l)
    })
    .sample("multi_normal_cholesky_rng", |r, a| {
        let l = triangle("multi_normal_cholesky_rng", a[1])?;
        locations(a[0], |mu| {
            shifted("multi_normal_cholesky_rng", mu, &l, 1.0, r)
        })
    })
    .lowered(
        |w| lower_multi_normal(w, Scale::Cholesky),
        OverRecords::Arrays,
    ),
    Multivariate::new("multi_normal_prec_lpdf", precision).lowered(
        |w| lower_multi_normal(w, Scale::Precision),
        OverRecords::Arrays,
    ),
    Multivariate::new("multi_student_t_lpdf", |k, a| {
        let l = dense::cholesky("multi_student_t_lpdf", a[3].matrix()?)?;
        student("multi_student_t_lpdf", k, a, &l)
    })
    .sample("multi_student_t_rng", |r, a| {
        let l = dense::cholesky("multi_student_t_rng", a[2].matrix()?)?;
        student_rng(r, a, &l)
    })
    .lowered(
        |w| lower_multi_student_t(w, Scale::Covariance),
        OverRecords::Arrays,
    ),
    Multivariate::new("multi_student_t_cholesky_lpdf", |k, a| {
        let l = triangle("multi_student_t_cholesky_lpdf", a[3])?;
        student("multi_student_t_cholesky_lpdf", k, a, &l)
    })
    .sample("multi_student_t_cholesky_rng", |r, a| {
        let l = triangle("multi_student_t_cholesky_rng", a[2])?;
        student_rng(r, a, &l)
    })
    .lowered(
        |w| lower_multi_student_t(w, Scale::Cholesky),
        OverRecords::Arrays,
    ),
    Multivariate::new("multi_gp_lpdf", |k, a| {
        let l = dense::cholesky("multi_gp_lpdf", a[1].matrix()?)?;
        process("multi_gp_lpdf", k, a, &l)
    })
    .lowered(
        |w| lower_multi_gp(w, Scale::Covariance),
        OverRecords::Arrays,
    ),
    Multivariate::new("multi_gp_cholesky_lpdf", |k, a| {
        let l = triangle("multi_gp_cholesky_lpdf", a[1])?;
        process("multi_gp_cholesky_lpdf", k, a, &l)
    })
    .lowered(|w| lower_multi_gp(w, Scale::Cholesky), OverRecords::Arrays),
    Multivariate::new("gaussian_dlm_obs_lpdf", dynamic_linear)
        .lowered(lower_dynamic_linear, OverRecords::Arrays),
];

/// Returns the vectors of `x`, which is a single vector or an array of vectors.
pub fn lists(x: &Value) -> FnResult<Vec<Vec<f64>>> {
    match x {
        Value::Vector(x) | Value::RowVector(x) => Ok(vec![x.clone()]),
        Value::Array(many) => many.iter().map(|x| Ok(x.slice()?.to_vec())).collect(),
        other => Err(FnError::invalid(format!(
            "expected vectors, found {}",
            other.describe()
        ))),
    }
}

/// If one argument is a single vector, this vector is paired with every vector of the other argument.
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
                    "{function}: sizes do not match: the variate has {} elements, the location has {}, and the matrix is {n} × {n}",
                    y.len(),
                    mu.len()
                )));
            }
            check(function, VARIATE, Domain::NotNan, y)?;
            check(function, LOCATION, Domain::Finite, mu)?;
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
    check(function, FREEDOM, Domain::Positive, &[nu])?;
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

/// Draws μ + s L z, where z is standard normal.
fn shifted(function: &str, mu: &[f64], l: &Matrix, s: f64, rng: &mut Draws) -> FnResult<Vec<f64>> {
    if mu.len() != l.rows() {
        return Err(FnError::invalid(format!(
            "{function}: a location of size {} for a {} × {} matrix",
            mu.len(),
            l.rows(),
            l.cols()
        )));
    }
    check(function, LOCATION, Domain::Finite, mu)?;
    let z: Vec<f64> = (0..mu.len()).map(|_| rng.normal()).collect();
    let step = multiply(l, &Mat::new(z.len(), 1, z));
    Ok(mu.iter().zip(step.data()).map(|(m, x)| m + s * x).collect())
}

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
    check(NAME, FREEDOM, Domain::Positive, &[nu])?;
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
            "{function}: sizes do not match: the variate is {} × {}, there are {} weights, and the matrix is {} × {}",
            y.rows(),
            y.cols(),
            w.len(),
            l.rows(),
            l.cols()
        )));
    }
    check(function, VARIATE, Domain::Finite, y.data())?;
    check(function, KERNEL_SCALES, Domain::PositiveFinite, w)?;
    let (rows, cols) = (y.rows() as f64, y.cols() as f64);
    let quad: f64 = (0..y.rows()).map(|i| w[i] * quadratic(l, &y.row(i))).sum();
    Ok(k.constant(-rows * cols * HALF_LOG_TWO_PI)
        + k.term(2, -0.5 * rows * dense::log_det_cholesky(l))
        + k.term(4, 0.5 * cols * w.iter().map(|w| w.ln()).sum::<f64>())
        + k.term(1 | 2 | 4, -0.5 * quad))
}

/// Computes the log likelihood of y (variables × times) with the Kalman filter. In the model, y is Fᵀ θ plus noise with
/// covariance V. If V is a vector, it contains the variances of independent noise. From one time to the next, θ becomes
/// G θ plus noise with covariance W. The initial state has mean m₀ and covariance C₀.
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

fn lower_dynamic_linear(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let cx = w.cx();
    let arg = |i: usize| w.passed[i].sym;
    let ((p, times), n) = (cx.extents(arg(0))?, cx.square(arg(2))?);
    let sizes = [0, 1, 2, 3, 4, 5, 6].map(|i| arg(i).dims().map(|dims| dims.size()));
    let expected = [p * times, n * p, n * n, 0, n * n, n, n * n];
    for (i, (found, expected)) in sizes.into_iter().zip(expected).enumerate() {
        let fits = |found| found == expected || i == 3 && (found == p || found == p * p);
        if !fits(found?) {
            return Err(cx.mismatch(arg(2), arg(i)));
        }
    }
    if p * times == 0 || n == 0 {
        return Ok(());
    }
    let [y, f, g, v, noise, m, c] = [0, 1, 2, 3, 4, 5, 6].map(|i| cx.e(arg(i)));
    let (y, f, g, v, noise, mut m, mut c) = (y?, f?, g?, v?, noise?, m?, c?);
    let diagonal: Vec<u32> = (0..p).map(|i| (i * (p + 1)) as u32).collect();
    let v = if matches!(arg(3).dims()?.leaf, Leaf::Vector(_)) && p > 1 {
        v.scatter(&diagonal, p * p)
    } else {
        v
    };
    let mut terms = Vec::with_capacity(times);
    for t in 0..times {
        let mean = g.matmul(m, n, n, 1);
        let gc = g.matmul(c, n, n, n);
        let r = gc.matmul_with(g, n, n, n, false, true) + noise;
        let rf = r.matmul(f, n, n, p);
        let q = f.matmul_with(rf, p, n, p, true, false) + v;
        let l = cholesky(&cx, 0.5 * (q + q.transpose(p, p)), p)?;
        let e = y.slice(t * p, p) - f.matmul_with(mean, p, n, 1, true, false);
        let scaled = l.tri_solve(e, p, 1, false);
        terms.push(-(l.diagonal(p, p).log().sum() + 0.5 * scaled.square().sum()));
        // The gain, transposed
        let gain = spd_solve(l, rf.transpose(n, p), p, n);
        m = mean + gain.matmul_with(e, n, p, 1, true, false);
        c = r - gain.matmul_with(rf, n, p, n, true, true);
    }
    let d = &mut w.density;
    let sum = d.tape.add_all(&terms);
    d.term(&[0, 1, 2, 3, 4, 5, 6], sum);
    d.term(&[], d.num(-((p * times) as f64) * HALF_LOG_TWO_PI));
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum Scale {
    Covariance,
    Cholesky,
    Precision,
}

fn lower_factor<'g>(w: &Whole<'g, '_>, i: usize, scale: Scale, k: usize) -> FnResult<E<'g>> {
    let cx = w.cx();
    let sym = w.passed[i].sym;
    let n = cx.square(sym)?;
    if n != k {
        return Err(cx.mismatch(w.passed[0].sym, sym));
    }
    let e = cx.e(sym)?;
    if scale == Scale::Cholesky {
        check_values(w.density.name, e.diagonal(n, n), DIAGONAL, Positive)?;
        return Ok(e);
    }
    check_symmetric(w, e, n);
    cholesky(&cx, e, n)
}

/// Matrices that are symmetric by construction are not checked.
fn check_symmetric(w: &Whole<'_, '_>, e: E<'_>, n: usize) {
    if n < 2 || e.is_constant() || known::is_symmetric(w.density.tape, e, n) {
        return;
    }
    let (low, high): (Vec<u32>, Vec<u32>) = (0..n * n)
        .filter(|at| at % n > at / n)
        .map(|at| (at as u32, (at % n * n + at / n) as u32))
        .unzip();
    let off = (e.gather(&low) - e.gather(&high)).abs();
    w.density.tape.reject_where(w.density.num(1e-8).lt(off));
}

fn lower_differences<'g>(w: &Whole<'g, '_>, mu: usize) -> FnResult<(E<'g>, usize, usize)> {
    let tape = w.density.tape;
    let (y, m) = (w.passed[0].sym, w.passed[mu].sym);
    let (a, b) = (y.dims()?, m.dims()?);
    let k = a.leaf.size();
    let n = if a.count() == 0 || b.count() == 0 {
        0
    } else {
        a.count().max(b.count())
    };
    let fits = |c: usize| c == n || c == 1;
    if n > 0 && (k != b.leaf.size() || !fits(a.count()) || !fits(b.count())) {
        return Err(w.density.invalid(format!(
            "sizes do not match: {} and {}",
            y.describe(),
            m.describe()
        )));
    }
    if n * k == 0 {
        return Ok((tape.vector(&[]), k, 0));
    }
    let tile = |e: E<'g>, count: usize| {
        if count == n || e.len() == 1 {
            return e;
        }
        let index: Vec<u32> = (0..n * k).map(|at| (at % k) as u32).collect();
        e.gather(&index)
    };
    let (y, m) = (y.e(tape)?, m.e(tape)?);
    check_values(w.density.name, y, VARIATE, NotNan)?;
    check_values(w.density.name, m, LOCATION, Finite)?;
    let difference = tile(y, a.count()) - tile(m, b.count());
    Ok((difference.repeat(n * k), k, n))
}

/// If each record has its own outcome, returns the factor L of the scale argument, the sum Σ zᵢ² and the dimension.
/// Here z is L⁻¹ (y − μ), or Lᵀ (y − μ) if the scale argument is a precision. The sum is computed element by element.
fn of_record<'g>(
    w: &Whole<'g, '_>,
    mu: usize,
    at: usize,
    scale: Scale,
) -> FnResult<Option<(E<'g>, E<'g>, usize)>> {
    let tape = w.density.tape;
    let (y, m) = (w.passed[0].sym, w.passed[mu].sym);
    if !y.has_records(tape) && !m.has_records(tape) {
        return Ok(None);
    }
    let (a, b) = (y.dims()?, m.dims()?);
    let k = a.leaf.size();
    if (a.count(), b.count()) != (1, 1) || k != b.leaf.size() {
        return Err(w.density.invalid(format!(
            "sizes do not match: {} and {}",
            y.describe(),
            m.describe()
        )));
    }
    let l = lower_factor(w, at, scale, k)?;
    let entry = |i: usize, j: usize| l.at(j * k + i);
    let (y, m) = (y.elements(tape)?, m.elements(tape)?);
    for (y, m) in y.iter().zip(&m) {
        check_values(w.density.name, *y, VARIATE, NotNan)?;
        check_values(w.density.name, *m, LOCATION, Finite)?;
    }
    let x: Vec<E<'g>> = y.iter().zip(&m).map(|(y, m)| *y - *m).collect();
    let mut z: Vec<E<'g>> = Vec::with_capacity(k);
    for i in 0..k {
        z.push(if scale == Scale::Precision {
            let terms: Vec<E<'g>> = (i..k).map(|j| entry(j, i) * x[j]).collect();
            tape.add_all(&terms)
        } else {
            let before: Vec<E<'g>> = (0..i).map(|j| entry(i, j) * z[j]).collect();
            (x[i] - tape.add_all(&before)) / entry(i, i)
        });
    }
    let squares: Vec<E<'g>> = z.into_iter().map(E::square).collect();
    Ok(Some((l, tape.add_all(&squares), k)))
}

/// Records on the tape a location and a scale for each element of these vectors. The location is the element's mean,
/// and the scale is its standard deviation. If the density has a precision, the standard deviation is conditional on
/// the other elements. Entry i of `y` and of `m` contains element i of all vectors. The correlations between elements
/// are not recorded, because only the scales cause funnels.
fn note_elements<'g>(w: &Whole<'g, '_>, y: &[E<'g>], m: &[E<'g>], l: E<'g>, scale: Scale) {
    let (tape, k) = (w.density.tape, y.len());
    for (i, (y, m)) in y.iter().zip(m).enumerate() {
        // The diagonal of L Lᵀ, covariance or precision.
        let row: Vec<u32> = (0..=i).map(|j| (j * k + i) as u32).collect();
        let root = l.gather(&row).square().sum().sqrt();
        let spread = match scale {
            Scale::Precision => root.recip(),
            _ => root,
        };
        tape.scattered.borrow_mut().push(Scattered {
            values: y.id,
            location: m.id,
            spread: Spread::Scale(spread.id),
        });
    }
}

/// If there are several vectors of at most this dimension, their elements are recorded separately. Vectors of
/// correlated effects usually have few elements. Longer vectors, such as Gaussian processes, are recorded as a whole:
/// they are difficult to fit because their elements are correlated, and a scale for each element would not help.
const FEW: usize = 16;
/// If there is a single vector of at most this dimension, its elements are recorded separately. For example, a loop may
/// process one vector in each iteration.
const FEW_ALONE: usize = 4;

/// Vectors with more than this many elements in total are not recorded as a whole, because each vector would need two
/// factorisations per draw.
const LONG: usize = 400;

/// Records on the tape the location and scale of those vectors that are parameters. `y` and `m` contain the elements of
/// all vectors, one vector after another.
fn note_scatter<'g>(w: &Whole<'g, '_>, y: E<'g>, m: E<'g>, l: E<'g>, k: usize, scale: Scale) {
    if w.passed[0].level != Level::Param {
        return;
    }
    let tape = w.density.tape;
    // One number represents a constant vector of equal elements.
    let full = |all: E<'g>| if all.len() == 1 { all.repeat(k) } else { all };
    let (y, m) = (full(y), full(m));
    let of = |all: E<'g>, vector: usize| all.slice(vector % (all.len() / k) * k, k);
    let is_alone = y.len() == k;
    if scale != Scale::Precision && (k > FEW || is_alone && k > FEW_ALONE) {
        let count = if y.len() > LONG { 0 } else { y.len() / k };
        for vector in 0..count {
            tape.scattered.borrow_mut().push(Scattered {
                values: of(y, vector).id,
                location: of(m, vector).id,
                spread: Spread::Factor(l.id),
            });
        }
    } else if k <= FEW {
        let each = |all: E<'g>| -> Vec<E<'g>> {
            let of = |i: usize| {
                (0..all.len() / k)
                    .map(|c| (c * k + i) as u32)
                    .collect::<Vec<_>>()
            };
            (0..k).map(|i| all.gather(&of(i))).collect()
        };
        note_elements(w, &each(y), &each(m), l, scale);
    }
}

fn lower_multi_normal(w: &mut Whole<'_, '_>, scale: Scale) -> FnResult<()> {
    if let Some((l, squares, k)) = of_record(w, 1, 2, scale)? {
        if k <= FEW && w.passed[0].level == Level::Param {
            let tape = w.density.tape;
            let (y, m) = (
                w.passed[0].sym.elements(tape)?,
                w.passed[1].sym.elements(tape)?,
            );
            note_elements(w, &y, &m, l, scale);
        }
        let d = &mut w.density;
        d.term(&[0, 1, 2], -0.5 * squares);
        let log_det = l.diagonal(k, k).log().sum();
        let sign = if scale == Scale::Precision { 1.0 } else { -1.0 };
        d.term(&[2], sign * log_det);
        d.term(&[], d.num(-HALF_LOG_TWO_PI * k as f64));
        return Ok(());
    }
    let (difference, k, n) = lower_differences(w, 1)?;
    if n == 0 {
        return Ok(());
    }
    let l = lower_factor(w, 2, scale, k)?;
    let tape = w.density.tape;
    let (y, m) = (w.passed[0].sym.e(tape)?, w.passed[1].sym.e(tape)?);
    note_scatter(w, y, m, l, k, scale);
    let z = match scale {
        // xᵀ L Lᵀ x = ‖Lᵀ x‖²
        Scale::Precision => l.matmul_with(difference, k, k, n, true, false),
        _ => l.tri_solve(difference, k, n, false),
    };
    let d = &mut w.density;
    d.term(&[0, 1, 2], -0.5 * z.square().sum());
    let log_det = l.diagonal(k, k).log().sum();
    let sign = if scale == Scale::Precision {
        n as f64
    } else {
        -(n as f64)
    };
    d.term(&[2], sign * log_det);
    d.term(&[], d.num(-HALF_LOG_TWO_PI * (k * n) as f64));
    Ok(())
}

fn lower_multi_student_t(w: &mut Whole<'_, '_>, scale: Scale) -> FnResult<()> {
    let own = of_record(w, 2, 3, scale)?;
    let (difference, k, n) = match own {
        Some((_, squares, k)) => (squares, k, 1),
        None => lower_differences(w, 2)?,
    };
    if n == 0 {
        return Ok(());
    }
    let l = match own {
        Some((l, ..)) => l,
        None => lower_factor(w, 3, scale, k)?,
    };
    let nu = w.passed[1].sym.e(w.density.tape)?;
    guard(w.density.name, nu, FREEDOM, Positive)?;
    let (kf, nf) = (k as f64, n as f64);
    let quadratic = match own {
        Some((_, squares, _)) => squares,
        None => {
            let squares = l.tri_solve(difference, k, n, false).square();
            let ones = w.density.tape.vector(&vec![1.0; k]);
            squares.matmul_with(ones, n, k, 1, true, false)
        }
    };
    let d = &mut w.density;
    let half = 0.5 * (nu + kf);
    d.term(&[0, 1, 2, 3], -(half * (quadratic / nu).log1p().sum()));
    d.term(&[3], -nf * l.diagonal(k, k).log().sum());
    d.term(
        &[1],
        nf * (half.lgamma() - (0.5 * nu).lgamma() - 0.5 * kf * nu.log()),
    );
    d.term(&[], d.num(-0.5 * kf * nf * PI.ln()));
    Ok(())
}

/// The rows of y are independent with covariance Σ / wᵢ.
fn lower_multi_gp(w: &mut Whole<'_, '_>, scale: Scale) -> FnResult<()> {
    let tape = w.density.tape;
    let y: &Sym = w.passed[0].sym;
    let (rows, cols) = y.dims()?.leaf.extents();
    if rows * cols == 0 {
        return Ok(());
    }
    let l = lower_factor(w, 1, scale, cols)?;
    let weights = w.passed[2].sym.e(tape)?;
    if weights.len() != rows {
        return Err(w.density.invalid(format!(
            "sizes do not match: {} and {}",
            y.describe(),
            w.passed[2].sym.describe()
        )));
    }
    guard(w.density.name, weights, KERNEL_SCALES, Positive)?;
    let columns = y.e(tape)?.transpose(rows, cols);
    let squares = l.tri_solve(columns, cols, rows, false).square();
    let ones = tape.vector(&vec![1.0; cols]);
    let quadratic = squares.matmul_with(ones, rows, cols, 1, true, false);
    let (m, k) = (rows as f64, cols as f64);
    let d = &mut w.density;
    d.term(&[0, 1, 2], -0.5 * (weights * quadratic).sum());
    d.term(&[1], -m * l.diagonal(cols, cols).log().sum());
    d.term(&[2], 0.5 * k * weights.log().sum());
    d.term(&[], d.num(-HALF_LOG_TWO_PI * m * k));
    Ok(())
}
