//! Eigenvalues, singular values and Schur forms of complex matrices. Matrices are stored in column-major order.

pub use num_complex::Complex64;

use crate::large::{self, LARGE};

/// The largest number of iterations per eigenvalue, as in LAPACK.
const STEPS: usize = 30;

/// Two components count as equally large if they differ by at most this relative amount, so that rounding does not
/// decide which component is the largest.
const TIE: f64 = 1e-8;

/// The eigenvalues and eigenvectors of a matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Eigen {
    /// The eigenvalues in order of increasing real part. Eigenvalues with equal real parts are in order of decreasing
    /// imaginary part.
    pub values: Vec<Complex64>,
    /// The eigenvectors, one after another. Each has length 1, and its largest component is positive.
    pub vectors: Vec<Complex64>,
    /// The index of the largest component of each eigenvector.
    pub largest: Vec<usize>,
}

impl Eigen {
    fn nan(n: usize) -> Self {
        let nan = Complex64::new(f64::NAN, f64::NAN);
        Self {
            values: vec![nan; n],
            vectors: vec![nan; n * n],
            largest: vec![0; n],
        }
    }

    fn ordered(values: &[Complex64], vectors: &[Complex64]) -> Self {
        let n = values.len();
        let order = ascending(values);
        let mut out = Self {
            values: order.iter().map(|j| values[*j]).collect(),
            vectors: Vec::with_capacity(n * n),
            largest: Vec::with_capacity(n),
        };
        for j in order {
            let mut column = vectors[j * n..(j + 1) * n].to_vec();
            out.largest.push(make_unique(&mut column));
            out.vectors.extend(column);
        }
        out
    }
}

/// Returns the indices of the numbers in order of increasing real part. Numbers whose real parts are equal up to
/// rounding are in order of decreasing imaginary part.
fn ascending(values: &[Complex64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|i, j| values[*i].re.total_cmp(&values[*j].re));
    let scale = values.iter().fold(0.0, |most, z| f64::max(most, z.norm()));
    let mut start = 0;
    while start < order.len() {
        let mut end = start + 1;
        while end < order.len() && values[order[end]].re - values[order[end - 1]].re <= TIE * scale
        {
            end += 1;
        }
        order[start..end].sort_by(|i, j| values[*j].im.total_cmp(&values[*i].im));
        start = end;
    }
    order
}

/// Changes the phase of the vector so that its largest component is positive, and returns the index of that component.
fn make_unique(column: &mut [Complex64]) -> usize {
    let size = column.iter().fold(0.0, |most, z| f64::max(most, z.norm()));
    let length = size
        * column
            .iter()
            .map(|z| (z / size).norm_sqr())
            .sum::<f64>()
            .sqrt();
    let large = |z: &Complex64| z.norm() >= (1.0 - TIE) * size;
    let Some(at) = column.iter().position(large) else {
        return 0;
    };
    let turn = column[at].conj() / (column[at].norm() * length);
    column.iter_mut().for_each(|z| *z *= turn);
    column[at].im = 0.0;
    at
}

/// Computes the Schur form A = U T Uᴴ, in which U is unitary and T is upper triangular. The function applies
/// Householder reflections, and then the QR iteration with Wilkinson shifts (Golub and Van Loan, Matrix Computations,
/// 7.4 and 7.5). Returns U and T, or `None` if A is not finite or the iteration does not converge.
pub fn schur(a: &[Complex64], n: usize) -> Option<(Vec<Complex64>, Vec<Complex64>)> {
    if a.iter().any(|z| !z.is_finite()) {
        return None;
    }
    let mut t = a.to_vec();
    let mut u = identity(n);
    for k in 0..n.saturating_sub(2) {
        reflect(&mut t, &mut u, n, k);
    }
    let scale = t.iter().map(|z| z.norm()).fold(0.0, f64::max);
    let mut end = n;
    let mut steps = 0;
    while end > 1 {
        let last = end - 1;
        let small = |t: &[Complex64], i: usize| {
            let near = t[i * n + i].norm() + t[(i - 1) * n + i - 1].norm();
            let near = if near == 0.0 { scale } else { near };
            t[(i - 1) * n + i].norm() <= f64::EPSILON * near
        };
        if small(&t, last) {
            t[(last - 1) * n + last] = Complex64::ZERO;
            end -= 1;
            steps = 0;
            continue;
        }
        steps += 1;
        if steps > STEPS {
            return None;
        }
        let mut start = last;
        while start > 0 && !small(&t, start) {
            start -= 1;
        }
        if start > 0 {
            t[(start - 1) * n + start] = Complex64::ZERO;
        }
        let shift = match steps % 10 {
            // If the shifts cycle, the iteration uses a shift of another kind, as in LAPACK's zlahqr.
            0 => t[last * n + last] + 0.75 * t[(last - 1) * n + last].norm(),
            _ => wilkinson(&t, n, last),
        };
        sweep(&mut t, &mut u, n, start..end, shift);
    }
    for j in 0..n {
        (j + 1..n).for_each(|i| t[j * n + i] = Complex64::ZERO);
    }
    Some((u, t))
}

