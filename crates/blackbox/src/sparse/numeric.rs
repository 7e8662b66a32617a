//! Numerical operations on factors with given nonzeros: factorisation, solution for rows of lanes, and selected
//! elements of the inverse.

use super::symbolic::Symbolic;
use crate::reduce::axpy;

/// The end of a linked list, and a row without an entry.
const NONE: u32 = u32::MAX;

impl Symbolic {
    /// Computes the lower Cholesky factor of a symmetric matrix, given the elements of its lower triangle at the
    /// nonzeros. Returns `None` if the matrix is not positive definite. The factorisation is left-looking: each column
    /// is computed from the columns before it.
    pub(crate) fn cholesky(&self, matrix: &[f64]) -> Option<Vec<f64>> {
        let dim = self.dim();
        let mut factor = vec![0.0; self.nonzeros()];
        let mut work = vec![0.0; dim];
        // The linked list contains the columns whose next row is j, each with the nonzero of that row.
        let mut head = vec![NONE; dim];
        let mut link = vec![NONE; dim];
        let mut next: Vec<usize> = self.starts[..dim].iter().map(|s| s + 1).collect();
        for j in 0..dim {
            let nonzeros = self.starts[j]..self.starts[j + 1];
            for p in nonzeros.clone() {
                work[self.rows[p] as usize] = matrix[p];
            }
            let mut k = head[j];
            while k != NONE {
                let column = k as usize;
                let following = link[column];
                let (from, end) = (next[column], self.starts[column + 1]);
                let weight = factor[from];
                for p in from..end {
                    work[self.rows[p] as usize] -= weight * factor[p];
                }
                next[column] = from + 1;
                if from + 1 < end {
                    let row = self.rows[from + 1] as usize;
                    link[column] = std::mem::replace(&mut head[row], k);
                }
                k = following;
            }
            let pivot = work[j];
            if pivot.is_nan() || pivot <= 0.0 || pivot.is_infinite() {
                return None;
            }
            let root = pivot.sqrt();
            factor[nonzeros.start] = root;
            work[j] = 0.0;
            for p in nonzeros.start + 1..nonzeros.end {
                factor[p] = std::mem::take(&mut work[self.rows[p] as usize]) / root;
            }
            if let Some(&row) = self.rows[nonzeros].get(1) {
                link[j] = std::mem::replace(&mut head[row as usize], j as u32);
            }
        }
        Some(factor)
    }

    /// Computes `x ← L⁻¹ x`, where x is a `dim × lanes` matrix with rows in the order of the factor.
    pub(crate) fn solve(&self, factor: &[f64], x: &mut [f64], lanes: usize) {
        for j in 0..self.dim() {
            let (head, tail) = x.split_at_mut((j + 1) * lanes);
            let own = &mut head[j * lanes..];
            let scale = 1.0 / factor[self.diagonal(j)];
            own.iter_mut().for_each(|x| *x *= scale);
            for (p, i) in self.below(j) {
                let start = (i - j - 1) * lanes;
                axpy(-factor[p], own, &mut tail[start..start + lanes]);
            }
        }
    }

    /// Computes `x ← L⁻ᵀ x`.
    pub(crate) fn solve_transposed(&self, factor: &[f64], x: &mut [f64], lanes: usize) {
        for j in (0..self.dim()).rev() {
            let (head, tail) = x.split_at_mut((j + 1) * lanes);
            let own = &mut head[j * lanes..];
            for (p, i) in self.below(j) {
                let start = (i - j - 1) * lanes;
                axpy(-factor[p], &tail[start..start + lanes], own);
            }
            let scale = 1.0 / factor[self.diagonal(j)];
            own.iter_mut().for_each(|x| *x *= scale);
        }
    }

    /// Computes `L x`.
    pub(crate) fn times(&self, factor: &[f64], x: &[f64], lanes: usize) -> Vec<f64> {
        let mut out = vec![0.0; x.len()];
        for j in 0..self.dim() {
            let own = &x[j * lanes..(j + 1) * lanes];
            for (i, &row) in self.column(j).iter().enumerate() {
                let row = row as usize;
                let weight = factor[self.starts[j] + i];
                axpy(weight, own, &mut out[row * lanes..(row + 1) * lanes]);
            }
        }
        out
    }

    /// Computes `Lᵀ x`.
    pub(crate) fn transposed_times(&self, factor: &[f64], x: &[f64], lanes: usize) -> Vec<f64> {
        let mut out = vec![0.0; x.len()];
        for (j, own) in out.chunks_mut(lanes).enumerate() {
            for (i, &row) in self.column(j).iter().enumerate() {
                let row = row as usize;
                let weight = factor[self.starts[j] + i];
                axpy(weight, &x[row * lanes..(row + 1) * lanes], own);
            }
        }
        out
    }

