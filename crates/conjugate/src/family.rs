//! Exponential families of global parameters, described by their natural parameters.
//!
//! A family has densities h(β) exp(λ·t(β) − a(λ)). For each family, the table gives the length of λ, the log normaliser
//! a, the expectation parameters `E[t]` = ∇a, and a method to draw β. The divergence between two members of a family
//! follows from these: KL(λ ‖ α) = (λ − α)·∇a(λ) − a(λ) + a(α). In every global step, λ is the parameter of the prior
//! plus the statistics of the data.

use jensen_math::constants::LOG_TWO_PI;
use jensen_math::dense;
use jensen_math::rng::Stream;
use jensen_math::special;

use crate::draws::{log_dirichlet, log_gamma, normal};

mod alternatives;
pub(crate) mod spherical;
pub(crate) mod sticks;
pub(crate) mod wishart;

/// A family of distributions and the dimensions of its variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExponentialFamily {
    /// Proportions p of `n` categories. λ contains the usual Dirichlet parameters, and t = log p.
    Dirichlet {
        /// Number of categories.
        n: usize,
    },
    /// Proportions p of `n` categories from broken sticks: p_k = v_k Π_{j<k} (1 − v_j), where v_k ~ Beta(1 + n_k, Σ_{j>k}
    /// n_j) and v_n = 1. λ contains the numbers n_k, and t = log p. The base measure is the uniform density of v.
    Sticks {
        /// Number of categories.
        n: usize,
    },
    /// `n` independent rates ρ ~ Gamma(a, b). Each rate has two numbers in each vector: t = (log ρ, −ρ) and λ = (a, b).
    Gamma {
        /// Number of rates.
        n: usize,
    },
    /// Independent pairs of a mean μ and a precision τ in `dim` dimensions, with τ ~ Gamma(a, b) and μ | τ ~ N(m,
    /// 1/(κτ)). Each dimension has four numbers: t = (τμ, −½τμ², −τ, log τ) and λ = (κm, κ, b + ½κm², a − ½).
    NormalGamma {
        /// Number of dimensions.
        dim: usize,
    },
    /// `dim` means μ with the same precision τ, where τ ~ Gamma(a, b) and μ_d | τ ~ N(m_d, 1/(κ_d τ)). The vectors
    /// contain two numbers for each mean and two for the precision: t = (τμ_d, −½τμ_d², …, −τ, log τ) and λ = (κ_d m_d,
    /// κ_d, …, b + ½Σκ_d m_d², a + ½ dim − 1).
    SphericalNormalGamma {
        /// Number of dimensions.
        dim: usize,
    },
    /// `means` means μ_k with the same precision matrix Λ, where Λ ~ Wishart(W, ν) and μ_k | Λ ~ N(m_k, (κ_k Λ)⁻¹). The
    /// vectors contain one part for each mean: t_k = (Λμ_k, −½μ_kᵀΛμ_k, −½Λ, ½ log|Λ|), so Λ occurs in every part. The
    /// parts of λ are λ_k = (κ_k m_k, κ_k, S_k, n_k), of which only the sums ΣS_k = W⁻¹ + Σκ_k m_k m_kᵀ and Σn_k = ν − D
    /// + `means` − 1 matter.
    NormalWishart {
        /// Number of dimensions D.
        dim: usize,
        /// Number of means.
        means: usize,
    },
    /// One of `n` alternatives j, each with its own distribution of a rate or of a mean and a precision. The vectors contain
    /// a part for each alternative: t_j = (1, t) if the alternative is j and 0 otherwise, where t belongs to the inner
    /// family, and λ_j = (c_j, λ of the inner family). The probability of alternative j is proportional to exp(c_j + a(λ
    /// of the inner family)).
    Alternatives {
        /// Number of alternatives.
        n: usize,
        /// The distribution given the alternative.
        inner: Inner,
    },
    /// A matrix M of `rows` × `columns`, whose columns are independent and normal with the same precision A: t = (M,
    /// −½MMᵀ) and λ = (B, A). The mean of M is A⁻¹B.
    NormalRows {
        /// Number of rows.
        rows: usize,
        /// Number of columns.
        columns: usize,
    },
}

