//! Products with the design matrix, for each of its storage formats.

use rayon::prelude::*;

use super::kernels::{
    CHUNK, add_scaled, add_squares, map, multiply, parallelism, short_dot, symmetric_product,
};
use crate::{Dense, Design, Sparse};

pub(crate) fn to_dense(design: &Design, latents: usize) -> Dense {
    match design {
        Design::Dense(w) | Design::Projected(w, _) => w.as_ref().clone(),
        Design::Copies(w) => w.to_dense(),
        Design::Identity => Dense::from_fn(latents, latents, |i, j| f64::from(i == j)),
        Design::Select(index) => {
            let mut w = Dense::zeros(index.len(), latents);
            for (n, &l) in index.iter().enumerate() {
                w.data[l * index.len() + n] = 1.0;
            }
            w
        }
        Design::Sparse(s) => {
            let mut w = Dense::zeros(s.rows, s.cols);
            for j in 0..s.cols {
                let (rows, values) = s.col(j);
                for (&i, &x) in rows.iter().zip(values) {
                    w.data[j * s.rows + i] = x;
                }
            }
            w
        }
    }
}

/// Returns Wᵀ as a sparse matrix. Column n contains the weights of the latent variables in predictor n.
pub(crate) fn to_sparse_transposed(design: &Design, latents: usize) -> Sparse {
    match design {
        Design::Identity => Sparse::identity(latents),
        Design::Select(index) => Sparse {
            rows: latents,
            cols: index.len(),
            col_start: (0..=index.len()).collect(),
            row: index.clone(),
            value: vec![1.0; index.len()],
        },
        Design::Sparse(w) => w.transpose(),
        Design::Copies(w) => w.to_sparse_transposed(),
        Design::Dense(w) | Design::Projected(w, _) => {
            let mut out = Sparse {
                rows: w.cols,
                cols: w.rows,
                col_start: vec![0],
                row: Vec::new(),
                value: Vec::new(),
            };
            for n in 0..w.rows {
                for l in 0..w.cols {
                    let x = w.get(n, l);
                    if x != 0.0 {
                        out.row.push(l);
                        out.value.push(x);
                    }
                }
                out.col_start.push(out.row.len());
            }
            out
        }
    }
}

pub(crate) fn times(design: &Design, z: &[f64]) -> Vec<f64> {
    match design {
        Design::Identity => z.to_vec(),
        Design::Select(index) => index.iter().map(|&l| z[l]).collect(),
        Design::Sparse(w) => w.mul(z),
        Design::Copies(w) => w.times(z),
        Design::Dense(w) | Design::Projected(w, _) => {
            let mut out = vec![0.0; w.rows];
            out.par_chunks_mut(CHUNK)
                .enumerate()
                .for_each(|(c, chunk)| {
                    let start = c * CHUNK;
                    for (l, &zl) in z.iter().enumerate() {
                        let column = &w.col(l)[start..start + chunk.len()];
                        add_scaled(zl, column, chunk);
                    }
                });
            out
        }
    }
}

pub(crate) fn transposed_times_vector(design: &Design, latents: usize, x: &[f64]) -> Vec<f64> {
    match design {
        Design::Identity => x.to_vec(),
        Design::Select(index) => {
            let mut out = vec![0.0; latents];
            for (&l, x) in index.iter().zip(x) {
                out[l] += x;
            }
            out
        }
        Design::Sparse(w) => w.mul_t(x),
        Design::Copies(w) => w.transposed_times_vector(x),
        Design::Dense(w) | Design::Projected(w, _) => {
            // A loop over blocks reads x from memory once instead of once per column.
            let parts: Vec<Vec<f64>> = (0..w.rows.div_ceil(CHUNK))
                .into_par_iter()
                .map(|c| {
                    let rows = c * CHUNK..((c + 1) * CHUNK).min(w.rows);
                    let column = |l| short_dot(&w.col(l)[rows.clone()], &x[rows.clone()]);
                    (0..w.cols).map(column).collect()
                })
                .collect();
            (0..w.cols)
                .map(|l| parts.iter().map(|part| part[l]).sum())
                .collect()
        }
    }
}

