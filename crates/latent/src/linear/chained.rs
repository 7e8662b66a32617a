//! Linear algebra for a Markov chain of states with a few other variables.
//!
//! The states f are eliminated by the filter and smoother, whose operations are linear in the number of nodes. The p
//! other variables o remain in a dense matrix. With `C = W_fᵀΛW_o`, the posterior covariance V of f given o, and `X =
//! VC`, the posterior precision of o is `S = Q_o + W_oᵀΛW_o − CᵀX`. A posterior mean or variance of f then has the
//! correction by X and S⁻¹ for the uncertainty of o.

use super::design;
use super::filter::{Filter, State, apply_transposed, square, times};
use super::kernels::{self, cholesky, map};
use crate::{
    Chain, ChainStep, CovarianceSensitivity, Dense, Design, Error, LatentModel, Sparse, Square,
};

pub(crate) struct ChainField {
    chain: Chain,
    /// The weights of the latent variables in each predictor, as columns.
    rows: Sparse,
    /// The node of each predictor and the weight of its state, if it depends on a state.
    own: Vec<Option<(usize, f64)>>,
    /// The number of other variables.
    others: usize,
    filter: Filter,
    smoother: Option<Vec<Square>>,
    /// Ω, the sum of the weights at each node.
    omega: Vec<f64>,
    /// C, with the rows of the nodes only.
    coupling: Dense,
    /// X.
    shares: Dense,
    /// The Cholesky factor of S.
    factor: Dense,
}

/// Numbers of vectors of latent variables and of predictors that a fit holds in memory at once, as measured.
const LATENT_VECTORS: u64 = 15;
const ROW_VECTORS: u64 = 70;

pub(crate) fn footprint(chain: &Chain, rows: u64) -> u64 {
    let (latents, others) = (chain.latents() as u64, chain.others.len() as u64);
    8 * (latents * (2 * others + LATENT_VECTORS) + rows * (2 * others + ROW_VECTORS))
}

impl ChainField {
    pub(crate) fn new(model: &LatentModel, chain: &Chain) -> Result<Self, Error> {
        let rows = design::to_sparse_transposed(&model.design, model.prior.len());
        let states = chain.states();
        let mut own = Vec::with_capacity(rows.cols);
        for n in 0..rows.cols {
            let (index, weights) = rows.col(n);
            let mut found = index.iter().zip(weights).filter(|(l, _)| **l < states);
            let first = found.next();
            let suits = first.is_none_or(|(l, _)| l % chain.size == 0);
            if found.next().is_some() || !suits {
                return Err(Error::Unsupported(
                    "a predictor must depend on the first coordinate of one state of a chain"
                        .to_owned(),
                ));
            }
            own.push(first.map(|(l, weight)| (l / chain.size, *weight)));
        }
        Ok(Self {
            rows,
            own,
            others: chain.others.len(),
            filter: Filter::default(),
            smoother: None,
            omega: Vec::new(),
            coupling: Dense::zeros(0, 0),
            shares: Dense::zeros(0, 0),
            factor: Dense::zeros(0, 0),
            chain: chain.clone(),
        })
    }

    /// Returns the weights of the other variables in a predictor.
    fn other_weights(&self, n: usize) -> impl Iterator<Item = (usize, f64)> {
        let (states, (index, weights)) = (self.chain.states(), self.rows.col(n));
        let each = index.iter().zip(weights);
        each.filter_map(move |(l, weight)| Some((l.checked_sub(states)?, *weight)))
    }

    pub(crate) fn factor(&mut self, lambda: &[f64]) -> Option<f64> {
        let (nodes, states, p) = (self.chain.nodes(), self.chain.states(), self.others);
        self.smoother = None;
        self.omega = vec![0.0; nodes];
        let mut coupling = Dense::zeros(nodes, p);
        let variances = &self.chain.others;
        let mut s = Dense::from_fn(p, p, |i, j| match i == j {
            true => 1.0 / variances[i],
            false => 0.0,
        });
        for (n, weight) in lambda.iter().enumerate() {
            if let Some((node, x)) = self.own[n] {
                self.omega[node] += weight * x * x;
                for (j, w) in self.other_weights(n) {
                    coupling.data[j * nodes + node] += weight * x * w;
                }
            }
            for (j, w) in self.other_weights(n) {
                for (i, v) in self.other_weights(n) {
                    s.data[j * p + i] += weight * w * v;
                }
            }
        }
        self.filter = Filter::new(&self.chain, &self.omega)?;
        let mut shares = Dense::zeros(states, p);
        for (j, column) in shares.data.chunks_mut(states).enumerate().take(p) {
            for (node, c) in coupling.col(j).iter().enumerate() {
                column[node * self.chain.size] = *c;
            }
            self.filter.solve(&self.chain, column);
        }
        for j in 0..p {
            for i in 0..p {
                let each = coupling.col(i).iter().enumerate();
                let terms: Vec<f64> = each
                    .map(|(node, c)| c * shares.get(node * self.chain.size, j))
                    .collect();
                s.data[j * p + i] -= jensen_math::sum::pairwise_sum(&terms);
            }
        }
        let mut log_determinant = self.filter.log_determinant;
        if p > 0 {
            cholesky(&mut s)?;
            log_determinant += kernels::log_determinant(&s);
            log_determinant += variances.iter().map(|v| v.ln()).sum::<f64>();
        }
        (self.coupling, self.shares, self.factor) = (coupling, shares, s);
        log_determinant.is_finite().then_some(log_determinant)
    }

