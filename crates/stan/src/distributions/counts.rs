//! Distributions of counts.

use jensen_graph::ElemOp;
use jensen_math::special::{lbeta, lgamma, lgamma_step, log_sum_exp, log_sum_exp_slice, log1p_exp};

use super::formula::{DensityBuilder, TailTerms, known_ints};
use super::interval::log_inc_beta;
use super::peaks;
use super::trials::{among, log_sum_of_first};
use super::univariate::{Tails, Univariate};
use crate::functions::elementary::lmultiply;
use crate::functions::special::{ln_gamma_pq, ln_inc_beta};
use crate::symbolic::domain::Domain::{Finite, NonNegative, NotNan, PositiveFinite};
use crate::symbolic::functions::elementwise::{self, multiply_log};
use crate::symbolic::tape::E;
use crate::value::error::{FnError, FnResult};

const Y: u32 = 1;
const A: u32 = 2;
const B: u32 = 4;
const C: u32 = 8;

const RATE: &str = "the rate parameter";

const NONE: f64 = f64::NEG_INFINITY;

/// The logarithm of 2³⁰. If the log rate is larger, random counts may be too large for an `int`.
const MAX_LOG_RATE: f64 = 20.794_415_416_798_36;

/// The univariate distributions that this file defines.
pub static TABLE: &[Univariate] = &[
    Univariate::new(
        "beta_neg_binomial",
        NonNegative,
        &[
            ("the number of successes parameter", PositiveFinite),
            ("the first prior shape parameter", PositiveFinite),
            ("the second prior shape parameter", PositiveFinite),
        ],
        |k, x| {
            let (n, r, a, b) = (x[0], x[1], x[2], x[3]);
            if k.constants() && n >= peaks::LARGE {
                return rising_coefficient(r, n) + (lbeta(n + b, r + a) - lbeta(a, b));
            }
            k.constant(-lgamma(n + 1.0))
                + k.term(
                    A | B | C,
                    lgamma_step(r, n) + lbeta(n + b, r + a) - lbeta(a, b),
                )
        },
    )
    .discrete()
    .tails(|x| {
        let (r, a, b) = (x[1], x[2], x[3]);
        let mass = |n: f64| rising_coefficient(r, n) + lbeta(n + b, r + a) - lbeta(a, b);
        if x[0] < 0.0 {
            return Tails::NOTHING;
        }
        // The upper tail is an infinite sum, so it is computed as one minus the lower tail.
        let terms: Vec<f64> = (0..=x[0] as u64).map(|n| mass(n as f64)).collect();
        Tails::from_log_lower(log_sum_exp_slice(&terms))
    })
    .sample(|r, x| {
        let p = r.beta(x[1], x[2]);
        let rate = r.gamma(x[0]) * (1.0 - p) / p;
        r.poisson(rate)
    })
    .lowered(Y | A | B | C, lower_beta_neg_binomial)
    .lowered_tails(A | B | C, lower_beta_neg_binomial_tails),
    Univariate::new(
        "yule_simon",
        NonNegative,
        &[("the shape parameter", PositiveFinite)],
        |k, x| {
            if x[0] < 1.0 {
                return NONE;
            }
            // The mass contains log B(n, α + 1), or the part of it that is not constant.
            let mass = match k.constants() {
                true => lbeta(x[0], x[1] + 1.0),
                false => -lgamma_step(x[1] + 1.0, x[0]),
            };
            k.term(A, x[1].ln() + mass)
        },
    )
    .discrete()
    .tails(|x| {
        if x[0] < 1.0 {
            return Tails::NOTHING;
        }
        Tails::from_log_upper(x[0].ln() + lbeta(x[0], x[1] + 1.0))
    })
    .sample(|r, x| {
        // Given W, the number is geometric with failure probability 1 − exp(−W), where W is exponential.
        let w = r.exponential() / x[0];
        let log_failure = (-(-w).exp()).ln_1p();
        (r.uniform().ln() / log_failure).ceil().max(1.0)
    })
    .lowered(A, lower_yule_simon)
    .lowered_tails(A, |d| {
        let [n, alpha] = d.get();
        let at = n.fmax(n.num(1.0));
        let upper = at.log() + elementwise::lbeta(at, alpha + 1.0);
        Ok(none_below(n, 1.0, (upper.log1m_exp(), upper)))
    }),
    Univariate::new("poisson", NonNegative, &[(RATE, NonNegative)], |k, x| {
        if x[1].is_infinite() || (x[1] == 0.0 && x[0] != 0.0) {
            return NONE;
        }
        if k.constants() && x[0] >= peaks::LARGE {
            return peaks::poisson(x[0], x[1]);
        }
        k.constant(-lgamma(x[0] + 1.0)) + k.term(A, lmultiply(x[0], x[1]) - x[1])
    })
    .discrete()
    .tails(|x| {
        if x[0] < 0.0 {
            return Tails::NOTHING;
        }
        Tails::new(ln_gamma_pq(x[0] + 1.0, x[1])).swap()
    })
    .sample(|r, x| r.poisson(x[0]))
    .lowered(A, lower_poisson)
    .lowered_tails(A, |d| {
        let [n, lambda] = d.get();
        if is_zero(n) {
            return Ok((-lambda, (-lambda).log1m_exp()));
        }
        let shape = (n + 1.0).fmax(n.num(1.0));
        let tails = [ElemOp::LogGammaQ, ElemOp::LogGammaP].map(|op| shape.op2(op, lambda));
        Ok(none_below(n, 0.0, tails.into()))
    }),
    Univariate::new(
        "poisson_log",
        NonNegative,
        &[("the log rate parameter", NotNan)],
        |k, x| {
            if x[1] == f64::INFINITY || (x[1] == NONE && x[0] != 0.0) {
                return NONE;
            }
            if k.constants() && x[0] >= peaks::LARGE {
                return peaks::poisson_log(x[0], x[1]);
            }
            let linear = if x[0] == 0.0 { 0.0 } else { x[0] * x[1] };
            k.constant(-lgamma(x[0] + 1.0)) + k.term(A, linear - x[1].exp())
        },
    )
    .discrete()
    .joint(|function, p| check_log_rate(function, p[0]))
    .sample(|r, x| r.poisson(x[0].exp()))
    .lowered(Y, lower_poisson_log),
    Univariate::new(
        "neg_binomial",
        NonNegative,
        &[
            ("the shape parameter", PositiveFinite),
            ("the inverse scale parameter", PositiveFinite),
        ],
        |k, x| {
            k.term(A, rising_coefficient(x[1], x[0]))
                + k.term(A | B, -x[1] * (1.0 / x[2]).ln_1p() - x[0] * x[2].ln_1p())
        },
    )
    .discrete()
    .tails(|x| neg_binomial_tails(x[0], x[1], x[2] / (1.0 + x[2])))
    .sample(|r, x| {
        let rate = r.gamma(x[0]) / x[1];
        r.poisson(rate)
    })
    .lowered(Y | A | B, lower_neg_binomial)
    .lowered_tails(A | B, |d| {
        let [n, alpha, beta] = d.get();
        Ok(lower_neg_binomial_tails(n, alpha, beta.log()))
    }),
    Univariate::new(
        "neg_binomial_2",
        NonNegative,
        &[
            ("the location parameter", PositiveFinite),
            ("the precision parameter", PositiveFinite),
        ],
        |k, x| {
            let (n, mu, phi) = (x[0], x[1], x[2]);
            if k.constants() && n >= peaks::LARGE {
                return rising_coefficient(phi, n)
                    + peaks::negative_binomial_odds(n, phi, mu.ln(), phi.ln());
            }
            k.term(B, rising_coefficient(phi, n))
                + k.term(A, lmultiply(n, mu))
                + k.term(A | B, -phi * (mu / phi).ln_1p() - n * (mu + phi).ln())
        },
    )
    .discrete()
    .tails(|x| neg_binomial_tails(x[0], x[2], x[2] / (x[2] + x[1])))
    .sample(|r, x| {
        let rate = r.gamma(x[1]) * x[0] / x[1];
        r.poisson(rate)
    })
    .lowered(Y | B, lower_neg_binomial_2)
    .lowered_tails(A | B, |d| {
        let [n, mu, phi] = d.get();
        Ok(lower_neg_binomial_tails(n, phi, phi.log() - mu.log()))
    }),
    Univariate::new(
        "neg_binomial_2_log",
        NonNegative,
        &[
            ("the log location parameter", Finite),
            ("the precision parameter", PositiveFinite),
        ],
        |k, x| {
            let (n, eta, phi) = (x[0], x[1], x[2]);
            if k.constants() && n >= peaks::LARGE {
                return rising_coefficient(phi, n)
                    + peaks::negative_binomial_odds(n, phi, eta, phi.ln());
            }
            k.term(B, rising_coefficient(phi, n))
                + k.term(A, n * eta)
                + k.term(
                    A | B,
                    -phi * log1p_exp(eta - phi.ln()) - n * log_sum_exp(eta, phi.ln()),
                )
        },
    )
    .discrete()
    .joint(|function, p| check_log_rate(function, p[0]))
    .sample(|r, x| {
        let rate = r.gamma(x[1]) * x[0].exp() / x[1];
        r.poisson(rate)
    })
    .lowered(Y | B, lower_neg_binomial_2_log),
];

