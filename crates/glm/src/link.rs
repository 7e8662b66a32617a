//! Likelihoods of outcomes given linear predictors.

use jensen_density::{Lanes, LanesMut};
use jensen_math::simd::Simd;
use jensen_math::vmath::slices;

use crate::ShapeError;

/// The likelihood of a record's outcome given the record's linear predictors.
#[derive(Clone, Debug)]
pub enum Link {
    /// A binary outcome with a single predictor: `P(yₙ = 1) = logit⁻¹(η)`.
    BernoulliLogit {
        /// The outcome of each record, which is +1 for a success and −1 for a failure.
        signs: Vec<f64>,
    },
    /// One of K classes, with K predictors: `P(yₙ = k) = softmax(η)ₖ`.
    CategoricalLogit {
        /// The class of each record, which is below K.
        labels: Vec<u32>,
        /// The number of classes K.
        classes: usize,
    },
}

impl Link {
    /// Creates the link for binary outcomes, which has a Bernoulli likelihood.
    pub fn bernoulli(outcomes: &[bool]) -> Self {
        let signs = outcomes.iter().map(|&y| if y { 1.0 } else { -1.0 });
        Self::BernoulliLogit {
            signs: signs.collect(),
        }
    }

    /// Creates the link for outcomes that are classes. The labels start at 0.
    ///
    /// # Errors
    /// Fails if a label is not below `classes`.
    pub fn categorical(labels: Vec<u32>, classes: usize) -> Result<Self, ShapeError> {
        match labels.iter().find(|&&label| label as usize >= classes) {
            Some(label) => Err(ShapeError(format!(
                "the label {label} is not below the number of classes, {classes}"
            ))),
            None => Ok(Self::CategoricalLogit { labels, classes }),
        }
    }

    /// Returns the number of records.
    pub fn records(&self) -> usize {
        match self {
            Self::BernoulliLogit { signs } => signs.len(),
            Self::CategoricalLogit { labels, .. } => labels.len(),
        }
    }

    /// Returns the number of linear predictors per record.
    pub fn width(&self) -> usize {
        match self {
            Self::BernoulliLogit { .. } => 1,
            Self::CategoricalLogit { classes, .. } => *classes,
        }
    }

    pub(super) fn value(&self, batch: &[u32], eta: Lanes<'_>, out: &mut [f64]) {
        let lanes = eta.lanes();
        out.fill(0.0);
        match self {
            Self::BernoulliLogit { signs } => {
                let mut x = signed(signs, batch, eta.as_slice(), lanes);
                let argument = x.clone();
                slices::log_inv_logit(Simd::detect(), &argument, &mut x);
                for row in x.chunks_exact(lanes) {
                    add(row, out);
                }
            }
            Self::CategoricalLogit { labels, classes } => {
                let softmax = Softmax::of(eta, *classes);
                let normalisers = softmax.log_normalisers();
                for (b, &n) in batch.iter().enumerate() {
                    let chosen = eta.row(b * classes + labels[n as usize] as usize);
                    let normaliser = &normalisers[b * lanes..(b + 1) * lanes];
                    for ((out, x), c) in out.iter_mut().zip(chosen).zip(normaliser) {
                        *out += x - c;
                    }
                }
            }
        }
    }

    pub(super) fn gradient(&self, batch: &[u32], eta: Lanes<'_>, mut out: LanesMut<'_>) {
        let lanes = eta.lanes();
        match self {
            Self::BernoulliLogit { signs } => {
                // The derivative is s · logit⁻¹(−s η).
                let out = out.as_mut_slice();
                let mut x = signed(signs, batch, eta.as_slice(), lanes);
                x.iter_mut().for_each(|x| *x = -*x);
                slices::inv_logit(Simd::detect(), &x, out);
                for (out, &n) in out.chunks_exact_mut(lanes).zip(batch) {
                    let s = signs[n as usize];
                    out.iter_mut().for_each(|x| *x *= s);
                }
            }
            Self::CategoricalLogit { labels, classes } => {
                Softmax::of(eta, *classes).probabilities(out.as_mut_slice());
                out.as_mut_slice().iter_mut().for_each(|p| *p = -*p);
                for (b, &n) in batch.iter().enumerate() {
                    let row = out.row_mut(b * classes + labels[n as usize] as usize);
                    row.iter_mut().for_each(|p| *p += 1.0);
                }
            }
        }
    }

