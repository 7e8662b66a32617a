//! Sums over lanes in a fixed order: eight partial sums, then a fixed tree, so that a result depends
//! on the numbers alone.

fn tree(s: [f64; 8]) -> f64 {
    ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}

/// `Σ a`.
pub(crate) fn sum(a: &[f64]) -> f64 {
    let mut partial = [0.0; 8];
    let chunks = a.chunks_exact(8);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (s, x) in partial.iter_mut().zip(chunk) {
            *s += x;
        }
    }
    for (s, x) in partial.iter_mut().zip(rest) {
        *s += x;
    }
    tree(partial)
}

/// `Σ a b`.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut partial = [0.0; 8];
    let (ca, cb) = (a.chunks_exact(8), b.chunks_exact(8));
    let (ra, rb) = (ca.remainder(), cb.remainder());
    for (x, y) in ca.zip(cb) {
        for ((s, x), y) in partial.iter_mut().zip(x).zip(y) {
            *s += x * y;
        }
    }
    for ((s, x), y) in partial.iter_mut().zip(ra).zip(rb) {
        *s += x * y;
    }
    tree(partial)
}

/// `y += c x`.
pub(crate) fn axpy(c: f64, x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += c * x;
    }
}

/// Mean and standard error of independent numbers; the error is infinite for fewer than two.
pub(crate) fn mean_se(a: &[f64]) -> (f64, f64) {
    let n = a.len() as f64;
    let mean = sum(a) / n;
    if a.len() < 2 {
        return (mean, f64::INFINITY);
    }
    let squares: Vec<f64> = a.iter().map(|x| (x - mean) * (x - mean)).collect();
    (mean, (sum(&squares) / (n - 1.0) / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_exact_sums_of_integers() {
        for n in 0..40 {
            let a: Vec<f64> = (0..n).map(f64::from).collect();
            let expected = a.iter().sum::<f64>();
            assert_eq!(sum(&a), expected);
            assert_eq!(dot(&a, &a), a.iter().map(|x| x * x).sum::<f64>());
        }
    }

    #[test]
    fn standard_error_of_a_known_sample() {
        let (mean, se) = mean_se(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(mean, 2.5);
        assert!((se - (5.0f64 / 3.0 / 4.0).sqrt()).abs() < 1e-15);
    }
}
