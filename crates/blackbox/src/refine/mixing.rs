//! Diagnostics of mixing: nested R̂, the effective sample size and the Monte-Carlo standard error.
//!
//! The draws of a quantity are ordered by time, then by population, then by chain: draw `t (P K) + p K + k`. The K
//! chains of a population start at the same point, so the spread of the population means shows how much the chains
//! still depend on that point (Margossian, Hoffman, Sountsov, Riou-Durand, Vehtari and Gelman, *Nested R̂*, Bayesian
//! Analysis 2024). The diagnostic is `nR̂ = √(1 + B/W)`, where B is the variance of the population means. The variance
//! of a population is the sum of the variance between its chains and the variance within its chains. W is the mean of
//! this sum over the populations.
//!
//! The standard error of the mean is computed twice, from the spread of the chain means and from the spread of the
//! population means. The larger value is used. The effective sample size is the variance divided by the square of the
//! standard error.
//!
//! If all populations depend on the start in the same way, this dependence does not appear as a spread between
//! populations. For example, chains that all start in the middle of a long arm agree until one of them reaches the end
//! of the arm. The diagnostics therefore also test for a trend over time, in units of the standard error of the trend
//! between chains. By the time of the test, the chains of a population have separated. A false alarm only costs one
//! more stationary phase.
//!
//! Among thousands of well-mixed quantities, some have population means that are far apart by chance. The diagnostics
//! therefore compare the worst quantity with the worst value that chance alone would cause among as many quantities.

use jensen_math::special::gamma_p;
use serde::{Deserialize, Serialize};

use crate::policy::Policy;
use crate::reduce::{mean_se, sum};

/// The arrangement of the chains in populations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ensemble {
    /// The number of populations.
    pub populations: usize,
    /// The number of chains per population.
    pub chains: usize,
}

impl Ensemble {
    /// Returns the number of chains in all populations.
    pub fn lanes(&self) -> usize {
        self.populations * self.chains
    }

    /// Returns the mixing diagnostics for the draws of one quantity. `draws` must contain the same number of draws of
    /// each chain.
    ///
    /// A constant quantity counts as mixed. A quantity that is not finite at some draw counts as not mixed.
    pub fn judge(&self, draws: &[f64]) -> Mixing {
        self.worst(draws, 1.0)
    }

    /// Returns the diagnostics for the worst of many quantities. Chance alone is expected to multiply the variance of
    /// its population means by `chance`.
    pub(super) fn worst(&self, draws: &[f64], chance: f64) -> Mixing {
        let (lanes, chains) = (self.lanes(), self.chains);
        let times = draws.len() / lanes;
        let mut means = vec![0.0; lanes];
        for row in draws.chunks(lanes) {
            means.iter_mut().zip(row).for_each(|(m, x)| *m += x);
        }
        means.iter_mut().for_each(|m| *m /= times as f64);
        let mut within = vec![0.0; lanes];
        for row in draws.chunks(lanes) {
            for ((w, x), m) in within.iter_mut().zip(row).zip(&means) {
                *w += (x - m) * (x - m);
            }
        }
        let within = sum(&within) / (lanes * (times.max(2) - 1)) as f64;
        let variance = |values: &[f64]| {
            let (_, se) = mean_se(values);
            se * se * values.len() as f64
        };
        let groups: Vec<f64> = means
            .chunks(chains)
            .map(|group| sum(group) / chains as f64)
            .collect();
        let beside: Vec<f64> = means.chunks(chains).map(variance).collect();
        let beside = if chains > 1 {
            sum(&beside) / self.populations as f64
        } else {
            0.0
        };
        let between = variance(&groups) / chance;
        let inside = within + beside;
        let total = inside + between;
        let error = (variance(&means) / lanes as f64).max(between / self.populations as f64);
        let constant = draws.iter().all(|x| *x == draws[0]);
        if constant {
            return Mixing {
                rhat: 1.0,
                ess: draws.len() as f64,
                sd: 0.0,
                drift: 0.0,
            };
        }
        Mixing {
            rhat: (1.0 + between / inside).sqrt(),
            ess: total / error,
            sd: total.sqrt(),
            drift: self.drift(draws),
        }
    }

    /// Computes the slope of a straight line that is fitted to the draws over time, divided by its standard error.
    fn drift(&self, draws: &[f64]) -> f64 {
        let lanes = self.lanes();
        let middle = 0.5 * (draws.len() / lanes - 1) as f64;
        let mut slopes = vec![0.0; lanes];
        for (t, row) in draws.chunks(lanes).enumerate() {
            let time = t as f64 - middle;
            slopes.iter_mut().zip(row).for_each(|(s, x)| *s += time * x);
        }
        let (mean, error) = mean_se(&slopes);
        match error > 0.0 {
            true => mean.abs() / error,
            false => 0.0,
        }
    }

