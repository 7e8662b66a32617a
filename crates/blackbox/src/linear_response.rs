//! Covariances of a mean-field fit, corrected by linear response.
//!
//! The means of a mean-field Gaussian are usually accurate, but its variances are often not. At its optimum, `σᵢ⁻² = −E
//! ∂ᵢᵢ log p` is the inverse variance of coordinate i with all other coordinates *held fixed*. This variance is too
//! small if the coordinates are correlated. Tilting the exact log density `log p(z)` by `tᵀz` changes the mean by
//! `Cov(z) t` to first order, so the derivative of the mean with respect to t is the covariance. Linear response
//! instead uses the derivative of the fitted mean. Let `F(ω) = −E log p(T(ω, ε)) − H(ω)` be the negated ELBO, with `ω =
//! (μ, λ)` and `λ = log σ`. The tilted optimum solves `∇F(ω) = (t, 0)`, and therefore
//!
//! ```text
//! Σ = ∂μ/∂t = [ (∇²F)⁻¹ ]_μμ = ( F_μμ − F_μλ F_λλ⁻¹ F_λμ )⁻¹ .
//! ```
//!
//! The method is due to Giordano, Broderick and Jordan, *Covariances, Robustness, and Variational Bayes*, JMLR
//! 19, 2018. For its use with fixed draws and conjugate gradients, see Giordano, Ingram and Broderick, *Black Box
//! Variational Inference with a Deterministic Objective*, JMLR 25, 2024. A test checks each of these properties of the
//! result:
//!
//! * For a Gaussian posterior, Σ is the exact covariance, with any correlations. There `F_μλ = 0`, exactly if the draws
//!   come in antithetic pairs.
//! * Σ equals the finite difference of the optima of tilted densities.
//! * Σ does not depend on the units of the coordinates.
//!
//! F is the average over fixed draws with matched moments. Linear response first minimises F, because the formula is
//! valid only at an optimum. If there are at most [`LinearResponseSettings::dense_limit`] coordinates, the code
//! computes the 2d × 2d Hessian from Hessian-vector products, at a cost of `4 d M` lane evaluations for M draws. The
//! result is then a full-rank Gaussian. If there are more coordinates, or if the caller chooses coordinates, the code
//! does not compute this matrix. Instead, it solves one linear system per chosen coordinate by conjugate gradients. The
//! result is then a low-rank Gaussian: the mean-field Gaussian in which the covariance of the chosen coordinates is
//! replaced. Draws of either Gaussian give standard deviations and quantiles of constrained and generated quantities.
//! They include the curvature of the transforms, which the delta method would linearise.
//!
//! Σ is a correction of first order in the perturbation, so it corrects neither a wrong mean nor a mode that was not
//! found.

use std::fmt;

use jensen_density::{ErasedDensity, LogDensity, TwiceDifferentiable};
use jensen_run::Reason;

use crate::approximation::Approximation;
use crate::calls::Calls;
use crate::dense::{cholesky, inverse_factor};
use crate::driver::{FamilyResult, evaluation_draws};
use crate::evaluation::evaluate;
use crate::family::{FamilyKind, FullRank};
use crate::fit::Fit;
use crate::newton::{Effort, Newton};
use crate::noise::{NoisePurpose, NoiseSource, SECOND_STREAM};
use crate::objective::Objective;
use crate::oracle::Oracle;
use crate::reduce::{axpy, dot};
use crate::settings::Settings;

/// The settings of linear response.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearResponseSettings {
    /// The number of fixed draws. `None` means 1024 draws, or four per coordinate if that is more (for exact second
    /// moments), but at most 4096. To limit memory, the default never exceeds 2²³ divided by the number of coordinates.
    pub draws: Option<usize>,
    /// The largest number of coordinates for which linear response computes the whole Hessian.
    pub dense_limit: usize,
    /// The requested coordinates. `None` means all coordinates, which requires the whole Hessian.
    pub coordinates: Option<Vec<usize>>,
}

impl Default for LinearResponseSettings {
    /// Returns settings that request all coordinates, with a dense limit of 600.
    fn default() -> Self {
        Self {
            draws: None,
            dense_limit: 600,
            coordinates: None,
        }
    }
}

/// The covariances at a mean-field optimum by linear response.
#[derive(Clone, Debug)]
pub struct LinearResponse {
    /// A Gaussian with the means of the optimum and these covariances. If all coordinates are requested, it is a
    /// full-rank Gaussian. Otherwise it is a low-rank Gaussian, in which the other coordinates keep their mean-field
    /// variances.
    pub approximation: Approximation,
    /// The requested coordinates, in order.
    pub coordinates: Vec<usize>,
    /// The covariance matrix of the requested coordinates, in row-major order.
    pub covariance: Vec<f64>,
    /// The number of evaluations of the density.
    pub calls: Calls,
}

