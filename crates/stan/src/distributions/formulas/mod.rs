//! Log densities and distribution functions, one table from name to formula.
//!
//! A formula adds *terms* to a [`Density`], each with the arguments it involves, so that calls without their additive
//! constants can leave out what involves no parameter. Terms are written so that little is done for each element and
//! scalars stay outside of sums; the graph folds whatever only depends on data.
//!
//! | file | subject |
//! | --- | --- |
//! | `real_line` | on ℝ |
//! | `half_line` | on (0, ∞) |
//! | `interval` | on (0, 1) and other intervals, on simplexes |
//! | `counts` | integers |
//! | `categories` | categories and ordered outcomes |
//! | `regressions` | generalised linear models |
//! | `multivariate` | vectors |
//! | `covariances` | matrices |
//! | `distribution` | distribution functions |

pub mod categories;
pub mod counts;
pub mod covariances;
pub mod distribution;
pub mod half_line;
pub mod interval;
pub mod multivariate;
pub mod real_line;
pub mod regressions;

use crate::program::Level;
use crate::symbolic::known;
use crate::symbolic::tape::{E, Tape};
use crate::symbolic::value::{SHORT, Sym};
use crate::value::error::{FnError, FnResult};

pub use jensen_math::constants::HALF_LOG_TWO_PI;

/// A condition on an argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// Not NaN.
    NotNan,
    /// Neither infinite nor NaN.
    Finite,
    /// Above 0.
    Positive,
    /// Above 0, where the formula itself turns other values into NaN.
    PositiveByFormula,
    /// 0 or above.
    NonNegative,
    /// Between 0 and 1.
    Unit,
}

impl Domain {
    fn holds(self, x: f64) -> bool {
        match self {
            Domain::NotNan => !x.is_nan(),
            Domain::Finite => x.is_finite(),
            Domain::Positive | Domain::PositiveByFormula => x > 0.0,
            Domain::NonNegative => x >= 0.0,
            Domain::Unit => (0.0..=1.0).contains(&x),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Domain::NotNan => "not nan",
            Domain::Finite => "finite",
            Domain::Positive | Domain::PositiveByFormula => "positive",
            Domain::NonNegative => "nonnegative",
            Domain::Unit => "in the interval [0, 1]",
        }
    }
}

/// One argument of a univariate density.
#[derive(Clone, Copy, Debug)]
pub struct Arg<'g> {
    /// One element, or one for each outcome.
    pub e: E<'g>,
    /// Whether its expression depends on parameters.
    pub level: Level,
}

/// A log density being built.
#[derive(Debug)]
pub struct Density<'g> {
    /// Where.
    pub tape: &'g Tape,
    /// Name of the function, for messages.
    pub name: &'static str,
    /// Leave out terms that only involve data.
    drop: bool,
    /// Arguments.
    pub args: Vec<Arg<'g>>,
    /// Number of outcomes that scalars are repeated for.
    pub n: usize,
    terms: Vec<E<'g>>,
}

