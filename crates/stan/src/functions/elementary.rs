//! Functions of real numbers. Where the language allows this, the functions are also applied to the elements of
//! containers.

use std::f64::consts::{LN_2, PI};

use jensen_math::special::{self, inv_inc_beta, lbeta, log1m_exp, log1p_exp};

use super::special::inv_phi_log;
use crate::functions::{Builtin, NamedBuiltin};
use crate::program::{BinaryOp, UnaryOp};
use crate::value::Value;
use crate::value::error::{FnError, FnResult, check_three_two};
use crate::value::ops;
use crate::value::vectorise::map3;

use Builtin::{Map, Map2, MapComplex, Operator, Pure};

/// Returns x log y, or 0 if both numbers are 0.
pub fn lmultiply(x: f64, y: f64) -> f64 {
    if x == 0.0 && y == 0.0 {
        0.0
    } else {
        x * y.ln()
    }
}

fn log_inv_logit_diff(x: f64, y: f64) -> f64 {
    x - log1p_exp(x) + log1m_exp(y - x) - log1p_exp(y)
}

fn fdim(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        f64::NAN
    } else {
        (x - y).max(0.0)
    }
}

/// pFq(a; b; z)
fn hypergeometric(name: &str, a: &[f64], b: &[f64], z: f64) -> FnResult<Value> {
    let value = special::hypergeometric(a, b, z, 0).value;
    if value.is_nan() {
        return Err(FnError::domain(format!(
            "{name}: has no value at a = {a:?}, b = {b:?}, z = {z}: its series does not converge there"
        )));
    }
    Ok(Value::Real(value))
}

/// (1 − z)⁻ᵃ, which is the sum of its binomial series for |z| < 1
fn hypergeometric_1f0(a: f64, z: f64) -> f64 {
    if z.abs() < 1.0 {
        (-a * (-z).ln_1p()).exp()
    } else {
        f64::NAN
    }
}

fn binary_log_loss(y: f64, p: f64) -> f64 {
    if y != 0.0 { -p.ln() } else { -(-p).ln_1p() }
}

fn round(x: f64) -> f64 {
    x.round()
}

