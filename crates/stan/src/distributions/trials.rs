//! Distributions of the number of successes among trials, and of ints in a range.

use jensen_math::special::{binomial_coefficient_log, lbeta, log_sum_exp_slice, log1p_exp};

use super::counts::rising_coefficient;
use super::formula::{DensityBuilder, TailTerms, known_ints};
use super::interval::log_inc_beta;
use super::peaks;
use super::univariate::{Tails, Univariate, VARIATE};
use crate::functions::elementary::lmultiply;
use crate::functions::special::ln_inc_beta;
use crate::symbolic::domain::Domain::{
    AnyInt, Bool, Finite, NonNegative, NotNan, PositiveFinite, Unit,
};
use crate::symbolic::functions::elementwise::{self, multiply_log};
use crate::symbolic::tape::E;
use crate::value::error::{FnError, FnResult};

const A: u32 = 2;
const B: u32 = 4;
const C: u32 = 8;

const PROBABILITY: &str = "the probability parameter";
const TRIALS: &str = "the population size parameter";

const NONE: f64 = f64::NEG_INFINITY;

/// The sampler makes at most this many draws without replacement one by one. If more draws are necessary, the sampler
/// uses rejection sampling.
const ONE_BY_ONE: f64 = 1000.0;

/// The univariate distributions that this file defines.
pub static TABLE: &[Univariate] = &[
    Univariate::new("bernoulli", Bool, &[(PROBABILITY, Unit)], |k, x| {
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
    .sample(|r, x| f64::from(r.uniform() < x[0]))
    .lowered(A, lower_bernoulli)
    .lowered_tails(A, lower_bernoulli_tails),
    Univariate::new(
        "bernoulli_logit",
        Bool,
        &[("the logit transformed probability parameter", NotNan)],
        |k, x| k.term(A, -log1p_exp(if x[0] == 1.0 { -x[1] } else { x[1] })),
    )
    .discrete()
    .sample(|r, x| f64::from(r.uniform() < 1.0 / (1.0 + (-x[0]).exp())))
    .lowered(0, lower_bernoulli_logit),
    Univariate::new(
        "binomial",
        NonNegative,
        &[(TRIALS, NonNegative), (PROBABILITY, Unit)],
        |k, x| {
            if x[0] > x[1] {
                return NONE;
            }
            if k.constants() && x[1] >= peaks::LARGE {
                return peaks::binomial(x[0], x[1], x[2]);
            }
            let failures = x[1] - x[0];
            let log_miss = if failures == 0.0 {
                0.0
            } else {
                failures * (-x[2]).ln_1p()
            };
            k.constant(binomial_coefficient_log(x[1], x[0]))
                + k.term(B, lmultiply(x[0], x[2]) + log_miss)
        },
    )
    .discrete()
    .tails(|x| binomial_tails(x[0], x[1], x[2]))
    .sample(|r, x| r.binomial(x[0], x[1]))
    .lowered(B, lower_binomial)
    .lowered_tails(B, lower_binomial_tails),
    Univariate::new(
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
            if k.constants() && x[1] >= peaks::LARGE {
                return peaks::binomial_logit(x[0], x[1], x[2]);
            }
            k.constant(binomial_coefficient_log(x[1], x[0]))
                + k.term(
                    B,
                    -x[0] * log1p_exp(-x[2]) - (x[1] - x[0]) * log1p_exp(x[2]),
                )
        },
    )
    .discrete()
    .lowered(0, lower_binomial_logit),
    Univariate::new(
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
            if k.constants() && x[1] >= peaks::LARGE {
                return rising_coefficient(x[2], x[0]) + rising_coefficient(x[3], x[1] - x[0])
                    - rising_coefficient(x[2] + x[3], x[1]);
            }
            k.constant(binomial_coefficient_log(x[1], x[0]))
                + k.term(
                    B | C,
                    lbeta(x[0] + x[2], x[1] - x[0] + x[3]) - lbeta(x[2], x[3]),
                )
        },
    )
    .discrete()
    .tails(|x| {
        let mass = |n: f64| {
            binomial_coefficient_log(x[1], n) + lbeta(n + x[2], x[1] - n + x[3]) - lbeta(x[2], x[3])
        };
        summed_tails(x[0], 0.0, x[1], mass)
    })
    .sample(|r, x| {
        let p = r.beta(x[1], x[2]);
        r.binomial(x[0], p)
    })
    .lowered(B | C, lower_beta_binomial)
    .lowered_tails(B | C, lower_beta_binomial_tails),
    Univariate::new(
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
            k.constant(
                binomial_coefficient_log(a, n) + binomial_coefficient_log(b, draws - n)
                    - binomial_coefficient_log(a + b, draws),
            )
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
        if x[0] > ONE_BY_ONE {
            let (a, all) = (x[1] as u64, (x[1] + x[2]) as u64);
            return rand_distr::Hypergeometric::new(all, a, x[0] as u64)
                .map_or(f64::NAN, |d| r.sample(d) as f64);
        }
        // Items are drawn one after the other, without replacement.
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
    })
    .lowered(0, lower_hypergeometric),
    Univariate::new(
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
    })
    .lowered(0, lower_discrete_range),
];

