//! Distributions of counts and other ints.

use crate::distributions::family::{
    Domain::{AnyInt, Bool, Finite, NonNegative, NotNan, PositiveFinite, Unit},
    Family, Tails,
};
use crate::functions::elementary::{lmultiply, log_add_exp, log1p_exp};
use crate::functions::reductions::log_sum_exp;
use crate::functions::special::{lbeta, lchoose, lgamma, ln_gamma_pq, ln_inc_beta};
use crate::value::error::{FnError, FnResult};

const A: u32 = 2;
const B: u32 = 4;
const C: u32 = 8;

const PROBABILITY: &str = "the probability parameter";
const TRIALS: &str = "the population size parameter";
const RATE: &str = "the rate parameter";

const NONE: f64 = f64::NEG_INFINITY;

/// 2³⁰: log rates above give numbers beyond the ints.
const MAX_LOG_RATE: f64 = 20.794_415_416_798_36;

pub(super) static FAMILIES: &[Family] = &[
    Family::new("bernoulli", Bool, &[(PROBABILITY, Unit)], |k, x| {
        k.term(
            A,
            if x[0] == 1.0 {
                x[1].ln()
            } else {
                (-x[1]).ln_1p()
            },
        )
    })
    .discrete()
    .tails(|x| binomial_tails(x[0], 1.0, x[1]))
    .sample(|r, x| f64::from(r.uniform() < x[0])),
    Family::new(
        "bernoulli_logit",
        Bool,
        &[("the logit transformed probability parameter", NotNan)],
        |k, x| k.term(A, -log1p_exp(if x[0] == 1.0 { -x[1] } else { x[1] })),
    )
    .discrete()
    .sample(|r, x| f64::from(r.uniform() < 1.0 / (1.0 + (-x[0]).exp()))),
    Family::new(
        "binomial",
        NonNegative,
        &[(TRIALS, NonNegative), (PROBABILITY, Unit)],
        |k, x| {
            if x[0] > x[1] {
                return NONE;
            }
            let failures = x[1] - x[0];
            let log_miss = if failures == 0.0 {
                0.0
            } else {
                failures * (-x[2]).ln_1p()
            };
            k.constant(lchoose(x[1], x[0])) + k.term(B, lmultiply(x[0], x[2]) + log_miss)
        },
    )
    .discrete()
    .tails(|x| binomial_tails(x[0], x[1], x[2]))
    .sample(|r, x| r.binomial(x[0], x[1])),
    Family::new(
        "binomial_logit",
        NonNegative,
        &[
            (TRIALS, NonNegative),
            ("the logit transformed probability parameter", Finite),
        ],
        |k, x| {
            if x[0] > x[1] {
                return NONE;
            }
            k.constant(lchoose(x[1], x[0]))
                + k.term(
                    B,
                    -x[0] * log1p_exp(-x[2]) - (x[1] - x[0]) * log1p_exp(x[2]),
                )
        },
    )
    .discrete(),
    Family::new(
        "beta_binomial",
        AnyInt,
        &[
            (TRIALS, NonNegative),
            ("the first prior sample size parameter", PositiveFinite),
            ("the second prior sample size parameter", PositiveFinite),
        ],
        |k, x| {
            if x[0] < 0.0 || x[0] > x[1] {
                return NONE;
            }
            k.constant(lchoose(x[1], x[0]))
                + k.term(
                    B | C,
                    lbeta(x[0] + x[2], x[1] - x[0] + x[3]) - lbeta(x[2], x[3]),
                )
        },
    )
    .discrete()
    .tails(|x| {
        let mass = |n: f64| lchoose(x[1], n) + lbeta(n + x[2], x[1] - n + x[3]) - lbeta(x[2], x[3]);
        summed_tails(x[0], 0.0, x[1], mass)
    })
    .sample(|r, x| {
        let p = r.beta(x[1], x[2]);
        r.binomial(x[0], p)
    }),
    Family::new(
        "beta_neg_binomial",
        NonNegative,
        &[
            ("the number of successes parameter", PositiveFinite),
            ("the first prior shape parameter", PositiveFinite),
            ("the second prior shape parameter", PositiveFinite),
        ],
        |k, x| {
            let (n, r, a, b) = (x[0], x[1], x[2], x[3]);
            k.constant(-lgamma(n + 1.0))
                + k.term(
                    A | B | C,
                    lgamma(n + r) - lgamma(r) + lbeta(n + b, r + a) - lbeta(a, b),
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
        // The upper tail is endless: it is what the lower one leaves.
        let terms: Vec<f64> = (0..=x[0] as u64).map(|n| mass(n as f64)).collect();
        Tails::from_log_lower(log_sum_exp(&terms))
    })
    .sample(|r, x| {
        let p = r.beta(x[1], x[2]);
        let rate = r.gamma(x[0]) * (1.0 - p) / p;
        r.poisson(rate)
    }),
    Family::new(
        "yule_simon",
        NonNegative,
        &[("the shape parameter", PositiveFinite)],
        |k, x| {
            if x[0] < 1.0 {
                return NONE;
            }
            // log B(n, α + 1), of which log Γ(n) is constant
            let constant = lgamma(x[0]);
            k.constant(constant) + k.term(A, x[1].ln() + lbeta(x[0], x[1] + 1.0) - constant)
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
        // A geometric number whose failure probability is 1 − exp(−W), W exponential.
        let w = r.exponential() / x[0];
        let log_failure = (-(-w).exp()).ln_1p();
        (r.uniform().ln() / log_failure).ceil().max(1.0)
    }),
    Family::new("poisson", NonNegative, &[(RATE, NonNegative)], |k, x| {
        if x[1].is_infinite() || (x[1] == 0.0 && x[0] != 0.0) {
            return NONE;
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
    .sample(|r, x| r.poisson(x[0])),
    Family::new(
        "poisson_log",
        NonNegative,
        &[("the log rate parameter", NotNan)],
        |k, x| {
            if x[1] == f64::INFINITY || (x[1] == NONE && x[0] != 0.0) {
                return NONE;
            }
            let linear = if x[0] == 0.0 { 0.0 } else { x[0] * x[1] };
            k.constant(-lgamma(x[0] + 1.0)) + k.term(A, linear - x[1].exp())
        },
    )
    .discrete()
    .joint(|function, p| check_log_rate(function, p[0]))
    .sample(|r, x| r.poisson(x[0].exp())),
    Family::new(
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
    }),
    Family::new(
        "neg_binomial_2",
        NonNegative,
        &[
            ("the location parameter", PositiveFinite),
            ("the precision parameter", PositiveFinite),
        ],
        |k, x| {
            let (n, mu, phi) = (x[0], x[1], x[2]);
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
    }),
    Family::new(
        "neg_binomial_2_log",
        NonNegative,
        &[
            ("the log location parameter", Finite),
            ("the precision parameter", PositiveFinite),
        ],
        |k, x| {
            let (n, eta, phi) = (x[0], x[1], x[2]);
            k.term(B, rising_coefficient(phi, n))
                + k.term(A, n * eta)
                + k.term(
                    A | B,
                    -phi * log1p_exp(eta - phi.ln()) - n * log_add_exp(eta, phi.ln()),
                )
        },
    )
    .discrete()
    .joint(|function, p| check_log_rate(function, p[0]))
    .sample(|r, x| {
        let rate = r.gamma(x[1]) * x[0].exp() / x[1];
        r.poisson(rate)
    }),
    Family::new(
        "hypergeometric",
        NonNegative,
        &[
            ("the number of draws", NonNegative),
            ("the number of successes", NonNegative),
            ("the number of failures", NonNegative),
        ],
        |k, x| {
            let (n, draws, a, b) = (x[0], x[1], x[2], x[3]);
            if n > a || n > draws || draws - n > b {
                return NONE;
            }
            k.constant(lchoose(a, n) + lchoose(b, draws - n) - lchoose(a + b, draws))
        },
    )
    .discrete()
    .joint(|function, p| {
        if p[0] <= p[1] + p[2] {
            return Ok(());
        }
        Err(FnError::domain(format!(
            "{function}: the number of draws is {}, but must be at most {}",
            p[0],
            p[1] + p[2]
        )))
    })
    .sample(|r, x| {
        // One draw after the other, without replacement.
        let (mut a, mut b) = (x[1], x[2]);
        let mut n = 0.0;
        for _ in 0..x[0] as u64 {
            if r.uniform() * (a + b) < a {
                a -= 1.0;
                n += 1.0;
            } else {
                b -= 1.0;
            }
        }
        n
    }),
    Family::new(
        "discrete_range",
        AnyInt,
        &[("the lower bound", AnyInt), ("the upper bound", AnyInt)],
        |k, x| {
            if x[0] < x[1] || x[0] > x[2] {
                return NONE;
            }
            k.constant(-(x[2] - x[1] + 1.0).ln())
        },
    )
    .discrete()
    .joint(|function, p| {
        if p[1] >= p[0] {
            return Ok(());
        }
        Err(FnError::domain(format!(
            "{function}: the upper bound is {}, but must be at least {}",
            p[1], p[0]
        )))
    })
    .tails(|x| {
        let count = x[2] - x[1] + 1.0;
        let below = (x[0] - x[1] + 1.0).clamp(0.0, count);
        Tails {
            lower: (below / count).ln(),
            upper: ((count - below) / count).ln(),
        }
    })
    .sample(|r, x| {
        let count = x[1] - x[0] + 1.0;
        x[0] + (r.uniform() * count).floor().min(count - 1.0)
    }),
];

fn check_log_rate(function: &str, log_rate: f64) -> FnResult<()> {
    if function.ends_with("_rng") && log_rate >= MAX_LOG_RATE {
        return Err(FnError::domain(format!(
            "{function}: the log rate is {log_rate}, but must be less than {MAX_LOG_RATE}"
        )));
    }
    Ok(())
}

/// log of Γ(n + a) / (Γ(a) n!)
fn rising_coefficient(a: f64, n: f64) -> f64 {
    if n == 0.0 {
        return 0.0;
    }
    // Through B, so that a large `a` does not cancel.
    -lbeta(a, n) - n.ln()
}

fn binomial_tails(n: f64, trials: f64, p: f64) -> Tails {
    if n < 0.0 {
        Tails::NOTHING
    } else if n >= trials {
        Tails::ALL
    } else {
        Tails::new(ln_inc_beta(trials - n, n + 1.0, 1.0 - p))
    }
}

fn neg_binomial_tails(n: f64, shape: f64, p: f64) -> Tails {
    if n < 0.0 {
        return Tails::NOTHING;
    }
    Tails::new(ln_inc_beta(shape, n + 1.0, p))
}

fn summed_tails(n: f64, first: f64, last: f64, mass: impl Fn(f64) -> f64) -> Tails {
    if n < first {
        return Tails::NOTHING;
    }
    if n >= last {
        return Tails::ALL;
    }
    let sum = |from: f64, to: f64| {
        let terms: Vec<f64> = (0..=(to - from) as u64)
            .map(|i| mass(from + i as f64))
            .collect();
        log_sum_exp(&terms).min(0.0)
    };
    Tails {
        lower: sum(first, n),
        upper: sum(n + 1.0, last),
    }
}
