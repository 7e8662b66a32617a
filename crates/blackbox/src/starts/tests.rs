use jensen_density::{Lanes, LanesMut};

use super::points::mixed;
use super::*;
use crate::policy::ONE_BY_ONE;

struct Made {
    dim: usize,
    value: fn(&[f64]) -> f64,
    derivative: fn(f64) -> f64,
    curvature: f64,
}

impl jensen_density::LogDensity for Made {
    type Workspace = ();
    fn dim(&self) -> usize {
        self.dim
    }
    fn workspace(&self, _: usize) {}
    fn value(&self, _: &mut (), z: Lanes<'_>, out: &mut [f64]) {
        for (l, out) in out.iter_mut().enumerate() {
            let point: Vec<f64> = (0..self.dim).map(|i| z.row(i)[l]).collect();
            *out = (self.value)(&point);
        }
    }
    fn value_grad(&self, ws: &mut (), z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
        self.value(ws, z, out);
        for (out, z) in grad.as_mut_slice().iter_mut().zip(z.as_slice()) {
            *out = (self.derivative)(*z);
        }
    }
}

impl TwiceDifferentiable for Made {
    fn linearize(&self, _: &mut (), _: Lanes<'_>) {}
    fn apply(&self, _: &mut (), v: Lanes<'_>, mut out: LanesMut<'_>) {
        for (out, v) in out.as_mut_slice().iter_mut().zip(v.as_slice()) {
            *out = self.curvature * v;
        }
    }
}

fn noise(z: f64) -> f64 {
    mixed(z.to_bits()) as f64 / u64::MAX as f64
}

fn independent(dim: usize) -> Made {
    Made {
        dim,
        value: |z| z.iter().map(|z| -12.5 * z * z).sum(),
        derivative: |z| -25.0 * z,
        curvature: -25.0,
    }
}

/// Beyond 5, the values of the density are noisy, but its derivatives are not.
const ROUGH: Made = Made {
    dim: 1,
    value: |z| {
        let far = match z[0].abs() > 5.0 {
            true => 40.0 * noise(z[0]) + 60.0,
            false => 0.0,
        };
        -0.5 * z[0].abs() * z[0].abs().min(5.0) - far
    },
    derivative: |z| match z.abs() > 5.0 {
        true => -1e-3 * z.signum(),
        false => -z,
    },
    curvature: -1.0,
};

/// The density is zero unless all twelve coordinates of the second array exceed ½.
const GATE: Made = Made {
    dim: 13,
    value: |z| match z[1..].iter().all(|z| *z > 0.5) {
        true => z.iter().map(|z| -12.5 * (z - 1.0) * (z - 1.0)).sum(),
        false => f64::NEG_INFINITY,
    },
    derivative: |z| -25.0 * (z - 1.0),
    curvature: -25.0,
};

/// Beyond 5, the density is pure noise, and its derivatives are as large as the noise.
const DIGITLESS: Made = Made {
    dim: 1,
    value: |z| match z[0].abs() > 5.0 {
        true => 600.0 + noise(z[0]),
        false => -12.5 * z[0] * z[0],
    },
    derivative: |z| match z.abs() > 5.0 {
        true => 1e70 * (noise(z) - 0.5),
        false => -25.0 * z,
    },
    curvature: -25.0,
};

#[test]
fn starts_that_cannot_catch_up_end() {
    let source = NoiseSource::new(1, jensen_math::simd::Simd::detect());
    let mut starts = Starts::new(&ROUGH, source, StartSettings::default());
    let mut state = starts.init().unwrap();
    let mut iterations = std::collections::BTreeMap::new();
    for i in 0.. {
        for running in state.wave.iter().flatten() {
            let taken = u64::from(running.stage != Stage::Arrived);
            *iterations.entry(running.index).or_insert(0) += taken;
        }
        if starts.step(&mut state, i).status.is_some() {
            break;
        }
    }
    let (near, wide): (Vec<_>, Vec<_>) = state.outcomes.iter().partition(|o| !o.wide);
    assert!(near.iter().all(|outcome| outcome.settled), "{near:?}");
    assert_eq!(wide.len(), 4);
    assert!(wide.iter().all(|outcome| !outcome.settled), "{wide:?}");
    let longest = iterations
        .range(FIRST_WIDE..)
        .map(|(_, count)| *count)
        .max();
    assert!(longest.unwrap() <= 12, "{iterations:?}");
}

#[test]
fn starts_at_a_known_optimum_end_there_after_few_draws() {
    let source = NoiseSource::new(1, jensen_math::simd::Simd::detect());
    let density = independent(4);
    let mut starts = Starts::new(&density, source, StartSettings::default());
    let mut state = starts.init().unwrap();
    while starts.step(&mut state, 0).status.is_none() {}
    assert_eq!(state.outcomes.len(), 13);
    let first = &state.outcomes[0];
    for outcome in &state.outcomes {
        assert!(outcome.settled && (outcome.elbo - first.elbo).abs() < 1e-3);
    }
    let (few, all) = (SCOUTING as u64, starts.settings.draws as u64);
    // Each start takes three steps on a few draws, and then one step on all draws.
    assert_eq!(state.calls.gradients, 13 * (4 * few + 2 * all));
}

#[test]
fn many_coordinates_are_probed() {
    for dim in [40, ONE_BY_ONE + 1] {
        let found = initial_log_sd(&independent(dim), &vec![0.1; dim]).unwrap();
        assert_eq!(found.len(), dim);
        assert!(found.iter().all(|x| (x - 0.2f64.ln()).abs() < 1e-9));
    }
}

#[test]
fn where_all_of_many_groups_must_be_in_place_they_begin_alike() {
    let source = NoiseSource::new(1, jensen_math::simd::Simd::detect());
    let starts = || Starts::new(&GATE, source, StartSettings::default());
    assert_eq!(starts().first_finite_point(), None);
    let variables: Vec<usize> = (0..13).map(|k| usize::from(k > 0)).collect();
    let known = starts().of_variables(&variables);
    let point = known.first_finite_point().unwrap();
    assert!(point[1] > 0.5 && point[1..].iter().all(|x| *x == point[1]));
    assert_ne!(point[0], point[1]);
}

#[test]
fn no_start_is_best_where_the_density_has_no_digits_left() {
    let source = NoiseSource::new(1, jensen_math::simd::Simd::detect());
    let mut starts = Starts::new(&DIGITLESS, source, StartSettings::default());
    let mut state = starts.init().unwrap();
    while starts.step(&mut state, 0).status.is_none() {}
    let lost = state.outcomes.iter().filter(|outcome| outcome.wide);
    assert!(lost.clone().count() > 0);
    lost.for_each(|outcome| assert_eq!(outcome.elbo, f64::NEG_INFINITY));
    let best = &state.outcomes[best_start(&state.outcomes)];
    assert!(best.settled && best.omega[0].abs() < 0.1, "{best:?}");
}
