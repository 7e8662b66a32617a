//! The starting points of the starts.

use jensen_density::{Lanes, LanesMut, TwiceDifferentiable};
use serde::{Deserialize, Serialize};

use crate::noise::{NoisePurpose, NoiseSource, SECOND_STREAM};
use crate::policy::ONE_BY_ONE;
use crate::reduce::dot;
use crate::sizes::LANES;

/// The choice of the starting points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Init {
    /// The first start is at the origin of the unconstrained space. Further starts are at random points in antithetic
    /// pairs.
    Zero,
    /// All starts are at random points, which are drawn uniformly from [-2, 2] in every coordinate.
    Random,
    /// The only start is at the given unconstrained point.
    Point(Vec<f64>),
}

/// The largest half-width of the range of random starting points, as in Stan.
const RADIUS: f64 = 2.0;

/// The half-widths of wide starts. For each half-width there are two antithetic points. Every coordinate of the points
/// is beyond half of the half-width. If a mode is that far away in some coordinate, one of the two points is on the
/// same side as the mode. There are no wide starts in more than [`DENSE`](crate::policy::DENSE) dimensions. Twenty programs
/// of 66 to 326 dimensions take 0.7 % longer with wide starts. Without wide starts, 14 of 36 posteriors of 70 and 120
/// dimensions with a distant mode or slab were trusted, although a standard deviation was wrong
/// (`tools/sweep_mixtures.py`). With wide starts, two are.
pub(super) const WIDE: [f64; 2] = [20.0, 100.0];

/// The number of attempts for each wide start. If scales are parameterised by their logarithms, most attempts fail.
const WIDE_ATTEMPTS: u64 = 3;

/// The number of attempts to find a random point with finite density and gradient, as in Stan. If none succeeds, as many
/// attempts follow that use the same random number for all elements of an array, so that only a few numbers must have
/// suitable values, instead of one number per group. For example, many groups may each contain probabilities whose sum
/// must not exceed one.
const ATTEMPTS: u64 = 100;

/// The index of the first wide start. The random numbers of ordinary starts do not depend on the wide ones.
pub(super) const FIRST_WIDE: u64 = SECOND_STREAM;

pub(super) struct Points {
    pub dim: usize,
    pub source: NoiseSource,
    pub init: Init,
    pub variables: Vec<usize>,
}

impl Points {
    pub fn attempts(&self, index: u64) -> u64 {
        match self.init {
            Init::Point(_) => 1,
            _ if index >= FIRST_WIDE => WIDE_ATTEMPTS,
            _ if self.variables.is_empty() => ATTEMPTS,
            _ => 2 * ATTEMPTS,
        }
    }

    pub fn at(&self, index: u64, attempt: u64) -> Vec<f64> {
        let mut u = vec![0.0; self.dim];
        let mut uniforms = |key, attempt| {
            let purpose = NoisePurpose::Start;
            self.source.uniforms(purpose, key, attempt, &mut u);
        };
        if index >= FIRST_WIDE {
            let pair = (index - FIRST_WIDE) / 2;
            let half = WIDE[pair as usize] / 2.0;
            let half = if index % 2 == 1 { -half } else { half };
            uniforms(FIRST_WIDE + pair, attempt);
            u.iter_mut().for_each(|x| {
                let signed = 2.0 * *x - 1.0;
                *x = half * (signed + signed.signum());
            });
            return u;
        }
        match &self.init {
            Init::Point(point) => point.clone(),
            Init::Zero if index == 0 && attempt == 0 => u,
            Init::Zero | Init::Random => {
                // Random points come in mirrored pairs, so that the starts try modes on both sides of the origin.
                let origin = u64::from(self.init == Init::Zero && attempt == 0);
                let pair = (index - origin.min(index)) / 2;
                let mirrored = (index - origin.min(index)) % 2 == 1;
                let radius = if mirrored { -RADIUS } else { RADIUS };
                uniforms(pair, attempt);
                if attempt >= ATTEMPTS {
                    // The number of an array is the index of its first coordinate.
                    for k in 1..self.dim {
                        if self.variables[k] == self.variables[k - 1] {
                            u[k] = u[k - 1];
                        }
                    }
                }
                u.iter_mut().for_each(|x| *x = radius * (2.0 * *x - 1.0));
                u
            }
        }
    }
}

pub(super) fn mixed(counter: u64) -> u64 {
    let mut x = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Computes `−½ log max(1, |∂²log p/∂z²|)` for each coordinate at a point. Returns `None` if the density, its gradient
/// or its curvature is not finite there.
pub(super) fn initial_log_sd<D: TwiceDifferentiable>(
    density: &D,
    point: &[f64],
) -> Option<Vec<f64>> {
    let dim = point.len();
    let mut workspace = density.rough_workspace(LANES.min(dim.max(1)));
    let (mut value, mut gradient) = ([0.0], vec![0.0; dim]);
    density.value_grad(
        &mut workspace,
        Lanes::new(point, dim, 1),
        &mut value,
        LanesMut::new(&mut gradient, dim, 1),
    );
    if !value[0].is_finite() || gradient.iter().any(|g| !g.is_finite()) {
        return None;
    }
    let scale = |curvature: f64| {
        let curvature = curvature.abs();
        curvature
            .is_finite()
            .then(|| -0.5 * curvature.max(1.0).ln())
    };
    if dim > ONE_BY_ONE {
        // If a Hessian product with random signs is multiplied by the same signs, the result is the diagonal plus noise
        // of mean zero.
        let (mut z, mut signs) = (vec![0.0; dim * LANES], vec![0.0; dim * LANES]);
        for (row, x) in z.chunks_mut(LANES).zip(point) {
            row.fill(*x);
        }
        for (i, sign) in signs.iter_mut().enumerate() {
            *sign = if mixed(i as u64) & 1 == 0 { 1.0 } else { -1.0 };
        }
        let mut product = vec![0.0; dim * LANES];
        density.hvp(
            &mut workspace,
            Lanes::new(&z, dim, LANES),
            Lanes::new(&signs, dim, LANES),
            LanesMut::new(&mut product, dim, LANES),
        );
        return product
            .chunks(LANES)
            .zip(signs.chunks(LANES))
            .map(|(product, signs)| scale(dot(product, signs) / LANES as f64))
            .collect();
    }
    let mut log_sd = Vec::with_capacity(dim);
    for first in (0..dim).step_by(LANES) {
        let lanes = LANES.min(dim - first);
        let mut z = vec![0.0; dim * lanes];
        for (row, x) in z.chunks_mut(lanes).zip(point) {
            row.fill(*x);
        }
        let (mut unit, mut product) = (vec![0.0; dim * lanes], vec![0.0; dim * lanes]);
        for lane in 0..lanes {
            unit[(first + lane) * lanes + lane] = 1.0;
        }
        density.hvp(
            &mut workspace,
            Lanes::new(&z, dim, lanes),
            Lanes::new(&unit, dim, lanes),
            LanesMut::new(&mut product, dim, lanes),
        );
        for lane in 0..lanes {
            log_sd.push(scale(product[(first + lane) * lanes + lane])?);
        }
    }
    Some(log_sd)
}
