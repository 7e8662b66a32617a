//! Conditionally structured Gaussians: ω = (mean and lower factor of the global parameters, then a row of weights for each mean of a local parameter and
//! each entry of the local parameters' factor).
//!
//! Global parameters are the coordinates with many second-order neighbours, such as the scales and locations of
//! hierarchies and series. They have a full covariance, `z_h = μ + A x`. Given the global parameters, the local
//! parameters are Gaussian (Tan, Bhaskaran and Nott, *Conditionally structured variational Gaussian approximation with
//! importance weights*, Statistics and Computing 30, 2020): with ε standard normal, from the last in the order of
//! elimination up,
//!
//! ```text
//! z_j = m_j + y_j,    y_j = e^(−a_j) ε_j − Σ_i r_ij y_i    (i after j, at the entries of a sparse Cholesky factor),
//! ```
//!
//! so the precision is `L Lᵀ` with `L_jj = e^(a_j)` and `L_ij = e^(a_j) r_ij`, sparse if the density has no second
//! derivative. Means, logarithms of scales and regressions are weighted sums of features of x: 1,
//! `h(x) = x / (1 + (x/d)¹⁶)^(1/16)`, which equals x over almost the whole range of a normal, so that a scale follows a
//! funnel into its neck; and products of `s(x) = x / √(1 + x²/c²)`, which are curved near the middle. In regressions s
//! replaces h, because a coefficient larger than 1 in size would explode along a chain. All features are bounded, so in
//! the long tail of a global parameter the distribution of the local parameters stays constant.
//!
//! The Jacobian is triangular, so that the density is exact, and moments of the features are integrals over one normal.

use std::sync::Arc;

use jensen_density::{Lanes, LanesMut, Pattern};
use jensen_math::constants::HALF_LOG_TWO_PI;
use rayon::prelude::*;

use super::globals::{
    Featured, Features, LaneRow, MOST_GLOBALS, Order, Rows, RowsMut, WIDTH, Weights, add_products,
    globals_of, nodes, pull_noise, solve, spread_all, weighted,
};
use super::mean_field::standard_normal;
use super::{Curvature, Family, FamilyKind, Space};
use crate::reduce::{dot, sum};
use crate::sparse::{Colouring, Symbolic};

/// Conditionally structured Gaussians.
#[derive(Clone, Debug)]
pub struct Conditional {
    space: Space,
    /// Coordinates of the global parameters, and of the local parameters in the order of elimination.
    globals: Vec<usize>,
    locals: Vec<usize>,
    features: Features,
    symbolic: Arc<Symbolic>,
    /// The directions of the local parameters that determine their Hessian, and its pattern.
    colouring: Arc<Colouring>,
    pattern: Option<Arc<Pattern>>,
}

/// Intermediate results of a block of lanes.
#[derive(Default)]
struct Pass {
    x: Vec<LaneRow>,
    features: Featured,
    noise: Vec<LaneRow>,
    /// `z − m` and `e^(−a)` of the local parameters.
    y: Vec<LaneRow>,
    scale: Vec<LaneRow>,
}

/// Passes of many lanes, without their noise, in reused memory.
#[derive(Default)]
pub(crate) struct Passes {
    blocks: Vec<Pass>,
    /// Buffers for an incomplete block: rows to read and rows to write.
    given: Vec<LaneRow>,
    made: Vec<LaneRow>,
}

impl Conditional {
    /// Lanes that are worked on together.
    pub(crate) const BLOCK: usize = WIDTH;

    /// The family on a space. Without a known pattern or global parameters, all coordinates are local parameters.
    pub fn new(space: Space) -> Self {
        let mut globals = space.pattern.as_deref().map_or_else(Vec::new, globals_of);
        globals.truncate(MOST_GLOBALS);
        Self::with_globals(space, globals)
    }

