//! Gaussian processes by inducing points (Titsias 2009; Hensman, Matthews and Ghahramani 2015).
//!
//! The values of the process at M inducing points Z are `L v`, where `LLᵀ = K_ZZ + jitter` and the latent variables v
//! are independent and standard normal. At a row x the process is `wᵀv + e` with `w = L⁻¹ k_Z(x)`. The residual e has the
//! variance `c = k(x, x) − wᵀw`. The approximate posterior keeps the residuals at their prior, so the bound on log p(y) is
//!
//! `Σ_i E log p(y_i | wᵢᵀv + e_i) − KL(q(v) ‖ N(0, I))`,
//!
//! the bound of Hensman et al. (equation 19) at the best q(v), and for a normal likelihood that of Titsias (equation 9).
//! The cost of an evaluation is N M² operations, and its memory a few N × M matrices.
//!
//! | file | subject |
//! | --- | --- |
//! | `choice` | the term of a specification, and the choice of inducing points |
//! | `error` | the difference between the approximate and the exact posterior |

mod choice;
mod error;

pub use error::{InducingError, Rows};
pub(in crate::prior) use error::{Part, error};

use std::sync::Arc;

use faer::{MatMut, MatRef};

use crate::linear::kernels::{cholesky, product, solve_lower, solve_lower_transposed};
use crate::prior::inputs::{Covariate, Source, matrix};
use crate::prior::kernel::{Kernel, Shape, for_blocks, for_columns, sum_blocks};
use crate::prior::setting::{self, Setting};
use crate::{Dense, DesignSensitivity, Error};

/// A share of the process's variance that is added to the variance of each inducing variable. Rounding errors in the
/// smallest eigenvalues of K_ZZ are about 1e-16 M times its largest one, and stay far below this share for thousands of
/// points. The bound remains a bound, because it is that of inducing variables that observe the process with this noise.
const JITTER: f64 = 1e-8;

/// The inducing points of a process, and the columns of their coordinates.
#[derive(Clone, Debug, PartialEq)]
pub struct InducingPoints {
    /// The coordinates.
    pub inputs: Vec<Covariate>,
    /// The inducing points, one per row.
    pub points: Arc<Dense>,
}

impl InducingPoints {
    /// Number of inducing points.
    pub fn len(&self) -> usize {
        self.points.rows
    }

    /// Whether there are no inducing points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The rows of a table at which a process is projected onto its inducing points.
#[derive(Clone, Debug)]
pub(in crate::prior) struct At {
    /// The coordinates of the rows.
    pub(in crate::prior) points: Arc<Dense>,
    /// The column that multiplies the process in each row, or `None` for 1.
    pub(in crate::prior) factor: Option<Vec<f64>>,
}

/// A process with inducing points, and the rows of the fit.
#[derive(Clone, Debug)]
pub struct Inducing {
    shape: Shape,
    /// The variance, followed by a common lengthscale or by one lengthscale per coordinate.
    settings: Vec<Setting>,
    points: Arc<Dense>,
    fitted: At,
}

impl Inducing {
    /// Number of inducing points.
    pub fn len(&self) -> usize {
        self.points.rows
    }

    /// Whether there are no inducing points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hyperparameters, including fixed ones.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    pub(in crate::prior) fn fitted(&self) -> &At {
        &self.fitted
    }

    /// Keeps every `step`-th row of the fit, starting with the first. The inducing points stay.
    pub(in crate::prior) fn thin(&mut self, step: usize) {
        let At { points, factor } = &self.fitted;
        self.fitted = At {
            points: Arc::new(points.thinned(step)),
            factor: (factor.as_ref()).map(|f| f.iter().step_by(step).copied().collect()),
        };
    }

