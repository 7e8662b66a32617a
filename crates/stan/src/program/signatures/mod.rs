//! The functions of the Stan library: names and signatures, read from the table `library.sig`.

mod table;

use std::sync::OnceLock;

use crate::program::{FunctionType, Level, ParamType, Type};

/// A function of the Stan library: its position in the list of names, which is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuiltinId(u16);

impl BuiltinId {
    /// The function of that name.
    pub fn from_name(name: &str) -> Option<BuiltinId> {
        let entries = &table::library().entries;
        let at = entries
            .binary_search_by(|entry| entry.name.cmp(name))
            .ok()?;
        Some(BuiltinId(at as u16))
    }

    /// The function's name, with its suffix: `normal_lpdf`.
    pub fn name(self) -> &'static str {
        table::library().entries[self.0 as usize].name
    }

    /// Position in the list, below [`BuiltinId::count`].
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Number of functions in the library.
    pub fn count() -> usize {
        table::library().entries.len()
    }

    /// All functions, sorted by name.
    pub fn all() -> impl Iterator<Item = BuiltinId> {
        (0..Self::count() as u16).map(BuiltinId)
    }

    /// The signatures of the function, in the order of the table; empty for a variadic function.
    pub fn signatures(self) -> &'static [FunctionType] {
        let entry = &table::library().entries[self.0 as usize];
        entry
            .signatures
            .get_or_init(|| table::expand(entry.patterns))
    }

    /// Whether its argument types depend on the function passed to it (`ode_rk45`, `reduce_sum`, …).
    pub fn is_variadic(self) -> bool {
        table::library().entries[self.0 as usize].is_variadic()
    }

    /// The signature of a variadic function as in the table.
    pub fn pattern(self) -> &'static str {
        table::library().entries[self.0 as usize]
            .patterns
            .first()
            .copied()
            .unwrap_or_default()
    }
}

/// The signature of a variadic function when these functions are passed to it, one for each function parameter in
/// order; `None` if they do not fit.
pub(crate) fn instantiate(id: BuiltinId, passed: &[&FunctionType]) -> Option<FunctionType> {
    table::instantiate(id.pattern(), passed)
}

/// Positions at which a variadic function takes a function.
pub(crate) fn function_positions(id: BuiltinId) -> &'static [usize] {
    let entry = &table::library().entries[id.0 as usize];
    entry
        .function_positions
        .get_or_init(|| table::function_positions(entry.patterns))
}

struct Entry {
    name: &'static str,
    patterns: &'static [&'static str],
    signatures: OnceLock<Vec<FunctionType>>,
    function_positions: OnceLock<Vec<usize>>,
}

impl Entry {
    fn is_variadic(&self) -> bool {
        self.patterns.iter().any(|pattern| pattern.contains("..."))
    }
}

fn param(ty: Type, data: bool) -> ParamType {
    // Integers never depend on parameters, so the mark would have no meaning.
    let level = if data && !ty.is_discrete() {
        Level::Data
    } else {
        Level::Param
    };
    ParamType { ty, level }
}
