//! Moments, quantiles and order.

use jensen_math::order;

use crate::functions::{Builtin, NamedBuiltin};
use crate::value::Value;
use crate::value::error::{FnError, FnResult};

use Builtin::Pure;

pub(super) const TABLE: &[NamedBuiltin] = &[
    (
        "mean",
        Pure(|a| {
            let x = some("mean", a[0])?;
            Ok(Value::Real(x.iter().sum::<f64>() / x.len() as f64))
        }),
    ),
    (
        "variance",
        Pure(|a| Ok(Value::Real(variance(some("variance", a[0])?)))),
    ),
    (
        "sd",
        Pure(|a| Ok(Value::Real(variance(some("sd", a[0])?).sqrt()))),
    ),
    ("quantile", Pure(quantile)),
    (
        "rank",
        Pure(|a| {
            let s = a[1].int()?;
            let x = a[0].numbers();
            let at = usize::try_from(s)
                .ok()
                .filter(|s| (1..=x.len()).contains(s));
            let at = at.ok_or_else(|| {
                FnError::invalid(format!(
                    "rank: index {s} is out of bounds, expected 1 to {}",
                    x.len()
                ))
            })?;
            let below = x.iter().filter(|v| **v < x[at - 1]).count();
            Ok(Value::Int(below as i32))
        }),
    ),
    ("sort_asc", Pure(|a| sort(a[0], false))),
    ("sort_desc", Pure(|a| sort(a[0], true))),
    ("sort_indices_asc", Pure(|a| order(a[0], false))),
    ("sort_indices_desc", Pure(|a| order(a[0], true))),
];

fn some<'v>(name: &str, x: &'v Value) -> FnResult<&'v [f64]> {
    let x = x.slice()?;
    if x.is_empty() {
        return Err(FnError::invalid(format!("{name}: no elements")));
    }
    Ok(x)
}

/// Returns the unbiased sample variance, or 0 for one element. The first element is subtracted from all elements before
/// the variance is computed. The variance is therefore exactly 0 if all elements are equal.
fn variance(x: &[f64]) -> f64 {
    if x.len() < 2 {
        return 0.0;
    }
    let from_first = || x.iter().map(|x_i| x_i - x[0]);
    let mean = from_first().sum::<f64>() / x.len() as f64;
    let squares: f64 = from_first().map(|d| (d - mean) * (d - mean)).sum();
    squares / (x.len() - 1) as f64
}

fn quantile(args: &[&Value]) -> FnResult<Value> {
    let mut x = some("quantile", args[0])?.to_vec();
    if x.iter().any(|x| x.is_nan()) {
        return Err(FnError::domain("quantile: an element is nan"));
    }
    x.sort_by(f64::total_cmp);
    let one = |p: f64| -> FnResult<f64> {
        if !(0.0..=1.0).contains(&p) {
            return Err(FnError::domain(format!(
                "quantile: p is {p}, but must be between 0 and 1"
            )));
        }
        Ok(order::quantile(&x, p))
    };
    Ok(match args[1] {
        Value::Reals(p) => Value::Reals(p.iter().map(|p| one(*p)).collect::<FnResult<_>>()?),
        p => Value::Real(one(p.real()?)?),
    })
}

fn check_sortable(x: &[f64]) -> FnResult<()> {
    if x.iter().any(|x| x.is_nan()) {
        return Err(FnError::domain("sort: an element is nan"));
    }
    Ok(())
}

fn sort(x: &Value, descending: bool) -> FnResult<Value> {
    let sorted = |x: &[f64]| -> FnResult<Vec<f64>> {
        check_sortable(x)?;
        let mut x = x.to_vec();
        x.sort_by(f64::total_cmp);
        if descending {
            x.reverse();
        }
        Ok(x)
    };
    Ok(match x {
        Value::Ints(x) => {
            let mut x = x.clone();
            x.sort_unstable();
            if descending {
                x.reverse();
            }
            Value::Ints(x)
        }
        Value::Vector(x) => Value::Vector(sorted(x)?),
        Value::RowVector(x) => Value::RowVector(sorted(x)?),
        other => Value::Reals(sorted(other.slice()?)?),
    })
}

/// The result contains the positions of the elements in sorted order. Equal elements keep their order.
fn order(x: &Value, descending: bool) -> FnResult<Value> {
    let x = x.numbers();
    check_sortable(&x)?;
    let mut order: Vec<usize> = (0..x.len()).collect();
    order.sort_by(|i, j| {
        let ordering = x[*i].total_cmp(&x[*j]);
        if descending {
            ordering.reverse()
        } else {
            ordering
        }
    });
    Ok(Value::Ints(order.iter().map(|i| *i as i32 + 1).collect()))
}