    fn smooth(&mut self) {
        if self.smoother.is_none() {
            self.smoother = Some(self.filter.smoother(&self.chain));
        }
    }

    fn smoother(&self) -> &[Square] {
        self.smoother.as_deref().expect("smoothed by the caller")
    }

    /// Computes S⁻¹ x.
    fn solve_others(&self, x: &mut [f64]) {
        if self.others > 0 {
            kernels::solve(&self.factor, x);
        }
    }

    /// Computes the quadratic form `x S⁻¹ x`.
    fn spread(&self, x: &[f64]) -> f64 {
        if self.others == 0 {
            return 0.0;
        }
        let mut y = x.to_vec();
        let view = faer::MatMut::from_column_major_slice_mut(&mut y, self.others, 1);
        kernels::solve_lower(&self.factor, view);
        y.iter().map(|y| y * y).sum()
    }

    /// Computes the variances of the predictors.
    pub(crate) fn variances(&mut self) -> Vec<f64> {
        self.smooth();
        let (this, smoother) = (&*self, self.smoother());
        let at_nodes: Vec<f64> = map(self.chain.nodes(), |k| {
            this.filter.covariance(k, &smoother[k])[0][0]
        });
        map(self.rows.cols, |n| {
            let mut left = vec![0.0; this.others];
            this.other_weights(n).for_each(|(j, w)| left[j] += w);
            let mut variance = 0.0;
            if let Some((node, x)) = this.own[n] {
                variance = x * x * at_nodes[node];
                for (j, left) in left.iter_mut().enumerate() {
                    *left -= x * this.shares.get(node * this.chain.size, j);
                }
            }
            variance + this.spread(&left)
        })
    }

    pub(crate) fn latent_variances(&mut self) -> Vec<f64> {
        self.smooth();
        let (this, smoother, size) = (&*self, self.smoother(), self.chain.size);
        let each: Vec<State> = map(self.chain.nodes(), |k| {
            let v = this.filter.covariance(k, &smoother[k]);
            [v[0][0], v[1][1], v[2][2]]
        });
        map(self.chain.latents(), |l| {
            let states = this.chain.states();
            if l >= states {
                let unit: Vec<f64> = (0..this.others)
                    .map(|j| f64::from(j == l - states))
                    .collect();
                return this.spread(&unit);
            }
            let share: Vec<f64> = (0..this.others).map(|j| this.shares.get(l, j)).collect();
            each[l / size][l % size] + this.spread(&share)
        })
    }

    pub(crate) fn solve_latent(&self, b: &mut [f64]) {
        let (states, others) = b.split_at_mut(self.chain.states());
        self.filter.solve(&self.chain, states);
        for (j, x) in others.iter_mut().enumerate() {
            let each = self.coupling.col(j).iter().enumerate();
            let terms: Vec<f64> = each
                .map(|(node, c)| c * states[node * self.chain.size])
                .collect();
            *x -= jensen_math::sum::pairwise_sum(&terms);
        }
        self.solve_others(others);
        for (j, x) in others.iter().enumerate() {
            kernels::add_scaled(-x, self.shares.col(j), states);
        }
    }

    /// Converts independent standard normal numbers to a draw of the latent variables with mean 0.
    pub(crate) fn half_solve(&self, z: &[f64]) -> Vec<f64> {
        let mut out = z.to_vec();
        let (states, others) = out.split_at_mut(self.chain.states());
        self.filter.draw(&self.chain, states);
        if self.others > 0 {
            let view = faer::MatMut::from_column_major_slice_mut(others, self.others, 1);
            kernels::solve_lower_transposed(&self.factor, view);
        }
        for (j, x) in others.iter().enumerate() {
            kernels::add_scaled(-x, self.shares.col(j), states);
        }
        out
    }

