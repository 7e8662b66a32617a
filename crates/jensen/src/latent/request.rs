//! What the user asks for, in words.

use jensen_latent::prior::Spec;
use jensen_latent::{Likelihood, SiteBound};
use serde::{Deserialize, Serialize};

use crate::Error;

/// A latent Gaussian model of a table, as the user names it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The prior, as in `gp(rbf, lengthscale=2.7)`.
    pub prior: String,
    /// The likelihood, as in `gaussian(variance=0.1)`; parameters that are not given start at their defaults and are learnt.
    pub likelihood: String,
    /// The bound; the likelihood's first where absent.
    pub bound: Option<String>,
    /// The column that is modelled; the last where absent.
    pub response: Option<String>,
    /// The column of exposures.
    pub exposure: Option<String>,
    /// The column of numbers of trials.
    pub trials: Option<String>,
    /// The column that is added to the linear predictor.
    pub offset: Option<String>,
}

impl Request {
    /// The bound, or the likelihood's own first.
    ///
    /// # Errors
    /// There is no such bound, or it is not offered for the likelihood.
    pub fn bound(&self, likelihood: Likelihood) -> Result<SiteBound, Error> {
        let offered = likelihood.bounds();
        let Some(name) = &self.bound else {
            return Ok(offered[0]);
        };
        let bound = SiteBound::from_name(name).filter(|b| offered.contains(b));
        bound.ok_or_else(|| {
            let names: Vec<_> = offered.iter().map(|b| b.name()).collect();
            Error::Input(format!(
                "the bound `{name}` is not offered for the likelihood `{}`; choose {}",
                likelihood.name(),
                names.join(", ")
            ))
        })
    }
}

/// Reads a likelihood such as `poisson`, `gaussian(variance=0.1)` or `student-t(degrees=4, scale~1)`, and which of its parameters
/// are free: those not given, and those with `~`. The number of categories of `multinomial` comes from the data.
///
/// # Errors
/// There is no such likelihood or parameter, or a value is not positive.
pub fn parse_likelihood(text: &str) -> Result<(Likelihood, Vec<bool>), Error> {
    let fail = |message: String| Err(Error::Input(format!("likelihood `{text}`: {message}")));
    let spec = match Spec::parse(text) {
        Ok(spec) => spec,
        Err(error) => return fail(format!("column {}: {}", error.column(), error.message())),
    };
    let [term] = spec.terms.as_slice() else {
        return fail("there is one likelihood, no sum".to_owned());
    };
    let [call] = term.as_slice() else {
        return fail("there is one likelihood, no product".to_owned());
    };
    let Some(likelihood) = Likelihood::from_name(&call.name.text) else {
        let names: Vec<_> = Likelihood::all().map(Likelihood::name).collect();
        return fail(format!(
            "there is no `{}`; choose {}",
            call.name.text,
            names.join(", ")
        ));
    };
    let names = likelihood.parameters();
    let mut values = likelihood.values();
    let mut free = vec![true; names.len()];
    if let Some(word) = call.positional.first() {
        return fail(format!("unexpected `{}`", word.text));
    }
    for named in &call.named {
        let Some(at) = names.iter().position(|n| *n == named.key.text) else {
            return fail(match names {
                [] => format!("`{}` has no parameters", likelihood.name()),
                _ => format!(
                    "`{}` has no `{}`, only {}",
                    likelihood.name(),
                    named.key.text,
                    names.join(", ")
                ),
            });
        };
        let value = match named.values.as_slice() {
            [word] => word.text.parse::<f64>().ok(),
            _ => None,
        };
        match value.filter(|x| *x > 0.0 && x.is_finite()) {
            Some(value) => values[at] = value,
            None => return fail(format!("`{}` must be a positive number", named.key.text)),
        }
        free[at] = named.start;
    }
    Ok((likelihood.with_values(&values), free))
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
            ("poison", "there is no `poison`; choose gaussian, poisson"),
            (
                "gaussian(variance=-1)",
                "`variance` must be a positive number",
            ),
            ("gaussian(sd=1)", "no `sd`, only variance"),
            ("poisson(rate=1)", "`poisson` has no parameters"),
            ("gaussian + gaussian", "no sum"),
            ("gaussian(", "column 10: expected an argument"),
        ] {
            let error = parse_likelihood(text).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
