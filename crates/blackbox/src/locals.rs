//! Modes of the local parameters conditional on the global parameters, computed in parallel for many values of the
//! global parameters.

use jensen_density::{Lanes, LanesMut, TwiceDifferentiable};
use jensen_math::constants::HALF_LOG_TWO_PI;
use rayon::prelude::*;

use crate::calls::Calls;
use crate::family::Conditional;
use crate::reduce::{axpy, dot};
use crate::sizes;

/// The factor by which a rejected step becomes shorter. Twelve rejections in a row lead to [`SHORTEST`].
const SHORTER: f64 = 0.3;
/// The shortest allowed step, as a share of a full Newton step. If a shorter step would be necessary, the search ends
/// without a mode.
const SHORTEST: f64 = 1e-6;

/// The Newton decrement, in nats, at which a search has found the mode. The objective is practically quadratic near the
/// mode, so the decrement is twice the remaining distance from the mode.
const FOUND: f64 = 1e-6;

/// The distance between quadrature nodes, in standard deviations of Laplace's method. With this distance, the
/// trapezoidal rule integrates a Gaussian to within 3e-6.
const DISTANCE: f64 = 1.25;
/// The number of quadrature nodes on each side of the mode. The region beyond the last node contains less than 1e-4 of
/// the second moment of a Gaussian.
const SIDE: usize = 3;

/// A density counts as nearly Gaussian if quadrature changes its variance by at most this factor.
const NEARLY: f64 = 4.0;

#[derive(Clone, Debug)]
pub(crate) struct LocalMode {
    /// The mode, with coordinates in the order of elimination.
    pub at: Vec<f64>,
    pub factor: Vec<f64>,
    /// The logarithm of the integral of the density over the local parameters.
    pub log_mass: f64,
    /// The skewness of each local parameter. The vector is empty unless quadrature computed the skewness.
    pub skewness: Vec<f64>,
}

struct Climb {
    globals: Vec<f64>,
    at: Vec<f64>,
    value: f64,
    step: Vec<f64>,
    decrement: f64,
    share: f64,
    factor: Vec<f64>,
    over: Option<bool>,
}

struct NewtonStep {
    factor: Vec<f64>,
    step: Vec<f64>,
    decrement: f64,
}

pub(crate) struct Climber<'a, D: TwiceDifferentiable> {
    density: &'a D,
    family: &'a Conditional,
    directions: Vec<f64>,
    lanes: usize,
    workspace: D::Workspace,
    pub calls: Calls,
}

impl<'a, D: TwiceDifferentiable> Climber<'a, D> {
    pub(crate) fn new(density: &'a D, family: &'a Conditional) -> Self {
        let directions = family.local_directions();
        let dim = density.dim();
        let columns = directions.len() / dim;
        let lanes = sizes::lanes(dim).max(columns);
        Self {
            density,
            family,
            directions,
            lanes,
            workspace: density.workspace(lanes),
            calls: Calls::default(),
        }
    }

    pub(crate) fn modes(&mut self, starts: Vec<(Vec<f64>, Vec<f64>)>) -> Vec<Option<LocalMode>> {
        let mut climbs: Vec<Climb> = starts
            .into_iter()
            .map(|(globals, at)| Climb {
                globals,
                value: f64::NEG_INFINITY,
                step: vec![0.0; at.len()],
                at,
                decrement: 0.0,
                share: 1.0,
                factor: Vec::new(),
                over: None,
            })
            .collect();
        for _ in 0..sizes::ITERATIONS {
            let mut active: Vec<&mut Climb> =
                climbs.iter_mut().filter(|c| c.over.is_none()).collect();
            if active.is_empty() {
                break;
            }
            for group in active.chunks_mut(self.lanes) {
                self.advance(group);
            }
        }
        let local = self.family.locals().len() as f64;
        let end = |climb: Climb| {
            let found = climb.over == Some(true);
            found.then(|| LocalMode {
                log_mass: climb.value + 0.5 * climb.decrement + local * HALF_LOG_TWO_PI
                    - half_log_det(self.family, &climb.factor),
                at: climb.at,
                factor: climb.factor,
                skewness: Vec::new(),
            })
        };
        climbs.into_iter().map(end).collect()
    }

