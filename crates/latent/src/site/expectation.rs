//! Expectations without a closed form, reached through the natural-gradient fixed point `α = ∂f/∂m`, `λ = 2 ∂f/∂v`.
//!
//! For an exact expectation `f(m, v) = E g(η)`, η ~ N(m, v), with g = −log p: `∂f/∂m = E g′` and `∂f/∂v = ½ E g″` (Bonnet,
//! Price), by Gauss-Hermite quadrature.

use std::fmt::Debug;

use jensen_math::quadrature::Rule;
use jensen_math::simd::{F64x8, LANES, Simd};
use jensen_math::simd_fn;
use rayon::prelude::*;

use super::convex::Value;

/// −log p of one observation as a smooth function of η.
pub(crate) trait Potential: Clone + Debug + Send + Sync {
    /// The function with its first two derivatives, at eight η.
    fn at<V: F64x8>(&self, eta: V) -> (V, V, V);
}

/// The potentials of all observations, of whatever kind.
pub(crate) trait Potentials: Debug + Send + Sync {
    /// The expectation of each with its derivatives by m and v; all slices have the same length.
    fn values(&self, nodes: &Nodes, m: &[f64], v: &[f64]) -> Vec<Value>;

    /// The same for potential `n` alone.
    fn value(&self, nodes: &Nodes, n: usize, m: f64, v: f64) -> Value;
}

/// Gauss-Hermite nodes and weights, filled up with weights of 0 to whole vectors.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    nodes: Vec<f64>,
    weights: Vec<f64>,
}

impl Nodes {
    pub(crate) fn new(rule: &Rule) -> Self {
        let len = rule.nodes.len().next_multiple_of(LANES);
        let padded = |x: &[f64]| {
            let mut out = x.to_vec();
            out.resize(len, 0.0);
            out
        };
        Self {
            nodes: padded(&rule.nodes),
            weights: padded(&rule.weights),
        }
    }

    /// `E (g, g′, g″)` for η ~ N(m, sd²), where `g` gives all three at eight η.
    #[inline(always)]
    fn mean<V: F64x8>(&self, m: f64, sd: f64, g: impl Fn(V) -> (V, V, V)) -> (f64, f64, f64) {
        let (m, sd) = (V::splat(m), V::splat(sd));
        let mut sums = (V::zero(), V::zero(), V::zero());
        for (z, w) in (self.nodes.chunks_exact(LANES)).zip(self.weights.chunks_exact(LANES)) {
            // SAFETY: both chunks hold eight numbers.
            let (z, w) = unsafe { (V::load(z.as_ptr()), V::load(w.as_ptr())) };
            let (g, g1, g2) = g(sd.fma(z, m));
            sums = (w.fma(g, sums.0), w.fma(g1, sums.1), w.fma(g2, sums.2));
        }
        (sums.0.sum(), sums.1.sum(), sums.2.sum())
    }

    /// E h(η) for η ~ N(m, v).
    pub(crate) fn expectation(&self, m: f64, v: f64, h: impl Fn(f64) -> f64) -> f64 {
        let sd = v.max(0.0).sqrt();
        self.nodes
            .iter()
            .zip(&self.weights)
            .map(|(z, w)| w * h(m + sd * z))
            .sum()
    }
}

simd_fn! {
    /// The expectations of potentials and their derivatives by m and v; all slices have the same length.
    fn expectations, expectations_fn = <V, P: Potential>(
        nodes: &Nodes, sites: &[P], m: &[f64], v: &[f64], out: &mut [Value]
    ) {
        for i in 0..sites.len() {
            let sd = v[i].max(0.0).sqrt();
            let (f, by_mean, curvature) =
                nodes.mean::<V>(m[i], sd, #[inline(always)] |eta| sites[i].at(eta));
            out[i] = Value { f, by_mean, by_variance: 0.5 * curvature };
        }
    }
}

/// Sites of one task: each costs many times an element of other passes.
const FEW: usize = 256;

impl<P: Potential> Potentials for Vec<P> {
    fn values(&self, nodes: &Nodes, m: &[f64], v: &[f64]) -> Vec<Value> {
        let simd = Simd::detect();
        let mut out = vec![Value::default(); self.len()];
        out.par_chunks_mut(FEW).enumerate().for_each(|(c, out)| {
            let range = c * FEW..c * FEW + out.len();
            let (m, v) = (&m[range.clone()], &v[range.clone()]);
            expectations(simd, nodes, &self[range], m, v, out);
        });
        out
    }

    fn value(&self, nodes: &Nodes, n: usize, m: f64, v: f64) -> Value {
        let mut out = [Value::default()];
        expectations(Simd::detect(), nodes, &self[n..=n], &[m], &[v], &mut out);
        out[0]
    }
}
