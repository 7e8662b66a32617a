//! The Kalman filter and smoother of a Markov chain with a weight on the first coordinate of each state.
//!
//! The chain has the precision Q and the weights Ω, and the posterior precision is Q + Ω. Q itself is never formed: its
//! entries grow without limit as nodes approach each other, and differences of them would have no correct digits. The
//! filter instead propagates covariances P of a state given the nodes before it. With the gain `g = ω/(1 + ωP₀₀)` and
//! `B = I − P e eᵀ g`, the covariance given the node itself is BP. The smoother (de Jong 1989) propagates matrices N for
//! which the posterior covariance of a state is `P − P N P`.

use crate::{Chain, Square};

pub(crate) type State = [f64; 3];

/// Returns the matrix with these elements.
pub(crate) fn square(element: impl Fn(usize, usize) -> f64) -> Square {
    [0, 1, 2].map(|i| [0, 1, 2].map(|j| element(i, j)))
}

pub(crate) fn times(a: &Square, b: &Square) -> Square {
    square(|i, j| a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j])
}

pub(crate) fn transpose(a: &Square) -> Square {
    square(|i, j| a[j][i])
}

/// Computes `a s aᵀ` for a symmetric matrix s. The result is exactly symmetric.
fn conjugate(a: &Square, s: &Square) -> Square {
    let half = times(a, s);
    let product =
        |i: usize, j: usize| half[i][0] * a[j][0] + half[i][1] * a[j][1] + half[i][2] * a[j][2];
    square(|i, j| product(i.max(j), i.min(j)))
}

pub(crate) fn apply(a: &Square, x: &State) -> State {
    [0, 1, 2].map(|i| a[i][0] * x[0] + a[i][1] * x[1] + a[i][2] * x[2])
}

pub(crate) fn apply_transposed(a: &Square, x: &State) -> State {
    [0, 1, 2].map(|i| a[0][i] * x[0] + a[1][i] * x[1] + a[2][i] * x[2])
}

pub(crate) fn sum(a: &State, b: &State) -> State {
    [0, 1, 2].map(|i| a[i] + b[i])
}

/// Computes the lower Cholesky factor of a positive semi-definite matrix. Pivots that rounding makes negative count as
/// zero.
fn root(a: &Square) -> Square {
    let mut out = Square::default();
    for j in 0..3 {
        let square = a[j][j] - (0..j).map(|k| out[j][k] * out[j][k]).sum::<f64>();
        let pivot = square.max(0.0).sqrt();
        out[j][j] = pivot;
        for i in j + 1..3 {
            let rest = a[i][j] - (0..j).map(|k| out[i][k] * out[j][k]).sum::<f64>();
            out[i][j] = if pivot > 0.0 { rest / pivot } else { 0.0 };
        }
    }
    out
}

/// Solves `a x = b` for the factor of a.
fn solve(root: &Square, b: &State) -> State {
    let mut x = *b;
    for i in 0..3 {
        let known: f64 = (0..i).map(|k| root[i][k] * x[k]).sum();
        x[i] = if root[i][i] > 0.0 {
            (x[i] - known) / root[i][i]
        } else {
            0.0
        };
    }
    for i in (0..3).rev() {
        let known: f64 = (i + 1..3).map(|k| root[k][i] * x[k]).sum();
        x[i] = if root[i][i] > 0.0 {
            (x[i] - known) / root[i][i]
        } else {
            0.0
        };
    }
    x
}

#[derive(Default)]
pub(crate) struct Filter {
    /// The covariance of each state given the nodes before it.
    predicted: Vec<Square>,
    /// The numbers 1 + ωP₀₀.
    pivot: Vec<f64>,
    gain: Vec<f64>,
    /// log |I + ΩΣ|.
    pub(crate) log_determinant: f64,
}

impl Filter {
    /// Returns `None` if the posterior precision is not positive definite.
    pub(crate) fn new(chain: &Chain, weights: &[f64]) -> Option<Self> {
        let mut out = Self::default();
        let mut p = chain.initial;
        // The precision is positive definite if the pivots of Ω⁻¹ + Σ have as many negative signs as Ω
        // (Haynsworth's inertia). A pivot is 1/g.
        let mut surplus = 0i64;
        for (k, &weight) in weights.iter().enumerate() {
            let pivot = 1.0 + weight * p[0][0];
            if !pivot.is_finite() || pivot == 0.0 {
                return None;
            }
            if pivot < 0.0 {
                surplus += if weight < 0.0 { -1 } else { 1 };
            }
            out.log_determinant += pivot.abs().ln();
            let gain = weight / pivot;
            out.predicted.push(p);
            out.pivot.push(pivot);
            out.gain.push(gain);
            if let Some(step) = chain.steps.get(k) {
                let moved = conjugate(&step.transition, &out.filtered(k));
                p = square(|i, j| moved[i][j] + step.noise[i][j]);
            }
        }
        (surplus == 0).then_some(out)
    }

