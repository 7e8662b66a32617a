//! Integrals with separate limits and parameters for each lane, by the double exponential rule of Takahasi and Mori
//! (1974). The integrand is evaluated for all lanes at once.
//!
//! Each node is a row of six numbers. The abscissa is `x = a₀·a + b₀·b + c₀`, the signed distance to the nearer limit
//! is `d₀·(b − a)`, and the weight of the integrand is `w₀·(b − a) + w₁`. The abscissas are therefore functions of the
//! limits a and b, so derivatives with respect to the limits need no special treatment. The rule halves the distance
//! between nodes until the sum converges. The number of halvings is called the level. It differs between lanes.

use super::{Differentiable, Point, System};

/// Which limits of an integral are finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ends {
    /// Whether the lower limit is finite.
    pub lower: bool,
    /// Whether the upper limit is finite.
    pub upper: bool,
}

/// An integral that depends on the limits a and b and on further parameters θ. The system returns one row: the
/// integrand times the weight of the node.
#[derive(Clone, Debug, PartialEq)]
pub struct Integral {
    /// Which limits are finite.
    pub ends: Ends,
    /// The number of parameters, including the limits.
    pub parameters: usize,
    /// The tolerance, relative to the integral of the absolute value of the integrand.
    pub relative: f64,
}

/// The number of rows per node.
pub const NODE: usize = 6;

/// Nodes beyond this argument have negligible weight.
const REACH: f64 = 6.5;

/// The logarithm of the largest abscissa on infinite intervals. The abscissa itself is e^115, or about 1e50, so that
/// its powers stay finite.
const FARTHEST: f64 = 115.0;

const LEVELS: u32 = 11;

impl Integral {
    fn node(&self, t: f64) -> Option<[f64; NODE]> {
        let half_pi = std::f64::consts::FRAC_PI_2;
        let (s, c) = (half_pi * t.sinh(), half_pi * t.cosh());
        let node = match (self.ends.lower, self.ends.upper) {
            (true, true) => {
                let far = 1.0 / (1.0 + (2.0 * s.abs()).exp());
                let weight = 0.5 * c / s.cosh().powi(2);
                if t < 0.0 {
                    [1.0 - far, far, 0.0, -far, weight, 0.0]
                } else {
                    [far, 1.0 - far, 0.0, far, weight, 0.0]
                }
            }
            _ if s.abs() > FARTHEST => return None,
            (true, false) => [1.0, 0.0, s.exp(), f64::NAN, 0.0, c * s.exp()],
            (false, true) => [0.0, 1.0, -s.exp(), f64::NAN, 0.0, c * s.exp()],
            (false, false) => [0.0, 0.0, s.sinh(), f64::NAN, 0.0, c * s.cosh()],
        };
        let distance = if self.ends.lower && self.ends.upper {
            node[3]
        } else {
            1.0
        };
        let counts = node[4] + node[5];
        (distance != 0.0 && counts.is_finite() && counts != 0.0 && node[2].is_finite())
            .then_some(node)
    }

    fn level(level: u32) -> impl Iterator<Item = f64> {
        let step = 0.5_f64.powi(level as i32);
        let count = (REACH / step) as i32;
        (-count..=count)
            .filter(move |k| level == 0 || k % 2 != 0)
            .map(move |k| f64::from(k) * step)
    }

    fn visit(&self, level: u32, lanes: usize, mut visit: impl FnMut(&[f64])) {
        let mut rows = vec![0.0; NODE * lanes];
        for node in Self::level(level).filter_map(|t| self.node(t)) {
            for (row, x) in rows.chunks_exact_mut(lanes).zip(node) {
                row.fill(x);
            }
            visit(&rows);
        }
    }

    /// Computes the integrals of all copies, with one row per copy, and returns the level of each lane. If the sum does
    /// not converge, the integral is NaN.
    pub fn solve(
        &self,
        system: &mut dyn System,
        copies: usize,
        x: &[f64],
        lanes: usize,
        out: &mut [f64],
    ) -> Vec<u32> {
        let mut sums = vec![0.0; copies * lanes];
        let mut values = sums.clone();
        let mut last = vec![f64::NAN; lanes];
        let mut masses = vec![0.0; lanes];
        let mut levels = vec![0; lanes];
        let mut going: Vec<bool> = (0..lanes)
            .map(|lane| self.begins(x, lanes, lane, out, copies))
            .collect();
        for level in 0..=LEVELS {
            if !going.contains(&true) {
                break;
            }
            let step = 0.5_f64.powi(level as i32);
            self.visit(level, lanes, |node| {
                let point = Point {
                    clock: node,
                    states: &[],
                    parameters: x,
                    lanes,
                };
                system.rate(point, &mut values);
                for (sum, value) in sums.iter_mut().zip(&values) {
                    *sum += value;
                }
                for (mass, value) in masses.iter_mut().zip(&values) {
                    *mass += value.abs();
                }
            });
            for lane in 0..lanes {
                if !going[lane] {
                    continue;
                }
                let refined = sums[lane] * step;
                let change = (refined - last[lane]).abs();
                // The error of a level is about the square of the change from the previous level.
                let settled = change <= 0.1 * self.relative * masses[lane] * step;
                last[lane] = refined;
                levels[lane] = level;
                if (level > 2 && settled) || !refined.is_finite() {
                    going[lane] = false;
                    for copy in 0..copies {
                        out[copy * lanes + lane] = sums[copy * lanes + lane] * step;
                    }
                }
            }
        }
        for lane in (0..lanes).filter(|lane| going[*lane]) {
            (0..copies).for_each(|copy| out[copy * lanes + lane] = f64::NAN);
        }
        levels
    }

    /// Returns whether the limits of a lane are in ascending order. If they are not, the function sets the integrals of
    /// the lane to NaN.
    fn begins(&self, x: &[f64], lanes: usize, lane: usize, out: &mut [f64], copies: usize) -> bool {
        let ordered = !(self.ends.lower && self.ends.upper) || x[lane] <= x[lanes + lane];
        if !ordered {
            (0..copies).for_each(|copy| out[copy * lanes + lane] = f64::NAN);
        }
        ordered
    }

    /// Multiplies `weights` by the derivatives of the integrals with respect to the first copy of the parameters. The
    /// integrals are computed at the given levels. `weights` has one row per copy.
    pub fn pull(
        &self,
        system: &mut dyn Differentiable,
        (copies, x, levels): (usize, &[f64], &[u32]),
        lanes: usize,
        weights: &[f64],
        out: &mut [f64],
    ) {
        out.fill(0.0);
        let mut by_parameter = vec![0.0; copies * self.parameters * lanes];
        let mut scaled = weights.to_vec();
        for copy in 0..copies {
            for lane in 0..lanes {
                scaled[copy * lanes + lane] *= 0.5_f64.powi(levels[lane] as i32);
            }
        }
        for level in 0..=levels.iter().copied().max().unwrap_or(0) {
            self.visit(level, lanes, |node| {
                let point = Point {
                    clock: node,
                    states: &[],
                    parameters: x,
                    lanes,
                };
                system.pull(point, &scaled, &mut [], &mut by_parameter);
                for (row, from) in out
                    .chunks_exact_mut(lanes)
                    .zip(by_parameter.chunks_exact(lanes))
                {
                    for ((o, b), own) in row.iter_mut().zip(from).zip(levels) {
                        if level <= *own {
                            *o += b;
                        }
                    }
                }
            });
        }
    }
}
