//! Gaussian families on ℝᵈ with reparameterised draws `z = T(ω, ε)`, ε standard normal.
//!
//! A family is a shape; its parameters ω are one flat vector. Every method that meets the density
//! goes through five maps, from which gradients and Hessian-vector products of
//! `L(ω) = E log p(T(ω, ε)) + H(ω)` follow:
//!
//! * `∇L = E Jᵀ g + ∇H` with `g = ∇log p(z)` and `J = ∂T/∂ω`: [`Family::pull`] and
//!   [`Family::add_entropy_gradient`];
//! * `∇²L d = E[Jᵀ ∇²log p(z) J d + Σᵢ gᵢ ∂²Tᵢ/∂ω² d] + ∇²H d`: [`Family::push`] makes `J d`, the
//!   density multiplies, [`Family::pull`] returns, [`Family::pull_second`] adds the curvature of T,
//!   [`Family::add_entropy_hvp`] that of the entropy.
//!
//! Sums over lanes have a fixed order; results do not depend on threads.

mod full_rank;
mod low_rank;
mod mean_field;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jensen_density::{Lanes, LanesMut};
use serde::{Deserialize, Serialize};

pub use full_rank::FullRank;
pub use low_rank::LowRank;
pub use mean_field::MeanField;

/// Which family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FamilyKind {
    /// Independent coordinates.
    MeanField,
    /// Any covariance.
    FullRank,
    /// Diagonal plus a product of `rank` factors.
    LowRank {
        /// Number of factors.
        rank: usize,
    },
}

impl FamilyKind {
    /// The family of this kind on ℝᵈ.
    pub fn build(self, dim: usize) -> Arc<dyn Family> {
        match self {
            Self::MeanField => Arc::new(MeanField::new(dim)),
            Self::FullRank => Arc::new(FullRank::new(dim)),
            Self::LowRank { rank } => Arc::new(LowRank::new(dim, rank)),
        }
    }
}

impl fmt::Display for FamilyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MeanField => f.write_str("meanfield"),
            Self::FullRank => f.write_str("fullrank"),
            Self::LowRank { rank } => write!(f, "lowrank={rank}"),
        }
    }
}

impl FromStr for FamilyKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "meanfield" => Ok(Self::MeanField),
            "fullrank" => Ok(Self::FullRank),
            _ => match text.strip_prefix("lowrank=").map(str::parse) {
                Some(Ok(rank)) if rank > 0 => Ok(Self::LowRank { rank }),
                Some(_) => Err(format!(
                    "`{text}`: the rank must be a positive whole number"
                )),
                None => Err(format!(
                    "unknown family `{text}`; expected meanfield, fullrank or lowrank=R"
                )),
            },
        }
    }
}

/// A reparameterised Gaussian family. `omega` always has [`parameters`](Self::parameters) elements
/// and starts with the mean; noise is `noise_dim × lanes`, draws and gradients `dim × lanes`.
pub trait Family: fmt::Debug + Send + Sync {
    /// Which family this is.
    fn kind(&self) -> FamilyKind;

    /// Dimension d of the draws.
    fn dim(&self) -> usize;

    /// Rows of the standard-normal noise.
    fn noise_dim(&self) -> usize;

    /// Number of parameters.
    fn parameters(&self) -> usize;

    /// The member with the given mean and log standard deviations and no correlation.
    fn diagonal(&self, mean: &[f64], log_sd: &[f64]) -> Vec<f64>;

    /// The mean.
    fn mean<'a>(&self, omega: &'a [f64]) -> &'a [f64] {
        &omega[..self.dim()]
    }

    /// The marginal standard deviations.
    fn marginal_sd(&self, omega: &[f64]) -> Vec<f64>;

    /// Entropy in nats.
    fn entropy(&self, omega: &[f64]) -> f64;

    /// `out += ∇H(ω)`.
    fn add_entropy_gradient(&self, omega: &[f64], out: &mut [f64]);

    /// `out += ∇²H(ω) d`.
    fn add_entropy_hvp(&self, omega: &[f64], direction: &[f64], out: &mut [f64]);

    /// `z = T(ω, ε)`.
    fn transform(&self, omega: &[f64], noise: Lanes<'_>, z: LanesMut<'_>);

    /// `out = J d` at every lane.
    fn push(&self, omega: &[f64], direction: &[f64], noise: Lanes<'_>, out: LanesMut<'_>);

    /// `out += Σ_lanes Jᵀ g`.
    fn pull(&self, omega: &[f64], noise: Lanes<'_>, grad: Lanes<'_>, out: &mut [f64]);

    /// `out += Σ_lanes Σᵢ gᵢ ∂²Tᵢ/∂ω² d`.
    fn pull_second(
        &self,
        omega: &[f64],
        direction: &[f64],
        noise: Lanes<'_>,
        grad: Lanes<'_>,
        out: &mut [f64],
    );

    /// `out[l] = log q(z[:, l])`, where `z` came from `noise`.
    fn log_density(&self, omega: &[f64], noise: Lanes<'_>, z: Lanes<'_>, out: &mut [f64]);

    /// `∇_z log q` at the draws that came from `noise`.
    fn score(&self, omega: &[f64], noise: Lanes<'_>, z: Lanes<'_>, out: LanesMut<'_>);

    /// `out = P⁻¹ r`, with P close to the negated Hessian of the bound near its optimum: the
    /// family's Fisher information. `curvature` is the lower Cholesky factor of a positive definite
    /// estimate of `-E ∇²log p` (d × d) and its diagonal, when there is one.
    fn precondition(
        &self,
        omega: &[f64],
        curvature: Option<&Curvature>,
        residual: &[f64],
        out: &mut [f64],
    );

    /// The member with every spread multiplied by `factor`.
    fn shrink(&self, omega: &[f64], factor: f64) -> Vec<f64>;
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
