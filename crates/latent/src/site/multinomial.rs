//! The vector site of the multinomial-logit likelihood under the log bound.
//!
//! There are K categories and K − 1 linear predictors, because the last category is the reference. The bound is `E
//! log(1 + Σ e^(η_k)) ≤ log(1 + Σ e^(m_k + v_k/2)) = sup over p of Σ p_k (m_k + v_k/2) − Σ_k≤K p_k log p_k`. Here p is
//! in the open simplex of K numbers. The dual coordinates are α_k = p_k − [y = k] for k < K, with λ_k = p_k. The
//! curvature of φ = Σ_k≤K p_k log p_k is `diag(1/p_k) + 11ᵀ/p_K`.

use super::convex::{Curve, Value};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Multinomial {
    pub category: usize,
    pub size: usize,
}

impl Multinomial {
    fn indicator(&self, k: usize) -> f64 {
        f64::from(self.category == k)
    }

    /// Returns the probabilities p_k for k < K, followed by p_K. The probability of the observed category is one minus
    /// the sum of the others, so small values of this sum keep their relative accuracy.
    fn probabilities(&self, alpha: &[f64]) -> Vec<f64> {
        let mut p: Vec<f64> = alpha
            .iter()
            .enumerate()
            .map(|(k, a)| a + self.indicator(k))
            .collect();
        p.push(self.indicator(self.size) - alpha.iter().sum::<f64>());
        p
    }

    /// Writes the curves of the observation's coordinates and returns 1/p_K. The first curve contains all of φ.
    pub(crate) fn curves(&self, alpha: &[f64], out: &mut [Curve]) -> f64 {
        let p = self.probabilities(alpha);
        let last = p[self.size];
        let phi: f64 = p.iter().map(|p| p * p.ln()).sum();
        for (k, curve) in out.iter_mut().enumerate() {
            *curve = Curve {
                lambda: p[k],
                lambda1: 1.0,
                lambda2: 0.0,
                phi: if k == 0 { phi } else { 0.0 },
                phi1: p[k].ln() - last.ln(),
                phi2: 1.0 / p[k],
            };
        }
        1.0 / last
    }

    /// Returns the largest t for which α + t d is in the closed domain.
    pub(crate) fn reach(&self, alpha: &[f64], direction: &[f64]) -> f64 {
        let p = self.probabilities(alpha);
        let last: f64 = -direction.iter().sum::<f64>();
        direction
            .iter()
            .chain([&last])
            .zip(&p)
            .filter(|(d, _)| **d < 0.0)
            .map(|(d, p)| -p / d)
            .fold(f64::INFINITY, f64::min)
    }

    pub(crate) fn contains(&self, alpha: &[f64]) -> bool {
        self.probabilities(alpha).iter().all(|p| *p > 0.0)
    }

    /// Computes the point at `t` on a path that is straight in φ′. Such a path never leaves the domain.
    pub(crate) fn along(&self, alpha: &[f64], direction: &[f64], t: f64, out: &mut [f64]) {
        let p = self.probabilities(alpha);
        let last = p[self.size];
        let common = direction.iter().sum::<f64>() / last;
        let mut x: Vec<f64> = (0..self.size)
            .map(|k| (p[k] / last).ln() + t * (direction[k] / p[k] + common))
            .collect();
        x.push(0.0);
        let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let q: Vec<f64> = x.iter().map(|x| (x - top).exp()).collect();
        let total: f64 = q.iter().sum();
        for (k, out) in out.iter_mut().enumerate() {
            *out = if k == self.category {
                -(q.iter().enumerate().filter(|(j, _)| *j != k))
                    .map(|(_, q)| q / total)
                    .sum::<f64>()
            } else {
                q[k] / total
            };
        }
    }

    /// Writes a rough α that depends only on the observed category.
    pub(crate) fn guess(&self, out: &mut [f64]) {
        let total = 1.0 + 0.5 * (self.size + 1) as f64;
        for (k, out) in out.iter_mut().enumerate() {
            *out = (self.indicator(k) + 0.5) / total - self.indicator(k);
        }
    }

