//! Probability distributions: densities, distribution functions, random numbers.
//!
//! A univariate distribution is one [`Family`]: its parameters with their domains, the log density as a sum of terms
//! that say which arguments they depend on, the log probabilities of both tails, and a sampler. Vectorisation, size
//! and domain checks are the same for all.

mod continuous;
mod counts;
mod family;
mod glm;
mod matrices;
mod multivariate;
mod ordinal;
mod positive;
mod simplexes;
mod skewed;

pub use family::{Family, FamilyPart};

use super::Entry;

/// All univariate families.
pub(super) fn families() -> impl Iterator<Item = &'static Family> {
    continuous::FAMILIES
        .iter()
        .chain(skewed::FAMILIES)
        .chain(positive::FAMILIES)
        .chain(counts::FAMILIES)
}

/// The distributions that are no univariate family.
pub(super) const TABLES: &[&[Entry]] = &[
    glm::TABLE,
    matrices::TABLE,
    multivariate::TABLE,
    ordinal::TABLE,
    simplexes::TABLE,
];
