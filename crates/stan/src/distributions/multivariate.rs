//! Defines the table row of a distribution of whole values, such as vectors, matrices, categories or the outcomes of
//! regressions.

use super::formula::WholeFormula;
use crate::functions::random::Draws;
use crate::functions::{Builtin, Keep, NamedBuiltin};
use crate::value::Value;
use crate::value::error::FnResult;

/// States which arguments of a density may be containers with one element per record. If at least one argument is such
/// a container, the density is summed over the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverRecords {
    /// Arrays of vectors and matrices may be containers with one element per record.
    Arrays,
    /// Only the outcome may be a container with one element per record.
    Outcome,
    /// The outcome, its location, and arrays of vectors may be containers with one element per record.
    Located,
    /// All arguments may be containers with one element per record.
    All,
}

/// A distribution of whole values. The row contains everything that the distribution's functions need, both for known
/// values and for the graph. The functions of such a distribution depend on the shapes of their arguments.
pub struct Multivariate {
    /// The full name of the density: `…_lpdf` or `…_lpmf`.
    pub density: &'static str,
    log_density: fn(Keep, &[&Value]) -> FnResult<f64>,
    sampler: Option<NamedBuiltin>,
    /// The formula of the log density in the graph, and the arguments that may be containers with one element per
    /// record. The field is `None` if there is no such formula.
    pub lowered: Option<(WholeFormula, OverRecords)>,
}

impl Multivariate {
    /// Creates a distribution without optional parts. The function `log_density` marks each of its terms with a bit
    /// mask, which contains the arguments on which the term depends.
    pub const fn new(
        density: &'static str,
        log_density: fn(Keep, &[&Value]) -> FnResult<f64>,
    ) -> Multivariate {
        Multivariate {
            density,
            log_density,
            sampler: None,
            lowered: None,
        }
    }

    /// Adds a sampler, with the full name of its function.
    pub const fn sample(
        mut self,
        name: &'static str,
        sample: fn(&mut Draws, &[&Value]) -> FnResult<Value>,
    ) -> Multivariate {
        self.sampler = Some((name, Builtin::Random(sample)));
        self
    }

    /// Adds the formula that builds the log density in the graph.
    pub const fn lowered(mut self, formula: WholeFormula, records: OverRecords) -> Multivariate {
        self.lowered = Some((formula, records));
        self
    }

    /// Returns the names and implementations of the functions for known values.
    pub fn functions(&self) -> impl Iterator<Item = NamedBuiltin> {
        let density = (self.density, Builtin::Density(self.log_density));
        [Some(density), self.sampler].into_iter().flatten()
    }
}
