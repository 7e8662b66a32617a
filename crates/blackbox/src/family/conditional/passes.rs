//! The map from noise to draws for blocks of lanes, and derivatives in the reverse direction.

use jensen_density::{Lanes, LanesMut};
use rayon::prelude::*;

use super::Conditional;
use super::skew::{by_skew, skewed};
use crate::family::Family;
use crate::family::globals::{Featured, add_products, pull_noise, solve, spread_all, weighted};
use crate::family::rows::{LaneRow, Order, Rows, RowsMut};
use crate::sizes::WIDTH;

#[derive(Default)]
pub(super) struct Pass {
    pub(super) x: Vec<LaneRow>,
    pub(super) features: Featured,
    pub(super) noise: Vec<LaneRow>,
    pub(super) slopes: Vec<LaneRow>,
    /// The differences `z − m` of the local parameters from their conditional means. `scale` is `e^(−a)`.
    pub(super) y: Vec<LaneRow>,
    pub(super) scale: Vec<LaneRow>,
}

#[derive(Default)]
pub(crate) struct Passes {
    blocks: Vec<Pass>,
    given: Vec<LaneRow>,
    made: Vec<LaneRow>,
}

impl Conditional {
    pub(super) fn block(
        rows: Lanes<'_>,
        which: impl Iterator<Item = usize>,
        first: usize,
    ) -> Vec<LaneRow> {
        let width = WIDTH.min(rows.lanes() - first);
        let row = |i| {
            let given = &rows.row(i)[first..first + width];
            given.try_into().unwrap_or_else(|_| {
                let mut out = [0.0; WIDTH];
                out[..width].copy_from_slice(given);
                out
            })
        };
        which.map(row).collect()
    }

    pub(super) fn blocks<T: Send>(
        lanes: usize,
        work: impl Fn(usize) -> T + Sync,
    ) -> Vec<(usize, T)> {
        let firsts: Vec<usize> = (0..lanes).step_by(WIDTH).collect();
        let each = firsts.into_par_iter().map(|first| (first, work(first)));
        each.collect()
    }

    pub(super) fn arrange(&self, blocks: Vec<(usize, Vec<LaneRow>)>, out: &mut LanesMut<'_>) {
        for (first, rows) in blocks {
            for (&c, row) in self.globals.iter().chain(&self.locals).zip(&rows) {
                Self::write(row, first, out.row_mut(c));
            }
        }
    }

    pub(super) fn write(row: &LaneRow, first: usize, out: &mut [f64]) {
        let width = WIDTH.min(out.len() - first);
        out[first..first + width].copy_from_slice(&row[..width]);
    }

    pub(super) fn ordered(&self, rows: Lanes<'_>, first: usize) -> (Vec<LaneRow>, Vec<LaneRow>) {
        let of = |which: &[usize]| Self::block(rows, which.iter().copied(), first);
        (of(&self.globals), of(&self.locals))
    }

    pub(super) fn pass(&self, omega: &[f64], noise: Lanes<'_>, first: usize) -> Pass {
        let (k, n) = (self.globals.len(), self.locals.len());
        let mut pass = Pass {
            noise: Self::block(noise, k..k + n, first),
            ..Pass::default()
        };
        let (mut room, mut z) = (Vec::new(), vec![[0.0; WIDTH]; self.dim()]);
        let noise = Rows::of(noise, first, &mut room);
        self.go(omega, noise, &mut pass, &mut RowsMut::all(&mut z));
        pass
    }

    pub(super) fn go(&self, omega: &[f64], noise: Rows<'_>, pass: &mut Pass, z: &mut RowsMut<'_>) {
        let (k, n) = (self.globals.len(), self.locals.len());
        pass.x.clear();
        pass.x.extend((0..k).map(|i| noise.row(i)));
        pass.features = self.features.rows(&pass.x);
        pass.y.resize(n, [0.0; WIDTH]);
        pass.scale.resize(n, [0.0; WIDTH]);
        for (&c, row) in self
            .globals
            .iter()
            .zip(self.global_rows(omega, true, &pass.x))
        {
            *z.row(c) = row;
        }
        let noise = match self.skews(omega) {
            None => (noise, k),
            Some(skews) => {
                pass.noise.resize(n, [0.0; WIDTH]);
                pass.slopes.resize(n, [0.0; WIDTH]);
                skewed(skews, (noise, k), &mut pass.noise, &mut pass.slopes);
                (Rows::all(&pass.noise), 0)
            }
        };
        solve(
            &self.symbolic,
            self.weights(omega),
            &pass.features,
            noise,
            &mut pass.y,
            &mut pass.scale,
            z,
            Order::At(&self.locals),
        );
    }

