//! Conditionally structured Gaussians. The parameters ω begin with the mean and the lower factor of the global
//! parameters. The next parameters are the weights of the features: one row for the mean of each local parameter, and
//! one row for each entry of the factor of the local parameters. The last parameters are the skewnesses of the local
//! parameters.
//!
//! Global parameters are the coordinates with many second-order neighbours, such as the scales and locations of
//! hierarchies and series. They are Gaussian with a full covariance, `z_h = μ + A x`. Conditional on the global
//! parameters, the local parameters are Gaussian (Tan, Bhaskaran and Nott, *Conditionally structured variational
//! Gaussian approximation with importance weights*, Statistics and Computing 30, 2020). With ε standard normal, they
//! are computed from the last to the first in the order of elimination:
//!
//! ```text
//! z_j = m_j + y_j,    y_j = e^(−a_j) ε_j − Σ_i r_ij y_i    (i after j, at the entries of a sparse Cholesky factor),
//! ```
//!
//! If a local parameter has a skewness g, [`h(ε)`](skew) replaces ε. The family in the paper has no skewness (all g are
//! zero). Without skewness, the conditional precision is `L Lᵀ` with `L_jj = e^(a_j)` and `L_ij = e^(a_j) r_ij`. Its
//! factor L is sparse if the density has few nonzero second derivatives between local parameters. The means, the
//! logarithms of the scales and the regression coefficients are weighted sums of features of x. The features are the
//! constant 1, the function `h(x) = x / (1 + (x/d)¹⁶)^(1/16)`, and products of `s(x) = x / √(1 + x²/c²)`. The function
//! h equals x over almost the whole range of a normal variable, so that a scale can follow a funnel into its neck. The
//! products of s are curved near the middle. For regression coefficients, s replaces h, because coefficients with
//! absolute values above 1 would make the values along a chain grow exponentially. All features are bounded, so the
//! distribution of the local parameters is constant in the long tail of a global parameter.
//!
//! The Jacobian of the map from noise to draws is triangular, so the density is exact. Moments of the features are
//! integrals over a single normal variable.

mod density;
mod passes;
pub(crate) mod skew;

use std::sync::Arc;

use jensen_density::{Lanes, Pattern};

pub(crate) use self::passes::Passes;
use super::Space;
use super::globals::{Features, MOST_GLOBALS, Weights, globals_of};
use crate::reduce::dot;
use crate::sizes::WIDTH;
use crate::sparse::{Colouring, Symbolic};

/// The family of conditionally structured Gaussians.
#[derive(Clone, Debug)]
pub struct Conditional {
    space: Space,
    globals: Vec<usize>,
    locals: Vec<usize>,
    features: Features,
    symbolic: Arc<Symbolic>,
    colouring: Arc<Colouring>,
    pattern: Option<Arc<Pattern>>,
}

impl Conditional {
    /// The number of lanes that a pass over the local parameters takes together: the width of its rows.
    pub(crate) const BLOCK: usize = WIDTH;

    /// Creates the family on a space. If the pattern is unknown or if there are no global parameters, all coordinates
    /// are local parameters.
    pub fn new(space: Space) -> Self {
        let mut globals = space.pattern.as_deref().map_or_else(Vec::new, globals_of);
        globals.truncate(MOST_GLOBALS);
        Self::with_globals(space, globals)
    }

    pub(super) fn with_globals(space: Space, mut globals: Vec<usize>) -> Self {
        globals.sort_unstable();
        let others: Vec<usize> = (0..space.dim)
            .filter(|i| globals.binary_search(i).is_err())
            .collect();
        let pattern = (space.pattern.as_deref()).map(|pattern| among(pattern, &others));
        let (symbolic, colouring) = match &pattern {
            Some(pattern) => (
                Symbolic::new(pattern, usize::MAX).expect("no limit"),
                Colouring::new(pattern),
            ),
            None => (Symbolic::dense(others.len()), Colouring::full(others.len())),
        };
        Self {
            locals: (0..others.len())
                .map(|j| others[symbolic.coordinate(j)])
                .collect(),
            features: Features::new(globals.len()),
            symbolic: Arc::new(symbolic),
            colouring: Arc::new(colouring),
            pattern: pattern.map(Arc::new),
            globals,
            space,
        }
    }

    /// Returns whether the family suits a density on this space. The density must have global parameters, but no more
    /// than the family supports. In addition, the factor of the local parameters must have at most `most` nonzeros.
    pub fn suits(space: &Space, most: usize) -> bool {
        let Some(pattern) = space.pattern.as_deref() else {
            return false;
        };
        let mut globals = globals_of(pattern);
        if globals.is_empty() || globals.len() > MOST_GLOBALS {
            return false;
        }
        globals.sort_unstable();
        let others: Vec<usize> = (0..space.dim)
            .filter(|i| globals.binary_search(i).is_err())
            .collect();
        Symbolic::new(&among(pattern, &others), most).is_some()
    }

    pub(crate) fn globals(&self) -> &[usize] {
        &self.globals
    }

    pub(crate) fn locals(&self) -> &[usize] {
        &self.locals
    }

    pub(crate) fn features(&self) -> &Features {
        &self.features
    }

    pub(crate) fn symbolic(&self) -> &Symbolic {
        &self.symbolic
    }

    /// Returns directions (`dim × columns`). The products of the Hessian with these directions determine the block of
    /// the Hessian for the local parameters.
    pub(crate) fn local_directions(&self) -> Vec<f64> {
        let own = self.colouring.directions();
        let columns = own.len().checked_div(self.locals.len()).unwrap_or(0);
        let mut out = vec![0.0; self.space.dim * columns];
        for (j, &c) in self.locals.iter().enumerate() {
            let row = self.symbolic.coordinate(j);
            out[c * columns..(c + 1) * columns]
                .copy_from_slice(&own[row * columns..(row + 1) * columns]);
        }
        out
    }

