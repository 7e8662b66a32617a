//! Computes Σ_v E[β_kv^s] for every topic. Local temperatures need λ only through these sums.
//!
//! E[β_kv^s] = f_s(λ_kv) / f_s(Σ_v λ_kv) with f_s(x) = Γ(x + s) / Γ(x). Evaluating this ratio for V terms, K topics and
//! a hundred values of s would cost more than a pass over the data. Because the ratio is smooth in both λ and s, two
//! interpolations are used instead:
//!
//! - f_s is evaluated only at knots of λ, sixteen per octave, and interpolated linearly between them. The interpolation
//!   is exact at s = 0 and s = 1. For intermediate s, its relative error is below 1e-4.
//! - Normalisers are computed at the [`nodes`], and their logarithms are interpolated between them. The sixteen nodes s
//!   are denser near 0, where the normalisers are steep because of the prior.

use std::sync::OnceLock;

use jensen_math::simd::Simd;
use jensen_math::special;
use jensen_run::{Archive, ArchiveError, Snapshot};
use rayon::prelude::*;

use super::globals::LdaGlobals;
use super::kernel;
use super::kernel::{WIDTH, padded};
use crate::temper::InverseTemperatures;

/// The sums for every topic, as rows whose columns are the nodes, and their total over all topics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PowerTable {
    pub(crate) powers: Vec<f32>,
    pub(crate) total: Vec<f32>,
}

impl Snapshot for PowerTable {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
        archive.put("powers", &wide(&self.powers));
        archive.put("total", &wide(&self.total));
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let narrow = |x: Vec<f64>| x.into_iter().map(|x| x as f32).collect::<Vec<f32>>();
        Ok(Self {
            powers: narrow(archive.vec("powers")?),
            total: narrow(archive.vec_of("total", WIDTH)?),
        })
    }
}

/// Returns the sixteen inverse temperatures (j/15)² from 0 to 1 at which normalisers are computed.
pub(crate) fn nodes() -> &'static [f32; WIDTH] {
    static NODES: OnceLock<[f32; WIDTH]> = OnceLock::new();
    NODES.get_or_init(|| std::array::from_fn(|j| ((j * j) as f64 / 225.0) as f32))
}

/// A grid of inverse temperatures, and weights for interpolating from the nodes to the grid. Both are padded to whole
/// vectors. The interpolation is cubic in √s, because the nodes are evenly spaced in √s, and it is exact at the nodes.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    given: InverseTemperatures,
    /// The inverse temperatures, with zeros in the padding.
    pub inverse: Vec<f32>,
    /// Log prior probabilities log π. If π is zero, and in the padding, a large negative number replaces the logarithm.
    pub log_prior: Vec<f32>,
    pub weights: Vec<f32>,
}

impl Grid {
    pub fn new(given: &InverseTemperatures) -> Self {
        let stride = padded(given.values.len());
        let mut grid = Self {
            given: given.clone(),
            inverse: vec![0.0; stride],
            log_prior: vec![-1e30; stride],
            weights: vec![0.0; WIDTH * stride],
        };
        for (m, (&s, &prior)) in given.values.iter().zip(&given.log_prior).enumerate() {
            grid.inverse[m] = s as f32;
            grid.log_prior[m] = prior.max(-1e30) as f32;
            let x = s.sqrt() * (WIDTH - 1) as f64;
            let first = (x as usize).clamp(1, WIDTH - 3) - 1;
            let u = x - (first + 1) as f64;
            // Lagrange interpolation at −1, 0, 1 and 2.
            let cubic = [
                -u * (u - 1.0) * (u - 2.0) / 6.0,
                (u * u - 1.0) * (u - 2.0) / 2.0,
                -u * (u + 1.0) * (u - 2.0) / 2.0,
                (u * u - 1.0) * u / 6.0,
            ];
            for (i, w) in cubic.into_iter().enumerate() {
                grid.weights[(first + i) * stride + m] = w as f32;
            }
        }
        grid
    }

    /// Returns whether the grid contains exactly these inverse temperatures.
    pub fn is_of(&self, given: &InverseTemperatures) -> bool {
        self.given == *given
    }
}

