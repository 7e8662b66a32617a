//! The coefficients of Radau IIA collocation with an odd number of stages.
//!
//! The source is Hairer and Wanner, *Solving Ordinary Differential Equations II*, sections IV.5 and IV.8. The nodes c
//! are the roots of `P_s − P_{s−1}` on [0, 1]. The matrix A contains integrals of the Lagrange polynomials of the
//! nodes. The eigenvalues of A⁻¹ split the linear system of Newton's method into smaller systems (equation 8.13). The
//! error estimate compares the solution with a second solution of order s (equation 8.19). The formula for the second
//! solution also uses the slope at the start of the step, with the real eigenvalue of A as its weight.

use std::sync::OnceLock;

use num_complex::Complex64;

use super::linear::Factor;

#[derive(Debug)]
pub(super) struct Collocation {
    /// The number s of stages. The order of the method is 2 s − 1.
    pub stages: usize,
    /// The nodes of the method. The last node is 1.
    pub nodes: Vec<f64>,
    /// The inverse A⁻¹ of the coefficient matrix, in row-major order.
    pub inverse: Vec<f64>,
    /// The eigenvalues of A⁻¹. The real eigenvalue comes first, followed by one eigenvalue of each conjugate pair.
    pub eigenvalues: Vec<Complex64>,
    /// The eigenvectors of A⁻¹: `vectors[k][i]` is element i of eigenvector k.
    pub vectors: Vec<Vec<Complex64>>,
    /// The rows of the inverse of the matrix of eigenvectors.
    pub duals: Vec<Vec<Complex64>>,
    pub error: Vec<f64>,
    /// The coefficients of the collocation polynomial. It is 0 at the start of the step and interpolates the stages.
    /// Row k − 1 contains the weight of each stage in the coefficient of power k.
    pub monomials: Vec<f64>,
}

impl Collocation {
    /// Returns the method with three or five stages. Each method is computed only once.
    pub fn with(stages: usize) -> &'static Collocation {
        static THREE: OnceLock<Collocation> = OnceLock::new();
        static FIVE: OnceLock<Collocation> = OnceLock::new();
        if stages == 3 {
            THREE.get_or_init(|| Collocation::new(3))
        } else {
            FIVE.get_or_init(|| Collocation::new(5))
        }
    }

    fn new(s: usize) -> Collocation {
        let nodes = nodes(s);
        // The moment equations are Σ_j a_ij c_j^k = c_i^(k+1) / (k + 1).
        let vandermonde: Vec<Complex64> = (0..s * s)
            .map(|at| Complex64::new(nodes[at / s].powi((at % s) as i32), 0.0))
            .collect();
        // Column j of the system contains the powers of node j.
        let powers = Factor::of(vandermonde, s);
        let weights = |moment: &dyn Fn(i32) -> f64| -> Vec<f64> {
            let mut x: Vec<Complex64> = (0..s as i32)
                .map(|k| Complex64::new(moment(k), 0.0))
                .collect();
            powers.solve(&mut x);
            x.iter().map(|w| w.re).collect()
        };
        let a: Vec<Vec<f64>> = nodes
            .iter()
            .map(|c| weights(&|k| c.powi(k + 1) / f64::from(k + 1)))
            .collect();
        // The matrix A is column-major, so solving for unit vectors yields the columns of A⁻¹.
        let matrix: Vec<Complex64> = (0..s * s)
            .map(|at| Complex64::new(a[at % s][at / s], 0.0))
            .collect();
        let factor = Factor::of(matrix, s);
        let mut inverse = vec![0.0; s * s];
        for j in 0..s {
            let mut unit = vec![Complex64::ZERO; s];
            unit[j] = Complex64::ONE;
            factor.solve(&mut unit);
            (0..s).for_each(|i| inverse[i * s + j] = unit[i].re);
        }
        let eigenvalues = eigenvalues(&inverse, s);
        let vectors: Vec<Vec<Complex64>> = eigenvalues
            .iter()
            .map(|value| eigenvector(&inverse, s, *value))
            .collect();
        let duals = duals(&eigenvalues, &vectors, s);
        let gamma = 1.0 / eigenvalues[0].re;
        let embedded = weights(&|k| 1.0 / f64::from(k + 1) - if k == 0 { gamma } else { 0.0 });
        let error = (0..s)
            .map(|j| {
                (0..s)
                    .map(|i| (embedded[i] - a[s - 1][i]) * inverse[i * s + j])
                    .sum()
            })
            .collect();
        let mut monomials = vec![0.0; s * s];
        let through = Factor::of(
            (0..s * s)
                .map(|at| Complex64::new(nodes[at % s].powi((at / s) as i32 + 1), 0.0))
                .collect(),
            s,
        );
        for i in 0..s {
            let mut unit = vec![Complex64::ZERO; s];
            unit[i] = Complex64::ONE;
            through.solve(&mut unit);
            (0..s).for_each(|k| monomials[k * s + i] = unit[k].re);
        }
        Collocation {
            stages: s,
            nodes,
            inverse,
            eigenvalues,
            vectors,
            duals,
            error,
            monomials,
        }
    }

    /// Returns the number of eigenvalues that a stored eigenvalue represents: 2 for a conjugate pair, and 1 for the
    /// real eigenvalue.
    pub fn multiplicity(k: usize) -> f64 {
        if k == 0 { 1.0 } else { 2.0 }
    }
}

