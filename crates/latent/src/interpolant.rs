//! Interpolation of scattered values.

use faer::Side;
use faer::linalg::solvers::Solve;

use crate::Dense;

/// A function through scattered values: a sum of cubes of the distances from the points plus a linear function. Among all
/// such functions it has the least bending energy (Duchon 1977). In one dimension it is the natural cubic spline.
pub(crate) struct Interpolant {
    points: Vec<Vec<f64>>,
    /// The coefficients of the cubes, then the constant, then the slopes.
    coefficients: Vec<f64>,
}

impl Interpolant {
    /// Computes the interpolant. Returns `None` if the points do not determine a linear function. The cost is cubic in the
    /// number of points.
    pub(crate) fn new((points, values): (Vec<Vec<f64>>, Vec<f64>)) -> Option<Self> {
        let (n, d) = (points.len(), points.first()?.len());
        if !spans(&points) {
            return None;
        }
        let size = n + 1 + d;
        let linear = |k: usize, i: usize| if k == 0 { 1.0 } else { points[i][k - 1] };
        let system = Dense::from_fn(size, size, |i, j| match (i < n, j < n) {
            (true, true) => cube(&points[i], &points[j]),
            (true, false) => linear(j - n, i),
            (false, true) => linear(i - n, j),
            (false, false) => 0.0,
        });
        let mut right = values;
        right.resize(size, 0.0);
        let right = Dense::from_fn(size, 1, |i, _| right[i]);
        let solved = system.view().partial_piv_lu().solve(right.view());
        let coefficients: Vec<f64> = (0..size).map(|i| solved[(i, 0)]).collect();
        let found = Self {
            points,
            coefficients,
        };
        // Points on a line do not determine a linear function of two coordinates.
        let close = |(i, point): (usize, &Vec<f64>)| {
            (found.at(point) - right.data[i]).abs() < 1e-6 * (1.0 + right.data[i].abs())
        };
        (found.points.iter().enumerate())
            .all(close)
            .then_some(found)
    }

    pub(crate) fn at(&self, z: &[f64]) -> f64 {
        let (cubes, line) = self.coefficients.split_at(self.points.len());
        let curved: f64 = (self.points.iter().zip(cubes))
            .map(|(point, c)| c * cube(point, z))
            .sum();
        let straight: f64 = line[1..].iter().zip(z).map(|(c, z)| c * z).sum();
        curved + line[0] + straight
    }
}

/// Returns whether no plane contains all points.
fn spans(points: &[Vec<f64>]) -> bool {
    let d = points[0].len();
    let middle: Vec<f64> = (0..d)
        .map(|k| points.iter().map(|p| p[k]).sum::<f64>() / points.len() as f64)
        .collect();
    let spread = Dense::from_fn(d, d, |i, j| {
        (points
            .iter()
            .map(|p| (p[i] - middle[i]) * (p[j] - middle[j])))
        .sum()
    });
    let eigen = spread.view().self_adjoint_eigen(Side::Lower);
    eigen.is_ok_and(|eigen| eigen.S()[0] > 1e-9 * eigen.S()[d - 1])
}

fn cube(a: &[f64], b: &[f64]) -> f64 {
    let square: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    square * square.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::Curve;

    #[test]
    fn interpolant_of_a_line_is_a_natural_spline() {
        let values = vec![-4.0, -1.0, 0.0, -0.7, -3.0];
        let points = (0..5).map(|i| vec![f64::from(i)]).collect();
        let interpolant = Interpolant::new((points, values.clone())).unwrap();
        let curve = Curve::new(0.0, 1.0, values);
        for i in 0..60 {
            let z = 0.1 * f64::from(i) - 1.0;
            assert!((interpolant.at(&[z]) - curve.at(z)[0]).abs() < 1e-9, "{z}");
        }
    }

    #[test]
    fn interpolant_has_linear_functions_and_fails_on_a_line() {
        let line = |z: &[f64]| 1.0 + 2.0 * z[0] - 3.0 * z[1] + 0.5 * z[2];
        let points: Vec<Vec<f64>> = (0..9)
            .map(|i: u32| vec![f64::from(i % 3), f64::from(i / 3), f64::from(i * i % 5)])
            .collect();
        let values = points.iter().map(|z| line(z)).collect();
        let interpolant = Interpolant::new((points, values)).unwrap();
        let z = [0.3, 1.7, -2.0];
        assert!((interpolant.at(&z) - line(&z)).abs() < 1e-9);
        let points: Vec<Vec<f64>> = (0..4)
            .map(|i| vec![f64::from(i), f64::from(2 * i)])
            .collect();
        assert!(Interpolant::new((points, vec![0.0, 1.0, 0.0, 2.0])).is_none());
    }
}
