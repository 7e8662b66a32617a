//! Finds other modes of the hyperparameters' posterior.

use jensen_math::special::log_sum_exp_slice;

use crate::Error;
use crate::frame::{Frame, frame};
use crate::learn::{Mode, Surface, climb};
use crate::linear::kernels::dot;
use crate::rules::FALL;

/// Largest number of modes. A mixture of this many designs or grids is still affordable.
const MOST: usize = 4;

/// Two modes are the same if one is within this many standard deviations of the other.
const SAME: f64 = 1.0;

/// A mode with the standard coordinates around it.
pub(crate) struct Peak {
    pub mode: Mode,
    pub frame: Frame,
}

/// Finds modes within a few nats of the highest. The search moves from each known mode by a standard deviation of the
/// prior along each hyperparameter, in both directions. The other hyperparameters keep their values in one move, and move
/// to their conditional means in a second one. If the posterior falls by less than half of the fall of the normal
/// approximation, another mode may be near, and the search climbs from there. Returns `None` if the run was stopped.
///
/// The two moves find different modes. Conditional means lead along a ridge, but far from the mode they can be wrong by
/// orders of magnitude: of six tables with a slow and a fast oscillation, they miss the fast one in three.
///
/// A mode that differs in several hyperparameters at once is not found if the posterior along each single one falls
/// as expected.
pub(crate) fn modes(surface: &Surface<'_>, known: Vec<Mode>) -> Result<Option<Vec<Peak>>, Error> {
    let mut found = Vec::with_capacity(known.len());
    for mode in known {
        let Some(around) = frame(surface, &mode.x, &mode.warm)? else {
            return Ok(None);
        };
        found.push(Peak {
            mode,
            frame: around,
        });
    }
    let mut next = 0;
    while next < found.len() {
        for start in starts(surface, &found[next]) {
            let Some(start) = start else {
                return Ok(None);
            };
            if found.len() >= MOST || is_known(&found, &start) {
                continue;
            }
            let warm = &found[next].mode.warm;
            let Some(mode) = climb(surface, start, warm, |x| is_known(&found, x)) else {
                continue;
            };
            let Some(around) = frame(surface, &mode.x, &mode.warm)? else {
                return Ok(None);
            };
            found.push(Peak {
                mode,
                frame: around,
            });
        }
        next += 1;
    }
    let top = (found.iter()).fold(f64::NEG_INFINITY, |top, p| top.max(p.mode.objective));
    found.retain(|peak| peak.mode.objective > top - FALL);
    Ok(Some(found))
}

/// Returns the logarithm of the share of each mode at x: its normal approximation divided by the sum over all modes.
pub(crate) fn log_shares(peaks: &[Peak], x: &[f64]) -> Vec<f64> {
    let logs: Vec<f64> = (peaks.iter())
        .map(|peak| peak.mode.objective - 0.5 * peak.frame.square_distance(x))
        .collect();
    let total = log_sum_exp_slice(&logs);
    logs.iter().map(|log| log - total).collect()
}

fn is_known(found: &[Peak], x: &[f64]) -> bool {
    (found.iter()).any(|peak| peak.frame.square_distance(x) < SAME * SAME)
}

/// Returns points from which a climb may reach another mode. An element is `None` if the run was stopped.
fn starts(surface: &Surface<'_>, from: &Peak) -> Vec<Option<Vec<f64>>> {
    let Peak { mode, frame } = from;
    let n = mode.x.len();
    let mut starts = Vec::new();
    for i in 0..n {
        let own: Vec<f64> = (0..n).map(|k| frame.axes.get(i, k)).collect();
        let variance = dot(&own, &own);
        for side in [-1.0, 1.0] {
            let mut alone = mode.x.clone();
            alone[i] += side;
            let z: Vec<f64> = own.iter().map(|a| side * a / variance).collect();
            let mut best: Option<(f64, Vec<f64>)> = None;
            for x in [alone, frame.at(&z)] {
                let fall = 0.5 * frame.square_distance(&x);
                // The exploration around the mode covers moves of a few standard deviations.
                if fall < FALL {
                    continue;
                }
                match surface.value(&x, &mode.warm) {
                    Ok(None) => starts.push(None),
                    Ok(Some((_, objective))) => {
                        let near = mode.objective - objective < 0.5 * fall;
                        if near && best.as_ref().is_none_or(|(top, _)| objective > *top) {
                            best = Some((objective, x));
                        }
                    }
                    // A point at which the fit fails has no mode near it.
                    Err(_) => {}
                }
            }
            starts.extend(best.map(|(_, x)| Some(x)));
        }
    }
    starts
}