/// The index of a knot is obtained from a single-precision number by dropping this many low-order bits.
const SHIFT: u32 = 19;
/// The bits of the smallest knot, λ = 2^-24, after the shift.
const FIRST: u32 = ((127 - 24) << 23) >> SHIFT;
/// The bits of the largest knot, λ = 2^40, after the shift.
const LAST: u32 = ((127 + 40) << 23) >> SHIFT;
const KNOTS: usize = (LAST - FIRST + 2) as usize;

/// Values of f_s, with one row per knot and one column per node.
#[derive(Clone, Debug)]
pub(crate) struct Knots {
    values: Vec<f32>,
}

impl Knots {
    pub fn new(simd: Simd) -> Self {
        let mut values = vec![0.0; KNOTS * WIDTH];
        for (j, row) in values.chunks_exact_mut(WIDTH).enumerate() {
            let x = f32::from_bits((FIRST + j as u32) << SHIFT);
            gamma_ratios(simd, x, row);
        }
        Self { values }
    }

    /// Returns the index of the knot below `x`, and the interpolation weight of the next knot.
    #[inline(always)]
    fn locate(x: f32) -> (usize, f32) {
        let bits = x.to_bits();
        let j = (bits >> SHIFT).clamp(FIRST, LAST) - FIRST;
        let share = (bits & ((1 << SHIFT) - 1)) as f32 / (1 << SHIFT) as f32;
        (j as usize, share)
    }

    /// Returns the rows of the knots below and above `x`, and the interpolation weight of the second row.
    #[inline(always)]
    pub fn around(&self, x: f32) -> (&[f32], &[f32], f32) {
        let (j, share) = Self::locate(x);
        let rows = &self.values[j * WIDTH..(j + 2) * WIDTH];
        (&rows[..WIDTH], &rows[WIDTH..], share)
    }
}

pub(crate) fn gamma_ratios(simd: Simd, x: f32, out: &mut [f32]) {
    out.fill(0.0);
    kernel::add_gamma_ratios(simd, x, nodes(), &[0.0; WIDTH], &[1.0; WIDTH], out);
}

const GROUP: usize = WIDTH;

pub(crate) fn power_table(globals: &LdaGlobals, knots: &Knots) -> PowerTable {
    let (topics, stride) = (globals.topics, globals.stride);
    let (eta, decay) = (globals.eta as f32, globals.decay as f32);
    let totals: Vec<f64> = globals.lambda_totals().collect();
    let mut powers = vec![0.0f32; topics * WIDTH];
    powers
        .par_chunks_mut(GROUP * WIDTH)
        .enumerate()
        .for_each(|(group, out)| {
            let first = group * GROUP;
            let count = out.len() / WIDTH;
            let mut weights = vec![0.0f32; KNOTS * GROUP];
            for row in globals.mass.chunks_exact(stride) {
                for (k, m) in row[first..first + count].iter().enumerate() {
                    let (j, share) = Knots::locate(m * decay + eta);
                    let at = j * GROUP + k;
                    weights[at] += 1.0 - share;
                    weights[at + GROUP] += share;
                }
            }
            for (k, out) in out.chunks_exact_mut(WIDTH).enumerate() {
                let mut sums = [0.0f64; WIDTH];
                for (j, values) in knots.values.chunks_exact(WIDTH).enumerate() {
                    let w = weights[j * GROUP + k];
                    if w > 0.0 {
                        for (sum, &f) in sums.iter_mut().zip(values) {
                            *sum += f64::from(w * f);
                        }
                    }
                }
                let total = totals[first + k];
                let base = special::lgamma(total);
                for ((out, sum), &s) in out.iter_mut().zip(sums).zip(nodes()) {
                    *out = (sum * (base - special::lgamma(total + f64::from(s))).exp()) as f32;
                }
            }
        });
    let mut total = vec![0.0f32; WIDTH];
    for row in powers.chunks_exact(WIDTH) {
        for (t, p) in total.iter_mut().zip(row) {
            *t += p;
        }
    }
    PowerTable { powers, total }
}