pub(super) const TABLE: &[NamedBuiltin] = &[
    ("Phi", Map(special::phi)),
    ("Phi_approx", Map(special::phi_approx)),
    ("acos", MapComplex(f64::acos, |z| z.acos())),
    ("acosh", MapComplex(f64::acosh, |z| z.acosh())),
    ("asin", MapComplex(f64::asin, |z| z.asin())),
    ("asinh", MapComplex(libm::asinh, |z| z.asinh())),
    ("atan", MapComplex(f64::atan, |z| z.atan())),
    ("atanh", MapComplex(libm::atanh, |z| z.atanh())),
    ("cbrt", Map(f64::cbrt)),
    ("ceil", Map(f64::ceil)),
    ("cos", MapComplex(f64::cos, |z| z.cos())),
    ("cosh", MapComplex(f64::cosh, |z| z.cosh())),
    ("digamma", Map(special::digamma)),
    ("erf", Map(special::erf)),
    ("erfc", Map(special::erfc)),
    ("exp", MapComplex(f64::exp, |z| z.exp())),
    ("exp2", Map(f64::exp2)),
    ("expm1", Map(f64::exp_m1)),
    ("floor", Map(f64::floor)),
    ("inv", Map(|x| 1.0 / x)),
    ("inv_Phi", Map(special::inv_phi)),
    ("inv_cloglog", Map(special::inv_cloglog)),
    ("inv_erfc", Map(special::inv_erfc)),
    ("inv_logit", Map(special::inv_logit)),
    ("inv_sqrt", Map(|x| 1.0 / x.sqrt())),
    ("inv_square", Map(|x| 1.0 / (x * x))),
    ("lambert_w0", Map(special::lambert_w0)),
    ("lambert_wm1", Map(special::lambert_wm1)),
    ("lgamma", Map(special::lgamma)),
    ("log", MapComplex(f64::ln, |z| z.ln())),
    (
        "log10",
        Pure(|a| constant_or(a, 10f64.ln(), f64::log10, |z| z.log10())),
    ),
    ("log1m", Map(|x| (-x).ln_1p())),
    ("log1m_exp", Map(log1m_exp)),
    ("log1m_inv_logit", Map(special::log1m_inv_logit)),
    ("log1p", Map(f64::ln_1p)),
    ("log1p_exp", Map(log1p_exp)),
    (
        "log2",
        Pure(|a| constant_or(a, LN_2, f64::log2, |z| z.ln() / LN_2)),
    ),
    ("log_inv_logit", Map(special::log_inv_logit)),
    ("logit", Map(special::logit)),
    ("round", Map(round)),
    ("sin", MapComplex(f64::sin, |z| z.sin())),
    ("sinh", MapComplex(f64::sinh, |z| z.sinh())),
    ("sqrt", MapComplex(f64::sqrt, |z| z.sqrt())),
    ("square", Map(|x| x * x)),
    ("std_normal_log_qf", Map(inv_phi_log)),
    ("std_normal_qf", Map(special::inv_phi)),
    ("tan", MapComplex(f64::tan, |z| z.tan())),
    ("tanh", MapComplex(f64::tanh, |z| z.tanh())),
    ("tgamma", Map(special::tgamma)),
    ("trigamma", Map(special::trigamma)),
    ("trunc", Map(f64::trunc)),
    ("atan2", Map2(f64::atan2)),
    (
        "bessel_first_kind",
        Map2(|n, x| special::bessel_first_kind(n as i32, x)),
    ),
    (
        "bessel_second_kind",
        Map2(|n, x| special::bessel_second_kind(n as i32, x)),
    ),
    ("beta", Map2(|a, b| lbeta(a, b).exp())),
    ("binary_log_loss", Map2(binary_log_loss)),
    (
        "falling_factorial",
        Pure(|a| factorial("falling_factorial", a, -1.0)),
    ),
    ("fdim", Map2(fdim)),
    ("fmax", Map2(f64::max)),
    ("fmin", Map2(f64::min)),
    ("fmod", Map2(|x, y| x % y)),
    ("gamma_p", Map2(special::gamma_p)),
    ("gamma_q", Map2(special::gamma_q)),
    ("hypergeometric_1F0", Map2(hypergeometric_1f0)),
    (
        "hypergeometric_2F1",
        Pure(|x| {
            let x = x.iter().map(|x| x.real()).collect::<FnResult<Vec<f64>>>()?;
            hypergeometric("hypergeometric_2F1", &x[..2], &x[2..3], x[3])
        }),
    ),
    (
        "hypergeometric_3F2",
        Pure(|x| {
            let (a, b) = (x[0].numbers(), x[1].numbers());
            check_three_two("hypergeometric_3F2", a.len(), b.len())?;
            hypergeometric("hypergeometric_3F2", &a, &b, x[2].real()?)
        }),
    ),
    (
        "hypergeometric_pFq",
        Pure(|x| {
            let (a, b) = (x[0].numbers(), x[1].numbers());
            hypergeometric("hypergeometric_pFq", &a, &b, x[2].real()?)
        }),
    ),
    ("hypot", Map2(f64::hypot)),
    ("lbeta", Map2(lbeta)),
    ("lchoose", Map2(special::binomial_coefficient_log)),
    ("ldexp", Map2(|x, n| x * n.exp2())),
    ("lmgamma", Map2(|k, x| special::lmgamma(k as u32, x))),
    ("lmultiply", Map2(lmultiply)),
    ("log_diff_exp", Map2(special::log_diff_exp)),
    (
        "log_falling_factorial",
        Map2(special::log_falling_factorial),
    ),
    ("log_inv_logit_diff", Map2(log_inv_logit_diff)),
    (
        "log_modified_bessel_first_kind",
        Map2(special::log_modified_bessel_first_kind),
    ),
    ("log_rising_factorial", Map2(special::log_rising_factorial)),
    (
        "modified_bessel_first_kind",
        Map2(|n, z| special::modified_bessel_first_kind(n as i32, z)),
    ),
    (
        "modified_bessel_second_kind",
        Map2(|n, z| special::modified_bessel_second_kind(n as i32, z)),
    ),
    ("owens_t", Map2(special::owens_t)),
    ("pow", Operator(BinaryOp::EltPow)),
    (
        "rising_factorial",
        Pure(|a| factorial("rising_factorial", a, 1.0)),
    ),
    ("add", Operator(BinaryOp::Add)),
    ("subtract", Operator(BinaryOp::Sub)),
    ("multiply", Operator(BinaryOp::Mul)),
    ("divide", Operator(BinaryOp::Div)),
    ("modulus", Operator(BinaryOp::Mod)),
    ("elt_multiply", Operator(BinaryOp::EltMul)),
    ("elt_divide", Operator(BinaryOp::EltDiv)),
    ("mdivide_left", Operator(BinaryOp::LeftDiv)),
    ("mdivide_right", Operator(BinaryOp::Div)),
    ("logical_and", Operator(BinaryOp::And)),
    ("logical_eq", Operator(BinaryOp::Eq)),
    ("logical_gt", Operator(BinaryOp::Gt)),
    ("logical_gte", Operator(BinaryOp::Ge)),
    ("logical_lt", Operator(BinaryOp::Lt)),
    ("logical_lte", Operator(BinaryOp::Le)),
    ("logical_neq", Operator(BinaryOp::Ne)),
    ("logical_or", Operator(BinaryOp::Or)),
    ("logical_negation", Pure(|a| ops::unary(UnaryOp::Not, a[0]))),
    ("minus", Pure(|a| ops::unary(UnaryOp::Neg, a[0]))),
    ("plus", Pure(|a| Ok(a[0].clone()))),
    ("transpose", Pure(|a| ops::transpose(a[0]))),
    (
        "fma",
        Pure(|a| map3("fma", a[0], a[1], a[2], &f64::mul_add)),
    ),
    (
        "inc_beta",
        Pure(|a| map3("inc_beta", a[0], a[1], a[2], &special::inc_beta)),
    ),
    (
        "inv_inc_beta",
        Pure(|a| map3("inv_inc_beta", a[0], a[1], a[2], &inv_inc_beta)),
    ),
    ("abs", Pure(abs)),
    ("choose", Pure(choose)),
    (
        "int_step",
        Pure(|a| Ok(Value::Int(i32::from(a[0].real()? > 0.0)))),
    ),
    (
        "step",
        Pure(|a| Ok(Value::Real(if a[0].real()? < 0.0 { 0.0 } else { 1.0 }))),
    ),
    (
        "is_inf",
        Pure(|a| Ok(Value::Int(i32::from(a[0].real()?.is_infinite())))),
    ),
    (
        "is_nan",
        Pure(|a| Ok(Value::Int(i32::from(a[0].real()?.is_nan())))),
    ),
    ("to_int", Pure(to_int)),
    ("e", Pure(|_| Ok(Value::Real(std::f64::consts::E)))),
    ("pi", Pure(|_| Ok(Value::Real(PI)))),
    ("sqrt2", Pure(|_| Ok(Value::Real(std::f64::consts::SQRT_2)))),
    ("machine_precision", Pure(|_| Ok(Value::Real(f64::EPSILON)))),
    (
        "negative_infinity",
        Pure(|_| Ok(Value::Real(f64::NEG_INFINITY))),
    ),
    (
        "positive_infinity",
        Pure(|_| Ok(Value::Real(f64::INFINITY))),
    ),
    ("not_a_number", Pure(|_| Ok(Value::Real(f64::NAN)))),
];

