//! Radau IIA steps for implicit differential equations `F(t, y, y′) = 0` of index 1.
//!
//! At the stages, the derivatives of the collocation polynomial with respect to the clock are `V = A⁻¹ Z / h`. The
//! stages of a step therefore solve `F(tᵢ, y + Zᵢ, Vᵢ) = 0` (Hairer and Wanner, VI.1 and VII.4). For each eigenvalue λ
//! of A⁻¹, the matrix of Newton's method is `λ/h · M + K`, with `K = ∂F/∂y` and `M = ∂F/∂y′`. The Jacobian of a system
//! consists of the columns of K, followed by the columns of M. With `F = y′ − f(y)`, these steps equal the steps of the
//! module `radau`.
//!
//! The initial values of algebraic variables do not affect the solution, because the last stage satisfies all equations
//! and does not depend on these values. If the initial values violate an equation without derivatives, the solution
//! would jump at the start. In this case, the lane fails.

use super::explicit::add_where;
use super::factors::Factors;
use super::ode::{Front, Ode};
use super::radau::{Radau, add_scaled, multiply};
use super::{Differentiable, Point, System};
use crate::simd_fn;
use num_complex::Complex64;

/// A very short share of an interval. If the initial values are consistent, the states change only negligibly over this
/// share.
const INSTANT: f64 = 1e-8;

/// The largest jump of a state at the start, relative to the larger of the state's absolute value and 1.
const JUMP: f64 = 1e-5;

simd_fn! {
    fn scale_rows, scale_rows_fn = <V>(out: &mut [f64], factor: &[f64]) {
        for out in out.chunks_exact_mut(factor.len()) {
            out.iter_mut().zip(factor).for_each(|(out, factor)| *out *= factor);
        }
    }
}

impl Ode {
    /// Prepares the first step: computes the derivatives of the states at the start and chooses the length of the step.
    /// Returns the slots in which no step can begin.
    pub(super) fn start_implicit(&self, system: &mut dyn System, front: &mut Front) -> Vec<usize> {
        let (n, lanes) = (self.states, front.lanes);
        front.stale.fill(false);
        front.rates.fill(0.0);
        for i in 0..n {
            for slot in 0..lanes {
                let slope = front.parameters[(self.parameters - n + i) * lanes + slot];
                front.rates[i * lanes + slot] = slope * self.extent(front, slot);
            }
        }
        let jumps = self.jumps(system, front);
        for slot in 0..lanes {
            let largest = |values: &[f64]| {
                (0..n).fold(0.0_f64, |most, i| {
                    let y = front.states[i * lanes + slot];
                    most.max(values[i * lanes + slot].abs() / self.unit(i, y))
                })
            };
            let (size, slope) = (largest(&front.states), largest(&front.rates));
            front.length[slot] = if size < 1e-5 || slope < 1e-5 {
                1e-6
            } else {
                (0.01 * size / slope).min(1.0)
            };
        }
        (0..lanes)
            .filter(|slot| !self.begins(front, *slot) || jumps[*slot])
            .collect()
    }

