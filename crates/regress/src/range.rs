//! Checks that the values of a response are possible under its family.

use crate::error::{Error, Result};
use crate::evaluate::Evaluator;
use crate::family::{Family, Response as Kinds};
use crate::response::Observed;
use crate::syntax::Expr;

/// A function that checks a value, a description of the possible values, and advice for users whose values are not
/// possible.
type Range = (fn(f64) -> bool, &'static str, &'static str);

fn whole(y: f64) -> bool {
    y.fract() == 0.0 && y >= 0.0
}

fn range(family: &Family) -> Range {
    match family.response {
        Kinds::Real
        | Kinds::Binary
        | Kinds::Ordinal
        | Kinds::Nominal
        | Kinds::Counts
        | Kinds::Several => (|_| true, "", ""),
        Kinds::Shares => (
            // Shares are often rounded to three digits.
            |sum| (sum - 1.0).abs() < 5e-3,
            "shares that sum to 1",
            "divide each column by their sum",
        ),
        Kinds::Positive => (
            |y| y > 0.0,
            "numbers above 0",
            "hurdle_gamma and hurdle_lognormal allow zeros, and gaussian any number",
        ),
        Kinds::NotNegative => (
            |y| y >= 0.0,
            "numbers from 0",
            "gaussian and student allow any number",
        ),
        Kinds::Share => (
            |y| y > 0.0 && y < 1.0,
            "numbers between 0 and 1",
            "zero_inflated_beta and zero_one_inflated_beta allow the ends; divide percentages by 100",
        ),
        Kinds::ShareWithEnds { one: false } => (
            |y| (0.0..1.0).contains(&y),
            "numbers from 0 to below 1",
            "zero_one_inflated_beta allows both ends",
        ),
        Kinds::ShareWithEnds { one: true } => (
            |y| (0.0..=1.0).contains(&y),
            "numbers from 0 to 1",
            "of percentages take y / 100",
        ),
        Kinds::Angle => (
            |y| y.abs() <= std::f64::consts::PI,
            "angles from −π to π",
            "convert degrees with y * pi / 180",
        ),
        Kinds::Count | Kinds::Trials => (
            whole,
            "whole numbers from 0",
            "gaussian allows any number, and gamma any number above 0",
        ),
    }
}

/// Checks every value of the response.
///
/// # Errors
/// Fails if a value is impossible, or if an addition does not match the family or the values.
pub fn check(
    expr: &Expr,
    family: &Family,
    evaluator: &Evaluator<'_>,
    made: &Observed,
) -> Result<()> {
    let text = evaluator.text;
    let (fits, words, way) = range(family);
    if let Some(row) = made.values.iter().position(|y| !fits(*y)) {
        let message = format!(
            "the family {} needs {words}, but `{expr}` is {} in row {} of the rows used",
            family.name,
            made.values[row],
            row + 1
        );
        return Err(Error::at(text, expr.span, message).help(way));
    }
    check_parts(expr, family, text, made)?;
    if let Some(trials) = &made.trials {
        let over = |(y, n): (&f64, &f64)| !whole(*n) || y > n;
        if let Some(row) = made.values.iter().zip(trials).position(over) {
            let message = format!(
                "row {} of the rows used has {} successes in {} trials",
                row + 1,
                made.values[row],
                trials[row]
            );
            return Err(Error::at(text, expr.span, message)
                .help("trials must be integers and at least the number of successes"));
        }
    }
    check_additions(expr, family, text, made)?;
    let first = made.values.first().copied().unwrap_or(0.0);
    if family.response == Kinds::Real
        && made.errors.is_none()
        && made.values.iter().all(|y| *y == first)
    {
        return Err(Error::at(
            text,
            expr.span,
            format!("`{expr}` has the same value in all rows used"),
        )
        .help("without variation there is no effect to estimate"));
    }
    let [lower, upper] = made.bounds;
    let outside = |y: &f64| lower.is_some_and(|b| *y < b) || upper.is_some_and(|b| *y > b);
    if let Some(row) = made.values.iter().position(outside) {
        let message = format!(
            "`{expr}` is {} in row {} of the rows used, outside the bounds of trunc()",
            made.values[row],
            row + 1
        );
        return Err(
            Error::at(text, expr.span, message).help("remove such rows, or correct the bounds")
        );
    }
    Ok(())
}

fn check_additions(expr: &Expr, family: &Family, text: &str, made: &Observed) -> Result<()> {
    if (made.censored.is_some() || made.bounds != [None, None])
        && !family.has_distribution_function()
    {
        return Err(Error::at(text, expr.span, format!("Stan has no distribution function of the family {}", family.name))
            .help("cens() and trunc() need a family of Stan's library, such as gaussian, student, lognormal, \
                   gamma, weibull, poisson"));
    }
    if family.name == "wiener" && made.decisions.is_none() {
        return Err(Error::at(
            text,
            expr.span,
            "the family wiener needs the boundary that each row reached",
        )
        .help(format!(
            "write `{expr} | dec(d) ~ …` with a column d of `lower` and `upper`, or of 0 and 1"
        )));
    }
    Ok(())
}

fn check_parts(expr: &Expr, family: &Family, text: &str, made: &Observed) -> Result<()> {
    if family.response == Kinds::Several {
        return Ok(());
    }
    for (part, name) in made.parts.iter().zip(&made.categories) {
        let fits = |y: f64| match family.response {
            Kinds::Counts => y.fract() == 0.0 && y >= 0.0,
            _ => y > 0.0 && y < 1.0,
        };
        if let Some(row) = part.iter().position(|y| !fits(*y)) {
            let message = format!(
                "`{name}` is {} in row {} of the rows used",
                part[row],
                row + 1
            );
            return Err(Error::at(text, expr.span, message).help(match family.response {
                Kinds::Counts => "the family multinomial needs integers of at least 0",
                _ => "the family dirichlet needs shares between 0 and 1; for counts use --family multinomial",
            }));
        }
    }
    Ok(())
}
