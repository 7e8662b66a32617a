//! Computes Laplace's approximation of latent Gaussian models with interpreted functions. Derivatives with respect to
//! the latent variables are central differences of eighth order.

use jensen_math::dense;
use jensen_math::solvers::{Point, System};

use super::higher_order::invoke;
use super::machine::Machine;
use crate::functions::Keep;
use crate::functions::laplace::{
    JITTER, LaplaceForm, LaplaceSettings, Likelihood, check_latent, density, latent, positions,
};
use crate::library;
use crate::program::{BuiltinId, Expr, FunRef, Span};
use crate::value::error::{ErrorKind, Eval, EvalError, FnError, FnResult};
use crate::value::{Matrix, Operand, Value};

/// The weights of first differences at 1 to 4 steps to either side (Fornberg 1988, table 1).
const FIRST: [f64; 4] = [4.0 / 5.0, -1.0 / 5.0, 4.0 / 105.0, -1.0 / 280.0];
/// The weights of second differences at 1 to 4 steps to either side (Fornberg 1988, table 1).
const SECOND: [f64; 4] = [8.0 / 5.0, -1.0 / 5.0, 8.0 / 315.0, -1.0 / 560.0];
/// The weight of second differences at the centre.
const CENTRE: f64 = -205.0 / 72.0;

/// The step of the differences, relative to the scale of the posterior. With this step, the truncation and rounding
/// errors leave about ten correct digits.
const STEP: f64 = 0.02;

enum Observations<'a> {
    Passed(&'a FunRef, Vec<Operand>),
    /// A library density with its counts, the positions of their latent variables, the mean at these positions, and
    /// further arguments.
    Library(BuiltinId, Value, Vec<u32>, Vec<f64>, Option<Value>),
}

struct Latent<'a, 'm> {
    machine: &'a mut Machine<'m>,
    observations: Observations<'a>,
    span: Span,
    /// The covariance of the prior, column-major.
    covariance: Vec<f64>,
    n: usize,
    block: usize,
    steps: Vec<f64>,
    error: Option<Box<EvalError>>,
}

impl Latent<'_, '_> {
    fn evaluate(&mut self, theta: &[f64]) -> Eval<f64> {
        let at = |e: FnError| e.at(self.span);
        let value = match &self.observations {
            Observations::Passed(function, args) => {
                let theta = Operand::Owned(Value::Vector(theta.to_vec()));
                let args = std::iter::once(theta).chain(args.iter().cloned()).collect();
                invoke(self.machine, function, args, self.span)?
            }
            Observations::Library(id, counts, positions, mean, rest) => {
                let of = |(position, mean): (&u32, &f64)| mean + theta[*position as usize];
                let location = Value::Vector(positions.iter().zip(mean).map(of).collect());
                let args: Vec<&Value> = [counts, &location].into_iter().chain(rest).collect();
                library::call(*id, Keep::ALL, &args).map_err(at)?
            }
        };
        value.real().map_err(at)
    }

    /// The value is NaN if the likelihood rejects the point or is not finite.
    fn value(&mut self, theta: &[f64]) -> f64 {
        if self.error.is_some() {
            return f64::NAN;
        }
        match self.evaluate(theta) {
            Ok(value) if value.is_finite() => value,
            Ok(_) => f64::NAN,
            Err(error) if error.kind == ErrorKind::Rejected => f64::NAN,
            Err(error) => {
                self.error = Some(error);
                f64::NAN
            }
        }
    }

    /// Returns the first and second derivatives along a direction in which the given variables move by the given steps.
    fn along(&mut self, theta: &[f64], centre: f64, moved: &[(usize, f64)]) -> (f64, f64) {
        let (mut first, mut second) = (0.0, CENTRE * centre);
        let mut point = theta.to_vec();
        for (k, (a, b)) in FIRST.iter().zip(SECOND).enumerate() {
            let mut side = |sign: f64| {
                for (i, h) in moved {
                    point[*i] = theta[*i] + sign * (k + 1) as f64 * h;
                }
                self.value(&point)
            };
            let (up, down) = (side(1.0), side(-1.0));
            first += a * (up - down);
            second += b * (up + down);
        }
        (first, second)
    }

    /// Returns the gradient and the diagonal of the Hessian.
    fn slopes(&mut self, theta: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let centre = self.value(theta);
        (0..self.n)
            .map(|i| {
                let h = self.steps[i];
                let (first, second) = self.along(theta, centre, &[(i, h)]);
                (first / h, second / (h * h))
            })
            .unzip()
    }

