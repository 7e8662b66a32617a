//! Softmax regression with Gaussian dropout on its features.

use jensen_math::simd::{LANES, Simd};
use jensen_math::vmath::slices;

use crate::{Dense, ShapeError};
use jensen_blackbox::records::DoublyStochastic;

/// Softmax regression with dropout, whose loss is `f(W; n, ε) = −log softmax(W ((1 + s ε) ⊙ xₙ))_{yₙ}`. `W` is a K × P
/// matrix, stored row by row. ε is standard normal, so the dropout has variance s² (Wang, Geffner and Domke 2024,
/// appendix E). Eq. 58 of the paper holds for this variance.
///
/// The approximation is the second-order expansion of the loss around ε = 0. Let `η = W x`, `u = W (s ε ⊙ x)`, `p =
/// softmax(η)`, `C = diag(p) − ppᵀ` and `gₖ = pₖ − [k = y]`. The loss, its gradient and the expectation of the gradient
/// are then:
///
/// - `f̃ = f(W; n, 0) + gᵀu + ½ uᵀCu`,
/// - `∇f̃ = (g + Cu + t) xᵀ + (g + Cu)(s ε ⊙ x)ᵀ`, `tₖ = ½ pₖ [(uₖ − pᵀu)² − uᵀCu]`,
/// - `E ∇f̃ = (g + E t) xᵀ + s² (C W) diag(x²)`, where `E uuᵀ = s² W diag(x²) Wᵀ` gives E t.
#[derive(Clone, Debug)]
pub struct GaussianDropout {
    features: Dense,
    labels: Vec<u32>,
    classes: usize,
    sd: f64,
}

impl GaussianDropout {
    /// Creates the objective from features and labels. Each label is below K = `classes`. The dropout has the standard
    /// deviation s = `sd`.
    ///
    /// # Errors
    /// Fails if there are not as many labels as rows of features, or if a label is not below K.
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

    fn softmax(&self, label: u32, eta: &[f64]) -> (Vec<f64>, f64) {
        let largest = eta.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let shifted: Vec<f64> = eta.iter().map(|x| x - largest).collect();
        let mut p = vec![0.0; eta.len()];
        slices::exp(Simd::detect(), &shifted, &mut p);
        let sum: f64 = p.iter().sum();
        p.iter_mut().for_each(|p| *p /= sum);
        (p, sum.ln() - shifted[label as usize])
    }

    fn times(&self, w: &[f64], x: &[f64]) -> Vec<f64> {
        let rows = w.chunks_exact(self.features.columns());
        rows.map(|w| jensen_math::reduce::dot(w, x)).collect()
    }

    /// Returns the rows of a batch, and the perturbation `s ε ⊙ x` of each of them.
    fn rows(&self, batch: &[u32], noise: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let mut x = Vec::new();
        self.features.gather(batch, &mut x);
        let moved = x.iter().zip(noise).map(|(x, e)| self.sd * e * x).collect();
        (x, moved)
    }