/// Returns the roots of `P_s − P_{s−1}` in ascending order, mapped to [0, 1]. Bisection between sign changes locates
/// the roots, and Newton's method refines them.
fn nodes(s: usize) -> Vec<f64> {
    let value = |x: f64| {
        let (mut before, mut now) = (1.0, x);
        for k in 1..s {
            let k = k as f64;
            (before, now) = (now, ((2.0 * k + 1.0) * x * now - k * before) / (k + 1.0));
        }
        now - before
    };
    let grid = 1000;
    let at = |k: usize| -1.0 + 1.999 * k as f64 / grid as f64;
    let mut roots = Vec::new();
    for k in 0..grid {
        let (mut low, mut high) = (at(k), at(k + 1));
        if (value(low) < 0.0) == (value(high) < 0.0) {
            continue;
        }
        while high - low > 4.0 * f64::EPSILON {
            let middle = 0.5 * (low + high);
            if (value(middle) < 0.0) == (value(low) < 0.0) {
                low = middle;
            } else {
                high = middle;
            }
            if middle == low && middle == high {
                break;
            }
        }
        roots.push(0.5 * (1.0 + 0.5 * (low + high)));
    }
    roots.push(1.0);
    assert_eq!(roots.len(), s, "a polynomial of degree s has s roots");
    roots
}

/// Returns the distinct eigenvalues of a real matrix that has exactly one real eigenvalue. The Durand-Kerner iteration
/// computes them as the roots of the characteristic polynomial. The real eigenvalue comes first, followed by the
/// eigenvalues with positive imaginary part.
fn eigenvalues(a: &[f64], n: usize) -> Vec<Complex64> {
    // The algorithm of Faddeev and LeVerrier yields the coefficients, starting with the leading one.
    let mut coefficients = vec![1.0];
    let mut m = vec![0.0; n * n];
    for k in 1..=n {
        let last = coefficients[k - 1];
        (0..n).for_each(|i| m[i * n + i] += last);
        let mut product = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                product[i * n + j] = (0..n).map(|l| a[i * n + l] * m[l * n + j]).sum();
            }
        }
        m = product;
        let trace: f64 = (0..n).map(|i| m[i * n + i]).sum();
        coefficients.push(-trace / k as f64);
    }
    let radius = coefficients[n].abs().powf(1.0 / n as f64);
    let mut roots: Vec<Complex64> = (0..n)
        .map(|k| Complex64::from_polar(radius, 0.4 + k as f64 * 2.4))
        .collect();
    for _ in 0..200 {
        for k in 0..n {
            let x = roots[k];
            let value = coefficients
                .iter()
                .fold(Complex64::ZERO, |sum, c| sum * x + c);
            let others: Complex64 = (0..n).filter(|j| *j != k).map(|j| x - roots[j]).product();
            roots[k] = x - value / others;
        }
    }
    let mut kept: Vec<Complex64> = roots.into_iter().filter(|r| r.im > -1e-6).collect();
    kept.sort_by(|x, y| x.im.total_cmp(&y.im));
    kept[0].im = 0.0;
    kept
}