    fn softmax(&self, m: &[f64], v: &[f64]) -> (Vec<f64>, f64) {
        let mut x: Vec<f64> = m.iter().zip(v).map(|(m, v)| m + 0.5 * v).collect();
        x.push(0.0);
        let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = x.iter().map(|x| (x - top).exp()).sum();
        let log = top + total.ln();
        (x.iter().map(|x| (x - log).exp()).collect(), log)
    }

    /// Computes the bound. The derivatives with respect to m are written to `by_mean`.
    pub(crate) fn value(&self, m: &[f64], v: &[f64], out: &mut [Value]) {
        let (p, log) = self.softmax(m, v);
        let observed = m.get(self.category).copied().unwrap_or(0.0);
        for (k, out) in out.iter_mut().enumerate() {
            *out = Value {
                f: if k == 0 { log - observed } else { 0.0 },
                by_mean: p[k] - self.indicator(k),
                by_variance: 0.5 * p[k],
            };
        }
    }

    pub(crate) fn gap(&self, alpha: &[f64], m: &[f64], v: &[f64]) -> f64 {
        let (q, _) = self.softmax(m, v);
        let sum: f64 = self
            .probabilities(alpha)
            .iter()
            .zip(&q)
            .map(|(p, q)| p * (p / q).ln() + q - p)
            .sum();
        sum.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conjugate_meets_the_bound_and_its_derivatives_are_right() {
        for category in 0..3 {
            let site = Multinomial { category, size: 2 };
            let (m, v) = ([0.3, -0.9], [0.5, 1.4]);
            let mut value = [Value::default(); 2];
            site.value(&m, &v, &mut value);
            let alpha = [value[0].by_mean, value[1].by_mean];
            let blank = Curve {
                lambda: 0.0,
                lambda1: 0.0,
                lambda2: 0.0,
                phi: 0.0,
                phi1: 0.0,
                phi2: 0.0,
            };
            let objective = |alpha: &[f64]| {
                let mut at = [blank; 2];
                site.curves(alpha, &mut at);
                (0..2)
                    .map(|k| alpha[k] * m[k] + 0.5 * at[k].lambda * v[k] - at[k].phi)
                    .sum::<f64>()
            };
            let f = value[0].f;
            assert!((objective(&alpha) - f).abs() < 1e-12);
            assert!(site.gap(&alpha, &m, &v) < 1e-12);
            // The maximiser is unique, so no neighbour is better, and the gap at a neighbour equals its shortfall.
            for d in [[0.01, 0.0], [0.0, -0.01], [0.01, -0.02]] {
                let other = [alpha[0] + d[0], alpha[1] + d[1]];
                let shortfall = f - objective(&other);
                assert!(shortfall > 0.0);
                assert!((shortfall - site.gap(&other, &m, &v)).abs() < 1e-12);
            }
            let h = 1e-6;
            for k in 0..2 {
                let (mut up, mut down) = (alpha, alpha);
                up[k] += h;
                down[k] -= h;
                let (mut at, mut plus, mut minus) = ([blank; 2], [blank; 2], [blank; 2]);
                let coupling = site.curves(&alpha, &mut at);
                site.curves(&up, &mut plus);
                site.curves(&down, &mut minus);
                let slope = (plus[0].phi - minus[0].phi) / (2.0 * h);
                assert!((slope - at[k].phi1).abs() < 1e-6);
                for j in 0..2 {
                    let curvature = (plus[j].phi1 - minus[j].phi1) / (2.0 * h);
                    let own = if j == k { at[k].phi2 } else { 0.0 };
                    assert!((curvature - own - coupling).abs() < 1e-4 * curvature.abs());
                }
                let (mut up, mut down) = (m, m);
                up[k] += h;
                down[k] -= h;
                let (mut plus, mut minus) = ([Value::default(); 2], [Value::default(); 2]);
                site.value(&up, &v, &mut plus);
                site.value(&down, &v, &mut minus);
                let slope = (plus[0].f - minus[0].f) / (2.0 * h);
                assert!((slope - value[k].by_mean).abs() < 1e-8);
                assert!(
                    (value[k].by_variance - 0.5 * (value[k].by_mean + site.indicator(k))).abs()
                        < 1e-15
                );
            }
            assert!(site.contains(&alpha) && !site.contains(&[2.0, 0.0]));
        }
    }
}
