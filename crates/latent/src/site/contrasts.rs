//! The expectation of the multinomial-logit likelihood, expressed in terms of contrasts between categories.
//!
//! The last of the K categories is the reference, with η_K = 0. The curvature of `g = log Σ_k e^(η_k)` is `diag p − ppᵀ
//! = Σ_{j<k≤K} p_j p_k (e_j − e_k)(e_j − e_k)ᵀ`. This is a sum with non-negative weights over the *contrasts* η_j − η_k
//! of pairs of categories. The optimal Gaussian posterior (Opper and Archambeau 2009) has the precision `Σ⁻¹ + Wᵀ
//! E[∇²g] W`. If each of the K(K−1)/2 contrasts of an observation has its own linear predictor, `E[∇²g]` becomes `diag
//! λ` with `λ_jk = E[p_j p_k]`. The variances of the contrasts contain the covariance of an observation's predictors,
//! `2 Cov(η_j, η_k) = v_j + v_k − v_jk`. Price's theorem gives `2 ∂f/∂v_jk = E[p_j p_k]`, as for scalar sites. Only
//! contrasts with the reference have a non-zero α, which is `α_k = E[p_k] − [y = k]`.
//!
//! For up to three dimensions (K − 1), the expectation is computed by a product of trapezoidal rules. For more
//! dimensions, it is the mean over points that are spread evenly and symmetrically and have the right second moments.

use std::borrow::Cow;
use std::sync::OnceLock;

use jensen_math::simd::{F64x8, LANES, Simd};
use jensen_math::simd_fn;
use jensen_math::special::inv_phi;
use jensen_math::vmath::{exp, log};
use rayon::prelude::*;

use super::convex::Value;
use super::expectation::{Nodes, Potentials, Quadrature};
use super::multinomial::Multinomial;
use crate::copies::{contrasted, count, pairs};
use crate::linear::design::to_sparse_transposed;
use crate::linear::kernels::cholesky;
use crate::{Dense, Design, LatentModel, Likelihood, SiteBound, Sparse, Warm, lattice};

/// Largest number of dimensions for which expectations use grids. In three dimensions with variances of about 1, the
/// error of the grid is 1e-7 nats. The mean over 2048 points has an error of 3e-4.
const GRID: usize = 3;

/// Number of points in the mean over points. The estimate of the error uses four times as many points.
const POINTS: usize = 8192;

#[derive(Debug)]
pub(crate) struct Contrasts {
    sites: Vec<Multinomial>,
    size: usize,
    /// The point set, and a second one with four times as many points.
    point_sets: [OnceLock<PointSet>; 2],
}

impl Contrasts {
    pub(crate) fn new(sites: Vec<Multinomial>) -> Self {
        Self {
            size: sites.first().map_or(1, |s| s.size),
            sites,
            point_sets: [OnceLock::new(), OnceLock::new()],
        }
    }

    fn point_set(&self, finer: bool) -> &PointSet {
        let points = if finer { 4 * POINTS } else { POINTS };
        self.point_sets[usize::from(finer)].get_or_init(|| PointSet::new(self.size, points))
    }
}

impl Potentials for Contrasts {
    fn values(&self, rule: &Quadrature, m: &[f64], v: &[f64]) -> Vec<Value> {
        let stride = count(self.size);
        let mut out = vec![Value::default(); m.len()];
        // One observation takes as much work as many scalar sites, so every observation is its own task.
        (out.par_chunks_mut(stride).zip(&self.sites))
            .enumerate()
            .for_each(|(i, (out, site))| {
                let range = i * stride..(i + 1) * stride;
                let at = Joint::new(&m[range.clone()], &v[range], self.size);
                let sums = match self.size {
                    0..=GRID => on_grid(Simd::detect(), rule, &at),
                    _ => over_point_set(Simd::detect(), self.point_set(rule.finer), &at),
                };
                sums.write(site, &at, out);
            });
        out
    }

    /// This method is never called, because a single contrast has no likelihood of its own.
    fn value(&self, _: &Quadrature, _: usize, _: f64, _: f64) -> Value {
        Value {
            f: f64::NAN,
            by_mean: f64::NAN,
            by_variance: f64::NAN,
        }
    }

    /// The nearest singularity is where two of the exponentials cancel each other.
    fn width(&self, _: usize) -> f64 {
        std::f64::consts::PI
    }