    /// Improves the results of Laplace's method by quadrature, if the local parameters are independent conditional on
    /// the global parameters. Means then replace the modes, precisions replace the curvatures, and the masses come from
    /// quadrature. With independent parameters, each element of the gradient at a node is the derivative of one
    /// parameter's log density. The function integrates these derivatives to obtain the log densities.
    pub(crate) fn integrate(&mut self, globals: &[Vec<f64>], modes: &mut [LocalMode]) {
        let local = self.family.locals().len();
        if self.family.symbolic().nonzeros() > local {
            return;
        }
        let together = (self.lanes / (2 * SIDE)).max(1);
        for (globals, modes) in globals.chunks(together).zip(modes.chunks_mut(together)) {
            let (grad, lanes) = self.at_nodes(globals, modes);
            for (l, mode) in modes.iter_mut().enumerate() {
                mode.skewness = vec![0.0; local];
                for (j, c) in self.family.locals().iter().enumerate() {
                    let first = c * lanes + l * 2 * SIDE;
                    let p = self.family.symbolic().diagonal(j);
                    let scale = 1.0 / mode.factor[p];
                    let slopes = grad[first..first + 2 * SIDE].iter().map(|g| g * scale);
                    let Some(moments) = Moments::of(slopes) else {
                        continue;
                    };
                    mode.at[j] += scale * moments.mean;
                    mode.factor[p] /= moments.variance.sqrt();
                    mode.log_mass += moments.log_mass;
                    mode.skewness[j] = moments.skewness;
                }
            }
        }
    }

    fn at_nodes(&mut self, globals: &[Vec<f64>], modes: &[LocalMode]) -> (Vec<f64>, usize) {
        let (dim, lanes) = (self.density.dim(), modes.len() * 2 * SIDE);
        let mut z = vec![0.0; dim * lanes];
        for (l, (globals, mode)) in globals.iter().zip(modes).enumerate() {
            let own = l * 2 * SIDE..(l + 1) * 2 * SIDE;
            for (c, x) in self.family.globals().iter().zip(globals) {
                z[c * lanes..(c + 1) * lanes][own.clone()].fill(*x);
            }
            for (j, c) in self.family.locals().iter().enumerate() {
                let scale = 1.0 / mode.factor[self.family.symbolic().diagonal(j)];
                let row = &mut z[c * lanes..(c + 1) * lanes][own.clone()];
                for (x, node) in row.iter_mut().zip(nodes()) {
                    *x = mode.at[j] + scale * node;
                }
            }
        }
        let (mut values, mut grad) = (vec![0.0; lanes], vec![0.0; dim * lanes]);
        self.density.value_grad(
            &mut self.workspace,
            Lanes::new(&z, dim, lanes),
            &mut values,
            LanesMut::new(&mut grad, dim, lanes),
        );
        self.calls.gradients += lanes as u64;
        (grad, lanes)
    }

