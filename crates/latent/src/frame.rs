//! Standard coordinates around a mode of the hyperparameters' posterior.

use faer::Side;

use crate::learn::Surface;
use crate::linear::kernels::dot;
use crate::{Dense, Error, Warm};

/// The gradients whose difference gives the Hessian are evaluated at this distance from the mode, in standard
/// deviations of the priors.
const APART: f64 = 0.1;

/// A direction counts as flat if its curvature is below this value. The posterior's standard deviation along such a
/// direction exceeds five standard deviations of the prior.
const LEVEL: f64 = 0.04;

/// The coordinates z of `x = mode + V Λ^(−½) z`, in which the posterior is approximately standard normal.
pub(crate) struct Frame {
    pub mode: Vec<f64>,
    /// V Λ^(−½).
    pub axes: Dense,
    pub log_volume: f64,
}

impl Frame {
    pub(crate) fn at(&self, z: &[f64]) -> Vec<f64> {
        let mut x = self.mode.clone();
        for (k, z) in z.iter().enumerate() {
            x.iter_mut()
                .zip(self.axes.col(k))
                .for_each(|(x, a)| *x += z * a);
        }
        x
    }

    /// Computes |z|² at x.
    pub(crate) fn square_distance(&self, x: &[f64]) -> f64 {
        let apart: Vec<f64> = x.iter().zip(&self.mode).map(|(x, m)| x - m).collect();
        (0..apart.len())
            .map(|k| {
                let axis = self.axes.col(k);
                // The axes are orthogonal.
                (dot(axis, &apart) / dot(axis, axis)).powi(2)
            })
            .sum()
    }
}

/// Computes the standard coordinates at the mode from differences of gradients. Returns `None` if the run was stopped.
pub(crate) fn frame(
    surface: &Surface<'_>,
    mode: &[f64],
    warm: &Warm,
) -> Result<Option<Frame>, Error> {
    let n = mode.len();
    let mut hessian = Dense::zeros(n, n);
    for i in 0..n {
        let gradient_at = |side: f64| -> Result<Option<(f64, Vec<f64>)>, Error> {
            let mut x = mode.to_vec();
            x[i] += side;
            let at = surface.evaluate(&x, Some(warm))?;
            Ok(at.map(|at| (side, at.gradient)))
        };
        // Where the model cannot be fitted on one side, the mode itself is the other end of the difference.
        let ends = match (gradient_at(-APART), gradient_at(APART)) {
            (Err(_), Ok(above)) => [gradient_at(0.0)?, above],
            (Ok(below), Err(_)) => [below, gradient_at(0.0)?],
            (below, above) => [below?, above?],
        };
        let [Some((from, below)), Some((to, above))] = ends else {
            return Ok(None);
        };
        for (j, (below, above)) in below.iter().zip(&above).enumerate() {
            hessian.data[i * n + j] = (below - above) / (to - from);
        }
    }
    let symmetric = Dense::from_fn(n, n, |i, j| 0.5 * (hessian.get(i, j) + hessian.get(j, i)));
    let failed = |_| Error::Prior("the curvature of the hyperparameters is not finite".to_owned());
    let eigen = symmetric
        .view()
        .self_adjoint_eigen(Side::Lower)
        .map_err(failed)?;
    let sds: Vec<f64> = (0..n)
        .map(|k| eigen.S()[k].max(LEVEL).sqrt().recip())
        .collect();
    Ok(Some(Frame {
        mode: mode.to_vec(),
        log_volume: sds.iter().map(|s| s.ln()).sum(),
        axes: Dense::from_fn(n, n, |i, k| eigen.U()[(i, k)] * sds[k]),
    }))
}
