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
    /// `1 / x`.
    recip => Recip;
    /// `x²`.
    square => Square;
    /// `√x`.
    sqrt => Sqrt;
    /// The absolute value.
    abs => Abs;
    /// −1, 0 or 1.
    sign => Sign;
    /// The largest integer not above x.
    floor => Floor;
    /// `eˣ`.
    exp => Exp;
    /// `eˣ − 1`.
    expm1 => Expm1;
    /// The natural logarithm.
    log => Log;
    /// `log(1 + x)`.
    log1p => Log1p;
    /// `1 / (1 + e⁻ˣ)`.
    inv_logit => InvLogit;
    /// `log(x / (1 − x))`.
    logit => Logit;
    /// `log(1 + eˣ)`.
    log1p_exp => Log1pExp;
    /// `log(1 − eˣ)` for negative x.
    log1m_exp => Log1mExp;
    /// The sine.
    sin => Sin;
    /// The cosine.
    cos => Cos;
    /// The tangent.
    tan => Tan;
    /// The inverse tangent.
    atan => Atan;
    /// The hyperbolic sine.
    sinh => Sinh;
    /// The hyperbolic cosine.
    cosh => Cosh;
    /// The hyperbolic tangent.
    tanh => Tanh;
    /// `log |Γ(x)|`.
    lgamma => Lgamma;
    /// The derivative of `lgamma`.
    digamma => Digamma;
    /// The error function.
    erf => Erf;
    /// The standard normal distribution function.
    normal_cdf => NormalCdf;
    /// The logarithm of the standard normal distribution function.
    log_normal_cdf => LogNormalCdf;
}

binary! {
    /// `xʸ`.
    pow => Pow;
    /// The smaller of two values, elementwise.
    minimum => Fmin;
    /// The larger of two values, elementwise.
    maximum => Fmax;
    /// `log(eˣ + eʸ)`.
    log_add_exp => LogAddExp;
    /// 1 where x < y, else 0.
    lt => Lt;
    /// 1 where x ≤ y, else 0.
    le => Le;
    /// 1 where x = y, else 0.
    equals => Eq;
}
