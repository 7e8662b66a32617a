//! Defines the table row of a univariate distribution, and the code that all univariate distributions share.

use jensen_graph::{Scattered, Spread};
use jensen_math::special::log1m_exp;

use super::formula::{DensityBuilder, DensityTerms, TailFormula, WholeFormula};
use crate::functions::Keep;
use crate::functions::random::Draws;
use crate::program::Level;
use crate::symbolic::domain::{Domain, check, check_values, guard};
use crate::value::Value;
use crate::value::error::{FnError, FnResult};

/// The name of a parameter in messages, and the domain of the parameter.
pub type Parameter = (&'static str, Domain);

/// The name that messages use for a location parameter.
pub const LOCATION: &str = "the location parameter";

/// The name that messages use for a scale parameter.
pub const SCALE: &str = "the scale parameter";

/// The log probabilities of the lower tail (up to and including the variate) and of the upper tail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tails {
    /// log P(X ≤ x).
    pub lower: f64,
    /// log P(X > x).
    pub upper: f64,
}

impl Tails {
    /// Computes both tails from the log probability of the lower tail.
    pub fn from_log_lower(lower: f64) -> Tails {
        let lower = lower.min(0.0);
        Tails {
            lower,
            upper: log1m_exp(lower),
        }
    }

    /// Computes both tails from the log probability of the upper tail.
    pub fn from_log_upper(upper: f64) -> Tails {
        let upper = upper.min(0.0);
        Tails {
            lower: log1m_exp(upper),
            upper,
        }
    }

    /// Creates the tails from both log probabilities.
    pub fn new((lower, upper): (f64, f64)) -> Tails {
        Tails { lower, upper }
    }

    /// Converts the tails of a variate X at x to the tails of −X at −x. The variate must be continuous.
    pub fn swap(self) -> Tails {
        Tails {
            lower: self.upper,
            upper: self.lower,
        }
    }

    /// The tails at a variate below the support, where the lower tail is empty.
    pub const NOTHING: Tails = Tails {
        lower: f64::NEG_INFINITY,
        upper: 0.0,
    };

    /// The tails at a variate above the support, where the upper tail is empty.
    pub const ALL: Tails = Tails {
        lower: 0.0,
        upper: f64::NEG_INFINITY,
    };
}

/// A check that involves several parameters of a distribution.
pub type JointCheck = fn(&str, &[f64]) -> FnResult<()>;

/// A formula for the graph. Bit i of `guards` states whether argument i needs a guard. A guard rejects the draws for
/// which the argument is outside its domain. An argument needs no guard if the formula is NaN outside the argument's
/// domain.
#[derive(Clone, Copy)]
struct Lowering<F> {
    guards: u32,
    terms: F,
}

/// The name that messages use for the variate.
pub const VARIATE: &str = "the random variable";

/// A univariate distribution. The row contains everything that the distribution's functions need, both for known values
/// and for the graph. All functions receive the variate first, followed by the parameters.
pub struct Univariate {
    /// The name of the distribution, without suffix.
    pub name: &'static str,
    /// Whether the variate is an `int`.
    pub discrete: bool,
    /// The domain of the variate. The density rejects a point at which the variate is outside this domain.
    pub variate: Domain,
    /// The parameters.
    pub params: &'static [Parameter],
    /// Computes the log density. The function marks each of its terms with a bit mask, which contains the arguments on
    /// which the term depends.
    pub log_density: fn(Keep, &[f64]) -> f64,
    /// Returns both tails.
    pub tails: Option<fn(&[f64]) -> Tails>,
    /// Draws a random number given the parameters.
    pub sample: Option<fn(&mut Draws, &[f64]) -> f64>,
    joint: Option<JointCheck>,
    lowered: Option<Lowering<DensityTerms>>,
    lowered_tails: Option<Lowering<TailFormula>>,
    longer: Option<Longer>,
}

/// A variant of a log density with the same name but more arguments.
#[derive(Clone, Copy)]
pub struct Longer {
    /// Returns the log density for known values.
    pub log_density: fn(Keep, &[&Value]) -> FnResult<f64>,
    /// Builds the log density in the graph.
    pub lowered: WholeFormula,
}

