//! Leaps: independent proposals over all scales of distance.
//!
//! Hamiltonian transitions follow the gradient of the density. Between a spike and a slab that is a thousand times as
//! wide, or between the middle of a Cauchy distribution and its tails, the gradient does not lead from one region to
//! the other. If all particles start in one of the two regions, they agree without visiting the other region. At the
//! posterior temperature, some particles therefore also receive an independent proposal in a uniformly random
//! direction. The logarithm of the distance is either uniform over twelve powers of ten, or distributed like the
//! distances of the particles. Proposals alternate between all coordinates together and a single coordinate. The
//! Metropolis–Hastings rule for independent proposals (Tierney 1994, section 2.3.3) preserves the posterior exactly.
//! Suppose that a part of the posterior has mass w, and that a proposal is in this part with probability π. A particle
//! then enters the part about once in `1/π` proposals. It leaves the part at the rate that the mass w implies. Neither
//! rate depends on the density between the part and the rest.

use jensen_density::LogDensity;
use jensen_math::special::lgamma;

use super::map::Map;
use super::target::{Particles, Target};
use crate::noise::{NoisePurpose, NoiseSource};

/// In each transition, one in this many particles receives a proposal for a leap. A transition costs several steps of
/// all particles, so leaps add little to its cost. Even the shortest stationary phase proposes more than a thousand
/// leaps.
const EVERY: usize = 4;

/// The natural logarithms of the smallest and the largest proposed distance, in standard deviations: one ten-thousandth
/// and one hundred million. Proposals are uniform between them. From a spike of width one millionth, proposals in this
/// range reach all of a unit normal. From a normal, they reach any spike that a Gaussian would not fit first. Half of
/// the proposals are spread evenly over the twelve powers of ten.
pub(super) const RANGE: (f64, f64) = (-9.3, 18.5);

/// The range of proposals for densities that may take a thousand times as long in the tails, such as those with a
/// solver. The upper limit is six standard deviations, which is the distance of the farthest of a few hundred draws
/// from the t distribution.
const NEAR: (f64, f64) = (-9.3, 1.8);

/// The number of intervals of equal mass that represent the observed distances.
const STEPS: usize = 16;

/// The smallest width of an interval. An interval of width zero would have no density.
const NARROW: f64 = 1e-3;

/// A distribution of log distances. Half of its mass is uniform on a range. If there are edges, the other half is
/// distributed over [`STEPS`] intervals of equal mass between them.
pub(super) struct Distances<'e> {
    pub range: (f64, f64),
    pub edges: &'e [f64],
}

impl Distances<'_> {
    /// Maps two uniform numbers to the logarithm of a distance.
    pub(super) fn at(&self, [which, within]: [f64; 2]) -> f64 {
        let (low, high) = self.range;
        if self.edges.is_empty() || which < 0.5 {
            return low + within * (high - low);
        }
        let step = ((2.0 * which - 1.0) * STEPS as f64) as usize;
        let step = step.min(STEPS - 1);
        self.edges[step] + within * (self.edges[step + 1] - self.edges[step])
    }

    pub(super) fn log_density(&self, log_distance: f64) -> f64 {
        let (low, high) = self.range;
        let inside = log_distance >= low && log_distance <= high;
        let uniform = f64::from(u8::from(inside)) / (high - low);
        if self.edges.is_empty() {
            return uniform.ln();
        }
        let above = self.edges.partition_point(|edge| *edge <= log_distance);
        let shown = match (1..=STEPS).contains(&above) {
            true => 1.0 / (STEPS as f64 * (self.edges[above] - self.edges[above - 1])),
            false => 0.0,
        };
        (0.5 * (uniform + shown)).ln()
    }
}

/// Returns the edges of [`STEPS`] intervals for the distances in all coordinates together, followed by the edges for
/// each coordinate alone. The positions are `dim × lanes`, with any number of consecutive sets of particles.
pub(super) fn shown(x: &[f64], dim: usize, lanes: usize) -> Vec<f64> {
    let particle_sets = || x.chunks(dim * lanes);
    let together = particle_sets().flat_map(|particles| Map::squares(particles, lanes));
    let mut edges = edges_of(together.map(f64::sqrt).collect());
    for i in 0..dim {
        let row = particle_sets().flat_map(|particles| &particles[i * lanes..(i + 1) * lanes]);
        edges.extend(edges_of(row.map(|x| x.abs()).collect()));
    }
    edges
}

