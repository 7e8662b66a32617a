//! A change of coordinates after which a fitted approximation is standard normal and the posterior is nearly standard
//! normal. For a Gaussian the map is `z = m + A x`. For a conditionally structured Gaussian it is the family's map from
//! noise to draws, whose Jacobian depends on the point.
//!
//! A is a square root of the covariance of the family. It is the diagonal of standard deviations for the mean-field
//! family, and the Cholesky factor for the full-rank family. For the covariance `D² + U Uᵀ`, it is the matrix `D (I + V
//! M Vᵀ)` with `V = D⁻¹ U`, `Vᵀ V = Q Λ Qᵀ` and `M = Q diag(1/(1 + √(1 + λ))) Qᵀ`. Unlike the family's map from its
//! noise, this matrix is square.

use std::borrow::Cow;
use std::sync::Arc;

use jensen_density::{Lanes, LanesMut};
use jensen_math::simd::LANES;

use super::root::{LowRankRoot, PrecisionRoot, Root};
use super::tails::{Slopes, Tails};
use crate::approximation::Approximation;
use crate::family::{Conditional, Family, FamilyKind, FullRank, Passes, Sparse};
use crate::policy::DENSE;
use crate::reduce::affine_row;

/// The map `z = m + A W x`: the family's own map, applied after a whitening W that is estimated from particles.
#[derive(Clone, Debug)]
pub(super) struct Map {
    mean: Vec<f64>,
    roots: Vec<Root>,
    log_det: f64,
    tails: Tails,
    structured: Option<StructuredMap>,
    /// Whether the approximation itself is standard normal under the map. Otherwise only a Gaussian close to the
    /// approximation is.
    exact: bool,
}

/// The part of the map that is learned from the particles: the matrix W, which acts before the approximation's own map,
/// and the tail transforms, which act after the affine part.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shown {
    /// The matrix W, or `None` for the identity.
    pub root: Option<Root>,
    pub tails: Tails,
}

#[derive(Clone, Debug)]
struct StructuredMap {
    family: Arc<Conditional>,
    omega: Arc<Vec<f64>>,
}

#[derive(Default)]
pub(super) struct Placed {
    pub z: Vec<f64>,
    inner: Vec<f64>,
    slopes: Slopes,
    passes: Passes,
    pub log_det: Vec<f64>,
}

impl Placed {
    fn noise<'n>(&'n self, x: &'n [f64]) -> &'n [f64] {
        noise_of(&self.inner, x)
    }
}

impl Map {
    /// Creates the map under which the approximation is standard normal. If the family is not an affine map of its
    /// noise, the map belongs to a Gaussian close to the approximation.
    pub(super) fn of(approximation: &Approximation) -> Self {
        let (dim, omega) = (approximation.dim(), approximation.omega());
        let root = match approximation.name().kind() {
            Some(FamilyKind::MeanField) => Root::Diagonal(approximation.sd()),
            Some(FamilyKind::FullRank) => {
                let family = FullRank::new(dim);
                let mut lower = vec![0.0; dim * dim];
                for (i, row) in lower.chunks_mut(dim).enumerate() {
                    row[..=i].copy_from_slice(family.factor_row(omega, i));
                }
                Root::lower(lower, dim)
            }
            Some(FamilyKind::LowRank { rank }) => Root::LowRank(LowRankRoot::new(
                &omega[dim..2 * dim],
                &omega[2 * dim..],
                rank,
            )),
            Some(FamilyKind::Sparse) => Root::Precision(PrecisionRoot {
                family: Sparse::new(approximation.family().space()),
                omega: omega.to_vec(),
            }),
            Some(FamilyKind::Conditional) => {
                return Self {
                    mean: Vec::new(),
                    log_det: 0.0,
                    roots: Vec::new(),
                    tails: Tails::default(),
                    structured: Some(StructuredMap {
                        family: Arc::new(Conditional::new(approximation.family().space())),
                        omega: Arc::new(omega.to_vec()),
                    }),
                    exact: true,
                };
            }
            _ => {
                let close = approximation.family().gaussian(omega);
                let (mean, lower) = close.unwrap_or_else(|| {
                    // If the covariance is numerically singular, the map uses only the standard deviations.
                    let mut lower = vec![0.0; dim * dim];
                    for (i, sd) in approximation.sd().into_iter().enumerate() {
                        lower[i * dim + i] = sd;
                    }
                    (approximation.mean(), lower)
                });
                let root = Root::lower(lower, dim);
                return Self {
                    mean,
                    log_det: root.log_det(),
                    roots: vec![root],
                    tails: Tails::default(),
                    structured: None,
                    exact: false,
                };
            }
        };
        Self {
            mean: approximation.mean().to_vec(),
            log_det: root.log_det(),
            roots: vec![root],
            tails: Tails::default(),
            structured: None,
            exact: true,
        }
    }

