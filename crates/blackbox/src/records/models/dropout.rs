//! Softmax regression with Gaussian dropout on its features.

use jensen_math::simd::Simd;
use jensen_math::vmath::slices;

use super::{Dense, ShapeError};
use crate::records::DoublyStochastic;

/// `f(W; n, ε) = −log softmax(W ((1 + s ε) ⊙ xₙ))_{yₙ}` for `W` of K × P, row after row, ε standard
/// normal: dropout of variance s² (Wang, Geffner and Domke 2024, appendix E, whose Eq. 58 needs the
/// variance that is drawn).
///
/// The approximation is the second-order expansion around ε = 0. With `η = W x`,
/// `u = W (s ε ⊙ x)`, `p = softmax(η)`, `C = diag(p) − ppᵀ` and `gₖ = pₖ − [k = y]`,
///
/// * `f̃ = f(W; n, 0) + gᵀu + ½ uᵀCu`,
/// * `∇f̃ = (g + Cu + t) xᵀ + (g + Cu)(s ε ⊙ x)ᵀ`, `tₖ = ½ pₖ [(uₖ − pᵀu)² − uᵀCu]`,
/// * `E ∇f̃ = (g + E t) xᵀ + s² (C W) diag(x²)`, E t by `E uuᵀ = s² W diag(x²) Wᵀ`.
#[derive(Clone, Debug)]
pub struct GaussianDropout {
    features: Dense,
    labels: Vec<u32>,
    classes: usize,
    sd: f64,
}

impl GaussianDropout {
    /// Features, labels below K and the standard deviation s.
    ///
    /// # Errors
    /// When features and labels differ in number, or a label is not below K.
    pub fn new(
        features: Dense,
        labels: Vec<u32>,
        classes: usize,
        sd: f64,
    ) -> Result<Self, ShapeError> {
        if features.rows() != labels.len() {
            return Err(ShapeError(format!(
                "{} rows of features but {} labels",
                features.rows(),
                labels.len()
            )));
        }
        if let Some(label) = labels.iter().find(|&&label| label as usize >= classes) {
            return Err(ShapeError(format!(
                "the label {label} is not below the number of classes, {classes}"
            )));
        }
        Ok(Self {
            features,
            labels,
            classes,
            sd,
        })
    }

    /// Probabilities and `−log p_y` of predictors.
    fn softmax(&self, label: u32, eta: &[f64]) -> (Vec<f64>, f64) {
        let largest = eta.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let shifted: Vec<f64> = eta.iter().map(|x| x - largest).collect();
        let mut p = vec![0.0; eta.len()];
        slices::exp(Simd::detect(), &shifted, &mut p);
        let sum: f64 = p.iter().sum();
        p.iter_mut().for_each(|p| *p /= sum);
        (p, sum.ln() - shifted[label as usize])
    }

    /// `W x`.
    fn times(&self, w: &[f64], x: &[f64]) -> Vec<f64> {
        let rows = w.chunks_exact(self.features.columns());
        rows.map(|w| crate::reduce::dot(w, x)).collect()
    }

    /// The gathered rows, and `s ε ⊙ x` for each.
    fn rows(&self, batch: &[u32], noise: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let mut x = Vec::new();
        self.features.gather(batch, &mut x);
        let moved = x.iter().zip(noise).map(|(x, e)| self.sd * e * x).collect();
        (x, moved)
    }

    /// The mean over all records of the loss without dropout, in nats.
    pub fn loss(&self, w: &[f64]) -> f64 {
        let all: Vec<u32> = (0..self.labels.len() as u32).collect();
        let mut x = Vec::new();
        let mut total = 0.0;
        for batch in all.chunks(512) {
            self.features.gather(batch, &mut x);
            for (x, &n) in x.chunks_exact(self.features.columns()).zip(batch) {
                let label = self.labels[n as usize];
                total += self.softmax(label, &self.times(w, x)).1;
            }
        }
        total / self.labels.len() as f64
    }
}

/// `out += c x` row by row: `out += a xᵀ`.
fn add_outer(a: &[f64], x: &[f64], out: &mut [f64]) {
    for (out, c) in out.chunks_exact_mut(x.len()).zip(a) {
        crate::reduce::axpy(*c, x, out);
    }
}

