//! The scale of intrinsic fields. It is the variance that the structure matrix gives the field at a precision of 1.

use super::field::Field;
use crate::linear::Geometry;
use crate::linear::kernels::dot;
use crate::linear::sparse::{orthonormal_columns, pivots};
use crate::{Covariance, Error};

/// Computes the diagonal of R⁻, where R is the structure matrix of a field, and R⁻ is the pseudo-inverse along the flat
/// directions N (orthonormal columns).
///
/// One node g is chosen for each flat direction. Then `M = (R + Σ e_g e_gᵀ)⁻¹` is a generalised inverse of R, and `R⁻ =
/// P M P` with `P = I − NNᵀ`. For the diagonal of R⁻, only the diagonal of M and the product MN are needed.
pub(super) fn variances(field: &Field) -> Result<Vec<f64>, Error> {
    let n = field.len();
    let flat = field.flat().map(orthonormal_columns).transpose()?;
    let mut matrix = field.pattern.clone();
    for node in flat.as_ref().map_or(Ok(Vec::new()), pivots)? {
        for k in matrix.col_start[node]..matrix.col_start[node + 1] {
            if matrix.row[k] == node {
                matrix.value[k] += 1.0;
            }
        }
    }
    let mut model = field.alone(matrix, Some(0.0));
    if let Covariance::Precision(q) = &mut model.prior.covariance {
        q.null_space = None;
    }
    let failed =
        || Error::Prior("Jensen cannot factorise the field's precision for its scaling".to_owned());
    let Geometry::Sparse(mut inverse) = Geometry::new(&model, false, &mut Vec::new())? else {
        return Err(failed());
    };
    inverse.factor(&vec![0.0; n]).ok_or_else(failed)?;
    let mut variances = inverse.latent_variances();
    let Some(flat) = flat else {
        return Ok(variances);
    };
    let products: Vec<Vec<f64>> = (0..flat.cols)
        .map(|k| {
            let mut column = flat.col(k).to_vec();
            inverse.solve_latent(&mut column);
            column
        })
        .collect();
    for (k, product) in products.iter().enumerate() {
        for (i, v) in variances.iter_mut().enumerate() {
            *v -= 2.0 * flat.get(i, k) * product[i];
        }
        for l in 0..flat.cols {
            let inner = dot(flat.col(l), product);
            if inner != 0.0 {
                for (i, v) in variances.iter_mut().enumerate() {
                    *v += flat.get(i, k) * flat.get(i, l) * inner;
                }
            }
        }
    }
    Ok(variances)
}

/// Computes one factor for each group of nodes, such as a component of a graph. Multiplied by its factor, the structure
/// matrix of a group has a generalised variance of 1 (Sørbye and Rue 2014). The generalised variance is the geometric
/// mean of the marginal variances.
pub(super) fn factors(field: &Field, label: &[usize], count: usize) -> Result<Vec<f64>, Error> {
    let mut sizes = vec![0.0; count];
    label.iter().for_each(|c| sizes[*c] += 1.0);
    let mut logs = vec![0.0; count];
    for (variance, c) in variances(field)?.iter().zip(label) {
        logs[*c] += variance.max(f64::MIN_POSITIVE).ln() / sizes[*c];
    }
    Ok(logs.into_iter().map(f64::exp).collect())
}
