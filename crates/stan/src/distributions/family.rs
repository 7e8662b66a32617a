//! Univariate distributions and what is the same for all of them.

use crate::functions::Keep;
use crate::functions::random::Draws;
use crate::functions::special::log1m_exp;
use crate::value::Value;
use crate::value::error::{FnError, FnResult};

/// What an argument of a density must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// Anything but NaN.
    NotNan,
    /// Finite.
    Finite,
    /// Greater than 0, finite.
    PositiveFinite,
    /// Greater than 0, possibly infinite.
    Positive,
    /// 0 or more, not NaN.
    NonNegative,
    /// 0 or more, finite.
    NonNegativeFinite,
    /// 0 to 1.
    Unit,
    /// 0 or 1.
    Bool,
    /// Any `int`.
    AnyInt,
}

impl Domain {
    fn contains(self, x: f64) -> bool {
        match self {
            Domain::NotNan => !x.is_nan(),
            Domain::Finite => x.is_finite(),
            Domain::PositiveFinite => x > 0.0 && x.is_finite(),
            Domain::Positive => x > 0.0,
            Domain::NonNegative => x >= 0.0,
            Domain::NonNegativeFinite => x >= 0.0 && x.is_finite(),
            Domain::Unit => (0.0..=1.0).contains(&x),
            Domain::Bool => x == 0.0 || x == 1.0,
            Domain::AnyInt => true,
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Domain::NotNan => "not nan",
            Domain::Finite => "finite",
            Domain::PositiveFinite => "positive and finite",
            Domain::Positive => "positive",
            Domain::NonNegative => "at least 0",
            Domain::NonNegativeFinite => "at least 0 and finite",
            Domain::Unit => "between 0 and 1",
            Domain::Bool => "0 or 1",
            Domain::AnyInt => "an int",
        }
    }
}

/// The domain check of one argument of `function`.
///
/// # Errors
/// When the value is outside: the point is rejected.
pub fn check(function: &str, what: &str, domain: Domain, x: &[f64]) -> FnResult<()> {
    for (i, v) in x.iter().enumerate() {
        if !domain.contains(*v) {
            let place = if x.len() == 1 {
                String::new()
            } else {
                format!("[{}]", i + 1)
            };
            return Err(FnError::domain(format!(
                "{function}: {what}{place} is {v}, but must be {}",
                domain.describe()
            )));
        }
    }
    Ok(())
}

/// A parameter: what it is called in messages, and its domain.
pub type Param = (&'static str, Domain);

/// The log probabilities of the lower tail (up to and including the variate) and of the upper one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tails {
    /// log P(X ≤ x)
    pub lower: f64,
    /// log P(X > x)
    pub upper: f64,
}

impl Tails {
    /// From the log of the lower tail.
    pub fn from_log_lower(lower: f64) -> Tails {
        let lower = lower.min(0.0);
        Tails {
            lower,
            upper: log1m_exp(lower),
        }
    }

    /// From the log of the upper tail.
    pub fn from_log_upper(upper: f64) -> Tails {
        let upper = upper.min(0.0);
        Tails {
            lower: log1m_exp(upper),
            upper,
        }
    }

    /// From both logs.
    pub fn new((lower, upper): (f64, f64)) -> Tails {
        Tails { lower, upper }
    }

    /// The tails of −X at −x of a continuous X.
    pub fn swap(self) -> Tails {
        Tails {
            lower: self.upper,
            upper: self.lower,
        }
    }

    /// Everything lies above.
    pub const NOTHING: Tails = Tails {
        lower: f64::NEG_INFINITY,
        upper: 0.0,
    };

    /// Everything lies below.
    pub const ALL: Tails = Tails {
        lower: 0.0,
        upper: f64::NEG_INFINITY,
    };
}

/// A check of all parameters of a function together.
pub type JointCheck = fn(&str, &[f64]) -> FnResult<()>;

/// A univariate distribution. Functions get the variate first, then the parameters.
pub struct Family {
    /// Name without suffix.
    pub name: &'static str,
    /// Whether the variate is an `int`.
    pub discrete: bool,
    /// Domain of the variate in the density; outside it the point is rejected.
    pub variate: Domain,
    /// The parameters.
    pub params: &'static [Param],
    /// The log density; its terms are bit masks over (variate, parameters).
    pub log_density: fn(Keep, &[f64]) -> f64,
    /// Both tails.
    pub tails: Option<fn(&[f64]) -> Tails>,
    /// A random number for the parameters.
    pub sample: Option<fn(&mut Draws, &[f64]) -> f64>,
    /// What the parameters must satisfy together.
    pub joint: Option<JointCheck>,
}

