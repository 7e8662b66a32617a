//! A check that a density decays in its tails. Near the centre, the draws of an improper posterior look like the draws
//! of a wide posterior.

use jensen_density::{Lanes, LanesMut, LogDensity};

use crate::family::Family;
use crate::noise::{NoisePurpose, NoiseSource};
use crate::policy::ONE_BY_ONE;
use crate::sizes::LANES;

/// The distances by which the check moves a coordinate, in both directions, in standard deviations of the
/// approximation. The check of a line between two optima moves beyond either by these multiples of their distance.
pub(crate) const AWAY: [f64; 2] = [20.0, 200.0];

/// The required decrease of the log density, in nats, on at least one side. A Cauchy density decreases by 6 nats over
/// twenty standard deviations. Halfway between two equal normals that count as separate modes of the starts, it decreases by
/// at least 1.4 nats.
pub(crate) const FALLEN: f64 = 1.0;

/// The number of draws from which the check moves a coordinate. A check from a single point would be too strict. For
/// example, if all effects of a hierarchy are at their means, the density rises as the scale falls. If all abilities in
/// an item response model are at their means, the density rises as their slope grows.
const DRAWS: usize = 5;

/// A coordinate and a side.
type Way = (usize, f64);

/// Returns a coordinate along which the density far away is about as high as in the bulk of the approximation, or
/// higher. If there are several, it is the first of those along which the density rises most. In an improper posterior,
/// rounding errors of an enormous log density may hide the decrease along the others. The check moves one coordinate at a time, and skips posteriors in more than 1024 dimensions. `spread`
/// multiplies the distances. It is above 1 if a sample of n records represents N records, because the optimum for the
/// sample is about √(N/n) standard deviations from the optimum for all records.
pub(crate) fn flat_coordinate<D: LogDensity>(
    density: &D,
    family: &dyn Family,
    omega: &[f64],
    source: NoiseSource,
    spread: f64,
) -> Option<usize> {
    let dim = family.dim();
    if dim > ONE_BY_ONE {
        return None;
    }
    let rows = family.noise_dim();
    let mut noise = vec![0.0; rows * DRAWS];
    source.fill(NoisePurpose::Far, 0, 0, rows, DRAWS, &mut noise);
    let mut draws = vec![0.0; dim * DRAWS];
    family.transform(
        omega,
        Lanes::new(&noise, rows, DRAWS),
        LanesMut::new(&mut draws, dim, DRAWS),
    );
    let mut here = [0.0; DRAWS];
    let mut workspace = density.workspace(LANES);
    density.value(&mut workspace, Lanes::new(&draws, dim, DRAWS), &mut here);
    let mut sd = family.marginal_sd(omega);
    sd.iter_mut().for_each(|sd| *sd *= spread);
    let mut flat: Vec<Way> = (0..dim).flat_map(|i| [(i, -1.0), (i, 1.0)]).collect();
    let mut highest = (None, f64::NEG_INFINITY);
    let usable = (0..DRAWS).filter(|draw| here[*draw].is_finite());
    for (nth, draw) in usable.enumerate() {
        if nth > 0 && flat.is_empty() {
            break;
        }
        let from: Vec<f64> = (0..dim).map(|i| draws[i * DRAWS + draw]).collect();
        let lowest = here[draw] - FALLEN;
        let mut still = Vec::new();
        highest = (None, f64::NEG_INFINITY);
        for ways in flat.chunks(LANES / AWAY.len()) {
            let lanes = ways.len() * AWAY.len();
            let mut z = vec![0.0; dim * lanes];
            for (row, from) in z.chunks_mut(lanes).zip(&from) {
                row.fill(*from);
            }
            for (at, (coordinate, side)) in ways.iter().enumerate() {
                for (j, away) in AWAY.iter().enumerate() {
                    z[coordinate * lanes + at * AWAY.len() + j] += side * away * sd[*coordinate];
                }
            }
            let mut values = vec![0.0; lanes];
            density.value(&mut workspace, Lanes::new(&z, dim, lanes), &mut values);
            let high = |value: &f64| value.is_finite() && *value >= lowest;
            let of_ways = ways.iter().zip(values.chunks(AWAY.len()));
            for (way, values) in of_ways.filter(|(_, values)| values.iter().all(high)) {
                still.push(*way);
                let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                if top > highest.1 {
                    highest = (Some(way.0), top);
                }
            }
        }
        flat = still;
    }
    if here.iter().all(|value| !value.is_finite()) {
        return None;
    }
    highest.0
}

#[cfg(test)]
mod tests {
    use jensen_math::simd::Simd;

    use super::*;
    use crate::family::{FamilyKind, Space};

    struct Normal(f64, f64);

    impl LogDensity for Normal {
        type Workspace = ();
        fn dim(&self) -> usize {
            1
        }
        fn workspace(&self, _: usize) {}
        fn value(&self, (): &mut (), z: Lanes<'_>, out: &mut [f64]) {
            for (out, z) in out.iter_mut().zip(z.row(0)) {
                *out = -0.5 * self.1 * (z - self.0).powi(2);
            }
        }
        fn value_grad(&self, ws: &mut (), z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
            self.value(ws, z, out);
            for (grad, z) in grad.as_mut_slice().iter_mut().zip(z.row(0)) {
                *grad = -self.1 * (z - self.0);
            }
        }
    }

    #[test]
    fn a_sample_of_records_beside_the_posterior_of_all_is_not_flat() {
        // A thousand of 2·10⁷ records are weighted so that they represent all records. The curvature is that of all
        // records, but the optimum is that of the thousand.
        let (all, weight) = (2.0e7_f64, 2.0e4_f64);
        let sample = Normal(1.5 * (weight / all).sqrt(), all);
        let family = FamilyKind::MeanField.build(Space::of(&sample));
        let omega = [0.0, -0.5 * all.ln()];
        let source = NoiseSource::new(1, Simd::detect());
        let flat =
            |density: &Normal, spread| flat_coordinate(density, &*family, &omega, source, spread);
        assert_eq!(flat(&sample, weight.sqrt()), None);
        // Measured in standard deviations of the posterior, the optimum of the sample itself is far away.
        assert_eq!(flat(&sample, 1.0), Some(0));
        // A flat density remains flat at any distance.
        assert_eq!(flat(&Normal(0.0, 0.0), weight.sqrt()), Some(0));
        assert_eq!(flat(&Normal(0.0, 0.0), 1.0), Some(0));
    }
}