/// The reason why linear response fails.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LinearResponseError {
    /// All coordinates are requested, but there are too many to compute the whole Hessian.
    TooMany {
        /// The dimension of the fit.
        dim: usize,
        /// The largest dimension for which the whole Hessian is computed.
        limit: usize,
    },
    /// A chosen coordinate does not exist.
    NoSuchCoordinate(usize),
    /// The fit is not near an optimum of the ELBO on fixed draws.
    NoOptimum,
    /// The ELBO curves upwards at the optimum, so the optimum is not a maximum.
    NotConcave,
}

impl fmt::Display for LinearResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany { dim, limit } => write!(
                f,
                "linear response for all of {dim} coordinates would form a matrix (the limit is {limit}): \
                 choose parameters with --covariance-of"
            ),
            Self::NoSuchCoordinate(i) => write!(f, "there is no coordinate {i}"),
            Self::NoOptimum => f.write_str(
                "linear response needs an optimum of the mean-field bound, but Jensen reached none from the fit",
            ),
            Self::NotConcave => f.write_str(
                "linear response is not defined, because the mean-field bound is not concave at its optimum",
            ),
        }
    }
}

impl std::error::Error for LinearResponseError {}

/// The largest decrease of the ELBO, in nats and beyond noise, for which the result of linear response is accepted. If
/// the posterior is nearly Gaussian, linear response improves the ELBO. Otherwise the first-order correction may
/// overshoot, and k̂ does not detect this, because overdispersed draws have a good k̂.
const LOSS: f64 = 0.1;

/// The largest number of Newton steps to the optimum of the fixed draws. It is a cap: the steps converge quadratically
/// and end at a gain of 1e-9 nats.
const POLISH: usize = 60;

/// Computes the linear response at the mean-field optimum near `omega`, which consists of means and log standard
/// deviations.
///
/// # Errors
/// The variants of [`LinearResponseError`] describe the possible errors.
///
/// # Panics
/// Panics if `omega` does not have the length for a mean-field Gaussian in the dimension of the density, which is a bug
/// in the caller.
pub fn linear_response<D: TwiceDifferentiable>(
    density: &D,
    omega: &[f64],
    source: NoiseSource,
    settings: &LinearResponseSettings,
) -> Result<LinearResponse, LinearResponseError> {
    respond_erased(&ErasedDensity::new(density), omega, source, settings)
}

fn respond_erased(
    density: &ErasedDensity<'_>,
    omega: &[f64],
    source: NoiseSource,
    settings: &LinearResponseSettings,
) -> Result<LinearResponse, LinearResponseError> {
    let dim = density.dim();
    assert_eq!(omega.len(), 2 * dim, "means and log standard deviations");
    let all = settings.coordinates.is_none();
    if all && dim > settings.dense_limit {
        return Err(LinearResponseError::TooMany {
            dim,
            limit: settings.dense_limit,
        });
    }
    let coordinates = match &settings.coordinates {
        Some(chosen) => chosen.clone(),
        None => (0..dim).collect(),
    };
    if let Some(&wrong) = coordinates.iter().find(|i| **i >= dim) {
        return Err(LinearResponseError::NoSuchCoordinate(wrong));
    }
    let mut optimum = Optimum::near(density, omega, source, settings.draws)?;
    // Computing the matrix takes as many products as a few solves.
    let dense = all || (dim <= settings.dense_limit && 8 * coordinates.len() >= dim);
    let scaled = if dense {
        optimum.dense(&coordinates)?
    } else {
        optimum.matrix_free(&coordinates)?
    };
    let n = coordinates.len();
    let sd = &optimum.sd;
    let mut covariance = scaled.clone();
    for (row, i) in covariance.chunks_mut(n.max(1)).zip(&coordinates) {
        for (x, j) in row.iter_mut().zip(&coordinates) {
            *x *= sd[*i] * sd[*j];
        }
    }
    let approximation = if all {
        optimum.full_rank(&scaled)
    } else {
        optimum.low_rank(&coordinates, &scaled)
    };
    Ok(LinearResponse {
        approximation: approximation.ok_or(LinearResponseError::NotConcave)?,
        coordinates,
        covariance,
        calls: optimum.objective.take_calls(),
    })
}

/// An optimum of the sample-average approximation. All quantities are in units of the mean-field standard deviations.
/// In these units, the diagonal of the Hessian is near 1 for means and near 2 for log standard deviations.
struct Optimum<'a, D: TwiceDifferentiable> {
    objective: Objective<'a, D>,
    omega: Vec<f64>,
    sd: Vec<f64>,
}

