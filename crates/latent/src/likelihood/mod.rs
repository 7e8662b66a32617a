//! Likelihoods: the density of an observation given its linear predictor η.
//!
//! Each likelihood is a [`LikelihoodRow`] in its own file. To add a likelihood, write such a file and list its row in
//! [`ROWS`]. All code that depends on the likelihood, in this crate and in dependent crates, reads the row. The row
//! contains names and help texts, the allowed responses, densities and means, sites, and derivatives with respect to
//! parameters.
//!
//! | file | y given η |
//! | --- | --- |
//! | `gaussian`, `student_t`, `known_error` | numbers around η |
//! | `poisson`, `negative_binomial`, `zero_inflated_poisson`, `zero_inflated_negative_binomial` | counts with mean exposure · e^η |
//! | `hurdle_poisson`, `hurdle_negative_binomial` | counts whose zeros have their own probability |
//! | `bernoulli`, `binomial`, `beta_binomial`, `probit` | one or several binary outcomes |
//! | `gamma` | positive numbers with mean e^η |
//! | `tweedie` | numbers of at least 0 with mean e^η |
//! | `exponential`, `lognormal`, `weibull` | times with mean e^η, of which some may be censored |
//! | `beta` | shares between 0 and 1 |
//! | `stochastic_volatility` | returns with variance e^η |
//! | `multinomial` | categories |
//! | `ordinal` | ordered levels |
//! | `interval` | times in an interval |
//! | `row` | the fields of a row |
//! | `quantiles` | distribution functions of observations, their quantiles and draws |
//! | `words` | the parser of likelihoods in text form |

mod bernoulli;
mod beta;
mod beta_binomial;
mod binomial;
mod exponential;
mod gamma;
mod gaussian;
mod hurdle_negative_binomial;
mod hurdle_poisson;
mod interval;
mod known_error;
mod lognormal;
mod multinomial;
mod negative_binomial;
mod ordinal;
mod poisson;
mod probit;
mod quantiles;
mod row;
mod stochastic_volatility;
mod student_t;
mod tweedie;
mod weibull;
mod words;
mod zero_inflated_negative_binomial;
mod zero_inflated_poisson;

pub use quantiles::Predictive;
pub(crate) use row::{Fitted, Form, LikelihoodRow};
pub use row::{Response, Size};

use crate::{Observations, PriorDensity, SiteBound, Tail};

static ROWS: &[&LikelihoodRow] = &[
    &gaussian::ROW,
    &known_error::ROW,
    &poisson::ROW,
    &poisson::PROCESS,
    &bernoulli::ROW,
    &binomial::ROW,
    &negative_binomial::ROW,
    &gamma::ROW,
    &exponential::ROW,
    &exponential::CENSORED,
    &exponential::INTERVAL,
    &stochastic_volatility::ROW,
    &multinomial::ROW,
    &ordinal::ROW,
    &probit::ROW,
    &student_t::ROW,
    &lognormal::ROW,
    &lognormal::CENSORED,
    &lognormal::INTERVAL,
    &weibull::ROW,
    &weibull::CENSORED,
    &weibull::INTERVAL,
    &beta::ROW,
    &zero_inflated_poisson::ROW,
    &beta_binomial::ROW,
    &zero_inflated_negative_binomial::ROW,
    &hurdle_poisson::ROW,
    &hurdle_negative_binomial::ROW,
    &tweedie::ROW,
];

/// The largest number of parameters. Ordered levels have the most.
const MOST: usize = ordinal::MOST_LEVELS - 2;

/// The density of one observation given its linear predictor η, including the values of the parameters.
#[derive(Clone, Copy)]
pub struct Likelihood {
    row: &'static LikelihoodRow,
    /// The parameters in the order of the likelihood's row, followed by zeros.
    values: [f64; MOST],
    /// Number of categories, including the reference, or of ordered levels. It is 0 for other responses.
    categories: usize,
}

impl PartialEq for Likelihood {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
            && self.values == other.values
            && self.categories == other.categories
    }
}

impl Likelihood {
    fn of(row: &'static LikelihoodRow, given: &[f64]) -> Self {
        let mut values = [0.0; MOST];
        values[..given.len()].copy_from_slice(given);
        Self {
            row,
            values,
            categories: 0,
        }
    }

