//! Stochastic gradients, with a jackknife estimate of their noise.
//!
//! Draws come in antithetic pairs: z and its reflection in the mean. The pairs are independent of each other. They are
//! divided into [`BLOCKS`] groups. The delete-one-group jackknife (Efron and Stein 1981) estimates the noise from the
//! gradients of the groups. It estimates the variance of the mean as `Σₖ ‖g₍₋ₖ₎ − g‖² (K − 1)/K`. This variance bounds
//! the variance of the norm, because the norm of a vector changes by no more than the vector.
//!
//! A linear control variate removes the quadratic part of the log density: `Jᵀ A (z − μ)` has a known mean for any
//! fixed matrix A. If there is an explicit Hessian, A is the average of the Hessian over other draws. Otherwise `A (z −
//! μ)` is ∇log q(z), as in sticking the landing. The coefficient of the control variate is estimated by regression over
//! the groups.

use jensen_density::{Lanes, LanesMut, TwiceDifferentiable};

use crate::agreement::BLOCKS;
use crate::calls::Calls;
use crate::family::Family;
use crate::noise::{NoisePurpose, NoiseSource};
use crate::oracle::Stream;
use crate::records::{Choose, Layout, StreamPosition};
use crate::reduce::{axpy, dot};
use crate::sizes;

use super::draws::mirrored;
use super::quadratic::multiply;

/// The largest length of the gradient of a group, relative to the median length.
const LONGEST: f64 = 4.0;

#[derive(Clone, Debug)]
pub(crate) struct Gradient {
    pub mean: Vec<f64>,
    pub groups: Vec<Vec<f64>>,
    pub dropped: usize,
}

impl Gradient {
    /// Averages the gradients of the groups. Before averaging, the function shortens gradients that are longer than
    /// [`LONGEST`] times the median length. Otherwise a few draws in the tails could dominate the mean, which would not
    /// be a useful direction.
    pub(crate) fn clipped(
        mut groups: Vec<Vec<f64>>,
        dropped: usize,
        metric: &dyn Fn(&[f64], &mut [f64]),
    ) -> Self {
        let mut scaled = vec![0.0; groups[0].len()];
        let lengths: Vec<f64> = groups
            .iter()
            .map(|group| {
                metric(group, &mut scaled);
                dot(group, &scaled).max(0.0).sqrt()
            })
            .collect();
        let mut sorted = lengths.clone();
        sorted.sort_by(f64::total_cmp);
        let most = LONGEST * sorted[(sorted.len() - 1) / 2];
        for (group, length) in groups.iter_mut().zip(lengths) {
            if most > 0.0 && length > most {
                group.iter_mut().for_each(|x| *x *= most / length);
            }
        }
        Self::of(groups, dropped)
    }

    pub(crate) fn of(groups: Vec<Vec<f64>>, dropped: usize) -> Self {
        let mut mean = vec![0.0; groups[0].len()];
        for group in &groups {
            axpy(1.0 / groups.len() as f64, group, &mut mean);
        }
        Self {
            mean,
            groups,
            dropped,
        }
    }

    /// Estimates the squared deviation of the mean by the jackknife, in the norm that is dual to the norm of the trust
    /// region.
    pub(crate) fn noise(&self, metric: &dyn Fn(&[f64], &mut [f64])) -> f64 {
        let k = self.groups.len() as f64;
        let mut scaled = vec![0.0; self.mean.len()];
        let mut sum = 0.0;
        for group in &self.groups {
            let off: Vec<f64> = group.iter().zip(&self.mean).map(|(g, m)| g - m).collect();
            metric(&off, &mut scaled);
            sum += dot(&off, &scaled);
        }
        sum / (k * (k - 1.0))
    }

    /// Estimates the standard error of `gᵀs` by the jackknife.
    pub(crate) fn deviation_along(&self, step: &[f64]) -> f64 {
        let k = self.groups.len() as f64;
        let mean = dot(&self.mean, step);
        let sum: f64 = self
            .groups
            .iter()
            .map(|group| (dot(group, step) - mean).powi(2))
            .sum();
        (sum / (k * (k - 1.0))).sqrt()
    }
}

pub(crate) struct Gradients<'a, D: TwiceDifferentiable> {
    density: &'a D,
    pub(crate) records: Option<&'a dyn Choose>,
    workspace: Option<(usize, D::Workspace)>,
    calls: Calls,
}

