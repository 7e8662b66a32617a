//! A map of the topics for the report. The map shows which topics share words and which words distinguish each topic.

use jensen_math::dense::eigen_symmetric;
use jensen_report::{MappedTopic, TopicMap, TopicWord};
use rayon::prelude::*;

use super::TopicModel;

const MAPPED: usize = 200;

const SPELLED: usize = 60;

/// The number of parts into which the vocabulary is divided for parallel processing. This number is fixed, because sums
/// would otherwise depend on the number of threads.
const PIECES: usize = 32;

const WORDS: usize = 20;
const CANDIDATES: usize = 400;

/// The dimension of the subspace that is iterated. The two axes of the map are chosen from this subspace.
const ITERATED: usize = 12;
const ROUNDS: usize = 500;
const SETTLED: f64 = 1e-9;

/// The weight of log p(w | topic) in the relevance of a word w. The other term of the relevance is log p(w | topic) /
/// p(w), where p(w) is the probability of the word in all topics. The two weights sum to 1.
const RELEVANCE: f64 = 0.6;

/// Returns the map of the largest topics of a model, or `None` if the model has fewer than three topics.
///
/// The positions of the topics are computed by classical scaling (Torgerson 1952) of the Hellinger distances between
/// their word distributions. The words are sorted by their relevance, which is the sum of log p(w | topic) with weight
/// 0.6 and log p(w | topic) / p(w) with weight 0.4 (Sievert and Shirley, LDAvis, 2014). The cost of the function is
/// proportional to topics² × terms.
pub(super) fn topic_map(model: &TopicModel) -> Option<TopicMap> {
    let topics = &model.topics;
    let shares = topics.shares();
    let mut order: Vec<usize> = (0..topics.topics).collect();
    order.sort_by(|a, b| shares[*b].total_cmp(&shares[*a]).then(a.cmp(b)));
    order.truncate(MAPPED);
    if order.len() < 3 {
        return None;
    }
    let totals = topics.totals();
    let n = order.len();
    // The loop computes the Bhattacharyya coefficients as sums over terms, and the probabilities of terms over all
    // topics.
    let length = topics.terms.div_ceil(PIECES).max(1);
    let piece = |piece: usize| {
        let (mut affinities, mut overall) = (vec![0.0; n * n], Vec::with_capacity(length));
        let mut roots = vec![0.0; n];
        for term in piece * length..topics.terms.min((piece + 1) * length) {
            let all: Vec<f64> = topics.proportions(term, &totals).collect();
            overall.push(dot(&all, &shares));
            for (root, topic) in roots.iter_mut().zip(&order) {
                *root = all[*topic].sqrt();
            }
            for (i, a) in roots.iter().enumerate() {
                let row = &mut affinities[i * n..=i * n + i];
                for (sum, b) in row.iter_mut().zip(&roots) {
                    *sum += a * b;
                }
            }
        }
        (affinities, overall)
    };
    let pieces = (0..topics.terms.div_ceil(length)).into_par_iter();
    let pieces: Vec<(Vec<f64>, Vec<f64>)> = pieces.map(piece).collect();
    let mut affinities = vec![0.0; n * n];
    let mut overall = Vec::with_capacity(topics.terms);
    for (part, probabilities) in pieces {
        affinities
            .iter_mut()
            .zip(part)
            .for_each(|(sum, x)| *sum += x);
        overall.extend(probabilities);
    }
    let positions = scaled(&affinities, n);
    let spelled = |rank: usize, topic: usize| match rank < SPELLED {
        true => words(model, topic, shares[topic], &overall),
        false => Vec::new(),
    };
    let mapped = order.iter().zip(positions).enumerate();
    Some(TopicMap {
        topics: mapped
            .map(|(rank, (topic, position))| MappedTopic {
                number: *topic,
                share: shares[*topic],
                position,
                words: spelled(rank, *topic),
            })
            .collect(),
    })
}

/// Returns positions in the plane whose distances best approximate the Hellinger distances. The square of a Hellinger
/// distance is 1 − affinity. `affinities` contains the lower triangle of the matrix.
fn scaled(affinities: &[f64], n: usize) -> Vec<(f64, f64)> {
    let squared = |i: usize, j: usize| {
        let (i, j) = (i.max(j), i.min(j));
        if i == j {
            0.0
        } else {
            (1.0 - affinities[i * n + j]).max(0.0)
        }
    };
    let means: Vec<f64> = (0..n)
        .map(|i| (0..n).map(|j| squared(i, j)).sum::<f64>() / n as f64)
        .collect();
    let mean = means.iter().sum::<f64>() / n as f64;
    let centred: Vec<f64> = (0..n * n)
        .map(|at| -0.5 * (squared(at / n, at % n) - means[at / n] - means[at % n] + mean))
        .collect();
    let axes = leading(&centred, n);
    let axis = |rank: usize, i: usize| axes.get(rank).map_or(0.0, |axis| axis[i]);
    (0..n).map(|i| (axis(0, i), axis(1, i))).collect()
}

