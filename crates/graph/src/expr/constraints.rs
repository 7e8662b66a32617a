//! Maps unconstrained parameters to constrained values, and adds the log-Jacobians of these maps to the density.
//!
//! The transforms are those of the Stan reference manual, except that the simplex uses stick breaking, as Stan did
//! before version 2.37. The crate `jensen-stan` uses the isometric log-ratio transform of current Stan. The posterior
//! is the same with either transform, but the two transforms map an unconstrained point to different simplexes.

use super::{Expr, Operand};

impl<'b> Expr<'b> {
    /// Returns `eˣ`, which is positive. Adds the log-Jacobian `Σ x` to the density.
    #[track_caller]
    pub fn positive(self) -> Expr<'b> {
        self.builder.add_log_jacobian(self);
        self.exp()
    }

    /// Returns `bound + eˣ`. Adds the log-Jacobian `Σ x` to the density.
    #[track_caller]
    pub fn lower(self, bound: impl Operand<'b>) -> Expr<'b> {
        bound.expr(self.builder) + self.positive()
    }

    /// Returns `bound − eˣ`. Adds the log-Jacobian `Σ x` to the density.
    #[track_caller]
    pub fn upper(self, bound: impl Operand<'b>) -> Expr<'b> {
        bound.expr(self.builder) - self.positive()
    }

    /// Returns `low + (high − low) logit⁻¹(x)`. Adds the log-Jacobian `Σ log(high − low) + log logit⁻¹(x) + log(1 −
    /// logit⁻¹(x))` to the density.
    #[track_caller]
    pub fn interval(self, low: impl Operand<'b>, high: impl Operand<'b>) -> Expr<'b> {
        let low = low.expr(self.builder);
        let width = high.expr(self.builder) - low;
        let jacobian = width.log() - (-self).log1p_exp() - self.log1p_exp();
        self.builder.add_log_jacobian(jacobian);
        low + width * self.inv_logit()
    }

    /// Returns an increasing vector. The first element is unchanged, and each later element exceeds its predecessor by
    /// `eˣ`. Adds the log-Jacobian, which is the sum of all elements of x except the first, to the density.
    #[track_caller]
    pub fn ordered(self) -> Expr<'b> {
        if self.len() < 2 {
            return self;
        }
        let steps = self.slice(1..self.len()).positive();
        self.builder.concat(&[self.at(0), steps]).cumsum()
    }

    /// Returns a point of the simplex, constructed by stick breaking. The result has one element more than x. The k-th
    /// element takes the fraction `logit⁻¹(xₖ − log(K − k))` of the part of the stick that remains after the preceding
    /// elements.
    #[track_caller]
    pub fn simplex(self) -> Expr<'b> {
        let n = self.len();
        if n == 0 {
            return self.builder.constant(1.0);
        }
        let shifts: Vec<f64> = (0..n).map(|k| ((n - k) as f64).ln()).collect();
        let shifted = self - self.builder.data(&shifts);
        let log_share = -(-shifted).log1p_exp();
        let log_rest = -shifted.log1p_exp();
        // The logarithm of the remaining stick length before each element, and after the last element.
        let left = self
            .builder
            .concat(&[self.builder.constant(0.0), log_rest.cumsum()]);
        let before = left.slice(0..n);
        self.builder.add_log_jacobian(log_share + log_rest + before);
        let log_last = left.at(n);
        self.builder.concat(&[log_share + before, log_last]).exp()
    }
}