    /// Computes the expected first and second derivatives for normally distributed predictors. Only K = 1 is supported.
    pub(super) fn expectation(
        &self,
        batch: &[u32],
        mean: &[f64],
        variance: &[f64],
        gradient: &mut [f64],
        curvature: &mut [f64],
    ) {
        match self {
            Self::BernoulliLogit { signs } => {
                // The first expectation is s · E[logit⁻¹(−s η)], and the second is minus the expectation of the
                // derivative.
                let argument = batch.iter().zip(mean).map(|(&n, m)| -signs[n as usize] * m);
                let argument: Vec<f64> = argument.collect();
                logistic_normal(&argument, variance, gradient, curvature);
                for (g, &n) in gradient.iter_mut().zip(batch) {
                    *g *= signs[n as usize];
                }
                curvature.iter_mut().for_each(|c| *c = -*c);
            }
            // A `Glm` with several predictors offers no expectations, so this branch is never reached.
            Self::CategoricalLogit { .. } => {
                gradient.fill(f64::NAN);
                curvature.fill(f64::NAN);
            }
        }
    }

    /// Multiplies each record's Hessian with respect to its predictors by `v`.
    pub(super) fn curvature(&self, eta: Lanes<'_>, v: Lanes<'_>, mut out: LanesMut<'_>) {
        let lanes = eta.lanes();
        match self {
            Self::BernoulliLogit { .. } => {
                let out = out.as_mut_slice();
                slices::inv_logit(Simd::detect(), eta.as_slice(), out);
                for (p, v) in out.iter_mut().zip(v.as_slice()) {
                    *p = -*p * (1.0 - *p) * v;
                }
            }
            Self::CategoricalLogit { classes, .. } => {
                // The product is −p ⊙ (v − pᵀv).
                let out = out.as_mut_slice();
                Softmax::of(eta, *classes).probabilities(out);
                let mut mean = vec![0.0; lanes];
                let width = classes * lanes;
                for (p, v) in out.chunks_exact_mut(width).zip(v.as_slice().chunks(width)) {
                    mean.fill(0.0);
                    for (p, v) in p.chunks_exact(lanes).zip(v.chunks_exact(lanes)) {
                        for ((m, p), v) in mean.iter_mut().zip(p).zip(v) {
                            *m += p * v;
                        }
                    }
                    for (p, v) in p.chunks_exact_mut(lanes).zip(v.chunks_exact(lanes)) {
                        for ((m, p), v) in mean.iter().zip(p).zip(v) {
                            *p *= m - v;
                        }
                    }
                }
            }
        }
    }
}

/// Weights and slopes of a mixture of normal distribution functions that approximates the logistic function to within
/// 2.2e-9, and its derivative to within 1.4e-8 (Monahan and Stefanski 1992, eight terms).
const NORMALS: [(f64, f64); 8] = [
    (0.003246343272134, 1.365340806296348),
    (0.051517477033972, 1.059523971016916),
    (0.195077912673858, 0.830791313765644),
    (0.315569823632818, 0.650732166639391),
    (0.274149576158423, 0.508135425366489),
    (0.131076880695470, 0.396313345166341),
    (0.027912418727972, 0.308904252267995),
    (0.001449567805354, 0.238212616409306),
];

