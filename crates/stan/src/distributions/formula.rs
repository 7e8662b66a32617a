//! Builds log densities and distribution functions in the graph.
//!
//! A formula adds *terms* to a [`DensityBuilder`] and states the arguments on which each term depends. A call that
//! drops additive constants can therefore omit the terms that depend only on data. Terms are written so that they need
//! little work per element and keep scalar factors outside sums. The graph evaluates in advance everything that depends
//! only on data.

use super::multivariate::OverRecords;
use super::univariate::{Suffix, Univariate};
use crate::program::Level;
use crate::symbolic::domain::{Domain, guard};
use crate::symbolic::functions::Cx;
use crate::symbolic::known;
use crate::symbolic::tape::{E, Tape};
use crate::symbolic::value::{SHORT, Sym};
use crate::value::error::{FnError, FnResult};

/// An argument of a univariate density.
#[derive(Clone, Copy, Debug)]
pub struct Arg<'g> {
    /// The value of the argument, which is a single element or one element for each outcome.
    pub e: E<'g>,
    /// Whether the argument's expression depends on parameters.
    pub level: Level,
}

/// Collects the terms of a log density.
#[derive(Debug)]
pub struct DensityBuilder<'g> {
    /// The tape on which the terms are recorded.
    pub tape: &'g Tape,
    /// The name of the function, for messages.
    pub name: &'static str,
    /// Whether to omit terms that depend only on data.
    pub drop: bool,
    /// The arguments of the density.
    pub args: Vec<Arg<'g>>,
    /// The number of outcomes. A scalar argument applies to every outcome.
    pub n: usize,
    /// The terms whose sum is the log density.
    pub terms: Vec<E<'g>>,
}

impl<'g> DensityBuilder<'g> {
    /// Returns the N arguments as values of the graph.
    ///
    /// # Panics
    /// Panics if the number of arguments is not N. In this case, the signature table contradicts the formulas.
    pub fn get<const N: usize>(&self) -> [E<'g>; N] {
        let all: Vec<E<'g>> = self.args.iter().map(|a| a.e).collect();
        all.try_into().unwrap_or_else(|all: Vec<E<'g>>| {
            panic!("{} takes {N} arguments, not {}", self.name, all.len())
        })
    }

    /// Creates a constant.
    pub fn num(&self, x: f64) -> E<'g> {
        self.tape.constant(x)
    }

    /// Adds the sum of `x` over the outcomes, unless the call drops constants and `x` is a constant. `involved`
    /// contains the positions of the arguments on which `x` depends.
    pub fn term(&mut self, involved: &[usize], x: E<'g>) {
        if self.keeps(involved) {
            let total = self.total(x);
            self.terms.push(total);
        }
    }

    /// Adds the sum of `x` over the outcomes, even if the call omits constants.
    pub fn always(&mut self, x: E<'g>) {
        let total = self.total(x);
        self.terms.push(total);
    }

    /// Adds the exponential of the sum of `x` over the outcomes.
    pub fn product(&mut self, x: E<'g>) {
        let total = self.total(x).exp();
        self.n = 1;
        self.always(total);
    }

    /// Returns whether the call keeps a term that depends on the arguments at these positions.
    pub fn keeps(&self, involved: &[usize]) -> bool {
        !self.drop || involved.iter().any(|i| self.args[*i].level == Level::Param)
    }

    /// Returns the sum of `x` over the outcomes. A scalar is counted once for each outcome.
    pub fn total(&self, x: E<'g>) -> E<'g> {
        if x.len() == 1 && self.n != 1 {
            self.n as f64 * x
        } else {
            x.sum()
        }
    }

    /// Checks that argument `i` is in its domain, and rejects all draws for which the argument is outside its domain.
    ///
    /// # Errors
    /// Fails if a known value of the argument is outside the domain.
    pub fn guard(&self, i: usize, what: &str, domain: Domain) -> FnResult<()> {
        guard(self.name, self.args[i].e, what, domain)
    }

    /// Creates an error that names this function.
    pub fn invalid(&self, message: impl std::fmt::Display) -> FnError {
        FnError::invalid(format!("{}: {message}", self.name))
    }

    /// Sets the log density to −∞ where `bad` is nonzero. The caller sets `bad` to a nonzero number for outcomes
    /// outside the support.
    pub fn outside(&mut self, bad: E<'g>) {
        let bad = bad.sum();
        if bad.scalar() == Some(0.0) {
            return;
        }
        let (zero, infinite) = (self.num(0.0), self.num(f64::NEG_INFINITY));
        self.terms.push(bad.select(infinite, zero));
    }
}

