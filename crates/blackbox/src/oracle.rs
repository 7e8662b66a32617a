//! Stochastic estimates of the ELBO and its gradient for given noise.
//!
//! With z = T(ω, ε), the ELBO is `L(ω) = E[log p(z)] + H(ω) = E[log p(z) − log q_ω(z)]`. Its gradient has two
//! estimators:
//!
//! * *naive*: `Jᵀ ∇log p(z) + ∇H(ω)`, with the entropy in closed form (Kingma and Welling 2014, Kucukelbir et al.
//!   2017);
//! * *sticking the landing*: the path derivative `Jᵀ (∇log p(z) − ∇log q(z))` alone, which has zero variance if q = p
//!   (Roeder, Wu and Duvenaud 2017).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jensen_density::{Lanes, LanesMut, LogDensity};
use jensen_run::SettingError;
use serde::{Deserialize, Serialize};

use crate::calls::Calls;
use crate::family::Family;
use crate::noise::{NoisePurpose, NoiseSource};
use crate::reduce::mean_se;

/// The estimator of the gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Estimator {
    /// The reparameterisation gradient, with the entropy in closed form.
    Naive,
    /// The path derivative alone, which is known as sticking the landing.
    Stl,
}

impl fmt::Display for Estimator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Naive => "naive",
            Self::Stl => "stl",
        })
    }
}

impl FromStr for Estimator {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        match text {
            "naive" => Ok(Self::Naive),
            "stl" => Ok(Self::Stl),
            _ => Err(SettingError::new(format!(
                "unknown estimator `{text}`; expected naive or stl"
            ))),
        }
    }
}

/// An estimate with its Monte-Carlo standard error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value of the estimate, which is a mean over draws.
    pub mean: f64,
    /// The standard error of `mean`. It is infinite if fewer than two draws are valid.
    pub standard_error: f64,
}

impl Estimate {
    pub(crate) const UNKNOWN: Self = Self {
        mean: f64::NAN,
        standard_error: f64::NAN,
    };

    pub(crate) fn of(values: &[f64]) -> Self {
        let (mean, standard_error) = mean_se(values);
        Self {
            mean,
            standard_error,
        }
    }
}

/// The noise for one purpose and one iteration.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// The source of random numbers for a seed.
    pub source: NoiseSource,
    /// The purpose of the draws.
    pub purpose: NoisePurpose,
    /// The iteration to which the noise belongs.
    pub iteration: u64,
}

impl Stream {
    /// Generates a `rows × lanes` matrix of normal numbers, starting with lane `first` of the stream.
    pub fn lanes(&self, first: usize, rows: usize, lanes: usize) -> Vec<f64> {
        let mut out = vec![0.0; rows * lanes];
        self.source.fill(
            self.purpose,
            self.iteration,
            first as u64,
            rows,
            lanes,
            &mut out,
        );
        out
    }
}

/// An estimate of a gradient fails after this many replaced draws per requested draw, as in Stan.
const RETRIES: usize = 10;

/// An evaluator of a density at the draws of a family. It makes one call of the density per batch.
pub struct Oracle<'a, D: LogDensity> {
    density: &'a D,
    family: Arc<dyn Family>,
    workspace: D::Workspace,
    capacity: usize,
    z: Vec<f64>,
    grad: Vec<f64>,
    score: Vec<f64>,
    calls: Calls,
}

impl<'a, D: LogDensity> Oracle<'a, D> {
    /// Creates an oracle. Its scratch memory grows to the size of the largest batch.
    pub fn new(density: &'a D, family: Arc<dyn Family>) -> Self {
        Self {
            density,
            family,
            workspace: density.workspace(1),
            capacity: 1,
            z: Vec::new(),
            grad: Vec::new(),
            score: Vec::new(),
            calls: Calls::default(),
        }
    }

    pub(crate) fn work(&self) -> Option<u64> {
        self.density.work()
    }