    fn discord(&self) -> f64 {
        match self.size {
            0..=GRID => 0.0,
            // Price's theorem gives the derivatives of expectations, which the means over point sets only approximate.
            // The resulting error was not measured.
            _ => 1e-6 * self.sites.len() as f64,
        }
    }
}

/// The joint distribution of an observation's predictors, given by their means and a root of their covariance.
struct Joint<'a> {
    mean: &'a [f64],
    /// A lower triangular matrix, row by row.
    root: Vec<f64>,
}

impl<'a> Joint<'a> {
    fn new(m: &'a [f64], v: &[f64], size: usize) -> Self {
        let mut covariance = vec![0.0; size * size];
        for k in 0..size {
            covariance[k * size + k] = v[k];
        }
        for ((j, k), v_jk) in pairs(size).zip(&v[size..]) {
            covariance[k * size + j] = 0.5 * (v[j] + v[k] - v_jk);
        }
        Self {
            mean: &m[..size],
            root: root(covariance, size),
        }
    }

    fn spread(&self, i: usize) -> f64 {
        let size = self.mean.len();
        let column = (i..size).map(|k| self.root[k * size + i]);
        let (low, high) = column.fold((0.0_f64, 0.0_f64), |(low, high), x| {
            (low.min(x), high.max(x))
        });
        high - low
    }
}

/// Computes the Cholesky factor of a covariance from its lower triangle, which is stored row by row. Pivots that are
/// negative because of rounding errors are set to 0.
fn root(mut a: Vec<f64>, n: usize) -> Vec<f64> {
    for j in 0..n {
        let own: f64 = (0..j).map(|l| a[j * n + l].powi(2)).sum();
        let pivot = (a[j * n + j] - own).max(0.0).sqrt();
        a[j * n + j] = pivot;
        for k in j + 1..n {
            let inner: f64 = (0..j).map(|l| a[k * n + l] * a[j * n + l]).sum();
            a[k * n + j] = if pivot > 0.0 {
                (a[k * n + j] - inner) / pivot
            } else {
                0.0
            };
        }
    }
    a
}

struct Sums {
    log: f64,
    shares: Vec<f64>,
    products: Vec<f64>,
}

impl Sums {
    fn write(&self, site: &Multinomial, at: &Joint<'_>, out: &mut [Value]) {
        let observed = at.mean.get(site.category).copied().unwrap_or(0.0);
        for (k, out) in out.iter_mut().enumerate() {
            *out = Value {
                f: if k == 0 { self.log - observed } else { 0.0 },
                by_mean: match self.shares.get(k) {
                    Some(p) => p - f64::from(site.category == k),
                    None => 0.0,
                },
                by_variance: 0.5 * self.products[k],
            };
        }
    }
}

struct Lanes<V> {
    z: Vec<V>,
    eta: Vec<V>,
    log: V,
    shares: Vec<V>,
    products: Vec<V>,
}

impl<V: F64x8> Lanes<V> {
    #[inline(always)]
    fn new(size: usize) -> Self {
        Self {
            z: vec![V::zero(); size],
            eta: vec![V::zero(); size],
            log: V::zero(),
            shares: vec![V::zero(); size],
            products: vec![V::zero(); count(size)],
        }
    }

    #[inline(always)]
    fn add(&mut self, at: &Joint<'_>, weight: V) {
        let size = self.eta.len();
        let mut top = V::zero();
        for k in 0..size {
            let mut eta = V::splat(at.mean[k]);
            for i in 0..=k {
                eta = V::splat(at.root[k * size + i]).fma(self.z[i], eta);
            }
            self.eta[k] = eta;
            top = top.max(eta);
        }
        let reference = exp(-top);
        let mut total = reference;
        for eta in &mut self.eta {
            *eta = exp(*eta - top);
            total = total + *eta;
        }
        self.log = weight.fma(top + log(total), self.log);
        let scale = V::splat(1.0) / total;
        let reference = reference * scale;
        let mut next = size;
        for j in 0..size {
            let p = self.eta[j] * scale;
            let weighted = weight * p;
            self.shares[j] = self.shares[j] + weighted;
            self.products[j] = weighted.fma(reference, self.products[j]);
            let scaled = weighted * scale;
            for k in j + 1..size {
                self.products[next] = scaled.fma(self.eta[k], self.products[next]);
                next += 1;
            }
        }
    }

