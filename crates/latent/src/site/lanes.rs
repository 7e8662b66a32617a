//! The functions of `convex` for runs of logistic sites, evaluated for eight sites at a time.
//!
//! Eight adjacent logistic sites with the same bound share a vector. Other sites and the remainder are evaluated one by
//! one with the functions of [`Convex`], which have the same formulas.

use jensen_math::simd::{F64x8, LANES};
use jensen_math::simd_fn;
use jensen_math::vmath::{exp, expm1, inv_logit, log, log1p, log1p_exp};

use super::convex::{Convex, Curve, LogisticBound, Value};

struct Eight<V> {
    bound: LogisticBound,
    y: V,
    n: V,
    shift: V,
    c: [f64; LANES],
}

#[inline(always)]
fn eight<V: F64x8>(sites: &[Convex]) -> Option<Eight<V>> {
    let Convex::Logistic { bound: first, .. } = *sites.first()? else {
        return None;
    };
    let [mut ys, mut ns, mut shifts, mut cs] = [[0.0; LANES]; 4];
    for (i, site) in sites.iter().enumerate() {
        match *site {
            Convex::Logistic {
                bound,
                y,
                n,
                shift,
                c,
            } if bound == first => {
                ys[i] = y;
                ns[i] = n;
                shifts[i] = shift;
                cs[i] = c;
            }
            _ => return None,
        }
    }
    Some(Eight {
        bound: first,
        y: V::from_array(ys),
        n: V::from_array(ns),
        shift: V::from_array(shifts),
        c: cs,
    })
}

/// Finds the root z of `z = x + (1 − 2σ(z)) v/2`, as in `convex`.
#[inline(always)]
fn tilted_logit<V: F64x8>(x: V, v: V) -> V {
    let (one, half, quarter) = (V::splat(1.0), V::splat(0.5), V::splat(0.25));
    let target = x.abs();
    let mut z = target / (one + quarter * v);
    for _ in 0..60 {
        let e = exp(-z);
        let tanh = (one - e) / (one + e);
        let step = (target - z - half * v * tanh) / (one + quarter * v * (one - tanh * tanh));
        z = z + step;
        if V::all(step.abs().le(V::splat(1e-8) * (one + z))) {
            break;
        }
    }
    z.copysign(x)
}

impl<V: F64x8> Eight<V> {
    /// Computes `f` without its constant, and the derivatives of `f` with respect to m and v.
    #[inline(always)]
    fn value(&self, m: V, v: V) -> (V, V, V) {
        let half = V::splat(0.5);
        let x = m - self.shift;
        let (value, p, by_variance) = match self.bound {
            LogisticBound::Log => {
                let x = half.fma(v, x);
                let p = inv_logit(x);
                (log1p_exp(x), p, half * p)
            }
            LogisticBound::Tilted => {
                let z = tilted_logit(x, v);
                let p = inv_logit(z);
                (half * p * p * v + log1p_exp(z), p, half * p * inv_logit(-z))
            }
            LogisticBound::Bohning => {
                let eighth = V::splat(0.125);
                (eighth.fma(v, log1p_exp(x)), inv_logit(x), eighth)
            }
        };
        (
            self.n * value - self.y * x,
            self.n * p - self.y,
            self.n * by_variance,
        )
    }

    #[inline(always)]
    fn shares(&self, alpha: V) -> (V, V) {
        (
            (alpha + self.y) / self.n,
            (self.n - self.y - alpha) / self.n,
        )
    }

