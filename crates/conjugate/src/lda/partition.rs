//! log C(T) of latent Dirichlet allocation.
//!
//! The complete data of a token are its topic and its term, so that with N tokens in each of D documents
//!
//! ```text
//! C(T) = E_β [ ( E_θ [ (Σ_k θ_k^s h_k(β))^N ] )^D ],   h_k = Σ_v β_kv^s,   s = 1/T.
//! ```
//!
//! Supplement B.1 of Mandt et al. (2016) sums the assignments out first, Σ_v (Σ_k θ_k β_kv)^s; their updates (B.2) temper
//! the complete data, and this is the normaliser that belongs to those.
//!
//! Simple Monte Carlo fails here: the powers N and N D make the average the work of draws too rare to occur, and a
//! hundred draws are short by several nats a token. But a Dirichlet average of a power of power sums is a coefficient of
//! a power series,
//!
//! ```text
//! E[(Σ_j p_j^s)^n] = n! Γ(J a) / Γ(J a + s n) · [x^n] g(x)^J,   g(x) = Σ_m Γ(a + s m) / (Γ(a) m!) x^m,
//! ```
//!
//! for J categories with parameter a each, and the coefficient is a probability: tilted by x, g is the generating
//! function of a count, and the J-fold sum of such counts must be n.
//!
//! Summed over assignments, C(T) = Σ_z W(z) Π_k M(n_k(z)): W(z) is the tempered weight of the documents' proportions,
//! M(n) = E[(Σ_v β_v^s)^n] the moment of a topic with n tokens, and n_k(z) the tokens of topic k. log M is convex, so that
//! tokens crowd into few topics as heat grows, and an average that takes them to be spread evenly is too small. The same
//! convexity bounds the sum: with tangents of log M at any counts n̂_k, of slopes λ_k,
//!
//! ```text
//! log C ≥ Σ_k (log M(n̂_k) − λ_k n̂_k) + D log E_θ[(Σ_k e^{λ_k} θ_k^s)^N].
//! ```
//!
//! The best n̂ are the counts that documents have under the weights e^λ, which is where the sum concentrates: what the
//! bound misses is the spread about them, a logarithm for each topic beside a sum over tokens. [`log_partition`] maximises it
//! over patterns of m topics in use with one count and the others with another.

use jensen_math::{rng, special};
use rayon::prelude::*;

use crate::draws::log_dirichlet;
use crate::engine::Partition;

/// The sizes and priors that log C depends on.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// K.
    pub topics: usize,
    /// V.
    pub terms: usize,
    /// Dirichlet parameter of topic proportions.
    pub alpha: f64,
    /// Dirichlet parameter of a topic's word probabilities.
    pub eta: f64,
    /// D.
    pub documents: f64,
    /// N, the mean number of tokens of a document.
    pub tokens: f64,
}

/// The largest bound of the module's text, over patterns of topics, and as `lower` Jensen's bound with the averages inside
/// the powers, N D log E[Σ_k θ_k^s h_k]. In nats.
///
/// Cost: some thirty saddle points for each temperature, of a thousand summands each.
pub fn log_partition(prior: &Sizes, inverse: &[f64]) -> Partition {
    let each = inverse.par_iter().map(|&s| {
        let first = log_mean(prior.topics, prior.alpha, s) + log_mean(prior.terms, prior.eta, s);
        (
            best_pattern(prior, s),
            prior.tokens * prior.documents * first,
        )
    });
    let (log_c, lower) = each.unzip();
    Partition { log_c, lower }
}

/// Steps towards the best counts of a pattern; a step that gains nothing ends them.
const STEPS: usize = 20;

