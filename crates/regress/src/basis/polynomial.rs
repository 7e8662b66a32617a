//! Orthogonal polynomials over the values of a column. They equal the polynomials of R's `poly`. They are computed by a
//! three-term recursion (Kennedy and Gentle, Statistical computing, 1980, pages 343 to 344).

use serde::{Deserialize, Serialize};

/// Polynomials of degrees 1 to k that are orthonormal over the values of the fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Polynomial {
    alpha: Vec<f64>,
    /// Squared norms of the polynomials, in order of degree from 0.
    norm: Vec<f64>,
}

impl Polynomial {
    /// Creates polynomials that are orthonormal over `x`.
    pub fn of(x: &[f64], degree: usize) -> Self {
        let mut made = Self {
            alpha: Vec::new(),
            norm: Vec::new(),
        };
        let mut last = vec![0.0; x.len()];
        let mut this = vec![1.0; x.len()];
        for _ in 0..=degree {
            let norm: f64 = this.iter().map(|p| p * p).sum();
            let moment: f64 = x.iter().zip(&this).map(|(x, p)| x * p * p).sum();
            let share = made.norm.last().map_or(0.0, |before| norm / before);
            made.alpha.push(moment / norm);
            made.norm.push(norm);
            let alpha = moment / norm;
            let next = step(x, &this, &last, alpha, share);
            last = std::mem::replace(&mut this, next);
        }
        made
    }

    /// Evaluates the polynomials at `x`. Returns one column per degree.
    pub fn at(&self, x: &[f64]) -> Vec<Vec<f64>> {
        let mut found = Vec::new();
        let mut last = vec![0.0; x.len()];
        let mut this = vec![1.0; x.len()];
        for degree in 0..self.norm.len() {
            if degree > 0 {
                let size = self.norm[degree].sqrt();
                found.push(this.iter().map(|p| p / size).collect());
            }
            let share = match degree {
                0 => 0.0,
                _ => self.norm[degree] / self.norm[degree - 1],
            };
            let next = step(x, &this, &last, self.alpha[degree], share);
            last = std::mem::replace(&mut this, next);
        }
        found
    }
}

fn step(x: &[f64], this: &[f64], last: &[f64], alpha: f64, share: f64) -> Vec<f64> {
    let terms = x.iter().zip(this).zip(last);
    terms
        .map(|((x, p), q)| (x - alpha) * p - share * q)
        .collect()
}