/// The averaged Hessian of the log density (d × d), which serves as a control variate.
pub(crate) type Averaged<'h> = Option<&'h [f64]>;

impl<'a, D: TwiceDifferentiable> Gradients<'a, D> {
    pub(crate) fn new(density: &'a D) -> Self {
        Self {
            density,
            records: None,
            workspace: None,
            calls: Calls::default(),
        }
    }

    pub(crate) fn take_calls(&mut self) -> Calls {
        std::mem::take(&mut self.calls)
    }

    pub(crate) fn estimate(
        &mut self,
        family: &dyn Family,
        omega: &[f64],
        source: NoiseSource,
        key: u64,
        draws: usize,
        hessian: Averaged<'_>,
    ) -> Option<Gradient> {
        let (dim, rows) = (family.dim(), family.noise_dim());
        let half = draws.div_ceil(2 * BLOCKS).max(1);
        let most = (sizes::lanes(rows.max(dim)) / 2).max(1);
        // Each call takes several whole groups, or a part of one group.
        let together = (most / half).clamp(1, BLOCKS);
        let part = half.min(most);
        let parameters = family.parameters();
        let mut raw = vec![vec![0.0; parameters]; BLOCKS];
        let mut variate = vec![vec![0.0; parameters]; BLOCKS];
        let mut kept = [0usize; BLOCKS];
        let stream = Stream {
            source,
            purpose: NoisePurpose::Gradient,
            iteration: key,
        };
        for first in (0..BLOCKS).step_by(together) {
            let count = together.min(BLOCKS - first);
            for begin in (0..half).step_by(part) {
                let width = part.min(half - begin);
                let mut noise = vec![0.0; rows * 2 * width * count];
                for g in 0..count {
                    let pair = (first + g) * half + begin;
                    let columns = (2 * width * g, 2 * width * count);
                    mirrored(stream, pair, rows, width, columns, &mut noise);
                }
                let lanes = 2 * width * count;
                if let Some(records) = self.records {
                    records.choose(StreamPosition {
                        stream,
                        first: first * half + begin,
                        layout: Layout::Blocks(2),
                    });
                }
                let batch = self.batch(family, omega, &noise, lanes, hessian);
                for g in 0..count {
                    let columns = 2 * width * g..2 * width * (g + 1);
                    let noise = select(&noise, rows, lanes, columns.clone());
                    let noise = Lanes::new(&noise, rows, 2 * width);
                    let pull = |matrix: &[f64], out: &mut [f64]| {
                        let part = select(matrix, dim, lanes, columns.clone());
                        family.pull(omega, noise, Lanes::new(&part, dim, 2 * width), out);
                    };
                    pull(&batch.gradient, &mut raw[first + g]);
                    pull(&batch.variate, &mut variate[first + g]);
                    kept[first + g] += batch.good[columns.clone()].iter().filter(|&&x| x).count();
                }
            }
        }
        let dropped = (BLOCKS * 2 * half - kept.iter().sum::<usize>()) / 2;
        if kept.contains(&0) {
            return None;
        }
        for (g, kept) in kept.iter().enumerate() {
            let scale = 1.0 / *kept as f64;
            raw[g].iter_mut().for_each(|x| *x *= scale);
            variate[g].iter_mut().for_each(|x| *x *= scale);
        }
        let mut expected = vec![0.0; parameters];
        expected_variate(family, omega, hessian, &mut expected);
        let coefficient = regress(family, omega, &raw, &variate);
        let mut entropy = vec![0.0; parameters];
        family.add_entropy_gradient(omega, &mut entropy);
        for (raw, variate) in raw.iter_mut().zip(&variate) {
            axpy(-coefficient, variate, raw);
            axpy(coefficient, &expected, raw);
            axpy(1.0, &entropy, raw);
        }
        let metric = |r: &[f64], out: &mut [f64]| family.precondition(omega, None, r, out);
        Some(Gradient::clipped(raw, dropped, &metric))
    }

