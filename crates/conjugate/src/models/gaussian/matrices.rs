//! Components whose covariance matrices are not diagonal: missing values and predictions.

use jensen_math::constants::LOG_TWO_PI;
use jensen_math::{dense, special};

use super::Gaussians;
use crate::models::components::Completed;

fn split(x: &[f64]) -> (Vec<usize>, Vec<usize>) {
    (0..x.len()).partition(|i| x[*i].is_nan())
}

impl Gaussians {
    /// Given the observed values o of a row, the missing values m are normal. With P = `E[Λ]`, their precision is P_mm,
    /// or P_mm/T at temperature T. Their mean is P_mm⁻¹ (`E[Λμ]`_m − P_mo x_o).
    pub(super) fn without_gaps(
        &self,
        t: &[f64],
        point: usize,
        inverse: f64,
        statistics: &mut Vec<f64>,
    ) -> Completed {
        let (x, d) = (self.row(point), self.dim);
        let (missing, known) = split(x);
        let m = missing.len();
        let precision = |i: usize, j: usize| -2.0 * t[d + 1 + i * d + j];
        let p: Vec<f64> = (0..m * m)
            .map(|at| precision(missing[at / m], missing[at % m]))
            .collect();
        let Ok(l) = dense::factor(&p, m, 0.0) else {
            statistics.extend(std::iter::repeat_n(f64::NAN, d + 2 + d * d));
            return Completed {
                log_integral: f64::NAN,
                energy: f64::NAN,
            };
        };
        let h: Vec<f64> = missing
            .iter()
            .map(|&i| t[i] - known.iter().map(|&j| precision(i, j) * x[j]).sum::<f64>())
            .collect();
        let spread = dense::inverse(&l, m);
        let mut filled = x.to_vec();
        for (row, &i) in spread.chunks_exact(m).zip(&missing) {
            filled[i] = row.iter().zip(&h).map(|(a, b)| a * b).sum();
        }
        let gain: f64 = missing
            .iter()
            .zip(&h)
            .map(|(&i, h)| 0.5 * h * filled[i])
            .sum();
        let mut fixed = t[d] + t[d + 1 + d * d] - 0.5 * d as f64 * LOG_TWO_PI - self.scale_of(x);
        for &i in &known {
            let dot: f64 = known.iter().map(|&j| precision(i, j) * x[j]).sum();
            fixed += x[i] * (t[i] - 0.5 * dot);
        }
        let begin = statistics.len();
        statistics.extend_from_slice(&filled);
        statistics.push(1.0);
        statistics.extend((0..d * d).map(|at| filled[at / d] * filled[at % d]));
        statistics.push(1.0);
        for (row, &i) in spread.chunks_exact(m).zip(&missing) {
            for (v, &j) in row.iter().zip(&missing) {
                statistics[begin + d + 1 + i * d + j] += v / inverse;
            }
        }
        let free = 0.5 * m as f64;
        Completed {
            log_integral: inverse * (fixed + gain) + free * (LOG_TWO_PI - inverse.ln())
                - 0.5 * dense::log_determinant(&l, m),
            energy: fixed + gain - free / inverse,
        }
    }

    /// Computes the log density of the known columns, which have a multivariate Student t distribution.
    pub(super) fn student(&self, lambda: &[f64], point: usize) -> f64 {
        let (x, d) = (self.row(point), self.dim);
        let (_, known) = split(x);
        let (n, kappa) = (known.len(), lambda[d]);
        let df = lambda[d + 1 + d * d] + 1.0;
        let mean = |i: usize| lambda[i] / kappa;
        let scale: Vec<f64> = (0..n * n)
            .map(|at| {
                let (i, j) = (known[at / n], known[at % n]);
                let within = lambda[d + 1 + i * d + j] - kappa * mean(i) * mean(j);
                within * (kappa + 1.0) / (kappa * df)
            })
            .collect();
        let Ok(l) = dense::factor(&scale, n, 0.0) else {
            return f64::NAN;
        };
        let mut off: Vec<f64> = known.iter().map(|&i| x[i] - mean(i)).collect();
        dense::solve_lower_lanes(&l, n, &mut off, 1);
        let squares: f64 = off.iter().map(|x| x * x).sum();
        let size = n as f64;
        special::lgamma(0.5 * (df + size))
            - special::lgamma(0.5 * df)
            - 0.5 * size * (df * std::f64::consts::PI).ln()
            - 0.5 * dense::log_determinant(&l, n)
            - 0.5 * (df + size) * (squares / df).ln_1p()
            - self.scale_of(x)
    }
}
