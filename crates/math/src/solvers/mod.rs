//! Solvers for ordinary differential equations, systems of equations and integrals, for many lanes at once. Their
//! derivatives are the exact derivatives of the computed solution.
//!
//! | file | subject |
//! | --- | --- |
//! | `ode` | initial value problems: steps, error control of each lane |
//! | `trajectory` | the steps taken, and their adjoint |
//! | `explicit` | Runge-Kutta pairs of Dormand and Prince (orders 5 and 8) and of Cash and Karp |
//! | `radau` | Radau IIA collocation for stiff equations, with `collocation`, its coefficients |
//! | `implicit` | differences for equations `F(t, y, y′) = 0` |
//! | `root` | systems of equations by Powell's dogleg |
//! | `integral` | integrals over intervals that may be infinite, by the double exponential rule |
//! | `linear`, `factors` | small complex systems of one lane, and of many lanes at once |
//!
//! A solver evaluates a [`System`] for a block of lanes, in rows of contiguous lanes. Each lane has its own step sizes,
//! so its result does not depend on the other lanes.
//!
//! *Copies.* Derivatives along a direction are solutions of a larger system of the same form, with states `(y, dy)`,
//! parameters `(p, dp)` and rates `(f, df)`. If a solver in this module solves the larger system with the steps of the
//! first copy, the result is the exact derivative of the numerical solution with these steps. A single forward routine
//! therefore computes values and tangents, and a single backward routine computes adjoints and their directional
//! derivatives. The latter yield Hessian-vector products.

use crate::simd::Simd;

mod collocation;
mod explicit;
mod factors;
mod implicit;
mod integral;
mod linear;
mod ode;
mod radau;
mod root;
mod trajectory;

pub use integral::{Ends, Integral, NODE};
pub use ode::{Arguments, Method, Ode, SHORTEST};
pub use root::Root;
pub use trajectory::Trajectory;

/// The point at which a [`System`] is evaluated. All rows have one number per lane.
#[derive(Clone, Copy, Debug)]
pub struct Point<'a> {
    /// The independent variable. For a differential equation, it is one row of times. For an integral, it is the rows
    /// of a quadrature node.
    pub clock: &'a [f64],
    /// The states of all copies, one copy after another.
    pub states: &'a [f64],
    /// The parameters of all copies, one copy after another.
    pub parameters: &'a [f64],
    /// The number of lanes, which is a multiple of [`System::granule`].
    pub lanes: usize,
}

/// The right-hand side `f(clock, states, parameters)` of a problem, evaluated separately for each lane.
pub trait System {
    /// Writes the rates, with one row per output and copy.
    fn rate(&mut self, at: Point<'_>, out: &mut [f64]);

    /// Writes ∂f/∂states of the first copy, for the given number of states, as column-major rows of lanes. If there is
    /// only one copy, the Jacobian only steers iterations, so an approximation suffices. The default implementation
    /// uses differences of rates. If tangents or adjoints of implicit steps are needed, the Jacobian must be exact.
    fn jacobian(&mut self, at: Point<'_>, states: usize, out: &mut [f64]) {
        differences(self, at, states, out);
    }

    /// Writes the objective as one row, or returns `false` if the system has no objective. A system has an objective if
    /// its equations are the stationarity conditions for a maximum of the objective. The solver then halves a Newton
    /// step until the step increases the objective.
    fn objective(&mut self, _at: Point<'_>, _out: &mut [f64]) -> bool {
        false
    }

    /// Tells the system how many values the solver has computed outside evaluations. Returns whether the computation
    /// should stop early. If it stops early, its results are NaN.
    fn gives_up(&mut self, _worked: usize) -> bool {
        false
    }

    /// Returns the granule. The number of lanes in each block must be a multiple of the granule.
    fn granule(&self) -> usize {
        1
    }

    /// Returns the SIMD level of the solver's own arithmetic.
    fn simd(&self) -> Simd {
        Simd::Scalar
    }
}

/// A [`System`] that also computes products of weights with its derivatives.
pub trait Differentiable: System {
    /// Writes `∂⟨weights, f⟩/∂states` and `∂⟨weights, f⟩/∂parameters` for all copies.
    fn pull(&mut self, at: Point<'_>, weights: &[f64], states: &mut [f64], parameters: &mut [f64]);
}

/// Computes the Jacobian of a system with one copy, with respect to the given number of states, by forward differences
/// of the rates.
fn differences<S: System + ?Sized>(system: &mut S, at: Point<'_>, states: usize, out: &mut [f64]) {
    let lanes = at.lanes;
    let rows = out.len() / (states * lanes).max(1);
    let mut base = vec![0.0; rows * lanes];
    let mut moved = base.clone();
    let mut slot = at.states.to_vec();
    system.rate(at, &mut base);
    for j in 0..states {
        let column = j * lanes..(j + 1) * lanes;
        let steps: Vec<f64> = at.states[column.clone()]
            .iter()
            .map(|y| {
                let h = 1.5e-8 * y.abs().max(1e-5);
                // This is the actual step after rounding.
                (y + h) - y
            })
            .collect();
        for (to, h) in slot[column.clone()].iter_mut().zip(&steps) {
            *to += h;
        }
        let point = Point {
            states: &slot,
            ..at
        };
        system.rate(point, &mut moved);
        slot[column.clone()].copy_from_slice(&at.states[column]);
        for i in 0..rows {
            for lane in 0..lanes {
                let slope = (moved[i * lanes + lane] - base[i * lanes + lane]) / steps[lane];
                out[(j * rows + i) * lanes + lane] = slope;
            }
        }
    }
}