    fn batch(
        &mut self,
        family: &dyn Family,
        omega: &[f64],
        noise: &[f64],
        lanes: usize,
        hessian: Averaged<'_>,
    ) -> Batch {
        let (dim, rows) = (family.dim(), family.noise_dim());
        let fits = matches!(&self.workspace, Some((capacity, _)) if *capacity >= lanes);
        if !fits {
            self.workspace = Some((lanes, self.density.workspace(lanes)));
        }
        let (_, workspace) = self.workspace.as_mut().expect("made above");
        let noise = Lanes::new(noise, rows, lanes);
        let mut z = vec![0.0; dim * lanes];
        family.transform(omega, noise, LanesMut::new(&mut z, dim, lanes));
        let mut values = vec![0.0; lanes];
        let mut gradient = vec![0.0; dim * lanes];
        self.density.value_grad(
            workspace,
            Lanes::new(&z, dim, lanes),
            &mut values,
            LanesMut::new(&mut gradient, dim, lanes),
        );
        self.calls.gradients += lanes as u64;
        let mut good: Vec<bool> = values.iter().map(|v| v.is_finite()).collect();
        for row in gradient.chunks(lanes) {
            for (ok, g) in good.iter_mut().zip(row) {
                *ok &= g.is_finite();
            }
        }
        let mut variate = vec![0.0; dim * lanes];
        match hessian {
            Some(hessian) => {
                for (row, mean) in z.chunks_mut(lanes).zip(&family.mean(omega)) {
                    row.iter_mut().for_each(|x| *x -= mean);
                }
                multiply(hessian, dim, &z, lanes, &mut variate);
            }
            None => {
                let z = Lanes::new(&z, dim, lanes);
                family.score(omega, noise, z, LanesMut::new(&mut variate, dim, lanes));
            }
        }
        if good.iter().any(|ok| !ok) {
            for pair in good.chunks_mut(2) {
                let both = pair.iter().all(|&ok| ok);
                pair.fill(both);
            }
            for matrix in [&mut gradient, &mut variate] {
                for row in matrix.chunks_mut(lanes) {
                    for (x, ok) in row.iter_mut().zip(&good) {
                        *x = if *ok { *x } else { 0.0 };
                    }
                }
            }
        }
        Batch {
            gradient,
            variate,
            good,
        }
    }
}

struct Batch {
    gradient: Vec<f64>,
    variate: Vec<f64>,
    good: Vec<bool>,
}

fn select(matrix: &[f64], rows: usize, lanes: usize, columns: std::ops::Range<usize>) -> Vec<f64> {
    let mut out = Vec::with_capacity(rows * columns.len());
    for row in matrix.chunks(lanes) {
        out.extend_from_slice(&row[columns.clone()]);
    }
    out
}

fn expected_variate(family: &dyn Family, omega: &[f64], hessian: Averaged<'_>, out: &mut [f64]) {
    match hessian {
        // For a mean-field family, E εᵢ (A σε)ᵢ σᵢ = Aᵢᵢ σᵢ².
        Some(hessian) => {
            let dim = family.dim();
            for (i, sd) in family.marginal_sd(omega).iter().enumerate() {
                out[dim + i] = hessian[i * dim + i] * sd * sd;
            }
        }
        // The naive gradient of E log q is the negated gradient of the entropy.
        None => {
            family.add_entropy_gradient(omega, out);
            out.iter_mut().for_each(|x| *x = -*x);
        }
    }
}

