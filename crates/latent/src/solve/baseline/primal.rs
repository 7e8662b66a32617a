//! The bound as a function of the mean and the Cholesky factor of the covariance (Challis and Barber 2011).
//!
//! In the whitened coordinates z = μ + R u with Σ = RRᵀ, the approximation is q(u) = N(a, CCᵀ), where C is lower
//! triangular. With U = W R, `m̄ = μ̃ + U a` and `v̄ = diag UCCᵀUᵀ`, and the bound is `−Σ f(m̄, v̄) − ½ (|a|² + |C|² −
//! n) + Σ log C_ii`. One evaluation needs two products of triangular matrices. The starting point is the prior. If
//! exponentials of the prior variances would overflow, the starting point has smaller variances.

use faer::Accum;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use rayon::prelude::*;

use super::lbfgs::Objective;
use super::{Problem, Solution};
use crate::linear::kernels::{dot, parallelism, product, sum};
use crate::linear::{Geometry, design, narrow};
use crate::site::Sites;
use crate::{Covariance, Dense, Error};

/// If the prior variance of a predictor exceeds this value, the starting point is narrowed until the variance is 1.
const VAGUE: f64 = 40.0;

pub(crate) struct Primal<'p, 'm> {
    problem: &'p mut Problem<'m>,
    sites: &'p Sites,
    /// U, which is lower triangular in the wide regime.
    map: Dense,
    structure: BlockStructure,
}

impl<'p, 'm> Primal<'p, 'm> {
    pub(crate) fn new(problem: &'p mut Problem<'m>, sites: &'p Sites) -> Result<Self, Error> {
        let model = problem.model;
        let (map, structure) = match &problem.geometry {
            Geometry::Wide(g) => (
                narrow::root_of(&g.covariance, &mut problem.notes)?,
                BlockStructure::TriangularLower,
            ),
            _ => {
                let w = design::to_dense(&model.design, model.prior.len());
                let map = match &model.prior.covariance {
                    Covariance::Dense(sigma) => {
                        let root = narrow::root_of(sigma, &mut problem.notes)?;
                        let mut out = Dense::zeros(w.rows, w.cols);
                        product(out.view_mut(), false, w.view(), root.view(), 1.0);
                        out
                    }
                    Covariance::Diagonal(v) => {
                        Dense::from_fn(w.rows, w.cols, |i, l| w.get(i, l) * v[l].sqrt())
                    }
                    Covariance::Precision(_) | Covariance::Chain(_) => {
                        return Err(Error::Unsupported(
                            "this solver needs a covariance".to_owned(),
                        ));
                    }
                };
                (map, BlockStructure::Rectangular)
            }
        };
        Ok(Self {
            problem,
            sites,
            map,
            structure,
        })
    }

    /// Unpacks a and C from the coordinates, which contain a followed by the columns of C from the diagonal down.
    fn unpack(&self, x: &[f64]) -> (Vec<f64>, Dense) {
        let n = self.map.cols;
        let mut c = Dense::zeros(n, n);
        let mut from = n;
        for j in 0..n {
            c.data[j * n + j..(j + 1) * n].copy_from_slice(&x[from..from + n - j]);
            from += n - j;
        }
        (x[..n].to_vec(), c)
    }

    fn marginals(&self, a: &[f64], c: &Dense) -> (Vec<f64>, Vec<f64>, Dense) {
        let rows = self.map.rows;
        let mut mean = self.problem.centre.clone();
        for (l, a) in a.iter().enumerate() {
            for (m, u) in mean.iter_mut().zip(self.map.col(l)) {
                *m += a * u;
            }
        }
        let mut uc = Dense::zeros(rows, c.cols);
        triangular::matmul(
            uc.view_mut(),
            self.structure,
            Accum::Replace,
            self.map.view(),
            self.structure,
            c.view(),
            BlockStructure::TriangularLower,
            1.0,
            parallelism(rows),
        );
        let mut variance = vec![0.0; rows];
        for k in 0..c.cols {
            for (v, x) in variance.iter_mut().zip(uc.col(k)) {
                *v += x * x;
            }
        }
        (mean, variance, uc)
    }
}

impl Objective for Primal<'_, '_> {
    fn start(&self) -> Vec<f64> {
        let n = self.map.cols;
        let mut spread = vec![0.0f64; self.map.rows];
        for l in 0..n {
            for (s, u) in spread.iter_mut().zip(self.map.col(l)) {
                *s += u * u;
            }
        }
        let widest = spread.into_iter().fold(0.0, f64::max);
        let scale = if widest > VAGUE {
            (1.0 / widest).sqrt()
        } else {
            1.0
        };
        let mut x = vec![0.0; n];
        for j in 0..n {
            x.push(scale);
            x.extend(std::iter::repeat_n(0.0, n - j - 1));
        }
        x
    }

    fn evaluate(&mut self, x: &[f64]) -> Option<(f64, Vec<f64>)> {
        let n = self.map.cols;
        let (a, c) = self.unpack(x);
        if (0..n).any(|i| c.get(i, i) <= 0.0) {
            return None;
        }
        let (mean, variance, mut uc) = self.marginals(&a, &c);
        let values = self.sites.values(&mean, &variance);
        let squares: f64 = (0..n).map(|j| dot(c.col(j), c.col(j))).sum();
        let logs: f64 = (0..n).map(|i| c.get(i, i).ln()).sum();
        let value =
            -sum(values.len(), |i| values[i].f) - 0.5 * (dot(&a, &a) + squares - n as f64) + logs;
        if !value.is_finite() {
            return None;
        }
        let rows = self.map.rows;
        uc.data.par_chunks_mut(rows).for_each(|column| {
            for (x, v) in column.iter_mut().zip(&values) {
                *x *= 2.0 * v.by_variance;
            }
        });
        let mut by_factor = Dense::zeros(n, n);
        let transposed = match self.structure {
            BlockStructure::TriangularLower => BlockStructure::TriangularUpper,
            other => other,
        };
        triangular::matmul(
            by_factor.view_mut(),
            BlockStructure::TriangularLower,
            Accum::Replace,
            self.map.view().transpose(),
            transposed,
            uc.view(),
            self.structure,
            -1.0,
            parallelism(rows),
        );
        let slopes: Vec<f64> = values.iter().map(|v| v.by_mean).collect();
        let mut gradient: Vec<f64> = (0..n)
            .into_par_iter()
            .map(|l| -dot(self.map.col(l), &slopes) - a[l])
            .collect();
        gradient.reserve(n * (n + 1) / 2);
        for j in 0..n {
            for i in j..n {
                let own = if i == j { 1.0 / c.get(j, j) } else { 0.0 };
                gradient.push(by_factor.get(i, j) - c.get(i, j) + own);
            }
        }
        Some((value, gradient))
    }

    fn solution(&mut self, x: &[f64], value: f64) -> Solution {
        let (a, c) = self.unpack(x);
        let (mean, variance, _) = self.marginals(&a, &c);
        super::solution(self.problem, self.sites, mean, &variance, value)
    }
}