fn identity(n: usize) -> Vec<Complex64> {
    (0..n * n)
        .map(|at| Complex64::from(f64::from(u8::from(at / n == at % n))))
        .collect()
}

/// Sets elements of column k to zero, namely those that are more than one row below the diagonal.
fn reflect(t: &mut [Complex64], u: &mut [Complex64], n: usize, k: usize) {
    let mut v: Vec<Complex64> = (k + 1..n).map(|i| t[k * n + i]).collect();
    let size = v.iter().fold(0.0, |most, z| f64::max(most, z.norm()));
    if v[1..].iter().all(|z| *z == Complex64::ZERO) {
        return;
    }
    v.iter_mut().for_each(|z| *z /= size);
    let norm = v.iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt();
    let phase = match v[0].norm() {
        0.0 => Complex64::ONE,
        r => v[0] / r,
    };
    v[0] += phase * norm;
    let square: f64 = v.iter().map(|z| z.norm_sqr()).sum();
    for j in 0..n {
        let rows = &mut t[j * n + k + 1..(j + 1) * n];
        let dot: Complex64 = v.iter().zip(&*rows).map(|(v, x)| v.conj() * x).sum();
        let factor = dot * 2.0 / square;
        rows.iter_mut().zip(&v).for_each(|(x, v)| *x -= factor * v);
    }
    for m in [t, u] {
        for i in 0..n {
            let dot: Complex64 = (k + 1..n).map(|j| m[j * n + i] * v[j - k - 1]).sum();
            let factor = dot * 2.0 / square;
            (k + 1..n).for_each(|j| m[j * n + i] -= factor * v[j - k - 1].conj());
        }
    }
}

/// Returns the eigenvalue of the trailing 2 × 2 block that is closer to the last diagonal element.
fn wilkinson(t: &[Complex64], n: usize, last: usize) -> Complex64 {
    let at = |i: usize, j: usize| t[j * n + i];
    let (a, d) = (at(last - 1, last - 1), at(last, last));
    let product = at(last - 1, last) * at(last, last - 1);
    let half = 0.5 * (a - d);
    let root = (half * half + product).sqrt();
    let (plus, minus) = (half + root, half - root);
    let larger = if plus.norm() > minus.norm() {
        plus
    } else {
        minus
    };
    if larger == Complex64::ZERO {
        d
    } else {
        d - product / larger
    }
}