fn edges_of(mut distances: Vec<f64>) -> Vec<f64> {
    distances.sort_by(f64::total_cmp);
    let last = distances.len() - 1;
    let mut edges: Vec<f64> = (0..=STEPS)
        .map(|step| distances[step * last / STEPS].max(f64::MIN_POSITIVE).ln())
        .collect();
    for step in 1..=STEPS {
        edges[step] = edges[step].max(edges[step - 1] + NARROW);
    }
    edges
}

pub(super) fn range_of<D: LogDensity>(density: &D) -> (f64, f64) {
    match density.work() {
        Some(_) => RANGE,
        None => NEAR,
    }
}

pub(super) fn log_density(distances: &Distances<'_>, dim: usize, distance: f64) -> f64 {
    let d = dim as f64;
    let sphere = std::f64::consts::LN_2 + 0.5 * d * std::f64::consts::PI.ln() - lgamma(0.5 * d);
    let log_distance = distance.max(f64::MIN_POSITIVE).ln();
    distances.log_density(log_distance) - sphere - d * log_distance
}

pub(super) fn leap<D: LogDensity>(
    target: &mut Target<'_, D>,
    particles: &mut Particles,
    edges: &[f64],
    source: NoiseSource,
    iteration: u64,
) {
    let (dim, lanes) = (target.dim(), particles.lanes());
    let phase = (iteration as usize) % (2 * EVERY);
    let alone = phase >= EVERY;
    let offered: Vec<usize> = (phase % EVERY..lanes).step_by(EVERY).collect();
    let count = offered.len();
    let start = particles.gather(&offered);
    let mut x = start.x.clone();
    let range = range_of(target.density());
    let distances = |point: usize| Distances {
        range,
        edges: &edges[point * (STEPS + 1)..(point + 1) * (STEPS + 1)],
    };
    let mut direction = vec![0.0; dim * count];
    if !alone {
        source.fill(NoisePurpose::Leap, iteration, 0, dim, count, &mut direction);
    }
    let lengths = Map::squares(&direction, count);
    // This is the log density of the proposal minus the log density of the reverse proposal.
    let mut lead = vec![0.0; count];
    let mut chances = vec![0.0; count];
    for l in 0..count {
        let mut u = [0.0; 4];
        source.uniforms(NoisePurpose::Leap, iteration, l as u64, &mut u);
        chances[l] = u[3];
        if alone {
            let side = if u[2] < 0.5 { -1.0 } else { 1.0 };
            let i = ((2.0 * u[2]).fract() * dim as f64) as usize;
            let own = distances(1 + i);
            let there = &mut x[i * count + l];
            let before = there.abs();
            *there = side * own.at([u[0], u[1]]).exp();
            lead[l] = log_density(&own, 1, there.abs()) - log_density(&own, 1, before);
        } else {
            let own = distances(0);
            let distance = own.at([u[0], u[1]]).exp();
            let before = (0..dim)
                .map(|i| x[i * count + l].powi(2))
                .sum::<f64>()
                .sqrt();
            for i in 0..dim {
                x[i * count + l] = direction[i * count + l] * distance / lengths[l].sqrt();
            }
            lead[l] = log_density(&own, dim, distance) - log_density(&own, dim, before);
        }
    }
    let arrived = target.at(x);
    let pairs = (0..count).filter(|&l| {
        let gain = arrived.log_p[l] - start.log_p[l] - lead[l];
        chances[l] < gain.exp()
    });
    let pairs: Vec<(usize, usize)> = pairs.map(|l| (offered[l], l)).collect();
    particles.replace(&arrived, &pairs);
}

#[cfg(test)]
pub(super) mod tests {
    use std::f64::consts::TAU;

    use super::*;
    use crate::approximation::Approximation;
    use crate::family::FamilyKind;
    use jensen_density::{Lanes, LanesMut};
    use jensen_math::simd::Simd;
    use jensen_math::special::log_sum_exp_slice;

    #[derive(Clone, Copy)]
    pub(in crate::refine) struct Slab {
        pub dim: usize,
        pub share: f64,
        pub width: f64,
        pub all: bool,
    }