fn check_log_rate(function: &str, log_rate: f64) -> FnResult<()> {
    if function.ends_with("_rng") && log_rate >= MAX_LOG_RATE {
        return Err(FnError::domain(format!(
            "{function}: the log rate is {log_rate}, but must be less than {MAX_LOG_RATE}"
        )));
    }
    Ok(())
}

/// Returns the logarithm of Γ(n + a) / (Γ(a) n!).
pub fn rising_coefficient(a: f64, n: f64) -> f64 {
    if n == 0.0 {
        return 0.0;
    }
    // The beta function avoids cancellation for large `a`.
    -lbeta(a, n) - n.ln()
}

fn neg_binomial_tails(n: f64, shape: f64, p: f64) -> Tails {
    if n < 0.0 {
        return Tails::NOTHING;
    }
    Tails::new(ln_inc_beta(shape, n + 1.0, p))
}

fn none_below<'g>(n: E<'g>, least: f64, tails: (E<'g>, E<'g>)) -> (E<'g>, E<'g>) {
    among(n.lt(n.num(least)), n.num(0.0), tails)
}

/// Whether the bound is the number 0, as in the truncation `T[1, ]` of zero-truncated counts. The lower tail at 0 is
/// the probability of 0, which is computed without an incomplete gamma or beta function.
fn is_zero(n: E<'_>) -> bool {
    n.scalar() == Some(0.0)
}

