//! Steps of positions and momenta. Each step reads its inputs only once.
//!
//! Each step moves all coordinates independently between two half kicks of the momenta. Straight moves with kicks by
//! the gradient are leapfrog steps. For a standard normal in d coordinates, the energy error of leapfrog steps requires
//! step sizes proportional to `d^(−1/4)`. Alternatively, positions and momenta move along circles, which are the exact
//! trajectories for a standard normal, and kicks use the gradient minus the gradient of the normal. Only the non-normal
//! part of the density then causes errors, regardless of the number of coordinates (Beskos, Pinski, Sanz-Serna and
//! Stuart, *Hybrid Monte Carlo on Hilbert spaces*, Stochastic Processes and their Applications 121, 2011; Shahbaba,
//! Lan, Johnson and Neal, *Split Hamiltonian Monte Carlo*, Statistics and Computing 24, 2014). In long tails, circles
//! are worse than straight moves, because the kicks must cancel the inward pull of the circles. Coordinates that are
//! nearly normal therefore move along circles. The few coordinates on which all others depend are usually not normal,
//! and move straight.

use jensen_math::simd::Simd;

use super::target::Particles;

/// A coordinate moves along circles if its gradient minus the gradient of a standard normal has at most this variance.
/// The variance is at least a half for the logarithm of a scale, and a few hundredths for the linear predictor of
/// Poisson counts or of a regression.
const NEARLY_NORMAL: f64 = 0.1;

pub(super) fn nearly_normal(particles: &Particles) -> Vec<bool> {
    let lanes = particles.lanes();
    let rows = particles.x.chunks(lanes).zip(particles.grad.chunks(lanes));
    let near = rows.map(|(x, g)| {
        let beyond: Vec<f64> = x.iter().zip(g).map(|(x, g)| x + g).collect();
        let mean = beyond.iter().sum::<f64>() / lanes as f64;
        let squares = beyond.iter().map(|b| (b - mean) * (b - mean));
        squares.sum::<f64>() <= NEARLY_NORMAL * lanes as f64
    });
    near.collect()
}

/// Applies half a kick to the momenta at the positions x, and then moves positions and momenta by one step. Step sizes
/// differ between lanes.
pub(super) fn begin(
    circles: &[bool],
    x: &mut [f64],
    momentum: &mut [f64],
    grad: &[f64],
    sizes: &[f64],
) {
    let half: Vec<f64> = sizes.iter().map(|h| 0.5 * h).collect();
    let (sin, cos): (Vec<f64>, Vec<f64>) = sizes.iter().map(|h| h.sin_cos()).unzip();
    let along = [(&sin[..], &cos[..]), (sizes, &vec![1.0; sizes.len()])];
    begin_kernel(Simd::detect(), circles, x, momentum, grad, &half, along);
}

/// Applies the other half of the kick at the end of the step, and returns the squared lengths of the momenta.
pub(super) fn end(
    circles: &[bool],
    x: &[f64],
    momentum: &mut [f64],
    grad: &[f64],
    sizes: &[f64],
) -> Vec<f64> {
    let half: Vec<f64> = sizes.iter().map(|h| 0.5 * h).collect();
    let mut squares = vec![0.0; sizes.len()];
    end_kernel(
        Simd::detect(),
        circles,
        x,
        momentum,
        grad,
        &half,
        &mut squares,
    );
    squares
}

