//! Whether a density falls off at all: improper posteriors look like wide ones to draws near the centre.

use jensen_density::{Lanes, LanesMut, LogDensity};

use crate::family::Family;
use crate::noise::{NoisePurpose, NoiseSource};

/// Standard deviations of the approximation by which a coordinate is moved, to either side.
const AWAY: [f64; 2] = [20.0, 200.0];

/// Nats by which the density must have fallen at one of them: a Cauchy falls by 6 within twenty.
const FALLEN: f64 = 1.0;

/// Draws from which a coordinate is moved. Of one point alone more is asked than is so: with all effects at their means the
/// density of a hierarchy rises as its scale falls, and with all abilities at theirs as their slope grows.
const DRAWS: usize = 5;

/// Largest dimension at which every coordinate is looked along.
const MOST: usize = 1024;

/// Lanes of one call.
const BLOCK: usize = 512;

/// A coordinate and the side to which it is moved.
type Way = (usize, f64);

/// The first coordinate along which the density, from wherever in the approximation's bulk, is far away about as high as
/// before, or higher. Only one coordinate is moved at a time, and nothing is said beyond 1024 of them.
pub(crate) fn flat_coordinate<D: LogDensity>(
    density: &D,
    family: &dyn Family,
    omega: &[f64],
    source: NoiseSource,
) -> Option<usize> {
    let dim = family.dim();
    if dim > MOST {
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
    let mut workspace = density.workspace(BLOCK);
    density.value(&mut workspace, Lanes::new(&draws, dim, DRAWS), &mut here);
    let sd = family.marginal_sd(omega);
    let mut flat: Vec<Way> = (0..dim).flat_map(|i| [(i, -1.0), (i, 1.0)]).collect();
    let usable = (0..DRAWS).filter(|draw| here[*draw].is_finite());
    for (nth, draw) in usable.enumerate() {
        if nth > 0 && flat.is_empty() {
            break;
        }
        let from: Vec<f64> = (0..dim).map(|i| draws[i * DRAWS + draw]).collect();
        let lowest = here[draw] - FALLEN;
        let mut still = Vec::new();
        for ways in flat.chunks(BLOCK / AWAY.len()) {
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
            still.extend(
                of_ways
                    .filter(|(_, values)| values.iter().all(high))
                    .map(|(way, _)| *way),
            );
        }
        flat = still;
    }
    if here.iter().all(|value| !value.is_finite()) {
        return None;
    }
    flat.first().map(|(coordinate, _)| *coordinate)
}
