//! Operations that own a graph, the *body*: differential equations, systems of equations, and integrals. The body
//! computes the function to be solved or integrated.
//!
//! Each operation is a function f that maps a vector of arguments x to a vector of results. Four passes suffice to
//! compute values, gradients and Hessian-vector products. Let J be the derivative of f at x, and let H be the
//! derivative of `wᵀJ`. The passes are:
//!
//! | pass | arguments | result |
//! | --- | --- | --- |
//! | [`Pass::Value`] | x | f(x) |
//! | [`Pass::Tangent`] | x, dx | J dx |
//! | [`Pass::Adjoint`] | x, w | Jᵀ w |
//! | [`Pass::AdjointTangent`] | x, w, dx, dw | H dx + Jᵀ dw |
//!
//! The module [`crate::solver`] computes these passes.

use jensen_math::solvers::{Integral, Method, NODE, Ode, Root};

use crate::ir::{Graph, Input, Placement};

/// The relative tolerance of the less accurate solutions that [`Solver::roughly`] requests.
const ROUGH: f64 = 1e-4;

/// A function that a body defines, with the method that solves or integrates the body.
#[derive(Clone, Debug)]
pub struct Solver {
    /// The problem and the method.
    pub kind: SolverKind,
    /// The body. The three inputs of the body are per-lane vectors: the clock, the states and the parameters. The
    /// output of the body is a vector of rates. The body of a root may have two more outputs. The first is the Jacobian
    /// in column-major order, if evaluating it is known to be cheaper than computing its columns one by one. The second
    /// is the function to maximise, if the equations describe a maximum.
    pub body: Graph,
}

/// The kind of problem.
#[derive(Clone, Debug, PartialEq)]
pub enum SolverKind {
    /// A differential equation. x contains the initial states, the parameters, the initial time and the output times.
    /// The result contains the states at each output time. The clock of the body runs from 0 to 1 between two times,
    /// which the body receives after the parameters. With [`Method::Implicit`], the body returns residuals, and it
    /// receives the time derivatives of the states after the states.
    Ode(Ode),
    /// A root of a system of equations. x contains the point at which the search starts, followed by the parameters.
    /// The body has no clock.
    Root(Root),
    /// An integral. x contains the limits and the parameters, and the result is one number. The clock of the body is a
    /// quadrature node. The body has no states, and the limits are the first of its parameters.
    Integral(Integral),
}

/// A pass of a solver. Each node of the graph computes one pass.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Pass {
    /// The value of the function.
    Value,
    /// The derivative of the solution along a direction.
    Tangent,
    /// The products of weights with the derivatives of the solution with respect to the arguments.
    Adjoint,
    /// The derivative of the products of [`Pass::Adjoint`] along a direction.
    AdjointTangent,
}

impl Pass {
    /// All passes with their names in the text form.
    pub const ALL: [(Pass, &'static str); 4] = [
        (Pass::Value, "value"),
        (Pass::Tangent, "tangent"),
        (Pass::Adjoint, "adjoint"),
        (Pass::AdjointTangent, "adjoint_tangent"),
    ];

    /// Returns the name of the pass in the text form.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Returns whether the pass computes a derivative along a direction.
    pub fn moves(self) -> bool {
        matches!(self, Pass::Tangent | Pass::AdjointTangent)
    }

    /// Returns whether the pass takes weights and returns their products with derivatives.
    pub fn pulls(self) -> bool {
        matches!(self, Pass::Adjoint | Pass::AdjointTangent)
    }

    /// Returns the number of copies of the system that this pass solves together.
    pub fn copies(self) -> usize {
        if self.moves() { 2 } else { 1 }
    }
}

impl Solver {
    /// Returns the length of x.
    pub fn arguments(&self) -> usize {
        match &self.kind {
            SolverKind::Ode(ode) => ode.arguments(),
            SolverKind::Root(root) => root.arguments(),
            SolverKind::Integral(integral) => integral.parameters,
        }
    }

    /// Returns the length of the result.
    pub fn results(&self) -> usize {
        match &self.kind {
            SolverKind::Ode(ode) => ode.results(),
            SolverKind::Root(root) => root.unknowns,
            SolverKind::Integral(_) => 1,
        }
    }