fn binomial_tails(n: f64, trials: f64, p: f64) -> Tails {
    if n < 0.0 {
        Tails::NOTHING
    } else if n >= trials {
        Tails::ALL
    } else {
        Tails::new(ln_inc_beta(trials - n, n + 1.0, 1.0 - p))
    }
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
        log_sum_exp_slice(&terms).min(0.0)
    };
    Tails {
        lower: sum(first, n),
        upper: sum(n + 1.0, last),
    }
}

fn successes(d: &DensityBuilder<'_>) -> FnResult<(Vec<f64>, Vec<f64>)> {
    let (y, n) = (known_ints(d, 0)?, known_ints(d, 1)?);
    let at = |x: &[f64], i: usize| if x.len() == 1 { x[0] } else { x[i] };
    let taken = d.tape.comes_by();
    for i in 0..y.len().max(n.len()) {
        if taken.as_ref().is_some_and(|taken| at(taken, i) == 0.0) {
            continue;
        }
        let (y, n) = (at(&y, i), at(&n, i));
        if !(0.0..=n).contains(&y) {
            return Err(FnError::domain(format!(
                "{}: {VARIATE} is {y}, but must be between 0 and {n}",
                d.name
            )));
        }
    }
    Ok((y, n))
}

fn lower_bernoulli(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let values = known_ints(d, 0)?;
    let [y, theta] = d.get();
    if let Some(eta) = theta.inv_logit_argument() {
        bernoulli_logit(d, y, eta);
        return Ok(());
    }
    if theta.len() == 1 && d.n > 1 {
        let ones = if y.len() == 1 {
            values[0] * d.n as f64
        } else {
            values.iter().sum()
        };
        let zeros = d.n as f64 - ones;
        d.n = 1;
        d.term(&[1], ones * theta.log() + zeros * theta.log1m());
        return Ok(());
    }
    // The probability of the observation is exactly θ or 1 − θ, so one logarithm suffices.
    let p = (1.0 - y) + (2.0 * y - 1.0) * theta;
    d.term(&[1], p.log());
    Ok(())
}

fn lower_bernoulli_logit(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, eta] = d.get();
    known_ints(d, 0)?;
    bernoulli_logit(d, y, eta);
    Ok(())
}

/// Adds −log(1 + exp(∓η)).
pub fn bernoulli_logit<'g>(d: &mut DensityBuilder<'g>, y: E<'g>, eta: E<'g>) {
    if eta.len() == 1
        && d.n > 1
        && let Some(values) = y.values()
    {
        let ones = if y.len() == 1 {
            values[0] * d.n as f64
        } else {
            values.iter().sum()
        };
        let zeros = d.n as f64 - ones;
        d.n = 1;
        d.term(&[1], -(ones * (-eta).log1p_exp() + zeros * eta.log1p_exp()));
        return;
    }
    d.term(&[1], -((1.0 - 2.0 * y) * eta).log1p_exp());
}

fn log_choose(d: &mut DensityBuilder<'_>, y: &[f64], n: &[f64], records: bool) {
    let at = |x: &[f64], i: usize| if x.len() == 1 { x[0] } else { x[i] };
    let each: Vec<f64> = (0..y.len().max(n.len()))
        .map(|i| binomial_coefficient_log(at(n, i), at(y, i)))
        .collect();
    let constant = d.tape.known(&each, records);
    d.term(&[], constant);
}

fn lower_binomial(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let (known_y, known_n) = successes(d)?;
    let [y, n, theta] = d.get();
    if let Some(eta) = theta.inv_logit_argument() {
        binomial_logit(d, y, n, eta);
        return Ok(());
    }
    if peaks::applies(d, n) {
        peaks::lower_binomial(d, y, n, theta);
        return Ok(());
    }
    log_choose(d, &known_y, &known_n, y.is_record() || n.is_record());
    d.term(&[2], multiply_log(y, theta));
    let rest = n - y;
    let log1m = rest * theta.log1m();
    let zero = d.num(0.0);
    let safe = match rest.data() {
        // If there are no failures, θ = 1 is valid.
        Some(values) if values.len() > 1 && values.contains(&0.0) => {
            rest.eq(zero).select(zero, log1m)
        }
        _ => log1m,
    };
    d.term(&[2], safe);
    Ok(())
}

fn lower_binomial_logit(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, n, eta] = d.get();
    successes(d)?;
    binomial_logit(d, y, n, eta);
    Ok(())
}

/// Adds y η − n log(1 + exp η) and the binomial coefficient.
pub fn binomial_logit<'g>(d: &mut DensityBuilder<'g>, y: E<'g>, n: E<'g>, eta: E<'g>) {
    if y.data().is_some() && peaks::applies(d, n) {
        peaks::lower_binomial_logit(d, y, n, eta);
        return;
    }
    let records = y.is_record() || n.is_record();
    if let (Some(y), Some(n)) = (y.data(), n.data()) {
        log_choose(d, &y, &n, records);
    }
    d.term(&[2], y * eta);
    d.term(&[2], -(n * eta.log1p_exp()));
}

