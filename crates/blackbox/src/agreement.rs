//! The changes that importance weighting causes in the moments of an approximation.
//!
//! A k̂ below its limit shows that the importance weights are reliable. It does not show that the draws can be used
//! without weights. For example, a mean-field fit of correlated parameters, or a Gaussian on the logarithm of a scale,
//! has a k̂ below the limit even if its standard deviations are a third too small. The evaluation therefore also
//! estimates the mean and the standard deviation of each coordinate under the posterior, by self-normalised importance
//! sampling with the same draws and weights. It compares them with the mean and the standard deviation of the
//! unweighted draws. If a coordinate is the logarithm or the logit of the reported value ([`Scale`]), the evaluation
//! also compares the moments of that value. For example, a Gaussian on the logarithm of a degrees-of-freedom parameter
//! can have the right standard deviation for the logarithm, while the standard deviation of the parameter is a quarter
//! too small. Jensen uses an approximation without refinement only if no moment changes by more than the [`Policy`]
//! allows. Before the evaluation compares a change with the limit, it adds a multiple of the standard error to the
//! change. The policy sets the multiple.
//!
//! The standard errors come from a jackknife over [`BLOCKS`] blocks of draws. If a single draw has most of the weight,
//! the standard errors are large, so that a single draw cannot decide the outcome.

use jensen_density::{Lanes, Scale};
use rayon::prelude::*;

use crate::policy::Policy;
use crate::sizes::GRAIN;

/// The number of blocks or groups of a jackknife. A standard error from eight blocks has a relative standard error of about a
/// quarter, `1/√(2 · 7)`. Each block stores the sums of all coordinates, so more blocks need more memory.
pub(crate) const BLOCKS: usize = 8;

/// The largest difference among all coordinates, with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The index of the coordinate with the largest difference.
    pub coordinate: usize,
    /// Whether the difference refers to the reported value instead of its logarithm or logit.
    pub constrained: bool,
    /// The estimate with importance weights minus the estimate without weights.
    pub value: f64,
    /// The standard error of `value`.
    pub standard_error: f64,
}

impl Difference {
    const UNKNOWN: Self = Self {
        coordinate: 0,
        constrained: false,
        value: f64::INFINITY,
        standard_error: f64::INFINITY,
    };

    fn largest(&self, policy: &Policy) -> f64 {
        let size = self.value.abs() + policy.confidence() * self.standard_error;
        if size.is_nan() { f64::INFINITY } else { size }
    }

    fn least(&self, policy: &Policy) -> f64 {
        self.value.abs() - policy.confidence() * self.standard_error
    }
}

/// The changes that importance weighting causes in the moments of an approximation, at the coordinates where they are
/// largest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// The largest difference of means, in standard deviations.
    pub mean: Difference,
    /// The largest difference of the logarithms of standard deviations.
    pub sd: Difference,
}

impl Agreement {
    /// The value for an evaluation in which no weight is finite.
    pub const UNKNOWN: Self = Self {
        mean: Difference::UNKNOWN,
        sd: Difference::UNKNOWN,
    };

    /// Returns whether the draws can be used without refinement.
    pub fn is_good(&self, policy: &Policy) -> bool {
        self.mean_is_good(policy) && self.sd_is_good(policy)
    }

    pub(crate) fn mean_is_good(&self, policy: &Policy) -> bool {
        self.mean.largest(policy) <= policy.mean_error
    }

    pub(crate) fn sd_is_good(&self, policy: &Policy) -> bool {
        self.sd.largest(policy) <= policy.sd_error
    }

    pub(crate) fn is_open(&self, policy: &Policy) -> bool {
        let clearly_bad =
            self.mean.least(policy) > policy.mean_error || self.sd.least(policy) > policy.sd_error;
        !self.is_good(policy) && !clearly_bad
    }

    pub(crate) fn to_numbers(self) -> [f64; 8] {
        let of = |d: Difference| {
            let constrained = f64::from(u8::from(d.constrained));
            [d.coordinate as f64, constrained, d.value, d.standard_error]
        };
        let ([a, b, c, d], [e, f, g, h]) = (of(self.mean), of(self.sd));
        [a, b, c, d, e, f, g, h]
    }