    /// Returns the mean loss over all records without dropout, in nats.
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

jensen_math::simd_fn! {
    /// Computes the three inner products `w·x`, `w·m` and `w²·x²`.
    fn products, products_fn = <V>(w: &[f64], x: &[f64], m: &[f64]) -> [f64; 3] {
        let ((w, w_rest), (x, x_rest), (m, m_rest)) =
            (w.as_chunks::<LANES>(), x.as_chunks::<LANES>(), m.as_chunks::<LANES>());
        let mut sums = [V::zero(); 3];
        for ((w, x), m) in w.iter().zip(x).zip(m) {
            let w = V::from_array(*w);
            let product = w * V::from_array(*x);
            sums[0] = sums[0] + product;
            sums[1] = sums[1] + w * V::from_array(*m);
            sums[2] = sums[2] + product * product;
        }
        let mut out = sums.map(|sum| sum.to_array().iter().sum::<f64>());
        for ((w, x), m) in w_rest.iter().zip(x_rest).zip(m_rest) {
            out[0] += w * x;
            out[1] += w * m;
            out[2] += (w * x) * (w * x);
        }
        out
    }

    fn weigh, weigh_fn = <V>(x: &[f64], a: &[f64], out: &mut [f64]) {
        let _ = std::marker::PhantomData::<V>;
        for ((out, x), a) in out.iter_mut().zip(x).zip(a) {
            *out = x * x * a;
        }
    }

    fn add_two, add_two_fn = <V>(factors: [f64; 2], rows: [&[f64]; 2], out: &mut [f64]) {
        let _ = std::marker::PhantomData::<V>;
        for ((out, x), m) in out.iter_mut().zip(rows[0]).zip(rows[1]) {
            *out += factors[0] * x + factors[1] * m;
        }
    }

    /// Computes `out += a x + c x² (w − v)`.
    fn add_expected, add_expected_fn = <V>(factors: [f64; 2], x: &[f64], rows: [&[f64]; 2], out: &mut [f64]) {
        let _ = std::marker::PhantomData::<V>;
        for (((out, x), w), v) in out.iter_mut().zip(x).zip(rows[0]).zip(rows[1]) {
            *out += factors[0] * x + factors[1] * x * x * (w - v);
        }
    }
}

fn add_outer(a: &[f64], x: &[f64], out: &mut [f64]) {
    for (out, c) in out.chunks_exact_mut(x.len()).zip(a) {
        jensen_math::reduce::axpy(*c, x, out);
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
        jensen_math::reduce::axpy(1.0, &moved, &mut x);
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
        let (simd, variance) = (Simd::detect(), self.sd * self.sd);
        let (mut eta, mut u, mut diagonal) = (vec![0.0; k], vec![0.0; k], vec![0.0; k]);
        let (mut average, mut weighted) = (vec![0.0; columns], vec![0.0; columns]);
        let rows = x.chunks_exact(columns).zip(moved.chunks_exact(columns));
        for ((x, moved), &n) in rows.zip(batch) {
            let label = self.labels[n as usize];
            for (i, w) in w.chunks_exact(columns).enumerate() {
                [eta[i], u[i], diagonal[i]] = products(simd, w, x, moved);
            }
            let (p, _) = self.softmax(label, &eta);
            // With M = W diag(x²) Wᵀ, this computes pᵀW, M p, pᵀM p and the average of M's diagonal under p.
            average.fill(0.0);
            for (w, p) in w.chunks_exact(columns).zip(&p) {
                jensen_math::reduce::axpy(*p, w, &mut average);
            }
            weigh(simd, x, &average, &mut weighted);
            let mp = self.times(w, &weighted);
            let over_p = |of: &[f64]| -> f64 { p.iter().zip(of).map(|(p, x)| p * x).sum() };
            let (mean, pmp, average_diagonal) = (over_p(&u), over_p(&mp), over_p(&diagonal));
            let spread: f64 = p
                .iter()
                .zip(&u)
                .map(|(p, u)| p * (u - mean) * (u - mean))
                .sum();
            let out = at_noise
                .chunks_exact_mut(columns)
                .zip(expected.chunks_exact_mut(columns));
            for (i, (w, (at_noise, expected))) in w.chunks_exact(columns).zip(out).enumerate() {
                let g = p[i] - f64::from(u8::from(i == label as usize));
                let t = u[i] - mean;
                let along = scale * (g + p[i] * t);
                let at = along + scale * 0.5 * p[i] * (t * t - spread);
                add_two(simd, [at, along], [x, moved], at_noise);
                // (C W) diag(x²) equals p ⊙ (W − pᵀW) diag(x²), computed row by row.
                let t = diagonal[i] - 2.0 * mp[i] + 2.0 * pmp - average_diagonal;
                let at = scale * (g + 0.5 * variance * p[i] * t);
                let c = scale * variance * p[i];
                add_expected(simd, [at, c], x, [w, &average], expected);
            }
        }
    }
}