    impl LogDensity for Slab {
        type Workspace = ();

        fn dim(&self) -> usize {
            self.dim
        }
        fn workspace(&self, _: usize) {}
        fn value(&self, _: &mut (), z: Lanes<'_>, out: &mut [f64]) {
            let widened = if self.all { self.dim } else { 1 };
            for (l, out) in out.iter_mut().enumerate() {
                let squares: Vec<f64> = (0..self.dim).map(|i| z.row(i)[l].powi(2)).collect();
                let wide: f64 = squares[..widened].iter().sum();
                let rest: f64 = squares[widened..].iter().sum();
                let spike = (1.0 - self.share).ln() - 0.5 * wide;
                let slab = self.share.ln()
                    - widened as f64 * self.width.ln()
                    - 0.5 * wide / self.width.powi(2);
                *out =
                    log_sum_exp_slice(&[spike, slab]) - 0.5 * (rest + self.dim as f64 * TAU.ln());
            }
        }
        fn value_grad(&self, ws: &mut (), z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
            self.value(ws, z, out);
            // Leaps do not follow gradients.
            (0..self.dim).for_each(|i| grad.row_mut(i).fill(0.0));
        }
        fn work(&self) -> Option<u64> {
            Some(10)
        }
    }

    pub(in crate::refine) fn standard(dim: usize) -> Approximation {
        Approximation::new(FamilyKind::MeanField, dim, vec![0.0; 2 * dim]).unwrap()
    }

    pub(in crate::refine) fn source(seed: u64) -> NoiseSource {
        NoiseSource::new(seed, Simd::detect())
    }

    #[test]
    fn distances_have_the_density_that_is_stated() {
        let edges: Vec<f64> = (0..=STEPS).map(|k| 0.02 * (k * k) as f64 - 1.0).collect();
        for edges in [&[][..], &edges[..]] {
            let distances = Distances {
                range: (-2.0, 9.0),
                edges,
            };
            let width = 1e-3;
            let mass = |from: f64, to: f64| {
                let count = ((to - from) / width) as usize;
                let at = |k| distances.log_density(from + (k as f64 + 0.5) * width).exp();
                (0..count).map(at).sum::<f64>() * width
            };
            assert!((mass(-2.0, 9.0) - 1.0).abs() < 1e-3);
            let drawn = (0..10_000).map(|k| {
                let which = (k % 100) as f64 / 100.0 + 0.005;
                distances.at([which, (k / 100) as f64 / 100.0 + 0.005])
            });
            let near = drawn.filter(|x| *x < 0.0).count() as f64 / 10_000.0;
            assert!((near - mass(-2.0, 0.0)).abs() < 0.01, "{near}");
        }
    }

    /// Particles that all start in the spike find the slab by leaps, and leave it at the same rate. The test uses three
    /// seeds with four thousand proposals each.
    #[test]
    fn leaps_keep_the_posterior_and_find_all_of_it() {
        for (dim, all) in [(1, true), (3, true), (3, false)] {
            let density = Slab {
                dim,
                share: 0.3,
                width: 1000.0,
                all,
            };
            let mut target = Target::new(&density, Map::of(&standard(dim)));
            let (mut out, mut seen) = (0, 0);
            for seed in 0..3 {
                let lanes = 256;
                let mut x = vec![0.0; dim * lanes];
                source(seed).fill(NoisePurpose::Draws, 0, 0, dim, lanes, &mut x);
                let mut particles = target.at(x);
                for iteration in 0..1200 {
                    let edges = match iteration % 300 {
                        0 => shown(&particles.x, dim, lanes),
                        _ => continue,
                    };
                    for phase in 0..300 {
                        leap(
                            &mut target,
                            &mut particles,
                            &edges,
                            source(seed),
                            iteration + phase,
                        );
                        if iteration >= 600 {
                            out += particles.x[..lanes]
                                .iter()
                                .filter(|x| x.abs() > 6.0)
                                .count();
                            seen += lanes;
                        }
                    }
                }
            }
            let share = out as f64 / seen as f64;
            assert!((share - 0.3).abs() < 0.05, "{dim} coordinates: {share}");
        }
    }
}