    /// Returns the family of the oracle.
    pub fn family(&self) -> &Arc<dyn Family> {
        &self.family
    }

    /// Returns the number of evaluations so far and resets it.
    pub fn take_calls(&mut self) -> Calls {
        std::mem::take(&mut self.calls)
    }

    fn prepare(&mut self, omega: &[f64], noise: Lanes<'_>) {
        let lanes = noise.lanes();
        if lanes > self.capacity {
            self.workspace = self.density.workspace(lanes);
            self.capacity = lanes;
        }
        let size = self.family.dim() * lanes;
        self.z.resize(size, 0.0);
        let z = LanesMut::new(&mut self.z, self.family.dim(), lanes);
        self.family.transform(omega, noise, z);
    }

    pub(crate) fn draws(&self, lanes: usize) -> Lanes<'_> {
        Lanes::new(&self.z, self.family.dim(), lanes)
    }

    /// Computes the log density at draws of the member with parameters `omega`. The draws are generated from `noise`.
    pub fn log_density(&mut self, omega: &[f64], noise: Lanes<'_>) -> Vec<f64> {
        self.prepare(omega, noise);
        let mut values = vec![0.0; noise.lanes()];
        let z = Lanes::new(&self.z, self.family.dim(), noise.lanes());
        self.density.value(&mut self.workspace, z, &mut values);
        self.calls.values += noise.lanes() as u64;
        values
    }

    /// Computes `log p − log q` at draws of the member with parameters `omega`. The draws are generated from `noise`.
    /// These are the log importance weights, and their mean is an estimate of the ELBO.
    pub fn log_weights(&mut self, omega: &[f64], noise: Lanes<'_>) -> Vec<f64> {
        let mut weights = self.log_density(omega, noise);
        let mut log_q = vec![0.0; noise.lanes()];
        let z = Lanes::new(&self.z, self.family.dim(), noise.lanes());
        self.family.log_density(omega, noise, z, &mut log_q);
        for (w, q) in weights.iter_mut().zip(&log_q) {
            *w -= q;
        }
        weights
    }

    /// Computes `log p − log q` for the parameters `to` minus `log p − log q` for the parameters `from`, in each lane.
    pub fn lane_differences(&mut self, from: &[f64], to: &[f64], noise: Lanes<'_>) -> Vec<f64> {
        let before = self.log_weights(from, noise);
        let mut difference = self.log_weights(to, noise);
        for (a, b) in difference.iter_mut().zip(&before) {
            *a -= b;
        }
        difference
    }

    /// Estimates the difference in the ELBO, `L(to) − L(from)`, with the same noise for both. If the value of a lane is
    /// not finite for either parameter vector, the function omits the lane and counts it.
    pub fn matched_difference(
        &mut self,
        from: &[f64],
        to: &[f64],
        noise: Lanes<'_>,
    ) -> (Estimate, usize) {
        let difference = self.lane_differences(from, to, noise);
        let kept: Vec<f64> = difference.into_iter().filter(|x| x.is_finite()).collect();
        (Estimate::of(&kept), noise.lanes() - kept.len())
    }

    /// Writes the *sum* of the gradient estimates over lanes to `out`, without the gradient of the entropy. Lanes whose
    /// value or gradient is not finite are omitted. Returns the number of lanes in the sum.
    fn pull_sum(
        &mut self,
        estimator: Estimator,
        omega: &[f64],
        noise: Lanes<'_>,
        out: &mut [f64],
    ) -> usize {
        self.prepare(omega, noise);
        let (dim, lanes) = (self.family.dim(), noise.lanes());
        self.grad.resize(dim * lanes, 0.0);
        let z = Lanes::new(&self.z, dim, lanes);
        let mut values = vec![0.0; lanes];
        let grad = LanesMut::new(&mut self.grad, dim, lanes);
        self.density
            .value_grad(&mut self.workspace, z, &mut values, grad);
        self.calls.gradients += lanes as u64;
        if estimator == Estimator::Stl {
            self.score.resize(dim * lanes, 0.0);
            let score = LanesMut::new(&mut self.score, dim, lanes);
            self.family.score(omega, noise, z, score);
            for (g, s) in self.grad.iter_mut().zip(&self.score) {
                *g -= s;
            }
        }
        let mut good: Vec<bool> = values.iter().map(|v| v.is_finite()).collect();
        for row in self.grad.chunks(lanes) {
            for (ok, g) in good.iter_mut().zip(row) {
                *ok &= g.is_finite();
            }
        }
        let count = good.iter().filter(|&&ok| ok).count();
        if count < lanes {
            for row in self.grad.chunks_mut(lanes) {
                for (g, ok) in row.iter_mut().zip(&good) {
                    *g = if *ok { *g } else { 0.0 };
                }
            }
        }
        let grad = Lanes::new(&self.grad, dim, lanes);
        self.family.pull(omega, noise, grad, out);
        count
    }

    /// Returns the naive gradient of the ELBO from exactly `draws` draws of a stream. As in Stan, a draw that is not
    /// finite is replaced by the next draw of the stream.
    ///
    /// # Errors
    /// Fails if the number of replaced draws reaches ten times `draws`. The error is that number.
    pub fn gradient_replacing(
        &mut self,
        omega: &[f64],
        stream: Stream,
        draws: usize,
        out: &mut [f64],
    ) -> Result<(), usize> {
        let rows = self.family.noise_dim();
        out.fill(0.0);
        let (mut kept, mut asked) = (0, 0);
        while kept < draws {
            let lanes = draws - kept;
            let noise = stream.lanes(asked, rows, lanes);
            let noise = Lanes::new(&noise, rows, lanes);
            kept += self.pull_sum(Estimator::Naive, omega, noise, out);
            asked += lanes;
            if asked - kept >= RETRIES * draws {
                return Err(asked - kept);
            }
        }
        out.iter_mut().for_each(|x| *x /= draws as f64);
        self.family.add_entropy_gradient(omega, out);
        Ok(())
    }

    /// Returns an estimate of the ELBO from exactly `draws` draws of a stream: their mean log density plus the entropy.
    /// As in Stan, a draw that is not finite is replaced by the next draw of the stream.
    ///
    /// # Errors
    /// Fails if the number of replaced draws reaches `draws`. The error is that number.
    pub fn bound_replacing(
        &mut self,
        omega: &[f64],
        stream: Stream,
        draws: usize,
    ) -> Result<Estimate, usize> {
        let rows = self.family.noise_dim();
        let mut values = Vec::with_capacity(draws);
        let mut asked = 0;
        while values.len() < draws {
            let lanes = draws - values.len();
            let noise = stream.lanes(asked, rows, lanes);
            let batch = self.log_density(omega, Lanes::new(&noise, rows, lanes));
            values.extend(batch.into_iter().filter(|v| v.is_finite()));
            asked += lanes;
            if asked - values.len() >= draws {
                return Err(asked - values.len());
            }
        }
        let estimate = Estimate::of(&values);
        Ok(Estimate {
            mean: estimate.mean + self.family.entropy(omega),
            ..estimate
        })
    }

    /// Computes the gradient of the ELBO, averaged over the valid lanes. Returns the number of valid lanes. If no lane
    /// is valid, `out` contains only the gradient of the entropy (or zero for sticking the landing).
    pub fn gradient(
        &mut self,
        estimator: Estimator,
        omega: &[f64],
        noise: Lanes<'_>,
        out: &mut [f64],
    ) -> usize {
        out.fill(0.0);
        let count = self.pull_sum(estimator, omega, noise, out);
        out.iter_mut().for_each(|x| *x /= count.max(1) as f64);
        if estimator == Estimator::Naive {
            self.family.add_entropy_gradient(omega, out);
        }
        count
    }
}
