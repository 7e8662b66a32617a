//! A user-defined family of multivariate Student-t distributions, for posteriors with long tails. An example of such a
//! posterior is that of a regression with few observations and an unknown variance.
//!
//! `cargo run -p jensen --example student_t`

use jensen::family::{Curvature, FamilyName, Smoothness, check_family};
use jensen::prelude::*;

/// The family of multivariate Student-t distributions with a separate scale for each coordinate. The parameters are ω =
/// (μ, log σ), and a draw is `zᵢ = μᵢ + σᵢ sᵢ` with `s = ε / √(χ²/ν)`. The first d rows of the noise are ε, and χ² is
/// the sum of the squares of the other ν rows.
#[derive(Debug)]
pub struct StudentT {
    /// The dimension d of the distributions.
    pub dim: usize,
    /// The degrees of freedom ν, which must be at least 3.
    pub freedom: usize,
}

impl StudentT {
    /// Returns s for every draw, as an array of `dim × lanes` values.
    fn standard(&self, noise: Lanes<'_>) -> Vec<f64> {
        let lanes = noise.lanes();
        let mut squares = vec![0.0; lanes];
        for row in self.dim..self.dim + self.freedom {
            for (sum, e) in squares.iter_mut().zip(noise.row(row)) {
                *sum += e * e;
            }
        }
        let mut s = noise.as_slice()[..self.dim * lanes].to_vec();
        for row in s.chunks_mut(lanes) {
            for (s, sum) in row.iter_mut().zip(&squares) {
                *s /= (sum / self.freedom as f64).sqrt();
            }
        }
        s
    }

    /// Computes `centreᵢ + scaleᵢ sᵢ`, which is the form of both the draws and their derivatives.
    fn affine(
        &self,
        centre: &[f64],
        scale: impl Fn(usize) -> f64,
        noise: Lanes<'_>,
        mut out: LanesMut<'_>,
    ) {
        let s = self.standard(noise);
        for (i, row) in s.chunks(noise.lanes()).enumerate() {
            for (out, s) in out.row_mut(i).iter_mut().zip(row) {
                *out = centre[i] + scale(i) * s;
            }
        }
    }

    fn scale(&self, omega: &[f64], i: usize) -> f64 {
        omega[self.dim + i].exp()
    }

    /// Computes `Σ_lanes gᵢ sᵢ` for every coordinate.
    fn along(&self, noise: Lanes<'_>, grad: Lanes<'_>) -> Vec<f64> {
        let s = self.standard(noise);
        let rows = s.chunks(noise.lanes()).enumerate();
        rows.map(|(i, row)| row.iter().zip(grad.row(i)).map(|(s, g)| s * g).sum())
            .collect()
    }

    /// Computes `Σᵢ ((zᵢ − μᵢ)/σᵢ)²` for every draw.
    fn squares(&self, omega: &[f64], z: Lanes<'_>) -> Vec<f64> {
        let mut squares = vec![0.0; z.lanes()];
        for i in 0..self.dim {
            for (sum, z) in squares.iter_mut().zip(z.row(i)) {
                *sum += ((z - omega[i]) / self.scale(omega, i)).powi(2);
            }
        }
        squares
    }

    /// Returns `log(sd/σ)`, where sd is the standard deviation of a coordinate.
    fn log_ratio(&self) -> f64 {
        let freedom = self.freedom as f64;
        0.5 * (freedom / (freedom - 2.0)).ln()
    }
}

/// Returns log Γ(n/2).
pub fn log_gamma_of_half(n: usize) -> f64 {
    match n {
        1 => 0.5 * std::f64::consts::PI.ln(),
        2 => 0.0,
        _ => log_gamma_of_half(n - 2) + (0.5 * n as f64 - 1.0).ln(),
    }
}

