//! Monotone transforms of single coordinates whose tails are longer than those of a normal.
//!
//! If a scale may be close to zero, its logarithm has an exponential lower tail. Chains return slowly from that tail,
//! because the gradient is small and the distance is long. Let `q(u) = u (u + √(u² + 1)) / 2`, which is quadratic above
//! zero and nearly vanishes below. The function `f(u) = m + s u + b q(u) − a q(−u)` is then increasing. It produces a
//! long upper tail if b is nonzero and a long lower tail if a is nonzero, so it can map a standard normal to the
//! distribution of the particles.

use jensen_math::order::quantile;
use jensen_math::simd::Simd;
use jensen_math::special::inv_phi;
use rayon::prelude::*;

use crate::dense::{cholesky, solve_lower, solve_lower_transposed};
use crate::sizes::ITERATIONS;

/// A tail transform must explain at least this share of a coordinate's variance beyond what a straight line explains. A
/// skewness of 0.4 suffices for this share, whereas the noise of two hundred independent normal draws does not.
const WORTH: f64 = 0.01;

/// The smallest slope at the middle, in standard deviations per unit. A flatter transform would compress the bulk, and
/// its inverse would amplify rounding errors.
const LEAST_SLOPE: f64 = 0.2;

/// The number of rows per task.
const TOGETHER: usize = 8;

/// The numbers of a stored transform.
const NUMBERS: usize = size_of::<Tail>() / size_of::<f64>();

/// The transform `f(u) = m + s u + b q(u) − a q(−u)` of `u = (y − centre) / unit`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tail {
    shift: f64,
    slope: f64,
    above: f64,
    below: f64,
    centre: f64,
    unit: f64,
}

/// Returns q with its first and second derivatives, at u and at −u.
#[inline(always)]
fn q(u: f64) -> [[f64; 3]; 2] {
    let r = (u * u + 1.0).sqrt();
    let long = u.abs() + r;
    // This uses `(r + u) (r − u) = 1`.
    let (inverse, short) = (1.0 / r, 1.0 / long);
    let (t, s) = if u > 0.0 {
        (long, short)
    } else {
        (short, long)
    };
    let half = 0.5 * u * inverse;
    [
        [
            0.5 * u * t,
            0.5 * t * t * inverse,
            t * t * (1.0 - half) * inverse * inverse,
        ],
        [
            -0.5 * u * s,
            0.5 * s * s * inverse,
            s * s * (1.0 + half) * inverse * inverse,
        ],
    ]
}

impl Tail {
    fn to_numbers(self) -> [f64; NUMBERS] {
        [
            self.shift,
            self.slope,
            self.above,
            self.below,
            self.centre,
            self.unit,
        ]
    }

    fn from_numbers(numbers: &[f64]) -> Self {
        Self {
            shift: numbers[0],
            slope: numbers[1],
            above: numbers[2],
            below: numbers[3],
            centre: numbers[4],
            unit: numbers[5],
        }
    }

    fn around(self, centre: f64) -> Self {
        let [_, slope, _] = self.at(self.centre);
        let unit = slope * self.unit;
        Self {
            centre,
            unit,
            ..self
        }
    }

    #[inline(always)]
    fn at(self, y: f64) -> [f64; 3] {
        let scale = 1.0 / self.unit;
        let [value, first, second] = self.of_unit((y - self.centre) * scale);
        [value, first * scale, second * scale * scale]
    }

    #[inline(always)]
    fn of_unit(self, u: f64) -> [f64; 3] {
        let [[above, rise, apply], [below, fall, back]] = q(u);
        [
            self.shift + self.slope * u + self.above * above - self.below * below,
            self.slope + self.above * rise + self.below * fall,
            self.above * apply - self.below * back,
        ]
    }

    pub(super) fn origin(self, v: f64) -> f64 {
        self.centre + self.unit * self.unit_origin(v)
    }

    fn unit_origin(self, v: f64) -> f64 {
        // On either side of the middle, the distance of f from the middle is larger than that of the linear part.
        let straight = (v - self.shift) / self.slope;
        let (mut low, mut high) = (straight.min(0.0), straight.max(0.0));
        let mut u = straight;
        for _ in 0..ITERATIONS {
            let [value, rise, _] = self.of_unit(u);
            let beyond = value - v;
            if beyond > 0.0 {
                high = u;
            } else {
                low = u;
            }
            let newton = u - beyond / rise;
            let next = match (low..=high).contains(&newton) {
                true => newton,
                false => 0.5 * (low + high),
            };
            // The error after the next step is the square of the error after this step.
            if (next - u).abs() <= 1e-8 * (1.0 + u.abs()) {
                return next;
            }
            u = next;
        }
        u
    }