    /// The family with these global parameters.
    pub(super) fn with_globals(space: Space, mut globals: Vec<usize>) -> Self {
        globals.sort_unstable();
        let others: Vec<usize> = (0..space.dim)
            .filter(|i| globals.binary_search(i).is_err())
            .collect();
        let pattern = (space.pattern.as_deref()).map(|pattern| among(pattern, &others));
        let (symbolic, colouring) = match &pattern {
            Some(pattern) => (
                Symbolic::new(pattern, usize::MAX).expect("no limit"),
                Colouring::new(pattern),
            ),
            None => (Symbolic::dense(others.len()), Colouring::full(others.len())),
        };
        Self {
            locals: (0..others.len())
                .map(|j| others[symbolic.coordinate(j)])
                .collect(),
            features: Features::new(globals.len()),
            symbolic: Arc::new(symbolic),
            colouring: Arc::new(colouring),
            pattern: pattern.map(Arc::new),
            globals,
            space,
        }
    }

    /// Whether a density on this space has global parameters, no more than this family supports, and given these a
    /// factor with at most the given number of nonzeros.
    pub fn suits(space: &Space, most: usize) -> bool {
        let Some(pattern) = space.pattern.as_deref() else {
            return false;
        };
        let mut globals = globals_of(pattern);
        if globals.is_empty() || globals.len() > MOST_GLOBALS {
            return false;
        }
        globals.sort_unstable();
        let others: Vec<usize> = (0..space.dim)
            .filter(|i| globals.binary_search(i).is_err())
            .collect();
        Symbolic::new(&among(pattern, &others), most).is_some()
    }

    /// Coordinates of the global parameters.
    pub(crate) fn globals(&self) -> &[usize] {
        &self.globals
    }

    /// Coordinates of the local parameters, in the order of elimination.
    pub(crate) fn locals(&self) -> &[usize] {
        &self.locals
    }

    pub(crate) fn features(&self) -> &Features {
        &self.features
    }

    pub(crate) fn symbolic(&self) -> &Symbolic {
        &self.symbolic
    }

    /// Directions, `dim × columns`, whose Hessian products determine the local parameters' part of the Hessian.
    pub(crate) fn local_directions(&self) -> Vec<f64> {
        let own = self.colouring.directions();
        let columns = own.len().checked_div(self.locals.len()).unwrap_or(0);
        let mut out = vec![0.0; self.space.dim * columns];
        for (j, &c) in self.locals.iter().enumerate() {
            let row = self.symbolic.coordinate(j);
            out[c * columns..(c + 1) * columns]
                .copy_from_slice(&own[row * columns..(row + 1) * columns]);
        }
        out
    }

    /// The local parameters' part of a matrix at the nonzeros, from its products with these directions (`dim × columns`).
    pub(crate) fn gathered(&self, products: &[f64]) -> Vec<f64> {
        let columns = products.len() / self.space.dim;
        let mut own = vec![0.0; self.locals.len() * columns];
        for (j, &c) in self.locals.iter().enumerate() {
            let row = self.symbolic.coordinate(j);
            own[row * columns..(row + 1) * columns]
                .copy_from_slice(&products[c * columns..(c + 1) * columns]);
        }
        self.symbolic
            .gathered(&self.colouring, self.pattern.as_deref(), &own)
    }

    /// Offset of the weights: first those of the means, then those of the nonzeros.
    fn start(&self) -> usize {
        let k = self.globals.len();
        k + k * (k + 1) / 2
    }

    /// ω from the global parameters' Gaussian (A as a full square) and rows of weights.
    pub(crate) fn member(&self, mean: &[f64], factor: &[f64], weights: &[f64]) -> Vec<f64> {
        let k = self.globals.len();
        let rows = (0..k).flat_map(|i| factor[i * k..=i * k + i].iter().copied());
        let mut omega: Vec<f64> = mean.to_vec();
        omega.extend(rows);
        omega.extend_from_slice(weights);
        omega
    }

    /// Index of the nonzero of an element of A.
    fn element(&self, i: usize, k: usize) -> usize {
        self.globals.len() + i * (i + 1) / 2 + k
    }