    fn kernel<'a>(&self, values: &'a [f64], rows: &Dense) -> Kernel<'a> {
        Kernel::new(self.shape, values[0], &values[1..], rows, &self.points)
    }

    /// Computes the factor L.
    fn root(&self, values: &[f64]) -> Result<Dense, Error> {
        let m = self.len();
        let kernel = self.kernel(values, &self.points);
        let mut root = Dense::zeros(m, m);
        for_blocks(&mut root, |block, out| kernel.write(block, out));
        for i in 0..m {
            root.data[i * m + i] += JITTER * values[0];
        }
        cholesky(&mut root).ok_or_else(|| {
            Error::Prior(
                "the covariance of the inducing points is not positive definite; use fewer points (`inducing=`)"
                    .to_owned(),
            )
        })?;
        for j in 1..m {
            root.data[j * m..j * m + j].fill(0.0);
        }
        Ok(root)
    }

    /// Writes the weights of the latent variables in each row, an N × M matrix, and adds the variances of the residuals.
    pub(in crate::prior) fn project(
        &self,
        theta: &[f64],
        at: &At,
        weights: &mut [f64],
        residuals: &mut [f64],
    ) -> Result<(), Error> {
        let values = setting::values(&self.settings, theta)?;
        let (n, m) = (at.points.rows, self.len());
        if n == 0 {
            return Ok(());
        }
        let root = self.root(&values)?;
        let kernel = self.kernel(&values, &at.points);
        for_columns(weights, n, |block, out| kernel.write(block, out));
        let whole = MatMut::from_column_major_slice_mut(weights, n, m);
        // W = K L⁻ᵀ.
        solve_lower(&root, whole.transpose_mut());
        let mut open = vec![values[0]; n];
        for column in weights.chunks_mut(n) {
            open.iter_mut().zip(&*column).for_each(|(c, w)| *c -= w * w);
            if let Some(factor) = &at.factor {
                column.iter_mut().zip(factor).for_each(|(w, f)| *w *= f);
            }
        }
        for (i, (residual, open)) in residuals.iter_mut().zip(open).enumerate() {
            let factor = at.factor.as_ref().map_or(1.0, |factor| factor[i]);
            *residual += factor * factor * open.max(0.0);
        }
        Ok(())
    }

    /// Computes the prior covariance of the process in these rows, given the latent variables.
    pub(in crate::prior) fn residual_covariance(
        &self,
        theta: &[f64],
        at: &At,
    ) -> Result<Dense, Error> {
        let values = setting::values(&self.settings, theta)?;
        let (n, m) = (at.points.rows, self.len());
        let mut weights = Dense::zeros(n, m);
        let mut residuals = vec![0.0; n];
        self.project(theta, at, &mut weights.data, &mut residuals)?;
        let kernel = Kernel::new(self.shape, values[0], &values[1..], &at.points, &at.points);
        let mut out = Dense::zeros(n, n);
        for_blocks(&mut out, |block, out| kernel.write(block, out));
        if let Some(factor) = &at.factor {
            for j in 0..n {
                for i in 0..n {
                    out.data[j * n + i] *= factor[i] * factor[j];
                }
            }
        }
        let w = weights.view();
        product(out.view_mut(), true, w, w.transpose(), -1.0);
        for (i, residual) in residuals.into_iter().enumerate() {
            out.data[i * n + i] = residual;
        }
        Ok(out)
    }

    /// Computes the derivatives with respect to the free hyperparameters at θ from the derivative with respect to the
    /// design, of which `latents` are the process's columns.
    ///
    /// With `W = K L⁻ᵀ` and H the derivative with respect to W, `dBound = ⟨H L⁻¹, dK⟩ − ⟨L⁻ᵀ S L⁻¹, dK_ZZ⟩`, where S is
    /// the symmetric part of the lower triangle of HᵀW with half its diagonal (Murray 2016, section 3.2). The variances of
    /// the residuals contribute −2 c′ W to H, where c′ is the derivative with respect to them.
    pub(in crate::prior) fn gradient(
        &self,
        theta: &[f64],
        latents: std::ops::Range<usize>,
        sensitivity: &DesignSensitivity,
    ) -> Vec<f64> {
        let unknown = || vec![f64::NAN; theta.len()];
        let Ok(values) = setting::values(&self.settings, theta) else {
            return unknown();
        };
        let Ok(root) = self.root(&values) else {
            return unknown();
        };
        let (n, m) = (sensitivity.at.rows, self.len());
        let own = latents.start * n..latents.end * n;
        let factor = |i: usize| self.fitted.factor.as_ref().map_or(1.0, |f| f[i]);
        let w = MatRef::from_column_major_slice(&sensitivity.at.data[own.clone()], n, m);
        // The derivative with respect to the weights before they are multiplied by the factor of the row is f H.
        let mut h = Dense {
            rows: n,
            cols: m,
            data: sensitivity.weights.data[own.clone()].to_vec(),
        };
        for (column, w) in h.data.chunks_mut(n).zip(sensitivity.at.data[own].chunks(n)) {
            let each = column.iter_mut().zip(w).zip(&sensitivity.residuals);
            for (i, ((h, w), by_residual)) in each.enumerate() {
                *h = factor(i) * (*h - 2.0 * by_residual * w);
            }
        }
        // A row with the factor 0 has no weights, and its derivative is 0.
        let mut unscaled = Dense::zeros(0, 0);
        let plain = match &self.fitted.factor {
            None => w,
            Some(factor) => {
                unscaled = Dense::from_fn(n, m, |i, j| match factor[i] {
                    0.0 => 0.0,
                    f => w[(i, j)] / f,
                });
                unscaled.view()
            }
        };
        let mut s = Dense::zeros(m, m);
        product(s.view_mut(), false, h.view().transpose(), plain, 1.0);
        drop(unscaled);
        let mut inner = Dense::from_fn(m, m, |i, j| 0.5 * s.get(i.max(j), i.min(j)));
        solve_lower_transposed(&root, inner.view_mut());
        let mut between = Dense::from_fn(m, m, |i, j| -inner.get(j, i));
        solve_lower_transposed(&root, between.view_mut());
        // H L⁻¹.
        solve_lower_transposed(&root, h.view_mut().transpose_mut());
        let rows = self.kernel(&values, &self.fitted.points);
        let points = self.kernel(&values, &self.points);
        let count = values.len();
        let mut by_logarithm = sum_blocks(&h, count, |block, part| rows.contract(block, part));
        let of_points = sum_blocks(&between, count, |block, part| points.contract(block, part));
        for (total, own) in by_logarithm.iter_mut().zip(of_points) {
            *total += own;
        }
        // The diagonals of the jitter and of the covariance of the rows are proportional to the variance.
        let jitter: f64 = (0..m).map(|i| between.get(i, i)).sum();
        let open = sensitivity.residuals.iter().enumerate();
        let open: f64 = open.map(|(i, r)| factor(i) * factor(i) * r).sum();
        by_logarithm[0] += values[0] * (JITTER * jitter + open);
        let by_value: Vec<f64> = by_logarithm
            .iter()
            .zip(&values)
            .map(|(g, v)| g / v)
            .collect();
        setting::free_only(&self.settings, &by_value)
    }
}

/// Returns the rows of a table at which a process with these inducing points is projected.
///
/// # Errors
/// Fails if a column or one of its values is missing.
pub(in crate::prior) fn at(
    points: &InducingPoints,
    factors: &crate::prior::by::Factors,
    source: &dyn Source,
    rows: &[usize],
) -> Result<At, String> {
    Ok(At {
        points: Arc::new(matrix(&points.inputs, source, rows)?),
        factor: crate::prior::by::values(factors, source, rows)?
            .into_iter()
            .flatten()
            .next(),
    })
}
