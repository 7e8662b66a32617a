//! Effects of covariates on documents with known effects, and against exact posteriors of documents with two topics.

use jensen_math::quadrature::gauss_legendre;
use jensen_math::rng::{Purpose, Stream};
use jensen_math::special::lgamma;

use super::*;
use crate::documents::{Bag, Documents, MemoryDocuments};

const DATA: Purpose = Purpose::new("documents of a test of prevalence");

/// Returns topics with known word proportions, one row per topic.
fn known(words: &[Vec<f64>], alpha: f64) -> Topics {
    let (topics, terms) = (words.len(), words[0].len());
    // The posterior means of the proportions equal the given ones, and single precision rounds them by 1e-7.
    let lambda = (0..terms * topics).map(|i| (1e6 * words[i % topics][i / topics]) as f32);
    Topics {
        topics,
        terms,
        inference: Inference::Cvb0,
        alpha: vec![alpha; topics],
        eta: 1e-9,
        lambda: lambda.collect(),
        steps: 1,
        population: 1.0,
    }
}

fn gamma(stream: &mut Stream, shape: f64) -> f64 {
    // Marsaglia and Tsang (2000), with the boost for small shapes.
    let (boosted, power) = match shape < 1.0 {
        true => (shape + 1.0, stream.uniform().powf(1.0 / shape)),
        false => (shape, 1.0),
    };
    let d = boosted - 1.0 / 3.0;
    loop {
        let (u, v) = (stream.uniform(), stream.uniform());
        let z = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
        let cube = (1.0 + z / (9.0 * d).sqrt()).powi(3);
        if cube > 0.0 && stream.uniform().ln() < 0.5 * z * z + d - d * cube + d * cube.ln() {
            return d * cube * power;
        }
    }
}

fn category(stream: &mut Stream, shares: &[f64]) -> usize {
    let mut rest = stream.uniform() * shares.iter().sum::<f64>();
    for (k, share) in shares.iter().enumerate() {
        rest -= share;
        if rest < 0.0 {
            return k;
        }
    }
    shares.len() - 1
}

/// Draws documents with `tokens` tokens from the model with these coefficients.
fn drawn(
    words: &[Vec<f64>],
    columns: &[Vec<f64>],
    coefficients: &[f64],
    tokens: usize,
    seed: u64,
) -> MemoryDocuments {
    let mut documents = MemoryDocuments::new(words[0].len());
    for d in 0..columns[0].len() {
        let mut stream = Stream::new(seed, DATA, 0, d as u64);
        let theta: Vec<f64> = (coefficients.chunks_exact(columns.len()))
            .map(|own| {
                let log: f64 = own.iter().zip(columns).map(|(c, x)| c * x[d]).sum();
                gamma(&mut stream, log.exp())
            })
            .collect();
        let mut counts = vec![0.0f32; words[0].len()];
        for _ in 0..tokens {
            let topic = category(&mut stream, &theta);
            counts[category(&mut stream, &words[topic])] += 1.0;
        }
        let mut bag = Bag::new();
        for (term, &count) in counts.iter().enumerate().filter(|(_, n)| **n > 0.0) {
            bag.push(term as u32, count);
        }
        documents.push(&bag).unwrap();
    }
    documents
}

fn settings() -> PrevalenceSettings {
    PrevalenceSettings::default()
}

fn estimate(topics: &Topics, documents: &MemoryDocuments, columns: &[Vec<f64>]) -> Prevalence {
    prevalence(topics, documents, columns, &settings(), &|_| false).unwrap()
}

/// A covariate with unit spread and one of two groups.
fn covariates(count: usize) -> Vec<Vec<f64>> {
    let line = |d: usize| 3.4 * (d as f64 + 0.5) / count as f64 - 1.7;
    vec![
        vec![1.0; count],
        (0..count).map(line).collect(),
        (0..count)
            .map(|d| if (7 * d) % 5 < 2 { 1.2 } else { -0.8 })
            .collect(),
    ]
}

