//! Products with [`Copies`] of a dense matrix X.
//!
//! W is the Kronecker product of X and an identity matrix. Products with W, its Gram matrix and the variances of predictors
//! are therefore dense products with X, one for each copy or for each pair of copies. If contrasts of categories replace the
//! predictors, W has one more row for each pair of copies, and the products stay products with X.

use rayon::prelude::*;

use super::design;
use super::kernels::add_squares;
use crate::copies::contrasted;
use crate::{Copies, Dense, Design};

/// Number of observations whose transformed rows a task holds at a time.
const ROWS: usize = 128;

impl Copies {
    fn x(&self) -> Design {
        Design::Dense(self.one.clone())
    }

    /// Every `copies`-th element of a vector, beginning with element k.
    fn of_copy(&self, z: &[f64], k: usize) -> Vec<f64> {
        z.iter().skip(k).step_by(self.copies).copied().collect()
    }

    pub(crate) fn times(&self, z: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.one.rows * self.copies];
        for k in 0..self.copies {
            let own = design::times(&self.x(), &self.of_copy(z, k));
            for (g, x) in own.into_iter().enumerate() {
                out[g * self.copies + k] = x;
            }
        }
        match self.contrasts {
            true => contrasted(&out, self.copies),
            false => out,
        }
    }

    pub(crate) fn transposed_times_vector(&self, x: &[f64]) -> Vec<f64> {
        let mut each = vec![vec![0.0; self.one.rows]; self.copies];
        for (g, own) in x.chunks(self.stride()).enumerate() {
            let (predictors, rest) = own.split_at(self.copies);
            for (each, x) in each.iter_mut().zip(predictors) {
                each[g] += x;
            }
            for ((j, k), x) in self.differences().zip(rest) {
                each[j][g] += x;
                each[k][g] -= x;
            }
        }
        let mut out = vec![0.0; self.cols()];
        for (k, own) in each.iter().enumerate() {
            let sums = design::transposed_times_vector(&self.x(), self.one.cols, own);
            for (l, sum) in sums.into_iter().enumerate() {
                out[l * self.copies + k] = sum;
            }
        }
        out
    }

    /// Returns the weights of each block of the Gram matrix. Block (j, k) belongs to copies j and k.
    fn blocks(&self, weight: &[f64]) -> Vec<((usize, usize), Vec<f64>)> {
        let mut own = vec![vec![0.0; self.one.rows]; self.copies];
        let mut between: Vec<_> = (self.differences())
            .map(|pair| (pair, vec![0.0; self.one.rows]))
            .collect();
        for (g, weight) in weight.chunks(self.stride()).enumerate() {
            let (predictors, rest) = weight.split_at(self.copies);
            for (own, w) in own.iter_mut().zip(predictors) {
                own[g] += w;
            }
            for (((j, k), between), w) in between.iter_mut().zip(rest) {
                own[*j][g] += w;
                own[*k][g] += w;
                between[g] = -w;
            }
        }
        let diagonal = own.into_iter().enumerate().map(|(k, own)| ((k, k), own));
        diagonal.chain(between).collect()
    }

    pub(crate) fn gram(&self, weight: &[f64]) -> Dense {
        let latents = self.cols();
        let blocks: Vec<((usize, usize), Dense)> = self
            .blocks(weight)
            .into_par_iter()
            .map(|(pair, weight)| (pair, design::gram(&self.x(), self.one.cols, &weight)))
            .collect();
        let mut out = Dense::zeros(latents, latents);
        for ((j, k), block) in blocks {
            for b in 0..block.cols {
                for (a, x) in block.col(b).iter().enumerate() {
                    let (row, col) = (a * self.copies + j, b * self.copies + k);
                    out.data[col * latents + row] = *x;
                    out.data[row * latents + col] = *x;
                }
            }
        }
        out
    }

    /// Computes `|Cᵀ w|²` for every row w of W.
    pub(crate) fn row_norms(&self, c: &Dense) -> Vec<f64> {
        let each: Vec<Dense> = (0..self.copies)
            .map(|k| Dense::from_fn(self.one.cols, c.cols, |l, i| c.get(l * self.copies + k, i)))
            .collect();
        let stride = self.stride();
        let mut out = vec![0.0; self.rows()];
        out.par_chunks_mut(ROWS * stride)
            .enumerate()
            .for_each(|(chunk, out)| {
                let rows = out.len() / stride;
                let transformed: Vec<Dense> = each
                    .iter()
                    .map(|c| {
                        let mut t = Dense::zeros(rows, c.cols);
                        faer::linalg::matmul::matmul(
                            t.view_mut(),
                            faer::Accum::Replace,
                            self.one.view().subrows(chunk * ROWS, rows),
                            c.view(),
                            1.0,
                            faer::Par::Seq,
                        );
                        t
                    })
                    .collect();
                let mut write = |nth: usize, norms: &[f64]| {
                    for (r, norm) in norms.iter().enumerate() {
                        out[r * stride + nth] = *norm;
                    }
                };
                for (k, t) in transformed.iter().enumerate() {
                    let mut norms = vec![0.0; rows];
                    (0..t.cols).for_each(|i| add_squares(t.col(i), &mut norms));
                    write(k, &norms);
                }
                for (nth, (j, k)) in self.differences().enumerate() {
                    let mut norms = vec![0.0; rows];
                    for i in 0..c.cols {
                        let (a, b) = (transformed[j].col(i), transformed[k].col(i));
                        for (norm, (a, b)) in norms.iter_mut().zip(a.iter().zip(b)) {
                            *norm += (a - b) * (a - b);
                        }
                    }
                    write(self.copies + nth, &norms);
                }
            });
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_explicit_matrix() {
        let one = Dense::from_fn(2 * ROWS + 9, 3, |n, l| ((n * 3 + l * 5) % 7) as f64 - 3.0);
        let plain = Copies::new(one.into(), 3);
        for copies in [plain.clone(), plain.with_contrasts()] {
            let (rows, latents) = (copies.rows(), copies.cols());
            let explicit = Design::Dense(copies.to_dense().into());
            let z: Vec<f64> = (0..latents).map(|l| l as f64 - 1.3).collect();
            let x: Vec<f64> = (0..rows).map(|n| 0.5 + (n % 5) as f64).collect();
            let c = Dense::from_fn(latents, 4, |i, j| (i as f64 - j as f64) / 3.0);
            let near = |a: &[f64], b: &[f64]| {
                assert_eq!(a.len(), b.len());
                for (a, b) in a.iter().zip(b) {
                    assert!((a - b).abs() < 1e-10 * (1.0 + b.abs()), "{a} {b}");
                }
            };
            near(&copies.times(&z), &design::times(&explicit, &z));
            near(
                &copies.transposed_times_vector(&x),
                &design::transposed_times_vector(&explicit, latents, &x),
            );
            near(
                &copies.gram(&x).data,
                &design::gram(&explicit, latents, &x).data,
            );
            near(&copies.row_norms(&c), &design::row_norms(&explicit, &c));
            let sparse = copies.to_sparse_transposed();
            assert_eq!(
                sparse,
                design::to_sparse_transposed(&explicit, latents),
                "nonzeros"
            );
        }
    }
}