/// The largest bound over patterns of topics, in nats.
fn best_pattern(prior: &Sizes, s: f64) -> f64 {
    if s == 1.0 {
        return 0.0;
    }
    let bound = |used: usize| confined(prior, used, s);
    let mut used = 1;
    let mut best = (bound(1), 1);
    while used < prior.topics {
        used = (used + used.div_ceil(2)).min(prior.topics);
        let value = bound(used);
        if value > best.0 {
            best = (value, used);
        }
    }
    // Between its neighbours among those tried, by smaller and smaller steps.
    let mut step = best.1 / 4;
    while step > 0 {
        for near in [
            best.1.saturating_sub(step).max(1),
            (best.1 + step).min(prior.topics),
        ] {
            let value = bound(near);
            if value > best.0 {
                best = (value, near);
            }
        }
        step /= 2;
    }
    let (mut value, used) = best;
    let rest = prior.topics - used;
    if rest == 0 {
        return value;
    }
    let mut counts = [prior.tokens * prior.documents / used as f64, 0.0];
    for _ in 0..STEPS {
        let found;
        (found, counts) = loosened(prior, [used, rest], counts, s);
        if found <= value {
            break;
        }
        value = found;
    }
    value
}

/// The bound where all tokens are in `used` topics, evenly.
fn confined(prior: &Sizes, used: usize, s: f64) -> f64 {
    let documents = Power::new(prior.topics, prior.alpha, prior.tokens, s);
    let (theta, _) = documents.moment(&[(used, 0.0)]);
    let tokens = prior.tokens * prior.documents / used as f64;
    prior.documents * theta + used as f64 * log_moment(prior.terms, prior.eta, tokens, s)
}

/// The bound at these counts of two kinds of topics, so many of each, and the counts that documents have under its weights.
fn loosened(prior: &Sizes, topics: [usize; 2], counts: [f64; 2], s: f64) -> (f64, [f64; 2]) {
    let lines = counts.map(|count| tangent(prior.terms, prior.eta, count, s));
    let groups = [(topics[0], lines[0].1), (topics[1], lines[1].1)];
    let documents = Power::new(prior.topics, prior.alpha, prior.tokens, s);
    let (theta, expected) = documents.moment(&groups);
    let words: f64 = (0..2)
        .map(|g| topics[g] as f64 * (lines[g].0 - lines[g].1 * counts[g]))
        .sum();
    let next = [0, 1].map(|g| prior.documents * expected[g]);
    (prior.documents * theta + words, next)
}

/// A line below log M of a topic that touches it near a count: its height there, and its slope.
fn tangent(terms: usize, eta: f64, count: f64, s: f64) -> (f64, f64) {
    let at = |n: f64| log_moment(terms, eta, n, s);
    if count < SINGLE as f64 {
        // log M of whole numbers is convex: the line through two neighbours is below all others.
        let (below, above) = (at(count.floor()), at(count.floor() + 1.0));
        let slope = above - below;
        return (below + slope * (count - count.floor()), slope);
    }
    let step = SLOPE * count;
    (
        at(count),
        (at(count + step) - at(count - step)) / (2.0 * step),
    )
}

/// The relative step of a central difference of a function that is nearly linear: its curvature beyond is 1e-6 of the slope.
const SLOPE: f64 = 1e-3;

const DRAWS: rng::Purpose = rng::Purpose::new("conjugate").fold("lda partition");