/// Returns the eigenvectors for the two largest eigenvalues of a matrix, each multiplied by the square root of its
/// eigenvalue. The matrix must have few negative eigenvalues. The function uses orthogonal iteration with additional
/// vectors.
fn leading(matrix: &[f64], n: usize) -> Vec<Vec<f64>> {
    let width = ITERATED.min(n);
    // The iteration starts with the columns of the largest topics.
    let mut vectors: Vec<Vec<f64>> = matrix
        .chunks_exact(n)
        .take(width)
        .map(<[f64]>::to_vec)
        .collect();
    let mut axes: Vec<Vec<f64>> = Vec::new();
    for _ in 0..ROUNDS {
        orthonormalise(&mut vectors);
        let width = vectors.len();
        let images: Vec<Vec<f64>> = (vectors.iter())
            .map(|v| matrix.chunks_exact(n).map(|row| dot(row, v)).collect())
            .collect();
        // The Rayleigh–Ritz method finds the best approximate eigenvectors in the span of the vectors.
        let within: Vec<f64> = (0..width * width)
            .map(|at| dot(&vectors[at / width], &images[at % width]))
            .collect();
        let (values, turns) = eigen_symmetric(&within, width);
        let turned = |of: &[Vec<f64>], at: usize| -> Vec<f64> {
            let turn = &turns[at * width..(at + 1) * width];
            (0..n)
                .map(|i| turn.iter().zip(of).map(|(t, v)| t * v[i]).sum())
                .collect()
        };
        let found = (0..width).rev().take(2).map(|at| {
            let mut axis = turned(&vectors, at);
            let largest = axis
                .iter()
                .fold(0.0f64, |a, x| if x.abs() > a.abs() { *x } else { a });
            let length = largest.signum() * values[at].max(0.0).sqrt();
            axis.iter_mut().for_each(|x| *x *= length);
            axis
        });
        let found: Vec<Vec<f64>> = found.collect();
        let moved = |(a, b): (&Vec<f64>, &Vec<f64>)| {
            a.iter()
                .zip(b)
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f64::max)
        };
        let settled =
            axes.len() == found.len() && axes.iter().zip(&found).all(|pair| moved(pair) < SETTLED);
        axes = found;
        if settled {
            break;
        }
        vectors = images;
    }
    axes
}

/// Orthonormalises vectors by two passes of the Gram–Schmidt method. Vectors in the span of earlier vectors are
/// removed.
fn orthonormalise(vectors: &mut Vec<Vec<f64>>) {
    let mut kept: Vec<Vec<f64>> = Vec::new();
    for mut vector in vectors.drain(..) {
        let before = dot(&vector, &vector).sqrt();
        for _ in 0..2 {
            for other in &kept {
                let share = dot(&vector, other);
                vector
                    .iter_mut()
                    .zip(other)
                    .for_each(|(x, o)| *x -= share * o);
            }
        }
        let length = dot(&vector, &vector).sqrt();
        if length > 1e-10 * before {
            vector.iter_mut().for_each(|x| *x /= length);
            kept.push(vector);
        }
    }
    *vectors = kept;
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn words(model: &TopicModel, topic: usize, share: f64, overall: &[f64]) -> Vec<TopicWord> {
    let mut found: Vec<(f64, u32, f64)> = (model.topics.top_words(topic, CANDIDATES).into_iter())
        .map(|(term, p)| {
            let lift = (p / overall[term as usize]).ln();
            (RELEVANCE * p.ln() + (1.0 - RELEVANCE) * lift, term, p)
        })
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    found.truncate(WORDS);
    let spelled = found.into_iter().map(|(_, term, p)| TopicWord {
        word: model.words[term as usize].clone(),
        within: share * p,
        overall: overall[term as usize],
    });
    spelled.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_of_the_same_words_stand_together() {
        // The first two of the three topics are similar, and the third topic has other words.
        let affinities = [1.0, 0.0, 0.0, 0.95, 1.0, 0.0, 0.0, 0.0, 1.0];
        let positions = scaled(&affinities, 3);
        let apart = |i: usize, j: usize| {
            let ((a, b), (c, d)) = (positions[i], positions[j]);
            (a - c).hypot(b - d)
        };
        // Any three distances that satisfy the triangle inequality can be realised by three points in a plane.
        assert!((apart(0, 1) - 0.05f64.sqrt()).abs() < 1e-12);
        assert!((apart(0, 2) - 1.0).abs() < 1e-12 && (apart(1, 2) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn axes_are_those_of_all_eigenvectors() {
        // The distances between the 40 topics need five dimensions. Most of the variation is along a line, and some of
        // the rest is in a plane.
        let n = 40;
        let wave =
            |i: usize, d: usize| ((i * (2 * d + 3) + d) as f64).sin() * 0.4f64.powi(d as i32);
        let points: Vec<[f64; 5]> = (0..n)
            .map(|i| std::array::from_fn(|d| wave(i, d)))
            .collect();
        let mut matrix: Vec<f64> = (0..n * n)
            .map(|at| dot(&points[at / n], &points[at % n]))
            .collect();
        (0..n).for_each(|i| matrix[i * n + i] += 1e-3);
        let (values, vectors) = eigen_symmetric(&matrix, n);
        for (rank, axis) in leading(&matrix, n).iter().enumerate() {
            let at = n - 1 - rank;
            let exact = vectors[at * n..(at + 1) * n]
                .iter()
                .map(|x| values[at].sqrt() * x);
            assert!(axis.iter().zip(exact).all(|(a, b)| (a - b).abs() < 1e-8));
        }
        assert_eq!(leading(&[0.0; 9], 3), Vec::<Vec<f64>>::new());
    }
}