pub(crate) fn transposed_times(design: &Design, latents: usize, x: &Dense) -> Dense {
    let columns: Vec<Vec<f64>> = (0..x.cols)
        .map(|j| transposed_times_vector(design, latents, x.col(j)))
        .collect();
    Dense {
        rows: latents,
        cols: x.cols,
        data: columns.concat(),
    }
}

/// Number of rows that are scaled and multiplied at a time. The scaled copy of these rows fits in the cache.
const ROWS: usize = 1024;

/// Computes the weighted Gram matrix Wᵀ diag(weight) W with both triangles. For a dense design, this takes N L²
/// operations.
pub(crate) fn gram(design: &Design, latents: usize, weight: &[f64]) -> Dense {
    let mut out = Dense::zeros(latents, latents);
    match design {
        Design::Identity => {
            for (l, w) in weight.iter().enumerate() {
                out.data[l * latents + l] = *w;
            }
        }
        Design::Select(index) => {
            for (&l, w) in index.iter().zip(weight) {
                out.data[l * latents + l] += w;
            }
        }
        Design::Copies(w) => return w.gram(weight),
        Design::Sparse(_) => {
            let rows = to_sparse_transposed(design, latents);
            for (n, w) in weight.iter().enumerate() {
                let (index, values) = rows.col(n);
                for (&j, &b) in index.iter().zip(values) {
                    for (&i, &a) in index.iter().zip(values) {
                        out.data[j * latents + i] += a * b * w;
                    }
                }
            }
        }
        Design::Dense(w) | Design::Projected(w, _) => {
            // Each task sums a fixed number of chunks, and the sums are then added in order.
            let tasks = w.rows.div_ceil(64 * ROWS).max(8).min(w.rows.div_ceil(ROWS));
            let span = w.rows.div_ceil(ROWS).div_ceil(tasks) * ROWS;
            let parts: Vec<Dense> = (0..w.rows.div_ceil(span))
                .into_par_iter()
                .map(|task| partial_gram(w, weight, task * span, ((task + 1) * span).min(w.rows)))
                .collect();
            for part in parts {
                for (o, p) in out.data.iter_mut().zip(&part.data) {
                    *o += p;
                }
            }
            super::kernels::mirror(&mut out);
        }
    }
    out
}

fn partial_gram(w: &Dense, weight: &[f64], start: usize, end: usize) -> Dense {
    let mut out = Dense::zeros(w.cols, w.cols);
    let mut scaled = Dense::zeros(ROWS.min(end - start), w.cols);
    let mut row = start;
    while row < end {
        let rows = ROWS.min(end - row);
        for l in 0..w.cols {
            let source = &w.col(l)[row..row + rows];
            let target = &mut scaled.data[l * rows..(l + 1) * rows];
            target.copy_from_slice(source);
            multiply(&weight[row..row + rows], target);
        }
        let scaled =
            faer::MatRef::from_column_major_slice(&scaled.data[..rows * w.cols], rows, w.cols);
        symmetric_product(
            out.view_mut(),
            true,
            w.view().subrows(row, rows).transpose(),
            scaled,
            1.0,
            faer::Par::Seq,
        );
        row += rows;
    }
    out
}

/// Computes `|Cᵀ w_n|²` for every row w_n of W, where C has L rows. For a dense design, this takes N L² operations.
pub(crate) fn row_norms(design: &Design, c: &Dense) -> Vec<f64> {
    let of_latent = || -> Vec<f64> {
        let mut out = vec![0.0; c.rows];
        for k in 0..c.cols {
            for (o, x) in out.iter_mut().zip(c.col(k)) {
                *o += x * x;
            }
        }
        out
    };
    match design {
        Design::Identity => of_latent(),
        Design::Select(index) => {
            let norms = of_latent();
            map(index.len(), |n| norms[index[n]])
        }
        Design::Copies(w) => w.row_norms(c),
        Design::Sparse(_) => {
            let rows = to_sparse_transposed(design, c.rows);
            let transposed = super::wide::transpose(c);
            (0..rows.cols)
                .into_par_iter()
                .with_min_len(256)
                .map_init(
                    || vec![0.0; c.cols],
                    |t, n| {
                        t.fill(0.0);
                        let (index, values) = rows.col(n);
                        for (&l, &x) in index.iter().zip(values) {
                            for (t, c) in t.iter_mut().zip(transposed.col(l)) {
                                *t += x * c;
                            }
                        }
                        super::kernels::dot(t, t)
                    },
                )
                .collect()
        }
        Design::Dense(w) | Design::Projected(w, _) => {
            let mut out = vec![0.0; w.rows];
            let sequential = w.rows < ROWS;
            out.par_chunks_mut(ROWS)
                .enumerate()
                .for_each(|(chunk, out)| {
                    let mut t = Dense::zeros(out.len(), c.cols);
                    faer::linalg::matmul::matmul(
                        t.view_mut(),
                        faer::Accum::Replace,
                        w.view().subrows(chunk * ROWS, out.len()),
                        c.view(),
                        1.0,
                        if sequential {
                            parallelism(c.rows)
                        } else {
                            faer::Par::Seq
                        },
                    );
                    for k in 0..c.cols {
                        add_squares(t.col(k), out);
                    }
                });
            out
        }
    }
}

