//! The factorial mixture: a point is a sum of the factors that are switched on, and noise.
//!
//! x_n = Σ_k z_nk μ_k + ε_n, z_nk ~ Bernoulli(π), μ_k ~ N(0, σ_μ I), ε_n ~ N(0, σ_n I), σ_n and σ_μ being variances (Ghahramani
//! 1995; Mandt et al. 2016, Eq. 12). Unlike in the paper's reference for the updates, q(μ) is not taken to factorise over
//! k: given the assignments, the factors have a joint normal posterior whose K × K precision all dimensions share, and
//! q(M) of that form is the exact optimum for given q(z).

use std::ops::Range;

use jensen_math::rng::Stream;
use jensen_math::special;

use crate::draws::normal;
use crate::family::{Blocks, ExponentialFamily};
use crate::model::{ConjugateModel, Local};
use jensen_math::reduce::dot;

use jensen_math::constants::LOG_TWO_PI;

/// Settings of a factorial mixture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FactorialSettings {
    /// Number K of factors.
    pub factors: usize,
    /// σ_n.
    pub noise_variance: f64,
    /// σ_μ.
    pub factor_variance: f64,
    /// π, the prior probability of a factor to be on, in (0, 1).
    pub activation: f64,
}

/// A factorial mixture over rows of real numbers.
pub struct FactorialMixture {
    settings: FactorialSettings,
    dim: usize,
    data: Vec<f64>,
    squares: Vec<f64>,
    blocks: Blocks,
}

/// Largest number of sweeps over the factors of one point.
const SWEEPS: u32 = 50;
/// A point's q(z) is settled when no probability moves by more than this in a sweep.
const SETTLED: f64 = 1e-5;

impl FactorialMixture {
    /// A mixture over `data`, rows of `dim` numbers.
    ///
    /// # Errors
    /// One sentence for the user when a setting is out of range.
    pub fn new(settings: FactorialSettings, dim: usize, data: Vec<f64>) -> Result<Self, String> {
        let k = settings.factors;
        if k == 0 {
            return Err("the number of factors must be at least 1".to_owned());
        }
        for (what, x) in [
            ("noise variance", settings.noise_variance),
            ("factor variance", settings.factor_variance),
        ] {
            if !(x.is_finite() && x > 0.0) {
                return Err(format!("the {what} must be positive, not {x}"));
            }
        }
        if !(settings.activation > 0.0 && settings.activation < 1.0) {
            return Err(format!(
                "the activation probability must lie between 0 and 1, not {}",
                settings.activation
            ));
        }
        let mut prior = vec![0.0; k * dim + k * k];
        for i in 0..k {
            prior[k * dim + i * k + i] = 1.0 / settings.factor_variance;
        }
        let mut blocks = Blocks::default();
        blocks.push(
            ExponentialFamily::NormalRows {
                rows: k,
                columns: dim,
            },
            &prior,
        );
        let squares = data
            .chunks_exact(dim)
            .map(|x| x.iter().map(|x| x * x).sum())
            .collect();
        Ok(Self {
            settings,
            dim,
            data,
            squares,
            blocks,
        })
    }

    /// Expected factors, K rows of `dim` numbers.
    pub fn factors(&self, lambda: &[f64]) -> Vec<f64> {
        let mut t = self.blocks.expectations(lambda);
        t.truncate(self.settings.factors * self.dim);
        t
    }
}

impl ConjugateModel for FactorialMixture {
    /// q(z_nk = 1).
    type Scratch = Vec<f64>;

