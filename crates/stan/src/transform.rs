//! Stan's transforms between constrained values and unconstrained coordinates.
//!
//! A parameter is declared with a constraint, but inference works on ℝᵈ. [`Transform`] maps coordinates to the
//! constrained value and computes the log absolute determinant of the Jacobian. The inverse maps constrained values to
//! coordinates. A simplex or a correlation matrix has more scalars than coordinates. In such cases the determinant is
//! that of the map from the coordinates to the free scalars. The documentation of each transform states which scalars
//! are free. For `unit_vector` and related types, the term follows Stan's convention and is not a determinant.
//!
//! The transforms are those of Stan 2.37 and later: simplexes, stochastic matrices and zero-sum vectors use the
//! isometric log-ratio basis. The code is scalar and works on column-major values.

mod checks;
mod matrices;
mod vectors;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use jensen_density::Scale;

/// A bound, offset or multiplier. The value is either a single number for all elements, or one number for each element
/// in storage order.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// One number that applies to all elements.
    All(f64),
    /// One number for each element of the variable.
    Each(Vec<f64>),
}

impl Limit {
    /// Returns the bound of element `i`.
    pub fn at(&self, i: usize) -> f64 {
        match self {
            Limit::All(x) => *x,
            Limit::Each(x) => x.get(i).copied().unwrap_or(f64::NAN),
        }
    }
}

/// A constraint whose bounds are known.
#[derive(Clone, Debug, PartialEq)]
pub enum Transform {
    /// x = z.
    Identity,
    /// x = a + exp z, or the identity if a is −∞.
    Lower(Limit),
    /// x = b − exp z, or the identity if b is +∞.
    Upper(Limit),
    /// x = a + (b − a) · logit⁻¹ z. If one bound is infinite, only the other bound applies. If both bounds are
    /// infinite, the transform is the identity.
    LowerUpper(Limit, Limit),
    /// x = m + s · z.
    OffsetMultiplier(Limit, Limit),
    /// x₁ = z₁, xₖ = xₖ₋₁ + exp zₖ.
    Ordered,
    /// x₁ = exp z₁, xₖ = xₖ₋₁ + exp zₖ.
    PositiveOrdered,
    /// The softmax of the zero-sum vector of z, where z has K − 1 coordinates. The determinant is with respect to the
    /// first K − 1 elements of the simplex.
    Simplex,
    /// z / ‖z‖, where z has K coordinates. By convention the log-Jacobian is −½ ‖z‖², so that the direction is uniform.
    UnitVector,
    /// The isometric zero-sum vector or matrix. The log-Jacobian is 0.
    SumToZero,
    /// A factor whose canonical partial correlations are tanh z, in row order. The determinant is with respect to the
    /// elements below the diagonal.
    CholeskyFactorCorr,
    /// A factor whose lower triangle contains z in row order, except that the diagonal is exp z. The determinant is
    /// with respect to the lower triangle.
    CholeskyFactorCov,
    /// A matrix whose canonical partial correlations are tanh z, in column order. The determinant is with respect to
    /// the elements below the diagonal.
    CorrMatrix,
    /// L Lᵀ with L as in [`Transform::CholeskyFactorCov`]. The determinant is with respect to the lower triangle.
    CovMatrix,
    /// A matrix whose columns are simplexes.
    ColumnStochastic,
    /// A matrix whose rows are simplexes.
    RowStochastic,
}

impl Transform {
    /// Returns the number of coordinates of one `rows × cols` value. A vector is a column, and a scalar is 1 × 1.
    pub fn coordinates(&self, rows: usize, cols: usize) -> usize {
        match self {
            Transform::Identity
            | Transform::Lower(_)
            | Transform::Upper(_)
            | Transform::LowerUpper(..)
            | Transform::OffsetMultiplier(..)
            | Transform::Ordered
            | Transform::PositiveOrdered
            | Transform::UnitVector => rows * cols,
            Transform::Simplex => rows.saturating_sub(1),
            Transform::SumToZero if cols == 1 => rows.saturating_sub(1),
            Transform::SumToZero => rows.saturating_sub(1) * cols.saturating_sub(1),
            Transform::CholeskyFactorCorr | Transform::CorrMatrix => {
                rows * rows.saturating_sub(1) / 2
            }
            Transform::CholeskyFactorCov => {
                cols * (cols + 1) / 2 + rows.saturating_sub(cols) * cols
            }
            Transform::CovMatrix => rows * (rows + 1) / 2,
            Transform::ColumnStochastic => rows.saturating_sub(1) * cols,
            Transform::RowStochastic => rows * cols.saturating_sub(1),
        }
    }

