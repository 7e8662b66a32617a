//! Selected inversion: computes the entries of A⁻¹ on the pattern of its Cholesky factor by Takahashi's recursion,
//! supernode by supernode.
//!
//! A supernode has the columns J, the rows P below them, and the blocks L_JJ and L_PJ of the factor. With Y = L_PJ
//! L_JJ⁻¹, the entries of the inverse are `Z_PJ = −Z_PP Y` and `Z_JJ = (L_JJ L_JJᵀ)⁻¹ − Yᵀ Z_PJ`. Z_PP belongs to
//! supernodes nearer to the root, so supernodes of the same depth are independent and are processed in parallel. The
//! recursion takes as many operations and as much memory as the factorisation.

use faer::linalg::matmul::matmul;
use faer::linalg::triangular_inverse::invert_lower_triangular;
use faer::linalg::triangular_solve::solve_upper_triangular_in_place;
use faer::sparse::linalg::cholesky::supernodal::SymbolicSupernodalCholesky;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

pub(crate) struct Order {
    /// The supernodes grouped by depth, starting with the roots.
    levels: Vec<Vec<usize>>,
    /// The supernode of every (permuted) column.
    owner: Vec<usize>,
}

/// Two blocks are multiplied by plain loops if their product takes fewer multiplications than this.
const SMALL: usize = 2048;

impl Order {
    pub(crate) fn new(symbolic: &SymbolicSupernodalCholesky<usize>) -> Self {
        let count = symbolic.n_supernodes();
        let mut owner = vec![0; symbolic.nrows()];
        for s in 0..count {
            let range = symbolic.supernode_begin()[s]..symbolic.supernode_end()[s];
            owner[range].fill(s);
        }
        let mut depth = vec![0_usize; count];
        let mut levels: Vec<Vec<usize>> = Vec::new();
        for s in (0..count).rev() {
            if let Some(&first) = symbolic.supernode(s).pattern().first() {
                depth[s] = depth[owner[first]] + 1;
            }
            if levels.len() <= depth[s] {
                levels.resize(depth[s] + 1, Vec::new());
            }
            levels[depth[s]].push(s);
        }
        Self { levels, owner }
    }

    /// Returns the position of entry (row, column) of the lower triangle among the factor's values, for permuted
    /// indices. Returns `None` if the entry is outside the pattern.
    pub(crate) fn position(
        &self,
        symbolic: &SymbolicSupernodalCholesky<usize>,
        row: usize,
        column: usize,
    ) -> Option<usize> {
        let s = self.owner[column];
        let (begin, end) = (symbolic.supernode_begin()[s], symbolic.supernode_end()[s]);
        let pattern = symbolic.supernode(s).pattern();
        let local = if row < end {
            row - begin
        } else {
            end - begin + pattern.binary_search(&row).ok()?
        };
        let height = end - begin + pattern.len();
        Some(symbolic.col_ptr_for_val()[s] + (column - begin) * height + local)
    }

    /// Computes the selected inverse. It has the layout of the factor's values, and its diagonal blocks contain both
    /// triangles.
    pub(crate) fn invert(
        &self,
        symbolic: &SymbolicSupernodalCholesky<usize>,
        factor: &[f64],
    ) -> Vec<f64> {
        let mut z = vec![0.0; factor.len()];
        for level in &self.levels {
            let par = if level.len() < 4 {
                Par::rayon(0)
            } else {
                Par::Seq
            };
            let parts: Vec<Vec<f64>> = level
                .par_iter()
                .with_min_len(8)
                .map(|&s| self.supernode(symbolic, factor, &z, s, par))
                .collect();
            for (&s, part) in level.iter().zip(parts) {
                let start = symbolic.col_ptr_for_val()[s];
                z[start..start + part.len()].copy_from_slice(&part);
            }
        }
        z
    }

