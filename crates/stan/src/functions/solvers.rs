//! Describes the library's solvers for both evaluators: their names, and the positions of their arguments and settings.
//! Positions are counted from the first argument after the passed function.

use std::borrow::Cow;

use jensen_math::solvers::{Method, Ode, Root};

use crate::value::Value;
use crate::value::error::{FnError, FnResult};

/// The kind of solver that a function calls, and the positions of the function's arguments.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// `ode_…` and `integrate_ode_…`.
    Ode(OdeForm),
    /// `dae` and `dae_tol`.
    Dae(DaeForm),
    /// `solve_…` and `algebra_solver…`.
    Root(RootForm),
    /// `integrate_1d`.
    Integral,
    /// `map_rect`.
    Map,
}

#[derive(Clone, Copy, Debug)]
enum Settings {
    Default,
    /// The position of the first of three settings: the relative tolerance, the absolute tolerance, and the largest
    /// number of steps.
    Three(usize),
    /// The position of the settings of `ode_adjoint_tol_ctl`.
    Adjoint(usize),
}

/// The arguments of a differential equation: initial states, initial time, output times, settings and further
/// arguments.
#[derive(Clone, Copy, Debug)]
pub struct OdeForm {
    method: Method,
    settings: Settings,
    tolerance: f64,
    max_steps: u64,
    /// The position of the first argument that is passed to the right-hand side.
    pub rest: usize,
    /// The number of further arguments, or `None` if all remaining arguments belong to the right-hand side.
    pub count: Option<usize>,
    /// Whether the states are an `array[] real` instead of a `vector`.
    pub arrays: bool,
}

/// The arguments of a differential-algebraic equation: initial states, initial derivatives, initial time, output times,
/// settings and further arguments.
#[derive(Clone, Copy, Debug)]
pub struct DaeForm {
    ode: OdeForm,
    /// The position of the first argument that is passed to the residuals.
    pub rest: usize,
}

/// The arguments of a system of equations: the start of the search, settings and further arguments.
#[derive(Clone, Copy, Debug)]
pub struct RootForm {
    settings: Settings,
    /// The position of the first argument that is passed to the system.
    pub rest: usize,
    /// The number of further arguments, or `None` if all remaining arguments belong to the system.
    pub count: Option<usize>,
}

impl Form {
    /// Returns the kind of solver that the function `name` calls. `arguments` is the number of arguments after the
    /// passed function. Returns `None` if the function is not a solver.
    pub fn of(name: &str, arguments: usize) -> Option<Form> {
        match name {
            "integrate_1d" => return Some(Form::Integral),
            "map_rect" => return Some(Form::Map),
            "dae" => return Some(Form::Dae(DaeForm::new(Settings::Default, 4))),
            "dae_tol" => return Some(Form::Dae(DaeForm::new(Settings::Three(4), 7))),
            _ => {}
        }
        if let Some(root) = RootForm::of(name, arguments) {
            return Some(Form::Root(root));
        }
        OdeForm::of(name, arguments).map(Form::Ode)
    }
}

impl RootForm {
    fn of(name: &str, arguments: usize) -> Option<RootForm> {
        let form = |settings, rest, count| {
            Some(RootForm {
                settings,
                rest,
                count,
            })
        };
        match name {
            "solve_newton" | "solve_powell" => form(Settings::Default, 1, None),
            "solve_newton_tol" | "solve_powell_tol" => form(Settings::Three(1), 4, None),
            "algebra_solver" | "algebra_solver_newton" if arguments > 4 => {
                form(Settings::Three(4), 1, Some(3))
            }
            "algebra_solver" | "algebra_solver_newton" => form(Settings::Default, 1, Some(3)),
            _ => None,
        }
    }