/// A function of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FamilyPart {
    /// `_lpdf`, `_lpmf`
    LogDensity,
    /// `_cdf`
    Cdf,
    /// `_lcdf`
    LogCdf,
    /// `_lccdf`
    LogCcdf,
    /// `_rng`
    Random,
}

impl Family {
    /// A family without optional parts.
    pub const fn new(
        name: &'static str,
        variate: Domain,
        params: &'static [Param],
        log_density: fn(Keep, &[f64]) -> f64,
    ) -> Family {
        Family {
            name,
            discrete: false,
            variate,
            params,
            log_density,
            tails: None,
            sample: None,
            joint: None,
        }
    }

    /// The variate is an `int`.
    pub const fn discrete(mut self) -> Family {
        self.discrete = true;
        self
    }

    /// Adds the distribution function.
    pub const fn tails(mut self, tails: fn(&[f64]) -> Tails) -> Family {
        self.tails = Some(tails);
        self
    }

    /// Adds the sampler.
    pub const fn sample(mut self, sample: fn(&mut Draws, &[f64]) -> f64) -> Family {
        self.sample = Some(sample);
        self
    }

    /// Adds a check of all parameters together.
    pub const fn joint(mut self, joint: JointCheck) -> Family {
        self.joint = Some(joint);
        self
    }

    /// Names and parts of the functions the family has.
    pub fn functions(&self) -> Vec<(String, FamilyPart)> {
        let density = if self.discrete { "lpmf" } else { "lpdf" };
        let mut out = vec![(format!("{}_{density}", self.name), FamilyPart::LogDensity)];
        if self.tails.is_some() {
            for (suffix, part) in [
                ("cdf", FamilyPart::Cdf),
                ("lcdf", FamilyPart::LogCdf),
                ("lccdf", FamilyPart::LogCcdf),
            ] {
                out.push((format!("{}_{suffix}", self.name), part));
            }
        }
        if self.sample.is_some() {
            out.push((format!("{}_rng", self.name), FamilyPart::Random));
        }
        out
    }

    fn function_name(&self, part: FamilyPart) -> String {
        let suffix = match part {
            FamilyPart::LogDensity if self.discrete => "lpmf",
            FamilyPart::LogDensity => "lpdf",
            FamilyPart::Cdf => "cdf",
            FamilyPart::LogCdf => "lcdf",
            FamilyPart::LogCcdf => "lccdf",
            FamilyPart::Random => "rng",
        };
        format!("{}_{suffix}", self.name)
    }

    /// Density or distribution function of all elements: sum, or product for `_cdf`.
    ///
    /// # Errors
    /// When sizes do not match or an argument is outside its domain.
    pub fn call(&self, part: FamilyPart, keep: Keep, args: &[&Value]) -> FnResult<f64> {
        let function = self.function_name(part);
        if args.len() != self.params.len() + 1 {
            return Err(FnError::invalid(format!(
                "{function}: {} arguments instead of {}",
                args.len(),
                self.params.len() + 1
            )));
        }
        let lists: Vec<Vec<f64>> = args.iter().map(|a| a.numbers()).collect();
        let Some(len) = common_len(&function, args, &lists)? else {
            return Ok(if part == FamilyPart::Cdf { 1.0 } else { 0.0 });
        };
        let variate = match part {
            FamilyPart::LogDensity => self.variate,
            _ if self.discrete => Domain::AnyInt,
            // Distribution functions take any variate of a supported sign and are 0 or 1 beyond the support.
            _ => Domain::NotNan,
        };
        check(&function, "the random variable", variate, &lists[0])?;
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
            if part == FamilyPart::LogDensity {
                sum += (self.log_density)(keep, &point);
                continue;
            }
            let tails = self
                .tails
                .map(|tails| tails(&point))
                .ok_or_else(|| FnError::invalid(format!("{function} does not exist")))?;
            match part {
                FamilyPart::LogCdf => sum += tails.lower,
                FamilyPart::LogCcdf => sum += tails.upper,
                _ => product *= tails.lower.exp(),
            }
        }
        Ok(if part == FamilyPart::Cdf {
            product
        } else {
            sum
        })
    }

    /// Random numbers: one, or an array if a parameter is a container.
    ///
    /// # Errors
    /// As [`Family::call`].
    pub fn draw(&self, rng: &mut Draws, args: &[&Value]) -> FnResult<Value> {
        let function = self.function_name(FamilyPart::Random);
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

/// A count as an `int`.
///
/// # Errors
/// When it does not fit 32 bits.
pub fn int_variate(function: &str, x: f64) -> FnResult<i32> {
    if x.is_nan() || x.abs() > f64::from(i32::MAX) {
        return Err(FnError::domain(format!(
            "{function}: the random number {x} does not fit 32 bits"
        )));
    }
    Ok(x as i32)
}

/// The common length of arguments, scalars going with any; `None` if one is empty.
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