    /// Returns whether each element is transformed separately, so that a whole array can be transformed at once.
    pub fn is_elementwise(&self) -> bool {
        matches!(
            self,
            Transform::Identity
                | Transform::Lower(_)
                | Transform::Upper(_)
                | Transform::LowerUpper(..)
                | Transform::OffsetMultiplier(..)
        )
    }

    /// Returns how coordinate `i` is related to an element of the reported value. The reported value is an array of
    /// separately transformed elements, or one `rows × cols` value. In a simplex or a correlation matrix, no single
    /// element corresponds to a coordinate.
    pub fn scale(&self, i: usize, cols: usize) -> Scale {
        let log = |is| if is { Scale::Log } else { Scale::Identity };
        match self {
            Transform::Lower(a) => log(a.at(i).is_finite()),
            Transform::Upper(b) => log(b.at(i).is_finite()),
            Transform::LowerUpper(a, b) if a.at(i).is_finite() && b.at(i).is_finite() => {
                Scale::Logit
            }
            Transform::LowerUpper(a, b) => log(a.at(i).is_finite() || b.at(i).is_finite()),
            Transform::Ordered => log(i > 0),
            Transform::PositiveOrdered => Scale::Log,
            Transform::CholeskyFactorCov => log(is_on_diagonal(i, cols)),
            Transform::CovMatrix => log(is_on_diagonal(i, usize::MAX)),
            _ => Scale::Identity,
        }
    }

    /// Maps the coordinates `z` to the constrained `rows × cols` value. Appends this value to `out`, column after
    /// column, and returns the log absolute Jacobian determinant.
    ///
    /// # Panics
    /// Panics if `z` does not have [`Transform::coordinates`] elements, which is a bug in the caller.
    pub fn constrain(&self, z: &[f64], rows: usize, cols: usize, out: &mut Vec<f64>) -> f64 {
        assert_eq!(z.len(), self.coordinates(rows, cols), "coordinates");
        let mut each = |f: &dyn Fn(usize, f64) -> (f64, f64)| {
            let mut jacobian = 0.0;
            for (i, z) in z.iter().enumerate() {
                let (x, j) = f(i, *z);
                out.push(x);
                jacobian += j;
            }
            jacobian
        };
        match self {
            Transform::Identity => each(&|_, z| (z, 0.0)),
            Transform::Lower(a) => each(&|i, z| lower(z, a.at(i))),
            Transform::Upper(b) => each(&|i, z| upper(z, b.at(i))),
            Transform::LowerUpper(a, b) => each(&|i, z| lower_upper(z, a.at(i), b.at(i))),
            Transform::OffsetMultiplier(m, s) => {
                each(&|i, z| (m.at(i) + s.at(i) * z, s.at(i).ln()))
            }
            Transform::Ordered => vectors::ordered(z, false, out),
            Transform::PositiveOrdered => vectors::ordered(z, true, out),
            Transform::Simplex => vectors::simplex(z, rows, out),
            Transform::UnitVector => vectors::unit(z, out),
            Transform::SumToZero if cols == 1 => {
                vectors::sum_to_zero(z, rows, out);
                0.0
            }
            Transform::SumToZero => {
                matrices::sum_to_zero(z, rows, cols, out);
                0.0
            }
            Transform::CholeskyFactorCorr => matrices::cholesky_corr(z, rows, out),
            Transform::CholeskyFactorCov => matrices::cholesky_cov(z, rows, cols, out),
            Transform::CorrMatrix => matrices::corr(z, rows, out),
            Transform::CovMatrix => matrices::cov(z, rows, out),
            Transform::ColumnStochastic => matrices::column_stochastic(z, rows, cols, out),
            Transform::RowStochastic => matrices::row_stochastic(z, rows, cols, out),
        }
    }

    /// Appends to `out` the coordinates of the constrained value `x`, which is given column after column.
    ///
    /// # Errors
    /// Fails if `x` violates the constraint, with a message that states the violation. In this case `out` is unchanged.
    pub fn unconstrain(
        &self,
        x: &[f64],
        rows: usize,
        cols: usize,
        out: &mut Vec<f64>,
    ) -> Result<(), Violation> {
        self.check(x, rows, cols)?;
        let mut each = |f: &dyn Fn(usize, f64) -> f64| {
            out.extend(x.iter().enumerate().map(|(i, x)| f(i, *x)));
        };
        match self {
            Transform::Identity => each(&|_, x| x),
            Transform::Lower(a) => each(&|i, x| lower_free(x, a.at(i))),
            Transform::Upper(b) => each(&|i, x| upper_free(x, b.at(i))),
            Transform::LowerUpper(a, b) => each(&|i, x| lower_upper_free(x, a.at(i), b.at(i))),
            Transform::OffsetMultiplier(m, s) => each(&|i, x| (x - m.at(i)) / s.at(i)),
            Transform::Ordered => vectors::ordered_free(x, false, out),
            Transform::PositiveOrdered => vectors::ordered_free(x, true, out),
            Transform::Simplex => vectors::simplex_free(x, out),
            Transform::UnitVector => out.extend(x),
            Transform::SumToZero if cols == 1 => vectors::sum_to_zero_free(x, out),
            Transform::SumToZero => matrices::sum_to_zero_free(x, rows, cols, out),
            Transform::CholeskyFactorCorr => matrices::cholesky_corr_free(x, rows, out),
            Transform::CholeskyFactorCov => matrices::cholesky_cov_free(x, rows, cols, out),
            Transform::CorrMatrix => matrices::corr_free(x, rows, out)?,
            Transform::CovMatrix => matrices::cov_free(x, rows, out)?,
            Transform::ColumnStochastic => matrices::column_stochastic_free(x, rows, cols, out),
            Transform::RowStochastic => matrices::row_stochastic_free(x, rows, cols, out),
        }
        Ok(())
    }

