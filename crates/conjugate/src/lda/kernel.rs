//! The inner loops of topic models, which run over topics in single precision.
//!
//! Rows of topics are padded to whole vectors. The padding is zero wherever it could affect a sum.

use super::powers::{Grid, Knots};
use jensen_math::simd::{F32x16, LANES32};
use jensen_math::{simd32_fn, vmath::single};

/// The value of E log β in the padding. Its exponential is 0 at every temperature that occurs.
const NOWHERE: f32 = -1e30;

/// Smallest normaliser of responsibilities. Smaller values, after rows were scaled by their largest elements, are not
/// representable accurately in single precision.
const TINY: f32 = 1e-30;

/// A topic is dropped if its factor t is below this share of the largest factor and its γ also satisfies [`UNUSED`].
const FAINT: f32 = 1e-9;

/// A topic is dropped only if γ exceeds α by less than this share of α. The topic's factor is then close to its limit.
const UNUSED: f32 = 1e-4;

pub(crate) const WIDTH: usize = LANES32;

pub(crate) fn padded(topics: usize) -> usize {
    topics.next_multiple_of(WIDTH)
}

/// Computes e^x. For x below −87, the result is 0, because e^x would be a subnormal number, which may slow down
/// multiplication.
#[inline(always)]
fn exp_or_zero<V: F32x16>(x: V) -> V {
    V::select(x.lt(V::splat(-87.0)), V::zero(), single::exp(x))
}

/// Computes the factors as [`weights`] does, but sets a factor to 0 if it is faint and γ is below `slack` times α.
/// Returns the number of positive factors.
#[inline(always)]
fn exponentials<V: F32x16>(
    gamma: &[f32],
    alpha: &[f32],
    slack: f32,
    inverse: f32,
    largest: f32,
    t: &mut [f32],
) -> f32 {
    let shift = single::digamma(V::splat(largest));
    let inverse = V::splat(inverse);
    let mut positive = V::splat(0.0);
    let chunks = gamma.chunks_exact(WIDTH).zip(alpha.chunks_exact(WIDTH));
    for ((g, a), t) in chunks.zip(t.chunks_exact_mut(WIDTH)) {
        // SAFETY: all chunks have sixteen numbers.
        unsafe {
            let g = V::load(g.as_ptr());
            let x = exp_or_zero((single::digamma(g) - shift) * inverse);
            let unused = V::load(a.as_ptr()) * V::splat(slack);
            let least = V::select(g.lt(unused), V::splat(FAINT), V::zero());
            let x = V::select(x.lt(least), V::zero(), x);
            positive = positive + V::select(V::zero().lt(x), V::splat(1.0), V::zero());
            x.store(t.as_mut_ptr());
        }
    }
    positive.sum()
}

