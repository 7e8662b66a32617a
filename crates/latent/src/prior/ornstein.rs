//! The stationary autoregression in continuous time, which is an Ornstein–Uhlenbeck process. The correlation of two
//! times is ρ to the power of their distance. Its precision is tridiagonal (Rue and Held 2005, section 1.1).
//!
//! With `r = ρ^d` for the distance d of two neighbours, a node has the diagonal entry `(1 + Σ r²/(1 − r²))/variance`
//! with a sum over its one or two neighbours, and neighbours have the entry `−r/(1 − r²)/variance`.

use super::field::{Field, FieldKind};
use super::setting::Setting;
use super::times::Bridge;
use crate::{Error, Range};

impl Field {
    /// Returns a stationary autoregression over nodes with these distances between neighbours. The correlation over a
    /// distance of 1 is `rho`, which must be positive.
    ///
    /// # Errors
    /// Fails if there are fewer than two nodes.
    pub fn ornstein(
        gaps: Vec<f64>,
        rho: Option<f64>,
        variance: Option<f64>,
    ) -> Result<Self, Error> {
        if gaps.is_empty() {
            return Err(Error::Prior(
                "an autoregression needs at least two nodes".to_owned(),
            ));
        }
        let rho = Setting {
            range: Range::Between(0.0, 1.0),
            ..Setting::positive("rho", rho, 0.9)
        };
        let nodes = gaps.len() + 1;
        let neighbours = (0..nodes).flat_map(|j| {
            let (first, last) = (j.saturating_sub(1), (j + 1).min(nodes - 1));
            (first..=last).map(move |i| (i, j, 0.0))
        });
        let pattern = [neighbours.collect()];
        let settings = vec![rho, Setting::positive("variance", variance, 1.0)];
        Self::from_terms(nodes, &pattern, FieldKind::Ornstein { gaps }, settings)
    }
}

/// The correlation r over a distance and 1/(1 − r²), which are accurate for short distances too.
fn correlation(rho: f64, distance: f64) -> (f64, f64) {
    let log = distance * rho.ln();
    (log.exp(), -1.0 / (2.0 * log).exp_m1())
}

/// The entries of the precision in the order of a tridiagonal pattern, and log |Q|. Both have derivatives with respect
/// to ρ and to the variance.
pub(super) struct Entries {
    pub(super) value: Vec<f64>,
    pub(super) slope: [Vec<f64>; 2],
    pub(super) log_determinant: (f64, [f64; 2]),
}

pub(super) fn entries(gaps: &[f64], rho: f64, variance: f64) -> Entries {
    let nodes = gaps.len() + 1;
    let mut value = Vec::with_capacity(3 * nodes);
    let mut by_rho = Vec::with_capacity(3 * nodes);
    // For each gap: the amount that it adds to the diagonal, the entry beside the diagonal, and their slopes.
    let each: Vec<[f64; 4]> = (gaps.iter())
        .map(|d| {
            let (r, q) = correlation(rho, *d);
            let slope = d / rho * r * q * q;
            [r * r * q, -r * q, 2.0 * r * slope, -(1.0 + r * r) * slope]
        })
        .collect();
    for j in 0..nodes {
        let (before, after) = (j.checked_sub(1).map(|i| each[i]), each.get(j));
        let sum = |k: usize| before.map_or(0.0, |e| e[k]) + after.map_or(0.0, |e| e[k]);
        let column = [
            before.map(|e| (e[1], e[3])),
            Some((1.0 + sum(0), sum(2))),
            after.map(|e| (e[1], e[3])),
        ];
        for (entry, slope) in column.into_iter().flatten() {
            value.push(entry / variance);
            by_rho.push(slope / variance);
        }
    }
    let (mut log, mut by_log) = (-(nodes as f64) * variance.ln(), 0.0);
    for d in gaps {
        let (r, q) = correlation(rho, *d);
        log += q.ln();
        by_log += 2.0 * r * r * q * d / rho;
    }
    Entries {
        slope: [by_rho, value.iter().map(|q| -q / variance).collect()],
        value,
        log_determinant: (log, [by_log, -(nodes as f64) / variance]),
    }
}

/// Returns the distribution of the process at a time, given the process at the distances before and after it.
pub(super) fn bridge(rho: f64, variance: f64, distances: [Option<f64>; 2]) -> Bridge {
    match distances {
        [Some(left), Some(right)] => {
            let ((l, ql), (r, qr)) = (correlation(rho, left), correlation(rho, right));
            let (_, whole) = correlation(rho, left + right);
            Bridge {
                before: l * whole / qr,
                after: r * whole / ql,
                sd: (variance * whole / (ql * qr)).sqrt(),
            }
        }
        [Some(distance), None] | [None, Some(distance)] => {
            let (r, q) = correlation(rho, distance);
            Bridge {
                before: r,
                after: r,
                sd: (variance / q).sqrt(),
            }
        }
        [None, None] => unreachable!("there is a node"),
    }
}