    pub(crate) fn from_numbers(numbers: &[f64]) -> Self {
        let of = |n: &[f64]| Difference {
            coordinate: n[0] as usize,
            constrained: n[1] != 0.0,
            value: n[2],
            standard_error: n[3],
        };
        let (mean, sd) = numbers.split_at(numbers.len() / 2);
        Self {
            mean: of(mean),
            sd: of(sd),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Block {
    /// The largest log weight of the block. The other weights of the block are stored relative to it.
    top: f64,
    weight: f64,
    count: f64,
}

/// The weighted and unweighted sums of a quantity and of its square over a block. Weights are relative to the largest
/// weight of the block.
type Sums = [f64; 4];

#[derive(Clone, Copy, Debug)]
struct Quantity {
    coordinate: usize,
    scale: Scale,
    mean: f64,
    sd: f64,
}

impl Quantity {
    /// Computes the value at a draw, relative to the value at the mean and divided by the scale of the quantity.
    fn at(&self, z: f64) -> f64 {
        match self.scale {
            Scale::Identity => (z - self.mean) / self.sd,
            scale => scale.beside(z, self.mean),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Moments {
    /// All compared quantities. Each coordinate has one quantity. A coordinate whose reported value is on another scale
    /// has a second one.
    quantities: Vec<Quantity>,
    blocks: [Block; BLOCKS],
    sums: Vec<[Sums; BLOCKS]>,
    seen: usize,
}

impl Moments {
    /// If `scales` is empty, every coordinate is treated as the reported value.
    pub fn new(mean: &[f64], sd: &[f64], scales: &[Scale]) -> Self {
        let of = |(coordinate, scale)| Quantity {
            coordinate,
            scale,
            mean: mean[coordinate],
            sd: sd[coordinate],
        };
        let themselves = (0..mean.len()).map(|d| (d, Scale::Identity));
        let values = scales.iter().copied().enumerate();
        let values = values.filter(|(_, scale)| *scale != Scale::Identity);
        let quantities: Vec<Quantity> = themselves.chain(values).map(of).collect();
        let block = Block {
            top: f64::NEG_INFINITY,
            weight: 0.0,
            count: 0.0,
        };
        Self {
            blocks: [block; BLOCKS],
            sums: vec![[[0.0; 4]; BLOCKS]; quantities.len()],
            quantities,
            seen: 0,
        }
    }

    /// A draw whose weight is NaN or zero contributes only to the unweighted sums.
    pub fn add(&mut self, z: Lanes<'_>, log_weights: &[f64]) {
        let first = self.seen;
        let block_of = |lane: usize| (first + lane) % BLOCKS;
        let mut tops = self.blocks.map(|block| block.top);
        for (lane, w) in log_weights.iter().enumerate() {
            if w.is_finite() {
                let top = &mut tops[block_of(lane)];
                *top = top.max(*w);
            }
        }
        // Rescales the sums if a block receives a larger weight.
        let mut rescale = [1.0; BLOCKS];
        for ((block, top), rescale) in self.blocks.iter_mut().zip(tops).zip(&mut rescale) {
            if top > block.top {
                *rescale = (block.top - top).exp();
                block.top = top;
                block.weight *= *rescale;
            }
        }
        let weight = |(lane, w): (usize, &f64)| match w.is_finite() {
            true => (w - tops[block_of(lane)]).exp(),
            false => 0.0,
        };
        let weights: Vec<f64> = log_weights.iter().enumerate().map(weight).collect();
        for (lane, w) in weights.iter().enumerate() {
            let block = &mut self.blocks[block_of(lane)];
            block.weight += w;
            block.count += 1.0;
        }
        let add = |(quantity, sums): (&Quantity, &mut [Sums; BLOCKS])| {
            for (sums, rescale) in sums.iter_mut().zip(rescale) {
                sums[0] *= rescale;
                sums[1] *= rescale;
            }
            let row = z.row(quantity.coordinate);
            for (lane, (z, w)) in row.iter().zip(&weights).enumerate() {
                let sums = &mut sums[block_of(lane)];
                let t = quantity.at(*z);
                sums[0] += w * t;
                sums[1] += w * t * t;
                sums[2] += t;
                sums[3] += t * t;
            }
        };
        let together = (GRAIN / weights.len().max(1)).max(1);
        let all = self.quantities.par_iter().zip(&mut self.sums);
        all.with_min_len(together).for_each(add);
        self.seen += weights.len();
    }

    pub fn agreement(&self, policy: &Policy) -> Agreement {
        let top = self
            .blocks
            .iter()
            .fold(f64::NEG_INFINITY, |top, b| top.max(b.top));
        if !top.is_finite() {
            return Agreement::UNKNOWN;
        }
        let scales: Vec<f64> = self.blocks.iter().map(|b| (b.top - top).exp()).collect();
        let mut worst = [Difference {
            value: 0.0,
            standard_error: 0.0,
            coordinate: 0,
            constrained: false,
        }; 2];
        for (d, quantity) in self.quantities.iter().enumerate() {
            let all = self.differences(d, &scales, None);
            let apart: Vec<[f64; 2]> = (0..BLOCKS)
                .map(|left_out| self.differences(d, &scales, Some(left_out)))
                .collect();
            for (k, worst) in worst.iter_mut().enumerate() {
                let n = BLOCKS as f64;
                let mean = apart.iter().map(|x| x[k]).sum::<f64>() / n;
                let squares: f64 = apart.iter().map(|x| (x[k] - mean).powi(2)).sum();
                let found = Difference {
                    coordinate: quantity.coordinate,
                    constrained: quantity.scale != Scale::Identity,
                    value: all[k],
                    standard_error: (squares * (n - 1.0) / n).sqrt(),
                };
                if found.largest(policy) > worst.largest(policy) {
                    *worst = found;
                }
            }
        }
        let [mean, sd] = worst;
        Agreement { mean, sd }
    }

    /// Computes the weighted estimates of a quantity's mean and log standard deviation, minus the unweighted estimates.
    /// One block of draws may be left out. The difference of means is in standard deviations.
    fn differences(&self, d: usize, scales: &[f64], left_out: Option<usize>) -> [f64; 2] {
        let (mut weighted, mut plain) = ([0.0; 3], [0.0; 3]);
        let blocks = self.blocks.iter().zip(&self.sums[d]);
        for (b, ((block, sums), scale)) in blocks.zip(scales).enumerate() {
            if Some(b) == left_out {
                continue;
            }
            weighted[0] += scale * block.weight;
            plain[0] += block.count;
            for k in 0..2 {
                weighted[k + 1] += scale * sums[k];
                plain[k + 1] += sums[k + 2];
            }
        }
        let moments = |[n, first, second]: [f64; 3]| {
            let mean = first / n;
            (mean, second / n - mean * mean)
        };
        let ((mean, variance), (plain_mean, plain_variance)) = (moments(weighted), moments(plain));
        let unit = match self.quantities[d].scale {
            Scale::Identity => 1.0,
            Scale::Log | Scale::Logit => plain_variance.sqrt(),
        };
        [
            (mean - plain_mean) / unit,
            0.5 * (variance / plain_variance).ln(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use jensen_math::simd::Simd;

    use super::*;
    use crate::noise::{NoisePurpose, NoiseSource};

    const POLICY: Policy = Policy {
        mean_error: 0.1,
        sd_error: 0.08,
        failure_probability: 0.05,
        effective_draws: 512.0,
        max_gradients: 1,
    };

    /// Evaluates draws of q = normal(centre, spread) on this scale, with log weights relative to a posterior that has
    /// the given log density.
    fn of(
        (centre, spread): (f64, f64),
        scale: Scale,
        draws: usize,
        log_p: impl Fn(f64) -> f64,
    ) -> Agreement {
        let source = NoiseSource::new(7, Simd::detect());
        let mut z = vec![0.0; draws];
        source.fill(NoisePurpose::Final, 0, 0, 1, draws, &mut z);
        let log_q = |t: f64| -0.5 * t * t - spread.ln();
        let at: Vec<f64> = z.iter().map(|t| centre + spread * t).collect();
        let weights: Vec<f64> = (z.iter().zip(&at))
            .map(|(t, z)| log_p(*z) - log_q(*t))
            .collect();
        let mut moments = Moments::new(&[centre], &[spread], &[scale]);
        for (z, weights) in at.chunks(512).zip(weights.chunks(512)) {
            moments.add(Lanes::new(z, 1, z.len()), weights);
        }
        moments.agreement(&POLICY)
    }

    fn of_normal(mean: f64, sd: f64, draws: usize) -> Agreement {
        of((0.0, 1.0), Scale::Identity, draws, |z| {
            -0.5 * ((z - mean) / sd).powi(2) - sd.ln()
        })
    }

    /// The mean ψ(3) and the standard deviation √ψ′(3) of the logarithm of a gamma(3, 1) variable. The test
    /// approximates this logarithm by a normal distribution with the same moments.
    const OF_LOG_GAMMA: (f64, f64) = (0.922_784_335_098_467, 0.628_430_239_735_434);

    fn log_gamma(z: f64) -> f64 {
        3.0 * z - z.exp()
    }

    #[test]
    fn moments_that_agree_on_a_log_scale_need_not_be_those_of_the_value() {
        let logs = of(OF_LOG_GAMMA, Scale::Identity, 131_072, log_gamma);
        assert!(logs.is_good(&POLICY), "{logs:?}");
        let values = of(OF_LOG_GAMMA, Scale::Log, 131_072, log_gamma);
        assert!(
            !values.is_good(&POLICY) && values.sd.constrained,
            "{values:?}"
        );
        // The standard deviation of the lognormal is exp(m + s²/2) √(exp(s²) − 1), and that of the gamma is √3.
        let (m, s2) = (OF_LOG_GAMMA.0, OF_LOG_GAMMA.1.powi(2));
        let truth = (3.0f64.sqrt() / ((m + 0.5 * s2).exp() * s2.exp_m1().sqrt())).ln();
        let found = values.sd;
        assert!(
            (found.value - truth).abs() < 4.0 * found.standard_error + 1e-3,
            "{found:?}, not {truth}"
        );
        assert!(found.standard_error < 0.02);
    }

    #[test]
    fn a_logit_far_from_its_middle_is_a_logarithm() {
        for side in [-1.0, 1.0] {
            let shifted = |z: f64| log_gamma(side * -z + 9.0);
            let of = |scale| {
                of(
                    (side * (9.0 - OF_LOG_GAMMA.0), OF_LOG_GAMMA.1),
                    scale,
                    131_072,
                    shifted,
                )
            };
            let (logs, logits) = (of(Scale::Identity), of(Scale::Logit));
            assert!(logs.is_good(&POLICY), "{logs:?}");
            assert!(
                !logits.is_good(&POLICY) && logits.sd.constrained,
                "{logits:?}"
            );
        }
    }

    #[test]
    fn values_that_overflow_and_shares_that_are_one_are_no_objection_where_weights_are_equal() {
        for (centre, spread) in [(0.0, 1e3), (800.0, 1.0), (-800.0, 1.0), (0.0, 1e-9)] {
            for scale in [Scale::Log, Scale::Logit] {
                let found = of((centre, spread), scale, 4096, |z| {
                    -0.5 * ((z - centre) / spread).powi(2) - spread.ln()
                });
                assert!(
                    found.is_good(&POLICY),
                    "{centre} {spread} {scale:?}: {found:?}"
                );
            }
        }
    }

    #[test]
    fn an_exact_approximation_agrees_without_error() {
        let found = of_normal(0.0, 1.0, 4096);
        assert!(found.is_good(&POLICY));
        assert!(
            found.mean.largest(&POLICY) < 1e-12 && found.sd.largest(&POLICY) < 1e-12,
            "{found:?}"
        );
    }

    #[test]
    fn differences_are_those_of_the_posterior() {
        for (mean, sd) in [(0.05, 0.95), (-0.3, 1.2), (0.0, 0.75), (0.2, 1.0)] {
            let found = of_normal(mean, sd, 32_768);
            let near = |d: Difference, truth: f64| {
                let off = (d.value - truth).abs();
                assert!(off < 4.0 * d.standard_error + 1e-3, "{d:?}, not {truth}");
                assert!(d.standard_error < 0.03, "{d:?}");
            };
            near(found.mean, mean);
            near(found.sd, sd.ln());
            assert_eq!(
                found.is_good(&POLICY),
                mean.abs() < POLICY.mean_error && sd.ln().abs() < POLICY.sd_error
            );
            assert!(!found.is_open(&POLICY));
        }
    }

    #[test]
    fn one_draw_that_carries_the_weight_shows_nothing() {
        let mut weights = vec![0.0; 512];
        weights[3] = 60.0;
        let z: Vec<f64> = (0..512)
            .map(|i| ((i * 37 % 512) as f64 - 255.5) / 148.0)
            .collect();
        let mut moments = Moments::new(&[0.0], &[1.0], &[]);
        moments.add(Lanes::new(&z, 1, 512), &weights);
        assert!(!moments.agreement(&POLICY).is_good(&POLICY));
    }

    #[test]
    fn draws_outside_the_support_have_no_weight() {
        let z = [0.5, -0.5, 1.0];
        let mut moments = Moments::new(&[0.0], &[1.0], &[]);
        moments.add(
            Lanes::new(&z, 1, 3),
            &[f64::NEG_INFINITY, f64::NAN, f64::NEG_INFINITY],
        );
        assert_eq!(moments.agreement(&POLICY), Agreement::UNKNOWN);
        assert!(!moments.agreement(&POLICY).is_good(&POLICY));
    }
}
