//! Gaussian processes. The covariance is a sum of products of covariance functions on the rows of a table.

use super::kernel::{Kernel, Shape, for_blocks, sum_blocks};
use super::setting::{self, Setting};
use crate::{
    Covariance, CovarianceSensitivity, Dense, Error, Parameter, Prior, Query, Sensitivity,
    Structure,
};

/// A covariance function with its hyperparameters and the coordinates of the latent variables.
#[derive(Clone, Debug)]
pub struct Factor {
    /// The shape of the covariance function.
    pub shape: Shape,
    /// The variance of the factor, or `None` for a variance of 1.
    pub variance: Option<Setting>,
    /// The lengthscales: either none, a single one for all coordinates, or one per coordinate. The parameter α of a shape
    /// follows them.
    pub lengthscales: Vec<Setting>,
    /// The coordinates of the latent variables, with one row per latent variable and one column per coordinate.
    pub points: Dense,
}

impl Factor {
    fn settings(&self) -> impl Iterator<Item = &Setting> {
        self.variance.iter().chain(&self.lengthscales)
    }

    fn count(&self) -> usize {
        self.settings().count()
    }

    fn kernel<'a>(&self, values: &'a [f64], rows: &Dense, columns: &Dense) -> Kernel<'a> {
        let (variance, lengthscales) = match self.variance {
            Some(_) => (values[0], &values[1..]),
            None => (1.0, values),
        };
        Kernel::new(self.shape, variance, lengthscales, rows, columns)
    }
}

/// A Gaussian process z ~ N(0, Σ), whose covariance Σ is a sum of products of covariance functions, evaluated between
/// the points of the latent variables.
#[derive(Clone, Debug)]
pub struct GaussianProcess {
    terms: Vec<Vec<Factor>>,
    settings: Vec<Setting>,
    latents: usize,
}

impl GaussianProcess {
    /// Creates the process from the terms of its covariance.
    ///
    /// # Errors
    /// Fails if there is no term, or if terms have different numbers of points.
    pub fn new(terms: Vec<Vec<Factor>>) -> Result<Self, Error> {
        let mut factors = terms.iter().flatten();
        let latents = factors.next().map_or(0, |f| f.points.rows);
        if latents == 0 || factors.any(|f| f.points.rows != latents) {
            return Err(Error::Prior(
                "a Gaussian process needs covariance functions on the same points, and at least one of each"
                    .to_owned(),
            ));
        }
        let settings = terms
            .iter()
            .flatten()
            .flat_map(|f| f.settings().cloned())
            .collect();
        Ok(Self {
            terms,
            settings,
            latents,
        })
    }

    /// Returns the factors of all terms in order.
    pub fn factors(&self) -> impl Iterator<Item = &Factor> {
        self.terms.iter().flatten()
    }

