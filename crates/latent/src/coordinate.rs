//! The coordinates of hyperparameters.
//!
//! A search moves in the unconstrained coordinates of the hyperparameters' ranges. The integration moves in normal scores:
//! the standard normal quantiles at the hyperparameters' prior probabilities. Each prior is standard normal in these
//! coordinates, so the posterior of a hyperparameter without information in the data is normal too. A search would
//! make steps that are too large in normal scores, because far in a tail of the prior a small change of the score changes
//! the hyperparameter by orders of magnitude.

use jensen_math::constants::HALF_LOG_TWO_PI;
use jensen_math::special::inv_phi;

use crate::{Parameter, PriorDensity, Range};

/// The curve of normal scores ends at these scores. Beyond them, the map is linear. The prior mass beyond is 1e-15.
const LAST: f64 = 8.0;

/// The distance of two positions on the curve of normal scores. The prior of a share of a field is the most curved one:
/// its logit grows by a factor of 8 within half a standard deviation, and its density must be right to 2 %, as the test below asserts.
const STEP: f64 = 0.0625;

/// The prior is integrated numerically where its log density is within this many nats of its maximum, because the
/// density falls by 32 nats from the centre to a score of 8.
const DEEP: f64 = 60.0;

/// The prior is integrated with this many steps.
const FINE: usize = 4096;

/// The unconstrained coordinates in which a prior is looked for. Values of positive hyperparameters are then between
/// 1e-130 and 1e130.
const FARTHEST: i32 = 300;

/// A monotone map from a coordinate to a hyperparameter.
pub(crate) struct Coordinate {
    range: Range,
    density: Option<PriorDensity>,
    /// The unconstrained coordinate as a function of the normal score. Without a curve, the coordinate is the
    /// unconstrained coordinate itself.
    scores: Option<Increasing>,
}

impl Coordinate {
    /// Creates the unconstrained coordinate of a hyperparameter. `priors` is whether the objective includes the prior.
    pub(crate) fn unconstrained_of(parameter: &Parameter, priors: bool) -> Self {
        Self {
            range: parameter.range,
            density: priors.then(|| parameter.density.clone()),
            scores: None,
        }
    }

    /// Creates the normal score of a hyperparameter. Without a proper prior, the result is the unconstrained coordinate.
    pub(crate) fn score_of(parameter: &Parameter, priors: bool) -> Self {
        let own = Self::unconstrained_of(parameter, priors);
        let proper = own.density.as_ref().filter(|d| **d != PriorDensity::Flat);
        let scores = proper.and_then(|density| scores(parameter.range, density));
        Self { scores, ..own }
    }

    /// Maps a coordinate to the unconstrained coordinate of the range.
    pub(crate) fn unconstrained(&self, u: f64) -> f64 {
        self.scores.as_ref().map_or(u, |curve| curve.at(u)[0])
    }

    /// Computes the derivative of the unconstrained coordinate of the range with respect to the coordinate.
    pub(crate) fn stretch(&self, u: f64) -> f64 {
        self.scores.as_ref().map_or(1.0, |curve| curve.at(u)[1])
    }

    /// Maps a coordinate to the value.
    pub(crate) fn value(&self, u: f64) -> f64 {
        self.range.outward(self.unconstrained(u))
    }

    /// Computes the derivative of the value with respect to the coordinate.
    pub(crate) fn slope(&self, u: f64) -> f64 {
        let (x, by_score) = match &self.scores {
            Some(curve) => {
                let [x, slope, _] = curve.at(u);
                (x, slope)
            }
            None => (u, 1.0),
        };
        self.range.slopes(x).0 * by_score
    }

    /// Maps an unconstrained coordinate of the range to the coordinate.
    pub(crate) fn of(&self, x: f64) -> f64 {
        let Some(curve) = &self.scores else {
            return x;
        };
        // The map is increasing, so bisection finds the coordinate. Its width doubles until it contains the value.
        let mut reach = LAST;
        while !(curve.at(-reach)[0] <= x && x <= curve.at(reach)[0]) && reach < 1e6 {
            reach *= 2.0;
        }
        let (mut low, mut high) = (-reach, reach);
        while high - low > 1e-12 * reach {
            let middle = 0.5 * (low + high);
            match curve.at(middle)[0] < x {
                true => low = middle,
                false => high = middle,
            }
        }
        0.5 * (low + high)
    }