    #[inline(always)]
    fn gap(&self, alpha: V, m: V, v: V) -> V {
        let (zero, half) = (V::zero(), V::splat(0.5));
        let (p, q) = self.shares(alpha);
        let (log_p, log_q) = (log(p), log(q));
        let x = m - self.shift;
        let gap = match self.bound {
            LogisticBound::Tilted => {
                let entropy = alpha * self.shift + self.n * (p * log_p + q * log_q);
                let (value, _, _) = self.value(m, v);
                value + entropy - alpha * m - half * self.n * p * q * v
            }
            LogisticBound::Log | LogisticBound::Bohning => {
                let raised = match self.bound {
                    LogisticBound::Log => half.fma(v, x),
                    _ => x,
                };
                let delta = raised - (log_p - log_q);
                let below = delta.le(zero);
                // The computation starts from the end at which the exponential is small, which avoids cancellation.
                let near = V::select(below, p, q);
                let toward = -delta.abs();
                self.n * (log1p(near * expm1(toward)) - near * toward)
            }
        };
        // A NaN lane must remain NaN.
        V::select(gap.lt(zero), zero, gap)
    }
}

#[inline(always)]
fn load<V: F64x8>(x: &[f64], at: usize) -> V {
    let mut out = [0.0; LANES];
    out.copy_from_slice(&x[at..at + LANES]);
    V::from_array(out)
}

simd_fn! {
    /// Computes f and its derivatives at (m, v) for each site. All slices have the same length.
    pub(crate) fn values, values_fn = <V>(sites: &[Convex], m: &[f64], v: &[f64], out: &mut [Value]) {
        let mut at = 0;
        while at < sites.len() {
            let end = (at + LANES).min(sites.len());
            match eight::<V>(&sites[at..end]) {
                Some(group) if end - at == LANES => {
                    let (f, by_mean, by_variance) = group.value(load(m, at), load(v, at));
                    let (f, by_mean, by_variance) =
                        (f.to_array(), by_mean.to_array(), by_variance.to_array());
                    for i in 0..LANES {
                        out[at + i] = Value {
                            f: f[i] + group.c[i],
                            by_mean: by_mean[i],
                            by_variance: by_variance[i],
                        };
                    }
                }
                _ => {
                    for i in at..end {
                        out[i] = sites[i].value(m[i], v[i]);
                    }
                }
            }
            at = end;
        }
    }

    /// Computes λ, φ and their derivatives at α for each site. All slices have the same length.
    pub(crate) fn curves, curves_fn = <V>(sites: &[Convex], alpha: &[f64], out: &mut [Curve]) {
        let mut at = 0;
        while at < sites.len() {
            let end = (at + LANES).min(sites.len());
            match eight::<V>(&sites[at..end]) {
                Some(group) if end - at == LANES => {
                    let x: V = load(alpha, at);
                    let (p, q) = group.shares(x);
                    let (log_p, log_q) = (log(p), log(q));
                    let spread = group.n * p * q;
                    let (lambda, lambda1, lambda2) = match group.bound {
                        LogisticBound::Log => (group.n * p, V::splat(1.0), V::zero()),
                        LogisticBound::Tilted => (spread, q - p, V::splat(-2.0) / group.n),
                        LogisticBound::Bohning => {
                            (V::splat(0.25) * group.n, V::zero(), V::zero())
                        }
                    };
                    let phi = x * group.shift + group.n * (p * log_p + q * log_q);
                    let phi1 = group.shift + log_p - log_q;
                    let phi2 = V::splat(1.0) / spread;
                    let [lambda, lambda1, lambda2, phi, phi1, phi2] =
                        [lambda, lambda1, lambda2, phi, phi1, phi2].map(V::to_array);
                    for i in 0..LANES {
                        out[at + i] = Curve {
                            lambda: lambda[i],
                            lambda1: lambda1[i],
                            lambda2: lambda2[i],
                            phi: phi[i] - group.c[i],
                            phi1: phi1[i],
                            phi2: phi2[i],
                        };
                    }
                }
                _ => {
                    for i in at..end {
                        out[i] = sites[i].curve(alpha[i]);
                    }
                }
            }
            at = end;
        }
    }

    /// Sums the sites' contributions to the duality gap. All slices have the same length.
    pub(crate) fn gap, gap_fn = <V>(sites: &[Convex], alpha: &[f64], m: &[f64], v: &[f64]) -> f64 {
        let (mut total, mut rest, mut at) = (V::zero(), 0.0, 0);
        while at < sites.len() {
            let end = (at + LANES).min(sites.len());
            match eight::<V>(&sites[at..end]) {
                Some(group) if end - at == LANES => {
                    total = total + group.gap(load(alpha, at), load(m, at), load(v, at));
                }
                _ => {
                    for i in at..end {
                        rest += sites[i].gap(alpha[i], m[i], v[i]);
                    }
                }
            }
            at = end;
        }
        total.sum() + rest
    }
}

