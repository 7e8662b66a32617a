//! The operations of a graph.
//!
//! *Elementwise* operations are the rows of one table ([`elementwise`]), which contains the name, value, lane kernel,
//! range, derivative rule and test points of each operation. *Structural* operations move, reduce or factorise values.
//! The module `structural` contains their shape rules, scalar definitions and derivative rules. *Solvers* are
//! operations that own a graph. A solver integrates a differential equation or a function that its graph defines, or it
//! finds a root of the function; see `solver`.

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

/// The extents of a matrix product, whose factors are `m × k` and `k × n` matrices.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MatMul {
    /// The number of rows of the result.
    pub m: u32,
    /// The extent over which the product sums: the number of columns of the left factor and of rows of the right
    /// factor.
    pub k: u32,
    /// The number of columns of the result.
    pub n: u32,
    /// Whether the left factor is stored transposed, as `k × m`.
    pub left_transposed: bool,
    /// Whether the right factor is stored transposed, as `n × k`.
    pub right_transposed: bool,
}

/// Where an [`Op::Scatter`] adds the elements of one of its sources.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ScatterMap {
    /// Element i is added to element i of the result.
    All,
    /// Element i is added to element `index[i]` of the result.
    Index(IndexId),
    /// The element of record r is added to element `index[r]` of the result, where `index` is a record column.
    Record(RecordId),
}

/// The largest number of sources of one scatter. A sum with more sources is built from nested scatters.
pub const MAX_SCATTER: usize = 6;

/// The maps of a scatter's sources, in the order of the sources. Unused slots are [`ScatterMap::All`].
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
    /// An elementwise operation. Scalar arguments broadcast against the other arguments.
    Elem(ElemOp),
    /// A scalar that is repeated to fill the shape of the node.
    Broadcast,
    /// The elements at the given indices: `out[i] = x[index[i]]`.
    Gather(IndexId),
    /// For each record, the element at the index of that record: `out[r] = x[index of record r]`.
    GatherRecord(RecordId),
    /// The sum of all sources. Each source is added to a vector of zeros at the indices of its map; see [`ScatterMap`].
    Scatter(ScatterMaps),
    /// The concatenation of the arguments.
    Concat,
    /// The sum of all elements. For a value along the record axis, the sum extends over all records.
    Sum,
    /// The largest element.
    Max,
    /// The cumulative sums, starting with the first or with the last element.
    CumSum {
        /// Whether sums run from the last element to the first.
        reverse: bool,
    },
    /// The sum over the lanes of the batch. The operation converts a per-lane adjoint to the adjoint of a shared value.
    LaneSum,
    /// A matrix product.
    MatMul(MatMul),
    /// The lower Cholesky factor of a symmetric positive definite `n × n` matrix. Only the lower triangle of the matrix
    /// is read. The result is NaN in each lane whose matrix is not positive definite.
    Cholesky {
        /// The number of rows and columns of the matrix.
        n: u32,
    },
    /// The solution `X` of `L X = B` (or `Lᵀ X = B`) for a lower triangular `n × n` matrix L.
    TriSolve {
        /// The number of rows and columns of L.
        n: u32,
        /// The number of columns of B.
        cols: u32,
        /// Whether the system is `Lᵀ X = B` instead of `L X = B`.
        transposed: bool,
    },
    /// The solution `X` of `A X = B` (or `Aᵀ X = B`) for a general `n × n` matrix A, computed by elimination with
    /// pivoting.
    Solve {
        /// The number of rows and columns of A.
        n: u32,
        /// The number of columns of B.
        cols: u32,
        /// Whether the system is `Aᵀ X = B` instead of `A X = B`.
        transposed: bool,
    },
    /// The determinant of a general `n × n` matrix A, or `log |det A|`.
    Determinant {
        /// The number of rows and columns of A.
        n: u32,
        /// Whether the result is `log |det A|`.
        log: bool,
    },
    /// The eigenvalues of a symmetric `n × n` matrix in ascending order, followed by the eigenvectors. If the matrix is
    /// not symmetric, its symmetric part is decomposed.
    EigenSym {
        /// The number of rows and columns of the matrix.
        n: u32,
    },
    /// The eigenvalues and eigenvectors of a complex `n × n` matrix, in the order of `jensen_math::complex`. The
    /// argument contains the real parts of all elements, followed by the imaginary parts. The result contains the
    /// eigenvalues and the eigenvectors in the same layout, followed by a matrix that marks one component of each
    /// eigenvector. This matrix is 1 at the marked components and 0 elsewhere. The marked component of each eigenvector
    /// is made positive.
    Eigen {
        /// The number of rows and columns of the matrix.
        n: u32,
        /// Whether the decomposition is that of the Hermitian part of the matrix.
        hermitian: bool,
    },
    /// The hypergeometric function, or derivatives of this function. The argument is a vector of the numerator
    /// parameters, the denominator parameters and the argument of the function. Order 0 is the value, order 1 is the
    /// gradient, and order 2 is the matrix of second derivatives, with one column for each element of the vector.
    Hypergeometric {
        /// The number of numerator parameters.
        above: u32,
        /// The number of denominator parameters.
        below: u32,
        /// The order of the derivatives.
        order: u32,
    },
    /// One pass of a solver.
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
            Self::Determinant { .. } => "determinant",
            Self::EigenSym { .. } => "eigen_sym",
            Self::Eigen { .. } => "eigen",
            Self::Hypergeometric { .. } => "hypergeometric",
            Self::Solver(..) => "solver",
        }
    }
}