    fn advance(&mut self, climbs: &mut [&mut Climb]) {
        let (dim, lanes) = (self.density.dim(), climbs.len());
        let (globals, locals) = (self.family.globals(), self.family.locals());
        let mut z = vec![0.0; dim * lanes];
        for (l, climb) in climbs.iter().enumerate() {
            for (&c, x) in globals.iter().zip(&climb.globals) {
                z[c * lanes + l] = *x;
            }
            for ((&c, x), step) in locals.iter().zip(&climb.at).zip(&climb.step) {
                z[c * lanes + l] = x + climb.share * step;
            }
        }
        let (mut values, mut grad) = (vec![0.0; lanes], vec![0.0; dim * lanes]);
        self.density.value_grad(
            &mut self.workspace,
            Lanes::new(&z, dim, lanes),
            &mut values,
            LanesMut::new(&mut grad, dim, lanes),
        );
        self.calls.gradients += lanes as u64;
        let mut good = Vec::new();
        for (l, climb) in climbs.iter_mut().enumerate() {
            let finite = locals.iter().all(|&c| grad[c * lanes + l].is_finite());
            let enough =
                climb.value + 1e-4 * climb.share * climb.decrement - 1e-9 * climb.value.abs();
            let first = climb.factor.is_empty();
            if values[l].is_finite() && finite && (first || values[l] >= enough) {
                let share = climb.share;
                let step = std::mem::take(&mut climb.step);
                axpy(share, &step, &mut climb.at);
                climb.value = values[l];
                good.push(l);
            } else if first {
                climb.over = Some(false);
            } else {
                climb.share *= SHORTER;
                if climb.share < SHORTEST {
                    climb.over = Some(false);
                }
            }
        }
        let products = self.products(&z, lanes, &good);
        let family = self.family;
        let gradient = |l: usize| locals.iter().map(move |&c| (c, l));
        let grad = &grad;
        let steps: Vec<Option<NewtonStep>> = good
            .par_iter()
            .zip(&products)
            .map(|(&l, products)| {
                let factor = definite(family, &family.gathered(products))?;
                let g: Vec<f64> = gradient(l).map(|(c, l)| grad[c * lanes + l]).collect();
                let mut step = g.clone();
                family.symbolic().solve(&factor, &mut step, 1);
                family.symbolic().solve_transposed(&factor, &mut step, 1);
                let decrement = dot(&g, &step);
                Some(NewtonStep {
                    factor,
                    step,
                    decrement,
                })
            })
            .collect();
        for (l, found) in good.into_iter().zip(steps) {
            let climb = &mut *climbs[l];
            let Some(found) = found else {
                climb.over = Some(false);
                continue;
            };
            climb.factor = found.factor;
            climb.step = found.step;
            climb.decrement = found.decrement;
            climb.share = 1.0;
            if climb.decrement < FOUND {
                climb.over = Some(true);
            }
        }
    }

    /// Multiplies the negated Hessian at selected lanes of z by the directions. Each product is a `dim × columns`
    /// matrix.
    fn products(&mut self, z: &[f64], lanes: usize, which: &[usize]) -> Vec<Vec<f64>> {
        let dim = self.density.dim();
        let columns = self.directions.len() / dim;
        let mut out = Vec::with_capacity(which.len());
        for group in which.chunks((self.lanes / columns).max(1)) {
            let width = group.len() * columns;
            let (mut at, mut turned) = (vec![0.0; dim * width], vec![0.0; dim * width]);
            for (i, directions) in self.directions.chunks(columns).enumerate() {
                for (k, &l) in group.iter().enumerate() {
                    let range = i * width + k * columns..i * width + (k + 1) * columns;
                    at[range.clone()].fill(z[i * lanes + l]);
                    turned[range].copy_from_slice(directions);
                }
            }
            let mut product = vec![0.0; dim * width];
            self.density.hvp(
                &mut self.workspace,
                Lanes::new(&at, dim, width),
                Lanes::new(&turned, dim, width),
                LanesMut::new(&mut product, dim, width),
            );
            self.calls.products += width as u64;
            for k in 0..group.len() {
                let rows = product.chunks(width);
                let own =
                    rows.flat_map(|row| row[k * columns..(k + 1) * columns].iter().map(|x| -x));
                out.push(own.collect());
            }
        }
        out
    }
}

fn nodes() -> impl Iterator<Item = f64> {
    let side = 1..=SIDE;
    let below = side.clone().rev().map(|k| -(k as f64));
    below.chain(side.map(|k| k as f64)).map(|k| DISTANCE * k)
}

#[derive(Clone, Copy, Debug)]
struct Moments {
    mean: f64,
    variance: f64,
    skewness: f64,
    log_mass: f64,
}

