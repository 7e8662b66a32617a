//! The library: one table from name to implementation.
//!
//! | file | subject |
//! | --- | --- |
//! | `vectorise` | scalar functions over containers |
//! | `elementary`, `special` | functions of real and complex numbers |
//! | `containers`, `reductions`, `statistics` | building, reshaping, summing and ordering containers |
//! | `dense`, `linear_algebra`, `products`, `kernels` | matrices |
//! | `transforms` | constraining transforms as functions |
//! | `density` | densities, distribution functions and their random numbers |
//! | `random` | the stream of random numbers |
//! | `higher_order` | functions that take functions |

mod complex;
mod containers;
pub mod dense;
pub mod density;
pub mod elementary;
pub mod higher_order;
mod kernels;
mod linear_algebra;
mod products;
pub mod random;
mod reductions;
pub mod special;
mod statistics;
mod transforms;
pub mod vectorise;

#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use num_complex::Complex64;

use self::density::{Family, FamilyPart};
use self::random::Draws;
use super::error::{FnError, FnResult};
use super::ops;
use super::value::Value;
use crate::program::{BinaryOp, BuiltinId};

/// Which terms of a density are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    constants: bool,
    arguments: u32,
}

impl Keep {
    /// Every term.
    pub const ALL: Keep = Keep {
        constants: true,
        arguments: u32::MAX,
    };

    /// The terms that depend on one of the arguments marked `true`: the others are additive constants.
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

    /// A term that depends on no argument.
    pub fn constant(self, x: f64) -> f64 {
        if self.constants { x } else { 0.0 }
    }

    /// A term that depends on the arguments in `mask` (bit i: argument i).
    pub fn term(self, mask: u32, x: f64) -> f64 {
        if self.on(mask) { x } else { 0.0 }
    }

    /// Whether terms that depend on the arguments in `mask` are kept.
    pub fn on(self, mask: u32) -> bool {
        self.arguments & mask != 0
    }

    /// The same for a density of other arguments: `masks[i]` are the arguments here that its argument i depends on.
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

/// An implementation.
#[derive(Clone, Copy)]
pub enum Builtin {
    /// A function of one real, over containers.
    Map(fn(f64) -> f64),
    /// A function of one real or complex number, over containers.
    MapComplex(fn(f64) -> f64, fn(Complex64) -> Complex64),
    /// A function of two reals, over containers.
    Map2(fn(f64, f64) -> f64),
    /// An operator under another name.
    Operator(BinaryOp),
    /// Anything else without side effects.
    Pure(fn(&[&Value]) -> FnResult<Value>),
    /// A constraining transform: value and log-Jacobian.
    Constrain(fn(&[&Value]) -> FnResult<(Value, f64)>),
    /// A density with terms to keep or drop.
    Density(fn(Keep, &[&Value]) -> FnResult<f64>),
    /// A random number.
    Random(fn(&mut Draws, &[&Value]) -> FnResult<Value>),
    /// A function of a univariate distribution.
    Univariate(&'static Family, FamilyPart),
}

type Entry = (&'static str, Builtin);

fn table() -> &'static [Option<Builtin>] {
    static TABLE: OnceLock<Vec<Option<Builtin>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = vec![None; BuiltinId::count()];
        let mut add = |name: &str, builtin: Builtin| {
            if let Some(id) = BuiltinId::from_name(name) {
                table[id.index()] = Some(builtin);
            }
        };
        for (name, builtin) in [
            elementary::TABLE,
            complex::TABLE,
            containers::TABLE,
            reductions::TABLE,
            statistics::TABLE,
            linear_algebra::TABLE,
            products::TABLE,
            kernels::TABLE,
            transforms::TABLE,
        ]
        .into_iter()
        .chain(density::TABLES.iter().copied())
        .flatten()
        {
            add(name, *builtin);
        }
        for family in density::families() {
            for (name, part) in family.functions() {
                add(&name, Builtin::Univariate(family, part));
            }
        }
        table
    })
}

/// The implementation of a library function, if it has one here.
pub fn builtin(id: BuiltinId) -> Option<Builtin> {
    table()[id.index()]
}

fn unsupported(id: BuiltinId) -> FnError {
    FnError::unsupported(format!(
        "function `{}` is known but not supported yet by the interpreter",
        id.name()
    ))
}

/// Calls a library function that draws no random numbers and takes no functions.
///
/// # Errors
/// When an argument is outside its domain, sizes do not fit, or the function has no implementation here.
pub fn call(id: BuiltinId, keep: Keep, args: &[&Value]) -> FnResult<Value> {
    let builtin = builtin(id).ok_or_else(|| unsupported(id))?;
    let argument = |i: usize| -> FnResult<&Value> {
        args.get(i)
            .copied()
            .ok_or_else(|| FnError::invalid(format!("{}: too few arguments", id.name())))
    };
    match builtin {
        Builtin::Map(f) => argument(0)?.map_real(&f),
        Builtin::MapComplex(f, g) => {
            let x = argument(0)?;
            if x.has_complex() {
                x.map_complex(&g)
            } else {
                x.map_real(&f)
            }
        }
        Builtin::Map2(f) => vectorise::map2(id.name(), argument(0)?, argument(1)?, &f),
        Builtin::Operator(op) => ops::binary(op, argument(0)?, argument(1)?),
        Builtin::Pure(f) => f(args),
        Builtin::Constrain(f) => f(args).map(|(value, _)| value),
        Builtin::Density(f) => f(keep, args).map(Value::Real),
        Builtin::Univariate(family, part) => family.call(part, keep, args).map(Value::Real),
        Builtin::Random(_) => Err(FnError::invalid(format!(
            "{}: there are no random numbers here",
            id.name()
        ))),
    }
}

/// Calls a `…_jacobian` function of the library: the constrained value and the log-Jacobian, which the caller adds to
/// the log density.
///
/// # Errors
/// As [`call`].
pub fn constrain(id: BuiltinId, args: &[&Value]) -> FnResult<(Value, f64)> {
    match builtin(id) {
        Some(Builtin::Constrain(f)) => f(args),
        _ => Err(unsupported(id)),
    }
}

/// Calls a library function that draws random numbers.
///
/// # Errors
/// As [`call`].
pub fn draw(id: BuiltinId, rng: &mut Draws, args: &[&Value]) -> FnResult<Value> {
    match builtin(id).ok_or_else(|| unsupported(id))? {
        Builtin::Random(f) => f(rng, args),
        Builtin::Univariate(family, FamilyPart::Random) => family.draw(rng, args),
        _ => Err(unsupported(id)),
    }
}