/// Names such as `log10` denote a constant if they are called without an argument, and a function otherwise.
fn constant_or(
    args: &[&Value],
    constant: f64,
    f: fn(f64) -> f64,
    g: fn(num_complex::Complex64) -> num_complex::Complex64,
) -> FnResult<Value> {
    match args {
        [] => Ok(Value::Real(constant)),
        [x, ..] if x.has_complex() => x.map_complex(&g),
        [x, ..] => x.map_real(&f),
    }
}

fn abs(args: &[&Value]) -> FnResult<Value> {
    fn walk(x: &Value) -> FnResult<Value> {
        Ok(match x {
            Value::Int(i) => Value::Int(i.wrapping_abs()),
            Value::Ints(x) => Value::Ints(x.iter().map(|i| i.wrapping_abs()).collect()),
            Value::Array(x) => {
                let parts: Vec<Value> = x.iter().map(walk).collect::<FnResult<_>>()?;
                match parts.first() {
                    Some(Value::Real(_)) => Value::array(parts, &crate::program::Type::Real),
                    _ => Value::Array(parts),
                }
            }
            Value::Complex(z) => Value::Real(z.norm()),
            Value::ComplexVector(x) => Value::Vector(x.iter().map(|z| z.norm()).collect()),
            Value::ComplexRowVector(x) => Value::RowVector(x.iter().map(|z| z.norm()).collect()),
            Value::ComplexMatrix(m) => Value::Matrix(m.map(|z| z.norm())),
            other => other.map_real(&f64::abs)?,
        })
    }
    walk(args[0])
}

