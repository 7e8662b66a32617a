//! Distribution functions of observations, given a linear predictor or averaged over its posterior, and their inverses.

use jensen_math::constants::LOG_TWO_PI;
use jensen_math::special::{inv_phi, phi};

use super::{Likelihood, Response};

/// Standard deviations to either side of a linear predictor's mean that expectations reach: 4e-10 lie beyond.
const REACH: f64 = 6.25;

/// Largest jump of the distribution function between two nodes: where it is a normal one, as steep ones are, the trapezoid rule is
/// then right to 1e-9.
const JUMP: f64 = 0.35;

/// Most nodes. Distribution functions that are steeper, as those of counts of a million, are right to two hundredths of a
/// probability times the share of their spread that is not the linear predictor's.
const NODES: usize = 1024;

/// Relative width at which the search for a quantile ends.
const CLOSE: f64 = 1e-9;

/// The distribution of an observation whose linear predictor is normal, which is what is known of it after a fit.
#[derive(Clone, Debug)]
pub struct Predictive {
    likelihood: Likelihood,
    size: f64,
    mean: f64,
    sd: f64,
    /// Values of the linear predictor with their weights.
    nodes: Vec<(f64, f64)>,
}

impl Likelihood {
    /// P(Y ≤ y | η) of an observation of this size; NaN for binary responses and categories, whose probabilities are their
    /// [`mean`](Self::mean).
    pub fn distribution(self, eta: f64, y: f64, size: f64) -> f64 {
        let whole = matches!(self.response(), Response::Count | Response::Trials);
        if self.has_quantiles() && y < 0.0 && self.response() != Response::Number {
            return 0.0;
        }
        let y = if whole { y.floor() } else { y };
        (self.row.distribution)(&self.values, eta, y, size)
    }

    /// Whether observations have quantiles that say more than their mean: all but binary ones and categories.
    pub fn has_quantiles(self) -> bool {
        !matches!(self.response(), Response::Binary | Response::Category)
    }
}

impl Predictive {
    /// The distribution of an observation of this size with η ~ N(mean, sd²); sd may be 0, and then it is that at a known η.
    pub fn new(likelihood: Likelihood, mean: f64, sd: f64, size: f64) -> Self {
        let mut out = Self {
            likelihood,
            size,
            mean,
            sd,
            nodes: vec![(mean, 1.0)],
        };
        if sd > 0.0 && likelihood.has_quantiles() && out.normal().is_none() {
            out.nodes = out.spread();
        }
        out
    }

    /// Nodes so close that the distribution function at the median of the middle one jumps little between them.
    fn spread(&self) -> Vec<(f64, f64)> {
        let middle = self.quantile(0.5);
        let mut count = 25;
        loop {
            let step = 2.0 * REACH / (count - 1) as f64;
            let at = |k: usize| -REACH + step * k as f64;
            let values: Vec<f64> = (0..count)
                .map(|k| {
                    let eta = self.mean + self.sd * at(k);
                    self.likelihood.distribution(eta, middle, self.size)
                })
                .collect();
            let steep = values.windows(2).any(|p| (p[1] - p[0]).abs() > JUMP);
            if !steep || 2 * count > NODES {
                let weight = |z: f64| step * (-0.5 * (z * z + LOG_TWO_PI)).exp();
                let total: f64 = (0..count).map(|k| weight(at(k))).sum();
                return (0..count)
                    .map(|k| (self.mean + self.sd * at(k), weight(at(k)) / total))
                    .collect();
            }
            count = 2 * count - 1;
        }
    }

    /// Mean and standard deviation where the observation is normal.
    fn normal(&self) -> Option<(f64, f64)> {
        match (self.likelihood.name(), self.likelihood.values().as_slice()) {
            ("gaussian", [variance]) => Some((self.mean, (self.sd * self.sd + variance).sqrt())),
            _ => None,
        }
    }

    /// P(Y ≤ y); NaN for binary responses and categories.
    pub fn distribution(&self, y: f64) -> f64 {
        if let Some((mean, sd)) = self.normal() {
            return phi((y - mean) / sd);
        }
        let each = self.nodes.iter();
        each.map(|(eta, w)| w * self.likelihood.distribution(*eta, y, self.size))
            .sum()
    }

    /// The least y with P(Y ≤ y) ≥ p, 0 < p < 1; NaN for binary responses and categories.
    ///
    /// Counts are found exactly, numbers to a relative 1e-9 of their distance from the middle.
    pub fn quantile(&self, p: f64) -> f64 {
        if let Some((mean, sd)) = self.normal() {
            return mean + sd * inv_phi(p);
        }
        if !self.likelihood.has_quantiles() {
            return f64::NAN;
        }
        match self.likelihood.response() {
            Response::Count | Response::Trials => self.whole(p),
            _ => self.between(p),
        }
    }