    /// Creates the system of equations. `value(position)` returns the value of the setting at this position.
    ///
    /// # Errors
    /// Fails if a setting is outside its domain.
    pub fn root<'v>(
        &self,
        name: &str,
        (unknowns, parameters): (usize, usize),
        value: &dyn Fn(usize) -> FnResult<Cow<'v, Value>>,
    ) -> FnResult<Root> {
        let mut root = Root {
            unknowns,
            parameters,
            tolerance: 1e-6,
            max_steps: 200,
        };
        if unknowns == 0 {
            return Err(FnError::invalid(format!("{name}: there are no unknowns")));
        }
        if let Settings::Three(at) = self.settings {
            let step = value(at)?.real()?;
            if step.is_nan() || step < 0.0 {
                return Err(out_of_domain(
                    name,
                    "the tolerance of steps",
                    step,
                    "not be negative",
                ));
            }
            root.tolerance = positive(
                name,
                "the tolerance of the equations",
                value(at + 1)?.real()?,
            )?;
            root.max_steps = steps(name, value(at + 2)?.real()?)?;
        }
        Ok(root)
    }
}

impl DaeForm {
    fn new(settings: Settings, rest: usize) -> DaeForm {
        let ode = OdeForm {
            method: Method::Implicit,
            settings,
            tolerance: 1e-10,
            max_steps: 100_000_000,
            rest,
            count: None,
            arrays: false,
        };
        DaeForm { ode, rest }
    }

    /// Creates the problem. The residuals of the problem take the given number of parameters. `value(position)` returns
    /// the value of the setting at this position.
    ///
    /// # Errors
    /// Fails if a setting is outside its domain, or if there are not as many initial derivatives as initial states.
    pub fn ode<'v>(
        &self,
        name: &str,
        (states, derivatives, parameters, times): (usize, usize, usize, usize),
        value: &dyn Fn(usize) -> FnResult<Cow<'v, Value>>,
    ) -> FnResult<Ode> {
        if derivatives != states {
            return Err(FnError::invalid(format!(
                "{name}: there are {derivatives} derivatives at the start for {states} states"
            )));
        }
        let mut ode = self
            .ode
            .ode(name, (states, parameters + states, times), value)?;
        ode.fixed_times = true;
        Ok(ode)
    }
}

/// Checks that the initial values of a differential-algebraic equation are finite. The message of the error is Stan's.
///
/// # Errors
/// Fails if a value is not finite. The error reports the first such value.
pub fn check_start(name: &str, what: &str, values: &[f64]) -> FnResult<()> {
    match values.iter().position(|y| !y.is_finite()) {
        Some(i) => Err(FnError::domain(format!(
            "{name}: {what}[{}] is {}, but must be finite!",
            i + 1,
            values[i]
        ))),
        None => Ok(()),
    }
}

impl OdeForm {
    fn of(name: &str, arguments: usize) -> Option<OdeForm> {
        let old = name.strip_prefix("integrate_ode");
        let (family, settings, rest) = match old {
            Some("") => ("rk45", Settings::Default, 3),
            Some(family) if arguments > 6 => (family.strip_prefix('_')?, Settings::Three(6), 3),
            Some(family) => (family.strip_prefix('_')?, Settings::Default, 3),
            None => match name.strip_prefix("ode_")? {
                "adjoint_tol_ctl" => ("adjoint", Settings::Adjoint(3), 14),
                family => match family.strip_suffix("_tol") {
                    Some(family) => (family, Settings::Three(3), 6),
                    None => (family, Settings::Default, 3),
                },
            },
        };
        let (method, tolerance, max_steps) = match family {
            "rk45" => (Method::DormandPrince, 1e-6, 1_000_000),
            "ckrk" => (Method::CashKarp, 1e-6, 1_000_000),
            // Adams' methods are for equations that are not stiff, and so is the method of Dormand and Prince.
            "adams" => (Method::DormandPrince, 1e-10, 100_000_000),
            "bdf" => (Method::Radau, 1e-10, 100_000_000),
            "adjoint" => (Method::Radau, 1e-10, 100_000_000),
            _ => return None,
        };
        Some(OdeForm {
            method,
            settings,
            tolerance,
            max_steps,
            rest,
            count: old.map(|_| 3),
            arrays: old.is_some(),
        })
    }

