//! The two loops of limited-memory BFGS (Nocedal 1980, *Updating quasi-Newton matrices with limited storage*).

use crate::linear::kernels::{dot, map};

/// A step s and the change y of the gradient over it, with `s · y > 0`.
pub(crate) type Correction<'a> = (&'a [f64], &'a [f64]);

/// Computes `H q`, where H is the inverse Hessian that results from applying the corrections, oldest first, to an
/// initial inverse Hessian. `guess` multiplies a vector by the initial inverse Hessian. The function also returns the
/// coefficient of each step in the result. Returns `None` if `guess` returns `None`.
pub(crate) fn two_loops(
    corrections: &[Correction<'_>],
    mut q: Vec<f64>,
    guess: impl FnOnce(&[f64]) -> Option<Vec<f64>>,
) -> Option<(Vec<f64>, Vec<f64>)> {
    let n = q.len();
    let mut shares = Vec::with_capacity(corrections.len());
    for (s, y) in corrections.iter().rev() {
        let share = dot(s, &q) / dot(s, y);
        q = map(n, |i| q[i] - share * y[i]);
        shares.push(share);
    }
    let mut x = guess(&q)?;
    let mut multiples = Vec::with_capacity(corrections.len());
    for ((s, y), share) in corrections.iter().zip(shares.iter().rev()) {
        let multiple = share - dot(y, &x) / dot(s, y);
        x = map(n, |i| x[i] + multiple * s[i]);
        multiples.push(multiple);
    }
    Some((x, multiples))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_along_which_the_curvature_is_known_are_newton_steps() {
        // The gradient change is y = A s for a diagonal A. If the corrections include all directions, H is the inverse
        // of A for any guess.
        let curvatures = [2.0, 5.0, 0.25];
        let axis = |k: usize, length: f64| {
            let mut x = vec![0.0; 3];
            x[k] = length;
            x
        };
        let steps: Vec<Vec<f64>> = (0..3).map(|k| axis(k, 0.5)).collect();
        let changes: Vec<Vec<f64>> = (0..3).map(|k| axis(k, 0.5 * curvatures[k])).collect();
        let pairs: Vec<Correction<'_>> = (0..3).map(|k| (&steps[k][..], &changes[k][..])).collect();
        let guess = |q: &[f64]| Some(q.iter().map(|q| 7.0 * q).collect());
        let (x, multiples) = two_loops(&pairs, vec![4.0, 5.0, 6.0], guess).unwrap();
        assert_eq!(multiples.len(), 3);
        for (x, expected) in x.iter().zip([2.0, 1.0, 24.0]) {
            assert!((x - expected).abs() < 1e-12, "{x} {expected}");
        }
        assert_eq!(two_loops(&pairs, vec![1.0; 3], |_| None), None);
    }
}