    /// Returns every likelihood once, with common parameter values. Variances, sizes, shapes, scales and steps are 1.
    /// There are three categories or levels and four degrees of freedom.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter()
            .map(|row| Self::of(row, row.usual).with_categories(3))
    }

    /// Returns the name of the likelihood on the command line.
    pub fn name(self) -> &'static str {
        self.row.name
    }

    /// Returns the likelihood with this name, with the parameter values of [`all`](Self::all).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|l| l.name() == name)
    }

    /// Returns a description of the distribution of y given η.
    pub fn law(self) -> &'static str {
        self.row.law
    }

    /// Returns the bounds that the likelihood supports, starting with the default.
    pub fn bounds(self) -> &'static [SiteBound] {
        self.row.bounds
    }

    /// Returns the names of the likelihood's parameters. All parameters are positive. Their number depends on the number
    /// of levels if the response has ordered levels.
    pub fn parameters(self) -> &'static [&'static str] {
        match self.row.response {
            Response::Level => &self.row.parameters[..self.categories.saturating_sub(2)],
            _ => self.row.parameters,
        }
    }

    /// Returns the values of the parameters, in the order of [`parameters`](Self::parameters).
    pub fn values(self) -> Vec<f64> {
        self.values[..self.parameters().len()].to_vec()
    }

    /// Replaces the parameters of the likelihood.
    ///
    /// # Panics
    /// Panics if `values` does not have one element per name in [`parameters`](Self::parameters).
    #[must_use]
    pub fn with_values(self, values: &[f64]) -> Self {
        assert_eq!(values.len(), self.parameters().len(), "likelihood values");
        Self {
            categories: self.categories,
            ..Self::of(self.row, values)
        }
    }

    /// Returns the value of parameter `k` that becomes 1 when responses are divided by `unit`.
    pub fn unit_of(self, k: usize, unit: f64) -> f64 {
        unit.powf(self.row.priors[k].power)
    }

    /// Returns the default prior of parameter `k`, for responses with unit variance.
    pub fn prior_of(self, k: usize) -> &'static PriorDensity {
        &self.row.priors[k].usual
    }

    /// Returns the tail that defines a penalised-complexity prior of parameter `k`.
    pub fn tail_of(self, k: usize) -> Tail {
        self.row.priors[k].tail
    }

    /// Whether the distribution of y − η is independent of η, so that responses may be shifted and scaled.
    pub fn is_location(self) -> bool {
        self.row.location
    }

    /// Returns the kind of response.
    pub fn response(self) -> Response {
        self.row.response
    }

    /// Returns the number of categories of a categorical response, including the reference.
    pub fn categories(self) -> Option<usize> {
        (self.row.response == Response::Category).then_some(self.categories)
    }

    /// Returns the number of ordered levels of a response that has ordered levels.
    pub fn levels(self) -> Option<usize> {
        (self.row.response == Response::Level).then_some(self.categories)
    }

    /// Replaces the number of categories or of ordered levels, if the likelihood has them. Parameters of levels that are
    /// added have the values of [`all`](Self::all).
    ///
    /// # Panics
    /// Panics if there are more levels than [`most_levels`](Self::most_levels).
    #[must_use]
    pub fn with_categories(self, categories: usize) -> Self {
        match self.row.response {
            Response::Category => Self { categories, ..self },
            Response::Level => {
                let own = categories.saturating_sub(2);
                let mut values = [0.0; MOST];
                for (k, value) in values[..own].iter_mut().enumerate() {
                    let given = self.values[k];
                    *value = if given > 0.0 {
                        given
                    } else {
                        self.row.usual[k]
                    };
                }
                Self {
                    values,
                    categories,
                    ..self
                }
            }
            _ => self,
        }
    }

    /// Returns the number of linear predictors of one observation. A categorical response has one predictor for each
    /// category except the last, which is the reference.
    pub fn predictors(self) -> usize {
        self.categories().map_or(1, |k| k.saturating_sub(1))
    }

    /// Whether log p is concave in η. If it is, no site has negative curvature.
    pub fn is_log_concave(self) -> bool {
        self.row.log_concave
    }

    /// Returns the number of units of exposure, or of trials, that an observation of this size has.
    pub fn factor(self, size: f64) -> f64 {
        match self.row.size {
            Size::Exposure | Size::Trials => size,
            Size::One | Size::Sd | Size::Event | Size::Until => 1.0,
        }
    }

    /// Returns the meaning of an observation's size.
    pub fn sized_by(self) -> Size {
        self.row.size
    }

    /// Computes the mean of an observation of this size. For stochastic volatility, whose mean is 0, the function returns
    /// the standard deviation instead. For ordered levels, it is the mean of the index of the level.
    pub fn mean(self, eta: f64, size: f64) -> f64 {
        (self.row.mean)(&self.values, eta, size)
    }

    /// Computes log p(y | η) with all constants, in nats, for an observation of this size. For a censored time, it is
    /// log P(Y > y | η), and for a time in an interval log P(y < Y ≤ size | η). The result is NaN for categories, which
    /// depend on several linear predictors.
    pub fn log_density(self, eta: f64, y: f64, size: f64) -> f64 {
        (self.row.log_density)(&self.values, eta, y, size)
    }

    /// Returns the requirement that the response `y` violates, if there is one. The size of a binomial count is its
    /// number of trials.
    pub fn refuses(self, y: f64, size: f64) -> Option<String> {
        self.row.response.refuses(y, size, self.categories)
    }

    /// Returns the requirement that the size of an observation violates, if there is one. Points of a Poisson process have
    /// the exposure 0. The end of an interval is not below its start, and is infinite for a right-censored time.
    pub fn refuses_size(self, y: f64, size: f64) -> Option<&'static str> {
        match self.row.size {
            Size::Until if size < y => {
                Some("at least the response, which is the start of the interval")
            }
            Size::Until if size == 0.0 && y == 0.0 => Some("positive if the response is 0"),
            Size::Until => None,
            _ if self.row.points && size == 0.0 && y > 0.0 => None,
            _ => self.row.size.refuses(size),
        }
    }

    pub(crate) fn form(self, data: &Observations) -> Form {
        (self.row.form)(&self, data)
    }

    pub(crate) fn by_parameters(self, at: &Fitted<'_>) -> Vec<f64> {
        (self.row.by_parameters)(&self.values, at)
    }
}