/// The distribution of the parameters of one of several alternatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inner {
    /// A rate with a gamma distribution.
    Gamma,
    /// A mean and a precision with a normal-gamma distribution.
    NormalGamma,
}

impl Inner {
    /// Returns the family of a single rate, or of a single pair.
    pub fn family(self) -> ExponentialFamily {
        match self {
            Self::Gamma => ExponentialFamily::Gamma { n: 1 },
            Self::NormalGamma => ExponentialFamily::NormalGamma { dim: 1 },
        }
    }
}

impl ExponentialFamily {
    /// Returns the length of λ, which is also the length of t.
    pub fn len(self) -> usize {
        match self {
            Self::Dirichlet { n } | Self::Sticks { n } => n,
            Self::Gamma { n } => 2 * n,
            Self::NormalGamma { dim } => 4 * dim,
            Self::SphericalNormalGamma { dim } => 2 * dim + 2,
            Self::NormalWishart { dim, means } => means * wishart::width(dim),
            Self::Alternatives { n, inner } => n * (1 + inner.family().len()),
            Self::NormalRows { rows, columns } => rows * columns + rows * rows,
        }
    }

    /// Returns whether λ has no elements.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Computes a(λ), and writes ∇a(λ) = `E[t]` to `out`. The result is NaN if λ is outside the family.
    pub fn moments(self, lambda: &[f64], out: &mut [f64]) -> f64 {
        match self {
            Self::Dirichlet { .. } => {
                let total: f64 = lambda.iter().sum();
                let psi = special::digamma(total);
                let mut a = -special::lgamma(total);
                for (out, &x) in out.iter_mut().zip(lambda) {
                    a += special::lgamma(x);
                    *out = special::digamma(x) - psi;
                }
                a
            }
            Self::Sticks { .. } => sticks::moments(lambda, out),
            Self::Gamma { .. } => lambda
                .chunks_exact(2)
                .zip(out.chunks_exact_mut(2))
                .map(|(l, out)| {
                    out[0] = special::digamma(l[0]) - l[1].ln();
                    out[1] = -l[0] / l[1];
                    special::lgamma(l[0]) - l[0] * l[1].ln()
                })
                .sum(),
            Self::NormalGamma { .. } => lambda
                .chunks_exact(4)
                .zip(out.chunks_exact_mut(4))
                .map(|(l, out)| {
                    let kappa = l[1];
                    let m = l[0] / kappa;
                    let b = l[2] - 0.5 * l[0] * m;
                    let a = l[3] + 0.5;
                    let tau = a / b;
                    out[0] = m * tau;
                    out[1] = -0.5 * (1.0 / kappa + m * m * tau);
                    out[2] = -tau;
                    out[3] = special::digamma(a) - b.ln();
                    special::lgamma(a) - a * b.ln() + 0.5 * (LOG_TWO_PI - kappa.ln())
                })
                .sum(),
            Self::SphericalNormalGamma { dim } => spherical::moments(lambda, dim, out),
            Self::NormalWishart { dim, .. } => wishart::moments(lambda, dim, out),
            Self::Alternatives { inner, .. } => alternatives::moments(lambda, inner, out),
            Self::NormalRows { rows, columns } => {
                let (b, a) = lambda.split_at(rows * columns);
                let Ok(l) = dense::factor(a, rows, 0.0) else {
                    out.fill(f64::NAN);
                    return f64::NAN;
                };
                let (mean, outer) = out.split_at_mut(rows * columns);
                mean.copy_from_slice(b);
                dense::solve_lower_lanes(&l, rows, mean, columns);
                dense::solve_lower_transposed_lanes(&l, rows, mean, columns);
                outer.copy_from_slice(&dense::inverse(&l, rows));
                for i in 0..rows {
                    for j in 0..=i {
                        let row = |r: usize| &mean[r * columns..(r + 1) * columns];
                        let dot: f64 = row(i).iter().zip(row(j)).map(|(x, y)| x * y).sum();
                        let x = -0.5 * (columns as f64 * outer[i * rows + j] + dot);
                        outer[i * rows + j] = x;
                        outer[j * rows + i] = x;
                    }
                }
                let quadratic: f64 = b.iter().zip(mean.iter()).map(|(x, y)| x * y).sum();
                0.5 * quadratic + 0.5 * (rows * columns) as f64 * LOG_TWO_PI
                    - 0.5 * columns as f64 * dense::log_determinant(&l, rows)
            }
        }
    }

