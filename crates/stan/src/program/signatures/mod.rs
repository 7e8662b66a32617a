//! The functions of the Stan library: names and signatures, read from the table `library.sig`.

mod table;

use std::sync::OnceLock;

use crate::program::{FunctionType, Level, ParamType, Type};

/// A function of the Stan library, identified by its position in the sorted list of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuiltinId(u16);

impl BuiltinId {
    /// Returns the function with this name.
    pub fn from_name(name: &str) -> Option<BuiltinId> {
        let entries = &table::library().entries;
        let at = entries
            .binary_search_by(|entry| entry.name.cmp(name))
            .ok()?;
        Some(BuiltinId(at as u16))
    }

    /// Returns the function's name with its suffix, such as `normal_lpdf`.
    pub fn name(self) -> &'static str {
        table::library().entries[self.0 as usize].name
    }

    /// Returns the position in the list, which is less than [`BuiltinId::count`].
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the number of functions in the library.
    pub fn count() -> usize {
        table::library().entries.len()
    }

    /// Returns all functions, sorted by name.
    pub fn all() -> impl Iterator<Item = BuiltinId> {
        (0..Self::count() as u16).map(BuiltinId)
    }

    /// Returns the signatures of the function, in the order of the table. A variadic function has none.
    pub fn signatures(self) -> &'static [FunctionType] {
        let entry = &table::library().entries[self.0 as usize];
        entry
            .signatures
            .get_or_init(|| table::expand(entry.patterns))
    }

    /// Returns whether the argument types depend on the passed function, as for `ode_rk45` or `reduce_sum`.
    pub fn is_variadic(self) -> bool {
        table::library().entries[self.0 as usize].is_variadic()
    }

    /// Returns the signature of a variadic function as written in the table.
    pub fn pattern(self) -> &'static str {
        table::library().entries[self.0 as usize]
            .patterns
            .first()
            .copied()
            .unwrap_or_default()
    }
}

/// `passed` contains the types of the passed functions, in the order of the function parameters. Returns `None` if the
/// passed functions do not match the signature.
pub(crate) fn instantiate(id: BuiltinId, passed: &[&FunctionType]) -> Option<FunctionType> {
    table::instantiate(id.pattern(), passed)
}

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
    // Integers never depend on parameters, so `data` has no meaning for them.
    let level = if data && !ty.is_discrete() {
        Level::Data
    } else {
        Level::Param
    };
    ParamType { ty, level }
}