    fn name(&self) -> &'static str {
        "factorial"
    }

    fn points(&self) -> usize {
        self.squares.len()
    }

    fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Factors drawn from their prior, with the precision of a posterior that saw every factor as often as expected.
    ///
    /// In many dimensions draws are far from all points, no factor is ever on, and all stay 0. So they are shortened until
    /// a point two standard deviations along a factor is halfway to it, which is enough where points are many and differ;
    /// a few points of little noise can still leave all factors off.
    fn start(&self, stream: &mut Stream) -> Vec<f64> {
        let (k, dim) = (self.settings.factors, self.dim);
        let mut lambda = self.blocks.prior().to_vec();
        let seen = self.points() as f64 * self.settings.activation / self.settings.noise_variance;
        let precision = 1.0 / self.settings.factor_variance + seen;
        let (b, a) = lambda.split_at_mut(k * dim);
        for i in 0..k {
            a[i * k + i] = precision;
        }
        let deviation = self.settings.factor_variance.sqrt();
        let length = (self.squares.iter().sum::<f64>() / self.points().max(1) as f64).sqrt();
        let scale = (4.0 * length / (dim as f64 * deviation)).min(1.0);
        for x in b {
            *x = precision * scale * deviation * normal(stream);
        }
        lambda
    }

    fn parts(&self) -> Vec<Range<usize>> {
        let dim = self.dim;
        (0..self.settings.factors)
            .map(|i| i * dim..(i + 1) * dim)
            .collect()
    }

    fn memory(&self) -> usize {
        self.settings.factors
    }

    fn local(
        &self,
        expected: &[f64],
        point: usize,
        inverse: f64,
        memory: &mut [f64],
        v: &mut Vec<f64>,
    ) -> Local {
        let (k, dim) = (self.settings.factors, self.dim);
        let precision = 1.0 / self.settings.noise_variance;
        let (means, half) = expected.split_at(k * dim);
        // E[μ_k · μ_l] = −2 times the second statistic.
        let gram = |i: usize, j: usize| -2.0 * half[i * k + j];
        let x = &self.data[point * dim..(point + 1) * dim];
        let dots: Vec<f64> = means.chunks_exact(dim).map(|m| dot(m, x)).collect();
        let prior = special::logit(self.settings.activation);
        let mut local = Local::default();
        for sweep in 1..=SWEEPS {
            let mut moved: f64 = 0.0;
            for i in 0..k {
                let others: f64 = (0..k)
                    .filter(|&j| j != i)
                    .map(|j| memory[j] * gram(i, j))
                    .sum();
                let logit = prior + precision * (dots[i] - 0.5 * gram(i, i) - others);
                let next = special::inv_logit(inverse * logit);
                moved = moved.max((next - memory[i]).abs());
                memory[i] = next;
            }
            local.sweeps = sweep;
            if moved < SETTLED {
                local.converged = true;
                break;
            }
        }
        v.clear();
        v.extend_from_slice(memory);
        let (on, off) = (
            self.settings.activation.ln(),
            (-self.settings.activation).ln_1p(),
        );
        let mut distance = self.squares[point];
        for i in 0..k {
            let others: f64 = (0..i).map(|j| v[j] * gram(i, j)).sum();
            distance += v[i] * (gram(i, i) + 2.0 * others - 2.0 * dots[i]);
            local.energy += v[i] * on + (1.0 - v[i]) * off;
            let part = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
            local.entropy += part(v[i]) + part(1.0 - v[i]);
        }
        local.energy -= 0.5 * precision * distance;
        local.energy -= 0.5 * dim as f64 * (LOG_TWO_PI + self.settings.noise_variance.ln());
        local
    }

    fn add_statistics(&self, point: usize, weight: f64, v: &Vec<f64>, out: &mut [f64]) {
        let (k, dim) = (self.settings.factors, self.dim);
        let w = weight / self.settings.noise_variance;
        let x = &self.data[point * dim..(point + 1) * dim];
        let (b, a) = out.split_at_mut(k * dim);
        for (row, &v) in b.chunks_exact_mut(dim).zip(v) {
            let f = w * v;
            if f > 1e-12 * w {
                row.iter_mut().zip(x).for_each(|(b, x)| *b += f * x);
            }
        }
        for i in 0..k {
            for j in 0..k {
                a[i * k + j] += w * if i == j { v[i] } else { v[i] * v[j] };
            }
        }
    }

    /// The whole density is tempered, the noise's normaliser included:
    /// Σ_k log(π^s + (1−π)^s) + ½ D ((1 − s) log(2π σ_n) − log s). The paper's supplement C leaves the normaliser untempered;
    /// the energy and this function agree in tempering it, so that r is the same.
    fn log_normaliser(&self, _t: &[f64], _size: f64, s: f64) -> f64 {
        let p = self.settings.activation;
        let switches = self.settings.factors as f64 * (p.powf(s) + (1.0 - p).powf(s)).ln();
        let log_noise = LOG_TWO_PI + self.settings.noise_variance.ln();
        switches + 0.5 * self.dim as f64 * ((1.0 - s) * log_noise - s.ln())
    }

    fn normaliser_depends_on_globals(&self) -> bool {
        false
    }
}