    #[inline(always)]
    fn sums(&self, scale: f64) -> Sums {
        let each = |list: &[V]| list.iter().map(|x| scale * x.sum()).collect();
        Sums {
            log: scale * self.log.sum(),
            shares: each(&self.shares),
            products: each(&self.products),
        }
    }
}

#[inline(always)]
fn load<V: F64x8>(x: &[f64], at: usize) -> V {
    let mut out = [0.0; LANES];
    out.copy_from_slice(&x[at..at + LANES]);
    V::from_array(out)
}

/// A grid omits nodes whose weight is below this share of the largest weight.
const LIGHT: f64 = 1e-11;

simd_fn! {
    /// Sums over a grid, which is a product of trapezoidal rules, one per dimension.
    fn on_grid, on_grid_fn = <V>(rule: &Quadrature, at: &Joint<'_>) -> Sums {
        let size = at.mean.len();
        let mut lanes = Lanes::<V>::new(size);
        let axes: Vec<&Nodes> = (0..size)
            .map(|i| rule.nodes(std::f64::consts::PI, at.spread(i)))
            .collect();
        let largest = |weights: &[f64]| weights.iter().copied().fold(0.0, f64::max);
        let light = LIGHT * axes.iter().map(|axis| largest(&axis.weights)).product::<f64>();
        // For each combination of nodes of the other axes, the loop takes eight nodes of the last axis at a time.
        let (last, outer) = axes.split_last().expect("a dimension");
        let combinations: usize = outer.iter().map(|axis| axis.nodes.len()).product();
        for combination in 0..combinations {
            let (mut weight, mut rest) = (1.0, combination);
            for (axis, z) in outer.iter().zip(&mut lanes.z) {
                let k = rest % axis.nodes.len();
                rest /= axis.nodes.len();
                weight *= axis.weights[k];
                *z = V::splat(axis.nodes[k]);
            }
            for c in (0..last.nodes.len()).step_by(LANES) {
                if weight * largest(&last.weights[c..c + LANES]) < light {
                    continue;
                }
                lanes.z[size - 1] = load(&last.nodes, c);
                lanes.add(at, V::splat(weight) * load(&last.weights, c));
            }
        }
        lanes.sums(1.0)
    }

    fn over_point_set, over_point_set_fn = <V>(point_set: &PointSet, at: &Joint<'_>) -> Sums {
        let mut lanes = Lanes::<V>::new(at.mean.len());
        for c in (0..point_set.points).step_by(LANES) {
            for (z, own) in lanes.z.iter_mut().zip(point_set.coordinates.chunks_exact(point_set.points)) {
                *z = load(own, c);
            }
            lanes.add(at, V::splat(1.0));
        }
        lanes.sums(1.0 / point_set.points as f64)
    }
}

/// Points that represent a standard normal distribution. They are symmetric and have unit second moments, so the mean
/// of a cubic polynomial over them is exact.
#[derive(Debug)]
struct PointSet {
    points: usize,
    /// Coordinate i of point n is at index `i · points + n`.
    coordinates: Vec<f64>,
}

impl PointSet {
    fn new(dimensions: usize, points: usize) -> Self {
        let half = points / 2;
        let even: Vec<Vec<f64>> = lattice(dimensions).take(half).collect();
        let normal = |u: f64| inv_phi(u.clamp(1e-9, 1.0 - 1e-9));
        let rows: Vec<Vec<f64>> = (0..dimensions)
            .map(|i| even.iter().map(|point| normal(point[i])).collect())
            .collect();
        let mut second = Dense::from_fn(dimensions, dimensions, |i, j| {
            let products = rows[i].iter().zip(&rows[j]).map(|(x, y)| x * y);
            products.sum::<f64>() / half as f64
        });
        // Thousands of points in general position span all dimensions.
        cholesky(&mut second).expect("points that span their space");
        let mut coordinates: Vec<f64> = Vec::with_capacity(dimensions * points);
        for (i, row) in rows.iter().enumerate() {
            let own: Vec<f64> = (0..half)
                .map(|n| {
                    let before: f64 = (0..i)
                        .map(|j| second.get(i, j) * coordinates[j * points + n])
                        .sum();
                    (row[n] - before) / second.get(i, i)
                })
                .collect();
            coordinates.extend(&own);
            coordinates.extend(own.iter().map(|x| -x));
        }
        Self {
            points,
            coordinates,
        }
    }
}

