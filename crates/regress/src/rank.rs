//! Detects linearly dependent columns.

use crate::basis::mean;
use crate::error::Span;
use crate::syntax::{Expr, Kind};

/// Finds the first column that is a linear combination of earlier columns, and of a constant if there is an intercept.
/// Returns the index of this column and the indices of the columns in the combination.
pub fn dependent(columns: &[Vec<f64>], intercept: bool) -> Option<(usize, Vec<usize>)> {
    // The criterion is the norm of the residual after projecting a column on the earlier ones, relative to the norm of
    // the column itself. R's `lm` uses the same criterion.
    const LEFT: f64 = 1e-7;
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    for (at, column) in columns.iter().enumerate() {
        let whole = norm(column);
        let mut rest = column.clone();
        if intercept {
            let middle = mean(&rest);
            rest.iter_mut().for_each(|x| *x -= middle);
        }
        let mut takes_part = Vec::new();
        // The projection runs twice, because the second run removes the rounding errors of the first run.
        for round in 0..2 {
            for (of, unit) in basis.iter().enumerate() {
                let along: f64 = unit.iter().zip(&rest).map(|(u, x)| u * x).sum();
                rest.iter_mut().zip(unit).for_each(|(x, u)| *x -= along * u);
                if round == 0 && along.abs() > 1e-6 * whole {
                    takes_part.push(of);
                }
            }
        }
        let left = norm(&rest);
        if left <= LEFT * whole {
            return Some((at, takes_part));
        }
        rest.iter_mut().for_each(|x| *x /= left);
        basis.push(rest);
    }
    None
}

/// Returns the location of the term that a column comes from. This term is the longest part of the expression whose
/// text is a prefix of the column's name.
pub fn place(expr: &Expr, name: &str) -> Span {
    fn search<'a>(expr: &'a Expr, name: &str, found: &mut Option<&'a Expr>) {
        let text = expr.to_string();
        if name.starts_with(&text) || name.split(':').any(|part| part.starts_with(&text)) {
            let longer = found.is_none_or(|known| known.to_string().len() < text.len());
            if longer {
                *found = Some(expr);
            }
            return;
        }
        match &expr.kind {
            Kind::Binary(_, left, right) => {
                search(left, name, found);
                search(right, name, found);
            }
            Kind::Unary(_, inner) | Kind::Group(inner) => search(inner, name, found),
            _ => {}
        }
    }
    let mut found = None;
    search(expr, name, &mut found);
    found.map_or(expr.span, |expr| expr.span)
}