/// Returns the tails of the number of failures before a given number of successes. `shape` is the number of successes,
/// and `t` is the log odds of each success.
fn lower_neg_binomial_tails<'g>(n: E<'g>, shape: E<'g>, t: E<'g>) -> (E<'g>, E<'g>) {
    if is_zero(n) {
        let none = -(shape * (-t).log1p_exp());
        return (none, none.log1m_exp());
    }
    let failures = (n + 1.0).fmax(n.num(1.0));
    none_below(n, 0.0, log_inc_beta(shape, failures, t))
}

fn lower_beta_neg_binomial_tails<'g>(d: &mut DensityBuilder<'g>) -> TailTerms<'g> {
    known_ints(d, 0)?;
    let [n, r, a, b] = d.get();
    let base = elementwise::lbeta(a, b) + r.lgamma();
    let lower = log_sum_of_first(n + 1.0, |k| {
        (r + k).lgamma() - lgamma(k + 1.0) + elementwise::lbeta(b + k, r + a) - base
    })?;
    // The upper tail is an infinite sum, so it is computed as one minus the lower tail.
    Ok(none_below(n, 0.0, (lower, lower.log1m_exp())))
}

/// Adds −log y!.
pub fn log_factorial(d: &mut DensityBuilder<'_>, y: E<'_>) {
    if let Some(values) = y.data() {
        let each: Vec<f64> = values.iter().map(|y| -lgamma(y + 1.0)).collect();
        let constant = d.tape.known(&each, y.is_record());
        d.term(&[], constant);
    }
}

fn lower_beta_neg_binomial(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [n, r, a, b] = d.get();
    let shapes = elementwise::lbeta(n + b, r + a) - elementwise::lbeta(a, b);
    if peaks::applies(d, n) {
        d.term(&[1, 2, 3], peaks::rising_coefficient(r, n) + shapes);
        return Ok(());
    }
    log_factorial(d, n);
    d.term(&[1, 2, 3], r.op2(ElemOp::LgammaStep, n) + shapes);
    Ok(())
}

