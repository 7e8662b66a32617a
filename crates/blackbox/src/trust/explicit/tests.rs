use jensen_density::{Lanes, LanesMut, LogDensity};
use jensen_math::simd::Simd;
use jensen_testkit::CorrelatedGaussian;

use super::*;
use crate::family::{Family, MeanField};
use crate::objective::Objective;

/// The log density `Σ zᵢ − ½ Σ zᵢ² − Σ e^{zᵢ + zᵢ₊₁}`. It has derivatives of all orders, and couples all pairs of
/// neighbours.
struct Chain(usize);

impl LogDensity for Chain {
    type Workspace = Vec<f64>;
    fn dim(&self) -> usize {
        self.0
    }
    fn workspace(&self, _: usize) -> Vec<f64> {
        Vec::new()
    }
    fn value(&self, ws: &mut Vec<f64>, z: Lanes<'_>, out: &mut [f64]) {
        let mut gradient = vec![0.0; self.0 * z.lanes()];
        let gradient = LanesMut::new(&mut gradient, self.0, z.lanes());
        self.value_grad(ws, z, out, gradient);
    }
    fn value_grad(&self, _: &mut Vec<f64>, z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
        for (l, value) in out.iter_mut().enumerate() {
            *value = 0.0;
            for i in 0..self.0 {
                let x = z.row(i)[l];
                *value += x - 0.5 * x * x;
                grad.row_mut(i)[l] = 1.0 - x;
            }
            for i in 1..self.0 {
                let e = (z.row(i)[l] + z.row(i - 1)[l]).exp();
                *value -= e;
                grad.row_mut(i)[l] -= e;
                grad.row_mut(i - 1)[l] -= e;
            }
        }
    }
}

impl TwiceDifferentiable for Chain {
    fn linearize(&self, ws: &mut Vec<f64>, z: Lanes<'_>) {
        *ws = z.as_slice().to_vec();
    }
    fn apply(&self, ws: &mut Vec<f64>, v: Lanes<'_>, mut out: LanesMut<'_>) {
        let lanes = v.lanes();
        let z = Lanes::new(ws, self.0, lanes);
        for l in 0..lanes {
            for i in 0..self.0 {
                out.row_mut(i)[l] = -v.row(i)[l];
            }
            for i in 1..self.0 {
                let e = (z.row(i)[l] + z.row(i - 1)[l]).exp();
                let x = e * (v.row(i)[l] + v.row(i - 1)[l]);
                out.row_mut(i)[l] -= x;
                out.row_mut(i - 1)[l] -= x;
            }
        }
    }
}

fn source() -> NoiseSource {
    NoiseSource::new(3, Simd::detect())
}

/// Computes products with the matrix B from the definition of B. Inside the region, the step of an explicit Hessian
/// solves `B s = g`.
fn residual<D: TwiceDifferentiable>(density: &D, omega: &[f64], explicit: &Explicit) -> f64 {
    let dim = density.dim();
    let g: Vec<f64> = (0..2 * dim).map(|i| (i as f64 * 0.7).cos()).collect();
    let solution = explicit.solve(omega, &g, 1e9, 1e300);
    assert!(!solution.bounded);
    let family = std::sync::Arc::new(MeanField::new(dim));
    let lanes = 1 << 15;
    let noise = source().matched(NoisePurpose::Sample, 9, family.noise_dim(), lanes);
    let mut objective = Objective::new(density, family, noise, lanes);
    objective.linearize(omega);
    let mut product = vec![0.0; 2 * dim];
    objective.hvp(&solution.step, &mut product);
    let off = product.iter().zip(&g).map(|(p, g)| (p - g).powi(2));
    (off.sum::<f64>() / dot(&g, &g)).sqrt()
}

#[test]
fn a_gaussian_needs_two_draws() {
    let density = CorrelatedGaussian::exchangeable(&[0.5, 1.0, 20.0], 0.8);
    let omega = [0.3, -0.2, 1.0, -0.5, 0.1, 2.0];
    let (found, products) = Explicit::estimate(&density, &omega, source(), 1, 2, None);
    assert_eq!(products, 6);
    let off = residual(&density, &omega, &found.unwrap());
    assert!(off < 1e-9, "{off}");
}

#[test]
fn many_draws_approach_the_hessian_of_the_bound() {
    let density = Chain(4);
    let omega = [-0.5, 0.1, -0.3, 0.2, -0.8, -0.4, -1.0, -0.6];
    let (found, _) = Explicit::estimate(&density, &omega, source(), 1, 1 << 14, None);
    let found = found.unwrap();
    let off = residual(&density, &omega, &found);
    assert!(off < 0.03, "{off}");
    // Averages over small samples converge to the same Hessian.
    let mut average: Option<Explicit> = None;
    for key in 0..8 {
        let (new, _) = Explicit::estimate(&density, &omega, source(), key, 2048, None);
        match &mut average {
            Some(average) => average.blend(&new.unwrap()),
            None => average = new,
        }
    }
    let average = average.unwrap();
    assert!(residual(&density, &omega, &average) < 0.03);
    assert_eq!(average.weight, 8.0 * 2048.0);
}

#[test]
fn estimates_know_their_noise() {
    let density = Chain(4);
    let omega = [-0.5, 0.1, -0.3, 0.2, -0.8, -0.4, -1.0, -0.6];
    let sd: Vec<f64> = omega[4..].iter().map(|l: &f64| l.exp()).collect();
    let (truth, _) = Explicit::estimate(&density, &omega, source(), 1 << 20, 1 << 15, None);
    let truth = truth.unwrap();
    let (mut observed, mut stated) = ([0.0; 2], [0.0; 2]);
    for key in 0..400 {
        let (found, _) = Explicit::estimate(&density, &omega, source(), key, 16, None);
        let mut found = found.unwrap();
        (0..2).for_each(|k| stated[k] += found.noise[k]);
        axpy(-1.0, &truth.cross, &mut found.cross);
        axpy(-1.0, &truth.logs, &mut found.logs);
        let off = found.sizes(&sd);
        (0..2).for_each(|k| observed[k] += off[k]);
    }
    // The diagonal of the covariances shares noise with the mean. The stated noise of the covariances is too large
    // by this part.
    for (k, most) in [(0, 1.2), (1, 1.6)] {
        let ratio = stated[k] / observed[k];
        assert!(ratio > 0.8 && ratio < most, "block {k}: {ratio}");
    }
}

#[test]
fn curvatures_beyond_the_largest_are_scaled_down() {
    let density = CorrelatedGaussian::exchangeable(&[1.0, 1.0], 0.5);
    let omega = [1.0, 2.0, 0.0, 0.0];
    let (found, _) = Explicit::estimate(&density, &omega, source(), 1, 2, None);
    let found = found.unwrap();
    let g = [1.0, 0.0, 0.0, 0.0];
    let free = found.solve(&omega, &g, 1e9, 1e300);
    let scaled = found.solve(&omega, &g, 1e9, 0.1 * free.curvature);
    assert!((scaled.curvature / free.curvature - 0.1).abs() < 1e-12);
    assert!((scaled.predicted / free.predicted - 10.0).abs() < 1e-9);
}
