//! Bends of single coordinates whose tails are longer than a normal's.
//!
//! The logarithm of a scale that may be nearly nothing falls off exponentially towards it, and chains come back from there slowly:
//! gradients are flat where it is far to go. With `q(u) = u (u + √(u² + 1)) / 2`, a square of u above and nothing below,
//! `f(u) = m + s u + b q(u) − a q(−u)` has a tail of that kind on either side where b or a is not zero, and grows everywhere, so that
//! under it a standard normal becomes what particles have shown.

use jensen_math::special::inv_phi;

use crate::dense::{cholesky, solve_lower, solve_lower_transposed};

/// Share of a coordinate's variance that a bend has to explain beyond a straight line: a skewness of four tenths has it, and of two
/// hundred independent normals the noise does not.
const WORTH: f64 = 0.01;

/// Least slope in the middle, in standard deviations.
const LEAST_SLOPE: f64 = 0.2;

/// Newton steps of the way back at most; between two bounds they cannot fail.
const STEPS: usize = 60;

/// `f(u) = m + s u + b q(u) − a q(−u)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tail {
    shift: f64,
    slope: f64,
    above: f64,
    below: f64,
}

/// q with its first and second derivative.
fn q(u: f64) -> [f64; 3] {
    let r = u.hypot(1.0);
    let t = if u > 0.0 { u + r } else { 1.0 / (r - u) };
    [
        0.5 * u * t,
        0.5 * t * t / r,
        t * t * (1.0 - 0.5 * u / r) / (r * r),
    ]
}

impl Tail {
    /// No bend.
    pub(super) const NONE: Self = Self {
        shift: 0.0,
        slope: 1.0,
        above: 0.0,
        below: 0.0,
    };

    /// Its four numbers, for checkpoints.
    pub(super) fn to_numbers(self) -> [f64; 4] {
        [self.shift, self.slope, self.above, self.below]
    }

    /// The inverse of [`Self::to_numbers`].
    pub(super) fn from_numbers(numbers: &[f64]) -> Self {
        Self {
            shift: numbers[0],
            slope: numbers[1],
            above: numbers[2],
            below: numbers[3],
        }
    }

    /// f with its first and second derivative.
    pub(super) fn at(self, u: f64) -> [f64; 3] {
        let ([above, rise, bend], [below, fall, back]) = (q(u), q(-u));
        [
            self.shift + self.slope * u + self.above * above - self.below * below,
            self.slope + self.above * rise + self.below * fall,
            self.above * bend - self.below * back,
        ]
    }

    /// The u of `f(u) = v`.
    pub(super) fn origin(self, v: f64) -> f64 {
        // On either side of the middle f is further from it than its straight part.
        let straight = (v - self.shift) / self.slope;
        let (mut low, mut high) = (straight.min(0.0), straight.max(0.0));
        let mut u = straight;
        for _ in 0..STEPS {
            let [value, rise, _] = self.at(u);
            let beyond = value - v;
            if beyond > 0.0 {
                high = u
            } else {
                low = u
            }
            let next = u - beyond / rise;
            let next = if next > low && next < high {
                next
            } else {
                0.5 * (low + high)
            };
            if (next - u).abs() <= 1e-14 * (1.0 + u.abs()) {
                return next;
            }
            u = next;
        }
        u
    }

