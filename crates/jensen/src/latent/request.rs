//! The specification of a latent Gaussian model in text form.

use std::collections::HashSet;

use jensen_latent::prior::{Call, Distribution, Spec};
use jensen_latent::{Likelihood, PriorDensity, SiteBound, Size};
use serde::{Deserialize, Serialize};

use crate::Error;

/// The specification of a latent Gaussian model for the columns of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatentSpec {
    /// The prior of the latent variables, such as `gp(rbf, lengthscale=2.7)`.
    pub prior: String,
    /// The likelihood, such as `gaussian(variance=0.1)`. A parameter that is not given starts at its default value and
    /// is learnt.
    pub likelihood: String,
    /// The bound on the expected log likelihood. By default, this is the first bound that the likelihood supports.
    pub bound: Option<String>,
    /// The name of the response column. By default, this is the last column.
    pub response: Option<String>,
    /// The name of the column that contains the exposures.
    pub exposure: Option<String>,
    /// The name of the column that contains the numbers of trials.
    pub trials: Option<String>,
    /// The name of the column whose values are added to the linear predictor.
    pub offset: Option<String>,
    /// Whether to use responses and columns in their own units, without centring and scaling.
    #[serde(default)]
    pub unscaled: bool,
}

impl LatentSpec {
    /// Returns the specified bound, or the default bound of the likelihood.
    ///
    /// # Errors
    /// Fails if no bound has this name or if the likelihood does not support it.
    pub fn bound(&self, likelihood: Likelihood) -> Result<SiteBound, Error> {
        let offered = likelihood.bounds();
        let Some(name) = &self.bound else {
            return Ok(offered[0]);
        };
        let bound = SiteBound::from_name(name).filter(|b| offered.contains(b));
        bound.ok_or_else(|| {
            let names: Vec<_> = offered.iter().map(|b| b.name()).collect();
            Error::Input(format!(
                "the likelihood `{}` has no bound `{name}`; choose {}",
                likelihood.name(),
                names.join(", ")
            ))
        })
    }
}

impl LatentSpec {
    pub(super) fn check_columns(&self, likelihood: Likelihood) -> Result<(), Error> {
        let sized = likelihood.sized_by();
        for (flag, what, given, own) in [
            ("--exposure", "exposure", &self.exposure, Size::Exposure),
            ("--trials", "number of trials", &self.trials, Size::Trials),
        ] {
            if given.is_some() && sized != own {
                let which = Likelihood::all().filter(|l| l.sized_by() == own);
                let names: Vec<_> = which.map(Likelihood::name).collect();
                return Err(Error::setting(format!(
                    "{flag}: the likelihood `{}` has no {what}, which only {} {}; remove the flag{}",
                    likelihood.name(),
                    names.join(" and "),
                    if names.len() == 1 { "has" } else { "have" },
                    match own {
                        Size::Exposure => ", or give its logarithm as --offset",
                        _ => "",
                    }
                )));
            }
        }
        Ok(())
    }
}

/// A parsed specification. Its parameters are in the units of the response column.
#[derive(Clone, Debug)]
pub(super) struct Parsed {
    /// The likelihood. Parameters without a given value have their default values.
    pub(super) likelihood: Likelihood,
    pub(super) free: Vec<bool>,
    given: Vec<bool>,
    priors: Vec<Option<Distribution>>,
    /// The column with the known standard deviations of errors, the events, or the ends of intervals.
    pub(super) known: Option<String>,
    /// The ordered levels of the response that were given, from the lowest.
    pub(super) levels: Option<Vec<String>>,
}

impl Parsed {
    /// Sets the number of ordered levels, on which the number of parameters depends.
    pub(super) fn set_levels(&mut self, levels: usize) -> Result<(), Error> {
        let beyond = self.likelihood.parameters();
        self.likelihood = self.likelihood.with_categories(levels);
        let own = self.likelihood.parameters().len();
        let used = (own..beyond.len()).find(|k| self.given[*k] || self.priors[*k].is_some());
        if let Some(k) = used {
            return Err(Error::Input(format!(
                "the likelihood `{}` of {levels} levels has {own} steps, and no `{}`",
                self.likelihood.name(),
                beyond[k]
            )));
        }
        self.free.truncate(own);
        self.given.truncate(own);
        self.priors.truncate(own);
        Ok(())
    }