    /// Computes the variances of the rows of another design.
    pub(crate) fn variances_of(&mut self, rows: &Design) -> Vec<f64> {
        self.smooth();
        let (this, smoother) = (&*self, self.smoother());
        let (states, size) = (self.chain.states(), self.chain.size);
        let rows = design::to_sparse_transposed(rows, self.chain.latents());
        map(rows.cols, |n| {
            let (index, weights) = rows.col(n);
            let each = || index.iter().zip(weights);
            let of_states: Vec<(usize, f64)> = each()
                .filter(|(l, _)| **l < states)
                .map(|(l, w)| (*l, *w))
                .collect();
            let node = of_states.first().map(|(l, _)| l / size);
            if of_states.iter().any(|(l, _)| Some(l / size) != node) {
                let mut x = vec![0.0; this.chain.latents()];
                each().for_each(|(l, w)| x[*l] = *w);
                this.solve_latent(&mut x);
                return each().map(|(l, w)| w * x[*l]).sum();
            }
            let mut left = vec![0.0; this.others];
            for (l, w) in each() {
                match l.checked_sub(states) {
                    Some(j) => left[j] += w,
                    None => (0..this.others).for_each(|j| left[j] -= w * this.shares.get(*l, j)),
                }
            }
            let mut variance = this.spread(&left);
            if let Some(node) = node {
                let v = this.filter.covariance(node, &smoother[node]);
                for (l, a) in &of_states {
                    for (m, b) in &of_states {
                        variance += a * b * v[l % size][m % size];
                    }
                }
            }
            variance
        })
    }

    pub(crate) fn posterior_times(&self, x: &[f64]) -> Vec<f64> {
        let mut inner = self.rows.mul(x);
        self.solve_latent(&mut inner);
        self.rows.mul_t(&inner)
    }

    /// Solves `(Σ̃ + D) x = r` and returns x and Σ̃x. `weight` is diag D⁻¹. If `refactor` is false, the matrix must
    /// already be factorised at λ = weight.
    pub(crate) fn solve(
        &mut self,
        weight: &[f64],
        r: &[f64],
        refactor: bool,
    ) -> Option<(Vec<f64>, Vec<f64>)> {
        if refactor {
            self.factor(weight)?;
        }
        let weighted: Vec<f64> = weight.iter().zip(r).map(|(w, r)| w * r).collect();
        let product = self.posterior_times(&weighted);
        let x = map(r.len(), |n| weight[n] * (r[n] - product[n]));
        Some((x, product))
    }

    /// Computes the derivative with respect to the numbers of the chain. With `M = (Λ⁻¹ + WΣWᵀ)⁻¹`, the derivative with
    /// respect to Σ is `½ Wᵀ(ααᵀ − M)W`. The chain rule sums it over all later nodes, which are the recursions of the
    /// smoother (Koopman and Shephard 1992).
    pub(crate) fn sensitivity(
        &mut self,
        model: &LatentModel,
        alpha: &[f64],
        mean: &[f64],
    ) -> CovarianceSensitivity {
        self.smooth();
        let smoother = self.smoother();
        let (size, nodes, p) = (self.chain.size, self.chain.nodes(), self.others);
        let force = self.rows.mul(alpha);
        let mut out = Chain {
            size,
            initial: Square::default(),
            steps: vec![ChainStep::default(); nodes - 1],
            others: Vec::new(),
        };
        let mut pull = State::default();
        let mut columns = vec![State::default(); p];
        for k in (0..nodes).rev() {
            if let Some(step) = self.chain.steps.get(k) {
                let shift = |i: usize| mean[k * size + i] - model.prior.mean[k * size + i];
                let mut state = State::default();
                (0..size).for_each(|i| state[i] = shift(i));
                let later = times(&smoother[k + 1], &self.filter.onward(&self.chain, k));
                let inner = self.weighted(&columns);
                out.steps[k].transition = square(|i, j| {
                    let shares = |c: usize| match j < size {
                        true => self.shares.get(k * size + j, c),
                        false => 0.0,
                    };
                    let others: f64 = (0..p).map(|c| inner[c][i] * shares(c)).sum();
                    others - later[i][j] - pull[i] * state[j]
                });
                pull = apply_transposed(&step.transition, &pull);
                for column in &mut columns {
                    *column = apply_transposed(&step.transition, column);
                }
            }
            pull[0] += force[k * size];
            for (c, column) in columns.iter_mut().enumerate() {
                let share = self.omega[k] * self.shares.get(k * size, c);
                column[0] += self.coupling.get(k, c) - share;
            }
            let inner = self.weighted(&columns);
            let own = square(|i, j| {
                let others: f64 = (0..p).map(|c| inner[c][i] * columns[c][j]).sum();
                0.5 * (pull[i] * pull[j] - smoother[k][i][j] + others)
            });
            match k.checked_sub(1) {
                Some(step) => out.steps[step].noise = own,
                None => out.initial = own,
            }
        }
        let states = self.chain.states();
        out.others = (self.chain.others.iter().enumerate())
            .map(|(j, v)| {
                let unit: Vec<f64> = (0..p).map(|i| f64::from(i == j)).collect();
                let force = force[states + j];
                0.5 * (force * force - (1.0 - self.spread(&unit) / v) / v)
            })
            .collect();
        CovarianceSensitivity::Chain(out)
    }

    /// Multiplies the matrix whose columns are given by S⁻¹ from the right.
    fn weighted(&self, columns: &[State]) -> Vec<State> {
        let mut out = columns.to_vec();
        for i in 0..self.chain.size {
            let mut row: Vec<f64> = columns.iter().map(|column| column[i]).collect();
            self.solve_others(&mut row);
            out.iter_mut().zip(row).for_each(|(o, x)| o[i] = x);
        }
        out
    }
}
