//! Library functions of known values. Tables map the name of each function to its implementation.
//!
//! | file | subject |
//! | --- | --- |
//! | `elementary`, `special`, `complex` | functions of real and complex numbers |
//! | `containers`, `reductions`, `statistics` | building, reshaping, summing and ordering containers |
//! | `linear_algebra`, `products`, `kernels` | matrices |
//! | `transforms` | constraining transforms as functions |
//! | `solvers` | names and settings of differential equations and solvers |
//! | `random` | the stream of random numbers |

mod complex;
mod containers;
pub mod elementary;
mod kernels;
pub mod laplace;
mod linear_algebra;
mod products;
pub mod random;
pub mod reductions;
pub mod solvers;
pub mod special;
mod statistics;
mod transforms;

use num_complex::Complex64;

use self::random::Draws;
use crate::program::BinaryOp;
use crate::value::Value;
use crate::value::error::{FnResult, check_terms};

/// The terms of a density that a call keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    constants: bool,
    arguments: u32,
}

impl Keep {
    /// Keeps every term.
    pub const ALL: Keep = Keep {
        constants: true,
        arguments: u32::MAX,
    };

    /// Keeps the terms that depend on at least one argument for which `varies` is true. All other terms are additive
    /// constants.
    pub fn arguments(varies: impl Iterator<Item = bool>) -> Keep {
        let arguments = varies
            .take(32)
            .enumerate()
            .fold(0, |mask, (i, v)| mask | (u32::from(v) << i));
        Keep {
            constants: false,
            arguments,
        }
    }

    /// Returns the term `x`, which must depend on no argument. Returns 0 instead if the call drops such terms.
    pub fn constant(self, x: f64) -> f64 {
        if self.constants { x } else { 0.0 }
    }

    /// Returns the term `x`, which must depend on the arguments in `mask`. Returns 0 instead if the call drops such
    /// terms. Bit i of `mask` stands for argument i.
    pub fn term(self, mask: u32, x: f64) -> f64 {
        if self.on(mask) { x } else { 0.0 }
    }

    /// Returns whether the call keeps terms that depend on no argument.
    pub fn constants(self) -> bool {
        self.constants
    }

    /// Returns whether the call keeps terms that depend on the arguments in `mask`.
    pub fn on(self, mask: u32) -> bool {
        self.arguments & mask != 0
    }

    /// Returns the terms to keep in another density. Each argument of the other density is a function of arguments of
    /// this density. For argument i of the other density, `masks[i]` contains those arguments of this density.
    pub fn reorder(self, masks: &[u32]) -> Keep {
        let arguments = masks
            .iter()
            .enumerate()
            .fold(0, |all, (i, mask)| all | (u32::from(self.on(*mask)) << i));
        Keep {
            constants: self.constants,
            arguments,
        }
    }
}

/// The implementation of a library function.
#[derive(Clone, Copy)]
pub enum Builtin {
    /// A function of one real, applied to containers element by element.
    Map(fn(f64) -> f64),
    /// A function of one real or complex number, applied to containers element by element.
    MapComplex(fn(f64) -> f64, fn(Complex64) -> Complex64),
    /// A function of two reals, applied to containers element by element.
    Map2(fn(f64, f64) -> f64),
    /// An operator that can also be called as a function.
    Operator(BinaryOp),
    /// Any other function without side effects.
    Pure(fn(&[&Value]) -> FnResult<Value>),
    /// A constraining transform, which returns the constrained value and the log-Jacobian.
    Constrain(fn(&[&Value]) -> FnResult<(Value, f64)>),
    /// A density. The first argument of the function contains the terms to keep.
    Density(fn(Keep, &[&Value]) -> FnResult<f64>),
    /// A function that draws random numbers.
    Random(fn(&mut Draws, &[&Value]) -> FnResult<Value>),
}

/// Functions whose number of computed terms depends on the value of one argument. Each entry contains the name of the
/// function and the index of this argument.
const COUNTED: &[(&str, usize)] = &[
    ("bessel_first_kind", 0),
    ("bessel_second_kind", 0),
    ("beta_binomial_cdf", 1),
    ("beta_binomial_lccdf", 1),
    ("beta_binomial_lcdf", 1),
    ("beta_neg_binomial_cdf", 0),
    ("beta_neg_binomial_lccdf", 0),
    ("beta_neg_binomial_lcdf", 0),
    ("falling_factorial", 1),
    ("lmgamma", 0),
    ("modified_bessel_first_kind", 0),
    ("modified_bessel_second_kind", 0),
    ("rising_factorial", 1),
];

/// Returns the index of the argument whose value determines how many terms the function computes.
pub fn counted(name: &str) -> Option<usize> {
    let found = COUNTED.binary_search_by_key(&name, |(name, _)| name);
    found.ok().map(|row| COUNTED[row].1)
}

/// Rejects a call with too many terms for one step of an evaluation. `longest` is the length of the call's longest
/// argument.
///
/// # Errors
/// Fails with [`ErrorKind::Excess`](crate::value::error::ErrorKind::Excess).
pub fn check_counts(name: &str, counts: &Value, longest: usize) -> FnResult<()> {
    let counts = counts.numbers();
    // A single count applies to every element of the other arguments. Otherwise each count applies to the element at
    // its own position.
    let each = longest.checked_div(counts.len()).unwrap_or(1).max(1);
    check_terms(
        name,
        each as f64 * counts.iter().map(|n| n.abs()).sum::<f64>(),
    )
}

/// Applies [`check_counts`] to a call if the function has an argument that determines its number of terms.
///
/// # Errors
/// Fails as [`check_counts`] does.
pub fn check_call(name: &str, args: &[&Value]) -> FnResult<()> {
    let longest = args.iter().map(|arg| arg.len()).max().unwrap_or(1);
    counted(name).map_or(Ok(()), |at| check_counts(name, args[at], longest))
}

/// The name and the implementation of a library function.
pub type NamedBuiltin = (&'static str, Builtin);

/// The tables of all functions of this module.
pub const TABLES: &[&[NamedBuiltin]] = &[
    elementary::TABLE,
    complex::TABLE,
    containers::TABLE,
    reductions::TABLE,
    statistics::TABLE,
    linear_algebra::TABLE,
    products::TABLE,
    kernels::TABLE,
    transforms::TABLE,
];
