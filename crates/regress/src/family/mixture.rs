//! Mixtures of two families in the table. Each response comes from one of the two.

use std::sync::LazyLock;

use super::{FAMILIES, Family, Link, Parameter, Response};
use crate::error::{Error, Result};

const SHARE: Parameter = Parameter {
    name: "theta2",
    link: Link::Logit,
    bounds: "<lower=0, upper=1>",
    prior: "beta(1, 1)",
    fixed: None,
};

/// The list is built only once, because families must be static.
static MIXTURES: LazyLock<Vec<Family>> = LazyLock::new(|| {
    let pairs = FAMILIES
        .iter()
        .flat_map(|first| FAMILIES.iter().map(move |second| (first, second)));
    pairs
        .filter(|(first, second)| fit(first, second))
        .map(|(first, second)| mixed(first, second))
        .collect()
});

/// Returns whether two families can be mixed. Both must have the same kind of response, predictors on the same scale,
/// and functions for random numbers.
fn fit(first: &Family, second: &Family) -> bool {
    let numbers = |family: &Family| {
        family.has_one_mean()
            && family.response != Response::Binary
            && family.has_replicates()
            && !["[n]", "{dec}"]
                .iter()
                .any(|own| family.density.1.contains(own))
    };
    numbers(first)
        && numbers(second)
        && first.response == second.response
        && first.links[0] == second.links[0]
        && first.is_of_logs() == second.is_of_logs()
}

/// Returns the mixture of the two families that `parts` lists in the form `first, second`.
///
/// # Errors
/// Fails if `parts` does not list two families, or if the two families cannot be mixed.
pub fn of(parts: &str) -> Result<&'static Family> {
    let names: Vec<&str> = parts.split(',').map(str::trim).collect();
    let [first, second] = names.as_slice() else {
        return Err(
            Error::new(format!("a mixture needs two families, not {}", names.len()))
                .help("write --family 'mixture(gaussian, gaussian)'"),
        );
    };
    let (first, second) = (Family::named(first)?, Family::named(second)?);
    let name = named(first, second);
    let found = MIXTURES.iter().find(|family| family.name == name);
    found.ok_or_else(|| {
        Error::new(format!(
            "a mixture of the families {} and {} is not possible",
            first.name, second.name
        ))
        .help("a mixture needs two families of numbers with the same range and link, such as gaussian and \
               student, or poisson and negbinomial")
    })
}

fn named(first: &Family, second: &Family) -> String {
    format!("mixture({}, {})", first.name, second.name)
}

fn kept(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

fn mixed(first: &'static Family, second: &'static Family) -> Family {
    let mut parameters = Vec::new();
    let mut arguments = Vec::new();
    if first.response == Response::Trials {
        arguments.push("trials".to_owned());
    }
    for (family, number) in [(first, 1), (second, 2)] {
        arguments.push(format!("mu{number}"));
        for parameter in family.parameters {
            let name = kept(format!("{}{number}", parameter.name));
            arguments.push(name.to_owned());
            parameters.push(Parameter { name, ..*parameter });
        }
    }
    arguments.push(SHARE.name.to_owned());
    parameters.push(SHARE);
    let templates: Vec<String> = arguments.iter().map(|name| format!("{{{name}}}")).collect();
    let mean = format!(
        "(1 - {{theta2}}) {{*}} ({}) + {{theta2}} {{*}} ({})",
        numbered(first, first.mean, 1),
        numbered(second, second.mean, 2)
    );
    Family {
        name: kept(named(first, second)),
        parameters: Vec::leak(parameters),
        density: ("mixture", kept(templates.join(", "))),
        fused: None,
        mean: kept(mean),
        functions: kept(functions(first, second, &arguments)),
        parts: Vec::leak(vec![*first, *second]),
        ..*first
    }
}

fn numbered(family: &Family, template: &str, number: usize) -> String {
    let names = family.parameters.iter().map(|p| p.name).chain(["mu"]);
    names.fold(template.to_owned(), |text, name| {
        text.replace(&format!("{{{name}}}"), &format!("{{{name}{number}}}"))
    })
}

fn functions(first: &Family, second: &Family, arguments: &[String]) -> String {
    let (kind, y) = match first.is_discrete() {
        true => ("lpmf", "int"),
        false => ("lpdf", "real"),
    };
    let declared: Vec<String> = arguments
        .iter()
        .map(|name| match name.as_str() {
            "trials" => "int trials".to_owned(),
            name => format!("real {name}"),
        })
        .collect();
    let declared = declared.join(", ");
    let call = |family: &Family, number: usize| {
        let text = numbered(family, family.density.1, number);
        let text = text.replace("{/}", "/").replace("{*}", "*");
        text.replace(['{', '}'], "")
    };
    let ([a, b], [one, two]) = (
        [first.density.0, second.density.0],
        [call(first, 1), call(second, 2)],
    );
    let mut text = first.functions.to_owned();
    if second.functions != first.functions {
        text += second.functions;
    }
    text + &format!(
        "
  // Of the second family with probability theta2, else of the first.
  real mixture_{kind}({y} y, {declared}) {{
    return log_mix(theta2, {b}_{kind}(y | {two}), {a}_{kind}(y | {one}));
  }}
  {y} mixture_rng({declared}) {{
    return bernoulli_rng(theta2) == 1 ? {b}_rng({two}) : {a}_rng({one});
  }}"
    )
}
