//! The operations of a graph.
//!
//! *Elementwise* operations are rows of one table ([`elementwise`]) with name, value, lane kernel, range, derivative
//! rule and test points. *Structural* operations move, reduce or factorise values. The module `structural` contains
//! their shape rules, slow values and derivative rules. *Solvers* own a graph, whose rates they integrate or whose root
//! they find; see `solver`.

pub mod elementwise;
pub(crate) mod hypergeometric;
mod range;
mod slopes;
mod solver;
pub(crate) mod spectra;
mod streamed;
pub(crate) mod structural;

pub use elementwise::ElemOp;
pub use range::ValueRange;
pub use solver::{Pass, Solver, SolverKind};
pub(crate) use streamed::{SHORTEST, Streamed, streamed};

use crate::ir::{ConstId, IndexId, RecordId, SolverId};

/// The extents of a matrix product: `m × k` times `k × n`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MatMul {
    /// The number of rows of the result.
    pub m: u32,
    /// The contracted extent.
    pub k: u32,
    /// The number of columns of the result.
    pub n: u32,
    /// Whether the left factor is stored transposed, as `k × m`.
    pub left_transposed: bool,
    /// Whether the right factor is stored transposed, as `n × k`.
    pub right_transposed: bool,
}

/// The destination of the elements of one source of an [`Op::Scatter`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ScatterMap {
    /// Element i is added to element i of the result.
    All,
    /// Element i is added to element `index[i]` of the result.
    Index(IndexId),
    /// The element of record r is added to element `index[r]` of the result, where `index` is a record column.
    Record(RecordId),
}

/// The largest number of sources of one scatter. Sums of more sources are nested scatters.
pub const MAX_SCATTER: usize = 6;

/// The maps of a scatter's sources in order. Unused slots are [`ScatterMap::All`].
pub type ScatterMaps = [ScatterMap; MAX_SCATTER];

/// The operation of a node on its arguments. Matrices are column-major.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// A constant table.
    Const(ConstId),
    /// An input.
    Input(u32),
    /// A record column of numbers.
    Record(RecordId),
    /// The number of records in the batch.
    RecordCount,
    /// An elementwise operation, to which scalar arguments broadcast.
    Elem(ElemOp),
    /// A scalar repeated to the shape of the node.
    Broadcast,
    /// The elements at the given indices: `out[i] = x[index[i]]`.
    Gather(IndexId),
    /// The element at the index of each record: `out[r] = x[index of record r]`.
    GatherRecord(RecordId),
    /// A sum of all sources, each added at its indices to a vector of zeros; see [`ScatterMap`].
    Scatter(ScatterMaps),
    /// The concatenated arguments.
    Concat,
    /// The sum of all elements, over all records for a value along the record axis.
    Sum,
    /// The largest element.
    Max,
    /// Cumulative sums, starting with the first or the last element.
    CumSum {
        /// Whether sums run from the last element to the first.
        reverse: bool,
    },
    /// The sum over the lanes of the batch, which turns a per-lane adjoint into the adjoint of a shared value.
    LaneSum,
    /// A matrix product.
    MatMul(MatMul),
    /// The lower Cholesky factor of a symmetric positive definite `n × n` matrix, of which only the lower triangle is
    /// read. The result is NaN in each lane whose matrix is not positive definite.
    Cholesky {
        /// The extent of the matrix.
        n: u32,
    },
    /// The solution `X` of `L X = B` (or `Lᵀ X = B`) for a lower triangular `n × n` matrix L.
    TriSolve {
        /// The extent of L.
        n: u32,
        /// The number of columns of B.
        cols: u32,
        /// Whether the system has the transpose of L.
        transposed: bool,
    },
    /// The solution `X` of `A X = B` (or `Aᵀ X = B`) for a general `n × n` matrix A, by pivoted elimination.
    Solve {
        /// The extent of A.
        n: u32,
        /// The number of columns of B.
        cols: u32,
        /// Whether the system has the transpose of A.
        transposed: bool,
    },
    /// The value `log |det A|` of a general `n × n` matrix.
    LogAbsDet {
        /// The extent of A.
        n: u32,
    },
    /// The eigenvalues of a symmetric `n × n` matrix in ascending order, followed by the eigenvectors. If the matrix is
    /// not symmetric, its symmetric part is decomposed.
    EigenSym {
        /// The extent of the matrix.
        n: u32,
    },
    /// The eigenvalues and eigenvectors of a complex `n × n` matrix, in the order of `jensen_math::complex`. The
    /// argument consists of the real part followed by the imaginary part. The result consists of the eigenvalues, the
    /// eigenvectors in the same layout, and a matrix with 1 for the component of each vector that is made positive and
    /// 0 elsewhere.
    Eigen {
        /// The extent of the matrix.
        n: u32,
        /// Whether only the Hermitian part is decomposed.
        hermitian: bool,
    },
    /// The hypergeometric function. Its argument is a vector of numerators, denominators and the argument of the
    /// function. Order 0 is its value, order 1 its gradient, and order 2 its second derivatives, with one column per
    /// element.
    Hypergeometric {
        /// The number of numerators.
        above: u32,
        /// The number of denominators.
        below: u32,
        /// The order of the derivatives.
        order: u32,
    },
    /// A pass of a solver.
    Solver(SolverId, Pass),
}

impl Op {
    /// Returns the name of the operation in the text form.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Const(_) => "const",
            Self::Input(_) => "input",
            Self::Record(_) => "record",
            Self::RecordCount => "record_count",
            Self::Elem(op) => op.name(),
            Self::Broadcast => "broadcast",
            Self::Gather(_) => "gather",
            Self::GatherRecord(_) => "gather_record",
            Self::Scatter(_) => "scatter",
            Self::Concat => "concat",
            Self::Sum => "sum",
            Self::Max => "max",
            Self::CumSum { .. } => "cumsum",
            Self::LaneSum => "lane_sum",
            Self::MatMul(_) => "matmul",
            Self::Cholesky { .. } => "cholesky",
            Self::TriSolve { .. } => "tri_solve",
            Self::Solve { .. } => "solve",
            Self::LogAbsDet { .. } => "log_abs_det",
            Self::EigenSym { .. } => "eigen_sym",
            Self::Eigen { .. } => "eigen",
            Self::Hypergeometric { .. } => "hypergeometric",
            Self::Solver(..) => "solver",
        }
    }
}
