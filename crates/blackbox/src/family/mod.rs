//! Families of distributions on ℝᵈ with reparameterised draws `z = T(ω, ε)`, where ε is standard normal.
//!
//! A family is a parametric set of distributions whose parameters ω form one flat vector. Every method uses the family
//! through five maps. The gradients and the Hessian-vector products of the ELBO `L(ω) = E log p(T(ω, ε)) + H(ω)` follow
//! from these maps:
//!
//! * `∇L = E Jᵀ g + ∇H` with `g = ∇log p(z)` and `J = ∂T/∂ω` uses [`Family::pull`] and
//!   [`Family::add_entropy_gradient`];
//! * for `∇²L d = E[Jᵀ ∇²log p(z) J d + Σᵢ gᵢ ∂²Tᵢ/∂ω² d] + ∇²H d`, [`Family::push`] computes `J d`, the density
//!   multiplies by its Hessian, [`Family::pull`] multiplies by `Jᵀ`, [`Family::pull_second`] adds the curvature of T,
//!   and [`Family::add_entropy_hvp`] adds the curvature of the entropy.
//!
//! Adding a family to Jensen takes one file, and one line in the list in `names`. A caller's own family is a type that
//! implements [`Family`] (see [`FamilyChoice::Own`](crate::FamilyChoice::Own)). The function [`check_family`] compares
//! all maps of a family with finite differences.
//!
//! Sums over lanes are computed in a fixed order, so results do not depend on the number of threads.

mod check;
pub(crate) mod conditional;
mod flow;
mod full_rank;
pub(crate) mod globals;
mod low_rank;
mod mean_field;
pub(crate) mod mixture;
mod names;
pub(crate) mod rows;
mod sparse;

use std::fmt;
use std::sync::Arc;

use jensen_density::{Lanes, LanesMut, LogDensity, Pattern};
use jensen_math::simd::Simd;

use crate::noise::{NoisePurpose, NoiseSource};
use crate::reduce::{dot, mean_se};

pub use check::{FamilyFault, check_family};
pub use conditional::Conditional;
pub(crate) use conditional::Passes;
pub use flow::Flow;
pub use full_rank::FullRank;
pub use low_rank::LowRank;
pub use mean_field::MeanField;
pub use mixture::Mixture;
pub use names::{FamilyKind, FamilyName};
pub use sparse::Sparse;

/// The properties of a density that determine the shape of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// The number of coordinates.
    pub dim: usize,
    /// The pairs of coordinates whose mixed second derivative can be nonzero, if they are known.
    pub pattern: Option<Arc<Pattern>>,
}

impl Space {
    /// Returns the space of a density.
    pub fn of(density: &impl LogDensity) -> Self {
        Self {
            dim: density.dim(),
            pattern: density.pattern(),
        }
    }
}

impl From<usize> for Space {
    fn from(dim: usize) -> Self {
        Self { dim, pattern: None }
    }
}

impl From<Space> for usize {
    fn from(space: Space) -> Self {
        space.dim
    }
}

/// The derivatives of a family's draws with respect to its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Smoothness {
    /// First and second derivatives, with a known entropy. Any method that uses derivatives can fit the family.
    Twice,
    /// First derivatives along the path of a draw. Methods that use the sticking-the-landing gradient can fit the
    /// family.
    Path,
    /// No derivatives. Weighted draws determine the parameters of the family.
    None,
}

/// The number of draws from which moments and entropies without a formula are computed. All members of a family use the
/// same draws.
const FIXED_DRAWS: usize = 4096;