/// log C(T) by simple Monte Carlo, as the paper has it, in the log domain: `draws` draws of β, and for each as many of θ,
/// which all documents share. In nats; `lower` is the mean over draws of c, the logarithm inside both averages.
///
/// It is what the comparison of the module's text is with, and no more: both averages are of powers so high that the
/// largest draw decides them. Cost: the draws times K V powers, and their square times K.
pub fn log_partition_by_draws(
    prior: &Sizes,
    inverse: &[f64],
    draws: usize,
    seed: u64,
) -> Partition {
    let (k, v) = (prior.topics, prior.terms);
    let mut log_theta = vec![0.0; draws * k];
    for (j, row) in log_theta.chunks_exact_mut(k).enumerate() {
        let mut stream = rng::Stream::new(seed, DRAWS, 0, j as u64);
        log_dirichlet(&vec![prior.alpha; k], &mut stream, row);
    }
    // Rows over the inverse temperatures: log h_k of every draw.
    let of_draw = |r: usize| -> Vec<Vec<f64>> {
        let mut rows = vec![vec![0.0; k]; inverse.len()];
        let mut log_beta = vec![0.0; v];
        let parameters = vec![prior.eta; v];
        let mut stream = rng::Stream::new(seed, DRAWS, 1, r as u64);
        for topic in 0..k {
            log_dirichlet(&parameters, &mut stream, &mut log_beta);
            for (row, s) in rows.iter_mut().zip(inverse) {
                let powers: Vec<f64> = log_beta.iter().map(|l| s * l).collect();
                row[topic] = special::log_sum_exp_slice(&powers);
            }
        }
        rows
    };
    // c of every draw, a row a draw.
    let conditional: Vec<Vec<[f64; 2]>> = (0..draws)
        .into_par_iter()
        .map(|r| {
            let rows = of_draw(r);
            let pairs = rows.iter().zip(inverse);
            pairs
                .map(|(log_h, s)| {
                    let tokens = log_theta.chunks_exact(k).map(|theta| {
                        let terms: Vec<f64> =
                            theta.iter().zip(log_h).map(|(t, h)| s * t + h).collect();
                        prior.tokens * special::log_sum_exp_slice(&terms)
                    });
                    let of_document: Vec<f64> = tokens.collect();
                    let mean = of_document.iter().sum::<f64>() / draws as f64;
                    [
                        prior.documents * log_mean_exp(&of_document),
                        prior.documents * mean,
                    ]
                })
                .collect()
        })
        .collect();
    let column =
        |m: usize, i: usize| -> Vec<f64> { conditional.iter().map(|row| row[m][i]).collect() };
    let mean = |x: Vec<f64>| x.iter().sum::<f64>() / x.len() as f64;
    Partition {
        log_c: (0..inverse.len())
            .map(|m| log_mean_exp(&column(m, 0)))
            .collect(),
        lower: (0..inverse.len()).map(|m| mean(column(m, 1))).collect(),
    }
}

/// log of the mean of exponentials.
fn log_mean_exp(x: &[f64]) -> f64 {
    special::log_sum_exp_slice(x) - (x.len() as f64).ln()
}

/// log E[Σ_j p_j^s] for p from a symmetric Dirichlet.
fn log_mean(categories: usize, a: f64, s: f64) -> f64 {
    if s == 1.0 {
        return 0.0;
    }
    let j = categories as f64;
    j.ln() + special::lgamma(a + s) - special::lgamma(a) + special::lgamma(a * j)
        - special::lgamma(a * j + s)
}

/// Counts up to this are summed one by one; beyond, by the trapezoidal rule over geometric steps.
const SINGLE: usize = 256;
/// The ratio of those steps.
const RATIO: f64 = 1.02;
/// Summands with a smaller logarithm, relative to the largest, are left out.
const NEGLIGIBLE: f64 = -60.0;

/// The series g at given weights: counts m, and log Γ(a + s m) − log Γ(a) − log m! + log weight.
struct Series {
    counts: Vec<f64>,
    logs: Vec<f64>,
}

impl Series {
    fn new(a: f64, s: f64, largest: f64) -> Self {
        let mut counts: Vec<f64> = (0..=SINGLE).map(|m| m as f64).collect();
        let mut weights = vec![1.0; counts.len()];
        let mut last = SINGLE as f64;
        while last < largest {
            let next = (last * RATIO).ceil();
            let half = 0.5 * (next - last);
            // The sum over (last, next] as an integral of the piecewise linear summand, plus half of the ends' difference.
            *weights.last_mut().expect("a first count") += half - 0.5;
            counts.push(next);
            weights.push(half + 0.5);
            last = next;
        }
        let base = special::lgamma(a);
        let logs = counts
            .iter()
            .zip(&weights)
            .map(|(&m, &w): (&f64, &f64)| {
                special::lgamma(a + s * m) - base - special::lgamma(m + 1.0) + w.ln()
            })
            .collect();
        Self { counts, logs }
    }

