//! The bounds and their names.

use serde::{Deserialize, Serialize};

/// The bound on `E[−log p(y | η)]` that the fit optimises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SiteBound {
    /// The expectation itself, computed in closed form if possible and otherwise by quadrature.
    Exact,
    /// The log bound `E log(1 + e^η) ≤ log(1 + e^(m + v/2))`.
    Log,
    /// The tilted bound of Saul and Jordan, minimised over its tilting parameter.
    Tilted,
    /// Böhning's quadratic bound, minimised over its point of contact.
    Bohning,
    /// Jaakkola's quadratic bound, minimised over its point of contact.
    Jaakkola,
    /// The piecewise quadratic bound of Marlin, Khan and Murphy.
    Piecewise,
}

impl SiteBound {
    /// All bounds.
    pub const ALL: [Self; 6] = [
        Self::Exact,
        Self::Log,
        Self::Tilted,
        Self::Bohning,
        Self::Jaakkola,
        Self::Piecewise,
    ];

    /// Returns the name of the bound on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Log => "log",
            Self::Tilted => "tilted",
            Self::Bohning => "bohning",
            Self::Jaakkola => "jaakkola",
            Self::Piecewise => "piecewise",
        }
    }

    /// Returns the bound with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|b| b.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for bound in SiteBound::ALL {
            assert_eq!(SiteBound::from_name(bound.name()), Some(bound));
        }
        assert_eq!(SiteBound::from_name("none"), None);
    }
}