    /// Returns the entries of a matrix for pairs of local parameters in the sparsity pattern. `products` (`dim ×
    /// columns`) are the products of the matrix with the [`local_directions`](Self::local_directions).
    pub(crate) fn gathered(&self, products: &[f64]) -> Vec<f64> {
        let columns = products.len() / self.space.dim;
        let mut own = vec![0.0; self.locals.len() * columns];
        for (j, &c) in self.locals.iter().enumerate() {
            let row = self.symbolic.coordinate(j);
            own[row * columns..(row + 1) * columns]
                .copy_from_slice(&products[c * columns..(c + 1) * columns]);
        }
        self.symbolic
            .gathered(&self.colouring, self.pattern.as_deref(), &own)
    }

    fn start(&self) -> usize {
        let k = self.globals.len();
        k + k * (k + 1) / 2
    }

    pub(crate) fn member(
        &self,
        mean: &[f64],
        factor: &[f64],
        weights: &[f64],
        skews: &[f64],
    ) -> Vec<f64> {
        let k = self.globals.len();
        let rows = (0..k).flat_map(|i| factor[i * k..=i * k + i].iter().copied());
        let mut omega: Vec<f64> = mean.to_vec();
        omega.extend(rows);
        omega.extend_from_slice(weights);
        omega.extend_from_slice(skews);
        omega
    }

    fn element(&self, i: usize, k: usize) -> usize {
        self.globals.len() + i * (i + 1) / 2 + k
    }

    fn weights<'a>(&self, omega: &'a [f64]) -> Weights<'a> {
        let count = self.locals.len() * self.features.count();
        let rows = &omega[self.start()..self.end()];
        let (means, nonzeros) = rows.split_at(count);
        Weights { means, nonzeros }
    }

    fn end(&self) -> usize {
        self.start() + (self.locals.len() + self.symbolic.nonzeros()) * self.features.count()
    }

    fn skews<'a>(&self, omega: &'a [f64]) -> Option<&'a [f64]> {
        let skews = &omega[self.end()..];
        skews.iter().any(|g| *g != 0.0).then_some(skews)
    }

    fn stretch(&self, omega: &[f64]) -> Vec<f64> {
        let (f, nonzeros) = (self.features.count(), self.weights(omega).nonzeros);
        let mut out = vec![0.0; f];
        for j in 0..self.locals.len() {
            let p = self.symbolic.diagonal(j);
            for (out, t) in out.iter_mut().zip(&nonzeros[p * f..(p + 1) * f]) {
                *out += t;
            }
        }
        out
    }

    fn global_log_det(&self, omega: &[f64]) -> f64 {
        let diagonal = (0..self.globals.len()).map(|i| omega[self.element(i, i)].abs().ln());
        diagonal.sum()
    }

    pub(crate) fn log_dets(&self, omega: &[f64], noise: Lanes<'_>) -> Vec<f64> {
        let (stretch, constant) = (self.stretch(omega), self.global_log_det(omega));
        let mut x = vec![0.0; self.globals.len()];
        let skews = self.skews(omega).unwrap_or_default();
        let each = (0..noise.lanes()).map(|l| {
            x.iter_mut()
                .enumerate()
                .for_each(|(k, x)| *x = noise.row(k)[l]);
            let features = self.features.at(&x);
            let stretched = stretch.iter().zip(features).map(|(t, f)| t * f);
            let own = skews.iter().zip(x.len()..);
            let own = own.map(|(g, row)| g * noise.row(row)[l]);
            constant - stretched.sum::<f64>() + own.sum::<f64>()
        });
        each.collect()
    }

    fn factor_at(&self, omega: &[f64], x: &[f64]) -> Vec<f64> {
        let (f, nonzeros) = (self.features.count(), self.weights(omega).nonzeros);
        let (plain, bounded) = (self.features.at(x), self.features.bounded_at(x));
        let mut factor: Vec<f64> = nonzeros
            .chunks(f)
            .map(|theta| dot(theta, &bounded))
            .collect();
        for j in 0..self.locals.len() {
            let p = self.symbolic.diagonal(j);
            factor[p] = dot(&nonzeros[p * f..(p + 1) * f], &plain).exp();
            for (q, _) in self.symbolic.below(j) {
                factor[q] *= factor[p];
            }
        }
        // The variance of noise with skewness is not 1.
        for (j, g) in self.skews(omega).unwrap_or_default().iter().enumerate() {
            let own = skew::variance(*g).sqrt();
            factor[self.symbolic.diagonal(j)] /= own;
            for (q, _) in self.symbolic.below(j) {
                factor[q] /= own;
            }
        }
        factor
    }

    fn global_variances(&self, omega: &[f64]) -> Vec<f64> {
        let row = |i: usize| &omega[self.element(i, 0)..=self.element(i, i)];
        (0..self.globals.len())
            .map(|i| dot(row(i), row(i)))
            .collect()
    }
}

fn among(pattern: &Pattern, which: &[usize]) -> Pattern {
    let mut number = vec![u32::MAX; pattern.dim()];
    for (j, &i) in which.iter().enumerate() {
        number[i] = j as u32;
    }
    let list = |i: &usize| {
        let near = pattern.neighbours(*i).iter();
        near.map(|&n| number[n as usize])
            .filter(|n| *n != u32::MAX)
            .collect()
    };
    Pattern::new(which.iter().map(list).collect())
}