fn lower_beta_binomial(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let (known_y, known_n) = successes(d)?;
    let [y, n, a, b] = d.get();
    if peaks::applies(d, n) {
        let coefficient = peaks::rising_coefficient;
        let all = coefficient(a, y) + coefficient(b, n - y) - coefficient(a + b, n);
        d.term(&[2, 3], all);
        return Ok(());
    }
    log_choose(d, &known_y, &known_n, y.is_record() || n.is_record());
    d.term(&[2, 3], elementwise::lbeta(y + a, n - y + b));
    d.term(&[2, 3], -elementwise::lbeta(a, b));
    Ok(())
}

fn lower_binomial_tails<'g>(d: &mut DensityBuilder<'g>) -> TailTerms<'g> {
    let [y, n, theta] = d.get();
    let (zero, one) = (y.num(0.0), y.num(1.0));
    let (failures, successes) = ((n - y).fmax(one), (y + 1.0).fmax(one));
    // The logit has no finite derivative at 0 and 1. The only term with a derivative there is a power.
    let (never, always) = (theta.eq(zero), theta.eq(one));
    let inside = (never + always).select(y.num(0.5), theta);
    let (lower, upper) = log_inc_beta(failures, successes, -elementwise::logit(inside));
    let (low, high) = (never.select(theta, zero), always.select(theta, one));
    let impossible = y.num(f64::NEG_INFINITY);
    let none = y.le(zero).select(n * low.log1m(), zero);
    let all = n.le(y + 1.0).select(n * high.log(), zero);
    let tails = (
        never.select(none, always.select(impossible, lower)),
        never.select(impossible, always.select(all, upper)),
    );
    Ok(among(y.lt(zero), n.le(y), tails))
}

/// Returns the given tails, with two exceptions. Where `none` is nonzero, every outcome is above the variate, so the
/// lower tail is −∞. Where `all` is nonzero, no outcome is above the variate, so the upper tail is −∞.
pub fn among<'g>(none: E<'g>, all: E<'g>, (lower, upper): (E<'g>, E<'g>)) -> (E<'g>, E<'g>) {
    let (zero, never) = (none.num(0.0), none.num(f64::NEG_INFINITY));
    (
        all.select(zero, none.select(never, lower)),
        all.select(never, none.select(zero, upper)),
    )
}

/// Builds the logarithm of the sum of the first `counts` terms. There must be at least one term.
pub fn log_sum_of_first<'g>(counts: E<'g>, term: impl Fn(f64) -> E<'g>) -> FnResult<E<'g>> {
    let known = counts.data().unwrap_or_default();
    let most = known.iter().copied().fold(1.0, f64::max);
    if most > MOST_TERMS {
        return Err(FnError::unsupported(format!(
            "a distribution function that sums {most} terms is not supported yet in the log density"
        )));
    }
    let mut sum = term(0.0);
    let mut k = 1.0;
    while k < most {
        let counted = counts.num(k).lt(counts);
        sum = sum.log_add_exp(counted.select(term(k), counts.num(f64::NEG_INFINITY)));
        k += 1.0;
    }
    Ok(sum)
}

/// The largest number of terms in a sum. Each term is a node of the graph.
const MOST_TERMS: f64 = 20_000.0;

fn lower_beta_binomial_tails<'g>(d: &mut DensityBuilder<'g>) -> TailTerms<'g> {
    known_ints(d, 0)?;
    known_ints(d, 1)?;
    let [y, n, a, b] = d.get();
    let zero = y.num(0.0);
    let mass = |k: E<'g>| {
        elementwise::lchoose(n, k) + elementwise::lbeta(k + a, n - k + b) - elementwise::lbeta(a, b)
    };
    let lower = log_sum_of_first(y + 1.0, |k| mass(y.num(k).fmin(n)))?;
    let upper = log_sum_of_first(n - y.fmax(zero), |k| mass((n - k).fmax(zero)))?;
    Ok(among(y.lt(zero), n.le(y), (lower, upper)))
}

fn lower_hypergeometric(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [n, draws, a, b] = d.get();
    let choose = elementwise::lchoose;
    d.term(
        &[],
        choose(a, n) + choose(b, draws - n) - choose(a + b, draws),
    );
    Ok(())
}

fn lower_discrete_range(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, low, high] = d.get();
    let outside = y.lt(low) + high.lt(y);
    d.outside(outside);
    d.term(&[1, 2], -(high - low + 1.0).log());
    Ok(())
}

fn lower_bernoulli_tails<'g>(d: &mut DensityBuilder<'g>) -> TailTerms<'g> {
    let [y, theta] = d.get();
    let (zero, never) = (y.num(0.0), y.num(f64::NEG_INFINITY));
    let (negative, most) = (y.lt(zero), y.num(1.0).le(y));
    let lower = most.select(zero, negative.select(never, theta.log1m()));
    let upper = most.select(never, negative.select(zero, theta.log()));
    Ok((lower, upper))
}
