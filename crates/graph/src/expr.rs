//! Builds log densities from Rust expressions.
//!
//! A [`Builder`] owns the graph under construction. An [`Expr`] is a handle to a value in this graph, which is either a
//! scalar or a vector. Expressions support the arithmetic operators and the elementary functions. Scalars broadcast
//! against vectors. Constraint helpers ([`Expr::positive`], [`Expr::interval`], …) return the constrained value and add
//! the log-Jacobian of the transform to the density.
//!
//! Mismatched lengths, an index out of range and other errors do not cause a panic immediately. The builder stores the
//! first error together with its source location, and [`Builder::try_density`] returns that error.
//!
//! ```
//! use jensen_density::{Lanes, LanesMut, LogDensity};
//! use jensen_graph::{Builder, Execution};
//!
//! // y ~ normal(a + b x, sigma) with a, b ~ normal(0, 10) and sigma ~ exponential(1).
//! let builder = Builder::new();
//! let x = builder.data(&[0.0, 1.0, 2.0, 3.0]);
//! let y = builder.data(&[0.9, 3.1, 5.2, 6.8]);
//! let a = builder.parameter();
//! let b = builder.parameter();
//! let sigma = builder.parameter().positive();
//! let log_density = y.normal_lpdf(a + b * x, sigma)
//!     + a.normal_lpdf(0.0, 10.0)
//!     + b.normal_lpdf(0.0, 10.0)
//!     + sigma.exponential_lpdf(1.0);
//! let density = builder.try_density(log_density, Execution::default())?;
//!
//! // One draw: a = 1, b = 2, log sigma = 0.
//! let mut workspace = density.workspace(1);
//! let (mut value, mut gradient) = ([0.0], [0.0; 3]);
//! density.value_grad(
//!     &mut workspace,
//!     Lanes::new(&[1.0, 2.0, 0.0], 3, 1),
//!     &mut value,
//!     LanesMut::new(&mut gradient, 3, 1),
//! );
//! let residuals = [-0.1, 0.1, 0.2, -0.2];
//! let squares: f64 = residuals.iter().map(|r| r * r).sum();
//! let log_two_pi = (2.0 * std::f64::consts::PI).ln();
//! let prior = -0.5 * 5.0 / 100.0 - 2.0 * 10.0_f64.ln() - log_two_pi - 1.0;
//! assert!((value[0] - (prior - 2.0 * log_two_pi - 0.5 * squares)).abs() < 1e-12);
//! assert!((gradient[0] - (residuals.iter().sum::<f64>() - 1.0 / 100.0)).abs() < 1e-12);
//! # Ok::<(), jensen_graph::ExprError>(())
//! ```

mod constraints;
mod densities;
mod matrix;
mod operators;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::panic::Location;

use crate::density::{Execution, GraphDensity};
use crate::ir::{Graph, NodeId, Placement, RecordId, Shape};
use crate::ops::ElemOp;
use crate::passes;

pub use matrix::{Matrix, RecordMatrix};

/// An error in an expression, with its source location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprError {
    /// A description of the error.
    pub message: String,
    /// The source location at which the caller built the invalid expression.
    pub location: &'static Location<'static>,
}

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.message)
    }
}

impl std::error::Error for ExprError {}

/// A log density under construction; see the [module documentation](self).
#[derive(Debug, Default)]
pub struct Builder {
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    graph: Graph,
    parameters: Vec<NodeId>,
    log_jacobians: Vec<NodeId>,
    error: Option<ExprError>,
    sites: BTreeMap<(&'static str, u32, u32), u32>,
}

/// A value of a [`Builder`]. The value is a scalar, a vector, or one vector for each record.
#[derive(Clone, Copy)]
pub struct Expr<'b> {
    builder: &'b Builder,
    node: NodeId,
}

/// A column of data that assigns an element index to each record.
#[derive(Clone, Copy)]
pub struct RecordIndices<'b> {
    builder: &'b Builder,
    column: Option<RecordId>,
    /// One more than the largest index. A vector whose elements are gathered must have at least this length.
    least: u32,
}

