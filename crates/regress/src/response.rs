//! The left-hand side of a formula, evaluated over the rows: values, trials, censoring and weights.

use crate::basis::hazards;
use crate::error::{Error, Result};
use crate::evaluate::{Evaluator, State, Value, argument};
use crate::family::{Family, Response as Kinds};
use crate::formula::Response;
use crate::frame::Factor;
use crate::range::check;
use crate::syntax::{Argument, Expr, Kind};

/// The observed response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The expression of the response in the formula.
    pub name: String,
    /// The values of the response. Categories are represented by the values 1, 2, ….
    pub values: Vec<f64>,
    /// The names of the categories.
    pub categories: Vec<String>,
    /// The counts or shares of each category, for families with one column per category.
    pub parts: Vec<Vec<f64>>,
    /// The number of trials in each row, for families that have trials.
    pub trials: Option<Vec<f64>>,
    /// The weight of each row.
    pub weights: Option<Vec<f64>>,
    /// The censoring of each row: −1 if the true response is at most the value, 1 if it is at least the value, and 0 if
    /// it equals the value.
    pub censored: Option<Vec<f64>>,
    /// The boundary that the diffusion reached in each row. The value 1 is the upper boundary.
    pub decisions: Option<Vec<f64>>,
    /// The basis functions of a baseline hazard at the responses, and the integrals of these functions.
    pub hazards: Option<[Vec<Vec<f64>>; 2]>,
    /// The known standard error of each row.
    pub errors: Option<Vec<f64>>,
    /// Whether to estimate a residual standard deviation in addition to the known errors.
    pub with_sigma: bool,
    /// The exposure of each row. The rate of the row is multiplied by it.
    pub rate: Option<Vec<f64>>,
    /// The truncation bounds. No observation is possible outside them.
    pub bounds: [Option<f64>; 2],
}

const ADDITIONS: [(&str, &str); 7] = [
    ("trials", "the number of trials"),
    ("weights", "the number of repetitions of a row"),
    ("cens", "`none`, `left` or `right`, or 0, −1 or 1"),
    ("dec", "`lower` or `upper`, or 0 or 1"),
    ("se", "known standard errors"),
    ("rate", "exposure"),
    ("trunc", "bounds lb and ub"),
];

const ADDITIONS_ARE: &str =
    "additions are trials(n), weights(w), cens(c), dec(d), trunc(lb = 0), se(s), rate(e)";

/// The key under which the categories are stored among the states.
pub const CATEGORIES: &str = "categories of the response";

/// Evaluates the left-hand side of a formula for a family.
///
/// # Errors
/// Fails if a value is impossible under the family, or if the family does not support an addition.
pub fn observed(
    response: &Response,
    family: &Family,
    evaluator: &mut Evaluator<'_>,
) -> Result<Observed> {
    let mut made = Observed {
        name: response.value.to_string(),
        ..Observed::default()
    };
    additions(response, family, evaluator, &mut made)?;
    values(&response.value, family, evaluator, &mut made)?;
    if family.name == "cox" {
        made.hazards = Some(hazards(&made.values));
    }
    check(&response.value, family, evaluator, &made)?;
    Ok(made)
}

/// Evaluates the additions that predictions for new rows need, which are trials, exposures and standard errors.
///
/// # Errors
/// Fails if an addition cannot be evaluated.
pub fn exposed(
    response: &Response,
    family: &Family,
    evaluator: &mut Evaluator<'_>,
) -> Result<Observed> {
    let mut made = Observed::default();
    for addition in &response.additions {
        let Kind::Call(name, arguments) = &addition.kind else {
            continue;
        };
        let Some(first) = arguments.first() else {
            continue;
        };
        match name.as_str() {
            "trials" => made.trials = Some(evaluator.numbers(&first.value)?),
            "rate" => made.rate = Some(evaluator.numbers(&first.value)?),
            "se" => {
                made.errors = Some(evaluator.numbers(&first.value)?);
                made.with_sigma = with_sigma(arguments);
            }
            _ => {}
        }
    }
    if let (Kind::Call(name, arguments), true) = (
        &response.value.kind,
        matches!(family.response, Kinds::Trials | Kinds::Counts),
    ) && name == "cbind"
    {
        made.trials = Some(summed(&columns(arguments, evaluator)?));
    }
    Ok(made)
}

