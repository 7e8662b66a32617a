//! The table row that defines a likelihood.

use std::sync::Arc;

use crate::site::convex::Convex;
use crate::site::expectation::Potentials;
use crate::site::logistic::Logistic;
use crate::site::multinomial::Multinomial;
use crate::site::{SiteBound, Sites};
use crate::{Likelihood, Observations, PriorDensity, Tail};

/// The definition of a likelihood. Its functions receive the parameters in the row's order.
pub(crate) struct LikelihoodRow {
    pub name: &'static str,
    pub law: &'static str,
    pub parameters: &'static [&'static str],
    pub usual: &'static [f64],
    pub priors: &'static [ParameterPrior],
    /// Whether the distribution of y − η is independent of η. If it is, adding a constant to y is equivalent to adding
    /// it to η.
    pub location: bool,
    pub response: Response,
    pub size: Size,
    pub bounds: &'static [SiteBound],
    pub log_concave: bool,
    /// Whether a positive response of size 0 is a point of a process, with the log density y η.
    pub points: bool,
    /// The mean of an observation as a function of the parameters, η and the size.
    pub mean: fn(&[f64], f64, f64) -> f64,
    /// log p(y | η) with all constants, as a function of the parameters, η, y and the size. For a censored time, it is
    /// log P(Y > y | η), and for a time in an interval log P(y < Y ≤ size | η).
    pub log_density: fn(&[f64], f64, f64, f64) -> f64,
    /// P(Y ≤ y | η) as a function of the parameters, η, y and the size. For counts, y is a non-negative integer. The
    /// result is NaN for binary responses and for categories, whose means are probabilities.
    pub distribution: fn(&[f64], f64, f64, f64) -> f64,
    pub form: fn(&Likelihood, &Observations) -> Form,
    pub by_parameters: fn(&[f64], &Fitted<'_>) -> Vec<f64>,
}

pub(crate) struct ParameterPrior {
    pub power: f64,
    pub tail: Tail,
    /// The default prior of the parameter, for a response with unit variance.
    pub usual: PriorDensity,
}

/// −log 0.01 / 3. With this rate, a standard deviation exceeds three times the response's standard deviation with a
/// probability of 1 %. The parts of the prior have the same default.
const RATE: f64 = 1.535_056_728_662_697;

pub(super) const NOISE_VARIANCE: ParameterPrior = ParameterPrior {
    power: 2.0,
    tail: Tail::Deviation { power: 0.5 },
    usual: PriorDensity::Power {
        rate: RATE,
        power: 0.5,
    },
};

pub(super) const NOISE_SCALE: ParameterPrior = ParameterPrior {
    power: 1.0,
    tail: Tail::Deviation { power: 1.0 },
    usual: PriorDensity::Power {
        rate: RATE,
        power: 1.0,
    },
};

/// The prior for the size or shape of a gamma distribution with mean 1. The standard deviation of this distribution is
/// 1/√shape.
pub(super) const FRAILTY: ParameterPrior = ParameterPrior {
    power: 0.0,
    tail: Tail::Deviation { power: -0.5 },
    usual: PriorDensity::Power {
        rate: RATE,
        power: -0.5,
    },
};

/// The prior of the variance of a logarithm.
pub(super) const LOG_VARIANCE: ParameterPrior = ParameterPrior {
    power: 0.0,
    tail: Tail::Deviation { power: 0.5 },
    usual: PriorDensity::Power {
        rate: RATE,
        power: 0.5,
    },
};

/// The prior of the shape of a Weibull distribution. The logarithm of an observation has a standard deviation of
/// 1.28/shape.
pub(super) const SHAPE: ParameterPrior = ParameterPrior {
    power: 0.0,
    tail: Tail::Deviation { power: -1.0 },
    usual: PriorDensity::Power {
        rate: RATE,
        power: -1.0,
    },
};

/// The prior of the odds that a zero is a surplus zero. Under this prior, the probability of a surplus zero is
/// approximately uniform.
pub(super) const ODDS: ParameterPrior = ParameterPrior {
    power: 0.0,
    tail: Tail::Deviation { power: 1.0 },
    usual: PriorDensity::LogNormal { mean: 0.0, sd: 1.5 },
};

/// The prior of the dispersion of a Tweedie distribution. It is the variance of an amount whose mean is 1.
pub(super) const DISPERSION: ParameterPrior = ParameterPrior {
    power: 0.0,
    tail: Tail::Deviation { power: 0.5 },
    usual: PriorDensity::Power {
        rate: RATE,
        power: 0.5,
    },
};

/// The prior of the step between two cutpoints on the logit scale. Nineteen steps in twenty are between 0.05 and 19. The
/// shorter makes a level rare (at most 1.3 % of outcomes), and the longer separates its neighbours almost completely.
pub(super) const STEP: ParameterPrior = ParameterPrior {
    power: 0.0,
    tail: Tail::Deviation { power: 1.0 },
    usual: PriorDensity::LogNormal { mean: 0.0, sd: 1.5 },
};

