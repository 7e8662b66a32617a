//! The maps and densities of the conditionally structured Gaussian, with their derivatives.

use jensen_density::{Lanes, LanesMut};
use jensen_math::constants::HALF_LOG_TWO_PI;
use rayon::prelude::*;

use super::Conditional;
use super::passes::Pass;
use crate::family::globals::{add_products, nodes};
use crate::family::mean_field::standard_normal;
use crate::family::rows::{LaneRow, Order, Rows, RowsMut};
use crate::family::{Curvature, Family, FamilyKind, FamilyName, Smoothness, Space};
use crate::reduce::{dot, sum};
use crate::sizes::WIDTH;

impl Family for Conditional {
    fn name(&self) -> FamilyName {
        FamilyName::listed(FamilyKind::Conditional)
    }
    fn smoothness(&self) -> Smoothness {
        Smoothness::Twice
    }
    fn space(&self) -> Space {
        self.space.clone()
    }
    fn dim(&self) -> usize {
        self.space.dim
    }
    fn noise_dim(&self) -> usize {
        self.dim()
    }
    fn parameters(&self) -> usize {
        let rows = self.locals.len() + self.symbolic.nonzeros();
        self.start() + rows * self.features.count() + self.locals.len()
    }
    fn free_rows(&self) -> usize {
        self.dim()
    }
    fn diagonal(&self, mean: &[f64], log_sd: &[f64]) -> Vec<f64> {
        let (k, n, f) = (self.globals.len(), self.locals.len(), self.features.count());
        let mut omega = vec![0.0; self.parameters()];
        for (i, &c) in self.globals.iter().enumerate() {
            omega[i] = mean[c];
            let own = self.element(i, i);
            omega[own] = log_sd[c].exp();
        }
        debug_assert!(k + n == self.dim());
        let start = self.start();
        for (j, &c) in self.locals.iter().enumerate() {
            omega[start + j * f] = mean[c];
            omega[start + (n + self.symbolic.diagonal(j)) * f] = -log_sd[c];
        }
        omega
    }
    fn mean(&self, omega: &[f64]) -> Vec<f64> {
        let (features, means) = (self.features.means(), self.weights(omega).means);
        let mut out = vec![0.0; self.dim()];
        for (&c, mean) in self.globals.iter().zip(omega) {
            out[c] = *mean;
        }
        for (&c, theta) in self.locals.iter().zip(means.chunks(features.len())) {
            out[c] = dot(theta, &features);
        }
        out
    }
    /// For a local parameter, the marginal variance is the variance of its conditional mean plus the mean of its
    /// conditional variance. The global parameters vary in both terms. The function returns the square root.
    fn marginal_sd(&self, omega: &[f64]) -> Vec<f64> {
        let nodes = nodes(self.globals.len());
        let each: Vec<Vec<f64>> = nodes
            .par_iter()
            .map(|(x, weight)| {
                let inverse = self.symbolic.selected_inverse(&self.factor_at(omega, x));
                let own = (0..self.locals.len()).map(|j| inverse[self.symbolic.diagonal(j)]);
                own.map(|variance| weight * variance).collect()
            })
            .collect();
        let (variances, means) = (self.features.variances(), self.weights(omega).means);
        let mut out = vec![0.0; self.dim()];
        for (&c, variance) in self.globals.iter().zip(self.global_variances(omega)) {
            out[c] = variance.sqrt();
        }
        for ((j, &c), theta) in self
            .locals
            .iter()
            .enumerate()
            .zip(means.chunks(variances.len()))
        {
            let own: Vec<f64> = each.iter().map(|each| each[j]).collect();
            let of_mean: f64 = theta.iter().zip(&variances).map(|(t, v)| t * t * v).sum();
            out[c] = (of_mean + sum(&own)).sqrt();
        }
        out
    }
    fn entropy(&self, omega: &[f64]) -> f64 {
        let stretch = dot(&self.stretch(omega), &self.features.means());
        self.dim() as f64 * (0.5 + HALF_LOG_TWO_PI) + self.global_log_det(omega) - stretch
    }
    fn add_entropy_gradient(&self, omega: &[f64], out: &mut [f64]) {
        for i in 0..self.globals.len() {
            let own = self.element(i, i);
            out[own] += 1.0 / omega[own];
        }
        let means = self.features.means();
        let first = self.start() + self.locals.len() * means.len();
        for j in 0..self.locals.len() {
            let at = first + self.symbolic.diagonal(j) * means.len();
            for (out, mean) in out[at..at + means.len()].iter_mut().zip(&means) {
                *out -= mean;
            }
        }
    }
    fn add_entropy_hvp(&self, omega: &[f64], direction: &[f64], out: &mut [f64]) {
        for i in 0..self.globals.len() {
            let own = self.element(i, i);
            out[own] -= direction[own] / (omega[own] * omega[own]);
        }
    }
    fn transform(&self, omega: &[f64], noise: Lanes<'_>, mut z: LanesMut<'_>) {
        let blocks = Self::blocks(noise.lanes(), |first| {
            self.draws(omega, &self.pass(omega, noise, first))
        });
        self.arrange(blocks, &mut z);
    }
    fn push(&self, omega: &[f64], direction: &[f64], noise: Lanes<'_>, mut out: LanesMut<'_>) {
        let blocks = Self::blocks(noise.lanes(), |first| {
            let pass = self.pass(omega, noise, first);
            let (values, turned) = (
                self.values(omega, &pass.features),
                self.values(direction, &pass.features),
            );
            let by_skews = self.by_skews(omega, noise, first, &pass);
            let turned = (&turned[..], &direction[self.end()..]);
            let tangents = Pass {
                y: self.tangents(&values, turned, &by_skews, &pass),
                ..pass
            };
            self.draws(direction, &tangents)
        });
        self.arrange(blocks, &mut out);
    }
    fn pull(&self, omega: &[f64], noise: Lanes<'_>, grad: Lanes<'_>, out: &mut [f64]) {
        let (means, n) = (self.start(), self.locals.len());
        let blocks = Self::blocks(noise.lanes(), |first| {
            let pass = self.pass(omega, noise, first);
            let (globals, locals) = self.ordered(grad, first);
            let values = self.values(omega, &pass.features);
            let (by_y, adjoints) = self.adjoints(&values, &pass, &locals);
            let mut own = vec![0.0; omega.len()];
            for (i, g) in globals.iter().enumerate() {
                own[i] = sum(g);
                for (k, x) in pass.x.iter().enumerate().take(i + 1) {
                    own[self.element(i, k)] = dot(g, x);
                }
            }
            let by_skews = self.by_skews(omega, noise, first, &pass);
            let (rows, of_skews) = own.split_at_mut(self.end());
            for (j, out) in of_skews.iter_mut().enumerate() {
                let each = (0..WIDTH).map(|l| by_y[j][l] * pass.scale[j][l] * by_skews[j][0][l]);
                *out = each.sum();
            }
            let (of_means, of_nonzeros) = rows[means..].split_at_mut(n * self.features.count());
            add_products(&pass.features.plain, &locals, of_means);
            self.add_weights(&pass.features, &adjoints, of_nonzeros);
            own
        });
        for (_, block) in blocks {
            out.iter_mut().zip(block).for_each(|(out, x)| *out += x);
        }
    }
    fn pull_second(
        &self,
        omega: &[f64],
        direction: &[f64],
        noise: Lanes<'_>,
        grad: Lanes<'_>,
        out: &mut [f64],
    ) {
        let (start, n) = (self.start(), self.locals.len());
        let blocks = Self::blocks(noise.lanes(), |first| {
            let pass = self.pass(omega, noise, first);
            let (_, locals) = self.ordered(grad, first);
            let (values, turned) = (
                self.values(omega, &pass.features),
                self.values(direction, &pass.features),
            );
            let by_skews = self.by_skews(omega, noise, first, &pass);
            let turned = (&turned[..], &direction[self.end()..]);
            let tangents = self.tangents(&values, turned, &by_skews, &pass);
            let (by_y, _) = self.adjoints(&values, &pass, &locals);
            let (adjoints, of_skews) =
                self.turned_adjoints(&values, turned, &by_skews, &pass, &by_y, &tangents);
            let mut own = vec![0.0; omega.len()];
            own[self.end()..].copy_from_slice(&of_skews);
            let rows = &mut own[start..self.end()];
            let (_, of_nonzeros) = rows.split_at_mut(n * self.features.count());
            self.add_weights(&pass.features, &adjoints, of_nonzeros);
            own
        });
        for (_, block) in blocks {
            out.iter_mut().zip(block).for_each(|(out, x)| *out += x);
        }
    }
    fn log_density(&self, omega: &[f64], noise: Lanes<'_>, _z: Lanes<'_>, out: &mut [f64]) {
        let constant = -(self.dim() as f64) * HALF_LOG_TWO_PI;
        standard_normal(noise, constant, out);
        for (out, log_det) in out.iter_mut().zip(self.log_dets(omega, noise)) {
            *out -= log_det;
        }
    }
    /// The gradient `g = ∇_z log q` satisfies `−ε − ∇_ε log |∂z/∂ε| = (∂z/∂ε)ᵀ g`. For local parameters without
    /// skewness, it is `g = −L ε`. The gradient for the global parameters follows from it.
    fn score(&self, omega: &[f64], noise: Lanes<'_>, _z: Lanes<'_>, mut out: LanesMut<'_>) {
        let (k, stretch) = (self.globals.len(), self.stretch(omega));
        let blocks = Self::blocks(noise.lanes(), |first| {
            let pass = self.pass(omega, noise, first);
            let values = self.values(omega, &pass.features);
            let mut by_noise = Self::block(noise, k..self.dim(), first);
            for (j, g) in self.skews(omega).unwrap_or_default().iter().enumerate() {
                let row = by_noise[j].iter_mut().zip(&pass.slopes[j]);
                row.for_each(|(e, slope)| *e = (*e + g) / slope);
            }
            let mut locals = vec![[0.0; WIDTH]; self.locals.len()];
            for j in 0..self.locals.len() {
                let mut own = [0.0; WIDTH];
                for l in 0..WIDTH {
                    own[l] = by_noise[j][l] / pass.scale[j][l];
                    locals[j][l] -= own[l];
                }
                for (p, i) in self.symbolic.below(j) {
                    for l in 0..WIDTH {
                        locals[i][l] -= values[p][l] * own[l];
                    }
                }
            }
            // This is the contribution of the gradients of the local parameters to those of the global parameters.
            let mut given = vec![[0.0; WIDTH]; k];
            given.extend_from_slice(&locals);
            let mut noise = pass.x.clone();
            noise.extend_from_slice(&pass.noise);
            let mut globals = vec![[0.0; WIDTH]; self.dim()];
            let way = (&pass, Rows::all(&noise));
            let grad = (Rows::all(&given), Order::From(0), Order::From(k));
            self.pulled(
                omega,
                way,
                grad,
                Some(&stretch),
                &mut RowsMut::all(&mut globals),
            );
            globals.truncate(k);
            for (g, x) in globals.iter_mut().zip(&pass.x) {
                g.iter_mut().zip(x).for_each(|(g, x)| *g = -x - *g);
            }
            // Computes A⁻ᵀ g from the last row to the first.
            for i in (0..k).rev() {
                let pivot = omega[self.element(i, i)];
                globals[i].iter_mut().for_each(|g| *g /= pivot);
                let own = globals[i];
                for (j, row) in globals.iter_mut().enumerate().take(i) {
                    let a = omega[self.element(i, j)];
                    row.iter_mut().zip(&own).for_each(|(g, own)| *g -= a * own);
                }
            }
            globals.append(&mut locals);
            globals
        });
        self.arrange(blocks, &mut out);
    }
    /// Uses the Fisher information at the mean of the global parameters. It omits the terms that couple different
    /// features, and the terms that couple different regression coefficients in a column.
    fn precondition(
        &self,
        omega: &[f64],
        _curvature: Option<&Curvature>,
        residual: &[f64],
        out: &mut [f64],
    ) {
        let (k, n, f) = (self.globals.len(), self.locals.len(), self.features.count());
        let variances = self.global_variances(omega);
        for (i, variance) in variances.iter().enumerate() {
            out[i] = variance * residual[i];
            for j in 0..=i {
                let at = self.element(i, j);
                out[at] = variance * residual[at] / if i == j { 2.0 } else { 1.0 };
            }
        }
        let factor = self.factor_at(omega, &vec![0.0; k]);
        let inverse = self.symbolic.selected_inverse(&factor);
        // To second order in g, the divergence is ¾ g².
        let end = self.end();
        for (out, residual) in out[end..].iter_mut().zip(&residual[end..]) {
            *out = residual / 1.5;
        }
        let (means, variances) = (self.features.means(), self.features.variances());
        let start = self.start();
        for c in 0..f {
            let square = means[c] * means[c] + variances[c];
            let mut step: Vec<f64> = (0..n).map(|j| residual[start + j * f + c]).collect();
            self.symbolic.solve(&factor, &mut step, 1);
            self.symbolic.solve_transposed(&factor, &mut step, 1);
            for (j, step) in step.iter().enumerate() {
                out[start + j * f + c] = step / square;
                let p = self.symbolic.diagonal(j);
                let at = |p: usize| start + (n + p) * f + c;
                out[at(p)] = residual[at(p)] / (2.0 * square);
                for (q, i) in self.symbolic.below(j) {
                    let of_y = inverse[self.symbolic.diagonal(i)] * factor[p] * factor[p];
                    out[at(q)] = residual[at(q)] / (of_y * square);
                }
            }
        }
    }
    fn shrink(&self, omega: &[f64], factor: f64) -> Vec<f64> {
        let mut shrunk = omega.to_vec();
        let (k, n, f, start) = (
            self.globals.len(),
            self.locals.len(),
            self.features.count(),
            self.start(),
        );
        shrunk[k..start].iter_mut().for_each(|a| *a *= factor);
        for j in 0..n {
            shrunk[start + (n + self.symbolic.diagonal(j)) * f] -= factor.ln();
        }
        shrunk
    }
}