    pub(super) fn is_exact(&self) -> bool {
        self.exact
    }

    pub(super) fn after(&self, shown: &Shown) -> Self {
        let mut map = match &shown.root {
            Some(root) => self.after_root(root),
            None => self.clone(),
        };
        map.tails.clone_from(&shown.tails);
        map
    }

    pub(super) fn after_root(&self, whitening: &Root) -> Self {
        let log_det = self.log_det + whitening.log_det();
        let roots = match &self.roots[..] {
            [own @ (Root::Diagonal(_) | Root::Lower { .. })] => vec![own.times_root(whitening)],
            own => [own, std::slice::from_ref(whitening)].concat(),
        };
        Self {
            mean: self.mean.clone(),
            roots,
            log_det,
            tails: Tails::default(),
            structured: self.structured.clone(),
            exact: self.exact,
        }
    }

    pub(super) fn block(&self) -> usize {
        match self.structured {
            Some(_) => Conditional::BLOCK,
            None => LANES,
        }
    }

    /// Returns the global parameters, which come first among the coordinates of the map. An affine map has no global
    /// parameters.
    pub(super) fn globals(&self) -> &[usize] {
        self.structured
            .as_ref()
            .map_or(&[], |structured| structured.family.globals())
    }

    /// Returns whether the cost of the map is far below the square of the dimension, because the family uses the
    /// structure of the density.
    pub(super) fn is_structured(&self) -> bool {
        let precision = |root: &Root| matches!(root, Root::Precision(_));
        self.structured.is_some() || self.roots.iter().any(precision)
    }

    /// Returns whether the cost of the map is proportional to the number of coordinates, or to the nonzeros of a sparse
    /// factor.
    pub(super) fn is_sparse(&self) -> bool {
        let sparse = |root: &Root| matches!(root, Root::Diagonal(_) | Root::Precision(_));
        self.roots.iter().all(sparse)
    }

    pub(super) fn log_dets(&self, x: &[f64], lanes: usize) -> Vec<f64> {
        if self.structured.is_none() && self.tails.is_empty() {
            return vec![self.log_det; lanes];
        }
        let mut placed = Placed::default();
        self.begin(x, lanes, &mut placed);
        self.log_dets_of(x, lanes, &placed)
    }

    fn log_dets_of(&self, x: &[f64], lanes: usize, placed: &Placed) -> Vec<f64> {
        let mut out = match &self.structured {
            Some(StructuredMap { family, omega }) => {
                family.log_dets(omega, Lanes::new(placed.noise(x), family.dim(), lanes))
            }
            None => vec![0.0; lanes],
        };
        out.iter_mut().for_each(|d| *d += self.log_det);
        placed.slopes.add_logs(&mut out);
        out
    }

    /// Applies the affine part and the tail transforms. The result is the draws, or the noise if the family is not an
    /// affine map.
    fn begin(&self, x: &[f64], lanes: usize, placed: &mut Placed) {
        let inner = self.rooted(x, lanes);
        if self.structured.is_none() {
            placed.z.resize(x.len(), 0.0);
            let rows = placed.z.chunks_mut(lanes).zip(inner.chunks(lanes));
            for ((z, x), mean) in rows.zip(&self.mean) {
                affine_row(*mean, 1.0, x, z);
            }
            self.tails.apply(&mut placed.z, lanes, &mut placed.slopes);
            return;
        }
        placed.inner.clear();
        if let Cow::Owned(inner) = inner {
            placed.inner = inner;
        } else if !self.tails.is_empty() {
            placed.inner.extend_from_slice(x);
        }
        self.tails
            .apply(&mut placed.inner, lanes, &mut placed.slopes);
    }