    /// Draws β and writes t(β) to `out`.
    pub fn draw(self, lambda: &[f64], stream: &mut Stream, out: &mut [f64]) {
        match self {
            Self::Dirichlet { .. } => log_dirichlet(lambda, stream, out),
            Self::Sticks { .. } => sticks::draw(lambda, stream, out),
            Self::Gamma { .. } => {
                for (l, out) in lambda.chunks_exact(2).zip(out.chunks_exact_mut(2)) {
                    let log_rate = log_gamma(l[0], stream) - l[1].ln();
                    out.copy_from_slice(&[log_rate, -log_rate.exp()]);
                }
            }
            Self::NormalGamma { .. } => {
                for (l, out) in lambda.chunks_exact(4).zip(out.chunks_exact_mut(4)) {
                    let kappa = l[1];
                    let m = l[0] / kappa;
                    let b = l[2] - 0.5 * l[0] * m;
                    let log_tau = log_gamma(l[3] + 0.5, stream) - b.ln();
                    let tau = log_tau.exp();
                    let mu = m + normal(stream) / (kappa * tau).sqrt();
                    out.copy_from_slice(&[tau * mu, -0.5 * tau * mu * mu, -tau, log_tau]);
                }
            }
            Self::SphericalNormalGamma { dim } => spherical::draw(lambda, dim, stream, out),
            Self::NormalWishart { dim, .. } => wishart::draw(lambda, dim, stream, out),
            Self::Alternatives { inner, .. } => alternatives::draw(lambda, inner, stream, out),
            Self::NormalRows { rows, columns } => {
                let (b, a) = lambda.split_at(rows * columns);
                let (m, outer) = out.split_at_mut(rows * columns);
                let Ok(l) = dense::factor(a, rows, 0.0) else {
                    m.fill(f64::NAN);
                    outer.fill(f64::NAN);
                    return;
                };
                // A⁻¹B + L⁻ᵀz = L⁻ᵀ(L⁻¹B + z).
                m.copy_from_slice(b);
                dense::solve_lower_lanes(&l, rows, m, columns);
                m.iter_mut().for_each(|x| *x += normal(stream));
                dense::solve_lower_transposed_lanes(&l, rows, m, columns);
                for i in 0..rows {
                    for j in 0..rows {
                        let row = |r: usize| &m[r * columns..(r + 1) * columns];
                        let dot: f64 = row(i).iter().zip(row(j)).map(|(x, y)| x * y).sum();
                        outer[i * rows + j] = -0.5 * dot;
                    }
                }
            }
        }
    }
}

/// Independent blocks of global parameters and their priors, stored as one vector of natural parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocks {
    families: Vec<ExponentialFamily>,
    starts: Vec<usize>,
    prior: Vec<f64>,
}

impl Default for Blocks {
    fn default() -> Self {
        Self {
            families: Vec::new(),
            starts: vec![0],
            prior: Vec::new(),
        }
    }
}