impl Conditional {
    fn turned_adjoints(
        &self,
        values: &[LaneRow],
        turned: (&[LaneRow], &[f64]),
        by_skews: &[[LaneRow; 2]],
        pass: &Pass,
        by_y: &[LaneRow],
        tangents: &[LaneRow],
    ) -> (Vec<LaneRow>, Vec<f64>) {
        let (turned, skews) = turned;
        let mut of_skews = vec![0.0; self.locals.len()];
        let mut change = vec![[0.0; WIDTH]; self.locals.len()];
        let mut out = vec![[0.0; WIDTH]; self.symbolic.nonzeros()];
        for j in 0..self.locals.len() {
            let (own, moved) = (by_y[j], change[j]);
            let p = self.symbolic.diagonal(j);
            for l in 0..WIDTH {
                let (noise, [first_by_skew, second_by_skew]) =
                    (pass.noise[j][l], by_skews[j].map(|row| row[l]));
                // The derivative has a term for the direction of own · scale, followed by terms for its products.
                let rate = moved[l] - own[l] * turned[p][l];
                out[p][l] = -pass.scale[j][l] * (rate * noise + own[l] * first_by_skew * skews[j]);
                of_skews[j] +=
                    pass.scale[j][l] * (rate * first_by_skew + own[l] * second_by_skew * skews[j]);
            }
            for (p, i) in self.symbolic.below(j) {
                for l in 0..WIDTH {
                    change[i][l] -= turned[p][l] * own[l] + values[p][l] * moved[l];
                    out[p][l] = -moved[l] * pass.y[i][l] - own[l] * tangents[i][l];
                }
            }
        }
        (out, of_skews)
    }
}