/// A type that can be used as an operand of an expression. The type is either [`Expr`] or a number type.
pub trait Operand<'b> {
    /// Converts the value to an expression of `builder`.
    fn expr(self, builder: &'b Builder) -> Expr<'b>;
}

impl<'b> Operand<'b> for Expr<'b> {
    fn expr(self, _builder: &'b Builder) -> Expr<'b> {
        self
    }
}

impl<'b> Operand<'b> for f64 {
    fn expr(self, builder: &'b Builder) -> Expr<'b> {
        builder.constant(self)
    }
}

impl fmt::Debug for Expr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = self.shape();
        write!(f, "Expr({}, {} elements", self.node, shape.len)?;
        f.write_str(if shape.record { " a record)" } else { ")" })
    }
}

impl Builder {
    /// Creates a builder without parameters or data.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an unconstrained parameter, which is the next element of the draw.
    pub fn parameter(&self) -> Expr<'_> {
        self.parameters(1)
    }

    /// Creates a vector of `n` unconstrained parameters, which are the next `n` elements of the draw.
    pub fn parameters(&self, n: usize) -> Expr<'_> {
        let mut state = self.state.borrow_mut();
        let node = state.graph.input(n);
        state.parameters.push(node);
        self.wrap(node)
    }

    /// Creates an expression from a number.
    pub fn constant(&self, value: f64) -> Expr<'_> {
        self.data(&[value])
    }

    /// Creates a vector of data.
    pub fn data(&self, values: &[f64]) -> Expr<'_> {
        let node = self.state.borrow_mut().graph.vector(values);
        self.wrap(node)
    }

    /// Creates a `rows × cols` matrix of data. `values` lists the elements column by column.
    #[track_caller]
    pub fn matrix(&self, rows: usize, cols: usize, values: &[f64]) -> Matrix<'_> {
        self.data(values).reshape(rows, cols)
    }

    /// Creates a column of data along the record axis, with one number per record. All columns must have the same
    /// number of records. [`GraphDensity::bind_records`] selects the records of a batch.
    #[track_caller]
    pub fn record(&self, values: &[f64]) -> Expr<'_> {
        if let Err(message) = self.check_records(values.len()) {
            return self.fail(message);
        }
        let node = self.state.borrow_mut().graph.record(values, 1);
        self.wrap(node)
    }

    /// Creates columns of data along the record axis, with `width` numbers per record. `values` lists all numbers of
    /// the first record, then those of the second, and so on.
    #[track_caller]
    pub fn record_matrix(&self, values: &[f64], width: usize) -> RecordMatrix<'_> {
        if width > 0 && !values.len().is_multiple_of(width) {
            let message = format!("{} numbers are not whole records of {width}", values.len());
            return RecordMatrix::new(vec![self.fail(message)]);
        }
        let mut columns = Vec::with_capacity(width);
        for j in 0..width {
            let column: Vec<f64> = values.iter().skip(j).step_by(width).copied().collect();
            columns.push(self.record(&column));
        }
        RecordMatrix::new(columns)
    }

    /// Creates a column with one index per record, for use with [`Expr::gather_record`].
    #[track_caller]
    pub fn record_indices(&self, indices: &[usize]) -> RecordIndices<'_> {
        let narrow: Result<Vec<u32>, _> = indices.iter().map(|&i| u32::try_from(i)).collect();
        let checked = self
            .check_records(indices.len())
            .and_then(|()| narrow.map_err(|_| "an index is too large".to_owned()));
        let (column, least) = match checked {
            Ok(narrow) => {
                let least = narrow.iter().map(|&i| i.saturating_add(1)).max();
                let column = self.state.borrow_mut().graph.record_indices(&narrow);
                (Some(column), least.unwrap_or(0))
            }
            Err(message) => {
                self.fail(message);
                (None, 0)
            }
        };
        RecordIndices {
            builder: self,
            column,
            least,
        }
    }

    fn check_records(&self, count: usize) -> Result<(), String> {
        match self.state.borrow().graph.record_count() {
            Some(records) if records != count => Err(format!(
                "a column of {count} records, where earlier columns have {records}"
            )),
            _ => Ok(()),
        }
    }

    /// Returns the number of records in the bound batch, as an expression.
    pub fn records_in_batch(&self) -> Expr<'_> {
        let node = self.state.borrow_mut().graph.records_in_batch();
        self.wrap(node)
    }

    /// Concatenates scalars and vectors.
    #[track_caller]
    pub fn concat(&self, parts: &[Expr<'_>]) -> Expr<'_> {
        if parts.iter().any(|part| part.shape().record) {
            return self.fail("record columns cannot be concatenated".into());
        }
        self.emit(&[], |graph, _| {
            let parts: Vec<NodeId> = parts.iter().map(|part| part.node).collect();
            Ok(graph.concat(&parts))
        })
    }

    /// Returns the sum of several terms, which broadcast against each other.
    #[track_caller]
    pub fn total<'b>(&'b self, terms: impl IntoIterator<Item = Expr<'b>>) -> Expr<'b> {
        let terms: Vec<Expr<'b>> = terms.into_iter().collect();
        let nodes: Vec<NodeId> = terms.iter().map(|term| term.node).collect();
        self.emit(&nodes, |graph, nodes| {
            agree(graph, nodes)?;
            Ok(graph.add_all(nodes))
        })
    }

    /// Builds a graph with one input and one output. The input is the draw, which consists of all parameters in the
    /// order of their creation. The output is `log_density` plus the log-Jacobians of the constraints.
    ///
    /// # Errors
    /// Returns the first error that this builder recorded. Also fails if the density is not a scalar or if there are no
    /// parameters.
    #[track_caller]
    pub fn try_graph(&self, log_density: Expr<'_>) -> Result<Graph, ExprError> {
        let location = Location::caller();
        let state = self.state.borrow();
        if let Some(error) = &state.error {
            return Err(error.clone());
        }
        let fail = |message: &str| {
            Err(ExprError {
                message: message.into(),
                location,
            })
        };
        if !state.graph.shape(log_density.node).is_scalar() {
            return fail("the log density is a scalar; sum its elements");
        }
        let lengths: Vec<usize> = state.graph.inputs().iter().map(|input| input.len).collect();
        let dim = lengths.iter().sum();
        if dim == 0 {
            return fail("the density has no parameters");
        }
        let mut whole = state.graph.clone();
        let mut terms = vec![log_density.node];
        terms.extend(&state.log_jacobians);
        let target = whole.add_all(&terms);
        let mut graph = whole.like();
        graph.inputs.clear();
        let z = graph.input(dim);
        let mut start = 0;
        let parts: Vec<(NodeId, NodeId)> = state
            .parameters
            .iter()
            .zip(lengths)
            .map(|(&parameter, len)| {
                let part = graph.slice(z, start, len);
                start += len;
                (parameter, part)
            })
            .collect();
        let outputs = passes::transplant(&whole, &[target], &parts, &mut graph);
        graph.set_outputs(outputs);
        Ok(graph)
    }

    /// Builds the density, differentiates it and prepares it for evaluation; see [`try_graph`](Self::try_graph).
    ///
    /// # Errors
    /// Fails under the same conditions as [`try_graph`](Self::try_graph).
    #[track_caller]
    pub fn try_density(
        &self,
        log_density: Expr<'_>,
        execution: Execution,
    ) -> Result<GraphDensity, ExprError> {
        Ok(GraphDensity::new(&self.try_graph(log_density)?, execution))
    }

    /// Like [`try_density`](Self::try_density), but for programs whose expressions are known to be valid.
    ///
    /// # Panics
    /// Panics with the message of the error if `try_density` returns one.
    #[track_caller]
    pub fn density(&self, log_density: Expr<'_>, execution: Execution) -> GraphDensity {
        match self.try_density(log_density, execution) {
            Ok(density) => density,
            Err(error) => panic!("{error}"),
        }
    }

    fn wrap(&self, node: NodeId) -> Expr<'_> {
        Expr {
            builder: self,
            node,
        }
    }

    /// Records the message if it is the first error, and returns a placeholder for the value that could not be built.
    #[track_caller]
    fn fail(&self, message: String) -> Expr<'_> {
        let location = Location::caller();
        let mut state = self.state.borrow_mut();
        state.error.get_or_insert(ExprError { message, location });
        let node = state.graph.constant(f64::NAN);
        self.wrap(node)
    }

    /// Adds a node and records the source location of the caller as its site. Copies of an expression in an unrolled
    /// loop are later recognised by their sites.
    #[track_caller]
    fn emit(
        &self,
        args: &[NodeId],
        make: impl FnOnce(&mut Graph, &[NodeId]) -> Result<NodeId, String>,
    ) -> Expr<'_> {
        let location = Location::caller();
        let made = {
            let mut state = self.state.borrow_mut();
            let state = &mut *state;
            if state.error.is_some() {
                Ok(state.graph.constant(f64::NAN))
            } else {
                let next = state.sites.len() as u32 + 1;
                let location = (location.file(), location.line(), location.column());
                let site = *state.sites.entry(location).or_insert(next);
                state.graph.set_site(site);
                let made = make(&mut state.graph, args);
                state.graph.set_site(0);
                made
            }
        };
        match made {
            Ok(node) => self.wrap(node),
            Err(message) => self.fail(message),
        }
    }

    fn add_log_jacobian(&self, term: Expr<'_>) {
        let mut state = self.state.borrow_mut();
        let sum = state.graph.sum(term.node);
        state.log_jacobians.push(sum);
    }
}

