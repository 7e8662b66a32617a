//! Initial topics that consist of the words of dissimilar documents.
//!
//! Topics that start out similar remain similar. If all topics start at the mean of the corpus with a little noise, a
//! few of them attract all words before the others develop. Therefore each topic starts from the words of a
//! neighbourhood of documents. As in k-means++ (Arthur and Vassilvitskii 2007), documents far from all previous
//! neighbourhoods are drawn from a sample with a larger probability. The documents nearest to the drawn document have a
//! mean, and the documents nearest to this mean provide the words of a topic. Distances are based on the cosine between
//! log counts that are weighted by log inverse document frequency. A topic with seed words starts from the documents
//! nearest to these words.

use jensen_math::rng::{Purpose, Stream, permutation};
use rayon::prelude::*;

use super::globals::LdaGlobals;
use super::kernel::padded;
use super::settings::Seed;
use crate::documents::{Bag, Documents};

const SAMPLE: Purpose = Purpose::new("documents to start topics from");
const CENTRES: Purpose = Purpose::new("centres of first topics");

const DOCUMENTS_A_TOPIC: usize = 20;
/// Number of documents per neighbourhood. On 2 000 news articles with 50 topics, neighbourhoods of 20 documents lose
/// 0.01 nats per word.
const NEIGHBOURS: usize = 8;
/// Share of a topic's words that comes from its neighbourhood. The other words come from the whole sample.
const OWN: f64 = 0.5;

/// A document as a sparse vector of unit length.
struct Point {
    terms: Vec<u32>,
    weights: Vec<f32>,
}

impl Point {
    fn add_to(&self, dense: &mut [f32]) {
        for (&term, w) in self.terms.iter().zip(&self.weights) {
            dense[term as usize] += w;
        }
    }
}

fn sample(
    documents: &dyn Documents,
    topics: usize,
    (seed, restart): (u64, u64),
) -> (Vec<Bag>, Vec<Point>) {
    let mut numbers = permutation(seed, SAMPLE, restart, documents.len());
    numbers.truncate(DOCUMENTS_A_TOPIC * topics);
    let bags = numbers.into_par_iter().map(|number| {
        let mut bag = Bag::new();
        documents.read(number, &mut bag);
        bag
    });
    let bags: Vec<Bag> = bags.filter(|bag| !bag.is_empty()).collect();
    let mut frequency = vec![0u32; documents.terms()];
    for &term in bags.iter().flat_map(|bag| &bag.terms) {
        frequency[term as usize] += 1;
    }
    let count = bags.len() as f32;
    let points = bags.par_iter().map(|bag| {
        let pairs = bag.terms.iter().zip(&bag.counts);
        let weigh =
            |(&term, n): (&u32, &f32)| n.ln_1p() * (count / frequency[term as usize] as f32).ln();
        let mut weights: Vec<f32> = pairs.map(weigh).collect();
        let length = weights.iter().map(|w| w * w).sum::<f32>().sqrt();
        // If a document contains only words that all documents contain, its vector is zero.
        let factor = 1.0 / length.max(f32::MIN_POSITIVE);
        weights.iter_mut().for_each(|w| *w *= factor);
        Point {
            terms: bag.terms.clone(),
            weights,
        }
    });
    let points = points.collect();
    (bags, points)
}

/// An index of the points by term. A centre has only a few terms, and points that share no term with it cost nothing.
struct Index {
    /// The offset of each term's points, followed by the total number of points.
    starts: Vec<usize>,
    entries: Vec<(u32, f32)>,
    points: usize,
}

impl Index {
    fn of(points: &[Point], terms: usize) -> Self {
        let mut starts = vec![0; terms + 1];
        for &term in points.iter().flat_map(|point| &point.terms) {
            starts[term as usize + 1] += 1;
        }
        for term in 0..terms {
            starts[term + 1] += starts[term];
        }
        let mut next = starts.clone();
        let mut entries = vec![(0, 0.0); starts[terms]];
        for (number, point) in (0..).zip(points) {
            for (&term, &weight) in point.terms.iter().zip(&point.weights) {
                entries[next[term as usize]] = (number, weight);
                next[term as usize] += 1;
            }
        }
        Self {
            starts,
            entries,
            points: points.len(),
        }
    }