    pub(super) fn middle(&self, x: &[f64], lanes: usize) -> Vec<f64> {
        let mut placed = Placed::default();
        self.begin(x, lanes, &mut placed);
        match &self.structured {
            Some(_) => placed.noise(x).to_vec(),
            None => placed.z,
        }
    }

    pub(super) fn origin(&self, mut y: Vec<f64>, lanes: usize) -> Vec<f64> {
        for (row, mean) in y.chunks_mut(lanes).zip(&self.mean) {
            row.iter_mut().for_each(|y| *y -= mean);
        }
        self.roots.iter().for_each(|root| root.solve(&mut y, lanes));
        y
    }

    /// Estimates the tail transforms from sets of particles, to which the affine part and the tail transforms of this map
    /// have already been applied. If the family is not an affine map, only global parameters have transforms.
    pub(super) fn tails_of(&self, particle_sets: &[f64], (size, lanes): (usize, usize)) -> Tails {
        let (shape, rows) = ((size, lanes), size / lanes);
        match &self.structured {
            Some(StructuredMap { family, .. }) => {
                Tails::of(particle_sets, shape, family.globals().len())
            }
            None if rows <= DENSE => Tails::of(particle_sets, shape, rows).around(&self.mean),
            None => Tails::default(),
        }
    }

    fn rooted<'x>(&self, x: &'x [f64], lanes: usize) -> Cow<'x, [f64]> {
        let mut z = Cow::Borrowed(x);
        for root in self.roots.iter().rev() {
            z = Cow::Owned(root.times(&z, lanes));
        }
        z
    }

    pub(super) fn draws(&self, x: &[f64], lanes: usize) -> Vec<f64> {
        let mut placed = Placed::default();
        self.apply(x, lanes, &mut placed);
        placed.z
    }

    pub(super) fn apply(&self, x: &[f64], lanes: usize, placed: &mut Placed) {
        self.begin(x, lanes, placed);
        placed.log_det = self.log_dets_of(x, lanes, placed);
        let Some(StructuredMap { family, omega }) = &self.structured else {
            return;
        };
        placed.z.resize(x.len(), 0.0);
        let noise = Lanes::new(noise_of(&placed.inner, x), family.dim(), lanes);
        let mut z = LanesMut::new(&mut placed.z, family.dim(), lanes);
        family.passes(omega, noise, &mut z, &mut placed.passes);
    }

    /// Computes the derivative of the log density plus the log Jacobian with respect to `x`, and writes it to `out`.
    /// The input is the gradient of the log density at the draws.
    pub(super) fn pull(
        &self,
        x: &[f64],
        placed: &mut Placed,
        grad: &[f64],
        lanes: usize,
        out: &mut [f64],
    ) {
        match &self.structured {
            Some(StructuredMap { family, omega }) => {
                let dim = family.dim();
                let noise = Lanes::new(noise_of(&placed.inner, x), dim, lanes);
                let by_noise = LanesMut::new(out, dim, lanes);
                let grad = Lanes::new(grad, dim, lanes);
                family.pull_density(omega, noise, &mut placed.passes, grad, by_noise);
            }
            None => out.copy_from_slice(grad),
        }
        self.tails.pull(&placed.slopes, out, lanes);
        for root in &self.roots {
            root.pull(lanes, out);
        }
    }

    pub(super) fn squares(x: &[f64], lanes: usize) -> Vec<f64> {
        let mut out = vec![0.0; lanes];
        for row in x.chunks(lanes) {
            out.iter_mut().zip(row).for_each(|(s, x)| *s += x * x);
        }
        out
    }
}

fn noise_of<'n>(inner: &'n [f64], x: &'n [f64]) -> &'n [f64] {
    if inner.is_empty() { x } else { inner }
}

#[cfg(test)]
mod tests;