jensen_math::simd_fn! {
    fn begin_kernel, begin_kernel_fn = <V>(circles: &[bool], x: &mut [f64], momentum: &mut [f64], grad: &[f64], half: &[f64], along: [(&[f64], &[f64]); 2]) {
        let lanes = half.len();
        for (i, circle) in circles.iter().enumerate() {
            let first = i * lanes;
            let x = &mut x[first..first + lanes];
            let r = &mut momentum[first..first + lanes];
            let g = &grad[first..first + lanes];
            let (normal, (sin, cos)) = match circle {
                true => (1.0, along[0]),
                false => (0.0, along[1]),
            };
            let (sin, cos) = (&sin[..lanes], &cos[..lanes]);
            for l in 0..lanes {
                let kicked = r[l] + half[l] * (g[l] + normal * x[l]);
                let at = x[l];
                x[l] = cos[l] * at + sin[l] * kicked;
                r[l] = cos[l] * kicked - normal * sin[l] * at;
            }
        }
    }

    fn end_kernel, end_kernel_fn = <V>(circles: &[bool], x: &[f64], momentum: &mut [f64], grad: &[f64], half: &[f64], squares: &mut [f64]) {
        let lanes = half.len();
        let squares = &mut squares[..lanes];
        for (i, circle) in circles.iter().enumerate() {
            let first = i * lanes;
            let x = &x[first..first + lanes];
            let r = &mut momentum[first..first + lanes];
            let g = &grad[first..first + lanes];
            let normal = if *circle { 1.0 } else { 0.0 };
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

    fn follow(circle: bool, curvature: f64, size: f64, steps: usize) -> [f64; 3] {
        let (mut x, mut r) = (vec![1.0, 1.0], vec![0.5, 0.5]);
        let slope = |x: &[f64]| x.iter().map(|x| -curvature * x).collect::<Vec<f64>>();
        let mut energy = 0.0;
        for _ in 0..steps {
            let grad = slope(&x);
            begin(&[circle], &mut x, &mut r, &grad, &[size, 0.0]);
            let grad = slope(&x);
            let squares = end(&[circle], &x, &mut r, &grad, &[size, 0.0]);
            energy = 0.5 * squares[0] + 0.5 * curvature * x[0] * x[0];
        }
        assert_eq!((x[1], r[1]), (1.0, 0.5), "a step of no size");
        [x[0], r[0], energy]
    }

    #[test]
    fn circles_are_exact_for_a_standard_normal_and_both_of_second_order_elsewhere() {
        let [x, r, energy] = follow(true, 1.0, 0.9, 7);
        let (sin, cos) = 6.3_f64.sin_cos();
        assert!((x - (cos + 0.5 * sin)).abs() < 1e-12);
        assert!((r - (0.5 * cos - sin)).abs() < 1e-12);
        assert!((energy - 0.625).abs() < 1e-12);
        for circle in [false, true] {
            let w = 2f64.sqrt();
            let exact = w.cos() + 0.5 / w * w.sin();
            let error = |size: f64| {
                let steps = (1.0 / size).round() as usize;
                follow(circle, 2.0, size, steps)[0] - exact
            };
            let order = (error(0.1) / error(0.05)).log2();
            assert!((order - 2.0).abs() < 0.05, "{circle}: order {order}");
        }
    }

    #[test]
    fn a_way_back_ends_where_it_began() {
        let circles = [false, true];
        let (mut x, mut r) = (vec![0.7, 0.2], vec![-0.4, 1.1]);
        let slope = |x: &[f64]| {
            let cube = (x[0] + x[1]).powi(3);
            vec![-x[0] - cube, -x[1] - cube]
        };
        for attempt in 0..2 {
            for _ in 0..5 {
                let grad = slope(&x);
                begin(&circles, &mut x, &mut r, &grad, &[0.3]);
                let grad = slope(&x);
                end(&circles, &x, &mut r, &grad, &[0.3]);
            }
            r.iter_mut().for_each(|r| *r = -*r);
            assert_eq!(
                attempt == 1,
                (x[0] - 0.7).abs() < 1e-13 && (x[1] - 0.2).abs() < 1e-13
            );
        }
        assert!((r[0] + 0.4).abs() < 1e-13 && (r[1] - 1.1).abs() < 1e-13);
    }

    #[test]
    fn long_tails_are_not_nearly_normal() {
        // The two densities are a normal with variance 1.2, and the logarithm of an exponential variable in units of
        // its standard deviation.
        let quantile = |l: usize| (l as f64 + 0.5) / 256.0;
        let normal = |l| 1.2f64.sqrt() * jensen_math::special::inv_phi(quantile(l));
        let scale = std::f64::consts::PI / 6f64.sqrt();
        let log = |l: usize| (-(-quantile(l)).ln_1p()).ln();
        let x: Vec<f64> = (0..256)
            .map(normal)
            .chain((0..256).map(|l| log(l) / scale))
            .collect();
        let of_normal = x[..256].iter().map(|x| -x / 1.2);
        let grad = of_normal.chain((0..256).map(|l| scale * (1.0 - log(l).exp())));
        let particles = Particles {
            grad: grad.collect(),
            log_p: vec![0.0; 256],
            x,
        };
        assert_eq!(nearly_normal(&particles), [true, false]);
    }
}