impl Moments {
    /// Integrates the slopes of the log density at the nodes. Returns `None` if the density is not nearly Gaussian.
    fn of(slopes: impl Iterator<Item = f64>) -> Option<Self> {
        /// The number of quadrature nodes, including the mode.
        const COUNT: usize = 2 * SIDE + 1;
        let mut g = [0.0; COUNT];
        for (at, slope) in slopes.enumerate() {
            g[at + usize::from(at >= SIDE)] = slope;
        }
        // The rise from one node to the next is the integral of the cubic polynomial through four slopes.
        let rise = |i: usize| {
            let sum = match i {
                0 => 9.0 * g[0] + 19.0 * g[1] - 5.0 * g[2] + g[3],
                i if i + 2 == COUNT => 9.0 * g[i + 1] + 19.0 * g[i] - 5.0 * g[i - 1] + g[i - 2],
                i => 13.0 * (g[i] + g[i + 1]) - g[i - 1] - g[i + 2],
            };
            DISTANCE * sum / 24.0
        };
        let mut log = [0.0; COUNT];
        for i in SIDE..COUNT - 1 {
            log[i + 1] = log[i] + rise(i);
        }
        for i in (0..SIDE).rev() {
            log[i] = log[i + 1] - rise(i);
        }
        let (mut total, mut first, mut second, mut third) = (0.0, 0.0, 0.0, 0.0);
        for (i, log) in log.iter().enumerate() {
            let (t, p) = (DISTANCE * (i as f64 - SIDE as f64), log.exp());
            total += p;
            first += t * p;
            second += t * t * p;
            third += t * t * t * p;
        }
        let mean = first / total;
        let variance = second / total - mean * mean;
        let third = third / total - mean * (3.0 * variance + mean * mean);
        let nearly = (1.0 / NEARLY..NEARLY).contains(&variance) && mean.is_finite();
        nearly.then(|| Self {
            mean,
            variance,
            skewness: third / variance.powf(1.5),
            log_mass: (DISTANCE * total).ln() - HALF_LOG_TWO_PI,
        })
    }
}

/// Computes `½ log |L Lᵀ|`.
fn half_log_det(family: &Conditional, factor: &[f64]) -> f64 {
    let symbolic = family.symbolic();
    (0..symbolic.dim())
        .map(|j| factor[symbolic.diagonal(j)].ln())
        .sum()
}

/// Adds positive numbers to the diagonal until the matrix is positive definite, and returns its factor.
fn definite(family: &Conditional, matrix: &[f64]) -> Option<Vec<f64>> {
    let symbolic = family.symbolic();
    let diagonal: Vec<usize> = (0..symbolic.dim()).map(|j| symbolic.diagonal(j)).collect();
    let largest = diagonal.iter().map(|&p| matrix[p].abs());
    let typical = largest.sum::<f64>() / diagonal.len().max(1) as f64;
    let mut share = 0.0;
    for _ in 0..12 {
        let mut shifted = matrix.to_vec();
        for &p in &diagonal {
            shifted[p] += share * (shifted[p].abs() + 1e-3 * typical);
        }
        if let Some(factor) = symbolic.cholesky(&shifted) {
            return Some(factor);
        }
        share = if share == 0.0 { 1e-4 } else { share * 4.0 };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test density is that of the logarithm of a gamma variable with shape a. Its coordinate is the distance from
    /// the mode, in standard deviations of Laplace's method. Up to a constant, the log density is `a x − a eˣ`. Its
    /// mean is ψ(a) − log a, its variance is ψ′(a), and its integral is Γ(a) a^(−a) eᵃ.
    #[test]
    fn moments_of_a_skewed_density_are_its_own() {
        let a: f64 = 20.0;
        let scale = 1.0 / a.sqrt();
        let slope = |t: f64| scale * (a - a * (scale * t).exp());
        let found = Moments::of(nodes().map(slope)).unwrap();
        let (digamma, trigamma) = (2.970_523_992_242_149, 0.051_270_822_936_203_54);
        assert!(
            (scale * found.mean - (digamma - a.ln())).abs() < 3e-4,
            "{found:?}"
        );
        assert!(
            (found.variance * scale * scale / trigamma - 1.0).abs() < 2e-3,
            "{found:?}"
        );
        // The number is ψ″(20).
        let skewness = -0.002_628_122 / trigamma.powf(1.5);
        assert!((found.skewness - skewness).abs() < 1e-2, "{found:?}");
        // This uses log Γ(20) = log 19!.
        let log_gamma = (2..20).map(|k| f64::from(k).ln()).sum::<f64>();
        let exact = log_gamma - a * a.ln() + a - 0.5 * (2.0 * std::f64::consts::PI / a).ln();
        assert!((found.log_mass - exact).abs() < 3e-4, "{found:?} {exact}");
        assert!(Moments::of(nodes().map(|_| f64::NAN)).is_none());
    }
}