    /// The quantile of a count, by halving.
    fn whole(&self, p: f64) -> f64 {
        let enough = |y: f64| self.distribution(y) >= p;
        let most = match self.likelihood.response() {
            Response::Trials => self.size,
            _ => 2f64.powi(52),
        };
        let (mut low, mut high) = (-1.0, 1.0f64.min(most));
        while high < most && !enough(high) {
            (low, high) = (high, (2.0 * high + 1.0).min(most));
        }
        while high - low > 1.0 {
            let middle = (0.5 * (low + high)).floor();
            match enough(middle) {
                true => high = middle,
                false => low = middle,
            }
        }
        high
    }

    /// The quantile of a number: a bracket, then the secant with the kept end's value halved (Illinois).
    fn between(&self, p: f64) -> f64 {
        let excess = |y: f64| self.distribution(y) - p;
        let positive = self.likelihood.response() == Response::Positive;
        // Where it begins matters little: the bracket doubles.
        let mean = self.likelihood.mean(self.mean).abs();
        let (centre, scale) = match positive {
            true => (0.0, mean),
            false => (self.mean, self.sd.max(1e-3 * mean).max(1e-6)),
        };
        let low = if positive { 0.0 } else { centre - scale };
        let (mut low, mut high) = (low, centre + scale);
        let mut width = scale;
        while excess(high) < 0.0 && width < f64::MAX / 4.0 {
            (low, high) = (high, high + width);
            width *= 2.0;
        }
        while !positive && excess(low) > 0.0 && width < f64::MAX / 4.0 {
            (low, high) = (low - width, low);
            width *= 2.0;
        }
        let (mut below, mut above) = (excess(low), excess(high));
        let mut side = 0;
        for _ in 0..200 {
            let secant = high - above * (high - low) / (above - below);
            let y = match secant > low && secant < high {
                true => secant,
                false => 0.5 * (low + high),
            };
            let value = excess(y);
            if value == 0.0 {
                return y;
            }
            if value > 0.0 {
                (high, above) = (y, value);
                below *= if side == 1 { 0.5 } else { 1.0 };
                side = 1;
            } else {
                (low, below) = (y, value);
                above *= if side == -1 { 0.5 } else { 1.0 };
                side = -1;
            }
            if high - low <= CLOSE * ((y - centre).abs() + 1e-3 * scale) {
                break;
            }
        }
        0.5 * (low + high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = Likelihood> {
        Likelihood::all().filter(|l| l.has_quantiles())
    }

    /// Distribution functions grow by the density.
    #[test]
    fn distributions_are_sums_of_densities() {
        for likelihood in all() {
            for eta in [-1.3, 0.4, 1.1] {
                let size = likelihood.size(2.0, 7.0);
                let p = |y: f64| likelihood.log_density(eta, y, size).exp();
                let f = |y: f64| likelihood.distribution(eta, y, size);
                match likelihood.response() {
                    Response::Count | Response::Trials => {
                        let mut sum = 0.0;
                        for y in 0..=7 {
                            sum += p(f64::from(y));
                            let found = f(f64::from(y) + 0.3);
                            assert!(
                                (found - sum).abs() < 1e-12,
                                "{likelihood} {y}: {found} {sum}"
                            );
                        }
                        assert_eq!(f(-0.5), 0.0);
                    }
                    _ => {
                        for y in [0.2, 0.9, 3.0] {
                            let h = 1e-4;
                            let slope = (f(y + h) - f(y - h)) / (2.0 * h);
                            assert!(
                                (slope - p(y)).abs() < 1e-6,
                                "{likelihood} {y}: {slope} {}",
                                p(y)
                            );
                        }
                        assert!(f(1e9) > 1.0 - 1e-6 && f(-1e9) < 1e-6, "{likelihood}");
                    }
                }
            }
        }
    }

    /// Averages over the linear predictor against a fine midpoint rule, for little and much spread and for steep counts.
    #[test]
    fn predictive_distributions_are_averages() {
        for likelihood in all() {
            for (mean, sd, size) in [(0.3, 0.4, 7.0), (-0.5, 2.0, 7.0), (0.2, 0.3, 40_000.0)] {
                let size = match likelihood.sized_by() {
                    super::super::Size::One => 1.0,
                    _ => size,
                };
                let predictive = Predictive::new(likelihood, mean, sd, size);
                for p in [0.05, 0.5, 0.95] {
                    let y = predictive.quantile(p);
                    let points = 20_000;
                    let step = 14.0 / f64::from(points);
                    let brute: f64 = (0..points)
                        .map(|i| {
                            let z = -7.0 + step * (f64::from(i) + 0.5);
                            let weight = step * (-0.5 * (z * z + LOG_TWO_PI)).exp();
                            weight * likelihood.distribution(mean + sd * z, y, size)
                        })
                        .sum();
                    let found = predictive.distribution(y);
                    assert!(
                        (found - brute).abs() < 1e-6,
                        "{likelihood} {mean} {sd} {size}: {found} {brute}"
                    );
                    match likelihood.response() {
                        Response::Count | Response::Trials => {
                            assert!(found >= p && predictive.distribution(y - 1.0) < p);
                        }
                        _ => assert!((found - p).abs() < 1e-7, "{likelihood} {found} {p}"),
                    }
                }
            }
        }
    }
}