fn lower_yule_simon(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [n, alpha] = d.get();
    let bad = n.lt(d.num(1.0));
    d.outside(bad);
    let above = alpha + 1.0;
    d.term(&[1], alpha.log());
    // The terms contain log B(n, α + 1), or the part of it that is not constant.
    match d.keeps(&[]) {
        true => d.term(&[1], elementwise::lbeta(n.fmax(d.num(1.0)), above)),
        false => d.term(&[1], -above.op2(ElemOp::LgammaStep, n)),
    }
    Ok(())
}

fn lower_poisson(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    known_ints(d, 0)?;
    let [y, lambda] = d.get();
    if peaks::applies(d, y) {
        peaks::lower_poisson(d, y, lambda);
        return Ok(());
    }
    log_factorial(d, y);
    d.term(&[1], multiply_log(y, lambda));
    d.term(&[1], -lambda);
    Ok(())
}

fn lower_poisson_log(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, eta] = d.get();
    poisson_log(d, y, eta);
    Ok(())
}

/// Adds the Poisson log probability y η − exp η − log y!.
pub fn poisson_log<'g>(d: &mut DensityBuilder<'g>, y: E<'g>, eta: E<'g>) {
    if peaks::applies(d, y) {
        peaks::lower_poisson_log(d, y, eta);
        return;
    }
    log_factorial(d, y);
    d.term(&[1], y * eta);
    d.term(&[1], -eta.exp());
}

/// Adds log (y + φ − 1 choose y) as a single term that depends on φ, which is argument `at`.
fn log_coefficient<'g>(d: &mut DensityBuilder<'g>, y: E<'g>, phi: E<'g>, at: usize) {
    let largest = y.data().map_or(0.0, |y| y.into_iter().fold(0.0, f64::max));
    let coefficient = if largest < peaks::LARGE {
        // log y! is a constant.
        phi.op2(ElemOp::LgammaStep, y) - (y + 1.0).lgamma()
    } else {
        peaks::rising_coefficient(phi, y)
    };
    d.term(&[at], coefficient);
}

fn lower_neg_binomial(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, alpha, beta] = d.get();
    log_coefficient(d, y, alpha, 1);
    d.term(&[1, 2], -(alpha * beta.recip().log1p()));
    d.term(&[1, 2], -(y * beta.log1p()));
    Ok(())
}

fn lower_neg_binomial_2(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, mu, phi] = d.get();
    log_coefficient(d, y, phi, 2);
    if peaks::applies(d, y) {
        let odds = peaks::lower_negative_binomial_odds(y, phi, mu.log(), phi.log());
        d.term(&[1, 2], odds);
        return Ok(());
    }
    d.term(&[1], multiply_log(y, mu));
    d.term(&[1, 2], -(phi * (mu / phi).log1p()));
    d.term(&[1, 2], -(y * (mu + phi).log()));
    Ok(())
}

fn lower_neg_binomial_2_log(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, eta, phi] = d.get();
    log_coefficient(d, y, phi, 2);
    neg_binomial_2_log(d, y, eta, phi);
    Ok(())
}

/// Adds the negative binomial log density with log mean η and precision φ, without the binomial coefficient.
pub fn neg_binomial_2_log<'g>(d: &mut DensityBuilder<'g>, y: E<'g>, eta: E<'g>, phi: E<'g>) {
    let precision = d.args.len() - 1;
    let location: Vec<usize> = (1..precision).collect();
    let all: Vec<usize> = (1..=precision).collect();
    // log(μ + φ) = log φ + log(1 + exp(η − log φ))
    let log_phi = phi.log();
    if peaks::applies(d, y) {
        d.term(
            &all,
            peaks::lower_negative_binomial_odds(y, phi, eta, log_phi),
        );
        return;
    }
    let excess = (eta - log_phi).log1p_exp();
    d.term(&location, y * eta);
    if phi.len() == 1 {
        // Both sums are over one vector, so they share its logarithms.
        d.term(&all, -(y * excess));
        d.term(&all, -(phi * excess));
    } else {
        d.term(&all, -((y + phi) * excess));
    }
    d.term(&all, -(y * log_phi));
}