fn columns(arguments: &[Argument], evaluator: &mut Evaluator<'_>) -> Result<Vec<Vec<f64>>> {
    let columns = arguments.iter().map(|a| evaluator.numbers(&a.value));
    columns.collect()
}

fn summed(columns: &[Vec<f64>]) -> Vec<f64> {
    let rows = columns.first().map_or(0, Vec::len);
    let sum = |row: usize| columns.iter().map(|column| column[row]).sum();
    (0..rows).map(sum).collect()
}

fn with_sigma(arguments: &[Argument]) -> bool {
    let sigma = argument(arguments, &["sigma"], 1);
    sigma.is_some_and(|s| matches!(&s.kind, Kind::Name(n) if n == "TRUE" || n == "T"))
}

fn additions(
    response: &Response,
    family: &Family,
    evaluator: &mut Evaluator<'_>,
    made: &mut Observed,
) -> Result<()> {
    let text = evaluator.text;
    for addition in &response.additions {
        let error = |message: String| Error::at(text, addition.span, message);
        let Kind::Call(name, arguments) = &addition.kind else {
            return Err(
                error("the right side of `|` must be a function of columns".to_owned())
                    .help(ADDITIONS_ARE),
            );
        };
        if !ADDITIONS.iter().any(|(known, _)| known == name) {
            let near = jensen_data::similar_name(name, ADDITIONS.iter().map(|(known, _)| *known));
            return Err(
                error(format!("there is no addition {name}()")).help(match near {
                    Some(near) => format!("did you mean {near}()?"),
                    None => ADDITIONS_ARE.to_owned(),
                }),
            );
        }
        if name == "trunc" {
            made.bounds = bounds(arguments, addition, text)?;
            continue;
        }
        let Some(first) = arguments.first() else {
            let (_, takes) = ADDITIONS
                .iter()
                .find(|(known, _)| known == name)
                .unwrap_or(&("", ""));
            return Err(error(format!("{name}() takes {takes}")));
        };
        if name == "cens" {
            let meanings = [("none", 0.0), ("left", -1.0), ("right", 1.0)];
            made.censored = Some(meant(&first.value, &meanings, "censoring", evaluator)?);
            continue;
        }
        if name == "dec" {
            if family.name != "wiener" {
                return Err(
                    error(format!("the family {} has no decisions", family.name))
                        .help("decisions need --family wiener"),
                );
            }
            let meanings = [("lower", 0.0), ("upper", 1.0)];
            made.decisions = Some(meant(&first.value, &meanings, "decisions", evaluator)?);
            continue;
        }
        let x = evaluator.numbers(&first.value)?;
        if let Some(row) = x.iter().position(|x| *x < 0.0) {
            let message = format!(
                "{name}() must not be negative, but row {} of the rows used has {}",
                row + 1,
                x[row]
            );
            return Err(Error::at(text, first.value.span, message)
                .help("correct the table, or remove the row"));
        }
        match name.as_str() {
            "trials" if family.response == Kinds::Trials => made.trials = Some(x),
            "trials" => {
                return Err(error(format!("the family {} has no trials", family.name))
                    .help("trials need --family binomial or beta_binomial"));
            }
            "weights" => made.weights = Some(x),
            "rate" if family.response == Kinds::Count => made.rate = Some(x),
            "rate" => {
                return Err(error(format!("the family {} has no rates", family.name))
                    .help("rates need a family of counts; for other families write offset(log(column)) among \
                           the terms"));
            }
            _ => {
                if !matches!(family.name, "gaussian" | "student") {
                    return Err(error(format!(
                        "the family {} has no standard errors",
                        family.name
                    ))
                    .help("se() needs --family gaussian or student"));
                }
                made.with_sigma = with_sigma(arguments);
                made.errors = Some(x);
            }
        }
    }
    Ok(())
}

fn bounds(arguments: &[Argument], addition: &Expr, text: &str) -> Result<[Option<f64>; 2]> {
    let bound = |name: &str, place| match argument(arguments, &[name], place) {
        None => Ok(None),
        Some(Expr {
            kind: Kind::Number(x),
            ..
        }) => Ok(Some(*x)),
        Some(Expr {
            kind: Kind::Unary("-", inner),
            span,
        }) => match inner.kind {
            Kind::Number(x) => Ok(Some(-x)),
            _ => Err(Error::at(text, *span, "bounds are numbers")),
        },
        Some(other) => Err(Error::at(text, other.span, "bounds are numbers")),
    };
    let found = [bound("lb", 0)?, bound("ub", 1)?];
    match found {
        [None, None] => Err(Error::at(text, addition.span, "trunc() has no bound")
            .help("write trunc(lb = 0) or trunc(ub = 10)")),
        found => Ok(found),
    }
}