/// Computes the log likelihood of documents with two topics. The proportions of a document are integrated out by
/// Gauss–Legendre quadrature after a map that removes the singularities of small α.
fn exact_log_likelihood(
    words: &[Vec<f64>],
    documents: &MemoryDocuments,
    columns: &[Vec<f64>],
    c: &[f64],
) -> f64 {
    let rule = gauss_legendre(200);
    let mut bag = Bag::new();
    let mut sum = 0.0;
    for d in 0..documents.len() {
        documents.read(d, &mut bag);
        let alpha: Vec<f64> = c
            .chunks_exact(columns.len())
            .map(|own| {
                own.iter()
                    .zip(columns)
                    .map(|(c, x)| c * x[d])
                    .sum::<f64>()
                    .exp()
            })
            .collect();
        let log_beta = lgamma(alpha[0]) + lgamma(alpha[1]) - lgamma(alpha[0] + alpha[1]);
        // With θ = 1 / (1 + e^−η), the density of η is θ^α₁ (1 − θ)^α₂ / B.
        let reach = 40.0 / alpha[0].min(alpha[1]).min(1.0);
        let density: f64 = (rule.nodes.iter().zip(&rule.weights))
            .map(|(x, w)| {
                // The rule is on (0, 1). A cubic map has more nodes near 0.
                let (x, w) = (2.0 * x - 1.0, 2.0 * w);
                let eta = reach * x * x * x;
                let theta: f64 = 1.0 / (1.0 + (-eta).exp());
                let other: f64 = 1.0 / (1.0 + eta.exp());
                let mut log = alpha[0] * theta.ln() + alpha[1] * other.ln() - log_beta;
                for (&term, &n) in bag.terms.iter().zip(&bag.counts) {
                    let p = theta * words[0][term as usize] + other * words[1][term as usize];
                    log += f64::from(n) * p.ln();
                }
                w * 3.0 * reach * x * x * log.exp()
            })
            .sum();
        sum += density.ln();
    }
    sum
}

#[test]
fn estimates_of_short_documents_with_two_topics_are_those_of_the_exact_likelihood() {
    // With ten tokens, most of a document's information about its proportions is missing.
    let words = vec![vec![0.8, 0.15, 0.05], vec![0.05, 0.25, 0.7]];
    let columns = covariates(1500)[..2].to_vec();
    let truth = [-0.3, 0.5, 0.1, -0.4];
    let documents = drawn(&words, &columns, &truth, 10, 1);
    let found = estimate(&known(&words, 0.7), &documents, &columns);
    assert!(
        found.converged(),
        "{} {} {}",
        found.last_step,
        found.noise,
        found.rounds
    );

    // Newton's method with differences finds the mode of the exact posterior.
    let level = 0.7f64.ln();
    let posterior = |c: &[f64]| {
        let prior: f64 = c
            .iter()
            .enumerate()
            .map(|(i, c)| match i % 2 {
                0 => -0.5 * ((c - level) / 3.0).powi(2),
                _ => -0.5 * c * c,
            })
            .sum();
        exact_log_likelihood(&words, &documents, &columns, c) + prior
    };
    let (mut c, h) = (found.mean.clone(), 1e-2);
    let mut covariance = Vec::new();
    for _ in 0..6 {
        let moved = |i: usize, a: f64, j: usize, b: f64| {
            let mut x = c.clone();
            x[i] += a;
            x[j] += b;
            posterior(&x)
        };
        let mut hessian = vec![0.0; 16];
        let mut gradient = [0.0; 4];
        for i in 0..4 {
            gradient[i] = (moved(i, h, i, 0.0) - moved(i, -h, i, 0.0)) / (2.0 * h);
            for j in 0..=i {
                let second = moved(i, h, j, h) - moved(i, h, j, -h) - moved(i, -h, j, h)
                    + moved(i, -h, j, -h);
                hessian[4 * i + j] = -second / (4.0 * h * h);
                hessian[4 * j + i] = hessian[4 * i + j];
            }
        }
        let factor = jensen_math::dense::cholesky(&hessian, 4).unwrap();
        covariance = jensen_math::dense::inverse(&factor, 4);
        for i in 0..4 {
            c[i] += (0..4)
                .map(|j| covariance[4 * i + j] * gradient[j])
                .sum::<f64>();
        }
    }
    for i in 0..4 {
        let sd = covariance[5 * i].sqrt();
        let own = found.covariance[5 * i].sqrt();
        assert!(
            (found.mean[i] - c[i]).abs() < 0.4 * sd,
            "{i}: {} and {} ± {sd}",
            found.mean[i],
            c[i]
        );
        assert!((own / sd - 1.0).abs() < 0.2, "{i}: {own} and {sd}");
    }
}

