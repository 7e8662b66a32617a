//! Families on ℝᵈ with reparameterised draws `z = T(ω, ε)`, ε standard normal.
//!
//! A family is a set of distributions of one shape. Its parameters ω are one flat vector. Every method reaches the
//! density through five maps, from which gradients and Hessian-vector products of `L(ω) = E log p(T(ω, ε)) + H(ω)`
//! follow:
//!
//! * `∇L = E Jᵀ g + ∇H` with `g = ∇log p(z)` and `J = ∂T/∂ω`: [`Family::pull`] and
//!   [`Family::add_entropy_gradient`];
//! * `∇²L d = E[Jᵀ ∇²log p(z) J d + Σᵢ gᵢ ∂²Tᵢ/∂ω² d] + ∇²H d`: [`Family::push`] computes `J d`, the density multiplies
//!   by its Hessian, [`Family::pull`] multiplies by `Jᵀ`, [`Family::pull_second`] adds the curvature of T, and
//!   [`Family::add_entropy_hvp`] adds that of the entropy.
//!
//! A new family needs one file and one line of the list below.
//!
//! Sums over lanes have a fixed order, so results do not depend on the number of threads.

pub(crate) mod conditional;
mod flow;
mod full_rank;
pub(crate) mod globals;
mod low_rank;
mod mean_field;
pub(crate) mod mixture;
pub(crate) mod rows;
mod sparse;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jensen_density::{Lanes, LanesMut, LogDensity, Pattern};
use serde::{Deserialize, Serialize};

use crate::error::positive;
use crate::noise::NoiseSource;

pub use conditional::Conditional;
pub(crate) use conditional::Passes;
pub use flow::Flow;
pub use full_rank::FullRank;
pub use low_rank::LowRank;
pub use mean_field::MeanField;
pub use mixture::Mixture;
pub use sparse::Sparse;

/// The space of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// Number of coordinates.
    pub dim: usize,
    /// The mixed second derivatives of the density that can differ from zero, if known.
    pub pattern: Option<Arc<Pattern>>,
}

impl Space {
    /// The space of a density.
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

/// The list of families. A macro generates [`FamilyKind`] from it. A kind may have a parameter, a positive integer that
/// may have a default.
macro_rules! families {
    ($($(#[$doc:meta])* $kind:ident $({ $(#[$about:meta])* $number:ident $(= $usual:literal)? })? => $name:literal,)*) => {
        /// The family.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum FamilyKind {
            $($(#[$doc])* $kind $({ $(#[$about])* $number: usize })?,)*
        }

        impl FamilyKind {
            /// The family of this kind on a space, such as ℝᵈ.
            pub fn build(self, space: impl Into<Space>) -> Arc<dyn Family> {
                let space = space.into();
                match self {
                    $(Self::$kind $({ $number })? => Arc::new($kind::new(space.into() $(, $number)?)),)*
                }
            }

            /// Number of parameters on a space. It does not build the family, which can be large.
            pub fn parameters(self, space: &Space) -> usize {
                match self {
                    Self::Sparse => Sparse::parameters_on(space),
                    Self::Conditional => self.build(space.clone()).parameters(),
                    _ => self.build(space.dim).parameters(),
                }
            }

            /// Checks the parameter of the kind.
            ///
            /// # Errors
            /// Returns a sentence that names the setting and its value.
            pub fn validate(self) -> Result<(), String> {
                match self {
                    $(Self::$kind $({ $number })? => {
                        $(positive([(stringify!($number), $number as f64)])?;)?
                        Ok(())
                    })*
                }
            }
        }

        impl fmt::Display for FamilyKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$kind $({ $number })? => {
                        f.write_str($name)?;
                        $(write!(f, "={}", $number)?;)?
                        Ok(())
                    })*
                }
            }
        }

        impl FromStr for FamilyKind {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let (name, number) = match text.split_once('=') {
                    Some((name, number)) => (name, Some(number)),
                    None => (text, None),
                };
                $(if name == $name {
                    let parameters: &[&str] = &[$(stringify!($number))?];
                    if parameters.is_empty() && number.is_some() {
                        return Err(format!("`{text}`: the family `{name}` takes no number"));
                    }
                    return Ok(Self::$kind $({
                        $number: whole(text, stringify!($number), number, None $(.or(Some($usual)))?)?
                    })?);
                })*
                let known = [$(concat!($name $(, "=", stringify!($number))?)),*];
                Err(format!("unknown family `{text}`; expected one of {}", known.join(", ")))
            }
        }
    };
}

/// The positive integer of a family, or its default.
fn whole(
    text: &str,
    what: &str,
    number: Option<&str>,
    usual: Option<usize>,
) -> Result<usize, String> {
    match (number.map(str::parse), usual) {
        (Some(Ok(number)), _) if number > 0 => Ok(number),
        (None, Some(usual)) => Ok(usual),
        _ => Err(format!(
            "`{text}`: the {what} must be a positive whole number"
        )),
    }
}