fn sweep(
    t: &mut [Complex64],
    u: &mut [Complex64],
    n: usize,
    rows: std::ops::Range<usize>,
    shift: Complex64,
) {
    let (start, end) = (rows.start, rows.end);
    let mut bulge = [t[start * n + start] - shift, t[start * n + start + 1]];
    for k in start..end - 1 {
        if k > start {
            bulge = [t[(k - 1) * n + k], t[(k - 1) * n + k + 1]];
        }
        // The rotation [c, s; −s̄, c] maps the pair to its length and 0.
        let (x, y) = (bulge[0], bulge[1]);
        let length = x.norm().hypot(y.norm());
        if length == 0.0 {
            continue;
        }
        let (c, s) = match x.norm() {
            0.0 => (0.0, y.conj() / y.norm()),
            r => (r / length, x / r * y.conj() / length),
        };
        for j in k.saturating_sub(1)..n {
            let (p, q) = (t[j * n + k], t[j * n + k + 1]);
            t[j * n + k] = c * p + s * q;
            t[j * n + k + 1] = c * q - s.conj() * p;
        }
        let turn = |m: &mut [Complex64], i: usize| {
            let (p, q) = (m[k * n + i], m[(k + 1) * n + i]);
            m[k * n + i] = c * p + s.conj() * q;
            m[(k + 1) * n + i] = c * q - s * p;
        };
        (0..end.min(k + 3)).for_each(|i| turn(t, i));
        (0..n).for_each(|i| turn(u, i));
    }
}

/// Computes the eigenvalues and right eigenvectors of a general matrix from its Schur form. The results are NaN if
/// [`schur`] fails.
pub fn eigen(a: &[Complex64], n: usize) -> Eigen {
    let found = match n >= LARGE {
        true => large::eigen(a, n),
        false => schur(a, n).map(|(u, t)| {
            let values = (0..n).map(|k| t[k * n + k]).collect();
            (values, triangular_eigenvectors(&u, &t, n))
        }),
    };
    let Some((values, vectors)) = found else {
        return Eigen::nan(n);
    };
    let scale = a.iter().map(|z| z.norm()).fold(0.0, f64::max);
    let real = a.iter().all(|z| z.im == 0.0);
    let rounding = n as f64 * f64::EPSILON * scale;
    let values: Vec<Complex64> = values
        .into_iter()
        .map(|z| match real && z.im.abs() <= rounding {
            // The imaginary part consists only of rounding errors.
            true => Complex64::from(z.re),
            false => z,
        })
        .collect();
    Eigen::ordered(&values, &vectors)
}

fn triangular_eigenvectors(u: &[Complex64], t: &[Complex64], n: usize) -> Vec<Complex64> {
    let at = |i: usize, j: usize| t[j * n + i];
    let scale = t.iter().map(|z| z.norm()).fold(0.0, f64::max);
    let mut vectors = Vec::with_capacity(n * n);
    for k in 0..n {
        let mut y = vec![Complex64::ZERO; n];
        y[k] = Complex64::ONE;
        for i in (0..k).rev() {
            let sum: Complex64 = (i + 1..=k).map(|j| at(i, j) * y[j]).sum();
            let gap = at(k, k) - at(i, i);
            // Equal eigenvalues are treated as if they differed by a rounding error.
            let apart = gap.norm() > f64::MIN_POSITIVE.max(f64::EPSILON * scale);
            let gap = if apart {
                gap
            } else {
                Complex64::from(f64::MIN_POSITIVE.max(f64::EPSILON * scale))
            };
            y[i] = sum / gap;
        }
        let x = (0..n).map(|i| -> Complex64 { (0..=k).map(|j| u[j * n + i] * y[j]).sum() });
        vectors.extend(x);
    }
    vectors
}

