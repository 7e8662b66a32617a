//! Comparisons of log C with enumeration, quadrature, annealed importance sampling and draws.

use jensen_math::special;

use super::moments::{log_moment, power_of};
use super::*;

/// Enumerates all assignments of n tokens to J categories and computes the sum of E[Π p^s] over them.
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
    // Compares values per token on either side of the switch, and a coarse series with a fine one.
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
    // With two topics over two terms and uniform priors, θ and β are uniform on segments.
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

/// Computes log C for two topics as a sum over the numbers of their tokens. The weights of the documents are combined
/// by convolution.
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
            // The allowance is a factor of two for the labels of a crowded topic, plus the width of the sum, in nats.
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
    // Nats per token for K = 500 topics over 14 000 terms, with 65 tokens per document and 460 tokens per term, if
    // tokens are spread evenly over the topics in use. Each row contains T, the number of topics in use, and the bound
    // by the formula for its terms.
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
        // The series treats the counts of a topic's words as even, which limits its accuracy.
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
    // log C is convex in s, so slopes increase with temperature.
    let slope =
        |m: usize| (partition.log_c[m + 1] - partition.log_c[m]) / (inverse[m] - inverse[m + 1]);
    assert!((0..28).all(|m| slope(m + 1) > slope(m)));
    for (c, lower) in partition.log_c.iter().zip(&partition.lower) {
        assert!(lower <= c);
    }
}

/// Computes log C for D documents with N tokens each, as a sum over all combinations of topics and words of the tokens.
fn whole_sum(prior: &Sizes, s: f64) -> f64 {
    let (k, v) = (prior.topics, prior.terms);
    let (documents, length) = (prior.documents as usize, prior.tokens as usize);
    let tokens = documents * length;
    let gamma = |a: f64| -> Vec<f64> {
        (0..=tokens)
            .map(|n| special::lgamma(a + s * n as f64) - special::lgamma(a))
            .collect()
    };
    let (topic, word) = (gamma(prior.alpha), gamma(prior.eta));
    let (all_topics, all_words) = (gamma(prior.alpha * k as f64), gamma(prior.eta * v as f64));
    let mut total = 0.0;
    for code in 0..(k * v).pow(tokens as u32) {
        let (mut of_document, mut of_topic) = ([[0usize; 3]; 3], [[0usize; 3]; 3]);
        let mut rest = code;
        for token in 0..tokens {
            let cell = rest % (k * v);
            rest /= k * v;
            of_document[token / length][cell / v] += 1;
            of_topic[cell / v][cell % v] += 1;
        }
        let mut log = -(documents as f64) * all_topics[length];
        for row in &of_document[..documents] {
            log += row[..k].iter().map(|&n| topic[n]).sum::<f64>();
        }
        for row in &of_topic[..k] {
            log += row[..v].iter().map(|&n| word[n]).sum::<f64>();
            log -= all_words[row.iter().sum::<usize>()];
        }
        total += log.exp();
    }
    total.ln()
}

#[test]
fn log_c_of_tiny_corpora_is_bounded_and_annealing_finds_it() {
    for topics in 1..=3 {
        for terms in 1..=3 {
            for documents in 1..=3 {
                let prior = Sizes {
                    topics,
                    terms,
                    alpha: 0.5,
                    eta: 0.3,
                    documents: documents as f64,
                    tokens: 2.0,
                };
                let inverse = [0.9, 0.5, 0.2];
                let bound = log_partition(&prior, &inverse).log_c;
                for (&s, bound) in inverse.iter().zip(bound) {
                    let exact = whole_sum(&prior, s);
                    let at = format!("{topics} {terms} {documents} {s}: {bound} {exact}");
                    // The error of the bound for tiny sums is at most 0.036 nats.
                    assert!((-1e-9..0.05).contains(&(exact - bound)), "{at}");
                    for origin in [Origin::Model, Origin::Uniform] {
                        let found = log_partition_annealed(&prior, s, origin, (400, 20), 1);
                        let off = (found.log_c - exact).abs();
                        let most = 5.0 * found.standard_error + 1e-9;
                        assert!(off < most, "{at} {origin:?} {found:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn annealing_from_both_ends_finds_the_bound_of_a_middle_corpus() {
    let prior = Sizes {
        topics: 8,
        terms: 40,
        alpha: 1.0 / 8.0,
        eta: 1.0 / 8.0,
        documents: 20.0,
        tokens: 12.0,
    };
    for t in [1.1, 2.0, 5.0] {
        let bound = log_partition(&prior, &[1.0 / t]).log_c[0];
        let [cold, hot] = [Origin::Model, Origin::Uniform]
            .map(|origin| log_partition_annealed(&prior, 1.0 / t, origin, (60, 200), 1));
        let error = cold.standard_error.hypot(hot.standard_error);
        assert!(
            (cold.log_c - hot.log_c).abs() < 4.0 * error,
            "{cold:?} {hot:?}"
        );
        assert!(
            bound < cold.log_c + 4.0 * cold.standard_error,
            "{bound} {cold:?}"
        );
        assert!(cold.log_c < bound + 3.0, "{bound} {cold:?}");
    }
}