    /// log g(e^y) with mean and variance of the tilted count.
    fn tilt(&self, y: f64) -> (f64, f64, f64) {
        let terms = || self.logs.iter().zip(&self.counts);
        let largest = terms()
            .map(|(l, m)| l + y * m)
            .fold(f64::NEG_INFINITY, f64::max);
        let (mut total, mut first, mut second) = (0.0, 0.0, 0.0);
        for (l, &m) in terms() {
            let log = l + y * m - largest;
            if log < NEGLIGIBLE {
                continue;
            }
            let w = log.exp();
            total += w;
            first += w * m;
            second += w * m * m;
        }
        let mean = first / total;
        (largest + total.ln(), mean, second / total - mean * mean)
    }
}

/// Moments of power sums of p from a symmetric Dirichlet: log E[(Σ_j w_j p_j^s)^n].
struct Power {
    series: Series,
    /// J a.
    prior: f64,
    s: f64,
    /// n, and the count that stands for it.
    n: f64,
    count: f64,
}

impl Power {
    fn new(categories: usize, a: f64, n: f64, s: f64) -> Self {
        // A fraction of a small n is scaled.
        let count = if n <= SINGLE as f64 {
            n.round().max(1.0)
        } else {
            n
        };
        Self {
            series: Series::new(a, s, 64.0 * count),
            prior: categories as f64 * a,
            s,
            n,
            count,
        }
    }

    /// The moment with groups of categories, each with a number and the logarithm of its weight (the others have the weight
    /// zero), and the expected count of a category of each group.
    ///
    /// The coefficient is found at the tilt whose mean count is n: exactly, by convolutions, for n up to [`SINGLE`], and
    /// by the normal density at its centre (the saddle point) beyond.
    fn moment(&self, groups: &[(usize, f64)]) -> (f64, Vec<f64>) {
        let (y, tilted) = self.tilted(groups);
        let sum = |part: fn(&(f64, f64, f64)) -> f64| -> f64 {
            let each = groups.iter().zip(&tilted);
            each.map(|((number, _), t)| *number as f64 * part(t)).sum()
        };
        let probability = if self.count <= SINGLE as f64 {
            self.probability(groups, y, &tilted).ln()
        } else {
            -0.5 * (2.0 * std::f64::consts::PI * sum(|t| t.2)).ln()
        };
        let coefficient = sum(|t| t.0) - y * self.count + probability;
        let whole = special::lgamma(self.count + 1.0) + special::lgamma(self.prior)
            - special::lgamma(self.prior + self.s * self.count)
            + coefficient;
        let scale = self.n / self.count;
        (whole * scale, tilted.iter().map(|t| t.1 * scale).collect())
    }

    /// The tilt y at which the mean of the sum of counts is n, and of each group log g, mean and variance there.
    ///
    /// Newton's method on the logarithm of the mean, which is nearly linear in y while counts are rare, between bounds
    /// that close in.
    fn tilted(&self, groups: &[(usize, f64)]) -> (f64, Vec<(f64, f64, f64)>) {
        let heaviest = groups.iter().map(|g| g.1).fold(f64::NEG_INFINITY, f64::max);
        let (mut low, mut high) = (-50.0 - heaviest, 50.0 - heaviest);
        let mut y = -heaviest;
        loop {
            let tilted: Vec<_> = groups.iter().map(|g| self.series.tilt(y + g.1)).collect();
            let sum = |part: fn(&(f64, f64, f64)) -> f64| -> f64 {
                let each = groups.iter().zip(&tilted);
                each.map(|((number, _), t)| *number as f64 * part(t)).sum()
            };
            let (mean, variance) = (sum(|t| t.1), sum(|t| t.2));
            if mean < self.count {
                low = y;
            } else {
                high = y;
            }
            let newton = y + (self.count.ln() - mean.ln()) * mean / variance;
            let next = if low < newton && newton < high {
                newton
            } else {
                0.5 * (low + high)
            };
            if (next - y).abs() <= 1e-12 * y.abs().max(1.0) {
                return (y, tilted);
            }
            y = next;
        }
    }