#[test]
fn intervals_cover_known_effects() {
    // Words overlap: a topic has half of its words in common with the next one.
    let (topics, terms) = (5, 30);
    let words: Vec<Vec<f64>> = (0..topics)
        .map(|k| {
            let weight = |v: usize| {
                if (v + terms - 6 * k) % terms < 12 {
                    1.0
                } else {
                    0.02
                }
            };
            let total: f64 = (0..terms).map(weight).sum();
            (0..terms).map(|v| weight(v) / total).collect()
        })
        .collect();
    let columns = covariates(800);
    let (mut inside, mut all, mut squares) = (0, 0, 0.0);
    for seed in 0..12 {
        let mut stream = Stream::new(seed, DATA, 1, 0);
        let truth: Vec<f64> = (0..3 * topics)
            .map(|i| match i % 3 {
                0 => -1.2 + 0.8 * (stream.uniform() - 0.5),
                _ => 1.4 * (stream.uniform() - 0.5),
            })
            .collect();
        let documents = drawn(&words, &columns, &truth, 25, 100 + seed);
        let found = estimate(&known(&words, 0.3), &documents, &columns);
        assert!(
            found.converged(),
            "{} {} {}",
            found.last_step,
            found.noise,
            found.rounds
        );
        for (i, truth) in truth.iter().enumerate() {
            let z = (found.mean[i] - truth) / found.covariance[i * (3 * topics + 1)].sqrt();
            all += 1;
            inside += u32::from(z.abs() < 1.645);
            squares += z * z;
        }
    }
    // Of 180 coefficients 162 are expected in 90 % intervals. Under independence, the standard deviation is 4.
    assert!(
        (150..=174).contains(&inside),
        "{inside} of {all}, mean square {}",
        squares / f64::from(all)
    );
}

#[test]
fn the_number_of_threads_does_not_change_bits() {
    let words = vec![vec![0.6, 0.25, 0.15], vec![0.1, 0.3, 0.6]];
    let columns = covariates(600);
    let documents = drawn(&words, &columns, &[-0.3, 0.5, 0.0, 0.1, -0.4, 0.2], 8, 1);
    let topics = known(&words, 0.7);
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build()
            .unwrap()
            .install(|| estimate(&topics, &documents, &columns))
    };
    assert_eq!(with(1).mean, with(3).mean);
}

#[test]
fn columns_that_do_not_match_are_refused() {
    let words = vec![vec![0.6, 0.4], vec![0.1, 0.9]];
    let columns = covariates(20);
    let documents = drawn(&words, &columns[..1], &[0.0, 0.0], 8, 1);
    let topics = known(&words, 0.7);
    let refused = |columns: &[Vec<f64>]| {
        let found = prevalence(&topics, &documents, columns, &settings(), &|_| false);
        matches!(found, Err(PrevalenceError::Input(_)))
    };
    assert!(refused(&columns[1..]) && refused(&[]) && refused(&covariates(19)));
    assert!(refused(&[columns[0].clone(), vec![f64::NAN; 20]]));
    let stopped = prevalence(&topics, &documents, &columns, &settings(), &|_| true);
    assert_eq!(stopped, Err(PrevalenceError::Stopped));
}
