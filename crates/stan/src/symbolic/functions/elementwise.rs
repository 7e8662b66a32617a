//! Scalar functions, applied to containers element by element.

use std::f64::consts::PI;

use jensen_graph::ElemOp;

use crate::symbolic::functions::Cx;
use crate::symbolic::known;
use crate::symbolic::tape::E;
use crate::symbolic::value::{Sym, cell_e, e_cell};
use crate::value::error::FnResult;

/// A scalar function of one argument.
pub type Unary = for<'g> fn(E<'g>) -> E<'g>;
/// A scalar function of two arguments.
pub type Binary = for<'g> fn(E<'g>, E<'g>) -> E<'g>;
/// A scalar function of three arguments.
pub type Ternary = for<'g> fn(E<'g>, E<'g>, E<'g>) -> E<'g>;

/// The functions of one number.
pub const UNARY: &[(&str, Unary)] = &[
    ("Phi", |x| x.normal_cdf()),
    ("Phi_approx", phi_approx),
    ("abs", |x| x.abs()),
    ("acos", |x| x.op1(ElemOp::Acos)),
    ("acosh", |x| x.op1(ElemOp::Acosh)),
    ("asin", |x| x.op1(ElemOp::Asin)),
    ("asinh", |x| x.op1(ElemOp::Asinh)),
    ("atan", |x| x.atan()),
    ("atanh", |x| x.op1(ElemOp::Atanh)),
    ("cbrt", |x| x.op1(ElemOp::Cbrt)),
    ("ceil", |x| x.op1(ElemOp::Ceil)),
    ("cos", |x| x.cos()),
    ("cosh", |x| x.op1(ElemOp::Cosh)),
    ("digamma", |x| x.op1(ElemOp::Digamma)),
    ("erf", |x| x.op1(ElemOp::Erf)),
    ("erfc", |x| x.op1(ElemOp::Erfc)),
    ("exp", |x| x.exp()),
    ("exp2", |x| x.op1(ElemOp::Exp2)),
    ("expm1", |x| x.expm1()),
    ("fabs", |x| x.abs()),
    ("floor", |x| x.op1(ElemOp::Floor)),
    ("int_step", |x| x.num(0.0).lt(x)),
    ("inv", |x| x.recip()),
    ("inv_Phi", |x| x.op1(ElemOp::NormalQuantile)),
    ("inv_cloglog", inv_cloglog),
    ("inv_erfc", |x| {
        (0.5 * x).op1(ElemOp::NormalQuantile) * -std::f64::consts::FRAC_1_SQRT_2
    }),
    ("inv_logit", |x| x.inv_logit()),
    ("inv_sqrt", |x| x.sqrt().recip()),
    ("inv_square", |x| x.square().recip()),
    ("lambert_w0", |x| x.op1(ElemOp::LambertW0)),
    ("lambert_wm1", |x| x.op1(ElemOp::LambertWm1)),
    ("lgamma", |x| x.lgamma()),
    ("log", |x| x.log()),
    ("log10", |x| x.op1(ElemOp::Log10)),
    ("log1m", |x| x.log1m()),
    ("log1m_exp", |x| x.log1m_exp()),
    ("log1m_inv_logit", |x| -x.log1p_exp()),
    ("log1p", |x| x.log1p()),
    ("log1p_exp", |x| x.log1p_exp()),
    ("log2", |x| x.op1(ElemOp::Log2)),
    ("log_inv_logit", |x| -(-x).log1p_exp()),
    ("logit", logit),
    ("minus", |x| -x),
    ("plus", |x| x),
    ("round", |x| x.op1(ElemOp::Round)),
    ("sin", |x| x.sin()),
    ("sinh", |x| x.op1(ElemOp::Sinh)),
    ("sqrt", |x| x.sqrt()),
    ("square", |x| x.square()),
    ("std_normal_log_qf", |x| x.exp().op1(ElemOp::NormalQuantile)),
    ("std_normal_qf", |x| x.op1(ElemOp::NormalQuantile)),
    ("step", |x| x.num(0.0).le(x)),
    ("tan", |x| x.op1(ElemOp::Tan)),
    ("tanh", |x| x.tanh()),
    ("tgamma", tgamma),
    ("trigamma", |x| x.op1(ElemOp::Trigamma)),
    ("trunc", |x| x.op1(ElemOp::Trunc)),
];