    /// Computes the covariance BP of a state given the nodes up to its own. Its first row does not cancel.
    fn filtered(&self, k: usize) -> Square {
        let (p, gain) = (&self.predicted[k], self.gain[k]);
        square(|i, j| match i == 0 || j == 0 {
            true => p[i][j] / self.pivot[k],
            false => p[i][j] - gain * p[i][0] * p[0][j],
        })
    }

    /// Computes `B x`.
    fn down(&self, k: usize, x: &State) -> State {
        let (p, moved) = (&self.predicted[k], self.gain[k] * x[0]);
        [
            x[0] / self.pivot[k],
            x[1] - p[1][0] * moved,
            x[2] - p[2][0] * moved,
        ]
    }

    /// Computes `Bᵀ x`.
    fn down_transposed(&self, k: usize, x: &State) -> State {
        let (p, gain) = (&self.predicted[k], self.gain[k]);
        let first = x[0] / self.pivot[k] - gain * (p[1][0] * x[1] + p[2][0] * x[2]);
        [first, x[1], x[2]]
    }

    /// Computes (Q + Ω)⁻¹ b. The elements of b and of the result are the coordinates of one state after another.
    pub(crate) fn solve(&self, chain: &Chain, b: &mut [f64]) {
        let (size, nodes) = (chain.size, self.gain.len());
        let at = |b: &[f64], k: usize| -> State {
            let mut out = State::default();
            out[..size].copy_from_slice(&b[k * size..(k + 1) * size]);
            out
        };
        let mut means = Vec::with_capacity(nodes);
        let mut mean = State::default();
        for k in 0..nodes {
            means.push(mean);
            if let Some(step) = chain.steps.get(k) {
                let informed = sum(&mean, &apply(&self.predicted[k], &at(b, k)));
                mean = apply(&step.transition, &self.down(k, &informed));
            }
        }
        let mut pull = State::default();
        for k in (0..nodes).rev() {
            if let Some(step) = chain.steps.get(k) {
                pull = apply_transposed(&step.transition, &pull);
            }
            pull = self.down_transposed(k, &sum(&at(b, k), &pull));
            pull[0] -= self.gain[k] * means[k][0];
            let x = sum(&means[k], &apply(&self.predicted[k], &pull));
            b[k * size..(k + 1) * size].copy_from_slice(&x[..size]);
        }
    }

    /// Computes the matrices N of the smoother.
    pub(crate) fn smoother(&self, chain: &Chain) -> Vec<Square> {
        let nodes = self.gain.len();
        let mut out = vec![Square::default(); nodes];
        let mut next = Square::default();
        for k in (0..nodes).rev() {
            if let Some(step) = chain.steps.get(k) {
                next = conjugate(&transpose(&step.transition), &next);
            }
            // Column j of B is B applied to the unit vector j.
            let units = square(|i, j| f64::from(i == j));
            let transposed = units.map(|unit| self.down(k, &unit));
            next = conjugate(&transposed, &next);
            next[0][0] += self.gain[k];
            out[k] = next;
        }
        out
    }

    /// Computes the posterior covariance of a state.
    pub(crate) fn covariance(&self, k: usize, smoother: &Square) -> Square {
        let p = &self.predicted[k];
        let known = conjugate(p, smoother);
        square(|i, j| p[i][j] - known[i][j])
    }

    /// Computes `A B P`, the covariance of the next state with this one given the nodes up to this one.
    pub(crate) fn onward(&self, chain: &Chain, k: usize) -> Square {
        times(&chain.steps[k].transition, &self.filtered(k))
    }

    /// Converts independent standard normal numbers to a draw with mean 0 and precision Q + Ω, from the last state to
    /// the first.
    pub(crate) fn draw(&self, chain: &Chain, z: &mut [f64]) {
        let (size, nodes) = (chain.size, self.gain.len());
        let mut next = State::default();
        for k in (0..nodes).rev() {
            let mut own = State::default();
            own[..size].copy_from_slice(&z[k * size..(k + 1) * size]);
            let filtered = self.filtered(k);
            let (mut mean, mut spread) = (State::default(), filtered);
            if k + 1 < nodes {
                let onward = self.onward(chain, k);
                let factor = root(&self.predicted[k + 1]);
                mean = apply_transposed(&onward, &solve(&factor, &next));
                let back = transpose(&onward);
                // Row i of the matrix of regression coefficients on the next state.
                let gains = [0, 1, 2].map(|i| solve(&factor, &back[i]));
                let known = times(&gains, &onward);
                spread = square(|i, j| filtered[i][j] - known[i][j]);
            }
            next = sum(&mean, &apply(&root(&spread), &own));
            z[k * size..(k + 1) * size].copy_from_slice(&next[..size]);
        }
    }
}
