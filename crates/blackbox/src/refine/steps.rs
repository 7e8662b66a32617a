//! Steps of positions and momenta, in one pass over what they read each.

use jensen_math::simd::Simd;
use serde::{Deserialize, Serialize};

/// How positions and momenta go a step further, between two half kicks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Integrator {
    /// Kicks by the gradient, straight on between them. Of a standard normal of d coordinates its energy error asks for steps in
    /// proportion to `d^(−1/4)`.
    Leapfrog,
    /// Kicks by what the gradient is beyond that of a standard normal, whose circles are followed between them. The error is
    /// that of what is not normal alone, however many coordinates there are (Beskos, Pinski, Sanz-Serna and Stuart, *Hybrid
    /// Monte Carlo on Hilbert spaces*, Stochastic Processes and their Applications 121, 2011; Shahbaba, Lan, Johnson and Neal,
    /// *Split Hamiltonian Monte Carlo*, Statistics and Computing 24, 2014). Where tails are heavy it is the worse of both: it
    /// holds by kicks what circles draw inwards.
    Rotation,
}

impl Integrator {
    /// Share of the standard normal's gradient `−x` that kicks leave to the circles.
    fn normal(self) -> f64 {
        match self {
            Self::Leapfrog => 0.0,
            Self::Rotation => 1.0,
        }
    }

    /// Half a kick of the momenta at positions x, and a step of both; step sizes differ from lane to lane.
    pub(super) fn begin(self, x: &mut [f64], momentum: &mut [f64], grad: &[f64], sizes: &[f64]) {
        let half: Vec<f64> = sizes.iter().map(|h| 0.5 * h).collect();
        let (mut sin, mut cos) = (sizes.to_vec(), vec![1.0; sizes.len()]);
        if self == Self::Rotation {
            for (sin, cos) in sin.iter_mut().zip(&mut cos) {
                (*sin, *cos) = sin.sin_cos();
            }
        }
        begin_kernel(
            Simd::detect(),
            self.normal(),
            x,
            momentum,
            grad,
            &half,
            &sin,
            &cos,
        );
    }

    /// The other half at the positions where it ends, and the squared lengths of the momenta.
    pub(super) fn end(
        self,
        x: &[f64],
        momentum: &mut [f64],
        grad: &[f64],
        sizes: &[f64],
    ) -> Vec<f64> {
        let half: Vec<f64> = sizes.iter().map(|h| 0.5 * h).collect();
        let mut squares = vec![0.0; sizes.len()];
        end_kernel(
            Simd::detect(),
            self.normal(),
            x,
            momentum,
            grad,
            &half,
            &mut squares,
        );
        squares
    }
}

jensen_math::simd_fn! {
    fn begin_kernel, begin_kernel_fn = <V>(normal: f64, x: &mut [f64], momentum: &mut [f64], grad: &[f64], half: &[f64], sin: &[f64], cos: &[f64]) {
        let lanes = half.len();
        let (sin, cos) = (&sin[..lanes], &cos[..lanes]);
        for first in (0..x.len()).step_by(lanes) {
            let x = &mut x[first..first + lanes];
            let r = &mut momentum[first..first + lanes];
            let g = &grad[first..first + lanes];
            for l in 0..lanes {
                let kicked = r[l] + half[l] * (g[l] + normal * x[l]);
                let at = x[l];
                x[l] = cos[l] * at + sin[l] * kicked;
                r[l] = cos[l] * kicked - normal * sin[l] * at;
            }
        }
    }

    fn end_kernel, end_kernel_fn = <V>(normal: f64, x: &[f64], momentum: &mut [f64], grad: &[f64], half: &[f64], squares: &mut [f64]) {
        let lanes = half.len();
        let squares = &mut squares[..lanes];
        for first in (0..x.len()).step_by(lanes) {
            let x = &x[first..first + lanes];
            let r = &mut momentum[first..first + lanes];
            let g = &grad[first..first + lanes];
            for l in 0..lanes {
                let kicked = r[l] + half[l] * (g[l] + normal * x[l]);
                r[l] = kicked;
                squares[l] += kicked * kicked;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Positions, momenta and energies after steps in a normal whose gradient is `−curvature x`.
    fn follow(integrator: Integrator, curvature: f64, size: f64, steps: usize) -> [f64; 3] {
        let (mut x, mut r) = (vec![1.0, 1.0], vec![0.5, 0.5]);
        let slope = |x: &[f64]| x.iter().map(|x| -curvature * x).collect::<Vec<f64>>();
        let mut energy = 0.0;
        for _ in 0..steps {
            let grad = slope(&x);
            integrator.begin(&mut x, &mut r, &grad, &[size, 0.0]);
            let grad = slope(&x);
            let squares = integrator.end(&x, &mut r, &grad, &[size, 0.0]);
            energy = 0.5 * squares[0] + 0.5 * curvature * x[0] * x[0];
        }
        assert_eq!((x[1], r[1]), (1.0, 0.5), "a step of no size");
        [x[0], r[0], energy]
    }

    #[test]
    fn circles_are_exact_for_a_standard_normal_and_both_of_second_order_elsewhere() {
        let [x, r, energy] = follow(Integrator::Rotation, 1.0, 0.9, 7);
        let (sin, cos) = 6.3_f64.sin_cos();
        assert!((x - (cos + 0.5 * sin)).abs() < 1e-12);
        assert!((r - (0.5 * cos - sin)).abs() < 1e-12);
        assert!((energy - 0.625).abs() < 1e-12);
        for integrator in [Integrator::Leapfrog, Integrator::Rotation] {
            let curvature: f64 = 2.0;
            let exact = {
                let w = curvature.sqrt();
                w.cos() + 0.5 / w * w.sin()
            };
            let error = |size: f64| {
                let steps = (1.0 / size).round() as usize;
                follow(integrator, curvature, size, steps)[0] - exact
            };
            let order = (error(0.1) / error(0.05)).log2();
            assert!((order - 2.0).abs() < 0.05, "{integrator:?}: order {order}");
        }
    }

    #[test]
    fn a_way_back_ends_where_it_began() {
        for integrator in [Integrator::Leapfrog, Integrator::Rotation] {
            let (mut x, mut r) = (vec![0.7], vec![-0.4]);
            let slope = |x: &[f64]| vec![-x[0] - x[0].powi(3)];
            for turn in 0..2 {
                for _ in 0..5 {
                    let grad = slope(&x);
                    integrator.begin(&mut x, &mut r, &grad, &[0.3]);
                    let grad = slope(&x);
                    integrator.end(&x, &mut r, &grad, &[0.3]);
                }
                r[0] = -r[0];
                assert_eq!(turn == 1, (x[0] - 0.7).abs() < 1e-13);
            }
            assert!((r[0] + 0.4).abs() < 1e-13);
        }
    }
}
