//! A piecewise quadratic upper bound on log(1 + e^x), after Marlin, Khan and Murphy (2011).
//!
//! Each piece interpolates the function at the Chebyshev nodes of its interval. It is then raised until it is nowhere
//! below the function on this interval. The intervals are chosen so that every piece exceeds the function by at most
//! [`EXCESS`]. The right half mirrors the left half by `log(1 + e^x) = x + log(1 + e^−x)`. In the tails, the bound is
//! constant or linear. The expectation under N(m, v) and its derivatives are sums of truncated normal moments.

use jensen_math::special::{erfc, log1p_exp};

use super::convex::Value;

pub(crate) const EXCESS: f64 = 1e-4;

/// The function `constant + linear x + square x²` from `start` to the next piece.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    start: f64,
    constant: f64,
    linear: f64,
    square: f64,
}

/// The pieces in order from −∞ to ∞.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pieces(Vec<Piece>);

/// Computes the raised interpolant on [low, high] ⊂ (−∞, 0], and the largest amount by which it exceeds the function.
fn interpolate(low: f64, high: f64) -> (Piece, f64) {
    let (centre, half) = (0.5 * (low + high), 0.5 * (high - low));
    // In t = (x − centre)/half the nodes are −r, 0, r with r = √3/2.
    let r = 0.75f64.sqrt();
    let f = |t: f64| log1p_exp(centre + half * t);
    let (minus, zero, plus) = (f(-r), f(0.0), f(r));
    let (one, two) = (
        (plus - minus) / (2.0 * r),
        (plus + minus - 2.0 * zero) / (2.0 * r * r),
    );
    let excess = |t: f64| zero + t * (one + t * two) - f(t);
    let (mut least, mut most) = (0.0_f64, 0.0_f64);
    for i in 0..=2000 {
        let e = excess(f64::from(i) / 1000.0 - 1.0);
        (least, most) = (least.min(e), most.max(e));
    }
    // Between two adjacent sampled points, the excess changes by less than a thousandth of its range squared.
    let lift = -least + 1e-5 * (most - least);
    let (one, two) = (one / half, two / (half * half));
    let piece = Piece {
        start: low,
        constant: zero + lift - one * centre + two * centre * centre,
        linear: one - 2.0 * two * centre,
        square: two,
    };
    (piece, most + lift)
}

impl Pieces {
    pub(crate) fn new() -> Self {
        let mut left = Vec::new();
        let mut high = 0.0;
        while log1p_exp(high) > EXCESS {
            // Bisection finds the longest interval on which the excess is within its limit.
            let (mut short, mut long) = (0.0, 20.0);
            for _ in 0..60 {
                let middle = 0.5 * (short + long);
                if interpolate(high - middle, high).1 > EXCESS {
                    long = middle;
                } else {
                    short = middle;
                }
            }
            left.push(interpolate(high - short, high).0);
            high -= short;
        }
        let tail = log1p_exp(high);
        let mut pieces = vec![Piece {
            start: f64::NEG_INFINITY,
            constant: tail,
            linear: 0.0,
            square: 0.0,
        }];
        pieces.extend(left.iter().rev());
        // In the mirrored half, piece k ends where piece k of the left half starts.
        let mut start = 0.0;
        for piece in &left {
            pieces.push(Piece {
                start,
                constant: piece.constant,
                linear: 1.0 - piece.linear,
                square: piece.square,
            });
            start = -piece.start;
        }
        pieces.push(Piece {
            start,
            constant: tail,
            linear: 1.0,
            square: 0.0,
        });
        Self(pieces)
    }

    pub(crate) fn expectation(&self, m: f64, v: f64) -> Value {
        let sd = v.max(1e-12).sqrt();
        let mut out = Value::default();
        let mut low = Edge::at(f64::NEG_INFINITY);
        for (k, piece) in self.0.iter().enumerate() {
            let end = self.0.get(k + 1).map_or(f64::INFINITY, |next| next.start);
            let high = Edge::at((end - m) / sd);
            // This is ∫ z^k φ over the piece.
            let m0 = if low.z > 0.0 {
                low.above - high.above
            } else {
                high.below - low.below
            };
            let part = |power: i32| low.weighted(power) - high.weighted(power);
            let m1 = part(0);
            let m2 = m0 + part(1);
            let m3 = 2.0 * m1 + part(2);
            let m4 = 3.0 * m2 + part(3);
            let a = piece.constant + m * (piece.linear + piece.square * m);
            let b = sd * (piece.linear + 2.0 * piece.square * m);
            let c = sd * sd * piece.square;
            out.f += a * m0 + b * m1 + c * m2;
            out.by_mean += (a * m1 + b * m2 + c * m3) / sd;
            out.by_variance += (a * (m2 - m0) + b * (m3 - m1) + c * (m4 - m2)) / (2.0 * sd * sd);
            low = high;
        }
        out
    }

    #[cfg(test)]
    fn at(&self, x: f64) -> f64 {
        let k = self.0.partition_point(|p| p.start <= x).max(1) - 1;
        let p = self.0[k];
        p.constant + x * (p.linear + p.square * x)
    }
}

#[derive(Clone, Copy)]
struct Edge {
    z: f64,
    density: f64,
    below: f64,
    above: f64,
}

impl Edge {
    fn at(z: f64) -> Self {
        let root = std::f64::consts::SQRT_2;
        Self {
            z,
            density: (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt(),
            below: 0.5 * erfc(-z / root),
            above: 0.5 * erfc(z / root),
        }
    }

    /// Computes `z^power φ(z)`, which is 0 at infinity.
    fn weighted(&self, power: i32) -> f64 {
        if self.density == 0.0 {
            0.0
        } else {
            self.z.powi(power) * self.density
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_lie_above_the_function_and_near_it() {
        let pieces = Pieces::new();
        assert!(pieces.0.len() < 40, "{} pieces", pieces.0.len());
        for i in -20_000..=20_000 {
            let x = f64::from(i) / 1000.0 + 1e-7;
            let above = pieces.at(x) - log1p_exp(x);
            assert!((0.0..1.001 * EXCESS).contains(&above), "{above} at {x}");
        }
    }
}
