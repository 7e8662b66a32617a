//! Constraints on flat directions of intrinsic parts that the rows do not identify. For example, a sum of two random
//! walks has two levels, but the data determine only their sum. The data also do not determine the level of a region
//! without observations.
//!
//! If several parts of a sum share such a direction, the first of them remains free along it, and the later ones are
//! constrained. Similarly, later terms in mgcv and INLA sum to zero (Wood 2017, section 5.4.1). The constraint is a
//! proper prior of a single node, which keeps the precision sparse. If another part is flat in the same direction,
//! every way to remove the direction gives the same linear predictor and evidence. The prior of the node has the same
//! precision as a difference between neighbours. With a fixed precision instead, rounding would make the constraint
//! ineffective for nearly constant fields. The reported posterior is shifted so that the constrained direction sums to
//! zero.

use faer::Side;

use super::read::{Piece, Reader};
use super::stack::{Block, Stack};
use crate::linear::design;
use crate::linear::kernels::{add_scaled, cholesky, dot, log_determinant};
use crate::linear::sparse::{orthonormal_columns, pivots};
use crate::{Covariance, Dense, Design, Error, Prior};

/// A flat direction counts as shared with earlier parts if their flat directions explain its effect on the linear
/// predictors. The part that they do not explain must be below this share of the largest effect of a flat direction of
/// the same part.
const DEPENDENT: f64 = 1e-8;

/// A constrained direction of an intrinsic part that shifts all linear predictors equally.
#[derive(Clone, Debug, PartialEq)]
pub struct Pin {
    /// The direction as a unit vector over the nodes that the rows use.
    pub direction: Vec<f64>,
    /// The amount by which the direction shifts each predictor.
    pub shift: f64,
}

pub(super) fn hold(
    stack: &mut Stack,
    pieces: &[Piece],
    design: &Design,
    notes: &mut Vec<String>,
) -> Result<(), Error> {
    let (offsets, latents) = (stack.offsets(), stack.latents());
    let seen = |columns: &Dense, from: usize| -> Vec<Vec<f64>> {
        let one = |k: usize| {
            let mut z = vec![0.0; latents];
            z[from..from + columns.rows].copy_from_slice(columns.col(k));
            design::times(design, &z)
        };
        (0..columns.cols).map(one).collect()
    };
    let mut basis: Vec<Vec<f64>> = Vec::new();
    // A common level comes first, because fields are deviations from the level.
    for (piece, from) in pieces.iter().zip(&offsets) {
        if piece.reader == Reader::Common {
            basis.extend(normalised(seen(&Dense::from_fn(1, 1, |_, _| 1.0), *from)));
        }
    }
    for (part, piece) in pieces.iter().enumerate() {
        let Block::Field(field) = &stack.parts()[part] else {
            continue;
        };
        let Some(flat) = field.flat() else { continue };
        let orthonormal = orthonormal_columns(flat)?;
        let turn = turning(flat, &orthonormal)?;
        let start: Vec<f64> = Prior::parameters(field).iter().map(|p| p.start).collect();
        let Covariance::Precision(at) = field.structure(&start)?.covariance else {
            continue;
        };
        let Some(null) = at.null_space else { continue };
        let columns = times(&null, &turn);
        let own = seen(&columns, offsets[part]);
        let size = own.iter().map(|c| dot(c, c)).fold(0.0, f64::max);
        let left: Vec<Vec<f64>> = own.iter().map(|c| without(c, &basis)).collect();
        let (held, kept) = split(&left, DEPENDENT * DEPENDENT * size)?;
        if let Some(held) = held {
            let directions = times(&orthonormal, &held);
            let nodes = pivots(&orthonormal_columns(&directions)?)?;
            let mut square = Dense::from_fn(held.cols, held.cols, |i, j| {
                (0..held.cols)
                    .map(|k| directions.get(nodes[i], k) * directions.get(nodes[j], k))
                    .sum()
            });
            cholesky(&mut square).ok_or_else(|| {
                Error::Prior(format!(
                    "`{}`: Jensen cannot constrain its flat directions",
                    piece.name
                ))
            })?;
            // These are the combinations of the null-space columns that vanish at the fixed nodes.
            let at_nodes: Vec<Vec<f64>> = (0..flat.cols)
                .map(|k| nodes.iter().map(|node| orthonormal.get(*node, k)).collect())
                .collect();
            let (vanish, _) = split(&at_nodes, DEPENDENT * DEPENDENT)?;
            let free = vanish.unwrap_or_else(|| Dense::zeros(flat.cols, 0));
            notes.push(format!(
                "{}: {} of its flat directions {}, so Jensen constrains the term to sum to zero there",
                piece.name,
                held.cols,
                match held.cols {
                    1 => "belongs to an earlier term or affects no row",
                    _ => "belong to earlier terms or affect no row",
                },
            ));
            let level = constant(&own, &held, &columns, field.read());
            basis.extend(normalised(combine(&left, &kept)));
            let added = log_determinant(&square);
            stack.hold(part, &nodes, &times(&turn, &free), added, level);
        } else {
            basis.extend(normalised(left));
        }
    }
    Ok(())
}