impl<'g> Density<'g> {
    /// The arguments as values of the graph.
    ///
    /// # Panics
    /// When the number is not N: the signature table and the formulas disagree.
    pub fn get<const N: usize>(&self) -> [E<'g>; N] {
        let all: Vec<E<'g>> = self.args.iter().map(|a| a.e).collect();
        all.try_into().unwrap_or_else(|all: Vec<E<'g>>| {
            panic!("{} takes {N} arguments, not {}", self.name, all.len())
        })
    }

    /// A constant.
    pub fn num(&self, x: f64) -> E<'g> {
        self.tape.constant(x)
    }

    /// Adds the sum of `x` over the outcomes, unless it is to be left out: `involved` are the positions of the
    /// arguments it depends on.
    pub fn term(&mut self, involved: &[usize], x: E<'g>) {
        if self.keeps(involved) {
            let total = self.total(x);
            self.terms.push(total);
        }
    }

    /// Whether a term with these arguments is kept.
    pub fn keeps(&self, involved: &[usize]) -> bool {
        !self.drop || involved.iter().any(|i| self.args[*i].level == Level::Param)
    }

    /// The sum over the outcomes; a scalar counts for each.
    pub fn total(&self, x: E<'g>) -> E<'g> {
        if x.len() == 1 && self.n != 1 {
            self.n as f64 * x
        } else {
            x.sum()
        }
    }

    /// Checks argument `i`: a known value must satisfy the condition, otherwise draws that violate it are rejected.
    ///
    /// # Errors
    /// When a known value violates it.
    pub fn check(&self, i: usize, what: &str, domain: Domain) -> FnResult<()> {
        check(self.name, self.args[i].e, what, domain)
    }

    /// An error that says which function it comes from.
    pub fn invalid(&self, message: impl std::fmt::Display) -> FnError {
        FnError::invalid(format!("{}: {message}", self.name))
    }

    /// Log density −∞ for outcomes outside the support: where `bad` is not 0.
    pub fn outside(&mut self, bad: E<'g>) {
        let bad = bad.sum();
        if bad.scalar() == Some(0.0) {
            return;
        }
        let (zero, infinite) = (self.num(0.0), self.num(f64::NEG_INFINITY));
        self.terms.push(bad.select(infinite, zero));
    }
}

/// See [`Density::check`].
///
/// # Errors
/// When a known value violates the condition.
pub fn check(name: &str, e: E<'_>, what: &str, domain: Domain) -> FnResult<()> {
    let values = if e.is_record() { None } else { e.values() };
    if let Some(visited) = e.visited().filter(|_| e.is_record()) {
        return match visited.iter().find(|(_, x)| !domain.holds(*x)) {
            None => Ok(()),
            Some((r, x)) => Err(FnError::domain(format!(
                "{name}: {what} is {x} in record {}, but must be {}!",
                r + 1,
                domain.words()
            ))),
        };
    }
    if let Some(values) = values {
        return match values.iter().position(|x| !domain.holds(*x)) {
            None => Ok(()),
            Some(at) => {
                let place = if values.len() > 1 {
                    format!("[{}]", at + 1)
                } else {
                    String::new()
                };
                Err(FnError::domain(format!(
                    "{name}: {what}{place} is {}, but must be {}!",
                    values[at],
                    domain.words()
                )))
            }
        };
    }
    let zero = e.num(0.0);
    match domain {
        // Infinities and NaN show in the log density by themselves.
        Domain::NotNan | Domain::Finite | Domain::PositiveByFormula => {}
        Domain::Positive if !known::range(e).positive() => e.tape.reject_where(e.le(zero)),
        Domain::NonNegative if !known::range(e).nonnegative() => e.tape.reject_where(e.lt(zero)),
        Domain::Unit if !known::range(e).unit() => {
            e.tape.reject_where(e.lt(zero) + e.num(1.0).lt(e));
        }
        Domain::Positive | Domain::NonNegative | Domain::Unit => {}
    }
    Ok(())
}

/// A formula of outcomes and parameters that are numbers, one for all outcomes or one for each.
pub type Univariate = for<'g> fn(&mut Density<'g>) -> FnResult<()>;

/// An argument as it is passed.
#[derive(Clone, Copy, Debug)]
pub struct Passed<'a> {
    /// The value.
    pub sym: &'a Sym,
    /// Whether its expression depends on parameters.
    pub level: Level,
}

/// What a formula of whole vectors and matrices is called with.
#[derive(Debug)]
pub struct Whole<'g, 'a> {
    /// The arguments.
    pub passed: &'a [Passed<'a>],
    /// Collects the terms; its arguments stay empty and its count is 1.
    pub density: Density<'g>,
}

/// A formula that looks at the shapes of its arguments.
pub type WholeFormula = for<'g, 'a> fn(&mut Whole<'g, 'a>) -> FnResult<()>;