fn describe(shape: Shape) -> String {
    match (shape.len, shape.record) {
        (1, true) => "a record column".into(),
        (len, true) => format!("{len} elements a record"),
        (1, false) => "a scalar".into(),
        (len, false) => format!("{len} elements"),
    }
}

fn agree(graph: &Graph, args: &[NodeId]) -> Result<(), String> {
    let mut wide = args
        .iter()
        .map(|&arg| graph.shape(arg))
        .filter(|shape| !shape.is_scalar());
    let Some(first) = wide.next() else {
        return Ok(());
    };
    match wide.find(|shape| *shape != first) {
        None => Ok(()),
        Some(other) => Err(format!("{} against {}", describe(first), describe(other))),
    }
}

impl<'b> Expr<'b> {
    fn shape(self) -> Shape {
        self.builder.state.borrow().graph.shape(self.node)
    }

    /// Returns the number of elements. For a value along the record axis, this is the number of elements per record.
    #[expect(clippy::len_without_is_empty, reason = "values are seldom empty")]
    pub fn len(self) -> usize {
        self.shape().len as usize
    }

    /// Returns whether the value depends on parameters.
    pub fn is_parametric(self) -> bool {
        self.builder.state.borrow().graph.placement(self.node) == Placement::Lane
    }

    #[track_caller]
    fn elementwise(self, op: ElemOp, others: &[Expr<'b>]) -> Expr<'b> {
        if let Some(other) = others
            .iter()
            .find(|other| !std::ptr::eq(other.builder, self.builder))
        {
            other.builder.fail("values of two builders".into());
            return self.builder.fail("values of two builders".into());
        }
        let mut args = vec![self.node];
        args.extend(others.iter().map(|other| other.node));
        self.builder.emit(&args, |graph, args| {
            agree(graph, args).map_err(|problem| format!("{}: {problem}", op.name()))?;
            Ok(graph.elem(op, args))
        })
    }

    #[track_caller]
    fn fixed(self, make: impl FnOnce(&mut Graph, NodeId) -> Result<NodeId, String>) -> Expr<'b> {
        self.builder.emit(&[self.node], |graph, args| {
            if graph.shape(args[0]).record {
                return Err("a record column has no elements to pick".into());
            }
            make(graph, args[0])
        })
    }

    /// Returns element `i`, counted from zero.
    #[track_caller]
    pub fn at(self, i: usize) -> Expr<'b> {
        self.gather(&[i])
    }