families! {
    /// Independent coordinates.
    MeanField => "meanfield",
    /// Any covariance.
    FullRank => "fullrank",
    /// Diagonal plus a product of `rank` factors.
    LowRank {
        /// Number of factors.
        rank
    } => "lowrank",
    /// A precision that is sparse if the density lacks mixed second derivatives.
    Sparse => "sparse",
    /// A sparse precision of local parameters. Their means, scales and regressions depend on global parameters.
    Conditional => "conditional",
    /// Mixtures of at most this number of Gaussians with arbitrary covariances.
    Mixture {
        /// Number of components.
        components = 8
    } => "mixture",
    /// Affine couplings in the whitened space of the best Gaussian.
    Flow {
        /// Number of layers.
        layers = 6
    } => "flow",
}

/// The derivatives of a family's draws with respect to its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Smoothness {
    /// First and second derivatives, with a known entropy: any method that uses derivatives can fit the family.
    Twice,
    /// First derivatives along the path of a draw: methods with the sticking-the-landing gradient can fit the family.
    Path,
    /// No derivatives: weighted draws fit the family.
    None,
}

/// The reason why no code requests derivatives with respect to the parameters.
const NO_DERIVATIVES: &str =
    "methods ask for a family's smoothness before they ask for derivatives";

/// A family with reparameterised draws. `omega` always has [`parameters`](Self::parameters) elements;
/// noise is `noise_dim × lanes`, draws and gradients `dim × lanes`.
///
/// A method uses the properties of the family and never its kind.
pub trait Family: fmt::Debug + Send + Sync {
    /// The kind of the family.
    fn kind(&self) -> FamilyKind;

    /// Dimension d of the draws.
    fn dim(&self) -> usize;

    /// The space of the family.
    fn space(&self) -> Space {
        self.dim().into()
    }

    /// Rows of the standard-normal noise.
    fn noise_dim(&self) -> usize;

    /// Number of parameters.
    fn parameters(&self) -> usize;

    /// The member with the given mean and log standard deviations and no correlation.
    fn diagonal(&self, mean: &[f64], log_sd: &[f64]) -> Vec<f64>;

    /// The mean.
    fn mean(&self, omega: &[f64]) -> Vec<f64>;

    /// The marginal standard deviations.
    fn marginal_sd(&self, omega: &[f64]) -> Vec<f64>;

    /// Their logarithms.
    fn marginal_log_sd(&self, omega: &[f64]) -> Vec<f64> {
        self.marginal_sd(omega).iter().map(|sd| sd.ln()).collect()
    }

    /// Whether ω consists of means and log standard deviations of independent normals. Explicit Hessians, exact
    /// expectations and linear response are then available.
    fn is_factorised(&self) -> bool {
        false
    }

    /// The available derivatives with respect to its parameters. Callers must not call maps for other derivatives.
    fn smoothness(&self) -> Smoothness {
        Smoothness::Twice
    }

    /// The family at whose result it [starts](Self::upon), if that is not a mean field.
    fn begins_at(&self) -> Option<FamilyKind> {
        None
    }

    /// The member that corresponds to a full-rank Gaussian and, if possible, to other modes with given means and log
    /// standard deviations. `None` for families that [enrich](Self::enrich) the result of a mean field.
    fn upon(&self, gaussian: &[f64], modes: &[(Vec<f64>, Vec<f64>)]) -> Option<Vec<f64>> {
        let _ = (gaussian, modes);
        None
    }

    /// The share of the draws from parts for which the predicate holds, given their mean and standard deviation in a
    /// coordinate. It is 0 for families without parts.
    fn share_of_parts(
        &self,
        omega: &[f64],
        coordinate: usize,
        which: &dyn Fn(f64, f64) -> bool,
    ) -> f64 {
        let _ = (omega, coordinate, which);
        0.0
    }

    /// Mean and lower factor of a Gaussian close to the member, for families that are not affine maps of their noise. A
    /// refinement uses it as preconditioner.
    fn gaussian(&self, omega: &[f64]) -> Option<(Vec<f64>, Vec<f64>)> {
        let _ = omega;
        None
    }

    /// Number of rows of a free matrix that draws must determine. With too few draws a fit would overfit these rows.
    fn free_rows(&self) -> usize {
        0
    }

    /// Whether [`precondition`](Self::precondition) uses a curvature.
    fn uses_curvature(&self) -> bool {
        true
    }

    /// Whether its Newton systems are ill-conditioned. Their effort is then limited if it is the richer of two
    /// families.
    fn is_ill_conditioned(&self) -> bool {
        false
    }

    /// The member that corresponds to the result of a simpler family with this mean and these log standard deviations.
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

    /// Entropy in nats.
    fn entropy(&self, omega: &[f64]) -> f64;

    /// `out += ∇H(ω)`.
    fn add_entropy_gradient(&self, omega: &[f64], out: &mut [f64]) {
        let _ = (omega, out);
        unreachable!("{NO_DERIVATIVES}");
    }

