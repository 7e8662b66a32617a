//! Hoists products with a row of the data out of a loop over the rows, as in `X[n] * beta`.
//!
//! Without hoisting, each iteration of an unrolled loop would compute its own dot product. With hoisting, the product
//! with all rows is computed once as a dense product, and each iteration uses one of its elements.

use std::sync::Arc;

use super::Lower;
use crate::program::{Expr, ExprKind, Index};
use crate::symbolic::tape::E;
use crate::symbolic::value::{Dims, Leaf, Sym, e_cell};
use crate::value::Value;
use crate::value::error::Eval;

/// The smallest length of a row for which the product is hoisted. Products with shorter rows are expanded, so that they
/// can be merged with the surrounding expression.
const LONG: usize = 9;

const RECENT: usize = 16;

pub(super) struct Product<'g> {
    rows: Arc<Value>,
    factor: jensen_graph::NodeId,
    /// A `count × cols` matrix.
    all: E<'g>,
}

struct DataRow {
    rows: Arc<Value>,
    position: RowPosition,
    count: usize,
    length: usize,
    /// Whether the data are stored row by row instead of as a column-major matrix.
    by_row: bool,
}

enum RowPosition {
    One(usize),
    Each(Vec<u32>),
}

impl RowPosition {
    fn of<'g>(&self, all: E<'g>, j: usize, count: usize) -> E<'g> {
        match self {
            RowPosition::One(position) => all.at(j * count + position),
            RowPosition::Each(positions) => {
                let index: Vec<u32> = positions.iter().map(|p| (j * count) as u32 + p).collect();
                all.gather_record(&index)
            }
        }
    }
}

impl<'g> Lower<'_, 'g> {
    /// Returns `None` unless `row` is a row of the data in a loop that visits many rows, and the factor depends on
    /// parameters.
    pub(super) fn product_with_row(
        &mut self,
        row: &Expr,
        factor: &Expr,
        site: &Expr,
    ) -> Eval<Option<Sym>> {
        // The factor may be evaluated again, so its evaluation must not add to the log density.
        let plain = matches!(factor.kind, ExprKind::Var(_) | ExprKind::Index(..));
        let many = self.tape.unrolling.get() || self.in_iterations();
        if !plain || !many || self.axis.is_some() {
            return Ok(None);
        }
        let Some(row) = self.row_of_data(row)? else {
            return Ok(None);
        };
        let factor = self.expr(factor)?;
        let cols = match (&factor, factor.dims()) {
            (Sym::Flat(_), Ok(dims)) if dims.array.is_empty() && !factor.has_records(self.tape) => {
                match dims.leaf {
                    Leaf::Vector(n) | Leaf::Row(n) if n == row.length => 1,
                    Leaf::Matrix(n, cols) if n == row.length => cols,
                    _ => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        self.site(site);
        let e = factor.e(self.tape).map_err(|e| e.at(site.span))?;
        let all = self.product(&row, e, cols);
        if matches!(factor.dims(), Ok(dims) if matches!(dims.leaf, Leaf::Matrix(..))) {
            let dims = Dims::leaf(Leaf::Row(cols));
            return Ok(Some(match &row.position {
                RowPosition::One(position) => {
                    let index: Vec<u32> = (0..cols)
                        .map(|j| (j * row.count + position) as u32)
                        .collect();
                    Sym::flat(dims, all.gather(&index))
                }
                each => {
                    let cells = (0..cols).map(|j| e_cell(each.of(all, j, row.count)));
                    Sym::cells(dims, cells.collect())
                }
            }));
        }
        Ok(Some(row.position.of(all, 0, row.count).into()))
    }

    fn product(&mut self, row: &DataRow, factor: E<'g>, cols: usize) -> E<'g> {
        let same = |p: &&Product<'g>| Arc::ptr_eq(&p.rows, &row.rows) && p.factor == factor.id;
        if let Some(found) = self.products.iter().rev().take(RECENT).find(same) {
            return found.all;
        }
        let elements = self.tape.vector(&row.rows.numbers());
        let all = elements.matmul_with(factor, row.count, row.length, cols, row.by_row, false);
        self.products.push(Product {
            rows: row.rows.clone(),
            factor: factor.id,
            all,
        });
        all
    }

    fn row_of_data(&mut self, expr: &Expr) -> Eval<Option<DataRow>> {
        let expr = match &expr.kind {
            ExprKind::Transpose(inner) => inner,
            _ => expr,
        };
        let ExprKind::Index(base, indices) = &expr.kind else {
            return Ok(None);
        };
        let (ExprKind::Var(var), [Index::Single(at), rest @ ..]) = (&base.kind, &indices[..])
        else {
            return Ok(None);
        };
        if !rest.iter().all(|i| matches!(i, Index::All)) {
            return Ok(None);
        }
        let Some(Sym::Data(rows)) = &self.slots[var.0 as usize] else {
            return Ok(None);
        };
        let (count, length, by_row) = match &**rows {
            Value::Matrix(m) => (m.rows(), m.cols(), false),
            Value::Array(x) => match x.first() {
                Some(Value::Vector(v) | Value::RowVector(v)) => (x.len(), v.len(), true),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let visits = self.loops.iter().map(|l| l.trips).max().unwrap_or(0);
        let visits = visits.max(self.iteration_count());
        let long = if self.in_iterations() { 2 } else { LONG };
        if length < long || count > visits.saturating_mul(2) {
            return Ok(None);
        }
        let rows = rows.clone();
        let position = self.expr(at)?;
        if position.has_records(self.tape) {
            let positions = self.own_positions(&position, count, 1);
            return Ok(Some(DataRow {
                rows,
                position: RowPosition::Each(positions.map_err(|e| e.at(at.span))?),
                count,
                length,
                by_row,
            }));
        }
        let position = position.int().map_err(|e| e.at(at.span))?;
        Ok(match usize::try_from(position) {
            Ok(position) if (1..=count).contains(&position) => Some(DataRow {
                rows,
                position: RowPosition::One(position - 1),
                count,
                length,
                by_row,
            }),
            // The general code reports the error in the index.
            _ => None,
        })
    }
}