/// A formula in the table.
#[derive(Clone, Copy)]
pub enum Formula {
    /// Over numbers.
    Univariate(Univariate),
    /// Over whole values.
    Whole(WholeFormula),
}

/// The formula of a density or distribution function, if it has one.
pub fn find(name: &str) -> Option<Formula> {
    let univariate = [
        real_line::TABLE,
        half_line::TABLE,
        interval::TABLE,
        counts::TABLE,
        distribution::TABLE,
    ];
    let whole = [
        interval::WHOLE,
        categories::TABLE,
        regressions::TABLE,
        multivariate::TABLE,
        covariances::TABLE,
    ];
    let univariate = univariate
        .into_iter()
        .flatten()
        .map(|(n, f)| (*n, Formula::Univariate(*f)));
    let whole = whole
        .into_iter()
        .flatten()
        .map(|(n, f)| (*n, Formula::Whole(*f)));
    univariate
        .chain(whole)
        .find(|(n, _)| *n == name)
        .map(|(_, formula)| formula)
}

impl Formula {
    /// The log density, without terms that only involve data if `drop`.
    ///
    /// # Errors
    /// When sizes do not fit, or a known argument is outside its domain.
    pub fn build<'g>(
        self,
        tape: &'g Tape,
        name: &'static str,
        args: &[Passed<'_>],
        drop: bool,
    ) -> FnResult<E<'g>> {
        match self {
            Formula::Univariate(formula) => univariate(formula, tape, name, args, drop),
            Formula::Whole(formula) => {
                let density = Density {
                    tape,
                    name,
                    drop,
                    args: args
                        .iter()
                        .map(|a| Arg {
                            e: tape.constant(0.0),
                            level: a.level,
                        })
                        .collect(),
                    n: 1,
                    terms: Vec::new(),
                };
                let mut whole = Whole {
                    passed: args,
                    density,
                };
                formula(&mut whole)?;
                Ok(tape.add_all(&whole.density.terms))
            }
        }
    }
}

fn univariate<'g>(
    formula: Univariate,
    tape: &'g Tape,
    name: &'static str,
    passed: &[Passed<'_>],
    drop: bool,
) -> FnResult<E<'g>> {
    let mut n: Option<(usize, &Sym)> = None;
    for arg in passed.iter().filter(|a| !a.sym.is_scalar()) {
        let size = arg.sym.dims()?.size();
        match n {
            Some((first, other)) if first != size => {
                return Err(FnError::invalid(format!(
                    "{name}: sizes do not match: {} and {}",
                    other.describe(),
                    arg.sym.describe()
                )));
            }
            _ => n = Some((size, arg.sym)),
        }
    }
    let n = n.map_or(1, |(n, _)| n);
    if n == 0 {
        return Ok(tape.constant(0.0));
    }
    let run = |args: Vec<Arg<'g>>, n: usize| -> FnResult<Vec<E<'g>>> {
        let mut density = Density {
            tape,
            name,
            drop,
            args,
            n,
            terms: Vec::new(),
        };
        formula(&mut density)?;
        Ok(density.terms)
    };
    // In an unrolled loop short vectors are taken apart: the copies of the scalar formula are joined again later.
    let records = passed.iter().any(|a| a.sym.has_records(tape));
    if n > 1 && (records || tape.unrolling.get() && n <= SHORT) {
        let mut terms = Vec::new();
        for i in 0..n {
            let args = passed.iter().map(|a| {
                let e = if a.sym.is_scalar() {
                    a.sym.e(tape)
                } else {
                    a.sym.element(tape, i)
                };
                e.map(|e| Arg { e, level: a.level })
            });
            terms.extend(run(args.collect::<FnResult<_>>()?, 1)?);
        }
        return Ok(tape.add_all(&terms));
    }
    let args = passed
        .iter()
        .map(|a| a.sym.e(tape).map(|e| Arg { e, level: a.level }));
    let terms = run(args.collect::<FnResult<_>>()?, n)?;
    Ok(tape.add_all(&terms))
}
