//! Probability distributions: densities, distribution functions, random numbers.
//!
//! A univariate distribution is one [`Family`]: its parameters with their domains, the log density as a sum of terms
//! that say which arguments they depend on, the log probabilities of both tails, and a sampler. Vectorisation, size
//! and domain checks are the same for all.

mod continuous;
mod counts;
mod family;
pub mod formulas;
mod glm;
mod matrices;
mod multivariate;
mod ordinal;
mod positive;
mod simplexes;
mod skewed;

pub use family::{Family, FamilyPart};

use crate::functions::Entry;

/// All univariate families.
pub fn families() -> impl Iterator<Item = &'static Family> {
    continuous::FAMILIES
        .iter()
        .chain(skewed::FAMILIES)
        .chain(positive::FAMILIES)
        .chain(counts::FAMILIES)
}

/// The distributions that are no univariate family.
pub const TABLES: &[&[Entry]] = &[
    glm::TABLE,
    matrices::TABLE,
    multivariate::TABLE,
    ordinal::TABLE,
    simplexes::TABLE,
];