    /// Returns, for each slot, whether its initial values are inconsistent. The test is a Newton step for a backward
    /// difference over a very short time. This step changes the differential states negligibly, but moves the algebraic
    /// states to their consistent values.
    fn jumps(&self, system: &mut dyn System, front: &Front) -> Vec<bool> {
        let (n, lanes) = (self.states, front.lanes);
        let copies = front.states.len() / (n * lanes);
        let mut states = Vec::with_capacity(2 * front.states.len());
        let each = front.states.chunks_exact(n * lanes);
        for (y, v) in each.zip(front.rates.chunks_exact(n * lanes)) {
            states.extend_from_slice(y);
            states.extend_from_slice(v);
        }
        let point = Point {
            clock: &front.clock,
            states: &states,
            parameters: &front.parameters,
            lanes,
        };
        let simd = system.simd();
        let mut residuals = vec![0.0; copies * n * lanes];
        system.rate(point, &mut residuals);
        let mut jacobian = vec![0.0; 2 * n * n * lanes];
        system.jacobian(point, 2 * n, &mut jacobian);
        let mut factors = Factors::default();
        let per = vec![1.0 / INSTANT; lanes];
        let parts: [&[f64]; 2] = jacobian.split_at(n * n * lanes).into();
        factors.pencil(system, Complex64::ONE, &per, parts);
        let (move_re, mut move_im) = (&mut residuals[..n * lanes], vec![0.0; n * lanes]);
        factors.solve(simd, move_re, &mut move_im, false);
        (0..lanes)
            .map(|slot| {
                (0..n).any(|i| {
                    let y = front.states[i * lanes + slot].abs().max(1.0);
                    let moves = move_re[i * lanes + slot].abs();
                    moves.is_nan() || moves > JUMP * y + 10.0 * self.unit(i, y)
                })
            })
            .collect()
    }
}