/// The prior that Juárez and Steel (2010) propose.
pub(super) const DEGREES: ParameterPrior = ParameterPrior {
    power: 0.0,
    tail: Tail::Deviation { power: -0.5 },
    usual: PriorDensity::Gamma {
        shape: 2.0,
        rate: 0.1,
    },
};

/// The values that a response may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// A finite number.
    Number,
    /// A positive number.
    Positive,
    /// A number of at least 0.
    NonNegative,
    /// A number strictly between 0 and 1.
    Share,
    /// A count 0, 1, 2, ….
    Count,
    /// A count of at most the number of trials.
    Trials,
    /// 0 or 1.
    Binary,
    /// The index of a category, from 0.
    Category,
    /// The index of an ordered level, from 0.
    Level,
}

impl Response {
    pub(super) fn refuses(self, y: f64, trials: f64, categories: usize) -> Option<String> {
        let whole = y >= 0.0 && y == y.floor();
        let (inside, domain) = match self {
            Self::Number => (y.is_finite(), "a finite number".to_owned()),
            Self::Positive => (y > 0.0 && y.is_finite(), "a positive number".to_owned()),
            Self::NonNegative => (
                y >= 0.0 && y.is_finite(),
                "a number of at least 0".to_owned(),
            ),
            Self::Share => (y > 0.0 && y < 1.0, "a number between 0 and 1".to_owned()),
            Self::Count => (whole && y.is_finite(), "a count 0, 1, 2, …".to_owned()),
            Self::Trials => (
                whole && y <= trials && trials == trials.floor(),
                format!("a count between 0 and its number of trials, {trials}"),
            ),
            Self::Binary => (y == 0.0 || y == 1.0, "0 or 1".to_owned()),
            Self::Category => (
                whole && y < categories as f64,
                format!("a category 0, …, {}", categories.saturating_sub(1)),
            ),
            Self::Level => (
                whole && y < categories as f64,
                format!("a level 0, …, {}", categories.saturating_sub(1)),
            ),
        };
        (!inside).then_some(domain)
    }
}

/// The meaning of an observation's size. Exposures and trials multiply the observation's mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Every observation has size 1.
    One,
    /// The exposure of the observation.
    Exposure,
    /// The number of trials of the observation.
    Trials,
    /// The known standard deviation of the observation's error.
    Sd,
    /// Whether the event was observed at the time of the response (1), or had not happened by then (0).
    Event,
    /// The end of the interval of a time that starts at the response. It is equal to the response for an observed time, and
    /// infinite for a right-censored time.
    Until,
}

impl Size {
    /// Returns the name of the size in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::One => "size",
            Self::Exposure => "exposure",
            Self::Trials => "number of trials",
            Self::Sd => "standard deviation",
            Self::Event => "event",
            Self::Until => "end of the interval",
        }
    }

    /// Returns the requirement that a size violates, if there is one.
    pub fn refuses(self, size: f64) -> Option<&'static str> {
        match self {
            Self::Event => (size != 0.0 && size != 1.0)
                .then_some("1 (observed) or 0 (censored: the event had not happened by then)"),
            Self::Until => (size < 0.0).then_some("at least the response"),
            _ => (size <= 0.0).then_some("positive"),
        }
    }

    #[cfg(test)]
    pub(super) fn usual(self) -> f64 {
        match self {
            Self::One | Self::Event | Self::Until => 1.0,
            Self::Exposure => 2.0,
            Self::Trials => 7.0,
            Self::Sd => 0.6,
        }
    }
}

/// −log p of all observations as a function of η, with one variant for each form of site.
pub(crate) enum Form {
    /// The expectation has a closed form, and so does its conjugate.
    Convex(Vec<Convex>),
    /// `−y (η−t) + n log(1 + e^(η−t)) + c`.
    Logistic(Vec<Logistic>),
    /// Any smooth function, whose expectations are computed by quadrature.
    Smooth(Arc<dyn Potentials>),
    /// `log Σ_k e^(η_k)` minus the η_k of the observed category.
    Categorical(Vec<Multinomial>),
}

impl Form {
    pub(super) fn convex(data: &Observations, site: impl Fn(usize, f64) -> Convex) -> Self {
        Self::Convex(each(data, site))
    }

    pub(super) fn logistic(data: &Observations, site: impl Fn(usize, f64) -> Logistic) -> Self {
        Self::Logistic(each(data, site))
    }

    pub(super) fn smooth<P>(data: &Observations, site: impl Fn(usize, f64) -> P) -> Self
    where
        Vec<P>: Potentials + 'static,
    {
        Self::Smooth(Arc::new(each(data, site)))
    }
}

fn each<T>(data: &Observations, site: impl Fn(usize, f64) -> T) -> Vec<T> {
    let responses = data.response.iter().enumerate();
    responses.map(|(i, y)| site(i, *y)).collect()
}

pub(crate) struct Fitted<'a> {
    pub data: &'a Observations,
    pub sites: &'a Sites,
    pub m: &'a [f64],
    pub v: &'a [f64],
}

pub(super) fn no_distribution(_: &[f64], _: f64, _: f64, _: f64) -> f64 {
    f64::NAN
}

pub(super) fn no_parameters(_: &[f64], _: &Fitted<'_>) -> Vec<f64> {
    Vec::new()
}