fn meant(
    expr: &Expr,
    meanings: &[(&str, f64)],
    of: &str,
    evaluator: &mut Evaluator<'_>,
) -> Result<Vec<f64>> {
    let text = evaluator.text;
    let listed = |one: &dyn Fn(&(&str, f64)) -> String| {
        let all: Vec<String> = meanings.iter().map(one).collect();
        let (last, rest) = all
            .split_last()
            .map_or(("", &[][..]), |(last, rest)| (last, rest));
        format!("{} or {last}", rest.join(", "))
    };
    let refused = |word: &str| {
        Error::at(text, expr.span, format!("`{word}` is not a value of {of}")).help(format!(
            "write {}, or {}",
            listed(&|(word, _)| (*word).to_owned()),
            listed(&|(_, x)| x.to_string())
        ))
    };
    match evaluator.value(expr)? {
        Value::Factor(factor) => {
            let meaning = |level: &String| {
                let found = meanings.iter().find(|(word, _)| word == level);
                found.map(|(_, x)| *x).ok_or_else(|| refused(level))
            };
            let meanings: Vec<f64> = factor.levels.iter().map(meaning).collect::<Result<_>>()?;
            let codes = factor.codes.iter();
            Ok(codes
                .map(|code| meanings[code.unwrap_or(0) as usize])
                .collect())
        }
        _ => {
            let x = evaluator.numbers(expr)?;
            match x.iter().find(|x| !meanings.iter().any(|(_, y)| y == *x)) {
                Some(other) => Err(refused(&other.to_string())),
                None => Ok(x),
            }
        }
    }
}

/// Reads the values of `cbind(a, b, …)`. The columns are successes and failures, or one column per category.
fn several(
    expr: &Expr,
    arguments: &[Argument],
    family: &Family,
    evaluator: &mut Evaluator<'_>,
    made: &mut Observed,
) -> Result<()> {
    let enough = match family.response {
        Kinds::Trials => arguments.len() == 2,
        _ => family.has_columns() && arguments.len() >= 2,
    };
    if !enough {
        return Err(Error::at(
            evaluator.text,
            expr.span,
            "cbind() combines successes and failures, for --family binomial, or one column per category, for \
             --family multinomial and dirichlet",
        )
        .help("write several responses as mvbind(a, b)"));
    }
    let mut parts = columns(arguments, evaluator)?;
    let sums = summed(&parts);
    if family.response == Kinds::Trials {
        made.values = parts.swap_remove(0);
        made.trials = Some(sums);
        return Ok(());
    }
    made.categories = arguments.iter().map(|a| a.value.to_string()).collect();
    let state = State::Levels {
        levels: made.categories.clone(),
        ordered: false,
    };
    evaluator.states.insert(CATEGORIES.to_owned(), state);
    match family.response {
        Kinds::Counts => made.trials = Some(sums.clone()),
        // Stan's density requires that the sums equal 1 to eight digits.
        _ => {
            for part in &mut parts {
                part.iter_mut().zip(&sums).for_each(|(y, sum)| *y /= sum);
            }
        }
    }
    made.values = sums;
    made.parts = parts;
    Ok(())
}

/// Reads the values of `mvbind(a, b, …)`, which has one column per response.
fn responses(
    expr: &Expr,
    arguments: &[Argument],
    family: &Family,
    evaluator: &mut Evaluator<'_>,
    made: &mut Observed,
) -> Result<()> {
    let error = |message: String| Error::at(evaluator.text, expr.span, message);
    if family.response != Kinds::Several {
        return Err(error(format!(
            "the family {} has no correlated residuals for mvbind()",
            family.name
        ))
        .help(
            "several responses need --family gaussian; for other families fit several regressions",
        ));
    }
    if arguments.len() < 2 {
        return Err(error("mvbind() needs at least two responses".to_owned())
            .help("write mvbind(a, b) ~ …, or a ~ … for one response"));
    }
    made.categories = arguments.iter().map(|a| a.value.to_string()).collect();
    made.parts = columns(arguments, evaluator)?;
    for (part, argument) in made.parts.iter().zip(arguments) {
        if part.iter().all(|y| *y == part[0]) {
            let message = format!("`{}` has the same value in all rows used", argument.value);
            return Err(Error::at(evaluator.text, argument.value.span, message)
                .help("without variation there is no effect to estimate"));
        }
    }
    let state = State::Levels {
        levels: made.categories.clone(),
        ordered: false,
    };
    evaluator.states.insert(CATEGORIES.to_owned(), state);
    made.values = made.parts[0].clone();
    Ok(())
}

