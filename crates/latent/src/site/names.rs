//! The names of likelihoods and bounds, and which go together.

use serde::{Deserialize, Serialize};

/// The density of one observation given its linear predictor η.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Likelihood {
    /// y ~ N(η, variance).
    Gaussian {
        /// Variance of the noise.
        variance: f64,
    },
    /// y ~ Poisson(e exp(η)) with exposure e.
    Poisson,
    /// y ∈ {0, 1}, P(y = 1) = 1/(1 + exp(−η)).
    Bernoulli,
    /// y of `trials`, each with probability 1/(1 + exp(−η)).
    Binomial,
    /// Counts with mean μ = e exp(η) and variance μ + μ²/size.
    NegativeBinomial {
        /// Number of failures; the Poisson distribution is its limit at infinity.
        size: f64,
    },
    /// Gamma distribution with mean exp(η).
    Gamma {
        /// Shape; the variance is mean²/shape.
        shape: f64,
    },
    /// Exponential distribution with mean exp(η).
    Exponential,
    /// y ~ N(0, exp(η)).
    StochasticVolatility,
    /// y ∈ {0, …, categories − 1} with log odds η_k against the last category: categories − 1 linear predictors an
    /// observation.
    Multinomial {
        /// Number of categories, the reference included.
        categories: usize,
    },
    /// y ∈ {0, 1}, P(y = 1) = Φ(η).
    Probit,
    /// y = η + scale · t with `degrees` of freedom.
    StudentT {
        /// Degrees of freedom.
        degrees: f64,
        /// Scale of the noise.
        scale: f64,
    },
}

/// The bound on `E[−log p(y | η)]` that is optimised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The expectation itself: in closed form where there is one, else by Gauss-Hermite quadrature.
    Exact,
    /// `E log(1 + e^η) ≤ log(1 + e^(m + v/2))`.
    Log,
    /// The tilted bound of Saul and Jordan, minimised over its parameter.
    Tilted,
    /// Böhning's quadratic bound, minimised over the point where it touches.
    Bohning,
    /// Jaakkola's quadratic bound, minimised over the point where it touches.
    Jaakkola,
    /// The piecewise quadratic bound of Marlin, Khan and Murphy.
    Piecewise,
}

/// A likelihood's word on the command line, the bounds offered for it (the default first) and its parameters.
struct Row {
    name: &'static str,
    bounds: &'static [Bound],
    parameters: &'static [&'static str],
}

/// Bounds of the sites whose only hard term is log(1 + e^η).
const LOGISTIC: &[Bound] = &[
    Bound::Tilted,
    Bound::Exact,
    Bound::Log,
    Bound::Bohning,
    Bound::Jaakkola,
    Bound::Piecewise,
];

impl Likelihood {
    fn row(self) -> Row {
        let row = |name, bounds, parameters| Row {
            name,
            bounds,
            parameters,
        };
        match self {
            Self::Gaussian { .. } => row("gaussian", &[Bound::Exact], &["variance"]),
            Self::Poisson => row("poisson", &[Bound::Exact], &[]),
            Self::Bernoulli => row("bernoulli", LOGISTIC, &[]),
            Self::Binomial => row("binomial", LOGISTIC, &[]),
            Self::NegativeBinomial { .. } => row("negative-binomial", LOGISTIC, &["size"]),
            Self::Gamma { .. } => row("gamma", &[Bound::Exact], &["shape"]),
            Self::Exponential => row("exponential", &[Bound::Exact], &[]),
            Self::StochasticVolatility => row("stochastic-volatility", &[Bound::Exact], &[]),
            Self::Multinomial { .. } => row("multinomial", &[Bound::Log], &[]),
            Self::Probit => row("probit", &[Bound::Exact], &[]),
            Self::StudentT { .. } => row("student-t", &[Bound::Exact], &["degrees", "scale"]),
        }
    }

