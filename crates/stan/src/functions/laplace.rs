//! Describes the functions of Laplace's approximation for latent Gaussian models: their names, and the positions of
//! their arguments and settings. Both evaluators use this description.
//!
//! Let `θ ~ normal(0, K)`, let θ̂ be the mode of `ll(θ) − θᵀK⁻¹θ/2`, and let `W = −∂²ll` at θ̂. The logarithm of `∫
//! exp(ll(θ)) p(θ) dθ` is then approximately `ll(θ̂) − θ̂ᵀK⁻¹θ̂/2 − log |I + KW|/2` (Rasmussen and Williams 2006,
//! equation 3.32; Margossian, Vehtari, Simpson and Agrawal 2020), and the posterior of θ is approximately normal with
//! mean θ̂ and covariance `(K⁻¹ + W)⁻¹`. K need not be invertible: at the mode, `θ̂ = K a` with `a = ∂ll`, so that
//! `θ̂ᵀK⁻¹θ̂ = aᵀθ̂`.

use jensen_math::solvers::Root;

use crate::program::{BuiltinId, Expr, ExprKind, FunRef};
use crate::value::Value;
use crate::value::error::{FnError, FnResult};

/// The distribution of the observations given θ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likelihood {
    /// A function that the call passes as an argument.
    Passed,
    /// A density of counts from the library, evaluated at `θ + mean`. Each count has an index that selects its latent
    /// variable. The density may also take a vector of dispersions.
    Library {
        /// The name of the density.
        density: &'static str,
        /// Whether the call has a vector of dispersions before the mean. The index of a count also selects its
        /// dispersion.
        dispersed: bool,
    },
}

/// The properties of a function of the approximation, which follow from the function's name.
#[derive(Clone, Copy, Debug)]
pub struct LaplaceForm {
    /// The likelihood of the observations.
    pub likelihood: Likelihood,
    tuned: bool,
    /// Whether the function draws θ, as `laplace_latent_…` does.
    pub draws: bool,
}

/// The arguments of a call.
#[derive(Clone, Copy, Debug)]
pub struct LaplaceCall<'e> {
    /// The function passed as the likelihood.
    pub function: Option<&'e FunRef>,
    /// The arguments of the passed function as a tuple, or the arguments of a likelihood from the library.
    pub likelihood: &'e [Expr],
    /// The number of rows of each block on the Hessian's diagonal.
    pub block: &'e Expr,
    /// The function that returns the covariance.
    pub covariance: &'e FunRef,
    /// The arguments of the covariance function, as a tuple.
    pub covariance_args: &'e Expr,
    /// The tuple of settings.
    pub settings: Option<&'e Expr>,
}

impl LaplaceForm {
    /// Returns the properties of a function, or `None` if the function does not belong to the approximation.
    pub fn of(name: &str) -> Option<LaplaceForm> {
        let (rest, draws) = match name.strip_prefix("laplace_marginal") {
            Some(rest) => (rest.strip_suffix("_lpmf").unwrap_or(rest), false),
            None => (
                name.strip_prefix("laplace_latent")?.strip_suffix("_rng")?,
                true,
            ),
        };
        let (rest, tuned) = match rest.strip_prefix("_tol") {
            Some(rest) => (rest, true),
            None => (rest, false),
        };
        let library = |density, dispersed| Likelihood::Library { density, dispersed };
        let likelihood = match rest {
            "" => Likelihood::Passed,
            "_bernoulli_logit" => library("bernoulli_logit_lpmf", false),
            "_poisson_log" => library("poisson_log_lpmf", false),
            "_neg_binomial_2_log" => library("neg_binomial_2_log_lpmf", true),
            _ => return None,
        };
        Some(LaplaceForm {
            likelihood,
            tuned,
            draws,
        })
    }

    /// Identifies the arguments of a checked call.
    ///
    /// # Errors
    /// Fails if a function argument is missing.
    pub fn arguments<'e>(&self, name: &str, args: &'e [Expr]) -> FnResult<LaplaceCall<'e>> {
        let wrong = || FnError::invalid(format!("{name}: a function is missing"));
        let passed = |expr: &'e Expr| match &expr.kind {
            ExprKind::FunRef(function) => Some(function),
            _ => None,
        };
        let (function, likelihood, rest) = match self.likelihood {
            Likelihood::Passed => {
                let [function, likelihood, rest @ ..] = args else {
                    return Err(wrong());
                };
                let function = passed(function).ok_or_else(wrong)?;
                (Some(function), std::slice::from_ref(likelihood), rest)
            }
            Likelihood::Library { dispersed, .. } => {
                let count = if dispersed { 4 } else { 3 };
                if args.len() < count {
                    return Err(wrong());
                }
                let (likelihood, rest) = args.split_at(count);
                (None, likelihood, rest)
            }
        };
        let [block, covariance, covariance_args, settings @ ..] = rest else {
            return Err(wrong());
        };
        Ok(LaplaceCall {
            function,
            likelihood,
            block,
            covariance: passed(covariance).ok_or_else(wrong)?,
            covariance_args,
            settings: settings.first().filter(|_| self.tuned),
        })
    }
}

