use super::super::leaps::tests::{Slab, source, standard};
use super::*;
use jensen_density::LanesMut;
use jensen_math::special::lgamma;

/// Returns the relative standard error of an estimate of missed variance. The variance is that of a slab in `wide`
/// of the `dim` coordinates. Half of the points vary one coordinate, and half vary all coordinates. Their log
/// distances y are uniform. If k coordinates vary together, the points with large `f = e^((k + 2) y) exp(-e^(2 y) /
/// 2)` contribute. The relative variance is the range times `∫ f² / (∫ f)²`. The squared coordinate of a random
/// direction contributes another factor of `3 k / (k + 2)`.
fn error_of_looks(dim: usize, wide: usize) -> f64 {
    let k = wide as f64;
    let squared = lgamma(k + 2.0) - (k + 2.0) * std::f64::consts::LN_2;
    let narrow = 2.0 * (squared - 2.0 * lgamma(0.5 * k + 1.0)).exp();
    let turns = if wide == 1 { 2 * dim } else { 2 } as f64;
    (turns * (2.0 * RANGE.1) * narrow * 3.0 * k / (k + 2.0) / Policy::default().far_points() as f64)
        .sqrt()
}

#[test]
fn what_an_approximation_does_not_reach_is_seen() {
    const SEEDS: u64 = 20;
    for (dim, all) in [(1, true), (5, true), (5, false), (20, true), (20, false)] {
        for width in [10.0, 100.0, 1e6] {
            let share = 0.05;
            let density = Slab {
                dim,
                share,
                width,
                all,
            };
            let mut ratio = 0.0;
            for seed in 0..SEEDS {
                // The draws in the spike only reach the spike, so its mass is their estimate of the total mass.
                let log_z = (1.0 - share).ln();
                let found = beyond(
                    &density,
                    &standard(dim),
                    log_z,
                    (source(seed), &Policy::default()),
                );
                let found = found.expect("a slab ten times as wide");
                assert!(found.coordinate.is_some_and(|i| all || i == 0), "{found:?}");
                let times = found.share;
                ratio += times / (share / (1.0 - share) * width * width) / SEEDS as f64;
            }
            let wide = if all { dim } else { 1 };
            let error = error_of_looks(dim, wide);
            // The check reports the worst of all coordinates.
            let above = error * (2.0 * (wide as f64).ln()).sqrt();
            let chance = 4.5 * error / (SEEDS as f64).sqrt();
            assert!(
                (1.0 - chance..1.0 + above + chance).contains(&ratio),
                "{dim} {all} {width}: {ratio}, by chance {chance}"
            );
        }
        let own = Slab {
            dim,
            share: 0.0,
            width: 1.0,
            all,
        };
        for seed in 0..5 {
            assert_eq!(
                beyond(
                    &own,
                    &standard(dim),
                    0.0,
                    (source(seed), &Policy::default())
                ),
                None
            );
        }
    }
}

#[test]
fn a_spike_between_the_draws_of_a_slab_is_seen() {
    for dim in [1, 5, 20] {
        for width in [1e-2, 1e-4, 1e-6] {
            let share = 0.5;
            let density = Slab {
                dim,
                share,
                width,
                all: true,
            };
            let mut mass = 0.0;
            let seeds = 10;
            for seed in 0..seeds {
                // The draws in the slab only reach the slab, so its mass is their estimate of the total mass.
                let judged = (source(seed), &Policy::default());
                let found = beyond(&density, &standard(dim), (1.0 - share).ln(), judged);
                let found = found.expect("a spike with half of the mass");
                assert_eq!(found.coordinate, None);
                mass += found.share / seeds as f64;
            }
            assert!((0.6..1.4).contains(&mass), "{dim} {width}: {mass}");
        }
    }
}