    /// The probability that the sum of tilted counts is n.
    fn probability(&self, groups: &[(usize, f64)], y: f64, tilted: &[(f64, f64, f64)]) -> f64 {
        let most = self.count as usize;
        let of_group = |((number, weight), t): (&(usize, f64), &(f64, f64, f64))| {
            let logs = self.series.logs[..=most].iter().enumerate();
            let single: Vec<f64> = logs
                .map(|(m, log)| (log + (y + weight) * m as f64 - t.0).exp())
                .collect();
            power_of(&single, *number)
        };
        let sums = groups.iter().zip(tilted).map(of_group);
        let whole = sums.reduce(|a, b| convolved(&a, &b));
        whole.map_or(0.0, |sum| sum[most])
    }
}

/// log E[(Σ_j p_j^s)^n] for p from a symmetric Dirichlet over `categories` with parameter `a`. It is 0 at s = 1.
pub(crate) fn log_moment(categories: usize, a: f64, n: f64, s: f64) -> f64 {
    if s == 1.0 || n <= 0.0 {
        return 0.0;
    }
    Power::new(categories, a, n, s)
        .moment(&[(categories, 0.0)])
        .0
}

/// The distribution of a sum of `times` independent counts, cut at the length of `single`.
fn power_of(single: &[f64], times: usize) -> Vec<f64> {
    let mut result: Option<Vec<f64>> = None;
    let mut square = single.to_vec();
    let mut left = times;
    loop {
        if left & 1 == 1 {
            result = Some(match result {
                None => square.clone(),
                Some(r) => convolved(&r, &square),
            });
        }
        left >>= 1;
        if left == 0 {
            break;
        }
        square = convolved(&square, &square);
    }
    result.expect("at least one category")
}

