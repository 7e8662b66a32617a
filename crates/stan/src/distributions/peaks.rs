//! Log probabilities of large counts.
//!
//! In the direct formulas, single terms are as large as a count times its logarithm. The sum of the terms is of order
//! one, so most digits of the terms cancel. This module instead computes a log probability minus a deviance. The log
//! probability is computed for the distribution whose mean is the count, so it does not depend on the parameters. The
//! deviance is computed from the difference between each parameter and its value at the peak. Therefore no large terms
//! cancel (Loader 2000).

use jensen_graph::ElemOp;
use jensen_math::special::{log_parts, log_poisson_peak, log1p_exp};

use super::formula::DensityBuilder;
use crate::symbolic::functions::elementwise;
use crate::symbolic::tape::E;

/// For counts of at least this size, the direct formula is not used, because log n! is large and its digits cancel.
pub const LARGE: f64 = 1e4;

/// Returns whether at least one count is large and the call keeps all terms. A call that may omit constants omits the
/// large terms, so such a call uses the direct formula.
pub fn applies(d: &DensityBuilder<'_>, counts: E<'_>) -> bool {
    let large = |counts: Vec<f64>| counts.into_iter().any(|n| n >= LARGE);
    d.keeps(&[]) && counts.data().is_some_and(large)
}

/// Returns the log binomial probability of y successes among n trials if the probability of success is y/n.
fn log_binomial_peak(y: f64, n: f64) -> f64 {
    log_poisson_peak(y) + log_poisson_peak(n - y) - log_poisson_peak(n)
}

/// Returns the logarithm of `part / whole`. `excess` is `part − whole`. If the ratio is less than one half, the
/// logarithm is computed directly. Otherwise the logarithm is computed from `excess`.
fn log_ratio(part: f64, whole: f64, excess: f64) -> f64 {
    if excess < -0.5 * whole {
        (part / whole).ln()
    } else {
        (excess / whole).ln_1p()
    }
}

/// Returns the log Poisson probability of y > 0 with mean λ.
pub fn poisson(y: f64, lambda: f64) -> f64 {
    let excess = lambda - y;
    log_poisson_peak(y) + (y * log_ratio(lambda, y, excess) - excess)
}

/// Returns the log Poisson probability of y > 0 with log mean η.
pub fn poisson_log(y: f64, eta: f64) -> f64 {
    let (high, low) = log_parts(y);
    let t = (eta - high) - low;
    log_poisson_peak(y) - y * (t.exp_m1() - t)
}

/// Returns the log binomial probability of y successes among n > 0 trials with probability p.
pub fn binomial(y: f64, n: f64, p: f64) -> f64 {
    let excess = n.mul_add(p, -y);
    let part = |count: f64, chance: f64, excess: f64| match count {
        // A count of zero contributes nothing, for any probability.
        0.0 => 0.0,
        _ => count * log_ratio(n * chance, count, excess),
    };
    log_binomial_peak(y, n) + (part(y, p, excess) + part(n - y, 1.0 - p, -excess))
}

/// The quantities in the log probability of y successes among n trials that do not depend on the log odds. If there are
/// fewer failures than successes, failures are counted instead of successes.
struct Odds {
    /// −1 if failures are counted instead of successes, and 1 otherwise.
    sign: f64,
    fewer: f64,
    /// The smaller count divided by n.
    part: f64,
    /// The log odds at which the probability is largest, stored as the sum of two numbers.
    peak: (f64, f64),
    /// log(1 − part)
    log_rest: f64,
}

/// The log odds that stand for a probability of zero. The exponential of this number is 0 in double precision.
const NONE: f64 = -800.0;

impl Odds {
    fn new(y: f64, n: f64) -> Odds {
        let (sign, fewer) = if y > 0.5 * n { (-1.0, n - y) } else { (1.0, y) };
        if fewer <= 0.0 {
            return Odds {
                sign,
                fewer: 0.0,
                part: 0.0,
                peak: (NONE, 0.0),
                log_rest: 0.0,
            };
        }
        let ((high, low), rest) = (log_parts(fewer), log_parts(n - fewer));
        // The difference is negative and no larger than the second logarithm.
        let difference = high - rest.0;
        let lost = (high - (difference + rest.0)) + low - rest.1;
        Odds {
            sign,
            fewer,
            part: fewer / n,
            peak: (difference, lost),
            log_rest: (-fewer / n).ln_1p(),
        }
    }
}

/// Returns the log binomial probability of y successes among n trials with log odds η.
pub fn binomial_logit(y: f64, n: f64, eta: f64) -> f64 {
    let odds = Odds::new(y, n);
    let eta = odds.sign * eta;
    let t = (eta - odds.peak.0) - odds.peak.1;
    let excess = if t > 1.0 {
        odds.log_rest + log1p_exp(eta)
    } else {
        (odds.part * t.exp_m1()).ln_1p()
    };
    log_binomial_peak(y, n) + (odds.fewer * t - n * excess)
}