    /// Returns the lengths of the body's clock, states and parameters, followed by the number of its rates.
    pub fn extents(&self) -> ([usize; 3], usize) {
        match &self.kind {
            SolverKind::Ode(ode) => {
                let each = if ode.method == Method::Implicit { 2 } else { 1 };
                ([1, each * ode.states, ode.system_parameters()], ode.states)
            }
            SolverKind::Root(root) => ([0, root.unknowns, root.parameters], root.unknowns),
            SolverKind::Integral(integral) => ([NODE, 0, integral.parameters], 1),
        }
    }

    /// Returns the number of rows of the matrices that the solver factorises. The number is 0 for integrals and for
    /// explicit methods, which factorise no matrix.
    pub fn factored(&self) -> usize {
        match &self.kind {
            SolverKind::Ode(ode) if matches!(ode.method, Method::Radau | Method::Implicit) => {
                ode.states
            }
            SolverKind::Root(root) => root.unknowns,
            SolverKind::Ode(_) | SolverKind::Integral(_) => 0,
        }
    }

    /// Returns the lengths of the arguments of a pass, in order, and the length of the result.
    pub fn signature(&self, pass: Pass) -> (Vec<usize>, usize) {
        let (x, f) = (self.arguments(), self.results());
        match pass {
            Pass::Value => (vec![x], f),
            Pass::Tangent => (vec![x, x], f),
            Pass::Adjoint => (vec![x, f], x),
            Pass::AdjointTangent => (vec![x, f, x, f], x),
        }
    }

    /// Returns a copy of this solver that solves differential equations less accurately. The lower accuracy suffices
    /// when a run searches for a starting point.
    pub fn roughly(&self) -> Self {
        let mut rough = self.clone();
        if let SolverKind::Ode(ode) = &mut rough.kind {
            ode.loosen(ROUGH);
        }
        rough
    }

    /// Returns whether another solver computes the same function.
    pub fn same(&self, other: &Solver) -> bool {
        self.kind == other.kind && self.body.same(&other.body)
    }

    /// Returns a description of the first error in the extents, the settings or the form of the body. Returns `None` if
    /// there is no error.
    pub fn problem(&self) -> Option<String> {
        const MOST: usize = u32::MAX as usize / 8;
        let sizes = match &self.kind {
            SolverKind::Ode(ode) => [ode.states, ode.parameters, ode.times],
            SolverKind::Root(root) => [root.unknowns, root.parameters, 1],
            SolverKind::Integral(integral) => [1, integral.parameters, 1],
        };
        let product = sizes[0].checked_mul(sizes[2]);
        if sizes.iter().any(|size| *size > MOST) || product.is_none_or(|size| size > MOST) {
            return Some("a solver of more elements than a graph may have".into());
        }
        if sizes[0] == 0 || sizes[2] == 0 {
            return Some("a solver without states or times".into());
        }
        match &self.kind {
            SolverKind::Ode(ode) if ode.absolute.len() != ode.states => {
                return Some(
                    "the number of absolute tolerances differs from the number of states".into(),
                );
            }
            SolverKind::Ode(ode)
                if ode.method == Method::Implicit && ode.parameters < ode.states =>
            {
                return Some("the last parameters must be the derivatives at the start".into());
            }
            SolverKind::Integral(integral) if integral.parameters < 2 => {
                return Some("limits stand first among the parameters of an integral".into());
            }
            _ => {}
        }
        let lane = |input: &Input| input.placement == Placement::Lane;
        if self.body.record_count().is_some() || !self.body.inputs().iter().all(lane) {
            return Some("a body has inputs of lanes alone, and no records".into());
        }
        let (inputs, rates) = self.extents();
        let found: Vec<usize> = self.body.inputs().iter().map(|input| input.len).collect();
        if found != inputs {
            return Some(format!(
                "the body has inputs of {found:?} elements, expected {inputs:?}"
            ));
        }
        let outputs = self.body.outputs().iter();
        let found: Vec<usize> = outputs
            .map(|out| self.body.shape(*out).len as usize)
            .collect();
        let root = matches!(self.kind, SolverKind::Root(_));
        if found == [rates] || (root && found == [rates, rates * rates, 1]) {
            return None;
        }
        Some(format!(
            "the body must have one output of {rates} elements; the body of a root may also have a Jacobian and an \
             objective"
        ))
    }
}
