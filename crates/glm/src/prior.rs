//! Priors of the coefficients of a model.

use std::fmt::Debug;

use jensen_density::{Lanes, LanesMut};
use jensen_math::simd::Simd;

use jensen_math::constants::HALF_LOG_TWO_PI;

/// A twice differentiable log density on ℝᵈ, which is evaluated over lanes. Every method overwrites its output.
pub trait Prior: Debug + Sync {
    /// Returns the number of coordinates d.
    fn dim(&self) -> usize;
    /// Writes the log densities to `out`, in nats.
    fn value(&self, z: Lanes<'_>, out: &mut [f64]);
    /// Writes the log densities to `out`, and their gradients to `grad`.
    fn value_grad(&self, z: Lanes<'_>, out: &mut [f64], grad: LanesMut<'_>);
    /// Writes the products of the Hessians with `v` to `out`.
    fn hvp(&self, z: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>);
}

impl<P: Prior + ?Sized> Prior for Box<P> {
    fn dim(&self) -> usize {
        (**self).dim()
    }
    fn value(&self, z: Lanes<'_>, out: &mut [f64]) {
        (**self).value(z, out);
    }
    fn value_grad(&self, z: Lanes<'_>, out: &mut [f64], grad: LanesMut<'_>) {
        (**self).value_grad(z, out, grad);
    }
    fn hvp(&self, z: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>) {
        (**self).hvp(z, v, out);
    }
}

/// A prior that makes all coefficients independent and standard normal.
#[derive(Clone, Copy, Debug)]
pub struct StandardNormal(
    /// The number of coordinates d.
    pub usize,
);

/// Number of partial sums of squares. Rows are added to them in turn. The sum of a lane therefore depends only on the
/// lane's own numbers, and even a single lane fills whole vectors.
const STRANDS: usize = 8;

jensen_math::simd_fn! {
    /// Adds to each `strands[k]` the sum of the squares of `x` at the indices k, k + n, k + 2n and so on, where n is
    /// `strands.len()`.
    fn add_squares, add_squares_fn = <V>(x: &[f64], strands: &mut [f64]) {
        let _ = std::marker::PhantomData::<V>;
        for part in x.chunks(strands.len()) {
            for (s, x) in strands.iter_mut().zip(part) {
                *s += x * x;
            }
        }
    }

    fn negate, negate_fn = <V>(x: &[f64], out: &mut [f64]) {
        let _ = std::marker::PhantomData::<V>;
        for (out, x) in out.iter_mut().zip(x) {
            *out = -x;
        }
    }
}

impl Prior for StandardNormal {
    fn dim(&self) -> usize {
        self.0
    }

    fn value(&self, z: Lanes<'_>, out: &mut [f64]) {
        let lanes = z.lanes();
        let simd = Simd::detect();
        if lanes == 1 {
            let mut strands = [0.0; STRANDS];
            add_squares(simd, z.as_slice(), &mut strands);
            let sum: f64 = strands.iter().sum();
            out[0] = -(self.0 as f64) * HALF_LOG_TWO_PI - 0.5 * sum;
            return;
        }
        let mut strands = vec![0.0; STRANDS * lanes];
        add_squares(simd, z.as_slice(), &mut strands);
        for (l, out) in out.iter_mut().enumerate() {
            let sum: f64 = strands.iter().skip(l).step_by(lanes).sum();
            *out = -(self.0 as f64) * HALF_LOG_TWO_PI - 0.5 * sum;
        }
    }

    fn value_grad(&self, z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
        self.value(z, out);
        negate(Simd::detect(), z.as_slice(), grad.as_mut_slice());
    }

    fn hvp(&self, _: Lanes<'_>, v: Lanes<'_>, mut out: LanesMut<'_>) {
        negate(Simd::detect(), v.as_slice(), out.as_mut_slice());
    }
}

/// Groups of coefficients that share a mean and a scale. The coordinates are z = (m, s, β₁, …, β_G), where each part
/// has `width` coordinates. In every coordinate, `m, s ~ normal(0, 1)` and `β_g ~ normal(m, exp(s))`.
#[derive(Clone, Copy, Debug)]
pub struct CommonNormal {
    /// Number of coordinates in each group.
    pub width: usize,
    /// Number of groups.
    pub groups: usize,
}

impl CommonNormal {
    /// Returns the offset in z at which the coefficients of the groups begin.
    pub fn offset(&self) -> usize {
        2 * self.width
    }
}

impl Prior for CommonNormal {
    fn dim(&self) -> usize {
        (2 + self.groups) * self.width
    }

    fn value(&self, z: Lanes<'_>, out: &mut [f64]) {
        let (w, lanes) = (self.width, z.lanes());
        StandardNormal(2 * w).value(
            Lanes::new(&z.as_slice()[..2 * w * lanes], 2 * w, lanes),
            out,
        );
        let n = w * lanes;
        let (mean, log_sd) = (&z.as_slice()[..n], &z.as_slice()[n..2 * n]);
        let root: Vec<f64> = log_sd.iter().map(|s| (-s).exp()).collect();
        let mut squares = vec![0.0; n];
        let coefficients = &z.as_slice()[2 * n..];
        common_value(Simd::detect(), coefficients, mean, &root, &mut squares);
        let groups = self.groups as f64;
        for (q, s) in squares.chunks_exact(lanes).zip(log_sd.chunks_exact(lanes)) {
            for ((out, q), s) in out.iter_mut().zip(q).zip(s) {
                *out -= groups * (HALF_LOG_TWO_PI + s) + 0.5 * q;
            }
        }
    }

