//! Families of responses: one table of names, links, parameters, priors and densities.
//!
//! A density is a call of Stan: `{mu}` and the like stand for parameters, `{trials}` for the number of trials, `{/}` and `{*}` for
//! division and product element by element, `{logits}` for the logits of categories. Parameters have the meaning of the package brms (Bürkner, Journal of Statistical
//! Software 80, 2017).

mod functions;
mod mixture;
mod table;

pub use table::FAMILIES;

use crate::error::{Error, Result};

/// A map from a linear predictor to a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// η.
    Identity,
    /// exp η.
    Log,
    /// 1 / (1 + exp(−η)).
    Logit,
    /// Φ(η).
    Probit,
    /// 1 − exp(−exp η).
    Cloglog,
    /// 1 / η.
    Inverse,
    /// η².
    Sqrt,
    /// 2 atan η.
    TanHalf,
}

/// The names of the links.
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
    /// Its name.
    pub fn name(self) -> &'static str {
        let row = LINKS.iter().find(|(_, link)| *link == self);
        row.map_or("identity", |(name, _)| name)
    }

    /// What a predictor means, as Stan has it.
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

    /// The predictor of a mean.
    pub fn of(self, mean: f64) -> f64 {
        match self {
            Self::Identity => mean,
            Self::Log => mean.ln(),
            Self::Logit => (mean / (1.0 - mean)).ln(),
            // A start and the place of a prior need no more digits: the logistic curve of the same slope at 1/2.
            Self::Probit => (mean / (1.0 - mean)).ln() / 1.702,
            Self::Cloglog => (-(1.0 - mean).ln()).ln(),
            Self::Inverse => 1.0 / mean,
            Self::Sqrt => mean.sqrt(),
            Self::TanHalf => (mean / 2.0).tan(),
        }
    }
}

/// What a response may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// Any number.
    Real,
    /// Numbers above 0.
    Positive,
    /// Numbers from 0.
    NotNegative,
    /// Numbers between 0 and 1.
    Share,
    /// Numbers from 0 to below 1, or to 1.
    ShareWithEnds {
        /// Whether 1 is among them.
        one: bool,
    },
    /// Angles from −π to π.
    Angle,
    /// Whole numbers from 0.
    Count,
    /// Two values.
    Binary,
    /// Successes among trials.
    Trials,
    /// Categories in their order.
    Ordinal,
    /// Categories.
    Nominal,
    /// Counts of categories, several in a row.
    Counts,
    /// Shares of categories, which sum to 1 in each row.
    Shares,
    /// Several numbers, each with a predictor of its own.
    Several,
}

/// A parameter besides the mean.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// The link of its predictor, where it has a formula.
    pub link: Link,
    /// Its bounds as Stan declares them, where it has no formula.
    pub bounds: &'static str,
    /// Its prior, where it has no formula; empty for a scale of the response, which is exponential with the scale's mean.
    pub prior: &'static str,
    /// A value that it has where neither a formula nor a number is given, instead of being estimated.
    pub fixed: Option<f64>,
}

/// A family.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// What the response may be.
    pub response: Response,
    /// Links of the mean, the usual one first.
    pub links: &'static [Link],
    /// Parameters besides the mean.
    pub parameters: &'static [Parameter],
    /// The density's name and arguments.
    pub density: (&'static str, &'static str),
    /// A density that takes the predictor `{eta}` itself, for one link.
    pub fused: Option<(Link, &'static str, &'static str)>,
    /// The mean of a response.
    pub mean: &'static str,
    /// Functions that the density calls, as Stan.
    pub functions: &'static str,
    /// The two families of a mixture.
    pub parts: &'static [Family],
}

impl Family {
    /// A family by its name, with the link that may follow in parentheses: `binomial(probit)`.
    ///
    /// # Errors
    /// There is none, or it has no such link.
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

    /// The row of the table with a name, or with the name that another package has for it.
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

    /// The parameters that the formula of the mean is of; `names` are those of categories or of several responses.
    pub fn means(&self, names: &[String]) -> Vec<String> {
        let of = |name: &String| format!("mu_{name}");
        match self.response {
            Response::Several => names.iter().map(of).collect(),
            _ if self.has_logits() => names.iter().skip(1).map(of).collect(),
            _ if self.parts.is_empty() => vec!["mu".to_owned()],
            _ => vec!["mu_1".to_owned(), "mu_2".to_owned()],
        }
    }

    /// Whether a parameter is the mean of a response, or of one of several.
    pub fn is_mean(&self, parameter: &str) -> bool {
        parameter == "mu" || parameter.starts_with("mu_") && !self.has_logits()
    }

    /// Whether a response is a number with one mean.
    pub fn has_one_mean(&self) -> bool {
        !self.has_categories() && self.response != Response::Several && self.parts.is_empty()
    }

    /// Whether the predictors of a mixture are of one kind, so that only the order of their intercepts tells them apart.
    pub fn is_of_twins(&self) -> bool {
        matches!(self.parts, [first, second] if first.name == second.name)
    }

    /// Whether responses can be drawn.
    pub fn has_replicates(&self) -> bool {
        self.is_plain() || self.functions.contains("_rng(")
    }

    /// Whether censored and truncated responses have a density.
    pub fn has_distribution_function(&self) -> bool {
        let numbers = !self.has_categories() && self.response != Response::Several;
        numbers && (self.is_plain() || self.functions.contains("_lccdf("))
    }

    /// Whether values are whole numbers.
    pub fn is_discrete(&self) -> bool {
        use Response::{Binary, Count, Counts, Nominal, Ordinal, Trials};
        matches!(
            self.response,
            Count | Binary | Trials | Ordinal | Nominal | Counts
        )
    }

    /// Whether the density is one of Stan's library, which has distribution functions as well.
    pub fn is_plain(&self) -> bool {
        self.functions.is_empty()
    }

    /// Whether responses are categories.
    pub fn has_categories(&self) -> bool {
        self.response == Response::Ordinal || self.has_logits()
    }

    /// Whether each category but the first has a predictor of its own.
    pub fn has_logits(&self) -> bool {
        use Response::{Counts, Nominal, Shares};
        matches!(self.response, Nominal | Counts | Shares)
    }

    /// Whether a response has a column for each category, or is one of several.
    pub fn has_columns(&self) -> bool {
        use Response::{Counts, Several, Shares};
        matches!(self.response, Counts | Shares | Several)
    }

    /// Whether the predictor is a mean of logarithms.
    pub fn is_of_logs(&self) -> bool {
        let first = self.parts.first().unwrap_or(self);
        first.name.ends_with("lognormal")
    }

    /// The name of the dimension along the columns of a response.
    pub fn dimension(&self) -> &'static str {
        match self.response {
            Response::Several => "response",
            _ => "category",
        }
    }
}
