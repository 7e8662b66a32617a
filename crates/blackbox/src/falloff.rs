//! Whether a density falls off at all: improper posteriors look like wide ones to draws near the centre.

use jensen_density::{Lanes, LogDensity};

use crate::family::Family;

/// Standard deviations from the centre at which the density is looked at.
const AWAY: [f64; 4] = [-200.0, -20.0, 20.0, 200.0];

/// Nats by which it must have fallen there: a Cauchy falls by 6 within twenty of them.
const FALLEN: f64 = 1.0;

/// Largest dimension at which every coordinate is looked along.
const MOST: usize = 1024;

/// Lanes of one call.
const BLOCK: usize = 512;

/// The first coordinate along which the density far away from the approximation is about as high as at its mean, or
/// higher. Only one coordinate is moved at a time, and nothing is said beyond 1024 of them.
pub(crate) fn flat_coordinate<D: LogDensity>(
    density: &D,
    family: &dyn Family,
    omega: &[f64],
) -> Option<usize> {
    let dim = family.dim();
    if dim > MOST {
        return None;
    }
    let (mean, sd) = (family.mean(omega), family.marginal_sd(omega));
    let mut workspace = density.workspace(BLOCK);
    let mut centre = [0.0];
    density.value(&mut workspace, Lanes::new(&mean, dim, 1), &mut centre);
    if !centre[0].is_finite() {
        return None;
    }
    let together = BLOCK / AWAY.len();
    for first in (0..dim).step_by(together) {
        let lanes = AWAY.len() * together.min(dim - first);
        let mut z = vec![0.0; dim * lanes];
        for (row, mean) in z.chunks_mut(lanes).zip(&mean) {
            row.fill(*mean);
        }
        for lane in 0..lanes {
            let coordinate = first + lane / AWAY.len();
            z[coordinate * lanes + lane] += AWAY[lane % AWAY.len()] * sd[coordinate];
        }
        let mut values = vec![0.0; lanes];
        density.value(&mut workspace, Lanes::new(&z, dim, lanes), &mut values);
        let flat = |value: &f64| value.is_finite() && *value >= centre[0] - FALLEN;
        if let Some(lane) = values.iter().position(flat) {
            return Some(first + lane / AWAY.len());
        }
    }
    None
}