/// Adds the terms of a log density whose outcomes and parameters are numbers. Each argument is a single number for all
/// outcomes, or one number for each outcome.
pub type DensityTerms = for<'g> fn(&mut DensityBuilder<'g>) -> FnResult<()>;

/// The log probabilities of the lower and the upper tail.
pub type TailTerms<'g> = FnResult<(E<'g>, E<'g>)>;

/// Builds the log probabilities of both tails at each outcome. Outside the support, the log probability of one tail is
/// −∞ and that of the other tail is 0.
pub type TailFormula = for<'g> fn(&mut DensityBuilder<'g>) -> TailTerms<'g>;

/// An argument of a call.
#[derive(Clone, Copy, Debug)]
pub struct Passed<'a> {
    /// The value of the argument.
    pub sym: &'a Sym,
    /// Whether the argument's expression depends on parameters.
    pub level: Level,
}

/// The input of a formula for whole vectors and matrices.
#[derive(Debug)]
pub struct Whole<'g, 'a> {
    /// The arguments of the call, which are not split into elements.
    pub passed: &'a [Passed<'a>],
    /// The builder for the terms of the density. The builder has no arguments of its own, and its number of outcomes is
    /// 1.
    pub density: DensityBuilder<'g>,
}

impl<'g> Whole<'g, '_> {
    /// Returns the context for calls of library functions in the graph.
    pub fn cx(&self) -> Cx<'g> {
        Cx {
            tape: self.density.tape,
            name: self.density.name,
        }
    }

    /// Applies another formula to these arguments, and adds the terms of that formula.
    ///
    /// # Errors
    /// Returns the errors of the formula.
    pub fn delegate(&mut self, formula: WholeFormula, passed: &[Passed<'_>]) -> FnResult<()> {
        let lp = whole(
            formula,
            self.density.tape,
            self.density.name,
            passed,
            self.density.drop,
        )?;
        self.density.terms.push(lp);
        Ok(())
    }
}

/// Adds the terms of a log density that depends on the shapes of its arguments.
pub type WholeFormula = for<'g, 'a> fn(&mut Whole<'g, 'a>) -> FnResult<()>;

/// Builds the log density of a call.
#[derive(Clone, Copy)]
pub enum Formula {
    /// A formula whose arguments are numbers.
    Univariate(&'static Univariate, Suffix),
    /// A formula whose arguments are whole values.
    Multivariate(WholeFormula, OverRecords),
}

impl Formula {
    /// Builds the log density. If `drop` is true, terms that depend only on data are omitted.
    ///
    /// # Errors
    /// Fails if the sizes of the arguments do not match, or if a known argument is outside its domain.
    pub fn build<'g>(
        self,
        tape: &'g Tape,
        name: &'static str,
        args: &[Passed<'_>],
        drop: bool,
    ) -> FnResult<E<'g>> {
        match self {
            Formula::Univariate(row, suffix) => match row.longer(suffix, args.len()) {
                Some(longer) => whole(longer.lowered, tape, name, args, drop),
                None => univariate(row, suffix, tape, name, args, drop),
            },
            Formula::Multivariate(terms, _) => whole(terms, tape, name, args, drop),
        }
    }
}

fn whole<'g>(
    terms: WholeFormula,
    tape: &'g Tape,
    name: &'static str,
    passed: &[Passed<'_>],
    drop: bool,
) -> FnResult<E<'g>> {
    let args = passed.iter().map(|a| Arg {
        e: tape.constant(0.0),
        level: a.level,
    });
    let density = DensityBuilder {
        tape,
        name,
        drop,
        args: args.collect(),
        n: 1,
        terms: Vec::new(),
    };
    let mut whole = Whole { passed, density };
    terms(&mut whole)?;
    Ok(tape.add_all(&whole.density.terms))
}

