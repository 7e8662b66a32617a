//! A test for separated tail modes. These are regions far out in a tail that have appreciable mass, but that chains
//! rarely visit.
//!
//! The logarithm of a scale may have a mode where the data determine it and, in addition, a separated tail mode that is
//! nearly flat and tens of standard deviations long. An example is a precision with the prior gamma(0.001, 0.001).
//! Chains move between the two modes once in a few hundred transitions. The chains therefore agree with each other long
//! before the correct share of chains is in the separated tail mode. After draws have mixed, tail probes move a few
//! chains out along a coordinate, and then release them. The probes use transitions of `p(z) exp(3 min(u, 8))`, where u
//! is the distance of the coordinate from its median in standard deviations. If the tails decay at least exponentially,
//! the chains return within a few transitions. If most chains have not returned, the chains that are still in the tail
//! join the other chains, and another stationary phase follows.
//!
//! The probes test the logarithms and logits with the longest tails, in at most [`MOST`] directions. There are no
//! probes for densities with very unequal evaluation times, because a solver may take a thousand times as long in the
//! tail.

use jensen_density::{Lanes, LanesMut, LogDensity, Scale};
use jensen_math::special::inv_phi;
use rayon::prelude::*;

use super::kernel::{Stride, transition};
use super::map::Map;
use super::target::{Particles, Target};
use crate::calls::Calls;
use crate::noise::{NoiseSource, SECOND_STREAM};

/// The largest number of directions. Each costs as many gradients as 40 transitions of 16 chains.
const MOST: usize = 8;

/// If the mean of `max(u, 0)⁴` is below this value, the tail is too short for a separated tail mode. For a normal, the
/// mean is 1.5.
const SHORT: f64 = 1.0;

/// The number of chains per direction. A direction has a separated tail mode if at least half of them stay in the tail.
pub(super) const CHAINS: usize = 16;

/// The number of transitions of the tilted density, and the largest number of transitions in which chains must return.
/// The first are enough to reach the tilt's farthest distance by steps of half a standard deviation. With as many
/// transitions for the return as for the way out, slow chains count as separated, and nine of 157 programs take two to nine
/// times as many gradients.
const TRANSITIONS: (u64, u64) = (16, 24);

/// The slope of the tilt, in nats per standard deviation. With this tilt, chains in a normal density reach three
/// standard deviations. They can therefore cross saddles that are up to four and a half nats below the mode.
const SLOPE: f64 = 3.0;

/// The distance from the median at which the tilt stops increasing, in standard deviations. Beyond it, the tilt is
/// constant.
const FAR: f64 = 8.0;
/// The largest distance from the median at which a chain counts as returned, in standard deviations.
const RETURNED: f64 = 2.0;

/// A density that is multiplied by the exponential of `slope · (z_i − far)`. The exponent is constant beyond `far` in
/// the direction of the slope.
struct Tilted<'d, D> {
    density: &'d D,
    coordinate: usize,
    slope: f64,
    far: f64,
}

impl<D> Tilted<'_, D> {
    fn lead(&self, z: f64) -> f64 {
        (self.slope * (z - self.far)).min(0.0)
    }

    fn lead_all(&self, z: Lanes<'_>, value: &mut [f64]) {
        for (value, z) in value.iter_mut().zip(z.row(self.coordinate)) {
            *value += self.lead(*z);
        }
    }
}

impl<D: LogDensity> LogDensity for Tilted<'_, D> {
    type Workspace = D::Workspace;

    fn dim(&self) -> usize {
        self.density.dim()
    }

    fn workspace(&self, lanes: usize) -> D::Workspace {
        self.density.workspace(lanes)
    }

    fn value(&self, ws: &mut D::Workspace, z: Lanes<'_>, out: &mut [f64]) {
        self.density.value(ws, z, out);
        self.lead_all(z, out);
    }

    fn value_grad(
        &self,
        ws: &mut D::Workspace,
        z: Lanes<'_>,
        out: &mut [f64],
        mut grad: LanesMut<'_>,
    ) {
        self.density.value_grad(ws, z, out, grad.reborrow());
        self.lead_all(z, out);
        for (g, z) in grad
            .row_mut(self.coordinate)
            .iter_mut()
            .zip(z.row(self.coordinate))
        {
            if self.lead(*z) < 0.0 {
                *g += self.slope;
            }
        }
    }
}

/// A coordinate and the direction in which it is probed. The standard deviation is computed from the quartiles. It is
/// negative if the probe goes downwards.
#[derive(Clone, Copy, Debug)]
struct Direction {
    coordinate: usize,
    middle: f64,
    sd: f64,
}