fn regress(family: &dyn Family, omega: &[f64], raw: &[Vec<f64>], variate: &[Vec<f64>]) -> f64 {
    let centred = |groups: &[Vec<f64>]| {
        let mean = Gradient::of(groups.to_vec(), 0).mean;
        let off = |g: &Vec<f64>| g.iter().zip(&mean).map(|(x, m)| x - m).collect();
        groups.iter().map(off).collect::<Vec<Vec<f64>>>()
    };
    let (raw, variate) = (centred(raw), centred(variate));
    let mut scaled = vec![0.0; raw[0].len()];
    let (mut both, mut own) = (0.0, 0.0);
    for (raw, variate) in raw.iter().zip(&variate) {
        family.precondition(omega, None, variate, &mut scaled);
        both += dot(raw, &scaled);
        own += dot(variate, &scaled);
    }
    let coefficient = both / own;
    if coefficient.is_finite() {
        coefficient.clamp(0.0, 1.0)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use jensen_math::simd::Simd;
    use jensen_testkit::{CorrelatedGaussian, EightSchools, Scalar};

    use super::*;
    use crate::family::{FamilyKind, FullRank};
    use crate::trust::explicit::Explicit;

    fn source() -> NoiseSource {
        NoiseSource::new(8, Simd::detect())
    }

    #[test]
    fn a_quadratic_log_density_leaves_no_noise() {
        let density = CorrelatedGaussian::exchangeable(&[1.0, 5.0, 0.2], 0.9);
        let family = FamilyKind::MeanField.build(3);
        let omega = [0.4, 1.0, -0.1, 0.2, 1.0, -1.0];
        let (hessian, _) = Explicit::estimate(&density, &omega, source(), 1, 4, None);
        let hessian = hessian.unwrap();
        let metric = |r: &[f64], out: &mut [f64]| family.precondition(&omega, None, r, out);
        let mut gradients = Gradients::new(&density);
        let mut make = |hessian: Averaged<'_>| {
            gradients
                .estimate(family.as_ref(), &omega, source(), 2, 64, hessian)
                .unwrap()
        };
        let plain = make(None);
        let controlled = make(Some(&hessian.mean));
        assert!(plain.noise(&metric) > 1e-3);
        assert!(controlled.noise(&metric) < 1e-20);
        assert!(controlled.deviation_along(&[1.0; 6]) < 1e-10);
        assert_eq!(gradients.take_calls().gradients, 128);
    }

    #[test]
    fn one_wild_group_does_not_lead() {
        let mut groups = vec![vec![1.0, 0.0]; BLOCKS];
        groups[3] = vec![0.0, 1e30];
        let metric = |r: &[f64], out: &mut [f64]| out.copy_from_slice(r);
        let found = Gradient::clipped(groups, 0, &metric);
        assert!((found.mean[0] - 0.875).abs() < 1e-12 && (found.mean[1] - 0.5).abs() < 1e-12);
    }

    #[test]
    fn the_landing_sticks_in_full_rank() {
        let density = CorrelatedGaussian::exchangeable(&[1.0, 1.0], 0.6);
        let family = FullRank::new(2);
        let omega = family.assemble(density.mean(), &[1.0, 0.0, 0.6, 0.8]);
        let mut gradients = Gradients::new(&density);
        let found = gradients
            .estimate(&family, &omega, source(), 1, 32, None)
            .unwrap();
        assert!(
            found.mean.iter().all(|g| g.abs() < 1e-12),
            "{:?}",
            found.mean
        );
    }

    /// Over many samples, the mean must agree with the mean of one large sample, and the jackknife estimate of the
    /// deviation must agree with the observed deviation.
    #[test]
    fn the_jackknife_knows_the_noise() {
        let density = Scalar(EightSchools { centred: false });
        let family = FamilyKind::MeanField.build(10);
        let omega: Vec<f64> = (0..20).map(|i| if i < 10 { 0.1 } else { -0.3 }).collect();
        let metric = |r: &[f64], out: &mut [f64]| family.precondition(&omega, None, r, out);
        let (hessian, _) = Explicit::estimate(&density, &omega, source(), 1, 16, None);
        let hessian = hessian.unwrap();
        let mut gradients = Gradients::new(&density);
        for control in [None, Some(hessian.mean.as_slice())] {
            let mut make = |key, draws| {
                gradients
                    .estimate(family.as_ref(), &omega, source(), key, draws, control)
                    .unwrap()
            };
            let truth = make(1 << 40, 1 << 17).mean;
            let (mut observed, mut estimated) = (0.0, 0.0);
            let samples = 200;
            let mut mean = vec![0.0; truth.len()];
            for key in 0..samples {
                let found = make(key, 128);
                let off: Vec<f64> = found.mean.iter().zip(&truth).map(|(a, b)| a - b).collect();
                let mut scaled = vec![0.0; off.len()];
                metric(&off, &mut scaled);
                observed += dot(&off, &scaled) / samples as f64;
                estimated += found.noise(&metric) / samples as f64;
                axpy(1.0 / samples as f64, &off, &mut mean);
            }
            assert!(
                (estimated / observed - 1.0).abs() < 0.2,
                "{estimated} {observed}"
            );
            let mut scaled = vec![0.0; mean.len()];
            metric(&mean, &mut scaled);
            // The squared noise of the mean of 200 samples is a 200th of the squared noise of one sample.
            let off = dot(&mean, &scaled) * samples as f64 / observed;
            assert!(off < 3.0, "{off}");
        }
    }
}