#[cfg(test)]
mod tests {
    use jensen_math::simd::Simd;

    use super::*;

    /// Returns runs of sites with the same bound and with several bounds. Some of them contain sites of other kinds.
    fn stretches() -> Vec<Vec<Convex>> {
        let site = |bound, i: usize| Convex::Logistic {
            bound,
            y: (i % 3) as f64,
            n: 2.0 + (i % 4) as f64,
            shift: 0.1 * i as f64 - 0.5,
            c: 0.3 * i as f64,
        };
        let bounds = [
            LogisticBound::Log,
            LogisticBound::Tilted,
            LogisticBound::Bohning,
        ];
        let mut out: Vec<Vec<Convex>> = (bounds.iter())
            .map(|bound| (0..21).map(|i| site(*bound, i)).collect())
            .collect();
        let mut mixed: Vec<Convex> = (0..24).map(|i| site(bounds[i / 8], i)).collect();
        mixed[3] = Convex::Quadratic {
            a: 0.7,
            b: 0.2,
            c: 0.1,
        };
        out.push(mixed);
        out
    }

    #[test]
    fn lanes_agree_with_single_sites_on_every_level() {
        for sites in stretches() {
            let n = sites.len();
            let m: Vec<f64> = (0..n).map(|i| 3.0 * (i as f64).sin()).collect();
            let v: Vec<f64> = (0..n)
                .map(|i| 0.01 + (i as f64 * 0.7).cos().powi(2) * 5.0)
                .collect();
            let alpha: Vec<f64> = (sites.iter().enumerate())
                .map(|(i, s)| s.maximiser(m[i] + 0.5, v[i]))
                .collect();
            for simd in Simd::available() {
                let mut found = vec![Value::default(); n];
                values(simd, &sites, &m, &v, &mut found);
                let mut computed = vec![sites[0].curve(alpha[0]); n];
                curves(simd, &sites, &alpha, &mut computed);
                let mut total = 0.0;
                for i in 0..n {
                    let one = sites[i].value(m[i], v[i]);
                    let curve = sites[i].curve(alpha[i]);
                    total += sites[i].gap(alpha[i], m[i], v[i]);
                    for (a, b) in [
                        (found[i].f, one.f),
                        (found[i].by_mean, one.by_mean),
                        (found[i].by_variance, one.by_variance),
                        (computed[i].lambda, curve.lambda),
                        (computed[i].lambda1, curve.lambda1),
                        (computed[i].lambda2, curve.lambda2),
                        (computed[i].phi, curve.phi),
                        (computed[i].phi1, curve.phi1),
                        (computed[i].phi2, curve.phi2),
                    ] {
                        assert!(
                            (a - b).abs() <= 1e-13 * (1.0 + b.abs()),
                            "{:?}: {a} {b}",
                            sites[i]
                        );
                    }
                }
                let sum = gap(simd, &sites, &alpha, &m, &v);
                assert!((sum - total).abs() < 1e-12 * (1.0 + total), "{sum} {total}");
            }
        }
    }

    #[test]
    fn a_lane_that_is_not_a_number_is_not_hidden() {
        let sites = vec![
            Convex::Logistic {
                bound: LogisticBound::Log,
                y: 1.0,
                n: 1.0,
                shift: 0.0,
                c: 0.0
            };
            LANES
        ];
        let mut m = vec![0.2; LANES];
        m[5] = f64::NAN;
        for simd in Simd::available() {
            assert!(gap(simd, &sites, &[-0.4; LANES], &m, &[1.0; LANES]).is_nan());
        }
    }
}