impl Blocks {
    /// Adds a block and returns its offset in the vector.
    ///
    /// # Panics
    /// Panics if `prior` does not have the length of the family's parameters, which is a bug in the model.
    pub fn push(&mut self, family: ExponentialFamily, prior: &[f64]) -> usize {
        assert_eq!(family.len(), prior.len(), "parameters of {family:?}");
        let start = self.prior.len();
        self.families.push(family);
        self.prior.extend_from_slice(prior);
        self.starts.push(self.prior.len());
        start
    }

    /// Returns the natural parameters of the prior.
    pub fn prior(&self) -> &[f64] {
        &self.prior
    }

    /// Returns the number of natural parameters.
    pub fn len(&self) -> usize {
        self.prior.len()
    }

    /// Returns whether there are no blocks.
    pub fn is_empty(&self) -> bool {
        self.prior.is_empty()
    }

    fn each(&self) -> impl Iterator<Item = (ExponentialFamily, std::ops::Range<usize>)> + '_ {
        let ranges = self.starts.windows(2).map(|pair| pair[0]..pair[1]);
        self.families.iter().copied().zip(ranges)
    }

    /// Returns `E[t(β)]` for all blocks, one after another.
    pub fn expectations(&self, lambda: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; lambda.len()];
        for (family, range) in self.each() {
            family.moments(&lambda[range.clone()], &mut out[range]);
        }
        out
    }

    /// Returns the divergence KL(q(β) ‖ p(β)), in nats.
    pub fn divergence(&self, lambda: &[f64]) -> f64 {
        let mut t = vec![0.0; lambda.len()];
        let mut unused = vec![0.0; lambda.len()];
        let mut total = 0.0;
        for (family, range) in self.each() {
            let (l, p) = (&lambda[range.clone()], &self.prior[range.clone()]);
            let t = &mut t[range.clone()];
            let a = family.moments(l, t);
            let b = family.moments(p, &mut unused[range]);
            let dot: f64 = l
                .iter()
                .zip(p)
                .zip(t.iter())
                .map(|((l, p), t)| (l - p) * t)
                .sum();
            total += dot - a + b;
        }
        total
    }

    /// Draws all blocks and returns t(β).
    pub fn draw(&self, lambda: &[f64], stream: &mut Stream) -> Vec<f64> {
        let mut out = vec![0.0; lambda.len()];
        for (family, range) in self.each() {
            family.draw(&lambda[range.clone()], stream, &mut out[range]);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jensen_math::rng::Purpose;
    use jensen_math::sum::Moments;

    fn members() -> Vec<(ExponentialFamily, Vec<f64>)> {
        let rows = vec![
            0.3, -1.0, 2.0, 0.7, 0.1, -0.4, // B, 2 × 3
            3.0, 0.8, 0.8, 2.0, // A
        ];
        let (m, kappa, nu) = ([0.5, -1.0], 2.0, 6.5);
        let w_inverse = [2.0, 0.4, 0.4, 1.5];
        let mut wishart: Vec<f64> = m.iter().map(|m| kappa * m).collect();
        wishart.push(kappa);
        for i in 0..2 {
            for j in 0..2 {
                wishart.push(w_inverse[2 * i + j] + kappa * m[i] * m[j]);
            }
        }
        wishart.push(nu - 2.0);
        // The part of another mean, with more of the scale matrix and of the degrees of freedom.
        let other = vec![0.6, 0.9, 1.5, 0.9, 0.5, 0.5, 1.4, 1.8];
        let gamma = vec![
            1.0,
            2.0,
            3.0 + 0.25,
            4.0 - 0.5,
            -0.3,
            0.5,
            2.0 + 0.09,
            2.5 - 0.5,
        ];
        vec![
            (ExponentialFamily::Dirichlet { n: 3 }, vec![0.7, 2.0, 5.0]),
            (ExponentialFamily::Gamma { n: 2 }, vec![0.8, 2.0, 5.0, 0.3]),
            (ExponentialFamily::NormalGamma { dim: 2 }, gamma),
            (
                ExponentialFamily::NormalWishart { dim: 2, means: 1 },
                wishart.clone(),
            ),
            (
                ExponentialFamily::NormalRows {
                    rows: 2,
                    columns: 3,
                },
                rows,
            ),
            (
                ExponentialFamily::Alternatives {
                    n: 2,
                    inner: Inner::Gamma,
                },
                vec![0.3, 2.0, 1.5, -0.4, 3.0, 2.5],
            ),
            (ExponentialFamily::Sticks { n: 3 }, vec![2.5, 0.4, 1.7]),
            (
                ExponentialFamily::SphericalNormalGamma { dim: 2 },
                vec![1.0, 2.0, -0.3, 0.5, 3.0 + 0.34, 4.5],
            ),
            (
                ExponentialFamily::NormalWishart { dim: 2, means: 2 },
                [wishart, other].concat(),
            ),
        ]
    }

    #[test]
    fn a_shared_precision_has_the_distribution_of_a_single_mean() {
        let (family, lambda) = members().pop().unwrap();
        let mut t = vec![0.0; lambda.len()];
        family.moments(&lambda, &mut t);
        for k in 0..2 {
            let alone = wishart::marginal(&lambda, 2, k);
            let mut own = vec![0.0; alone.len()];
            let single = ExponentialFamily::NormalWishart { dim: 2, means: 1 };
            single.moments(&alone, &mut own);
            for (x, y) in own.iter().zip(&t[8 * k..8 * k + 8]) {
                assert!((x - y).abs() < 1e-12 * y.abs().max(1.0), "{x} {y}");
            }
        }
    }

    #[test]
    fn expectations_are_slopes_of_the_log_normaliser() {
        for (family, lambda) in members() {
            let mut t = vec![0.0; lambda.len()];
            family.moments(&lambda, &mut t);
            let mut unused = t.clone();
            for i in 0..lambda.len() {
                let h = 1e-5 * lambda[i].abs().max(1.0);
                let mut at = |x: f64| {
                    let mut moved = lambda.clone();
                    moved[i] = x;
                    // A change of a symmetric matrix moves two mirrored elements, each of them by half.
                    family.moments(&moved, &mut unused)
                };
                let slope = (at(lambda[i] + h) - at(lambda[i] - h)) / (2.0 * h);
                let symmetric = match family {
                    ExponentialFamily::NormalWishart { .. } => [4, 5].contains(&(i % 8)),
                    ExponentialFamily::NormalRows { .. } => i == 7 || i == 8,
                    _ => false,
                };
                if !symmetric {
                    assert!(
                        (slope - t[i]).abs() < 1e-6 * t[i].abs().max(1.0),
                        "{family:?} {i}"
                    );
                }
            }
        }
    }

    #[test]
    fn draws_have_the_expected_statistics() {
        let mut stream = Stream::new(5, Purpose::new("test of families"), 0, 0);
        for (family, lambda) in members() {
            let mut t = vec![0.0; lambda.len()];
            family.moments(&lambda, &mut t);
            let mut draw = t.clone();
            let mut moments = vec![Moments::default(); t.len()];
            for _ in 0..20_000 {
                family.draw(&lambda, &mut stream, &mut draw);
                moments.iter_mut().zip(&draw).for_each(|(m, &x)| m.add(x));
            }
            for (i, m) in moments.iter().enumerate() {
                let error = (m.mean() - t[i]) / m.standard_error();
                assert!(
                    error.abs() < 4.5,
                    "{family:?} {i}: {} {} {error}",
                    m.mean(),
                    t[i]
                );
            }
        }
    }

    #[test]
    fn divergence_is_zero_at_the_prior_and_positive_elsewhere() {
        let mut blocks = Blocks::default();
        for (family, lambda) in members() {
            blocks.push(family, &lambda);
        }
        assert!(blocks.divergence(blocks.prior()).abs() < 1e-12);
        let mut other = blocks.prior().to_vec();
        other[0] += 0.5;
        other[6] += 0.2;
        assert!(blocks.divergence(&other) > 1e-3);
    }
}