    /// Computes the relative standard error of the standard deviation of a quantity.
    pub fn error_of_spread(&self, draws: &[f64]) -> f64 {
        let (mean, _) = mean_se(draws);
        let squares: Vec<f64> = draws.iter().map(|x| (x - mean) * (x - mean)).collect();
        let variance = sum(&squares) / squares.len() as f64;
        0.5 * self.judge(&squares).mcse() / variance
    }

    /// Computes the diagnostics of a quantity and those of its squared distance from its mean, and returns the worse of
    /// the two. The draws are good only if the spread of the quantity has also mixed.
    pub fn judge_with_spread(&self, draws: &[f64]) -> Mixing {
        self.worst_with_spread(draws, 1.0)
    }

    pub(super) fn worst_with_spread(&self, draws: &[f64], chance: f64) -> Mixing {
        let (mean, _) = mean_se(draws);
        let own = self.worst(draws, chance);
        let squares: Vec<f64> = draws.iter().map(|x| (x - mean) * (x - mean)).collect();
        let spread = self.worst(&squares, chance);
        Mixing {
            rhat: worse(own.rhat, spread.rhat, f64::max),
            ess: worse(own.ess, spread.ess, f64::min),
            sd: own.sd,
            drift: worse(own.drift, spread.drift, f64::max),
        }
    }
}

/// NaN is worse than any number.
fn worse(a: f64, b: f64, choose: fn(f64, f64) -> f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else {
        choose(a, b)
    }
}

/// The diagnostics of mixing for one quantity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mixing {
    /// The nested R̂.
    pub rhat: f64,
    /// The effective sample size.
    pub ess: f64,
    /// The standard deviation of the draws.
    pub sd: f64,
    /// The trend over time, divided by its standard error.
    #[serde(default)]
    pub drift: f64,
}

/// The largest nested R̂ at which draws count as mixed (Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021, section
/// 5).
pub const RHAT_LIMIT: f64 = 1.01;

/// The limits need no correction for up to this many quantities: five coordinates, their spreads and the log density.
const FEW: usize = 11;

