//! Tests the derivatives and the lane independence of a density at random points.

use std::fmt;

use jensen_density::{Lanes, LanesMut, LogDensity, TwiceDifferentiable};

/// The settings of a stress test.
#[derive(Clone, Copy, Debug)]
pub struct StressSettings {
    /// The number of random points.
    pub points: usize,
    /// Half the width of the cube from which points are drawn. The points are uniformly distributed in `[-radius,
    /// radius]^d`.
    pub radius: f64,
    /// The largest accepted error of a derivative, relative to the size of the derivative plus 1.
    pub tolerance: f64,
    /// The seed of the points.
    pub seed: u64,
}

impl Default for StressSettings {
    fn default() -> Self {
        Self {
            points: 20,
            radius: 2.0,
            tolerance: 1e-6,
            seed: 1,
        }
    }
}

/// A point at which a test failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The unconstrained point.
    pub point: Vec<f64>,
    /// A description of the failure, which includes both numbers.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?}", self.what, self.point)
    }
}

struct Uniform(u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^= x >> 31;
        (x >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// Computes the sixth-order central difference of `f` at 0 with step `h`.
fn central(mut f: impl FnMut(f64) -> f64, h: f64) -> f64 {
    let pair = |f: &mut dyn FnMut(f64) -> f64, k: f64| f(k * h) - f(-k * h);
    (45.0 * pair(&mut f, 1.0) - 9.0 * pair(&mut f, 2.0) + pair(&mut f, 3.0)) / (60.0 * h)
}

fn random_points(dim: usize, settings: &StressSettings) -> Vec<Vec<f64>> {
    let mut uniform = Uniform(settings.seed);
    (0..settings.points)
        .map(|_| (0..dim).map(|_| settings.radius * uniform.next()).collect())
        .collect()
}

fn single<D: LogDensity>(density: &D, ws: &mut D::Workspace, point: &[f64]) -> (f64, Vec<f64>) {
    let dim = density.dim();
    let (mut value, mut grad) = ([0.0], vec![0.0; dim]);
    density.value_grad(
        ws,
        Lanes::new(point, dim, 1),
        &mut value,
        LanesMut::new(&mut grad, dim, 1),
    );
    (value[0], grad)
}

/// Compares the gradient from `value_grad` with differences of `value`, and compares a batch of lanes with the same
/// lanes evaluated one at a time. Points at which the value is not finite are skipped. Returns the list of failures,
/// which is empty if the test passes.
pub fn stress<D: LogDensity>(density: &D, settings: &StressSettings) -> Vec<Failure> {
    let dim = density.dim();
    let points = random_points(dim, settings);
    let lanes = points.len();
    let mut ws = density.workspace(lanes);
    let mut failures = Vec::new();
    let mut fail = |point: &[f64], what: String| {
        failures.push(Failure {
            point: point.to_vec(),
            what,
        });
    };
    let batch: Vec<f64> = (0..dim)
        .flat_map(|row| points.iter().map(move |p| p[row]))
        .collect();
    let (mut values, mut grads) = (vec![0.0; lanes], vec![0.0; dim * lanes]);
    density.value_grad(
        &mut ws,
        Lanes::new(&batch, dim, lanes),
        &mut values,
        LanesMut::new(&mut grads, dim, lanes),
    );
    let mut alone = vec![0.0; lanes];
    density.value(&mut ws, Lanes::new(&batch, dim, lanes), &mut alone);
    for (lane, point) in points.iter().enumerate() {
        let (value, grad) = single(density, &mut ws, point);
        if value.to_bits() != values[lane].to_bits() {
            fail(
                point,
                format!("value {value} alone, {} in a batch", values[lane]),
            );
        }
        let close = (alone[lane] - value).abs() <= 1e-9 * (1.0 + value.abs());
        if value.is_finite() && !close {
            fail(
                point,
                format!("value {} without gradient, {value} with", alone[lane]),
            );
        }
        if !value.is_finite() {
            continue;
        }
        for row in 0..dim {
            if grad[row].to_bits() != grads[row * lanes + lane].to_bits() {
                fail(point, format!("gradient[{row}] depends on the batch"));
            }
            let mut moved = point.clone();
            let h = 1e-3 * (1.0 + point[row].abs());
            let difference = central(
                |t| {
                    moved[row] = point[row] + t;
                    let mut out = [0.0];
                    density.value(&mut ws, Lanes::new(&moved, dim, 1), &mut out);
                    out[0]
                },
                h,
            );
            // The rounding error of the value limits the resolution of differences.
            let noise = 1e-13 * value.abs() / h;
            let allowed = settings.tolerance * (1.0 + grad[row].abs()) + noise;
            let agrees = (difference - grad[row]).abs() <= allowed;
            if !agrees {
                fail(
                    point,
                    format!("gradient[{row}] {}, differences {difference}", grad[row]),
                );
            }
        }
    }
    failures
}

/// Runs [`stress`], compares Hessian-vector products with differences of the gradient, and tests that the Hessian is
/// symmetric.
pub fn stress_twice<D: TwiceDifferentiable>(
    density: &D,
    settings: &StressSettings,
) -> Vec<Failure> {
    let mut failures = stress(density, settings);
    let dim = density.dim();
    let mut ws = density.workspace(1);
    let mut uniform = Uniform(settings.seed ^ 0x5eed);
    for point in random_points(dim, settings) {
        let (value, grad) = single(density, &mut ws, &point);
        if !value.is_finite() {
            continue;
        }
        let size = grad.iter().fold(1.0, |m: f64, g| m.max(g.abs()));
        let mut directions = [vec![0.0; dim], vec![0.0; dim]];
        let mut products = [vec![0.0; dim], vec![0.0; dim]];
        density.linearize(&mut ws, Lanes::new(&point, dim, 1));
        for (v, hv) in directions.iter_mut().zip(&mut products) {
            v.iter_mut().for_each(|x| *x = uniform.next());
            density.apply(&mut ws, Lanes::new(v, dim, 1), LanesMut::new(hv, dim, 1));
        }
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
        let left = dot(&directions[1], &products[0]);
        let right = dot(&directions[0], &products[1]);
        let scale = products[0].iter().fold(1.0, |m: f64, h| m.max(h.abs()));
        let symmetric = (left - right).abs() <= 1e-9 * scale * dim as f64;
        if !symmetric {
            failures.push(Failure {
                point: point.clone(),
                what: format!("the Hessian is not symmetric: {left} against {right}"),
            });
        }
        let h = 1e-3;
        for (row, &product) in products[0].iter().enumerate() {
            let difference = central(
                |t| {
                    let moved: Vec<f64> = point
                        .iter()
                        .zip(&directions[0])
                        .map(|(x, v)| x + t * v)
                        .collect();
                    single(density, &mut ws, &moved).1[row]
                },
                h,
            );
            let allowed = settings.tolerance * (1.0 + scale) + 1e-13 * size / h;
            let agrees = (difference - product).abs() <= allowed;
            if !agrees {
                failures.push(Failure {
                    point: point.clone(),
                    what: format!("product[{row}] {product}, differences {difference}"),
                });
            }
        }
    }
    failures
}