    /// Returns all hyperparameters, including fixed ones.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// Returns the kernels of the terms at the hyperparameters `values`. They are evaluated between the points in
    /// `rows` and `columns`, which are given for each factor. By default, both are the points of the latent variables.
    fn kernels<'a>(
        &self,
        values: &'a [f64],
        rows: Option<&[Dense]>,
        columns: Option<&[Dense]>,
    ) -> Vec<Vec<Kernel<'a>>> {
        let (mut at, mut number) = (0, 0);
        let mut kernels = Vec::with_capacity(self.terms.len());
        for term in &self.terms {
            let mut factors = Vec::with_capacity(term.len());
            for factor in term {
                let own = &values[at..at + factor.count()];
                let from = rows.map_or(&factor.points, |rows| &rows[number]);
                let to = columns.map_or(&factor.points, |columns| &columns[number]);
                factors.push(factor.kernel(own, from, to));
                at += factor.count();
                number += 1;
            }
            kernels.push(factors);
        }
        kernels
    }

    fn assemble(kernels: &[Vec<Kernel<'_>>], rows: usize, columns: usize) -> Dense {
        let mut sum = Dense::zeros(rows, columns);
        for_blocks(&mut sum, |block, out| {
            let mut product = vec![0.0; out.len()];
            let mut factor = vec![0.0; out.len()];
            for term in kernels {
                term[0].write(block, &mut product);
                for kernel in &term[1..] {
                    kernel.write(block, &mut factor);
                    product.iter_mut().zip(&factor).for_each(|(p, f)| *p *= f);
                }
                out.iter_mut().zip(&product).for_each(|(o, p)| *o += p);
            }
        });
        sum
    }

    /// Computes the covariances of the latent variables with new points. `points` has one matrix per factor, in the
    /// order of [`factors`](Self::factors).
    ///
    /// # Errors
    /// Fails if θ is outside its range, or if the new points do not have the same coordinates as the latent variables.
    pub fn query(&self, theta: &[f64], points: &[Dense]) -> Result<Query, Error> {
        let values = setting::values(&self.settings, theta)?;
        let rows = self.check(points)?;
        let kernels = self.kernels(&values, Some(points), None);
        let mut variance = vec![0.0; rows];
        for term in &kernels {
            let mut product = vec![1.0; rows];
            for kernel in term {
                (product.iter_mut().zip(kernel.diagonal())).for_each(|(p, k)| *p *= k);
            }
            variance.iter_mut().zip(product).for_each(|(v, p)| *v += p);
        }
        Ok(Query::Cross {
            covariance: Self::assemble(&kernels, rows, self.latents),
            variance,
            mean: vec![0.0; rows],
        })
    }

    /// Computes the covariances among new points. `points` has one matrix per factor, as for [`query`](Self::query).
    ///
    /// # Errors
    /// Fails for the same reasons as [`query`](Self::query).
    pub fn between(&self, theta: &[f64], points: &[Dense]) -> Result<Dense, Error> {
        let values = setting::values(&self.settings, theta)?;
        let rows = self.check(points)?;
        let kernels = self.kernels(&values, Some(points), Some(points));
        Ok(Self::assemble(&kernels, rows, rows))
    }

    /// Returns the number of new points, if their coordinates match those of the latent variables.
    fn check(&self, points: &[Dense]) -> Result<usize, Error> {
        let rows = points.first().map_or(0, |p| p.rows);
        let fits = points.len() == self.factors().count()
            && (self.factors().zip(points)).all(|(f, p)| f.points.cols == p.cols && p.rows == rows);
        match fits {
            true => Ok(rows),
            false => Err(Error::Data(
                "the new points do not have the coordinates of the old ones".to_owned(),
            )),
        }
    }
}

impl Prior for GaussianProcess {
    fn parameters(&self) -> Vec<Parameter> {
        setting::parameters(&self.settings)
    }

    fn structure(&self, theta: &[f64]) -> Result<Structure, Error> {
        let values = setting::values(&self.settings, theta)?;
        let kernels = self.kernels(&values, None, None);
        let mut covariance = Self::assemble(&kernels, self.latents, self.latents);
        // The blocks may round the two triangles differently.
        for j in 0..self.latents {
            for i in j + 1..self.latents {
                covariance.data[i * self.latents + j] = covariance.data[j * self.latents + i];
            }
        }
        Ok(Structure {
            mean: vec![0.0; self.latents],
            covariance: Covariance::Dense(covariance),
        })
    }

    fn gradient(&self, theta: &[f64], _at: &Structure, sensitivity: &Sensitivity) -> Vec<f64> {
        let CovarianceSensitivity::Dense(weights) = &sensitivity.covariance else {
            return vec![f64::NAN; theta.len()];
        };
        let Ok(values) = setting::values(&self.settings, theta) else {
            return vec![f64::NAN; theta.len()];
        };
        let kernels = self.kernels(&values, None, None);
        let by_logarithm = sum_blocks(weights, values.len(), |block, columns| {
            let mut parts = Vec::with_capacity(values.len());
            for (term, own) in kernels.iter().zip(&self.terms) {
                for (i, (kernel, settings)) in term.iter().zip(own).enumerate() {
                    // The weight of a factor is the weight of the sum multiplied by the other factors of the product.
                    let mut own = columns.to_vec();
                    let mut other = vec![0.0; if term.len() > 1 { own.len() } else { 0 }];
                    for (_, factor) in term.iter().enumerate().filter(|(j, _)| *j != i) {
                        factor.write(block, &mut other);
                        own.iter_mut().zip(&other).for_each(|(w, f)| *w *= f);
                    }
                    let all = kernel.contract(block, &own);
                    parts.extend(&all[all.len() - settings.count()..]);
                }
            }
            parts
        });
        let by_value: Vec<f64> = (by_logarithm.iter().zip(&values))
            .map(|(g, v)| g / v)
            .collect();
        setting::free_only(&self.settings, &by_value)
    }
}