    /// Checks that the `rows × cols` value `x` satisfies the constraint. Equations must hold to within Stan's tolerance
    /// of 10⁻⁸.
    ///
    /// # Errors
    /// Fails if the value violates the constraint.
    pub fn check(&self, x: &[f64], rows: usize, cols: usize) -> Result<(), Violation> {
        checks::check(self, x, rows, cols)
    }

    /// Describes the constraint for messages, such as `a simplex` or `a number with lower bound 0`.
    pub fn describe(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Transform::Identity => "any value",
            Transform::Lower(_) => "a value not below its lower bound",
            Transform::Upper(_) => "a value not above its upper bound",
            Transform::LowerUpper(..) => "a value between its bounds",
            Transform::OffsetMultiplier(..) => "any value",
            Transform::Ordered => "an ordered vector",
            Transform::PositiveOrdered => "a positive ordered vector",
            Transform::Simplex => "a simplex",
            Transform::UnitVector => "a unit vector",
            Transform::SumToZero => "a container that sums to zero",
            Transform::CholeskyFactorCorr => "a Cholesky factor of a correlation matrix",
            Transform::CholeskyFactorCov => "a Cholesky factor of a covariance matrix",
            Transform::CorrMatrix => "a correlation matrix",
            Transform::CovMatrix => "a covariance matrix",
            Transform::ColumnStochastic => "a matrix whose columns are simplexes",
            Transform::RowStochastic => "a matrix whose rows are simplexes",
        })
    }
}

/// Describes how a value violates a constraint.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The index of the offending element in storage order, if a single element is at fault.
    pub element: Option<usize>,
    /// A description of the expected value, such as `at least 0` or `a simplex, whose elements sum to 1`.
    pub expected: String,
    /// The value that was found.
    pub found: String,
}

/// `i` counts the elements of the lower triangle row by row.
fn is_on_diagonal(i: usize, cols: usize) -> bool {
    let ends = (0..cols).scan(0, |before, row| {
        *before += row + 1;
        Some(*before - 1)
    });
    ends.take_while(|end| *end <= i).last() == Some(i)
}

fn lower(z: f64, a: f64) -> (f64, f64) {
    if a == f64::NEG_INFINITY {
        (z, 0.0)
    } else {
        (a + z.exp(), z)
    }
}

fn lower_free(x: f64, a: f64) -> f64 {
    if a == f64::NEG_INFINITY {
        x
    } else {
        (x - a).ln()
    }
}

fn upper(z: f64, b: f64) -> (f64, f64) {
    if b == f64::INFINITY {
        (z, 0.0)
    } else {
        (b - z.exp(), z)
    }
}

fn upper_free(x: f64, b: f64) -> f64 {
    if b == f64::INFINITY { x } else { (b - x).ln() }
}

fn lower_upper(z: f64, a: f64, b: f64) -> (f64, f64) {
    if a == f64::NEG_INFINITY {
        return upper(z, b);
    }
    if b == f64::INFINITY {
        return lower(z, a);
    }
    // log (p (1 − p)) = −|z| − 2 log(1 + exp(−|z|)), without cancellation at either end.
    let tail = (-z.abs()).exp();
    let p = if z > 0.0 {
        1.0 / (1.0 + tail)
    } else {
        tail / (1.0 + tail)
    };
    let jacobian = (b - a).ln() - z.abs() - 2.0 * tail.ln_1p();
    (a + (b - a) * p, jacobian)
}

fn lower_upper_free(x: f64, a: f64, b: f64) -> f64 {
    if a == f64::NEG_INFINITY {
        return upper_free(x, b);
    }
    if b == f64::INFINITY {
        return lower_free(x, a);
    }
    let p = (x - a) / (b - a);
    p.ln() - (-p).ln_1p()
}