/// Computes the eigenvalues and the eigenvectors of the Hermitian part of a matrix by Jacobi rotations. The eigenvalues
/// are real and ascending. The results are NaN if the matrix is not finite.
pub fn eigen_hermitian(a: &[Complex64], n: usize) -> Eigen {
    if a.iter().any(|z| !z.is_finite()) {
        return Eigen::nan(n);
    }
    // The squares of large numbers would overflow, and the squares of small numbers would underflow.
    let scale = match a
        .iter()
        .fold(0.0, |most, z| f64::max(most, z.re.abs().max(z.im.abs())))
    {
        0.0 => 1.0,
        most => most,
    };
    let mut m: Vec<Complex64> = (0..n * n)
        .map(|at| 0.5 * (a[at] / scale + a[at % n * n + at / n].conj() / scale))
        .collect();
    if n >= LARGE {
        let Some((values, vectors)) = large::eigen_hermitian(&m, n) else {
            return Eigen::nan(n);
        };
        let mut found = Eigen::ordered(&values, &vectors);
        found.values.iter_mut().for_each(|x| *x *= scale);
        return found;
    }
    let mut v = identity(n);
    for _ in 0..100 {
        let squares = |off: bool| -> f64 {
            let counts = |at: &usize| !off || at / n != at % n;
            (0..n * n).filter(counts).map(|at| m[at].norm_sqr()).sum()
        };
        if squares(true) <= squares(false) * 1e-34 {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                let size = m[q * n + p].norm();
                if size == 0.0 {
                    continue;
                }
                let phase = m[q * n + p] / size;
                let theta = (m[q * n + q].re - m[p * n + p].re) / (2.0 * size);
                let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                let s = t * c;
                let columns = |m: &mut [Complex64]| {
                    for k in 0..n {
                        let (x, y) = (m[p * n + k], m[q * n + k]);
                        m[p * n + k] = c * x - s * phase.conj() * y;
                        m[q * n + k] = s * phase * x + c * y;
                    }
                };
                columns(&mut m);
                columns(&mut v);
                for k in 0..n {
                    let (x, y) = (m[k * n + p], m[k * n + q]);
                    m[k * n + p] = c * x - s * phase * y;
                    m[k * n + q] = s * phase.conj() * x + c * y;
                }
            }
        }
    }
    let values: Vec<Complex64> = (0..n).map(|i| Complex64::from(m[i * n + i].re)).collect();
    let mut found = Eigen::ordered(&values, &v);
    found.values.iter_mut().for_each(|x| *x *= scale);
    found
}

/// A singular value decomposition. It consists of k singular values in descending order and k pairs of singular
/// vectors, stored one after another. The number k is the smaller extent of the matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Svd {
    /// The left singular vectors, each of length 1.
    pub left: Vec<Complex64>,
    /// The singular values.
    pub values: Vec<f64>,
    /// The right singular vectors, each of length 1.
    pub right: Vec<Complex64>,
}

/// Computes the decomposition A = U S Vᴴ of a matrix with m rows and n columns, by one-sided Jacobi rotations. The
/// phase of each pair of vectors is chosen so that the largest component is positive. For singular values that are 0,
/// the vectors on the longer side of the matrix are NaN. These are the left vectors, or the right vectors if the matrix
/// has more columns than rows. If a column (or row) is not finite, one singular value and its vector are not finite
/// either. The other values and vectors are then those of the remaining matrix. Matrices with at least [`LARGE`] rows
/// differ in two respects. For singular values that are 0, the vectors are an arbitrary completion of the basis. If any
/// element is not finite, all results are NaN.
pub fn svd(a: &[Complex64], m: usize, n: usize) -> Svd {
    if m < n {
        let flipped: Vec<Complex64> = (0..m * n).map(|at| a[at % n * m + at / n].conj()).collect();
        let found = svd(&flipped, n, m);
        return paired(found.right, found.values, found.left);
    }
    if n >= LARGE {
        return match large::svd(a, m, n) {
            Some((u, s, v)) => paired(u, s.iter().map(|s| s.re).collect(), v),
            None => {
                let nan = |count| vec![Complex64::from(f64::NAN); count];
                paired(nan(m * n), vec![f64::NAN; n], nan(n * n))
            }
        };
    }
    let (mut u, mut v) = (a.to_vec(), identity(n));
    let dot = |u: &[Complex64], p: usize, q: usize| -> Complex64 {
        (0..m).map(|i| u[p * m + i].conj() * u[q * m + i]).sum()
    };
    for _ in 0..100 {
        let mut rotated = false;
        for p in 0..n {
            for q in p + 1..n {
                let (pp, qq, pq) = (dot(&u, p, p).re, dot(&u, q, q).re, dot(&u, p, q));
                let size = pq.norm();
                if size <= 1e-16 * (pp * qq).sqrt() || size.is_nan() {
                    continue;
                }
                rotated = true;
                let (theta, phase) = ((qq - pp) / (2.0 * size), pq / size);
                let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                for (columns, rows) in [(&mut u, m), (&mut v, n)] {
                    for k in 0..rows {
                        let (x, y) = (columns[p * rows + k], columns[q * rows + k]);
                        columns[p * rows + k] = c * x - t * c * phase.conj() * y;
                        columns[q * rows + k] = t * c * phase * x + c * y;
                    }
                }
            }
        }
        if !rotated {
            break;
        }
    }
    let norms: Vec<f64> = (0..n).map(|j| dot(&u, j, j).re.sqrt()).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|i, j| norms[*j].total_cmp(&norms[*i]));
    let left = order
        .iter()
        .flat_map(|j| u[j * m..(j + 1) * m].iter().map(|z| z / norms[*j]));
    let right = order.iter().flat_map(|j| &v[j * n..(j + 1) * n]);
    paired(
        left.collect(),
        order.iter().map(|j| norms[*j]).collect(),
        right.copied().collect(),
    )
}

