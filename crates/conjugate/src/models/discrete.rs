//! Components over binary vectors and over vectors of counts.

use crate::family::ExponentialFamily;
use crate::models::mixture::Components;

/// Components of independent binary variables with Beta priors; values that are missing at random drop out.
pub struct Bernoullis {
    dim: usize,
    concentration: f64,
    data: Vec<Option<bool>>,
}

impl Bernoullis {
    /// Components over rows of `dim` binary values, with Beta(½, ½) priors (Jeffreys').
    pub fn new(dim: usize, data: Vec<bool>) -> Self {
        Self::with_prior(dim, 0.5, data.into_iter().map(Some).collect())
    }

    /// Components over rows of `dim` binary values, of which some may be missing, with Beta(`concentration`,
    /// `concentration`) priors.
    pub fn with_prior(dim: usize, concentration: f64, data: Vec<Option<bool>>) -> Self {
        Self {
            dim,
            concentration,
            data,
        }
    }

    /// The known values of a point, with their columns.
    fn known(&self, point: usize) -> impl Iterator<Item = (usize, bool)> + '_ {
        let row = &self.data[point * self.dim..(point + 1) * self.dim];
        row.iter().enumerate().filter_map(|(d, x)| Some((d, (*x)?)))
    }

    /// Expected probabilities of a component from its natural parameters.
    pub fn probabilities(&self, lambda: &[f64]) -> Vec<f64> {
        lambda
            .chunks_exact(2)
            .map(|l| l[0] / (l[0] + l[1]))
            .collect()
    }
}

impl Components for Bernoullis {
    fn name(&self) -> &'static str {
        "bernoulli"
    }

    fn points(&self) -> usize {
        self.data.len() / self.dim
    }

    /// 0 where nothing is known of a point.
    fn size(&self, point: usize) -> f64 {
        f64::from(u8::from(self.known(point).next().is_some()))
    }

    fn prior(&self) -> Vec<(ExponentialFamily, Vec<f64>)> {
        let parameters = vec![self.concentration; 2];
        vec![(ExponentialFamily::Dirichlet { n: 2 }, parameters); self.dim]
    }

    fn log_density(&self, t: &[f64], point: usize) -> f64 {
        let terms = self.known(point);
        terms.map(|(d, x)| t[2 * d + usize::from(!x)]).sum()
    }

    fn add(&self, point: usize, weight: f64, out: &mut [f64]) {
        for (d, x) in self.known(point) {
            out[2 * d + usize::from(!x)] += weight;
        }
    }

    fn log_power(&self, t: &[f64], _size: f64, s: f64) -> f64 {
        t.chunks_exact(2)
            .map(|t| jensen_math::special::log_sum_exp(s * t[0], s * t[1]))
            .sum()
    }
}

/// Components over vectors of counts, as sequences of draws in a given order (without the multinomial coefficient), with
/// symmetric Dirichlet priors.
pub struct Multinomials {
    dim: usize,
    concentration: f64,
    data: Vec<f64>,
}

impl Multinomials {
    /// Components over rows of `dim` counts with Dirichlet(`concentration`, …) priors.
    pub fn new(dim: usize, concentration: f64, data: Vec<f64>) -> Self {
        Self {
            dim,
            concentration,
            data,
        }
    }

    fn row(&self, point: usize) -> &[f64] {
        &self.data[point * self.dim..(point + 1) * self.dim]
    }

    /// Expected proportions of a component from its natural parameters.
    pub fn proportions(&self, lambda: &[f64]) -> Vec<f64> {
        let total: f64 = lambda.iter().sum();
        lambda.iter().map(|x| x / total).collect()
    }
}

impl Components for Multinomials {
    fn name(&self) -> &'static str {
        "multinomial"
    }

    fn points(&self) -> usize {
        self.data.len() / self.dim
    }

    fn size(&self, point: usize) -> f64 {
        self.row(point).iter().sum()
    }

    fn prior(&self) -> Vec<(ExponentialFamily, Vec<f64>)> {
        vec![(
            ExponentialFamily::Dirichlet { n: self.dim },
            vec![self.concentration; self.dim],
        )]
    }

    fn log_density(&self, t: &[f64], point: usize) -> f64 {
        let terms = self.row(point).iter().zip(t);
        terms.filter(|(n, _)| **n > 0.0).map(|(n, t)| n * t).sum()
    }

    fn add(&self, point: usize, weight: f64, out: &mut [f64]) {
        for (o, n) in out.iter_mut().zip(self.row(point)) {
            *o += weight * n;
        }
    }

    fn log_power(&self, t: &[f64], size: f64, s: f64) -> f64 {
        let logs: Vec<f64> = t.iter().map(|t| s * t).collect();
        size * jensen_math::special::log_sum_exp_slice(&logs)
    }
}
