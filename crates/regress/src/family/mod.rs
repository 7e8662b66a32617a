//! Families of responses. One table defines their names, links, parameters, priors and densities.
//!
//! A density is a call to a Stan function. Words in braces are placeholders: `{mu}` and similar words stand for
//! parameters, `{trials}` for the number of trials, `{/}` and `{*}` for elementwise division and multiplication, and
//! `{logits}` for the logits of categories. Parameters have the same meaning as in the R package brms (Bürkner, Journal
//! of Statistical Software 80, 2017).

mod functions;
mod mixture;
mod table;

pub use table::FAMILIES;

use crate::error::{Error, Result};

/// A link, which maps a linear predictor η to a parameter μ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// μ = η.
    Identity,
    /// μ = exp η.
    Log,
    /// μ = 1 / (1 + exp(−η)).
    Logit,
    /// μ = Φ(η).
    Probit,
    /// μ = 1 − exp(−exp η).
    Cloglog,
    /// μ = 1 / η.
    Inverse,
    /// μ = η².
    Sqrt,
    /// μ = 2 atan η.
    TanHalf,
}

/// The links and their names.
pub const LINKS: [(&str, Link); 8] = [
    ("identity", Link::Identity),
    ("log", Link::Log),
    ("logit", Link::Logit),
    ("probit", Link::Probit),
    ("cloglog", Link::Cloglog),
    ("inverse", Link::Inverse),
    ("sqrt", Link::Sqrt),
    ("tan_half", Link::TanHalf),
];

impl Link {
    /// Returns the name of the link.
    pub fn name(self) -> &'static str {
        let row = LINKS.iter().find(|(_, link)| *link == self);
        row.map_or("identity", |(name, _)| name)
    }

    /// Returns the parameter as a function of the predictor `eta`, in Stan syntax.
    pub fn inverse(self, eta: &str) -> String {
        match self {
            Self::Identity => eta.to_owned(),
            Self::Log => format!("exp({eta})"),
            Self::Logit => format!("inv_logit({eta})"),
            Self::Probit => format!("Phi({eta})"),
            Self::Cloglog => format!("inv_cloglog({eta})"),
            Self::Inverse => format!("inv({eta})"),
            Self::Sqrt => format!("square({eta})"),
            Self::TanHalf => format!("2 * atan({eta})"),
        }
    }

    /// Returns the predictor η for which the parameter equals `mean`.
    pub fn of(self, mean: f64) -> f64 {
        match self {
            Self::Identity => mean,
            Self::Log => mean.ln(),
            Self::Logit => (mean / (1.0 - mean)).ln(),
            // Initial values and prior locations do not need many digits, so the logistic curve with the same slope at
            // 1/2 replaces the exact inverse.
            Self::Probit => (mean / (1.0 - mean)).ln() / 1.702,
            Self::Cloglog => (-(1.0 - mean).ln()).ln(),
            Self::Inverse => 1.0 / mean,
            Self::Sqrt => mean.sqrt(),
            Self::TanHalf => (mean / 2.0).tan(),
        }
    }
}

/// The values that a response may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// Any number.
    Real,
    /// Numbers greater than 0.
    Positive,
    /// Non-negative numbers.
    NotNegative,
    /// Numbers strictly between 0 and 1.
    Share,
    /// Numbers from 0 to 1, where 0 is possible.
    ShareWithEnds {
        /// Whether 1 is also possible.
        one: bool,
    },
    /// Angles from −π to π.
    Angle,
    /// Non-negative integers.
    Count,
    /// One of two values.
    Binary,
    /// The number of successes among a number of trials.
    Trials,
    /// One of several ordered categories.
    Ordinal,
    /// One of several unordered categories.
    Nominal,
    /// Counts of several categories in each row.
    Counts,
    /// Shares of several categories, which sum to 1 in each row.
    Shares,
    /// Several numbers per row, each of which has its own predictor.
    Several,
}

/// A parameter of a family, other than the mean.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// The name of the parameter.
    pub name: &'static str,
    /// The link of the parameter's predictor. It is used only if the parameter has a formula.
    pub link: Link,
    /// The bounds of the parameter, in Stan syntax. They are used only if the parameter has no formula.
    pub bounds: &'static str,
    /// The prior, which is used only if the parameter has no formula. An empty string means that the parameter is a
    /// scale of the response. Its prior is then exponential, with the scale of the response as its mean.
    pub prior: &'static str,
    /// The default value, if the parameter is not estimated by default.
    pub fixed: Option<f64>,
}

/// A family of response distributions.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The name of the family.
    pub name: &'static str,
    /// The values that the response may have.
    pub response: Response,
    /// The links that the mean supports, starting with the default.
    pub links: &'static [Link],
    /// Parameters other than the mean.
    pub parameters: &'static [Parameter],
    /// The name of the Stan function for the density, and its arguments.
    pub density: (&'static str, &'static str),
    /// A link, and the name and arguments of a density function that takes the predictor `{eta}` on the scale of this
    /// link.
    pub fused: Option<(Link, &'static str, &'static str)>,
    /// The mean of a response, in Stan syntax.
    pub mean: &'static str,
    /// Definitions of the Stan functions that the density calls.
    pub functions: &'static str,
    /// The two families of a mixture. The slice is empty for other families.
    pub parts: &'static [Family],
}