impl Family for StudentT {
    fn name(&self) -> FamilyName {
        FamilyName::own(format!("student_t={}", self.freedom))
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn noise_dim(&self) -> usize {
        self.dim + self.freedom
    }

    fn parameters(&self) -> usize {
        2 * self.dim
    }

    fn diagonal(&self, mean: &[f64], log_sd: &[f64]) -> Vec<f64> {
        let log_scales = log_sd.iter().map(|l| l - self.log_ratio());
        mean.iter().copied().chain(log_scales).collect()
    }

    fn mean(&self, omega: &[f64]) -> Vec<f64> {
        omega[..self.dim].to_vec()
    }

    fn marginal_sd(&self, omega: &[f64]) -> Vec<f64> {
        let log_scales = omega[self.dim..].iter();
        log_scales.map(|l| (l + self.log_ratio()).exp()).collect()
    }

    fn transform(&self, omega: &[f64], noise: Lanes<'_>, z: LanesMut<'_>) {
        self.affine(&omega[..self.dim], |i| self.scale(omega, i), noise, z);
    }

    fn pull(&self, omega: &[f64], noise: Lanes<'_>, grad: Lanes<'_>, out: &mut [f64]) {
        for (i, along) in self.along(noise, grad).into_iter().enumerate() {
            out[i] += grad.row(i).iter().sum::<f64>();
            out[self.dim + i] += self.scale(omega, i) * along;
        }
    }

    fn log_density_at(&self, omega: &[f64], z: Lanes<'_>, out: &mut [f64]) {
        let (d, freedom) = (self.dim as f64, self.freedom as f64);
        let constant = log_gamma_of_half(self.freedom + self.dim)
            - log_gamma_of_half(self.freedom)
            - 0.5 * d * (freedom * std::f64::consts::PI).ln()
            - omega[self.dim..].iter().sum::<f64>();
        for (out, squares) in out.iter_mut().zip(self.squares(omega, z)) {
            *out = constant - 0.5 * (freedom + d) * (squares / freedom).ln_1p();
        }
    }

    fn score(&self, omega: &[f64], _noise: Lanes<'_>, z: Lanes<'_>, mut out: LanesMut<'_>) {
        let (d, freedom) = (self.dim as f64, self.freedom as f64);
        let squares = self.squares(omega, z);
        for i in 0..self.dim {
            let variance = self.scale(omega, i).powi(2);
            for (l, out) in out.row_mut(i).iter_mut().enumerate() {
                let weight = (freedom + d) / (freedom + squares[l]);
                *out = -weight * (z.row(i)[l] - omega[i]) / variance;
            }
        }
    }

    // Stochastic gradients need only the maps above. Newton's method also needs the maps below. The default entropy is
    // consistent with them, because it depends on σ only through Σ log σᵢ.

    fn smoothness(&self) -> Smoothness {
        Smoothness::Twice
    }

    fn add_entropy_gradient(&self, _omega: &[f64], out: &mut [f64]) {
        out[self.dim..].iter_mut().for_each(|x| *x += 1.0);
    }

    fn add_entropy_hvp(&self, _omega: &[f64], _direction: &[f64], _out: &mut [f64]) {}

    fn push(&self, omega: &[f64], direction: &[f64], noise: Lanes<'_>, out: LanesMut<'_>) {
        let scale = |i: usize| self.scale(omega, i) * direction[self.dim + i];
        self.affine(&direction[..self.dim], scale, noise, out);
    }

    fn pull_second(
        &self,
        omega: &[f64],
        direction: &[f64],
        noise: Lanes<'_>,
        grad: Lanes<'_>,
        out: &mut [f64],
    ) {
        for (i, along) in self.along(noise, grad).into_iter().enumerate() {
            let l = self.dim + i;
            out[l] += direction[l] * self.scale(omega, i) * along;
        }
    }

    /// Multiplies the residual by the variances for the means, and by a constant for the log scales.
    fn precondition(
        &self,
        omega: &[f64],
        _curvature: Option<&Curvature>,
        residual: &[f64],
        out: &mut [f64],
    ) {
        for i in 0..self.dim {
            out[i] = self.scale(omega, i).powi(2) * residual[i];
            out[self.dim + i] = 0.5 * residual[self.dim + i];
        }
    }
}

/// Returns the posterior of the intercept and the slope for six observations at −1 and 1, with its log evidence. The
/// noise variance σ² has the prior 1/σ² and is integrated out.
///
/// With the squared residuals `Q(β) = S + 6 |β − β̂|²`, the joint density is `p(y, β) = Γ(3) (π Q(β))⁻³`. It equals the
/// density of a Student t distribution with 4 degrees of freedom, multiplied by the evidence `1 / (6 π² S²)`.
pub fn regression() -> (impl Problem, f64) {
    let (x, y) = (
        [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0],
        [0.3, 2.1, -0.4, 1.6, 0.8, 3.2],
    );
    let builder = Builder::new();
    let beta = builder.parameters(2);
    let residuals = builder.data(&y) - beta.at(0) - beta.at(1) * builder.data(&x);
    let squares = residuals.square().sum() * std::f64::consts::PI;
    let density = builder.density(2f64.ln() - 3.0 * squares.log(), Execution::default());

    let average = |f: &dyn Fn(usize) -> f64| (0..6).map(f).sum::<f64>() / 6.0;
    let best = [average(&|i| y[i]), average(&|i| x[i] * y[i])];
    let least: f64 = (0..6)
        .map(|i| (y[i] - best[0] - best[1] * x[i]).powi(2))
        .sum();
    let log_evidence = -(6.0 * (std::f64::consts::PI * least).powi(2)).ln();
    (Bare::named(density, ["intercept", "slope"]), log_evidence)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let family = StudentT { dim: 2, freedom: 4 };
    // `check_family` compares every map with finite differences, and compares the density with draws.
    check_family(&family)?;

    let (problem, log_evidence) = regression();
    let normal = fit(&problem, &Options::default().family(FamilyKind::FullRank))?;
    let student = fit(&problem, &Options::default().family(family))?;
    println!("log evidence      {log_evidence:.3}");
    for fitted in [&normal, &student] {
        let best = fitted.fit.best();
        let (elbo, khat) = (best.evaluation.elbo.mean, best.evaluation.khat);
        println!("{:12} ELBO {elbo:.3}, k̂ {khat:.2}", best.family.to_string());
        for warning in fitted.warnings() {
            println!("  not trusted: {warning}");
        }
    }
    assert!(student.trusted() && !normal.trusted());
    Ok(())
}