    fn value_grad(&self, z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
        self.value(z, out);
        let n = self.width * z.lanes();
        let (common, groups) = z.as_slice().split_at(2 * n);
        let (mean, log_sd) = common.split_at(n);
        let precision: Vec<f64> = log_sd.iter().map(|s| (-2.0 * s).exp()).collect();
        let (grad_common, grad_groups) = grad.as_mut_slice().split_at_mut(2 * n);
        let (grad_mean, grad_log) = grad_common.split_at_mut(n);
        for (g, m) in grad_mean.iter_mut().zip(mean) {
            *g = -m;
        }
        for (g, s) in grad_log.iter_mut().zip(log_sd) {
            *g = -s - self.groups as f64;
        }
        let common = [mean, &precision];
        common_grad(
            Simd::detect(),
            groups,
            common,
            grad_groups,
            [grad_mean, grad_log],
        );
    }

    fn hvp(&self, z: Lanes<'_>, v: Lanes<'_>, mut out: LanesMut<'_>) {
        let n = self.width * z.lanes();
        let (common, groups) = z.as_slice().split_at(2 * n);
        let (mean, log_sd) = common.split_at(n);
        let precision: Vec<f64> = log_sd.iter().map(|s| (-2.0 * s).exp()).collect();
        let (v_common, v_groups) = v.as_slice().split_at(2 * n);
        let (v_mean, v_log) = v_common.split_at(n);
        let (out_common, out_groups) = out.as_mut_slice().split_at_mut(2 * n);
        let (out_mean, out_log) = out_common.split_at_mut(n);
        for (o, v) in out_mean.iter_mut().zip(v_mean) {
            *o = -v;
        }
        for (o, v) in out_log.iter_mut().zip(v_log) {
            *o = -v;
        }
        let common = [mean, &precision, v_mean, v_log];
        common_hvp(
            Simd::detect(),
            groups,
            v_groups,
            common,
            out_groups,
            [out_mean, out_log],
        );
    }
}

jensen_math::simd_fn! {
    fn common_value, common_value_fn = <V>(groups: &[f64], mean: &[f64], root: &[f64], squares: &mut [f64]) {
        let _ = std::marker::PhantomData::<V>;
        for group in groups.chunks_exact(squares.len()) {
            for (((q, x), m), r) in squares.iter_mut().zip(group).zip(mean).zip(root) {
                let t = (x - m) * r;
                *q += t * t;
            }
        }
    }

    /// Writes the gradient with respect to the groups to `out`, and adds to `sums` what the groups contribute to the
    /// gradients with respect to the mean and the log scale.
    fn common_grad, common_grad_fn = <V>(groups: &[f64], common: [&[f64]; 2], out: &mut [f64], sums: [&mut [f64]; 2]) {
        let _ = std::marker::PhantomData::<V>;
        let [mean, precision] = common;
        let [grad_mean, grad_log] = sums;
        let n = mean.len();
        let (precision, grad_mean, grad_log) = (&precision[..n], &mut grad_mean[..n], &mut grad_log[..n]);
        for (x, g) in groups.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
            for i in 0..n {
                let t = x[i] - mean[i];
                let step = -t * precision[i];
                g[i] = step;
                grad_mean[i] -= step;
                grad_log[i] -= step * t;
            }
        }
    }

    /// Writes the Hessian-vector products of the groups to `out`, and adds to `sums` what the groups contribute to the
    /// products of the mean and the log scale.
    fn common_hvp, common_hvp_fn = <V>(groups: &[f64], v: &[f64], common: [&[f64]; 4], out: &mut [f64], sums: [&mut [f64]; 2]) {
        let _ = std::marker::PhantomData::<V>;
        let [mean, precision, v_mean, v_log] = common;
        let [out_mean, out_log] = sums;
        let n = mean.len();
        let (precision, v_mean, v_log) = (&precision[..n], &v_mean[..n], &v_log[..n]);
        let (out_mean, out_log) = (&mut out_mean[..n], &mut out_log[..n]);
        let rows = groups.chunks_exact(n).zip(v.chunks_exact(n)).zip(out.chunks_exact_mut(n));
        for ((x, v), o) in rows {
            for i in 0..n {
                // With t = x − m and p = e^{−2s}, these are derivatives of −t p and of the corresponding gradients with
                // respect to m and s.
                let t = x[i] - mean[i];
                let dt = v[i] - v_mean[i];
                let p = precision[i];
                let d = p * (2.0 * t * v_log[i] - dt);
                o[i] = d;
                out_mean[i] -= d;
                out_log[i] -= d * t - t * p * dt;
            }
        }
    }
}