impl Radau<'_> {
    /// Computes the Jacobian at the start of a step. In the backward pass, the derivatives at the start of the step are
    /// unknown. The function then uses the derivatives at the end of the step.
    pub(super) fn linearize_start(&mut self, system: &mut dyn System, front: &Front) {
        let (n, lanes) = (self.ode.states, front.lanes);
        let own = n * lanes;
        let known = front.rates.iter().any(|rate| *rate != 0.0) || front.stages.is_empty();
        let v = match known {
            true => front.rates.clone(),
            false => self.derivatives(front, &front.stages),
        };
        self.states.clear();
        for (y, v) in front.states.chunks_exact(own).zip(v.chunks_exact(own)) {
            self.states.extend_from_slice(y);
            self.states.extend_from_slice(v);
        }
        self.clock.clear();
        self.clock.extend_from_slice(&front.clock);
        let mut jacobian = std::mem::take(&mut self.jacobian);
        jacobian.resize(2 * n * own, 0.0);
        system.jacobian(self.point(front), 2 * n, &mut jacobian);
        self.jacobian = jacobian;
    }

    /// Returns the derivatives with respect to the clock at the end of a step, for all copies of the states.
    pub(super) fn derivatives(&self, front: &Front, z: &[f64]) -> Vec<f64> {
        let (s, size) = (self.method.stages, front.states.len());
        let mut v = vec![0.0; size];
        for (j, z) in z.chunks_exact(size).enumerate() {
            add_scaled(self.simd, &mut v, self.method.inverse[(s - 1) * s + j], z);
        }
        scale_rows(self.simd, &mut v, &self.per);
        v
    }

    /// Moves the first `moved` copies of the states to stage `i`, and appends their derivatives. The other copies stay
    /// at the start of the step, and their derivatives are set to zero.
    pub(super) fn stand_with_derivatives(
        &mut self,
        front: &Front,
        z: &[f64],
        i: usize,
        moved: usize,
    ) {
        let (s, size, simd) = (self.method.stages, front.states.len(), self.simd);
        let own = self.ode.states * front.lanes;
        self.states.clear();
        for (copy, y) in front.states.chunks_exact(own).enumerate() {
            let (first, at) = (self.states.len(), copy * own);
            self.states.extend_from_slice(y);
            self.states.resize(first + 2 * own, 0.0);
            if copy >= moved {
                continue;
            }
            let (y, v) = self.states[first..].split_at_mut(own);
            add_scaled(simd, y, 1.0, &z[i * size + at..][..own]);
            for j in 0..s {
                let weight = self.method.inverse[i * s + j];
                add_scaled(simd, v, weight, &z[j * size + at..][..own]);
            }
            scale_rows(simd, v, &self.per);
        }
    }

    /// Negates the residuals of the first copy and writes them to `change`, which is the right-hand side for Newton's
    /// method.
    pub(super) fn correct(&mut self, residuals: &[f64], size: usize) {
        let own = self.ode.states * self.per.len();
        self.change.clear();
        for residuals in residuals.chunks_exact(size) {
            self.change.extend(residuals[..own].iter().map(|r| -r));
        }
    }

    /// Computes `change = base − K x − M A⁻¹ x / h`, where K and M are evaluated at each stage, or the same expression
    /// with all matrices transposed.
    pub(super) fn residual_of_both(
        &mut self,
        base: &[f64],
        x: &[f64],
        stride: usize,
        transposed: bool,
    ) {
        let (n, s, simd) = (self.ode.states, self.method.stages, self.simd);
        let lanes = self.per.len();
        let own = n * lanes;
        let matrices =
            |j: usize| self.at_stages[j * 2 * n * own..(j + 1) * 2 * n * own].split_at(n * own);
        let x = |j: usize| &x[j * stride..j * stride + own];
        let inverse = |row: usize, column: usize| self.method.inverse[row * s + column];
        let mut sums = vec![0.0; s * own];
        let mut turned = vec![0.0; s * own];
        for (j, turned) in turned.chunks_exact_mut(own).enumerate() {
            if transposed {
                multiply(simd, turned, matrices(j).1, x(j), lanes, true);
            } else {
                (0..s).for_each(|l| add_scaled(simd, turned, inverse(j, l), x(l)));
            }
            scale_rows(simd, turned, &self.per);
        }
        for (j, sum) in sums.chunks_exact_mut(own).enumerate() {
            multiply(simd, sum, matrices(j).0, x(j), lanes, transposed);
            if transposed {
                for (l, turned) in turned.chunks_exact(own).enumerate() {
                    add_scaled(simd, sum, inverse(l, j), turned);
                }
            } else {
                multiply(
                    simd,
                    sum,
                    matrices(j).1,
                    &turned[j * own..][..own],
                    lanes,
                    false,
                );
            }
        }
        self.change.clear();
        for (j, sum) in sums.chunks_exact(own).enumerate() {
            let base = &base[j * stride..j * stride + own];
            self.change
                .extend(base.iter().zip(sum).map(|(base, sum)| base - sum));
        }
    }

    /// Multiplies the negated weights of the stages by derivatives of the residuals. If `parameters` is given, the
    /// derivatives are with respect to the states at the start and the parameters. If `parameters` is `None`, the
    /// derivatives are with respect to the stages.
    pub(super) fn products_of_both(
        &mut self,
        system: &mut dyn Differentiable,
        front: &Front,
        weights: &[f64],
        pulled: &mut [f64],
        mut parameters: Option<&mut [f64]>,
    ) {
        let (s, size, simd) = (self.method.stages, front.states.len(), self.simd);
        let own = self.ode.states * front.lanes;
        let mut here = vec![0.0; front.parameters.len()];
        let mut both = vec![0.0; 2 * size];
        let mut by_derivatives = vec![0.0; s * size];
        for i in 0..s {
            self.stand(front, &front.stages, i, size / own);
            let stage = i * size..(i + 1) * size;
            let turned: Vec<f64> = weights[stage.clone()].iter().map(|w| -w).collect();
            system.pull(self.point(front), &turned, &mut both, &mut here);
            let by_states = pulled[stage.clone()].chunks_exact_mut(own);
            let into = by_states.zip(by_derivatives[stage].chunks_exact_mut(own));
            for ((y, v), both) in into.zip(both.chunks_exact(2 * own)) {
                y.copy_from_slice(&both[..own]);
                v.copy_from_slice(&both[own..]);
            }
            if let Some(parameters) = parameters.as_deref_mut() {
                add_where(simd, parameters, &here, &front.trial);
            }
        }
        if parameters.is_some() {
            return;
        }
        scale_rows(simd, &mut by_derivatives, &self.per);
        for (i, pulled) in pulled.chunks_exact_mut(size).enumerate() {
            for (l, v) in by_derivatives.chunks_exact(size).enumerate() {
                add_scaled(simd, pulled, self.method.inverse[l * s + i], v);
            }
        }
    }
}