/// The kind of a function of a distribution. The suffix of the function's name determines the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suffix {
    /// `_lpdf`, `_lpmf`
    Density,
    /// `_cdf`
    Cdf,
    /// `_lcdf`
    LogCdf,
    /// `_lccdf`
    LogCcdf,
    /// `_rng`
    Random,
}

impl Univariate {
    /// Creates a distribution without optional parts.
    pub const fn new(
        name: &'static str,
        variate: Domain,
        params: &'static [Parameter],
        log_density: fn(Keep, &[f64]) -> f64,
    ) -> Univariate {
        Univariate {
            name,
            discrete: false,
            variate,
            params,
            log_density,
            tails: None,
            sample: None,
            joint: None,
            lowered: None,
            lowered_tails: None,
            longer: None,
        }
    }

    /// Declares that the variate is an `int`.
    pub const fn discrete(mut self) -> Univariate {
        self.discrete = true;
        self
    }

    /// Adds the distribution function for known values.
    pub const fn tails(mut self, tails: fn(&[f64]) -> Tails) -> Univariate {
        self.tails = Some(tails);
        self
    }

    /// Adds the sampler.
    pub const fn sample(mut self, sample: fn(&mut Draws, &[f64]) -> f64) -> Univariate {
        self.sample = Some(sample);
        self
    }

    /// Adds a condition that involves several parameters.
    pub const fn joint(mut self, joint: JointCheck) -> Univariate {
        self.joint = Some(joint);
        self
    }

    /// Adds the formula that builds the log density in the graph. Bit i of `guards` is set if the domain of argument i
    /// must be checked for every draw.
    pub const fn lowered(mut self, guards: u32, terms: DensityTerms) -> Univariate {
        self.lowered = Some(Lowering { guards, terms });
        self
    }

    /// Adds the formula that builds the distribution function in the graph. `guards` has the same meaning as for the
    /// log density.
    pub const fn lowered_tails(mut self, guards: u32, terms: TailFormula) -> Univariate {
        self.lowered_tails = Some(Lowering { guards, terms });
        self
    }

    /// Adds a log density with more arguments.
    pub const fn with_longer(mut self, longer: Longer) -> Univariate {
        self.longer = Some(longer);
        self
    }

    /// Returns the variant of the log density that takes more arguments. Returns `None` if a call with this number of
    /// arguments does not need the variant, or if the distribution has no variant.
    pub fn longer(&self, suffix: Suffix, arguments: usize) -> Option<Longer> {
        let more = suffix == Suffix::Density && arguments > self.params.len() + 1;
        self.longer.filter(|_| more)
    }

    /// Returns the names and suffixes of the distribution's functions.
    pub fn functions(&self) -> Vec<(String, Suffix)> {
        let mut suffixes = vec![Suffix::Density];
        if self.tails.is_some() {
            suffixes.extend([Suffix::Cdf, Suffix::LogCdf, Suffix::LogCcdf]);
        }
        if self.sample.is_some() {
            suffixes.push(Suffix::Random);
        }
        suffixes
            .into_iter()
            .map(|suffix| (self.function_name(suffix), suffix))
            .collect()
    }

    fn function_name(&self, suffix: Suffix) -> String {
        let suffix = match suffix {
            Suffix::Density if self.discrete => "lpmf",
            Suffix::Density => "lpdf",
            Suffix::Cdf => "cdf",
            Suffix::LogCdf => "lcdf",
            Suffix::LogCcdf => "lccdf",
            Suffix::Random => "rng",
        };
        format!("{}_{suffix}", self.name)
    }