    /// Computes the log prior density of the coordinate and its derivative. Both are 0 without priors.
    ///
    /// The density is exact for any increasing map, so errors of the curve do not matter.
    pub(crate) fn log_prior(&self, u: f64) -> (f64, f64) {
        let Some(density) = &self.density else {
            return (0.0, 0.0);
        };
        let [x, by_score, bend] = match &self.scores {
            Some(curve) => curve.at(u),
            None => [u, 1.0, 0.0],
        };
        let (slope, growth) = self.range.slopes(x);
        let (log, by_value) = density.at(self.range.outward(x));
        (
            log + slope.ln() + by_score.ln(),
            (by_value * slope + growth) * by_score + bend / by_score,
        )
    }
}

/// Computes the unconstrained coordinate as a function of the normal score. Returns `None` if the density has no
/// maximum where priors are looked for.
fn scores(range: Range, density: &PriorDensity) -> Option<Increasing> {
    let log = |x: f64| {
        let log = density.at(range.outward(x)).0 + range.slopes(x).0.ln();
        if log.is_finite() {
            log
        } else {
            f64::NEG_INFINITY
        }
    };
    let mut coarse = 1.0;
    let mut ends = [-f64::from(FARTHEST), f64::from(FARTHEST)];
    // The second pass resolves priors that are narrow in the unconstrained coordinate.
    for _ in 0..2 {
        let count = ((ends[1] - ends[0]) / coarse) as usize;
        let at = |k: usize| ends[0] + coarse * k as f64;
        let logs: Vec<f64> = (0..=count).map(|k| log(at(k))).collect();
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let inside = |k: &usize| logs[*k] > top - DEEP;
        let first = (0..=count).find(inside)?;
        let last = (0..=count).rev().find(inside)?;
        ends = [at(first) - coarse, at(last) + coarse];
        coarse = (ends[1] - ends[0]) / FINE as f64;
    }
    let at = |k: usize| ends[0] + coarse * k as f64;
    let logs: Vec<f64> = (0..=FINE).map(|k| log(at(k))).collect();
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let masses: Vec<f64> = (logs.windows(2))
        .map(|pair| 0.5 * ((pair[0] - top).exp() + (pair[1] - top).exp()))
        .collect();
    let total: f64 = masses.iter().sum();
    // Sums from the nearer end have small relative errors in both tails.
    let mut above = vec![0.0; FINE + 1];
    for k in (0..FINE).rev() {
        above[k] = above[k + 1] + masses[k] / total;
    }
    let mut below = 0.0;
    let mut known: Vec<(f64, f64)> = Vec::with_capacity(FINE);
    for k in 1..FINE {
        below += masses[k - 1] / total;
        let score = match below < 0.5 {
            true => inv_phi(below),
            false => -inv_phi(above[k]),
        };
        known.push((score, at(k)));
    }
    known.retain(|(score, _)| score.is_finite());
    known.dedup_by(|b, a| b.0 <= a.0);
    let count = (2.0 * LAST / STEP) as usize;
    let nodes = (0..=count).map(|k| {
        let score = -LAST + STEP * k as f64;
        let x = interpolated(&known, score)?;
        // The prior is standard normal in the score.
        let log_density = log(x) - top - (total * coarse).ln();
        let normal = -0.5 * score * score - HALF_LOG_TWO_PI;
        Some((x, (normal - log_density).exp()))
    });
    Some(Increasing::new(nodes.collect::<Option<_>>()?))
}

/// Interpolates between points in ascending order, and extrapolates the first and the last line.
fn interpolated(points: &[(f64, f64)], score: f64) -> Option<f64> {
    let above = points.partition_point(|(s, _)| *s < score);
    let at = above.clamp(1, points.len().checked_sub(1)?);
    let ((s0, x0), (s1, x1)) = (points[at - 1], points[at]);
    Some(x0 + (x1 - x0) * (score - s0) / (s1 - s0))
}

/// The piecewise cubic through values with slopes at the positions of the normal scores. Beyond its ends it is linear. It
/// is increasing, because no slope at a position is larger than twice the slopes of the neighbouring secants (Fritsch and
/// Carlson 1980 show that three times is the limit). A spline would not be: at a value that the prior cannot exceed, it oscillates.
struct Increasing {
    nodes: Vec<(f64, f64)>,
}

impl Increasing {
    fn new(mut nodes: Vec<(f64, f64)>) -> Self {
        for k in 0..nodes.len() {
            let secant = |i: usize| (nodes[i + 1].0 - nodes[i].0) / STEP;
            let before = k.checked_sub(1).map_or(f64::INFINITY, secant);
            let after = match k + 1 < nodes.len() {
                true => secant(k),
                false => f64::INFINITY,
            };
            nodes[k].1 = nodes[k].1.min(2.0 * before).min(2.0 * after);
        }
        Self { nodes }
    }