impl<'a, D: TwiceDifferentiable> Optimum<'a, D> {
    fn near(
        density: &'a D,
        omega: &[f64],
        source: NoiseSource,
        draws: Option<usize>,
    ) -> Result<Self, LinearResponseError> {
        let dim = density.dim();
        let most = ((1 << 23) / dim).max(256);
        let lanes = draws
            .unwrap_or((4 * dim).next_power_of_two().clamp(1024, 4096))
            .min(most)
            .max(2)
            .next_multiple_of(2);
        let noise = source.matched(NoisePurpose::Polish, SECOND_STREAM, dim, lanes);
        let family = FamilyKind::MeanField.build(dim);
        let mut objective = Objective::new(density, family, noise, lanes);
        let mut newton =
            Newton::start(&mut objective, omega.to_vec()).ok_or(LinearResponseError::NoOptimum)?;
        let effort = Effort {
            refine: 1e-4,
            max_inner: 400,
        };
        let arrived = (0..POLISH).any(|_| newton.step(&mut objective, effort).is_last(1e-9));
        // Rounding errors of the objective may hide the last steps.
        if !arrived && !newton.is_stuck() {
            return Err(LinearResponseError::NoOptimum);
        }
        objective.linearize(&newton.omega);
        let sd = newton.omega[dim..].iter().map(|l| l.exp()).collect();
        Ok(Self {
            objective,
            omega: newton.omega,
            sd,
        })
    }

    fn dim(&self) -> usize {
        self.sd.len()
    }

    /// Computes `out = S ∇²F S v`, where S is diagonal. Its elements are the standard deviations for the means and 1
    /// for the log standard deviations.
    fn product(&mut self, v: &[f64], out: &mut [f64]) {
        let mut direction = v.to_vec();
        self.scale(&mut direction);
        self.objective.hvp(&direction, out);
        self.scale(out);
    }

    fn scale(&self, v: &mut [f64]) {
        v.iter_mut().zip(&self.sd).for_each(|(x, s)| *x *= s);
    }

    /// Computes the covariance of the coordinates from the whole Hessian. The log standard deviations come before the
    /// means, so the last block of the Cholesky factor is the factor of the Schur complement.
    fn dense(&mut self, coordinates: &[usize]) -> Result<Vec<f64>, LinearResponseError> {
        let d = self.dim();
        let n = 2 * d;
        let position = |k: usize| if k < d { k + d } else { k - d };
        let mut hessian = vec![0.0; n * n];
        let (mut unit, mut product) = (vec![0.0; n], vec![0.0; n]);
        for k in 0..n {
            unit[k] = 1.0;
            self.product(&unit, &mut product);
            unit[k] = 0.0;
            for (i, x) in product.iter().enumerate() {
                hessian[position(i) * n + position(k)] += 0.5 * x;
                hessian[position(k) * n + position(i)] += 0.5 * x;
            }
        }
        let factor = cholesky(&hessian, n).ok_or(LinearResponseError::NotConcave)?;
        let mut last = vec![0.0; d * d];
        for (row, from) in last.chunks_mut(d).zip(factor.chunks(n).skip(d)) {
            row.copy_from_slice(&from[d..]);
        }
        let root = inverse_factor(&last, d).ok_or(LinearResponseError::NotConcave)?;
        let row = |i: usize| &root[i * d..(i + 1) * d];
        let pairs = coordinates
            .iter()
            .flat_map(|i| coordinates.iter().map(move |j| (*i, *j)));
        Ok(pairs.map(|(i, j)| dot(row(i), row(j))).collect())
    }

    fn matrix_free(&mut self, coordinates: &[usize]) -> Result<Vec<f64>, LinearResponseError> {
        let n = coordinates.len();
        let mut covariance = vec![0.0; n * n];
        for (a, i) in coordinates.iter().enumerate() {
            let solution = self.solve_unit(*i)?;
            for (b, j) in coordinates.iter().enumerate() {
                covariance[a * n + b] += 0.5 * solution[*j];
                covariance[b * n + a] += 0.5 * solution[*j];
            }
        }
        Ok(covariance)
    }