/// Returns y log μ − (y + φ) log(μ + φ) + φ log φ, computed from log μ and log φ.
pub fn negative_binomial_odds(y: f64, phi: f64, log_mu: f64, log_phi: f64) -> f64 {
    let t = log_phi - log_mu;
    -(y * log1p_exp(t) + phi * log1p_exp(-t))
}

fn each<'g>(d: &DensityBuilder<'g>, counts: &[E<'g>], f: impl Fn(&[f64]) -> f64) -> E<'g> {
    let known: Vec<Vec<f64>> = counts
        .iter()
        .map(|e| e.data().expect("counts are known"))
        .collect();
    let len = known.iter().map(Vec::len).max().unwrap_or(0);
    let row = |i: usize| -> Vec<f64> {
        let at = |x: &Vec<f64>| if x.len() == 1 { x[0] } else { x[i] };
        known.iter().map(at).collect()
    };
    let values: Vec<f64> = (0..len).map(|i| f(&row(i))).collect();
    d.tape.known(&values, counts.iter().any(|e| e.is_record()))
}

/// `far` is the logarithm to use if the ratio is far below one.
fn lower_log_ratio<'g>(far: E<'g>, whole: E<'g>, excess: E<'g>) -> E<'g> {
    let small = excess.lt(-0.5 * whole);
    small.select(far, (excess / whole).log1p())
}

/// Adds the log density of [`poisson`] in the graph, for any counts.
pub fn lower_poisson<'g>(d: &mut DensityBuilder<'g>, y: E<'g>, lambda: E<'g>) {
    let peak = each(d, &[y], |n| log_poisson_peak(n[0]));
    let whole = y.fmax(d.num(1.0));
    let excess = lambda - y;
    let ratio = lower_log_ratio((lambda / whole).log(), whole, excess);
    d.term(&[], peak);
    d.term(&[1], y * ratio - excess);
}

/// Adds the log density of [`poisson_log`] in the graph, for any counts. For a count of zero, the log density is −exp
/// η.
pub fn lower_poisson_log<'g>(d: &mut DensityBuilder<'g>, y: E<'g>, eta: E<'g>) {
    let peak = each(d, &[y], |n| log_poisson_peak(n[0]));
    let part = |which: fn((f64, f64)) -> f64| each(d, &[y], |n| which(log_parts(n[0].max(1.0))));
    let t = (eta - part(|p| p.0)) - part(|p| p.1);
    let none = y.eq(d.num(0.0));
    let change = none.select(t.exp(), y * (t.expm1() - t));
    d.term(&[], peak);
    d.term(&[1], -change);
}

/// Adds the log density of [`binomial`] in the graph, for any counts.
pub fn lower_binomial<'g>(d: &mut DensityBuilder<'g>, y: E<'g>, n: E<'g>, theta: E<'g>) {
    let peak = each(d, &[y, n], |c| log_binomial_peak(c[0], c[1]));
    let one = d.num(1.0);
    let failures = n - y;
    let (some, others) = (y.fmax(one), failures.fmax(one));
    let excess = n.op3(ElemOp::Fma, theta, -y);
    let success = lower_log_ratio((theta * (n / some)).log(), some, excess);
    let failure = lower_log_ratio(theta.log1m() + (n / others).log(), others, -excess);
    d.term(&[], peak);
    d.term(&[2], y * success + failures * failure);
}

/// Adds the log density of [`binomial_logit`] in the graph, for any counts.
pub fn lower_binomial_logit<'g>(d: &mut DensityBuilder<'g>, y: E<'g>, n: E<'g>, eta: E<'g>) {
    let peak = each(d, &[y, n], |c| log_binomial_peak(c[0], c[1]));
    let of = |which: fn(Odds) -> f64| each(d, &[y, n], |c| which(Odds::new(c[0], c[1])));
    let eta = of(|o| o.sign) * eta;
    let t = (eta - of(|o| o.peak.0)) - of(|o| o.peak.1);
    let one = d.num(1.0);
    let far = of(|o| o.log_rest) + eta.log1p_exp();
    let near = (of(|o| o.part) * t.fmin(one).expm1()).log1p();
    let excess = one.lt(t).select(far, near);
    let change = of(|o| o.fewer) * t - n * excess;
    d.term(&[], peak);
    d.term(&[2], change);
}

/// Builds log (y + φ − 1 choose y) in the graph.
pub fn rising_coefficient<'g>(phi: E<'g>, y: E<'g>) -> E<'g> {
    -elementwise::lbeta(phi, y + 1.0) - (phi + y).log()
}

/// Builds [`negative_binomial_odds`] in the graph.
pub fn lower_negative_binomial_odds<'g>(
    y: E<'g>,
    phi: E<'g>,
    log_mu: E<'g>,
    log_phi: E<'g>,
) -> E<'g> {
    let t = log_phi - log_mu;
    -(y * t.log1p_exp() + phi * (-t).log1p_exp())
}
