//! Library functions of values that depend on parameters. Tables map the name of each function to its builder.
//!
//! | file | subject |
//! | --- | --- |
//! | `elementwise` | scalar functions, over containers element by element |
//! | `operators` | the operators of the language |
//! | `reduce` | containers to numbers: sums, extremes, products, log-sum-exp |
//! | `containers` | building, cutting and joining containers |
//! | `matrices` | linear algebra |
//! | `factorisations` | factors, powers and determinants of matrices |
//! | `order` | sorting |
//! | `complex` | complex numbers |
//! | `hidden_markov` | hidden Markov models |
//! | `transforms` | constraining transforms |
//! | `kernels` | covariance functions of Gaussian processes |

pub mod complex;
pub mod containers;
pub mod elementwise;
pub mod factorisations;
pub mod hidden_markov;
pub mod kernels;
pub mod matrices;
pub mod operators;
pub mod order;
pub mod reduce;
pub mod transforms;

use crate::symbolic::functions::transforms::Direction;
use crate::symbolic::tape::{E, Tape};
use crate::symbolic::value::{Dims, Leaf, Sym};
use crate::value::error::{FnError, FnResult};

/// The context of a call that is being built.
#[derive(Clone, Copy, Debug)]
pub struct Cx<'g> {
    /// The tape on which the call is recorded.
    pub tape: &'g Tape,
    /// The name of the function, for messages.
    pub name: &'static str,
}

impl<'g> Cx<'g> {
    /// Creates a scalar constant.
    pub fn num(&self, x: f64) -> E<'g> {
        self.tape.constant(x)
    }

    /// Returns all elements of a value as one node.
    ///
    /// # Errors
    /// Fails for tuples and complex numbers.
    pub fn e(&self, x: &Sym) -> FnResult<E<'g>> {
        x.e(self.tape)
    }

    /// Returns each element of a value separately.
    ///
    /// # Errors
    /// Fails for tuples and complex numbers.
    pub fn elements(&self, x: &Sym) -> FnResult<Vec<E<'g>>> {
        x.elements(self.tape)
    }

    /// Returns whether the elements of `x` should be handled separately.
    pub fn short(&self, x: &Sym) -> bool {
        x.is_short_table(self.tape)
    }

    /// Creates an error that names this function.
    pub fn invalid(&self, message: impl std::fmt::Display) -> FnError {
        FnError::invalid(format!("{}: {message}", self.name))
    }

    /// Creates the error for a value outside the function's domain.
    pub fn domain(&self, message: impl std::fmt::Display) -> FnError {
        FnError::domain(format!("{}: {message}", self.name))
    }

    /// Creates the error for two values of different sizes.
    pub fn mismatch(&self, a: &Sym, b: &Sym) -> FnError {
        self.invalid(format!(
            "sizes do not match: {} and {}",
            a.describe(),
            b.describe()
        ))
    }

    /// Returns the numbers of rows and columns of a matrix or vector.
    ///
    /// # Errors
    /// Fails for arrays.
    pub fn extents(&self, x: &Sym) -> FnResult<(usize, usize)> {
        let dims = x.dims()?;
        if dims.array.is_empty() {
            Ok(dims.leaf.extents())
        } else {
            Err(self.invalid(format!("expected a matrix, found {}", dims.describe())))
        }
    }

    /// Returns the extent of a square matrix.
    ///
    /// # Errors
    /// Fails if the matrix is not square.
    pub fn square(&self, x: &Sym) -> FnResult<usize> {
        match self.extents(x)? {
            (rows, cols) if rows == cols => Ok(rows),
            (rows, cols) => Err(self.invalid(format!(
                "expecting a square matrix; rows of the matrix ({rows}) and columns ({cols}) must match in size"
            ))),
        }
    }

    /// Wraps `e` as a matrix.
    pub fn matrix(&self, e: E<'g>, rows: usize, cols: usize) -> Sym {
        Sym::flat(Dims::leaf(Leaf::Matrix(rows, cols)), e)
    }
}

/// A function that builds the result of a call.
pub type Build = for<'g> fn(&Cx<'g>, &[Sym]) -> FnResult<Sym>;

/// The builder for the result of a library function.
#[derive(Clone, Copy)]
pub enum Builder {
    /// A function that is applied to each element.
    Unary(elementwise::Unary),
    /// A function that is applied to each pair of elements.
    Binary(elementwise::Binary),
    /// A function that is applied to each triple of elements.
    Ternary(elementwise::Ternary),
    /// A function that is applied to whole values.
    Whole(Build),
    /// A constraining transform or its inverse.
    Transform(&'static str, Direction),
}

/// Returns the builder of a library function, if it has one.
pub fn find(name: &str) -> Option<Builder> {
    let unary = elementwise::UNARY
        .iter()
        .map(|(n, f)| (*n, Builder::Unary(*f)));
    let binary = elementwise::BINARY
        .iter()
        .map(|(n, f)| (*n, Builder::Binary(*f)));
    let ternary = elementwise::TERNARY
        .iter()
        .map(|(n, f)| (*n, Builder::Ternary(*f)));
    let whole = [
        reduce::TABLE,
        containers::TABLE,
        matrices::TABLE,
        factorisations::TABLE,
        order::TABLE,
        hidden_markov::TABLE,
        complex::TABLE,
        kernels::TABLE,
        operators::TABLE,
    ];
    let whole = whole
        .into_iter()
        .flatten()
        .map(|(n, f)| (*n, Builder::Whole(*f)));
    unary
        .chain(binary)
        .chain(ternary)
        .chain(whole)
        .find(|(n, _)| *n == name)
        .map(|(_, builder)| builder)
        .or_else(|| {
            let (base, direction) = transforms::named(name)?;
            Some(Builder::Transform(base, direction))
        })
}

impl Builder {
    /// Builds the result for these arguments.
    ///
    /// # Errors
    /// Fails if the sizes of the arguments do not match, or if a known argument is outside the function's domain.
    pub fn build(self, cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
        if args.iter().any(|a| a.parts().is_some()) {
            return complex::call(cx, args);
        }
        match (self, args) {
            (Builder::Unary(f), [_]) => elementwise::map(cx, args, |e| f(e[0])),
            (Builder::Binary(f), [_, _]) => elementwise::map(cx, args, |e| f(e[0], e[1])),
            (Builder::Ternary(f), [_, _, _]) => elementwise::map(cx, args, |e| f(e[0], e[1], e[2])),
            (Builder::Whole(f), _) => f(cx, args),
            (Builder::Transform(base, direction), [_, ..]) => {
                transforms::transformed(cx, base, direction, args).map(|(value, _)| value)
            }
            _ => Err(cx.invalid(format!("called with {} arguments", args.len()))),
        }
    }
}