fn constant(own: &[Vec<f64>], held: &Dense, columns: &Dense, read: usize) -> Option<Pin> {
    if held.cols != 1 {
        return None;
    }
    let moved = combine(own, held).swap_remove(0);
    let first = *moved.first()?;
    let alike = moved
        .iter()
        .all(|x| (x - first).abs() <= 1e-9 * first.abs());
    if first == 0.0 || !alike {
        return None;
    }
    let direction = times(columns, held);
    let values = &direction.data[..read];
    let length = dot(values, values).sqrt();
    Some(Pin {
        direction: values.iter().map(|x| x / length).collect(),
        shift: first / length,
    })
}

pub(super) fn times(a: &Dense, b: &Dense) -> Dense {
    let mut out = Dense::zeros(a.rows, b.cols);
    for j in 0..b.cols {
        for k in 0..a.cols {
            let (weight, rows) = (b.get(k, j), a.rows);
            add_scaled(weight, a.col(k), &mut out.data[j * rows..(j + 1) * rows]);
        }
    }
    out
}

/// Computes the matrix T with `flat T = orthonormal`.
fn turning(flat: &Dense, orthonormal: &Dense) -> Result<Dense, Error> {
    // R = Qᵀ flat is upper triangular, and T is its inverse.
    let r = flat.cols;
    let upper = Dense::from_fn(r, r, |i, j| dot(orthonormal.col(i), flat.col(j)));
    let mut out = Dense::zeros(r, r);
    for j in 0..r {
        for i in (0..=j).rev() {
            let mut rest = f64::from(i == j);
            for k in i + 1..=j {
                rest -= upper.get(i, k) * out.get(k, j);
            }
            let pivot = upper.get(i, i);
            if pivot == 0.0 {
                return Err(Error::Prior(
                    "flat directions are linearly dependent".to_owned(),
                ));
            }
            out.data[j * r + i] = rest / pivot;
        }
    }
    Ok(out)
}

/// Computes the component of a column that is orthogonal to the orthonormal columns of `basis`.
fn without(column: &[f64], basis: &[Vec<f64>]) -> Vec<f64> {
    let mut out = column.to_vec();
    for _ in 0..2 {
        for other in basis {
            let share = -dot(other, &out);
            add_scaled(share, other, &mut out);
        }
    }
    out
}

fn combine(columns: &[Vec<f64>], coefficients: &Dense) -> Vec<Vec<f64>> {
    let one = |j: usize| {
        let mut out = vec![0.0; columns.first().map_or(0, Vec::len)];
        for (k, column) in columns.iter().enumerate() {
            add_scaled(coefficients.get(k, j), column, &mut out);
        }
        out
    };
    (0..coefficients.cols).map(one).collect()
}

/// Computes orthonormal columns with the same span, and drops columns of negligible length.
fn normalised(columns: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let mut out: Vec<Vec<f64>> = Vec::new();
    for column in columns {
        let before = dot(&column, &column).sqrt();
        let mut own = without(&column, &out);
        let length = dot(&own, &own).sqrt();
        if length > DEPENDENT * before && length > 0.0 {
            own.iter_mut().for_each(|x| *x /= length);
            out.push(own);
        }
    }
    out
}

/// Splits the eigenvectors of the columns' Gram matrix into two sets. Combinations of the columns with the first set of
/// coefficients are negligible, and combinations with the second set are not. The coefficient vectors have length 1.
fn split(columns: &[Vec<f64>], least: f64) -> Result<(Option<Dense>, Dense), Error> {
    let r = columns.len();
    let inner = Dense::from_fn(r, r, |i, j| dot(&columns[i], &columns[j]));
    let failed = |_| Error::Prior("flat directions cannot be distinguished".to_owned());
    let eigen = inner
        .view()
        .self_adjoint_eigen(Side::Lower)
        .map_err(failed)?;
    let (values, vectors) = (eigen.S(), eigen.U());
    let pick = |wanted: &dyn Fn(f64) -> bool| -> Dense {
        let chosen: Vec<usize> = (0..r).filter(|k| wanted(values[*k])).collect();
        Dense::from_fn(r, chosen.len(), |i, j| vectors[(i, chosen[j])])
    };
    let small = pick(&|value| value <= least);
    Ok((
        (small.cols > 0).then_some(small),
        pick(&|value| value > least),
    ))
}
