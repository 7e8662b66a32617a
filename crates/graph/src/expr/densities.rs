//! Log densities of common distributions. Each density includes all normalising constants and is summed over all
//! elements.
//!
//! Scalar arguments broadcast against vectors and against record columns.

use super::{Expr, Operand};

use jensen_math::constants::{HALF_LOG_TWO_PI, LOG_PI};

impl<'b> Expr<'b> {
    /// Returns the log density of a normal distribution with mean `mu` and standard deviation `sigma`.
    #[track_caller]
    pub fn normal_lpdf(self, mu: impl Operand<'b>, sigma: impl Operand<'b>) -> Expr<'b> {
        let sigma = sigma.expr(self.builder);
        let z = (self - mu.expr(self.builder)) / sigma;
        (-0.5 * z.square() - sigma.log() - HALF_LOG_TWO_PI).sum()
    }

    /// Returns the log density of a normal distribution with mean 0 and standard deviation 1.
    #[track_caller]
    pub fn std_normal_lpdf(self) -> Expr<'b> {
        (-0.5 * self.square() - HALF_LOG_TWO_PI).sum()
    }

    /// Returns the log density of a Cauchy distribution with median `mu` and scale `sigma`.
    #[track_caller]
    pub fn cauchy_lpdf(self, mu: impl Operand<'b>, sigma: impl Operand<'b>) -> Expr<'b> {
        let sigma = sigma.expr(self.builder);
        let z = (self - mu.expr(self.builder)) / sigma;
        (-z.square().log1p() - sigma.log() - LOG_PI).sum()
    }

    /// Returns the log density of Student's t distribution with `nu` degrees of freedom, location `mu` and scale
    /// `sigma`.
    #[track_caller]
    pub fn student_t_lpdf(
        self,
        nu: impl Operand<'b>,
        mu: impl Operand<'b>,
        sigma: impl Operand<'b>,
    ) -> Expr<'b> {
        let (nu, sigma) = (nu.expr(self.builder), sigma.expr(self.builder));
        let z = (self - mu.expr(self.builder)) / sigma;
        let half = 0.5 * (nu + 1.0);
        let normaliser = half.lgamma()
            - (0.5 * nu).lgamma()
            - 0.5 * (nu * std::f64::consts::PI).log()
            - sigma.log();
        (normaliser - half * (z.square() / nu).log1p()).sum()
    }

    /// Returns the log density of an exponential distribution with rate `rate`.
    #[track_caller]
    pub fn exponential_lpdf(self, rate: impl Operand<'b>) -> Expr<'b> {
        let rate = rate.expr(self.builder);
        (rate.log() - rate * self).sum()
    }

    /// Returns the log density of a gamma distribution with shape `alpha` and rate `beta`.
    #[track_caller]
    pub fn gamma_lpdf(self, alpha: impl Operand<'b>, beta: impl Operand<'b>) -> Expr<'b> {
        let (alpha, beta) = (alpha.expr(self.builder), beta.expr(self.builder));
        let normaliser = alpha * beta.log() - alpha.lgamma();
        (normaliser + (alpha - 1.0) * self.log() - beta * self).sum()
    }

    /// Returns the log density of a beta distribution with shapes `alpha` and `beta`.
    #[track_caller]
    pub fn beta_lpdf(self, alpha: impl Operand<'b>, beta: impl Operand<'b>) -> Expr<'b> {
        let (alpha, beta) = (alpha.expr(self.builder), beta.expr(self.builder));
        let normaliser = (alpha + beta).lgamma() - alpha.lgamma() - beta.lgamma();
        (normaliser + (alpha - 1.0) * self.log() + (beta - 1.0) * (-self).log1p()).sum()
    }

    /// Returns the log probability of Bernoulli outcomes (0 or 1) with log-odds `eta`.
    #[track_caller]
    pub fn bernoulli_logit_lpmf(self, eta: impl Operand<'b>) -> Expr<'b> {
        let eta = eta.expr(self.builder);
        (self * eta - eta.log1p_exp()).sum()
    }

    /// Returns the log probability of Poisson counts with log-rate `eta`.
    #[track_caller]
    pub fn poisson_log_lpmf(self, eta: impl Operand<'b>) -> Expr<'b> {
        let eta = eta.expr(self.builder);
        (self * eta - eta.exp() - (self + 1.0).lgamma()).sum()
    }
}