    /// Returns the likelihood for responses in units of `scale`. Given parameter values are converted from the units of
    /// the table. Default values are not converted, because they apply to the scaled responses.
    pub(super) fn measured(&self, likelihood: Likelihood, scale: f64) -> Likelihood {
        let values = self.likelihood.values();
        let inside = values
            .iter()
            .enumerate()
            .map(|(k, value)| match self.given[k] {
                true => value / likelihood.unit_of(k, scale),
                false => *value,
            });
        likelihood.with_values(&inside.collect::<Vec<_>>())
    }

    pub(super) fn density(&self, k: usize, scale: f64) -> PriorDensity {
        match &self.priors[k] {
            None => self.likelihood.prior_of(k).clone(),
            Some(given) => given.density(
                self.likelihood.tail_of(k),
                self.likelihood.unit_of(k, scale),
            ),
        }
    }
}

/// Parses a likelihood such as `poisson`, `gaussian(variance=0.1)` or `student-t(degrees=4, scale~1)`. The function
/// also returns, for each parameter, whether the parameter is free. A parameter is free if it has no value or if it is
/// written with `~`. The numbers of categories of `multinomial` and of levels of `ordinal` are determined by the data.
/// Before, `ordinal` has the largest number of levels.
///
/// # Errors
/// Fails if no likelihood or no parameter has the given name, or if a value is not positive.
pub fn parse_likelihood(text: &str) -> Result<(Likelihood, Vec<bool>), Error> {
    let parsed = read_likelihood(text)?;
    Ok((parsed.likelihood, parsed.free))
}

pub(super) fn read_likelihood(text: &str) -> Result<Parsed, Error> {
    let failed = |message: String| Error::Input(format!("likelihood `{text}`: {message}"));
    let fail = |message: String| Err(failed(message));
    let spec = match Spec::parse(text) {
        Ok(spec) => spec,
        Err(error) => return fail(format!("column {}: {}", error.column(), error.message())),
    };
    let [term] = spec.terms.as_slice() else {
        return fail("expected one likelihood, but found a sum".to_owned());
    };
    let [call] = term.as_slice() else {
        return fail("expected one likelihood, but found a product".to_owned());
    };
    let known = known_column(call).map_err(&failed)?;
    let name = match &known {
        Some((key, _)) => format!("{}({key}=COLUMN)", call.name.text),
        None => call.name.text.clone(),
    };
    let Some(likelihood) = Likelihood::from_name(&name) else {
        let names: Vec<_> = Likelihood::all().map(Likelihood::name).collect();
        return fail(format!("there is no `{name}`; choose {}", names.join(", ")));
    };
    let likelihood = match likelihood.most_levels() {
        Some(most) => likelihood.with_categories(most),
        None => likelihood,
    };
    let levels = given_levels(call, likelihood).map_err(&failed)?;
    let names = likelihood.parameters();
    let mut values = likelihood.values();
    let mut free = vec![true; names.len()];
    let mut given = vec![false; names.len()];
    let mut priors = vec![None; names.len()];
    if let Some(word) = call.positional.first() {
        return fail(format!("unexpected `{}`", word.text));
    }
    let is_levels = |key: &str| levels.is_some() && key == LEVELS;
    let is_parameter = |key: &str| !is_column(key) && !is_levels(key);
    for named in call.named.iter().filter(|n| is_parameter(&n.key.text)) {
        let Some(at) = names.iter().position(|n| *n == named.key.text) else {
            return fail(match names {
                [] if likelihood.sized_by() == Size::Sd => format!(
                    "`{}` has no `{}`; for a variance in addition to the known errors, add `iid()` to the prior",
                    likelihood.name(),
                    named.key.text
                ),
                [] => format!("`{}` has no parameters", likelihood.name()),
                _ => format!(
                    "`{}` has no `{}`, only {}",
                    likelihood.name(),
                    named.key.text,
                    names.join(", ")
                ),
            });
        };
        free[at] = named.start;
        priors[at] = Distribution::of(named).map_err(|(_, message)| failed(message))?;
        if priors[at].is_some() {
            continue;
        }
        given[at] = true;
        let value = match named.values.as_slice() {
            [word] => word.text.parse::<f64>().ok(),
            _ => None,
        };
        match value.filter(|x| *x > 0.0 && x.is_finite()) {
            Some(value) => values[at] = value,
            None => return fail(format!("`{}` must be a positive number", named.key.text)),
        }
    }
    Ok(Parsed {
        likelihood: likelihood.with_values(&values),
        free,
        given,
        priors,
        known: known.map(|(_, column)| column),
        levels,
    })
}