    /// Returns `W = −∂²ll` in blocks, column-major. Also adapts the steps of the differences to the scale of W.
    fn curvature(&mut self, theta: &[f64]) -> Vec<f64> {
        let n = self.n;
        let centre = self.value(theta);
        let (_, diagonal) = self.slopes(theta);
        let mut w = vec![0.0; n * n];
        for i in 0..n {
            w[i * n + i] = -diagonal[i];
            for j in i + 1..(i / self.block + 1) * self.block {
                let (a, b) = (self.steps[i], self.steps[j]);
                let (_, both) = self.along(theta, centre, &[(i, a), (j, b)]);
                let rest = both - a * a * diagonal[i] - b * b * diagonal[j];
                (w[i * n + j], w[j * n + i]) = (-rest / (2.0 * a * b), -rest / (2.0 * a * b));
            }
        }
        for (i, d) in diagonal.iter().enumerate() {
            let precision = 1.0 / self.covariance[i * (n + 1)] + d.abs();
            let step = STEP / precision.sqrt();
            if step.is_normal() {
                self.steps[i] = step;
            }
        }
        w
    }

    fn times_covariance(&self, x: &[f64]) -> Vec<f64> {
        let n = self.n;
        let mut out = vec![0.0; x.len()];
        for (out, x) in out.chunks_exact_mut(n).zip(x.chunks_exact(n)) {
            for (x, column) in x.iter().zip(self.covariance.chunks_exact(n)) {
                out.iter_mut()
                    .zip(column)
                    .for_each(|(out, k)| *out += k * x);
            }
        }
        out
    }
}

fn plus_unit(mut a: Vec<f64>, n: usize) -> Vec<f64> {
    (0..n).for_each(|i| a[i * (n + 1)] += 1.0);
    a
}

impl System for Latent<'_, '_> {
    fn rate(&mut self, at: Point<'_>, out: &mut [f64]) {
        let (slope, _) = self.slopes(at.states);
        let pulled = self.times_covariance(&slope);
        for ((out, theta), pulled) in out.iter_mut().zip(at.states).zip(pulled) {
            *out = theta - pulled;
        }
    }

    fn jacobian(&mut self, at: Point<'_>, _states: usize, out: &mut [f64]) {
        let w = self.curvature(at.states);
        out.copy_from_slice(&plus_unit(self.times_covariance(&w), self.n));
    }
}

fn entries(value: Operand, span: Span) -> Eval<Vec<Operand>> {
    match value.into_value() {
        Value::Tuple(entries) => Ok(entries.into_iter().map(Operand::Owned).collect()),
        other => {
            Err(FnError::invalid(format!("expected a tuple, found {}", other.describe())).at(span))
        }
    }
}

fn observations<'e>(
    name: &str,
    likelihood: Likelihood,
    function: Option<&'e FunRef>,
    args: Vec<Operand>,
    n: usize,
) -> FnResult<Observations<'e>> {
    let Likelihood::Library {
        density: of,
        dispersed,
    } = likelihood
    else {
        let function = function.expect("a form with a function has one");
        return Ok(Observations::Passed(function, args));
    };
    let index = positions(name, args[0].len(), &args[1], n)?;
    let picked = |what: &str, all: &Value| -> FnResult<Vec<f64>> {
        let all = all.numbers();
        check_latent(name, what, all.len(), n)?;
        Ok(index.iter().map(|i| all[*i as usize]).collect())
    };
    let mean = picked("the mean", &args[args.len() - 1])?;
    let rest = match dispersed {
        true => Some(Value::Vector(picked(
            "the vector of dispersions",
            &args[2],
        )?)),
        false => None,
    };
    Ok(Observations::Library(
        density(of)?,
        args[0].clone().into_value(),
        index,
        mean,
        rest,
    ))
}