#[cfg(test)]
mod tests {
    use jensen_math::special::inv_logit;

    use super::*;
    use crate::site::Sites;
    use crate::{Covariance, Design, LatentModel, Structure};

    fn all() -> impl Iterator<Item = Likelihood> {
        Likelihood::all().map(|l| {
            let values: Vec<f64> = l.values().iter().map(|x| 1.5 * x + 0.3).collect();
            l.with_values(&values)
        })
    }

    #[test]
    fn likelihoods_are_read_back() {
        let stored = [
            (Likelihood::poisson(), r#""poisson""#),
            (
                Likelihood::gaussian(0.25),
                r#"{"gaussian":{"variance":0.25}}"#,
            ),
            (
                Likelihood::student_t(4.0, 0.5),
                r#"{"student-t":{"degrees":4.0,"scale":0.5}}"#,
            ),
            (
                Likelihood::multinomial(3),
                r#"{"multinomial":{"categories":3}}"#,
            ),
        ];
        for (likelihood, text) in stored {
            assert_eq!(serde_json::to_string(&likelihood).unwrap(), text);
        }
        for likelihood in all() {
            let text = serde_json::to_string(&likelihood).unwrap();
            assert_eq!(
                serde_json::from_str::<Likelihood>(&text).unwrap(),
                likelihood
            );
            let named = Likelihood::from_name(likelihood.name()).unwrap();
            assert_eq!(named.with_values(&likelihood.values()), likelihood);
        }
        assert_eq!(
            format!("{}", Likelihood::student_t(4.0, 0.5)),
            "student-t(degrees=4, scale=0.5)"
        );
        for text in [r#""fish""#, r#"{"gaussian":{}}"#, "3"] {
            assert!(serde_json::from_str::<Likelihood>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn densities_are_normalised() {
        for likelihood in all().filter(|l| l.categories().is_none()) {
            for eta in [-1.3, 0.4, 1.1] {
                let size = likelihood.sized_by().usual();
                let p = |y: f64| {
                    let size = match likelihood.sized_by() {
                        Size::Until => y,
                        _ => size,
                    };
                    likelihood.log_density(eta, y, size).exp()
                };
                let most = match likelihood.response() {
                    Response::Binary => 1,
                    Response::Trials => 7,
                    Response::Count => 2000,
                    Response::Level => 2,
                    Response::Number
                    | Response::Positive
                    | Response::NonNegative
                    | Response::Share => {
                        // No amount here has any probability of being above e^8, where the density is a long series.
                        let to = match likelihood.response() {
                            Response::NonNegative => 8.0,
                            _ => 34.0,
                        };
                        let (step, from) = (1e-3, -60.0);
                        let points = ((to - from) / step) as usize;
                        // In a coordinate in which each density falls at both ends.
                        let part = |i: usize| {
                            let x = from + (i as f64 + 0.5) * step;
                            let (y, slope) = match likelihood.response() {
                                Response::Positive | Response::NonNegative => (x.exp(), x.exp()),
                                Response::Share => (inv_logit(x), inv_logit(x) * inv_logit(-x)),
                                _ => (x, 1.0),
                            };
                            step * slope * p(y)
                        };
                        let zero = match (likelihood.response(), likelihood.sized_by()) {
                            (Response::NonNegative, size) if size != Size::Until => p(0.0),
                            _ => 0.0,
                        };
                        let total: f64 = zero + (0..points).map(part).sum::<f64>();
                        assert!((total - 1.0).abs() < 1e-5, "{likelihood} {total}");
                        continue;
                    }
                    Response::Category => unreachable!("left out"),
                };
                let total: f64 = (0..=most).map(|k| p(f64::from(k))).sum();
                assert!((total - 1.0).abs() < 1e-10, "{likelihood} {total}");
                let first: f64 = (0..=most).map(|k| f64::from(k) * p(f64::from(k))).sum();
                let expected = likelihood.mean(eta, size);
                assert!(
                    (first - expected).abs() < 1e-8 * expected,
                    "{likelihood} {first} {expected}"
                );
            }
        }
    }

    /// If the variance is zero, every bound equals −log p, and the bound's derivative with respect to the mean equals
    /// the derivative of −log p.
    #[test]
    fn forms_are_the_densities() {
        let responses = [0.0, 1.0, 2.0, 5.0, 0.7, 0.2, -1.3];
        let sizes = |likelihood: Likelihood| match likelihood.sized_by() {
            Size::Event => vec![1.0, 0.0],
            // Longer than all responses, and infinite.
            Size::Until => vec![6.0, f64::INFINITY],
            sized => vec![sized.usual()],
        };
        let cases = all().flat_map(|l| sizes(l).into_iter().map(move |size| (l, size)));
        for (likelihood, size) in cases.filter(|(l, _)| l.categories().is_none()) {
            let response: Vec<f64> = (responses.into_iter())
                .filter(|y| likelihood.refuses(*y, 7.0).is_none())
                .collect();
            assert!(response.len() > 1, "{likelihood}");
            let n = response.len();
            for bound in likelihood.bounds() {
                let model = LatentModel {
                    prior: Structure {
                        mean: vec![0.0; n],
                        covariance: Covariance::Diagonal(vec![1.0; n]),
                    },
                    design: Design::Identity,
                    likelihood,
                    bound: *bound,
                    observations: Observations {
                        response: response.clone(),
                        size: Some(vec![size; n]),
                        offset: None,
                    },
                };
                let sites = Sites::new(&model, None).unwrap();
                for eta in [-2.1, 0.3, 1.4] {
                    let minus = |eta: f64, y: f64| -likelihood.log_density(eta, y, size);
                    let values = sites.values(&vec![eta; n], &vec![0.0; n]);
                    for (value, y) in values.iter().zip(&response) {
                        // The pieces of the piecewise bound exceed the function by up to 1e-4 per trial.
                        let slack = if *bound == SiteBound::Piecewise {
                            2e-3
                        } else {
                            1e-10
                        };
                        let f = minus(eta, *y);
                        assert!(
                            (value.f - f).abs() < slack * (1.0 + f.abs()),
                            "{likelihood} {bound:?}, {y} at {eta}: {} and {f}",
                            value.f
                        );
                        let h = 1e-5;
                        let slope = (minus(eta + h, *y) - minus(eta - h, *y)) / (2.0 * h);
                        assert!(
                            (value.by_mean - slope).abs() < slack.max(1e-7) * 10.0,
                            "{likelihood} {bound:?}, {y} at {eta}: {} and {slope}",
                            value.by_mean
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn the_book_has_every_likelihood() {
        let book = include_str!("../../../../docs/book/src/latent.md");
        for likelihood in Likelihood::all() {
            let quoted = |names: &[&str]| -> String {
                let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
                quoted.join(", ")
            };
            let bounds: Vec<_> = likelihood.bounds().iter().map(|b| b.name()).collect();
            let cells = [
                quoted(&[likelihood.name()]),
                likelihood.law().to_owned(),
                quoted(likelihood.parameters()),
                bounds.join(", "),
            ];
            let row = format!("| {} |", cells.join(" | ")).replace("|  |", "| |");
            assert!(book.contains(&row), "the book's table needs the row\n{row}");
        }
    }
}
