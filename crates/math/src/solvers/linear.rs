//! Factors of single small complex matrices, used to compute the coefficients of integration methods.

use num_complex::Complex64;

#[derive(Clone, Debug, Default)]
pub(super) struct Factor {
    n: usize,
    lu: Vec<Complex64>,
    pivots: Vec<usize>,
}

impl Factor {
    /// Factors `shift · I − a` for a real column-major matrix `a`. If the matrix is singular, solutions are not finite.
    pub fn shifted(&mut self, shift: Complex64, a: &[f64], n: usize) {
        self.n = n;
        self.lu.clear();
        self.lu.extend(a.iter().map(|x| Complex64::new(-x, 0.0)));
        for i in 0..n {
            self.lu[i * n + i] += shift;
        }
        self.eliminate();
    }

    pub fn of(matrix: Vec<Complex64>, n: usize) -> Self {
        let mut factor = Factor {
            n,
            lu: matrix,
            pivots: Vec::new(),
        };
        factor.eliminate();
        factor
    }

    fn eliminate(&mut self) {
        let n = self.n;
        self.pivots.clear();
        for p in 0..n {
            let size = |i: usize| self.lu[p * n + i].norm_sqr();
            let mut pivot = p;
            for i in p + 1..n {
                if size(i) > size(pivot) {
                    pivot = i;
                }
            }
            self.pivots.push(pivot);
            if pivot != p {
                (0..n).for_each(|j| self.lu.swap(j * n + p, j * n + pivot));
            }
            let inverse = self.lu[p * n + p].inv();
            for i in p + 1..n {
                self.lu[p * n + i] *= inverse;
            }
            for j in p + 1..n {
                let head = self.lu[j * n + p];
                for i in p + 1..n {
                    let step = self.lu[p * n + i] * head;
                    self.lu[j * n + i] -= step;
                }
            }
        }
    }

    pub fn solve(&self, x: &mut [Complex64]) {
        let n = self.n;
        for (p, pivot) in self.pivots.iter().enumerate() {
            x.swap(p, *pivot);
        }
        for j in 0..n {
            let head = x[j];
            let column = &self.lu[j * n..(j + 1) * n];
            for (x, l) in x.iter_mut().zip(column).skip(j + 1) {
                *x -= l * head;
            }
        }
        for j in (0..n).rev() {
            x[j] /= self.lu[j * n + j];
            let head = x[j];
            let column = &self.lu[j * n..(j + 1) * n];
            for (x, u) in x.iter_mut().zip(column).take(j) {
                *x -= u * head;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solutions_satisfy_their_systems() {
        let n = 6;
        let a: Vec<f64> = (0..n * n)
            .map(|k| ((k * k * 7 + 3 * k) % 11) as f64 - 5.0)
            .collect();
        let shift = Complex64::new(0.3, 2.0);
        let mut factor = Factor::default();
        factor.shifted(shift, &a, n);
        let b: Vec<Complex64> = (0..n)
            .map(|i| Complex64::new(i as f64, 1.0 - i as f64))
            .collect();
        let entry = |i: usize, j: usize| {
            let diagonal = if i == j { shift } else { Complex64::ZERO };
            diagonal - a[j * n + i]
        };
        let mut x = b.clone();
        factor.solve(&mut x);
        for (i, b) in b.iter().enumerate() {
            let row: Complex64 = (0..n).map(|j| entry(i, j) * x[j]).sum();
            assert!((row - b).norm() < 1e-12, "row {i}: {row} and {b}");
        }
    }
}