/// A family with reparameterised draws. The argument `omega` always has [`parameters`](Self::parameters) elements,
/// which can be any numbers. Noise is a `noise_dim × lanes` matrix, and draws and gradients are `dim × lanes` matrices.
///
/// Stochastic gradients can fit any type that implements the required methods and the density
/// ([`log_density_at`](Self::log_density_at)). If the noise has more or fewer rows than the draws, the type must also
/// implement [`noise_dim`](Self::noise_dim). The mean, the standard deviations and the entropy are then computed from
/// fixed draws by default. Newton's method can fit any type that returns [`Smoothness::Twice`] and implements the maps
/// of second order: [`push`](Self::push), [`pull_second`](Self::pull_second),
/// [`add_entropy_gradient`](Self::add_entropy_gradient) and [`add_entropy_hvp`](Self::add_entropy_hvp).
///
/// The value in a lane must depend only on that lane, and sums over lanes must have a fixed order. Otherwise fits are
/// not reproducible. [`check_family`] checks the first requirement and all maps.
///
/// Methods use only the properties that a family reports, and never its kind.
pub trait Family: fmt::Debug + Send + Sync + 'static {
    /// Returns the name of the family in messages, results and stored fits. A caller's own family returns
    /// [`FamilyName::own`]. The name must include all constants that distinguish the family from similar families, as
    /// in `student_t=4`.
    fn name(&self) -> FamilyName;

    /// Returns the number d of coordinates of the draws.
    fn dim(&self) -> usize;

    /// Returns the space on which the family is defined.
    #[doc(hidden)]
    fn space(&self) -> Space {
        self.dim().into()
    }

    /// Returns the number of rows of the standard normal noise, which is d by default.
    fn noise_dim(&self) -> usize {
        self.dim()
    }

    /// Returns the number of parameters of the family.
    fn parameters(&self) -> usize;

    /// Returns the parameters of the member that has the given means and log standard deviations and no correlation.
    fn diagonal(&self, mean: &[f64], log_sd: &[f64]) -> Vec<f64>;

    /// Returns the mean of a member. The default implementation computes the mean from fixed draws.
    fn mean(&self, omega: &[f64]) -> Vec<f64> {
        let (z, _) = fixed_draws(self, omega);
        z.chunks(FIXED_DRAWS).map(|row| mean_se(row).0).collect()
    }

    /// Returns the marginal standard deviations of a member. The default implementation computes them from fixed draws.
    fn marginal_sd(&self, omega: &[f64]) -> Vec<f64> {
        let (mut z, _) = fixed_draws(self, omega);
        let rows = z.chunks_mut(FIXED_DRAWS);
        rows.map(|row| {
            let mean = mean_se(row).0;
            row.iter_mut().for_each(|z| *z -= mean);
            (dot(row, row) / FIXED_DRAWS as f64).sqrt()
        })
        .collect()
    }

    /// Returns the logarithms of the marginal standard deviations.
    fn marginal_log_sd(&self, omega: &[f64]) -> Vec<f64> {
        self.marginal_sd(omega).iter().map(|sd| sd.ln()).collect()
    }

    /// Returns whether ω consists of the means and the log standard deviations of independent normal variables. If so,
    /// explicit Hessians, exact expectations and linear response are available.
    #[doc(hidden)]
    fn is_factorised(&self) -> bool {
        false
    }

    /// Returns which derivatives with respect to the parameters are available. Callers must not call maps that belong
    /// to other derivatives.
    fn smoothness(&self) -> Smoothness {
        Smoothness::Path
    }

    /// Returns the family to fit before this family. A fit of this family [starts](Self::upon) from the result of the
    /// returned family. `None` means that the fit starts from a mean-field Gaussian.
    fn begins_at(&self) -> Option<FamilyKind> {
        None
    }

    /// Returns the member from which a fit of this family starts. The member corresponds to `gaussian`, the result of
    /// the family that [`begins_at`](Self::begins_at) returns. `gaussian` is a full-rank Gaussian: its mean, then its
    /// lower factor packed by rows. If possible, the member also represents the other `modes`, which are given by their
    /// means and log standard deviations. Returns `None` for families that start from a mean-field Gaussian.
    fn upon(&self, gaussian: &[f64], modes: &[(Vec<f64>, Vec<f64>)]) -> Option<Vec<f64>> {
        let _ = (gaussian, modes);
        None
    }

    /// Returns the share of the draws that come from components that satisfy a predicate. The predicate receives the
    /// mean and the standard deviation of a component in one coordinate. The share is 0 for families without
    /// components.
    #[doc(hidden)]
    fn share_of_parts(
        &self,
        omega: &[f64],
        coordinate: usize,
        which: &dyn Fn(f64, f64) -> bool,
    ) -> f64 {
        let _ = (omega, coordinate, which);
        0.0
    }

    /// Returns the mean and the lower factor (d × d, row-major) of a Gaussian close to the member, if the family is not
    /// an affine map of its noise. A refinement uses this Gaussian as a preconditioner. If the result is `None`, the
    /// refinement uses the mean and the standard deviations.
    fn gaussian(&self, omega: &[f64]) -> Option<(Vec<f64>, Vec<f64>)> {
        let _ = omega;
        None
    }

    /// Returns the number of rows of the unrestricted matrix that the draws must determine. If there are too few draws,
    /// a fit overfits these rows.
    fn free_rows(&self) -> usize {
        0
    }

    /// Returns whether [`precondition`](Self::precondition) uses an estimate of the curvature.
    fn uses_curvature(&self) -> bool {
        false
    }

    /// Returns the member that corresponds to the result of a simpler family with the given mean and log standard
    /// deviations.
    #[doc(hidden)]
    fn enrich(
        &self,
        mean: &[f64],
        log_sd: &[f64],
        source: NoiseSource,
        bound: &mut dyn SampleBound,
    ) -> Vec<f64> {
        let _ = (source, bound);
        self.diagonal(mean, log_sd)
    }

    /// Returns the entropy of a member in nats. The default implementation computes the entropy from fixed draws.
    fn entropy(&self, omega: &[f64]) -> f64 {
        -mean_se(&fixed_draws(self, omega).1).0
    }

    /// Adds the gradient ∇H(ω) of the entropy to `out`. Families with second derivatives must implement this method.
    fn add_entropy_gradient(&self, omega: &[f64], out: &mut [f64]) {
        let _ = (omega, out);
        lacks(self, "add_entropy_gradient")
    }

    /// Adds ∇²H(ω) d to `out`. Families with second derivatives must implement this method.
    fn add_entropy_hvp(&self, omega: &[f64], direction: &[f64], out: &mut [f64]) {
        let _ = (omega, direction, out);
        lacks(self, "add_entropy_hvp")
    }

    /// Computes the draws `z = T(ω, ε)`.
    fn transform(&self, omega: &[f64], noise: Lanes<'_>, z: LanesMut<'_>);

    /// Computes `out = J d` in every lane. Families with second derivatives must implement this method.
    fn push(&self, omega: &[f64], direction: &[f64], noise: Lanes<'_>, out: LanesMut<'_>) {
        let _ = (omega, direction, noise, out);
        lacks(self, "push")
    }

    /// Computes `out += Σ_lanes Jᵀ g`. This method is called only for families with derivatives.
    fn pull(&self, omega: &[f64], noise: Lanes<'_>, grad: Lanes<'_>, out: &mut [f64]);

    /// Computes `out += Σ_lanes Σᵢ gᵢ ∂²Tᵢ/∂ω² d`. Families with second derivatives must implement this method.
    fn pull_second(
        &self,
        omega: &[f64],
        direction: &[f64],
        noise: Lanes<'_>,
        grad: Lanes<'_>,
        out: &mut [f64],
    ) {
        let _ = (omega, direction, noise, grad, out);
        lacks(self, "pull_second")
    }

    /// Computes `out[l] = log q(z[:, l])` for draws `z` that were computed from `noise`. The default implementation
    /// calls [`log_density_at`](Self::log_density_at). A family implements this method if its density needs the noise,
    /// or if the noise makes the computation faster.
    fn log_density(&self, omega: &[f64], noise: Lanes<'_>, z: Lanes<'_>, out: &mut [f64]) {
        let _ = noise;
        self.log_density_at(omega, z, out);
    }

    /// Computes `out[l] = log q(z[:, l])` at arbitrary points. The default implementation writes NaN, which means that
    /// the density is unknown. The check for mass far from the draws then compares the posterior with the
    /// [Gaussian](Self::gaussian), whose tails may be shorter than those of the family.
    fn log_density_at(&self, omega: &[f64], z: Lanes<'_>, out: &mut [f64]) {
        let _ = (omega, z);
        out.fill(f64::NAN);
    }

    /// Computes the gradient `∇_z log q` at the draws that were computed from `noise`.
    fn score(&self, omega: &[f64], noise: Lanes<'_>, z: Lanes<'_>, out: LanesMut<'_>);

    /// Computes `out = P⁻¹ r`, where P is a positive definite matrix close to the negated Hessian of the ELBO near its
    /// optimum. Jensen's families use their Fisher information. If `curvature` is given, it is a positive definite
    /// estimate of `-E ∇²log p`, in the form of its lower Cholesky factor (d × d) and its diagonal. By default P is the
    /// identity. Newton's method then needs more steps if the parameters have different scales.
    fn precondition(
        &self,
        omega: &[f64],
        curvature: Option<&Curvature>,
        residual: &[f64],
        out: &mut [f64],
    ) {
        let _ = (omega, curvature);
        out.copy_from_slice(residual);
    }

    /// Returns the directions (`dim × columns`) whose products with the average negated Hessian a [natural-gradient
    /// step](Self::natural) needs. Returns `None` for a family without natural-gradient steps.
    #[doc(hidden)]
    fn directions(&self) -> Option<Vec<f64>> {
        None
    }

    /// Returns the target of a natural-gradient step. `gradient` is the part of the gradient of the negated ELBO that
    /// belongs to the mean, and `products` are the products with the [directions](Self::directions). Returns `None` if
    /// no member of the family is the target.
    #[doc(hidden)]
    fn natural(&self, omega: &[f64], gradient: &[f64], products: &[f64]) -> Option<NaturalTarget> {
        let _ = (omega, gradient, products);
        None
    }

    /// Returns the member at the given fraction of the way from the current member to the target. Returns `None` if the
    /// precision of that member would not be positive definite.
    #[doc(hidden)]
    fn towards(&self, omega: &[f64], target: &NaturalTarget, share: f64) -> Option<Vec<f64>> {
        let _ = (omega, target, share);
        None
    }

    /// Returns a member whose standard deviations are those of the given member, multiplied by `factor`. The default
    /// implementation drops correlations.
    fn shrink(&self, omega: &[f64], factor: f64) -> Vec<f64> {
        let mut log_sd = self.marginal_log_sd(omega);
        log_sd.iter_mut().for_each(|l| *l += factor.ln());
        self.diagonal(&self.mean(omega), &log_sd)
    }
}