    /// Computes a density or distribution function for all elements. Returns the sum over the elements, or the product
    /// for `_cdf`.
    ///
    /// # Errors
    /// Fails if the sizes of the arguments do not match, or if an argument is outside its domain.
    pub fn call(&self, suffix: Suffix, keep: Keep, args: &[&Value]) -> FnResult<f64> {
        if let Some(longer) = self.longer(suffix, args.len()) {
            return (longer.log_density)(keep, args);
        }
        let function = self.function_name(suffix);
        if args.len() != self.params.len() + 1 {
            return Err(self.other_form(&function, args.len()));
        }
        let lists: Vec<Vec<f64>> = args.iter().map(|a| a.numbers()).collect();
        let Some(len) = common_len(&function, args, &lists)? else {
            return Ok(if suffix == Suffix::Cdf { 1.0 } else { 0.0 });
        };
        check(&function, VARIATE, self.variate_of(suffix), &lists[0])?;
        for ((what, domain), list) in self.params.iter().zip(&lists[1..]) {
            check(&function, what, *domain, list)?;
        }
        let mut point = vec![0.0; lists.len()];
        let (mut sum, mut product) = (0.0, 1.0);
        for i in 0..len {
            for (slot, list) in point.iter_mut().zip(&lists) {
                *slot = list[if list.len() == 1 { 0 } else { i }];
            }
            if let Some(joint) = self.joint {
                joint(&function, &point[1..])?;
            }
            if suffix == Suffix::Density {
                sum += (self.log_density)(keep, &point);
                continue;
            }
            let tails = self
                .tails
                .map(|tails| tails(&point))
                .ok_or_else(|| FnError::invalid(format!("{function} does not exist")))?;
            match suffix {
                Suffix::LogCdf => sum += tails.lower,
                Suffix::LogCcdf => sum += tails.upper,
                _ => product *= tails.lower.exp(),
            }
        }
        Ok(if suffix == Suffix::Cdf { product } else { sum })
    }

    fn other_form(&self, function: &str, found: usize) -> FnError {
        FnError::unsupported(format!(
            "{function} with {found} arguments is not supported yet; the form with {} is",
            self.params.len() + 1
        ))
    }

    fn variate_of(&self, suffix: Suffix) -> Domain {
        match suffix {
            Suffix::Density => self.variate,
            _ if self.discrete => Domain::AnyInt,
            // A distribution function accepts any number as the variate, and is 0 or 1 outside the support.
            _ => Domain::NotNan,
        }
    }

    /// Returns whether the function with this suffix has a formula for the graph.
    pub fn is_lowered(&self, suffix: Suffix) -> bool {
        match suffix {
            Suffix::Density => self.lowered.is_some(),
            Suffix::Cdf | Suffix::LogCdf | Suffix::LogCcdf => self.lowered_tails.is_some(),
            Suffix::Random => false,
        }
    }

    /// Builds the function with this suffix in the graph, and adds the terms of the function.
    ///
    /// # Errors
    /// Fails if a known argument is outside its domain.
    pub fn lower(&self, suffix: Suffix, d: &mut DensityBuilder<'_>) -> FnResult<()> {
        if d.args.len() != self.params.len() + 1 {
            return Err(self.other_form(d.name, d.args.len()));
        }
        match (suffix, self.lowered, self.lowered_tails) {
            (Suffix::Density, Some(formula), _) => {
                self.check(suffix, formula.guards, d)?;
                self.note_scatter(d);
                (formula.terms)(d)
            }
            (Suffix::Cdf | Suffix::LogCdf | Suffix::LogCcdf, _, Some(formula)) => {
                self.check(suffix, formula.guards, d)?;
                let (lower, upper) = (formula.terms)(d)?;
                let log = if suffix == Suffix::LogCcdf {
                    upper
                } else {
                    lower
                };
                // A distribution function keeps all terms.
                match suffix {
                    Suffix::Cdf => d.product(log),
                    _ => d.always(log),
                }
                Ok(())
            }
            _ => Err(FnError::invalid(format!("{} is not lowered", d.name))),
        }
    }

    fn note_scatter(&self, d: &DensityBuilder<'_>) {
        if let ("std_normal", [values]) = (self.name, &d.args[..]) {
            d.tape.note_unit(values.e.id);
        }
        if let [.., (LOCATION, _), (SCALE, _)] = self.params
            && let [values, .., location, scale] = &d.args[..]
            && values.level == Level::Param
        {
            let rotated = d.tape.rotated.borrow();
            let of = rotated.iter().find(|(x, _)| *x == values.e.id);
            let alike = location.e.scalar() == Some(0.0) && scale.e.len() == 1;
            d.tape.scattered.borrow_mut().push(Scattered {
                values: of.filter(|_| alike).map_or(values.e.id, |(_, z)| *z),
                location: location.e.id,
                spread: Spread::Scale(scale.e.id),
            });
        }
    }

