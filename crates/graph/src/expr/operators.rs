//! Operators and elementary functions of expressions.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

use super::{Expr, Operand};
use crate::ops::ElemOp;

macro_rules! operators {
    ($($trait:ident $method:ident)*) => {$(
        impl<'b> $trait for Expr<'b> {
            type Output = Expr<'b>;

            #[track_caller]
            fn $method(self, other: Expr<'b>) -> Expr<'b> {
                self.elementwise(ElemOp::$trait, &[other])
            }
        }

        impl<'b> $trait<f64> for Expr<'b> {
            type Output = Expr<'b>;

            #[track_caller]
            fn $method(self, other: f64) -> Expr<'b> {
                self.elementwise(ElemOp::$trait, &[other.expr(self.builder)])
            }
        }

        impl<'b> $trait<Expr<'b>> for f64 {
            type Output = Expr<'b>;

            #[track_caller]
            fn $method(self, other: Expr<'b>) -> Expr<'b> {
                self.expr(other.builder).elementwise(ElemOp::$trait, &[other])
            }
        }
    )*};
}

operators! { Add add Sub sub Mul mul Div div }

impl<'b> Neg for Expr<'b> {
    type Output = Expr<'b>;

    #[track_caller]
    fn neg(self) -> Expr<'b> {
        self.elementwise(ElemOp::Neg, &[])
    }
}

impl<'b, T: Operand<'b>> AddAssign<T> for Expr<'b> {
    #[track_caller]
    fn add_assign(&mut self, other: T) {
        *self = self.elementwise(ElemOp::Add, &[other.expr(self.builder)]);
    }
}

impl<'b, T: Operand<'b>> SubAssign<T> for Expr<'b> {
    #[track_caller]
    fn sub_assign(&mut self, other: T) {
        *self = self.elementwise(ElemOp::Sub, &[other.expr(self.builder)]);
    }
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {
        impl<'b> Expr<'b> {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(self) -> Expr<'b> {
                self.elementwise(ElemOp::$op, &[])
            }
        )*}
    };
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {
        impl<'b> Expr<'b> {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(self, other: impl Operand<'b>) -> Expr<'b> {
                let other = other.expr(self.builder);
                self.elementwise(ElemOp::$op, &[other])
            }
        )*}
    };
}

unary! {
    /// Returns the reciprocal `1 / x`.
    recip => Recip;
    /// Returns `x²`.
    square => Square;
    /// Returns `√x`.
    sqrt => Sqrt;
    /// Returns the absolute value.
    abs => Abs;
    /// Returns the sign of x, which is −1, 0 or 1.
    sign => Sign;
    /// Returns the largest integer that is at most x.
    floor => Floor;
    /// Returns `eˣ`.
    exp => Exp;
    /// Returns `eˣ − 1`.
    expm1 => Expm1;
    /// Returns the natural logarithm.
    log => Log;
    /// Returns `log(1 + x)`.
    log1p => Log1p;
    /// Returns `1 / (1 + e⁻ˣ)`.
    inv_logit => InvLogit;
    /// Returns `log(x / (1 − x))`.
    logit => Logit;
    /// Returns `log(1 + eˣ)`.
    log1p_exp => Log1pExp;
    /// Returns `log(1 − eˣ)` for negative x.
    log1m_exp => Log1mExp;
    /// Returns the sine.
    sin => Sin;
    /// Returns the cosine.
    cos => Cos;
    /// Returns the tangent.
    tan => Tan;
    /// Returns the inverse tangent.
    atan => Atan;
    /// Returns the hyperbolic sine.
    sinh => Sinh;
    /// Returns the hyperbolic cosine.
    cosh => Cosh;
    /// Returns the hyperbolic tangent.
    tanh => Tanh;
    /// Returns `log |Γ(x)|`.
    lgamma => Lgamma;
    /// Returns the digamma function, which is the derivative of `lgamma`.
    digamma => Digamma;
    /// Returns the error function.
    erf => Erf;
    /// Returns the cumulative distribution function of the standard normal distribution.
    normal_cdf => NormalCdf;
    /// Returns the logarithm of the standard normal cumulative distribution function.
    log_normal_cdf => LogNormalCdf;
}

binary! {
    /// Returns `xʸ`.
    pow => Pow;
    /// Returns the smaller of two values, elementwise.
    minimum => Fmin;
    /// Returns the larger of two values, elementwise.
    maximum => Fmax;
    /// Returns `log(eˣ + eʸ)`.
    log_add_exp => LogAddExp;
    /// Returns 1 where x < y, and 0 elsewhere.
    lt => Lt;
    /// Returns 1 where x ≤ y, and 0 elsewhere.
    le => Le;
    /// Returns 1 where x = y, and 0 elsewhere.
    equals => Eq;
}
