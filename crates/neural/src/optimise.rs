//! Optimisers in single precision, which process the gradient in tiles.
//!
//! Black-box fits have rules with the same names in double precision over a single vector. Networks have millions of
//! weights, so memory traffic dominates the cost of a step. The optimisers here therefore process each tile of the
//! gradient while it is in the cache, apply the decay in the same pass, and store moments in single precision.

use jensen_math::simd::{F32x16, LANES32, Simd};
use serde::{Deserialize, Serialize};

/// A rule that computes a step uphill from a gradient.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "rule")]
pub enum Optimiser {
    /// Gradient ascent, `w += step · g`.
    Sgd {
        /// The step size.
        step: f32,
    },
    /// Adagrad, `h += g²; w += step · g / (√h + epsilon)` (Duchi et al. 2010), which the paper uses.
    Adagrad {
        /// The step size. The paper tries 0.01, 0.02 and 0.1.
        step: f32,
        /// A small positive number that prevents division by zero.
        epsilon: f32,
        /// The initial value of h for every weight.
        #[serde(default)]
        start: f32,
    },
    /// Adam, which uses running means of the gradient and of its square, with bias correction (Kingma and Ba 2015).
    Adam {
        /// The step size.
        step: f32,
        /// The decay rate of the running mean of the gradient.
        beta1: f32,
        /// The decay rate of the running mean of the squared gradient.
        beta2: f32,
        /// A small positive number that prevents division by zero.
        epsilon: f32,
    },
}

impl Default for Optimiser {
    fn default() -> Self {
        Self::adagrad(0.02)
    }
}

impl Optimiser {
    /// Returns Adagrad with its default epsilon.
    pub fn adagrad(step: f32) -> Self {
        Self::Adagrad {
            step,
            epsilon: 1e-8,
            start: 0.1,
        }
    }

    /// Returns Adam with its default constants.
    pub fn adam(step: f32) -> Self {
        Self::Adam {
            step,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
        }
    }

    /// Returns the name of the rule: `sgd`, `adagrad` or `adam`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sgd { .. } => "sgd",
            Self::Adagrad { .. } => "adagrad",
            Self::Adam { .. } => "adam",
        }
    }

    pub(crate) fn start(self) -> f32 {
        match self {
            Self::Adagrad { start, .. } => start,
            Self::Sgd { .. } | Self::Adam { .. } => 0.0,
        }
    }

    /// Returns the number of values that the optimiser stores per weight.
    pub(crate) fn slots(self) -> usize {
        match self {
            Self::Sgd { .. } => 0,
            Self::Adagrad { .. } => 1,
            Self::Adam { .. } => 2,
        }
    }
}

pub(crate) struct Moving<'a> {
    pub weights: &'a mut [f32],
    pub first: &'a mut [f32],
    pub second: &'a mut [f32],
}

/// Moves weights uphill along `scale · gradient − decay · weights`. `count` is the number of this update. The first
/// update has the number 1.
pub(crate) fn ascend(
    simd: Simd,
    optimiser: Optimiser,
    moving: &mut Moving<'_>,
    gradient: &[f32],
    scale: f32,
    decay: f32,
    count: u64,
) {
    let w = &mut *moving.weights;
    assert_eq!(w.len(), gradient.len(), "a gradient for every weight");
    match optimiser {
        Optimiser::Sgd { step } => sgd(simd, w, gradient, scale, decay, step),
        Optimiser::Adagrad { step, epsilon, .. } => {
            adagrad(simd, w, moving.first, gradient, scale, decay, step, epsilon);
        }
        Optimiser::Adam {
            step,
            beta1,
            beta2,
            epsilon,
        } => {
            let count = count.min(i32::MAX as u64) as i32;
            let unbias = |beta: f32| (1.0 - f64::from(beta).powi(count)) as f32;
            let rate = step * unbias(beta2).sqrt() / unbias(beta1);
            let epsilon = epsilon * unbias(beta2).sqrt();
            let (m, v) = (&mut *moving.first, &mut *moving.second);
            adam(
                simd, w, m, v, gradient, scale, decay, rate, beta1, beta2, epsilon,
            );
        }
    }
}

/// Reads `n ≤ 16` numbers.
#[inline(always)]
unsafe fn get<S: F32x16>(p: *const f32, n: usize) -> S {
    // SAFETY: the kernels below pass chunks of slices, in which `n` numbers remain.
    unsafe {
        if n == LANES32 {
            S::load(p)
        } else {
            S::load_part(p, n)
        }
    }
}