/// Computes an eigenvector by inverse iteration, scaled so that its last element is 1.
fn eigenvector(a: &[f64], n: usize, value: Complex64) -> Vec<Complex64> {
    let columns: Vec<f64> = (0..n * n).map(|at| a[(at % n) * n + at / n]).collect();
    let mut factor = Factor::default();
    factor.shifted(value * (1.0 + 1e-10), &columns, n);
    let mut x = vec![Complex64::ONE; n];
    for _ in 0..4 {
        factor.solve(&mut x);
        let last = x[n - 1];
        x.iter_mut().for_each(|x| *x /= last);
    }
    if value.im == 0.0 {
        x.iter_mut().for_each(|x| x.im = 0.0);
    }
    x
}

/// Returns the rows of the inverse matrix that belong to the stored eigenvalues. The other rows are not needed.
fn duals(values: &[Complex64], vectors: &[Vec<Complex64>], n: usize) -> Vec<Vec<Complex64>> {
    let mut columns: Vec<Complex64> = Vec::new();
    let mut slots = Vec::new();
    for (value, vector) in values.iter().zip(vectors) {
        slots.push(columns.len() / n);
        columns.extend_from_slice(vector);
        if value.im != 0.0 {
            columns.extend(vector.iter().map(|x| x.conj()));
        }
    }
    let factor = Factor::of(columns, n);
    let mut rows = vec![vec![Complex64::ZERO; n]; values.len()];
    for j in 0..n {
        let mut unit = vec![Complex64::ZERO; n];
        unit[j] = Complex64::ONE;
        factor.solve(&mut unit);
        for (row, slot) in rows.iter_mut().zip(&slots) {
            row[j] = unit[*slot];
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_stages_are_the_published_ones() {
        let method = Collocation::with(3);
        let root = 6f64.sqrt();
        for (node, known) in
            method
                .nodes
                .iter()
                .zip([(4.0 - root) / 10.0, (4.0 + root) / 10.0, 1.0])
        {
            assert!((node - known).abs() < 1e-15, "{node} and {known}");
        }
        // The expected values are 1/γ̂ and α̂ ± iβ̂ of Hairer and Wanner, after equation 8.14.
        assert!((method.eigenvalues[0].re - 3.637_834_252_744_496).abs() < 1e-12);
        assert!((method.eigenvalues[1].re - 2.681_082_873_627_752).abs() < 1e-12);
        assert!((method.eigenvalues[1].im - 3.050_430_199_247_411).abs() < 1e-12);
    }

    #[test]
    fn matrices_split_by_their_eigenvalues() {
        for s in [3, 5] {
            let method = Collocation::with(s);
            assert_eq!(method.eigenvalues.len(), s.div_ceil(2));
            for i in 0..s {
                for j in 0..s {
                    let again: f64 = (0..method.eigenvalues.len())
                        .map(|k| {
                            let term =
                                method.vectors[k][i] * method.eigenvalues[k] * method.duals[k][j];
                            term.re * Collocation::multiplicity(k)
                        })
                        .sum();
                    let entry = method.inverse[i * s + j];
                    assert!(
                        (again - entry).abs() < 1e-11,
                        "{s} stages: {again} and {entry}"
                    );
                }
            }
        }
    }

    #[test]
    fn stages_integrate_polynomials() {
        // For polynomials of degree below s, A⁻¹ maps the integrals at the nodes to the values at the nodes.
        for s in [3, 5] {
            let method = Collocation::with(s);
            for degree in 0..s as i32 {
                for i in 0..s {
                    let value: f64 = (0..s)
                        .map(|j| {
                            method.inverse[i * s + j] * method.nodes[j].powi(degree + 1)
                                / f64::from(degree + 1)
                        })
                        .sum();
                    assert!((value - method.nodes[i].powi(degree)).abs() < 1e-11);
                }
            }
        }
    }
}