/// Returns the values of a response. An expression with several columns is valid only as `cbind(successes, failures)`.
fn values(
    expr: &Expr,
    family: &Family,
    evaluator: &mut Evaluator<'_>,
    made: &mut Observed,
) -> Result<()> {
    let text = evaluator.text;
    if let Kind::Call(name, arguments) = &expr.kind
        && name == "cbind"
    {
        return several(expr, arguments, family, evaluator, made);
    }
    if let Kind::Call(name, arguments) = &expr.kind
        && name == "mvbind"
    {
        return responses(expr, arguments, family, evaluator, made);
    }
    if family.response == Kinds::Several {
        return Err(Error::at(
            text,
            expr.span,
            "the family multi_normal needs several responses",
        )
        .help("write mvbind(a, b) ~ …; --family gaussian has one response"));
    }
    if family.has_columns() {
        return Err(Error::at(
            text,
            expr.span,
            format!("the family {} needs one column per category", family.name),
        )
        .help("write cbind(a, b, c) ~ …; --family categorical needs one column with the category of each row"));
    }
    one_column(expr, family, evaluator, made)
}

fn one_column(
    expr: &Expr,
    family: &Family,
    evaluator: &mut Evaluator<'_>,
    made: &mut Observed,
) -> Result<()> {
    let text = evaluator.text;
    if !family.has_categories() && family.response != Kinds::Binary {
        if family.response == Kinds::Trials && made.trials.is_none() {
            return Err(Error::at(
                text,
                expr.span,
                format!("the family {} needs the number of trials", family.name),
            )
            .help(format!(
                "write `{expr} | trials(n) ~ …` with a column or a number n, or use --family \
                               bernoulli for 0 and 1"
            )));
        }
        made.values = evaluator.numbers(expr)?;
        return Ok(());
    }
    let factor = match evaluator.value(expr)? {
        Value::Factor(factor) => factor,
        Value::Number(_) | Value::Matrix(_) => {
            return Err(Error::at(text, expr.span, "a response must be one column"));
        }
        Value::Numbers(x) | Value::Truth(x) => {
            if family.response == Kinds::Ordinal
                && let Some(other) = x.iter().find(|x| x.fract() != 0.0)
            {
                return Err(Error::at(
                    text,
                    expr.span,
                    format!("categories must be integers or words, but `{expr}` has {other}"),
                )
                .help("use --family gaussian for arbitrary numbers"));
            }
            Factor::of_numbers(&x)
        }
    };
    let levels = match evaluator.states.get(CATEGORIES) {
        Some(State::Levels { levels, .. }) => levels.clone(),
        _ => factor.levels.to_vec(),
    };
    let state = State::Levels {
        levels: levels.clone(),
        ordered: factor.ordered,
    };
    evaluator.states.insert(CATEGORIES.to_owned(), state);
    let known = factor
        .among(&levels)
        .map_err(|word| Error::at(text, expr.span, format!("the fit has no category `{word}`")))?;
    if levels.len() < 2 {
        return Err(Error::at(
            text,
            expr.span,
            format!("`{expr}` has the same value in all rows used"),
        )
        .help("without variation there is no effect to estimate"));
    }
    if family.response == Kinds::Binary {
        if levels.len() > 2 {
            let shown: Vec<&str> = levels.iter().take(4).map(String::as_str).collect();
            return Err(Error::at(
                text,
                expr.span,
                format!("the family bernoulli needs two values, but `{expr}` has {}: {}, …", levels.len(), shown.join(", ")),
            )
            .help("use --family categorical or cumulative for more categories, binomial for counts of successes"));
        }
        made.values = known
            .codes
            .iter()
            .map(|code| f64::from(code.unwrap_or(0)))
            .collect();
    } else {
        made.values = known
            .codes
            .iter()
            .map(|code| f64::from(code.unwrap_or(0) + 1))
            .collect();
    }
    made.categories = levels;
    Ok(())
}