/// Computes W Kᵀ for a matrix K whose rows are vectors of latent variables. The result has one column per row of K.
pub(crate) fn transposed_columns(design: &Design, k: &Dense) -> Dense {
    let transposed = super::wide::transpose(k);
    let columns: Vec<Vec<f64>> = (0..k.rows)
        .into_par_iter()
        .map(|i| times(design, transposed.col(i)))
        .collect();
    Dense {
        rows: columns.first().map_or(0, Vec::len),
        cols: k.rows,
        data: columns.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(rows: usize, latents: usize) -> Vec<(Design, Dense)> {
        let select: Vec<usize> = (0..rows).map(|n| (n * 7) % latents).collect();
        let triplets: Vec<_> = (0..rows)
            .flat_map(|n| [(n, n % latents, 1.5), (n, (n / 2) % latents, -0.5)])
            .collect();
        let sparse = Sparse::from_triplets(rows, latents, &triplets).unwrap();
        let dense = Dense::from_fn(rows, latents, |n, l| ((n * 3 + l * 5) % 11) as f64 - 4.0);
        [
            Design::Select(select),
            Design::Sparse(sparse),
            Design::Dense(dense.into()),
        ]
        .into_iter()
        .map(|design| {
            let w = to_dense(&design, latents);
            (design, w)
        })
        .collect()
    }

    #[test]
    fn every_form_gives_the_same_products() {
        // The design has more rows than one chunk.
        let (rows, latents) = (2 * ROWS + 77, 5);
        let weight: Vec<f64> = (0..rows).map(|n| 0.5 + (n % 5) as f64).collect();
        let z: Vec<f64> = (0..latents).map(|l| l as f64 - 1.3).collect();
        let c = Dense::from_fn(latents, 3, |i, j| (i as f64 - j as f64) / 3.0);
        for (design, w) in forms(rows, latents) {
            let g = gram(&design, latents, &weight);
            for i in 0..latents {
                for j in 0..latents {
                    let expected: f64 = (0..rows)
                        .map(|n| weight[n] * w.get(n, i) * w.get(n, j))
                        .sum();
                    assert!((g.get(i, j) - expected).abs() < 1e-9 * (1.0 + expected.abs()));
                }
            }
            let norms = row_norms(&design, &c);
            let product = times(&design, &z);
            let pulled = transposed_times_vector(&design, latents, &weight);
            let rows_of = to_sparse_transposed(&design, latents);
            for n in 0..rows {
                let norm: f64 = (0..3)
                    .map(|k| {
                        (0..latents)
                            .map(|l| w.get(n, l) * c.get(l, k))
                            .sum::<f64>()
                            .powi(2)
                    })
                    .sum();
                assert!((norms[n] - norm).abs() < 1e-10);
                let sum: f64 = (0..latents).map(|l| w.get(n, l) * z[l]).sum();
                assert!((product[n] - sum).abs() < 1e-11);
                let (index, values) = rows_of.col(n);
                let again: f64 = index.iter().zip(values).map(|(&l, x)| x * z[l]).sum();
                assert!((again - sum).abs() < 1e-11);
            }
            for (l, pulled) in pulled.iter().enumerate() {
                let sum: f64 = (0..rows).map(|n| w.get(n, l) * weight[n]).sum();
                assert!((pulled - sum).abs() < 1e-9);
            }
        }
    }
}
