//! The table of elementwise operations.
//!
//! A row of the table begins with the variant, the name and the arguments of an operation. The following fields come
//! next:
//!
//! - `value` is the scalar definition of the operation, which is slow.
//! - `kernel` computes eight lanes. Operations that are too rare to vectorise have no kernel, and the scalar definition
//!   is used in each lane.
//! - `single` computes sixteen lanes in single precision. For operations without this field, the scalar definition is
//!   used.
//! - `partials` lists the derivative with respect to each argument as a graph expression of the arguments and of the
//!   result, `out`. The entry `Zero` means that the derivative is zero almost everywhere.
//! - `range` is the range of the values, if it follows from the ranges of the arguments.
//! - `harmless` contains one number per argument. This number replaces the argument on branches that are not taken. The
//!   field is required if the operation is undefined or has an infinite slope for some arguments.
//! - `points` lists arguments at which tests compare the value, the kernel and finite differences.

use jensen_math::special as sp;

use crate::build::Zero;
use crate::ir::{Graph, NodeId};
use crate::ops::range::{
    ABOVE_ONE, ANY, HALF, Harmless, MODEST, NEGATIVE, NONNEGATIVE, POSITIVE, ValueRange,
};
use crate::ops::slopes::*;

/// Expands `$callback!` with all rows of the table. The enumeration, the values, the kernels, the derivatives and the
/// tests are generated from these rows by different callbacks.
macro_rules! elementwise_table {
    ($callback:ident) => {
        $callback! {
            // Arithmetic.
            Neg "neg" (x) out g { value: -x, kernel: x.neg(), single: -x, range: x().negation(), partials: [g.constant(-1.0)], points: [[-1.5], [0.0], [2.0]] }
            Add "add" (x, y) out g { value: x + y, kernel: x.add(y), single: x + y, range: x().sum(y()), partials: [g.constant(1.0), g.constant(1.0)], points: [[1.5, -2.0]] }
            Sub "sub" (x, y) out g { value: x - y, kernel: x.sub(y), single: x - y, range: x().difference(y()), partials: [g.constant(1.0), g.constant(-1.0)], points: [[1.5, -2.0]] }
            Mul "mul" (x, y) out g { value: x * y, kernel: x.mul(y), single: x * y, range: x().product(y()), partials: [y, x], points: [[1.5, -2.0], [0.0, 3.0]] }
            Div "div" (x, y) out g { value: x / y, kernel: x.div(y), single: x / y, range: x().quotient(y()), harmless: [ANY, POSITIVE], partials: [g.recip(y), { let q = g.div(out, y); g.neg(q) }], points: [[1.5, -2.0], [0.0, 0.3]] }
            Fma "fma" (x, y, z) out g { value: x.mul_add(y, z), kernel: x.fma(y, z), single: x.fma(y, z), range: x().product(y()).sum(z()), partials: [y, x, g.constant(1.0)], points: [[1.5, -2.0, 0.25]] }
            Recip "recip" (x) out g { value: 1.0 / x, kernel: V::splat(1.0).div(x), single: V::splat(1.0) / x, range: x().positive_if_positive(), harmless: [POSITIVE], partials: [{ let s = g.square(out); g.neg(s) }], points: [[-1.5], [0.3]] }
            Square "square" (x) out g { value: x * x, kernel: x.mul(x), single: x * x, range: x().magnitude(), partials: [{ let two = g.constant(2.0); g.mul(two, x) }], points: [[-1.5], [0.0], [3.0]] }
            Sqrt "sqrt" (x) out g { value: x.sqrt(), kernel: x.sqrt(), single: x.sqrt(), range: ValueRange::at_least(0.0, x().positive()), harmless: [POSITIVE], partials: [{ let half = g.constant(0.5); let d = infinite_at_zero(g, out); g.div(half, d) }], points: [[0.25], [3.0]] }
            Cbrt "cbrt" (x) out g { value: libm::cbrt(x), kernel: vm::cbrt(x), harmless: [POSITIVE], partials: [{ let s = g.square(out); let three = g.constant(3.0); let d = g.mul(three, s); g.recip(d) }], points: [[-2.0], [0.7]] }
            Pow "pow" (x, y) out g { value: x.powf(y), kernel: vm::pow(x, y), range: x().positive_if_positive(), harmless: [POSITIVE, MODEST], partials: [
                slope_of_power(g, x, y),
                { let zero = g.constant(0.0); let at_zero = g.elem(ElemOp::Eq, &[x, zero]); let l = g.log(x); let s = g.select(at_zero, zero, l); g.mul(out, s) }],
                points: [[1.5, 2.5], [0.3, -1.2]] }
            Fmod "fmod" (x, y) out g { value: libm::fmod(x, y), partials: [g.constant(1.0), { let q = g.div(x, y); let t = g.elem(ElemOp::Trunc, &[q]); g.neg(t) }], points: [[5.3, 2.0], [-5.3, 2.1]] }
            Hypot "hypot" (x, y) out g { value: libm::hypot(x, y), kernel: vm::hypot(x, y), harmless: [HALF, HALF], partials: [g.div(x, out), g.div(y, out)], points: [[3.0, -4.0]] }

            // Piecewise operations. Derivatives at the kinks are one-sided.
            Abs "abs" (x) out g { value: x.abs(), kernel: x.abs(), single: x.abs(), range: x().magnitude(), partials: [g.elem(ElemOp::Sign, &[x])], points: [[-1.5], [2.0]] }
            Sign "sign" (x) out g { value: f64::from(x > 0.0) - f64::from(x < 0.0), kernel: V::select(x.gt(V::splat(0.0)), V::splat(1.0), V::select(x.lt(V::splat(0.0)), V::splat(-1.0), V::splat(0.0))), single: V::select(V::zero().lt(x), V::splat(1.0), V::select(x.lt(V::zero()), V::splat(-1.0), V::zero())), partials: [Zero], points: [[-1.5], [2.0]] }
            Floor "floor" (x) out g { value: x.floor(), kernel: x.floor(), partials: [Zero], points: [[-1.5], [2.25]] }
            Ceil "ceil" (x) out g { value: x.ceil(), kernel: x.neg().floor().neg(), partials: [Zero], points: [[-1.5], [2.25]] }
            Round "round" (x) out g { value: x.round(), kernel: { let t = x.abs().trunc(); let up = x.abs().sub(t).ge(V::splat(0.5)); V::select(up, t.add(V::splat(1.0)), t).copysign(x) }, partials: [Zero], points: [[-1.6], [2.25], [2.6]] }
            Trunc "trunc" (x) out g { value: x.trunc(), kernel: x.trunc(), partials: [Zero], points: [[-1.5], [2.25]] }
            Fmin "fmin" (x, y) out g { value: if x.is_nan() || y.is_nan() { f64::NAN } else { x.min(y) }, kernel: V::select(x.le(y), x, V::select(y.lt(x), y, x.add(y))), single: V::select(x.le(y), x, V::select(y.lt(x), y, x + y)), partials: [g.elem(ElemOp::Le, &[x, y]), g.elem(ElemOp::Lt, &[y, x])], points: [[1.0, 2.0], [2.5, 1.0]] }
            Fmax "fmax" (x, y) out g { value: if x.is_nan() || y.is_nan() { f64::NAN } else { x.max(y) }, kernel: V::select(x.ge(y), x, V::select(y.gt(x), y, x.add(y))), single: V::select(y.le(x), x, V::select(x.lt(y), y, x + y)), range: x().larger(y()), partials: [g.elem(ElemOp::Le, &[y, x]), g.elem(ElemOp::Lt, &[x, y])], points: [[1.0, 2.0], [2.5, 1.0]] }

            // Comparisons, with results 1 or 0.
            Lt "lt" (x, y) out g { value: f64::from(x < y), kernel: V::select(x.lt(y), V::splat(1.0), V::splat(0.0)), single: V::select(x.lt(y), V::splat(1.0), V::zero()), range: ValueRange::between(0.0, 1.0), partials: [Zero, Zero], points: [[1.0, 2.0], [2.5, 1.0]] }
            Le "le" (x, y) out g { value: f64::from(x <= y), kernel: V::select(x.le(y), V::splat(1.0), V::splat(0.0)), single: V::select(x.le(y), V::splat(1.0), V::zero()), range: ValueRange::between(0.0, 1.0), partials: [Zero, Zero], points: [[1.0, 2.0], [2.5, 1.0]] }
            Eq "eq" (x, y) out g { value: f64::from(x == y), kernel: V::select(V::eq(x, y), V::splat(1.0), V::splat(0.0)), single: V::select(V::eq(x, y), V::splat(1.0), V::zero()), range: ValueRange::between(0.0, 1.0), partials: [Zero, Zero], points: [[1.0, 2.0], [2.5, 1.0]] }
            Select "select" (c, x, y) out g { value: if c != 0.0 { x } else { y }, kernel: V::select(V::eq(c, V::splat(0.0)), y, x), single: V::select(V::eq(c, V::zero()), y, x), range: x().join(y()), partials: [Zero, { let (one, zero) = (g.constant(1.0), g.constant(0.0)); g.select(c, one, zero) }, { let (one, zero) = (g.constant(1.0), g.constant(0.0)); g.select(c, zero, one) }], points: [[1.0, 2.0, 5.0], [-0.5, 2.0, 5.0]] }

            // The constant that a log-sum-exp subtracts to avoid overflow. It is always finite. It has no derivative,
            // because the result of the log-sum-exp does not depend on it.
            Pivot "pivot" (x) out g { value: if x.is_finite() { x } else { 0.0 }, kernel: V::select(x.abs().lt(V::splat(f64::INFINITY)), x, V::splat(0.0)), single: V::select(x.abs().lt(V::splat(f32::INFINITY)), x, V::zero()), partials: [Zero], points: [] }
            // A value that differentiation treats as a constant.
            Held "held" (x) out g { value: x, kernel: x, single: x, range: x(), partials: [Zero], points: [] }

            // Exponentials and logarithms.
            Exp "exp" (x) out g { value: x.exp(), kernel: vm::exp(x), single: vm::exp(x), range: ValueRange::at_least(0.0, true), harmless: [MODEST], partials: [out], points: [[-3.0], [0.1], [2.0]] }
            Exp2 "exp2" (x) out g { value: x.exp2(), kernel: vm::exp2(x), range: ValueRange::at_least(0.0, true), harmless: [MODEST], partials: [{ let c = g.constant(std::f64::consts::LN_2); g.mul(c, out) }], points: [[-3.0], [0.1]] }
            Expm1 "expm1" (x) out g { value: x.exp_m1(), kernel: vm::expm1(x), single: vm::expm1(x), range: x().same_sign(), harmless: [MODEST], partials: [{ let one = g.constant(1.0); g.add(out, one) }], points: [[-3.0], [1e-3], [2.0]] }
            Log "log" (x) out g { value: x.ln(), kernel: vm::log(x), single: vm::log(x), harmless: [POSITIVE], partials: [g.recip(x)], points: [[0.2], [3.0]] }
            Log2 "log2" (x) out g { value: x.log2(), kernel: vm::log2(x), harmless: [POSITIVE], partials: [{ let c = g.constant(std::f64::consts::LN_2); let d = g.mul(c, x); g.recip(d) }], points: [[0.2], [3.0]] }
            Log10 "log10" (x) out g { value: x.log10(), kernel: vm::log10(x), harmless: [POSITIVE], partials: [{ let c = g.constant(std::f64::consts::LN_10); let d = g.mul(c, x); g.recip(d) }], points: [[0.2], [3.0]] }
            Log1p "log1p" (x) out g { value: x.ln_1p(), kernel: vm::log1p(x), single: vm::log1p(x), range: x().same_sign(), harmless: [NONNEGATIVE], partials: [{ let one = g.constant(1.0); let d = g.add(one, x); g.recip(d) }], points: [[-0.5], [1e-3], [4.0]] }
            InvLogit "inv_logit" (x) out g { value: sp::inv_logit(x), kernel: vm::inv_logit(x), single: vm::inv_logit(x), range: ValueRange::PROBABILITY, partials: [{ let s = g.square(out); g.sub(out, s) }], points: [[-3.0], [0.4], [2.0]] }
            Logit "logit" (x) out g { value: sp::logit(x), kernel: vm::logit(x), harmless: [HALF], partials: [{ let s = g.square(x); let d = g.sub(x, s); g.recip(d) }], points: [[0.2], [0.7]] }
            Log1pExp "log1p_exp" (x) out g { value: sp::log1p_exp(x), kernel: vm::log1p_exp(x), single: vm::log1p_exp(x), range: ValueRange::at_least(0.0, true), partials: [g.elem(ElemOp::InvLogit, &[x])], points: [[-3.0], [0.4], [20.0]] }
            Log1mExp "log1m_exp" (x) out g { value: sp::log1m_exp(x), kernel: vm::log1m_exp(x), harmless: [NEGATIVE], partials: [{ let d = g.sub(x, out); let e = g.exp(d); g.neg(e) }], points: [[-3.0], [-0.1]] }
            LogAddExp "log_add_exp" (x, y) out g { value: sp::log_sum_exp(x, y), kernel: { let (m, d) = (x.max(y), x.sub(y).abs().neg()); let r = m.add(vm::log1p(vm::exp(d))); V::select(V::eq(x, y), x.add(V::splat(std::f64::consts::LN_2)), r) }, partials: [{ let d = g.sub(x, y); g.elem(ElemOp::InvLogit, &[d]) }, { let d = g.sub(y, x); g.elem(ElemOp::InvLogit, &[d]) }], points: [[1.0, -2.0], [0.3, 0.3]] }

            // Trigonometric and hyperbolic functions.
            Sin "sin" (x) out g { value: x.sin(), kernel: vm::sin(x), range: ValueRange::between(-1.0, 1.0), partials: [g.elem(ElemOp::Cos, &[x])], points: [[-2.0], [0.4]] }
            Cos "cos" (x) out g { value: x.cos(), kernel: vm::cos(x), range: ValueRange::between(-1.0, 1.0), partials: [{ let s = g.elem(ElemOp::Sin, &[x]); g.neg(s) }], points: [[-2.0], [0.4]] }
            Tan "tan" (x) out g { value: x.tan(), kernel: vm::tan(x), partials: [{ let s = g.square(out); let one = g.constant(1.0); g.add(one, s) }], points: [[-1.0], [0.4]] }
            Asin "asin" (x) out g { value: x.asin(), kernel: vm::asin(x), harmless: [HALF], partials: [{ let s = g.square(x); let one = g.constant(1.0); let d = g.sub(one, s); let r = g.sqrt(d); g.recip(r) }], points: [[-0.6], [0.4]] }
            Acos "acos" (x) out g { value: x.acos(), kernel: vm::acos(x), harmless: [HALF], partials: [{ let s = g.square(x); let one = g.constant(1.0); let d = g.sub(one, s); let r = g.sqrt(d); let q = g.recip(r); g.neg(q) }], points: [[-0.6], [0.4]] }
            Atan "atan" (x) out g { value: x.atan(), kernel: vm::atan(x), partials: [{ let s = g.square(x); let one = g.constant(1.0); let d = g.add(one, s); g.recip(d) }], points: [[-2.0], [0.4]] }
            Atan2 "atan2" (y, x) out g { value: y.atan2(x), kernel: vm::atan2(y, x), harmless: [HALF, HALF], partials: [{ let (a, b) = (g.square(x), g.square(y)); let d = g.add(a, b); g.div(x, d) }, { let (a, b) = (g.square(x), g.square(y)); let d = g.add(a, b); let q = g.div(y, d); g.neg(q) }], points: [[1.0, -2.0], [0.3, 0.8]] }
            Sinh "sinh" (x) out g { value: x.sinh(), kernel: vm::sinh(x), harmless: [MODEST], partials: [g.elem(ElemOp::Cosh, &[x])], points: [[-2.0], [0.4]] }
            Cosh "cosh" (x) out g { value: x.cosh(), kernel: vm::cosh(x), range: ValueRange::at_least(1.0, false), harmless: [MODEST], partials: [g.elem(ElemOp::Sinh, &[x])], points: [[-2.0], [0.4]] }
            Tanh "tanh" (x) out g { value: x.tanh(), kernel: vm::tanh(x), single: vm::tanh(x), range: ValueRange::between(-1.0, 1.0), partials: [{ let s = g.square(out); let one = g.constant(1.0); g.sub(one, s) }], points: [[-2.0], [0.4]] }
            Asinh "asinh" (x) out g { value: libm::asinh(x), kernel: vm::asinh(x), partials: [{ let s = g.square(x); let one = g.constant(1.0); let d = g.add(one, s); let r = g.sqrt(d); g.recip(r) }], points: [[-2.0], [0.4]] }
            Acosh "acosh" (x) out g { value: libm::acosh(x), kernel: vm::acosh(x), harmless: [ABOVE_ONE], partials: [{ let s = g.square(x); let one = g.constant(1.0); let d = g.sub(s, one); let r = g.sqrt(d); g.recip(r) }], points: [[1.2], [4.0]] }
            Atanh "atanh" (x) out g { value: libm::atanh(x), kernel: vm::atanh(x), harmless: [HALF], partials: [{ let s = g.square(x); let one = g.constant(1.0); let d = g.sub(one, s); g.recip(d) }], points: [[-0.6], [0.4]] }

            // Gamma functions. The derivative of polygamma(3) is never needed, because values, gradients and
            // Hessian-vector products contain at most two derivatives beyond `trigamma`.
            Lgamma "lgamma" (x) out g { value: sp::lgamma(x), kernel: vm::lgamma(x), harmless: [POSITIVE], partials: [g.elem(ElemOp::Digamma, &[x])], points: [[0.3], [2.5], [40.0]] }
            Digamma "digamma" (x) out g { value: sp::digamma(x), kernel: vm::digamma(x), harmless: [POSITIVE], partials: [g.elem(ElemOp::Trigamma, &[x])], points: [[0.3], [2.5], [40.0]] }
            Trigamma "trigamma" (x) out g { value: sp::trigamma(x), kernel: vm::trigamma(x), harmless: [POSITIVE], partials: [g.elem(ElemOp::Tetragamma, &[x])], points: [[0.3], [2.5], [40.0]] }
            Tetragamma "tetragamma" (x) out g { value: sp::polygamma(2, x), partials: [g.elem(ElemOp::Pentagamma, &[x])], points: [[0.3], [2.5], [40.0]] }
            Pentagamma "pentagamma" (x) out g { value: sp::polygamma(3, x), partials: [g.constant(f64::NAN)], points: [] }

            Lbeta "lbeta" (a, b) out g { value: sp::lbeta(a, b), kernel: V::select(a.min(b).lt(V::splat(0.0)), V::splat(f64::NAN), vm::lbeta(a, b)), harmless: [POSITIVE, POSITIVE], partials: [{ let d = g.elem(ElemOp::DigammaStep, &[a, b]); g.neg(d) }, { let d = g.elem(ElemOp::DigammaStep, &[b, a]); g.neg(d) }], points: [[0.3, 2.0], [6.0, 40.0], [70.0, 30.0]] }

            // Differences between gamma functions of x + n and x. Subtracting two separate values would cancel for
            // large x.
            LgammaStep "lgamma_step" (x, n) out g { value: sp::lgamma_step(x, n), kernel: vm::lgamma_step(x, n), harmless: [POSITIVE, POSITIVE], partials: [g.elem(ElemOp::DigammaStep, &[x, n]), { let s = g.add(x, n); g.elem(ElemOp::Digamma, &[s]) }], points: [[0.3, 2.0], [6.0, 40.0], [70.0, 3.0]] }
            DigammaStep "digamma_step" (x, n) out g { value: sp::digamma_step(x, n), kernel: vm::digamma_step(x, n), harmless: [POSITIVE, POSITIVE], partials: [g.elem(ElemOp::TrigammaStep, &[x, n]), { let s = g.add(x, n); g.elem(ElemOp::Trigamma, &[s]) }], points: [[0.3, 2.0], [6.0, 40.0], [70.0, 3.0]] }
            TrigammaStep "trigamma_step" (x, n) out g { value: sp::trigamma_step(x, n), kernel: vm::trigamma_step(x, n), harmless: [POSITIVE, POSITIVE], partials: [{ let s = g.add(x, n); let (a, b) = (g.elem(ElemOp::Tetragamma, &[s]), g.elem(ElemOp::Tetragamma, &[x])); g.sub(a, b) }, { let s = g.add(x, n); g.elem(ElemOp::Tetragamma, &[s]) }], points: [[0.3, 2.0], [6.0, 40.0], [70.0, 3.0]] }

            // Error functions.
            Erf "erf" (x) out g { value: libm::erf(x), kernel: vm::erf(x), range: ValueRange::between(-1.0, 1.0), partials: [{ let s = g.square(x); let n = g.neg(s); let e = g.exp(n); let c = g.constant(std::f64::consts::FRAC_2_SQRT_PI); g.mul(c, e) }], points: [[-1.2], [0.4]] }
            Erfc "erfc" (x) out g { value: libm::erfc(x), kernel: vm::erfc(x), partials: [{ let s = g.square(x); let n = g.neg(s); let e = g.exp(n); let c = g.constant(-std::f64::consts::FRAC_2_SQRT_PI); g.mul(c, e) }], points: [[-1.2], [0.4]] }
            NormalCdf "normal_cdf" (x) out g { value: sp::phi(x), kernel: vm::phi(x), range: ValueRange::PROBABILITY, partials: [g.normal_density(x)], points: [[-1.2], [0.4], [3.0]] }
            LogNormalCdf "log_normal_cdf" (x) out g { value: sp::log_phi(x), kernel: vm::log_phi(x), partials: [{ let s = g.square(x); let h = g.constant(-0.5); let e = g.mul(h, s); let d = g.sub(e, out); let n = g.exp(d); let c = g.constant(INV_SQRT_2PI); g.mul(c, n) }], points: [[-8.0], [-1.2], [0.4], [3.0]] }
            LogNormalScaled "log_normal_scaled" (x) out g { value: sp::log_phi_scaled(x), kernel: vm::log_phi_scaled(x), partials: [scaled_normal_slope(g, x, out)], points: [[-8.0], [-1.2], [0.4], [3.0]] }
            NormalQuantile "normal_quantile" (x) out g { value: sp::inv_phi(x), kernel: vm::inv_phi(x), harmless: [HALF], partials: [{ let d = g.normal_density(out); g.recip(d) }], points: [[0.02], [0.4], [0.9]] }

            // Logarithms of incomplete gamma and beta functions and of tails, with their derivatives with respect to
            // shape parameters. Derivatives beyond the second order are never needed, as above.
            LogGammaP "log_gamma_p" (a, x) out g { value: sp::log_gamma_p_q(a, x).0.value, harmless: [POSITIVE, POSITIVE], partials: [g.elem(ElemOp::LogGammaPA, &[a, x]), gamma_slope(g, false, [a, x], out)], points: [[0.4, 0.3], [2.5, 1.2], [2.5, 6.0], [30.0, 33.0]] }
            LogGammaPA "log_gamma_p_a" (a, x) out g { value: sp::log_gamma_p_q(a, x).0.first[0], harmless: [POSITIVE, POSITIVE], partials: [g.elem(ElemOp::LogGammaPAA, &[a, x]), gamma_mixed(g, ElemOp::LogGammaP, [a, x], out)], points: [] }
            LogGammaPAA "log_gamma_p_aa" (a, x) out g { value: sp::log_gamma_p_q(a, x).0.second[0], harmless: [POSITIVE, POSITIVE], partials: [g.constant(f64::NAN), g.constant(f64::NAN)], points: [] }
            LogGammaQ "log_gamma_q" (a, x) out g { value: sp::log_gamma_p_q(a, x).1.value, harmless: [POSITIVE, POSITIVE], partials: [g.elem(ElemOp::LogGammaQA, &[a, x]), gamma_slope(g, true, [a, x], out)], points: [[0.4, 0.3], [2.5, 1.2], [2.5, 6.0], [30.0, 33.0]] }
            LogGammaQA "log_gamma_q_a" (a, x) out g { value: sp::log_gamma_p_q(a, x).1.first[0], harmless: [POSITIVE, POSITIVE], partials: [g.elem(ElemOp::LogGammaQAA, &[a, x]), gamma_mixed(g, ElemOp::LogGammaQ, [a, x], out)], points: [] }
            LogGammaQAA "log_gamma_q_aa" (a, x) out g { value: sp::log_gamma_p_q(a, x).1.second[0], harmless: [POSITIVE, POSITIVE], partials: [g.constant(f64::NAN), g.constant(f64::NAN)], points: [] }
            LogIncBeta "log_inc_beta" (a, b, t) out g { value: sp::log_inc_beta(a, b, t).value, harmless: [POSITIVE, POSITIVE, ANY], partials: [g.elem(ElemOp::LogIncBetaA, &[a, b, t]), g.elem(ElemOp::LogIncBetaB, &[a, b, t]), beta_slope(g, [a, b, t], out)], points: [[0.4, 0.3, -0.5], [2.5, 1.2, 1.5], [12.0, 30.0, -1.0]] }
            LogIncBetaA "log_inc_beta_a" (a, b, t) out g { value: sp::log_inc_beta(a, b, t).first[0], harmless: [POSITIVE, POSITIVE, ANY], partials: [g.elem(ElemOp::LogIncBetaAA, &[a, b, t]), g.elem(ElemOp::LogIncBetaAB, &[a, b, t]), beta_mixed(g, true, [a, b, t], out)], points: [] }
            LogIncBetaB "log_inc_beta_b" (a, b, t) out g { value: sp::log_inc_beta(a, b, t).first[1], harmless: [POSITIVE, POSITIVE, ANY], partials: [g.elem(ElemOp::LogIncBetaAB, &[a, b, t]), g.elem(ElemOp::LogIncBetaBB, &[a, b, t]), beta_mixed(g, false, [a, b, t], out)], points: [] }
            LogIncBetaAA "log_inc_beta_aa" (a, b, t) out g { value: sp::log_inc_beta(a, b, t).second[0], harmless: [POSITIVE, POSITIVE, ANY], partials: [g.constant(f64::NAN), g.constant(f64::NAN), g.constant(f64::NAN)], points: [] }
            LogIncBetaAB "log_inc_beta_ab" (a, b, t) out g { value: sp::log_inc_beta(a, b, t).second[1], harmless: [POSITIVE, POSITIVE, ANY], partials: [g.constant(f64::NAN), g.constant(f64::NAN), g.constant(f64::NAN)], points: [] }
            LogIncBetaBB "log_inc_beta_bb" (a, b, t) out g { value: sp::log_inc_beta(a, b, t).second[2], harmless: [POSITIVE, POSITIVE, ANY], partials: [g.constant(f64::NAN), g.constant(f64::NAN), g.constant(f64::NAN)], points: [] }
            LogStudentCdf "log_student_cdf" (n, z) out g { value: sp::log_student_cdf(n, z).value, harmless: [POSITIVE, ANY], partials: [g.elem(ElemOp::LogStudentCdfN, &[n, z]), student_slope(g, [n, z], out)], points: [[0.8, -2.0], [4.0, 0.3], [4.0, 2.5], [60.0, -3.0]] }
            LogStudentCdfN "log_student_cdf_n" (n, z) out g { value: sp::log_student_cdf(n, z).first[0], harmless: [POSITIVE, ANY], partials: [g.elem(ElemOp::LogStudentCdfNN, &[n, z]), student_mixed(g, [n, z], out)], points: [] }
            LogStudentCdfNN "log_student_cdf_nn" (n, z) out g { value: sp::log_student_cdf(n, z).second[0], harmless: [POSITIVE, ANY], partials: [g.constant(f64::NAN), g.constant(f64::NAN)], points: [] }
            LogSkewNormalCdf "log_skew_normal_cdf" (z, a) out g { value: sp::log_skew_normal_cdf(z, a), partials: [skew_slope(g, [z, a], out), skew_shape(g, [z, a], out)], points: [[-2.0, 1.5], [-1.0, -3.0], [0.7, 2.0], [1.0, -0.5]] }
            OwensT "owens_t" (h, a) out g { value: sp::owens_t(h, a), partials: [owens_slope(g, h, a), { let e = gauss_tail(g, h, a); let c = g.constant(0.5 * std::f64::consts::FRAC_1_PI); g.mul(c, e) }], points: [[0.4, 1.5], [-1.0, -3.0], [2.0, 0.2]] }
            VonMisesArea "von_mises_area" (s, t, k) out g { value: sp::von_mises_area(s, t, k)[0], partials: [{ let d = von_mises_end(g, s, k, out); g.neg(d) }, von_mises_end(g, t, k, out), g.elem(ElemOp::VonMisesMean, &[s, t, k])], points: [[-3.0, 0.5, 1.3], [-4.0, -1.0, 6.0], [0.3, 4.0, 0.2]] }
            VonMisesMean "von_mises_mean" (s, t, k) out g { value: sp::von_mises_area(s, t, k)[1], partials: [{ let d = von_mises_lever(g, [s, t, k], s, out); g.neg(d) }, von_mises_lever(g, [s, t, k], t, out), g.elem(ElemOp::VonMisesVariance, &[s, t, k])], points: [] }
            VonMisesVariance "von_mises_variance" (s, t, k) out g { value: sp::von_mises_area(s, t, k)[2], partials: [g.constant(f64::NAN), g.constant(f64::NAN), g.constant(f64::NAN)], points: [] }
            LogWiener "log_wiener" (x, w) out g { value: sp::log_wiener(x, w), harmless: [POSITIVE, HALF], partials: [{ let (half, two) = (g.constant(0.5), g.constant(2.0)); let r = g.elem(ElemOp::WienerRatio, &[x, w, two]); g.mul(half, r) }, { let one = g.constant(1.0); g.elem(ElemOp::WienerRatio, &[x, w, one]) }], points: [[0.1, 0.3], [0.7, 0.6], [0.39, 0.8], [3.0, 0.2]] }
            WienerRatio "wiener_ratio" (x, w, k) out g { value: sp::wiener_ratio(x, w, k.round() as u32), harmless: [POSITIVE, HALF], partials: [{ let half = g.constant(0.5); let d = wiener_change(g, [x, w, k], 2.0, out); g.mul(half, d) }, wiener_change(g, [x, w, k], 1.0, out), Zero], points: [] }

            // Bessel functions. Functions of integer order have no derivative with respect to the order.
            LogBesselI "log_bessel_i" (v, x) out g { value: sp::log_modified_bessel_first_kind(v, x), harmless: [NONNEGATIVE, POSITIVE], partials: [g.elem(ElemOp::LogBesselIV, &[v, x]), bessel_slope(g, [v, x], out)], points: [[0.0, 1.5], [0.7, 0.4], [2.5, 80.0]] }
            LogBesselIV "log_bessel_i_v" (v, x) out g { value: sp::log_bessel_i(v, x).first[0], harmless: [NONNEGATIVE, POSITIVE], partials: [g.elem(ElemOp::LogBesselIVV, &[v, x]), bessel_mixed(g, [v, x], out)], points: [] }
            LogBesselIVV "log_bessel_i_vv" (v, x) out g { value: sp::log_bessel_i(v, x).second[0], harmless: [NONNEGATIVE, POSITIVE], partials: [g.constant(f64::NAN), g.constant(f64::NAN)], points: [] }
            BesselJ "bessel_j" (n, x) out g { value: sp::bessel_first_kind(n.round() as i32, x), partials: [Zero, neighbours(g, ElemOp::BesselJ, [n, x], ElemOp::Sub, 0.5)], points: [[0.0, 1.5], [3.0, 4.0]] }
            BesselY "bessel_y" (n, x) out g { value: sp::bessel_second_kind(n.round() as i32, x), harmless: [ANY, POSITIVE], partials: [Zero, neighbours(g, ElemOp::BesselY, [n, x], ElemOp::Sub, 0.5)], points: [[0.0, 1.5], [3.0, 4.0]] }
            BesselI "bessel_i" (n, x) out g { value: sp::modified_bessel_first_kind(n.round() as i32, x), partials: [Zero, neighbours(g, ElemOp::BesselI, [n, x], ElemOp::Add, 0.5)], points: [[0.0, 1.5], [3.0, 4.0]] }
            BesselK "bessel_k" (n, x) out g { value: sp::modified_bessel_second_kind(n.round() as i32, x), harmless: [ANY, POSITIVE], partials: [Zero, neighbours(g, ElemOp::BesselK, [n, x], ElemOp::Add, -0.5)], points: [[0.0, 1.5], [3.0, 4.0]] }

            // Inverse functions.
            LambertW0 "lambert_w0" (x) out g { value: sp::lambert_w0(x), harmless: [NONNEGATIVE], partials: [lambert_slope(g, out)], points: [[-0.2], [0.5], [20.0]] }
            LambertWm1 "lambert_wm1" (x) out g { value: sp::lambert_wm1(x), harmless: [|_| Some(-0.2)], partials: [lambert_slope(g, out)], points: [[-0.3], [-0.03]] }
            InvIncBeta "inv_inc_beta" (a, b, p) out g { value: sp::inv_inc_beta(a, b, p), harmless: [POSITIVE, POSITIVE, HALF], partials: [quantile_shape(g, ElemOp::LogIncBetaA, [a, b], out), quantile_shape(g, ElemOp::LogIncBetaB, [a, b], out), { let d = beta_density(g, [a, b], out); let n = g.neg(d); g.exp(n) }], points: [[0.8, 1.7, 0.3], [6.0, 3.0, 0.9]] }
        }
    };
}
pub(crate) use elementwise_table;