    /// Creates the problem. `value(position)` returns the value of the setting at this position.
    ///
    /// # Errors
    /// Fails if a setting is outside its domain.
    pub fn ode<'v>(
        &self,
        name: &str,
        (states, parameters, times): (usize, usize, usize),
        value: &dyn Fn(usize) -> FnResult<Cow<'v, Value>>,
    ) -> FnResult<Ode> {
        let mut ode = Ode {
            method: self.method,
            states,
            parameters,
            times,
            relative: self.tolerance,
            absolute: vec![self.tolerance; states],
            max_steps: self.max_steps,
            fixed_times: false,
        };
        if states == 0 {
            return Err(FnError::invalid(format!("{name}: there are no states")));
        }
        let (relative, absolute) = ("the relative tolerance", "the absolute tolerance");
        match self.settings {
            Settings::Default => {}
            Settings::Three(at) => {
                ode.relative = positive(name, relative, value(at)?.real()?)?;
                ode.absolute = vec![positive(name, absolute, value(at + 1)?.real()?)?; states];
                ode.max_steps = steps(name, value(at + 2)?.real()?)?;
            }
            Settings::Adjoint(at) => {
                ode.relative = positive(name, relative, value(at)?.real()?)?;
                let each = value(at + 1)?.numbers();
                if each.len() != states {
                    let message = format!(
                        "{name}: there are {} absolute tolerances for {states} states",
                        each.len()
                    );
                    return Err(FnError::invalid(message));
                }
                for x in &each {
                    positive(name, absolute, *x)?;
                }
                ode.absolute = each;
                ode.max_steps = steps(name, value(at + 6)?.real()?)?;
                // 1 denotes Adams' method, and 2 denotes the method for stiff equations.
                if value(at + 9)?.real()? == 1.0 {
                    ode.method = Method::DormandPrince;
                }
            }
        }
        Ok(ode)
    }
}

fn out_of_domain(name: &str, what: &str, x: f64, must: &str) -> FnError {
    FnError::domain(format!("{name}: {what} is {x}, but must {must}"))
}

fn positive(name: &str, what: &str, x: f64) -> FnResult<f64> {
    if x > 0.0 && x.is_finite() {
        Ok(x)
    } else {
        Err(out_of_domain(name, what, x, "be positive and finite"))
    }
}

fn steps(name: &str, x: f64) -> FnResult<u64> {
    if x >= 1.0 {
        Ok(x as u64)
    } else {
        Err(out_of_domain(
            name,
            "the largest number of steps",
            x,
            "be positive",
        ))
    }
}

/// Checks that `times` are finite, in order, and later than `start`.
///
/// # Errors
/// Fails if a time violates one of these conditions. The error reports the first such time.
pub fn check_times(name: &str, start: f64, times: &[f64]) -> FnResult<()> {
    let mut before = start;
    for (i, time) in times.iter().enumerate() {
        let ordered = if i == 0 {
            *time > before
        } else {
            *time >= before
        };
        if !time.is_finite() || !before.is_finite() || !ordered {
            let than = if i == 0 {
                "the initial time"
            } else {
                "the one before"
            };
            let message = format!(
                "{name}: output time {} is {time}, but must be finite and later than {than}, {before}",
                i + 1
            );
            return Err(FnError::domain(message));
        }
        before = *time;
    }
    Ok(())
}

/// Returns the tolerance of `integrate_1d`, or the default tolerance if none is given.
///
/// # Errors
/// Fails if the tolerance is not positive.
pub fn integral_tolerance(given: Option<f64>) -> FnResult<f64> {
    let tolerance = match given {
        Some(x) => positive("integrate_1d", "the relative tolerance", x)?,
        None => f64::EPSILON.sqrt(),
    };
    Ok(tolerance.max(1e-14))
}