/// Computes how much larger, by chance, the largest variance of population means is among the given number of mixed
/// quantities than among [`FEW`] quantities. The result is a ratio of two medians, each of the largest of as many χ²
/// variables as there are quantities. With eight populations, the ratio is 1.5 for a hundred coordinates and 2.4 for
/// ten thousand. Without this correction, the worst quantity would require more draws by the same factor.
pub(super) fn chance(populations: usize, quantities: usize) -> f64 {
    let freedom = populations.saturating_sub(1).max(1) as f64;
    let largest = |quantities: usize| {
        let share = 0.5_f64.powf(1.0 / quantities as f64);
        let (mut low, mut high) = (0.0, 10.0 * freedom + 200.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            match gamma_p(0.5 * freedom, 0.5 * middle) < share {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    };
    largest(quantities.max(FEW)) / largest(FEW)
}

impl Mixing {
    pub(crate) const UNKNOWN: Self = Self {
        rhat: f64::NAN,
        ess: f64::NAN,
        sd: f64::NAN,
        drift: f64::NAN,
    };

    /// Returns whether nested R̂, the effective sample size and the drift are within their limits. The limits depend on
    /// the number of quantities that are judged together.
    pub fn is_good_of(&self, quantities: usize, policy: &Policy) -> bool {
        self.rhat <= RHAT_LIMIT
            && self.ess >= policy.effective_draws
            && self.drift <= policy.confidence_of(quantities)
    }

    /// Returns whether nested R̂, the effective sample size and the drift of a single quantity are within their limits.
    pub fn is_good(&self, policy: &Policy) -> bool {
        self.is_good_of(1, policy)
    }

    /// Returns the Monte-Carlo standard error of the mean.
    pub fn mcse(&self) -> f64 {
        self.sd / self.ess.sqrt()
    }

    pub(crate) fn join(self, other: Self) -> Self {
        Self {
            rhat: worse(self.rhat, other.rhat, f64::max),
            ess: worse(self.ess, other.ess, f64::min),
            sd: self.sd,
            drift: worse(self.drift, other.drift, f64::max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{NoisePurpose, NoiseSource};
    use jensen_math::simd::Simd;

    const ENSEMBLE: Ensemble = Ensemble {
        populations: 8,
        chains: 16,
    };

    fn normals(times: usize, seed: u64) -> Vec<f64> {
        let mut out = vec![0.0; times * ENSEMBLE.lanes()];
        let source = NoiseSource::new(seed, Simd::detect());
        source.fill(NoisePurpose::Draws, 0, 0, 1, out.len(), &mut out);
        out
    }

    #[test]
    fn independent_draws_have_mixed() {
        for seed in 0..20 {
            let mixing = ENSEMBLE.judge_with_spread(&normals(40, seed));
            assert!(mixing.is_good_of(40, &Policy::default()), "{mixing:?}");
            assert!(mixing.ess < 1.3 * 40.0 * 128.0);
            assert!((mixing.sd - 1.0).abs() < 0.05);
        }
    }

    #[test]
    fn the_worst_of_many_is_compared_with_chance() {
        let worst = |quantities: usize, try_: u64| {
            let chance = chance(ENSEMBLE.populations, quantities);
            let of = |i| ENSEMBLE.worst(&normals(8, 1000 * try_ + i as u64), chance);
            (0..quantities)
                .map(of)
                .fold(ENSEMBLE.judge(&normals(8, 0)), Mixing::join)
        };
        let mean = |quantities| {
            (0..24)
                .map(|t| worst(quantities, t).rhat - 1.0)
                .sum::<f64>()
                / 24.0
        };
        let (few, many) = (mean(11), mean(400));
        assert!((many / few - 1.0).abs() < 0.25, "{many}, {few}");
        assert_eq!(chance(8, 5), 1.0);
        assert!((chance(8, 201) - 1.5).abs() < 0.1 && (chance(8, 20_001) - 2.4).abs() < 0.1);
        // Dependence on the start remains detectable among many quantities.
        let mut draws = normals(40, 3);
        let shifts = normals(1, 4);
        for (i, x) in draws.iter_mut().enumerate() {
            *x += 0.5 * shifts[i % 128 / 16];
        }
        assert!(ENSEMBLE.worst(&draws, chance(8, 20_001)).rhat > RHAT_LIMIT);
    }

    #[test]
    fn tails_make_spreads_vague() {
        // For normal draws, the relative standard error is 1/√(2n). For their cubes, it is ½ √(45/n), because E x¹² /
        // (E x⁶)² = 46.
        let draws = normals(80, 2);
        let count = draws.len() as f64;
        let own = ENSEMBLE.error_of_spread(&draws);
        assert!((own * (2.0 * count).sqrt() - 1.0).abs() < 0.3, "{own}");
        let cubes: Vec<f64> = draws.iter().map(|x| x.powi(3)).collect();
        let own = ENSEMBLE.error_of_spread(&cubes);
        assert!(
            (own / (0.5 * (45.2 / count).sqrt()) - 1.0).abs() < 0.5,
            "{own}"
        );
    }

    #[test]
    fn memory_of_the_start_is_seen() {
        // Each population mean is shifted by half a standard deviation.
        let mut draws = normals(40, 3);
        let shifts = normals(1, 4);
        for (i, x) in draws.iter_mut().enumerate() {
            *x += 0.5 * shifts[i % 128 / 16];
        }
        let mixing = ENSEMBLE.judge(&draws);
        assert!(mixing.rhat > 1.05 && mixing.ess < 200.0, "{mixing:?}");
        // Chains that never move from their different starting points do not mix, however many draws there are.
        let still: Vec<f64> = normals(1, 5).repeat(100);
        assert!(ENSEMBLE.judge(&still).ess < 200.0);
    }

    #[test]
    fn what_all_chains_remember_alike_is_seen() {
        // Every chain begins two standard deviations to the right of the centre and returns slowly.
        let mut draws = normals(40, 7);
        for (i, x) in draws.iter_mut().enumerate() {
            *x += 2.0 * (-((i / 128) as f64) / 10.0).exp();
        }
        let mixing = ENSEMBLE.judge(&draws);
        assert!(mixing.rhat < RHAT_LIMIT && mixing.ess > Policy::default().effective_draws);
        assert!(!mixing.is_good(&Policy::default()), "{mixing:?}");
    }

    #[test]
    fn spreads_count_too_and_so_do_undefined_numbers() {
        let mut draws = normals(40, 6);
        for (i, x) in draws.iter_mut().enumerate() {
            *x *= 1.0 + (i % 128 / 16) as f64;
        }
        assert!(ENSEMBLE.judge_with_spread(&draws).rhat > 1.05);
        draws[7] = f64::NAN;
        assert!(!ENSEMBLE.judge(&draws).is_good(&Policy::default()));
        draws[7] = f64::INFINITY;
        assert!(!ENSEMBLE.judge(&draws).is_good(&Policy::default()));
        assert!(ENSEMBLE.judge(&[0.1; 1024]).is_good(&Policy::default()));
    }
}