/// The settings of the search for the mode.
#[derive(Clone, Debug)]
pub struct LaplaceSettings {
    /// The number of rows of each block on the Hessian's diagonal.
    pub block: usize,
    /// The system of equations that determines the mode. The system has one unknown for each latent variable, and no
    /// parameters.
    pub root: Root,
}

/// The smallest tolerance of the search. Two more steps after the search reduce the remaining error to rounding error.
const TOLERANCE: f64 = 1e-6;

impl LaplaceSettings {
    /// Reads the settings for a prior with `n` unknowns. `settings` contains the entries of the tuple that follow the
    /// start of the search.
    ///
    /// # Errors
    /// Fails if a setting is outside its domain.
    pub fn new(name: &str, n: usize, block: i32, settings: Option<&[Value]>) -> FnResult<Self> {
        let wrong = |what: &str, x: f64, must: &str| {
            Err(FnError::domain(format!(
                "{name}: {what} is {x}, but must {must}"
            )))
        };
        if n == 0 {
            return Err(FnError::invalid(format!(
                "{name}: the covariance matrix is empty"
            )));
        }
        let extent = usize::try_from(block).unwrap_or(0);
        if extent == 0 || !n.is_multiple_of(extent) {
            let must = format!("divide {n}, the number of latent variables");
            return wrong("the size of the Hessian's blocks", f64::from(block), &must);
        }
        // Stan's defaults: `generate_laplace_options`.
        let (mut tolerance, mut steps, mut search) = (TOLERANCE, 500.0, 1000.0);
        if let Some(settings) = settings {
            let [a, b, solver, c, fallthrough] = settings else {
                return Err(FnError::invalid(format!("{name}: six settings are needed")));
            };
            let given = a.real()?;
            if given.is_nan() || given <= 0.0 {
                return wrong("the tolerance", given, "be positive");
            }
            (tolerance, steps, search) = (tolerance.max(given), b.real()?, c.real()?);
            if steps < 1.0 {
                return wrong("the largest number of steps", steps, "be positive");
            }
            if search < 0.0 {
                return wrong(
                    "the number of steps of a line search",
                    search,
                    "not be negative",
                );
            }
            let (solver, fallthrough) = (solver.real()?, fallthrough.real()?);
            if !(1.0..=3.0).contains(&solver) {
                return wrong("the solver", solver, "be 1, 2 or 3");
            }
            if fallthrough != 0.0 && fallthrough != 1.0 {
                return wrong("the permission to fall through", fallthrough, "be 0 or 1");
            }
        }
        Ok(LaplaceSettings {
            block: extent,
            root: Root {
                unknowns: n,
                parameters: 0,
                tolerance,
                max_steps: (steps + search) as u64,
            },
        })
    }
}

/// Returns the number of latent variables, which is the number of rows of the covariance matrix.
///
/// # Errors
/// Fails if the matrix is not square.
pub fn latent(name: &str, (rows, cols): (usize, usize)) -> FnResult<usize> {
    if rows == cols {
        return Ok(rows);
    }
    Err(FnError::invalid(format!(
        "{name}: the covariance matrix is {rows} by {cols}, but must be square"
    )))
}

/// Checks that a vector has one element for each latent variable.
///
/// # Errors
/// Fails if the sizes differ.
pub fn check_latent(name: &str, what: &str, found: usize, n: usize) -> FnResult<()> {
    if found == n {
        return Ok(());
    }
    Err(FnError::invalid(format!(
        "{name}: {what} has {found} elements, but there are {n} latent variables"
    )))
}

/// Returns the position, counted from 0, of the latent variable that each count observes.
///
/// # Errors
/// Fails if the number of indices differs from the number of counts, or if an index is out of range.
pub fn positions(name: &str, counts: usize, index: &Value, n: usize) -> FnResult<Vec<u32>> {
    let index = index.numbers();
    if index.len() != counts {
        return Err(FnError::invalid(format!(
            "{name}: there are {} indices for {counts} observations",
            index.len()
        )));
    }
    let position = |(k, i): (usize, &f64)| {
        if *i >= 1.0 && *i <= n as f64 {
            return Ok(*i as u32 - 1);
        }
        Err(FnError::domain(format!(
            "{name}: index {} is {i}, but must be from 1 to {n}",
            k + 1
        )))
    };
    index.iter().enumerate().map(position).collect()
}

/// Returns the library density with this name, as a likelihood.
///
/// # Errors
/// Fails if the library has no such likelihood.
pub fn density(name: &str) -> FnResult<BuiltinId> {
    BuiltinId::from_name(name)
        .ok_or_else(|| FnError::invalid(format!("the library has no `{name}`")))
}

/// The test for a mode adds this number times the mean variance of the prior to a diagonal.
pub const JITTER: f64 = 1e-8;