pub(super) fn call(
    machine: &mut Machine<'_>,
    (name, form): (&'static str, LaplaceForm),
    args: &[Expr],
    span: Span,
) -> Eval<Value> {
    let at = |e: FnError| e.at(span);
    let call = form.arguments(name, args).map_err(at)?;
    let mut given = machine.eval_all(call.likelihood)?;
    if call.function.is_some() {
        given = entries(given.remove(0), span)?;
    }
    let block = machine.eval(call.block)?.int().map_err(at)?;
    let of_covariance = entries(machine.eval(call.covariance_args)?, span)?;
    let covariance = invoke(machine, call.covariance, of_covariance, span)?;
    let covariance = covariance.matrix().map_err(at)?;
    let n = latent(name, (covariance.rows(), covariance.cols())).map_err(at)?;
    let mut start = vec![0.0; n];
    let settings = match call.settings {
        None => LaplaceSettings::new(name, n, block, None).map_err(at)?,
        Some(settings) => {
            let settings = entries(machine.eval(settings)?, span)?;
            start = settings[0].numbers();
            check_latent(name, "the start of the search", start.len(), n).map_err(at)?;
            let rest: Vec<Value> = settings[1..].iter().map(|v| (**v).clone()).collect();
            LaplaceSettings::new(name, n, block, Some(&rest)).map_err(at)?
        }
    };
    let covariance = covariance.data().to_vec();
    let steps = (0..n)
        .map(|i| (0.5 * STEP * covariance[i * (n + 1)].sqrt()).clamp(1e-8, 0.1))
        .collect();
    let mut system = Latent {
        observations: observations(name, form.likelihood, call.function, given, n).map_err(at)?,
        machine,
        span,
        covariance,
        n,
        block: settings.block,
        steps,
        error: None,
    };
    let mut theta = vec![0.0; n];
    settings.root.solve(&mut system, &start, 1, &mut theta);
    let w = system.curvature(&theta);
    // The steps of the differences are now adapted to the scale at the mode.
    let w = if w.iter().all(|w| w.is_finite()) {
        system.curvature(&theta)
    } else {
        w
    };
    let (value, (slope, _)) = (system.value(&theta), system.slopes(&theta));
    if let Some(error) = system.error {
        return Err(error);
    }
    let curved = system.times_covariance(&w);
    if !value.is_finite() || curved.iter().any(|x| !x.is_finite()) {
        let message = format!(
            "{name}: the search found no mode of the latent variables within {} steps",
            settings.root.max_steps
        );
        return Err(FnError::domain(message).at(span));
    }
    must_be_mode(name, &system.covariance, &curved, n).map_err(at)?;
    let matrix = |data: Vec<f64>| Value::Matrix(Matrix::new(n, n, data));
    let both = matrix(plus_unit(curved, n));
    if !form.draws {
        let determinant =
            library::call(density("log_determinant").map_err(at)?, Keep::ALL, &[&both]);
        let determinant = determinant.and_then(|value| value.real()).map_err(at)?;
        let quadratic: f64 = slope.iter().zip(&theta).map(|(a, t)| a * t).sum();
        return Ok(Value::Real(value - 0.5 * (quadratic + determinant)));
    }
    let prior = matrix(system.covariance);
    let posterior = library::call(
        density("mdivide_left").map_err(at)?,
        Keep::ALL,
        &[&both, &prior],
    );
    let posterior = posterior.map_err(at)?;
    drawn(
        system.machine,
        (name, span),
        theta,
        posterior.matrix().map_err(at)?,
    )
}

/// Checks that `K + KWK`, which is congruent to `K⁻¹ + W`, is positive definite.
fn must_be_mode(name: &str, covariance: &[f64], curved: &[f64], n: usize) -> FnResult<()> {
    let size: f64 = (0..n).map(|i| covariance[i * (n + 1)]).sum();
    let mut both = covariance.to_vec();
    for j in 0..n {
        for i in 0..n {
            both[j * n + i] += (0..n)
                .map(|k| curved[k * n + i] * covariance[j * n + k])
                .sum::<f64>();
        }
        both[j * (n + 1)] += size * JITTER / n as f64;
    }
    match dense::cholesky(&both, n) {
        Some(_) => Ok(()),
        None => Err(FnError::domain(format!(
            "{name}: the search for a mode of the latent variables ended at a point that is not a mode"
        ))),
    }
}

/// The covariance may be singular because of rounding errors.
fn drawn(
    machine: &mut Machine<'_>,
    (name, span): (&str, Span),
    mut theta: Vec<f64>,
    covariance: &Matrix,
) -> Eval<Value> {
    let n = theta.len();
    let symmetric: Vec<f64> = (0..n * n)
        .map(|k| 0.5 * (covariance.data()[k] + covariance.data()[k % n * n + k / n]))
        .collect();
    let (values, vectors) = dense::eigen_symmetric(&symmetric, n);
    let address = machine.address.at(span);
    let Some(rng) = &mut machine.rng else {
        return Err(
            FnError::invalid(format!("{name}: random numbers are not available here")).at(span),
        );
    };
    rng.go_to(address);
    for (value, vector) in values.iter().zip(vectors.chunks_exact(n)) {
        let scale = value.max(0.0).sqrt() * rng.normal();
        theta
            .iter_mut()
            .zip(vector)
            .for_each(|(theta, v)| *theta += scale * v);
    }
    Ok(Value::Vector(theta))
}