    fn nearest(&self, centre: &[f32]) -> (Vec<f32>, Vec<usize>) {
        let mut cosines = vec![0.0f32; self.points];
        for (term, &x) in centre.iter().enumerate() {
            if x != 0.0 {
                for &(point, weight) in &self.entries[self.starts[term]..self.starts[term + 1]] {
                    cosines[point as usize] += weight * x;
                }
            }
        }
        let mut order: Vec<usize> = (0..self.points).collect();
        let by_cosine = |a: &usize, b: &usize| cosines[*b].total_cmp(&cosines[*a]).then(a.cmp(b));
        let count = NEIGHBOURS.min(self.points);
        if count < order.len() {
            order.select_nth_unstable_by(count, by_cosine);
            order.truncate(count);
        }
        order.sort_unstable_by(by_cosine);
        (cosines, order)
    }
}

/// Draws an index with these weights, or uniformly if all weights are 0.
fn draw(stream: &mut Stream, weights: &[f64]) -> usize {
    let total: f64 = weights.iter().sum();
    if total <= 0.0 {
        return stream.below(weights.len() as u64) as usize;
    }
    let mut left = stream.uniform() * total;
    let position = weights.iter().position(|w| {
        left -= w;
        left < 0.0
    });
    position.unwrap_or(weights.len() - 1)
}

fn neighbourhoods(
    points: &[Point],
    topics: usize,
    terms: usize,
    seeds: &[Seed],
    (seed, restart): (u64, u64),
) -> Vec<Vec<usize>> {
    let mut stream = Stream::new(seed, CENTRES, restart, 0);
    let index = Index::of(points, terms);
    let mut distant = vec![1.0f64; points.len()];
    let mut centre = vec![0.0f32; terms];
    (0..topics)
        .map(|topic| {
            centre.fill(0.0);
            let own = seeds.iter().filter(|seed| seed.topic == topic);
            own.for_each(|seed| centre[seed.term as usize] = 1.0);
            let first = if centre.iter().all(|x| *x == 0.0) {
                let weights: Vec<f64> = distant.iter().map(|d| d * d).collect();
                let first = draw(&mut stream, &weights);
                points[first].add_to(&mut centre);
                first
            } else {
                index.nearest(&centre).1[0]
            };
            let (_, near) = index.nearest(&centre);
            centre.fill(0.0);
            near.iter().for_each(|&p| points[p].add_to(&mut centre));
            let (cosines, near) = index.nearest(&centre);
            // No distance is treated as smaller than the mean distance within the neighbourhood.
            let within = near.iter().map(|&p| cosines[p]).sum::<f32>() / near.len() as f32;
            for (distant, cosine) in distant.iter_mut().zip(cosines) {
                let closeness = f64::from(cosine / within.max(f32::MIN_POSITIVE));
                *distant = distant.min(1.0 - closeness.min(1.0));
            }
            // The document itself counts as chosen, even if it has no similar document.
            distant[first] = 0.0;
            near
        })
        .collect()
}

/// Returns initial topics. They have as many tokens in total as the documents. `seed` contains the seed and the number
/// of the start.
pub(crate) fn of_documents(
    documents: &dyn Documents,
    alpha: Vec<f64>,
    eta: f64,
    seeds: &[Seed],
    seed: (u64, u64),
) -> LdaGlobals {
    let (topics, terms) = (alpha.len(), documents.terms());
    let (bags, points) = sample(documents, topics, seed);
    let stride = padded(topics);
    let mut mass = vec![0.0f32; terms * stride];
    if points.is_empty() {
        return LdaGlobals::of_mass(alpha, terms, eta, mass);
    }
    let mut common = vec![0.0f64; terms];
    for bag in &bags {
        for (&term, &n) in bag.terms.iter().zip(&bag.counts) {
            common[term as usize] += f64::from(n);
        }
    }
    let tokens: f64 = common.iter().sum();
    let size = documents.tokens() / topics as f64;
    for (row, n) in mass.chunks_exact_mut(stride).zip(&common) {
        row[..topics].fill(((1.0 - OWN) * size * n / tokens) as f32);
    }
    let chosen = neighbourhoods(&points, topics, terms, seeds, seed);
    for (topic, near) in chosen.into_iter().enumerate() {
        let tokens: f64 = near.iter().map(|&p| bags[p].tokens()).sum();
        for &p in &near {
            for (&term, &n) in bags[p].terms.iter().zip(&bags[p].counts) {
                mass[term as usize * stride + topic] += (OWN * size * f64::from(n) / tokens) as f32;
            }
        }
    }
    LdaGlobals::of_mass(alpha, terms, eta, mass)
}