/// Writes `n ≤ 16` numbers.
#[inline(always)]
unsafe fn put<S: F32x16>(x: S, p: *mut f32, n: usize) {
    // SAFETY: the kernels below pass chunks of exclusively borrowed slices, in which `n` numbers remain.
    unsafe {
        if n == LANES32 {
            x.store(p);
        } else {
            x.store_part(p, n);
        }
    }
}

jensen_math::simd_fn! {
    fn sgd, sgd_fn = <V>(w: &mut [f32], g: &[f32], scale: f32, decay: f32, step: f32) {
        let (scale, decay, step) = (V::Single::splat(scale), V::Single::splat(-decay), V::Single::splat(step));
        for (w, g) in w.chunks_mut(LANES32).zip(g.chunks(LANES32)) {
            let n = w.len();
            // SAFETY: the chunks have that many elements.
            unsafe {
                let (x, g): (V::Single, V::Single) = (get(w.as_ptr(), n), get(g.as_ptr(), n));
                let g = g.fma(scale, decay * x);
                put(step.fma(g, x), w.as_mut_ptr(), n);
            }
        }
    }

    fn adagrad, adagrad_fn = <V>(
        w: &mut [f32], h: &mut [f32], g: &[f32], scale: f32, decay: f32, step: f32, epsilon: f32,
    ) {
        let (scale, decay) = (V::Single::splat(scale), V::Single::splat(-decay));
        let (step, epsilon) = (V::Single::splat(step), V::Single::splat(epsilon));
        let len = w.len().min(h.len()).min(g.len());
        let (w, h, g) = (w.as_mut_ptr(), h.as_mut_ptr(), g.as_ptr());
        let mut i = 0;
        while i < len {
            let n = (len - i).min(LANES32);
            // SAFETY: the slices have that many elements.
            unsafe {
                let (w, h) = (w.add(i), h.add(i));
                let (x, sum): (V::Single, V::Single) = (get(w, n), get(h, n));
                let g: V::Single = get(g.add(i), n);
                let g = g.fma(scale, decay * x);
                let sum = g.fma(g, sum);
                put(step * g / (sum.sqrt() + epsilon) + x, w, n);
                put(sum, h, n);
            }
            i += n;
        }
    }

    fn adam, adam_fn = <V>(
        w: &mut [f32], m: &mut [f32], v: &mut [f32], g: &[f32],
        scale: f32, decay: f32, rate: f32, beta1: f32, beta2: f32, epsilon: f32,
    ) {
        let (scale, decay) = (V::Single::splat(scale), V::Single::splat(-decay));
        let (rate, epsilon) = (V::Single::splat(rate), V::Single::splat(epsilon));
        let (b1, c1) = (V::Single::splat(beta1), V::Single::splat(1.0 - beta1));
        let (b2, c2) = (V::Single::splat(beta2), V::Single::splat(1.0 - beta2));
        let slots = m.chunks_mut(LANES32).zip(v.chunks_mut(LANES32));
        let chunks = w.chunks_mut(LANES32).zip(slots).zip(g.chunks(LANES32));
        for ((w, (m, v)), g) in chunks {
            let n = w.len();
            // SAFETY: the chunks have that many elements.
            unsafe {
                let (x, g): (V::Single, V::Single) = (get(w.as_ptr(), n), get(g.as_ptr(), n));
                let g = g.fma(scale, decay * x);
                let mean = b1.fma(get(m.as_ptr(), n), c1 * g);
                let square = b2.fma(get(v.as_ptr(), n), c2 * (g * g));
                put(rate * mean / (square.sqrt() + epsilon) + x, w.as_mut_ptr(), n);
                put(mean, m.as_mut_ptr(), n);
                put(square, v.as_mut_ptr(), n);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adagrad_begins_with_steps_that_follow_the_gradient() {
        let rule = Optimiser::adagrad(0.02);
        for simd in Simd::available() {
            let gradient: Vec<f32> = (0..21).map(|i| (i as f32 - 10.0) * 0.03).collect();
            let (mut weights, mut sums) = (vec![0.5; 21], vec![rule.start(); 21]);
            for count in 1..=2 {
                let mut moving = Moving {
                    weights: &mut weights,
                    first: &mut sums,
                    second: &mut [],
                };
                ascend(simd, rule, &mut moving, &gradient, 0.5, 0.1, count);
            }
            for (i, g) in gradient.iter().enumerate() {
                let (mut w, mut h) = (0.5_f32, 0.1_f32);
                for _ in 0..2 {
                    let g = 0.5 * g - 0.1 * w;
                    h += g * g;
                    w += 0.02 * g / (h.sqrt() + 1e-8);
                }
                assert!(
                    (weights[i] - w).abs() < 1e-6 && (sums[i] - h).abs() < 1e-6,
                    "{simd}"
                );
            }
        }
    }
}