#[test]
fn draws_that_have_not_been_to_a_slab_do_not_answer_for_it() {
    let lanes = 256;
    for (dim, all) in [(1, true), (5, true), (5, false), (20, true), (20, false)] {
        let slab = Slab {
            dim,
            share: 0.01,
            width: 100.0,
            all,
        };
        for seed in 0..5 {
            let mut x = vec![0.0; 16 * dim * lanes];
            for (t, set) in x.chunks_mut(dim * lanes).enumerate() {
                source(seed).fill(NoisePurpose::Draws, t as u64, 0, dim, lanes, set);
            }
            let map = Map::of(&standard(dim));
            let found = |slab: &Slab, x: &[f64], log_z: f64| {
                unanswered(
                    (slab, &map),
                    log_z,
                    (x, lanes, 4096.0),
                    (source(seed), &Policy::default()),
                    131_072,
                )
            };
            let missed = found(&slab, &x, (1.0 - slab.share).ln());
            let missed = missed.expect("a slab a hundred times as wide");
            // The missed variance is a hundred times the variance of the draws. In more coordinates, the subtracted
            // standard errors reduce the reported share.
            assert!(missed.share < 150.0, "{dim}: {}", missed.share);
            let count = missed.points.len() / dim;
            let is_wide = |k: &usize| (0..dim).any(|i| missed.points[i * count + k].abs() > 5.0);
            let wide = (0..count).filter(is_wide).count();
            assert!(
                count >= CHAINS && 10 * wide >= 9 * count,
                "{dim}: {wide} of {count}"
            );
            let spike = Slab { share: 0.0, ..slab };
            assert_eq!(found(&spike, &x, 0.0), None, "{dim}");
            // One in a hundred chains is in the slab.
            let of_all = |(k, x): (usize, &f64)| {
                let out = (k * 7 + k / lanes) % lanes % 100 == 0;
                x * if out { slab.width } else { 1.0 }
            };
            let whole: Vec<f64> = x.iter().enumerate().map(of_all).collect();
            if dim == 1 {
                assert_eq!(found(&slab, &whole, 0.0), None);
            }
        }
    }
}

/// A normal density whose value is far too high at a distance that a few points reach, as rounding errors may make it.
struct Rounded(Slab);

impl LogDensity for Rounded {
    type Workspace = ();

    fn dim(&self) -> usize {
        self.0.dim
    }
    fn workspace(&self, _: usize) {}
    fn value(&self, ws: &mut (), z: Lanes<'_>, out: &mut [f64]) {
        self.0.value(ws, z, out);
        for (out, z) in out.iter_mut().zip(z.row(0)) {
            if z.abs() > 1.5e8 {
                *out = 1e10;
            }
        }
    }
    fn value_grad(&self, _: &mut (), _: Lanes<'_>, _: &mut [f64], _: LanesMut<'_>) {
        unreachable!("the check needs values alone")
    }
    fn work(&self) -> Option<u64> {
        Some(10)
    }
}

#[test]
fn rounding_errors_at_a_few_points_are_not_mass() {
    let (dim, lanes) = (3, 256);
    let density = Rounded(Slab {
        dim,
        share: 0.0,
        width: 1.0,
        all: true,
    });
    let map = Map::of(&standard(dim));
    let mut reached = 0;
    for seed in 0..5 {
        let mut x = vec![0.0; 16 * dim * lanes];
        for (t, set) in x.chunks_mut(dim * lanes).enumerate() {
            source(seed).fill(NoisePurpose::Draws, t as u64, 0, dim, lanes, set);
        }
        let judged = (source(seed), &Policy::default());
        let looks = Policy::default().far_points() * 4;
        look((&density, &map), None, 0.0, (looks, judged.0), |_, p, _| {
            reached += usize::from(p > 1e100);
        });
        let found = unanswered((&density, &map), 0.0, (&x, lanes, 4096.0), judged, 131_072);
        assert_eq!(found, None, "{seed}");
    }
    assert!(reached > 0, "no point has rounding errors");
}
