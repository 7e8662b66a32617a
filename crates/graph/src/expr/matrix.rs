//! Matrices of expressions.

use super::Expr;
use crate::ir::Graph;
use crate::ops::MatMul;

/// A matrix whose elements are stored in a vector, column by column.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'b> {
    elements: Expr<'b>,
    rows: usize,
    cols: usize,
}

/// A matrix with one row per record, such as a design matrix. Its columns run along the record axis.
#[derive(Clone, Debug)]
pub struct RecordMatrix<'b> {
    columns: Vec<Expr<'b>>,
}

impl<'b> Matrix<'b> {
    #[track_caller]
    pub(super) fn new(elements: Expr<'b>, rows: usize, cols: usize) -> Self {
        let shape = elements.shape();
        let fits = !shape.record && rows.checked_mul(cols) == Some(shape.len as usize);
        let elements = if fits {
            elements
        } else {
            let found = super::describe(shape);
            elements
                .builder
                .fail(format!("a {rows} × {cols} matrix of {found}"))
        };
        Self {
            elements,
            rows,
            cols,
        }
    }

    /// Returns the number of rows.
    pub fn rows(self) -> usize {
        self.rows
    }

    /// Returns the number of columns.
    pub fn cols(self) -> usize {
        self.cols
    }

    /// Returns all elements, column by column.
    pub fn elements(self) -> Expr<'b> {
        self.elements
    }

    /// Multiplies the matrix by a vector.
    #[track_caller]
    pub fn mul_vec(self, x: Expr<'b>) -> Expr<'b> {
        self.mul(x.reshape(self.cols, 1)).elements
    }

    /// Multiplies the matrix by another matrix.
    #[track_caller]
    #[expect(
        clippy::should_implement_trait,
        reason = "elementwise products use `*`"
    )]
    pub fn mul(self, other: Matrix<'b>) -> Matrix<'b> {
        let (m, k, n) = (self.rows, self.cols, other.cols);
        let elements = self.elements.builder.emit(
            &[self.elements.node, other.elements.node],
            |graph, args| {
                if k != other.rows {
                    return Err(format!(
                        "a {m} × {k} matrix times a {} × {n} matrix",
                        other.rows
                    ));
                }
                let dims = MatMul {
                    m: extent(m)?,
                    k: extent(k)?,
                    n: extent(n)?,
                    left_transposed: false,
                    right_transposed: false,
                };
                Ok(graph.matmul(args[0], args[1], dims))
            },
        );
        Matrix {
            elements,
            rows: m,
            cols: n,
        }
    }

    /// Returns the transpose.
    #[track_caller]
    pub fn transpose(self) -> Matrix<'b> {
        let (rows, cols) = (self.rows, self.cols);
        let elements = self
            .elements
            .fixed(|graph, x| Ok(graph.transpose(x, rows, cols)));
        Matrix {
            elements,
            rows: cols,
            cols: rows,
        }
    }

    /// Returns the diagonal of a square matrix.
    #[track_caller]
    pub fn diagonal(self) -> Expr<'b> {
        let at: Vec<usize> = (0..self.rows.min(self.cols))
            .map(|i| i * self.rows + i)
            .collect();
        self.elements.gather(&at)
    }

    /// Returns the lower Cholesky factor of a symmetric positive definite matrix. Only the lower triangle of the matrix
    /// is read. The factor is NaN if the matrix is not positive definite.
    #[track_caller]
    pub fn cholesky(self) -> Matrix<'b> {
        self.square("the Cholesky factor", |graph, args, n| {
            graph.cholesky(args[0], n)
        })
    }

    /// Returns `log |det|` of a square matrix.
    #[track_caller]
    pub fn log_abs_det(self) -> Expr<'b> {
        let det = self.square("the determinant", |graph, args, n| {
            graph.log_abs_det(args[0], n)
        });
        det.elements
    }

    /// Solves `L x = b` for `x`, where L is this lower triangular matrix.
    #[track_caller]
    pub fn solve_lower(self, b: Expr<'b>) -> Expr<'b> {
        let b = b.reshape(self.rows, 1).elements;
        let solution = Matrix {
            elements: b,
            ..self
        };
        let l = self.elements.node;
        solution
            .square("a triangular solve", |graph, args, n| {
                graph.tri_solve(l, args[0], n, 1, false)
            })
            .elements
    }

    #[track_caller]
    fn square(
        self,
        what: &str,
        make: impl FnOnce(&mut Graph, &[crate::ir::NodeId], usize) -> crate::ir::NodeId,
    ) -> Matrix<'b> {
        let (rows, cols) = (self.rows, self.cols);
        let elements = self
            .elements
            .builder
            .emit(&[self.elements.node], |graph, args| {
                if rows == cols && rows > 0 {
                    Ok(make(graph, args, rows))
                } else {
                    Err(format!("{what} of a {rows} × {cols} matrix"))
                }
            });
        Matrix { elements, ..self }
    }
}

fn extent(n: usize) -> Result<u32, String> {
    u32::try_from(n).map_err(|_| format!("an extent of {n}"))
}

impl<'b> RecordMatrix<'b> {
    pub(super) fn new(columns: Vec<Expr<'b>>) -> Self {
        Self { columns }
    }

    /// Returns column `j`, which has one number per record, or `None` if there is no such column.
    pub fn column(&self, j: usize) -> Option<Expr<'b>> {
        self.columns.get(j).copied()
    }

    /// Multiplies each record's row by the vector `x`.
    #[track_caller]
    pub fn mul_vec(&self, x: Expr<'b>) -> Expr<'b> {
        if self.columns.len() != x.len() {
            let message = format!("{} columns times {} elements", self.columns.len(), x.len());
            return x.builder.fail(message);
        }
        if self.columns.is_empty() {
            return x.builder.fail("a record matrix without columns".into());
        }
        let mut terms = Vec::with_capacity(self.columns.len());
        for (j, column) in self.columns.iter().enumerate() {
            terms.push(*column * x.at(j));
        }
        x.builder.total(terms)
    }
}