/// The functions of two numbers.
pub const BINARY: &[(&str, Binary)] = &[
    ("atan2", |y, x| y.op2(ElemOp::Atan2, x)),
    ("bessel_first_kind", |n, x| n.op2(ElemOp::BesselJ, x)),
    ("bessel_second_kind", |n, x| n.op2(ElemOp::BesselY, x)),
    ("beta", |a, b| lbeta(a, b).exp()),
    ("binary_log_loss", |y, p| {
        y.eq(y.num(0.0)).select(-p.log1m(), -p.log())
    }),
    ("falling_factorial", |x, n| factorial(x, n, -1.0)),
    ("fdim", |x, y| {
        let gap = x - y;
        x.le(y).select(x.num(0.0), gap)
    }),
    ("fmax", |x, y| unless_nan(x, y, x.fmax(y))),
    ("fmin", |x, y| unless_nan(x, y, x.fmin(y))),
    ("fmod", |x, y| x.op2(ElemOp::Fmod, y)),
    ("gamma_p", |a, x| {
        inc_gamma(a, x, ElemOp::LogGammaP, |leading| leading)
    }),
    ("gamma_q", |a, x| {
        inc_gamma(a, x, ElemOp::LogGammaQ, |leading| {
            leading.num(1.0) - leading
        })
    }),
    ("hypergeometric_1F0", |a, z| {
        let inside = z.abs().lt(z.num(1.0));
        let power = -a * (-inside.select(z, z.num(0.0))).op1(ElemOp::Log1p);
        inside.select(power.exp(), z.num(f64::NAN))
    }),
    ("hypot", |x, y| x.op2(ElemOp::Hypot, y)),
    ("lbeta", lbeta),
    ("lchoose", lchoose),
    ("ldexp", |x, n| x * n.op1(ElemOp::Exp2)),
    ("lmultiply", multiply_log),
    ("log_diff_exp", log_diff_exp),
    ("log_falling_factorial", |x, n| {
        (x + 1.0).lgamma() - (x - n + 1.0).lgamma()
    }),
    ("log_inv_logit_diff", log_inv_logit_diff),
    ("log_modified_bessel_first_kind", |v, x| {
        v.op2(ElemOp::LogBesselI, x)
    }),
    ("log_rising_factorial", |x, n| (x + n).lgamma() - x.lgamma()),
    ("modified_bessel_first_kind", |n, x| {
        n.op2(ElemOp::BesselI, x)
    }),
    ("modified_bessel_second_kind", |n, x| {
        n.op2(ElemOp::BesselK, x)
    }),
    ("multiply_log", multiply_log),
    ("owens_t", |h, a| h.op2(ElemOp::OwensT, a)),
    ("pow", |x, y| x.pow(y)),
    ("rising_factorial", |x, n| factorial(x, n, 1.0)),
];

/// The functions of three numbers.
pub const TERNARY: &[(&str, Ternary)] = &[
    ("fma", |x, y, z| x * y + z),
    ("inc_beta", inc_beta),
    ("inv_inc_beta", |a, b, p| a.op3(ElemOp::InvIncBeta, b, p)),
];