/// If the bound couples an observation's predictors, this function selects their values from the values of the
/// contrasts.
pub(crate) fn of_predictors(model: &LatentModel, values: Vec<f64>) -> Vec<f64> {
    let Some(size) = coupled(model.likelihood, model.bound) else {
        return values;
    };
    values
        .chunks(count(size))
        .flat_map(|own| own[..size].iter().copied())
        .collect()
}

/// If the bound couples an observation's predictors, contrasts are needed, and this function returns the number of the
/// predictors.
fn coupled(likelihood: Likelihood, bound: SiteBound) -> Option<usize> {
    let several = likelihood.predictors() > 1 && bound != SiteBound::Log;
    several.then(|| likelihood.predictors())
}

/// Returns the number of elements of α for an observation, which is also that of λ.
pub fn coordinates(likelihood: Likelihood, bound: SiteBound) -> usize {
    coupled(likelihood, bound).map_or(likelihood.predictors(), count)
}

pub(crate) fn with_contrasts(model: &LatentModel) -> Cow<'_, LatentModel> {
    let Some(size) = coupled(model.likelihood, model.bound) else {
        return Cow::Borrowed(model);
    };
    let mut inner = model.clone();
    inner.design = match &model.design {
        Design::Copies(copies) => Design::Copies(copies.with_contrasts()),
        design => Design::Sparse(sparse_with_contrasts(design, model.prior.len(), size)),
    };
    inner.observations.offset = (model.observations.offset.as_ref()).map(|o| contrasted(o, size));
    Cow::Owned(inner)
}

fn sparse_with_contrasts(design: &Design, latents: usize, size: usize) -> Sparse {
    let rows = to_sparse_transposed(design, latents);
    let groups = rows.cols / size;
    let mut triplets = Vec::new();
    let mut row = 0;
    let mut add = |row: usize, n: usize, sign: f64| {
        let (index, values) = rows.col(n);
        triplets.extend(index.iter().zip(values).map(|(l, x)| (row, *l, sign * x)));
    };
    for g in 0..groups {
        for k in 0..size {
            add(row, g * size + k, 1.0);
            row += 1;
        }
        for (j, k) in pairs(size) {
            add(row, g * size + j, 1.0);
            add(row, g * size + k, -1.0);
            row += 1;
        }
    }
    Sparse::from_triplets(row, latents, &triplets).expect("rows of the design")
}

pub(crate) fn warm_with_contrasts<'a>(model: &LatentModel, warm: &'a Warm) -> Cow<'a, Warm> {
    match coupled(model.likelihood, model.bound) {
        Some(size) if warm.predictor.len() == model.predictors() => Cow::Owned(Warm {
            predictor: contrasted(&warm.predictor, size),
            ..warm.clone()
        }),
        _ => Cow::Borrowed(warm),
    }
}