    fn supernode(
        &self,
        symbolic: &SymbolicSupernodalCholesky<usize>,
        factor: &[f64],
        z: &[f64],
        s: usize,
        par: Par,
    ) -> Vec<f64> {
        let values = symbolic.col_ptr_for_val();
        let (begin, end) = (symbolic.supernode_begin()[s], symbolic.supernode_end()[s]);
        let pattern = symbolic.supernode(s).pattern();
        let (cols, below) = (end - begin, pattern.len());
        let height = cols + below;
        let l = MatRef::from_column_major_slice(&factor[values[s]..values[s + 1]], height, cols);
        let l_jj = l.subrows(0, cols);
        let mut out = vec![0.0; height * cols];
        // The inverse (L_JJ L_JJᵀ)⁻¹.
        let mut inverse = vec![0.0; cols * cols];
        invert_lower_triangular(
            MatMut::from_column_major_slice_mut(&mut inverse, cols, cols),
            l_jj,
            Par::Seq,
        );
        let square = MatRef::from_column_major_slice(&inverse, cols, cols);
        transposed_product(square, square, Accum::Replace, 1.0, &mut out, height, par);
        if below == 0 {
            return out;
        }
        let inner = self.gather(symbolic, z, pattern);
        // The matrix Y = L_PJ L_JJ⁻¹.
        let mut y = vec![0.0; below * cols];
        for j in 0..cols {
            let source = &factor[values[s] + j * height + cols..][..below];
            y[j * below..(j + 1) * below].copy_from_slice(source);
        }
        if cols == 1 {
            let scale = inverse[0];
            y.iter_mut().for_each(|y| *y *= scale);
        } else {
            solve_upper_triangular_in_place(
                l_jj.transpose(),
                MatMut::from_column_major_slice_mut(&mut y, below, cols).transpose_mut(),
                Par::Seq,
            );
        }
        let mut z_pj = vec![0.0; below * cols];
        if below * below * cols < SMALL {
            for j in 0..cols {
                let target = &mut z_pj[j * below..(j + 1) * below];
                for k in 0..below {
                    let scale = y[j * below + k];
                    for (t, x) in target.iter_mut().zip(&inner[k * below..]) {
                        *t -= scale * x;
                    }
                }
            }
        } else {
            matmul(
                MatMut::from_column_major_slice_mut(&mut z_pj, below, cols),
                Accum::Replace,
                MatRef::from_column_major_slice(&inner, below, below),
                MatRef::from_column_major_slice(&y, below, cols),
                -1.0,
                par,
            );
        }
        transposed_product(
            MatRef::from_column_major_slice(&y, below, cols),
            MatRef::from_column_major_slice(&z_pj, below, cols),
            Accum::Add,
            -1.0,
            &mut out,
            height,
            par,
        );
        for j in 0..cols {
            let column = &z_pj[j * below..(j + 1) * below];
            out[j * height + cols..(j + 1) * height].copy_from_slice(column);
        }
        out
    }

    /// Computes Z_PP with both triangles, column by column.
    fn gather(
        &self,
        symbolic: &SymbolicSupernodalCholesky<usize>,
        z: &[f64],
        pattern: &[usize],
    ) -> Vec<f64> {
        let n = pattern.len();
        let mut out = vec![0.0; n * n];
        let mut position = vec![0_usize; n];
        let mut first = 0;
        while first < n {
            let k = self.owner[pattern[first]];
            let (begin, end) = (symbolic.supernode_begin()[k], symbolic.supernode_end()[k]);
            let rows = symbolic.supernode(k).pattern();
            let height = end - begin + rows.len();
            let start = symbolic.col_ptr_for_val()[k];
            let last = first + pattern[first..].partition_point(|&p| p < end);
            for i in first..last {
                position[i] = pattern[i] - begin;
            }
            // Both lists ascend, and the rows of an ancestor include those of the supernode beyond it.
            let mut at = 0;
            for i in last..n {
                while rows[at] != pattern[i] {
                    at += 1;
                }
                position[i] = end - begin + at;
            }
            for j in first..last {
                let column = &z[start + position[j] * height..][..height];
                for i in j..n {
                    let x = column[position[i]];
                    out[j * n + i] = x;
                    out[i * n + j] = x;
                }
            }
            first = last;
        }
        out
    }
}

/// Computes `scale · aᵀ b` and writes it to the leading square block of `out`, or adds it to this block. The columns of
/// `out` have `height` elements.
fn transposed_product(
    a: MatRef<'_, f64>,
    b: MatRef<'_, f64>,
    accumulate: Accum,
    scale: f64,
    out: &mut [f64],
    height: usize,
    par: Par,
) {
    let (rows, cols) = (a.nrows(), a.ncols());
    if rows * cols * cols < SMALL {
        for j in 0..cols {
            for i in 0..cols {
                let sum: f64 = (0..rows).map(|k| a[(k, i)] * b[(k, j)]).sum();
                let target = &mut out[j * height + i];
                *target = match accumulate {
                    Accum::Add => *target + scale * sum,
                    Accum::Replace => scale * sum,
                };
            }
        }
        return;
    }
    let target = MatMut::from_column_major_slice_mut(out, height, cols).subrows_mut(0, cols);
    matmul(target, accumulate, a.transpose(), b, scale, par);
}
