//! The scale of intrinsic fields: how much their structure matrix alone lets them vary.

use super::field::Field;
use super::graph::Graph;
use crate::linear::Geometry;
use crate::{Covariance, Error};

/// Factors that give each component's intrinsic field a generalised variance (the geometric mean of its marginal variances) of
/// 1 (Sørbye and Rue 2014).
///
/// With one node g of each component tied down, `M = (R + Σ e_g e_gᵀ)⁻¹` is the pseudo-inverse but for what the projection P
/// along the levels takes away: `R⁻ = P M P`, whose diagonal needs the diagonal of M and its row sums alone.
pub(super) fn factors(graph: &Graph, plain: &Field) -> Result<Vec<f64>, Error> {
    let n = graph.nodes();
    let (label, count) = graph.components();
    let mut sizes = vec![0usize; count];
    let mut tied = vec![usize::MAX; count];
    for (i, c) in label.iter().enumerate() {
        sizes[*c] += 1;
        tied[*c] = tied[*c].min(i);
    }
    let mut matrix = plain.pattern.clone();
    for (c, node) in tied.iter().enumerate() {
        let column = matrix.col_start[*node]..matrix.col_start[*node + 1];
        for k in column.filter(|_| sizes[c] > 1) {
            if matrix.row[k] == *node {
                matrix.value[k] += 1.0;
            }
        }
    }
    let mut model = plain.alone(matrix, Some(0.0));
    if let Covariance::Precision(q) = &mut model.prior.covariance {
        q.null_space = None;
    }
    let failed =
        || Error::Prior("the graph's Laplacian could not be factorised for its scaling".to_owned());
    let Geometry::Sparse(mut inverse) = Geometry::new(&model, false, &mut Vec::new())? else {
        return Err(failed());
    };
    inverse.factor(&vec![0.0; n]).ok_or_else(failed)?;
    let variances = inverse.latent_variances();
    let mut sums = vec![1.0; n];
    inverse.solve_latent(&mut sums);
    let mut totals = vec![0.0; count];
    for (sum, c) in sums.iter().zip(&label) {
        totals[*c] += sum;
    }
    let mut logs = vec![0.0; count];
    for i in 0..n {
        let (c, size) = (label[i], sizes[label[i]] as f64);
        let variance = match sizes[c] {
            1 => variances[i],
            _ => variances[i] - 2.0 * sums[i] / size + totals[c] / (size * size),
        };
        logs[c] += variance.ln() / size;
    }
    Ok(logs.into_iter().map(f64::exp).collect())
}