/// Computes `E[logit⁻¹(η)]` and the expectation of its derivative for η ~ N(mean, variance). The expectation of a
/// normal distribution function with slope s is a normal distribution function with slope `s / √(1 + s² variance)`. The
/// error therefore does not grow with the variance.
fn logistic_normal(mean: &[f64], variance: &[f64], value: &mut [f64], slope: &mut [f64]) {
    let simd = Simd::detect();
    let count = mean.len();
    let mut argument = vec![0.0; NORMALS.len() * count];
    let mut densities = vec![0.0; NORMALS.len() * count];
    let mut values = vec![0.0; NORMALS.len() * count];
    let mut exponents = vec![0.0; NORMALS.len() * count];
    for (k, (_, s)) in NORMALS.iter().enumerate() {
        let rows = k * count..(k + 1) * count;
        let numbers = argument[rows.clone()].iter_mut().zip(&mut exponents[rows]);
        for ((x, e), (m, v)) in numbers.zip(mean.iter().zip(variance)) {
            *x = m * s / (1.0 + s * s * v).sqrt();
            *e = -0.5 * *x * *x;
        }
    }
    slices::phi(simd, &argument, &mut values);
    slices::exp(simd, &exponents, &mut densities);
    value.fill(0.0);
    slope.fill(0.0);
    for (k, (p, s)) in NORMALS.iter().enumerate() {
        let of = |i: usize| k * count + i;
        for i in 0..count {
            value[i] += p * values[of(i)];
            let narrowed = s / (1.0 + s * s * variance[i]).sqrt();
            slope[i] += p * narrowed * INVERSE_ROOT_TWO_PI * densities[of(i)];
        }
    }
}

const INVERSE_ROOT_TWO_PI: f64 = 0.398_942_280_401_432_7;

fn add(x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += x;
    }
}

fn signed(signs: &[f64], batch: &[u32], eta: &[f64], lanes: usize) -> Vec<f64> {
    let mut x = eta.to_vec();
    for (x, &n) in x.chunks_exact_mut(lanes).zip(batch) {
        let s = signs[n as usize];
        x.iter_mut().for_each(|x| *x *= s);
    }
    x
}

struct Softmax {
    lanes: usize,
    width: usize,
    /// The weights `exp(η − max)`, in the same layout as `eta`.
    weights: Vec<f64>,
    /// The largest predictor `max` of each record, in an array of records × lanes.
    largest: Vec<f64>,
    sums: Vec<f64>,
}

impl Softmax {
    fn of(eta: Lanes<'_>, classes: usize) -> Self {
        let lanes = eta.lanes();
        let width = classes * lanes;
        let records = eta.rows() / classes;
        let mut shifted = eta.as_slice().to_vec();
        let mut largest = vec![f64::NEG_INFINITY; records * lanes];
        for (eta, max) in shifted
            .chunks_exact_mut(width)
            .zip(largest.chunks_exact_mut(lanes))
        {
            for row in eta.chunks_exact(lanes) {
                for (m, x) in max.iter_mut().zip(row) {
                    *m = m.max(*x);
                }
            }
            for row in eta.chunks_exact_mut(lanes) {
                for (x, m) in row.iter_mut().zip(max.iter()) {
                    *x -= m;
                }
            }
        }
        let mut weights = vec![0.0; shifted.len()];
        slices::exp(Simd::detect(), &shifted, &mut weights);
        let mut sums = vec![0.0; records * lanes];
        for (w, sum) in weights
            .chunks_exact(width)
            .zip(sums.chunks_exact_mut(lanes))
        {
            for row in w.chunks_exact(lanes) {
                add(row, sum);
            }
        }
        Self {
            lanes,
            width,
            weights,
            largest,
            sums,
        }
    }

    fn log_normalisers(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.sums.len()];
        slices::log(Simd::detect(), &self.sums, &mut out);
        add(&self.largest, &mut out);
        out
    }

    fn probabilities(&self, out: &mut [f64]) {
        let inverse: Vec<f64> = self.sums.iter().map(|s| s.recip()).collect();
        let records = out
            .chunks_exact_mut(self.width)
            .zip(self.weights.chunks_exact(self.width))
            .zip(inverse.chunks_exact(self.lanes));
        for ((out, weights), inverse) in records {
            let rows = out
                .chunks_exact_mut(self.lanes)
                .zip(weights.chunks_exact(self.lanes));
            for (out, weights) in rows {
                for ((out, w), c) in out.iter_mut().zip(weights).zip(inverse) {
                    *out = w * c;
                }
            }
        }
    }
}
