//! Covariance matrices of Gaussian processes.

use crate::functions::{Builtin, NamedBuiltin};
use crate::value::error::{FnError, FnResult};
use crate::value::{Mat, Value};

use Builtin::Pure;

pub(super) const TABLE: &[NamedBuiltin] = &[
    (
        "gp_exp_quad_cov",
        Pure(|a| scaled("gp_exp_quad_cov", a, |d| (-0.5 * d * d).exp())),
    ),
    (
        "gp_exponential_cov",
        Pure(|a| scaled("gp_exponential_cov", a, |d| (-d).exp())),
    ),
    (
        "gp_matern32_cov",
        Pure(|a| {
            scaled("gp_matern32_cov", a, |d| {
                let r = 3f64.sqrt() * d;
                (1.0 + r) * (-r).exp()
            })
        }),
    ),
    (
        "gp_matern52_cov",
        Pure(|a| {
            scaled("gp_matern52_cov", a, |d| {
                let r = 5f64.sqrt() * d;
                (1.0 + r + r * r / 3.0) * (-r).exp()
            })
        }),
    ),
    (
        "gp_dot_prod_cov",
        Pure(|a| {
            let (x, y, rest) = inputs(a)?;
            let sigma = number("gp_dot_prod_cov", "sigma", rest.first(), false)?;
            matrix(&x, &y, |x, y| {
                sigma * sigma + x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>()
            })
        }),
    ),
    (
        "gp_periodic_cov",
        Pure(|a| {
            let (x, y, rest) = inputs(a)?;
            let sigma = number(
                "gp_periodic_cov",
                "signal standard deviation",
                rest.first(),
                true,
            )?;
            let length = number("gp_periodic_cov", "length-scale", rest.get(1), true)?;
            let period = number("gp_periodic_cov", "period", rest.get(2), true)?;
            matrix(&x, &y, |x, y| {
                let s = (std::f64::consts::PI * distance(x, y) / period).sin() / length;
                sigma * sigma * (-2.0 * s * s).exp()
            })
        }),
    ),
];

type Points = Vec<Vec<f64>>;

fn inputs<'a, 'v>(args: &'a [&'v Value]) -> FnResult<(Points, Points, &'a [&'v Value])> {
    let x = points(args[0])?;
    // A second list of points is an array whose elements have the same type as those of the first. If the points are
    // vectors, an array of reals is the list of length scales and never a second list of points.
    match args.get(1) {
        Some(second @ (Value::Array(_) | Value::Reals(_))) => Ok((x, points(second)?, &args[2..])),
        _ => Ok((x.clone(), x, &args[1..])),
    }
}

fn points(x: &Value) -> FnResult<Points> {
    Ok(match x {
        Value::Reals(x) => x.iter().map(|x| vec![*x]).collect(),
        other => other.elements()?.iter().map(Value::numbers).collect(),
    })
}

fn distance(x: &[f64], y: &[f64]) -> f64 {
    x.iter()
        .zip(y)
        .map(|(x, y)| (x - y) * (x - y))
        .sum::<f64>()
        .sqrt()
}

fn number(name: &str, what: &str, x: Option<&&Value>, positive: bool) -> FnResult<f64> {
    let x = x
        .ok_or_else(|| FnError::invalid(format!("{name}: {what} is missing")))?
        .real()?;
    if x.is_nan() || x.is_infinite() || x < 0.0 || (positive && x == 0.0) {
        return Err(FnError::domain(format!(
            "{name}: {what} is {x}, but must be positive and finite"
        )));
    }
    Ok(x)
}

fn matrix(x: &Points, y: &Points, f: impl Fn(&[f64], &[f64]) -> f64) -> FnResult<Value> {
    if let (Some(a), Some(b)) = (x.first(), y.first())
        && (x.iter().any(|p| p.len() != a.len()) || y.iter().any(|p| p.len() != a.len()))
    {
        return Err(FnError::invalid(format!(
            "points of different dimensions: {} and {}",
            a.len(),
            b.len()
        )));
    }
    crate::value::error::check_bytes(
        "the covariance matrix",
        x.len() as f64 * y.len() as f64,
        8,
        crate::value::error::MAX_VALUE_BYTES,
    )?;
    Ok(Value::Matrix(Mat::from_fn(x.len(), y.len(), |i, j| {
        f(&x[i], &y[j])
    })))
}

/// σ² k(d), where the distance d is in units of the length scale, or of the length scale of each coordinate
fn scaled(name: &str, args: &[&Value], k: fn(f64) -> f64) -> FnResult<Value> {
    let (mut x, mut y, rest) = inputs(args)?;
    let sigma = number(name, "magnitude", rest.first(), true)?;
    let lengths = match rest.get(1) {
        Some(Value::Reals(lengths)) => lengths.clone(),
        other => vec![number(name, "length-scale", other, true)?],
    };
    if lengths
        .iter()
        .any(|l| l.is_nan() || *l <= 0.0 || l.is_infinite())
    {
        return Err(FnError::domain(format!(
            "{name}: length-scales must be positive and finite"
        )));
    }
    for p in x.iter_mut().chain(&mut y) {
        if lengths.len() > 1 && lengths.len() != p.len() {
            return Err(FnError::invalid(format!(
                "{name}: {} length-scales for points of dimension {}",
                lengths.len(),
                p.len()
            )));
        }
        for (i, v) in p.iter_mut().enumerate() {
            *v /= lengths[i.min(lengths.len() - 1)];
        }
    }
    matrix(&x, &y, |x, y| sigma * sigma * k(distance(x, y)))
}