/// Applies `f` to corresponding elements of all arguments. A scalar is combined with every element of the other
/// arguments.
///
/// # Errors
/// Fails if containers have different shapes.
pub fn map<'g>(cx: &Cx<'g>, args: &[Sym], f: impl Fn(&[E<'g>]) -> E<'g>) -> FnResult<Sym> {
    let mut shape: Option<&Sym> = None;
    let mut short = false;
    for arg in args {
        if !arg.is_scalar() {
            if let Some(other) = shape {
                let (a, b) = (other.dims()?, arg.dims()?);
                if a.extents() != b.extents() && (a.size() > 0 || b.size() > 0) {
                    return Err(cx.mismatch(other, arg));
                }
            }
            shape = match shape {
                // Arrays of numbers become vectors.
                Some(other)
                    if !matches!(other.dims()?.leaf, crate::symbolic::value::Leaf::Scalar) =>
                {
                    Some(other)
                }
                _ => Some(arg),
            };
        }
        short |= cx.short(arg) || arg.has_records(cx.tape);
    }
    let Some(shape) = shape else {
        let scalars: Vec<E<'g>> = args.iter().map(|a| cx.e(a)).collect::<FnResult<_>>()?;
        return Ok(f(&scalars).into());
    };
    let dims = shape.dims()?;
    if dims.size() == 0 {
        return Ok(dims.value(&[]).into());
    }
    if short && dims.size() > 1 {
        let mut cells = Vec::with_capacity(dims.size());
        let mut row = Vec::with_capacity(args.len());
        for i in 0..dims.size() {
            row.clear();
            for arg in args {
                row.push(if arg.is_scalar() {
                    cx.e(arg)?
                } else {
                    arg.element(cx.tape, i)?
                });
            }
            cells.push(e_cell(f(&row)));
        }
        return Ok(Sym::cells(dims, cells));
    }
    let whole: Vec<E<'g>> = args.iter().map(|a| cx.e(a)).collect::<FnResult<_>>()?;
    let result = f(&whole).repeat(dims.size());
    Ok(Sym::flat(dims, result))
}

/// Converts cells to scalars.
pub fn scalars<'g>(cx: &Cx<'g>, cells: &[crate::symbolic::value::Cell]) -> Vec<E<'g>> {
    cells.iter().map(|c| cell_e(cx.tape, *c)).collect()
}

/// If exactly one argument is NaN, the result is the other argument, as with `fmax` and `fmin` in C.
fn unless_nan<'g>(x: E<'g>, y: E<'g>, both: E<'g>) -> E<'g> {
    x.eq(x).select(y.eq(y).select(both, x), y)
}

fn phi_approx(x: E<'_>) -> E<'_> {
    (0.07056 * x.square() * x + 1.5976 * x).inv_logit()
}

fn inv_cloglog(x: E<'_>) -> E<'_> {
    /// Above this value, 1 − exp(−eˣ) is 1. For large x, its derivative would contain eˣ, which overflows.
    const FULL: f64 = 8.0;
    let x = x.lt(x.num(FULL)).select(x, x.num(FULL));
    -(-x.exp()).expm1()
}

/// Returns log(x/(1 − x)).
pub fn logit(x: E<'_>) -> E<'_> {
    x.inv_logit_argument()
        .unwrap_or_else(|| x.op1(ElemOp::Logit))
}

/// For arguments below this value, an incomplete gamma function equals the first term of its series.
const TINY: f64 = 1e-30;

/// `op` is the logarithm of a regularised incomplete gamma function. The derivative of `op` is not usable at zero or
/// for large x. For small x, `near` computes the function from the first term of the series of P, xᵃ / Γ(a + 1). For
/// large x, the function is constant, so its limit is used.
fn inc_gamma<'g>(a: E<'g>, x: E<'g>, op: ElemOp, near: fn(E<'g>) -> E<'g>) -> E<'g> {
    let (zero, one) = (x.num(0.0), x.num(1.0));
    let tiny = zero.le(x) * x.lt(x.num(TINY));
    let flat = x.num(1e15).lt(x) * (10.0 * a).lt(x);
    let inside = (tiny + flat).select(one, x);
    let leading = tiny.select(x, one).pow(a) * (-(a + 1.0).lgamma()).exp();
    tiny.select(
        near(leading),
        flat.select(near(one), a.op2(op, inside).exp()),
    )
}

/// Builds the regularised incomplete beta function as the exponential of its logarithm. At 0 and 1, the derivative of
/// the logarithm is not finite, so the function is computed from the first term of its series.
fn inc_beta<'g>(a: E<'g>, b: E<'g>, x: E<'g>) -> E<'g> {
    if x.inv_logit_argument().is_some() {
        return a.op3(ElemOp::LogIncBeta, b, logit(x)).exp();
    }
    let (zero, one) = (x.num(0.0), x.num(1.0));
    let (none, all) = (x.eq(zero), x.eq(one));
    let inside = (none + all).select(x.num(0.5), x);
    let norm = (-lbeta(a, b)).exp();
    let low = none.select(x, one).pow(a) * norm / a;
    let high = one - all.select(one - x, one).pow(b) * norm / b;
    let between = a.op3(ElemOp::LogIncBeta, b, logit(inside)).exp();
    none.select(low, all.select(high, between))
}