/// Returns the product x (x + step) (x + 2 step) … of n factors. The result is an `int` if both arguments are.
fn factorial(name: &str, args: &[&Value], step: f64) -> FnResult<Value> {
    let product = |x: f64, n: f64| (0..n as i32).map(|i| x + step * f64::from(i)).product();
    if let (Value::Int(x), Value::Int(n)) = (args[0], args[1]) {
        let value: f64 = product(f64::from(*x), f64::from(*n));
        if value.abs() > f64::from(i32::MAX) {
            return Err(FnError::domain(format!(
                "{name}({x}, {n}) does not fit 32 bits"
            )));
        }
        return Ok(Value::Int(value as i32));
    }
    crate::value::vectorise::map2(name, args[0], args[1], &product)
}

fn choose_one(n: i32, k: i32) -> FnResult<i32> {
    if n < 0 || k < 0 {
        return Err(FnError::domain(format!(
            "choose: the arguments are {n} and {k}, but must not be negative"
        )));
    }
    if k > n {
        return Ok(0);
    }
    let k = k.min(n - k);
    let mut result: i64 = 1;
    for i in 0..i64::from(k) {
        result = result * (i64::from(n) - i) / (i + 1);
        if result > i64::from(i32::MAX) {
            return Err(FnError::domain(format!(
                "choose({n}, {k}) does not fit 32 bits"
            )));
        }
    }
    Ok(result as i32)
}

fn choose(args: &[&Value]) -> FnResult<Value> {
    fn walk(n: &Value, k: &Value) -> FnResult<Value> {
        Ok(match (n, k) {
            (Value::Int(n), Value::Int(k)) => Value::Int(choose_one(*n, *k)?),
            _ => {
                let len = n.len().max(k.len());
                if (!n.is_scalar() && n.len() != len) || (!k.is_scalar() && k.len() != len) {
                    return Err(FnError::invalid("choose: sizes do not match"));
                }
                let pick = |v: &Value, i: usize| -> FnResult<Value> {
                    Ok(if v.is_scalar() {
                        v.clone()
                    } else {
                        v.elements()?[i].clone()
                    })
                };
                let parts: Vec<Value> = (0..len)
                    .map(|i| walk(&pick(n, i)?, &pick(k, i)?))
                    .collect::<FnResult<_>>()?;
                match parts.first() {
                    Some(Value::Int(_)) | None => Value::array(parts, &crate::program::Type::Int),
                    _ => Value::Array(parts),
                }
            }
        })
    }
    walk(args[0], args[1])
}

fn to_int(args: &[&Value]) -> FnResult<Value> {
    fn walk(x: &Value) -> FnResult<Value> {
        let one = |x: f64| {
            if x.is_nan() || x.abs() > f64::from(i32::MAX) {
                Err(FnError::domain(format!("to_int: {x} is not a 32-bit int")))
            } else {
                Ok(x as i32)
            }
        };
        Ok(match x {
            Value::Int(_) | Value::Ints(_) => x.clone(),
            Value::Real(x) => Value::Int(one(*x)?),
            Value::Reals(x) => Value::Ints(x.iter().map(|x| one(*x)).collect::<FnResult<_>>()?),
            Value::Array(x) => Value::Array(x.iter().map(walk).collect::<FnResult<_>>()?),
            other => return Err(FnError::invalid(format!("to_int of {}", other.describe()))),
        })
    }
    walk(args[0])
}
