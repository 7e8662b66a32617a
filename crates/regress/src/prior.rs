//! Priors that the user specifies, default priors, and the parameters to which they apply.
//!
//! The target of a prior is a single parameter or a class of parameters. In `b[x] ~ normal(0, 1)` it is the parameter
//! with this name in reports, and in `b ~ normal(0, 1)` it is a class.

use crate::error::{Error, Result, Span};

const DISTRIBUTIONS: [(&str, usize); 17] = [
    ("normal", 2),
    ("student_t", 3),
    ("cauchy", 2),
    ("double_exponential", 2),
    ("logistic", 2),
    ("gumbel", 2),
    ("exponential", 1),
    ("gamma", 2),
    ("inv_gamma", 2),
    ("lognormal", 2),
    ("weibull", 2),
    ("chi_square", 1),
    ("beta", 2),
    ("uniform", 2),
    ("lkj", 1),
    ("dirichlet", 1),
    ("std_normal", 0),
];

/// Joint priors of all coefficients and their arguments. The default values of the arguments are those of brms 2.18.
const SHRINKAGE: [(&str, &[(&str, f64)]); 2] = [
    (
        "horseshoe",
        &[
            ("df", 1.0),
            ("scale_global", 1.0),
            ("df_global", 1.0),
            ("scale_slab", 2.0),
            ("df_slab", 4.0),
        ],
    ),
    (
        "R2D2",
        &[("mean_R2", 0.5), ("prec_R2", 2.0), ("cons_D2", 0.5)],
    ),
];

/// A prior that the user specified.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// The text that the user wrote.
    pub text: String,
    /// The name of the parameter or of the class of parameters.
    pub target: String,
    /// The name of the distribution.
    pub name: String,
    /// The arguments of the distribution.
    pub arguments: String,
    /// The location of the target in the text.
    pub span: Span,
}

impl Given {
    /// Parses a prior.
    ///
    /// # Errors
    /// Fails if the text is not a prior.
    pub fn parse(text: &str) -> Result<Self> {
        let whole = Span {
            start: 0,
            end: text.len(),
        };
        let Some((target, density)) = text.split_once('~') else {
            return Err(Error::at(text, whole, "a prior has a `~`")
                .help("write a prior as `b ~ normal(0, 1)`"));
        };
        let (start, density_at) = (target.len() - target.trim_start().len(), target.len() + 1);
        let target = target.trim();
        let span = Span {
            start,
            end: start + target.len(),
        };
        let at = Span {
            start: density_at,
            end: text.len(),
        };
        let density = density.trim();
        let inside = density
            .strip_suffix(')')
            .and_then(|rest| rest.split_once('('));
        let Some((name, arguments)) = inside else {
            return Err(
                Error::at(text, at, "a prior must be a distribution with numbers")
                    .help("write it as `normal(0, 1)`"),
            );
        };
        let name = name.trim();
        if let Some((name, known)) = SHRINKAGE.iter().find(|(known, _)| *known == name) {
            if !(target == "b" || target.starts_with("b_")) || target.contains('[') {
                return Err(Error::at(
                    text,
                    span,
                    format!("{name} applies to all coefficients together"),
                )
                .help(format!("write b ~ {name}({arguments})")));
            }
            let numbers =
                shrinkage(known, arguments).map_err(|message| Error::at(text, at, message))?;
            return Ok(Self {
                text: text.to_owned(),
                target: target.to_owned(),
                name: (*name).to_owned(),
                arguments: numbers
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(", "),
                span,
            });
        }
        let Some((_, count)) = DISTRIBUTIONS.iter().find(|(known, _)| *known == name) else {
            let names = DISTRIBUTIONS.iter().map(|(known, _)| *known);
            let names = names.chain(SHRINKAGE.iter().map(|(known, _)| *known));
            let near = jensen_data::similar_name(name, names.clone());
            return Err(Error::at(
                text,
                at,
                format!("`{name}` is not a distribution for priors"),
            )
            .help(match near {
                Some(near) => format!("did you mean {near}?"),
                None => format!("there are {}", names.collect::<Vec<_>>().join(", ")),
            }));
        };
        let numbers: Vec<&str> = arguments
            .split(',')
            .map(str::trim)
            .filter(|a| !a.is_empty())
            .collect();
        if numbers.len() != *count {
            return Err(Error::at(
                text,
                at,
                format!("{name} needs {count} arguments, but has {}", numbers.len()),
            )
            .help(format!("they are the arguments of Stan's {name}")));
        }
        if let Some(other) = numbers
            .iter()
            .find(|a| !a.parse::<f64>().is_ok_and(f64::is_finite))
        {
            return Err(Error::at(text, at, format!("`{other}` is not a number"))
                .help("arguments of priors must be numbers"));
        }
        Ok(Self {
            text: text.to_owned(),
            target: target.to_owned(),
            name: name.to_owned(),
            arguments: numbers.join(", "),
            span,
        })
    }