impl Direction {
    fn along(&self, z: &[f64], lanes: usize) -> Vec<f64> {
        let row = &z[self.coordinate * lanes..(self.coordinate + 1) * lanes];
        row.iter().map(|z| (z - self.middle) / self.sd).collect()
    }
}

fn directions(z: &[f64], lanes: usize, scales: &[Scale]) -> Vec<Direction> {
    let unbounded = |scale: &Scale| matches!(scale, Scale::Log | Scale::Logit);
    let of_scale = scales.iter().enumerate().filter(|(_, s)| unbounded(s));
    let both = of_scale.flat_map(|(coordinate, _)| {
        let row = &z[coordinate * lanes..(coordinate + 1) * lanes];
        let mut row = row.to_vec();
        row.sort_by(f64::total_cmp);
        let [low, middle, high] = [1, 2, 3].map(|k| row[k * lanes / 4]);
        let sd = (high - low) / (2.0 * inv_phi(0.75));
        [sd, -sd].map(|sd| Direction {
            coordinate,
            middle,
            sd,
        })
    });
    let tail = |direction: &Direction| {
        let along = direction.along(z, lanes);
        along.iter().map(|u| u.max(0.0).powi(4)).sum::<f64>() / lanes as f64
    };
    let mut tails: Vec<(f64, Direction)> = both.map(|d| (tail(&d), d)).collect();
    // If the quartiles are equal, they do not determine a unit.
    tails.retain(|(tail, _)| *tail > SHORT && tail.is_finite());
    tails.sort_by(|a, b| b.0.total_cmp(&a.0));
    tails.truncate(MOST);
    tails.into_iter().map(|(_, direction)| direction).collect()
}

/// Probes each direction with chains that start from `particles`. If at least half of the chains stay in the tail, the
/// result contains [`CHAINS`] positions for this direction. Also returns the cost of the probes.
pub(super) fn tail_modes<D: LogDensity>(
    (density, map): (&D, &Map),
    particles: &Particles,
    scales: &[Scale],
    stride: Stride<'_>,
    source: NoiseSource,
) -> (Vec<Vec<f64>>, Calls) {
    let lanes = particles.lanes();
    let directions = directions(&map.draws(&particles.x, lanes), lanes, scales);
    let own: Vec<usize> = (0..CHAINS).map(|k| k * lanes / CHAINS).collect();
    let start = particles.gather(&own).x;
    let found: Vec<(Option<Vec<f64>>, Calls)> = directions
        .par_iter()
        .enumerate()
        .map(|(k, direction)| {
            let key = (
                source,
                SECOND_STREAM + k as u64 * (TRANSITIONS.0 + TRANSITIONS.1),
            );
            tail_probe((density, map), start.clone(), direction, stride, key)
        })
        .collect();
    let mut calls = Calls::default();
    found.iter().for_each(|(_, own)| calls += *own);
    let tail_modes = found.into_iter().filter_map(|(tail_mode, _)| tail_mode);
    (tail_modes.collect(), calls)
}