    /// Returns the elements in a range of indices.
    #[track_caller]
    pub fn slice(self, range: Range<usize>) -> Expr<'b> {
        self.gather(&range.collect::<Vec<usize>>())
    }

    /// Returns the elements at `indices`. Indices count from zero and may repeat.
    #[track_caller]
    pub fn gather(self, indices: &[usize]) -> Expr<'b> {
        self.fixed(|graph, x| {
            let len = graph.shape(x).len;
            let indices: Result<Vec<u32>, String> = indices
                .iter()
                .map(|&i| match u32::try_from(i) {
                    Ok(i) if i < len => Ok(i),
                    _ => Err(format!("index {i} of {len} elements")),
                })
                .collect();
            Ok(graph.gather(x, &indices?))
        })
    }

    /// Selects one element for each record, at the index that `indices` contains for that record.
    #[track_caller]
    pub fn gather_record(self, indices: RecordIndices<'b>) -> Expr<'b> {
        if !std::ptr::eq(indices.builder, self.builder) {
            return self.builder.fail("values of two builders".into());
        }
        self.fixed(|graph, x| {
            let len = graph.shape(x).len;
            match indices.column {
                Some(column) if indices.least <= len => Ok(graph.gather_record(x, column)),
                _ => Err(format!(
                    "index {} of {len} elements",
                    indices.least.saturating_sub(1)
                )),
            }
        })
    }

    /// Returns the sum of all elements. For a value along the record axis, the sum extends over all records of the
    /// batch.
    #[track_caller]
    pub fn sum(self) -> Expr<'b> {
        self.builder
            .emit(&[self.node], |graph, args| Ok(graph.sum(args[0])))
    }

    /// Returns the mean of all elements of a fixed-size value.
    #[track_caller]
    pub fn mean(self) -> Expr<'b> {
        self.fixed(|graph, x| {
            let weight = 1.0 / f64::from(graph.shape(x).len);
            let sum = graph.sum(x);
            Ok(graph.scale(weight, sum))
        })
    }

    /// Returns the dot product of two vectors.
    #[track_caller]
    pub fn dot(self, other: impl Operand<'b>) -> Expr<'b> {
        let other = other.expr(self.builder);
        self.elementwise(ElemOp::Mul, &[other]).sum()
    }

    /// Returns the largest element.
    #[track_caller]
    pub fn max(self) -> Expr<'b> {
        self.fixed(|graph, x| Ok(graph.max(x)))
    }

    /// Returns the cumulative sums. The first of them is the first element.
    #[track_caller]
    pub fn cumsum(self) -> Expr<'b> {
        self.fixed(|graph, x| Ok(graph.cumsum(x)))
    }

    /// Returns `log Σ exp xᵢ`, computed without overflow or underflow.
    #[track_caller]
    pub fn log_sum_exp(self) -> Expr<'b> {
        self.fixed(|graph, x| {
            let max = graph.max(x);
            let shift = graph.elem(ElemOp::Pivot, &[max]);
            let shifted = graph.sub(x, shift);
            let exp = graph.exp(shifted);
            let sum = graph.sum(exp);
            let log = graph.log(sum);
            Ok(graph.add(shift, log))
        })
    }

    /// Returns `self` at elements where `condition` is not zero, and `other` at all others.
    #[track_caller]
    pub fn where_else(self, condition: Expr<'b>, other: impl Operand<'b>) -> Expr<'b> {
        let other = other.expr(self.builder);
        condition.elementwise(ElemOp::Select, &[self, other])
    }

    /// Arranges the elements of a vector as a `rows × cols` matrix in column-major order.
    #[track_caller]
    pub fn reshape(self, rows: usize, cols: usize) -> Matrix<'b> {
        Matrix::new(self, rows, cols)
    }
}
