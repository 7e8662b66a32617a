//! Probability distributions. Each distribution is one row of a table. The row contains the names and domains of the
//! arguments, the log density as a sum of terms, the distribution functions, the sampler and formulas for the graph.
//! Each term of the log density is marked with the arguments on which it depends. All distributions share the code for
//! vectorisation, sizes and domain checks.
//!
//! To add a distribution, add its signatures to `program/signatures/library.sig`, and one row to the file in this
//! folder for its kind of distribution.
//!
//! | file | subject |
//! | --- | --- |
//! | `univariate`, `multivariate` | the two kinds of row: for numbers, and for whole values |
//! | `formula` | densities over the graph |
//! | `real_line`, `skewed`, `half_line`, `interval` | real numbers |
//! | `trials`, `counts` | ints |
//! | `peaks` | log probabilities of large counts, relative to their peaks |
//! | `categories`, `ordered`, `simplexes` | categories, simplexes and counts of categories |
//! | `regressions` | outcomes given a linear predictor |
//! | `vectors`, `covariances` | vectors and matrices |
//! | `hidden_markov` | functions of hidden Markov models |
//! | `wiener` | times at which processes with varying parameters leave an interval |

pub mod categories;
mod counts;
mod covariances;
mod formula;
mod half_line;
mod hidden_markov;
mod interval;
mod multivariate;
mod ordered;
mod peaks;
mod real_line;
mod regressions;
mod simplexes;
mod skewed;
mod trials;
mod univariate;
mod vectors;
mod wiener;

use std::collections::BTreeMap;
use std::sync::OnceLock;

pub use formula::{Formula, Passed};
pub use multivariate::{Multivariate, OverRecords};
pub use univariate::{Suffix, Univariate};

use crate::functions::NamedBuiltin;

/// Returns all univariate distributions.
pub fn univariate() -> impl Iterator<Item = &'static Univariate> {
    [
        real_line::TABLE,
        skewed::TABLE,
        half_line::TABLE,
        interval::TABLE,
        trials::TABLE,
        counts::TABLE,
    ]
    .into_iter()
    .flatten()
}

/// Returns all multivariate distributions.
pub fn multivariate() -> impl Iterator<Item = &'static Multivariate> {
    [
        categories::TABLE,
        ordered::TABLE,
        simplexes::TABLE,
        regressions::TABLE,
        vectors::TABLE,
        covariances::TABLE,
    ]
    .into_iter()
    .flatten()
}

/// Functions of hidden Markov models and of Wiener processes that do not belong to the row of a distribution.
pub const FUNCTIONS: &[&[NamedBuiltin]] = &[hidden_markov::TABLE, wiener::TABLE];

/// Returns the formula that builds a density or distribution function in the graph, if there is one.
pub fn formula(name: &str) -> Option<Formula> {
    static FORMULAS: OnceLock<BTreeMap<String, Formula>> = OnceLock::new();
    let formulas = FORMULAS.get_or_init(|| {
        let functions = univariate().flat_map(|row| {
            let lowered = row.functions().into_iter();
            lowered
                .filter(|(_, suffix)| row.is_lowered(*suffix))
                .map(move |(name, suffix)| (name, Formula::Univariate(row, suffix)))
        });
        let densities = multivariate().filter_map(|row| {
            let (terms, records) = row.lowered?;
            Some((
                row.density.to_owned(),
                Formula::Multivariate(terms, records),
            ))
        });
        let others = wiener::LOWERED.iter().map(|(name, terms)| {
            let formula = Formula::Multivariate(*terms, OverRecords::All);
            ((*name).to_owned(), formula)
        });
        functions.chain(densities).chain(others).collect()
    });
    formulas.get(name).copied()
}
