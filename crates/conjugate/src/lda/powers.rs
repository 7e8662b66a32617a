//! Σ_v E[β_kv^s] for every topic and inverse temperature: what local temperatures need of λ.
//!
//! E[β_kv^s] = f_s(λ_kv) / f_s(Σ_v λ_kv) with f_s(x) = Γ(x + s) / Γ(x). Evaluating it for V terms, K topics and a hundred
//! s would cost more than a pass over the data, but f_s is smooth and concave in x: λ is spread over nodes, sixteen
//! to a factor of two, with linear weights, and f_s is evaluated at the nodes alone. The interpolation is exact at s = 0
//! and s = 1 and off by less than 1e-4 of the value in between.

use jensen_fit::{Archive, ArchiveError, Snapshot};
use jensen_math::special;
use rayon::prelude::*;

use super::globals::LdaGlobals;
use crate::simd32::padded;

/// The sums for every topic, padded rows over the grid, and their total over topics.
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
            total: narrow(archive.vec("total")?),
        })
    }
}

/// A grid of inverse temperatures padded to whole vectors with ones.
pub(crate) fn padded_grid(grid: &[f64]) -> Vec<f32> {
    let mut out: Vec<f32> = grid.iter().map(|&s| s as f32).collect();
    out.resize(padded(grid.len()), 1.0);
    out
}

/// Bits of a single-precision number below the node number.
const SHIFT: u32 = 19;
/// The smallest λ with nodes of its own, 2^-24; below it f_s is linear to a good approximation anyway.
const FIRST: u32 = ((127 - 24) << 23) >> SHIFT;
/// The largest, 2^40.
const LAST: u32 = ((127 + 40) << 23) >> SHIFT;
const NODES: usize = (LAST - FIRST + 2) as usize;

/// The number at a node.
fn node(j: usize) -> f64 {
    f64::from(f32::from_bits((FIRST + j as u32) << SHIFT))
}

/// Topics that are handled together.
const GROUP: usize = 16;

/// The table at the present globals.
pub(crate) fn power_table(globals: &LdaGlobals, grid: &[f64]) -> PowerTable {
    let width = padded(grid.len());
    let (topics, stride) = (globals.topics, globals.stride);
    let (eta, decay) = (globals.eta as f32, globals.decay as f32);
    // Only nodes up to the largest λ matter; most of the work is in the tables of f_s.
    let nodes: Vec<f64> = (0..NODES).map(node).collect();
    let values: Vec<f32> = nodes
        .par_iter()
        .flat_map_iter(|&x| {
            let base = special::lgamma(x);
            let mut row: Vec<f32> = grid
                .iter()
                .map(|s| (special::lgamma(x + s) - base).exp() as f32)
                .collect();
            row.resize(width, 0.0);
            row
        })
        .collect();
    let totals: Vec<f64> = globals.lambda_totals().collect();
    let mut powers = vec![0.0f32; topics * width];
    powers
        .par_chunks_mut(GROUP * width)
        .enumerate()
        .for_each(|(group, out)| {
            let first = group * GROUP;
            let count = out.len() / width;
            let mut weights = vec![0.0f32; NODES * GROUP];
            for row in globals.mass.chunks_exact(stride) {
                for (k, m) in row[first..first + count].iter().enumerate() {
                    let lambda = m.mul_add(decay, eta);
                    let bits = lambda.to_bits();
                    let j = (bits >> SHIFT).clamp(FIRST, LAST) - FIRST;
                    let share = (bits & ((1 << SHIFT) - 1)) as f32 / (1 << SHIFT) as f32;
                    let at = j as usize * GROUP + k;
                    weights[at] += 1.0 - share;
                    weights[at + GROUP] += share;
                }
            }
            for (k, out) in out.chunks_exact_mut(width).enumerate() {
                let mut sums = vec![0.0f64; width];
                for (j, values) in values.chunks_exact(width).enumerate() {
                    let w = f64::from(weights[j * GROUP + k]);
                    if w > 0.0 {
                        for (sum, &f) in sums.iter_mut().zip(values) {
                            *sum += w * f64::from(f);
                        }
                    }
                }
                let total = totals[first + k];
                let base = special::lgamma(total);
                for ((out, sum), s) in out.iter_mut().zip(sums).zip(grid) {
                    *out = (sum * (base - special::lgamma(total + s)).exp()) as f32;
                }
            }
        });
    let mut total = vec![0.0f32; width];
    for row in powers.chunks_exact(width) {
        for (t, p) in total.iter_mut().zip(row) {
            *t += p;
        }
    }
    PowerTable { powers, total }
}