    fn is_shrinkage(&self) -> bool {
        SHRINKAGE.iter().any(|(known, _)| *known == self.name)
    }

    /// Returns the distribution in Stan syntax.
    pub fn density(&self) -> String {
        format!("{}({})", self.name, self.arguments)
    }
}

fn shrinkage(known: &[(&str, f64)], arguments: &str) -> std::result::Result<Vec<f64>, String> {
    let mut values: Vec<f64> = known.iter().map(|(_, usual)| *usual).collect();
    let given = arguments
        .split(',')
        .map(str::trim)
        .filter(|a| !a.is_empty());
    for (at, argument) in given.enumerate() {
        let (place, value) = match argument.split_once('=') {
            Some((name, value)) => {
                let place = known.iter().position(|(other, _)| *other == name.trim());
                (place, value.trim())
            }
            None => ((at < known.len()).then_some(at), argument),
        };
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let Some(place) = place else {
            return Err(format!(
                "`{argument}` is not an argument: choose from {}",
                names.join(", ")
            ));
        };
        match value.parse::<f64>() {
            Ok(x) if x > 0.0 && x.is_finite() => values[place] = x,
            _ => {
                return Err(format!(
                    "{} must be a number above 0, not `{value}`",
                    names[place]
                ));
            }
        }
    }
    Ok(values)
}

/// A prior that the program uses.
#[derive(Clone, Debug, PartialEq)]
pub struct Used {
    /// The name of the parameter or of the class of parameters.
    pub target: String,
    /// The distribution in Stan syntax.
    pub density: String,
    /// Whether the user specified the prior.
    pub given: bool,
}

/// The priors of the user, and the priors that the program uses.
#[derive(Debug, Default)]
pub struct Priors {
    given: Vec<(Given, bool)>,
    names: Vec<String>,
    /// The priors that the program uses, in the order in which it uses them.
    pub used: Vec<Used>,
    /// The log densities of the priors, in Stan syntax.
    pub terms: Vec<String>,
}

impl Priors {
    /// Parses priors.
    ///
    /// # Errors
    /// Fails if a prior is invalid.
    pub fn parse(texts: &[String]) -> Result<Self> {
        let given = texts.iter().map(|text| Ok((Given::parse(text)?, false)));
        Ok(Self {
            given: given.collect::<Result<_>>()?,
            ..Self::default()
        })
    }

    /// Returns the user's prior for a parameter. `names` contains the parameter's name and its classes, starting with
    /// the most specific. If several priors match the same name, the last one applies.
    pub fn find(&mut self, names: &[&str]) -> Option<Given> {
        self.search(names, false)
    }

    /// Returns the user's joint prior of all coefficients, if there is one.
    pub fn shrinkage(&mut self, names: &[&str]) -> Option<Given> {
        self.search(names, true)
    }

    fn search(&mut self, names: &[&str], shrinkage: bool) -> Option<Given> {
        for name in names {
            if !self.names.iter().any(|known| known == name) {
                self.names.push((*name).to_owned());
            }
        }
        for name in names {
            if let Some((given, found)) = self
                .given
                .iter_mut()
                .rev()
                .find(|(given, _)| given.target == *name && given.is_shrinkage() == shrinkage)
            {
                *found = true;
                return Some(given.clone());
            }
        }
        None
    }

    /// Records a prior that the program uses.
    pub fn note(&mut self, target: &str, density: String, given: bool) {
        let used = Used {
            target: target.to_owned(),
            density,
            given,
        };
        if !self.used.contains(&used) {
            self.used.push(used);
        }
    }

    /// Checks that every prior has a target in the model.
    ///
    /// # Errors
    /// Fails if the target of a prior does not exist in the model.
    pub fn all_found(&self) -> Result<()> {
        let Some((given, _)) = self.given.iter().find(|(_, found)| !found) else {
            return Ok(());
        };
        if self
            .given
            .iter()
            .any(|(other, found)| *found && other.target == given.target)
        {
            return Err(Error::at(
                &given.text,
                given.span,
                format!("`{}` has two priors", given.target),
            )
            .help("remove one of them"));
        }
        let near = jensen_data::similar_name(&given.target, self.names.iter().map(String::as_str));
        let error = Error::at(
            &given.text,
            given.span,
            format!("the model has no parameter `{}`", given.target),
        );
        Err(error.help(match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let shown: Vec<&str> = self.names.iter().take(20).map(String::as_str).collect();
                format!("priors are possible for {}", shown.join(", "))
            }
        }))
    }
}