/// The key whose values are the ordered levels of the response.
const LEVELS: &str = "levels";

fn given_levels(call: &Call, likelihood: Likelihood) -> Result<Option<Vec<String>>, String> {
    let named = call.named.iter().find(|named| named.key.text == LEVELS);
    let (Some(named), Some(most)) = (named, likelihood.most_levels()) else {
        return Ok(None);
    };
    let levels: Vec<String> = named.values.iter().map(|word| word.text.clone()).collect();
    let distinct: HashSet<&String> = levels.iter().collect();
    let valid = !named.start && distinct.len() == levels.len();
    if !valid || !(2..=most).contains(&levels.len()) {
        return Err(format!(
            "`{LEVELS}` needs 2 to {most} distinct values from the lowest to the highest: `{LEVELS}=(low, middle, high)`"
        ));
    }
    Ok(Some(levels))
}

/// The keys whose value is a column, and the contents of the column.
const COLUMNS: [(&str, &str); 3] = [
    ("sd", "the known standard deviations"),
    ("event", "1 for observed and 0 for censored times"),
    (
        "until",
        "the ends of the intervals of times, which are empty for right-censored times",
    ),
];

fn is_column(key: &str) -> bool {
    COLUMNS.iter().any(|(own, _)| *own == key)
}

fn known_column(call: &Call) -> Result<Option<(&'static str, String)>, String> {
    let found = COLUMNS.iter().find_map(|(key, contents)| {
        let named = call.named.iter().find(|named| named.key.text == *key)?;
        Some((*key, *contents, named))
    });
    let Some((key, contents, named)) = found else {
        return Ok(None);
    };
    let others = (call.named.iter()).find(|n| n.key.text != key && is_column(&n.key.text));
    if let Some(other) = others {
        return Err(match (key, other.key.text.as_str()) {
            ("event", "until") => "write `until` without `event`: an empty end of an interval means that the event was not \
                                   observed, and an end that is equal to the response that it was"
                .to_owned(),
            (own, other) => format!("a likelihood has either `{own}` or `{other}`"),
        });
    }
    match named.values.as_slice() {
        [column] if !named.start => Ok(Some((key, column.text.clone()))),
        _ => Err(format!(
            "`{key}` needs one column with {contents}: `{key}=COLUMN`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likelihoods_with_parameters() {
        let (likelihood, free) = parse_likelihood("student-t(scale=2, degrees~7)").unwrap();
        let expected = Likelihood::student_t(7.0, 2.0);
        assert_eq!((likelihood, free), (expected, vec![true, false]));
        assert_eq!(
            parse_likelihood("poisson").unwrap(),
            (Likelihood::poisson(), vec![])
        );
        for (text, message) in [
            (
                "poison",
                "there is no `poison`; choose gaussian, gaussian(sd=COLUMN), poisson",
            ),
            (
                "gaussian(variance=-1)",
                "`variance` must be a positive number",
            ),
            ("gaussian(sd=(a, b))", "`sd` needs one column"),
            ("gaussian(sd~se)", "`sd` needs one column"),
            ("poisson(sd=se)", "there is no `poisson(sd=COLUMN)`"),
            ("gamma(event=seen)", "there is no `gamma(event=COLUMN)`"),
            ("gamma(until=end)", "there is no `gamma(until=COLUMN)`"),
            (
                "weibull(event=seen, until=end)",
                "write `until` without `event`",
            ),
            (
                "lognormal(until~end)",
                "`until` needs one column with the ends of the intervals",
            ),
            (
                "weibull(event=(a, b))",
                "`event` needs one column with 1 for observed",
            ),
            ("gaussian(sd=se, variance=1)", "add `iid()` to the prior"),
            ("poisson(levels=(a, b))", "`poisson` has no parameters"),
            (
                "ordinal(levels=(low, low))",
                "`levels` needs 2 to 10 distinct values",
            ),
            (
                "ordinal(step_9=1)",
                "`ordinal` has no `step_9`, only step_1",
            ),
            ("poisson(rate=1)", "`poisson` has no parameters"),
            ("gaussian + gaussian", "found a sum"),
            ("gaussian(", "column 10: expected an argument"),
        ] {
            let error = parse_likelihood(text).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