impl DoublyStochastic for GaussianDropout {
    fn parameters(&self) -> usize {
        self.classes * self.features.columns()
    }

    fn records(&self) -> usize {
        self.labels.len()
    }

    fn noise_dim(&self) -> usize {
        self.features.columns()
    }

    fn add_gradient(
        &self,
        w: &[f64],
        batch: &[u32],
        noise: &[f64],
        scale: f64,
        out: &mut [f64],
    ) -> f64 {
        let (mut x, moved) = self.rows(batch, noise);
        crate::reduce::axpy(1.0, &moved, &mut x);
        let mut total = 0.0;
        for (x, &n) in x.chunks_exact(self.features.columns()).zip(batch) {
            let label = self.labels[n as usize];
            let (mut g, value) = self.softmax(label, &self.times(w, x));
            total += value;
            g[label as usize] -= 1.0;
            g.iter_mut().for_each(|g| *g *= scale);
            add_outer(&g, x, out);
        }
        total
    }

    fn add_surrogate(
        &self,
        w: &[f64],
        batch: &[u32],
        noise: &[f64],
        scale: f64,
        at_noise: &mut [f64],
        expected: &mut [f64],
    ) {
        let (columns, k) = (self.features.columns(), self.classes);
        let (x, moved) = self.rows(batch, noise);
        let variance = self.sd * self.sd;
        let rows = x.chunks_exact(columns).zip(moved.chunks_exact(columns));
        for ((x, moved), &n) in rows.zip(batch) {
            let label = self.labels[n as usize];
            let (p, _) = self.softmax(label, &self.times(w, x));
            let mut g = p.clone();
            g[label as usize] -= 1.0;

            let u = self.times(w, moved);
            let mean: f64 = p.iter().zip(&u).map(|(p, u)| p * u).sum();
            let spread: f64 = p
                .iter()
                .zip(&u)
                .map(|(p, u)| p * (u - mean) * (u - mean))
                .sum();
            let mut along = vec![0.0; k];
            let mut at = vec![0.0; k];
            for i in 0..k {
                let t = u[i] - mean;
                along[i] = scale * (g[i] + p[i] * t);
                at[i] = along[i] + scale * 0.5 * p[i] * (t * t - spread);
            }
            add_outer(&at, x, at_noise);
            add_outer(&along, moved, at_noise);

            // M = W diag(x²) Wᵀ.
            let square: Vec<f64> = x.iter().map(|x| x * x).collect();
            let weighted: Vec<f64> = w
                .chunks_exact(columns)
                .flat_map(|w| w.iter().zip(&square).map(|(w, q)| w * q))
                .collect();
            let mut m = vec![0.0; k * k];
            for (i, row) in weighted.chunks_exact(columns).enumerate() {
                for (j, w) in w.chunks_exact(columns).enumerate().take(i + 1) {
                    let product = crate::reduce::dot(row, w);
                    m[i * k + j] = product;
                    m[j * k + i] = product;
                }
            }
            let mp: Vec<f64> = m
                .chunks_exact(k)
                .map(|row| row.iter().zip(&p).map(|(m, p)| m * p).sum())
                .collect();
            let pmp: f64 = p.iter().zip(&mp).map(|(p, x)| p * x).sum();
            let trace: f64 = (0..k).map(|i| p[i] * m[i * k + i]).sum();
            for i in 0..k {
                let t = 0.5 * variance * p[i] * (m[i * k + i] - 2.0 * mp[i] + 2.0 * pmp - trace);
                at[i] = scale * (g[i] + t);
            }
            add_outer(&at, x, expected);
            // (C W) diag(x²) = p ⊙ (W − pᵀW) diag(x²), row by row.
            let mut average = vec![0.0; columns];
            for (row, p) in weighted.chunks_exact(columns).zip(&p) {
                crate::reduce::axpy(*p, row, &mut average);
            }
            let out = expected.chunks_exact_mut(columns);
            for ((out, row), p) in out.zip(weighted.chunks_exact(columns)).zip(&p) {
                let c = scale * variance * p;
                for ((out, x), m) in out.iter_mut().zip(row).zip(&average) {
                    *out += c * (x - m);
                }
            }
        }
    }
}