impl Family {
    /// Parses the name of a family with an optional link in parentheses, such as `binomial(probit)`.
    ///
    /// # Errors
    /// Fails if the family does not exist, or if it does not support the link.
    pub fn parse(text: &str) -> Result<(&'static Self, Link)> {
        let (name, link) = match text.split_once('(') {
            Some((name, rest)) => {
                let link = rest.trim_end().trim_end_matches(')');
                let link = link
                    .trim()
                    .trim_start_matches("link")
                    .trim_start_matches([' ', '=']);
                (name.trim(), Some(link.trim_matches(['"', '\''])))
            }
            None => (text.trim(), None),
        };
        if let ("mixture", Some(parts)) = (name, link) {
            let family = mixture::of(parts)?;
            return Ok((family, family.links[0]));
        }
        let family = Self::named(name)?;
        let Some(link) = link else {
            return Ok((family, family.links[0]));
        };
        let found = LINKS
            .iter()
            .find(|(name, _)| *name == link)
            .map(|(_, link)| *link);
        match found.filter(|link| family.links.contains(link)) {
            Some(link) => Ok((family, link)),
            None => {
                let names: Vec<&str> = family.links.iter().map(|link| link.name()).collect();
                Err(
                    Error::new(format!("the family {} has no link `{link}`", family.name))
                        .help(format!("it has {}", names.join(", "))),
                )
            }
        }
    }

    /// Returns the family with this name. The name of the family in another package is also accepted.
    fn named(name: &str) -> Result<&'static Self> {
        let plain = match name {
            "normal" => "gaussian",
            "negative_binomial" | "neg_binomial" | "negbin" => "negbinomial",
            "Gamma" => "gamma",
            "inverse_gaussian" => "inverse.gaussian",
            "student_t" => "student",
            "ordinal" => "cumulative",
            other => other,
        };
        if let Some(family) = FAMILIES.iter().find(|family| family.name == plain) {
            return Ok(family);
        }
        let names = FAMILIES.iter().map(|family| family.name);
        let near = jensen_data::similar_name(plain, names.clone());
        let error = Error::new(format!("there is no family `{name}`"));
        Err(error.help(match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "families: {}, and mixture(gaussian, gaussian)",
                names.collect::<Vec<_>>().join(", ")
            ),
        }))
    }

    /// Returns the parameters that the formula of the mean predicts. `names` contains the names of the categories or of
    /// several responses.
    pub fn means(&self, names: &[String]) -> Vec<String> {
        let of = |name: &String| format!("mu_{name}");
        match self.response {
            Response::Several => names.iter().map(of).collect(),
            _ if self.has_logits() => names.iter().skip(1).map(of).collect(),
            _ if self.parts.is_empty() => vec!["mu".to_owned()],
            _ => vec!["mu_1".to_owned(), "mu_2".to_owned()],
        }
    }

    /// Returns whether a parameter is the mean of the response or of one of several responses.
    pub fn is_mean(&self, parameter: &str) -> bool {
        parameter == "mu" || parameter.starts_with("mu_") && !self.has_logits()
    }

    /// Returns whether a response is a single number with a single mean.
    pub fn has_one_mean(&self) -> bool {
        !self.has_categories() && self.response != Response::Several && self.parts.is_empty()
    }

    /// Returns whether both families of a mixture have the same kind of predictor. In this case, only the order of the
    /// intercepts distinguishes them.
    pub fn is_of_twins(&self) -> bool {
        matches!(self.parts, [first, second] if first.name == second.name)
    }

    /// Returns whether the program can draw random responses.
    pub fn has_replicates(&self) -> bool {
        self.is_plain() || self.functions.contains("_rng(")
    }

    /// Returns whether the family supports censored and truncated responses.
    pub fn has_distribution_function(&self) -> bool {
        let numbers = !self.has_categories() && self.response != Response::Several;
        numbers && (self.is_plain() || self.functions.contains("_lccdf("))
    }

    /// Returns whether responses are integers.
    pub fn is_discrete(&self) -> bool {
        use Response::{Binary, Count, Counts, Nominal, Ordinal, Trials};
        matches!(
            self.response,
            Count | Binary | Trials | Ordinal | Nominal | Counts
        )
    }

    /// Returns whether the density is in Stan's library. If it is, the library also contains the distribution
    /// functions.
    pub fn is_plain(&self) -> bool {
        self.functions.is_empty()
    }

    /// Returns whether responses are categories.
    pub fn has_categories(&self) -> bool {
        self.response == Response::Ordinal || self.has_logits()
    }

    /// Returns whether each category except the first has its own linear predictor.
    pub fn has_logits(&self) -> bool {
        use Response::{Counts, Nominal, Shares};
        matches!(self.response, Nominal | Counts | Shares)
    }

    /// Returns whether the response has several columns, which are one per category or one per response.
    pub fn has_columns(&self) -> bool {
        use Response::{Counts, Several, Shares};
        matches!(self.response, Counts | Shares | Several)
    }

    /// Returns whether the linear predictor is the mean of the response's logarithm.
    pub fn is_of_logs(&self) -> bool {
        let first = self.parts.first().unwrap_or(self);
        first.name.ends_with("lognormal")
    }

    /// Returns the name of the dimension that runs over the columns of a response.
    pub fn dimension(&self) -> &'static str {
        match self.response {
            Response::Several => "response",
            _ => "category",
        }
    }
}