    /// Computes the elements of `(L Lᵀ)⁻¹` at the nonzeros, from the last column to the first (Takahashi, Fagan and
    /// Chen 1973).
    pub(crate) fn selected_inverse(&self, factor: &[f64]) -> Vec<f64> {
        let mut inverse = vec![0.0; self.nonzeros()];
        let mut at = vec![NONE; self.dim()];
        for j in (0..self.dim()).rev() {
            let start = self.starts[j];
            let below = &self.column(j)[1..];
            for (index, &row) in below.iter().enumerate() {
                at[row as usize] = index as u32;
            }
            let weights = &factor[start + 1..self.starts[j + 1]];
            let mut sums = vec![0.0; below.len()];
            for (index, &k) in below.iter().enumerate() {
                // Column k contains the elements of the rows from k down. The same elements are used for the row above,
                // by symmetry.
                let own = self.starts[k as usize];
                for (p, &row) in (own..).zip(self.column(k as usize)) {
                    let other = at[row as usize];
                    if other == NONE {
                        continue;
                    }
                    let other = other as usize;
                    sums[other] += weights[index] * inverse[p];
                    if other != index {
                        sums[index] += weights[other] * inverse[p];
                    }
                }
            }
            let pivot = factor[start];
            let mut diagonal = 1.0 / pivot;
            for (index, sum) in sums.iter().enumerate() {
                inverse[start + 1 + index] = -sum / pivot;
                diagonal += weights[index] * sum / pivot;
            }
            inverse[start] = diagonal / pivot;
            below.iter().for_each(|&row| at[row as usize] = NONE);
        }
        inverse
    }

    /// Computes the elements of the lower triangle of `L Lᵀ` at the nonzeros.
    pub(crate) fn square(&self, factor: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.nonzeros()];
        for k in 0..self.dim() {
            let start = self.starts[k];
            let column = self.column(k);
            for (index, &j) in column.iter().enumerate() {
                let weight = factor[start + index];
                let mut p = self.starts[j as usize];
                for (&row, value) in column[index..].iter().zip(&factor[start + index..]) {
                    while self.rows[p] != row {
                        p += 1;
                    }
                    out[p] += weight * value;
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use jensen_density::Pattern;

    use super::*;
    use crate::dense::cholesky;

    fn example() -> (Symbolic, Vec<f64>, Vec<f64>) {
        let dim = 21;
        let mut lists = vec![Vec::new(); dim];
        let mut pair = |a: usize, b: usize| {
            lists[a].push(b as u32);
            lists[b].push(a as u32);
        };
        for i in 0..20 {
            if i % 5 < 4 {
                pair(i, i + 1);
            }
            if i < 15 {
                pair(i, i + 5);
            }
            pair(i, 20);
        }
        let pattern = Pattern::new(lists);
        let symbolic = Symbolic::new(&pattern, usize::MAX).unwrap();
        let value = |a: usize, b: usize| match a == b {
            true => 8.0 + a as f64 + if a == 20 { 20.0 } else { 0.0 },
            false if pattern.neighbours(a).contains(&(b as u32)) => ((a * b) as f64).sin() - 0.3,
            false => 0.0,
        };
        let mut dense = vec![0.0; dim * dim];
        let mut sparse = vec![0.0; symbolic.nonzeros()];
        for j in 0..dim {
            for i in 0..dim {
                dense[i * dim + j] = value(symbolic.coordinate(i), symbolic.coordinate(j));
            }
            sparse[symbolic.diagonal(j)] = dense[j * dim + j];
            for (p, i) in symbolic.below(j) {
                sparse[p] = dense[i * dim + j];
            }
        }
        (symbolic, dense, sparse)
    }

    #[test]
    fn factors_are_those_of_the_dense_matrix() {
        let (symbolic, dense, sparse) = example();
        let dim = symbolic.dim();
        let expected = cholesky(&dense, dim).unwrap();
        let found = symbolic.cholesky(&sparse).unwrap();
        for j in 0..dim {
            assert!((found[symbolic.diagonal(j)] - expected[j * dim + j]).abs() < 1e-12);
            for (p, i) in symbolic.below(j) {
                assert!((found[p] - expected[i * dim + j]).abs() < 1e-12);
            }
        }
        for (a, b) in symbolic.square(&found).iter().zip(&sparse) {
            assert!((a - b).abs() < 1e-12);
        }
        let mut indefinite = sparse;
        indefinite[symbolic.diagonal(7)] = -1.0;
        assert_eq!(symbolic.cholesky(&indefinite), None);
    }

    #[test]
    fn solutions_and_the_inverse_agree() {
        let (symbolic, dense, sparse) = example();
        let (dim, lanes) = (symbolic.dim(), 3);
        let factor = symbolic.cholesky(&sparse).unwrap();
        let x: Vec<f64> = (0..dim * lanes).map(|i| (0.7 * i as f64).cos()).collect();
        let mut solved = x.clone();
        symbolic.solve(&factor, &mut solved, lanes);
        let back = symbolic.times(&factor, &solved, lanes);
        let mut transposed = x.clone();
        symbolic.solve_transposed(&factor, &mut transposed, lanes);
        let back_transposed = symbolic.transposed_times(&factor, &transposed, lanes);
        for (a, b) in back.iter().chain(&back_transposed).zip(x.iter().chain(&x)) {
            assert!((a - b).abs() < 1e-12);
        }
        // Solving for a unit vector yields a full column of the inverse, which is compared at the selected nonzeros.
        let inverse = symbolic.selected_inverse(&factor);
        for j in 0..dim {
            let mut unit = vec![0.0; dim];
            unit[j] = 1.0;
            symbolic.solve(&factor, &mut unit, 1);
            symbolic.solve_transposed(&factor, &mut unit, 1);
            assert!((inverse[symbolic.diagonal(j)] - unit[j]).abs() < 1e-13);
            for (p, i) in symbolic.below(j) {
                assert!((inverse[p] - unit[i]).abs() < 1e-13);
            }
            let residual: f64 = (0..dim).map(|i| dense[j * dim + i] * unit[i]).sum();
            assert!((residual - 1.0).abs() < 1e-12);
        }
    }
}
