//! The second-order expansion of a likelihood around one point.
//!
//! It is the joint control variate (Wang, Geffner and Domke 2024) with one snapshot, for a density instead of a gradient.
//! Let `tₙ(z)` be the expansion of `log p(xₙ | z)` around the point. For a minibatch B of N records,
//!
//! ```text
//! Σ_m t_m(z) + N/|B| Σ_{n ∈ B} [log p(xₙ | z) − tₙ(z)]
//! ```
//!
//! has the same expectation as `N/|B| Σ_{n ∈ B} log p(xₙ | z)` for any z, so it replaces the log likelihood in values,
//! gradients and products with the Hessian alike. Its noise is of third order in the distance of z from the point.

use jensen_density::{Lanes, LanesMut, RecordDensity};

use crate::reduce::axpy;
use crate::sizes::LANES;

/// The value, the gradient and the Hessian of the log likelihood of all records at one point.
#[derive(Clone, Debug)]
pub(super) struct Expansion {
    pub(super) point: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
    /// The Hessian, a symmetric d × d matrix.
    hessian: Vec<f64>,
}

impl Expansion {
    /// Expands the likelihood around `point`. The cost is a gradient and d Hessian-vector products of all records.
    pub(super) fn around<D: RecordDensity>(density: &D, point: &[f64]) -> Self {
        let d = point.len();
        let records: Vec<u32> = (0..density.records() as u32).collect();
        let stride = density.stride().max(1);
        let mut ws = density.workspace(LANES.min(d), stride.min(records.len()));
        let (mut value, mut gradient, mut hessian) = (0.0, vec![0.0; d], vec![0.0; d * d]);
        let mut part = Vec::new();
        for batch in records.chunks(stride) {
            part.resize(d, 0.0);
            let mut own = [0.0];
            let at = Lanes::new(point, d, 1);
            density.batch_value_grad(&mut ws, batch, at, &mut own, LanesMut::new(&mut part, d, 1));
            value += own[0];
            axpy(1.0, &part, &mut gradient);
            for first in (0..d).step_by(LANES) {
                let lanes = LANES.min(d - first);
                let points: Vec<f64> = point
                    .iter()
                    .flat_map(|x| std::iter::repeat_n(*x, lanes))
                    .collect();
                let mut units = vec![0.0; d * lanes];
                (0..lanes).for_each(|l| units[(first + l) * lanes + l] = 1.0);
                part.resize(d * lanes, 0.0);
                density.batch_hvp(
                    &mut ws,
                    batch,
                    Lanes::new(&points, d, lanes),
                    Lanes::new(&units, d, lanes),
                    LanesMut::new(&mut part, d, lanes),
                );
                for (i, row) in part.chunks_exact(lanes).enumerate() {
                    axpy(1.0, row, &mut hessian[i * d + first..][..lanes]);
                }
                part.truncate(d);
            }
        }
        Self {
            point: point.to_vec(),
            value,
            gradient,
            hessian,
        }
    }

    pub(super) fn is_finite(&self) -> bool {
        let numbers = self.gradient.iter().chain(&self.hessian);
        self.value.is_finite() && numbers.into_iter().all(|x| x.is_finite())
    }

    /// Writes the products of the Hessian with the directions v, a d × lanes matrix.
    pub(super) fn product(&self, v: &[f64], lanes: usize, out: &mut [f64]) {
        let d = self.point.len();
        for (row, out) in self
            .hessian
            .chunks_exact(d)
            .zip(out.chunks_exact_mut(lanes))
        {
            out.fill(0.0);
            for (h, v) in row.iter().zip(v.chunks_exact(lanes)) {
                axpy(*h, v, out);
            }
        }
    }

    /// Writes the expansion of all records at the displacements `shift`, and its gradients.
    pub(super) fn of_all(&self, shift: &[f64], lanes: usize, values: &mut [f64], grad: &mut [f64]) {
        self.product(shift, lanes, grad);
        values.fill(self.value);
        let rows = shift.chunks_exact(lanes).zip(grad.chunks_exact_mut(lanes));
        for ((shift, grad), g) in rows.zip(&self.gradient) {
            for ((value, s), p) in values.iter_mut().zip(shift).zip(grad) {
                *value += s * (g + 0.5 * *p);
                *p += g;
            }
        }
    }
}