/// The distribution of the sum of two independent counts, cut at their length.
fn convolved(a: &[f64], b: &[f64]) -> Vec<f64> {
    (0..a.len())
        .map(|i| (0..=i).map(|m| a[m] * b[i - m]).sum())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Σ over all assignments of n tokens to J categories of E[Π p^s], by enumeration.
    fn enumerated(categories: usize, a: f64, n: u32, s: f64) -> f64 {
        let mut total = 0.0;
        for code in 0..(categories as u64).pow(n) {
            let mut counts = vec![0.0; categories];
            let mut rest = code;
            for _ in 0..n {
                counts[(rest % categories as u64) as usize] += 1.0;
                rest /= categories as u64;
            }
            let prior = a * categories as f64;
            let mut log = special::lgamma(prior) - special::lgamma(prior + s * f64::from(n));
            for c in counts {
                log += special::lgamma(a + s * c) - special::lgamma(a);
            }
            total += log.exp();
        }
        total.ln()
    }

    #[test]
    fn moments_equal_enumeration() {
        for (categories, a, n) in [(2, 1.0, 3), (3, 0.05, 6), (4, 2.5, 5), (1, 0.7, 4)] {
            for s in [1.0, 0.8, 0.5, 0.1] {
                let exact = enumerated(categories, a, n, s);
                let found = log_moment(categories, a, f64::from(n), s);
                assert!(
                    (found - exact).abs() < 1e-9,
                    "{categories} {a} {n} {s}: {found} {exact}"
                );
            }
        }
    }

    #[test]
    fn the_saddle_point_joins_the_convolution() {
        // Per token, on either side of the switch; and a coarse series beside a fine one.
        for (categories, a) in [(100, 0.01), (500, 0.02), (40, 1.0)] {
            for s in [0.9, 0.5, 0.1] {
                let below = log_moment(categories, a, 256.0, s) / 256.0;
                let above = log_moment(categories, a, 257.0, s) / 257.0;
                assert!(
                    (below - above).abs() < 3e-3,
                    "{categories} {a} {s}: {below} {above}"
                );
            }
        }
    }

    #[test]
    fn log_c_is_exact_for_one_topic_and_close_for_two() {
        let inverse = [1.0, 0.7, 0.4, 0.1];
        let one = Sizes {
            topics: 1,
            terms: 3,
            alpha: 1.0,
            eta: 0.5,
            documents: 2.0,
            tokens: 3.0,
        };
        let partition = log_partition(&one, &inverse);
        for (c, &s) in partition.log_c.iter().zip(&inverse) {
            assert!((c - enumerated(3, 0.5, 6, s)).abs() < 1e-9);
        }
        // Two topics over two terms with uniform priors: θ and β are uniform on segments.
        let two = Sizes {
            topics: 2,
            terms: 2,
            alpha: 1.0,
            eta: 1.0,
            documents: 4.0,
            tokens: 3.0,
        };
        let partition = log_partition(&two, &inverse);
        let steps = 60;
        let at = |i: usize| (i as f64 + 0.5) / f64::from(steps);
        for (i, &s) in inverse.iter().enumerate() {
            let power = |x: f64| x.powf(s) + (1.0 - x).powf(s);
            let mut outer = 0.0;
            for a in 0..steps as usize {
                for b in 0..steps as usize {
                    let (ha, hb) = (power(at(a)), power(at(b)));
                    let mut inner = 0.0;
                    for t in 0..steps as usize {
                        let x = at(t).powf(s) * ha + (1.0 - at(t)).powf(s) * hb;
                        inner += x.powf(two.tokens) / f64::from(steps);
                    }
                    outer += inner.powf(two.documents) / f64::from(steps * steps);
                }
            }
            let (c, exact) = (partition.log_c[i], outer.ln());
            assert!(
                (c - exact).abs() <= 0.02 * exact.abs() + 1e-3,
                "{s}: {c} {exact}"
            );
            assert!(partition.lower[i] <= exact + 1e-3);
        }
    }

    /// log C of two topics: the sum over their tokens, with the documents' weights by convolution.
    fn of_two_topics(prior: &Sizes, s: f64) -> f64 {
        let (n, d) = (prior.tokens as usize, prior.documents as usize);
        let choose = |j: usize| {
            let of = |m: usize| special::lgamma(m as f64 + 1.0);
            of(n) - of(j) - of(n - j)
        };
        let (a, total) = (prior.alpha, n as f64);
        let base = special::lgamma(2.0 * a) - special::lgamma(2.0 * a + s * total);
        let one: Vec<f64> = (0..=n)
            .map(|j| {
                let of = |m: usize| special::lgamma(a + s * m as f64) - special::lgamma(a);
                choose(j) + of(j) + of(n - j) + base
            })
            .collect();
        let scale = special::log_sum_exp_slice(&one);
        let mut single = vec![0.0; n * d + 1];
        for (p, log) in single.iter_mut().zip(&one) {
            *p = (log - scale).exp();
        }
        let terms: Vec<f64> = power_of(&single, d)
            .iter()
            .enumerate()
            .map(|(k, p)| {
                let of = |m: usize| log_moment(prior.terms, prior.eta, m as f64, s);
                p.ln() + d as f64 * scale + of(k) + of(n * d - k)
            })
            .collect();
        special::log_sum_exp_slice(&terms)
    }

    #[test]
    fn log_c_of_two_topics_is_bounded_to_a_few_nats() {
        for (terms, documents, tokens) in [(2, 3.0, 2.0), (40, 12.0, 10.0), (60, 30.0, 20.0)] {
            let prior = Sizes {
                topics: 2,
                terms,
                alpha: 0.5,
                eta: 0.5,
                documents,
                tokens,
            };
            let inverse = [0.95, 0.8, 0.5, 0.2];
            let bound = log_partition(&prior, &inverse).log_c;
            for (&s, &bound) in inverse.iter().zip(&bound) {
                let exact = of_two_topics(&prior, s);
                let slack = exact - bound;
                // A factor of two for the labels of a crowded topic, and the width of the sum, in nats.
                let most = 2f64.ln() + 0.5 * (documents * tokens).ln();
                assert!(
                    (-1e-9..most).contains(&slack),
                    "{terms} {documents} {tokens} {s}: {bound} {exact}"
                );
            }
        }
    }

    #[test]
    fn tokens_crowd_into_few_topics_of_a_large_corpus() {
        // Nats a token of K = 500 topics over 14 000 terms, 65 tokens a document and 460 a term, where tokens are spread
        // evenly over the topics that hold them: T, that number of topics, and the bound by the formula of its terms.
        let prior = Sizes {
            topics: 500,
            terms: 14_000,
            alpha: 0.002,
            eta: 0.002,
            documents: 14_000.0 * 460.0 / 65.0,
            tokens: 65.0,
        };
        let tokens = prior.documents * prior.tokens;
        for (t, least) in [(1.1, 0.683), (1.5, 3.194), (2.0, 5.048), (5.0, 8.599)] {
            let found = log_partition(&prior, &[1.0 / t]).log_c[0] / tokens;
            assert!((least..least + 0.2).contains(&found), "{t}: {found}");
        }
    }

    #[test]
    fn draws_find_a_small_log_c_and_miss_that_of_a_corpus() {
        let inverse = [1.0, 0.7, 0.4];
        let small = Sizes {
            topics: 3,
            terms: 4,
            alpha: 1.0,
            eta: 1.0,
            documents: 1.0,
            tokens: 2.0,
        };
        let (exact, drawn) = (
            log_partition(&small, &inverse),
            log_partition_by_draws(&small, &inverse, 2_000, 1),
        );
        assert!(drawn.log_c[0].abs() < 1e-12 && drawn.lower[0].abs() < 1e-12);
        for m in 1..3 {
            let (exact, drawn, lower) = (exact.log_c[m], drawn.log_c[m], drawn.lower[m]);
            // Topics share their words' counts, which the series takes to be even: hence not closer.
            assert!((drawn - exact).abs() < 0.02 * exact, "{exact} {drawn}");
            assert!(lower < drawn);
        }
        let corpus = Sizes {
            topics: 50,
            terms: 500,
            alpha: 0.02,
            eta: 0.02,
            documents: 1_000.0,
            tokens: 60.0,
        };
        let tokens = corpus.documents * corpus.tokens;
        let exact = log_partition(&corpus, &[0.5]).log_c[0] / tokens;
        let drawn = log_partition_by_draws(&corpus, &[0.5], 30, 1).log_c[0] / tokens;
        assert!(drawn < exact - 0.05, "{exact} {drawn}");
    }

    #[test]
    fn log_c_grows_with_temperature_at_the_size_of_a_corpus() {
        let prior = Sizes {
            topics: 500,
            terms: 8000,
            alpha: 0.002,
            eta: 0.002,
            documents: 1e5,
            tokens: 60.3,
        };
        let inverse: Vec<f64> = (0..30).map(|m| 10f64.powf(-f64::from(m) / 29.0)).collect();
        let partition = log_partition(&prior, &inverse);
        assert_eq!(partition.log_c[0], 0.0);
        assert!(partition.log_c.windows(2).all(|p| p[1] > p[0]));
        // It is convex in s, so that slopes steepen with temperature.
        let slope = |m: usize| {
            (partition.log_c[m + 1] - partition.log_c[m]) / (inverse[m] - inverse[m + 1])
        };
        assert!((0..28).all(|m| slope(m + 1) > slope(m)));
        for (c, lower) in partition.log_c.iter().zip(&partition.lower) {
            assert!(lower <= c);
        }
    }
}