    /// Computes the value, the slope and the second derivative at a score.
    fn at(&self, score: f64) -> [f64; 3] {
        let position = (score + LAST) / STEP;
        let i = (position.floor().max(0.0) as usize).min(self.nodes.len() - 2);
        let t = (position - i as f64).clamp(0.0, 1.0);
        let ((low, start), (high, end)) = (self.nodes[i], self.nodes[i + 1]);
        let secant = (high - low) / STEP;
        // The slope is a quadratic polynomial of t. Its integral from 0 to 1 is the secant.
        let (linear, square) = (
            6.0 * secant - 4.0 * start - 2.0 * end,
            3.0 * (start + end - 2.0 * secant),
        );
        let value = low + STEP * t * (start + t * (0.5 * linear + t * square / 3.0));
        let slope = start + t * (linear + t * square);
        let beyond = (position - i as f64 - t) * STEP;
        if beyond == 0.0 {
            return [value, slope, (linear + 2.0 * t * square) / STEP];
        }
        [value + slope * beyond, slope, 0.0]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Tail;
    use crate::density::Curve;

    fn coordinates() -> Vec<Coordinate> {
        let of = |density, range| {
            Coordinate::score_of(
                &Parameter {
                    name: String::new(),
                    start: 0.5,
                    range,
                    density,
                },
                true,
            )
        };
        vec![
            of(
                Tail::Deviation { power: 0.5 }.density(3.0, 0.01),
                Range::Positive,
            ),
            of(
                Tail::Deviation { power: -0.5 }.density(1e-4, 0.01),
                Range::Positive,
            ),
            of(
                Tail::Length { dimensions: 1.0 }.density(0.1, 0.05),
                Range::Positive,
            ),
            of(
                Tail::Correlation.density(0.5, 0.5),
                Range::Between(-1.0, 1.0),
            ),
            of(
                PriorDensity::LogNormal {
                    mean: 3.0,
                    sd: 0.01,
                },
                Range::Positive,
            ),
            of(
                PriorDensity::Beta { a: 0.5, b: 2.5 },
                Range::Between(0.0, 1.0),
            ),
            of(
                PriorDensity::Gamma {
                    shape: 0.5,
                    rate: 2.0,
                },
                Range::Positive,
            ),
            // The distance of a share φ is √(−log(1 − φ)). It grows without limit as φ approaches 1.
            of(
                PriorDensity::with_distance(
                    &Arc::new(Curve::new(
                        -8.0,
                        0.5,
                        (0..33)
                            .map(|i| (0.5 * f64::from(i) - 8.0).exp().ln_1p().sqrt().ln())
                            .collect(),
                    )),
                    0.5,
                    2.0 / 3.0,
                ),
                Range::Between(0.0, 1.0),
            ),
        ]
    }

    #[test]
    fn priors_are_standard_normal_in_their_coordinates() {
        for (k, coordinate) in coordinates().iter().enumerate() {
            for i in -20..20 {
                let u = 0.25 * f64::from(i) + 0.03;
                // The density of a correlation or share that is nearly 1 has no accurate digits.
                if (k == 3 || k == 7) && coordinate.value(u).abs() > 1.0 - 1e-9 {
                    continue;
                }
                let (log, slope) = coordinate.log_prior(u);
                let normal = -0.5 * u * u - HALF_LOG_TWO_PI;
                assert!((log - normal).abs() < 0.02, "{k} at {u}: {log} {normal}");
                let h = 1e-5;
                let by_differences =
                    (coordinate.log_prior(u + h).0 - coordinate.log_prior(u - h).0) / (2.0 * h);
                assert!(
                    (slope - by_differences).abs() < 1e-3 * (1.0 + slope.abs()),
                    "{k} at {u}: {slope} {by_differences}"
                );
                let value = coordinate.value(u);
                if value.abs() < 0.999 || k < 3 {
                    assert!(
                        (coordinate.of(coordinate.range.inward(value)) - u).abs() < 1e-6,
                        "{k} at {u}"
                    );
                }
                let h = 1e-6;
                let by_differences =
                    (coordinate.value(u + h) - coordinate.value(u - h)) / (2.0 * h);
                let slope = coordinate.slope(u);
                assert!(
                    (slope - by_differences).abs() <= 1e-4 * slope + 1e-9,
                    "{k} at {u}: {slope} {by_differences}"
                );
            }
        }
    }

    #[test]
    fn median_of_a_prior_has_the_score_zero() {
        // The median of an exponential standard deviation with P(σ > 3) = 0.01 is 3 log 2 / log 100.
        let sd: f64 = 3.0 * 2f64.ln() / 100f64.ln();
        let coordinate = &coordinates()[0];
        assert!(coordinate.of((sd * sd).ln()).abs() < 1e-4);
        assert!((coordinate.value(0.0) / (sd * sd) - 1.0).abs() < 1e-4);
    }
}