    /// One of each likelihood at common parameters: unit variance, size, shape and scale, three categories and four
    /// degrees of freedom.
    pub const ALL: [Self; 11] = [
        Self::Gaussian { variance: 1.0 },
        Self::Poisson,
        Self::Bernoulli,
        Self::Binomial,
        Self::NegativeBinomial { size: 1.0 },
        Self::Gamma { shape: 1.0 },
        Self::Exponential,
        Self::StochasticVolatility,
        Self::Multinomial { categories: 3 },
        Self::Probit,
        Self::StudentT {
            degrees: 4.0,
            scale: 1.0,
        },
    ];

    /// The word for it on the command line.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The likelihood of that name, at the parameters of [`ALL`](Self::ALL).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|l| l.name() == name)
    }

    /// The bounds on offer, the default first.
    pub fn bounds(self) -> &'static [Bound] {
        self.row().bounds
    }

    /// Names of its positive parameters.
    pub fn parameters(self) -> &'static [&'static str] {
        self.row().parameters
    }

    /// The values of its parameters, in the order of [`parameters`](Self::parameters).
    pub fn values(self) -> Vec<f64> {
        match self {
            Self::Gaussian { variance } => vec![variance],
            Self::NegativeBinomial { size } => vec![size],
            Self::Gamma { shape } => vec![shape],
            Self::StudentT { degrees, scale } => vec![degrees, scale],
            _ => Vec::new(),
        }
    }

    /// The same likelihood with other parameters.
    ///
    /// # Panics
    /// When there are not as many as [`parameters`](Self::parameters) names.
    #[must_use]
    pub fn with_values(self, values: &[f64]) -> Self {
        assert_eq!(values.len(), self.parameters().len(), "likelihood values");
        match self {
            Self::Gaussian { .. } => Self::Gaussian {
                variance: values[0],
            },
            Self::NegativeBinomial { .. } => Self::NegativeBinomial { size: values[0] },
            Self::Gamma { .. } => Self::Gamma { shape: values[0] },
            Self::StudentT { .. } => Self::StudentT {
                degrees: values[0],
                scale: values[1],
            },
            other => other,
        }
    }

    /// Number of linear predictors of one observation.
    pub fn predictors(self) -> usize {
        match self {
            Self::Multinomial { categories } => categories.saturating_sub(1),
            _ => 1,
        }
    }
}

impl Bound {
    /// Every bound.
    pub const ALL: [Self; 6] = [
        Self::Exact,
        Self::Log,
        Self::Tilted,
        Self::Bohning,
        Self::Jaakkola,
        Self::Piecewise,
    ];

    /// The word for it on the command line.
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

    /// The bound of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|b| b.name() == name)
    }
}

impl Likelihood {
    /// What a response would have to be, where `y` is none that the likelihood can have; `trials` is the number of trials of a
    /// binomial count.
    pub fn refuses(self, y: f64, trials: f64) -> Option<String> {
        let whole = y >= 0.0 && y == y.floor();
        let (inside, domain) = match self {
            Self::Gaussian { .. } | Self::StudentT { .. } | Self::StochasticVolatility => {
                (y.is_finite(), "a finite number".to_owned())
            }
            Self::Poisson | Self::NegativeBinomial { .. } => {
                (whole && y.is_finite(), "a count 0, 1, 2, …".to_owned())
            }
            Self::Bernoulli | Self::Probit => (y == 0.0 || y == 1.0, "0 or 1".to_owned()),
            Self::Binomial => (
                whole && y <= trials && trials == trials.floor(),
                format!("a count between 0 and its number of trials, {trials}"),
            ),
            Self::Gamma { .. } | Self::Exponential => {
                (y > 0.0 && y.is_finite(), "a positive number".to_owned())
            }
            Self::Multinomial { categories } => (
                whole && y < categories as f64,
                format!("a category 0, …, {}", categories - 1),
            ),
        };
        (!inside).then_some(domain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for likelihood in Likelihood::ALL {
            assert_eq!(Likelihood::from_name(likelihood.name()), Some(likelihood));
            assert_eq!(likelihood.values().len(), likelihood.parameters().len());
            assert_eq!(likelihood.with_values(&likelihood.values()), likelihood);
        }
        for bound in Bound::ALL {
            assert_eq!(Bound::from_name(bound.name()), Some(bound));
        }
        assert_eq!(Bound::from_name("none"), None);
    }
}