fn paired(mut left: Vec<Complex64>, values: Vec<f64>, mut right: Vec<Complex64>) -> Svd {
    let (m, n) = match values.len() {
        0 => (0, 0),
        k => (left.len() / k, right.len() / k),
    };
    for j in 0..values.len() {
        let (u, v) = (
            &mut left[j * m..(j + 1) * m],
            &mut right[j * n..(j + 1) * n],
        );
        let mut both = [&*u, &*v].concat();
        let before = both.clone();
        let at = make_unique(&mut both);
        let turn = before[at].conj() / before[at].norm();
        u.iter_mut().chain(v).for_each(|z| *z *= turn);
    }
    Svd {
        left,
        values,
        right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(n: usize, seed: f64) -> Vec<Complex64> {
        let number = |at: usize| {
            let x = at as f64 + seed;
            Complex64::new((2.3 * x * x).sin(), (1.7 * x * x + 0.4).cos())
        };
        (0..n * n).map(number).collect()
    }

    fn multiply(a: &[Complex64], b: &[Complex64], n: usize) -> Vec<Complex64> {
        (0..n * n)
            .map(|at| (0..n).map(|k| a[k * n + at % n] * b[at / n * n + k]).sum())
            .collect()
    }

    fn adjoint(a: &[Complex64], n: usize) -> Vec<Complex64> {
        (0..n * n).map(|at| a[at % n * n + at / n].conj()).collect()
    }

    fn far(a: &[Complex64], b: &[Complex64]) -> f64 {
        let gaps = a.iter().zip(b).map(|(x, y)| (x - y).norm());
        gaps.fold(
            0.0,
            |most: f64, x| if x > most || x.is_nan() { x } else { most },
        )
    }

    /// These matrices make the shifts cycle, and the last matrix does not have a full set of eigenvectors.
    #[test]
    fn schur_forms_multiply_to_their_matrices() {
        let mut cases: Vec<(usize, Vec<Complex64>)> =
            (1..9).map(|n| (n, matrix(n, 0.3 * n as f64))).collect();
        for n in [4, 7] {
            let cycle = |at: usize| Complex64::from(f64::from((at / n + 1) % n == at % n));
            cases.push((n, (0..n * n).map(cycle).collect()));
        }
        let jordan =
            |at: usize| Complex64::from(f64::from([at % 4, at % 4 + 1].contains(&(at / 4))));
        cases.push((4, (0..16).map(jordan).collect()));
        cases.push((3, vec![Complex64::ZERO; 9]));
        for (n, a) in cases {
            let (u, t) = schur(&a, n).expect("it ends");
            let back = multiply(&multiply(&u, &t, n), &adjoint(&u, n), n);
            assert!(far(&back, &a) < 1e-13, "{n}: {}", far(&back, &a));
            assert!(far(&multiply(&u, &adjoint(&u, n), n), &identity(n)) < 1e-13);
            assert!((0..n).all(|j| (j + 1..n).all(|i| t[j * n + i] == Complex64::ZERO)));
        }
    }

    #[test]
    fn singular_vectors_make_their_matrices() {
        for (m, n) in [(3, 3), (5, 2), (2, 4), (1, 1), (4, 0)] {
            let k = m.min(n);
            let a = &matrix(m.max(n).max(1), 0.9)[..m * n];
            let found = svd(a, m, n);
            let back: Vec<Complex64> = (0..m * n)
                .map(|at| {
                    let (i, j) = (at % m, at / m);
                    let part = |l: usize| {
                        found.left[l * m + i] * found.values[l] * found.right[l * n + j].conj()
                    };
                    (0..k).map(part).sum()
                })
                .collect();
            assert!(far(&back, a) < 1e-13, "{m} × {n}: {}", far(&back, a));
            assert!(found.values.is_sorted_by(|x, y| x >= y));
        }
    }

    /// The matrix [2, i; −i, 2] has the eigenvalues 1 and 3.
    #[test]
    fn eigenvalues_of_large_and_small_hermitian_matrices() {
        let matrix = |size: f64| -> [Complex64; 4] {
            let (two, i) = (Complex64::from(2.0 * size), Complex64::new(0.0, size));
            [two, -i, i, two]
        };
        let expected = eigen_hermitian(&matrix(1.0), 2).vectors;
        for size in [1e-300, 1e-200, 1.0, 1e200, 5e307] {
            let found = eigen_hermitian(&matrix(size), 2);
            for (value, factor) in found.values.iter().zip([1.0, 3.0]) {
                assert!((value.re / size - factor).abs() < 1e-14, "{size}: {value}");
            }
            assert!(far(&found.vectors, &expected) < 1e-14, "{size}");
        }
        assert_eq!(
            eigen_hermitian(&[Complex64::ZERO; 4], 2).values,
            [Complex64::ZERO; 2]
        );
    }

    #[test]
    fn singular_vectors_that_do_not_exist() {
        let is_nan = |x: &[Complex64]| x.iter().all(|z| z.is_nan());
        let finite = |x: &[Complex64]| x.iter().all(|z| z.is_finite());
        let number = Complex64::from;
        let ones = [number(1.0); 6];
        let tall = svd(&ones, 3, 2);
        assert!(finite(&tall.left[..3]) && is_nan(&tall.left[3..]) && finite(&tall.right));
        let wide = svd(&ones, 2, 3);
        assert!(finite(&wide.right[..3]) && is_nan(&wide.right[3..]) && finite(&wide.left));
        let broken = svd(
            &[number(f64::NAN), number(1.0), number(3.0), number(4.0)],
            2,
            2,
        );
        assert!(broken.values[0].is_nan() && (broken.values[1] - 5.0).abs() < 1e-14);
        assert!(is_nan(&broken.left[..2]) && finite(&broken.left[2..]));
    }

    #[test]
    fn eigenvectors_are_scaled_by_their_eigenvalues() {
        for n in 1..9 {
            let a = matrix(n, 0.7 * n as f64);
            let hermitian: Vec<Complex64> = a
                .iter()
                .zip(adjoint(&a, n))
                .map(|(x, y)| 0.5 * (x + y))
                .collect();
            for (a, found) in [(&a, eigen(&a, n)), (&hermitian, eigen_hermitian(&a, n))] {
                let images = multiply(a, &found.vectors, n);
                let scaled: Vec<Complex64> = (0..n * n)
                    .map(|at| found.vectors[at] * found.values[at / n])
                    .collect();
                assert!(far(&images, &scaled) < 1e-12, "{n}");
                for (j, at) in found.largest.iter().enumerate() {
                    let column = &found.vectors[j * n..(j + 1) * n];
                    let square: f64 = column.iter().map(|z| z.norm_sqr()).sum();
                    assert!((square - 1.0).abs() < 1e-13);
                    assert!(column[*at].im == 0.0 && column[*at].re > 0.0);
                }
                let real: Vec<f64> = found.values.iter().map(|z| z.re).collect();
                assert!(real.is_sorted());
            }
        }
        let nan = vec![Complex64::from(f64::NAN); 4];
        assert!(eigen_hermitian(&nan, 2).values[0].re.is_nan());
        assert!(eigen(&nan, 2).values.iter().all(|z| z.re.is_nan()));
        assert!(schur(&nan, 2).is_none());
    }
}