macro_rules! bind_args {
    ($x:ident $y:ident $z:ident; $a:ident) => {
        let $a = $x;
    };
    ($x:ident $y:ident $z:ident; $a:ident $b:ident) => {
        let ($a, $b) = ($x, $y);
    };
    ($x:ident $y:ident $z:ident; $a:ident $b:ident $c:ident) => {
        let ($a, $b, $c) = ($x, $y, $z);
    };
}

macro_rules! arity_of {
    ($a:ident) => {
        1
    };
    ($a:ident $b:ident) => {
        2
    };
    ($a:ident $b:ident $c:ident) => {
        3
    };
}
pub(crate) use {arity_of, bind_args};

pub(crate) const INV_SQRT_2PI: f64 = 0.398_942_280_401_432_7;

macro_rules! declare {
    ($($variant:ident $name:literal ($($arg:ident),*) $out:ident $g:ident {
        value: $value:expr, $(kernel: $kernel:expr,)? $(single: $single:expr,)? $(range: $range:expr,)? $(harmless: [$($harmless:expr),*],)? partials: [$($partial:expr),*], points: [$([$($point:expr),*]),*]
    })*) => {
        /// An elementwise operation. The [module documentation](self) describes the table.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        #[allow(missing_docs)]
        pub enum ElemOp { $($variant),* }

        impl ElemOp {
            /// All operations, in the order of the table.
            pub const ALL: &'static [ElemOp] = &[$(ElemOp::$variant),*];

            /// Returns the name of the operation in the text form.
            pub fn name(self) -> &'static str {
                match self { $(ElemOp::$variant => $name),* }
            }

            /// Returns the number of arguments.
            pub fn arity(self) -> usize {
                match self { $(ElemOp::$variant => arity_of!($($arg)*)),* }
            }

            /// Computes the operation from its scalar definition, which is slow.
            pub fn value(self, args: &[f64]) -> f64 {
                match self { $(ElemOp::$variant => { let &[$($arg),*] = args else { unreachable!("arity was checked") }; $value })* }
            }

            /// Returns the derivative with respect to argument `which` as a graph expression, or `None` if it is zero
            /// almost everywhere.
            #[allow(unused_variables, unused_mut, unused_assignments)]
            pub(crate) fn partial(self, g: &mut Graph, args: &[NodeId], out: NodeId, which: usize) -> Option<NodeId> {
                match self { $(ElemOp::$variant => {
                    let &[$($arg),*] = args else { unreachable!("arity was checked") };
                    let ($g, $out) = (g, out);
                    let mut position = 0;
                    $(
                        if position == which { return Partial::node($partial); }
                        position += 1;
                    )*
                    unreachable!("the table has one derivative an argument")
                })* }
            }

            /// Returns the range of the values, given the ranges of the arguments.
            #[allow(unused_variables, unused_assignments, unreachable_code)]
            pub fn range(self, arg: &dyn Fn(usize) -> ValueRange) -> ValueRange {
                match self { $(ElemOp::$variant => {
                    let mut position = 0;
                    $(
                        let at = position;
                        let $arg = move || arg(at);
                        position += 1;
                    )*
                    $(return $range;)?
                    ValueRange::ALL
                })* }
            }

            /// Returns a number at which the operation is finite and smooth, to replace an argument in the given range.
            /// Returns `None` if the operation is finite and smooth in the whole range.
            pub fn harmless(self, which: usize, range: ValueRange) -> Option<f64> {
                let rules: &[Harmless] = match self { $(ElemOp::$variant => &[$($($harmless),*)?]),* };
                rules.get(which).and_then(|rule| rule(range))
            }

            /// Returns the arguments at which tests compare the value, the kernel and finite differences.
            pub fn test_points(self) -> Vec<Vec<f64>> {
                match self { $(ElemOp::$variant => vec![$(vec![$($point),*]),*]),* }
            }
        }
    };
}

trait Partial {
    fn node(self) -> Option<NodeId>;
}

impl Partial for NodeId {
    fn node(self) -> Option<NodeId> {
        Some(self)
    }
}

impl Partial for Zero {
    fn node(self) -> Option<NodeId> {
        None
    }
}

elementwise_table!(declare);

impl ElemOp {
    /// Returns the operation with the given name, or `None` if no operation has this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|op| op.name() == name)
    }
}
