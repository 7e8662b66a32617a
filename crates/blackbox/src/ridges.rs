//! Whether the log density falls between two optima of the starts.
//!
//! A mean-field Gaussian is narrow on a ridge along which the log density hardly changes. Starts therefore end at
//! different points of such a ridge, although the posterior has only one mode. The same happens on a ridge without an
//! end, where the posterior is improper. This module evaluates the log density on the straight line through both
//! optima. If it does not fall between them, both belong to one region of the posterior. The converse does not hold,
//! because a curved ridge may connect two optima.

use jensen_density::{Lanes, LogDensity};

use crate::sizes::WIDTH;
use crate::starts::StartOutcome;
use crate::tail_decay::{AWAY, FALLEN};

/// The number of steps between the two optima.
const STEPS: usize = WIDTH;

/// A coordinate belongs to the direction of the line if its step, in its own standard deviations, is at least this share
/// of the largest step.
const SHARE: f64 = 0.2;

/// The shape of the log density along a line through two optima.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The log density falls between the optima.
    Valley,
    /// The log density does not fall below the lower optimum between the two.
    Region,
    /// All points between the optima are about equally high.
    Ridge,
    /// The log density does not even fall far beyond one of the optima.
    Endless,
}

/// The line through the best optimum and another one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub shape: Shape,
    /// The coordinates in which the optima differ most, in standard deviations. The largest difference comes first.
    pub coordinates: Vec<usize>,
}

impl Line {
    pub fn through<D: LogDensity>(density: &D, best: &StartOutcome, other: &StartOutcome) -> Self {
        Self {
            shape: shape(density, best.moments().0, other.moments().0),
            coordinates: coordinates(best, other),
        }
    }
}

fn shape<D: LogDensity>(density: &D, from: &[f64], to: &[f64]) -> Shape {
    let between = (0..=STEPS).map(|k| k as f64 / STEPS as f64);
    let beyond = AWAY.iter().flat_map(|far| [-far, 1.0 + far]);
    let points: Vec<f64> = between.chain(beyond).collect();
    let lanes = points.len();
    let mut z = Vec::with_capacity(from.len() * lanes);
    for (a, b) in from.iter().zip(to) {
        z.extend(points.iter().map(|t| a + t * (b - a)));
    }
    let mut values = vec![0.0; lanes];
    let mut workspace = density.workspace(lanes);
    density.value(
        &mut workspace,
        Lanes::new(&z, from.len(), lanes),
        &mut values,
    );
    let (between, beyond) = values.split_at(STEPS + 1);
    let lower = between[0].min(between[STEPS]);
    // The negation ensures that a point without a density counts as a valley.
    if !between.iter().all(|value| *value >= lower - FALLEN) {
        return Shape::Valley;
    }
    let endless = |side: usize| {
        let far = beyond.iter().skip(side).step_by(2);
        far.clone()
            .all(|value| value.is_finite() && *value >= lower - FALLEN)
    };
    if endless(0) || endless(1) {
        return Shape::Endless;
    }
    match between.iter().all(|value| *value <= lower + FALLEN) {
        true => Shape::Ridge,
        false => Shape::Region,
    }
}

fn coordinates(best: &StartOutcome, other: &StartOutcome) -> Vec<usize> {
    let ((from, log_sd), (to, other_log_sd)) = (best.moments(), other.moments());
    let step = |k: usize| (to[k] - from[k]).abs() / log_sd[k].max(other_log_sd[k]).exp();
    let largest = (0..from.len()).map(step).fold(0.0, f64::max);
    let mut found: Vec<usize> = (0..from.len())
        .filter(|k| step(*k) >= SHARE * largest)
        .collect();
    found.sort_by(|a, b| step(*b).total_cmp(&step(*a)));
    found
}

#[cfg(test)]
mod tests {
    use jensen_density::LanesMut;

    use super::*;

    /// A log density of two coordinates.
    struct Plane<F>(F);

    impl<F: Fn(f64, f64) -> f64 + Sync> LogDensity for Plane<F> {
        type Workspace = ();
        fn dim(&self) -> usize {
            2
        }
        fn workspace(&self, _: usize) {}
        fn value(&self, (): &mut (), z: Lanes<'_>, out: &mut [f64]) {
            for (out, (x, y)) in out.iter_mut().zip(z.row(0).iter().zip(z.row(1))) {
                *out = self.0(*x, *y);
            }
        }
        fn value_grad(&self, _: &mut (), _: Lanes<'_>, _: &mut [f64], _: LanesMut<'_>) {
            unreachable!("a line needs values alone")
        }
    }

    fn at(x: f64, y: f64) -> StartOutcome {
        StartOutcome {
            omega: vec![x, y, -1.0, -1.0],
            elbo: 0.0,
            settled: true,
            wide: false,
        }
    }

    fn line(log_density: impl Fn(f64, f64) -> f64 + Sync, to: (f64, f64)) -> Line {
        Line::through(&Plane(log_density), &at(0.0, 0.0), &at(to.0, to.1))
    }

    #[test]
    fn two_points_of_a_sum_are_not_two_modes() {
        let sum = |x: f64, y: f64| -0.5 * (x + y).powi(2);
        let found = line(sum, (3.0, -3.0));
        assert_eq!(
            (found.shape, found.coordinates),
            (Shape::Endless, vec![0, 1])
        );
        // Wide priors end the ridge far beyond the optima.
        let with_priors = |x: f64, y: f64| sum(x, y) - 0.5 * (x * x + y * y) / 1e4;
        assert_eq!(line(with_priors, (3.0, -3.0)).shape, Shape::Ridge);
        // The wide plateau of a proper density is higher at one of its ends.
        let slope = |x: f64, y: f64| sum(x, y) - 0.05 * (x - 9.0).powi(2);
        assert_eq!(line(slope, (9.0, -9.0)).shape, Shape::Region);
    }

    #[test]
    fn two_modes_have_a_valley_between_them() {
        let two = |x: f64, y: f64| {
            let mode = |centre: f64| -0.5 * ((x - centre).powi(2) + y * y);
            mode(0.0).max(mode(4.0))
        };
        let found = line(two, (4.0, 0.0));
        assert_eq!((found.shape, found.coordinates), (Shape::Valley, vec![0]));
        let undefined = |x: f64, _: f64| if x == 2.0 { f64::NAN } else { 0.0 };
        assert_eq!(line(undefined, (4.0, 0.0)).shape, Shape::Valley);
    }
}