    /// The bend under which normal quantiles come nearest to those of draws in the least-squares sense; none where a straight line is
    /// nearly as near.
    pub(super) fn of(draws: &mut [f64]) -> Self {
        draws.sort_unstable_by(f64::total_cmp);
        let count = draws.len() as f64;
        let score = |i: usize| inv_phi((i as f64 + 0.5) / count);
        // Moments of 1, u, q(u), −q(−u) and v.
        let mut moments = [[0.0; 5]; 5];
        for (i, v) in draws.iter().enumerate() {
            let u = score(i);
            let terms = [1.0, u, q(u)[0], -q(-u)[0], *v];
            for (row, a) in moments.iter_mut().zip(terms) {
                for (m, b) in row.iter_mut().zip(terms) {
                    *m += a * b / count;
                }
            }
        }
        let total = moments[4][4] - moments[0][4] * moments[0][4];
        let sd = total.sqrt();
        let [straight, both, above, below] = [&[0, 1][..], &[0, 1, 2, 3], &[0, 1, 2], &[0, 1, 3]]
            .map(|which| fitted(&moments, which));
        let Some((_, plain)) = straight else {
            return Self::NONE;
        };
        let grows = |c: &[f64; 4]| c[1] >= LEAST_SLOPE * sd && c[2] >= 0.0 && c[3] >= 0.0;
        let fits = [both, above, below].into_iter().flatten();
        let best = fits
            .filter(|(c, _)| grows(c))
            .min_by(|a, b| a.1.total_cmp(&b.1));
        match best {
            Some((c, left)) if plain - left > WORTH * total => Self::from_numbers(&c),
            _ => Self::NONE,
        }
    }
}

/// Coefficients of some of the terms by least squares, the others zero, and the mean square that is left.
fn fitted(moments: &[[f64; 5]; 5], which: &[usize]) -> Option<([f64; 4], f64)> {
    let n = which.len();
    let matrix: Vec<f64> = (which.iter())
        .flat_map(|&i| which.iter().map(move |&j| moments[i][j]))
        .collect();
    let factor = cholesky(&matrix, n)?;
    let mut solved: Vec<f64> = which.iter().map(|&i| moments[i][4]).collect();
    solve_lower(&factor, &mut solved);
    let explained: f64 = solved.iter().map(|x| x * x).sum();
    solve_lower_transposed(&factor, &mut solved);
    let mut coefficients = [0.0; 4];
    for (&i, c) in which.iter().zip(&solved) {
        coefficients[i] = *c;
    }
    Some((coefficients, moments[4][4] - explained))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BENT: Tail = Tail {
        shift: -0.3,
        slope: 0.5,
        above: 0.2,
        below: 1.4,
    };

    #[test]
    fn slopes_are_those_of_differences_and_there_is_a_way_back() {
        for i in -60..=60 {
            let u = f64::from(i) * 0.2;
            let [value, slope, bend] = BENT.at(u);
            let h = 1e-5;
            let [up, down] = [u + h, u - h].map(|u| BENT.at(u));
            assert!(
                ((up[0] - down[0]) / (2.0 * h) / slope - 1.0).abs() < 1e-8,
                "{u}"
            );
            assert!(((up[1] - down[1]) / (2.0 * h) - bend).abs() < 1e-6, "{u}");
            assert!(slope >= BENT.slope);
            assert!(
                (BENT.origin(value) - u).abs() < 1e-11 * (1.0 + u.abs()),
                "{u}"
            );
        }
    }

    /// Of the logarithm of an exponential, whose lower tail is exponential, normals are what is left; normals stay what they are.
    #[test]
    fn long_tails_become_normal() {
        let count = 2000;
        let normals: Vec<f64> = (0..count)
            .map(|i| inv_phi((f64::from(i) + 0.5) / f64::from(count)))
            .collect();
        assert_eq!(Tail::of(&mut normals.clone()), Tail::NONE);
        let mut logs: Vec<f64> = (0..count)
            .map(|i| (-(-(f64::from(i) + 0.5) / f64::from(count)).ln_1p()).ln())
            .collect();
        let tail = Tail::of(&mut logs);
        for (v, normal) in logs.iter().zip(&normals) {
            assert!(
                (tail.origin(*v) - normal).abs() < 0.4,
                "{v}: {}, not {normal}",
                tail.origin(*v)
            );
        }
    }

    #[test]
    fn what_is_no_cloud_has_no_bend() {
        assert_eq!(Tail::of(&mut [1.0; 64]), Tail::NONE);
        assert_eq!(Tail::of(&mut [f64::NAN; 64]), Tail::NONE);
    }
}