    /// `out += ∇²H(ω) d`.
    fn add_entropy_hvp(&self, omega: &[f64], direction: &[f64], out: &mut [f64]) {
        let _ = (omega, direction, out);
        unreachable!("{NO_DERIVATIVES}");
    }

    /// `z = T(ω, ε)`.
    fn transform(&self, omega: &[f64], noise: Lanes<'_>, z: LanesMut<'_>);

    /// `out = J d` at every lane.
    fn push(&self, omega: &[f64], direction: &[f64], noise: Lanes<'_>, out: LanesMut<'_>) {
        let _ = (omega, direction, noise, out);
        unreachable!("{NO_DERIVATIVES}");
    }

    /// `out += Σ_lanes Jᵀ g`.
    fn pull(&self, omega: &[f64], noise: Lanes<'_>, grad: Lanes<'_>, out: &mut [f64]) {
        let _ = (omega, noise, grad, out);
        unreachable!("{NO_DERIVATIVES}");
    }

    /// `out += Σ_lanes Σᵢ gᵢ ∂²Tᵢ/∂ω² d`.
    fn pull_second(
        &self,
        omega: &[f64],
        direction: &[f64],
        noise: Lanes<'_>,
        grad: Lanes<'_>,
        out: &mut [f64],
    ) {
        let _ = (omega, direction, noise, grad, out);
        unreachable!("{NO_DERIVATIVES}");
    }

    /// `out[l] = log q(z[:, l])`, where `z` came from `noise`.
    fn log_density(&self, omega: &[f64], noise: Lanes<'_>, z: Lanes<'_>, out: &mut [f64]);

    /// `out[l] = log q(z[:, l])` at any points, for families that are not [affine](Self::gaussian) maps of their noise.
    fn log_density_at(&self, omega: &[f64], z: Lanes<'_>, out: &mut [f64]) {
        let _ = (omega, z, out);
        unreachable!("asked of families alone that are no affine maps");
    }

    /// `∇_z log q` at the draws that came from `noise`.
    fn score(&self, omega: &[f64], noise: Lanes<'_>, z: Lanes<'_>, out: LanesMut<'_>);

    /// `out = P⁻¹ r`, with P close to the negated Hessian of the bound near its optimum: the family's Fisher
    /// information. `curvature`, if available, is the lower Cholesky factor of a positive definite estimate of `-E
    /// ∇²log p` (d × d), and its diagonal.
    fn precondition(
        &self,
        omega: &[f64],
        curvature: Option<&Curvature>,
        residual: &[f64],
        out: &mut [f64],
    ) {
        let _ = (omega, curvature, residual, out);
        unreachable!("{NO_DERIVATIVES}");
    }

    /// Directions, `d × columns`, whose products with the average negated Hessian a [natural-gradient
    /// step](Self::natural) needs. `None` for a family without such steps.
    fn directions(&self) -> Option<Vec<f64>> {
        None
    }

    /// The target of the natural gradient, from the mean's part of the negated bound's gradient and the products with
    /// the [directions](Self::directions). `None` if there is no such member.
    fn natural(&self, omega: &[f64], gradient: &[f64], products: &[f64]) -> Option<NaturalTarget> {
        let _ = (omega, gradient, products);
        None
    }

    /// The member at a fraction of the distance to the target. `None` if its precision would not be definite.
    fn towards(&self, omega: &[f64], target: &NaturalTarget, share: f64) -> Option<Vec<f64>> {
        let _ = (omega, target, share);
        None
    }

    /// The member with every spread multiplied by `factor`.
    fn shrink(&self, omega: &[f64], factor: f64) -> Vec<f64>;
}

/// The target of a natural gradient.
#[derive(Clone, Debug)]
pub struct NaturalTarget {
    /// The bound's gain in nats by the quadratic model.
    pub gain: f64,
    /// The mean's part of the negated bound's gradient.
    gradient: Vec<f64>,
    /// The precision, in the family's form.
    precision: Vec<f64>,
}

/// The bound of a density on fixed draws, for a family that searches for its [optimum](Family::enrich) on them.
pub trait SampleBound {
    /// Fixes the draws, `lanes` of them with matched moments. Comes first.
    fn fix(&mut self, lanes: usize);

    /// The negated bound at ω, with its gradient written into `out`.
    fn value_gradient(&mut self, omega: &[f64], out: &mut [f64]) -> f64;

    /// An estimate of the density's curvature under ω from the given number of draws. `None` if it cannot be computed.
    fn curvature(&mut self, omega: &[f64], draws: usize) -> Option<Curvature>;
}

/// A positive definite estimate of the density's average negated Hessian.
#[derive(Clone, Debug)]
pub struct Curvature {
    /// Lower Cholesky factor, d × d row-major.
    pub factor: Vec<f64>,
    /// Diagonal of the estimate itself.
    pub diagonal: Vec<f64>,
}

#[cfg(test)]
mod tests;