    /// Weights of means, and of nonzeros.
    fn weights<'a>(&self, omega: &'a [f64]) -> Weights<'a> {
        let count = self.locals.len() * self.features.count();
        let (means, nonzeros) = omega[self.start()..].split_at(count);
        Weights { means, nonzeros }
    }

    /// The sum of the weights of all log scales.
    fn stretch(&self, omega: &[f64]) -> Vec<f64> {
        let (f, nonzeros) = (self.features.count(), self.weights(omega).nonzeros);
        let mut out = vec![0.0; f];
        for j in 0..self.locals.len() {
            let p = self.symbolic.diagonal(j);
            for (out, t) in out.iter_mut().zip(&nonzeros[p * f..(p + 1) * f]) {
                *out += t;
            }
        }
        out
    }

    /// Log of the determinant of A.
    fn global_log_det(&self, omega: &[f64]) -> f64 {
        let diagonal = (0..self.globals.len()).map(|i| omega[self.element(i, i)].abs().ln());
        diagonal.sum()
    }

    /// The log Jacobian at every lane of the noise.
    pub(crate) fn log_dets(&self, omega: &[f64], noise: Lanes<'_>) -> Vec<f64> {
        let (stretch, constant) = (self.stretch(omega), self.global_log_det(omega));
        let mut x = vec![0.0; self.globals.len()];
        let each = (0..noise.lanes()).map(|l| {
            x.iter_mut()
                .enumerate()
                .for_each(|(k, x)| *x = noise.row(k)[l]);
            let features = self.features.at(&x);
            constant
                - stretch
                    .iter()
                    .zip(features)
                    .map(|(t, f)| t * f)
                    .sum::<f64>()
        });
        each.collect()
    }

    /// Rows of a block of lanes. Missing lanes at the end are zero.
    fn block(rows: Lanes<'_>, which: impl Iterator<Item = usize>, first: usize) -> Vec<LaneRow> {
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

    /// Processes blocks of lanes in parallel.
    fn blocks<T: Send>(lanes: usize, work: impl Fn(usize) -> T + Sync) -> Vec<(usize, T)> {
        let firsts: Vec<usize> = (0..lanes).step_by(WIDTH).collect();
        let each = firsts.into_par_iter().map(|first| (first, work(first)));
        each.collect()
    }

    /// Writes the rows of global parameters, then of local parameters, of blocks.
    fn arrange(&self, blocks: Vec<(usize, Vec<LaneRow>)>, out: &mut LanesMut<'_>) {
        for (first, rows) in blocks {
            for (&c, row) in self.globals.iter().chain(&self.locals).zip(&rows) {
                Self::write(row, first, out.row_mut(c));
            }
        }
    }

    /// Writes the row of a block to its lanes that exist.
    fn write(row: &LaneRow, first: usize, out: &mut [f64]) {
        let width = WIDTH.min(out.len() - first);
        out[first..first + width].copy_from_slice(&row[..width]);
    }

    /// Rows of the global parameters, then of the local parameters.
    fn ordered(&self, rows: Lanes<'_>, first: usize) -> (Vec<LaneRow>, Vec<LaneRow>) {
        let of = |which: &[usize]| Self::block(rows, which.iter().copied(), first);
        (of(&self.globals), of(&self.locals))
    }

    fn pass(&self, omega: &[f64], noise: Lanes<'_>, first: usize) -> Pass {
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

    /// The draws of a block, with intermediate results.
    fn go(&self, omega: &[f64], noise: Rows<'_>, pass: &mut Pass, z: &mut RowsMut<'_>) {
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
        solve(
            &self.symbolic,
            self.weights(omega),
            &pass.features,
            (noise, k),
            &mut pass.y,
            &mut pass.scale,
            z,
            Order::At(&self.locals),
        );
    }

    /// `μ + A x`.
    fn global_rows(&self, omega: &[f64], shift: bool, x: &[LaneRow]) -> Vec<LaneRow> {
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

    /// Draws of a block: global parameters, then local parameters.
    fn draws(&self, omega: &[f64], pass: &Pass) -> Vec<LaneRow> {
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

    /// Derivatives with respect to a block's noise, global parameters first, from derivatives with respect to the
    /// draws, whose global and local parameters are in the given order. Includes the log Jacobian if `stretched`.
    fn pulled(
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
        pull_noise(
            &self.symbolic,
            self.weights(omega),
            &pass.features,
            (noise, k),
            &pass.y,
            &pass.scale,
            (grad, locals),
            out,
            &mut by_feature,
        );
        let of_globals: Vec<LaneRow> = (0..k).map(|i| *grad.row(globals.of(i))).collect();
        let mut by_globals = self.globals_transposed(omega, &of_globals);
        self.features.pull(&pass.x, &by_feature, &mut by_globals);
        for (i, row) in by_globals.into_iter().enumerate() {
            *out.row(i) = row;
        }
    }

    /// `Aᵀ g`.
    fn globals_transposed(&self, omega: &[f64], grad: &[LaneRow]) -> Vec<LaneRow> {
        let mut out = vec![[0.0; WIDTH]; self.globals.len()];
        for (i, row) in grad.iter().enumerate() {
            let a = &omega[self.element(i, 0)..=self.element(i, i)];
            spread_all(a, &[*row], &mut out[..=i]);
        }
        out
    }

    /// The draws for given noise, and the intermediate results that [`pull_density`](Self::pull_density) needs.
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

    /// `out = ∂/∂x (log p + log |∂z/∂x|)` where the noise was x, from the gradient of log p at the draws.
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

    /// Adjoints of the rows of weights of the nonzeros, from a gradient with respect to the draws.
    fn adjoints(
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

    /// Values of the nonzeros' rows.
    fn values(&self, omega: &[f64], features: &Featured) -> Vec<LaneRow> {
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

    /// Tangents of y, for a direction.
    fn tangents(&self, values: &[LaneRow], turned: &[LaneRow], pass: &Pass) -> Vec<LaneRow> {
        let mut out = vec![[0.0; WIDTH]; self.locals.len()];
        for j in (0..self.locals.len()).rev() {
            let p = self.symbolic.diagonal(j);
            let mut own = [0.0; WIDTH];
            for l in 0..WIDTH {
                own[l] = -turned[p][l] * pass.scale[j][l] * pass.noise[j][l];
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

    /// `out[row, f] += Σ_lanes adjoint φ_f` for the rows of weights of entries.
    fn add_weights(&self, features: &Featured, adjoints: &[LaneRow], out: &mut [f64]) {
        add_products(&features.bounded, adjoints, out);
        let f = self.features.count();
        for j in 0..self.locals.len() {
            let p = self.symbolic.diagonal(j);
            let own = &mut out[p * f..(p + 1) * f];
            own.fill(0.0);
            add_products(&features.plain, &adjoints[p..=p], own);
        }
    }

    /// The local parameters' factor, given the global parameters at x.
    fn factor_at(&self, omega: &[f64], x: &[f64]) -> Vec<f64> {
        let (f, nonzeros) = (self.features.count(), self.weights(omega).nonzeros);
        let (plain, bounded) = (self.features.at(x), self.features.bounded_at(x));
        let mut factor: Vec<f64> = nonzeros
            .chunks(f)
            .map(|theta| dot(theta, &bounded))
            .collect();
        for j in 0..self.locals.len() {
            let p = self.symbolic.diagonal(j);
            factor[p] = dot(&nonzeros[p * f..(p + 1) * f], &plain).exp();
            for (q, _) in self.symbolic.below(j) {
                factor[q] *= factor[p];
            }
        }
        factor
    }

    /// Variances of the global parameters.
    fn global_variances(&self, omega: &[f64]) -> Vec<f64> {
        let row = |i: usize| &omega[self.element(i, 0)..=self.element(i, i)];
        (0..self.globals.len())
            .map(|i| dot(row(i), row(i)))
            .collect()
    }
}

/// The pattern among some coordinates, numbered by their position in the list.
fn among(pattern: &Pattern, which: &[usize]) -> Pattern {
    let mut number = vec![u32::MAX; pattern.dim()];
    for (j, &i) in which.iter().enumerate() {
        number[i] = j as u32;
    }
    let list = |i: &usize| {
        let near = pattern.neighbours(*i).iter();
        near.map(|&n| number[n as usize])
            .filter(|n| *n != u32::MAX)
            .collect()
    };
    Pattern::new(which.iter().map(list).collect())
}

impl Family for Conditional {
    fn kind(&self) -> FamilyKind {
        FamilyKind::Conditional
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
        self.start() + rows * self.features.count()
    }
    fn free_rows(&self) -> usize {
        self.dim()
    }
    fn uses_curvature(&self) -> bool {
        false
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
    /// For local parameters, the sum of the variance of their means and the mean of their variances over the global
    /// parameters.
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
            let tangents = Pass {
                y: self.tangents(&values, &turned, &pass),
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
            let (_, adjoints) = self.adjoints(&values, &pass, &locals);
            let mut own = vec![0.0; omega.len()];
            for (i, g) in globals.iter().enumerate() {
                own[i] = sum(g);
                for (k, x) in pass.x.iter().enumerate().take(i + 1) {
                    own[self.element(i, k)] = dot(g, x);
                }
            }
            let (of_means, of_nonzeros) = own[means..].split_at_mut(n * self.features.count());
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
            let tangents = self.tangents(&values, &turned, &pass);
            let (by_y, _) = self.adjoints(&values, &pass, &locals);
            let adjoints = self.turned_adjoints(&values, &turned, &pass, &by_y, &tangents);
            let mut own = vec![0.0; omega.len()];
            let (_, of_nonzeros) = own[start..].split_at_mut(n * self.features.count());
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
    /// With `g = ∇_z log q`, `−ε − ∇_ε log |∂z/∂ε| = (∂z/∂ε)ᵀ g`: for local parameters `g = −L ε`, then the global
    /// parameters follow.
    fn score(&self, omega: &[f64], noise: Lanes<'_>, _z: Lanes<'_>, mut out: LanesMut<'_>) {
        let (k, stretch) = (self.globals.len(), self.stretch(omega));
        let blocks = Self::blocks(noise.lanes(), |first| {
            let pass = self.pass(omega, noise, first);
            let values = self.values(omega, &pass.features);
            let mut locals = vec![[0.0; WIDTH]; self.locals.len()];
            for j in 0..self.locals.len() {
                let mut own = [0.0; WIDTH];
                for l in 0..WIDTH {
                    own[l] = pass.noise[j][l] / pass.scale[j][l];
                    locals[j][l] -= own[l];
                }
                for (p, i) in self.symbolic.below(j) {
                    for l in 0..WIDTH {
                        locals[i][l] -= values[p][l] * own[l];
                    }
                }
            }
            // What the global parameters get of the local parameters' gradients, with none of their own.
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
            // Aᵀ g from the last row up.
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
    /// The Fisher information at the mean of the global parameters, without terms that couple features or regressions
    /// of one column.
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
    /// The directional derivative of the nonzeros' adjoints at a fixed gradient.
    fn turned_adjoints(
        &self,
        values: &[LaneRow],
        turned: &[LaneRow],
        pass: &Pass,
        by_y: &[LaneRow],
        tangents: &[LaneRow],
    ) -> Vec<LaneRow> {
        let mut change = vec![[0.0; WIDTH]; self.locals.len()];
        let mut out = vec![[0.0; WIDTH]; self.symbolic.nonzeros()];
        for j in 0..self.locals.len() {
            let (own, moved) = (by_y[j], change[j]);
            let p = self.symbolic.diagonal(j);
            for l in 0..WIDTH {
                let stretched = pass.scale[j][l] * pass.noise[j][l];
                out[p][l] = stretched * (own[l] * turned[p][l] - moved[l]);
            }
            for (p, i) in self.symbolic.below(j) {
                for l in 0..WIDTH {
                    change[i][l] -= turned[p][l] * own[l] + values[p][l] * moved[l];
                    out[p][l] = -moved[l] * pass.y[i][l] - own[l] * tangents[i][l];
                }
            }
        }
        out
    }
}