    /// Computes `A x`, and adds μ if `shift` is set.
    pub(super) fn global_rows(&self, omega: &[f64], shift: bool, x: &[LaneRow]) -> Vec<LaneRow> {
        let row = |i: usize| {
            let mut out = [if shift { omega[i] } else { 0.0 }; WIDTH];
            for (k, x) in x.iter().enumerate().take(i + 1) {
                let a = omega[self.element(i, k)];
                out.iter_mut().zip(x).for_each(|(out, x)| *out += a * x);
            }
            out
        };
        (0..self.globals.len()).map(row).collect()
    }

    pub(super) fn draws(&self, omega: &[f64], pass: &Pass) -> Vec<LaneRow> {
        let means = self.weights(omega).means;
        let mut out = self.global_rows(omega, true, &pass.x);
        out.resize(self.dim(), [0.0; WIDTH]);
        let locals = &mut out[self.globals.len()..];
        weighted(means, &pass.features.plain, locals);
        for (row, y) in locals.iter_mut().zip(&pass.y) {
            row.iter_mut().zip(y).for_each(|(z, y)| *z += y);
        }
        out
    }

    /// Computes the derivatives with respect to the noise of a block, from the given derivatives with respect to the
    /// draws. In the result, the global parameters come first. If `stretched` is set, the result includes the
    /// derivatives of the log Jacobian.
    pub(super) fn pulled(
        &self,
        omega: &[f64],
        (pass, noise): (&Pass, Rows<'_>),
        (grad, globals, locals): (Rows<'_>, Order<'_>, Order<'_>),
        stretched: Option<&[f64]>,
        out: &mut RowsMut<'_>,
    ) {
        let (k, f) = (self.globals.len(), self.features.count());
        let mut by_feature = Featured {
            plain: vec![[0.0; WIDTH]; f],
            bounded: vec![[0.0; WIDTH]; f],
        };
        if let Some(stretch) = stretched {
            spread_all(stretch, &[[-1.0; WIDTH]], &mut by_feature.plain);
        }
        let skews = self.skews(omega);
        let noise = match skews {
            None => (noise, k),
            Some(_) => (Rows::all(&pass.noise), 0),
        };
        pull_noise(
            &self.symbolic,
            self.weights(omega),
            &pass.features,
            noise,
            k,
            &pass.y,
            &pass.scale,
            (grad, locals),
            out,
            &mut by_feature,
        );
        for (j, g) in skews.unwrap_or_default().iter().enumerate() {
            let own = if stretched.is_some() { *g } else { 0.0 };
            let row = out.row(k + j);
            for (out, slope) in row.iter_mut().zip(&pass.slopes[j]) {
                *out = *out * slope + own;
            }
        }
        let of_globals: Vec<LaneRow> = (0..k).map(|i| *grad.row(globals.of(i))).collect();
        let mut by_globals = self.globals_transposed(omega, &of_globals);
        self.features.pull(&pass.x, &by_feature, &mut by_globals);
        for (i, row) in by_globals.into_iter().enumerate() {
            *out.row(i) = row;
        }
    }

    /// Computes `Aᵀ g`.
    pub(super) fn globals_transposed(&self, omega: &[f64], grad: &[LaneRow]) -> Vec<LaneRow> {
        let mut out = vec![[0.0; WIDTH]; self.globals.len()];
        for (i, row) in grad.iter().enumerate() {
            let a = &omega[self.element(i, 0)..=self.element(i, i)];
            spread_all(a, &[*row], &mut out[..=i]);
        }
        out
    }

    pub(crate) fn passes(
        &self,
        omega: &[f64],
        noise: Lanes<'_>,
        z: &mut LanesMut<'_>,
        passes: &mut Passes,
    ) {
        let lanes = noise.lanes();
        let Passes {
            blocks,
            given,
            made,
        } = passes;
        blocks.resize_with(lanes.div_ceil(WIDTH), Pass::default);
        for (pass, first) in blocks.iter_mut().zip((0..lanes).step_by(WIDTH)) {
            let noise = Rows::of(noise, first, given);
            if first + WIDTH <= lanes {
                self.go(omega, noise, pass, &mut RowsMut::of(z, first));
                continue;
            }
            made.resize(self.dim(), [0.0; WIDTH]);
            self.go(omega, noise, pass, &mut RowsMut::all(made));
            for (i, row) in made.iter().enumerate() {
                Self::write(row, first, z.row_mut(i));
            }
        }
    }

    /// Computes `out = ∂/∂x (log p + log |∂z/∂x|)` at the noise x, from the gradient of log p at the draws.
    pub(crate) fn pull_density(
        &self,
        omega: &[f64],
        noise: Lanes<'_>,
        passes: &mut Passes,
        grad: Lanes<'_>,
        mut out: LanesMut<'_>,
    ) {
        let (lanes, stretch) = (grad.lanes(), self.stretch(omega));
        let order = (Order::At(&self.globals), Order::At(&self.locals));
        let Passes {
            blocks,
            given,
            made,
        } = passes;
        let mut room = Vec::new();
        for (pass, first) in blocks.iter().zip((0..lanes).step_by(WIDTH)) {
            let way = (pass, Rows::of(noise, first, given));
            let grad = (Rows::of(grad, first, &mut room), order.0, order.1);
            if first + WIDTH <= lanes {
                let mut out = RowsMut::of(&mut out, first);
                self.pulled(omega, way, grad, Some(&stretch), &mut out);
                continue;
            }
            made.resize(self.dim(), [0.0; WIDTH]);
            self.pulled(omega, way, grad, Some(&stretch), &mut RowsMut::all(made));
            for (i, row) in made.iter().enumerate() {
                Self::write(row, first, out.row_mut(i));
            }
        }
    }

    pub(super) fn adjoints(
        &self,
        values: &[LaneRow],
        pass: &Pass,
        grad: &[LaneRow],
    ) -> (Vec<LaneRow>, Vec<LaneRow>) {
        let mut by_y = grad.to_vec();
        let mut out = vec![[0.0; WIDTH]; self.symbolic.nonzeros()];
        for j in 0..self.locals.len() {
            let own = by_y[j];
            let p = self.symbolic.diagonal(j);
            for l in 0..WIDTH {
                out[p][l] = -own[l] * pass.scale[j][l] * pass.noise[j][l];
            }
            for (p, i) in self.symbolic.below(j) {
                for l in 0..WIDTH {
                    by_y[i][l] -= values[p][l] * own[l];
                    out[p][l] = -own[l] * pass.y[i][l];
                }
            }
        }
        (by_y, out)
    }

    pub(super) fn values(&self, omega: &[f64], features: &Featured) -> Vec<LaneRow> {
        let nonzeros = self.weights(omega).nonzeros;
        let f = self.features.count();
        let mut out = vec![[0.0; WIDTH]; self.symbolic.nonzeros()];
        weighted(nonzeros, &features.bounded, &mut out);
        for j in 0..self.locals.len() {
            let p = self.symbolic.diagonal(j);
            weighted(
                &nonzeros[p * f..(p + 1) * f],
                &features.plain,
                &mut out[p..=p],
            );
        }
        out
    }

    pub(super) fn by_skews(
        &self,
        omega: &[f64],
        noise: Lanes<'_>,
        first: usize,
        pass: &Pass,
    ) -> Vec<[LaneRow; 2]> {
        let k = self.globals.len();
        let plain = Self::block(noise, k..k + self.locals.len(), first);
        let each = plain.iter().zip(&omega[self.end()..]).enumerate();
        let each = each.map(|(j, (noise, g))| {
            let slope = pass.slopes.get(j).unwrap_or(&[1.0; WIDTH]);
            by_skew(*g, noise, slope)
        });
        each.collect()
    }

    pub(super) fn tangents(
        &self,
        values: &[LaneRow],
        turned: (&[LaneRow], &[f64]),
        by_skews: &[[LaneRow; 2]],
        pass: &Pass,
    ) -> Vec<LaneRow> {
        let (turned, skews) = turned;
        let mut out = vec![[0.0; WIDTH]; self.locals.len()];
        for j in (0..self.locals.len()).rev() {
            let p = self.symbolic.diagonal(j);
            let mut own = [0.0; WIDTH];
            for l in 0..WIDTH {
                let moved = by_skews[j][0][l] * skews[j] - turned[p][l] * pass.noise[j][l];
                own[l] = pass.scale[j][l] * moved;
            }
            for (p, i) in self.symbolic.below(j) {
                for l in 0..WIDTH {
                    own[l] -= turned[p][l] * pass.y[i][l] + values[p][l] * out[i][l];
                }
            }
            out[j] = own;
        }
        out
    }

    /// Computes `out[row, f] += Σ_lanes adjoint φ_f` for those rows of weights that determine entries of the factor.
    pub(super) fn add_weights(&self, features: &Featured, adjoints: &[LaneRow], out: &mut [f64]) {
        add_products(&features.bounded, adjoints, out);
        let f = self.features.count();
        for j in 0..self.locals.len() {
            let p = self.symbolic.diagonal(j);
            let own = &mut out[p * f..(p + 1) * f];
            own.fill(0.0);
            add_products(&features.plain, &adjoints[p..=p], own);
        }
    }
}
