//! Priors of hyperparameters in text form, such as `variance~pc(3, 0.01)`.

use super::spec::{Named, Word};
use crate::density::{PriorDensity, Tail};

/// A prior that the user specified.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// The penalised-complexity prior with this tail.
    Tail {
        /// The threshold: a large value, or a small value for a length.
        at: f64,
        /// The probability of a value beyond the threshold.
        probability: f64,
    },
    /// Another density.
    Density(PriorDensity),
}

struct PriorRow {
    name: &'static str,
    usage: &'static str,
    count: usize,
    make: fn(&[f64]) -> Distribution,
}

const ROWS: [PriorRow; 7] = [
    PriorRow {
        name: "pc",
        usage: "pc(U, α)",
        count: 2,
        make: |p| Distribution::Tail {
            at: p[0],
            probability: p[1],
        },
    },
    PriorRow {
        name: "gamma",
        usage: "gamma(shape, rate)",
        count: 2,
        make: |p| {
            Distribution::Density(PriorDensity::Gamma {
                shape: p[0],
                rate: p[1],
            })
        },
    },
    PriorRow {
        name: "inv_gamma",
        usage: "inv_gamma(shape, scale)",
        count: 2,
        make: |p| {
            Distribution::Density(PriorDensity::InverseGamma {
                shape: p[0],
                scale: p[1],
            })
        },
    },
    PriorRow {
        name: "lognormal",
        usage: "lognormal(μ, σ)",
        count: 2,
        make: |p| {
            Distribution::Density(PriorDensity::LogNormal {
                mean: p[0],
                sd: p[1],
            })
        },
    },
    PriorRow {
        name: "beta",
        usage: "beta(a, b)",
        count: 2,
        make: |p| Distribution::Density(PriorDensity::Beta { a: p[0], b: p[1] }),
    },
    PriorRow {
        name: "lkj",
        usage: "lkj(shape)",
        count: 1,
        make: |p| Distribution::Density(PriorDensity::Lkj { shape: p[0] }),
    },
    PriorRow {
        name: "exponential",
        usage: "exponential(rate)",
        count: 1,
        make: |p| {
            Distribution::Density(PriorDensity::Gamma {
                shape: 1.0,
                rate: p[0],
            })
        },
    },
];

impl Distribution {
    /// Parses the prior in an argument. Returns `None` if the argument is a number.
    ///
    /// # Errors
    /// Fails if the text is not a prior. The error contains the incorrect word and the reason.
    pub fn of(named: &Named) -> Result<Option<Self>, (&Word, String)> {
        let word = match named.values.as_slice() {
            [word] if !named.arguments.is_empty() => word,
            _ => return Ok(None),
        };
        let Some(row) = ROWS.iter().find(|row| row.name == word.text) else {
            let usages: Vec<&str> = ROWS.iter().map(|row| row.usage).collect();
            let message = format!(
                "there is no prior `{}`; choose {}",
                word.text,
                usages.join(", ")
            );
            return Err((word, message));
        };
        if named.arguments.len() != row.count {
            return Err((word, format!("write `{}`", row.usage)));
        }
        let mut numbers = Vec::with_capacity(row.count);
        for (i, argument) in named.arguments.iter().enumerate() {
            let real = row.name == "lognormal" && i == 0;
            match argument.text.parse::<f64>() {
                Ok(x) if x.is_finite() && (real || x > 0.0) => numbers.push(x),
                _ => {
                    let what = if real {
                        "a number"
                    } else {
                        "a positive number"
                    };
                    return Err((
                        argument,
                        format!("expected {what}, found `{}`", argument.text),
                    ));
                }
            }
        }
        if row.name == "pc" && numbers[1] >= 1.0 {
            let message = "the second number of `pc` is a probability below 1".to_owned();
            return Err((&named.arguments[1], message));
        }
        Ok(Some((row.make)(&numbers)))
    }

    /// Returns the density of a hyperparameter measured in `unit`. `tail` is the quantity that defines a
    /// penalised-complexity prior.
    pub fn density(&self, tail: Tail, unit: f64) -> PriorDensity {
        let density = match self {
            Self::Tail { at, probability } => tail.density(*at, *probability),
            Self::Density(density) => density.clone(),
        };
        density.in_units(unit)
    }
}