    /// Fits transformed normal quantiles to the quantiles of the draws by least squares. Returns `None` if a straight
    /// line fits nearly as well.
    pub(super) fn of(draws: &mut [f64]) -> Option<Self> {
        draws.sort_unstable_by(f64::total_cmp);
        let [quarter, middle, other] = [0.25, 0.5, 0.75].map(|p| quantile(draws, p));
        // With standardised units, the result does not depend on the units of the coordinate.
        let reach = other - quarter;
        if !(reach > 0.0 && reach.is_finite()) {
            return None;
        }
        let count = draws.len() as f64;
        let score = |i: usize| inv_phi((i as f64 + 0.5) / count);
        // The moments of 1, u, q(u), −q(−u) and v.
        let mut moments = [[0.0; 5]; 5];
        for (i, v) in draws.iter().enumerate() {
            let v = (v - middle) / reach;
            let u = score(i);
            let [[above, ..], [below, ..]] = q(u);
            let terms = [1.0, u, above, -below, v];
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
        let (_, plain) = straight?;
        let grows = |c: &[f64; 4]| c[1] >= LEAST_SLOPE * sd && c[2] >= 0.0 && c[3] >= 0.0;
        let fits = [both, above, below].into_iter().flatten();
        let ([shift, slope, above, below], left) = fits
            .filter(|(c, _)| grows(c))
            .min_by(|a, b| a.1.total_cmp(&b.1))?;
        (plain - left > WORTH * total).then_some(Self {
            shift: middle + reach * shift,
            slope: reach * slope,
            above: reach * above,
            below: reach * below,
            centre: 0.0,
            unit: 1.0,
        })
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tails(Vec<(usize, Tail)>);

impl Tails {
    /// Estimates the transforms of the first rows from sets of particles. The sets have `size` numbers each, with
    /// `lanes` numbers per row.
    pub(super) fn of(x: &[f64], (size, lanes): (usize, usize), rows: usize) -> Self {
        let tail = |row: usize| {
            let sets = x.chunks(size).map(|set| &set[row * lanes..][..lanes]);
            let mut draws: Vec<f64> = sets.flatten().copied().collect();
            Some((row, Tail::of(&mut draws)?))
        };
        let each = (0..rows).into_par_iter().map(tail);
        let tails: Vec<Option<(usize, Tail)>> = each.collect();
        Self(tails.into_iter().flatten().collect())
    }

    /// Replaces the inputs of the transforms. They then have the value of the row's centre and a slope of 1 there.
    pub(super) fn around(self, centres: &[f64]) -> Self {
        let each = self.0.into_iter();
        Self(each.map(|(i, tail)| (i, tail.around(centres[i]))).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn to_numbers(&self) -> Vec<f64> {
        let each = self.0.iter();
        each.flat_map(|(row, tail)| std::iter::once(*row as f64).chain(tail.to_numbers()))
            .collect()
    }

    pub(super) fn from_numbers(numbers: &[f64], rows: usize) -> Option<Self> {
        let each = numbers.chunks_exact(1 + NUMBERS);
        if !each.remainder().is_empty() {
            return None;
        }
        let tails: Vec<(usize, Tail)> = each
            .map(|n| (n[0] as usize, Tail::from_numbers(&n[1..])))
            .collect();
        (tails.iter().all(|(row, _)| *row < rows)).then_some(Self(tails))
    }

    pub(super) fn apply(&self, rows: &mut [f64], lanes: usize, slopes: &mut Slopes) {
        let count = self.0.len() * lanes;
        slopes.first.resize(count, 0.0);
        slopes.second.resize(count, 0.0);
        let given = (slopes.first.chunks_mut(lanes)).zip(slopes.second.chunks_mut(lanes));
        for ((i, tail), (first, second)) in self.0.iter().zip(given) {
            let row = &mut rows[i * lanes..(i + 1) * lanes];
            apply_kernel(Simd::detect(), *tail, row, first, second);
        }
    }

    pub(super) fn invert(&self, rows: &mut [f64], lanes: usize) {
        for (i, tail) in &self.0 {
            let row = &mut rows[i * lanes..(i + 1) * lanes];
            row.iter_mut().for_each(|v| *v = tail.origin(*v));
        }
    }

    /// Converts derivatives with respect to the outputs into derivatives with respect to the inputs, and adds the
    /// derivatives of the log Jacobian.
    pub(super) fn pull(&self, slopes: &Slopes, grad: &mut [f64], lanes: usize) {
        let given = (slopes.first.chunks(lanes)).zip(slopes.second.chunks(lanes));
        for ((i, _), (first, second)) in self.0.iter().zip(given) {
            let row = &mut grad[i * lanes..(i + 1) * lanes];
            for ((g, first), second) in row.iter_mut().zip(first).zip(second) {
                *g = first * *g + second / first;
            }
        }
    }
}

#[derive(Default)]
pub(super) struct Slopes {
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Slopes {
    pub(super) fn add_logs(&self, out: &mut [f64]) {
        let lanes = out.len();
        let mut product = vec![1.0; lanes];
        // The number of rows is so small that no product of their elements is out of range.
        for rows in self.first.chunks(TOGETHER * lanes) {
            product.fill(1.0);
            for row in rows.chunks(lanes) {
                product
                    .iter_mut()
                    .zip(row)
                    .for_each(|(p, first)| *p *= first);
            }
            out.iter_mut()
                .zip(&product)
                .for_each(|(out, p)| *out += p.ln());
        }
    }
}

jensen_math::simd_fn! {
    fn apply_kernel, apply_kernel_fn = <V>(tail: Tail, row: &mut [f64], first: &mut [f64], second: &mut [f64]) {
        let lanes = row.len();
        let (first, second) = (&mut first[..lanes], &mut second[..lanes]);
        for l in 0..lanes {
            [row[l], first[l], second[l]] = tail.at(row[l]);
        }
    }
}

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

    const TRANSFORMED: Tail = Tail {
        shift: -0.3,
        slope: 0.5,
        above: 0.2,
        below: 1.4,
        centre: 0.4,
        unit: 1.3,
    };

    #[test]
    fn slopes_are_those_of_differences_and_there_is_a_way_back() {
        for i in -60..=60 {
            let u = f64::from(i) * 0.2;
            let [value, slope, apply] = TRANSFORMED.at(u);
            let h = 1e-5;
            let [up, down] = [u + h, u - h].map(|u| TRANSFORMED.at(u));
            assert!(
                ((up[0] - down[0]) / (2.0 * h) / slope - 1.0).abs() < 1e-8,
                "{u}"
            );
            assert!(((up[1] - down[1]) / (2.0 * h) - apply).abs() < 1e-6, "{u}");
            assert!(slope >= TRANSFORMED.slope / TRANSFORMED.unit);
            let around = TRANSFORMED.around(2.0).at(2.0);
            assert!((around[1] - 1.0).abs() < 1e-12 && around[0] == TRANSFORMED.at(0.4)[0]);
            assert!(
                (TRANSFORMED.origin(value) - u).abs() < 1e-11 * (1.0 + u.abs()),
                "{u}"
            );
        }
    }

    /// The logarithm of an exponential variable has an exponential lower tail, which the transform removes. Normal
    /// draws stay normal.
    #[test]
    fn long_tails_become_normal() {
        let count = 2000;
        let normals: Vec<f64> = (0..count)
            .map(|i| inv_phi((f64::from(i) + 0.5) / f64::from(count)))
            .collect();
        assert_eq!(Tail::of(&mut normals.clone()), None);
        let mut far: Vec<f64> = normals.iter().map(|x| 1e9 + 1e-3 * x).collect();
        assert_eq!(Tail::of(&mut far), None);
        let mut logs: Vec<f64> = (0..count)
            .map(|i| (-(-(f64::from(i) + 0.5) / f64::from(count)).ln_1p()).ln())
            .collect();
        let tail = Tail::of(&mut logs).unwrap();
        for (v, normal) in logs.iter().zip(&normals) {
            let u = tail.origin(*v);
            assert!(u.abs() < 3.6, "{v}: {u}");
            // The upper tail is shorter than that of a normal, and tail transforms cannot represent such a tail.
            let near = u > normal - 0.25 || *normal > 2.0;
            assert!(near && u < normal + 0.25, "{v}: {u}, not {normal}");
        }
    }

    #[test]
    fn numbers_of_transforms_are_read_again_or_refused() {
        let tails = Tails(vec![(1, TRANSFORMED), (4, TRANSFORMED.around(2.0))]);
        let numbers = tails.to_numbers();
        assert_eq!(Tails::from_numbers(&numbers, 5), Some(tails));
        assert_eq!(Tails::from_numbers(&numbers, 4), None);
        assert_eq!(Tails::from_numbers(&numbers[1..], 5), None);
        assert_eq!(Tails::from_numbers(&[], 5), Some(Tails::default()));
    }

    #[test]
    fn degenerate_particles_have_no_transform() {
        assert_eq!(Tail::of(&mut [1.0; 64]), None);
        assert_eq!(Tail::of(&mut [f64::NAN; 64]), None);
    }
}