fn tail_probe<D: LogDensity>(
    (density, map): (&D, &Map),
    x: Vec<f64>,
    direction: &Direction,
    stride: Stride<'_>,
    (source, key): (NoiseSource, u64),
) -> (Option<Vec<f64>>, Calls) {
    let led = Tilted {
        density,
        coordinate: direction.coordinate,
        slope: SLOPE / direction.sd,
        far: direction.middle + FAR * direction.sd,
    };
    let mut out = Target::new(&led, map.clone());
    let mut particles = out.at(x);
    for step in 0..TRANSITIONS.0 {
        transition(&mut out, &mut particles, stride, source, key + step);
    }
    let mut calls = out.take_calls();
    let mut back = Target::new(density, map.clone());
    let mut particles = back.at(particles.x);
    let mut away = [true; CHAINS];
    let mut stay = true;
    for step in 0..=TRANSITIONS.1 {
        let along = direction.along(&map.draws(&particles.x, CHAINS), CHAINS);
        for (away, u) in away.iter_mut().zip(along) {
            *away &= u >= RETURNED;
        }
        stay = 2 * away.iter().filter(|away| **away).count() >= CHAINS;
        if !stay || step == TRANSITIONS.1 {
            break;
        }
        transition(
            &mut back,
            &mut particles,
            stride,
            source,
            key + TRANSITIONS.0 + step,
        );
    }
    calls += back.take_calls();
    (stay.then_some(particles.x), calls)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approximation::Approximation;
    use crate::family::FamilyKind;
    use crate::noise::NoisePurpose;
    use jensen_math::simd::Simd;

    struct Alike(fn(f64) -> (f64, f64));

    const DIM: usize = 3;

    impl LogDensity for Alike {
        type Workspace = ();

        fn dim(&self) -> usize {
            DIM
        }
        fn workspace(&self, _: usize) {}
        fn value(&self, ws: &mut (), z: Lanes<'_>, out: &mut [f64]) {
            let mut grad = vec![0.0; DIM * out.len()];
            let lanes = out.len();
            self.value_grad(ws, z, out, LanesMut::new(&mut grad, DIM, lanes));
        }
        fn value_grad(&self, _: &mut (), z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
            out.fill(0.0);
            for i in 0..DIM {
                let rows = grad.row_mut(i).iter_mut().zip(z.row(i));
                for (value, (g, z)) in out.iter_mut().zip(rows) {
                    let (log_p, slope) = (self.0)(*z);
                    *value += log_p;
                    *g = slope;
                }
            }
        }
    }

    fn normal(u: f64) -> (f64, f64) {
        (-0.5 * u * u, -u)
    }

    /// The density is normal up to 2.5, and constant from there up to 30.
    fn tail_mode(u: f64) -> (f64, f64) {
        normal(if u < 2.5 {
            u
        } else {
            2.5 + (u - 30.0).max(0.0)
        })
    }

    fn gumbel(u: f64) -> (f64, f64) {
        (u - u.exp(), 1.0 - u.exp())
    }

    fn found(density: &Alike, scales: [Scale; DIM]) -> Vec<Vec<f64>> {
        let source = NoiseSource::new(5, Simd::detect());
        let mut x = vec![0.0; DIM * 256];
        source.fill(NoisePurpose::Draws, 0, 0, DIM, 256, &mut x);
        let omega = vec![0.0; 2 * DIM];
        let map = Map::of(&Approximation::new(FamilyKind::MeanField, DIM, omega).unwrap());
        let particles = Target::new(density, map.clone()).at(x);
        let stride = Stride {
            circles: &[false; DIM],
            beta: 1.0,
            size: 0.5,
            length: 1.5,
        };
        let (tail_modes, calls) = tail_modes((density, &map), &particles, &scales, stride, source);
        let of_scale = scales.iter().any(|scale| *scale != Scale::Identity);
        assert_eq!(of_scale, calls.gradients > 0);
        tail_modes
    }

    #[test]
    fn chains_stay_on_tail_modes_and_come_back_from_tails() {
        let one = [Scale::Log, Scale::Identity, Scale::Identity];
        let both = [Scale::Identity, Scale::Log, Scale::Logit];
        assert_eq!(found(&Alike(normal), both), Vec::<Vec<f64>>::new());
        assert_eq!(found(&Alike(gumbel), both), Vec::<Vec<f64>>::new());
        assert_eq!(
            found(&Alike(tail_mode), [Scale::Identity; DIM]),
            Vec::<Vec<f64>>::new()
        );
        let tail_modes = found(&Alike(tail_mode), one);
        assert_eq!(tail_modes.len(), 1);
        let out = tail_modes[0][..CHAINS]
            .iter()
            .filter(|u| **u > RETURNED)
            .count();
        assert!(2 * out >= CHAINS, "{:?}", &tail_modes[0][..CHAINS]);
        assert_eq!(found(&Alike(tail_mode), both).len(), 2);
    }

    #[test]
    fn what_leads_is_part_of_the_gradient() {
        for slope in [3.0, -3.0] {
            let led = Tilted {
                density: &Alike(gumbel),
                coordinate: 1,
                slope,
                far: 0.7,
            };
            let at = |u: f64| {
                let (mut value, mut grad) = ([0.0], [0.0; DIM]);
                let z = [0.3, u, -0.2];
                led.value_grad(
                    &mut (),
                    Lanes::new(&z, DIM, 1),
                    &mut value,
                    LanesMut::new(&mut grad, DIM, 1),
                );
                let mut alone = [0.0];
                led.value(&mut (), Lanes::new(&z, DIM, 1), &mut alone);
                assert_eq!(value, alone);
                (value[0], grad[1])
            };
            for u in [-1.1, 0.2, 0.9, 2.0] {
                let difference = (at(u + 1e-6).0 - at(u - 1e-6).0) / 2e-6;
                assert!((difference - at(u).1).abs() < 1e-6, "{slope} {u}");
            }
            let alone = Alike(gumbel).0;
            let beyond = 0.7 + slope.signum();
            assert_eq!(at(beyond).1, alone(beyond).1);
        }
    }
}