fn tgamma(x: E<'_>) -> E<'_> {
    if known::range(x).positive() {
        return x.lgamma().exp();
    }
    // The side that is not selected is a constant, because 0 times an infinite derivative is NaN.
    let above = x.num(0.0).lt(x);
    let positive = above.select(x, x.num(1.0)).lgamma().exp();
    let below = above.select(x.num(-0.5), x);
    let reflected = PI / ((PI * below).sin() * (1.0 - below).lgamma().exp());
    above.select(positive, reflected)
}

/// Returns the product of n factors. The first factor is x, and each later factor is larger by `step`. The number n
/// must be known.
fn factorial<'g>(x: E<'g>, n: E<'g>, step: f64) -> E<'g> {
    let most = n.data().unwrap_or_default().into_iter().fold(0.0, f64::max);
    let mut product = x.num(1.0);
    let mut i = 0.0;
    while i < most {
        let counts = n.num(i).lt(n);
        product = product * counts.select(x + step * i, x.num(1.0));
        i += 1.0;
    }
    product
}

/// Returns log Γ_k(x).
pub fn lmgamma(k: usize, x: E<'_>) -> E<'_> {
    let mut sum = x.num(0.25 * (k * k.saturating_sub(1)) as f64 * PI.ln());
    for j in 0..k {
        sum = sum + (x - 0.5 * j as f64).lgamma();
    }
    sum
}

/// Returns log B(a, b).
pub fn lbeta<'g>(a: E<'g>, b: E<'g>) -> E<'g> {
    a.op2(ElemOp::Lbeta, b)
}

/// Returns the logarithm of the binomial coefficient.
pub fn lchoose<'g>(n: E<'g>, k: E<'g>) -> E<'g> {
    -lbeta(n - k + 1.0, k + 1.0) - n.log1p()
}

/// Returns x log y, or 0 if x is 0.
pub fn multiply_log<'g>(x: E<'g>, y: E<'g>) -> E<'g> {
    if x.scalar() == Some(0.0) {
        return x;
    }
    let product = x * y.log();
    match x.data() {
        Some(values) if values.iter().all(|v| *v != 0.0) => product,
        _ if known::range(y).positive() => product,
        _ => x.eq(x.num(0.0)).select(x.num(0.0), product),
    }
}

/// Returns log(eˣ − eʸ).
pub fn log_diff_exp<'g>(x: E<'g>, y: E<'g>) -> E<'g> {
    if y.scalar() == Some(f64::NEG_INFINITY) {
        return x;
    }
    x + (y - x).log1m_exp()
}

fn log_inv_logit_diff<'g>(x: E<'g>, y: E<'g>) -> E<'g> {
    (y - x).log1m_exp() - (-x).log1p_exp() - y.log1p_exp()
}