/// Converts the solution of a fit under any bound to a starting point for the model of [`with_contrasts`]. λ is 0 for
/// contrasts that did not occur in the fit.
pub(crate) fn spread_over_contrasts(model: &LatentModel, warm: &Warm) -> Warm {
    let Some(size) = coupled(model.likelihood, model.bound) else {
        return warm.clone();
    };
    let spread = |values: &[f64]| -> Vec<f64> {
        if values.len() != model.predictors() {
            return values.to_vec();
        }
        let more = count(size) - size;
        let groups = values.chunks(size);
        groups
            .flat_map(|own| own.iter().copied().chain(std::iter::repeat_n(0.0, more)))
            .collect()
    };
    Warm {
        alpha: spread(&warm.alpha),
        lambda: spread(&warm.lambda),
        predictor: contrasted(&warm.predictor, size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::logistic::Logistic;

    fn rule() -> Quadrature {
        Quadrature::new(None).unwrap()
    }

    fn sites(category: usize, size: usize) -> Contrasts {
        Contrasts::new(vec![Multinomial { category, size }])
    }

    fn contrast_moments(mean: &[f64], c: impl Fn(usize, usize) -> f64) -> (Vec<f64>, Vec<f64>) {
        let size = mean.len();
        let differences = pairs(size).map(|(j, k)| c(j, j) + c(k, k) - 2.0 * c(j, k));
        let v = (0..size).map(|k| c(k, k)).chain(differences).collect();
        (contrasted(mean, size), v)
    }

    /// Computes E log(1 + Σ e^η) − η_y by the midpoint rule on a grid of 8 standard deviations of z on either side.
    fn brute_force(
        mean: &[f64],
        c: impl Fn(usize, usize) -> f64,
        category: usize,
        steps: usize,
    ) -> f64 {
        let size = mean.len();
        let mut lower = vec![0.0; size * size];
        for k in 0..size {
            for j in 0..=k {
                lower[k * size + j] = c(j, k);
            }
        }
        let root = root(lower, size);
        let width = 16.0 / steps as f64;
        let mut total = 0.0;
        for point in 0..steps.pow(size as u32) {
            let z: Vec<f64> = (0..size)
                .map(|i| -8.0 + width * ((point / steps.pow(i as u32) % steps) as f64 + 0.5))
                .collect();
            let eta: Vec<f64> = (0..size)
                .map(|k| mean[k] + (0..=k).map(|i| root[k * size + i] * z[i]).sum::<f64>())
                .collect();
            let top = eta.iter().copied().fold(0.0, f64::max);
            let sum: f64 = (-top).exp() + eta.iter().map(|x| (x - top).exp()).sum::<f64>();
            let density: f64 = z.iter().map(|z| -0.5 * z * z).sum::<f64>();
            let observed = eta.get(category).copied().unwrap_or(0.0);
            total += density.exp() * (top + sum.ln() - observed);
        }
        total * (width / (2.0 * std::f64::consts::PI).sqrt()).powi(size as i32)
    }

    #[test]
    fn two_categories_are_a_logistic_likelihood() {
        let (m, v) = ([0.4], [3.0]);
        let form = Logistic {
            y: 1.0,
            n: 1.0,
            shift: 0.0,
            c: 0.0,
        };
        let expected = vec![form].values(&rule(), &m, &v)[0];
        let found = sites(0, 1).values(&rule(), &m, &v)[0];
        for (a, b) in [
            (found.f, expected.f),
            (found.by_mean, expected.by_mean),
            (found.by_variance, expected.by_variance),
        ] {
            assert!((a - b).abs() < 1e-10, "{a} {b}");
        }
    }

    #[test]
    fn expectations_are_those_of_brute_force() {
        let covariance = |scale: f64| {
            move |j: usize, k: usize| scale * if j == k { 1.0 + 0.3 * j as f64 } else { 0.4 }
        };
        for (mean, scale, category, steps, slack) in [
            (vec![0.5, -1.0], 0.7, 0, 120, 1e-8),
            (vec![0.5, 2.0], 12.0, 2, 400, 1e-6),
            (vec![0.5, -1.0, 0.8], 1.0, 1, 48, 1e-7),
            (vec![0.5, -1.0, 0.8, 0.1], 1.5, 4, 24, 5e-4),
        ] {
            let c = covariance(scale);
            let (m, v) = contrast_moments(&mean, c);
            let exact = brute_force(&mean, c, category, steps);
            let sites = sites(category, mean.len());
            let found = sites.values(&rule(), &m, &v)[0].f;
            assert!(
                (found - exact).abs() < slack,
                "{mean:?}: {found} and {exact}"
            );
            let claimed = super::super::expectation::error(&sites, &rule(), &m, &v);
            assert!(claimed < slack, "{mean:?}: {claimed}");
        }
    }

    #[test]
    fn derivatives_agree_with_differences() {
        let mean = [0.5, -1.0];
        let (m, v) = contrast_moments(&mean, |j, k| if j == k { 1.5 } else { 0.4 });
        let sites = sites(1, 2);
        let f = |m: &[f64], v: &[f64]| sites.values(&rule(), m, v)[0].f;
        let at = sites.values(&rule(), &m, &v);
        let h = 1e-4;
        for k in 0..3 {
            let (mut up, mut down) = (v.clone(), v.clone());
            up[k] += h;
            down[k] -= h;
            let slope = (f(&m, &up) - f(&m, &down)) / (2.0 * h);
            assert!(
                (at[k].by_variance - slope).abs() < 1e-7,
                "{k}: {} {slope}",
                at[k].by_variance
            );
            if k < 2 {
                let (mut up, mut down) = (m.clone(), m.clone());
                up[k] += h;
                down[k] -= h;
                let slope = (f(&up, &v) - f(&down, &v)) / (2.0 * h);
                assert!(
                    (at[k].by_mean - slope).abs() < 1e-7,
                    "{k}: {} {slope}",
                    at[k].by_mean
                );
            }
        }
    }
}