    fn check(&self, suffix: Suffix, guards: u32, d: &DensityBuilder<'_>) -> FnResult<()> {
        let variate = (VARIATE, self.variate_of(suffix));
        for (i, (what, domain)) in [variate].iter().chain(self.params).enumerate() {
            let e = d.args[i].e;
            if guards & (1 << i) == 0 {
                check_values(d.name, e, what, *domain)?;
            } else {
                guard(d.name, e, what, *domain)?;
            }
        }
        let Some(joint) = self.joint else {
            return Ok(());
        };
        let params = d.args[1..].iter().map(|arg| arg.e.data());
        let Some(lists) = params.collect::<Option<Vec<Vec<f64>>>>() else {
            return Ok(());
        };
        let at = |list: &[f64], i: usize| list[if list.len() == 1 { 0 } else { i }];
        let taken = d.tape.comes_by();
        for i in 0..lists.iter().map(Vec::len).max().unwrap_or(0) {
            if taken.as_ref().is_none_or(|taken| at(taken, i) != 0.0) {
                let point: Vec<f64> = lists.iter().map(|list| at(list, i)).collect();
                joint(d.name, &point)?;
            }
        }
        Ok(())
    }

    /// Draws one random number, or an array of random numbers if a parameter is a container.
    ///
    /// # Errors
    /// Fails as [`Univariate::call`] does.
    pub fn draw(&self, rng: &mut Draws, args: &[&Value]) -> FnResult<Value> {
        let function = self.function_name(Suffix::Random);
        let sample = self
            .sample
            .ok_or_else(|| FnError::invalid(format!("{function} does not exist")))?;
        let lists: Vec<Vec<f64>> = args.iter().map(|a| a.numbers()).collect();
        for ((what, domain), list) in self.params.iter().zip(&lists) {
            check(&function, what, *domain, list)?;
        }
        let len = common_len(&function, args, &lists)?.unwrap_or(0);
        let mut point = vec![0.0; lists.len()];
        let mut out = Vec::with_capacity(len);
        for i in 0..len {
            for (slot, list) in point.iter_mut().zip(&lists) {
                *slot = list[if list.len() == 1 { 0 } else { i }];
            }
            if let Some(joint) = self.joint {
                joint(&function, &point)?;
            }
            out.push(sample(rng, &point));
        }
        let scalar = args.iter().all(|a| a.is_scalar());
        if self.discrete {
            let ints: Vec<i32> = out
                .iter()
                .map(|x| int_variate(&function, *x))
                .collect::<FnResult<_>>()?;
            return Ok(match ints.first() {
                Some(i) if scalar => Value::Int(*i),
                _ => Value::Ints(ints),
            });
        }
        Ok(match out.first() {
            Some(x) if scalar => Value::Real(*x),
            _ => Value::Reals(out),
        })
    }
}

/// Converts a count to an `int`.
///
/// # Errors
/// Fails if the count does not fit in 32 bits.
pub fn int_variate(function: &str, x: f64) -> FnResult<i32> {
    if x.is_nan() || x.abs() > f64::from(i32::MAX) {
        return Err(FnError::domain(format!(
            "{function}: the random number {x} does not fit 32 bits"
        )));
    }
    Ok(x as i32)
}

/// Returns the common length of the arguments, or `None` if an argument is empty. A scalar matches any length.
fn common_len(function: &str, args: &[&Value], lists: &[Vec<f64>]) -> FnResult<Option<usize>> {
    let mut len = None;
    for (arg, list) in args.iter().zip(lists) {
        if arg.is_scalar() {
            continue;
        }
        match len {
            None => len = Some(list.len()),
            Some(n) if n != list.len() => {
                return Err(FnError::invalid(format!(
                    "{function}: sizes of the arguments do not match: {n} and {}",
                    list.len()
                )));
            }
            Some(_) => {}
        }
    }
    Ok(match len {
        None => Some(1),
        Some(0) => None,
        len => len,
    })
}
