//! The change of the ELBO for a quadratic log density, which serves as a control variate.
//!
//! For antithetic draws `z = μ ± σε`, the terms of odd order cancel. If the log density is quadratic with Hessian A,
//! the change from scales σ to scales σ′ is then `½ Σᵢⱼ Aᵢⱼ (σ′ᵢσ′ⱼ − σᵢσⱼ) εᵢεⱼ`, with the known mean `½ Σᵢ Aᵢᵢ (σ′ᵢ²
//! − σᵢ²)`. The rest of a change is due to the non-Gaussian part of the density, so few draws suffice to estimate the
//! changes of small steps near an optimum. The estimate of A does not use the draws that it corrects.

use crate::family::Family;
use crate::reduce::{axpy, combine, dot};

pub(crate) struct Quadratic<'h> {
    /// The Hessian A (d × d). `None` means the negated precision of the current approximation, `−diag(1/σ²)`.
    hessian: Option<&'h [f64]>,
    before: Vec<f64>,
    after: Vec<f64>,
    mean: f64,
}

impl<'h> Quadratic<'h> {
    /// Returns `None` unless the family is the mean-field family.
    pub(crate) fn new(
        family: &dyn Family,
        from: &[f64],
        to: &[f64],
        hessian: Option<&'h [f64]>,
    ) -> Option<Self> {
        if !family.is_factorised() {
            return None;
        }
        let (mut before, mut after) = (family.marginal_sd(from), family.marginal_sd(to));
        if hessian.is_none() {
            for (before, after) in before.iter_mut().zip(&mut after) {
                *after /= *before;
                *before = 1.0;
            }
        }
        let dim = before.len();
        let curvature = |i: usize| hessian.map_or(-1.0, |a| a[i * dim + i]);
        let mean = (0..dim)
            .map(|i| 0.5 * curvature(i) * (after[i] * after[i] - before[i] * before[i]))
            .sum();
        Some(Self {
            hessian,
            before,
            after,
            mean,
        })
    }

    /// Computes a number with mean zero for each pair of draws. `noise` is a d × lanes matrix in which each draw is
    /// followed by its mirror image.
    pub(crate) fn pairs(&self, noise: &[f64], lanes: usize) -> Vec<f64> {
        let pairs = lanes / 2;
        let mut out = vec![-self.mean; pairs];
        for (sd, sign) in [(&self.after, 0.5), (&self.before, -0.5)] {
            let mut scaled = Vec::with_capacity(sd.len() * pairs);
            for (row, sd) in noise.chunks(lanes).zip(sd) {
                scaled.extend(row.chunks(2).map(|pair| sd * pair[0]));
            }
            let image = match self.hessian {
                Some(a) => {
                    let mut image = vec![0.0; scaled.len()];
                    multiply(a, sd.len(), &scaled, pairs, &mut image);
                    image
                }
                None => scaled.iter().map(|x| -x).collect(),
            };
            for (x, y) in scaled.chunks(pairs).zip(image.chunks(pairs)) {
                for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
                    *out += sign * x * y;
                }
            }
        }
        out
    }
}

/// Subtracts the regression of `changes` on `variate`, whose known mean is zero, from `changes`. A coefficient outside
/// [0, 1] is replaced by the nearest end of the interval. If the coefficient is not finite, the changes stay as they
/// are.
pub(crate) fn take_out(changes: &mut [f64], variate: &[f64]) {
    let n = changes.len() as f64;
    let mean = changes.iter().sum::<f64>() / n;
    let centre = variate.iter().sum::<f64>() / n;
    let both: f64 = changes
        .iter()
        .zip(variate)
        .map(|(x, c)| (x - mean) * (c - centre))
        .sum();
    let own = dot(variate, variate) - n * centre * centre;
    let coefficient = both / own;
    if coefficient.is_finite() {
        axpy(-coefficient.clamp(0.0, 1.0), variate, changes);
    }
}

/// Computes `out += A x`, where `x` is a `dim × lanes` matrix.
pub(crate) fn multiply(a: &[f64], dim: usize, x: &[f64], lanes: usize, out: &mut [f64]) {
    for (i, rows) in out.chunks_mut(4 * lanes).enumerate() {
        let row = |k: usize| &a[(4 * i + k) * dim..(4 * i + k + 1) * dim];
        if rows.len() == 4 * lanes {
            let mut parts = rows.chunks_mut(lanes);
            let outs = [(); 4].map(|()| parts.next().expect("four rows"));
            combine([0, 1, 2, 3].map(row), x, lanes, 0, outs);
        } else {
            for (k, out) in rows.chunks_mut(lanes).enumerate() {
                for (c, x) in row(k).iter().zip(x.chunks(lanes)) {
                    axpy(*c, x, out);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::MeanField;
    use crate::noise::{NoisePurpose, NoiseSource};
    use crate::oracle::{Oracle, Stream};
    use crate::trust::draws::mirrored;
    use jensen_density::Lanes;
    use jensen_math::simd::Simd;
    use jensen_testkit::CorrelatedGaussian;
    use std::sync::Arc;

    #[test]
    fn of_a_gaussian_nothing_is_left() {
        let density = CorrelatedGaussian::exchangeable(&[1.0, 5.0, 0.2], 0.9);
        let family = Arc::new(MeanField::new(3));
        let from = [0.4, 1.0, -0.1, 0.2, 1.0, -1.0];
        let to = [0.1, 2.0, -0.2, 0.0, 0.7, -1.4];
        let source = NoiseSource::new(8, Simd::detect());
        let (found, _) =
            super::super::explicit::Explicit::estimate(&density, &from, source, 1, 2, None);
        let hessian = found.unwrap().mean;
        let stream = Stream {
            source,
            purpose: NoisePurpose::Change,
            iteration: 1,
        };
        let lanes = 40;
        let mut noise = vec![0.0; 3 * lanes];
        mirrored(stream, 0, 3, lanes / 2, (0, lanes), &mut noise);
        let differences = Oracle::new(&density, family.clone()).lane_differences(
            &from,
            &to,
            Lanes::new(&noise, 3, lanes),
        );
        let mut changes: Vec<f64> = differences
            .chunks(2)
            .map(|pair| 0.5 * (pair[0] + pair[1]))
            .collect();
        let variance = |x: &[f64]| crate::reduce::mean_se(x).1.powi(2);
        let plain = variance(&changes);
        let variate = Quadratic::new(family.as_ref(), &from, &to, Some(&hessian)).unwrap();
        take_out(&mut changes, &variate.pairs(&noise, lanes));
        assert!(plain > 1e-3 && variance(&changes) < 1e-20 * plain);
    }

    #[test]
    fn without_a_hessian_it_is_the_approximation_itself() {
        let family = MeanField::new(2);
        let (from, to) = ([0.0, 1.0, 0.5, -0.5], [0.3, 1.0, 0.1, 0.2]);
        let precision = [-(-1.0f64).exp(), 0.0, 0.0, -1.0f64.exp()];
        let noise = [0.3, -0.3, 1.2, -1.2, -0.4, 0.4, 0.9, -0.9];
        let make = |a| {
            Quadratic::new(&family, &from, &to, a)
                .unwrap()
                .pairs(&noise, 4)
        };
        for (x, y) in make(None).iter().zip(make(Some(&precision))) {
            assert!((x - y).abs() < 1e-12, "{x} {y}");
        }
    }
}
