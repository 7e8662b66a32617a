//! Curvature that couples the predictors of one observation.

use super::design;
use crate::{Dense, Design};

/// The matrix D is diagonal, except that it adds `coupling[g] · 11ᵀ` to the block of observation g, whose `size`
/// predictors are adjacent. A scalar site has no coupling.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Block {
    pub size: usize,
    pub coupling: Vec<f64>,
}

impl Block {
    pub(crate) fn add_to(&self, matrix: &mut Dense) {
        for (g, c) in self.coupling.iter().enumerate() {
            let range = g * self.size..(g + 1) * self.size;
            for j in range.clone() {
                for i in j..range.end {
                    matrix.data[j * matrix.rows + i] += c;
                }
            }
        }
    }

    /// Computes κ = `c/(1 + c Σw)` for every block. With it, `D⁻¹ = diag w − κ w wᵀ`.
    fn correction(&self, weight: &[f64]) -> Vec<f64> {
        self.coupling
            .iter()
            .enumerate()
            .map(|(g, c)| {
                let total: f64 = weight[g * self.size..(g + 1) * self.size].iter().sum();
                c / (1.0 + c * total)
            })
            .collect()
    }

    /// Computes D⁻¹ r, where `weight` is the inverse of the diagonal.
    pub(crate) fn inverse_times(&self, weight: &[f64], r: &[f64]) -> Vec<f64> {
        let mut out = super::kernels::map(r.len(), |n| weight[n] * r[n]);
        for (g, kappa) in self.correction(weight).into_iter().enumerate() {
            let range = g * self.size..(g + 1) * self.size;
            let inner: f64 = out[range.clone()].iter().sum();
            for n in range {
                out[n] -= kappa * inner * weight[n];
            }
        }
        out
    }

    /// Converts `Wᵀ diag(weight) W` to `Wᵀ D⁻¹ W`.
    pub(crate) fn subtract_from_gram(&self, w: &Design, weight: &[f64], gram: &mut Dense) {
        if self.coupling.is_empty() {
            return;
        }
        let latents = gram.rows;
        let rows = design::to_sparse_transposed(w, latents);
        let groups = self.coupling.len();
        let mut sums = Dense::zeros(groups, latents);
        for (n, weight) in weight.iter().enumerate() {
            let (index, values) = rows.col(n);
            for (&l, &x) in index.iter().zip(values) {
                sums.data[l * groups + n / self.size] += weight * x;
            }
        }
        let correction = self.correction(weight);
        let down = design::gram(&Design::Dense(sums.into()), latents, &correction);
        for (g, d) in gram.data.iter_mut().zip(&down.data) {
            *g -= d;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear::kernels::{cholesky, solve};

    #[test]
    fn the_inverse_of_blocks_is_that_of_the_matrix() {
        let block = Block {
            size: 3,
            coupling: vec![0.7, 2.0],
        };
        let d = [1.0, 2.0, 0.5, 3.0, 0.2, 1.5];
        let weight: Vec<f64> = d.iter().map(|d| 1.0 / d).collect();
        let mut full = Dense::from_fn(6, 6, |i, j| if i == j { d[i] } else { 0.0 });
        block.add_to(&mut full);
        cholesky(&mut full).unwrap();
        let r = [1.0, -2.0, 0.3, 0.9, 1.1, -0.4];
        let mut expected = r.to_vec();
        solve(&full, &mut expected);
        for (x, e) in block.inverse_times(&weight, &r).iter().zip(&expected) {
            assert!((x - e).abs() < 1e-13);
        }
        let mut gram = design::gram(&Design::Identity, 6, &weight);
        block.subtract_from_gram(&Design::Identity, &weight, &mut gram);
        for j in 0..6 {
            let mut column = vec![0.0; 6];
            column[j] = 1.0;
            solve(&full, &mut column);
            for (i, x) in column.iter().enumerate() {
                assert!((gram.get(i, j) - x).abs() < 1e-13);
            }
        }
    }
}