    /// Solves `S ∇²F S x = eᵢ` by conjugate gradients, preconditioned by the values 1 and 2 on the diagonal. The error
    /// of `eᵢᵀ x` is of second order in the residual.
    fn solve_unit(&mut self, i: usize) -> Result<Vec<f64>, LinearResponseError> {
        let n = 2 * self.dim();
        let precondition = |r: &[f64]| -> Vec<f64> {
            let (means, logs) = r.split_at(n / 2);
            means
                .iter()
                .copied()
                .chain(logs.iter().map(|x| 0.5 * x))
                .collect()
        };
        let mut x = vec![0.0; n];
        let mut r = vec![0.0; n];
        r[i] = 1.0;
        let mut p = precondition(&r);
        let mut ry = dot(&r, &p);
        let goal = 1e-12 * ry;
        let mut hp = vec![0.0; n];
        // In exact arithmetic, n iterations suffice. With rounding errors, more may be needed.
        for _ in 0..4 * n + 50 {
            if ry <= goal {
                return Ok(x);
            }
            self.product(&p, &mut hp);
            let curvature = dot(&p, &hp);
            if curvature.is_nan() || curvature <= 0.0 {
                return Err(LinearResponseError::NotConcave);
            }
            let alpha = ry / curvature;
            axpy(alpha, &p, &mut x);
            axpy(-alpha, &hp, &mut r);
            let y = precondition(&r);
            let next = dot(&r, &y);
            let beta = next / ry;
            ry = next;
            p.iter_mut().zip(&y).for_each(|(p, y)| *p = y + beta * *p);
        }
        Err(LinearResponseError::NotConcave)
    }

    fn full_rank(&self, scaled: &[f64]) -> Option<Approximation> {
        let d = self.dim();
        let mut factor = cholesky(scaled, d)?;
        for (row, s) in factor.chunks_mut(d).zip(&self.sd) {
            row.iter_mut().for_each(|x| *x *= s);
        }
        let omega = FullRank::new(d).assemble(&self.omega[..d], &factor);
        Approximation::new(FamilyKind::FullRank, d, omega)
    }

    /// Returns the mean-field Gaussian with a new covariance block for the chosen coordinates. The block has the form
    /// `t I + U Uᵀ`, where t is below the smallest eigenvalue of the block.
    fn low_rank(&self, coordinates: &[usize], scaled: &[f64]) -> Option<Approximation> {
        let (d, rank) = (self.dim(), coordinates.len());
        let mut t = 1.0;
        let factor = (0..60).find_map(|_| {
            t *= 0.5;
            let mut shifted = scaled.to_vec();
            (0..rank).for_each(|a| shifted[a * rank + a] -= t);
            cholesky(&shifted, rank)
        })?;
        let mut omega = self.omega.clone();
        omega.resize(d * (2 + rank), 0.0);
        for (a, i) in coordinates.iter().enumerate() {
            omega[d + i] += 0.5 * t.ln();
            let first = 2 * d + i * rank;
            let row = &factor[a * rank..(a + 1) * rank];
            for (u, x) in omega[first..first + rank].iter_mut().zip(row) {
                *u = self.sd[*i] * x;
            }
        }
        Approximation::new(FamilyKind::LowRank { rank }, d, omega)
    }
}

impl Fit {
    /// Computes the linear response at the mean-field result, adds it to the fit as a further family, and evaluates it
    /// on fresh draws. The function chooses this family for the result, because the caller requested its covariances.
    /// If the ELBO of the family is clearly lower, a warning reports the loss. If linear response fails, the function
    /// leaves the fit unchanged except for a warning that states the reason. A fit with one of these warnings is not
    /// trusted.
    ///
    /// If the fit has no mean-field result, the function does not change it.
    pub fn respond<D: TwiceDifferentiable>(
        &mut self,
        density: &D,
        settings: &Settings,
        response: &LinearResponseSettings,
    ) {
        let mean_field = |r: &FamilyResult| r.family == FamilyKind::MeanField;
        let Some(index) = self.families.iter().position(mean_field) else {
            return;
        };
        let base = self.families[index].clone();
        let base_bound = base.evaluation.elbo;
        let source = NoiseSource::new(settings.seed, settings.simd);
        let found = match linear_response(density, &base.omega, source, response) {
            Ok(found) => found,
            Err(error) => {
                self.objections.push(Reason::bare(error.to_string()));
                return;
            }
        };
        let family = found.approximation.family().clone();
        let mut oracle = Oracle::new(density, family);
        let omega = found.approximation.omega();
        let draws = evaluation_draws(density, settings);
        let evaluation = evaluate(&mut oracle, omega, source, draws);
        self.calls += found.calls;
        self.families.push(FamilyResult {
            family: found.approximation.name(),
            omega: omega.to_vec(),
            evaluation,
            polish: None,
            ..base
        });
        self.chosen = self.families.len() - 1;
        self.corrected = true;
        let (before, after) = (base_bound, self.best().evaluation.elbo);
        let loss = before.mean - after.mean;
        if loss > LOSS + 2.0 * (before.standard_error + after.standard_error) {
            self.objections.push(Reason::new(
                format!(
                    "the linear-response covariance lowers the ELBO by {loss:.2} nats, because the posterior is too far from a \
                     Gaussian"
                ),
                "Omit `--covariance`, or use `--importance-resample`.",
            ));
        }
    }
}