fn lacks<F: Family + ?Sized>(family: &F, map: &str) -> ! {
    panic!(
        "the family `{}` has the smoothness {:?}, but not the map `{map}`",
        family.name(),
        family.smoothness()
    )
}

fn fixed_draws<F: Family + ?Sized>(family: &F, omega: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let (rows, dim) = (family.noise_dim(), family.dim());
    let mut noise = vec![0.0; rows * FIXED_DRAWS];
    let source = NoiseSource::new(0, Simd::Scalar);
    source.fill(NoisePurpose::Final, 0, 0, rows, FIXED_DRAWS, &mut noise);
    let noise = Lanes::new(&noise, rows, FIXED_DRAWS);
    let mut z = vec![0.0; dim * FIXED_DRAWS];
    family.transform(omega, noise, LanesMut::new(&mut z, dim, FIXED_DRAWS));
    let mut log_q = vec![0.0; FIXED_DRAWS];
    let view = Lanes::new(&z, dim, FIXED_DRAWS);
    family.log_density(omega, noise, view, &mut log_q);
    (z, log_q)
}

/// The target of a natural-gradient step.
#[derive(Clone, Debug)]
pub struct NaturalTarget {
    /// The gain of the ELBO, in nats, that the quadratic model predicts.
    pub gain: f64,
    gradient: Vec<f64>,
    precision: Vec<f64>,
}

/// The ELBO of a density on fixed draws. A family uses it in the search for its [optimum](Family::enrich).
pub trait SampleBound {
    /// Fixes `lanes` draws with matched moments. This method must be called before the other methods.
    fn fix(&mut self, lanes: usize);

    /// Returns the negated ELBO at ω and writes its gradient to `out`.
    fn value_gradient(&mut self, omega: &[f64], out: &mut [f64]) -> f64;

    /// Estimates the curvature of the density under ω from the given number of draws. Returns `None` if the curvature
    /// cannot be computed.
    fn curvature(&mut self, omega: &[f64], draws: usize) -> Option<Curvature>;
}

/// A positive definite estimate of the average negated Hessian of a density.
#[derive(Clone, Debug)]
pub struct Curvature {
    /// The lower Cholesky factor of the estimate, a d × d matrix in row-major order.
    pub factor: Vec<f64>,
    /// The diagonal of the estimate itself.
    pub diagonal: Vec<f64>,
}

#[cfg(test)]
mod tests;