simd32_fn! {
    /// Writes E log β_kv − m for one term, where m is the largest over topics, and returns m.
    ///
    /// λ_k is η + scale · mass_k. `psi_totals` contains ψ(Σ_v λ_kv), followed by huge numbers in the padding.
    pub(crate) fn log_row<V>(
        mass: &[f32],
        scale: f32,
        eta: f32,
        psi_totals: &[f32],
        out: &mut [f32],
    ) -> f32 {
        assert!(mass.len() == out.len() && psi_totals.len() == out.len() && out.len().is_multiple_of(WIDTH));
        let (scale, eta) = (V::splat(scale), V::splat(eta));
        let mut largest = V::splat(NOWHERE);
        for j in (0..out.len()).step_by(WIDTH) {
            // SAFETY: the slices have equal lengths, which are multiples of sixteen.
            unsafe {
                // Rounding may make a decayed mass slightly negative.
                let lambda = V::load(mass.as_ptr().add(j)).fma(scale, eta).max(V::splat(1e-12));
                let x = single::digamma(lambda) - V::load(psi_totals.as_ptr().add(j));
                largest = largest.max(x);
                x.store(out.as_mut_ptr().add(j));
            }
        }
        let largest = largest.largest();
        for j in (0..out.len()).step_by(WIDTH) {
            // SAFETY: `out` has a multiple of sixteen elements.
            unsafe {
                let x = V::load(out.as_ptr().add(j)) - V::splat(largest);
                x.max(V::splat(NOWHERE)).store(out.as_mut_ptr().add(j));
            }
        }
        largest
    }

    /// Writes E β_kv / m for one term, where m is the largest over topics, and returns log m.
    ///
    /// λ_k is η + scale · mass_k. `reciprocals` contains 1 / Σ_v λ_kv, followed by zeros in the padding.
    pub(crate) fn share_row<V>(
        mass: &[f32],
        scale: f32,
        eta: f32,
        reciprocals: &[f32],
        out: &mut [f32],
    ) -> f32 {
        assert!(mass.len() == out.len() && reciprocals.len() == out.len() && out.len().is_multiple_of(WIDTH));
        let (scale, eta) = (V::splat(scale), V::splat(eta));
        let mut largest = V::splat(f32::MIN_POSITIVE);
        for j in (0..out.len()).step_by(WIDTH) {
            // SAFETY: the slices have equal lengths, which are multiples of sixteen.
            unsafe {
                // Rounding may make a decayed mass slightly negative.
                let lambda = V::load(mass.as_ptr().add(j)).fma(scale, eta).max(V::splat(1e-12));
                let x = lambda * V::load(reciprocals.as_ptr().add(j));
                largest = largest.max(x);
                x.store(out.as_mut_ptr().add(j));
            }
        }
        let largest = largest.largest();
        let factor = V::splat(1.0 / largest);
        for j in (0..out.len()).step_by(WIDTH) {
            // SAFETY: `out` has a multiple of sixteen elements.
            unsafe {
                (V::load(out.as_ptr().add(j)) * factor).store(out.as_mut_ptr().add(j));
            }
        }
        largest.ln()
    }

    pub(crate) fn exp_scaled<V>(x: &[f32], power: f32, out: &mut [f32]) {
        assert!(x.len() == out.len() && out.len().is_multiple_of(WIDTH));
        for j in (0..out.len()).step_by(WIDTH) {
            // SAFETY: the slices have equal lengths, which are multiples of sixteen.
            unsafe {
                let y = exp_or_zero(V::load(x.as_ptr().add(j)) * V::splat(power));
                y.store(out.as_mut_ptr().add(j));
            }
        }
    }

    pub(crate) fn exp_in_place<V>(power: f32, x: &mut [f32]) {
        assert!(x.len().is_multiple_of(WIDTH));
        for j in (0..x.len()).step_by(WIDTH) {
            // SAFETY: the length is a multiple of sixteen.
            unsafe {
                let p = x.as_mut_ptr().add(j);
                exp_or_zero(V::load(p) * V::splat(power)).store(p);
            }
        }
    }

    /// Updates a word in collapsed inference by φ_k ∝ (γ_k − φ_k) B_k. The subtraction removes one token of the word
    /// from the counts γ. The function also updates γ for the new φ. The padding of B, φ and γ is 0.
    pub(crate) fn reassign<V>(row: &[f32], count: f32, phi: &mut [f32], gamma: &mut [f32]) {
        let stride = row.len();
        assert!(stride.is_multiple_of(WIDTH) && phi.len() == stride && gamma.len() == stride);
        // SAFETY: the slices have equal lengths, which are multiples of sixteen.
        unsafe {
            let (row, phi, gamma) = (row.as_ptr(), phi.as_mut_ptr(), gamma.as_mut_ptr());
            let less = V::splat(-count);
            let mut sum = V::zero();
            for j in (0..stride).step_by(WIDTH) {
                let (p, g) = (V::load(phi.add(j)), V::load(gamma.add(j)));
                // Rounding may make the difference slightly negative.
                let x = (g - p).max(V::zero()) * V::load(row.add(j));
                sum = sum + x;
                x.store(phi.add(j));
                p.fma(less, g).store(gamma.add(j));
            }
            let (scale, count) = (V::splat(1.0 / sum.sum().max(TINY)), V::splat(count));
            for j in (0..stride).step_by(WIDTH) {
                let x = V::load(phi.add(j)) * scale;
                x.store(phi.add(j));
                x.fma(count, V::load(gamma.add(j))).store(gamma.add(j));
            }
        }
    }

    pub(crate) fn follow<V>(y: &[f32], x: &mut [f32]) -> f32 {
        assert!(x.len() == y.len() && x.len().is_multiple_of(WIDTH));
        let mut sum = V::zero();
        for j in (0..x.len()).step_by(WIDTH) {
            // SAFETY: the slices have equal lengths, which are multiples of sixteen.
            unsafe {
                let y = V::load(y.as_ptr().add(j));
                sum = sum + (y - V::load(x.as_ptr().add(j))).abs();
                y.store(x.as_mut_ptr().add(j));
            }
        }
        sum.sum()
    }

    /// Makes one sweep over the words of a document: `norms[v] = Σ_k t_k B_vk` and `sums[k] = Σ_v (n_v / norms[v])
    /// B_vk`.
    ///
    /// The loop processes four words at a time. Their rows are then still in the first-level cache when they are used
    /// again.
    pub(crate) fn sweep<V>(rows: &[f32], counts: &[f32], t: &[f32], norms: &mut [f32], sums: &mut [f32]) {
        let stride = t.len();
        let words = counts.len();
        assert!(stride.is_multiple_of(WIDTH) && sums.len() == stride && norms.len() >= words);
        assert!(rows.len() >= words * stride);
        let zero = V::splat(0.0);
        // SAFETY: all offsets stay below words * stride in the rows and below stride elsewhere.
        unsafe {
            let (rows, t, sums) = (rows.as_ptr(), t.as_ptr(), sums.as_mut_ptr());
            for j in (0..stride).step_by(WIDTH) {
                zero.store(sums.add(j));
            }
            let mut v = 0;
            while v + 4 <= words {
                let r = [
                    rows.add(v * stride),
                    rows.add((v + 1) * stride),
                    rows.add((v + 2) * stride),
                    rows.add((v + 3) * stride),
                ];
                let (mut a, mut b) = ([zero; 4], [zero; 4]);
                let mut j = 0;
                while j + 2 * WIDTH <= stride {
                    let (t0, t1) = (V::load(t.add(j)), V::load(t.add(j + WIDTH)));
                    for i in 0..4 {
                        a[i] = V::load(r[i].add(j)).fma(t0, a[i]);
                        b[i] = V::load(r[i].add(j + WIDTH)).fma(t1, b[i]);
                    }
                    j += 2 * WIDTH;
                }
                if j < stride {
                    let t0 = V::load(t.add(j));
                    for i in 0..4 {
                        a[i] = V::load(r[i].add(j)).fma(t0, a[i]);
                    }
                }
                let mut w = [zero; 4];
                for i in 0..4 {
                    let norm = (a[i] + b[i]).sum().max(TINY);
                    norms[v + i] = norm;
                    w[i] = V::splat(counts[v + i] / norm);
                }
                for j in (0..stride).step_by(WIDTH) {
                    let mut sum = V::load(sums.add(j));
                    for i in 0..4 {
                        sum = V::load(r[i].add(j)).fma(w[i], sum);
                    }
                    sum.store(sums.add(j));
                }
                v += 4;
            }
            while v < words {
                let row = rows.add(v * stride);
                let mut a = zero;
                for j in (0..stride).step_by(WIDTH) {
                    a = V::load(row.add(j)).fma(V::load(t.add(j)), a);
                }
                let norm = a.sum().max(TINY);
                norms[v] = norm;
                let w = V::splat(counts[v] / norm);
                for j in (0..stride).step_by(WIDTH) {
                    V::load(row.add(j)).fma(w, V::load(sums.add(j))).store(sums.add(j));
                }
                v += 1;
            }
        }
    }

    /// Updates `γ = α + τ t ∘ sums`, and then updates t as [`weights`] does, except that dropped topics have t = 0.
    /// Returns the change of γ (as a sum of absolute values) and the number of positive t.
    pub(crate) fn update<V>(
        sums: &[f32],
        alpha: &[f32],
        power: f32,
        gamma: &mut [f32],
        t: &mut [f32],
    ) -> (f32, f32) {
        let stride = t.len();
        assert!(stride.is_multiple_of(WIDTH) && sums.len() == stride && gamma.len() == stride);
        assert!(alpha.len() == stride);
        let inverse = V::splat(power);
        let (mut moved, mut largest) = (V::splat(0.0), V::splat(0.0));
        for j in (0..stride).step_by(WIDTH) {
            // SAFETY: the slices have equal lengths, which are multiples of sixteen.
            unsafe {
                let share = V::load(t.as_ptr().add(j)) * V::load(sums.as_ptr().add(j));
                let g = share.fma(inverse, V::load(alpha.as_ptr().add(j)));
                moved = moved + (g - V::load(gamma.as_ptr().add(j))).abs();
                largest = largest.max(g);
                g.store(gamma.as_mut_ptr().add(j));
            }
        }
        let largest = largest.largest();
        let positive = exponentials::<V>(gamma, alpha, 1.0 + UNUSED, power, largest, t);
        (moved.sum(), positive)
    }

    /// Computes `t = exp(τ (ψ(γ) − ψ(largest γ)))`. This scaling makes the largest t equal to 1. It does not change
    /// results, because all topics have the same factor.
    pub(crate) fn weights<V>(gamma: &[f32], inverse: f32, t: &mut [f32]) {
        assert!(gamma.len() == t.len() && t.len().is_multiple_of(WIDTH));
        let mut largest = V::splat(0.0);
        for j in (0..t.len()).step_by(WIDTH) {
            // SAFETY: the slices have equal lengths, which are multiples of sixteen.
            largest = largest.max(unsafe { V::load(gamma.as_ptr().add(j)) });
        }
        exponentials::<V>(gamma, gamma, 0.0, inverse, largest.largest(), t);
    }

    /// Computes the weighted expected counts `out[v, k] = (τ n_v / norm_v) t_k B_vk` with recomputed norms.
    pub(crate) fn expected_counts<V>(
        rows: &[f32],
        counts: &[f32],
        inverse: f32,
        t: &[f32],
        norms: &mut [f32],
        out: &mut [f32],
    ) {
        let stride = t.len();
        let words = counts.len();
        assert!(stride.is_multiple_of(WIDTH) && norms.len() >= words);
        assert!(rows.len() >= words * stride && out.len() >= words * stride);
        for v in 0..words {
            // SAFETY: offsets stay below words * stride.
            unsafe {
                let row = rows.as_ptr().add(v * stride);
                let out = out.as_mut_ptr().add(v * stride);
                let mut a = V::splat(0.0);
                for j in (0..stride).step_by(WIDTH) {
                    let x = V::load(row.add(j)) * V::load(t.as_ptr().add(j));
                    a = a + x;
                    x.store(out.add(j));
                }
                let norm = a.sum().max(TINY);
                norms[v] = norm;
                let w = V::splat(inverse * counts[v] / norm);
                for j in (0..stride).step_by(WIDTH) {
                    (V::load(out.add(j)) * w).store(out.add(j));
                }
            }
        }
    }

    /// Returns `Σ_v n_v Σ_k φ_vk (log B_vk + log t_k)` with φ_vk = t_k B_vk / Σ_k t_k B_vk. The sum over rows is
    /// computed in double precision.
    pub(crate) fn energy<V>(
        rows: &[f32],
        logs: &[f32],
        counts: &[f32],
        t: &[f32],
        log_t: &[f32],
    ) -> f64 {
        let stride = t.len();
        let words = counts.len();
        assert!(stride.is_multiple_of(WIDTH) && log_t.len() == stride);
        assert!(rows.len() >= words * stride && logs.len() >= words * stride);
        let mut total = 0.0;
        for (v, &count) in counts.iter().enumerate() {
            let (mut norm, mut sum) = (V::splat(0.0), V::splat(0.0));
            for j in (0..stride).step_by(WIDTH) {
                // SAFETY: offsets stay below words * stride.
                unsafe {
                    let p = V::load(rows.as_ptr().add(v * stride + j)) * V::load(t.as_ptr().add(j));
                    let l = V::load(logs.as_ptr().add(v * stride + j)) + V::load(log_t.as_ptr().add(j));
                    // A share of zero has no influence, even if its logarithm is infinite.
                    let l = V::select(V::zero().lt(p), l, V::zero());
                    norm = norm + p;
                    sum = p.fma(l, sum);
                }
            }
            total += f64::from(count) * f64::from(sum.sum()) / f64::from(norm.sum().max(TINY));
        }
        total
    }

    pub(crate) fn weighed_sum<V>(s: &[f32], x: &[f32], m: f32) -> f32 {
        assert!(s.len() == x.len() && x.len().is_multiple_of(WIDTH));
        let mut sum = V::splat(0.0);
        for j in (0..x.len()).step_by(WIDTH) {
            // SAFETY: the slices have equal lengths, which are multiples of sixteen.
            unsafe {
                let x = V::load(x.as_ptr().add(j)) + V::splat(m);
                sum = V::load(s.as_ptr().add(j)).fma(x, sum);
            }
        }
        sum.sum()
    }

    pub(crate) fn logarithms<V>(x: &[f32], out: &mut [f32]) {
        assert!(x.len() == out.len() && out.len().is_multiple_of(WIDTH));
        for j in (0..out.len()).step_by(WIDTH) {
            // SAFETY: the slices have equal lengths, which are multiples of sixteen.
            unsafe {
                let (x, least) = (V::load(x.as_ptr().add(j)), V::splat(f32::MIN_POSITIVE));
                let y = V::select(x.lt(least), V::splat(NOWHERE), single::log(x.max(least)));
                y.store(out.as_mut_ptr().add(j));
            }
        }
    }

    pub(crate) fn multiply<V>(x: &[f32], out: &mut [f32]) {
        assert!(x.len() == out.len() && out.len().is_multiple_of(WIDTH));
        for j in (0..out.len()).step_by(WIDTH) {
            // SAFETY: the slices have equal lengths, which are multiples of sixteen.
            unsafe {
                (V::load(out.as_ptr().add(j)) * V::load(x.as_ptr().add(j))).store(out.as_mut_ptr().add(j));
            }
        }
    }

    pub(crate) fn add_scaled<V>(a: f32, x: &[f32], out: &mut [f32]) {
        assert!(x.len() == out.len() && out.len().is_multiple_of(WIDTH));
        for j in (0..out.len()).step_by(WIDTH) {
            // SAFETY: the slices have equal lengths, which are multiples of sixteen.
            unsafe {
                let y = V::load(x.as_ptr().add(j)).fma(V::splat(a), V::load(out.as_ptr().add(j)));
                y.store(out.as_mut_ptr().add(j));
            }
        }
    }

    /// Adds `g[m] · (Γ(x + s_m) / Γ(x) − base[m])` to `out[m]`. This is the contribution of one topic to the tempered
    /// normaliser of a document, minus the topic's contribution for a document without words.
    pub(crate) fn add_gamma_ratios<V>(x: f32, s: &[f32], base: &[f32], g: &[f32], out: &mut [f32]) {
        assert!(s.len() == out.len() && g.len() == out.len() && base.len() == out.len());
        assert!(out.len().is_multiple_of(WIDTH));
        for j in (0..out.len()).step_by(WIDTH) {
            // SAFETY: the slices have equal lengths, which are multiples of sixteen.
            unsafe {
                let ratio = single::gamma_ratio(V::splat(x), V::load(s.as_ptr().add(j)));
                let more = ratio - V::load(base.as_ptr().add(j));
                let y = more.fma(V::load(g.as_ptr().add(j)), V::load(out.as_ptr().add(j)));
                y.store(out.as_mut_ptr().add(j));
            }
        }
    }

    /// Computes `out[m] += Σ_columns powers[topic, m] · (Γ(γ + s_m) / Γ(γ) − base[m])` over the columns with γ above
    /// `from`. The result is the tempered normaliser of a document minus the normaliser of a document without words.
    /// The ratios are interpolated between `knots`. If the list `active` of topics is empty, the columns are all topics
    /// in order.
    pub(crate) fn add_normalisers<V>(
        gamma: &[f32],
        active: &[u32],
        from: f32,
        knots: &Knots,
        base: &[f32; WIDTH],
        powers: &[f32],
        out: &mut [f32; WIDTH],
    ) {
        // SAFETY: the arrays have sixteen numbers each, and so does every row of the powers.
        unsafe {
            let base = V::load(base.as_ptr());
            let mut sum = V::load(out.as_ptr());
            for (column, &gamma) in gamma.iter().enumerate() {
                if gamma > from {
                    let topic = active.get(column).map_or(column, |&k| k as usize);
                    let row = &powers[topic * WIDTH..(topic + 1) * WIDTH];
                    let (below, above, share) = knots.around(gamma);
                    let (below, above) = (V::load(below.as_ptr()), V::load(above.as_ptr()));
                    let more = (above - below).fma(V::splat(share), below - base);
                    sum = more.fma(V::load(row.as_ptr()), sum);
                }
            }
            sum.store(out.as_mut_ptr());
        }
    }

    /// Returns the mean of s over a grid, where s has the distribution r(s) ∝ exp(s · energy − tokens · c(s)). At the
    /// nodes, c is log(powers / ratios), where `ratios` = Γ(total + s) / Γ(total) is interpolated between `knots`. `r`
    /// is scratch memory.
    pub(crate) fn mean_inverse<V>(
        powers: &[f32; WIDTH],
        total: f32,
        knots: &Knots,
        grid: &Grid,
        energy: f32,
        tokens: f32,
        r: &mut [f32],
    ) -> f32 {
        let stride = grid.inverse.len();
        assert!(stride.is_multiple_of(WIDTH) && r.len() == stride);
        assert!(grid.log_prior.len() == stride && grid.weights.len() == WIDTH * stride);
        let mut c = [0.0f32; WIDTH];
        // SAFETY: arrays and rows of knots have sixteen numbers, and offsets are below the lengths checked above.
        unsafe {
            let (below, above, share) = knots.around(total);
            let (below, above) = (V::load(below.as_ptr()), V::load(above.as_ptr()));
            let ratios = (above - below).fma(V::splat(share), below);
            let powers = V::load(powers.as_ptr()).max(V::splat(f32::MIN_POSITIVE));
            (single::log(powers) - single::log(ratios)).store(c.as_mut_ptr());
            let (energy, tokens) = (V::splat(energy), V::splat(-tokens));
            let mut largest = V::splat(NOWHERE);
            for j in (0..stride).step_by(WIDTH) {
                let mut sum = V::splat(0.0);
                for (node, &c) in c.iter().enumerate() {
                    let w = V::load(grid.weights.as_ptr().add(node * stride + j));
                    sum = w.fma(V::splat(c), sum);
                }
                let s = V::load(grid.inverse.as_ptr().add(j));
                let x = s.fma(energy, sum.fma(tokens, V::load(grid.log_prior.as_ptr().add(j))));
                largest = largest.max(x);
                x.store(r.as_mut_ptr().add(j));
            }
            let largest = V::splat(largest.largest());
            let (mut all, mut first) = (V::splat(0.0), V::splat(0.0));
            for j in (0..stride).step_by(WIDTH) {
                let w = exp_or_zero(V::load(r.as_ptr().add(j)) - largest);
                all = all + w;
                first = w.fma(V::load(grid.inverse.as_ptr().add(j)), first);
            }
            first.sum() / all.sum()
        }
    }

    /// Adds `n log(1 − φ)` to `out`. If each of n tokens belongs to a topic with probability φ, this is the log
    /// probability that none of them does.
    pub(crate) fn add_log_absent<V>(phi: &[f32], count: f32, out: &mut [f32]) {
        assert!(phi.len() == out.len() && out.len().is_multiple_of(WIDTH));
        for j in (0..out.len()).step_by(WIDTH) {
            // SAFETY: the slices have equal lengths, which are multiples of sixteen.
            unsafe {
                let rest = V::splat(1.0) - V::load(phi.as_ptr().add(j));
                let log = single::log(rest.max(V::splat(TINY)));
                log.fma(V::splat(count), V::load(out.as_ptr().add(j))).store(out.as_mut_ptr().add(j));
            }
        }
    }

    /// Computes `out = E[ψ(α + n) − ψ(α)]` for a count n with mean γ − α. On entry, exp(out) is the probability that
    /// n = 0. The expectation is P(n > 0) times the difference at the mean of a non-zero count.
    pub(crate) fn collapsed_excess<V>(gamma: &[f32], alpha: &[f32], out: &mut [f32]) {
        assert!(gamma.len() == out.len() && alpha.len() == out.len() && out.len().is_multiple_of(WIDTH));
        for j in (0..out.len()).step_by(WIDTH) {
            // SAFETY: the slices have equal lengths, which are multiples of sixteen.
            unsafe {
                let (g, a) = (V::load(gamma.as_ptr().add(j)), V::load(alpha.as_ptr().add(j)));
                let absent = exp_or_zero(V::load(out.as_ptr().add(j)));
                let mean = (g - a).max(V::zero());
                // Computing 1 − P(n = 0) loses the digits of small probabilities. A small probability is close to the
                // mean, and no probability exceeds the mean.
                let some = V::splat(1.0) - absent;
                let some = V::select(mean.lt(V::splat(1e-3)), mean, some);
                let some = some.max(V::splat(TINY));
                let more = mean / some;
                let excess = single::digamma(a + more) - single::digamma(a);
                (some * excess).max(V::zero()).store(out.as_mut_ptr().add(j));
            }
        }
    }

    pub(crate) fn digamma_excess<V>(gamma: &[f32], alpha: &[f32], out: &mut [f32]) {
        assert!(gamma.len() == out.len() && alpha.len() == out.len() && out.len().is_multiple_of(WIDTH));
        for j in (0..out.len()).step_by(WIDTH) {
            // SAFETY: the slices have equal lengths, which are multiples of sixteen.
            unsafe {
                let (g, a) = (V::load(gamma.as_ptr().add(j)), V::load(alpha.as_ptr().add(j)));
                let excess = single::digamma(g) - single::digamma(a);
                excess.max(V::zero()).store(out.as_mut_ptr().add(j));
            }
        }
    }

    pub(crate) fn digamma_difference<V>(a: f32, b: f32) -> f32 {
        let difference = single::digamma(V::splat(a)) - single::digamma(V::splat(b));
        difference.largest()
    }
}