fn univariate<'g>(
    row: &Univariate,
    suffix: Suffix,
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
        let mut density = DensityBuilder {
            tape,
            name,
            drop,
            args,
            n,
            terms: Vec::new(),
        };
        row.lower(suffix, &mut density)?;
        Ok(density.terms)
    };
    // In an unrolled loop, short vectors are split into elements. A later pass joins the copies of the scalar formula
    // again.
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

/// Returns the log probabilities of both tails. For outcomes at or below `low`, the lower tail is −∞ and the upper tail
/// is 0. For these outcomes, `tails` receives a number above `low` instead of the outcome, so that the derivatives stay
/// finite.
pub fn above<'g>(
    y: E<'g>,
    low: E<'g>,
    tails: impl FnOnce(E<'g>) -> (E<'g>, E<'g>),
) -> (E<'g>, E<'g>) {
    let below = y.le(low);
    if low.scalar() == Some(0.0) && known::range(y).positive() {
        return tails(y);
    }
    if below
        .values()
        .is_some_and(|below| below.iter().all(|b| *b == 0.0))
    {
        return tails(y);
    }
    let tails = tails(below.select(low + 1.0, y));
    (
        below.select(y.num(f64::NEG_INFINITY), tails.0),
        below.select(y.num(0.0), tails.1),
    )
}

/// Returns the log probabilities of both tails of a distribution whose support begins at `low`. Below `low`, the log
/// probability of the upper tail is 0. At `low`, this log probability is continuous, and its derivative is the
/// derivative from the right.
pub fn above_smoothly<'g>(y: E<'g>, low: E<'g>, upper: impl Fn(E<'g>) -> E<'g>) -> (E<'g>, E<'g>) {
    let (lower, _) = above(y, low, |y| (upper(y).log1m_exp(), y.num(0.0)));
    if low.scalar() == Some(0.0) && known::range(y).low >= 0.0 {
        return (lower, upper(y));
    }
    let below = y.lt(low);
    let at = upper(below.select(low, y));
    (lower, below.select(y.num(0.0), at))
}

/// Returns the log probabilities of both tails for outcomes between two bounds. At or below the lower bound, the lower
/// tail is −∞ and the upper tail is 0. At or above the upper bound, the lower tail is 0 and the upper tail is −∞. For
/// outcomes outside the bounds, `tails` receives a number inside the support, so that the derivatives stay finite.
pub fn within<'g>(
    y: E<'g>,
    [low, high]: [f64; 2],
    tails: impl FnOnce(E<'g>) -> (E<'g>, E<'g>),
) -> (E<'g>, E<'g>) {
    let range = known::range(y);
    let (below, beyond) = (y.le(y.num(low)), y.num(high).le(y));
    let never = |e: E<'g>| e.values().is_some_and(|e| e.iter().all(|e| *e == 0.0));
    let below_never = never(below) || range.low > low || range.low == low && range.above;
    let beyond_never = never(beyond) || high.is_infinite() || range.high < high;
    let (nothing, all) = (y.num(f64::NEG_INFINITY), y.num(0.0));
    let middle = if high.is_infinite() {
        low + 1.0
    } else {
        0.5 * (low + high)
    };
    let inside = |out: E<'g>, y: E<'g>| out.select(y.num(middle), y);
    let safe = if below_never { y } else { inside(below, y) };
    let safe = if beyond_never {
        safe
    } else {
        inside(beyond, safe)
    };
    let (mut lower, mut upper) = tails(safe);
    if !below_never {
        (lower, upper) = (below.select(nothing, lower), below.select(all, upper));
    }
    if !beyond_never {
        (lower, upper) = (beyond.select(all, lower), beyond.select(nothing, upper));
    }
    (lower, upper)
}

/// The bounds of positive outcomes.
pub const ABOVE_ZERO: [f64; 2] = [0.0, f64::INFINITY];

/// Returns the numbers of argument `i`, which has type `int`.
///
/// # Errors
/// Fails if the argument depends on parameters.
pub fn known_ints(d: &DensityBuilder<'_>, i: usize) -> FnResult<Vec<f64>> {
    d.args[i].e.data().ok_or_else(|| {
        FnError::unsupported(format!(
            "{}: an integer argument that depends on parameters is not supported yet",
            d.name
        ))
    })
}
